"""The benchmark from end to end with toy methods: every kind of ending, resuming, and nothing lost or doubled."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from cases import each
from graphbam.benchmarks import run as runner
from graphbam.benchmarks.baselines import Method
from graphbam.benchmarks.cases import draw_problem, resolve_cases
from graphbam.benchmarks.run import OVERHEAD, Fit, Forecast, Timeouts, is_open, make_plan
from graphbam.benchmarks.store import COLUMNS
from graphbam.errors import ConfigError

TIMES = ["seconds", "peak_mib"]
QUICK = {"time_limit": 20.0, "memory_limit": 2048.0}


def same(first, second):
    pd.testing.assert_frame_equal(first.drop(columns=TIMES), second.drop(columns=TIMES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def results(folder):
    """One run of toys that end in every way there is."""
    toys = [f"toys:{name}" for name in ("Correlation", "Noise", "Sleeper", "Glutton", "Raiser", "Decliner", "Liar")]
    standings = []
    run = {"out": folder, "trials": 1, "time_limit": 2.0, "memory_limit": 150.0, "progress": standings.append}
    gb.benchmark(["toys:Sleeper"], ["linear-d6-m30", "linear-d12-m30", "linear-d14-m40"], **run)
    frame = gb.benchmark(toys, ["linear-d6-m30"], **run)
    frame.attrs["standings"] = standings
    return frame


def pick(results, method, case="linear-d6-m30"):
    (row,) = results[(results["method"] == f"toy-{method}") & (results["case"] == case)].to_dict("records")
    return row


def test_every_fit_has_one_row_with_every_column(results, folder):
    assert len(results) == 9
    assert list(results.columns) == list(COLUMNS)
    assert not results.duplicated(["case", "trial", "method"]).any()
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "results.parquet"), results)


def test_an_answer_is_scored_against_the_truth(results):
    row = pick(results, "correlation")
    (case,) = resolve_cases(["linear-d6-m30"])
    problem = draw_problem(case, 0)
    assert (row["status"], row["kind"], row["source"], row["mechanism"]) == ("ok", "dag", "simulated", "linear")
    assert (row["n_variables"], row["n_samples"], row["n_edges"]) == (6, 30, problem.adjacency.sum())
    assert row["n_found"] == (np.abs(np.corrcoef(problem.x_md.T)) > 0.3).sum() // 2 - 3
    assert 0 < row["skeleton_ap"] <= 1
    assert row["shd"] >= row["skeleton_shd"]
    assert row["fingerprint"] == problem.fingerprint()
    assert (row["package_version"], row["graphbam_version"]) == (gb.__version__, gb.__version__)


def test_undirected_methods_get_no_scores_for_directions(results):
    row = pick(results, "noise")
    assert pd.isna([row[name] for name in ("cpdag_ap", "shd", "empty_shd", "arrow_precision")]).all()
    assert row["moral_ap"] > 0


def test_methods_get_a_seed_of_the_case_and_the_trial(results):
    row = pick(results, "noise")
    (case,) = resolve_cases(["linear-d6-m30"])
    assert row["seed"] == Fit(case, 0, Method("a", "a", "dag")).seed()
    upper_dd = np.triu(np.random.default_rng(row["seed"]).random((6, 6)), 1)
    assert row["n_found"] == (upper_dd > 0.8).sum()


def test_a_time_out_is_a_row_and_larger_cases_are_spared(results):
    late, spared = pick(results, "sleeper", "linear-d12-m30"), pick(results, "sleeper", "linear-d14-m40")
    assert pick(results, "sleeper")["status"] == "ok"
    assert (late["status"], late["reason"]) == ("timeout", "more than 2 s")
    assert late["seconds"] >= 2
    assert (spared["status"], spared["reason"]) == ("skipped", "timed out at d=12, M=30")
    assert pd.isna([late["skeleton_ap"], late["n_found"], spared["seconds"]]).all()
    assert not pd.isna([late["n_edges"], late["hardware"], spared["fingerprint"]]).any()


@each(
    ("method", "status", "reason"),
    [
        ("glutton", "memory", "more than 150 MiB ("),
        ("raiser", "error", "ValueError: no luck"),
        ("decliner", "skipped", "30 samples of 6 variables are not to its taste"),
        ("liar", "error", "GraphError: fit returned function; it must return an Answer"),
    ],
)
def test_what_goes_wrong_is_a_row_with_its_reason(results, method, status, reason):
    row = pick(results, method)
    assert (row["status"], row["reason"][: len(reason)]) == (status, reason)
    assert np.isnan(row["skeleton_ap"])


def test_all_methods_see_the_same_tables(results):
    assert (results.groupby(["case", "trial"])["fingerprint"].nunique() == 1).all()
    assert results.groupby("fingerprint")["case"].nunique().max() == 1


def test_progress_counts_to_the_end(results):
    standings = results.attrs["standings"]
    assert [(standing.done, standing.total) for standing in standings[:3]] == [(1, 3), (2, 3), (3, 3)]
    assert [(standing.done, standing.total) for standing in standings[3:]] == [(done, 7) for done in range(2, 8)]
    assert standings[-1].seconds_left == 0


def test_a_finished_run_does_nothing_more(results, folder):
    before = (folder / "journal.jsonl").read_bytes()
    standings = []
    same(gb.benchmark(out=folder, progress=standings.append), results)
    assert not standings
    assert (folder / "journal.jsonl").read_bytes() == before


# ── resuming ──────────────────────────────────────────────────────────────────────────────────────────────


def test_some_rows_are_done_again_when_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_DIARY", str(tmp_path / "diary"))
    run = {"out": tmp_path / "run", "trials": 1, "cases": ["linear-d4-m30"]}
    gb.benchmark(["toys:Raiser", "toys:Slow"], **run)
    standings = []
    gb.benchmark(retry="error", out=tmp_path / "run", progress=standings.append)
    assert [standing.row["method"] for standing in standings] == ["toy-raiser"]
    assert len((tmp_path / "run" / "journal.jsonl").read_text().splitlines()) == 3
    assert len(pd.read_parquet(tmp_path / "run" / "results.parquet")) == 2
    assert len((tmp_path / "diary").read_text().splitlines()) == 1


def test_methods_cases_and_trials_can_be_added(tmp_path):
    standings = []
    run = {"cases": ["linear-d4-m30"], "out": tmp_path, **QUICK}
    gb.benchmark(["toys:Noise"], trials=1, **run)
    frame = gb.benchmark(["toys:Noise", "toys:Correlation"], trials=2, progress=standings.append, **run)
    assert (len(standings), len(frame)) == (3, 4)
    assert (frame.groupby("trial")["fingerprint"].nunique() == 1).all()


def run_in_shell(*words, diary):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TOY_DIARY": str(diary)}
    command = [sys.executable, "-m", "graphbam.cli", "benchmark", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, preexec_fn=heed_interrupts, text=True, **pipes)


def heed_interrupts():
    """What a shell runs in the background ignores Ctrl-C, and so would all that these tests start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_lines(path, n_lines, process):
    end = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < n_lines:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.01)


