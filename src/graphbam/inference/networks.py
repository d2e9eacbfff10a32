"""The two networks as inference sees them: what they must be able to do, how they are opened, how edges are asked."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbam.errors import ConfigError, Setting
from graphbam.graphs.graph import BoolMatrix, Matrix
from graphbam.inference.settings import COLLIDERS, InferConfig
from graphbam.nn.cost import check_memory, count_work, explained_memory, threads_for
from graphbam.nn.cpu import has_bfloat16
from graphbam.nn.device import choose_device
from graphbam.nn.edge_net import MISSING, SET
from graphbam.nn.structures import Structures
from graphbam.nn.threads import threads
from graphbam.nn.weights import Header, chunk_size, find_weights, fits_partner, load_colliders, load_weights
from graphbam.tables.dither import dither
from graphbam.tables.peaks import widen
from graphbam.tables.prepare import Prepared

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


def reads_marks(weights: Weights) -> bool:
    """Whether weights tell cells that were missing or set from others."""
    return bool(getattr(weights, "reads_marks", False))


def longest_piece(weights: Weights, n_variables: int) -> int | None:
    """Rows that the network is shown at a time, where that is known: as many as tables of training have."""
    ask = getattr(weights, "longest", None)
    return None if ask is None else ask(n_variables)


def gives_answers(weights: Weights) -> bool:
    """Whether weights say more of a pair than its class."""
    return bool(getattr(weights, "gives_answers", False))


class Said(NamedTuple):
    """What a network says, of several tables (B, D, D, …) or of one (D, D, …); None where it cannot."""

    classes: Matrix
    """Probabilities of none · skeleton · moral."""
    direction: Matrix | None = None
    """Of i → j rather than j → i, given a link."""
    compelled: Matrix | None = None
    """That the CPDAG has i → j, given a link."""
    hidden: Matrix | None = None
    """Of a hidden common cause."""
    ancestor: Matrix | None = None
    """Of a path of arrows from i to j."""

    def each_table(self, n_passes: int) -> list[Said]:
        """What was said of each table: a mean over its passes, which follow each other."""
        said = {name: p for name, p in self._asdict().items() if p is not None}
        means = {name: p.reshape(-1, n_passes, *p.shape[1:]).mean(axis=1) for name, p in said.items()}
        return [Said(**{name: p[k] for name, p in means.items()}) for k in range(len(self.classes) // n_passes)]


class Colliders(Protocol):
    """What directions need of collider weights; `graphbam.nn.weights.LoadedColliders` has it."""

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> Header: ...

    def pack(self, links_dd: BoolMatrix, pairs_dd: BoolMatrix, strength_dd: Matrix) -> Structures: ...

    def answer(self, x_bmd: Tensor, asked: Structures) -> Matrix: ...


class Networks(NamedTuple):
    """The networks, loaded."""

    edges: Weights
    colliders: Colliders | None
    """The second one, if it is to be asked."""
    one_pass: bool = False
    """Whether directions come from the first."""
    warnings: tuple[str, ...] = ()
    """What to keep in mind about using the two together."""


def open_weights(weights: str | os.PathLike[str] | Weights, device: str = "auto") -> Weights:
    """Load weights onto a device; weights that are loaded already stay where they are."""
    if not isinstance(weights, (str, os.PathLike)):
        if not hasattr(weights, "probabilities"):
            raise ConfigError(f"weights={weights!r} are no weights. Pass a name, a path or loaded weights.")
        return weights
    return _load(load_weights, weights, device)


def open_colliders(colliders: str | os.PathLike[str] | Colliders | None, device: str = "auto") -> Colliders | None:
    """Load collider weights onto a device; None, and weights that are loaded already, stay as they are."""
    if colliders is None:
        return None
    if not isinstance(colliders, (str, os.PathLike)):
        if not hasattr(colliders, "answer"):
            raise ConfigError(f"colliders={colliders!r} are no collider weights. Pass a name, a path, or None.")
        return colliders
    return _load(load_colliders, colliders, device)


Held = TypeVar("Held")
Load: TypeAlias = Callable[[Path, torch.device], Held]


def _load(load: Load[Held], source: str | os.PathLike[str], device: str) -> Held:
    """Weights of a file, read and checked again only if it has changed: that takes as long as a small table."""
    path = find_weights(source)
    seen = path.stat()
    loaded = _load_once(load, path, (seen.st_ino, seen.st_size, seen.st_mtime_ns), choose_device(device))
    return cast(Held, loaded)


@functools.lru_cache(maxsize=4)
def _load_once(load: Load[object], path: Path, seen: tuple[int, ...], device: torch.device) -> object:
    return load(path, device)


def open_networks(config: InferConfig) -> Networks:
    """Load the networks that the settings need; what was fitted to other edge weights is not used with these."""
    edges = open_weights(config.weights, config.device)
    if config.interventions is not None and not reads_marks(edges):
        raise ConfigError(
            f"weights {spell_source(edges)!r} cannot tell cells that were set from others. Use the weights 'edges', or "
            "leave ",
            Setting("interventions"),
            " out.",
        )
    if config.directions == "one-pass" and not gives_answers(edges):
        raise ConfigError(
            f"weights {spell_source(edges)!r} say nothing of directions. Use the weights 'edges', or ",
            Setting("directions", "two-step"),
            ".",
        )
    if config.directions == "none":
        return Networks(edges, None)
    if _is_one_pass(config, edges):
        return Networks(edges, None, one_pass=True)
    colliders = open_colliders(config.colliders, config.device)
    if colliders is None and config.directions == "two-step":
        raise ConfigError(
            Setting("directions", "two-step"), " needs the second network; name it by ", Setting("colliders"), "."
        )
    if colliders is None or fits_partner(colliders.header, edges.header):
        return Networks(edges, colliders)
    plain = dataclasses.replace(cast(Any, colliders), header=dataclasses.replace(colliders.header, evidence=None))
    return Networks(edges, plain, warnings=(_tell_of_partner(edges, colliders),))


def hold_networks(config: InferConfig) -> InferConfig:
    """The same settings with the networks that they need loaded, once for many tables."""
    edges = open_weights(config.weights, config.device)
    held = dataclasses.replace(config, weights=edges)
    if config.directions != "none" and not _is_one_pass(config, edges):
        held = dataclasses.replace(held, colliders=open_colliders(config.colliders, config.device))
    open_networks(held)  # refuses what does not go together
    return held


def _is_one_pass(config: InferConfig, edges: Weights) -> bool:
    is_default = isinstance(config.colliders, str) and config.colliders == COLLIDERS
    return config.directions == "one-pass" or (config.directions == "auto" and is_default and gives_answers(edges))


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
    on_gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if on_gpu else ""
    is_mixed = network.mixed_precision and (on_gpu or has_bfloat16())
    precision = f"float32, {'observations' if on_gpu else 'products'} in bfloat16" if is_mixed else "float32"
    return {"device": f"{device} ({name})" if name else str(device), "precision": precision}


def mark_cells(ready: Prepared) -> NDArray[np.uint8] | None:
    """What the network is told of each cell of a table: was it missing, was it set? None: nothing of any."""
    if ready.missing_md is None and ready.set_md is None:
        return None
    marks_md = np.zeros(ready.x_md.shape, dtype=np.uint8)
    for mark, cells_md in ((MISSING, ready.missing_md), (SET, ready.set_md)):
        if cells_md is not None:
            marks_md |= mark * cells_md.astype(np.uint8)
    return marks_md


def run_network(loaded: Weights, x_bmd: Tensor, rows: Sequence[float], marks_bmd: Tensor | None = None) -> Said:
    """What a network says of a batch, shown as it can read it; says what to do when memory runs out.

    `rows` are the independent ones that each table is worth. Marks are for networks that read them.
    """
    n_tables, n_samples, n_variables = x_bmd.shape
    if (network := getattr(loaded, "network", None)) is not None and loaded_on_cpu(network):
        shape = min(n_tables, chunk_size(n_samples, n_variables)), n_samples, n_variables
        check_memory(network.config, *shape, longest_piece(loaded, n_variables))
    missing_bmd = None if marks_bmd is None else (marks_bmd & MISSING) > 0
    x_bmd = dither(widen(x_bmd, missing_bmd), missing_bmd)
    work = n_tables * count_work(loaded, n_samples, [n_variables])
    more: dict[str, Any] = {} if all(n_rows == n_samples for n_rows in rows) else {"rows": rows}
    if marks_bmd is not None and reads_marks(loaded):
        more["marks_bmd"] = marks_bmd
    with explained_memory(n_samples, n_variables), threads(threads_for(work)):
        if not gives_answers(loaded):
            return Said(_plain(loaded.probabilities(x_bmd, **more)))
        return Said(*(_plain(p_bdd) for p_bdd in cast(Any, loaded).answer(x_bmd, **more)))


def loaded_on_cpu(network: torch.nn.Module) -> bool:
    """Whether a network computes in the memory of the machine, where a process that takes too much is killed."""
    return next(network.parameters()).device.type == "cpu"


def _plain(p: Tensor) -> Matrix:
    return np.asarray(p.double().cpu().numpy())
