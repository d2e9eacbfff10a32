"""Graph or Result → csv, json, graphml, dot, Mermaid, Tetrad, BIF, and the graph objects of other packages.

Every name survives every format that can carry it: quotes, line breaks and letters of any script are escaped as the
format asks. Tetrad knows words only, of letters and digits of any script, BIF those of ASCII only; all else becomes
``_`` there, and no two names the same.
Files appear all at once or not at all.
"""

from __future__ import annotations

import csv
import importlib
import io
import itertools
import json
import os
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from graphbam.errors import ConfigError, GraphError, Setting
from graphbam.graphs.cut import EVEN, Cut
from graphbam.graphs.graph import Graph
from graphbam.machine.disk import Note, clear_errors, filling, make_folder, refuse_others, replacing, sign, take_path
from graphbam.result import CLASSES, OrientedGraph, Result
from graphbam.sparse import SparseGraph, SparseResult

_INSTALL = {
    "causallearn": "pip install causal-learn",
    "pgmpy": "pip install pgmpy",
}


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg")

Source: TypeAlias = Graph | Result | SparseGraph | SparseResult
"""What is written to files."""


class Link(NamedTuple):
    """One edge with what is known of it."""

    a: str
    b: str
    is_directed: bool
    numbers: dict[str, float]
    forced: bool | None = None
    """Whether it is an arrow of `OrientedGraph.forced`; None where nothing is known of directions."""
    guessed: bool | None = None
    """Whether it is an arrow of `OrientedGraph.guessed`; None but in a DAG."""

    @property
    def mark(self) -> str:
        """``->`` or ``--``."""
        return "->" if self.is_directed else "--"

    @property
    def is_forced(self) -> bool:
        """Whether its direction is there only because the graph as a whole needs it: by itself, another is likelier."""
        return bool(self.forced)

    @property
    def leans(self) -> bool:
        """Whether its direction is left open although one of the two is likelier than the other and than none."""
        there, back = self.numbers.get("forward", 0.0), self.numbers.get("backward", 0.0)
        return not self.is_directed and there != back and max(there, back) > 1 - there - back

    def values(self) -> dict[str, float | bool]:
        """All that is known of it, by name."""
        marks = {"forced": self.forced, "guessed": self.guessed}
        return self.numbers | {name: mark for name, mark in marks.items() if mark is not None}

    def turned(self) -> Link:
        """The same, read from b to a."""
        other = {"forward": "backward", "backward": "forward"}
        return self._replace(a=self.b, b=self.a, numbers={other.get(k, k): p for k, p in self.numbers.items()})


def list_links(source: Source, cut: Cut | None = None) -> list[Link]:
    """List the edges of a graph, or of the `graph` of a result, with their probabilities, likeliest first.

    Examples
    --------
    >>> [(link.a, link.mark, link.b) for link in list_links(Graph(["x", "y"], [[0, 1], [0, 0]]))]
    [('x', '->', 'y')]
    """
    if isinstance(source, (SparseGraph, SparseResult)):
        return source.links(cut)
    graph = source if isinstance(source, Graph) else source.graph(cut)
    place = {name: k for k, name in enumerate(graph.names)}
    edges = [(a, b, True) for a, b in graph.directed_edges()] + [(a, b, False) for a, b in graph.undirected_edges()]
    links = [_describe_link(source, graph, place[a], place[b], is_directed) for a, b, is_directed in edges]
    return sorted(links, key=lambda link: -link.numbers.get("skeleton", 1.0))


def _describe_link(source: Graph | Result, graph: Graph, i: int, j: int, is_directed: bool) -> Link:
    """What is known of one edge."""
    numbers: dict[str, float] = {}
    forced = guessed = None
    if isinstance(source, Result):
        numbers |= zip(CLASSES, source.probabilities[i, j].tolist(), strict=True)
        numbers |= {} if source.stability is None else {"stability": float(source.stability[i, j])}
    if isinstance(graph, OrientedGraph):
        numbers["skeleton"] = float(graph.edge_probability_dd[i, j])
        numbers["forward"] = float(graph.arrow_probability_dd[i, j])
        numbers["backward"] = float(graph.arrow_probability_dd[j, i])
        forced = bool(graph.forced[i, j])
        guessed = None if graph.decided_dd is None else bool(graph.guessed[i, j])
    return Link(graph.names[i], graph.names[j], is_directed, numbers, forced, guessed)


