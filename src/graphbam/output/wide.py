"""SparseResult → a folder of files, and one page to search its links, one neighbourhood at a time."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from graphbam.graphs.cut import Cut
from graphbam.machine.disk import filling, sign
from graphbam.output.files import NOTES, WIDE_OUTPUTS, check_folder, take_page, to_csv, to_dot, to_graphml, write_text
from graphbam.output.layout import read_template
from graphbam.output.report import embed, fill_page
from graphbam.sparse import ARRAYS, SparseResult

SHOWN_FROM = 0.05
"""Pairs from this probability of a link on, or chosen by the cut, are on the page."""


def save_sparse(result: SparseResult, folder: str | os.PathLike[str], cut: Cut) -> list[Path]:
    """Write everything about a sparse result into a folder, or, if anything goes wrong, nothing.

    Files of an earlier result there are replaced, all others stay.

    Returns
    -------
    list of Path
        edges.csv with all listed pairs; arrows.csv and dag.csv where directions are known; graph.graphml, graph.dot,
        report.html; result.json and pairs.npz, which `SparseResult.load` reads.
    """
    folder = check_folder(folder, WIDE_OUTPUTS)
    texts: dict[str, Callable[[], str]] = {"edges.csv": lambda: to_csv(result)}
    if result.has_directions:
        texts |= {"arrows.csv": lambda: to_csv(result.cpdag(cut)), "dag.csv": lambda: to_csv(result.dag(cut))}
    texts["graph.graphml"] = lambda: to_graphml(result, cut)
    texts["graph.dot"] = lambda: to_dot(result, cut)
    texts["report.html"] = lambda: render_page(result, cut)
    names = [*texts, "result.json", "pairs.npz"]
    values = sign(result.to_dict(), names)
    texts["result.json"] = lambda: json.dumps(values, ensure_ascii=False, default=_plain)
    arrays = {name: getattr(result, name) for name in ARRAYS if getattr(result, name) is not None}
    with filling(folder, *NOTES) as draft:
        for name, make in texts.items():
            (draft / name).write_text(make(), encoding="utf-8", newline="")
        np.savez(draft / "pairs.npz", **arrays)
    return [folder / name for name in names]


def _plain(value: object) -> object:
    """Numbers and arrays of numpy as JSON knows them."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)


def write_page(result: SparseResult, path: str | os.PathLike[str], cut: Cut) -> Path:
    """Write the page: one HTML file that works offline."""
    return write_text(take_page(path), render_page(result, cut))


def render_page(result: SparseResult, cut: Cut) -> str:
    """The page as text. Names travel in a JSON model only, and are put on the page as text."""
    title = html.escape(" ".join((result.source or "table").split()))
    parts = {"title": title, "model": embed(build_page(result, cut), default=_plain)}
    return fill_page(read_template("wide.html"), parts)


def build_page(result: SparseResult, cut: Cut) -> dict[str, object]:
    """What the page knows: names, and links as columns; `way` is 1 for i → j, −1 for j → i, 0 for an open link.

    Examples
    --------
    >>> p = np.array([[0.1, 0.9, 0.0], [0.9, 0.04, 0.06]])
    >>> result = SparseResult(("a", "b", "c"), np.array([[0, 1], [1, 2]]), p, {"skeleton": 0.001})
    >>> build_page(result, Cut())["links"]
    {'i': [0], 'j': [1], 'p': [0.9], 'way': [0], 'chosen': [1]}
    """
    graph = result.graph(cut)
    ways = dict.fromkeys(zip(graph.tails.tolist(), graph.heads.tolist(), strict=True), 0)
    ways |= {pair: int(is_arrow) for pair, is_arrow in zip(ways, graph.is_directed.tolist(), strict=True)}
    ways |= {(b, a): -way for (a, b), way in ways.items()}
    p = result.probabilities[:, 1]
    rows = [
        (i, j, round(value, 3), ways.get((i, j), 0), int((i, j) in ways))
        for (i, j), value in zip(result.pairs.tolist(), p.tolist(), strict=True)
        if value >= SHOWN_FROM or (i, j) in ways
    ]
    rows.sort(key=lambda row: -row[2])
    columns = list(map(list, zip(*rows, strict=True))) or [[]] * 5
    return {
        "names": list(result.names),
        "cut": str(cut),
        "links": dict(zip(("i", "j", "p", "way", "chosen"), columns, strict=True)),
        "changes": list(result.changes),
        "warnings": [*result.warnings, *graph.notes],
        "rows": result.spell_rows(),
    }
