"""Where tasks run: on this machine through joblib, or on a cluster through Dask. Both run the same function.

An engine draws tasks one after the other as places become free, and hands each row to `finish` before it draws the next
one: what a row teaches (a time-out, say) is known to the tasks that follow.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from graphbam.benchmarks.process import dismiss
from graphbam.benchmarks.store import Row
from graphbam.benchmarks.tasks import Task, execute, make_row
from graphbam.benchmarks.worker import Reply
from graphbam.errors import ConfigError

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["run_on_dask", "run_on_this_machine"]

PATIENCE = 60
"""Seconds to wait for the first worker of a cluster."""


def run_on_this_machine(run: str, tasks: Iterator[Task], finish: Callable[[Row], None], *, jobs: int) -> None:
    """Run tasks in `jobs` processes; each thread of the pool only waits for its process."""
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    lock, stopping = threading.Lock(), threading.Event()

    def step(task: Task) -> None:
        if stopping.is_set():
            return
        row = execute(task)
        with lock:
            if not stopping.is_set():  # a fit that was killed because the run ends has not failed
                finish(row)

    try:
        pool = Parallel(n_jobs=jobs, backend="threading", pre_dispatch="n_jobs", batch_size=1)
        pool(delayed(step)(task) for task in tasks)
    finally:
        stopping.set()
        dismiss(run)


def run_on_dask(
    run: str, tasks: Iterator[Task], finish: Callable[[Row], None], *, jobs: int, scheduler: str | None
) -> None:
    """Run tasks on the workers of a Dask scheduler, or of a cluster of `jobs` processes made for the occasion.

    Dask gives a task whose worker dies to another one; only its last result comes back.
    """
    from distributed import as_completed

    with _connect(scheduler, jobs) as client:
        waiting: dict[Future[Row], Task] = {}
        queue = as_completed()
        _submit(client, tasks, waiting, queue)
        try:
            for future in queue:
                finish(_row_of(future, waiting.pop(future)))
                _submit(client, tasks, waiting, queue)
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
            told = f"no Dask worker answers at {scheduler} within {PATIENCE} s"
            raise ConfigError(f"{told}; start one with: dask worker {scheduler}") from None
        yield client


def _submit(client: Client, tasks: Iterator[Task], waiting: dict[Future[Row], Task], queue: Any) -> None:
    """Keep every thread of the cluster busy; asks anew each time, since workers come and go."""
    places = max(1, sum(client.nthreads().values()))
    while len(waiting) < places and (task := next(tasks, None)) is not None:
        future = client.submit(execute, task, pure=False)
        waiting[future] = task
        queue.add(future)


def _row_of(future: Future[Row], task: Task) -> Row:
    from distributed import KilledWorker

    try:
        row: Row = future.result()
    except KilledWorker:
        return make_row(task, Reply("error", "every worker of the cluster that tried this fit died"))
    return row
