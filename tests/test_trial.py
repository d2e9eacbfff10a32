"""Answers that once misled people who tried graphbam on ordinary tables; each is a table anybody can make, and what a
careful reader may conclude from it. Every one of these failed before it was mended."""

import itertools
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from graphbam.errors import GraphbamError

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TARGETS = (0.01, 0.05, 0.1, 0.2)


def links(graph):
    """Pairs that are joined, whichever way."""
    return (graph.adjacency | graph.adjacency.T) > 0


def chain(seed, missing=0.0, n_rows=500):
    """x → y → z and a bystander; some cells missing at random."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=n_rows), rng.normal(size=(3, n_rows))
    y = x + 0.6 * noise[0]
    table = pd.DataFrame({"x": x, "y": y, "z": y + 0.6 * noise[1], "other": noise[2]})
    return table.mask(rng.random(table.shape) < missing)


def told(result):
    """Everything a user is told without asking."""
    return " ".join([repr(result), *map(str, result.warnings)])


@pytest.fixture(scope="module")
def diabetes():
    return gb.infer(pytest.importorskip("sklearn.datasets").load_diabetes(as_frame=True).frame)


@pytest.fixture(scope="module")
def cells():
    """Measures of tumour cells, many of them nearly the same."""
    return gb.infer(pytest.importorskip("sklearn.datasets").load_breast_cancer(as_frame=True).data.iloc[:200, :20])


def test_1_a_looser_target_never_has_fewer_links(cells):
    graphs = [links(cells.cpdag(fdr=fdr)) for fdr in TARGETS]
    assert all((strict <= loose).all() for strict, loose in itertools.pairwise(graphs))
    assert graphs[0].sum() < graphs[-1].sum()


def test_2_missing_cells_make_no_links_and_are_told():
    for seed in range(3):
        table = chain(seed, missing=0.1)
        result = gb.infer(table)
        between = result.probabilities[0, 2, 1]
        assert between < 0.35, (seed, between)
        assert result.probabilities[0, 1, 1] > 0.9
        assert "missing" in told(result)
        assert f"{int(table.isna().sum().sum())}" in told(result)


def test_3_an_arrow_less_likely_than_its_reverse_is_marked(diabetes, cells):
    against, dense = 0, {"n_variables": 12, "n_samples": 60, "mechanism": "linear", "degree": 4}
    few_rows = [gb.infer(gb.simulate(seed=seed, **dense)[1]) for seed in range(8)]
    for result, objective in itertools.product((diabetes, cells, *few_rows), ("links", "shd")):
        graph = result.cpdag(objective=objective)
        p_dd = result.compelled_probabilities
        drawn = (graph.adjacency > 0) & (graph.adjacency.T == 0)
        against_dd = drawn & (p_dd < p_dd.T)
        assert graph.forced[against_dd].all()
        against += against_dd.sum()
    assert against > 0  # or nothing was tried


def test_4_through_a_common_child_only_says_what_it_means(diabetes):
    p_dd3 = diabetes.probabilities
    said = set(diabetes.moral_pairs().undirected_edges())
    names = diabetes.names
    meant = {
        (names[i], names[j]) for i, j in zip(*np.triu_indices(len(names), 1), strict=True) if p_dd3[i, j, 2] >= 0.5
    }
    assert said == meant
    noise = gb.infer(np.random.default_rng(0).normal(size=(500, 50)))
    assert noise.moral_pairs().undirected_edges() == []


def test_5_the_defaults_have_the_same_links(diabetes):
    assert np.array_equal(links(diabetes.skeleton()), links(diabetes.cpdag()))
    assert np.array_equal(links(diabetes.skeleton()), links(diabetes.dag()))


def test_6_a_mediator_does_not_vanish():
    table = chain(0)
    table.loc[np.random.default_rng(1).random(len(table)) < 0.4, "y"] = np.nan
    result = gb.infer(table)
    assert "y" in result.names
    assert result.probabilities[0, 2, 1] < 0.5
    assert "missing" in told(result)
    walk = np.cumsum(np.random.default_rng(0).normal(size=(203, 5)), axis=0)  # rows that follow one another
    assert "203 rows count as" in told(gb.infer(walk))


def test_7_what_does_not_fit_is_refused_before_anything_is_allocated(monkeypatch):
    from graphbam.nn import cost

    monkeypatch.setattr(cost, "free_memory", lambda *args: 4 * 2**30)
    with pytest.raises(GraphbamError, match=r"128\.\d GB of memory, and 4\.3 GB are free"):
        cost.check_memory(gb.load_weights("edges").network.config, 1, 50, 10_000)


@pytest.mark.skipif(not DATA.exists(), reason=f"third-party tables are not at {DATA}")
def test_8_off_the_simulator_a_target_is_kept():
    """Every eighth of the small tables; runs/third_party.py has the numbers of all."""
    kept = false = 0
    for path in small_tables()[::8]:
        truth = pd.read_csv(path.parent / "graph.csv", dtype=str).iloc[:, :2]
        pairs = {frozenset(pair) for pair in truth.itertuples(index=False)}
        result = gb.infer(pd.read_csv(path).iloc[:600])
        said = [frozenset(map(str, pair)) for pair in result.skeleton(fdr=0.05).undirected_edges()]
        kept += len(said)
        false += sum(pair not in pairs for pair in said)
    assert kept > 50
    assert false / kept <= 0.05, (false, kept)


def small_tables():
    """Third-party tables of up to 20 variables."""
    paths = sorted(DATA.glob("*/data.csv.gz"))
    return [path for path in paths if len(pd.read_csv(path, nrows=1).columns) <= 20]


@pytest.mark.parametrize("spell", ["${:.2f}", "{:.2f} €", "{:.1%}"])
def test_9_numbers_with_a_sign_are_numbers(spell):
    table = chain(0)
    spelt = table.assign(x=[spell.format(value) for value in table["x"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = gb.infer(spelt)
    assert result.probabilities[0, 1, 1] > 0.9
    coded = chain(1).assign(z=lambda t: t["z"].where(t.index % 9 > 0, -999))
    result = gb.infer(coded)
    assert "−999" in told(result)
    assert result.probabilities[1, 2, 1] > 0.9
