"""Bad and odd input: each works with a stated repair, or fails with one clear sentence and leaves nothing behind."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import lzma
import os
import random
import zipfile

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from cases import each, quick_and_long
from graphbam.errors import GraphbamError, KnowledgeError, TableError
from graphbam.result import Failure
from standins import PartialCorrelation

RNG = np.random.default_rng(0)
GOOD = RNG.normal(size=(30, 3))
WEIGHTS = PartialCorrelation()


def csv_of(frame, **options):
    return pd.DataFrame(frame).to_csv(index=False, **options).encode()


def good_csv(names=("a", "b", "c"), **options):
    return csv_of(pd.DataFrame(GOOD, columns=list(names)), **options)


def zipped(*names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, good_csv())
    return buffer.getvalue()


def workbook(**sheets):
    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer) as book:
        for name, cells in sheets.items():
            pd.DataFrame(cells, columns=list("abc")).to_excel(book, sheet_name=name, index=False)
    return buffer.getvalue()


def parquet():
    buffer = io.BytesIO()
    pd.DataFrame(GOOD, columns=list("abc")).to_parquet(buffer)
    return buffer.getvalue()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def ragged():
    lines = good_csv().decode().splitlines()
    lines[17] += ",99"
    return "\n".join(lines).encode()


def short_row():
    lines = good_csv().decode().splitlines()
    lines[9] = "1.0,2.0"
    return "\n".join(lines).encode()


def with_column(values):
    return csv_of(pd.DataFrame(GOOD, columns=list("abc")).assign(d=list(values)))


# file name, content, what the message must say
REFUSED_FILES = {
    "empty file": ("t.csv", b"", "is empty"),
    "only blank lines": ("t.csv", b"\n\n  \n", "is empty"),
    "byte order mark alone": ("t.csv", b"\xef\xbb\xbf", "is empty"),
    "only comments": ("t.csv", b"# one\n# two\n", "is empty"),
    "header only": ("t.csv", b"a,b,c\n", "has a header but no rows"),
    "one row": ("t.csv", b"a,b\n1,2\n", "found 1 sample"),
    "two rows on their side": ("t.csv", b"a,b,c,d\n1,2,5,3\n3,5,1,0\n", "or transpose the table, if its rows"),
    "three rows": ("t.csv", b"a,b\n1,2\n3,5\n5,1\n", "found 3 sample.*minimum of 4 is required"),
    "one column": ("t.csv", b"a\n1\n2\n3\n", "one column, 'a'"),
    "a single number": ("t.csv", b"7", "one column"),
    "ragged, too long": ("t.csv", ragged(), "line 18, has 4 cells where the header promises 3"),
    "ragged, too short": ("t.csv", short_row(), "line 10, has 2 cells where the header promises 3"),
    "unknown delimiter": ("t.csv", b"a~b\n1~2\n3~4\n", "check the delimiter"),
    "unknown delimiter and text": ("t.csv", b"a~b\nu~2\nv~4\nw~1\n", "only the column 'a~b'.* row labels.* delimiter"),
    "a row of one cell": ("t.csv", b"a,b\n1,2\n3\n", "line 3, has 1 cell where the header promises 2"),
    "rows called by numbers": ("t.csv", b"id,a,b\n#1,2,3\n#2,5,1\n#3,1,1\n", "found 3 sample"),
    "unclosed quote": ("t.csv", b'a,b\n1,"2\n3,4\n' * 9 + b"5,6\n", "t.csv"),
    "zip without a table": ("t.csv", zipped("notes.md"), "holds no file with a table; looked for names"),
    "zip of two": ("t.zip", zipped("a.csv", "b.csv"), r"has 2 files with tables: 'a.csv', .* as in '.*t.zip::a.csv'"),
    "truncated zip": ("t.zip", zipped("a.csv")[:90], "damaged or incomplete zip archive"),
    "workbook of two": ("t.xlsx", workbook(A=GOOD, B=GOOD), r"has 2 sheets with tables: 'A', .* as in '.*t.xlsx::A'"),
    "workbook of none": ("t.xlsx", workbook(A=GOOD[:0]), "holds no sheet with a table"),
    "text named xlsx": ("t.xlsx", good_csv(), "is not a xlsx file"),
    "damaged feather": ("t.feather", b"ARROW1" + bytes(50), "damaged feather"),
    "damaged Stata": ("t.dta", b"<stata_dta>nothing", "cannot be read as a Stata file"),
    "SPSS": ("t.sav", b"$FL2@(#) SPSS", "SPSS"),
    "truncated bzip2": ("t.csv.bz2", bz2.compress(good_csv())[:60], "damaged or incomplete bzip2"),
    "truncated xz": ("t.csv.xz", lzma.compress(good_csv())[:60], "damaged or incomplete xz"),
    "text named parquet": ("t.parquet", good_csv(), "is not a parquet file"),
    "truncated parquet": ("t.parquet", parquet()[:300], "damaged parquet"),
    "truncated gzip": ("t.csv.gz", gzip.compress(good_csv())[:60], "damaged or incomplete gzip"),
    "empty gzip": ("t.csv.gz", gzip.compress(b""), "is empty"),
    "pickle": ("t.pkl", b"\x80\x04\x95rest", "can run code"),
    "npy of objects": ("t.npy", npy(np.array([[1, "a"], [2, None]], dtype=object)), "cannot be read as npy"),
    "HDF5": ("t.h5ad", b"\x89HDF\r\n\x1a\nrest", "HDF5"),
    "web page": ("t.csv", b"<!doctype html><html><body>404</body></html>", "holds a web page"),
    "JSON": ("t.csv", b'{"a": [1, 2], "b": [3, 4]}', "holds JSON"),
    "binary": ("t.csv", bytes(range(256)), "holds binary data"),
    "all missing": ("t.csv", b"a,b\nNA,NA\n,\nnan,?\n", "every cell is missing"),
    "all infinite": ("t.csv", b"a,b\ninf,-inf\ninf,inf\n", "every cell is missing"),
    "all constant": ("t.csv", b"a,b\n" + b"1,2\n" * 4, "0 of 2 columns vary"),
    "all but one constant": ("t.csv", b"a,b\n1,2\n1,3\n1,4\n1,5\n", "1 of 2 columns vary"),
    "text column": ("t.csv", with_column(["Rome", "Oslo"] * 15), "column 'd' holds text in all 30 rows"),
    "some text": ("t.csv", with_column([*range(29), "broken"]), r"text in 1 of 30 rows \(first: row 30, 'broken'\)"),
    "numbers in two units": ("t.csv", with_column(["$5", "€7"] * 15), r"more than one unit \('\$5' beside '€7'\)"),
    "dates": ("t.csv", with_column(pd.date_range("2020-01-01", periods=30)), "column 'd' holds dates"),
    "hardly any value left": ("t.csv", b"a,b\n1,\n2,\n3,\n4,5\n", "fewer than two columns are left"),
    "two halves that never meet": ("t.csv", b"a,b\n1,\n2,\n,3\n,4\n", "no two columns are observed together"),
}  # fmt: skip


@each(("name", "content", "says"), REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_refused_files_get_one_clear_sentence(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=says) as caught:
        gb.infer(tmp_path / name, weights=WEIGHTS)
    message = str(caught.value)
    assert "\n" not in message
    assert message.rstrip().endswith((".", "?", "…"))


def folder(path):
    return path


def missing(path):
    (path / "table.csv").write_bytes(good_csv())
    return path / "tabel.csv"


def unreadable(path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (path / "t.csv").write_bytes(good_csv())
    (path / "t.csv").chmod(0)
    return path / "t.csv"


REFUSED_OBJECTS = {
    "a folder": (folder, "is a folder"),
    "a file that is not there": (missing, r"does not exist. Did you mean .*table\.csv"),
    "a file without permission": (unreadable, "may not be read"),
    "a name with a null byte": (lambda path: "a\0b.csv", "cannot be opened"),
    "a name far too long": (lambda path: "x" * 5000, "cannot be opened"),
    "text instead of a path": (lambda path: "a,b\n1,2\n3,4\n", "does not exist"),
    "a web address": (lambda path: "https://example.org/t.csv", "is a web address"),
    "an empty path": (lambda path: "", "the path of the table is empty"),
    "None": (lambda path: None, "None is not a table"),
    "a number": (lambda path: 7, "7 is not a table"),
    "bytes": (lambda path: b"a,b", "is not a table"),
    "one dimension": (lambda path: np.arange(5.0), "Expected a 2D array"),
    "three dimensions": (lambda path: np.zeros((2, 3, 4)), "Expected a 2D array"),
    "no rows": (lambda path: np.zeros((0, 3)), "found 0 sample"),
    "no columns": (lambda path: np.zeros((5, 0)), "0 feature"),
    "one sample": (lambda path: np.zeros((1, 3)), "found 1 sample"),
    "complex numbers": (lambda path: GOOD + 1j, "Complex data not .* Pass real parts, .* or use drop="),
    "rows of different length": (lambda path: [[1, 2], [3]], "Make every row equally long"),
    "columns of different length": (lambda path: {"a": [1, 2], "b": [1]}, "not a table of columns"),
    "lists in cells": (lambda path: {"a": [[1], [2]], "b": [1, 2], "c": [3, 4]}, "column 'a' holds text"),
    "what simulate returns": (lambda path: gb.simulate(n_variables=3, n_samples=20), "Pass the table alone"),
    "a Series": (lambda path: pd.Series([1.0, 2.0], name="a"), "one column, 'a'"),
    "an AnnData without matrix": (lambda path: type("A", (), {"X": None, "var_names": []})(), "its .X is empty"),
    "a frame of dates only": (
        lambda path: pd.DataFrame({"a": [datetime.date(2020, 1, k) for k in range(1, 4)], "b": [1.0, 2, 4]}),
        "column 'a' holds dates",
    ),
}  # fmt: skip


@each(("make", "says"), REFUSED_OBJECTS.values(), ids=REFUSED_OBJECTS)
def test_refused_objects_get_one_clear_sentence(tmp_path, make, says):
    with pytest.raises(TableError, match=says) as caught:
        gb.infer(make(tmp_path), weights=WEIGHTS)
    assert "Traceback" not in str(caught.value)


def test_a_folder_gets_one_sentence(tmp_path):
    with pytest.raises(TableError) as caught:
        gb.infer(tmp_path, weights=WEIGHTS)
    assert str(caught.value) == f"{tmp_path} is a folder, not a table. Pass one file, or the folder to infer_many."


def decimal_commas():
    text = pd.DataFrame(GOOD, columns=list("abc")).to_csv(index=False, sep=";", decimal=",")
    return text.encode()


# file name, content, expected names, what the list of changes must say ("" for nothing)
REPAIRED = {
    "plain": ("t.csv", good_csv(), "abc", ""),
    "path with spaces": ("my table (1).csv", good_csv(), "abc", ""),
    "path in another script": ("tägliche Daten 表.csv", good_csv(), "abc", ""),
    "capital suffix": ("T.CSV", good_csv(), "abc", ""),
    "no suffix": ("table", good_csv(), "abc", ""),
    "tabs": ("t.tsv", good_csv(sep="\t"), "abc", ""),
    "semicolons in csv": ("t.csv", good_csv(sep=";"), "abc", "semicolon"),
    "tabs in csv": ("t.csv", good_csv(sep="\t"), "abc", "tab"),
    "bars in txt": ("t.txt", good_csv(sep="|"), "abc", ""),
    "spaces in txt": ("t.txt", good_csv(sep=" "), "abc", ""),
    "decimal commas": ("t.csv", decimal_commas(), "abc", "decimal mark"),
    "gzip": ("t.csv.gz", gzip.compress(good_csv()), "abc", ""),
    "gzip that does not say so": ("t.csv", gzip.compress(good_csv()), "abc", ""),
    "parquet": ("t.parquet", parquet(), "abc", ""),
    "parquet named csv": ("t.csv", parquet(), "abc", ""),
    "npy": ("t.npy", npy(GOOD), ["x0", "x1", "x2"], ""),
    "byte order mark": ("t.csv", b"\xef\xbb\xbf" + good_csv(), "abc", ""),
    "UTF-16": ("t.csv", good_csv().decode().encode("utf-16"), "abc", "UTF-16"),
    "Latin-1": ("t.csv", good_csv(["größe", "b", "c"]).decode().encode("latin-1"), ["größe", "b", "c"], "not UTF-8"),
    "Windows line ends": ("t.csv", good_csv(lineterminator="\r\n"), "abc", ""),
    "old Mac line ends": ("t.csv", good_csv(lineterminator="\r"), "abc", ""),
    "no newline at the end": ("t.csv", good_csv().rstrip(), "abc", ""),
    "blank lines between": ("t.csv", good_csv().replace(b"\n", b"\n\n"), "abc", ""),
    "no header": ("t.csv", good_csv().split(b"\n", 1)[1], ["x0", "x1", "x2"], "no header found"),
    "comment above": ("t.csv", b"# made by a machine\n" + good_csv(), "abc", ""),
    "comment below the names": ("t.csv", good_csv().replace(b"\n", b"\n# units: cm, kg\n#\n", 1), "abc", ""),
    "comment below, semicolons": (
        "t.csv", good_csv(sep=";").replace(b"\n", b"\n# units: cm\n", 1), "abc", "semicolon"),
    "delimiter in the first line": ("t.csv", b"sep=,\r\n" + good_csv(lineterminator="\r\n"), "abc", ""),
    "semicolon in the first line": ("t.csv", b'\xef\xbb\xbf"sep=;"\n' + decimal_commas(), "abc", "semicolon"),
    "names in a comment": ("t.txt", b"# a b c\n" + good_csv(sep=" ").split(b"\n", 1)[1], "abc", "comment line"),
    "row numbers": ("t.csv", pd.DataFrame(GOOD, columns=list("abc")).to_csv().encode(), "abc", "row labels"),
    "names left out by R": ("t.txt", b"a b c\n" + b"".join(
        f"r{k} {x} {y} {z}\n".encode() for k, (x, y, z) in enumerate(GOOD)), "abc", "row labels"),
    "a column of identifiers": ("t.csv", csv_of(pd.DataFrame(GOOD, columns=list("abc")).pipe(
        lambda f: f.assign(id=[f"cell{k}" for k in range(30)])[["id", "a", "b", "c"]])), "abc", "row labels"),
    "quotes in names": ("t.csv", good_csv(['say "a"', "b's", "c"]), ['say "a"', "b's", "c"], ""),
    "line breaks in names": ("t.csv", good_csv(["a\nb", "c,d", "e;f"]), ["a\nb", "c,d", "e;f"], ""),
    "spaces around names": ("t.csv", good_csv([" a", "b ", "c"]), "abc", ""),
    "duplicate names": ("t.csv", good_csv("aba"), ["a", "b", "a_2"], "share a name"),
    "empty name": ("t.csv", good_csv(["a", "", "c"]), ["a", "column_2", "c"], "nameless"),
    "control characters in names": ("t.csv", good_csv(["a\x07", "b", "c"]), ["a�", "b", "c"], ""),
    "1e308": ("t.csv", with_column(GOOD[:, 0] / 9 * 1e308), "abcd", ""),
    "1e-320": ("t.csv", with_column(GOOD[:, 0] * 1e-310), "abcd", ""),
    "integers beyond 64 bits": ("t.csv", with_column([10**25 + k * 10**20 for k in range(30)]), "abcd", "sorted"),
    "one infinite value": ("t.csv", with_column([*range(29), "inf"]), "abcd", "infinite"),
    "many words for missing": ("t.csv", with_column(["NA", "?", "n/a", "null", ".", *range(25)]), "abcd", "regression"),
    "an empty column": ("t.csv", with_column([None] * 30), "abc", "100% missing"),
    "an empty row": ("t.csv", good_csv() + b",,\n", "abc", "without any value"),
    "thousands separators": ("t.csv", with_column([f"1,{k:03}" for k in range(30)]), "abcd", "'1,000' → 1000"),
    "prices": ("t.csv", with_column([f"${k / 100}" for k in range(30)]), "abcd", "'$0.0' → 0"),
    "decimal commas in quotes": ("t.csv", with_column([f"{k},5" for k in range(30)]), "abcd", "'0,5' → 0.5"),
    "decimal commas and no header": ("t.csv", decimal_commas().split(b"\n", 1)[1], ["x0", "x1", "x2"], "no header"),
    "per cent": ("t.csv", with_column([f"{k} %" for k in range(30)]), "abcd", "the numbers it spells"),
    "true and false": ("t.csv", with_column([True, False, True] * 10), "abcd", "1/0"),
    "true, false, missing": ("t.csv", with_column(["true", "FALSE", "True"] * 9 + ["", "true", "NA"]), "abcd", "1/0"),
    "a constant column": ("t.csv", with_column([4] * 30), "abcd", "is constant"),
    "quoted numbers": ("t.csv", good_csv(quoting=1), "abc", ""),
    "four rows": ("t.csv", b"a,b\n1,2\n3,5\n5,1\n2,4\n", "ab", ""),
    "two columns": ("t.csv", csv_of(pd.DataFrame(GOOD[:, :2], columns=["a", "b"])), "ab", ""),
}  # fmt: skip


@each(("name", "content", "names", "says"), REPAIRED.values(), ids=REPAIRED)
def test_odd_files_work_and_say_what_was_repaired(tmp_path, name, content, names, says):
    (tmp_path / name).write_bytes(content)
    result = gb.infer(tmp_path / name, weights=WEIGHTS)
    assert result.names == tuple(names)
    assert says in "\n".join(result.changes)
    assert np.allclose(result.probabilities.sum(axis=-1), 1)
    if not says:
        assert not result.changes


@each("name", ["semicolons in csv", "UTF-16", "old Mac line ends", "decimal commas", "npy"])
def test_repairs_do_not_touch_the_numbers(tmp_path, name):
    file, content, _, _ = REPAIRED[name]
    (tmp_path / file).write_bytes(content)
    expected = gb.infer(GOOD, weights=WEIGHTS).probabilities
    assert np.allclose(gb.infer(tmp_path / file, weights=WEIGHTS).probabilities, expected, atol=1e-12)


SETTINGS = {
    "unknown rule for missing": ({"missing": "guess"}, "choose from auto"),
    "unknown rule for many rows": ({"large": "all"}, "choose from subsample"),
    "no rows allowed": ({"max_rows": 3}, "not a whole number from 4 on"),
    "negative resamples": ({"stability": -1}, "number of resamples"),
    "half a resample": ({"stability": 0.5}, "number of resamples"),
    "a column to drop that is not there": ({"drop": ["d"]}, "drop names the column 'd'"),
    "levels of a column that is not there": ({"encode": {"d": [1]}}, "encode names the column 'd'"),
    "every column dropped": ({"drop": ["x0", "x1", "x2"]}, "no column"),
    "an unknown device": ({"device": "abacus", "weights": "edges"}, "abacus|no weights"),
    "weights that are none": ({"weights": 7}, "are no weights"),
    "unknown weights": ({"weights": "edgse"}, "no weights named 'edgse'"),
    "missing refused": ({"missing": "error"}, None),
}


@each(("settings", "says"), SETTINGS.values(), ids=SETTINGS)
def test_settings_are_checked(settings, says):
    settings = {"weights": WEIGHTS, **settings}
    if says is None:
        assert gb.infer(GOOD, **settings)
        return
    with pytest.raises(GraphbamError, match=says):
        gb.infer(GOOD, **settings)


def test_a_refused_permission_is_explained(tmp_path, monkeypatch):
    """The same as the case above, for those who test as root."""
    (tmp_path / "t.csv").write_bytes(good_csv())
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda path: (_ for _ in ()).throw(PermissionError(13, "no")))
    with pytest.raises(TableError, match="may not be read"):
        gb.infer(tmp_path / "t.csv", weights=WEIGHTS)


def test_knowledge_about_a_column_that_was_left_out_says_so():
    frame = pd.DataFrame(GOOD, columns=list("abc")).assign(d=[np.nan] * 29 + [1.0])
    with pytest.raises(KnowledgeError, match="'d', which was left out"):
        gb.infer(frame, weights=WEIGHTS, forbidden=["a -- d"])


@each(("encode", "tiers"), [(True, [["id"], ["a"]]), (False, [["id"], ["a"]]), (True, [["code"], ["a"]])])
def test_knowledge_about_row_labels_says_so(encode, tiers):
    frame = pd.DataFrame(GOOD, columns=list("abc"))
    frame.insert(0, "id", [f"row {k}" for k in range(len(frame))])
    frame = frame.assign(code=[f"x{k}" for k in range(len(frame))]) if encode else frame
    with pytest.raises(KnowledgeError, match=f"'{tiers[0][0]}', which was left out of the table.*row labels"):
        gb.infer(frame, weights=WEIGHTS, encode=encode, tiers=tiers)


def test_a_failed_call_leaves_no_file(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(GraphbamError):
        gb.infer(np.zeros((3, 3)), weights=WEIGHTS).save(target)
    assert not list(tmp_path.iterdir())


WORDS = [
    "1", "2.5", "-3e5", "1e308", "1e-320", "inf", "NA", "?", "", "  ", "abc", "x y", '"q"', '"a,b"', '"a\nb"', '"', "'",
    "True", "2020-01-01", "12:30", "1,5", "#", "é", "表", "\x07", "1_000", "٣", "½",
]  # fmt: skip


def any_text(seed):
    """Bytes of a table of odd words: delimiters, line ends and encodings mixed freely, some of them cut off."""
    rng = random.Random(seed)
    words = rng.sample(WORDS, rng.randint(1, len(WORDS))) if seed % 2 else WORDS[:4] + rng.sample(WORDS, 2)
    width, sep = rng.randint(2, 4), rng.choice([",", ";", "\t", "|", " ", ", "])
    rows = [[rng.choice(words) for _ in range(width)] for _ in range(rng.randint(1, 9))]
    text = rng.choice(["\n", "\r\n", "\r"]).join(sep.join(row) for row in [["a", "b", "c", "d"][:width], *rows])
    raw = text.encode(rng.choice(["utf-8", "utf-16", "cp1252"]), errors="replace")
    return raw[: rng.randint(0, len(raw))] if seed % 5 == 0 else raw


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seeds", quick_and_long([range(40)], [range(40, 300)]), ids=str)
def test_any_text_is_read_or_refused_in_one_line(seeds):
    for seed in seeds:
        (answer,) = gb.infer_many([io.BytesIO(any_text(seed))], weights=WEIGHTS, encode=seed % 3 == 0)
        if isinstance(answer, Failure):
            assert "\n" not in answer.message, seed
        else:
            assert np.isfinite(answer.probabilities).all(), seed
