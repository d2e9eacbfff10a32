"""Rows survive crashes, come back once each, and a folder keeps to its rules."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cases import each
from graphbam.benchmarks.store import (
    COLUMNS,
    Settings,
    check_files,
    open_journal,
    settle,
    tidy,
    write_results,
    write_settings,
)
from graphbam.errors import ConfigError


def row(case="sine-d5-m40", trial=0, method="toy", **values):
    return dict.fromkeys(COLUMNS) | {"case": case, "trial": trial, "method": method, "status": "ok"} | values


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_not_asked_for_comes_from_the_folder_then_from_the_defaults(tmp_path):
    first = settle(tmp_path, {"methods": ("a",), "cases": ("b",), "time_limit": 7.0, "trials": None})
    assert (first.time_limit, first.memory_limit, first.trials) == (7.0, 4096.0, 5)
    write_settings(tmp_path, first)
    assert settle(tmp_path, {"time_limit": None, "methods": None}) == first


def test_methods_cases_and_trials_may_be_added(tmp_path):
    write_settings(tmp_path, Settings(methods=("a",), cases=("b",), trials=1))
    later = settle(tmp_path, {"methods": ("c",), "trials": 3})
    assert (later.methods, later.cases, later.trials) == (("c",), ("b",), 3)


def test_other_rules_are_refused_by_name(tmp_path):
    write_settings(tmp_path, Settings(time_limit=120.0, memory_limit=512.0))
    with pytest.raises(ConfigError, match=r"time_limit=120\.0, now 60\.0; skip_larger=True, now False") as refused:
        settle(tmp_path, {"time_limit": 60.0, "memory_limit": 512.0, "skip_larger": False})
    assert "memory_limit" not in str(refused.value)


@each("change", [{"trials": 0}, {"time_limit": 0.0}, {"memory_limit": -1.0}])
def test_impossible_settings_are_refused(tmp_path, change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        settle(tmp_path, change)


@each("text", ["{", "[]", '{"colour": 1}', '{"trials": 0}'])
def test_damaged_settings_are_refused(tmp_path, text):
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(ConfigError, match=r"settings\.json is damaged"):
        settle(tmp_path, {})


@each("name", ["journal.jsonl", "results.csv", "messages.log"])
def test_files_of_others_are_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ConfigError, match=f"{name} is there already, and nothing says that graphbam wrote it"):
        check_files(tmp_path)
    write_settings(tmp_path, Settings())
    check_files(tmp_path)


# ── journal ───────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_come_back_and_the_last_of_a_key_counts(tmp_path):
    with open_journal(tmp_path) as journal:
        for one in (row(status="error"), row(trial=1), row(reason="second thoughts – ü")):
            journal.append(one)
    with open_journal(tmp_path) as journal:
        assert [(key[1], found["status"]) for key, found in journal.rows.items()] == [(0, "ok"), (1, "ok")]
        assert journal.rows["sine-d5-m40", 0, "toy"] == row(reason="second thoughts – ü")


@each("keep", [1, 20, -1])
def test_a_torn_last_line_is_cut_off_and_its_fit_counts_as_not_done(tmp_path, keep):
    with open_journal(tmp_path) as journal:
        journal.append(row(trial=0))
        journal.append(row(trial=1))
    path = tmp_path / "journal.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:keep])
    with open_journal(tmp_path) as journal:
        assert [key[1] for key in journal.rows] == [0]
        journal.append(row(trial=2))
    assert [json.loads(line)["trial"] for line in path.read_text().splitlines()] == [0, 2]


@each("line", [b"not json", b"[]", b'{"case": "a"}'])
def test_damage_inside_is_named_by_line(tmp_path, line):
    with open_journal(tmp_path) as journal:
        journal.append(row())
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes() + line + b"\n" + path.read_bytes())
    with pytest.raises(ConfigError, match=r"line 2 of .* is damaged"), open_journal(tmp_path):
        pass


def test_a_row_is_on_disk_when_append_returns(tmp_path):
    with open_journal(tmp_path) as journal:
        journal.append(row())
        assert json.loads((tmp_path / "journal.jsonl").read_text()) == row()


def test_two_runs_cannot_write_to_one_folder_and_the_dead_do_not_hold_it(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from graphbam.benchmarks.store import open_journal\n"
        "with open_journal(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    with open_journal(tmp_path), pytest.raises(ConfigError, match="another run is writing"), open_journal(tmp_path):
        pass
    assert subprocess.run([sys.executable, "-c", code, tmp_path], check=False).returncode == -9
    with open_journal(tmp_path):
        pass


def test_a_folder_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write to"), open_journal(tmp_path / "file"):
        pass


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────


def test_results_are_typed_sorted_and_the_same_in_both_files(tmp_path):
    shapes = {"n_variables": 5, "n_samples": 40}
    rows = [
        row("b-d10-m20", n_variables=10, n_samples=20, skeleton_shd=3, seed=4_000_000_000, skeleton_ap=1 / 3),
        row("a-d10-m20", n_variables=10, n_samples=20, status="error", reason="no, never"),
        row("c-d5-m40", trial=1, **shapes),
        row("c-d5-m40", method="other", **shapes),
        row("c-d5-m40", **shapes),
    ]
    frame = write_results(tmp_path, rows)
    assert list(frame["case"]) == ["c-d5-m40"] * 3 + ["a-d10-m20", "b-d10-m20"]
    assert list(frame["method"][:3]) == ["other", "toy", "toy"]
    assert dict(frame.dtypes.astype(str)) == COLUMNS
    assert frame["skeleton_shd"].tolist() == [pd.NA] * 4 + [3]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "results.parquet"), frame)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "results.csv").astype(COLUMNS), frame)
    assert {path.name for path in tmp_path.iterdir()} == {"results.parquet", "results.csv"}


def test_every_column_is_explained():
    page = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert [name for name in COLUMNS if f"`{name}`" not in page] == []


def test_no_rows_make_an_empty_table_with_all_columns():
    assert list(tidy([]).columns) == list(COLUMNS)


def test_results_that_cannot_be_written_leave_the_old_ones(tmp_path, monkeypatch):
    write_results(tmp_path, [row(n_variables=5, n_samples=40)])
    before = (tmp_path / "results.csv").read_bytes()

    def fail(frame, path, **options):
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        write_results(tmp_path, [row(n_variables=6, n_samples=40)])
    assert (tmp_path / "results.csv").read_bytes() == before
    assert not list(tmp_path.glob(".*"))
