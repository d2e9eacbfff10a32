"""`EdgeNet`: a table (M samples × D variables) → logits of none · skeleton · moral for every pair of variables.

The journey, one line per step, as in the paper's figure of the architecture:

    x (M, D)  ─ embedding ─►  h (M, D, C)  ─ attention over attributes, over samples, dense ─►  h (M, D, C)
              ─ covariance ─►  s (C, D, D)  ─ bilinear attention, SPD activation ─►  s (C, D, D)
              ─ logarithm ─►  z (D, D, P)  ─ dense ─►  logits (D, D, 3)

Three designs share it. `paper` and `ablation` are the paper's. `default` is narrower and tensor-core friendly, and its
head sees more: resolvents beside the logarithm, the correlations from before the bilinear blocks and those of the table
itself, correlations between different readings of two variables, and a few blocks in which pairs reason through third
variables. With `marks`, cells that were missing or set by an experiment enter as such; with `answers`, the last layer
says more of every ordered pair than its class.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from graphbam.errors import ConfigError
from graphbam.nn import cpu, spd
from graphbam.nn import features as correlations
from graphbam.nn.layers import (
    AxialAttention,
    BilinearBlock,
    ChannelCorrelation,
    CrossCovariance,
    Dense,
    Embedding,
    Linear,
    PairBlock,
    attend_in_stretches,
    count_parts,
    gather_up,
    sees_samples,
)
from graphbam.nn.network import Config, Network
from graphbam.nn.threads import crew

Rows = Sequence[float] | Tensor
"""How many independent rows each table is worth."""

CLASSES = ("none", "skeleton", "moral")
"""Order of the last axis of every logit and probability array."""

ANSWERS = ("direction", "compelled", "hidden", "ancestor")
"""What a network with `answers` says of an ordered pair (i, j) behind the classes, as logits:

- direction: i → j rather than j → i, given a link; antisymmetric;
- compelled: with those of (i, j), (j, i) and 0, a softmax over "the CPDAG has i → j", "it has j → i", "it leaves the
  link open", given a link;
