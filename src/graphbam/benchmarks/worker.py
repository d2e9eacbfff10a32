"""The process in which fits happen: started by `graphbam.benchmarks.process`, which watches and, if need be, kills it.

It serves one method, so that packages are loaded once and its memory is that method's alone. It never sees the truth.
It dies, children included, as soon as the process that started it is gone.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import importlib.metadata
import os
import platform
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.scores import check_answer

__all__ = ["About", "Reply", "Request", "main"]

Status = Literal["ok", "skipped", "timeout", "memory", "error"]
READY = "ready"
WARM_UP_SHAPE = (60, 3)
"""Samples and variables of the table that a method warms up with."""
MOST_LETTERS = 300
"""Length at which a reason is cut."""


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """A table to be answered for."""

    label: str
    """What stands in the log before the method's own messages."""
    x_md: Matrix
    seed: int
    last_seconds: float = 0.0
    """After so long the system ends the fit, even if the one who should is gone; 0: never."""


@dataclasses.dataclass(frozen=True)
class About:
    """Who answers, and where; sent when the fit begins."""

    package_version: str | None
    graphbam_version: str
    hardware: str


@dataclasses.dataclass(frozen=True, eq=False)
class Reply:
    """How a fit ended."""

    status: Status
    reason: str | None = None
    answer: Answer | None = None
    seconds: float | None = None
    """Of the fit, without the time it spent on importing packages."""
    peak_mib: float | None = None


def main(method: str, descriptor: int, is_warm: bool) -> None:
    """Serve requests for a method on a connection until the other side is gone."""
    os.set_inheritable(descriptor, False)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # also for what compiled code prints
    threading.Thread(target=_die_with_owner, args=(descriptor,), daemon=True).start()
    with contextlib.suppress(EOFError):
        serve(Connection(descriptor), method, is_warm)


def _die_with_owner(descriptor: int) -> None:
    """Wait for the other side to hang up, then end this process and everything it started."""
    poller = select.poll()
    poller.register(descriptor, 0)  # hang-ups are reported always, requests are not asked for
    poller.poll()
    os.killpg(os.getpgid(0), signal.SIGKILL)


def serve(connection: Connection[Any, Any], method: str, is_warm: bool) -> None:
    """Say READY, then answer each request with an `About` when its fit begins and a `Reply` when it has ended."""
    from graphbam.benchmarks.methods import load_method

    try:
        baseline = load_method(method)
        about, failed = describe(baseline.package), None
        if is_warm:
            warm_up(baseline)
    except Exception as error:  # on another machine, where the module may be missing
        about, failed = describe(None), _failure(error)
    connection.send(READY)
    while True:
        request = connection.recv()
        print(f"── {request.label}", file=sys.stderr, flush=True)
        connection.send(about)
        connection.send(failed or answer(baseline, request))


def warm_up(baseline: Baseline) -> None:
    """Fit a tiny table, so that packages, weights and compilers are loaded before the clock runs."""
    import numpy as np

    n_samples, n_variables = WARM_UP_SHAPE
    x_md = np.random.default_rng(0).normal(size=(n_samples, n_variables))
    x_md[:, 1] += x_md[:, 0]
    x_md = (x_md - x_md.mean(0)) / x_md.std(0)
    with contextlib.suppress(Exception, SystemExit):  # it need not have an answer for that
        if not baseline.skip(n_samples, n_variables):
            baseline.fit(x_md, seed=0)


def answer(baseline: Baseline, request: Request) -> Reply:
    """Fit one table; whatever the method does, short of taking the process with it, becomes a reply."""
    try:
        if reason := baseline.skip(*request.x_md.shape):
            return Reply("skipped", _shorten(reason))
        return _fit(baseline, request)
    except (Exception, SystemExit) as error:
        return _failure(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _fit(baseline: Baseline, request: Request) -> Reply:
    _reset_peak()
    signal.setitimer(signal.ITIMER_REAL, request.last_seconds)  # reaches also code that never returns to Python
    with import_clock() as imports:
        start = time.perf_counter()
        found = baseline.fit(request.x_md, seed=request.seed)
        seconds = time.perf_counter() - start
    check_answer(found, request.x_md.shape[1])  # here, since not everything can travel
    return Reply("ok", None, found, seconds - imports.seconds, _peak_mib())


def _failure(error: BaseException) -> Reply:
    traceback.print_exception(error)
    sys.stderr.flush()
    status: Status = "memory" if isinstance(error, MemoryError) else "error"
    return Reply(status, _shorten(f"{type(error).__name__}: {error}"))


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_LETTERS else line[: MOST_LETTERS - 1] + "…"


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass
class ImportClock:
    """Time spent on import statements."""

    seconds: float = 0.0
    is_running: bool = False


@contextlib.contextmanager
def import_clock() -> Iterator[ImportClock]:
    """Measure how long imports take inside the block: methods load their packages in the first fit.

    Examples
    --------
    >>> with import_clock() as imports:
    ...     import this.is_not_there
    Traceback (most recent call last):
    ModuleNotFoundError: No module named 'this.is_not_there'; 'this' is not a package
    """
    clock, original = ImportClock(), builtins.__import__

    def timed_import(*args: Any, **kwargs: Any) -> Any:
        if clock.is_running:  # an import inside an import is part of it
            return original(*args, **kwargs)
        clock.is_running, start = True, time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            clock.seconds += time.perf_counter() - start
            clock.is_running = False

    builtins.__import__ = timed_import
    try:
        yield clock
    finally:
        builtins.__import__ = original


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────


def _reset_peak() -> None:
    """Forget the highest memory of earlier fits, where the system can (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mib() -> float:
    """Highest resident memory since `_reset_peak`; elsewhere than on Linux, since the process began."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)


# ── who and where ─────────────────────────────────────────────────────────────────────────────────────────


def describe(package: str | None) -> About:
    """Versions and hardware behind an answer; no package: graphbam itself."""
    from graphbam import __version__

    version: str | None = __version__
    if package is not None:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            version = None
    return About(version, __version__, describe_hardware())


def describe_hardware() -> str:
    """Processor and number of cores, in words; no name of the machine."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return f"{model}, {os.cpu_count()} cores"
