"""The same rows on a cluster as here, also when a machine of it dies."""

import os
import signal
import threading
import time

import pandas as pd
import pytest

import graphbam as gb
from graphbam.benchmarks import engines
from graphbam.errors import ConfigError

CASES = ["linear-d4-m30", "sine-d5-m20"]


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


def run(folder, **settings):
    return gb.benchmark(["toys:Slow", "toys:Noise"], CASES, out=folder, trials=3, **settings)


def read(diary):
    return [line.split() for line in diary.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_rows_are_those_of_this_machine_though_a_worker_dies_midway(cluster, diary, tmp_path):
    """What the dead worker had begun is done again by another, and counts once."""
    done, killed = [], []

    def kill_whoever_is_in_a_fit(progress):
        done.append(str(progress.row["seed"]))
        end = time.monotonic() + 20
        while not killed and time.monotonic() < end:
            for seed, worker in read(diary):
                if seed not in done and not killed:
                    os.kill(int(worker), signal.SIGKILL)
                    killed.append(seed)

    address = cluster.scheduler_address
    frame = run(tmp_path / "dask", engine="dask", scheduler=address, report=kill_whoever_is_in_a_fit)
    assert [seed for seed, _ in read(diary)].count(killed[0]) == 2
    assert len((tmp_path / "dask" / "journal.jsonl").read_text().splitlines()) == len(frame) == 12
    here, times = run(tmp_path / "here", jobs=2), ["seconds", "peak_mib"]
    pd.testing.assert_frame_equal(frame.drop(columns=times), here.drop(columns=times))
    assert (frame["status"] == "ok").all()


def test_fits_that_end_because_the_run_does_leave_no_row(monkeypatch):
    """One fit is done and its row cannot be written; the other is ended with the run, and has not failed."""
    rows, ended, late = [], threading.Event(), threading.Event()

    def execute(task):
        if task == "second":
            ended.wait(20)
            late.set()
        return task

    def finish(row):
        rows.append(row)
        raise OSError("disk full")

    monkeypatch.setattr(engines, "execute", execute)
    monkeypatch.setattr(engines, "dismiss", lambda run: ended.set())
    with pytest.raises(OSError, match="disk full"):
        engines.run_on_this_machine("a run", iter(["first", "second", "third"]), finish, jobs=2)
    assert late.wait(20)
    time.sleep(0.05)
    assert rows == ["first"]


def test_a_scheduler_without_workers_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "PATIENCE", 1)
    with pytest.raises(ConfigError, match=r"no Dask worker answers at tcp://127\.0\.0\.1:9 within 1 s"):
        run(tmp_path, engine="dask", scheduler="tcp://127.0.0.1:9")
