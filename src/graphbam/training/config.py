"""Everything that decides a training run, frozen; it travels inside checkpoints and is compared on resume."""

from __future__ import annotations

import dataclasses
from typing import Any

from graphbam.benchmarks.baselines.avici_net import AviciNetConfig
from graphbam.errors import ConfigError
from graphbam.nn.edge_net import EdgeNetConfig
from graphbam.nn.immorality_net import ColliderNetConfig, network_config
from graphbam.simulation.config import SimulationConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class StructureConfig:
    """How structures for the collider network are made from simulated tables, and with which mistakes."""

    widths: tuple[int, ...] = (8, 16, 24)
    """Numbers of columns a batch may have; structures go into the smallest that holds them."""
    columns_a_structure: float = 2.0
    """Columns simulated for each structure that is needed, at a time."""

    edges: str | None = None
    """Edge weights, by name or path, whose mistakes are learnt from; None: all mistakes are invented."""
    edges_share: float = 0.7
    """Share of bursts with those mistakes; the others have invented ones."""
    moral_threshold: float = 0.1
    """Probability from which a pair counts as moral there."""

    flawless: float = 0.2
    """Share of tables without invented mistakes. In the others each rate is drawn between zero and those below."""
    missed: float = 0.6
    """Share of links that are missed."""
    confused: float = 0.15
    """Share of moral pairs that are also called links."""
    invented: float = 0.4
    """Links invented between unrelated variables, for each variable."""
    married: float = 0.3
    """Share of pairs, neither linked nor moral, that are called moral; few of them have a candidate."""
    married_links: float = 0.2
    """Share of linked pairs that are called moral."""

    def __post_init__(self) -> None:
        if not self.widths or self.widths[0] < 3 or list(self.widths) != sorted(set(self.widths)):
            raise ConfigError(f"widths={self.widths} must hold growing numbers of columns, all at least 3")
        if self.columns_a_structure <= 0 or self.invented < 0:
            raise ConfigError("columns_a_structure must be above zero, and invented cannot be negative")
        for name in ("edges_share", "moral_threshold", "flawless", "missed", "confused", "married", "married_links"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}={getattr(self, name)}, but it is a share between 0 and 1")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> StructureConfig:
        """Inverse of `dataclasses.asdict`; unknown names are refused."""
        if unknown := sorted(set(values) - {field.name for field in dataclasses.fields(cls)}):
            raise ConfigError(f"structures have unknown fields {', '.join(unknown)}; use a newer graphbam")
        return cls(**(values | {"widths": tuple(values["widths"])}))


