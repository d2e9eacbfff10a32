"""Fine-tuning: go on from released weights with tables of one's own, without forgetting the simulated ones."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphbam.errors import ConfigError, TableError
from graphbam.graphs.graph import Graph, edge_classes
from graphbam.nn.device import choose_device
from graphbam.nn.weights import LoadedWeights, load_weights
from graphbam.tables.labelled import find_labelled, read_labelled
from graphbam.tables.prepare import standardise
from graphbam.tables.rows import count_rows, count_rows_each
from graphbam.training.config import TrainConfig
from graphbam.training.data import Batch, Stream
from graphbam.training.loop import stop_requested
from graphbam.training.objectives import EdgeTask
from graphbam.training.step import Stepper

Pair = tuple[Any, Any]
"""A table (array or DataFrame, M × D) and its graph (`Graph` or adjacency, D × D)."""

REPORT_SECONDS = 5.0
"""Time between two reports."""

MOST_TABLES = 16
"""Equal-shaped tables that go into one step together."""


def fine_tune(
    weights: str | LoadedWeights,
    pairs: Iterable[Pair],
    *,
    steps: int = 500,
    learning_rate: float = 2e-4,
    replay: float = 0.5,
    seed: int = 0,
    device: str = "auto",
    report: Callable[[dict[str, float]], None] | None = None,
) -> LoadedWeights:
    """Continue training on labelled tables, or on a simulator that yields them.

    Parameters
    ----------
    weights : str or LoadedWeights
        Where to start.
    pairs : iterable of (table, graph)
        A sequence is visited again and again, its rows resampled each time; a generator is consumed as it goes and
        must last for `steps`.
    steps : int
        Optimiser steps, simulated ones included.
    learning_rate : float
        Peak rate; it warms up over the first tenth and falls to zero over the last half.
    replay : float
        Share of steps on fresh tables of the original simulation, which keeps what the weights knew.
    seed : int
        Decides order, resampling and replay.
    device : str
        `"auto"`, `"cpu"` or `"cuda"`.
    report : callable, optional
        Called after the first step and every few seconds, with the step, mean losses and an estimate of `seconds_left`.

    Returns
    -------
    LoadedWeights
        Ready for `gb.infer(..., weights=...)`; write them with `graphbam.nn.weights.save_weights`. Ctrl-C ends the
        training early, and what has been learnt so far is returned.
    """
    if not 0 <= replay < 1 or steps < 1:
        raise ConfigError(f"replay={replay} must lie in [0, 1) and steps={steps} must be at least 1")
    place = choose_device(device)
    loaded = weights if isinstance(weights, LoadedWeights) else load_weights(weights)
    network = type(loaded.network)(loaded.network.config).to(place)
    network.load_state_dict(loaded.network.state_dict())
    stepper = Stepper(network, EdgeTask(), weight_decay=0.0, clip_norm=1.0, ema_decay=0.98, capture=False)
    rng = torch.Generator().manual_seed(seed)
    own, simulated = own_batches(rng, pairs), _replay(loaded, seed, place)
    began = last = time.monotonic()
    with stop_requested() as stop:
        for step in range(1, steps + 1):
            from_stream = float(torch.rand((), generator=rng)) < replay
            batch = next(simulated if from_stream else own)
            stepper.step(Batch(*(part.to(place) for part in batch)), learning_rate * _shape_of_rate((step - 1) / steps))
            now = time.monotonic()
            if report and (step in (1, steps) or now - last >= REPORT_SECONDS):
                report({"step": step, "seconds_left": (now - began) / step * (steps - step), **stepper.statistics()})
                last = now
            if stop():
                break
    tuned = {"from": loaded.name, "steps": step, "learning_rate": learning_rate, "replay": replay}
    header = dataclasses.replace(
        loaded.header, calibration=None, domain=None, checksum=None, notes={**loaded.header.notes, "fine_tuned": tuned}
    )
    network.load_state_dict(stepper.averaged().state_dict())
    return LoadedWeights(f"{loaded.name}-tuned", network.eval(), header)


def own_batches(rng: torch.Generator, pairs: Iterable[Pair]) -> Iterator[Batch]:
    """Endless batches from a sequence (rows resampled), or the batches of a generator until it ends."""
    if isinstance(pairs, Sequence):
        yield from _resampled(rng, [as_batch(table, graph, index) for index, (table, graph) in enumerate(pairs)])
    for index, (table, graph) in enumerate(pairs):
        yield as_batch(table, graph, index)
    raise TableError("the pairs to learn from have run out before the last step; pass a list, or a longer generator")


def as_batch(table: Any, graph: Any, index: int = 0) -> Batch:
    """One table with its graph as a batch of one.

    Examples
    --------
    >>> x_md = np.random.default_rng(0).normal(size=(50, 3))
    >>> as_batch(x_md, np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])).classes_bdd.tolist()
    [[[0, 2, 1], [2, 0, 1], [1, 1, 0]]]
    """
    x_md = np.asarray(table, dtype=float)
    adjacency = np.asarray(graph.adjacency if isinstance(graph, Graph) else graph)
    if x_md.ndim != 2 or adjacency.shape != (x_md.shape[1],) * 2:
        raise TableError(f"pair {index}: a table of shape {x_md.shape} does not fit a graph of shape {adjacency.shape}")
    if not np.isfinite(x_md).all():
        raise TableError(f"pair {index}: the table holds missing or infinite values; fill or drop them first")
    x_bmd = standardise(torch.tensor(x_md)[None]).float()
    return Batch(x_bmd, torch.tensor(edge_classes(adjacency)).long()[None], torch.tensor(count_rows_each(x_md[None])))


def read_pairs(folder: Path) -> list[Pair]:
    """Labelled tables on disk: every folder below with data.csv (or .csv.gz) and graph.csv (source,target)."""
    tables = [read_labelled(place) for place in find_labelled(folder)]
    return [(table.x_md, table.adjacency) for table in tables]


def _resampled(rng: torch.Generator, singles: list[Batch]) -> Iterator[Batch]:
    """Equal shapes together, in random order, each table's rows drawn anew without replacement, nine in ten."""
    groups: dict[tuple[int, ...], list[Batch]] = defaultdict(list)
    for single in singles:
        groups[tuple(single.x_bmd.shape)].append(single)
    weights = torch.tensor([float(len(group)) for group in groups.values()])
    pools = list(groups.values())
    while pools:
        pool = pools[int(torch.multinomial(weights, 1, generator=rng))]
        picks = torch.randperm(len(pool), generator=rng)[:MOST_TABLES].tolist()
        some = [_draw_rows(rng, pool[i]) for i in picks]
        yield Batch(*(torch.cat(parts) for parts in zip(*some, strict=True)))


def _draw_rows(rng: torch.Generator, single: Batch) -> Batch:
    n_rows, worth = single.x_bmd.shape[1], float(single.rows_b)
    keep = max(2, int(0.9 * n_rows))
    x_bmd = single.x_bmd[:, torch.randperm(n_rows, generator=rng)[:keep]]
    rows = count_rows(keep, n_rows, redundancy=n_rows / worth - 1)
    return Batch(x_bmd, single.classes_bdd, torch.tensor([rows]))


def _replay(loaded: LoadedWeights, seed: int, device: torch.device) -> Iterator[Batch]:
    """The stream the weights were trained on, in small batches and at its full range of shapes."""
    stored = loaded.header.train or {}
    simulation = {"simulation": stored["simulation"]} if "simulation" in stored else {}
    plain = TrainConfig().to_dict() | simulation
    small = {"seed": seed + 1, "cells_per_step": 24_000, "curriculum_start": 1.0, "burst": 4, "window": 4}
    stream = Stream(TrainConfig.from_dict(plain | small), device)
    return (batch for batch in stream if isinstance(batch, Batch))


def _shape_of_rate(progress: float) -> float:
    return min(1.0, (progress + 1e-3) / 0.1, 2 * (1 - progress))
