"""What worlds are made of: graphs, weights, an order to fill variables in, and cells that are set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from graphbam.simulation.cells import SetCells
from graphbam.simulation.graphs import depth_levels, limit_parents, sample_dags
from graphbam.simulation.noise import rand

MOST_PARENTS = 5
"""Of variables in worlds as found."""


def draw_graphs(
    rng: torch.Generator, n_tables: int, n_variables: int, kinds: Mapping[str, float], degrees: tuple[float, float]
) -> Tensor:
    """DAGs in causal order, a kind and a mean degree per table.

    Examples
    --------
    >>> draw_graphs(torch.Generator(), 3, 8, {"regulators": 1.0}, degrees=(1, 2)).shape
    torch.Size([3, 8, 8])
    """
    low, high = degrees
    degree_b = (low + (high - low) * rand(rng, n_tables)).clamp(max=0.9 * (n_variables - 1))
    drawn = torch.multinomial(torch.tensor(list(kinds.values())), n_tables, True, generator=rng)
    return sample_dags(rng, [list(kinds)[k] for k in drawn.tolist()], degree_b, n_variables, max_parents=12)


def graphs_as_found(rng: torch.Generator, n_tables: int, n_variables: int) -> Tensor:
    """Few parents; eleven pairs in twelve are linked."""
    kinds = {"erdos-renyi": 0.6, "scale-free": 0.2, "small-world": 0.1, "stochastic-block": 0.1}
    degrees = (0.9, 0.95) if n_variables == 2 else (1.0, 3.5)
    return limit_parents(rng, draw_graphs(rng, n_tables, n_variables, kinds, degrees), MOST_PARENTS)


def add_drivers(rng: torch.Generator, adj_bee: Tensor, n_drivers: int, reach_range: tuple[float, float]) -> Tensor:
    """The same graphs with drivers at the end, each of which acts on a share of all variables.

    Examples
    --------
    >>> adj_bee = add_drivers(torch.Generator(), torch.zeros(2, 5, 5, dtype=torch.bool), 1, (1.0, 1.0))
    >>> adj_bee[0].sum(1).tolist()
    [0, 0, 0, 0, 0, 5]
    """
    n_tables, n_variables, _ = adj_bee.shape
    low, high = reach_range
    reach_bk1 = low + (high - low) * rand(rng, n_tables, n_drivers, 1)
    whole_bee = torch.nn.functional.pad(adj_bee, (0, n_drivers, 0, n_drivers))
    whole_bee[:, n_variables:, :n_variables] = rand(rng, n_tables, n_drivers, n_variables) < reach_bk1
    return whole_bee


def draw_weights(rng: torch.Generator, adj_bee: Tensor, low: float = 0.3, positive: float = 0.0) -> Tensor:
    """A weight per arrow, ±U[low, 1] over the root of their squared sum, so that parents together have size 1.

    In a share of tables all are `positive`: more of one goes with more of the other, as with sizes, loads and grades.
    """
    size_bee = (low + (1 - low) * rand(rng, *adj_bee.shape)) * (2.0 * (rand(rng, *adj_bee.shape) < 0.6) - 1)
    if positive:
        size_bee = torch.where(rand(rng, len(adj_bee), 1, 1) < positive, size_bee.abs(), size_bee)
    w_bee = size_bee * adj_bee
    return w_bee / w_bee.square().sum(1, keepdim=True).sqrt().clamp(min=1e-6)


def in_causal_order(w_bee: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Every variable with the weights of its parents, (B, E); graphs as they are drawn, drivers excepted."""
    for child in range(w_bee.shape[2]):
        yield child, w_bee[:, :, child]


def follow_parents(w_be: Tensor, x_bem: Tensor) -> Tensor:
    """Σ w x over parents, (B, M)."""
    return torch.bmm(w_be[:, None], x_bem)[:, 0]


