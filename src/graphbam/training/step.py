"""One optimiser step: forward, loss, backward, clip, AdamW, average. On a GPU it is replayed as a CUDA graph.

A step on small tables is dozens of short kernels; launching them from Python takes longer than running them. Shapes
come from a small grid, so the second time a shape appears its whole step is captured and from then on replayed.
"""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn

from graphbam.training.batch import AnyBatch, Shape
from graphbam.training.objectives import EdgeTask, Task

Shapes = tuple[torch.Size, ...]
"""Shapes of all tensors of a batch."""


@dataclasses.dataclass
class _Captured:
    """A recorded step and the tensors it reads."""

    graph: torch.cuda.CUDAGraph
    batch: AnyBatch


class Stepper:
    """Applies steps to a network and keeps the averaged weights; a non-finite gradient is counted and skipped."""

    def __init__(
        self,
        network: nn.Module,
        *,
        weight_decay: float,
        clip_norm: float,
        ema_decay: float,
        capture: bool,
        forward: nn.Module | None = None,
        task: Task | None = None,
    ):
        self.task: Task = task or EdgeTask()
        self.network, self.forward = network, forward or network
        self.clip_norm, self.ema_decay, self.capture = clip_norm, ema_decay, capture
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        device = self.parameters[0].device
        self.task.state.to(device)
        self.rate = torch.zeros((), device=device)
        matrices = [p for p in self.parameters if p.ndim >= 2]
        vectors = [p for p in self.parameters if p.ndim < 2]
        groups = [
            {"params": matrices, "weight_decay": weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(
            groups, lr=self.rate, betas=(0.9, 0.98), fused=True, capturable=device.type == "cuda"
        )
        self.average = [p.detach().clone() for p in self.parameters]
        self.totals = torch.zeros(len(self.task.reported) + 3, device=device)  # gradient norm, skipped, steps
        self.graphs: dict[Shapes, _Captured | None] = {}
        self.skips: dict[Shape, Tensor] = {}
        self.pool = torch.cuda.graph_pool_handle() if capture else None

    def step(self, batch: AnyBatch, rate: float) -> None:
        """Learn from one batch at a learning rate."""
        self.rate.fill_(rate)
        shapes = tuple(part.shape for part in batch)
        self.skips.setdefault(batch.shape, torch.zeros_like(self.rate))
        if not self.capture or shapes not in self.graphs:  # the first visit also compiles and allocates
            self._update(batch)
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

    def _update(self, batch: AnyBatch) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        goal, parts = self.task.objective(self.forward, batch)
        goal.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters, self.clip_norm, foreach=True)
        bad = (~torch.isfinite(norm)).float()
        # where set, the fused kernel leaves weights and moments as they were
        self.optimizer.found_inf = bad  # type: ignore[attr-defined]
        self.optimizer.step()
        torch._foreach_lerp_(self.average, list[Tensor](self.parameters), 1 - self.ema_decay)
        with torch.no_grad():
            values = torch.stack([*parts, norm])
            one = torch.ones_like(bad)
            self.skips[batch.shape] += bad
            self.totals += torch.cat([torch.where(bad > 0, 0.0, values), torch.stack([bad, one])])

    def _record(self, batch: AnyBatch) -> _Captured:
        still = type(batch)(*(part.clone() for part in batch))
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        stream = torch.cuda.current_stream()
        with torch.cuda.graph(graph, pool=self.pool, stream=stream, capture_error_mode="thread_local"):
            self._update(still)
        return _Captured(graph, still)
