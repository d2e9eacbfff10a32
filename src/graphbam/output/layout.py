"""Where to draw the variables of a graph: linked ones near each other, none on top of another.

Nothing is random: the same graph is always drawn the same way.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_BEND = 0.75  # below 1, long ways are drawn shorter: chains bend instead of stretching across the page
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


def lay_out(adjacency: ArrayLike, aspect: float = 1.5) -> Array:
    """Place the nodes of a graph in a rectangle.

    Every connected part is drawn so that distances on paper follow the number of steps between nodes (stress
    majorisation), turned to lie flat, and the parts are fitted around the largest. Nodes without links stand in rows
    below.

    Parameters
    ----------
    adjacency : array_like, shape (d, d)
        Non-zero where two nodes are linked, in either direction.
    aspect : float
        Width over height of the rectangle.

    Returns
    -------
    ndarray, shape (d, 2)
        x from 0 to 1 and y from 0 (top) to 1.

    Examples
    --------
    >>> place_d2 = lay_out([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> int(place_d2[:, 0].argsort()[1])  # the middle of a chain lies in the middle
    1
    """
    linked = np.asarray(adjacency) != 0
    linked = linked | linked.T
    parts = _find_parts(linked)
    place_d2, taken = np.zeros((len(linked), 2)), set[tuple[int, int]]()
    for part in (part for part in parts if len(part) > 1):
        links_dd = linked[np.ix_(part, part)]
        place_d2[part] = _find_room(_lay_out_part(links_dd), links_dd, taken, aspect)
    alone = np.array([part[0] for part in parts if len(part) == 1], dtype=np.int64)
    if len(alone):
        others = np.delete(place_d2, alone, axis=0)
        place_d2[alone] = _rows_below(others, len(alone), aspect)
    return _fit(place_d2, aspect)


def separate(place_d2: Array, half_d2: Array, size: tuple[float, float]) -> Array:
    """Push boxes apart until none overlap, or as far as the room allows.

    Parameters
    ----------
    place_d2, half_d2 : ndarray, shape (d, 2)
        Centres, and half widths and heights with the margin wanted around them.
    size : tuple of float
        Width and height of the room, from 0.

    Examples
    --------
    >>> place = separate(np.array([[50.0, 50.0], [51.0, 50.0]]), np.full((2, 2), 10.0), (100, 100))
    >>> round(float(place[1, 0] - place[0, 0]))
    20
    """
    place_d2 = place_d2.astype(float)
    room = np.array(size, dtype=float)
    for _ in range(int(np.clip(1e7 / len(place_d2) ** 2, 5, 500))):
        gap_dd2 = place_d2[:, None] - place_d2[None]
        gap_dd2 += np.sign(np.arange(len(place_d2))[:, None] - np.arange(len(place_d2)))[..., None] * 1e-6
        excess_dd2 = np.maximum(half_d2[:, None] + half_d2[None] - np.abs(gap_dd2), 0)
        clash_dd = (excess_dd2 > 0).all(-1) & ~np.eye(len(place_d2), dtype=bool)
        if not clash_dd.any():
            break
        across_dd = excess_dd2[..., 0] < excess_dd2[..., 1]  # move along the shorter way out
        push_dd2 = np.sign(gap_dd2) * excess_dd2 * clash_dd[..., None] / 2
        push_dd2 *= np.stack([across_dd, ~across_dd], axis=-1)
        place_d2 += push_dd2.sum(axis=1) / np.maximum(1, clash_dd.sum(axis=1) ** 0.5)[:, None]
        place_d2 = np.clip(place_d2, np.minimum(half_d2, room / 2), np.maximum(room - half_d2, room / 2))
    return place_d2


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────


def _find_parts(linked_dd: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Connected parts, largest first."""
    unseen, parts = set(range(len(linked_dd))), []
    while unseen:
        reached = np.zeros(len(linked_dd), dtype=bool)
        reached[min(unseen)] = True
        while (grown := reached | linked_dd[reached].any(axis=0)).sum() > reached.sum():
            reached = grown
        parts.append(np.flatnonzero(reached))
        unseen -= set(parts[-1].tolist())
    return sorted(parts, key=len, reverse=True)


def _lay_out_part(linked_dd: NDArray[np.bool_]) -> Array:
    """Stress majorisation of one connected part: steps of length one, its long side along x."""
    far_dd = _count_steps(linked_dd) ** _BEND
    place_d2 = _scale_distances(far_dd)
    n_nodes = len(far_dd)
    weight_dd = 1 / np.maximum(far_dd, 1e-9) ** 2
    np.fill_diagonal(weight_dd, 0)
    inverse_dd = np.linalg.inv(np.diag(weight_dd.sum(axis=1)) - weight_dd + 1 / n_nodes) - 1 / n_nodes
    for _ in range(int(np.clip(60_000 / n_nodes, 60, 300))):
        near_dd = np.linalg.norm(place_d2[:, None] - place_d2[None], axis=-1)
        pull_dd = -weight_dd * far_dd / np.maximum(near_dd, 1e-9)
        np.fill_diagonal(pull_dd, 0)
        np.fill_diagonal(pull_dd, -pull_dd.sum(axis=1))
        place_d2 = inverse_dd @ (pull_dd @ place_d2)
    return _turn_flat(place_d2)


def _count_steps(linked_dd: NDArray[np.bool_]) -> Array:
    """Number of links on the shortest way between every two nodes of a connected part."""
    steps_dd = np.where(linked_dd, 1.0, np.inf)
    np.fill_diagonal(steps_dd, 0)
    reached, n_steps = linked_dd | np.eye(len(linked_dd), dtype=bool), 1
    while np.isinf(steps_dd).any():
        n_steps += 1
        grown = (reached.astype(np.float32) @ linked_dd.astype(np.float32)) > 0
        steps_dd[grown & ~reached & np.isinf(steps_dd)] = n_steps
        reached |= grown
    return steps_dd


def _scale_distances(far_dd: Array) -> Array:
    """Classical scaling as a start, with a small spiral added so that no two nodes coincide."""
    n_nodes = len(far_dd)
    centre = np.eye(n_nodes) - 1 / n_nodes
    values, vectors = np.linalg.eigh(-0.5 * centre @ far_dd**2 @ centre)
    place_d2 = vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0))
    place_d2 = place_d2 * np.where(place_d2[np.abs(place_d2).argmax(axis=0), [0, 1]] < 0, -1, 1)
    turn = np.arange(n_nodes) * _GOLDEN_ANGLE
    return np.asarray(place_d2 + 0.05 * np.stack([np.cos(turn), np.sin(turn)], axis=1))


