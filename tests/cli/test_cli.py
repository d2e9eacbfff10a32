import csv
import gzip
import io
import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from cases import each
from graphbam import cli
from graphbam.cli import _infer, _simulate, _summary
from graphbam.graphs.cut import Cut
from graphbam.machine.helper import Helper
from graphbam.output import figures
from graphbam.output.files import Link
from graphbam.result import Result
from graphbam.simulation import GRAPHS, MECHANISMS, NOISES, PRESETS, WORLDS, simulate_table
from graphbam.tables.labelled import LabelledTable, write_labelled
from standins import save_toy_colliders


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
    assert "a scatter plot for each edge" in text
    _, text, _ = run(capsys, monkeypatch, "simulate", "--degree", 4, "--n-samples", 20, "-o", tmp_path / "dense")
    assert "the graph, and scatter plots of 12 edges" in text


def test_simulate_writes_hidden_causes_and_cells_that_were_set(tmp_path, capsys, monkeypatch):
    code, text, _ = run(
        capsys, monkeypatch, "simulate", "--hidden", "--interventions", "--missing", "--n-variables", 8, "-o", tmp_path,
    )  # fmt: skip
    assert code == 0
    assert "bidirected.csv" in text
    table = simulate_table(
        n_samples=500, n_variables=8, mechanism="chebyshev", graph="erdos-renyi", degree=2.0, hidden=True,
        interventions=True, missing=True,
    )  # fmt: skip
    told = ["--interventions", tmp_path / "targets.csv"]
    code, text, _ = run(capsys, monkeypatch, "infer", tmp_path / "data.csv", "-o", tmp_path / "out", *told)
    assert code == 0
    assert f"cells that were set are marked: in {table.set_md.any(axis=1).sum()} of 500 rows" in text
    data = pd.read_csv(tmp_path / "data.csv").to_numpy()
    np.testing.assert_allclose(data, table.x_md, atol=1e-4)
    assert np.isnan(data).any()
    assert (pd.read_csv(tmp_path / "targets.csv").to_numpy() == table.set_md).all()
    assert pd.read_csv(tmp_path / "bidirected.csv").to_numpy().tolist() == [list(pair) for pair in table.bidirected]
    assert (tmp_path / "world.png").stat().st_size > 10_000


def test_simulate_makes_named_worlds(tmp_path, capsys, monkeypatch):
    code, _, _ = run(capsys, monkeypatch, "simulate", "--world", "gene-dynamics", "--n-samples", 60, "-o", tmp_path)
    assert code == 0
    _, x_md = gb.simulate(world="gene-dynamics", n_samples=60)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "data.csv").to_numpy(), x_md, atol=1e-4)
    code, _, error = run(capsys, monkeypatch, "simulate", "--world", "cells", "-o", tmp_path)
    assert (code, "choose from as-found" in error) == (2, True)
    code, _, error = run(capsys, monkeypatch, "simulate", "--world", "as-found", "--degree", 3, "-o", tmp_path)
    assert (code, "has a degree of its own" in error) == (2, True)


