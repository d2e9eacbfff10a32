"""What is recorded with effects that bend, and in steps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from graphbam.simulation.cells import SetCells
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import rand, randn
from graphbam.simulation.worlds.curves import draw_spline, found_marginal
from graphbam.simulation.worlds.parts import by_depth, by_kind, draw_weights, graphs_as_found, mark, put
from graphbam.simulation.worlds.registry import World, world


@world("recorded", settable=True)
def recorded(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Causes as found, and what somebody measured of their effects: growth by factors and rounding befall these alone.

    One cause in three comes in steps (ages, years, doses). Skewed quantities all have their long tail above, as those
    have that cannot fall below zero. An effect in three grows by factors, one in three is rounded. Noise is added, of
    all sorts, and in half of the effects more of it for some values of the causes than for others.
    """
    adj_bee = graphs_as_found(rng, n_tables, n_variables)
    kind_n, size_n, ratio_n, growth_n, grows_n, spreads_n, noise_n = rand(rng, 7, n_tables * n_variables, 1)
    own_nm = found_marginal(rng, kind_n[:, 0], size_n[:, 0], n_samples, turned=0.0)
    is_root_n1 = ~adj_bee.any(1).view(-1, 1)
    own_nm = torch.where(is_root_n1, round_to_grid(rng, own_nm, (5, 80), 1 / 3), _vary(rng, noise_n, own_nm))
    x_nm = torch.zeros_like(own_nm)
    for step in by_depth(draw_weights(rng, adj_bee, positive=0.5)):
        y_km, row_k = own_nm[step.row_k], step.row_k
        if len(step.parent_n):
            parents_nm = x_nm[step.parent_n]
            spread_km = _to_unit_interval(step.add_up(draw_spline(rng, parents_nm)))
            y_km = unit(torch.where(spreads_n[row_k] < 0.5, (0.1 + 0.9 * spread_km) * y_km, y_km))
            y_km = unit(unit(step.add_up(recorded_response(rng, parents_nm))) + 0.08 * 25 ** ratio_n[row_k] * y_km)
            grown_km = unit(torch.exp((0.3 + 1.2 * growth_n[row_k]) * y_km.clamp(-6, 6)))
            y_km = round_to_grid(rng, torch.where(grows_n[row_k] < 1 / 3, grown_km, y_km), (8, 200), 1 / 3)
        x_nm[row_k] = put(cells, (row_k // n_variables, row_k % n_variables), y_km)
    return World(x_nm.view(n_tables, n_variables, n_samples).mT, adj_bee, mark(cells))


def recorded_response(rng: torch.Generator, x_nm: Tensor) -> Tensor:
    """A function of each row: a spline in half of the cases, else a power, an exponential, a step or a line."""
    kind_n, size_n, coin_n, turned_n = rand(rng, 4, len(x_nm))
    sign_n1, turned_n1 = ((2.0 * (part < 0.5) - 1)[:, None] for part in (coin_n, turned_n))
    shapes: tuple[tuple[float, Callable[..., Tensor]], ...] = (
        (0.500, lambda z, size: draw_spline(rng, z)),
        (0.625, lambda z, size: (z - z.amin(1, keepdim=True)) ** (0.4 + 2 * size)),
        (0.750, lambda z, size: torch.exp((0.4 + size) * z.clamp(-4, 4))),
        (0.875, lambda z, size: torch.tanh((0.5 + 2 * size) * (z - size))),
        (1.000, lambda z, size: z),
    )
    return unit(turned_n1 * by_kind(kind_n, shapes, sign_n1 * x_nm, size_n[:, None]))


def round_to_grid(rng: torch.Generator, x_nm: Tensor, levels: tuple[int, int], share: float) -> Tensor:
    """A share of rows rounded to an even grid between their least and their largest value; unit variance.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> sorted(len(row.unique()) for row in round_to_grid(rng, torch.rand(4, 500, generator=rng), (3, 9), 0.5))
    [5, 7, 500, 500]
    """
    low, high = levels
    n_levels_n1 = torch.randint(low, high + 1, (len(x_nm), 1), generator=rng)
    bottom_n1 = x_nm.amin(1, keepdim=True)
    step_n1 = ((x_nm.amax(1, keepdim=True) - bottom_n1) / (n_levels_n1 - 1)).clamp_min(1e-6)
    rounded_nm = ((x_nm - bottom_n1) / step_n1).round() * step_n1
    return unit(torch.where(rand(rng, len(x_nm), 1) < share, rounded_nm, x_nm))


def _vary(rng: torch.Generator, kind_n1: Tensor, x_nm: Tensor) -> Tensor:
    """Noise: half of the rows as they are, the others normal or Laplace."""
    centred_nm = (rand(rng, *x_nm.shape) - 0.5).clamp(-0.5 + 1e-6, 0.5 - 1e-6)
    laplace_nm = -centred_nm.sign() * (1 - 2 * centred_nm.abs()).log()
    return torch.where(kind_n1 < 0.5, x_nm, torch.where(kind_n1 < 0.75, randn(rng, *x_nm.shape), unit(laplace_nm)))


def _to_unit_interval(x_nm: Tensor) -> Tensor:
    """Each row stretched from 0 to 1."""
    bottom_n1 = x_nm.amin(1, keepdim=True)
    return (x_nm - bottom_n1) / (x_nm.amax(1, keepdim=True) - bottom_n1).clamp_min(1e-6)
