"""Very long tables: the same rows however they came, the promises of the reader kept, memory that does not grow."""

from __future__ import annotations

import bz2
import gzip
import io
import tracemalloc

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import graphbam as gb
from cases import each
from graphbam.errors import TableError
from graphbam.tables import formats, read
from graphbam.tables.config import PrepareConfig
from graphbam.tables.interventions import read_experiment
from graphbam.tables.limit import ALL, RowLimit
from graphbam.tables.prepare import prepare
from graphbam.tables.read import load_frame, read_table
from standins import PartialCorrelation

LIMIT = RowLimit(50, seed=3)
N_ROWS = 400


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch):
    """Short files are read as long ones are."""
    monkeypatch.setattr(read, "LONG", 0)
    monkeypatch.setattr(formats, "ROWS_AT_ONCE", 70)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    a = rng.normal(size=N_ROWS).round(4)
    return pd.DataFrame({"a": a, "b": (a + rng.normal(size=N_ROWS)).round(4), "c": rng.integers(0, 9, N_ROWS)})


@each("n_rows, most", [(51, 50), (1000, 50), (99, 7)])
def test_one_row_of_each_stretch_is_drawn_by_the_seed(n_rows, most):
    rows = RowLimit(most, seed=1).choose(n_rows)
    edges = np.arange(most + 1) * n_rows // most
    assert ((edges[:-1] <= rows) & (rows < edges[1:])).all()
    assert np.array_equal(rows, RowLimit(most, seed=1).choose(n_rows))
    if n_rows > 2 * most:
        assert not np.array_equal(rows, RowLimit(most, seed=2).choose(n_rows))


def test_every_row_is_as_likely_as_any_other():
    counts = sum(np.bincount(RowLimit(10, seed).choose(40), minlength=40) for seed in range(2000))
    assert np.abs(counts / 2000 - 0.25).max() < 0.05


def test_short_tables_are_read_whole(frame):
    assert RowLimit(N_ROWS).choose(N_ROWS) is None
    assert load_frame(frame, RowLimit(N_ROWS)).frame is frame
    assert ALL.choose(10**9) is None


# ── however it came ──────────────────────────────────────────────────────────────────────────────────────


def write_all(frame, folder):
    """The same table in every way that it may come."""
    frame.to_csv(folder / "t.csv", index=False)
    content = (folder / "t.csv").read_bytes()
    (folder / "t.csv.gz").write_bytes(gzip.compress(content))
    (folder / "t.csv.bz2").write_bytes(bz2.compress(content))
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "t.parquet", row_group_size=90)
    frame.to_feather(folder / "t.feather")
    frame.to_excel(folder / "t.xlsx", index=False)
    np.save(folder / "t.npy", frame.to_numpy(float))
    x_md = frame.to_numpy(float)
    sparse = scipy.sparse.coo_array(x_md)
    cells = anndata.AnnData(scipy.sparse.csr_matrix(x_md), var=pd.DataFrame(index=list(frame.columns)))
    return [frame, x_md, dict(frame), sparse, cells, io.BytesIO(content), *sorted(folder.iterdir())]


def test_the_same_rows_however_it_came(frame, tmp_path):
    rows = LIMIT.choose(N_ROWS)
    for one in write_all(frame, tmp_path):
        table = read_table(one, limit=LIMIT)
        np.testing.assert_allclose(table.x_md, frame.to_numpy()[rows], rtol=1e-12)
        assert (table.shape, table.n_rows) == ((50, 3), N_ROWS)
        assert any(change.startswith("50 of 400 rows read, one of each") for change in table.changes)


def test_answers_are_the_same_too(frame, tmp_path):
    """`infer` reads twenty draws of a long table; that of the rows alone differs in nothing but what is told."""
    settings = {"weights": PartialCorrelation(), "colliders": None, "max_rows": 10, "seed": 3}
    rows = RowLimit(200, seed=3).choose(N_ROWS)
    alone = gb.infer(frame.iloc[rows].reset_index(drop=True), **settings)
    for one in write_all(frame, tmp_path):
        result = gb.infer(one, **settings)
        np.testing.assert_allclose(result.probabilities, alone.probabilities, atol=1e-9)
        assert result.provenance["n_rows"] == N_ROWS
        assert any("10 of 400 rows used (2%)" in warning for warning in result.warnings)
    assert alone.provenance["n_rows"] == 200


