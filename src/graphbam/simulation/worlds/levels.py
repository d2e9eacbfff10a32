"""Columns of two to five levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from graphbam.simulation.cells import SetCells
from graphbam.simulation.graphs import limit_parents
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import rand, randn
from graphbam.simulation.worlds.curves import found_looks, random_spline
from graphbam.simulation.worlds.parts import (
    MOST_PARENTS,
    Step,
    by_depth,
    by_kind,
    draw_alike,
    draw_graphs,
    draw_weights,
    mark,
    put,
)
from graphbam.simulation.worlds.registry import World, world

MOST_LEVELS = 5
"""Of a column that is cut."""

NO_CUT = 2.0
"""A share of rows that no level reaches."""

COMBINATIONS = 61
"""Entries of a table of combinations: a prime, so that another level of any one cause is another entry."""


@world("levels", settable=True)
def levels(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Columns of two to five levels and next to no others: flags, findings, species, grades, genotypes.

    Behind each is a tendency, and what is shown is the level that it reaches. In three tables of ten tendencies follow
    tendencies, half of these along curves. In all others they follow levels alone: sums of scores, causes any of which
    suffices or prevents, or a number for every combination of levels. In half of the tables all columns are cut in one
    way; in a third up to three columns in ten are shown uncut. An experiment sets the tendency, and the level follows.
    """
    kinds = {"erdos-renyi": 0.5, "scale-free": 0.2, "bipartite-layers": 0.15, "small-world": 0.15}
    adj_bee = limit_parents(rng, draw_graphs(rng, n_tables, n_variables, kinds, (0.3, 4.0)), MOST_PARENTS)
    scales, own_nm = draw_scales(rng, n_tables, n_variables, n_samples), randn(rng, n_tables * n_variables, n_samples)
    by_levels_b1, noisy_b1 = rand(rng, 2, n_tables, 1)
    answer_be = 1 + (len(LEVEL_ANSWERS) - 1) * rand(rng, n_tables, n_variables)
    answer_n = torch.where(by_levels_b1 < 0.3, 0.0, answer_be).flatten().long()
    share_n1 = (0.1 + 0.65 * (noisy_b1 + rand(rng, n_tables, n_variables)) / 2).view(-1, 1)
    x_nm, level_nm = torch.zeros(2, *own_nm.shape)
    for step in by_depth(draw_weights(rng, adj_bee, positive=0.5)):
        y_km, row_k = own_nm[step.row_k], step.row_k
        if len(step.parent_n):
            signal_km = _answer_levels(rng, step, answer_n[row_k], x_nm, level_nm)
            y_km = unit(torch.lerp(unit(signal_km), y_km, share_n1[row_k]))
        x_nm[row_k] = put(cells, (row_k // n_variables, row_k % n_variables), y_km)
        level_nm[row_k] = scales.of(row_k).cut(y_km, x_nm[row_k])
    uncut_n, (looks_n1, size_n1) = scales.uncut_n, rand(rng, 2, len(x_nm), 1)
    level_nm[uncut_n] = found_looks(rng, looks_n1[uncut_n], size_n1[uncut_n], x_nm[uncut_n])
    return World(level_nm.view(n_tables, n_variables, n_samples).mT, adj_bee, mark(cells))


class Scales(NamedTuple):
    """How columns are cut into levels."""

    below_n4: Tensor
    """Shares of rows below each cut; `NO_CUT` where there are fewer cuts."""
    place_n5: Tensor
    """Where in [0, 1] each level lies, from low tendencies to high ones."""
    uncut_n: Tensor
    """Columns that are shown as they are; they have as many levels as values."""

    def of(self, row_k: Tensor) -> Scales:
        """Those of some columns."""
        return Scales(*(part[row_k] for part in self))

    def cut(self, y_nm: Tensor, x_nm: Tensor) -> Tensor:
        """Levels of x, as places in [0, 1], by cuts between values of y; no cut leaves one of its sides empty.

        Examples
        --------
        >>> halves = Scales(torch.tensor([[0.5, 2, 2, 2]]), torch.tensor([[0.0, 1, 1, 1, 1]]), torch.tensor([False]))
        >>> halves.cut(torch.tensor([[3.0, 1, 2, 4]]), torch.tensor([[3.0, 1, 2, -9]])).tolist()
        [[1.0, 0.0, 0.0, 0.0]]
        """
        n_samples = y_nm.shape[1]
        last_n4 = ((self.below_n4 * n_samples).round().clamp(1, n_samples - 1) - 1).long()
        cut_n4 = y_nm.sort(1).values.gather(1, last_n4).masked_fill(self.below_n4 == NO_CUT, torch.inf)
        level_nm = torch.zeros_like(x_nm, dtype=torch.long)
        for cut_n1 in cut_n4.split(1, dim=1):
            level_nm += x_nm > cut_n1
        return torch.where(self.uncut_n[:, None], torch.special.ndtr(x_nm), self.place_n5.gather(1, level_nm))


def draw_scales(rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int) -> Scales:
    """Two levels, each in about half of the rows or one of them rarer; genotypes; three to five levels.

    Of one scale of three levels or more in seven the levels have no order, but numbers all the same.

    Examples
    --------
    >>> scales = draw_scales(torch.Generator().manual_seed(0), 200, 20, 500)
    >>> [round((scales.below_n4 < 1).sum(1).eq(n_cuts).float().mean().item(), 1) for n_cuts in (1, 2, 3, 4)]
    [0.6, 0.2, 0.1, 0.1]
    """
    kind_n = draw_alike(rng, 1, n_tables, n_variables).flatten()
    size_n1, coin_n1 = draw_alike(rng, 2, n_tables, n_variables).flatten(1)[..., None]
    (order_n5, height_n5), (partly_b1, share_b1) = rand(rng, 2, len(kind_n), MOST_LEVELS), rand(rng, 2, n_tables, 1)
    families: tuple[tuple[float, Callable[..., Tensor]], ...] = (
        (0.35, lambda height, size: _pad_cuts(0.5 - 0.15 * size.square())),
        (0.60, lambda height, size: _pad_cuts(0.03 * 12**size)),
        (0.72, lambda height, size: _cut_genotypes(0.05 + 0.45 * size)),
        (1.00, lambda height, size: _cut_anywhere(height, 3 + (3 * size).floor())),
    )
    below_n4 = by_kind(kind_n, families, height_n5[:, 1:], size_n1)
    luck_n4 = randn(rng, *below_n4.shape) * (below_n4 * (1 - below_n4)).clamp(min=0.0).sqrt()
    top_n1 = (below_n4 < 1).sum(1, keepdim=True)
    level_5 = torch.arange(MOST_LEVELS)
    unordered_n5 = (order_n5 + (level_5 > top_n1)).argsort(1).argsort(1)
    place_n5 = torch.where((coin_n1 < 0.15) & (top_n1 > 1), unordered_n5, level_5) / top_n1
    place_n5 = torch.where(coin_n1 < 0.5, place_n5, 1 - place_n5)
    uncut_be = (partly_b1 < 1 / 3) & (rand(rng, n_tables, n_variables) < 0.3 * share_b1)
    return Scales(below_n4 + luck_n4 / n_samples**0.5, place_n5, uncut_be.flatten())


def _pad_cuts(below_nk: Tensor) -> Tensor:
    """The same for as many cuts as a column can have."""
    return torch.nn.functional.pad(below_nk, (0, MOST_LEVELS - 1 - below_nk.shape[1]), value=NO_CUT)


def _cut_genotypes(rare_n1: Tensor) -> Tensor:
    """None, one or two of a rare allele, in the shares of Hardy and Weinberg.

    Examples
    --------
    >>> _cut_genotypes(torch.tensor([[0.5]])).tolist()
    [[0.25, 0.75, 2.0, 2.0]]
    """
    return _pad_cuts(torch.cat([(1 - rare_n1).square(), 1 - rare_n1.square()], 1))


def _cut_anywhere(height_n4: Tensor, n_levels_n1: Tensor) -> Tensor:
    """Uneven shares of so many levels.

    Examples
    --------
    >>> _cut_anywhere(torch.full((1, 4), 0.5), torch.tensor([[3.0]])).mul(30).round().tolist()
    [[10.0, 20.0, 60.0, 60.0]]
    """
    has_cut_n4 = torch.arange(1, MOST_LEVELS) < n_levels_n1
    weight_n4 = (0.2 + height_n4) * has_cut_n4
    return torch.where(has_cut_n4, weight_n4.cumsum(1) / (weight_n4.sum(1, keepdim=True) + 0.7), NO_CUT)


def _answer_levels(rng: torch.Generator, step: Step, answer_k: Tensor, x_nm: Tensor, level_nm: Tensor) -> Tensor:
    """What causes do to the variables of a step, each in its own way."""
    signal_km = torch.zeros(len(step.row_k), x_nm.shape[1])
    for kind, answer in enumerate(LEVEL_ANSWERS):
        chosen_k = answer_k == kind
        signal_km[chosen_k] = answer(rng, step.into(chosen_k), x_nm, level_nm)
    return signal_km


def _follow_tendencies(rng: torch.Generator, step: Step, x_nm: Tensor, level_nm: Tensor) -> Tensor:
    """Σ w x, half of the causes bent: they act before anybody cuts them."""
    y_nm = x_nm[step.parent_n]
    bent_n = rand(rng, len(y_nm)) < 0.5
    y_nm[bent_n] = random_spline(rng, y_nm[bent_n])
    return step.add_up(y_nm)


def _add_scores(rng: torch.Generator, step: Step, x_nm: Tensor, level_nm: Tensor) -> Tensor:
    """Σ w · level: the more the likelier, as in a logistic regression."""
    return step.add_up(unit(level_nm[step.parent_n]))


def _let_any_suffice(rng: torch.Generator, step: Step, x_nm: Tensor, level_nm: Tensor) -> Tensor:
    """Log odds that at least one cause works, each by its own chance where it is present, or where it is absent.

    In half of the variables that prevents what happens otherwise.
    """
    present_nm, chance_n1 = level_nm[step.parent_n], 0.3 + 0.65 * rand(rng, len(step.parent_n), 1)
    active_nm = torch.where(step.weight_n[:, None] > 0, present_nm, 1 - present_nm)
    failed_km = step.even().add_up(torch.log1p(-chance_n1 * active_nm))
    unprompted_k1, coin_k1 = rand(rng, 2, len(step.row_k), 1)
    failed_km = failed_km + torch.log1p(-0.02 * 10**unprompted_k1)
    return torch.where(coin_k1 < 0.5, 1.0, -1.0) * torch.expm1(-failed_km).log()


def _look_up(rng: torch.Generator, step: Step, x_nm: Tensor, level_nm: Tensor) -> Tensor:
    """Scores, and beside them a number for every combination of levels: one cause decides what another one does."""
    stride_n1 = torch.randint(1, COMBINATIONS, (len(step.parent_n), 1), generator=rng)
    place_nm = ((MOST_LEVELS - 1) * level_nm[step.parent_n]).round().long()
    entry_km = torch.zeros(len(step.row_k), place_nm.shape[1], dtype=torch.long)
    entry_km = entry_km.index_add_(0, step.child_n, stride_n1 * place_nm) % COMBINATIONS
    numbers_km = randn(rng, len(step.row_k), COMBINATIONS).gather(1, entry_km)
    return unit(_add_scores(rng, step, x_nm, level_nm)) + unit(numbers_km)


LEVEL_ANSWERS = (_follow_tendencies, _add_scores, _let_any_suffice, _look_up)
"""How variables answer their causes in the world of levels; the first one sees more of them than a table shows."""
