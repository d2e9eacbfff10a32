"""Directions of long lists of links: what matrices say of small graphs, and valid graphs at any size."""

from __future__ import annotations

import tracemalloc

import networkx as nx
import numpy as np
import pytest

import graphbam as gb
from cases import SEEDS
from graphbam.directions import large
from graphbam.directions.arrows import FollowsInMatrix
from graphbam.directions.cpdag import choose_links
from graphbam.directions.immoralities import Beliefs
from graphbam.directions.large import (
    FollowsInList,
    Links,
    Listed,
    break_cycles,
    connected_parts,
    large_cpdag,
    large_dag,
    lead_nowhere,
    lead_there,
)
from graphbam.errors import KnowledgeError
from graphbam.graphs.cut import Cut
from graphbam.graphs.equivalence import apply_knowledge, dag_to_cpdag, is_cpdag
from graphbam.graphs.graph import ancestors, edge_classes, is_dag, reachable


def links_of(adjacency, sure=0.97):
    """What somebody nearly sure believes of a DAG's CPDAG, as links and moral pairs."""
    cpdag, n = dag_to_cpdag(adjacency), len(adjacency)
    i, j = np.nonzero(np.triu(adjacency | adjacency.T))
    arrow = sure * (cpdag & ~cpdag.T & 1)
    a, b = np.nonzero(np.triu(edge_classes(adjacency) == 2))
    return Links(i, j, np.ones(len(i)), arrow[i, j], arrow[j, i]), Listed(a * n + b, np.full(len(a), sure), 0.0)


def as_matrix(links, chosen, n):
    matrix = np.zeros((n, n), dtype=np.int8)
    matrix[links.i[chosen >= 0], links.j[chosen >= 0]] = 1
    matrix[links.j[chosen <= 0], links.i[chosen <= 0]] = 1
    return matrix


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_known_of_a_cpdag_gives_it_back(seed):
    for n, degree in ((8, 3), (30, 2), (120, 3)):
        dag = gb.simulate(n_variables=n, n_samples=2, degree=degree, seed=seed)[0].adjacency
        links, morals = links_of(dag)
        assert np.array_equal(as_matrix(links, large_cpdag(links, morals, n), n), dag_to_cpdag(dag))