# ── formats ───────────────────────────────────────────────────────────────────────────────────────────────


def to_csv(source: Source, cut: Cut | None = None) -> str:
    """Edge list. A result gives every pair with its probabilities, a graph its edges with what is known of them.

    Examples
    --------
    >>> print(to_csv(Graph(["x", 'y "2"'], [[0, 1], [0, 0]])), end="")
    a,edge,b
    x,->,"y ""2""\"
    """
    if isinstance(source, (Result, OrientedGraph, SparseResult, SparseGraph)):
        return columns_to_csv(source.columns())
    return _rows_to_csv([("a", "edge", "b"), *((link.a, link.mark, link.b) for link in list_links(source))])


def columns_to_csv(columns: Mapping[str, Any]) -> str:
    """Columns of equal length as text; six digits, and nothing where a number is missing.

    Examples
    --------
    >>> print(columns_to_csv({"a": np.array(["x"]), "p": np.array([1 / 3]), "forced": np.array([True])}), end="")
    a,p,forced
    x,0.333333,True
    """
    return _rows_to_csv([tuple(columns), *zip(*map(_spell_cells, columns.values()), strict=True)])


def _spell_cells(column: Any) -> list[Any]:
    cells = np.asarray(column)
    if cells.dtype.kind != "f":
        return cells.tolist()
    return ["" if cell != cell else f"{cell:.6g}" for cell in cells.tolist()]


def to_adjacency_csv(source: Graph | Result, cut: Cut | None = None) -> str:
    """Adjacency matrix with names on both sides; 1 in row i, column j for i → j, on both sides for i — j.

    Examples
    --------
    >>> print(to_adjacency_csv(Graph(["x", "y"], [[0, 1], [0, 0]])), end="")
    ,x,y
    x,0,1
    y,0,0
    """
    graph = source if isinstance(source, Graph) else source.graph(cut)
    rows = ((name, *row) for name, row in zip(graph.names, graph.adjacency.tolist(), strict=True))
    return _rows_to_csv([("", *graph.names), *rows])


def _rows_to_csv(rows: list[tuple[Any, ...]]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def to_json(source: Graph | Result, cut: Cut | None = None, files: Sequence[str] = ()) -> str:
    """Names and edges; for a result also everything that `Result.from_dict` needs to rebuild it, and its `files`."""
    edges = [{"a": k.a, "edge": k.mark, "b": k.b, **k.values()} for k in list_links(source, cut)]
    if isinstance(source, Graph):
        values = {"format": "graphbam-graph", "version": 1, "names": list(source.names), "edges": edges}
        return json.dumps(values | _list_notes(source), ensure_ascii=False, indent=1)
    values = sign(source.to_dict(), files) | _list_notes(source.graph(cut))
    return json.dumps({**values, "cut": (cut or Cut()).to_dict(), "edges": edges}, ensure_ascii=False)


def _list_notes(graph: Graph) -> dict[str, list[str]]:
    """Which links differ from those of the cut, and why; nothing where none does."""
    notes = graph.notes if isinstance(graph, OrientedGraph) else ()
    return {"notes": list(notes)} if notes else {}


def to_graphml(source: Source, cut: Cut | None = None) -> str:
    """GraphML, read by networkx, igraph, Gephi, yEd and Cytoscape.

    Nodes carry their name as id. If any edge is directed, all are written so, an undirected one as two, and the
    attribute ``kind`` tells them apart. ``forward`` is the probability of the arrow from source to target, ``forced``
    marks arrows whose reverse, or no direction, is likelier, ``guessed`` those of a DAG that are a guess.
    """
    links = list_links(source, cut)
    is_directed = any(link.is_directed for link in links)
    known = links[0].values() if links else {}
    keys = [("kind", "string"), *((k, "boolean" if isinstance(v, bool) else "double") for k, v in known.items())]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    lines.append('<key id="name" for="node" attr.name="name" attr.type="string"/>')
    lines += [f'<key id="{k}" for="edge" attr.name="{k}" attr.type="{kind}"/>' for k, kind in keys]
    lines.append(f'<graph edgedefault="{"directed" if is_directed else "undirected"}">')
    lines += [
        f'<node id={quoteattr(n)}><data key="name">{_xml(n)}</data></node>' for n in map(_check_xml, source.names)
    ]
    for link in links:
        lines += [_graphml_edge(link)]
        lines += [_graphml_edge(link.turned())] if is_directed and not link.is_directed else []
    return "\n".join([*lines, "</graph>", "</graphml>", ""])


def _graphml_edge(link: Link) -> str:
    data = {"kind": "directed" if link.is_directed else "undirected", **link.values()}
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in data.items()}
    inside = "".join(f'<data key="{key}">{text}</data>' for key, text in texts.items())
    return f"<edge source={quoteattr(link.a)} target={quoteattr(link.b)}>{inside}</edge>"


