"""What can be set about preparing a table; light, so that the command line knows its options without loading torch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from graphbam.errors import ConfigError, Setting, check_whole

Missing: TypeAlias = Literal["auto", "drop", "impute", "error"]
Large: TypeAlias = Literal["subsample", "average"]

LEAST_ROWS = 4
"""Fewer rows are refused: the standard error of a correlation, 1/√(M − 3) on Fisher's scale, begins with four."""


DRAWS_READ = 20
"""Of a longer table, so many times `max_rows` rows are read at all (`graphbam.tables.limit`)."""


def setting(default: Any, about: str) -> Any:
    """A field of a settings class; what it is about is said once, here and on the command line."""
    return dataclasses.field(default=default, metadata={"about": about})


@dataclass(frozen=True, kw_only=True)
class PrepareConfig:
    """How a table is made ready for the network, checked on construction; rules in `graphbam.tables.prepare`.

    Examples
    --------
    >>> PrepareConfig(missing="impute")
    PrepareConfig(missing='impute', keep_codes=False, max_rows=5000, large='subsample', independent_rows=False, seed=0)
    >>> PrepareConfig(missing="ignore")
    Traceback (most recent call last):
    graphbam.errors.ConfigError: missing='ignore' is not known; choose from auto, drop, impute, error.
    """

    missing: Missing = setting("auto", "What to do about missing values: auto, drop, impute or error.")
    keep_codes: bool = setting(False, "Keep −999, 9999 and the like as numbers, however far they are from the others.")
    max_rows: int = setting(5000, "More rows than this are thinned out.")
    large: Large = setting("subsample", "Too many rows: subsample, or average several draws.")
    independent_rows: bool = setting(False, "Rows that resemble their neighbours are sorted, not a time series.")
    seed: int = setting(0, "For the draw of rows and of resamples; nothing else is random.")

    @property
    def most_read(self) -> int:
        """Rows of a table that are read at most."""
        return DRAWS_READ * self.max_rows

    def __post_init__(self) -> None:
        _check_choice("missing", self.missing, get_args(Missing))
        _check_choice("large", self.large, get_args(Large))
        for name in ("keep_codes", "independent_rows"):
            if getattr(self, name) not in (True, False):
                raise ConfigError(Setting(name, getattr(self, name)), " is not known; choose True or False.")
        check_whole("max_rows", self.max_rows, LEAST_ROWS)
        check_whole("seed", self.seed, 0)


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(Setting(name, value), f" is not known; choose from {', '.join(allowed)}.")
