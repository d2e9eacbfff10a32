"""Structures to learn from: pairs of variables of simulated tables, as an imperfect edge network would present them.

The collider network never sees the true skeleton. So it learns on skeletons with mistakes: those that given edge
weights really make on the table, or random ones (links missed, links invented, moral pairs taken for links, pairs
called moral that are not).

Labels follow the truth, whatever was made of it: a candidate c of the pair (a, b) is positive where a → c ← b is a
v-structure of the true graph, that is, both arrows are there and a and b are not adjacent. V-structures are the same in
all graphs of an equivalence class, so the label is a property of the CPDAG.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import torch
from torch import Tensor

from graphbam.errors import ConfigError
from graphbam.graphs.graph import MORAL, SKELETON
from graphbam.nn.immorality_net import ColliderNetConfig
from graphbam.nn.structures import CANDIDATE, Structures, find_structures, gather_columns
from graphbam.nn.weights import LoadedWeights, load_weights
from graphbam.simulation.values import Tables, sample_tables
from graphbam.training.batch import ColliderBatch, Shape
from graphbam.training.config import StructureConfig, TrainConfig

MOST_ROUNDS = 4
"""Times that tables are simulated for one burst; if structures are still too few, narrower ones or copies fill up."""


MOST_ATTEMPTS = 20
"""Times that a burst is begun again because no table had any structure."""


class Belief(NamedTuple):
    """What is believed of tables: symmetric, (B, D, D)."""

    skeleton_bdd: Tensor
    """Whether two variables are called adjacent."""
    pairs_bdd: Tensor
    """Whether two variables are asked about as parents."""
    strength_bdd: Tensor
    """How sure each link is."""


def simulate_structures(rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> ColliderBatch:
    """`burst` batches of structures of one width bucket, in one piece: those that need the width come first."""
    assert config.structures is not None
    edges = config.structures.edges if _coin(rng, config.structures.edges_share) else None
    for _ in range(MOST_ATTEMPTS):
        pool = _collect(rng, config, shape, device, edges)
        if len(pool.x_bmd):
            return _choose(rng, pool, config, shape)
        edges = None  # weights that see no pair at all have nothing to teach
    raise ConfigError("the simulated worlds have no pair with a common neighbour; use larger or denser graphs")


def _collect(
    rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device, edges: str | None
) -> ColliderBatch:
    """Structures of a few rounds of tables, until enough need the width."""
    assert config.structures is not None
    needed, n_variables = shape.n_tables * config.burst, draw_variables(rng, config, shape)
    weights = None if edges is None else _edge_weights(edges, str(device))
    pool: list[ColliderBatch] = []
    n_wide = 0
    for _ in range(MOST_ROUNDS):
        tables = _tables(rng, config, needed, n_variables, shape.n_samples, device)
        found = _fitting(config, believe(rng, config.structures, tables, weights), shape.n_variables)
        wide_s = found.widths_s > _narrower(config, shape)
        # dense tables have far more: columns are gathered for as many as can be used
        found = found.pick(_wide_first(rng, wide_s)[:needed])
        pool.append(
            ColliderBatch(gather_columns(tables.x_bmd, found), found.roles_sw, common_children(tables.dag_bdd, found))
        )
        n_wide += int(wide_s.sum())
        if n_wide >= needed:
            break
    return ColliderBatch(*(torch.cat(part) for part in zip(*pool, strict=True)))


def _fitting(config: TrainConfig, belief: Belief, width: int) -> Structures:
    """All structures of tables that fit a width."""
    assert isinstance(config.network, ColliderNetConfig)
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
    """Links above one half, and pairs that are moral with some small probability at least."""
    p_bdd3 = weights.probabilities(tables.x_bmd).to(tables.x_bmd.device, torch.float32)
    skeleton_bdd = p_bdd3[..., SKELETON] > 0.5
    return Belief(_off_diagonal(skeleton_bdd), p_bdd3[..., MORAL] > config.moral_threshold, p_bdd3[..., SKELETON])


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


def _tables(
    rng: torch.Generator, config: TrainConfig, needed: int, n_variables: int, n_samples: int, device: torch.device
) -> Tables:
    assert config.structures is not None
    n_tables = max(4, round(config.structures.columns_a_structure * needed / n_variables))
    return sample_tables(
        rng, config.simulation, n_tables=n_tables, n_variables=n_variables, n_samples=n_samples, device=device
    )


def _choose(rng: torch.Generator, pool: ColliderBatch, config: TrainConfig, shape: Shape) -> ColliderBatch:
    """As many structures as needed, at random, wide ones first; from the start again where there are too few."""
    needed = shape.n_tables * config.burst
    order = _wide_first(rng, (pool.roles_bd > 0).sum(-1) > _narrower(config, shape))
    order = order[torch.arange(needed, device=order.device) % len(order)]
    order = order[torch.randperm(needed, generator=rng).to(order.device)]
    return ColliderBatch(*(part[order] for part in pool))


def _wide_first(rng: torch.Generator, wide_s: Tensor) -> Tensor:
    """A random order of structures, with those in front that need the width."""
    order = torch.randperm(len(wide_s), generator=rng).to(wide_s.device)
    return order[(~wide_s[order]).to(torch.uint8).argsort(stable=True)]


def _narrower(config: TrainConfig, shape: Shape) -> int:
    """The next smaller width of a batch; 0 for the smallest."""
    return max(itertools.takewhile(lambda width: width < shape.n_variables, config.widths), default=0)


def _coin(rng: torch.Generator, chance: float) -> bool:
    return float(torch.rand((), generator=rng)) < chance


def _symmetric(random_kbdd: Tensor) -> Tensor:
    upper = random_kbdd.triu(1)
    return upper + upper.mT


def _off_diagonal(matrix_bdd: Tensor) -> Tensor:
    return matrix_bdd & ~torch.eye(matrix_bdd.shape[-1], dtype=torch.bool, device=matrix_bdd.device)


@functools.lru_cache(maxsize=2)
def _edge_weights(name: str, device: str) -> LoadedWeights:
    """Edge weights, loaded once a process."""
    return load_weights(name, device)
