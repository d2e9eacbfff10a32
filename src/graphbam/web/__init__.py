"""A page on your own machine: drop a table, see what is in it, get its graph. Nothing leaves the machine."""

from graphbam.web.server import build_app

__all__ = ["build_app"]
