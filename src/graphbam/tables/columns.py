"""One column of anything → one column of numbers, or a sentence why not.

Numbers stay as they are and true/false becomes 1/0. Numbers written with their unit, with thousands set apart or with a
decimal comma are read as what they spell: "$0.56", "12 %", "18.3 kg", "1,234.5", "1 234", "1,5". Every cell must follow
the same rule: the same unit in all of them or in none; commas between thousands and a decimal point, if all cells can
be read so, else points between thousands and a decimal comma.

Text, categories and dates become numbers only when asked (``encode``), because a code is a modelling choice:

- dates and durations: days since the earliest, or more than the shortest; how dates may be written is in
  `graphbam.tables.spelling`;
- ordered categories, and lists given by the user: the position in that order; or the numbers given by the user;
- levels that are the steps of a known scale (strongly disagree … strongly agree; never, sometimes, always; mild,
  moderate, severe): in the order of the scale, and answers such as "don't know" beside them are gaps;
- two other levels: 0 and 1, in alphabetical order;
- levels that begin with different numbers ("18–25", "26–35", "1,000+"): ordered by those numbers, and refused if they
  are in more than one unit ("900 g", "1.5 kg");
- unordered categories (pandas) that are three or more whole numbers are names, like other text;
- all other text is made of categories: every level gets the score that `scale_levels` finds in the other columns, and
  where these say nothing of the levels, 0 for the most frequent one, 1 for the next …

In such text "none" is a level like the others (no treatment, no symptom); among numbers and dates it is a gap.

Neither way of numbering categories depends on how the levels are spelled or on the order of rows and columns.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphbam.errors import ConfigError, Setting
from graphbam.tables.spelling import (
    LEVEL_WORDS,
    MISSING_WORDS,
    NO_ANSWERS,
    UNITS,
    blank_missing,
    find_stray,
    list_units,
    normalise_level,
    rank_levels,
    read_dates,
    read_spelled,
)
from graphbam.tables.table import Matrix, Vector

Levels: TypeAlias = Sequence[Hashable] | Mapping[Any, float]
Encode: TypeAlias = bool | str | Collection[str] | Mapping[str, Levels]
"""Whether text and dates may be coded; or of which columns; or all, with the levels of some in order, or by number."""

MOST_LEVELS = 50
"""Text with more levels than this gets no scores: its levels are numbered by frequency."""

CHANCE = 0.05
"""Levels get scores if independent ones would follow the other columns as closely with at most this probability."""

_TRUE_FALSE = {"true": 1.0, "false": 0.0}
_LEADING_NUMBER = re.compile(r"\s*[<>≤≥~]?\s*([-+−]?\d+(?:[.,]\d+|['’\s]\d{3}(?!\d))*)")
_WORD_AFTER_NUMBER = re.compile(r"\d\s*\+?\s*([^\W\d_]+)")
_MAGNITUDES = frozenset({"k", "K", "M", "thousand", "million", "mio", "billion", "bn"})
_SHOWN_LEVELS = 8


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
    """Numbers with text in fewer than half of the cells, or dates with few other cells: to be corrected, not coded."""
    only_text: int | None = None
    """The row of its only cell of text, among numbers; None if it has none, or several."""
    is_mixed: bool = False
    """Numbers in more than one unit: to be rewritten, not coded."""
    levels: tuple[str, ...] = ()
    """Of categories: what the numbers 0, 1 … stand for, the most frequent level first; they wait for `scale_levels`."""


def is_asked(encode: Encode, name: str) -> bool:
    """Whether text of a column may be coded.

    Examples
    --------
    >>> is_asked(True, "soil"), is_asked("soil", "soil"), is_asked(["soil"], "city"), is_asked({"soil": "ab"}, "city")
    (True, True, False, True)
    """
    if isinstance(encode, str):
        return name == encode
    return bool(encode) if isinstance(encode, (bool, np.bool_, Mapping)) else name in encode


def check_encode(encode: Any) -> list[str]:
    """Refuse what cannot be meant; returns the columns that are named."""
    if isinstance(encode, (bool, np.bool_)):
        return []
    if isinstance(encode, str):
        return [encode]
    if isinstance(encode, Mapping):
        for name, levels in encode.items():
            _check_levels(name, levels)
        return list(encode)
    if isinstance(encode, Collection) and all(isinstance(name, str) for name in encode):
        return list(encode)
    raise ConfigError(
        Setting("encode", encode), " is not known; choose True, False, names of columns, or {column: levels in order}."
    )


def _check_levels(name: str, levels: Any) -> None:
    if isinstance(levels, Mapping):
        if all(isinstance(number, Real) and np.isfinite(float(number)) for number in levels.values()):
            return
        found = "not all of them numbers"
    elif isinstance(levels, str) or not isinstance(levels, Collection):
        found = "which is no list"
    elif twice := [level for level, count in Counter(levels).items() if count > 1]:
        found = f"with {twice[0]!r} twice"
    else:
        return
    raise ConfigError(
        Setting("encode"),
        f" has {levels!r} for column {name!r}, {found}. Give its levels in order, or a number for each.",
    )


def code_column(column: pd.Series, name: str, encode: Encode = False) -> Coded:
    """Read one column as numbers.

    Parameters
    ----------
    column : Series
        Any dtype; its index numbers the rows from 0 on, for messages.
    name : str
        Its name, for messages and to look up its levels in `encode`.
    encode : bool, name, names or mapping
        Whether text and dates may be coded, or those of which columns; a mapping gives the order of levels, or their
        numbers, for some columns and codes the rest too.

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
    encode = is_asked(encode, name)
    types = pd.api.types
    if types.is_bool_dtype(column):
        return Coded(_as_floats(column), "true/false read as 1/0")
    if types.is_complex_dtype(column):
        return Coded(None, "complex numbers")
    if types.is_numeric_dtype(column):
        return Coded(_as_floats(column))
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _code_categories(column, encode)
    if types.is_datetime64_any_dtype(column):
        return _code_dates(column, encode)
    if _are_durations(column):
        return _code_dates(pd.to_timedelta(column.astype(object)), encode)
    if isinstance(column.dtype, pd.PeriodDtype):
        return _code_dates(column.dt.to_timestamp(), encode)
    return _code_objects(column, encode)


