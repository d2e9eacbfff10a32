"""Graphs of causal-learn in our convention."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_graph(graph: Any) -> NDArray[np.int8]:
    """Adjacency of a causal-learn graph, whose matrix holds at [i, j] the mark at i: −1 a tail, 1 an arrowhead.

    i → j has a tail at i and a head at j. Tails at both ends are i — j; heads at both ends, a conflict of tests, say as
    little about the direction and become i — j as well.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> read_graph(SimpleNamespace(graph=np.array([[0, -1, 1], [1, 0, 0], [1, 0, 0]])))  # 0 → 1, 0 ↔ 2
    array([[0, 1, 1],
           [0, 0, 0],
           [1, 0, 0]], dtype=int8)
    """
    mark_dd = np.asarray(graph.graph)
    conflict_dd = (mark_dd == 1) & (mark_dd.T == 1)
    return ((mark_dd == -1) | conflict_dd).astype(np.int8)
