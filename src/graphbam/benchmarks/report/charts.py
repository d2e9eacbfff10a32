"""Bars, curves, strips of dots, quality against time, a map of cells; every method is named where it is drawn.

One colour per school of thought, dashes and markers within it. Colours are those of Okabe and Ito, which colour-blind
readers can tell apart too; vermilion is graphbam's alone.

Matplotlib loads inside functions and works without pyplot, so that nothing touches global state. The same grid gives
the same bytes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphbam.benchmarks.baselines import BASELINES, load_baseline
from graphbam.benchmarks.report.rows import EMPTY, OURS, Metric, is_ours
from graphbam.benchmarks.report.sheets import number
from graphbam.benchmarks.report.summary import Grid
from graphbam.errors import GraphbamError
from graphbam.output.drawing import INK, PAPER, QUIET
from graphbam.output.figures import can_draw, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

WIDTH, NARROW = 11.5, 8.2
"""Inches of figures with several pictures and with one; on the page, letters then have the size they say."""

RULE, WASH = "#e3e8ee", "#fdf1e7"
"""Colours of grid lines, and of the band behind our row."""

DASHED: Any = (0, (3, 2))
"""How the line of the graph without edges is drawn."""

ROW = 0.178
"""Inches a method takes in a list."""

STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture on every machine
    "font.size": 8,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": QUIET,
    "axes.labelsize": 8,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "svg.hashsalt": "graphbam",
    "svg.fonttype": "path",
}

FEW_CELLS = 0.5
"""A method that answered less than this share of the cells is drawn hollow."""

MOST_WIDENED = 8
"""Times that an axis is widened for names beside its points, which then stand elsewhere."""

SHADES = ("#f4f7fa", "#b9d3e6", "#5b9ac4", "#1f5f8f", "#0b2f4d")
"""From 0 to 1 in the map of cells."""

_HEAD = 0.8  # inches of title, explanation and legend
_MOST_BESIDE = 8  # small multiples in a row
_MOST_EMPTY = 2.0  # scores worse than this many empty graphs are cut


# ── how methods look ────────────────────────────────────────────────────────────────────────────────────────


SCHOOLS = {
    "ours": ("graphbam", "#d55e00"),
    "tests": ("independence tests", "#0072b2"),
    "scores": ("score search", "#009e73"),
    "noise": ("orders and noise", "#cc79a7"),
    "gradients": ("descent on weights", "#56b4e9"),
    "pairs": ("undirected pairs", "#8a929c"),
    "trained": ("trained in advance", "#b08a00"),
    "other": ("other", "#3d4852"),
}
"""Schools with title and colour, in the order of legends."""

VARIANT = "#e69f00"
"""Colour of variants of ours."""

_WORDS = {
    "pairs": ("zero", "glasso", "correlation", "trees", "genie3", "mmpc"),
    "tests": ("pc", "rcit", "rcot", "kci", "hsic", "fci", "gfci"),
    "scores": ("ges", "gies", "fges", "boss", "grasp", "climbing", "hc", "mmhc", "ccdr", "igsp"),
    "noise": ("lingam", "cam", "sortnregress", "score", "nogam", "rcd", "resit", "anm", "igci", "reci", "pnl"),
    "gradients": ("notears", "golem", "dagma", "gnn", "sam", "sdcd"),
    "trained": ("avici", "d2c", "deepgraph"),
}
"""Words of names that tell the school."""

_DASHES: tuple[tuple[float, ...], ...] = ((), (4, 1.5), (1.2, 1.2), (6, 1.5, 1.2, 1.5), (2.5, 1))
_MARKERS = "os^Dv"


class Look(NamedTuple):
    """How one method is drawn."""

    title: str
    school: str
    colour: str
    dashes: tuple[float, ...]
    marker: str


def find_school(method: str) -> str:
    """The school of a method, by the words of its name.

    Examples
    --------
    >>> find_school("pc-kci"), find_school("notears-mlp"), find_school("graphbam"), find_school("mine:Best")
    ('tests', 'gradients', 'ours', 'other')
    """
    if is_ours(method):
        return "ours"
    words = method.lower().replace(":", "-").split("-")
    return next((school for school, known in _WORDS.items() if set(words) & set(known)), "other")


def assign_looks(methods: Iterable[str]) -> dict[str, Look]:
    """A look for each method, the same whichever figure it is drawn in."""
    looks: dict[str, Look] = {}
    n_seen: dict[str, int] = {}
    for method in sorted(set(methods), key=lambda name: (name != OURS, name)):
        school = find_school(method)
        place = n_seen[school] = n_seen.get(school, -1) + 1
        dashes, marker = _DASHES[place % len(_DASHES)], _MARKERS[place // len(_DASHES) % len(_MARKERS)]
        colour = VARIANT if school == "ours" and place else SCHOOLS[school][1]
        looks[method] = Look(find_title(method), school, colour, dashes, marker)
    return looks


def find_title(method: str) -> str:
    """The title of a registered method; others are called by their name."""
    return load_baseline(method).title if method in BASELINES else method


Looks = Mapping[str, Look]


# ── what all figures share ──────────────────────────────────────────────────────────────────────────────────


def style() -> contextlib.AbstractContextManager[None]:
    """Fonts and colours of all figures, for the time of a block."""
    if not can_draw():
        raise GraphbamError("figures need matplotlib, which is not installed; run: pip install 'graphbam[plot]'")
    import matplotlib

    return matplotlib.rc_context(STYLE)


def new_figure(width: float, height: float, title: str, note: str, looks: Iterable[Look] = ()) -> Figure:
    """A figure with its title, one line of explanation, and the colours of the schools drawn in it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor=PAPER)
    left = 0.12 / width
    figure.text(left, 1 - 0.13 / height, title, fontsize=12, weight="bold", va="top")
    figure.text(left, 1 - 0.38 / height, note, fontsize=8.5, color=QUIET, va="top")
    present = {look.school for look in looks}
    for school, (name, colour) in SCHOOLS.items():
        if school in present:
            figure.text(left, 1 - 0.62 / height, "■ " + name, fontsize=7.5, color=colour, va="top")
            left += (0.26 + 0.06 * len(name)) / width
    return figure