class Step(NamedTuple):
    """Variables of one depth in all tables, and the arrows into them; values are rows, table after table."""

    row_k: Tensor
    """Rows of the variables."""
    parent_n: Tensor
    """Row of the parent, one per arrow."""
    child_n: Tensor
    """Which of the variables the arrow points to."""
    weight_n: Tensor

    def add_up(self, y_nm: Tensor) -> Tensor:
        """Σ w y over the arrows into each variable, (K, M)."""
        return torch.zeros(len(self.row_k), y_nm.shape[1]).index_add_(0, self.child_n, self.weight_n[:, None] * y_nm)

    def even(self) -> Step:
        """The same with all weights 1."""
        return self._replace(weight_n=torch.ones_like(self.weight_n))

    def into(self, chosen_k: Tensor) -> Step:
        """Some of the variables, and the arrows into these.

        Examples
        --------
        >>> step = Step(torch.tensor([3, 7]), torch.tensor([0, 1, 4]), torch.tensor([0, 0, 1]), torch.ones(3))
        >>> step.into(torch.tensor([False, True]))[:3]
        (tensor([7]), tensor([4]), tensor([0]))
        """
        arrows, place_k = chosen_k[self.child_n], chosen_k.cumsum(0) - 1
        parent_n, child_n, weight_n = self.parent_n[arrows], self.child_n[arrows], self.weight_n[arrows]
        return Step(self.row_k[chosen_k], parent_n, place_k[child_n], weight_n)


def by_depth(w_bee: Tensor, n_drivers: int = 0) -> Iterator[Step]:
    """All variables but the drivers, those without parents among them first: fewer steps than one per variable.

    Examples
    --------
    >>> w_bee = torch.tensor([[[0.0, 0.5, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]])
    >>> [(step.row_k.tolist(), step.parent_n.tolist()) for step in by_depth(w_bee)]
    [([0], []), ([1], [0]), ([2], [1])]
    """
    n_tables, n_all, _ = w_bee.shape
    n_variables = n_all - n_drivers
    depth_be = depth_levels(w_bee[:, :n_variables, :n_variables] != 0)
    first_b1 = n_all * torch.arange(n_tables)[:, None]
    row_n, depth_n = (first_b1 + torch.arange(n_variables)).flatten(), depth_be.flatten()
    table_n, parent_n, child_n = (w_bee[:, :, :n_variables] != 0).nonzero(as_tuple=True)
    arrow_depth_n, place_n = depth_be[table_n, child_n], torch.empty(n_tables * n_all, dtype=torch.long)
    for depth in range(int(depth_be.max()) + 1):
        row_k, arrows = row_n[depth_n == depth], arrow_depth_n == depth
        place_n[row_k] = torch.arange(len(row_k))
        table, parent, child = table_n[arrows], parent_n[arrows], child_n[arrows]
        yield Step(row_k, n_all * table + parent, place_n[n_all * table + child], w_bee[table, parent, child])


def by_kind(kind_n: Tensor, cases: Sequence[tuple[float, Callable[..., Tensor]]], *parts: Tensor) -> Tensor:
    """Rows made by whichever case has the first limit above their kind, from the same rows of all parts.

    Examples
    --------
    >>> by_kind(torch.tensor([0.1, 0.7]), [(0.5, torch.sin), (1.0, torch.exp)], torch.zeros(2, 1)).tolist()
    [[0.0], [1.0]]
    """
    y_nm, start = torch.zeros_like(parts[0]), 0.0
    for stop, make in cases:
        rows = ((kind_n >= start) & (kind_n < stop)).nonzero()[:, 0]
        if len(rows):
            y_nm[rows] = make(*(part[rows] for part in parts))
        start = stop
    return y_nm


def draw_alike(rng: torch.Generator, n_traits: int, n_tables: int, n_variables: int) -> Tensor:
    """Numbers in [0, 1) that decide about columns, (traits, B, E); in half of the tables all columns have the same.

    Columns of one table are often one thing measured many times: stations, genes, items, machines of one make.

    Examples
    --------
    >>> traits_2be = draw_alike(torch.Generator().manual_seed(0), 2, 400, 5)
    >>> bool(0.4 < (traits_2be.std(2) < 1e-6).all(0).float().mean() < 0.6)
    True
    """
    alike_b1 = rand(rng, n_tables, 1) < 0.5
    return torch.where(alike_b1, rand(rng, n_traits, n_tables, 1), rand(rng, n_traits, n_tables, n_variables))


def put(cells: SetCells | None, where: tuple[Tensor | slice, Tensor | int], x_km: Tensor) -> Tensor:
    """Values of variables, `where` they are, after the experiment has set some; unchanged without an experiment."""
    return x_km if cells is None else cells.apply(where, x_km)


def mark(cells: SetCells | None, n_drivers: int = 0) -> Tensor | None:
    """Which cells of a world were set; drivers never are."""
    return None if cells is None else torch.nn.functional.pad(cells.set_bem.mT, (0, n_drivers))