def _xml(text: str) -> str:
    return escape(text, {"\r": "&#13;"})


def _check_xml(name: str) -> str:
    if _NOT_XML.search(name):
        raise GraphError(f"the name {name!r} holds a control character, which GraphML cannot carry. Rename it.")
    return name


def to_dot(source: Source, cut: Cut | None = None) -> str:
    r"""Graphviz DOT: nodes n0, n1 … with their names as labels; wider lines for likelier edges; arrows with theirs,
    with hollow heads where they are forced and open ones where they are guessed.

    Examples
    --------
    >>> print(to_dot(Graph(["x", 'say "y"'], [[0, 1], [1, 0]])), end="")
    graph {
      node [shape=box, style=rounded];
      n0 [label="x"];
      n1 [label="say \"y\""];
      n0 -- n1;
    }
    """
    links = list_links(source, cut)
    is_directed = any(link.is_directed for link in links)
    place = {name: k for k, name in enumerate(source.names)}
    lines = ["digraph {" if is_directed else "graph {", "  node [shape=box, style=rounded];"]
    lines += [f'  n{k} [label="{_dot(name)}"];' for name, k in place.items()]
    for link in links:
        style = {"dir": "none"} if is_directed and not link.is_directed else {}
        style |= _dot_style(link)
        inside = f" [{', '.join(f'{key}={value}' for key, value in style.items())}]" if style else ""
        lines.append(f"  n{place[link.a]} {'->' if is_directed else '--'} n{place[link.b]}{inside};")
    return "\n".join([*lines, "}", ""])


def _dot_style(link: Link) -> dict[str, str]:
    p, forward = link.numbers.get("skeleton"), link.numbers.get("forward")
    style = {} if p is None else {"penwidth": f"{0.5 + 2.5 * p:.2f}", "tooltip": f'"{p:.3f}"'}
    style |= {"label": f'"{forward:.2f}"'} if link.is_directed and forward is not None else {}
    return style | ({"arrowhead": "vee"} if link.guessed else {"arrowhead": "onormal"} if link.is_forced else {})


def _dot(name: str) -> str:
    for plain, coded in (("\\", "\\\\"), ('"', '\\"'), ("\r\n", "\\n"), ("\n", "\\n"), ("\r", "\\r")):
        name = name.replace(plain, coded)
    return name


