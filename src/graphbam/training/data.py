"""What steps learn from: an endless stream of simulated batches, made on the fly and never reused.

Batch k depends on the seed, the rank and k alone: a run that stops and resumes sees exactly what an uninterrupted one
would have seen. Batches come in windows (a few shapes, a few batches of each, shuffled), because simulating several
batches of one shape at once is far cheaper than one by one. The next windows are prepared while this one is used.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.util import Finalize
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from graphbam.directions.immoralities import LINKED_FROM
from graphbam.errors import ConfigError
from graphbam.graphs.graph import MORAL, SKELETON
from graphbam.nn.edge_net import MISSING, SET
from graphbam.nn.immorality_net import ImmoralityNetConfig
from graphbam.nn.structures import CANDIDATE, Structures, find_structures, gather_columns
from graphbam.nn.weights import ROWS_PER_CHUNK, LoadedWeights, load_weights
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.values import Shape, Tables, sample_tables
from graphbam.tables.gaps import fill_gaps
from graphbam.tables.rows import count_rows_each
from graphbam.tables.standard import standardise
from graphbam.training.config import StructureConfig, TrainConfig, task_of

MOST_ROUNDS = 4
"""Times that tables are simulated for one burst; if structures are still too few, narrower ones or copies fill up."""

MOST_ATTEMPTS = 20
"""Times that a burst is begun again because no table had any structure."""


# ── batches ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Batch(NamedTuple):
    """Tables with their labels (0 none, 1 skeleton, 2 moral) and the independent rows each is worth."""

    x_bmd: Tensor
    classes_bdd: Tensor
    rows_b: Tensor

    @property
    def shape(self) -> Shape:
        """Tables, samples, variables."""
        return Shape(*self.x_bmd.shape)

    def ready(self) -> Batch:
        """Labels travel as bytes; losses want integers."""
        return Batch(self.x_bmd, self.classes_bdd.long(), self.rows_b)


class AnswerBatch(NamedTuple):
    """Tables with marked cells and all that is true of them; −1 where a label has no meaning (`Tables`)."""

    x_bmd: Tensor
    marks_bmd: Tensor
    rows_b: Tensor
    classes_bdd: Tensor
    dag_bdd: Tensor
    compelled_bdd: Tensor
    hidden_bdd: Tensor
    ancestors_bdd: Tensor

    @property
    def shape(self) -> Shape:
        """Tables, samples, variables."""
        return Shape(*self.x_bmd.shape)

    def ready(self) -> AnswerBatch:
        """Labels travel as bytes; the loss of classes wants integers."""
        return self._replace(classes_bdd=self.classes_bdd.long())


class StructureBatch(NamedTuple):
    """Structures with roles, and whether each column is a common child of the two parents."""

    x_bmd: Tensor
    roles_bd: Tensor
    children_bd: Tensor

    @property
    def shape(self) -> Shape:
        """Structures, samples, columns."""
        return Shape(*self.x_bmd.shape)

    def ready(self) -> StructureBatch:
        """Bytes are all that the loss needs."""
        return self


class AnyBatch(Protocol):
    """What the engine knows of a batch: a named tuple of tensors, the data first, all with tables or structures along
    their first axis, so that a burst of several batches can be cut."""

    def __iter__(self) -> Iterator[Tensor]: ...

    @property
    def shape(self) -> Shape: ...

    def ready(self) -> Self: ...


def rebuild(batch: AnyBatch, parts: Iterable[Tensor]) -> AnyBatch:
    """A batch of the same kind from other tensors."""
    made: AnyBatch = type(batch)(*parts)
    return made


# ── shapes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def shape_grid(config: TrainConfig) -> list[Shape]:
    """All shapes of a run: a staggered grid of widths × samples, each with as many tables as cells and pairs allow.

    Shapes with more cells than the largest table may have are left out.
    """
    grid, most = [], config.largest_table or math.inf
    for i, d in enumerate(config.widths):
        by_pairs = config.max_tables if config.pairs_per_step is None else config.pairs_per_step // d**2
        for j, m in enumerate(config.samples):
            n_tables = max(config.min_tables, min(by_pairs, config.cells_per_step // (m * d)))
            if (i + j) % config.stagger == 0 and m * d <= most:
                grid.append(Shape(min(n_tables, config.max_tables, ROWS_PER_CHUNK // m), m, d))
    return grid


def allowed_shapes(config: TrainConfig, step: int) -> list[Shape]:
    """Shapes the curriculum allows at a step: the reach in both directions grows linearly to the whole grid."""
    reach = config.curriculum_start + (1 - config.curriculum_start) * step / max(config.curriculum_steps, 1)
    d_limit = config.widths[0] + reach * (config.widths[-1] - config.widths[0])
    m_limit = config.samples[0] + reach * (config.samples[-1] - config.samples[0])
    grid = shape_grid(config)
    return [shape for shape in grid if shape.n_variables <= d_limit and shape.n_samples <= m_limit] or grid[:1]


def draw_shapes(rng: torch.Generator, config: TrainConfig, step: int) -> list[Shape]:
    """Shapes of one window."""
    shapes = allowed_shapes(config, step)
    weights = torch.tensor([shape.n_variables**config.size_lean for shape in shapes], dtype=torch.float64)
    picks = torch.multinomial(weights, config.window, replacement=True, generator=rng)
    return [shapes[i] for i in picks.tolist()]


# ── the stream ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Window(NamedTuple):
    """Bursts as they were simulated, and the order in which their batches are to be used."""

    bursts: list[AnyBatch]
    order: list[int]

    def batches(self, burst: int) -> list[AnyBatch]:
        """The bursts cut into batches, in order."""
        cuts = [(whole, zip(*(part.chunk(burst) for part in whole), strict=True)) for whole in self.bursts]
        parts = [rebuild(whole, cut) for whole, pieces in cuts for cut in pieces]
        return [parts[i] for i in self.order]


def simulate_window(config: TrainConfig, index: int, device: torch.device, rank: int = 0) -> Window:
    """Window `index` of a run. Ranks share shapes and order, not tables."""
    size = config.window * config.burst
    plan = torch.Generator().manual_seed(mix_seed(config.seed, index))
    shapes = draw_shapes(plan, config, index * size)
    order = torch.randperm(size, generator=plan).tolist()
    tables = torch.Generator().manual_seed(mix_seed(config.seed, index, rank + 1))
    task = task_of(config)
    return Window([task.burst(tables, config, shape, device) for shape in shapes], order)


def mix_seed(*parts: int) -> int:
    """One 63-bit seed from several integers, by a multiplicative hash; neighbours land far apart."""
    state = 0x9E3779B97F4A7C15
    for part in parts:
        state = ((state ^ (part + 0x632BE59BD9B4E019)) * 0xD1342543DE82EF95) % (1 << 64)
        state ^= state >> 29
    return state >> 1


class Windows(Dataset[Window]):
    """Windows by index, simulated on the CPU: what a `DataLoader` spreads over worker processes."""

    def __init__(self, config: TrainConfig, rank: int):
        self.config, self.rank = config, rank

    def __getitem__(self, index: int) -> Window:
        return simulate_window(self.config, index, torch.device("cpu"), self.rank)


def _leave_at_once(worker: int) -> None:
    """End a worker without taking its interpreter down: a thread that is still sending tables would abort it."""
    Finalize(None, os._exit, args=(0,), exitpriority=-100)  # after everything else that is done at the end


class Stream:
    """Iterate over batches from any step on.

    With workers, that many processes simulate on the CPU, ahead of the device and out of its way. Without, one thread
    simulates on the training device itself.
    """

    def __init__(
        self, config: TrainConfig, device: torch.device, *, rank: int = 0, first_step: int = 0, workers: int = 0
    ):
        self.config, self.device, self.rank = config, device, rank
        self.first_step, self.workers = first_step, workers

    def __iter__(self) -> Iterator[AnyBatch]:
        first, skip = divmod(self.first_step, self.config.window * self.config.burst)
        for window in self._from_workers(first) if self.workers else self._from_thread(first):
            bursts = [
                rebuild(burst, (part.to(self.device, non_blocking=True) for part in burst)) for burst in window.bursts
            ]
            for batch in Window(bursts, window.order).batches(self.config.burst)[skip:]:
                yield batch.ready()
            skip = 0

    def _from_workers(self, first: int) -> Iterator[Window]:
        loader = DataLoader(
            Windows(self.config, self.rank),
            batch_size=None,
            sampler=itertools.count(first),
            num_workers=self.workers,
            prefetch_factor=2,
            pin_memory=self.device.type == "cuda",
            multiprocessing_context="spawn",
            worker_init_fn=_leave_at_once,
        )
        yield from loader

    def _from_thread(self, first: int) -> Iterator[Window]:
        consumer = torch.cuda.current_stream(self.device) if self.device.type == "cuda" else None
        side = None if consumer is None else torch.cuda.Stream(self.device)  # one for all: the 32nd new one would be
        assert side is None or side != consumer  # the consumer's again, and it may be capturing a graph
        with ThreadPoolExecutor(1, thread_name_prefix="simulation") as pool:
            pending = pool.submit(self._simulate, first, consumer, side)
            for index in itertools.count(first + 1):
                window, ready = pending.result()
                pending = pool.submit(self._simulate, index, consumer, side)
                if consumer is not None and ready is not None:
                    consumer.wait_event(ready)
                yield window

    def _simulate(
        self, index: int, consumer: torch.cuda.Stream | None, side: torch.cuda.Stream | None
    ) -> tuple[Window, torch.cuda.Event | None]:
        """A window, and on a GPU the event after which it is ready: it is made on the CUDA stream `side`."""
        if consumer is None or side is None:
            return simulate_window(self.config, index, self.device, self.rank), None
        with torch.cuda.device(self.device), torch.cuda.stream(side):
            window = simulate_window(self.config, index, self.device, self.rank)
            ready = torch.cuda.Event()
            ready.record(side)
        for part in itertools.chain(*window.bursts):  # not to be reused while the training stream reads it
            part.record_stream(consumer)
        return window, ready


# ── structures to learn from ───────────────────────────────────────────────────────────────────────────────────────
#
# The second network never sees the true skeleton. So it learns on skeletons with mistakes: those that given edge
# weights really make on the table, or random ones (links missed, links invented, moral pairs taken for links, pairs
# called moral that are not).
#
# Labels follow the truth, whatever was made of it: a candidate c of the pair (a, b) is positive where a → c ← b is an
# immorality of the true graph, that is, both arrows are there and a and b are not adjacent. Immoralities are the same
# in all graphs of an equivalence class, so the label is a property of the CPDAG.


class Belief(NamedTuple):
    """What is believed of tables: symmetric, (B, D, D)."""

    skeleton_bdd: Tensor
    """Whether two variables are called adjacent."""
    pairs_bdd: Tensor
    """Whether two variables are asked about as parents."""
    strength_bdd: Tensor
    """How sure each link is."""


def simulate_structures(
    rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device
) -> StructureBatch:
    """`burst` batches of structures of one width bucket, in one piece: those that need the width come first."""
    settings = _settings(config)
    edges = settings.edges if _coin(rng, settings.edges_share) else None
    for _ in range(MOST_ATTEMPTS):
        pool = _collect(rng, config, shape, device, edges)
        if len(pool.x_bmd):
            return _choose(rng, pool, config, shape)
        edges = None  # weights that see no pair at all have nothing to teach
    raise ConfigError("the simulated worlds have no pair with a common neighbour; use larger or denser graphs")


def _collect(
    rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device, edges: str | None
) -> StructureBatch:
    """Structures of a few rounds of tables, until enough need the width."""
    needed, n_variables = shape.n_tables * config.burst, draw_variables(rng, config, shape)
    weights = None if edges is None else _edge_weights(edges, str(device))
    pool: list[StructureBatch] = []
    n_wide = 0
    for _ in range(MOST_ROUNDS):
        tables = _tables(rng, config, needed, n_variables, shape.n_samples, device)
        found = _fitting(config, believe(rng, _settings(config), tables, weights), shape.n_variables)
        wide_s = found.widths_s > _narrower(config, shape)
        # dense tables have far more: columns are gathered for as many as can be used
        found = found.pick(_wide_first(rng, wide_s)[:needed])
        pool.append(
            StructureBatch(gather_columns(tables.x_bmd, found), found.roles_sw, common_children(tables.dag_bdd, found))
        )
        n_wide += int(wide_s.sum())
        if n_wide >= needed:
            break
    return StructureBatch(*(torch.cat(part) for part in zip(*pool, strict=True)))


def _fitting(config: TrainConfig, belief: Belief, width: int) -> Structures:
    """All structures of tables that fit a width."""
    assert isinstance(config.network, ImmoralityNetConfig)
    found = find_structures(
        *belief, max_candidates=config.network.max_candidates, max_neighbours=config.network.max_neighbours
    )
    return found.pick(found.widths_s <= width).cut(width)


def common_children(dag_bdd: Tensor, structures: Structures) -> Tensor:
    """Whether each candidate c of parents (a, b) closes a v-structure a → c ← b of the graph; 0 for other columns.

    Examples
    --------
    >>> dag = torch.tensor([[[0, 0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]]])  # 0 → 2 ← 1 → 3 → 0
    >>> one = Structures(torch.tensor([0]), torch.tensor([[0, 1, 2, 3]]), torch.tensor([[1, 1, 2, 2]]))
    >>> common_children(dag, one)
    tensor([[0, 0, 1, 0]], dtype=torch.uint8)
    """
    table_s, columns_sw, roles_sw = structures
    a_s, b_s = columns_sw[:, 0], columns_sw[:, 1]
    arrows_bdd = dag_bdd > 0
    apart_s = ~(arrows_bdd[table_s, a_s, b_s] | arrows_bdd[table_s, b_s, a_s])
    from_a, from_b = (arrows_bdd[table_s[:, None], parent[:, None], columns_sw] for parent in (a_s, b_s))
    return (from_a & from_b & apart_s[:, None] & (roles_sw == CANDIDATE)).to(torch.uint8)


def believe(
    rng: torch.Generator, config: StructureConfig, tables: Tables, weights: LoadedWeights | None = None
) -> Belief:
    """What edge weights believe of tables, or what a careless observer of the truth would."""
    return invent_mistakes(rng, config, tables.classes_bdd) if weights is None else ask_edges(config, tables, weights)


def ask_edges(config: StructureConfig, tables: Tables, weights: LoadedWeights) -> Belief:
    """Links and moral pairs as `graphbam.directions.immoralities` takes them from a user's table.

    Rows that repeat each other count for less here too, and cells that are missing or set are known as such, or the
    mistakes would be others than those that users meet.
    """
    rows = rows_of_tables(tables)
    marks_bmd = mark_tables(tables) if weights.reads_marks else None
    p_bdd3 = weights.probabilities(tables.x_bmd, rows, marks_bmd).to(tables.x_bmd.device, torch.float32)
    skeleton_bdd = p_bdd3[..., SKELETON] >= LINKED_FROM
    return Belief(_off_diagonal(skeleton_bdd), p_bdd3[..., MORAL] >= config.moral_threshold, p_bdd3[..., SKELETON])


def invent_mistakes(rng: torch.Generator, config: StructureConfig, classes_bdd: Tensor) -> Belief:
    """Corrupt the truth: each table has its own rates, between none and the config's; some tables have no mistakes."""
    n_tables, n_variables, _ = classes_bdd.shape
    random_kbdd = _symmetric(torch.rand(5, *classes_bdd.shape, generator=rng)).to(classes_bdd.device)
    careful = torch.rand(n_tables, generator=rng) < config.flawless
    rates = torch.where(careful, 0.0, torch.rand(4, n_tables, generator=rng)).to(classes_bdd.device)
    missed, confused, invented, married = rates[:, :, None, None].unbind(0)
    linked_bdd, moral_bdd = classes_bdd == SKELETON, classes_bdd == MORAL
    kept = linked_bdd & (random_kbdd[0] >= missed * config.missed)
    taken = moral_bdd & (random_kbdd[1] < confused * config.confused)
    surplus = random_kbdd[2] < invented * config.invented / n_variables
    skeleton_bdd = _off_diagonal(kept | taken | (surplus & ~linked_bdd & ~moral_bdd))
    extra = random_kbdd[3] < married * torch.where(linked_bdd, config.married_links, config.married)
    strength_bdd = torch.where(linked_bdd, random_kbdd[4].sqrt(), random_kbdd[4])  # true links are surer on average
    return Belief(skeleton_bdd, moral_bdd | extra, strength_bdd)


