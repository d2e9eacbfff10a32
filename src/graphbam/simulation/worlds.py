"""Named worlds: kinds of tables that people have, each with its own way to come about.

A world is a function ``(rng, n_tables, n_variables, n_samples) -> World``, all tables at once, on the CPU. It draws
graphs and values of `n_variables` variables, and of drivers behind them if it has any: these come last and are never
shown. Whatever else may happen to a table (further variables hidden, cells missing, columns shuffled and standardised)
happens later and is no business of a world. A new one:

>>> @world("sums")
... def sums(rng, n_tables, n_variables, n_samples):
...     adj_bee = draw_graphs(rng, n_tables, n_variables, {"erdos-renyi": 1.0}, degrees=(1, 3))
...     x_bem = torch.randn(n_tables, n_variables, n_samples, generator=rng)
...     for child, w_be in in_causal_order(draw_weights(rng, adj_bee)):
...         x_bem[:, child] += (w_be[:, :, None] * x_bem).sum(1)
...     return World(x_bem.mT, adj_bee)
>>> WORLDS["sums"](torch.Generator(), 4, 6, 100).x_bme.shape
torch.Size([4, 100, 6])
>>> del WORLDS["sums"]

A world registered with ``settable=True`` takes one more argument, the cells that an experiment sets, and applies them
(`put`) to every variable before its children see it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from graphbam.simulation.cells import SetCells
from graphbam.simulation.graphs import depth_levels, limit_parents, sample_dags
from graphbam.simulation.labels import reach
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import autocorrelate, rand, randn


class World(NamedTuple):
    """Tables of all variables of a world, and their graph."""

    x_bme: Tensor
    """Values, shape (B, M, E); scale and location do not matter."""
    adj_bee: Tensor
    """Graphs, boolean; loops of three variables or more are allowed."""
    set_bme: Tensor | None = None
    """Cells that were set by an intervention, if the world has any."""
    n_drivers: int = 0
    """How many of the last variables are never shown."""


Simulate = Callable[..., World]

WORLDS: dict[str, Simulate] = {}
"""Worlds by name."""

SERIES: set[str] = set()
"""Worlds whose rows depend on the rows before them."""

LOOPS: set[str] = set()
"""Worlds with feedback: only drivers are hidden there, or a loop through a hidden variable could join two shown ones in
both directions."""


SETTABLE: set[str] = set()
"""Worlds in which an experiment may set cells; others have interventions of their own or none."""


def world(
    name: str, *, series: bool = False, loops: bool = False, settable: bool = False
) -> Callable[[Simulate], Simulate]:
    """Register a world under `name`; say whether its rows depend on one another, whether its graphs have loops, and
    whether it takes cells to be set."""

    def register(draw: Simulate) -> Simulate:
        WORLDS[name] = draw
        for group, belongs in ((SERIES, series), (LOOPS, loops), (SETTABLE, settable)):
            group.update([name] if belongs else [])
        return draw

    return register


# ── what worlds are made of ─────────────────────────────────────────────────────────────────────────────────


def draw_graphs(
    rng: torch.Generator, n_tables: int, n_variables: int, kinds: Mapping[str, float], degrees: tuple[float, float]
) -> Tensor:
    """DAGs in causal order, a kind and a mean degree per table.

    Examples
    --------
    >>> draw_graphs(torch.Generator(), 3, 8, {"regulators": 1.0}, degrees=(1, 2)).shape
    torch.Size([3, 8, 8])
    """
    low, high = degrees
    degree_b = (low + (high - low) * rand(rng, n_tables)).clamp(max=0.9 * (n_variables - 1))
    drawn = torch.multinomial(torch.tensor(list(kinds.values())), n_tables, True, generator=rng)
    return sample_dags(rng, [list(kinds)[k] for k in drawn.tolist()], degree_b, n_variables, max_parents=12)


def add_drivers(rng: torch.Generator, adj_bee: Tensor, n_drivers: int, reach_range: tuple[float, float]) -> Tensor:
    """The same graphs with drivers at the end, each of which acts on a share of all variables.

    Examples
    --------
    >>> adj_bee = add_drivers(torch.Generator(), torch.zeros(2, 5, 5, dtype=torch.bool), 1, (1.0, 1.0))
    >>> adj_bee[0].sum(1).tolist()
    [0, 0, 0, 0, 0, 5]
    """
    n_tables, n_variables, _ = adj_bee.shape
    low, high = reach_range
    reach_bk1 = low + (high - low) * rand(rng, n_tables, n_drivers, 1)
    whole_bee = torch.nn.functional.pad(adj_bee, (0, n_drivers, 0, n_drivers))
    whole_bee[:, n_variables:, :n_variables] = rand(rng, n_tables, n_drivers, n_variables) < reach_bk1
    return whole_bee


def draw_weights(rng: torch.Generator, adj_bee: Tensor, low: float = 0.3, positive: float = 0.0) -> Tensor:
    """A weight per arrow, ±U[low, 1] over the root of their squared sum, so that parents together have size 1.

    In a share of tables all are `positive`: more of one goes with more of the other, as with sizes, loads and grades.
    """
    size_bee = (low + (1 - low) * rand(rng, *adj_bee.shape)) * (2.0 * (rand(rng, *adj_bee.shape) < 0.6) - 1)
    if positive:
        size_bee = torch.where(rand(rng, len(adj_bee), 1, 1) < positive, size_bee.abs(), size_bee)
    w_bee = size_bee * adj_bee
    return w_bee / w_bee.square().sum(1, keepdim=True).sqrt().clamp(min=1e-6)


def in_causal_order(w_bee: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Every variable with the weights of its parents, (B, E); graphs as they are drawn, drivers excepted."""
    for child in range(w_bee.shape[2]):
        yield child, w_bee[:, :, child]


