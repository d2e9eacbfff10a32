"""Rows that repeat each other: how many independent ones they are worth, and who is told."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch

import graphbam as gb
from cases import each
from graphbam.nn.edge_net import EdgeNet, EdgeNetConfig
from graphbam.nn.weights import Header, LoadedWeights
from graphbam.tables.domain import describe_table
from graphbam.tables.prepare import prepare
from graphbam.tables.read import read_table
from graphbam.tables.rows import (
    FEWEST,
    RowOrder,
    count_rows,
    count_rows_each,
    find_copies,
    find_order,
    measure_redundancy,
    read_order,
)
from graphbam.tables.standard import standardise
from graphbam.tables.table import Table


def autoregression(rng, n_samples, n_variables, phi):
    """Unrelated columns, each an AR(1) process in its stationary state."""
    e_md = rng.normal(size=(n_samples, n_variables))
    x_md = np.empty_like(e_md)
    x_md[0] = e_md[0]
    for t in range(1, n_samples):
        x_md[t] = phi * x_md[t - 1] + np.sqrt(1 - phi**2) * e_md[t]
    return x_md


@each("shape", [(50, 3), (200, 10), (1000, 30)])
def test_independent_rows_count_in_full(shape):
    for seed in range(100):
        assert measure_redundancy(np.random.default_rng(seed).normal(size=shape)) == 0


def test_columns_that_share_their_noise_are_no_time_series():
    """All columns alike: their autocorrelations deviate from zero together, and must not add up to a false alarm."""
    alarms = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x_md = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 12))
        alarms += measure_redundancy(x_md) > 0
    assert alarms <= 2  # one in a thousand


@each("phi", [0.5, 0.7, 0.9])
def test_an_autoregression_is_worth_what_theory_says(phi):
    """Σ φ^2k from one on is φ² / (1 − φ²), so M (1 − φ²) / (1 + φ²) rows remain."""
    x_md = autoregression(np.random.default_rng(0), 4000, 8, phi)
    worth = count_rows(4000, 4000, measure_redundancy(x_md))
    assert worth == pytest.approx(4000 * (1 - phi**2) / (1 + phi**2), rel=0.12)


def test_correlations_of_an_autoregression_vary_as_much_as_those_of_so_many_rows():
    """The law behind the number: the spread of sample correlations between unrelated columns is 1/√worth."""
    rng = np.random.default_rng(1)
    tables = [autoregression(rng, 300, 10, 0.8) for _ in range(40)]
    r = np.concatenate([np.corrcoef(x_md.T)[np.triu_indices(10, 1)] for x_md in tables])
    worth = np.mean([count_rows(300, 300, measure_redundancy(x_md)) for x_md in tables])
    assert r.std() == pytest.approx(worth**-0.5, rel=0.1)
    assert r.std() > 1.5 * 300**-0.5


def test_shuffling_removes_it():
    rng = np.random.default_rng(2)
    x_md = autoregression(rng, 400, 5, 0.9)
    assert measure_redundancy(x_md) > 2
    assert measure_redundancy(rng.permutation(x_md)) == 0


@each("key", ["a column", "two groups", "the total", "a skewed score"])
@each("shape", [(88, 5), (400, 12)])
def test_sorting_rows_does_not_make_them_dependent(key, shape):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x_md = rng.normal(size=shape) + 1.2 * rng.normal(size=(shape[0], 1))
        if key == "two groups":
            x_md[:, 0] = x_md[:, 0] > 0
        keys = {"the total": x_md.sum(axis=1), "a skewed score": np.exp(x_md[:, 1])}
        sorted_md = x_md[keys.get(key, x_md[:, 0]).argsort(kind="stable")]
        assert find_order(sorted_md - sorted_md.mean(axis=0)) is not None
        assert measure_redundancy(sorted_md) == 0


@each("shape", [(100, 5), (1600, 8), (800, 40)])
def test_a_table_sorted_by_a_column_that_no_other_follows_is_recognised(shape):
    """Nothing but the one column resembles its neighbours: no rows are lost, and the table is like any other."""
    for seed in range(10):
        x_md = np.random.default_rng(seed).normal(size=shape)
        sorted_md = x_md[x_md[:, 2].argsort()]
        assert read_order(sorted_md) == RowOrder(0.0, sorted_only=True)
        assert read_order(x_md) == RowOrder(0.0, sorted_only=False)


@each("seed", range(5))
def test_one_series_among_independent_columns_is_no_sorted_table(seed):
    rng = np.random.default_rng(seed)
    series_m1, other_md = autoregression(rng, 400, 1, 0.9), rng.normal(size=(400, 40))
    assert not read_order(np.column_stack([series_m1, other_md])).sorted_only
    late_m = np.arange(400) == 399  # never turns either
    assert not read_order(np.column_stack([late_m, other_md])).sorted_only
    few_m = (np.arange(400) >= 380).astype(float)
    assert read_order(np.column_stack([few_m, other_md])).sorted_only
    assert not read_order(np.column_stack([few_m, series_m1, other_md])).sorted_only


@pytest.mark.parametrize("process", ["walk", "autoregression"])
def test_a_column_for_the_time_does_not_make_a_series_independent(process):
    rng = np.random.default_rng(5)
    x_md = autoregression(rng, 300, 4, 0.9) if process == "autoregression" else rng.normal(size=(300, 4)).cumsum(axis=0)
    timed_md = np.column_stack([x_md, np.arange(300)])
    assert find_order(timed_md - timed_md.mean(axis=0)) is not None
    assert count_rows(300, 300, measure_redundancy(timed_md)) < 120


@each("step", [1.0, np.tile([31, 28, 31, 30], 75)], ids=["days", "months"])
@each("n_others", [0, 1])
def test_a_column_for_the_time_does_not_make_a_single_series_independent(step, n_others):
    """What the trend leaves of one series has no other series to be compared with, and is one all the same."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        time_m, others_md = np.cumsum(step * np.ones(300)), rng.normal(size=(300, n_others))
        series_md = np.column_stack([time_m, autoregression(rng, 300, 1, 0.9), others_md])
        assert count_rows(300, 300, measure_redundancy(series_md)) < 100
        noise_md = np.column_stack([time_m, time_m / 100 + rng.normal(size=300), others_md])
        assert measure_redundancy(noise_md) == 0


