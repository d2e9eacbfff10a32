"""What is drawn for a world before any number is: its graph, and who has which mechanism, noise and effect.

A plan holds every discrete choice of a batch of tables as index tensors. Nodes of all tables are lined up by depth,
then by mechanism, then by number of parents. One buffer of values follows that order, so a group of nodes with the
same mechanism is one contiguous slice that reads its parents from rows further up. The number of steps is the depth of
the graphs times the number of mechanisms, whatever the number of variables. `graphbam.simulation.values` turns a plan
into numbers.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from graphbam.errors import ConfigError, Setting
from graphbam.simulation.cells import Interventions, add_factor, choose_shown, draw_interventions
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.graphs import depth_levels, draw_degrees, sample_dags
from graphbam.simulation.labels import Labels, label_graphs, send

_SPLIT_CELLS = {"cpu": 2**14, "cuda": 2**21}
"""A group of nodes is only divided by number of parents if the parts keep this many values: below, the
overhead of one more step costs more than empty slots do."""

_MOST_CELLS = {"cpu": 2**17, "cuda": 2**23}
"""Values of all parents that one step handles at most; bounds the memory of mechanisms with many features."""

EFFECTS = ("discrete", "skewed", "rounded", "measurement_noise", "autocorrelated")
"""What may happen to single columns, in the order it is drawn in; the config has a share of tables for each."""

LATER_EFFECTS = ("sluggish", "confounded")
"""Effects that came later and have a generator of their own: tables without them stay what they were."""

FACTORS = 0.1
"""Of tables with hidden variables, the share in which one of these acts on a third or more of all others."""


@dataclass(frozen=True)
class Group:
    """Neighbouring rows of the buffer that share depth and mechanism."""

    mechanism: str
    start: int
    stop: int
    n_slots: int
    """Most parents of a node in this group."""


@dataclass(frozen=True)
class Level:
    """All rows of one depth, with their groups (none at depth 0: roots are noise only)."""

    start: int
    stop: int
    groups: tuple[Group, ...]
    discrete: slice
    """Part of `Plan.effects["discrete"]` that lies in this level."""
    sluggish: slice
    """The same of `Plan.effects["sluggish"]`."""
    interventions: slice
    """The same of `Plan.effects["interventions"]`."""


@dataclass(frozen=True)
class Plan:
    """Every discrete choice of a batch. Rows are nodes (table, variable) in the order of simulation."""

    config: SimulationConfig
    n_samples: int
    seed: int
    """Of the generator for values, on whatever device."""
    labels: Labels
    """What is true of the shown columns, after these have been shuffled."""
    row_bd: Tensor
    """Row of the buffer that holds each column of the tables."""
    parents_np: Tensor
    """Rows of each row's parents; empty slots point to row 0."""
    n_parents_n: Tensor
    share_n: Tensor
    """ρ of each row."""
    growth_n: Tensor
    """Factor on the parents of each row where variance grows, 0 elsewhere."""
    levels: tuple[Level, ...]
    noises: Mapping[str, Tensor]
    """Rows of each noise family."""
    effects: Mapping[str, Tensor]
    """Rows with each of the `EFFECTS` and `LATER_EFFECTS`, and those with interventions."""
    interventions: Interventions | None
    """What is done to the last ones, in their order; None where nothing is."""
    set_bmd: Tensor | None
    """Which cells of the shown columns that concerns."""

    def to(self, device: torch.device) -> Plan:
        """The same plan with its tensors on `device`, copied without waiting."""
        return dataclasses.replace(
            self,
            labels=self.labels.to(device),
            row_bd=send(self.row_bd, device),
            parents_np=send(self.parents_np, device),
            n_parents_n=send(self.n_parents_n, device),
            share_n=send(self.share_n, device),
            growth_n=send(self.growth_n, device),
            noises={name: send(rows, device) for name, rows in self.noises.items()},
            effects={name: send(rows, device) for name, rows in self.effects.items()},
            interventions=self.interventions and Interventions(*(send(part, device) for part in self.interventions)),
            set_bmd=None if self.set_bmd is None else send(self.set_bmd, device),
        )


