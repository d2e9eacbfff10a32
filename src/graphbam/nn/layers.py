"""The layers of the network, in the order the data meets them.

Letters in names are axes: B tables, M samples, D variables, C channels, P pair channels. Weights stay float32 and
arithmetic follows the input's dtype, so one network runs in bfloat16 on a GPU and in float64 in a test.
"""

from __future__ import annotations

import contextlib
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from graphbam.nn import fused, spd, tiles

Axis = Literal["attributes", "samples"]

KERNELS: dict[Axis, list[SDPBackend]] = {
    "attributes": [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH],
    "samples": [
        SDPBackend.CUDNN_ATTENTION,
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.MATH,
    ],
}
"""Kernels for attention on a GPU, the quickest first: axes are short in one case and long in the other. Which of them
can be used depends on precision and hardware."""

SHORT = 12
"""Longest axis whose attention is compiled as sums of products: kernels for attention are made for hundreds."""

NEVER = -1e30
"""Score of a pair that must not be seen: its exponential is zero, and so is its slope."""


class Linear(nn.Linear):
    """x W + b, computed in the dtype of x."""

    def forward(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return F.linear(x, self.weight.to(x.dtype), bias)


class Norm(nn.LayerNorm):
    """Layer normalisation over the last axis, computed in the dtype of x."""

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class Residual(nn.Module):
    """x + scale · y with one learnable scale per channel, small at first."""

    def __init__(self, channels: int, start: float = 0.1):
        super().__init__()
        self.scale = nn.Parameter(torch.full((channels,), start))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + self.scale.to(x.dtype) * y


# ── observations: (B, M, D, C) ────────────────────────────────────────────────────────────────────────────────────


class Embedding(nn.Module):
    """H = X + relu(X W₁ + b) W₂: every cell becomes C channels. Without b the network sees x, x⁺ and x⁻ alone."""

    def __init__(self, channels: int, *, bias: bool):
        super().__init__()
        self.rise = nn.Linear(1, channels, bias=bias)
        self.mix = Linear(channels, channels, bias=False)
        nn.init.uniform_(self.rise.weight, -1.5, 1.5)
        if bias:
            nn.init.uniform_(self.rise.bias, -2, 2)  # kinks all over the range of a standardised variable

    def forward(self, x_bmd: Tensor, dtype: torch.dtype) -> Tensor:
        x_bmd1 = x_bmd[..., None]
        rise = F.linear(x_bmd1, self.rise.weight.to(x_bmd.dtype), None)
        if self.rise.bias is not None:
            rise = rise + self.rise.bias.to(x_bmd.dtype)
        return x_bmd1.to(dtype) + self.mix(rise.relu().to(dtype))


class AxialAttention(nn.Module):
    """x + s · A V W_o with A = softmax(Q Kᵀ / √e) along one axis of (B, M, D, C), heads of e channels.

    Both axes are strided views of one product: attributes attend within a sample, (B·M, heads, D, e); for samples
    the variables fold into the heads, (B, D·heads, M, e). Nothing is copied on the way.
    """

    def __init__(self, channels: int, heads: int, axis: Axis, *, project: bool):
        super().__init__()
        self.heads, self.axis, self.size = heads, axis, channels // heads
        self.norm = Norm(channels)
        self.qkv = nn.Parameter(torch.empty(heads, 3, self.size, channels))
        self.out = Linear(channels, channels, bias=False) if project else None
        self.residual = Residual(channels)
        nn.init.uniform_(self.qkv, -(channels**-0.5), channels**-0.5)

    def forward(self, x_bmdc: Tensor) -> Tensor:
        by_tiles = tiles.fits(x_bmdc, x_bmdc.shape[2 if self.axis == "attributes" else 1], self.size)
        if by_tiles and self.out is not None and fused.fits(x_bmdc, 3 * x_bmdc.shape[-1], 3):
            weights = (self.norm.weight, self.norm.bias, self.qkv, self.out.weight, self.residual.scale)
            return fused.Attention.apply(x_bmdc, *weights, self.axis == "samples", self.norm.eps)
        return self._attend_in_steps(x_bmdc, by_tiles=by_tiles)

    def _attend_in_steps(self, x_bmdc: Tensor, *, by_tiles: bool) -> Tensor:
        """Projection, attention and residual as operations of their own."""
        few = self.axis == "attributes" and x_bmdc.shape[2] <= SHORT and torch.compiler.is_compiling()
        scale = self.size**-0.5
        if by_tiles and not few:
            return self.add(x_bmdc, tiles.attend(self._project(x_bmdc), self.axis == "samples", scale).flatten(-2))
        padding = -self.size % 8 if x_bmdc.is_cuda else 0  # flash attention wants multiples of 8; zeros change nothing
        q, k, v = self.read(x_bmdc, padding)
        if few:
            y = attend_to_few(q, k, v, scale).transpose(1, 2)
        else:
            with sdpa_kernel(KERNELS[self.axis], set_priority=True) if x_bmdc.is_cuda else contextlib.nullcontext():
                y = F.scaled_dot_product_attention(q, k, v, scale=scale).transpose(1, 2)
        y_bmdhe = y.reshape(*x_bmdc.shape[:-1], self.heads, self.size + padding)
        return self.add(x_bmdc, y_bmdhe[..., : self.size].flatten(-2))

    def read(self, x_bmdc: Tensor, padding: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (batch, heads, length, e + padding)."""
        q, k, v = self._project(x_bmdc, padding).unbind(-2)
        return self._fold(q), self._fold(k), self._fold(v)

    def _project(self, x_bmdc: Tensor, padding: int = 0) -> Tensor:
        """All three in one product: (B, M, D, heads, 3, e + padding)."""
        weight = F.pad(self.qkv, (0, 0, 0, padding)).to(x_bmdc.dtype)
        return F.linear(self.norm(x_bmdc), weight.flatten(0, 2)).unflatten(-1, (self.heads, 3, self.size + padding))

    def add(self, x_bmdc: Tensor, y_bmdc: Tensor) -> Tensor:
        """The residual: x + s · y W_o."""
        return self.residual(x_bmdc, y_bmdc if self.out is None else self.out(y_bmdc))

    def _fold(self, part_bmdhe: Tensor) -> Tensor:
        """(B, M, D, heads, e) → (batch, heads, length, e), the attended axis as length."""
        folded = part_bmdhe.flatten(0, 1) if self.axis == "attributes" else part_bmdhe.flatten(2, 3)
        return folded.transpose(1, 2)


def attend_to_few(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """softmax(Q Kᵀ · scale) V of (batch, heads, length, e) as sums of products, which a compiler makes one pass of.

    Uncompiled, the products of all pairs would be laid out in memory.
    """
    dtype = torch.promote_types(q.dtype, torch.float32)
    scores = (q.unsqueeze(-2).to(dtype) * k.unsqueeze(-3).to(dtype)).sum(-1) * scale
    return (scores.softmax(-1).unsqueeze(-1) * v.unsqueeze(-3).to(dtype)).sum(-2).to(v.dtype)


def sees_samples(layer: nn.Module) -> bool:
    """Whether samples attend to each other there."""
    return isinstance(layer, AxialAttention) and layer.axis == "samples"


def count_parts(n_samples: int, longest: int) -> int:
    """How many parts samples are cut into, none longer than `longest`; 0 stands for no limit.

    Examples
    --------
    >>> [count_parts(n, 250) for n in (20, 250, 251, 1000)], count_parts(1000, 0)
    ([1, 1, 2, 4], 1)
    """
    return -(-n_samples // longest) if longest else 1


def attend_in_stretches(layer: nn.Module, x_bmdc: Tensor, n_stretches: int) -> Tensor:
    """Attention over samples in which every n-th sees every n-th.

    Stretches of equal length lie side by side in memory, like n times as many variables: a view, no copy. One alone is
    a view too, since whatever is not one would be compiled again.
    """
    n_samples, n_variables = x_bmdc.shape[1:3]
    if n_samples % n_stretches == 0:
        side_by_side = x_bmdc.reshape(len(x_bmdc), n_samples // n_stretches, n_stretches * n_variables, -1)
        return layer(side_by_side).view(x_bmdc.shape)
    y_bmdc = torch.empty_like(x_bmdc)
    for k in range(n_stretches):
        y_bmdc[:, k::n_stretches] = layer(x_bmdc[:, k::n_stretches])
    return y_bmdc


class Dense(nn.Module):
    """x + s · relu(norm(x) W₁) W₂, cell by cell; with `hidden` = 0 the single C×C layer x + s · relu(norm(x) W₁)."""

    def __init__(self, channels: int, hidden: int):
        super().__init__()
        self.norm = Norm(channels)
        self.up = Linear(channels, hidden or channels)
        self.down = Linear(hidden, channels) if hidden else None
        self.residual = Residual(channels)

    def forward(self, x: Tensor) -> Tensor:
        if self.down is not None and fused.fits(x, self.up.out_features, 2):
            linear = (self.up.weight, self.up.bias, self.down.weight, self.down.bias)
            return fused.Dense.apply(x, self.norm.weight, self.norm.bias, *linear, self.residual.scale, self.norm.eps)
        y = self.up(self.norm(x)).relu()
        return self.residual(x, y if self.down is None else self.down(y))


class ChannelCorrelation(nn.Module):
    """One correlation matrix per channel: project, covariance over samples, correlate. In float32 from here on.

    No normalisation across channels comes before it: that would throw away what a plain covariance sees.
    """

    def __init__(self, channels: int, spd_channels: int, ridge: float):
        super().__init__()
        same = spd_channels == channels
        self.project = None if same else Linear(channels, spd_channels, bias=False)
        self.ridge = ridge

    def forward(self, h_bmdc: Tensor) -> Tensor:
        return self.relate(read_channels(h_bmdc, None if self.project is None else self.project.weight))

    def readings(self) -> list[Linear]:
        """The projection, if there is one."""
        return [] if self.project is None else [self.project]

    def relate(self, h_bcmd: Tensor) -> Tensor:
        """Correlations of the columns of each channel."""
        return spd.correlate(spd.correlate(spd.covariance(h_bcmd), ridge=1e-6), ridge=self.ridge)


def read_channels(h_bmdc: Tensor, weight_ec: Tensor | None) -> Tensor:
    """One table for each reading of the channels, in float32 at least: (B, M, D, C) → (B, E, M, D)."""
    if weight_ec is None or h_bmdc.is_cuda:
        read_bmde = h_bmdc if weight_ec is None else F.linear(h_bmdc, weight_ec.to(h_bmdc.dtype))
        return read_bmde.permute(0, 3, 1, 2).to(torch.promote_types(h_bmdc.dtype, torch.float32))
    read_ben = weight_ec.to(h_bmdc.dtype) @ h_bmdc.flatten(1, 2).mT  # a CPU is slow to swap axes afterwards
    return read_ben.unflatten(-1, h_bmdc.shape[1:3]).to(torch.promote_types(h_bmdc.dtype, torch.float32))


# ── relations: (B, C, D, D), symmetric positive definite ──────────────────────────────────────────────────────────


class ChannelMix(nn.Module):
    """Blend the channels of each head with weights ≥ 0: SPD matrices form a cone, so SPD stays SPD."""

    def __init__(self, channels: int, heads: int):
        super().__init__()
        self.heads, size = heads, channels // heads
        self.weight = nn.Parameter(torch.rand(heads, size, size) * 2 / size)

    def forward(self, s_bcdd: Tensor) -> Tensor:
        s_bhen = s_bcdd.unflatten(1, (self.heads, -1)).flatten(3)
        mixed = self.weight.abs().to(s_bcdd.dtype) @ s_bhen
        return mixed.view(s_bcdd.shape)


class BilinearAttention(nn.Module):
    """S + s · A S Aᵀ, then correlate, with scores A = spd_softmax(K Q K) and s ≥ 0: every factor is SPD.

    The residual comes before the normalisation, so the diagonal never vanishes where scores are flat. Entries of A that
    `apart` marks are zero.
    """

    def __init__(self, channels: int, heads: int):
        super().__init__()
        self.key = ChannelMix(channels, heads)
        self.query = ChannelMix(channels, heads)
        self.scale = nn.Parameter(torch.zeros(channels))

    def forward(self, s_bcdd: Tensor, apart_b1dd: Tensor | None = None) -> Tensor:
        scale = F.softplus(self.scale).to(s_bcdd.dtype)[:, None, None]
        return attend_bilinearly(s_bcdd, self.key(s_bcdd), self.query(s_bcdd), scale, apart_b1dd)


def attend_bilinearly(
    s_bcdd: Tensor, k_bcdd: Tensor, q_bcdd: Tensor, scale: Tensor, apart_b1dd: Tensor | None = None
) -> Tensor:
    """`BilinearAttention` from its keys and queries; channels go their own ways here."""
    scores = spd.symmetrise(k_bcdd @ q_bcdd @ k_bcdd.mT)
    a_bcdd = spd.spd_softmax(scores if apart_b1dd is None else scores.masked_fill(apart_b1dd, NEVER))
    attended = spd.symmetrise(a_bcdd @ s_bcdd @ a_bcdd.mT)
    return spd.correlate(s_bcdd + scale * attended)


class SPDActivation(nn.Module):
    """w₁ S + w₂ S² + w₃ S³ elementwise on correlations, then correlate; w ≥ 0 and Σ w ≤ 1 through a softmax.

    The fourth weight is spare, so that the sum can stay below one.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0, 0.0, 0.0, 0.0]).repeat(channels, 1))

    def forward(self, s_bcdd: Tensor) -> Tensor:
        return self.bend(s_bcdd, self.weight.softmax(-1).to(s_bcdd.dtype))

    @staticmethod
    def bend(s_bcdd: Tensor, weight_c4: Tensor) -> Tensor:
        """The activation of some channels, given their weights."""
        w = weight_c4[:, :3, None, None].unbind(1)
        return spd.correlate(s_bcdd * (w[0] + s_bcdd * (w[1] + s_bcdd * w[2])))


