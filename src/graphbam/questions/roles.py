"""What other variables are to the effect of a treatment on an outcome, and what to adjust for.

In a DAG, another variable is

- a *confounder* if arrows lead from it to the treatment, and to the outcome without passing the treatment;
- a *mediator* if arrows lead from the treatment to it and from it to the outcome;
- a *collider* if arrows lead to it from the treatment without passing the outcome, and from the outcome without passing
  the treatment;
- an *instrument* if arrows lead from it to the treatment, and without the treatment's own arrows it shares neither a
  path nor a cause with the outcome.

The DAG is not known. So DAGs are drawn, and the probability of a role is the share of them in which it is played. A DAG
is drawn in proportion to the product, over all pairs, of the probability of what it says of them: linked, with the
probability of that direction (an open one counts half for either); not linked but with a common child; neither. The
draws are a Markov chain of changes of one link, which starts at `Result.dag`; links below `LEAST_LINK` are never drawn.
With 200 draws, and the more so in wide tables, probabilities of roles are good to a tenth or so.

Adjustment sets are those of one graph, `Result.dag` at the cut: sets without descendants of the treatment that block
every path into it (Pearl's back-door criterion), such that no part of them does. Each comes with the share of the drawn
DAGs in which it does so too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbam.graphs.cut import Cut
from graphbam.graphs.graph import MORAL, NONE, SKELETON, Adjacency, ancestors, d_separated, one_line
from graphbam.questions.rows import find_pair
from graphbam.result import OrientedGraph, Result

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("confounder", "mediator", "collider", "instrument")

LEAST_LINK = 0.01
"""Links that are less likely are left out of all drawn DAGs."""

MOST_SETS = 5
"""Number of adjustment sets that are listed, smallest first."""

MOST_TRIED = 20_000
"""Number of sets that are looked at before one is made smaller step by step instead."""

MOST_SWEEPS, MOST_STEPS = 10, 300_000
"""Between two draws every pair is tried so many times, unless all draws together would take more than so many steps."""

LEAST_TOLD = 0.2
"""Roles below this probability are not spelled out."""

_SETTLING = 10  # draws that are left out at the start


@dataclass(frozen=True, eq=False)
class Roles:
    """Roles of the other variables in the effect of a treatment on an outcome, and what to adjust for.

    Examples
    --------
    >>> p = np.tile([0.98, 0.02, 0.0], (3, 3, 1))
    >>> p[0, 1:] = p[1:, 0] = p[1, 2] = p[2, 1] = [0.0, 1.0, 0.0]
    >>> arrow = np.array([[0, 0.99, 0.99], [0.01, 0, 0.99], [0.01, 0.01, 0]])
    >>> roles = Result(("age", "dose", "cure"), p, directions=arrow, compelled=arrow).roles("dose", "cure")
    >>> roles.adjustment_sets
    [('age',)]
    >>> roles.table["confounder"].round(1).tolist()
    [1.0]
    """

    treatment: str
    outcome: str
    table: pd.DataFrame
    """One row per other variable: `variable`, and the probabilities that it is a confounder, mediator, collider and
    instrument; one that is likely in some role first."""
    effect: float
    """Probability that arrows lead from the treatment to the outcome at all."""
    graph: OrientedGraph
    """The DAG that adjustment sets are for: `Result.dag` at the cut."""
    adjustment: pd.DataFrame
    """Sets that close every back door of `graph`, none of them a part of another, smallest first: `variables`, and
    `valid`, the share of the drawn DAGs in which they do too. Empty: no set does."""
    hidden: float | None
    """Probability that treatment and outcome have a hidden common cause; None where the weights cannot say."""
    n_draws: int
    cut: Cut
    is_excluded: bool = False
    """Whether prior knowledge puts the treatment after the outcome."""

    @property
    def adjustment_sets(self) -> list[tuple[str, ...]]:
        """The sets of `adjustment`."""
        return list(self.adjustment["variables"])

    def to_dowhy(self) -> dict[str, Any]:
        """What DoWhy asks for: ``CausalModel(table, **roles.to_dowhy())``."""
        from graphbam.output.files import to_dowhy

        return {"treatment": self.treatment, "outcome": self.outcome, "graph": to_dowhy(self.graph)}

    def __str__(self) -> str:
        lines = [
            f"{self.treatment} → {self.outcome}: arrows lead from one to the other in {self.effect:.0%} of "
            f"{self.n_draws} graphs drawn from the probabilities."
        ]
        for role in ROLES:
            likely = self.table[self.table[role] >= LEAST_TOLD].sort_values(role, ascending=False, kind="stable")
            listed = ", ".join(f"{row['variable']} {row[role]:.2f}" for row in likely.to_dict("records"))
            lines.append(f"  {role + 's:':<13}{listed or f'none above {LEAST_TOLD}'}")
        return "\n".join(map(one_line, [*lines, *self._say_sets(), *self._say_doubts()]))

    def _say_sets(self) -> list[str]:
        if not len(self.adjustment):
            why = self._find_obstacle()
            if self.is_excluded:
                return [f"Prior knowledge excludes it: {self.treatment} comes after {self.outcome}."]
            order = "If you know which comes first, say so: infer(..., tiers=[[earlier], [later]])."
            return [f"No set of variables closes all back doors of the graph with links {self.cut}{why}.", order]
        i, j = self.graph.names.index(self.treatment), self.graph.names.index(self.outcome)
        leads = bool(ancestors(self.graph.adjacency)[i, j])
        lines = (
            []
            if leads
            else [f"In the graph with links {self.cut}, no arrows lead from {self.treatment} to {self.outcome}."]
        )
        lines.append(f"What closes all back doors in {'the graph with links ' + str(self.cut) if leads else 'it'}:")
        for row in self.adjustment.to_dict("records"):
            who = ", ".join(row["variables"]) or "no variable"
            lines.append(f"  adjust for {who}: right in {row['valid']:.0%} of the drawn graphs")
        if self.adjustment["valid"].max() <= 0.5:
            lines.append("None of this is right in most of the drawn graphs.")
        return lines

    def _find_obstacle(self) -> str:
        i, j = self.graph.names.index(self.treatment), self.graph.names.index(self.outcome)
        return (
            f", since {self.outcome} comes before {self.treatment} in it"
            if ancestors(self.graph.adjacency)[j, i]
            else ""
        )

    def _say_doubts(self) -> list[str]:
        n_arrows, n_guessed = int(self.graph.adjacency.sum()), int(self.graph.guessed.sum())
        lines = []
        if n_guessed:
            who = f"All {n_arrows} arrows" if n_guessed == n_arrows else f"{n_guessed} of the {n_arrows} arrows"
            who = who if n_arrows > 1 else "The only arrow"
            are = "is a guess: cpdag() leaves its direction open"
            are = are if n_guessed == 1 else "are guesses: cpdag() leaves their direction open"
            lines.append(f"{who} of that graph {are}.")
        if self.hidden is None:
            lines.append("Hidden common causes are not looked at here; no set of columns closes their back doors.")
        else:
            lines.append(
                f"A hidden common cause of the two has probability {self.hidden:.2f}; no set of columns closes its "
                "back door."
            )
        return lines


def find_roles(result: Result, treatment: str, outcome: str, cut: Cut, n_draws: int, rng: np.random.Generator) -> Roles:
    """See `Result.roles`."""
    import pandas as pd

    i, j = find_pair(result.names, treatment, outcome)
    graph = result.dag(cut)
    dags = list(draw_dags(result, graph.adjacency, n_draws, rng))
    shares = np.mean([play_roles(dag, i, j) for dag in dags], axis=0)
    others = [k for k in range(result.n_variables) if k not in (i, j)]
    table = pd.DataFrame({"variable": [result.names[k] for k in others]})
    for column, role in enumerate(ROLES):
        table[role] = shares[others, column]
    order = np.argsort(-table[list(ROLES)].max(axis=1).to_numpy(), kind="stable")
    sets = find_adjustment_sets(graph.adjacency, i, j)
    valid = [float(np.mean([is_adjustment_set(dag, i, j, chosen) for dag in dags])) for chosen in sets]
    named = [tuple(result.names[k] for k in chosen) for chosen in sets]
    return Roles(
        treatment=treatment,
        outcome=outcome,
        table=table.iloc[order].reset_index(drop=True),
        effect=float(np.mean([ancestors(dag)[i, j] for dag in dags])),
        graph=graph,
        adjustment=pd.DataFrame({"variables": pd.Series(named, dtype=object), "valid": pd.Series(valid, dtype=float)}),
        hidden=None if result.hidden_causes is None else float(result.hidden_causes[i, j]),
        n_draws=n_draws,
        cut=cut,
        is_excluded=result.knowledge is not None and result.knowledge.puts_after(treatment, outcome),
    )


def play_roles(dag: Adjacency, treatment: int, outcome: int) -> NDArray[np.bool_]:
    """Which roles variables play in a DAG, shape (D, 4), in the order of `ROLES`; rules in the module docstring.

    Examples
    --------
    0 → 1 → 2 with 0 → 2: the first confounds the effect of the second on the third.

    >>> play_roles(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]), 1, 2)[0].tolist()
    [True, False, False, False]
    """
    leads = ancestors(dag)
    past_treatment, past_outcome = (ancestors(_without_arrows_of(dag, k)) for k in (treatment, outcome))
    shared = (past_treatment.T.astype(np.int64) @ past_treatment.astype(np.int64)) > 0
    result = np.column_stack([
        leads[:, treatment] & past_treatment[:, outcome],
        leads[treatment] & leads[:, outcome],
        past_outcome[treatment] & past_treatment[outcome],
        leads[:, treatment] & ~shared[:, outcome],
    ])  # fmt: skip
    result[[treatment, outcome]] = False
    return result


def _without_arrows_of(dag: Adjacency, k: int) -> Adjacency:
    """The same DAG without the arrows that leave one variable."""
    kept = dag.copy()
    kept[k] = 0
    return kept


# ── what to adjust for ────────────────────────────────────────────────────────────────────────────────────


def is_adjustment_set(dag: Adjacency, treatment: int, outcome: int, chosen: Sequence[int]) -> bool:
    """Whether a set meets the back-door criterion: no descendant of the treatment, and every path into it blocked.

    Examples
    --------
    >>> confounded = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    >>> is_adjustment_set(confounded, 1, 2, [0]), is_adjustment_set(confounded, 1, 2, [])
    (True, False)
    """
    if {treatment, outcome} & set(chosen) or ancestors(dag)[treatment, list(chosen)].any():
        return False
    return d_separated(_without_arrows_of(dag, treatment), treatment, outcome, chosen)


def find_adjustment_sets(dag: Adjacency, treatment: int, outcome: int) -> list[tuple[int, ...]]:
    """Sets that meet the back-door criterion of which no part does, smallest first, `MOST_SETS` at most.

    If any set does, the ancestors of the two that do not descend from the treatment do together, and the smallest sets
    are made of them.

    Examples
    --------
    >>> find_adjustment_sets(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]), 1, 2)
    [(0,)]
    """
    leads = ancestors(dag)
    allowed = (leads[:, treatment] | leads[:, outcome]) & ~leads[treatment]
    allowed[[treatment, outcome]] = False
    candidates = np.flatnonzero(allowed).tolist()
    if not is_adjustment_set(dag, treatment, outcome, candidates):
        return []
    found: list[tuple[int, ...]] = []
    everything = itertools.chain.from_iterable(
        itertools.combinations(candidates, size) for size in range(len(candidates) + 1)
    )
    for chosen in itertools.islice(everything, MOST_TRIED):
        if any(set(smaller) <= set(chosen) for smaller in found):
            continue
        if is_adjustment_set(dag, treatment, outcome, chosen):
            found.append(chosen)
            if len(found) == MOST_SETS:
                break
    return found or [_make_smaller(dag, treatment, outcome, candidates)]


def _make_smaller(dag: Adjacency, treatment: int, outcome: int, chosen: list[int]) -> tuple[int, ...]:
    """Take variables out of a set one by one, as long as it stays an adjustment set."""
    for k in list(chosen):
        rest = [other for other in chosen if other != k]
        if is_adjustment_set(dag, treatment, outcome, rest):
            chosen = rest
    return tuple(chosen)


# ── drawing DAGs ──────────────────────────────────────────────────────────────────────────────────────────


def draw_dags(result: Result, start: Adjacency, n: int, rng: np.random.Generator) -> Iterator[Adjacency]:
    """Draw DAGs from the probabilities of a result; rules in the module docstring.

    Parameters
    ----------
    result : Result
        With directions.
    start : ndarray of int8, shape (D, D)
        A DAG to start from.
    n : int
        Number of DAGs; between two of them, every pair that may be linked is tried `MOST_SWEEPS` times on average, and
        less often where that would take more than `MOST_STEPS` steps for all.
    rng : numpy.random.Generator
        Source of randomness.
    """
    chain = _Chain(result, start)
    if not chain.pairs:
        yield from (chain.dag() for _ in range(n))
        return
    n_steps = len(chain.pairs) * min(MOST_SWEEPS, max(1, MOST_STEPS // (n * len(chain.pairs))))
    for draw in range(-_SETTLING, n):
        picks = rng.integers(len(chain.pairs), size=n_steps).tolist()
        turns, lucks = rng.integers(2, size=n_steps).tolist(), np.log(1 - rng.random(n_steps)).tolist()
        for pick, turn, luck in zip(picks, turns, lucks, strict=True):
            i, j = chain.pairs[pick]
            chain.step(i, j, turn, luck)
        if draw >= 0:
            yield chain.dag()


class _Chain:
    """A DAG as bits, and what it weighs: parents and children of a variable are the bits of one number each."""

    def __init__(self, result: Result, start: Adjacency):
        arrow_dd = result.arrow_probabilities
        either_dd = arrow_dd + (1 - arrow_dd - arrow_dd.T) / 2
        with np.errstate(divide="ignore"):
            self.logs = np.log(result.probabilities).tolist()
            self.ways = np.log(np.clip(either_dd, 0, 1)).tolist()
        known = result.probabilities[..., SKELETON] >= LEAST_LINK
        self.pairs = [(int(i), int(j)) for i, j in np.argwhere(np.triu(known, 1))]
        self.n, start = len(start), start * (known | known.T)  # unlikely links of the start would never be tried
        self.children = [sum(1 << int(j) for j in np.flatnonzero(row)) for row in start]
        self.parents = [sum(1 << int(i) for i in np.flatnonzero(column)) for column in start.T]

    def dag(self) -> Adjacency:
        return np.array([[row >> k & 1 for k in range(self.n)] for row in self.children], dtype=np.int8)

    def step(self, i: int, j: int, turn: int, luck: float) -> None:
        """Try another state of a pair, one of the two that it is not in, and keep it as Metropolis says."""
        before = 1 if self.children[i] >> j & 1 else 2 if self.children[j] >> i & 1 else 0
        after = (before + 1 + turn) % 3
        self._set(i, j, 0)
        if after and self._leads(*((j, i) if after == 1 else (i, j))):
            self._set(i, j, before)
            return
        touched = self._list_touched(i, j, before, after)
        self._set(i, j, before)
        old = sum(self._weigh(a, b) for a, b in touched)
        self._set(i, j, after)
        new = sum(self._weigh(a, b) for a, b in touched)
        if not new - old > luck and not (old == -math.inf and new > old):
            self._set(i, j, before)

    def _set(self, i: int, j: int, state: int) -> None:
        """0: no link, 1: i → j, 2: j → i."""
        for a, b, is_there in ((i, j, state == 1), (j, i, state == 2)):
            self.children[a] = self.children[a] & ~(1 << b) | is_there << b
            self.parents[b] = self.parents[b] & ~(1 << a) | is_there << a

    def _leads(self, start: int, end: int) -> bool:
        """Whether arrows lead from one variable to another."""
        seen = todo = self.children[start]
        while todo and not seen >> end & 1:
            k = todo.bit_length() - 1
            new = self.children[k] & ~seen
            seen |= new
            todo = todo & ~(1 << k) | new
        return bool(seen >> end & 1)

    def _list_touched(self, i: int, j: int, before: int, after: int) -> list[tuple[int, int]]:
        """The pair itself, and those that may gain or lose a common child with it."""
        touched = [(i, j)]
        for state in {before, after} - {0}:
            parent, child = (i, j) if state == 1 else (j, i)
            others = self.parents[child] & ~(1 << parent)
            while others:
                k = others.bit_length() - 1
                touched.append((parent, k))
                others &= ~(1 << k)
        return touched

    def _weigh(self, a: int, b: int) -> float:
        """Log of the probability of what the DAG says of a pair."""
        if self.children[a] >> b & 1:
            return float(self.logs[a][b][SKELETON] + self.ways[a][b])
        if self.children[b] >> a & 1:
            return float(self.logs[a][b][SKELETON] + self.ways[b][a])
        return float(self.logs[a][b][MORAL if self.children[a] & self.children[b] else NONE])
