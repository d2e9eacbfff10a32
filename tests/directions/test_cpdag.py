"""Decisions: valid whatever the probabilities, exact with exact ones, and as good as promised.

The oracle is enumeration: all DAGs and Markov classes of four variables, as `test_graph` lists them.
"""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbam.directions import cpdag as decisions
from graphbam.directions.cpdag import decide, expected_shd
from graphbam.directions.immoralities import read_beliefs, read_probabilities
from graphbam.directions.orientation import direct_edges, orient
from graphbam.directions.questions import claim_table, find_questions
from graphbam.errors import GraphError, KnowledgeError
from graphbam.graphs.cut import Cut
from graphbam.graphs.equivalence import consistent_extension, is_cpdag
from graphbam.graphs.graph import edge_classes, is_dag, skeleton, v_structures
from graphbam.graphs.metrics import shd
from ingredients import (
    CHAIN,
    CUTS,
    SQUARE,
    Numbers,
    certain,
    complete,
    edges_of,
    few,
    forbidding,
    law,
    numbers,
    p_of,
    sizes,
    unshielded,
)
from oracle import dags, markov_classes, random_dag, union

# ── valid whatever the probabilities ───────────────────────────────────────────────────────────────────


@settings(max_examples=1000, deadline=None, database=None)
@given(numbers, sizes, st.sampled_from([None, "fdr", "threshold"]), st.floats(0.01, 0.99))
def test_deciding_by_any_probabilities_gives_a_cpdag(draw, d, number, level):
    p_dd3 = draw.probabilities(d)
    result = decide(p_dd3, draw.claims(complete(d), fitting=False), Cut(**({number: level} if number else {})))
    assert is_cpdag(result.adjacency)
    assert np.isfinite(result.arrow_probability_dd).all()


def test_graphs_of_one_variable_and_none():
    assert decide(np.zeros((1, 1, 3))).adjacency.tolist() == [[0]]
    assert decide(np.zeros((0, 0, 3))).adjacency.shape == (0, 0)
    assert orient(np.zeros((0, 0))).adjacency.shape == (0, 0)


@few
@given(st.integers(2, 8), st.integers(0, 2**32), st.sampled_from(CUTS))
def test_decisions_follow_the_variables(d, seed, cut):
    rng = np.random.default_rng(seed)
    p_dd3 = Numbers(seed, "free").probabilities(d)
    triples = [triple for triple in itertools.permutations(range(d), 3) if triple[0] < triple[2]]
    claims = [(*triple, float(q)) for triple, q in zip(triples, rng.random(len(triples)), strict=True)]
    new = rng.permutation(d)
    back = np.argsort(new)
    moved = [(int(new[a]), int(new[c]), int(new[b]), q) for a, c, b, q in claims]
    first = decide(p_dd3, claims, cut)
    second = decide(p_dd3[np.ix_(back, back)], moved, cut)
    np.testing.assert_array_equal(second.adjacency[np.ix_(new, new)], first.adjacency)


# ── exact with exact probabilities ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cut", CUTS)
def test_certain_probabilities_give_the_true_cpdag_of_every_small_dag(cut):
    """Through all steps: questions, claims, decision. All 543 DAGs, grouped in their 185 classes."""
    for members in markov_classes(4):
        p_dd3 = certain(edge_classes(members[0]))
        true = {tuple(row) for row in v_structures(members[0]).tolist()}
        asked = find_questions(p_dd3)
        claims = claim_table(asked, [[(s.a, c, s.b) in true for c in s.candidates.tolist()] for s in asked])
        result = decide(p_dd3, claims, cut)
        np.testing.assert_array_equal(result.adjacency, union(members))
        assert expected_shd(result.adjacency, p_dd3, result.arrow_probability_dd) == 0


def test_moral_probabilities_alone_direct_edges():
    p_dd3 = certain(edge_classes([[0, 0, 1], [0, 0, 1], [0, 0, 0]]))
    for cut in CUTS:
        assert edges_of(decide(p_dd3, cut=cut).adjacency) == [(0, 2), (1, 2)]


# ── knowledge ──────────────────────────────────────────────────────────────────────────────────────────


@law
@given(numbers, st.integers(2, 8), st.sampled_from(CUTS))
def test_decisions_never_hold_a_forbidden_arrow(draw, d, cut):
    """Any forbidden arrows at all: pairs without direction vanish, cycles lose an edge."""
    forbidden = draw.rng.random((d, d)) < 0.4
    p_dd3 = np.minimum(draw.probabilities(d), [1, 0.999, 1])
    p_dd3[..., 0] = 1 - p_dd3[..., 1:].sum(axis=-1)
    result = decide(p_dd3, draw.claims(complete(d), fitting=False), cut, knowledge=forbidden)
    arrows = (result.adjacency > 0) & (result.adjacency.T == 0)
    assert not (arrows & forbidden).any()
    assert not ((result.adjacency & result.adjacency.T) > 0)[forbidden].any()
    assert is_dag(consistent_extension(result.adjacency))


