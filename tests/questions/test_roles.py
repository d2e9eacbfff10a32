import dataclasses
import itertools
import json
import math

import networkx as nx
import numpy as np
import pytest

import graphbam as gb
from beliefs import beliefs, make_result
from cases import each
from graphbam.errors import ConfigError, OrientationMissingError
from graphbam.graphs.graph import edge_classes, is_dag
from graphbam.questions.roles import ROLES, draw_dags, find_adjustment_sets, is_adjustment_set, play_roles
from oracle import all_dags, descendants, is_open, random_dag, simple_paths


def leads(dag, a, b, avoiding=None):
    """Whether arrows lead from a to b without passing a third variable, by walking over paths."""
    paths = (path for path in simple_paths(dag, a, b) if avoiding not in path)
    return a == b or any(all(dag[i, j] for i, j in itertools.pairwise(path)) for path in paths)


def closes_back_doors(dag, t, y, chosen):
    """The criterion, word by word."""
    if set(chosen) & (descendants(dag, t) | {t, y}):
        return False
    doors = [path for path in simple_paths(dag, t, y) if dag[path[1], t]]
    return not any(is_open(dag, path, set(chosen)) for path in doors)


def subsets(items):
    return itertools.chain.from_iterable(itertools.combinations(items, size) for size in range(len(items) + 1))


def some_dags():
    """A fifth of all DAGs of four variables, and a few of six."""
    rng = np.random.default_rng(0)
    return [*all_dags(4)[::5], *(random_dag(rng, 6, 3) for _ in range(8))]


def test_adjustment_sets_are_those_of_the_criterion():
    for dag in some_dags():
        others = range(2, len(dag))
        valid = [set(chosen) for chosen in subsets(others) if closes_back_doors(dag, 0, 1, chosen)]
        for chosen in subsets(others):
            assert is_adjustment_set(dag, 0, 1, chosen) == (set(chosen) in valid)
        smallest = [chosen for chosen in valid if not any(other < chosen for other in valid)]
        found = [set(chosen) for chosen in find_adjustment_sets(dag, 0, 1)]
        assert all(chosen in smallest for chosen in found)
        assert len(found) == min(len(smallest), 5)


def test_large_sets_are_made_smaller_step_by_step(monkeypatch):
    monkeypatch.setattr("graphbam.questions.roles.MOST_TRIED", 3)
    for dag in some_dags()[-8:]:
        for chosen in find_adjustment_sets(dag, 0, 1):
            assert closes_back_doors(dag, 0, 1, chosen)
            assert not any(closes_back_doors(dag, 0, 1, set(chosen) - {k}) for k in chosen)


def test_roles_are_those_of_the_definitions():
    for dag in some_dags():
        cut_off = dag.copy()
        cut_off[0] = 0
        for v in range(2, len(dag)):
            shares = any(is_open(cut_off, path, set()) for path in simple_paths(cut_off, v, 1))
            expected = [
                leads(dag, v, 0) and leads(dag, v, 1, avoiding=0),
                leads(dag, 0, v) and leads(dag, v, 1),
                leads(dag, 0, v, avoiding=1) and leads(dag, 1, v, avoiding=0),
                leads(dag, v, 0) and not shares,
            ]
            assert play_roles(dag, 0, 1)[v].tolist() == expected
        assert not play_roles(dag, 0, 1)[:2].any()


WORLDS = {
    "confounder": ("c>a c>b a>b d>c e>c", "c", "confounder"),
    "mediator": ("a>c c>b d>a e>a d>b", "c", "mediator"),
    "collider": ("a>c b>c a>b d>a e>b", "c", "collider"),
    "instrument": ("c>a d>a d>b a>b e>b", "c", "instrument"),
}


@each(("dag", "variable", "role"), WORLDS.values(), ids=WORLDS)
def test_sure_beliefs_give_the_roles_of_their_graph(dag, variable, role):
    place = {name: k for k, name in enumerate("abcde")}
    arrow = np.full((5, 5), 0.5)
    for a, b in (edge.split(">") for edge in dag.split()):
        arrow[place[a], place[b]], arrow[place[b], place[a]] = 1.0, 0.0
    result = beliefs(dag, p=1 - 1e-9, directions=arrow, compelled=np.where(arrow == 0.5, 0.0, arrow))
    roles = result.roles("a", "b", n_draws=20)
    assert roles.table.set_index("variable").loc[variable, role] > 0.7
    assert {frozenset(edge.split(">")) for edge in dag.split()} == {frozenset(e) for e in roles.graph.directed_edges()}
    assert roles.effect == 1


def test_draws_follow_the_product_of_what_is_said_of_pairs():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([2, 2, 1], size=(3, 3))
    arrow = rng.uniform(0.2, 0.8, size=(3, 3))
    arrow = np.triu(arrow, 1) + np.tril(1 - arrow.T, -1)
    result = gb.Result(("a", "b", "c"), p, directions=arrow, compelled=0.5 * arrow)
    weights = {}
    for dag in all_dags(3):
        classes, weight = edge_classes(dag), 1.0
        for i, j in itertools.combinations(range(3), 2):
            weight *= result.probabilities[i, j, classes[i, j]]
            weight *= result.arrow_probabilities[i, j] if dag[i, j] else 1
            weight *= result.arrow_probabilities[j, i] if dag[j, i] else 1
        weights[dag.tobytes()] = weight
    n = 4000
    seen = dict.fromkeys(weights, 0.0)
    for dag in draw_dags(result, np.zeros((3, 3), np.int8), n, np.random.default_rng(0)):
        seen[dag.tobytes()] += 1 / n
    total = sum(weights.values())
    assert max(abs(seen[key] - weights[key] / total) for key in weights) < 0.03


