import numpy as np
import pytest

from graphbam.errors import ResultError
from graphbam.questions.rows import Rows, find_pair, find_variable, rank


def chain(rng, n_rows=2000):
    """x → y → z, all of variance one or so."""
    x, e, f = rng.normal(size=(3, n_rows))
    return np.column_stack([x, x + e, x + e + f])


def test_a_partial_correlation_is_that_of_the_inverse(rng):
    x_md = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4))
    precision = np.linalg.inv(np.cov(x_md.T))
    expected = -precision[0, 1] / np.sqrt(precision[0, 0] * precision[1, 1])
    assert Rows(x_md, 60).associate(0, 1, [2, 3]).pearson == pytest.approx(expected)


def test_what_lies_between_explains_away(rng):
    rows = Rows(chain(rng), 2000)
    assert rows.associate(0, 2).pearson > 0.5
    assert abs(rows.associate(0, 2, [1]).pearson) < 2 * rows.chance


def test_curves_see_what_lines_do_not(rng):
    x = rng.normal(size=1000)
    rows = Rows(np.column_stack([x, x**2 + rng.normal(size=1000), np.exp(2 * x)]), 1000)
    bent = rows.associate(0, 1)
    assert abs(bent.pearson) < 0.15
    assert bent.curve > 0.7
    assert rows.associate(0, 2).rank == pytest.approx(1)


def test_curves_of_a_third_variable_take_more_away(rng):
    z, e, f = rng.normal(size=(3, 1000))
    rows = Rows(np.column_stack([z**2 + 0.3 * e, z**2 + 0.3 * f, z]), 1000)
    assert rows.associate(0, 1, [2]).pearson > 0.7
    assert abs(rows.associate(0, 1, [2], curved=True).pearson) < 0.2


def test_independent_columns_stay_within_chance_as_often_as_said():
    within = []
    for seed in range(200):
        rows = Rows(np.random.default_rng(seed).normal(size=(100, 2)), 100)
        within.append(abs(rows.associate(0, 1).pearson) <= rows.chance)
    assert 0.9 < np.mean(within) < 0.99


def test_copies_leave_nothing(rng):
    x = rng.normal(size=50)
    assert Rows(np.column_stack([x, x, rng.normal(size=50)]), 50).associate(0, 2, [1]) is None


def test_rows_that_repeat_each_other_are_worth_less():
    few, many = (Rows(np.zeros((100, 2)), worth) for worth in (20.0, 100.0))
    assert few.chance > 2 * many.chance


def test_ranks_share_ties():
    assert rank(np.array([2.0, 1.0, 2.0, 5.0])).tolist() == [1.5, 0.0, 1.5, 3.0]


def test_unknown_and_equal_names_are_refused():
    with pytest.raises(ResultError, match=r"no variable 'Age'\. Did you mean 'age'"):
        find_variable(["age", "dose"], "Age")
    with pytest.raises(ResultError, match="given twice"):
        find_pair(["age", "dose"], "age", "age")
