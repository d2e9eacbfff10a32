"""Products and decompositions of large matrices, by torch, on as many threads as it is told to take.

numpy's library (OpenBLAS) wakes a thread for every core at matrices of moderate size, and these wait for more by
spinning, a tenth of a second long: in it the network, which comes next, has one core less.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbam.tables.table import Matrix

Floats: TypeAlias = NDArray[np.floating[Any]]


def multiply(a_mk: Floats, b_kn: Floats) -> Matrix:
    """The product of two matrices.

    Examples
    --------
    >>> multiply(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
    array([[11.]])
    """
    return _as_array(_as_tensor(a_mk) @ _as_tensor(b_kn))


def regress(x_mk: Matrix, y_mn: Matrix) -> Matrix:
    """What least squares on the columns of `x_mk` say of those of `y_mn`; x may have any rank, and no columns at all.

    Examples
    --------
    >>> regress(np.array([[1.0], [1.0]]), np.array([[2.0], [4.0]]))
    array([[3.],
           [3.]])
    """
    if not x_mk.shape[1] or not y_mn.shape[1]:  # which LAPACK refuses
        return np.zeros(y_mn.shape)
    x, y = _as_tensor(x_mk), _as_tensor(y_mn)
    return _as_array(x @ torch.linalg.lstsq(x, y, driver="gelsd").solution)


def find_axes(s_dd: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues of a symmetric matrix, smallest first, and its eigenvectors as columns.

    Examples
    --------
    >>> find_axes(np.diag([2.0, 1.0]))[0]
    array([1., 2.])
    """
    values, vectors = torch.linalg.eigh(_as_tensor(s_dd))
    return _as_array(values), _as_array(vectors)


def _as_tensor(matrix: Floats) -> Tensor:
    array = np.ascontiguousarray(matrix) if min(matrix.strides, default=0) < 0 else np.asarray(matrix)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _as_array(tensor: Tensor) -> Any:
    return tensor.numpy()
