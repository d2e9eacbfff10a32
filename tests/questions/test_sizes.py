import numpy as np
import pandas as pd
import pytest
import torch

import graphbam as gb
from beliefs import NAMES, beliefs, make_result
from cases import each
from graphbam.errors import ResultError
from graphbam.questions.rows import Rows
from graphbam.questions.sizes import _take_sign, find_unordered, measure_pair
from graphbam.tables.gaps import fill_gaps


def standardised(*columns):
    x_md = np.column_stack(columns)
    return (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)


@each("slope", [-1.5, -0.4, 0.4, 1.5])
def test_the_interval_holds_the_coefficient_of_a_linear_world(slope):
    held = []
    for seed in range(60):
        x, z, e = np.random.default_rng(seed).normal(size=(3, 300))
        x = x + z
        rows = Rows(np.column_stack([x, slope * x + z + e, z]), 300)
        size, low, high, sign = measure_pair(rows, 0, 1, [2])
        held.append(low < slope < high)
        assert sign == ("+" if slope > 0 else "−")
        assert low < size < high
    assert np.mean(held) > 0.85


@each("gappy", [[0], [1], [2], [0, 1, 2, 3]], ids=str)
def test_the_interval_holds_the_coefficient_where_cells_were_filled_in(gappy):
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        z, e, f, g = rng.normal(size=(4, 400))
        x = 0.7 * z + e
        y = 0.5 * x + 0.6 * z + f
        x_md, gaps = np.column_stack([x, y, z, 0.8 * y + g]), np.zeros((400, 4), dtype=bool)
        gaps[:, gappy] = rng.random((400, len(gappy))) < 0.3
        filled = fill_gaps(torch.from_numpy(x_md), torch.from_numpy(~gaps)).numpy()
        _, low, high, _ = measure_pair(Rows(filled, 400, gaps), 0, 1, [2])
        held.append(low < 0.5 < high)
    assert np.mean(held) > 0.85


def test_sizes_leave_filled_cells_out(rng):
    x, e = rng.normal(size=(2, 300))
    frame = pd.DataFrame({"x": x, "y": x + 0.5 * e, "flat": 1.0})
    frame.loc[rng.random(300) < 0.4, "x"] = np.nan
    result = gb.infer(frame)
    whole = frame["x"].notna().to_numpy()
    assert result.filled.shape == result.sample.shape
    assert result.filled[:, 0].sum() == (~whole).sum()
    assert not result.filled[:, 1:].any()
    y = (frame["y"] - frame["y"].mean()) / frame["y"].std()
    found = np.sort(result.sample[~result.filled[:, 0], 1])
    np.testing.assert_allclose(found, np.sort(y[whole]), atol=0.05)  # rows may have another order
    assert "filled" not in result.to_dict()


@each("n_ones", [1, 2, 4])
def test_the_interval_holds_the_coefficient_of_a_rare_value(n_ones):
    """The few rows draw the line to themselves: by how far they lie from it, intervals were next to nothing."""
    held, signs = [], []
    for seed in range(200):
        e, f = np.random.default_rng(seed).normal(size=(2, 100))
        rare = (np.arange(100) < n_ones) * 1.0
        rows = Rows(np.column_stack([rare, rare + e, f]), 100)
        _, low, high, _ = measure_pair(rows, 0, 1, [])
        held.append(low < 1 < high)
        signs.append(measure_pair(rows, 0, 2, [])[3])
    assert np.mean(held) > 0.9
    assert signs.count("unclear") > 180


def test_the_interval_holds_the_coefficient_of_few_rows_with_uneven_noise():
    held = []
    for seed in range(400):
        x, e = np.random.default_rng(seed).normal(size=(2, 20))
        _, low, high, _ = measure_pair(Rows(np.column_stack([x, 0.5 * x + (0.3 + abs(x)) * e]), 20), 0, 1, [])
        held.append(low < 0.5 < high)
    assert np.mean(held) > 0.88


@each("share", [0.2, 0.5, 0.8])
def test_rows_in_which_an_experiment_set_the_effect_say_nothing_of_its_causes(share):
    rng = np.random.default_rng(int(10 * share))
    x, e, f, own = rng.normal(size=(4, 600))
    mask = np.zeros((600, 3), dtype=int)
    mask[:, 1] = rng.random(600) < share
    y = np.where(mask[:, 1], own, 0.8 * x + 0.6 * e)
    result = gb.infer(np.column_stack([x, y, 0.8 * y + 0.6 * f]), interventions=mask)
    table = result.effects().set_index(["a", "edge", "b"])
    for pair in (("x0", "->", "x1"), ("x1", "->", "x2")):
        assert table.loc[pair, "low"] < 0.8 < table.loc[pair, "high"]
    assert result.was_set.sum(axis=0).tolist() == mask.sum(axis=0).tolist()
    assert "was_set" not in result.to_dict()


