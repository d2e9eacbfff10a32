"""`graphbam benchmark-report`: results → figures, one page, tables."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Folders that graphbam benchmark wrote.")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder for page, figures and tables.")],
    published: Annotated[
        str | None,
        typer.Option(metavar="CSV", help="Numbers of others for the same cells, drawn as hollow diamonds."),
    ] = None,
) -> None:
    """Turn results of the benchmark into figures, one HTML page and Markdown tables."""
    from rich.console import Console

    from graphbam.benchmarks.report import write_report

    files = write_report(runs, out, published=published)
    console = Console(highlight=False, soft_wrap=True)
    width = max(len(str(path)) for path in files)
    for path, what in files.items():
        console.print(f"[bold]{str(path).ljust(width)}[/bold]  [dim]{what}[/dim]")
