"""What a world is, and which there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class World(NamedTuple):
    """Tables of all variables of a world, and their graph."""

    x_bme: Tensor
    """Values, shape (B, M, E); scale and location do not matter."""
    adj_bee: Tensor
    """Graphs, boolean; loops of three variables or more are allowed."""
    set_bme: Tensor | None = None
    """Cells that were set by an intervention, if the world has any."""
    n_drivers: int = 0
    """How many of the last variables are never shown."""


Simulate = Callable[..., World]

WORLDS: dict[str, Simulate] = {}
"""Worlds by name."""

SERIES: set[str] = set()
"""Worlds whose rows depend on the rows before them."""

LOOPS: set[str] = set()
"""Worlds with feedback: only drivers are hidden there, or a loop through a hidden variable could join two shown ones in
both directions."""

SETTABLE: set[str] = set()
"""Worlds in which an experiment may set cells; others have interventions of their own or none."""


def world(
    name: str, *, series: bool = False, loops: bool = False, settable: bool = False
) -> Callable[[Simulate], Simulate]:
    """Register a world under `name`; say whether its rows depend on one another, whether its graphs have loops, and
    whether it takes cells to be set."""

    def register(draw: Simulate) -> Simulate:
        WORLDS[name] = draw
        for group, belongs in ((SERIES, series), (LOOPS, loops), (SETTABLE, settable)):
            group.update([name] if belongs else [])
        return draw

    return register
