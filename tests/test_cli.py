import csv
import subprocess
import sys

import pytest

from graphbam import cli
from graphbam.simulation import GRAPHS, MECHANISMS, NOISES


def run(capsys, monkeypatch, *arguments):
    """Exit code, output and errors of `graphbam ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["graphbam", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    text = capsys.readouterr()
    return stop.value.code or 0, text.out, text.err


def test_simulate_writes_table_graph_and_picture(tmp_path, capsys, monkeypatch):
    out = tmp_path / "a" / "world"
    code, text, _ = run(
        capsys, monkeypatch, "simulate", "--mechanism", "sine", "--graph", "scale-free", "--n-variables", 8,
        "--n-samples", 40, "--degree", 2, "--seed", 3, "-o", out,
    )  # fmt: skip
    assert code == 0
    rows = list(csv.reader((out / "data.csv").open()))
    assert rows[0] == [f"X{i}" for i in range(1, 9)]
    assert len(rows) == 41
    assert all(abs(float(value)) <= 5 for row in rows[1:] for value in row)
    edges = list(csv.reader((out / "graph.csv").open()))
    assert edges[0] == ["source", "target"]
    assert len(edges) > 1
    assert all(name in rows[0] for edge in edges[1:] for name in edge)
    assert (out / "world.png").read_bytes()[1:4] == b"PNG"
    assert all(str(out / name) in text for name in ("data.csv", "graph.csv", "world.png"))


def test_simulate_agrees_with_python(tmp_path, capsys, monkeypatch):
    import numpy as np

    import graphbam as gb

    run(capsys, monkeypatch, "simulate", "--n-variables", 6, "--n-samples", 30, "--degree", 2, "-o", tmp_path)
    _, x_md = gb.simulate(mechanism="chebyshev", graph="erdos-renyi", n_variables=6, n_samples=30, degree=2, seed=0)
    stored = np.loadtxt(tmp_path / "data.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(stored, x_md, atol=1e-5)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--mechanism", "sinus", "error: mechanism='sinus' is unknown; choose from chebyshev, cosine,"),
        ("--graph", "ring", "error: graph='ring' is unknown; choose from bipartite-layers, erdos-renyi,"),
        ("--noise", "pink", "error: noise='pink' is unknown; choose from exponential, gaussian,"),
        ("--preset", "wide", "error: preset='wide' is unknown; choose from broad, literal, paper"),
        ("--n-variables", "1", "error: n_variables=1 is too few; use at least 2"),
        ("--n-samples", "0", "error: n_samples=0 is too few; use at least 2"),
        ("--degree", "-1", "error: degree=-1.0 must be positive"),
        ("--degree", "99", "error: degree=99 is impossible with n_variables=20"),
    ],
)
def test_wrong_values_give_one_line_and_write_nothing(tmp_path, capsys, monkeypatch, option, value, message):
    code, text, error = run(capsys, monkeypatch, "simulate", option, value, "-o", tmp_path / "out")
    assert code == 2
    assert error.startswith(message)
    assert error.count("\n") == 1
    assert text == ""
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_named(tmp_path, capsys, monkeypatch):
    (tmp_path / "taken").write_text("")
    code, _, error = run(capsys, monkeypatch, "simulate", "--n-samples", 9, "-o", tmp_path / "taken")
    assert code == 2
    assert "taken" in error
    assert error.count("\n") == 1


def test_help_names_every_choice():
    assert cli.MECHANISM_NAMES.split(", ") == sorted(MECHANISMS)
    assert cli.GRAPH_NAMES.split(", ") == sorted(GRAPHS)
    assert cli.NOISE_NAMES.split(", ") == sorted(NOISES)


def test_version_and_help(capsys, monkeypatch):
    code, text, _ = run(capsys, monkeypatch, "--version")
    assert code == 0
    assert text.startswith("graphbam 0")
    code, text, _ = run(capsys, monkeypatch, "--help")
    assert code == 0
    assert "simulate" in text


def test_help_loads_nothing_heavy():
    heavy = "import sys, graphbam.cli; print(*{'torch', 'numpy', 'pandas', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