def follow_parents(w_be: Tensor, x_bem: Tensor) -> Tensor:
    """Σ w x over parents, (B, M)."""
    return torch.bmm(w_be[:, None], x_bem)[:, 0]


class Step(NamedTuple):
    """Variables of one depth in all tables, and the arrows into them; values are rows, table after table."""

    row_k: Tensor
    """Rows of the variables."""
    parent_n: Tensor
    """Row of the parent, one per arrow."""
    child_n: Tensor
    """Which of the variables the arrow points to."""
    weight_n: Tensor

    def add_up(self, y_nm: Tensor) -> Tensor:
        """Σ w y over the arrows into each variable, (K, M)."""
        return torch.zeros(len(self.row_k), y_nm.shape[1]).index_add_(0, self.child_n, self.weight_n[:, None] * y_nm)

    def even(self) -> Step:
        """The same with all weights 1."""
        return self._replace(weight_n=torch.ones_like(self.weight_n))

    def into(self, chosen_k: Tensor) -> Step:
        """Some of the variables, and the arrows into these.

        Examples
        --------
        >>> step = Step(torch.tensor([3, 7]), torch.tensor([0, 1, 4]), torch.tensor([0, 0, 1]), torch.ones(3))
        >>> step.into(torch.tensor([False, True]))[:3]
        (tensor([7]), tensor([4]), tensor([0]))
        """
        arrows, place_k = chosen_k[self.child_n], chosen_k.cumsum(0) - 1
        parent_n, child_n, weight_n = self.parent_n[arrows], self.child_n[arrows], self.weight_n[arrows]
        return Step(self.row_k[chosen_k], parent_n, place_k[child_n], weight_n)


def by_depth(w_bee: Tensor, n_drivers: int = 0) -> Iterator[Step]:
    """All variables but the drivers, those without parents among them first: fewer steps than one per variable.

    Examples
    --------
    >>> w_bee = torch.tensor([[[0.0, 0.5, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]])
    >>> [(step.row_k.tolist(), step.parent_n.tolist()) for step in by_depth(w_bee)]
    [([0], []), ([1], [0]), ([2], [1])]
    """
    n_tables, n_all, _ = w_bee.shape
    n_variables = n_all - n_drivers
    depth_be = depth_levels(w_bee[:, :n_variables, :n_variables] != 0)
    first_b1 = n_all * torch.arange(n_tables)[:, None]
    row_n, depth_n = (first_b1 + torch.arange(n_variables)).flatten(), depth_be.flatten()
    table_n, parent_n, child_n = (w_bee[:, :, :n_variables] != 0).nonzero(as_tuple=True)
    arrow_depth_n, place_n = depth_be[table_n, child_n], torch.empty(n_tables * n_all, dtype=torch.long)
    for depth in range(int(depth_be.max()) + 1):
        row_k, arrows = row_n[depth_n == depth], arrow_depth_n == depth
        place_n[row_k] = torch.arange(len(row_k))
        table, parent, child = table_n[arrows], parent_n[arrows], child_n[arrows]
        yield Step(row_k, n_all * table + parent, place_n[n_all * table + child], w_bee[table, parent, child])


