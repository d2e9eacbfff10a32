"""`graphbam simulate`: a table with known truth, and its picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbam.errors import spell_count
from graphbam.machine.disk import Note, filling, refuse_others, sign, take_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from graphbam.simulation import SimulatedTable

MECHANISM_NAMES = (
    "chebyshev, cosine, cubic, gp, gp_additive, heteroscedastic, hill, interactions, linear, mixed, mlp, "
    "multiplicative, postnonlinear, sigmoid, sine, square, tree"
)
GRAPH_NAMES = "bipartite-layers, erdos-renyi, geometric, regulators, scale-free, small-world, stochastic-block"
NOISE_NAMES = "exponential, gaussian, gumbel, laplace, mixture, student, uniform"
PRESET_NAMES = "broad, broad-1, literal, paper, textbook"


WORLD_NAMES = (
    "as-found, blended, collinear, counts, designed, flows, gene-dynamics, levels, monitoring, questionnaire, "
    "recorded, single-cell"
)


NOTE = Note("world.json", rb'^\{\s*"format": "graphbam-world"')
"""Says how a world was made, and which files are its own."""

PICTURE = "world.png"


def simulate(
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")],
    world: Annotated[str | None, typer.Option(help=f"A kind of table that people have: {WORLD_NAMES}.")] = None,
    mechanism: Annotated[str | None, typer.Option(help=f"One of {MECHANISM_NAMES}; default: chebyshev.")] = None,
    graph: Annotated[str | None, typer.Option(help=f"One of {GRAPH_NAMES}; default: erdos-renyi.")] = None,
    n_variables: Annotated[int, typer.Option(help="Columns of the table.")] = 20,
    n_samples: Annotated[int, typer.Option(help="Rows of the table.")] = 500,
    degree: Annotated[float | None, typer.Option(help="Mean neighbours of a variable; default: 2, of two 1.")] = None,
    noise: Annotated[str | None, typer.Option(help=f"One of {NOISE_NAMES}; default: the preset's.")] = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="More variables than the table shows.")] = False,
    interventions: Annotated[bool, typer.Option("--interventions", help="Some cells were set from outside.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Some cells are missing.")] = False,
    preset: Annotated[str, typer.Option(help=f"Everything not fixed here: one of {PRESET_NAMES}.")] = "paper",
    seed: Annotated[int, typer.Option(help="The same seed gives the same world.")] = 0,
) -> None:
    """Simulate a table with known truth: data.csv, graph.csv and a picture, world.png.

    With hidden variables also bidirected.csv, the pairs that share a hidden cause; with interventions also targets.csv,
    1 for every cell that was set. An earlier world in the folder is replaced; files of others there are left alone.
    """
    from graphbam.simulation import simulate_table

    settings: dict[str, Any] = {
        "n_samples": n_samples, "n_variables": n_variables, "world": world, "mechanism": mechanism, "graph": graph,
        "degree": degree, "noise": noise, "hidden": hidden, "interventions": interventions, "missing": missing,
        "preset": preset, "seed": seed,
    }  # fmt: skip
    if world is None:
        defaults: dict[str, str | float] = {"mechanism": "chebyshev", "graph": "erdos-renyi"}
        defaults["degree"] = min(2.0, max(1.0, n_variables - 1.0))  # more neighbours than others there cannot be
        settings |= {name: value for name, value in defaults.items() if settings[name] is None}
    folder = take_path(out)
    _check_folder(folder)
    table = simulate_table(**settings)
    title = f"{world} world" if world else f"{settings['mechanism']} effects, {settings['graph']} graph"
    files = _list_files(table)
    with filling(folder, NOTE) as draft:
        _write_note(draft, settings, files)
        _write_table(draft, table)
        if PICTURE in files:
            _draw(draft / PICTURE, table, f"Simulated world: {title}")
    _report({folder / name: what for name, what in files.items()})


def _check_folder(out: Path) -> None:
    """Refuse a folder in which files of others would be written over, or be read as part of the world."""
    from graphbam.tables.labelled import DATA, GRAPH, HIDDEN, TARGETS

    refuse_others(out, [*DATA, GRAPH, HIDDEN, *TARGETS, PICTURE, NOTE.name], NOTE)


def _list_files(table: SimulatedTable) -> dict[str, str]:
    """Names of all files of a world, and what is in them."""
    from graphbam.output import figures

    (n_samples, n_variables), n_edges = table.x_md.shape, len(table.graph.directed_edges())
    files = {
        "data.csv": f"the table, {n_samples} rows and {n_variables} columns",
        "graph.csv": f"the truth, {spell_count(n_edges, 'edge')}",
    }
    if table.bidirected:
        files["bidirected.csv"] = f"pairs with a hidden common cause, {len(table.bidirected)}"
    if table.set_md.any():
        files["targets.csv"] = f"cells that were set, {table.set_md.mean():.1%}"
    if figures.can_draw():
        n_shown = figures.MOST_SCATTERS
        shown = "a scatter plot for each edge" if n_edges <= n_shown else f"scatter plots of {n_shown} edges"
        files[PICTURE] = f"the graph, and {shown}"
    else:
        missed = "note: no picture, since matplotlib or mini-racer is missing; run: pip install 'graphbam[plot]'"
        typer.echo(missed, err=True)
    return files | {NOTE.name: "how it was made"}


def _write_note(out: Path, settings: dict[str, Any], files: Collection[str]) -> None:
    """Say how a world is made, and what belongs to it."""
    from graphbam import __version__

    values = sign({"format": "graphbam-world", "graphbam": __version__, "settings": settings}, files)
    (out / NOTE.name).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def _write_table(out: Path, table: SimulatedTable) -> None:
    """Write the table and its graph, and beside them what these cannot say."""
    from graphbam.tables.labelled import HIDDEN, TARGETS, LabelledTable, write_labelled

    names = table.graph.names
    write_labelled(out, LabelledTable(names, table.x_md, table.graph.adjacency), digits=6)
    if table.bidirected:
        _write_csv(out / HIDDEN, ("source", "target"), table.bidirected)
    if table.set_md.any():
        _write_csv(out / TARGETS[0], names, table.set_md.astype(int).tolist())


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    import csv

    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([head, *rows])


def _draw(path: Path, table: SimulatedTable, title: str) -> None:
    from graphbam.output import figures

    picture = figures.draw_world(
        table.graph, table.x_md, bidirected=table.bidirected, set_md=table.set_md, title=title
    )  # fmt: skip
    figures.save(picture, path)


def _report(files: dict[Path, str]) -> None:
    """Print what was written where."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    width = max(len(str(path)) for path in files)
    for path, what in files.items():
        console.print(f"[bold]{str(path).ljust(width)}[/bold]  [dim]{what}[/dim]")
