"""Laws of the functions on definite matrices; every oracle is written here or comes from torch.linalg."""

import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from cases import each, quick_and_long
from graphbam.nn import spd

SIZES = quick_and_long([1, 7], [2, 40])


def spread_spd(rng, d, low=1e-4, high=None, dtype=torch.float64):
    """A matrix with known eigenvalues, evenly spread in the logarithm from `low` to `high` (default D)."""
    q, _ = torch.linalg.qr(torch.randn(d, d, generator=rng, dtype=torch.float64))
    values = torch.logspace(math.log10(low), math.log10(high or d), d, dtype=torch.float64)
    return spd.symmetrise(q * values @ q.mT).to(dtype), values, q


# ── covariance and correlation ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("m", "d"), [(2, 2), (9, 4)])
def test_covariance_is_that_of_torch(rng, m, d):
    x = 3 + 5 * torch.randn(2, 3, m, d, generator=rng, dtype=torch.float64)
    expected = torch.stack([torch.cov(table.T) for table in x.flatten(0, 1)]).view(2, 3, d, d)
    assert_close(spd.covariance(x), expected)


def test_covariance_of_one_sample_is_zero(rng):
    x = torch.randn(1, 3, generator=rng, dtype=torch.float64)
    assert_close(spd.covariance(x), torch.zeros(3, 3, dtype=torch.float64))


@pytest.mark.parametrize("d", SIZES)
def test_correlate_is_that_of_torch(rng, d):
    x = torch.randn(60, d, generator=rng, dtype=torch.float64) @ torch.randn(d, d, generator=rng, dtype=torch.float64)
    assert_close(spd.correlate(spd.covariance(x)), torch.corrcoef(x.T).view(d, d))


def test_ridge_shrinks_correlations_and_keeps_the_unit_diagonal(random_spd):
    s = random_spd(3, 5)
    r = spd.correlate(s, ridge=0.3)
    assert_close(r.diagonal(dim1=-2, dim2=-1), torch.ones(3, 5, dtype=torch.float64))
    v = s.diagonal(dim1=-2, dim2=-1) + 0.3
    assert_close(r[:, 0, 1], s[:, 0, 1] / (v[:, 0] * v[:, 1]).sqrt())


def test_symmetrise_agrees_with_its_transpose_to_the_last_bit(rng):
    s = spd.symmetrise(torch.randn(4, 9, 9, generator=rng))
    assert torch.equal(s, s.mT)


# ── softmax ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("d", SIZES)
def test_softmax_follows_its_definition(random_spd, d):
    s = random_spd(3, d)
    rate = 1 / s.exp().sum(-1)
    expected = rate.sqrt()[..., :, None] * s.exp() * rate.sqrt()[..., None, :]
    assert_close(spd.spd_softmax(s), expected)


@pytest.mark.parametrize("d", SIZES)
def test_softmax_top_eigenvalue_is_one(random_spd, d):
    top = torch.linalg.eigvalsh(spd.spd_softmax(30 * random_spd(3, d)))[..., -1]
    assert_close(top, torch.ones_like(top))


@pytest.mark.parametrize("d", SIZES)
def test_softmax_ignores_a_constant(random_spd, d):
    s = random_spd(3, d)
    assert_close(spd.spd_softmax(s + 11.5), spd.spd_softmax(s))


@pytest.mark.parametrize("d", SIZES)
def test_softmax_entries_are_positive_and_sum_to_at_most_d(random_spd, d):
    a = spd.spd_softmax(random_spd(3, d))
    assert (a > 0).all()
    assert (a.sum((-2, -1)) <= d + 1e-9).all()
    if d > 2:  # D itself is the limit of equal row sums only
        assert (a.sum((-2, -1)) < d - 1e-6).all()


@pytest.mark.parametrize("d", SIZES)
def test_softmax_keeps_definiteness(random_spd, d):
    assert torch.linalg.eigvalsh(spd.spd_softmax(random_spd(3, d))).min() > 0


def test_softmax_survives_rows_far_below_the_maximum():
    for gap in [100.0, 900.0, 1e5]:
        s = torch.diag(torch.tensor([0.0, 1.0, gap], dtype=torch.float32)).requires_grad_()
        a = spd.spd_softmax(s)
        a.sum().backward()
        assert torch.isfinite(a).all()
        assert torch.isfinite(s.grad).all()
        assert_close(a[2, 2], torch.tensor(1.0))
        assert_close(torch.linalg.eigvalsh(a)[-1], torch.tensor(1.0))
        assert a[0, 0] > 0.2  # the low rows keep their mass: e⁰ / (e⁰ + e⁰ + e⁰)


