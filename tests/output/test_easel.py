"""A picture is the same, and failures are told the same, whoever draws it."""

import numpy as np
import pytest

from graphbam.errors import ConfigError
from graphbam.graphs.cut import Cut
from graphbam.output.easel import Easel
from graphbam.result import Result


@pytest.fixture
def result():
    p_dd = np.array([[0.0, 0.9, 0.2], [0.9, 0.0, 0.4], [0.2, 0.4, 0.0]])
    return Result(tuple("abc"), np.stack([1 - p_dd, p_dd, 0 * p_dd], -1))


def test_the_second_process_draws_the_same_picture(result, tmp_path, monkeypatch):
    with Easel(n_cores=1) as easel:
        easel.draw(result, tmp_path / "here.png", Cut(0.3))
    with Easel(n_cores=2) as easel:
        monkeypatch.setattr("graphbam.output.figures.plot", lambda *_, **__: pytest.fail("drawn here"))
        for name in ("there.png", "again.png"):
            easel.draw(result, tmp_path / name, Cut(0.3))
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_what_it_cannot_draw_is_told_here(result, tmp_path):
    with Easel(n_cores=2) as easel:
        with pytest.raises(ConfigError, match="names no kind of picture"):
            easel.draw(result, tmp_path / "graph.txt")
        easel.draw(result, tmp_path / "graph.png")  # the second process has ended, and is not missed
    assert (tmp_path / "graph.png").exists()