def draw_variables(rng: torch.Generator, config: TrainConfig, shape: Shape) -> int:
    """Variables of the tables of a burst: any of the config's that can fill more than the next smaller width."""
    large = [d for d in config.variables if d > _narrower(config, shape)] or [max(config.variables)]
    return large[int(torch.randint(len(large), (), generator=rng))]


def draw_tables(
    rng: torch.Generator,
    config: SimulationConfig,
    *,
    n_tables: int,
    n_variables: int,
    n_samples: int,
    device: str | torch.device = "cpu",
) -> Tables:
    """Simulated tables as a network meets those of users: gaps are filled by the same rule, and scaled again."""
    size = {"n_tables": n_tables, "n_variables": n_variables, "n_samples": n_samples}
    tables = sample_tables(rng, config, **size, device=device)
    if tables.observed_bmd is None:
        return tables
    filled_bmd = standardise(fill_gaps(tables.x_bmd, tables.observed_bmd))
    whole_b11 = tables.observed_bmd.all(-1).all(-1)[:, None, None]
    return dataclasses.replace(tables, x_bmd=torch.where(whole_b11, tables.x_bmd, filled_bmd))


def rows_of_tables(tables: Tables) -> list[float]:
    """Independent rows of each table, counted as for users' tables."""
    set_bmd = None if tables.set_bmd is None else tables.set_bmd.cpu().numpy()
    return count_rows_each(tables.x_bmd.cpu().numpy(), set_bmd)


