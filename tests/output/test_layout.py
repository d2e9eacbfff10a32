"""Layouts: inside the page, repeatable, linked variables near each other, boxes apart."""

from __future__ import annotations

import numpy as np

import graphbam as gb
from cases import each
from graphbam.output.layout import lay_out, separate

GRAPHS = {
    "one": np.zeros((1, 1)),
    "none linked": np.zeros((7, 7)),
    "pair": np.array([[0, 1], [1, 0]]),
    "star": np.pad(np.ones((1, 11)), ((0, 11), (1, 0))),
    "chain": np.eye(9, k=1),
    "ring": np.eye(8, k=1) + np.eye(8, k=-7),
    "complete": 1 - np.eye(6),
    "many pairs": np.kron(np.eye(20), [[0, 1], [0, 0]]),
    "thirty": gb.simulate(n_variables=30, n_samples=2, degree=2, seed=1)[0].adjacency,
    "crowd": gb.simulate(n_variables=150, n_samples=2, degree=2, seed=1)[0].adjacency,
}


@each("name", GRAPHS)
def test_everything_is_on_the_page_and_nothing_coincides(name):
    place_d2 = lay_out(GRAPHS[name])
    assert np.isfinite(place_d2).all()
    assert place_d2.min() >= 0
    assert place_d2.max() <= 1
    assert len({tuple(place) for place in place_d2.round(3)}) == len(place_d2)
    assert np.array_equal(place_d2, lay_out(GRAPHS[name]))


@each("name", ["chain", "ring", "many pairs", "thirty", "crowd"])
def test_linked_variables_are_nearer_than_others(name):
    place_d2 = lay_out(GRAPHS[name]) * [1.5, 1.0]
    far_dd = np.linalg.norm(place_d2[:, None] - place_d2, axis=-1)
    linked_dd = (GRAPHS[name] + GRAPHS[name].T) > 0
    others_dd = ~linked_dd & ~np.eye(len(place_d2), dtype=bool)
    assert np.median(far_dd[linked_dd]) < 0.6 * np.median(far_dd[others_dd])


def test_boxes_are_pushed_apart_and_stay_inside():
    rng = np.random.default_rng(0)
    half_d2 = np.stack([rng.uniform(10, 40, 30), np.full(30, 9.0)], axis=1)
    place_d2 = separate(rng.uniform(100, 300, (30, 2)), half_d2, (700, 450))
    gap_dd2 = np.abs(place_d2[:, None] - place_d2) - half_d2[:, None] - half_d2
    clash_dd = (gap_dd2 < -0.5).all(axis=-1) & ~np.eye(30, dtype=bool)
    assert not clash_dd.any()
    assert (place_d2 - half_d2 > -1e-6).all()
    assert (place_d2 + half_d2 < np.array([700, 450]) + 1e-6).all()
