"""The benchmark: methods × cases × trials, each fit in a process of its own, one row per fit, resumable at any point.

`benchmark` makes the plan, and hands its fits as jobs to an engine: this machine through joblib, or a cluster through
Dask. Every finished job is a row of the journal before the next one is drawn, so that what a row teaches (a time-out,
say) is known to the jobs that follow.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import importlib.util
import itertools
import os
import sys
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphbam.benchmarks import store
from graphbam.benchmarks.baselines import Method, resolve_methods
from graphbam.benchmarks.cases import Case, Problem, derive_seed, draw_problem, resolve_cases
from graphbam.benchmarks.scores import score_answer
from graphbam.benchmarks.store import COLUMNS, Journal, Key, Row, Settings
from graphbam.benchmarks.worker import About, Limits, Reply, Request, dismiss, hire
from graphbam.errors import ConfigError, GraphbamError
from graphbam.graphs.graph import skeleton
from graphbam.machine.disk import take_path

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client, Future

__all__ = ["Standing", "benchmark"]

RETRIABLE = ("error", "timeout", "memory", "skipped")


class Standing(NamedTuple):
    """Where a run stands after a fit."""

    done: int
    total: int
    row: Row
    seconds_left: float
    """Estimate for the fits that remain."""


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
    progress: Callable[[Standing], None] | None = None,
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
    progress : callable, optional
        Called with a `Standing` after every fit.

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
    from graphbam.nn.threads import threads

    _check_machine(engine, scheduler, jobs)
    folder, statuses = take_path(out), _check_retry(retry)
    asked = {"methods": _tuple(methods), "cases": _tuple(cases), "trials": trials, "time_limit": time_limit,
             "memory_limit": memory_limit, "skip_larger": skip_larger}  # fmt: skip
    settings = store.settle(folder, asked)
    store.check_files(folder)
    plan = make_plan(resolve_cases(settings.cases), resolve_methods(settings.methods), settings.trials)
    with threads(1), store.open_journal(folder) as journal:  # as every table is drawn: set once
        todo = [fit for fit in plan if is_open(journal.rows.get(fit.key()), statuses)]
        check_tables(journal, todo)
        store.write_settings(folder, settings)
        run = Run(settings, journal, todo, len(plan), progress)
        try:
            if engine == "local":
                run_on_this_machine(run.name, run.draw_jobs(folder / store.MESSAGES), run.finish, jobs=jobs)
            elif todo:
                run_on_dask(run.name, run.draw_jobs(), run.finish, jobs=jobs, scheduler=scheduler)
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


def check_tables(journal: Journal, todo: Iterable[Fit]) -> None:
    """Refuse to go on if a table is no longer what the rows of the folder were made with."""
    known = {(name, trial): row["fingerprint"] for (name, trial, _), row in journal.rows.items()}
    for case, trial in dict.fromkeys((fit.case, fit.trial) for fit in todo):
        before = known.get((case.name, trial))
        if before is not None and before != draw_problem(case, trial).fingerprint():
            raise ConfigError(
                f"the table of {case.name}, trial {trial}, is not the one that earlier rows were made with: the files, "
                "the release or the processor have changed. Choose another folder, so that all methods see the same"
            )


class Run:
    """The fits of one call, from the first to the last."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        todo: list[Fit],
        total: int,
        progress: Callable[[Standing], None] | None,
    ):
        self.settings, self.journal, self.todo, self.progress = settings, journal, todo, progress
        self.total, self.done = total, total - len(todo)
        self.name, self.start = uuid.uuid4().hex, time.monotonic()
        again = {fit.key() for fit in todo}
        rows = [row for key, row in journal.rows.items() if key not in again]
        self.timeouts, self.forecast = Timeouts(rows), Forecast(todo, rows, settings.time_limit)

    def draw_jobs(self, log: Path | None = None) -> Iterator[Job]:
        """Jobs in order, each made when its turn comes, so that it knows what the ones before it taught."""
        limits = Limits(self.settings.time_limit, self.settings.memory_limit)
        for fit in self.todo:
            spared = self.timeouts.find(fit.case, fit.method.name) if self.settings.skip_larger else None
            yield Job(fit, draw_problem(fit.case, fit.trial), limits, self.name, log, spared)

    def finish(self, row: Row) -> None:
        """Write a row down, learn from it, and say where the run stands."""
        self.journal.append(row)
        self.timeouts.note(row)
        self.forecast.note(row)
        self.done += 1
        if self.progress:
            left = self.forecast.seconds(time.monotonic() - self.start)
            self.progress(Standing(self.done, self.total, row, left))


# ── the plan: which fits, in which order, which need not be tried, how long they will take ──────────────────


