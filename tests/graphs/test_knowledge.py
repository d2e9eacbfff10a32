"""Prior knowledge: enforced exactly, contradictions refused by name."""

from __future__ import annotations

import itertools
import json
import pickle

import networkx as nx
import numpy as np
import pytest

from cases import SEEDS, each
from graphbam.errors import KnowledgeError
from graphbam.graphs.knowledge import Knowledge, find_cycle, read_edge

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(params=SEEDS)
def p_dd3(request):
    p = np.random.default_rng(request.param).dirichlet([1, 1, 1], size=(4, 4))
    return (p + p.transpose(1, 0, 2)) / 2


def test_forbidden_is_exactly_zero_and_keeps_the_other_proportion(p_dd3):
    after = Knowledge(forbidden=[("a", "b")]).apply(NAMES, p_dd3)
    assert after[0, 1, 1] == after[1, 0, 1] == 0.0
    assert after[0, 1].sum() == pytest.approx(1, abs=1e-15)
    assert after[0, 1, 0] / after[0, 1, 2] == pytest.approx(p_dd3[0, 1, 0] / p_dd3[0, 1, 2])


def test_required_is_exactly_one(p_dd3):
    after = Knowledge(required=["c -> b"]).apply(NAMES, p_dd3)
    assert after[1, 2].tolist() == after[2, 1].tolist() == [0.0, 1.0, 0.0]


def test_prior_odds_multiply_the_odds(p_dd3):
    after = Knowledge(prior_odds={("a", "d"): 3.0}).apply(NAMES, p_dd3)
    before, now = p_dd3[0, 3, 1], after[0, 3, 1]
    assert now / (1 - now) == pytest.approx(3 * before / (1 - before))
    assert after[0, 3, 0] / after[0, 3, 2] == pytest.approx(p_dd3[0, 3, 0] / p_dd3[0, 3, 2])


def test_all_other_pairs_stay(p_dd3):
    knowledge = Knowledge(
        forbidden=["a -- b"], required=["b -> c"], tiers=[["a", "b"], ["c"]], prior_odds=[("a", "d", 2)]
    )
    after = knowledge.apply(NAMES, p_dd3)
    for i, j in [(0, 2), (1, 3)]:
        assert np.array_equal(after[i, j], p_dd3[i, j])
    assert after[2, 3].tolist() == [p_dd3[2, 3, 0] + p_dd3[2, 3, 2], p_dd3[2, 3, 1], 0.0]  # c, the last, has d alone
    assert np.array_equal(after, after.transpose(1, 0, 2))


def test_directions_and_tiers_leave_probabilities_alone(p_dd3):
    knowledge = Knowledge(forbidden=["a -> b"], tiers={"a": 1, "c": 2})
    assert np.array_equal(knowledge.apply(NAMES, p_dd3), p_dd3)
    assert knowledge.forbids("c", "a")
    assert not knowledge.forbids("a", "c")


KNOWN = [
    {"tiers": [["d"], ["a", "b", "c"]]},
    {"tiers": [["d"], ["a", "b", "c"]], "within_tiers": False},
    {"tiers": [["a"], ["b"], ["c"], ["d"]]},
    {"tiers": [["a"], ["b", "d"]], "forbidden": ["d -> c", "b -> d"]},
    {"forbidden": ["c -- d", "b -- d", "a -- c"]},
    {"required": ["a -> b", "d -> c"], "forbidden": ["b -> c"]},
    {"required": ["a -- b"], "prior_odds": [("b", "c", 2)]},
    {"prior_odds": [("a", "b", 2)]},
]


@each("known", KNOWN)
def test_nothing_is_moral_without_a_possible_child(p_dd3, known):
    knowledge = Knowledge(**known)
    after = knowledge.apply(NAMES, p_dd3)
    assert np.array_equal(after, after.transpose(1, 0, 2))
    assert np.allclose(after.sum(axis=2), 1, atol=1e-15)
    spoken = {frozenset(pair) for pair in knowledge.forbidden_pairs()} | {edge.pair for edge in knowledge.required}
    spoken |= {frozenset(row[:2]) for row in knowledge.prior_odds}
    for i, j in itertools.combinations(range(4), 2):
        pair = {NAMES[i], NAMES[j]}
        arrows = [[(parent, child) for parent in pair] for child in set(NAMES) - pair]
        has_child = any(not any(knowledge.forbids(*way) for way in two) for two in arrows)
        assert has_child or after[i, j, 2] == 0.0
        if frozenset(pair) not in spoken:
            assert after[i, j, 1] == p_dd3[i, j, 1]
            assert not has_child or np.array_equal(after[i, j], p_dd3[i, j])


def test_a_child_outside_the_table_is_not_excluded(p_dd3):
    assert np.array_equal(Knowledge(tiers=[["a"], ["b"]]).apply(NAMES[:2], p_dd3[:2, :2]), p_dd3[:2, :2])


