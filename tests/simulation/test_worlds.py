"""What every named world promises, and what makes each of them the kind it is."""

import dataclasses
import itertools

import pytest
import torch

from graphbam.errors import ConfigError
from graphbam.simulation import PRESETS, WORLDS, SimulationConfig, sample_tables
from graphbam.simulation.labels import NOT_APPLICABLE, reach
from graphbam.simulation.worlds import SERIES


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def of_world(name, **shares):
    return dataclasses.replace(SimulationConfig(robust=True), worlds={name: 1.0}, **shares)


@pytest.mark.parametrize("shape", [(2, 2), (2, 60), (15, 40)])
@pytest.mark.parametrize("name", WORLDS)
def test_a_world_keeps_its_promises(name, shape):
    d, m = shape
    world = WORLDS[name](generator(), 5, d, m)
    n_all = d + world.n_drivers
    assert world.x_bme.shape == (5, m, n_all)
    assert world.x_bme.isfinite().all()
    assert world.adj_bee.dtype == torch.bool
    assert not (world.adj_bee & world.adj_bee.mT).any()  # nobody is two variables' cause and effect at once
    assert not world.adj_bee[:, :, d:].any()  # nothing acts on a driver
    assert world.set_bme is None or world.set_bme.shape == world.x_bme.shape


@pytest.mark.parametrize("name", WORLDS)
def test_tables_of_a_world_are_like_all_others(name):
    config = of_world(name, hidden=0.5, missing=0.5)
    one, two = (sample_tables(generator(), config, n_tables=70, n_variables=8, n_samples=120) for _ in range(2))
    assert torch.equal(one.x_bmd, two.x_bmd)
    assert torch.equal(one.dag_bdd, two.dag_bdd)
    assert one.x_bmd.shape == (70, 120, 8)
    assert one.observed_bmd.shape == one.x_bmd.shape
    assert one.x_bmd.mean(1).abs().max() < 0.05  # clipped tails may move a mean
    upward = one.dag_bdd.triu(1).sum() / one.dag_bdd.sum()
    assert 0.35 < upward < 0.65  # columns are shuffled
    if not WORLDS[name](generator(), 2, 8, 5).n_drivers and name != "gene-dynamics":
        assert (one.compelled_bdd >= 0).any()


@pytest.mark.parametrize("name", WORLDS)
def test_arrows_of_a_world_transmit(name):
    """Variables depend on their parents far more than unrelated ones depend on one another."""
    world = WORLDS[name](generator(), 150, 6, 500)
    r_bee = torch.stack([torch.corrcoef(x_me.T.double()).nan_to_num() for x_me in world.x_bme]).abs()
    before = reach(world.adj_bee) | torch.eye(world.adj_bee.shape[-1], dtype=torch.bool)
    related = (before.mT.float() @ before.float()) > 0
    assert r_bee[world.adj_bee].mean() > 0.15
    if name not in SERIES and world.set_bme is None:  # slow series look alike without a reason, cells by library size
        assert r_bee[~related].median() < (0.12 if name == "single-cell" else 0.08)


def test_single_cells_are_counts_with_many_zeros():
    x_bme = WORLDS["single-cell"](generator(), 60, 10, 300).x_bme[..., :-1]
    whole = ((x_bme - x_bme.round()).abs() < 1e-6).all((1, 2))
    assert 0.15 < whole.float().mean() < 0.55
    assert x_bme.min() == 0
    assert 0.2 < (x_bme == 0).float().mean() < 0.8


def test_gene_dynamics_have_loops_without_a_cpdag_and_knock_outs():
    tables = sample_tables(generator(), of_world("gene-dynamics"), n_tables=100, n_variables=12, n_samples=60)
    both_bdd = tables.ancestors_bdd & tables.ancestors_bdd.mT
    loops_b = both_bdd.flatten(1).any(1)
    assert 0.3 < loops_b.float().mean() < 0.8
    assert (tables.compelled_bdd[loops_b] == NOT_APPLICABLE).all()
    assert (tables.compelled_bdd[~loops_b] >= 0).all()
    has_set_b = tables.set_bmd.flatten(1).any(1)
    assert 0.3 < has_set_b.float().mean() < 0.7
    assert tables.set_bmd.sum(2).max() == 1
    for x_md, set_md in zip(tables.x_bmd[has_set_b], tables.set_bmd[has_set_b], strict=True):
        assert all(len(x_md[set_md[:, j], j].unique()) <= 1 for j in range(12))


def test_monitoring_has_rows_that_resemble_their_neighbours():
    assert of_world("monitoring").dependent_rows
    assert not of_world("questionnaire").dependent_rows
    x_bmd = sample_tables(generator(), of_world("monitoring"), n_tables=60, n_variables=8, n_samples=300).x_bmd
    lag_bd = (x_bmd[:, 1:] * x_bmd[:, :-1]).mean(1)
    assert 0.3 < lag_bd.mean() < 0.9


def test_questionnaires_have_few_levels_and_one_trait_behind_them():
    tables = sample_tables(generator(), of_world("questionnaire"), n_tables=60, n_variables=10, n_samples=300)
    levels = [len(x_md[:, j].unique()) for x_md, j in itertools.product(tables.x_bmd, range(10))]
    assert max(levels) <= 7
    assert tables.hidden_bdd.float().mean() > 0.5
    r_bdd = tables.x_bmd.mT @ tables.x_bmd / 300
    top_b = torch.linalg.eigvalsh(r_bdd)[:, -1] / 10
    assert top_b.median() > 0.3  # the first factor has more than three items' worth


def test_worlds_are_shares_of_all_tables():
    with pytest.raises(ConfigError, match=r"sum to 1\.2"):
        SimulationConfig(worlds={"single-cell": 0.6, "monitoring": 0.6})
    with pytest.raises(ConfigError, match="world='cells' is unknown"):
        SimulationConfig(worlds={"cells": 0.6})
    config = SimulationConfig(worlds={"questionnaire": 0.3})
    tables = sample_tables(generator(), config, n_tables=400, n_variables=6, n_samples=80)
    few_b = torch.tensor([max(len(x_md[:, j].unique()) for j in range(6)) <= 7 for x_md in tables.x_bmd])
    assert 0.2 < few_b.float().mean() < 0.4
    assert SimulationConfig.from_dict(config.to_dict()) == config
    assert not PRESETS["paper"].worlds
