"""Correlations and residuals of the rows that a result keeps, and names looked up in it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphbam.errors import ResultError
from graphbam.graphs.graph import BoolMatrix, Matrix, Vector
from graphbam.result import Result

LEAST_ROWS = 10
"""Of fewer rows nothing is said."""

ROWS_PER_TERM = 10
"""A curve takes another variable away if there are so many rows for each of its terms; otherwise a line does."""

_DEGREE = 3


def find_variable(names: Sequence[str], name: str) -> int:
    """Place of a variable.

    Examples
    --------
    >>> find_variable(["age", "dose"], "dose")
    1
    >>> find_variable(["age", "dose"], "doze")
    Traceback (most recent call last):
    graphbam.errors.ResultError: there is no variable 'doze'. Did you mean 'dose'?
    """
    if name in names:
        return list(names).index(name)
    near = difflib.get_close_matches(str(name), names, n=1)
    listed = ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")
    raise ResultError(
        f"there is no variable {name!r}. " + (f"Did you mean {near[0]!r}?" if near else f"There are {listed}.")
    )


def find_pair(names: Sequence[str], a: str, b: str) -> tuple[int, int]:
    """Places of two different variables."""
    i, j = find_variable(names, a), find_variable(names, b)
    if i == j:
        raise ResultError(f"{a!r} was given twice; pass two different variables.")
    return i, j


@dataclass(frozen=True)
class Association:
    """How two variables go together, perhaps given others."""

    pearson: float
    """Correlation, as along a line."""
    rank: float
    """Correlation of the ranks, as along any rising or falling curve."""
    curve: float
    """Between 0 and 1: how closely one follows the best curve of degree three through the other, adjusted for its three
    terms; the better of the two ways."""

    @property
    def strength(self) -> float:
        """The largest of the three, without sign."""
        return max(abs(self.pearson), abs(self.rank), self.curve)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that a result keeps, as the network saw them: complete, standardised by the cells that were measured."""

    x_md: Matrix
    """Shape (rows, D)."""
    worth: float
    """How many independent rows they are worth: fewer where neighbours resemble each other."""
    filled_md: BoolMatrix | None = None
    """Cells that were missing and have been filled in; None: none was."""
    set_md: BoolMatrix | None = None
    """Cells that an experiment set; None: none was."""

    @classmethod
    def of(cls, result: Result) -> Rows | None:
        """Those of a result; None where it keeps none, as after `Result.load`, or too few."""
        if result.sample is None or len(result.sample) < LEAST_ROWS:
            return None
        used = float(result.provenance.get("n_rows_used") or len(result.sample))
        worth = float(result.provenance.get("n_rows_worth") or used)
        x_md = np.asarray(result.sample, dtype=np.float64)
        x_md = x_md if result.filled is None else scale_by_measured(x_md, result.filled)
        return cls(x_md, len(x_md) * min(1.0, worth / used), result.filled, result.was_set)

    def measured(self, columns: Sequence[int]) -> Rows:
        """The rows in which none of some variables was filled in.

        What was filled in is what a line through the others expects: it adds no evidence, and bends sizes.

        Examples
        --------
        >>> rows = Rows(np.eye(4)[:, :2], 2.0, np.eye(4, dtype=bool)[:, :2])
        >>> rows.measured([0]).x_md.tolist(), rows.measured([0, 1]).worth
        ([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], 1.0)
        """
        return self._without(self.filled_md, columns)

    def usual(self, columns: Sequence[int]) -> Rows:
        """The rows in which no experiment set one of some variables: what usually acts on them had its say.

        Examples
        --------
        >>> rows = Rows(np.eye(4)[:, :2], 4.0, set_md=np.eye(4, dtype=bool)[:, :2])
        >>> len(rows.usual([1]).x_md), rows.usual([0, 1]).worth
        (3, 2.0)
        """
        return self._without(self.set_md, columns)

    def _without(self, marked_md: BoolMatrix | None, columns: Sequence[int]) -> Rows:
        """The rows in which no cell of some columns is marked."""
        if marked_md is None or not marked_md[:, list(columns)].any():
            return self
        keep_m = ~marked_md[:, list(columns)].any(axis=1)
        marks = (None if one_md is None else one_md[keep_m] for one_md in (self.filled_md, self.set_md))
        return Rows(self.x_md[keep_m], self.worth * float(keep_m.mean()), *marks)

    @property
    def chance(self) -> float:
        """Correlations between ± this come up by chance in 95 of 100 tables."""
        return float(1.96 / np.sqrt(max(self.worth - 3, 1)))

    def varies(self, k: int) -> bool:
        """Whether a variable has more than one value."""
        return bool(np.ptp(self.x_md[:, k]) > 0)

    def residual(self, k: int, given: Sequence[int] = (), *, curved: bool = False) -> Vector:
        """What is left of a variable that others do not tell.

        Parameters
        ----------
        k : int
            The variable.
        given : sequence of int
            Others, taken away by a line, each by itself.
        curved : bool
            By curves of degree three instead, if there are `ROWS_PER_TERM` rows for each of their terms.
        """
        return _take_away(self.x_md[:, k], self._terms(given, curved))

    def _terms(self, given: Sequence[int], curved: bool) -> Matrix:
        """A column of ones, and what is taken away of others."""
        x_mg = self.x_md[:, list(given)]
        if curved and len(x_mg) >= ROWS_PER_TERM * _DEGREE * len(given):
            x_mg = _raise_to_powers(x_mg)
        return np.column_stack([np.ones(len(x_mg)), x_mg])

    def free(self, k: int, keep: int, given: Sequence[int] = ()) -> Vector:
        """A variable without what a line gives to others, in a regression that has the variable `keep` as well."""
        y_m = self.x_md[:, k] - self.x_md[:, k].mean()
        if not len(given):
            return np.asarray(y_m)
        x_mg = self.x_md[:, [keep, *given]] - self.x_md[:, [keep, *given]].mean(axis=0)
        weight_g = np.linalg.lstsq(x_mg, y_m, rcond=None)[0]
        return np.asarray(y_m - x_mg[:, 1:] @ weight_g[1:])

    def associate(self, i: int, j: int, given: Sequence[int] = (), *, curved: bool = False) -> Association | None:
        """How two variables go together given others; None where the others leave nothing of one of them."""
        x_m, y_m = self.residual(i, given, curved=curved), self.residual(j, given, curved=curved)
        enough = 1e-6 * np.array([self.x_md[:, i].var(), self.x_md[:, j].var()])
        if len(given) + 3 > len(x_m) or not (np.array([x_m.var(), y_m.var()]) > enough).all():
            return None
        terms_mg = self._terms(given, curved)
        curve = max(
            _follow(to_m, _take_away(_raise_to_powers(self.x_md[:, [k]]), terms_mg), terms_mg.shape[1])
            for to_m, k in ((y_m, i), (x_m, j))
        )
        return Association(_correlate(x_m, y_m), _correlate(rank(x_m), rank(y_m)), curve)