def to_mermaid(source: Graph | Result, cut: Cut | None = None) -> str:
    """Mermaid flowchart, which GitHub, GitLab and many notebooks draw; arrows that are forced or guessed are dotted.

    Of a result, pairs that rather have a hidden common cause than none get dotted arrows with two heads.

    Examples
    --------
    >>> print(to_mermaid(Graph(["x", 'say "y"'], [[0, 1], [0, 0]])), end="")
    flowchart TD
      n0["x"]
      n1["say #quot;y#quot;"]
      n0 --> n1
    """
    place = {name: f"n{k}" for k, name in enumerate(source.names)}
    lines = ["flowchart TD", *(f'  {node}["{_mermaid(name)}"]' for name, node in place.items())]
    for link in list_links(source, cut):
        arrow = "---" if not link.is_directed else "-.->" if link.is_forced or link.guessed else "-->"
        label = f"|{link.numbers['forward']:.2f}|" if link.is_directed and "forward" in link.numbers else ""
        lines.append(f"  {place[link.a]} {arrow}{label} {place[link.b]}")
    hidden_dd = source.hidden_causes if isinstance(source, Result) else None
    if hidden_dd is not None:
        pairs = [(i, j) for i in range(len(hidden_dd)) for j in range(i) if hidden_dd[i, j] >= EVEN]
        lines += [f"  n{j} <-.->|hidden {hidden_dd[i, j]:.2f}| n{i}" for i, j in pairs]
    return "\n".join([*lines, ""])


def _mermaid(name: str) -> str:
    coded = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\\": "#92;"}
    return "".join(coded.get(letter, letter) for letter in " ".join(name.split())) or " "


def to_tetrad(source: Graph | Result, cut: Cut | None = None) -> str:
    """The text that Tetrad, py-tetrad and causal-learn read and write.

    Examples
    --------
    >>> print(to_tetrad(Graph(["x", "größe", "z 1"], [[0, 1, 0], [0, 0, 1], [0, 1, 0]])), end="")
    Graph Nodes:
    x;größe;z_1
    <BLANKLINE>
    Graph Edges:
    1. x --> größe
    2. größe --- z_1
    """
    words = _plain_words(source.names, _is_letter)
    edges = [
        f"{words[link.a]} {'-->' if link.is_directed else '---'} {words[link.b]}" for link in list_links(source, cut)
    ]
    numbered = [f"{k}. {edge}" for k, edge in enumerate(edges, start=1)]
    return "\n".join(["Graph Nodes:", ";".join(words.values()), "", "Graph Edges:", *numbered, ""])


def to_bif(source: Graph | Result, cut: Cut | None = None) -> str:
    r"""Bayesian Interchange Format: a network of two-valued variables, low and high.

    BIF wants a direction for every link and a table for every variable. Of a result it is `Result.dag`, with tables
    counted in the rows it keeps, each variable cut at its median; without rows, and of a graph, every table is even
    and stands for the structure alone, which the file says.

    Examples
    --------
    >>> print(*to_bif(Graph(["x", "y"], [[0, 1], [0, 0]])).splitlines()[-4:], sep="\n")
    probability ( y | x ) {
      (low) 0.5, 0.5;
      (high) 0.5, 0.5;
    }
    """
    graph = source if isinstance(source, Graph) else source.dag(cut)
    _check_bif(graph)
    x_md = source.sample if isinstance(source, Result) else None
    is_high_md = None if x_md is None or not len(x_md) else x_md > np.median(x_md, axis=0)
    words = list(_plain_words(graph.names, _is_ascii_letter).values())
    said = (
        "tables are even: only the structure is meant" if is_high_md is None else "each variable is cut at its median"
    )
    lines = ["network graph {", f'  property "graphbam: {said}";', "}"]
    for word, name in zip(words, graph.names, strict=True):
        real = [f'  property "name {" ".join(name.replace(chr(34), chr(39)).split())}";'] if word != name else []
        lines += [f"variable {word} {{", "  type discrete [ 2 ] { low, high };", *real, "}"]
    for child in range(graph.n_variables):
        lines += _spell_probability(child, np.flatnonzero(graph.adjacency[:, child]).tolist(), words, is_high_md)
    return "\n".join([*lines, ""])


def _spell_probability(child: int, parents: list[int], words: list[str], is_high_md: Any) -> list[str]:
    """How likely low and high are, for every combination of the parents; each is counted once more than it was seen."""
    given = f" | {', '.join(words[k] for k in parents)}" if parents else ""
    lines = [f"probability ( {words[child]}{given} ) {{"]
    for states in itertools.product((False, True), repeat=len(parents)):
        high = 0.5
        if is_high_md is not None:
            rows = (is_high_md[:, parents] == states).all(axis=1)
            high = (is_high_md[rows, child].sum() + 1) / (rows.sum() + 2)
        head = f"({', '.join('high' if state else 'low' for state in states)})" if parents else "table"
        lines.append(f"  {head} {1 - high:.6g}, {high:.6g};")
    return [*lines, "}"]


