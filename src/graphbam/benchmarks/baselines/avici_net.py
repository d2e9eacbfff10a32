"""`AviciNet`: a table (M samples × D variables) → one logit for every arrow i → j. AVICI's network, to compare with.

Lorch et al., *Amortized Inference for Causal Structure Learning*, NeurIPS 2022. Written anew from its description:

    x (M, D)  ─ linear ─►  h (M, D, C)  ─ 16 blocks, in turn over attributes and over samples ─►  h (M, D, C)
              ─ norm, maximum over samples ─►  z (D, C)  ─ two unit vectors u, v per variable ─►  logits (D, D)

What differs from the original, and why:

- One number per cell goes in. The original has a second, a flag for interventions; our tables are observed throughout.
- One norm before queries, keys and values, and one before u and v, where the original has one for each. A norm's scale
  and shift merge with the linear layer behind it, so the functions that can be learnt are the same.
- No dropout (the original has 0.1 in training). Our stream never shows a table twice, so there is nothing to memorise;
  and a step remains a function of weights and batch, so that a run resumes exactly.
"""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbam.errors import ConfigError
from graphbam.nn.edge_net import standardise
from graphbam.nn.layers import Axis, Linear, Norm
from graphbam.nn.network import Config, Network
from graphbam.nn.weights import Loaded, Source, load_network, run_in_chunks

NEVER = -1e30
"""Logit of an arrow from a variable to itself: its probability is zero, and so is every slope."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class AviciNetConfig(Config):
    """Sizes of an `AviciNet`; the defaults are the original's."""

    channels: int = 128
    """Width C of the representation of a cell."""
    blocks: int = 16
    """Blocks of attention and dense layer, the first between attributes."""
    heads: int = 8
    """Heads of the attention."""
    key_size: int = 32
    """Channels per head; `heads` · `key_size` need not be `channels`."""
    widening: int = 4
    """Hidden width of the dense layers, in multiples of `channels`."""
    temperature: float = 2.0
    """First value of the learnt t in logits = uᵀv exp(t) + b."""
    bias: float = -3.0
    """First value of b there: few arrows."""

    def __post_init__(self) -> None:
        for name in ("channels", "blocks", "heads", "key_size", "widening"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}, but it must be at least 1")