def test_an_open_link_is_measured_where_neither_was_set(rng):
    set_md = np.zeros((200, 2), dtype=bool)
    set_md[:150] = True
    x_md = rng.normal(size=(200, 2))
    x_md[150:, 1] = x_md[150:, 0]
    x_md[150:] += 0.1 * rng.normal(size=(50, 2))
    rows = Rows(x_md, 200, set_md=set_md)
    assert measure_pair(rows, 0, 1, [], is_arrow=False)[0] > 0.9
    assert np.isnan(measure_pair(Rows(x_md, 200, set_md=np.ones_like(set_md)), 0, 1, [])[0])


def test_sizes_are_in_deviations_of_what_was_measured(rng):
    """Cells that were filled in spread less: half of a column like that made sizes wrong by a fifth."""
    x, e, f = rng.normal(size=(3, 500))
    x_md = np.column_stack([x, 0.5 * x + e, 0.5 * x + f])
    gaps = np.zeros((500, 3), dtype=bool)
    gaps[:, 0] = rng.random(500) < 0.5
    result = gb.infer(np.where(gaps, np.nan, x_md))
    rows = Rows.of(result)
    there = x_md[~gaps[:, 0]]
    size = measure_pair(rows, 0, 1, [])[0]
    slope = np.polyfit(there[:, 0], there[:, 1], 1)[0]
    assert size == pytest.approx(slope * there[:, 0].std() / x_md[:, 1].std(), rel=0.01)
    assert rows.x_md[:, 1:] == pytest.approx(result.sample[:, 1:])


def test_too_few_measured_rows_have_no_size(rng):
    gaps = np.ones((100, 2), dtype=bool)
    gaps[:2] = False
    assert np.isnan(measure_pair(Rows(rng.normal(size=(100, 2)), 100, gaps), 0, 1, [])[:3]).all()


SHAPES = {
    "square": lambda x: x**2,
    "cosine": lambda x: np.cos(2 * x),
    "sawtooth": lambda x: x - 2 * np.round(x / 1.5),
    "absolute": lambda x: np.abs(x - 0.3),
}


@each("shape", SHAPES.values(), ids=SHAPES)
def test_what_rises_and_falls_has_no_sign(shape, rng):
    x, z, e = rng.normal(size=(3, 600))
    rows = Rows(standardised(x + z, shape(x + z) + z + 0.3 * e, z), 600)
    assert measure_pair(rows, 0, 1, [2])[3] in ("not monotone", "unclear")
    assert measure_pair(Rows(standardised(x, shape(x) + 0.2 * e), 600), 0, 1, [])[3] == "not monotone"


@each("shape", [np.tanh, np.exp, lambda x: x**3, lambda x: x > 0, lambda x: -np.round(x)])
def test_what_only_rises_or_falls_has_a_sign(shape, rng):
    x, e = rng.normal(size=(2, 600))
    sign = measure_pair(Rows(standardised(x, shape(x) + 0.3 * e), 600), 0, 1, [])[3]
    assert sign == ("−" if shape(1.2) < shape(-1.2) else "+")


def test_two_values_cannot_be_bent(rng):
    for _ in range(20):
        sex, z = rng.integers(2, size=300) * 1.0, rng.normal(size=300)
        rows = Rows(standardised(sex, z**2 + sex + rng.normal(size=300), z), 300)
        assert measure_pair(rows, 0, 1, [2])[3] == "+"


def test_independent_variables_rarely_have_a_sign():
    signs = []
    for seed in range(200):
        signs.append(measure_pair(Rows(np.random.default_rng(seed).normal(size=(150, 2)), 150), 0, 1, [])[3])
    assert signs.count("unclear") > 180
    assert signs.count("not monotone") < 4


def test_open_links_read_the_same_from_both_sides(rng):
    rows = Rows(rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3)), 200)
    there, back = (measure_pair(rows, i, j, [2], is_arrow=False) for i, j in ((0, 1), (1, 0)))
    assert there[:3] == pytest.approx(back[:3])
    assert there[3] == back[3]
    assert there[0] == pytest.approx(rows.associate(0, 1, [2]).pearson)


@each("tie", [0.3, 0.9, 0.99])
def test_intervals_of_correlations_hold_them_and_end_at_one(tie):
    held = []
    for seed in range(100):
        x, e = np.random.default_rng(seed).normal(size=(2, 12))
        size, low, high, _ = measure_pair(
            Rows(np.column_stack([x, tie * x + np.sqrt(1 - tie**2) * e]), 12), 0, 1, [], is_arrow=False
        )
        assert -1 <= low <= size <= high <= 1
        held.append(low <= tie <= high)
    assert np.mean(held) > 0.8


