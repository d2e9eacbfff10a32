"""How often links and arrows are found again in resamples of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from graphbam.graphs.graph import SKELETON, directed_part
from graphbam.graphs.knowledge import Knowledge
from graphbam.inference.answers import read_pairs
from graphbam.inference.blocks import Joined, Pairs, Wide
from graphbam.inference.networks import Networks, Said, mark_cells
from graphbam.inference.settings import InferConfig
from graphbam.nn.cost import Progress
from graphbam.result import Result
from graphbam.tables.prepare import Prepared
from graphbam.tables.standard import standardise
from graphbam.tables.table import Matrix

STABLE_FROM = 0.5
"""A pair counts as found in a resample from this skeleton probability on."""


MOST_ASKED = 20
"""The second network, which takes far longer than the first, is asked about so many resamples at most."""


class Stability(NamedTuple):
    """Shares of resamples, shape (D, D)."""

    links_dd: Matrix | None
    """In which a pair is a direct link; None: not asked."""
    arrows_dd: Matrix | None
    """In which `Result.cpdag` draws i → j, of all or, by a second network, of the first `MOST_ASKED`; None: nothing is
    known of directions."""


def measure_stability(
    ready: Prepared,
    networks: Networks,
    ask: Callable[[Iterator[Wide]], Iterator[tuple[int, list[Said]]]],
    n_resamples: int,
    knowledge: Knowledge,
    seed: int,
    tell: Progress,
    *,
    at_once: int,
) -> Stability:
    """Infer the graphs of resamples, as that of the table itself, and count.

    `ask` answers batches of `at_once` tables, in any order.
    """
    links_dd, arrows_dd = np.zeros((2, len(ready.names), len(ready.names)))
    n_directed = n_resamples if networks.one_pass else 0 if networks.colliders is None else min(n_resamples, MOST_ASKED)
    drawn: dict[int, Wide] = {}
    n_done = 0
    for number, said in ask(_draw_batches(ready, n_resamples, seed, at_once, drawn)):
        x_bmd = drawn.pop(number).x_bmd
        for k, one in enumerate(said):
            asked = networks if number * at_once + k < n_directed else networks._replace(colliders=None)
            pairs = read_pairs(ready, asked, knowledge, x_bmd[k : k + 1], one)
            result = Result(ready.names, knowledge=knowledge or None, **pairs)
            links_dd += result.probabilities[..., SKELETON] >= STABLE_FROM
            if result.has_directions:
                arrows_dd += directed_part(result.cpdag(STABLE_FROM).adjacency)
            n_done += 1
            tell((n_done + 1) / (n_resamples + 1), f"{n_done} of {n_resamples} resamples")
    return Stability(links_dd / n_resamples, arrows_dd / n_directed if n_directed else None)


def count_links(
    pairs: Pairs,
    ready: Prepared,
    ask: Callable[[Iterator[Wide]], Iterator[tuple[int, Joined]]],
    config: InferConfig,
    tell: Progress,
) -> Matrix:
    """Shares of resamples of a wide table in which pairs are direct links, shape (N,); arrows are not counted."""
    n_columns = ready.x_md.shape[1]
    keys, found, drawn = pairs.i * n_columns + pairs.j, np.zeros(len(pairs.i)), dict[int, Wide]()
    for number, joined in ask(_draw_batches(ready, config.stability, config.prepare.seed, 1, drawn)):
        del drawn[number]
        p_n = joined.pairs.classes[:, SKELETON]
        linked = joined.pairs.keep(p_n >= STABLE_FROM)
        found += np.isin(keys, linked.i * n_columns + linked.j)
        tell((number + 2) / (config.stability + 1), f"{number + 1} of {config.stability} resamples")
    return found / config.stability


def _draw_batches(ready: Prepared, n_resamples: int, seed: int, at_once: int, drawn: dict[int, Wide]) -> Iterator[Wide]:
    """Resamples as the network takes them, batch by batch; each is also in `drawn`, by its number."""
    x_md, marks_md = ready.x_md[ready.passes[0]], mark_cells(ready)
    rng = np.random.default_rng([seed, 1])  # a stream of its own, apart from the draw of rows
    for number, start in enumerate(range(0, n_resamples, at_once)):
        n_tables = min(at_once, n_resamples - start)
        drawn_bm = draw_resamples(rng, n_tables, len(x_md))
        x_bmd = standardise(torch.from_numpy(x_md[drawn_bm])).float()
        marks_bmd = None if marks_md is None else torch.from_numpy(marks_md[ready.passes[0]][drawn_bm])
        drawn[number] = Wide(x_bmd, [ready.worth(x_bmd.shape[1])] * n_tables, marks_bmd)
        yield drawn[number]


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