@each("n_rows, period, n_others", [(300, 2, 3), (300, 3, 2), (5000, 7, 4)])
def test_designs_in_which_treatments_take_turns_count_in_full(n_rows, period, n_others):
    """Two arms in two columns made 24 rows of 300: one is what the other is not, in all rows."""
    other_md = np.random.default_rng(period).normal(size=(n_rows, n_others))
    arms_md = np.eye(period)[np.arange(n_rows) % period]
    assert read_order(np.column_stack([arms_md, other_md])) == (0, False)


@each("n_rows", range(4, 20))
def test_few_rows_may_have_columns_that_take_turns(n_rows):
    other_md = np.random.default_rng(0).normal(size=(n_rows, 2))
    assert measure_redundancy(np.column_stack([np.arange(n_rows) % 2, other_md])) == 0


@each("period", [2, 7])
def test_a_column_that_turns_from_row_to_row_does_not_make_a_series_independent(period):
    """Shifts, or days of the week in columns of 0 and 1: walks that have nothing to do with each other were linked."""
    for seed in range(5):
        walk_md = np.random.default_rng(seed).normal(size=(300, 3)).cumsum(axis=0)
        turning_md = np.eye(period)[np.arange(300) % period, 1:]
        assert count_rows(300, 300, measure_redundancy(np.column_stack([walk_md, turning_md]))) < 20


def totals(rng, kind):
    """Rows in the order of time, with running totals."""
    rises_md, day_m = np.abs(rng.normal(size=(300, 4))), np.arange(300)
    slow_md, noise_md = autoregression(rng, 300, 2, 0.95), rng.normal(size=(300, 4))
    return np.column_stack({
        "beside series": [slow_md, noise_md, rises_md[:, 0].cumsum()],
        "beside series and the day": [day_m, slow_md, noise_md, rises_md[:, 0].cumsum()],
        "beside noise": [noise_md, rises_md.cumsum(axis=0)],
        "beside noise and the day": [day_m, noise_md, rises_md.cumsum(axis=0)],
        "of counts": [noise_md, rng.poisson(0.7, size=(300, 4)).cumsum(axis=0)],
    }[kind])  # fmt: skip


