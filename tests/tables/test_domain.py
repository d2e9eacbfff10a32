"""The domain meter: what a table looks like, and whether training saw anything like it."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cases import SEEDS, each
from graphbam.tables.domain import FEATURES, describe_table, judge_domain, summarise_domain


@pytest.fixture(params=SEEDS)
def rng(request):
    return np.random.default_rng(request.param)


def test_description_ignores_units_and_column_order(rng):
    x_md = rng.normal(size=(100, 4))
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
    ranges = summarise_domain(training)
    inside = [judge_domain(features, ranges) for features in training]
    assert np.mean([not found for found in inside]) > 0.6
    outside = judge_domain(describe_table(rng.standard_cauchy((200, 5))), ranges)
    assert any("weight of the tails" in sentence for sentence in outside)
    assert judge_domain(training[0], {}) == []


def test_only_the_harder_side_is_an_alarm():
    ranges = {"outlier_share": [0.1, 0.2], "effective_rank": [0.3, 0.6], "n_samples": [50, 500]}
    easy = {"outlier_share": 0.0, "effective_rank": 0.9, "n_samples": 100.0}
    hard = {"outlier_share": 0.3, "effective_rank": 0.1, "n_samples": 5000.0}
    assert judge_domain(easy, ranges) == []
    assert len(judge_domain(hard, ranges)) == 3


@each("n_variables", [2, 5, 40])
def test_independent_rows_look_alike_at_every_size(n_variables):
    rng = np.random.default_rng(0)
    found = [
        describe_table(rng.normal(size=(rng.integers(30, 500), n_variables)))["row_dependence"] for _ in range(200)
    ]
    assert np.std(found) == pytest.approx(1, abs=0.25)
    assert np.mean(found) == pytest.approx(0, abs=0.4)
