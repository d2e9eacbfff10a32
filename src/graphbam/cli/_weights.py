"""`graphbam weights`: what is shipped, and the model card of each."""

from __future__ import annotations

import json
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from graphbam.nn.weights import Header


def weights(
    name: Annotated[str | None, typer.Argument(help="Show the model card of these weights (a name or a file).")] = None,
) -> None:
    """List the weights that come with the package, or show the model card of one."""
    if name is None:
        _show_all()
    else:
        _show_one(name)


def _show_all() -> None:
    from rich.console import Console
    from rich.table import Table

    from graphbam.nn.weights import list_weights

    names = list_weights()
    if not names:
        typer.echo("no weights come with this copy of graphbam; pass a file with --weights", err=True)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("name", "size", "parameters", "training", "checksum"):
        table.add_column(title, no_wrap=True)
    for name in names:
        table.add_row(name, *_describe(_data() / f"{name}.safetensors"))
    Console(highlight=False).print(table)


def _describe(path: Path) -> tuple[str, str, str, str]:
    from graphbam.nn.weights import read_tensors

    tensors, header = read_tensors(path)
    n_parameters = sum(tensor.numel() for tensor in tensors.values())
    size = f"{path.stat().st_size / 1e6:.1f} MB"
    return size, f"{n_parameters:,}", summarise_training(header), (header.checksum or "")[:8]


def summarise_training(header: Header) -> str:
    """One line on how weights were trained, from their header, runs that they were started from included.

    Examples
    --------
    >>> from graphbam.nn.weights import Header, RunProgress
    >>> summarise_training(Header(progress=RunProgress(step=1200, tables=2_100_000, seconds=7300)))
    '2.1 million tables, 1,200 steps, 2.0 h'
    """
    if header.progress is None:
        return "not stated"
    effort = header.progress.total()
    tables = f"{effort.tables / 1e6:.1f} million" if effort.tables >= 1e6 else f"{effort.tables:,}"
    time = f"{effort.seconds / 3600:.1f} h" if effort.seconds >= 3600 else f"{effort.seconds / 60:.0f} min"
    return f"{tables} tables, {effort.step:,} steps, {time}"


def _show_one(name: str) -> None:
    card = _data() / f"{name}.md"
    if card.is_file() and (_data() / f"{name}.safetensors").is_file():  # not the notes of example tables
        _show_card(card.read_text(encoding="utf-8"))
        return
    from graphbam.nn.weights import find_weights, read_tensors

    _, header = read_tensors(find_weights(name))
    shown = {key: value for key, value in header.to_dict().items() if key != "progress"}
    typer.echo(f"{name}: {summarise_training(header)}\n" + json.dumps(shown, indent=1))


def _show_card(text: str) -> None:
    """Rendered on a terminal, as it is in a pipe."""
    if not sys.stdout.isatty():
        typer.echo(text, nl=not text.endswith("\n"))
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))


def _data() -> Path:
    return Path(str(resources.files("graphbam") / "weights"))
