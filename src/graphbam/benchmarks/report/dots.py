"""Overviews: families as strips of dots, quality against time, and every cell at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from graphbam.benchmarks.report.charts import (
    NARROW,
    ROW,
    WIDTH,
    Looks,
    add_axes,
    list_methods,
    new_figure,
    room_for_names,
    style,
    write_plainly,
)
from graphbam.benchmarks.report.rows import EMPTY, Metric, is_ours
from graphbam.benchmarks.report.sheets import number
from graphbam.output.figures import INK, PAPER, QUIET, place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW_CELLS = 0.5
"""A method that answered less than this share of the cells is drawn hollow."""

SHADES = ("#f4f7fa", "#b9d3e6", "#5b9ac4", "#1f5f8f", "#0b2f4d")
"""From 0 to 1 in the map of cells."""


def draw_strips(values: pd.DataFrame, metric: Metric, looks: Looks, title: str, note: str) -> Figure:
    """A row a method: a pale dot for each value, a strong one for their mean, a whisker for their spread.

    Parameters
    ----------
    values : DataFrame
        One row a cell, one column a method; between 0 and 1.
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
        axes.set(xlabel="seconds a table, median", ylabel="Average precision, skeleton, mean over cells")
        axes.grid()
        axes.spines[["left", "bottom"]].set_visible(False)
        colours = [looks[method].colour for method in methods]
        fills = np.where(table["share"] < FEW_CELLS, PAPER, colours)
        sizes = np.array([90.0 if is_ours(method) else 38.0 for method in methods])
        axes.scatter(table["seconds"], table["score"], s=sizes, c=fills, edgecolors=colours, linewidths=1.2, zorder=3)
        _name_points(axes, table[["seconds", "score"]].to_numpy(float), methods, looks, np.sqrt(sizes) / 2)
    return figure


def _name_points(
    axes: Axes, xy_d2: NDArray[np.float64], methods: list[str], looks: Looks, radius_d: NDArray[np.float64]
) -> None:
    """Names beside points; one without room stands below its point all the same, smaller."""
    font, scale = 7.6, axes.figure.dpi / 72
    place_d2 = axes.transData.transform(xy_d2) / scale
    names = [looks[method].title for method in methods]
    free = place_labels(names, place_d2, radius_d, font, np.zeros((len(names), len(names))))
    spots = {node: (place_2, align, font) for node, place_2, align in free}
    for node, method in enumerate(methods):
        below = (place_d2[node] - [0, radius_d[node] + 4.0], "center", font - 1.6)
        place_2, align, size = spots.get(node, below)
        x, y = axes.transData.inverted().transform(place_2 * scale)
        text: dict[str, Any] = {"color": looks[method].colour, "weight": "bold" if is_ours(method) else "normal"}
        axes.text(x, y, names[node], ha=align, va="center", fontsize=size, **text)


def draw_map(values: pd.DataFrame, groups: Sequence[str], looks: Looks, title: str, note: str) -> Figure:
    """Every cell at a glance: a row a method, a column a cell, darker is better.

    Parameters
    ----------
    values : DataFrame
        One row a cell, one column a method, best first; between 0 and 1.
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
