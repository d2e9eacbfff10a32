"""Random directed acyclic graphs, many at once.

A kind of graph is a function ``(rng, degree_b, n_variables) -> adj_bdd``. It returns boolean adjacency
matrices whose variables stand in causal order, so they are strictly upper triangular and ``adj_bdd[b, i, j]``
means i → j. The columns are shuffled later, by `graphbam.simulation.plan`, together with the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

Graphs = Callable[[torch.Generator, Tensor, int], Tensor]

GRAPHS: dict[str, Graphs] = {}
"""Kinds of graph by name."""


def graph_kind(name: str) -> Callable[[Graphs], Graphs]:
    """Register a kind of graph under `name`.

    Examples
    --------
    >>> @graph_kind("chain")
    ... def chain(rng, degree_b, n_variables):
    ...     line_dd = torch.ones(n_variables, n_variables).triu(1).tril(1).bool()
    ...     return line_dd.expand(len(degree_b), -1, -1).clone()
    >>> sample_dags(torch.Generator(), ["chain"], torch.tensor([1.0]), 4).sum().item()
    3
    >>> del GRAPHS["chain"]
    """

    def register(draw: Graphs) -> Graphs:
        GRAPHS[name] = draw
        return draw

    return register


def sample_dags(
    rng: torch.Generator, kinds: list[str], degree_b: Tensor, n_variables: int, max_parents: int | None = None
) -> Tensor:
    """One graph for each entry of `kinds`, variables in causal order.

    Parameters
    ----------
    rng : torch.Generator
        On the CPU.
    kinds : list of str
        A key of `GRAPHS` for each table.
    degree_b : Tensor, shape (B,)
        Expected degree of each table.
    n_variables : int
        Number of variables d.
    max_parents : int, optional
        Nodes with more parents lose the surplus, chosen at random.

    Returns
    -------
    Tensor, shape (B, d, d)
        Boolean, strictly upper triangular; entry (i, j) means i → j.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> adj_bdd = sample_dags(rng, ["erdos-renyi"] * 500, torch.full((500,), 3.0), 20)
    >>> degree = 2 * adj_bdd.sum() / (500 * 20)
    >>> bool(abs(degree - 3) < 0.1)
    True
    """
    adj_bdd = torch.zeros(len(kinds), n_variables, n_variables, dtype=torch.bool)
    for kind in sorted(set(kinds)):
        tables = torch.tensor([b for b, name in enumerate(kinds) if name == kind])
        adj_bdd[tables] = GRAPHS[kind](rng, degree_b[tables], n_variables)
    return adj_bdd if max_parents is None else limit_parents(rng, adj_bdd, max_parents)


def limit_parents(rng: torch.Generator, adj_bdd: Tensor, max_parents: int) -> Tensor:
    """Drop parents at random until no node has more than `max_parents`.

    Only hubs are touched, and the rest of the graph keeps its shape.

    Examples
    --------
    >>> full_dd = torch.ones(6, 6).triu(1).bool()
    >>> limit_parents(torch.Generator().manual_seed(0), full_dd[None], 2).sum(1).tolist()
    [[0, 1, 2, 2, 2, 2]]
    """
    table, child = (adj_bdd.sum(1) > max_parents).nonzero(as_tuple=True)
    parents_nd = adj_bdd[table, :, child]
    keys_nd = torch.rand(parents_nd.shape, generator=rng).masked_fill(~parents_nd, -1.0)
    kept_nk = keys_nd.topk(min(max_parents, keys_nd.shape[1]), dim=1).indices
    limited_bdd = adj_bdd.clone()
    limited_bdd[table, :, child] = torch.zeros_like(parents_nd).scatter_(1, kept_nk, True)
    return limited_bdd


def depth_levels(adj_bdd: Tensor) -> Tensor:
    """Length of the longest directed path that ends in each node.

    Parameters
    ----------
    adj_bdd : Tensor, shape (B, d, d)
        Boolean, variables in causal order.

    Returns
    -------
    Tensor, shape (B, d)
        0 for nodes without parents; always larger than the level of every parent.

    Examples
    --------
    >>> depth_levels(torch.tensor([[[0, 1, 1], [0, 0, 1], [0, 0, 0]]]).bool())
    tensor([[0, 1, 2]])
    """
    n_tables, n_variables, _ = adj_bdd.shape
    arrows_jbi = adj_bdd.permute(2, 0, 1).contiguous().to(torch.int16)
    level_bd = torch.zeros(n_tables, n_variables, dtype=torch.int16)
    for j in range(1, n_variables):
        above_bj = (level_bd[:, :j] + 1) * arrows_jbi[j, :, :j]
        level_bd[:, j] = above_bj.amax(1)
    return level_bd.long()


def draw_degrees(
    rng: torch.Generator,
    degrees: Mapping[float, float],
    n_tables: int,
    n_variables: int,
    degree_share: float = 1.0,
    max_density: float = 1.0,
) -> Tensor:
    """Expected degrees, one per table, that a graph of `n_variables` can have.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> draw_degrees(rng, {1: 1, 2: 1, 3: 1, 4: 1}, 200, 9, degree_share=1 / 3).unique().tolist()
    [1.0, 2.0, 3.0]
    """
    largest = max(math.floor(degree_share * n_variables + 1e-9), min(degrees))
    kept = {degree: weight for degree, weight in degrees.items() if degree <= largest}
    if not sum(kept.values()):
        kept = dict(degrees)
    weights = torch.tensor(list(kept.values()), dtype=torch.float)
    drawn_b = torch.tensor(list(kept))[torch.multinomial(weights, n_tables, True, generator=rng)]
    return drawn_b.float().clamp(max=max_density * (n_variables - 1))


# ── kinds of graph ──────────────────────────────────────────────────────────────────────────────────────────


@graph_kind("erdos-renyi")
def erdos_renyi(rng: torch.Generator, degree_b: Tensor, n_variables: int) -> Tensor:
    """Every pair is an edge with probability q/(d−1), independently (the paper's graphs)."""
    chance_bdd = torch.ones(len(degree_b), n_variables, n_variables)
    return _draw_pairs(rng, _match_degree(chance_bdd, degree_b))


@graph_kind("scale-free")
def scale_free(rng: torch.Generator, degree_b: Tensor, n_variables: int) -> Tensor:
    """Preferential attachment: each new node links to about q/2 old ones, the popular ones first.

    Half of the tables have hubs with many children, half (the same construction with every arrow and the
    order reversed) hubs with many parents.
    """
    adj_bdd = _attach(rng, degree_b, n_variables)
    many_parents = torch.rand(len(degree_b), generator=rng) < 0.5
    reversed_bdd = adj_bdd.flip(1, 2).transpose(1, 2)
    return torch.where(many_parents[:, None, None], reversed_bdd, adj_bdd)


def _attach(rng: torch.Generator, degree_b: Tensor, n_variables: int) -> Tensor:
    n_tables = len(degree_b)
    # Node t can link to at most t old nodes; a little more than q/2 each makes up for the first ones.
    links_b = degree_b / 2 * (1 + degree_b / (2 * n_variables))
    n_links_bd = (links_b[:, None] + torch.rand(n_tables, n_variables, generator=rng)).floor()
    luck_bdd = torch.rand(n_tables, n_variables, n_variables, generator=rng).log_()
    adj_bdd = torch.zeros(n_tables, n_variables, n_variables, dtype=torch.bool)
    degree_so_far_bd = torch.ones(n_tables, n_variables)
    most = int(n_links_bd.max()) if n_variables > 1 else 0
    for t in range(1, n_variables):
        keys_bt = luck_bdd[:, t, :t] / degree_so_far_bd[:, :t]  # largest keys = draws without replacement
        chosen_bk = keys_bt.topk(min(most, t), dim=1).indices
        used_bk = torch.arange(chosen_bk.shape[1]) < n_links_bd[:, t, None]
        adj_bdd[:, :, t].scatter_(1, chosen_bk, used_bk)
        degree_so_far_bd.scatter_add_(1, chosen_bk, used_bk.float())
        degree_so_far_bd[:, t] += used_bk.sum(1)
    return adj_bdd


@graph_kind("regulators")
def regulators(rng: torch.Generator, degree_b: Tensor, n_variables: int) -> Tensor:
    """A few nodes have all the children, and the k-th most popular one 1/kᵃ as many as the first.

    As in gene networks: between a twentieth and a third of all nodes regulate, a lies between 0.7 and 1.7, and the most
    popular one may act on half of the nodes or more.
    """
    n_tables, place = len(degree_b), torch.arange(n_variables)
    share_b1, steep_b1 = torch.rand(2, n_tables, 1, generator=rng)
    fewest_b1 = degree_b[:, None].ceil()  # regulators enough for that many edges
    count_b1 = torch.maximum((0.05 + 0.3 * share_b1) * n_variables, fewest_b1).clamp(max=n_variables).ceil()
    rank_bd = torch.rand(n_tables, n_variables, generator=rng).masked_fill(place >= count_b1, 2.0).argsort(1).argsort(1)
    popular_bd = (1.0 + rank_bd) ** -(0.7 + steep_b1) * (place < count_b1)
    chance_bdd = popular_bd[:, :, None].expand(-1, -1, n_variables)
    for _ in range(10):  # probabilities end at 1, so what the most popular cannot take goes to the others
        chance_bdd = _match_degree(chance_bdd, degree_b).clamp(max=1.0)
    return _draw_pairs(rng, chance_bdd)


@graph_kind("small-world")
def small_world(rng: torch.Generator, degree_b: Tensor, n_variables: int) -> Tensor:
    """Ring lattice in which a table's own share (5 to 50 %) of edges is rewired to random pairs."""
    place = torch.arange(n_variables)
    gap_dd = (place[:, None] - place).abs()
    distance_dd = torch.minimum(gap_dd, n_variables - gap_dd).float()
    chance_bdd = (degree_b[:, None, None] / 2 - distance_dd + 1).clamp(0, 1)
    rewired_b = torch.empty(len(degree_b)).uniform_(0.05, 0.5, generator=rng)[:, None, None]
    chance_bdd = (1 - rewired_b) * chance_bdd + rewired_b * degree_b[:, None, None] / max(n_variables - 1, 1)
    return _draw_pairs(rng, _shuffle_nodes(rng, _match_degree(chance_bdd, degree_b)))


@graph_kind("stochastic-block")
def stochastic_block(rng: torch.Generator, degree_b: Tensor, n_variables: int) -> Tensor:
    """Two to five groups, dense inside, sparse (2 to 30 % of that) between."""
    n_tables = len(degree_b)
    n_blocks_b = torch.randint(2, 6, (n_tables, 1), generator=rng)
    block_bd = (torch.rand(n_tables, n_variables, generator=rng) * n_blocks_b).long()
    same_bdd = block_bd[:, :, None] == block_bd[:, None, :]
    between_b = torch.empty(n_tables).uniform_(0.02, 0.3, generator=rng)[:, None, None]
    return _draw_pairs(rng, _match_degree(torch.where(same_bdd, 1.0, between_b), degree_b))


@graph_kind("geometric")
def geometric(rng: torch.Generator, degree_b: Tensor, n_variables: int) -> Tensor:
    """Points on a torus, joined when closer than the radius that gives the expected degree."""
    point_bd2 = torch.rand(len(degree_b), n_variables, 2, generator=rng)
    gap_bdd2 = (point_bd2[:, :, None] - point_bd2[:, None]).abs()
    square_bdd = torch.minimum(gap_bdd2, 1 - gap_bdd2).square().sum(-1)
    radius2_b = degree_b / (max(n_variables - 1, 1) * math.pi)  # exact while the disc fits the torus
    return (square_bdd < radius2_b[:, None, None]).triu(1)


@graph_kind("bipartite-layers")
def bipartite_layers(rng: torch.Generator, degree_b: Tensor, n_variables: int) -> Tensor:
    """Two to four layers; edges run only from one layer to the next."""
    n_layers_b = torch.randint(2, 5, (len(degree_b), 1), generator=rng).clamp(max=n_variables)
    layer_bd = torch.arange(n_variables) * n_layers_b // n_variables
    step_bdd = layer_bd[:, None, :] - layer_bd[:, :, None]
    return _draw_pairs(rng, _match_degree((step_bdd == 1).float(), degree_b))


def _match_degree(chance_bdd: Tensor, degree_b: Tensor) -> Tensor:
    """Scale pair probabilities so that the mean degree is `degree_b`, as far as probabilities allow."""
    upper_bdd = chance_bdd.triu(1)
    n_variables = chance_bdd.shape[-1]
    edges_b = upper_bdd.sum((1, 2)).clamp(min=1e-9)
    return upper_bdd * (degree_b * n_variables / 2 / edges_b)[:, None, None]


def _draw_pairs(rng: torch.Generator, chance_bdd: Tensor) -> Tensor:
    return (torch.rand(chance_bdd.shape, generator=rng) < chance_bdd).triu(1)


def _shuffle_nodes(rng: torch.Generator, upper_bdd: Tensor) -> Tensor:
    """Relabel the nodes of undirected weights, given and returned as upper triangles."""
    full_bdd = upper_bdd + upper_bdd.transpose(1, 2)
    order_bd = torch.rand(full_bdd.shape[:2], generator=rng).argsort(1)
    rows_bdd = full_bdd.gather(1, order_bd[:, :, None].expand_as(full_bdd))
    return rows_bdd.gather(2, order_bd[:, None, :].expand_as(full_bdd)).triu(1)
