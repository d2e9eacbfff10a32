"""Counts of transcripts in single cells."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from graphbam.simulation.cells import SetCells
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import rand, randn
from graphbam.simulation.worlds.parts import (
    add_drivers,
    draw_graphs,
    draw_weights,
    follow_parents,
    in_causal_order,
    mark,
    put,
)
from graphbam.simulation.worlds.registry import World, world


@world("single-cell", settable=True)
def single_cell(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Counts of transcripts in single cells.

    Log expression follows a gene network and, in part, the kind of the cell (a hidden driver with one to four values).
    Counts are Poisson with extra variance around expression times the size of the library, and some are lost. Two
    tables of three show log(1 + count), half of them per library. How cells are measured is no cause: it has no label.
    An experiment sets the expression, not the count.
    """
    kinds = {"regulators": 0.6, "scale-free": 0.3, "erdos-renyi": 0.1}
    adj_bee = add_drivers(rng, draw_graphs(rng, n_tables, n_variables, kinds, (1.0, 4.0)), 1, (0.0, 0.6))
    w_bee = draw_weights(rng, adj_bee)
    n_types_b1 = (1 + 4 * rand(rng, n_tables, 1)).floor()
    z_bem = randn(rng, n_tables, n_variables + 1, n_samples)
    z_bem[:, -1] = unit((rand(rng, n_tables, n_samples) * n_types_b1).floor())
    adj_bee[:, -1] &= n_types_b1 > 1  # where all cells are of one kind, it relates nothing
    share_be1 = 0.2 + 0.6 * rand(rng, n_tables, n_variables + 1, 1)
    for child, w_be in in_causal_order(w_bee[:, :, :-1]):
        signal_bm = unit(follow_parents(w_be, z_bem))
        noise_bm = z_bem[:, child].clone()
        has_parents_b1 = w_be.any(1, keepdim=True)
        mixed_bm = unit(torch.lerp(signal_bm, noise_bm, share_be1[:, child]))
        z_bem[:, child] = put(cells, (slice(None), child), torch.where(has_parents_b1, mixed_bm, noise_bm))
    return World(_count(rng, z_bem).mT, adj_bee, mark(cells, 1), n_drivers=1)


def _count(rng: torch.Generator, z_bem: Tensor) -> Tensor:
    """Transcripts that are counted, given log expression."""
    n_tables, n_variables, n_samples = z_bem.shape
    depth_b11, spread_b11, lost_b11, kind_b11 = rand(rng, 4, n_tables, 1, 1)
    level_be1 = math.log(0.08) + math.log(225) * depth_b11 + 1.2 * randn(rng, n_tables, n_variables, 1)
    library_b1m = torch.exp((0.1 + 0.6 * spread_b11) * randn(rng, n_tables, 1, n_samples))
    rate_bem = torch.exp((level_be1 + (0.4 + rand(rng, n_tables, n_variables, 1)) * z_bem).clamp(-6, 6)) * library_b1m
    burst_bem = torch.exp(0.5 * randn(rng, *rate_bem.shape) - 0.125)
    count_bem = torch.poisson(rate_bem * burst_bem, generator=rng)
    kept_bem = rand(rng, *rate_bem.shape) > lost_b11 * torch.exp(-0.3 * rate_bem)
    count_bem = count_bem * kept_bem
    total_b1m = count_bem.sum(1, keepdim=True).clamp(min=1)
    per_library_bem = torch.log1p(count_bem / total_b1m * total_b1m.mean(2, keepdim=True))
    return torch.where(kind_b11 < 1 / 3, count_bem, torch.where(kind_b11 < 2 / 3, count_bem.log1p(), per_library_bem))
