"""One contract for all methods, and what each of them must find where nobody could miss it."""

import ast
import dataclasses
import importlib.metadata
import logging
import os
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from cases import SEEDS, each
from graphbam.benchmarks import baselines
from graphbam.benchmarks.baselines import (
    BASELINES,
    METHOD_SETS,
    Method,
    list_baselines,
    load_baseline,
    resolve_methods,
)  # fmt: skip
from graphbam.benchmarks.baselines._base import Answer, grade, keep_acyclic, marry, partial_correlations
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.benchmarks.baselines.glasso import Glasso
from graphbam.benchmarks.baselines.partial_correlation import link_pairs
from graphbam.benchmarks.baselines.sortnregress import adaptive_lasso
from graphbam.errors import ConfigError, GraphError
from graphbam.graphs.graph import is_dag, skeleton

SHORT = {
    "sam": {"train_epochs": 20, "test_epochs": 5},
    "dag-gnn": {"epochs": 50, "max_iter": 2},
    "notears-mlp": {"max_iter": 1},
    "extra-trees": {"n_trees": 30},
    "genie3": {"n_trees": 30},
    "resit": {"n_trees": 10},
}
"""Settings that end training early."""

AWAY = {"graphbam-paper", "avici", "avici-retrained", "var-sortnregress"}
"""Methods that may decline where everything is installed, for want of weights or of variances."""

PAIRS = {"anm", "igci", "reci", "pnl"}
"""Methods for two variables."""

CYCLIC = {"avici", "avici-retrained"}
"""Methods that call their graph a DAG and do not promise one."""

LOOSE = {"gfci", "ut-igsp", "boss-imputed", "cam-uv", "rcd"}
"""The same of methods that begin with one of them or with random orders, or take columns in turn."""

RELABELS = sorted({*BASELINES} - AWAY - {*SHORT} - {"pc-rcit", "pc-rcot", "boss", "grasp", "lingam"} - LOOSE)
"""Methods whose answer follows the columns; the others draw numbers column by column, or break ties by place."""


FIELDS = [field.name for field in dataclasses.fields(Answer)]


def make(name):
    return load_baseline(name, **SHORT.get(name, {}))


def standardise(x_md):
    return (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)


@pytest.fixture(scope="module")
def chain():
    """a → b → c and two bystanders; noise is uniform, columns are c, d, a, e, b."""
    a, b, c, d, e = np.random.default_rng(0).uniform(-1, 1, (5, 120))
    b = 0.9 * a + 0.5 * b
    c = 0.9 * b + 0.5 * c
    return standardise(np.stack([c, d, a, e, b], axis=1))


def linear_table(seed, n_variables=8, n_samples=300):
    """Linear, Gaussian, clear effects; table and DAG, columns in causal order."""
    rng = np.random.default_rng(seed)
    dag_dd = np.triu(rng.random((n_variables, n_variables)) < 2.2 / (n_variables - 1), 1)
    x_md = rng.standard_normal((n_samples, n_variables))
    for child in range(n_variables):
        parents = np.flatnonzero(dag_dd[:, child])
        x_md[:, child] += x_md[:, parents] @ rng.choice([-1, 1], len(parents))
    return standardise(x_md), dag_dd.astype(np.int8)


def global_state():
    """Everything packages are known to change behind one's back."""
    state = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    logs = list(logging.root.handlers), logging.root.level, logging.root.manager.disable
    warned = warnings.formatwarning, warnings.showwarning, list(warnings.filters)
    numbers = np.get_printoptions(), np.geterr(), torch.get_default_dtype(), torch.get_num_threads()
    return state, logs, warned, numbers, dict(os.environ), sys.stdout, sys.stderr, os.getcwd(), os.listdir()


