"""Every answer in one pass: laws that hold for any weights, here random ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import graphbam as gb
from cases import each
from graphbam.errors import ConfigError
from graphbam.graphs.equivalence import is_cpdag
from graphbam.graphs.graph import is_dag
from graphbam.inference.answers import pairs_set_apart
from graphbam.nn.edge_net import MISSING, SET, EdgeNet
from graphbam.nn.weights import Header, load_weights, save_weights
from graphbam.result import ORDERED, Result
from graphbam.tables.interventions import read_experiment
from graphbam.tables.prepare import prepare
from standins import Contrast

KNOWN = {"tiers": [["a", "b"], ["c", "d", "e"]], "required": ["a -> c", "d -> e"], "forbidden": ["b -> d"]}


@pytest.fixture(scope="session")
def talking(tmp_path_factory, tiny_path):
    """Weights with all outputs, in a file that says how they are calibrated."""
    small = load_weights(tiny_path).network
    network = EdgeNet(type(small.config).from_dict(small.config.to_dict() | {"marks": True, "answers": True}))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=generator)
    path = tmp_path_factory.mktemp("weights") / "talking.safetensors"
    save_weights(path, network, Header(answers={"hidden": {"temperature": 2.0, "offset": -1.0}}))
    return load_weights(path)


def matrices(result):
    return {name: getattr(result, name) for name in ORDERED}


def check_laws(result):
    """What holds for every answer."""
    p = matrices(result)
    apart = ~np.eye(result.n_variables, dtype=bool)
    assert all(((m >= 0) & (m <= 1)).all() and not m.diagonal().any() for m in p.values())
    assert np.allclose((p["directions"] + p["directions"].T)[apart], 1)
    assert (p["compelled"] + p["compelled"].T <= 1 + 1e-12).all()
    assert np.array_equal(p["hidden_causes"], p["hidden_causes"].T)
    assert is_dag(result.dag().adjacency)
    assert result.dag().skeleton() == result.cpdag().skeleton() == result.skeleton()


def test_one_call_answers_everything(frame, talking):
    result = gb.infer(frame, weights=talking)
    check_laws(result)
    assert is_cpdag(result.cpdag().adjacency)
    assert result.provenance["directions"] == "one-pass"
    assert result.provenance["colliders"] is None
    columns = ["a", "b", "skeleton", "moral", "none", "forward", "backward", "open", "hidden", "upstream", "downstream"]
    assert list(result.table().columns) == [*columns, "via"]
    assert np.std(result.directions) > 0.01  # the weights do say something


def test_no_order_of_columns_or_rows_changes_an_answer(frame, talking):
    result = gb.infer(frame, weights=talking)
    names = list("cebad")
    other = gb.infer(frame[names].sample(frac=1, random_state=0), weights=talking)
    place = [result.names.index(name) for name in names]
    for name, p_dd in matrices(result).items():
        assert np.allclose(p_dd[np.ix_(place, place)], getattr(other, name), atol=2e-3), name


def test_knowledge_holds_exactly_in_every_answer(frame, talking):
    result = gb.infer(frame, weights=talking, **KNOWN)
    check_laws(result)
    a, b, c, d, e = range(5)
    for i, j in [(a, c), (d, e), (a, d), (a, e), (b, c), (b, e)]:  # required, or from the first tier to the second
        assert result.directions[i, j] == result.compelled[i, j] == 1
        assert result.directions[j, i] == result.compelled[j, i] == 0
        assert result.ancestors[j, i] == 0
    assert result.ancestors[a, c] == result.ancestors[d, e] == 1
    for graph in (result.dag(), result.cpdag()):
        assert {("a", "c"), ("d", "e")} <= set(graph.directed_edges())
        assert not graph.adjacency[c:, :c].any()
        assert not graph.adjacency[b, d]


def test_constant_columns_are_nobodys_cause(frame, talking):
    result = gb.infer(frame.assign(z=1.0), weights=talking)
    check_laws(result)
    assert not result.ancestors[-1].any()
    assert not result.ancestors[:, -1].any()
    assert not result.hidden_causes[-1].any()


def test_a_result_with_all_answers_comes_back(frame, talking, tmp_path):
    result = gb.infer(frame, weights=talking)
    result.save(tmp_path / "out")
    again = Result.load(tmp_path / "out")
    for name, p_dd in matrices(result).items():
        assert np.allclose(p_dd, getattr(again, name), atol=1e-6), name
    assert again.dag() == result.dag()
    assert again.cpdag() == result.cpdag()


def test_many_tables_get_the_answers_of_each(frame, talking):
    gappy = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    tables = [frame, gappy, frame[["a", "b", "c"]], frame]
    for one, table in zip(gb.infer_many(tables, weights=talking), tables, strict=True):
        alone = gb.infer(table, weights=talking)
        for name, p_dd in matrices(alone).items():
            assert np.allclose(p_dd, getattr(one, name), atol=2e-3), name


def test_arrows_are_counted_as_the_graph_of_a_resample_draws_them(frame, talking, monkeypatch):
    """Every resample is the table itself: shares are 0 or 1, and those of its graph."""
    monkeypatch.setattr(
        "graphbam.inference.stability.draw_resamples", lambda rng, n, n_rows: np.tile(np.arange(n_rows), (n, 1))
    )
    result = gb.infer(frame, weights=talking, stability=2, **KNOWN)
    graph = result.cpdag()
    assert graph.directed_edges()
    assert np.array_equal(result.arrow_stability, graph.adjacency > graph.adjacency.T)
    assert np.array_equal(result.stability, result.skeleton().adjacency)


class Heard:
    """Weights that remember the marks they were given."""

    def __init__(self, loaded):
        self.loaded, self.marks = loaded, []
        self.name, self.header, self.network = loaded.name, loaded.header, loaded.network
        self.reads_marks = self.gives_answers = True

    def answer(self, x_bmd, rows=None, marks_bmd=None):
        self.marks.append(marks_bmd)
        return self.loaded.answer(x_bmd, rows, marks_bmd)

    def probabilities(self, x_bmd, rows=None, marks_bmd=None):
        return self.answer(x_bmd, rows, marks_bmd).classes


def test_missing_cells_and_set_cells_reach_the_network_as_such(frame, talking):
    heard = Heard(talking)
    gaps, was_set = np.random.default_rng(3).random((2, *frame.shape)) < 0.15
    gb.infer(frame, weights=heard)
    gb.infer(frame.mask(gaps), weights=heard, interventions=was_set, stability=2)
    whole, marked, resampled = heard.marks
    assert whole is None
    assert (marked[0] & MISSING > 0).sum(0).tolist() == gaps.sum(0).tolist()
    assert (marked[0] & SET > 0).sum(0).tolist() == was_set.sum(0).tolist()
    assert (marked[0] == MISSING + SET).sum(0).tolist() == (gaps & was_set).sum(0).tolist()
    assert resampled.shape == (2, 76, 5)
    assert resampled.any()


def test_marks_change_the_answer_and_empty_marks_do_not(frame, talking):
    x_bmd = torch.tensor(frame.to_numpy())[None].float()
    nothing, some = torch.zeros(1, 120, 5, dtype=torch.uint8), torch.zeros(1, 120, 5, dtype=torch.uint8)
    some[:, :40, 1] = SET
    plain, empty, marked = (talking.answer(x_bmd, None, marks) for marks in (None, nothing, some))
    assert all(torch.allclose(p, q, atol=1e-6) for p, q in zip(plain, empty, strict=True))
    assert not torch.allclose(plain.direction, marked.direction, atol=1e-4)


def test_what_stands_in_a_missing_cell_does_not_matter(frame, talking):
    """Gaps, infinite values and codes for missing ones are one and the same."""
    gaps = np.random.default_rng(4).random(frame.shape) < 0.1
    answers = [gb.infer(frame.mask(gaps, other), weights=talking) for other in (np.nan, np.inf, -999.0)]
    for name, p_dd in matrices(answers[0]).items():
        assert all(np.array_equal(p_dd, getattr(one, name)) for one in answers[1:]), name


def test_the_two_steps_of_the_paper_stay_available(collider_frame, talking):
    result = gb.infer(collider_frame, weights=talking, directions="two-step", colliders=Contrast())
    assert result.directions is None
    assert result.colliders is not None
    assert result.provenance["directions"] == "two-step"
    assert result.hidden_causes is not None
    assert is_dag(result.dag().adjacency)
    named = gb.infer(collider_frame, weights=talking, colliders=Contrast())
    assert np.array_equal(named.arrow_probabilities, result.arrow_probabilities)


def test_directions_can_be_left_out(frame, talking):
    result = gb.infer(frame, weights=talking, directions="none")
    assert not result.has_directions
    assert result.graph() == result.skeleton()


@each("settings, says", [
    ({"interventions": np.zeros((120, 5))}, "cannot tell cells that were set"),
    ({"directions": "one-pass"}, "say nothing of directions"),
    ({"directions": "two-step", "colliders": None}, "needs the second network"),
    ({"directions": "both"}, "directions='both' is not known; choose from auto, one-pass, two-step, none"),
])  # fmt: skip
def test_what_weights_cannot_do_is_refused(frame, tiny_path, settings, says):
    with pytest.raises(ConfigError, match=says):
        gb.infer(frame, weights=tiny_path, **settings)


def test_calibration_of_each_answer_is_applied(frame, talking):
    x_bmd = torch.tensor(frame.to_numpy())[None].float()
    hidden_bdd = talking.logits(x_bmd)[..., 5].double()
    assert torch.allclose(talking.answer(x_bmd).hidden, (hidden_bdd / 2 - 1).sigmoid())


# ── experiments ───────────────────────────────────────────────────────────────────────────────────────────


def test_an_experiment_tells_apart_what_it_sets_and_what_it_does_not(frame):
    set_md = np.zeros((120, 5), dtype=bool)
    set_md[:30, [0, 1]] = True  # together: of these two it says nothing
    set_md[30:50, 2] = True
    apart_dd = pairs_set_apart(prepare(read_experiment(frame, set_md)))
    expected = {(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4)}
    assert {(int(i), int(j)) for i, j in np.argwhere(np.triu(apart_dd))} == expected
    assert np.array_equal(apart_dd, apart_dd.T)
    assert pairs_set_apart(prepare(read_experiment(frame, None))) is None


@pytest.mark.parametrize("seed", range(6))
def test_what_an_experiment_tells_is_directed_whatever_is_believed(seed):
    rng = np.random.default_rng(seed)
    d = 6
    p_dd3 = rng.dirichlet([1, 1, 0.3], size=(d, d))
    directions, compelled, told = rng.random((3, d, d))
    said = {"directions": directions, "compelled": compelled / 2, "experiments": told < 0.3}
    result = Result(tuple("abcdef"), p_dd3, **said)
    for cut in ({}, {"fdr": 0.2}, {"threshold": 0.3}):
        graph = result.cpdag(**cut)
        assert graph.skeleton() == result.skeleton(**cut)
        assert is_dag(graph.to_dag().adjacency)
        is_open = (graph.adjacency > 0) & (graph.adjacency.T > 0)
        assert not (is_open & result.experiments).any()
    assert Result.from_dict(result.to_dict()).cpdag() == result.cpdag()


def test_cells_that_were_set_say_nothing_of_causes_and_much_of_effects():
    """In a chain, half of the rows with its middle set: what no table alone can tell is certain."""
    rng = np.random.default_rng(0)
    a, noise, free, more = rng.normal(size=(4, 400))
    was_set = np.arange(400) < 200
    b = np.where(was_set, 1.5 * free, a + 0.6 * noise)
    table = pd.DataFrame({"a": a, "b": b, "c": b + 0.7 * more, "d": rng.normal(size=400)})
    target = np.where(was_set, "b", "")
    result = gb.infer(table.assign(target=target), interventions="target")
    assert result.cpdag().directed_edges() == [("a", "b"), ("b", "c")]
    assert result.directions[0, 1] > 0.95
    assert result.directions[1, 2] > 0.95
    without = gb.infer(table, independent_rows=True)
    assert without.cpdag().directed_edges() == []
    assert without.directions[0, 1] < 0.9


def test_the_call_that_gives_the_answer_again_names_no_second_network(frame, talking):
    changed = gb.infer(frame, weights=talking).provenance["changed"]
    assert changed.keys() == {"weights"}
    assert gb.infer(frame, weights=talking, directions="none").provenance["changed"]["directions"] == "none"