# ── what the reader promises ─────────────────────────────────────────────────────────────────────────────


def lines_of(frame, **options):
    return frame.to_csv(index=False, **options).splitlines(keepends=True)


def quoted(frame):
    names = ['"first, with\na break"', "b", "c"]
    rows = [f'"{a}",{b},"{c}"\n' for a, b, c in frame.itertuples(index=False)]
    return [",".join(names) + "\n", *rows]


def coded(frame):
    frame = frame.assign(b=frame["b"].where(np.arange(N_ROWS) % 9 > 0, -999), c=frame["c"].map("k{}".format))
    return lines_of(frame.assign(d=pd.date_range("2026-01-01", periods=N_ROWS)), na_rep="n/a")


FILES = {
    "plain": lines_of,
    "quotes and breaks": quoted,
    "decimal commas": lambda frame: lines_of(frame, sep=";", decimal=","),
    "spaces": lambda frame: ["a  b  c\n", *(f" {a}   {b} {c}\n" for a, b, c in frame.itertuples(index=False))],
    "no header": lambda frame: ["", *lines_of(frame, header=False)],
    "comments": lambda frame: ["# made by hand\n# a,b,c\n", *lines_of(frame, header=False)],
    "row labels": lambda frame: lines_of(frame.set_axis([f"r{k}" for k in range(N_ROWS)]).reset_index(names="")),
    "text, codes and dates": coded,
    "dos": lambda frame: lines_of(frame, lineterminator="\r\n"),
    "latin": lambda frame: lines_of(frame.rename(columns={"a": "größe"})),
}


@each("kind", list(FILES))
def test_a_long_file_is_read_as_one_with_these_rows_alone(frame, kind, tmp_path):
    head, *body = FILES[kind](frame)
    encoding = "latin-1" if kind == "latin" else "utf-8"
    long, short = tmp_path / "long.csv", tmp_path / "short.csv"
    long.write_bytes("".join([head, *body]).encode(encoding))
    short.write_bytes("".join([head, *(body[row] for row in LIMIT.choose(N_ROWS))]).encode(encoding))
    encode = kind == "text, codes and dates"
    here, there = (read_table(path, encode=encode, limit=LIMIT) for path in (long, short))
    assert here.names == there.names
    np.testing.assert_array_equal(here.x_md, there.x_md)
    said = [change.replace("short.csv", "long.csv") for change in there.changes]
    assert [change for change in here.changes if "rows read" not in change] == said
    assert (here.n_rows, there.n_rows) == (N_ROWS, 50)


def test_rows_that_are_not_read_are_checked_for_their_length(frame, tmp_path):
    lines = lines_of(frame)
    lines[300] = "1,2\n"
    (tmp_path / "t.csv").write_text("".join(lines))
    with pytest.raises(TableError, match="line 301, has 2 cells where the header promises 3"):
        read_table(tmp_path / "t.csv", limit=LIMIT)


def test_rows_are_named_as_in_the_file(frame, tmp_path):
    rows = LIMIT.choose(N_ROWS)
    words = frame.assign(b=frame["b"].astype(object).where(np.arange(N_ROWS) != rows[20], "lots"))
    words.to_csv(tmp_path / "t.csv", index=False)
    for one in (tmp_path / "t.csv", words):
        with pytest.raises(TableError, match=rf"text in 1 of 50 rows \(first: row {rows[20] + 1}, 'lots'\)"):
            read_table(one, limit=LIMIT)
    table = read_table(frame.assign(a=frame["a"].where(np.arange(N_ROWS) != rows[30])), limit=LIMIT)
    with pytest.raises(TableError, match=rf"first: row {rows[30] + 1}, column 'a'"):
        prepare(table, PrepareConfig(missing="error"))


