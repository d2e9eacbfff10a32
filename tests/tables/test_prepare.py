"""Preprocessing: stated rules for gaps, constants, many rows; and nothing depends on order or units."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from cases import each
from graphbam.errors import ConfigError
from graphbam.tables.config import PrepareConfig
from graphbam.tables.prepare import prepare
from graphbam.tables.standard import is_constant
from made import table_of


def test_constant_columns_stay_in_the_names(x_md):
    x_md[:, 1] = 0.1 + 0.2
    ready = prepare(table_of(x_md))
    assert ready.names == ("v0", "v1", "v2", "v3")
    assert ready.varying.tolist() == [0, 2, 3]
    assert "'v1' is constant" in ready.changes[0]


def test_tiny_variation_is_not_constant():
    dates = 1.7e9 + np.arange(50) * 1e-3
    assert not is_constant(np.column_stack([dates, dates * 0 + 5])).all()


def test_noise_on_columns_of_two_levels_is_told_of():
    coins_md = (np.random.default_rng(0).random((300, 40)) < 0.5).astype(float)
    assert any(change.startswith("40 columns of two levels") for change in prepare(table_of(coins_md)).changes)
    assert not any("two levels" in change for change in prepare(table_of(coins_md[:, :8])).changes)


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


def test_nothing_random_is_seeded_globally(x_md):
    state = np.random.get_state()[1].copy(), torch.random.get_rng_state()  # noqa: NPY002
    prepare(table_of(x_md), PrepareConfig(max_rows=10))
    assert np.array_equal(state[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(state[1], torch.random.get_rng_state())


@each("bad", [{"missing": "x"}, {"large": "x"}, {"max_rows": 3}, {"max_rows": 9.5}, {"seed": -1}])
def test_settings_are_checked(bad):
    with pytest.raises(ConfigError):
        PrepareConfig(**bad)