@dataclasses.dataclass(frozen=True, kw_only=True)
class AcyclicityConfig:
    """How AVICI's penalty on cycles gains weight. The original's schedule of 300,000 steps, scaled to 30,000."""

    burn_in: int = 5_000
    """Steps without the penalty."""
    every: int = 50
    """Steps from one rise of its weight to the next."""
    rate: float = 1e-4
    """A rise, in multiples of the mean penalty since the last."""

    def __post_init__(self) -> None:
        if self.burn_in < 0 or self.every < 1 or self.rate < 0:
            found = f"burn_in={self.burn_in}, every={self.every}, rate={self.rate}"
            raise ConfigError(f"{found}, but every must be at least 1 and the others cannot be negative")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> AcyclicityConfig:
        """Inverse of `dataclasses.asdict`; unknown names are refused."""
        if unknown := sorted(set(values) - {field.name for field in dataclasses.fields(cls)}):
            raise ConfigError(f"acyclicity has unknown fields {', '.join(unknown)}; use a newer graphbam")
        return cls(**values)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Network, data, shapes and optimiser of a run. Budgets and devices are arguments of `train`, not part of it.

    Examples
    --------
    >>> config = TrainConfig(learning_rate=1e-3)
    >>> TrainConfig.from_dict(config.to_dict()) == config
    True
    """

    network: EdgeNetConfig | AviciNetConfig = dataclasses.field(default_factory=EdgeNetConfig)
    """The design; a `ColliderNetConfig` comes with `structures`, an `AviciNetConfig` with `acyclicity`."""
    simulation: SimulationConfig = dataclasses.field(default_factory=lambda: SimulationConfig.preset("broad"))
    structures: StructureConfig | None = None
    """How structures are made, for the collider network; None trains on whole tables."""
    acyclicity: AcyclicityConfig | None = None
    """How cycles are discouraged, for AVICI's network."""
    seed: int = 0

    variables: tuple[int, ...] = (3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 100, 120)
    """Numbers of variables a batch may have. A grid, not a range: a shape that comes back can be graph-captured."""
    samples: tuple[int, ...] = (20, 30, 50, 75, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1500)
    """Numbers of samples a batch may have."""
    stagger: int = 3
    """Of all pairs of grid positions (i, j) those with (i + j) divisible by this are used."""
    cells_per_step: int = 240_000
    """Cells (tables · samples · variables) of one optimiser step, on each process, where `min_tables` allows."""
    min_tables: int = 4
    """Fewest tables in one step, however large: a gradient of fewer is noise, and compilers treat one and two apart."""
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
            "min_tables",
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
        self._check_task()
        if self.cells_per_step < self.widths[0] * self.samples[0]:
            smallest = f"{self.samples[0]} × {self.widths[0]}"
            raise ConfigError(f"cells_per_step={self.cells_per_step} holds no table, not even the smallest, {smallest}")
        for name in ("ema_decay", "decay_share", "final_rate", "curriculum_start"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}={getattr(self, name)}, but it is a share between 0 and 1")

    def _check_task(self) -> None:
        """Some networks come with settings of their own; the largest structure fits the widest batch."""
        if isinstance(self.network, AviciNetConfig) != (self.acyclicity is not None):
            raise ConfigError("acyclicity belongs to AVICI's network: give an AviciNetConfig and acyclicity, or none")
        collider = isinstance(self.network, ColliderNetConfig)
        if collider != (self.structures is not None):
            raise ConfigError(
                "structures belong to a collider network: give a ColliderNetConfig and structures, or none"
            )
        if isinstance(self.network, ColliderNetConfig) and self.widths[-1] < self.network.max_width:
            found = f"widths end at {self.widths[-1]}, but a structure may have {self.network.max_width} columns"
            raise ConfigError(f"{found}; add a width, or lower max_candidates or max_neighbours of the network")

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of columns a batch may have: those of whole tables, or of structures."""
        return self.variables if self.structures is None else self.structures.widths

    @classmethod
    def collider(cls, **changes: Any) -> TrainConfig:
        """The collider network on structures of broad worlds; narrow structures, the most frequent, come most often."""
        grid: dict[str, Any] = {
            "variables": (5, 8, 10, 15, 20, 30, 40, 50, 70, 100),
            "samples": (30, 50, 75, 100, 150, 200, 300, 400, 500, 600, 800, 1000),
            "stagger": 1,
            "size_lean": -1.0,
        }
        steps = {"cells_per_step": 480_000, "max_tables": 256, "curriculum_start": 0.4, "curriculum_steps": 2_000}
        steps |= {"burst": 20, "window": 5}  # tables and the edge pass are launches mostly: larger bursts are cheaper
        parts = {"network": ColliderNetConfig(), "structures": StructureConfig()}
        return cls(**(grid | steps | parts | changes))

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

    @classmethod
    def avici(cls, **changes: Any) -> TrainConfig:
        """AVICI's network on equal terms with the paper's: the same tables and shapes, the same optimiser.

        That optimiser is AdamW, where the original has LAMB; the rate is lower than that of the paper's network, as
        this one has five times the weights.
        """
        parts = {"network": AviciNetConfig(), "acyclicity": AcyclicityConfig(), "learning_rate": 3e-4}
        return cls.paper(**(parts | changes))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a header."""
        flat = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        flat["network"] = dataclasses.asdict(self.network)
        flat["simulation"] = self.simulation.to_dict()
        if self.structures is not None:
            flat["structures"] = dataclasses.asdict(self.structures) | {"widths": list(self.structures.widths)}
        if self.acyclicity is None:
            del flat["acyclicity"]  # runs from before there was such a field are continued
        else:
            flat["acyclicity"] = dataclasses.asdict(self.acyclicity)
        return flat | {"variables": list(self.variables), "samples": list(self.samples)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainConfig:
        """Inverse of `to_dict`; unknown names are refused."""
        if unknown := sorted(set(values) - {field.name for field in dataclasses.fields(cls)}):
            raise ConfigError(f"training config has unknown fields {', '.join(unknown)}; use a newer graphbam")
        structures, acyclicity = values.get("structures"), values.get("acyclicity")
        parts = {
            "network": _read_network(values),
            "structures": None if structures is None else StructureConfig.from_dict(structures),
            "acyclicity": None if acyclicity is None else AcyclicityConfig.from_dict(acyclicity),
            "simulation": SimulationConfig.from_dict(values["simulation"]),
            "variables": tuple(values["variables"]),
            "samples": tuple(values["samples"]),
        }
        return cls(**(values | parts))


def _read_network(values: dict[str, Any]) -> EdgeNetConfig | AviciNetConfig:
    """Settings that belong to one network alone say which it is."""
    if values.get("acyclicity") is not None:
        return AviciNetConfig.from_dict(values["network"])
    return (EdgeNetConfig.from_dict if values.get("structures") is None else network_config)(values["network"])