def test_killed_in_the_middle_it_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    """Kill -9, tear the last line as well, go on with nothing but the folder: the results of an undisturbed run."""
    asked = ["--methods", "toys:Slow,toys:Noise", "--cases", "linear-d4-m30,sine-d5-m20", "--trials", 3]
    killed = run_in_shell(*asked, "-o", tmp_path / "a", "--jobs", 2, diary=tmp_path / "diary")
    journal = tmp_path / "a" / "journal.jsonl"
    wait_for_lines(journal, 3, killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    n_before = journal.read_bytes().count(b"\n")
    journal.write_bytes(journal.read_bytes() + b'{"case": "linear-d4-m30", "tri')
    assert n_before < 12
    monkeypatch.setenv("TOY_DIARY", str(tmp_path / "diary"))
    resumed = gb.benchmark(out=tmp_path / "a")
    monkeypatch.delenv("TOY_DIARY")
    same(
        resumed,
        gb.benchmark(["toys:Slow", "toys:Noise"], ["linear-d4-m30", "sine-d5-m20"], out=tmp_path / "b", trials=3),
    )
    keys = [(row["case"], row["trial"], row["method"]) for row in map(json.loads, journal.read_text().splitlines())]
    assert len(keys) == len(set(keys)) == 12
    seeds = [line.split()[0] for line in (tmp_path / "diary").read_text().splitlines()]
    assert len(set(seeds)) == 6
    assert 6 <= len(seeds) <= 8  # at most the two fits that were under way are repeated


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    asked = ["--methods", "toys:Noise,toys:Sleeper", "--cases", "linear-d10-m30", "--trials", 2]
    process = run_in_shell(*asked, "-o", tmp_path / "a", diary=tmp_path / "diary")
    wait_for_lines(tmp_path / "diary", 1, process)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"Go on with: graphbam benchmark -o {tmp_path / 'a'}" in told
    assert "Traceback" not in told
    assert pd.read_csv(tmp_path / "a" / "results.csv")["status"].tolist() == ["ok", "ok"]


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────


@each(
    ("change", "message"),
    [
        ({"methods": ["nobody"]}, "no method is called 'nobody'"),
        ({"methods": []}, "no method is asked for"),
        ({"cases": ["nothing"]}, r"no case is called 'nothing'.*, gaps\. A simulated case is .*-m200\.$"),
        ({"cases": None}, "no case is asked for"),
        ({"trials": 0}, "trials=0"),
        ({"jobs": 0}, "jobs=0"),
        ({"engine": "spark"}, "engine='spark' is unknown"),
        ({"scheduler": "tcp://x:1"}, "add engine dask"),
        ({"retry": "ok"}, "retry='ok' is no status"),
    ],
)
def test_mistakes_are_refused_before_anything_is_written(tmp_path, change, message):
    asked = {"methods": ["toys:Noise"], "cases": ["linear-d4-m30"], "out": tmp_path / "run"} | change
    with pytest.raises(ConfigError, match=message):
        gb.benchmark(**asked)
    assert not (tmp_path / "run").exists()


def test_files_of_others_are_left_alone(tmp_path):
    for name, text in (("journal.jsonl", "mine, without the end of a line"), ("results.csv", "mine\n")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text(text)
        with pytest.raises(ConfigError, match=f"{name} is there already, and nothing says that graphbam wrote it"):
            gb.benchmark(["toys:Noise"], ["linear-d4-m30"], out=folder)
        assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(name, text)]


def test_a_folder_made_under_other_rules_is_refused(results, folder):
    with pytest.raises(ConfigError, match=r"time_limit=2\.0, now 9\.0"):
        gb.benchmark(out=folder, time_limit=9.0)


def test_a_table_that_has_changed_is_refused(tmp_path):
    table = tmp_path / "mine" / "a"
    table.mkdir(parents=True)
    (table / "graph.csv").write_text("source,target\nx,y\n")
    (table / "data.csv").write_text("x,y\n1,2\n3,5\n2,2\n")
    frame = gb.benchmark(["toys:Noise"], [str(tmp_path / "mine")], out=tmp_path / "run")
    assert frame[["case", "source", "family", "trial"]].values.tolist() == [["mine/a", "folder", "mine", 0]]
    (table / "data.csv").write_text("x,y\n1,2\n3,5\n2,9\n")
    with pytest.raises(ConfigError, match="the table of mine/a, trial 0, is not the one"):
        gb.benchmark(["toys:Correlation"], out=tmp_path / "run")
    assert len(gb.benchmark(["toys:Noise"], out=tmp_path / "run")) == 1  # nothing left to do


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    find = runner.importlib.util.find_spec
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda name: None if name == "joblib" else find(name))
    with pytest.raises(ConfigError, match="needs joblib, which is not installed"):
        gb.benchmark(["toys:Noise"], ["linear-d4-m30"], out=tmp_path / "run")


