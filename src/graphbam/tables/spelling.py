"""What text spells: numbers with units, thousands marks and decimal commas, dates, and the steps of a scale."""

from __future__ import annotations

import calendar
import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from graphbam.tables.table import Vector

MISSING_WORDS = frozenset({
    "", "?", "-", ".", "na", "n/a", "n/a.", "n / a", "n\\a", "n.a.", "n.a", "n. a.", "#na", "#n/a", "nan", "-nan",
    "null", "none", "<na>", "missing",
})  # fmt: skip
"""Cells read as missing, in any case and with any space around them."""

LEVEL_WORDS = frozenset({"none"})
"""Of these, words that are a level where all other cells are text too: no treatment, no symptom."""

NO_ANSWERS = frozenset({
    "unknown", "don't know", "dont know", "do not know", "i don't know", "don't know / not sure", "can't say",
    "cannot say", "prefer not to say", "prefer not to answer", "rather not say", "refused", "declined", "no answer",
    "no response", "not answered", "no opinion", "not applicable", "does not apply", "not reported", "undisclosed",
})  # fmt: skip
"""Words that are levels like others, but gaps beside the steps of a scale."""

_SCALES = (
    "no; maybe, perhaps, possibly, partly; yes",
    "never, none of the time; almost never, hardly ever, very rarely; rarely, seldom, a little of the time; "
    "occasionally, once in a while; sometimes, some of the time; about half the time; regularly; often, frequently; "
    "usually, very often, most of the time; almost always, nearly always; always, all of the time",
    "very poor, very bad, terrible; poor, bad; fair, average, acceptable, satisfactory, ok, okay, neutral; good; "
    "very good; excellent, outstanding",
    "none, no, absent; minimal, very mild; mild; moderate; moderately severe; severe; very severe, extreme",
    "none, zero; very low, minimal; low, lo; medium, med, mid, moderate, normal, average, intermediate; high, hi; "
    "very high",
    "xs, extra small, very small, tiny; s, small; m, medium; l, large, big; xl, extra large, very large, huge; xxl",
    "very short; short; medium, average, normal; long, tall; very long, very tall",
    "very slow; slow; medium, moderate, average, normal; fast; very fast",
    "very light; light; medium, moderate; heavy; very heavy",
    "very weak; weak; medium, moderate; strong; very strong",
    "very cold, freezing; cold; cool; mild, lukewarm; warm; hot; very hot",
    "very easy; easy; medium, moderate, normal; hard, difficult; very hard, very difficult",
    "not at all; a little, a little bit, slightly, several days; somewhat; moderately, more than half the days; "
    "quite a bit; very much, a lot, nearly every day; extremely, completely",
    "beginner; intermediate; advanced; expert",
)
"""Words that stand for more and more of something; commas part words for one and the same step."""

_POLES = (
    "disagree; agree", "dissatisfied, unsatisfied; satisfied", "unlikely; likely", "unimportant; important",
    "unhappy; happy", "uncomfortable; comfortable", "unfavorable, unfavourable; favorable, favourable",
    "oppose; support, favor, favour", "dislike; like", "negative; positive", "worse; better",
    "decrease, decreased; increase, increased",
)  # fmt: skip
"""Two ends of a scale; how far towards one a step is says a word of `_DEGREES` before or behind it."""

_DEGREES = (
    "not at all; not; not very, not so, not too; slightly, a little, a bit, mildly; somewhat, rather, partly; "
    "moderately, mostly, generally, fairly, quite; ; very, strongly, much, highly; "
    "completely, totally, fully, extremely, absolutely, entirely, very strongly, very much"
)
_MOST_STEPS = 15
_MIDDLE = re.compile(
    "neutral|neither( .+ n?or .+)?|undecided|indifferent|mixed|unchanged|no (change|difference)|(about )?(the )?same"
)

NOTHING = frozenset(
    {"", "-", "none", "nan", "na", "no", "obs", "observational", "control", "wild type", "wildtype", "wt"}
)
"""Words of a column of targets that stand for a row in which nothing was set."""

_TREATED = re.compile(
    r"[\s_.(-]*(ko|kd|oe|knock[\s_-]?(out|down|in)|over[\s_-]?express(ed|ion)|inhibit(or|ed)|mutant|[+\-−]/[\-−])\)?",
    re.IGNORECASE,
)
"""What people write behind the name of a variable that an experiment set."""