@pytest.mark.parametrize("name", BASELINES)
def test_every_method_keeps_the_contract(name, chain, capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    method, x_md = make(name), chain.copy()
    if reason := method.skip(*x_md.shape):
        pytest.skip(reason)
    before = global_state()
    first = method.fit(x_md, seed=0)
    assert global_state() == before
    assert capfd.readouterr() == ("", "")
    np.testing.assert_array_equal(x_md, chain)
    again = make(name).fit(x_md, seed=0)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(first, field), getattr(again, field), strict=True)
    check_answer(first, method, n_variables=5)
    if name not in AWAY | {"sam", "zero", "rcd"}:  # for SAM five seconds are not enough, for RCD 120 rows
        check_chain_is_found(first)
    if name in RELABELS:
        check_columns_only_relabel(first, name, chain)


def check_answer(answer, method, n_variables):
    shape = (n_variables, n_variables)
    assert answer.graph_dd.shape == answer.score_dd.shape == shape
    assert answer.graph_dd.dtype == np.int8
    assert answer.score_dd.dtype == np.float64
    for matrix in (answer.graph_dd, answer.score_dd):
        assert not matrix.diagonal().any()
    if answer.moral_dd is not None:
        np.testing.assert_array_equal(answer.moral_dd, answer.moral_dd.T)
    if method.kind == "undirected":
        np.testing.assert_array_equal(answer.graph_dd, answer.graph_dd.T)
        np.testing.assert_array_equal(answer.score_dd, answer.score_dd.T)
    if method.kind == "dag" and method.name not in CYCLIC:
        assert is_dag(answer.graph_dd)


def check_chain_is_found(answer):
    score_dd = np.maximum(answer.score_dd, answer.score_dd.T)
    links, strangers = [score_dd[0, 4], score_dd[2, 4]], score_dd[[1, 3]]
    assert min(links) > strangers.max()
    assert skeleton(answer.graph_dd)[4, [0, 2]].all()


def check_columns_only_relabel(plain, name, chain):
    order = np.array([3, 0, 4, 1, 2])
    moved = make(name).fit(chain[:, order], seed=0)
    there = np.ix_(order, order)
    np.testing.assert_array_equal(skeleton(moved.graph_dd), skeleton(plain.graph_dd)[there])
    np.testing.assert_allclose(
        np.maximum(moved.score_dd, moved.score_dd.T),
        np.maximum(plain.score_dd, plain.score_dd.T)[there],
        atol=1e-3,
    )


@each(
    "name",
    ["cam", "cam-unpruned", "ccdr", "pc-hsic", "partial-correlation-normal-scores", "sortnregress", "ut-igsp"],
)
def test_constant_columns_are_left_out_and_have_no_edges(name, chain):
    with_constant = np.insert(chain, 2, 0.0, axis=1)
    place = [0, 1, 3, 4, 5]
    plain, wide = make(name).fit(chain, seed=0), make(name).fit(with_constant, seed=0)
    for field in FIELDS:
        if (values := getattr(plain, field)) is not None:
            np.testing.assert_allclose(getattr(wide, field)[np.ix_(place, place)], values, atol=1e-9)
            assert not getattr(wide, field)[2].any()
            assert not getattr(wide, field)[:, 2].any()
    assert not make(name).fit(with_constant[:, [2, 2, 3]], seed=0).graph_dd.any()


def test_targets_of_columns_that_vary_stay_with_them(chain):
    """Columns c, d, a, e, b of a → b → c, a constant put first: what was set in b and in a must not move by one."""
    set_md = np.zeros((120, 5), bool)
    set_md[60:90, 4] = set_md[90:, 2] = True
    plain = make("ut-igsp").fit(chain, seed=0, set_md=set_md)
    wide = make("ut-igsp").fit(np.insert(chain, 0, 0.0, axis=1), seed=0, set_md=np.insert(set_md, 0, True, axis=1))
    np.testing.assert_array_equal(wide.graph_dd[1:, 1:], plain.graph_dd)


