"""Where tasks run: here, in processes of this machine, on a Dask cluster or on Ray.

A task is a function and one argument, both picklable. A worker that dies costs the tasks it was at: they are done again
elsewhere, `MOST_TRIES` times in all. Errors of graphbam are answers too, and travel as such; any other error ends the
run.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from graphbam.errors import ConfigError, GraphbamError, Setting

Task = TypeVar("Task")
Output = TypeVar("Output")
Begun: TypeAlias = tuple[int, Any, int]
"""A task that was handed out: its number, what it is, and how often it was begun."""

MOST_TRIES = 3
"""How often a task is begun, when workers die, before the run is given up."""

WAITING = 2
"""Tasks per worker that are handed out at a time."""


class Executor(Protocol):
    """Runs tasks."""

    n_workers: int
    """Tasks that run at the same time."""
    is_remote: bool
    """Whether tasks run in other processes, so that functions and tasks travel."""

    def run(self, function: Callable[[Task], Output], tasks: Iterable[Task]) -> Iterator[tuple[int, Output]]:
        """Answers as they come, with the numbers of their tasks; not all tasks are held at a time."""
        ...


def open_executor(executor: Any) -> Executor:
    """What users mean by an executor.

    Parameters
    ----------
    executor : None, int, str, dask.distributed.Client or the module ray
        None: here. A number of processes. A Dask client, or the address of its scheduler (``"tcp://…"``). ``"ray"``.

    Examples
    --------
    >>> list(open_executor(None).run(len, ["a", "bc"]))
    [(0, 1), (1, 2)]
    """
    executor = read_executor(executor)
    if executor is None:
        return Here()
    if isinstance(executor, int):
        return Processes(executor)
    if isinstance(executor, str) and "://" in executor:
        return Dask(_connect(executor), is_own=True)
    return Dask(executor) if hasattr(executor, "scheduler_info") else Ray(_import("ray", "executor 'ray'"))


def _connect(address: str) -> Any:
    """A client of the Dask scheduler at this address."""
    try:
        return _import("distributed", "executor of Dask").Client(address)
    except (OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ConfigError(
            Setting("executor", address), f" cannot be reached: {reason}. Start a scheduler there, or correct it."
        ) from None


def read_executor(executor: Any) -> Any:
    """Refuse what cannot be meant by an executor, before it is needed; nothing is opened.

    Examples
    --------
    >>> read_executor("2")
    2
    >>> read_executor(0)
    Traceback (most recent call last):
    graphbam.errors.ConfigError: executor=0 is not known; choose a number of processes, a Dask client or the address of its scheduler, or 'ray', or leave it out.
    """  # noqa: E501 (a message is one line)
    if isinstance(executor, str) and executor.isdigit():
        executor = int(executor)
    is_number = isinstance(executor, int) and not isinstance(executor, bool) and executor >= 1
    is_name = isinstance(executor, str) and ("://" in executor or executor == "ray")
    is_cluster = hasattr(executor, "scheduler_info") or getattr(executor, "__name__", "") == "ray"
    if executor is None or is_number or is_name or is_cluster:
        return executor
    raise ConfigError(
        Setting("executor", executor),
        " is not known; choose a number of processes, a Dask client or the address of its scheduler, or 'ray', or "
        "leave it out.",
    )


def _import(module: str, what: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigError(f"the {what} needs {module}. Run `pip install 'graphbam[cluster]'`.") from None


class Here:
    """One task after the other, in this process."""

    n_workers, is_remote = 1, False

    def run(self, function: Callable[[Task], Output], tasks: Iterable[Task]) -> Iterator[tuple[int, Output]]:
        for k, task in enumerate(tasks):
            yield k, function(task)


class Processes:
    """Processes of this machine, each with its share of the cores."""

    is_remote = True

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers

    def run(self, function: Callable[[Task], Output], tasks: Iterable[Task]) -> Iterator[tuple[int, Output]]:
        numbered, again, is_begun = enumerate(tasks), list[Begun](), False
        while True:  # one pool; another if a process dies
            for done in self._use_pool(function, numbered, again):
                is_begun = True
                yield done
            if not again:
                return
            _check_tries(again, is_begun=is_begun)

    def _use_pool(
        self, function: Callable[[Any], Output], numbered: Iterator[tuple[int, Any]], again: list[Begun]
    ) -> Iterator[tuple[int, Output]]:
        """Answers of one pool, until all is done or a process dies: then tasks it was at are left in `again`."""
        import multiprocessing
        from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
        from concurrent.futures.process import BrokenProcessPool

        n_threads = max(1, (os.cpu_count() or 1) // self.n_workers)
        spawn = multiprocessing.get_context("spawn")
        at_work: dict[Future[Output], Begun] = {}
        with ProcessPoolExecutor(self.n_workers, spawn, _limit_threads, (n_threads,)) as pool:
            while True:
                while len(at_work) < WAITING * self.n_workers and (task := _next_task(again, numbered)):
                    try:
                        at_work[pool.submit(function, task[1])] = task
                    except BrokenProcessPool:
                        again.append(task)
                        break
                if not at_work:
                    return
                done, _ = wait(at_work, return_when=FIRST_COMPLETED)
                lost = {future for future in done if isinstance(future.exception(), BrokenProcessPool)}
                for future in done - lost:
                    yield at_work.pop(future)[0], future.result()
                if lost:
                    again += [(number, what, n_tries + 1) for number, what, n_tries in at_work.values()]
                    return


def _limit_threads(most: int) -> None:
    """Let torch, which a worker has not loaded yet, compute with so many threads."""
    os.environ["OMP_NUM_THREADS"] = str(most)


def _next_task(again: list[Begun], numbered: Iterator[tuple[int, Any]]) -> Begun | None:
    """A task whose worker died, else the next one."""
    if again:
        return again.pop()
    return next(((k, task, 1) for k, task in itertools.islice(numbered, 1)), None)


def _check_tries(again: Sequence[Begun], *, is_begun: bool) -> None:
    """Refuse tasks whose process died too often; `is_begun` says that others were done before."""
    for number, _, next_try in again:
        if next_try <= MOST_TRIES:
            continue
        died = f"the process at task {number + 1} died {next_try - 1} times"
        if not is_begun and hasattr(sys.modules["__main__"], "__file__"):
            raise GraphbamError(
                f"{died}, and no task was done before. Every process reads the script anew: put what it does below "
                "`if __name__ == '__main__':`. If it is there, most likely memory ran out: use fewer processes."
            )
        raise GraphbamError(f"{died}; most likely memory ran out. Use fewer processes.")


class Dask:
    """The workers of a Dask cluster; a client of its own is closed when nobody needs this any more."""

    is_remote = True

    def __init__(self, client: Any, *, is_own: bool = False) -> None:
        self.client = client
        if is_own:
            weakref.finalize(self, client.close)
        self.n_workers = max(1, sum(one["nthreads"] for one in client.scheduler_info()["workers"].values()))

    def run(self, function: Callable[[Task], Output], tasks: Iterable[Task]) -> Iterator[tuple[int, Output]]:
        distributed = _import("distributed", "executor of Dask")
        numbered = enumerate(tasks)

        def submit(how_many: int) -> dict[Any, int]:
            chosen = itertools.islice(numbered, how_many)
            return {self.client.submit(function, task, pure=False, retries=MOST_TRIES - 1): k for k, task in chosen}

        at_work = submit(WAITING * self.n_workers)
        coming = distributed.as_completed(list(at_work))
        for future in coming:
            yield at_work.pop(future), future.result()
            for new, k in submit(1).items():
                at_work[new] = k
                coming.add(new)


class Ray:
    """The workers of a Ray cluster; one of this machine is started where there is none."""

    is_remote = True

    def __init__(self, ray: Any) -> None:
        self.ray = ray
        if not ray.is_initialized():
            ray.init(include_dashboard=False, log_to_driver=False)
        self.n_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def run(self, function: Callable[[Task], Output], tasks: Iterable[Task]) -> Iterator[tuple[int, Output]]:
        remote = self.ray.remote(function).options(max_retries=MOST_TRIES - 1)
        numbered, at_work = enumerate(tasks), dict[Any, int]()
        while True:
            for k, task in itertools.islice(numbered, WAITING * self.n_workers - len(at_work)):
                at_work[remote.remote(task)] = k
            if not at_work:
                return
            done, _ = self.ray.wait(list(at_work), num_returns=1)
            for one in done:
                yield at_work.pop(one), self.ray.get(one)