@law
@given(dags(max_d=8, max_degree=4), numbers, st.sampled_from(CUTS))
def test_required_edges_of_a_dag_are_in_every_decision(dag, draw, cut):
    d = len(dag)
    required = [edge for edge in edges_of(dag) if draw.rng.random() < 0.5]
    p_dd3 = draw.probabilities(d)
    for i, j in required:
        p_dd3[i, j] = p_dd3[j, i] = [0, 1, 0]
    result = decide(p_dd3, draw.claims(complete(d), fitting=False), cut, knowledge=forbidding(d, required))
    assert all(result.adjacency[i, j] and not result.adjacency[j, i] for i, j in required)


def test_the_least_likely_edge_of_a_forbidden_cycle_goes():
    p_dd3 = np.zeros((3, 3, 3))
    for (i, j), p in {(0, 1): 0.9, (1, 2): 0.8, (0, 2): 0.7}.items():
        p_dd3[i, j] = p_dd3[j, i] = [1 - p, p, 0]
    around = forbidding(3, [(0, 1), (1, 2), (2, 0)])
    for cut in (Cut(), Cut(0.5)):
        assert edges_of(decide(p_dd3, (), cut, knowledge=around).adjacency) == [(0, 1), (1, 2)]
    with pytest.raises(KnowledgeError, match=r"leave no DAG with this skeleton.*cycle"):
        decide(certain(complete(3)), knowledge=around)


# ── expected distance ──────────────────────────────────────────────────────────────────────────────────


def sure(p_dd, arrow_dd):
    """Probability of each of the four ways a pair can be, in the order of `marks`."""
    return [1 - p_dd, p_dd * arrow_dd, p_dd * arrow_dd.T, p_dd * (1 - arrow_dd - arrow_dd.T)]


MARKS = [(0, 0), (1, 0), (0, 1), (1, 1)]


@few
@given(st.integers(0, 2**32))
def test_expected_distance_is_the_mean_over_all_truths(seed):
    """Enumerated over all 64 graphs of three variables, pairs being independent."""
    draw = Numbers(seed, "free")
    p_dd3 = draw.probabilities(3)
    half = draw.rng.random((3, 3)) / 2
    ways = sure(p_dd3[..., 1], half)
    pairs = list(itertools.combinations(range(3), 2))
    guess, mean = draw.graph(3), 0.0
    guess[0, 1] = 0
    for chosen in itertools.product(range(4), repeat=3):
        truth, weight = np.zeros((3, 3), dtype=int), 1.0
        for (i, j), k in zip(pairs, chosen, strict=True):
            truth[i, j], truth[j, i] = MARKS[k]
            weight *= ways[k][i, j]
        mean += weight * shd(guess, truth)
    assert expected_shd(guess, p_dd3, half) == pytest.approx(mean)


@law
@given(numbers, sizes)
def test_never_worse_than_saying_nothing(draw, d):
    p_dd3 = draw.probabilities(d)
    result = decide(p_dd3, draw.claims(complete(d), fitting=False))
    nothing = expected_shd(np.zeros((d, d)), p_dd3, result.arrow_probability_dd)
    assert expected_shd(result.adjacency, p_dd3, result.arrow_probability_dd) <= nothing + 1e-9


@few
@given(st.integers(0, 2**32), st.floats(0.3, 4))
def test_four_variables_nothing_on_the_ladder_is_better(seed, spread):
    """Every threshold on edges, spelt out: with so few pairs the ladder holds them all."""
    draw = Numbers(seed, "free")
    p_dd3 = draw.probabilities(4) ** spread
    p_dd3 /= p_dd3.sum(axis=-1, keepdims=True)
    claims = draw.claims(complete(4), fitting=False)
    result = decide(p_dd3, claims)
    arrow_dd = result.arrow_probability_dd
    chosen = expected_shd(result.adjacency, p_dd3, arrow_dd)
    for level in np.unique(p_dd3[..., 1][np.triu_indices(4, 1)]):
        if level >= 0.25:
            ladder = decide(p_dd3, claims, Cut(level)).adjacency
            beliefs = read_beliefs(p_dd3, claims)
            accepted = direct_edges(skeleton(ladder) > 0, beliefs, np.zeros((4, 4), bool), [0.5])
            assert chosen <= expected_shd(accepted[0], p_dd3, arrow_dd) + 1e-9
    best = min(expected_shd(union(members), p_dd3, arrow_dd) for members in markov_classes(4))
    assert chosen >= best - 1e-9


