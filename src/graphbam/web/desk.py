"""Tables that were handed in, and what is asked of them: two lanes, one that looks and one that infers.

Each lane is a queue with a bound in front of one process. Two tables at once would take twice the memory and no less
time; looking has a process of its own, so that it need not wait for a long run.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast

from graphbam.errors import GraphbamError
from graphbam.web.words import Words, spell_error
from graphbam.web.worker import Done, Kind, Opening, Refused, Told, Worker, tell_broken

State: TypeAlias = Literal["waiting", "running", "done", "refused", "cancelled"]

MOST_WAITING = 8
"""Requests that may wait in a lane; more are turned away."""

MOST_TABLES = 6
MOST_RUNS = 20
"""Tables and answers that are kept for one visitor; of more, the oldest are forgotten."""

MOST_VISITORS = 20
"""Visitors that are remembered."""

LOOK_SECONDS = 120.0
"""A table that takes longer to read belongs on the command line."""

IN_MEMORY = 2**20
"""Bytes of a table beyond which it lies in a file without a name, which ends with this process."""

KILLED = (
    "the run was ended by the system, most likely because it took more memory than there is. Leave out columns, or "
    "keep fewer rows."
)
TOO_SLOW = "reading the table took more than two minutes. Keep fewer rows, or use graphbam infer on the command line."


class FullError(Exception):
    """Too many are waiting."""


class Table:
    """A table as it was handed in."""

    def __init__(self, name: str, content: IO[bytes] | None = None) -> None:
        self.key, self.name, self.size = secrets.token_urlsafe(12), name, 0
        self._file = content or cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=IN_MEMORY))  # noqa: SIM115
        self._lock = threading.Lock()

    def write(self, piece: bytes) -> None:
        """Add a piece."""
        self.size += len(piece)
        self._file.write(piece)

    def read_at(self, place: int, size: int) -> bytes:
        """Bytes from a place on; both lanes may read at a time."""
        with self._lock:
            self._file.seek(place)
            return self._file.read(size)

    def close(self) -> None:
        """Forget the content."""
        with self._lock:
            self._file.close()


class Reader:
    """A table, read from its start by one reader among several."""

    def __init__(self, table: Table) -> None:
        self.table, self.place = table, 0

    def seek(self, place: int) -> int:
        """Go to a place."""
        self.place = place
        return place

    def read(self, size: int) -> bytes:
        """The next bytes."""
        piece = self.table.read_at(self.place, size)
        self.place += len(piece)
        return piece


@dataclass(eq=False)
class Job:
    """One request and what became of it."""

    kind: Kind
    table: Table
    choices: Mapping[str, Any]
    key: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: State = "waiting"
    told: Told = Told(0.0, "")  # noqa: RUF009 (a tuple of constants)
    words: Words = field(default_factory=list)
    """Why there is no answer."""
    answer: dict[str, Any] = field(default_factory=dict)
    asked: float = field(default_factory=time.time)
    began: float | None = None
    told_at: float = 0.0
    ended: float | None = None
    future: Future[Job] = field(default_factory=Future)
    """Is done when the job is."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ("done", "refused", "cancelled")

    def progress(self) -> tuple[float, float | None]:
        """Share that is done and seconds that are left, both estimated; None: not known."""
        if self.began is None or self.told.seconds is None:
            return 0.0, None
        elapsed = time.time() - self.began
        expected = max(self.told.seconds, 0.1)
        if self.told.share > 0.02:
            expected = max((self.told_at - self.began) / self.told.share, 0.1)
        return min(0.97, max(self.told.share, elapsed / expected)), max(0.0, expected - elapsed)

    def finish(self, state: State, words: Words | None = None) -> None:
        """Say that it is over."""
        self.state, self.words, self.ended = state, words or [], time.time()
        self.future.set_result(self)


