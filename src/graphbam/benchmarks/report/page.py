"""The files of a report.

=================  =======================================================================================
report.html        everything, in one file that needs no network: embedded figures, tables that sort
summary.md         ranks, wins and means by group of cells, and where we lose
tables.md          the numbers of every figure
cells.csv          mean, standard deviation and number of trials of each cell, method and score
figures/           every figure as PNG and SVG
=================  =======================================================================================
"""

from __future__ import annotations

import base64
import html
import itertools
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import pandas as pd

import graphbam
from graphbam.benchmarks.report.charts import Looks, assign_looks, save_figure
from graphbam.benchmarks.report.findings import (
    RULES,
    failure_sheet,
    headlines,
    loss_sheet,
    panel_sheets,
    run_sheet,
    state_facts,
    statement_sheet,
    summary_sheets,
    version_sheet,
)
from graphbam.benchmarks.report.panels import SECTIONS, Panel, plan_panels
from graphbam.benchmarks.report.rows import METRICS, read_rows
from graphbam.benchmarks.report.sheets import Sheet, escape_markdown, to_html, to_markdown
from graphbam.benchmarks.report.summary import spread
from graphbam.errors import TableError
from graphbam.machine.disk import Note, filling, make_folder, refuse_others, take_path
from graphbam.output.report import fill_page

TITLE = "Benchmark of graph structure inference"

PUBLISHED_COLUMNS = ("mechanism", "n_variables", "n_samples", "method", "metric", "value", "source")
"""Columns of a file with numbers of others."""

FILES = {
    "report.html": "open it in a browser",
    "summary.md": "ranks, wins, means, and where we lose",
    "tables.md": "the numbers of every figure",
    "cells.csv": "the same for your own plots",
}
"""What is written besides the figures."""

FIGURES = "figures"
"""Folder of these."""

