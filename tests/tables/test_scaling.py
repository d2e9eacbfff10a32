import pytest
import torch

from graphbam.tables.scaling import standardise_columns, standardise_rows, winsorise_rows


@pytest.fixture(params=range(3))
def rng(request):
    return torch.Generator().manual_seed(request.param)


def cauchy(rng, *shape):
    return torch.tan(3.1 * (torch.rand(*shape, generator=rng) - 0.5))


def test_plain_columns_get_the_plain_z_score(rng):
    x_md = torch.randn(300, 6, generator=rng)
    expected = (x_md - x_md.mean(0)) / x_md.std(0, correction=0)
    torch.testing.assert_close(standardise_columns(x_md), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(standardise_columns(x_md, robust=False), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("robust", [True, False])
def test_unit_origin_and_order_do_not_matter(rng, robust):
    x_bmd = torch.cat([torch.randn(2, 90, 3, generator=rng), cauchy(rng, 2, 90, 3)], 2).double()
    z_bmd = standardise_columns(x_bmd, robust=robust)
    torch.testing.assert_close(standardise_columns(3e9 * x_bmd - 7e9, robust=robust), z_bmd, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(standardise_columns(-x_bmd, robust=robust), -z_bmd)
    rows, columns = torch.randperm(90, generator=rng), torch.randperm(6, generator=rng)
    moved = standardise_columns(x_bmd[:, rows][:, :, columns], robust=robust)
    torch.testing.assert_close(moved, z_bmd[:, rows][:, :, columns])
    torch.testing.assert_close(standardise_columns(x_bmd[0], robust=robust), z_bmd[0])


def test_wild_values_no_longer_flatten_the_rest(rng):
    x_nm = cauchy(rng, 50, 1000)
    x_nm[:, 0] = 1e7
    inner = (x_nm.abs() < 1).float()

    def spread(z_nm):
        middle = (z_nm * inner).sum(1, keepdim=True) / inner.sum(1, keepdim=True)
        return (((z_nm - middle).square() * inner).sum(1) / inner.sum(1)).sqrt().median()

    assert spread(standardise_rows(x_nm, robust=False)) < 1e-4
    assert spread(standardise_rows(x_nm)) > 0.05
    assert standardise_rows(x_nm).abs().max() <= 5


def test_dependence_survives_heavy_tails(rng):
    """Correlation of a Cauchy variable with its noisy double, as a network sees it."""
    x_m = cauchy(rng, 2000)
    z_nm = standardise_rows(torch.stack([x_m, x_m + 0.5 * cauchy(rng, 2000)]))
    assert (z_nm[0] * z_nm[1]).mean() / (z_nm[0].std() * z_nm[1].std()) > 0.6


def test_rare_events_keep_the_plain_z_score():
    x_nm = torch.zeros(1, 100)
    x_nm[0, :3] = 1.0
    z_nm = standardise_rows(x_nm)
    assert z_nm[0, 0] == 5.0  # cut from 5.7
    assert z_nm[0, 5] == pytest.approx(-0.1759, abs=1e-3)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e6, 123456.7])
def test_constant_columns_become_zero(value):
    assert (standardise_columns(torch.full((37, 2), value)) == 0).all()


@pytest.mark.parametrize("n_samples", [1, 2, 3])
def test_few_samples_are_finite(rng, n_samples):
    x_nm = torch.randn(20, n_samples, generator=rng)
    assert standardise_rows(x_nm).isfinite().all()


def test_huge_and_tiny_units_do_not_overflow(rng):
    x_nm = torch.randn(4, 50, generator=rng)
    z_nm = standardise_rows(x_nm)
    for scale in (1e30, 1e-30):
        torch.testing.assert_close(standardise_rows(x_nm * scale), z_nm, atol=1e-4, rtol=1e-4)


def test_winsorising_touches_only_wild_values(rng):
    x_nm = torch.randn(20, 500, generator=rng)
    assert torch.equal(winsorise_rows(x_nm), x_nm)
