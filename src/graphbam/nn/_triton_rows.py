"""Triton kernels row by row: a row holds the channels of one cell or of one pair, and a program takes tiles of rows.

Normalisation, products with weights, bias, residual and their slopes stay in registers: a layer reads its rows once and
writes them once, and its way back computes again what it needs from the rows alone. What weights are to learn is summed
over the tiles of a program, turned into slopes of weights there, and summed over programs by `add_up`. Rows lie side by
side, or, of pairs, as planes: for each table one matrix per channel. Imported by `fused` alone.
"""
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def _normalise(x, eps, C: tl.constexpr):
    """Rows of mean 0 and variance 1, and what they were multiplied by."""
    centred = x - (tl.sum(x, 1) / C)[:, None]
    factor = tl.rsqrt(tl.sum(centred * centred, 1) / C + eps)
    return centred * factor[:, None], factor


@triton.jit
def _denormalise(of_hat, hat, factor, C: tl.constexpr):
    """Slope of rows, from that of `_normalise`."""
    mean = tl.sum(of_hat, 1) / C
    along = tl.sum(of_hat * hat, 1) / C
    return factor[:, None] * (of_hat - mean[:, None] - hat * along[:, None])


@triton.jit
def _rows(tile, n_rows, ROWS: tl.constexpr):
    """Numbers of the rows of a tile, and which of them are there."""
    row = tile * ROWS + tl.arange(0, ROWS)
    return row, row < n_rows


@triton.jit
def _load(ptr, c):
    """One number per channel, for all rows; loaded where it is used, since kept in registers it would crowd them."""
    return tl.load(ptr + c)[None, :]


