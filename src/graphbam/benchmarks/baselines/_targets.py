"""Rows of a table by what was set in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._base import Matrix


class Environment(NamedTuple):
    """Rows in which the same variables were set."""

    targets: tuple[int, ...]
    x_md: Matrix


def split_rows(x_md: Matrix, set_md: NDArray[np.bool_] | None) -> list[Environment]:
    """Environments of a table, that without targets first if there is one.

    Examples
    --------
    >>> found = split_rows(np.arange(6.0).reshape(3, 2), np.array([[0, 1], [0, 0], [0, 1]], bool))
    >>> [(one.targets, one.x_md.tolist()) for one in found]
    [((), [[2.0, 3.0]]), ((1,), [[0.0, 1.0], [4.0, 5.0]])]
    """
    if set_md is None:
        return [Environment((), x_md)]
    patterns, place_m = np.unique(set_md, axis=0, return_inverse=True)
    return [
        Environment(tuple(int(k) for k in np.flatnonzero(pattern)), x_md[place_m.ravel() == number])
        for number, pattern in enumerate(patterns)  # sorted: the one without any comes first
    ]
