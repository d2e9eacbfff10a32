"""Layouts: causes above effects, nothing on top of anything, the shape of the frame, the same every time."""

from __future__ import annotations

import functools
import os

import numpy as np
import pytest

import graphbam as gb
from cases import each
from graphbam.errors import GraphbamError
from graphbam.output import layout
from graphbam.output.drawing import trace
from graphbam.output.layout import lay_out

GRAPHS = {
    "one": np.zeros((1, 1)),
    "none linked": np.zeros((7, 7)),
    "pair": np.array([[0, 1], [1, 0]]),
    "star": np.pad(np.ones((1, 11)), ((0, 11), (1, 0))),
    "chain": np.eye(9, k=1),
    "undirected ring": np.eye(8, k=1) + np.eye(8, k=-1) + np.eye(8, k=7) + np.eye(8, k=-7),
    "complete": np.triu(np.ones((6, 6)), 1),
    "many pairs": np.kron(np.eye(20), [[0, 1], [0, 0]]),
    "thirty": gb.simulate(n_variables=30, n_samples=2, degree=3, seed=1)[0].adjacency,
    "thirty, cpdag": gb.simulate(n_variables=30, n_samples=2, degree=2, seed=2)[0].to_cpdag().adjacency,
    "crowd": gb.simulate(n_variables=150, n_samples=2, degree=2, seed=1)[0].adjacency,
}
FRAMES = {"page": (900.0, 600.0), "phone": (360.0, 600.0)}


def list_links(adjacency):
    i, j = np.nonzero(adjacency)
    return [
        (a, b, not adjacency[b, a], 1.0)
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
        if a < b or not adjacency[b, a]
    ]


@functools.cache
def make(name, frame="page"):
    links = list_links(GRAPHS[name])
    rng = np.random.default_rng(0)
    size_d2 = np.stack([rng.uniform(30, 130, len(GRAPHS[name])), np.full(len(GRAPHS[name]), 22.0)], axis=1)
    return lay_out(size_d2, links, FRAMES[frame]), size_d2, links


@each("name", GRAPHS)
def test_variables_are_apart_and_inside(name):
    found, size_d2, _ = make(name)
    gap_dd2 = np.abs(found.place_d2[:, None] - found.place_d2) - (size_d2[:, None] + size_d2) / 2
    np.fill_diagonal(gap_dd2[..., 0], np.inf)
    assert (gap_dd2.max(axis=-1) > 5).all()
    assert (found.place_d2 - size_d2 / 2 > -1e-6).all()
    assert (found.place_d2 + size_d2 / 2 < np.array(found.size) + 1e-6).all()


@each("name", [name for name in GRAPHS if GRAPHS[name].any()])
def test_arrows_run_down_and_no_link_crosses_a_name(name):
    found, size_d2, links = make(name, "phone")
    assert len(found.routes) == len(links)
    for (i, j, is_directed, _), route in zip(links, found.routes, strict=True):
        assert not is_directed or found.place_d2[i, 1] < found.place_d2[j, 1]
        half_i, half_j = size_d2[[i, j]] / 2
        assert (np.abs(route[0] - found.place_d2[i]) <= half_i + 1e-6).all()  # it starts on the rim of the first
        assert (np.abs(route[-1] - found.place_d2[j]) <= half_j + 1e-6).all()  # and ends on that of the second
        others = np.delete(np.arange(len(size_d2)), [i, j])
        gap_pn2 = np.abs(trace(route)[:, None] - found.place_d2[others]) - size_d2[others] / 2
        assert (gap_pn2.max(axis=-1) > 0).all(), (i, j)
        assert (trace(route) > -1e-6).all()
        assert (trace(route) < np.array(found.size) + 1e-6).all()


@each("name", ["thirty", "crowd", "many pairs", "none linked"])
def test_the_drawing_takes_the_shape_of_its_frame(name):
    wide, narrow = (make(name, frame)[0].size for frame in FRAMES)
    assert wide[0] / wide[1] > 1.15 * narrow[0] / narrow[1]
    assert 0.4 < wide[0] / wide[1] < 4
    assert 0.2 < narrow[0] / narrow[1] < 1.6


def test_the_same_graph_is_drawn_the_same_way():
    assert np.array_equal(make.__wrapped__("thirty")[0].place_d2, make("thirty")[0].place_d2)


def test_a_missing_engine_is_named(monkeypatch):
    monkeypatch.setattr(layout, "can_lay_out", lambda: False)
    monkeypatch.setattr(layout, "_engines", [])
    with pytest.raises(GraphbamError, match=r"need mini-racer, .*pip install 'graphbam\[plot\]'"):
        make.__wrapped__("pair")


def test_a_forked_process_lays_out_too():
    here = make("chain")[0].place_d2
    read, write = os.pipe()
    child = os.fork()
    if not child:
        there = make.__wrapped__("chain")[0].place_d2
        os.write(write, b"same" if np.array_equal(here, there) else b"other")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(read, 10) == b"same"
    assert np.array_equal(make.__wrapped__("chain")[0].place_d2, here)  # and the first one still does


def test_an_engine_that_ended_is_replaced():
    make.__wrapped__("pair")
    layout._engines[0]._process.kill()
    layout._engines[0]._process.wait()
    assert np.array_equal(make.__wrapped__("pair")[0].place_d2, make("pair")[0].place_d2)
