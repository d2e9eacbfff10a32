"""Result → one self-contained HTML page that needs no network: the graph, the evidence, the fine print.

The page is a template with its style, its scripts and a JSON model written into it. Names and sentences travel in
the model only and are put on the page as text, so that no name can become markup.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import graphbam
from graphbam.errors import spell_count
from graphbam.graphs.cut import EVEN, Cut
from graphbam.graphs.graph import MORAL, SKELETON, Graph
from graphbam.output.files import Link, list_links, take_page, write_text
from graphbam.output.layout import LIBRARIES, Array, read_template, read_vendored
from graphbam.result import OrientedGraph, Result, suspect_children

ROWS_SHOWN = 300
"""Points in a scatter plot."""

MOST_PAIRS = 20_000
"""Pairs in the page; of more, the likeliest."""

FDR_LEVELS = (0.01, 0.05, 0.1, 0.2)
"""False-discovery targets the page offers."""

SCRIPTS = ("model.js", "plots.js", "layout.js", "graph.js", "downloads.js", "panels.js", "main.js")
"""Parts of the script, in order."""

_MARK = re.compile(r"\{\{(\w+)\}\}")
_IN_MEMORY = re.compile(r"an? .+ with \d+ rows and \d+ columns|standard input|the open file")


def write_report(
    result: Result,
    path: str | os.PathLike[str],
    cut: Cut | float | None = None,
    *,
    threshold: float | None = None,
    fdr: float | None = None,
) -> Path:
    """Write the report of a result: one HTML file that works offline.

    Parameters
    ----------
    result : Result
        With its `sample` the page shows scatter plots; without, it does not.
    path : path
        The file to write, in .html.
    cut, threshold, fdr
        The graph that is shown first, as in `Result.graph`.

    Returns
    -------
    Path
        The file.
    """
    return write_text(take_page(path), render(result, Cut.read(cut, threshold=threshold, fdr=fdr)))


def render(result: Result, cut: Cut | None = None) -> str:
    """The report as text; parameters are those of `write_report`."""
    model = build_model(result, cut)
    parts = {
        "version": html.escape(graphbam.__version__),
        "title": html.escape(" ".join(_short_source(result).split())),
        "summary": html.escape(result.summary(cut)),
        "style": read_template("style.css"),
        "libraries": "\n".join(map(read_vendored, LIBRARIES)),
        "script": '"use strict";\n(() => {\n' + "\n".join(map(read_template, SCRIPTS)) + "})();\n",
        "model": embed(model),
    }
    return fill_page(read_template("page.html"), parts)


def fill_page(page: str, parts: Mapping[str, str]) -> str:
    r"""A page of HTML with its marks replaced, in one sweep: what is put in is not looked into.

    Examples
    --------
    >>> fill_page("<h1>{{title}}</h1>{{body}}", {"title": "{{body}}", "body": "half a character: \udc80"})
    '<h1>{{body}}</h1>half a character: &#56448;'
    """
    text = _MARK.sub(lambda match: parts[match[1]], page)
    return text.encode("utf-8", "xmlcharrefreplace").decode("utf-8")


def render_card(result: Result, n_links: int = 8) -> str:
    """A small piece of HTML for notebooks: the picture, the likeliest links, and what to keep in mind."""
    links, graph = list_links(result), result.graph()
    said = [*result.warnings, *(graph.notes if isinstance(graph, OrientedGraph) else ()), result.say_hidden()]
    mind = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in said if sentence)
    return (
        f"<div><p><b>{html.escape(_short_source(result))}</b> · {result.n_variables} variables · "
        f"{spell_count(len(links), 'link')} {Cut()}</p>"
        + (f"<ul>{mind}</ul>" if mind else "")
        + _draw_inline(result)
        + _spell_links(links, n_links)
        + "</div>"
    )


def render_graph_card(graph: Graph, n_links: int = 8) -> str:
    """The same for a graph: picture, links, notes.

    Examples
    --------
    >>> card = render_graph_card(Graph(["a", "<b>"], [[0, 1], [0, 0]]))
    >>> "a → &lt;b&gt;" in card
    True
    """
    notes = graph.notes if isinstance(graph, OrientedGraph) else ()
    links = list_links(graph)
    said = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    head = f"<p>{graph.n_variables} variables · {spell_count(len(links), 'link')}</p>"
    mind = f"<ul>{said}</ul>" if said else ""
    return f"<div>{head}{mind}{_draw_inline(graph)}{_spell_links(links, n_links)}</div>"


def _draw_inline(source: Result | Graph) -> str:
    """The picture as an element of HTML, or why there is none."""
    from graphbam.output import figures

    if not figures.can_draw():
        return "<p>No picture: matplotlib or mini-racer is not installed (pip install 'graphbam[plot]').</p>"
    png = base64.b64encode(figures.to_png(figures.draw(source), dpi=80)).decode("ascii")
    return f'<img alt="the graph" style="max-width:100%" src="data:image/png;base64,{png}">'


def _spell_links(links: list[Link], n_links: int) -> str:
    """The likeliest links as a table."""
    if not links:
        return "<p>No links.</p>"
    more = f"<p>… and {len(links) - n_links} more</p>" if len(links) > n_links else ""
    head = "<tr><th>link</th><th>probability</th><th>this way</th></tr>"
    return f"<table>{head}{''.join(map(_spell_row, links[:n_links]))}</table>{more}"


def _spell_row(link: Link) -> str:
    arrow = f"{link.a} {'→' if link.is_directed else '—'} {link.b}"
    way = "–" if "forward" not in link.numbers else f"{link.numbers['forward']:.2f}" if link.is_directed else "open"
    way += " (forced)" if link.is_forced else ""
    p = f"{link.numbers['skeleton']:.2f}" if "skeleton" in link.numbers else "–"
    cells = html.escape(" ".join(arrow.split())), p, way
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def build_model(result: Result, cut: Cut | None = None) -> dict[str, Any]:
    """Everything the page knows, as plain numbers, lists and text.

    Pairs are columns of equal length, likeliest direct link first; `via` is the place of the suspected common child or
    −1, `forward` the probability of i → j in the CPDAG given a link, `way` that of i → j if a direction must be named,
    `upstream` that of a path from i to j. `graphs` are the graphs with directions that the page offers, `dags` the same
    with a direction for every link.

    Examples
    --------
    >>> p = np.zeros((3, 3, 3))
    >>> p[:] = [0.9, 0.1, 0.0]
    >>> p[0, 1] = p[1, 0] = [0.1, 0.9, 0.0]
    >>> model = build_model(Result(("a", "b", "c"), p))
    >>> model["pairs"]["i"], model["pairs"]["j"], model["pairs"]["skeleton"]
    ([0, 0, 1], [1, 2, 2], [0.9, 0.1, 0.1])
    """
    i, j = np.triu_indices(result.n_variables, 1)
    p_n = result.probabilities[i, j, SKELETON]
    cut = cut or Cut()
    order = np.lexsort((-result.probabilities[i, j, MORAL], -p_n))
    kept, left_out = order[:MOST_PAIRS], order[MOST_PAIRS:]
    precision_dd, sample = _model_sample(result)
    return {
        "names": list(result.names),
        "pairs": _model_pairs(result, i[kept], j[kept], precision_dd),
        "graphs": _model_graphs(result, i[kept], j[kept], cut, result.cpdag),
        "dags": _model_graphs(result, i[kept], j[kept], cut, result.dag),
        "n_pairs": len(p_n),
        "n_expected": round(float(p_n.sum()), 4),
        "n_rows": result.provenance.get("n_rows_used"),
        "n_rows_read": result.provenance.get("n_rows"),
        "floor": float(p_n[left_out].max()) + 1e-4 if len(left_out) else 0.0,
        "threshold": _place_slider(p_n, cut),
        "histogram": np.histogram(p_n, bins=20, range=(0, 1))[0].tolist(),
        "levels": [_model_level(p_n, level) for level in FDR_LEVELS],
        "changes": list(result.changes),
        "warnings": [*result.warnings, *filter(None, [result.say_hidden()])],
        "domain": _model_domain(result.domain),
        "provenance": _list_provenance(result),
        "calls": _spell_calls(result),
        **sample,
    }


# ── parts of the model ────────────────────────────────────────────────────────────────────────────────────


def _model_pairs(
    result: Result, i: NDArray[np.int64], j: NDArray[np.int64], precision_dd: Array | None
) -> dict[str, Any]:
    """Columns of pairs by name; None for what the result does not say."""
    p_n3 = result.probabilities[i, j]

    def column(p_dd: Array | None, back: bool = False) -> list[float] | None:
        return None if p_dd is None else _round(p_dd[j, i] if back else p_dd[i, j], 3).tolist()

    compelled_dd = result.compelled_probabilities if result.has_directions else None
    return {
        "i": i.tolist(),
        "j": j.tolist(),
        "skeleton": _floor(p_n3[:, SKELETON]).tolist(),
        "moral": _floor(p_n3[:, MORAL]).tolist(),
        "via": suspect_children(result)[i, j].tolist(),
        "fixed": _find_fixed(result, i, j),
        "forward": column(compelled_dd),
        "backward": column(compelled_dd, back=True),
        "way": column(None if result.directions is None else result.arrow_probabilities),
        "hidden": None if result.hidden_causes is None else _floor(result.hidden_causes[i, j]).tolist(),
        "upstream": column(result.ancestors),
        "downstream": column(result.ancestors, back=True),
        "stability": column(result.stability),
        "partial": None if precision_dd is None else _round(_partial(precision_dd, i, j), 4).tolist(),
    }


def _partial(precision_dd: Array, i: NDArray[np.int64], j: NDArray[np.int64]) -> Array:
    """Partial correlations of pairs, from an inverse covariance."""
    scale_d = np.sqrt(precision_dd.diagonal())
    partial_n: Array = -precision_dd[i, j] / (scale_d[i] * scale_d[j])
    return partial_n


def _model_graphs(
    result: Result, i: NDArray[np.int64], j: NDArray[np.int64], cut: Cut, choose: Callable[[Cut], OrientedGraph]
) -> list[dict[str, Any]]:
    """The graph that was asked for, the usual one, and those of all false-discovery targets."""
    if not result.has_directions:
        return []
    cuts = dict.fromkeys([cut, Cut(), *(Cut(fdr=level) for level in FDR_LEVELS)])
    return [_model_graph(choose(one), i, j, one) for one in cuts]


def _model_graph(graph: OrientedGraph, i: NDArray[np.int64], j: NDArray[np.int64], cut: Cut) -> dict[str, Any]:
    """Places of the links among the pairs, marks (1 for i → j, −1 for j → i, 0 for no direction), forced, guessed."""
    out, back = graph.adjacency[i, j], graph.adjacency[j, i]
    (linked,) = np.nonzero(out | back)
    return {
        "threshold": cut.threshold,
        "fdr": cut.fdr,
        "pairs": linked.tolist(),
        "marks": (out - back)[linked].tolist(),
        "forced": np.flatnonzero((graph.forced | graph.forced.T)[i, j]).tolist(),
        "guessed": np.flatnonzero((graph.guessed | graph.guessed.T)[i, j]).tolist(),
        "notes": list(graph.notes),
    }


def _place_slider(p_n: Array, cut: Cut) -> float:
    """Threshold of the first view of links: the one given, or where the last link of a false-discovery target is."""
    if cut.fdr is None:
        return _round_down(EVEN if cut.threshold is None else cut.threshold)
    chosen = cut.choose(p_n)
    return _round_down(p_n[chosen].min()) if chosen.any() else 1.0


def _find_fixed(result: Result, i: NDArray[np.int64], j: NDArray[np.int64]) -> dict[str, str]:
    """Places of the pairs that prior knowledge decided."""
    if not result.knowledge:
        return {}
    fixed = {edge.pair: "required" for edge in result.knowledge.required}
    fixed |= {frozenset(pair): "forbidden" for pair in result.knowledge.forbidden_pairs()}
    pairs = (frozenset((result.names[a], result.names[b])) for a, b in zip(i, j, strict=True))
    return {str(k): fixed[pair] for k, pair in enumerate(pairs) if pair in fixed}


def _model_level(p_n: Array, fdr: float) -> dict[str, float]:
    chosen = p_n[Cut(fdr=fdr).choose(p_n)]
    return {"fdr": fdr, "threshold": _round_down(chosen.min()) if len(chosen) else 1.0, "links": len(chosen)}


def _model_sample(result: Result) -> tuple[Array | None, dict[str, Any]]:
    """Points for the scatter plots, and what is needed to remove the influence of all other variables.

    With P the inverse of the covariance plus a small ridge, the residuals of a pair A after regression on all
    others are inv(P[A, A]) u[A], where u = P x. So the page needs x, u, the diagonal of P and the partial
    correlation of each pair, and no regression at all.
    """
    if result.sample is None or not len(result.sample):
        return None, {"sample": None, "turned": None, "precision": None}
    x_md = result.sample - result.sample.mean(axis=0)
    n_rows, n_variables = x_md.shape
    ridge = 0.001 + 0.1 * n_variables / n_rows
    precision_dd: Array = np.linalg.inv(x_md.T @ x_md / n_rows + ridge * np.eye(n_variables))
    u_rd = x_md[:ROWS_SHOWN] @ precision_dd
    precision_d = [float(f"{value:.6g}") for value in precision_dd.diagonal()]
    packed = {"sample": _pack(result.sample[:ROWS_SHOWN]), "turned": _pack(u_rd), "precision": precision_d}
    return precision_dd, packed


def _pack(x_rd: Array) -> dict[str, Any]:
    """Columns as 16-bit integers in base64, one step size a column."""
    step_d = np.maximum(np.abs(x_rd).max(axis=0), 1e-12) / 32767
    values = np.ascontiguousarray(np.rint(x_rd / step_d).T.astype("<i2"))
    steps = [float(f"{step:.6g}") for step in step_d]
    return {"steps": steps, "data": base64.b64encode(values.tobytes()).decode("ascii")}


def _model_domain(domain: Mapping[str, Any]) -> dict[str, Any]:
    from graphbam.tables.domain import FEATURES, judge_domain

    ranges, features = domain.get("ranges") or {}, domain.get("features") or {}
    gauges = [
        {
            "label": FEATURES.get(name, name),
            "value": float(features[name]),
            "low": float(low),
            "high": float(high),
            "outside": bool(judge_domain(features, {name: (low, high)})),
        }
        for name, (low, high) in ranges.items()
        if name in features
    ]
    return {"verdict": domain.get("verdict"), "features": gauges}


def _list_provenance(result: Result) -> list[tuple[str, str]]:
    """Labels and values for the card on where the answer comes from."""
    known = result.provenance
    rows = [("Table", result.source), ("graphbam", known.get("graphbam")), ("Weights", known.get("weights"))]
    rows += [("Checksum", known.get("checksum")), ("Directions", known.get("directions"))]
    rows += [("Colliders", known.get("colliders"))]
    rows += [("Their checksum", known.get("colliders_checksum")), ("Seed", known.get("seed"))]
    if known.get("n_rows") is not None:
        rows.append(("Rows", f"{known.get('n_rows_used')} used of {known['n_rows']}"))
    if known.get("n_resamples"):
        rows.append(("Resamples", known["n_resamples"]))
    return [(label, str(value)) for label, value in rows if value not in (None, "")]


def _spell_calls(result: Result) -> list[str]:
    """The command and the Python call that give this answer again; empty if the settings are not known."""
    settings = result.provenance.get("changed")
    if settings is None:
        return []
    knowledge = result.knowledge.to_dict() if result.knowledge else {}
    python = {**settings, **({"knowledge": knowledge} if knowledge else {})}
    is_file = bool(result.source) and not _IN_MEMORY.fullmatch(result.source)
    table = repr(result.source) if is_file else "table"
    arguments = [table, *(f"{name}={value!r}" for name, value in python.items())]
    calls = [f"import graphbam as gb\nresult = gb.infer({', '.join(arguments)})"]
    if is_file and not isinstance(settings.get("encode"), (dict, list)):
        calls.insert(0, _spell_command(result.source, settings, bool(knowledge)))
    return calls


def _spell_command(source: str, settings: Mapping[str, Any], has_knowledge: bool) -> str:
    words = ["graphbam", "infer", source]
    for name, value in settings.items():
        option = "--" + name.replace("_", "-")
        if (name, value) in (("colliders", None), ("directions", "none")):
            option, value = "--no-cpdag", True
        for one in value if isinstance(value, list) else (value,):
            words += [option] if one is True else [option, str(one)]
    words += ["--knowledge", "knowledge.json"] if has_knowledge else []
    return shlex.join([*words, "-o", "out"])


# ── text ──────────────────────────────────────────────────────────────────────────────────────────────────


def _short_source(result: Result) -> str:
    if not result.source:
        return "A table"
    is_file = not _IN_MEMORY.fullmatch(result.source)
    return Path(result.source).name if is_file else result.source[0].upper() + result.source[1:]


def embed(model: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> str:
    """JSON that is safe inside a script element: plain ASCII, and nothing in it can end the element."""
    text = json.dumps(model, ensure_ascii=True, separators=(",", ":"), allow_nan=False, default=default)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _round(values: Array, digits: int) -> Array:
    return np.asarray(np.round(values, digits) + 0.0)  # no negative zeros


def _floor(p: Array) -> Array:
    """Probabilities that are compared with a limit: none gets over it by rounding."""
    return np.asarray(np.floor(np.round(p * 1e4, 6)) / 1e4)


def _round_down(p: float) -> float:
    """Four digits as in the model, never above the probability it was taken from."""
    return float(_floor(np.asarray(p)))
