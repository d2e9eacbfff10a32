"""`graphbam benchmark`: judge methods on the same tables."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from graphbam.benchmarks.run import Standing

SECONDS_BETWEEN_LINES = 30.0
"""Without a terminal, progress is one line every so often."""

Words = list[str] | None


def benchmark(
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="DIR", help="Run folder; go on with it.")] = None,
    methods: Annotated[
        Words, typer.Option(help="Names, 'quick', 'all', patterns or module:Class; with commas, repeatable.")
    ] = None,
    cases: Annotated[
        Words, typer.Option(help="Suites, names like cosine-d50-m200, patterns or folders; with commas, repeatable.")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Tables of each simulated case. Default: 5.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds one fit may take. Default: 120.")] = None,
    memory_limit: Annotated[float | None, typer.Option(help="MiB one fit may use. Default: 4096.")] = None,
    skip_larger: Annotated[
        bool | None,
        typer.Option(
            "--skip-larger/--try-larger", help="Spare a method cases larger than one it timed out on. Default: skip."
        ),
    ] = None,
    retry: Annotated[Words, typer.Option(help="Do again: error, timeout, memory, skipped; with commas.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Fits at the same time.")] = 1,
    engine: Annotated[str, typer.Option(help="local or dask.")] = "local",
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Of Dask, such as tcp://host:8786.")] = None,
    show: Annotated[bool, typer.Option("--list", help="List methods and suites, and do nothing else.")] = False,
) -> None:
    """Judge methods on the same tables: results.parquet and results.csv, one row per fit.

    Stop it at any time; the same command, or just -o DIR, goes on where it stopped.
    """
    if show:
        _show_choices()
        return
    if out is None:
        raise typer.BadParameter("a folder for the results is needed", param_hint="--out / -o")
    from graphbam.benchmarks.run import benchmark as run

    sys.path.insert(0, str(Path.cwd()))  # for module:Class; a console script does not look there
    settings: dict[str, Any] = {
        "methods": _split(methods), "cases": _split(cases), "trials": trials, "time_limit": time_limit,
        "memory_limit": memory_limit, "skip_larger": skip_larger, "retry": _split(retry) or (), "jobs": jobs,
        "engine": engine, "scheduler": scheduler,
    }  # fmt: skip
    try:
        with _progress() as progress:
            frame = run(out=out, progress=progress, **settings)
    except KeyboardInterrupt:
        typer.echo(f"stopped; every finished fit is saved. Go on with: graphbam benchmark -o {out}", err=True)
        raise typer.Exit(130) from None
    _show_counts(frame, Path(out))


def _split(words: Words) -> list[str] | None:
    """Take lists apart.

    Examples
    --------
    >>> _split(["pc,ges", " boss"])
    ['pc', 'ges', 'boss']
    """
    if words is None:
        return None
    return [part.strip() for word in words for part in word.split(",") if part.strip()]


# ── what is seen ──────────────────────────────────────────────────────────────────────────────────────────


def _show_choices() -> None:
    from graphbam.benchmarks.baselines import METHOD_SETS, list_baselines
    from graphbam.benchmarks.cases import SUITES

    typer.echo("methods: " + ", ".join(list_baselines()))
    for name, members in METHOD_SETS.items():
        typer.echo(f"{name} methods: " + ", ".join(members))
    for name, members in SUITES.items():
        typer.echo(f"{name} cases ({len(members)}): " + ", ".join(members[:3]) + (" …" if len(members) > 3 else ""))


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[Standing], None]]:
    """A bar on a terminal; elsewhere a line every half a minute."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _line_now_and_then()
        return
    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False)
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(now: Standing) -> None:
            bar.update(task, completed=now.done, total=now.total, description=describe(now))

        yield show


def _line_now_and_then() -> Callable[[Standing], None]:
    last = time.monotonic()

    def show(now: Standing) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES or now.done == now.total:
            last = time.monotonic()
            typer.echo(f"{now.done}/{now.total}  {describe(now)}", err=True)

    return show


def describe(now: Standing) -> str:
    """Where a run stands, in one line."""
    row, left = now.row, now.seconds_left
    remaining = f"{left / 3600:.1f} h" if left >= 5400 else f"{left / 60:.0f} min" if left >= 90 else f"{left:.0f} s"
    return f"about {remaining} left · {row['method']} · {row['case']} · {row['status']}"


def _show_counts(frame: pd.DataFrame, out: Path) -> None:
    """What came out for each method, and where it is written."""
    from rich.console import Console
    from rich.table import Table

    counts = frame.groupby(["method", "status"]).size().unstack(fill_value=0)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("method", no_wrap=True)
    for status in counts.columns:
        table.add_column(str(status), justify="right")
    for method, row in counts.iterrows():
        table.add_row(str(method), *(str(count) if count else "" for count in row))
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print(f"[bold]{out / 'results.parquet'}[/bold]  [dim]{len(frame)} rows, also as results.csv[/dim]")
