"""Arrows: how likely each is, given that its edge exists.

One network says so by itself; then only prior knowledge is enforced (the last part of this module). For the two steps
of the paper the definition is, from strong to weak:

- Known directions have probability 1, their opposites 0.
- a → c has the largest probability of any immorality a → c ← b, asked about or not (see `immoralities`). An arrow in
  one of several v-structures is at least as likely as each of them, and no more follows without knowing how they
  depend on each other.
- An arrow that R1–R4 imply (see `graphbam.graphs.equivalence`) has the probability of the weakest link of its
  derivation, and of the best derivation if there are several. Links are the arrows and edges it uses, the edges it
  needs to be absent, and the v-structures it needs not to be there. In R1, where a → b and a → b ← c would contradict
  the conclusion b → c, the link is the probability of the first less that of the second.
- Evidence for both directions is weighed as if the two were independent, given that not both are true: strong evidence
  p and weak evidence q against it become p (1 − q) / (1 − p q) and q (1 − p) / (1 − p q).
- Edges less likely than 0.2 have no other arrows and take part in no derivation, arrows below 0.02 in none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.directions.immoralities import IMMORALITY, Beliefs, Immoralities
from graphbam.errors import GraphError
from graphbam.graphs.graph import MORAL, SKELETON, BoolMatrix, Indices, Matrix, reachable

__all__ = [
    "SUPPORT_FROM",
    "Follows",
    "Known",
    "Neighbourhood",
    "arrow_probabilities",
    "check_pairs",
    "claim_immoralities",
    "derive_all",
    "follow_known",
    "imply_known",
    "raise_open",
    "settle_ancestors",
    "settle_arrows",
    "settle_compelled",
    "settle_directions",
    "settle_hidden",
    "settle_paths",
]

SUPPORT_FROM = 0.2
"""Edges less likely than this have no arrows but known ones, and take no part in deriving others …"""

FOLLOWED_FROM = 0.02
"""… and neither do arrows less likely than this: many pairs, and next to nothing to learn from them."""

SAME = 1e-12
"""Sums that miss their limit by no more than this keep it."""


def arrow_probabilities(beliefs: Beliefs) -> Matrix:
    """Probability of each arrow, given that its edge exists: the strongest derivation of each.

    Parameters
    ----------
    beliefs : Beliefs
        Links, immoralities and forbidden arrows.

    Returns
    -------
    ndarray, shape (d, d)
        At [i, j] the probability of i → j given that i and j are adjacent; [i, j] and [j, i] sum to at most
        one, and what is missing is the probability that the direction stays open.

    Examples
    --------
    In 0 → 2 ← 1, 2 — 3 the last edge is directed by R1; its derivation is no stronger than the collider:

    >>> p_dd3 = np.full((4, 4, 3), [1.0, 0.0, 0.0])
    >>> p_dd3[2, :] = p_dd3[:, 2] = [0.0, 1.0, 0.0]
    >>> arrow_probabilities(Beliefs(p_dd3, [(0, 2, 1, 0.75)]))
    array([[0.  , 0.  , 0.75, 0.  ],
           [0.  , 0.  , 0.75, 0.  ],
           [0.  , 0.  , 0.  , 0.75],
           [0.  , 0.  , 0.  , 0.  ]])
    """
    linked, forbidden = beliefs.p_dd >= SUPPORT_FROM, beliefs.forbidden
    around = _neighbourhoods(beliefs, linked)
    arrow_dd = np.zeros(linked.shape)
    for here in around.values():
        arrow_dd.flat[here.into] = here.collider.max(axis=1, initial=0.0)
    arrow_dd[linked & forbidden.T & ~forbidden] = 1.0
    arrow_dd = derive_all(arrow_dd.ravel(), forbidden.ravel(), around).reshape(linked.shape)
    arrow_dd[forbidden.T & ~forbidden] = 1.0  # of unlikely edges too
    return _not_both(arrow_dd)


def follow_known(beliefs: Beliefs, arrow_dd: Matrix) -> Matrix:
    """Arrows of the CPDAG, and what known directions imply of other links by R1–R4.

    A network tells which links data leave open. Once a direction is known, links beside it are open no more: if no
    common child is behind the neighbours a and c of b, and a → b is known, b — c can only be b → c.

    Parameters
    ----------
    beliefs : Beliefs
        Links, immoralities and forbidden arrows; where one direction alone is permitted, it is known.
    arrow_dd : ndarray, shape (d, d)
        Probability of each arrow of the CPDAG, given a link, known ones included.

    Returns
    -------
    ndarray, shape (d, d)
        The same where nothing is known; [i, j] and [j, i] sum to one at most.

    Examples
    --------
    >>> p_dd3 = np.full((3, 3, 3), [1.0, 0.0, 0.0])
    >>> p_dd3[1, :] = p_dd3[:, 1] = [0.0, 1.0, 0.0]
    >>> back_dd = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)  # 0 → 1 is known
    >>> follow_known(Beliefs(p_dd3, None, back_dd), np.array([[0, 1, 0], [0, 0, 0], [0, 0.02, 0]])).round(2).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.98], [0.0, 0.02, 0.0]]
    """
    least_dd = imply_known(beliefs, arrow_dd)
    return arrow_dd if least_dd is None else raise_open(arrow_dd, arrow_dd.T, least_dd)


def imply_known(beliefs: Beliefs, arrow_dd: ArrayLike = 1.0) -> Matrix | None:
    """How likely arrows are by what known ones imply of links; None where no likely link has a known direction.

    `arrow_dd` says how sure known arrows are.
    """
    linked, forbidden = beliefs.p_dd >= SUPPORT_FROM, beliefs.forbidden
    known = linked & forbidden.T & ~forbidden
    if not known.any():
        return None
    around, arrow_dd = _neighbourhoods(beliefs, linked), np.where(known, arrow_dd, 0.0)
    implied_dd = derive_all(arrow_dd.ravel(), forbidden.ravel(), around).reshape(known.shape)
    return implied_dd / np.maximum(implied_dd + implied_dd.T, 1.0)


def raise_open(arrow: Matrix, reverse: Matrix, least: Matrix) -> Matrix:
    """Arrows as likely as `least` says, as far as that takes from what is open; doing it again changes nothing."""
    return np.maximum(arrow, np.minimum(least, 1 - reverse))


def derive_all(arrow: Matrix, forbidden: NDArray[np.bool_], around: Mapping[int, Neighbourhood]) -> Matrix:
    """What R1–R4 imply of arrows in some order, which neighbourhoods know: a fixed point, reached from below.

    Of every variable with links, `around` has the neighbourhood.
    """
    arrow = np.where(forbidden, 0.0, arrow)
    waiting = dict.fromkeys(around)  # in order, each once
    while waiting:
        v = next(iter(waiting))
        del waiting[v]
        for tail in _derive(arrow, forbidden, v, around[v]):  # new arrows matter to these and to who is linked to both
            waiting |= dict.fromkeys([tail, *around[tail].nodes.tolist()])
    return arrow


class Neighbourhood(NamedTuple):
    """What the rules need to know around one variable v, and where to find the arrows they are about."""

    nodes: Indices
    """Variables that may be linked with v."""
    into: Indices
    """Place of nodes[i] → v …"""
    out: Indices
    """… of v → nodes[i] …"""
    inner: Indices
    """… and of nodes[i] → nodes[j], which is always 0 where `linked` says no."""
    link: Matrix
    """Probability that v and nodes[i] are adjacent."""
    absent: Matrix
    """Probability that nodes[i] and nodes[j] are not adjacent; 0 on the diagonal."""
    collider: Matrix
    """Probability of nodes[i] → v ← nodes[j]."""
    linked: BoolMatrix
    """Whether nodes[i] and nodes[j] may be linked."""


def _not_both(arrow_dd: Matrix) -> Matrix:
    """Condition two independent events, i → j and j → i, on not both being the case."""
    alone, either = arrow_dd * (1 - arrow_dd.T), 1 - arrow_dd * arrow_dd.T
    return np.divide(alone, either, out=np.full_like(alone, 0.5), where=either > 0)


def _neighbourhoods(beliefs: Beliefs, linked: BoolMatrix) -> dict[int, Neighbourhood]:
    """Around every variable, for arrows as in a flattened matrix."""
    found, d = dict[int, Neighbourhood](), len(beliefs)
    for v in np.flatnonzero(linked.any(axis=1)).tolist():
        nodes = np.flatnonzero(linked[v])
        block = np.ix_(nodes, nodes)
        absent = 1 - beliefs.p_dd[block]
        np.fill_diagonal(absent, 0.0)
        collider = beliefs.immoral_at(v, nodes) * (absent > 0)
        places = nodes * d + v, v * d + nodes, nodes[:, None] * d + nodes
        found[v] = Neighbourhood(nodes, *places, beliefs.p_dd[v, nodes], absent, collider, linked[block])
    return found


def _derive(arrow: Matrix, forbidden: NDArray[np.bool_], v: int, around: Neighbourhood) -> list[int]:
    """Raise the arrows that R1–R4 imply around v, which is b in R1 and R2 and a in R3 and R4; return their tails."""
    link, absent, collider = around.link, around.absent, around.collider
    into = _followed(np.minimum(arrow[around.into], link))
    out = _followed(np.minimum(arrow[around.out], link))
    by_r1 = np.minimum(into[:, None] - collider, absent).max(axis=0)
    by_r2 = np.where(around.linked & ~forbidden[around.inner], np.minimum(into[:, None], out), 0.0)
    tails = around.nodes[(by_r2 > arrow[around.inner]).any(axis=1)].tolist()
    arrow[around.inner] = np.maximum(arrow[around.inner], by_r2)
    inner = _followed(np.minimum(np.minimum(arrow[around.inner], 1 - absent), link[:, None]))
    by_any = np.where(forbidden[around.out], 0.0, np.maximum(by_r1, _by_cases(inner, collider, absent)))
    tails += [v] if (by_any > arrow[around.out]).any() else []
    arrow[around.out] = np.maximum(arrow[around.out], by_any)
    return tails


def _followed(arrows: Matrix) -> Matrix:
    return np.where(arrows >= FOLLOWED_FROM, arrows, 0.0)


def _by_cases(inner: Matrix, collider: Matrix, absent: Matrix) -> Matrix:
    """R3 and R4: what arrows among the neighbours of a, `inner`, say about the edges of a itself."""
    tails = inner.any(axis=1)
    if not tails.any():
        return np.zeros(len(inner))
    first = inner[tails]
    passage = np.minimum(absent, 1 - collider)[tails]
    by_r3 = np.minimum(first, _max_min(passage[:, tails], first))
    by_r4 = np.minimum(passage, _max_min(first[:, tails], first))
    return np.asarray(np.maximum(by_r3, by_r4).max(axis=0))


def _max_min(first: Matrix, second: Matrix) -> Matrix:
    """Matrix product with maximum for sum and minimum for product: the best of all weakest links."""
    if len(first) * second.size <= 100_000:
        return np.asarray(np.minimum(first[:, :, None], second).max(axis=1))
    return np.array([np.minimum(row[:, None], second).max(axis=0) for row in first])


# ── answers of one pass ───────────────────────────────────────────────────────────────────────────────────


def check_pairs(p_dd: ArrayLike, n_variables: int, what: str) -> Matrix:
    """Probabilities of ordered pairs, as floats; refused if they are of another shape or no probabilities."""
    result = np.array(p_dd, dtype=np.float64)
    if result.shape != (n_variables, n_variables):
        raise GraphError(f"{what} has shape {result.shape}; {n_variables} names need {(n_variables, n_variables)}.")
    if not np.isfinite(result).all() or (result < 0).any() or (result > 1).any():
        raise GraphError(f"{what} holds values that are no probabilities; the network gave no answer.")
    return result


class Known(NamedTuple):
    """What prior knowledge says of arrows and paths."""

    forbidden_dd: BoolMatrix
    """Arrows that it excludes."""
    after_dd: BoolMatrix
    """Whether i comes after j, so that no path leads from i to j: a part of what is forbidden."""
    arrow_dd: BoolMatrix
    """Arrows that it makes certain."""

    @property
    def forced_dd(self) -> BoolMatrix:
        """Arrows that a link can only be: where both are forbidden, and with them the link, by what comes after."""
        out_dd: BoolMatrix = (self.forbidden_dd & ~self.forbidden_dd.T) | self.after_dd
        return out_dd.T

    @property
    def follows(self) -> FollowsInMatrix:
        """What follows from the certain arrows."""
        return FollowsInMatrix(reachable(self.arrow_dd))


def settle_directions(
    p_dd: Matrix, known: Known | None = None, link_dd: Matrix | None = None, least_dd: Matrix | None = None
) -> Matrix:
    """Directions given a link: [i, j] and [j, i] sum to one exactly, and a forbidden arrow has none of it.

    With `link_dd`, how likely links are, arrows that exclude each other are no likelier together than one, and they are
    as likely as `least_dd` says (`settle_arrows`).

    Examples
    --------
    >>> nothing, back = np.zeros((2, 2), dtype=bool), np.array([[False, True], [False, False]])
    >>> settle_directions(np.array([[0.5, 0.7], [0.3, 0.5]]), Known(back, nothing, nothing))
    array([[0., 0.],
           [1., 0.]])
    """
    p_dd = (p_dd + 1 - p_dd.T) / 2
    if known is None:
        return _empty_diagonal(p_dd if least_dd is None else np.clip(p_dd, least_dd, 1 - least_dd.T))
    p_dd = np.where(known.forced_dd, 1.0, np.where(known.forced_dd.T, 0.0, p_dd))
    if link_dd is not None:
        arrow_dd = settle_arrows(link_dd, p_dd, known.forced_dd, known.follows, least_dd)
        changed = (arrow_dd != link_dd * p_dd) & ~known.forced_dd
        p_dd = np.clip(np.divide(arrow_dd, link_dd, out=p_dd, where=changed), 0.0, 1.0)
    return _empty_diagonal(p_dd)


def settle_compelled(p_dd: Matrix, known: Known | None = None, least_dd: Matrix | None = None) -> Matrix:
    """Arrows of the CPDAG given a link: [i, j] and [j, i] sum to one at most; a known arrow is one.

    They are as likely as `least_dd` says (`imply_known`), as far as they were open.
    """
    p_dd = p_dd / np.maximum(p_dd + p_dd.T, 1.0)
    if least_dd is not None:
        p_dd = raise_open(p_dd, p_dd.T, least_dd)
    if known is not None:
        p_dd = np.where(known.forced_dd, 1.0, np.where(known.forbidden_dd, 0.0, p_dd))
    return _empty_diagonal(p_dd)


def settle_hidden(p_dd: Matrix) -> Matrix:
    """Hidden common causes: symmetric."""
    return _empty_diagonal((p_dd + p_dd.T) / 2)


def claim_immoralities(p_dd3: Matrix, compelled_dd: Matrix) -> Immoralities:
    """What arrows of the CPDAG say of immoralities: a → c ← b is no likelier than either arrow, or than a, b moral.

    All triples whose links are likely enough to matter (`SUPPORT_FROM`) are there.

    Examples
    --------
    >>> p_dd3 = np.full((3, 3, 3), [0.0, 1.0, 0.0])
    >>> p_dd3[0, 1] = p_dd3[1, 0] = [0.2, 0.0, 0.8]
    >>> claim_immoralities(p_dd3, np.array([[0, 0, 0.9], [0, 0, 0.7], [0, 0, 0]])).tolist()
    [(0, 2, 1, 0.7)]
    """
    link_dd = p_dd3[..., SKELETON]
    apart_dd = np.maximum(1 - link_dd, 1e-9)
    moral_dd = np.minimum(p_dd3[..., MORAL] / apart_dd, 1.0)
    rows = []
    for c in range(len(link_dd)):
        nodes = np.flatnonzero((link_dd[c] >= SUPPORT_FROM) & (np.arange(len(link_dd)) != c))
        i, j = np.triu_indices(len(nodes), 1)
        a, b = nodes[i], nodes[j]
        found = np.empty(len(a), dtype=IMMORALITY)
        found["a"], found["c"], found["b"] = a, c, b
        found["probability"] = np.minimum(np.minimum(compelled_dd[a, c], compelled_dd[b, c]), moral_dd[a, b])
        rows.append(found)
    return np.sort(np.concatenate(rows), order=("a", "b", "c"))


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────────────
#
# Paths of arrows both ways would be a cycle, and an arrow is a path. Where prior knowledge makes a ⇒ b certain, a ⇒ c
# follows from b ⇒ c, and c ⇒ b from c ⇒ a: what follows is as likely at least. Hence arrows x → y and u → v exclude
# each other where certain paths lead from y to u and from v to x, and sum to one at most.


class Follows(Protocol):
    """What follows from what where some paths are certain, however paths are kept."""

    def flip(self, p: NDArray[Any]) -> NDArray[Any]:
        """The same of the paths back."""

    def spread(self, p: Matrix) -> Matrix:
        """For each path the largest value of those that it follows from, its own among them; `p` if none does."""


class FollowsInMatrix:
    """`Follows` for matrices with i ⇒ j at [i, j].

    Examples
    --------
    With 0 ⇒ 1 certain, 0 ⇒ 2 follows from 1 ⇒ 2, and 2 ⇒ 1 from 2 ⇒ 0:

    >>> certain_dd = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=bool)
    >>> FollowsInMatrix(certain_dd).spread(np.array([[0, 1, 0.1], [0, 0, 0.7], [0.3, 0.2, 0]])).tolist()
    [[0.0, 1.0, 0.7], [0.0, 0.0, 0.7], [0.3, 0.3, 0.0]]
    """

    def __init__(self, certain_dd: BoolMatrix) -> None:
        self.certain_dd = certain_dd

    def flip(self, p: NDArray[Any]) -> NDArray[Any]:
        return p.T

    def spread(self, p: Matrix) -> Matrix:
        if not self.certain_dd.any():
            return p
        p = np.where(np.eye(len(p), dtype=bool), -np.inf, p)
        for certain_dd in (self.certain_dd, self.certain_dd.T):  # where a path begins, then where it ends
            own = p.copy()
            for k in np.flatnonzero(certain_dd.any(axis=1)):
                p[k] = np.maximum(own[k], own[certain_dd[k]].max(axis=0))
            p = p.T
        return _empty_diagonal(p)


def settle_arrows(
    link: Matrix, direction: Matrix, forced: BoolMatrix, follows: Follows, least: Matrix | None = None
) -> Matrix:
    """How likely each arrow is, link and direction: those that exclude each other sum to one at most.

    Where they do not, directions give way, and to the same extent; not so `forced` ones, whose reverse is forbidden. If
    forced arrows exclude each other, they are less likely than their links. Given a link, arrows are as likely as
    `least` says (`imply_known`), as far as that agrees with itself and with forced ones; others give way to it.

    Examples
    --------
    With 0 → 1 known, 1 → 2 and 2 → 0 cannot both be as likely as they were:

    >>> known_dd = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=bool)
    >>> direction_dd = np.array([[0, 1, 0.2], [0, 0, 0.9], [0.8, 0.1, 0]])
    >>> settle_arrows(1 - np.eye(3), direction_dd, known_dd, FollowsInMatrix(known_dd)).round(2).tolist()
    [[0.0, 1.0, 0.55], [0.0, 0.0, 0.55], [0.45, 0.45, 0.0]]
    """
    is_free = ~(forced | follows.flip(forced))
    fixed, most = np.where(forced, link, 0.0), _share(np.where(forced, link, 0.0), follows)
    fixed = np.where(fixed > most + SAME, most, fixed)
    arrow, floor = link * direction, fixed
    if least is not None:
        low = np.where(is_free, link * least, 0.0)
        low = np.minimum(low, np.minimum(_share(low, follows), 1 - follows.flip(follows.spread(fixed))))
        arrow, floor = _limit(arrow, link, link - follows.flip(low), follows), np.maximum(fixed, low)
    arrow = _limit(arrow, link, 1 - follows.flip(follows.spread(floor)), follows)
    arrow = np.where(is_free, arrow, fixed)
    return np.where(is_free, _limit(arrow, link, _share(arrow, follows), follows), fixed)


def _limit(arrow: Matrix, link: Matrix, most: Matrix, follows: Follows) -> Matrix:
    """Arrows no likelier than their limits, both ways: the reverse has the rest of the link."""
    least = link - follows.flip(most)
    return np.where(arrow > most + SAME, most, np.where(arrow < least - SAME, least, arrow))


def _share(arrow: Matrix, follows: Follows) -> Matrix:
    """A limit that sums to one with that of the reverse: halfway between what a path follows from and excludes."""
    least = follows.spread(arrow)
    return (least + 1 - follows.flip(least)) / 2


def settle_paths(p: Matrix, arrow: Matrix, follows: Follows, least: Matrix | None = None) -> Matrix:
    """Paths that keep the laws: as likely as the arrow at least, both ways one at most, and what follows follows.

    They are raised to `least` too, as far as the laws permit. Where nothing is broken nothing changes.

    Examples
    --------
    >>> follows = FollowsInMatrix(np.zeros((2, 2), dtype=bool))
    >>> settle_paths(np.array([[0, 0.3], [0.6, 0]]), np.array([[0, 0.1], [0.75, 0]]), follows).round(2).tolist()
    [[0.0, 0.25], [0.75, 0.0]]
    """
    floor = follows.spread(arrow)
    floor = floor if least is None else _rest_on(floor, least, follows)
    return _rest_on(floor, p, follows)


def _rest_on(floor: Matrix, p: Matrix, follows: Follows) -> Matrix:
    """Paths no less likely than a floor that keeps the laws: what is above it shrinks to the room there is."""
    p, flip = np.maximum(p, floor), follows.flip
    over = p + flip(p) > 1 + SAME
    more, back = p[over] - floor[over], flip(p)[over] - flip(floor)[over]
    room = np.maximum(1 - floor[over] - flip(floor)[over], 0.0)
    p[over] = floor[over] + more * room / np.maximum(more + back, SAME)
    least = follows.spread(p)
    return p if least is p else (least - flip(follows.spread(-flip(p)))) / 2


def settle_ancestors(p_dd: Matrix, arrow_dd: Matrix | None, known: Known | None = None) -> Matrix:
    """Paths that agree with each other, with how likely arrows are and with prior knowledge.

    Certain where known arrows make one; impossible against these, to what i comes after and where permitted arrows make
    none; and with knowledge as likely as arrows say, `bound_paths`, where that breaks no law.

    Examples
    --------
    With 0 → 1 → 2 known:

    >>> known_dd = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> settle_ancestors(np.full((3, 3), 0.4), None, Known(known_dd.T, known_dd.T, known_dd))
    array([[0., 1., 1.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """
    p_dd = _empty_diagonal(p_dd)
    if known is None:
        follows = FollowsInMatrix(np.zeros(p_dd.shape, dtype=bool))
        return settle_paths(p_dd, np.zeros(p_dd.shape) if arrow_dd is None else arrow_dd, follows)
    possible_dd = reachable(~known.forbidden_dd & ~np.eye(len(p_dd), dtype=bool)) & ~known.after_dd
    told_dd = np.where(known.arrow_dd, 1.0, 0.0 if arrow_dd is None else arrow_dd)
    least_dd, most_dd = bound_paths(told_dd)
    p_dd = p_dd if arrow_dd is None else np.minimum(p_dd, most_dd)
    return settle_paths(p_dd * possible_dd, told_dd, known.follows, least_dd * possible_dd)


def bound_paths(arrow_dd: Matrix) -> tuple[Matrix, Matrix]:
    """How likely a path of arrows is at least and at most, from the probability of every arrow.

    At least as likely as all arrows of the likeliest path, taken as independent; at most as likely as that any arrow
    leaves its beginning, or that any arrives at its end.

    Examples
    --------
    >>> least, most = bound_paths(np.array([[0, 0.9, 0.1], [0.0, 0, 0.8], [0.0, 0.2, 0]]))
    >>> least.round(2).tolist(), most.round(2).tolist()
    ([[0.0, 0.9, 0.72], [0.0, 0.0, 0.8], [0.0, 0.2, 0.0]], [[0.0, 1.0, 0.9], [0.0, 0.0, 0.8], [0.0, 0.2, 0.0]])
    """
    least_dd = _empty_diagonal(arrow_dd)
    for k in range(len(least_dd)):
        np.maximum(least_dd, least_dd[:, k, None] * least_dd[None, k, :], out=least_dd)
    most_dd = np.minimum(arrow_dd.sum(axis=1)[:, None], arrow_dd.sum(axis=0)[None, :])
    return _empty_diagonal(least_dd), _empty_diagonal(np.minimum(most_dd, 1.0))


def _empty_diagonal(p_dd: Matrix) -> Matrix:
    result = np.array(p_dd)
    np.fill_diagonal(result, 0.0)
    return result
