"""Which cells of a table were set by an intervention, which are missing, and which variables are shown at all."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from graphbam.simulation.noise import rand, randn
from graphbam.tables.standard import sort_rows

MOST_ENVIRONMENTS = 12
"""Most sets of targets in one table."""

MOST_MISSING = 0.4
"""Largest share of missing cells in a column that has any, about."""

FEWEST_OBSERVED = 0.3
"""A column that would keep less than this share of its cells keeps all of them."""


# ── hidden variables ────────────────────────────────────────────────────────────────────────────────────────


def choose_shown(
    rng: torch.Generator, adj_bee: Tensor, n_shown: int, never_be: Tensor, always_be: Tensor | None = None
) -> Tensor:
    """Which variables each table shows, in random order.

    In seven tables of ten, variables with two children or more are hidden before all others; in the rest, anyone.

    Parameters
    ----------
    rng : torch.Generator
        On the CPU.
    adj_bee : Tensor, shape (B, E, E)
        Graphs of all variables.
    n_shown : int
        Columns D of the tables.
    never_be : Tensor, shape (B, E)
        True for variables that must not be shown.
    always_be : Tensor, shape (B, E), optional
        True for variables that must be, `n_shown` of a table at most.

    Returns
    -------
    Tensor of int64, shape (B, D)

    Examples
    --------
    >>> fork = torch.tensor([[0, 1, 1], [0, 0, 0], [0, 0, 0]]).bool().expand(9, 3, 3)
    >>> nobody = torch.zeros(9, 3, dtype=torch.bool)
    >>> shown_bd = choose_shown(torch.Generator().manual_seed(0), fork, 2, nobody)
    >>> bool((shown_bd > 0).all(1).sum() > 4)
    True
    """
    n_tables, n_variables, _ = adj_bee.shape
    luck_be, order_be = torch.rand(2, n_tables, n_variables, generator=rng)
    by_children_b1 = torch.rand(n_tables, 1, generator=rng) < 0.7
    luck_be = luck_be - 1.0 * (by_children_b1 & (adj_bee.sum(2) > 1)) - 9.0 * never_be
    luck_be = luck_be if always_be is None else luck_be + 9.0 * always_be
    shown_bd = luck_be.topk(n_shown, dim=1).indices
    return shown_bd.gather(1, order_be[:, :n_shown].argsort(1))


def draw_extra(rng: torch.Generator, n_shown: int) -> int:
    """How many variables are hidden behind `n_shown`: mostly one to a quarter, else up to nine tenths of all of them,
    as long as that is not too many to simulate. The second is the more frequent the fewer are shown: half of the draws
    for pairs, one in six from six variables on.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> extra = [draw_extra(rng, 2) for _ in range(200)]
    >>> min(extra), max(extra)
    (1, 18)
    """
    few, many = max(1, round(0.25 * n_shown)), min(9 * n_shown, max(30, n_shown))
    rest = 1 / min(max(n_shown, 2), 6)
    most = many if float(torch.rand((), generator=rng)) < rest else few
    return 1 + int(float(torch.rand((), generator=rng)) ** 1.5 * most)


def add_factor(rng: torch.Generator, adj_bee: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """In a share of graphs, let the first variable act on a third to all of the others, and say in which.

    Examples
    --------
    >>> adj_bee, has_factor_b = add_factor(torch.Generator(), torch.zeros(4, 9, 9, dtype=torch.bool), share=1.0)
    >>> bool((adj_bee[:, 0].sum(1) > 1).all())
    True
    """
    n_tables, n_variables, _ = adj_bee.shape
    has_factor_b = torch.rand(n_tables, generator=rng) < share
    reach_b1 = 0.33 + 0.67 * torch.rand(n_tables, 1, generator=rng)
    struck_be = torch.rand(n_tables, n_variables, generator=rng) < reach_b1
    struck_be[:, 0], struck_be[:, -2:] = False, True
    adj_bee = adj_bee.clone()
    adj_bee[:, 0] |= struck_be & has_factor_b[:, None]
    return adj_bee, has_factor_b


# ── interventions ───────────────────────────────────────────────────────────────────────────────────────────


class Interventions(NamedTuple):
    """What is done to which cells of which rows of the buffer (rows are variables): x ← keep·x + level + spread·ε."""

    set_nm: Tensor
    keep_n: Tensor
    level_nm: Tensor
    spread_n: Tensor

    def apply(self, rng: torch.Generator, part: slice, x_nm: Tensor) -> Tensor:
        """Values of some rows after they were set."""
        noise_nm = randn(rng, *x_nm.shape)
        new_nm = self.keep_n[part, None] * x_nm + self.level_nm[part] + self.spread_n[part, None] * noise_nm
        return torch.where(self.set_nm[part], new_nm, x_nm)


class Done(NamedTuple):
    """Interventions of a batch as they were drawn, variables in any order."""

    set_bem: Tensor
    keep_be: Tensor
    level_bem: Tensor
    spread_be: Tensor


class SetCells(NamedTuple):
    """Cells of named worlds that an experiment sets, x ← keep·x + value: drawn before anything else is."""

    set_bem: Tensor
    keep_be: Tensor
    value_bem: Tensor

    def apply(self, where: tuple[Tensor | slice, Tensor | int], x_km: Tensor) -> Tensor:
        """Values of variables, `where` they are (tables, variables), after they were set."""
        new_km = self.keep_be[where][..., None] * x_km + self.value_bem[where]
        return torch.where(self.set_bem[where], new_km, x_km)

    def later(self, n_samples: int) -> SetCells:
        """The same after so many samples in which nobody sets anything."""
        set_bem, value_bem = (torch.nn.functional.pad(part, (n_samples, 0)) for part in (self.set_bem, self.value_bem))
        return SetCells(set_bem, self.keep_be, value_bem)


KINDS = ("fixed", "far out", "random", "shifted", "scaled", "reversed")
"""What an intervention does: the first three ignore the parents."""


def draw_interventions(rng: torch.Generator, share: float, n_tables: int, n_variables: int, n_samples: int) -> Done:
    """Draw who is set in which samples, for a share of tables.

    A table has up to twelve environments, each with one to three targets of its own, out of all variables or of a few;
    environments have between 5 % and all of the samples. One kind of intervention per table.

    Examples
    --------
    >>> done = draw_interventions(torch.Generator().manual_seed(0), 1.0, 50, 8, 100)
    >>> bool(done.set_bem.any(2).any(1).all())
    True
    """
    few_b1, pool_b1, rows_b1, number_b1 = torch.rand(4, n_tables, 1, generator=rng)
    pool_b1 = torch.where(few_b1 < 0.5, 1.0, (pool_b1 * n_variables / 3).ceil() / n_variables)
    in_pool_be = torch.rand(n_tables, n_variables, generator=rng).argsort(1) < (pool_b1 * n_variables).clamp(min=1)
    n_sets_b1 = (1 + number_b1 * min(n_variables, MOST_ENVIRONMENTS)).floor()
    luck_bke = torch.rand(n_tables, MOST_ENVIRONMENTS, n_variables, generator=rng) + 1.0 * in_pool_be[:, None]
    n_targets_bk1 = (1 + 2 * torch.rand(n_tables, MOST_ENVIRONMENTS, 1, generator=rng) ** 2).round()
    place_bke = luck_bke.argsort(2, descending=True).argsort(2)
    target_bke = (place_bke < n_targets_bk1) & in_pool_be[:, None]
    chosen_bm = torch.rand(n_tables, n_samples, generator=rng) < 0.05 + 0.95 * rows_b1**2
    chosen_bm[:, 0] = True
    chosen_bm &= torch.rand(n_tables, 1, generator=rng) < share
    which_bm = (torch.rand(n_tables, n_samples, generator=rng) * n_sets_b1).long()
    set_bme = target_bke.gather(1, which_bm[:, :, None].expand(-1, -1, n_variables)) & chosen_bm[:, :, None]
    keep_be, level_bke, spread_be = _draw_kinds(rng, n_tables, n_variables)
    level_bme = level_bke.gather(1, which_bm[:, :, None].expand(-1, -1, n_variables))
    return Done(set_bme.mT, keep_be, level_bme.mT, spread_be)


def draw_set_cells(rng: torch.Generator, done: Done, n_variables: int, longest: int = 1) -> SetCells:
    """The cells of some variables, chosen at random out of `n_variables`, that the interventions are done to.

    In series they go on for a while: stretches of up to `longest` samples, as many in each table.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> cells = draw_set_cells(rng, draw_interventions(rng, 1.0, 50, 4, 100), n_variables=9)
    >>> cells.set_bem.shape, int(cells.set_bem.any(2).sum(1).max())
    (torch.Size([50, 9, 100]), 4)
    """
    n_tables, n_targets, n_samples = done.set_bem.shape
    lasts_b1 = 1 + (longest * torch.rand(n_tables, 1, generator=rng)).floor().clamp(max=longest - 1)
    begin_bm = ((torch.arange(n_samples) / lasts_b1).floor() * lasts_b1).long()
    begin_bem = begin_bm[:, None].expand(-1, n_targets, -1)
    value_bem = done.level_bem + done.spread_be[..., None] * torch.randn(done.level_bem.shape, generator=rng)
    place_be = torch.rand(n_tables, n_variables, generator=rng).argsort(1)[:, :n_targets]
    place_bem = place_be[..., None].expand(-1, -1, n_samples)
    nothing_bem = torch.zeros(n_tables, n_variables, n_samples)
    return SetCells(
        set_bem=nothing_bem.bool().scatter(1, place_bem, done.set_bem.gather(2, begin_bem)),
        keep_be=nothing_bem[..., 0].scatter(1, place_be, done.keep_be),
        value_bem=nothing_bem.scatter(1, place_bem, value_bem.gather(2, begin_bem)),
    )


def _draw_kinds(rng: torch.Generator, n_tables: int, n_variables: int) -> tuple[Tensor, Tensor, Tensor]:
    kind_b = torch.randint(len(KINDS), (n_tables,), generator=rng)
    is_kind = [(kind_b == k)[:, None] for k in range(len(KINDS))]
    fixed, far, random, shifted, scaled, turned = is_kind
    size_be, coin_be, fuzz_be = torch.rand(3, n_tables, n_variables, generator=rng)
    size_bke, sign_bke = torch.rand(2, n_tables, MOST_ENVIRONMENTS, n_variables, generator=rng)
    sign_bke = torch.where(sign_bke < 0.5, -1.0, 1.0)
    keep_be = 1.0 * shifted - (0.3 + 0.7 * size_be) * turned
    keep_be = keep_be + scaled * torch.where(coin_be < 0.5, 0.1 + 0.4 * size_be, 1.5 + 1.5 * size_be)
    # knock-outs: one low value per variable, the same in all environments, in half of the tables with fixed values
    fixed_bke = torch.where((size_be[:, :1] < 0.5)[:, None], -1.0 - 1.5 * coin_be[:, None], 2 * size_bke * sign_bke)
    level_bke = fixed_bke * fixed[:, None] + sign_bke * ((3 + 2 * size_bke) * far[:, None])
    level_bke = level_bke + sign_bke * ((1 + 2 * size_bke) * shifted[:, None])
    spread_be = (0.2 * fuzz_be * (coin_be < 0.5)) * (fixed | far) + (0.5 + fuzz_be) * random + 0.5 * fuzz_be * turned
    return keep_be, level_bke, spread_be


# ── missing cells ───────────────────────────────────────────────────────────────────────────────────────────


def draw_observed(rng: torch.Generator, x_bdm: Tensor) -> Tensor:
    """Which cells are observed: up to 40 % of the cells of some columns are not.

    One reason per table: chance, the value of another column (which is then complete), the value itself (below or
    above a limit of detection), or whole blocks of neighbouring samples.

    Parameters
    ----------
    rng : torch.Generator
        On the device of `x_bdm`; no step waits for it.
    x_bdm : Tensor, shape (B, D, M)
        Values before they are standardised.

    Returns
    -------
    Tensor of bool, shape (B, D, M)

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> observed_bdm = draw_observed(rng, torch.randn(200, 5, 100, generator=rng))
    >>> bool(0.8 < observed_bdm.float().mean() < 0.95), bool(observed_bdm.float().mean(2).min() >= 0.3)
    (True, True)
    """
    n_tables, n_variables, n_samples = x_bdm.shape
    kind_b11, table_b11, reach_b11, coin_b11 = rand(rng, 4, n_tables, 1, 1)
    kind_b11 = (4 * kind_b11).floor()
    rate_bd1 = MOST_MISSING * table_b11 * (0.3 + 0.7 * rand(rng, n_tables, n_variables, 1))
    chance_bdm = rand(rng, n_tables, n_variables, n_samples)
    missing_bdm = chance_bdm < rate_bd1
    missing_bdm = torch.where(kind_b11 == 1, _missing_by_another(rng, x_bdm, rate_bd1, chance_bdm), missing_bdm)
    missing_bdm = torch.where(kind_b11 == 2, _missing_by_value(x_bdm, rate_bd1, coin_b11), missing_bdm)
    missing_bdm = torch.where(kind_b11 == 3, _missing_blocks(rng, x_bdm, rate_bd1, coin_b11), missing_bdm)
    missing_bdm = missing_bdm & (rand(rng, n_tables, n_variables, 1) < 0.2 + 1.2 * reach_b11)
    too_few_bd1 = (~missing_bdm).sum(2, keepdim=True) < max(2, FEWEST_OBSERVED * n_samples)
    return ~missing_bdm | too_few_bd1


def _missing_by_another(rng: torch.Generator, x_bdm: Tensor, rate_bd1: Tensor, chance_bdm: Tensor) -> Tensor:
    """Where another column is high, or low: the ranks of one column decide for all others."""
    n_tables, n_variables, n_samples = x_bdm.shape
    driver_b11 = (rand(rng, n_tables, 1, 1) * n_variables).long()
    driver_b1m = x_bdm.gather(1, driver_b11.expand(-1, 1, n_samples))
    rank_b1m = driver_b1m.argsort(2).argsort(2) / n_samples
    is_driver_bd1 = torch.arange(n_variables, device=x_bdm.device)[:, None] == driver_b11
    return (chance_bdm < 3 * rate_bd1 * rank_b1m.square()) & ~is_driver_bd1


def _missing_by_value(x_bdm: Tensor, rate_bd1: Tensor, coin_b11: Tensor) -> Tensor:
    """Below a limit of detection, or above one; ties at the limit are observed."""
    sign_b11 = torch.where(coin_b11 < 0.7, 1.0, -1.0)
    place_bd1 = (rate_bd1 * (x_bdm.shape[2] - 1)).long()
    return sign_b11 * x_bdm < sort_rows(sign_b11 * x_bdm).gather(2, place_bd1)


def _missing_blocks(rng: torch.Generator, x_bdm: Tensor, rate_bd1: Tensor, coin_b11: Tensor) -> Tensor:
    """One run of neighbouring samples in each column, or in half of the tables the same for all columns."""
    n_tables, n_variables, n_samples = x_bdm.shape
    start_bd1 = rand(rng, n_tables, n_variables, 1)
    start_bd1 = torch.where(coin_b11 < 0.5, start_bd1[:, :1], start_bd1) * (1 - rate_bd1)
    place_m = torch.arange(n_samples, device=x_bdm.device) / n_samples
    return (place_m >= start_bd1) & (place_m < start_bd1 + rate_bd1)