class Lane:
    """A bounded queue in front of one process, served by one thread."""

    def __init__(self, opening: Opening, limit: float | None = None) -> None:
        self.worker, self.limit = Worker(opening), limit
        self._jobs: deque[Job] = deque()
        self._current: Job | None = None
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True, name="lane")
        self._thread.start()

    def submit(self, job: Job) -> Job:
        """Put a job at the end of the queue, or raise `FullError`."""
        with self._changed:
            if self._is_closed or len(self._jobs) >= MOST_WAITING:
                raise FullError
            self._jobs.append(job)
            self._changed.notify()
        return job

    def place(self, job: Job) -> int:
        """How many are before it."""
        with self._changed:
            ahead = self._jobs.index(job) if job in self._jobs else -1
            return ahead + (self._current is not None)

    def cancel(self, job: Job) -> None:
        """End a job that waits or runs; the memory of one that runs is free afterwards."""
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
                job.finish("cancelled")
            elif job is self._current and not job.is_over:
                job.finish("cancelled")
                self.worker.stop()

    def close(self) -> None:
        """End the process and everyone's waiting."""
        with self._changed:
            self._is_closed = True
            for job in self._jobs:
                job.finish("cancelled")
            self._jobs.clear()
            self._changed.notify()
            self.worker.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._is_closed)
                if self._is_closed:
                    return
                job = self._current = self._jobs.popleft()
                job.state, job.began = "running", time.time()
            state, words, answer = self._ask(job)
            with self._changed:
                self._current = None
                if not job.is_over:
                    job.answer = answer
                    job.finish(state, words)
            if not answer and not self.worker.pid and not self._is_closed:
                with contextlib.suppress(GraphbamError, EOFError, OSError):
                    self.worker.start()  # so that the next one need not wait for the network to load

    def _ask(self, job: Job) -> tuple[State, Words, dict[str, Any]]:
        def tell(told: Told) -> None:
            job.told, job.told_at = told, time.time()

        try:
            content = cast("IO[bytes]", Reader(job.table))
            reply = self.worker.ask(job.kind, job.table.name, content, job.choices, tell, self.limit)
        except EOFError:
            return "refused", [KILLED], {}
        except TimeoutError:
            return "refused", [TOO_SLOW], {}
        except (GraphbamError, ValueError) as error:  # the network cannot be loaded any more, or the table was closed
            return "refused", spell_error(error) if isinstance(error, GraphbamError) else [str(error)], {}
        except Exception as error:  # or all who come later would wait for ever
            return "refused", tell_broken(error), {}
        if isinstance(reply, Refused):
            return "refused", reply.words, {}
        assert isinstance(reply, Done)
        return "done", [], reply.answer


@dataclass(eq=False)
class Visitor:
    """What one browser handed in and got, oldest first."""

    tables: dict[str, Table] = field(default_factory=dict)
    runs: dict[str, Job] = field(default_factory=dict)

    def keep_table(self, table: Table) -> None:
        """Add a table; the oldest ones that no run waits for are forgotten."""
        self.tables[table.key] = table
        in_use = {run.table.key for run in self.runs.values() if not run.is_over} | {table.key}
        for old in [one for one in self.tables.values() if one.key not in in_use]:
            if len(self.tables) <= MOST_TABLES:
                break
            self.tables.pop(old.key).close()

    def keep_run(self, run: Job) -> None:
        """Add a run; the oldest ones that are over are forgotten."""
        self.runs[run.key] = run
        for old in [one for one in self.runs.values() if one.is_over]:
            if len(self.runs) <= MOST_RUNS:
                break
            del self.runs[old.key]

    @property
    def is_idle(self) -> bool:
        """Whether no run of theirs waits or works."""
        return all(run.is_over for run in self.runs.values())

    def forget(self) -> None:
        """Forget all tables."""
        for table in self.tables.values():
            table.close()


class Desk:
    """Both lanes and everyone who stands before them."""

    def __init__(self, weights: str, device: str, colliders: str | None) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="graphbam-"))
        opening = Opening(weights, device, colliders, str(self.scratch))
        self.looks, self.runs = Lane(opening, LOOK_SECONDS), Lane(opening)
        self._visitors: dict[str, Visitor] = {}

    def start(self) -> None:
        """Load the network now instead of with the first run; what is wrong with it is raised here."""
        self.runs.worker.start()

    def visitor(self, key: str) -> Visitor:
        """The visitor with this key, a new one if there is none."""
        found = self._visitors.pop(key, None) or Visitor()
        self._visitors[key] = found  # the last to come is the last to be forgotten
        for old in [name for name, one in self._visitors.items() if one.is_idle and name != key]:
            if len(self._visitors) <= MOST_VISITORS:
                break
            self._visitors.pop(old).forget()
        return found

    def close(self) -> None:
        """End both processes and forget everything."""
        self.looks.close()
        self.runs.close()
        for visitor in self._visitors.values():
            visitor.forget()
        shutil.rmtree(self.scratch, ignore_errors=True)