@each("name", ["cam", "cam-unpruned"])
def test_who_claims_a_collider_claims_that_its_parents_are_married(name):
    """0 → 2 ← 1, and 3 alone: the married pair has the score of the weaker arrow, all others their own."""
    rng = np.random.default_rng(0)
    x_md = rng.standard_normal((300, 4))
    x_md[:, 2] = np.cos(2 * x_md[:, 0]) + np.abs(x_md[:, 1]) + 0.2 * x_md[:, 2]
    answer = make(name).fit(standardise(x_md), seed=0)
    assert answer.graph_dd[[0, 1], 2].all()
    own_dd = np.maximum(answer.score_dd, answer.score_dd.T)
    assert answer.moral_dd[0, 1] == answer.score_dd[[0, 1], 2].min() > own_dd[0, 1]
    own_dd[0, 1] = own_dd[1, 0] = answer.moral_dd[0, 1]
    if name == "cam":  # the only collider of its graph
        np.testing.assert_array_equal(answer.moral_dd, own_dd)


def test_genie3_marries_the_parents_of_its_graph(chain):
    answer = load_baseline("genie3", n_trees=10, shares=0.5).fit(chain, seed=0)
    np.testing.assert_array_equal(answer.moral_dd, marry(answer.graph_dd, answer.score_dd))
    assert (answer.moral_dd > np.maximum(answer.score_dd, answer.score_dd.T)).any()


def test_married_scores_follow_their_definition():
    """Pair by pair, over common children in the graph; a link without a direction marries nobody."""
    rng = np.random.default_rng(0)
    graph_dd, score_dd = rng.integers(0, 2, (6, 6)) * (1 - np.eye(6, dtype=int)), rng.random((6, 6))
    moral_dd = marry(graph_dd, score_dd)
    for a, b in np.argwhere(~np.eye(6, dtype=bool)):
        children = [c for c in range(6) if graph_dd[a, c] > graph_dd[c, a] and graph_dd[b, c] > graph_dd[c, b]]
        through = [min(score_dd[a, c], score_dd[b, c]) for c in children]
        assert moral_dd[a, b] == max(score_dd[a, b], score_dd[b, a], *through, 0)


# ── single methods against others, and against truth ──────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", SEEDS)
def test_gies_without_interventions_is_ges(seed):
    x_md, _ = linear_table(seed)
    np.testing.assert_array_equal(make("gies").fit(x_md, seed=0).graph_dd, make("ges").fit(x_md, seed=0).graph_dd)


@pytest.mark.parametrize("seed", SEEDS)
def test_pc_has_the_skeleton_of_another_package(seed):
    import pybnesian

    x_md, _ = linear_table(seed)
    frame = pd.DataFrame(x_md, columns=[str(k) for k in range(x_md.shape[1])])
    found = pybnesian.PC().estimate(pybnesian.LinearCorrelation(frame), alpha=0.05)
    ours = np.argwhere(np.triu(skeleton(make("pc").fit(x_md, seed=0).graph_dd)))
    theirs = {tuple(sorted(map(int, pair))) for pair in [*found.edges(), *found.arcs()]}
    assert {tuple(pair) for pair in ours.tolist()} == theirs


@each("name", ["mmpc", "pc", "ges", "gies", "boss", "grasp"])
def test_collider_is_found_whole(name):
    """0 → 2 ← 1, 2 → 3: every pair and, where directions are part of the answer, every arrow."""
    rng = np.random.default_rng(4)
    x_md = rng.standard_normal((400, 4))
    x_md[:, 2] += x_md[:, 0] - x_md[:, 1]
    x_md[:, 3] += x_md[:, 2]
    method = make(name)
    truth_dd = np.zeros((4, 4), np.int8)
    truth_dd[[0, 1, 2], [2, 2, 3]] = 1
    answer = method.fit(standardise(x_md), seed=0)
    if method.kind != "undirected":
        assert answer.moral_dd[0, 1] >= 1 > answer.moral_dd[[0, 1], 3].max()  # parents of 2, then no relation
    np.testing.assert_array_equal(answer.graph_dd, truth_dd | truth_dd.T if method.kind == "undirected" else truth_dd)


@pytest.mark.parametrize("name", ["lingam", "direct-lingam"])
def test_lingam_arrows_point_from_cause_to_effect(name, chain):
    graph_dd = make(name).fit(chain, seed=0).graph_dd
    assert [tuple(edge) for edge in np.argwhere(graph_dd).tolist()] == [(2, 4), (4, 0)]