class BilinearBlock(nn.Module):
    """Bilinear attention followed by the SPD activation."""

    def __init__(self, channels: int, heads: int):
        super().__init__()
        self.attention = BilinearAttention(channels, heads)
        self.activation = SPDActivation(channels)

    def forward(self, s_bcdd: Tensor) -> Tensor:
        return self.activation(self.attention(s_bcdd))


# ── pairs: (B, D, D, P), no longer definite, no longer symmetric ──────────────────────────────────────────────────


class CrossCovariance(nn.Module):
    """Correlation of u(x_i) with v(x_j) for two learned readings u, v per channel: x_i against cos(x_j), say.

    A covariance of one channel compares a variable with another *through the same function*; this one need not.
    """

    def __init__(self, channels: int, out_channels: int):
        super().__init__()
        self.left = Linear(channels, out_channels, bias=False)
        self.right = Linear(channels, out_channels, bias=False)

    def forward(self, h_bmdc: Tensor) -> Tensor:
        return self.relate(*(read_channels(h_bmdc, reading.weight) for reading in self.readings()))

    def readings(self) -> list[Linear]:
        """The two projections."""
        return [self.left, self.right]

    def relate(self, u_bcmd: Tensor, v_bcmd: Tensor) -> Tensor:
        """Correlations of the columns of two tables."""
        return self._unit(u_bcmd).mT @ self._unit(v_bcmd)

    @staticmethod
    def _unit(h_bcmd: Tensor) -> Tensor:
        h_bcmd = h_bcmd - h_bcmd.mean(-2, keepdim=True)
        return h_bcmd * (h_bcmd.square().sum(-2, keepdim=True) + 1e-6 * h_bcmd.shape[-2]).rsqrt()


