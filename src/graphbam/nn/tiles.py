"""Attention along lines of up to 128 cells on a GPU: one tile, one program, nothing kept for the way back.

Kernels for attention are made for thousands of positions: they go through keys block by block, and their backward pass
through queries again. A row of a table, or a stretch of its samples, fits a single tile. Scores then never leave the
registers, the backward pass is one kernel too, and slopes are written where the projection wants them. Short lines that
lie side by side share a tile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphbam.nn.device import TRITON as TRITON

LONGEST = 128
"""Longest line that fits a tile."""

NARROW = 64
"""Tile of lines that are no longer; longer ones have a tile of `LONGEST`."""

QUERIES = 64
"""Most queries of a tile at a time: scores of more would crowd the registers."""

SIZES = (16, 32, 64)
"""Channels a head may have."""


def fits(x_bmdc: Tensor, length: int, size: int) -> bool:
    """Whether attention along lines of `length` cells, in heads of `size` channels, can go by tiles."""
    return TRITON and x_bmdc.is_cuda and x_bmdc.dtype == torch.bfloat16 and length <= LONGEST and size in SIZES


@torch.library.custom_op("graphbam::attend", mutates_args=())
def attend(qkv_bmdh3e: Tensor, over_samples: bool, scale: float) -> Tensor:
    """softmax(Q Kᵀ · scale) V along variables, or along samples: (B, M, D, heads, 3, e) → (B, M, D, heads, e)."""
    from graphbam.nn._triton import attend_forward

    qkv_bmdh3e = qkv_bmdh3e.contiguous()
    y_bmdhe = _empty_answer(qkv_bmdh3e, over_samples, scale)
    _launch(attend_forward, (qkv_bmdh3e, y_bmdhe, scale), qkv_bmdh3e.shape, over_samples)
    return y_bmdhe


@torch.library.custom_op("graphbam::attend_back", mutates_args=())
def attend_back(qkv_bmdh3e: Tensor, slope_bmdhe: Tensor, over_samples: bool, scale: float) -> Tensor:
    """Slopes of `attend` with respect to what it read, from those with respect to what it gave."""
    from graphbam.nn._triton import attend_backward

    qkv_bmdh3e, slope_bmdhe = qkv_bmdh3e.contiguous(), slope_bmdhe.contiguous()
    slope_bmdh3e = torch.empty_like(qkv_bmdh3e)
    _launch(attend_backward, (qkv_bmdh3e, slope_bmdhe, slope_bmdh3e, scale), qkv_bmdh3e.shape, over_samples)
    return slope_bmdh3e


class Plan(NamedTuple):
    """Where tiles lie, counted in cells; tile (i, j) begins at i · outer_step + j · inner_step."""

    outer: int
    inner: int
    outer_step: int
    inner_step: int
    step: int
    """From one position of a tile to the next."""
    line: int
    """Positions of a line."""
    per_tile: int
    """Positions of a tile that are used, all of whole lines …"""
    n_positions: int
    """… unless there are no more, over all outer tiles."""
    tile: int
    """Positions of a tile, a power of two."""


def plan_tiles(n_tables: int, n_samples: int, n_variables: int, *, over_samples: bool) -> Plan:
    """One line a tile along samples, whose cells lie apart; along variables as many as it holds, side by side.

    Examples
    --------
    >>> plan_tiles(2, 100, 20, over_samples=False).per_tile  # three rows
    60
    >>> plan_tiles(2, 100, 20, over_samples=True).tile
    128
    """
    if over_samples:
        tile = max(16, 1 << (n_samples - 1).bit_length())
        steps = (n_samples * n_variables, 1, n_variables)
        return Plan(n_tables, n_variables, *steps, n_samples, n_samples, n_tables * n_samples, tile)
    tile = NARROW if n_variables <= NARROW else LONGEST
    per_tile, n_positions = tile // n_variables * n_variables, n_tables * n_samples * n_variables
    return Plan(-(-n_positions // per_tile), 1, per_tile, 0, 1, n_variables, per_tile, n_positions, tile)


def _launch(kernel: Any, arguments: tuple[Any, ...], shape: torch.Size, over_samples: bool) -> None:
    *table, heads, _, size = shape
    plan = plan_tiles(*table, over_samples=over_samples)
    outer, *rest, tile = plan
    layout = {"HEADS": heads, "SIZE": size, "TILE": tile, "QUERIES": min(tile, QUERIES)}
    alone = plan.line == plan.per_tile
    kernel[(outer * plan.inner, heads)](*arguments, *rest, **layout, ALONE=alone, num_warps=min(tile // 16, 4))


@attend.register_fake
def _empty_answer(qkv_bmdh3e: Tensor, over_samples: bool, scale: float) -> Tensor:
    return qkv_bmdh3e.new_empty((*qkv_bmdh3e.shape[:-2], qkv_bmdh3e.shape[-1]))


@attend_back.register_fake
def _empty_slope(qkv_bmdh3e: Tensor, slope_bmdhe: Tensor, over_samples: bool, scale: float) -> Tensor:
    return qkv_bmdh3e.new_empty(qkv_bmdh3e.shape)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    qkv_bmdh3e, ctx.over_samples, ctx.scale = inputs
    ctx.save_for_backward(qkv_bmdh3e)


def _go_back(ctx: Any, slope_bmdhe: Tensor) -> tuple[Tensor, None, None]:
    return attend_back(*ctx.saved_tensors, slope_bmdhe, ctx.over_samples, ctx.scale), None, None


attend.register_autograd(_go_back, setup_context=_remember)
