"""The files of a report.

=================  =======================================================================================
report.html        everything, in one file that needs no network
summary.md         ranks, wins and means by group of cells, and where we lose
tables.md          the numbers of every figure
cells.csv          mean, standard deviation and number of trials of each cell, method and score
figures/           every figure as PNG and SVG
=================  =======================================================================================
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from graphbam.benchmarks.report.charts import Looks, save_figure
from graphbam.benchmarks.report.findings import (
    RULES,
    failure_sheet,
    headlines,
    loss_sheet,
    panel_sheets,
    state_facts,
    summary_sheets,
)
from graphbam.benchmarks.report.page import TITLE, render_page
from graphbam.benchmarks.report.panels import Panel, plan_panels
from graphbam.benchmarks.report.rows import METRICS, read_rows
from graphbam.benchmarks.report.schools import assign_looks
from graphbam.benchmarks.report.sheets import escape_markdown, to_markdown
from graphbam.benchmarks.report.summary import spread
from graphbam.errors import ConfigError, TableError

PUBLISHED_COLUMNS = ("mechanism", "n_variables", "n_samples", "method", "metric", "value", "source")
"""Columns of a file with numbers of others."""

FILES = {
    "report.html": "open it in a browser",
    "summary.md": "ranks, wins, means, and where we lose",
    "tables.md": "the numbers of every figure",
    "cells.csv": "the same for your own plots",
}
"""What is written besides the figures."""


def write_report(
    runs: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    published: str | os.PathLike[str] | None = None,
) -> dict[Path, str]:
    """Write figures, page and tables of one or several runs.

    Parameters
    ----------
    runs : sequence of paths
        Run folders with results.parquet or results.csv, or such files; of equal rows the last one counts.
    out : path
        Folder to write to; made if missing.
    published : path, optional
        A csv with numbers that others published for the same cells, columns `PUBLISHED_COLUMNS`; drawn as hollow
        diamonds beside ours.

    Returns
    -------
    dict
        The files, with what they are.

    Raises
    ------
    TableError
        If there are no results, or a file is not what it should be.
    """
    rows = read_rows(runs)
    theirs = None if published is None else _read_published(Path(published))
    sources = "" if theirs is None else "; ".join(sorted({str(source) for source in theirs["source"]}))
    looks = assign_looks(rows["method"].unique())
    panels = plan_panels(rows, looks, theirs)
    out, folder = Path(out), _make_folder(Path(out) / "figures")
    pictures = {panel.key: save_figure(panel.draw(), folder, panel.key)[1] for panel in panels}
    command = _name_command(runs, out, published)
    texts = {
        "report.html": render_page(rows, panels, pictures, looks, command, sources),
        "summary.md": render_summary(rows, looks, command),
        "tables.md": render_tables(panels, looks, command),
        "cells.csv": tabulate_cells(rows).to_csv(index=False, float_format="%.6g"),
    }
    for name, text in texts.items():
        (out / name).write_bytes(text.encode("utf-8", "xmlcharrefreplace"))
    files = {out / name: what for name, what in FILES.items()}
    return files | {folder: f"{len(panels)} figures, each as PNG and SVG"}


def _name_command(runs: Sequence[str | os.PathLike[str]], out: Path, published: str | os.PathLike[str] | None) -> str:
    words = ["graphbam", "benchmark-report", *map(str, runs), "-o", str(out)]
    return shlex.join(words if published is None else [*words, "--published", str(published)])


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {folder}: {error.strerror}; choose another with -o") from None
    return folder


def _read_published(path: Path) -> pd.DataFrame:
    try:
        published = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read as a csv of published numbers: {error}") from None
    missing = [name for name in PUBLISHED_COLUMNS if name not in published]
    if missing:
        raise TableError(f"{path} lacks the columns {', '.join(missing)}; it needs {', '.join(PUBLISHED_COLUMNS)}")
    strange = sorted(set(published["metric"]) - set(METRICS))
    if strange:
        raise TableError(f"{path} has the metric {strange[0]!r}; it must be one of {', '.join(METRICS)}")
    return published


def tabulate_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation and number of scores, one row a cell, method and score."""
    by = ["group", "cell", "method"]
    table = pd.concat([spread(rows, name, by).assign(metric=name).reset_index() for name in METRICS])
    return table.loc[table["n"] > 0, [*by, "metric", "mean", "sd", "n"]]


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────────────


def render_summary(rows: pd.DataFrame, looks: Looks, command: str) -> str:
    """Summaries, losses and failures as Markdown."""
    points = "\n".join(f"- {escape_markdown(line)}" for line in headlines(rows, looks))
    parts = [f"# {TITLE}", state_facts(rows), points, escape_markdown(RULES), f"    {command}"]
    sheets = [*summary_sheets(rows, looks), loss_sheet(rows, looks), failure_sheet(rows, looks)]
    return "\n\n".join([*filter(None, parts), *(to_markdown(sheet, level=2) for sheet in sheets)])


def render_tables(panels: Sequence[Panel], looks: Looks, command: str) -> str:
    """The numbers of every figure as Markdown."""
    sheets = [sheet for panel in panels for sheet in panel_sheets(panel, looks)]
    head = f"# {TITLE}: the numbers of every figure\n\n    {command}\n"
    return "\n".join([head, *(to_markdown(sheet, level=2) for sheet in sheets)])
