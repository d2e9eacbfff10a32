"""One Triton kernel: invert positive definite matrices by sweeping, one a program. Imported by `kernels` alone."""
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def sweep(s_ptr, out_ptr, d, matrix_stride, row_stride, BLOCK: tl.constexpr):
    """Gauss–Jordan without pivoting, stable for positive definite matrices; symmetric throughout.

    Sweeping on every pivot turns A into −A⁻¹ (Beaton's sweep operator).
    """
    matrix = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, BLOCK)
    i, j = index[:, None], index[None, :]
    inside = (i < d) & (j < d)
    a = tl.load(s_ptr + matrix * matrix_stride + i * row_stride + j, mask=inside, other=0.0)
    for k in range(d):
        row = tl.sum(tl.where(i == k, a, 0.0), axis=0)
        column = tl.sum(tl.where(j == k, a, 0.0), axis=1)
        inverse = 1.0 / tl.sum(tl.where(index == k, row, 0.0), axis=0)
        updated = a - column[:, None] * row[None, :] * inverse
        updated = tl.where(i == k, row[None, :] * inverse, updated)
        updated = tl.where(j == k, column[:, None] * inverse, updated)
        a = tl.where((i == k) & (j == k), -inverse, updated)
    tl.store(out_ptr + matrix * d * d + i * d + j, -a, mask=inside)
