import dataclasses
import subprocess
import sys

import pytest
import torch

import graphbam as gb
from cases import each
from graphbam.errors import ConfigError
from graphbam.simulation import (
    BYTES_PER_CELL,
    BYTES_PER_PAIR,
    GRAPHS,
    MECHANISMS,
    NOISES,
    PRESETS,
    SimulationConfig,
    mechanism,
    sample_tables,
)
from graphbam.simulation.graphs import depth_levels
from graphbam.simulation.mechanisms import weighted_sum
from graphbam.simulation.values import blur, coarsen, discretise, skew

EFFECTS = (
    "discrete", "skewed", "rounded", "measurement_noise", "autocorrelated", "sluggish", "confounded", "growing",
)  # fmt: skip
SMALL = {"n_tables": 8, "n_variables": 6, "n_samples": 30}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@each("preset", PRESETS)
@each("shape", [(2, 2), (3, 2), (60, 40)])
def test_any_shape_is_standardised_clipped_and_finite(rng, preset, shape):
    n_variables, n_samples = shape
    tables = sample_tables(
        rng, SimulationConfig.preset(preset), n_tables=16, n_variables=n_variables, n_samples=n_samples
    )
    assert tables.x_bmd.shape == (16, n_samples, n_variables)
    assert tables.x_bmd.is_contiguous()
    assert (tables.x_bmd.dtype, tables.dag_bdd.dtype, tables.classes_bdd.dtype) == (
        torch.float32, torch.int8, torch.int64,
    )  # fmt: skip
    assert tables.x_bmd.isfinite().all()
    assert tables.x_bmd.abs().max() <= 5
    assert tables.x_bmd.mean(1).abs().max() < 0.2  # clipping moves the mean a little
    sd_bd = tables.x_bmd.std(1, correction=0)
    if tables.observed_bmd is not None:
        sd_bd = sd_bd / tables.observed_bmd.float().mean(1).sqrt()  # cells that are missing hold zeros
    assert ((sd_bd < 1 + 1e-3) & ((sd_bd > 0.7) | (sd_bd == 0))).all()


@each("name", MECHANISMS)
def test_every_mechanism_graph_and_noise_run_together(name):
    for graph in GRAPHS:
        for noise in NOISES:
            config = SimulationConfig.paper().narrow(mechanism=name, graph=graph, noise=noise, degree=2)
            tables = sample_tables(generator(), config, n_tables=2, n_variables=6, n_samples=9)
            assert tables.x_bmd.isfinite().all()


@each("preset", PRESETS)
def test_the_same_seed_gives_the_same_tables(preset):
    config = SimulationConfig.preset(preset)
    one, two = (sample_tables(generator(4), config, **SMALL) for _ in range(2))
    other = sample_tables(generator(5), config, **SMALL)
    assert torch.equal(one.x_bmd, two.x_bmd)
    assert torch.equal(one.dag_bdd, two.dag_bdd)
    assert not torch.equal(one.x_bmd, other.x_bmd)


KEPT = {
    "paper": (0.337213, -0.236858, -1.089477),
    "literal": (0.029556, -0.126631, -1.089477),
    "broad-1": (0.882056, -0.373161, -0.944200),
}
"""Some cells of the first tables that each preset ever made."""


@each("preset", KEPT)
def test_presets_make_the_tables_they_always_made(preset):
    x_bmd = sample_tables(generator(), SimulationConfig.preset(preset), **SMALL).x_bmd
    found = x_bmd[[0, 3, 7], [1, 5, 29], [0, 2, 5]]
    torch.testing.assert_close(found, torch.tensor(KEPT[preset]), atol=1e-4, rtol=0)


def test_nobody_touches_the_global_generator():
    before = torch.random.get_rng_state()
    sample_tables(generator(), SimulationConfig.broad(), **SMALL)
    assert torch.equal(before, torch.random.get_rng_state())


def test_columns_are_shuffled(rng):
    """Arrows point to higher and to lower columns alike."""
    tables = sample_tables(rng, SimulationConfig.paper(), n_tables=200, n_variables=10, n_samples=2)
    upward = tables.dag_bdd.triu(1).sum() / tables.dag_bdd.sum()
    assert 0.4 < upward < 0.6