def _turn_flat(place_d2: Array) -> Array:
    place_d2 = place_d2 - place_d2.mean(axis=0)
    _, vectors = np.linalg.eigh(place_d2.T @ place_d2)
    return np.asarray(place_d2 @ vectors[:, ::-1])


# ── side by side ──────────────────────────────────────────────────────────────────────────────────────────

_CELL = 0.55  # of the grid on which parts are set side by side, in links


def _find_room(place_p2: Array, links_pp: NDArray[np.bool_], taken: set[tuple[int, int]], aspect: float) -> Array:
    """Move a part to the free place nearest to the middle; notes in `taken` the cells it covers."""
    place_p2 = place_p2 - (place_p2.min(axis=0) + place_p2.max(axis=0)) / 2
    cells = _cover(place_p2, links_pp)
    around = {(x + dx, y + dy) for x, y in cells for dx in (-1, 0, 1) for dy in (-1, 0, 1)}
    for radius in itertools.count():
        for dx, dy in _ring(radius, aspect):
            if taken.isdisjoint((x + dx, y + dy) for x, y in around):
                taken |= {(x + dx, y + dy) for x, y in cells}
                return place_p2 + _CELL * np.array([dx, dy])
    raise AssertionError("there is always room further out")


def _cover(place_p2: Array, links_pp: NDArray[np.bool_]) -> set[tuple[int, int]]:
    """Cells of the grid that nodes and links touch."""
    i, j = np.nonzero(np.triu(links_pp))
    along = np.linspace(0, 1, 12)[:, None, None]
    points = np.concatenate([place_p2, (place_p2[i] + along * (place_p2[j] - place_p2[i])).reshape(-1, 2)])
    return {(int(x), int(y)) for x, y in np.floor(points / _CELL)}


def _ring(radius: int, aspect: float) -> list[tuple[int, int]]:
    """Offsets on the rim of a rectangle of the page's shape, nearest to its middle first."""
    wide = round(radius * aspect)
    rim = {(x, y) for x in range(-wide, wide + 1) for y in (-radius, radius)}
    narrow = round((radius - 1) * aspect) + 1 if radius else 0
    rim |= {(s * x, y) for x in range(narrow, wide + 1) for y in range(-radius, radius + 1) for s in (-1, 1)}
    return sorted(rim, key=lambda cell: (abs(cell[0]) / aspect + abs(cell[1]), cell))


def _rows_below(others_p2: Array, n_nodes: int, aspect: float) -> Array:
    """Rows of lone nodes under everything else, about as wide, the last one centred too."""
    low, high = (others_p2.min(axis=0), others_p2.max(axis=0)) if len(others_p2) else (np.zeros(2), np.zeros(2))
    width = max(high[0] - low[0], np.sqrt(0.4 * n_nodes * aspect), 1.0)
    n_columns = int(np.clip(width / 0.75 + 1, 1, n_nodes))
    column, row = np.arange(n_nodes) % n_columns, np.arange(n_nodes) // n_columns
    in_row = np.minimum(n_columns, n_nodes - row * n_columns)
    x = (low[0] + high[0]) / 2 + 0.75 * (column - (in_row - 1) / 2)
    return np.stack([x, high[1] + 0.9 + 0.6 * row], axis=1)


def _fit(place_d2: Array, aspect: float) -> Array:
    """Fill the unit square; the drawing is stretched by at most a half to do so."""
    low, high = place_d2.min(axis=0), place_d2.max(axis=0)
    page = np.array([aspect, 1.0])
    scale = page / np.maximum(high - low, 1e-9)
    scale = np.minimum(scale, 1.5 * scale.min())
    centred = (place_d2 - (low + high) / 2) * scale / page
    return np.asarray(np.clip(0.5 + centred, 0, 1))
