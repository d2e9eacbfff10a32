"""`graphbam simulate`: a table with known truth, and its picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphbam.graphs.graph import Graph

MECHANISM_NAMES = (
    "chebyshev, cosine, cubic, gp, gp_additive, heteroscedastic, hill, interactions, linear, mixed, mlp, "
    "multiplicative, postnonlinear, sigmoid, sine, square, tree"
)
GRAPH_NAMES = "bipartite-layers, erdos-renyi, geometric, regulators, scale-free, small-world, stochastic-block"
NOISE_NAMES = "exponential, gaussian, gumbel, laplace, mixture, student, uniform"


def simulate(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")],
    mechanism: Annotated[str, typer.Option(help=f"One of {MECHANISM_NAMES}.")] = "chebyshev",
    graph: Annotated[str, typer.Option(help=f"One of {GRAPH_NAMES}.")] = "erdos-renyi",
    n_variables: Annotated[int, typer.Option(help="Columns of the table.")] = 20,
    n_samples: Annotated[int, typer.Option(help="Rows of the table.")] = 500,
    degree: Annotated[float, typer.Option(help="Mean number of neighbours of a variable.")] = 2.0,
    noise: Annotated[str | None, typer.Option(help=f"One of {NOISE_NAMES}; default: the preset's.")] = None,
    preset: Annotated[str, typer.Option(help="Everything not fixed here: paper, literal or broad.")] = "paper",
    seed: Annotated[int, typer.Option(help="The same seed gives the same world.")] = 0,
) -> None:
    """Simulate a table with known truth: data.csv, graph.csv and a picture, world.png."""
    import graphbam as gb
    from graphbam.tables.labelled import LabelledTable, write_labelled

    dag, x_md = gb.simulate(
        n_samples=n_samples, n_variables=n_variables, mechanism=mechanism, graph=graph, degree=degree,
        noise=noise, preset=preset, seed=seed,
    )  # fmt: skip
    data, truth = write_labelled(out, LabelledTable(dag.names, x_md, dag.adjacency), digits=6)
    files = {
        data: f"the table, {n_samples} rows and {n_variables} columns",
        truth: f"the truth, {len(dag.directed_edges())} edges",
    }
    if _draw(out / "world.png", dag, x_md, f"Simulated world: {mechanism} effects, {graph} graph"):
        files[out / "world.png"] = "the graph, and a scatter plot for each edge"
    _report(files)


def _draw(path: Path, dag: Graph, x_md: NDArray[np.float64], title: str) -> bool:
    from graphbam.output import figures

    if not figures.has_matplotlib():
        typer.echo("note: no picture, since matplotlib is missing; run: pip install 'graphbam[plot]'", err=True)
        return False
    figures.save(figures.draw_world(dag, x_md, title=title), path)
    return True


def _report(files: dict[Path, str]) -> None:
    """Print what was written where."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    width = max(len(str(path)) for path in files)
    for path, what in files.items():
        console.print(f"[bold]{str(path).ljust(width)}[/bold]  [dim]{what}[/dim]")
