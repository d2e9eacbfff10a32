"""One optimiser step: forward, loss, backward, clip, AdamW, average; and its rate. On a GPU it is a CUDA graph.

A step on small tables is dozens of short kernels; launching them from Python takes longer than running them. Shapes
come from a small grid, so the second time a shape appears its whole step is captured and from then on replayed.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn

from graphbam.errors import ConfigError
from graphbam.nn.network import Network
from graphbam.simulation.values import Shape
from graphbam.training.config import Task, TrainConfig
from graphbam.training.data import AnyBatch, rebuild
from graphbam.training.muon import Muon

Shapes = tuple[torch.Size, ...]
"""Shapes of all tensors of a batch."""

WEIGHT, AVERAGE, RUNNING, MOMENT, TASK = "weight.", "average.", "running.", "optimizer.", "task."
"""Prefixes in a checkpoint: weights, averages as they would be shipped and as they run on, what the optimiser remembers
of each weight, what the task does."""

UNFILLED = "unfilled"
"""In a checkpoint, the share of the running averages that is still nothing (`Stepper.average`)."""


def learning_rate(config: TrainConfig, step: int, progress: float, *, decay: bool) -> float:
    """Rate at a step; `progress` is the share of the run's budget spent, `decay` whether this run ends low.

    It warms up, stays, and comes down only when asked, so that a run can be continued for ever.

    Examples
    --------
    >>> config = TrainConfig(learning_rate=1.0, warmup_steps=10, decay_share=0.5, final_rate=0.0)
    >>> [learning_rate(config, 4, 0.1, decay=True), learning_rate(config, 50, 0.75, decay=True)]
    [0.5, 0.5]
    >>> learning_rate(config, 50, 0.75, decay=False)
    1.0
    """
    warm = min(1.0, (step + 1) / max(config.warmup_steps, 1))
    if not decay or config.decay_share == 0:
        return config.learning_rate * warm
    left = min(1.0, max(0.0, 1 - progress) / config.decay_share)
    return config.learning_rate * warm * (config.final_rate + (1 - config.final_rate) * left)


@dataclasses.dataclass
class _Captured:
    """A recorded step and the tensors it reads."""

    graph: torch.cuda.CUDAGraph
    batch: AnyBatch


class Stepper:
    """Applies steps to a network and keeps the averaged weights; a non-finite gradient is counted and skipped."""

    def __init__(
        self,
        network: Network,
        task: Task,
        *,
        weight_decay: float,
        clip_norm: float,
        ema_decay: float,
        capture: bool,
        forward: nn.Module | None = None,
        muon: bool = False,
    ):
        self.task = task
        self.network, self.forward = network, forward or network
        self.clip_norm, self.ema_decay, self.capture = clip_norm, ema_decay, capture
        named = {name: p for name, p in network.named_parameters() if p.requires_grad}
        self.names, self.parameters = list(named), list(named.values())
        device = self.parameters[0].device
        self.task.state.to(device)
        self.rate = torch.zeros((), device=device)
        self.optimizers = self._optimizers(weight_decay, muon)
        self.running = [torch.zeros_like(p) for p in self.parameters]
        self.unfilled = 1.0
        self.totals = torch.zeros(len(self.task.reported) + 3, device=device)  # gradient norm, skipped, steps
        self.graphs: dict[Shapes, _Captured | None] = {}
        self.skips: dict[Shape, Tensor] = {}
        self.pool = torch.cuda.graph_pool_handle() if capture else None

    def _optimizers(self, weight_decay: float, muon: bool) -> list[torch.optim.Optimizer]:
        """AdamW, and Muon for matrices between channels if asked; vectors do not decay."""
        turned = [p for p in self.network.channel_matrices() if p.requires_grad] if muon else []
        if muon and not turned:
            raise ConfigError(f"{type(self.network).__name__} names no matrices for Muon; train with optimizer='adamw'")
        rest = {p for p in self.parameters if p.ndim >= 2} - set(turned)
        groups = [
            {"params": [p for p in self.parameters if p in rest], "weight_decay": weight_decay},
            {"params": [p for p in self.parameters if p.ndim < 2], "weight_decay": 0.0},
        ]
        capturable = self.rate.device.type == "cuda"
        adamw = torch.optim.AdamW(groups, lr=self.rate, betas=(0.9, 0.98), fused=True, capturable=capturable)
        return [adamw, Muon(turned, self.rate, weight_decay)] if turned else [adamw]

    def remembered(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """What the optimisers remember of a parameter."""
        return {key: value for optimizer in self.optimizers for key, value in optimizer.state[parameter].items()}

    def step(self, batch: AnyBatch, rate: float) -> None:
        """Learn from one batch at a learning rate."""
        self.rate.fill_(rate)
        self.unfilled *= self.ema_decay  # a step that is skipped moves the averages too, towards weights that stayed
        shapes = tuple(part.shape for part in batch)
        self.skips.setdefault(batch.shape, torch.zeros_like(self.rate))
        if not self.capture or shapes not in self.graphs:  # the first visit also compiles and allocates
            self._update(_copy(batch) if self.capture else batch)
            self.graphs[shapes] = None
            return
        captured = self.graphs[shapes] or self._record(batch)
        self.graphs[shapes] = captured
        for target, source in zip(captured.batch, batch, strict=True):
            target.copy_(source)
        captured.graph.replay()

    def statistics(self) -> dict[str, float]:
        """Means since the last call (skipped: a count); this waits for the device."""
        *sums, skipped, steps = self.totals.tolist()
        self.totals.zero_()
        good = max(steps - skipped, 1)
        means = {name: value / good for name, value in zip((*self.task.reported, "gradient_norm"), sums, strict=True)}
        return means | {"skipped": skipped, "steps": steps}

    def skipped_shapes(self) -> dict[str, int]:
        """Shapes that have met non-finite gradients, as "tables×samples×variables", and how often."""
        counts = {"×".join(map(str, shape)): int(count) for shape, count in self.skips.items()}
        return {shape: count for shape, count in counts.items() if count}

    def tensors(self) -> dict[str, Tensor]:
        """Everything that a run needs to go on: weights, averages, moments and what the task remembers."""
        tensors = {f"{TASK}{name}": value for name, value in self.task.state.state_dict().items()}
        tensors[UNFILLED] = torch.tensor(self.unfilled, dtype=torch.float64)
        places = zip(self.names, self.parameters, self.average, self.running, strict=True)
        for name, parameter, average, running in places:
            tensors |= {f"{WEIGHT}{name}": parameter, f"{AVERAGE}{name}": average, f"{RUNNING}{name}": running}
            tensors |= {f"{MOMENT}{key}.{name}": value for key, value in self.remembered(parameter).items()}
        return {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go on from what `tensors` gave; from a checkpoint without running averages, with its averages as they are."""
        remembered = {name.removeprefix(TASK): value for name, value in tensors.items() if name.startswith(TASK)}
        self.task.state.load_state_dict(remembered)
        self.unfilled = tensors[UNFILLED].item() if UNFILLED in tensors else 0.0
        kept = RUNNING if UNFILLED in tensors else AVERAGE
        for name, parameter, running in zip(self.names, self.parameters, self.running, strict=True):
            parameter.data.copy_(tensors[WEIGHT + name])
            running.copy_(tensors[kept + name])
        places = dict(zip(self.names, self.parameters, strict=True))
        owners = {p: o for o in self.optimizers for group in o.param_groups for p in group["params"]}
        for parameter, optimizer in owners.items():
            optimizer.state[parameter] = {}
        for full in (full for full in tensors if full.startswith(MOMENT)):
            key, name = full.removeprefix(MOMENT).split(".", 1)
            owners[places[name]].state[places[name]][key] = tensors[full].to(places[name].device)

    @property
    def average(self) -> list[Tensor]:
        """Weights after each step so far, averaged with `ema_decay`; before the first step, the weights as they are.

        Running averages begin at zero, so that the random first weights are in none of them, and are divided by what
        the steps have filled: 1 − decayⁿ after n of them.
        """
        if self.unfilled == 1:
            return [p.detach() for p in self.parameters]
        return [running / (1 - self.unfilled) for running in self.running]

    def start_average(self) -> None:
        """Let the averages begin at the weights as they are now, which stay in them with a share of decayⁿ.

        For weights that were trained already: after a few steps the mean of these alone would be noise around a start
        that is better known, and after many it is the same.
        """
        self.unfilled = 0.0
        for running, parameter in zip(self.running, self.parameters, strict=True):
            running.copy_(parameter.detach())

    def averaged(self) -> Network:
        """A network of the same design with the averaged weights, on the CPU."""
        network = self.network.empty(self.network.config)
        network.load_state_dict(dict(zip(self.names, self.average, strict=True)), strict=True)
        return network

    def _update(self, batch: AnyBatch) -> None:
        self._forget_gradients()
        goal, parts = self.task.objective(self.forward, batch)
        goal.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters, self.clip_norm, foreach=True)
        bad = (~torch.isfinite(norm)).float()
        for optimizer in self.optimizers:  # where this is set, they leave weights and moments as they were
            optimizer.found_inf = bad  # type: ignore[attr-defined]
            optimizer.step()
        torch._foreach_lerp_(self.running, list[Tensor](self.parameters), 1 - self.ema_decay)
        with torch.no_grad():
            values = torch.stack([*parts, norm])
            one = torch.ones_like(bad)
            self.skips[batch.shape] += bad
            self.totals += torch.cat([torch.where(bad > 0, 0.0, values), torch.stack([bad, one])])

    def _forget_gradients(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def _record(self, batch: AnyBatch) -> _Captured:
        still = _copy(batch)
        graph = torch.cuda.CUDAGraph()
        self._forget_gradients()
        torch.cuda.synchronize()
        stream = torch.cuda.current_stream()
        with torch.cuda.graph(graph, pool=self.pool, stream=stream, capture_error_mode="thread_local"):
            self._update(still)
        return _Captured(graph, still)


def _copy(batch: AnyBatch) -> AnyBatch:
    """Tensors of its own, for a first visit as for a recorded one.

    Those of a burst share memory. What is compiled for such is compiled again for others, and nothing can be compiled
    while a step is recorded.
    """
    return rebuild(batch, (part.clone() for part in batch))
