"""Layers as few kernels on a GPU: rows are read once, written once, and computed again on the way back.

A row holds the channels of one cell or of one pair. Kernels (`_triton_rows`) join normalisation, products with weights,
bias and residual; `tiles` attends in between, and pairs are multiplied as matrices, one per channel. Each layer here
computes what the one of `layers` does. Programs sum what weights learn over their tiles, and one kernel adds these up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphbam.nn import tiles


class Plan(NamedTuple):
    """How a kernel goes through rows."""

    rows: int
    """Of a tile."""
    warps: int
    """That share a tile."""
    stages: int
    """Tiles under way: with two, one is loaded while the other is computed."""
    programs: int
    """Most programs; beyond, each takes several tiles. Of kernels that sum, as many as a large GPU runs at a time."""


CELLS = {
    "dense_forward": Plan(128, 4, 1, 264),
    "dense_backward": Plan(64, 4, 1, 264),
    "dense_learn": Plan(64, 4, 1, 132),
    "project_forward": Plan(128, 4, 1, 2048),
    "project_backward": Plan(64, 4, 1, 528),
    "project_learn": Plan(64, 4, 2, 264),
    "add_forward": Plan(128, 4, 1, 2048),
    "add_backward": Plan(128, 4, 2, 264),
}
"""Plans by kernel, the quickest of two to four dozen each on an H200 (docs/performance.md) …"""

PAIRS = CELLS | {
    "project_forward": Plan(64, 4, 2, 528),
    "project_backward": Plan(64, 4, 2, 528),
    "project_learn": Plan(64, 4, 1, 132),
    "add_forward": Plan(128, 4, 2, 528),
    "add_backward": Plan(128, 4, 1, 132),
}
"""… and where channels are planes."""

BLOCK, AT_ONCE = 32, 256
"""Numbers that a program adds up over all others, and over how many of them at a time."""

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
        _, gain, shift, up, up_bias, down, down_bias, scale = ctx.saved_tensors
        of_x, learnt = dense_back(slope.contiguous(), *ctx.saved_tensors, ctx.eps)
        found = _split_like(learnt, up, down, up_bias, down_bias, gain, shift, scale)
        of_up, of_down, of_up_bias, of_down_bias, of_gain, of_shift, of_scale = found
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
        of_y, learnt = add_back(y_bmdc, slope_bmdc, out_cc, None, scale, 0)
        of_out, of_scale = _split_like(learnt, out_cc, scale)
        of_y = of_y.view(*qkv_bmdh3e.shape[:-2], qkv_bmdh3e.shape[-1])
        of_qkv = tiles.attend_back(qkv_bmdh3e, of_y, ctx.over_samples, qkv_h3ec.shape[2] ** -0.5)
        of_x, learnt = project_back(x_bmdc, of_qkv.flatten(-3), slope_bmdc, gain, shift, weight_ec, 0, ctx.eps)
        of_qkv_weight, _, of_gain, of_shift = _split_like(learnt, qkv_h3ec, weight_ec[:, 0], gain, shift)
        return of_x, of_gain, of_shift, of_qkv_weight, of_out, of_scale, None, None


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
        of_products, learnt = add_back(products_bedd, slope_bddp, out, out_bias, scale, plane)
        of_out, of_scale, of_out_bias = _split_like(learnt, out, scale, out_bias)
        of_sides_bedd = multiply_back(sides_bedd, of_products)
        of_z, learnt = project_back(z_bddp, of_sides_bedd, slope_bddp, gain, shift, sides, plane, ctx.eps)
        of_sides, of_sides_bias, of_gain, of_shift = _split_like(learnt, sides, sides[:, 0], gain, shift)
        return of_z, of_gain, of_shift, of_sides, of_sides_bias, of_out, of_out_bias, of_scale, None


def _split_like(learnt: Tensor, *weights: Tensor) -> list[Tensor]:
    """Slopes of several weights, which lie one behind the other."""
    parts = learnt.split([weight.numel() for weight in weights])
    return [part.view(weight.shape) for part, weight in zip(parts, weights, strict=True)]


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
    _launch(dense_forward, x, arguments, C=x.shape[-1], H=len(up))
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
    down_bias: Tensor,
    scale: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Slope of x; and those of weights: U, D, b, b′, gain, shift, s."""
    from graphbam.nn._triton_rows import dense_backward, dense_learn

    x, (hidden, channels) = x.contiguous(), up.shape
    of_x, learnt = slopes = _empty_dense(slope, x, gain, shift, up, up_bias, down, down_bias, scale, eps)
    inputs, n_rows, sizes = (x, slope, gain, shift, up, up_bias, down), _count_rows(x), {"C": channels, "H": hidden}
    _launch(dense_backward, x, (*inputs, scale, of_x, n_rows, eps), **sizes)
    add_up = functools.partial(_launch_sums, dense_learn, x, learnt, 2, 3 * channels)
    add_up(lambda parts: (*inputs, down_bias, scale, parts, n_rows, eps), **sizes, PART=hidden // 2)
    return slopes


@torch.library.custom_op("graphbam::project", mutates_args=())
def project(
    x: Tensor, gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor | None, plane: int, eps: float
) -> Tensor:
    """norm(x) Wᵀ as rows, (..., C) → (..., E); with a `plane`, + b and as planes, (B, D, D, C) → (B, E, D, D)."""
    from graphbam.nn._triton_rows import project_forward

    x, out = x.contiguous(), _empty_projection(x, gain, shift, weight, bias, plane, eps)
    arguments = (x, gain, shift, weight, bias, out, _count_rows(x), plane, eps)
    _launch(project_forward, x, arguments, C=x.shape[-1], PART=len(weight) // 3, PLANES=plane > 0)
    return out


@torch.library.custom_op("graphbam::project_back", mutates_args=())
def project_back(
    x: Tensor, slope: Tensor, past: Tensor, gain: Tensor, shift: Tensor, weight: Tensor, plane: int, eps: float
) -> tuple[Tensor, Tensor]:
    """Slope of x, with the one that went `past`; and those of weights: W, b, gain, shift."""
    from graphbam.nn._triton_rows import project_backward, project_learn

    x, slope, n_rows = x.contiguous(), slope.contiguous(), _count_rows(x)
    of_x, learnt = slopes = _empty_projection_slopes(x, slope, past, gain, shift, weight, plane, eps)
    sizes = {"C": x.shape[-1], "PART": len(weight) // 3, "PLANES": plane > 0}
    _launch(project_backward, x, (x, slope, past, gain, weight, of_x, n_rows, plane, eps), **sizes)
    add_up = functools.partial(_launch_sums, project_learn, x, learnt, 1, 0)
    add_up(lambda parts: (x, slope, gain, shift, weight, parts, n_rows, plane, eps), **sizes)
    return slopes


@torch.library.custom_op("graphbam::add", mutates_args=())
def add(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None, scale: Tensor, plane: int) -> Tensor:
    """x + s · y Wᵀ; with a `plane`, x + s · (y Wᵀ + b) where y are planes."""
    from graphbam.nn._triton_rows import add_forward

    x, y, out = x.contiguous(), y.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
    _launch(add_forward, x, (x, y, weight, bias, scale, out, _count_rows(x), plane), **_adding(weight, plane))
    return out


@torch.library.custom_op("graphbam::add_back", mutates_args=())
def add_back(
    y: Tensor, slope: Tensor, weight: Tensor, bias: Tensor | None, scale: Tensor, plane: int
) -> tuple[Tensor, Tensor]:
    """Slope of y; and those of weights: W, s and, with a `plane`, b."""
    from graphbam.nn._triton_rows import add_backward

    y, (of_y, learnt) = y.contiguous(), _empty_addition_slopes(y, slope, weight, bias, scale, plane)
    inputs = (y, slope, weight, bias, scale, of_y)
    add_up = functools.partial(_launch_sums, add_backward, slope, learnt, 1, 0)
    add_up(lambda parts: (*inputs, parts, _count_rows(slope), plane), **_adding(weight, plane))
    return of_y, learnt


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


def _launch(kernel: Any, rows: Tensor, arguments: tuple[Any, ...], **sizes: int | bool) -> None:
    """Run a kernel as its plan says."""
    plan, n_programs = _plan(kernel, rows, sizes)
    _run(kernel, (n_programs,), arguments, plan, sizes)


def _launch_sums(
    kernel: Any,
    rows: Tensor,
    learnt: Tensor,
    n_parts: int,
    short: int,
    arguments: Callable[[Tensor], tuple[Any, ...]],
    **sizes: int | bool,
) -> None:
    """Run a kernel in which `n_parts` programs share a tile, and add up what weights learn.

    The last `short` numbers come from each of these parts, the others from all together.
    """
    from graphbam.nn._triton_rows import add_up

    plan, n_programs = _plan(kernel, rows, sizes)
    length = len(learnt) - short
    parts = learnt.new_empty(n_programs * (length + n_parts * short))
    _run(kernel, (n_programs, n_parts), arguments(parts), plan, sizes)
    grid, counts = -(-length // BLOCK) - (-short // BLOCK), (n_programs, length, n_programs * n_parts, short)
    add_up[(grid,)](parts, learnt, *counts, BLOCK=BLOCK, ROWS=AT_ONCE, num_warps=8)


def _run(kernel: Any, grid: tuple[int, ...], arguments: tuple[Any, ...], plan: Plan, sizes: dict[str, Any]) -> None:
    kernel[grid](*arguments, **sizes, ROWS=plan.rows, num_warps=plan.warps, num_stages=plan.stages)


def _plan(kernel: Any, rows: Tensor, sizes: dict[str, Any]) -> tuple[Plan, int]:
    """How a kernel goes through rows, and by how many programs: as few as are done as early."""
    plan = (PAIRS if sizes.get("PLANES") else CELLS)[kernel.__name__]
    n_tiles = -(-_count_rows(rows) // plan.rows)
    return plan, -(-n_tiles // -(-n_tiles // plan.programs))


def _launch_products(kernel: Any, tensors: tuple[Tensor, ...], shape: torch.Size) -> None:
    n_tables, n_products, d, _ = shape
    tile = max(16, 1 << (d - 1).bit_length())
    grid, warps = (n_tables * n_products,), max(1, tile // 16)
    kernel[grid](*tensors, d, d**-0.5, N=n_products // 3, TILE=tile, num_warps=warps, num_stages=1)


def _count_rows(x: Tensor) -> int:
    return x.numel() // x.shape[-1]


def _adding(weight_ce: Tensor, plane: int) -> dict[str, int | bool]:
    channels, wide = weight_ce.shape
    return {"C": channels, "E": wide, "WIDE": 1 << (wide - 1).bit_length(), "PLANES": plane > 0}


def _empty_slopes(x: Tensor, *weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Slopes of rows, and of weights, one behind the other."""
    learnt = torch.empty(sum(w.numel() for w in weights if w is not None), dtype=torch.float32, device=x.device)
    return torch.empty_like(x, memory_format=torch.contiguous_format), learnt


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
    down_bias: Tensor,
    scale: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    return _empty_slopes(x, gain, shift, up, up_bias, down, down_bias, scale)


@project.register_fake
def _empty_projection(
    x: Tensor, gain: Tensor, shift: Tensor, weight: Tensor, bias: Tensor | None, plane: int, eps: float
) -> Tensor:
    return x.new_empty((len(x), len(weight), *x.shape[1:-1]) if bias is not None else (*x.shape[:-1], len(weight)))


@project_back.register_fake
def _empty_projection_slopes(
    x: Tensor, slope: Tensor, past: Tensor, gain: Tensor, shift: Tensor, weight: Tensor, plane: int, eps: float
) -> tuple[Tensor, Tensor]:
    return _empty_slopes(x, weight, weight[:, 0], gain, shift)


@add_back.register_fake
def _empty_addition_slopes(
    y: Tensor, slope: Tensor, weight: Tensor, bias: Tensor | None, scale: Tensor, plane: int
) -> tuple[Tensor, Tensor]:
    return _empty_slopes(y, weight, scale, bias)


@multiply.register_fake
def _empty_products(sides_bedd: Tensor) -> Tensor:
    return sides_bedd.new_empty((len(sides_bedd), sides_bedd.shape[1] // 2, *sides_bedd.shape[2:]))


@multiply_back.register_fake
def _empty_side_slopes(sides_bedd: Tensor, slope_bedd: Tensor) -> Tensor:
    return torch.empty_like(sides_bedd)
