"""`ImmoralityNet`: which candidates are common children of two variables? One logit per candidate, for many structures.

A structure is a handful of columns of one table (see `structures`): two parents, candidates adjacent to both,
neighbours adjacent to one. Its journey is that of a table through `EdgeNet`, but each role has an embedding of its own:

    x (M, D)  ─ embedding by role ─►  h (M, D, C)  ─ attention over attributes, over samples, dense ─►  h (M, D, C)
              ─ covariance ─►  s (C, D, D)  ─ bilinear attention, SPD activation ─►  s (C, D, D)
              ─ logarithm, mean over one variable axis, dense ─►  logit (D)

Structures of different size share a batch: absent variables fill up. They have no influence: nobody attends to them,
their rows of every definite matrix are those of the identity, and means leave them out. The design `collider-paper`
is the paper's; `collider` is small, and its head looks at pairs of variables before it pools.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from graphbam.errors import ConfigError
from graphbam.nn import spd
from graphbam.nn.edge_net import RAW_POLES, EdgeNetConfig, PairFeatures, observation_layers, standardise
from graphbam.nn.layers import (
    NEVER,
    AxialAttention,
    BilinearAttention,
    ChannelCorrelation,
    CrossCovariance,
    Linear,
    PairBlock,
    SPDActivation,
)
from graphbam.nn.network import Network
from graphbam.nn.structures import ABSENT, CANDIDATE, NEIGHBOUR, PARENT

N_ROLES = 3
"""Parents, candidates, neighbours."""

MOST_ROWS = 1000
"""Rows of the longest tables in training; users' tables are cut to as many. There are hundreds of structures, each as
long as its table."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImmoralityNetConfig(EdgeNetConfig):
    """Sizes and switches of a `ImmoralityNet`, those of an `EdgeNet` and two more. The embedding always has a bias.

    The defaults are small: a graph has hundreds of structures, each as long as its table.
    """

    channels: int = 32
    heads: int = 1
    attribute_layers: int = 3
    sample_layers: int = 2
    dense_layers: int = 3
    dense_hidden: int = 64
    bilinear_layers: int = 2
    table_correlations: bool = False
    """Not built in here: a structure is a small part of its table."""
    sharp_correlations: bool = False
    """Not built in either."""
    pair_layers: int = 2
    max_candidates: int = 10
    """Candidates in one structure; more are asked about in several."""
    max_neighbours: int = 12
    """Neighbours in one structure; the surest stay."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_candidates < 1 or self.max_neighbours < 0:
            found = f"max_candidates={self.max_candidates}, max_neighbours={self.max_neighbours}"
            raise ConfigError(f"{found}, but a structure needs room for a candidate at least")
        if self.sample_stretch:
            raise ConfigError(f"sample_stretch={self.sample_stretch}, but samples of a structure all see each other")

    @classmethod
    def wide(cls, **changes: Any) -> Self:
        """Twice the channels and one more layer between samples: about three times the work."""
        return cls(**({"channels": 64, "heads": 2, "dense_hidden": 128, "sample_layers": 3} | changes))

    @property
    def max_width(self) -> int:
        """Columns of the largest structure."""
        return 2 + self.max_candidates + self.max_neighbours


DESIGNS: dict[str, Callable[..., ImmoralityNetConfig]] = {
    "collider": ImmoralityNetConfig,
    "collider-wide": ImmoralityNetConfig.wide,
    "collider-paper": ImmoralityNetConfig.paper,
}
"""Named designs."""


class ImmoralityNet(Network):
    """Logits of "this candidate is a common child of both parents", for batches of structures.

    Examples
    --------
    >>> net = ImmoralityNet(ImmoralityNetConfig(attribute_layers=1, sample_layers=1, dense_layers=1))
    >>> roles = torch.tensor([[1, 1, 2, 2, 3], [1, 1, 2, 0, 0]])  # two candidates and a neighbour; one candidate
    >>> net(torch.randn(2, 50, 5), roles).shape
    torch.Size([2, 5])
    """

    kind = "immoralities"
    config_type = ImmoralityNetConfig
    config: ImmoralityNetConfig

    def __init__(self, config: ImmoralityNetConfig | None = None):
        super().__init__()
        self.config = config = config or ImmoralityNetConfig()
        self.embedding = RoleEmbedding(config.channels)
        self.observation = observation_layers(config, PresentAttention)
        self.correlation = ChannelCorrelation(config.channels, config.spd_channels, config.ridge)
        self.bilinear = nn.ModuleList(
            PresentBilinearBlock(config.spd_channels, config.spd_heads) for _ in range(config.bilinear_layers)
        )
        self.head: PooledLog | ChildHead = ChildHead(config) if config.pair_layers else PooledLog(config)

    def forward(self, x_bmd: Tensor, roles_bd: Tensor) -> Tensor:
        """Structures (B, M, D), standardised or not, and roles (B, D) → logits (B, D); 0 where there is no candidate.

        Each structure has exactly two parents. Values of absent columns are ignored, whatever they are.
        """
        x_bmd = standardise(torch.where((roles_bd == ABSENT)[:, None], 0.0, x_bmd))
        who = presence(roles_bd, x_bmd)
        h_bmdc = self.embedding(x_bmd, who.roles_bd3, self.observation_dtype(x_bmd))
        absent_n11d = ~who.present_bd[:, None].expand_as(x_bmd).flatten(0, 1)[:, None, None]
        for layer in self.observation:
            h_bmdc = layer(h_bmdc, absent_n11d) if isinstance(layer, PresentAttention) else layer(h_bmdc)
        h_bmdc = h_bmdc * who.present_bd[:, None, :, None].to(h_bmdc.dtype)
        raw_bcdd = s_bcdd = self.correlation(h_bmdc)
        for block in self.bilinear:
            s_bcdd = block(s_bcdd, who.apart_b1dd)
        if self.config.log_ridge:
            s_bcdd = spd.correlate(s_bcdd, self.config.log_ridge)
        logits_bd: Tensor = self.head(h_bmdc, raw_bcdd, s_bcdd, who)
        return torch.where(roles_bd == CANDIDATE, logits_bd, 0.0)

    def compilable(self) -> list[nn.Module]:
        """All but the end of the head."""
        return [self.embedding, *self.observation, self.correlation, *self.bilinear, *self.head.compilable()]


class Presence(NamedTuple):
    """Who is there, in the forms that the layers need."""

    roles_bd3: Tensor
    """One-hot roles; all zero where absent."""
    present_bd: Tensor
    """Whether there is a variable at all, bool."""
    apart_b1dd: Tensor
    """Entries of a matrix that an absent variable would touch, its own diagonal apart, bool."""
    count_b111: Tensor
    """Variables of each structure."""


def presence(roles_bd: Tensor, like: Tensor) -> Presence:
    """Who is there, as numbers of the type of `like`."""
    present_bd = roles_bd != ABSENT
    roles_bd3 = torch.stack([roles_bd == role for role in (PARENT, CANDIDATE, NEIGHBOUR)], -1).to(like.dtype)
    both_bdd = present_bd[:, :, None] & present_bd[:, None, :]
    same_dd = torch.eye(roles_bd.shape[-1], dtype=torch.bool, device=roles_bd.device)
    count_b111 = present_bd.sum(-1).to(like.dtype)[:, None, None, None]
    return Presence(roles_bd3, present_bd, ~(both_bdd | same_dd)[:, None], count_b111)


# ── observations ──────────────────────────────────────────────────────────────────────────────────────────────────


class RoleLinear(nn.Module):
    """x W_r + b_r, with matrix and bias of the role r of each variable: (B, D, M, E) → (B, D, M, C).

    The matrices are picked by a product with the one-hot roles, so an absent variable gets zero.
    """

    def __init__(self, n_in: int, n_out: int, *, bias: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(N_ROLES, n_in, n_out).uniform_(-(n_in**-0.5), n_in**-0.5))
        self.bias = nn.Parameter(torch.zeros(N_ROLES, n_out)) if bias else None

    def forward(self, x_bdme: Tensor, roles_bd3: Tensor) -> Tensor:
        roles_bd3 = roles_bd3.to(x_bdme.dtype)
        w_bdec = (roles_bd3 @ self.weight.flatten(1).to(x_bdme.dtype)).unflatten(-1, self.weight.shape[1:])
        y_bdmc = x_bdme * w_bdec if self.weight.shape[1] == 1 else x_bdme @ w_bdec
        return y_bdmc if self.bias is None else y_bdmc + (roles_bd3 @ self.bias.to(x_bdme.dtype))[:, :, None]


class RoleEmbedding(nn.Module):
    """h = tanh(x W₁ + b₁) V₁, then twice h + tanh(h W + b) V: a small network for each of the three roles."""

    def __init__(self, channels: int, residual_layers: int = 2):
        super().__init__()
        self.rise = RoleLinear(1, channels, bias=True)
        self.mix = RoleLinear(channels, channels, bias=False)
        self.inner = nn.ModuleList(RoleLinear(channels, channels, bias=True) for _ in range(residual_layers))
        self.outer = nn.ModuleList(RoleLinear(channels, channels, bias=False) for _ in range(residual_layers))
        assert self.rise.bias is not None
        nn.init.uniform_(self.rise.weight, -1.5, 1.5)
        nn.init.uniform_(self.rise.bias, -2, 2)  # bends all over the range of a standardised variable

    def forward(self, x_bmd: Tensor, roles_bd3: Tensor, dtype: torch.dtype) -> Tensor:
        h_bdmc = self.mix(self.rise(x_bmd.mT[..., None], roles_bd3).tanh().to(dtype), roles_bd3)
        for inner, outer in zip(self.inner, self.outer, strict=True):
            h_bdmc = h_bdmc + outer(inner(h_bdmc, roles_bd3).tanh(), roles_bd3)
        result: Tensor = h_bdmc.transpose(1, 2).contiguous()
        return result


class PresentAttention(AxialAttention):
    """Attention between the attributes of a sample, deaf to absent ones.

    A structure has few attributes, so the scores are small and written out: no fused kernel, whose treatment of masks
    differs from device to device, is needed.
    """

    def forward(self, x_bmdc: Tensor, absent_n11d: Tensor) -> Tensor:  # type: ignore[override]
        q, k, v = self.read(x_bmdc)
        wide = torch.promote_types(x_bmdc.dtype, torch.float32)
        scores_nhdd = (q @ k.mT).to(wide) * self.size**-0.5
        a_nhdd = scores_nhdd.masked_fill(absent_n11d, NEVER).softmax(-1).to(x_bmdc.dtype)
        return self.add(x_bmdc, (a_nhdd @ v).transpose(1, 2).reshape(x_bmdc.shape))


# ── relations ─────────────────────────────────────────────────────────────────────────────────────────────────────


class PresentBilinearBlock(BilinearAttention):
    """Bilinear attention and SPD activation in which absent variables keep the identity's rows and reach nobody."""

    def __init__(self, channels: int, heads: int):
        super().__init__(channels, heads)
        self.activation = SPDActivation(channels)

    def forward(self, s_bcdd: Tensor, apart_b1dd: Tensor | None = None) -> Tensor:
        result: Tensor = self.activation(super().forward(s_bcdd, apart_b1dd))
        return result


