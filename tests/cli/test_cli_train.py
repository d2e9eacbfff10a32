"""`graphbam train` and `graphbam fine-tune` as a user meets them, at the smallest size."""

import json

import pytest
import torch
from typer.testing import CliRunner

from graphbam.cli import app
from graphbam.errors import ConfigError, WeightsError
from graphbam.nn.weights import load_colliders, load_weights, save_weights


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=True)


def test_train_writes_weights_and_log_and_resumes(tmp_path):
    out = tmp_path / "run"
    first = run("train", "--tiny", "--steps", 3, "--device", "cpu", "-o", out)
    assert first.exit_code == 0, first.output
    assert load_weights(out / "weights.safetensors").header.progress.step == 3
    again = run("train", "--tiny", "--steps", 5, "--device", "cpu", "-o", out, "--resume")
    assert again.exit_code == 0, again.output
    assert json.loads((out / "log.jsonl").read_text().splitlines()[-1])["step"] == 5


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["--network", "huge", "--steps", 1], ConfigError, "choose from"),
        (["--data", "real", "--steps", 1], ConfigError, "preset='real'"),
        (["--tiny"], ConfigError, "needs an end"),
        (["--tiny", "--steps", 1, "--resume"], WeightsError, "checkpoint"),
    ],
)
def test_wrong_settings_are_one_clear_error(tmp_path, words, error, message):
    result = run("train", "-o", tmp_path / "run", "--device", "cpu", *words)
    assert isinstance(result.exception, error)
    assert message in str(result.exception)


@pytest.mark.parametrize("extra", [[], ["--edges", "toy"]])
def test_the_command_line_trains_colliders(tiny_net, tmp_path, extra):
    save_weights(tmp_path / "toy.safetensors", tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32))
    extra = [str(tmp_path / "toy.safetensors") if word == "toy" else word for word in extra]
    out = tmp_path / "run"
    options = ["--network", "collider", "--tiny", "--steps", "2", "--device", "cpu", "--out", str(out), *extra]
    result = CliRunner().invoke(app, ["train", *options])
    assert result.exit_code == 0, result.output
    stored = load_colliders(out / "weights.safetensors").header.train["settings"]
    assert stored["edges"] == (extra[1] if extra else None)


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--edges", "edges"], "is for collider networks"), (["--network", "colider"], "collider-paper")],
)
def test_the_command_line_explains_mistakes(tmp_path, options, words):
    result = CliRunner().invoke(app, ["train", "--steps", "1", "--out", str(tmp_path), *options])
    assert isinstance(result.exception, ConfigError)
    assert words in str(result.exception)
