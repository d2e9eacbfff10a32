"""Structures: what the collider network looks at, found for all tables and pairs of a batch at once.

A structure belongs to a pair of variables, the *parents*, that may share a child. Its *candidates* are adjacent to both
of them, its *neighbours* to exactly one. Structures of different size stand in one array: columns on the left, absent
ones on the right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ABSENT, PARENT, CANDIDATE, NEIGHBOUR = range(4)
"""Role of a column in a structure; absent columns are padding."""


class Structures(NamedTuple):
    """S structures of at most W columns each; every one has two parents first, then its candidates and neighbours."""

    table_s: Tensor
    """Table that each structure belongs to, int64."""
    columns_sw: Tensor
    """Columns of that table, int64; 0 where absent."""
    roles_sw: Tensor
    """`PARENT`, `CANDIDATE`, `NEIGHBOUR` or `ABSENT`, uint8."""

    def pick(self, key: Tensor | slice) -> Structures:
        """Some of the structures."""
        return Structures(self.table_s[key], self.columns_sw[key], self.roles_sw[key])

    def triples(self) -> NDArray[np.int64]:
        """Rows (a, c, b), one for each candidate c of parents a and b, structure by structure."""
        s, w = (self.roles_sw == CANDIDATE).nonzero(as_tuple=True)
        triples = torch.stack([self.columns_sw[s, 0], self.columns_sw[s, w], self.columns_sw[s, 1]], -1)
        return np.asarray(triples.cpu().numpy())

    @property
    def widths_s(self) -> Tensor:
        """How many columns each structure has."""
        return (self.roles_sw != ABSENT).sum(-1)

    def cut(self, width: int) -> Structures:
        """The same in an array of another width: absent columns go, or come."""
        surplus = width - self.roles_sw.shape[-1]
        pad = torch.nn.functional.pad
        return Structures(self.table_s, pad(self.columns_sw, (0, surplus)), pad(self.roles_sw, (0, surplus)))


def find_structures(
    links_bdd: Tensor,
    pairs_bdd: Tensor,
    strength_bdd: Tensor,
    *,
    max_candidates: int,
    max_neighbours: int,
    all_candidates: bool = False,
) -> Structures:
    """Structures of all given pairs that have a candidate.

    Parameters
    ----------
    links_bdd : Tensor of bool, shape (B, D, D)
        Which variables are adjacent; symmetric.
    pairs_bdd : Tensor of bool, shape (B, D, D)
        Pairs that may share a child; only entries i < j are read.
    strength_bdd : Tensor, shape (B, D, D)
        How sure each link is, between 0 and 1: where there are too many candidates or neighbours, the surest stay.
    max_candidates, max_neighbours : int
        Most of each in a structure.
    all_candidates : bool
        Whether those that are too many go into further structures of the same pair, instead of none.

    Returns
    -------
    Structures
        In the order of tables and pairs, `2 + max_candidates + max_neighbours` columns wide (fewer for few variables).

    Examples
    --------
    >>> links = torch.zeros(1, 4, 4, dtype=torch.bool)
    >>> links[0, [0, 1, 2, 2, 2, 3], [2, 2, 0, 1, 3, 2]] = True  # 0 — 2 — 1 and 2 — 3
    >>> pairs = torch.zeros(1, 4, 4, dtype=torch.bool).index_put((*torch.tensor([[0], [0], [1]]),), torch.tensor(True))
    >>> found = find_structures(links, pairs, links.float(), max_candidates=3, max_neighbours=3)
    >>> found.columns_sw[:, :3].tolist(), found.roles_sw[:, :4].tolist()
    ([[0, 1, 2]], [[1, 1, 2, 0]])
    """
    table_s, i_s, j_s = pairs_bdd.triu(1).nonzero(as_tuple=True)
    beside_i, beside_j = links_bdd[table_s, i_s], links_bdd[table_s, j_s]
    n_candidates_s = (beside_i & beside_j).sum(-1)
    n_parts_s = -(n_candidates_s // -max_candidates) if all_candidates else (n_candidates_s > 0).long()
    which_s = torch.arange(len(table_s), device=table_s.device).repeat_interleave(n_parts_s)
    part_s = torch.arange(len(which_s), device=table_s.device) - (n_parts_s.cumsum(0) - n_parts_s)[which_s]
    table_s, i_s, j_s, beside_i, beside_j = (part[which_s] for part in (table_s, i_s, j_s, beside_i, beside_j))
    parents_s2 = torch.stack([i_s, j_s], -1)
    to_i, to_j = strength_bdd[table_s, i_s], strength_bdd[table_s, j_s]
    alone = (beside_i ^ beside_j).scatter(-1, parents_s2, False)
    children = _strongest(beside_i & beside_j, to_i * to_j, max_candidates, part_s)
    neighbours = _strongest(alone, torch.where(beside_i, to_i, to_j), max_neighbours)
    parts = [(parents_s2, torch.ones_like(parents_s2, dtype=torch.bool)), children, neighbours]
    return _pack(table_s, [column for column, _ in parts], [valid for _, valid in parts])


def gather_columns(x_bmd: Tensor, structures: Structures) -> Tensor:
    """The columns of each structure, (S, M, W); absent ones are 0.

    Examples
    --------
    >>> one = Structures(torch.tensor([0]), torch.tensor([[2, 0, 0]]), torch.tensor([[1, 1, 0]]))
    >>> gather_columns(torch.tensor([[[5.0, 6.0, 7.0]]]), one)
    tensor([[[7., 5., 0.]]])
    """
    table_s, columns_sw, roles_sw = structures
    rows_nm = x_bmd.mT.flatten(0, 1)
    x_swm = rows_nm[table_s[:, None] * x_bmd.shape[-1] + columns_sw]
    return (x_swm * (roles_sw != ABSENT)[..., None]).mT.contiguous()


def _strongest(member_sd: Tensor, strength_sd: Tensor, most: int, part_s: Tensor | int = 0) -> tuple[Tensor, Tensor]:
    """Columns of the `most` strongest members, or of the next so many, and which of those places are taken."""
    n_variables = member_sd.shape[-1]
    ranked_sd = torch.where(member_sd, strength_sd, -1.0).argsort(dim=-1, descending=True, stable=True)
    places_k = torch.arange(min(most, n_variables), device=member_sd.device)
    rank_sk = (torch.as_tensor(part_s).reshape(-1, 1) * most + places_k).expand(len(member_sd), -1)
    columns_sk = ranked_sd.gather(-1, rank_sk.clamp(max=n_variables - 1))
    return columns_sk, rank_sk < member_sd.sum(-1, keepdim=True)


def _pack(table_s: Tensor, columns: list[Tensor], valid: list[Tensor]) -> Structures:
    """Put the parts side by side, taken places first; the order of parts and within parts stays."""
    roles = [taken.to(torch.uint8) * role for taken, role in zip(valid, (PARENT, CANDIDATE, NEIGHBOUR), strict=True)]
    roles_sw, columns_sw = torch.cat(roles, -1), torch.cat(columns, -1)
    order = (roles_sw == ABSENT).to(torch.uint8).argsort(dim=-1, stable=True)
    roles_sw = roles_sw.gather(-1, order)
    return Structures(table_s, columns_sw.gather(-1, order) * (roles_sw != ABSENT), roles_sw)
