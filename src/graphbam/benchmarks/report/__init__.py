"""Results of the benchmark → the paper's figures, one HTML page, and Markdown tables.

::

    rows        files of one or several runs → one checked table
    summary     means, ranks, wins, losses; grids of scores: numbers only
    charts      how methods look, and every kind of figure
    panels      which figures, after the paper
    statements  what the paper's text says, checked
    sheets      tables as Markdown and HTML
    findings    which tables, and the commands that make their rows again
    page        everything as files
"""

from graphbam.benchmarks.report.page import write_report

__all__ = ["write_report"]
