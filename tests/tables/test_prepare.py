"""Preprocessing: stated rules for gaps, constants, many rows; and nothing depends on order or units."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import graphbam as gb
from cases import SEEDS, each
from graphbam.errors import ConfigError, TableError
from graphbam.tables.config import PrepareConfig
from graphbam.tables.prepare import (
    CODES,
    Notes,
    canonical_order,
    describe_redundancy,
    draw_passes,
    fill_gaps,
    is_constant,
    prepare,
    standardise,
)
from graphbam.tables.table import Table


def table_of(x_md, names=None):
    return Table(tuple(names or [f"v{k}" for k in range(x_md.shape[1])]), np.asarray(x_md, float), "a test")


@pytest.fixture(params=SEEDS)
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


def test_many_hit_rows_are_filled_from_the_other_columns(x_md):
    x_md[:, 0] = 2 * x_md[:, 1] + 3
    whole = prepare(table_of(x_md)).x_md
    x_md[:6, 0] = np.nan
    ready = prepare(table_of(x_md))
    assert ready.changes == ("6 missing values (1.5% of cells) filled in by regression on the other columns",)
    assert np.corrcoef(np.sort(ready.x_md[:, 0]), np.sort(whole[:, 0]))[0, 1] > 0.99


def test_too_many_columns_to_regress_get_medians(x_md, monkeypatch):
    monkeypatch.setattr("graphbam.tables.prepare.MOST_REGRESSED", 3)
    x_md[:6, 0] = np.nan
    (change,) = prepare(table_of(x_md)).changes
    assert change.endswith("set to the column's median: more than 3 columns are not regressed")


def holes(seed, shape, share=0.2):
    """A table of related columns, with cells that are not observed."""
    rng = np.random.default_rng(seed)
    x_md = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1]))
    return torch.from_numpy(x_md), torch.from_numpy(rng.random(shape) >= share)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_missing_cells_hold_does_not_matter_and_observed_ones_stay(seed):
    x, observed = holes(seed, (60, 5))
    filled = fill_gaps(x, observed)
    assert torch.equal(filled[observed], x[observed])
    assert torch.equal(fill_gaps(torch.where(observed, x, 1e300), observed), filled)
    assert torch.equal(fill_gaps(x, torch.ones_like(observed)), x)


@pytest.mark.parametrize("seed", SEEDS)
def test_filling_commutes_with_order_and_units(seed):
    x, observed = holes(seed, (60, 5))
    columns, rows = torch.tensor([3, 0, 4, 2, 1]), torch.randperm(60, generator=torch.Generator().manual_seed(seed))
    filled = fill_gaps(x, observed)
    assert_close(fill_gaps(x[rows][:, columns], observed[rows][:, columns]), filled[rows][:, columns])
    scale = torch.tensor([1e-150, 1.0, 1e3, -5.0, 1e150], dtype=x.dtype)
    assert_close(fill_gaps(x * scale + 7 * scale, observed) / scale - 7, filled)


def test_a_batch_is_filled_table_by_table():
    tables = [holes(seed, (40, 4)) for seed in range(3)]
    together = fill_gaps(torch.stack([x for x, _ in tables]), torch.stack([o for _, o in tables]))
    assert_close(together, torch.stack([fill_gaps(x, observed) for x, observed in tables]))


def test_a_constant_column_and_one_without_values_stay_in_range():
    x, observed = holes(0, (30, 4))
    x[:, 1], observed[:, 2] = 7.0, False
    filled = fill_gaps(x, observed)
    assert torch.isfinite(filled).all()
    assert (filled[:, 1] == 7).all()


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_gaps_make_no_link_between_the_ends_of_a_chain(share):
    """x → y → z: with medians in the gaps, y no longer explains why x and z go together."""
    ends = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, e, f, w = rng.normal(size=(4, 500))
        y = 0.8 * x + 0.6 * e
        table = np.stack([x, y, 0.8 * y + 0.6 * f, w], 1)
        table[rng.random(table.shape) < share] = np.nan
        ends.append(gb.infer(table, colliders=None, missing="impute").probabilities[0, 2, 1])
    assert np.median(ends) < 0.3  # 0.45 and 0.9 with medians
    assert np.mean(np.array(ends) > 0.5) <= 1 / 6


@pytest.mark.parametrize("slip", [0.0, 1e4, 1e300])
def test_a_slip_of_a_pen_does_not_spoil_what_gaps_get(slip):
    """y = x + little: its gaps follow x, whatever a single cell of either holds."""
    rng = np.random.default_rng(0)
    x_m = rng.normal(size=300)
    table = np.column_stack([x_m, x_m + 0.3 * rng.normal(size=300), rng.normal(size=300)])
    table[rng.random(table.shape) < 0.15] = np.nan
    table[0, 0], table[1, 1] = slip or 2.0, -slip or -2.0
    ready = prepare(table_of(table))
    z_md = ready.standardised()[0].numpy()
    gaps = ready.missing_md[:, 1] & ~ready.missing_md[:, 0]
    assert gaps.sum() > 20
    assert np.corrcoef(z_md[gaps, 0], z_md[gaps, 1])[0, 1] > 0.9
    assert np.isfinite(z_md).all()


def test_gappy_columns_are_left_out(x_md):
    x_md[:71, 2] = np.nan
    ready = prepare(table_of(x_md))
    assert ready.names == ("v0", "v1", "v3")
    assert ready.left_out == ("v2",)
    assert ready.changes == ("left out for missing values: 'v2' (71% missing)",)


def test_seventy_percent_is_still_filled(x_md):
    x_md[:70, 2] = np.nan
    assert prepare(table_of(x_md)).names == ("v0", "v1", "v2", "v3")


def test_rows_that_hardly_repeat_each_other_are_no_warning():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 3))
    rows[1:] += 0.12 * rows[:-1]
    ready = prepare(table_of(rows))
    told = next(change for change in ready.changes if "rows count as" in change)
    assert "(set independent_rows=True, on the command line --independent-rows, if they are only sorted" in told
    assert not any("rows count as" in warning for warning in ready.warnings)


def test_columns_that_never_meet_are_named_or_refused(x_md):
    x_md[:50, 0] = x_md[50:, 3] = np.nan
    (said,) = [note for note in prepare(table_of(x_md)).warnings if "same row" in note]
    assert "1 pair of columns hardly ever observed in the same row ('v0' and 'v3': 0 of 100 rows)" in said
    with pytest.raises(TableError, match="no two columns are observed together"):
        prepare(table_of(x_md[:, [0, 3]]))


@pytest.mark.parametrize(("policy", "rows"), [("drop", 60), ("impute", 100)])
def test_policies_can_be_forced(x_md, policy, rows):
    x_md[:40, 2] = np.nan
    assert len(prepare(table_of(x_md), PrepareConfig(missing=policy)).x_md) == rows


def test_gaps_can_be_refused(x_md):
    x_md[7, 2] = np.nan
    with pytest.raises(TableError, match=r"1 missing value \(first: row 8, column 'v2'"):
        prepare(table_of(x_md), PrepareConfig(missing="error"))


def test_dropping_every_row_is_refused(x_md):
    x_md[::2, 0] = x_md[1::2, 1] = np.nan
    with pytest.raises(TableError, match="0 of 100 rows are complete"):
        prepare(table_of(x_md), PrepareConfig(missing="drop"))


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


# ── codes for missing ─────────────────────────────────────────────────────────────────────────────────────


@each("code", CODES)
def test_codes_far_from_all_other_values_are_missing(x_md, code):
    x_md[:12, 2] = code
    ready = prepare(table_of(x_md))
    spelled = f"{code:.0f}".replace("-", "−")
    assert ready.changes[0].startswith(f"{spelled} in column 'v2' (12 cells) counted as missing")
    assert ready.warnings[0].endswith("set keep_codes=True, on the command line --keep-codes")
    x_md[:12, 2] = np.nan
    assert np.array_equal(ready.x_md, prepare(table_of(x_md)).x_md)


@each(("name", "column"), [
    ("ages up to 99", [*range(1, 100), 99]),
    ("counts with a long tail", [*range(60), *[60, 70, 80, 90, 99, 99, 120, 150] * 5]),
    ("prices", [*range(9900, 9998), 9999, 9999]),
    ("two levels", [0, 999] * 50),
    ("temperatures", [*range(-8, 90), -9, -9]),
])  # fmt: skip
def test_numbers_among_their_like_are_kept(x_md, name, column):
    x_md[:, 2] = column
    ready = prepare(table_of(x_md))
    assert not [note for note in (*ready.changes, *ready.warnings) if "missing" in note], name
    assert len(ready.x_md) == 100


def test_codes_can_be_kept_and_a_single_one_is_only_suspected(x_md):
    x_md[3, 2] = -999
    ready = prepare(table_of(x_md))
    assert ready.changes == ()
    assert "−999 in column 'v2' lies far from all other values" in ready.warnings[0]
    x_md[4, 2] = -999
    assert len(prepare(table_of(x_md)).x_md) == 98
    kept = prepare(table_of(x_md), PrepareConfig(keep_codes=True))
    assert (len(kept.x_md), kept.changes, kept.warnings) == (100, (), ())


# ── what must be known of it ──────────────────────────────────────────────────────────────────────────────


def gappy(x_md):
    x_md[:71, 2] = np.nan


def filled(x_md):
    x_md[:20, 0] = x_md[90:, 1] = np.nan


def slow(x_md):
    x_md[:] = x_md.cumsum(axis=0)


@each(("spoil", "settings", "says"), [
    (gappy, {}, "1 column left out for missing values, 'v2' (71% missing)"),
    (filled, {}, "30 missing values (7.5% of cells) filled in from the other columns, 20% of 'v0'"),
    (filled, {"missing": "drop"}, "30 of 100 rows (30%) left out for missing values"),
    (slow, {}, "100 rows count as 11, since neighbouring rows resemble each other"),
    (None, {"max_rows": 40}, "40 of 100 rows used (40%)"),
    (None, {"max_rows": 10, "large": "average"}, "80 of 100 rows used (80%): links too weak for 10 of them"),
])  # fmt: skip
def test_what_changes_the_answer_is_a_warning_with_its_number(spoil, settings, says):
    x_md = np.random.default_rng(0).normal(size=(100, 4))
    assert prepare(table_of(x_md)).warnings == ()
    if spoil:
        spoil(x_md)
    assert says in prepare(table_of(x_md), PrepareConfig(**settings)).warnings[0]


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


def test_near_copies_are_named(x_md):
    """Two thermometers side by side hide each other's links as two copies do; a value far out makes no copies."""
    x_md[:, 3] = 5 - 1000 * (x_md[:, 1] + 0.01 * np.random.default_rng(1).normal(size=len(x_md)))
    (warning,) = prepare(table_of(x_md)).warnings
    assert "nearly the same (correlation beyond 0.999): 'v1' ≈ 'v3'; all are kept" in warning
    x_md[:, 3] = x_md[:, 0] ** 2
    x_md[7] = 1e5
    assert not any("the same" in warning for warning in prepare(table_of(x_md)).warnings)


