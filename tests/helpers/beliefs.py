"""Results written by hand."""

import numpy as np

from graphbam.result import Result

NAMES = ("a", "b", "c", "d", "e")


def make_result(links, *, names=NAMES, moral=None, colliders=None, **fields):
    """Probabilities of links, and of pairs that are moral, by pairs of names; elsewhere 0.02 and 0.01."""
    p = np.tile([0.97, 0.02, 0.01], (len(names), len(names), 1))
    for pairs, column in ((links, 1), (moral or {}, 2)):
        for (a, b), value in pairs.items():
            i, j = names.index(a), names.index(b)
            p[i, j] = p[j, i] = np.eye(3)[column] * value + np.eye(3)[0] * (1 - value)
    rows = None if colliders is None else [(*(names.index(v) for v in triple), q) for triple, q in colliders.items()]
    return Result(tuple(names), p, colliders=rows, **fields)


def beliefs(dag, names=NAMES, p=0.99, **fields):
    """A result that is all but sure of a DAG, given as edges in text: "a>b b>c"."""
    arrows = [tuple(edge.split(">")) for edge in dag.split()]
    links = dict.fromkeys(arrows, p)
    together = {frozenset(arrow) for arrow in arrows}
    colliders = {
        (a, c, b): p for a, c in arrows for b, d in arrows if c == d and a < b and frozenset((a, b)) not in together
    }
    return make_result(links, names=names, moral={(a, b): p for a, _, b in colliders}, colliders=colliders, **fields)
