"""What speaks for and against a link: probabilities, correlations with and without others, what explains them away.

The probabilities are the network's answer. Correlations are a rough check beside it, on up to 1,000 rows of the table
as the network saw it: of lines, of ranks, and of curves of degree three. Third variables are taken away by such curves
too. Those that explain a pair away are searched for among all others, then in twos and threes among the ten likeliest
to be linked with one of the pair: the set that leaves least of the strongest correlation, if it takes a tenth away.
"""

from __future__ import annotations

import base64
import html
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphbam.errors import ResultError
from graphbam.graphs.graph import MORAL, NONE, SKELETON, Matrix, Vector, one_line
from graphbam.questions.rows import ROWS_PER_TERM, Association, Rows, find_pair
from graphbam.questions.sizes import find_unordered
from graphbam.result import OrientedGraph, Result, suspect_children

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_EXPLAINING, MOST_TRIED = 3, 10
LEAST_STEP = 0.1
"""A third variable explains if it takes away this share of what is there, or more."""

BENDING = 1.45
"""A curve of degree three follows unrelated columns so much more closely than a line does."""

MOST_HELD = 20
"""Where rows are too few to hold all others, so many are held at most: those likeliest to be linked with the two."""


@dataclass(frozen=True)
class Evidence:
    """How two variables go together given others; None where these leave nothing of one of the two."""

    given: tuple[str, ...]
    association: Association | None
    is_all: bool = False
    """Whether these are all others, or the likeliest of them, held by lines; else third variables, held by curves."""