def _as_floats(column: pd.Series) -> Vector:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _are_durations(column: pd.Series) -> bool:
    """Whether a column holds durations: of numpy, of arrow, or as objects of Python."""
    if column.dtype != object:
        return getattr(column.dtype, "kind", "") == "m"
    cells = column.dropna()
    return len(cells) > 0 and all(isinstance(cell, (timedelta, np.timedelta64)) for cell in cells)


def _code_given_levels(column: pd.Series, levels: Levels) -> Coded:
    if isinstance(levels, Mapping):
        codes = {level: float(number) for level, number in levels.items()}
        note = _spell_codes(codes, "as given")
    else:
        codes = {level: float(k) for k, level in enumerate(levels)}
        note = f"coded 0 … {len(codes) - 1} in the order given"
    listed = {level.lower() for level in codes if isinstance(level, str)}
    cells = column.astype(object)
    is_text = any(isinstance(cell, str) for cell in blank_missing(cells).dropna())
    cells = blank_missing(cells, MISSING_WORDS - listed - (LEVEL_WORDS if is_text else frozenset()))
    unknown = sorted({str(cell) for cell in cells.dropna() if cell not in codes})
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        return Coded(None, f"the level{'s' if more else ''} {unknown[0]!r}{more}, which encode does not list")
    return Coded(_look_up(cells, codes), note)


def _look_up(cells: pd.Series, codes: Mapping[Any, float]) -> Vector:
    return np.array([codes.get(cell, np.nan) if not pd.isna(cell) else np.nan for cell in cells], dtype=np.float64)