def test_what_is_packed_is_unpacked_within_limits(frame, tmp_path, monkeypatch):
    packed = gzip.compress("".join(lines_of(frame)).encode())
    (tmp_path / "half.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(TableError, match="damaged or incomplete gzip file"):
        read_table(tmp_path / "half.csv.gz", limit=LIMIT)
    (tmp_path / "t.csv.gz").write_bytes(packed)
    monkeypatch.setattr(formats, "LARGEST_UNPACKED", 1000)
    with pytest.raises(TableError, match="unpacks to more than"):
        read_table(tmp_path / "t.csv.gz", limit=LIMIT)


def test_what_was_set_stays_with_its_rows(frame, tmp_path):
    """By a column, by a mask, and by tables, which keep their shares of the limit."""
    rows = LIMIT.choose(N_ROWS)
    target = np.where(np.arange(N_ROWS) % 4 == 0, "b", "")
    mask = np.column_stack([np.zeros(N_ROWS), target == "b", np.zeros(N_ROWS)]).astype(int)
    frame.assign(set=target).to_parquet(tmp_path / "t.parquet")
    by_column = read_experiment(tmp_path / "t.parquet", "set", limit=LIMIT)
    by_mask = read_experiment(frame, mask, limit=LIMIT)
    for table in (by_column, by_mask):
        np.testing.assert_array_equal(table.set_md, mask[rows] == 1)
        np.testing.assert_array_equal(table.x_md, frame.to_numpy()[rows])
    tables = {"": frame[target == ""], "b": frame[target == "b"]}
    joined = read_experiment(None, tables, limit=LIMIT)
    assert (joined.n_rows, joined.set_md[:, 1].sum(), len(joined.x_md)) == (N_ROWS, 12, 49)
    with pytest.raises(TableError, match="has 399 rows, the table 400"):
        read_experiment(frame, mask[1:], limit=LIMIT)


def test_sparse_rows_that_are_not_read_are_never_opened(frame, monkeypatch):
    opened = []
    plain = scipy.sparse.csr_array.toarray
    monkeypatch.setattr(scipy.sparse.csr_array, "toarray", lambda self: opened.append(self.shape) or plain(self))
    read_table(scipy.sparse.csr_array(frame.to_numpy(float)), limit=LIMIT)
    assert opened == [(50, 3)]


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────


def measure(path):
    tracemalloc.start()
    load_frame(path, RowLimit(300))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@each("packing", ["", ".gz"])
def test_text_takes_no_more_memory_when_it_has_more_rows(tmp_path, packing):
    peaks = []
    for n_rows in (4000, 40_000):
        path = tmp_path / f"{n_rows}.csv{packing}"
        pd.DataFrame(np.random.default_rng(0).normal(size=(n_rows, 4))).to_csv(path, index=False)
        peaks.append(measure(path))
    assert peaks[1] < 1.1 * peaks[0] + 50_000


def test_parquet_is_let_go_piece_by_piece(tmp_path, monkeypatch):
    """Arrow counts its own bytes; they are looked at whenever a piece arrives."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain, held = pq.ParquetFile.iter_batches, []

    def watched(self, *args, **options):
        for batch in plain(self, *args, **options):
            held.append(pa.total_allocated_bytes())
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    monkeypatch.setattr(formats, "ROWS_AT_ONCE", 1000)
    x = np.random.default_rng(0).normal(size=(60_000, 8))
    pq.write_table(
        pa.table({f"x{k}": x[:, k] for k in range(8)}),
        tmp_path / "t.parquet",
        use_dictionary=False,
        data_page_size=2**14,
    )
    before = pa.total_allocated_bytes()
    frame = load_frame(tmp_path / "t.parquet", RowLimit(300)).frame
    np.testing.assert_array_equal(frame.to_numpy(), x[RowLimit(300).choose(len(x))])
    assert len(held) == 60
    assert max(held) - before < x.nbytes / 2
