"""Amounts that are passed on."""

from __future__ import annotations

import torch
from torch import Tensor

from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import autocorrelate, rand, randn
from graphbam.simulation.worlds.parts import add_drivers, follow_parents, in_causal_order
from graphbam.simulation.worlds.registry import World, world


@world("flows", series=True)
def flows(rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int) -> World:
    """Amounts that are passed on: water in rivers, vehicles on roads, goods, messages, money.

    A station passes on what it receives, less a loss, and adds something of its own. Ways join in half of the tables (a
    station has one child), part in a quarter (one parent), and do both in the rest. What stations add has heavy tails;
    in half of the tables two hidden drivers (weather, demand) raise it at many of them at once. Rows are events of
    their own, or follow one another, and then what is passed on may arrive a row later.
    """
    n_all = n_variables + 2
    kind_b11, driven_b11, tail_b11, slow_b11, own_b11 = rand(rng, 5, n_tables, 1, 1)
    joins_bee, parts_bee = _draw_ways(rng, n_tables, n_variables), _draw_ways(rng, n_tables, n_variables)
    parts_bee = parts_bee.mT.flip(1, 2)  # the same ways, seen from the other end
    kept_bee = rand(rng, *joins_bee.shape) < 0.5
    mixed_bee = (joins_bee & kept_bee) | (parts_bee & ~kept_bee)
    adj_bee = torch.where(kind_b11 < 0.5, joins_bee, torch.where(kind_b11 < 0.75, parts_bee, mixed_bee))
    adj_bee = add_drivers(rng, adj_bee, 2, (0.0, 0.8))
    adj_bee[:, n_variables:] &= driven_b11 < 0.5
    z_bem = randn(rng, n_tables, n_all, n_samples)
    phi_be = (0.9 * slow_b11[..., 0] * (slow_b11[..., 0] > 0.5)).expand(-1, n_all)
    z_bem = autocorrelate(z_bem.flatten(0, 1), phi_be.flatten()).view_as(z_bem)
    z_bem[:, :n_variables] += torch.bmm(
        2 * rand(rng, n_tables, n_all, n_all).mul_(adj_bee).mT[:, :-2, -2:], z_bem[:, -2:]
    )
    size_be1 = (0.05 * 20**own_b11) * torch.exp(0.7 * randn(rng, n_tables, n_all, 1))
    amount_bem = size_be1 * torch.exp((0.3 + 1.2 * tail_b11) * unit(z_bem))
    amount_bem *= torch.where(adj_bee[:, :n_variables].any(1)[..., None], 1.0, 1 / (0.05 * 20**own_b11))
    w_bee = (1 - 0.6 * rand(rng, *adj_bee.shape).square()) * adj_bee
    is_late_b1 = (slow_b11[..., 0] > 0.5) & (rand(rng, n_tables, 1) < 0.5)
    for child, w_be in in_causal_order(w_bee[:, :-2, :-2]):
        came_bm = follow_parents(w_be, amount_bem[:, :-2])
        late_bm = torch.cat([came_bm[:, :1], came_bm[:, :-1]], 1)
        amount_bem[:, child] += torch.where(is_late_b1, late_bm, came_bm)
    return World(_gauge(rng, amount_bem).mT, adj_bee, n_drivers=2)


def _draw_ways(rng: torch.Generator, n_tables: int, n_variables: int) -> Tensor:
    """Forests in which every variable has one child at most, a near one; in all tables most have one.

    Examples
    --------
    >>> ways_bee = _draw_ways(torch.Generator().manual_seed(0), 30, 8)
    >>> int(ways_bee.sum(2).max()), bool(ways_bee.sum((1, 2)).float().mean() > 5)
    (1, True)
    """
    reach_b1 = 1 + (n_variables - 1) * rand(rng, n_tables, 1).square()
    further_be = 1 + (rand(rng, n_tables, n_variables) * reach_b1).floor()
    child_be = torch.arange(n_variables) + further_be.long()
    goes_be = (child_be < n_variables) & (rand(rng, n_tables, n_variables) < 0.95)
    child_be = torch.where(goes_be, child_be, 0)
    ways_bee = torch.zeros(n_tables, n_variables, n_variables, dtype=torch.bool)
    return ways_bee.scatter_(2, child_be[..., None], goes_be[..., None])


def _gauge(rng: torch.Generator, amount_bem: Tensor) -> Tensor:
    """What gauges show: amounts, their logarithms or whole numbers, with a few per cent of error of their own."""
    kind_b11, fuzz_b11, scale_b11 = rand(rng, 3, len(amount_bem), 1, 1)
    shown_bem = amount_bem * torch.exp(0.15 * fuzz_b11.square() * randn(rng, *amount_bem.shape))
    count_bem = (shown_bem * 3 * 100**scale_b11).round()
    return torch.where(kind_b11 < 0.45, shown_bem, torch.where(kind_b11 < 0.8, shown_bem.log(), count_bem))
