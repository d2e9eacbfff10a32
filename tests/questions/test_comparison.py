import json
import math

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from beliefs import NAMES, beliefs, make_result
from cases import each
from graphbam.errors import ResultError
from graphbam.graphs.metrics import shd
from graphbam.questions.comparison import read_truth

# ── two answers ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_result_agrees_with_itself(sachs):
    same = sachs.compare(sachs)
    assert same.agreement == 1
    assert same.correlation == pytest.approx(1)
    assert same.count("lost") == same.count("gained") == same.count("turned") == 0
    assert same.count("shared") == len(sachs.skeleton().undirected_edges())


def test_changes_are_named():
    here = beliefs("a>c b>c d>e")
    there = beliefs("a>c b>c c>d")
    table = here.compare(there).table.set_index(["a", "b"])
    assert table.loc[("a", "c"), "change"] == "shared"
    assert table.loc[("d", "e"), "change"] == "lost"
    assert table.loc[("c", "d"), "change"] == "gained"
    turned = beliefs("a>c b>c").compare(beliefs("a>c c>b"))
    assert turned.count("turned") == 2
    assert "\n  drawn differently: a -> c here and a -- c there" in str(turned)


def test_the_other_way_round_lost_is_gained(rng):
    p, q = rng.dirichlet([1, 1, 0.3], size=(2, 5, 5))
    one, two = gb.Result(NAMES, p), gb.Result(NAMES, q)
    there, back = one.compare(two), two.compare(one)
    assert there.count("lost") == back.count("gained") > 0
    assert there.agreement == back.agreement
    assert there.correlation == pytest.approx(back.correlation)


def test_names_decide_not_places(rng):
    p = rng.dirichlet([1, 1, 0.3], size=(5, 5))
    order = rng.permutation(5)
    one, two = gb.Result(NAMES, p), gb.Result([NAMES[k] for k in order], p[np.ix_(order, order)])
    assert one.compare(two).table["difference"].abs().max() == pytest.approx(0)
    wider = gb.Result((*"xab", "c"), p[:4, :4])
    seen = one.compare(wider)
    assert seen.only_there == ("x",)
    assert seen.only_here == ("d", "e")
    assert "not compared: d, e" in str(seen)


def test_strangers_cannot_be_compared():
    with pytest.raises(ResultError, match="share 0 of their variables"):
        make_result({}).compare(gb.Result(("x", "y"), np.full((2, 2, 3), 1 / 3)))
    with pytest.raises(ResultError, match="pass a Result"):
        make_result({}).compare(gb.Graph(NAMES, np.zeros((5, 5))))


# ── the truth ─────────────────────────────────────────────────────────────────────────────────────────────

TRUTH = gb.Graph(NAMES, np.array([[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 1], [0, 0, 0, 1, 0]]))
"""a → b → c ← d — e."""


def write_list(path):
    path.write_text("source,target\na,b\nb,c\nd,c\nd,e\ne,d\n")
    return path


SPELLINGS = {
    "graph": lambda folder: TRUTH,
    "graph in another order": lambda folder: gb.Graph(NAMES[::-1], TRUTH.adjacency[::-1, ::-1]),
    "matrix": lambda folder: TRUTH.adjacency,
    "lists": lambda folder: TRUTH.adjacency.tolist(),
    "frame": lambda folder: pd.DataFrame(TRUTH.adjacency, NAMES, NAMES).loc[::-1, ::-1],
    "networkx": lambda folder: TRUTH.to_networkx(),
    "words": lambda folder: ["a -> b", "b -> c", "d -> c", "d -- e"],
    "pairs": lambda folder: [("a", "b"), ("b", "c"), ("d", "c"), ("d", "e"), ("e", "d")],
    "csv": lambda folder: gb.export(TRUTH, folder / "t.csv"),
    "adjacency csv": lambda folder: gb.export(TRUTH, folder / "t.csv", layout="adjacency"),
    "json": lambda folder: gb.export(TRUTH, folder / "t.json"),
    "graphml": lambda folder: gb.export(TRUTH, folder / "t.graphml"),
    "a list as graph.csv": lambda folder: write_list(folder / "graph.csv"),
    "source and target": lambda folder: pd.DataFrame({"source": list("abdde"), "target": list("bcced")}),
}


