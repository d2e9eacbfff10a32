"""runs/bench_network.py: every kind of layer has its line, those that are given lists too."""

import pytest


@pytest.mark.parametrize(
    ("design", "kinds"),
    [("default", {"AxialAttention attributes", "BilinearBlock", "PairFeatures", "PairBlock"}), ("paper", {"Dense"})],
)
def test_all_kinds_of_layers_are_timed(run_script, tiny_config, monkeypatch, capsys, design, kinds):
    script, config = run_script("bench_network", run_name="bench_network"), tiny_config(design)
    monkeypatch.setitem(script["SHAPES"], "large", (2, 9, 5))
    monkeypatch.setitem(script["DESIGNS"], design, lambda: config)
    script["print_layers"](design, "cpu")
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert {line[0].removeprefix("| ") for line in lines} >= kinds
    assert all(float(line[2]) >= 0 for line in lines[2:])
