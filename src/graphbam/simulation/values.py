"""Numbers from a plan: many tables at once, depth by depth, on any device. No step waits for the device."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from graphbam.graphs.graph import edge_classes
from graphbam.simulation.cells import choose_shown, draw_extra, draw_interventions, draw_observed, draw_set_cells
from graphbam.simulation.config import PRESETS, SimulationConfig
from graphbam.simulation.labels import Labels, label_graphs, send
from graphbam.simulation.mechanisms import LINKS, MECHANISMS, soft_clip, unit
from graphbam.simulation.noise import autocorrelate, rand, randn, sample_noise
from graphbam.simulation.plan import Group, Level, Plan, fork, plan_tables
from graphbam.simulation.worlds import LOOPS, SERIES, SETTABLE, WORLDS, World
from graphbam.tables.standard import CLIP, sort_rows, standardise

TABLES_PER_WORLD = 64
"""A batch has one named world for so many tables."""

LONGEST_SETTING = 40
"""Most samples of a series for which cells stay set."""

LEAST_SHARE = 0.002
"""Least ρ where variance grows: four millionths of a variable are its own."""


@dataclass(frozen=True)
class Tables:
    """A batch of simulated tables, and what is true of them.

    Labels speak of the shown variables; where others are hidden, of the latent projection on the shown ones. See
    `graphbam.simulation.labels`; −1 says that a label has no meaning in a table.
    """

    x_bmd: Tensor
    """Standardised data, float32, shape (B, M, D)."""
    dag_bdd: Tensor
    """Directed edges, int8, shape (B, D, D); entry (i, j) is 1 for i → j."""
    classes_bdd: Tensor
    """Class of each pair by its directed edges, int64: 0 none, 1 skeleton, 2 moral. A pair that has only a hidden
    common cause is no part of the skeleton."""
    hidden_bdd: Tensor
    """1 for i ↔ j, a hidden common cause, int8, symmetric."""
    ancestors_bdd: Tensor
    """1 where a directed path leads from i to j, int8."""
    compelled_bdd: Tensor
    """1 for arrows that the CPDAG directs, int8; −1 in tables with a hidden common cause or a feedback loop."""
    observed_bmd: Tensor | None = None
    """Which cells were observed, bool; missing ones are 0 in `x_bmd`. None: all were, in every table."""
    set_bmd: Tensor | None = None
    """Which cells were set by an intervention, bool. None: none was, in any table."""


class Shape(NamedTuple):
    """Size of a batch, in the order of the axes of `Tables.x_bmd`."""

    n_tables: int
    n_samples: int
    n_variables: int


class Values(NamedTuple):
    """What is known of the rows so far: tensors that are filled in place, level by level."""

    x_nm: Tensor
    """Noise first, then finished values."""
    share_n: Tensor
    """ρ of each row, as planned or, where variance grows, as it came out."""
    size_n: Tensor
    """Standard deviation before it was brought to 1; 1 where variance does not grow."""


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
    if not (config.hidden or config.worlds_at(n_variables)):
        plan = plan_tables(
            rng, config, n_tables=n_tables, n_variables=n_variables, n_samples=n_samples, device_type=device.type
        )
        return run_plan(plan, device)
    shape = Shape(n_tables, n_samples, n_variables)
    groups = split_batch(fork(rng), config, shape)
    parts = [_sample_group(rng, config, group, shape, device) for group in groups]
    return _join_tables(parts, torch.cat([group.tables for group in groups]))


# ── which tables come from which world ──────────────────────────────────────────────────────────────────────


class TableGroup(NamedTuple):
    """Tables of a batch that are simulated together."""

    world: str | None
    """Named world; None: what the config itself says."""
    n_hidden: int
    tables: Tensor
    """Their places in the batch."""


def split_batch(rng: torch.Generator, config: SimulationConfig, shape: Shape) -> list[TableGroup]:
    """Divide a batch into groups of one world and one number of hidden variables.

    Every group costs about as many steps as a whole batch of one kind, so there are few: the config's own worlds with
    and without hidden variables, and one named world for every `TABLES_PER_WORLD` tables, with or without.
    """
    n_tables, worlds = shape.n_tables, config.worlds_at(shape.n_variables)
    named_b = torch.rand(n_tables, generator=rng) < sum(worlds.values())
    drawn_b = torch.randint(max(1, n_tables // TABLES_PER_WORLD), (n_tables,), generator=rng)
    hides_b = torch.rand(n_tables, generator=rng) < config.hidden
    groups = [
        TableGroup(None, 0, (~named_b & ~hides_b).nonzero()[:, 0]),
        TableGroup(None, draw_extra(rng, shape.n_variables), (~named_b & hides_b).nonzero()[:, 0]),
    ]
    for k in drawn_b[named_b].unique().tolist():
        weights = torch.tensor(list(worlds.values()))
        world = list(worlds)[int(torch.multinomial(weights, 1, generator=rng))]
        hides = float(torch.rand((), generator=rng)) < config.hidden and world not in LOOPS
        n_hidden = draw_extra(rng, shape.n_variables) if hides else 0
        groups.append(TableGroup(world, n_hidden, (named_b & (drawn_b == k)).nonzero()[:, 0]))
    return [group for group in groups if len(group.tables)]


def _sample_group(
    rng: torch.Generator, config: SimulationConfig, group: TableGroup, shape: Shape, device: torch.device
) -> Tables:
    n_tables = len(group.tables)
    if group.world in WORLDS:
        size = (n_tables, shape.n_variables + group.n_hidden, shape.n_samples)
        more = []
        if config.interventions and group.world in SETTABLE:
            aside = fork(rng)
            done = draw_interventions(aside, config.interventions, n_tables, shape.n_variables, shape.n_samples)
            more = [draw_set_cells(aside, done, size[1], LONGEST_SETTING if group.world in SERIES else 1)]
        return _show_world(rng, config, WORLDS[group.world](rng, *size, *more), shape.n_variables, device)
    if group.world is not None:
        shares = {name: getattr(config, name) for name in ("interventions", "missing")}
        config = dataclasses.replace(PRESETS[group.world], **shares)
    plan = plan_tables(
        rng, config, n_tables=n_tables, n_variables=shape.n_variables, n_samples=shape.n_samples,
        n_hidden=group.n_hidden, device_type=device.type,
    )  # fmt: skip
    return run_plan(plan, device)


def _show_world(
    rng: torch.Generator, config: SimulationConfig, world: World, n_variables: int, device: torch.device
) -> Tables:
    """The table that somebody sees of a world."""
    never_be = torch.zeros(world.adj_bee.shape[:2], dtype=torch.bool)
    never_be[:, never_be.shape[1] - world.n_drivers :] = True
    always_be = None if world.set_bme is None else world.set_bme.any(1)  # people measure what they set
    shown_bd = choose_shown(rng, world.adj_bee, n_variables, never_be, always_be)
    labels = label_graphs(world.adj_bee, shown_bd).to(device)
    columns_bmd = shown_bd[:, None, :].expand(-1, world.x_bme.shape[1], -1)
    x_bdm = send(world.x_bme.gather(2, columns_bmd).mT.contiguous(), device)
    set_bmd = None if world.set_bme is None else send(world.set_bme.gather(2, columns_bmd), device)
    aside = torch.Generator(device=device).manual_seed(int(torch.randint(2**62, (), generator=rng)))
    return _observe_cells(aside, config, x_bdm, labels, set_bmd)


def _join_tables(parts: list[Tables], place_b: Tensor) -> Tables:
    """Tables of several groups in one batch; where only some have a mask, the others get an empty one."""
    order_b = send(place_b.argsort(), parts[0].x_bmd.device)

    def join(name: str, otherwise: bool) -> Tensor | None:
        masks = [getattr(part, name) for part in parts]
        if all(mask is None for mask in masks):
            return None
        filled = [
            torch.full_like(part.x_bmd, otherwise, dtype=torch.bool) if mask is None else mask
            for part, mask in zip(parts, masks, strict=True)
        ]
        return torch.cat(filled)[order_b]

    names = ("x_bmd", "dag_bdd", "classes_bdd", "hidden_bdd", "ancestors_bdd", "compelled_bdd")
    whole = {name: torch.cat([getattr(part, name) for part in parts])[order_b] for name in names}
    return Tables(**whole, observed_bmd=join("observed_bmd", True), set_bmd=join("set_bmd", False))


# ── from a plan to numbers ──────────────────────────────────────────────────────────────────────────────────


@torch.no_grad()
def run_plan(plan: Plan, device: str | torch.device = "cpu") -> Tables:
    """Turn a plan into tables on `device`, in float32 even inside an autocast region."""
    device = torch.device(device)
    with torch.autocast(device.type, enabled=False):
        plan = plan.to(device)
        rng = torch.Generator(device=device).manual_seed(plan.seed)
        aside = torch.Generator(device=device).manual_seed(plan.seed + 1)  # for interventions and missing cells
        values = Values(_draw_noise(rng, plan), plan.share_n.clone(), torch.ones_like(plan.share_n))
        for level in plan.levels:
            _simulate_level(rng, aside, plan, level, values)
        x_bdm = _measure(rng, plan, values.x_nm)[plan.row_bd]
        return _observe_cells(aside, plan.config, x_bdm, plan.labels, plan.set_bmd)


def _observe_cells(
    rng: torch.Generator, config: SimulationConfig, x_bdm: Tensor, labels: Labels, set_bmd: Tensor | None
) -> Tables:
    """Lose some cells, and standardise by the others as inference does."""
    raw_bdm, observed_bdm = x_bdm, None
    x_bdm = standardise(raw_bdm, robust=config.robust, axis=-1)
    if config.missing:
        observed_bdm = torch.ones_like(x_bdm, dtype=torch.bool)
        choice = torch.Generator().manual_seed(rng.initial_seed())  # on the CPU: nobody waits for the device
        chosen = send((torch.rand(len(x_bdm), generator=choice) < config.missing).nonzero()[:, 0], x_bdm.device)
        if len(chosen):
            observed_bdm[chosen] = draw_observed(rng, raw_bdm[chosen])
            x_bdm[chosen] = standardise(raw_bdm[chosen], robust=config.robust, axis=-1, observed=observed_bdm[chosen])
    return Tables(
        x_bmd=x_bdm.mT.contiguous(),
        dag_bdd=labels.dag_bdd,
        classes_bdd=edge_classes(labels.dag_bdd),
        hidden_bdd=labels.hidden_bdd,
        ancestors_bdd=labels.ancestors_bdd,
        compelled_bdd=labels.compelled_bdd,
        observed_bmd=None if observed_bdm is None else observed_bdm.mT.contiguous(),
        set_bmd=set_bmd,
    )


def _draw_noise(rng: torch.Generator, plan: Plan) -> Tensor:
    """Noise of every row, of unit variance unless the literal formula is wanted."""
    n_nodes = len(plan.share_n)
    e_nm = torch.empty(n_nodes, plan.n_samples, device=rng.device)
    for name, rows in plan.noises.items():
        e_nm[rows] = sample_noise(rng, name, len(rows), plan.n_samples)
    rows = plan.effects["autocorrelated"]
    if len(rows):
        e_nm[rows] = autocorrelate(unit(e_nm[rows]), 0.2 + 0.7 * rand(rng, len(rows)))
    rows = plan.effects["confounded"]
    if len(rows):
        e_nm[rows] = _join_hidden(rng, unit(e_nm[rows]), _tables_of_rows(plan)[rows], len(plan.row_bd))
    return e_nm if plan.config.mixing == "literal" else unit(e_nm)


def _tables_of_rows(plan: Plan) -> Tensor:
    table_n = torch.empty_like(plan.n_parents_n)
    table_n[plan.row_bd] = torch.arange(len(plan.row_bd), device=table_n.device)[:, None]
    return table_n


def _join_hidden(rng: torch.Generator, e_nm: Tensor, table_n: Tensor, n_tables: int) -> Tensor:
    """Noise of which a fifth to four fifths is one hidden Gaussian variable per table; half of these drift."""
    coin_b, phi_b = rand(rng, 2, n_tables)
    hidden_bm = autocorrelate(randn(rng, n_tables, e_nm.shape[1]), torch.where(coin_b < 0.5, 0.9 * phi_b, 0.0))
    coin_n1, weight_n1 = rand(rng, 2, len(e_nm), 1)
    weight_n1 = (0.2 + 0.6 * weight_n1) * (2.0 * (coin_n1 < 0.5) - 1.0)
    return (1 - weight_n1.square()).sqrt() * e_nm + weight_n1 * hidden_bm[table_n]


def _simulate_level(rng: torch.Generator, aside: torch.Generator, plan: Plan, level: Level, values: Values) -> None:
    """Replace the noise in the rows of one level by finished values."""
    here, x_nm = slice(level.start, level.stop), values.x_nm
    if level.groups:
        f_nm = torch.cat([_answer(rng, plan, group, values) for group in level.groups])
        x_nm[here] = mix(plan.config, x_nm[here], f_nm, values.share_n[here, None])
    for group in level.groups:
        if group.mechanism in LINKS:
            rows = slice(group.start, group.stop)
            x_nm[rows] = LINKS[group.mechanism](rng, x_nm[rows])
    slow = plan.effects["sluggish"][level.sluggish]
    if len(slow):
        x_nm[slow] = autocorrelate(unit(x_nm[slow]), 0.2 + 0.7 * rand(rng, len(slow)))
    x_nm[here] = _finish(plan.config, x_nm[here])
    cut = plan.effects["discrete"][level.discrete]
    if len(cut):
        x_nm[cut] = unit(discretise(rng, x_nm[cut]))
    done = plan.effects["interventions"][level.interventions]
    if plan.interventions is not None and len(done):
        x_nm[done] = plan.interventions.apply(aside, level.interventions, x_nm[done])


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
    cut_nk = sort_rows(x_nm).gather(1, place_nk)
    used_nk = torch.arange(most - 1, device=x_nm.device) < n_cuts_n1
    cut_nk = torch.where(used_nk, cut_nk, torch.inf)
    code_nm = torch.searchsorted(cut_nk.sort(1).values, x_nm)
    value_nk = torch.arange(float(most), device=x_nm.device).expand(n_nodes, most)
    shuffled_nk = rand(rng, n_nodes, most).argsort(1).float()
    value_nk = torch.where(rand(rng, n_nodes, 1) < 0.5, shuffled_nk, value_nk)
    return value_nk.gather(1, code_nm)


def _measure(rng: torch.Generator, plan: Plan, x_nm: Tensor) -> Tensor:
    """The measured copy: transforms of finished columns."""
    effects = {"skewed": skew, "rounded": coarsen, "measurement_noise": blur}
    for name, effect in effects.items():
        rows = plan.effects[name]
        if len(rows):
            x_nm[rows] = effect(rng, x_nm[rows])
    return x_nm


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
