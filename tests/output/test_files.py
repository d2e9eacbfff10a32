"""Writers: every name survives every format, and files appear all at once."""

from __future__ import annotations

import csv
import io
import json
import os
import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from cases import SEEDS, each
from graphbam.errors import ConfigError, GraphError
from graphbam.graphs.cut import Cut
from graphbam.graphs.graph import Graph
from graphbam.output.files import (
    OUTPUTS,
    list_links,
    save_outputs,
    to_adjacency_csv,
    to_bif,
    to_causallearn,
    to_csv,
    to_dot,
    to_dowhy,
    to_graphml,
    to_json,
    to_mermaid,
    to_pgmpy,
)
from graphbam.result import OrientedGraph, Result

ODD = ['say "x"', "line\nbreak", "comma, semi; tab\t", "Größe 表 🙂", "<b>&amp;", "back\\slash\\"]
MIXED = np.zeros((6, 6), dtype=int)
MIXED[[0, 1, 1, 2, 4], [1, 2, 3, 1, 5]] = 1  # 0 → 1, 1 — 2, 1 → 3, 4 → 5


@pytest.fixture(params=["directed", "undirected", "empty"])
def graph(request):
    adjacency = {"directed": MIXED, "undirected": MIXED | MIXED.T, "empty": 0 * MIXED}[request.param]
    return Graph(ODD, adjacency)


@pytest.fixture
def result():
    p = np.random.default_rng(0).dirichlet([1, 1, 1], size=(6, 6))
    return Result(tuple(ODD), p, stability=np.full((6, 6), 0.5))


@pytest.fixture(params=SEEDS)
def directed(request):
    """A result with directions: some arrows, some links left open."""
    rng = np.random.default_rng(request.param)
    p = rng.dirichlet([1, 2, 0.5], size=(6, 6))
    claims = [(*rng.choice(6, 3, replace=False), rng.uniform(0.4, 1)) for _ in range(12)]
    return Result(tuple(ODD), p, stability=np.full((6, 6), 0.5), colliders=claims)


UNSURE = OrientedGraph(
    ["a", "b", "c"], [[0, 1, 1], [0, 0, 0], [0, 0, 0]], np.full((3, 3), 0.9), [[0, 0.3, 0.4], [0.35, 0, 0], [0.2, 0, 0]]
)
"""a → b at 0.30, where b → a and an open link have 0.35 each; a → c at 0.40, where they have 0.20 and 0.40."""


def test_forced_arrows_are_marked_in_every_format(tmp_path):
    assert UNSURE.table()["forced"].tolist() == [False, True]
    assert {edge["b"]: edge["forced"] for edge in json.loads(to_json(UNSURE))["edges"]} == {"b": True, "c": False}
    graphml = nx.read_graphml(gb.export(UNSURE, tmp_path / "g.graphml"))
    assert {b: data["forced"] for _, b, data in graphml.edges(data=True)} == {"b": True, "c": False}
    assert {b: data["forced"] for _, b, data in UNSURE.to_networkx().edges(data=True)} == {"b": True, "c": False}
    assert [line.count("arrowhead=onormal") for line in to_dot(UNSURE).splitlines() if "->" in line] == [1, 0]
    assert "a,edge,b,probability,skeleton,forward,backward,forced" in to_csv(UNSURE)


