"""Results of the benchmark → the paper's figures, one self-contained HTML page, and Markdown tables.

=================  =======================================================================================
report.html        everything, in one file that needs no network
summary.md         ranks, wins and means by group of cells, and where we lose
tables.md          the numbers of every figure
cells.csv          mean, standard deviation and number of trials of each cell, method and score
figures/           every figure as PNG and SVG
=================  =======================================================================================
"""

from __future__ import annotations

import base64
import html
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path

import pandas as pd

import graphbam
from graphbam.benchmarks.report.charts import Looks, save_figure
from graphbam.benchmarks.report.findings import (
    RULES,
    claim_sheet,
    failure_sheet,
    headlines,
    loss_sheet,
    panel_sheets,
    run_sheet,
    summary_sheets,
    version_sheet,
)
from graphbam.benchmarks.report.panels import SECTIONS, Panel, plan_panels
from graphbam.benchmarks.report.rows import METRICS, choose_ours, read_rows
from graphbam.benchmarks.report.schools import assign_looks
from graphbam.benchmarks.report.sheets import Sheet, escape_markdown, to_html, to_markdown
from graphbam.benchmarks.report.summary import spread
from graphbam.errors import ConfigError, TableError

__all__ = ["write_report"]

PUBLISHED_COLUMNS = ("mechanism", "n_variables", "n_samples", "method", "metric", "value", "source")
"""Columns of a file with numbers of others."""

TITLE = "Benchmark of graph structure inference"
_MARK = re.compile(r"\{\{(\w+)\}\}")


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
    looks = assign_looks(rows["method"].unique())
    theirs = _read_published(Path(published)) if published is not None else None
    out = Path(out)
    folder = _make_folder(out / "figures")
    panels = plan_panels(rows, looks, theirs)
    pictures = {panel.key: save_figure(panel.draw(), folder, panel.key) for panel in panels}
    command = shlex.join(["graphbam", "benchmark-report", *map(str, runs), "-o", str(out)])
    texts = {
        "report.html": _render_page(rows, panels, pictures, looks, command, theirs),
        "summary.md": _render_summary(rows, looks, command),
        "tables.md": _render_tables(panels, looks, command),
        "cells.csv": tabulate_cells(rows).to_csv(index=False, float_format="%.6g"),
    }
    for name, text in texts.items():
        (out / name).write_bytes(text.encode("utf-8", "xmlcharrefreplace"))
    what = (
        "open it in a browser",
        "for a README: ranks, wins, means, losses",
        "numbers of every figure",
        "for your own plots",
    )
    files = {out / name: told for name, told in zip(texts, what, strict=True)}
    return files | {folder: f"{len(panels)} figures, each as PNG and SVG"}


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
    """Mean, standard deviation and number of each cell, method and score, one row each."""
    by = ["group", "cell", "method"]
    parts = [spread(rows, name, by).assign(metric=name).reset_index() for name in METRICS]
    table = pd.concat(parts)
    return table[table["n"] > 0][[*by, "metric", "mean", "sd", "n"]]


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────────────


def _render_summary(rows: pd.DataFrame, looks: Looks, command: str) -> str:
    sheets = [*summary_sheets(rows, looks), loss_sheet(rows, looks), failure_sheet(rows, looks)]
    points = "\n".join(f"- {escape_markdown(line)}" for line in headlines(rows, looks))
    head = f"# {TITLE}\n\n{_state_facts(rows)}\n\n{points}\n\n{escape_markdown(RULES)}\n\n    {command}\n\n"
    return head + "\n".join(to_markdown(sheet, level=2) for sheet in sheets)


def _render_tables(panels: Iterable[Panel], looks: Looks, command: str) -> str:
    parts = [f"# {TITLE}: the numbers of every figure\n\n    {command}\n"]
    for panel in panels:
        parts += [to_markdown(sheet, level=2) for sheet in panel_sheets(panel, looks)]
    return "\n".join(parts)


# ── HTML ──────────────────────────────────────────────────────────────────────────────────────────────────