SPARED = "timed out at "
"""How the reason of a row begins that was not tried because a smaller case took too long."""

WIDTHS = (10, 20, 50, 100)
"""Numbers of variables at which a class of widths ends."""

OVERHEAD = 0.2
"""Seconds that every fit takes beside its own."""

GROWTH = 2.0
"""Power of the number of variables with which seconds are guessed to grow, until they are known."""


class Fit(NamedTuple):
    """A method on one table: what a row of the results is about."""

    case: Case
    trial: int
    method: Method

    def key(self) -> Key:
        return self.case.name, self.trial, self.method.name

    def seed(self) -> int:
        """What the method gets as its seed: the same for all methods, and unrelated to the seed of the table."""
        return derive_seed("fit", self.case.name, self.trial)


def make_plan(cases: Iterable[Case], methods: Iterable[Method], trials: int) -> list[Fit]:
    """All fits, small tables first, and within a class of widths one method after the other.

    A process serves one method: this way it does so for as long as possible, and a method meets a larger case only
    after all smaller ones.
    """
    ordered = sorted(cases, key=lambda case: (case.n_variables, case.n_samples, case.name))
    classes = itertools.groupby(ordered, lambda case: bisect.bisect_left(WIDTHS, case.n_variables))
    chosen = list(methods)
    return [
        Fit(case, trial, method)
        for alike in [list(group) for _, group in classes]
        for method in chosen
        for case in alike
        for trial in range(case.count_trials(trials))
    ]


def is_open(row: Row | None, retry: frozenset[str]) -> bool:
    """Whether a fit has still to be done, given its row if it has one.

    Examples
    --------
    >>> spared = {"status": "skipped", "reason": "timed out at d=50"}
    >>> is_open(None, frozenset()), is_open(spared, frozenset()), is_open(spared, frozenset({"timeout"}))
    (True, False, True)
    """
    if row is None:
        return True
    is_spared = row["status"] == "skipped" and str(row["reason"]).startswith(SPARED)
    return row["status"] in retry or (is_spared and "timeout" in retry)


class Timeouts:
    """Which cases are too large for which method."""

    def __init__(self, rows: Iterable[Row]):
        self.rows: list[Row] = []
        for row in rows:
            self.note(row)

    def note(self, row: Row) -> None:
        """Remember a row if it is a time-out."""
        if row["status"] == "timeout":
            self.rows.append(row)

    def find(self, case: Case, method: str) -> str | None:
        """Why a case need not be tried: the method timed out on a smaller one of the same family."""
        for row in self.rows:
            if row["method"] == method and row["family"] == case.family and row["source"] == case.source:
                small, large = (row["n_variables"], row["n_samples"]), (case.n_variables, case.n_samples)
                if small != large and small[0] <= large[0] and small[1] <= large[1]:
                    return f"{SPARED}d={small[0]}, M={small[1]}"
        return None


class Forecast:
    """How long the fits that remain will take, judged by those that are done.

    Work is the seconds of all fits together; how much of it is done in a second, on however many processes and beside
    whatever else, is measured.
    """

    def __init__(self, fits: Iterable[Fit], rows: Iterable[Row], limit: float):
        self.limit, self.work = limit, 0.0
        self.left = Counter((fit.method.name, fit.case.n_variables) for fit in fits)
        self.seen: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            self._learn(row)

    def note(self, row: Row) -> None:
        """Take a finished fit off the list, and learn from it."""
        self.left[row["method"], row["n_variables"]] -= 1
        self.work += self._learn(row)

    def _learn(self, row: Row) -> float:
        work = (row["seconds"] or 0.0) + OVERHEAD
        self.seen[row["method"]][row["n_variables"]].append(work)
        return work

    def seconds(self, elapsed: float) -> float:
        """Estimate for all that remain, `elapsed` seconds after the first fit was begun."""
        left = sum(count * self._expect(method, d) for (method, d), count in self.left.items())
        return left * elapsed / self.work if self.work else left

    def _expect(self, method: str, n_variables: int) -> float:
        """Mean of the method at this width, else scaled from the nearest it knows, else the mean of all methods."""
        known = self.seen.get(method)
        if not known:
            every = [value for widths in self.seen.values() for values in widths.values() for value in values]
            return sum(every) / max(len(every), 1)
        nearest = min(known, key=lambda d: abs(d - n_variables))
        mean = sum(known[nearest]) / len(known[nearest])
        return min((mean - OVERHEAD) * (n_variables / nearest) ** GROWTH + OVERHEAD, self.limit)


