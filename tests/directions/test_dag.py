"""The DAG to state: acyclic whatever is believed, the best of all where that can be checked, knowledge first."""

from __future__ import annotations

import dataclasses
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphbam.directions.dag import MOST_EXACT, nearest_dag
from graphbam.errors import KnowledgeError
from graphbam.graphs.cut import Cut
from graphbam.graphs.graph import is_dag, skeleton
from graphbam.result import Result
from ingredients import few, numbers


def believe(seed, d, density=0.7):
    """Links, their probabilities and directions, all at random."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((d, d)), 1)
    links_dd = (upper > 0) & (upper < density)
    direction_dd = np.triu(rng.random((d, d)), 1)
    direction_dd += np.tril(1 - direction_dd.T, -1)
    p_dd = np.triu(rng.random((d, d)), 1)
    return links_dd | links_dd.T, p_dd + p_dd.T, direction_dd


def value(dag_dd, p_dd, direction_dd):
    return float((dag_dd * p_dd * direction_dd).sum())


NOTHING = np.zeros((40, 40), dtype=bool)


@few
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_it_is_the_best_of_all_small_dags(seed, d):
    links_dd, p_dd, direction_dd = believe(seed, d)
    found = nearest_dag(links_dd, p_dd, direction_dd, NOTHING[:d, :d])
    best = max(
        value(links_dd & (np.array(order)[:, None] < order), p_dd, direction_dd) for order in permutations(range(d))
    )
    assert value(found, p_dd, direction_dd) == pytest.approx(best)


@few
@given(st.integers(0, 10**6), st.integers(2, 30), st.floats(0.05, 1))
def test_it_is_acyclic_with_exactly_these_links(seed, d, density):
    links_dd, p_dd, direction_dd = believe(seed, d, density)
    found = nearest_dag(links_dd, p_dd, direction_dd, NOTHING[:d, :d])
    assert is_dag(found)
    assert np.array_equal((found | found.T) > 0, links_dd)


@few
@given(st.integers(0, 10**6))
def test_large_knots_come_close_to_the_best_order(seed):
    """The exact search is asked about knots that the other one would have taken."""
    links_dd, p_dd, direction_dd = believe(seed, MOST_EXACT, 1.0)
    exact = value(nearest_dag(links_dd, p_dd, direction_dd, NOTHING[:MOST_EXACT, :MOST_EXACT]), p_dd, direction_dd)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphbam.directions.dag.MOST_EXACT", 0)
        other = value(nearest_dag(links_dd, p_dd, direction_dd, NOTHING[:MOST_EXACT, :MOST_EXACT]), p_dd, direction_dd)
    assert 0.93 * exact <= other <= exact + 1e-9


@few
@given(st.integers(0, 10**6), st.integers(3, 20))
def test_forbidden_arrows_are_not_drawn(seed, d):
    links_dd, p_dd, direction_dd = believe(seed, d)
    rng = np.random.default_rng(seed)
    rank = rng.permutation(d)
    forbidden_dd = (rank[:, None] > rank) & (rng.random((d, d)) < 0.5)  # some order avoids them all
    found = nearest_dag(links_dd, p_dd, direction_dd, forbidden_dd)
    assert is_dag(found)
    assert not (found.astype(bool) & forbidden_dd).any()
    assert np.array_equal((found | found.T) > 0, links_dd)


def test_knowledge_that_leaves_no_dag_is_refused():
    links_dd = ~np.eye(3, dtype=bool)
    forbidden_dd = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], dtype=bool)  # what is left is a cycle
    with pytest.raises(KnowledgeError, match="leave no DAG"):
        nearest_dag(links_dd, 0.9 * links_dd, 0.5 * links_dd, forbidden_dd)


def check_dag(dag, cpdag, knowledge):
    """A DAG with all links and arrows of a CPDAG, and nothing that knowledge excludes."""
    arrows = set(dag.directed_edges())
    linked = {frozenset(edge) for edge in arrows}
    assert not dag.undirected_edges()
    assert nx.is_directed_acyclic_graph(nx.DiGraph(arrows))
    assert arrows.issuperset(cpdag.directed_edges())
    assert linked.issuperset(map(frozenset, cpdag.undirected_edges()))
    assert not any(knowledge and knowledge.forbids(a, b) for a, b in arrows)
    return linked


@few
@given(numbers, st.integers(2, 7), st.booleans())
def test_the_dag_has_all_links_and_arrows_of_the_cpdag(draw, d, is_known):
    whole, listed = draw.answers(d, is_known)
    set_d = draw.rng.random(d) < 0.3
    told = dataclasses.replace(whole, experiments=set_d[:, None] != set_d)
    rows = draw.claims(skeleton(np.ones((d, d)) - np.eye(d)))
    two_step = Result(whole.names, whole.probabilities, knowledge=whole.knowledge, colliders=rows)
    for answer in (whole, told, two_step, listed):
        for cut in (Cut(threshold=0.2), Cut(), Cut(fdr=0.2)):
            linked = check_dag(answer.dag(cut), answer.cpdag(cut), whole.knowledge)
            assert linked == {frozenset(edge) for edge in answer.cpdag(cut).skeleton().undirected_edges()}
    for answer in (whole, told, two_step):
        check_dag(answer.dag(objective="shd"), answer.cpdag(objective="shd"), whole.knowledge)
