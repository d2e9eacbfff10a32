"""DAGs of a CPDAG: members of the class, all of them, and none more often than another where the class is small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_graph import dags, markov_classes, union

from graphbam.directions.orientation import orient
from graphbam.errors import GraphError
from graphbam.graphs.extensions import sample_dags
from graphbam.graphs.graph import consistent_extension, dag_to_cpdag, is_dag
from ingredients import SQUARE, complete, few, forbidding


def test_samples_are_uniform_over_every_small_class():
    rng = np.random.default_rng(0)
    for members in markov_classes(4):
        known = {dag.tobytes(): 0 for dag in members}
        draws = 60 * len(members)
        for dag in sample_dags(union(members), draws, rng):
            known[dag.tobytes()] += 1  # KeyError: not a member
        counts = np.array(list(known.values()))
        assert ((counts - 60) ** 2 / 60).sum() < len(members) + 6 * np.sqrt(2 * len(members)) + 10


@few
@given(dags(max_d=30, max_degree=4), st.integers(0, 2**32))
def test_samples_belong_to_the_class(dag, seed):
    cpdag = dag_to_cpdag(dag)
    for sample in sample_dags(cpdag, 3, np.random.default_rng(seed)):
        np.testing.assert_array_equal(dag_to_cpdag(sample), cpdag)
    np.testing.assert_array_equal(dag_to_cpdag(consistent_extension(cpdag)), cpdag)


def test_large_cliques_are_sampled_too():
    samples = sample_dags(complete(7), 200, np.random.default_rng(0))
    assert all(is_dag(dag) for dag in samples)
    assert len({dag.tobytes() for dag in samples}) > 150
    np.testing.assert_allclose(samples.mean(axis=0)[np.triu_indices(7, 1)], 0.5, atol=0.15)


def test_samples_keep_known_arrows():
    graph = orient(complete(4), knowledge=forbidding(4, [(2, 0), (3, 0)])).adjacency
    samples = sample_dags(graph, 50, np.random.default_rng(1))
    assert samples[:, 2, 0].all()
    assert samples[:, 3, 0].all()
    assert len({dag.tobytes() for dag in samples}) == 24 // 3  # 0 comes after both 2 and 3 in a third of all orders


def test_a_graph_without_extension_is_refused():
    with pytest.raises(GraphError, match="No DAG extends"):
        sample_dags(SQUARE, 1, np.random.default_rng(0))