def test_draws_are_dags_and_repeatable(sachs):
    one, again = ([*draw_dags(sachs, sachs.dag().adjacency, 5, np.random.default_rng(1))] for _ in range(2))
    assert all(is_dag(dag) for dag in one)
    assert np.array_equal(one, again)


def test_what_is_known_holds_in_every_draw(sachs):
    known = gb.Knowledge(required=["PKA -> Raf"], forbidden=["PKC -- Jnk"], tiers=[["PKA"], ["Erk"]])
    p = known.apply(sachs.names, sachs.probabilities)
    result = dataclasses.replace(sachs, probabilities=p, knowledge=known)
    place = {name: k for k, name in enumerate(sachs.names)}
    for dag in draw_dags(result, result.dag().adjacency, 10, np.random.default_rng(0)):
        assert dag[place["PKA"], place["Raf"]]
        assert not dag[place["Erk"], place["PKA"]]
        assert not (dag | dag.T)[place["PKC"], place["Jnk"]]


def test_the_table_is_made_of_shares(sachs):
    roles = sachs.roles("PKA", "Erk", n_draws=20)
    table = roles.table
    assert set(table["variable"]) == set(sachs.names) - {"PKA", "Erk"}
    assert table[list(ROLES)].to_numpy().min() >= 0
    assert table[list(ROLES)].to_numpy().max() <= 1
    assert roles.graph == sachs.dag()
    assert all(0 <= share <= 1 for share in roles.adjustment["valid"])
    assert f"in {roles.effect:.0%} of 20 graphs" in str(roles)


def test_dowhy_gets_its_graph_in_one_line(sachs):
    given = sachs.roles("PKA", "Erk", n_draws=2).to_dowhy()
    assert {"treatment", "outcome", "graph"} == set(given)
    graph = nx.parse_gml(given["graph"].replace(" node", "\nnode").replace(" edge", "\nedge").split("\n"))
    assert set(graph.edges) == set(sachs.dag().directed_edges())
    assert set(graph.nodes) == set(sachs.names)
    assert json.dumps(given)


def test_an_outcome_that_comes_first_has_no_sets():
    arrow = np.full((5, 5), 0.5)
    arrow[1, 0], arrow[0, 1] = 1.0, 0.0
    roles = beliefs("b>a", directions=arrow, compelled=0.3 * arrow).roles("a", "b", n_draws=5)
    assert roles.adjustment_sets == []
    assert "since b comes before a in it" in str(roles)
    assert "tiers" in str(roles)
    assert roles.effect < 0.1


def test_guesses_and_hidden_causes_are_told():
    half = np.full((5, 5), 0.5)
    text = str(
        beliefs("a>b", directions=half, compelled=0 * half, hidden_causes=0.25 * np.ones((5, 5))).roles("a", "b")
    )
    assert "The only arrow of that graph is a guess" in text
    assert "A hidden common cause of the two has probability 0.25" in text
    assert "All 2 arrows of that graph are guesses" in str(
        beliefs("a>b b>c", directions=half, compelled=0 * half).roles("a", "b", n_draws=2)
    )
    assert "Hidden common causes are not looked at" in str(beliefs("a>b").roles("a", "b", n_draws=2))


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(OrientationMissingError):
        make_result({("a", "b"): 0.9}).roles("a", "b")
    for setting in ({"n_draws": 0}, {"n_draws": 1.5}, {"n_draws": "9"}, {"seed": -1}, {"seed": 0.5}):
        with pytest.raises(ConfigError, match="is not a whole number from"):
            beliefs("a>b").roles("a", "b", **setting)
    assert not math.isnan(beliefs("a>b").roles("a", "b", n_draws=1).effect)


def test_what_knowledge_excludes_is_told_as_such():
    result = dataclasses.replace(beliefs("a>b b>c"), knowledge=gb.Knowledge(required=["a -> b"]))
    text = str(result.roles("b", "a", n_draws=2))
    assert "Prior knowledge excludes it: b comes after a." in text
    assert "tiers=" not in text
    assert "excludes" not in str(result.roles("a", "c", n_draws=2))


def test_sets_are_told_with_their_doubts():
    half = np.full((5, 5), 0.5)
    text = str(beliefs("a>c b>c", directions=half, compelled=0 * half).roles("a", "b", n_draws=30))
    assert "no arrows lead from a to b" in text
    sure = np.full((5, 5), 0.5)
    for i, j in ((2, 0), (2, 1), (0, 1)):
        sure[i, j], sure[j, i] = 1.0, 0.0
    text = str(
        beliefs("c>a c>b a>b", p=1 - 1e-9, directions=sure, compelled=np.where(sure == 0.5, 0.0, sure)).roles("a", "b")
    )
    assert "adjust for c: right in 100% of the drawn graphs" in text
    assert "None of this" not in text