@each("tie", [0.0, 0.6, 0.9, 0.99])
def test_intervals_of_correlations_are_as_wide_as_theory_says(tie):
    """Of normal variables Fisher's transformation has the standard error 1 / √M, however strong the correlation."""
    held, width = [], []
    for seed in range(200):
        x, e = np.random.default_rng(seed).normal(size=(2, 200))
        rows = Rows(np.column_stack([x, tie * x + np.sqrt(1 - tie**2) * e]), 200)
        _, low, high, _ = measure_pair(rows, 0, 1, [], is_arrow=False)
        held.append(low <= tie <= high)
        width.append(np.arctanh(high) - np.arctanh(low))
    assert 0.9 < np.mean(held) < 0.99
    assert np.mean(width) == pytest.approx(2 * 1.96 / np.sqrt(200), rel=0.05)


def test_arrows_are_freed_of_other_parents_and_of_nothing_else(rng):
    a, b, d, e = rng.normal(size=(4, 500))
    c = a + 2 * b + d
    x_md = np.column_stack([a, b, c, d + a, e])
    table = beliefs("a>c b>c", sample=x_md).effects().set_index(["a", "b"])
    assert table.loc[("a", "c"), "given"] == ("b",)
    assert table.loc[("b", "c"), "size"] == pytest.approx(2, abs=0.2)
    assert (table["edge"] == "->").all()


def test_the_table_has_the_links_of_the_graph(sachs):
    table, graph = sachs.effects(fdr=0.1), sachs.graph(fdr=0.1)
    found = set(table[["a", "edge", "b"]].itertuples(index=False, name=None))
    wanted = {(a, "->", b) for a, b in graph.directed_edges()} | {(a, "--", b) for a, b in graph.undirected_edges()}
    assert found == wanted
    assert set(table["sign"]) <= {"+", "−", "not monotone", "unclear"}
    clear = table[table["sign"].isin(["+", "−"])]
    assert ((clear["low"] > 0) | (clear["high"] < 0)).all()


def test_what_is_held_are_parents_and_what_open_links_join(sachs):
    """As docs/questions.md says: of b for an arrow a → b, of both for an open link."""
    graph = sachs.graph(fdr=0.2)
    before = {(a, b) for a, b in graph.directed_edges()} | {
        pair for a, b in graph.undirected_edges() for pair in ((a, b), (b, a))
    }
    for line in sachs.effects(fdr=0.2).itertuples():
        ends = {line.b} if line.edge == "->" else {line.a, line.b}
        assert set(line.given) == {a for a, b in before if b in ends} - {line.a, line.b}


def test_copies_have_no_size(rng):
    x = rng.normal(size=100)
    table = make_result({("a", "b"): 0.9, ("b", "c"): 0.9, ("a", "c"): 0.9}, sample=np.column_stack([x] * 5)).effects()
    assert table["size"].isna().all()
    assert set(table["sign"]) == {"unclear"}


def test_what_never_varies_has_no_size(rng):
    sample = np.column_stack([np.ones(100), *rng.normal(size=(4, 100))])
    table = make_result({("a", "b"): 0.9}, sample=sample).effects()
    assert table["size"].isna().all()
    assert set(table["sign"]) == {"unclear"}


def answers(n_rows=400):
    """Two answers of people, of which one falls as the other rises, and a category."""
    x, y, z, e = np.random.default_rng(0).normal(size=(4, n_rows))
    y = y - 1.5 * x
    words = np.array(["strongly disagree", "disagree", "neutral", "agree", "strongly agree"])
    cut = {name: words[np.digitize(v, np.quantile(v, [0.2, 0.4, 0.6, 0.8]))] for name, v in {"x": x, "y": y}.items()}
    z = z + y
    return pd.DataFrame(cut).assign(z=z, tree=np.array(["fir", "oak", "elm"])[np.digitize(z + e / 2, [-1, 1])])


def test_codes_without_order_have_no_sign_and_scales_have_theirs():
    result = gb.infer(answers(), encode=True)
    table = result.effects()
    ends = table[["a", "b"]].apply(frozenset, axis=1)
    of_tree = table[["tree" in pair for pair in ends]]
    assert len(of_tree)
    assert (of_tree["sign"] == "no order").all()
    assert (of_tree["size"] > 0).all()
    assert (of_tree["low"] < of_tree["high"]).all()
    assert table.loc[ends == {"x", "y"}, "sign"].tolist() == ["−"]
    assert find_unordered(result) == {"tree"}


@each("sign, told", [("+", "no order"), ("unclear", "unclear"), ("not monotone", "no order")])
def test_sizes_without_sign_keep_their_limits(sign, told):
    line = {"size": -0.3, "low": -0.5, "high": 0.1, "sign": sign}
    assert _take_sign(line) == {"size": 0.3, "low": -0.1, "high": 0.5, "sign": told}


def test_a_result_without_rows_or_links_says_so(tmp_path):
    with pytest.raises(ResultError, match="keeps no rows"):
        make_result({}).effects()
    empty = make_result({}, sample=np.random.default_rng(0).normal(size=(50, len(NAMES)))).effects()
    assert len(empty) == 0
    assert "sign" in empty
    empty_again = gb.Result.from_dict(make_result({}).to_dict())
    with pytest.raises(ResultError, match="Infer it again"):
        empty_again.effects()