def plan_tables(
    rng: torch.Generator,
    config: SimulationConfig,
    *,
    n_tables: int,
    n_variables: int,
    n_samples: int,
    n_hidden: int = 0,
    device_type: str = "cpu",
) -> Plan:
    """Draw every discrete choice for a batch; `run_plan` turns it into values.

    Planning needs the CPU only, so a training loop can do it ahead, in another thread. `n_hidden` variables more than
    the tables show are simulated.
    """
    _check_shape(config, n_tables, n_variables, n_samples)
    n_all = n_variables + n_hidden
    adj_bdd = _draw_graphs(rng, config, n_tables, n_all)
    never_bd = torch.zeros(n_tables, n_all, dtype=torch.bool)
    if n_hidden:
        adj_bdd, never_bd[:, 0] = add_factor(rng, adj_bdd, FACTORS)
    family_bd = _per_table_or_node(rng, config.mechanisms, config.per_node_mechanisms, n_tables, n_all)
    level_n, n_parents_n = depth_levels(adj_bdd).flatten(), adj_bdd.sum(1).flatten()
    family_n = torch.where(n_parents_n > 0, family_bd.flatten(), 0)
    order_n = _order_rows(level_n, family_n, n_parents_n, len(config.mechanisms))
    row_n = torch.empty_like(order_n)
    row_n[order_n] = torch.arange(len(order_n))
    aside = fork(rng)  # for later additions: tables without them stay what they were
    effects = _draw_effects(rng, aside, config, n_tables, n_all, row_n)
    growth_n = _draw_growth(aside, config, n_tables, n_all).flatten()
    shown_bd = torch.rand(n_tables, n_all, generator=rng).argsort(1)
    if n_hidden:
        shown_bd = choose_shown(aside, adj_bdd, n_variables, never_bd)
    row_bd = row_n.view(n_tables, n_all).gather(1, shown_bd)
    effects["confounded"] = effects["confounded"][torch.isin(effects["confounded"], row_bd)]  # columns, nothing hidden
    interventions, set_bmd, effects["interventions"] = _draw_interventions(aside, config, row_bd, n_samples)
    ordered = _Ordered(level_n[order_n], family_n[order_n].tolist(), n_parents_n[order_n].tolist())
    return Plan(
        config=config,
        n_samples=n_samples,
        seed=int(torch.randint(2**62, (), generator=rng)),
        labels=label_graphs(adj_bdd, shown_bd, _joined_columns(effects["confounded"], row_bd)),
        row_bd=row_bd,
        parents_np=_pad_parents(adj_bdd, row_n)[order_n],
        n_parents_n=n_parents_n[order_n],
        share_n=_draw_shares(rng, config, n_tables, n_all).flatten()[order_n],
        growth_n=growth_n[order_n],
        levels=_split_levels(ordered, list(config.mechanisms), effects, n_samples, device_type),
        noises=_draw_noises(rng, config, n_tables, n_all, row_n),
        effects=effects,
        interventions=interventions,
        set_bmd=set_bmd,
    )


def _draw_interventions(
    rng: torch.Generator, config: SimulationConfig, row_bd: Tensor, n_samples: int
) -> tuple[Interventions | None, Tensor | None, Tensor]:
    """What is done to which rows of the buffer, the cells that concerns, and those rows in increasing order."""
    if not config.interventions:
        return None, None, torch.empty(0, dtype=torch.long)
    n_tables, n_variables = row_bd.shape
    done = draw_interventions(rng, config.interventions, n_tables, n_variables, n_samples)
    rows, order = row_bd[done.set_bem.any(2)].sort()
    parts = (part[done.set_bem.any(2)][order] for part in done)
    return Interventions(*parts), done.set_bem.mT.contiguous(), rows


