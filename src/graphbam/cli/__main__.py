"""``python -m graphbam.cli``."""

from graphbam.cli import run

run()
