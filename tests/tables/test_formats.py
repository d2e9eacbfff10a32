"""Files of every format give the same table, packed or not; parts go by name, and nothing grows without end."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pandas as pd
import pytest

from cases import each
from graphbam.errors import TableError
from graphbam.inference.reading import read_source
from graphbam.inference.settings import InferConfig
from graphbam.tables import formats
from graphbam.tables.read import find_tables, read_table

X = np.random.default_rng(0).normal(size=(12, 3)).round(6)
FRAME = pd.DataFrame(X, columns=["age", "dose", "effect"])


def write(method, **options):
    """A frame as the bytes that a method of pandas writes."""
    buffer = io.BytesIO()
    getattr(FRAME, method)(buffer, **options)
    return buffer.getvalue()


def pack(files, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def make_book(title_rows=0, **sheets):
    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer) as book:
        for name, frame in sheets.items():
            frame.to_excel(book, sheet_name=name, index=False, startrow=title_rows)
            if title_rows:
                book.sheets[name]["A1"] = "Trial of 2026, all sites"
    return buffer.getvalue()


CSV = FRAME.to_csv(index=False).encode()
NOTES = pd.DataFrame({"note": ["made by hand"]})
FILES = {
    "t.csv": CSV,
    "t.csv.gz": gzip.compress(CSV),
    "t.csv.bz2": bz2.compress(CSV),
    "t.tsv.xz": lzma.compress(FRAME.to_csv(index=False, sep="\t").encode()),
    "t.zip": pack({"data/t.csv": CSV, "readme.md": b"x", "__MACOSX/t.csv": b"junk", ".hidden.csv": b"junk"}),
    "packed twice.zip": pack({"t.csv.gz": gzip.compress(CSV)}),
    "t.parquet": write("to_parquet"),
    "t.feather": write("to_feather"),
    "t.dta": write("to_stata", write_index=False),
    "old.dta": write("to_stata", write_index=False, version=114),
    "t.xlsx": make_book(Sheet1=FRAME),
    "notes beside.xlsx": make_book(Data=FRAME, Notes=NOTES),
    "titled.xlsx": make_book(title_rows=2, Data=FRAME),
    "in an archive.zip": pack({"t.xlsx": make_book(Sheet1=FRAME)}),
    "wrong name.csv": write("to_feather"),
}


@each("name", FILES)
def test_every_format_gives_the_same_table(tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name])
    table = read_table(tmp_path / name)
    assert table.names == tuple(FRAME.columns)
    np.testing.assert_allclose(table.x_md, X, rtol=1e-12)
    stream = io.BytesIO(FILES[name])
    stream.name = name
    assert read_table(stream).names == table.names


def test_titles_above_a_table_are_told(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(FILES["titled.xlsx"])
    assert any("holds a title" in change for change in read_table(tmp_path / "t.xlsx").changes)


def test_parts_go_by_name(tmp_path):
    (tmp_path / "book.xlsx").write_bytes(make_book(First=FRAME, Second=FRAME * 2))
    (tmp_path / "many.zip").write_bytes(pack({"a.csv": CSV, "b.csv": (FRAME * 3).to_csv(index=False)}))
    np.testing.assert_allclose(read_table(f"{tmp_path}/book.xlsx::Second").x_md, 2 * X)
    np.testing.assert_allclose(read_table(f"{tmp_path}/many.zip::b.csv").x_md, 3 * X)
    assert "read sheet 'First' of 2" in read_table(f"{tmp_path}/book.xlsx::First").changes
    with pytest.raises(TableError, match="has no sheet 'Third' with a table; it has 'First', 'Second'"):
        read_table(f"{tmp_path}/book.xlsx::Third")
    (tmp_path / "t.csv").write_bytes(CSV)
    with pytest.raises(TableError, match="has no parts, and 'x' was asked for"):
        read_table(f"{tmp_path}/t.csv::x")
    (tmp_path / "odd::name.csv").write_bytes(CSV)
    assert read_table(tmp_path / "odd::name.csv").names == tuple(FRAME.columns)


@each("name", ["t.csv.bz2", "t.tsv.xz", "t.zip", "t.xlsx", "t.feather"])
def test_nothing_grows_without_end(monkeypatch, name):
    monkeypatch.setattr(formats, "LARGEST_UNPACKED", 100)
    with pytest.raises(TableError, match="unpacks to more than"):
        formats.parse_file(FILES[name], name)


def test_a_sealed_archive_says_so(tmp_path):
    sealed = bytearray(FILES["t.zip"])
    for place in (sealed.index(b"PK\x03\x04") + 6, sealed.index(b"PK\x01\x02") + 8):
        sealed[place] |= 1  # says that it is encrypted
    with pytest.raises(TableError, match=r"cannot be opened: .*password"):
        formats.parse_file(bytes(sealed), "t.zip")


def test_folders_list_tables_of_every_format(tmp_path):
    for name in (*FILES, "notes.md", ".hidden.xlsx"):
        (tmp_path / name).write_bytes(b"x")
    assert {path.name for path in find_tables(tmp_path)} == set(FILES)


@each("name", ["t.parquet", "t.feather", "t.dta", "t.xlsx"])
def test_a_file_is_not_called_damaged_where_memory_runs_out(monkeypatch, tmp_path, name):
    def exhaust(*_, **__):
        raise MemoryError

    for place in ("pandas.read_excel", "pandas.read_stata", "pyarrow.parquet.ParquetFile", "pyarrow.ipc.open_file"):
        monkeypatch.setattr(place, exhaust)
    (tmp_path / name).write_bytes(FILES[name])
    with pytest.raises(TableError, match=r"does not fit into memory\. Pass fewer rows or columns"):
        read_source(tmp_path / name, InferConfig())


def test_missing_packages_are_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"needs openpyxl\. Run `pip install openpyxl`"):
        formats.parse_file(FILES["t.xlsx"], "t.xlsx")
