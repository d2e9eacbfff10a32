"""What the plain correlations of a table say of every pair of variables.

`read_correlations` gives them and their inverses, in the precision of the table; `read_sizes` works in double
precision. In a linear system whose variance grows from parents to children, the last variables are all but functions
of the others: a millionth of their variance is their own, and that millionth is all that tells parents from mere
relatives. Four sizes of correlations bring it out, each between 0 and 1 and 1 on the diagonal:

- given all other variables;
- the smallest given all others but one, which is near zero for the parents of one common child;
- the smallest given one other or none, near zero where one variable lies between two, or is their common cause;
- given those that come before the later of the two, if variables are put in the order of how well all others explain
  them. In such systems that is roughly the order of causes.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from graphbam.nn import spd
from graphbam.nn.device import TRITON, compiled_on_gpu
from graphbam.nn.threads import crew_size, share

RIDGE = 1e-6
"""Least that is added to the diagonal of the correlations: what a variable has of its own, constant ones included."""

TABLE_POLES = (1e-4, 3e-4, 1e-3, 1e-2)
"""Ridges at which `read_correlations` inverts. They are small: channels travel in bfloat16 and have a ridge of
their own, so what nearly deterministic relations leave unexplained is gone there, and is all that tells them apart.
At 1e-5 and more variables than samples, float32 has no inverse."""

N_CORRELATIONS = 1 + len(TABLE_POLES)
"""Correlations that `read_correlations` gives for every pair."""

N_SIZES = 4
"""Sizes that `read_sizes` gives for every pair."""

MOST_CELLS = 2**15
"""Pairs of variables that `least_given_one` handles at once on a CPU: they stay in its cache."""


def read_correlations(x_bmd: Tensor) -> Tensor:
    """Correlations of the columns, and minus their partial ones at each of `TABLE_POLES`: (B, 1 + J, D, D)."""
    s_bdd = spd.correlate(spd.covariance(x_bmd), RIDGE)
    return torch.stack([s_bdd, *spd.correlate(spd.resolvents(s_bdd, TABLE_POLES)).unbind(0)], 1)


def choose_ridge(n_samples: int, n_variables: int) -> float:
    """Ridge of `read_sizes`. It grows once variables are more than half as many as samples: their inverse is noise.

    Examples
    --------
    >>> [round(choose_ridge(m, d), 6) for m, d in ((500, 100), (100, 100), (50, 100))]
    [1e-06, 0.050001, 0.450001]
    """
    crowding = max(0.0, n_variables / n_samples - 0.5)
    return RIDGE + min(0.5, 0.2 * crowding**2)


def read_sizes(x_bmd: Tensor) -> tuple[Tensor, Tensor]:
    """The four sizes of every pair, (B, 4, D, D), and the log of what the others leave unexplained of each variable.

    Examples
    --------
    A chain a → b → c: a and c are unrelated given b.

    >>> x_bmd = torch.randn(1, 5000, 3, generator=torch.Generator().manual_seed(0)).cumsum(-1)
    >>> sizes_bfdd, unexplained_bd = read_sizes(x_bmd)
    >>> [round(size, 1) for size in sizes_bfdd[0, :3, 0, 2].tolist()]
    [0.0, 0.0, 0.0]
    >>> [round(size, 1) for size in sizes_bfdd[0, :3, 0, 1].tolist()]
    [0.5, 0.5, 0.5]
    """
    ridge = choose_ridge(*x_bmd.shape[1:])
    s_bdd = spd.correlate(spd.covariance(x_bmd.double()), ridge)
    k_bdd = spd.whitener(s_bdd, floor=ridge / 2)
    precision_bdd = k_bdd.mT @ k_bdd
    known_bd = precision_bdd.diagonal(dim1=-2, dim2=-1)
    partial_bdd = spd.correlate(precision_bdd)
    without_one_bdd, given_one_bdd = least_given_one(torch.stack([partial_bdd, s_bdd])).unbind(0)
    sizes = (partial_bdd.abs(), without_one_bdd, given_one_bdd, given_earlier(s_bdd, known_bd, ridge))
    return torch.stack(sizes, 1).to(x_bmd.dtype), -known_bd.log().to(x_bmd.dtype)


def least_given_one(r: Tensor) -> Tensor:
    """min over k of |r_ij − r_ik r_jk| / √((1 − r_ik²)(1 − r_jk²)) and |r_ij|, for correlations (..., D, D).

    Of correlations this is the smallest partial one given a single variable. Of partial correlations given all
    others it is the smallest that leaves a variable out, since leaving one out changes an inverse by the same formula.

    Examples
    --------
    >>> least_given_one(torch.tensor([[1.0, 0.8, 0.64], [0.8, 1.0, 0.8], [0.64, 0.8, 1.0]])).round(decimals=2)
    tensor([[1.0000, 0.6200, 0.0000],
            [0.6200, 1.0000, 0.6200],
            [0.0000, 0.6200, 1.0000]])
    """
    if r.requires_grad or (r.is_cuda and TRITON):
        return least_at_once(r)
    d = r.shape[-1]
    off_diagonal = r - torch.diag_embed(r.diagonal(dim1=-2, dim2=-1))
    scale = (1 - off_diagonal.square()).clamp_min(1e-9).rsqrt()
    size = max(1, min(MOST_CELLS * d // r.numel(), -(-d // (4 * crew_size() - 3))))
    least = r.abs()
    rows = [slice(start, start + size) for start in range(0, d, size)]
    share(functools.partial(_lessen_rows, least, r, off_diagonal, scale), rows)
    return least


@compiled_on_gpu
def least_at_once(r: Tensor) -> Tensor:
    """`least_given_one` as one expression over all triples; compiled, it is one reduction that stores none of them."""
    place = torch.arange(r.shape[-1], device=r.device)
    scale = (1 - r.square() * (place[:, None] != place)).clamp_min(1e-9).rsqrt()
    given = (r[..., None] - r[..., :, None, :] * r[..., None, :, :]).abs()
    given = given * (scale[..., :, None, :] * scale[..., None, :, :])
    apart = (place[:, None, None] != place) & (place[None, :, None] != place)
    return torch.minimum(torch.where(apart, given, 1.0).amin(-1), r.abs())


def _lessen_rows(least: Tensor, r: Tensor, off_diagonal: Tensor, scale: Tensor, rows: slice) -> None:
    """Lessen these rows and columns, from the diagonal on, by what is left given each third variable.

    Given one of the two themselves it is not less than without: its correlation with itself is taken for zero.
    """
    later = slice(rows.start, None)
    part = r[..., None, rows, later]
    smallest, size = r[..., rows, later].abs(), max(1, MOST_CELLS // part.numel())
    for start in range(0, r.shape[-1], size):
        third = slice(start, start + size)
        column, row = (..., third, rows, None), (..., third, None, later)
        given = torch.addcmul(part, off_diagonal.mT[column], off_diagonal[row], value=-1)
        given = given.mul_(scale.mT[column]).mul_(scale[row]).abs_().amin(-3)
        torch.minimum(smallest, given, out=smallest)
    least[..., rows, rows.start :] = smallest
    least[..., rows.start :, rows] = smallest.mT


def given_earlier(s_bdd: Tensor, key_bd: Tensor, ridge: float = RIDGE) -> Tensor:
    """Size of the partial correlation of every pair given all variables before the later one, in the order of a key.

    `ridge` is the one that is already on the diagonal. Exact copies of a column tie; rounding or their position decides
    which counts as the earlier.

    With K S Kᵀ = I and K lower triangular, rows up to j of K make the inverse of the leading block up to j. So the
    partial correlation of i < j in that block is −K_ji / √Σ_{l ≤ j} K_li².
    """
    order_bd = key_bd.argsort(dim=-1, stable=True)
    k_bdd = spd.whitener(_reorder(s_bdd, order_bd), floor=ridge / 2)
    lower_bdd = k_bdd.abs() / k_bdd.square().cumsum(-2).clamp_min(1e-12).sqrt()
    return _reorder(torch.maximum(lower_bdd, lower_bdd.mT), order_bd.argsort(-1))


def _reorder(s_bdd: Tensor, order_bd: Tensor) -> Tensor:
    rows_bdd = s_bdd.gather(1, order_bd[:, :, None].expand_as(s_bdd))
    return rows_bdd.gather(2, order_bd[:, None, :].expand_as(s_bdd))
