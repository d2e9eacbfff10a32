"""Answers on scales, with traits behind them."""

from __future__ import annotations

import torch
from torch import Tensor

from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import rand, randn
from graphbam.simulation.worlds.parts import add_drivers, draw_graphs, draw_weights, follow_parents, in_causal_order
from graphbam.simulation.worlds.registry import World, world


@world("questionnaire")
def questionnaire(rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int) -> World:
    """Answers on scales of two to seven levels, with one hidden trait behind nearly all items and another behind some.

    A few items act on others directly; in three tables of ten nothing else joins them. Scales are cut at uneven
    places, so that some answers pile up at one end.
    """
    adj_bee = draw_graphs(rng, n_tables, n_variables, {"erdos-renyi": 0.7, "stochastic-block": 0.3}, (0.3, 2.5))
    adj_bee = add_drivers(rng, add_drivers(rng, adj_bee, 1, (0.7, 1.0)), 1, (0.0, 0.5))
    adj_bee[:, -1, -2] = False  # traits do not act on one another
    adj_bee[:, -2:] &= rand(rng, n_tables, 1, 1) > 0.3
    w_bee = draw_weights(rng, adj_bee)
    w_bee[:, -2:] = w_bee[:, -2:].abs()  # most items are worded the same way
    turned_be = rand(rng, n_tables, n_variables + 2) < 0.15
    z_bem = randn(rng, n_tables, n_variables + 2, n_samples)
    share_be1 = 0.25 + 0.5 * rand(rng, n_tables, n_variables + 2, 1)
    for child, w_be in in_causal_order(w_bee[:, :, :-2]):
        signal_bm, noise_bm = unit(follow_parents(w_be, z_bem)), z_bem[:, child].clone()
        mixed_bm = unit(torch.lerp(signal_bm, noise_bm, share_be1[:, child]))
        z_bem[:, child] = torch.where(w_be.any(1, keepdim=True), mixed_bm, noise_bm)
    z_bem = torch.where(turned_be[..., None], -z_bem, z_bem)
    return World(_answer_on_scale(rng, z_bem).mT, adj_bee, n_drivers=2)


def _answer_on_scale(rng: torch.Generator, z_bem: Tensor) -> Tensor:
    """Levels 0 to 6 at most; in most tables all items have the same number of levels."""
    n_tables, n_variables, _ = z_bem.shape
    n_levels_be1 = (2 + 6 * rand(rng, n_tables, n_variables, 1)).floor()
    same_b11 = rand(rng, n_tables, 1, 1) < 0.75
    n_levels_be1 = torch.where(same_b11, n_levels_be1[:, :1], n_levels_be1)
    tilt_be1 = 0.8 * randn(rng, n_tables, n_variables, 1)
    place_bem = torch.sigmoid(1.5 * (z_bem + tilt_be1)) * n_levels_be1
    return torch.minimum(place_bem.floor(), n_levels_be1 - 1)