def add_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at a place in inches."""
    whole = figure.get_size_inches()
    return figure.add_axes((left / whole[0], bottom / whole[1], width / whole[0], height / whole[1]))


def save_figure(figure: Figure, folder: Path, key: str) -> tuple[Path, Path]:
    """Write a figure as PNG and as SVG; equal figures give equal files."""
    with style():
        png, svg = save(figure, folder / f"{key}.png"), folder / f"{key}.svg"
        figure.savefig(svg, facecolor=PAPER, metadata={"Date": None, "Creator": None})
    return png, svg


def room_for_names(methods: Iterable[str], looks: Looks) -> float:
    """Inches that the longest title takes."""
    return 0.35 + 0.068 * max(len(looks[method].title) for method in methods)


# ── bars ────────────────────────────────────────────────────────────────────────────────────────────────────


def draw_bars(grid: Grid, looks: Looks, title: str, note: str) -> Figure:
    """Small multiples, one per column, with one bar per method, best on top; whiskers are standard deviations."""
    methods = [method for method in grid.order if method != EMPTY]
    n_lines = math.ceil(len(grid.columns) / _MOST_BESIDE)
    n_beside = math.ceil(len(grid.columns) / n_lines)
    names, line = room_for_names(methods, looks), ROW * len(methods) + 0.62
    width, height = min(WIDTH, max(6.5, names + 3.2 * n_beside)), _HEAD + n_lines * line
    room = (width - names - 0.2) / n_beside
    with style():
        figure = new_figure(width, height, title, note, [looks[method] for method in methods])
        for place, column in enumerate(grid.columns):
            across, down = place % n_beside, place // n_beside
            bottom = height - _HEAD - (down + 1) * line + 0.4
            axes = add_axes(figure, names + across * room, bottom, room - 0.14, line - 0.62)
            _draw_bar_column(axes, grid, column, methods, looks)
            heading = grid.titles[place].replace(" (", "\n(")  # next to each other, long ones would touch
            axes.set_title(heading, fontsize=8.5, weight="bold", loc="left", pad=4)
            list_methods(axes, methods, looks, has_names=across == 0)
    return figure


def _draw_bar_column(axes: Axes, grid: Grid, column: Any, methods: list[str], looks: Looks) -> None:
    """Bars, reasons where there are none, the line of the empty graph, and hollow diamonds for others' numbers."""
    low, limit = _bar_range(grid)
    axes.set(xlim=(low, limit), ylim=(len(methods) - 0.4, -0.6))
    axes.grid(axis="x")
    for place, method in enumerate(methods):
        if math.isnan(grid.get(method, column).mean):
            reason = grid.why.get((method, column), "not run")
            axes.text(low, place, f" {reason}", fontsize=6.5, color=QUIET, style="italic", va="center")
        else:
            _draw_bar(axes, grid, method, column, place, looks[method].colour)
        if (method, column) in grid.published:
            axes.plot(grid.published[method, column], place, "D", ms=4.5, mfc=PAPER, mec=INK, mew=1.1, zorder=6)
    if column in grid.floors:
        axes.axvline(grid.floors[column], color=INK, linewidth=1.1, linestyle=DASHED, zorder=4)


