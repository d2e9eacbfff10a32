import pytest
import torch

from cases import each
from graphbam.errors import ConfigError
from graphbam.simulation import MECHANISMS, SimulationConfig, additive, mechanism, sample_tables
from graphbam.simulation.mechanisms import (
    chebyshev_basis,
    literal_coefficients,
    monotone_link,
    product_deviations,
    product_sum,
    signed_weights,
)


@pytest.fixture
def parents(rng):
    """40 nodes with 1 to 3 parents in 3 slots, 500 samples."""
    mask_np = (torch.arange(3) < torch.randint(1, 4, (40, 1), generator=rng)).float()
    return torch.randn(40, 3, 500, generator=rng) * mask_np[..., None], mask_np


def config_for(variant="paper"):
    return SimulationConfig(chebyshev=variant)


EVERY = [*((name, "paper") for name in MECHANISMS), ("chebyshev", "literal"), ("chebyshev", "broad")]
every_mechanism = each(("name", "variant"), EVERY)


@every_mechanism
def test_every_mechanism_is_finite_and_varies(rng, parents, name, variant):
    x_npm, mask_np = parents
    f_nm = MECHANISMS[name](rng, x_npm, mask_np, config_for(variant))
    assert f_nm.shape == (40, 500)
    assert f_nm.isfinite().all()
    assert (f_nm.std(1) > 1e-4).float().mean() > 0.95
    for n_samples in (2, 3):  # tiny and constant parents give no NaN
        x_npm = torch.zeros(6, 2, n_samples)
        x_npm[:3, 0] = torch.randn(3, n_samples, generator=rng)
        assert MECHANISMS[name](rng, x_npm, torch.ones(6, 2), config_for(variant)).isfinite().all()


@every_mechanism
def test_empty_slots_leave_the_effect_as_strong(rng, parents, name, variant):
    x_npm, _ = parents
    x_npm = x_npm[:, :1]
    mask_np = torch.ones(40, 1)
    wide_npm = torch.cat([x_npm, torch.zeros(40, 2, 500)], 1)
    wide_mask_np = torch.tensor([1.0, 0.0, 0.0]).expand(40, 3)
    narrow = MECHANISMS[name](rng, x_npm, mask_np, config_for(variant))
    wide = MECHANISMS[name](rng, wide_npm, wide_mask_np, config_for(variant))
    assert explained(x_npm[:, 0], wide) == pytest.approx(explained(x_npm[:, 0], narrow), abs=0.25)


def explained(x_nm, f_nm):
    """Share of f's variance between 25 bins of x, averaged over nodes."""
    order = x_nm.argsort(1)
    bins = f_nm.gather(1, order).view(len(f_nm), 25, -1)
    return (bins.mean(2).var(1) / f_nm.var(1).clamp(min=1e-9)).mean().item()


SHAPES = {
    "linear": lambda x: x,
    "sine": torch.sin,
    "cosine": torch.cos,
    "square": lambda x: x**2,
    "cubic": lambda x: x**3,
}


@each("name", SHAPES)
def test_named_functions_are_what_they_say(rng, name):
    """Regressed on g(x_w), nothing is left, and the weights are ±U[0.7, 1.3]."""
    x_npm = torch.randn(50, 2, 300, generator=rng)
    f_nm = MECHANISMS[name](rng, x_npm, torch.ones(50, 2), config_for())
    design = SHAPES[name](x_npm).mT.double()
    weight = torch.linalg.lstsq(design, f_nm.double()[..., None]).solution
    torch.testing.assert_close((design @ weight)[..., 0], f_nm.double(), atol=1e-4, rtol=1e-4)
    assert ((weight.abs() > 0.699) & (weight.abs() < 1.301)).all()
    assert 0.3 < (weight > 0).float().mean() < 0.7


@each("share", [0.0, 0.3, 1.0])
def test_parents_push_in_one_direction_as_often_as_asked(rng, share):
    config = SimulationConfig(weight_range=(0.25, 1.75), same_sign=share)
    weight_np = signed_weights(rng, torch.ones(4000, 3), config)
    assert weight_np.abs().min() >= 0.25
    assert weight_np.abs().max() <= 1.75
    aligned = (weight_np.sign().sum(1).abs() == 3).float().mean().item()
    assert aligned == pytest.approx(share + (1 - share) / 4, abs=0.04)  # three random signs agree in 1 of 4
    assert (weight_np > 0).float().mean().item() == pytest.approx(0.5, abs=0.04)


