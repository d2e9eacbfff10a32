"""One column of anything → one column of numbers, or a sentence why not.

Numbers stay as they are and true/false becomes 1/0. Numbers written with a sign for their unit, with thousands set
apart or with a decimal comma are read as what they spell: "$0.56", "12 %", "1,234.5", "1 234", "1,5". Every cell must
follow the same rule: the same sign in all of them or in none; commas between thousands and a decimal point, if all
cells can be read so, else points between thousands and a decimal comma.

Text, categories and dates become numbers only when asked (``encode``), because a code is a modelling choice:

- dates and durations: days since the earliest;
- ordered categories, and lists given by the user: the position in that order;
- two levels: 0 and 1, in alphabetical order;
- levels that begin with different numbers ("18–25", "26–35"): ordered by those numbers;
- all other text: 0 for the most frequent level, 1 for the next …, ties in alphabetical order. The code then
  depends on neither spelling nor row order, and rare levels, which carry least evidence, are those that lie
  far out.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphbam.tables.textfile import MISSING_WORDS

Vector: TypeAlias = npt.NDArray[np.float64]
Encode: TypeAlias = bool | Mapping[str, Sequence[Hashable]]

_TRUE_FALSE = {"true": 1.0, "false": 0.0}
_LEADING_NUMBER = re.compile(r"\s*[<>≤≥~]?\s*([-+]?\d+(?:\.\d+)?)")
_SHOWN_LEVELS = 4

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


@dataclass(frozen=True)
class Coded:
    """A column as numbers, or the reason why it is none."""

    values: Vector | None
    """Numbers with NaN for missing cells; None when the column could not be read."""
    note: str = ""
    """How it was coded, when that needs saying; or what is wrong with it."""
    is_label: bool = False
    """Text in which no entry repeats, such as identifiers."""
    is_spoilt: bool = False
    """Text in fewer than half of the cells, numbers in the others: to be corrected, not coded."""


def code_column(column: pd.Series, name: str, encode: Encode = False) -> Coded:
    """Read one column as numbers.

    Parameters
    ----------
    column : Series
        Any dtype.
    name : str
        Its name, for messages and to look up its levels in `encode`.
    encode : bool or mapping
        Whether text and dates may be coded; a mapping gives the order of levels for some columns and codes
        the rest too.

    Examples
    --------
    >>> code_column(pd.Series([True, False]), "smoker").values.tolist()
    [1.0, 0.0]
    >>> code_column(pd.Series(["low", "high", "low"]), "dose").note
    "text in all 3 rows (first: row 1, 'low')"
    >>> code_column(pd.Series(["low", "high"]), "dose", encode={"dose": ["low", "high"]}).values.tolist()
    [0.0, 1.0]
    """
    if isinstance(encode, Mapping) and name in encode:
        return _code_given_levels(column, encode[name])
    types = pd.api.types
    if types.is_bool_dtype(column):
        return Coded(_as_floats(column), "true/false read as 1/0")
    if types.is_complex_dtype(column):
        return Coded(None, "complex numbers")
    if types.is_numeric_dtype(column):
        return Coded(_as_floats(column))
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _code_categories(column, bool(encode))
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        return _code_dates(column, bool(encode))
    if isinstance(column.dtype, pd.PeriodDtype):
        return _code_dates(column.dt.to_timestamp(), bool(encode))
    return _code_objects(column, bool(encode))


def _as_floats(column: pd.Series) -> Vector:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _code_given_levels(column: pd.Series, levels: Sequence[Hashable]) -> Coded:
    order = {level: float(k) for k, level in enumerate(levels)}
    cells = _blank_missing(column.astype(object))
    unknown = sorted({str(cell) for cell in cells.dropna() if cell not in order})
    if unknown:
        return Coded(None, f"the level {unknown[0]!r}, which encode does not list")
    return Coded(_look_up(cells, order), f"coded 0 … {len(order) - 1} in the order given")


def _look_up(cells: pd.Series, codes: Mapping[Any, float]) -> Vector:
    return np.array([codes.get(cell, np.nan) if not pd.isna(cell) else np.nan for cell in cells], dtype=np.float64)


def _blank_missing(cells: pd.Series) -> pd.Series:
    """None where a cell holds a word for 'missing'; spaces around text removed."""

    def clean(cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        cell = cell.strip()
        return None if cell.lower() in MISSING_WORDS else cell

    return pd.Series([clean(cell) for cell in cells], dtype=object)


def _code_categories(column: pd.Series, encode: bool) -> Coded:
    categories = column.cat.categories
    if pd.api.types.is_numeric_dtype(categories):
        return Coded(_as_floats(column.astype(categories.dtype if not column.hasnans else np.float64)))
    if column.cat.ordered and encode:
        codes = column.cat.codes.to_numpy(np.float64)
        return Coded(np.where(codes < 0, np.nan, codes), f"coded 0 … {len(categories) - 1} in its category order")
    return _code_objects(column.astype(object), encode)


def _code_dates(column: pd.Series, encode: bool) -> Coded:
    present = column.dropna()
    first = f" (first: row {int(column.notna().to_numpy().argmax()) + 1}, {present.iloc[0]})" if len(present) else ""
    kind = "durations" if pd.api.types.is_timedelta64_dtype(column) else "dates"
    if not encode:
        return Coded(None, f"{kind}{first}")
    days = (column - column.min()) / pd.Timedelta(days=1)
    return Coded(days.to_numpy(dtype=np.float64, na_value=np.nan), f"{kind} coded as days since the earliest")


def _code_objects(column: pd.Series, encode: bool) -> Coded:
    cells = _blank_missing(column)
    if any(isinstance(cell, (complex, np.complexfloating)) for cell in cells):
        return Coded(None, "complex numbers")
    numbers = _to_numbers(cells)
    is_text = cells.notna().to_numpy() & np.isnan(numbers)
    if not is_text.any():
        is_bool = cells.notna().any() and cells.dropna().map(lambda cell: isinstance(cell, (bool, np.bool_))).all()
        return Coded(numbers, "true/false read as 1/0" if is_bool else "")
    spelled = read_spelled(cells)
    if spelled is not None:
        at = int(is_text.argmax())
        return Coded(spelled, f"text read as the numbers it spells ({cells.iloc[at]!r} → {spelled[at]:.12g})")
    words = cells[is_text].astype(str)
    if is_text.sum() == cells.notna().sum() and words.str.lower().isin(_TRUE_FALSE).all():
        return Coded(_look_up(cells.str.lower(), _TRUE_FALSE), "true/false read as 1/0")
    dates = _to_dates(cells) if is_text.sum() == cells.notna().sum() else None
    if dates is not None:
        return _code_dates(dates, encode)
    return _code_text(cells, is_text, encode)


def _to_numbers(cells: pd.Series) -> Vector:
    """Every cell on its own: number, text that spells one, or NaN."""

    def one(cell: Any) -> float:
        if cell is None or (isinstance(cell, str) and "_" in cell):
            return np.nan
        try:
            return float(cell)
        except (TypeError, ValueError):
            return np.nan
        except OverflowError:  # an integer beyond 1e308
            return np.inf

    return np.array([one(cell) for cell in cells], dtype=np.float64)


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


def _to_dates(cells: pd.Series) -> pd.Series | None:
    try:
        dates = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
    except (ValueError, TypeError):
        return None
    return dates if dates.notna().sum() == cells.notna().sum() else None


def _code_text(cells: pd.Series, is_text: npt.NDArray[np.bool_], encode: bool) -> Coded:
    n_text, n_rows = int(is_text.sum()), len(cells)
    share = f"all {n_rows} rows" if n_text == n_rows else f"{n_text} of {n_rows} rows"
    at = int(is_text.argmax())
    problem = f"text in {share} (first: row {at + 1}, {_shorten(cells.iloc[at])})"
    if n_text < cells.notna().sum():
        return Coded(None, problem, is_spoilt=2 * n_text <= cells.notna().sum())
    words = cells.astype("str").where(cells.notna(), None)
    if not encode:
        return Coded(None, problem, is_label=_are_labels(cells))
    if _are_labels(cells) and n_rows > 2:
        return Coded(None, f"text in which all {n_rows} entries differ, so it cannot be coded", is_label=True)
    levels, rule = order_levels(words.dropna().tolist())
    shown = ", ".join(f"{level!r} → {k}" for k, level in enumerate(levels[:_SHOWN_LEVELS]))
    dots = f", … {len(levels)} levels" if len(levels) > _SHOWN_LEVELS else ""
    codes = {level: float(k) for k, level in enumerate(levels)}
    return Coded(_look_up(words, codes), f"text coded {rule} ({shown}{dots})")


def _are_labels(cells: pd.Series) -> bool:
    """Text in every row, no two alike."""
    return len(cells) > 1 and all(isinstance(cell, str) for cell in cells) and cells.is_unique


def _shorten(cell: Any, width: int = 30) -> str:
    text = repr(cell)
    return text if len(text) <= width else text[: width - 1] + "…"


def order_levels(words: Sequence[str]) -> tuple[list[str], str]:
    """Put the levels of a text column in order; the module docstring gives the rules.

    Examples
    --------
    >>> order_levels(["pear", "fig", "fig", "apple"])
    (['fig', 'apple', 'pear'], 'by falling frequency')
    >>> order_levels(["100+", "18-25", "26-99"])[0]
    ['18-25', '26-99', '100+']
    """
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    if len(counts) <= 2:
        return sorted(counts), "in alphabetical order"
    starts = {word: float(match[1]) for word in counts if (match := _LEADING_NUMBER.match(word))}
    if len(starts) == len(counts) == len(set(starts.values())):
        return sorted(counts, key=lambda word: starts[word]), "by the number each level begins with"
    return sorted(counts, key=lambda word: (-counts[word], word)), "by falling frequency"
