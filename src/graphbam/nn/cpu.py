"""The forward pass on a CPU, without gradients: what `layers` say, in blocks that a cache holds.

Layers are what trains, and what is compared with this. Here observations and pairs are changed in place and block by
block, since fresh memory costs more than the arithmetic on it, and learned scales are part of the weights after them.
Where the processor has units for it, factors of products are rounded to bfloat16; all sums, and all that is carried
from layer to layer, keep the precision of the table. So answers stay closer to those of float32 than on a GPU, where
observations themselves are bfloat16.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbam.nn import spd
from graphbam.nn.layers import (
    AxialAttention,
    BilinearBlock,
    ChannelCorrelation,
    CrossCovariance,
    Dense,
    Embedding,
    PairBlock,
    SPDActivation,
    attend_bilinearly,
    read_channels,
    sees_samples,
)
from graphbam.nn.threads import crew_size, share

CELLS_IN_BLOCK = 2**14
"""Cells, or pairs, whose channels are handled at once."""

SCORES_IN_BLOCK = 2**20
"""Attention scores that a thread holds at once, 2 MB of bfloat16."""

MATRIX_CELLS_IN_BLOCK = 2**20
"""Entries of relations, all channels counted, that bilinear blocks handle at once."""

RESOLVENTS_HELD = 2**22
"""Entries of inverses that are held at once, 16 MB of float32; of larger matrices, those of one pole."""

READINGS_IN_BLOCK = 16
"""Channels of observations that are read at once, each a table."""

LEAST_SUM = 2.0**-100
"""Sums of powers of two between this and its inverse, and values times these powers, are far from the ends of the range
of bfloat16; all scores of a line may still be far below its largest, and count as little as they should."""

Step = Callable[[Tensor], None]
"""A layer, in place, of a block of cells or pairs."""

PairStep = Callable[[Tensor, Tensor], None]
"""The same between a block of pairs (N, P) and their channels as matrices, (S, N)."""


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
    share(lambda x_n, h_nc: h_nc.copy_(embedding(x_n, x_n.dtype)), _cut(x_bmd.reshape(-1)), _cut(h_bmdc.flatten(0, 2)))
    return h_bmdc


def observe(layers: Iterable[nn.Module], h_bmdc: Tensor, dtype: torch.dtype, n_stretches: int = 1) -> None:
    """All observation layers, in place; `dtype` is that of factors. Samples see every n-th other.

    Layers in which samples do not meet follow each other row by row, so that threads wait for each other less often.
    """
    for is_along_samples, some in itertools.groupby(layers, sees_samples):
        steps = [_make_step(layer, h_bmdc, dtype) for layer in some]
        blocks = _stretches(h_bmdc, n_stretches) if is_along_samples else _blocks_of_lines(h_bmdc.flatten(0, 1))
        share(functools.partial(_take_steps, steps), blocks)


def _take_steps(steps: Sequence[Step], x: Tensor) -> None:
    for step in steps:
        step(x)


def _make_step(layer: nn.Module, x: Tensor, dtype: torch.dtype) -> Step:
    if isinstance(layer, AxialAttention):
        return _make_attention(layer, x, dtype)
    assert isinstance(layer, Dense)
    return _make_dense(layer, x, dtype)


def _make_attention(layer: AxialAttention, x: Tensor, dtype: torch.dtype) -> Step:
    """`AxialAttention`, in place, of lines (N, L, C)."""
    weight = layer.qkv.to(x.dtype).transpose(0, 1).clone()
    weight[0] *= layer.size**-0.5 * (1 if dtype == x.dtype else math.log2(math.e))
    weight_3hec, scale = weight.to(dtype), layer.residual.scale.to(x.dtype)
    out = None if layer.out is None else _scale(layer.out, scale, dtype)
    mix = _attend_at_once if dtype == x.dtype else _attend_by_powers

    def add_attended(x_nlc: Tensor) -> None:
        y_nlc = mix(layer.norm(x_nlc).to(dtype).contiguous(), weight_3hec)
        x_nlc.add_(y_nlc * scale if out is None else F.linear(y_nlc, *out))

    return add_attended


def _stretches(h_bmdc: Tensor, n_stretches: int) -> Iterator[Tensor]:
    """Blocks (N, L, C) of lines along samples, one for each variable and each stretch of samples.

    Stretches of equal length are like n times as many variables.
    """
    for h_mdc in h_bmdc:
        if len(h_mdc) % n_stretches == 0:
            yield from _blocks_of_lines(h_mdc.view(len(h_mdc) // n_stretches, -1, h_mdc.shape[-1]).transpose(0, 1))
            continue
        for k in range(n_stretches):
            yield from _blocks_of_lines(h_mdc[k::n_stretches].transpose(0, 1))


def _blocks_of_lines(lines_nlc: Tensor) -> Sequence[Tensor]:
    return _cut(lines_nlc, CELLS_IN_BLOCK // lines_nlc.shape[1])


def _attend_at_once(n_nlc: Tensor, weight_3hec: Tensor) -> Tensor:
    """Values of all heads, mixed by the kernel of torch, which is the quickest in float32."""
    parts = F.linear(n_nlc, weight_3hec.flatten(0, 2)).unflatten(-1, weight_3hec.shape[:3]).movedim(1, 3)
    q, k, v = parts.unbind(1)
    return F.scaled_dot_product_attention(q, k, v, scale=1.0).transpose(1, 2).flatten(-2)


def _attend_by_powers(n_nlc: Tensor, weight_3hec: Tensor) -> Tensor:
    """The same by plain products, lines of all heads alike: in bfloat16 they are quicker. Scores are to base two."""
    (n, length, _), (_, heads, size, _) = n_nlc.shape, weight_3hec.shape
    cells_nc, parts = n_nlc.flatten(0, 1), n_nlc.new_empty(3, heads, n * length, size)
    for weight_ec, part in zip(weight_3hec.flatten(0, 1), parts.flatten(0, 1), strict=True):
        torch.mm(cells_nc, weight_ec.mT, out=part)  # at once they would want a copy of all cells each
    q, k, v = parts.view(3, heads * n, length, size)
    y_hnle = _mix_values(q, k, v).view(heads, n, length, size)
    return y_hnle.permute(1, 2, 0, 3).flatten(-2)


def _mix_values(q_nle: Tensor, k_nle: Tensor, v_nle: Tensor) -> Tensor:
    """Values in proportion to powers of two of their scores, from which nothing is subtracted if none is too large."""
    n, length = q_nle.shape[:2]
    lines = max(1, min(n, SCORES_IN_BLOCK // length**2))
    queries = max(1, min(length, SCORES_IN_BLOCK // (lines * length)))
    y_nle, kept = torch.empty_like(q_nle), q_nle.new_empty(lines, queries, length)
    for q, k, v, y in zip(*(part.split(lines) for part in (q_nle, k_nle, v_nle, y_nle)), strict=True):
        for some_q, some_y in zip(q.split(queries, 1), y.split(queries, 1), strict=True):
            a_nql = torch.bmm(some_q, k.mT, out=kept[: len(q), : some_q.shape[1]]).exp2_()
            sums = a_nql.sum(-1, keepdim=True)
            least, most = sums.aminmax()
            if least > LEAST_SUM and most < 1 / LEAST_SUM:
                torch.div(torch.bmm(a_nql, v), sums, out=some_y)
            else:
                some_y.copy_(F.scaled_dot_product_attention(some_q, k, v, scale=math.log(2)))
    return y_nle


def _make_dense(layer: Dense, x: Tensor, dtype: torch.dtype) -> Step:
    """`Dense`, in place."""
    scale = layer.residual.scale.to(x.dtype)
    up, up_bias = layer.up.weight.to(dtype), layer.up.bias.to(dtype)
    down = None if layer.down is None else _scale(layer.down, scale, dtype)

    def add_dense(x_nc: Tensor) -> None:
        y = _rectify(F.linear(layer.norm(x_nc).to(dtype), up, up_bias))
        x_nc.add_(y * scale if down is None else F.linear(y, *down))

    return add_dense


def _rectify(y: Tensor) -> Tensor:
    """`relu_`. What is negative in bfloat16 is negative as an integer, and those are compared five times as quickly."""
    if y.dtype != torch.bfloat16:
        return y.relu_()
    y.view(torch.int16).clamp_min_(0)
    return y


def _scale(layer: nn.Linear, scale: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Weight and bias of a layer whose output is scaled."""
    bias = None if layer.bias is None else (layer.bias * scale).to(dtype)
    return (layer.weight * scale[:, None]).to(dtype), bias


