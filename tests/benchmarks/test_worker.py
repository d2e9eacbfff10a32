"""A fit becomes a reply, whatever the method does; times leave imports out, and nothing survives its owner."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

import toys
from cases import each
from graphbam.benchmarks import worker as workers
from graphbam.benchmarks.worker import (
    Limits,
    Reply,
    Request,
    Worker,
    answer,
    describe,
    dismiss,
    hire,
    import_clock,
    warm_up,
)  # fmt: skip

PLENTY = Limits(60.0, 4096.0)


def request(n_variables=10):
    return Request("a table", np.random.default_rng(0).normal(size=(30, n_variables)), 7)


@pytest.fixture
def start(tmp_path):
    """Workers that are gone after the test."""
    workers = []

    def make(name):
        workers.append(Worker(f"toys:{name}", tmp_path / "log"))
        assert workers[-1].is_ready(60)
        return workers[-1]

    yield make
    for worker in workers:
        worker.close()


def wait_until_gone(*pids, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        alive = [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]
        if not alive:
            return
        time.sleep(0.02)
    raise AssertionError(f"processes {alive} are still there")


# ── inside the process ────────────────────────────────────────────────────────────────────────────────────


@each(
    ("toy", "status", "reason"),
    [
        ("Correlation", "ok", None),
        ("Raiser", "error", "ValueError: no luck no luck"),
        ("Quitter", "error", "SystemExit: enough"),
        ("Liar", "error", "GraphError: fit returned function; it must return an Answer"),
        ("Exhausted", "memory", "MemoryError: too large"),
        ("Decliner", "skipped", "30 samples of 10 variables are not to its taste"),
    ],
)
def test_what_happens_in_a_fit_becomes_a_reply(capsys, toy, status, reason):
    reply = answer(getattr(toys, toy)(), request())
    assert reply.status == status
    assert str(reply.reason).startswith(str(reason))
    assert len(str(reply.reason)) <= 300
    assert ("Traceback" in capsys.readouterr().err) == (status in ("error", "memory"))
    assert (reply.answer is not None) == (reply.seconds is not None) == (status == "ok")


def test_only_who_can_read_gaps_and_targets_gets_them():
    table = request()
    gappy = dataclasses.replace(table, x_md=np.where(table.x_md > 1, np.nan, table.x_md))
    told = dataclasses.replace(table, set_md=table.x_md > 1)
    assert answer(toys.Correlation(), gappy).reason.startswith("cannot read missing cells")
    assert answer(toys.Correlation(), told).status == "ok"
    assert answer(toys.Knowing(), gappy).status == "ok"
    assert answer(toys.Knowing(), told).answer.graph_dd.sum() == told.set_md.sum(axis=0).astype(bool).sum() - 1
    assert not answer(toys.Knowing(), table).answer.graph_dd.any()


def test_imports_do_not_count_as_fitting(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_inner.py").write_text("import time; time.sleep(0.2)\n")
    (tmp_path / "slow_outer.py").write_text("import slow_inner, time; time.sleep(0.1)\n")

    class Importer(toys.Correlation):
        def fit(self, x_md, *, seed):
            import slow_outer  # noqa: F401

            time.sleep(0.05)
            return super().fit(x_md, seed=seed)

    assert 0.05 <= answer(Importer(), request()).seconds < 0.2


def test_the_import_clock_leaves_no_trace():
    original = __builtins__["__import__"] if isinstance(__builtins__, dict) else __builtins__.__import__
    with pytest.raises(ImportError), import_clock() as imports:
        import nothing_of_that_name  # noqa: F401
    assert imports.seconds > 0
    assert (__builtins__["__import__"] if isinstance(__builtins__, dict) else __builtins__.__import__) is original


def test_warming_up_forgives_everything_and_respects_a_refusal():
    warm_up(toys.Raiser())
    warm_up(toys.Quitter())

    class Refuser(toys.Decliner):
        def fit(self, x_md, *, seed):
            raise KeyboardInterrupt

    warm_up(Refuser())


def test_versions_and_hardware_are_told_without_the_name_of_the_machine():
    about = describe("numpy")
    assert about.package_version == np.__version__
    assert describe("no-such-package").package_version is None
    assert describe(None).package_version == about.graphbam_version
    assert os.uname().nodename not in about.hardware
    assert about.hardware.endswith(f"{os.cpu_count()} cores")


# ── from outside ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_answers_again_and_again_with_one_thread(start):
    worker = start("Threads")
    replies = [worker.fit(request(), PLENTY)[1] for _ in range(2)]
    assert [reply.reason for reply in replies] == ["RuntimeError: 1 1"] * 2
    assert worker.is_alive()


def test_an_answer_comes_back_with_time_memory_and_versions(start):
    about, reply = start("Correlation").fit(request(), PLENTY)
    assert about == describe(None)
    assert reply.status == "ok"
    np.testing.assert_array_equal(reply.answer.score_dd, toys.Correlation().fit(request().x_md, seed=7).score_dd)
    assert 0 < reply.seconds < 5
    assert 10 < reply.peak_mib < 500


def test_what_methods_print_goes_to_the_log(start, tmp_path):
    _, reply = start("Chatterbox").fit(request(), PLENTY)
    assert reply.status == "ok"
    told = (tmp_path / "log").read_text()
    assert all(line in told for line in ("── a table", "from Python", "from below", "from a child"))


@pytest.mark.parametrize("toy", ["Sleeper", "Stubborn"])
def test_a_fit_that_takes_too_long_is_ended_with_all_its_children(start, tmp_path, monkeypatch, toy):
    monkeypatch.setenv("TOY_DIARY", str(tmp_path / "diary"))
    worker = start(toy)
    about, reply = worker.fit(request(), Limits(0.5, 4096.0))
    assert (reply.status, reply.reason) == ("timeout", "more than 0.5 s")
    assert 0.5 <= reply.seconds < 5
    assert about is not None
    assert not worker.is_alive()
    wait_until_gone(*map(int, (tmp_path / "diary").read_text().split()))


def test_a_fit_that_takes_too_much_memory_is_ended(start):
    worker = start("Glutton")
    _, reply = worker.fit(request(), Limits(60.0, 150.0))
    assert reply.status == "memory"
    assert reply.reason.startswith("more than 150 MiB (")
    assert 150 < reply.peak_mib < 1000
    assert not worker.is_alive()


def test_the_memory_of_one_fit_is_not_that_of_the_one_before(start):
    worker = start("Peaky")
    assert worker.fit(request(20), PLENTY)[1].peak_mib > worker.fit(request(10), PLENTY)[1].peak_mib + 100


def test_a_crash_is_a_reply(tmp_path):
    worker = Worker("toys:Crasher", tmp_path / "log", is_warm=False)
    assert worker.is_ready(60)
    about, reply = worker.fit(request(), PLENTY)
    assert (about is not None, reply.status) == (True, "error")
    assert "was killed by SIGSEGV" in reply.reason


def test_a_method_that_cannot_be_loaded_says_so_in_its_rows(start):
    _, reply = start("Nobody").fit(request(), PLENTY)
    assert (reply.status, reply.answer) == ("error", None)
    assert "'toys' has no attribute 'Nobody'" in reply.reason


OWNER = """
import sys, numpy as np
from graphbam.benchmarks import worker as workers
from graphbam.benchmarks.worker import Request
workers.GRACE = 0.5
worker = workers.Worker(sys.argv[1])
assert worker.is_ready(60)
worker.fit(Request("", np.zeros((30, 10)), 0), workers.Limits(float(sys.argv[2]), 4096.0))
"""


@pytest.mark.parametrize(("toy", "limit", "n_processes"), [("Sleeper", 60, 2), ("Stubborn", 1, 1)])
def test_workers_die_with_their_owner_however_it_dies(tmp_path, toy, limit, n_processes):
    """At once with all their children; in code that never returns, soon after their time."""
    diary = tmp_path / "diary"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TOY_DIARY": str(diary)}
    owner = subprocess.Popen([sys.executable, "-c", OWNER, f"toys:{toy}", str(limit)], env=environment)
    end = time.monotonic() + 30
    while not (diary.exists() and diary.read_text().endswith("\n")) and time.monotonic() < end:
        time.sleep(0.02)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    processes = [int(pid) for pid in diary.read_text().split()]
    try:
        wait_until_gone(*processes[:n_processes])
    finally:
        for pid in processes[n_processes:]:
            os.kill(pid, signal.SIGKILL)


def test_a_fit_that_the_system_ended_is_a_time_out(start, monkeypatch):
    monkeypatch.setattr(workers, "GRACE", -59.5)  # as if this process had been asleep
    _, reply = start("Sleeper").fit(request(), PLENTY)
    assert (reply.status, reply.reason) == ("timeout", "the system ended the fit, long after its time")


# ── who is at work ────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_stays_until_the_method_changes_or_it_dies():
    try:
        first = hire("a run", "toys:Noise", None)
        assert hire("a run", "toys:Noise", None) is first
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
        second = hire("a run", "toys:Noise", None)
        assert second is not first
        other = hire("another run", "toys:Noise", None)
        third = hire("a run", "toys:Correlation", None)
        assert not second.is_alive()
        dismiss("a run")
        assert not third.is_alive()
        assert other.is_alive()
    finally:
        dismiss("a run")
        dismiss("another run")


def test_a_method_too_slow_to_warm_up_starts_without(monkeypatch):
    monkeypatch.setattr(workers, "WARM_UP_SECONDS", 0.5)
    monkeypatch.setattr(workers, "_cold", set())
    try:
        worker = hire("a run", "toys:Sluggish", None)
        assert workers._cold == {"toys:Sluggish"}
        assert isinstance(worker.fit(request(), PLENTY)[1], Reply)
    finally:
        dismiss("a run")
