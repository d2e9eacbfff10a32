import pytest
import torch

from cases import each
from graphbam.simulation.noise import NOISES, autocorrelate, sample_noise


@each("name", NOISES)
def test_noise_is_finite(rng, name):
    for shape in ((1, 1), (3, 2), (2000, 300)):
        e_nm = sample_noise(rng, name, *shape)
        assert e_nm.shape == shape
        assert e_nm.dtype == torch.float32
        assert e_nm.isfinite().all()


def moments(rng, name):
    e = NOISES[name](rng, 400, 2000).double().flatten()
    z = (e - e.mean()) / e.std()
    return e.mean().item(), e.var().item(), (z**3).mean().item(), (z**4).mean().item() - 3


@each(
    ("name", "variance", "skew", "kurtosis"),
    [
        ("gaussian", 1, 0, 0),
        ("uniform", 1 / 3, 0, -1.2),
        ("laplace", 2, 0, 3),
        ("exponential", 1, 2, 6),
        ("gumbel", 1.6449, 1.1395, 2.4),
    ],
)
def test_moments_are_those_of_the_family(rng, name, variance, skew, kurtosis):
    mean, var, third, fourth = moments(rng, name)
    assert mean == pytest.approx(0, abs=0.01)
    assert var == pytest.approx(variance, rel=0.02)
    assert third == pytest.approx(skew, abs=0.1)
    assert fourth == pytest.approx(kurtosis, abs=0.5)


def test_student_has_the_quantiles_of_its_family(rng):
    """Half of |t| lies below 0.765 for 3 and below 0.700 for 10 degrees of freedom; the tail is heavy."""
    e = NOISES["student"](rng, 500, 2000).abs()
    assert 0.700 < e.median() < 0.765
    assert 0.002 < (e > 5).float().mean() < 0.016


def test_mixture_follows_the_paper(rng):
    e_nm = NOISES["mixture"](rng, 4000, 500).double()
    # E var = E[sd²] + E[var of means | L] over L ~ U{1..5}; bounds are wide, the law of total variance is not
    assert e_nm.mean().item() == pytest.approx(0, abs=0.05)
    assert e_nm.var().item() == pytest.approx((1 + 0.05 + 0.05**2) / 3 + 1 / 3, rel=0.05)
    assert e_nm.std(1).min() > 0.04


def test_signs_are_drawn_at_random(rng):
    e_nm = sample_noise(rng, "exponential", 400, 500)
    skewed_right = (e_nm.mean(1) > e_nm.median(1).values).float().mean().item()
    assert 0.4 < skewed_right < 0.6


@each("phi", [0.2, 0.6, 0.9])
def test_autocorrelation_is_that_of_an_ar1_process(rng, phi):
    e_nm = torch.randn(300, 1000, generator=rng)
    y_nm = autocorrelate(e_nm, torch.full((300,), phi))
    assert y_nm.var().item() == pytest.approx(1, rel=0.05)
    for lag in (1, 2, 5):
        assert (y_nm[:, lag:] * y_nm[:, :-lag]).mean().item() == pytest.approx(phi**lag, abs=0.04)


def test_autocorrelation_equals_the_recurrence(rng):
    e_nm, phi = torch.randn(2, 100, generator=rng, dtype=torch.float64), torch.tensor([0.3, 0.9])
    expected = e_nm.clone()
    for t in range(1, 100):
        expected[:, t] = phi * expected[:, t - 1] + (1 - phi**2).sqrt() * e_nm[:, t]
    torch.testing.assert_close(autocorrelate(e_nm, phi.double()), expected, atol=1e-5, rtol=0)