# ── logarithm ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("d", quick_and_long([20], [2, 200]))
def test_fast_logarithm_is_within_its_stated_error(rng, d):
    s, values, q = spread_spd(rng, d)
    error = torch.linalg.eigvalsh(spd.logm(s) - q * values.log() @ q.mT).abs().max()
    assert error < 2e-4


def test_fast_logarithm_is_within_its_stated_error_up_to_a_thousand():
    values = torch.logspace(-4, 3, 3001, dtype=torch.float64)
    assert (spd.logm(values[:, None, None]).flatten() - values.log()).abs().max() < 2e-4


@pytest.mark.parametrize("d", quick_and_long([20], [2, 200]))
def test_fast_logarithm_in_single_precision(rng, d):
    s, values, q = spread_spd(rng, d, low=1e-3, dtype=torch.float32)
    error = spd.logm(s).double() - q * values.log() @ q.mT
    assert error.abs().max() < 2e-2


@pytest.mark.parametrize("d", quick_and_long([20], [2, 200]))
def test_gradients_of_both_logarithms_agree(rng, d):
    s, _, _ = spread_spd(rng, d)
    weight = spd.symmetrise(torch.randn(d, d, generator=rng, dtype=torch.float64))
    s.requires_grad_()
    (fast,) = torch.autograd.grad((spd.logm(s) * weight).sum(), s)
    (exact,) = torch.autograd.grad((spd.logm_exact(s, low=1e-6) * weight).sum(), s)  # no floor in the way
    assert torch.linalg.matrix_norm(fast - exact) < 3e-3 * torch.linalg.matrix_norm(exact)
    assert exact.abs().max() > 1  # not trivially equal: slopes reach 1 / 1e-4


def test_slope_of_the_fast_logarithm_is_one_over_lambda():
    values = torch.logspace(-4, 3, 3001, dtype=torch.float64).view(-1, 1, 1).requires_grad_()
    (slope,) = torch.autograd.grad(spd.logm(values).sum(), values)
    assert (slope * values - 1).abs().max() < 3e-3


@pytest.mark.parametrize("d", SIZES)
def test_exponential_undoes_the_exact_logarithm(random_spd, d):
    s = random_spd(2, d)
    assert_close(torch.linalg.matrix_exp(spd.logm_exact(s, low=1e-12)), s)


def test_exact_logarithm_raises_small_eigenvalues(rng):
    s, values, q = spread_spd(rng, 8, low=1e-9)
    expected = q * values.clamp_min(1e-4).log() @ q.mT
    assert_close(spd.logm_exact(s), expected)


@each("values", [[2.0, 2.0, 2.0], [2.0, 2.0, 5.0], [1.0, 1.0 + 1e-9, 3.0], [0.3, 0.31, 4.0]])
def test_exact_logarithm_is_right_at_equal_eigenvalues(rng, values):
    q, _ = torch.linalg.qr(torch.randn(3, 3, generator=rng, dtype=torch.float64))
    s = (q * torch.tensor(values, dtype=torch.float64) @ q.mT).requires_grad_()
    assert gradcheck(lambda a: spd.logm_exact(spd.symmetrise(a)), s)


def test_exact_logarithm_has_a_flat_floor():
    s = torch.diag(torch.tensor([1e-6, 1e-5, 2.0], dtype=torch.float64)).requires_grad_()
    (grad,) = torch.autograd.grad(spd.logm_exact(s).diagonal().sum(), s)
    assert_close(grad.diagonal(), torch.tensor([0.0, 0.0, 0.5], dtype=torch.float64), rtol=1e-3, atol=1e-9)


def test_exact_logarithm_still_turns_beside_its_floor():
    """Between a raised eigenvalue and a free one the slope does not vanish; by finite differences."""
    s = torch.diag(torch.tensor([1e-6, 2.0], dtype=torch.float64)).requires_grad_()
    turn = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    (grad,) = torch.autograd.grad(spd.logm_exact(s)[0, 1], s)
    with torch.no_grad():
        change = spd.logm_exact(s + 1e-5 * turn) - spd.logm_exact(s - 1e-5 * turn)
    assert_close((grad * turn).sum(), change[0, 1] / 2e-5, rtol=1e-3, atol=0)
    assert change[0, 1] > 4e-5