def _code_categories(column: pd.Series, encode: bool) -> Coded:
    categories = column.cat.categories
    if pd.api.types.is_numeric_dtype(categories):
        return _code_numbered(column, encode)
    if column.cat.ordered and encode:
        codes = column.cat.codes.to_numpy(np.float64)
        return Coded(np.where(codes < 0, np.nan, codes), f"coded 0 … {len(categories) - 1} in its category order")
    return _code_objects(column.astype(object), encode)


def _code_numbered(column: pd.Series, encode: bool) -> Coded:
    """Categories that are numbers. Three or more whole ones without an order are names, if they may be coded."""
    dtype = column.cat.categories.dtype
    present = column.cat.remove_unused_categories().cat.categories
    are_names = not column.cat.ordered and pd.api.types.is_integer_dtype(dtype) and 2 < len(present) <= MOST_LEVELS
    if not are_names:
        return Coded(_as_floats(column.astype(dtype if not column.hasnans else np.float64)))
    if encode:
        words = column.astype(object).map(str, na_action="ignore")
        return _number_levels(words, *_order_by_count(Counter(words.dropna())))
    values = _as_floats(column.astype(np.float64))
    levels = Setting("encode", True).as_both()
    return Coded(values, f"categories that are numbers, read as these numbers ({levels}, makes levels of them)")


def _code_dates(column: pd.Series, encode: bool) -> Coded:
    present = column.dropna()
    first = f" (first: row {present.index[0] + 1}, {present.iloc[0]})" if len(present) else ""
    kind = "durations" if pd.api.types.is_timedelta64_dtype(column) else "dates"
    if not encode:
        return Coded(None, f"{kind}{first}")
    days = (column - column.min()) / pd.Timedelta(days=1)
    since = "more than the shortest" if kind == "durations" else "since the earliest"
    return Coded(days.to_numpy(dtype=np.float64, na_value=np.nan), f"{kind} coded as days {since}")


def _code_objects(column: pd.Series, encode: bool) -> Coded:
    cells = blank_missing(column)
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
    dates = read_dates(cells) if is_text.sum() == cells.notna().sum() else None
    if dates is not None and dates.days is not None and encode:
        coded = _code_dates(dates.days, encode)
        return replace(coded, note=f"{coded.note}, read {dates.rule}") if dates.rule else coded
    if dates is not None:
        at = int(is_text.argmax())
        tell = ", of which no day tells whether they are written day first or month first: write them year first"
        return Coded(None, f"dates (first: row {cells.index[at] + 1}, {cells.iloc[at]!r}){tell if encode else ''}")
    stray = find_stray(cells)
    if stray is not None:
        first = f"first: row {cells.index[stray] + 1}, {_shorten(cells.iloc[stray])}"
        return Coded(None, f"dates, but some cells are none or are written in another way ({first})", is_spoilt=True)
    return _code_text(column, cells, is_text, encode)


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


def _code_text(column: pd.Series, cells: pd.Series, is_text: npt.NDArray[np.bool_], encode: bool) -> Coded:
    """Categories, or what stands in the way: `cells` are those of the column without words for 'missing'."""
    distinct = cells.dropna().astype("str").unique().tolist()
    if is_text.sum() == cells.notna().sum():
        cells = blank_missing(column, MISSING_WORDS - LEVEL_WORDS)
        is_text = cells.notna().to_numpy()
    n_text, n_rows = int(is_text.sum()), len(cells)
    share = (
        ("the only row" if n_rows == 1 else f"all {n_rows} rows") if n_text == n_rows else f"{n_text} of {n_rows} rows"
    )
    at = int(is_text.argmax())
    problem = f"text in {share} (first: row {cells.index[at] + 1}, {_shorten(cells.iloc[at])})"
    if n_text < cells.notna().sum():
        only = int(cells.index[at]) if n_text == 1 else None
        return Coded(None, problem, is_spoilt=2 * n_text <= cells.notna().sum(), only_text=only)
    words = cells.astype("str").where(cells.notna(), None)
    units = _list_all_units(distinct, encode)
    if len(units) > 1:
        beside = " beside ".join(map(_shorten, list(units.values())[:2]))
        mixed = f"numbers in more than one unit ({beside}): write all of them in one"
        return Coded(None, mixed, is_label=not encode and _are_labels(cells), is_mixed=True)
    if not encode:
        return Coded(None, problem, is_label=_are_labels(cells))
    if _are_labels(cells.dropna()) and n_text > 2:
        return Coded(None, f"text in which all {n_text} entries differ, so it cannot be coded", is_label=True)
    return _code_scale(words) or _code_levels(words)