def mark_tables(tables: Tables) -> Tensor:
    """What a network that reads marks is told of each cell: was it missing, was it set? Bytes, shape (B, M, D)."""
    marks_bmd = torch.zeros_like(tables.x_bmd, dtype=torch.uint8)
    if tables.observed_bmd is not None:
        marks_bmd += MISSING * ~tables.observed_bmd
    if tables.set_bmd is not None:
        marks_bmd += SET * tables.set_bmd
    return marks_bmd


def _tables(
    rng: torch.Generator, config: TrainConfig, needed: int, n_variables: int, n_samples: int, device: torch.device
) -> Tables:
    n_tables = max(4, round(_settings(config).columns_a_structure * needed / n_variables))
    return draw_tables(
        rng, config.simulation, n_tables=n_tables, n_variables=n_variables, n_samples=n_samples, device=device
    )


def _choose(rng: torch.Generator, pool: StructureBatch, config: TrainConfig, shape: Shape) -> StructureBatch:
    """As many structures as needed, at random, wide ones first; from the start again where there are too few."""
    needed = shape.n_tables * config.burst
    order = _wide_first(rng, (pool.roles_bd > 0).sum(-1) > _narrower(config, shape))
    order = order[torch.arange(needed, device=order.device) % len(order)]
    order = order[torch.randperm(needed, generator=rng).to(order.device)]
    return StructureBatch(*(part[order] for part in pool))


