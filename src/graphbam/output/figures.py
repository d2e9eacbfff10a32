"""Pictures of graphs and tables.

Matplotlib is an optional dependency and loads inside the functions. Figures are made without pyplot, so nothing
touches global state and no display is needed.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbam.errors import ConfigError, GraphbamError, GraphError, spell_count
from graphbam.graphs.cut import EVEN, Cut
from graphbam.graphs.graph import MORAL, SKELETON, Graph
from graphbam.machine.disk import clear_errors, make_folder
from graphbam.output.drawing import (
    INK,
    MORAL_LINE,
    NODE,
    PAPER,
    QUIET,
    Sheet,
    Stroke,
    list_edges,
    measure_width,
    shorten,
)
from graphbam.output.layout import Array, can_lay_out, start_engine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

    from graphbam.result import Result


DEPTH_COLOURS = ("#12466b", "#1f6f8b", "#2f9c95", "#7fb069", "#e6aa3c", "#dd6e42", "#b23a48")
"""From causes to effects; deeper levels repeat the last colour."""

MOST_SCATTERS = 12
"""Edges beyond this number get no scatter plot in the picture of a world."""

_POINT_LIMIT = 1500  # scatter plots show at most this many samples
_WIDTHS = (7.0, 26.0)  # of a picture of a graph, in inches
_MOST_LINES, _MOST_NAMES = 400, 400  # of more, the likeliest, and those with lines
_READABLE = 6.5  # points; a picture grows until names are as large

_LEGEND = "width of a line: how likely the link is"
_LEGENDS = {
    "sure": "head and number: how likely that direction is, given the link · no head: direction left open",
    "plain": "shade of a head: how likely that direction is, given the link · no head: direction left open",
    "open": "no heads: all directions are left open",
    "forced": "hollow head: by itself another direction is likelier, and only the graph as a whole needs this one",
    "guessed": "open head: a guess, what depends on what does not tell this direction",
    "hidden": "dashed, two heads: a hidden common cause",
    "moral": "dashed, no head: linked through a common child only",
}


def can_draw() -> bool:
    """Whether pictures can be drawn here: matplotlib and the layout's engine are installed."""
    return importlib.util.find_spec("matplotlib") is not None and can_lay_out()


def draw_world(
    dag: Graph,
    x_md: Array,
    *,
    bidirected: Iterable[tuple[str, str]] = (),
    set_md: NDArray[np.bool_] | None = None,
    title: str = "",
    max_scatters: int = MOST_SCATTERS,
) -> Figure:
    """Draw a simulated world: its graph, and a scatter plot for each edge.

    Parameters
    ----------
    dag : Graph
        Directed; arrows that close a loop are dashed.
    x_md : ndarray, shape (n_samples, n_variables)
        Columns in the order of ``dag.names``; missing cells are NaN.
    bidirected : iterable of pairs of names
        Pairs with a hidden common cause, joined by dashed arrows with two heads.
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
        f"two heads: {spell_count(len(joined), 'pair')} with a hidden cause": len(joined),
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
    """Draw a directed acyclic graph, causes above their effects, with a colour for each depth.

    Arrows of `back` may run upwards and are dashed; pairs of `joined` get dashed arrows with two heads.
    """
    depth_d, strokes = _depths(graph.adjacency), list_edges(graph)
    strokes += [Stroke(i, j, 0.75, kind="back") for i, j in back]
    strokes += [Stroke(i, j, 0.6, kind="hidden") for i, j in joined]
    Sheet(graph.names, strokes, _points_of(axes)).draw(axes, lambda node: _depth_colour(depth_d[node]))


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure to a file; the suffix names the format, and missing folders are made."""
    path = _check_format(path)
    make_folder(path.parent)
    with clear_errors(path):
        figure.savefig(path, dpi=150, facecolor=PAPER)
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


def save_plot(result: Result, path: Path, cut: Cut | None) -> None:
    """`plot` into a file, with nothing to hand back: another process may do it."""
    plot(result, path, cut=cut)


def rehearse() -> None:
    """Draw two variables into memory: libraries, fonts and the layout are loaded ahead of the first picture."""
    threading.Thread(target=start_engine, daemon=True).start()  # in a process of its own
    _check_format("graph.png")
    figure = _new_figure(2, 2)
    draw_graph(figure.add_axes((0, 0, 1, 1)), Graph(("a", "b"), np.eye(2, k=1, dtype=np.int8)))
    to_png(figure)


def _check_matplotlib() -> None:
    if not can_draw():
        raise GraphbamError(
            "pictures need matplotlib and mini-racer, of which one is not installed; run: pip install 'graphbam[plot]'"
        )


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
        names = f"{dag.names[cause]} → {dag.names[effect]}"
        axes.set_title(names, fontsize=10.5, color=INK, pad=4, parse_math=False)


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
        axes.set_title(title, fontsize=10.5, color=INK, parse_math=False)  # names may hold dollars
        axes.set_xlabel(shorten(names[0]), color=QUIET)
        axes.set_ylabel(shorten(names[1]), color=QUIET)
    figure.tight_layout()
    if path is not None:
        save(figure, path)
    return figure


