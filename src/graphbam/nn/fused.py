"""Layers as few kernels on a GPU: rows are read once, written once, and computed again on the way back.

A row holds the channels of one cell or of one pair. Kernels (`_triton_rows`) join normalisation, products with weights,
bias and residual; `tiles` attends in between, and pairs are multiplied as matrices, one per channel. Each layer here
computes what the one of `layers` does. What weights learn is summed by a few hundred programs, and then over these.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphbam.nn import tiles

ROWS, WARPS = 64, 4
"""Rows of a tile, and warps that share it."""

DENSE, PROJECTING, ADDING = 128, 192, 256
"""Programs that sum what weights learn, each over its own tiles: as many as run at a time on a large GPU."""

MOST_PROGRAMS = 1024
"""Programs where nothing is summed; beyond, each takes several tiles."""

CHANNELS = (32, 64)
"""Channels that a row may have."""

MOST_NUMBERS = 2**31
"""Numbers that an offset can count."""


def fits(x: Tensor, widest: int, n_parts: int) -> bool:
    """Whether kernels can take rows of `x`, and make rows of `widest` channels of them in so many parts."""
    part = widest // n_parts
    there = tiles.TRITON and x.is_cuda and x.dtype == torch.bfloat16 and x.shape[-1] in CHANNELS
    return there and part >= 16 and part & (part - 1) == 0 and x.numel() // x.shape[-1] * widest < MOST_NUMBERS


def multiplies(z_bddp: Tensor, n_sides: int) -> bool:
    """Whether kernels can take pairs too: matrices of one row and one column per variable have to fit a tile."""
    return fits(z_bddp, n_sides, 3) and z_bddp.shape[1] <= tiles.LONGEST


# ── layers ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Dense(torch.autograd.Function):
    """x + s · (relu(norm(x) Uᵀ + b) Dᵀ + b′)."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        gain: Tensor,
        shift: Tensor,
        up: Tensor,
        up_bias: Tensor,
        down: Tensor,
        down_bias: Tensor,
        scale: Tensor,
        eps: float,
    ) -> Tensor:
        ctx.save_for_backward(x, gain, shift, up, up_bias, down, down_bias, scale)
        ctx.eps = eps
        return dense(x, gain, shift, up, up_bias, down, down_bias, scale, eps)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, shift, up, up_bias, down, down_bias, scale = ctx.saved_tensors
        of_x, *sums = dense_back(slope.contiguous(), x, gain, shift, up, up_bias, down, scale, ctx.eps)
        before_outer, before, outer, total = sums
        of_gain, of_shift, of_up, of_up_bias = _learn_projection(before_outer, before, gain, shift, up)
        of_down, of_down_bias, of_scale = _learn_addition(outer, total, down, down_bias, scale)
        return of_x, of_gain, of_shift, of_up, of_up_bias, of_down, of_down_bias, of_scale, None


class Attention(torch.autograd.Function):
    """x + s · A V Wᵀ, with Q, K and V from norm(x), along samples or along variables."""

    @staticmethod
    def forward(
        ctx: Any,
        x_bmdc: Tensor,
        gain: Tensor,
        shift: Tensor,
        qkv_h3ec: Tensor,
        out_cc: Tensor,
        scale: Tensor,
        over_samples: bool,
        eps: float,
    ) -> Tensor:
        heads, _, size, channels = qkv_h3ec.shape
        qkv_bmdh3e = project(x_bmdc, gain, shift, qkv_h3ec.reshape(-1, channels), None, 0, eps)
        qkv_bmdh3e = qkv_bmdh3e.view(*x_bmdc.shape[:-1], heads, 3, size)
        y_bmdc = tiles.attend(qkv_bmdh3e, over_samples, size**-0.5).flatten(-2)
        ctx.save_for_backward(x_bmdc, gain, shift, qkv_h3ec, out_cc, scale, qkv_bmdh3e, y_bmdc)
        ctx.over_samples, ctx.eps = over_samples, eps
        return add(x_bmdc, y_bmdc, out_cc, None, scale, 0)

    @staticmethod
    def backward(ctx: Any, slope_bmdc: Tensor) -> tuple[Tensor | None, ...]:
        x_bmdc, gain, shift, qkv_h3ec, out_cc, scale, qkv_bmdh3e, y_bmdc = ctx.saved_tensors
        slope_bmdc, weight_ec = slope_bmdc.contiguous(), qkv_h3ec.reshape(-1, qkv_h3ec.shape[-1])
        of_y, outer, total = add_back(y_bmdc, slope_bmdc, out_cc, scale, 0)
        of_out, _, of_scale = _learn_addition(outer, total, out_cc, None, scale)
        of_y = of_y.view(*qkv_bmdh3e.shape[:-2], qkv_bmdh3e.shape[-1])
        of_qkv = tiles.attend_back(qkv_bmdh3e, of_y, ctx.over_samples, qkv_h3ec.shape[2] ** -0.5)
        of_x, outer, total = project_back(x_bmdc, of_qkv.flatten(-3), slope_bmdc, gain, weight_ec, 0, ctx.eps)
        of_gain, of_shift, of_weight, _ = _learn_projection(outer, total, gain, shift, weight_ec)
        return of_x, of_gain, of_shift, of_weight.view_as(qkv_h3ec), of_out, of_scale, None, None