@dataclass(frozen=True, eq=False)
class Reasons:
    """Evidence for and against a link between two variables; ``print`` it, or show it in a notebook.

    Made by `Result.why`.
    """

    a: str
    b: str
    none: float
    skeleton: float
    moral: float
    """Probabilities of the pair: no link, a direct link, no link but a common child."""
    child: str
    """The likeliest common child where the pair may be moral; else nothing."""
    is_given: bool
    """Whether prior knowledge forbids or requires the link, so that data did not decide."""
    edge: str
    """How the graph draws the pair at p ≥ 0.5: ``->``, ``<-``, ``--`` or nothing."""
    is_forced: bool
    """Whether it is an arrow that only the graph as a whole needs."""
    forward: float | None
    backward: float | None
    """Probabilities that such data direct the link a → b or b → a, given a link; the rest is open. None: not asked."""
    hidden: float | None
    """Probability of a hidden common cause; None where the weights cannot say."""
    stability: float | None
    """Share of resamples in which the link is found; None: not asked."""
    stable_arrows: tuple[float, float] | None
    """Shares of resamples in which a → b and b → a are drawn; None: not asked."""
    steps: tuple[Evidence, ...]
    """Correlations: without others, given more and more third variables, and given all others. Empty without rows."""
    rows: Rows | None
    places: tuple[int, int]
    names: tuple[str, ...]
    unlike: bool
    """Whether the table is unlike those of training."""
    filled: Mapping[str, float]
    """Which of the two had missing cells, and the share of them, which correlations count as they were filled in."""
    known_way: tuple[str, str] | None = None
    """Which way a link points by prior knowledge; None where that leaves it open."""
    way: float | None = None
    """Probability of a → b rather than b → a, given a link; None: not asked, or not of one pass."""
    unordered: tuple[str, ...] = ()
    """Which of the two is text whose codes have no order, so that the sign of a correlation means nothing."""

    @property
    def explained_by(self) -> tuple[str, ...]:
        """Third variables that together leave no more of the two's correlation than chance would; else nothing."""
        if len(self.steps) < 3 or self._is_chance(self.steps[0]):
            return ()
        last = self.steps[-2]
        return last.given if self._is_chance(last) else ()

    def _is_chance(self, step: Evidence) -> bool:
        return self.rows is not None and step.association is not None and is_chance(step.association, self.rows)

    @property
    def table(self) -> pd.DataFrame:
        """One row for each set of variables held.

        Columns: `given`; `pearson`, `rank` and `curve`, as in `graphbam.questions.rows.Association`; and `chance`, the
        correlation that unrelated columns stay below in 95 of 100 tables.
        """
        import pandas as pd

        records = [
            {
                "given": step.given,
                **({} if step.association is None else vars(step.association)),
                "chance": None if self.rows is None else self.rows.chance,
            }
            for step in self.steps
        ]
        return pd.DataFrame(records, columns=["given", "pearson", "rank", "curve", "chance"])

    def __str__(self) -> str:
        said = (*self._say_probabilities(), *self._say_correlations(), *self._say_direction(), *self._say_rest())
        return "\n".join(map(one_line, [f"{self.a} and {self.b}", *(f"  {line}" for line in said)]))

    def _say_probabilities(self) -> list[str]:
        if self.is_given:
            verb = "required" if self.skeleton else "forbidden"
            return [f"Prior knowledge decides: a direct link was {verb}, whatever the data say."]
        lines = [
            f"A direct link is {spell_odds(self.skeleton)} ({self.skeleton:.2f}); no link {self.none:.2f}, "
            f"no link but a common child {self.moral:.2f}."
        ]
        if self.child:
            lines.append(f"If they have a common child, {self.child} is the likeliest.")
        return lines

    def _say_correlations(self) -> list[str]:
        if not self.steps or self.rows is None:
            return ["Correlations are not known: the result keeps no rows, or one of the two is constant."]
        first = self.steps[0]
        assert first.association is not None
        lines = [f"On their own: {self._spell(first.association)}{self._note_chance(first)}."]
        lines += self._say_explained()
        if len(self.steps) > 1:
            lines.append(self._say_all(self.steps[-1]))
        return lines + self._say_order() + self._say_filled() + self._say_set() + self._say_conflict()

    def _spell(self, found: Association) -> str:
        assert self.rows is not None
        if self.unordered:
            found = Association(abs(found.pearson), abs(found.rank), found.curve)
        return _spell(found, self.rows.chance)

    def _say_order(self) -> list[str]:
        if not self.unordered:
            return []
        return [f"The levels of {_join(self.unordered)} have no order: correlations are given without a sign."]

    def _say_filled(self) -> list[str]:
        shares = [f"{share:.0%} of {name}" for name, share in self.filled.items() if share >= 0.01]
        return [f"{_join(shares)} was missing: correlations count cells that were filled in."] if shares else []

    def _note_chance(self, step: Evidence) -> str:
        assert self.rows is not None
        return f", which chance alone could give (± {self.rows.chance:.2f})" if self._is_chance(step) else ""

    def _say_explained(self) -> list[str]:
        first, thirds = self.steps[0], self.steps[1:-1]
        if self._is_chance(first) or len(self.steps) < 2:
            return []
        assert first.association is not None
        start = first.association.strength
        if not thirds:
            return ["No set of one to three others that was tried takes away a tenth of that."]
        last = thirds[-1]
        assert last.association is not None
        who, left = _join(last.given), f"{last.association.strength:.2f}"
        if self.explained_by:
            return [
                f"Given {who}, {left} of {start:.2f} is left, no more than chance would give: {who} could explain it."
            ]
        return [f"Given {who}, least of that is left: {left} of {start:.2f}."]

    def _say_all(self, step: Evidence) -> str:
        assert self.rows is not None
        n_others = sum(map(self.rows.varies, range(len(self.names)))) - 2
        few = f"the {len(step.given)} likeliest neighbours" if len(step.given) > 1 else "the likeliest neighbour"
        who = f"all {n_others} others" if len(step.given) == n_others else few
        who = f"the other variable, {step.given[0]}" if n_others == 1 else who
        if step.association is None:
            return f"Given {who}, nothing is left of one of the two: it is a copy or a sum of others."
        return f"Given {who}, linearly: {self._spell(step.association)}{self._note_chance(step)}."

    def _say_set(self) -> list[str]:
        if self.rows is None or self.rows.set_md is None:
            return []
        share_d = self.rows.set_md.mean(axis=0)
        shares = [f"{share_d[k]:.0%} of {self.names[k]}" for k in self.places if share_d[k] >= 0.01]
        return [f"{_join(shares)} was set by experiments: correlations count these rows too."] if shares else []

    def _say_conflict(self) -> list[str]:
        """Where correlations and the network seem to disagree, why that can be."""
        if self.is_given or len(self.steps) < 2:
            return []
        first, last = self.steps[0], self.steps[-1]
        if self.skeleton >= 0.5 and self._is_chance(last):
            return ["These correlations do not show the link: the network sees more than they do, or it is wrong."]
        if self.skeleton >= 0.5 and self.explained_by:
            return ["These correlations need no link: the network sees more than they do, or it is wrong."]
        if first.association is None or last.association is None or self._is_chance(last):
            return []
        if last.association.strength > first.association.strength + 0.1:
            return [
                "It grows when others are held fixed, as between causes of a common child, or where others mask it."
            ]
        if self.skeleton < 0.5 and not self.explained_by:
            return [
                "More is left than chance would give: a link, a hidden common cause, or an effect of both among the "
                "others could explain that."
            ]
        return []

    def _say_direction(self) -> list[str]:
        if self.forward is None or self.backward is None:
            return ["Directions were not asked for."]
        if self.is_given and not self.skeleton:
            return []
        rest = max(0.0, 1 - self.forward - self.backward)
        line = (
            f"If there is a link: {self.a} → {self.b} {self.forward:.2f}, {self.b} → {self.a} {self.backward:.2f}, "
            f"open, since what depends on what does not tell, {rest:.2f}."
        )
        if self.known_way:
            line = f"If there is a link, prior knowledge says that it is {' → '.join(self.known_way)}."
        arrow = f"{self.a} → {self.b}" if self.edge == "->" else f"{self.b} → {self.a}"
        drawn = {
            "": "The graph has no link between them at p ≥ 0.5.",
            "--": "The graph leaves the direction open.",
        }.get(self.edge, f"The graph draws {arrow}.")
        if self.is_forced:
            drawn = f"The graph draws {arrow} only because its other links need it: on its own it is not the likeliest."
        likelier = max(self.forward, self.backward)
        if self.edge == "--" and self.forward != self.backward and likelier > rest:
            way = f"{self.a} → {self.b}" if self.forward == likelier else f"{self.b} → {self.a}"
            drawn = (
                f"The graph leaves the direction open, although on its own {way} is likelier (arrows are chosen "
                "together, and with caution)."
            )
        return [line, drawn, *self._say_way()]

    def _say_way(self) -> list[str]:
        """Which way an open link rather points."""
        if self.edge != "--" or self.way is None:
            return []
        way = f"{self.a} → {self.b}" if self.way >= 0.5 else f"{self.b} → {self.a}"
        sure = max(self.way, 1 - self.way)
        return [f"If one must be named: {way} ({sure:.2f}), which is likelier in simulated worlds that look like this."]

    def _say_rest(self) -> list[str]:
        lines = []
        if self.hidden is None:
            lines.append("This answer cannot say whether a hidden common cause is behind it.")
        else:
            unseen = len(self.steps) > 0 and all(self._is_chance(step) for step in (self.steps[0], self.steps[-1]))
            trace = "; these correlations show no trace of one" if unseen else ""
            lines.append(f"A hidden common cause of the two has probability {self.hidden:.2f}{trace}.")
        if self.stability is not None:
            arrows = ""
            if self.stable_arrows is not None:
                there, back = self.stable_arrows
                arrows = f", drawn as {self.a} → {self.b} in {there:.0%}, as {self.b} → {self.a} in {back:.0%}"
            lines.append(f"A direct link is found in {self.stability:.0%} of the resamples{arrows}.")
        if self.unlike:
            lines.append("The table is unlike those of training: these probabilities may be too sure.")
        return lines

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the two variables against each other: as they are, and what others leave of them.

        The others are the third variables that explain most, or, if there are none, all others.

        Raises
        ------
        ResultError
            If the result keeps no rows, as after `Result.load`.
        """
        from graphbam.output.figures import draw_pairs

        if self.rows is None or not self.steps:
            raise ResultError(f"there are no rows to draw {self.a} and {self.b} with. Infer the table again.")
        panels = [(self._residuals(()), "as they are")]
        if len(self.steps) > 1:
            step = self.steps[-2] if len(self.steps) > 2 else self.steps[-1]
            said = (
                f"given {_join(step.given)}"
                if len(step.given) <= MOST_EXPLAINING
                else f"given {len(step.given)} others"
            )
            panels.append((self._residuals(step.given, curved=not step.is_all), said))
        return draw_pairs(panels, (self.a, self.b), path=path)

    def _residuals(self, given: Sequence[str], *, curved: bool = True) -> tuple[Vector, Vector]:
        assert self.rows is not None
        held = [self.names.index(name) for name in given]
        i, j = self.places
        return self.rows.residual(i, held, curved=curved), self.rows.residual(j, held, curved=curved)

    def _repr_html_(self) -> str:
        from graphbam.output import figures

        title, *lines = str(self).splitlines()
        picture = ""
        if self.steps and figures.can_draw():
            png = base64.b64encode(figures.to_png(self.plot(), dpi=80)).decode("ascii")
            picture = f'<img alt="scatter plots" style="max-width:100%" src="data:image/png;base64,{png}">'
        items = "".join(f"<li>{html.escape(line.strip())}</li>" for line in lines)
        return f"<div><p><b>{html.escape(title)}</b></p><ul>{items}</ul>{picture}</div>"


def find_reasons(result: Result, a: str, b: str) -> Reasons:
    """See `Result.why`."""
    i, j = find_pair(result.names, a, b)
    p_3 = result.probabilities[i, j]
    child = int(suspect_children(result)[i, j])
    rows = Rows.of(result)
    graph = result.graph()
    forward = backward = None
    if result.has_directions:
        forward, backward = (float(result.compelled_probabilities[pair]) for pair in ((i, j), (j, i)))
    there, back = graph.adjacency[i, j], graph.adjacency[j, i]
    return Reasons(
        a=a,
        b=b,
        none=float(p_3[NONE]),
        skeleton=float(p_3[SKELETON]),
        moral=float(p_3[MORAL]),
        child=result.names[child] if child >= 0 else "",
        is_given=_is_given(result, a, b),
        edge="--" if there and back else "->" if there else "<-" if back else "",
        is_forced=isinstance(graph, OrientedGraph) and bool(graph.forced[i, j] or graph.forced[j, i]),
        forward=forward,
        backward=backward,
        hidden=None if result.hidden_causes is None else float(result.hidden_causes[i, j]),
        stability=None if result.stability is None else float(result.stability[i, j]),
        stable_arrows=_read_both(result.arrow_stability, i, j),
        steps=() if rows is None else tuple(_collect(result, rows, i, j)),
        rows=rows,
        places=(i, j),
        names=result.names,
        unlike=result.domain.get("verdict") == "outside",
        filled={name: share for name, share in result.provenance.get("missing", {}).items() if name in (a, b)},
        known_way=_find_known_way(result, a, b),
        way=None if result.directions is None else float(result.arrow_probabilities[i, j]),
        unordered=tuple(name for name in (a, b) if name in find_unordered(result)),
    )


def _read_both(share_dd: Matrix | None, i: int, j: int) -> tuple[float, float] | None:
    return None if share_dd is None else (float(share_dd[i, j]), float(share_dd[j, i]))


def _is_given(result: Result, a: str, b: str) -> bool:
    known = result.knowledge
    if not known:
        return False
    required = {frozenset((edge.a, edge.b)) for edge in known.required}
    return frozenset((a, b)) in required | {frozenset(pair) for pair in known.forbidden_pairs()}


def _find_known_way(result: Result, a: str, b: str) -> tuple[str, str] | None:
    ways = [] if result.knowledge is None else [way for way in ((a, b), (b, a)) if not result.knowledge.forbids(*way)]
    return ways[0] if len(ways) == 1 else None


def _collect(result: Result, rows: Rows, i: int, j: int) -> list[Evidence]:
    """Correlations of a pair, with fewer and with more others held."""
    plain = rows.associate(i, j) if rows.varies(i) and rows.varies(j) else None
    if plain is None:
        return []
    others = [k for k in range(result.n_variables) if k not in (i, j) and rows.varies(k)]
    steps = [Evidence((), plain)]
    for held in _explain(result, rows, i, j, others, plain):
        steps.append(Evidence(tuple(result.names[k] for k in held), rows.associate(i, j, held, curved=True)))
    if others:
        everyone = _choose_held(result, rows, i, j, others)
        steps.append(Evidence(tuple(result.names[k] for k in everyone), rows.associate(i, j, everyone), is_all=True))
    return steps


def _explain(
    result: Result, rows: Rows, i: int, j: int, others: Sequence[int], plain: Association
) -> list[tuple[int, ...]]:
    """Sets of one, two and three third variables that leave least of the correlation, as long as each leaves less."""
    sets: list[tuple[int, ...]] = []
    if is_chance(plain, rows):
        return sets
    best = plain.strength
    near = _rank_neighbours(result, i, j, others)[:MOST_TRIED]
    for size in range(1, MOST_EXPLAINING + 1):
        if sets and is_chance(rows.associate(i, j, sets[-1], curved=True) or plain, rows):
            break
        tried = itertools.combinations(sorted(near) if size > 1 else others, size)
        found = [(one.strength, held) for held in tried if (one := rows.associate(i, j, held, curved=True)) is not None]
        if found and min(found)[0] <= (1 - LEAST_STEP) * best:
            best, held = min(found)
            sets.append(held)
    return sets


def _rank_neighbours(result: Result, i: int, j: int, others: Sequence[int]) -> list[int]:
    """Others, those likeliest to be linked with one of the two first."""
    p_d = result.probabilities[[i, j], :, SKELETON].max(axis=0)
    return sorted(others, key=lambda k: -p_d[k])


def _choose_held(result: Result, rows: Rows, i: int, j: int, others: Sequence[int]) -> list[int]:
    """All others; where there are few rows for so many, those likeliest to be linked with one of the two."""
    room = min(len(others), max(1, int(rows.worth / ROWS_PER_TERM)))
    if room == len(others):
        return list(others)
    return sorted(_rank_neighbours(result, i, j, others)[: min(room, MOST_HELD)])


def is_chance(found: Association, rows: Rows) -> bool:
    """Whether unrelated columns would often go together as closely.

    A curve has two terms more than a line, and follows noise more closely (`BENDING`).
    """
    return max(abs(found.pearson), abs(found.rank)) <= rows.chance and found.curve <= BENDING * rows.chance


def spell_odds(p: float) -> str:
    """A probability in a word.

    Examples
    --------
    >>> [spell_odds(p) for p in (0.99, 0.8, 0.4, 0.1, 0.01)]
    ['very likely', 'likely', 'uncertain', 'unlikely', 'very unlikely']
    """
    for least, word in ((0.95, "very likely"), (0.65, "likely"), (0.35, "uncertain"), (0.05, "unlikely")):
        if p >= least:
            return word
    return "very unlikely"


def _spell(found: Association, chance: float) -> str:
    bends = found.curve > max(abs(found.pearson) + 0.1, abs(found.rank) + 0.1, BENDING * chance)
    curve = f", along a curve {found.curve:.2f}" if bends else ""
    text = f"correlation {found.pearson:.2f}, rank correlation {found.rank:.2f}{curve}"
    return text.replace("-0.00", "0.00").replace("-", "−")


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
