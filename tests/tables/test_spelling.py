"""Numbers as people write them: which mark is which, in a cell, a column and a file."""

import io

import numpy as np
import pandas as pd
import pytest

from cases import each
from graphbam.errors import TableError
from graphbam.tables.read import read_table
from graphbam.tables.spelling import rank_levels

# a file, its numbers, and what must be said of it
GERMAN = {
    "thousands in a column without commas": (
        "a;b;c\n1.480;488,70;6,19\n550;134,50;6,02\n", [[1480, 488.7, 6.19], [550, 134.5, 6.02]], "'1.480' → 1480"
    ),
    "thousands in every column": (
        "a;b\n1.480;1.234,50\n550;2.000,25\n", [[1480, 1234.5], [550, 2000.25]], "'1.234,50' → 1234.5"
    ),
    "in quotes": ('a,b\n"1.480","488,70"\n550,"2,5"\n', [[1480, 488.7], [550, 2.5]], "comma as the decimal mark"),
    "with a unit": ("a;b\n1.480 €;2,55 €\n-550 €;6,25 €\n", [[1480, 2.55], [-550, 6.25]], "'1.480 €' → 1480"),
    "three decimals and a unit": ("a;b\n1,480 €;2,55\n550 €;6,25\n", [[1.48, 2.55], [550, 6.25]], "'1,480 €' → 1.48"),
    "missing cells": ("a;b\n1.480;2,5\nNA ;3,5\n", [[1480, 2.5], [np.nan, 3.5]], "dots part thousands"),
    "one column with points": ("a;b\n1.480;2,55\n5.5;6,25\n", [[1.48, 2.55], [5.5, 6.25]], "because of '5.5'"),
}  # fmt: skip

ENGLISH = {
    "commas between thousands": ("a;b\n1,480;5.5\n2,500;6.25\n", [[1480, 5.5], [2500, 6.25]]),
    "both marks in one cell": ("a;b\n1,480.5;1,200\n2;5\n", [[1480.5, 1200], [2, 5]]),
    "one column with commas": ('a,b,c\n1.480,"488,70",.5\n1.250,"2,5",1\n', [[1.48, 488.7, 0.5], [1.25, 2.5, 1]]),
}


IN_BRACKETS = {
    "some cells": ("a,b\n(2.56),1\n0.1,2\n3,5\n", [-2.56, 0.1, 3], "'(2.56)' → -2.56"),
    "all cells": ("a,b\n(2.56),1\n(0.1),2\n(3),5\n", [-2.56, -0.1, -3], "'(2.56)' → -2.56"),
    "money": ('a,b\n"($1,200)",1\n"$34",2\n"$(5)",5\n', [-1200, 34, -5], "'($1,200)' → -1200"),
    "decimal commas": ("a;b\n(1.480,50);1\n2,5;2\n3;5\n", [-1480.5, 2.5, 3], "'(1.480,50)' → -1480.5"),
    "a missing cell": ("a,b\n(2.56),1\n,2\n3,5\n", [-2.56, np.nan, 3], "'(2.56)' → -2.56"),
}  # fmt: skip


def read_text(text):
    return read_table(io.StringIO(text))


@each(("text", "numbers", "says"), GERMAN.values(), ids=GERMAN)
def test_the_decimal_mark_of_a_file_holds_for_all_its_columns(text, numbers, says):
    table = read_text(text)
    np.testing.assert_array_equal(table.x_md, numbers)
    assert says in "\n".join(table.changes)


@each(("text", "numbers"), ENGLISH.values(), ids=ENGLISH)
def test_commas_are_no_decimal_marks_where_dots_are(text, numbers):
    table = read_text(text)
    np.testing.assert_array_equal(table.x_md, numbers)
    assert "comma as the decimal mark" not in "\n".join(table.changes)


@each(("text", "numbers", "says"), IN_BRACKETS.values(), ids=IN_BRACKETS)
def test_numbers_in_brackets_are_negative(text, numbers, says):
    table = read_text(text)
    np.testing.assert_array_equal(table.x_md[:, 0], numbers)
    assert says in "\n".join(table.changes)


@each("cells", [["(-2)", "1", "3"], ["(2) 5", "1", "3"], ["(a)", "1", "3"], ["((2))", "1", "3"], ["(2", "1", "3"]])
def test_other_brackets_are_text(cells):
    with pytest.raises(TableError, match="column 'a' holds text in 1 of 3 rows"):
        read_table(pd.DataFrame({"a": cells, "b": [1, 2, 5]}))


def test_what_could_be_both_is_refused():
    with pytest.raises(TableError, match=r"'a' holds '1\.480', which is 1480 or 1\.48: .* one decimal mark"):
        read_text("a;b;c\n1.480;2,55;4.5\n5;6,25;4.5\n")


# ── dates ─────────────────────────────────────────────────────────────────────────────────────────────────

DAYS = pd.to_datetime(["2024-02-01", "2024-01-25", "2023-12-02", "2024-02-01"])
SINCE = [61.0, 54.0, 0.0, 61.0]
FORMATS = [
    "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d-%b-%Y", "%b %d, %Y", "%d %B %Y", "%d.%m.%y", "%d.%m.%Y %H:%M",
    "%m/%d/%Y %I:%M %p", "%Y-%m-%d", "%Y/%m/%d",
]  # fmt: skip


def dated(cells):
    return pd.DataFrame({"when": cells, "a": [1.0, 2, 4, 3], "b": [2.0, 1, 1, 5]})


