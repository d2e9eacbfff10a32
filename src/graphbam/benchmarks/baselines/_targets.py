"""Rows of a table by what was set in them, and what that decides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._base import Matrix
from graphbam.graphs.equivalence import dag_to_cpdag, direct_told


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


def dag_to_class(dag_dd: NDArray[np.integer], set_md: NDArray[np.bool_] | None) -> NDArray[np.int8]:
    """The class of DAGs that the rows of an experiment cannot tell from this one, as a partially directed graph.

    It has the arrows of the CPDAG, those of links of which some row set one end without the other, and all that follow:
    the interventional essential graph of Hauser and Bühlmann (2012). Without targets it is the CPDAG.

    Examples
    --------
    >>> dag_to_class(np.diag([1, 1], 1), np.array([[1, 0, 0], [0, 0, 0]], bool))  # 0 → 1 → 2, 0 was set
    array([[0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int8)
    >>> dag_to_class(np.diag([1, 1], 1), None)
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]], dtype=int8)
    """
    if set_md is None:
        return dag_to_cpdag(dag_dd)
    kind_d = np.unique(set_md, axis=1, return_inverse=True)[1].ravel()  # alike where the same rows were set
    return direct_told(dag_dd, kind_d[:, None] != kind_d)
