"""The four sizes of correlations, against regressions done one by one."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from cases import each
from graphbam.nn import features as correlations
from graphbam.nn import spd
from graphbam.nn.features import N_SIZES, RIDGE, choose_ridge, given_earlier, least_at_once, least_given_one, read_sizes


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


def linear_system(rng, m=400, d=7):
    """A linear system of mild weights."""
    w_dd = torch.randn(d, d, generator=rng, dtype=torch.float64).triu(1) * 0.6
    e_md = torch.randn(m, d, generator=rng, dtype=torch.float64)
    return e_md @ torch.linalg.inv(torch.eye(d, dtype=torch.float64) - w_dd)


def partial(x_md, i, j, given):
    """Correlation of what least squares on `given` leaves of two columns."""
    x_md = x_md.numpy() - x_md.numpy().mean(0)
    if given:
        z = x_md[:, given]
        x_md = x_md - z @ np.linalg.lstsq(z, x_md, rcond=None)[0]
    a, b = x_md[:, i], x_md[:, j]
    return abs(a @ b) / np.sqrt((a @ a) * (b @ b))


def pairs(d):
    return [(i, j, [k for k in range(d) if k not in (i, j)]) for i in range(d) for j in range(i)]


def test_all_sizes_are_what_regressions_say(rng):
    x_md = linear_system(rng)
    sizes_fdd, unexplained_d = (part[0] for part in read_sizes(x_md[None]))
    rank_d = (-unexplained_d).argsort().argsort()
    for i, j, others in pairs(x_md.shape[1]):
        later = max(rank_d[i], rank_d[j])
        wanted = (
            partial(x_md, i, j, others),
            min(partial(x_md, i, j, [k for k in others if k != left_out]) for left_out in [None, *others]),
            min(partial(x_md, i, j, given) for given in [[], *([k] for k in others)]),
            partial(x_md, i, j, [k for k in others if rank_d[k] < later]),
        )
        assert sizes_fdd[:, i, j].tolist() == pytest.approx(wanted, abs=1e-4)
        assert_close(sizes_fdd[:, j, i], sizes_fdd[:, i, j])


def test_unexplained_is_the_share_that_a_regression_leaves(rng):
    x_md = linear_system(rng)
    unexplained_d = read_sizes(x_md[None])[1][0]
    x_md = x_md - x_md.mean(0)
    rest = torch.cat([x_md[:, :2], x_md[:, 3:]], 1)
    left = x_md[:, 2] - rest @ torch.linalg.lstsq(rest, x_md[:, 2:3]).solution[:, 0]
    wanted = (left.square().sum() / x_md[:, 2].square().sum()).log()
    assert_close(unexplained_d[2], wanted, rtol=0, atol=1e-3)


def test_sizes_follow_the_order_of_columns_and_not_that_of_rows(rng):
    x_bmd = torch.stack([linear_system(rng), linear_system(rng)])
    sizes, unexplained = read_sizes(x_bmd)
    p = torch.randperm(7, generator=rng)
    moved = read_sizes(x_bmd[:, torch.randperm(400, generator=rng)][..., p])
    assert_close(moved[0], sizes[:, :, p][..., p])
    assert_close(moved[1], unexplained[:, p])


@each("m", [3, 12, 200])
def test_sizes_lie_between_zero_and_one_whatever_the_table(rng, m):
    x_md = torch.randn(m, 20, generator=rng)
    x_md[:, 3], x_md[:, 4] = 0, x_md[:, 5]
    sizes, unexplained = read_sizes(x_md[None])
    assert sizes.shape == (1, N_SIZES, 20, 20)
    assert sizes.dtype == unexplained.dtype == torch.float32
    assert 0 <= sizes.min() <= sizes.max() <= 1 + 1e-6
    assert_close(sizes.diagonal(dim1=-2, dim2=-1), torch.ones(1, N_SIZES, 20))
    assert np.log(RIDGE / 2) <= unexplained.min() <= unexplained.max() <= 1e-6


def test_the_ridge_grows_once_variables_are_half_as_many_as_rows():
    ridges = [choose_ridge(100, d) for d in range(2, 400)]
    assert set(ridges[:49]) == {RIDGE}
    assert ridges[49:] == sorted(ridges[49:])
    assert ridges[50] > RIDGE
    assert ridges[-1] == RIDGE + 0.5


def test_as_many_variables_as_rows_give_no_sure_relations(rng):
    """Independent variables are all but functions of one another by an inverse at the least ridge, and not here."""
    x_bmd = torch.randn(4, 60, 60, generator=rng)
    sizes, unexplained = read_sizes(x_bmd)
    s_bdd = spd.correlate(spd.covariance(x_bmd.double()), RIDGE)
    assert 1 / s_bdd.inverse().diagonal(dim1=-2, dim2=-1).max() < 0.01
    assert unexplained.min() > np.log(0.02)
    assert sizes[:, 0][:, ~torch.eye(60, dtype=torch.bool)].max() < 0.7


def test_pairs_in_parts_are_pairs_at_once(rng, monkeypatch):
    r = spd.correlate(spd.covariance(torch.stack([linear_system(rng), linear_system(rng)])))
    at_once = least_given_one(r)
    monkeypatch.setattr(correlations, "MOST_CELLS", 30)  # of 2 × 49: rows two by two
    assert_close(least_given_one(r), at_once, rtol=1e-12, atol=0)
    assert_close(least_at_once(r), at_once)  # what a GPU computes, there compiled


def test_the_last_variable_is_given_all_others(rng):
    x_md = linear_system(rng)
    w_dd = torch.linalg.inv(torch.cov(x_md.T))
    s_bdd = spd.correlate(spd.covariance(x_md))[None]
    sizes_dd = given_earlier(s_bdd, torch.arange(7.0)[None])[0]
    assert_close(sizes_dd[-1, :-1], (w_dd[-1, :-1] / (w_dd[-1, -1] * w_dd.diagonal()[:-1]).sqrt()).abs())


def test_the_whitener_is_the_inverse_of_the_cholesky_factor(rng):
    s_dd = spd.covariance(linear_system(rng))
    k_dd = spd.whitener(s_dd, floor=0.0)
    assert torch.equal(k_dd, k_dd.tril())
    assert_close(k_dd @ s_dd @ k_dd.mT, torch.eye(7, dtype=torch.float64))
