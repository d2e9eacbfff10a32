"""Going on with a larger network: it begins where the smaller one ended."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from graphbam.errors import WeightsError
from graphbam.nn.edge_net import EdgeNet
from graphbam.nn.weights import Network

_MIX = "head.features.mix.weight"
"""The layer that reads all features of a pair; those of `sharp_correlations` come last."""


def grow_weights(network: Network, design: Network, source: str) -> dict[str, Tensor]:
    """Weights for `design` that compute what `network` does, where the head of `design` is the larger one.

    Pair blocks that `network` lacks start as the identity: their residual scales are zero, so that the first steps
    move the scales, and the next ones the rest. Correlations in double precision start with weights of zero. Other new
    weights are those that `design` was initialised with. `source` is where `network` came from, for the error.

    Raises
    ------
    WeightsError
        If the two differ in anything but what the head of `design` has more.

    Examples
    --------
    >>> from graphbam.nn.edge_net import EdgeNetConfig
    >>> shallow, deep = EdgeNet(EdgeNetConfig(pair_layers=1)), EdgeNet(EdgeNetConfig(pair_layers=3))
    >>> _ = deep.load_state_dict(grow_weights(shallow, deep, "a doctest"))
    >>> x_bmd = torch.randn(2, 20, 4)
    >>> torch.equal(shallow(x_bmd), deep(x_bmd))
    True
    """
    weights = network.state_dict()
    if network.config == design.config:
        return weights
    _check_growth(network, design, source)
    fresh = {name: value for name, value in design.state_dict().items() if name not in weights}
    still = {name: torch.zeros_like(value) for name, value in fresh.items() if name.endswith("residual.scale")}
    mix_pf = weights[_MIX]
    more_pf = mix_pf.new_zeros(len(mix_pf), design.state_dict()[_MIX].shape[1] - mix_pf.shape[1])
    return weights | fresh | still | {_MIX: torch.cat([mix_pf, more_pf], 1)}


def _check_growth(network: Network, design: Network, source: str) -> None:
    other = f"weights {source!r} have another network design than this run; train with their config"
    if not (isinstance(network, EdgeNet) and isinstance(design, EdgeNet)):
        raise WeightsError(other)
    old, new = network.config, design.config
    grown = dataclasses.replace(old, pair_layers=new.pair_layers, sharp_correlations=new.sharp_correlations)
    larger = 0 < old.pair_layers <= new.pair_layers and old.sharp_correlations <= new.sharp_correlations
    if not larger or grown != new:
        blocks = f"it has {old.pair_layers} pair blocks in the weights and {new.pair_layers} in this run"
        raise WeightsError(f"{other}. The head alone may grow, and {blocks}")
