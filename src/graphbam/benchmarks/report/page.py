"""One self-contained HTML page: embedded figures, tables that sort, nothing from outside; all text is escaped."""

from __future__ import annotations

import base64
import html
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import pandas as pd

import graphbam
from graphbam.benchmarks.report.charts import Looks
from graphbam.benchmarks.report.findings import (
    RULES,
    claim_sheet,
    failure_sheet,
    headlines,
    loss_sheet,
    panel_sheets,
    run_sheet,
    state_facts,
    summary_sheets,
    version_sheet,
)
from graphbam.benchmarks.report.panels import SECTIONS, Panel
from graphbam.benchmarks.report.sheets import Sheet, to_html

TITLE = "Benchmark of graph structure inference"

_MARK = re.compile(r"\{\{(\w+)\}\}")


class Card(NamedTuple):
    """One box of the page, and its line in the table of contents."""

    section: str
    key: str
    label: str
    body: str
    """HTML."""


def render_page(
    rows: pd.DataFrame, panels: Sequence[Panel], pictures: Mapping[str, Path], looks: Looks, command: str, sources: str
) -> str:
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
    """
    cards = list(_make_cards(rows, panels, pictures, looks, command, sources))
    parts = {
        "version": html.escape(graphbam.__version__),
        "title": html.escape(TITLE),
        "facts": html.escape(state_facts(rows)),
        "points": "\n".join(f"<li>{html.escape(line)}</li>" for line in headlines(rows, looks)),
        "contents": _join(cards, "<b>{}</b>", '<a href="#at-{key}">{label}</a>'),
        "body": _join(cards, "<h2>{}</h2>", '<section class="card" id="at-{key}">{body}</section>'),
    }
    template = (resources.files("graphbam") / "benchmarks" / "report" / "page.html").read_text(encoding="utf-8")
    return _MARK.sub(lambda match: parts[match[1]], template)  # one sweep: values are not looked into


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
    yield _show_sheet("The paper's statements", claim_sheet(rows))
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