# ── a job: one fit, from table to row of results; the function that every engine runs ───────────────────────


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """A fit with all it needs. Holds the table itself, so that every machine of a cluster sees the same numbers."""

    fit: Fit
    problem: Problem
    limits: Limits
    run: str
    """Which run it belongs to."""
    log: Path | None = None
    """Where messages of the method go; None: nowhere."""
    spared: str | None = None
    """Why it is not tried at all."""


def execute(job: Job) -> Row:
    """Fit and score; never raises for what the method does."""
    if job.spared:
        return make_row(job, Reply("skipped", job.spared))
    case, trial, method = job.fit
    request = Request(
        f"{method.name} · {case.name} · trial {trial}", job.problem.x_md, job.fit.seed(), job.problem.set_md
    )
    about, reply = hire(job.run, method.word, job.log).fit(request, job.limits)
    return make_row(job, reply, about)


def make_row(job: Job, reply: Reply, about: About | None = None) -> Row:
    """A row of the results, with every column."""
    (case, trial, method), row = job.fit, dict.fromkeys(COLUMNS)
    scores, status, reason = {}, reply.status, reply.reason
    if reply.answer is not None:
        try:
            scores = score_answer(reply.answer, job.problem, method.kind)
        except GraphbamError as error:
            status, reason = "error", f"{type(error).__name__}: {error}"
    row |= {
        "case": case.name, "source": case.source, "setting": job.problem.setting, "mechanism": case.mechanism,
        "family": case.family,
        "n_variables": case.n_variables, "n_samples": case.n_samples, "trial": trial, "method": method.name,
        "kind": method.kind, "status": status, "reason": reason, "seconds": _round(reply.seconds, 6),
        "peak_mib": _round(reply.peak_mib, 1), "n_edges": int(skeleton(job.problem.adjacency).sum()) // 2,
        "seed": job.fit.seed(), "fingerprint": job.problem.fingerprint(),
    }  # fmt: skip
    return row | scores | (dataclasses.asdict(about) if about else {})


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


# ── engines: where jobs run ─────────────────────────────────────────────────────────────────────────────────


PATIENCE = 60
"""Seconds to wait for the first worker of a cluster."""


def run_on_this_machine(run: str, todo: Iterator[Job], finish: Callable[[Row], None], *, jobs: int) -> None:
    """Run jobs, `jobs` at a time; each thread of the pool only waits for its process."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    lock, stopping = threading.Lock(), threading.Event()

    def step(job: Job) -> None:
        if stopping.is_set():
            return
        row = execute(job)
        with lock:
            if not stopping.is_set():  # a fit that was killed because the run ends has not failed
                finish(row)

    try:
        pool = Parallel(n_jobs=jobs, backend="threading", pre_dispatch="n_jobs", batch_size=1)
        pool(delayed(step)(job) for job in todo)
    finally:
        stopping.set()
        dismiss(run)


def run_on_dask(
    run: str, todo: Iterator[Job], finish: Callable[[Row], None], *, jobs: int, scheduler: str | None
) -> None:
    """Run jobs on the workers of a Dask scheduler, or of a cluster of `jobs` processes made for the occasion.

    Dask gives a job whose worker dies to another one; only its last result comes back.
    """
    from distributed import as_completed

    with _connect(scheduler, jobs) as client:
        waiting: dict[Future[Row], Job] = {}
        queue = as_completed()
        _submit(client, todo, waiting, queue)
        try:
            for future in queue:
                finish(_row_of(future, waiting.pop(future)))
                _submit(client, todo, waiting, queue)
        finally:
            client.cancel(list(waiting))
            client.run(dismiss, run)


@contextlib.contextmanager
def _connect(scheduler: str | None, jobs: int) -> Iterator[Client]:
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as stack:
        place: Any = scheduler
        if scheduler is None:
            local = LocalCluster(n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None)
            place = stack.enter_context(local)
        try:
            client = stack.enter_context(Client(place, timeout=PATIENCE))
            client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, TimeoutError):
            raise ConfigError(
                f"no Dask worker answers at {scheduler} within {PATIENCE} s; start one with: dask worker {scheduler}"
            ) from None
        yield client


def _submit(client: Client, todo: Iterator[Job], waiting: dict[Future[Row], Job], queue: Any) -> None:
    """Keep every thread of the cluster busy; asks anew each time, since workers come and go."""
    places = max(1, sum(client.nthreads().values()))
    while len(waiting) < places and (job := next(todo, None)) is not None:
        future = client.submit(execute, job, pure=False)
        waiting[future] = job
        queue.add(future)


def _row_of(future: Future[Row], job: Job) -> Row:
    from distributed import KilledWorker

    try:
        row: Row = future.result()
    except KilledWorker:
        return make_row(job, Reply("error", "every worker of the cluster that tried this fit died"))
    return row
