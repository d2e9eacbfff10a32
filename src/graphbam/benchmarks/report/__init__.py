"""Results of the benchmark → the paper's figures, one HTML page, and Markdown tables.

::

    rows        files of one or several runs → one checked table
    summary     means, ranks, wins, losses: numbers only
    grid        scores of methods in columns: what a figure draws and its table prints
    charts      bars and curves          dots   strips, quality against time, map of cells
    panels      which figures, after the paper
    claims      what the paper's text says, checked
    sheets      tables as Markdown and HTML   findings   which tables   commands   how to make them again
    schools     titles and colours of methods
    page        everything as HTML   writing   the files
"""

from graphbam.benchmarks.report.writing import write_report

__all__ = ["write_report"]
