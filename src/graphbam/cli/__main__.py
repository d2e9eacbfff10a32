"""``python -m graphbam.cli``."""

from graphbam.cli import main

main()