HOW_TO_WRITE = (
    "write just the name of the column that was set, as the table has it ('MYC', not 'myc' or 'MYC_KO'), and nothing "
    "in rows in which none was"
)

UNITS = frozenset({
    "ng", "µg", "ug", "mcg", "mg", "g", "kg", "t", "lb", "oz", "gram", "kilogram", "kilo", "ton", "tonne", "pound",
    "ounce", "nm", "µm", "um", "mm", "cm", "m", "km", "in", "ft", "yd", "mi", "inch", "foot", "feet", "metre",
    "meter", "yard", "mile", "kilometre", "kilometer", "µl", "ul", "ml", "cl", "dl", "l", "litre", "liter", "kb",
    "mb", "gb", "tb", "KB", "MB", "GB", "TB", "ms", "s", "sec", "second", "min", "minute", "h", "hr", "hour", "d",
    "day", "wk", "week", "mo", "month", "y", "yr", "year",
})  # fmt: skip
"""Units that numbers may come in, in the singular, where these are not the same in all cells."""

_GLUED = UNITS | frozenset({
    "µL", "mL", "dL", "L", "nmol", "µmol", "umol", "mmol", "mol", "U", "IU", "mU", "mEq", "mmHg", "Pa", "hPa", "kPa",
    "MPa", "bar", "bpm", "Hz", "kHz", "MHz", "GHz", "mV", "V", "kV", "mA", "W", "kW", "MW", "Wh", "kWh", "MWh", "J",
    "kJ", "MJ", "cal", "kcal", "eV", "N", "K", "C", "F", "ppm", "ppb", "mph", "kmh", "ha", "px", "dB",
})  # fmt: skip
"""Units that may follow a number without a space; after a space any word may."""

_SIGNS = "$€£¥₹%"
_UNIT = r"[^\W\d_°](?:[^\W\d_]|[/·⁻^]|(?<=[a-z])[23]){0,11}\.?|°[CFK]?|‰"
_SPELLED = re.compile(
    rf"([{_SIGNS}]?)\s*([-+−]?)\s*([{_SIGNS}]?)\s*(\d[\d.,'’\s]*|[.,]\d+)([eE][-+]?\d+)?(\s*)([{_SIGNS}]|{_UNIT}|)"
)
_IN_BRACKETS = re.compile(rf"([{_SIGNS}]?)\s*\(([^()+−-]+)\)\s*([{_SIGNS}]?)")
_MONTHS = {name.lower() for name in (*calendar.month_abbr, *calendar.month_name)}
_NO_UNITS = _MONTHS | {"alpha", "beta", "rc", "dev", "am", "pm", "bc", "bce"}
_GAP = r"['’\s]"
_WRITINGS = {
    ".": re.compile(rf"[1-9]\d{{0,2}}(,\d{{3}})+(\.\d+)?|\d{{1,3}}({_GAP}\d{{3}})+(\.\d+)?|\d+\.?\d*|\.\d+"),
    ",": re.compile(rf"[1-9]\d{{0,2}}(\.\d{{3}})+(,\d+)?|\d{{1,3}}({_GAP}\d{{3}})+(,\d+)?|\d+,?\d*|,\d+"),
}
"""How numbers are written, by their decimal mark."""

_THOUSANDS = {".": ",", ",": "."}

_LIKE_DATE = re.compile(
    r"(\d{1,2}[./\s-]+([a-z]{3,9}|\d{1,2})[./,\s-]+|[a-z]{3,9}\s+\d{1,2},?\s+)(\d{4}|\d\d)(\D.*)?",
    re.IGNORECASE,
)
_LIKE_ISO = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?(\D.*)?")
_NAMED = ("%d-{}-%Y", "%d {} %Y", "%d. {} %Y", "%d/{}/%Y", "{} %d, %Y", "{} %d %Y", "%d-{}-%y", "%d {} %y")
_DATES = {
    "day first": ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y"),
    "month first": ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y"),
    "with the names of months": tuple(form.format(month) for form in _NAMED for month in ("%b", "%B")),
}
_SAMPLES = 20  # cells that show how dates are written
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S")


