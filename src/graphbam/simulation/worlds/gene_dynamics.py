"""Gene networks in motion, with feedback and knock-outs."""

from __future__ import annotations

import torch
from torch import Tensor

from graphbam.simulation.labels import reach
from graphbam.simulation.noise import autocorrelate, rand, randn
from graphbam.simulation.worlds.parts import draw_graphs, draw_weights
from graphbam.simulation.worlds.registry import World, world


@world("gene-dynamics", series=True, loops=True)
def gene_dynamics(rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int) -> World:
    """Steady states of a gene network, each sample a perturbed copy of it; two of three networks have feedback loops.

    Production of every gene is a saturating (in a third of tables linear) response to its regulators, and what is made
    decays. Basal rates differ from sample to sample. In half of the tables genes are knocked out, down or up in some
    samples: these cells are set. In a third, samples are courses in time: conditions last a while, and states follow.
    """
    kinds = {"regulators": 0.5, "scale-free": 0.3, "erdos-renyi": 0.2}
    adj_bee = _add_feedback(rng, draw_graphs(rng, n_tables, n_variables, kinds, (1.0, 3.5)), share=2 / 3)
    linear_b11, gain_b11, noise_b11, fuzz_b11 = rand(rng, 4, n_tables, 1, 1)
    is_linear_b11 = linear_b11 < 1 / 3
    gain_b11 = torch.where(is_linear_b11, 0.4 + 0.5 * gain_b11, 0.6 + 1.8 * gain_b11)
    into_bee = (draw_weights(rng, adj_bee) * gain_b11).mT.contiguous()
    basal_bem = (0.3 + 0.7 * noise_b11) * randn(rng, n_tables, n_variables, n_samples)
    basal_bem = basal_bem + randn(rng, n_tables, n_variables, 1)
    set_bem, value_b11 = _draw_knockouts(rng, n_tables, n_variables, n_samples)
    lasts_b1 = torch.where(rand(rng, n_tables, 1) < 1 / 3, (5 + 20 * rand(rng, n_tables, 1)).floor(), 1.0)
    begin_bm = ((torch.arange(n_samples) / lasts_b1).floor() * lasts_b1).long()
    begin_bem = begin_bm[:, None].expand(-1, n_variables, -1)
    basal_bem, set_bem = basal_bem.gather(2, begin_bem), set_bem.gather(2, begin_bem)
    x_bem = torch.zeros_like(basal_bem)
    for _ in range(40):  # far enough for a fixed point where there is one; the rest are snapshots of a cycle
        input_bem = torch.baddbmm(basal_bem, into_bee, x_bem)
        new_bem = torch.where(is_linear_b11, input_bem.clamp(-20, 20), 4 * torch.sigmoid(input_bem) - 2)
        x_bem = torch.where(set_bem, value_b11, torch.lerp(x_bem, new_bem, 0.5))
    slow_b11 = (0.5 + 0.4 * rand(rng, n_tables, 1, 1)) * (lasts_b1[..., None] > 1)
    x_bem = torch.where(set_bem, x_bem, smooth(x_bem, slow_b11.expand(-1, n_variables, -1)))
    noisy_bem = x_bem + 0.15 * fuzz_b11 * x_bem.std(2, keepdim=True) * randn(rng, *x_bem.shape)
    return World(torch.where(set_bem, x_bem, noisy_bem).mT, adj_bee, set_bem.mT.contiguous())


def smooth(x_bem: Tensor, phi_be1: Tensor) -> Tensor:
    """Follow a series with delay, y_t = φ y_{t−1} + (1 − φ) x_t.

    Examples
    --------
    >>> smooth(torch.tensor([[[1.0, 1.0, 0.0, 0.0]]]), torch.tensor([[[0.5]]])).tolist()
    [[[1.0, 1.0, 0.5, 0.25]]]
    """
    gain_be1 = (1 - phi_be1) / (1 - phi_be1.square()).sqrt()
    start_bem = torch.cat([x_bem[..., :1] / gain_be1, x_bem[..., 1:]], 2)
    return (autocorrelate(start_bem.flatten(0, 1), phi_be1.flatten()).view_as(x_bem)) * gain_be1


def _add_feedback(rng: torch.Generator, adj_bee: Tensor, share: float) -> Tensor:
    """In a share of graphs, one to three arrows back from a descendant that is no child: loops of three or more."""
    n_tables = len(adj_bee)
    later_bee = reach(adj_bee) & ~adj_bee
    n_back_b1 = (1 + 3 * rand(rng, n_tables, 1)).floor() * (rand(rng, n_tables, 1) < share)
    luck_bn = (rand(rng, *adj_bee.shape) * later_bee).flatten(1)
    luck_bk, place_bk = luck_bn.topk(min(3, luck_bn.shape[1]), dim=1)
    used_bk = (torch.arange(place_bk.shape[1]) < n_back_b1) & (luck_bk > 0)
    back_bee = torch.zeros_like(adj_bee).flatten(1).scatter_(1, place_bk, used_bk).view_as(adj_bee).mT
    return adj_bee | (back_bee & ~adj_bee & ~adj_bee.mT)


def _draw_knockouts(rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int) -> tuple[Tensor, Tensor]:
    """Cells that are set, at most one per sample, and the value they get in each table."""
    has_b1, often_b1 = rand(rng, 2, n_tables, 1)
    hit_bm = rand(rng, n_tables, n_samples) < (0.05 + 0.9 * often_b1) * (has_b1 < 0.5)
    gene_bm = (rand(rng, n_tables, n_samples) * n_variables).long()
    set_bem = (torch.arange(n_variables)[:, None] == gene_bm[:, None]) & hit_bm[:, None]
    kind_b11, size_b11 = rand(rng, 2, n_tables, 1, 1)
    return set_bem, torch.where(kind_b11 < 0.6, -2.0, torch.where(kind_b11 < 0.8, -1.0, 2.0 + size_b11))