def _check_shape(config: SimulationConfig, n_tables: int, n_variables: int, n_samples: int) -> None:
    for name, value, least in (
        ("n_tables", n_tables, 1), ("n_variables", n_variables, 2), ("n_samples", n_samples, 2),
    ):  # fmt: skip
        if value < least:
            raise ConfigError(Setting(name, value), f" is too few; use at least {least}")
    degree = min(config.degrees)
    if degree > n_variables - 1:
        raise ConfigError(
            Setting("degree", int(degree) if degree == int(degree) else degree),
            " is impossible with ",
            Setting("n_variables", n_variables),
            f": a variable has at most {n_variables - 1} neighbours; lower the degree or add variables",
        )


def _draw_graphs(rng: torch.Generator, config: SimulationConfig, n_tables: int, n_variables: int) -> Tensor:
    degree_b = draw_degrees(rng, config.degrees, n_tables, n_variables, config.degree_share, config.max_density)
    names = list(config.graphs)
    kinds = [names[k] for k in _draw(rng, config.graphs, n_tables).tolist()]
    return sample_dags(rng, kinds, degree_b, n_variables, config.max_parents)


def _draw(rng: torch.Generator, weights: Mapping[str, float], n: int) -> Tensor:
    return torch.multinomial(torch.tensor(list(weights.values())), n, replacement=True, generator=rng)


def _per_table_or_node(
    rng: torch.Generator, weights: Mapping[str, float], per_node: float, n_tables: int, n_variables: int
) -> Tensor:
    """Index of a family for every node: one per table, or in a share `per_node` of tables one per node."""
    table_b1 = _draw(rng, weights, n_tables)[:, None]
    node_bd = _draw(rng, weights, n_tables * n_variables).view(n_tables, n_variables)
    return torch.where(torch.rand(n_tables, 1, generator=rng) < per_node, node_bd, table_b1)


def _order_rows(level_n: Tensor, family_n: Tensor, n_parents_n: Tensor, n_families: int) -> Tensor:
    most = int(n_parents_n.max()) + 1
    return ((level_n * n_families + family_n) * most + n_parents_n).argsort(stable=True)


def _pad_parents(adj_bdd: Tensor, row_n: Tensor) -> Tensor:
    """Rows of the parents of every node, filled up with row 0."""
    n_tables, n_variables, _ = adj_bdd.shape
    table, child, parent = adj_bdd.transpose(1, 2).nonzero(as_tuple=True)
    node = table * n_variables + child
    n_parents_n = adj_bdd.sum(1).flatten()
    first_n = n_parents_n.cumsum(0) - n_parents_n
    slot = torch.arange(len(node)) - first_n[node]
    parents_np = torch.zeros(n_tables * n_variables, max(1, int(n_parents_n.max())), dtype=torch.long)
    parents_np[node, slot] = row_n[table * n_variables + parent]
    return parents_np


def _joined_columns(rows: Tensor, row_bd: Tensor) -> Tensor | None:
    """Pairs of columns that share the one hidden variable of their table; None where there is no such table."""
    if not len(rows):
        return None
    joined_bd = torch.isin(row_bd, rows)
    pairs_bdd = joined_bd[:, :, None] & joined_bd[:, None, :]
    return pairs_bdd & ~torch.eye(row_bd.shape[1], dtype=torch.bool)


def _draw_shares(rng: torch.Generator, config: SimulationConfig, n_tables: int, n_variables: int) -> Tensor:
    """ρ of every node; pooled: a blend of the table's and the node's own draw, at odds that vary by table."""
    low, high = config.noise_share
    share_bd = torch.empty(n_tables, n_variables).uniform_(low, high, generator=rng)
    if config.noise_share_pooled:
        centre_b1 = torch.empty(n_tables, 1).uniform_(low, high, generator=rng)
        share_bd = torch.lerp(share_bd, centre_b1, torch.rand(n_tables, 1, generator=rng))
    if config.noise_share_lean == 1 or low == high:
        return share_bd
    place_bd = ((share_bd - low) / (high - low)).clamp(0, 1)
    return (low + (high - low) * place_bd**config.noise_share_lean).clamp(low, high)


