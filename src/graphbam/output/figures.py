"""Pictures of graphs and tables.

Matplotlib is an optional dependency and loads inside the functions. Figures are made without pyplot, so nothing
touches global state and no display is needed.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbam.errors import ConfigError, GraphbamError, GraphError
from graphbam.graphs.cut import Cut
from graphbam.graphs.graph import MORAL, SKELETON, Graph, directed_part, undirected_part
from graphbam.output.layout import lay_out, separate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

    from graphbam.result import Result

Array = NDArray[np.float64]

INK, QUIET, LINE, PAPER = "#1f2933", "#7b8794", "#6b7a8a", "#ffffff"
"""Colours of text, of secondary text, of edges and of the background."""

DEPTH_COLOURS = ("#12466b", "#1f6f8b", "#2f9c95", "#7fb069", "#e6aa3c", "#dd6e42", "#b23a48")
"""From causes to effects; deeper levels repeat the last colour."""

NODE, MORAL_LINE = "#12466b", "#dd6e42"
"""Colours of `plot`: variables, and links through a common child."""

_SMALLEST_FONT = 4.5  # names of a world that would be smaller are left out
_MARGIN = 22.0  # around the graph of a world, in points
_WIDEST_STEP = (90.0, 110.0)  # between the places of a world, across and down
_SLOT = 0.45  # room for an edge that passes a row, where a variable takes 1
_POINT_LIMIT = 1500  # scatter plots show at most this many samples
_BOX_LIMIT = 40  # `plot` writes names into boxes up to this many variables, and beside dots beyond
_NAME_LIMIT = 20  # longer names are cut in `plot`

_LEGEND = (
    "width of a line: how likely the link is · arrow head and number: how likely that direction is, given the link · "
    "no head: direction left open"
)
_LEGEND_FORCED = "hollow head: by itself another direction is likelier, and only the graph as a whole needs this one"


def has_matplotlib() -> bool:
    """Whether pictures can be drawn here."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_world(
    dag: Graph,
    x_md: Array,
    *,
    bidirected: Iterable[tuple[str, str]] = (),
    set_md: NDArray[np.bool_] | None = None,
    title: str = "",
    max_scatters: int = 12,
) -> Figure:
    """Draw a simulated world: its graph, and a scatter plot for each edge.

    Parameters
    ----------
    dag : Graph
        Directed; arrows that close a loop are dashed.
    x_md : ndarray, shape (n_samples, n_variables)
        Columns in the order of ``dag.names``; missing cells are NaN.
    bidirected : iterable of pairs of names
        Pairs with a hidden common cause, joined by dotted lines.
    set_md : ndarray of bool, shape (n_samples, n_variables), optional
        Cells that were set by an intervention; samples with one of the two plotted are orange.
    title : str
        One line above the picture.
    max_scatters : int
        Edges beyond this number get no scatter plot.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> dag = Graph(["a", "b"], [[0, 1], [0, 0]])
    >>> x_md = np.array([[0.0, 0.1], [1.0, 0.9], [2.0, 2.2]])
    >>> len(draw_world(dag, x_md).axes)  # the graph and one scatter plot
    2
    """
    figure = _new_figure(15.0, 7.4)
    forward = Graph(dag.names, _without_loops(dag.adjacency))
    depth_d, joined = _depths(forward.adjacency), list(bidirected)
    edges = sorted(np.argwhere(dag.adjacency), key=lambda edge: depth_d[edge].tolist())
    shown = edges[:max_scatters]
    grid = figure.add_gridspec(1, 2, width_ratios=(1.0, 1.4), left=0.02, right=0.98, top=0.85, bottom=0.04)
    back = np.argwhere(dag.adjacency > forward.adjacency).tolist()
    draw_graph(
        figure.add_subplot(grid[0]), forward, back, [[dag.names.index(name) for name in pair] for pair in joined]
    )
    if shown:
        _draw_scatters(figure, grid[1], forward, x_md, shown, np.zeros(x_md.shape, bool) if set_md is None else set_md)
    note = f"first {len(shown)} of {len(edges)} edges" if len(edges) > len(shown) else f"{len(edges)} edges"
    figure.suptitle(title or "A simulated world", x=0.03, y=0.975, ha="left", fontsize=16, weight="bold", color=INK)
    parts = [_summary(dag, x_md), f"{note}, causes above, effects below", *_peculiarities(x_md, set_md, joined, back)]
    figure.text(0.03, 0.905, " · ".join(parts), color=QUIET, fontsize=11)
    return figure