def test_four_variables_the_choice_is_close_to_the_best_of_all_cpdags():
    """All 185 of them. The ladder is a heuristic; this says how good it is."""
    excess, floor, empty = [], [], []
    for seed in range(60):
        draw = Numbers(seed, "free")
        dag = random_dag(draw.rng, 4, 2)
        p_dd3 = draw.probabilities(4) + 1.5 * certain(edge_classes(dag))
        p_dd3 /= p_dd3.sum(axis=-1, keepdims=True)
        result = decide(p_dd3)
        costs = [expected_shd(union(members), p_dd3, result.arrow_probability_dd) for members in markov_classes(4)]
        floor.append(min(costs))
        empty.append(expected_shd(np.zeros((4, 4)), p_dd3, result.arrow_probability_dd))
        excess.append(expected_shd(result.adjacency, p_dd3, result.arrow_probability_dd) - min(costs))
    assert np.mean(excess) < 0.02 * (np.mean(empty) - np.mean(floor))


def test_the_empty_graph_wins_where_it_is_best():
    p_dd3 = np.full((6, 6, 3), [0.55, 0.45, 0.0])
    assert not decide(p_dd3).adjacency.any()


def test_an_edge_that_can_only_be_marked_wrongly_is_left_out():
    """A square needs a collider; where none is likely, three sides without one are better than four with."""
    p_dd3 = p_of(SQUARE, 0.9)
    p_dd3[0, 1] = p_dd3[1, 0] = [0.45, 0.55, 0.0]
    result = decide(p_dd3, [(*triple, 0.01) for triple in unshielded(SQUARE)])
    path = SQUARE.copy()
    path[0, 1] = path[1, 0] = 0
    np.testing.assert_array_equal(result.adjacency, path)


def test_leaving_out_burdens_never_hurts_and_sometimes_helps(monkeypatch):
    cases = [Numbers(seed, "free").probabilities(8) for seed in range(40)]

    def costs():
        results = [(p_dd3, decide(p_dd3)) for p_dd3 in cases]
        return np.array([expected_shd(r.adjacency, p_dd3, r.arrow_probability_dd) for p_dd3, r in results])

    with_step = costs()
    monkeypatch.setattr(decisions._Choice, "_without_burdens", lambda self, best: best)
    assert (with_step <= costs() + 1e-9).all()
    assert (with_step < costs() - 1e-3).any()


def test_where_all_burdens_cannot_go_one_may():
    p_dd3 = Numbers(120, "free").probabilities(12)

    def cost():
        result = decide(p_dd3)
        return expected_shd(result.adjacency, p_dd3, result.arrow_probability_dd)

    one_by_one = cost()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decisions, "MOST_BURDENS", 0)
        assert one_by_one < cost() - 0.05


# ── false discoveries and thresholds ───────────────────────────────────────────────────────────────────


@law
@given(numbers, sizes, st.floats(0.02, 0.6))
def test_the_false_discovery_target_is_kept_on_edges_and_on_arrows(draw, d, fdr):
    p_dd3 = draw.probabilities(d)
    result = decide(p_dd3, draw.claims(complete(d), fitting=False), Cut(fdr=fdr))
    p_dd = read_probabilities(p_dd3)[..., 1]
    adjacent, arrows = skeleton(result.adjacency) > 0, (result.adjacency > 0) & (result.adjacency.T == 0)
    if adjacent.any():
        assert (1 - p_dd[adjacent]).mean() <= fdr + 1e-9
    if arrows.any() and p_dd[arrows].max() < 1:
        assert (1 - (p_dd * result.arrow_probability_dd)[arrows]).mean() <= fdr + 1e-9


def test_the_paper_takes_everything_from_the_threshold_on():
    p_dd3 = p_of(CHAIN, 0.5)
    assert edges_of(decide(p_dd3, [(0, 1, 2, 0.5)], Cut(0.5)).adjacency) == [(0, 1), (2, 1)]
    assert not decide(p_dd3, [(0, 1, 2, 0.5)], Cut(0.51)).adjacency.any()
    assert edges_of(decide(p_dd3, [(0, 1, 2, 0.4)], Cut(0.4)).adjacency) == [(0, 1), (2, 1)]


# ── refusals ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: expected_shd(np.zeros((2, 2)), p_of(CHAIN), np.zeros((3, 3))), GraphError, "2 variables"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ── speed ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_hundred_variables_are_quick():
    """Measured on one idle core: orient 0.04 s, decide 0.3 s. The bound leaves room for a busy machine."""
    rng = np.random.default_rng(0)
    dag = random_dag(rng, 100, 4)
    p_dd3 = Numbers(0, "free").probabilities(100) ** 2 + 1.5 * certain(edge_classes(dag))
    p_dd3[..., 0] += 1
    p_dd3 /= p_dd3.sum(axis=-1, keepdims=True)
    asked = find_questions(p_dd3, threshold=0.3)
    claims = claim_table(asked, [rng.random(len(s.candidates)) for s in asked])
    start = time.process_time()
    result = decide(p_dd3, claims)
    assert time.process_time() - start < 3
    assert is_cpdag(result.adjacency)
