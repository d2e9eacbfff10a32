"""The benchmark: methods × cases × trials, each fit in a process of its own, one row each, resumable at any point."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphbam.benchmarks import engines, store
from graphbam.benchmarks.cases import resolve_cases
from graphbam.benchmarks.methods import resolve_methods
from graphbam.benchmarks.plan import Entry, Forecast, Timeouts, is_open, make_plan
from graphbam.benchmarks.process import Limits
from graphbam.benchmarks.store import Journal, Row, Settings
from graphbam.benchmarks.tables import draw_problem
from graphbam.benchmarks.tasks import Task
from graphbam.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Progress", "benchmark"]

RETRIABLE = ("error", "timeout", "memory", "skipped")


class Progress(NamedTuple):
    """Where a run stands after a fit."""

    done: int
    total: int
    row: Row
    seconds_left: float
    """Estimate for the fits that remain."""


Report = Callable[[Progress], None] | None


def benchmark(
    methods: Sequence[str] | None = None,
    cases: Sequence[str] | None = None,
    *,
    out: str | os.PathLike[str],
    trials: int | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    skip_larger: bool | None = None,
    retry: Iterable[str] = (),
    jobs: int = 1,
    engine: str = "local",
    scheduler: str | None = None,
    report: Report = None,
) -> pd.DataFrame:
    """Judge methods on the same tables; go on where an earlier call with the same folder was stopped.

    Parameters
    ----------
    methods : sequence of str, optional
        Names, ``"all"``, sets such as ``"quick"``, patterns, or ``"module:Class"`` for a method of one's own. None:
        those of the folder.
    cases : sequence of str, optional
        Suites, names such as ``"cosine-d50-m200"``, patterns, or folders of labelled tables. None: those of the folder.
    out : path
        The run folder: settings, journal, results.parquet and results.csv.
    trials : int, optional
        Tables of each simulated case, 5 unless the folder says otherwise.
    time_limit : float, optional
        Seconds one fit may take, 120 by default.
    memory_limit : float, optional
        MiB one fit may use, 4096 by default.
    skip_larger : bool, optional
        Whether a method that timed out is spared larger cases of the same family; yes by default.
    retry : iterable of str
        Do rows with these statuses again: error, timeout (and what was spared because of one), memory, skipped.
    jobs : int
        Fits at the same time. One by default: times are then undisturbed.
    engine : {"local", "dask"}
        This machine, or a Dask cluster.
    scheduler : str, optional
        Address of the Dask scheduler; None: a cluster of `jobs` processes is made here.
    report : callable, optional
        Called with a `Progress` after every fit.

    Returns
    -------
    DataFrame
        All rows of the folder; docs/benchmark.md explains the columns.

    Raises
    ------
    ConfigError
        Before anything runs: for unknown methods, cases or settings, for a folder made under other rules, and if its
        tables are no longer the same.
    """
    _check_machine(engine, scheduler, jobs)
    folder, statuses = Path(out), _check_retry(retry)
    asked = {"methods": _tuple(methods), "cases": _tuple(cases), "trials": trials, "time_limit": time_limit,
             "memory_limit": memory_limit, "skip_larger": skip_larger}  # fmt: skip
    settings = store.settle(folder, asked)
    plan = make_plan(resolve_cases(settings.cases), resolve_methods(settings.methods), settings.trials)
    with store.open_journal(folder) as journal:
        todo = [entry for entry in plan if is_open(journal.rows.get(entry.key()), statuses)]
        check_tables(journal, todo)
        store.write_settings(folder, settings)
        run = Run(settings, journal, todo, len(plan), report)
        try:
            if engine == "local":
                engines.run_on_this_machine(run.name, run.tasks(folder / store.MESSAGES), run.finish, jobs=jobs)
            elif todo:
                engines.run_on_dask(run.name, run.tasks(), run.finish, jobs=jobs, scheduler=scheduler)
        finally:
            frame = store.write_results(folder, journal.rows.values())
    return frame


def _tuple(words: Sequence[str] | None) -> tuple[str, ...] | None:
    if isinstance(words, str):
        return (words,)
    return None if words is None else tuple(words)


def _check_machine(engine: str, scheduler: str | None, jobs: int) -> None:
    """Refuse what cannot work before the first fit."""
    if engine not in ("local", "dask"):
        raise ConfigError(f"engine={engine!r} is unknown; choose local or dask")
    if scheduler is not None and engine != "dask":
        raise ConfigError(f"scheduler={scheduler!r} is an address for Dask; add engine dask, or leave it out")
    if jobs < 1:
        raise ConfigError(f"jobs={jobs} is too few; use at least 1")
    if os.name != "posix":
        raise ConfigError(f"the benchmark runs on Linux and macOS, not on {sys.platform}: it ends fits with signals")
    for package in ("psutil", "pyarrow", "joblib" if engine == "local" else "distributed"):
        if importlib.util.find_spec(package) is None:
            raise ConfigError(
                f"the benchmark needs {package}, which is not installed: pip install 'graphbam[benchmark]'"
            )


def _check_retry(retry: Iterable[str]) -> frozenset[str]:
    statuses = frozenset([retry] if isinstance(retry, str) else retry)
    if strange := statuses - set(RETRIABLE):
        raise ConfigError(f"retry={sorted(strange)[0]!r} is no status to do again; choose from {', '.join(RETRIABLE)}")
    return statuses


def check_tables(journal: Journal, todo: Iterable[Entry]) -> None:
    """Refuse to go on if a table is no longer what the rows of the folder were made with."""
    known = {(name, trial): row["fingerprint"] for (name, trial, _), row in journal.rows.items()}
    for case, trial in dict.fromkeys((entry.case, entry.trial) for entry in todo):
        before = known.get((case.name, trial))
        if before is not None and before != draw_problem(case, trial).fingerprint():
            raise ConfigError(
                f"the table of {case.name}, trial {trial}, is not the one that earlier rows were made with: the files, "
                "the release or the processor have changed. Choose another folder, so that all methods see the same"
            )


class Run:
    """The fits of one call, from the first to the last."""

    def __init__(self, settings: Settings, journal: Journal, todo: list[Entry], total: int, report: Report):
        self.settings, self.journal, self.todo, self.report = settings, journal, todo, report
        self.total, self.done = total, total - len(todo)
        self.name, self.start = uuid.uuid4().hex, time.monotonic()
        again = {entry.key() for entry in todo}
        rows = [row for key, row in journal.rows.items() if key not in again]
        self.timeouts, self.forecast = Timeouts(rows), Forecast(todo, rows, settings.time_limit)

    def tasks(self, log: Path | None = None) -> Iterator[Task]:
        """Tasks in order, each made when its turn comes, so that it knows what the ones before it taught."""
        limits = Limits(self.settings.time_limit, self.settings.memory_limit)
        for case, trial, method in self.todo:
            spared = self.timeouts.find(case, method.name) if self.settings.skip_larger else None
            yield Task(case, trial, method, draw_problem(case, trial), limits, self.name, log, spared)

    def finish(self, row: Row) -> None:
        """Write a row down, learn from it, and say where the run stands."""
        self.journal.append(row)
        self.timeouts.note(row)
        self.forecast.note(row)
        self.done += 1
        if self.report:
            left = self.forecast.seconds(time.monotonic() - self.start)
            self.report(Progress(self.done, self.total, row, left))
