"""Results: thresholds, false-discovery targets, ranking, suspected children, directions, round trips."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import graphbam as gb
from beliefs import make_result
from cases import SEEDS, each
from graphbam.directions.cpdag import expected_shd
from graphbam.errors import ConfigError, GraphbamError, GraphError, OrientationMissingError, ResultError
from graphbam.graphs.cut import Cut
from graphbam.graphs.equivalence import is_cpdag
from graphbam.graphs.knowledge import Knowledge
from graphbam.output import figures
from graphbam.result import Failure, Result, suspect_children

D = 6
NAMES = tuple("abcdef")


@pytest.fixture(params=SEEDS)
def result(request):
    p = np.random.default_rng(request.param).dirichlet([2, 1, 0.5], size=(D, D))
    return Result(NAMES, p)


def test_probabilities_are_a_proper_answer(result):
    p = result.probabilities
    assert np.array_equal(p, p.transpose(1, 0, 2))
    assert np.allclose(p.sum(axis=-1), 1, atol=1e-14)
    assert np.array_equal(p[range(D), range(D)], np.tile([1.0, 0.0, 0.0], (D, 1)))
    with pytest.raises(ValueError, match="read-only"):
        p[0, 1] = 0


@each("threshold", [0.2, 0.5, 0.9])
def test_graphs_hold_the_pairs_above_the_threshold(result, threshold):
    p = result.probabilities
    assert np.array_equal(result.skeleton(threshold).adjacency, p[..., 1] >= threshold)
    assert np.array_equal(result.moral_graph(threshold).adjacency, p[..., 1] + p[..., 2] >= threshold)
    assert (result.moral_graph(threshold).adjacency >= result.skeleton(threshold).adjacency).all()


def test_certain_edges_survive_every_threshold(result):
    p = Knowledge(required=["a -- b"], forbidden=["c -- d"]).apply(NAMES, result.probabilities)
    sure = Result(NAMES, p)
    assert sure.probabilities[0, 1, 1] == 1.0
    assert sure.skeleton(1.0).undirected_edges() == [("a", "b")]
    assert ("c", "d") not in sure.skeleton(1e-12).undirected_edges()


@each("cut", [{"threshold": 0.0}, {"threshold": 1.1}, {"fdr": 0.0}, {"fdr": 1.0}])
def test_cuts_outside_their_range_are_refused(result, cut):
    with pytest.raises(ConfigError, match="pass a number"):
        result.skeleton(**cut)


def test_table_is_ranked_and_complete(result):
    table = result.table()
    assert list(table.columns) == ["a", "b", "skeleton", "moral", "none", "via"]
    assert len(table) == D * (D - 1) / 2
    assert table["skeleton"].is_monotonic_decreasing
    place = {name: k for k, name in enumerate(NAMES)}
    for row in table.itertuples():
        assert row.skeleton == result.probabilities[place[row.a], place[row.b], 1]


def test_stability_is_a_column_when_known(result):
    with_it = Result(NAMES, result.probabilities, stability=np.full((D, D), 0.25))
    assert (with_it.table()["stability"] == 0.25).all()


def test_the_common_child_of_a_collider_is_suspected():
    p = np.tile([0.97, 0.03, 0.0], (5, 5, 1))
    for i, j in [(0, 3), (1, 3)]:  # a → d ← b
        p[i, j] = p[j, i] = [0.05, 0.95, 0.0]
    p[0, 1] = p[1, 0] = [0.2, 0.1, 0.7]
    result = Result(tuple("abcde"), p)
    table = result.table().set_index(["a", "b"])
    assert table.loc[("a", "b"), "via"] == "d"
    assert (table["via"] != "").sum() == 1
    assert "common child: d?" in result.summary()


@each("known", [{"tiers": [["d"], ["a", "b"]]}, {"forbidden": ["a -> d"]}, {"required": ["d -> b"]}])
def test_no_child_is_suspected_that_knowledge_excludes(known):
    p = np.tile([0.97, 0.03, 0.0], (5, 5, 1))
    for i, j in [(0, 3), (1, 3)]:
        p[i, j] = p[j, i] = [0.05, 0.95, 0.0]
    for i, j in [(0, 4), (1, 4)]:
        p[i, j] = p[j, i] = [0.4, 0.6, 0.0]
    p[0, 1] = p[1, 0] = [0.2, 0.1, 0.7]
    result = Result(tuple("abcde"), p, knowledge=Knowledge(**known))
    assert result.table().set_index(["a", "b"]).loc[("a", "b"), "via"] == "e"
    assert result.why("a", "b").child == "e"


def test_two_variables_have_no_common_child():
    p = np.tile([0.2, 0.2, 0.6], (2, 2, 1))
    assert (suspect_children(Result(("a", "b"), p)) == -1).all()
    assert Result(("a", "b"), p).table()["via"].tolist() == [""]


# ── directions ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=SEEDS)
def directed(request):
    """A result with random collider claims: likely ones, unlikely ones, and some that contradict each other."""
    rng = np.random.default_rng([7, request.param])
    p = rng.dirichlet([1, 1, 0.5], size=(D, D))
    claims = [(*rng.choice(D, 3, replace=False), rng.beta(0.5, 0.5)) for _ in range(20)]
    return Result(NAMES, p, colliders=claims)


CUTS = [{}, {"fdr": 0.1}, {"fdr": 0.3}, {"threshold": 0.3}, {"objective": "shd"}]


@each("ask", [
    Result.cpdag, Result.dag, Result.arrows, Result.to_dag, lambda r: r.arrow_probabilities, lambda r: r.sample_dags(3),
])  # fmt: skip
def test_without_colliders_directions_are_refused_in_one_sentence(result, ask):
    with pytest.raises(OrientationMissingError, match=r"nobody was asked for them\. Infer again with weights"):
        ask(result)
    assert issubclass(OrientationMissingError, GraphbamError)


@each("cut", CUTS)
def test_whatever_the_networks_say_it_is_a_cpdag(directed, cut):
    assert is_cpdag(directed.cpdag(**cut).adjacency)


def test_each_cut_does_what_it_says(directed):
    p = directed.probabilities
    assert directed.cpdag() == directed.cpdag(0.5) == directed.graph()
    for cut in ({}, {"threshold": 0.3}, {"fdr": 0.2}):
        assert directed.cpdag(**cut).skeleton() == directed.graph(**cut).skeleton() == directed.skeleton(**cut)
        assert directed.cpdag(**cut).notes == ()
    assert directed.cpdag(Cut(fdr=0.1)) == directed.cpdag(fdr=0.1)
    nearest = directed.cpdag(objective="shd")
    assert nearest == directed.graph(Cut(objective="shd"))
    assert nearest.expected_shd() <= np.triu(p[..., 1], 1).sum() + 1e-9  # that of the empty graph
    assert nearest.expected_shd() == pytest.approx(
        expected_shd(nearest.adjacency, p[..., 1], directed.arrow_probabilities), abs=1e-9
    )


def test_decisions_are_made_once(directed, monkeypatch):
    first = [directed.cpdag(**cut) for cut in CUTS]
    monkeypatch.setattr("graphbam.result.nearest_cpdag", None)
    monkeypatch.setattr("graphbam.result.arrow_probabilities", None)
    monkeypatch.setattr("graphbam.result.Beliefs", None)
    assert all(directed.cpdag(**cut) is graph for cut, graph in zip(CUTS, first, strict=True))
    assert directed.cpdag(0.5) is first[0]


def test_links_that_differ_from_the_cut_are_named():
    p = np.tile([1.0, 0.0, 0.0], (4, 4, 1))
    for (i, j), q in {(0, 1): 0.9, (1, 2): 0.8, (0, 2): 0.7, (2, 3): 0.6}.items():
        p[i, j] = p[j, i] = [1 - q, q, 0]
    around = Knowledge(required=["a -> b"], forbidden=["c -> b", "a -> c"])  # a → b → c, and c → a would close a cycle
    graph = Result(tuple("abcd"), p, colliders=[], knowledge=around).cpdag()
    assert graph.notes == (
        "1 link left out, since prior knowledge leaves them no direction that closes no cycle: a — c (0.70)",
    )
    assert graph.skeleton().undirected_edges() == [("a", "b"), ("b", "c"), ("c", "d")]
    square = np.tile([1.0, 0.0, 0.0], (4, 4, 1))  # needs a collider where none is likely
    for (i, j), q in {(0, 1): 0.55, (1, 2): 0.9, (2, 3): 0.9, (0, 3): 0.9}.items():
        square[i, j] = square[j, i] = [1 - q, q, 0]
    none = [(0, 1, 2, 0.01), (1, 2, 3, 0.01), (0, 3, 2, 0.01), (1, 0, 3, 0.01)]
    result = Result(tuple("abcd"), square, colliders=none)
    (note,) = result.cpdag(objective="shd").notes
    assert note == "1 link left out, since the graph is expected to be nearer to the truth without them: a — b (0.55)"
    assert result.cpdag().notes == ()
    assert note in result.summary(Cut(objective="shd"))
    assert "left out" not in result.summary()


@each(("cut", "says"), [
    ({"fdr": 0.1, "threshold": 0.5}, "both given"),
    ({"threshold": 1.5}, "threshold=1.5"),
    ({"fdr": 0.0}, "fdr=0.0"),
    ({"objective": "best"}, "objective='best' is unknown"),
    ({"objective": "shd", "fdr": 0.1}, "objective='shd' chooses the links itself and does not take fdr"),
])  # fmt: skip
def test_cuts_that_make_no_sense_are_refused(directed, cut, says):
    with pytest.raises(ConfigError, match=says):
        directed.cpdag(**cut)


@each("cut", CUTS)
def test_arrows_are_listed_with_probabilities_that_fit_together(directed, cut):
    graph, table = directed.cpdag(**cut), directed.arrows(**cut)
    assert {(r.a, r.b) for r in table.itertuples() if r.edge == "->"} == set(graph.directed_edges())
    assert {(r.a, r.b) for r in table.itertuples() if r.edge == "--"} == set(graph.undirected_edges())
    assert len(table) == np.triu(graph.skeleton().adjacency).sum()
    place = {name: k for k, name in enumerate(NAMES)}
    for row in table.itertuples():
        i, j = place[row.a], place[row.b]
        assert row.skeleton == directed.probabilities[i, j, 1]
        assert (row.forward, row.backward) == (graph.arrow_probability_dd[i, j], graph.arrow_probability_dd[j, i])
        assert row.forward + row.backward <= 1 + 1e-12
        right = row.forward if row.edge == "->" else 1 - row.forward - row.backward
        assert row.probability == pytest.approx(row.skeleton * right)
    arrows, links = table[table["edge"] == "->"], table[table["edge"] == "--"]
    assert list(table.index[: len(arrows)]) == list(arrows.index)
    assert arrows["probability"].is_monotonic_decreasing
    assert links["skeleton"].is_monotonic_decreasing


def test_the_table_of_pairs_tells_directions_too(directed):
    table, place = directed.table(), {name: k for k, name in enumerate(NAMES)}
    for row in table.itertuples():
        assert row.forward == directed.arrow_probabilities[place[row.a], place[row.b]]
        assert row.backward == directed.arrow_probabilities[place[row.b], place[row.a]]


@each("copy", [
    lambda r: pickle.loads(pickle.dumps(r)),
    lambda r: Result.from_dict(json.loads(json.dumps(r.to_dict()))),
    dataclasses.replace,
], ids=["pickle", "json", "replace"])  # fmt: skip
def test_directions_need_no_network_any_more(directed, copy):
    before = directed.arrows()
    again = copy(directed)
    assert again.colliders.tolist() == directed.colliders.tolist()
    assert_frame_equal(again.arrows(), before)
    graph = pickle.loads(pickle.dumps(directed.cpdag()))
    assert graph == directed.cpdag()
    assert_frame_equal(graph.table(), before)


def test_a_pickle_holds_no_old_decisions(directed):
    size = len(pickle.dumps(directed))
    for cut in CUTS:
        directed.cpdag(**cut)
    assert directed.arrow_probabilities is directed.arrow_probabilities  # remembered
    assert len(pickle.dumps(directed)) == size


@pytest.mark.parametrize("seed", SEEDS)
def test_sampled_dags_belong_to_the_class(directed, seed):
    cpdag = directed.cpdag()
    dags = directed.sample_dags(20, seed)
    assert dags == directed.sample_dags(20, seed) == cpdag.sample_dags(20, seed)
    for dag in [*dags, directed.to_dag(), cpdag.to_dag()]:
        assert dag.is_dag()
        assert dag.to_cpdag() == cpdag


@each("known", [
    {"required": ["a -> b", "c -> b"]},
    {"tiers": [["f", "e"], ["d"], ["a", "b", "c"]]},
    {"forbidden": ["a -> b", "b -> c", "c -> d", "d -- e"]},
    {"tiers": [["a", "b"], ["c", "d"]], "within_tiers": False, "required": ["a -- c"]},
])  # fmt: skip
@each("cut", CUTS)
def test_knowledge_holds_in_the_graph(directed, known, cut):
    knowledge = Knowledge(**known)
    p = knowledge.apply(NAMES, directed.probabilities)
    graph = Result(NAMES, p, knowledge=knowledge, colliders=directed.colliders).cpdag(**cut)
    adjacent = {frozenset(pair) for pair in graph.skeleton().undirected_edges()}
    assert {edge.pair for edge in knowledge.required} <= adjacent
    for a, b in graph.directed_edges():
        assert not knowledge.forbids(a, b)
    for a, b in graph.undirected_edges():
        assert not knowledge.forbids(a, b)
        assert not knowledge.forbids(b, a)
    assert set(knowledge.arrows()) <= set(graph.directed_edges())
    assert graph.to_dag().is_dag()
    place = {name: k for k, name in enumerate(NAMES)}
    for a, b in knowledge.arrows():
        assert graph.arrow_probability_dd[place[a], place[b]] == 1.0


def test_oriented_graphs_go_to_networkx_with_probabilities(directed):
    graph = directed.cpdag(threshold=0.3)
    theirs = graph.to_networkx()
    assert set(theirs.edges) == {*graph.directed_edges(), *graph.undirected_edges()} | {
        (b, a) for a, b in graph.undirected_edges()
    }
    for a, b, data in theirs.edges(data=True):
        i, j = NAMES.index(a), NAMES.index(b)
        arrow = graph.arrow_probability_dd[i, j]
        assert data == {"skeleton": directed.probabilities[i, j, 1], "arrow": arrow, "forced": graph.forced[i, j]}


def test_a_graph_without_links_is_a_directed_one_too(directed):
    assert not directed.cpdag(threshold=1.0).directed_edges()
    assert directed.cpdag(threshold=1.0).to_networkx().is_directed()


@each("n", [-1, 2.0, True])
def test_dags_are_drawn_in_whole_numbers(directed, n):
    with pytest.raises(ConfigError, match="is not a whole number from 0 on"):
        directed.sample_dags(n)


def test_the_summary_points_the_right_way():
    p = np.tile([0.97, 0.03, 0.0], (4, 4, 1))
    for i, j in [(0, 3), (1, 3)]:
        p[i, j] = p[j, i] = [0.05, 0.95, 0.0]
    text = Result(tuple("abcd"), p, colliders=[(0, 3, 1, 0.8)]).summary()
    assert "2 direct links at p ≥ 0.5, 2 with a direction\n" in text
    assert "0.95  a → d  (this way 0.80)" in text
    assert "\n0.1 expected false, 0.1 expected missed\n" in text


@each("p, said", [(0.999, "fewer than 0.1 expected false or missed"), (0.3, "0.9 expected missed")])
def test_what_the_graph_leaves_out_is_told(p, said):
    """Of a table with many pairs in doubt, only the false ones among the links were told of."""
    result = Result(tuple("abc"), np.tile([1 - p, p, 0.0], (3, 3, 1)))
    assert said in result.summary().splitlines()
    assert result.expected_links == pytest.approx(3 * p)


def test_pairs_through_a_common_child_are_those_whose_moral_probability_says_so(directed):
    plain = Result(NAMES, directed.probabilities)
    for one, cut in itertools.product((plain, directed), [{}, {"threshold": 0.2}, {"threshold": 0.9}, {"fdr": 0.3}]):
        linked = {frozenset(pair) for pair in one.graph(**cut).skeleton().undirected_edges()}
        said = {frozenset((row.a, row.b)) for row in one.table().itertuples() if row.moral >= 0.5}
        assert {frozenset(pair) for pair in one.moral_pairs(**cut).undirected_edges()} == said - linked


def test_pairs_that_are_nothing_are_not_said_to_have_a_common_child():
    p = np.tile([0.4, 0.3, 0.3], (4, 4, 1))  # neither a link nor a common child, though one of them is likely
    noise = Result(tuple("abcd"), p)
    assert noise.moral_pairs().undirected_edges() == []
    assert "common child" not in noise.summary()


def test_the_repr_tells_what_to_keep_in_mind(result):
    told = dataclasses.replace(
        result, warnings=("203 rows count as 10", "few\nrows"), provenance={"n_rows": 240, "n_rows_used": 203}
    )
    first, *rest = repr(told).splitlines()
    assert first.startswith("Result(6 variables, 203 of 240 rows; strongest: ")
    assert rest == ["  ! 203 rows count as 10", "  ! few rows"]


def test_summary_tells_what_was_done(result):
    told = Result(NAMES, result.probabilities, changes=("row 3 left out",), warnings=("few rows",), source="t.csv")
    text = told.summary()
    for part in ("t.csv: 6 variables", "row 3 left out", "few rows"):
        assert part in text


@pytest.mark.parametrize("copy", [
    lambda r: Result.from_dict(json.loads(json.dumps(r.to_dict()))),
    lambda r: pickle.loads(pickle.dumps(r)),
], ids=["json", "pickle"])  # fmt: skip
def test_round_trips(result, copy):
    full = Result(
        NAMES, result.probabilities, ("x",), ("y",), {"verdict": None, "features": {"n": np.float64(2)}},
        np.eye(D), Knowledge(["a -- b"]), "t.csv", {"seed": 0},
    )  # fmt: skip
    again = copy(full)
    assert np.allclose(again.probabilities, full.probabilities, atol=1e-15)
    assert again.to_dict() | {"probabilities": 0} == full.to_dict() | {"probabilities": 0}


def test_a_saved_result_comes_back(directed, tmp_path):
    directed.save(tmp_path)
    for place in (tmp_path, tmp_path / "graph.json", str(tmp_path)):
        again = Result.load(place)
        assert np.allclose(again.probabilities, directed.probabilities, atol=1e-6)
        assert again.cpdag() == directed.cpdag()


@each(("change", "says"), [
    ({"version": 2}, "has version 2, and this graphbam reads version 1"),
    ({"version": None}, "has version None"),
    ({"format": "graphbam-graph"}, "holds 'graphbam-graph'"),
    ({"format": None}, "is no result of graphbam"),
    ({"colour": "red"}, "holds 'colour', which is unknown here"),
    ({"sample": []}, "holds 'sample', which is unknown here"),
    ({"classes": ["moral", "none", "skeleton"]}, "orders its classes"),
])  # fmt: skip
def test_a_stored_result_that_is_not_understood_is_refused(change, says, tmp_path):
    result = Result(NAMES, np.tile([0.5, 0.5, 0], (D, D, 1)))
    with pytest.raises(ResultError, match=says):
        Result.from_dict(result.to_dict() | change)
    (tmp_path / "graph.json").write_text(json.dumps(result.to_dict() | change))
    with pytest.raises(ResultError, match=f"graph.json: this.*{says}"):
        Result.load(tmp_path)


@each(("name", "value"), [
    ("names", None), ("names", 3), ("probabilities", "x"), ("probabilities", {}), ("provenance", "x"),
    ("provenance", None), ("directions", [["a"]]), ("colliders", [1, 2]), ("classes", 3), ("knowledge", 3),
])  # fmt: skip
def test_a_damaged_result_is_refused(name, value):
    stored = Result(NAMES, np.tile([0.5, 0.5, 0], (D, D, 1))).to_dict() | {name: value}
    with pytest.raises(GraphbamError, match=r"altered, or|'directions'|shape"):
        Result.from_dict(stored)


def test_what_is_no_stored_result_is_named(result, tmp_path):
    with pytest.raises(ResultError, match="lacks 'names'"):
        Result.from_dict({key: value for key, value in result.to_dict().items() if key != "names"})
    with pytest.raises(ResultError, match=r"graph\.json cannot be read: No such file"):
        Result.load(tmp_path)
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ResultError, match="is not JSON"):
        Result.load(tmp_path / "x.json")
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(ResultError, match="is no result"):
        Result.load(tmp_path / "x.json")


def test_notebooks_show_a_small_card(directed, monkeypatch):
    told = dataclasses.replace(directed, names=("<b>a</b>", *NAMES[1:]), warnings=("few & far",), source="t.csv")
    card = told._repr_html_()
    assert "<b>a</b>" not in card
    for part in ("t.csv", "few &amp; far", "6 variables", 'src="data:image/png;base64,'):
        assert part in card
    assert len(card) < 150_000
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    plain = told._repr_html_()
    assert "<img" not in plain
    assert "mini-racer is not installed" in plain


@each("p", [np.zeros((2, 2, 3)) - 1, np.full((2, 2, 3), np.nan), np.ones((3, 3, 3))])
def test_improper_probabilities_are_refused(p):
    with pytest.raises(GraphError, match="probabilities"):
        Result(("a", "b"), p)


def test_a_failure_is_falsy():
    assert not Failure("t.csv", GraphbamError("is empty"))


# ── real tables ───────────────────────────────────────────────────────────────────────────────────────────

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
NAMES_OF_TABLES = sorted(path.parent.name for path in DATA.glob("*/data.csv.gz"))
QUICK = ("river_ribble", "auto_mpg", "gcastle_lin6", "lingam_6vars", "netsim_15", "csuite_lin_gauss", "discrete_asia")


def check_decisions(result):
    """What a user may rely on, whatever the table."""
    p, arrow_dd = result.probabilities, result.compelled_probabilities
    targets = [result.cpdag(fdr=fdr) for fdr in (0.01, 0.05, 0.1, 0.2)]
    for strict, loose in itertools.pairwise(targets):
        assert (strict.skeleton().adjacency <= loose.skeleton().adjacency).all()
    for graph, cut in [*zip(targets, ({"fdr": f} for f in (0.01, 0.05, 0.1, 0.2)), strict=True), (result.cpdag(), {})]:
        assert graph.skeleton() == result.skeleton(**cut)
        likeliest = np.maximum(arrow_dd.T, 1 - arrow_dd - arrow_dd.T) <= arrow_dd + 1e-8
        arrows = (graph.adjacency > graph.adjacency.T) & ~graph.forced
        assert likeliest[arrows].all()
        assert is_cpdag(graph.adjacency)
    married = result.moral_pairs().adjacency > 0
    assert (p[married][:, 2] >= 0.5).all()
    assert (p[married].argmax(axis=-1) == 2).all()


def test_arrows_less_likely_than_their_reverse_are_marked():
    """A network that says a → b → c → d → a with certainty is contradicted somewhere by any graph."""
    ring = np.roll(np.eye(4), 1, axis=1)
    p = np.where((ring + ring.T > 0)[..., None], [0.05, 0.95, 0.0], [0.98, 0.02, 0.0])
    says = 0.9 * ring + 0.05 * ring.T
    circle = Result(tuple("abcd"), p, directions=ring + 0.5 * (ring + ring.T == 0), compelled=says)
    graph = circle.cpdag()
    arrows = graph.adjacency > graph.adjacency.T
    against = arrows & (graph.arrow_probability_dd < graph.arrow_probability_dd.T)
    assert against.any()
    assert graph.forced[against].all()
    assert (arrows & ~graph.forced).any()
    marked = graph.table().query("forced")
    assert set(marked["edge"]) == {"->"}
    assert len(marked) == graph.forced.sum() < arrows.sum()
    check_decisions(circle)


def test_an_arrow_is_drawn_where_it_is_far_likelier_than_none():
    p = np.full((3, 3, 3), [0.02, 0.98, 0.0])
    p[0, 1] = p[1, 0] = [0.02, 0.0, 0.98]
    for sure, drawn in ((0.7, 0), (0.8, 2)):
        says = np.zeros((3, 3))
        says[0, 2] = says[1, 2] = sure
        result = Result(tuple("abc"), p, directions=np.where(says > 0, 0.9, 0.1), compelled=says)
        assert (result.cpdag().adjacency > result.cpdag().adjacency.T).sum() == drawn


def test_decisions_on_patients():
    check_decisions(gb.infer(pytest.importorskip("sklearn.datasets").load_diabetes(as_frame=True).frame))


@pytest.mark.skipif(not NAMES_OF_TABLES, reason=f"third-party tables are not at {DATA}")
@each("name", QUICK)
def test_decisions_on_third_party_tables(name):
    check_decisions(gb.infer(pd.read_csv(DATA / name / "data.csv.gz").iloc[:150]))


@pytest.mark.long
@pytest.mark.skipif(not NAMES_OF_TABLES, reason=f"third-party tables are not at {DATA}")
@pytest.mark.parametrize("name", NAMES_OF_TABLES)
def test_decisions_on_every_third_party_table(name):
    table = pd.read_csv(DATA / name / "data.csv.gz").iloc[:150, :60]
    check_decisions(gb.infer(table))


def test_pairs_of_common_children_come_surest_first_and_none_is_left_out_in_silence():
    p = np.zeros((6, 6, 3))
    p[..., 0] = 1.0
    for k in range(1, 6):
        p[0, k] = p[k, 0] = [0.4 - k / 20, 0.0, 0.6 + k / 20]
    text = Result(tuple("abcdef"), p).summary(n_edges=3)
    told = [line.split()[0] for line in text.splitlines() if "··" in line]
    assert told == ["0.85", "0.80", "0.75"]
    assert "… and 2 more such pairs" in text


def test_names_with_line_breaks_stay_on_their_line():
    result = make_result({("a\nb", "c"): 0.9}, names=("a\nb", "c", "d"), moral={("a\nb", "d"): 0.8})
    lines = result.summary().splitlines()
    assert "  0.90  a b — c" in lines
    assert any(line.startswith("  0.80  a b ·· d") for line in lines)


def test_answers_in_words_keep_names_with_line_breaks_on_their_line():
    rng = np.random.default_rng(0)
    names = ("dose\r\n[mg]", "cure\n(days)", "age", "old\u2028name")
    p = np.full((4, 4, 3), [0.1, 0.8, 0.1])
    ways = np.triu(np.full((4, 4), 0.9), 1) + np.tril(np.full((4, 4), 0.1), -1)
    told = {"hidden_causes": p[..., 1], "sample": rng.normal(size=(50, 4))}
    result = Result(names, p, directions=ways, compelled=ways * 0.9, **told)
    a, b = names[:2]
    other = Result(names, np.full((4, 4, 3), [0.8, 0.1, 0.1]))
    said = [result.why(a, b), result.markov_blanket(a), result.roles(a, b), result.compare(other)]
    said += [repr(result), repr(result.graph()), result.summary()]
    for text in map(str, said):
        assert not any("[mg]" in line and "dose" not in line for line in text.splitlines()), text
        assert not any(line.startswith(("(days)", "name")) for line in text.splitlines()), text
        assert "dose [mg]" in text


@each("n", [-1, 1.5, True, "3"])
def test_a_summary_lists_a_number_of_links(n):
    with pytest.raises(ConfigError, match="is not a whole number from 0 on"):
        make_result({("a", "b"): 0.9}).summary(n_edges=n)
