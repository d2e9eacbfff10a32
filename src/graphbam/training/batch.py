"""What one step learns from: named tuples of tensors, the data first. All tensors of a batch have structures or tables
along their first axis, so that a burst of several batches can be cut."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Shape(NamedTuple):
    """Size of one batch."""

    n_tables: int
    n_samples: int
    n_variables: int


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


class ColliderBatch(NamedTuple):
    """Structures with roles, and whether each column is a common child of the two parents."""

    x_bmd: Tensor
    roles_bd: Tensor
    children_bd: Tensor

    @property
    def shape(self) -> Shape:
        """Structures, samples, columns."""
        return Shape(*self.x_bmd.shape)

    def ready(self) -> ColliderBatch:
        """Bytes are all that the loss needs."""
        return self


class ArrowBatch(NamedTuple):
    """Tables with their graphs: 1 at [i, j] for i → j."""

    x_bmd: Tensor
    dag_bdd: Tensor

    @property
    def shape(self) -> Shape:
        """Tables, samples, variables."""
        return Shape(*self.x_bmd.shape)

    def ready(self) -> ArrowBatch:
        """Bytes are all that the loss needs."""
        return self


AnyBatch = Batch | ColliderBatch | ArrowBatch
