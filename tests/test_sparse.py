"""A list of pairs says what a matrix says: the same graphs, parts, files and words."""

from __future__ import annotations

import json
import re

import networkx as nx
import numpy as np
import pytest

import graphbam as gb
from cases import SEEDS
from graphbam import sparse
from graphbam.errors import ConfigError, GraphError, OrientationMissingError, ResultError
from graphbam.graphs.equivalence import is_cpdag
from graphbam.graphs.graph import MORAL, SKELETON

N = 24
NAMES = tuple(f"gene {k}" for k in range(N))


def beliefs(seed, **settings):
    """The same random beliefs as a matrix and as a list."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(N, 1)
    listed = rng.random(len(i)) < 0.3
    i, j = i[listed], j[listed]
    p = rng.dirichlet([2, 1, 1], size=len(i))
    way = rng.random(len(i))
    compelled = rng.dirichlet([1, 1, 1], size=len(i))[:, :2]
    told = {"directions": way, "compelled": compelled, "hidden_causes": rng.random(len(i))}
    told["ancestors"] = rng.random((len(i), 2))
    rest = {"skeleton": 0.01, "moral": 0.02, "hidden": 0.03, "ancestor": 0.04}
    few = gb.SparseResult(NAMES, np.stack([i, j], axis=1), p, rest, **told, **settings)
    p_dd3 = np.full((N, N, 3), [0.97, 0.01, 0.02])
    p_dd3[i, j] = p_dd3[j, i] = p
    matrices = {name: np.full((N, N), value) for name, value in (("directions", 0.5), ("compelled", 0.0))}
    matrices["directions"][i, j], matrices["directions"][j, i] = way, 1 - way
    matrices["compelled"][i, j], matrices["compelled"][j, i] = compelled.T
    return few, gb.Result(NAMES, p_dd3, **matrices, **settings)


@pytest.fixture(params=SEEDS)
def both(request):
    return beliefs(request.param)


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
    few, _ = beliefs(0, knowledge=knowledge)
    p = {(int(i), int(j)): row for (i, j), row in zip(few.pairs, few.probabilities, strict=True)}
    assert p[0, 23][SKELETON] == p[1, 2][SKELETON] == 1.0
    assert (3, 4) not in p or p[3, 4][SKELETON] == 0.0
    assert ("gene 0", "gene 23") in few.cpdag().directed_edges()
    assert ("gene 0", "gene 23") in few.dag().directed_edges()


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


def test_the_page_holds_every_link_of_the_cut(both, tmp_path):
    few, _ = both
    path = few.report(tmp_path / "page.html", threshold=0.4)
    model = json.loads(re.search(r'id="model">(.*?)</script>', path.read_text(), re.DOTALL)[1])
    shown = {(i, j) for i, j, c in zip(*(model["links"][k] for k in ("i", "j", "chosen")), strict=True) if c}
    graph = few.cpdag(0.4)
    pairs = zip(graph.tails.tolist(), graph.heads.tolist(), strict=True)
    assert shown == {(min(a, b), max(a, b)) for a, b in pairs}
    assert few.report(tmp_path / "part.html", around="gene 4").stat().st_size > 50_000


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
