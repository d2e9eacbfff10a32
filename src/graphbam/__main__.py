"""`python -m graphbam`: the command line."""

from graphbam.cli import run

if __name__ == "__main__":
    run()