def _check_bif(graph: Graph) -> None:
    if not graph.is_dag():
        raise GraphError("BIF needs a direction for every link and no cycle. Pass result.dag(), or graph.to_dag().")
    most = int(graph.adjacency.sum(axis=0).max(initial=0))
    if most > MOST_PARENTS:
        raise GraphError(
            f"a variable has {most} parents, whose table in BIF would have 2^{most} rows. Use a stricter cut."
        )


def _plain_words(names: Sequence[str], is_plain: Callable[[str], bool]) -> dict[str, str]:
    """Names of plain characters and ``_``, no two alike, for formats that take nothing else."""
    words: dict[str, str] = {}
    for name in names:
        word = re.sub("\0+", "_", "".join(c if c == "_" or is_plain(c) else "\0" for c in name)) or "_"
        word = f"_{word}" if word[0].isdigit() else word
        number = 1
        while (f"{word}_{number}" if number > 1 else word) in words.values():
            number += 1
        words[name] = f"{word}_{number}" if number > 1 else word
    return words


def _is_letter(character: str) -> bool:
    """Whether it is a letter or digit of any script, or a mark that belongs to one."""
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _is_ascii_letter(character: str) -> bool:
    return character.isascii() and character.isalnum()


MOST_PARENTS = 12
"""Of a variable in BIF, whose tables grow twofold with each."""

FORMATS: dict[str, Callable[..., str]] = {
    ".csv": to_csv,
    ".json": to_json,
    ".graphml": to_graphml,
    ".dot": to_dot,
    ".gv": to_dot,
    ".mmd": to_mermaid,
    ".txt": to_tetrad,
    ".bif": to_bif,
}
"""Suffix → function that makes the text of the file; a result is also written as .html, its report."""

PICTURE = "graph.png"
OUTPUTS = (
    "edges.csv", "arrows.csv", "dag.csv", "graph.json", "graph.graphml", "graph.dot", "report.html", PICTURE,
)  # fmt: skip
"""Files of `save_outputs`; arrows.csv and dag.csv where directions are known, graph.png where matplotlib is
installed."""

WIDE_OUTPUTS = (
    "edges.csv", "arrows.csv", "dag.csv", "graph.graphml", "graph.dot", "report.html", "result.json", "pairs.npz",
)  # fmt: skip
"""The same of a sparse result."""

NOTES = (
    Note("graph.json", rb'^\{"format": "graphbam-result"', OUTPUTS),
    Note("result.json", rb'^\{"format": "graphbam-sparse-result"', WIDE_OUTPUTS),
)
"""Where a result says which files it wrote."""


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────


def export(
    source: Source,
    path: str | os.PathLike[str],
    *,
    layout: Literal["edges", "adjacency"] = "edges",
    cut: Cut | float | None = None,
    threshold: float | None = None,
    fdr: float | None = None,
) -> Path:
    """Write a graph or a result to a file; the suffix chooses the format.

    Parameters
    ----------
    source : Graph or Result
        Of a result, graph formats hold its `graph`: with directions where they are known.
    path : path
        Ending in .csv, .json, .graphml, .dot or .gv (Graphviz), .mmd (Mermaid), .txt (Tetrad) or .bif; for a result
        also .html, its report. Missing folders are made.
    layout : {"edges", "adjacency"}
        What a CSV file holds.
    cut, threshold, fdr
        As in `Result.graph`.

    Returns
    -------
    Path
        The file.
    """
    path = take_path(path)
    if not isinstance(source, (Graph, Result, SparseGraph, SparseResult)):
        raise GraphError(f"a {type(source).__name__} cannot be exported. Pass a Graph or a Result.")
    is_sparse = isinstance(source, (SparseGraph, SparseResult))
    if is_sparse and (layout == "adjacency" or path.suffix.lower() in (".json", ".bif")):
        raise ConfigError(f"{path}: of so many variables no matrix, JSON or BIF is written. Use .csv or .graphml.")
    if layout not in ("edges", "adjacency") or (layout == "adjacency" and path.suffix.lower() != ".csv"):
        raise ConfigError(
            Setting("layout", layout), f" does not fit {path.name}; an adjacency matrix is written as .csv."
        )
    text = _choose_format(source, path, layout)(source, Cut.read(cut, threshold=threshold, fdr=fdr))
    return write_text(path, text)


