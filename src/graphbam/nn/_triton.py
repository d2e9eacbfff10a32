"""Triton kernels, a small problem in each program: inverse Cholesky factors, attention along short lines.

Imported by `spd` and `tiles` alone.
"""
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


@triton.jit
def _place(n_inner, outer_step, inner_step, line, per_tile, n_positions, TILE: tl.constexpr):
    """Where a tile begins, which of its positions are there, and which line each is on."""
    program = tl.program_id(0)
    outer, inner = program // n_inner, program % n_inner
    first = outer.to(tl.int64) * outer_step + inner.to(tl.int64) * inner_step
    i = tl.arange(0, TILE)
    there = i < tl.minimum(per_tile, n_positions - outer * per_tile)
    return first, i, there, i // line


@triton.jit
def _weigh(q, k, there, which, scale):
    """softmax(Q Kᵀ · scale) within lines; rows that are not there are even."""
    scores = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634)  # 1 / log 2, for powers of two
    seen = (which[:, None] == which[None, :]) & there[None, :]
    scores = tl.where(seen, scores, -1e30)
    weights = tl.exp2(scores - tl.max(scores, 1)[:, None])
    return weights / tl.sum(weights, 1)[:, None]


@triton.jit(do_not_specialize=["n_inner", "line", "per_tile", "n_positions"])
def attend_forward(
    qkv_ptr, out_ptr, scale, n_inner, outer_step, inner_step, step, line, per_tile, n_positions,
    HEADS: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Attention of one head along the lines of one tile. Steps are in cells: of (heads, 3, size) numbers in `qkv`, of
    (heads, size) in `out`."""
    first, i, there, which = _place(n_inner, outer_step, inner_step, line, per_tile, n_positions, TILE)
    head, e = tl.program_id(1), tl.arange(0, SIZE)
    cell = first + i.to(tl.int64) * step
    mask = there[:, None]
    at = qkv_ptr + (cell * (3 * HEADS * SIZE) + head * (3 * SIZE))[:, None] + e[None, :]
    q = tl.load(at, mask=mask, other=0.0)
    k = tl.load(at + SIZE, mask=mask, other=0.0)
    v = tl.load(at + 2 * SIZE, mask=mask, other=0.0)
    y = tl.dot(_weigh(q, k, there, which, scale).to(v.dtype), v)
    to = out_ptr + (cell * (HEADS * SIZE) + head * SIZE)[:, None] + e[None, :]
    tl.store(to, y.to(v.dtype), mask=mask)


@triton.jit(do_not_specialize=["n_inner", "line", "per_tile", "n_positions"])
def attend_backward(
    qkv_ptr, slope_ptr, out_ptr, scale, n_inner, outer_step, inner_step, step, line, per_tile, n_positions,
    HEADS: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Slopes of Q, K and V, laid out as these are, from that of the output; the weights are computed again."""
    first, i, there, which = _place(n_inner, outer_step, inner_step, line, per_tile, n_positions, TILE)
    head, e = tl.program_id(1), tl.arange(0, SIZE)
    cell = first + i.to(tl.int64) * step
    mask = there[:, None]
    offset = (cell * (3 * HEADS * SIZE) + head * (3 * SIZE))[:, None] + e[None, :]
    q = tl.load(qkv_ptr + offset, mask=mask, other=0.0)
    k = tl.load(qkv_ptr + offset + SIZE, mask=mask, other=0.0)
    v = tl.load(qkv_ptr + offset + 2 * SIZE, mask=mask, other=0.0)
    slope = tl.load(slope_ptr + (cell * (HEADS * SIZE) + head * SIZE)[:, None] + e[None, :], mask=mask, other=0.0)
    weights = _weigh(q, k, there, which, scale)
    tl.store(out_ptr + offset + 2 * SIZE, tl.dot(tl.trans(weights.to(v.dtype)), slope).to(v.dtype), mask=mask)
    of_weights = tl.dot(slope, tl.trans(v))
    mean = tl.sum(weights * of_weights, 1)
    of_scores = (weights * (of_weights - mean[:, None]) * scale).to(v.dtype)
    tl.store(out_ptr + offset, tl.dot(of_scores, k).to(v.dtype), mask=mask)
    tl.store(out_ptr + offset + SIZE, tl.dot(tl.trans(of_scores), q).to(v.dtype), mask=mask)
