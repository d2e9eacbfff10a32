"""A list of pairs says what a matrix says: the same graphs, parts, files and words."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re

import networkx as nx
import numpy as np
import pytest

import graphbam as gb
from cases import SEEDS
from graphbam import sparse
from graphbam.directions.arrows import Known, settle_paths
from graphbam.errors import ConfigError, GraphError, KnowledgeError, OrientationMissingError, ResultError
from graphbam.graphs.equivalence import close_under_meek, consistent_extension, is_cpdag
from graphbam.graphs.graph import MORAL, SKELETON, reachable
from graphbam.sparse import ARRAYS

N = 24
NAMES = tuple(f"gene {k}" for k in range(N))


def beliefs(seed, *, n=N, density=0.3, knowledge=None, experiments=False):
    """The same random beliefs as a matrix and as a list."""
    rng, names = np.random.default_rng(seed), NAMES[:n]
    i, j = np.triu_indices(n, 1)
    listed = rng.random(len(i)) < density
    i, j = i[listed], j[listed]
    p = rng.dirichlet([2, 1, 1], size=len(i))
    way = rng.random(len(i))
    compelled = rng.dirichlet([1, 1, 1], size=len(i))[:, :2]
    told = {"directions": way, "compelled": compelled, "hidden_causes": rng.random(len(i))}
    told["ancestors"] = rng.random((len(i), 2))
    told |= {"experiments": rng.random(len(i)) < 0.3} if experiments else {}
    rest = {"skeleton": 0.01, "moral": 0.02, "hidden": 0.03, "ancestor": 0.04}
    few = gb.SparseResult(names, np.stack([i, j], axis=1), p, rest, **told).with_knowledge(knowledge)
    p_dd3 = np.full((n, n, 3), [0.97, 0.01, 0.02])
    p_dd3[i, j] = p_dd3[j, i] = p
    nothing = {"directions": 0.5, "compelled": 0.0, "ancestors": 0.04, "experiments": False}
    matrices = {name: np.full((n, n), nothing[name]) for name in nothing if name in told}
    matrices["directions"][i, j], matrices["directions"][j, i] = way, 1 - way
    for name in ("compelled", "ancestors"):
        matrices[name][i, j], matrices[name][j, i] = told[name].T
    if experiments:
        matrices["experiments"][i, j] = matrices["experiments"][j, i] = told["experiments"]
    told_dd = gb.Result(names, p_dd3, **matrices).ancestors
    p_dd3 = p_dd3 if knowledge is None else knowledge.apply(names, p_dd3)
    return few, gb.Result(names, p_dd3, knowledge=knowledge, **matrices), told_dd


def random_knowledge(rng, n):
    """Required and forbidden arrows, some of which close cycles, tiers in half of the cases, and odds."""
    order = rng.permutation(n)
    place = {NAMES[k]: rank for rank, k in enumerate(order.tolist())}
    pairs = [(a, b) for a in NAMES[:n] for b in NAMES[:n] if place[a] < place[b]]
    fate = rng.choice(5, size=len(pairs), p=[0.45, 0.05, 0.25, 0.2, 0.05])
    kinds = [[pair for pair, one in zip(pairs, fate, strict=True) if one == kind] for kind in range(5)]
    in_order = [[NAMES[k] for k in some] for some in np.array_split(order, 2)]
    forbidden = [(b, "->", a) for a, b in kinds[2]]
    tiered = rng.random() < 0.5
    forbidden += [] if tiered else [(a, "->", b) for a, b in kinds[3]]
    return gb.Knowledge(
        required=[(a, "->", b) for a, b in kinds[1]],
        forbidden=forbidden,
        tiers=in_order if tiered else None,
        prior_odds=[(a, b, 3.0) for a, b in kinds[4]],
    )


@pytest.fixture(params=SEEDS)
def both(request):
    return beliefs(request.param)[:2]


def test_a_list_expects_as_many_links_as_a_matrix(both):
    few, full = both
    assert few.expected_links == pytest.approx(full.expected_links)
    assert few.summary().splitlines()[2] == full.summary().splitlines()[2]


def edges_of(graph):
    return {(a, "->", b) for a, b in graph.directed_edges()} | {
        (*sorted((a, b)), "--") for a, b in graph.undirected_edges()
    }


@pytest.mark.parametrize("cut", [{}, {"threshold": 0.3}, {"fdr": 0.4}])
def test_graphs_are_those_of_the_matrix(both, cut):
    few, whole = both
    for name in ("skeleton", "moral_graph", "moral_pairs", "cpdag", "dag", "graph"):
        assert edges_of(getattr(few, name)(**cut)) == edges_of(getattr(whole, name)(**cut)), name


def test_edges_have_the_numbers_of_the_matrix(both):
    few, whole = both
    for kind in ("cpdag", "dag"):
        ours, theirs = (getattr(one, kind)().table() for one in (few, whole))
        rows = [table.set_index(["a", "edge", "b"]).sort_index() for table in (ours, theirs)]
        turned = [(b, mark, a) for a, mark, b in rows[1].index]
        arrows = [k for k, (_, mark, _) in enumerate(turned) if mark == "->"]
        for column in ("probability", "skeleton", "forward", "backward", "forced"):
            assert np.allclose(
                rows[0].loc[rows[1].index[arrows], column].astype(float), rows[1][column].iloc[arrows].astype(float)
            ), column


def test_large_parts_are_directed_without_a_matrix(both, monkeypatch):
    few, _ = both
    monkeypatch.setattr(sparse, "SMALL_PART", 2)
    graph = few.cpdag()
    assert is_cpdag(graph.part(NAMES).adjacency)
    assert "without trying" in graph.notes[0]
    assert few.dag().is_dag()
    assert {link.guessed for link in few.cpdag().links()} == {None}
    assert sorted(link.guessed for link in few.dag().links()) == sorted(few.dag().table()["guessed"])
    assert not few.skeleton().is_dag()


def test_a_part_has_what_the_matrix_has(both):
    few, whole = both
    part, places = few.part(NAMES[3:9]), slice(3, 9)
    assert np.allclose(part.probabilities, whole.probabilities[places, places])
    assert np.allclose(part.arrow_probabilities, whole.arrow_probabilities[places, places])
    assert part.hidden_causes is not None
    around = few.around("gene 4", most=7)
    assert around.names[0] == "gene 4"
    assert around.n_variables == 7
    linked = whole.probabilities[4, :, SKELETON].argsort()[::-1][:6]
    assert {NAMES[k] for k in linked} == set(around.names[1:])
    with pytest.raises(ResultError, match="no variable 'gene4'; did you mean 'gene 4'"):
        few.around("gene4")


def test_knowledge_has_the_last_word():
    knowledge = gb.Knowledge(required=["gene 0 -> gene 23", "gene 1 -- gene 2"], forbidden=["gene 3 -- gene 4"])
    few, *_ = beliefs(0, knowledge=knowledge)
    p = {(int(i), int(j)): row for (i, j), row in zip(few.pairs, few.probabilities, strict=True)}
    assert p[0, 23][SKELETON] == p[1, 2][SKELETON] == 1.0
    assert (3, 4) not in p or p[3, 4][SKELETON] == 0.0
    assert ("gene 0", "gene 23") in few.cpdag().directed_edges()
    assert ("gene 0", "gene 23") in few.dag().directed_edges()


def test_what_is_known_is_stable():
    p = np.array([[0.1, 0.9, 0.0], [0.9, 0.1, 0.0], [0.5, 0.5, 0.0]])
    pairs, found = np.array([[0, 1], [0, 2], [1, 2]]), np.array([1.0, 0.2, 0.6])
    told = gb.Knowledge(forbidden=["a -- b"], required=["c -> a", "c -- d"])
    few = gb.SparseResult(tuple("abcd"), pairs, p, {"skeleton": 0.01}, stability=found).with_knowledge(told)
    assert few.pairs.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert few.stability.tolist() == [0.0, 1.0, 0.6, 1.0]
    assert dataclasses.replace(few).stability.tolist() == few.stability.tolist()


def knowing(seeds, sizes=(5, 9, 14)):
    """Random beliefs and random knowledge, as a list and as a matrix."""
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 1])
        n = sizes[seed % len(sizes)]
        knowledge = random_knowledge(rng, n)
        density = rng.choice([0.4, 1.0])
        few, whole, told = beliefs(seed, n=n, density=density, knowledge=knowledge, experiments=seed % 2 == 0)
        yield few, whole, knowledge, told


def paths_under(knowledge, whole, told_dd):
    """What knowledge makes of paths, by the matrix; of likely arrows, those between the two themselves count."""
    names = whole.names
    known = Known(whole._forbidden(), knowledge.after_matrix(names), knowledge.arrow_matrix(names))
    stated_dd = np.array([[knowledge._is_stated(a, b) for b in names] for a in names]) | known.arrow_dd.T
    open_dd = reachable(~stated_dd & ~np.eye(len(names), dtype=bool)) & ~known.after_dd
    return settle_paths(told_dd * open_dd, whole._likely_arrows(known), known.follows)


def test_knowledge_and_experiments_do_what_they_do_to_the_matrix():
    n_left_out = n_whole = 0
    for few, whole, knowledge, told in knowing(9):
        i, j = few.pairs.T
        assert np.allclose(few.probabilities, whole.probabilities[i, j])
        names = {"compelled_probabilities": whole.compelled_probabilities}
        if len(i) == few.n_variables * (few.n_variables - 1) // 2:  # else there are paths by pairs that are not listed
            names["ancestors"] = paths_under(knowledge, whole, told)
            assert np.allclose(few.directions, whole.directions[i, j])
            n_whole += 1
        for name, theirs in names.items():
            assert np.allclose(getattr(few, name), np.stack([theirs[i, j], theirs[j, i]], axis=1)), name
        for threshold in (0.15, 0.4):
            assert edges_of(few.cpdag(threshold)) == edges_of(whole.cpdag(threshold))
            assert edges_of(few.dag(threshold)) == edges_of(whole.dag(threshold))
            assert few.cpdag(threshold).notes == whole.cpdag(threshold).notes
            n_left_out += len(few.cpdag(threshold).notes)
    assert n_left_out
    assert n_whole


def test_large_parts_heed_knowledge_too(monkeypatch):
    monkeypatch.setattr(sparse, "SMALL_PART", 2)
    monkeypatch.setattr("graphbam.directions.large.MOST_ORDERED", 2)
    for few, whole, knowledge, _ in knowing(12):
        graph, dag = few.cpdag(0.15), few.dag(0.15)
        adjacency = graph.part(few.names).adjacency
        consistent_extension(adjacency)  # raises where no DAG has these arrows
        assert np.array_equal(close_under_meek(adjacency), adjacency)
        assert dag.is_dag()
        assert edges_of(graph.skeleton()) == edges_of(dag.skeleton()) == edges_of(whole.cpdag(0.15).skeleton())
        open_ends = [(a, b) for pair in graph.undirected_edges() for a, b in (pair, pair[::-1])]
        for a, b in (*graph.directed_edges(), *open_ends, *dag.directed_edges()):
            assert not knowledge.forbids(a, b), (a, b)
        assert set(knowledge.arrows()) <= set(graph.directed_edges()) <= set(dag.directed_edges())


@pytest.mark.parametrize("step", [1, -1])
def test_what_known_directions_imply_holds_in_parts_of_any_size(step):
    """A chain of 300 variables without colliders: its first arrow directs all."""
    names = tuple(f"v{k}" for k in range(300))[::step]
    i, j = np.arange(299), np.arange(1, 300)
    p = np.full((299, 3), [0.01, 0.99, 0.0])
    told = {"directions": np.full(299, 0.5), "compelled": np.full((299, 2), 0.01)}
    chain = gb.SparseResult(names, np.stack([i, j], axis=1), p, {"skeleton": 0.001, "moral": 0.0}, **told)
    known = chain.with_knowledge(gb.Knowledge(required=["v0 -> v1"]))
    assert (known.compelled[:, 0 if step == 1 else 1] > 0.98).all()
    assert known.part(["v297", "v298", "v299"]).compelled_probabilities[1, 2] > 0.98
    assert abs(known.directions - (step == 1)).max() < 0.02
    assert known.part(["v298", "v299"]).dag().directed_edges() == [("v298", "v299")]
    table = known.cpdag().table()
    assert not table["forced"].any()
    assert (table["forward"] > 0.98).all()


def test_what_an_experiment_implies_holds_in_parts_without_it():
    """A chain of 300 variables without colliders, of which the first was set: that directs all, wherever one looks."""
    names, i = tuple(f"v{k}" for k in range(300)), np.arange(299)
    told = {"directions": np.where(i == 0, 0.99, 0.5), "compelled": np.full((299, 2), 0.01), "experiments": i == 0}
    p, paths = np.full((299, 3), [0.01, 0.99, 0.0]), np.full((299, 2), 0.3)
    chain = gb.SparseResult(names, np.stack([i, i + 1], axis=1), p, {"skeleton": 0.001}, ancestors=paths, **told)
    part, last = chain.part(names[-2:]), chain.table().iloc[-1]
    assert last["forward"] > 0.98
    assert part.arrow_probabilities[0, 1] == pytest.approx(last["forward"])
    assert part.compelled_probabilities[0, 1] == pytest.approx(last["forward"])
    assert part.ancestors[0, 1] == pytest.approx(last["upstream"])
    assert not part.dag().guessed.any()


def test_a_graph_without_links_is_a_dag():
    few, *_ = beliefs(0)
    assert few.dag(1.0).n_edges == 0
    assert few.dag(1.0).is_dag()


def test_a_part_knows_what_was_known_of_it():
    knowledge = gb.Knowledge(
        required=["gene 0 -> gene 1"], forbidden=["gene 3 -> gene 2"], tiers=[["gene 1"], ["gene 4", "gene 9"]]
    )
    few, whole, told = beliefs(0, knowledge=knowledge, experiments=True)
    part = few.part(NAMES[:5])
    assert part.knowledge.to_dict() == knowledge.to_dict() | {"tiers": [["gene 1"], ["gene 4"]]}
    assert ("gene 0", "gene 1") in part.cpdag().directed_edges()
    assert np.array_equal(part.experiments, whole.experiments[:5, :5])
    assert np.allclose(part.ancestors[3, 2], paths_under(knowledge, whole, told)[3, 2])  # through others
    assert part.ancestors[3, 2] > 0
    assert few.part(NAMES[5:9]).knowledge is None


def test_a_part_keeps_its_answers_through_files_and_memory(tmp_path):
    for few, whole, *_ in knowing(9):
        part = few.part(few.names[:4])
        part.save(tmp_path)
        plain = json.loads((tmp_path / "graph.json").read_text())
        copies = (gb.Result.load(tmp_path), gb.Result.from_dict(part.to_dict()), pickle.loads(pickle.dumps(part)))
        for again in (*copies, dataclasses.replace(part, source="elsewhere")):
            for name in ("probabilities", "directions", "compelled", "ancestors"):
                assert np.allclose(getattr(again, name), getattr(part, name), rtol=0, atol=1e-14), name
        older = gb.Result.from_dict({key: value for key, value in plain.items() if key != "is_part"})
        assert np.allclose(older.directions, part.directions)
        assert not whole.is_part
        assert not older.is_part


def test_odds_count_once():
    knowledge = gb.Knowledge(prior_odds=[("gene 0", "gene 1", 3.0)], required=["gene 2 -- gene 3"])
    few, *_ = beliefs(0, knowledge=knowledge)
    assert np.array_equal(dataclasses.replace(few).probabilities, few.probabilities)
    with pytest.raises(ResultError, match="has prior knowledge in it already"):
        few.with_knowledge(knowledge)
    with pytest.raises(KnowledgeError, match="'gene 00', which the table does not have"):
        beliefs(0, knowledge=gb.Knowledge(prior_odds=[("gene 00", "gene 1", 3.0)]))
    with pytest.raises(GraphError, match="experiments must say yes or no of each"):
        dataclasses.replace(few, experiments=[True])


def test_words_and_pairs_tell_what_was_not_seen(both):
    few, whole = both
    assert "any other pair is a link with probability 1.0e-02" in repr(few)
    table = few.table()
    assert len(table) == len(few.pairs)
    assert table["skeleton"].is_monotonic_decreasing
    assert set(table.columns) >= {"a", "b", "skeleton", "moral", "none", "forward", "open", "hidden", "upstream", "via"}
    assert len(few.summary().splitlines()) > 3
    assert "hidden common cause" in few.summary()
    via = whole.table().set_index(["a", "b"])["via"]
    named = table[(table["via"] != "") & (table["moral"] > 0.2)]
    assert len(named) > 3
    assert all(via[a, b] != "" for a, b in zip(named["a"], named["b"], strict=True))


def test_what_is_saved_comes_back(both, tmp_path):
    few, _ = both
    files = {path.name for path in few.save(tmp_path / "out")}
    again = gb.SparseResult.load(tmp_path / "out")
    assert files == {
        "edges.csv", "arrows.csv", "dag.csv", "graph.graphml", "graph.dot", "report.html", "result.json", "pairs.npz",
    }  # fmt: skip
    assert np.array_equal(again.pairs, few.pairs)
    assert np.allclose(again.probabilities, few.probabilities)
    assert edges_of(again.cpdag()) == edges_of(few.cpdag())
    assert repr(again) == repr(few)
    graph = nx.read_graphml(tmp_path / "out" / "graph.graphml")
    assert set(graph.nodes) == set(NAMES)
    assert graph.number_of_edges() >= few.cpdag().n_edges
    with pytest.raises(ResultError, match="holds no sparse result"):
        gb.SparseResult.load(tmp_path)
    with pytest.raises(ResultError, match=r"the answer for a wide table. Read it with gb.SparseResult.load"):
        gb.Result.load(tmp_path / "out")


def test_a_damaged_answer_is_refused(both, tmp_path):
    few, _ = both
    few.save(tmp_path)
    pairs, about = tmp_path / "pairs.npz", tmp_path / "result.json"
    whole, values = pairs.read_bytes(), json.loads(about.read_text())
    for content in (whole[:1000], b""):  # a copy that was broken off
        pairs.write_bytes(content)
        with pytest.raises(ResultError, match="holds no sparse result"):
            gb.SparseResult.load(tmp_path)
    pairs.write_bytes(whole)
    fewer = {name: value for name, value in values.items() if name != "changes"}
    for odd in ([1], fewer, values | {"x": 1}, values | {"knowledge": 3}):
        about.write_text(json.dumps(odd))
        with pytest.raises(ResultError, match="It was altered, or is damaged"):
            gb.SparseResult.load(tmp_path)
    about.write_text(json.dumps(values | {"names": ["a"]}))
    with pytest.raises(GraphError, match="beyond the 1 that there are"):
        gb.SparseResult.load(tmp_path)


def test_questions_that_need_a_matrix_are_sent_to_a_part(both):
    few, _ = both
    for name in ("why", "markov_blanket", "effects", "roles", "compare", "score", "arrow_probabilities"):
        assert not hasattr(few, name)
        with pytest.raises(AttributeError, match=rf"Ask a part of it: result.around\('gene 0'\).{name}"):
            getattr(few, name)
        assert hasattr(few.around("gene 0"), name)
    with pytest.raises(AttributeError, match="'SparseResult' object has no attribute 'whence'"):
        few.whence  # noqa: B018


def test_sparse_and_plain_results_take_each_others_place(both, tmp_path):
    few, whole = both
    (tmp_path / "mine.txt").write_text("stays")
    for result in (whole, few, whole):
        files = {path.name for path in result.save(tmp_path)}
        assert {path.name for path in tmp_path.iterdir()} == files | {"mine.txt"}


def test_what_is_known_comes_back_too(tmp_path):
    for k, (few, *_) in enumerate(knowing(2)):
        few.save(tmp_path / str(k))
        again = gb.SparseResult.load(tmp_path / str(k))
        assert again.knowledge == few.knowledge
        for name in ARRAYS:
            assert np.array_equal(getattr(again, name), getattr(few, name)), name
        assert edges_of(again.cpdag()) == edges_of(few.cpdag())
        assert edges_of(again.dag()) == edges_of(few.dag())


def test_the_page_holds_every_link_of_the_cut(both, tmp_path):
    few, _ = both
    path = few.report(tmp_path / "page.html", threshold=0.4)
    model = json.loads(re.search(r'id="model">(.*?)</script>', path.read_text(), re.DOTALL)[1])
    shown = {(i, j) for i, j, c in zip(*(model["links"][k] for k in ("i", "j", "chosen")), strict=True) if c}
    graph = few.cpdag(0.4)
    pairs = zip(graph.tails.tolist(), graph.heads.tolist(), strict=True)
    assert shown == {(min(a, b), max(a, b)) for a, b in pairs}
    assert few.report(tmp_path / "part.html", around="gene 4").stat().st_size > 50_000


def test_the_page_takes_any_name_of_a_file(both, tmp_path):
    few = dataclasses.replace(both[0], source="{{model}} <b>\udc80.csv")
    page = few.report(tmp_path / "page.html").read_text()
    assert "<h1>{{model}} &lt;b&gt;&#56448;.csv</h1>" in page
    assert page.count('"names"') == 1


def test_a_folder_is_as_it_was_if_a_file_cannot_be_written(both, tmp_path, monkeypatch):
    few, _ = both
    files = few.save(tmp_path, 0.4)
    before = {path: path.read_bytes() for path in files}
    monkeypatch.setattr("numpy.savez", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ConfigError, match="cannot be written: No space left"):
        few.save(tmp_path, 0.6)
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


def test_one_format_alone_and_what_needs_a_matrix(both, tmp_path):
    few, _ = both
    assert gb.export(few, tmp_path / "pairs.csv").read_text().count("\n") == len(few.pairs) + 1
    assert gb.export(few.dag(), tmp_path / "dag.graphml").exists()
    for refused in ({"path": tmp_path / "x.json"}, {"path": tmp_path / "x.csv", "layout": "adjacency"}):
        with pytest.raises(ConfigError, match="no matrix, JSON or BIF"):
            gb.export(few, **refused)
    with pytest.raises(GraphError, match="leave objective out"):
        few.cpdag(objective="shd")
    with pytest.raises(OrientationMissingError):
        gb.SparseResult(NAMES, few.pairs, few.probabilities).cpdag()
    assert few.moral_pairs().undirected_edges() == [
        (NAMES[i], NAMES[j])
        for (i, j), p in zip(few.pairs.tolist(), few.probabilities, strict=True)
        if p[MORAL] >= 0.5 and p[SKELETON] < 0.5
    ]


def test_files_of_others_are_not_written_over(both, tmp_path):
    few, _ = both
    (tmp_path / "edges.csv").write_text("mine")
    with pytest.raises(ConfigError, match=r"edges\.csv is there already"):
        few.save(tmp_path)
    assert (tmp_path / "edges.csv").read_text() == "mine"
    few.save(tmp_path / "out")
    few.save(tmp_path / "out")


def test_columns_called_by_numbers_are_found_by_them():
    few = gb.SparseResult(("0", "1", "2"), [[0, 1]], [[0.1, 0.9, 0.0]], {"skeleton": 0.01})
    assert few.part([0, 1]).names == ("0", "1")
    with pytest.raises(gb.GraphbamError, match="no variable '7'"):
        few.part([7])
