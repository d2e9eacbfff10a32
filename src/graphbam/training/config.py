"""Everything that decides a training run, frozen; it travels inside checkpoints and is compared on resume."""

from __future__ import annotations

import dataclasses
from typing import Any

from graphbam.errors import ConfigError
from graphbam.network import EdgeNetConfig
from graphbam.simulation.config import SimulationConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Network, data, shapes and optimiser of a run. Budgets and devices are arguments of `train`, not part of it.

    Examples
    --------
    >>> config = TrainConfig(learning_rate=1e-3)
    >>> TrainConfig.from_dict(config.to_dict()) == config
    True
    """

    network: EdgeNetConfig = dataclasses.field(default_factory=EdgeNetConfig)
    simulation: SimulationConfig = dataclasses.field(default_factory=lambda: SimulationConfig.preset("broad"))
    seed: int = 0

    variables: tuple[int, ...] = (3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 100, 120)
    """Numbers of variables a batch may have. A grid, not a range: a shape that comes back can be graph-captured."""
    samples: tuple[int, ...] = (20, 30, 50, 75, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1500)
    """Numbers of samples a batch may have."""
    stagger: int = 3
    """Of all pairs of grid positions (i, j) those with (i + j) divisible by this are used."""
    cells_per_step: int = 240_000
    """Cells (tables · samples · variables) of one optimiser step, on each process."""
    max_tables: int = 96
    """Most tables in one step."""
    size_lean: float = 0.35
    """A number of variables d is drawn with weight d to this power."""

    curriculum_start: float = 0.15
    """Share of the largest shape that the first steps may use."""
    curriculum_steps: int = 8_000
    """Steps until the whole grid is used."""
    burst: int = 6
    """Batches of one shape simulated at once."""
    window: int = 6
    """Shapes simulated together and then visited in mixed order."""

    learning_rate: float = 1.5e-3
    warmup_steps: int = 400
    weight_decay: float = 1e-2
    clip_norm: float = 1.0
    ema_decay: float = 0.999
    decay_share: float = 0.25
    """Share of a run's budget over which the rate falls to `final_rate`, when decay is asked for."""
    final_rate: float = 0.02
    """Learning rate at the end of a decay, as a share of the peak."""

    def __post_init__(self) -> None:
        for name in (
            "cells_per_step",
            "max_tables",
            "burst",
            "window",
            "stagger",
            "learning_rate",
            "clip_norm",
        ):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name}={getattr(self, name)}, but it must be above zero")
        if not self.variables or min(self.variables) < 2 or not self.samples or min(self.samples) < 2:
            raise ConfigError("variables and samples must hold at least one size each, all at least 2")
        if self.cells_per_step < self.variables[0] * self.samples[0]:
            smallest = f"{self.samples[0]} × {self.variables[0]}"
            raise ConfigError(f"cells_per_step={self.cells_per_step} holds no table, not even the smallest, {smallest}")
        for name in ("ema_decay", "decay_share", "final_rate", "curriculum_start"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}={getattr(self, name)}, but it is a share between 0 and 1")

    @classmethod
    def paper(cls, **changes: Any) -> TrainConfig:
        """The paper's network on the paper's data and shapes, on a grid of eleven sizes each way."""
        grid: dict[str, Any] = {
            "variables": tuple(range(10, 101, 10)),
            "samples": (50, *range(100, 1001, 100)),
            "stagger": 2,
        }
        parts = {
            "network": EdgeNetConfig.paper(),
            "simulation": SimulationConfig.preset("paper"),
            "size_lean": 0.0,
        }
        return cls(**(grid | parts | {"learning_rate": 1e-3, "cells_per_step": 120_000} | changes))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a header."""
        flat = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        flat["network"] = dataclasses.asdict(self.network)
        flat["simulation"] = self.simulation.to_dict()
        return flat | {"variables": list(self.variables), "samples": list(self.samples)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainConfig:
        """Inverse of `to_dict`; unknown names are refused."""
        if unknown := sorted(set(values) - {field.name for field in dataclasses.fields(cls)}):
            raise ConfigError(f"training config has unknown fields {', '.join(unknown)}; use a newer graphbam")
        parts = {
            "network": EdgeNetConfig.from_dict(values["network"]),
            "simulation": SimulationConfig.from_dict(values["simulation"]),
            "variables": tuple(values["variables"]),
            "samples": tuple(values["samples"]),
        }
        return cls(**(values | parts))