@pytest.mark.parametrize("seed", SEEDS)
def test_any_beliefs_give_a_cpdag_and_a_dag(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    for n in (6, 25, 60):
        dag = gb.simulate(n_variables=n, n_samples=2, degree=3, seed=seed)[0].adjacency
        i, j = np.nonzero(np.triu(dag | dag.T))
        forward = rng.random(len(i))
        links = Links(i, j, rng.random(len(i)), forward, (1 - forward) * rng.random(len(i)))
        keys = np.sort(rng.choice(n * n, n, replace=False))
        assert is_cpdag(as_matrix(links, large_cpdag(links, Listed(keys, rng.random(n), 0.3), n), n))
        whole = links._replace(backward=1 - forward)
        assert is_dag(as_matrix(links, large_dag(whole, n), n))
        with monkeypatch.context() as patch:
            patch.setattr(large, "MOST_ORDERED", 1)
            assert is_dag(as_matrix(links, large_dag(whole, n), n))


def test_a_dag_that_is_believed_is_drawn():
    dag = gb.simulate(n_variables=50, n_samples=2, degree=3, seed=0)[0].adjacency
    i, j = np.nonzero(np.triu(dag | dag.T))
    forward = np.where(dag[i, j], 0.6, 0.4)
    assert np.array_equal(large_dag(Links(i, j, np.ones(len(i)), forward, 1 - forward), 50) > 0, dag[i, j] > 0)


def ways_of(links, adjacency):
    return adjacency[links.i, links.j].astype(np.int8) - adjacency[links.j, links.i].astype(np.int8)


@pytest.mark.parametrize("seed", SEEDS)
def test_known_arrows_direct_what_follows_from_them(seed):
    rng, n_more = np.random.default_rng(seed), 0
    for n, degree in ((8, 4), (30, 2), (60, 6)):
        dag = gb.simulate(n_variables=n, n_samples=2, degree=degree, seed=seed)[0].adjacency
        links, morals = links_of(dag)
        known = np.where(rng.random(len(links.i)) < 0.2, ways_of(links, dag), 0).astype(np.int8)
        required = list(zip(*links.keep(known != 0).point(known[known != 0]), strict=True))
        expected = apply_knowledge(dag_to_cpdag(dag), required=required)
        assert np.array_equal(as_matrix(links, large_cpdag(links, morals, n, known), n), expected)
        n_more += not np.array_equal(expected, dag_to_cpdag(dag))
    assert n_more


@pytest.mark.parametrize("most_ordered", [1000, 1])
def test_known_arrows_hold_in_knots_of_any_size(most_ordered, monkeypatch):
    monkeypatch.setattr(large, "MOST_ORDERED", most_ordered)
    rng, n = np.random.default_rng(0), 20
    for _ in range(10):
        i, j = np.nonzero(np.triu(rng.random((n, n)) < 0.4, 1))
        forward, place = rng.random(len(i)), rng.permutation(n)
        links = Links(i, j, rng.uniform(0.55, 0.95, len(i)), forward, 1 - forward)
        known = np.where(rng.random(len(i)) < 0.35, np.sign(place[j] - place[i]), 0).astype(np.int8)
        ways = large_dag(links, n, known)
        assert np.array_equal(ways[known != 0], known[known != 0])
        assert is_dag(as_matrix(links, ways, n))


def test_cycles_of_known_arrows_lose_the_links_that_the_matrix_loses():
    rng, n = np.random.default_rng(0), 9
    for _ in range(10):
        i, j = np.nonzero(np.triu(rng.random((n, n)) < 0.6, 1))
        p, known = rng.random(len(i)), rng.choice([-1, 0, 1], size=len(i)).astype(np.int8)
        p_dd3, forbidden = np.full((n, n, 3), [1.0, 0.0, 0.0]), np.zeros((n, n), dtype=bool)
        p_dd3[i, j] = p_dd3[j, i] = np.stack([1 - p, p, 0 * p], axis=1)
        forbidden[i, j], forbidden[j, i] = known < 0, known > 0
        chosen_dd = choose_links(Beliefs(p_dd3, None, forbidden), Cut(threshold=1e-9))
        assert np.array_equal(break_cycles(Links(i, j, p, p, p), known), chosen_dd[i, j])
    certain = Links(np.array([0, 1, 0]), np.array([1, 2, 2]), np.ones(3), np.ones(3), np.ones(3))
    with pytest.raises(KnowledgeError, match="certain links"):
        break_cycles(certain, np.array([1, 1, -1], dtype=np.int8))


@pytest.mark.parametrize("within_tiers", [True, False])
def test_paths_are_those_of_the_matrix(within_tiers):
    rng, n, n_without = np.random.default_rng(0), 7, 0
    for density in (0.2, 0.7, 0.9, 0.9):
        out_dd = (rng.random((n, n)) < density) & ~np.eye(n, dtype=bool)
        forbidden = {k: set(np.flatnonzero(row).tolist()) for k, row in enumerate(out_dd)}
        for tier_of in (np.full(n, -1), rng.integers(0, 3, n), rng.integers(-1, 3, n)):
            has_tier = (tier_of >= 0)[:, None] & (tier_of >= 0)
            against_dd = has_tier & (tier_of[:, None] >= tier_of + within_tiers)
            not_dd = (out_dd | against_dd) & ~np.eye(n, dtype=bool)
            i, j = np.nonzero(not_dd)
            found = lead_nowhere(i, j, forbidden, tier_of, within_tiers)
            assert np.array_equal(found, ~reachable(~not_dd & ~np.eye(n, dtype=bool))[i, j])
            n_without += found.sum()
    assert n_without
    dag = np.triu(rng.random((n, n)) < 0.2, 1)
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    assert np.array_equal(lead_there(i, j, np.argwhere(dag).tolist()), ancestors(dag)[i, j])


def test_parts_are_those_of_networkx():
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 200, size=(2, 130))
    graph = nx.Graph()
    graph.add_nodes_from(range(200))
    graph.add_edges_from(zip(i.tolist(), j.tolist(), strict=True))
    parts = connected_parts(i, j, 200)
    for part in nx.connected_components(graph):
        assert {int(parts[k]) for k in part} == {min(part)}


def test_memory_grows_with_links_and_not_with_their_square():
    peaks = []
    for n in (500, 2000):
        i = np.arange(n - 1)
        links = Links(i, i + 1, np.ones(n - 1), np.full(n - 1, 0.6), np.full(n - 1, 0.2))
        tracemalloc.start()
        large_cpdag(links, Listed(np.array([]), np.array([]), 0.0), n)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 6 * peaks[0]


@pytest.mark.parametrize("seed", range(8))
def test_what_follows_in_a_list_is_what_follows_in_a_matrix(seed):
    """And what is not listed says nothing: as if it were never the largest."""
    rng, n = np.random.default_rng(seed), 7
    dag = np.triu(rng.random((n, n)) < 0.25, 1)
    p_dd, (i, j) = rng.random((n, n)), np.triu_indices(n, 1)
    kept = rng.random(len(i)) < (1.0 if seed % 2 else 0.6)
    i, j = i[kept], j[kept]
    listed_dd = np.zeros((n, n), dtype=bool)
    listed_dd[i, j] = listed_dd[j, i] = True
    spread_dd = FollowsInMatrix(ancestors(dag)).spread(np.where(listed_dd, p_dd, -np.inf))
    spread_n2 = FollowsInList(i, j, np.argwhere(dag).tolist(), n).spread(np.stack([p_dd[i, j], p_dd[j, i]], axis=1))
    assert np.array_equal(spread_n2, np.stack([spread_dd[i, j], spread_dd[j, i]], axis=1))