@triton.jit
def _planes(row, plane, channels):
    """Where the first channel of each row lies, if channels are planes of so many rows; mostly side by side."""
    at = (row // plane) * (plane * channels) + row % plane
    return tl.max_contiguous(at, row.shape[0])  # decides which threads take which; nothing else rests on it


@triton.jit(do_not_specialize=["n_rows"])
def dense_forward(
    x_ptr, gain_ptr, shift_ptr, up_ptr, up_bias_ptr, down_ptr, down_bias_ptr, scale_ptr, out_ptr, n_rows, eps,
    C: tl.constexpr, H: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """x + s · (relu(norm(x) Uᵀ + b) Dᵀ + b′), in two halves of the hidden layer for the sake of registers."""
    kind = x_ptr.dtype.element_ty
    HALF: tl.constexpr = H // 2
    c, h = tl.arange(0, C), tl.arange(0, HALF)
    up_0 = tl.load(up_ptr + h[:, None] * C + c[None, :]).to(kind)
    up_1 = tl.load(up_ptr + HALF * C + h[:, None] * C + c[None, :]).to(kind)
    down_0 = tl.load(down_ptr + c[:, None] * H + h[None, :]).to(kind)
    down_1 = tl.load(down_ptr + HALF + c[:, None] * H + h[None, :]).to(kind)
    for tile in range(tl.program_id(0), tl.cdiv(n_rows, ROWS), tl.num_programs(0)):
        row, there = _rows(tile, n_rows, ROWS)
        at, mask = row[:, None] * C + c[None, :], there[:, None]
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        hat, _ = _normalise(x.to(tl.float32), eps, C)
        n = (hat * _load(gain_ptr, c) + _load(shift_ptr, c)).to(kind)
        u = tl.maximum(tl.dot(n, tl.trans(up_0)) + _load(up_bias_ptr, h), 0.0).to(kind)
        y = tl.dot(u, tl.trans(down_0))
        u = tl.maximum(tl.dot(n, tl.trans(up_1)) + _load(up_bias_ptr + HALF, h), 0.0).to(kind)
        y = tl.dot(u, tl.trans(down_1), y) + _load(down_bias_ptr, c)
        tl.store(out_ptr + at, (x.to(tl.float32) + _load(scale_ptr, c) * y).to(kind), mask=mask)


@triton.jit
def _hidden_slope(n, scaled, up_hc, up_bias, down_ch):
    """Of some hidden channels: what they are, and the slope of what comes before them."""
    before = tl.dot(n, tl.trans(up_hc)) + up_bias
    return tl.maximum(before, 0.0).to(n.dtype), tl.where(before > 0, tl.dot(scaled, down_ch), 0.0)


@triton.jit(do_not_specialize=["n_rows"])
def dense_backward(
    x_ptr, slope_ptr, gain_ptr, shift_ptr, up_ptr, up_bias_ptr, down_ptr, scale_ptr, out_ptr, n_rows, eps,
    C: tl.constexpr, H: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Slope of x. In two halves of the hidden layer, for the sake of registers."""
    kind = x_ptr.dtype.element_ty
    HALF: tl.constexpr = H // 2
    c, h = tl.arange(0, C), tl.arange(0, HALF)
    up_0 = tl.load(up_ptr + h[:, None] * C + c[None, :]).to(kind)
    up_1 = tl.load(up_ptr + HALF * C + h[:, None] * C + c[None, :]).to(kind)
    down_0 = tl.load(down_ptr + c[:, None] * H + h[None, :]).to(kind)
    down_1 = tl.load(down_ptr + HALF + c[:, None] * H + h[None, :]).to(kind)
    for tile in range(tl.program_id(0), tl.cdiv(n_rows, ROWS), tl.num_programs(0)):
        row, there = _rows(tile, n_rows, ROWS)
        at, mask = row[:, None] * C + c[None, :], there[:, None]
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        slope = tl.load(slope_ptr + at, mask=mask, other=0.0).to(tl.float32)
        hat, _ = _normalise(x, eps, C)
        n, scaled = (hat * _load(gain_ptr, c) + _load(shift_ptr, c)).to(kind), (slope * _load(scale_ptr, c)).to(kind)
        _, of_before = _hidden_slope(n, scaled, up_0, _load(up_bias_ptr, h), down_0)
        of_n = tl.dot(of_before.to(kind), up_0)
        _, of_before = _hidden_slope(n, scaled, up_1, _load(up_bias_ptr + HALF, h), down_1)
        of_n = tl.dot(of_before.to(kind), up_1, of_n)
        # Loaded once more: kept till here, they would crowd the registers.
        x = tl.load(x_ptr + at, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        slope = tl.load(slope_ptr + at, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        hat, factor = _normalise(x, eps, C)
        of_x = slope + _denormalise(of_n * _load(gain_ptr, c), hat, factor, C)
        tl.store(out_ptr + at, of_x.to(kind), mask=mask)


@triton.jit
def _by_ones(x, total):
    """Sums over rows, (rows, channels) → (channels, 16), all sixteen alike: products take sums along."""
    return tl.dot(tl.trans(x), tl.full((x.shape[0], 16), 1.0, x.dtype), total)


@triton.jit
def _place_parts(parts_ptr, LENGTH: tl.constexpr, SHORT: tl.constexpr):
    """Where a program writes what weights learn: `LENGTH` numbers of its first axis, `SHORT` of both its axes.

    All of the first come before all of the second.
    """
    program, n = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    short = program * tl.num_programs(1) + tl.program_id(1)
    return parts_ptr + program * LENGTH, parts_ptr + n * LENGTH + short * SHORT


@triton.jit
def add_up(parts_ptr, out_ptr, n_rows, length, n_short, short, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """Sums over programs: of `n_rows` rows of so many numbers, then of `n_short` rows of others."""
    n_blocks = tl.cdiv(length, BLOCK)
    late = tl.program_id(0) >= n_blocks
    n, width = tl.where(late, n_short, n_rows), tl.where(late, short, length)
    column = (tl.program_id(0) - tl.where(late, n_blocks, 0)) * BLOCK + tl.arange(0, BLOCK)
    parts_ptr += tl.where(late, n_rows.to(tl.int64) * length, 0)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, n, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < n)[:, None] & (column < width)[None, :]
        total += tl.load(parts_ptr + row[:, None] * width + column[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + tl.where(late, length, 0) + column, tl.sum(total, 0), mask=column < width)


@triton.jit(do_not_specialize=["n_rows"])
def dense_learn(
    x_ptr, slope_ptr, gain_ptr, shift_ptr, up_ptr, up_bias_ptr, down_ptr, down_bias_ptr, scale_ptr, parts_ptr,
    n_rows, eps,
    C: tl.constexpr, H: tl.constexpr, PART: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """For one part of the hidden layer, slopes of U, D, b and b′; then those of s, gain and shift."""
    kind = x_ptr.dtype.element_ty
    c, h = tl.arange(0, C), tl.program_id(1) * PART + tl.arange(0, PART)
    up_hc = tl.load(up_ptr + h[:, None] * C + c[None, :]).to(kind)
    down_ch = tl.load(down_ptr + c[:, None] * H + h[None, :]).to(kind)
    of_up, of_down = tl.zeros((PART, C), tl.float32), tl.zeros((C, PART), tl.float32)
    of_hidden, of_rows = tl.zeros((PART, 16), tl.float32), tl.zeros((C, 16), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(n_rows, ROWS), tl.num_programs(0)):
        row, there = _rows(tile, n_rows, ROWS)
        at, mask = row[:, None] * C + c[None, :], there[:, None]
        hat, _ = _normalise(tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32), eps, C)
        slope = tl.load(slope_ptr + at, mask=mask, other=0.0)
        c_now, h_now = c + (tile >> 30), h + (tile >> 30)  # the same: or else loads are moved out of the loop
        n = (hat * _load(gain_ptr, c_now) + _load(shift_ptr, c_now)).to(kind)
        scaled = (slope.to(tl.float32) * _load(scale_ptr, c_now)).to(kind)
        u, of_before = _hidden_slope(n, scaled, up_hc, _load(up_bias_ptr, h_now), down_ch)
        of_down = tl.dot(tl.trans(slope), u, of_down)
        of_up = tl.dot(tl.trans(of_before.to(kind)), hat.to(kind), of_up)
        of_hidden, of_rows = _by_ones(of_before.to(kind), of_hidden), _by_ones(slope, of_rows)
    of_before, of_row = tl.sum(of_hidden, 1) / 16, tl.sum(of_rows, 1) / 16
    to, short = _place_parts(parts_ptr, 2 * H * C + H + C, 3 * C)
    gain, shift, scale = tl.load(gain_ptr + c), tl.load(shift_ptr + c), tl.load(scale_ptr + c)
    tl.store(to + h[:, None] * C + c[None, :], of_up * gain[None, :] + of_before[:, None] * shift[None, :])
    tl.store(to + H * C + c[:, None] * H + h[None, :], of_down * scale[:, None])
    tl.store(to + 2 * H * C + h, of_before)
    tl.store(to + 2 * H * C + H + c, of_row * scale)  # every part writes the same
    up_hc = tl.load(up_ptr + h[:, None] * C + c[None, :])
    tl.store(short + c, tl.sum(up_hc * of_up, 0))
    tl.store(short + C + c, tl.sum(up_hc * of_before[:, None], 0))
    of_scale = tl.sum(tl.load(down_ptr + c[:, None] * H + h[None, :]) * of_down, 1)
    once = tl.where(tl.program_id(1) == 0, 1.0, 0.0)
    tl.store(short + 2 * C + c, of_scale + once * tl.load(down_bias_ptr + c) * of_row)


@triton.jit(do_not_specialize=["n_rows", "plane"])
def project_forward(
    x_ptr, gain_ptr, shift_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, plane, eps,
    C: tl.constexpr, PART: tl.constexpr, ROWS: tl.constexpr, PLANES: tl.constexpr,
):  # fmt: skip
    """norm(x) Wᵀ, three parts of W; as planes also + b."""
    kind = x_ptr.dtype.element_ty
    c, e = tl.arange(0, C), tl.arange(0, PART)
    gain, shift = tl.load(gain_ptr + c), tl.load(shift_ptr + c)
    for tile in range(tl.program_id(0), tl.cdiv(n_rows, ROWS), tl.num_programs(0)):
        row, there = _rows(tile, n_rows, ROWS)
        x = tl.load(x_ptr + row[:, None] * C + c[None, :], mask=there[:, None], other=0.0).to(tl.float32)
        hat, _ = _normalise(x, eps, C)
        n = (hat * gain[None, :] + shift[None, :]).to(kind)
        for part in tl.static_range(3):
            w_ec = tl.load(weight_ptr + (part * PART + e)[:, None] * C + c[None, :]).to(kind)
            if PLANES:
                y = tl.dot(w_ec, tl.trans(n)) + tl.load(bias_ptr + part * PART + e)[:, None]
                to = out_ptr + _planes(row, plane, 3 * PART)[None, :] + (part * PART + e)[:, None] * plane
                tl.store(to, y.to(kind), mask=there[None, :])
            else:
                to = out_ptr + row[:, None] * (3 * PART) + (part * PART + e)[None, :]
                tl.store(to, tl.dot(n, tl.trans(w_ec)).to(kind), mask=there[:, None])


@triton.jit
def _part_of_slope(ptr, row, there, plane, e, E: tl.constexpr, PLANES: tl.constexpr):
    """Some channels of rows, (rows, channels)."""
    if PLANES:
        at = _planes(row, plane, E)[None, :] + e[:, None] * plane
        return tl.trans(tl.load(ptr + at, mask=there[None, :], other=0.0))
    else:
        return tl.load(ptr + row[:, None] * E + e[None, :], mask=there[:, None], other=0.0)


@triton.jit(do_not_specialize=["n_rows", "plane"])
def project_backward(
    x_ptr, slope_ptr, past_ptr, gain_ptr, weight_ptr, out_ptr, n_rows, plane, eps,
    C: tl.constexpr, PART: tl.constexpr, ROWS: tl.constexpr, PLANES: tl.constexpr,
):  # fmt: skip
    """Slope of x, with the one that went `past` the layer."""
    kind = x_ptr.dtype.element_ty
    c, e = tl.arange(0, C), tl.arange(0, PART)
    gain = tl.load(gain_ptr + c)
    w_0 = tl.load(weight_ptr + e[:, None] * C + c[None, :]).to(kind)
    w_1 = tl.load(weight_ptr + PART * C + e[:, None] * C + c[None, :]).to(kind)
    w_2 = tl.load(weight_ptr + 2 * PART * C + e[:, None] * C + c[None, :]).to(kind)
    for tile in range(tl.program_id(0), tl.cdiv(n_rows, ROWS), tl.num_programs(0)):
        row, there = _rows(tile, n_rows, ROWS)
        at, mask = row[:, None] * C + c[None, :], there[:, None]
        of_n = tl.dot(_part_of_slope(slope_ptr, row, there, plane, e, 3 * PART, PLANES), w_0)
        of_n = tl.dot(_part_of_slope(slope_ptr, row, there, plane, PART + e, 3 * PART, PLANES), w_1, of_n)
        of_n = tl.dot(_part_of_slope(slope_ptr, row, there, plane, 2 * PART + e, 3 * PART, PLANES), w_2, of_n)
        hat, factor = _normalise(tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32), eps, C)
        past = tl.load(past_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, (past + _denormalise(of_n * gain[None, :], hat, factor, C)).to(kind), mask=mask)


@triton.jit
def _learn_part(hat, slope, outer, of_rows):
    """Add slope ⊗ normalised x, and the slope, of a tile."""
    return tl.dot(tl.trans(slope), hat, outer), _by_ones(slope, of_rows)


@triton.jit
def _store_part(to, outer, of_row, gain, shift, e, c, C: tl.constexpr, E: tl.constexpr):
    """Slopes of some rows of W and of b, from the sums over all tiles."""
    tl.store(to + e[:, None] * C + c[None, :], outer * gain[None, :] + of_row[:, None] * shift[None, :])
    tl.store(to + E * C + e, of_row)


@triton.jit(do_not_specialize=["n_rows", "plane"])
def project_learn(
    x_ptr, slope_ptr, gain_ptr, shift_ptr, weight_ptr, parts_ptr, n_rows, plane, eps,
    C: tl.constexpr, PART: tl.constexpr, ROWS: tl.constexpr, PLANES: tl.constexpr,
):  # fmt: skip
    """Slopes of W, b, gain and shift; of W in three parts."""
    kind = x_ptr.dtype.element_ty
    c, e, E = tl.arange(0, C), tl.arange(0, PART), 3 * PART
    outer_0, rows_0 = tl.zeros((PART, C), tl.float32), tl.zeros((PART, 16), tl.float32)
    outer_1, rows_1 = tl.zeros((PART, C), tl.float32), tl.zeros((PART, 16), tl.float32)
    outer_2, rows_2 = tl.zeros((PART, C), tl.float32), tl.zeros((PART, 16), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(n_rows, ROWS), tl.num_programs(0)):
        row, there = _rows(tile, n_rows, ROWS)
        x = tl.load(x_ptr + row[:, None] * C + c[None, :], mask=there[:, None], other=0.0).to(tl.float32)
        hat, _ = _normalise(x, eps, C)
        hat = hat.to(kind)
        slope = _part_of_slope(slope_ptr, row, there, plane, e, E, PLANES)
        outer_0, rows_0 = _learn_part(hat, slope, outer_0, rows_0)
        slope = _part_of_slope(slope_ptr, row, there, plane, PART + e, E, PLANES)
        outer_1, rows_1 = _learn_part(hat, slope, outer_1, rows_1)
        slope = _part_of_slope(slope_ptr, row, there, plane, 2 * PART + e, E, PLANES)
        outer_2, rows_2 = _learn_part(hat, slope, outer_2, rows_2)
    to, _ = _place_parts(parts_ptr, E * C + E + 2 * C, 0)
    gain, shift = tl.load(gain_ptr + c), tl.load(shift_ptr + c)
    row_0, row_1, row_2 = tl.sum(rows_0, 1) / 16, tl.sum(rows_1, 1) / 16, tl.sum(rows_2, 1) / 16
    _store_part(to, outer_0, row_0, gain, shift, e, c, C, E)
    _store_part(to, outer_1, row_1, gain, shift, PART + e, c, C, E)
    _store_part(to, outer_2, row_2, gain, shift, 2 * PART + e, c, C, E)
    at = weight_ptr + e[:, None] * C + c[None, :]
    w_0, w_1, w_2 = tl.load(at), tl.load(at + PART * C), tl.load(at + 2 * PART * C)
    tl.store(to + E * C + E + c, tl.sum(w_0 * outer_0 + w_1 * outer_1 + w_2 * outer_2, 0))
    of_shift = tl.sum(w_0 * row_0[:, None] + w_1 * row_1[:, None] + w_2 * row_2[:, None], 0)
    tl.store(to + E * C + E + C + c, of_shift)


@triton.jit
def _load_rows(ptr, row, there, plane, e, E: tl.constexpr, PLANES: tl.constexpr):
    """Rows of E channels, of which e may name more than there are."""
    if PLANES:
        at = _planes(row, plane, E)[None, :] + e[:, None] * plane
        return tl.trans(tl.load(ptr + at, mask=there[None, :] & (e < E)[:, None], other=0.0))
    else:
        return tl.load(ptr + row[:, None] * E + e[None, :], mask=there[:, None] & (e < E)[None, :], other=0.0)


@triton.jit(do_not_specialize=["n_rows", "plane"])
def add_forward(
    x_ptr, y_ptr, weight_ptr, bias_ptr, scale_ptr, out_ptr, n_rows, plane,
    C: tl.constexpr, E: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, PLANES: tl.constexpr,
):  # fmt: skip
    """x + s · y Wᵀ; where y are planes, x + s · (y Wᵀ + b). WIDE is a power of two, E or the next one."""
    kind = x_ptr.dtype.element_ty
    c, e = tl.arange(0, C), tl.arange(0, WIDE)
    scale = tl.load(scale_ptr + c)
    w_ce = tl.load(weight_ptr + c[:, None] * E + e[None, :], mask=(e < E)[None, :], other=0.0).to(kind)
    for tile in range(tl.program_id(0), tl.cdiv(n_rows, ROWS), tl.num_programs(0)):
        row, there = _rows(tile, n_rows, ROWS)
        at, mask = row[:, None] * C + c[None, :], there[:, None]
        y = tl.dot(_load_rows(y_ptr, row, there, plane, e, E, PLANES), tl.trans(w_ce))
        if PLANES:
            y += tl.load(bias_ptr + c)[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, (x + scale[None, :] * y).to(kind), mask=mask)


@triton.jit(do_not_specialize=["n_rows", "plane"])
def add_backward(
    y_ptr, slope_ptr, weight_ptr, bias_ptr, scale_ptr, out_ptr, parts_ptr, n_rows, plane,
    C: tl.constexpr, E: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, PLANES: tl.constexpr,
):  # fmt: skip
    """Slope of y; and those of W, s and, where y are planes, b."""
    kind = y_ptr.dtype.element_ty
    c, e = tl.arange(0, C), tl.arange(0, WIDE)
    scale = tl.load(scale_ptr + c)
    at_w, in_w = c[:, None] * E + e[None, :], (e < E)[None, :]
    w_ce = tl.load(weight_ptr + at_w, mask=in_w, other=0.0).to(kind)
    outer, of_rows = tl.zeros((C, WIDE), tl.float32), tl.zeros((C, 16), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(n_rows, ROWS), tl.num_programs(0)):
        row, there = _rows(tile, n_rows, ROWS)
        slope = tl.load(slope_ptr + row[:, None] * C + c[None, :], mask=there[:, None], other=0.0)
        y = _load_rows(y_ptr, row, there, plane, e, E, PLANES)
        scaled = (slope.to(tl.float32) * scale[None, :]).to(kind)
        outer = tl.dot(tl.trans(slope), y, outer)
        of_rows = _by_ones(slope, of_rows)
        if PLANES:
            of_y = tl.dot(tl.trans(w_ce), tl.trans(scaled))
            to = out_ptr + _planes(row, plane, E)[None, :] + e[:, None] * plane
            tl.store(to, of_y.to(kind), mask=there[None, :] & (e < E)[:, None])
        else:
            to = out_ptr + row[:, None] * E + e[None, :]
            tl.store(to, tl.dot(scaled, w_ce).to(kind), mask=there[:, None] & (e < E)[None, :])
    of_scale = tl.sum(tl.load(weight_ptr + at_w, mask=in_w, other=0.0) * outer, 1)
    to, _ = _place_parts(parts_ptr, C * E + (2 * C if PLANES else C), 0)
    tl.store(to + at_w, outer * scale[:, None], mask=in_w)
    if PLANES:
        of_row = tl.sum(of_rows, 1) / 16
        of_scale += tl.load(bias_ptr + c) * of_row
        tl.store(to + C * E + C + c, of_row * scale)
    tl.store(to + C * E + c, of_scale)


@triton.jit
def _matrix(number, d, TILE: tl.constexpr):
    """Where a matrix among others lies, and which places of a tile it has."""
    i = tl.arange(0, TILE)
    return number * d * d + i[:, None] * d + i[None, :], (i < d)[:, None] & (i < d)[None, :]


@triton.jit
def _turn(x, turned):
    """The matrix, or its transpose; without a branch, since products inside of branches went wrong."""
    return tl.where(turned, tl.trans(x), x)


@triton.jit(do_not_specialize=["d"])
def multiply_forward(sides_ptr, out_ptr, d, factor, N: tl.constexpr, TILE: tl.constexpr):
    """A B, Aᵀ B or A Bᵀ, each times a factor: N of each kind, from planes a₁ b₁ a₂ b₂ a₃ b₃ of every table."""
    table, which = tl.program_id(0) // (3 * N), tl.program_id(0) % (3 * N)
    kind, channel = which // N, which % N
    at_a, _ = _matrix(table * (6 * N) + 2 * kind * N + channel, d, TILE)
    at_b, _ = _matrix(table * (6 * N) + (2 * kind + 1) * N + channel, d, TILE)
    at, mask = _matrix(tl.program_id(0), d, TILE)
    a = _turn(tl.load(sides_ptr + at_a, mask=mask, other=0.0), kind == 1)
    b = _turn(tl.load(sides_ptr + at_b, mask=mask, other=0.0), kind == 2)
    tl.store(out_ptr + at, (tl.dot(a, b) * factor).to(a.dtype), mask=mask)


@triton.jit(do_not_specialize=["d"])
def multiply_backward(sides_ptr, slope_ptr, out_ptr, d, factor, N: tl.constexpr, TILE: tl.constexpr):
    """Slopes of both factors: S Bᵀ and Aᵀ S; (S Bᵀ)ᵀ and A S; S B and (Aᵀ S)ᵀ."""
    table, which = tl.program_id(0) // (3 * N), tl.program_id(0) % (3 * N)
    kind, channel = which // N, which % N
    at_a, _ = _matrix(table * (6 * N) + 2 * kind * N + channel, d, TILE)
    at_b, _ = _matrix(table * (6 * N) + (2 * kind + 1) * N + channel, d, TILE)
    at, mask = _matrix(tl.program_id(0), d, TILE)
    s = tl.load(slope_ptr + at, mask=mask, other=0.0)
    b = _turn(tl.load(sides_ptr + at_b, mask=mask, other=0.0), kind != 2)
    tl.store(out_ptr + at_a, _turn((tl.dot(s, b) * factor).to(s.dtype), kind == 1), mask=mask)
    a = _turn(tl.load(sides_ptr + at_a, mask=mask, other=0.0), kind != 1)
    tl.store(out_ptr + at_b, _turn((tl.dot(a, s) * factor).to(s.dtype), kind == 2), mask=mask)
