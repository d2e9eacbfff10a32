"""Extensions: the DAGs that a CPDAG stands for.

A DAG extends a partially directed graph if it keeps the arrows and directs the undirected edges without a cycle or a
new v-structure. Parts joined by undirected edges are independent of each other: whatever is chosen in one, R1–R4 never
reach another. As the rules are complete, every edge that they leave undirected may still go either way. So to choose
one direction, to apply the rules, and to go on until all edges are directed ends in an extension, and leads to each.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.graphs.equivalence import close_under_meek
from graphbam.graphs.graph import consistent_extension

__all__ = ["sample_dags"]

FEW_MEMBERS = 200
"""Parts of a class with at most so many DAGs are listed, so that `sample_dags` draws from them uniformly."""


def sample_dags(cpdag: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw DAGs from those that a graph stands for.

    Parameters
    ----------
    cpdag : array_like, shape (d, d)
        A CPDAG, or a graph made of one by background knowledge.
    n : int
        Number of DAGs.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int8, shape (n, d, d)
        Consistent extensions of `cpdag`, drawn with replacement.

    Raises
    ------
    GraphError
        If no DAG extends `cpdag`.

    Notes
    -----
    A part with at most 200 members (all trees of up to 200 variables, all of up to five) is listed and drawn from
    uniformly. In a larger part a random undirected edge is given a random direction and R1–R4 are applied, until none
    is left; every member can come out, but not all with the same probability.

    Examples
    --------
    >>> dags = sample_dags([[0, 1], [1, 0]], 1000, np.random.default_rng(0))
    >>> dags.shape, bool(450 < dags[:, 0, 1].sum() < 550)
    ((1000, 2, 2), True)
    """
    consistent_extension(cpdag)  # raises if the graph stands for nothing
    closed = close_under_meek(cpdag)
    dags = np.repeat(closed[None], n, axis=0)
    for nodes in _undirected_parts(closed):
        block = np.ix_(nodes, nodes)
        part = closed[block]
        members = list(islice(_members(part), FEW_MEMBERS + 1))
        for dag in dags:
            few = len(members) <= FEW_MEMBERS
            dag[block] = members[rng.integers(len(members))] if few else _random_member(part, rng)
    return dags


def _undirected_parts(pdag: NDArray[np.int8]) -> Iterator[NDArray[np.int64]]:
    """Yield the variables of each part that undirected edges join."""
    links = (pdag & pdag.T) > 0
    todo = links.any(axis=0)
    while todo.any():
        part = np.zeros(len(pdag), dtype=bool)
        part[todo.argmax()] = True
        while not np.array_equal(part, grown := part | links[part].any(axis=0)):
            part = grown
        todo &= ~part
        yield np.flatnonzero(part)


def _members(pdag: NDArray[np.int8]) -> Iterator[NDArray[np.int8]]:
    """Yield all DAGs that a closed graph stands for."""
    links = np.argwhere(pdag & pdag.T)
    if not len(links):
        yield pdag
        return
    a, b = links[0]
    yield from _members(_directed(pdag, a, b))
    yield from _members(_directed(pdag, b, a))


def _random_member(pdag: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
    while len(links := np.argwhere(pdag & pdag.T)):
        pdag = _directed(pdag, *links[rng.integers(len(links))])
    return pdag


def _directed(pdag: NDArray[np.int8], tail: int, head: int) -> NDArray[np.int8]:
    """Direct one undirected edge, and all that follow."""
    result = pdag.copy()
    result[head, tail] = 0
    return close_under_meek(result)
