"""What the user already knows about the graph, checked for contradictions and enforced exactly.

An edge is written ``("a", "b")`` or ``"a -- b"`` when its direction is left open, and ``("a", "->", "b")`` or
``"a -> b"`` when it is given. As a file, knowledge is JSON with the same words::

    {"forbidden": ["age -- dose"], "required": ["dose -> effect"], "tiers": [["age"], ["dose"], ["effect"]],
     "prior_odds": [["age", "effect", 3.0]]}

What each kind does to a pair's probabilities (none · skeleton · moral):

=====================  ======================================================================================
forbidden edge         skeleton becomes exactly 0; none and moral share the rest in their old proportion
required edge          skeleton becomes exactly 1
prior odds k           the odds of skeleton are multiplied by k; none and moral keep their proportion
tiers, one direction   nothing: they bind the orientation of edges, and are kept for it
all of them            moral goes to none where they leave no variable that could be a common child
=====================  ======================================================================================
"""

from __future__ import annotations

import difflib
import functools
import json
import math
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphbam.errors import KnowledgeError
from graphbam.graphs.graph import MORAL, NONE, SKELETON, BoolMatrix, Matrix, reachable

EdgeLike: TypeAlias = str | Sequence[str]
Tiers: TypeAlias = Sequence[Sequence[str]] | Mapping[str, int]
PriorOdds: TypeAlias = Mapping[Any, float] | Iterable[Sequence[Any]]

_KEYS = ("forbidden", "required", "tiers", "prior_odds", "within_tiers")


class Edge(NamedTuple):
    """A pair of variables, from a to b if directed."""

    a: str
    b: str
    is_directed: bool = False

    def __str__(self) -> str:
        return f"{self.a} {'->' if self.is_directed else '--'} {self.b}"

    @property
    def pair(self) -> frozenset[str]:
        """The two names, in no order."""
        return frozenset((self.a, self.b))


def read_edge(edge: EdgeLike) -> Edge:
    """Read one edge in any of its spellings.

    Examples
    --------
    >>> str(read_edge(("a", "b"))), str(read_edge("a -> b")), str(read_edge("a->b"))
    ('a -- b', 'a -> b', 'a -> b')
    """
    parts = _split_edge(edge) if isinstance(edge, str) else _list_parts(edge)
    if isinstance(edge, Edge):
        parts = [edge.a, "->" if edge.is_directed else "--", edge.b]
    if len(parts) == 2:
        parts.insert(1, "--")
    if len(parts) != 3 or parts[1] not in ("--", "->"):
        raise KnowledgeError(
            f"{edge!r} is not an edge. Write ('a', 'b') or 'a -- b', or with a direction ('a', '->', 'b') or 'a -> b'."
        )
    a, b = str(parts[0]), str(parts[2])
    if a == b:
        raise KnowledgeError(f"the edge {edge!r} joins {a!r} to itself. Name two different variables.")
    return Edge(a, b, parts[1] == "->")


def _split_edge(text: str) -> list[str]:
    for mark in (" -> ", " -- ", "->", "--"):  # with blanks first: names may hold the others
        parts = [part.strip() for part in text.split(mark)]
        if len(parts) == 2 and all(parts) and not parts[0].endswith(("-", "<")):
            return [parts[0], mark.strip(), parts[1]]
    return [text]


def _list_parts(value: Any) -> list[Any]:
    """The parts of an edge or a prior; none where it has no such parts."""
    return [] if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable) else list(value)


class _Order(NamedTuple):
    """Who comes before whom, by known arrows and tiers together."""

    below: dict[str, set[str]]
    """What paths of known arrows lead to, by where they begin."""
    first: dict[str, int]
    """The latest tier of a variable and of all that leads to it: it is in none before …"""
    last: dict[str, int]
    """… and the earliest of it and of all that it leads to: it is in none behind."""

    @classmethod
    def of(cls, arrows: Iterable[tuple[str, str]], tier_of: Mapping[str, int]) -> _Order:
        below = _follow(arrows)
        first, last = dict(tier_of), dict(tier_of)
        for a, reached in below.items():
            for b in reached:
                if a in tier_of:
                    first[b] = max(first.get(b, tier_of[a]), tier_of[a])
                if b in tier_of:
                    last[a] = min(last.get(a, tier_of[b]), tier_of[b])
        return cls(below, first, last)

    def is_after(self, a: str, b: str) -> bool:
        """Whether no path leads from a to b."""
        is_later = a in self.first and b in self.last and self.first[a] > self.last[b]
        return is_later or a in self.below.get(b, ())


