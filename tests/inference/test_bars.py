"""Bars: after two seconds, where somebody may look, and never when silence is asked for."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest

import graphbam as gb
from graphbam.errors import ConfigError
from graphbam.inference import bars
from graphbam.nn.cost import be_silent
from standins import PartialCorrelation


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def open_terminal(monkeypatch):
    """Set up a terminal in the middle of a test: between fixture and test, pytest changes stderr itself."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(bars, "PATIENCE", 0.15)

    def start(screen):
        monkeypatch.setattr("sys.stderr", screen)
        return screen

    return start


def work(progress, seconds):
    with bars.listening(progress) as tell:
        tell(0.25, "a quarter")
        time.sleep(seconds)


def test_a_bar_comes_when_it_takes_long(open_terminal):
    terminal = open_terminal(Terminal())
    with bars.listening(None) as tell:
        tell(0.25, "a quarter [b]done")
        for _ in range(100):
            if "a quarter [b]done" in terminal.getvalue():
                break
            time.sleep(0.05)
    assert "a quarter [b]done" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith("\x1b[2K")  # it is wiped away


def test_what_is_quick_and_what_is_silent_shows_none(open_terminal):
    terminal = open_terminal(Terminal())
    work(None, 0.0)
    work(False, 0.4)
    assert terminal.getvalue() == ""
    plain = open_terminal(io.StringIO())
    work(None, 0.4)  # nobody looks at a file
    assert plain.getvalue() == ""
    with bars.listening(None) as tell:
        assert tell is be_silent


def test_errors_pass_and_take_the_bar_with_them(open_terminal):
    open_terminal(Terminal())
    bar = bars.find_place(is_wanted=True)
    with pytest.raises(ZeroDivisionError), bar:
        bar.tell(1 / 0, "never")
    assert bar.timer.finished.is_set()


def test_inference_takes_all_of_them():
    x_md = np.random.default_rng(0).normal(size=(40, 3))
    heard = []
    gb.infer(x_md, weights=PartialCorrelation(), progress=lambda share, sentence: heard.append((share, sentence)))
    assert heard[-1] == (1.0, "done")
    for progress in (True, False, None):
        gb.infer_many([x_md], weights=PartialCorrelation(), progress=progress)
    with pytest.raises(ConfigError, match="progress='yes' is none of True, False, None"):
        gb.infer(x_md, weights=PartialCorrelation(), progress="yes")