def test_divided_differences_meet_the_plain_quotient():
    a = torch.tensor([1e-4, 0.5, 0.505, 0.52, 1.0, 100.0], dtype=torch.float64)
    ratio = spd.divided_differences_of_log(a)
    quotient = (a.log()[:, None] - a.log()) / (a[:, None] - a).fill_diagonal_(1)
    quotient.diagonal().copy_(1 / a)
    assert_close(ratio, quotient, rtol=1e-9, atol=0)


@each("log", [spd.logm, spd.logm_exact])
@each("dtype", [torch.float32, torch.float64])
def test_logarithm_of_singular_matrices_is_finite(rng, log, dtype):
    x = torch.randn(5, 12, generator=rng, dtype=torch.float64)
    few = spd.correlate(spd.covariance(x))
    twins = spd.correlate(spd.covariance(x[:, :6].repeat(1, 2)))
    s = torch.stack([few, twins, torch.ones(12, 12), torch.zeros(12, 12)]).to(dtype).requires_grad_()
    z = log(s)
    (grad,) = torch.autograd.grad(z.square().sum(), s)
    assert torch.isfinite(z).all()
    assert torch.isfinite(grad).all()
    assert -13 < torch.linalg.eigvalsh(z.detach().double()).min() < -8


def test_logarithms_take_leading_dimensions(random_spd):
    s = random_spd(2, 3, 4)
    for log in (spd.logm, spd.logm_exact):
        assert_close(log(s), torch.stack([log(part) for part in s.flatten(0, 1)]).view(s.shape))


# ── resolvents and inverses ──────────────────────────────────────────────────────────────────────────────────────


def test_resolvents_invert(random_spd):
    s, poles = random_spd(2, 3, 5), (0.02, 1.0, 7.0)
    eye = torch.eye(5, dtype=torch.float64)
    for pole, r in zip(poles, spd.resolvents(s, poles), strict=True):
        assert_close(r @ (s + pole * eye), eye.expand_as(s))


def test_resolvent_gradients(random_spd):
    s = random_spd(2, 3).requires_grad_()
    assert gradcheck(lambda a: spd.resolvents(spd.symmetrise(a), (0.1, 2.0)), s)


def test_resolvent_gradients_are_symmetric(rng, random_spd):
    s = random_spd(4).requires_grad_()
    weight = torch.randn(1, 4, 4, generator=rng, dtype=torch.float64)
    (grad,) = torch.autograd.grad((spd.resolvents(s, (0.5,)) * weight).sum(), s)
    assert torch.equal(grad, grad.mT)


@pytest.fixture
def factorised(monkeypatch):
    """Blocks are factorised by torch instead of the GPU kernel; returns the sizes of those that were."""
    sizes = []

    def factor_block(k, s, floor):
        sizes.append(s.shape[-1])
        k.copy_(torch.linalg.inv(torch.linalg.cholesky(s)))

    monkeypatch.setattr(spd, "_factor_block", factor_block)
    return sizes


@pytest.mark.parametrize("d", quick_and_long([32, 33, 64, 97], [31, 55, 63, 65, 96, 128, 129, 150]))
def test_inverse_factor_by_halves(factorised, d):
    a = torch.randn(2, 3, d, 2 * d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    s = a @ a.mT / d
    k = spd.inverse_factor(s, floor=0.0)
    assert_close(k.mT @ k, torch.linalg.inv(s), rtol=1e-9, atol=1e-9)
    assert torch.equal(k, k.tril())
    assert max(factorised) <= spd.BLOCK_SIZE
    assert sum(factorised) == d  # every row was factorised once


def test_inverse_factor_of_nearly_singular_matrices(factorised):
    """Correlations of many variables in few samples, in single precision: as accurate as a Cholesky inverse."""
    x = torch.randn(8, 20, 100, generator=torch.Generator().manual_seed(0))
    s = spd.correlate(spd.covariance(x)) + 0.011 * torch.eye(100)
    k = spd.inverse_factor(s, floor=0.005)
    assert_close((k.mT @ k).double(), torch.linalg.inv(s.double()), rtol=0.0, atol=0.01)  # entries reach 90


def test_inverse_factor_leaves_its_input_alone(factorised, random_spd):
    s = random_spd(2, 70)
    before = s.clone()
    spd.inverse_factor(s, floor=0.0)
    assert torch.equal(s, before)
