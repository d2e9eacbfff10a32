"""What `graphbam infer` prints: for people, or as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphbam.errors import spell_count
from graphbam.graphs.cut import EVEN, Cut
from graphbam.graphs.graph import one_line
from graphbam.output.files import Link, list_links
from graphbam.result import OrientedGraph, Result

MOST_LINKS = 12
BAR = 10

WHAT = {
    "report.html": "open it in a browser: graph, evidence, table",
    "graph.png": "the picture",
    "arrows.csv": "the links of the graph with their directions, and how sure they are",
    "dag.csv": "the same with a direction for every link, guesses marked",
    "edges.csv": "every pair with its probabilities",
    "graph.json": "the whole result",
    "result.json": "the whole result, with pairs.npz",
    "graph.graphml": "for networkx, Gephi, Cytoscape",
    "graph.dot": "for Graphviz",
}
"""Files in the order they are named, with what they are good for."""

WIDE = {
    "report.html": "open it in a browser: all links, one neighbourhood at a time",
    "edges.csv": "the pairs that were asked about, with their probabilities",
}
"""What is otherwise for a table of thousands of columns."""


def to_dict(report: dict[str, Any], cut: Cut) -> dict[str, Any]:
    """The summary as plain numbers, lists and text."""
    if "error" in report:
        return {"source": report["source"], "error": report["error"]}
    result: Result = report["result"]
    links = list_links(result, cut)
    wrong, missed = result.expect_errors(links)
    return {
        "source": result.source,
        "n_variables": result.n_variables,
        "n_rows": result.provenance.get("n_rows_used"),
        "n_links": len(links),
        "n_arrows": _count_arrows(result, links),
        "expected_false": round(wrong, 4),
        "expected_missed": round(missed, 4),
        "expected_distance": _expect_distance(result, cut),
        "links": [{"a": link.a, "edge": link.mark, "b": link.b, **link.values()} for link in links],
        "n_moral": len(result.moral_pairs(cut).undirected_edges()),
        "n_hidden": _count_hidden(result),
        "changes": list(result.changes),
        "warnings": list(result.warnings),
        "domain": result.domain.get("verdict"),
        "files": [str(path) for path in report["files"]],
        "notes": [*report["notes"], *_list_notes(result, cut)],
    }


def show(report: dict[str, Any], cut: Cut, *, is_brief: bool = False) -> None:
    """Print what was found, what was done, what to keep in mind, and where the files are."""
    result: Result = report["result"]
    links = list_links(result, cut)
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text.assemble((one_line(result.source or "table"), "bold"), f"  {_facts(result)}"))
    console.print(Text("  " + _headline(result, links, cut)))
    if result.has_directions and links:
        console.print(Text("  " + _say_directions(links)))
    if hidden := result.say_hidden():
        console.print(Text("  " + one_line(hidden)))
    if is_brief:
        console.print(Text(f"  {report['files'][0].parent}", style="dim"))
    elif links:
        _show_links(console, result, links)
    _show_list(console, "Done to the data", result.changes)
    if not is_brief:
        _show_files(console, report, cut)
    mind = (*result.warnings, *_list_notes(result, cut))
    _show_list(console, "Keep in mind", mind, style="yellow")  # last, where it is seen


def show_total(n_tables: int, n_failed: int) -> None:
    """Print how many tables of a folder went well."""
    failed = f", {n_failed} failed" if n_failed else ""
    Console(highlight=False).print(Text(f"{n_tables - n_failed} of {n_tables} tables done{failed}", style="bold"))


def _facts(result: Result) -> str:
    rows = result.spell_rows()
    return f"{result.n_variables} variables" + (f" · {rows}" if rows else "")


def _headline(result: Result, links: list[Link], cut: Cut) -> str:
    moral = len(result.moral_pairs(cut).undirected_edges())
    married = f"; {spell_count(moral, 'pair')} linked through a common child only" if moral else ""
    return f"{spell_count(len(links), 'link')} {cut}, {result.say_errors(links)}{married}"


def _say_directions(links: list[Link]) -> str:
    n, arrows, forced = len(links), sum(link.is_directed for link in links), sum(link.is_forced for link in links)
    if arrows == 0:
        none, all_ = ("it has no", "it is") if n == 1 else ("none has a", "all are")
        why = "" if any(link.leans for link in links) else " what depends on what does not tell, so"
        return f"{none} direction:{why} {all_} left open{_say_leaning(links)}"
    whole = "it has" if n == 1 else "all have"
    said = f"{whole if arrows == n else '1 has' if arrows == 1 else f'{arrows} have'} a direction"
    if forced:
        whom = f"{forced} of them" if forced != arrows else "it" if arrows == 1 else "them"
        alone = "on its own another is" if forced == 1 else "on their own others are"
        said += f"; only the graph as a whole needs {whom}: {alone} likelier"
    if arrows == n:
        return said
    return f"{said}; the {'other is' if n - arrows == 1 else 'others are'} left open{_say_leaning(links)}"


def _say_leaning(links: list[Link]) -> str:
    """How many open links would have a direction if each were judged alone."""
    n_open, n = sum(not link.is_directed for link in links), sum(link.leans for link in links)
    if not n:
        return ""
    whom = f"{n} of them " if n < n_open else ""
    alone = "on its own" if n == 1 else "on their own"
    return f", {whom}although {alone} a direction is likelier (arrows are chosen together, and with caution)"


def _show_links(console: Console, result: Result, links: list[Link]) -> None:
    grid = Table.grid(padding=(0, 1))
    for link in links[:MOST_LINKS]:
        p = link.numbers["skeleton"]
        bar = Text("━" * max(1, round(BAR * p)), style="cyan").append("┄" * (BAR - max(1, round(BAR * p))), style="dim")
        arrow = "→" if link.is_directed else "—"
        cells = [Text(f"  {p:.2f}"), bar, Text(f"{one_line(link.a)} {arrow} {one_line(link.b)}")]
        if result.has_directions:
            way = f"this way {link.numbers['forward']:.2f}{' (forced)' if link.is_forced else ''}"
            cells.append(Text(way if link.is_directed else "", style="dim"))
        if result.stability is not None:
            cells.append(Text(f"in {link.numbers['stability']:.0%} of resamples", style="dim"))
        grid.add_row(*cells)
    console.print(grid)
    if len(links) > MOST_LINKS:
        console.print(Text(f"  … and {len(links) - MOST_LINKS} more", style="dim"))


def _show_list(console: Console, title: str, sentences: tuple[str, ...], style: str = "") -> None:
    if sentences:
        console.print(Text(title, style="bold"))
    for sentence in sentences:
        console.print(Text(f"  • {one_line(sentence)}", style=style))


def _show_files(console: Console, report: dict[str, Any], cut: Cut) -> None:
    console.print(Text("Written", style="bold"))
    files = {path.name: path for path in report["files"]}
    width = max(len(str(path)) for path in files.values())
    more = {"dag.csv": _say_more(report["result"], cut)} if "dag.csv" in files else {}
    about = WHAT | (WIDE if "result.json" in files else {})
    for name in WHAT:
        if name in files:
            what = about[name] + more.get(name, "")
            console.print(Text.assemble("  ", str(files[name]).ljust(width), (f"  {what}", "dim")))


def _say_more(result: Result, cut: Cut) -> str:
    """How many links the DAG has beyond those of the CPDAG, if any: for the smallest distance it may."""
    if cut.objective != "shd":
        return ""
    n_more = len(result.dag(cut).directed_edges()) - len(result.cpdag(cut).skeleton().undirected_edges())
    return f", with {spell_count(n_more, 'link')} that arrows.csv leaves out" if n_more else ""


def _list_notes(result: Result, cut: Cut) -> tuple[str, ...]:
    """Which links differ from those of the cut, and why."""
    graph = result.graph(cut)
    return getattr(graph, "notes", ())


def _count_arrows(result: Result, links: list[Link]) -> int | None:
    """None where directions are not known."""
    return None if not result.has_directions else sum(link.is_directed for link in links)


def _count_hidden(result: Result) -> int | None:
    """Pairs that rather have a hidden cause; None where nothing is known. A matrix has each twice, a list once."""
    if result.hidden_causes is None:
        return None
    return int((result.hidden_causes >= EVEN).sum()) // result.hidden_causes.ndim


def _expect_distance(result: Result, cut: Cut) -> float | None:
    """Expected structural Hamming distance to the true CPDAG; None where directions are not known."""
    graph = result.graph(cut)
    return round(graph.expected_shd(), 4) if isinstance(graph, OrientedGraph) else None
