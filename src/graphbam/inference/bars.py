"""A progress bar by itself, for what takes longer than two seconds: in a terminal or a notebook, nowhere else."""

from __future__ import annotations

import contextlib
import html
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from graphbam.errors import ConfigError, Setting
from graphbam.nn.cost import Progress, be_silent

PATIENCE = 2.0
"""Seconds before a bar appears."""


@contextlib.contextmanager
def listening(progress: Progress | bool | None) -> Iterator[Progress]:
    """Whom to tell how far the work is.

    Parameters
    ----------
    progress : callable, bool or None
        A function is told; False is silent; None shows a bar where somebody may look at it, a terminal or a notebook;
        True shows one anyway.

    Examples
    --------
    >>> with listening(lambda share, sentence: print(f"{share:.0%} {sentence}")) as tell:
    ...     tell(0.5, "half of it")
    50% half of it
    """
    if callable(progress):
        yield progress
        return
    if progress not in (True, False, None):
        raise ConfigError(
            Setting("progress", progress), " is none of True, False, None and a function of a share and a sentence."
        )
    place = None if progress is False else find_place(is_wanted=progress is True)
    if place is None:
        yield be_silent
        return
    with place as bar:
        yield bar.tell


def find_place(is_wanted: bool = False) -> _Bar | None:
    """A bar for the notebook or the terminal this runs in; None where there is neither."""
    if _is_notebook():
        return _NotebookBar()
    return _TerminalBar() if is_wanted or (sys.stderr is not None and sys.stderr.isatty()) else None


def _is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class _Bar:
    """Shown when patience is over, gone when the work is done."""

    def __init__(self) -> None:
        self.start, self.share, self.sentence, self.is_shown = time.monotonic(), 0.0, "", False
        self.lock = threading.Lock()
        self.timer = threading.Timer(PATIENCE, self._wake)
        self.timer.daemon = True

    def __enter__(self) -> Self:
        self.timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.timer.cancel()
        with self.lock:
            if self.is_shown:
                self.close()
            self.is_shown = True  # too late for the timer

    def tell(self, share: float, sentence: str) -> None:
        """Note how far the work is; show it if it has taken long."""
        with self.lock:
            self.share, self.sentence = share, sentence
            if self.is_shown:
                self.update()
            elif time.monotonic() - self.start >= PATIENCE:
                self._open()

    def _wake(self) -> None:
        with self.lock:
            if not self.is_shown:
                self._open()

    def _open(self) -> None:
        self.is_shown = True
        self.show()
        self.update()

    def show(self) -> None:
        raise NotImplementedError

    def update(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _TerminalBar(_Bar):
    """Rich's, on stderr."""

    def show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichBar

        columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
        self._bar = RichBar(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=1.0)

    def update(self) -> None:
        self._bar.update(self._task, completed=self.share, description=self.sentence)

    def close(self) -> None:
        self._bar.stop()


class _NotebookBar(_Bar):
    """A line of HTML below the cell; no widgets are needed."""

    def show(self) -> None:
        from IPython.display import HTML, display

        self._handle: Any = display(HTML(self._spell()), display_id=True)

    def update(self) -> None:
        self._publish(self._spell())

    def close(self) -> None:
        self._publish("")

    def _publish(self, text: str) -> None:
        from IPython.display import HTML

        if self._handle is not None:
            self._handle.update(HTML(text))

    def _spell(self) -> str:
        seconds = time.monotonic() - self.start
        bar = f'<progress max="1" value="{self.share:.3f}" style="width:18em"></progress>'
        return f"<div>{bar} {html.escape(self.sentence)} <small>{seconds:.0f} s</small></div>"