- hidden: a hidden common cause of i and j; symmetric;
- ancestor: a directed path from i to j.
"""

_EVEN = (1, 1, 1, 0, 1, 1, 1)
_ODD = (0, 0, 0, 1, 1, 0, 1)
"""Of each output the parts that count: that which stays and that which turns when i and j change places."""

MISSING, SET = 1, 2
"""Marks of a cell, as bits: it was not observed (and was filled in), it was set by an experiment."""

HEAD_POLES = range(4, 8)
"""Which resolvents of the logarithm the default head also sees: t ≈ 0.02, 0.14, 0.8, 4.9."""

RAW_POLES = (0.01, 0.1, 1.0)
"""Ridges at which the default head sees the inverse of the correlations from before the bilinear blocks."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EdgeNetConfig(Config):
    """Sizes and switches of an `EdgeNet`; the defaults are the design `default`."""

    channels: int = 64
    """Parallel copies C of the data matrix."""
    heads: int = 2
    """Heads of the observational attention; must divide `channels`."""
    attribute_layers: int = 5
    """Attention layers between attributes."""
    sample_layers: int = 5
    """Attention layers between samples."""
    sample_stretch: int = 0
    """Most samples that see each other there: a longer table is cut into stretches, every n-th sample. 0: all do."""
    dense_layers: int = 5
    """Dense layers on the observations."""
    dense_hidden: int = 128
    """Hidden width of those; 0 is the paper's single C×C layer."""
    attention_output: bool = True
    """Whether attention ends in an output projection (the paper's does not)."""
    embedding_bias: bool = True
    """Whether the embedding's inner layer has a bias (the paper's has not)."""
    spd_channels: int = 32
    """Covariance matrices per table."""
    spd_heads: int = 4
    """Heads of the bilinear attention; must divide `spd_channels`."""
    bilinear_layers: int = 4
    """Bilinear attention layers, each with its activation."""
    ridge: float = 1e-3
    """Added to the diagonal of every correlation matrix before the bilinear blocks."""
    log_ridge: float = 0.0
    """The same after them. Deep stacks need it: each block may shrink the smallest eigenvalue, and the slope of the
    logarithm is one over it."""
    matrix_log: bool = True
    """Whether the logarithm leads out of the SPD cone (the ablation leaves it out)."""
    table_correlations: bool = True
    """Whether the head also sees the plain correlations of the table and their inverses, in full precision."""
    sharp_correlations: bool = True
    """Whether the head also sees what `graphbam.nn.features` reads in double precision."""
    marks: bool = False
    """Whether cells may be marked as missing or set."""
    answers: bool = False
    """Whether pairs get logits for `ANSWERS` behind those of their class."""
    pair_layers: int = 8
    """Blocks that reason over triples of variables; 0 is the paper's head."""
    pair_channels: int = 64
    """Width of the head."""
    product_channels: int = 16
    """Products of each kind in a pair block."""

    def __post_init__(self) -> None:
        for name in ("channels", "heads", "spd_channels", "spd_heads", "pair_channels", "product_channels"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}, but it must be at least 1")
        for whole, part in (("channels", "heads"), ("spd_channels", "spd_heads")):
            size, parts = getattr(self, whole), getattr(self, part)
            if size % parts:
                raise ConfigError(f"{part}={parts} does not divide {whole}={size}; try {whole}={size - size % parts}")
        for name in (
            "attribute_layers",
            "sample_layers",
            "dense_layers",
            "dense_hidden",
            "bilinear_layers",
            "pair_layers",
            "sample_stretch",
            "ridge",
            "log_ridge",
        ):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}={getattr(self, name)}, but it cannot be negative")

    @classmethod
    def every_answer(cls, **changes: Any) -> Self:
        """The design of `edges`: it reads marks, says more of a pair than its class, and reasons longer.

        Layers over samples are dear and worth little, pair blocks the other way round (docs/training.md).
        """
        sizes = {"pair_layers": 20, "sample_layers": 4, "sample_stretch": 120}
        return cls(**({"marks": True, "answers": True} | sizes | changes))

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's network: C = c = 100, five heads, ten layers of each kind, log and dense layers as head.

        The authors' code clamps eigenvalues at 1e-4 before the logarithm; here a ridge keeps them away from zero.
        """
        sizes = {"channels": 100, "heads": 5, "attribute_layers": 10, "sample_layers": 10, "dense_layers": 10}
        spd_part = {
            "spd_channels": 100,
            "spd_heads": 5,
            "bilinear_layers": 10,
            "pair_channels": 100,
            "pair_layers": 0,
            "log_ridge": 1e-3,
        }
        plain = {"dense_hidden": 0, "attention_output": False, "embedding_bias": False}
        plain |= {"table_correlations": False, "sharp_correlations": False}
        return cls(**(sizes | spd_part | plain | changes))

    @classmethod
    def ablation(cls, **changes: Any) -> Self:
        """The paper's ablation network: two layers of each observational kind, four bilinear."""
        layers = {"attribute_layers": 2, "sample_layers": 2, "dense_layers": 2, "bilinear_layers": 4}
        return cls.paper(**(layers | changes))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; unknown names are refused. What older files do not name was not built."""
        return super().from_dict({"table_correlations": False, "sharp_correlations": False} | dict(values))


DESIGNS: dict[str, Callable[..., EdgeNetConfig]] = {
    "default": EdgeNetConfig,
    "paper": EdgeNetConfig.paper,
    "ablation": EdgeNetConfig.ablation,
}
"""Named network designs."""

ABLATIONS = {
    "full": {},
    "no bilinear": {"bilinear_layers": 0},
    "no bilinear, no log": {"bilinear_layers": 0, "matrix_log": False},
    "no observational attention": {"attribute_layers": 0, "sample_layers": 0},
    "no observational attention, no dense": {"attribute_layers": 0, "sample_layers": 0, "dense_layers": 0},
}
"""The rows of the paper's ablation table, as changes to `EdgeNetConfig.ablation`."""


