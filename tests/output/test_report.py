"""The report as a file: what it holds, how large it is, and that nothing in it can escape."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from cases import each
from graphbam.errors import ConfigError
from graphbam.graphs.cut import Cut
from graphbam.graphs.knowledge import Knowledge
from graphbam.nn.weights import Header
from graphbam.output.layout import LIBRARIES, read_vendored
from graphbam.output.report import FDR_LEVELS, MOST_PAIRS, build_model, render, write_report
from graphbam.result import Result
from standins import Contrast, PartialCorrelation

HOSTILE = ("</script><script>alert(1)</script>", '"quoted" & <b>', "line\nbreak", "{{script}}", "\u2028 ü", "名")


def make_result(n_variables, n_rows=50, **settings):
    x_md = np.random.default_rng(n_variables).normal(size=(n_rows, n_variables)).cumsum(axis=1)
    frame = pd.DataFrame(x_md, columns=[f"v{k}" for k in range(n_variables)])
    return gb.infer(frame, **({"weights": PartialCorrelation(), "colliders": None} | settings))


def read_model(text):
    return json.loads(re.search(r'<script type="application/json" id="model">(.*?)</script>', text, re.DOTALL)[1])


def read_adjacency(graph, pairs, n_variables):
    adjacency = np.zeros((n_variables, n_variables), dtype=int)
    for k, mark in zip(graph["pairs"], graph["marks"], strict=True):
        i, j = pairs["i"][k], pairs["j"][k]
        adjacency[i, j], adjacency[j, i] = mark >= 0, mark <= 0
    return adjacency


def test_the_model_tells_what_the_result_tells():
    result = make_result(6, stability=2)
    model = read_model(render(result))
    assert model["names"] == list(result.names)
    table, pairs = result.table(), model["pairs"]
    assert [result.names[i] for i in pairs["i"]] == table["a"].tolist()
    assert [result.names[j] for j in pairs["j"]] == table["b"].tolist()
    for column in ("skeleton", "moral", "stability"):
        np.testing.assert_allclose(pairs[column], table[column], atol=6e-4)
    assert [result.names[c] if c >= 0 else "" for c in pairs["via"]] == table["via"].tolist()
    assert pairs["forward"] is pairs["backward"] is None
    assert model["graphs"] == []
    assert sum(model["histogram"]) == model["n_pairs"] == 15
    assert model["dags"] == []


def test_hidden_causes_are_among_what_to_keep_in_mind():
    """Where most pairs are suspected, a number beside a box to tick would pass for a finding."""
    result = dataclasses.replace(make_result(5), warnings=("few rows",))
    assert build_model(result)["warnings"] == ["few rows"]
    suspected = dataclasses.replace(result, hidden_causes=np.full((5, 5), 0.7))
    assert build_model(suspected)["warnings"] == ["few rows", suspected.say_hidden()]
    assert "doubt" in suspected.say_hidden()


def test_false_discovery_levels_are_those_of_the_result():
    result = make_result(9)
    p_n = result.probabilities[..., 1][np.triu_indices(9, 1)]
    for level in build_model(result)["levels"]:
        assert level["links"] == Cut(fdr=level["fdr"]).choose(p_n).sum()
        assert level["links"] in (0, (p_n.round(4) >= level["threshold"]).sum())
    start = build_model(result, Cut(fdr=0.2))["threshold"]
    assert (p_n.round(4) >= start).sum() == Cut(fdr=0.2).choose(p_n).sum()


def test_nothing_gets_over_a_limit_by_rounding():
    p = np.full((2, 2, 3), [0.50004, 0.49996, 0.0])
    hidden = np.array([[0.0, 0.49996], [0.49996, 0.0]])
    pairs = build_model(Result(("a", "b"), p, hidden_causes=hidden))["pairs"]
    assert pairs["skeleton"] == pairs["hidden"] == [0.4999]


@each("cut", [{}, {"fdr": 0.05}, {"threshold": 0.3}, {"fdr": 0.33}])
def test_the_model_holds_the_graphs_with_directions(cut):
    result = make_result(7, colliders=Contrast())
    model = read_model(render(result, Cut(**cut)))
    pairs, graphs = model["pairs"], model["graphs"]
    expected = [cut or {"threshold": 0.5}, {"threshold": 0.5}, *({"fdr": level} for level in FDR_LEVELS)]
    expected = [one for k, one in enumerate(expected) if one not in expected[:k]]
    assert [{key: graph[key] for key in ("threshold", "fdr") if graph[key] is not None} for graph in graphs] == expected
    for graph, one in zip(graphs, expected, strict=True):
        cpdag = result.cpdag(**one)
        forced = {frozenset((pairs["i"][k], pairs["j"][k])) for k in graph["forced"]}
        assert forced == {frozenset(pair) for pair in np.argwhere(cpdag.forced).tolist()}
        assert np.array_equal(read_adjacency(graph, pairs, 7), cpdag.adjacency)
    for graph, one in zip(model["dags"], expected, strict=True):
        dag = result.dag(**one)
        guessed = {frozenset((pairs["i"][k], pairs["j"][k])) for k in graph["guessed"]}
        assert guessed == {frozenset(pair) for pair in np.argwhere(dag.guessed).tolist()}
        assert np.array_equal(read_adjacency(graph, pairs, 7), dag.adjacency)
    arrow_dd = result.arrow_probabilities
    np.testing.assert_allclose(pairs["forward"], arrow_dd[pairs["i"], pairs["j"]], atol=6e-4)
    np.testing.assert_allclose(pairs["backward"], arrow_dd[pairs["j"], pairs["i"]], atol=6e-4)
    assert ["Colliders", "contrast"] in model["provenance"]


def test_the_page_loads_nothing():
    text = render(make_result(5))
    assert "default-src 'none'" in text
    for library in LIBRARIES:  # they hold addresses of licences, in comments
        assert read_vendored(library) in text
        text = text.replace(read_vendored(library), "")
    addresses = set(re.findall(r"\w+://[^\s\"'<>)]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a namespace, never fetched
    assert not re.search(
        r"<(link|img|iframe|object|embed)\b|@import|url\(|\bsrc=|\bfetch\(|XMLHttpRequest|import\(", text
    )


def test_hostile_names_end_up_in_the_model_only(tmp_path):
    p = np.tile([0.2, 0.7, 0.1], (6, 6, 1))
    source = '<img src=x onerror=alert(1)>"/t.csv'
    result = Result(HOSTILE, p, (HOSTILE[0],), (HOSTILE[1],), {"verdict": None}, source=source)
    text = write_report(result, tmp_path / "report.html").read_text(encoding="utf-8")
    clean = render(make_result(6))
    for tag in ("<script", "</script", "<img", "<b>"):
        assert text.count(tag) == clean.count(tag), tag
    model = read_model(text)
    assert model["names"] == list(HOSTILE)
    assert model["changes"] == [HOSTILE[0]]
    assert "<title>t.csv · graphbam</title>" in text


@each("name", ["report.pdf", "report.png", "report.txt", "report"])
def test_a_report_is_not_written_where_no_browser_would_open_it(tmp_path, name):
    with pytest.raises(ConfigError, match=f"{name}: a report is a page for a browser; end it in .html"):
        make_result(3).report(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_the_title_is_escaped():
    result = Result(("a", "b"), np.tile([1.0, 0, 0], (2, 2, 1)), source="<i>{{model}}")
    assert "<h1>&lt;i&gt;{{model}}</h1>" in render(result)


@each(("n_variables", "limit"), [(2, 0.65), (30, 1.9), (150, 6.0)])
def test_size(tmp_path, n_variables, limit):
    result = make_result(n_variables, n_rows=1500, stability=1)
    assert write_report(result, tmp_path / "r.html").stat().st_size < limit * 1e6


def test_of_very_many_pairs_the_likeliest_are_kept():
    n = 210
    p = np.random.default_rng(0).dirichlet([1, 1, 1], size=(n, n))
    model = build_model(Result(tuple(map(str, range(n))), p))
    assert len(model["pairs"]["i"]) == MOST_PAIRS < model["n_pairs"]
    assert min(model["pairs"]["skeleton"]) == pytest.approx(model["floor"], abs=1e-3)


def test_a_result_without_sample_has_no_points():
    plain = Result.from_dict(make_result(4).to_dict())
    model = read_model(render(plain))
    assert model["sample"] is model["turned"] is model["pairs"]["partial"] is None


def test_the_sample_survives_packing():
    import base64

    result = make_result(5, n_rows=700)
    packed = build_model(result)["sample"]
    values = np.frombuffer(base64.b64decode(packed["data"]), "<i2").reshape(5, -1).T * packed["steps"]
    np.testing.assert_allclose(values, result.sample[:300], atol=2e-4)


def test_few_rows_constant_and_equal_columns_are_no_trouble():
    frame = pd.DataFrame({"a": [1.0, 2, 4, 3], "b": [1.0, 2, 4, 3], "c": 7.0, "d": [3.0, 1, 2, 4]})
    model = build_model(gb.infer(frame, weights=PartialCorrelation()))
    assert np.isfinite(model["pairs"]["partial"]).all()
    assert np.isfinite(model["precision"]).all()


def test_domain_and_knowledge_are_told():
    weights = PartialCorrelation(header=Header(domain={"n_samples": (500, 900), "asymmetry": (0, 9)}))
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    knowledge = Knowledge(forbidden=["a -- b"], required=["b -> c"])
    model = build_model(gb.infer(frame, weights=weights, knowledge=knowledge))
    assert model["domain"]["verdict"] == "outside"
    assert [gauge["outside"] for gauge in model["domain"]["features"]] == [True, False]
    told = {
        (model["pairs"]["i"][int(k)], model["pairs"]["j"][int(k)]): how for k, how in model["pairs"]["fixed"].items()
    }
    assert told == {(0, 1): "forbidden", (1, 2): "required"}


def test_the_calls_give_the_same_answer_again(tmp_path):
    path = tmp_path / "my table.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4)), columns=list("abcd")).to_csv(path, index=False)
    settings = {"drop": ["d"], "seed": 4, "required": ["a -- b"]}
    result = gb.infer(path, weights=PartialCorrelation(name="edges"), colliders=Contrast("colliders"), **settings)
    command, call = build_model(result)["calls"]
    assert command == f"graphbam infer '{path}' --seed 4 --drop d --knowledge knowledge.json -o out"
    usual = "gb.infer(weights=weights, colliders=colliders, data="
    again = call.replace("gb.infer(", usual).replace("import graphbam as gb\n", "")
    scope = {"gb": gb, "weights": PartialCorrelation(), "colliders": Contrast()}
    exec(again, scope)
    assert np.array_equal(scope["result"].probabilities, result.probabilities)
    assert scope["result"].cpdag() == result.cpdag()


@pytest.mark.parametrize(("colliders", "option", "argument"), [
    (None, " --no-cpdag", ", colliders=None"),
    (Contrast(name="mine"), " --colliders mine", ", colliders='mine'"),
])  # fmt: skip
def test_the_calls_tell_of_other_colliders(tmp_path, colliders, option, argument):
    path = tmp_path / "t.csv"
    pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc")).to_csv(path, index=False)
    result = gb.infer(path, weights=PartialCorrelation(name="edges"), colliders=colliders)
    command, call = build_model(result)["calls"]
    assert command == f"graphbam infer {path}{option} -o out"
    assert call == f"import graphbam as gb\nresult = gb.infer({str(path)!r}{argument})"