def test_sortnregress_orders_by_predictability():
    rng = np.random.default_rng(0)
    cause = rng.standard_normal((500, 2))
    effect = cause.sum(axis=1, keepdims=True) + 0.3 * rng.standard_normal((500, 1))
    graph_dd = make("sortnregress").fit(standardise(np.hstack([effect, cause])), seed=0).graph_dd
    np.testing.assert_array_equal(graph_dd[:, 0], [0, 1, 1])


@pytest.mark.parametrize("seed", SEEDS)
def test_sortnregress_is_the_adaptive_lasso_of_its_authors(seed):
    """Their function, sort_regress of CausalDisco, with R² from regressions one by one."""
    from sklearn.linear_model import LassoLarsIC, LinearRegression

    x_md, _ = linear_table(seed, n_samples=60)
    n_variables = x_md.shape[1]
    others = [np.delete(np.arange(n_variables), k) for k in range(n_variables)]
    r2 = [LinearRegression().fit(x_md[:, o], x_md[:, k]).score(x_md[:, o], x_md[:, k]) for k, o in enumerate(others)]
    order, weight_dd = np.argsort(r2), np.zeros((n_variables, n_variables))
    for place in range(1, n_variables):
        before, target = order[:place], order[place]
        size = np.abs(LinearRegression().fit(x_md[:, before], x_md[:, target]).coef_)
        weight_dd[before, target] = LassoLarsIC("bic").fit(x_md[:, before] * size, x_md[:, target]).coef_ * size
    np.testing.assert_array_equal(make("sortnregress").fit(x_md, seed=0).graph_dd, weight_dd != 0)


def test_sortnregress_keeps_fewer_columns_of_noise_than_a_plain_lasso():
    from sklearn.linear_model import LassoLarsIC

    adaptive = plain = 0
    for x_md in np.random.default_rng(0).standard_normal((20, 100, 15)):
        y_m = x_md[:, 0] + x_md[:, 1] + np.random.default_rng(1).standard_normal(100)
        adaptive += (adaptive_lasso(x_md, y_m)[2:] != 0).sum()
        plain += (LassoLarsIC("bic").fit(x_md, y_m).coef_[2:] != 0).sum()
    assert adaptive < 0.8 * plain


def test_sortnregress_stands_copies(chain):
    answer = make("sortnregress").fit(np.insert(chain, 5, chain[:, 0], axis=1), seed=0)
    assert is_dag(answer.graph_dd)


def test_partial_correlation_holds_its_false_discoveries():
    """Of 60 tables of pure noise about one in twenty may have an edge."""
    noise = np.random.default_rng(0).standard_normal((60, 80, 6))
    with_edges = sum(make("partial-correlation").fit(standardise(x_md), seed=0).graph_dd.any() for x_md in noise)
    assert with_edges <= 8


def test_partial_correlation_pays_for_every_variable_it_conditions_on():
    """arctanh r = 1 in 20 rows: given eight others, nine degrees of freedom are left, and it may be chance."""
    strength_dd = np.zeros((10, 10))
    strength_dd[2, 5] = strength_dd[5, 2] = np.tanh(1.0)
    assert not link_pairs(strength_dd, n_samples=20, fdr=0.05).any()
    assert np.argwhere(link_pairs(strength_dd, n_samples=31, fdr=0.05)).tolist() == [[2, 5], [5, 2]]


def test_graphbam_reports_its_own_probabilities(chain):
    import graphbam as gb

    answer, result = make("graphbam").fit(chain, seed=0), gb.infer(chain, device="cpu")
    np.testing.assert_array_equal(answer.graph_dd, result.cpdag().adjacency)
    np.testing.assert_array_equal(answer.links_dd, result.skeleton().adjacency)
    np.testing.assert_allclose(answer.link_score_dd, result.probabilities[..., 1], atol=1e-6)
    assert (answer.score_dd <= answer.link_score_dd).all()
    np.testing.assert_allclose(answer.moral_dd, 1 - result.probabilities[..., 0], atol=1e-6)