class AviciNet(Network):
    """Logits of i → j at [i, j] for whole tables, for any M ≥ 1 and D ≥ 2.

    Examples
    --------
    >>> net = AviciNet(AviciNetConfig(channels=16, blocks=2))
    >>> net(torch.randn(4, 50, 6)).shape
    torch.Size([4, 6, 6])
    """

    kind = "avici"
    config_type = AviciNetConfig
    config: AviciNetConfig

    def __init__(self, config: AviciNetConfig | None = None):
        super().__init__()
        self.config = config = config or AviciNetConfig()
        axes: tuple[Axis, Axis] = ("attributes", "samples")
        self.embedding = Linear(1, config.channels)
        self.blocks = nn.ModuleList(Block(config, axes[depth % 2]) for depth in range(config.blocks))
        self.head = ArrowHead(config)
        nn.init.zeros_(self.embedding.bias)
        nn.init.trunc_normal_(self.embedding.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Tables (..., M, D), standardised or not → logits (..., D, D); the diagonal is `NEVER`."""
        x_bmd = standardise(x.reshape(-1, *x.shape[-2:]))
        h_bmdc = self.embedding(x_bmd[..., None].to(self.observation_dtype(x_bmd)))
        for block in self.blocks:
            h_bmdc = block(h_bmdc)
        logits_bdd = self.head(h_bmdc)
        return logits_bdd.view(*x.shape[:-2], *logits_bdd.shape[1:])

    def compilable(self) -> list[nn.Module]:
        """Not the head: compiled for a GPU with free shapes, its gradients are not finite (torch 2.11)."""
        return [self.embedding, *self.blocks]


class Block(nn.Module):
    """y = x + A V W_o and y + relu(norm(y) W₁) W₂, with A = softmax(Q Kᵀ / √e) along one axis of (B, M, D, C).

    Both axes are strided views of one product: attributes attend within a sample, (B·M, heads, D, e); for samples
    the variables fold into the heads, (B, D·heads, M, e). Nothing is copied on the way.
    """

    def __init__(self, config: AviciNetConfig, axis: Axis):
        super().__init__()
        self.heads, self.axis = config.heads, axis
        inner, hidden = config.heads * config.key_size, config.widening * config.channels
        self.norm = Norm(config.channels)
        self.qkv = kaiming_linear(config.channels, 3 * inner)
        self.out = kaiming_linear(inner, config.channels)
        self.dense_norm = Norm(config.channels)
        self.up = kaiming_linear(config.channels, hidden)
        self.down = kaiming_linear(hidden, config.channels)

    def forward(self, x_bmdc: Tensor) -> Tensor:
        x_bmdc = x_bmdc + self.out(self._attend(self.qkv(self.norm(x_bmdc))))
        return x_bmdc + self.down(self.up(self.dense_norm(x_bmdc)).relu())

    def _attend(self, qkv: Tensor) -> Tensor:
        qkv_bmdh3e = qkv.unflatten(-1, (self.heads, 3, -1))
        q, k, v = (self._fold(part) for part in qkv_bmdh3e.unbind(-2))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return y.reshape(*qkv.shape[:-1], -1)

    def _fold(self, part_bmdhe: Tensor) -> Tensor:
        """(B, M, D, heads, e) → (batch, heads, length, e), the attended axis as length."""
        folded = part_bmdhe.flatten(0, 1) if self.axis == "attributes" else part_bmdhe.flatten(2, 3)
        return folded.transpose(1, 2)


class ArrowHead(nn.Module):
    """Logits uᵢᵀvⱼ exp(t) + b of unit vectors u, v, read from the maximum over samples; from there on in float32."""

    def __init__(self, config: AviciNetConfig):
        super().__init__()
        self.norm = Norm(config.channels)
        self.pooled_norm = Norm(config.channels)
        self.sources = kaiming_linear(config.channels, config.channels)
        self.targets = kaiming_linear(config.channels, config.channels)
        self.temperature = nn.Parameter(torch.tensor(config.temperature))
        self.bias = nn.Parameter(torch.tensor(config.bias))

    def forward(self, h_bmdc: Tensor) -> Tensor:
        z_bdc = self.norm(h_bmdc).amax(1)
        z_bdc = self.pooled_norm(z_bdc.to(torch.promote_types(z_bdc.dtype, torch.float32)))
        u_bdc, v_bdc = (F.normalize(read(z_bdc), dim=-1) for read in (self.sources, self.targets))
        logits_bdd = u_bdc @ v_bdc.mT * self.temperature.exp() + self.bias
        return logits_bdd.masked_fill(torch.eye(z_bdc.shape[1], dtype=torch.bool, device=z_bdc.device), NEVER)


def kaiming_linear(n_in: int, n_out: int) -> Linear:
    """A linear layer that starts with weights of variance 2 / n_in and no bias, as the original does."""
    layer = Linear(n_in, n_out)
    nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)
    return layer


class LoadedArrows(Loaded[AviciNet]):
    """Weights ready to use: which variable points at which?"""

    def probabilities(self, x_bmd: Tensor) -> Tensor:
        """Probabilities (B, D, D) of i → j at [i, j] for a batch of equal-shaped tables; zero on the diagonal."""
        return run_in_chunks(self.network, x_bmd).double().sigmoid()


def load_arrows(source: Source, device: str | torch.device = "cpu") -> LoadedArrows:
    """Load weights by path, checked in full; errors as for `graphbam.nn.weights.load_weights`."""
    loaded = load_network(source, device, types=[AviciNet])
    assert isinstance(loaded.network, AviciNet)
    return LoadedArrows(loaded.name, loaded.network, loaded.header)
