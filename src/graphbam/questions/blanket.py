"""Which variables tell all there is to tell about one: its parents, its children, and the other parents of these.

So it is where no hidden common cause stands behind the variable or its children. A variable that shares one tells more,
whatever is known of the others; those suspected of it are named beside the blanket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphbam.errors import spell_count
from graphbam.graphs.cut import EVEN, Cut
from graphbam.graphs.graph import MORAL, SKELETON, one_line
from graphbam.questions.rows import find_variable
from graphbam.result import Result

if TYPE_CHECKING:
    import pandas as pd


MOST_NAMED = 3
"""Variables with a hidden common cause that are named."""


@dataclass(frozen=True, eq=False)
class MarkovBlanket:
    """The Markov blanket of a variable: given these, no other variable tells more about it, unless it shares a hidden
    cause.

    Examples
    --------
    >>> p = np.tile([0.9, 0.1, 0.0], (3, 3, 1))
    >>> p[0, 2] = p[2, 0] = [0.1, 0.9, 0.0]
    >>> p[0, 1] = p[1, 0] = [0.2, 0.0, 0.8]
    >>> blanket = Result(("rain", "sprinkler", "wet"), p).markov_blanket("rain")
    >>> blanket.variables
    ('wet', 'sprinkler')
    >>> print(blanket)
    Markov blanket of rain, 2 variables at p ≥ 0.5:
      wet        0.90  mostly by a link (0.90)
      sprinkler  0.80  mostly through a common child only (0.80)
    """

    name: str
    """The variable it belongs to."""
    variables: tuple[str, ...]
    """Its members at the cut, likeliest first: the neighbours of `name` in `Result.moral_graph`."""
    table: pd.DataFrame
    """One row for every other variable, likeliest member first. Columns `variable`; `probability` that it is a member,
    the sum of `linked` and `spouse` (no link, but a common child); where directions are known, `parent`,
    `child` and `open` (what depends on what does not tell which), which sum to `linked`; where the weights say so,
    `hidden`, that the two have a hidden common cause; `member` at the cut."""
    cut: Cut

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __str__(self) -> str:
        members = self.table[self.table["member"]]
        head = f"Markov blanket of {self.name}, {spell_count(len(self.variables), 'variable')} {self.cut}"
        if self.cut.fdr is not None:  # is a share of all pairs that are chosen, of which these are a part
            head += f" among all pairs of the table, {float((1 - members['probability']).sum()):.1f} of these"
        width = max((len(one_line(name)) for name in members["variable"]), default=0)
        lines = [
            f"  {one_line(row['variable']):<{width}}  {row['probability']:.2f}  {_spell_part(row)}"
            for row in members.to_dict("records")
        ]
        told = (head + (":" if lines else ""), *lines, *self._say_missed(), *self._say_hidden())
        return "\n".join(map(one_line, told))

    def _say_missed(self) -> list[str]:
        """How many more members there should be, where no single one is sure: copies share what there is to tell."""
        rest = self.table[~self.table["member"]]
        n = round(float(rest["probability"].sum()))
        if n < 1:
            return []
        likeliest = [f"{row['variable']} {row['probability']:.2f}" for row in rest.head(3).to_dict("records")]
        are = "is" if n == 1 else "are"
        return [f"About {n} more {are} expected among the {len(rest)} others, likeliest: {', '.join(likeliest)}"]

    def _say_hidden(self) -> list[str]:
        """Who tells more than the blanket does, since something hidden is rather behind both than not."""
        if "hidden" not in self.table:
            return []
        told = self.table[~self.table["member"] & (self.table["hidden"] >= EVEN)]
        told = told.sort_values("hidden", ascending=False, kind="stable")
        if not len(told):
            return []
        named = ", ".join(f"{row['variable']} {row['hidden']:.2f}" for row in told.head(MOST_NAMED).to_dict("records"))
        more = f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else ""
        tells = "it may tell" if len(told) == 1 else "they may tell"
        return [f"A hidden common cause is suspected with {named}{more}: {tells} more, whatever the others say"]


def find_blanket(result: Result, name: str, cut: Cut) -> MarkovBlanket:
    """See `Result.markov_blanket`."""
    import pandas as pd

    k = find_variable(result.names, name)
    others = np.array([j for j in range(result.n_variables) if j != k], dtype=np.int64)
    linked, spouse = result.probabilities[k, others, SKELETON], result.probabilities[k, others, MORAL]
    names = np.array(result.names, dtype=object)
    columns = {"variable": names[others], "probability": linked + spouse, "linked": linked}
    if result.has_directions:
        arrow_dd = result.compelled_probabilities
        parent, child = linked * arrow_dd[others, k], linked * arrow_dd[k, others]
        columns |= {"parent": parent, "child": child, "open": np.maximum(linked - parent - child, 0.0)}
    chosen = result.moral_graph(cut).adjacency[k, others] > 0
    columns |= {"spouse": spouse}
    columns |= {} if result.hidden_causes is None else {"hidden": result.hidden_causes[k, others]}
    columns |= {"member": chosen}
    table = pd.DataFrame(columns).iloc[np.argsort(-columns["probability"], kind="stable")].reset_index(drop=True)
    return MarkovBlanket(name, tuple(table["variable"][table["member"]]), table, cut)


def _spell_part(row: Mapping[Any, Any]) -> str:
    """What most of its probability is made of, and how much that is."""
    if row["spouse"] > row["linked"]:
        return f"mostly through a common child only ({row['spouse']:.2f})"
    for part in ("parent", "child"):
        if row.get(part, 0.0) > row["probability"] / 2:
            return f"mostly as a {part} ({row[part]:.2f})"
    return f"mostly by a link ({row['linked']:.2f})" + (", direction open" if "parent" in row else "")