@each("form", FORMATS)
def test_dates_are_read_in_the_order_that_one_of_them_tells(form):
    table = read_table(dated(DAYS.strftime(form)), encode=True)
    assert table.x_md[:, 0].tolist() == SINCE
    assert "days since the earliest" in table.changes[0]
    distinct = read_table(dated(DAYS.strftime(form)).iloc[:3], encode=True)
    assert distinct.x_md[:, 0].tolist() == SINCE[:3]  # no row labels


@each("form", [*FORMATS, "%d/%m/%y"])
def test_dates_are_refused_unless_asked_for(form):
    for cells in (DAYS.strftime(form), [*DAYS.strftime(form)[:3], None]):
        with pytest.raises(TableError, match=rf"'when' holds dates \(first: row 1, '{cells[0]}'\).*encode=True"):
            read_table(dated(cells))  # the cell as it is written, to be found in the file
        with pytest.raises(TableError, match=r"'when' holds dates \(first: row 1.*encode=True"):
            read_table(dated(cells).iloc[:3])


@each("form", ["%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m/%d/%y"])
def test_dates_that_may_be_read_either_way_are_refused(form):
    cells = pd.to_datetime(["2024-02-01", "2024-01-05", "2024-03-12", "2024-02-01"]).strftime(form)
    with pytest.raises(TableError, match=r"'when' holds dates .* day first or month first: write them year first\."):
        read_table(dated(cells), encode=True)
    with pytest.raises(TableError, match=r"'when' holds dates .*encode=True"):
        read_table(dated(cells))
    same = pd.to_datetime(["2024-01-01", "2024-02-02", "2024-03-03", "2024-02-02"]).strftime(form)
    assert read_table(dated(same), encode=True).x_md[:, 0].tolist() == [0, 32, 62, 32]


SPOILT = {
    "a word": (["2024-01-05"] * 11 + ["unknown"], 12, "unknown"),
    "a word first": (["unknown", *["31.12.2023"] * 5, *["1.2.2024"] * 6], 1, "unknown"),
    "day first among month first": (["1/31/2024"] * 6 + ["31/12/2023"] + ["2/3/2024"] * 5, 7, "31/12/2023"),
    "two ways, half and half": (["2024-01-05", "2024-01-31"] * 3 + ["31.12.2023"] * 6, 7, "31.12.2023"),
    "a number": (["2024-01-05"] * 11 + [7], 12, "7"),
    "no such day": ([f"2024-02-{k}" for k in range(19, 31)], 12, "2024-02-30"),
}


@each("encode", [False, True])
@each(("cells", "row", "shown"), SPOILT.values(), ids=SPOILT)
def test_spoilt_dates_are_to_be_corrected_not_coded(cells, row, shown, encode):
    says = rf"'when' holds dates, but .* \(first: row {row}, '?{shown}'?\)\. Correct those cells.*drop=\['when'\]"
    with pytest.raises(TableError, match=says):
        read_table({"a": np.arange(12.0), "b": np.arange(12.0) ** 2, "when": cells}, encode=encode)


def test_text_with_few_dates_is_no_spoilt_date():
    cells = ["2024-01-05"] * 6 + ["before", "after"] * 3
    table = read_table({"a": np.arange(12.0), "b": np.arange(12.0) ** 2, "when": cells}, encode=True)
    assert "text coded" in table.changes[-1]


@each(
    "cells",
    [["18-25", "26-35", "36-45"], ["plot 1", "plot 2", "plot 3"], ["1.2.3", "1.2.4", "1.3.1"], ["45.13.2020"] * 3],
)
def test_other_text_is_no_date(cells):
    frame = dated([*cells, cells[0]])
    with pytest.raises(TableError, match="'when' holds text in all 4 rows"):
        read_table(frame)


SCALES = [
    "Strongly disagree, Disagree, Neither agree nor disagree, Agree, Strongly agree",
    "completely disagree, mostly disagree, slightly disagree, neutral, slightly agree, mostly agree, completely agree",
    "disagree strongly, disagree a little, agree a little, agree strongly",
    "very dissatisfied, dissatisfied, undecided, satisfied, very satisfied",
    "much worse, worse, about the same, better, much better",
    "not at all important, slightly important, moderately important, very important, extremely important",
    "Never, Rarely, Sometimes, Often, Always",
    "poor, fair, good, very good, excellent",
    "none, mild, moderate, severe",
    "LOW, medium, high",
    "S, M, L, XL",
    "low, high",
    "lo, mid, hi",
    "no, maybe, yes",
]


@each("scale", SCALES)
@each("seed", range(3))
def test_steps_of_known_scales_are_ordered(scale, seed):
    steps = scale.split(", ")
    mixed = np.random.default_rng(seed).permutation(steps).tolist()
    assert rank_levels(mixed) == {step: k for k, step in enumerate(steps)}
    assert rank_levels([step.upper().replace(" ", "_") for step in steps]) != {}


@each("levels", ["clay, loam", "s, m", "fair, average, good", "not likely, likely, unlikely", "agree", "neutral, red"])
def test_other_words_are_no_scale(levels):
    assert rank_levels(levels.split(", ")) == {}


@each("word", ["n.a.", "N.A.", "n. a.", "#NA", "n/a."])
def test_spellings_of_not_available_are_gaps(word):
    table = read_table({"a": [1, word, 3], "b": ["1.5", "2.5", word]})
    np.testing.assert_array_equal(table.x_md, [[1, 1.5], [np.nan, 2.5], [3, np.nan]])