class Products(torch.autograd.Function):
    """z + s · (W [Σ_k a_ik b_kj, Σ_k a_ki b_kj, Σ_k a_ik b_jk] / √D + b′), with sides a and b from norm(z)."""

    @staticmethod
    def forward(
        ctx: Any,
        z_bddp: Tensor,
        gain: Tensor,
        shift: Tensor,
        sides: Tensor,
        sides_bias: Tensor,
        out: Tensor,
        out_bias: Tensor,
        scale: Tensor,
        eps: float,
    ) -> Tensor:
        plane = z_bddp.shape[1] * z_bddp.shape[2]
        sides_bedd = project(z_bddp, gain, shift, sides, sides_bias, plane, eps)
        products_bedd = multiply(sides_bedd)
        ctx.save_for_backward(z_bddp, gain, shift, sides, out, out_bias, scale, sides_bedd, products_bedd)
        ctx.eps = eps
        return add(z_bddp, products_bedd, out, out_bias, scale, plane)

    @staticmethod
    def backward(ctx: Any, slope_bddp: Tensor) -> tuple[Tensor | None, ...]:
        z_bddp, gain, shift, sides, out, out_bias, scale, sides_bedd, products_bedd = ctx.saved_tensors
        slope_bddp, plane = slope_bddp.contiguous(), z_bddp.shape[1] * z_bddp.shape[2]
        of_products, outer, total = add_back(products_bedd, slope_bddp, out, scale, plane)
        of_out, of_out_bias, of_scale = _learn_addition(outer, total, out, out_bias, scale)
        of_sides = multiply_back(sides_bedd, of_products)
        of_z, outer, total = project_back(z_bddp, of_sides, slope_bddp, gain, sides, plane, ctx.eps)
        of_gain, of_shift, of_weight, of_bias = _learn_projection(outer, total, gain, shift, sides)
        return of_z, of_gain, of_shift, of_weight, of_bias, of_out, of_out_bias, of_scale, None