def _code_scale(words: pd.Series) -> Coded | None:
    """The steps of a known scale in their order; what is no answer beside them is a gap. None if they are none."""
    levels = sorted(words.dropna().unique())
    silent = [level for level in levels if normalise_level(level) in NO_ANSWERS]
    ranks = rank_levels([level for level in levels if level not in silent])
    if not ranks:
        return None
    codes = {level: float(ranks[level]) for level in sorted(ranks, key=lambda level: ranks[level])}
    counts = "counts" if len(silent) == 1 else "count"
    gaps = f"; {', '.join(map(repr, silent))} {counts} as missing" if silent else ""
    told = _spell_codes(codes, "in the order of the scale that its levels name")
    return Coded(_look_up(words, codes), f"{told}{gaps}")


def _code_levels(words: pd.Series) -> Coded:
    return _number_levels(words, *order_levels(words.dropna().tolist()))


def _number_levels(words: pd.Series, levels: Sequence[str], rule: str) -> Coded:
    codes = {level: float(k) for k, level in enumerate(levels)}
    waiting = tuple(levels) if rule == BY_FREQUENCY else ()
    return Coded(_look_up(words, codes), _spell_codes(codes, rule), levels=waiting)


def _list_all_units(levels: Sequence[str], encode: bool) -> dict[str, str]:
    """Units that numbers are in; of levels to be coded, also those of ranges. Two levels have no order to get wrong."""
    if encode and len(levels) <= 2:
        return {}
    units = list_units(levels)
    return units if len(units) > 1 or not encode else find_units(levels)


def _spell_codes(codes: Mapping[Any, float], rule: str) -> str:
    numbers = {level: f"{code:.3g}".replace("-", "−") for level, code in codes.items()}
    pairs = [f"{level!r} → {number}" for level, number in numbers.items()]
    is_long = len(pairs) > _SHOWN_LEVELS
    shown = ", ".join([*pairs[: _SHOWN_LEVELS - 1], "…", pairs[-1]] if is_long else pairs)
    dots = f": {len(codes)} levels" if is_long else ""
    doubtful = [repr(level) for level in codes if str(level).lower() in LEVEL_WORDS]
    is_level = "".join(f"; {level} counts as a level (empty such cells if they are gaps)" for level in doubtful)
    return f"text coded {rule} ({shown}{dots}){is_level}"


def _are_labels(cells: pd.Series) -> bool:
    """Text in every cell, no two alike."""
    return len(cells) > 1 and all(isinstance(cell, str) for cell in cells) and cells.is_unique


def _shorten(cell: Any, width: int = 30) -> str:
    text = repr(cell)
    return text if len(text) <= width else text[: width - 1] + "…"


BY_FREQUENCY, BY_SCORES = "by falling frequency", "by scores that follow the other columns"
"""Rules that give levels numbers without an order."""


def order_levels(words: Sequence[str]) -> tuple[list[str], str]:
    """Put the levels of a text column in order; the module docstring gives the rules.

    Examples
    --------
    >>> order_levels(["pear", "fig", "fig", "apple"])
    (['fig', 'apple', 'pear'], 'by falling frequency')
    >>> order_levels(["1,000+", "18-25", "26-999"])[0]
    ['18-25', '26-999', '1,000+']
    """
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    if len(counts) <= 2:
        return sorted(counts), "in alphabetical order"
    starts = _read_starts(list(counts))
    if len(counts) == len(set(starts.values())):
        return sorted(counts, key=lambda word: starts[word]), "by the number each level begins with"
    return _order_by_count(counts)


