"""Numbers as people write them: which mark is which, in a cell, a column and a file."""

import io

import numpy as np
import pytest

from cases import each
from graphbam.errors import TableError
from graphbam.tables.read import read_table

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


def test_what_could_be_both_is_refused():
    with pytest.raises(TableError, match=r"'a' holds '1\.480', which is 1480 or 1\.48: .* one decimal mark"):
        read_text("a;b;c\n1.480;2,55;4.5\n5;6,25;4.5\n")
