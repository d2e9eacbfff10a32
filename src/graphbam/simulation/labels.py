"""What is true of every pair of shown variables, for many graphs at once.

A world may have more variables than its table shows. Labels are those of the *latent projection* on the shown ones:
i → j where a directed path leads from i to j through hidden variables only, and i ↔ j where a hidden variable reaches
both in that way. Ancestors are the same in the projection as in the world. Graphs are adjacency tensors as in
`graphbam.graphs.graph`, with leading dimension B; feedback loops are allowed, except between two variables.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

NOT_APPLICABLE = -1
"""Value of a label that has no meaning in a table."""


@dataclass(frozen=True)
class Labels:
    """Labels of all ordered pairs of shown variables, int8, each of shape (B, D, D) with a zero diagonal."""

    dag_bdd: Tensor
    """1 for i → j in the latent projection. With feedback it is not acyclic."""
    hidden_bdd: Tensor
    """1 for i ↔ j: a hidden variable acts on both, through hidden ones if at all. Symmetric."""
    ancestors_bdd: Tensor
    """1 where a directed path leads from i to j."""
    compelled_bdd: Tensor
    """1 for an arrow i → j that the CPDAG of the table's graph directs too, 0 for one it does not direct and for pairs
    without an arrow. A table whose graph has a feedback loop or any i ↔ j has no CPDAG: −1 everywhere."""

    def to(self, device: torch.device) -> Labels:
        """The same labels on `device`, copied without waiting."""
        return Labels(*(send(getattr(self, field.name), device) for field in dataclasses.fields(self)))


def label_graphs(adj_bee: Tensor, shown_bd: Tensor, joined_bdd: Tensor | None = None) -> Labels:
    """Labels of the shown variables of worlds with E variables in all.

    Parameters
    ----------
    adj_bee : Tensor, shape (B, E, E)
        Boolean; entry (i, j) means i → j.
    shown_bd : Tensor, shape (B, D)
        Which variable each column of the table shows.
    joined_bdd : Tensor, shape (B, D, D), optional
        Further pairs of columns with a hidden common cause, one that is no variable of `adj_bee`.

    Returns
    -------
    Labels
        On the device of `adj_bee`; better the CPU, since it waits for some results.

    Examples
    --------
    0 → 1 → 2 and 0 → 3: without 1, 0 → 2; without 0, 1 ↔ 3.

    >>> adj_bee = torch.zeros(2, 4, 4, dtype=torch.bool)
    >>> adj_bee[:, [0, 1, 0], [1, 2, 3]] = True
    >>> labels = label_graphs(adj_bee, torch.tensor([[0, 2, 3], [1, 2, 3]]))
    >>> labels.dag_bdd.nonzero().tolist()
    [[0, 0, 1], [0, 0, 2], [1, 0, 1]]
    >>> labels.hidden_bdd[1].nonzero().tolist()
    [[0, 2], [2, 0]]
    """
    n_variables, n_shown = adj_bee.shape[-1], shown_bd.shape[-1]
    joined_bee = torch.zeros_like(adj_bee)
    if n_shown < n_variables:
        is_hidden_be = torch.ones(adj_bee.shape[:2], dtype=torch.bool, device=adj_bee.device).scatter_(
            1, shown_bd, False
        )
        adj_bee, joined_bee = project(adj_bee, is_hidden_be)
    dag_bdd, hidden_bdd = permute(adj_bee, shown_bd), permute(joined_bee, shown_bd)
    if joined_bdd is not None:
        hidden_bdd = hidden_bdd | joined_bdd
    before_bdd = reach(dag_bdd)
    loops_b = before_bdd.diagonal(dim1=-2, dim2=-1).any(-1)
    no_cpdag_b = loops_b | hidden_bdd.flatten(1).any(-1)
    compelled_bdd = compelled(dag_bdd, before_bdd).to(torch.int8)
    compelled_bdd[no_cpdag_b] = NOT_APPLICABLE
    off_diagonal = ~torch.eye(n_shown, dtype=torch.bool, device=adj_bee.device)
    return Labels(
        dag_bdd.to(torch.int8), hidden_bdd.to(torch.int8), (before_bdd & off_diagonal).to(torch.int8), compelled_bdd
    )


def project(adj_bdd: Tensor, is_hidden_bd: Tensor) -> tuple[Tensor, Tensor]:
    """Directed and bidirected edges of the latent projection; those of hidden variables mean nothing.

    Examples
    --------
    >>> fork_bdd = torch.tensor([[[0, 1, 1], [0, 0, 0], [0, 0, 0]]]).bool()
    >>> directed, bidirected = project(fork_bdd, torch.tensor([[True, False, False]]))
    >>> directed[0, 1:, 1:].any().item(), bidirected[0].nonzero().tolist()
    (False, [[1, 2], [2, 1]])
    """
    within_bdd = adj_bdd & is_hidden_bd[:, :, None] & is_hidden_bd[:, None, :]
    onward_bdd = _join(reach(within_bdd), adj_bdd) | adj_bdd  # i ⇝ j whose variables after i, before j, are hidden
    onward_bdd = onward_bdd & is_hidden_bd[:, :, None]
    directed_bdd = adj_bdd | _join(adj_bdd & is_hidden_bd[:, None, :], onward_bdd)
    bidirected_bdd = _join(onward_bdd.mT, onward_bdd)
    off_diagonal = ~torch.eye(adj_bdd.shape[-1], dtype=torch.bool, device=adj_bdd.device)
    return directed_bdd & off_diagonal, bidirected_bdd & off_diagonal


def reach(adj_bdd: Tensor) -> Tensor:
    """Where a directed path of one arrow or more leads from i to j; on the diagonal, from i back to i.

    Examples
    --------
    >>> reach(torch.tensor([[[0, 1, 0], [0, 0, 1], [0, 0, 0]]]).bool()).int()
    tensor([[[0, 1, 1],
             [0, 0, 1],
             [0, 0, 0]]], dtype=torch.int32)
    """
    path_bdd, n_paths = adj_bdd, -1
    while (n_now := int(path_bdd.sum())) != n_paths:
        path_bdd, n_paths = path_bdd | _join(path_bdd, path_bdd), n_now
    return path_bdd


def compelled(dag_bdd: Tensor, before_bdd: Tensor | None = None) -> Tensor:
    """Arrows that point the same way in all DAGs with the same conditional independences.

    The rule of `graphbam.graphs.equivalence.dag_to_cpdag`, for all graphs at once: arrows into a variable are decided
    together, variable after variable in causal order, by its latest parent. Graphs with loops give nothing useful.

    Parameters
    ----------
    dag_bdd : Tensor, shape (B, D, D)
        Boolean.
    before_bdd : Tensor, shape (B, D, D), optional
        What `reach` gives.

    Returns
    -------
    Tensor of bool, shape (B, D, D)

    Examples
    --------
    >>> collider, chain = [[0, 0, 1], [0, 0, 1], [0, 0, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> compelled(torch.tensor([collider, chain]).bool()).sum((1, 2)).tolist()
    [2, 0]
    """
    n_tables, n_variables, _ = dag_bdd.shape
    before_bdd = reach(dag_bdd) if before_bdd is None else before_bdd
    order_bd = before_bdd.sum(1).argsort(1)  # whoever has more ancestors comes later
    into_jbi = permute(dag_bdd, order_bd).permute(2, 0, 1).contiguous()  # [j, b, i]: arrow i → j, i and j by place
    decided_jbi = torch.zeros_like(into_jbi)
    place_d, tables = torch.arange(n_variables, device=dag_bdd.device), torch.arange(n_tables, device=dag_bdd.device)
    for j in range(1, n_variables):
        parents_bi = into_jbi[j]
        latest_b = (parents_bi * place_d).amax(1)
        inherited_bi = decided_jbi[latest_b, tables]
        unmarried_bi = parents_bi & ~into_jbi[latest_b, tables] & (place_d != latest_b[:, None])
        is_all_b1 = (unmarried_bi | (inherited_bi & ~parents_bi)).any(1, keepdim=True)
        decided_jbi[j] = parents_bi & (is_all_b1 | inherited_bi)
    return permute(decided_jbi.permute(1, 2, 0), order_bd.argsort(1))


def permute(adj_bee: Tensor, shown_bd: Tensor) -> Tensor:
    """The part of each matrix that belongs to the shown variables, in their order."""
    rows_bde = adj_bee.gather(1, shown_bd[:, :, None].expand(-1, -1, adj_bee.shape[2]))
    return rows_bde.gather(2, shown_bd[:, None, :].expand(-1, shown_bd.shape[1], -1))


def send(values: Tensor, device: torch.device) -> Tensor:
    """Copy to a device without waiting; only pinned memory can be copied so."""
    if device.type == "cuda" and values.numel():
        values = values.pin_memory()
    return values.to(device, non_blocking=True)


def _join(first_bdd: Tensor, second_bdd: Tensor) -> Tensor:
    """True at (i, k) if first (i, j) and second (j, k) for some j; floats reach the fast matrix product."""
    return torch.bmm(first_bdd.float(), second_bdd.float()) > 0
