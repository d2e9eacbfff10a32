"""Wide tables: neighbourhoods say what the whole says, a stopped run goes on, and nothing is silent."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from graphbam.errors import ConfigError, WeightsError
from graphbam.inference import blocks
from graphbam.inference.journey import is_wide
from graphbam.inference.settings import InferConfig
from graphbam.nn.weights import load_weights
from standins import Contrast, PartialCorrelation, Spy


@pytest.fixture
def small_hoods(monkeypatch):
    """Neighbourhoods of ten columns, and wide tables from twenty on."""
    monkeypatch.setattr(blocks, "WHOLE_UP_TO", 20)
    monkeypatch.setattr("graphbam.inference.journey.WHOLE_UP_TO", 20)
    monkeypatch.setattr(blocks, "hood_size", lambda rows: (4, 10))


@pytest.fixture
def chains():
    """Sixty columns in twenty chains a → b → c."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 60))
    for k in range(0, 60, 3):
        x[:, k + 1] += 1.5 * x[:, k]
        x[:, k + 2] += 1.5 * x[:, k + 1]
    return pd.DataFrame(x, columns=[f"{'abc'[k % 3]}{k // 3}" for k in range(60)])


def test_one_neighbourhood_of_all_says_what_the_whole_says(frame, tiny_path):
    weights = load_weights(tiny_path)
    whole, parts = (gb.infer(frame, weights=weights, blocks=kind) for kind in ("never", "always"))
    assert np.allclose(whole.probabilities, parts.probabilities, atol=1e-5)
    said = f"{frame.shape[1]} columns were asked about in one neighbourhood: all pairs have an answer of their own"
    assert said in parts.changes


def test_all_answers_of_one_pass_are_joined(frame):
    whole, parts = (gb.infer(frame, blocks=kind) for kind in ("never", "always"))
    for name in ("probabilities", "directions", "compelled", "hidden_causes", "ancestors"):
        assert np.allclose(getattr(whole, name), getattr(parts, name), atol=1e-5), name


def test_wide_tables_are_cut_by_themselves_and_say_so(chains, small_hoods):
    result = gb.infer(chains, weights=PartialCorrelation())
    assert sorted(result.skeleton().undirected_edges()) == sorted(
        [(f"a{k}", f"b{k}") for k in range(20)] + [(f"b{k}", f"c{k}") for k in range(20)]
    )
    assert any("neighbourhoods" in sentence and "missed" in sentence for sentence in result.changes)
    assert not any(
        "neighbourhoods" in s for s in gb.infer(chains, weights=PartialCorrelation(), blocks="never").changes
    )
    assert is_wide(InferConfig(blocks="always"), 2)
    with pytest.raises(ConfigError, match=r"blocks='some' is not known; choose from auto, always, never\."):
        gb.infer(chains, blocks="some")


def test_pairs_that_nobody_saw_may_be_links(chains, small_hoods):
    result = gb.infer(chains, weights=PartialCorrelation())
    p = result.probabilities[..., 1]
    levels, counts = np.unique(p[np.triu_indices(60, 1)].round(12), return_counts=True)
    missed = levels[counts.argmax()]
    assert counts.max() > 400
    assert 0 < missed < 0.05


def test_many_tables_and_resamples_are_cut_too(chains, small_hoods):
    spy = Spy()
    one, other = gb.infer_many([chains, chains.iloc[:, :6]], weights=spy, stability=2)
    assert max(shape[2] for shape in spy.shapes) == 10
    assert one.stability[0, 1] == 1.0
    assert other.n_variables == 6


@dataclasses.dataclass
class Stopping(Spy):
    """Weights whose process is stopped at the fourth neighbourhood."""

    def probabilities(self, x_bmd):
        if len(self.shapes) == 3:
            raise KeyboardInterrupt
        return super().probabilities(x_bmd)