@pytest.fixture
def minus_sum():
    """A mechanism with known weights: minus the sum of the parents."""

    @mechanism("minus-sum")
    def answer(rng, x_npm, mask_np, config):
        return weighted_sum(x_npm, -mask_np)

    yield "minus-sum"
    del MECHANISMS["minus-sum"]


def analytic_covariance(dag_dd, share):
    """Covariance of x_v = (ρ ε − (1−ρ) Σ x_w / sd) / √(ρ² + (1−ρ)²), node by node, roots of variance 1."""
    d = len(dag_dd)
    cov = torch.eye(d, dtype=torch.float64)
    done, todo = [], list(range(d))
    while todo:
        v = next(v for v in todo if all(w in done for w in dag_dd[:, v].nonzero()[:, 0].tolist()))
        todo.remove(v)
        parents = dag_dd[:, v].nonzero()[:, 0]
        if len(parents):
            sd = cov[parents][:, parents].sum().sqrt()
            weight = -(1 - share) / sd / (share**2 + (1 - share) ** 2) ** 0.5
            for u in done:
                cov[u, v] = cov[v, u] = weight * cov[u, parents].sum()
        done.append(v)
    return cov


@pytest.mark.parametrize("preset", ["paper", "broad-1"])
def test_a_linear_world_has_its_analytic_covariance(rng, minus_sum, preset):
    config = SimulationConfig.preset(preset).narrow(
        mechanism=minus_sum, noise="gaussian", degree=3, noise_share=(0.4, 0.4)
    )
    config = dataclasses.replace(config, **dict.fromkeys(EFFECTS, 0.0))
    tables = sample_tables(rng, config, n_tables=4, n_variables=8, n_samples=40_000)
    for x_md, dag_dd in zip(tables.x_bmd.double(), tables.dag_bdd, strict=True):
        empirical = x_md.T @ x_md / len(x_md)
        torch.testing.assert_close(empirical, analytic_covariance(dag_dd, 0.4), atol=0.03, rtol=0)


def test_linear_weights_signs_and_noise_share_are_recovered(rng):
    """A child regressed on its parents: weights within 1.3/0.7 of one another, R² as ρ says."""
    config = SimulationConfig.paper().narrow(mechanism="linear", noise="gaussian", degree=3, noise_share=(0.3, 0.3))
    tables = sample_tables(rng, config, n_tables=12, n_variables=10, n_samples=20_000)
    signs = []
    for x_md, dag_dd in zip(tables.x_bmd.double(), tables.dag_bdd.bool(), strict=True):
        for v in range(10):
            parents = dag_dd[:, v]
            if not parents.any():
                continue
            weight = torch.linalg.lstsq(x_md[:, parents], x_md[:, v, None]).solution[:, 0]
            residual = x_md[:, v] - x_md[:, parents] @ weight
            assert residual.var().item() == pytest.approx(0.3**2 / (0.3**2 + 0.7**2), abs=0.02)
            assert weight.abs().max() / weight.abs().min() < 1.3 / 0.7 + 0.3
            signs += weight.sign().tolist()
    assert 0.35 < sum(s > 0 for s in signs) / len(signs) < 0.65


def dependence(x_nm, y_nm):
    """Largest |correlation| between simple features of two rows, for each n."""
    features = (lambda v: v, lambda v: v**2, lambda v: v**3, torch.cos, lambda v: torch.sin(2 * v))
    best = torch.zeros(len(x_nm))
    for f in features:
        for g in (lambda v: v, lambda v: v**2):
            u, v = f(x_nm), g(y_nm)
            u, v = u - u.mean(1, keepdim=True), v - v.mean(1, keepdim=True)
            best = best.maximum(((u * v).mean(1) / (u.std(1) * v.std(1) + 1e-9)).abs())
    return best


def pairs_of_two(config, n_tables=150, n_samples=800, seed=0):
    """Tables of two variables, split into those with and those without an edge."""
    tables = sample_tables(generator(seed), config, n_tables=n_tables, n_variables=2, n_samples=n_samples)
    strength = dependence(tables.x_bmd[:, :, 0], tables.x_bmd[:, :, 1])
    linked = tables.dag_bdd.sum((1, 2)) > 0
    return strength[linked], strength[~linked]