def _draw_bar(axes: Axes, grid: Grid, method: str, column: Any, place: int, colour: str) -> None:
    """A bar with its whisker, or a dot where the axis does not begin at 0.

    Ours says its number, a bar that is cut says where it would end, one of fewer trials is hollow and says how many.
    """
    mean, sd, n = grid.get(method, column)
    low, limit = axes.get_xlim()
    is_bold, is_cut, is_bar = is_ours(method), not low <= mean <= limit, low == 0
    if is_bar:
        fill, line = (colour, 0) if grid.is_complete(method, column) else (PAPER, 1)
        look: dict[str, Any] = {"alpha": 1 if is_bold else 0.72, "zorder": 2}
        axes.barh(place, min(mean, limit), height=0.72, facecolor=fill, edgecolor=colour, linewidth=line, **look)
    elif not is_cut:
        axes.plot(mean, place, "o", ms=6 if is_bold else 4.5, color=colour, zorder=4)
    if not math.isnan(sd) and not is_cut:
        axes.plot([max(low, mean - sd), min(mean + sd, limit)], [place, place], color=INK, linewidth=0.9, zorder=3)
    text: dict[str, Any] = {"fontsize": 6.5, "va": "center", "zorder": 5}
    if is_cut and is_bar:
        axes.text(limit, place, f"{mean:.0f} ▸ ", color=INK, ha="right", **text)
    elif is_cut:
        axes.text(low, place, f" ◂ {number(mean, 2).text}", color=INK, **text)
    elif not grid.is_complete(method, column):
        axes.text(low, place, f" {n} of {grid.sizes[column]}", color=INK, style="italic", **text)
    elif is_bold and mean - low > 0.3 * (limit - low):
        digits = min(grid.metric.digits, 3)
        axes.text(low, place, " " + number(mean, digits).text, color=PAPER if is_bar else colour, weight="bold", **text)


def _bar_range(grid: Grid) -> tuple[float, float]:
    """From where to where bars run: shares from 0 to 1, accuracies to 1, distances from 0 to a few empty graphs."""
    means = [numbers.mean for numbers in grid.spreads.values() if numbers.n]
    if grid.metric.name == "skeleton_accuracy":
        lowest = max(min(means), 1 - _MOST_EMPTY * (1 - min(grid.floors.values())))
        return max(0.0, math.floor(lowest * 50 - 0.2) / 50), 1.0
    if grid.metric.is_better_high:
        return 0.0, 1.0
    ends = [numbers.mean + np.nan_to_num(numbers.sd) for numbers in grid.spreads.values() if numbers.n]
    return 0.0, max(min(1.04 * max(ends), _cut(grid)), 1.0)


def _cut(grid: Grid) -> float:
    """Where distances are cut, so that one method that finds everything does not press the others to the left."""
    return max(grid.floors.values()) * _MOST_EMPTY if grid.floors else math.inf