def test_hill_responses_saturate_and_one_parent_acts_in_one_direction(rng):
    x_npm = torch.linspace(0, 12, 400).expand(300, 1, 400)
    f_nm = MECHANISMS["hill"](rng, x_npm, torch.ones(300, 1), config_for())
    step_nm = f_nm.diff(dim=1)
    rising_n = (step_nm >= -1e-6).all(1)
    assert (rising_n | (step_nm <= 1e-6).all(1)).all()
    assert 0.5 < rising_n.float().mean() < 0.8  # 35 % inhibit
    steepest_n = step_nm.abs().amax(1)
    assert (step_nm[:, -1].abs() < 0.1 * steepest_n).all()
    assert 0 <= f_nm.min() <= f_nm.max() <= 1.3


def test_hill_products_need_every_parent(rng):
    """In a product of activators without the floor the answer is 0 where one amount is; in a sum it is not."""
    x_npm = torch.rand(2000, 2, 50, generator=rng)
    x_npm[:, 0, 0] = -3.0
    f_nm = MECHANISMS["hill"](rng, x_npm, torch.ones(2000, 2), config_for())
    needs_both_n = f_nm[:, 0] < 0.05 * f_nm.amax(1)
    assert 0.02 < needs_both_n.float().mean() < 0.6


def test_chebyshev_basis_is_cosine_of_multiples():
    angle = torch.linspace(0, 3.1, 50, dtype=torch.float64)
    expected = torch.stack([(n * angle).cos() for n in range(1, 6)])
    torch.testing.assert_close(chebyshev_basis(angle.cos()), expected)


@pytest.mark.parametrize("floor", [0.25, 1.0])
def test_alpha_is_bounded_although_its_denominator_is_signed(rng, floor):
    alpha_n5, alpha_m_n1 = literal_coefficients(rng, 50_000, floor)
    assert max(alpha_n5.abs().max(), alpha_m_n1.abs().max()) <= 1 / floor + 1e-4
    unbounded_n5, _ = literal_coefficients(rng, 50_000, 1e-9)
    assert unbounded_n5.abs().max() > 38  # the trap is real
    total = alpha_n5.sum(1) + alpha_m_n1[:, 0]
    assert ((total - 1).abs() < 1e-4).float().mean() > (0.5 if floor < 1 else 0.0)  # as printed where it may be


def test_products_agree_with_the_sum_over_pairs(rng):
    x_npm = torch.randn(4, 5, 60, generator=rng, dtype=torch.float64)
    c, a, b = torch.randn(3, 4, 5, 5, generator=rng, dtype=torch.float64)
    c = c.triu(1)
    expected, deviations = torch.zeros(4, 60, dtype=torch.float64), torch.zeros(4, 5, 5, dtype=torch.float64)
    for s in range(5):
        for t in range(5):
            term = (x_npm[:, s] - a[:, s, t, None]) * (x_npm[:, t] - b[:, s, t, None])
            expected += c[:, s, t, None] * term
            deviations[:, s, t] = term.std(1, correction=0)
    torch.testing.assert_close(product_sum(x_npm, c, a, b), expected)
    torch.testing.assert_close(product_deviations(x_npm, a, b), deviations)


def test_the_post_nonlinear_link_is_increasing(rng):
    x_nm = torch.randn(200, 50, generator=rng).sort(1).values
    assert (monotone_link(rng, x_nm).diff(dim=1) >= 0).all()


def test_a_tree_has_few_values(rng):
    f_nm = MECHANISMS["tree"](rng, torch.randn(20, 1, 400, generator=rng), torch.ones(20, 1), config_for())
    assert max(len(row.mul(1e4).round().unique()) for row in f_nm) <= 7  # three steps and three cuts


def test_spread_depends_on_parents_under_heteroscedasticity(rng):
    x_npm = torch.randn(100, 1, 2000, generator=rng)
    f_nm = MECHANISMS["heteroscedastic"](rng, x_npm, torch.ones(100, 1), config_for())
    order = x_npm[:, 0].argsort(1)
    spread = f_nm.gather(1, order).view(100, 20, 100).std(2)
    assert ((spread.amax(1) / spread.amin(1)) > 2).float().mean() > 0.8


def test_a_new_mechanism_takes_part_at_once(rng):
    @mechanism("sawtooth")
    @additive
    def sawtooth(rng, x_npm):
        return x_npm - x_npm.round()

    try:
        config = SimulationConfig.paper().narrow(mechanism="sawtooth")
        tables = sample_tables(rng, config, n_tables=4, n_variables=10, n_samples=50)
        assert tables.x_bmd.isfinite().all()
    finally:
        del MECHANISMS["sawtooth"]
    with pytest.raises(ConfigError, match="sawtooth"):
        SimulationConfig.paper().narrow(mechanism="sawtooth")
