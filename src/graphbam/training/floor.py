"""The least work a step can be: floating-point operations and bytes, counted from the formulas.

No version of the code runs faster than operations over the arithmetic rate, or bytes over the memory rate. Measured
time over the larger of the two is the gap that is left.
"""

from __future__ import annotations

from typing import NamedTuple

from graphbam.benchmarks.baselines.avici_net import AviciNetConfig
from graphbam.nn import spd
from graphbam.nn.edge_net import EdgeNetConfig
from graphbam.training.loss import DOUBLINGS

H200_BF16 = 7.9e14
"""Operations a second of a large bfloat16 product on an H200, measured."""
H200_FP32 = 5.0e13
"""Operations a second of batched float32 products there, without tensor cores."""
H200_BYTES = 4.3e12
"""Bytes a second, read plus written, of a large copy there, measured."""


class Work(NamedTuple):
    """Work of one forward and backward pass."""

    bf16: float
    """Operations on observations and pairs."""
    fp32: float
    """Operations on definite matrices."""
    bytes: float
    """Each layer's input and output moved once forward, and activations and two gradients once backward."""

    def seconds(self) -> float:
        """The floor on an H200."""
        return max(self.bf16 / H200_BF16 + self.fp32 / H200_FP32, self.bytes / H200_BYTES)


def training_work(config: EdgeNetConfig | AviciNetConfig, n_tables: int, n_samples: int, n_variables: int) -> Work:
    """Forward and backward work of a batch; backward counts twice the forward products.

    Examples
    --------
    >>> work = training_work(EdgeNetConfig(), 16, 525, 55)
    >>> 0.001 < work.seconds() < 0.02
    True
    """
    if isinstance(config, AviciNetConfig):
        return _arrow_work(config, n_tables, n_samples, n_variables)
    c, cells = config.channels, n_tables * n_samples * n_variables
    projections = 2 * c * c * (4 if config.attention_output else 3)
    attention = config.attribute_layers * (projections + 4 * c * n_variables)
    attention += config.sample_layers * (projections + 4 * c * n_samples)
    dense = config.dense_layers * 2 * c * (2 * config.dense_hidden or c)
    layers = config.attribute_layers + config.sample_layers + config.dense_layers
    pairs = n_tables * n_variables**2
    pair_block = 2 * config.pair_channels * (9 * config.product_channels + 4 * config.pair_channels)
    pair_block += 6 * config.product_channels * n_variables
    return Work(
        bf16=3 * (cells * (attention + dense) + pairs * config.pair_layers * pair_block),
        fp32=3 * n_tables * _definite_operations(config, n_samples, n_variables),
        bytes=2 * 5 * c * cells * layers + 4 * 5 * pairs * config.spd_channels * config.bilinear_layers,
    )


def _arrow_work(config: AviciNetConfig, n_tables: int, n_samples: int, n_variables: int) -> Work:
    """Half of the blocks attend over either axis; each has four projections and two dense layers."""
    c, inner, cells = config.channels, config.heads * config.key_size, n_tables * n_samples * n_variables
    layers = 4 * 2 * c * inner + 2 * 2 * config.widening * c * c
    attention = 4 * inner * (-(-config.blocks // 2) * n_variables + config.blocks // 2 * n_samples)
    pairs = n_tables * n_variables**2
    return Work(
        bf16=3 * cells * (config.blocks * layers + attention),
        fp32=3 * pairs * 2 * (c + DOUBLINGS * n_variables),
        bytes=2 * 5 * c * cells * 2 * config.blocks,
    )


def _definite_operations(config: EdgeNetConfig, n_samples: int, n_variables: int) -> float:
    """Forward operations on one table's covariance matrices: covariance, mixing, four products a block, inverses."""
    c, d = config.spd_channels, n_variables
    mixing = 2 * 2 * c * (c // config.spd_heads) * d**2
    blocks = config.bilinear_layers * (mixing + 4 * 2 * c * d**3)
    log = spd.LOG_POLES * 2 * c * d**3 if config.matrix_log else 0
    return 2 * c * n_samples * d**2 + blocks + log