def read_spelled(cells: Sequence[Any] | pd.Series, decimal: str = "") -> Vector | None:
    """Numbers of a column that is written in units, brackets, with thousands marks or a decimal comma; else None.

    `decimal` is the decimal mark, if it is known; else a dot if all cells can be read so.

    Examples
    --------
    >>> read_spelled(["$1,200", "$ 0.56", None]).tolist()
    [1200.0, 0.56, nan]
    >>> read_spelled(["1,5", "0,250"]).tolist(), read_spelled(["12 %", "−3 %"]).tolist()
    ([1.5, 0.25], [12.0, -3.0])
    >>> read_spelled(["($1,200)", "$34"]).tolist(), read_spelled(["(2.56)", "0.1"]).tolist()
    ([-1200.0, 34.0], [-2.56, 0.1])
    >>> read_spelled(["18.3 kg", "7 kg"]).tolist(), read_spelled(["1 day", "2 days"]).tolist()
    ([18.3, 7.0], [1.0, 2.0])
    >>> read_spelled(["$5", "€7"]), read_spelled(["5 kg", "900 g"]), read_spelled(["12a", "13a"])
    (None, None, None)
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


def blank_missing(cells: pd.Series, words: Collection[str] = MISSING_WORDS) -> pd.Series:
    """None where a cell holds a word for 'missing'; spaces around text removed."""

    def clean(cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        cell = cell.strip()
        return None if cell.lower() in words else cell

    return pd.Series([clean(cell) for cell in cells], cells.index, dtype=object)


def names_targets(column: pd.Series, others: Collection[str], *, as_written: bool = False) -> bool:
    """Whether a column of text seems to name other columns, as one that lists what was set in each row does.

    Or to mean them (`find_meant`), unless they must be named as they are written.

    Examples
    --------
    >>> names_targets(pd.Series(["none", "dose", "dose; age"]), ["dose", "age", "cure"])
    True
    >>> [names_targets(pd.Series(["WT", "MYC_KO"]), ["MYC"], as_written=strict) for strict in (False, True)]
    [True, False]
    >>> names_targets(pd.Series(["red", "blue"]), ["dose", "age"])
    False
    """
    words = {
        word.strip()
        for cell in column.dropna().astype(str).unique()[:1000]
        for word in ([cell] if cell in others else cell.replace(",", ";").replace("|", ";").split(";"))
    }
    named = {word for word in words if word.lower() not in NOTHING}
    unknown = named - set(others)
    return bool(named) and (not unknown or (not as_written and all(find_meant(word, others) for word in unknown)))


def find_meant(word: str, names: Collection[str]) -> str | None:
    """The only column that a target can mean, in other letters or with what was done to it; None if there is none.

    Examples
    --------
    >>> [find_meant(word, ["MYC", "TP53"]) for word in ("myc", "MYC_KO", "Tp53-/-", "MYC knockout", "MYCN")]
    ['MYC', 'MYC', 'TP53', 'MYC', None]
    """
    meant = [
        name
        for name in names
        if word.lower().startswith(name.lower()) and (word[len(name) :] == "" or _TREATED.fullmatch(word[len(name) :]))
    ]
    return meant[0] if len(meant) == 1 else None


def _match_numbers(column: pd.Series) -> list[re.Match[str]]:
    """Parts of every number; none at all if one cell spells no number, or with a sign of its own."""
    matches: list[re.Match[str]] = []
    for cell in column.dropna():
        match = _match_number(str(cell))
        if match is None:
            return []
        matches.append(match)
    signs = {_find_unit(match) for match in matches}
    return matches if len(signs) == 1 and None not in signs else []


def _match_number(cell: str) -> re.Match[str] | None:
    """Parts of a number; in brackets, as accountants write it, it is negative."""
    negative = _IN_BRACKETS.fullmatch(cell)
    return _SPELLED.fullmatch(f"-{''.join(negative.groups())}" if negative else cell)


def _find_unit(match: re.Match[str]) -> str | None:
    """The sign or unit of a number, words in the singular; empty if it has none, None if it is something else."""
    signs = [sign for sign in match.group(1, 3, 7) if sign]
    word = match[7].removesuffix(".")
    if len(signs) > 1 or word in _SIGNS:
        return "".join(signs) if len(signs) <= 1 else None
    unit = word.removesuffix("s") if len(word) > 2 else word
    return unit if _is_unit(unit, _stands_apart(match)) else None


def _stands_apart(match: re.Match[str]) -> bool:
    return bool(match[6]) or match[4] != match[4].rstrip()


def _is_unit(word: str, is_apart: bool) -> bool:
    """Whether a word behind numbers is their unit: identifiers (12a) and versions have some, too."""
    if word[0] in "°‰" or _split_unit(word) in _GLUED:
        return True
    return is_apart and len(word) > 1 and word.lower() not in _NO_UNITS


def _split_unit(word: str) -> str:
    """The first of the units that a unit is made of: mg of mg/dL, m of m²."""
    return re.split(r"[/·⁻^²³23]", word.replace("μ", "µ"))[0]


def list_units(cells: Sequence[Any]) -> dict[str, str]:
    """Units of numbers, each with the first cell that has it; none if a cell is no number with a known unit.

    Examples
    --------
    >>> list_units(["5 kg", "900 g", "7 kg"]), list_units(["12a", "13b"]), list_units(["5 kg", "7"])
    ({'kg': '5 kg', 'g': '900 g'}, {}, {})
    >>> list_units(["20 °C", "68 °F"]), list_units(["5 €", "$7"]), list_units(["99 mg/dL", "1 low"])
    ({'°C': '20 °C', '°F': '68 °F'}, {'€': '5 €', '$': '$7'}, {})
    """
    units: dict[str, str] = {}
    for cell in cells:
        match = _match_number(str(cell))
        unit = match and _find_unit(match)
        is_degree = unit in ("C", "F") and match is not None and _stands_apart(match)  # 20 C, but not room 20C
        if not unit or not (_is_known(unit) or is_degree):
            return {}
        units.setdefault(unit.replace("μ", "µ"), str(cell))
    return units


def _is_known(unit: str) -> bool:
    """Whether it is surely a unit: one capital letter, as in 3C, may also be part of a name."""
    first = _split_unit(unit)
    return unit in UNITS or unit[0] in f"{_SIGNS}°‰" or (first in _GLUED and (len(first) > 1 or first != unit))


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


def rank_levels(levels: Sequence[str]) -> dict[str, int]:
    """Steps of a scale, from 0 on, such as those of agreement or of frequency; nothing if the levels name no known one.

    Examples
    --------
    >>> rank_levels(["Agree", "strongly agree", "neutral", "Somewhat disagree"])
    {'Agree': 2, 'strongly agree': 3, 'neutral': 1, 'Somewhat disagree': 0}
    >>> rank_levels(["mild", "none", "severe"]), rank_levels(["not at all sure", "very sure"])
    ({'mild': 1, 'none': 0, 'severe': 2}, {'not at all sure': 0, 'very sure': 1})
    >>> rank_levels(["clay", "loam"]), rank_levels(["m", "s"]), rank_levels(["fair", "average", "good"])
    ({}, {}, {})
    """
    words = {level: normalise_level(level) for level in levels}
    names = sorted(set(words.values()))
    is_short = len(names) == 2 and len("".join(names)) == 2  # m and s may be anything
    if not 2 <= len(names) <= _MOST_STEPS or is_short:
        return {}
    for found in (*(_place(names, scale) for scale in _SCALES), _grade(names)):
        if len(set(found.values())) == len(names):  # two words for one step: who knows which is more
            order = sorted(names, key=lambda name: found[name])
            return {level: order.index(name) for level, name in words.items()}
    return {}


def normalise_level(level: str) -> str:
    """A level as scales are written here: small letters, single spaces."""
    return re.sub(r"[\s_–-]+", " ", level.casefold().replace("’", "'")).strip(" .")


def _place(names: Sequence[str], scale: str) -> dict[str, int]:
    """The step of a scale that each name stands for; nothing if one stands for none."""
    steps = {word.strip(): k for k, step in enumerate(scale.split(";")) for word in step.split(",")}
    return {name: steps[name] for name in names} if all(name in steps for name in names) else {}


def _grade(names: Sequence[str]) -> dict[str, int]:
    """How far each name goes towards one of two ends, or how much of one word it claims; nothing if one does not."""
    parts = {name: _split_degree(name) for name in names}
    stems = {stem for name, (_, stem) in parts.items() if not _MIDDLE.fullmatch(name)}
    if len(stems) == 1 and not any(_MIDDLE.fullmatch(name) for name in names):
        return {name: degree for name, (degree, _) in parts.items()}
    neither = 2  # "not agree" is no step between two ends
    for poles in _POLES:
        sides = _place(sorted(stems), poles)
        if sides:
            grades = {n: (1 if sides[stem] else -1) * degree for n, (degree, stem) in parts.items() if stem in sides}
            return {} if any(abs(grade) <= neither for grade in grades.values()) else dict.fromkeys(names, 0) | grades
    return {}


def _split_degree(name: str) -> tuple[int, str]:
    """How much of what a level says: "very happy" is (7, "happy")."""
    degrees = {word.strip(): k for k, step in enumerate(_DEGREES.split(";")) for word in step.split(",")}
    for word in sorted(degrees, key=len, reverse=True):
        if word and name.startswith(f"{word} "):
            return degrees[word], name.removeprefix(f"{word} ")
        if word and name.endswith(f" {word}"):
            return degrees[word], name.removesuffix(f" {word}")
    return degrees[""], name


class Dates(NamedTuple):
    """What a column of dates holds."""

    days: pd.Series | None
    """Points in time; None if day and month cannot be told apart."""
    rule: str = ""
    """How they were read, unless they are written year first."""


def read_dates(cells: pd.Series) -> Dates | None:
    """Dates of a column in which all cells are written in one way; None if they are not.

    Year first, as 2024-01-31, in any of the ways of ISO 8601; day first with dots, as 31.1.2024; with a month's name;
    with slashes or hyphens day first or month first, which a day beyond the twelfth must tell. With a time or without.

    Examples
    --------
    >>> read_dates(pd.Series(["31.12.2023", "2.1.2024"])).days.dt.day.tolist()
    [31, 2]
    >>> read_dates(pd.Series(["2/1/2024", "1/31/2024"])).rule
    'month first'
    >>> read_dates(pd.Series(["2/1/2024", "1/2/2024"])), read_dates(pd.Series(["18/25", "26/35"]))
    (Dates(days=None, rule=''), None)
    """
    try:
        dates = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
    except (ValueError, TypeError):
        return None
    if dates.notna().sum() == cells.notna().sum():
        return Dates(dates)
    found: dict[str, pd.Series] = {}
    first = next((cell for cell in cells if isinstance(cell, str)), "")
    for rule, formats in _find_formats(first).items():
        for one in formats:
            dates = pd.to_datetime(cells, format=one, errors="coerce")
            if dates.notna().sum() == cells.notna().sum():
                found[rule] = dates
    if not found:
        return None
    rule, dates = next(iter(found.items()))
    return Dates(dates, rule) if all(dates.equals(other) for other in found.values()) else Dates(None)


def find_stray(cells: pd.Series) -> int | None:
    """Place of the first cell that is no date, or not written as most are, where nearly all are dates; else None.

    Nearly all are at least three, and nine in ten or all but one of the cells that are not missing.

    Examples
    --------
    >>> find_stray(pd.Series(["2024-01-01", "2024-01-03", "unknown", "2024-01-02"]))
    2
    >>> find_stray(pd.Series(["31/12/2023", "1/13/2024", "1/14/2024", "1/15/2024"]))
    0
    >>> find_stray(pd.Series(["2010-11", "2011-12", "2012-13", "2013-14"]))
    """
    words = cells.dropna().map(str).astype(object)
    year_first = words.map(lambda word: word if _LIKE_ISO.fullmatch(word) else None).astype(object)
    found = [pd.to_datetime(year_first, format="ISO8601", errors="coerce", utc=True).notna()]
    samples = [word for word in words.unique() if _LIKE_DATE.fullmatch(word)][:_SAMPLES]
    for form in {form for word in samples for formats in _find_formats(word).values() for form in formats}:
        found.append(pd.to_datetime(words, format=form, errors="coerce").notna())
    n_dates = int(np.any(found, axis=0).sum())
    if n_dates < max(3, min(0.9 * len(words), len(words) - 1)):
        return None
    is_date = max(found, key=lambda dates: int(dates.sum())).to_numpy()
    return int(np.flatnonzero(cells.notna())[is_date.argmin()])


def _find_formats(cell: str) -> dict[str, list[str]]:
    """Formats in which a cell is a date, by how they are to be called."""
    if not _LIKE_DATE.fullmatch(cell):
        return {}
    return {
        rule: [day + time for day in days for time in _TIMES if _is_date(cell, day + time)]
        for rule, days in _DATES.items()
    }


def _is_date(cell: str, form: str) -> bool:
    try:
        datetime.strptime(cell, form)
    except ValueError:
        return False
    return True