def _peculiarities(
    x_md: Array, set_md: NDArray[np.bool_] | None, joined: list[tuple[str, str]], back: list[list[int]]
) -> list[str]:
    """What is unusual about a world, in a few words each."""
    missing, were_set = float(np.isnan(x_md).mean()), 0.0 if set_md is None else float(set_md.mean())
    says = {
        f"dashed: {len(back)} arrows close a loop": len(back),
        f"dotted: {len(joined)} pairs with a hidden cause": len(joined),
        f"orange: {were_set:.1%} of cells set": were_set,
        f"{missing:.1%} of cells missing": missing,
    }
    return [text for text, is_so in says.items() if is_so]


def _without_loops(adjacency: NDArray[np.int8]) -> NDArray[np.int8]:
    """The same graph without arrows that close a loop; arrows are taken one by one, as they are listed."""
    kept = np.zeros_like(adjacency)
    before = np.eye(len(adjacency), dtype=bool)  # [i, j]: arrows kept so far lead from i to j
    for i, j in np.argwhere(adjacency):
        if not before[j, i]:
            kept[i, j] = 1
            before |= np.outer(before[:, i], before[j])
    return kept


def draw_graph(
    axes: Axes, graph: Graph, back: Iterable[Sequence[int]] = (), joined: Iterable[Sequence[int]] = ()
) -> None:
    """Draw a directed acyclic graph, causes above their effects; discs are as large as there is room.

    Arrows of `back` run upwards and are dashed; pairs of `joined` are joined by dotted lines.
    """
    xy_d2, routes = layered_layout(graph.adjacency)
    size = np.array(_points_of(axes))
    low, high = xy_d2.min(axis=0), xy_d2.max(axis=0)
    for route in routes:
        low, high = np.minimum(low, route.min(axis=0)), np.maximum(high, route.max(axis=0))
    step = np.minimum((size - 2 * _MARGIN) / np.maximum(high - low, 1), _WIDEST_STEP)
    radius = float(np.clip(0.42 * _nearest_in_row(xy_d2) * step[0], 3, 17))

    def to_points(xy_p2: Array) -> Array:
        return np.asarray(size / 2 + (xy_p2 - (low + high) / 2) * step * [1, -1])  # y of the axes points down

    for route in routes:
        _draw_arrow(axes, to_points(route), radius)
    place_d2 = to_points(xy_d2)
    for i, j in back:
        style: dict[str, Any] = {
            "arrowstyle": "-|>",
            "color": MORAL_LINE,
            "linestyle": "--",
            "shrinkA": radius,
            "shrinkB": radius,
        }
        style |= {"connectionstyle": "arc3,rad=0.25", "linewidth": 1.2}
        axes.annotate("", place_d2[j], place_d2[i], arrowprops=style, zorder=2)
    for i, j in joined:
        axes.plot(*place_d2[[i, j]].T, color=MORAL_LINE, linestyle=":", linewidth=1.0, alpha=0.7, zorder=1)
    colours = [_depth_colour(depth) for depth in _depths(graph.adjacency)]
    axes.scatter(
        place_d2[:, 0],
        place_d2[:, 1],
        s=(2 * radius) ** 2,
        c=colours,
        edgecolors=PAPER,
        linewidths=radius / 9,
        zorder=4,
    )
    longest = max(map(len, graph.names))
    font = min(10.5, 2.3 * radius / max(longest, 2))
    text_style: dict[str, Any] = {"color": "white", "fontsize": font, "weight": "bold", "zorder": 5}
    for name, (x, y) in zip(graph.names, place_d2, strict=True) if font >= _SMALLEST_FONT else ():
        axes.text(x, y, name, ha="center", va="center", **text_style)


def _nearest_in_row(place_d2: Array) -> float:
    """Least distance between two variables of a row; rows of one variable do not count."""
    rows = [np.sort(place_d2[place_d2[:, 1] == y, 0]) for y in np.unique(place_d2[:, 1])]
    return float(min((np.diff(row).min() for row in rows if len(row) > 1), default=np.inf))