@each("kind", ["beside series", "beside series and the day", "beside noise", "beside noise and the day", "of counts"])
def test_running_totals_are_series_and_no_order_that_rows_were_sorted_in(kind):
    for seed in range(10):
        x_md = totals(np.random.default_rng(seed), kind)
        assert count_rows(300, 300, measure_redundancy(x_md)) < 200


def sorted_tables(rng, n_samples):
    """Rows with a common cause in another order than that of time."""
    x_md = rng.normal(size=(n_samples, 6)) + rng.normal(size=(n_samples, 1))
    level_m = np.digitize(x_md[:, 0], [-0.7, 0.2, 1])
    by_level_md = np.column_stack([np.array([1.0, -0.3, 2.1, -2.0])[level_m], x_md[:, 1:]])
    yield "levels with numbers in no order", by_level_md[level_m.argsort(kind="stable")]
    yield "levels, and a column within them", by_level_md[np.lexsort([x_md[:, 1], level_m])]
    in_units_md = np.column_stack([np.exp(x_md[:, 0] / 3), x_md[:, 0] > 0.4, np.arctan(x_md[:, 0]), x_md])
    yield "a column that others repeat in other units", in_units_md[x_md[:, 0].argsort()]
    age_m = (50 + 12 * x_md[:, 0]).round().clip(1)
    yield "ages", np.column_stack([age_m, np.log(age_m), age_m > 55, x_md[:, 1:]])[age_m.argsort(kind="stable")]


@each("n_samples", [200, 1000])
def test_tables_sorted_by_levels_or_by_one_thing_in_several_units_count_in_full(n_samples):
    for seed in range(10):
        for name, x_md in sorted_tables(np.random.default_rng(seed), n_samples):
            assert measure_redundancy(x_md) == 0, name


