"""Variables that are seen through counts."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from graphbam.simulation.cells import SetCells
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import rand, randn
from graphbam.simulation.worlds.curves import PLAIN, found_marginal, random_spline
from graphbam.simulation.worlds.parts import by_depth, draw_alike, draw_graphs, draw_weights, mark, put
from graphbam.simulation.worlds.registry import World, world


@world("counts", settable=True)
def counts(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Variables that are seen through counts: transcripts, visits, catches, cases, words, clicks.

    The logarithm of a rate follows those of its causes, in three tables of ten bent ones. What is shown is how often
    something happened: Poisson counts around the rate, in half of the tables with the extra variance of a negative
    binomial, of rare things and of frequent ones. In two tables of five, rows were watched for longer or for less
    long, which is no cause and has no label. In a quarter, some columns are no counts. An experiment sets the rate, not
    the count.
    """
    kinds = {"erdos-renyi": 0.5, "scale-free": 0.2, "regulators": 0.1, "bipartite-layers": 0.1, "small-world": 0.1}
    adj_bee = draw_graphs(rng, n_tables, n_variables, kinds, (1.0, 4.0))
    kind_n, size_n, plain_n = draw_alike(rng, 3, n_tables, n_variables).flatten(1)
    own_nm = found_marginal(rng, torch.where(plain_n < 0.7, PLAIN, kind_n), size_n, n_samples)
    bent_b, noisy_b1 = rand(rng, n_tables), rand(rng, n_tables, 1)
    share_n1 = (0.05 + 0.6 * (noisy_b1 + rand(rng, n_tables, n_variables)) / 2).view(-1, 1)
    x_nm = torch.zeros_like(own_nm)
    for step in by_depth(draw_weights(rng, adj_bee, positive=0.3)):
        y_km, row_k = own_nm[step.row_k], step.row_k
        if len(step.parent_n):
            parents_nm = x_nm[step.parent_n]
            is_bent_n = (bent_b < 0.3)[step.parent_n // n_variables]
            parents_nm[is_bent_n] = random_spline(rng, parents_nm[is_bent_n])
            y_km = unit(torch.lerp(unit(step.add_up(parents_nm)), y_km, share_n1[row_k]))
        x_nm[row_k] = put(cells, (row_k // n_variables, row_k % n_variables), y_km)
    return World(_count_events(rng, x_nm.view(n_tables, n_variables, n_samples)).mT, adj_bee, mark(cells))


def _count_events(rng: torch.Generator, x_bem: Tensor) -> Tensor:
    """Counts given their log rates, as they are or as log(1 + n) or √n; some columns of some tables stay log rates."""
    n_tables, n_variables, n_samples = x_bem.shape
    level_be1, spread_be1, extra_be1 = draw_alike(rng, 3, n_tables, n_variables)[..., None]
    look_b11, watched_b11, spells_b11, partly_b11, share_b11 = rand(rng, 5, n_tables, 1, 1)
    spread_be1 = 0.3 + 0.9 * spread_be1
    mean_be1 = math.log(0.3) + math.log(200) * level_be1 - spread_be1.square() / 2  # 0.3 to 60, if x is normal
    spell_b1m = (0.1 + 0.5 * spells_b11) * (watched_b11 < 0.4) * randn(rng, n_tables, 1, n_samples)
    rate_bem = torch.exp((mean_be1 + spread_be1 * x_bem + spell_b1m).clamp(-8, 8))
    scattered_b = rand(rng, n_tables) < 0.5
    shape_bem = (1 / (0.05 * 20 ** extra_be1[scattered_b])).expand(-1, -1, n_samples)  # variance μ + μ² / shape
    rate_bem[scattered_b] *= torch._standard_gamma(shape_bem, generator=rng) / shape_bem
    count_bem = torch.poisson(rate_bem, generator=rng)
    shown_bem = torch.where(look_b11 < 0.4, count_bem, torch.where(look_b11 < 0.8, count_bem.log1p(), count_bem.sqrt()))
    is_count_be1 = (partly_b11 > 0.25) | (rand(rng, n_tables, n_variables, 1) < 0.2 + 0.7 * share_b11)
    return torch.where(is_count_be1, shown_bem, x_bem)