@each("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_the_truth_may_be_spelt_in_many_ways(spell, tmp_path):
    assert read_truth(spell(tmp_path), NAMES) == TRUTH


BAD = {
    "unknown name": (["a -> z"], "names 'z', which the result does not have"),
    "unknown in a graph": (gb.Graph(["a", "z"], [[0, 1], [0, 0]]), "names 'z'"),
    "wrong size": (np.zeros((3, 3)), r"shape \(3, 3\)"),
    "numbers": (np.full((5, 5), 0.4), "must be 0 or 1"),
    "no graph": (7, "a int is no graph"),
    "a list of numbers": ([0, 1, 1], "0 is not an edge"),
    "a column": (pd.Series(["a -> b", 3]), "3 is not an edge"),
    "text": (np.full((5, 5), "1"), "holds text"),
    "no file": ("nowhere.csv", "the truth, nowhere.csv, does not exist. Check the path."),
    "unknown kind": ("truth.xlsx", "read from .csv"),
    "columns": (pd.DataFrame({"from": ["a"], "to": ["b"]}), "needs source and target"),
    "all pairs": (make_result({}).table(), "lists the probabilities of all pairs"),
    "result": (make_result({}), "use compare"),
    "words": (["a b"], "the truth cannot be read"),
}


@each(("truth", "message"), BAD.values(), ids=BAD)
def test_what_is_no_truth_is_refused(truth, message):
    with pytest.raises(ResultError, match=message):
        make_result({}).score(truth)


@each(("name", "content"), [("t.graphml", "<a"), ("t.graphml", ""), ("t.gml", "graph ["), ("t.json", "[]")])
def test_a_damaged_truth_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(ResultError, match="cannot be read as a graph"):
        make_result({}).score(tmp_path / name)


def test_a_graph_fits_columns_without_names_in_their_order():
    truth = gb.Graph(["X1", "X2", "X3"], [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    p = np.full((3, 3, 3), [0.1, 0.9, 0.0])
    p[0, 1] = p[1, 0] = [0.1, 0.0, 0.9]
    score = gb.Result(("x0", "x1", "x2"), p).score(truth)
    assert (score.f1, score.n_true, score.by_order) == (1.0, 2, True)
    assert "matched in order" in str(score)
    named = gb.Result(truth.names, p).score(truth)
    assert not named.by_order
    assert "order" not in str(named)


@each("names", [("a", "b", "c"), ("x0", "x1", "x2", "x3"), ("x2", "x1", "x0")])
def test_columns_with_names_are_found_by_these_alone(names):
    with pytest.raises(ResultError, match="the truth names 'X1'"):
        read_truth(gb.Graph(["X1", "X2", "X3"], np.zeros((3, 3))), names)
    with pytest.raises(ResultError, match="the truth names 'z'"):
        read_truth(gb.Graph(["x0", "x1", "z"], np.zeros((3, 3))), ("x0", "x1", "x2"))


def test_a_simulated_array_is_scored_as_it_is():
    truth, x_md = gb.simulate(n_samples=100, n_variables=5, seed=1)
    named = gb.infer(pd.DataFrame(x_md, columns=truth.names)).score(truth)
    bare = gb.infer(x_md).score(truth)
    assert bare.to_dict() == named.to_dict() | {"by_order": True}


def test_a_json_that_is_no_graph_is_refused(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"edges": 3}), encoding="utf-8")
    with pytest.raises(ResultError, match="cannot be read as a graph"):
        make_result({}).score(path)


def test_the_right_answer_has_the_best_scores():
    truth = gb.Graph(NAMES, [[0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0] * 5, [0] * 5])
    score = beliefs("a>c b>c c>d").score(truth)
    assert (score.precision, score.recall, score.f1, score.average_precision) == (1, 1, 1, 1)
    assert score.shd == 0
    assert score.is_directed
    assert score.n_arrows == 3
    assert score.direction_accuracy == 1
    assert "3 of 3 arrows on true links point the right way" in str(score)


def chain_of_three(rng, set_share=0.0):
    """a → b → c, and which cells were set."""
    a, e, f, own = rng.normal(size=(4, 600))
    mask = np.zeros((600, 3), dtype=int)
    mask[:, 1] = rng.random(600) < set_share
    b = np.where(mask[:, 1], own, 0.8 * a + 0.6 * e)
    return pd.DataFrame({"a": a, "b": b, "c": 0.8 * b + 0.6 * f}), mask


def test_what_knowledge_and_experiments_tell_is_no_mistake(rng):
    table, mask = chain_of_three(rng, set_share=0.5)
    watched, _ = chain_of_three(rng)
    for result in (gb.infer(table, interventions=mask), gb.infer(watched, required=["a -> b"])):
        assert result.cpdag().directed_edges() == [("a", "b"), ("b", "c")]
        assert result.score(["a -> b", "b -> c"]).shd == 0
    wrong = gb.infer(watched, required=["b -> a"])
    assert wrong.score(["a -> b", "b -> c"]).shd == 2  # the right arrow would have told b → c too


def test_scores_count_as_they_say():
    result = beliefs("a>c b>c c>d")
    score = result.score(["c -> a", "c -> d", "d -> e"])
    assert (score.n_true, score.n_drawn, score.n_hits) == (3, 3, 2)
    assert score.precision == score.recall == pytest.approx(2 / 3)
    assert score.n_arrows == 2
    assert score.direction_accuracy == 0.5
    truth = read_truth(["c -> a", "c -> d", "d -> e"], NAMES).to_cpdag()
    assert score.shd == shd(result.cpdag().adjacency, truth.adjacency)


def test_links_alone_are_judged_without_directions():
    score = make_result({("a", "b"): 0.9}).score(["b -> a"])
    assert score.shd == 0
    assert not score.is_directed
    assert math.isnan(score.direction_accuracy)
    assert beliefs("a>c b>c").score(["a -- c", "b -- c"]).shd == 0


def test_variables_that_the_truth_does_not_know_are_not_judged():
    score = beliefs("a>c b>c c>d").score(gb.Graph(["a", "b", "c"], [[0, 0, 1], [0, 0, 1], [0, 0, 0]]))
    assert score.left_out == ("d", "e")
    assert score.precision == 1
    assert "does not name them: d, e" in str(score)


def test_a_truth_with_cycles_is_taken_as_it_is(sachs):
    ring = [("Raf", "Mek"), ("Mek", "Erk"), ("Erk", "Raf")]
    score = sachs.score(ring)
    assert score.n_true == 3
    assert score.shd == shd(sachs.cpdag().adjacency, read_truth(ring, sachs.names).adjacency)