def by_kind(kind_n: Tensor, cases: Sequence[tuple[float, Callable[..., Tensor]]], *parts: Tensor) -> Tensor:
    """Rows made by whichever case has the first limit above their kind, from the same rows of all parts.

    Examples
    --------
    >>> by_kind(torch.tensor([0.1, 0.7]), [(0.5, torch.sin), (1.0, torch.exp)], torch.zeros(2, 1)).tolist()
    [[0.0], [1.0]]
    """
    y_nm, start = torch.zeros_like(parts[0]), 0.0
    for stop, make in cases:
        rows = ((kind_n >= start) & (kind_n < stop)).nonzero()[:, 0]
        if len(rows):
            y_nm[rows] = make(*(part[rows] for part in parts))
        start = stop
    return y_nm


def draw_alike(rng: torch.Generator, n_traits: int, n_tables: int, n_variables: int) -> Tensor:
    """Numbers in [0, 1) that decide about columns, (traits, B, E); in half of the tables all columns have the same.

    Columns of one table are often one thing measured many times: stations, genes, items, machines of one make.

    Examples
    --------
    >>> traits_2be = draw_alike(torch.Generator().manual_seed(0), 2, 400, 5)
    >>> bool(0.4 < (traits_2be.std(2) < 1e-6).all(0).float().mean() < 0.6)
    True
    """
    alike_b1 = rand(rng, n_tables, 1) < 0.5
    return torch.where(alike_b1, rand(rng, n_traits, n_tables, 1), rand(rng, n_traits, n_tables, n_variables))


def put(cells: SetCells | None, where: tuple[Tensor | slice, Tensor | int], x_km: Tensor) -> Tensor:
    """Values of variables, `where` they are, after the experiment has set some; unchanged without an experiment."""
    return x_km if cells is None else cells.apply(where, x_km)


def mark(cells: SetCells | None, n_drivers: int = 0) -> Tensor | None:
    """Which cells of a world were set; drivers never are."""
    return None if cells is None else torch.nn.functional.pad(cells.set_bem.mT, (0, n_drivers))


# ── single cells ────────────────────────────────────────────────────────────────────────────────────────────


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


# ── counts ──────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── gene dynamics ───────────────────────────────────────────────────────────────────────────────────────────


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


# ── series ──────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── questionnaires ──────────────────────────────────────────────────────────────────────────────────────────


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


# ── marginals, functions and noise as found ─────────────────────────────────────────────────────────────────

MONOTONE = 0.75
"""Share of splines that only rise or only fall."""

MOST_PARENTS = 5
"""Of variables in worlds as found."""

BLENDED = 0.25
"""Share of effects as found in which noise is not added but is one more argument of the function."""

PLAIN = 1.0
"""Kind of the noise as found that is normal; all others are below."""


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


