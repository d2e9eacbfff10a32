"""Which cells were set: three ways to say it, one answer; what cannot be meant is refused in one sentence."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from cases import each
from graphbam.errors import Setting, TableError
from graphbam.tables.config import PrepareConfig
from graphbam.tables.interventions import read_experiment
from graphbam.tables.prepare import prepare
from graphbam.tables.read import read_table

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 3)), columns=["a", "b", "c d"])
TARGETS = ["", "b", "b; c d", "c d", None, "none", "a,b", "b", ""]
SET = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 0]])


def with_column(place=3):
    frame = FRAME.copy()
    frame.insert(place, "target", TARGETS)
    return frame


def tables_by_target():
    """The same rows, one table for each set of targets, with the order of rows that results."""
    named = {"": [0, 4, 5, 8], "b": [1, 7], "b; c d": [2], "c d": [3], ("a", "b"): [6]}
    order = [row for rows in named.values() for row in rows]
    return {targets: FRAME.iloc[rows, ::-1] for targets, rows in named.items()}, order


@each("data, interventions", {
    "an array": (FRAME, SET),
    "booleans": (FRAME, SET.astype(bool)),
    "a table": (FRAME, pd.DataFrame(SET, columns=FRAME.columns)),
    "a table in another order": (FRAME, pd.DataFrame(SET, columns=FRAME.columns)[["c d", "a", "b"]]),
    "a column": (with_column(), "target"),
    "a first column": (with_column(0), "target"),
    "a file": (io.StringIO(with_column(1).to_csv(index=False)), "target"),
    "lists": (FRAME.assign(target=[[], ["b"], ["b", "c d"], ("c d",), None, [], ["a", "b"], ["b"], [""]]), "target"),
    "marks too many between targets": (FRAME.assign(target=[f"{cell or ''};" for cell in TARGETS]), "target"),
    "an array and a file": (io.StringIO(FRAME.to_csv(index=False)), SET),
}.values())  # fmt: skip
def test_every_way_to_say_it_sets_the_same_cells(data, interventions):
    table = read_experiment(data, interventions)
    assert table.names == ("a", "b", "c d")
    assert np.allclose(table.x_md, FRAME)
    assert np.array_equal(table.set_md, SET > 0)
    assert "in 5 of 9 rows, columns 'a', 'b', 'c d'" in table.changes[-1]


@pytest.mark.parametrize("labelled", [False, True])
def test_a_mask_may_lie_in_a_file(tmp_path, labelled):
    path = tmp_path / "targets.csv"
    pd.DataFrame(SET, columns=FRAME.columns)[["c d", "a", "b"]].to_csv(path, index=False)
    frame = FRAME.set_axis([f"row {k}" for k in range(9)]) if labelled else FRAME
    assert np.array_equal(read_experiment(frame, path).set_md, SET)
    with pytest.raises(TableError, match="names the column"):
        read_experiment(frame, str(path))


def test_columns_set_in_a_handful_of_rows_are_warned_about():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    told = read_experiment(frame.assign(target=["a"] * 5 + ["b"] + [""] * 34), "target").warnings
    assert told == (
        "experiments set 'b' in 1 row only, which hardly tells which way its links point: arrows at it are little more "
        "than guesses",
    )
    told = read_experiment(frame.assign(target=["a; b"] + ["b"] * 3 + ["c"] * 5 + [""] * 31), "target").warnings
    assert "set 'a' in 1 row, 'b' in 4 rows only" in told[0]
    assert "arrows at them" in told[0]
    assert not read_experiment(frame.assign(target=["a"] * 5 + [""] * 35), "target").warnings


def test_columns_set_in_every_row_are_better_put_first():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    (told,) = read_experiment(frame.assign(target="b"), "target").warnings
    assert told == (
        "column 'b' was set in every row, and no row shows what happens otherwise: links are surer without these marks "
        "and with an order in time that has it first (tiers, on the command line --tiers)"
    )
    (told,) = read_experiment(frame.assign(target="b; c"), "target").warnings
    assert "columns 'b', 'c' were set in every row" in told
    assert "has them first" in told
    assert not read_experiment(frame.assign(target=["b"] * 35 + [""] * 5), "target").warnings


@pytest.mark.parametrize("alone", [False, True])
def test_tables_by_target_are_joined(alone):
    tables, order = tables_by_target()
    data = None if not alone else tables.pop("")
    table = read_experiment(data, tables)
    by_name = [table.names.index(name) for name in FRAME.columns]
    assert np.allclose(table.x_md[:, by_name], FRAME.iloc[order])
    assert np.array_equal(table.set_md[:, by_name], SET[order] > 0)


LABELLED = FRAME.set_axis(pd.Index([f"plot {k}" for k in range(9)]))
MASK = pd.DataFrame(SET, columns=FRAME.columns, index=LABELLED.index)


@each("data, mask", {
    "labels in another order": (LABELLED, MASK.iloc[::-1]),
    "a table in another order": (LABELLED.iloc[::-1], MASK),
    "numbered rows in another order": (FRAME.iloc[::-1], MASK.reset_index(drop=True)),
}.values())  # fmt: skip
def test_rows_with_labels_are_matched_by_them(data, mask):
    table = read_experiment(data, mask)
    order = [FRAME["a"].tolist().index(cell) for cell in table.x_md[:, 0]]
    assert np.array_equal(table.set_md, SET[order] > 0)
    assert "rows matched by their labels" in table.changes[-1]
    files = [io.StringIO(one.to_csv()) for one in (LABELLED, MASK.iloc[::-1])]
    assert np.array_equal(read_experiment(*files).set_md, SET > 0)


@each("data, mask, says", {
    "other labels": (LABELLED, MASK.rename(index={"plot 3": "plot 33"}), "'plot 33' is in one of them only"),
    "no labels in the mask": (LABELLED, MASK.reset_index(drop=True), "pass the mask as an array to match rows by"),
    "no labels in the table": (FRAME, MASK, "other row labels than the table"),
    "rows taken out of a table": (FRAME.iloc[1:], MASK.reset_index(drop=True).iloc[:-1], "table: 0 is in one of"),
    "labels that repeat": (
        LABELLED.rename(index={"plot 3": "plot 2"}), MASK.rename(index={"plot 3": "plot 2"}).iloc[::-1], "some repeat"
    ),
}.values())  # fmt: skip
def test_rows_that_cannot_be_matched_are_refused(data, mask, says):
    with pytest.raises(TableError, match=says):
        read_experiment(data, mask)
    assert np.array_equal(read_experiment(data, mask.to_numpy()).set_md, mask.to_numpy() > 0)


def test_columns_that_share_a_name_are_as_many_as_in_a_table_alone():
    frame = FRAME.set_axis(["a", "b", "b"], axis=1)
    table = read_experiment(None, {"": frame, "b_2": frame})
    assert table.names == ("a", "b", "b_2")
    assert np.allclose(table.x_md, np.concatenate([FRAME, FRAME]))
    assert np.array_equal(table.set_md.any(axis=0), [False, False, True])
    assert "share a name" in table.changes[0]


def test_a_column_left_out_is_no_target_any_more():
    table = read_experiment(FRAME, SET, drop="b")
    assert np.array_equal(table.set_md, SET[:, [0, 2]] > 0)


@each("b", ["b", "B", "b_KO", "b-/-", "b knockout", "b (inhibitor)"])
def test_a_column_that_seems_to_mean_others_is_told_of_with_how_to_write_it(b):
    frame = with_column().replace("b", b).replace("", "wild type")
    (warning,) = [said for said in read_table(frame, encode=True).warnings if "names other columns" in said]
    assert ("write just the name" in warning) == (b != "b")


def test_a_column_of_other_words_is_no_target():
    frame = with_column().replace("b", "b12")
    assert not any("names other columns" in said for said in read_table(frame, encode=True).warnings)


def test_nothing_set_is_told():
    table = read_experiment(FRAME, 0 * SET)
    assert table.set_md is None
    assert "no cell was set" in table.warnings[-1]


@each("data, interventions, says", [
    (FRAME, "targets", "the column 'targets', which the table does not have"),
    (with_column().replace("b", "bb"), "target", "the target 'bb', which .* Did you mean 'b'.* Say which columns"),
    (with_column().replace("b", "B KO"), "target", "the target 'B KO', which seems to mean 'b': write just the name"),
    (FRAME, SET[:5], "has 5 rows, the table 9"),
    (FRAME, 0 * SET + 1, "marks every cell of the table as set"),
    (FRAME, SET[:, :2], "has 2 columns, the table 3"),
    (FRAME, SET * 2, r"holds 2(\.0)?; a mask has 1 where a cell was set"),
    (FRAME, pd.DataFrame(SET, columns=["a", "b", "c"]), "the column 'c', which the table does not have"),
    (None, SET, "must be a mapping from targets to tables, and these are a ndarray"),
    (FRAME, {"": FRAME}, "given twice"),
    (None, {}, "holds no table"),
    (None, {"": FRAME, "a": FRAME[["a", "b"]]}, "has other columns than the first one: 'c d'"),
    (None, None, "None is not a table"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(data, interventions, says):
    with pytest.raises(TableError, match=says):
        read_experiment(data, interventions)


def test_marks_follow_their_cells_through_preparing():
    """Rows and columns are dropped, cells filled and rows reordered: every mark stays with its cell."""
    rng = np.random.default_rng(1)
    x_md = rng.normal(size=(60, 4)) + 10 * np.arange(240).reshape(60, 4)  # every value says where it was
    set_md = rng.random((60, 4)) < 0.3
    gaps_md = rng.random((60, 4)) < 0.1
    frame = pd.DataFrame(np.where(gaps_md, np.nan, x_md), columns=list("abcd")).assign(e=1.0)
    frame.loc[7, list("abcde")] = np.nan  # a row without any value
    ready = prepare(read_experiment(frame, np.column_stack([set_md, np.zeros(60)])), PrepareConfig(missing="impute"))
    assert ready.names == tuple("abcde")
    assert len(ready.x_md) == 59
    kept = np.delete(np.arange(60), 7)
    for k in range(4):  # columns are scaled, not bent: the rank of an observed value tells its row
        seen, known = ~ready.missing_md[:, k], kept[~gaps_md[kept, k]]
        by_value = known[x_md[known, k].argsort()]
        rows = by_value[ready.x_md[seen, k].argsort().argsort()]
        assert np.array_equal(ready.set_md[seen, k], set_md[rows, k])


def test_rows_of_an_experiment_count_in_full():
    """Sorted by what was done, neighbours resemble each other; that makes no time series of them."""
    rng = np.random.default_rng(2)
    x_md = rng.normal(size=(300, 4)) + 4 * np.repeat([0, 1, -1], 100)[:, None]
    set_md = np.zeros((300, 4))
    assert prepare(read_experiment(x_md, None)).worth(300) < 150
    set_md[100:, 0] = 1
    assert prepare(read_experiment(x_md, set_md)).worth(300) == 300


@each("n_replicates", [1, 2, 3, 5])
def test_few_rows_of_each_experiment_count_in_full(n_replicates):
    """Without the mean of three rows, what is left of each goes against its neighbours, and posed as a series."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.arange(300 // n_replicates), n_replicates)
    set_md = kinds[:, None] % 100 == np.arange(100)
    set_md |= (kinds[:, None] // 100 + kinds[:, None]) % 97 == np.arange(100)  # no two experiments alike
    x_md = np.where(set_md, 3.0, rng.normal(size=(300, 100)))
    assert prepare(read_experiment(x_md, set_md)).worth(300) == 300


def test_a_series_with_experiments_remains_a_series():
    """A knock-out now and then, for a while, and a dose that is raised step by step or set at random."""
    rng = np.random.default_rng(3)
    x_md = rng.normal(size=(400, 5))
    for t in range(1, 400):
        x_md[t] += 0.9 * x_md[t - 1]
    set_md = np.zeros((400, 5))
    set_md[50:90, 0] = set_md[200:260, 1] = set_md[300:310, 0] = 1
    alone = prepare(read_experiment(x_md, None)).worth(400)
    assert prepare(read_experiment(np.where(set_md, -2.0, x_md), set_md)).worth(400) < 1.5 * alone < 120


@each("is_sorted", [True, False])
def test_doses_do_not_make_a_series_of_independent_rows(is_sorted):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x_md, set_md = rng.normal(size=(400, 5)), np.zeros((400, 5))
        dose_m = rng.uniform(-3, 3, size=250)
        x_md[:250, 0], set_md[:250, 0] = np.sort(dose_m) if is_sorted else dose_m, 1
        x_md[:, 1:4] += x_md[:, :1] * [1, 1, -1]
        assert prepare(read_experiment(x_md, set_md)).worth(400) == 400


@each("given", [["b"] * 9, [], np.ones(9), {"b": [0, 1] * 4}, {"": FRAME, "b": pd.Series([1.0] * 9)}], ids=str)
def test_a_list_is_refused_with_what_to_pass(given):
    with pytest.raises(TableError, match=r"interventions.* a single list of \d values\. Pass a mask"):
        read_experiment(None if isinstance(given, dict) and "" in given else FRAME, given)


def test_a_column_that_seems_to_say_what_was_set_is_told_of():
    """All advice was to code it as text, or to leave it out: either way what it tells of directions was lost."""
    with pytest.raises(TableError) as error:
        read_experiment(with_column(), None)
    advice = " If 'target' lists what an experiment set in each row, use "
    assert error.value.say(Setting.as_option).endswith(f"{advice}--interventions target.")
    (warning,) = read_experiment(with_column(), None, encode=True).warnings
    assert warning.startswith("column 'target' names other columns: if it lists what an experiment set in each row")
    assert "interventions='target', on the command line --interventions target" in warning
    assert not read_experiment(with_column(), "target").warnings[1:]
    other = with_column().assign(target=["target", "", "target", "b2", "x", "a", "b", "b", "a"])
    assert read_experiment(other, None, encode=True).warnings == ()