def test_levels_in_blocks_do_not_make_the_series_within_them_independent():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        site_m = np.array([1.0, -0.3, 2.1])[np.arange(300) // 100]
        assert measure_redundancy(np.column_stack([site_m, autoregression(rng, 300, 4, 0.9)])) > 1
        noise_md = rng.normal(size=(300, 4))
        assert read_order(np.column_stack([site_m, noise_md])) == RowOrder(0.0, sorted_only=True)


def test_seasons_are_no_part_of_how_long_months_are():
    months, rng = pd.date_range("2019-01", periods=60, freq="MS"), np.random.default_rng(0)
    season_m = 10 * np.sin(np.arange(60) / 2) + 3 * rng.normal(size=60)
    days_m = (months - months[0]).days.to_numpy(dtype=float)
    assert measure_redundancy(np.column_stack([days_m, np.arange(60) + season_m])) > 1


@each("n_columns", [2, 3])
def test_columns_that_all_rise_evenly_leave_nothing_to_compare(n_columns):
    """Time in several units and nothing else; such a table ended in a traceback."""
    x_md = np.linspace(0, 1, 100)[:, None] * np.arange(1, n_columns + 1) + 5
    assert read_order(x_md) == RowOrder(0.0, sorted_only=True)


def test_few_rows_have_no_order():
    """With as many columns as rows some combination of them is in any order."""
    x_md = np.random.default_rng(6).normal(size=(30, 30))
    assert find_order(x_md - x_md.mean(axis=0)) is None


def test_units_and_constant_columns_do_not_matter():
    x_md = autoregression(np.random.default_rng(3), 300, 4, 0.8)
    found = measure_redundancy(x_md)
    assert measure_redundancy(x_md * [1e6, 1e-6, 3, -1] + [0, 5, 1e3, 7]) == pytest.approx(found)
    assert measure_redundancy(np.column_stack([x_md, np.ones(300)])) == pytest.approx(found)
    assert measure_redundancy(np.ones((300, 2))) == measure_redundancy(x_md[:, :1]) == 0


def test_long_tables_take_no_longer(monkeypatch):
    """Only the first rows and lags are looked at, however long and slow the series is."""
    monkeypatch.setattr("graphbam.tables.rows.MOST_ROWS", 400)
    walk_md = np.random.default_rng(7).normal(size=(2000, 3)).cumsum(axis=0)
    assert measure_redundancy(walk_md) == measure_redundancy(walk_md[:400])
    monkeypatch.setattr("graphbam.tables.rows.MOST_LAGS", 5)
    assert 0 < measure_redundancy(walk_md) <= 2 * 5


def test_worth_is_bounded():
    assert count_rows(500, 500, 1e6) == FEWEST
    assert count_rows(6, 500, 1e6) == 6
    assert count_rows(500, 500, -0.0) == 500


# ── copies ──


def count_copies(x_md):
    return find_copies(np.asarray(x_md, dtype=np.float64)).sum()


def copy_rows(rng, x_md, times):
    return rng.permutation(np.tile(x_md, (times, 1)))


@each("shape", [(40, 6), (40, 2), (800, 8)])
@each("decimals", [1, 9])
def test_copies_of_measured_rows_are_counted_wherever_they_stand(shape, decimals):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x_md = rng.normal(size=shape).round(decimals if shape[1] > 2 else 9)
        assert count_copies(x_md) == 0
        big_md = copy_rows(rng, x_md, 5)
        n_copies = len(big_md) - len(np.unique(big_md, axis=0))
        assert count_copies(big_md) == n_copies >= 4 * len(x_md)
        assert count_copies(big_md[:, ::-1] * 3 - 1) == n_copies
        assert count_copies(np.column_stack([big_md, rng.integers(3, size=len(big_md))])) == n_copies


def test_copies_of_some_rows_are_counted_too():
    rng = np.random.default_rng(0)
    x_md = rng.normal(size=(300, 4))
    assert count_copies(np.concatenate([x_md, np.repeat(x_md[:20], 15, axis=0)])) == 300
    assert count_copies(x_md[[*range(300), 7]]) == 1


def natural_tables(rng):
    """Tables in which equal rows are natural."""
    ability_m1, age_m = rng.normal(size=(2000, 1)), rng.integers(18, 90, size=2000)
    dry_m1 = rng.random((2000, 1)) < 0.6
    yield "answers", rng.integers(1, 6, size=(2000, 4))
    yield "marks", (50 + 15 * (0.95 * ability_m1 + 0.3 * rng.normal(size=(2000, 3)))).round()
    yield "counts", rng.poisson(3 * np.exp(ability_m1), size=(2000, 4))
    yield "rain", np.where(dry_m1, 0, rng.gamma(1, 10, size=(2000, 4)).round(1))
    yield "one number in several units", np.column_stack([age_m, np.log(age_m), 2026 - age_m, age_m > 40])
    yield "parts and sum", (lambda a_md: np.column_stack([a_md, a_md.sum(axis=1)]))(rng.integers(30, size=(2000, 2)))


def test_rows_that_are_alike_by_nature_are_no_copies():
    for seed in range(3):
        for name, x_md in natural_tables(np.random.default_rng(seed)):
            assert len(np.unique(x_md, axis=0)) < 0.999 * len(x_md)
            assert count_copies(x_md) == 0, name


# ── who is told ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def told():
    """Tiny weights that note which rows they were told of."""

    class Noting(LoadedWeights):
        notes: ClassVar[list] = []

        def probabilities(self, x_bmd, rows=None):
            self.notes.append(rows)
            return super().probabilities(x_bmd, rows)

    torch.manual_seed(0)
    sizes = {"attribute_layers": 1, "sample_layers": 1, "dense_layers": 1, "bilinear_layers": 1, "pair_layers": 1}
    network = EdgeNet(EdgeNetConfig(**sizes, channels=8, spd_channels=4)).eval()
    torch.nn.init.normal_(network.head.classes.weight)
    return Noting("tiny", network, Header())


def test_the_network_is_told_and_so_is_the_user(told):
    frame = pd.DataFrame(autoregression(np.random.default_rng(4), 300, 4, 0.8), columns=list("abcd"))
    told.notes.clear()
    result = gb.infer(frame, weights=told, colliders=None)
    worth = count_rows(300, 300, measure_redundancy(frame.to_numpy()))
    assert told.notes == [[pytest.approx(worth, rel=0.05)]]  # columns are rescaled in between
    assert any(f"300 rows count as {told.notes[0][0]:.0f} independent ones" in change for change in result.changes)
    plain = gb.infer(frame, weights=told, colliders=None, independent_rows=True)
    assert told.notes[1:] == [None]
    assert not any("independent" in change for change in plain.changes)
    assert np.abs(plain.probabilities - result.probabilities).max() > 1e-3


def test_wild_values_do_not_hide_that_neighbours_are_alike():
    """Rows of users' tables are counted as those of training: with wild values at their limit."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        slow_md = autoregression(rng, 400, 4, 0.9)
        slipped_md = slow_md.copy()
        slipped_md[rng.integers(400, size=4), range(4)] = 1e4
        for x_md in (slow_md, slipped_md, np.exp(2 * slow_md)):
            worth = prepare(Table(tuple("abcd"), x_md, "a process")).worth(400)
            (in_training,) = count_rows_each(standardise(torch.from_numpy(x_md)[None]).numpy())
            assert worth == pytest.approx(in_training)
            assert worth < 160


def test_a_table_sorted_by_a_sum_of_heavy_tails_is_recognised():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x_md = np.exp(rng.normal(size=(400, 5)) + rng.normal(size=(400, 1)))
        ready = prepare(Table(tuple("abcde"), x_md[x_md.sum(axis=1).argsort()], "sorted"))
        assert ready.worth(400) == 400


def test_a_sorted_table_counts_in_full_and_looks_like_any_other(told):
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.normal(size=(300, 4)) + rng.normal(size=(300, 1)), columns=list("abcd")).sort_values("c")
    told.notes.clear()
    result = gb.infer(frame, weights=told, colliders=None)
    assert told.notes == [None]
    assert [change for change in result.changes if "rows are sorted by columns of the table" in change]
    assert prepare(read_table(frame)).features["row_dependence"] < 4  # standard deviations of independent rows
    assert describe_table(frame.to_numpy())["row_dependence"] > 10


def test_copies_count_once_and_the_user_is_told(told):
    rng = np.random.default_rng(9)
    frame = pd.DataFrame(copy_rows(rng, rng.normal(size=(40, 4)), 5), columns=list("abcd"))
    told.notes.clear()
    result = gb.infer(frame, weights=told, colliders=None)
    assert told.notes == [[pytest.approx(40)]]
    assert any("160 of 200 rows are exact copies of others" in warning for warning in result.warnings)
    in_order = gb.infer(frame.sort_values("a"), weights=told, colliders=None)
    assert in_order.warnings == result.warnings
    told.notes.clear()
    assert not gb.infer(frame, weights=told, colliders=None, independent_rows=True).warnings
    assert not gb.infer(frame.round(), weights=told, colliders=None).warnings
    assert told.notes == [None, None]


def test_copies_of_noise_have_no_links():
    rng = np.random.default_rng(10)
    frame = pd.DataFrame(copy_rows(rng, rng.normal(size=(40, 6)), 5), columns=list("abcdef"))
    assert not gb.infer(frame).skeleton().adjacency.any()
    assert gb.infer(frame, independent_rows=True).skeleton().adjacency.sum() > 10


def test_thinned_rows_and_resamples_repeat_each_other_less(told):
    frame = pd.DataFrame(autoregression(np.random.default_rng(5), 400, 4, 0.8))
    told.notes.clear()
    gb.infer(frame, weights=told, colliders=None, max_rows=100, stability=2)
    (whole,), *resamples = told.notes
    redundancy = (100 / whole - 1) * 400 / 100
    assert redundancy == pytest.approx(2 * 0.8**2 / (1 - 0.8**2), rel=0.3)
    assert resamples == [[pytest.approx(count_rows(63, 400, redundancy))] * 2]


def test_every_table_of_a_batch_has_its_own(told):
    rng = np.random.default_rng(6)
    tables = [rng.normal(size=(200, 3)), autoregression(rng, 200, 3, 0.9), rng.normal(size=(200, 3))]
    told.notes.clear()
    together = gb.infer_many([pd.DataFrame(x_md, columns=list("abc")) for x_md in tables], weights=told, colliders=None)
    first, second, third = told.notes[0]
    assert (first, third) == (200, 200)
    assert second < 100
    alone = gb.infer(pd.DataFrame(tables[1], columns=list("abc")), weights=told, colliders=None)
    np.testing.assert_allclose(together[1].probabilities, alone.probabilities, atol=1e-6)
