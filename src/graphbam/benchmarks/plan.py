"""What there is to do, in which order, what need not be tried, and how long it will take."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from graphbam.benchmarks.cases import Case
from graphbam.benchmarks.methods import Method
from graphbam.benchmarks.store import Key, Row

__all__ = ["Entry", "Forecast", "Timeouts", "is_open", "make_plan"]

SPARED = "timed out at "
"""How the reason of a row begins that was not tried because a smaller case took too long."""

WIDTHS = (10, 20, 50, 100)
"""Numbers of variables at which a class of widths ends."""

OVERHEAD = 0.2
"""Seconds that every fit takes beside its own."""

GROWTH = 2.0
"""Power of the number of variables with which seconds are guessed to grow, until they are known."""


class Entry(NamedTuple):
    """A fit that is to be done."""

    case: Case
    trial: int
    method: Method

    def key(self) -> Key:
        return self.case.name, self.trial, self.method.name


def make_plan(cases: Iterable[Case], methods: Iterable[Method], trials: int) -> list[Entry]:
    """All fits, small tables first, and within a class of widths one method after the other.

    A process serves one method: this way it does so for as long as possible, and a method meets a larger case only
    after all smaller ones.
    """
    ordered = sorted(cases, key=lambda case: (case.n_variables, case.n_samples, case.name))
    classes = itertools.groupby(ordered, lambda case: bisect.bisect_left(WIDTHS, case.n_variables))
    chosen = list(methods)
    return [
        Entry(case, trial, method)
        for alike in [list(group) for _, group in classes]
        for method in chosen
        for case in alike
        for trial in range(case.count_trials(trials))
    ]


def is_open(row: Row | None, retry: frozenset[str]) -> bool:
    """Whether a fit has still to be done, given its row if it has one.

    Examples
    --------
    >>> spared = {"status": "skipped", "reason": "timed out at d=50"}
    >>> is_open(None, frozenset()), is_open(spared, frozenset()), is_open(spared, frozenset({"timeout"}))
    (True, False, True)
    """
    if row is None:
        return True
    is_spared = row["status"] == "skipped" and str(row["reason"]).startswith(SPARED)
    return row["status"] in retry or (is_spared and "timeout" in retry)


class Timeouts:
    """Which cases are too large for which method."""

    def __init__(self, rows: Iterable[Row]):
        self.rows: list[Row] = []
        for row in rows:
            self.note(row)

    def note(self, row: Row) -> None:
        """Remember a row if it is a time-out."""
        if row["status"] == "timeout":
            self.rows.append(row)

    def find(self, case: Case, method: str) -> str | None:
        """Why a case need not be tried: the method timed out on a smaller one of the same family."""
        for row in self.rows:
            if row["method"] == method and row["family"] == case.family and row["source"] == case.source:
                small, large = (row["n_variables"], row["n_samples"]), (case.n_variables, case.n_samples)
                if small != large and small[0] <= large[0] and small[1] <= large[1]:
                    return f"{SPARED}d={small[0]}, M={small[1]}"
        return None


class Forecast:
    """How long the fits that remain will take, judged by those that are done.

    Work is the seconds of all fits together; how much of it is done in a second, on however many processes and beside
    whatever else, is measured.
    """

    def __init__(self, entries: Iterable[Entry], rows: Iterable[Row], limit: float):
        self.limit, self.work = limit, 0.0
        self.left = Counter((entry.method.name, entry.case.n_variables) for entry in entries)
        self.seen: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            self._learn(row)

    def note(self, row: Row) -> None:
        """Take a finished fit off the list, and learn from it."""
        self.left[row["method"], row["n_variables"]] -= 1
        self.work += self._learn(row)

    def _learn(self, row: Row) -> float:
        work = (row["seconds"] or 0.0) + OVERHEAD
        self.seen[row["method"]][row["n_variables"]].append(work)
        return work

    def seconds(self, elapsed: float) -> float:
        """Estimate for all that remain, `elapsed` seconds after the first fit was begun."""
        left = sum(count * self._expect(method, d) for (method, d), count in self.left.items())
        return left * elapsed / self.work if self.work else left

    def _expect(self, method: str, n_variables: int) -> float:
        """Mean of the method at this width, else scaled from the nearest it knows, else the mean of all methods."""
        known = self.seen.get(method)
        if not known:
            every = [value for widths in self.seen.values() for values in widths.values() for value in values]
            return sum(every) / max(len(every), 1)
        nearest = min(known, key=lambda d: abs(d - n_variables))
        mean = sum(known[nearest]) / len(known[nearest])
        return min(mean * (n_variables / nearest) ** GROWTH, self.limit)
