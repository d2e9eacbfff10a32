"""runs/bench_network.py: every kind of layer has its line, those that are given lists too."""

from argparse import Namespace

import pytest
import torch

from graphbam.nn.edge_net import EdgeNet
from graphbam.nn.layers import KERNELS, AxialAttention, Dense
from graphbam.nn.weights import save_weights
from graphbam.training.config import TrainConfig


@pytest.mark.parametrize(
    ("design", "kinds"),
    [("default", {"AxialAttention attributes", "BilinearBlock", "PairFeatures", "PairBlock"}), ("paper", {"Dense"})],
)
def test_all_kinds_of_layers_are_timed(run_script, tiny_config, monkeypatch, capsys, design, kinds):
    script, config = run_script("bench_network", run_name="bench_network"), tiny_config(design)
    for name in list(script["MORE_SHAPES"]):
        monkeypatch.setitem(script["MORE_SHAPES"], name, (2, 9, 5))
    monkeypatch.setitem(script["DESIGNS"], design, lambda: config)
    script["print_layers"](design, "cpu")
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if " | " in line]
    assert {line[0] for line in lines} >= kinds
    measured = [list(map(float, line[1:])) for line in lines if line[1].isdigit()]
    assert all(work > 0 and moved > 0 and each > 0 for _, each, work, moved, *_ in measured)
    assert sum(line[0].startswith("all of these") for line in lines) == len(script["MORE_SHAPES"])


def test_work_of_a_layer_is_counted_forward_and_back(run_script):
    count, cells, c = run_script("bench_network", run_name="bench_network")["count_layer"], 2 * 6 * 5, 16
    x_bmdc = torch.randn(2, 6, 5, c)
    dense = count(Dense(c, 2 * c), (x_bmdc,))
    assert dense.operations == 3 * cells * 2 * (c * 2 * c + 2 * c * c)  # forward, slopes of cells, slopes of weights
    assert dense.bytes == 5 * cells * c * x_bmdc.element_size()
    whole = count(AxialAttention(c, 2, "samples", project=True), (x_bmdc,))
    assert whole.operations == 3 * cells * (2 * 4 * c * c + 2 * 2 * c * 6)
    in_half = count(Dense(c, 2 * c), (x_bmdc.bfloat16(),))
    assert (in_half.operations, in_half.bytes) == (dense.operations, dense.bytes / 2)
    assert in_half.floor() < dense.floor()


@pytest.mark.parametrize("marked", [False, True])  # of which passes over plain tables learn nothing
def test_kernels_are_counted_by_kind(run_script, tiny_config, monkeypatch, capsys, marked):
    script = run_script("bench_network", run_name="bench_network")
    config = tiny_config("default", marks=marked, answers=marked)
    script["MORE_SHAPES"].clear()
    script["MORE_SHAPES"]["tiny"] = (2, 9, 5)
    monkeypatch.setitem(script["DESIGNS"], "default", lambda: config)
    script["print_kernels"]("default", "cpu")
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:]
    assert {row[0].removeprefix("| ") for row in rows} >= {"other"}
    assert all(int(row[1]) > 0 and float(row[2].removesuffix(" |")) >= 0 for row in rows)


def test_whole_steps_are_timed_and_taken_apart(run_script, tiny_config, monkeypatch, capsys):
    script = run_script("bench_network", run_name="bench_network")
    config = tiny_config("default", marks=True, answers=True)
    monkeypatch.setitem(script["DESIGNS"], "answers", lambda: config)
    monkeypatch.setitem(script["print_steps"].__globals__, "STEPPED", ((2, 9, 5), (1, 12, 4)))
    script["print_steps"]("cpu")
    out = capsys.readouterr().out
    assert all(float(line.split()[-4]) > 0 for line in out.splitlines() if line.endswith("ms a step"))
    assert out.count("ms a step") == out.count("| other |") == 2


@pytest.fixture
def tiny_runs(run_script, tiny_config, monkeypatch):
    """The script with a tiny network and few small shapes to draw from."""
    script = run_script("bench_network", run_name="bench_network")
    config = tiny_config("default", marks=True, answers=True)
    monkeypatch.setitem(script["DESIGNS"], "answers", lambda: config)
    grid = {"variables": (2, 4), "samples": (6, 12), "stagger": 1, "cells_per_step": 48, "min_tables": 1}

    class Tiny(TrainConfig):
        @classmethod
        def answers(cls, **changes):
            return TrainConfig.answers(**(grid | changes))

        @classmethod
        def paper(cls, **changes):
            return TrainConfig.paper(**(changes | grid))

    monkeypatch.setitem(script["print_mix"].__globals__, "TrainConfig", Tiny)
    return script