# ── the registry ──────────────────────────────────────────────────────────────────────────────────────────


@each("name", BASELINES)
def test_registry_and_classes_agree(name):
    method = load_baseline(name)
    assert method.name == name
    assert method.kind in {"undirected", "cpdag", "dag"}
    if name not in AWAY:
        assert method.skip(200, 2 if name in PAIRS else 20) is None
        assert method.package is None or importlib.metadata.version(method.package)


def test_unknown_names_are_refused_with_near_ones():
    with pytest.raises(ConfigError, match="did you mean 'direct-lingam'"):
        load_baseline("directlingam")
    with pytest.raises(ConfigError, match="there are graphbam, "):
        load_baseline("?")


def test_names_are_listed_without_importing_anything():
    assert list_baselines()[0] == "graphbam"
    assert len(set(BASELINES.values())) == len(BASELINES)


# ── declining ─────────────────────────────────────────────────────────────────────────────────────────────


def test_missing_package_is_a_reason(monkeypatch):
    monkeypatch.setattr(Glasso, "module", "no_such_module")
    assert Glasso().skip(200, 10) == (
        "needs the package scikit-learn, which is not installed: pip install graphbam[benchmark]"
    )


def test_missing_weights_are_a_reason(monkeypatch):
    from graphbam.benchmarks.baselines import _weights

    monkeypatch.setattr(_weights, "FOLDER", Path("nowhere"))
    assert "'edges-paper', which are in runs/weights" in load_baseline("graphbam-paper").skip(200, 10)


@each(("name", "shape"), [("glasso", (9, 3)), ("lingam", (10, 10)), ("sortnregress", (10, 10))])
def test_too_few_samples_are_a_reason(name, shape):
    assert "samples" in load_baseline(name).skip(*shape)
    assert load_baseline(name).skip(shape[0] + 1, shape[1]) is None


def test_resit_needs_no_more_samples_than_variables():
    """It prunes by tests of independence; the lasso of its relatives needs more."""
    method = load_baseline("resit", n_trees=3)
    assert method.skip(10, 10) is None
    assert is_dag(method.fit(standardise(np.random.default_rng(0).standard_normal((6, 6))), seed=0).graph_dd)


# ── isolation, answers, grading ───────────────────────────────────────────────────────────────────────────


