"""The command line: thin, no decisions; everything heavy loads inside the commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphbam.errors import ConfigError, GraphbamError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphbam.graph import Graph

app = typer.Typer(
    name="graphbam",
    help="The graph of a table in one forward pass.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

MECHANISM_NAMES = (
    "chebyshev, cosine, cubic, gp, gp_additive, heteroscedastic, interactions, linear, mixed, mlp, "
    "multiplicative, postnonlinear, sigmoid, sine, square, tree"
)
GRAPH_NAMES = "bipartite-layers, erdos-renyi, geometric, scale-free, small-world, stochastic-block"
NOISE_NAMES = "exponential, gaussian, gumbel, laplace, mixture, student, uniform"


def main() -> None:
    """Run the command line; a user's mistake becomes one line on stderr and exit code 2."""
    try:
        app()
    except GraphbamError as error:
        print("error: " + " ".join(str(error).split()), file=sys.stderr)
        raise SystemExit(2) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        from graphbam import __version__

        typer.echo(f"graphbam {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The graph of a table in one forward pass."""


@app.command()
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

    dag, x_md = gb.simulate(
        n_samples=n_samples, n_variables=n_variables, mechanism=mechanism, graph=graph, degree=degree,
        noise=noise, preset=preset, seed=seed,
    )  # fmt: skip
    _make_folder(out)
    files = {
        out / "data.csv": f"the table, {n_samples} rows and {n_variables} columns",
        out / "graph.csv": f"the truth, {len(dag.directed_edges())} edges",
    }
    _write_table(out / "data.csv", dag, x_md)
    _write_edges(out / "graph.csv", dag)
    if _draw(out / "world.png", dag, x_md, f"Simulated world: {mechanism} effects, {graph} graph"):
        files[out / "world.png"] = "the graph, and a scatter plot for each edge"
    _report(files)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {out}: {error.strerror}; choose another with -o") from None


def _write_table(path: Path, dag: Graph, x_md: NDArray[np.float64]) -> None:
    import numpy as np

    np.savetxt(path, x_md, fmt="%.6g", delimiter=",", header=",".join(dag.names), comments="")


def _write_edges(path: Path, dag: Graph) -> None:
    lines = ["source,target", *(f"{cause},{effect}" for cause, effect in dag.directed_edges())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _draw(path: Path, dag: Graph, x_md: NDArray[np.float64], title: str) -> bool:
    from graphbam import figures

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
