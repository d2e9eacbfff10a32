"""A page on your own machine: drop a table, get its report. Nothing leaves the machine."""

from graphbam.web.server import build_app

__all__ = ["build_app"]