class PairBlock(nn.Module):
    """Pairs reason through third variables: z_ij hears of all k by chains, forks and colliders.

    z + s · W [Σ_k a_ik b_kj, Σ_k a_ki b_kj, Σ_k a_ik b_jk] / √D, then a dense layer. A moral pair is two parents of one
    child: the last of the three sums finds it. Pairs that `both` leaves out, since one of the two is absent, are not
    heard of.
    """

    def __init__(self, channels: int, product_channels: int):
        super().__init__()
        self.norm = Norm(channels)
        self.sides = Linear(channels, 6 * product_channels)
        self.out = Linear(3 * product_channels, channels)
        self.residual = Residual(channels)
        self.dense = Dense(channels, 2 * channels)

    def forward(self, z_bddp: Tensor, rsqrt_d: Tensor, both_b1dd: Tensor | None = None) -> Tensor:
        if both_b1dd is None and fused.multiplies(z_bddp, len(self.sides.weight)):
            linear = (self.sides.weight, self.sides.bias, self.out.weight, self.out.bias)
            weights = (self.norm.weight, self.norm.bias, *linear, self.residual.scale)
            return self.dense(fused.Products.apply(z_bddp, *weights, self.norm.eps))
        sides = lay_out(self.sides, self.norm(z_bddp))
        sides = sides if both_b1dd is None else sides * both_b1dd.to(sides.dtype)
        a1, b1, a2, b2, a3, b3 = sides.chunk(6, 1)
        products = torch.cat([a1 @ b1, a2.mT @ b2, a3 @ b3.mT], 1) * rsqrt_d.to(sides.dtype)
        mixed = gather_up(self.out, products)
        return self.dense(self.residual(z_bddp, mixed))


