"""One queue with a bound; whoever waits or works can be cancelled, and the memory of a cancelled run is free."""

import io
import os
import time

import pytest

pytest.importorskip("starlette")
from graphbam.errors import Setting, WeightsError
from graphbam.inference.settings import COLLIDERS
from graphbam.nn.weights import LoadedWeights
from graphbam.web import desk
from graphbam.web.desk import Desk, FullError, Job, Lane, Table, Visitor
from graphbam.web.worker import Done, Opening, Refused, Told, Worker, load_networks
from visits import TABLE, is_alive


class Obedient:
    """A worker without a process: it answers when the test says so, or ends when it is stopped."""

    def __init__(self, opening=None):
        self.names, self.is_stopped, self.may_answer, self.pid = [], False, False, 1

    def start(self):
        pass

    def ask(self, kind, name, table, choices, tell, limit):
        self.names.append(name)
        tell(Told(0.5, "halfway", 10.0))
        while not self.may_answer:
            if self.is_stopped:
                self.is_stopped = False
                raise EOFError
            time.sleep(0.005)
        return Done({"name": name})

    def stop(self):
        self.is_stopped = True

    def close(self):
        self.stop()


@pytest.fixture
def lane(monkeypatch):
    monkeypatch.setattr(desk, "Worker", Obedient)
    made = Lane(None)
    yield made
    made.close()


def until(check):
    last = time.monotonic() + 20
    while not check():
        assert time.monotonic() < last
        time.sleep(0.005)


def make_job(name="t"):
    table = Table(name)
    table.write(TABLE)
    return Job("infer", table, {})


def test_jobs_are_answered_in_turn(lane):
    jobs = [lane.submit(make_job(str(k))) for k in range(3)]
    until(lambda: jobs[0].told.share)
    assert [job.state for job in jobs] == ["running", "waiting", "waiting"]
    assert [lane.place(job) for job in jobs[1:]] == [1, 2]
    share, left = jobs[0].progress()
    assert share >= 0.5
    assert left >= 0
    lane.worker.may_answer = True
    assert [job.future.result(20).answer["name"] for job in jobs] == ["0", "1", "2"] == lane.worker.names


def test_the_queue_has_a_bound(lane):
    first = lane.submit(make_job())
    until(lambda: first.state == "running")
    for _ in range(desk.MOST_WAITING):
        lane.submit(make_job())
    with pytest.raises(FullError):
        lane.submit(make_job())


def test_whoever_waits_or_works_can_be_cancelled(lane):
    jobs = [lane.submit(make_job(str(k))) for k in range(3)]
    until(lambda: jobs[0].state == "running")
    lane.cancel(jobs[1])
    lane.cancel(jobs[0])
    lane.worker.may_answer = True
    assert [job.future.result(20).state for job in jobs] == ["cancelled", "cancelled", "done"]
    assert lane.worker.names == ["0", "2"]
    lane.cancel(jobs[2])
    assert jobs[2].state == "done"


def test_a_worker_that_dies_by_itself_is_explained(lane):
    job = lane.submit(make_job())
    until(lambda: job.state == "running")
    lane.worker.stop()
    assert "memory" in job.future.result(20).words[0]


def test_an_error_that_nobody_foresaw_is_told_and_the_next_job_is_done(lane, capsys):
    lane.worker.may_answer = True
    lane.worker.names = None
    assert "AttributeError" in lane.submit(make_job()).future.result(20).words[0]
    assert "Traceback" in capsys.readouterr().err
    lane.worker.names = []
    assert lane.submit(make_job()).future.result(20).state == "done"


def test_the_oldest_are_forgotten_unless_a_run_waits_for_them(monkeypatch):
    monkeypatch.setattr(desk, "MOST_TABLES", 2)
    monkeypatch.setattr(desk, "MOST_RUNS", 2)
    visitor, jobs = Visitor(), [make_job(str(k)) for k in range(5)]
    visitor.keep_run(jobs[0])
    for job in jobs:
        visitor.keep_table(job.table)
    assert [table.name for table in visitor.tables.values()] == ["0", "4"]
    for job in jobs[1:]:
        job.finish("done")
        visitor.keep_run(job)
    assert [run.table.name for run in visitor.runs.values()] == ["0", "4"]