def layered_layout(adjacency: NDArray[np.int8]) -> tuple[Array, list[Array]]:
    """Place the variables of a DAG in rows by depth, and route its edges between them.

    An edge that skips rows takes a slot in each row it passes, so that it runs around the variables there. Rows
    are ordered by the mean place of their neighbours, swept down and up a few times.

    Returns
    -------
    place_d2 : ndarray, shape (d, 2)
        x and y of each variable; y falls with depth.
    routes : list of ndarray, shape (n_points, 2)
        Points that each edge passes, in the order of ``np.argwhere(adjacency)``.

    Examples
    --------
    >>> place_d2, routes = layered_layout(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]))
    >>> place_d2[:, 1].tolist()
    [0.0, -1.0, -2.0]
    >>> [len(route) for route in routes]  # 0 → 2 passes the row of 1
    [2, 3, 2]
    """
    depth_d = _depths(adjacency)
    depths, paths = depth_d.tolist(), []
    for i, j in np.argwhere(adjacency).tolist():
        stops = range(len(depths), len(depths) + depth_d[j] - depth_d[i] - 1)
        paths.append([i, *stops, j])
        depths += range(depth_d[i] + 1, depth_d[j])
    x_v = _order_rows(depths, paths, len(depth_d))
    place_v2 = np.stack([x_v, 0.0 - np.array(depths)], axis=1)
    return place_v2[: len(depth_d)], [place_v2[path] for path in paths]


def _order_rows(depths: list[int], paths: list[list[int]], n_variables: int) -> Array:
    """x of every variable and every slot of a passing edge, which is narrower, so that linked ones are close."""
    rows: list[list[int]] = [[] for _ in range(max(depths) + 1)]
    links: list[list[int]] = [[] for _ in depths]
    for path in paths:
        for a, b in itertools.pairwise(path):
            links[a].append(b)
            links[b].append(a)
    for v, depth in enumerate(depths):
        rows[depth].append(v)
    x_v = np.zeros(len(depths))
    wide_v = np.where(np.arange(len(depths)) < n_variables, 1.0, _SLOT)
    for sweep in range(24):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            pull = {v: x_v[links[v]].mean() if links[v] else np.inf for v in row}
            row.sort(key=pull.__getitem__)  # variables without edges go to the end
            x_v[row] = np.cumsum(wide_v[row]) - wide_v[row] / 2 - wide_v[row].sum() / 2
    return x_v


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure to a file; the suffix names the format, and missing folders are made."""
    path = _check_format(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, facecolor=PAPER)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}. Choose another place.") from None
    return path


def _check_format(path: str | os.PathLike[str]) -> Path:
    """Refuse a file name that names no kind of picture."""
    _check_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    path, known = Path(path), sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in known:
        raise ConfigError(f"{path} names no kind of picture; end it in {', '.join(f'.{kind}' for kind in known)}.")
    return path


def _new_figure(width: float, height: float) -> Figure:
    """A figure unknown to pyplot: nothing has to be closed, and a notebook shows it once, where it is returned."""
    _check_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor=PAPER)
    setattr(figure, "_repr_png_", functools.partial(to_png, figure))  # noqa: B010  notebooks look for it
    return figure


def load_matplotlib() -> None:
    """Load what pictures need, ahead of the first one."""
    _check_format("graph.png")
    _new_figure(1, 1)


def _check_matplotlib() -> None:
    if not has_matplotlib():
        raise GraphbamError("pictures need matplotlib, which is not installed; run: pip install 'graphbam[plot]'")


def to_png(figure: Figure, dpi: int = 100) -> bytes:
    """A figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, facecolor=PAPER)
    return buffer.getvalue()


def _summary(dag: Graph, x_md: Array) -> str:
    return f"{dag.n_variables} variables · {len(x_md)} samples"


def _depths(adjacency: NDArray[np.int8]) -> NDArray[np.int64]:
    """Length of the longest path to each variable."""
    depth_d: NDArray[np.int64] = np.zeros(len(adjacency), dtype=np.int64)
    for _ in range(len(adjacency)):
        depth_d = ((depth_d + 1)[:, None] * adjacency).max(0)
    return depth_d


def _depth_colour(depth: int) -> str:
    return DEPTH_COLOURS[min(int(depth), len(DEPTH_COLOURS) - 1)]


def _draw_arrow(axes: Axes, route_p2: Array, radius: float) -> None:
    """An arrow along a smooth curve that leaves and arrives vertically, its head on the rim of a disc of `radius`."""
    line_p2 = np.concatenate([_swing(before, after) for before, after in itertools.pairwise(route_p2)])
    length = min(7.0, 0.9 * radius + 2)
    far_p = np.hypot(*(line_p2 - line_p2[-1]).T)
    tip = line_p2[np.flatnonzero(far_p >= radius + 1.5)[-1]]
    base = line_p2[np.flatnonzero(far_p >= radius + 1.5 + length)[-1]]
    _add_head(axes, tip, base, 0.45 * length, facecolor=LINE, linewidth=0, zorder=3)
    axes.plot(*line_p2[far_p >= radius + 1.5 + length].T, color=LINE, linewidth=1.6 if radius > 8 else 1.0, zorder=2)