def list_methods(axes: Axes, methods: Sequence[str], looks: Looks, *, has_names: bool) -> None:
    """Names to the left of rows; ours are bold and lie on a band."""
    from matplotlib.ticker import MaxNLocator

    axes.spines[["left", "bottom"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("0.", "."))
    axes.tick_params(axis="x", labelsize=7, pad=1)
    axes.set_yticks([])
    for place, method in enumerate(methods):
        if is_ours(method):
            axes.axhspan(place - 0.5, place + 0.5, color=WASH, zorder=0)
        if has_names:
            colour, weight = (looks[method].colour, "bold") if is_ours(method) else (INK, "normal")
            axes.annotate(
                looks[method].title, (0, place), (-5, 0), ("axes fraction", "data"), "offset points", ha="right",
                va="center", fontsize=7.8, color=colour, weight=weight,
            )  # fmt: skip


# ── curves ──────────────────────────────────────────────────────────────────────────────────────────────────


def draw_curves(grids: Sequence[Grid], looks: Looks, title: str, note: str, axis: str, heads: Sequence[str]) -> Figure:
    """Scores over a size, one picture per grid; names stand at the ends of the curves."""
    methods = sorted({method for grid in grids for method in grid.order if method != EMPTY})
    n_beside = min(2, len(grids))
    width, line = WIDTH if n_beside == 2 else NARROW, max(3.4, 0.145 * (len(methods) + 2) + 1.0)
    height, room = 0.7 + math.ceil(len(grids) / n_beside) * line, width / n_beside
    names = 0.4 + room_for_names(methods, looks)
    with style():
        figure = new_figure(width, height, title, note, [looks[method] for method in methods])
        for place, (grid, head) in enumerate(zip(grids, heads, strict=True)):
            left, bottom = place % n_beside * room + 0.6, height - 0.7 - (place // n_beside + 1) * line + 0.5
            axes = add_axes(figure, left, bottom, room - 0.6 - names, line - 0.85)
            _scale_axes(axes, grid, axis)
            _draw_picture(axes, grid, looks, axis)
            axes.set_title(head, fontsize=8.5, weight="bold", loc="left", pad=5)
    return figure


class End(NamedTuple):
    """The name at the end of a curve."""

    name: str
    y: float
    colour: str
    is_bold: bool = False
    has_line: bool = True
    """Whether a thin line leads to the last point."""


def _draw_picture(axes: Axes, grid: Grid, looks: Looks, axis: str) -> None:
    ends = []
    for method in grid.order:
        known = [column for column in grid.columns if grid.get(method, column).n]
        if method == EMPTY or not known:
            continue
        _draw_curve(axes, grid, method, known, looks[method])
        ends.append(_make_end(grid, method, known[-1], looks[method], axis, top=axes.get_ylim()[1]))
    if grid.floors:
        floors = [grid.floors[column] for column in grid.columns]
        axes.plot(grid.columns, floors, color=INK, linewidth=1.3, linestyle=DASHED, zorder=4)
        ends.append(End("empty graph", min(floors[-1], axes.get_ylim()[1]), INK))
    _name_ends(axes, ends)


def _draw_curve(axes: Axes, grid: Grid, method: str, columns: list[Any], look: Look) -> None:
    """Means, a band of one standard deviation if it is ours, and hollow diamonds for others' numbers."""
    mean = np.array([grid.get(method, column).mean for column in columns])
    is_bold = is_ours(method)
    axes.plot(
        columns, mean, color=look.colour, dashes=look.dashes, marker=look.marker, markersize=5 if is_bold else 2.8,
        linewidth=2.4 if is_bold else 1.0, zorder=5 if is_bold else 3, alpha=1 if is_bold else 0.85,
    )  # fmt: skip
    if is_bold:
        sd = np.nan_to_num([grid.get(method, column).sd for column in columns])
        axes.fill_between(columns, mean - sd, mean + sd, color=look.colour, alpha=0.14, linewidth=0, zorder=2)
    theirs = {column: grid.published[method, column] for column in grid.columns if (method, column) in grid.published}
    axes.plot(list(theirs), list(theirs.values()), "D", ms=5, mfc=PAPER, mec=look.colour, zorder=6)


def _make_end(grid: Grid, method: str, last: Any, look: Look, axis: str, top: float) -> End:
    """The name of a curve, with a hint where it stops early or leaves the picture."""
    y = grid.get(method, last).mean
    if last != grid.columns[-1]:
        return End(f"{look.title} ({axis} ≤ {last:g})", min(y, top), look.colour, is_ours(method), has_line=False)
    if y > top:
        return End(f"{look.title} ({y:.0f} ▴)", top, look.colour, is_ours(method), has_line=False)
    return End(look.title, y, look.colour, is_ours(method))


def _scale_axes(axes: Axes, grid: Grid, axis: str) -> None:
    """Sizes on a logarithmic axis, marked where there are results; seconds too."""
    from matplotlib.ticker import NullFormatter, NullLocator

    axes.set_xscale("log")
    axes.set(xlim=(grid.columns[0] / 1.06, grid.columns[-1] * 1.06), xlabel=axis, ylabel=grid.metric.title)
    axes.set_xticks(grid.columns, [f"{column:g}" for column in grid.columns])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y")
    means = [numbers.mean for (method, _), numbers in grid.spreads.items() if numbers.n and method != EMPTY]
    if grid.metric.name == "seconds":
        axes.set_yscale("log")
        axes.set_ylim(min(means) / 1.5, max(means) * 1.5)
        axes.yaxis.set_major_formatter(write_plainly)
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif grid.metric.is_better_high:
        axes.set_ylim(0, 1.02)
    else:
        axes.set_ylim(0, max(min(1.05 * max([*means, *grid.floors.values()]), _cut(grid)), 1.0))


def write_plainly(value: float, _: float) -> str:
    """A tick as a plain number, not as a power of ten."""
    return f"{value:g}"


def _name_ends(axes: Axes, ends: list[End], font: float = 7.3) -> None:
    """Names beside the last points, moved apart where they would touch."""
    points = axes.transData.transform([(axes.get_xlim()[1], end.y) for end in ends])[:, 1]
    box, scale = axes.get_window_extent(), axes.figure.dpi / 72
    places = part_labels(points, 1.32 * font * scale, box.y0 - 8 * scale, box.y1 + 8 * scale)
    for end, place in zip(ends, places, strict=True):
        line = {"arrowstyle": "-", "color": end.colour, "linewidth": 0.5, "alpha": 0.6, "shrinkA": 1, "shrinkB": 1}
        spot = (1 + 13 * scale / box.width, (place - box.y0) / box.height)
        axes.annotate(
            end.name, (1, end.y), spot, ("axes fraction", "data"), "axes fraction", fontsize=font, color=end.colour,
            va="center", weight="bold" if end.is_bold else "normal", annotation_clip=False,
            arrowprops=line | {"relpos": (0, 0.5)} if end.has_line else None,
        )  # fmt: skip


def part_labels(y_n: Sequence[float] | NDArray[np.float64], gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Places at least `gap` apart, in the order of `y_n` and as close to it as possible, within limits if they fit.

    Examples
    --------
    >>> part_labels([5.0, 5.0, 9.0], gap=2.0, low=0.0, high=10.0)
    array([4., 6., 9.])
    """
    y = np.asarray(y_n, float)
    order = np.argsort(y, kind="stable")
    steps = gap * np.arange(len(y))
    runs: list[tuple[float, int]] = []  # mean and length of runs of labels that touch
    for level in y[order] - steps:
        run = (float(level), 1)
        while runs and runs[-1][0] > run[0]:
            mean, length = runs.pop()
            run = ((mean * length + run[0] * run[1]) / (length + run[1]), length + run[1])
        runs.append(run)
    levels = np.concatenate([np.full(length, mean) for mean, length in runs])
    placed = np.empty_like(y)
    placed[order] = np.clip(levels, low, max(low, high - steps[-1])) + steps
    return placed


# ── overviews ───────────────────────────────────────────────────────────────────────────────────────────────


def draw_strips(values: pd.DataFrame, metric: Metric, looks: Looks, title: str, note: str) -> Figure:
    """One row per method: a pale dot for each value, a strong one for their mean, a whisker for their spread.

    Parameters
    ----------
    values : DataFrame
        One row per cell, one column per method; between 0 and 1.
    """
    mean = values.mean().sort_values(ascending=not metric.is_better_high)
    methods = [str(name) for name in mean.index if name != EMPTY]
    names, rows = room_for_names(methods, looks), 1.15 * ROW * len(methods)
    with style():
        figure = new_figure(NARROW, rows + 1.3, title, note, [looks[method] for method in methods])
        axes = add_axes(figure, names, 0.42, NARROW - names - 0.8, rows)
        low = max(0.0, math.floor(10 * values.min().min()) / 10)
        axes.set(xlim=(low, 1.01), ylim=(len(methods) - 0.4, -0.6))
        axes.grid(axis="x")
        for place, method in enumerate(methods):
            _draw_strip(axes, values[method], place, looks[method].colour)
        list_methods(axes, methods, looks, has_names=True)
    return figure


def _draw_strip(axes: Axes, values: pd.Series, place: int, colour: str) -> None:
    known, mean, sd = values.dropna(), values.mean(), values.std(ddof=1)
    axes.plot(known, np.full(len(known), place), "o", ms=3.4, color=colour, alpha=0.25, mec="none")
    axes.plot([mean - sd, mean + sd], [place, place], color=INK, linewidth=0.9)
    axes.plot(mean, place, "o", ms=6.5, color=colour, mec=PAPER, mew=0.8, zorder=4)
    text = number(mean).text + ("" if len(known) == len(values) else f"  n = {len(known)}")
    axes.annotate(text, (1, place), (5, 0), ("axes fraction", "data"), "offset points", va="center", fontsize=7)


def draw_tradeoff(table: pd.DataFrame, looks: Looks, title: str, note: str) -> Figure:
    """Quality over seconds: the upper left corner is where one wants to be.

    Parameters
    ----------
    table : DataFrame
        Index: method; columns seconds, score and share of cells answered. Points are hollow where that is below half.
    """
    table = table[table.index != EMPTY].dropna().sort_values("score", ascending=False)
    methods = [str(method) for method in table.index]
    with style():
        figure = new_figure(NARROW, 5.6, title, note, [looks[method] for method in methods])
        axes = add_axes(figure, 0.65, 0.5, NARROW - 0.9, 4.2)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(write_plainly)
        edge = 0.08 * max(table["score"].max() - table["score"].min(), 0.05)
        axes.set_xlim(table["seconds"].min() / 1.8, table["seconds"].max() * 2.6)
        axes.set_ylim(table["score"].min() - edge, table["score"].max() + edge)
        axes.set(xlabel="seconds per table, median", ylabel="Average precision, skeleton, mean over cells")
        axes.grid()
        axes.spines[["left", "bottom"]].set_visible(False)
        colours = [looks[method].colour for method in methods]
        fills = np.where(table["share"] < FEW_CELLS, PAPER, colours)
        sizes = np.array([90.0 if is_ours(method) else 38.0 for method in methods])
        axes.scatter(table["seconds"], table["score"], s=sizes, c=fills, edgecolors=colours, linewidths=1.2, zorder=3)
        for n_left in reversed(range(MOST_WIDENED + 1)):
            names = _name_points(axes, table[["seconds", "score"]].to_numpy(float), methods, looks, np.sqrt(sizes) / 2)
            if not n_left or not _make_room(axes, names):
                break
            for name in names:
                name.remove()
    return figure


def _make_room(axes: Axes, names: list[Text]) -> bool:
    """Widen a logarithmic axis by as much as names reach beyond it; whether that was needed."""
    boxes, frame, (low, high) = [name.get_window_extent() for name in names], axes.get_window_extent(), axes.get_xlim()
    left = max(0.0, frame.x0 - min(box.x0 for box in boxes)) / frame.width
    right = max(0.0, max(box.x1 for box in boxes) - frame.x1) / frame.width
    if left + right <= 0:
        return False
    axes.set_xlim(low / (high / low) ** (1.5 * left), high * (high / low) ** (1.5 * right))
    return True


def _name_points(
    axes: Axes, xy_d2: NDArray[np.float64], methods: list[str], looks: Looks, radius_d: NDArray[np.float64]
) -> list[Text]:
    """Names beside points; one without room stands below its point all the same, smaller."""
    texts = []
    font, scale = 7.6, axes.figure.dpi / 72
    place_d2 = axes.transData.transform(xy_d2) / scale
    names = [looks[method].title for method in methods]
    spots = _find_spots(names, place_d2, radius_d, font)
    for node, method in enumerate(methods):
        below = (place_d2[node] - [0, radius_d[node] + 4.0], "center", font - 1.6)
        place_2, align, size = (*spots[node], font) if node in spots else below
        x, y = axes.transData.inverted().transform(place_2 * scale)
        text: dict[str, Any] = {"color": looks[method].colour, "weight": "bold" if is_ours(method) else "normal"}
        texts.append(axes.text(x, y, names[node], ha=align, va="center", fontsize=size, **text))
    return texts


def _find_spots(
    names: list[str], place_d2: NDArray[np.float64], radius_d: NDArray[np.float64], font: float
) -> dict[int, tuple[NDArray[np.float64], str]]:
    """A free place for each name beside its point, in points on paper, and how it is aligned; none where all is taken.

    The first names choose first.
    """
    taken, spots = np.concatenate([place_d2 - radius_d[:, None], place_d2 + radius_d[:, None]], axis=1), {}
    for node, name in enumerate(names):
        w, h, r = 0.6 * font * len(name), 1.15 * font, radius_d[node] + 1.5
        sides = ("left", r, 0.0), ("right", -r, 0.0), ("center", 0.0, -r - h / 2), ("center", 0.0, r + h / 2)
        for align, dx, dy in sides:
            x, y = place_d2[node] + [dx, dy]
            left = x - {"left": 0.0, "center": w / 2, "right": w}[align]
            box = np.array([left, y - h / 2, left + w, y + h / 2])
            if not ((box[:2] < taken[:, 2:]) & (taken[:, :2] < box[2:])).all(axis=1).any():
                taken, spots[node] = np.vstack([taken, box]), (np.array([x, y]), align)
                break
    return spots


def draw_map(values: pd.DataFrame, groups: Sequence[str], looks: Looks, title: str, note: str) -> Figure:
    """Every cell at a glance: one row per method, one column per cell, darker is better.

    Parameters
    ----------
    values : DataFrame
        One row per cell, one column per method, best first; between 0 and 1.
    groups : sequence of str
        The group of each cell; cells of a group stand together.
    """
    from matplotlib.colors import LinearSegmentedColormap

    methods = [str(name) for name in values.columns if name != EMPTY]
    cells = [str(cell) for cell in values.index]
    names, below, rows = room_for_names(methods, looks), 0.1 + 0.063 * max(map(len, cells)), ROW * len(methods)
    width = min(WIDTH, max(NARROW, names + 0.2 + 0.3 * len(cells)))
    with style():
        figure = new_figure(width, rows + below + 0.9, title, note)
        axes = add_axes(figure, names, below, width - names - 0.2, rows)
        shades = LinearSegmentedColormap.from_list("shades", list(SHADES))
        axes.pcolormesh(values[methods].T.to_numpy(), cmap=shades, vmin=0, vmax=1, edgecolors=PAPER, linewidth=0.6)
        axes.set_ylim(len(methods), 0)
        axes.set_xticks(np.arange(len(cells)) + 0.5, cells, rotation=90, fontsize=6)
        axes.set_yticks(np.arange(len(methods)) + 0.5, [looks[method].title for method in methods], fontsize=7.6)
        axes.spines[:].set_visible(False)
        for label, method in zip(axes.get_yticklabels(), methods, strict=True):
            label.set(color=looks[method].colour if is_ours(method) else INK)
            label.set_fontweight("bold" if is_ours(method) else "normal")
        for start in [place for place, group in enumerate(groups) if group not in groups[:place]]:
            axes.axvline(start, color=PAPER, linewidth=3)
            axes.text(start, -0.4, groups[start], fontsize=7.5, color=QUIET)
    return figure