@each("name", MECHANISMS)
@each("preset", ["paper", "broad-1"])
def test_edges_transmit_and_absent_edges_do_not(name, preset):
    config = SimulationConfig.preset(preset).narrow(mechanism=name, degree=0.5, noise_share=(0.1, 0.3))
    linked, apart = pairs_of_two(dataclasses.replace(config, autocorrelated=0.0, sluggish=0.0, confounded=0.0))
    assert len(linked) > 40
    assert len(apart) > 40
    assert (linked > 0.15).float().mean() > 0.9
    assert apart.median() < 0.08
    assert (apart > 0.25).float().mean() < 0.05


@each("variant", ["paper", "literal", "broad"])
def test_chebyshev_variants_transmit(variant):
    preset = "literal" if variant == "literal" else "paper"
    config = SimulationConfig.preset(preset).narrow(degree=0.5)
    linked, apart = pairs_of_two(dataclasses.replace(config, chebyshev=variant))
    assert linked.median() > (0.15 if variant == "literal" else 0.5)
    assert apart.median() < 0.08


def test_noise_share_decides_how_much_is_noise():
    def strength(share):
        config = SimulationConfig.paper().narrow(mechanism="linear", degree=0.5, noise_share=(share, share))
        return pairs_of_two(config)[0].median()

    assert strength(0.02) > 0.99
    assert 0.65 < strength(0.5) < 0.76
    assert strength(0.95) < 0.2


def test_discrete_values_have_two_to_six_levels(rng):
    levels = discretise(rng, torch.randn(300, 400, generator=rng))
    counts = [len(row.unique()) for row in levels]
    assert set(counts) <= set(range(2, 7))
    assert len(set(counts)) >= 4


def test_children_see_discrete_values():
    """Under a steep linear effect the child of a discrete parent clusters around its levels."""
    config = SimulationConfig.paper().narrow(mechanism="linear", degree=1, noise_share=(0.05, 0.05))
    tables = sample_tables(
        generator(), dataclasses.replace(config, discrete=1.0), n_tables=40, n_variables=2, n_samples=300
    )
    within = []
    for x_md, dag_dd in zip(tables.x_bmd, tables.dag_bdd, strict=True):
        for i, j in dag_dd.nonzero().tolist():
            values = x_md[:, i].unique()
            if len(values) <= 6:
                within += [x_md[x_md[:, i] == value, j].std(correction=0).item() for value in values]
    assert torch.tensor(within).median() < 0.1


def test_observation_effects_keep_ranks_or_nearly_so(rng):
    x_nm = torch.randn(100, 200, generator=rng)
    order = x_nm.argsort(1)
    steps = skew(rng, x_nm).gather(1, order).diff(dim=1)
    assert ((steps >= 0).all(1) | (steps <= 0).all(1)).all()  # monotone, up or down
    assert (coarsen(rng, x_nm).gather(1, order).diff(dim=1) >= -1e-6).all()
    assert max(len(row.mul(1e3).round().unique()) for row in coarsen(rng, x_nm)) < 45
    noisy = blur(rng, x_nm)
    kept = (noisy * x_nm).mean(1) / (noisy.std(1) * x_nm.std(1))
    assert 0.75 < kept.min() < 0.93  # noise of 60 % leaves a correlation of .86
    assert kept.median() > 0.97


@each("effect", EFFECTS)
def test_each_real_world_effect_changes_the_data_but_not_the_graph(effect):
    config = SimulationConfig.paper().narrow(mechanism="linear")
    plain = sample_tables(generator(), config, **SMALL)
    changed = sample_tables(generator(), dataclasses.replace(config, **{effect: 1.0}), **SMALL)
    assert torch.equal(plain.dag_bdd, changed.dag_bdd)
    assert not torch.equal(plain.x_bmd, changed.x_bmd)
    assert changed.x_bmd.isfinite().all()


