"""Structures: what the collider network looks at, found for all tables and pairs of a batch at once.

A structure belongs to a pair of variables, the *parents*, that may share a child. Its *candidates* are adjacent to both
of them, its *neighbours* to exactly one. Structures of different size stand in one array: columns on the left, absent
ones on the right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

ABSENT, PARENT, CANDIDATE, NEIGHBOUR = range(4)
"""Role of a column in a structure; absent columns are padding."""


class Question(Protocol):
    """A pair a < b that may have a common child, and the variables around it."""

    @property
    def a(self) -> int: ...

    @property
    def b(self) -> int: ...

    @property
    def candidates(self) -> NDArray[np.int64]: ...

    @property
    def neighbours(self) -> NDArray[np.int64]: ...


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
    skeleton_bdd: Tensor,
    pairs_bdd: Tensor,
    strength_bdd: Tensor,
    *,
    max_candidates: int,
    max_neighbours: int,
) -> Structures:
    """Structures of all given pairs that have a candidate.

    Parameters
    ----------
    skeleton_bdd : Tensor of bool, shape (B, D, D)
        Which variables are adjacent; symmetric.
    pairs_bdd : Tensor of bool, shape (B, D, D)
        Pairs that may share a child; only entries i < j are read.
    strength_bdd : Tensor, shape (B, D, D)
        How sure each link is, between 0 and 1: where there are too many candidates or neighbours, the surest stay.
    max_candidates, max_neighbours : int
        Most of each in a structure.

    Returns
    -------
    Structures
        In the order of tables and pairs, `2 + max_candidates + max_neighbours` columns wide (fewer for few variables).

    Examples
    --------
    >>> skeleton = torch.zeros(1, 4, 4, dtype=torch.bool)
    >>> skeleton[0, [0, 1, 2, 2, 2, 3], [2, 2, 0, 1, 3, 2]] = True  # 0 — 2 — 1 and 2 — 3
    >>> pairs = torch.zeros(1, 4, 4, dtype=torch.bool).index_put((*torch.tensor([[0], [0], [1]]),), torch.tensor(True))
    >>> found = find_structures(skeleton, pairs, skeleton.float(), max_candidates=3, max_neighbours=3)
    >>> found.columns_sw[:, :3].tolist(), found.roles_sw[:, :4].tolist()
    ([[0, 1, 2]], [[1, 1, 2, 0]])
    """
    table_s, i_s, j_s = pairs_bdd.triu(1).nonzero(as_tuple=True)
    beside_i, beside_j = skeleton_bdd[table_s, i_s], skeleton_bdd[table_s, j_s]
    keep = (beside_i & beside_j).any(-1)
    table_s, i_s, j_s, beside_i, beside_j = (part[keep] for part in (table_s, i_s, j_s, beside_i, beside_j))
    parents_s2 = torch.stack([i_s, j_s], -1)
    to_i, to_j = strength_bdd[table_s, i_s], strength_bdd[table_s, j_s]
    alone = (beside_i ^ beside_j).scatter(-1, parents_s2, False)
    children = _strongest(beside_i & beside_j, to_i * to_j, max_candidates)
    neighbours = _strongest(alone, torch.where(beside_i, to_i, to_j), max_neighbours)
    parts = [(parents_s2, torch.ones_like(parents_s2, dtype=torch.bool)), children, neighbours]
    return _pack(table_s, [column for column, _ in parts], [valid for _, valid in parts])


def pack_structures(
    asked: Iterable[Question], *, max_candidates: int, max_neighbours: int, strength_dd: ArrayLike | None = None
) -> Structures:
    """Structures of one table from a list of questions, in its order.

    Too many candidates are spread over several structures, one after the other. Of too many neighbours the surest
    stay, by `strength_dd` (D, D); without it, the first.

    Examples
    --------
    >>> from graphbam.directions.questions import Question
    >>> asked = [Question(0, 3, np.array([1, 2, 5]), np.array([4]))]
    >>> pack_structures(asked, max_candidates=2, max_neighbours=9).columns_sw.tolist()
    [[0, 3, 1, 2, 4], [0, 3, 5, 4, 0]]
    """
    rows: list[list[int]] = []
    roles: list[list[int]] = []
    for one in asked:
        near = _surest(one, strength_dd, max_neighbours)
        for start in range(0, len(one.candidates), max_candidates):
            some = one.candidates[start : start + max_candidates].tolist()
            rows.append([one.a, one.b, *some, *near])
            roles.append([PARENT] * 2 + [CANDIDATE] * len(some) + [NEIGHBOUR] * len(near))
    table_s = torch.zeros(len(rows), dtype=torch.int64)
    return Structures(table_s, _rectangle(rows).long(), _rectangle(roles).to(torch.uint8))


def _surest(one: Question, strength_dd: ArrayLike | None, most: int) -> list[int]:
    near = np.asarray(one.neighbours)
    if strength_dd is not None and len(near) > most:
        links = np.asarray(strength_dd)
        near = near[np.argsort(-np.maximum(links[one.a, near], links[one.b, near]), kind="stable")]
    result: list[int] = near[:most].tolist()
    return result


def _rectangle(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of different length as one array, zeros at the end."""
    width = max((len(row) for row in rows), default=0)
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows]).view(len(rows), width)


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


def _strongest(member_sd: Tensor, strength_sd: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Columns of the `most` strongest members, and which of those places are taken."""
    ranked = torch.where(member_sd, strength_sd.float(), -1.0)
    values, columns = ranked.topk(min(most, ranked.shape[-1]), dim=-1)
    return columns, values >= 0


def _pack(table_s: Tensor, columns: list[Tensor], valid: list[Tensor]) -> Structures:
    """Put the parts side by side, taken places first; the order of parts and within parts stays."""
    roles = [taken.to(torch.uint8) * role for taken, role in zip(valid, (PARENT, CANDIDATE, NEIGHBOUR), strict=True)]
    roles_sw, columns_sw = torch.cat(roles, -1), torch.cat(columns, -1)
    order = (roles_sw == ABSENT).to(torch.uint8).argsort(dim=-1, stable=True)
    roles_sw = roles_sw.gather(-1, order)
    return Structures(table_s, columns_sw.gather(-1, order) * (roles_sw != ABSENT), roles_sw)
