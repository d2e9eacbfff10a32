import time

import pytest
import torch

from cases import each
from graphbam.simulation.graphs import GRAPHS, depth_levels, draw_degrees, limit_parents, sample_dags


def draw(rng, kind, degree, n_variables, n_tables=200, max_parents=None):
    return sample_dags(rng, [kind] * n_tables, torch.full((n_tables,), float(degree)), n_variables, max_parents)


@each("kind", GRAPHS)
def test_every_kind_is_strictly_upper_triangular_and_has_its_degree(rng, kind):
    for n_variables in (2, 3, 7, 30):
        adj_bdd = draw(rng, kind, min(2, 0.8 * (n_variables - 1)), n_variables)
        assert adj_bdd.dtype == torch.bool
        assert adj_bdd.shape == (200, n_variables, n_variables)
        assert not adj_bdd.tril().any()
        assert adj_bdd.any()
    for degree in (1, 2, 5):
        adj_bdd = draw(rng, kind, degree, 40, n_tables=300)
        assert 2 * adj_bdd.sum().item() / (300 * 40) == pytest.approx(degree, rel=0.12)


def test_erdos_renyi_is_binomial(rng):
    d, degree, n_tables = 20, 3, 2000
    adj_bdd = draw(rng, "erdos-renyi", degree, d, n_tables)
    pairs, chance = d * (d - 1) / 2, degree / (d - 1)
    edges_b = adj_bdd.sum((1, 2)).double()
    assert edges_b.mean().item() == pytest.approx(pairs * chance, abs=4 * (pairs * chance / n_tables) ** 0.5)
    assert edges_b.var().item() == pytest.approx(pairs * chance * (1 - chance), rel=0.15)
    rates_dd = adj_bdd.double().mean(0)[torch.ones(d, d).triu(1).bool()]
    assert (rates_dd - chance).abs().max() < 5 * (chance * (1 - chance) / n_tables) ** 0.5


def test_scale_free_has_hubs_of_both_directions(rng):
    adj_bdd = draw(rng, "scale-free", 2, 60)
    most_children, most_parents = adj_bdd.sum(2).amax(1), adj_bdd.sum(1).amax(1)
    assert (most_children > 2 * most_parents).float().mean() > 0.3
    assert (most_parents > 2 * most_children).float().mean() > 0.3
    plain_bdd = draw(rng, "erdos-renyi", 2, 60)
    degree_bd = adj_bdd.sum(1) + adj_bdd.sum(2)
    assert degree_bd.amax(1).float().mean() > 1.5 * (plain_bdd.sum(1) + plain_bdd.sum(2)).amax(1).float().mean()


def test_regulators_act_on_half_of_the_nodes_and_have_few_parents(rng):
    adj_bdd = draw(rng, "regulators", 3, 60)
    n_children_bd, n_parents_bd = adj_bdd.sum(2), adj_bdd.sum(1)
    assert n_children_bd.amax(1).float().median() > 25  # a random graph of that degree has 6
    assert (n_children_bd > 0).float().mean() < 0.4
    assert n_parents_bd.amax(1).float().median() < 10
    popular_bd = n_children_bd.sort(1, descending=True).values.float()
    assert (popular_bd[:, 0] > 1.3 * popular_bd[:, 1]).float().mean() > 0.6


def triangles(adj_bdd):
    both_bdd = (adj_bdd | adj_bdd.mT).double()
    return (both_bdd @ both_bdd * both_bdd).sum() / 6 / len(adj_bdd)


@pytest.mark.parametrize("kind", ["small-world", "geometric"])
def test_local_graphs_have_many_triangles(rng, kind):
    assert triangles(draw(rng, kind, 4, 50)) > 2 * triangles(draw(rng, "erdos-renyi", 4, 50))


def test_layers_leave_no_triangle(rng):
    assert triangles(draw(rng, "bipartite-layers", 4, 50)) == 0
    assert depth_levels(draw(rng, "bipartite-layers", 4, 50)).max() <= 3


def test_blocks_split_the_graph(rng):
    """The second eigenvalue of the adjacency stands out when there are blocks."""

    def gap(kind):
        adj_bdd = draw(rng, kind, 8, 60, n_tables=50)
        values = torch.linalg.eigvalsh((adj_bdd | adj_bdd.mT).double())
        return (values[:, -2] / values[:, -1]).mean()

    assert gap("stochastic-block") > gap("erdos-renyi") + 0.1


def test_levels_exceed_those_of_all_parents(rng):
    adj_bdd = draw(rng, "erdos-renyi", 4, 25)
    level_bd = depth_levels(adj_bdd)
    step_bdd = level_bd[:, None, :] - level_bd[:, :, None]
    assert (step_bdd[adj_bdd] >= 1).all()
    longest_bd = torch.where(adj_bdd, level_bd[:, :, None] + 1, 0).amax(1)
    assert (level_bd == longest_bd).all()


def test_parents_are_limited_only_where_needed(rng):
    adj_bdd = draw(rng, "erdos-renyi", 5, 30)
    limited_bdd = limit_parents(rng, adj_bdd, 3)
    assert not (limited_bdd & ~adj_bdd).any()
    assert (limited_bdd.sum(1) == adj_bdd.sum(1).clamp(max=3)).all()
    assert draw(rng, "scale-free", 4, 100, 50, max_parents=16).sum(1).max() <= 16


def test_the_papers_degrees_stop_at_a_third(rng):
    degrees = {float(q): 1.0 for q in range(1, 6)}
    for d, most in ((2, 0.8), (3, 1), (10, 3), (14, 4), (15, 5), (100, 5)):
        drawn_b = draw_degrees(rng, degrees, 500, d, degree_share=1 / 3, max_density=0.8)
        assert drawn_b.max() == pytest.approx(most)
        assert drawn_b.min() == pytest.approx(min(1, most))


def test_a_large_batch_is_quick(rng):
    kinds = list(GRAPHS) * 42
    start = time.perf_counter()
    sample_dags(rng, kinds, torch.full((len(kinds),), 4.0), 100, 16)
    assert time.perf_counter() - start < 3  # about 0.1 s on an idle core
