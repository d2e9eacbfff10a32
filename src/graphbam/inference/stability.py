"""How often a link is found again in resamples of the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from graphbam.graphs.graph import SKELETON
from graphbam.graphs.knowledge import Knowledge
from graphbam.inference.networks import Weights, mark_cells, run_network, tables_at_once
from graphbam.nn.cost import Progress
from graphbam.tables.prepare import Prepared, standardise
from graphbam.tables.read import Matrix

STABLE_FROM = 0.5
"""A pair counts as found in a resample from this skeleton probability on."""


def measure_stability(
    ready: Prepared, loaded: Weights, n_resamples: int, knowledge: Knowledge, seed: int, tell: Progress
) -> Matrix:
    """Share of resamples in which a pair is a direct link, shape (D, D)."""
    x_md, marks_md = ready.x_md[ready.passes[0]], mark_cells(ready)
    rng = np.random.default_rng([seed, 1])  # a stream of its own, apart from the draw of rows
    names = [ready.names[k] for k in ready.varying]
    inside = _restrict(knowledge, names)
    found = np.zeros((len(names), len(names)))
    size = tables_at_once(x_md.size)
    for start in range(0, n_resamples, size):
        n_tables = min(size, n_resamples - start)
        drawn_bm = draw_resamples(rng, n_tables, len(x_md))
        x_bmd = standardise(torch.from_numpy(x_md[drawn_bm])).float()
        marks_bmd = None if marks_md is None else torch.from_numpy(marks_md[ready.passes[0]][drawn_bm])
        said = run_network(loaded, x_bmd, [ready.worth(x_bmd.shape[1])] * n_tables, marks_bmd)
        for p_dd3 in said.classes:
            found += inside.apply(names, p_dd3)[..., SKELETON] >= STABLE_FROM
        tell((start + n_tables + 1) / (n_resamples + 1), f"{start + n_tables} of {n_resamples} resamples")
    return _settle_stability(ready.put_constants_back(found / n_resamples, 0.0), ready.names, knowledge)


def draw_resamples(rng: np.random.Generator, n_resamples: int, n_rows: int) -> NDArray[np.int64]:
    """Row numbers of resamples: as many distinct rows as a bootstrap of the table holds, 63 %, none of them twice.

    A plain bootstrap repeats rows, and to the network a repeated row is evidence: links too weak to be found in the
    whole table would be found in its resamples.

    Examples
    --------
    >>> draw_resamples(np.random.default_rng(0), 3, 100).shape
    (3, 63)
    """
    everyone = np.tile(np.arange(n_rows), (n_resamples, 1))
    return rng.permuted(everyone, axis=1)[:, : max(2, round(0.632 * n_rows))]


def _restrict(knowledge: Knowledge, names: Sequence[str]) -> Knowledge:
    """Keep the soft priors between these variables; hard knowledge is settled afterwards."""
    known = set(names)
    return Knowledge(prior_odds=[row for row in knowledge.prior_odds if {row[0], row[1]} <= known])


def _settle_stability(share_dd: Matrix, names: Sequence[str], knowledge: Knowledge) -> Matrix:
    """Forbidden pairs are found never, required ones always, and no variable is linked to itself."""
    place = {name: k for k, name in enumerate(names)}
    for pairs, value in ((knowledge.forbidden_pairs(), 0.0), (knowledge.required, 1.0)):
        for pair in pairs:
            a, b = place[pair[0]], place[pair[1]]
            share_dd[a, b] = share_dd[b, a] = value
    np.fill_diagonal(share_dd, 0.0)
    return share_dd