def _draw_growth(rng: torch.Generator, config: SimulationConfig, n_tables: int, n_variables: int) -> Tensor:
    """In a share of tables, a factor of 0.6 to 3.6 for the table times one of ⅔ to 3⁄2 for each node; elsewhere 0."""
    chosen_b1, table_b1 = torch.rand(2, n_tables, 1, generator=rng)
    node_bd = torch.rand(n_tables, n_variables, generator=rng)
    return (chosen_b1 < config.growing) * 0.6 * 6**table_b1 * 2.25 ** (node_bd - 0.5)


def _draw_noises(
    rng: torch.Generator, config: SimulationConfig, n_tables: int, n_variables: int, row_n: Tensor
) -> dict[str, Tensor]:
    family_n = _per_table_or_node(rng, config.noises, config.per_node_noises, n_tables, n_variables).flatten()
    rows = {name: row_n[family_n == k] for k, name in enumerate(config.noises)}
    return {name: index for name, index in rows.items() if len(index)}


def _draw_effects(
    rng: torch.Generator,
    aside: torch.Generator,
    config: SimulationConfig,
    n_tables: int,
    n_variables: int,
    row_n: Tensor,
) -> dict[str, Tensor]:
    """Rows with each effect: a share of tables, and of their columns between a fifth and all."""
    sources = dict.fromkeys(EFFECTS, rng) | dict.fromkeys(LATER_EFFECTS, aside)
    return {
        name: _draw_rows(source, getattr(config, name), n_tables, n_variables, row_n)
        for name, source in sources.items()
    }


def _draw_rows(rng: torch.Generator, share: float, n_tables: int, n_variables: int, row_n: Tensor) -> Tensor:
    in_table_b1 = torch.rand(n_tables, 1, generator=rng) < share
    column_share_b1 = 0.2 + 1.2 * torch.rand(n_tables, 1, generator=rng)
    chosen_bd = torch.rand(n_tables, n_variables, generator=rng) < column_share_b1
    return row_n[(in_table_b1 & chosen_bd).flatten()].sort().values


def fork(rng: torch.Generator) -> torch.Generator:
    """Another generator, decided by the state of this one, which stays as it is."""
    copy = torch.Generator()
    copy.set_state(rng.get_state())
    return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=copy)))


class _Ordered(NamedTuple):
    """Depth, mechanism and number of parents of every row, in the order of simulation."""

    level_n: Tensor
    families: list[int]
    n_parents: list[int]


def _split_levels(
    rows: _Ordered, names: list[str], effects: Mapping[str, Tensor], n_samples: int, device_type: str
) -> tuple[Level, ...]:
    """Cut the ordered rows into levels, and levels into groups."""
    bounds = [0, *rows.level_n.bincount().cumsum(0).tolist()]
    discrete, sluggish, interventions = (
        [slice(*ends) for ends in itertools.pairwise(torch.searchsorted(effects[name], torch.tensor(bounds)).tolist())]
        for name in ("discrete", "sluggish", "interventions")
    )
    levels = []
    for depth, (start, stop) in enumerate(itertools.pairwise(bounds)):
        groups: list[Group] = []
        first = start
        for family, run in itertools.groupby(rows.families[start:stop] if depth else ()):
            last = first + len(list(run))
            groups += _split_group(names[family], first, last, rows.n_parents, n_samples, device_type)
            first = last
        levels.append(Level(start, stop, tuple(groups), discrete[depth], sluggish[depth], interventions[depth]))
    return tuple(levels)


def _split_group(name: str, start: int, stop: int, counts: list[int], n_samples: int, device_type: str) -> list[Group]:
    """Cut rows of one mechanism, sorted by number of parents, where empty slots cost more than a step."""
    kind = "cpu" if device_type == "cpu" else "cuda"
    enough, most = _SPLIT_CELLS[kind] // n_samples, _MOST_CELLS[kind] // n_samples
    groups, first = [], start
    for row in range(start + 1, stop + 1):
        ends = row == stop
        grows = not ends and counts[row] > counts[row - 1] and row - first >= enough and stop - row >= enough
        full = not ends and (row + 1 - first) * counts[row] > most
        if ends or grows or full:
            groups.append(Group(name, first, row, counts[row - 1]))
            first = row
    return groups
