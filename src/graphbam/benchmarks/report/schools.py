"""How methods look: one colour a school of thought, dashes and markers within it, and titles.

Colours are those of Okabe and Ito, told apart by colour-blind readers too. Vermilion is graphbam's alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from graphbam.benchmarks.report.rows import OURS, is_ours

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
    "pairs": ("zero", "glasso", "correlation", "trees", "mmpc"),
    "tests": ("pc", "rcit", "rcot", "kci", "hsic"),
    "scores": ("ges", "gies", "fges", "boss", "grasp", "climbing", "hc", "mmhc", "ccdr"),
    "noise": ("lingam", "cam", "sortnregress", "score", "nogam"),
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
    from graphbam.benchmarks.baselines import BASELINES, load_baseline

    return load_baseline(method).title if method in BASELINES else method