def test_visitors_are_forgotten_in_the_order_they_left(monkeypatch):
    monkeypatch.setattr(desk, "Worker", Obedient)
    monkeypatch.setattr(desk, "MOST_VISITORS", 2)
    made = Desk("edges", "cpu", None)
    a = made.visitor("a")
    made.visitor("b")
    assert made.visitor("a") is a
    made.visitor("c")
    assert set(made._visitors) == {"a", "c"}
    made.close()


# ── with a process ────────────────────────────────────────────────────────────────────────────────────────


def test_a_cancelled_run_frees_its_memory_and_the_next_one_works(page, wide_table):
    run = page.start(page.hand_in(wide_table), stability=100).json()["run"]
    told = page.wait(run, "running")
    worker = page.app.state.desk.runs.worker
    until(lambda: page.client.get(f"/runs/{run}").json()["left"] is not None)
    pid = worker.pid
    assert is_alive(pid)
    assert page.client.delete(f"/runs/{run}").json()["state"] == "cancelled"
    assert not is_alive(pid)  # the process is gone, and with it all it held
    assert told["state"] == "running"
    assert page.infer(page.hand_in())["state"] == "done"


@pytest.fixture(scope="module")
def wide_table():
    rows = ("\n".join(",".join(str((k * k * n + 7 * k) % 101) for n in range(1, 41)) for k in range(1500))).encode()
    return ",".join(f"v{n}" for n in range(40)).encode() + b"\n" + rows


def test_two_visitors_wait_for_each_other_but_not_to_look(page, wide_table):
    run = page.start(page.hand_in(wide_table), stability=100).json()["run"]
    page.wait(run, "running")
    other = type(page)(page.app)
    table = other.hand_in()
    began = time.monotonic()
    assert other.look(table).json()["variables"] == ["a", "b", "c"]
    assert time.monotonic() - began < 20
    second = other.start(table).json()
    assert second["state"] == "waiting"
    assert second["before"] == 1
    page.client.delete(f"/runs/{run}")
    assert other.wait(second["run"])["state"] == "done"
    assert page.client.get(f"/runs/{second['run']}").status_code == 404


def test_weights_that_do_not_load_are_one_sentence(tmp_path):
    worker = Worker(Opening("nobody", "cpu", None, str(tmp_path)))
    with pytest.raises(WeightsError, match="nobody"):
        worker.start()
    assert worker.pid is None


def test_a_device_that_is_not_there_is_the_option_of_the_command(tmp_path):
    worker = Worker(Opening("edges", "foo", None, str(tmp_path)))
    with pytest.raises(WeightsError) as refused:
        worker.start()
    assert refused.value.say(Setting.as_option).startswith("--device foo cannot be used here")


def test_a_worker_that_is_stopped_while_it_starts_has_ended(tmp_path, monkeypatch):
    worker = Worker(Opening("edges", "cpu", None, str(tmp_path)))
    monkeypatch.setattr(worker, "start", lambda: os.read(-1, 1))  # as where its connection is closed meanwhile
    with pytest.raises(EOFError):
        worker.ask("look", "t.csv", io.BytesIO(b"a"), {})


def test_networks_are_loaded_once_and_not_for_every_table(tmp_path):
    networks = load_networks(Opening("edges", "cpu", COLLIDERS, str(tmp_path)))
    assert isinstance(networks["weights"], LoadedWeights)


@pytest.mark.long
def test_a_worker_that_takes_too_long_is_ended(tmp_path, wide_table):
    worker = Worker(Opening("edges", "cpu", None, str(tmp_path)))
    worker.start()
    pid = worker.pid
    with pytest.raises(TimeoutError):
        worker.ask("infer", "t.csv", io.BytesIO(wide_table), {"stability": 100}, limit=0.3)
    assert not is_alive(pid)
    assert isinstance(worker.ask("look", "t.csv", io.BytesIO(b"a"), {}), Refused)  # a new one answers
    worker.close()
    with pytest.raises(EOFError):
        worker.start()
