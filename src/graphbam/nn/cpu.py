"""The forward pass on a CPU, without gradients: what `layers` say, in blocks that a cache holds.

Layers are what trains, and what is compared with this. Here observations and pairs are changed in place and block by
block, since fresh memory costs more than the arithmetic on it, and learned scales are part of the weights after them.
Where the processor has units for it, factors of products are rounded to bfloat16; all sums, and all that is carried
from layer to layer, keep the precision of the table. So answers stay closer to those of float32 than on a GPU, where
observations themselves are bfloat16.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbam.nn import spd
from graphbam.nn.layers import AxialAttention, BilinearBlock, Dense, Embedding, PairBlock, attend_bilinearly

CELLS_IN_BLOCK = 2**14
"""Cells, or pairs, whose channels are handled at once."""

SCORES_IN_BLOCK = 2**22
"""Attention scores that are held at once, 8 MB of bfloat16."""

MATRIX_CELLS_IN_BLOCK = 2**20
"""Entries of relations, all channels counted, that bilinear blocks handle at once."""

LARGEST_SCORE = 100.0
"""Powers of two up to this one, and sums of many of them, are far from the end of the range of bfloat16."""


def is_quick(x: Tensor) -> bool:
    """Whether a forward pass of this tensor comes here: on a CPU, and nobody asks for gradients."""
    return x.device.type == "cpu" and not torch.is_grad_enabled()


@functools.lru_cache
def has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 by itself; where it does not, bfloat16 is slower than float32."""
    ask = getattr(torch.cpu, "get_capabilities", None)  # an older torch does not tell
    able = ask() if ask is not None and torch.backends.mkldnn.is_available() else {}
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))


def factor_dtype(x: Tensor, *, mixed_precision: bool = True) -> torch.dtype:
    """Precision of the factors of products: bfloat16 for float32 where that is quicker."""
    half = mixed_precision and x.dtype == torch.float32 and has_bfloat16()
    return torch.bfloat16 if half else x.dtype


# ── observations: (B, M, D, C) ────────────────────────────────────────────────────────────────────────────────────


def embed(embedding: Embedding, x_bmd: Tensor) -> Tensor:
    """`Embedding`, block by block."""
    h_bmdc = x_bmd.new_empty(*x_bmd.shape, embedding.mix.out_features)
    for x_n, h_nc in zip(_blocks(x_bmd.reshape(-1)), _blocks(h_bmdc.flatten(0, 2)), strict=True):
        h_nc.copy_(embedding(x_n, x_n.dtype))
    return h_bmdc


def observe(layers: Iterable[nn.Module], h_bmdc: Tensor, dtype: torch.dtype) -> None:
    """All observation layers, in place; `dtype` is that of factors."""
    for layer in layers:
        if isinstance(layer, AxialAttention):
            _attend(layer, h_bmdc, dtype)
        else:
            assert isinstance(layer, Dense)
            _densify(layer, h_bmdc, dtype)


def _attend(layer: AxialAttention, h_bmdc: Tensor, dtype: torch.dtype) -> None:
    """`AxialAttention`, in place: rows of a table apart, or its variables."""
    weight = layer.qkv.to(h_bmdc.dtype).clone()
    weight[:, 0] *= layer.size**-0.5 * (1 if dtype == h_bmdc.dtype else math.log2(math.e))
    weight, scale = weight.to(dtype), layer.residual.scale.to(h_bmdc.dtype)
    out = None if layer.out is None else _scale(layer.out, scale, dtype)
    mix = _attend_at_once if dtype == h_bmdc.dtype else _attend_by_head
    for x_nlc in _lines(layer, h_bmdc):
        y_nlc = mix(layer.norm(x_nlc).to(dtype).contiguous(), weight)
        x_nlc.add_(y_nlc * scale if out is None else F.linear(y_nlc, *out))