def test_both_directions_forbidden_is_no_edge():
    assert Knowledge(forbidden=["a -> b", "b -> a"]).forbidden_pairs() == [("a", "b")]
    assert Knowledge(forbidden=["b -> a"], tiers=[["b"], ["a"]]).forbidden_pairs() == [("a", "b")]


def test_closed_tiers_forbid_edges_inside():
    knowledge = Knowledge(tiers=[["a", "b"], ["c"]], within_tiers=False)
    assert knowledge.forbidden_pairs() == [("a", "b")]


def test_a_certain_edge_can_be_forbidden():
    p = np.tile([0.0, 1.0, 0.0], (2, 2, 1))
    assert Knowledge(forbidden=["a -- b"]).apply(["a", "b"], p)[0, 1].tolist() == [1.0, 0.0, 0.0]


def test_directions_follow_from_what_is_excluded():
    knowledge = Knowledge(required=["a -- b", "c -- d"], tiers=[["b"], ["a"]], forbidden=["d -> c"])
    assert sorted(knowledge.arrows()) == [("b", "a"), ("c", "d")]


def is_possible(arrows, tier_of):
    """Whether arrows close no cycle and lead to no earlier tier, by walking along all of them."""
    graph = nx.DiGraph(arrows)
    back = ((a, b) for a in graph for b in nx.descendants(graph, a) if a in tier_of and b in tier_of)
    return nx.is_directed_acyclic_graph(graph) and all(tier_of[a] <= tier_of[b] for a, b in back)


@each("seed", range(60))
def test_an_arrow_is_excluded_where_it_goes_with_no_graph(seed):
    rng, names = np.random.default_rng(seed), [*NAMES, "e"]
    arrows = [tuple(two) for two in rng.permutation(list(itertools.permutations(names, 2)))[: 1 + seed % 4].tolist()]
    tiers = {name: int(rng.integers(3)) for name in names if rng.random() < 0.5}
    told = {"required": [(a, "->", b) for a, b in arrows], "tiers": tiers}
    if not is_possible(arrows, tiers):
        with pytest.raises(KnowledgeError, match="required"):
            Knowledge(**told)
        return
    knowledge = Knowledge(**told)
    after_dd = knowledge.after_matrix(names)
    for (i, a), (j, b) in itertools.permutations(enumerate(names), 2):
        assert knowledge.forbids(a, b) == after_dd[i, j] == (not is_possible([*arrows, (a, b)], tiers)), (a, b)


def test_one_direction_tells_another():
    knowledge = Knowledge(required=["a -> b", "b -- c", "c -- d"], tiers=[["d"], ["c"], ["a"]])
    assert sorted(knowledge.arrows()) == [("a", "b"), ("c", "b"), ("d", "c")]  # b is no earlier than a
    with pytest.raises(KnowledgeError, match="c is forbidden and has prior odds"):
        Knowledge(required=["a -> b", "b -> c"], forbidden=["a -> c"], prior_odds=[("a", "c", 2)])


