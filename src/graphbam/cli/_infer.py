"""`graphbam infer`: a table, or a folder of tables, to graphs, reports and pictures."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import io
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbam.errors import ConfigError, GraphbamError, Setting
from graphbam.inference.settings import flat_fields
from graphbam.machine.disk import take_path
from graphbam.machine.helper import Helper

if TYPE_CHECKING:
    from graphbam.graphs.cut import Cut
    from graphbam.result import Failure, Result

PIPE = "-"
"""Stands for a table that is piped in."""

DESCRIPTORS = "/dev", "/proc"
"""Where files are, such as /dev/stdin, that are others in another process."""

SMALL_FILE = 2**24
"""Bytes up to which the helper reads a table: what it has read is in memory twice for a while."""

NO_PICTURE = "no graph.png, since matplotlib or mini-racer is missing; run: pip install 'graphbam[plot]'"


def _take_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each setting of `infer` in place of its ``**settings``; knowledge is told apart."""
    plain = inspect.signature(command, eval_str=True)
    own = [p.replace(kind=p.KEYWORD_ONLY) for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [_as_option(field) for field in flat_fields() if field.name not in plain.parameters]
    ordered = [*own[:2], *options, *own[2:]]  # what is inferred and where to, then how, then what is printed
    setattr(command, "__signature__", plain.replace(parameters=ordered))  # noqa: B010 (functions have none)
    return command


def _as_option(field: dataclasses.Field[Any]) -> inspect.Parameter:
    """A flag, a number, a word, or, where the default is empty, words that may be repeated."""
    kind, about = type(field.default), field.metadata["about"]
    if field.default is None:
        word = Annotated[str | None, typer.Option(metavar="NAME", help=about)]
        return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=word)
    if kind is tuple:
        option = Annotated[list[str], typer.Option(metavar="NAME", help=f"{about.rstrip('.')}; repeatable.")]
        return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=[], annotation=option)
    names = (f"--{field.name.replace('_', '-')}",) if kind is bool else ()
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[kind, typer.Option(*names, help=about)],
    )


