"""The folder of a run: one line per finished fit, safe against every kind of death, and the tidy table made from it.

=================  =======================================================================================
settings.json      what was asked for, and the rules that every row of the folder obeys
journal.jsonl      one line per finished fit, on disk before the next one counts as begun; the last of a key counts
results.parquet    the same as one tidy table, also as results.csv
messages.log       what the methods printed
=================  =======================================================================================
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from graphbam.errors import ConfigError
from graphbam.machine.disk import Note, refuse_others, replacing

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ADDED",
    "COLUMNS",
    "Journal",
    "Settings",
    "check_files",
    "open_journal",
    "settle",
    "tidy",
    "write_results",
    "write_settings",
]

Row = dict[str, Any]
Key = tuple[str, int, str]
"""Case, trial and method: what a row is about."""

COLUMNS = {
    "case": "string", "source": "string", "setting": "string", "mechanism": "string", "family": "string",
    "n_variables": "Int64", "n_samples": "Int64", "trial": "Int64", "method": "string", "kind": "string",
    "status": "string", "reason": "string", "seconds": "float64", "peak_mib": "float64", "skeleton_ap": "float64",
    "skeleton_f1": "float64", "skeleton_precision": "float64", "skeleton_recall": "float64",
    "skeleton_accuracy": "float64", "skeleton_shd": "Int64", "moral_ap": "float64", "moral_f1": "float64",
    "n_edges": "Int64", "n_found": "Int64", "cpdag_ap": "float64", "shd": "Int64", "empty_shd": "Int64",
    "arrow_precision": "float64", "arrow_recall": "float64", "directed_ap": "float64", "directed_auroc": "float64",
    "direction_right": "float64", "dag_shd": "Int64", "ancestor_distance": "float64", "hidden_auroc": "float64",
    "hidden_ap": "float64", "pair_score": "float64", "pair_weight": "float64", "package_version": "string",
    "graphbam_version": "string", "seed": "Int64", "hardware": "string", "fingerprint": "string",
}  # fmt: skip
"""Columns of the results with their types, in order; docs/benchmark.md explains each."""

ADDED = (
    "setting", "directed_ap", "directed_auroc", "direction_right", "dag_shd", "ancestor_distance", "hidden_auroc",
    "hidden_ap", "pair_score", "pair_weight",
)  # fmt: skip
"""Columns that joined later: results written before lack them, and are read as if they were empty."""

SETTINGS, JOURNAL, RESULTS, MESSAGES = "settings.json", "journal.jsonl", "results", "messages.log"

FILES = (SETTINGS, JOURNAL, f"{RESULTS}.parquet", f"{RESULTS}.csv", MESSAGES)
"""All that a run writes."""

NOTE = Note(SETTINGS, rb'^\{\s*"', FILES)
"""Where there are settings of a run, which were read by then, these files are its own."""


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run does, and under which rules."""

    methods: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    trials: int = 5
    """Tables of each simulated case."""
    time_limit: float = 120.0
    """Most seconds of one fit."""
    memory_limit: float = 4096.0
    """Most resident memory of one fit in MiB, interpreter, packages and child processes included."""
    skip_larger: bool = True
    """Whether a method that timed out is spared larger cases of the same family."""

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ConfigError(f"trials={self.trials} is too few; use at least 1")
        for name in ("time_limit", "memory_limit"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}={getattr(self, name)} must be positive")


RULES = ("time_limit", "memory_limit", "skip_larger")
"""Settings that all rows of a folder share. Methods, cases and trials may be added later."""


def settle(folder: Path, asked: Mapping[str, Any]) -> Settings:
    """Settings of a run: what is asked for, else what the folder holds, else the defaults.

    Parameters
    ----------
    folder : Path
        The run folder; it need not exist.
    asked : mapping
        Fields of `Settings`; None: not asked for.

    Raises
    ------
    ConfigError
        If the folder was made under other rules, or its settings cannot be read.
    """
    stored = _read_settings(folder / SETTINGS)
    given = {name: value for name, value in asked.items() if value is not None}
    settings = Settings(**(stored | given))
    changed = [name for name in RULES if name in stored and stored[name] != getattr(settings, name)]
    if changed:
        found = "; ".join(f"{name}={stored[name]}, now {getattr(settings, name)}" for name in changed)
        raise ConfigError(
            f"{folder} holds rows made under other rules ({found}); keep to them, or choose another folder"
        )
    return settings


def check_files(folder: Path) -> None:
    """Refuse a folder without settings of a run in which files of others would be written over."""
    refuse_others(folder, FILES, NOTE)


def _read_settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        Settings(**stored)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is damaged ({error}); mend it, or choose another folder") from None
    return {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}


def write_settings(folder: Path, settings: Settings) -> None:
    """Keep the settings of a run in its folder."""
    text = json.dumps(dataclasses.asdict(settings), indent=1) + "\n"
    with replacing(folder / SETTINGS) as path:
        path.write_text(text, encoding="utf-8")


# ── journal ─────────────────────────────────────────────────────────────────────────────────────────────────


class Journal:
    """Rows of a run, in memory and on disk. Made by `open_journal`."""

    def __init__(self, file: BinaryIO):
        self.file = file
        self.rows: dict[Key, Row] = {key_of(row): row for row in _read_lines(file)}

    def append(self, row: Row) -> None:
        """Add a row; when this returns, it is on disk. Of two rows with the same key the later one counts."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
        self.file.write(line.encode())
        self.file.flush()
        os.fsync(self.file.fileno())
        self.rows[key_of(row)] = row


def key_of(row: Row) -> Key:
    """What a row is about."""
    return row["case"], row["trial"], row["method"]


@contextlib.contextmanager
def open_journal(folder: Path) -> Iterator[Journal]:
    """Read the rows of a run and go on writing; nobody else can until the block ends or the process dies.

    A last line without its end was torn by a crash: it is cut off, and its fit counts as not done.

    Raises
    ------
    ConfigError
        If another process writes to the folder, or a line inside the journal is damaged.
    """
    import fcntl  # not on every system, and only needed here

    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / JOURNAL).open("a+b")
    except OSError as error:
        raise ConfigError(f"cannot write to {folder}: {error.strerror}; choose another folder") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # falls with the process, however it dies
        except OSError:
            raise ConfigError(f"another run is writing to {folder}; wait for it, or choose another folder") from None
        yield Journal(file)


def _read_lines(file: BinaryIO) -> list[Row]:
    file.seek(0)
    content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        file.truncate(len(whole))
    rows = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            rows.append(json.loads(line))
            key_of(rows[-1])
        except (ValueError, TypeError, KeyError):
            where = f"line {number} of {file.name}"
            raise ConfigError(f"{where} is damaged; delete that line to have its fit done again") from None
    return rows


# ── results ─────────────────────────────────────────────────────────────────────────────────────────────────


def tidy(rows: Iterable[Row]) -> pd.DataFrame:
    """One table of all rows, small cases first."""
    import pandas as pd

    frame = pd.DataFrame.from_records(list(rows), columns=list(COLUMNS)).astype(COLUMNS)
    order = ["n_variables", "n_samples", "case", "trial", "method"]
    return frame.sort_values(order, ignore_index=True)


def write_results(folder: Path, rows: Iterable[Row]) -> pd.DataFrame:
    """Write results.parquet and results.csv, each at once or not at all."""
    frame = tidy(rows)
    with replacing(folder / f"{RESULTS}.parquet") as path:
        frame.to_parquet(path, index=False)
    with replacing(folder / f"{RESULTS}.csv") as path:
        frame.to_csv(path, index=False)
    return frame
