"""Products and decompositions: what numpy says, without its threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from cases import SEEDS
from graphbam.tables.algebra import find_axes, multiply, regress


@pytest.fixture(params=SEEDS)
def rng(request):
    return np.random.default_rng(request.param)


def test_products_are_those_of_numpy(rng):
    a_mk, b_mn = rng.normal(size=(20, 5)), rng.normal(size=(20, 3)).astype(np.float32)
    assert multiply(b_mn.T, b_mn) == pytest.approx(b_mn.T @ b_mn, rel=1e-5)
    for a in (a_mk, a_mk[::-1], a_mk[:, ::-2], np.asfortranarray(a_mk), np.broadcast_to(a_mk[:1], a_mk.shape)):
        before = a.copy()
        assert multiply(a.T, a_mk) == pytest.approx(a.T @ a_mk)
        assert np.array_equal(a, before)


def test_least_squares_leave_nothing_along_any_column(rng):
    x_mk, y_mn = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    for x in (x_mk, np.column_stack([x_mk, x_mk[:, 0] * 2]), x_mk[:3]):
        said = regress(x, y_mn[: len(x)])
        assert x.T @ (y_mn[: len(x)] - said) == pytest.approx(0, abs=1e-9)
        assert said == pytest.approx(x @ np.linalg.lstsq(x, y_mn[: len(x)], rcond=None)[0])


def test_nothing_is_said_of_no_columns_or_by_none():
    assert regress(np.empty((4, 0)), np.ones((4, 2))).tolist() == np.zeros((4, 2)).tolist()
    assert regress(np.ones((4, 2)), np.empty((4, 0))).shape == (4, 0)


def test_axes_put_the_matrix_together_again(rng):
    x_md = rng.normal(size=(9, 4))
    values, vectors = find_axes(x_md.T @ x_md)
    assert (np.diff(values) >= 0).all()
    assert vectors * values @ vectors.T == pytest.approx(x_md.T @ x_md)


def test_no_thread_is_kept_awake_beside_the_one_that_infers():
    code = """
import json, time
import numpy as np, torch, graphbam as gb
torch.set_num_threads(1)
x_md = np.random.default_rng(0).normal(size=(400, 60))
gb.infer(x_md)
all_threads, this_one = time.process_time(), time.thread_time()
gb.infer(x_md)
print(json.dumps([time.process_time() - all_threads, time.thread_time() - this_one]))"""
    settings = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    run = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
    all_threads, this_one = json.loads(run.stdout)
    assert all_threads < 1.1 * this_one + 0.01
