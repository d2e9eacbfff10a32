"""What chance does among many columns: nothing in small tables, nothing to strong pairs, much to the best of many."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cases import SEEDS
from graphbam.inference.blocks import Joined, Pairs, join, make_plan
from graphbam.inference.chance import USUAL, chance_by_level, count_levels
from graphbam.inference.screen import find_candidates
from graphbam.tables.prepare import standardise

N_ROWS = 100


def draw(n_columns: int, seed: int = 0) -> torch.Tensor:
    """Columns that have nothing to do with each other, except that the second follows from the first."""
    x_md = np.random.default_rng(seed).normal(size=(N_ROWS, n_columns))
    x_md[:, 1] += 2 * x_md[:, 0]
    return standardise(torch.from_numpy(x_md)).float()


@pytest.mark.parametrize("seed", SEEDS)
def test_unrelated_columns_are_as_strong_as_chance_says(seed):
    x_md = draw(400, seed)
    counts = count_levels(find_candidates(x_md).census, N_ROWS)
    n_pairs = 400 * 399 / 2
    assert counts.sum() == n_pairs
    expected = chance_by_level(n_pairs, N_ROWS)
    assert np.abs(counts - expected).sum() < 0.05 * n_pairs
    assert counts[12:].sum() == pytest.approx(expected[12:].sum(), rel=0.2)  # 3.6 standard errors and more


def test_small_tables_are_left_alone():
    plan = make_plan(draw(USUAL), N_ROWS)
    assert (plan.chance.at(plan.candidates.keys(USUAL)) == 1).all()


def test_the_best_of_many_is_doubted_and_what_is_beyond_chance_is_not():
    n = 1500
    plan = make_plan(draw(n), N_ROWS)
    named = np.isin(plan.chance.keys, plan.candidates.keys(n)[1:])
    chosen, others = plan.chance.times[named], plan.chance.times[~named]
    assert plan.chance.at(np.array([1])) == pytest.approx(1.0, abs=0.01)  # 0 — 1
    assert chosen.max() <= n / USUAL
    assert np.median(chosen) > 2
    assert np.median(others) < 0.7 * np.median(chosen)  # they were not chosen for their strength


def answers_of(plan, n: int) -> Joined:
    """What a network says that gives every pair of the plan even odds."""
    keys = plan.chance.keys
    p = np.tile(np.array([0.5, 0.4, 0.1], dtype=np.float32), (len(keys), 1))
    half = np.full(len(keys), 0.5, dtype=np.float32)
    pairs = Pairs(keys // n, keys % n, p, direction=half, hidden=half, ancestor=np.stack([half, half], axis=1))
    return join([pairs], plan, n)


def test_doubt_goes_from_links_to_none_and_leaves_directions():
    n = 1500
    plan = make_plan(draw(n), N_ROWS)
    pairs = answers_of(plan, n).pairs
    times = plan.chance.at(pairs.i * n + pairs.j)
    odds = pairs.classes[:, 0] / pairs.classes[:, 1:].sum(axis=1)
    assert np.allclose(odds, times, rtol=1e-4)
    assert np.allclose(pairs.classes.sum(axis=1), 1, atol=1e-5)
    assert (pairs.direction == 0.5).all()
    assert (pairs.hidden <= 0.5).all()
    assert (pairs.hidden[times > 2] < 0.5).all()
