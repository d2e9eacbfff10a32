"""An endless stream of simulated batches, made on the fly and never reused.

Batch k depends on the seed, the rank and k alone: a run that stops and resumes sees exactly what an uninterrupted one
would have seen. Batches come in windows (a few shapes, a few batches of each, shuffled), because simulating several
batches of one shape at once is far cheaper than one by one. The next windows are prepared while this one is used.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.util import Finalize
from typing import NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

from graphbam.nn.weights import ROWS_A_CHUNK
from graphbam.training.batch import AnyBatch, Batch, Shape
from graphbam.training.config import TrainConfig
from graphbam.training.objectives import task_of

__all__ = ["Batch", "Shape", "Stream", "Window", "allowed_shapes", "draw_shapes", "mix_seed", "shape_grid"]


def shape_grid(config: TrainConfig) -> list[Shape]:
    """All shapes of a run: a staggered grid of widths × samples, each with as many tables as the cells allow."""
    grid = []
    for i, d in enumerate(config.widths):
        for j, m in enumerate(config.samples):
            n_tables = max(config.min_tables, config.cells_per_step // (m * d))
            if (i + j) % config.stagger == 0:
                grid.append(Shape(min(n_tables, config.max_tables, ROWS_A_CHUNK // m), m, d))
    return grid


def allowed_shapes(config: TrainConfig, step: int) -> list[Shape]:
    """Shapes the curriculum allows at a step: the reach in both directions grows linearly to the whole grid."""
    reach = config.curriculum_start + (1 - config.curriculum_start) * step / max(config.curriculum_steps, 1)
    d_limit = config.widths[0] + reach * (config.widths[-1] - config.widths[0])
    m_limit = config.samples[0] + reach * (config.samples[-1] - config.samples[0])
    grid = shape_grid(config)
    return [shape for shape in grid if shape.n_variables <= d_limit and shape.n_samples <= m_limit] or grid[:1]


def draw_shapes(rng: torch.Generator, config: TrainConfig, step: int) -> list[Shape]:
    """Shapes of one window."""
    shapes = allowed_shapes(config, step)
    weights = torch.tensor([shape.n_variables**config.size_lean for shape in shapes], dtype=torch.float64)
    picks = torch.multinomial(weights, config.window, replacement=True, generator=rng)
    return [shapes[i] for i in picks.tolist()]


class Window(NamedTuple):
    """Bursts as they were simulated, and the order in which their batches are to be used."""

    bursts: list[AnyBatch]
    order: list[int]

    def batches(self, burst: int) -> list[AnyBatch]:
        """The bursts cut into batches, in order."""
        cuts = [(type(whole), zip(*(part.chunk(burst) for part in whole), strict=True)) for whole in self.bursts]
        parts = [kind(*cut) for kind, pieces in cuts for cut in pieces]
        return [parts[i] for i in self.order]


def simulate_window(config: TrainConfig, index: int, device: torch.device, rank: int = 0) -> Window:
    """Window `index` of a run. Ranks share shapes and order, not tables."""
    size = config.window * config.burst
    plan = torch.Generator().manual_seed(mix_seed(config.seed, index))
    shapes = draw_shapes(plan, config, index * size)
    order = torch.randperm(size, generator=plan).tolist()
    tables = torch.Generator().manual_seed(mix_seed(config.seed, index, rank + 1))
    task = task_of(config)
    return Window([task.burst(tables, config, shape, device) for shape in shapes], order)


def mix_seed(*parts: int) -> int:
    """One 63-bit seed from several integers, by a multiplicative hash; neighbours land far apart."""
    state = 0x9E3779B97F4A7C15
    for part in parts:
        state = ((state ^ (part + 0x632BE59BD9B4E019)) * 0xD1342543DE82EF95) % (1 << 64)
        state ^= state >> 29
    return state >> 1


class Windows(Dataset[Window]):
    """Windows by index, simulated on the CPU: what a `DataLoader` spreads over worker processes."""

    def __init__(self, config: TrainConfig, rank: int):
        self.config, self.rank = config, rank

    def __getitem__(self, index: int) -> Window:
        return simulate_window(self.config, index, torch.device("cpu"), self.rank)


def _leave_at_once(worker: int) -> None:
    """End a worker without taking its interpreter down: a thread that is still sending tables would abort it."""
    Finalize(None, os._exit, args=(0,), exitpriority=-100)  # after everything else that is done at the end


class Stream:
    """Iterate over batches from any step on.

    With workers, that many processes simulate on the CPU, ahead of the device and out of its way. Without, one thread
    simulates on the training device itself.
    """

    def __init__(
        self, config: TrainConfig, device: torch.device, *, rank: int = 0, first_step: int = 0, workers: int = 0
    ):
        self.config, self.device, self.rank = config, device, rank
        self.first_step, self.workers = first_step, workers

    def __iter__(self) -> Iterator[AnyBatch]:
        first, skip = divmod(self.first_step, self.config.window * self.config.burst)
        for window in self._from_workers(first) if self.workers else self._from_thread(first):
            bursts = [
                type(burst)(*(part.to(self.device, non_blocking=True) for part in burst)) for burst in window.bursts
            ]
            for batch in Window(bursts, window.order).batches(self.config.burst)[skip:]:
                yield batch.ready()
            skip = 0

    def _from_workers(self, first: int) -> Iterator[Window]:
        loader = DataLoader(
            Windows(self.config, self.rank),
            batch_size=None,
            sampler=itertools.count(first),
            num_workers=self.workers,
            prefetch_factor=2,
            pin_memory=self.device.type == "cuda",
            multiprocessing_context="spawn",
            worker_init_fn=_leave_at_once,
        )
        yield from loader

    def _from_thread(self, first: int) -> Iterator[Window]:
        consumer = torch.cuda.current_stream(self.device) if self.device.type == "cuda" else None
        side = None if consumer is None else torch.cuda.Stream(self.device)  # one for all: the 32nd new one would be
        assert side is None or side != consumer  # the consumer's again, and it may be capturing a graph
        with ThreadPoolExecutor(1, thread_name_prefix="simulation") as pool:
            pending = pool.submit(self._simulate, first, consumer, side)
            for index in itertools.count(first + 1):
                window, ready = pending.result()
                pending = pool.submit(self._simulate, index, consumer, side)
                if consumer is not None and ready is not None:
                    consumer.wait_event(ready)
                yield window

    def _simulate(
        self, index: int, consumer: torch.cuda.Stream | None, side: torch.cuda.Stream | None
    ) -> tuple[Window, torch.cuda.Event | None]:
        """A window, and on a GPU the event after which it is ready: it is made on the CUDA stream `side`."""
        if consumer is None or side is None:
            return simulate_window(self.config, index, self.device, self.rank), None
        with torch.cuda.device(self.device), torch.cuda.stream(side):
            window = simulate_window(self.config, index, self.device, self.rank)
            ready = torch.cuda.Event()
            ready.record(side)
        for part in itertools.chain(*window.bursts):  # not to be reused while the training stream reads it
            part.record_stream(consumer)
        return window, ready
