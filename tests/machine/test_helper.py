"""An answer is the same, and failures are told the same, whoever does the job."""

import os
import signal
import zipfile

import numpy as np
import pytest

from graphbam.errors import ConfigError, SeveralTablesError
from graphbam.graphs.cut import Cut
from graphbam.inference.reading import read_source
from graphbam.inference.settings import InferConfig
from graphbam.machine.helper import Helper
from graphbam.output import figures
from graphbam.result import Result


@pytest.fixture
def result():
    p_dd = np.array([[0.0, 0.9, 0.2], [0.9, 0.0, 0.4], [0.2, 0.4, 0.0]])
    return Result(tuple("abc"), np.stack([1 - p_dd, p_dd, 0 * p_dd], -1))


@pytest.mark.parametrize("n_cores", [1, 2])
def test_answers_come_to_those_who_wait_for_them(n_cores):
    with Helper(n_cores) as helper:
        waits = [helper.begin(divmod, 17, k) for k in (0, 3, 5)]
        assert waits[2]() == (3, 2)
        assert waits[1]() == (5, 2)
        with pytest.raises(ZeroDivisionError):  # said here
            waits[0]()
        assert (helper.begin(os.getpid)() == os.getpid()) == (n_cores == 1)


def test_what_is_wrong_is_said_once():
    with Helper(2) as helper:
        wait = helper.begin(Cut, 2.0)
        with pytest.raises(ConfigError, match="threshold"):
            wait()
        assert not helper.begin(os.read, 0, 1)()  # nor is a job taken for what another reads


def test_a_file_of_several_tables_is_refused_there_as_here(tmp_path):
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "x,y\n1,2\n")
        archive.writestr("b.csv", "x,y\n1,2\n")
    for n_cores in (1, 2):
        with Helper(n_cores) as helper, pytest.raises(SeveralTablesError, match="has 2 files with tables") as refused:
            helper.begin(read_source, path, InferConfig())()
        assert refused.value.parts == ("a.csv", "b.csv")


def test_who_is_killed_is_not_missed():
    with Helper(2) as helper:
        helper.begin(print, "no answer")
        first = helper.begin(divmod, 17, 3)
        os.kill(helper.begin(os.getpid)(), signal.SIGKILL)
        assert helper.begin(os.getpid)() == os.getpid()
        assert first() == (5, 2)


def test_the_second_process_draws_the_same_picture(result, tmp_path, monkeypatch):
    figures.save_plot(result, tmp_path / "here.png", Cut(0.3))
    with Helper(2) as helper:
        monkeypatch.setattr("graphbam.output.figures.plot", lambda *_, **__: pytest.fail("drawn here"))
        helper.begin(figures.rehearse)
        for name in ("there.png", "again.png"):
            helper.begin(figures.save_plot, result, tmp_path / name, Cut(0.3))()
        with pytest.raises(ConfigError, match="names no kind of picture"):
            helper.begin(figures.save_plot, result, tmp_path / "graph.txt", None)()
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_the_second_process_reads_the_same_table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,unit\n" + "".join(f"{k},{k * k % 7},{'xy'[k % 2]}\n" for k in range(20_000)))
    config = InferConfig(encode=True, drop=("b",))
    with Helper(2) as helper:
        there = helper.begin(read_source, path, config)()
    here = read_source(path, config)
    assert (there.names, there.source, there.changes) == (here.names, here.source, here.changes)
    assert np.array_equal(there.x_md, here.x_md)
    assert there.x_md.flags.writeable == here.x_md.flags.writeable