@_take_settings
def infer(
    table: Annotated[
        str,
        typer.Argument(help="A table (csv, xlsx, parquet …), a folder of them, - for piped input, or sachs or crops."),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")],
    cpdag: Annotated[bool, typer.Option("--cpdag/--no-cpdag", help="Directions, or links only.")] = True,
    objective: Annotated[
        str,
        typer.Option(help="links: all links of the cut, directed. shd: without those of doubtful direction."),
    ] = "links",
    threshold: Annotated[float | None, typer.Option(help="Smallest probability of a link in the graph.")] = None,
    fdr: Annotated[float | None, typer.Option(help="False-discovery target for links instead.")] = None,
    knowledge: Annotated[str | None, typer.Option(metavar="JSON", help="Prior knowledge in a file.")] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option("--forbid", "--forbidden", metavar="'A -- B'", help="No such link; repeatable."),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", "--required", metavar="'A -> B'", help="A certain link; repeatable."),
    ] = None,
    tiers: Annotated[str | None, typer.Option(metavar="'A, B | C'", help="Time order, earliest first.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    **settings: Any,
) -> None:
    """Infer the graph of a table: edges.csv, graph.json, graph.graphml, graph.dot, report.html and graph.png.

    With directions it is a CPDAG, arrows where the data decide and plain links where they do not; see arrows.csv, and
    dag.csv for the best guess at all of them.

    Exit codes: 0 all is well; 1 some tables of a folder failed, the others are written; 2 wrong usage or unusable
    input, or all tables of a folder failed: nothing is written.
    """
    mask = Path(settings["interventions"] or "")
    if mask.is_file():
        settings["interventions"] = mask
    settings |= {"knowledge": knowledge, "forbidden": forbid or (), "required": require or ()}
    settings |= {"tiers": _read_tiers(tiers)} | ({} if cpdag else {"directions": "none"})
    source, folder = _find_source(table), take_path(out)
    _check_out(folder, [source, *([Path(knowledge)] if knowledge else []), *([mask] if mask.is_file() else [])])
    with Helper() as helper:
        with _progress(quiet or as_json) as progress:
            cut = _read_cut(objective, threshold, fdr)
            answers = _infer_all(source, folder, settings, cut, progress, helper)
        write = _try_to_write if source.is_dir() else _write
        reports = [write(answer, place, cut, helper) for place, answer in answers]
    _print(reports, is_folder=source.is_dir(), cut=cut, quiet=quiet, as_json=as_json)
    failed = ["error" in report for report in reports]
    if any(failed):
        raise typer.Exit(2 if all(failed) else 1)


def _read_tiers(text: str | None) -> list[list[str]] | None:
    """Read ``"age, sex | dose | effect"``."""
    if text is None:
        return None
    return [[name.strip() for name in tier.split(",") if name.strip()] for tier in text.split("|")]


def _check_out(out: Path, read: list[Path]) -> None:
    """Refuse folders that cannot be written to, or only by losing what is `read`."""
    from graphbam.output.files import OUTPUTS, check_folder

    if str(out) == PIPE:
        raise ConfigError(
            "-o - does not name a folder, and the outputs are several files. Choose a name, as in -o out."
        )
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file; the outputs need a folder. Choose another name with -o.")
    outputs = [(out / name).resolve() for name in OUTPUTS]
    if lost := next((path for path in read if path.resolve() in outputs), None):
        raise ConfigError(f"{lost} is read, and a file of that name is written there. Choose another folder with -o.")
    if not read[0].is_dir():  # then every table has a folder of its own
        check_folder(out)


def _read_cut(objective: Any, threshold: float | None, fdr: float | None) -> Cut:
    """What decides which links there are; refuses the impossible before the work, not after it."""
    from graphbam.graphs.cut import Cut

    return Cut(threshold, fdr, objective)


def _find_source(table: str) -> Path:
    from graphbam.tables.examples import EXAMPLES, example_path

    path = take_path(table, "the path of the table").expanduser()
    return example_path(table) if table in EXAMPLES and not path.exists() else path


# ── the work ──────────────────────────────────────────────────────────────────────────────────────────────


def _infer_all(
    source: Path,
    out: Path,
    settings: dict[str, Any],
    cut: Cut,
    progress: Callable[[float, str], None] | bool,
    helper: Helper,
) -> list[tuple[Path, Result | Failure]]:
    """Answers with the folders they belong into; the helper reads a table and gets ready to draw meanwhile."""
    import graphbam as gb
    from graphbam.output import figures

    if figures.can_draw():
        helper.begin(figures.rehearse)
    if not source.is_dir():
        wait = _begin_to_read(source, settings, helper)
        infer = gb.infer  # torch is loaded here
        data = wait() if cut.objective == "links" else _read_narrow(wait(), cut, settings)
        return [(out, infer(data, progress=progress, **settings))]
    from graphbam.tables.read import find_tables

    tables = find_tables(source)
    folders = [out / name for name in _unique_stems(tables)]
    return list(zip(folders, gb.infer_many(tables, progress=progress, **settings), strict=True))


def _begin_to_read(source: Path, settings: dict[str, Any], helper: Helper) -> Callable[[], Any]:
    """The table as the helper reads it, or what `infer` is to read: a large file, or what this process alone has."""
    from graphbam.inference.reading import read_source
    from graphbam.inference.settings import PARTS, read_settings

    if str(source) == PIPE:
        return _open_pipe
    is_own = any(map(source.absolute().is_relative_to, DESCRIPTORS))
    if is_own or not source.is_file() or source.stat().st_size > SMALL_FILE:
        return lambda: source
    about = {name: value for name, value in settings.items() if name not in {"knowledge", *PARTS}}
    return helper.begin(read_source, source, read_settings(about))


def _read_narrow(data: Any, cut: Cut, settings: dict[str, Any]) -> Any:
    """The table, if the objective can be had: the answer for a wide one has no matrix of all pairs."""
    from graphbam.inference.journey import MATRIX_UP_TO
    from graphbam.inference.reading import read_source
    from graphbam.inference.settings import read_settings

    table = read_source(data, read_settings(settings))
    if table.shape[1] > MATRIX_UP_TO and settings["blocks"] != "never" and settings["directions"] != "none":
        raise ConfigError(
            *(Setting("objective", cut.objective), f" weighs all pairs of up to {MATRIX_UP_TO} columns, and "),
            f"{table.source} has {table.shape[1]}. Leave it out, or leave out columns by ",
            *(Setting("drop"), "."),
        )
    return table


def _open_pipe() -> io.BytesIO:
    """What is piped in, as an open file with a name."""
    if sys.stdin.isatty():
        raise ConfigError("nothing is piped in: `-` stands for that, as in `cat cells.csv | graphbam infer - -o out`.")
    table = io.BytesIO(sys.stdin.buffer.read())
    table.name = "standard input"
    return table


def _unique_stems(tables: list[Path]) -> list[str]:
    """Names without suffixes; with them where two would be the same, also to the eyes of macOS and Windows.

    Examples
    --------
    >>> _unique_stems([Path("a.csv"), Path("a.tsv"), Path("A_tsv.csv"), Path("b.csv.gz")])
    ['a_csv', 'a_tsv_2', 'A_tsv', 'b']
    """
    from graphbam.tables.formats import find_suffix

    stems = [path.name[: path.name.lower().rfind(find_suffix(path))] or path.name for path in tables]
    counts = Counter(map(str.lower, stems))
    taken, names = {stem for stem, count in counts.items() if count == 1}, []
    for stem, path in zip(stems, tables, strict=True):
        whole = path.name.replace(".", "_")
        longer = itertools.chain([whole], (f"{whole}_{k}" for k in itertools.count(2)))
        is_alone = counts[stem.lower()] == 1
        names.append(stem if is_alone else next(name for name in longer if name.lower() not in taken))
        taken.add(names[-1].lower())
    return names


def _try_to_write(answer: Result | Failure, folder: Path, cut: Cut, helper: Helper) -> dict[str, Any]:
    """`_write` for one table of many: what goes wrong is noted, the others go on."""
    try:
        return _write(answer, folder, cut, helper)
    except GraphbamError as error:
        return {"source": answer.source, "error": error.say(Setting.as_option)}


def _write(answer: Result | Failure, folder: Path, cut: Cut, helper: Helper) -> dict[str, Any]:
    """Write all files of one answer, all of them or none."""
    from graphbam.output import figures
    from graphbam.output.files import save_outputs
    from graphbam.result import Failure

    if isinstance(answer, Failure):
        return {"source": answer.source, "error": answer.error.say(Setting.as_option)}
    files = save_outputs(answer, folder, cut, functools.partial(helper.begin, figures.save_plot))
    notes = [] if figures.can_draw() else [NO_PICTURE]
    return {"source": answer.source, "result": answer, "files": files, "notes": notes}


@contextlib.contextmanager
def _progress(is_silent: bool) -> Iterator[Callable[[float, str], None] | bool]:
    """A bar on stderr, gone when the work is done; nothing when stderr is not a terminal."""
    if is_silent or not sys.stderr.isatty():
        yield False
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("loading", total=1.0)
        yield lambda share, sentence: bar.update(task, completed=share, description=sentence)


# ── what was found ────────────────────────────────────────────────────────────────────────────────────────


def _print(reports: list[dict[str, Any]], *, is_folder: bool, cut: Cut, quiet: bool, as_json: bool) -> None:
    failed = [report for report in reports if "error" in report]
    for report in failed:
        where = "" if report["source"] in report["error"] else f"{report['source']}: "
        print(f"error: {where}{' '.join(report['error'].split())}", file=sys.stderr)
    if quiet and not as_json:
        return
    from graphbam.cli import _summary  # with rich, which takes a while to load

    if as_json:
        tables = [_summary.to_dict(report, cut) for report in reports]
        print(json.dumps({"tables": tables} if is_folder else tables[0], ensure_ascii=False, indent=1))
    else:
        for report in reports:
            if "error" not in report:
                _summary.show(report, cut, is_brief=is_folder)
        if is_folder:
            _summary.show_total(len(reports), len(failed))
    for note in {note for report in reports for note in report.get("notes", ())}:
        if not quiet:
            print(f"note: {note}", file=sys.stderr)