def _cut(x: Tensor, size: int | None = None, dim: int = 0) -> Sequence[Tensor]:
    """Cells, or whatever lies along this axis, at most so many at a time, evenly for all threads."""
    n_blocks = -(-x.shape[dim] // max(1, size or CELLS_IN_BLOCK))
    return x.tensor_split(min(x.shape[dim], crew_size() * -(-n_blocks // crew_size())), dim)


# ── pairs: (B, D, D, P) ───────────────────────────────────────────────────────────────────────────────────────────


def add_features(z_bddp: Tensor, features: Sequence[Feature], sqrt_m: Tensor) -> None:
    """Mix features into the channels of pairs, in place, block by block: they are never laid side by side."""

    def add(z_np: Tensor, sqrt_m: Tensor, *parts: Tensor) -> None:
        for part_cn, feature in zip(parts, features, strict=True):
            z_np.addmm_(part_cn.mT, feature.weight_pc.mT)
            if feature.sure_pc is not None:
                z_np.addmm_(asinh(sqrt_m * part_cn).mT, feature.sure_pc.mT)

    jobs: list[tuple[Tensor, ...]] = []
    sqrt_ms = sqrt_m.flatten().expand(len(z_bddp))
    for z_ddp, sqrt_m, *parts in zip(z_bddp, sqrt_ms, *(feature.part_bcdd for feature in features), strict=True):
        blocks = _cut(z_ddp.flatten(0, 1))
        cut = (_cut(part_cdd.flatten(1), dim=1) for part_cdd in parts)
        jobs += zip(blocks, [sqrt_m] * len(blocks), *cut, strict=True)
    share(add, *zip(*jobs, strict=True))


class Feature(NamedTuple):
    """What is known of pairs, (B, C, D, D), with weights (P, C) of it and of its asinh(√M r)."""

    part_bcdd: Tensor
    weight_pc: Tensor
    sure_pc: Tensor | None = None


def asinh(x: Tensor) -> Tensor:
    """Inverse hyperbolic sine, within rounding of one; that of torch is not vectorised on a CPU.

    Examples
    --------
    >>> asinh(torch.tensor([-3.0, 0.0, 1.0]))
    tensor([-1.8184,  0.0000,  0.8814])
    """
    return torch.addcmul(x.new_ones(()), x, x).sqrt_().add_(x.abs()).log_().copysign_(x)


def reason(layers: Iterable[nn.Module], z_bddp: Tensor, dtype: torch.dtype) -> None:
    """All pair blocks, in place; `dtype` is that of factors.

    Threads meet twice a block: for products of matrices, and for all that is done pair by pair until the next ones.
    """
    blocks = [layer for layer in layers if isinstance(layer, PairBlock)]
    shape, z_np = z_bddp.shape[:3], z_bddp.flatten(0, 2)
    sides_sn = z_np.new_empty(blocks[0].sides.out_features, len(z_np), dtype=dtype)
    products_tn = z_np.new_empty(blocks[0].out.in_features, len(z_np), dtype=dtype)
    parts = _cut(z_np), _cut(sides_sn, dim=1), _cut(products_tn, dim=1)
    share(_make_reading(blocks[0], dtype), *parts[:2])
    for block, following in itertools.zip_longest(blocks, blocks[1:]):
        _multiply_sides(sides_sn.unflatten(1, shape), products_tn.unflatten(1, shape))
        steps = _make_addition(block, z_bddp, dtype), _make_dense(block.dense, z_np, dtype)
        share(functools.partial(_go_on, *steps, following and _make_reading(following, dtype)), *parts)


def _go_on(
    add: PairStep, densify: Step, read: PairStep | None, z_np: Tensor, sides_sn: Tensor, products_tn: Tensor
) -> None:
    """From the products of one pair block to the sides of the next, if there is one."""
    add(z_np, products_tn)
    densify(z_np)
    if read is not None:
        read(z_np, sides_sn)


def _make_reading(block: PairBlock, dtype: torch.dtype) -> PairStep:
    """What a pair says to others: two sides of each product, one matrix per channel."""
    weight, bias = block.sides.weight.to(dtype), block.sides.bias.to(dtype)[:, None]

    def read(z_np: Tensor, sides_sn: Tensor) -> None:
        torch.addmm(bias, weight, block.norm(z_np).to(dtype).mT, out=sides_sn)

    return read


def _multiply_sides(sides_sbdd: Tensor, products_tbdd: Tensor) -> None:
    """Sums over third variables: chains, forks and colliders."""
    a1, b1, a2, b2, a3, b3 = (side.flatten(0, 1) for side in sides_sbdd.chunk(6))
    products = (product.flatten(0, 1) for product in products_tbdd.chunk(3))
    kinds = zip((a1, a2.mT, a3), (b1, b2, b3.mT), products, strict=True)
    parts = [part for kind in kinds for part in zip(*map(_channels, kind), strict=True)]
    share(lambda a, b, out: torch.bmm(a, b, out=out), *zip(*parts, strict=True))


def _channels(s_cdd: Tensor) -> Sequence[Tensor]:
    """Matrices, a few at a time."""
    return _cut(s_cdd, MATRIX_CELLS_IN_BLOCK // s_cdd[0].numel())


def _make_addition(block: PairBlock, z_bddp: Tensor, dtype: torch.dtype) -> PairStep:
    """Sums over third variables back into the channels of pairs, in place."""
    scale, rsqrt_d = block.residual.scale.to(z_bddp.dtype), z_bddp.shape[1] ** -0.5
    (weight, _), (_, bias) = _scale(block.out, scale * rsqrt_d, dtype), _scale(block.out, scale, dtype)

    def add(z_np: Tensor, products_tn: Tensor) -> None:
        z_np.add_(F.linear(products_tn.mT, weight, bias))

    return add


# ── relations: (B, C, D, D) ───────────────────────────────────────────────────────────────────────────────────────


def relate_channels(layer: ChannelCorrelation | CrossCovariance, h_bmdc: Tensor) -> Tensor:
    """The layer of that kind, a few of its channels at a time."""
    weights = [project.weight for project in layer.readings()]
    if not weights:
        return layer(h_bmdc)
    s_bcdd = h_bmdc.new_empty(len(h_bmdc), len(weights[0]), *h_bmdc.shape[2:3] * 2)

    def fill(some_bcdd: Tensor, *some_weights: Tensor) -> None:
        some_bcdd.copy_(layer.relate(*(read_channels(h_bmdc, weight_cc) for weight_cc in some_weights)))

    share(fill, _cut(s_bcdd, READINGS_IN_BLOCK, dim=1), *(_cut(weight, READINGS_IN_BLOCK) for weight in weights))
    return s_bcdd


def correlated_resolvents(
    s_bcdd: Tensor,
    poles: Sequence[float],
    heard: Sequence[int],
    total_bcdd: Tensor | None = None,
    weights: Sequence[float] = (),
) -> Iterator[dict[int, Tensor]]:
    """Correlations of `spd.resolvents` at the poles that are `heard`, by their place; all of them enter the total.

    They come a few at a time, in the place of those before.
    """
    groups = _group_poles(len(poles), heard, max(1, RESOLVENTS_HELD // s_bcdd.numel()))
    most = max(len(loud) for _, loud in groups)
    held_rbcdd = s_bcdd.new_empty(most, *s_bcdd.shape)

    def invert(group: Sequence[int], loud: Sequence[int], s_ndd: Tensor, total_ndd: Tensor, held_rndd: Tensor) -> None:
        held, scratch = dict(zip(loud, held_rndd, strict=False)), torch.empty_like(s_ndd)
        for j in group:
            r_ndd = held.get(j, scratch)
            spd.invert_into(r_ndd, s_ndd, poles[j])
            if total_bcdd is not None:
                total_ndd.add_(r_ndd, alpha=weights[j])
            if j in held:
                _correlate(r_ndd)

    totals_bcdd, size = s_bcdd if total_bcdd is None else total_bcdd, MATRIX_CELLS_IN_BLOCK // s_bcdd[0, 0].numel()
    parts = [*(_cut(x.flatten(0, 1), size) for x in (s_bcdd, totals_bcdd)), _cut(held_rbcdd.flatten(1, 2), size, dim=1)]
    for group, loud in groups:
        share(functools.partial(invert, group, loud), *parts)
        yield dict(zip(loud, held_rbcdd, strict=False))


def _group_poles(n_poles: int, heard: Sequence[int], most: int) -> list[tuple[list[int], list[int]]]:
    """Places of poles in their order, in groups of which so many are heard; and those that are.

    Examples
    --------
    >>> _group_poles(5, (1, 2), 1)
    [([0, 1], [1]), ([2, 3, 4], [2])]
    """
    groups: list[tuple[list[int], list[int]]] = [([], [])]
    for j in range(n_poles):
        if j in heard and len(groups[-1][1]) == most:
            groups.append(([], []))
        groups[-1][0].append(j)
        groups[-1][1].extend([j] if j in heard else [])
    return groups


def _correlate(s_ndd: Tensor) -> None:
    """`spd.correlate` in place."""
    scale = s_ndd.diagonal(dim1=-2, dim2=-1).rsqrt()
    s_ndd.mul_(scale[..., :, None]).mul_(scale[..., None, :])


def relate(blocks: Iterable[nn.Module], s_bcdd: Tensor) -> Tensor:
    """All bilinear blocks. Heads go their own ways through all of them: threads share heads, if there are enough."""
    readings = [_read_block(block, s_bcdd.dtype) for block in blocks]
    if not readings:
        return s_bcdd
    heads, s_bcdd = len(readings[0][0]), s_bcdd.clone()
    s_bhedd = s_bcdd.unflatten(1, (heads, -1))
    if crew_size() > heads:
        _relate_heads(readings, s_bhedd, slice(heads))
        return s_bcdd
    size = -(-heads // crew_size())
    some = [slice(start, start + size) for start in range(0, heads, size)]
    share(functools.partial(_relate_heads, readings), s_bhedd.split(size, 1), some)
    return s_bcdd


def _read_block(block: nn.Module, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights of a bilinear block by head: of keys, of queries, of what is attended to, of powers."""
    assert isinstance(block, BilinearBlock)
    attention, heads = block.attention, block.attention.key.heads
    key_hee, query_hee = (mix.weight.abs().to(dtype) for mix in (attention.key, attention.query))
    scale = F.softplus(attention.scale).to(dtype)[:, None, None]
    weight_c4 = block.activation.weight.softmax(-1).to(dtype)
    return key_hee, query_hee, scale.unflatten(0, (heads, -1)), weight_c4.unflatten(0, (heads, -1))


def _relate_heads(readings: Sequence[tuple[Tensor, ...]], s_bhedd: Tensor, heads: slice) -> None:
    """All bilinear blocks of some heads, in place, a few channels at a time."""
    k_bhedd, q_bhedd = (s_bhedd.new_empty(s_bhedd.shape) for _ in range(2))
    size = MATRIX_CELLS_IN_BLOCK // s_bhedd[:, 0, 0].numel()
    parts = [_cut(x.flatten(1, 2), size, dim=1) for x in (s_bhedd, k_bhedd, q_bhedd)]
    for block in readings:
        key_hee, query_hee, scale, weight_he4 = (weights[heads] for weights in block)
        torch.matmul(key_hee, s_bhedd.flatten(3), out=k_bhedd.flatten(3))
        torch.matmul(query_hee, s_bhedd.flatten(3), out=q_bhedd.flatten(3))
        share(_bend, *parts, _cut(scale.flatten(0, 1), size), _cut(weight_he4.flatten(0, 1), size))


def _bend(s_bcdd: Tensor, k_bcdd: Tensor, q_bcdd: Tensor, scale: Tensor, weight_c4: Tensor) -> None:
    """`BilinearBlock` of some channels, in place."""
    s_bcdd.copy_(SPDActivation.bend(attend_bilinearly(s_bcdd, k_bcdd, q_bcdd, scale), weight_c4))