def test_an_error_of_our_own_stops_the_run_and_keeps_the_rows(tmp_path):
    def fail(standing):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        gb.benchmark(["toys:Noise"], ["linear-d4-m30"], out=tmp_path, trials=3, progress=fail)
    assert len(pd.read_csv(tmp_path / "results.csv")) == 1


# ── the order of fits, what is done again, what is spared, and how long it will take ────────────────────────


METHODS = [Method("b", "b", "dag"), Method("a", "a", "dag")]


def plan(*names, trials=2):
    return make_plan(resolve_cases(names), METHODS, trials)


def row(case="sine-d20-m200", method="a", status="timeout", seconds=1.0):
    (found,) = resolve_cases([case])
    shape = {"n_variables": found.n_variables, "n_samples": found.n_samples}
    return {"case": case, "method": method, "status": status, "source": "simulated", "family": found.family,
            "seconds": seconds, "reason": None} | shape  # fmt: skip


def test_small_tables_come_first_and_methods_stay_together_in_a_class_of_widths():
    keys = [fit.key() for fit in plan("sine-d20-m50", "tree-d10-m90", "sine-d5-m50", "sine-d11-m50")]
    small = [(case, trial) for case in ("sine-d5-m50", "tree-d10-m90") for trial in (0, 1)]
    large = [(case, trial) for case in ("sine-d11-m50", "sine-d20-m50") for trial in (0, 1)]
    assert keys == [(*table, method) for tables in (small, large) for method in "ba" for table in tables]


