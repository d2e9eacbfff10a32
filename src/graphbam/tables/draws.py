"""Which rows the network sees, in which order: step 5 of `graphbam.tables.prepare`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphbam.tables.config import PrepareConfig
from graphbam.tables.gaps import MAX_ROWS_DROPPED
from graphbam.tables.notes import Notes
from graphbam.tables.table import Indices, Matrix

MAX_PASSES, ROWS_AVERAGED = 8, 5000
"""Draws that are averaged, at most, and rows in each: fewer than the longest tables of training have. More or longer
draws, or all rows at once, are no better (docs/performance.md)."""


def canonical_order(
    x_md: Matrix, names: Sequence[str] = (), marks_md: npt.NDArray[np.integer] | None = None
) -> Indices:
    """Order rows by their content alone: shuffling rows or columns, or changing units, changes nothing.

    Every cell is replaced by its rank within the column. A row's key is a sum of hashes over its columns and
    a column's key a sum over its rows; three rounds tell apart whatever differs. What cannot be told apart so (a
    table that looks the same after two columns change places) is decided by the names of the columns. Rows that hold
    the same are put in order by what is known of their cells, `marks_md`.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> shuffled = x[::-1, [2, 0, 1]] * [1.0, 1000.0, 3.0]
    >>> ours, theirs = x[canonical_order(x)][:, [2, 0, 1]], shuffled[canonical_order(shuffled)]
    >>> bool(np.allclose(ours * [1.0, 1000.0, 3.0], theirs))
    True
    """
    ranks_md = np.empty(x_md.shape, dtype=np.uint64)
    for k, column in enumerate(x_md.T):
        ranks_md[:, k] = np.unique(column, return_inverse=True)[1]
    key_d = np.zeros(x_md.shape[1], dtype=np.uint64)
    key_m = np.zeros(x_md.shape[0], dtype=np.uint64)
    for _ in range(3):
        key_m = _hash(ranks_md + key_d).sum(axis=1)
        key_d = _hash(ranks_md + _hash(key_m)[:, None]).sum(axis=0)
    if len(np.unique(key_m)) == len(key_m):
        return np.argsort(key_m)
    by_key = sorted(range(len(key_d)), key=lambda k: (key_d[k], names[k] if len(names) else k), reverse=True)
    marks_dm = () if marks_md is None else marks_md.T[by_key]
    order: Indices = np.lexsort((*marks_dm, *ranks_md.T[by_key], key_m))
    return order


def _hash(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scatter integers over 64 bits (the finalising steps of splitmix64); products wrap around on purpose."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw_passes(n_rows: int, config: PrepareConfig, notes: Notes, n_found: int | None = None) -> tuple[Indices, ...]:
    """Choose the rows of every forward pass; says so in `notes` when not all rows are in one.

    `n_found` rows were there, if not all were read.

    Examples
    --------
    >>> [len(rows) for rows in draw_passes(10, PrepareConfig(max_rows=4, large="average"), Notes())]
    [3, 3, 3]
    """
    if n_rows <= config.max_rows:
        return (np.arange(n_rows),)
    shuffled = np.random.default_rng(config.seed).permutation(n_rows)
    if config.large == "subsample":
        notes.changes.append(f"{config.max_rows} of {n_rows} rows drawn at random (seed {config.seed})")
        _warn_of_draw(config.max_rows, n_found or n_rows, config.max_rows, notes)
        return (np.sort(shuffled[: config.max_rows]),)
    most = min(config.max_rows, ROWS_AVERAGED)
    n_passes = min(MAX_PASSES, -(-n_rows // most))
    size = min(most, n_rows // n_passes)
    done = f"answers of {n_passes} disjoint draws of {size} out of {n_rows} rows averaged (seed {config.seed})"
    notes.changes.append(done)
    if n_passes * size < (1 - MAX_ROWS_DROPPED) * (n_found or n_rows):
        _warn_of_draw(n_passes * size, n_found or n_rows, size, notes)
    return tuple(np.sort(shuffled[k * size : (k + 1) * size]) for k in range(n_passes))


def _warn_of_draw(n_used: int, n_rows: int, n_at_once: int, notes: Notes) -> None:
    share = f"{n_used / n_rows:.{0 if 100 * n_used >= n_rows else 2}%}"
    notes.warnings.append(
        f"{n_used} of {n_rows} rows used ({share}): links too weak for {n_at_once} of them are not found"
    )