# ── the picture of a result ───────────────────────────────────────────────────────────────────────────────


def plot(
    source: Result | Graph,
    path: str | os.PathLike[str] | None = None,
    *,
    cut: Cut | float | None = None,
    threshold: float | None = None,
    fdr: float | None = None,
    moral: bool = False,
    hidden: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the graph of a result, or any graph: causes above effects; likelier links and arrow heads are darker.

    Parameters
    ----------
    source : Result or Graph
        Of a result, its `graph` is drawn: with directions where they are known. Of ``result.dag()``, arrows that are a
        guess have an open head.
    path : path, optional
        Where to save the picture; the suffix names the format.
    cut, threshold, fdr
        As in `Result.graph`.
    moral : bool
        Whether to add pairs that are linked through a common child only, dashed; see `Result.moral_pairs`.
    hidden : bool
        Whether to add pairs behind which there is rather a hidden common cause than none, dashed with two heads.
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
    _check_matplotlib()
    chosen = Cut.read(cut, threshold=threshold, fdr=fdr)
    figure = draw(source, chosen, moral=moral, hidden=hidden, title=title, ax=ax)
    if path is not None:
        save(figure, path)
    elif ax is None:
        show_later(figure)
    return figure


def draw(
    source: Result | Graph,
    cut: Cut | None = None,
    *,
    moral: bool = False,
    hidden: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """The figure of `plot`, which is shown and saved by nobody."""
    chosen = cut or Cut()
    every = _list_strokes(source, chosen, moral, hidden)
    names, strokes = _choose_drawn(source.names, every)
    if ax is None:
        said = _headline(source, every, chosen) if title is None else title
        left_out = _tell_left_out(len(every) - len(strokes), len(source.names) - len(names))
        ax, sheet = _new_sheet(names, strokes, said + left_out)
    else:
        sheet = Sheet(names, strokes, _points_of(ax))
        if title:
            ax.set_title(title, color=INK, loc="left")
    sheet.draw(ax)
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


_waiting: list[Figure] = []  # drawn in this cell of a notebook, and not shown yet
_heard: set[int] = set()  # notebooks that tell when a cell is done


def show_later(figure: Figure) -> None:
    """In a notebook, show a figure when its cell is done, unless it was shown or saved by then: loops show all."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or getattr(shell, "kernel", None) is None:
        return
    if id(shell) not in _heard:
        shell.events.register("post_run_cell", lambda *_: _show_waiting())
        _heard.add(id(shell))
    _waiting.append(figure)
    canvas = figure.canvas
    render = canvas.print_figure

    def note(*arguments: Any, **options: Any) -> Any:
        if figure in _waiting:
            _waiting.remove(figure)
        return render(*arguments, **options)

    setattr(canvas, "print_figure", note)  # noqa: B010  whoever shows or saves it comes by here


def _show_waiting() -> None:
    from IPython.display import display

    figures, _waiting[:] = list(_waiting), []
    for figure in figures:
        display(figure)


def _list_strokes(source: Result | Graph, cut: Cut, moral: bool, hidden: bool) -> list[Stroke]:
    """Lines to draw, the faintest first so that the surest lie on top."""
    from graphbam.result import Result

    if isinstance(source, Graph):
        return sorted(list_edges(source), key=lambda stroke: stroke.p)
    if not isinstance(source, Result):
        raise GraphError(f"a {type(source).__name__} cannot be drawn. Pass a Result or a Graph.")
    p_dd3, hidden_dd = source.probabilities, source.hidden_causes
    strokes = list_edges(source.graph(cut), p_dd3[..., SKELETON])
    if moral:
        pairs = np.argwhere(np.triu(source.moral_pairs(cut).adjacency)).tolist()
        strokes += [Stroke(i, j, float(p_dd3[i, j, MORAL]), kind="moral") for i, j in pairs]
    if hidden and hidden_dd is not None:
        pairs = np.argwhere(np.triu(hidden_dd, 1) >= EVEN).tolist()
        strokes += [Stroke(i, j, float(hidden_dd[i, j]), kind="hidden") for i, j in pairs]
    return sorted(strokes, key=lambda stroke: (stroke.kind == "link", stroke.p))


def _choose_drawn(names: Sequence[str], strokes: list[Stroke]) -> tuple[list[str], list[Stroke]]:
    """The likeliest lines, and the variables they join; others as far as there is room."""
    strokes = strokes[-_MOST_LINES:]
    linked = {end for stroke in strokes for end in (stroke.i, stroke.j)}
    lone = [node for node in range(len(names)) if node not in linked][: max(0, _MOST_NAMES - len(linked))]
    kept = sorted([*linked, *lone])
    place = {node: k for k, node in enumerate(kept)}
    return [names[node] for node in kept], [s._replace(i=place[s.i], j=place[s.j]) for s in strokes]


def _tell_left_out(n_lines: int, n_names: int) -> str:
    parts = [f"the {n_lines} least likely"] if n_lines else []
    parts += [f"{n_names} variables without links"] if n_names else []
    return f" · not drawn: {', '.join(parts)}" if parts else ""


def _headline(source: Result | Graph, strokes: list[Stroke], cut: Cut) -> str:
    n_direct, n_arrows = sum(stroke.kind == "link" for stroke in strokes), sum(stroke.is_directed for stroke in strokes)
    links = spell_count(n_direct, "link")
    if n_arrows or any(stroke.sure is not None for stroke in strokes):
        links += f", {n_arrows or 'none'} directed"
    parts = [f"{len(source.names)} variables", links]
    for kind, what in (("moral", "through a common child only"), ("hidden", "with a hidden common cause")):
        n_pairs = sum(stroke.kind == kind for stroke in strokes)
        parts += [f"{n_pairs} {what} (dashed)"] if n_pairs else []
    if isinstance(source, Graph):
        return " · ".join(parts)
    parts.append(str(cut))
    n_suspected = 0 if source.hidden_causes is None else int((np.triu(source.hidden_causes, 1) >= EVEN).sum())
    if n_suspected and not any(stroke.kind == "hidden" for stroke in strokes):  # a lone variable need not be unrelated
        parts.append(_spell_suspected(n_suspected, len(source.names)))
    return " · ".join(parts)


def _spell_suspected(n_pairs: int, n_variables: int) -> str:
    """Pairs that rather have a hidden cause, or so many that it is doubt: as `Result.say_hidden` tells them apart."""
    from graphbam.result import suspects_all

    if suspects_all(n_pairs, n_variables):
        return f"in doubt: one hidden factor behind {n_pairs} pairs"
    what = "1 pair that rather shares" if n_pairs == 1 else f"{n_pairs} pairs that rather share"
    return f"not drawn: {what} a hidden cause"


def _spell_legend(strokes: list[Stroke], has_numbers: bool) -> list[str]:
    """What the lines mean; only what is there."""
    knows, has_arrows = any(stroke.sure is not None for stroke in strokes), any(s.is_directed for s in strokes)
    ways = "open" if not has_arrows else "sure" if has_numbers else "plain"
    there = {what: knows and what == ways for what in ("sure", "plain", "open")}
    there |= {"forced": any(s.is_forced and not s.is_guessed for s in strokes)}
    there |= {"guessed": any(stroke.is_guessed for stroke in strokes)}
    there |= {kind: any(stroke.kind == kind for stroke in strokes) for kind in ("hidden", "moral")}
    lines = [text for what, text in _LEGENDS.items() if there[what]]
    return [f"{_LEGEND} · {lines[0]}", *lines[1:]] if lines else []


def _new_sheet(names: Sequence[str], strokes: list[Stroke], title: str) -> tuple[Axes, Sheet]:
    """A figure as wide as names need to be read, its height that of the drawing, title above and legend below."""
    width = _WIDTHS[0] + min(4.0, len(names) / 15)
    frame = 72 * 0.96 * width, 72 * 0.66 * width
    sheet = Sheet(names, strokes, frame)
    if sheet.font < _READABLE and width < _WIDTHS[1]:
        width = min(_WIDTHS[1], width * _READABLE / sheet.font)
        frame = 72 * 0.96 * width, 72 * 0.66 * width
        sheet = Sheet(names, strokes, frame)
    legend = _spell_legend(strokes, sheet.has_numbers)
    foot, head, tall = 14.0 * len(legend) + 8, 28.0, sheet.crop(margin=6.0)  # points
    height = (tall + foot + head) / 72
    figure = _new_figure(width, height)
    axes = figure.add_axes((0.02, foot / 72 / height, 0.96, tall / 72 / height))
    _points_of(axes)
    font = 10.5 * min(1.0, 0.95 * frame[0] / measure_width(title, 10.5))  # screens draw letters a little wider
    figure.text(0.02, 1 - head / 144 / height, title, color=QUIET, fontsize=font, va="center")
    font = min(8.5, 0.92 * width)
    for line, text in enumerate(legend):
        figure.text(0.02, (foot - 10 - 14 * line) / 72 / height, text, color=QUIET, fontsize=font, va="center")
    return axes, sheet


def _points_of(axes: Axes) -> tuple[float, float]:
    """Let one unit of the axes be one point on paper, y downwards; returns its size."""
    axes.set_axis_off()
    inches = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    width, height = 72 * inches.width, 72 * inches.height
    axes.set(xlim=(0, width), ylim=(height, 0), autoscale_on=False)
    return width, height
