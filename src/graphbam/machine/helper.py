"""A second process that works ahead on another core, while the first one loads torch.

On the command line a small table is little work, and loading libraries one after the other is most of the wait: pandas
to read the table and matplotlib to draw the picture take .7 s, which is over here before torch has loaded there.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Self, TypeAlias, TypeVar

from graphbam.errors import GraphbamError

Output = TypeVar("Output")
Reply: TypeAlias = tuple[Any] | GraphbamError | None
"""An answer, or why there is none; None for what nobody expects, and the job is done again by those who asked."""


class Helper:
    """Does what it is asked, one job after another, from the start to the end of the `with` statement.

    Where there is one core only, or the process fails, jobs are done here instead.

    Examples
    --------
    >>> with Helper() as helper:
    ...     wait = helper.begin(sorted, [3, 1, 2])
    ...     wait()  # what else there is to do comes first
    [1, 2, 3]
    """

    def __init__(self, n_cores: int | None = None) -> None:
        self._n_cores = _count_cores() if n_cores is None else n_cores
        self._process: subprocess.Popen[bytes] | None = None
        self._n_begun = self._n_heard = 0
        self._replies: dict[int, Reply] = {}

    def __enter__(self) -> Self:
        """Start the process, where there is a core for it."""
        if self._n_cores > 1:
            command = [sys.executable, "-P", "-c", "from graphbam.machine.helper import work; work()"]
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere)
        return self

    def __exit__(self, *reason: object) -> None:
        """End it, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def begin(self, job: Callable[..., Output], *arguments: Any) -> Callable[[], Output]:
        """Hand over a job, a function that a module defines; what comes back waits for its answer.

        A large job waits for large answers before it: pipes hold little.
        """
        number = self._send((job, arguments))

        def wait() -> Output:
            reply = None if number is None else self._hear(number)
            if isinstance(reply, GraphbamError):
                raise reply
            answer: Output = job(*arguments) if reply is None else reply[0]
            return answer

        return wait

    def _send(self, message: object) -> int | None:
        """Number of a job among those handed over; None if there is nobody to take it."""
        if self._process is None:
            return None
        assert self._process.stdin is not None
        try:
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()
        except OSError:  # it has ended
            return None
        self._n_begun += 1
        return self._n_begun

    def _hear(self, number: int) -> Reply:
        """The answer to a job, after those before it."""
        while self._process is not None and self._n_heard < number:
            assert self._process.stdout is not None
            try:
                reply: Reply = pickle.load(self._process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError):  # it has ended
                break
            self._n_heard += 1
            self._replies[self._n_heard] = reply
        return self._replies.pop(number, None)


def work() -> None:
    """What the second process does: jobs as they come, until no more do."""
    gc.disable()
    with open(os.dup(0), "rb") as jobs, open(os.dup(1), "wb") as answers, open(os.devnull, "r+b") as nothing:
        for stream in (0, 1):  # what jobs read from there, as /dev/stdin, and print is no message
            os.dup2(nothing.fileno(), stream)
        while True:
            try:
                job, arguments = pickle.load(jobs)
            except EOFError:
                return
            pickle.dump(_try(job, arguments), answers)
            answers.flush()


def _try(job: Callable[..., Any], arguments: tuple[Any, ...]) -> Reply:
    try:
        return (job(*arguments),)
    except GraphbamError as error:
        return error
    except Exception:
        return None


def _count_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