def test_simulate_agrees_with_python(tmp_path, capsys, monkeypatch):
    run(capsys, monkeypatch, "simulate", "--n-variables", 6, "--n-samples", 30, "--degree", 2, "-o", tmp_path)
    _, x_md = gb.simulate(mechanism="chebyshev", graph="erdos-renyi", n_variables=6, n_samples=30, degree=2, seed=0)
    stored = np.loadtxt(tmp_path / "data.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(stored, x_md, atol=1e-5)


def test_simulate_leaves_files_of_others_alone_before_any_work(tmp_path, capsys, monkeypatch):
    for name in ("data.csv", "graph.csv", "targets.csv.gz", "world.png"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("mine")
        with monkeypatch.context() as patch:
            patch.setattr("graphbam.simulation.simulate_table", None)
            code, text, error = run(capsys, patch, "simulate", "-o", folder)
        assert (code, text, error.count("\n")) == (2, "", 1)
        assert f"{name} is there already, and nothing says that graphbam wrote it" in error
        assert [path.read_text() for path in folder.iterdir()] == ["mine"]


def test_simulate_replaces_an_earlier_world_as_a_whole(tmp_path, capsys, monkeypatch):
    small = "simulate", "--n-variables", 6, "--n-samples", 30, "-o", tmp_path
    run(capsys, monkeypatch, *small, "--hidden", "--interventions")
    assert {"bidirected.csv", "targets.csv"} <= {path.name for path in tmp_path.iterdir()}
    (tmp_path / "mine.txt").write_text("stays")
    assert run(capsys, monkeypatch, *small, "--seed", 1)[0] == 0
    note = json.loads((tmp_path / "world.json").read_text())
    assert {path.name for path in tmp_path.iterdir()} == {*note["files"], "mine.txt"}
    assert note["files"] == ["data.csv", "graph.csv", "world.png", "world.json"]
    again = simulate_table(**note["settings"])
    np.testing.assert_allclose(pd.read_csv(tmp_path / "data.csv").to_numpy(), again.x_md, atol=1e-4)


@each(
    ("option", "value", "message"),
    [
        ("--mechanism", "sinus", "error: --mechanism sinus is unknown; choose from chebyshev, cosine,"),
        ("--graph", "ring", "error: --graph ring is unknown; choose from bipartite-layers, erdos-renyi,"),
        ("--noise", "pink", "error: --noise pink is unknown; choose from exponential, gaussian,"),
        ("--preset", "wide", "error: --preset wide is unknown; choose from broad, broad-1, literal, paper, textbook"),
        ("--n-variables", "1", "error: --n-variables 1 is too few; use at least 2"),
        ("--n-samples", "0", "error: --n-samples 0 is too few; use at least 2"),
        ("--degree", "-1", "error: --degree -1.0 must be positive"),
        ("--degree", "99", "error: --degree 99 is impossible with --n-variables 20"),
    ],
)
def test_wrong_values_give_one_line_and_write_nothing(tmp_path, capsys, monkeypatch, option, value, message):
    code, text, error = run(capsys, monkeypatch, "simulate", option, value, "-o", tmp_path / "out")
    assert code == 2
    assert error.startswith(message)
    assert error.count("\n") == 1
    assert text == ""
    assert not (tmp_path / "out").exists()


@each("n_variables", [2, 3])
def test_the_default_degree_fits_few_variables(tmp_path, capsys, monkeypatch, n_variables):
    code, _, error = run(capsys, monkeypatch, "simulate", "--n-variables", n_variables, "-o", tmp_path)
    assert (code, error) == (0, "")
    assert json.loads((tmp_path / "world.json").read_text())["settings"]["degree"] == n_variables - 1


@each(("option", "value", "message"), [
    ("--n-samples", 10**11, "100000000000 rows × 20 variables take about 96000.0 GB of memory, and 8.0 GB are free."),
    ("--n-variables", 10**6, "500 rows × 1000000 variables take about 64024.0 GB of memory, and 8.0 GB are free."),
])  # fmt: skip
def test_worlds_that_would_not_fit_are_refused(tmp_path, capsys, monkeypatch, option, value, message):
    monkeypatch.setattr("graphbam.simulation.free_memory", lambda: 8e9)
    code, _, error = run(capsys, monkeypatch, "simulate", option, value, "-o", tmp_path / "out")
    fewer = "rows" if option == "--n-samples" else "variables"
    assert (code, error) == (2, f"error: {message} Simulate fewer {fewer}.\n")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_way_is_named(tmp_path, capsys, monkeypatch):
    (tmp_path / "taken").write_text("")
    code, _, error = run(capsys, monkeypatch, "simulate", "--n-samples", 9, "-o", tmp_path / "taken")
    assert code == 2
    assert "taken" in error
    assert error.count("\n") == 1
    (tmp_path / "out" / "graph.csv").mkdir(parents=True)
    code, _, error = run(capsys, monkeypatch, "simulate", "--n-samples", 9, "-o", tmp_path / "out")
    assert (code, "graph.csv is a folder where a file must go. Remove it" in error) == (2, True)


@each(("words", "what"), [
    (["infer", "sachs", "-o", ""], "the path to write to"),
    (["infer", "", "-o", "out"], "the path of the table"),
    (["infer", "sachs", "-o", "out", "--knowledge", ""], "the path of prior knowledge"),
    (["infer", "sachs", "-o", "out", "--store", ""], "--store '' is an empty path"),
    (["simulate", "-o", ""], "the path to write to"),
    (["train", "--tiny", "--steps", "1", "-o", ""], "the path to write to"),
    (["fine-tune", "tables", "-o", ""], "the path of the weights to write"),
    (["fine-tune", "", "-o", "out"], "the path of the tables"),
    (["benchmark", "--methods", "zero", "--cases", "linear-d4-m30", "-o", ""], "the path to write to"),
    (["benchmark-report", "", "-o", "out"], "the path of a run"),
])  # fmt: skip
def test_an_empty_path_is_not_the_present_folder(tmp_path, capsys, monkeypatch, words, what):
    write_labelled(tmp_path / "tables", LabelledTable(("a", "b"), np.eye(20, 2), np.zeros((2, 2), np.int8)))
    monkeypatch.chdir(tmp_path)
    code, _, error = run(capsys, monkeypatch, *words)
    assert (code, error.startswith(f"error: {what}"), error.count("\n")) == (2, True, 1), error
    assert "empty" in error
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]


def test_help_names_every_choice():
    assert _simulate.MECHANISM_NAMES.split(", ") == sorted(MECHANISMS)
    assert _simulate.GRAPH_NAMES.split(", ") == sorted(GRAPHS)
    assert _simulate.NOISE_NAMES.split(", ") == sorted(NOISES)
    assert _simulate.WORLD_NAMES.split(", ") == sorted(WORLDS)
    assert _simulate.PRESET_NAMES.split(", ") == sorted(PRESETS)


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


# ── infer ─────────────────────────────────────────────────────────────────────────────────────────────────

TINY = Path(__file__).parents[1] / "data" / "tiny.safetensors"
FILES = {"edges.csv", "graph.json", "graph.graphml", "graph.dot", "report.html", "graph.png"}


def test_a_table_that_others_cannot_read_is_read_here(tmp_path, monkeypatch):
    """A pipe has its cells once only, /dev/stdin is another file in another process, a large file fills two of them."""
    table, pipe = tmp_path / "table.csv", tmp_path / "pipe"
    table.write_text("a,b,c\n1,2,5\n3,9,1\n2,2,7\n")
    os.mkfifo(pipe)
    with Helper(2) as helper:
        for path in (pipe, tmp_path / "missing.csv", Path("/dev/stdin"), Path("/proc/self/status")):
            assert _infer._begin_to_read(path, {}, helper)() == path
        assert _infer._begin_to_read(table, {"drop": ["a"]}, helper)().names == ("b", "c")
        monkeypatch.setattr(_infer, "SMALL_FILE", table.stat().st_size - 1)
        assert _infer._begin_to_read(table, {}, helper)() == table


@pytest.fixture
def infer(tmp_path, capsys, monkeypatch):
    """Run `graphbam infer` with toy weights; returns exit code, output, errors and the folder of results."""

    def make(source, *options, out="out", directions=("--no-cpdag",)):
        arguments = ("infer", source, "-o", tmp_path / out, "--weights", TINY, "--device", "cpu", *directions, *options)
        return *run(capsys, monkeypatch, *arguments), tmp_path / out

    return make


@pytest.fixture(scope="module")
def toy_colliders(tmp_path_factory):
    return save_toy_colliders(tmp_path_factory.mktemp("weights") / "toy.safetensors")


@pytest.fixture
def table(tmp_path):
    x_md = np.random.default_rng(0).normal(size=(60, 4)).cumsum(axis=1)
    path = tmp_path / "my cells.csv"
    pd.DataFrame(x_md, columns=["a", "b [bold]x", "c", "d"]).to_csv(path, index=False)
    return path


def test_infer_writes_everything_and_says_so(infer, table):
    code, text, error, out = infer(table, "--threshold", 0.01)
    assert (code, error) == (0, "")
    assert {path.name for path in out.iterdir()} == FILES
    assert "4 variables · 60 rows" in text
    assert "links at p ≥ 0.01" in text
    assert "b [bold]x" in text
    assert all(str(out / name) in text for name in FILES)
    assert (out / "graph.png").read_bytes()[1:4] == b"PNG"


def test_infer_agrees_with_python(infer, table):
    _, _, _, out = infer(table, "--seed", 3)
    stored = Result.from_dict(json.loads((out / "graph.json").read_text(encoding="utf-8")))
    ours = gb.infer(table, weights=TINY, device="cpu", seed=3, directions="none")
    np.testing.assert_allclose(stored.probabilities, ours.probabilities, atol=1e-6)
    assert stored.provenance == ours.provenance


def test_every_option_reaches_the_answer(infer, table, tmp_path):
    (tmp_path / "known.json").write_text('{"prior_odds": [["a", "c", 5.0]]}')
    _, text, _, _ = infer(table, "--json", "--drop", "d", "--forbid", "a -- c", "--require", "a -> b [bold]x",
                          "--tiers", "a | b [bold]x, c", "--stability", 3, "--max-rows", 50, "--large", "average",
                          "--missing", "impute", "--encode", "--fdr", 0.3)  # fmt: skip
    told = json.loads(text)
    assert told["n_variables"] == 3
    first = {"a": "a", "edge": "--", "b": "b [bold]x", "none": 0, "skeleton": 1, "moral": 0, "stability": 1}
    assert told["links"][0] == first
    assert told["n_arrows"] is told["expected_distance"] is None
    assert {"a", "c"} not in [{link["a"], link["b"]} for link in told["links"]]
    assert any("averaged" in change for change in told["changes"])
    assert any("left out as asked: 'd'" in change for change in told["changes"])
    assert {Path(path).name for path in told["files"]} == FILES
    code, _, _, out = infer(table, "--knowledge", tmp_path / "known.json", "-q", out="known")
    assert code == 0
    assert json.loads((out / "graph.json").read_text())["knowledge"]["prior_odds"] == [["a", "c", 5.0]]


def test_a_table_may_be_piped_in(infer, table, monkeypatch):
    from types import SimpleNamespace

    piped = SimpleNamespace(buffer=io.BytesIO(gzip.compress(table.read_bytes())), isatty=lambda: False)
    monkeypatch.setattr("sys.stdin", piped)
    code, text, _, out = infer("-")
    assert code == 0
    assert text.startswith("standard input")
    assert "gb.infer(table" in (out / "report.html").read_text(encoding="utf-8")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    code, _, error, _ = infer("-")
    assert code == 2
    assert "nothing is piped in" in error


def test_quiet_prints_nothing_and_json_prints_json_only(infer, table):
    assert infer(table, "--quiet")[:3] == (0, "", "")
    code, text, error, _ = infer(table, "--json")
    assert (code, error) == (0, "")
    assert json.loads(text)["n_rows"] == 60


def test_without_matplotlib_the_picture_is_missed_aloud(infer, table, monkeypatch):
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    code, _, error, out = infer(table)
    assert code == 0
    assert error.startswith("note: no graph.png, since matplotlib or mini-racer is missing")
    assert {path.name for path in out.iterdir()} == FILES - {"graph.png"}


@each(
    ("options", "message"),
    [
        (["--weights", "nope"], "error: no weights named 'nope'"),
        (["--executor", "foo"], "error: --executor foo is not known; choose a number of processes"),
        (["--executor", "0"], "error: --executor 0 is not known"),
        (["--device", "abacus"], "error: --device abacus cannot be used here"),
        (["--missing", "guess"], "error: --missing guess is not known"),
        (["--large", "all"], "error: --large all is not known"),
        (["--threshold", "2"], "error: --threshold 2.0 is not a probability"),
        (["--fdr", "0"], "error: --fdr 0.0 is not a share"),
        (["--objective", "best"], "error: --objective best is unknown"),
        (
            ["--objective", "shd", "--fdr", "0.1"],
            "error: --objective shd chooses the links itself",
        ),
        (["--threshold", "0.5", "--fdr", "0.1"], "error: --threshold and --fdr were both given"),
        (["--cpdag", "--colliders", "nope"], "error: no weights named 'nope'"),
        (["--cpdag", "--colliders", str(TINY)], f"error: {TINY} holds weights of kind 'edges'"),
        (["--drop", "z"], "error: --drop names the column 'z'"),
        (["--forbid", "a"], "error: 'a' is not an edge"),
        (["--require", "a -> z"], "error: knowledge names 'z'"),
        (["--tiers", "a | a"], "error: 'a' is in tier 1 and in tier 2"),
        (["--knowledge", "none.json"], "error: none.json cannot be read"),
        (["--max-rows", "1"], "error: --max-rows 1 is not a whole number"),
        (["--stability", "-1"], "error: --stability -1 is not a number"),
        (["-o", "-"], "error: -o - does not name a folder"),
    ],
)
def test_wrong_options_give_one_line_and_write_nothing(infer, table, options, message):
    code, text, error, out = infer(table, *options)
    assert (code, text) == (2, "")
    assert error.startswith(message)
    assert error.count("\n") == 1
    assert not out.exists()


@each("known", ['{"tiers": 5}', '{"tiers": {"a": 0, "c": NaN}}', '{"prior_odds": [1]}', '{"required": [null]}'])
def test_malformed_knowledge_gives_one_line_and_writes_nothing(infer, table, tmp_path, known):
    (tmp_path / "known.json").write_text(known)
    code, text, error, out = infer(table, "--knowledge", tmp_path / "known.json")
    assert (code, text) == (2, "")
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not out.exists()


@each("content", [b"", b"a,b\n", b"a\n1\n2\n", b"PK\x03\x04", b"a,b\nx,1\ny,2\nx,3\n"])
def test_unusable_tables_give_one_line_and_write_nothing(infer, tmp_path, content):
    (tmp_path / "bad.csv").write_bytes(content)
    code, text, error, out = infer(tmp_path / "bad.csv")
    assert (code, text) == (2, "")
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not out.exists()
    assert not list(out.parent.glob(".*"))


def test_remedies_are_options(infer, tmp_path):
    (tmp_path / "t.csv").write_text("a,home town\n1,x\n2,y\n3,x\n")
    _, _, error, _ = infer(tmp_path / "t.csv")
    assert "Use --encode for text and dates to count as numbers, or --drop 'home town' to leave it out." in error


def test_links_that_are_expected_to_be_false_are_counted(infer, table):
    told = json.loads(infer(table, "--json", "--threshold", 0.05)[1])
    assert told["links"]
    assert told["expected_false"] == pytest.approx(sum(1 - link["skeleton"] for link in told["links"]), abs=1e-4)


def test_links_that_are_expected_beside_those_of_the_graph_are_counted(infer, table):
    told, text = json.loads(infer(table, "--json", "--threshold", 0.9)[1]), infer(table, "--threshold", 0.9)[1]
    p_n = pd.read_csv(infer(table)[3] / "edges.csv")["skeleton"]
    assert told["expected_missed"] == pytest.approx(p_n[p_n < 0.9].sum(), abs=1e-3) != 0
    assert f"{told['expected_missed']:.1f} expected missed" in text or told["expected_missed"] < 0.1


def test_the_present_folder_takes_the_results(infer, table, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    code, _, error, _ = infer(table, "-o", ".")
    assert (code, error) == (0, "")
    assert {path.name for path in Path().iterdir()} == FILES


@pytest.mark.parametrize("lost", ["edges.csv", "graph.json"])
def test_what_is_read_is_never_written_over(infer, table, tmp_path, lost):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "edges.csv").write_bytes(table.read_bytes())
    (tmp_path / "out" / "graph.json").write_text('{"tiers": [["a"], ["c", "d"]]}')
    read = {
        "edges.csv": (tmp_path / "out" / "edges.csv",),
        "graph.json": (table, "--knowledge", tmp_path / "out" / lost),
    }
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    code, _, error, out = infer(*read[lost])
    assert code == 2
    assert f"{lost} is read, and a file of that name is written there" in error
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_files_of_others_are_left_alone_before_any_work(infer, table, tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "dag.csv").write_text("mine")
    monkeypatch.setattr("graphbam.infer", None)
    code, _, error, out = infer(table)
    assert code == 2
    assert "dag.csv is there already, and nothing says that graphbam wrote it" in error
    assert (out / "dag.csv").read_text() == "mine"


def test_missing_files_and_files_in_the_way_are_named(infer, table, tmp_path):
    code, _, error, _ = infer(tmp_path / "my cels.csv")
    assert code == 2
    assert "Did you mean" in error
    (tmp_path / "taken").write_text("mine")
    code, _, error, out = infer(table, out="taken")
    assert code == 2
    assert "is a file" in error
    assert out.read_text() == "mine"


def test_a_folder_of_tables_survives_a_bad_one(infer, table, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    for name in ("one.csv", "two.csv", "two.tsv"):
        pd.read_csv(table).to_csv(folder / name, index=False, sep="\t" if name.endswith("tsv") else ",")
    (folder / "bad.csv").write_text("")
    (folder / "gaps.csv").write_text("a,b\n1,2\n2,\n3,4\n4,5\n5,6\n")
    code, text, error, out = infer(folder, "--missing", "error")
    assert code == 1
    assert error.startswith("error: ")
    assert "bad.csv is empty" in error
    assert "or use --missing auto." in error
    assert error.count("\n") == 2
    assert {path.name for path in out.iterdir()} == {"one", "two_csv", "two_tsv"}
    assert all({path.name for path in one.iterdir()} == FILES for one in out.iterdir())
    assert "3 of 5 tables done, 2 failed" in text
    (folder / "bad.csv").unlink()
    (folder / "gaps.csv").unlink()
    (tmp_path / "worse").mkdir()
    (tmp_path / "worse" / "bad.csv").write_text("")
    assert infer(tmp_path / "worse", out="none")[0] == 2
    assert not (tmp_path / "none").exists()
    code, text, error, _ = infer(folder, "--json")
    assert (code, error) == (0, "")
    assert len(json.loads(text)["tables"]) == 3


def test_an_example_is_found_by_name_unless_a_file_has_it(infer, table, tmp_path, monkeypatch):
    _, text, _, _ = infer("sachs", "--json")
    told = json.loads(text)
    assert (told["n_variables"], told["n_rows"]) == (11, 853)
    monkeypatch.chdir(tmp_path)
    Path("sachs").write_bytes(table.read_bytes())
    assert json.loads(infer("sachs", "--json")[1])["n_variables"] == 4


LEANING = " a direction is likelier (arrows are chosen together, and with caution)"


@each(("marks", "says"), [
    (">", "it has a direction"),
    ("-", "it has no direction: what depends on what does not tell, so it is left open"),
    ("!", "it has a direction; only the graph as a whole needs it: on its own another is likelier"),
    ("--", "none has a direction: what depends on what does not tell, so all are left open"),
    (">-", "1 has a direction; the other is left open"),
    ("~", "it has no direction: it is left open, although on its own" + LEANING),
    ("~~", "none has a direction: all are left open, although on their own" + LEANING),
    (">~", "1 has a direction; the other is left open, although on its own" + LEANING),
    (">~-", "1 has a direction; the others are left open, 1 of them although on its own" + LEANING),
    (">>--", "2 have a direction; the others are left open"),
    ("!>", "all have a direction; only the graph as a whole needs 1 of them: on its own another is likelier"),
    ("!!", "all have a direction; only the graph as a whole needs them: on their own others are likelier"),
])  # fmt: skip
def test_directions_are_told_in_number(marks, says):
    sure = {"~": {"forward": 0.1, "backward": 0.8}, "-": {"forward": 0.2, "backward": 0.3}}
    links = [Link("a", "b", mark not in "-~", sure.get(mark, {}), mark == "!") for mark in marks]
    assert _summary._say_directions(links) == says


@pytest.mark.parametrize("cut", [[], ["--fdr", 0.2], ["--threshold", 0.2], ["--objective", "shd"]])
def test_directions_are_written_and_told(infer, table, toy_colliders, cut):
    known = ("--require", "a -> c", "--required", "d -> c")  # both spellings; toy weights find little by themselves
    code, text, error, out = infer(table, *known, *cut, directions=("--colliders", toy_colliders))
    assert (code, error) == (0, "")
    assert {path.name for path in out.iterdir()} == FILES | {"arrows.csv", "dag.csv"}
    stored = Result.from_dict(json.loads((out / "graph.json").read_text(encoding="utf-8")))
    words = dict(zip(cut[::2], cut[1::2], strict=True))
    graph = stored.cpdag(Cut(words.get("--threshold"), words.get("--fdr"), words.get("--objective", "links")))
    rows = pd.read_csv(out / "arrows.csv")
    assert {(r.a, r.b) for r in rows[rows["edge"] == "->"].itertuples()} == set(graph.directed_edges())
    assert {("a", "c"), ("d", "c")} <= set(graph.directed_edges())
    assert "a → c" in text
    assert "this way 1.00" in text
    n_arrows, n_links = len(graph.directed_edges()), len(graph.table())
    assert ("all have a direction" if n_arrows == n_links else f"{n_arrows} have a direction") in text
    told = json.loads(infer(table, "--json", *known, *cut, directions=("--cpdag", "--colliders", toy_colliders))[1])
    assert told["n_arrows"] == len(graph.directed_edges())
    assert told["expected_distance"] == pytest.approx(graph.expected_shd(), abs=1e-3)
    assert {(link["a"], link["b"]) for link in told["links"] if link["edge"] == "->"} == set(graph.directed_edges())


def test_an_objective_that_wide_tables_cannot_have_is_refused_before_the_work(tmp_path, capsys, monkeypatch):
    pd.DataFrame(np.random.default_rng(0).normal(size=(30, 5)), columns=list("abcde")).to_csv(tmp_path / "a.csv")
    monkeypatch.setattr("graphbam.inference.journey.MATRIX_UP_TO", 4)
    monkeypatch.setattr(gb, "infer", lambda *given, **settings: pytest.fail("inferred for nothing"))
    options = "-o", tmp_path / "out", "--objective", "shd"
    code, _, error = run(capsys, monkeypatch, "infer", tmp_path / "a.csv", *options)
    assert code == 2
    assert "--objective shd weighs all pairs of up to 4 columns, and" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("objective", "says"), [("links", ""), ("shd", ", with 1 link that arrows.csv leaves out")])
def test_links_of_the_dag_alone_are_counted(objective, says):
    p, way, compelled = [0.38, 0.62, 0.0], np.array([[0, 0.7], [0.3, 0]]), np.array([[0, 0.4], [0.2, 0]])
    result = Result(("a", "b"), np.full((2, 2, 3), p), directions=way, compelled=compelled)
    n_more = len(result.dag(objective=objective).table()) - len(result.cpdag(objective=objective).table())
    assert n_more == bool(says)
    assert _summary._say_more(result, Cut(objective=objective)) == says


def test_a_graph_without_links_leaves_no_gap(tmp_path, capsys):
    empty = Result(("a", "b"), np.full((2, 2, 3), [0.9, 0.1, 0.0]))
    _summary.show({"result": empty, "files": empty.save(tmp_path), "notes": []}, Cut())
    assert "\n\n" not in capsys.readouterr().out


def test_files_of_a_wide_table_are_told_as_they_are(tmp_path, capsys):
    """Not every pair is in its edges.csv, and its report shows one neighbourhood at a time."""
    wide = gb.SparseResult(("a", "b", "c"), np.array([[0, 1]]), np.array([[0.1, 0.9, 0.0]]), {"skeleton": 0.001})
    _summary.show({"result": wide, "files": wide.save(tmp_path), "notes": []}, Cut())
    told = capsys.readouterr().out
    assert "the pairs that were asked about" in told
    assert "every pair" not in told
    assert "one neighbourhood at a time" in told


def test_directions_that_cannot_be_found_are_missed_aloud(infer, table, tmp_path, monkeypatch):
    monkeypatch.setattr("graphbam.nn.weights._shipped", lambda: tmp_path)
    for directions in ((), ("--cpdag",)):
        code, text, error, out = infer(table, directions=directions)
        assert (code, text) == (2, "")
        assert error.startswith("error: no weights named 'colliders' and no such file")
        assert not out.exists()
    code, _, _, out = infer(table, directions=("--no-cpdag",))
    assert code == 0
    assert {path.name for path in out.iterdir()} == FILES


# ── weights ───────────────────────────────────────────────────────────────────────────────────────────────


def test_weights_are_listed_with_size_and_training(capsys, monkeypatch, tmp_path):
    from graphbam.cli import _weights
    from graphbam.nn import weights

    for module, name in ((weights, "_shipped"), (_weights, "_data")):
        monkeypatch.setattr(module, name, lambda: tmp_path)
    code, text, error = run(capsys, monkeypatch, "weights")
    assert (code, text) == (0, "")
    assert "no weights come with this copy" in error
    (tmp_path / "toy.safetensors").write_bytes(TINY.read_bytes())
    code, text, _ = run(capsys, monkeypatch, "weights")
    assert code == 0
    assert text.splitlines()[1].split()[:1] == ["toy"]
    assert "MB" in text
    code, text, _ = run(capsys, monkeypatch, "weights", "toy")
    assert code == 0
    assert '"config"' in text
    (tmp_path / "toy.md").write_text("# Toy weights\n\nFor tests.\n")
    assert run(capsys, monkeypatch, "weights", "toy")[1] == "# Toy weights\n\nFor tests.\n"
    code, _, error = run(capsys, monkeypatch, "weights", "nope")
    assert code == 2
    assert error.startswith("error: no weights named 'nope'")


def test_a_port_in_use_is_one_sentence(capsys, monkeypatch):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, text, error = run(capsys, monkeypatch, "serve", "--port", port)
    assert (code, text) == (2, "")
    assert error.startswith(f"error: port {port} cannot be used: address already in use. ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("port", [-1, 65536, 99999])
def test_a_port_that_does_not_exist_is_one_sentence(capsys, monkeypatch, port):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    code, text, error = run(capsys, monkeypatch, "serve", "--port", port)
    assert (code, text) == (2, "")
    assert error == f"error: port {port} does not exist: a port lies between 1 and 65535, and 0 takes a free one.\n"


def test_the_page_is_served(monkeypatch):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    command = [sys.executable, "-m", "graphbam.cli", "serve", "--port", "0", "--weights", str(TINY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = re.search(r"http://\S+", server.stdout.readline())[0]
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert b"The graph of a table" in answer.read()
        finally:
            server.terminate()


def test_wrong_usage_is_exit_code_two(capsys, monkeypatch):
    assert run(capsys, monkeypatch, "infer")[0] == 2
    assert run(capsys, monkeypatch, "infer", "x.csv")[0] == 2
    assert run(capsys, monkeypatch, "nonsense")[0] == 2
