"""One fit in a process of its own, with a limit on time and on memory: both ends of the line.

This side hires a `Worker`, sends it a `Request` and gets a `Reply`. The other side (`main`) is a fresh interpreter,
never a copy of this one: limits on threads are set before anything is loaded. It serves one method, so that packages
are loaded once and its memory is that method's alone; it never sees the truth. A fit that passes a limit is killed with
everything it started, and the worker is replaced for the next one. A worker dies as soon as its owner is gone.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import importlib.metadata
import multiprocessing
import os
import platform
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines import load_baseline
from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.scores import check_answer

__all__ = ["About", "Limits", "Reply", "Request", "Worker", "dismiss", "hire", "main"]

Status = Literal["ok", "skipped", "timeout", "memory", "error"]
READY = "ready"
WARM_UP_SHAPE = (60, 3)
"""Samples and variables of the table that a method warms up with."""
MOST_LETTERS = 300
"""Length at which a reason is cut."""

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS", "BLIS_NUM_THREADS", "RAYON_NUM_THREADS",
    ),
    "1",
)  # fmt: skip
"""Environment of a worker: one thread per fit, so that times compare and parallel fits do not fight."""

START_SECONDS = 180.0
"""A worker that is not ready by then, on a busy machine with slow disks, will not be."""

WARM_UP_SECONDS = 30.0
"""A method that needs longer to load and to answer for a tiny table is slow anyway: it starts without."""

GRACE = 5.0
"""Seconds beyond its limit after which a fit is ended by the system: we may be gone, or suspended."""

TICK = 0.1
"""Seconds between two looks at time and memory."""

ENTRY = "import sys; from graphbam.benchmarks.worker import main; main(sys.argv[1], *map(int, sys.argv[2:]))"


# ── what travels between the two ends ───────────────────────────────────────────────────────────────────────


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one fit may use."""

    seconds: float
    mib: float


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """A table to be answered for."""

    label: str
    """What stands in the log before the method's own messages."""
    x_md: Matrix
    seed: int
    set_md: NDArray[np.bool_] | None = None
    """Cells that an intervention set."""
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


# ── this end: who is at work, and for how long ──────────────────────────────────────────────────────────────


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
        self.pid, self.peak_mib = pid, _resident_mib(pid)  # what it imports is loaded before the clock runs
        self.start = time.perf_counter()

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


# ── who is at work ──────────────────────────────────────────────────────────────────────────────────────────

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


# ── the other end: the process in which fits happen ─────────────────────────────────────────────────────────


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
    try:
        baseline = load_baseline(method)
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
        if reason := baseline.skip(*request.x_md.shape) or _refuse_gaps(baseline, request.x_md):
            return Reply("skipped", _shorten(reason))
        return _fit(baseline, request)
    except (Exception, SystemExit) as error:
        return _failure(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _refuse_gaps(baseline: Baseline, x_md: Matrix) -> str | None:
    has_gaps = not baseline.reads_gaps and bool(np.isnan(x_md).any())
    return "cannot read missing cells; methods called …-imputed fill them first" if has_gaps else None


def _fit(baseline: Baseline, request: Request) -> Reply:
    _reset_peak()
    known: dict[str, Any] = {}
    if baseline.reads_targets and request.set_md is not None:
        known["set_md"] = request.set_md
    signal.setitimer(signal.ITIMER_REAL, request.last_seconds)  # reaches also code that never returns to Python
    with import_clock() as imports:
        start = time.perf_counter()
        found = baseline.fit(request.x_md, seed=request.seed, **known)
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


# ── time ────────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── memory ──────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── who and where ───────────────────────────────────────────────────────────────────────────────────────────


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
