"""Training configs: checked when made, the same after a journey through JSON, and open to tasks of others."""

import dataclasses
import json

import pytest
import torch
from torch import nn

from cases import each
from graphbam.errors import ConfigError
from graphbam.nn.cost import Work
from graphbam.nn.layers import count_parts
from graphbam.nn.network import Config, Network
from graphbam.nn.weights import load_network
from graphbam.training import Task, TrainConfig, register_task
from graphbam.training.config import StructureConfig, find_task
from graphbam.training.data import Batch
from graphbam.training.objectives import EdgeTask
from standins import TINY_RUN
from toy_runs import log_of, run


def test_configs_round_trip_through_json(tiny_immoralities):
    for config in (TrainConfig.immoralities(), tiny_immoralities(settings={"edges": "edges"})):
        assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_configs_from_before_they_said_their_task_still_load(tiny_training, tiny_immoralities):
    for config in (tiny_training(), tiny_immoralities(settings={"edges": "edges"})):
        old = config.to_dict()
        del old["task"]
        old["structures"] = old.pop("settings")
        assert TrainConfig.from_dict(old) == config
    oldest = tiny_training().to_dict()
    del oldest["task"], oldest["settings"]
    assert TrainConfig.from_dict(oldest) == tiny_training()


def test_configs_from_before_tables_had_a_largest_size_have_none():
    for config in (TrainConfig(), TrainConfig.paper(), TrainConfig.immoralities()):
        old = config.to_dict()
        del old["largest_table"]
        assert TrainConfig.from_dict(old) == config
        assert config.largest_table is None


def test_samples_of_every_answer_divide_into_stretches_of_equal_length():
    config = TrainConfig.answers()
    longest = config.network.sample_stretch
    assert [m for m in config.samples if m % count_parts(m, longest)] == []
    assert {m // count_parts(m, longest) for m in config.samples if m > longest} == {75, 100, 120}


def test_impossible_configs_are_refused(tiny_training, tiny_immoralities):
    with pytest.raises(ConfigError, match="needs a network config of type EdgeNetConfig and settings of type NoneType"):
        tiny_training(settings=StructureConfig())
    with pytest.raises(ConfigError, match="but was given ImmoralityNetConfig and StructureConfig"):
        tiny_immoralities(task="edges")
    with pytest.raises(ConfigError, match=r"task='oracle' is unknown; choose from .*edges, immoralities"):
        tiny_training(task="oracle")
    with pytest.raises(ConfigError, match="widths end at 7, but a structure may have 14 columns"):
        tiny_immoralities(network={"max_neighbours": 10})
    with pytest.raises(ConfigError, match=r"missed=1\.5"):
        StructureConfig(missed=1.5)
    with pytest.raises(ConfigError, match="widths"):
        StructureConfig(widths=(8, 4))
    with pytest.raises(ConfigError, match="no field colour"):
        StructureConfig.from_dict({"widths": [8], "colour": 1})


@each(
    "change",
    [
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"burst": 0},
        {"ema_decay": 1.5},
        {"variables": ()},
        {"samples": (1, 8)},
        {"clip_norm": -1.0},
        {"largest_table": 0},
        {"largest_table": 23},  # the smallest has eight samples of three variables
    ],
)
def test_impossible_training_configs_are_refused(tiny_training, change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        tiny_training(**change)


def test_unknown_training_fields_are_refused(tiny_training):
    with pytest.raises(ConfigError, match="unknown fields momentum"):
        TrainConfig.from_dict(tiny_training().to_dict() | {"momentum": 0.9})


def test_configs_round_trip(tiny_training):
    for config in (TrainConfig(), TrainConfig.paper(), TrainConfig.answers(), tiny_training(seed=3, largest_table=99)):
        assert TrainConfig.from_dict(config.to_dict()) == config


# ── tasks of others ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass(frozen=True, kw_only=True)
class CountConfig(Config):
    """A network with nothing to choose but its width."""

    width: int = 3


class CountNet(Network):
    """How many pairs of a table are linked? From the mean of its squared entries."""

    kind = "counts"
    config_type = CountConfig

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.hidden, self.out = nn.Linear(1, config.width), nn.Linear(config.width, 1)

    def forward(self, x_bmd):
        return self.out(self.hidden(x_bmd.square().mean((1, 2))[:, None]).tanh())[:, 0]

    def compilable(self):
        return []


@register_task
class CountTask(EdgeTask):
    """The tables of the edge task, another question and another network."""

    name = "counts"
    network_type = CountNet
    reported = ("loss",)

    def objective(self, forward, batch):
        assert isinstance(batch, Batch)
        loss = (forward(batch.x_bmd) - (batch.classes_bdd == 1).float().mean((1, 2))).square().mean()
        return loss, (loss,)

    def work(self, config, shape):
        return Work(products=1.0, definite=0.0)


def test_anyone_may_bring_a_task(tmp_path):
    config = TrainConfig(**(TINY_RUN | {"task": "counts", "network": CountConfig(width=5), "optimizer": "adamw"}))
    assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    whole, parts = run(config, tmp_path / "whole", 6), run(config, tmp_path / "parts", 3)
    run(config, tmp_path / "parts", 6, resume=True)
    assert len(log_of(tmp_path / "whole")) == 6
    one, two = (load_network(path, types=[CountNet]) for path in (whole, parts))
    assert one.header.kind == "counts"
    assert one.network.config.width == 5
    assert all(torch.equal(a, b) for a, b in zip(one.network.parameters(), two.network.parameters(), strict=True))


def test_a_task_refuses_the_network_of_another():
    assert find_task("counts") is CountTask
    assert issubclass(CountTask, Task)
    with pytest.raises(ConfigError, match="task='counts' needs a network config of type CountConfig"):
        TrainConfig(task="counts")
