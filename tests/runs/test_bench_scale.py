"""The script on sizes: worlds are what they say, and scores count what has no answer."""

from __future__ import annotations

import numpy as np
import pytest

from cases import each


@pytest.fixture
def script(run_script):
    """What runs/bench_scale.py defines."""
    return run_script("bench_scale", run_name="bench_scale")


@each("world", ["linear", "mixed", "hubs"])
def test_worlds_have_their_links(script, world):
    x_md, arrows = script["draw_world"](300, 400, world)
    assert x_md.shape == (400, 300)
    assert 200 < len(arrows) < 450
    causes = np.bincount(arrows[:, 0], minlength=300)
    assert (causes.max() > 60) == (world == "hubs")
    if world != "mixed":
        r_dd = np.abs(np.corrcoef(x_md.T))
        assert np.median(r_dd[arrows[:, 0], arrows[:, 1]]) > 4 * np.median(r_dd)


def test_links_without_an_answer_are_never_found(script):
    keys, p = np.array([3, 5, 8]), np.array([0.9, 0.2, 0.8])
    assert script["average_precision"](keys, p, np.array([3, 8])) == 1.0
    assert script["average_precision"](keys, p, np.array([3, 8, 9, 11])) == 0.5
    assert script["judge"](keys, p, np.array([3, 9]), {})["precision"] == 0.5


def test_each_column_is_scored_for_each_target(script):
    rng = np.random.default_rng(0)
    x_md = rng.normal(size=(200, 12))
    x_md[:, 4] += x_md[:, 2] + x_md[:, 7]
    keys, p, _ = script["answer"](x_md, "lasso", np.array([4, 0]))
    assert len(keys) == 11 + 10
    assert set(keys[np.argsort(-p)[:2]].tolist()) == {2 * 12 + 4, 4 * 12 + 7}
    assert p.min() == pytest.approx(0.0, abs=0.2)
