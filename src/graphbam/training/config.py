"""Everything that decides a training run, frozen; it travels inside checkpoints and is compared on resume.

A config says its task: what is learnt, by which kind of network, from which batches, with which loss. The engine
(`loop`, `step`, `data`) knows tasks by their `Task` class alone, and anyone can register one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from graphbam.directions.immoralities import MORAL_FROM
from graphbam.errors import ConfigError
from graphbam.nn.cost import Work
from graphbam.nn.edge_net import EdgeNetConfig
from graphbam.nn.immorality_net import MOST_ROWS, ImmoralityNetConfig
from graphbam.nn.network import Config, Network
from graphbam.simulation.config import SimulationConfig

if TYPE_CHECKING:
    from graphbam.simulation.values import Shape
    from graphbam.training.data import AnyBatch

Forward = Callable[..., Tensor]

OPTIMIZERS = ("muon", "adamw")
"""Names of optimisers."""


class Objective(NamedTuple):
    """What is minimised, and what is reported."""

    goal: Tensor
    parts: tuple[Tensor, ...]


class Task:
    """One thing to learn: a kind of network, its batches and its loss. The engine knows the rest."""

    name: ClassVar[str]
    """What configs call it."""
    network_type: ClassVar[type[Network]]
    settings_type: ClassVar[type[Config] | None] = None
    """Settings that the task alone needs, if it does."""
    reported: ClassVar[tuple[str, ...]]
    """Names of the parts of an objective; the first is the loss."""

    def __init__(self, settings: Any = None):
        self.settings = settings
        self.state = nn.Module()
        """What the task remembers from step to step, as buffers; part of every checkpoint."""

    @classmethod
    def check(cls, config: TrainConfig) -> None:
        """Refuse a config whose network or settings belong to another task."""
        wanted = [cls.network_type.config_type, cls.settings_type or type(None)]
        found = [type(config.network), type(config.settings)]
        if found != wanted:
            raise ConfigError(
                f"task={cls.name!r} needs a network config of type {wanted[0].__name__} and settings of type "
                f"{wanted[1].__name__}, but was given {found[0].__name__} and {found[1].__name__}"
            )

    @staticmethod
    def widths(config: TrainConfig) -> tuple[int, ...]:
        """Numbers of columns a batch may have."""
        return config.variables

    def workers(self, cores: int) -> int:
        """Processes that simulate on the CPU while a GPU trains."""
        return max(cores - 2, 0)

    def burst(self, rng: torch.Generator, config: TrainConfig, shape: Shape, device: torch.device) -> AnyBatch:
        """`burst` batches of one shape, still in one piece."""
        raise NotImplementedError

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """Loss of one batch."""
        raise NotImplementedError

    def example(self, device: torch.device) -> tuple[Tensor, ...]:
        """Inputs of typical size and unrelated dimensions, to compile with."""
        raise NotImplementedError

    def work(self, config: TrainConfig, shape: Shape) -> Work:
        """What a forward pass of one batch costs."""
        raise NotImplementedError


_TASKS: dict[str, type[Task]] = {}


def register_task(task: type[Task]) -> type[Task]:
    """Let configs name a task; a decorator for a class. A name that is taken is replaced."""
    _TASKS[task.name] = task
    return task


def find_task(name: str) -> type[Task]:
    """The task of this name."""
    if name not in _TASKS:
        known = ", ".join(sorted(_TASKS))
        raise ConfigError(f"task={name!r} is unknown; choose from {known}, or import the module that registers it")
    return _TASKS[name]


def task_of(config: TrainConfig) -> Task:
    """A fresh task, as a config describes it."""
    return find_task(config.task)(config.settings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StructureConfig(Config):
    """How structures for the collider network are made from simulated tables, and with which mistakes."""

    widths: tuple[int, ...] = (8, 16, 24)
    """Numbers of columns a batch may have; structures go into the smallest that holds them."""
    columns_a_structure: float = 2.0
    """Columns simulated for each structure that is needed, at a time."""

    edges: str | None = None
    """Edge weights, by name or path, whose mistakes are learnt from; None: all mistakes are invented."""
    edges_share: float = 0.7
    """Share of bursts with those mistakes; the others have invented ones."""
    moral_threshold: float = MORAL_FROM
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Network, data, shapes and optimiser of a run. Budgets and devices are arguments of `train`, not part of it.

    Examples
    --------
    >>> config = TrainConfig(learning_rate=1e-3)
    >>> TrainConfig.from_dict(config.to_dict()) == config
    True
    """

    task: str = "edges"
    """What is learnt: "edges", "answers", "immoralities", or the name of a registered `Task`."""
    network: Config = dataclasses.field(default_factory=EdgeNetConfig)
    """The design, a config of the task's kind of network."""
    settings: Config | None = None
    """What the task alone needs: a `StructureConfig` for immoralities, nothing for edges."""
    simulation: SimulationConfig = dataclasses.field(default_factory=lambda: SimulationConfig.preset("broad"))
    """The worlds that tables come from."""
    seed: int = 0
    """Decides first weights and all data."""

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
    largest_table: int | None = None
    """Cells of the largest table: shapes of the grid beyond it are left out. None: none is."""
    pairs_per_step: int | None = None
    """Most pairs of variables (tables · variables²) of one optimiser step, where `min_tables` allows: of tables with
    more variables than samples, pairs and not cells are what takes time. None: no limit."""
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

    optimizer: str = "muon"
    """For the matrices between channels: "muon" or "adamw". AdamW keeps all other weights in either case."""
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
            if not getattr(self, name) > 0:  # nor is NaN
                raise ConfigError(f"{name}={getattr(self, name)}, but it must be above zero")
        if not self.variables or min(self.variables) < 2 or not self.samples or min(self.samples) < 2:
            raise ConfigError("variables and samples must hold at least one size each, all at least 2")
        if self.optimizer not in OPTIMIZERS:
            raise ConfigError(f"optimizer={self.optimizer!r} is unknown; choose from {', '.join(OPTIMIZERS)}")
        find_task(self.task).check(self)
        if self.pairs_per_step is not None and self.pairs_per_step <= 0:
            raise ConfigError(f"pairs_per_step={self.pairs_per_step}, but it must be above zero")
        for name in ("cells_per_step", "largest_table"):
            most = getattr(self, name)
            if most is not None and most < self.widths[0] * self.samples[0]:
                smallest = f"{self.samples[0]} × {self.widths[0]}"
                raise ConfigError(f"{name}={most} holds no table, not even the smallest, {smallest}")
        for name in ("ema_decay", "decay_share", "final_rate", "curriculum_start"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}={getattr(self, name)}, but it is a share between 0 and 1")

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of columns a batch may have: those of whole tables, or of structures."""
        return find_task(self.task).widths(self)

    @classmethod
    def immoralities(cls, **changes: Any) -> Self:
        """The second network on structures of broad worlds; narrow structures, the most frequent, come most often."""
        grid: dict[str, Any] = {
            "variables": (5, 8, 10, 15, 20, 30, 40, 50, 70, 100),
            "samples": (30, 50, 75, 100, 150, 200, 300, 400, 500, 600, 800, MOST_ROWS),
            "stagger": 1,
            "size_lean": -1.0,
        }
        steps = {"cells_per_step": 480_000, "max_tables": 256, "curriculum_start": 0.4, "curriculum_steps": 2_000}
        steps |= {"burst": 20, "window": 5}  # tables and the edge pass are launches mostly: larger bursts are cheaper
        parts = {"task": "immoralities", "network": ImmoralityNetConfig(), "settings": StructureConfig()}
        return cls(**(grid | steps | parts | {"optimizer": "adamw"} | changes))

    @classmethod
    def answers(cls, **changes: Any) -> Self:
        """Every answer in one pass: classes, directions, hidden causes and ancestors, from tables with marked cells.

        Pairs of variables are tables too, and few variables may have thousands of samples. Rate and shapes suit a run
        that begins from weights of the classes. Samples see each other in stretches, which all lengths divide into:
        stretches of equal length cost no copy, and compile once.
        """
        parts: dict[str, Any] = {"task": "answers", "network": EdgeNetConfig.every_answer()}
        samples = (20, 30, 50, 75, 100, 150, 200, 300, 480, 600, 720, 960, 1200, 1440, 3000, 7200)
        grid: dict[str, Any] = {"variables": (2, 2, *cls.variables), "samples": samples}  # pairs come twice as often
        grid |= {"max_tables": 160, "largest_table": 180_000, "pairs_per_step": 100_000}
        steps = {"learning_rate": 1e-3, "curriculum_start": 1.0, "decay_share": 0.5, "size_lean": 0.25}
        return cls(**(parts | grid | steps | changes))

    @classmethod
    def paper(cls, **changes: Any) -> Self:
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
            "optimizer": "adamw",
        }
        return cls(**(grid | parts | {"learning_rate": 1e-3, "cells_per_step": 120_000} | changes))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a header."""
        flat = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        flat |= {"network": self.network.to_dict(), "simulation": self.simulation.to_dict()}
        flat["settings"] = None if self.settings is None else self.settings.to_dict()
        return flat | {"variables": list(self.variables), "samples": list(self.samples)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; unknown names are refused."""
        values = _name_task(values)
        if unknown := sorted(set(values) - {field.name for field in dataclasses.fields(cls)}):
            raise ConfigError(f"training config has unknown fields {', '.join(unknown)}; use a newer graphbam")
        task = find_task(values.get("task", "edges"))
        settings = values.get("settings")
        parts = {
            "network": task.network_type.config_type.from_dict(values["network"]),
            "settings": task.settings_type.from_dict(settings) if settings and task.settings_type else settings,
            "simulation": SimulationConfig.from_dict(values["simulation"]),
            "variables": tuple(values["variables"]),
            "samples": tuple(values["samples"]),
        }
        return cls(**(values | parts))


def _name_task(values: Mapping[str, Any]) -> dict[str, Any]:
    """Headers from before configs said their task: those with structures learn immoralities. All were AdamW's."""
    renewed = {"optimizer": "adamw"} | dict(values)
    if "structures" in renewed:
        renewed["settings"] = renewed.pop("structures")
        renewed["task"] = "edges" if renewed["settings"] is None else "immoralities"
    return renewed
