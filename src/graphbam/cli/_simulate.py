"""`graphbam simulate`: a table with known truth, and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphbam.simulation import SimulatedTable

MECHANISM_NAMES = (
    "chebyshev, cosine, cubic, gp, gp_additive, heteroscedastic, hill, interactions, linear, mixed, mlp, "
    "multiplicative, postnonlinear, sigmoid, sine, square, tree"
)
GRAPH_NAMES = "bipartite-layers, erdos-renyi, geometric, regulators, scale-free, small-world, stochastic-block"
NOISE_NAMES = "exponential, gaussian, gumbel, laplace, mixture, student, uniform"


WORLD_NAMES = "as-found, collinear, designed, flows, gene-dynamics, monitoring, questionnaire, recorded, single-cell"


def simulate(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")],
    world: Annotated[str | None, typer.Option(help=f"A kind of table that people have: {WORLD_NAMES}.")] = None,
    mechanism: Annotated[str | None, typer.Option(help=f"One of {MECHANISM_NAMES}; default: chebyshev.")] = None,
    graph: Annotated[str | None, typer.Option(help=f"One of {GRAPH_NAMES}; default: erdos-renyi.")] = None,
    n_variables: Annotated[int, typer.Option(help="Columns of the table.")] = 20,
    n_samples: Annotated[int, typer.Option(help="Rows of the table.")] = 500,
    degree: Annotated[float | None, typer.Option(help="Mean number of neighbours of a variable; default: 2.")] = None,
    noise: Annotated[str | None, typer.Option(help=f"One of {NOISE_NAMES}; default: the preset's.")] = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="More variables than the table shows.")] = False,
    interventions: Annotated[bool, typer.Option("--interventions", help="Some cells were set from outside.")] = False,
    missing: Annotated[bool, typer.Option("--missing", help="Some cells are missing.")] = False,
    preset: Annotated[str, typer.Option(help="Everything not fixed here: paper, literal or broad.")] = "paper",
    seed: Annotated[int, typer.Option(help="The same seed gives the same world.")] = 0,
) -> None:
    """Simulate a table with known truth: data.csv, graph.csv and a picture, world.png.

    With hidden variables also bidirected.csv, the pairs that share a hidden cause; with interventions also targets.csv,
    1 for every cell that was set.
    """
    from graphbam.simulation import simulate_table
    from graphbam.tables.labelled import LabelledTable, write_labelled

    choices: dict[str, str | float | None] = {"mechanism": mechanism, "graph": graph, "degree": degree, "noise": noise}
    if world is None:
        defaults: dict[str, str | float] = {"mechanism": "chebyshev", "graph": "erdos-renyi", "degree": 2.0}
        choices |= {name: value for name, value in defaults.items() if choices[name] is None}
    table = simulate_table(
        n_samples=n_samples, n_variables=n_variables, world=world, hidden=hidden, interventions=interventions,
        missing=missing, preset=preset, seed=seed, **choices,
    )  # fmt: skip
    dag = table.graph
    data, truth = write_labelled(out, LabelledTable(dag.names, table.x_md, dag.adjacency), digits=6)
    files = {
        data: f"the table, {n_samples} rows and {n_variables} columns",
        truth: f"the truth, {len(dag.directed_edges())} edges",
    }
    files |= _write_beside(out, table)
    title = f"{world} world" if world else f"{choices['mechanism']} effects, {choices['graph']} graph"
    if _draw(out / "world.png", table, f"Simulated world: {title}"):
        files[out / "world.png"] = "the graph, and a scatter plot for each edge"
    _report(files)


def _write_beside(out: Path, table: SimulatedTable) -> dict[Path, str]:
    """Write what a table and a graph cannot say, where there is anything."""
    names, files = table.graph.names, {}
    if table.bidirected:
        path = out / "bidirected.csv"
        _write_csv(path, ("source", "target"), table.bidirected)
        files[path] = f"pairs with a hidden common cause, {len(table.bidirected)}"
    if table.set_md.any():
        path = out / "targets.csv"
        _write_csv(path, names, table.set_md.astype(int).tolist())
        files[path] = f"cells that were set, {table.set_md.mean():.1%}"
    return files


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    import csv

    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([head, *rows])


def _draw(path: Path, table: SimulatedTable, title: str) -> bool:
    from graphbam.output import figures

    if not figures.can_draw():
        typer.echo(
            "note: no picture, since matplotlib or mini-racer is missing; run: pip install 'graphbam[plot]'", err=True
        )
        return False
    picture = figures.draw_world(
        table.graph, table.x_md, bidirected=table.bidirected, set_md=table.set_md, title=title
    )  # fmt: skip
    figures.save(picture, path)
    return True


def _report(files: dict[Path, str]) -> None:
    """Print what was written where."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    width = max(len(str(path)) for path in files)
    for path, what in files.items():
        console.print(f"[bold]{str(path).ljust(width)}[/bold]  [dim]{what}[/dim]")