def _lines(layer: AxialAttention, h_bmdc: Tensor) -> Iterator[Tensor]:
    """Blocks (N, L, C) of lines that are attended along: rows of D variables, or variables of M samples."""
    groups = [h_bmdc.flatten(0, 1)] if layer.axis == "attributes" else [h.transpose(0, 1) for h in h_bmdc]
    for lines_nlc in groups:
        length = lines_nlc.shape[1]
        most = min(CELLS_IN_BLOCK // length, SCORES_IN_BLOCK // length**2)
        yield from lines_nlc.split(max(1, most))


def _attend_at_once(n_nlc: Tensor, weight: Tensor) -> Tensor:
    """Values of all heads, mixed by the kernel of torch, which is the quickest in float32."""
    q, k, v = F.linear(n_nlc, weight.flatten(0, 2)).unflatten(-1, weight.shape[:3]).transpose(1, 2).unbind(-2)
    return F.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(1, 2).flatten(-2)


def _attend_by_head(n_nlc: Tensor, weight: Tensor) -> Tensor:
    """The same by plain products, head by head: in bfloat16 they are quicker. Scores are logarithms to base two."""
    y_nlhe = n_nlc.new_empty(*n_nlc.shape[:2], weight.shape[0], weight.shape[2])
    for head, parts in enumerate(weight):
        q, k, v = (F.linear(n_nlc, part) for part in parts)
        if q.norm(dim=-1).amax() * k.norm(dim=-1).amax() > LARGEST_SCORE:
            y_nle = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], scale=math.log(2))[:, 0]
            y_nlhe[:, :, head] = y_nle
            continue
        most = max(1, SCORES_IN_BLOCK // (len(k) * k.shape[1]))
        for some_q, y_nle in zip(q.split(most, 1), y_nlhe[:, :, head].split(most, 1), strict=True):
            a_nll = torch.bmm(some_q, k.mT).exp2_()  # no score is too large, so none has to be subtracted
            torch.div(torch.bmm(a_nll, v), a_nll.sum(-1, keepdim=True), out=y_nle)
    return y_nlhe.flatten(-2)


def _densify(layer: Dense, x: Tensor, dtype: torch.dtype) -> None:
    """`Dense`, in place."""
    scale = layer.residual.scale.to(x.dtype)
    up, up_bias = layer.up.weight.to(dtype), layer.up.bias.to(dtype)
    down = None if layer.down is None else _scale(layer.down, scale, dtype)
    for x_nc in _blocks(x.flatten(0, -2)):
        y = F.linear(layer.norm(x_nc).to(dtype), up, up_bias).relu_()
        x_nc.add_(y * scale if down is None else F.linear(y, *down))


def _scale(layer: nn.Linear, scale: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of a layer whose output is scaled."""
    bias = None if layer.bias is None else (layer.bias * scale).to(dtype)
    return (layer.weight * scale[:, None]).to(dtype), bias


def _blocks(x: Tensor) -> tuple[Tensor, ...]:
    """Cells, or their channels, a few at a time."""
    return x.split(CELLS_IN_BLOCK)


# ── pairs: (B, D, D, P) ───────────────────────────────────────────────────────────────────────────────────────────


def add_features(
    z_bddp: Tensor, part_bcdd: Tensor, weight_pc: Tensor, sure: tuple[Tensor, Tensor] | None = None
) -> None:
    """Mix features into the channels of pairs, in place; `sure` are weights of asinh(√M r), and √M.

    Features of different kinds are thus never held side by side.
    """
    for b, (z_ddp, part_cdd) in enumerate(zip(z_bddp, part_bcdd, strict=True)):
        parts = part_cdd.flatten(1).split(CELLS_IN_BLOCK, 1)
        for z_np, part_cn in zip(_blocks(z_ddp.flatten(0, 1)), parts, strict=True):
            z_np.addmm_(part_cn.mT, weight_pc.mT)
            if sure is not None:
                sure_pc, sqrt_m = sure
                z_np.addmm_(asinh(sqrt_m.flatten().expand(len(z_bddp))[b] * part_cn).mT, sure_pc.mT)


def asinh(x: Tensor) -> Tensor:
    """Inverse hyperbolic sine, within rounding of one; that of torch is not vectorised on a CPU.

    Examples
    --------
    >>> asinh(torch.tensor([-3.0, 0.0, 1.0]))
    tensor([-1.8184,  0.0000,  0.8814])
    """
    return torch.addcmul(x.new_ones(()), x, x).sqrt_().add_(x.abs()).log_().copysign_(x)


def reason(layers: Iterable[nn.Module], z_bddp: Tensor, dtype: torch.dtype) -> None:
    """All pair blocks, in place; `dtype` is that of factors."""
    blocks, pairs = [layer for layer in layers if isinstance(layer, PairBlock)], z_bddp.shape[1:3]
    sides_sdd = z_bddp.new_empty(blocks[0].sides.out_features, *pairs, dtype=dtype)
    products_tdd = z_bddp.new_empty(blocks[0].out.in_features, *pairs, dtype=dtype)
    for block in blocks:
        for z_ddp in z_bddp:
            _read_sides(block, z_ddp, sides_sdd)
            a1, b1, a2, b2, a3, b3 = sides_sdd.chunk(6)
            for out, (a, b) in zip(products_tdd.chunk(3), [(a1, b1), (a2.mT, b2), (a3, b3.mT)], strict=True):
                torch.bmm(a, b, out=out)
            _add_products(block, z_ddp, products_tdd)
        _densify(block.dense, z_bddp, dtype)


def _read_sides(block: PairBlock, z_ddp: Tensor, sides_sdd: Tensor) -> None:
    """What a pair says to others: two sides of each product, one matrix per channel."""
    weight, bias = block.sides.weight.to(sides_sdd.dtype), block.sides.bias.to(sides_sdd.dtype)[:, None]
    parts = sides_sdd.flatten(1).split(CELLS_IN_BLOCK, 1)
    for z_np, sides_sn in zip(_blocks(z_ddp.flatten(0, 1)), parts, strict=True):
        torch.addmm(bias, weight, block.norm(z_np).to(sides_sdd.dtype).mT, out=sides_sn)


def _add_products(block: PairBlock, z_ddp: Tensor, products_tdd: Tensor) -> None:
    """Sums over third variables back into the channels of pairs, in place."""
    scale, dtype = block.residual.scale.to(z_ddp.dtype), products_tdd.dtype
    (weight, _), (_, bias) = _scale(block.out, scale * len(z_ddp) ** -0.5, dtype), _scale(block.out, scale, dtype)
    parts = products_tdd.flatten(1).split(CELLS_IN_BLOCK, 1)
    for z_np, product_tn in zip(_blocks(z_ddp.flatten(0, 1)), parts, strict=True):
        z_np.add_(F.linear(product_tn.mT, weight, bias))


# ── relations: (B, C, D, D) ───────────────────────────────────────────────────────────────────────────────────────


def each_resolvent(s: Tensor, poles: Iterable[float]) -> Iterator[Tensor]:
    """`spd.resolvents`, one pole at a time and each in the place of the one before; they may be changed."""
    out = torch.empty_like(s, memory_format=torch.contiguous_format)
    for pole in poles:
        spd.invert_into(out, s, pole)
        yield out


def correlate_(s: Tensor) -> Tensor:
    """`spd.correlate` in place."""
    scale = s.diagonal(dim1=-2, dim2=-1).rsqrt()
    return s.mul_(scale[..., :, None]).mul_(scale[..., None, :])


def relate(blocks: Iterable[nn.Module], s_bcdd: Tensor) -> Tensor:
    """All bilinear blocks, a few channels at a time."""
    s_bcdd = s_bcdd.clone()
    for block in blocks:
        assert isinstance(block, BilinearBlock)
        attention, weight_c4 = block.attention, block.activation.weight.softmax(-1).to(s_bcdd.dtype)
        scale = F.softplus(attention.scale).to(s_bcdd.dtype)[:, None, None]
        k_bcdd, q_bcdd = attention.key(s_bcdd), attention.query(s_bcdd)
        size = max(1, MATRIX_CELLS_IN_BLOCK // s_bcdd[:, 0].numel())
        for c in torch.arange(s_bcdd.shape[1]).split(size):
            part = slice(int(c[0]), int(c[-1]) + 1)
            s = attend_bilinearly(s_bcdd[:, part], k_bcdd[:, part], q_bcdd[:, part], scale[part])
            s_bcdd[:, part] = block.activation.bend(s, weight_c4[part])
    return s_bcdd
