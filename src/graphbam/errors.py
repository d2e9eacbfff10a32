"""The errors graphbam raises, all under one root.

::

    GraphbamError
    ├── ConfigError        a setting is outside what it may be
    ├── GraphError         a graph is not of the kind the question needs
    │   └── OrientationMissingError   directions were asked for, and never inferred
    ├── TableError         a table cannot be read or used
    ├── KnowledgeError     prior knowledge contradicts itself
    ├── ResultError        a stored result cannot be read
    └── WeightsError       a weights file or checkpoint is damaged or does not fit

Each message says what was found, where, and what to do. Where it names a setting, it does so by a `Setting`, which is
spelled as the reader knows it: ``drop=['city']`` in Python, ``--drop city`` on the command line. Counts and lists in a
sentence are spelled by `spell_count` and `name_some`, here and elsewhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

_OPTIONS = {"forbidden": "forbid", "required": "require"}


class _Nothing:
    def __repr__(self) -> str:
        return "…"


class Setting(NamedTuple):
    """A setting that a message names, with or without a value.

    Examples
    --------
    >>> str(Setting("drop", ["city"])), Setting("drop", ["city"]).as_option()
    ("drop=['city']", '--drop city')
    >>> str(Setting("max_rows")), Setting("max_rows").as_option(), Setting("encode", True).as_option()
    ('max_rows', '--max-rows', '--encode')
    """

    name: str
    value: Any = _Nothing()

    def __str__(self) -> str:
        return self.name if isinstance(self.value, _Nothing) else f"{self.name}={self.value!r}"

    def as_option(self) -> str:
        """The same on the command line; a list is one option an entry."""
        option = "--" + _OPTIONS.get(self.name, self.name).replace("_", "-")
        if isinstance(self.value, _Nothing) or self.value is True:
            return option
        if self.name == "colliders" and self.value is None:
            return "--no-cpdag"
        values = self.value if isinstance(self.value, (list, tuple)) else (self.value,)
        return " ".join(f"{option} {shlex.quote(str(value))}" for value in values)

    def as_both(self) -> str:
        """The same where nobody knows who reads it, as in what a result keeps.

        Examples
        --------
        >>> Setting("keep_codes", True).as_both()
        'keep_codes=True, on the command line --keep-codes'
        """
        return f"{self}, on the command line {self.as_option()}"


class GraphbamError(ValueError):
    """Root of every error a user can cause; made of text and `Setting` parts.

    Examples
    --------
    >>> error = ConfigError(Setting("max_rows", 1), " leaves nothing to compare; choose at least 2.")
    >>> print(error)
    max_rows=1 leaves nothing to compare; choose at least 2.
    >>> error.say(Setting.as_option)
    '--max-rows 1 leaves nothing to compare; choose at least 2.'
    """

    def __init__(self, *parts: str | Setting) -> None:
        super().__init__(*parts)

    def say(self, spell: Callable[[Setting], str] = str) -> str:
        """The message, with settings spelled as wanted."""
        return "".join(spell(part) if isinstance(part, Setting) else str(part) for part in self.args)

    def __str__(self) -> str:
        return self.say()


class ConfigError(GraphbamError):
    """A setting is outside what it may be."""


class GraphError(GraphbamError):
    """A graph is not of the kind the question needs."""


class OrientationMissingError(GraphError):
    """Directions were asked for, and the network that finds them was not."""


class TableError(GraphbamError):
    """A table cannot be read or used."""


class SeveralTablesError(TableError):
    """A file holds several tables, and none was asked for."""

    def __init__(self, message: str, parts: Sequence[str]) -> None:
        super().__init__(message)
        self.parts = tuple(parts)
        """What may be asked for."""

    def __reduce__(self) -> tuple[Any, ...]:
        """It also comes whole from another process, where the table was read."""
        return type(self), (self.say(), self.parts)


class KnowledgeError(GraphbamError):
    """Prior knowledge contradicts itself."""


class ResultError(GraphbamError):
    """A stored result cannot be read."""


class WeightsError(GraphbamError):
    """A weights file or checkpoint is damaged, or does not fit the network."""


def check_whole(name: str, value: Any, least: int | None = None) -> None:
    """Refuse a setting that is no whole number, or one below the least that can be.

    Examples
    --------
    >>> check_whole("seed", 1.5, 0)
    Traceback (most recent call last):
    graphbam.errors.ConfigError: seed=1.5 is not a whole number from 0 on.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or (least is not None and value < least):
        limit = "" if least is None else f" from {least} on"
        raise ConfigError(Setting(name, value), f" is not a whole number{limit}.")


def spell_count(n: int, noun: str) -> str:
    """One of them, or several.

    Examples
    --------
    >>> spell_count(1, "link"), spell_count(0, "link")
    ('1 link', '0 links')
    """
    return f"{n} {noun}{'' if n == 1 else 's'}"


def name_some(first: Sequence[str], n_all: int) -> str:
    """The first few of a list, and how many there are beyond.

    Examples
    --------
    >>> name_some(["a", "b"], 3)
    'a, b and 1 more'
    """
    return ", ".join(first) + (f" and {n_all - len(first)} more" if n_all > len(first) else "")
