"""A process that looks at tables or infers their graphs, with the networks loaded, so that ending it frees everything.

This end is a `Worker`; the other end is `main`. A request is a kind, a name and choices, followed by the bytes of the
table in pieces; the replies are any number of `Told`, then one `Done` or `Refused`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

from graphbam.errors import GraphbamError, WeightsError
from graphbam.web.words import Words, spell_error

Kind: TypeAlias = Literal["look", "infer"]

PIECE = 2**20
"""Bytes of a table that are sent at once."""

START_SECONDS = 120.0
"""A process that has not loaded its network by then will not."""


class Told(NamedTuple):
    """How far a run is: the share that is done, in words, and about how long all of it takes."""

    share: float
    sentence: str
    seconds: float | None = None


class Done(NamedTuple):
    """The answer."""

    answer: dict[str, Any]


class Refused(NamedTuple):
    """Why there is none, in the words of the page."""

    words: Words


@dataclass(frozen=True)
class Opening:
    """What a process loads when it starts: parameters of `graphbam.infer`, and where it may put files for a moment."""

    weights: str
    device: str
    colliders: str | None
    scratch: str


class Worker:
    """A process that answers one request at a time; it starts with the first one, and again after its end.

    Examples
    --------
    >>> worker = Worker(Opening("edges", "cpu", None, tempfile.gettempdir()))
    >>> worker.pid is None
    True
    >>> worker.ask("look", "t.csv", io.BytesIO(b"a,b"), {}).words  # doctest: +SKIP
    ['t.csv has a header but no rows below it. Check that it was saved completely.']
    """

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self._process: SpawnProcess | None = None
        self._connection: Connection[Any, Any] | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """Of the process, if there is one."""
        process = self._process  # another thread may end it meanwhile
        return None if process is None else process.pid

    def start(self) -> None:
        """Start the process unless it runs, and wait until its network is loaded.

        Raises
        ------
        WeightsError
            If it cannot be loaded.
        """
        with self._lock:
            if self._process is not None and self._process.is_alive():
                return
            self._end()
            if self._is_closed:
                raise EOFError
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=main, args=(theirs, self.opening), daemon=True)
            self._process.start()
            theirs.close()
            connection = self._connection
        ready = connection.recv() if connection.poll(START_SECONDS) else Refused(["the network took too long to load"])
        if isinstance(ready, Refused):
            self.stop()
            raise WeightsError(*ready.words)

    def ask(
        self,
        kind: Kind,
        name: str,
        table: IO[bytes],
        choices: Mapping[str, Any],
        tell: Callable[[Told], None] = lambda told: None,
        limit: float | None = None,
    ) -> Done | Refused:
        """Have one request answered.

        Parameters
        ----------
        kind, name, choices
            What is asked, of which table, with which settings of `graphbam.infer`.
        table : binary file
            Read from its start, piece by piece.
        tell : callable
            Is given what the process says on its way.
        limit : float, optional
            Seconds after which the process is ended.

        Returns
        -------
        Done or Refused

        Raises
        ------
        EOFError
            If the process ended before it answered: it was stopped, or the system took it.
        TimeoutError
            If it passed the limit.
        """
        try:
            self.start()
            connection = self._connection
            if connection is None:
                raise EOFError
            connection.send((kind, name, dict(choices)))
            table.seek(0)
            while piece := table.read(PIECE):
                connection.send_bytes(piece)
            connection.send_bytes(b"")
            last = None if limit is None else time.monotonic() + limit
            while True:
                if last is not None and not connection.poll(max(0.0, last - time.monotonic())):
                    self.stop()
                    raise TimeoutError
                reply = connection.recv()
                if not isinstance(reply, Told):
                    return reply
                tell(reply)
        except (OSError, EOFError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise EOFError from None

    def stop(self) -> None:
        """End the process at once; its memory is free afterwards."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._connection = None  # closed by whoever reads from it last, and sees that nobody is there

    def close(self) -> None:
        """End the process for good."""
        self._is_closed = True
        self.stop()


# ── the other end ─────────────────────────────────────────────────────────────────────────────────────────


def main(connection: Connection[Any, Any], opening: Opening) -> None:
    """Load the networks, say so, then answer requests until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the page, which then ends this process
    try:
        networks = load_networks(opening)
    except GraphbamError as error:
        connection.send(Refused(list(error.args)))  # whoever started this spells its settings
        return
    connection.send(Told(0.0, "ready"))
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            kind, name, choices = connection.recv()
            content = bytearray()
            while piece := connection.recv_bytes():
                content += piece
            connection.send(_answer(kind, name, content, choices, networks, opening.scratch, connection))
            del content


def load_networks(opening: Opening) -> dict[str, Any]:
    """Networks as `infer` takes them, loaded once."""
    from graphbam.inference.networks import hold_networks
    from graphbam.inference.settings import InferConfig

    named = InferConfig(weights=opening.weights, colliders=opening.colliders, device=opening.device)
    held = hold_networks(named)
    return {"weights": held.weights, "colliders": held.colliders, "device": opening.device}


def _answer(
    kind: Kind,
    name: str,
    content: bytearray,
    choices: dict[str, Any],
    networks: dict[str, Any],
    scratch: str,
    connection: Connection[Any, Any],
) -> Done | Refused:
    """Answer one request; what goes wrong is one sentence, and for what should not, the terminal has more."""
    try:
        if kind == "look":
            from graphbam.web.preview import look

            return Done(look(name, content, choices, networks["weights"]))
        return Done(infer_table(name, content, choices, networks, scratch, connection.send))
    except GraphbamError as error:
        return Refused(spell_error(error))
    except MemoryError:
        return Refused(["this table needs more memory than there is. Leave out columns, or keep fewer rows."])
    except Exception as error:
        return Refused(tell_broken(error))


def tell_broken(error: Exception) -> Words:
    """What to say of an error that nobody foresaw; the terminal has more."""
    traceback.print_exception(error, file=sys.stderr)
    found = f"{type(error).__name__}: {error}"[:200]
    return [f"something broke that should not ({found}). The terminal of graphbam serve says where."]


def infer_table(
    name: str,
    content: bytes | bytearray,
    choices: Mapping[str, Any],
    networks: Mapping[str, Any],
    scratch: str,
    tell: Callable[[Told], None],
) -> dict[str, Any]:
    """Infer the graph of a table; returns all files about it, and its links in short."""
    from graphbam.inference.journey import infer
    from graphbam.output.files import list_links, save_outputs
    from graphbam.web.preview import estimate, open_table

    settings = {key: value for key, value in choices.items() if key != "part"}
    table = open_table(name, content, choices.get("part", ""))
    seconds = estimate(table, settings, networks["weights"])
    tell(Told(0.0, "the network looks at the table", seconds))

    def progress(share: float, sentence: str) -> None:
        if 0 < share < 1:
            tell(Told(share, sentence, seconds))

    table.seek(0)
    result = infer(table, progress=progress, **networks, **settings)
    tell(Told(1.0, "writing the report", seconds))
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        files = {path.name: path.read_bytes() for path in save_outputs(result, Path(folder) / "out")}
    links = [{"a": link.a, "b": link.b, "directed": link.is_directed} for link in list_links(result)]
    return {"files": files, "names": list(result.names), "links": links, "warnings": list(result.warnings)}
