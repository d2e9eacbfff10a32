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
    ",": re.compile(rf"[1-9]\d{{0,2}}(,\d{{3}})+(\.\d+)?|\d{{1,3}}({_GAP}\d{{3}})+(\.\d+)?|\d+\.?\d*|\.\d+"),
    ".": re.compile(rf"[1-9]\d{{0,2}}(\.\d{{3}})+(,\d+)?|\d{{1,3}}({_GAP}\d{{3}})+(,\d+)?|\d+,?\d*|,\d+"),
}
"""How numbers are written where a comma parts thousands, and where a dot does."""


def read_spelled(cells: Sequence[Any] | pd.Series) -> Vector | None:
    """Numbers of a column that is written in units, with thousands marks or a decimal comma; None if one cell is not.

    Examples
    --------
    >>> read_spelled(["$1,200", "$ 0.56", None]).tolist()
    [1200.0, 0.56, nan]
    >>> read_spelled(["1,5", "0,250"]).tolist(), read_spelled(["12 %", "−3 %"]).tolist()
    ([1.5, 0.25], [12.0, -3.0])
    >>> read_spelled(["$5", "€7"]), read_spelled(["5 kg"])
    (None, None)
    """
    column = pd.Series(cells, dtype=object)
    matches: list[re.Match[str]] = []
    for cell in column.dropna():
        match = _SPELLED.fullmatch(str(cell))
        if match is None:
            return None
        matches.append(match)
    signs = {"".join(match.group(1, 3, 6)) for match in matches}
    if len(signs) != 1 or len(*signs) > 1:
        return None
    for thousands, writing in _WRITINGS.items():
        if all(writing.fullmatch(match[4].strip()) for match in matches):
            numbers = np.full(len(column), np.nan)
            numbers[column.notna()] = [_read_match(match, thousands) for match in matches]
            return numbers
    return None


def _read_match(match: re.Match[str], thousands: str) -> float:
    digits = re.sub(_GAP, "", match[4]).replace(thousands, "").replace(",", ".")
    sign = match[2].replace("−", "-")
    return float(f"{sign}{digits}{match[5] or ''}")


def read_dates(cells: pd.Series) -> pd.Series | None:
    try:
        dates = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
    except (ValueError, TypeError):
        return None
    return dates if dates.notna().sum() == cells.notna().sum() else None
