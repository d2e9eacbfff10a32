"""runs/bench_network.py: every kind of layer has its line, those that are given lists too."""

import pytest


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


def test_attention_is_timed_by_every_kernel_that_can(run_script, monkeypatch, capsys):
    script = run_script("bench_network", run_name="bench_network")
    asked = (("samples", 2, 12, 3, 1), ("samples", 2, 12, 3, 4), ("attributes", 2, 5, 3, 1))
    monkeypatch.setitem(script["print_attention"].__globals__, "ATTENDED", asked)
    script["print_attention"]("cpu")
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[0], int(row[2])) for row in rows] == [("samples", 1), ("samples", 4), ("attributes", 1)]
    assert all(float(row[3]) > 0 for row in rows)  # flash, which a CPU has too
    assert {row[4] for row in rows} == {"–"}  # cuDNN, which it has not
