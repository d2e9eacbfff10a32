"""One graph onto matplotlib axes: names in boxes, links along the routes of `graphbam.output.layout`."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from graphbam.graphs.graph import Graph, directed_part, undirected_part
from graphbam.output.layout import Array, Layout, lay_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["link", "moral", "hidden", "back"]

INK, QUIET, LINE, PAPER = "#1f2933", "#7b8794", "#6b7a8a", "#ffffff"
"""Colours of text, of secondary text, of edges and of the background."""

NODE, LONE, MORAL_LINE, HIDDEN_LINE = "#12466b", "#eef2f5", "#dd6e42", "#0f8b8d"
"""Colours of variables, of those without links, of links through a common child, and of hidden causes."""

FONT = 11.0
"""Of names, in points, before everything is scaled to its place."""

LARGEST, SMALLEST_FONT = 1.25, 2.5
"""Nothing is drawn larger than by this factor; names that would be smaller are left out."""

_NAME_LIMIT = 20  # longer names are cut
_DENSE_FROM = 80  # variables
_NUMBERED = 40  # up to so many links carry the probability of their direction
_WEIGHTS = {"link": 1.0, "moral": 0.3, "hidden": 0.3, "back": 0.3}


class Stroke(NamedTuple):
    """One line of a picture: two places in `names`, how likely, and how it is drawn."""

    i: int
    j: int
    p: float
    is_directed: bool = False
    kind: Kind = "link"
    sure: float | None = None
    """Probability of the direction, or that it stays open, given the link; where that is known."""
    is_forced: bool = False
    """Whether the arrow is drawn although another direction is likelier; see `OrientedGraph.forced`."""
    is_guessed: bool = False
    """Whether the arrow is a guess; see `OrientedGraph.guessed`."""


def list_edges(graph: Graph, p_dd: Array | None = None) -> list[Stroke]:
    """Lines of a graph; `p_dd` or, if it has them, its own probabilities say how likely they are."""
    from graphbam.result import OrientedGraph

    known = graph if isinstance(graph, OrientedGraph) else None
    p_dd = known.edge_probability_dd if known is not None else p_dd
    p_dd = np.full(graph.adjacency.shape, 0.75) if p_dd is None else p_dd
    strokes = []
    for i, j in np.argwhere(np.triu(undirected_part(graph.adjacency))).tolist():
        arrow_dd = None if known is None else known.arrow_probability_dd
        sure = None if arrow_dd is None else float(1 - arrow_dd[i, j] - arrow_dd[j, i])
        strokes.append(Stroke(i, j, float(p_dd[i, j]), sure=sure))
    for i, j in np.argwhere(directed_part(graph.adjacency)).tolist():
        stroke = Stroke(i, j, float(p_dd[i, j]), is_directed=True)
        if known is not None:
            forced, guessed = bool(known.forced[i, j]), bool(known.guessed[i, j])
            stroke = stroke._replace(sure=float(known.arrow_probability_dd[i, j]), is_forced=forced, is_guessed=guessed)
        strokes.append(stroke)
    return strokes


class Sheet:
    """Names and lines with their places, ready to be drawn in a frame of points on paper.

    Examples
    --------
    >>> sheet = Sheet(["rain", "wet"], [Stroke(0, 1, 0.9, is_directed=True)], (400.0, 300.0))
    >>> bool(sheet.place_d2[0, 1] < sheet.place_d2[1, 1]), sheet.font > 11
    (True, True)
    """

    def __init__(self, names: Sequence[str], strokes: Sequence[Stroke], frame: tuple[float, float]) -> None:
        self.labels, self.strokes = tell_apart(names), list(strokes)
        size_d2 = measure_boxes(self.labels)
        layout = place(size_d2, self.strokes, frame)
        self.scale = min(LARGEST, *(room / max(need, 1.0) for room, need in zip(frame, layout.size, strict=True)))
        left, top = ((room - need * self.scale) / 2 for room, need in zip(frame, layout.size, strict=True))
        self.place_d2 = layout.place_d2 * self.scale + [left, top]
        self.routes = [route * self.scale + [left, top] for route in layout.routes]
        self.half_d2, self.font = size_d2 * self.scale / 2, FONT * self.scale
        self.top, self.height = top, layout.size[1] * self.scale
        self._numbers: list[Array] = []

    def crop(self, margin: float) -> float:
        """Take away what is empty above and below, but for a margin; returns the height that is left, in points."""
        for points in (self.place_d2, *self.routes):
            points[:, 1] -= self.top - margin
        self.top = margin
        return self.height + 2 * margin

    @property
    def has_numbers(self) -> bool:
        """Whether arrows carry how sure they are, where there is room."""
        return len(self.strokes) <= _NUMBERED and self.font > 6

    def draw(self, axes: Axes, colour_of: Callable[[int], str] | None = None) -> None:
        """Draw all of it; `colour_of` a variable, or by whether it has links."""
        for stroke, route in zip(self.strokes, self.routes, strict=True):
            self._draw_line(axes, stroke, route)
        if self.has_numbers:
            self._draw_numbers(axes, [trace(route) for route in self.routes])
        linked = {end for stroke in self.strokes for end in (stroke.i, stroke.j)}
        for node in range(len(self.labels)):
            fill = colour_of(node) if colour_of else NODE if node in linked else LONE
            self._draw_box(axes, node, fill, PAPER if colour_of or node in linked else QUIET)

    def _draw_line(self, axes: Axes, stroke: Stroke, route_p2: Array) -> None:
        """A line, with heads where it has a direction or stands for something hidden."""
        colour = {"link": LINE, "moral": MORAL_LINE, "hidden": HIDDEN_LINE, "back": MORAL_LINE}[stroke.kind]
        length, cut_p2 = 9.0 * self.scale, route_p2.copy()
        for end, next_to in ((-1, -2), (0, 1)):
            if stroke.kind == "hidden" or (end == -1 and (stroke.is_directed or stroke.kind == "back")):
                base = self._draw_head(axes, stroke, route_p2[end], route_p2[next_to], length, colour)
                cut_p2[end] = route_p2[end] if stroke.is_guessed else base
        line_p2 = trace(cut_p2)
        dashes: Any = "solid" if stroke.kind == "link" else (0, (3, 2.2))
        style: dict[str, Any] = {"color": colour, "alpha": _darkness(stroke.p), "linestyle": dashes}
        widest = 1.0 if len(self.labels) >= _DENSE_FROM else 2.2
        width = (0.5 + widest * stroke.p**2) * max(self.scale, 0.35)
        axes.plot(*line_p2.T, linewidth=width, solid_capstyle="butt", zorder=1 + stroke.p, **style)

    def _draw_head(self, axes: Axes, stroke: Stroke, tip: Array, toward: Array, length: float, colour: str) -> Array:
        """A head with its tip on the rim of a box: full, hollow if forced, open if guessed; returns its base."""
        from matplotlib.patches import Polygon

        along = (tip - toward) / max(float(np.hypot(*(tip - toward))), 1e-9)
        base = np.asarray(tip - length * along)
        across = 0.46 * length * np.array([-along[1], along[0]])
        corners, thin = np.stack([base + across, tip, base - across]), max(self.scale, 0.35)
        style: dict[str, Any] = {"facecolor": INK if stroke.kind == "link" else colour, "linewidth": 0}
        style["alpha"] = _darkness(stroke.p if stroke.sure is None else stroke.sure)
        if stroke.is_guessed:
            style = {"facecolor": "none", "edgecolor": LINE, "linewidth": 1.2 * thin, "closed": False}
        elif stroke.is_forced:
            style = {"facecolor": PAPER, "edgecolor": LINE, "linewidth": thin}
        axes.add_patch(Polygon(corners, zorder=2.5, **({"closed": True} | style)))
        return base

    def _draw_numbers(self, axes: Axes, lines: list[Array]) -> None:
        """How sure each direction is, where the number covers no name, no other number and no other line."""
        from matplotlib.patheffects import withStroke

        half_2 = np.array([0.8, 0.36]) * self.font
        for k, stroke in enumerate(self.strokes):
            if not stroke.is_directed or stroke.sure is None:
                continue
            others_p2 = np.concatenate([np.empty((0, 2)), *(line for n, line in enumerate(lines) if n != k)])
            for share in (0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2):
                place_2 = lines[k][round(share * (len(lines[k]) - 1))]
                if self._is_free(place_2, half_2, others_p2):
                    halo = [withStroke(linewidth=2.2, foreground=PAPER)]
                    style: dict[str, Any] = {"fontsize": 0.72 * self.font, "color": INK, "zorder": 2.8}
                    centre: dict[str, Any] = {"ha": "center", "va": "center", "path_effects": halo}
                    axes.text(place_2[0], place_2[1], f"{stroke.sure:.2f}", **style, **centre)
                    self._numbers.append(place_2)
                    break

    def _is_free(self, place_2: Array, half_2: Array, others_p2: Array) -> bool:
        centres_n2 = np.concatenate([self.place_d2, *(number[None] for number in self._numbers), others_p2])
        numbers_n2, points_n2 = np.tile(half_2, (len(self._numbers), 1)), np.zeros_like(others_p2)
        halves_n2 = np.concatenate([self.half_d2, numbers_n2, points_n2]) + half_2
        return not (np.abs(centres_n2 - place_2) < halves_n2).all(axis=1).any()

    def _draw_box(self, axes: Axes, node: int, fill: str, ink: str) -> None:
        from matplotlib.patches import FancyBboxPatch

        (x, y), (w, h) = self.place_d2[node], self.half_d2[node]
        shape = f"round,pad=0,rounding_size={h * 0.6}"
        axes.add_patch(FancyBboxPatch((x - w, y - h), 2 * w, 2 * h, boxstyle=shape, fc=fill, ec="none", zorder=3))
        if self.font >= SMALLEST_FONT:
            style: dict[str, Any] = {"fontsize": self.font, "color": ink, "zorder": 4}
            axes.text(x, y, self.labels[node], ha="center", va="center_baseline", **style)


def place(size_d2: Array, strokes: Sequence[Stroke], frame: tuple[float, float]) -> Layout:
    """The layout of boxes and lines; arrows that close a loop may point upwards."""
    links = [(s.i, s.j, s.is_directed and s.kind == "link", _WEIGHTS[s.kind]) for s in strokes]
    return lay_out(size_d2, links, frame, is_dense=len(size_d2) >= _DENSE_FROM)


def trace(route_p2: Array, n_points: int = 14) -> Array:
    """Points of the smooth curve of a route.

    Examples
    --------
    >>> trace(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]))[[0, -1]].tolist()
    [[0.0, 0.0], [0.0, 2.0]]
    """
    inner_p2 = route_p2[1:-1]
    joints_p2 = np.concatenate([route_p2[:1], (inner_p2[:-1] + inner_p2[1:]) / 2, route_p2[-1:]])
    t = np.linspace(0, 1, n_points)[:, None]
    pieces = [
        (1 - t) ** 2 * a + 2 * t * (1 - t) * middle + t**2 * b
        for (a, b), middle in zip(itertools.pairwise(joints_p2), inner_p2, strict=True)
    ]
    return np.concatenate([piece if k == 0 else piece[1:] for k, piece in enumerate(pieces)])


def shorten(name: str, limit: int = _NAME_LIMIT) -> str:
    """Cut a long name in its middle: names that begin alike often differ at the end."""
    name = " ".join(name.split())
    if len(name) > limit:
        name = f"{name[: limit - 7]}…{name[-6:]}"
    return name.replace("$", r"\$")


def tell_apart(names: Sequence[str]) -> list[str]:
    """Shorten names; those that would then read the same are cut less, as far as they need.

    Examples
    --------
    >>> tell_apart(["median_household_income_of_2010", "median_household_savings_of_2010", "year"])
    ['median_household_i…f_2010', 'median_household_s…f_2010', 'year']
    """
    labels = [shorten(name) for name in names]
    for limit in range(_NAME_LIMIT + 5, max(map(len, names), default=0) + 5, 5):
        count = Counter(labels)
        labels = [
            shorten(name, limit) if count[label] > 1 else label for name, label in zip(names, labels, strict=True)
        ]
    return labels


def measure_boxes(labels: Sequence[str]) -> Array:
    """Width and height of a box around each label, in points, at `FONT`."""
    wide_d = [measure_width(label, FONT) for label in labels]
    return np.array([[max(2.2 * FONT, wide + 1.3 * FONT), 1.9 * FONT] for wide in wide_d], dtype=float)


def measure_width(text: str, size: float) -> float:
    """How wide a line of text is, in points."""
    import warnings

    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    plain, font = text.replace(r"\$", "$") or " ", FontProperties(size=size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters the font lacks are told of when they are drawn
        return float(text_to_path.get_text_width_height_descent(plain, font, ismath=False)[0])


def _darkness(p: float) -> float:
    return 0.35 + 0.6 * max(0.0, (p - 0.3) / 0.7)
