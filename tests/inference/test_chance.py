"""What chance does among many columns: nothing in small tables, nothing to strong pairs, much to the best of many."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cases import SEEDS, each
from graphbam.inference.blocks import Joined, Pairs, join, make_plan
from graphbam.inference.chance import N_BINS, USUAL, WIDTH, count_levels, pool_rises
from graphbam.inference.screen import find_candidates
from graphbam.tables.standard import standardise

N_ROWS = 100


def draw(n_columns: int, seed: int = 0) -> torch.Tensor:
    """Columns that have nothing to do with each other, except that the second follows from the first."""
    x_md = np.random.default_rng(seed).normal(size=(N_ROWS, n_columns))
    x_md[:, 1] += 2 * x_md[:, 0]
    return standardise(torch.from_numpy(x_md)).float()


def draw_unrelated(kind: str, n_rows: int, n_columns: int, seed: int = 0) -> torch.Tensor:
    """Columns of a kind, none of which has to do with another."""
    rng = np.random.default_rng(seed)
    shape = n_rows, n_columns
    x_md = {
        "normal": rng.normal(size=shape),
        "zeros and ones": rng.random(shape) < 0.5,
        "few ones": rng.random(shape) < 0.1,
        "counts": rng.poisson(0.4, shape),
    }[kind]
    return standardise(torch.from_numpy(x_md.astype(float))).float()


KINDS = each("kind", ["normal", "zeros and ones", "few ones", "counts"])


@KINDS
@pytest.mark.parametrize("seed", SEEDS)
def test_unrelated_columns_are_as_strong_as_shuffled_ones(kind, seed):
    found = find_candidates(draw_unrelated(kind, N_ROWS, 400, seed))
    counts, expected = count_levels(found.census, N_ROWS), count_levels(found.chance, N_ROWS)
    n_pairs = 400 * 399 / 2
    assert counts.sum() == n_pairs
    expected *= n_pairs / expected.sum()
    assert np.abs(counts - expected).sum() < 0.05 * n_pairs
    assert counts[11:].sum() == pytest.approx(expected[11:].sum(), rel=0.25)  # 3.3 standard errors and more


def test_shuffled_columns_without_ties_are_as_strong_as_theory_says():
    counts = count_levels(find_candidates(draw(400)).chance, N_ROWS)
    assert np.abs(counts / counts.sum() - strongest_of_four(N_ROWS)).sum() < 0.03


def strongest_of_four(n_rows: int) -> np.ndarray:
    """How often the strongest of four correlations is of each level; that of two distances is skewed (Edgeworth)."""
    edge = torch.arange(N_BINS + 1, dtype=torch.float64) * WIDTH
    beyond = torch.erfc(edge / 2**0.5) / 2
    heavier = (edge.clamp(max=6.0) ** 3 / (6 * n_rows**0.5)).exp()
    below = (1 - 2 * beyond) ** 3 * (1 - beyond - (beyond * heavier).clamp(max=0.5)).clamp_min(0)
    below[-1] = 1.0
    return below.diff().numpy()


@KINDS
def test_the_best_of_many_unrelated_is_doubted_whatever_the_columns_hold(kind):
    n = 700
    plan = make_plan(draw_unrelated(kind, N_ROWS, n), N_ROWS)
    chosen = plan.chance.times[np.isin(plan.chance.keys, plan.candidates.keys(n))]
    assert chosen.max() <= n / USUAL
    assert np.median(chosen) > 0.75 * n / USUAL


@pytest.mark.parametrize("seed", SEEDS)
def test_shares_never_rise_and_keep_their_sum(seed):
    rng = np.random.default_rng(seed)
    whole = rng.integers(1, 50, 30).astype(float)
    part = rng.random(30) * whole
    share = pool_rises(part, whole)
    assert (np.diff(share) <= 1e-12).all()
    assert (share * whole).sum() == pytest.approx(part.sum())
    assert np.allclose(pool_rises(share * whole, whole), share)


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