def test_steps_are_timed_over_shapes_as_training_draws_them(tiny_runs, capsys):
    tiny_runs["print_mix"](6, "cpu")
    each_shape, summary = capsys.readouterr().out.strip().split("\n\n")
    head, *rest = summary.splitlines()
    assert head.startswith("6 shapes, ")
    milliseconds, tables = (float(head.split(unit)[0].split()[-1]) for unit in (" ms a step", " tables/s"))
    assert milliseconds > 0
    assert tables > 0
    shapes = [line for line in each_shape.splitlines() if line.endswith(" ms")]
    assert 1 <= len(shapes) <= 4
    assert sum(int(line.split()[0]) for line in shapes) == 6
    assert any(line.startswith("| other |") for line in rest)


def test_sections_are_measured_one_after_the_other(tiny_runs, capsys):
    asked = dict.fromkeys(("steps", "layers", "kernels", "attention", "agreement"), None)
    options = Namespace(device="cpu", designs=["answers"], mix=2, throughput=True, **asked)
    tiny_runs["run"](options)
    out = capsys.readouterr().out
    assert out.index("2 shapes, ") < out.index("answers: ")
    assert "over 4 of 4 shapes" in out
    assert out.count(" tables/s\n") == 1 + 4


def test_a_shape_that_fails_is_told_of_and_the_others_are_measured(tiny_runs, monkeypatch, capsys):
    time_step = tiny_runs["time_step"]

    def fail_for_two(stepper, shape, device):
        if shape.n_variables == 2:
            raise RuntimeError("no place for two")
        return time_step(stepper, shape, device)

    monkeypatch.setitem(tiny_runs["print_throughput"].__globals__, "time_step", fail_for_two)
    asked = dict.fromkeys(("steps", "layers", "kernels", "mix", "attention", "agreement"), None)
    tiny_runs["run"](Namespace(device="cpu", designs=["answers"], throughput=True, **asked))
    captured = capsys.readouterr()
    assert "over 2 of 4 shapes" in captured.out
    assert "no place for two" in captured.err
    assert len(tiny_runs["FAILED"]) == 2
    assert all(what.endswith(", 2)") for what in tiny_runs["FAILED"])


def test_agreement_is_told_of_way_by_way(run_script, tiny_net, rng, tmp_path, monkeypatch, capsys):
    script = run_script("bench_network", run_name="bench_network")
    save_weights(tmp_path / "toy.safetensors", tiny_net(rng, dtype=torch.float32))
    small = {"n_tables": 1, "n_variables": 3, "n_samples": 20}
    sample = script["sample_tables"]
    monkeypatch.setitem(
        script["print_agreement"].__globals__, "sample_tables", lambda rng, config, **size: sample(rng, config, **small)
    )
    monkeypatch.setattr(EdgeNet, "compile_blocks", lambda self: self)
    script["print_agreement"](str(tmp_path / "toy.safetensors"), "cpu")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["bfloat16 plain − CPU", "float32 plain − CPU"]
    assert len(lines) == 6
    assert all("largest 0, mean 0" in line for line in lines[2:])


def test_attention_is_timed_by_every_kernel(run_script, monkeypatch, capsys):
    script = run_script("bench_network", run_name="bench_network")
    sizes = {"ATTENDED": ((2, 12, 3), (2, 5, 4)), "COMPILED_WITH": (2, 4, 3), "FEW": ((2, 5, 3),)}
    sizes |= {"STRETCHED": (1, 6, 2), "STRETCHES": (6, 3)}
    for name, value in sizes.items():
        monkeypatch.setitem(script["print_attention"].__globals__, name, value)
    before = {axis: list(kernels) for axis, kernels in KERNELS.items()}
    script["print_attention"]("cpu")
    tables = [
        [line.strip("| ").split(" | ") for line in table.splitlines()]
        for table in capsys.readouterr().out.split("\n\n")
    ]
    (head, _, *rows), (few, _, *ways), (lengths, _, *times) = tables
    assert head == ["axis", "kernel", "2, 12, 3", "2, 5, 4"]
    kernels = [[axis, name] for axis in KERNELS for name in script["BACKENDS"]]
    assert [row[:2] for row in rows] == [*kernels, *([axis, "tiles"] for axis in KERNELS)]
    assert (few[1:], [way[0] for way in ways], lengths[1:]) == (
        ["3"],
        ["kernel", "tiles", "sums of products"],
        ["6", "3"],
    )
    measured = [*(row[2:] for row in rows), *(row[1:] for row in (*ways, *times))]
    assert all(float(ms) > 0 for row in measured for ms in row)
    assert before == KERNELS