@pytest.mark.parametrize("effect", ["autocorrelated", "sluggish"])
def test_dependent_rows_resemble_their_neighbours(effect):
    config = dataclasses.replace(SimulationConfig.paper(), **{effect: 1.0})
    assert config.dependent_rows
    assert not SimulationConfig.paper().dependent_rows
    x_bmd = sample_tables(generator(), config, n_tables=20, n_variables=5, n_samples=300).x_bmd
    assert (x_bmd[:, 1:] * x_bmd[:, :-1]).mean() > 0.2
    x_bmd = sample_tables(generator(), SimulationConfig.paper(), n_tables=20, n_variables=5, n_samples=300).x_bmd
    assert (x_bmd[:, 1:] * x_bmd[:, :-1]).mean().abs() < 0.03


def test_sluggish_variables_follow_their_parents_with_delay(minus_sum):
    """The past of the parent says something about the child that the parent's present does not."""
    config = SimulationConfig.paper().narrow(mechanism=minus_sum, degree=0.9, noise_share=(0.1, 0.1))

    def delayed(config):
        tables = sample_tables(generator(), config, n_tables=80, n_variables=2, n_samples=400)
        found = []
        for x_md, dag_dd in zip(tables.x_bmd.double(), tables.dag_bdd, strict=True):
            for parent, child in dag_dd.nonzero().tolist():
                now, before, y = x_md[1:, parent], x_md[:-1, parent], x_md[1:, child]
                found.append(torch.linalg.lstsq(torch.stack([now, before], 1), y[:, None]).solution[1, 0].item())
        return found

    assert max(abs(weight) for weight in delayed(config)) < 0.06
    slow = torch.tensor(delayed(dataclasses.replace(config, sluggish=1.0)))
    assert (slow < -0.1).float().mean() > 0.4  # the sign of the mechanism; some tables have one slow column or none


def unexplained_by_depth(config, n_variables=10):
    """Share of each variable's variance that its parents leave, by the number of arrows before it, medians."""
    tables = sample_tables(generator(), config, n_tables=60, n_variables=n_variables, n_samples=400)
    found = {}
    depth_bd = depth_levels(tables.dag_bdd.bool())
    for x_md, dag_dd, depth_d in zip(tables.x_bmd.double(), tables.dag_bdd.bool(), depth_bd.tolist(), strict=True):
        for child, depth in enumerate(depth_d):
            if depth:
                z, y = x_md[:, dag_dd[:, child]], x_md[:, child]
                left = y - z @ torch.linalg.lstsq(z, y[:, None]).solution[:, 0]
                found.setdefault(depth, []).append((left.square().mean() / y.square().mean()).item())
    return {depth: torch.tensor(shares).median().item() for depth, shares in found.items() if len(shares) > 20}


def test_where_variance_grows_later_variables_have_less_of_their_own():
    config = SimulationConfig.paper().narrow(mechanism="linear", degree=4)
    even = unexplained_by_depth(config)
    grown = unexplained_by_depth(dataclasses.replace(config, growing=1.0))
    assert min(even) == min(grown) == 1
    assert even[3] > even[1] / 2
    assert grown[3] < grown[2] / 3 < grown[1] / 9


def test_growing_variance_keeps_the_size_of_the_noise():
    """x = w·parent + noise with noise of the parent's size: 1 / (1 + w²) is left, w from 0.6·⅔·0.7 to 3.6·3⁄2·1.3."""
    config = SimulationConfig.paper().narrow(mechanism="linear", degree=0.9, noise="gaussian")
    config = dataclasses.replace(config, growing=1.0)
    tables = sample_tables(generator(), config, n_tables=200, n_variables=2, n_samples=2000)
    left_n = 1 - (tables.x_bmd[..., 0] * tables.x_bmd[..., 1]).mean(1)[tables.dag_bdd.flatten(1).any(1)].square()
    weight_n = (1 / left_n - 1).sqrt()
    assert 0.25 < weight_n.min() < 0.5
    assert 4 < weight_n.max() < 7.5


def test_growing_variance_leaves_other_tables_as_they_are():
    config = dataclasses.replace(SimulationConfig.preset("broad-1"), growing=0.0)
    plain = sample_tables(generator(), config, **SMALL)
    grown = sample_tables(generator(), dataclasses.replace(config, growing=1.0), **SMALL)
    assert torch.equal(plain.dag_bdd, grown.dag_bdd)
    same = [torch.equal(*pair) for pair in zip(plain.x_bmd, grown.x_bmd, strict=True)]
    assert 0 < sum(same) < len(same)  # those without a linear variable


