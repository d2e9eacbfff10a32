"""`graphbam benchmark` as a user meets it."""

import sys

import pandas as pd
import pytest

from cases import each
from graphbam import cli
from graphbam.benchmarks.cases import SUITES
from graphbam.benchmarks.run import Standing
from graphbam.cli import _benchmark


@pytest.fixture
def run(capsys, monkeypatch):
    """Exit code, output and errors of `graphbam benchmark ARGUMENTS`."""

    def make(*arguments):
        monkeypatch.setattr(sys, "argv", ["graphbam", "benchmark", *map(str, arguments)])
        monkeypatch.setattr(sys, "path", list(sys.path))
        with pytest.raises(SystemExit) as stop:
            cli.main()
        text = capsys.readouterr()
        return stop.value.code or 0, text.out, text.err

    return make


def test_rows_are_written_and_counted(run, tmp_path):
    code, text, told = run(
        "--methods", "toys:Noise, toys:Decliner", "--methods", "toys:Correlation", "--cases", "linear-d4-m30",
        "--trials", 2, "--time-limit", 30, "--memory-limit", 2000, "--try-larger", "-o", tmp_path / "run",
    )  # fmt: skip
    assert code == 0
    frame = pd.read_csv(tmp_path / "run" / "results.csv")
    assert sorted(set(frame["method"])) == ["toy-correlation", "toy-decliner", "toy-noise"]
    lines = [line.split() for line in text.splitlines()]
    assert lines[0] == ["method", "ok", "skipped"]
    assert ["toy-decliner", "2"] in lines
    assert ["toy-noise", "2"] in lines
    assert f"{tmp_path / 'run' / 'results.parquet'}  6 rows" in text
    assert "6/6  about 0 s left · toy-correlation · linear-d4-m30 · ok" in told
    code, _, told = run("-o", tmp_path / "run", "--trials", 1)
    assert (code, told) == (0, "")
    code, _, told = run("-o", tmp_path / "run", "--retry", "error,skipped", "--trials", 1)
    assert "1/2" not in told
    assert "3/3  about 0 s left · toy-decliner" in told


def test_on_a_terminal_there_is_a_bar(run, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, _, told = run("--methods", "toys:Noise", "--cases", "linear-d4-m30", "--trials", 1, "-o", tmp_path)
    assert code == 0
    assert "1/1" in told


def test_the_choices_are_listed(run):
    code, text, _ = run("--list")
    assert code == 0
    assert "methods: graphbam, " in text
    assert all(f"{name} cases ({len(names)})" in text for name, names in SUITES.items())


@each(
    ("words", "message"),
    [
        (["--methods", "nobody", "--cases", "quick"], "error: no method is called 'nobody'"),
        (["--methods", "toys:Noise", "--cases", "quik"], "error: no case is called 'quik', and it is no folder; did"),
        (["--methods", "toys:Noise", "--cases", "quick", "--retry", "all"], "error: retry='all' is no status"),
        (["--methods", "toys:Noise"], "error: no case is asked for"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing_behind(run, tmp_path, words, message):
    code, text, told = run(*words, "-o", tmp_path / "run")
    assert (code, text) == (2, "")
    assert told.startswith(message)
    assert told.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_without_a_folder_it_says_so(run):
    code, _, told = run("--methods", "toys:Noise")
    assert code == 2
    assert "a folder for the results is needed" in told


def test_a_method_in_the_current_folder_is_found(run, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from toys import Noise\nclass Mine(Noise):\n    name = 'my-method'\n")
    monkeypatch.chdir(tmp_path)
    code, text, _ = run("--methods", "mine:Mine", "--cases", "linear-d4-m30", "--trials", 1, "-o", "run")
    assert code == 0
    assert text.splitlines()[1].split() == ["my-method", "1"]


@each(("seconds", "words"), [(3.2, "3 s"), (100.0, "2 min"), (7200.0, "2.0 h")])
def test_remaining_time_is_told_in_fitting_units(seconds, words):
    row = {"method": "pc", "case": "sine-d5-m40", "status": "ok"}
    assert _benchmark.describe(Standing(1, 9, row, seconds)) == f"about {words} left · pc · sine-d5-m40 · ok"
