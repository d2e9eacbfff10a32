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
def _place(n_inner, outer_step, inner_step, per_tile, n_positions):
    """Where a tile begins, and how many of its positions are there."""
    program = tl.program_id(0)
    outer, inner = program // n_inner, program % n_inner
    first = outer.to(tl.int64) * outer_step + inner.to(tl.int64) * inner_step
    return first, tl.minimum(per_tile, n_positions - outer * per_tile)


@triton.jit
def _line(i, n_there, line):
    """Which line each position is on; those that are not there have one of their own."""
    return tl.where(i < n_there, i // line, -1)


@triton.jit
def _load(ptr, i, n_there, step, e, WIDTH: tl.constexpr):
    """Some numbers of the cells at positions of a tile; `step` is in cells of `WIDTH` numbers."""
    return tl.load(
        ptr + ((i * step).to(tl.int64) * WIDTH)[:, None] + e[None, :], mask=(i < n_there)[:, None], other=0.0
    )


@triton.jit
def _store(ptr, x, i, n_there, step, e, WIDTH: tl.constexpr):
    """The way back of `_load`."""
    to = ptr + ((i * step).to(tl.int64) * WIDTH)[:, None] + e[None, :]
    tl.store(to, x.to(ptr.dtype.element_ty), mask=(i < n_there)[:, None])


@triton.jit
def _powers(q, k, i, j, n_there, line, scale, ALONE: tl.constexpr):
    """exp(Q Kᵀ · scale) within lines, largest 1, and its sums; a line that is `ALONE` has the tile for itself."""
    scores = tl.dot(q, tl.trans(k))
    if ALONE:
        scores = tl.where((j < n_there)[None, :], scores, -1e30)
    else:
        scores = tl.where(_line(i, n_there, line)[:, None] == _line(j, n_there, line)[None, :], scores, -1e30)
    factor = scale * 1.4426950408889634  # 1 / log 2, for powers of two
    powers = tl.exp2(scores * factor - (tl.max(scores, 1) * factor)[:, None])
    return powers, tl.sum(powers, 1)


@triton.jit(do_not_specialize=["n_inner", "line", "per_tile", "n_positions"])
def attend_forward(
    qkv_ptr, out_ptr, scale, n_inner, outer_step, inner_step, step, line, per_tile, n_positions,
    HEADS: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, QUERIES: tl.constexpr, ALONE: tl.constexpr,
):  # fmt: skip
    """Attention of one head along the lines of one tile, so many queries at a time. Steps are in cells: of
    (heads, 3, size) numbers in `qkv`, of (heads, size) in `out`."""
    first, n_there = _place(n_inner, outer_step, inner_step, per_tile, n_positions)
    j, e, WIDTH = tl.arange(0, TILE), tl.arange(0, SIZE), HEADS * SIZE
    qkv_ptr += first * (3 * WIDTH) + tl.program_id(1) * (3 * SIZE)
    out_ptr += first * WIDTH + tl.program_id(1) * SIZE
    k = _load(qkv_ptr + SIZE, j, n_there, step, e, 3 * WIDTH)
    v = _load(qkv_ptr + 2 * SIZE, j, n_there, step, e, 3 * WIDTH)
    for start in range(0, TILE, QUERIES):
        i = start + tl.arange(0, QUERIES)
        q = _load(qkv_ptr, i, n_there, step, e, 3 * WIDTH)
        powers, total = _powers(q, k, i, j, n_there, line, scale, ALONE)
        _store(out_ptr, tl.dot(powers.to(v.dtype), v) / total[:, None], i, n_there, step, e, WIDTH)


@triton.jit(do_not_specialize=["n_inner", "line", "per_tile", "n_positions"])
def attend_backward(
    qkv_ptr, slope_ptr, out_ptr, scale, n_inner, outer_step, inner_step, step, line, per_tile, n_positions,
    HEADS: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr, QUERIES: tl.constexpr, ALONE: tl.constexpr,
):  # fmt: skip
    """Slopes of Q, K and V, laid out as these are, from that of the output; the weights are computed again."""
    first, n_there = _place(n_inner, outer_step, inner_step, per_tile, n_positions)
    j, e, WIDTH = tl.arange(0, TILE), tl.arange(0, SIZE), HEADS * SIZE
    start_qkv = first * (3 * WIDTH) + tl.program_id(1) * (3 * SIZE)
    qkv_ptr, out_ptr = qkv_ptr + start_qkv, out_ptr + start_qkv
    slope_ptr += first * WIDTH + tl.program_id(1) * SIZE
    k = _load(qkv_ptr + SIZE, j, n_there, step, e, 3 * WIDTH)
    v = _load(qkv_ptr + 2 * SIZE, j, n_there, step, e, 3 * WIDTH)
    of_k, of_v = tl.zeros((TILE, SIZE), tl.float32), tl.zeros((TILE, SIZE), tl.float32)
    for start in range(0, TILE, QUERIES):
        i = start + tl.arange(0, QUERIES)
        q = _load(qkv_ptr, i, n_there, step, e, 3 * WIDTH)
        slope = _load(slope_ptr, i, n_there, step, e, WIDTH)
        powers, total = _powers(q, k, i, j, n_there, line, scale, ALONE)
        weights = powers * (1.0 / total)[:, None]
        of_v = tl.dot(tl.trans(weights.to(v.dtype)), slope, of_v)
        of_weights = tl.dot(slope, tl.trans(v))
        mean = tl.sum(weights * of_weights, 1)
        of_scores = (weights * (of_weights - mean[:, None])).to(v.dtype)
        _store(out_ptr, tl.dot(of_scores, k) * scale, i, n_there, step, e, 3 * WIDTH)
        of_k = tl.dot(tl.trans(of_scores), q, of_k)
    _store(out_ptr + SIZE, of_k * scale, j, n_there, step, e, 3 * WIDTH)
    _store(out_ptr + 2 * SIZE, of_v, j, n_there, step, e, 3 * WIDTH)
