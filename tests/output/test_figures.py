import dataclasses

import numpy as np
import pytest

import graphbam as gb
from cases import each
from graphbam.errors import GraphbamError
from graphbam.graphs.graph import Graph
from graphbam.output import figures
from graphbam.result import OrientedGraph, Result
from standins import tell_truth


@each(("n_variables", "degree"), [(2, 0.1), (2, 1), (12, 3), (60, 2)])
def test_any_world_can_be_drawn(tmp_path, n_variables, degree):
    dag, x_md = gb.simulate(n_variables=n_variables, n_samples=30, degree=degree, seed=1)
    figure = figures.draw_world(dag, x_md, max_scatters=6)
    assert len(figure.axes) == 1 + min(6, dag.adjacency.sum())
    assert figures.save(figure, tmp_path / "world.png").stat().st_size > 10_000


@each(("n_variables", "degree", "seed"), [(3, 1, 1), (12, 3, 1), (30, 3, 3), (60, 2, 1)])
def test_every_arrow_of_a_world_has_a_head_on_the_rim_of_its_effect(n_variables, degree, seed):
    dag, x_md = gb.simulate(n_variables=n_variables, n_samples=30, degree=degree, seed=seed)
    figure = figures.draw_world(dag, x_md, max_scatters=1)
    boxes = boxes_in(figure)
    heads = [patch.get_xy()[:3] for patch in heads_in(figure)]
    assert len(heads) == len(dag.directed_edges()) > 0
    for (left, tip, right), end in zip(heads, np.argwhere(dag.adjacency)[:, 1], strict=True):
        x0, y0, x1, _ = boxes[end]
        assert x0 <= tip[0] <= x1
        assert tip[1] == pytest.approx(y0, abs=0.01)
        assert left[1] < y0 - 2  # points, so that it is seen
        assert abs(left[0] - right[0]) > 2
        covered = [(a <= tip[0] <= c) and (b < tip[1] - 1 < d) for a, b, c, d in boxes]
        assert not any(covered)


def test_a_constant_column_and_no_edge_are_drawn():
    nothing = Graph(("a", "b"), np.zeros((2, 2)))
    assert len(figures.draw_world(nothing, np.zeros((5, 2))).axes) == 1
    one = Graph(("a", "b"), np.array([[0, 1], [0, 0]]))
    assert len(figures.draw_world(one, np.zeros((5, 2))).axes) == 2


def test_missing_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setattr(figures, "can_draw", lambda: False)
    with pytest.raises(GraphbamError, match=r"pip install 'graphbam\[plot\]'"):
        figures.draw_world(Graph(("a",), [[0]]), np.zeros((3, 1)))


@each("name", ["a.xyz", "a", "a.csv"])
def test_kinds_of_pictures_are_named_before_the_work(tmp_path, monkeypatch, name):
    monkeypatch.setattr(figures, "_list_strokes", lambda *_: pytest.fail("drew first"))
    with pytest.raises(GraphbamError, match=r"names no kind of picture; end it in .*\.pdf.*\.png.*\.svg"):
        gb.plot(make_result(3), tmp_path / name)


def test_a_picture_finds_its_folder_or_says_why_not(tmp_path):
    assert make_result(3).plot(tmp_path / "new" / "a.svg") is not None
    assert b"<svg" in (tmp_path / "new" / "a.svg").read_bytes()
    (tmp_path / "taken").write_text("")
    with pytest.raises(GraphbamError, match="cannot be written: "):
        gb.plot(make_result(3), tmp_path / "taken" / "a.png")


def test_a_notebook_shows_each_figure_once():
    import matplotlib.pyplot as plt

    shown = [make_result(6, seed).plot()._repr_png_() for seed in range(3)]
    assert {png[1:4] for png in shown} == {b"PNG"}
    assert len(set(shown)) == 3
    assert plt.get_fignums() == []  # nothing that a notebook would show a second time, or that piles up


# ── gb.plot ───────────────────────────────────────────────────────────────────────────────────────────────


def make_result(n_variables, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.3, 0.05, 0.05], size=(n_variables, n_variables))
    return Result(tuple(f"v{k}" for k in range(n_variables)), p)


def names_in(figure):
    return {text.get_text() for text in figure.axes[0].texts if text.get_text()}


