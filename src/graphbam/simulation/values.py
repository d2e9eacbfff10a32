"""Many tables at once: first a plan on the CPU, then values, depth by depth, on any device.

The plan holds every discrete choice (graphs, families, which node is rounded) as index tensors. Nodes of all
tables are lined up by depth, then by mechanism, then by their number of parents. One buffer of values follows
that order, so a group of nodes with the same mechanism is one contiguous slice that reads its parents from
rows further up. The number of steps is the depth of the graphs times the number of mechanisms, whatever the
number of variables. No step of the value part waits for the device.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from graphbam.errors import ConfigError
from graphbam.graphs.graph import edge_classes
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.graphs import depth_levels, draw_degrees, sample_dags
from graphbam.simulation.mechanisms import LINKS, MECHANISMS, rand, randn, soft_clip, unit
from graphbam.simulation.noise import autocorrelate, sample_noise
from graphbam.tables.prepare import CLIP, standardise

_SPLIT_CELLS = {"cpu": 2**14, "cuda": 2**21}
"""A group of nodes is only divided by number of parents if the parts keep this many values: below, the
overhead of one more step costs more than empty slots do."""

_MOST_CELLS = {"cpu": 2**17, "cuda": 2**23}
"""Values of all parents that one step handles at most; bounds the memory of mechanisms with many features."""


LEAST_SHARE = 0.002
"""Least ρ where variance grows: four millionths of a variable are its own."""


@dataclass(frozen=True)
class Tables:
    """A batch of simulated tables with their graphs."""

    x_bmd: Tensor
    """Standardised data, float32, shape (B, M, D)."""
    dag_bdd: Tensor
    """Graphs, int8, shape (B, D, D); entry (i, j) is 1 for i → j."""
    classes_bdd: Tensor
    """Class of each pair, int64: 0 none, 1 skeleton, 2 moral."""


class Values(NamedTuple):
    """What is known of the rows so far: tensors that are filled in place, level by level."""

    x_nm: Tensor
    """Noise first, then finished values."""
    share_n: Tensor
    """ρ of each row, as planned or, where variance grows, as it came out."""
    size_n: Tensor
    """Standard deviation before it was brought to 1; 1 where variance does not grow."""


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
    """Part of `Plan.index["discrete"]` that lies in this level."""
    sluggish: slice
    """The same of `Plan.index["sluggish"]`."""


@dataclass(frozen=True)
class Plan:
    """Every discrete choice of a batch. Rows are nodes (table, variable) in the order of simulation."""

    config: SimulationConfig
    n_samples: int
    seed: int
    """Of the generator for values, on whatever device."""
    dag_bdd: Tensor
    """Graphs after the columns have been shuffled."""
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
    index: Mapping[str, Tensor]
    """Rows with each special treatment: discrete, skewed, rounded, measured, autocorrelated, sluggish, confounded."""

    def to(self, device: torch.device) -> Plan:
        """The same plan with its tensors on `device`, copied without waiting."""
        return dataclasses.replace(
            self,
            dag_bdd=_send(self.dag_bdd, device),
            row_bd=_send(self.row_bd, device),
            parents_np=_send(self.parents_np, device),
            n_parents_n=_send(self.n_parents_n, device),
            share_n=_send(self.share_n, device),
            growth_n=_send(self.growth_n, device),
            noises={name: _send(rows, device) for name, rows in self.noises.items()},
            index={name: _send(rows, device) for name, rows in self.index.items()},
        )


def sample_tables(
    rng: torch.Generator,
    config: SimulationConfig,
    *,
    n_tables: int,
    n_variables: int,
    n_samples: int,
    device: str | torch.device = "cpu",
) -> Tables:
    """Simulate a batch of tables of one shape.

    Parameters
    ----------
    rng : torch.Generator
        On the CPU, whatever `device` is. The same state gives the same graphs everywhere, and the same values
        on the same kind of device.
    config : SimulationConfig
        What the worlds look like.
    n_tables, n_variables, n_samples : int
        B, D and M; at least 1, 2 and 2.
    device : str or torch.device
        Where values are computed and returned.

    Returns
    -------
    Tables

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> tables = sample_tables(rng, SimulationConfig.broad(), n_tables=4, n_variables=10, n_samples=50)
    >>> tables.x_bmd.shape, tables.dag_bdd.dtype, tables.classes_bdd.shape
    (torch.Size([4, 50, 10]), torch.int8, torch.Size([4, 10, 10]))
    """
    device = torch.device(device)
    plan = plan_tables(
        rng, config, n_tables=n_tables, n_variables=n_variables, n_samples=n_samples, device_type=device.type
    )
    return run_plan(plan, device)


# ── the plan ────────────────────────────────────────────────────────────────────────────────────────────────


def plan_tables(
    rng: torch.Generator,
    config: SimulationConfig,
    *,
    n_tables: int,
    n_variables: int,
    n_samples: int,
    device_type: str = "cpu",
) -> Plan:
    """Draw every discrete choice for a batch; `run_plan` turns it into values.

    Planning needs the CPU only, so a training loop can do it ahead, in another thread.
    """
    _check_shape(config, n_tables, n_variables, n_samples)
    adj_bdd = _draw_graphs(rng, config, n_tables, n_variables)
    family_bd = _per_table_or_node(rng, config.mechanisms, config.per_node_mechanisms, n_tables, n_variables)
    level_n, n_parents_n = depth_levels(adj_bdd).flatten(), adj_bdd.sum(1).flatten()
    family_n = torch.where(n_parents_n > 0, family_bd.flatten(), 0)
    order_n = _order_rows(level_n, family_n, n_parents_n, len(config.mechanisms))
    row_n = torch.empty_like(order_n)
    row_n[order_n] = torch.arange(len(order_n))
    aside = _fork(rng)  # for later additions: tables without them stay what they were
    special = _draw_special(rng, aside, config, n_tables, n_variables, row_n)
    growth_n = _draw_growth(aside, config, n_tables, n_variables).flatten()
    ordered = _Ordered(level_n[order_n], family_n[order_n].tolist(), n_parents_n[order_n].tolist())
    levels = _split_levels(ordered, list(config.mechanisms), special, n_samples, device_type)
    shuffle_bd = torch.rand(n_tables, n_variables, generator=rng).argsort(1)
    return Plan(
        config=config,
        n_samples=n_samples,
        seed=int(torch.randint(2**62, (), generator=rng)),
        dag_bdd=_permute(adj_bdd, shuffle_bd).to(torch.int8),
        row_bd=row_n.view(n_tables, n_variables).gather(1, shuffle_bd),
        parents_np=_pad_parents(adj_bdd, row_n)[order_n],
        n_parents_n=n_parents_n[order_n],
        share_n=_draw_shares(rng, config, n_tables, n_variables).flatten()[order_n],
        growth_n=growth_n[order_n],
        levels=levels,
        noises=_draw_noises(rng, config, n_tables, n_variables, row_n),
        index=special,
    )


def _check_shape(config: SimulationConfig, n_tables: int, n_variables: int, n_samples: int) -> None:
    for name, value, least in (
        ("n_tables", n_tables, 1), ("n_variables", n_variables, 2), ("n_samples", n_samples, 2),
    ):  # fmt: skip
        if value < least:
            raise ConfigError(f"{name}={value} is too few; use at least {least}")
    if min(config.degrees) > n_variables - 1:
        raise ConfigError(
            f"degree={min(config.degrees):g} is impossible with n_variables={n_variables}: a variable has "
            f"at most {n_variables - 1} neighbours; lower the degree or add variables"
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
    """Index of a family for every node: one a table, or in a share `per_node` of tables one a node."""
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


def _permute(adj_bdd: Tensor, shuffle_bd: Tensor) -> Tensor:
    rows_bdd = adj_bdd.gather(1, shuffle_bd[:, :, None].expand_as(adj_bdd))
    return rows_bdd.gather(2, shuffle_bd[:, None, :].expand_as(adj_bdd))


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


def _draw_special(
    rng: torch.Generator,
    aside: torch.Generator,
    config: SimulationConfig,
    n_tables: int,
    n_variables: int,
    row_n: Tensor,
) -> dict[str, Tensor]:
    """Rows with a special treatment: a share of tables, and of their columns between a fifth and all."""
    shares = {
        "discrete": config.discrete,
        "skewed": config.skewed,
        "rounded": config.rounded,
        "measured": config.measurement_noise,
        "autocorrelated": config.autocorrelated,
    }
    rows = {name: _draw_rows(rng, share, n_tables, n_variables, row_n) for name, share in shares.items()}
    for name, share in (("sluggish", config.sluggish), ("confounded", config.confounded)):
        rows[name] = _draw_rows(aside, share, n_tables, n_variables, row_n)
    return rows


def _draw_rows(rng: torch.Generator, share: float, n_tables: int, n_variables: int, row_n: Tensor) -> Tensor:
    in_table_b1 = torch.rand(n_tables, 1, generator=rng) < share
    column_share_b1 = 0.2 + 1.2 * torch.rand(n_tables, 1, generator=rng)
    chosen_bd = torch.rand(n_tables, n_variables, generator=rng) < column_share_b1
    return row_n[(in_table_b1 & chosen_bd).flatten()].sort().values


def _fork(rng: torch.Generator) -> torch.Generator:
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
    rows: _Ordered, names: list[str], special: Mapping[str, Tensor], n_samples: int, device_type: str
) -> tuple[Level, ...]:
    """Cut the ordered rows into levels, and levels into groups."""
    bounds = [0, *rows.level_n.bincount().cumsum(0).tolist()]
    discrete, sluggish = (
        [slice(*ends) for ends in itertools.pairwise(torch.searchsorted(special[name], torch.tensor(bounds)).tolist())]
        for name in ("discrete", "sluggish")
    )
    levels = []
    for depth, (start, stop) in enumerate(itertools.pairwise(bounds)):
        groups: list[Group] = []
        first = start
        for family, run in itertools.groupby(rows.families[start:stop] if depth else ()):
            last = first + len(list(run))
            groups += _split_group(names[family], first, last, rows.n_parents, n_samples, device_type)
            first = last
        levels.append(Level(start, stop, tuple(groups), discrete[depth], sluggish[depth]))
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


def _send(values: Tensor, device: torch.device) -> Tensor:
    if device.type == "cuda" and values.numel():  # only pinned memory is copied without waiting
        values = values.pin_memory()
    return values.to(device, non_blocking=True)


# ── the values ──────────────────────────────────────────────────────────────────────────────────────────────


@torch.no_grad()
def run_plan(plan: Plan, device: str | torch.device = "cpu") -> Tables:
    """Turn a plan into tables on `device`, in float32 even inside an autocast region."""
    device = torch.device(device)
    with torch.autocast(device.type, enabled=False):
        plan = plan.to(device)
        rng = torch.Generator(device=device).manual_seed(plan.seed)
        values = Values(_draw_noise(rng, plan), plan.share_n.clone(), torch.ones_like(plan.share_n))
        for level in plan.levels:
            _simulate_level(rng, plan, level, values)
        x_bdm = _observe(rng, plan, values.x_nm)[plan.row_bd]
        return Tables(x_bdm.mT.contiguous(), plan.dag_bdd, edge_classes(plan.dag_bdd))


def _draw_noise(rng: torch.Generator, plan: Plan) -> Tensor:
    """Noise of every row, of unit variance unless the literal formula is wanted."""
    n_nodes = len(plan.share_n)
    e_nm = torch.empty(n_nodes, plan.n_samples, device=rng.device)
    for name, rows in plan.noises.items():
        e_nm[rows] = sample_noise(rng, name, len(rows), plan.n_samples)
    rows = plan.index["autocorrelated"]
    if len(rows):
        e_nm[rows] = autocorrelate(unit(e_nm[rows]), 0.2 + 0.7 * rand(rng, len(rows)))
    rows = plan.index["confounded"]
    if len(rows):
        e_nm[rows] = _join_hidden(rng, unit(e_nm[rows]), _tables_of_rows(plan)[rows], len(plan.row_bd))
    return e_nm if plan.config.mixing == "literal" else unit(e_nm)


def _tables_of_rows(plan: Plan) -> Tensor:
    table_n = torch.empty_like(plan.n_parents_n)
    table_n[plan.row_bd] = torch.arange(len(plan.row_bd), device=table_n.device)[:, None]
    return table_n


def _join_hidden(rng: torch.Generator, e_nm: Tensor, table_n: Tensor, n_tables: int) -> Tensor:
    """Noise that partly, from a fifth to four fifths, is one hidden Gaussian variable a table; half of these drift."""
    coin_b, phi_b = rand(rng, 2, n_tables)
    hidden_bm = autocorrelate(randn(rng, n_tables, e_nm.shape[1]), torch.where(coin_b < 0.5, 0.9 * phi_b, 0.0))
    coin_n1, weight_n1 = rand(rng, 2, len(e_nm), 1)
    weight_n1 = (0.2 + 0.6 * weight_n1) * (2.0 * (coin_n1 < 0.5) - 1.0)
    return (1 - weight_n1.square()).sqrt() * e_nm + weight_n1 * hidden_bm[table_n]


def _simulate_level(rng: torch.Generator, plan: Plan, level: Level, values: Values) -> None:
    """Replace the noise in the rows of one level by finished values."""
    here, x_nm = slice(level.start, level.stop), values.x_nm
    if level.groups:
        f_nm = torch.cat([_answer(rng, plan, group, values) for group in level.groups])
        x_nm[here] = mix(plan.config, x_nm[here], f_nm, values.share_n[here, None])
    for group in level.groups:
        if group.mechanism in LINKS:
            rows = slice(group.start, group.stop)
            x_nm[rows] = LINKS[group.mechanism](rng, x_nm[rows])
    slow = plan.index["sluggish"][level.sluggish]
    if len(slow):
        x_nm[slow] = autocorrelate(unit(x_nm[slow]), 0.2 + 0.7 * rand(rng, len(slow)))
    x_nm[here] = _finish(plan.config, x_nm[here])
    cut = plan.index["discrete"][level.discrete]
    if len(cut):
        x_nm[cut] = unit(discretise(rng, x_nm[cut]))


def _answer(rng: torch.Generator, plan: Plan, group: Group, values: Values) -> Tensor:
    rows = slice(group.start, group.stop)
    slots = torch.arange(group.n_slots, device=rng.device)
    mask_np = (slots < plan.n_parents_n[rows, None]).float()
    parents_np = plan.parents_np[rows, : group.n_slots]
    grows = plan.config.growing > 0 and group.mechanism == "linear"
    size_np = torch.where(plan.growth_n[rows, None] > 0, values.size_n[parents_np], 1.0) if grows else 1.0
    x_npm = values.x_nm[parents_np] * (mask_np * size_np)[..., None]
    f_nm = MECHANISMS[group.mechanism](rng, x_npm, mask_np, plan.config)
    if grows:
        _grow(plan, rows, f_nm, values)
    return f_nm


def _grow(plan: Plan, rows: slice, f_nm: Tensor, values: Values) -> None:
    """Where variance grows, noise has size 1 beside a signal of its own size s: ρ = 1 / (1 + s)."""
    growth_n = plan.growth_n[rows]
    signal_n = growth_n * f_nm.std(1, correction=0)
    values.size_n[rows] = torch.where(growth_n > 0, (1 + signal_n.square()).sqrt(), 1.0)
    values.share_n[rows] = torch.where(growth_n > 0, (1 / (1 + signal_n)).clamp_min(LEAST_SHARE), values.share_n[rows])


def mix(config: SimulationConfig, noise_nm: Tensor, signal_nm: Tensor, share_n1: Tensor) -> Tensor:
    """x = ρ·noise + (1−ρ)·signal with a signal of unit variance, or signal + noise under literal mixing.

    Examples
    --------
    >>> noise_nm, signal_nm = torch.tensor([[1.0, -1.0]]), torch.tensor([[9.0, 5.0]])
    >>> mix(SimulationConfig.paper(), noise_nm, signal_nm, torch.tensor([[0.25]])).tolist()
    [[1.0, -1.0]]
    """
    if config.mixing == "literal":
        return signal_nm + noise_nm
    return torch.lerp(unit(signal_nm), noise_nm, share_n1)


def _finish(config: SimulationConfig, x_nm: Tensor) -> Tensor:
    """Standardise and clip, as children and the final table see it."""
    if config.clip == "hard":
        return unit(x_nm).clamp(-CLIP, CLIP)
    return unit(soft_clip(unit(x_nm), CLIP))


# ── what real tables do to values ───────────────────────────────────────────────────────────────────────────


def discretise(rng: torch.Generator, x_nm: Tensor, most: int = 6) -> Tensor:
    """Cut each row into 2 to `most` levels at random quantiles; in half of the rows the codes are shuffled.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> levels = discretise(rng, torch.randn(50, 200, generator=rng))
    >>> 2 <= min(len(row.unique()) for row in levels) <= max(len(row.unique()) for row in levels) <= 6
    True
    """
    n_nodes, n_samples = x_nm.shape
    n_cuts_n1 = 1 + ((most - 1) * rand(rng, n_nodes, 1)).floor()
    place_nk = ((0.1 + 0.8 * rand(rng, n_nodes, most - 1)) * (n_samples - 1)).long()
    cut_nk = x_nm.sort(1).values.gather(1, place_nk)
    used_nk = torch.arange(most - 1, device=x_nm.device) < n_cuts_n1
    cut_nk = torch.where(used_nk, cut_nk, torch.inf)
    code_nm = torch.searchsorted(cut_nk.sort(1).values, x_nm)
    value_nk = torch.arange(float(most), device=x_nm.device).expand(n_nodes, most)
    shuffled_nk = rand(rng, n_nodes, most).argsort(1).float()
    value_nk = torch.where(rand(rng, n_nodes, 1) < 0.5, shuffled_nk, value_nk)
    return value_nk.gather(1, code_nm)


def _observe(rng: torch.Generator, plan: Plan, x_nm: Tensor) -> Tensor:
    """The observed copy: transforms of finished columns, then the standardisation that inference uses."""
    effects = {"skewed": skew, "rounded": coarsen, "measured": blur}
    for name, effect in effects.items():
        rows = plan.index[name]
        if len(rows):
            x_nm[rows] = effect(rng, x_nm[rows])
    return standardise(x_nm, robust=plan.config.robust, axis=-1)


def skew(rng: torch.Generator, x_nm: Tensor) -> Tensor:
    """A monotone transform of each row: exponential, signed power above or below 1."""
    kind_n1, size_n1, coin_n1 = rand(rng, 3, len(x_nm), 1)
    x_nm = x_nm * (2.0 * (coin_n1 < 0.5) - 1.0)
    power_n1 = torch.where(kind_n1 < 0.7, 1 / 3 + 0.5 * size_n1, 1.3 + 1.7 * size_n1)
    powered_nm = x_nm.sign() * x_nm.abs().pow(power_n1)
    return torch.where(kind_n1 < 0.5, torch.exp((0.3 + 1.2 * size_n1) * x_nm), powered_nm)


def coarsen(rng: torch.Generator, x_nm: Tensor) -> Tensor:
    """Round to steps between a fifth and one and a half standard deviations."""
    step_n1 = 0.2 + 1.3 * rand(rng, len(x_nm), 1)
    return (x_nm / step_n1).round() * step_n1


def blur(rng: torch.Generator, x_nm: Tensor) -> Tensor:
    """Add measurement noise of 3 to 60 % of the standard deviation, little more often than much."""
    return x_nm + 0.03 * 20 ** rand(rng, len(x_nm), 1) * randn(rng, *x_nm.shape)
