"""Pictures drawn by a second process, which loads matplotlib while the first one loads torch.

Both take half a second or more, and one after the other they are most of what a small table takes on the command line.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from graphbam.graphs.cut import Cut
    from graphbam.result import Result

DONE = b"."
"""What the second process says of a picture that is drawn."""


class Easel:
    """Draws results; on two cores or more in a process of its own, which starts and ends with the `with` statement.

    Where that process is missing or fails, pictures are drawn here instead, and what is wrong is said here.

    Examples
    --------
    >>> with Easel() as easel:
    ...     easel.draw(result, "graph.png")  # doctest: +SKIP
    """

    def __init__(self, n_cores: int | None = None) -> None:
        self._n_cores = _count_cores() if n_cores is None else n_cores
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the second process, where there is a core for it."""
        from importlib.util import find_spec

        if self._n_cores > 1 and find_spec("matplotlib"):
            command = [sys.executable, "-P", "-c", "from graphbam.output.easel import draw_all; draw_all()"]
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere)
        return self

    def __exit__(self, *reason: object) -> None:
        """End it, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def draw(self, result: Result, path: str | os.PathLike[str], cut: Cut | None = None) -> None:
        """Write the picture of a result; see `graphbam.output.figures.plot`."""
        if self._process is None or not _ask(self._process, (result, Path(path).absolute(), cut)):
            from graphbam.output import figures

            figures.plot(result, path, cut=cut)


def _ask(process: subprocess.Popen[bytes], job: object) -> bool:
    """Hand a job to the second process; whether it is done."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump(job, process.stdin)
        process.stdin.flush()
        return process.stdout.read(len(DONE)) == DONE
    except OSError:  # it has ended
        return False


def draw_all() -> None:
    """What the second process does: draw what it is sent, until nothing more comes, or until it fails."""
    gc.disable()
    from graphbam.output import figures, layout

    threading.Thread(target=layout.start_engine, daemon=True).start()
    figures.rehearse()
    while True:
        try:
            result, path, cut = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        figures.plot(result, path, cut=cut)
        sys.stdout.buffer.write(DONE)
        sys.stdout.buffer.flush()


def _count_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