@each("path", sorted(Path(baselines.__file__).parent.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_packages_are_loaded_in_isolation(path):
    """Some change global state when they are imported, so `fit` imports them inside `isolated` only."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    fits = [node for node in functions if node.name == "fit"]
    early = [line for fit in fits for line in fit.body if isinstance(line, ast.Import | ast.ImportFrom)]
    loaded = {getattr(line, "module", None) or line.names[0].name for line in early}
    assert loaded <= {"networkx", "torch"}  # graphbam itself has them


def misbehave():
    print("noise")
    warnings.warn("noise", stacklevel=1)
    warnings.formatwarning = str
    warnings.simplefilter("error")
    logging.basicConfig(level=logging.DEBUG, force=True)
    logging.error("noise")
    np.set_printoptions(precision=1)
    np.seterr(all="raise")
    torch.set_default_dtype(torch.float16)
    os.environ["GRAPHBAM_TEST"] = "1"
    return random.random(), np.random.rand(), torch.rand(1).item(), torch.get_num_threads()  # noqa: NPY002


def misbehave_and_fail():
    try:
        with isolated(seed=5):
            drawn = misbehave()
            raise KeyError
    except KeyError:
        return drawn


def test_isolation_undoes_everything_even_after_an_error(capfd):
    from threadpoolctl import threadpool_info

    torch.set_num_threads(2)
    try:
        before = global_state()
        with isolated(seed=5):
            first = misbehave()
            assert all(pool["num_threads"] == 1 for pool in threadpool_info())
        second = misbehave_and_fail()
        assert global_state() == before
    finally:
        torch.set_num_threads(1)
    assert first == second
    assert first[-1] == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("score", "words"), [(np.zeros((3, 3)), "score_dd has shape"), ([[0, np.nan], [0, 0]], "did not converge")]
)
def test_answers_without_finite_scores_are_refused(score, words):
    with pytest.raises(GraphError, match=words):
        Answer(np.zeros((2, 2), np.int8), score)


def test_answers_that_are_no_graph_are_refused():
    with pytest.raises(GraphError, match="entries must be 0 or 1"):
        Answer(np.array([[0, 0.4], [0, 0]]), np.zeros((2, 2)))


@pytest.mark.parametrize("seed", SEEDS)
def test_acyclic_part_is_a_largest_one(seed):
    """Adding any edge that was left out closes a cycle, and no edge is below the threshold."""
    weight_dd = np.random.default_rng(seed).uniform(-1, 1, (7, 7)) * (1 - np.eye(7))
    graph_dd = keep_acyclic(weight_dd, 0.4)
    assert is_dag(graph_dd)
    assert (np.abs(weight_dd[graph_dd == 1]) > 0.4).all()
    for edge in np.argwhere((np.abs(weight_dd) > 0.4) & (graph_dd == 0)):
        more_dd = graph_dd.copy()
        more_dd[*edge] = 1
        assert not is_dag(more_dd)


def test_graded_scores_put_the_graph_first_and_keep_the_order(chain):
    strength_dd = partial_correlations(chain)
    graph_dd = np.zeros((5, 5), np.int8)
    graph_dd[[0, 1], [1, 3]] = 1  # the weakest pairs
    score_dd = grade(graph_dd, strength_dd)
    assert score_dd[graph_dd == 1].min() >= 1 > score_dd[graph_dd == 0].max()
    assert (score_dd[0, 1] > score_dd[1, 3]) == (strength_dd[0, 1] > strength_dd[1, 3])
    np.testing.assert_array_equal(score_dd[graph_dd == 0], strength_dd[graph_dd == 0])


# ── methods by name, set, pattern, or as a class of one's own ───────────────────────────────────────────────


def names(*words):
    return [method.name for method in resolve_methods(words)]


def test_sets_patterns_and_names_are_joined_without_repeats():
    assert names("all") == list_baselines()
    assert names("pc*", "pc", "zero") == [*[name for name in list_baselines() if name.startswith("pc")], "zero"]
    assert names("quick") == list(METHOD_SETS["quick"])


def test_a_class_of_ones_own_is_a_method():
    assert resolve_methods(["toys:Noise"]) == [Method("toys:Noise", "toy-noise", "undirected")]
    assert load_baseline("toys:Noise").title == "Noise"


def test_classes_that_say_too_little_are_refused(monkeypatch):
    import toys

    said = {"name": "mine", "title": "Mine", "kind": "cpdag"}
    halves = {
        "has no title": (toys.Baseline, {"name": "mine", "kind": "dag"}),
        "has kind='directed'; choose from undirected, cpdag, dag": (toys.Correlation, said | {"kind": "directed"}),
        "needs a function fit": (toys.Baseline, said),
    }
    for message, (base, attributes) in halves.items():
        monkeypatch.setattr(toys, "Mine", type("Mine", (base,), attributes), raising=False)
        with pytest.raises(ConfigError, match=f"method 'toys:Mine' .*{message}"):
            resolve_methods(["toys:Mine"])


@each(
    ("word", "message"),
    [
        ("gess", "did you mean 'ges'"),
        ("zz*", "no method is called"),
        ("toys:Nobody", "cannot be loaded: module 'toys' has no attribute 'Nobody'"),
        ("nowhere:Noise", "cannot be loaded: No module named 'nowhere'"),
        ("toys:np", "is no class derived from"),
        ("graphbam.benchmarks.baselines.zero:Zero", "are both called 'zero'"),
    ],
)
def test_what_is_no_method_is_refused(word, message):
    with pytest.raises(ConfigError, match=message):
        resolve_methods(["zero", word])
    with pytest.raises(ConfigError, match="no method is asked for"):
        resolve_methods([])
