"""What the collider network is asked, by definition; and its answers as claims."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphbam.directions.immoralities import read_probabilities
from graphbam.directions.questions import Question, claim_table, find_questions
from graphbam.errors import GraphError
from graphbam.graphs.graph import edge_classes, v_structures
from ingredients import CHAIN, certain, law, numbers, p_of, sizes
from oracle import all_dags


@law
@given(numbers, sizes, st.floats(0.05, 0.95))
def test_questions_by_their_definition(draw, d, threshold):
    p_dd3 = read_probabilities(draw.probabilities(d))
    skeleton_dd, moral_dd = p_dd3[..., 1] >= threshold, p_dd3[..., 2] >= threshold
    expected = []
    for a, b in itertools.combinations(range(d), 2):
        others = [c for c in range(d) if c not in (a, b)]
        both = [c for c in others if skeleton_dd[a, c] and skeleton_dd[b, c]]
        one = [c for c in others if skeleton_dd[a, c] != skeleton_dd[b, c]]
        if moral_dd[a, b] and both:
            expected.append((a, b, both, one))
    found = find_questions(p_dd3, threshold)
    assert [(s.a, s.b, s.candidates.tolist(), s.neighbours.tolist()) for s in found] == expected
    assert [s[:2] for s in find_questions(p_dd3, skeleton_dd=skeleton_dd, moral_threshold=threshold)] == [
        s[:2] for s in expected if not skeleton_dd[s[0], s[1]]
    ]


def test_every_v_structure_is_asked_about():
    for dag in all_dags(4):
        asked = {(s.a, c, s.b) for s in find_questions(certain(edge_classes(dag))) for c in s.candidates.tolist()}
        assert {tuple(row) for row in v_structures(dag).tolist()} <= asked


def test_answers_must_match_the_candidates():
    with pytest.raises(ValueError, match="shorter"):
        claim_table([Question(0, 1, np.array([2, 3]), np.array([4]))], [[0.5]])


def test_a_skeleton_of_another_size_is_refused():
    with pytest.raises(GraphError, match="2 variables"):
        find_questions(p_of(CHAIN), skeleton_dd=np.zeros((2, 2)))
