"""Rows in an order of their content, and draws of them."""

from __future__ import annotations

import numpy as np

from cases import each
from graphbam.tables.config import PrepareConfig
from graphbam.tables.draws import canonical_order, draw_passes
from graphbam.tables.notes import Notes


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
