"""Settings are said once: `infer`, `infer_many`, `BAM` and the command line take the same ones."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import numpy as np
import pytest
import typer.main

import graphbam as gb
from cases import each
from graphbam.cli import app
from graphbam.errors import ConfigError
from graphbam.inference.settings import FLAT, PARTS, FlatSettings, InferConfig, Settings, flat_fields, read_settings
from standins import PartialCorrelation

X_MD = np.random.default_rng(0).normal(size=(60, 4)).cumsum(axis=1)


def test_type_checkers_know_every_setting():
    assert {"weights", *FlatSettings.__annotations__} == set(FLAT)
    assert set(Settings.__annotations__) == set(FlatSettings.__annotations__) | set(PARTS) | {"prepare"}


@each("function", [gb.infer, gb.infer_many, gb.BAM])
def test_help_shows_every_setting_with_its_default(function):
    shown = {name: p.default for name, p in inspect.signature(function).parameters.items() if name in FLAT}
    assert shown == FLAT


def test_the_command_line_offers_every_setting():
    command = typer.main.get_command(app).commands["infer"]
    options = {option.name: option for option in command.params}
    assert set(FLAT) <= set(options)
    for field in flat_fields():
        if field.name == "knowledge":
            continue
        assert options[field.name].help.startswith(field.metadata["about"].rstrip("."))
        assert options[field.name].default in (field.default, list(field.default) if field.default == () else None)


def test_the_command_line_knows_its_options_without_torch():
    code = "import graphbam.cli, json, sys; print(json.dumps([k for k in ('torch', 'pandas') if k in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_preparing_is_set_whole_or_in_parts():
    weights = PartialCorrelation()
    whole = gb.infer(X_MD, weights=weights, colliders=None, prepare=gb.PrepareConfig(max_rows=30, seed=4))
    parts = gb.infer(X_MD, weights=weights, colliders=None, max_rows=30, seed=4)
    mixed = gb.infer(X_MD, weights=weights, colliders=None, prepare=gb.PrepareConfig(max_rows=30), seed=4)
    assert np.array_equal(whole.probabilities, parts.probabilities)
    assert np.array_equal(whole.probabilities, mixed.probabilities)
    assert whole.provenance["settings"] == parts.provenance["settings"] == mixed.provenance["settings"]


def test_defaults_are_the_configs():
    assert read_settings({}) == InferConfig(knowledge=gb.Knowledge())
    assert read_settings(FLAT) == read_settings({})


@pytest.mark.parametrize("function", [gb.infer, lambda x, **settings: gb.infer_many([x], **settings)])
def test_unknown_settings_are_refused_with_the_nearest(function):
    with pytest.raises(ConfigError, match="no setting 'max_row'; did you mean 'max_rows'"):
        function(X_MD, weights=PartialCorrelation(), max_row=30)
    with pytest.raises(ConfigError, match="no setting 'colour'; there are weights, colliders"):
        function(X_MD, weights=PartialCorrelation(), colour="red")


@each("bad", [{"stability": -1}, {"stability": 5.0}, {"stability": True}, {"stability": None}, {"stability": "many"}])
def test_settings_are_checked_on_construction(bad):
    with pytest.raises(ConfigError, match="is not a number of resamples"):
        InferConfig(**bad)


@each("knowledge", [5, 0, True, b"known.json", ["x0 -> x1"], np.eye(3)])
def test_what_is_no_knowledge_is_refused_by_its_type(knowledge):
    kind = type(knowledge).__name__
    with pytest.raises(ConfigError, match=rf"^knowledge is .*, of type {kind}\. Pass a Knowledge, a dict, the path"):
        gb.infer(X_MD, weights=PartialCorrelation(), knowledge=knowledge)