def scale_by_measured(x_md: Matrix, filled_md: BoolMatrix) -> Matrix:
    """Columns in standard deviations of the cells that were not filled in, where they were in those of all cells.

    What a line through other columns expects spreads less than what was measured.

    Examples
    --------
    >>> x_md = np.array([[1.0], [-1.0], [0.0], [0.0]])
    >>> scale_by_measured(x_md, x_md == 0).T.round(2).tolist()
    [[0.71, -0.71, 0.0, 0.0]]
    """
    measured_d = np.ma.array(x_md, mask=filled_md).std(axis=0).filled(0.0)
    spread_d = x_md.std(axis=0)
    is_spread_d = (measured_d > 0) & (spread_d > 0)
    return np.asarray(x_md * np.where(is_spread_d, spread_d, 1.0) / np.where(is_spread_d, measured_d, 1.0))


def rank(x_m: Vector) -> Vector:
    """Ranks from 0; equal values share the mean of theirs.

    Examples
    --------
    >>> rank(np.array([3.0, 1.0, 3.0])).tolist()
    [1.5, 0.0, 1.5]
    """
    _, place, count = np.unique(x_m, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count + 1) / 2)[place])


def _correlate(x_m: Vector, y_m: Vector) -> float:
    x_m, y_m = x_m - x_m.mean(), y_m - y_m.mean()
    scale = np.sqrt((x_m @ x_m) * (y_m @ y_m))
    return float(np.clip(x_m @ y_m / scale, -1, 1)) if scale > 0 else 0.0


def _raise_to_powers(x_mg: Matrix) -> Matrix:
    """Columns, their squares and their cubes."""
    return np.concatenate([x_mg**power for power in range(1, _DEGREE + 1)], axis=1)


def _take_away(y_m: NDArray[np.float64], terms_mg: Matrix) -> NDArray[np.float64]:
    """What is left of one or more columns when the best sum of terms is taken away."""
    return np.asarray(y_m - terms_mg @ np.linalg.lstsq(terms_mg, y_m, rcond=None)[0])


def _follow(y_m: Vector, x_mp: Matrix, n_terms: int) -> float:
    """Root of the share of the variance of y that a sum of columns explains, adjusted for their number.

    `n_terms` have been taken away from both before.
    """
    rest_m = _take_away(y_m, x_mp)
    free = len(y_m) - n_terms
    share = 1 - (rest_m @ rest_m) / (y_m @ y_m or 1.0) * free / max(free - x_mp.shape[1], 1)
    return float(np.sqrt(np.clip(share, 0, 1)))
