"""One Triton kernel: inverse Cholesky factors of small matrices, one per program. Imported by `spd` alone."""
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def invert_factor(s_ptr, out_ptr, d, s_matrix, s_row, out_matrix, out_row, floor, BLOCK: tl.constexpr):
    """K with K S Kᵀ = I, lower triangular: every pivot that eliminates S is applied to the identity as well.

    S and K stay in the registers of one warp. `s_matrix`, `s_row`, `out_matrix`, `out_row` are strides; pivots below
    `floor` are raised to it.
    """
    matrix = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, BLOCK)
    i, j = index[:, None], index[None, :]
    inside = (i < d) & (j < d)
    s = tl.load(s_ptr + matrix * s_matrix + i * s_row + j, mask=inside, other=0.0)
    k = tl.where(i == j, 1.0, 0.0).to(s.dtype)
    for n in range(d):
        pivot_row = tl.sum(tl.where(i == n, s, 0.0), axis=0)
        pivot = tl.sum(tl.where(index == n, pivot_row, 0.0), axis=0)
        scale = 1.0 / tl.sqrt(tl.maximum(pivot, floor))
        below = tl.where(index > n, pivot_row * scale, 0.0)  # column n of the Cholesky factor, S being symmetric
        k_row = tl.sum(tl.where(i == n, k, 0.0), axis=0) * scale
        s -= below[:, None] * below[None, :]
        k = tl.where(i == n, k_row[None, :], k - below[:, None] * k_row[None, :])
    tl.store(out_ptr + matrix * out_matrix + i * out_row + j, k, mask=inside)
