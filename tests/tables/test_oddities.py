"""What owners of a table are told about it."""

from __future__ import annotations

import numpy as np
import torch

from cases import each
from graphbam.simulation import simulate
from graphbam.tables.config import PrepareConfig
from graphbam.tables.oddities import describe_redundancy, warn_of_relations
from graphbam.tables.prepare import prepare
from made import table_of


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


def test_exact_relations_are_named(x_md):
    x_md[:, 3] = x_md[:, 0] - 2 * x_md[:, 2]
    warnings = prepare(table_of(x_md)).warnings
    assert "columns 'v0', 'v2', 'v3' are bound by an exact linear relation" in warnings[0]
    assert warnings[0].endswith("easily missed: consider leaving out what follows from the rest")


def relations(rng):
    """Tables of which all columns but the last are bound, rounded as in files."""
    shares_md = 100 * rng.dirichlet(np.ones(4), size=300)
    yield "parts of 100", "a linear relation", shares_md.round(1)
    parts_md = rng.gamma(2, 10, size=(300, 3))
    yield "a rounded total", "a linear relation", np.column_stack([parts_md, parts_md.sum(axis=1).round()])
    weight_m, height_m = rng.normal(75, 12, size=300).round(1), rng.normal(1.72, 0.09, size=300).round(2)
    bmi_m = (weight_m / height_m**2).round(1)
    yield "a ratio", "a product or ratio", np.column_stack([weight_m, height_m, bmi_m])
    sides_md = rng.lognormal(2, 0.5, size=(300, 2)).round(1)
    yield "a product", "a product or ratio", np.column_stack([sides_md, sides_md.prod(axis=1).round()])


def test_relations_are_named_in_spite_of_rounding_and_wild_cells():
    rng = np.random.default_rng(0)
    for name, how, x_md in relations(rng):
        table_md = np.column_stack([x_md, rng.normal(50, 9, size=300)])
        for wild in (False, True):
            table_md[7, :2] *= 1e4 if wild else 1
            said = [one for one in prepare(table_of(table_md)).warnings if "bound by" in one]
            assert len(said) == 1, name
            assert said[0].startswith(f"columns {', '.join(repr(f'v{k}') for k in range(x_md.shape[1]))} are"), name
            assert how in said[0], name
            assert "leave out what follows from the rest (as a ratio, product or sum)" in said[0]


def test_a_gap_hides_no_relation():
    x_md = next(iter(relations(np.random.default_rng(0))))[2]
    x_md[:40, 0] = np.nan
    assert any("exact but for rounding" in one for one in prepare(table_of(x_md)).warnings)


def test_ordinary_tables_get_no_such_warning(x_md):
    assert describe_redundancy(list("abcd"), x_md) == warn_of_relations(list("abcd"), x_md) == []
    n_alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        _, linear_md = simulate(mechanism="linear", noise="gaussian", n_samples=300, n_variables=12, seed=seed)
        names = list("abcdefghijkl")
        assert warn_of_relations(names, linear_md + rng.uniform(5, 100) * linear_md.std()) == [], seed
        near_md = simulate(world="collinear", n_samples=300, n_variables=12, seed=seed)[1]
        assert warn_of_relations(names, near_md) == [], seed
        n_alarms += len(warn_of_relations(names, (near_md / near_md.std(axis=0)).round(2)))
        assert warn_of_relations(names, simulate(n_samples=30, n_variables=12, seed=seed)[1]) == [], seed
    assert n_alarms <= 1  # where all that others leave of a column is as little as its rounding


@each("n_rows", [4, 10, 19])
def test_few_rows_are_warned_about(rng, n_rows):
    ready = prepare(table_of(rng.normal(size=(n_rows, 3))))
    assert f"only {n_rows} rows" in ready.warnings[0]
    assert torch.isfinite(ready.standardised()).all()


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


def test_relations_among_very_many_columns_are_not_looked_for(rng, monkeypatch):
    """A matrix of all pairs of 20,000 columns is 3 GB."""
    monkeypatch.setattr("graphbam.tables.oddities.correlate", None)
    assert warn_of_relations([f"v{k}" for k in range(301)], rng.normal(size=(1000, 301))) == []
