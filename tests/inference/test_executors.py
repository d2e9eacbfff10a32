"""Work done elsewhere gives the same answers, and a worker that dies costs its task only."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import graphbam as gb
from graphbam.errors import ConfigError, GraphbamError
from graphbam.inference.executors import Dask, Here, Processes, Ray, open_executor
from graphbam.inference.settings import InferConfig
from standins import PartialCorrelation
from workers import die_once, square


def test_here_is_one_after_the_other():
    assert list(open_executor(None).run(square, range(4))) == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert isinstance(open_executor(None), Here)


def test_a_process_that_dies_costs_its_task(tmp_path):
    tasks = ((k, tmp_path) for k in range(8))
    assert sorted(open_executor("2").run(die_once, tasks)) == [(k, k**2) for k in range(8)]
    assert (tmp_path / "died").exists()


def test_a_task_that_always_dies_ends_the_run(tmp_path, monkeypatch):
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", None, raising=False)  # nobody knows what the runner of the tests is
    monkeypatch.delattr(main, "__file__", raising=False)
    with pytest.raises(GraphbamError, match=r"task 1 died 3 times; most likely memory ran out"):
        list(Processes(1).run(os._exit, [7]))
    script = tmp_path / "script.py"
    script.touch()
    monkeypatch.setattr(main, "__file__", str(script), raising=False)
    with pytest.raises(GraphbamError, match=r"task 1 died 3 times, and no task was done before.* use fewer processes"):
        list(Processes(1).run(os._exit, [7]))


def test_a_script_that_processes_cannot_read_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from graphbam.inference.executors import Processes\nlist(Processes(1).run(abs, range(2)))\n")
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False).stderr
    assert "no task was done before. Every process reads the script anew: put what it does below `if __name__" in told


def test_unknown_executors_are_refused():
    for strange in (0, True, "cloud", object()):
        with pytest.raises(ConfigError, match=r"executor=.* is not known; choose a number of processes"):
            open_executor(strange)
        with pytest.raises(ConfigError, match=r"executor=.* is not known"):
            InferConfig(executor=strange)  # though a small table would never need it


def test_processes_say_what_is_said_here(frame):
    settings = {"weights": PartialCorrelation(), "stability": 3}
    here, there = (gb.infer_many([frame, "no such file.csv"], executor=k, **settings) for k in (None, 1))
    assert np.allclose(here[0].probabilities, there[0].probabilities)
    assert np.array_equal(here[0].stability, there[0].stability)
    assert not there[1]
    assert "does not exist" in there[1].message


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_dask_worker_that_dies_costs_its_task(cluster, tmp_path):
    executor = open_executor(cluster)
    assert isinstance(executor, Dask)
    assert sorted(executor.run(die_once, ((k, tmp_path) for k in range(8)))) == [(k, k**2) for k in range(8)]
    assert (tmp_path / "died").exists()


def test_a_dask_cluster_says_what_is_said_here(cluster, frame, tiny_path):
    settings = {"weights": tiny_path, "blocks": "always", "stability": 2}
    here, there = (gb.infer(frame, executor=k, **settings) for k in (None, cluster))
    assert np.allclose(here.probabilities, there.probabilities, atol=0.02)  # a worker may multiply in bfloat16
    assert np.abs(here.stability - there.stability).mean() < 0.1


def test_a_connection_to_an_address_ends_with_the_call(cluster, frame):
    settings = {"weights": PartialCorrelation(), "executor": cluster.scheduler.address}
    assert all(gb.infer_many([frame, frame], **settings))
    gc.collect()
    assert list(cluster.run_on_scheduler(lambda dask_scheduler: dask_scheduler.clients)) == [
        "fire-and-forget",
        cluster.id,
    ]


def test_an_address_where_no_scheduler_is_is_one_sentence():
    dask = pytest.importorskip("dask")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        for nowhere in ("tcp://127.0.0.1:9", "smoke://127.0.0.1:9"):
            with pytest.raises(ConfigError, match=f"executor='{nowhere}' cannot be reached: .*\\. Start a scheduler"):
                open_executor(nowhere)


def test_a_ray_worker_that_dies_costs_its_task(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # where workers find the helpers of the tests
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        executor = open_executor("ray")
        assert isinstance(executor, Ray)
        assert sorted(executor.run(die_once, ((k, tmp_path) for k in range(8)))) == [(k, k**2) for k in range(8)]
        assert (tmp_path / "died").exists()
    finally:
        ray.shutdown()