def _render_page(
    rows: pd.DataFrame,
    panels: list[Panel],
    pictures: dict[str, tuple[Path, Path]],
    looks: Looks,
    command: str,
    published: pd.DataFrame | None,
) -> str:
    summaries = summary_sheets(rows, looks)
    losses, claims = loss_sheet(rows, looks), claim_sheet(rows)
    last = [failure_sheet(rows, looks), version_sheet(rows, looks), run_sheet(rows)]
    sections = {"Summary": [*map(_card, summaries), _card(losses)], "The paper's statements": [_card(claims)]}
    links: dict[str, Sequence[Sheet | Panel]] = {"Summary": [*summaries, losses], "The paper's statements": [claims]}
    for section, name in SECTIONS.items():
        own = [panel for panel in panels if panel.section == section]
        sections[name] = [_figure_card(panel, pictures[panel.key][1], looks) for panel in own]
        links[name] = own
    sections["Fine print"], links["Fine print"] = [*map(_card, last), _explain(command, published)], last
    parts = {
        "version": html.escape(graphbam.__version__),
        "title": html.escape(TITLE),
        "facts": html.escape(_state_facts(rows)),
        "points": "\n".join(f"<li>{html.escape(line)}</li>" for line in headlines(rows, looks)),
        "contents": _list_contents(links),
        "body": "\n".join(
            f"<h2>{html.escape(name)}</h2>\n" + "\n".join(cards) for name, cards in sections.items() if cards
        ),
    }
    template = (resources.files("graphbam") / "data" / "benchmark.html").read_text(encoding="utf-8")
    return _MARK.sub(lambda match: parts[match[1]], template)  # one sweep: values are not looked into


def _state_facts(rows: pd.DataFrame) -> str:
    us = choose_ours(rows["method"].unique().tolist())
    failed = int((~rows["is_ok"]).sum())
    facts = [
        f"{rows['method'].nunique()} methods", f"{rows['cell'].nunique()} cells", f"{rows['table'].nunique()} tables",
        f"{len(rows)} fits, {failed} without an answer", f"compared with {us}" if us else "graphbam is not among them",
    ]  # fmt: skip
    return " · ".join(facts)


def _list_contents(links: Mapping[str, Sequence[Sheet | Panel]]) -> str:
    lines = []
    for name, targets in links.items():
        if targets:
            lines.append(f"<b>{html.escape(name)}</b>")
            lines += [f'<a href="#at-{html.escape(t.key)}">{html.escape(_label(t))}</a>' for t in targets]
    return "\n".join(lines)


def _label(target: Sheet | Panel) -> str:
    return target.label if isinstance(target, Panel) else target.title


def _card(sheet: Sheet) -> str:
    nothing = f'<p class="about">{html.escape(sheet.about)} There is nothing to list.</p>'
    head = f'<section class="card" id="at-{html.escape(sheet.key)}"><h3>{html.escape(sheet.title)}</h3>'
    return f"{head}\n{to_html(sheet) if sheet.rows else nothing}</section>"


def _figure_card(panel: Panel, svg: Path, looks: Looks) -> str:
    """A figure, what it shows, and its numbers folded away below."""
    tag = f' <span class="tag">paper: {html.escape(panel.paper)}</span>' if panel.paper else ""
    image = base64.b64encode(svg.read_bytes()).decode()
    numbers = "".join(_fold(sheet) for sheet in panel_sheets(panel, looks))
    return (
        f'<section class="card" id="at-{panel.key}"><h3>{html.escape(panel.title)}{tag}</h3>\n<figure>'
        f'<img alt="{html.escape(panel.title)}" src="data:image/svg+xml;base64,{image}">'
        f"<figcaption>{html.escape(panel.caption)}</figcaption></figure>\n{numbers}</section>"
    )


def _fold(sheet: Sheet) -> str:
    return f"<details><summary>Numbers: {html.escape(sheet.title)}</summary>\n{to_html(sheet)}</details>\n"


def _explain(command: str, published: pd.DataFrame | None) -> str:
    """How the numbers are made, and the command of this page."""
    sources = [] if published is None else sorted({str(source) for source in published["source"]})
    theirs = f"<p>Hollow diamonds: {html.escape('; '.join(sources))}</p>\n" if sources else ""
    return (
        f'<section class="card" id="at-rules"><h3>How the numbers are made</h3>\n<p>{html.escape(RULES)}</p>\n{theirs}'
        f'<pre class="command"><code>{html.escape(command)}</code></pre></section>'
    )
