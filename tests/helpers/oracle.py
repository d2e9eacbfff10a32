"""Graph vocabulary spelt out with loops and d-separation, to judge the package by.

It shares nothing with the package: two DAGs are equivalent if they have the same d-separations, found by walking over
paths, and a CPDAG is the union of the DAGs of one class.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from functools import cache

import numpy as np
from hypothesis import strategies as st


def acyclic(dag):
    """By definition: no power of the adjacency matrix returns to where it started."""
    power = np.eye(len(dag), dtype=int)
    for _ in range(len(dag)):
        power = power @ dag
        if power.trace():
            return False
    return True


def all_pdags(d):
    """Every graph: each pair has no edge, one of two arrows, or an undirected edge."""
    pairs = list(itertools.combinations(range(d), 2))
    for marks in itertools.product([(0, 0), (1, 0), (0, 1), (1, 1)], repeat=len(pairs)):
        adj = np.zeros((d, d), dtype=np.int8)
        for (i, j), (there, back) in zip(pairs, marks, strict=True):
            adj[i, j], adj[j, i] = there, back
        yield adj


@cache
def all_dags(d):
    return [adj for adj in all_pdags(d) if not (adj & adj.T).any() and acyclic(adj)]


def simple_paths(dag, start, end):
    """All paths without repeated variables, whatever the arrows' directions."""
    stack = [[start]]
    while stack:
        path = stack.pop()
        if path[-1] == end:
            yield path
            continue
        stack.extend([*path, k] for k in range(len(dag)) if k not in path and (dag[path[-1], k] or dag[k, path[-1]]))


def descendants(dag, node):
    seen, stack = {node}, [node]
    while stack:
        new = set(np.flatnonzero(dag[stack.pop()])) - seen
        seen |= new
        stack.extend(new)
    return seen


def is_open(dag, path, given_set):
    for before, middle, after in zip(path, path[1:], path[2:], strict=False):
        if dag[before, middle] and dag[after, middle]:
            if not descendants(dag, middle) & given_set:
                return False
        elif middle in given_set:
            return False
    return True


def d_separations(dag):
    """All statements "i and j are separated by S" that hold, as a set that can be compared."""
    statements = set()
    for i, j in itertools.combinations(range(len(dag)), 2):
        paths = list(simple_paths(dag, i, j))
        others = [k for k in range(len(dag)) if k not in (i, j)]
        for size in range(len(others) + 1):
            for chosen in itertools.combinations(others, size):
                if not any(is_open(dag, path, set(chosen)) for path in paths):
                    statements.add((i, j, chosen))
    return frozenset(statements)


@cache
def markov_classes(d):
    """DAGs of d variables, grouped by their d-separations."""
    classes = defaultdict(list)
    for dag in all_dags(d):
        classes[d_separations(dag)].append(dag)
    return list(classes.values())


def union(dags):
    return np.bitwise_or.reduce(dags)


def loop_v_structures(adj):
    """(a, c, b) with a → c ← b, a < b, and no edge between a and b."""

    def arrow(i, j):
        return adj[i, j] and not adj[j, i]

    return {
        (a, c, b)
        for c in range(len(adj))
        for a, b in itertools.combinations(range(len(adj)), 2)
        if arrow(a, c) and arrow(b, c) and not adj[a, b] and not adj[b, a]
    }


def random_dag(rng, d, degree):
    """Erdős–Rényi in a random order."""
    upper = np.triu(rng.random((d, d)) < degree / max(d - 1, 1), k=1)
    order = rng.permutation(d)
    return upper[np.ix_(order, order)].astype(np.int8)


@st.composite
def dags(draw, max_d=200, max_degree=8):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(0, max_d) | st.integers(0, 12))
    return random_dag(rng, d, draw(st.floats(0, max_degree)))
