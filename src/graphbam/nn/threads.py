"""Threads of a CPU: how many compute here, and blocks of work that they share."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import Any

import torch

MOST_KEPT = 31 * 2**20
"""Bytes of the largest tensor whose memory is kept for the next one, and not given back to the system page by page.
GNU's malloc takes the size of the largest block that was freed, up to 32 MB; other ones do not care."""


@contextlib.contextmanager
def threads(most: int) -> Iterator[None]:
    """Compute with at most so many threads here, and with as many as before afterwards; other threads keep theirs."""
    before = torch.get_num_threads()
    if most >= before:
        yield
        return
    _set_own_threads(most)
    try:
        yield
    finally:
        _set_own_threads(before)


_COUNTING = threading.Lock()


def _set_own_threads(count: int) -> None:
    """`torch.set_num_threads` for the calling thread alone.

    Torch keeps one count per thread, and one more that every new thread starts with and keeps. Its only setter changes
    both, so that a server's next worker would keep the count of whichever table was under way. Here the second one is
    read and put back by a thread of its own; between the two calls pass some microseconds.
    """

    def keep_default() -> None:
        default = torch.get_num_threads()  # what a new thread starts with
        is_read.set()
        is_changed.wait()
        torch.set_num_threads(default)

    is_read, is_changed = threading.Event(), threading.Event()
    helper = threading.Thread(target=keep_default, daemon=True)
    with _COUNTING:
        helper.start()
        try:
            is_read.wait()
            torch.set_num_threads(count)
        finally:  # an interrupt must not leave it waiting
            is_changed.set()
        helper.join()


class _Helpers:
    """Threads that do what they are asked, each computing alone. To ask an executor took 15 to 35 µs longer."""

    def __init__(self, count: int):
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _serve(self) -> None:
        _compute_alone()
        while (work := self._asked.get()) is not None:
            error: BaseException | None = None
            try:
                work()
            except BaseException as raised:  # whoever asked is told
                error = raised
            self._done.put(error)

    def join_in(self, work: Callable[[], None], count: int) -> None:
        """Do this work here and on so many of the threads; what goes wrong on one of them is raised here."""
        for _ in range(count):
            self._asked.put(work)
        errors: list[BaseException | None] = []
        try:
            work()
        finally:
            errors += [self._done.get() for _ in range(count)]
        for error in filter(None, errors):
            raise error

    def dismiss(self) -> None:
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            thread.join()


class _Crew(threading.local):
    """The threads that the calling one may hand work to."""

    helpers: _Helpers | None = None
    size = 1


_CREW = _Crew()


@contextlib.contextmanager
def crew() -> Iterator[None]:
    """Within, `share` uses as many threads as torch may use here, and each of them computes alone.

    Threads inside operations wait for each other at the end of every one, and those of LAPACK for a few matrices cost
    more than they bring. The threads of a crew meet once a layer, or less often.
    """
    _keep_memory()
    size = torch.get_num_threads()
    if size == 1 or _CREW.helpers is not None:
        yield
        return
    with threads(1):
        helpers = _Helpers(size - 1)
        try:
            with _crew_of(helpers, size):
                yield
        finally:
            helpers.dismiss()


@contextlib.contextmanager
def _crew_of(helpers: _Helpers | None, size: int) -> Iterator[None]:
    before = _CREW.helpers, _CREW.size
    _CREW.helpers, _CREW.size = helpers, size
    try:
        yield
    finally:
        _CREW.helpers, _CREW.size = before


@functools.cache
def _keep_memory() -> None:
    """Let blocks of memory be used again, once for all: new ones of 4 MB, page by page, took a third of the time."""
    bytes(MOST_KEPT)


def _compute_alone() -> None:
    torch.get_num_threads()  # which takes the count that new threads start with, and would do so later
    _set_own_threads(1)


def crew_size() -> int:
    """Threads that `share` uses here."""
    return _CREW.size


def share(work: Callable[..., object], *parts: Iterable[Any]) -> None:
    """`work(*part)` for each part of `zip(*parts)`, in any order, on all threads of the crew; without gradients.

    Work that shares in turn does so with nobody.

    Examples
    --------
    >>> x = torch.arange(6.0)
    >>> with crew():
    ...     share(lambda some: some.mul_(2), x.split(2))
    >>> x
    tensor([ 0.,  2.,  4.,  6.,  8., 10.])
    """
    todo, is_inference = deque(zip(*parts, strict=True)), torch.is_inference_mode_enabled()

    def do_some() -> None:
        with torch.inference_mode(is_inference), torch.no_grad(), _crew_of(None, 1):
            try:
                while (part := _take(todo)) is not None:
                    work(*part)
            finally:
                todo.clear()  # where one fails, the others stop

    if _CREW.helpers is None or len(todo) < 2:
        do_some()
    else:
        _CREW.helpers.join_in(do_some, min(_CREW.size, len(todo)) - 1)


def _take(todo: deque[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    try:
        return todo.popleft()
    except IndexError:  # asking before would not do: another thread may be quicker
        return None