def _swing(a: Array, b: Array, n_points: int = 60) -> Array:
    """Points of a curve from a to b that is vertical at both ends."""
    t = np.linspace(0, 1, n_points)[:, None]
    across, down = t * t * (3 - 2 * t), 1.5 * t * (1 - t) + t**3
    return np.asarray(a + np.concatenate([across, down], axis=1) * (b - a))


def _add_head(axes: Axes, tip: Array, base: Array, half_width: float, **style: Any) -> None:
    """A triangle from the middle of its base to its tip."""
    from matplotlib.patches import Polygon

    along = (tip - base) / max(float(np.hypot(*(tip - base))), 1e-9)
    across = half_width * np.array([-along[1], along[0]])
    axes.add_patch(Polygon(np.stack([tip, base + across, base - across]), **style))


def _draw_scatters(
    figure: Figure,
    cell: SubplotSpec,
    dag: Graph,
    x_md: Array,
    edges: list[NDArray[np.int64]],
    set_md: NDArray[np.bool_],
) -> None:
    """Small multiples, cause along x and effect along y; samples without one of the two are left out."""
    n_columns = min(4, max(2, int(np.ceil(np.sqrt(len(edges))))))
    n_rows = int(np.ceil(len(edges) / n_columns))
    grid = cell.subgridspec(n_rows, n_columns, wspace=0.12, hspace=0.3)
    depth_d = _depths(dag.adjacency)
    for place, (cause, effect) in enumerate(edges):
        axes = figure.add_subplot(grid[place // n_columns, place % n_columns])
        x_m, y_m = x_md[:, cause], x_md[:, effect]
        seen_m, touched_m = ~np.isnan(x_m + y_m), set_md[:, cause] | set_md[:, effect]
        _scatter(axes, x_m[seen_m], y_m[seen_m], _depth_colour(depth_d[effect]))
        axes.scatter(x_m[touched_m], y_m[touched_m], s=9, color=MORAL_LINE, alpha=0.6, linewidths=0)
        axes.set_title(f"{dag.names[cause]} → {dag.names[effect]}", fontsize=10.5, color=INK, pad=4)


def _scatter(axes: Axes, x_m: Array, y_m: Array, colour: str) -> None:
    shown = slice(None, _POINT_LIMIT)
    axes.scatter(x_m[shown], y_m[shown], s=9, color=colour, alpha=0.35, linewidths=0)
    axes.plot(*smooth_curve(x_m, y_m), color=INK, linewidth=1.7, alpha=0.9, solid_capstyle="round")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_facecolor("#f7f9fb")
    for side in axes.spines.values():
        side.set_color("#d5dce3")


def smooth_curve(x_m: Array, y_m: Array, n_points: int = 80, width: float = 0.25) -> tuple[Array, Array]:
    """Local linear fit of y along x, between the 2nd and the 98th percentile of x.

    Examples
    --------
    >>> x_m = np.linspace(-2, 2, 201)
    >>> grid, mean = smooth_curve(x_m, x_m**2)
    >>> bool(np.abs(mean - grid**2).max() < 0.3)
    True
    """
    low, high = np.quantile(x_m, [0.02, 0.98])
    grid_g = np.linspace(low, high, n_points)
    gap_gm = (x_m - grid_g[:, None]) / (width * (x_m.std() or 1.0))
    weight_gm = np.exp(-0.5 * gap_gm**2) + 1e-9
    s0, s1, s2 = (np.sum(weight_gm * gap_gm**k, axis=1) for k in range(3))
    t0, t1 = weight_gm @ y_m, (weight_gm * gap_gm) @ y_m
    s2 = s2 + 0.05 * s0  # where points are few, lean towards the local mean
    return grid_g, (s2 * t0 - s1 * t1) / (s2 * s0 - s1**2)


def draw_pairs(
    panels: Sequence[tuple[tuple[Array, Array], str]],
    names: tuple[str, str],
    *,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw two variables against each other, once for each panel, with a smooth curve.

    Parameters
    ----------
    panels : sequence of ((x, y), title)
        Values of the two, shape (rows,) each, and what stands above them.
    names : pair of str
        Along x and along y.
    path : path, optional
        Where to save the picture; the suffix names the format.

    Examples
    --------
    >>> x_m = np.linspace(0, 1, 20)
    >>> len(draw_pairs([((x_m, x_m), "as they are"), ((x_m, -x_m), "given z")], ("a", "b")).axes)
    2
    """
    if path is not None:
        _check_format(path)
    figure = _new_figure(4.2 * len(panels), 3.9)
    for place, ((x_m, y_m), title) in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), place + 1)
        _scatter(axes, x_m, y_m, NODE)
        axes.set_title(title, fontsize=10.5, color=INK)
        axes.set_xlabel(_shorten(names[0]), color=QUIET)
        axes.set_ylabel(_shorten(names[1]), color=QUIET)
    figure.tight_layout()
    if path is not None:
        save(figure, path)
    return figure


# ── the picture of a result ───────────────────────────────────────────────────────────────────────────────


class Stroke(NamedTuple):
    """One line of `plot`: two places in `names`, how likely, and how it is drawn."""

    i: int
    j: int
    p: float
    is_directed: bool = False
    is_moral: bool = False
    sure: float | None = None
    """Probability of the direction, or that it stays open, given the link; where that is known."""
    is_forced: bool = False
    """Whether the arrow is drawn although another direction is likelier; see `OrientedGraph.forced`."""


def plot(
    source: Result | Graph,
    path: str | os.PathLike[str] | None = None,
    *,
    cut: Cut | float | None = None,
    threshold: float | None = None,
    fdr: float | None = None,
    moral: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the graph of a result, or any graph; likelier links are wider and darker, and so are likelier arrow heads.

    Parameters
    ----------
    source : Result or Graph
        Of a result, its `graph` is drawn: with directions where they are known.
    path : path, optional
        Where to save the picture; the suffix names the format.
    cut, threshold, fdr
        As in `Result.graph`.
    moral : bool
        Whether to add pairs that are linked through a common child only, dashed; see `Result.moral_pairs`.
    title : str, optional
        One line above the picture.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = plot(Graph(["a", "b", "c"], [[0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    >>> sorted(text.get_text() for text in figure.axes[0].texts if text.get_text())
    ['a', 'b', 'c']
    """
    if path is not None:
        _check_format(path)  # before the work, not after it
    chosen = Cut.read(cut, threshold=threshold, fdr=fdr)
    strokes = _list_strokes(source, chosen, moral)
    labels = [_shorten(name) for name in source.names]
    boxed = len(labels) <= _BOX_LIMIT
    if ax is None:
        legend = _LEGEND if any(stroke.sure is not None for stroke in strokes) else ""
        legend += f"\n{_LEGEND_FORCED}" if any(stroke.is_forced for stroke in strokes) else ""
        ax = _new_axes(labels, _headline(source, strokes, chosen) if title is None else title, legend)
    elif title:
        ax.set_title(title, color=INK, loc="left")
    size = _points_of(ax)
    font = _font_size(len(labels)) * min(1.0, size[0] / 450) ** 0.5
    half_d2 = _half_boxes(labels, font) if boxed else np.full((len(labels), 2), _dot_radius(len(labels)))
    adjacency = np.zeros((len(labels), len(labels)))
    for stroke in strokes:
        adjacency[stroke.i, stroke.j] = not stroke.is_moral
    gap = 14.0 if boxed and any(stroke.is_directed for stroke in strokes) else 3.0  # room for heads
    place_d2 = _place_in(adjacency, half_d2, size, gap)
    sheet = _Sheet(ax, place_d2, half_d2, font if boxed else None)
    for stroke in strokes:
        sheet.draw(stroke)
    draw = _draw_boxes if boxed else _draw_dots
    draw(ax, labels, place_d2, half_d2, font, adjacency)
    figure = ax.get_figure(root=True)
    assert figure is not None
    if path is not None:
        save(figure, path)
    return figure


def _list_strokes(source: Result | Graph, cut: Cut, moral: bool) -> list[Stroke]:
    """Lines to draw, the faintest first so that the surest lie on top."""
    from graphbam.result import Result

    if isinstance(source, Graph):
        return _list_edges(source)
    if not isinstance(source, Result):
        raise GraphError(f"a {type(source).__name__} cannot be drawn. Pass a Result or a Graph.")
    graph, p_dd3 = source.graph(cut), source.probabilities
    strokes = _list_edges(graph, p_dd3[..., SKELETON])
    if moral:
        pairs = np.argwhere(np.triu(source.moral_pairs(cut).adjacency)).tolist()
        strokes += [Stroke(i, j, p_dd3[i, j, MORAL], is_moral=True) for i, j in pairs]
    return sorted(strokes, key=lambda stroke: (not stroke.is_moral, stroke.p))


def _list_edges(graph: Graph, p_dd: Array | None = None) -> list[Stroke]:
    """Lines of a graph; `p_dd` or, if it has them, its own probabilities say how likely they are."""
    from graphbam.result import OrientedGraph

    arrow_dd = graph.arrow_probability_dd if isinstance(graph, OrientedGraph) else None
    p_dd = graph.edge_probability_dd if isinstance(graph, OrientedGraph) else p_dd
    p_dd = np.full(graph.adjacency.shape, 0.75) if p_dd is None else p_dd
    strokes = []
    for i, j in np.argwhere(np.triu(undirected_part(graph.adjacency))).tolist():
        sure = None if arrow_dd is None else float(1 - arrow_dd[i, j] - arrow_dd[j, i])
        strokes.append(Stroke(i, j, p_dd[i, j], sure=sure))
    for i, j in np.argwhere(directed_part(graph.adjacency)).tolist():
        sure = None if arrow_dd is None else float(arrow_dd[i, j])
        forced = isinstance(graph, OrientedGraph) and bool(graph.forced[i, j])
        strokes.append(Stroke(i, j, p_dd[i, j], is_directed=True, sure=sure, is_forced=forced))
    return strokes


def _headline(source: Result | Graph, strokes: list[Stroke], cut: Cut) -> str:
    n_direct, n_arrows = sum(not stroke.is_moral for stroke in strokes), sum(stroke.is_directed for stroke in strokes)
    links = f"{n_direct} link{'' if n_direct == 1 else 's'}"
    if n_arrows or any(stroke.sure is not None for stroke in strokes):
        links += f", {n_arrows or 'none'} directed"
    parts = [f"{len(source.names)} variables", links]
    if len(strokes) > n_direct:
        parts.append(f"{len(strokes) - n_direct} through a common child only (dashed)")
    if not isinstance(source, Graph):
        parts.append(str(cut))
    return " · ".join(parts)


def _new_axes(labels: list[str], title: str, legend: str) -> Axes:
    """A figure of 7 to 15 inches: wider for more variables and longer names."""
    boxes_d2 = 2 * _half_boxes(labels, _font_size(len(labels))) if len(labels) <= _BOX_LIMIT else np.zeros((1, 2))
    roomy = np.sqrt(6 * (boxes_d2 + 6).prod(axis=1).sum() / 0.68) / 72
    width = float(np.clip(max(6 + len(labels) / 12, roomy), 7, 15))
    figure = _new_figure(width, width * 0.68)
    foot = (0.02, 0.06, 0.09)[len(legend.splitlines())]
    axes = figure.add_axes((0.02, foot, 0.96, 0.92 - foot))
    figure.text(0.025, 0.955, title, color=QUIET, fontsize=10.5, va="center")
    figure.text(0.025, foot / 2, legend, color=QUIET, fontsize=min(8.5, 1.05 * width), va="center")
    return axes


def _font_size(n_variables: int) -> float:
    return float(np.clip(13 - n_variables / 12, 7, 11))


def _points_of(axes: Axes) -> tuple[float, float]:
    """Let one unit of the axes be one point on paper, y downwards; returns its size."""
    axes.set_axis_off()
    inches = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    width, height = 72 * inches.width, 72 * inches.height
    axes.set(xlim=(0, width), ylim=(height, 0), autoscale_on=False)
    return width, height


def _place_in(adjacency_dd: Array, half_d2: Array, size: tuple[float, float], gap: float) -> Array:
    margin = half_d2.max(axis=0) + 4
    room = np.maximum(np.array(size) - 2 * margin, 1)
    place_d2 = margin + lay_out(adjacency_dd, aspect=room[0] / room[1]) * room
    return separate(place_d2, half_d2 + gap, size)


def _shorten(name: str) -> str:
    """Cut a long name in its middle: names that begin alike often differ at the end."""
    name = " ".join(name.split())
    if len(name) > _NAME_LIMIT:
        name = f"{name[: _NAME_LIMIT - 7]}…{name[-6:]}"
    return name.replace("$", r"\$")


def _half_boxes(labels: list[str], font: float) -> Array:
    """Half width and height of a box around each label, in points; an average letter is 0.6 of the font wide."""
    width = [0.31 * font * max(3, len(label)) + 0.55 * font for label in labels]
    return np.stack([np.array(width), np.full(len(labels), 0.95 * font)], axis=1)


def _dot_radius(n_variables: int) -> float:
    return float(np.clip(7 - n_variables / 60, 2.5, 5))


def _darkness(p: float) -> float:
    return 0.3 + 0.65 * max(0.0, (p - 0.3) / 0.7)


class _Sheet:
    """Where lines are drawn: around the boxes of other variables, with numbers where there is room."""

    def __init__(self, axes: Axes, place_d2: Array, half_d2: Array, font: float | None) -> None:
        self.axes, self.place_d2, self.half_d2 = axes, place_d2, half_d2
        self.font = font  # None where variables are dots: lines are straight then, and have no numbers
        self.scale = 0.55 if font is None else 1.0
        self._numbers: list[Array] = []

    def draw(self, stroke: Stroke) -> None:
        """A line, with a head and a number where it has a direction."""
        a, b = self.place_d2[stroke.i], self.place_d2[stroke.j]
        middle = self._find_way(stroke)
        end = self._draw_head(middle, stroke) if stroke.is_directed else b
        line_p2 = _bend(a, middle, end)
        dashes: Any = (0, (3, 2.2)) if stroke.is_moral else "solid"
        style: dict[str, Any] = {"color": MORAL_LINE if stroke.is_moral else LINE, "alpha": _darkness(stroke.p)}
        style["solid_capstyle"] = "butt"  # or the line would shine through its head
        width = (0.5 + 2.4 * stroke.p**2) * self.scale
        self.axes.plot(*line_p2.T, linewidth=width, linestyle=dashes, zorder=1 + stroke.p, **style)
        if self.font is not None and stroke.is_directed and stroke.sure is not None:
            self._draw_number(line_p2, stroke.sure, self.font)

    def _find_way(self, stroke: Stroke) -> Array:
        """Control point of the least bent line that touches no other box, or as few as possible."""
        a, b = self.place_d2[stroke.i], self.place_d2[stroke.j]
        across = np.array([a[1] - b[1], b[0] - a[0]])
        if self.font is None:
            return np.asarray((a + b) / 2)
        others = np.delete(np.arange(len(self.place_d2)), [stroke.i, stroke.j])
        ways = [(a + b) / 2 + bend * across for bend in (0.0, 0.12, -0.12, 0.24, -0.24, 0.4, -0.4)]
        return min(ways, key=lambda middle: self._count_hits(_bend(a, middle, b), others))

    def _count_hits(self, line_p2: Array, nodes: NDArray[np.int64]) -> int:
        gap_pn2 = np.abs(line_p2[:, None] - self.place_d2[nodes]) - self.half_d2[nodes]
        return int((gap_pn2 < 2).all(axis=-1).any(axis=0).sum())

    def _draw_head(self, middle: Array, stroke: Stroke) -> Array:
        """A triangle with its tip on the rim, darker for a surer direction; returns where the line has to end."""
        b = self.place_d2[stroke.j]
        tip = b - (b - middle) * _rim(b - middle, self.half_d2[stroke.j] + 1.5, self.font is not None)
        along = (b - middle) / max(float(np.hypot(*(b - middle))), 1e-9)
        base = np.asarray(tip - self.scale * 10 * along)
        alpha = _darkness(stroke.p if stroke.sure is None else stroke.sure)
        style: dict[str, Any] = {"facecolor": INK, "alpha": alpha, "linewidth": 0}
        if stroke.is_forced:
            style = {"facecolor": PAPER, "edgecolor": LINE, "linewidth": self.scale}
        _add_head(self.axes, tip, base, self.scale * 4.6, zorder=2.5, **style)
        return base

    def _draw_number(self, line_p2: Array, sure: float, font: float) -> None:
        """How sure a direction is, at the first free place near the middle of its line; nowhere if all are taken."""
        from matplotlib.patheffects import withStroke

        half_2 = np.array([0.9, 0.42]) * font
        centres_n2 = np.concatenate([self.place_d2, *(number[None] for number in self._numbers)])
        halves_n2 = np.concatenate([self.half_d2, np.tile(half_2, (len(self._numbers), 1))])
        for share in (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74):
            place_2 = line_p2[round(share * (len(line_p2) - 1))]
            if not (np.abs(centres_n2 - place_2) < halves_n2 + half_2).all(axis=1).any():
                halo = [withStroke(linewidth=2.2, foreground=PAPER)]
                style: dict[str, Any] = {"fontsize": 0.72 * font, "color": INK, "zorder": 2.8, "path_effects": halo}
                self.axes.text(place_2[0], place_2[1], f"{sure:.2f}", ha="center", va="center", **style)
                self._numbers.append(place_2)
                return


def _bend(a: Array, middle: Array, b: Array, n_points: int = 41) -> Array:
    """Points of the quadratic curve from a to b with control point `middle`."""
    t = np.linspace(0, 1, n_points)[:, None]
    return np.asarray((1 - t) ** 2 * a + 2 * t * (1 - t) * middle + t**2 * b)


def _rim(along_2: Array, half_2: Array, boxed: bool) -> float:
    """Share of a line that lies inside the box or dot at its end."""
    with np.errstate(divide="ignore"):
        share = np.min(half_2 / np.abs(along_2)) if boxed else half_2[0] / max(float(np.hypot(*along_2)), 1e-9)
    return float(min(share, 0.9))


def _draw_boxes(
    axes: Axes, labels: list[str], place_d2: Array, half_d2: Array, font: float, adjacency_dd: Array
) -> None:
    """Names in rounded boxes; variables without links are pale."""
    from matplotlib.patches import FancyBboxPatch

    linked_d = (adjacency_dd + adjacency_dd.T).sum(axis=0)
    for label, (x, y), (w, h), linked in zip(labels, place_d2, half_d2, linked_d, strict=True):
        fill = NODE if linked else "#eef2f5"
        shape = f"round,pad=0,rounding_size={h * 0.75}"
        box = FancyBboxPatch((x - w, y - h), 2 * w, 2 * h, boxstyle=shape, fc=fill, ec=PAPER, lw=1.5, zorder=3)
        axes.add_patch(box)
        axes.text(x, y, label, ha="center", va="center", fontsize=font, color=PAPER if linked else QUIET, zorder=4)


def _draw_dots(
    axes: Axes, labels: list[str], place_d2: Array, half_d2: Array, font: float, adjacency_dd: Array
) -> None:
    """Dots, larger for more links, with names beside them wherever there is room."""
    from matplotlib.patheffects import withStroke

    degree_d = (adjacency_dd + adjacency_dd.T > 0).sum(axis=0)
    radius_d = half_d2[:, 0] * (0.7 + 0.15 * np.minimum(degree_d, 6))
    colours = [NODE if degree else "#c3ccd5" for degree in degree_d]
    axes.scatter(
        place_d2[:, 0], place_d2[:, 1], s=(2 * radius_d) ** 2, c=colours, edgecolors=PAPER, linewidths=0.8, zorder=3
    )
    halo = [withStroke(linewidth=2, foreground=PAPER)]
    for node, (x, y), align in place_labels(labels, place_d2, radius_d, font, adjacency_dd):
        colour = INK if degree_d[node] else QUIET
        axes.text(x, y, labels[node], ha=align, va="center", color=colour, fontsize=font, zorder=4, path_effects=halo)


def place_labels(
    labels: list[str], place_d2: Array, radius_d: Array, font: float, adjacency_dd: Array
) -> list[tuple[int, Array, str]]:
    """Find a free spot beside each dot, away from its links; labels that would cover something are left out.

    Dots with many links choose first.

    Returns
    -------
    list of (node, place, alignment)
        Spots in points; y is the middle of the text.
    """
    taken = np.concatenate([place_d2 - radius_d[:, None], place_d2 + radius_d[:, None]], axis=1)
    linked_dd = (adjacency_dd + adjacency_dd.T) > 0
    spots = []
    for node in np.argsort(-linked_dd.sum(axis=0), kind="stable").tolist():
        w, h, r = 0.6 * font * len(labels[node]), 1.15 * font, radius_d[node] + 1.5
        sides = [("left", r, 0.0), ("right", -r, 0.0), ("center", 0.0, -r - h / 2), ("center", 0.0, r + h / 2)]
        along_n2 = place_d2[linked_dd[node]] - place_d2[node]
        along_n2 = along_n2 / np.maximum(np.linalg.norm(along_n2, axis=1, keepdims=True), 1e-9)
        for align, dx, dy in sorted(sides, key=lambda side: _nearest_link(along_n2, side[1:])):
            x, y = place_d2[node] + [dx, dy]
            left = x - {"left": 0.0, "center": w / 2, "right": w}[align]
            box = np.array([left, y - h / 2, left + w, y + h / 2])
            if not ((box[:2] < taken[:, 2:]) & (taken[:, :2] < box[2:])).all(axis=1).any():
                taken = np.vstack([taken, box])
                spots.append((node, np.array([x, y]), align))
                break
    return spots


def _nearest_link(along_n2: Array, side: tuple[float, float]) -> float:
    """Cosine between a side and the link closest to it; small is good."""
    direction = np.array(side) / np.hypot(*side)
    return round(float((along_n2 @ direction).max(initial=-1.0)), 3)