def test_guesses_of_a_dag_are_marked_in_every_format(tmp_path):
    said = [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    dag = OrientedGraph(UNSURE.names, UNSURE.adjacency, np.full((3, 3), 0.9), np.full((3, 3), 0.9), decided_dd=said)
    marks = {"b": False, "c": True}
    assert {edge["b"]: edge["guessed"] for edge in json.loads(to_json(dag))["edges"]} == marks
    graphml = nx.read_graphml(gb.export(dag, tmp_path / "g.graphml"))
    assert {b: data["guessed"] for _, b, data in graphml.edges(data=True)} == marks
    assert {b: data["guessed"] for _, b, data in dag.to_networkx().edges(data=True)} == marks
    assert [line.count("arrowhead=vee") for line in to_dot(dag).splitlines() if "->" in line] == [0, 1]
    assert [line.count("-.->") for line in to_mermaid(dag).splitlines() if "->" in line] == [0, 1]
    assert "guessed" not in to_graphml(UNSURE)


def test_an_arrow_less_likely_than_another_direction_is_forced():
    assert {link.b: link.is_forced for link in list_links(UNSURE)} == {"b": True, "c": False}
    assert not any(link.is_forced for link in list_links(Graph(UNSURE.names, UNSURE.adjacency)))


def edges_of(graph):
    directed = {(a, "->", b) for a, b in graph.directed_edges()}
    return directed | {(a, "--", b) for a, b in graph.undirected_edges()}


def test_edge_list_survives(graph):
    rows = list(csv.reader(io.StringIO(to_csv(graph), newline="")))
    assert rows[0] == ["a", "edge", "b"]
    assert {tuple(row) for row in rows[1:]} == edges_of(graph)


def test_adjacency_matrix_survives(graph):
    frame = pd.read_csv(io.StringIO(to_adjacency_csv(graph)), index_col=0)
    assert list(frame.columns) == list(frame.index) == ODD
    assert np.array_equal(frame.to_numpy(), graph.adjacency)


def test_json_survives(graph):
    values = json.loads(to_json(graph))
    assert values["names"] == ODD
    assert {(e["a"], e["edge"], e["b"]) for e in values["edges"]} == edges_of(graph)


def test_graphml_survives_in_networkx(graph, tmp_path):
    gb.export(graph, tmp_path / "g.graphml")
    again = nx.read_graphml(tmp_path / "g.graphml")
    assert list(again.nodes) == ODD
    assert [again.nodes[n]["name"] for n in again.nodes] == ODD
    assert nx.to_numpy_array(again, nodelist=ODD).tolist() == graph.adjacency.tolist()
    assert again.is_directed() == bool(graph.directed_edges())


@each("odd", ["\x00", "\x1b", "\ud800", "\uffff"])
def test_graphml_refuses_what_xml_cannot_carry(odd):
    with pytest.raises(GraphError, match="control character"):
        to_graphml(Graph([f"a{odd}", "b"], np.zeros((2, 2))))


def read_dot(text):
    """Names and edges of our DOT, by its grammar: escaped labels and statements of two nodes."""
    labels = re.findall(r'^  (n\d+) \[label="((?:[^"\\]|\\.)*)"\];$', text, flags=re.MULTILINE)
    unescape = {"\\n": "\n", "\\\\": "\\", '\\"': '"'}
    names = {k: re.sub(r"\\.", lambda m: unescape[m[0]], label) for k, label in labels}
    links = re.findall(r"^  (n\d+) (->|--) (n\d+)(.*);$", text, flags=re.MULTILINE)
    return names, {(names[a], "--" if "dir=none" in rest else mark, names[b]) for a, mark, b, rest in links}


def test_dot_survives(graph):
    names, edges = read_dot(to_dot(graph))
    assert list(names.values()) == ODD
    assert edges == edges_of(graph)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pydot")
def test_dot_is_read_by_pydot(graph):
    pydot = pytest.importorskip("pydot")
    (parsed,) = pydot.graph_from_dot_data(to_dot(graph))
    names, _ = read_dot(to_dot(graph))
    is_directed = parsed.get_type() == "digraph"
    edges = set()
    for edge in parsed.get_edges():
        mark = "->" if is_directed and edge.get("dir") != "none" else "--"
        edges.add((names[edge.get_source()], mark, names[edge.get_destination()]))
    assert edges == edges_of(graph)


def test_results_are_written_with_their_probabilities(result, tmp_path):
    table = pd.read_csv(gb.export(result, tmp_path / "r.csv"), keep_default_na=False)
    assert len(table) == 15
    assert set(table["a"]) | set(table["b"]) == set(ODD)
    graphml = nx.read_graphml(gb.export(result, tmp_path / "r.graphml", threshold=0.3))
    a, b, data = next(iter(graphml.edges(data=True)))
    assert data["skeleton"] == pytest.approx(result.probabilities[ODD.index(a), ODD.index(b), 1])
    assert data["stability"] == 0.5
    again = Result.from_dict(json.loads(gb.export(result, tmp_path / "r.json").read_text(encoding="utf-8")))
    assert np.allclose(again.probabilities, result.probabilities)


def numbers_of(table):
    return {(r.a, r.edge, r.b): (r.skeleton, r.forward, r.backward) for r in table.itertuples()}


def test_arrows_survive_as_csv_and_json(directed, tmp_path):
    graph, expected = directed.cpdag(), numbers_of(directed.arrows())
    table = pd.read_csv(gb.export(graph, tmp_path / "g.csv"), keep_default_na=False)
    assert list(table.columns) == list(directed.arrows().columns)
    values = [json.loads(to_json(source)) for source in (graph, directed)]
    edges = [pd.DataFrame(value["edges"]) for value in values]
    for read in (table, *edges):
        assert numbers_of(read).keys() == expected.keys()
        for key, numbers in numbers_of(read).items():
            assert numbers == pytest.approx(expected[key], rel=1e-4, abs=1e-6)
    assert values[1]["cut"] == {"threshold": 0.5}
    assert json.loads(to_json(directed, Cut(fdr=0.2)))["cut"] == {"fdr": 0.2}
    again = Result.from_dict(values[1])
    assert again.cpdag() == graph
    matrix = pd.read_csv(io.StringIO(to_adjacency_csv(directed)), index_col=0)
    assert np.array_equal(matrix.to_numpy(), graph.adjacency)


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_arrows_survive_as_graphml_and_dot(directed, tmp_path, threshold):
    graph = directed.cpdag(threshold=threshold)
    place = {name: k for k, name in enumerate(ODD)}
    for source in (graph, directed):
        again = nx.read_graphml(gb.export(source, tmp_path / "g.graphml", threshold=threshold))
        assert nx.to_numpy_array(again, nodelist=ODD, weight=None).tolist() == graph.adjacency.tolist()
        for a, b, data in again.edges(data=True):
            i, j = place[a], place[b]
            is_arrow = not graph.adjacency[j, i]
            assert data["kind"] == ("directed" if is_arrow else "undirected")
            assert data["skeleton"] == pytest.approx(directed.probabilities[i, j, 1])
            assert data["forward"] == pytest.approx(graph.arrow_probability_dd[i, j])
            assert data["backward"] == pytest.approx(graph.arrow_probability_dd[j, i])
    names, edges = read_dot(to_dot(directed, Cut(threshold)))
    assert list(names.values()) == ODD
    assert unordered(edges) == unordered(edges_of(graph))
    labels = [float(label) for label in re.findall(r'-> n\d+ \[.*label="([.\d]+)"', to_dot(graph))]
    arrows = directed.arrows(threshold=threshold).query("edge == '->'")["forward"]
    assert sorted(labels) == pytest.approx(sorted(arrows), abs=0.005)


def test_outputs_tell_of_arrows_where_they_are_known(directed, tmp_path):
    save_outputs(directed, tmp_path, Cut(fdr=0.3))
    assert {path.name for path in tmp_path.iterdir()} == set(OUTPUTS)
    table = pd.read_csv(tmp_path / "arrows.csv", keep_default_na=False)
    assert numbers_of(table).keys() == numbers_of(directed.arrows(fdr=0.3)).keys()
    pairs = pd.read_csv(tmp_path / "edges.csv", keep_default_na=False)
    assert {"forward", "backward"} <= set(pairs.columns)


FILES = set(OUTPUTS) - {"arrows.csv", "dag.csv"}
"""What a result without directions writes."""


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_folder_of_outputs(result, tmp_path):
    folder = tmp_path / "new" / "out"
    files = result.save(folder)
    assert {path.name for path in folder.iterdir()} == {path.name for path in files} == FILES
    (folder / "mine.txt").write_text("stays")
    result.save(folder, threshold=0.9)
    assert contents(folder).keys() == FILES | {"mine.txt"}
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_the_present_folder_will_do(result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {str(path) for path in result.save(".")} == FILES
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_two_answers_are_never_mixed(result, directed, tmp_path):
    directed.save(tmp_path)
    assert contents(tmp_path).keys() == FILES | {"arrows.csv", "dag.csv"}
    result.save(tmp_path)
    assert contents(tmp_path).keys() == FILES


def test_outputs_appear_all_at_once_or_not_at_all(result, tmp_path, monkeypatch):
    def fail(source, path, **cut):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("graphbam.output.figures.plot", fail)
    with pytest.raises(ConfigError, match="cannot be written: No space left"):
        save_outputs(result, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@each("after", range(10))
def test_a_folder_is_as_it_was_if_a_file_cannot_be_put_there(result, tmp_path, monkeypatch, after):
    (tmp_path / "mine.txt").write_text("stays")
    for name in ("edges.csv", "arrows.csv"):
        (tmp_path / name).write_text(f"old {name}")
    (tmp_path / "graph.json").write_text('{"format": "graphbam-result", "version": 0}')
    before, replace, calls = contents(tmp_path), os.replace, []

    def break_down(a, b):
        calls.append(b)
        if len(calls) == after:
            raise OSError(5, "Input/output error")
        replace(a, b)

    monkeypatch.setattr("os.replace", break_down)
    if after == 0:
        save_outputs(result, tmp_path)
        assert contents(tmp_path).keys() == FILES | {"mine.txt"}
        return
    with pytest.raises(ConfigError, match="cannot be written: Input/output error"):
        save_outputs(result, tmp_path)
    assert contents(tmp_path) == before
    assert {path.name for path in tmp_path.iterdir()} == set(before)


def test_files_of_others_are_not_taken_for_an_earlier_result(result, tmp_path):
    for name in ("edges.csv", "dag.csv", "graph.json"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        (folder / name).write_text('{"tiers": [["a"], ["b"]]}')
        before = contents(folder)
        with pytest.raises(ConfigError, match=rf"{name} is there already.* Choose another folder"):
            save_outputs(result, folder)
        assert contents(folder) == before


def test_files_of_others_beside_an_earlier_result_are_not_taken_for_its_own(result, directed, tmp_path):
    result.save(tmp_path)  # without directions, hence without dag.csv
    (tmp_path / "dag.csv").write_text("mine")
    before = contents(tmp_path)
    for one in (result, directed):
        with pytest.raises(ConfigError, match=r"dag\.csv is there already.* Choose another folder"):
            one.save(tmp_path)
        assert contents(tmp_path) == before


def test_results_of_older_releases_are_replaced(result, directed, tmp_path):
    directed.save(tmp_path)
    values = json.loads((tmp_path / "graph.json").read_text())
    assert values.pop("files") == list(OUTPUTS)
    (tmp_path / "graph.json").write_text(json.dumps(values))
    result.save(tmp_path)
    assert contents(tmp_path).keys() == FILES


def test_pictures_are_not_exported_but_drawn(result, tmp_path):
    for source in (result, result.skeleton()):
        with pytest.raises(ConfigError, match=r"end it in .*\. Pictures are drawn by plot\(\)\."):
            gb.export(source, tmp_path / "graph.png")
    with pytest.raises(ConfigError) as caught:
        gb.export(result, tmp_path / "graph.xyz")
    assert "plot" not in str(caught.value)


def test_an_exported_result_owns_no_other_file(result, tmp_path):
    (tmp_path / "edges.csv").write_text("mine")
    gb.export(result, tmp_path / "graph.json")
    assert gb.Result.load(tmp_path).names == result.names
    with pytest.raises(ConfigError, match=r"edges\.csv is there already"):
        result.save(tmp_path)


def test_what_was_saved_comes_back_to_the_last_digit(directed, tmp_path):
    save_outputs(directed, tmp_path)
    again = gb.Result.load(tmp_path)
    for name in ("probabilities", "directions", "compelled"):
        assert np.array_equal(getattr(again, name), getattr(directed, name)), name
    assert to_csv(again) == to_csv(directed)


def test_a_failed_export_leaves_the_old_file(result, tmp_path, monkeypatch):
    path = tmp_path / "g.csv"
    path.write_text("old")
    monkeypatch.setattr("os.replace", lambda a, b: (_ for _ in ()).throw(OSError(13, "Permission denied")))
    with pytest.raises(ConfigError, match="Permission denied"):
        gb.export(result, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@each(("name", "options", "says"), [
    ("g.png", {}, "which format to write; end it in .csv, .json, .graphml, .dot, .gv, .mmd, .txt, .bif, .html"),
    ("g", {}, "which format"),
    ("g.html", {"layout": "adjacency"}, "does not fit"),
    ("g.json", {"layout": "adjacency"}, "does not fit"),
    ("g.csv", {"layout": "list"}, "does not fit"),
    ("g.csv", {"threshold": 7, "layout": "adjacency"}, "threshold=7"),
])  # fmt: skip
def test_bad_exports_are_refused(result, tmp_path, name, options, says):
    with pytest.raises(ConfigError, match=says):
        gb.export(result, tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_a_folder(result, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(ConfigError, match="is a file"):
        save_outputs(result, tmp_path / "out")
    with pytest.raises(ConfigError, match="the path to write to is empty"):
        result.save("")
    (tmp_path / "dir" / "edges.csv").mkdir(parents=True)
    with pytest.raises(ConfigError, match="is a folder where a file must go"):
        save_outputs(result, tmp_path / "dir")


def test_a_report_is_exported_of_a_result_only(result, tmp_path):
    page = gb.export(result, tmp_path / "new" / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert result.report(tmp_path / "again.html").read_text(encoding="utf-8") == page
    with pytest.raises(ConfigError, match="a report is made of a Result"):
        gb.export(result.graph(), tmp_path / "g.html")


def test_other_things_are_not_exported(tmp_path):
    with pytest.raises(GraphError, match="a list cannot be exported"):
        gb.export([], tmp_path / "g.csv")


# ── other packages ────────────────────────────────────────────────────────────────────────────────────────

DAG = Graph(ODD, np.triu(MIXED))
COLLIDER = Graph(["a", "b", "c", "d"], [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])  # a → c ← b, c → d
CONFOUNDED = Graph(["t", "y", "z"], [[0, 1, 0], [0, 0, 0], [1, 1, 0]])  # z → t, z → y, t → y


def read_causallearn(theirs):
    """Edges of a GeneralGraph, by the endpoints that causal-learn itself reports."""
    edges = set()
    for edge in theirs.get_graph_edges():
        marks = str(edge.get_endpoint1()), str(edge.get_endpoint2())
        a, b = edge.get_node1().get_name(), edge.get_node2().get_name()
        assert marks in {("TAIL", "ARROW"), ("TAIL", "TAIL")}
        edges.add((a, "->" if marks[1] == "ARROW" else "--", b))
    return edges


def test_causallearn(graph):
    pytest.importorskip("causallearn")
    theirs = to_causallearn(graph)
    assert theirs.get_node_names() == ODD
    assert read_causallearn(theirs) == edges_of(graph)
    arrow, tail = theirs.graph == 1, theirs.graph == -1  # entry [j, i] is the mark at j
    assert np.array_equal(arrow.T & tail, graph.adjacency & ~graph.adjacency.T.astype(bool))
    assert np.array_equal(tail & tail.T, graph.adjacency & graph.adjacency.T)


@each("dag", [DAG, COLLIDER, CONFOUNDED])
def test_causallearn_works_with_it(dag):
    module = pytest.importorskip("causallearn.utils.DAG2CPDAG")
    assert read_causallearn(module.dag2cpdag(to_causallearn(dag))) == edges_of(dag.to_cpdag())


def unordered(edges):
    return {(mark, frozenset((a, b)) if mark == "--" else (a, b)) for a, mark, b in edges}


def read_pgmpy(theirs):
    if type(theirs).__name__ == "DAG":
        return {(a, "->", b) for a, b in theirs.edges}
    directed = {(a, "->", b) for a, b in theirs.directed_edges}
    return directed | {(a, "--", b) for a, b in theirs.undirected_edges}


def test_pgmpy(graph):
    base = pytest.importorskip("pgmpy.base")
    theirs = to_pgmpy(graph)
    assert isinstance(theirs, base.DAG if graph.is_dag() else base.PDAG)
    assert set(theirs.nodes) == set(ODD)
    assert unordered(read_pgmpy(theirs)) == unordered(edges_of(graph))


def test_pgmpy_knows_variables_without_links_too():
    pytest.importorskip("pgmpy.base")
    assert set(to_pgmpy(Graph(["a", "b", "alone"], [[0, 1, 0], [1, 0, 0], [0, 0, 0]])).nodes) == {"a", "b", "alone"}


@each("dag", [DAG, COLLIDER, CONFOUNDED])
def test_pgmpy_works_with_it(dag):
    base = pytest.importorskip("pgmpy.base")
    theirs = to_pgmpy(dag)
    assert isinstance(theirs, base.DAG)
    assert read_pgmpy(theirs) == edges_of(dag)
    cpdag = dag.to_cpdag()
    assert unordered(read_pgmpy(theirs.to_pdag())) == unordered(edges_of(cpdag))
    extension = to_pgmpy(cpdag)
    extension = extension if isinstance(extension, base.DAG) else extension.to_dag()
    again = Graph(dag.names, nx.to_numpy_array(extension, nodelist=dag.names, weight=None))
    assert again.to_cpdag() == cpdag


def test_pgmpy_separates_as_the_graph_says():
    pytest.importorskip("pgmpy")
    theirs = to_pgmpy(COLLIDER)
    assert not theirs.is_dconnected("a", "b")
    assert theirs.is_dconnected("a", "b", observed=["d"])


def test_dowhy_text_is_gml():
    again = nx.parse_gml(to_dowhy(DAG))
    assert set(again.nodes) == set(ODD)
    assert set(again.edges) == set(DAG.directed_edges())


@pytest.fixture
def causal_model():
    return pytest.importorskip("dowhy").CausalModel


@pytest.mark.filterwarnings("ignore")
def test_dowhy_keeps_names_and_edges(causal_model):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 6)), columns=ODD)
    model = causal_model(frame, treatment=ODD[0], outcome=ODD[3], graph=to_dowhy(DAG))
    theirs = model._graph._graph
    assert set(theirs.nodes) == set(ODD)
    assert set(theirs.edges) == set(DAG.directed_edges())


@pytest.mark.filterwarnings("ignore")
def test_dowhy_identifies_and_estimates_an_effect(causal_model):
    noise = np.random.default_rng(1).normal(size=(3, 4000))
    z = noise[0]
    t = 2 * z + noise[1]
    frame = pd.DataFrame({"t": t, "y": 3 * t - 5 * z + noise[2], "z": z})
    model = causal_model(frame, treatment="t", outcome="y", graph=to_dowhy(CONFOUNDED))
    effect = model.identify_effect()
    assert effect.get_backdoor_variables() == ["z"]
    estimate = model.estimate_effect(effect, method_name="backdoor.linear_regression")
    assert estimate.value == pytest.approx(3, abs=0.1)


def test_a_result_is_handed_over_as_its_graph(directed):
    pytest.importorskip("pgmpy")
    pytest.importorskip("causallearn")
    edges = edges_of(directed.graph())
    assert unordered(read_causallearn(to_causallearn(directed))) == unordered(edges)
    assert unordered(read_pgmpy(to_pgmpy(directed))) == unordered(edges)
    with pytest.raises(GraphError, match="a DataFrame cannot be converted"):
        to_pgmpy(directed.table())


def test_dowhy_needs_directions():
    with pytest.raises(GraphError, match="has no direction"):
        to_dowhy(Graph(["a", "b"], [[0, 1], [1, 0]]))
    with pytest.raises(GraphError, match="has a cycle"):
        to_dowhy(Graph(["a", "b", "c"], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]))


@pytest.mark.parametrize(("convert", "package"), [(to_causallearn, "causal-learn"), (to_pgmpy, "pgmpy")])
def test_absent_packages_are_named(convert, package, monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    with pytest.raises(GraphError, match=f"pip install {package}"):
        convert(DAG)


# ── plain words ───────────────────────────────────────────────────────────────────────────────────────────


def test_tetrad_text_is_read_by_causallearn(graph, tmp_path):
    from causallearn.utils.TXT2GeneralGraph import txt2generalgraph

    path = gb.export(graph, tmp_path / "graph.txt")
    again = txt2generalgraph(str(path))
    words = dict(zip(graph.names, path.read_text().splitlines()[1].split(";"), strict=True))
    assert len(set(words.values())) == len(graph.names)
    assert {node.get_name() for node in again.get_nodes()} == set(words.values())
    arrows, lines = set(), set()
    for edge in again.get_graph_edges():
        ends = edge.get_node1().get_name(), edge.get_node2().get_name()
        (arrows if "-->" in str(edge) else lines).add(ends if "-->" in str(edge) else frozenset(ends))
    assert arrows == {(words[a], words[b]) for a, b in graph.directed_edges()}
    assert lines == {frozenset((words[a], words[b])) for a, b in graph.undirected_edges()}


def test_tetrad_keeps_letters_of_any_script(tmp_path):
    from causallearn.utils.TXT2GeneralGraph import txt2generalgraph

    graph = Graph(["größe", "e\u0301tat", "ключ", "速度", "हिन्दी", "a b", "a;b"], np.triu(np.ones((7, 7)), 1))
    path = gb.export(graph, tmp_path / "graph.txt")
    words = path.read_text(encoding="utf-8").splitlines()[1].split(";")
    assert words == ["größe", "e\u0301tat", "ключ", "速度", "हिन्दी", "a_b", "a_b_2"]
    assert [node.get_name() for node in txt2generalgraph(str(path)).get_nodes()] == words


def test_bif_is_read_by_pgmpy(tmp_path):
    reader = pytest.importorskip("pgmpy.readwrite").BIFReader
    path = gb.export(DAG, tmp_path / "graph.bif")
    model = reader(str(path)).get_model()
    words = re.findall(r"^variable ([A-Za-z0-9_]+) \{", to_bif(DAG), re.MULTILINE)
    named = dict(zip(DAG.names, words, strict=True))
    assert set(model.edges()) == {(named[a], named[b]) for a, b in DAG.directed_edges()}
    assert model.check_model()


def test_bif_of_a_result_counts_its_rows():
    rng = np.random.default_rng(0)
    cause = rng.normal(size=400)
    p = np.full((2, 2, 3), [0.1, 0.9, 0.0])
    p_arrow = np.array([[0, 0.9], [0.1, 0]])
    sample = np.stack([cause, cause + 0.3 * rng.normal(size=400)], axis=1)
    text = to_bif(Result(("a", "b"), p, directions=p_arrow, compelled=p_arrow, sample=sample))
    low = float(re.search(r"\(low\) ([0-9.]+),", text)[1])
    high = (sample[:, 0] > np.median(sample[:, 0])) == (sample[:, 1] > np.median(sample[:, 1]))
    assert low == pytest.approx(high[sample[:, 0] <= np.median(sample[:, 0])].mean(), abs=0.01)
    assert "cut at its median" in text


def test_bif_needs_directions_and_few_parents():
    with pytest.raises(GraphError, match="BIF needs a direction for every link"):
        to_bif(Graph(["a", "b"], [[0, 1], [1, 0]]))
    star = np.zeros((15, 15))
    star[1:, 0] = 1
    with pytest.raises(GraphError, match="has 14 parents"):
        to_bif(Graph([f"v{k}" for k in range(15)], star))


def test_mermaid_tells_arrows_lines_forced_and_hidden_apart():
    unsure = OrientedGraph(["a", "b"], [[0, 1], [0, 0]], np.full((2, 2), 0.9), [[0, 0.3], [0.35, 0]])
    assert "n0 -.->|0.30| n1" in to_mermaid(unsure)
    p = np.full((2, 2, 3), [0.1, 0.9, 0.0])
    text = to_mermaid(Result(('<b> "x" `#`', "line\nbreak"), p, hidden_causes=np.array([[0, 0.8], [0.8, 0]])))
    assert text.splitlines()[1:] == [
        '  n0["#lt;b#gt; #quot;x#quot; #96;#35;#96;"]',
        '  n1["line break"]',
        "  n0 --- n1",
        "  n0 <-.->|hidden 0.80| n1",
    ]