def test_a_stopped_run_goes_on_from_what_is_on_disk(chains, small_hoods, tmp_path):
    whole = gb.infer(chains, weights=PartialCorrelation())
    first, second, third, told = Stopping(), Spy(), Spy(), []
    with pytest.raises(KeyboardInterrupt):
        gb.infer(chains, weights=first, store=tmp_path / "run")
    n_done = len(list((tmp_path / "run").glob("*.npz")))
    again = gb.infer(chains, weights=second, store=tmp_path / "run", progress=lambda *said: told.append(said))
    gb.infer(chains, weights=third, store=tmp_path / "run")
    assert n_done == len(first.shapes) == 3
    assert len(second.shapes) == 15 - 3
    assert third.shapes == []
    assert np.array_equal(again.probabilities, whole.probabilities)
    assert any("4 of 15 neighbourhoods" in sentence and "left" in sentence for _, sentence in told)
    assert [share for share, _ in told] == sorted(share for share, _ in told)


def test_a_store_belongs_to_one_table(chains, small_hoods, tmp_path):
    gb.infer(chains, weights=PartialCorrelation(), store=tmp_path / "run")
    with pytest.raises(ConfigError, match="another table, by other weights or by another version"):
        gb.infer(chains[::-2], weights=PartialCorrelation(), store=tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(ConfigError, match="holds other files"):
        gb.infer(chains, weights=PartialCorrelation(), store=tmp_path / "full")


def test_many_tables_share_a_store_without_meeting(chains, small_hoods, tmp_path):
    tables, settings = [chains, chains[::-2]], {"store": tmp_path / "run"}
    first = gb.infer_many(tables, weights=PartialCorrelation(), **settings)
    spy = Spy()
    again = gb.infer_many(tables, weights=spy, **settings)
    assert spy.shapes == []
    for one, other, table in zip(first, again, tables, strict=True):
        assert np.array_equal(one.probabilities, other.probabilities)
        assert np.array_equal(one.probabilities, gb.infer(table, weights=PartialCorrelation()).probabilities)


def test_two_workers_may_fill_the_same_shelf(tmp_path, monkeypatch):
    pairs = blocks.Pairs(i=np.array([0]), j=np.array([1]), classes=np.array([[0.2, 0.8, 0.0]]))
    shelves = [blocks.Shelf(tmp_path, "a table") for _ in range(2)]
    replace, met = os.replace, []

    def meet(draft, path):
        if not met:  # the other one is done in between
            met.append(draft)
            shelves[1].put(0, pairs)
        replace(draft, path)

    monkeypatch.setattr("os.replace", meet)
    shelves[0].put(0, pairs)
    assert np.array_equal(shelves[0].get(0).classes, pairs.classes)
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "neighbourhood-00000.npz"}


def test_a_worker_with_other_weights_refuses(tiny_path, tmp_path):
    here = tmp_path / "mine.safetensors"
    here.write_bytes(tiny_path.read_bytes())
    checksum = load_weights(here).header.checksum
    assert blocks.Opener(str(here), "cpu", checksum).open().header.checksum == checksum
    with pytest.raises(WeightsError, match="a worker found other weights"):
        blocks.Opener(str(here), "cpu", "0" * 64).open()


def test_very_wide_tables_get_a_list_of_pairs(chains, small_hoods, monkeypatch):
    matrix = gb.infer(chains, weights=PartialCorrelation(), stability=2)
    monkeypatch.setattr("graphbam.inference.journey.MATRIX_UP_TO", 30)
    chains["constant"] = 1.0
    result = gb.infer(chains, weights=PartialCorrelation(), stability=2)
    assert isinstance(result, gb.SparseResult)
    assert len(result.pairs) < 60 * 59 / 2
    assert set(result.skeleton().undirected_edges()) == set(matrix.skeleton().undirected_edges())
    i, j = result.pairs.T
    assert np.allclose(result.probabilities, matrix.probabilities[i, j], atol=1e-6)
    assert np.array_equal(result.stability, matrix.stability[i, j])
    assert result.part(["a0", "constant"]).probabilities[0, 1].tolist() == [1.0, 0.0, 0.0]
    assert 0 < result.elsewhere["skeleton"] < 0.05
    assert "expected to have been missed, give or take a factor of three or more" in " ".join(result.changes)