def _choose_format(source: Source, path: Path, layout: str) -> Callable[..., str]:
    suffix = path.suffix.lower()
    if suffix == ".html" and isinstance(source, (Graph, SparseGraph)):
        raise ConfigError(f"{path}: a report is made of a Result, and this is a Graph. End it in {', '.join(FORMATS)}.")
    if suffix == ".html":
        return _render_report
    if suffix not in FORMATS:
        known = [*FORMATS, *([".html"] if isinstance(source, (Result, SparseResult)) else [])]
        picture = " Pictures are drawn by plot()." if suffix in _PICTURES else ""
        raise ConfigError(f"{path} does not say which format to write; end it in {', '.join(known)}.{picture}")
    return to_adjacency_csv if layout == "adjacency" else FORMATS[suffix]


Draw: TypeAlias = Callable[[Result, Path, "Cut | None"], Callable[[], object]]
"""Begins to draw a result into a file; what it returns waits until that is there."""


def save_outputs(
    result: Result | SparseResult, folder: str | os.PathLike[str], cut: Cut | None = None, draw: Draw | None = None
) -> list[Path]:
    """Write everything about a result into a folder: all of `OUTPUTS`, or, if anything goes wrong, nothing.

    Parameters
    ----------
    result : Result
    folder : path
        Made if missing. Files of an earlier result there are replaced, or removed if this one has no such file; all
        others stay.
    cut : Cut, optional
        As in `Result.graph`.
    draw : callable, optional
        Draws the picture while the other files are written; by default it is drawn after them.

    Returns
    -------
    list of Path
        The files.
    """
    if isinstance(result, SparseResult):
        return result.save(folder, cut)
    folder = check_folder(folder)
    names = _name_outputs(result)
    writers = _list_writers(result, cut, names)
    with filling(folder, *NOTES) as draft:
        wait = (draw or _draw_last)(result, draft / PICTURE, cut) if PICTURE in names else None
        for name, write in writers.items():
            write(draft / name)
        if wait:
            wait()
    return [folder / name for name in names]


