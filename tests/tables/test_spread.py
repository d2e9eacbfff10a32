"""Rows that share how far out they lie are told of."""

import numpy as np
import pytest

import graphbam as gb
from cases import each
from graphbam.tables.oddities import SPREAD
from graphbam.tables.prepare import prepare
from graphbam.tables.spread import share_spread
from graphbam.tables.table import Table


def told(x_md):
    names = tuple(f"x{k}" for k in range(x_md.shape[1]))
    return any("in some rows all columns lie far out" in w for w in prepare(Table(names, x_md, "example")).warnings)


def normal(rng, d, n_rows=300):
    return rng.normal(size=(n_rows, d))


def chain(rng, d):
    x_md = normal(rng, d)
    for k in range(1, d):
        x_md[:, k] = 0.7 * x_md[:, k - 1] + 0.7 * x_md[:, k]
    return x_md


@each("make, d", [(normal, 6), (normal, 20), (normal, 80), (chain, 12), (chain, 40)])
@each(
    "size",
    [
        lambda rng: rng.choice([1, 3], size=(300, 1)),
        lambda rng: 1 / np.sqrt(rng.chisquare(3, size=(300, 1))),
        lambda rng: np.exp(0.7 * rng.normal(size=(300, 1))),
    ],
    ids=["two sizes", "t with three degrees of freedom", "log-normal"],
)
def test_rows_of_different_sizes_are_told_of(make, d, size):
    rng = np.random.default_rng(0)
    assert told(make(rng, d) * size(rng))


@pytest.mark.parametrize("seed", range(5))
@each(
    "change",
    [
        lambda x_md: x_md,
        np.exp,
        lambda x_md: np.exp(2 * x_md),
        np.round,
        lambda x_md: (x_md > 0.5) * 1.0,
        lambda x_md: np.maximum(x_md, 0.0),
        lambda x_md: x_md + x_md[:, :1],
        lambda x_md: x_md + 2.0 * (np.arange(len(x_md)) % 3 == 0)[:, None],
        lambda x_md: np.tan(1.5 * np.tanh(x_md)),
    ],
    ids=["normal", "skewed", "very skewed", "rounded", "flags", "censored", "one factor", "two groups", "heavy tails"],
)
@each("d", [3, 6, 30])
def test_other_tables_are_not(change, d, seed):
    rng = np.random.default_rng(seed)
    assert not told(change(normal(rng, d)))
    assert not told(change(chain(rng, d)))


def test_dividing_rows_by_their_size_takes_it_away():
    rng = np.random.default_rng(1)
    x_md = normal(rng, 6) * rng.choice([1, 3], size=(300, 1), p=[0.8, 0.2])
    z_md = (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)
    evened_md = z_md / np.sqrt(np.square(z_md).mean(axis=1, keepdims=True))
    found = [gb.infer(t, directions="none", progress=False).skeleton() for t in (x_md, evened_md)]
    assert told(x_md)
    assert not told(evened_md)
    assert len(found[1].undirected_edges()) < len(found[0].undirected_edges())


def test_units_and_order_do_not_matter():
    rng = np.random.default_rng(2)
    x_md = normal(rng, 10) * rng.choice([1, 3], size=(300, 1))
    other_md = 5 - 3 * x_md[np.ix_(rng.permutation(300), rng.permutation(10))]
    z_md, other_z_md = ((t - t.mean(axis=0)) / t.std(axis=0) for t in (x_md, other_md))
    assert share_spread(other_z_md) == pytest.approx(share_spread(z_md))
    assert share_spread(z_md) > SPREAD


@each("d", [1, 2])
def test_two_columns_say_nothing_of_it(d):
    assert share_spread(np.random.default_rng(0).normal(size=(50, d))) == 0
