"""Directions of long lists of links: what matrices say of small graphs, and valid graphs at any size."""

from __future__ import annotations

import tracemalloc

import networkx as nx
import numpy as np
import pytest

import graphbam as gb
from cases import SEEDS
from graphbam.directions import large
from graphbam.directions.large import Links, Morals, connected_parts, large_cpdag, large_dag
from graphbam.graphs.equivalence import dag_to_cpdag, is_cpdag
from graphbam.graphs.graph import edge_classes, is_dag


def links_of(adjacency, sure=0.97):
    """What somebody nearly sure believes of a DAG's CPDAG, as links and moral pairs."""
    cpdag, n = dag_to_cpdag(adjacency), len(adjacency)
    i, j = np.nonzero(np.triu(adjacency | adjacency.T))
    arrow = sure * (cpdag & ~cpdag.T & 1)
    a, b = np.nonzero(np.triu(edge_classes(adjacency) == 2))
    return Links(i, j, np.ones(len(i)), arrow[i, j], arrow[j, i]), Morals(a * n + b, np.full(len(a), sure), 0.0)


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
        assert is_cpdag(as_matrix(links, large_cpdag(links, Morals(keys, rng.random(n), 0.3), n), n))
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
        large_cpdag(links, Morals(np.array([]), np.array([]), 0.0), n)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 6 * peaks[0]