@each("n_variables", [2, 5, 30])
def test_a_result_of_any_size_is_drawn(tmp_path, n_variables):
    result = make_result(n_variables)
    figure = gb.plot(result, tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes()[1:4] == b"PNG"
    assert len(figure.axes[0].lines) == len(result.skeleton().undirected_edges())
    assert names_in(figure) == set(result.names)


def test_of_very_many_links_the_likeliest_are_drawn_and_the_title_says_so(monkeypatch):
    monkeypatch.setattr(figures, "_MOST_LINES", 20)
    monkeypatch.setattr(figures, "_MOST_NAMES", 22)
    result = make_result(60)
    figure = gb.plot(result)
    n_links = len(result.skeleton().undirected_edges())
    assert len(figure.axes[0].lines) == 20 < n_links
    n_names = len(boxes_in(figure))
    assert n_names >= 22
    told = figure.texts[0].get_text()
    assert told.endswith(f"not drawn: the {n_links - 20} least likely, {60 - n_names} variables without links")


@each("n_variables", [5, 31, 100])
def test_nothing_covers_a_name_and_nothing_is_cut_off(n_variables):
    dag, _ = gb.simulate(n_variables=n_variables, n_samples=2, degree=2, seed=3)
    figure = gb.plot(Graph([f"variable {k} " + "o" * (k % 13) for k in range(n_variables)], dag.adjacency))
    figure.canvas.draw()
    axes = figure.axes[0]
    texts = [text.get_window_extent().transformed(axes.transData.inverted()) for text in axes.texts]
    boxes = boxes_in(figure)
    assert len(texts) == len(boxes) == n_variables
    for text, (x0, y0, x1, y1) in zip(texts, boxes, strict=True):  # each name inside its box
        assert x0 < text.x0 < text.x1 < x1
        assert y0 < min(text.y0, text.y1) < max(text.y0, text.y1) < y1
    apart = np.maximum(boxes[:, None, :2] - boxes[None, :, 2:], boxes[None, :, :2] - boxes[:, None, 2:]).max(axis=-1)
    np.fill_diagonal(apart, np.inf)
    assert (apart > 0).all()
    room = np.array([axes.get_xlim()[1], axes.get_ylim()[0]])
    for line in (line.get_xydata() for line in axes.lines):
        inside = ((boxes[:, None, :2] < line - 0.5) & (line + 0.5 < boxes[:, None, 2:])).all(axis=-1)
        assert not inside.any()
        assert (line > -1e-6).all()
        assert (line < room + 1e-6).all()
    assert (boxes[:, :2] > -1e-6).all()
    assert (boxes[:, 2:] < room + 1e-6).all()


def test_a_picture_of_many_variables_grows_until_names_can_be_read():
    dag, _ = gb.simulate(n_variables=200, n_samples=2, degree=2, seed=3)
    figure = gb.plot(dag)
    assert figure.axes[0].texts[0].get_fontsize() > 5
    assert figure.get_figwidth() <= 26


def test_likelier_links_are_wider():
    p = np.tile([1.0, 0, 0], (4, 4, 1))
    for (i, j), direct in {(0, 1): 0.95, (1, 2): 0.6, (2, 3): 0.7}.items():
        p[i, j] = p[j, i] = [1 - direct, direct, 0]
    lines = gb.plot(Result(tuple("abcd"), p)).axes[0].lines
    widths = [line.get_linewidth() for line in lines]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_moral_links_are_dashed_and_optional():
    p = np.tile([1.0, 0, 0], (3, 3, 1))
    p[0, 1] = p[1, 0] = [0.05, 0.05, 0.9]
    p[0, 2] = p[2, 0] = p[1, 2] = p[2, 1] = [0.05, 0.9, 0.05]
    result = Result(tuple("abc"), p)
    assert len(gb.plot(result).axes[0].lines) == 2
    lines = gb.plot(result, moral=True).axes[0].lines
    assert sum(line.is_dashed() for line in lines) == 1


def heads_in(figure):
    """Arrow heads, each a polygon with its tip in the middle."""
    from matplotlib.patches import Polygon

    return [patch for patch in figure.axes[0].patches if isinstance(patch, Polygon)]


def boxes_in(figure):
    """Corners x0, y0, x1, y1 of the boxes, y downwards."""
    from matplotlib.patches import FancyBboxPatch

    boxes = [patch for patch in figure.axes[0].patches if isinstance(patch, FancyBboxPatch)]
    return np.array([[b.get_x(), b.get_y(), b.get_x() + b.get_width(), b.get_y() + b.get_height()] for b in boxes])


def box_of(figure, name):
    """Middle of the box with a name."""
    return next(text.get_position() for text in figure.axes[0].texts if text.get_text() == name)


def test_directed_graphs_get_arrows():
    figure = gb.plot(Graph(tuple("abc"), [[0, 1, 0], [0, 0, 1], [0, 1, 0]]))
    (head,) = heads_in(figure)
    assert len(figure.axes[0].lines) == 2
    tip = head.get_xy()[1]
    far = [np.hypot(*(tip - box_of(figure, name))) for name in "abc"]
    assert far[1] < min(far[0], far[2])


@each("n_variables", [10, 30, 60])
def test_the_picture_shows_the_cpdag(tmp_path, n_variables):
    result, truth = tell_truth(n_variables)
    figure = gb.plot(result, tmp_path / "graph.png")
    graph = result.cpdag()
    assert graph == truth
    assert len(heads_in(figure)) == len(graph.directed_edges()) > 0
    assert len(figure.axes[0].lines) == len(result.arrows())
    texts = {text.get_text() for text in figure.texts}
    assert any(f"{len(graph.directed_edges())} directed" in text for text in texts)
    assert any("how likely that direction is" in text for text in texts)
    assert heads_in(gb.plot(result, fdr=0.001)) == []


UNSURE = OrientedGraph(
    ["a", "b", "c"], [[0, 1, 1], [0, 0, 0], [0, 0, 0]], np.full((3, 3), 0.9), [[0, 0.3, 0.4], [0.35, 0, 0], [0.2, 0, 0]]
)
"""a → b at 0.30, where b → a and an open link have 0.35 each; a → c at 0.40, where they have 0.20 and 0.40."""


def test_forced_arrows_have_hollow_heads_and_a_legend():
    figure = gb.plot(UNSURE)
    assert sorted(head.get_facecolor()[:3] == (1.0, 1.0, 1.0) for head in heads_in(figure)) == [False, True]
    assert any("hollow head: by itself another direction is likelier" in text.get_text() for text in figure.texts)
    sure = gb.plot(Graph(UNSURE.names, UNSURE.adjacency))
    assert not any("hollow" in text.get_text() for text in sure.texts)


def test_a_cpdag_without_arrows_says_so():
    p = np.tile([0.0, 1.0, 0.0], (2, 2, 1))
    texts = {text.get_text() for text in gb.plot(Result(("a", "b"), p, colliders=[])).texts}
    assert "2 variables · 1 link, none directed · at p ≥ 0.5" in texts
    assert any("no heads: all directions are left open" in text for text in texts)


def test_surer_directions_have_darker_heads_and_numbers():
    p = np.tile([1.0, 0, 0], (6, 6, 1))
    for i, j in [(0, 2), (1, 2), (3, 5), (4, 5)]:
        p[i, j] = p[j, i] = [0.02, 0.98, 0]
    figure = gb.plot(Result(tuple("abcdef"), p, colliders=[(0, 2, 1, 0.97), (3, 5, 4, 0.6)]))
    darkness = {}
    for head in heads_in(figure):
        nearest = min("abcdef", key=lambda name: np.hypot(*(head.get_xy()[1] - box_of(figure, name))))
        darkness[nearest] = head.get_alpha()
    assert darkness["c"] > darkness["f"]
    assert sorted(names_in(figure) - set("abcdef")) == ["0.60", "0.97"]


def test_guessed_arrows_have_open_heads_and_hidden_causes_two():
    p = np.full((3, 3, 3), [0.1, 0.9, 0.0])
    p_arrow = np.array([[0, 0.7, 0.9], [0.3, 0, 0.9], [0.1, 0.1, 0]])
    said = np.array([[0, 0.1, 0.9], [0.1, 0, 0.9], [0, 0, 0]])
    hidden = np.array([[0, 0.8, 0.1], [0.8, 0, 0.1], [0.1, 0.1, 0]])
    result = Result(("dose", "age", "effect"), p, directions=p_arrow, compelled=said, hidden_causes=hidden)
    figure = gb.plot(result.dag())
    assert sorted(head.get_facecolor()[3] == 0 for head in heads_in(figure)) == [False, False, True]
    assert any("open head: a guess" in text.get_text() for text in figure.texts)
    plain, behind = gb.plot(result), result.plot(hidden=True)
    assert len(heads_in(behind)) == len(heads_in(plain)) + 2
    assert sum(line.is_dashed() for line in behind.axes[0].lines) == 1
    assert any("a hidden common cause" in text.get_text() for text in behind.texts)
    not_drawn = "not drawn: 1 pair that rather shares a hidden cause"
    assert [any(not_drawn in text.get_text() for text in figure.texts) for figure in (plain, behind)] == [True, False]


def test_long_names_that_begin_and_end_alike_are_told_apart():
    names = [f"median_household_{what}_2010_in_usd" for what in ("income", "debts", "savings")] + ["year", "year "]
    shown = [text.get_text() for text in gb.plot(Graph(names, np.zeros((5, 5)))).axes[0].texts]
    assert len(set(shown)) == 4  # blanks at the ends are not drawn
    assert max(map(len, shown)) < 30


@each("n_variables", [6, 60])
def test_the_legend_tells_of_numbers_where_there_are_some(n_variables):
    p_arrow = np.triu(np.full((n_variables, n_variables), 0.9), 1)
    p_arrow = p_arrow + np.tril(1 - p_arrow.T, -1)
    p = np.full((n_variables, n_variables, 3), [0.1, 0.9, 0.0])
    p[np.abs(np.subtract.outer(range(n_variables), range(n_variables))) != 1] = [1, 0, 0]
    result = Result(tuple(f"v{k}" for k in range(n_variables)), p, directions=p_arrow, compelled=p_arrow)
    figure = gb.plot(result.dag())
    has_numbers = "0.90" in names_in(figure)
    assert has_numbers == (n_variables == 6)
    assert any("number" in text.get_text() for text in figure.texts) == has_numbers
    assert any(" head" in text.get_text() for text in figure.texts)


@each("title", [None, "a long title " * 12])
def test_what_stands_above_the_picture_fits(title):
    p = np.full((4, 4, 3), [0.03, 0.97, 0.0])
    half = np.full((4, 4), 0.5)
    result = Result(tuple("abcd"), p, directions=half, compelled=half / 2, hidden_causes=np.eye(4, k=1) * 0.7)
    figure = gb.plot(result, fdr=0.05, title=title)
    said = next(text for text in figure.texts if "variables" in text.get_text() or "title" in text.get_text())
    figure.canvas.draw()
    assert said.get_window_extent().x1 <= figure.bbox.x1
    assert title or said.get_fontsize() > 7


@each("n_suspected", [1, 5, 6, 10])
def test_picture_and_words_agree_on_whether_hidden_causes_are_a_finding_or_doubt(n_suspected):
    hidden = np.zeros((5, 5))
    hidden[tuple(np.triu_indices(5, 1))] = np.where(np.arange(10) < n_suspected, 0.7, 0.1)
    result = dataclasses.replace(make_result(5), hidden_causes=hidden + hidden.T)
    told = " ".join(text.get_text() for text in gb.plot(result).texts)
    assert ("one hidden factor moved most columns" in result.say_hidden()) == (n_suspected > 5)
    assert (f"in doubt: one hidden factor behind {n_suspected} pairs" in told) == (n_suspected > 5)
    assert (f"not drawn: {n_suspected} pair" in told) == (n_suspected <= 5)


def test_the_picture_goes_where_it_is_asked_to(tmp_path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3))
    left, right = figure.subplots(1, 2)
    assert gb.plot(make_result(6), ax=left, title="left") is figure
    gb.plot(make_result(60), tmp_path / "two.svg", ax=right)
    assert left.get_title(loc="left") == "left"
    assert "<svg" in (tmp_path / "two.svg").read_text(encoding="utf-8")


