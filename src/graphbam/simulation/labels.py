"""From directed graphs to the three classes a network learns."""

from __future__ import annotations

from torch import Tensor

from graphbam.graphs.graph import MORAL, SKELETON


def edge_classes(dag_bdd: Tensor) -> Tensor:
    """Class of every pair of variables.

    Parameters
    ----------
    dag_bdd : Tensor, shape (..., D, D)
        Entry (i, j) is 1 for i → j.

    Returns
    -------
    Tensor of int64, shape (..., D, D)
        Symmetric; 0 none, 1 skeleton, 2 moral; 0 on the diagonal.

    Examples
    --------
    >>> import torch
    >>> edge_classes(torch.tensor([[0, 0, 1], [0, 0, 1], [0, 0, 0]]))  # 0 → 2 ← 1
    tensor([[0, 2, 1],
            [2, 0, 1],
            [1, 1, 0]])
    """
    arrows_bdd = dag_bdd.float()
    adjacent_bdd = (arrows_bdd + arrows_bdd.mT) > 0
    common_child_bdd = (arrows_bdd @ arrows_bdd.mT) > 0
    married_bdd = common_child_bdd & ~adjacent_bdd
    married_bdd.diagonal(dim1=-2, dim2=-1).zero_()
    return SKELETON * adjacent_bdd.long() + MORAL * married_bdd.long()