class EdgeNet(Network):
    """Three-class edge logits of whole tables, for any M ≥ 2 and D ≥ 2.

    Examples
    --------
    >>> net = EdgeNet(EdgeNetConfig(attribute_layers=1, sample_layers=1, dense_layers=1))
    >>> net(torch.randn(4, 50, 6)).shape
    torch.Size([4, 6, 6, 3])
    """

    kind = "edges"
    config_type = EdgeNetConfig
    config: EdgeNetConfig

    def __init__(self, config: EdgeNetConfig | None = None):
        super().__init__()
        self.config = config = config or EdgeNetConfig()
        self.standardise = Standardise()
        self.embedding = Embedding(config.channels, bias=config.embedding_bias)
        self.marks = nn.Parameter(torch.zeros(2, config.channels)) if config.marks else None
        self.observation = observation_layers(config)
        self.correlation = ChannelCorrelation(config.channels, config.spd_channels, config.ridge)
        self.bilinear = nn.ModuleList(
            BilinearBlock(config.spd_channels, config.spd_heads) for _ in range(config.bilinear_layers)
        )
        self.head = PairHead(config) if config.pair_layers else LogHead(config)
        self.sides = Sides(len(CLASSES) + (len(ANSWERS) if config.answers else 0))

    def forward(
        self, x: Tensor, rows: Rows | None = None, marks: Tensor | None = None, piece: int | None = None
    ) -> Tensor:
        """Tables (..., M, D), standardised or not → logits (..., D, D, 3), or 7 with `answers`.

        Those of classes are symmetric in the two variables. `rows` says how many independent rows each table is worth,
        where that is not M; `marks`, of the shape of the tables, which cells were `MISSING` or `SET`. A table of
        more rows than a `piece` is shown piece by piece: relations are means over pieces, and no more rows are told of.
        """
        with crew() if cpu.is_quick(x) else contextlib.nullcontext():
            return self._forward(x, rows, marks, piece or x.shape[-2])

    def _forward(self, x: Tensor, rows: Rows | None, marks: Tensor | None, piece: int) -> Tensor:
        x_bmd = self.standardise(x.reshape(-1, *x.shape[-2:]))
        dtype, marks_bmd = self.product_dtype(x_bmd), None if marks is None else marks.reshape(x_bmd.shape)
        raw_bcdd, *cross = self._relate_rows(x_bmd, dtype, marks_bmd, piece)
        s_bcdd = self._relate(raw_bcdd)
        if self.config.log_ridge:
            s_bcdd = spd.correlate(s_bcdd, self.config.log_ridge)
        if x_bmd.shape[1] > piece:
            rows = [min(float(n_rows), piece) for n_rows in ([piece] * len(x_bmd) if rows is None else rows)]
        z_bddo = self.head(x_bmd, raw_bcdd, s_bcdd, *cross, rows=rows, dtype=dtype)
        logits_bddo: Tensor = self.sides(z_bddo)
        return logits_bddo.view(*x.shape[:-2], *logits_bddo.shape[1:])

    def product_dtype(self, x: Tensor) -> torch.dtype:
        """Precision of products with observations and pairs: that of observations, or lower on a CPU without gradients.

        There `graphbam.nn.cpu` takes over.
        """
        if cpu.is_quick(x):
            return cpu.factor_dtype(x, mixed_precision=self.mixed_precision)
        return self.observation_dtype(x)

    def _relate_rows(self, x_bmd: Tensor, dtype: torch.dtype, marks_bmd: Tensor | None, piece: int) -> list[Tensor]:
        """Correlations of channels and what else the head relates them by, each (B, C, D, D): means over pieces.

        A piece is every n-th row, so that all are alike even where rows are sorted.
        """
        n_pieces = count_parts(x_bmd.shape[1], piece)
        total = self._relate_piece(x_bmd, dtype, marks_bmd, n_pieces, 0)
        for k in range(1, n_pieces):
            found = self._relate_piece(x_bmd, dtype, marks_bmd, n_pieces, k)
            total = [a + b for a, b in zip(total, found, strict=True)]
        return total if n_pieces == 1 else [part / n_pieces for part in total]

    def _relate_piece(
        self, x_bmd: Tensor, dtype: torch.dtype, marks_bmd: Tensor | None, n_pieces: int, first: int
    ) -> list[Tensor]:
        """The same from one piece; none of its observations is kept."""
        some = slice(first, None, n_pieces)
        h_bmdc = self._observe(x_bmd[:, some], dtype, None if marks_bmd is None else marks_bmd[:, some])
        layers: tuple[ChannelCorrelation | CrossCovariance, ...] = (self.correlation, *self.head.relations())
        return [cpu.relate_channels(one, h_bmdc) if cpu.is_quick(h_bmdc) else one(h_bmdc) for one in layers]

    def _observe(self, x_bmd: Tensor, dtype: torch.dtype, marks_bmd: Tensor | None) -> Tensor:
        """Cells as channels, after all observation layers: (B, M, D, C)."""
        is_quick = cpu.is_quick(x_bmd)
        h_bmdc = cpu.embed(self.embedding, x_bmd) if is_quick else self.embedding(x_bmd, dtype)
        if marks_bmd is not None:
            h_bmdc = h_bmdc + self._embed_marks(marks_bmd, h_bmdc.dtype)
        n_stretches = count_parts(x_bmd.shape[1], self.config.sample_stretch)
        if is_quick:
            cpu.observe(self.observation, h_bmdc, dtype, n_stretches)
            return h_bmdc
        for layer in self.observation:
            h_bmdc = attend_in_stretches(layer, h_bmdc, n_stretches) if sees_samples(layer) else layer(h_bmdc)
        return h_bmdc

    def _relate(self, s_bcdd: Tensor) -> Tensor:
        """Relations after all bilinear blocks."""
        if cpu.is_quick(s_bcdd):
            return cpu.relate(self.bilinear, s_bcdd)
        for block in self.bilinear:
            s_bcdd = block(s_bcdd)
        return s_bcdd

    def _embed_marks(self, marks_bmd: Tensor, dtype: torch.dtype) -> Tensor:
        """One learned vector per mark, added to the channels of the cells that bear it."""
        if self.marks is None:
            raise ConfigError("this network cannot tell marked cells from others; use one with marks=True")
        bits_bmd2 = torch.stack([marks_bmd & MISSING, (marks_bmd & SET) // SET], -1)
        return bits_bmd2.to(dtype) @ self.marks.to(dtype)

    def channel_matrices(self) -> list[nn.Parameter]:
        """Those of the embedding, the observation layers, the cross covariance and the pair blocks."""
        parts = [self.embedding.mix, self.observation]
        if isinstance(self.head, PairHead):
            parts += [self.head.cross, self.head.blocks]
        return [p for part in parts for p in part.parameters() if p.ndim >= 2]

    def compilable(self) -> list[nn.Module]:
        """All but inverses and the last layer."""
        parts = [self.standardise, self.embedding, *self.observation, self.correlation, *self.bilinear]
        return [*parts, *self.head.compilable(), self.sides]


def standardise(x_bmd: Tensor, limit: float = 5.0) -> Tensor:
    """Centre, scale to unit variance and clip each column; constant columns become zero, huge ones do not overflow."""
    x_bmd = x_bmd - x_bmd.mean(-2, keepdim=True)
    tiny = torch.finfo(x_bmd.dtype).tiny
    x_bmd = x_bmd / x_bmd.abs().amax(-2, keepdim=True).clamp_min(tiny)
    x_bmd = x_bmd - x_bmd.mean(-2, keepdim=True)  # rounding left ±1 of a constant column: this makes it zero
    scale = x_bmd.square().mean(-2, keepdim=True).clamp_min(1e-12).rsqrt()
    return (x_bmd * scale).clamp(-limit, limit)


class Standardise(nn.Module):
    """`standardise` as a layer, so that it can be compiled."""

    def forward(self, x_bmd: Tensor) -> Tensor:
        return standardise(x_bmd)


class Sides(nn.Module):
    """What (i, j) and (j, i) say together: of some outputs what they have in common, of others how they differ."""

    even: Tensor
    odd: Tensor

    def __init__(self, n_logits: int):
        super().__init__()
        self.register_buffer("even", torch.tensor(_EVEN[:n_logits]) / 2, persistent=False)
        self.register_buffer("odd", torch.tensor(_ODD[:n_logits]) / 2, persistent=False)

    def forward(self, z_bddo: Tensor) -> Tensor:
        turned_bddo = z_bddo.transpose(-3, -2)
        return (z_bddo + turned_bddo) * self.even.to(z_bddo) + (z_bddo - turned_bddo) * self.odd.to(z_bddo)


def observation_layers(
    config: EdgeNetConfig, attribute_attention: type[AxialAttention] = AxialAttention
) -> nn.ModuleList:
    """Attribute attention, sample attention and dense layers in turn, each kind as often as the config says."""
    sizes, project = (config.channels, config.heads), config.attention_output
    make: dict[str, Callable[[], nn.Module]] = {
        "attributes": lambda: attribute_attention(*sizes, "attributes", project=project),
        "samples": lambda: AxialAttention(*sizes, "samples", project=project),
        "dense": lambda: Dense(config.channels, config.dense_hidden),
    }
    return nn.ModuleList(make[kind]() for kind, _ in name_observation_layers(config))


def name_observation_layers(config: EdgeNetConfig) -> list[tuple[str, int]]:
    """Kind and depth of each observation layer, in their order.

    Examples
    --------
    >>> name_observation_layers(EdgeNetConfig(attribute_layers=2, sample_layers=1, dense_layers=1))
    [('attributes', 0), ('samples', 0), ('dense', 0), ('attributes', 1)]
    """
    layers = {"attributes": config.attribute_layers, "samples": config.sample_layers, "dense": config.dense_layers}
    return [(kind, depth) for depth in range(max(layers.values())) for kind, n in layers.items() if depth < n]


def table_features(rows: Tensor, n_variables: int) -> Tensor:
    """How much evidence there is, (…, 2): log M and log D, squashed so that they stay bounded far outside training."""
    width = torch.full_like(rows, math.tanh((math.log(n_variables) - 3.5) / 1.2))
    return torch.stack([((rows.log() - 5.5) / 1.5).tanh(), width], -1)


def count_evidence(rows: Rows | None, x_bmd: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """`table_features` and √M, of all tables alike or, where `rows` are given, of each: (B, 1, 1, 2), (B, 1, 1, 1)."""
    n_samples, n_variables = x_bmd.shape[1:]
    if rows is None:
        return table_features(like.new_full((), n_samples), n_variables), like.new_full((), n_samples**0.5)
    rows_b11 = torch.as_tensor(rows, dtype=like.dtype, device=like.device)[:, None, None]
    return table_features(rows_b11, n_variables), rows_b11[..., None].sqrt()


def class_layer(config: EdgeNetConfig) -> Linear:
    """Last layer: starts at no edge for every pair, odds e² to one, and at even odds for all else."""
    layer = Linear(config.pair_channels, len(CLASSES) + (len(ANSWERS) if config.answers else 0))
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    nn.init.constant_(layer.bias[:1], 2.0)
    return layer


class LogHead(nn.Module):
    """The paper's head: matrix logarithm, dense over channels, three classes; it also knows M and D."""

    def __init__(self, config: EdgeNetConfig):
        super().__init__()
        self.matrix_log = config.matrix_log
        self.read = Linear(config.spd_channels, config.pair_channels)
        self.size = Linear(2, config.pair_channels, bias=False)
        self.classes = class_layer(config)

    def relations(self) -> tuple[CrossCovariance, ...]:
        """What it wants to know of observations beside their correlations: nothing."""
        return ()

    def forward(
        self, x_bmd: Tensor, raw_bcdd: Tensor, s_bcdd: Tensor, *, rows: Rows | None, dtype: torch.dtype
    ) -> Tensor:
        z_bcdd = spd.logm(s_bcdd) if self.matrix_log else s_bcdd
        size = self.size(count_evidence(rows, x_bmd, z_bcdd)[0])
        return self.classes((self.read(z_bcdd.movedim(1, -1)) + size).relu())

    def compilable(self) -> list[nn.Module]:
        """Blocks worth compiling."""
        return []


def _side_by_side(r_rbcdd: Tensor) -> Tensor:
    """Several kinds of channels behind each other, (B, R·C, D, D)."""
    return r_rbcdd.movedim(0, 1).flatten(1, 2)


class PairHead(nn.Module):
    """Everything known of a pair, mixed to P channels, then pair blocks, then three classes."""

    def __init__(self, config: EdgeNetConfig):
        super().__init__()
        self.table_correlations = config.table_correlations
        self.sharp_correlations = config.sharp_correlations
        c, n_table = config.spd_channels, correlations.N_CORRELATIONS if config.table_correlations else 0
        n_sharp = 2 * correlations.N_SIZES + 2 if config.sharp_correlations else 0
        self.cross = CrossCovariance(config.channels, c)
        n_more = 2 * n_table + n_sharp
        self.features = PairFeatures(c, config.pair_channels, matrix_log=config.matrix_log, n_more=n_more)
        self.blocks = nn.ModuleList(
            PairBlock(config.pair_channels, config.product_channels) for _ in range(config.pair_layers)
        )
        self.classes = class_layer(config)

    def relations(self) -> tuple[CrossCovariance, ...]:
        """What it wants to know of observations beside their correlations."""
        return (self.cross,)

    def forward(
        self,
        x_bmd: Tensor,
        raw_bcdd: Tensor,
        s_bcdd: Tensor,
        cross_bcdd: Tensor,
        *,
        rows: Rows | None,
        dtype: torch.dtype,
    ) -> Tensor:
        if cpu.is_quick(s_bcdd):
            return self._forward_in_blocks(x_bmd, raw_bcdd, s_bcdd, cross_bcdd, rows, dtype)
        raw_rbcdd = spd.resolvents(raw_bcdd, RAW_POLES)
        evidence, sqrt_m = count_evidence(rows, x_bmd, s_bcdd)
        last, table = self.features.lead_out(s_bcdd), self._read_table(x_bmd)
        z_bddp = self.features(raw_bcdd, raw_rbcdd, cross_bcdd, *last, evidence, sqrt_m, table)
        z_bddp = z_bddp.to(dtype)
        rsqrt_d = s_bcdd.new_full((), s_bcdd.shape[-1] ** -0.5)
        for block in self.blocks:
            z_bddp = block(z_bddp, rsqrt_d)
        return self.classes(z_bddp.to(s_bcdd.dtype))

    def _forward_in_blocks(
        self,
        x_bmd: Tensor,
        raw_bcdd: Tensor,
        s_bcdd: Tensor,
        cross_bcdd: Tensor,
        rows: Rows | None,
        dtype: torch.dtype,
    ) -> Tensor:
        """The same with `graphbam.nn.cpu`, in place and in blocks."""
        evidence, sqrt_m = count_evidence(rows, x_bmd, s_bcdd)
        more = spell_out(self._read_table(x_bmd), sqrt_m)
        z_bddp = self.features.mix_in_turn(raw_bcdd, cross_bcdd, s_bcdd, evidence, sqrt_m, more)
        cpu.reason(self.blocks, z_bddp, dtype)
        return self.classes(z_bddp)

    def _read_table(self, x_bmd: Tensor) -> TableFacts:
        """What is known from the table itself, not from channels."""
        return TableFacts(
            correlations.read_correlations(x_bmd) if self.table_correlations else None,
            *(correlations.read_sizes(x_bmd) if self.sharp_correlations else (None, None)),
        )

    def compilable(self) -> list[nn.Module]:
        """Blocks worth compiling."""
        return [self.cross, self.features, *self.blocks]


class TableFacts(NamedTuple):
    """What plain correlations of a table say (`graphbam.nn.features`), as far as a head reads it."""

    correlations_bfdd: Tensor | None = None
    sizes_bfdd: Tensor | None = None
    unexplained_bd: Tensor | None = None


NOTHING = TableFacts()
"""Of a head that does not read the table itself."""


def spell_out(facts: TableFacts, sqrt_m: Tensor) -> list[Tensor]:
    """The same as features of pairs, a list of (B, F, D, D): each beside its significance, own shares on both sides."""
    more = []
    for r_bfdd in (facts.correlations_bfdd, facts.sizes_bfdd):
        more += [] if r_bfdd is None else [r_bfdd, significance(r_bfdd, sqrt_m)]
    if facts.unexplained_bd is not None:
        own_bd = facts.unexplained_bd / 5
        own_bdd = own_bd[:, :, None].expand(*own_bd.shape, own_bd.shape[-1])
        more.append(torch.stack([own_bdd, own_bdd.mT], 1))
    return more


def significance(r: Tensor, sqrt_m: Tensor) -> Tensor:
    """asinh(√M r): the size of correlations against their standard error, in logarithms where that is large."""
    y = sqrt_m * r
    return (cpu.asinh(y) if cpu.is_quick(y) else y.asinh()) / 3


class PairFeatures(nn.Module):
    """Concatenate what is known of each pair and mix it to P channels.

    Correlations come twice: as they are, and in their `significance`. `n_more` matrices may come from elsewhere.
    """

    def __init__(self, spd_channels: int, pair_channels: int, *, matrix_log: bool, n_more: int = 0):
        super().__init__()
        self.matrix_log = matrix_log
        self.rational = spd.log_poles()
        n_raw = 2 * (2 + len(RAW_POLES))  # correlations, cross correlations, inverses; each twice
        n_log = 1 + len(HEAD_POLES) if matrix_log else 1
        self.mix = Linear((n_raw + n_log) * spd_channels + n_more, pair_channels)
        self.size = Linear(2, pair_channels, bias=False)

    def lead_out(self, s_bcdd: Tensor) -> tuple[Tensor, Tensor | None]:
        """The logarithm of what the bilinear blocks give, and the inverses that the head sees; or that itself."""
        if not self.matrix_log:
            return s_bcdd, None
        return spd.logm_with_resolvents(s_bcdd, slice(HEAD_POLES.start, HEAD_POLES.stop))

    def forward(
        self,
        raw_bcdd: Tensor,
        raw_rbcdd: Tensor,
        cross_bcdd: Tensor,
        last_bcdd: Tensor,
        seen_rbcdd: Tensor | None,
        evidence: Tensor,
        sqrt_m: Tensor,
        table: TableFacts = NOTHING,
    ) -> Tensor:
        plain_bfdd = torch.cat([raw_bcdd, cross_bcdd, _side_by_side(spd.correlate(raw_rbcdd))], 1)
        last = [last_bcdd] if seen_rbcdd is None else [last_bcdd / 3, _side_by_side(spd.correlate(seen_rbcdd))]
        known = [plain_bfdd, significance(plain_bfdd, sqrt_m), *last, *spell_out(table, sqrt_m)]
        return gather_up(self.mix, torch.cat(known, 1)) + self.size(evidence)

    def mix_in_turn(
        self,
        raw_bcdd: Tensor,
        cross_bcdd: Tensor,
        s_bcdd: Tensor,
        evidence: Tensor,
        sqrt_m: Tensor,
        more: Sequence[Tensor] = (),
    ) -> Tensor:
        """The same from correlations alone, with `graphbam.nn.cpu`: inverses come a few at a time, and are mixed in.

        All features of 1000 variables would take 2 GB.
        """
        weight, n_plain = self.mix.weight.to(s_bcdd.dtype), 2 + len(RAW_POLES)
        n_more = [part.shape[1] for part in more]
        of_channels, *of_more = weight.split([weight.shape[1] - sum(n_more), *n_more], 1)
        weights = of_channels.split(raw_bcdd.shape[1], 1)
        start = self.size(evidence) + self.mix.bias.to(s_bcdd.dtype)
        z_bddp = start.expand(len(s_bcdd), *s_bcdd.shape[-2:], -1).contiguous()
        plain, sure, of_log = weights[:n_plain], [w / 3 for w in weights[n_plain : 2 * n_plain]], weights[2 * n_plain :]
        features = [cpu.Feature(raw_bcdd, plain[0], sure[0]), cpu.Feature(cross_bcdd, plain[1], sure[1])]
        for some in cpu.correlated_resolvents(raw_bcdd, RAW_POLES, range(len(RAW_POLES))):
            features += [cpu.Feature(r_bcdd, plain[2 + j], sure[2 + j]) for j, r_bcdd in some.items()]
            cpu.add_features(z_bddp, features, sqrt_m)
            features = []
        last = cpu.Feature(s_bcdd, of_log[0])
        if self.matrix_log:
            last = cpu.Feature(self._mix_resolvents(z_bddp, s_bcdd, of_log[1:]), of_log[0] / 3)
        cpu.add_features(z_bddp, [last, *map(cpu.Feature, more, of_more)], sqrt_m)
        return z_bddp

    def _mix_resolvents(self, z_bddp: Tensor, s_bcdd: Tensor, weights: Sequence[Tensor]) -> Tensor:
        """Mix in the inverses that the logarithm is made of and that the head sees; returns the logarithm."""
        log_bcdd = torch.zeros_like(s_bcdd)
        log_bcdd.diagonal(dim1=-2, dim2=-1).add_(self.rational.constant)
        poles = self.rational.poles
        shares = [weight * pole for weight, pole in zip(self.rational.weights, poles, strict=True)]
        for some in cpu.correlated_resolvents(s_bcdd, poles, HEAD_POLES, log_bcdd, shares):
            features = [cpu.Feature(r_bcdd, weights[HEAD_POLES.index(j)]) for j, r_bcdd in some.items()]
            cpu.add_features(z_bddp, features, z_bddp.new_ones(()))
        return log_bcdd