# ── heads ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def evidence(n_samples: int, count_b111: Tensor) -> Tensor:
    """How much there is to go by, (B, 1, 1, 2): log M and log of the size, squashed so that they stay bounded."""
    samples = torch.full_like(count_b111, math.tanh((math.log(n_samples) - 5.5) / 1.5))
    return torch.cat([samples, ((count_b111.log() - 2.2) / 0.8).tanh()], -1)


def logit_layer(width: int) -> Linear:
    """Last layer: starts undecided."""
    layer = Linear(width, 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class PooledLog(nn.Module):
    """The paper's head: matrix logarithm, mean over one variable axis, dense C → 1."""

    def __init__(self, config: ImmoralityNetConfig):
        super().__init__()
        self.matrix_log = config.matrix_log
        self.logit = logit_layer(config.spd_channels)

    def forward(self, h_bmdc: Tensor, raw_bcdd: Tensor, s_bcdd: Tensor, who: Presence) -> Tensor:
        z_bcdd = spd.logm(s_bcdd) if self.matrix_log else s_bcdd
        weight_b1d1 = who.present_bd[:, None, :, None] / who.count_b111
        mean_bcd = (z_bcdd @ weight_b1d1)[..., 0]
        result: Tensor = self.logit(mean_bcd.mT)[..., 0]
        return result

    def compilable(self) -> list[nn.Module]:
        """Blocks worth compiling."""
        return []


class ChildHead(nn.Module):
    """Everything known of each pair, pair blocks, then what a candidate has with both parents, with all, by itself."""

    def __init__(self, config: ImmoralityNetConfig):
        super().__init__()
        self.cross = CrossCovariance(config.channels, config.spd_channels)
        self.features = PairFeatures(config.spd_channels, config.pair_channels, matrix_log=config.matrix_log)
        self.left = Linear(N_ROLES, config.pair_channels, bias=False)
        self.right = Linear(N_ROLES, config.pair_channels, bias=False)
        self.blocks = nn.ModuleList(
            PairBlock(config.pair_channels, config.product_channels) for _ in range(config.pair_layers)
        )
        self.pool = CandidatePool(config.pair_channels)

    def forward(self, h_bmdc: Tensor, raw_bcdd: Tensor, s_bcdd: Tensor, who: Presence) -> Tensor:
        n_samples = h_bmdc.shape[1]
        cross_bcdd = self.cross(h_bmdc)
        raw_rbcdd = spd.resolvents(raw_bcdd, RAW_POLES)
        known = evidence(n_samples, who.count_b111)
        sqrt_m = s_bcdd.new_full((), n_samples**0.5)
        z_bddp = self.features(raw_bcdd, raw_rbcdd, cross_bcdd, *self.features.lead_out(s_bcdd), known, sqrt_m)
        z_bddp = z_bddp + self.left(who.roles_bd3)[:, :, None] + self.right(who.roles_bd3)[:, None]
        z_bddp, rsqrt_d, both_b1dd = z_bddp.to(h_bmdc.dtype), who.count_b111.rsqrt(), _both(who.present_bd)
        for block in self.blocks:
            z_bddp = block(z_bddp, rsqrt_d, both_b1dd)
        result: Tensor = self.pool(z_bddp.to(s_bcdd.dtype), who.roles_bd3)
        return result

    def compilable(self) -> list[nn.Module]:
        """Blocks worth compiling."""
        return [self.cross, self.features, *self.blocks, self.pool]


class CandidatePool(nn.Module):
    """From pairs to one logit per variable.

    Beside each other: the mean over the two parents of z_cp and of z_pc, the parents' own pair, the mean over all
    variables of z_cj, and z_cc. The two parents enter through sums alone, so their order does not matter.
    """

    def __init__(self, pair_channels: int):
        super().__init__()
        self.hidden = Linear(5 * pair_channels, pair_channels)
        self.logit = logit_layer(pair_channels)

    def forward(self, z_bddp: Tensor, roles_bd3: Tensor) -> Tensor:
        parent_bd, present_bd = roles_bd3[..., 0] / 2, roles_bd3.sum(-1)
        mean_bd = present_bd / present_bd.sum(-1, keepdim=True)
        to_bdp = torch.einsum("bijp,bj->bip", z_bddp, parent_bd)
        from_bdp = torch.einsum("bijp,bi->bjp", z_bddp, parent_bd)
        own_bdp = z_bddp.diagonal(dim1=1, dim2=2).mT
        around_bdp = torch.einsum("bijp,bj->bip", z_bddp, mean_bd)
        inside_b1p = parent_bd[:, None] @ (2 * to_bdp - own_bdp)  # (z_ab + z_ba) / 2, the diagonal taken off
        parts = [to_bdp, from_bdp, own_bdp, around_bdp, inside_b1p.expand_as(own_bdp)]
        result: Tensor = self.logit(self.hidden(torch.cat(parts, -1)).relu())[..., 0]
        return result


def _both(present_bd: Tensor) -> Tensor:
    return (present_bd[:, :, None] & present_bd[:, None, :])[:, None]
