"""Labels of the shown variables, judged by walking over paths and by all graphs of a class."""

import dataclasses
import itertools

import numpy as np
import torch

import oracle
from cases import each
from graphbam.graphs.equivalence import dag_to_cpdag
from graphbam.simulation import SimulationConfig, sample_tables
from graphbam.simulation.graphs import sample_dags
from graphbam.simulation.labels import NOT_APPLICABLE, compelled, label_graphs, project, reach


def walks(adj, start, end, allowed):
    """Whether a directed path leads from start to end whose inner variables are all allowed, path by path."""
    stack = [[start]]
    while stack:
        path = stack.pop()
        for k in np.flatnonzero(adj[path[-1]]):
            if k == end:
                return True
            if k in allowed and k not in path:
                stack.append([*path, k])
    return False


def shuffled_dags(rng, n_graphs, d, degree=2.5):
    """DAGs whose variables stand in no particular order."""
    adj_bdd = sample_dags(rng, ["erdos-renyi"] * n_graphs, torch.full((n_graphs,), degree), d)
    order = torch.randperm(d, generator=rng)
    return adj_bdd[:, order][:, :, order]


def draw_hidden(rng, n_graphs, d):
    """Between none and all but two variables hidden."""
    share_b1 = torch.rand(n_graphs, 1, generator=rng)
    place_bd = torch.rand(n_graphs, d, generator=rng).argsort(1)
    return (torch.rand(n_graphs, d, generator=rng) < share_b1) & (place_bd >= 2)


def test_the_projection_is_what_paths_say(rng):
    """A thousand worlds of five and six variables for each seed."""
    for d in (5, 6):
        adj_bdd = shuffled_dags(rng, 500, d)
        hidden_bd = draw_hidden(rng, 500, d)
        directed_bdd, bidirected_bdd = project(adj_bdd, hidden_bd)
        n_bidirected = 0
        for adj, is_hidden, directed, bidirected in zip(
            adj_bdd.numpy(), hidden_bd.numpy(), directed_bdd.numpy(), bidirected_bdd.numpy(), strict=True
        ):
            hidden = set(np.flatnonzero(is_hidden).tolist())
            for i, j in itertools.permutations(set(range(d)) - hidden, 2):
                assert directed[i, j] == walks(adj, i, j, hidden)
                joined = any(walks(adj, h, i, hidden) and walks(adj, h, j, hidden) for h in hidden)
                assert bidirected[i, j] == joined
                n_bidirected += joined
        assert n_bidirected > 100


def test_hiding_keeps_ancestors(rng):
    adj_bdd = shuffled_dags(rng, 300, 7)
    shown_bd = torch.rand(300, 7, generator=rng).argsort(1)[:, :4]
    labels = label_graphs(adj_bdd, shown_bd)
    for adj, shown, before in zip(adj_bdd.numpy(), shown_bd.tolist(), labels.ancestors_bdd.numpy(), strict=True):
        for a, b in itertools.permutations(range(4), 2):
            assert before[a, b] == walks(adj, shown[a], shown[b], set(range(7)))


def test_compelled_arrows_of_all_graphs_of_four_variables():
    """The oracle knows nothing of rules: a CPDAG is the union of all DAGs with the same d-separations."""
    n_seen = 0
    for dags in oracle.markov_classes(4):
        cpdag = oracle.union(dags)
        ours_bdd = compelled(torch.tensor(np.stack(dags)).bool()).numpy()
        assert (ours_bdd == ((cpdag == 1) & (cpdag.T == 0))).all()
        n_seen += len(dags)
    assert n_seen == 543


@each(("d", "degree"), [(6, 2.0), (15, 3.0), (40, 5.0)])
def test_compelled_arrows_of_larger_graphs(rng, d, degree):
    dag_bdd = shuffled_dags(rng, 40, d, degree)
    for dag, ours in zip(dag_bdd.numpy(), compelled(dag_bdd).numpy(), strict=True):
        cpdag = dag_to_cpdag(dag)
        assert (ours == (cpdag & ~cpdag.T & 1)).all()


def test_loops_and_hidden_causes_have_no_cpdag():
    adj_bdd = torch.zeros(3, 4, 4, dtype=torch.bool)
    adj_bdd[0, [0, 1, 2], [1, 2, 0]] = True  # a loop of three
    adj_bdd[1:, [0, 0, 1, 2], [1, 2, 3, 3]] = True  # 0 → 1 → 3 ← 2 ← 0
    shown_bd = torch.tensor([[0, 1, 2], [1, 2, 3], [0, 1, 2]])
    labels = label_graphs(adj_bdd, shown_bd)
    assert (labels.compelled_bdd[:2] == NOT_APPLICABLE).all()
    assert (labels.compelled_bdd[2] == 0).all()  # the fork 1 ← 0 → 2: any arrow may turn
    assert labels.ancestors_bdd[0].sum() == 6
    assert labels.ancestors_bdd.diagonal(dim1=1, dim2=2).sum() == 0
    assert reach(adj_bdd)[0].diagonal().tolist() == [True, True, True, False]


def test_tables_carry_the_labels_of_their_graphs(rng):
    tables = sample_tables(rng, SimulationConfig.paper(), n_tables=20, n_variables=8, n_samples=5)
    assert tables.hidden_bdd.sum() == 0
    assert tables.observed_bmd is None
    assert tables.set_bmd is None
    for dag, before, ours in zip(
        tables.dag_bdd.numpy(), tables.ancestors_bdd.numpy(), tables.compelled_bdd.numpy(), strict=True
    ):
        cpdag = dag_to_cpdag(dag)
        assert (ours == cpdag * (1 - cpdag.T)).all()
        assert all(before[i, j] == (j in oracle.descendants(dag, i)) for i, j in itertools.permutations(range(8), 2))


def test_columns_with_a_joint_hidden_variable_are_labelled(rng):
    config = dataclasses.replace(SimulationConfig.paper().narrow(degree=1e-6), confounded=1.0)
    tables = sample_tables(rng, config, n_tables=20, n_variables=8, n_samples=2000)
    strength_bdd = (tables.x_bmd.mT @ tables.x_bmd / 2000).abs()
    strength_bdd.diagonal(dim1=1, dim2=2).zero_()
    assert strength_bdd[tables.hidden_bdd == 0].max() < 0.12
    assert strength_bdd[tables.hidden_bdd == 1].mean() > 0.2
    assert (tables.compelled_bdd[tables.hidden_bdd.flatten(1).any(1)] == NOT_APPLICABLE).all()
