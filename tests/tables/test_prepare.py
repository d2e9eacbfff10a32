"""Preprocessing: stated rules for gaps, constants, many rows; and nothing depends on order or units."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from graphbam.errors import ConfigError, TableError
from graphbam.tables.prepare import (
    FEATURES,
    PreprocessingConfig,
    canonical_order,
    describe_redundancy,
    describe_table,
    draw_passes,
    is_constant,
    judge_domain,
    prepare,
    rescale,
    summarise_domain,
)
from graphbam.tables.read import Table


def table_of(x_md, names=None):
    return Table(tuple(names or [f"v{k}" for k in range(x_md.shape[1])]), np.asarray(x_md, float), "a test")


@pytest.fixture(params=range(3))
def rng(request):
    return np.random.default_rng(request.param)


@pytest.fixture
def x_md(rng):
    return rng.normal(size=(100, 4))


# ── missing values ────────────────────────────────────────────────────────────────────────────────────────


def test_complete_tables_are_not_changed(x_md):
    ready = prepare(table_of(x_md))
    assert ready.changes == ()
    assert len(ready.x_md) == 100


def test_few_hit_rows_are_left_out(x_md):
    x_md[:5, 0] = np.nan
    ready = prepare(table_of(x_md))
    assert ready.changes == ("5 rows of 100 with missing values left out",)
    assert len(ready.x_md) == 95


def test_many_hit_rows_are_filled_with_medians(x_md):
    x_md[:6, 0] = np.nan
    ready = prepare(table_of(x_md))
    assert ready.changes == ("6 missing values (1.5% of cells) set to the column's median",)
    assert (ready.x_md[:, 0] == 0).sum() >= 6  # rescaling puts the median at 0


def test_gappy_columns_are_left_out(x_md):
    x_md[:31, 2] = np.nan
    ready = prepare(table_of(x_md))
    assert ready.names == ("v0", "v1", "v3")
    assert ready.left_out == ("v2",)
    assert ready.changes == ("left out for missing values: 'v2' (31% missing)",)


def test_thirty_percent_is_still_filled(x_md):
    x_md[:30, 2] = np.nan
    assert prepare(table_of(x_md)).names == ("v0", "v1", "v2", "v3")


@pytest.mark.parametrize(("policy", "rows"), [("drop", 60), ("impute", 100)])
def test_policies_can_be_forced(x_md, policy, rows):
    x_md[:40, 2] = np.nan
    assert len(prepare(table_of(x_md), PreprocessingConfig(missing=policy)).x_md) == rows


def test_gaps_can_be_refused(x_md):
    x_md[7, 2] = np.nan
    with pytest.raises(TableError, match=r"1 missing value \(first: row 8, column 'v2'"):
        prepare(table_of(x_md), PreprocessingConfig(missing="error"))


def test_dropping_every_row_is_refused(x_md):
    x_md[::2, 0] = x_md[1::2, 1] = np.nan
    with pytest.raises(TableError, match="0 of 100 rows are complete"):
        prepare(table_of(x_md), PreprocessingConfig(missing="drop"))


def test_infinities_are_gaps(x_md):
    x_md[3, 1], x_md[4, 2] = np.inf, -np.inf
    ready = prepare(table_of(x_md))
    assert ready.changes[0] == "2 infinite values in columns 'v1', 'v2' counted as missing"
    assert len(ready.x_md) == 98


def test_the_table_is_not_written_to(x_md):
    x_md[3, 1] = np.inf
    before = x_md.copy()
    prepare(table_of(x_md))
    assert np.array_equal(x_md, before)


# ── constants, copies, relations ──────────────────────────────────────────────────────────────────────────


def test_constant_columns_stay_in_the_names(x_md):
    x_md[:, 1] = 0.1 + 0.2
    ready = prepare(table_of(x_md))
    assert ready.names == ("v0", "v1", "v2", "v3")
    assert ready.varying.tolist() == [0, 2, 3]
    assert "'v1' is constant" in ready.changes[0]


def test_tiny_variation_is_not_constant():
    dates = 1.7e9 + np.arange(50) * 1e-3
    assert not is_constant(np.column_stack([dates, dates * 0 + 5])).all()


def test_copies_up_to_units_are_named(x_md):
    x_md[:, 3] = 5 - 1000 * x_md[:, 1]
    warnings = prepare(table_of(x_md)).warnings
    assert "the same up to units: 'v1' = 'v3'; all are kept" in warnings[0]
    assert len(warnings) == 1


def test_row_numbers_are_suspected(x_md):
    x_md[:, 2] = np.arange(7.0, 107.0)
    (warning,) = prepare(table_of(x_md)).warnings
    assert "pass drop=['v2']" in warning


def test_exact_relations_are_named(x_md):
    x_md[:, 3] = x_md[:, 0] - 2 * x_md[:, 2]
    warnings = prepare(table_of(x_md)).warnings
    assert "columns 'v0', 'v2', 'v3' are bound by an exact linear relation" in warnings[0]


def test_ordinary_tables_get_no_such_warning(x_md):
    assert describe_redundancy(list("abcd"), x_md) == []


@pytest.mark.parametrize("n_rows", [2, 3, 10])
def test_few_rows_are_warned_about(rng, n_rows):
    ready = prepare(table_of(rng.normal(size=(n_rows, 3))))
    assert f"only {n_rows} rows" in ready.warnings[0]
    assert torch.isfinite(ready.standardised()).all()


def test_many_variables_are_warned_about(rng):
    assert "201 variables" in prepare(table_of(rng.normal(size=(20, 201)))).warnings[0]


# ── scale ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e300])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_units_do_not_matter(x_md, scale, shift):
    expected = prepare(table_of(x_md)).standardised()
    assert torch.allclose(prepare(table_of((x_md + shift) * scale)).standardised(), expected, atol=1e-5)


def test_the_largest_numbers_do_not_overflow():
    x_md = np.array([[1.7e308, 1], [-1.7e308, 2], [1e308, 4], [0, 3]])
    assert np.isfinite(rescale(x_md)).all()
    assert torch.isfinite(prepare(table_of(x_md)).standardised()).all()


@pytest.mark.parametrize("outlier", [1e9, 1e100, 1e200, -1.7e308])
def test_one_absurd_value_does_not_wipe_out_its_column(x_md, outlier):
    expected = prepare(table_of(x_md)).standardised()[0, :, 0].std()
    x_md[5, 0] = outlier
    z_m = prepare(table_of(x_md)).standardised()[0, :, 0]
    assert z_m.quantile(0.8) - z_m.quantile(0.2) > 0.8 * expected


def test_heavy_tails_do_not_flatten_the_rest(rng):
    x_md = rng.standard_cauchy(size=(500, 3))
    x_md[0] = 1e12
    z_md = prepare(table_of(x_md)).standardised()[0]
    spread = z_md.quantile(0.75, dim=0) - z_md.quantile(0.25, dim=0)
    assert (spread > 0.2).all()
    assert z_md.abs().max() <= 5


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", [
    lambda rng: rng.normal(size=(60, 4)),
    lambda rng: rng.integers(0, 3, size=(60, 4)).astype(float),
    lambda rng: np.column_stack([rng.permutation(60), rng.permutation(60)]).astype(float),
    lambda rng: np.column_stack([np.arange(60.0), np.arange(60.0)[::-1]]),
    lambda rng: np.array([[0.0, 1.0], [1.0, 0.0]] * 30),
], ids=["continuous", "discrete", "ranks", "mirrored", "swapped"])  # fmt: skip
def test_row_order_depends_on_content_only(rng, make):
    x_md = make(rng)
    rows, columns = rng.permutation(60), rng.permutation(x_md.shape[1])
    units = rng.uniform(0.1, 10, size=x_md.shape[1])
    shuffled = (x_md * units)[rows][:, columns]
    names = np.array(list("abcd"))[: x_md.shape[1]]
    ours = (x_md * units)[canonical_order(x_md, names)][:, columns]
    assert np.allclose(ours, shuffled[canonical_order(shuffled, names[columns])])


def test_too_many_rows_are_drawn_once():
    changes = []
    (rows,) = draw_passes(100, PreprocessingConfig(max_rows=30, seed=4), changes)
    assert len(set(rows)) == 30
    assert changes == ["30 of 100 rows drawn at random (seed 4)"]
    (again,) = draw_passes(100, PreprocessingConfig(max_rows=30, seed=4), [])
    (other,) = draw_passes(100, PreprocessingConfig(max_rows=30, seed=5), [])
    assert np.array_equal(rows, again)
    assert not np.array_equal(rows, other)


@pytest.mark.parametrize(("n_rows", "n_passes", "size"), [(61, 3, 20), (90, 3, 30), (10_000, 8, 30)])
def test_or_split_and_averaged(n_rows, n_passes, size):
    changes = []
    passes = draw_passes(n_rows, PreprocessingConfig(max_rows=30, large="average"), changes)
    assert [len(rows) for rows in passes] == [size] * n_passes
    assert len(np.unique(np.concatenate(passes))) == n_passes * size
    assert "averaged" in changes[0]


def test_nothing_random_is_seeded_globally(x_md):
    state = np.random.get_state()[1].copy(), torch.random.get_rng_state()  # noqa: NPY002
    prepare(table_of(x_md), PreprocessingConfig(max_rows=10))
    assert np.array_equal(state[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(state[1], torch.random.get_rng_state())


@pytest.mark.parametrize("bad", [{"missing": "x"}, {"large": "x"}, {"max_rows": 0}])
def test_settings_are_checked(bad):
    with pytest.raises(ConfigError):
        PreprocessingConfig(**bad)


# ── domain ────────────────────────────────────────────────────────────────────────────────────────────────


def test_description_ignores_units_and_column_order(rng, x_md):
    first, second = describe_table(x_md), describe_table(x_md[:, [2, 0, 3, 1]] * [1, 1e6, 3, 1e-6] + 5)
    assert first.keys() == FEATURES.keys()
    for name in FEATURES:
        assert first[name] == pytest.approx(second[name], rel=1e-6), name


def test_description_is_finite_for_odd_tables(rng):
    for x_md in (np.eye(3)[:, :2], rng.integers(0, 2, (50, 3)), rng.standard_cauchy((50, 3)) * 1e100, np.ones((4, 2))):
        assert np.isfinite(list(describe_table(np.asarray(x_md, float)).values())).all()


def test_features_see_what_they_are_named_after(rng):
    normal = describe_table(rng.normal(size=(1000, 6)))
    assert describe_table(rng.standard_cauchy((1000, 6)))["tail_width"] > 3 * normal["tail_width"]
    assert describe_table(rng.standard_cauchy((1000, 6)))["outlier_share"] > normal["outlier_share"]
    assert describe_table(rng.exponential(size=(1000, 6)))["asymmetry"] > 3 * normal["asymmetry"]
    assert describe_table(rng.integers(0, 5, (1000, 6)).astype(float))["discrete_share"] == 1
    walk = describe_table(np.cumsum(rng.normal(size=(1000, 6)), axis=0))
    assert walk["row_dependence"] > 30 > 4 > abs(normal["row_dependence"])
    shared = describe_table(rng.normal(size=(1000, 6)) + 3 * rng.normal(size=(1000, 1)))
    assert shared["mean_correlation"] > 0.8
    assert shared["effective_rank"] < 0.4 < 0.9 < normal["effective_rank"]


def test_description_is_quick(rng):
    x_md = rng.normal(size=(1000, 100))
    start = time.perf_counter()
    describe_table(x_md)
    assert time.perf_counter() - start < 0.5


def test_domain_round_trip(rng):
    training = [describe_table(rng.normal(size=(200, 5))) for _ in range(50)]
    header = {"domain": summarise_domain(training)}
    inside = [judge_domain(features, header) for features in training]
    assert np.mean([not found for found in inside]) > 0.6
    outside = judge_domain(describe_table(rng.standard_cauchy((200, 5))), header)
    assert any("weight of the tails" in sentence for sentence in outside)
    assert judge_domain(training[0], {}) == []


def test_only_the_harder_side_is_an_alarm():
    header = {"domain": {"outlier_share": [0.1, 0.2], "effective_rank": [0.3, 0.6], "n_samples": [50, 500]}}
    easy = {"outlier_share": 0.0, "effective_rank": 0.9, "n_samples": 100.0}
    hard = {"outlier_share": 0.3, "effective_rank": 0.1, "n_samples": 5000.0}
    assert judge_domain(easy, header) == []
    assert len(judge_domain(hard, header)) == 3


@pytest.mark.parametrize("n_variables", [2, 5, 40])
def test_independent_rows_look_alike_at_every_size(n_variables):
    rng = np.random.default_rng(0)
    found = [
        describe_table(rng.normal(size=(rng.integers(30, 500), n_variables)))["row_dependence"] for _ in range(200)
    ]
    assert np.std(found) == pytest.approx(1, abs=0.25)
    assert np.mean(found) == pytest.approx(0, abs=0.4)