@each("status", ["ok", "error", "timeout", "memory", "skipped"])
def test_only_what_is_to_be_done_again_is_open(status):
    assert is_open(None, frozenset())
    assert not is_open(row(status=status), frozenset())
    assert is_open(row(status=status), frozenset({"error", "timeout"})) == (status in ("error", "timeout"))


def test_what_was_spared_is_done_again_with_the_time_outs():
    spared = row(status="skipped") | {"reason": Timeouts([row()]).find(resolve_cases(["sine-d50-m200"])[0], "a")}
    assert is_open(spared, frozenset({"timeout"}))
    assert not is_open(row(status="skipped") | {"reason": "needs R"}, frozenset({"timeout"}))


@each(
    ("case", "method", "is_spared"),
    [
        ("sine-d50-m200", "a", True),
        ("sine-d20-m500", "a", True),
        ("sine-d20-m200", "a", False),  # the other trials of the same case
        ("sine-d100-m50", "a", False),  # wider, but shorter
        ("sine-d10-m500", "a", False),
        ("cosine-d50-m200", "a", False),
        ("sine-d50-m200", "b", False),
    ],
)
def test_only_larger_cases_of_the_same_family_and_method_are_spared(case, method, is_spared):
    timeouts = Timeouts([row(), row(case="cosine-d20-m200", status="error")])
    reason = timeouts.find(resolve_cases([case])[0], method)
    assert reason == ("timed out at d=20, M=200" if is_spared else None)


def forecast_of(*names, rows=(), trials=2, limit=60.0):
    return Forecast(plan(*names, trials=trials), rows, limit)


def test_the_forecast_knows_methods_apart_and_grows_with_the_variables(monkeypatch):
    monkeypatch.setattr("graphbam.benchmarks.run.OVERHEAD", 0.0)
    forecast = forecast_of("sine-d10-m50", "sine-d20-m50")
    assert forecast.seconds(0.0) == 0.0
    for method, seconds in (("a", 1.0), ("a", 3.0), ("b", 0.5)):
        forecast.note(row("sine-d10-m50", method, "ok", seconds))
    assert forecast.seconds(4.5) == pytest.approx(0.5 + 2 * (0.5 * 4) + 2 * (2.0 * 4))
    forecast.note(row("sine-d20-m50", "a", "ok", 20.0))
    assert forecast.seconds(24.5) == pytest.approx(0.5 + 2 * (0.5 * 4) + 20.0)
    forecast.note(row("sine-d10-m50", "b", "skipped", None))
    assert forecast.seconds(24.5) == pytest.approx(2 * (0.25 * 4) + 20.0)