def test_lists_of_pairs_heed_experiments_and_knowledge(monkeypatch):
    rng = np.random.default_rng(0)
    a, noise, free, more = rng.normal(size=(4, 400))
    was_set = np.arange(400) < 200
    b = np.where(was_set, 1.5 * free, a + 0.6 * noise)
    table = pd.DataFrame({"a": a, "b": b, "c": b + 0.7 * more, "d": rng.normal(size=400), "e": 1.0})
    settings = {
        "interventions": np.stack([0 * was_set, was_set, *np.zeros((3, 400))], axis=1),
        "prior_odds": [("a", "c", 3.0)],
        "required": ["d -> c"],
        "blocks": "always",
    }
    whole = gb.infer(table, **settings)
    monkeypatch.setattr("graphbam.inference.journey.MATRIX_UP_TO", 2)
    few = gb.infer(table, **settings)
    i, j = few.pairs.T
    assert np.allclose(few.probabilities, whole.probabilities[i, j], atol=1e-6)
    assert np.array_equal(few.experiments, whole.experiments[i, j])
    assert {("a", "b"), ("b", "c"), ("d", "c")} <= set(few.cpdag().directed_edges())
    assert set(few.cpdag().directed_edges()) == set(whole.cpdag().directed_edges())


def test_the_second_network_is_refused_where_there_is_no_matrix_before_the_first_is_asked(
    chains, small_hoods, monkeypatch
):
    monkeypatch.setattr("graphbam.inference.journey.MATRIX_UP_TO", 30)
    monkeypatch.setattr("graphbam.inference.journey._ask", lambda *given: pytest.fail("asked for nothing"))
    says = "the second network is asked about up to 30 columns, and there are 60"
    with pytest.raises(ConfigError, match=says):
        gb.infer(chains, weights=PartialCorrelation(), colliders=Contrast())
    (failure,) = gb.infer_many([chains], weights=PartialCorrelation(), colliders=Contrast())
    assert says in str(failure.error)


MEASURE = """
import numpy as np, torch
import graphbam as gb
from graphbam.inference import blocks
from graphbam.nn.weights import Header

class Quick:
    name, header, gives_answers = "quick", Header(), True
    def probabilities(self, x_bmd): ...
    def answer(self, x_bmd, rows=None):
        p = torch.rand(len(x_bmd), x_bmd.shape[2], x_bmd.shape[2]) * 0.02
        return torch.stack([1 - 2 * p, p, p], dim=-1), p, p, p, p

def read(name):
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith(name))

gb.infer(np.random.default_rng(0).normal(size=(50, 20)), weights=Quick(), blocks="always", progress=False)  # imports
for n_columns, n_rows, matrices in ((1200, 60, True), (1500, 400, False)):
    x_md = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    gb.inference.journey.MATRIX_UP_TO = 2000 if matrices else 1000
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is that of now
    before = read("VmRSS")
    gb.infer(x_md, weights=Quick(), progress=False)
    estimated = blocks.estimate_wide_memory(Quick(), (1, n_rows, n_columns), n_rows, matrices=matrices)
    print((read("VmHWM") - before) / estimated)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_no_wide_table_takes_more_memory_than_estimated():
    ran = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    shares = [float(line) for line in ran.stdout.split()]
    assert len(shares) == 2
    assert 0.2 < min(shares) <= max(shares) < 1.2


def test_a_wide_table_that_does_not_fit_is_refused_before_anything_is_done(chains, small_hoods, monkeypatch):
    spy = Spy()
    monkeypatch.setattr("graphbam.nn.cost.free_memory", lambda: 6.05e7)
    with pytest.raises(ConfigError, match=r"200 rows × 60 variables take about .* GB .* \(about \d+ would fit\)"):
        gb.infer(chains, weights=spy)
    assert spy.shapes == []


def test_beyond_what_was_seen_to_hold_a_warning_says_so(chains, small_hoods, monkeypatch):
    assert not any("by chance" in sentence for sentence in gb.infer(chains, weights=PartialCorrelation()).warnings)
    monkeypatch.setattr("graphbam.inference.journey.SURE_UP_TO", 50)
    assert any("among 60 columns" in s for s in gb.infer(chains, weights=PartialCorrelation()).warnings)
