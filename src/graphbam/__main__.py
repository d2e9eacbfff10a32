"""`python -m graphbam`: the command line."""

from graphbam.cli import main

if __name__ == "__main__":
    main()
