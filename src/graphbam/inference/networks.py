"""The two networks as inference sees them: what they must be able to do, how they are opened, how edges are asked."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from graphbam.errors import ConfigError
from graphbam.graphs.graph import BoolMatrix, Matrix
from graphbam.inference.settings import InferConfig
from graphbam.nn.cost import count_work, explained_memory, threads, threads_for
from graphbam.nn.device import choose_device
from graphbam.nn.structures import Structures
from graphbam.nn.weights import Header, fits_partner, load_colliders, load_weights

CELLS_AT_ONCE = 4_000_000
"""Resamples and batches are cut so that no more table cells than this are held at a time."""


def tables_at_once(n_cells: int) -> int:
    """How many tables of so many cells may be held together."""
    return max(1, CELLS_AT_ONCE // n_cells)


class Weights(Protocol):
    """What inference needs of weights; `graphbam.nn.weights.LoadedWeights` has it."""

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> Header: ...

    def probabilities(self, x_bmd: Tensor, rows: Sequence[float] | None = None) -> Tensor: ...


class Colliders(Protocol):
    """What directions need of collider weights; `graphbam.nn.weights.LoadedColliders` has it."""

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> Header: ...

    def pack(self, links_dd: BoolMatrix, pairs_dd: BoolMatrix, strength_dd: Matrix) -> Structures: ...

    def answer(self, x_bmd: Tensor, asked: Structures) -> Matrix: ...


class Networks(NamedTuple):
    """Both networks, loaded."""

    edges: Weights
    colliders: Colliders | None
    warnings: tuple[str, ...] = ()
    """What to keep in mind about using the two together."""


def open_weights(weights: str | os.PathLike[str] | Weights, device: str = "auto") -> Weights:
    """Load weights onto a device; weights that are loaded already stay where they are."""
    if not isinstance(weights, (str, os.PathLike)):
        if not hasattr(weights, "probabilities"):
            raise ConfigError(f"weights={weights!r} are no weights. Pass a name, a path or loaded weights.")
        return weights
    return load_weights(weights, choose_device(device))


def open_colliders(colliders: str | os.PathLike[str] | Colliders | None, device: str = "auto") -> Colliders | None:
    """Load collider weights onto a device; None, and weights that are loaded already, stay as they are."""
    if colliders is None:
        return None
    if not isinstance(colliders, (str, os.PathLike)):
        if not hasattr(colliders, "answer"):
            raise ConfigError(f"colliders={colliders!r} are no collider weights. Pass a name, a path, or None.")
        return colliders
    return load_colliders(colliders, choose_device(device))


def open_networks(config: InferConfig) -> Networks:
    """Load both networks that the settings name; what was fitted to other edge weights is not used with these."""
    edges = open_weights(config.weights, config.device)
    colliders = open_colliders(config.colliders, config.device)
    if colliders is None or fits_partner(colliders.header, edges.header):
        return Networks(edges, colliders)
    plain = dataclasses.replace(cast(Any, colliders), header=dataclasses.replace(colliders.header, evidence=None))
    return Networks(edges, plain, (_tell_of_partner(edges, colliders),))


def _tell_of_partner(edges: Weights, colliders: Colliders) -> str:
    partner = colliders.header.partner
    return (
        f"collider weights {spell_source(colliders)!r} learned beside {partner.name if partner else 'others'!r}, not "
        f"{spell_source(edges)!r}, how to weigh evidence: they are used without it, so arrows may be too sure or unsure"
    )


def spell_source(loaded: Weights | Colliders | None) -> str | None:
    """How weights are recorded: by where their file lies, or by their name in the package."""
    return None if loaded is None else getattr(loaded, "path", None) or loaded.name


def describe_device(loaded: Weights) -> dict[str, str | None]:
    """Where a network computes and how precisely, for the record; nothing is known of weights that are no network."""
    network = getattr(loaded, "network", None)
    if network is None:
        return {"device": None, "precision": None}
    device = next(network.parameters()).device
    is_mixed = device.type == "cuda" and network.mixed_precision
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    precision = "float32, observations in bfloat16" if is_mixed else "float32"
    return {"device": f"{device} ({name})" if name else str(device), "precision": precision}


def run_network(loaded: Weights, x_bmd: Tensor, rows: Sequence[float]) -> Matrix:
    """Probabilities of a batch, shape (B, D, D, 3); says what to do when memory runs out.

    `rows` are the independent ones that each table is worth.
    """
    n_tables, n_samples, n_variables = x_bmd.shape
    work = n_tables * count_work(loaded, n_samples, [n_variables])
    with explained_memory(n_samples, n_variables), threads(threads_for(work)):
        more = {} if all(n_rows == n_samples for n_rows in rows) else {"rows": rows}
        return np.asarray(loaded.probabilities(x_bmd, **more).double().cpu().numpy())
