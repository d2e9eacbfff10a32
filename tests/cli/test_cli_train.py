"""`graphbam train` and `graphbam fine-tune` as a user meets them, at the smallest size."""

import json

import pytest
from typer.testing import CliRunner

from graphbam.cli import app
from graphbam.errors import ConfigError, WeightsError
from graphbam.nn.weights import load_weights


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
