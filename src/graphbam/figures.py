"""Pictures of graphs and tables.

Matplotlib is an optional dependency and loads inside the functions. Figures are made without pyplot, so nothing
touches global state and no display is needed.
"""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbam.errors import GraphbamError
from graphbam.graph import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

Array = NDArray[np.float64]

INK, QUIET, LINE, PAPER = "#1f2933", "#7b8794", "#6b7a8a", "#ffffff"
"""Colours of text, of secondary text, of edges and of the background."""

DEPTH_COLOURS = ("#12466b", "#1f6f8b", "#2f9c95", "#7fb069", "#e6aa3c", "#dd6e42", "#b23a48")
"""From causes to effects; deeper levels repeat the last colour."""

_LABEL_LIMIT = 40  # graphs with more variables are drawn without names
_POINT_LIMIT = 1500  # scatter plots show at most this many samples


def has_matplotlib() -> bool:
    """Whether pictures can be drawn here."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_world(dag: Graph, x_md: Array, *, title: str = "", max_scatters: int = 12) -> Figure:
    """Draw a simulated world: its graph, and a scatter plot for each edge.

    Parameters
    ----------
    dag : Graph
        Directed and acyclic.
    x_md : ndarray, shape (n_samples, n_variables)
        Columns in the order of ``dag.names``.
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
    edges = sorted(np.argwhere(dag.adjacency), key=lambda edge: _depths(dag.adjacency)[edge].tolist())
    shown = edges[:max_scatters]
    grid = figure.add_gridspec(1, 2, width_ratios=(1.0, 1.4), left=0.02, right=0.98, top=0.85, bottom=0.04)
    draw_graph(figure.add_subplot(grid[0]), dag)
    if shown:
        _draw_scatters(figure, grid[1], dag, x_md, shown)
    note = f"first {len(shown)} of {len(edges)} edges" if len(edges) > len(shown) else f"{len(edges)} edges"
    figure.suptitle(title or "A simulated world", x=0.03, y=0.975, ha="left", fontsize=16, weight="bold", color=INK)
    figure.text(0.03, 0.905, f"{_summary(dag, x_md)} · {note}, causes above, effects below", color=QUIET, fontsize=11)
    return figure


def draw_graph(axes: Axes, graph: Graph) -> None:
    """Draw a directed acyclic graph, causes above their effects."""
    place_d2, routes = layered_layout(graph.adjacency)
    depth_d = _depths(graph.adjacency)
    many = graph.n_variables > _LABEL_LIMIT
    size = 110.0 if many else max(380.0, 1150.0 - 28.0 * graph.n_variables)
    for route in routes:
        _draw_arrow(axes, route, size)
    colours = [_depth_colour(depth) for depth in depth_d]
    axes.scatter(place_d2[:, 0], place_d2[:, 1], s=size, c=colours, edgecolors=PAPER, linewidths=2, zorder=4)
    style: dict[str, Any] = {"color": "white", "fontsize": 10.5 if size > 600 else 7.5, "weight": "bold", "zorder": 5}
    for name, (x, y) in zip(() if many else graph.names, place_d2, strict=not many):
        axes.text(x, y, name, ha="center", va="center", **style)
    axes.margins(0.13, 0.1)
    axes.set_axis_off()


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
    x_v = _order_rows(depths, paths)
    place_v2 = np.stack([x_v, 0.0 - np.array(depths)], axis=1)
    return place_v2[: len(depth_d)], [place_v2[path] for path in paths]


def _order_rows(depths: list[int], paths: list[list[int]]) -> Array:
    """x of every variable and every slot of a passing edge, so that linked ones are close."""
    rows: list[list[int]] = [[] for _ in range(max(depths) + 1)]
    links: list[list[int]] = [[] for _ in depths]
    for path in paths:
        for a, b in itertools.pairwise(path):
            links[a].append(b)
            links[b].append(a)
    for v, depth in enumerate(depths):
        rows[depth].append(v)
    x_v = np.zeros(len(depths))
    for sweep in range(24):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            pull = {v: x_v[links[v]].mean() if links[v] else np.inf for v in row}
            row.sort(key=pull.__getitem__)  # variables without edges go to the end
            x_v[row] = np.arange(len(row)) - (len(row) - 1) / 2
    return x_v


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure to a file; the suffix names the format."""
    figure.savefig(path, dpi=150, facecolor=PAPER)
    return Path(path)


def _new_figure(width: float, height: float) -> Figure:
    if not has_matplotlib():
        raise GraphbamError("pictures need matplotlib, which is not installed; run: pip install 'graphbam[plot]'")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor=PAPER)


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


def _draw_arrow(axes: Axes, route_p2: Array, size: float) -> None:
    """An arrow along a smooth curve that leaves and arrives vertically."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    points, codes = [route_p2[0]], [Curve.MOVETO]
    for before, after in itertools.pairwise(route_p2):
        middle = (before[1] + after[1]) / 2
        points += [np.array([before[0], middle]), np.array([after[0], middle]), after]
        codes += [Curve.CURVE4] * 3
    curve = Curve(np.array(points), codes)
    axes.add_patch(PathPatch(curve, facecolor="none", edgecolor=LINE, linewidth=1.6, zorder=2))
    _draw_arrow_head(axes, route_p2[-2], route_p2[-1], np.sqrt(size) / 2)


def _draw_arrow_head(axes: Axes, before: Array, tip: Array, radius: float) -> None:
    """A head on the rim of a disc of `radius` points around `tip`, along the last part of the curve."""
    t = 0.82 if radius > 12 else 0.7  # discs are large where rows are far apart
    across, down = t * t * (3 - 2 * t), 1.5 * t * (1 - t) + t**3
    along = before + np.array([across, down]) * (tip - before)
    axes.annotate(
        "",
        xy=(tip[0], tip[1]),
        xytext=(along[0], along[1]),
        zorder=3,
        arrowprops={
            "arrowstyle": "-|>,head_length=0.7,head_width=0.32",
            "color": LINE,
            "linewidth": 0,
            "shrinkA": 0,
            "shrinkB": radius + 0.5,
        },
    )


def _draw_scatters(figure: Figure, cell: SubplotSpec, dag: Graph, x_md: Array, edges: list[NDArray[np.int64]]) -> None:
    """Small multiples, cause along x and effect along y."""
    n_columns = min(4, max(2, int(np.ceil(np.sqrt(len(edges))))))
    n_rows = int(np.ceil(len(edges) / n_columns))
    grid = cell.subgridspec(n_rows, n_columns, wspace=0.12, hspace=0.3)
    depth_d = _depths(dag.adjacency)
    for place, (cause, effect) in enumerate(edges):
        axes = figure.add_subplot(grid[place // n_columns, place % n_columns])
        _scatter(axes, x_md[:, cause], x_md[:, effect], _depth_colour(depth_d[effect]))
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
