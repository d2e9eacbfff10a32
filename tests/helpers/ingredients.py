"""Graphs, probabilities and immoralities to test directions with: named shapes, and random numbers of several kinds."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from cases import examples
from graphbam.directions import cpdag
from graphbam.directions.arrows import arrow_probabilities
from graphbam.directions.immoralities import Beliefs
from graphbam.errors import KnowledgeError
from graphbam.graphs.cut import Cut
from graphbam.graphs.graph import skeleton
from graphbam.graphs.knowledge import Knowledge
from graphbam.result import Result
from graphbam.sparse import SparseResult

law, few = examples(100, 300), examples(30, 60)

CUTS = (Cut(), Cut(fdr=0.1), Cut(threshold=0.8), Cut(objective="shd"))
CHAIN = skeleton([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
SQUARE = skeleton([[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])


def ring(d):
    """A cycle without chords: no DAG has this skeleton without a v-structure if d > 3."""
    step = np.roll(np.eye(d, dtype=np.int8), 1, axis=1)
    return (step | step.T) * complete(d)


def complete(d):
    return 1 - np.eye(d, dtype=np.int8)


def unshielded(adj):
    """All (a, c, b), a < b, with c adjacent to both and a not to b."""
    d = len(adj)
    return [
        (a, c, b)
        for a, c, b in itertools.permutations(range(d), 3)
        if a < b and adj[a, c] and adj[b, c] and not adj[a, b]
    ]


def edges_of(adj):
    return [(int(i), int(j)) for i, j in np.argwhere(adj)]


def certain(classes):
    return np.eye(3)[classes]


def p_of(adj, p=1.0):
    return np.where(np.asarray(adj)[..., None] > 0, [1 - p, p, 0.0], [1.0, 0.0, 0.0])


def forbidding(d, required):
    forbidden = np.zeros((d, d), dtype=bool)
    for i, j in required:
        forbidden[j, i] = True
    return forbidden


class Directed(NamedTuple):
    """A graph with directions, and how likely each arrow is."""

    adjacency: np.ndarray
    arrow_dd: np.ndarray


def orient(adj, rows=(), forbidden=None, accept=0.5, unclaimed=0.01):
    """Direct links that are certain; pairs nobody speaks of are moral with a small probability."""
    adj = skeleton(adj)
    moral = np.where(adj > 0, 0.0, unclaimed)
    beliefs = Beliefs(np.stack([1 - adj - moral, adj, moral], axis=-1), rows, forbidden)
    (graph,) = cpdag.direct_links(beliefs, adj > 0, [accept])
    return Directed(graph, arrow_probabilities(beliefs))


def decide(p_dd3, rows=(), cut=CUTS[0], forbidden=None, caution=0.0):
    """The graph that is chosen by probabilities and immoralities."""
    beliefs = Beliefs(p_dd3, rows, forbidden)
    arrow_dd = arrow_probabilities(beliefs)
    return Directed(cpdag.nearest_cpdag(beliefs, arrow_dd, cut, caution), arrow_dd)


class Numbers:
    """Random values of one kind: spread out, all equal, only 0 and 1, or few distinct ones."""

    def __init__(self, seed, kind):
        self.rng, self.kind = np.random.default_rng(seed), kind

    def __call__(self, *shape):
        values = self.rng.random(shape)
        if self.kind == "equal":
            return np.full(shape, self.rng.choice([0.0, 0.3, 0.5, 0.8, 1.0]))
        return {"extreme": values.round(), "coarse": (values * 4).round() / 4}.get(self.kind, values)

    def probabilities(self, d):
        p_dd3 = self(d, d, 3) ** self.rng.choice([1, 4]) + 1e-12
        p_dd3 = p_dd3 + p_dd3.transpose(1, 0, 2)
        return p_dd3 / p_dd3.sum(axis=-1, keepdims=True)

    def graph(self, d):
        kind = self.rng.choice(["ring", "complete", "sparse", "dense"])
        if kind in ("ring", "complete"):
            return {"ring": ring, "complete": complete}[kind](d)
        upper = np.triu(self.rng.random((d, d)) < (0.8 if kind == "dense" else 2 / d), 1).astype(np.int8)
        return upper | upper.T

    def claims(self, adj, fitting=True):
        """Claims for a random share of all triples; with `fitting` only for those the graph has."""
        d = len(adj)
        triples = unshielded(adj) if fitting else list(itertools.permutations(range(d), 3))
        keep = self.rng.random(len(triples)) < self.rng.random()
        triples = [triple for triple, kept in zip(triples, keep, strict=True) if kept]
        return [(*triple, float(p)) for triple, p in zip(triples, self(len(triples)), strict=True)]

    def knowledge(self, names):
        """Some of all kinds of knowledge at once, such as goes together."""
        order = self.rng.permutation(names).tolist()
        marks, pairs = ("->", "--"), self.rng.permutation(list(itertools.combinations(order, 2))).tolist()
        while True:
            n_told = self.rng.integers(0, len(pairs) + 1, size=2) // 2
            required = [(a, self.rng.choice(marks), b) for a, b in pairs[: n_told[0]]]
            forbidden = [(*self.rng.permutation(two),) for two in pairs[len(pairs) - n_told[1] :]]
            tiers = {name: k * 3 // len(order) for k, name in enumerate(order) if self.rng.random() < 0.6}
            told = {"forbidden": [(a, self.rng.choice(marks), b) for a, b in forbidden], "tiers": tiers}
            try:
                return Knowledge(required=required, within_tiers=bool(self.rng.random() < 0.8), **told)
            except KnowledgeError:
                continue

    def answers(self, d, knowledge=True):
        """What one pass may say of d variables, as a matrix and as a list of some of the pairs."""
        names = tuple(f"v{k}" for k in range(d))
        i, j = np.triu_indices(d, 1)
        listed = self.rng.random(len(i)) < self.rng.choice([0.5, 1.0])
        i, j = i[listed], j[listed]
        known = self.knowledge(names) if knowledge else None
        p_dd3, way_dd, compelled_dd, path_dd = self.probabilities(d), self(d, d), self(d, d) / 2, self(d, d)
        way_dd = np.triu(way_dd, 1) + np.tril(1 - way_dd.T, -1)
        whole = {"directions": way_dd, "compelled": compelled_dd, "ancestors": path_dd}
        classes_dd3 = known.apply(names, p_dd3) if known else p_dd3
        both = {name: np.stack([m[i, j], m[j, i]], axis=1) for name, m in whole.items() if name != "directions"}
        listed = SparseResult(names, np.stack([i, j], axis=1), p_dd3[i, j], directions=way_dd[i, j], **both)
        return Result(names, classes_dd3, knowledge=known, **whole), listed.with_knowledge(known)


numbers = st.builds(Numbers, st.integers(0, 2**32), st.sampled_from(["free", "equal", "extreme", "coarse"]))
sizes = st.integers(1, 9)
