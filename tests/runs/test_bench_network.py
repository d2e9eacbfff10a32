"""runs/bench_network.py: every kind of layer has its line, those that are given lists too."""

import pytest

from graphbam.nn.layers import KERNELS


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
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if " | " in line]
    assert {line[0].removeprefix("| ") for line in lines} >= kinds
    assert all(float(line[2]) >= 0 for line in lines if line[1].isdigit())


def test_kernels_are_counted_by_kind(run_script, tiny_config, monkeypatch, capsys):
    script, config = run_script("bench_network", run_name="bench_network"), tiny_config("default")
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