def check_folder(folder: str | os.PathLike[str], names: Sequence[str] = OUTPUTS) -> Path:
    """Refuse a folder that is a file, or in which files of others bear the names of outputs."""
    folder = take_path(folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; the outputs need a folder. Choose another name.")
    refuse_others(folder, names, *NOTES)
    return folder


def _name_outputs(result: Result) -> list[str]:
    """Those of `OUTPUTS` that there are of a result, here."""
    from graphbam.output import figures

    absent = set() if result.has_directions else {"arrows.csv", "dag.csv"}
    absent |= set() if figures.can_draw() else {PICTURE}
    return [name for name in OUTPUTS if name not in absent]


def _list_writers(result: Result, cut: Cut | None, names: list[str]) -> dict[str, Callable[[Path], object]]:
    """File name → function that writes it, of those files but the picture."""

    def text(make: Callable[..., str], source: Source = result) -> Callable[[Path], object]:
        return lambda path: path.write_text(make(source, cut), encoding="utf-8", newline="")

    plain = ("edges.csv", "graph.graphml", "graph.dot")
    writers = {name: text(FORMATS[os.path.splitext(name)[1]]) for name in plain}
    writers["arrows.csv"] = text(to_csv, result.graph(cut))
    writers["dag.csv"] = lambda path: text(to_csv, result.dag(cut))(path)
    writers["report.html"] = text(_render_report)
    writers["graph.json"] = text(lambda source, cut: to_json(source, cut, names))
    return {name: writers[name] for name in names if name != PICTURE}


def _draw_last(result: Result, path: Path, cut: Cut | None) -> Callable[[], object]:
    from graphbam.output import figures

    return lambda: figures.plot(result, path, cut=cut)


def _render_report(result: Result | SparseResult, cut: Cut | None = None) -> str:
    if isinstance(result, SparseResult):
        from graphbam.output.wide import render_page

        return render_page(result, cut or Cut())
    from graphbam.output.report import render

    return render(result, cut)


def take_page(path: str | os.PathLike[str]) -> Path:
    """Where a page goes; refused where its name would have another program open it, or none.

    Examples
    --------
    >>> take_page("cells.pdf")
    Traceback (most recent call last):
    graphbam.errors.ConfigError: cells.pdf: a report is a page for a browser; end it in .html.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"{path}: a report is a page for a browser; end it in .html.")
    return Path(path)


def write_text(path: Path, text: str) -> Path:
    """Write a file whole or not at all; missing folders are made."""
    make_folder(path.parent)
    with clear_errors(path), replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="")
    return path


# ── other packages ────────────────────────────────────────────────────────────────────────────────────────


def to_causallearn(source: Graph | Result) -> Any:
    """Convert a graph, or the `graph` of a result, to a causal-learn ``GeneralGraph``; needs causal-learn."""
    graph = _take_graph(source)
    edge, endpoint, general, node = (
        getattr(_load(f"causallearn.graph.{name}"), name) for name in ("Edge", "Endpoint", "GeneralGraph", "GraphNode")
    )
    nodes = {name: node(name) for name in graph.names}
    result = general(list(nodes.values()))
    for link in list_links(graph):
        head = endpoint.ARROW if link.is_directed else endpoint.TAIL
        result.add_edge(edge(nodes[link.a], nodes[link.b], endpoint.TAIL, head))
    return result


def to_pgmpy(source: Graph | Result) -> Any:
    """Convert to a pgmpy ``DAG`` if every edge is directed without a cycle, else to a ``PDAG``; needs pgmpy.

    Of a result, its `graph` is taken.
    """
    graph = _take_graph(source)
    base = _load("pgmpy.base")
    if graph.is_dag():
        result = base.DAG()
        result.add_nodes_from(graph.names)
        result.add_edges_from(graph.directed_edges())
        return result
    result = base.PDAG(directed_ebunch=graph.directed_edges(), undirected_ebunch=graph.undirected_edges())
    result.add_nodes_from(name for name in graph.names if name not in result.nodes)
    return result


def to_dowhy(source: Graph | Result) -> str:
    """Convert to the GML text that ``dowhy.CausalModel(graph=...)`` takes; DoWhy needs every edge directed.

    A result has one such graph where its `graph` has no open link; otherwise pass its `to_dag()`, one of several.

    Examples
    --------
    >>> to_dowhy(Graph(["x", "y"], [[0, 1], [0, 0]]))[:48]
    'graph [ directed 1 node [ id 0 label "x" ] node '
    """
    import networkx as nx

    graph = _take_graph(source)
    if not graph.is_dag():
        a_b = graph.undirected_edges()
        why = f"{a_b[0][0]} — {a_b[0][1]} has no direction" if a_b else "it has a cycle"
        raise GraphError(
            f"DoWhy needs a directed graph without cycles, and {why}. Direct every edge first, as to_dag() does."
        )
    directed = nx.DiGraph()
    directed.add_nodes_from(graph.names)
    directed.add_edges_from(graph.directed_edges())
    return " ".join(line.strip() for line in nx.generate_gml(directed))  # DoWhy looks for GML on one line


def _take_graph(source: Graph | Result) -> Graph:
    if not isinstance(source, (Graph, Result)):
        raise GraphError(f"a {type(source).__name__} cannot be converted. Pass a Graph or a Result.")
    return source if isinstance(source, Graph) else source.graph()


def _load(module: str) -> Any:
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError:
        raise GraphError(
            f"this conversion needs {package}, which is not installed. Run `{_INSTALL[package]}`."
        ) from None
