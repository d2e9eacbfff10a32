"""What text spells: numbers with units, thousands marks and decimal commas, and dates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

Vector: TypeAlias = npt.NDArray[np.float64]

MISSING_WORDS = frozenset({"", "?", "-", ".", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>", "missing"})
"""Cells read as missing, in any case and with any space around them."""

_SIGNS = "$€£¥₹%"
_SPELLED = re.compile(
    rf"([{_SIGNS}]?)\s*([-+−]?)\s*([{_SIGNS}]?)\s*(\d[\d.,'’\s]*|[.,]\d+)([eE][-+]?\d+)?\s*([{_SIGNS}]?)"
)
_GAP = r"['’\s]"
_WRITINGS = {
    ".": re.compile(rf"[1-9]\d{{0,2}}(,\d{{3}})+(\.\d+)?|\d{{1,3}}({_GAP}\d{{3}})+(\.\d+)?|\d+\.?\d*|\.\d+"),
    ",": re.compile(rf"[1-9]\d{{0,2}}(\.\d{{3}})+(,\d+)?|\d{{1,3}}({_GAP}\d{{3}})+(,\d+)?|\d+,?\d*|,\d+"),
}
"""How numbers are written, by their decimal mark."""

_THOUSANDS = {".": ",", ",": "."}


def read_spelled(cells: Sequence[Any] | pd.Series, decimal: str = "") -> Vector | None:
    """Numbers of a column that is written in units, with thousands marks or a decimal comma; None if one cell is not.

    `decimal` is the decimal mark, if it is known; else a dot if all cells can be read so.

    Examples
    --------
    >>> read_spelled(["$1,200", "$ 0.56", None]).tolist()
    [1200.0, 0.56, nan]
    >>> read_spelled(["1,5", "0,250"]).tolist(), read_spelled(["12 %", "−3 %"]).tolist()
    ([1.5, 0.25], [12.0, -3.0])
    >>> read_spelled(["$5", "€7"]), read_spelled(["5 kg"])
    (None, None)
    >>> read_spelled(["1.480", "550"]).tolist(), read_spelled(["1.480", "550"], decimal=",").tolist()
    ([1.48, 550.0], [1480.0, 550.0])
    """
    column = pd.Series(cells, dtype=object)
    matches = _match_numbers(column)
    for mark in (decimal,) if decimal else _WRITINGS:
        if matches and _fits(matches, mark):
            numbers = np.full(len(column), np.nan)
            numbers[column.notna()] = [_read_match(match, mark) for match in matches]
            return numbers
    return None


def find_marks(cells: Sequence[Any] | pd.Series) -> tuple[str, ...]:
    """Decimal marks with which a column can be read as numbers; both, if nothing tells thousands from decimals.

    Examples
    --------
    >>> find_marks(["1.480", "550"]), find_marks(["1.480", "5.5"]), find_marks(["488,70"]), find_marks(["Rome"])
    (('.', ','), ('.',), (',',), ())
    """
    matches = _match_numbers(pd.Series(cells, dtype=object))
    return tuple(mark for mark in _WRITINGS if matches and _fits(matches, mark))


def blank_missing(cells: pd.Series) -> pd.Series:
    """None where a cell holds a word for 'missing'; spaces around text removed."""

    def clean(cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        cell = cell.strip()
        return None if cell.lower() in MISSING_WORDS else cell

    return pd.Series([clean(cell) for cell in cells], cells.index, dtype=object)


def _match_numbers(column: pd.Series) -> list[re.Match[str]]:
    """Parts of every number; none at all if one cell spells no number, or with a sign of its own."""
    matches: list[re.Match[str]] = []
    for cell in column.dropna():
        match = _SPELLED.fullmatch(str(cell))
        if match is None:
            return []
        matches.append(match)
    signs = {"".join(match.group(1, 3, 6)) for match in matches}
    return matches if len(signs) == 1 and len(*signs) <= 1 else []


def _fits(matches: Sequence[re.Match[str]], decimal: str) -> bool:
    """Whether numbers can be written so with this decimal mark; what has an exponent has no thousands marks."""
    thousands = _THOUSANDS[decimal]
    return all(
        _WRITINGS[decimal].fullmatch(match[4].strip()) and not (match[5] and thousands in match[4]) for match in matches
    )


def _read_match(match: re.Match[str], decimal: str) -> float:
    digits = re.sub(_GAP, "", match[4]).replace(_THOUSANDS[decimal], "").replace(",", ".")
    sign = match[2].replace("−", "-")
    return float(f"{sign}{digits}{match[5] or ''}")


def read_dates(cells: pd.Series) -> pd.Series | None:
    try:
        dates = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
    except (ValueError, TypeError):
        return None
    return dates if dates.notna().sum() == cells.notna().sum() else None