def test_odd_names_are_drawn_as_they_are():
    names = ("$x_1$", "a\nb", "x" * 60, r"\frac", "%s {0}", "名")
    texts = names_in(gb.plot(Graph(names, np.zeros((6, 6)))))
    assert {"a b", "x" * 13 + "…" + "x" * 6, "%s {0}"} <= texts


def test_what_is_no_graph_is_refused():
    with pytest.raises(GraphbamError, match="a dict cannot be drawn"):
        gb.plot({})


def test_worlds_with_loops_hidden_causes_and_cells_set_or_missing_are_drawn():
    loop = Graph(("a", "b", "c", "d"), np.array([[0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]))
    x_md = np.random.default_rng(0).normal(size=(40, 4))
    x_md[:5, 0], set_md = np.nan, np.zeros((40, 4), bool)
    set_md[5:15, 1] = True
    figure = figures.draw_world(loop, x_md, bidirected=[("a", "d")], set_md=set_md)
    text = " ".join(part.get_text() for part in figure.texts)
    assert "1 arrows close a loop" in text
    assert "1 pair with a hidden cause" in text
    assert "6.2% of cells set" in text
    assert "3.1% of cells missing" in text
    assert len(figure.axes) == 5
    graph, scatter = figure.axes[0], figure.axes[1]
    assert len(heads_in(figure)) == 4 + 2  # four arrows, and two heads of what is hidden
    assert sum(line.is_dashed() for line in graph.lines) == 2
    assert len(scatter.collections[0].get_offsets()) == 35