def _order_by_count(counts: Mapping[str, int]) -> tuple[list[str], str]:
    return sorted(counts, key=lambda word: (-counts[word], word)), BY_FREQUENCY


def _read_starts(levels: Sequence[str]) -> dict[str, float]:
    """The number that each level begins with, all written in one way; none at all if one level has no such number."""
    matches = [_LEADING_NUMBER.match(level) for level in levels]
    numbers = read_spelled([match and match[1] for match in matches]) if all(matches) else None
    return {} if numbers is None else dict(zip(levels, numbers.tolist(), strict=True))


def find_units(levels: Sequence[str]) -> dict[str, str]:
    """Units of levels that begin with numbers, each with the first level that has it; none if one has no number.

    A level without a unit counts only beside words for thousands or millions.

    Examples
    --------
    >>> find_units(["5.9 kg", "7 kg", "900 g"]), find_units(["1 year", "2-5 years"]), find_units(["1 low", "2 high"])
    ({'kg': '5.9 kg', 'g': '900 g'}, {'year': '1 year'}, {})
    >>> find_units(["500-999", "1k+"])
    {'': '500-999', 'k': '1k+'}
    """
    units: dict[str, str] = {}
    for level in levels if _read_starts(levels) else ():
        words = _WORD_AFTER_NUMBER.findall(level)
        for word in words or [""]:
            unit = word if word in UNITS else word.lower().removesuffix("s") if len(word) > 2 else word
            if not unit or unit in UNITS | _MAGNITUDES:
                units.setdefault(unit, level)
    if "" in units and not _MAGNITUDES & set(units):
        del units[""]
    return units


# ── categories ────────────────────────────────────────────────────────────────────────────────────────────


def scale_levels(coded: Mapping[str, Coded]) -> dict[str, Coded]:
    """Number the levels of categories by what the other columns say of them; other columns stay as they are.

    A column of K levels is K numbers short of being a variable. They are chosen so that its squared correlations with
    the other columns have the largest sum: the first step of optimal scaling. Other columns count by their ranks, other
    categories by the indicators of their levels, together as much as one column. In algebra, the scores are the
    first left singular vector of the levels' mean ranks, weighted by the root of their counts; they are given
    variance one, positive skewness and four decimals.

    Some numbers always fit by chance, the better the more levels there are. So the singular value is compared with
    those of levels that have nothing to do with the other columns; if one in twenty of these is as large
    (`CHANCE`), or there are more than `MOST_LEVELS` levels, the levels are numbered by falling frequency instead.

    Parameters
    ----------
    coded : mapping from name to Coded
        All columns of a table, none without values.

    Examples
    --------
    >>> size = Coded(np.arange(30.0))
    >>> fruit = code_column(pd.Series(["fig"] * 9 + ["plum"] * 11 + ["melon"] * 10), "fruit", encode=True)
    >>> scale_levels({"size": size, "fruit": fruit})["fruit"].note
    "text coded by scores that follow the other columns ('melon' → −1.23, 'plum' → 0.0613, 'fig' → 1.29)"
    """
    waiting = [name for name, one in coded.items() if 2 < len(one.levels) <= MOST_LEVELS]
    if not waiting:
        return dict(coded)
    blocks = {name: _measure(one, name in waiting) for name, one in coded.items()}
    spectrum = _find_spectrum(np.concatenate(list(blocks.values()), axis=1))
    result = dict(coded)
    for name in waiting:
        others = [block for other, block in blocks.items() if other != name]
        if others:
            result[name] = _score_levels(coded[name], np.concatenate(others, axis=1), spectrum)
    return result


def _measure(one: Coded, is_category: bool) -> Matrix:
    """What a column says of other columns' levels, shape (rows, features): squares sum to one per row on average."""
    assert one.values is not None
    known = ~np.isnan(one.values)
    if not is_category:
        ranks_m: Vector = np.asarray(pd.Series(one.values).rank(), dtype=np.float64)
        return _standardise(ranks_m[:, None])
    x_mk = np.eye(len(one.levels))[np.where(known, one.values, 0).astype(np.int64)]
    x_mk[~known] = np.nan
    share_k = np.nanmean(x_mk, axis=0)
    return np.nan_to_num((x_mk - share_k) / np.sqrt(share_k * (len(share_k) - 1)))


