"""Search that reckons with hidden common causes: FCI, by causal-learn, and GFCI, which begins with BOSS."""

from __future__ import annotations

import importlib
import itertools
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, grade, partial_correlations
from graphbam.benchmarks.baselines._causal_learn import read_graph
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.graphs.equivalence import consistent_extension
from graphbam.graphs.graph import ancestors, moral_graph, skeleton

TAIL, HEAD, CIRCLE = -1, 1, 2
"""Marks of causal-learn's matrices; at [i, j] stands the mark at i."""


class Fci(Baseline):
    """FCI with Fisher's z at level 0.05; discriminating paths of at most four variables."""

    name, title, kind = "fci", "FCI", "cpdag"
    package, module = "causal-learn", "causallearn"

    def __init__(self, *, alpha: float = 0.05, longest_path: int = 4) -> None:
        self.alpha, self.longest_path = alpha, longest_path

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            return answer_pag(self.search(x_md), x_md)

    def search(self, x_md: Matrix) -> NDArray[Any]:
        """Marks of the graph."""
        from causallearn.search.ConstraintBased.FCI import fci

        found, _ = fci(x_md, "fisherz", self.alpha, max_path_length=self.longest_path, show_progress=False)
        return np.asarray(found.graph)


class Gfci(Fci):
    """BOSS first, then tests that take edges away which a hidden cause made, then the rules of FCI (Ogarrio 2016).

    Only edges within a triangle are tested, given up to three neighbours of either end. Variables that BOSS leaves
    apart are apart given the parents of the later one.
    """

    name, title = "gfci", "GFCI (BOSS)"
    most_given: ClassVar[int] = 3

    def search(self, x_md: Matrix) -> NDArray[Any]:
        from causallearn.search.PermutationBased.BOSS import boss
        from causallearn.utils.cit import CIT

        cpdag_dd, test = read_graph(boss(x_md, verbose=False)), CIT(x_md, "fisherz")
        link_dd = skeleton(cpdag_dd).astype(bool)
        apart = separate_by_parents(consistent_extension(cpdag_dd))
        for i, j in np.argwhere(np.triu(link_dd)):
            if (given := self.find_separator(link_dd, test, int(i), int(j))) is not None:
                apart[int(i), int(j)] = apart[int(j), int(i)] = set(given)
        for i, j in apart:
            link_dd[i, j] = False
        return orient(link_dd, apart, x_md, test, self.alpha, self.longest_path)

    def find_separator(self, link_dd: NDArray[np.bool_], test: Any, i: int, j: int) -> tuple[int, ...] | None:
        """Neighbours given which two linked variables are independent; None: there are none, or no triangle."""
        if not (link_dd[i] & link_dd[j]).any():
            return None
        for end, other in ((i, j), (j, i)):
            near = [int(k) for k in np.flatnonzero(link_dd[end]) if k != other]
            for size in range(min(self.most_given, len(near)) + 1):
                for given in itertools.combinations(near, size):
                    if test(i, j, given) > self.alpha:
                        return given
        return None


def separate_by_parents(dag_dd: NDArray[np.int8]) -> dict[tuple[int, int], set[int]]:
    """What separates each two variables that are not adjacent in a DAG: the parents of the one that is no ancestor."""
    above_dd, link_dd = ancestors(dag_dd), skeleton(dag_dd)
    found = {}
    for i, j in np.argwhere(~link_dd.astype(bool) & ~np.eye(len(dag_dd), dtype=bool)):
        later = i if above_dd[j, i] else j
        found[int(i), int(j)] = {int(k) for k in np.flatnonzero(dag_dd[:, later])}
    for i, j in list(found):  # the same for both orders, where neither is an ancestor of the other
        found[j, i] = found[i, j]
    return found


def orient(
    link_dd: NDArray[np.bool_],
    apart: dict[tuple[int, int], set[int]],
    x_md: Matrix,
    test: Any,
    alpha: float,
    longest_path: int,
) -> NDArray[Any]:
    """Marks by FCI's rules 0 to 4 and 8 to 10, without selection bias."""
    from causallearn.graph.Edge import Edge
    from causallearn.graph.Endpoint import Endpoint
    from causallearn.graph.GeneralGraph import GeneralGraph
    from causallearn.graph.GraphNode import GraphNode

    rules = importlib.import_module("causallearn.search.ConstraintBased.FCI")
    nodes = [GraphNode(f"X{k}") for k in range(len(link_dd))]
    for k, node in enumerate(nodes):
        node.add_attribute("id", k)
    graph = GeneralGraph(nodes)
    for i, j in np.argwhere(np.triu(link_dd)):
        graph.add_edge(Edge(nodes[i], nodes[j], Endpoint.CIRCLE, Endpoint.CIRCLE))
    rules.rule0(graph, nodes, apart, None, False)
    changes = True
    while changes:
        changes = rules.rulesR1R2cycle(graph, None, False, False)
        changes = rules.ruleR3(graph, apart, None, changes, False)
        if changes:
            changes = rules.ruleR4B(graph, longest_path, x_md, test, alpha, apart, changes, None, False)
        changes = rules.rule8(graph, nodes, changes)
        changes = rules.rule9(graph, nodes, changes)
        changes = rules.rule10(graph, changes)
    return np.asarray(graph.graph)


def answer_pag(mark_dd: NDArray[Any], x_md: Matrix) -> Answer:
    """A partial ancestral graph as an answer; within each class of pairs the order is that of |partial correlation|.

    Hidden causes: i ↔ j first, then links with a circle, arrows, the rest. Arrows: i → j first, then i o→ j, i o–o j,
    the rest. In the graph i o→ j is an arrow, i ↔ j no more than a link.

    Examples
    --------
    >>> x_md = np.random.default_rng(0).normal(size=(50, 3))
    >>> marks = np.array([[0, HEAD, TAIL], [HEAD, 0, 0], [HEAD, 0, 0]])  # 0 ↔ 1, 0 → 2
    >>> answer = answer_pag(marks, x_md)
    >>> answer.hidden_dd.astype(int)
    array([[0, 3, 1],
           [3, 0, 0],
           [1, 0, 0]])
    >>> answer.arrow_dd.astype(int)
    array([[0, 0, 3],
           [0, 0, 0],
           [0, 0, 0]])
    """
    here_dd, there_dd = mark_dd, mark_dd.T  # the mark at i, the mark at j
    into_dd = there_dd == HEAD
    link_dd, both_dd = here_dd != 0, into_dd & into_dd.T
    arrow_dd, half_dd = into_dd & (here_dd == TAIL), into_dd & (here_dd == CIRCLE)
    open_dd = link_dd & ~into_dd & ~into_dd.T
    graph_dd = (arrow_dd | half_dd | both_dd | open_dd).astype(np.int8)
    strength_dd = np.clip(partial_correlations(x_md), 0.0, 0.999)
    has_circle_dd = (here_dd == CIRCLE) | (there_dd == CIRCLE)
    hidden_dd = np.select([both_dd, has_circle_dd, link_dd], [3.0, 2.0, 1.0], 0.0) + strength_dd
    ranked_dd = np.select([arrow_dd, half_dd, open_dd], [3.0, 2.0, 1.0], 0.0) + strength_dd
    moral_dd = grade(moral_graph(graph_dd), strength_dd)
    return Answer(graph_dd, grade(graph_dd, strength_dd), moral_dd, arrow_dd=ranked_dd, hidden_dd=hidden_dd)
