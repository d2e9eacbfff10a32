"""Probabilities of none · skeleton · moral for every pair: how they are made exact, and which pairs a `Cut` chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import ConfigError, GraphError, Setting
from graphbam.graphs.graph import BoolMatrix, Matrix

Objective: TypeAlias = Literal["links", "shd"]

EVEN = 0.5
"""Without a threshold or a target, pairs that are rather linked than not become links."""


def tidy_probabilities(p_dd3: ArrayLike, n_variables: int) -> Matrix:
    """Make probabilities exactly symmetric, sum to one, with a diagonal of (1, 0, 0); read-only.

    Examples
    --------
    >>> tidy_probabilities([[[0, 1, 0], [0, 3, 1]], [[0, 3, 1], [1, 1, 1]]], 2).tolist()[0]
    [[1.0, 0.0, 0.0], [0.0, 0.75, 0.25]]
    """
    result: Matrix = np.array(p_dd3, dtype=np.float64)
    if result.shape != (n_variables, n_variables, 3):
        raise GraphError(
            f"probabilities have shape {result.shape}; {n_variables} names need {(n_variables, n_variables, 3)}."
        )
    result[np.arange(n_variables), np.arange(n_variables)] = [1.0, 0.0, 0.0]
    if not np.isfinite(result).all() or (result < 0).any():
        raise GraphError("probabilities hold values that are negative or not finite; the network gave no answer.")
    result = (result + result.transpose(1, 0, 2)) / 2
    total = result.sum(axis=-1, keepdims=True)
    result /= np.where(np.abs(total - 1) > 1e-12, total, 1.0)  # what was tidied before stays as it is
    result.setflags(write=False)
    return result


@dataclass(frozen=True)
class Cut:
    """Which pairs become links: all from a threshold on, or the most that keep a false-discovery target.

    With neither, those that are rather linked than not.

    Examples
    --------
    >>> Cut()
    Cut(threshold=0.5, fdr=None, objective='links')
    >>> Cut(fdr=0.15).choose(np.array([0.99, 0.8, 0.6, 0.1])).tolist()
    [True, True, False, False]
    >>> Cut(threshold=0.5, fdr=0.1)
    Traceback (most recent call last):
    graphbam.errors.ConfigError: threshold and fdr were both given, and only one of them can decide; leave one out.
    """

    threshold: float | None = None
    """Smallest probability of a link, in (0, 1]; 0.5 if nothing else decides."""
    fdr: float | None = None
    """Largest share of false links to be expected, in (0, 1)."""
    objective: Objective = "links"
    """``"links"``: a graph with directions has exactly these links. ``"shd"``: it leaves out those without which it is
    expected to be nearer to the truth, in structural Hamming distance; takes neither of the numbers."""

    def __post_init__(self) -> None:
        self._check_objective()
        if self.threshold is not None and self.fdr is not None:
            raise ConfigError(
                *(Setting("threshold"), " and ", Setting("fdr")),
                " were both given, and only one of them can decide; leave one out.",
            )
        for name in ("threshold", "fdr"):
            if not isinstance(getattr(self, name), (float, int, np.number, type(None))):
                raise ConfigError(Setting(name, getattr(self, name)), " is not a number.")
        if self.threshold is not None and not 0 < self.threshold <= 1:
            found = Setting("threshold", self.threshold)
            raise ConfigError(found, " is not a probability of an edge; pass a number in (0, 1].")
        if self.fdr is not None and not 0 < self.fdr < 1:
            found = Setting("fdr", self.fdr)
            raise ConfigError(found, " is not a share of false discoveries; pass a number between 0 and 1.")
        if self.threshold is None and self.fdr is None and self.objective == "links":
            object.__setattr__(self, "threshold", EVEN)

    def _check_objective(self) -> None:
        if self.objective not in get_args(Objective):
            raise ConfigError(Setting("objective", self.objective), " is unknown; choose from 'links', 'shd'.")
        for name in ("threshold", "fdr"):
            if self.objective == "shd" and getattr(self, name) is not None:
                raise ConfigError(
                    *(Setting("objective", "shd"), " chooses the links itself and does not take ", Setting(name)),
                    "; leave one of them out.",
                )

    @classmethod
    def read(
        cls,
        cut: Cut | float | None = None,
        *,
        threshold: float | None = None,
        fdr: float | None = None,
        objective: Objective = "links",
    ) -> Cut:
        """What users mean by a cut, by a plain number for a threshold, or by one of the settings by name.

        Examples
        --------
        >>> Cut.read(0.7) == Cut.read(threshold=0.7) == Cut(threshold=0.7)
        True
        """
        if cut is None:
            return cls(threshold, fdr, objective)
        if (
            threshold is not None
            or fdr is not None
            or (isinstance(cut, Cut) and objective not in ("links", cut.objective))
        ):
            raise ConfigError(f"{cut!r} was given, and another setting as well; only one can decide, leave one out.")
        return cut if isinstance(cut, Cut) else cls(_read_number(cut), objective=objective)

    def __str__(self) -> str:
        """How it decides, as in ``"12 links at p ≥ 0.5"``."""
        if self.objective == "shd":
            return "with the fewest expected errors"
        return f"at p ≥ {self.threshold:g}" if self.fdr is None else f"with at most {100 * self.fdr:g} % expected false"

    def to_dict(self) -> dict[str, Any]:
        """What was set, ready for JSON.

        Examples
        --------
        >>> Cut(fdr=0.1).to_dict(), Cut(objective="shd").to_dict()
        ({'fdr': 0.1}, {'objective': 'shd'})
        """
        values = {"threshold": self.threshold, "fdr": self.fdr}
        given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        return given or {"objective": self.objective}

    def choose(self, p_n: Matrix) -> NDArray[np.bool_]:
        """Choose among pairs, by their probabilities of a link, shape (N,).

        With calibrated probabilities a chosen pair is wrong with probability 1 − p, so the expected share of
        wrong ones in a set is the mean of 1 − p. Pairs with equal probability are taken together or not at all. What a
        stricter cut of the same kind chooses, a looser one chooses too.
        """
        if self.fdr is None:
            return np.asarray(p_n >= (EVEN if self.threshold is None else self.threshold))
        levels, counts = np.unique(p_n, return_counts=True)
        levels, counts = levels[::-1], counts[::-1]
        expected = np.cumsum((1 - levels) * counts) / np.cumsum(counts)
        good = (expected <= self.fdr) & (levels > 0)
        return np.asarray(p_n >= levels[good][-1]) if good.any() else np.zeros(len(p_n), dtype=bool)

    def links(self, p_dd: Matrix) -> BoolMatrix:
        """Choose among all pairs of variables; symmetric.

        Examples
        --------
        >>> Cut().links(np.array([[0, 0.9, 0.2], [0.9, 0, 0.5], [0.2, 0.5, 0]])).astype(int)
        array([[0, 1, 0],
               [1, 0, 1],
               [0, 1, 0]])
        """
        upper = np.triu_indices(len(p_dd), 1)
        chosen = np.zeros(p_dd.shape, dtype=bool)
        chosen[upper] = self.choose(p_dd[upper])
        return chosen | chosen.T


def _read_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ConfigError(Setting("threshold", value), " is not a number.") from None
