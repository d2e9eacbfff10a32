"""Tables as found, and tables whose causes somebody chose."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from graphbam.simulation.cells import SetCells
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import rand
from graphbam.simulation.worlds.curves import PLAIN, blend, found_looks, found_marginal, found_response, random_spline
from graphbam.simulation.worlds.parts import by_depth, draw_alike, draw_weights, graphs_as_found, mark, put
from graphbam.simulation.worlds.registry import World, world

BLENDED = 0.25
"""Share of effects as found in which noise is not added but is one more argument of the function."""


@world("as-found", settable=True)
def as_found(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Variables as found in tables of all sorts, two or more.

    Causes are grids, counts, ages, bounded or skewed, with up to ten humps. Effects are random splines of them (or
    lines, powers, exponentials, steps), with noise from the same marginals that may depend on the causes as well; one
    effect in four is a smooth function of causes and noise together.
    Whatever befalls a column (logarithmic growth, rounding, ceilings) befalls causes and effects alike, so that no
    direction follows from the looks of a column.
    """
    return _find_variables(rng, (n_tables, n_variables, n_samples), cells)


@world("designed", settable=True)
def designed(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Variables as found, except that what has no cause was chosen, or comes in steps of its own.

    Doses, settings, positions, years, ages: a grid of 2 to 80 levels, in half of the columns every level as often as
    any other. What follows from them is measured, and seldom rounded as much. Here, and in what is `recorded`, the
    looks of a column do say something about its place: as they do in real tables.
    """
    return _find_variables(rng, (n_tables, n_variables, n_samples), cells, ROOTS_AS_DESIGNED)


class Roots(NamedTuple):
    """How variables without causes differ from all others in a table."""

    chosen: float
    """Share of them that come in steps."""
    even: float
    """Share of those in which every step is as frequent as any other."""


ROOTS_AS_DESIGNED = Roots(chosen=0.75, even=0.5)


def _find_variables(
    rng: torch.Generator, shape: tuple[int, int, int], cells: SetCells | None, roots: Roots | None = None
) -> World:
    """The world as found; with `roots`, variables without causes look unlike the others, which are seldom rounded."""
    n_tables, n_variables, n_samples = shape
    adj_bee = graphs_as_found(rng, n_tables, n_variables)
    kind_n, size_n, plain_n, looks_n, growth_n = draw_alike(rng, 5, n_tables, n_variables).flatten(1)
    ratio_n, bent_n, blends_n = rand(rng, 3, n_tables * n_variables)
    kind_n = torch.where((plain_n < 0.4) & adj_bee.any(1).flatten(), PLAIN, kind_n)
    noise_nm, ratio_n = found_marginal(rng, kind_n, size_n, n_samples), 0.08 * 25**ratio_n  # noise over signal
    if roots is not None:
        is_root_n = ~adj_bee.any(1).flatten()
        noise_nm[is_root_n] = choose_levels(rng, noise_nm[is_root_n], roots.chosen, roots.even)
        looks_n = torch.where(looks_n > 0.3, 0.5 + looks_n / 2, looks_n)
        looks_n = torch.where(is_root_n, PLAIN, looks_n)
    x_nm = torch.zeros_like(noise_nm)
    for step in by_depth(draw_weights(rng, adj_bee, positive=0.5)):
        y_km = noise_nm[step.row_k]
        if len(step.parent_n):
            parents_nm, is_bent_n = x_nm[step.parent_n], (bent_n < 0.5)[step.row_k][step.child_n]
            bend_nm = torch.zeros_like(parents_nm)
            bend_nm[is_bent_n] = random_spline(rng, parents_nm[is_bent_n])
            spread_km = torch.exp(0.8 * unit(step.add_up(bend_nm)).clamp(-3, 3))
            own_km = ratio_n[step.row_k, None] * spread_km * y_km
            y_km = unit(step.add_up(found_response(rng, parents_nm))) + own_km
            blends_k = blends_n[step.row_k] < BLENDED
            y_km[blends_k] = blend(rng, unit(step.add_up(parents_nm))[blends_k], own_km[blends_k])
        looks_k1, growth_k1 = looks_n[step.row_k, None], growth_n[step.row_k, None]
        y_km = unit(found_looks(rng, looks_k1, growth_k1, unit(y_km)).clamp(-8, 8))
        x_nm[step.row_k] = put(cells, (step.row_k // n_variables, step.row_k % n_variables), y_km)
    return World(x_nm.view(n_tables, n_variables, n_samples).mT, adj_bee, mark(cells))


def choose_levels(rng: torch.Generator, x_nm: Tensor, chosen: float = 0.75, even: float = 0.5) -> Tensor:
    """A share of rows, `chosen`, on an even grid of 2 to 80 levels; in a share of these all levels are as frequent.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> sorted(len(row.unique()) for row in choose_levels(rng, torch.randn(5, 500, generator=rng)))
    [4, 8, 17, 17, 500]
    """
    levels_n1, even_n1, stays_n1 = rand(rng, 3, len(x_nm), 1)
    last_n1 = (2 * 40**levels_n1).floor() - 1
    bottom_n1, top_n1 = x_nm.amin(1, keepdim=True), x_nm.amax(1, keepdim=True)
    place_nm = torch.where(even_n1 < even, rand(rng, *x_nm.shape), (x_nm - bottom_n1) / (top_n1 - bottom_n1 + 1e-6))
    return torch.where(stays_n1 < 1 - chosen, x_nm, unit((place_nm * (last_n1 + 1)).floor().clamp(max=last_n1)))
