"""Files that are written whole or not at all, and folders: which files there are our own, which somebody else's.

Whatever fills a folder leaves a note in one of its files, near the beginning: ``"files": […]``, the names of all that
it wrote. Such files are replaced, or removed where the next run has no such file; all others are left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from graphbam.errors import ConfigError

DRAFT = ".part"
"""Suffix of what is not whole yet."""

HEAD_BYTES = 2**16
"""Where a note is looked for: results may be long."""

_FILES = re.compile(rb'"files": (\[[^\]]*\])')


class Note(NamedTuple):
    """How a run knows its own files again."""

    name: str
    """File that holds the note."""
    pattern: bytes
    """Regular expression for what that file begins with or, in a page, has in its head."""
    older: tuple[str, ...] = ()
    """Files that belong to a note without a list, as older releases wrote it."""


def sign(values: Mapping[str, Any], files: Iterable[str]) -> dict[str, Any]:
    """Put a list of files behind the format of what is stored.

    Examples
    --------
    >>> sign({"format": "graphbam-world", "seed": 3}, ["data.csv"])
    {'format': 'graphbam-world', 'files': ['data.csv'], 'seed': 3}
    """
    return {"format": values["format"], "files": list(files), **values}


def list_own(folder: Path, *notes: Note) -> frozenset[str]:
    """Files of a folder that an earlier run wrote, by what the notes there say."""
    return frozenset(name for note in notes for name in _read_note(folder, note))


def _read_note(folder: Path, note: Note) -> Iterable[str]:
    try:
        with (folder / note.name).open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return ()
    if not re.search(note.pattern, head):
        return ()
    listed = _FILES.search(head)
    return note.older if listed is None else filter(_stays_inside, json.loads(listed[1]))


def _stays_inside(name: str) -> bool:
    """Whether a name is one of a file in the folder: what a note says must not lead elsewhere."""
    return not Path(name).is_absolute() and ".." not in Path(name).parts


def refuse_others(folder: Path, names: Iterable[str], *notes: Note) -> None:
    """Refuse to write files of these names where somebody else's would be lost; empty ones hold nothing to lose.

    Raises
    ------
    ConfigError
        With the first of them.
    """
    own = list_own(folder, *notes)
    if found := next((name for name in names if name not in own and holds_something(folder / name)), None):
        raise ConfigError(
            f"{folder / found} is there already, and nothing says that graphbam wrote it: it would be lost. Choose "
            "another folder, or move the file."
        )


def holds_something(path: Path) -> bool:
    """Whether there is a file that is not empty."""
    return path.is_file() and path.stat().st_size > 0


def check_file(path: Path) -> None:
    """Refuse, before long work, a file that could not be written after it; nothing is made."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder where a file must go. Name a file in it, or choose another place.")
    above = next(place for place in path.absolute().parents if place.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        why = "Permission denied" if above.is_dir() else f"{above} is a file, not a folder"
        raise ConfigError(f"{path} cannot be written: {why}. Choose another place.")


def make_folder(folder: Path) -> Path:
    """Make a folder, and those above it, where they are missing."""
    with clear_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft beside a file, which takes its place when the block ends, and is gone if the block fails.

    No other process has a draft of this name: two may write the same file.
    """
    draft = path.with_name(f".graphbam-{secrets.token_hex(4)}{DRAFT}")
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def filling(folder: Path, *notes: Note) -> Iterator[Path]:
    """A draft of what a folder is to hold: when the block ends, its files take the place of those of an earlier run.

    All of them do, or, if anything fails, the folder is as it was. It is made if missing; files of others stay.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file where a folder must go. Choose another name.")
    with clear_errors(folder):
        place = folder.resolve()  # so that "." has a name and a parent
        above = make_folder(place if place.exists() else place.parent)
        draft = above / f".graphbam-{secrets.token_hex(4)}{DRAFT}"
        draft.mkdir()
        try:
            yield draft
            _move_into(draft, place, notes)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _move_into(draft: Path, folder: Path, notes: Iterable[Note]) -> None:
    """Put the files of a draft into their folder in place of earlier ones; if one cannot be, all is as it was."""
    if not folder.exists():
        draft.rename(folder)
        return
    new = [path.relative_to(draft).as_posix() for path in draft.rglob("*") if path.is_file()]
    old = [name for name in {*list_own(folder, *notes), *new} if os.path.lexists(folder / name)]
    blocked = next((name for name in old if (folder / name).is_dir()), None)
    if blocked:
        raise ConfigError(f"{folder / blocked} is a folder where a file must go. Remove it, or choose another folder.")
    away = draft / "old"
    try:
        for name in old:
            _move(folder / name, away / name)
        for name in new:
            _move(draft / name, folder / name)
    except BaseException:
        for name in new:
            if not (draft / name).exists():
                (folder / name).unlink(missing_ok=True)
        for name in old:
            if os.path.lexists(away / name):
                os.replace(away / name, folder / name)
        raise


def _move(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, to)


@contextlib.contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Say in one sentence why a path cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"{path} cannot be written: {reason}. Choose another place.") from None


def take_path(path: str | os.PathLike[str], what: str = "the path to write to") -> Path:
    """A path as it was given; an empty one, as of a shell variable that is not set, would mean the present folder.

    Examples
    --------
    >>> take_path("")
    Traceback (most recent call last):
    graphbam.errors.ConfigError: the path to write to is empty. Name one, or write . for the present folder.
    """
    if not os.fspath(path):
        raise ConfigError(f"{what} is empty. Name one, or write . for the present folder.")
    return Path(path)
