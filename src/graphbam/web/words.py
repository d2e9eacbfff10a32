"""What a visitor chose → settings of `graphbam.infer`; what is wrong with it → the words and buttons of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from graphbam.errors import ConfigError, GraphbamError, Setting

Words: TypeAlias = list[Any]
"""A message: text, and buttons as ``{"say": words on it, "set": choices it makes}``."""

MOST_RESAMPLES = 100
MOST_BUTTONS = 30

CHOICES = ("part", "encode", "drop", "interventions", "missing", "keep_codes", "independent_rows", "stability")
"""Which sheet or file of an archive, and settings of `graphbam.infer` that the page has a place for."""

KNOWN = ("required", "forbidden", "tiers")
"""The same for what is known beforehand."""


def read_choices(sent: Any) -> dict[str, Any]:
    """Settings from what a page sent; anything that a page would not send is refused.

    Examples
    --------
    >>> read_choices({"drop": ["id"], "required": [["a", "->", "b"]], "encode": True})
    {'encode': True, 'drop': ['id'], 'required': [['a', '->', 'b']]}
    >>> read_choices({"weights": "/etc/passwd"})
    Traceback (most recent call last):
    graphbam.errors.ConfigError: the page sent 'weights', which is none of its choices. Load the page again.
    """
    if not isinstance(sent, Mapping):
        raise ConfigError("the page sent no choices. Load the page again.")
    for name in sent:
        if name not in _READERS:
            raise ConfigError(f"the page sent {str(name)[:40]!r}, which is none of its choices. Load the page again.")
    read = {name: _READERS[name](sent[name]) for name in (*CHOICES, *KNOWN) if name in sent}
    return {name: value for name, value in read.items() if value or name == "encode"}


def _wrong(about: str) -> ConfigError:
    return ConfigError(f"the page sent something odd as {about}. Load the page again.")


def _read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong("yes or no")
    return value


def _read_names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _wrong("names of columns")
    return value


def _read_name(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise _wrong("the name of a column")
    return value or None


def _read_missing(value: Any) -> str:
    if value not in ("auto", "drop", "impute"):
        raise _wrong("what to do about missing values")
    return str(value)


def _read_resamples(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_RESAMPLES:
        raise _wrong("a number of resamples")
    return value


def _read_edges(value: Any) -> list[list[str]]:
    if not isinstance(value, list) or not all(len(edge) == 3 for edge in value if isinstance(edge, list)):
        raise _wrong("links")
    return [_read_names(edge) for edge in value]


def _read_tiers(value: Any) -> list[list[str]]:
    if not isinstance(value, list):
        raise _wrong("an order of columns")
    return [names for tier in value if (names := _read_names(tier))]


_READERS: dict[str, Callable[[Any], Any]] = {
    "part": _read_name,
    "encode": _read_flag,
    "drop": _read_names,
    "interventions": _read_name,
    "missing": _read_missing,
    "keep_codes": _read_flag,
    "independent_rows": _read_flag,
    "stability": _read_resamples,
    "required": _read_edges,
    "forbidden": _read_edges,
    "tiers": _read_tiers,
}


def spell_error(error: GraphbamError) -> Words:
    """A message in the words of the page: settings it has are buttons that set them.

    Examples
    --------
    >>> spell_error(ConfigError("column 'city' holds text. Use ", Setting("drop", ["city"]), "."))
    ["column 'city' holds text. Use ", {'say': 'leave out city', 'set': {'drop': ['city']}}, '.']
    """
    if parts := getattr(error, "parts", ()):
        buttons = [{"say": part, "set": {"part": part}} for part in parts[:MOST_BUTTONS]]
        return [f"this file has {len(parts)} tables. Take ", *buttons, "."]
    words: Words = []
    for part in error.args:
        piece = spell_setting(part) if isinstance(part, Setting) else str(part)
        if isinstance(piece, str) and words and isinstance(words[-1], str):
            words[-1] += piece
        else:
            words.append(piece)
    return words


_PLACES = {
    "part": "the choice of a sheet",
    "drop": "the ticks before the columns",
    "encode": "“turn text into numbers”",
    "interventions": "“what was set in each row”",
    "missing": "“missing values”",
    "keep_codes": "“keep −999 and the like as numbers”",
    "independent_rows": "“rows are independent”",
    "stability": "“check stability”",
    "knowledge": "what you know",
    "required": "the links you require",
    "forbidden": "the links you exclude",
    "tiers": "the order of columns",
}
"""Settings without a value, as the page calls them."""

_BUTTONS: dict[tuple[str, Any], str] = {
    ("encode", True): "turn text into numbers",
    ("missing", "auto"): "missing values: as fits",
    ("missing", "impute"): "missing values: fill in",
    ("keep_codes", True): "keep such codes as numbers",
    ("independent_rows", True): "rows are independent",
}


def spell_setting(setting: Setting) -> str | dict[str, Any]:
    """A setting as the page shows it: a button, the name of its place there, or the command that has it."""
    name, value = setting
    if name == "drop" and isinstance(value, (list, tuple)):
        return {"say": f"leave out {', '.join(map(str, value))}", "set": {"drop": [str(one) for one in value]}}
    if isinstance(value, (bool, str)) and (name, value) in _BUTTONS:
        return {"say": _BUTTONS[name, value], "set": {name: value}}
    return _PLACES.get(name) or f"graphbam infer {setting.as_option()} on the command line"


def spell_note(note: str, names: Iterable[str] = ()) -> str:
    """A sentence on a table of columns `names`, in the words of the page where it says how to have it otherwise.

    Examples
    --------
    >>> spell_note("if it is a number, set keep_codes=True, on the command line --keep-codes")
    'if it is a number, tick “keep −999 and the like as numbers” under “More”'
    """
    for name in ("keep_codes", "independent_rows"):
        note = note.replace(f"set {Setting(name, True).as_both()}", f"tick {_PLACES[name]} under “More”")
    note = note.replace(Setting("tiers").as_both(), "“Comes” in the list of columns")
    for name in names:
        asked = f"set {Setting('interventions', name).as_both()}"
        note = note.replace(asked, f"choose it under {_PLACES['interventions']}")
    return note


def clean_name(name: str) -> str:
    """A file name without folders, control characters and excess length.

    Examples
    --------
    >>> clean_name("../../etc/cells.csv"), clean_name("C:\\\\mine\\\\x.csv"), clean_name(".."), clean_name("a\\nb.csv")
    ('cells.csv', 'x.csv', 'table', 'a b.csv')
    """
    last = re.split(r"[\\/]", name)[-1]
    last = " ".join(re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", " ", last).split()).strip(". ")
    return (last if len(last) <= 120 else f"{last[:80]}…{last[-39:]}") or "table"
