"""Checkpoints: a run comes back bit by bit, and a foreign, damaged or half-written one does not."""

import dataclasses
import errno
import os

import pytest
import torch

from graphbam.errors import WeightsError
from graphbam.nn import weights
from graphbam.nn.weights import Progress, save_weights
from graphbam.training.config import TrainConfig
from graphbam.training.data import Batch
from graphbam.training.loop import differing_fields, load_checkpoint, new_network, save_checkpoint
from graphbam.training.objectives import EdgeTask
from graphbam.training.step import Stepper

CPU = torch.device("cpu")


def make_stepper(config, steps):
    settings = {"weight_decay": 0.1, "clip_norm": 1.0, "ema_decay": 0.9, "capture": False, "muon": True}
    stepper = Stepper(new_network(config, CPU), EdgeTask(), **settings)
    rng = torch.Generator().manual_seed(5)
    for _ in range(steps):
        classes = torch.randint(0, 3, (2, 4, 4), generator=rng).triu(1)
        stepper.step(Batch(torch.randn(2, 9, 4, generator=rng), classes + classes.mT, torch.full((2,), 9.0)), 1e-3)
    return stepper


def everything(stepper):
    tensors = [*stepper.parameters, *stepper.average]
    for parameter in stepper.parameters:
        tensors += [value for _, value in sorted(stepper.remembered(parameter).items())]
    return [tensor.detach().clone() for tensor in tensors]


def equal(tensors, others):
    return len(tensors) == len(others) and all(torch.equal(a, b) for a, b in zip(tensors, others, strict=True))


@pytest.mark.parametrize("steps", [0, 3])
def test_a_run_comes_back_bit_by_bit(tiny_training, tmp_path, steps):
    config, progress = tiny_training(), Progress(step=3, tables=18, seconds=1.5, skipped=1, history=({"step": 3.0},))
    stepper, fresh = make_stepper(config, steps), make_stepper(config, 0)
    save_checkpoint(tmp_path / "c", stepper, config, progress)
    found = load_checkpoint(tmp_path / "c", fresh, config)
    assert found == progress
    assert equal(everything(fresh), everything(stepper))
    if steps:
        assert not equal(fresh.average, fresh.parameters)
    again = torch.Generator().manual_seed(9)
    x_bmd, classes_bdd = torch.randn(2, 9, 4, generator=again), torch.zeros(2, 4, 4, dtype=torch.long)
    batch = Batch(x_bmd, classes_bdd, torch.full((2,), 9.0))
    for one in (stepper, fresh):
        one.step(batch, 1e-3)
    assert equal(everything(fresh), everything(stepper))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learning_rate": 9e-3}, r"learning_rate is 0\.003 in the file, 0\.009 here"),
        ({"seed": 4}, "seed is 0 in the file, 4 here"),
        ({"variables": (3, 4)}, r"variables is \[3, 4, 6\] in the file, \[3, 4\] here"),
    ],
)
def test_another_config_is_refused_by_field(tiny_training, tmp_path, change, words):
    config = tiny_training()
    save_checkpoint(tmp_path / "c", make_stepper(config, 1), config, Progress())
    other = tiny_training(**change)
    with pytest.raises(WeightsError, match=words):
        load_checkpoint(tmp_path / "c", make_stepper(other, 0), other)


def test_fields_of_the_network_and_the_world_are_named_too(tiny_training, tiny_config, tmp_path):
    config = tiny_training()
    save_checkpoint(tmp_path / "c", make_stepper(config, 1), config, Progress())
    other = tiny_training(
        network=tiny_config(bilinear_layers=1), simulation=dataclasses.replace(config.simulation, discrete=0.25)
    )
    stepper = make_stepper(other, 0)
    before = everything(stepper)
    with pytest.raises(WeightsError) as error:
        load_checkpoint(tmp_path / "c", stepper, other)
    assert "network.bilinear_layers is 2 in the file, 1 here" in str(error.value)
    assert "simulation.discrete" in str(error.value)
    assert equal(everything(stepper), before)


def test_a_field_only_one_side_knows_is_a_difference():
    assert differing_fields({"a": 1}, {"a": 1, "b": 2}) == ["b is None in the file, 2 here"]
    assert differing_fields({"a": {"b": 1}}, {"a": 3}) == ["a is {'b': 1} in the file, 3 here"]
    assert differing_fields({"a": [1, 2]}, {"a": [1, 2]}) == []


def test_a_weights_file_is_not_a_checkpoint(tiny_training, tmp_path):
    config = tiny_training()
    stepper = make_stepper(config, 1)
    save_weights(tmp_path / "w", stepper.network)
    with pytest.raises(WeightsError, match="holds weights, not a checkpoint; start from it with --start"):
        load_checkpoint(tmp_path / "w", stepper, config)


def test_a_checkpoint_is_not_a_weights_file(tiny_training, tmp_path):
    config = tiny_training()
    save_checkpoint(tmp_path / "c", make_stepper(config, 1), config, Progress())
    with pytest.raises(WeightsError, match="holds weights of kind 'checkpoint', but 'edges' is needed here"):
        weights.load_weights(tmp_path / "c")


def test_a_missing_checkpoint_is_said(tiny_training, tmp_path):
    config = tiny_training()
    with pytest.raises(WeightsError, match="none"):
        load_checkpoint(tmp_path / "none", make_stepper(config, 0), config)


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def killed(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", [(weights, "save_file"), (os, "replace"), (os, "fsync")])
@pytest.mark.parametrize("how", [no_space, killed])
def test_the_previous_checkpoint_survives_a_failed_save(monkeypatch, tiny_training, tmp_path, where, how):
    config = tiny_training()
    stepper = make_stepper(config, 1)
    save_checkpoint(tmp_path / "c", stepper, config, Progress(step=1))
    saved = everything(stepper)
    later = make_stepper(config, 2)
    monkeypatch.setattr(*where, how)
    with pytest.raises((OSError, KeyboardInterrupt)):
        save_checkpoint(tmp_path / "c", later, config, Progress(step=2))
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert load_checkpoint(tmp_path / "c", later, config) == Progress(step=1)
    assert equal(everything(later), saved)


def test_the_average_goes_into_a_network(tiny_training):
    stepper = make_stepper(tiny_training(), 2)
    assert equal(list(stepper.averaged().parameters()), stepper.average)


def test_the_learning_curve_stays_short():
    progress = Progress()
    for step in range(5000):
        progress = progress.note({"step": step})
        assert len(progress.history) <= 400
    assert progress.history[-1]["step"] == 4999
    steps = [entry["step"] for entry in progress.history]
    assert steps == sorted(steps)
    assert steps[0] == 0


def test_training_configs_round_trip(tiny_training):
    for config in (TrainConfig(), TrainConfig.paper(), tiny_training(seed=3)):
        assert TrainConfig.from_dict(config.to_dict()) == config
