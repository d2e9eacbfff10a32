"""The one rule by which columns are standardised."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cases import SEEDS, each
from graphbam.tables.prepare import prepare
from graphbam.tables.standard import standardise
from made import table_of


@each("scale", [1e-300, 1e-9, 1e9, 1e300])
@each("shift", [0.0, 1e3])
def test_units_do_not_matter(x_md, scale, shift):
    expected = prepare(table_of(x_md)).standardised()
    assert torch.allclose(prepare(table_of((x_md + shift) * scale)).standardised(), expected, atol=1e-5)


def test_the_largest_numbers_do_not_overflow():
    x_md = np.array([[1.7e308, 1], [-1.7e308, 2], [1e308, 4], [0, 3]])
    assert torch.isfinite(prepare(table_of(x_md)).standardised()).all()


@each("outlier", [1e9, 1e100, 1e200, -1.7e308])
def test_one_absurd_value_does_not_wipe_out_its_column(x_md, outlier):
    expected = prepare(table_of(x_md)).standardised()[0, :, 0].std()
    x_md[5, 0] = outlier
    z_m = prepare(table_of(x_md)).standardised()[0, :, 0]
    assert z_m.quantile(0.8) - z_m.quantile(0.2) > 0.8 * expected


def test_heavy_tails_do_not_flatten_the_rest(rng):
    x_md = rng.standard_cauchy(size=(500, 3))
    x_md[0] = 1e12
    z_md = prepare(table_of(x_md)).standardised()[0]
    spread = z_md.quantile(0.75, dim=0) - z_md.quantile(0.25, dim=0)
    assert (spread > 0.2).all()
    assert z_md.abs().max() <= 5


@pytest.fixture(params=SEEDS)
def torch_rng(request):
    return torch.Generator().manual_seed(request.param)


def cauchy(rng, *shape):
    return torch.tan(3.1 * (torch.rand(*shape, generator=rng) - 0.5))


def test_plain_columns_get_the_plain_z_score(torch_rng):
    x_md = torch.randn(300, 6, generator=torch_rng)
    expected = (x_md - x_md.mean(0)) / x_md.std(0, correction=0)
    torch.testing.assert_close(standardise(x_md), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(standardise(x_md, robust=False), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("robust", [True, False])
def test_standardising_ignores_unit_origin_and_order(torch_rng, robust):
    x_bmd = torch.cat([torch.randn(2, 90, 3, generator=torch_rng), cauchy(torch_rng, 2, 90, 3)], 2).double()
    z_bmd = standardise(x_bmd, robust=robust)
    torch.testing.assert_close(standardise(3e9 * x_bmd - 7e9, robust=robust), z_bmd, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(standardise(-x_bmd, robust=robust), -z_bmd)
    rows, columns = torch.randperm(90, generator=torch_rng), torch.randperm(6, generator=torch_rng)
    moved = standardise(x_bmd[:, rows][:, :, columns], robust=robust)
    torch.testing.assert_close(moved, z_bmd[:, rows][:, :, columns])
    torch.testing.assert_close(standardise(x_bmd[0], robust=robust), z_bmd[0])


def test_wild_values_no_longer_flatten_the_rest(torch_rng):
    x_nm = cauchy(torch_rng, 50, 1000)
    x_nm[:, 0] = 1e7
    inner = (x_nm.abs() < 1).float()

    def spread(z_nm):
        middle = (z_nm * inner).sum(1, keepdim=True) / inner.sum(1, keepdim=True)
        return (((z_nm - middle).square() * inner).sum(1) / inner.sum(1)).sqrt().median()

    assert spread(standardise(x_nm, robust=False, axis=-1)) < 1e-4
    assert spread(standardise(x_nm, axis=-1)) > 0.05
    assert standardise(x_nm, axis=-1).abs().max() <= 5


def test_dependence_survives_heavy_tails(torch_rng):
    """Correlation of a Cauchy variable with its noisy double, as a network sees it."""
    x_m = cauchy(torch_rng, 2000)
    z_nm = standardise(torch.stack([x_m, x_m + 0.5 * cauchy(torch_rng, 2000)]), axis=-1)
    assert (z_nm[0] * z_nm[1]).mean() / (z_nm[0].std() * z_nm[1].std()) > 0.6


def test_rare_events_keep_the_plain_z_score():
    x_nm = torch.zeros(1, 100)
    x_nm[0, :3] = 1.0
    z_nm = standardise(x_nm, axis=-1)
    assert z_nm[0, 0] == 5.0  # cut from 5.7
    assert z_nm[0, 5] == pytest.approx(-0.1759, abs=1e-3)


@each("value", [0.0, 1.0, 0.1, -1e6, 123456.7])
def test_constant_columns_become_zero(value):
    assert (standardise(torch.full((37, 2), value)) == 0).all()


@each("n_samples", [1, 2, 3])
def test_few_samples_are_finite(torch_rng, n_samples):
    x_nm = torch.randn(20, n_samples, generator=torch_rng)
    assert standardise(x_nm, axis=-1).isfinite().all()


def test_standardising_overflows_in_no_unit(torch_rng):
    x_nm = torch.randn(4, 50, generator=torch_rng)
    z_nm = standardise(x_nm, axis=-1)
    for scale in (1e30, 1e-30):
        torch.testing.assert_close(standardise(x_nm * scale, axis=-1), z_nm, atol=1e-4, rtol=1e-4)
