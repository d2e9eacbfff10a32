"""Meters of machines, one row after the other."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from graphbam.simulation.cells import SetCells
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import autocorrelate, rand, randn
from graphbam.simulation.worlds.parts import add_drivers, by_depth, draw_alike, draw_graphs, draw_weights, mark, put
from graphbam.simulation.worlds.registry import World, world


@world("monitoring", series=True, settable=True)
def monitoring(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Series of a monitored system: machines, services, a plant, the weather.

    Variables follow their parents at once or up to three samples later, and their own past; slow ones hardly move.
    Behind many of them are two hidden drivers: a season, and a load that drifts. Some are counts, loads with a ceiling
    or spiky rates.
    """
    burn_in, n_all = 16, n_variables + 2
    length = n_samples + burn_in
    kinds = {"erdos-renyi": 0.4, "bipartite-layers": 0.2, "scale-free": 0.2, "small-world": 0.2}
    adj_bee = add_drivers(rng, draw_graphs(rng, n_tables, n_variables, kinds, (1.0, 4.0)), 2, (0.0, 0.8))
    lag_bee = (4 * rand(rng, *adj_bee.shape).square()).floor() * (rand(rng, n_tables, 1, 1) < 0.7)
    x_bem = randn(rng, n_tables, n_all, length)
    x_bem[:, -2], x_bem[:, -1] = _season(rng, n_tables, length), _load(rng, n_tables, length)
    phi_be = (0.95 * rand(rng, n_tables, n_all)) * (rand(rng, n_tables, n_all) < rand(rng, n_tables, 1) + 0.2)
    slow_be = phi_be * (rand(rng, n_tables, n_all) < 0.4)
    share_be1 = 0.1 + 0.7 * rand(rng, n_tables, n_all, 1)
    x_nm, earlier = x_bem.flatten(0, 1), None if cells is None else cells.later(burn_in)
    for step in by_depth(draw_weights(rng, adj_bee, positive=0.5), n_drivers=2):
        where = step.row_k // n_all, step.row_k % n_all
        lag_n = lag_bee[step.parent_n // n_all, step.parent_n % n_all, where[1][step.child_n]]
        y_km = autocorrelate(x_nm[step.row_k], phi_be[where])
        signal_km = unit(step.add_up(delay(x_nm[step.parent_n], lag_n)))
        has_parents_k1 = torch.zeros(len(y_km), 1, dtype=torch.bool).index_fill_(0, step.child_n, True)
        y_km = torch.where(has_parents_k1, unit(torch.lerp(signal_km, y_km, share_be1[where])), y_km)
        x_nm[step.row_k] = put(earlier, where, unit(autocorrelate(y_km, slow_be[where])))
    return World(_meter(rng, x_bem[..., burn_in:]).mT, adj_bee, mark(cells, 2), n_drivers=2)


def delay(x_nm: Tensor, lag_n: Tensor) -> Tensor:
    """Every row as many samples later as its lag says, from 0 to 3; what came before is its first value.

    Examples
    --------
    >>> delay(torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), torch.tensor([2, 0])).tolist()
    [[1.0, 1.0, 1.0, 2.0], [5.0, 6.0, 7.0, 8.0]]
    """
    y_nm, length = x_nm.clone(), x_nm.shape[1]
    for lag in range(1, min(4, length)):
        late_n = lag_n == lag
        y_nm[late_n] = torch.cat([x_nm[late_n, :1].expand(-1, lag), x_nm[late_n, : length - lag]], 1)
    return y_nm


def _season(rng: torch.Generator, n_tables: int, length: int) -> Tensor:
    """Waves with one to thirty periods in all, never quite the same."""
    periods_b1, phase_b1, fuzz_b1 = rand(rng, 3, n_tables, 1)
    time_m = torch.arange(length) / length
    wave_bm = torch.sin(2 * math.pi * (30**periods_b1 * time_m + phase_b1))
    return unit(wave_bm + 0.5 * fuzz_b1 * randn(rng, n_tables, length))


def _load(rng: torch.Generator, n_tables: int, length: int) -> Tensor:
    """A slow walk, in half of the tables with a trend; in a quarter it only switches between two states."""
    walk_bm = autocorrelate(randn(rng, n_tables, length), 0.9 + 0.095 * rand(rng, n_tables))
    walk_bm = torch.where(rand(rng, n_tables, 1) < 0.25, torch.tanh(8 * walk_bm), walk_bm)
    trend_b1 = 3 * randn(rng, n_tables, 1) * (rand(rng, n_tables, 1) < 0.5)
    return unit(walk_bm + trend_b1 * (torch.arange(length) / length))


def _meter(rng: torch.Generator, x_bem: Tensor) -> Tensor:
    """What the instruments show: values as they are, exponentials (rates, delays), counts, loads with a ceiling."""
    kind_be1, size_be1, step_be1 = draw_alike(rng, 3, *x_bem.shape[:2])[..., None]
    rate_bem = torch.exp((0.3 + size_be1) * x_bem)
    count_bem = torch.round(rate_bem * (0.5 + 20 * step_be1.square()))
    capped_bem = x_bem.clamp(max=0.5 + 1.5 * size_be1)
    shown_bem = torch.where(kind_be1 < 0.25, rate_bem, x_bem)
    shown_bem = torch.where((kind_be1 > 0.25) & (kind_be1 < 0.45), count_bem, shown_bem)
    return torch.where(kind_be1 > 0.9, capped_bem, shown_bem)