def test_row_numbers_are_suspected(x_md):
    x_md[:, 2] = np.arange(7.0, 107.0)
    (warning,) = prepare(table_of(x_md)).warnings
    assert "if it numbers the rows, drop it" in warning


def test_noise_on_columns_of_two_levels_is_told_of():
    coins_md = (np.random.default_rng(0).random((300, 40)) < 0.5).astype(float)
    assert any(change.startswith("40 columns of two levels") for change in prepare(table_of(coins_md)).changes)
    assert not any("two levels" in change for change in prepare(table_of(coins_md[:, :8])).changes)


def test_exact_relations_are_named(x_md):
    x_md[:, 3] = x_md[:, 0] - 2 * x_md[:, 2]
    warnings = prepare(table_of(x_md)).warnings
    assert "columns 'v0', 'v2', 'v3' are bound by an exact linear relation" in warnings[0]
    assert warnings[0].endswith("easily missed: consider leaving out what follows from the rest")


def test_ordinary_tables_get_no_such_warning(x_md):
    assert describe_redundancy(list("abcd"), x_md) == []


@each("n_rows", [4, 10, 19])
def test_few_rows_are_warned_about(rng, n_rows):
    ready = prepare(table_of(rng.normal(size=(n_rows, 3))))
    assert f"only {n_rows} rows" in ready.warnings[0]
    assert torch.isfinite(ready.standardised()).all()


