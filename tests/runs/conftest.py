"""Scripts of runs/, run as a user runs them."""

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "runs"


@pytest.fixture
def run_script(monkeypatch):
    """Run a script by name with these words behind it; gives what it has defined."""

    def call(name, *words, run_name="__main__"):
        path = FOLDER / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(path), *map(str, words)])
        monkeypatch.syspath_prepend(FOLDER)  # scripts import one another
        return runpy.run_path(str(path), run_name=run_name)

    return call
