"""The command line: thin, one file per command; everything heavy loads inside the commands.

Exit codes: 0 all is well; 1 some tables of a folder failed, the others are written; 2 wrong usage or unusable input,
nothing is written.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from typing import Annotated

import typer

from graphbam.cli._benchmark import benchmark
from graphbam.cli._benchmark_report import report
from graphbam.cli._infer import infer
from graphbam.cli._serve import serve
from graphbam.cli._simulate import simulate
from graphbam.cli._train import fine_tune, train
from graphbam.cli._weights import weights
from graphbam.errors import GraphbamError, Setting

app = typer.Typer(
    name="graphbam",
    help="The graph of a table in one forward pass.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(infer)
app.command()(simulate)
app.command()(weights)
app.command()(serve)
app.command()(train)
app.command()(fine_tune)
app.command()(benchmark)
app.command("benchmark-report")(report)


GARBAGE_THRESHOLD = 1_000_000
"""New objects between two searches for garbage. Python's 700 are for programs that make less than torch's import does:
it makes hundreds of thousands that all stay, and searching through them again and again takes a third of a second."""


def run() -> None:
    """What `graphbam` on a prompt does: `main`, and an end at once.

    To take apart what torch has made, object by object, takes Python a tenth of a second; the machine takes the whole.
    """
    codes: list[object] = []
    atexit.register(_leave, codes)  # before all others, so that it is called last
    try:
        main()
    except SystemExit as end:
        codes.append(end.code or 0)
        raise


def _leave(codes: list[object]) -> None:
    """End the process with its exit code; one that failed is left to Python, which says why."""
    for code in codes:
        if isinstance(code, int):
            with contextlib.suppress(OSError):  # nobody reads any more, as Python will find too
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)


def main() -> None:
    """Run the command line; a user's mistake becomes one line on stderr and exit code 2."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # on busy cores, threads that spin take most of the time
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        app()
    except GraphbamError as error:
        print("error: " + " ".join(error.say(Setting.as_option).split()), file=sys.stderr)
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
