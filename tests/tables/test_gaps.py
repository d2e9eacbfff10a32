"""Gaps, codes for missing values, infinities: what happens to them, and what is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import graphbam as gb
from cases import SEEDS, each
from graphbam.errors import TableError
from graphbam.tables.config import PrepareConfig
from graphbam.tables.gaps import CODES, fill_gaps
from graphbam.tables.prepare import prepare
from made import table_of


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
    monkeypatch.setattr("graphbam.tables.gaps.MOST_REGRESSED", 3)
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
