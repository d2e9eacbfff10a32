"""Going on with a deeper network: it begins where the shallower one ended."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from graphbam.errors import WeightsError
from graphbam.network import EdgeNet
from graphbam.weights import Network


def grow_weights(network: Network, design: Network, source: str) -> dict[str, Tensor]:
    """Weights for `design` that compute what `network` does; pair blocks that it lacks start as the identity.

    The residual scales of such a block are zero, so its answer is its input; the first steps move the scales, the next
    ones the rest. Its other weights are those that `design` was initialised with. `source` is where `network` came
    from, for the error.

    Raises
    ------
    WeightsError
        If the two differ in anything but that `design` has more pair blocks.

    Examples
    --------
    >>> from graphbam.network import EdgeNetConfig
    >>> shallow, deep = EdgeNet(EdgeNetConfig(pair_layers=1)), EdgeNet(EdgeNetConfig(pair_layers=3))
    >>> _ = deep.load_state_dict(grow_weights(shallow, deep, "a doctest"))
    >>> x_bmd = torch.randn(2, 20, 4)
    >>> torch.equal(shallow(x_bmd), deep(x_bmd))
    True
    """
    weights = network.state_dict()
    if network.config == design.config:
        return weights
    other = f"weights {source!r} have another network design than this run; train with their config"
    if not (isinstance(network, EdgeNet) and isinstance(design, EdgeNet)):
        raise WeightsError(other)
    found, wanted = network.config.pair_layers, design.config.pair_layers
    if not 0 < found < wanted or dataclasses.replace(network.config, pair_layers=wanted) != design.config:
        blocks = f"it has {found} pair blocks in the weights and {wanted} in this run"
        raise WeightsError(f"{other}. The head alone may grow, and {blocks}")
    fresh = {name: value for name, value in design.state_dict().items() if name not in weights}
    still = {name: torch.zeros_like(value) for name, value in fresh.items() if name.endswith("residual.scale")}
    return weights | fresh | still
