import numpy as np
import pytest

import graphbam as gb
from graphbam import figures
from graphbam.errors import GraphbamError
from graphbam.graph import Graph


@pytest.mark.parametrize(("n_variables", "degree"), [(2, 0.1), (2, 1), (12, 3), (60, 2)])
def test_any_world_can_be_drawn(tmp_path, n_variables, degree):
    dag, x_md = gb.simulate(n_variables=n_variables, n_samples=30, degree=degree, seed=1)
    figure = figures.draw_world(dag, x_md, max_scatters=6)
    assert len(figure.axes) == 1 + min(6, dag.adjacency.sum())
    assert figures.save(figure, tmp_path / "world.png").stat().st_size > 10_000


def test_a_constant_column_and_no_edge_are_drawn():
    nothing = Graph(("a", "b"), np.zeros((2, 2)))
    assert len(figures.draw_world(nothing, np.zeros((5, 2))).axes) == 1
    one = Graph(("a", "b"), np.array([[0, 1], [0, 0]]))
    assert len(figures.draw_world(one, np.zeros((5, 2))).axes) == 2


def test_rows_follow_depth_and_no_two_variables_share_a_place():
    dag, _ = gb.simulate(n_variables=25, n_samples=2, degree=3, seed=2)
    place_d2, routes = figures.layered_layout(dag.adjacency)
    causes, effects = np.nonzero(dag.adjacency)
    assert (place_d2[causes, 1] > place_d2[effects, 1]).all()
    assert len({tuple(place) for place in place_d2}) == 25
    for route, cause, effect in zip(routes, causes, effects, strict=True):
        assert (route[0] == place_d2[cause]).all()
        assert (route[-1] == place_d2[effect]).all()
        assert (np.diff(route[:, 1]) == -1).all()


def test_missing_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setattr(figures, "has_matplotlib", lambda: False)
    with pytest.raises(GraphbamError, match=r"pip install 'graphbam\[plot\]'"):
        figures.draw_world(Graph(("a",), [[0]]), np.zeros((3, 1)))
