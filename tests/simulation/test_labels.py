import itertools

import torch

from graphbam.graphs import graph
from graphbam.simulation import SimulationConfig, edge_classes, sample_tables


def classes_by_hand(dag_dd):
    """The definition, pair by pair, in plain Python."""
    d = len(dag_dd)
    classes = [[0] * d for _ in range(d)]
    for i, j in itertools.permutations(range(d), 2):
        if dag_dd[i][j] or dag_dd[j][i]:
            classes[i][j] = 1
        elif any(dag_dd[i][c] and dag_dd[j][c] for c in range(d)):
            classes[i][j] = 2
    return classes


def test_labels_agree_with_the_definition(rng):
    tables = sample_tables(rng, SimulationConfig.broad(), n_tables=20, n_variables=12, n_samples=5)
    for dag_dd, classes_dd in zip(tables.dag_bdd.tolist(), tables.classes_bdd.tolist(), strict=True):
        assert classes_dd == classes_by_hand(dag_dd)
    assert set(tables.classes_bdd.unique().tolist()) == {0, 1, 2}


def test_labels_agree_with_the_graph_module(rng):
    tables = sample_tables(rng, SimulationConfig.paper(), n_tables=5, n_variables=30, n_samples=5)
    for dag_dd, classes_dd in zip(tables.dag_bdd, tables.classes_bdd, strict=True):
        assert (graph.edge_classes(dag_dd.numpy()) == classes_dd.numpy()).all()
        assert graph.is_dag(dag_dd.numpy())


def test_adjacent_parents_stay_skeleton():
    triangle = torch.tensor([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    assert edge_classes(triangle).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