# ── scale ─────────────────────────────────────────────────────────────────────────────────────────────────


@each("scale", [1e-300, 1e-9, 1e9, 1e300])
@each("shift", [0.0, 1e3])
def test_units_do_not_matter(x_md, scale, shift):
    expected = prepare(table_of(x_md)).standardised()
    assert torch.allclose(prepare(table_of((x_md + shift) * scale)).standardised(), expected, atol=1e-5)


def test_the_largest_numbers_do_not_overflow():
    x_md = np.array([[1.7e308, 1], [-1.7e308, 2], [1e308, 4], [0, 3]])
    assert torch.isfinite(prepare(table_of(x_md)).standardised()).all()


@each("outlier", [1e9, 1e100, 1e200, -1.7e308])
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


@pytest.fixture(params=SEEDS)
def torch_rng(request):
    return torch.Generator().manual_seed(request.param)


def cauchy(rng, *shape):
    return torch.tan(3.1 * (torch.rand(*shape, generator=rng) - 0.5))


def test_plain_columns_get_the_plain_z_score(torch_rng):
    x_md = torch.randn(300, 6, generator=torch_rng)
    expected = (x_md - x_md.mean(0)) / x_md.std(0, correction=0)
    torch.testing.assert_close(standardise(x_md), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(standardise(x_md, robust=False), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("robust", [True, False])
def test_standardising_ignores_unit_origin_and_order(torch_rng, robust):
    x_bmd = torch.cat([torch.randn(2, 90, 3, generator=torch_rng), cauchy(torch_rng, 2, 90, 3)], 2).double()
    z_bmd = standardise(x_bmd, robust=robust)
    torch.testing.assert_close(standardise(3e9 * x_bmd - 7e9, robust=robust), z_bmd, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(standardise(-x_bmd, robust=robust), -z_bmd)
    rows, columns = torch.randperm(90, generator=torch_rng), torch.randperm(6, generator=torch_rng)
    moved = standardise(x_bmd[:, rows][:, :, columns], robust=robust)
    torch.testing.assert_close(moved, z_bmd[:, rows][:, :, columns])
    torch.testing.assert_close(standardise(x_bmd[0], robust=robust), z_bmd[0])


def test_wild_values_no_longer_flatten_the_rest(torch_rng):
    x_nm = cauchy(torch_rng, 50, 1000)
    x_nm[:, 0] = 1e7
    inner = (x_nm.abs() < 1).float()

    def spread(z_nm):
        middle = (z_nm * inner).sum(1, keepdim=True) / inner.sum(1, keepdim=True)
        return (((z_nm - middle).square() * inner).sum(1) / inner.sum(1)).sqrt().median()

    assert spread(standardise(x_nm, robust=False, axis=-1)) < 1e-4
    assert spread(standardise(x_nm, axis=-1)) > 0.05
    assert standardise(x_nm, axis=-1).abs().max() <= 5


def test_dependence_survives_heavy_tails(torch_rng):
    """Correlation of a Cauchy variable with its noisy double, as a network sees it."""
    x_m = cauchy(torch_rng, 2000)
    z_nm = standardise(torch.stack([x_m, x_m + 0.5 * cauchy(torch_rng, 2000)]), axis=-1)
    assert (z_nm[0] * z_nm[1]).mean() / (z_nm[0].std() * z_nm[1].std()) > 0.6


def test_rare_events_keep_the_plain_z_score():
    x_nm = torch.zeros(1, 100)
    x_nm[0, :3] = 1.0
    z_nm = standardise(x_nm, axis=-1)
    assert z_nm[0, 0] == 5.0  # cut from 5.7
    assert z_nm[0, 5] == pytest.approx(-0.1759, abs=1e-3)


@each("value", [0.0, 1.0, 0.1, -1e6, 123456.7])
def test_constant_columns_become_zero(value):
    assert (standardise(torch.full((37, 2), value)) == 0).all()


@each("n_samples", [1, 2, 3])
def test_few_samples_are_finite(torch_rng, n_samples):
    x_nm = torch.randn(20, n_samples, generator=torch_rng)
    assert standardise(x_nm, axis=-1).isfinite().all()


def test_standardising_overflows_in_no_unit(torch_rng):
    x_nm = torch.randn(4, 50, generator=torch_rng)
    z_nm = standardise(x_nm, axis=-1)
    for scale in (1e30, 1e-30):
        torch.testing.assert_close(standardise(x_nm * scale, axis=-1), z_nm, atol=1e-4, rtol=1e-4)


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────────────


@each("make", [
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


def test_equal_rows_are_in_the_order_of_what_was_set_or_missing(rng):
    x_md, marks_md = rng.integers(0, 2, size=(80, 3)).astype(float), rng.integers(0, 3, size=(80, 3))
    rows, columns = rng.permutation(80), rng.permutation(3)
    (x2_md, marks2_md), names = (one[rows][:, columns] for one in (x_md, marks_md)), np.array(list("abc"))
    ours = canonical_order(x_md, names, marks_md)
    theirs = canonical_order(x2_md, names[columns], marks2_md)
    assert np.array_equal(x_md[ours][:, columns], x2_md[theirs])
    assert np.array_equal(marks_md[ours][:, columns], marks2_md[theirs])


def test_another_order_of_rows_changes_nothing_that_the_network_sees(rng):
    """Levels and gaps: many rows are alike but for cells that were set or filled in, and some of these nearly tie."""
    x_md = rng.integers(0, 3, size=(300, 4)) * np.array([1.0, 0.1, 3.0, 0.7])
    x_md[rng.random(x_md.shape) < 0.3] = np.nan
    set_md, config = rng.random(x_md.shape) < 0.2, PrepareConfig(independent_rows=True)
    for _ in range(5):
        rows = rng.permutation(300)
        one, other = (
            prepare(dataclasses.replace(table_of(x_md[order]), set_md=set_md[order]), config)
            for order in (slice(None), rows)
        )
        np.testing.assert_allclose(one.x_md, other.x_md, atol=1e-9)
        assert np.array_equal(one.missing_md, other.missing_md)
        assert np.array_equal(one.set_md, other.set_md)


def test_too_many_rows_are_drawn_once():
    notes = Notes()
    (rows,) = draw_passes(100, PrepareConfig(max_rows=30, seed=4), notes)
    assert len(set(rows)) == 30
    assert notes.changes == ["30 of 100 rows drawn at random (seed 4)"]
    (again,) = draw_passes(100, PrepareConfig(max_rows=30, seed=4), Notes())
    (other,) = draw_passes(100, PrepareConfig(max_rows=30, seed=5), Notes())
    assert np.array_equal(rows, again)
    assert not np.array_equal(rows, other)


@each(
    ("n_rows", "max_rows", "n_passes", "size"),
    [(61, 30, 3, 20), (90, 30, 3, 30), (10_000, 30, 8, 30), (6100, 5000, 2, 3050), (10**5, 5000, 8, 5000)],
)
def test_or_split_and_averaged(n_rows, max_rows, n_passes, size):
    """No draw has more rows than the tables of training."""
    notes = Notes()
    passes = draw_passes(n_rows, PrepareConfig(max_rows=max_rows, large="average"), notes)
    assert [len(rows) for rows in passes] == [size] * n_passes
    assert len(np.unique(np.concatenate(passes))) == n_passes * size
    assert "averaged" in notes.changes[0]


def test_nothing_random_is_seeded_globally(x_md):
    state = np.random.get_state()[1].copy(), torch.random.get_rng_state()  # noqa: NPY002
    prepare(table_of(x_md), PrepareConfig(max_rows=10))
    assert np.array_equal(state[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(state[1], torch.random.get_rng_state())


@each("bad", [{"missing": "x"}, {"large": "x"}, {"max_rows": 3}, {"max_rows": 9.5}, {"seed": -1}])
def test_settings_are_checked(bad):
    with pytest.raises(ConfigError):
        PrepareConfig(**bad)


def test_near_copies_of_near_copies_are_named_in_any_order(rng):
    x_md = rng.normal(size=(2000, 1)) + np.cumsum(0.04 * rng.normal(size=(2000, 4)), axis=1)
    r_dd = np.corrcoef(x_md.T)
    assert r_dd[0, 3] < 0.999 < r_dd.diagonal(1).min()
    for order in ([0, 1, 2, 3], [0, 2, 1, 3], [3, 1, 0, 2]):
        (said,) = describe_redundancy([f"v{k}" for k in order], x_md[:, order])
        assert all(f"'v{k}'" in said for k in range(4)), said


def test_values_far_beyond_all_others_are_told_of(rng):
    def told(x_md):
        return [said for said in prepare(table_of(x_md)).warnings if "far beyond" in said]

    x_md = rng.normal(size=(300, 3))
    tails = np.column_stack([np.exp(3 * x_md[:, 0]), rng.standard_cauchy((300, 2)), rng.random(300) < 0.01])
    assert told(x_md) == told(tails) == []
    x_md[7, 2] = np.nan
    for wild in (1e9, -1e300):
        x_md[[3, 50], 1] = wild
        (said,) = told(x_md)
        assert f"'v1' has 2 values far beyond all others ({wild:.3g}, and these between -" in said


def test_a_last_row_of_totals_is_told_of(rng):
    def told(x_md):
        return [said for said in prepare(table_of(x_md)).warnings if "row of totals" in said]

    x_md = rng.normal(50, 9, size=(60, 3)).round(2)
    counts = rng.poisson(0.1, size=(60, 3))
    assert told(x_md) == told(counts) == told(x_md - x_md.mean(axis=0)) == []
    assert told(np.vstack([x_md, [*x_md.sum(axis=0)[:1], 50, 51]])) == []
    below = np.vstack([x_md, x_md.sum(axis=0).round(1)])
    assert "in 3 of 3 columns" in told(below)[0]
    below[-1, 0] = np.nan
    assert "in 2 of 3 columns" in told(below)[0]
    assert told(below[::-1]) == []