def _standardise(x_mk: Matrix) -> Matrix:
    """Mean zero and variance one; missing cells and constant columns are zero."""
    if not np.isfinite(x_mk).any():
        return np.zeros_like(x_mk)
    centred = np.nan_to_num(x_mk - np.nanmean(x_mk, axis=0))
    scale = np.sqrt((centred**2).mean(axis=0))
    return np.asarray(centred / np.where(scale > 0, scale, 1.0))


def _find_spectrum(y_mp: Matrix) -> tuple[float, ...]:
    """Eigenvalues of the covariance of all columns, largest first: how many independent ones they are worth."""
    gram = y_mp.T @ y_mp if y_mp.shape[1] <= len(y_mp) else y_mp @ y_mp.T
    return tuple(np.linalg.eigvalsh(gram / len(y_mp)).clip(0)[::-1].round(9).tolist())


def _score_levels(one: Coded, y_mp: Matrix, spectrum: tuple[float, ...]) -> Coded:
    """Give levels the scores that follow the columns `y_mp`, or numbers by frequency if these say nothing of them."""
    assert one.values is not None
    known = ~np.isnan(one.values)
    place = one.values[known].astype(np.int64)
    count_k = np.bincount(place).astype(np.float64)
    root_k = np.sqrt(count_k)
    sums_kp = np.stack([y_mp[known][place == k].sum(axis=0) for k in range(len(count_k))])
    means_kp = (sums_kp - count_k[:, None] * y_mp[known].mean(axis=0)) / root_k[:, None]
    left, strengths, _ = np.linalg.svd(means_kp, full_matrices=False)
    score_k = _settle_sign(left[:, 0] / root_k * np.sqrt(count_k.sum()), count_k, sums_kp)
    if strengths[0] > _largest_by_chance(spectrum, len(count_k)):
        rule, order = BY_SCORES, np.argsort(score_k)
        codes = {one.levels[k]: float(score_k[k]) for k in order}
    else:  # ties are decided by the scores, which do not depend on the names of levels
        rule, order = f"{BY_FREQUENCY}, since the other columns do not tell them apart", np.lexsort((score_k, -count_k))
        codes = {one.levels[k]: float(n) for n, k in enumerate(order)}
    by_place = np.array([codes[level] for level in one.levels])
    values = np.full(len(known), np.nan)
    values[known] = by_place[place]
    return replace(one, values=values, note=_spell_codes(codes, rule), levels=())


def _settle_sign(score_k: Vector, count_k: Vector, sums_kp: Matrix) -> Vector:
    """Scores with positive skewness; where they have none, with a positive sum of correlations."""
    centred = score_k - count_k @ score_k / count_k.sum()
    skewness, leaning = count_k @ centred**3 / count_k.sum(), float((centred @ sums_kp).sum())
    sign = np.sign(skewness if abs(skewness) > 1e-6 else leaning) or 1.0
    return np.asarray((sign * centred).round(4) + 0.0)


@functools.lru_cache(maxsize=64)
def _largest_by_chance(spectrum: tuple[float, ...], n_levels: int, n_draws: int = 400) -> float:
    """Singular value that levels reach with probability `CHANCE` if they have nothing to do with the other columns.

    Their mean ranks are then normal, with the covariance of the other columns: only its eigenvalues matter. The draws
    are the same every time.
    """
    rng = np.random.default_rng(0)
    scale_p = np.sqrt(spectrum)
    draws = (rng.normal(size=(n_levels - 1, len(scale_p))) * scale_p for _ in range(n_draws))
    return float(np.quantile([np.linalg.norm(noise_kp, ord=2) for noise_kp in draws], 1 - CHANCE))
