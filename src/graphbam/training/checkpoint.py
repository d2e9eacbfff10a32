"""A whole run in one safetensors file: weights, averages, optimiser moments, counters and the config."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from graphbam.errors import WeightsError
from graphbam.nn.weights import read_tensors, write_tensors
from graphbam.training.config import TrainConfig
from graphbam.training.step import Stepper

TASK = "task."
"""Prefix of what the task remembers; weights, averages and moments have their own."""


@dataclasses.dataclass
class Progress:
    """How far a run has come, over all its continuations."""

    step: int = 0
    tables: int = 0
    seconds: float = 0.0
    skipped: int = 0
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)
    """Coarse learning curve, one entry a report, thinned so that it stays short."""
    before: dict[str, float] = dataclasses.field(default_factory=dict)
    """Steps, tables and seconds of the runs that made the weights this one began with."""

    def inherit(self, header: dict[str, Any]) -> None:
        """Remember what weights with this header have behind them."""
        earlier = header.get("progress") or {}
        further = earlier.get("before") or {}
        self.before = {name: earlier.get(name, 0) + further.get(name, 0) for name in ("step", "tables", "seconds")}

    def note(self, entry: dict[str, float], most: int = 400) -> None:
        """Add a point to the curve; every second one is dropped when it gets long."""
        self.history.append(entry)
        if len(self.history) > most:
            self.history = self.history[::2]


def save_checkpoint(path: Path, stepper: Stepper, config: TrainConfig, progress: Progress) -> None:
    """Write everything a run needs to go on, atomically."""
    header = {"kind": "checkpoint", "train": config.to_dict(), "progress": dataclasses.asdict(progress)}
    write_tensors(path, _collect(stepper), header)


def load_checkpoint(path: Path, stepper: Stepper, config: TrainConfig) -> Progress:
    """Restore a run in place; a checkpoint of another config is refused with the differing fields named."""
    tensors, header = read_tensors(path)
    if header.get("kind") != "checkpoint":
        raise WeightsError(f"{path} holds weights, not a checkpoint; start from it with --start instead of --resume")
    if differing := differing_fields(header["train"], config.to_dict()):
        raise WeightsError(f"{path} belongs to another run: {'; '.join(differing)}. Use its config or another folder")
    _restore(stepper, tensors)
    return Progress(**header["progress"])


def differing_fields(stored: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    """Names of the fields in which two nested configs differ, with both values.

    Examples
    --------
    >>> differing_fields({"a": 1, "n": {"c": 2}}, {"a": 1, "n": {"c": 3}})
    ['n.c is 2 in the file, 3 here']
    """
    differing = []
    for name in sorted(stored.keys() | wanted.keys()):
        old, new = stored.get(name), wanted.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            differing += differing_fields(old, new, f"{prefix}{name}.")
        elif old != new:
            differing.append(f"{prefix}{name} is {old!r} in the file, {new!r} here")
    return differing


def average_into(network: nn.Module, stepper: Stepper) -> nn.Module:
    """Copy the averaged weights into a network of the same design."""
    names = [name for name, p in stepper.network.named_parameters() if p.requires_grad]
    network.load_state_dict(dict(zip(names, stepper.average, strict=True)), strict=True)
    return network


def _collect(stepper: Stepper) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    names = [name for name, p in stepper.network.named_parameters() if p.requires_grad]
    for name, parameter, average in zip(names, stepper.parameters, stepper.average, strict=True):
        state = stepper.optimizer.state[parameter]
        tensors[f"weight.{name}"], tensors[f"average.{name}"] = parameter, average
        tensors |= {f"{key}.{name}": value for key, value in state.items()}
    tensors |= {f"{TASK}{name}": value for name, value in stepper.task.state.state_dict().items()}
    return {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}


def _restore(stepper: Stepper, tensors: dict[str, Tensor]) -> None:
    remembered = {name.removeprefix(TASK): value for name, value in tensors.items() if name.startswith(TASK)}
    stepper.task.state.load_state_dict(remembered)
    names = [name for name, p in stepper.network.named_parameters() if p.requires_grad]
    for name, parameter, average in zip(names, stepper.parameters, stepper.average, strict=True):
        parameter.data.copy_(tensors[f"weight.{name}"])
        average.copy_(tensors[f"average.{name}"])
        moments = {
            key: tensors[f"{key}.{name}"] for key in ("step", "exp_avg", "exp_avg_sq") if f"{key}.{name}" in tensors
        }
        stepper.optimizer.state[parameter] = {key: value.to(parameter.device) for key, value in moments.items()}