NOTE = Note("report.html", f"<title>{TITLE}".encode())
"""The page says which files belong to it; one of an older release owns all that a report has."""


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
        Folder to write to; made if missing. An earlier report there is replaced, files of others are left alone.
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
    ConfigError
        If the folder cannot be made, or files of others would be lost.
    """
    rows = read_rows([take_path(run, "the path of a run") for run in runs])
    theirs = None if published is None else _read_published(take_path(published, "the path of published numbers"))
    sources = "" if theirs is None else "; ".join(sorted({str(source) for source in theirs["source"]}))
    looks = assign_looks(rows["method"].unique())
    panels = plan_panels(rows, looks, theirs)
    out, names = take_path(out), [*FILES, *_name_figures(panels)]
    note = NOTE._replace(older=tuple(names))
    refuse_others(out, names, note)
    with filling(out, note) as draft:
        folder = make_folder(draft / FIGURES)
        pictures = {panel.key: save_figure(panel.draw(), folder, panel.key)[1] for panel in panels}
        command = _name_command(runs, out, published)
        texts = {
            "report.html": render_page(rows, panels, pictures, looks, command, sources, names),
            "summary.md": render_summary(rows, looks, command),
            "tables.md": render_tables(panels, looks, command),
            "cells.csv": tabulate_cells(rows).to_csv(index=False, float_format="%.6g"),
        }
        for name, text in texts.items():
            (draft / name).write_bytes(text.encode("utf-8", "xmlcharrefreplace"))
    files = {out / name: what for name, what in FILES.items()}
    return files | {out / FIGURES: f"{len(panels)} figures, each as PNG and SVG"}


def _name_command(runs: Sequence[str | os.PathLike[str]], out: Path, published: str | os.PathLike[str] | None) -> str:
    words = ["graphbam", "benchmark-report", *map(str, runs), "-o", str(out)]
    return shlex.join(words if published is None else [*words, "--published", str(published)])


def _name_figures(panels: Sequence[Panel]) -> list[str]:
    return [f"{FIGURES}/{panel.key}{suffix}" for panel in panels for suffix in (".png", ".svg")]


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
    """Mean, standard deviation and number of scores, one row per cell, method and score."""
    by = ["group", "cell", "method"]
    table = pd.concat([spread(rows, name, by).assign(metric=name).reset_index() for name in METRICS])
    return table.loc[table["n"] > 0, [*by, "metric", "mean", "sd", "n"]]


# ── Markdown ────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── HTML; all text is escaped ───────────────────────────────────────────────────────────────────────────────


class Card(NamedTuple):
    """One box of the page, and its line in the table of contents."""

    section: str
    key: str
    label: str
    body: str
    """HTML."""


def render_page(
    rows: pd.DataFrame, panels: Sequence[Panel], pictures: Mapping[str, Path], looks: Looks, command: str, sources: str,
    files: Sequence[str] = (),
) -> str:  # fmt: skip
    """The page as text.

    Parameters
    ----------
    rows : DataFrame
        From `read_rows`.
    panels : sequence of Panel
        The figures, in order.
    pictures : mapping
        SVG file of each panel, by key.
    looks : mapping
        From `assign_looks`.
    command : str
        What makes this page.
    sources : str
        Where numbers of others come from; empty if there are none.
    files : sequence of str
        Names of all that belongs to the page, itself included.
    """
    cards = list(_make_cards(rows, panels, pictures, looks, command, sources))
    parts = {
        "version": html.escape(graphbam.__version__),
        "title": html.escape(TITLE),
        "files": json.dumps({"files": list(files)}).replace("<", r"\u003c"),
        "facts": html.escape(state_facts(rows)),
        "points": "\n".join(f"<li>{html.escape(line)}</li>" for line in headlines(rows, looks)),
        "contents": _join(cards, "<b>{}</b>", '<a href="#at-{key}">{label}</a>'),
        "body": _join(cards, "<h2>{}</h2>", '<section class="card" id="at-{key}">{body}</section>'),
    }
    template = (resources.files("graphbam") / "benchmarks" / "report" / "page.html").read_text(encoding="utf-8")
    return fill_page(template, parts)


def _join(cards: Sequence[Card], heading: str, form: str) -> str:
    """All cards in one form, under headings for their sections."""
    lines = []
    for section, own in itertools.groupby(cards, lambda card: card.section):
        lines.append(heading.format(html.escape(section)))
        for card in own:
            lines.append(form.format(key=html.escape(card.key), label=html.escape(card.label), body=card.body))
    return "\n".join(lines)


def _make_cards(
    rows: pd.DataFrame, panels: Sequence[Panel], pictures: Mapping[str, Path], looks: Looks, command: str, sources: str
) -> Iterator[Card]:
    for sheet in [*summary_sheets(rows, looks), loss_sheet(rows, looks)]:
        yield _show_sheet("Summary", sheet)
    yield _show_sheet("The paper's statements", statement_sheet(rows))
    for panel in panels:
        yield _show_figure(SECTIONS[panel.section], panel, pictures[panel.key], looks)
    for sheet in (failure_sheet(rows, looks), version_sheet(rows, looks), run_sheet(rows)):
        yield _show_sheet("Fine print", sheet)
    yield _show_rules("Fine print", command, sources)


def _show_sheet(section: str, sheet: Sheet) -> Card:
    nothing = f'<p class="about">{html.escape(sheet.about)} There is nothing to list.</p>'
    body = f"<h3>{html.escape(sheet.title)}</h3>\n{to_html(sheet) if sheet.rows else nothing}"
    return Card(section, sheet.key, sheet.title, body)


def _show_figure(section: str, panel: Panel, svg: Path, looks: Looks) -> Card:
    """A figure, what it shows, and its numbers folded away below; its title stands in the picture."""
    title, image = html.escape(panel.title), base64.b64encode(svg.read_bytes()).decode()
    lines = [f'<h3 class="spoken">{title}</h3>']
    if panel.paper:
        lines.append(f'<p class="tag">paper: {html.escape(panel.paper)}</p>')
    lines.append(f'<figure><img alt="{title}" src="data:image/svg+xml;base64,{image}">')
    lines.append(f"<figcaption>{html.escape(panel.caption)}</figcaption></figure>")
    for sheet in panel_sheets(panel, looks):
        lines.append(f"<details><summary>Numbers: {html.escape(sheet.title)}</summary>\n{to_html(sheet)}</details>")
    return Card(section, panel.key, panel.label, "\n".join(lines))


def _show_rules(section: str, command: str, sources: str) -> Card:
    """How the numbers are made, where others' numbers come from, and the command of this page."""
    title = "How the numbers are made"
    lines = [f"<h3>{title}</h3>", f"<p>{html.escape(RULES)}</p>"]
    if sources:
        lines.append(f"<p>Hollow diamonds: {html.escape(sources)}</p>")
    lines.append(f'<pre class="command"><code>{html.escape(command)}</code></pre>')
    return Card(section, "rules", title, "\n".join(lines))
