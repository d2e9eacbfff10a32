"""`infer` and `infer_many`: the promises a user relies on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import graphbam as gb
from cases import each
from graphbam.errors import ConfigError, KnowledgeError, TableError
from graphbam.graphs.graph import SKELETON, skeleton
from graphbam.inference.journey import MOST_NEIGHBOURS
from graphbam.nn.weights import Header
from graphbam.result import Failure, Result
from graphbam.simulation import SimulationConfig, sample_tables
from graphbam.tables.read import read_table
from standins import Failing, PartialCorrelation, Spy


def by_name(result):
    """Probabilities as a table that does not depend on column order."""
    return {
        (a, b): result.probabilities[i, j]
        for i, a in enumerate(result.names)
        for j, b in enumerate(result.names)
    }  # fmt: skip


def largest_difference(first, second):
    first, second = by_name(first), by_name(second)
    assert first.keys() == second.keys()
    return max(np.abs(first[key] - second[key]).max() for key in first)


# ── promises ────────────────────────────────────────────────────────────────────────────────────────────


def test_same_table_same_answer(frame, weights):
    first, second = (gb.infer(frame, weights=weights, stability=5) for _ in range(2))
    assert np.array_equal(first.probabilities, second.probabilities)
    assert np.array_equal(first.stability, second.stability)


@each("settings", [{}, {"max_rows": 50}, {"max_rows": 50, "large": "average"}])
def test_row_order_does_not_matter(frame, weights, settings):
    first = gb.infer(frame, weights=weights, stability=5, **settings)
    second = gb.infer(frame.sample(frac=1, random_state=3), weights=weights, stability=5, **settings)
    assert np.array_equal(first.probabilities, second.probabilities)
    assert np.array_equal(first.stability, second.stability)


@each("settings", [{}, {"max_rows": 50}, {"max_rows": 50, "large": "average"}])
def test_column_order_does_not_matter(frame, weights, settings):
    first = gb.infer(frame, weights=weights, **settings)
    assert largest_difference(first, gb.infer(frame[list("cebda")], weights=weights, **settings)) < 1e-5


@each("settings", [{}, {"max_rows": 50}])
def test_units_do_not_matter(frame, weights, settings):
    first = gb.infer(frame, weights=weights, **settings)
    second = gb.infer(frame * [1e6, 1e-6, 3, 1, 0.1] + [0, 5, 0, 1e3, -2], weights=weights, **settings)
    assert largest_difference(first, second) < 1e-5


def test_a_proper_answer(frame, weights):
    result = gb.infer(frame, weights=weights)
    assert isinstance(result, Result)
    assert result.probabilities.shape == (5, 5, 3)
    assert np.allclose(result.probabilities.sum(axis=-1), 1, atol=1e-12)
    assert np.array_equal(result.probabilities, result.probabilities.transpose(1, 0, 2))


def test_the_right_links_are_found(frame):
    found = set(gb.infer(frame, weights=PartialCorrelation()).skeleton(0.6).undirected_edges())
    assert {("a", "b"), ("b", "c")} <= found
    assert ("a", "e") not in found


def test_seeds_change_the_draw_and_nothing_else(frame):
    weights = PartialCorrelation()
    answers = [gb.infer(frame, weights=weights, max_rows=50, seed=s).probabilities for s in (0, 1)]
    assert not np.array_equal(*answers)
    answers = [gb.infer(frame, weights=weights, seed=s).probabilities for s in (0, 1)]
    assert np.array_equal(*answers)


def test_averaging_uses_every_draw(frame):
    spy = Spy()
    result = gb.infer(frame, weights=spy, max_rows=50, large="average")
    assert spy.shapes == [(3, 40, 5)]
    assert result.provenance["n_rows_used"] == 120


def test_the_smallest_table(weights):
    x_md = np.array([[1.0, 2.0], [2.0, 5.0], [3.0, 1.0], [5.0, 4.0]])
    result = gb.infer(x_md, weights=weights)
    assert result.probabilities.shape == (2, 2, 3)
    assert "only 4 rows" in result.warnings[0]
    with pytest.raises(TableError, match="found 3 sample"):
        gb.infer(x_md[:3], weights=weights)


def test_constant_columns_have_no_links_and_change_nothing(frame, weights):
    result = gb.infer(frame.assign(k=1.0)[list("akbcde")], weights=weights)
    assert np.array_equal(result.probabilities[1], np.tile([1.0, 0.0, 0.0], (6, 1)))
    others = [0, 2, 3, 4, 5]
    expected = gb.infer(frame, weights=weights).probabilities
    assert np.array_equal(result.probabilities[np.ix_(others, others)], expected)


def test_changes_and_provenance_are_reported(frame, weights):
    frame.loc[3, "a"] = np.nan
    result = gb.infer(frame.assign(flag=frame["a"] > 0), weights=weights, drop="e")
    assert [c.split(":")[0] for c in result.changes] == [
        "left out as asked", "column 'flag'", "1 row of 120 with missing values left out",
    ]  # fmt: skip
    assert result.provenance["n_rows"] == 120
    assert result.provenance["n_rows_used"] == 119
    assert result.provenance["weights"] in (weights.name, getattr(weights, "path", None))


def test_a_sample_of_what_the_network_saw_is_kept(frame, weights):
    frame["flat"] = 3.0
    result = gb.infer(frame, weights=weights)
    assert result.sample.shape == (120, 6)
    assert not result.sample[:, 5].any()
    np.testing.assert_allclose(result.sample[:, :5].std(axis=0), 1, atol=1e-3)
    shuffled = gb.infer(frame.sample(frac=1, random_state=1)[[*"cabed", "flat"]], weights=weights)
    np.testing.assert_allclose(shuffled.sample[:, [1, 2, 0, 4, 3, 5]], result.sample, atol=1e-6)
    many = gb.infer_many([frame, frame[::-1]], weights=weights, large="average", max_rows=50)
    assert all(np.array_equal(one.sample, many[0].sample) for one in many)
    assert "sample" not in result.to_dict()


def test_settings_are_remembered(frame):
    frame["mood"] = ["good", "bad"] * 60
    levels = {"mood": ["bad", "good"]}
    settings = gb.infer(frame, weights=PartialCorrelation(), encode=levels, drop="e", seed=3).provenance["settings"]
    assert settings["encode"] == levels
    assert (settings["drop"], settings["seed"], settings["missing"]) == (["e"], 3, "auto")


# ── knowledge, domain, progress ─────────────────────────────────────────────────────────────────────────


def test_knowledge_is_enforced_exactly(frame, weights):
    result = gb.infer(
        frame.assign(k=1.0), weights=weights, forbidden=[("a", "b")], required=["d -> e", "a -- k"], stability=4,
        tiers=[["a"], ["b", "c"]], prior_odds={("a", "c"): 4.0},
    )  # fmt: skip
    p = by_name(result)
    assert p["a", "b"][1] == p["b", "a"][1] == 0.0
    assert p["d", "e"].tolist() == p["a", "k"].tolist() == [0.0, 1.0, 0.0]
    table = result.table().set_index(["a", "b"])["stability"]
    assert table["a", "b"] == 0.0
    assert table["d", "e"] == table["a", "k"] == 1.0
    assert result.knowledge.tiers == (("a",), ("b", "c"))
    assert any("a -- k is required" in w for w in result.warnings)


def test_an_order_in_time_of_one_step_is_told_to_say_nothing(frame, weights):
    def told(**known):
        return [w for w in gb.infer(frame, weights=weights, **known).warnings if "order in time" in w]

    assert "one step only, columns 'a', 'b', and says nothing" in told(tiers=[["a", "b"]])[0]
    assert told(tiers={"a": 0}) == told(tiers=[["a"], []]) != []
    assert told(tiers=[["a"], ["b"]]) == told(knowledge={"tiers": [["a", "b"]], "within_tiers": False}) == told() == []


def test_knowledge_comes_whole_or_in_parts(frame, tmp_path):
    weights = PartialCorrelation()
    (tmp_path / "k.json").write_text('{"forbidden": ["a -- b"]}')
    ways = [
        {"forbidden": ["a -- b"]},
        {"knowledge": {"forbidden": ["a -- b"]}},
        {"knowledge": gb.Knowledge(forbidden=["a -- b"])},
        {"knowledge": tmp_path / "k.json"},
    ]
    answers = [gb.infer(frame, weights=weights, **way).probabilities for way in ways]
    assert all(np.array_equal(answers[0], answer) for answer in answers)
    with pytest.raises(ConfigError, match="whole and in parts"):
        gb.infer(frame, weights=weights, knowledge=ways[2]["knowledge"], required=["a -- c"])
    with pytest.raises(KnowledgeError, match="'z', which the table does not have"):
        gb.infer(frame, weights=weights, forbidden=["a -- z"])


def test_domain_meter(frame):
    assert gb.infer(frame, weights=PartialCorrelation()).domain["verdict"] is None
    near = PartialCorrelation(header=Header(domain={"n_samples": (50, 500)}))
    assert gb.infer(frame, weights=near).domain["verdict"] == "inside"
    far = PartialCorrelation(header=Header(domain={"n_samples": (500, 900)}))
    result = gb.infer(frame, weights=far)
    assert result.domain["verdict"] == "outside"
    assert "unlike training: number of rows is 120" in result.warnings[0]


class Loose(PartialCorrelation):
    """Links for all pairs whose partial correlation is at least so large."""

    def __init__(self, at_least):
        super().__init__()
        self.at_least = at_least

    def probabilities(self, x_bmd, rows=None):
        p_bdd3 = super().probabilities(x_bmd, rows)
        is_link = p_bdd3[..., SKELETON] >= self.at_least
        return torch.stack([~is_link, is_link, torch.zeros_like(is_link)], -1).to(p_bdd3.dtype)


@each("blocks, n_columns", [("never", 40), ("always", 40), ("always", 2001)])
def test_an_answer_denser_than_any_world_of_training_is_told_of(rng, blocks, n_columns):
    x_md = np.random.default_rng(0).normal(size=(300, n_columns))
    found = {}
    for at_least in (0.0, 2.0):
        result = gb.infer(x_md, weights=Loose(at_least), blocks=blocks, directions="none", progress=False)
        found[at_least] = [warning for warning in result.warnings if "links, " in warning]
    assert len(found[0.0]) == 1
    assert " per variable: worlds of the preset broad, from which 'edges' learned, have 15 at most" in found[0.0][0]
    assert not found[2.0]


@pytest.mark.parametrize("n_variables", [20, 50, 120])
def test_no_world_of_training_is_as_dense(rng, n_variables):
    shape = {"n_tables": 2, "n_variables": n_variables, "n_samples": 20}
    drawn = [sample_tables(rng, SimulationConfig.broad(), **shape) for _ in range(10)]
    assert (
        max(skeleton(dag_dd).sum(axis=1).mean() for one in drawn for dag_dd in one.dag_bdd.numpy()) <= MOST_NEIGHBOURS
    )


def test_progress_begins_with_an_estimate(frame, tiny_path):
    told = []
    gb.infer(frame, weights=tiny_path, stability=3, progress=lambda share, sentence: told.append((share, sentence)))
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert told[0][1] == "120 rows × 5 variables, 4 passes: less than a second"


# ── many tables ─────────────────────────────────────────────────────────────────────────────────────────


def test_many_tables_give_the_same_as_one_by_one(frame, weights):
    tables = [frame, frame[list("abc")], frame * 2, frame.head(60), frame.to_numpy()]
    for one, table in zip(gb.infer_many(tables, weights=weights, stability=3), tables, strict=True):
        alone = gb.infer(table, weights=weights, stability=3)
        assert np.allclose(one.probabilities, alone.probabilities, atol=1e-5)
        assert np.allclose(one.stability, alone.stability, atol=0.34)
        assert one.names == alone.names


def test_equal_shapes_travel_together(frame):
    spy = Spy()
    gb.infer_many([frame, frame[list("abc")], frame.sample(frac=1), frame], weights=spy)
    assert sorted(spy.shapes) == [(1, 120, 3), (3, 120, 5)]


def test_one_bad_table_does_not_lose_the_others(frame, tmp_path):
    frame.to_csv(tmp_path / "good.csv", index=False)
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3\n")
    bad, good = gb.infer_many(tmp_path, weights=PartialCorrelation())
    assert isinstance(bad, Failure)
    assert bad.source.endswith("bad.csv")
    assert "line 3, has 1 cell where" in bad.message
    assert good.names == tuple("abcde")


def test_many_tables_with_passes_and_none_at_all(frame):
    weights = PartialCorrelation()
    split = {"max_rows": 50, "large": "average"}
    many = gb.infer_many([frame, frame], weights=weights, **split)
    assert np.allclose(many[0].probabilities, gb.infer(frame, weights=weights, **split).probabilities)
    assert gb.infer_many([], weights=weights) == []
    with pytest.raises(ConfigError, match="no setting 'speed'"):
        gb.infer_many([frame], weights=weights, speed=2)


def test_a_table_that_does_not_fit_into_memory_is_one_failure(frame):
    tables = [frame[list("abc")], frame, frame[list("bcd")]]
    first, failed, last = gb.infer_many(tables, weights=Failing(MemoryError(), most=3))
    assert (first.names, last.names) == (tuple("abc"), tuple("bcd"))
    assert isinstance(failed, Failure)
    assert "120 rows × 5 variables do not fit into memory" in failed.message


def test_tables_that_do_not_fit_together_go_one_by_one(frame):
    class Narrow(Spy):
        def probabilities(self, x_bmd):
            answer = super().probabilities(x_bmd)
            if len(x_bmd) > 1:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return answer

    spy = Narrow()
    assert all(gb.infer_many([frame, frame + 1, frame * 2], weights=spy))
    assert [shape[0] for shape in spy.shapes] == [3, 1, 1, 1]


def test_a_table_too_large_to_read_is_one_failure(frame, monkeypatch):
    def read(data, **settings):
        if data is None:
            raise MemoryError
        return read_table(data, **settings)

    monkeypatch.setattr("graphbam.tables.interventions.read_table", read)
    answers = gb.infer_many([frame, None], weights=PartialCorrelation())
    assert isinstance(answers[0], Result)
    assert "does not fit into memory" in answers[1].message


def test_few_tables_are_held_at_a_time(frame, monkeypatch):
    """Tables are taken from a generator as they are needed, whether their shapes are equal or not."""
    monkeypatch.setattr("graphbam.inference.networks.CELLS_AT_ONCE", 4 * frame.size)
    taken, held = 0, []

    def draw(shapes):
        nonlocal taken
        for n_rows in shapes:
            taken += 1
            yield frame.head(n_rows)

    class Watch(Spy):
        def probabilities(self, x_bmd):
            answer = super().probabilities(x_bmd)
            held.append(taken - sum(shape[0] for shape in self.shapes[:-1]))
            return answer

    for shapes in ([120] * 20, range(101, 121)):
        taken, watch = 0, Watch()
        assert len(gb.infer_many(draw(shapes), weights=watch)) == 20
        assert sum(shape[0] for shape in watch.shapes) == 20
    assert max(held) <= 5


def test_a_mapping_gives_results_by_name(frame, tmp_path):
    tables = {"early": frame, "late": frame.head(60), "broken": [[1.0]], "gone": tmp_path / "gone.csv"}
    answers = gb.infer_many(tables, weights=PartialCorrelation())
    assert [one.source for one in answers] == list(tables)
    assert [bool(one) for one in answers] == [True, True, False, False]
    assert "1 feature" in answers[2].message
    expected = gb.infer(frame, weights=PartialCorrelation()).probabilities
    assert np.array_equal(answers[0].probabilities, expected)


def test_one_table_instead_of_many_is_refused(frame):
    for table in (frame, frame.to_numpy()):
        with pytest.raises(ConfigError, match=r"takes several tables, and this \w+ is one"):
            gb.infer_many(table, weights=PartialCorrelation())
    assert len(gb.infer_many(np.stack([frame] * 2), weights=PartialCorrelation())) == 2
