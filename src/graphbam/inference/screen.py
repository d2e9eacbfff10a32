"""Which pairs of a wide table are worth the network's time: a fast look at all of them, and neighbourhoods of these.

Every pair is looked at, as products of matrices. A column has two views: its normal scores, and how far they are from
the middle, so that effects without a slope (cosines, squares) are seen too. Equal values have equal scores: were ties
told apart by the order of rows, zeros and ones without any relation would look alike. Two numbers are taken of a pair,
each the largest over its four pairs of views:

- the plain correlation of the views, which finds every neighbour and much that lies behind one;
- their partial correlation given all other views, shrunk as in a ridge regression (the projection of Wang and Leng,
  2016, which works with more columns than rows), which leaves out most of what a third variable explains.

The best of either kind are the candidates of a column, `MOST_CANDIDATES` in all, and a pair is a candidate if it is one
of either end: a hub may have hundreds. Columns that share candidates are then put together: every column is in the core
of one neighbourhood, beside which stand the columns that core's candidates name most.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbam.graphs.graph import Indices

MOST_CANDIDATES = 30
"""Candidates of a column, half of them by plain and half by partial correlations."""

RIDGE = 1.0
"""Of the partial correlations, in units of the mean variance of a row."""

CORE, SIZE = 96, 300
"""Columns in the core of a neighbourhood, and in all of it, where there are rows enough. With 200, links are worse; far
beyond 300 the network fails (docs/performance.md)."""

LEAST_SIZE, COLUMNS_PER_ROW = 60, 1.5
"""With few rows neighbourhoods are smaller: they are quicker, and hardly worse."""

CELLS_AT_ONCE = 16_000_000
"""Pairs whose numbers are held at a time."""

FINE = 4000
"""Steps from 0 to 1 in which the correlations of all pairs are counted."""

SHUFFLES = 8
"""Times that columns are shuffled at most; a wide table has enough pairs in fewer."""

SAME = 0.99
"""Correlation from which two views of a column are one."""


class Candidates(NamedTuple):
    """Pairs i < j, sorted, and how strong each looks."""

    i: Indices
    j: Indices
    strength: NDArray[np.float32]
    """From 0 on; 1 is what chance gives."""
    census: NDArray[np.float64] | None = None
    """How many of all pairs, candidates or not, have a correlation in each of `FINE` steps."""
    chance: NDArray[np.float64] | None = None
    """The same of pairs of which one column had its rows shuffled: what these columns give by chance."""

    def keys(self, n_variables: int) -> Indices:
        """One number per pair, increasing."""
        return self.i * n_variables + self.j


class Neighbourhood(NamedTuple):
    """Columns that the network sees together."""

    core: Indices
    """Columns that are in no other core."""
    context: Indices
    """Columns that go with them."""

    @property
    def columns(self) -> Indices:
        """All of them, the core first."""
        return np.concatenate([self.core, self.context])

    def answered(self) -> tuple[Indices, Indices]:
        """Pairs with an end in the core, by place in `columns`, the first end in the core."""
        n_all = len(self.core) + len(self.context)
        a, b = np.nonzero(np.triu(np.ones((len(self.core), n_all), dtype=bool), 1))
        return a, b


def find_candidates(
    x_md: Tensor, most: int = MOST_CANDIDATES, tell: Callable[[float], None] | None = None
) -> Candidates:
    """Look at all pairs of columns; never holds more than a few rows of the matrix of pairs.

    Parameters
    ----------
    x_md : Tensor, shape (M, D)
        Standardised columns.
    most : int
        Candidates that each column may name.
    tell : callable, optional
        Hears the share of the work that is done.

    Examples
    --------
    >>> x_md = torch.randn(400, 50, generator=torch.Generator().manual_seed(0))
    >>> x_md[:, 7] = x_md[:, 3].cos() + 0.1 * x_md[:, 7]
    >>> found = find_candidates(x_md, most=4)
    >>> best = found.strength.argmax()
    >>> int(found.i[best]), int(found.j[best])
    (3, 7)
    """
    n_variables = x_md.shape[1]
    half = min(-(-most // 2), n_variables - 1)
    size = max(1, CELLS_AT_ONCE // n_variables)
    views_vmd = view_columns(x_md.float())
    kinds = ((views_vmd, views_vmd), _project(views_vmd))
    keys, strengths = [], []
    census = np.zeros(FINE)
    for start in range(0, n_variables, size):
        rows = torch.arange(start, min(start + size, n_variables))
        for left_vmd, right_vmd in kinds:
            found = largest_products(left_vmd[:, :, rows], right_vmd)
            usual = found.mean()
            found[torch.arange(len(rows)), rows] = -1.0
            if left_vmd is views_vmd:
                census += torch.histc(found.clamp_(max=1.0), FINE, 0.0, 1.0).numpy() / 2  # each pair comes twice
            found /= usual  # of a scale that both kinds share: 1 is what chance gives
            best = found.topk(half, dim=1)
            i, j = rows[:, None].expand(-1, half), best.indices
            keys.append((torch.minimum(i, j) * n_variables + torch.maximum(i, j)).flatten().numpy())
            strengths.append(best.values.flatten().numpy())
        if tell:
            tell(float(rows[-1] + 1) / n_variables)
    united = _unite(np.concatenate(keys), np.concatenate(strengths), n_variables)
    return united._replace(census=census, chance=count_by_chance(views_vmd))


def count_by_chance(views_vmd: Tensor, seed: int = 0) -> NDArray[np.float64]:
    """Correlations of columns with others whose rows were shuffled, each by itself, counted in `FINE` steps."""
    n_rows, n_variables = views_vmd.shape[1:]
    generator = torch.Generator().manual_seed(seed)
    size = min(n_variables, max(1, CELLS_AT_ONCE // n_variables))
    census = np.zeros(FINE)
    for _ in range(min(SHUFFLES, -(-CELLS_AT_ONCE // (size * n_variables)))):
        chosen = torch.randperm(n_variables, generator=generator)[:size]
        order_mk = torch.rand(n_rows, size, generator=generator).argsort(dim=0)
        shuffled_vmk = torch.stack([view_md[:, chosen].gather(0, order_mk) for view_md in views_vmd])
        found = largest_products(shuffled_vmk, views_vmd)
        found[torch.arange(size), chosen] = -1.0
        census += torch.histc(found.clamp_(max=1.0), FINE, 0.0, 1.0).numpy()
    return census


def view_columns(x_md: Tensor) -> Tensor:
    """Normal scores of each column, and their distance from the middle; centred, of length one; shape (2, M, D).

    Equal values share the middle of their ranks. Where the distance says no more than the score does, as in a column of
    two values, it is left out as zeros.

    Examples
    --------
    >>> view_columns(torch.tensor([[0.0], [0.0], [1.0], [1.0]])).squeeze(-1)
    tensor([[-0.5000, -0.5000,  0.5000,  0.5000],
            [ 0.0000,  0.0000,  0.0000,  0.0000]])
    """
    x_dm = x_md.mT.contiguous()
    sorted_dm = x_dm.sort().values
    rank_dm = torch.searchsorted(sorted_dm, x_dm, out_int32=True)
    rank_dm += torch.searchsorted(sorted_dm, x_dm, out_int32=True, right=True)
    score_md = torch.special.ndtri(rank_dm.mT / (2 * len(x_md)))
    views_vmd = torch.stack([score_md, score_md.abs()])
    views_vmd -= views_vmd.mean(dim=1, keepdim=True)
    length_vd = views_vmd.norm(dim=1)
    views_vmd /= length_vd[:, None].clamp_min(1e-9)
    same_d = (views_vmd[0] * views_vmd[1]).sum(dim=0).abs()
    views_vmd[1] *= (same_d < SAME) & (length_vd[1] > (1 - SAME) * length_vd[0])
    return views_vmd


def _project(views_vmd: Tensor) -> tuple[Tensor, Tensor]:
    """Two factors of the partial correlations of all views, given all others."""
    kernel_mm = torch.einsum("vmd,vnd->mn", views_vmd, views_vmd)
    n_rows = len(kernel_mm)
    ridge = RIDGE * kernel_mm.diagonal().mean()
    weighed_vmd = torch.linalg.solve(kernel_mm + ridge * torch.eye(n_rows), views_vmd)
    left = (1 - (views_vmd * weighed_vmd).sum(dim=1, keepdim=True)).clamp_min(1e-3).rsqrt()
    return weighed_vmd * left, views_vmd * left


def largest_products(left_vmk: Tensor, right_vmd: Tensor) -> Tensor:
    """Largest of the products of views, shape (K, D)."""
    found = torch.zeros(left_vmk.shape[-1], right_vmd.shape[-1])
    for left_mk in left_vmk:
        for right_md in right_vmd:
            torch.maximum(found, (left_mk.mT @ right_md).abs_(), out=found)
    return found


def _unite(keys_n: Indices, strength_n: NDArray[np.float32], n_variables: int) -> Candidates:
    """Each pair once, with the larger of what was said of it."""
    order = np.lexsort((-strength_n, keys_n))
    keys_n, strength_n = keys_n[order], strength_n[order]
    is_first = np.concatenate([[True], keys_n[1:] != keys_n[:-1]])
    keys_n = keys_n[is_first]
    return Candidates(keys_n // n_variables, keys_n % n_variables, strength_n[is_first])


# ── neighbourhoods ────────────────────────────────────────────────────────────────────────────────────────


def hood_size(rows: float) -> tuple[int, int]:
    """Columns in the core of a neighbourhood and in all of it, for a table worth so many independent rows.

    Examples
    --------
    >>> hood_size(500), hood_size(100)
    ((96, 300), (48, 150))
    """
    size = int(min(max(COLUMNS_PER_ROW * rows, LEAST_SIZE), SIZE))
    return size * CORE // SIZE, size


def group_columns(found: Candidates, n_variables: int, core: int, size: int) -> list[Neighbourhood]:
    """Cover all columns by neighbourhoods of `size` columns, of which `core` are in no other core.

    A core grows from a column with strong candidates, always by the one that has most to do with those inside.

    Examples
    --------
    >>> pairs = Candidates(np.array([0, 1, 3]), np.array([1, 2, 4]), np.ones(3, dtype=np.float32))
    >>> [(sorted(one.core.tolist()), one.context.tolist()) for one in group_columns(pairs, 5, core=2, size=3)]
    [([0, 1], [2]), ([2, 3], [1]), ([4], [3])]
    """
    start, other, weight = _neighbour_lists(found, n_variables)
    total_d = np.bincount(np.repeat(np.arange(n_variables), np.diff(start)), weight, n_variables)
    seeds = iter(np.argsort(-total_d, kind="stable").tolist())
    is_free = np.ones(n_variables, dtype=bool)
    result = []
    while is_free.any():
        gain: dict[int, float] = {}
        heap: list[tuple[float, int]] = []
        members: list[int] = []
        while len(members) < core and is_free.any():
            chosen = _strongest(heap, gain, is_free)
            chosen = next(k for k in seeds if is_free[k]) if chosen is None else chosen
            is_free[chosen] = False
            members.append(chosen)
            part = slice(start[chosen], start[chosen + 1])
            for k, value in zip(other[part].tolist(), weight[part].tolist(), strict=True):
                gain[k] = gain.get(k, 0.0) + value
                heapq.heappush(heap, (-gain[k], k))
        inside = set(members)
        around = sorted((k for k in gain if k not in inside), key=lambda k: (-gain[k], k))
        result.append(Neighbourhood(np.array(members), np.array(around[: size - len(members)], dtype=np.int64)))
    return result


def _neighbour_lists(found: Candidates, n_variables: int) -> tuple[Indices, Indices, NDArray[np.float32]]:
    """For each column where its candidates begin, who they are, and how much each weighs."""
    one, other = np.concatenate([found.i, found.j]), np.concatenate([found.j, found.i])
    order = np.argsort(one, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(one, minlength=n_variables))])
    weight = np.square(np.concatenate([found.strength, found.strength]))  # a strong one counts more than some weak ones
    return start, other[order], weight[order]


def _strongest(heap: list[tuple[float, int]], gain: dict[int, float], is_free: NDArray[np.bool_]) -> int | None:
    """The free column that has most to do with those inside; None if there is none."""
    while heap:
        value, k = heapq.heappop(heap)
        if is_free[k] and -value == gain[k]:
            return k
    return None