def lay_out(linear: Linear, z_bddp: Tensor) -> Tensor:
    """A linear layer whose channels come out as matrices: (B, D, D, P) → (B, E, D, D)."""
    planes_ben: Tensor = _LayOut.apply(z_bddp.flatten(1, 2), linear.weight.to(z_bddp.dtype))
    return (planes_ben + linear.bias.to(z_bddp.dtype)[:, None]).unflatten(-1, z_bddp.shape[1:3])


def gather_up(linear: Linear, planes_bedd: Tensor) -> Tensor:
    """A linear layer that reads its channels from matrices: (B, E, D, D) → (B, D, D, P)."""
    z_bnp: Tensor = _GatherUp.apply(planes_bedd.flatten(2), linear.weight.to(planes_bedd.dtype))
    return (z_bnp + linear.bias.to(planes_bedd.dtype)).unflatten(1, planes_bedd.shape[2:])


class _LayOut(torch.autograd.Function):
    """W Zᵀ for each table: (B, N, P), (E, P) → (B, E, N).

    Products can read either factor the other way round, and so axes are swapped on the way, here and in the slopes. By
    themselves, slopes would come back with their axes swapped, and the copies that mend it took 5.7 of the 48 ms of a
    step (docs/performance.md).
    """

    @staticmethod
    def forward(ctx: Any, z_bnp: Tensor, weight_ep: Tensor) -> Tensor:
        ctx.save_for_backward(z_bnp, weight_ep)
        return torch.bmm(_for_each(weight_ep, z_bnp), z_bnp.mT)

    @staticmethod
    def backward(ctx: Any, slope_ben: Tensor) -> tuple[Tensor, Tensor]:
        z_bnp, weight_ep = ctx.saved_tensors
        of_weight_bep = torch.bmm(slope_ben, z_bnp)
        return torch.bmm(slope_ben.mT, _for_each(weight_ep, z_bnp)), of_weight_bep.sum(0)


class _GatherUp(torch.autograd.Function):
    """Sᵀ Wᵀ for each table: (B, E, N), (P, E) → (B, N, P); the way back of `_LayOut`."""

    @staticmethod
    def forward(ctx: Any, planes_ben: Tensor, weight_pe: Tensor) -> Tensor:
        ctx.save_for_backward(planes_ben, weight_pe)
        return torch.bmm(planes_ben.mT, _for_each(weight_pe, planes_ben).mT)

    @staticmethod
    def backward(ctx: Any, slope_bnp: Tensor) -> tuple[Tensor, Tensor]:
        planes_ben, weight_pe = ctx.saved_tensors
        of_weight_bpe = torch.bmm(slope_bnp.mT, planes_ben.mT)
        return torch.bmm(_for_each(weight_pe, slope_bnp).mT, slope_bnp.mT), of_weight_bpe.sum(0)


def _for_each(weight: Tensor, tables: Tensor) -> Tensor:
    """The same matrix for every table, without a copy."""
    return weight.expand(len(tables), *weight.shape)