def test_what_every_fit_costs_does_not_grow_with_the_variables():
    rows = [row("sine-d10-m50", name, "ok", 0.01) for name in "ab"]
    assert forecast_of("sine-d100-m50", rows=rows, trials=1).seconds(0.0) == pytest.approx(2 * (1.0 + OVERHEAD))


def test_the_forecast_measures_how_fast_it_goes():
    """Two processes do two seconds of work in one; rows of an earlier run say what fits cost, not how fast it goes."""
    forecast = forecast_of("sine-d10-m50", rows=[row("sine-d10-m50", name, "ok", 1.0) for name in "ab"])
    forecast.note(row("sine-d10-m50", "a", "ok", 1.0))
    forecast.note(row("sine-d10-m50", "b", "ok", 1.0))
    assert forecast.seconds(1 + OVERHEAD) == pytest.approx(1 + OVERHEAD)


def test_no_fit_is_expected_to_pass_the_limit():
    rows = [row("sine-d10-m50", name, "ok", 5.0) for name in "ab"]
    assert forecast_of("sine-d100-m50", rows=rows, trials=1).seconds(0.0) == 120.0


# ── engines: the same rows on a cluster as here, also when a machine of it dies ─────────────────────────────


TWO_CASES = ["linear-d4-m30", "sine-d5-m20"]


@pytest.fixture(scope="module")
def diary(tmp_path_factory):
    """Where slow toys note what they begin, and for whom."""
    return tmp_path_factory.mktemp("diary") / "diary"


@pytest.fixture(scope="module")
def cluster(diary):
    from distributed import LocalCluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOY_DIARY", str(diary))
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            yield cluster


def run_two(folder, **settings):
    return gb.benchmark(["toys:Slow", "toys:Noise"], TWO_CASES, out=folder, trials=3, **settings)


def read(diary):
    return [line.split() for line in diary.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_rows_are_those_of_this_machine_though_a_worker_dies_midway(cluster, diary, tmp_path):
    """What the dead worker had begun is done again by another, and counts once."""
    done, killed = [], []

    def kill_whoever_is_in_a_fit(standing):
        done.append(str(standing.row["seed"]))
        end = time.monotonic() + 20
        while not killed and time.monotonic() < end:
            for seed, worker in read(diary):
                if seed not in done and not killed:
                    os.kill(int(worker), signal.SIGKILL)
                    killed.append(seed)

    address = cluster.scheduler_address
    frame = run_two(tmp_path / "dask", engine="dask", scheduler=address, progress=kill_whoever_is_in_a_fit)
    assert [seed for seed, _ in read(diary)].count(killed[0]) == 2
    assert len((tmp_path / "dask" / "journal.jsonl").read_text().splitlines()) == len(frame) == 12
    here, times = run_two(tmp_path / "here", jobs=2), ["seconds", "peak_mib"]
    pd.testing.assert_frame_equal(frame.drop(columns=times), here.drop(columns=times))
    assert (frame["status"] == "ok").all()


def test_fits_that_end_because_the_run_does_leave_no_row(monkeypatch):
    """One fit is done and its row cannot be written; the other is ended with the run, and has not failed."""
    rows, ended, late = [], threading.Event(), threading.Event()

    def execute(job):
        if job == "second":
            ended.wait(20)
            late.set()
        return job

    def finish(row):
        rows.append(row)
        raise OSError("disk full")

    monkeypatch.setattr(runner, "execute", execute)
    monkeypatch.setattr(runner, "dismiss", lambda run: ended.set())
    with pytest.raises(OSError, match="disk full"):
        runner.run_on_this_machine("a run", iter(["first", "second", "third"]), finish, jobs=2)
    assert late.wait(20)
    time.sleep(0.05)
    assert rows == ["first"]


def test_a_scheduler_without_workers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE", 1)
    with pytest.raises(ConfigError, match=r"no Dask worker answers at tcp://127\.0\.0\.1:9 within 1 s"):
        run_two(tmp_path, engine="dask", scheduler="tcp://127.0.0.1:9")