def _learn_projection(
    outer_nec: Tensor, slope_ne: Tensor, gain_c: Tensor, shift_c: Tensor, weight_ec: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Slopes of gain, shift, weight and bias of norm(x) Wᵀ + b, from sums of slope ⊗ normalised x and of the slope."""
    outer_ec, slope_e = outer_nec.sum(0), slope_ne.sum(0)
    of_weight_ec = outer_ec * gain_c + slope_e[:, None] * shift_c
    return (weight_ec * outer_ec).sum(0), (weight_ec * slope_e[:, None]).sum(0), of_weight_ec, slope_e


def _learn_addition(
    outer_nce: Tensor, slope_nc: Tensor, weight_ce: Tensor, bias_c: Tensor | None, scale_c: Tensor
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Slopes of weight, bias and scale of x + s · (y Wᵀ + b), from sums of slope ⊗ y and of the slope."""
    outer_ce, slope_c = outer_nce.sum(0), slope_nc.sum(0)
    of_scale_c = (weight_ce * outer_ce).sum(1)
    if bias_c is None:
        return scale_c[:, None] * outer_ce, None, of_scale_c
    return scale_c[:, None] * outer_ce, scale_c * slope_c, of_scale_c + bias_c * slope_c


# ── kernels, as operations that a compiler takes as they are ──────────────────────────────────────────────────────


@torch.library.custom_op("graphbam::dense", mutates_args=())
def dense(
    x: Tensor,
    gain: Tensor,
    shift: Tensor,
    up: Tensor,
    up_bias: Tensor,
    down: Tensor,
    down_bias: Tensor,
    scale: Tensor,
    eps: float,
) -> Tensor:
    """`Dense` of rows."""
    from graphbam.nn._triton_rows import dense_forward

    x, out = x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
    arguments = (x, gain, shift, up, up_bias, down, down_bias, scale, out, _count_rows(x), eps)
    _launch(dense_forward, _many(x), arguments, C=x.shape[-1], H=len(up))
    return out


@torch.library.custom_op("graphbam::dense_back", mutates_args=())
def dense_back(
    slope: Tensor,
    x: Tensor,
    gain: Tensor,
    shift: Tensor,
    up: Tensor,
    up_bias: Tensor,
    down: Tensor,
    scale: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Slope of x; and sums over rows of slope of hidden ⊗ normalised x, slope of hidden, slope ⊗ hidden, slope."""
    from graphbam.nn._triton_rows import dense_backward, dense_learn

    x, sizes = x.contiguous(), {"C": x.shape[-1], "H": len(up)}
    of_x, *sums = slopes = _empty_dense(slope, x, gain, shift, up, up_bias, down, scale, eps)
    inputs, n_rows = (x, slope, gain, shift, up, up_bias, down, scale), _count_rows(x)
    _launch(dense_backward, _many(x), (*inputs, of_x, n_rows, eps), **sizes)
    _launch(dense_learn, (DENSE, 2), (*inputs, *sums, n_rows, eps), **sizes, PART=len(up) // 2)
    return slopes


@torch.library.custom_op("graphbam::project", mutates_args=())
def project(
    x: Tensor, gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor | None, plane: int, eps: float
) -> Tensor:
    """norm(x) Wᵀ as rows, (..., C) → (..., E); with a `plane`, + b and as planes, (B, D, D, C) → (B, E, D, D)."""
    from graphbam.nn._triton_rows import project_forward

    x, out = x.contiguous(), _empty_projection(x, gain, shift, weight, bias, plane, eps)
    arguments = (x, gain, shift, weight, bias, out, _count_rows(x), plane, eps)
    _launch(project_forward, _many(x), arguments, C=x.shape[-1], PART=len(weight) // 3, PLANES=plane > 0)
    return out


@torch.library.custom_op("graphbam::project_back", mutates_args=())
def project_back(
    x: Tensor, slope: Tensor, past: Tensor, gain: Tensor, weight: Tensor, plane: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Slope of x, with the one that went `past`; and sums over rows of slope ⊗ normalised x and of the slope."""
    from graphbam.nn._triton_rows import project_backward, project_learn

    x, slope = x.contiguous(), slope.contiguous()
    of_x, *sums = slopes = _empty_projection_slopes(x, slope, past, gain, weight, plane, eps)
    sizes, n_rows = {"C": x.shape[-1], "PART": len(weight) // 3, "PLANES": plane > 0}, _count_rows(x)
    _launch(project_backward, _many(x), (x, slope, past, gain, weight, of_x, n_rows, plane, eps), **sizes)
    _launch(project_learn, (PROJECTING, 3), (x, slope, *sums, n_rows, plane, eps), **sizes)
    return slopes


@torch.library.custom_op("graphbam::add", mutates_args=())
def add(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None, scale: Tensor, plane: int) -> Tensor:
    """x + s · y Wᵀ; with a `plane`, x + s · (y Wᵀ + b) where y are planes."""
    from graphbam.nn._triton_rows import add_forward

    x, y, out = x.contiguous(), y.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
    _launch(add_forward, _many(x), (x, y, weight, bias, scale, out, _count_rows(x), plane), **_adding(weight, plane))
    return out


@torch.library.custom_op("graphbam::add_back", mutates_args=())
def add_back(y: Tensor, slope: Tensor, weight: Tensor, scale: Tensor, plane: int) -> tuple[Tensor, Tensor, Tensor]:
    """Slope of y; and sums over rows of slope ⊗ y and of the slope."""
    from graphbam.nn._triton_rows import add_backward

    y, slopes = y.contiguous(), _empty_addition_slopes(y, slope, weight, scale, plane)
    arguments = (y, slope, weight, scale, *slopes, _count_rows(slope), plane)
    _launch(add_backward, (ADDING,), arguments, **_adding(weight, plane))
    return slopes


@torch.library.custom_op("graphbam::multiply", mutates_args=())
def multiply(sides_bedd: Tensor) -> Tensor:
    """A B, Aᵀ B and A Bᵀ over √D, of planes a₁ b₁ a₂ b₂ a₃ b₃: (B, 6 N, D, D) → (B, 3 N, D, D)."""
    from graphbam.nn._triton_rows import multiply_forward

    out_bedd = _empty_products(sides_bedd)
    _launch_products(multiply_forward, (sides_bedd, out_bedd), out_bedd.shape)
    return out_bedd


@torch.library.custom_op("graphbam::multiply_back", mutates_args=())
def multiply_back(sides_bedd: Tensor, slope_bedd: Tensor) -> Tensor:
    """Slopes of both sides of `multiply`."""
    from graphbam.nn._triton_rows import multiply_backward

    out_bedd, slope_bedd = torch.empty_like(sides_bedd), slope_bedd.contiguous()
    _launch_products(multiply_backward, (sides_bedd, slope_bedd, out_bedd), slope_bedd.shape)
    return out_bedd


def _launch(kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], **sizes: int | bool) -> None:
    kernel[grid](*arguments, **sizes, ROWS=ROWS, num_warps=WARPS, num_stages=1)


def _launch_products(kernel: Any, tensors: tuple[Tensor, ...], shape: torch.Size) -> None:
    n_tables, n_products, d, _ = shape
    tile = max(16, 1 << (d - 1).bit_length())
    grid, warps = (n_tables * n_products,), max(1, tile // 16)
    kernel[grid](*tensors, d, d**-0.5, N=n_products // 3, TILE=tile, num_warps=warps, num_stages=1)


def _many(x: Tensor) -> tuple[int]:
    """As many programs as there are tiles, up to a few for each multiprocessor; each then takes several tiles."""
    return (min(-(-_count_rows(x) // ROWS), MOST_PROGRAMS),)


def _count_rows(x: Tensor) -> int:
    return x.numel() // x.shape[-1]


def _adding(weight_ce: Tensor, plane: int) -> dict[str, int | bool]:
    channels, wide = weight_ce.shape
    return {"C": channels, "E": wide, "WIDE": 1 << (wide - 1).bit_length(), "PLANES": plane > 0}


@dense.register_fake
def _empty_rows(x: Tensor, *rest: Any) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@add.register_fake
def _empty_sum(x: Tensor, *rest: Any) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@dense_back.register_fake
def _empty_dense(
    slope: Tensor,
    x: Tensor,
    gain: Tensor,
    shift: Tensor,
    up: Tensor,
    up_bias: Tensor,
    down: Tensor,
    scale: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    channels, hidden = down.shape
    sums = [(hidden, channels), (hidden,), (channels, hidden), (channels,)]
    of_up, of_up_bias, of_down, of_rows = (up.new_empty((DENSE, *size)) for size in sums)
    return torch.empty_like(x, memory_format=torch.contiguous_format), of_up, of_up_bias, of_down, of_rows


@project.register_fake
def _empty_projection(
    x: Tensor, gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor | None, plane: int, eps: float
) -> Tensor:
    return x.new_empty((len(x), len(weight), *x.shape[1:-1]) if bias is not None else (*x.shape[:-1], len(weight)))


@project_back.register_fake
def _empty_projection_slopes(
    x: Tensor, slope: Tensor, past: Tensor, gain: Tensor, weight: Tensor, plane: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    sums = weight.new_empty((PROJECTING, *weight.shape)), weight.new_empty((PROJECTING, len(weight)))
    return torch.empty_like(x, memory_format=torch.contiguous_format), *sums


@add_back.register_fake
def _empty_addition_slopes(
    y: Tensor, slope: Tensor, weight: Tensor, scale: Tensor, plane: int
) -> tuple[Tensor, Tensor, Tensor]:
    sums = weight.new_empty((ADDING, *weight.shape)), weight.new_empty((ADDING, len(weight)))
    return torch.empty_like(y, memory_format=torch.contiguous_format), *sums


@multiply.register_fake
def _empty_products(sides_bedd: Tensor) -> Tensor:
    return sides_bedd.new_empty((len(sides_bedd), sides_bedd.shape[1] // 2, *sides_bedd.shape[2:]))


@multiply_back.register_fake
def _empty_side_slopes(sides_bedd: Tensor, slope_bedd: Tensor) -> Tensor:
    return torch.empty_like(sides_bedd)
