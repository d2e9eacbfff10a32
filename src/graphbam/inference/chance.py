"""How often chance alone looks as strong as a pair does, and what that leaves of an answer.

The network learned from tables of up to some hundred columns. In a neighbourhood of a table with thousands it sees no
more of them, but these were chosen: of all columns that have nothing to do with one of the core it sees just those that
happen to look most like it, and holds them for links. So a pair without any relation gets the odds it would have had,
times

    1 + (R − 1) w,    R = 1 + (D / 300 − 1) √share,    w = o / (o + RELATED)

- `share` of the pairs that look as strong as this one are shown to the network: all of the strongest, and of the others
  no more than in a small table, where R = 1.
- o are the odds, in a table of 300 columns, that a pair this strong came by chance: the number that unrelated columns
  would give against the number that there is, as in the local false discovery rate (Efron, 2004). The former is counted
  in the table itself with shuffled rows, since zeros and ones and counts have another distribution than numbers without
  ties. Far beyond what chance gives, w = 0 and nothing changes.

Up to 300 columns nothing changes at all. `RELATED` and the root were fitted on simulated tables of 1,000 to 20,000
columns and 150 to 400 rows, with the known distribution of normal scores for chance; docs/performance.md tells how well
they hold on others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from graphbam.graphs.graph import Indices
from graphbam.inference.screen import FINE, Candidates, Neighbourhood, largest_products, view_columns

USUAL = 300
"""Columns up to which a table is like those the network learned from."""

RELATED = 0.1
"""Weight of relations through other columns against chance, among pairs without a link."""

WIDTH, N_BINS = 0.3, 133
"""Pairs are counted by their strength: standard errors of a correlation (Fisher's z) in steps of this."""

Floats32 = NDArray[np.float32]


class Chance(NamedTuple):
    """For each pair that is shown to the network, how many times more often it came by chance than it believes."""

    keys: Indices
    """i · D + j for i < j, increasing."""
    times: Floats32
    """From 1 on."""

    def at(self, keys: Indices) -> Floats32:
        """Of some pairs; 1 of those that are not shown."""
        if not len(self.keys):
            return np.ones(len(keys), dtype=np.float32)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.times[place], 1.0).astype(np.float32)


def weigh_chance(x_md: Tensor, found: Candidates, hoods: list[Neighbourhood], rows: float) -> Chance:
    """Compare what is shown to the network with all that was looked at.

    Parameters
    ----------
    x_md : Tensor, shape (M, D)
        The table that was screened.
    found : Candidates
        With the strengths of all pairs, and of those that chance gives.
    hoods : list of Neighbourhood
        What is shown.
    rows : float
        Independent rows the table is worth.
    """
    n_variables = x_md.shape[1]
    if n_variables <= USUAL or found.census is None or found.chance is None:
        return Chance(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
    shown = [_look(x_md, hood) for hood in hoods]
    keys, first = np.unique(np.concatenate([keys for keys, _ in shown]), return_index=True)
    level = _level(np.concatenate([r for _, r in shown])[first], rows)
    there = count_levels(found.census, rows)
    given = count_levels(found.chance, len(x_md))  # shuffled rows are independent, whatever the table's are worth
    by_chance = pool_rises(given * (there.sum() / given.sum()), there)  # the stronger a pair, the less it is chance
    times = _times(np.bincount(level, minlength=N_BINS) / np.maximum(there, 1.0), by_chance, n_variables)
    return Chance(keys, times[level])


def _look(x_md: Tensor, hood: Neighbourhood) -> tuple[Indices, Floats32]:
    """Pairs that a neighbourhood answers, and their correlations."""
    columns, n_core = hood.columns, len(hood.core)
    views_vmk = view_columns(x_md[:, columns].float())
    r_ck = largest_products(views_vmk[:, :, :n_core], views_vmk).numpy()
    a, b = hood.answered()
    one, other = columns[a], columns[b]
    return np.minimum(one, other) * x_md.shape[1] + np.maximum(one, other), r_ck[a, b]


def _level(r: NDArray[np.floating], rows: float) -> Indices:
    z = np.arctanh(np.minimum(r, 1 - 1e-6)) * np.sqrt(max(rows - 3, 1.0))
    return np.minimum(z / WIDTH, N_BINS - 1).astype(np.int64)


def count_levels(census: NDArray[np.float64], rows: float) -> NDArray[np.float64]:
    """Counts of pairs by correlation, counted again by levels of their strength."""
    counts = np.bincount(_level((np.arange(FINE) + 0.5) / FINE, rows), census, N_BINS)
    return np.asarray(counts, dtype=np.float64)


def pool_rises(part_n: NDArray[np.float64], whole_n: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares part / whole that never rise: neighbours that do are taken together (isotonic regression).

    Examples
    --------
    >>> pool_rises(np.array([2.0, 1.0, 2.0, 0.0]), np.array([2.0, 2.0, 2.0, 5.0])).tolist()
    [1.0, 0.75, 0.75, 0.0]
    """
    groups: list[tuple[float, float, int]] = []
    for part, whole in zip(part_n.tolist(), whole_n.tolist(), strict=True):
        groups.append((part, whole, 1))
        while len(groups) > 1 and groups[-1][0] * groups[-2][1] >= groups[-2][0] * groups[-1][1]:
            last, before = groups.pop(), groups.pop()
            groups.append((last[0] + before[0], last[1] + before[1], last[2] + before[2]))
    share_g = [part / max(whole, 1.0) for part, whole, _ in groups]
    return np.repeat(np.array(share_g), [size for _, _, size in groups])


def _times(share: NDArray[np.float64], by_chance: NDArray[np.float64], n_variables: int) -> Floats32:
    """How many times more often a pair of each level came by chance than the network believes.

    `share` of the pairs of a level are shown, and `by_chance` of them have no relation.
    """
    wider = n_variables / USUAL
    share = np.maximum.accumulate(np.minimum(share, 1.0))
    by_chance = np.minimum(by_chance, 1 - 1e-9)
    odds = by_chance / (1 - by_chance) / wider
    return np.asarray(1 + (wider - 1) * np.sqrt(share) * odds / (odds + RELATED), dtype=np.float32)