def _follow(arrows: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Where paths of arrows lead to, by where they begin."""
    children: dict[str, set[str]] = {}
    for a, b in arrows:
        children.setdefault(a, set()).add(b)
    below: dict[str, set[str]] = {}
    for a in children:
        seen, waiting = set[str](), [a]
        while waiting:
            new = children.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        below[a] = seen
    return below


@dataclass(frozen=True)
class Knowledge:
    """Prior knowledge by variable name.

    Parameters
    ----------
    forbidden, required : iterable of edges
        Edges that are certainly absent or present; the module docstring gives the spellings.
    tiers : list of lists of names, or mapping from name to number
        Time order: no variable has a cause in a later tier. Variables may be left out.
    prior_odds : mapping from pair to odds, or iterable of (a, b, odds)
        How many times likelier than usual an edge is.
    within_tiers : bool
        Whether edges inside a tier are possible; if not, they are forbidden.

    Raises
    ------
    KnowledgeError
        If two statements contradict each other.

    Examples
    --------
    >>> Knowledge(required=["a -> b"], tiers=[["b"], ["a"]])
    Traceback (most recent call last):
    graphbam.errors.KnowledgeError: the required edge a -> b runs against the tiers: 'a' is in tier 2 ...
    """

    forbidden: tuple[Edge, ...] = ()
    required: tuple[Edge, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    prior_odds: tuple[tuple[str, str, float], ...] = ()
    within_tiers: bool = True

    def __init__(
        self,
        forbidden: Iterable[EdgeLike] = (),
        required: Iterable[EdgeLike] = (),
        tiers: Tiers | None = None,
        prior_odds: PriorOdds | None = None,
        within_tiers: bool = True,
    ) -> None:
        values = {
            "forbidden": _read_edges("forbidden", forbidden),
            "required": _read_edges("required", required),
            "tiers": _read_tiers(tiers),
            "prior_odds": _read_odds(prior_odds),
            "within_tiers": _read_flag("within_tiers", within_tiers),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Knowledge:
        """Inverse of `to_dict`; unknown keys are refused."""
        for key in values:
            if key not in _KEYS:
                raise KnowledgeError(f"{key!r} is not a kind of knowledge; choose from {', '.join(_KEYS)}.")
        return cls(**values)

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Knowledge:
        """Read knowledge from a JSON file in the form of the module docstring."""
        if not os.fspath(path):
            raise KnowledgeError("the path of prior knowledge is empty. Name a JSON file, or leave it out.")
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise KnowledgeError(f"{path} cannot be read: {error.strerror}. Check the path.") from None
        except ValueError as error:
            raise KnowledgeError(f"{path} is not JSON: {error}. See the form in graphbam.graphs.knowledge.") from None
        if not isinstance(values, dict):
            raise KnowledgeError(f"{path} holds a {type(values).__name__}; it must be an object with keys.")
        return cls.from_dict(values)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and text, ready for JSON.

        Examples
        --------
        >>> Knowledge(forbidden=["a -- b"]).to_dict()
        {'forbidden': [['a', '--', 'b']]}
        """
        values: dict[str, Any] = {
            "forbidden": [[e.a, "->" if e.is_directed else "--", e.b] for e in self.forbidden],
            "required": [[e.a, "->" if e.is_directed else "--", e.b] for e in self.required],
            "tiers": [list(tier) for tier in self.tiers],
            "prior_odds": [list(row) for row in self.prior_odds],
        }
        values = {key: value for key, value in values.items() if value}
        return values if self.within_tiers else {**values, "within_tiers": False}

    def __bool__(self) -> bool:
        return bool(self.to_dict())

    # ── what follows from it ──────────────────────────────────────────────────────────────────────────────

    @functools.cached_property
    def tier_of(self) -> dict[str, int]:
        """Place of every variable in the time order, from 0."""
        return {name: k for k, tier in enumerate(self.tiers) for name in tier}

    def forbids(self, a: str, b: str) -> bool:
        """Tell whether the arrow a → b is excluded, be it alone or together with b → a, as stated or as it follows.

        Examples
        --------
        c comes after a by way of b, which has no tier:

        >>> Knowledge(required=["a -> b"], tiers=[["c"], ["a"]]).forbids("b", "c")
        True
        """
        return self._is_stated(a, b) or self.puts_after(a, b)

    def puts_after(self, a: str, b: str) -> bool:
        """Tell whether a comes after b, in time or by known arrows, so that no path leads from a to b."""
        return self._order.is_after(a, b)

    def _is_stated(self, a: str, b: str) -> bool:
        """Whether tiers or forbidden edges themselves exclude the arrow."""
        tier = self.tier_of
        if a in tier and b in tier and (tier[a] > tier[b] or (tier[a] == tier[b] and not self.within_tiers)):
            return True
        return (a, b) in self._forbidden_arrows

    @functools.cached_property
    def _forbidden_arrows(self) -> frozenset[tuple[str, str]]:
        stated = {(e.a, e.b) for e in self.forbidden}
        return frozenset(stated | {(e.b, e.a) for e in self.forbidden if not e.is_directed})

    def forbidden_pairs(self) -> list[tuple[str, str]]:
        """Pairs that cannot be adjacent: forbidden as such, in both directions, or inside a closed tier."""
        pairs = {tuple(sorted(e.pair)) for e in self.forbidden}
        if not self.within_tiers:
            pairs |= {(a, b) for tier in self.tiers for a in tier for b in tier if a < b}
        return sorted((a, b) for a, b in pairs if self.forbids(a, b) and self.forbids(b, a))

    def arrows(self) -> list[tuple[str, str]]:
        """Required edges whose direction is known, stated or because the other one is excluded."""
        return list(self._arrows)

    @functools.cached_property
    def _arrows(self) -> list[tuple[str, str]]:
        arrows = [(e.a, e.b) for e in self.required if e.is_directed]
        ways = [way for e in self.required if not e.is_directed for way in ((e.a, e.b), (e.b, e.a))]
        while True:  # one direction may tell another
            order = _Order.of(arrows, self.tier_of)
            decided = [(a, b) for a, b in ways if self._is_stated(b, a) or order.is_after(b, a)]
            new = [arrow for arrow in decided if arrow not in arrows]
            if not new:
                return arrows
            arrows += new

    @functools.cached_property
    def _order(self) -> _Order:
        return _Order.of(self._arrows, self.tier_of)

    def arrow_matrix(self, names: Sequence[str]) -> BoolMatrix:
        """`arrows` between these variables, as a matrix: True at [i, j] for a known i → j."""
        place = {name: k for k, name in enumerate(names)}
        known_dd = np.zeros((len(names), len(names)), dtype=bool)
        for a, b in self.arrows():
            if a in place and b in place:
                known_dd[place[a], place[b]] = True
        return known_dd

    def after_matrix(self, names: Sequence[str]) -> BoolMatrix:
        """`puts_after` of these variables as a matrix: True at [i, j] where no path leads from i to j.

        Examples
        --------
        >>> Knowledge(tiers=[["a"], ["b"]], required=["b -> c"]).after_matrix(["a", "b", "c"]).astype(int).tolist()
        [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
        """
        first_d = np.array([self._order.first.get(name, -np.inf) for name in names])
        last_d = np.array([self._order.last.get(name, np.inf) for name in names])
        after_dd: BoolMatrix = (first_d[:, None] > last_d[None, :]) | reachable(self.arrow_matrix(names)).T
        return after_dd

    def are_childless(self, names: Sequence[str], i: Any, j: Any) -> BoolMatrix:
        """Tell of pairs, by place in `names`, whether every other variable is excluded as their common child.

        No pair is where there is no other variable: a child outside the table is nothing that was said.

        Examples
        --------
        >>> Knowledge(tiers=[["a"], ["b"], ["c"]]).are_childless(["a", "b", "c"], [0, 0, 1], [1, 2, 2]).tolist()
        [False, True, True]
        """
        i, j = np.asarray(i), np.asarray(j)
        number_d = np.array([self.tier_of.get(name, np.nan) for name in names], dtype=float)
        first_n = np.fmax(number_d[i], number_d[j])  # the tier of the later parent

        def is_in_time(child: Any, first: Any) -> Any:
            late = child >= first if self.within_tiers else child > first
            return late | np.isnan(child) | np.isnan(first)

        tiered = np.sort(number_d[~np.isnan(number_d)])
        n_early = np.searchsorted(tiered, first_n, side="left" if self.within_tiers else "right")
        n_early = np.where(np.isnan(first_n), 0, n_early)
        room_n = len(names) - n_early - is_in_time(number_d[i], first_n) - is_in_time(number_d[j], first_n)
        against = self._heads_against(names)
        n_against_d = np.array([len(against.get(k, ())) for k in range(len(names))])
        for k in np.flatnonzero((room_n > 0) & (room_n <= n_against_d[i] + n_against_d[j])).tolist():
            heads = (against.get(int(i[k]), set()) | against.get(int(j[k]), set())) - {int(i[k]), int(j[k])}
            room_n[k] -= sum(bool(is_in_time(number_d[head], first_n[k])) for head in heads)
        childless: BoolMatrix = (room_n <= 0) & (len(names) > 2)
        return childless

    def _heads_against(self, names: Sequence[str]) -> dict[int, set[int]]:
        """By place of a variable, those it has no arrow to, as stated or since required ones lead here."""
        place = {name: k for k, name in enumerate(names)}
        against: dict[int, set[int]] = {}
        back = ((b, a) for a, reached in self._order.below.items() for b in reached)
        for a, b in (*self._forbidden_arrows, *back):
            if a in place and b in place:
                against.setdefault(place[a], set()).add(place[b])
        return against

    def names(self) -> list[str]:
        """Every variable mentioned, in order of appearance."""
        mentioned = [name for e in (*self.forbidden, *self.required) for name in (e.a, e.b)]
        mentioned += [name for tier in self.tiers for name in tier]
        return list(dict.fromkeys(mentioned + [name for a, b, _ in self.prior_odds for name in (a, b)]))

    def among(self, names: Iterable[str]) -> Knowledge:
        """What is said of these variables alone.

        Examples
        --------
        >>> Knowledge(required=["a -> b"], tiers=[["a"], ["b", "c"]]).among(["a", "c"]).to_dict()
        {'tiers': [['a'], ['c']]}
        """
        kept = set(names)
        tiers = [[name for name in tier if name in kept] for tier in self.tiers]

        def inside(edges: Iterable[Edge]) -> list[EdgeLike]:
            return [(e.a, "->" if e.is_directed else "--", e.b) for e in edges if e.pair <= kept]

        return Knowledge(
            forbidden=inside(self.forbidden),
            required=inside(self.required),
            tiers=[tier for tier in tiers if tier],
            prior_odds=[row for row in self.prior_odds if kept.issuperset(row[:2])],
            within_tiers=self.within_tiers or not any(tiers),
        )

    def apply(self, names: Sequence[str], p_dd3: Matrix) -> Matrix:
        """Enforce forbidden edges, required edges, prior odds and impossible common children on probabilities.

        Parameters
        ----------
        names : sequence of str
            Names of the D variables.
        p_dd3 : ndarray, shape (D, D, 3)
            Probabilities of none · skeleton · moral.

        Returns
        -------
        ndarray, shape (D, D, 3)
            A copy; every row still sums to one.

        Examples
        --------
        >>> import numpy as np
        >>> p = np.full((2, 2, 3), [0.6, 0.2, 0.2])
        >>> Knowledge(forbidden=["a -- b"]).apply(["a", "b"], p)[0, 1].round(2).tolist()
        [0.75, 0.0, 0.25]
        """
        self.check_names(names)
        place = {name: k for k, name in enumerate(names)}
        p_dd3 = p_dd3.copy()
        for a, b, odds in self.prior_odds:
            _multiply_odds(p_dd3, place[a], place[b], odds)
        for a, b in self.forbidden_pairs():
            _multiply_odds(p_dd3, place[a], place[b], 0.0)
        for edge in self.required:
            p_dd3[[place[edge.a], place[edge.b]], [place[edge.b], place[edge.a]]] = [0.0, 1.0, 0.0]
        i, j = np.triu_indices(len(names), 1)
        alone = self.are_childless(names, i, j)
        i, j = i[alone], j[alone]
        p_dd3[i, j] = p_dd3[j, i] = leave_childless(p_dd3[i, j])
        return p_dd3

    # ── contradictions ────────────────────────────────────────────────────────────────────────────────────

    def check_names(self, names: Sequence[str], left_out: Sequence[str] = (), labels: Sequence[str] = ()) -> None:
        """Refuse knowledge about variables the table does not have, or had and lost as gappy, unwanted or labels."""
        known = set(names)
        for name in self.names():
            if name in left_out:
                raise KnowledgeError(
                    f"knowledge names {name!r}, which was left out of the table. Keep it (fill its gaps, or "
                    "do not drop it), or take it out of the knowledge."
                )
            if name in labels:
                raise KnowledgeError(
                    f"knowledge names {name!r}, which was left out of the table: it holds text in which no entry "
                    "repeats, and was taken for row labels. Make it numbers, or take it out of the knowledge."
                )
            if name not in known:
                near = difflib.get_close_matches(name, names, n=1)
                listed = ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")
                hint = f"Did you mean {near[0]!r}?" if near else f"It has {listed}."
                raise KnowledgeError(f"knowledge names {name!r}, which the table does not have. {hint}")

    def _check(self) -> None:
        for edge in self.required:
            self._check_required(edge)
        fixed = {e.pair: "required" for e in self.required}
        fixed |= {frozenset(pair): "forbidden" for pair in self.forbidden_pairs()}
        for a, b, _ in self.prior_odds:
            if kind := fixed.get(frozenset((a, b))):
                raise KnowledgeError(f"{a} -- {b} is {kind} and has prior odds as well. Take one of them out.")
        if cycle := find_cycle(self.arrows()):
            raise KnowledgeError(f"the required edges close a cycle: {' -> '.join(cycle)}. Take one of them out.")
        self._check_time()

    def _check_time(self) -> None:
        """Refuse required arrows that lead to an earlier tier by way of variables without one."""
        tier = self.tier_of
        for a in tier:
            for b in self._order.below.get(a, ()):
                if tier.get(b, tier[a]) < tier[a]:
                    raise KnowledgeError(
                        f"the required edges lead from {a!r}, in tier {tier[a] + 1}, back to {b!r}, in tier "
                        f"{tier[b] + 1}. Take one of them out, or change the tiers."
                    )

    def _check_required(self, edge: Edge) -> None:
        tier = self.tier_of
        directions = [(edge.a, edge.b)] if edge.is_directed else [(edge.a, edge.b), (edge.b, edge.a)]
        if not all(self._is_stated(a, b) for a, b in directions):
            return
        against = [str(e) for e in self.forbidden if e.pair == edge.pair and (not e.is_directed or e[:2] in directions)]
        if against:
            raise KnowledgeError(f"{edge} is required, but {' and '.join(against)} forbidden. Take one of them out.")
        if tier[edge.a] == tier[edge.b]:
            raise KnowledgeError(
                f"{edge} is required, but both are in tier {tier[edge.a] + 1} and within_tiers=False "
                "excludes edges there. Move one of the two, or allow edges within tiers."
            )
        raise KnowledgeError(
            f"the required edge {edge} runs against the tiers: {edge.a!r} is in tier {tier[edge.a] + 1} and "
            f"{edge.b!r} in tier {tier[edge.b] + 1}. Turn the edge, or change the tiers."
        )


def _multiply_odds(p_dd3: Matrix, i: int, j: int, odds: float) -> None:
    """Multiply the odds of skeleton; the other two classes keep their proportion."""
    p = p_dd3[i, j].copy()
    p[SKELETON] *= odds
    if p.sum() == 0.0:  # a certain edge, forbidden: nothing is known of the rest
        p[NONE] = 1.0
    p_dd3[i, j] = p_dd3[j, i] = p / p.sum()


def leave_childless(p_n3: Matrix) -> Matrix:
    """Move what is moral to none, since there is no child; links stay.

    Examples
    --------
    >>> leave_childless(np.array([[0.5, 0.25, 0.25]])).tolist()
    [[0.75, 0.25, 0.0]]
    """
    p_n3 = p_n3.copy()
    p_n3[:, NONE] += p_n3[:, MORAL]
    p_n3[:, MORAL] = 0.0
    return p_n3


def find_cycle(arrows: Iterable[tuple[str, str]]) -> list[str]:
    """Find a directed cycle, first name repeated at the end; empty if there is none.

    Examples
    --------
    >>> find_cycle([("a", "b"), ("b", "c"), ("c", "b")])
    ['b', 'c', 'b']
    """
    children: dict[str, list[str]] = {}
    for a, b in arrows:
        children.setdefault(a, []).append(b)
    alive = set(children)
    while dead := {a for a in alive if not any(b in alive for b in children[a])}:
        alive -= dead
    if not alive:
        return []
    path = [min(alive)]
    while (after := next(b for b in children[path[-1]] if b in alive)) not in path:
        path.append(after)
    return [*path[path.index(after) :], after]


def _read_edges(kind: str, edges: Iterable[EdgeLike]) -> tuple[Edge, ...]:
    if isinstance(edges, str):
        edges = [edges]
    if not isinstance(edges, Iterable):
        raise KnowledgeError(f"{kind}={edges!r} is not a list of edges. Pass for example [('a', 'b')].")
    return tuple(dict.fromkeys(read_edge(edge) for edge in edges))


def _read_tiers(tiers: Tiers | None) -> tuple[tuple[str, ...], ...]:
    if tiers is None:
        return ()
    if isinstance(tiers, Mapping):
        tiers = _order_tiers(tiers)
    if not _is_list(tiers) or not all(_is_list(tier) for tier in tiers):
        raise KnowledgeError(f"tiers={tiers!r} must be a list of lists, as in [['age'], ['dose', 'diet']].")
    result = tuple(tuple(str(name) for name in tier) for tier in tiers)
    seen: dict[str, int] = {}
    for k, tier in enumerate(result):
        for name in tier:
            if seen.setdefault(name, k) != k:
                raise KnowledgeError(f"{name!r} is in tier {seen[name] + 1} and in tier {k + 1}. Keep one.")
    return result


def _read_flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise KnowledgeError(f"{name} is {value!r}, which is neither true nor false. Write true or false, unquoted.")
    return bool(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _order_tiers(tier_of: Mapping[str, Any]) -> list[list[str]]:
    """Tiers given by number, the lowest first."""
    for name, number in tier_of.items():
        if not isinstance(number, numbers.Real) or math.isnan(number):
            raise KnowledgeError(
                f"the tier of {str(name)!r} is {number!r}; it must be a number, as in {{'age': 0, 'dose': 1}}. Leave "
                "out variables whose place is not known."
            )
    return [[str(name) for name, number in tier_of.items() if number == k] for k in sorted(set(tier_of.values()))]


def _read_odds(prior_odds: PriorOdds | None) -> tuple[tuple[str, str, float], ...]:
    if prior_odds is None:
        return ()
    if not _is_list(prior_odds):
        raise KnowledgeError(f"prior_odds={prior_odds!r} is not a list of priors. Pass for example [('a', 'b', 3.0)].")
    rows = prior_odds.items() if isinstance(prior_odds, Mapping) else map(_split_odds, prior_odds)
    result: dict[frozenset[str], tuple[str, str, float]] = {}
    for edge_like, odds in rows:
        edge = read_edge(edge_like)
        if edge.is_directed:
            raise KnowledgeError(f"prior odds are for pairs, and {edge} has a direction. Write {edge.a} -- {edge.b}.")
        if not isinstance(odds, numbers.Real) or not 0 < float(odds) < math.inf:
            raise KnowledgeError(
                f"the prior odds of {edge} are {odds!r}; they must be a positive number. For certainty use "
                "required or forbidden."
            )
        if edge.pair in result:
            raise KnowledgeError(f"{edge} has prior odds twice. Keep one of them.")
        result[edge.pair] = (edge.a, edge.b, float(odds))
    return tuple(result.values())


def _split_odds(row: Sequence[Any]) -> tuple[EdgeLike, Any]:
    parts = _list_parts(row)
    if len(parts) not in (2, 3):
        raise KnowledgeError(f"{row!r} is not a prior; write (a, b, odds).")
    return (parts[0], parts[1]) if len(parts) == 2 else ((parts[0], parts[1]), parts[2])