def _wide_first(rng: torch.Generator, wide_s: Tensor) -> Tensor:
    """A random order of structures, with those in front that need the width."""
    order = torch.randperm(len(wide_s), generator=rng).to(wide_s.device)
    return order[(~wide_s[order]).to(torch.uint8).argsort(stable=True)]


def _narrower(config: TrainConfig, shape: Shape) -> int:
    """The next smaller width of a batch; 0 for the smallest."""
    return max(itertools.takewhile(lambda width: width < shape.n_variables, config.widths), default=0)


def _settings(config: TrainConfig) -> StructureConfig:
    assert isinstance(config.settings, StructureConfig)
    return config.settings


def _coin(rng: torch.Generator, chance: float) -> bool:
    return float(torch.rand((), generator=rng)) < chance


def _symmetric(random_kbdd: Tensor) -> Tensor:
    upper = random_kbdd.triu(1)
    return upper + upper.mT


def _off_diagonal(matrix_bdd: Tensor) -> Tensor:
    return matrix_bdd & ~torch.eye(matrix_bdd.shape[-1], dtype=torch.bool, device=matrix_bdd.device)


@functools.lru_cache(maxsize=2)
def _edge_weights(name: str, device: str) -> LoadedWeights:
    """Edge weights, loaded once per process."""
    return load_weights(name, device)