def test_a_hidden_variable_relates_columns_without_links():
    config = SimulationConfig.paper().narrow(degree=1e-6)
    shape = {"n_tables": 20, "n_variables": 8, "n_samples": 2000}

    def strength(config):
        tables = sample_tables(generator(), config, **shape)
        assert tables.dag_bdd.sum() == 0
        corr_bdd = tables.x_bmd.mT @ tables.x_bmd / shape["n_samples"]
        return corr_bdd, (corr_bdd - torch.eye(8)).abs().amax((1, 2))

    assert strength(config)[1].max() < 0.15
    config = dataclasses.replace(config, confounded=1.0)
    corr_bdd, most_b = strength(config)
    assert (most_b > 0.15).float().mean() > 0.8
    # one factor: products of correlations along two ways around a square of columns agree
    a, b, c, d = 0, 1, 2, 3
    gap_b = corr_bdd[:, a, b] * corr_bdd[:, c, d] - corr_bdd[:, a, d] * corr_bdd[:, b, c]
    assert gap_b.abs().max() < 0.08
    x_bmd = sample_tables(generator(), config, **shape).x_bmd
    between_bb = torch.einsum("bmi,cmj->bcij", x_bmd, x_bmd).abs().amax((2, 3)) / shape["n_samples"]
    assert (between_bb - 9 * torch.eye(20)).max() < 0.2  # every table has its own


def test_simulate_returns_a_graph_and_its_table():
    dag, x_md = gb.simulate(n_samples=500, n_variables=20, mechanism="chebyshev", graph="erdos-renyi", degree=3, seed=0)
    again, y_md = gb.simulate(
        n_samples=500, n_variables=20, mechanism="chebyshev", graph="erdos-renyi", degree=3, seed=0
    )
    assert dag.adjacency.shape == (20, 20)
    assert dag.names[0] == "X1"
    assert dag.names[-1] == "X20"
    assert x_md.shape == (500, 20)
    assert x_md.dtype == float
    assert (dag.adjacency == again.adjacency).all()
    assert (x_md == y_md).all()
    assert gb.simulate(preset="broad", noise="student", n_samples=9, n_variables=4)[1].shape == (9, 4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@each("effects", [{}, dict.fromkeys(EFFECTS, 1.0)])
@each("preset", PRESETS)
def test_the_device_gets_the_same_graphs_without_waiting(preset, effects):
    config = dataclasses.replace(SimulationConfig.preset(preset), **effects)
    on_cpu = sample_tables(generator(), config, **SMALL)
    sample_tables(generator(1), config, **SMALL, device="cuda")  # first use may allocate
    torch.cuda.set_sync_debug_mode("error")
    try:
        on_device = sample_tables(generator(), config, **SMALL, device="cuda")
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(on_cpu.dag_bdd, on_device.dag_bdd.cpu())
    assert torch.equal(on_cpu.classes_bdd, on_device.classes_bdd.cpu())
    assert on_device.x_bmd.isfinite().all()


@pytest.mark.long  # processes of their own, and gigabytes
@each("preset, n_samples, n_variables", [("broad", 300_000, 20), ("paper", 300_000, 20), ("broad", 200, 3000)])
def test_no_table_takes_more_memory_than_estimated(preset, n_samples, n_variables):
    program = (
        "import resource\n"
        "from graphbam.simulation import simulate_table\n"
        "peak = lambda: 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        f"simulate_table(n_samples={n_samples}, n_variables={n_variables}, preset={preset!r}, seed=1)\n"
        "print(peak() - before)\n"
    )
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    estimate = BYTES_PER_CELL * n_samples * n_variables + BYTES_PER_PAIR * n_variables**2
    assert 0.2 * estimate < int(told.stdout) < 1.2 * estimate


@each("setting", [{"n_samples": 10.5}, {"n_variables": "5"}, {"seed": 1.5}, {"n_samples": True}])
def test_what_is_no_whole_number_is_refused(setting):
    with pytest.raises(ConfigError, match="is not a whole number"):
        gb.simulate(**setting)