CONTRADICTIONS = {
    "required and forbidden": ({"required": ["a -- b"], "forbidden": ["b -- a"]}, "a -- b is required, but b -- a"),
    "directed, forbidden": ({"required": ["a -> b"], "forbidden": ["a -> b"]}, "a -> b is required, but a -> b"),
    "both ways forbidden": ({"required": ["a -- b"], "forbidden": ["a -> b", "b -> a"]}, "a -> b and b -> a"),
    "against tiers": ({"required": ["a -> b"], "tiers": [["b"], ["a"]]}, "'a' is in tier 2 and 'b' in tier 1"),
    "inside a closed tier": ({"required": ["a -- b"], "tiers": [["a", "b"]], "within_tiers": False}, "are in tier 1"),
    "cycle": ({"required": ["a -> b", "b -> c", "c -> a"]}, "close a cycle: a -> b -> c -> a"),
    "cycle through a tier": ({"required": ["a -- b", "b -> c", "c -> a"], "tiers": [["a"], ["b"]]}, "runs|cycle"),
    "back in time": ({"required": ["a -> b", "b -> c"], "tiers": [["c"], ["a"]]}, "from 'a', in tier 2, back"),
    "two directions": ({"required": ["a -> b", "b -> a"]}, "close a cycle"),
    "two tiers": ({"tiers": [["a"], ["b", "a"]]}, "'a' is in tier 1 and in tier 2"),
    "odds of a required edge": ({"required": ["a -- b"], "prior_odds": [("a", "b", 2)]}, "is required and has"),
    "odds of a forbidden edge": ({"forbidden": ["a -- b"], "prior_odds": [("b", "a", 2)]}, "is forbidden and has"),
    "odds twice": ({"prior_odds": [("a", "b", 2), ("b", "a", 3)]}, "prior odds twice"),
    "odds of zero": ({"prior_odds": {("a", "b"): 0}}, "positive number"),
    "infinite odds": ({"prior_odds": {("a", "b"): float("inf")}}, "positive number"),
    "odds in words": ({"prior_odds": {("a", "b"): "high"}}, "positive number"),
    "odds with a direction": ({"prior_odds": {"a -> b": 2}}, "has a direction"),
    "a loop": ({"required": ["a -> a"]}, "to itself"),
    "not an edge": ({"required": ["a > b"]}, "is not an edge"),
    "three names": ({"forbidden": [("a", "b", "c")]}, "is not an edge"),
    "a number": ({"forbidden": 7}, "not a list of edges"),
    "flat tiers": ({"tiers": ["a", "b"]}, "must be a list of lists"),
    "tiers in words": ({"tiers": {"a": 0, "b": "late"}}, "the tier of 'b' is 'late'; it must be a number"),
    "a tier of None": ({"tiers": {"a": 0, "b": None}}, "the tier of 'b' is None; it must be a number"),
    "a tier of NaN": ({"tiers": {"a": 0, "b": float("nan")}}, "the tier of 'b' is nan; it must be a number"),
    "tiers as a number": ({"tiers": 5}, "tiers=5 must be a list of lists"),
    "tiers as numbers": ({"tiers": [1, 2]}, "must be a list of lists"),
    "no tier in tiers": ({"tiers": [["a"], None]}, "must be a list of lists"),
    "odds as a number": ({"prior_odds": 5}, "prior_odds=5 is not a list of priors"),
    "odds in one word": ({"prior_odds": "a -- b"}, "prior_odds='a -- b' is not a list of priors"),
    "odds without names": ({"prior_odds": [1]}, "1 is not a prior"),
    "odds of a number": ({"prior_odds": [[1, 2]]}, "1 is not an edge"),
    "odds as a mapping each": ({"prior_odds": [{"a": 1, "b": 2}]}, "is not a prior"),
    "a number as an edge": ({"required": [1]}, "1 is not an edge"),
    "None as an edge": ({"required": [None]}, "None is not an edge"),
    "a mapping as an edge": ({"required": [{"from": "a", "to": "b"}]}, "is not an edge"),
    "a flag in quotes": ({"within_tiers": "false"}, "within_tiers is 'false', .* Write true or false, unquoted"),
    "no flag": ({"within_tiers": None}, "within_tiers is None"),
    "an unknown kind": ({"forbiden": []}, "'forbiden' is not a kind of knowledge"),
}  # fmt: skip


@each(("values", "says"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_contradictions_are_refused_with_the_culprit(values, says):
    with pytest.raises(KnowledgeError, match=says):
        Knowledge.from_dict(values)


def test_unknown_names_are_refused_with_a_guess(p_dd3):
    with pytest.raises(KnowledgeError, match=r"'protein_A', which the table does not have. Did you mean 'protein_a'"):
        Knowledge(forbidden=[("protein_A", "x")]).apply(["protein_a", "x"], p_dd3[:2, :2])
    with pytest.raises(KnowledgeError, match=r"does not have. It has 'a', 'b'\.$"):
        Knowledge(forbidden=[("a", "zebra")]).apply(["a", "b"], p_dd3[:2, :2])


def test_json_and_pickle_round_trip(tmp_path):
    knowledge = Knowledge(["a -- b"], ["c -> d"], {"c": 0, "d": 5}, {("a", "c"): 2.5}, within_tiers=False)
    (tmp_path / "k.json").write_text(json.dumps(knowledge.to_dict()))
    assert Knowledge.from_json(tmp_path / "k.json") == knowledge
    assert pickle.loads(pickle.dumps(knowledge)) == knowledge
    assert knowledge
    assert not Knowledge()


@pytest.mark.parametrize(("text", "says"), [("{", "is not JSON"), ("[]", "must be an object")])
def test_bad_files_are_refused(tmp_path, text, says):
    (tmp_path / "k.json").write_text(text)
    with pytest.raises(KnowledgeError, match=says):
        Knowledge.from_json(tmp_path / "k.json")
    with pytest.raises(KnowledgeError, match="cannot be read"):
        Knowledge.from_json(tmp_path / "none.json")
    with pytest.raises(KnowledgeError, match="the path of prior knowledge is empty"):
        Knowledge.from_json("")


def test_names_with_dashes_need_the_long_spelling():
    assert read_edge(("x -- y", "->", "z")).a == "x -- y"
    assert read_edge("IL-6 -> CRP") == ("IL-6", "CRP", True)


@each("seed", range(20))
def test_cycles_are_found_exactly_when_there_are_some(seed):
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(seed)
    arrows = [(str(a), str(b)) for a, b in rng.integers(0, 8, size=(7, 2)) if a != b]
    cycle = find_cycle(arrows)
    assert bool(cycle) != networkx.is_directed_acyclic_graph(networkx.DiGraph(arrows))
    assert all(step in arrows for step in itertools.pairwise(cycle))
    assert not cycle or cycle[0] == cycle[-1]
