"""Dense measurements that nearly determine one another."""

from __future__ import annotations

import torch

from graphbam.simulation.cells import SetCells
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import rand, randn
from graphbam.simulation.worlds.parts import draw_graphs, draw_weights, follow_parents, in_causal_order, mark, put
from graphbam.simulation.worlds.registry import World, world


@world("collinear", settable=True)
def collinear(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Measurements that nearly determine one another: many parents, half to ten per cent of noise.

    Sizes of one body, stations along a river, parts of a process and their sums: effects are weighted sums, in a third
    of the tables of bent parents, mostly with positive weights.
    """
    adj_bee = draw_graphs(rng, n_tables, n_variables, {"erdos-renyi": 0.6, "small-world": 0.4}, (2.0, 7.0))
    w_bee = draw_weights(rng, adj_bee, low=0.1, positive=0.6)
    bent_b1, noise_b1 = rand(rng, 2, n_tables, 1)
    z_bem = randn(rng, n_tables, n_variables, n_samples)
    heavy_be1 = 0.5 * rand(rng, n_tables, n_variables, 1) * (rand(rng, n_tables, 1, 1) < 0.5)
    z_bem = unit(z_bem * torch.exp(heavy_be1 * randn(rng, *z_bem.shape)))
    for child, w_be in in_causal_order(w_bee):
        signal_bm = unit(follow_parents(w_be, z_bem))
        signal_bm = torch.where(bent_b1 < 1 / 3, unit(torch.exp(0.5 * signal_bm.clamp(-4, 4))), signal_bm)
        share_b1 = 0.005 * 20 ** ((noise_b1 + rand(rng, n_tables, 1)) / 2)
        mixed_bm = unit(torch.lerp(signal_bm, z_bem[:, child], share_b1))
        own_bm = torch.where(w_be.any(1, keepdim=True), mixed_bm, z_bem[:, child])
        z_bem[:, child] = put(cells, (slice(None), child), own_bm)
    skewed_bem = torch.exp(0.6 * z_bem.clamp(-4, 4))
    return World(torch.where(rand(rng, n_tables, 1, 1) < 0.4, skewed_bem, z_bem).mT, adj_bee, mark(cells))
