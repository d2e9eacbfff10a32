"""`graphbam train` and `graphbam fine-tune` as a user meets them, at the smallest size."""

import json

import pytest
import torch
from typer.testing import CliRunner

from cases import each
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


def test_shares_of_worlds_are_part_of_the_run(tmp_path):
    words = ["train", "--tiny", "--steps", 1, "--device", "cpu", "-o", tmp_path, "--world", "levels=0.2"]
    assert run(*words, "--world", "counts=0").exit_code == 0
    worlds = load_weights(tmp_path / "weights.safetensors").header.train["simulation"]["worlds"]
    assert worlds["levels"] == 0.2
    assert worlds["counts"] == 0
    assert isinstance(run(*words, "--resume").exception, WeightsError)  # with shares of its own


@each(
    ("words", "error", "message"),
    [
        (["--network", "huge", "--steps", 1], ConfigError, "choose from"),
        (["--data", "real", "--steps", 1], ConfigError, "preset='real'"),
        (["--world", "levels", "--steps", 1], ConfigError, "such as levels=0.1"),
        (["--world", "stars=0.1", "--steps", 1], ConfigError, "world='stars' is unknown"),
        (["--world", "levels=0.6", "--world", "counts=0.6", "--steps", 1], ConfigError, "sum to 1.2"),
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


def test_fine_tuning_tells_how_long_it_takes_and_writes_weights(tiny_net, tmp_path):
    save_weights(tmp_path / "toy.safetensors", tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32))
    assert run("simulate", "--n-variables", 4, "--n-samples", 40, "-o", tmp_path / "tables" / "one").exit_code == 0
    words = [tmp_path / "tables", "-o", tmp_path / "mine.safetensors", "--weights", tmp_path / "toy.safetensors"]
    result = run("fine-tune", *words, "--steps", 3, "--replay", 0, "--device", "cpu")
    assert result.exit_code == 0, result.output
    first, *_, last = result.output.splitlines()
    assert first == "1 table, 3 steps; saved every minute; Ctrl-C ends early and keeps what was learnt"
    assert "step      1 of 3" in result.output
    assert "less than a second left" in result.output
    assert last.startswith(f"weights: {tmp_path / 'mine.safetensors'}")
    assert load_weights(tmp_path / "mine.safetensors").header.notes["fine_tuned"]["steps"] == 3
