"""Fine-tuning: go on from released weights with tables of one's own, without forgetting the simulated ones."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphbam.errors import ConfigError, Setting, TableError, WeightsError, check_whole
from graphbam.graphs.equivalence import dag_to_cpdag
from graphbam.graphs.graph import Graph, directed_part, edge_classes, reachable
from graphbam.machine.disk import check_file, holds_something, take_path
from graphbam.nn.device import choose_device
from graphbam.nn.edge_net import SET
from graphbam.nn.weights import LoadedWeights, load_weights, read_tensors, save_weights
from graphbam.simulation.labels import NOT_APPLICABLE
from graphbam.tables.dither import dither
from graphbam.tables.labelled import LabelledTable, find_labelled, read_labelled, refuse_gaps
from graphbam.tables.peaks import widen
from graphbam.tables.rows import count_rows, count_rows_each
from graphbam.tables.standard import standardise
from graphbam.training.config import TrainConfig
from graphbam.training.data import AnswerBatch, Batch, Stream
from graphbam.training.loop import stop_requested
from graphbam.training.objectives import AnswerTask, EdgeTask
from graphbam.training.step import Stepper

Pair = tuple[Any, Any] | LabelledTable
"""A table (array or DataFrame, M × D) and its graph (`Graph`, matched to columns by name, or adjacency in their order,
D × D), or all that a folder says."""

REPORT_SECONDS = 5.0
"""Time between two reports."""

SAVE_SECONDS = 60.0
"""Time between two writes of the weights."""

MOST_TABLES = 16
"""Equal-shaped tables that go into one step together."""

LARGEST_REPLAYED = 40_000
"""Cells of the largest simulated table among the tables of others."""


def fine_tune(
    weights: str | LoadedWeights,
    pairs: Iterable[Pair],
    *,
    steps: int = 500,
    learning_rate: float = 2e-4,
    replay: float = 0.5,
    seed: int = 0,
    device: str = "auto",
    out: str | os.PathLike[str] | None = None,
    report: Callable[[dict[str, float]], None] | None = None,
) -> LoadedWeights:
    """Continue training on labelled tables, or on a simulator that yields them.

    Weights that give directions and ancestors learn these too, as far as the graphs know them: links without a
    direction teach none. Whether something hidden is behind a pair, no graph says; that is kept alive by replay, and
    learnt from a `graphbam.tables.labelled.LabelledTable` that knows it. One that says which cells were set teaches
    with these marked.

    Parameters
    ----------
    weights : str or LoadedWeights
        Where to start.
    pairs : iterable of (table, graph), or of LabelledTable
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
    out : path, optional
        Weights file that is written every minute and at the end. One that is there must come from fine-tuning.
    report : callable, optional
        Called after the first step and every few seconds, with the step, mean losses and an estimate of `seconds_left`.

    Returns
    -------
    LoadedWeights
        Ready for `gb.infer(..., weights=...)`; write them with `graphbam.nn.weights.save_weights`. Ctrl-C ends the
        training early, and what has been learnt so far is returned.
    """
    _check_settings(steps, learning_rate, replay)
    place = choose_device(device)
    loaded = weights if isinstance(weights, LoadedWeights) else load_weights(weights)
    if out is not None:
        _check_out(take_path(out, "the path of the weights to write"), loaded)
    network = loaded.network.empty(loaded.network.config).to(place)
    network.load_state_dict(loaded.network.state_dict())
    task = AnswerTask() if loaded.gives_answers else EdgeTask()
    stepper = Stepper(network, task, weight_decay=0.0, clip_norm=1.0, ema_decay=0.98, capture=False)
    stepper.start_average()
    rng = torch.Generator().manual_seed(seed)
    own = own_batches(rng, pairs, answers=loaded.gives_answers)
    simulated = _replay(loaded, seed, place) if replay else iter(())

    def tuned_so_far(step: int) -> LoadedWeights:
        notes = {"from": loaded.name, "steps": step, "learning_rate": learning_rate, "replay": replay}
        return _rename(loaded, stepper.averaged().state_dict(), notes)

    began = last = saved = time.monotonic()
    with stop_requested() as stop:
        for step in range(1, steps + 1):
            from_stream = float(torch.rand((), generator=rng)) < replay
            batch = next(simulated if from_stream else own)
            batch = type(batch)(*(part.to(place) for part in batch))
            stepper.step(batch, learning_rate * _shape_of_rate((step - 1) / steps))
            now = time.monotonic()
            if report and (step in (1, steps) or now - last >= REPORT_SECONDS):
                report({"step": step, "seconds_left": (now - began) / step * (steps - step), **stepper.statistics()})
                last = now
            if out is not None and now - saved >= SAVE_SECONDS:
                _save(out, tuned_so_far(step))
                saved = now
            if stop():
                break
    tuned = tuned_so_far(step)
    if out is not None:
        _save(out, tuned)
    return tuned


def _check_settings(steps: int, learning_rate: float, replay: float) -> None:
    check_whole("steps", steps, 1)
    if not 0 < learning_rate < math.inf:  # nor is NaN
        raise ConfigError(Setting("learning_rate", learning_rate), " must be a number above zero")
    if not 0 <= replay < 1:
        raise ConfigError(Setting("replay", replay), " must be at least 0 and below 1: it is a share of the steps")


def _check_out(out: Path, loaded: LoadedWeights) -> None:
    """Refuse, before the work, a file that cannot be written, or only by losing the start or a file of others."""
    check_file(out)
    if loaded.path is not None and out.exists() and out.samefile(loaded.path):
        raise ConfigError(f"{out} holds the weights to start from, and would be lost. Choose another name.")
    if holds_something(out) and not _is_tuned(out):
        raise ConfigError(f"{out} is there already, and not from fine-tuning: it would be lost. Choose another name.")


def _is_tuned(path: Path) -> bool:
    try:
        return "fine_tuned" in read_tensors(path)[1].notes
    except WeightsError:
        return False


def _rename(loaded: LoadedWeights, state: dict[str, Any], notes: dict[str, Any]) -> LoadedWeights:
    """Other weights for the same network, without what was fitted to the old ones."""
    network = loaded.network.empty(loaded.network.config).to(next(iter(state.values())).device)
    network.load_state_dict(state)
    all_notes = {**loaded.header.notes, "fine_tuned": notes}
    header = dataclasses.replace(
        loaded.header, calibration=None, answers=None, domain=None, checksum=None, notes=all_notes
    )
    return LoadedWeights(f"{loaded.name}-tuned", network.eval(), header)


def _save(out: str | os.PathLike[str], tuned: LoadedWeights) -> None:
    save_weights(Path(out), tuned.network, tuned.header)


def own_batches(rng: torch.Generator, pairs: Iterable[Pair], *, answers: bool = False) -> Iterator[Batch | AnswerBatch]:
    """Endless batches from a sequence (rows resampled), all checked at once, or those of a generator until it ends."""
    singles = (_as_single(pair, index, answers) for index, pair in enumerate(pairs))
    if isinstance(pairs, Sequence) and len(pairs):
        return _resampled(rng, list(singles))
    return _until_the_end(singles)


def _until_the_end(singles: Iterable[Batch | AnswerBatch]) -> Iterator[Batch | AnswerBatch]:
    yield from singles
    raise TableError("the pairs to learn from have run out before the last step; pass a list, or a longer generator")


def _as_single(pair: Pair, index: int, answers: bool) -> Batch | AnswerBatch:
    """A pair as a batch of one, with what the network can learn of it."""
    table, graph = (pair.x_md, pair.adjacency) if isinstance(pair, LabelledTable) else _take_apart(pair, index)
    batch: Batch | AnswerBatch = (as_answer_batch if answers else as_batch)(table, graph, index)
    if not isinstance(pair, LabelledTable):
        return batch
    if pair.set_md is not None:  # rows in the order of what was set are no series
        batch = batch._replace(rows_b=torch.tensor(count_rows_each(batch.x_bmd.numpy(), pair.set_md[None])))
    return _add_knowledge(batch, pair) if isinstance(batch, AnswerBatch) else batch


def _take_apart(pair: Any, index: int) -> tuple[Any, Any]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TableError(f"pair {index} is a {type(pair).__name__}, not (table, graph); pass a list of such pairs")
    return pair[0], pair[1]


def _add_knowledge(batch: AnswerBatch, table: LabelledTable) -> AnswerBatch:
    """What a folder says beside the graph: cells that were set are marked, and where pairs share a hidden cause there
    is no CPDAG."""
    if table.set_md is not None:
        batch = batch._replace(marks_bmd=SET * torch.tensor(table.set_md, dtype=torch.uint8)[None])
    if table.hidden_dd is None:
        return batch
    is_joined = bool(table.hidden_dd.any())
    compelled_bdd = torch.full_like(batch.compelled_bdd, NOT_APPLICABLE) if is_joined else batch.compelled_bdd
    return batch._replace(hidden_bdd=torch.tensor(table.hidden_dd)[None], compelled_bdd=compelled_bdd)


def as_batch(table: Any, graph: Any, index: int = 0) -> Batch:
    """One table with its graph as a batch of one, as inference would show it to the network.

    Examples
    --------
    >>> x_md = np.random.default_rng(0).normal(size=(50, 3))
    >>> as_batch(x_md, np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])).classes_bdd.tolist()
    [[[0, 2, 1], [2, 0, 1], [1, 1, 0]]]
    """
    x_md, adjacency = _as_numbers(table, index), _by_columns(graph, table, index)
    if x_md.ndim != 2 or adjacency.shape != (x_md.shape[1],) * 2:
        raise TableError(f"pair {index}: a table of shape {x_md.shape} does not fit a graph of shape {adjacency.shape}")
    if not np.isfinite(x_md).all():
        raise TableError(f"pair {index}: the table holds missing or infinite values; fill or drop them first")
    x_bmd = standardise(torch.tensor(x_md)[None]).float()
    rows_b = torch.tensor(count_rows_each(x_bmd.numpy()))
    return Batch(dither(widen(x_bmd)), torch.tensor(edge_classes(adjacency)).long()[None], rows_b)


def _as_numbers(table: Any, index: int) -> NDArray[np.float64]:
    try:
        return np.ascontiguousarray(table, dtype=float)
    except (TypeError, ValueError) as error:
        raise TableError(f"pair {index}: the table is not made of numbers ({error}); code or drop columns") from None


def _by_columns(graph: Any, table: Any, index: int) -> NDArray[Any]:
    """Edges in the order of the columns: by name where both have names."""
    if not isinstance(graph, Graph) or not hasattr(table, "columns"):
        return np.asarray(graph.adjacency if isinstance(graph, Graph) else graph)
    names = [str(name) for name in table.columns]
    if odd := sorted(set(names) ^ set(graph.names)):
        raise TableError(f"pair {index}: only one of table and graph knows {odd[0]!r}; both need the same variables")
    at = [graph.names.index(name) for name in names]
    return graph.adjacency[np.ix_(at, at)]


def as_answer_batch(table: Any, graph: Any, index: int = 0) -> AnswerBatch:
    """The same with all that a graph says beside classes; −1 where it says nothing.

    Examples
    --------
    >>> x_md = np.random.default_rng(0).normal(size=(50, 3))
    >>> batch = as_answer_batch(x_md, np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    >>> batch.dag_bdd[0].tolist(), batch.ancestors_bdd[0].tolist()
    ([[0, 1, 0], [0, 0, 1], [0, 0, 0]], [[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    >>> int(batch.compelled_bdd.max()), int(batch.hidden_bdd.max())  # a chain can be turned round; nobody knows
    (0, -1)
    """
    plain = as_batch(table, graph, index)
    adjacency = _by_columns(graph, table, index) > 0
    arrows = directed_part(adjacency) > 0
    before = reachable(arrows)
    unknown = np.full(adjacency.shape, NOT_APPLICABLE, dtype=np.int8)
    has_open, has_loop = bool((adjacency & adjacency.T).any()), bool(before.diagonal().any())
    cpdag = unknown if has_open or has_loop else directed_part(dag_to_cpdag(arrows.astype(np.int8))).astype(np.int8)
    ancestors = unknown if has_open else before.astype(np.int8)
    labels = (torch.tensor(part.astype(np.int8))[None] for part in (arrows, cpdag, unknown, ancestors))
    marks_bmd = torch.zeros(plain.x_bmd.shape, dtype=torch.uint8)
    return AnswerBatch(plain.x_bmd, marks_bmd, plain.rows_b, plain.classes_bdd, *labels)


def read_pairs(folder: Path) -> list[LabelledTable]:
    """Labelled tables on disk: every folder below with data.csv (or .csv.gz) and graph.csv (source,target), and what
    bidirected.csv and targets.csv know beside these."""
    places = find_labelled(folder)
    tables = [read_labelled(place) for place in places]
    for table, place in zip(tables, places, strict=True):
        refuse_gaps(table, place)
    return tables


def _resampled(rng: torch.Generator, singles: Sequence[Batch | AnswerBatch]) -> Iterator[Batch | AnswerBatch]:
    """Equal shapes together, in random order, each table's rows drawn anew without replacement, nine in ten."""
    groups: dict[tuple[int, ...], list[Batch | AnswerBatch]] = defaultdict(list)
    for single in singles:
        groups[tuple(single.x_bmd.shape)].append(single)
    weights = torch.tensor([float(len(group)) for group in groups.values()])
    pools = list(groups.values())
    while pools:
        pool = pools[int(torch.multinomial(weights, 1, generator=rng))]
        picks = torch.randperm(len(pool), generator=rng)[:MOST_TABLES].tolist()
        some = [_draw_rows(rng, pool[i]) for i in picks]
        yield type(some[0])(*(torch.cat(parts) for parts in zip(*some, strict=True)))


def _draw_rows(rng: torch.Generator, single: Batch | AnswerBatch) -> Batch | AnswerBatch:
    n_rows, worth = single.x_bmd.shape[1], float(single.rows_b)
    keep = max(2, int(0.9 * n_rows))
    drawn = torch.randperm(n_rows, generator=rng)[:keep]
    rows_b = torch.tensor([count_rows(keep, n_rows, redundancy=n_rows / worth - 1)])
    if isinstance(single, AnswerBatch):
        return single._replace(x_bmd=single.x_bmd[:, drawn], marks_bmd=single.marks_bmd[:, drawn], rows_b=rows_b)
    return single._replace(x_bmd=single.x_bmd[:, drawn], rows_b=rows_b)


def _replay(loaded: LoadedWeights, seed: int, device: torch.device) -> Iterator[Batch | AnswerBatch]:
    """The stream the weights were trained on, in small batches: single tables where they are large, none beyond
    `LARGEST_REPLAYED`, or a CPU would wait minutes for a step."""
    stored = loaded.header.train or {}
    names = ("simulation", "variables", "samples", "stagger")
    known = {name: stored[name] for name in names if name in stored}
    plain = (TrainConfig.answers() if loaded.gives_answers else TrainConfig()).to_dict() | known
    small = {"seed": seed + 1, "cells_per_step": 24_000, "curriculum_start": 1.0, "burst": 4, "window": 4}
    largest = min(stored.get("largest_table") or LARGEST_REPLAYED, LARGEST_REPLAYED)
    small |= {"min_tables": 1, "largest_table": largest}
    try:
        config = TrainConfig.from_dict(plain | small)
    except ConfigError as error:
        raise ConfigError(
            f"{loaded.name} learnt from worlds that are not known here ({error}). Import the module that has them, or "
            "go without: ", Setting("replay", 0)
        ) from None  # fmt: skip
    stream = Stream(config, device)
    return (batch for batch in stream if isinstance(batch, Batch | AnswerBatch))


def _shape_of_rate(progress: float) -> float:
    return min(1.0, (progress + 1e-3) / 0.1, 2 * (1 - progress))
