"""Fits in processes of their own, with a limit of time and of memory.

A worker is a fresh interpreter, never a copy of this one: limits on threads are set before anything is loaded. It lives
for one method and one place in the queue, is killed with everything it started once it passes a limit, and is replaced
for the next fit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from graphbam.benchmarks.worker import READY, About, Reply, Request, Status

__all__ = ["Limits", "Worker", "dismiss", "hire"]

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS", "BLIS_NUM_THREADS", "RAYON_NUM_THREADS",
    ),
    "1",
)  # fmt: skip
"""Environment of a worker: one thread a fit, so that times compare and parallel fits do not fight."""

START_SECONDS = 180.0
"""A worker that is not ready by then, on a busy machine with slow disks, will not be."""

WARM_UP_SECONDS = 30.0
"""A method that needs longer to load and to answer for a tiny table is slow anyway: it starts without."""

GRACE = 5.0
"""Seconds beyond its limit after which a fit is ended by the system: we may be gone, or suspended."""

TICK = 0.1
"""Seconds between two looks at time and memory."""

ENTRY = "import sys; from graphbam.benchmarks.worker import main; main(sys.argv[1], *map(int, sys.argv[2:]))"


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one fit may use."""

    seconds: float
    mib: float


class Worker:
    """A process that serves one method."""

    def __init__(self, method: str, log: Path | None = None, *, is_warm: bool = True):
        self.method = method
        self.connection, theirs = multiprocessing.Pipe()
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = os.environ | ONE_THREAD | {"PYTHONPATH": paths, "PYTHONHASHSEED": "0"}
        with contextlib.ExitStack() as stack:
            messages: Any = subprocess.DEVNULL if log is None else stack.enter_context(log.open("ab"))
            stack.callback(theirs.close)
            self.process = subprocess.Popen(
                [sys.executable, "-c", ENTRY, method, str(theirs.fileno()), str(int(is_warm))],
                pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages,
                start_new_session=True,  # a group of its own: killed as a whole, and deaf to Ctrl-C
            )  # fmt: skip

    def is_ready(self, seconds: float) -> bool:
        """Wait until it can take requests; False if that lasts too long or fails."""
        try:
            return self.connection.poll(seconds) and self.connection.recv() == READY
        except (EOFError, OSError):
            return False

    def fit(self, request: Request, limits: Limits) -> tuple[About | None, Reply]:
        """Have one table answered within the limits. After anything but a reply the worker is dead."""
        about: About | None = None
        watch = _Watch(self.process.pid)
        try:
            self.connection.send(dataclasses.replace(request, last_seconds=limits.seconds + GRACE))
            about = self._receive(watch, Limits(START_SECONDS, limits.mib))
            watch.restart()  # from here on it fits
            reply: Reply = self._receive(watch, limits)
        except _PassedLimitError as passed:
            self.close()
            return about, dataclasses.replace(passed.reply, seconds=watch.seconds(), peak_mib=watch.peak_mib)
        except (EOFError, OSError):
            status, reason = self._describe_death()
            return about, Reply(status, reason, None, watch.seconds(), watch.peak_mib or None)
        if reply.peak_mib is not None:
            reply = dataclasses.replace(reply, peak_mib=max(reply.peak_mib, watch.peak_mib))
        return about, reply

    def _receive(self, watch: _Watch, limits: Limits) -> Any:
        """The next message; looks at time and memory while it waits."""
        while not self.connection.poll(TICK):
            watch.check(limits)
            if self.process.poll() is not None and not self.connection.poll():
                raise EOFError
        return self.connection.recv()

    def _describe_death(self) -> tuple[Status, str]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)  # the line goes dead a moment before the process does
        self.close()
        code = self.process.returncode
        if code == -signal.SIGALRM:
            return "timeout", "the system ended the fit, long after its time"
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return "error", f"the process {how} during the fit; see messages.log"

    def is_alive(self) -> bool:
        """Whether it can take another request."""
        return not self.connection.closed and self.process.poll() is None

    def close(self) -> None:
        """End the process and everything it started."""
        if self.connection.closed:
            return
        self.connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class _PassedLimitError(Exception):
    def __init__(self, reply: Reply):
        self.reply = reply


class _Watch:
    """Clock and highest memory of a process with all its children."""

    def __init__(self, pid: int):
        self.pid, self.peak_mib, self.start = pid, 0.0, time.perf_counter()

    def restart(self) -> None:
        self.peak_mib, self.start = 0.0, time.perf_counter()

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def check(self, limits: Limits) -> None:
        self.peak_mib = max(self.peak_mib, _resident_mib(self.pid))
        if self.peak_mib > limits.mib:
            raise _PassedLimitError(Reply("memory", f"more than {limits.mib:g} MiB ({self.peak_mib:.0f} were seen)"))
        if self.seconds() > limits.seconds:
            raise _PassedLimitError(Reply("timeout", f"more than {limits.seconds:g} s"))


def _resident_mib(pid: int) -> float:
    """Resident memory of a process and its children now; 0 for those that are gone."""
    import psutil  # type: ignore[import-untyped]

    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                total += one.memory_info().rss
    return total / 2**20


# ── who is at work ────────────────────────────────────────────────────────────────────────────────────────

_workers: dict[tuple[str, int], Worker] = {}
"""Workers of this process by run and thread: Dask gives a function nothing else to remember them by."""
_cold: set[str] = set()
"""Methods that did not manage to warm up."""
_lock = threading.Lock()


def hire(run: str, method: str, log: Path | None) -> Worker:
    """The calling thread's worker for a method, a new one if it has none that serves it."""
    key = (run, threading.get_ident())
    with _lock:
        worker = _workers.get(key)
    if worker is not None and worker.method == method and worker.is_alive():
        return worker
    if worker is not None:
        worker.close()
    worker = _start(method, log)
    with _lock:
        _workers[key] = worker
    return worker


def _start(method: str, log: Path | None) -> Worker:
    if method not in _cold:
        worker = Worker(method, log)
        if worker.is_ready(WARM_UP_SECONDS):
            return worker
        worker.close()
        _cold.add(method)
    worker = Worker(method, log, is_warm=False)
    if not worker.is_ready(START_SECONDS):
        worker.close()  # its first fit then says that it is dead
    return worker


def dismiss(run: str) -> None:
    """End all workers of a run in this process."""
    with _lock:
        gone = [_workers.pop(key) for key in list(_workers) if key[0] == run]
    for worker in gone:
        worker.close()