@world("recorded", settable=True)
def recorded(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Causes as found, and what somebody measured of their effects: growth by factors and rounding befall these alone.

    One cause in three comes in steps (ages, years, doses). Skewed quantities all have their long tail above, as those
    have that cannot fall below zero. An effect in three grows by factors, one in three is rounded. Noise is added, of
    all sorts, and in half of the effects more of it for some values of the causes than for others.
    """
    adj_bee = _graphs_as_found(rng, n_tables, n_variables)
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


@world("blended", settable=True)
def blended(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Effects that are smooth functions of their causes and of noise together: nothing is added.

    Two in five of these functions rise with the causes throughout, whatever the noise; the others bend as they like,
    seldom or often along either argument. Variables without causes, and noise, are smooth functions of normal or
    uniform numbers: as they are, by a rising curve, or by one that turns. In half of the tables all columns are
    measured with errors of up to .15 standard deviations.
    """
    adj_bee = _graphs_as_found(rng, n_tables, n_variables)
    base_n, kind_n = draw_alike(rng, 2, n_tables, n_variables).flatten(1)
    rises_n, coin_n = rand(rng, 2, n_tables * n_variables)
    reach_n2 = torch.tensor([0.25, 0.15]) * torch.tensor([10.0, 16.0]) ** rand(rng, n_tables * n_variables, 2)
    own_nm = _smooth_marginal(rng, base_n, kind_n, n_samples)
    x_nm = torch.zeros_like(own_nm)
    for step in by_depth(draw_weights(rng, adj_bee, positive=0.5)):
        y_km, row_k = own_nm[step.row_k], step.row_k
        if len(step.parent_n):
            sign_k1 = (2.0 * (coin_n[row_k] < 0.5) - 1)[:, None]
            causes_km = sign_k1 * unit(step.add_up(x_nm[step.parent_n]))
            functions: tuple[tuple[float, Callable[..., Tensor]], ...] = (
                (0.4, lambda x, e, reach: blend_rising(rng, x, e, reach)),
                (1.0, lambda x, e, reach: blend(rng, x, e, reach)),
            )
            y_km = by_kind(rises_n[row_k], functions, causes_km, y_km, reach_n2[row_k])
        x_nm[row_k] = put(cells, (row_k // n_variables, row_k % n_variables), y_km)
    x_bem = x_nm.view(n_tables, n_variables, n_samples)
    error_b11, has_error_b11 = rand(rng, 2, n_tables, 1, 1)
    x_bem = x_bem + 0.15 * error_b11 * (has_error_b11 < 0.5) * randn(rng, *x_bem.shape)
    return World(x_bem.mT, adj_bee, mark(cells))


def _smooth_marginal(rng: torch.Generator, base_n: Tensor, kind_n: Tensor, n_samples: int) -> Tensor:
    """Rows of unit variance: normal or uniform numbers as they are, along a rising curve, along waves, or both."""
    shape = (len(base_n), n_samples)
    base_nm = torch.where(base_n[:, None] < 0.7, randn(rng, *shape), unit(rand(rng, *shape)))

    def rise(z_nm: Tensor) -> Tensor:
        return draw_spline(rng, z_nm, monotone=1.0)

    def wave(z_nm: Tensor) -> Tensor:
        return blend(rng, z_nm, torch.zeros_like(z_nm), 0.3 * 8 ** rand(rng, len(z_nm), 2))

    families = ((0.2, lambda z_nm: z_nm), (0.6, rise), (0.85, wave), (1.0, lambda z_nm: wave(rise(z_nm))))
    return by_kind(kind_n, families, base_nm)


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
    adj_bee = _graphs_as_found(rng, n_tables, n_variables)
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


def _graphs_as_found(rng: torch.Generator, n_tables: int, n_variables: int) -> Tensor:
    """Few parents; eleven pairs in twelve are linked."""
    kinds = {"erdos-renyi": 0.6, "scale-free": 0.2, "small-world": 0.1, "stochastic-block": 0.1}
    degrees = (0.9, 0.95) if n_variables == 2 else (1.0, 3.5)
    return limit_parents(rng, draw_graphs(rng, n_tables, n_variables, kinds, degrees), MOST_PARENTS)


def found_marginal(
    rng: torch.Generator, kind_n: Tensor, size_n: Tensor, n_samples: int, turned: float = 0.25
) -> Tensor:
    """Rows of unit variance: mixtures of up to ten humps, uniform, bounded, skewed, counts, heavy tails, normal.

    Where a row's `kind` lies decides which: in [0, 1), or `PLAIN` for normal ones. Its `size`, in [0, 1), decides how
    skewed, heavy or humped. A share of rows, `turned`, is turned over.

    Examples
    --------
    >>> kind_n = torch.tensor([0.1, 0.5, 0.9])
    >>> found_marginal(torch.Generator().manual_seed(0), kind_n, torch.rand(3), 50).shape
    torch.Size([3, 50])
    """
    n_rows, size_n1 = len(kind_n), size_n[:, None]
    coin_n1 = rand(rng, n_rows, 1)
    e_nm, u_nm = randn(rng, n_rows, n_samples), rand(rng, n_rows, n_samples).clamp(1e-6, 1 - 1e-6)

    def humps(e: Tensor, u: Tensor, size: Tensor) -> Tensor:
        return _mix_humps(rng, e, u, size)

    families: tuple[tuple[float, Callable[..., Tensor]], ...] = (
        (0.26, humps),
        (0.34, lambda e, u, size: u),
        (0.46, lambda e, u, size: u ** (0.25 * 16**size)),  # bounded, thicker at one end or the other
        (0.54, lambda e, u, size: (1 - torch.cos(math.pi * u)) ** (0.5 + size)),  # bounded, thicker at both
        (0.66, lambda e, u, size: torch.exp((0.3 + size) * e)),
        (0.78, lambda e, u, size: (-u.log()) ** (0.5 + size)),
        (0.88, lambda e, u, size: torch.poisson((0.5 + 30 * size.square()).expand_as(u), generator=rng)),
        (0.99, lambda e, u, size: e / (1e-3 + 1 - u) ** (0.15 + 0.2 * size)),
        (PLAIN, humps),
        (PLAIN + 1, lambda e, u, size: e),
    )
    x_nm = by_kind(kind_n, families, e_nm, u_nm, size_n1)
    return unit(torch.where(coin_n1 < turned, -x_nm, x_nm))


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


def _mix_humps(rng: torch.Generator, e_nm: Tensor, u_nm: Tensor, size_n1: Tensor) -> Tensor:
    """One to ten normal humps of all widths, the more the larger `size`; `u` decides to which a value belongs."""
    n_humps_n1 = (1 + 10 * size_n1.square()).floor()
    place_n10 = randn(rng, len(e_nm), 10)
    width_n10, weight_n10 = rand(rng, 2, len(e_nm), 10)
    weight_n10 = (0.05 + weight_n10) * (torch.arange(10) < n_humps_n1)
    bounds_n10 = weight_n10.cumsum(1) / weight_n10.sum(1, keepdim=True)
    hump_nm = torch.searchsorted(bounds_n10[:, :9].contiguous(), u_nm)
    return (1.5 * place_n10).gather(1, hump_nm) + (0.05 + 0.8 * width_n10).gather(1, hump_nm) * e_nm


def found_response(rng: torch.Generator, x_nm: Tensor) -> Tensor:
    """A function of each row: a spline in half of the cases, else a line, a power, an exponential or a step."""
    kind_n, size_n, coin_n = rand(rng, 3, len(x_nm))
    sign_n1 = (2.0 * (coin_n < 0.5) - 1)[:, None]
    shapes: tuple[tuple[float, Callable[..., Tensor]], ...] = (
        (0.50, lambda z, size: random_spline(rng, z)),
        (0.65, lambda z, size: z),
        (0.78, lambda z, size: z.sign() * z.abs() ** (0.4 + 2 * size)),
        (0.89, lambda z, size: torch.exp((0.4 + size) * z.clamp(-4, 4))),
        (1.00, lambda z, size: torch.tanh((0.5 + 2 * size) * (z - size))),
    )
    return unit(sign_n1 * by_kind(kind_n, shapes, sign_n1 * x_nm, size_n[:, None]))


def random_spline(rng: torch.Generator, x_nm: Tensor, n_knots: int = 6) -> Tensor:
    """A sum of soft steps at random values of each row; all up or all down in `MONOTONE` of them.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> y = random_spline(rng, torch.linspace(-2, 2, 50).expand(200, 50)).diff(dim=1)
    >>> 0.6 < ((y >= 0).all(1) | (y <= 0).all(1)).float().mean().item() < 0.9
    True
    """
    n_rows = len(x_nm)
    place_nk = (rand(rng, n_rows, n_knots) * x_nm.shape[1]).long()
    knot_nk = x_nm.gather(1, place_nk)  # more knots where there are more values
    slope_nk, height_nk = 1 / (0.1 + rand(rng, n_rows, n_knots)), randn(rng, n_rows, n_knots)
    height_nk = torch.where(rand(rng, n_rows, 1) < MONOTONE, height_nk.abs() * height_nk[:, :1].sign(), height_nk)
    y_nm = torch.zeros_like(x_nm)
    for k in range(n_knots):
        y_nm.addcmul_(height_nk[:, k, None], ((x_nm - knot_nk[:, k, None]) * slope_nk[:, k, None]).tanh_())
    return unit(y_nm)


def draw_spline(rng: torch.Generator, x_nm: Tensor, monotone: float = 0.6) -> Tensor:
    """A curve through random heights at three to seven quantiles of each row, unlike `random_spline` with bends.

    Piecewise cubic, with the slopes at the knots that keep a rising part rising. In a share of rows, `monotone`,
    heights only rise or only fall. Knots that coincide, since many values are the same, are set apart.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> y = draw_spline(rng, torch.linspace(-2, 2, 50).expand(200, 50)).diff(dim=1)
    >>> 0.6 < ((y >= -1e-6).all(1) | (y <= 1e-6).all(1)).float().mean().item() < 0.75
    True
    """
    n_rows, n_samples = x_nm.shape
    n_knots_n1 = torch.randint(3, 8, (n_rows, 1), generator=rng)
    place_n7 = (torch.arange(7) / (n_knots_n1 - 1)).clamp(max=1.0) * (n_samples - 1)
    sorted_nm, before_n7 = x_nm.sort(1).values, place_n7.long()
    after_n7 = (before_n7 + 1).clamp(max=n_samples - 1)
    knot_n7 = torch.lerp(sorted_nm.gather(1, before_n7), sorted_nm.gather(1, after_n7), place_n7 - before_n7)
    gap_n6 = knot_n7.diff(dim=1).maximum(0.02 * (sorted_nm[:, -1:] - sorted_nm[:, :1]).clamp_min(1e-6))
    knot_n7 = torch.cat([knot_n7[:, :1], knot_n7[:, :1] + gap_n6.cumsum(1)], 1)
    free_n7, rise_n7 = randn(rng, n_rows, 7), 0.02 + rand(rng, n_rows, 7)
    sign_n1, monotone_n1 = rand(rng, 2, n_rows, 1)
    rising_n7 = torch.where(sign_n1 < 0.5, 1.0, -1.0) * rise_n7.cumsum(1)
    return unit(interpolate(knot_n7, torch.where(monotone_n1 < monotone, rising_n7, free_n7), x_nm))


def interpolate(knot_nk: Tensor, height_nk: Tensor, x_nm: Tensor) -> Tensor:
    """Piecewise cubic curves through points, row by row, that turn at points alone (Fritsch and Butland's slopes).

    Examples
    --------
    >>> x = torch.tensor([[0.0, 0.5, 1.0, 2.0]])
    >>> interpolate(torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[0.0, 1.0, 0.0]]), x)
    tensor([[0.0000, 0.6250, 1.0000, 0.0000]])
    """
    gap_nk, steep_nk = knot_nk.diff(dim=1), height_nk.diff(dim=1) / knot_nk.diff(dim=1)
    left, right = steep_nk[:, :-1], steep_nk[:, 1:]
    inner_nk = torch.where(left * right > 0, 2 * left * right / (left + right), 0.0)
    slope_nk = torch.cat([steep_nk[:, :1], inner_nk, steep_nk[:, -1:]], 1)
    at_nm = (torch.searchsorted(knot_nk, x_nm.contiguous()) - 1).clamp(0, knot_nk.shape[1] - 2)
    gap, from_, to = gap_nk.gather(1, at_nm), height_nk.gather(1, at_nm), height_nk.gather(1, at_nm + 1)
    first, last = slope_nk.gather(1, at_nm), slope_nk.gather(1, at_nm + 1)
    t = ((x_nm - knot_nk.gather(1, at_nm)) / gap).clamp(0, 1)
    return from_ + t * t * (3 - 2 * t) * (to - from_) + gap * (t * (1 - t) ** 2 * first - t * t * (1 - t) * last)


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


def blend(
    rng: torch.Generator, x_nm: Tensor, e_nm: Tensor, reach_n2: Tensor | None = None, n_waves: int = 24
) -> Tensor:
    """A smooth random function of two numbers, x and e, drawn anew for each row: a sum of waves.

    `reach` says how fast it changes with either; by default both reach as far as the function does in about one to
    three bends. Where e is small it nearly follows x alone.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> x, e = torch.randn(2, 5, 400, generator=rng)
    >>> blend(rng, x, e).std(1).allclose(torch.ones(5), atol=0.01)
    True
    """
    n_rows = len(x_nm)
    reach_n2 = 0.3 * 4 ** rand(rng, n_rows, 2) if reach_n2 is None else reach_n2
    waves_nk2 = randn(rng, n_rows, n_waves, 2) * reach_n2[:, None]
    phase_nk, height_nk = 2 * math.pi * rand(rng, n_rows, n_waves), randn(rng, n_rows, n_waves)
    y_nm = torch.zeros_like(x_nm)
    for k in range(n_waves):
        wave_nm = torch.addcmul(phase_nk[:, k, None], waves_nk2[:, k, :1], x_nm)
        y_nm.addcmul_(height_nk[:, k, None], wave_nm.addcmul_(waves_nk2[:, k, 1:], e_nm).cos_())
    return unit(y_nm)


def blend_rising(rng: torch.Generator, x_nm: Tensor, e_nm: Tensor, reach_n2: Tensor, n_steps: int = 8) -> Tensor:
    """A smooth random function of two numbers that rises with x whatever e is: soft steps across lines in the plane.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> x, e = torch.linspace(-2, 2, 50).expand(9, 50), torch.randn(9, 1, generator=rng).expand(9, 50)
    >>> bool((blend_rising(rng, x, e, torch.ones(9, 2)).diff(dim=1) >= 0).all())
    True
    """
    n_rows = len(x_nm)
    slope_nk2 = 2 * randn(rng, n_rows, n_steps, 2) * reach_n2[:, None]
    slope_nk2[..., 0] = slope_nk2[..., 0].abs()
    place_nk = randn(rng, n_rows, n_steps) * slope_nk2.norm(dim=2)  # steps lie where values are
    height_nk = 0.1 + rand(rng, n_rows, n_steps)
    y_nm = torch.zeros_like(x_nm)
    for k in range(n_steps):
        step_nm = torch.addcmul(place_nk[:, k, None], slope_nk2[:, k, :1], x_nm)
        y_nm.addcmul_(height_nk[:, k, None], step_nm.addcmul_(slope_nk2[:, k, 1:], e_nm).tanh_())
    return unit(y_nm)


def found_looks(rng: torch.Generator, kind_b1: Tensor, size_b1: Tensor, y_bm: Tensor) -> Tensor:
    """What befalls any column: growth by factors, rounding to 5 to 200 levels, a ceiling or floor.

    Where in [0, 1) its `kind` lies decides about the first two, its `size` how much.
    """
    levels_b1, capped_b1 = rand(rng, 2, len(y_bm), 1)
    y_bm = torch.where(kind_b1 < 0.3, unit(torch.exp((0.3 + 0.9 * size_b1) * y_bm.clamp(-4, 4))), y_bm)
    top_b1 = 0.8 + 1.5 * size_b1
    y_bm = torch.where(capped_b1 < 0.06, y_bm.clamp(max=top_b1), y_bm)
    y_bm = torch.where(capped_b1 > 0.94, y_bm.clamp(min=-top_b1), y_bm)
    step_b1 = (y_bm.amax(1, keepdim=True) - y_bm.amin(1, keepdim=True)) / (5 * 40**levels_b1)
    step_b1 = step_b1.clamp(min=1e-6)
    return torch.where((kind_b1 > 0.2) & (kind_b1 < 0.6), (y_bm / step_b1).round() * step_b1, y_bm)


# ── few levels ──────────────────────────────────────────────────────────────────────────────────────────────

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


# ── dense, nearly collinear measurements ────────────────────────────────────────────────────────────────────


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


# ── flows ───────────────────────────────────────────────────────────────────────────────────────────────────


@world("flows", series=True)
def flows(rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int) -> World:
    """Amounts that are passed on: water in rivers, vehicles on roads, goods, messages, money.

    A station passes on what it receives, less a loss, and adds something of its own. Ways join in half of the tables (a
    station has one child), part in a quarter (one parent), and do both in the rest. What stations add has heavy tails;
    in half of the tables two hidden drivers (weather, demand) raise it at many of them at once. Rows are events of
    their own, or follow one another, and then what is passed on may arrive a row later.
    """
    n_all = n_variables + 2
    kind_b11, driven_b11, tail_b11, slow_b11, own_b11 = rand(rng, 5, n_tables, 1, 1)
    joins_bee, parts_bee = _draw_ways(rng, n_tables, n_variables), _draw_ways(rng, n_tables, n_variables)
    parts_bee = parts_bee.mT.flip(1, 2)  # the same ways, seen from the other end
    kept_bee = rand(rng, *joins_bee.shape) < 0.5
    mixed_bee = (joins_bee & kept_bee) | (parts_bee & ~kept_bee)
    adj_bee = torch.where(kind_b11 < 0.5, joins_bee, torch.where(kind_b11 < 0.75, parts_bee, mixed_bee))
    adj_bee = add_drivers(rng, adj_bee, 2, (0.0, 0.8))
    adj_bee[:, n_variables:] &= driven_b11 < 0.5
    z_bem = randn(rng, n_tables, n_all, n_samples)
    phi_be = (0.9 * slow_b11[..., 0] * (slow_b11[..., 0] > 0.5)).expand(-1, n_all)
    z_bem = autocorrelate(z_bem.flatten(0, 1), phi_be.flatten()).view_as(z_bem)
    z_bem[:, :n_variables] += torch.bmm(
        2 * rand(rng, n_tables, n_all, n_all).mul_(adj_bee).mT[:, :-2, -2:], z_bem[:, -2:]
    )
    size_be1 = (0.05 * 20**own_b11) * torch.exp(0.7 * randn(rng, n_tables, n_all, 1))
    amount_bem = size_be1 * torch.exp((0.3 + 1.2 * tail_b11) * unit(z_bem))
    amount_bem *= torch.where(adj_bee[:, :n_variables].any(1)[..., None], 1.0, 1 / (0.05 * 20**own_b11))
    w_bee = (1 - 0.6 * rand(rng, *adj_bee.shape).square()) * adj_bee
    is_late_b1 = (slow_b11[..., 0] > 0.5) & (rand(rng, n_tables, 1) < 0.5)
    for child, w_be in in_causal_order(w_bee[:, :-2, :-2]):
        came_bm = follow_parents(w_be, amount_bem[:, :-2])
        late_bm = torch.cat([came_bm[:, :1], came_bm[:, :-1]], 1)
        amount_bem[:, child] += torch.where(is_late_b1, late_bm, came_bm)
    return World(_gauge(rng, amount_bem).mT, adj_bee, n_drivers=2)


def _draw_ways(rng: torch.Generator, n_tables: int, n_variables: int) -> Tensor:
    """Forests in which every variable has one child at most, a near one; in all tables most have one.

    Examples
    --------
    >>> ways_bee = _draw_ways(torch.Generator().manual_seed(0), 30, 8)
    >>> int(ways_bee.sum(2).max()), bool(ways_bee.sum((1, 2)).float().mean() > 5)
    (1, True)
    """
    reach_b1 = 1 + (n_variables - 1) * rand(rng, n_tables, 1).square()
    further_be = 1 + (rand(rng, n_tables, n_variables) * reach_b1).floor()
    child_be = torch.arange(n_variables) + further_be.long()
    goes_be = (child_be < n_variables) & (rand(rng, n_tables, n_variables) < 0.95)
    child_be = torch.where(goes_be, child_be, 0)
    ways_bee = torch.zeros(n_tables, n_variables, n_variables, dtype=torch.bool)
    return ways_bee.scatter_(2, child_be[..., None], goes_be[..., None])


def _gauge(rng: torch.Generator, amount_bem: Tensor) -> Tensor:
    """What gauges show: amounts, their logarithms or whole numbers, with a few per cent of error of their own."""
    kind_b11, fuzz_b11, scale_b11 = rand(rng, 3, len(amount_bem), 1, 1)
    shown_bem = amount_bem * torch.exp(0.15 * fuzz_b11.square() * randn(rng, *amount_bem.shape))
    count_bem = (shown_bem * 3 * 100**scale_b11).round()
    return torch.where(kind_b11 < 0.45, shown_bem, torch.where(kind_b11 < 0.8, shown_bem.log(), count_bem))
