"""Reading tables: every source gives the same numbers, and columns become numbers by stated rules."""

from __future__ import annotations

import io
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from cases import SEEDS, each
from graphbam.errors import TableError
from graphbam.tables import formats
from graphbam.tables.columns import code_column, order_levels
from graphbam.tables.read import find_tables, read_table, unique_names
from graphbam.tables.textfile import choose_delimiter

X = np.random.default_rng(0).normal(size=(12, 3)).round(6)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


class FakePolars:
    """Just what graphbam uses of polars."""

    columns = ("a", "b", "c")

    def get_column(self, name):
        return SimpleNamespace(to_numpy=lambda: FRAME[name].to_numpy())


class FakeLazy:
    def lazy(self):
        return self

    def collect(self):
        return FakePolars()


class FakeArrow:
    def to_pandas(self):
        return FRAME


def sparse():
    return pytest.importorskip("scipy.sparse").dok_array(X)


def anndata():
    return SimpleNamespace(X=SimpleNamespace(toarray=lambda: X), var_names=["a", "b", "c"])


SOURCES = {
    "pandas": lambda: FRAME,
    "pandas with an index": lambda: FRAME.set_axis(range(5, 17)),
    "pandas nullable": lambda: FRAME.convert_dtypes(),
    "pandas of objects": lambda: FRAME.astype(object),
    "pandas of text": lambda: FRAME.astype(str),
    "polars": FakePolars,
    "polars, lazy": FakeLazy,
    "arrow": FakeArrow,
    "AnnData": anndata,
    "mapping": lambda: {name: FRAME[name].tolist() for name in FRAME},
    "records": lambda: FRAME.to_dict("records"),
    "numpy": lambda: X,
    "lists": lambda: X.tolist(),
    "torch": lambda: torch.tensor(X, requires_grad=True),
    "sparse": sparse,
    "record array": lambda: FRAME.to_records(index=False),
    "open text file": lambda: io.StringIO(FRAME.to_csv(index=False)),
    "open binary file": lambda: io.BytesIO(FRAME.to_csv(index=False).encode()),
}


@each("make", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_table(make):
    table = read_table(make())
    assert np.array_equal(table.x_md, X)
    assert table.names in (("a", "b", "c"), ("x0", "x1", "x2"))
    assert not table.changes


@pytest.fixture
def polars():
    return pytest.importorskip("polars")


def test_polars_frames_give_the_same_table(polars):
    frame = polars.DataFrame({name: FRAME[name].tolist() for name in FRAME})
    for form in (frame, frame.lazy(), frame.to_arrow(), frame.to_pandas()):
        assert np.array_equal(read_table(form).x_md, X)
        assert read_table(form).names == ("a", "b", "c")


def test_polars_columns_are_coded_by_the_same_rules(polars):
    columns = {
        "integers": ([1, None, 3], [1, np.nan, 3]),
        "small floats": (polars.Series([1.5, None, 3], dtype=polars.Float32), [1.5, np.nan, 3]),
        "decimals": ([Decimal("1.25"), None, Decimal(3)], [1.25, np.nan, 3]),
        "booleans": ([True, False, None], [1, 0, np.nan]),
        "text": (["x", "y", "x"], [0, 1, 0]),
        "categories": (polars.Series(["x", "y", None], dtype=polars.Categorical), [0, 1, np.nan]),
        "levels": (polars.Series(["lo", "hi", None], dtype=polars.Enum(["lo", "mid", "hi"])), [0, 2, np.nan]),
        "dates": ([date(2024, 1, 1), date(2024, 1, 3), None], [0, 2, np.nan]),
        "times": ([datetime(2024, 1, 1), datetime(2024, 1, 1, 12), None], [0, 0.5, np.nan]),
        "durations": ([timedelta(days=1), None, timedelta(days=3)], [0, np.nan, 2]),
    }
    table = read_table(polars.DataFrame({name: values for name, (values, _) in columns.items()}), encode=True)
    for name, x_m in zip(table.names, table.x_md.T, strict=True):
        assert np.array_equal(x_m, columns[name][1], equal_nan=True), name


@pytest.mark.parametrize("cell", [[1, 2], {"x": 1, "y": 2}], ids=["list", "struct"])
def test_nested_polars_columns_are_refused_by_name(polars, cell):
    with pytest.raises(TableError, match="column 'deep'"):
        read_table(polars.DataFrame({"deep": [cell, cell, cell], "b": [1, 2, 3]}))


def test_polars_parquet_is_read(polars, tmp_path):
    polars.DataFrame({name: FRAME[name].tolist() for name in FRAME}).write_parquet(tmp_path / "t.parquet")
    assert np.array_equal(read_table(tmp_path / "t.parquet").x_md, X)


@each("form", ["dense", "csr_matrix", "csc_array"])
def test_anndata_gives_the_same_table(form):
    package, sparse_package = pytest.importorskip("anndata"), pytest.importorskip("scipy.sparse")
    matrix = X if form == "dense" else getattr(sparse_package, form)(X)
    cells = package.AnnData(matrix, var=pd.DataFrame(index=["a", "b", "c"]))
    table = read_table(cells)
    assert table.names == ("a", "b", "c")
    assert np.array_equal(table.x_md, X)
    assert np.array_equal(read_table(cells[3:, ["c", "a"]]).x_md, X[3:, [2, 0]])


def test_anndata_without_a_matrix_is_refused():
    package = pytest.importorskip("anndata")
    with pytest.raises(TableError, match="holds no matrix"):
        read_table(package.AnnData(obs=pd.DataFrame(index=["u", "v"])))


def test_the_source_is_left_alone():
    frame = FRAME.copy()
    read_table(frame, drop="a").x_md[:] = 0
    pd.testing.assert_frame_equal(frame, FRAME)


@pytest.mark.parametrize("seed", SEEDS)
@each("sep", [",", ";", "\t", "|", " "])
def test_any_delimiter_and_missing_cells_come_back(seed, sep, tmp_path):
    x_md = np.random.default_rng(seed).normal(size=(20, 4))
    x_md[3, 1] = x_md[0, 0] = np.nan
    path = tmp_path / "t.txt"
    pd.DataFrame(x_md, columns=list("abcd")).to_csv(path, index=False, sep=sep, na_rep="NA")
    assert np.array_equal(read_table(path).x_md, x_md, equal_nan=True)


def test_numbers_keep_every_digit(tmp_path):
    x_md = np.random.default_rng(1).normal(size=(200, 3)) * 10.0 ** np.arange(-9, 9, 6)
    pd.DataFrame(x_md).to_csv(tmp_path / "t.csv", index=False)
    assert np.allclose(read_table(tmp_path / "t.csv").x_md, x_md, rtol=1e-15, atol=0)


def test_delimiter_is_the_one_that_makes_numbers():
    assert choose_delimiter(["1,5;2,5", "1,7;2,9"]) == ";"
    assert choose_delimiter(["a b,c", "1,2", "3,4"]) == ","
    assert choose_delimiter(["name\tcity, land", "1\t2"]) == "\t"


def test_a_first_row_of_counted_columns_is_a_header(tmp_path):
    pd.DataFrame(X).to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv")
    assert table.names == ("0", "1", "2")
    assert len(table.x_md) == len(X)


def test_a_first_row_with_a_gap_is_data(tmp_path):
    (tmp_path / "t.csv").write_text("1.5,NA,2\n3,4,6\n5,5,5\n")
    assert read_table(tmp_path / "t.csv").x_md.shape == (3, 3)


@each("end", [",", ", ", ',""'])
def test_a_delimiter_behind_each_row_moves_no_values(end, tmp_path):
    lines = [f"{age},{dose},{cure}{end}" for age, dose, cure in [(20, 0, 1), (30, 2, 0), (40, 1, 1)]]
    (tmp_path / "t.csv").write_text("\n".join(["age,dose,cure", *lines]))
    table = read_table(tmp_path / "t.csv")
    assert (table.names, table.x_md.tolist()) == (("age", "dose", "cure"), [[20, 0, 1], [30, 2, 0], [40, 1, 1]])
    assert table.changes == ("every row ends in a delimiter, and the header does not: nothing was read behind it",)


def test_row_labels_in_front_still_have_no_name(tmp_path):
    (tmp_path / "t.csv").write_text("age,dose\nr1,20,\nr2,30,1\nr3,40,2\n")  # one cell too many, not always empty
    table = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(table.x_md, [[20, np.nan], [30, 1], [40, 2]])
    assert "row labels" in table.changes[0]


def test_an_index_with_a_name_is_told_of():
    frame = FRAME.assign(age=range(12))
    table = read_table(frame.set_index("age"))
    assert table.names == ("a", "b", "c")
    assert table.changes == ("'age' is the index and no column: left out (reset_index makes a column of it)",)
    assert read_table(frame.set_index(["age", "a"])).changes[0].startswith("'age', 'a' are the index and no columns")
    assert read_table(frame.set_axis(list("abcdefghijkl"))).changes == ()


def test_levels_go_by_names_that_are_numbers():
    frame = pd.DataFrame({0: ["lo", "hi"] * 6, 1: range(12)})
    assert read_table(frame, encode={0: ["lo", "hi"]}).x_md[:2, 0].tolist() == [0, 1]
    with pytest.raises(TableError, match="encode names the column '2', which the table does not have"):
        read_table(frame, encode={2: ["lo", "hi"]})


@each("label", [None, np.nan, pd.NA, pd.NaT])
def test_missing_labels_get_names(label):
    frame = FRAME.set_axis(pd.Index(["a", label, "c"], dtype=object), axis=1)
    assert read_table(frame).names == ("a", "column_2", "c")


class FakeDask:
    columns = ("a", "b", "c")

    def compute(self):
        return FRAME

    def __array__(self, *_, **__):
        return X


class FakeSpark:
    columns = ("a", "b", "c")

    def __array__(self, *_, **__):
        return X


def test_tables_in_pieces_keep_their_names_and_unknown_ones_are_refused():
    table = read_table(FakeDask())
    assert table.names == ("a", "b", "c")
    assert np.array_equal(table.x_md, X)
    with pytest.raises(TableError, match=r"a FakeSpark is not known as a table. Turn it into a pandas DataFrame first"):
        read_table(FakeSpark())


def test_names_become_unique_without_clashing():
    names, changes = unique_names(["a", "a_2", "a", "a", None, float("nan"), ("x", "y"), 3])
    assert names == ("a", "a_2", "a_3", "a_4", "column_5", "column_6", "x_y", "3")
    assert len(changes) == 3


def test_folders_list_their_tables(tmp_path):
    for name in ("b.csv", "a.tsv.gz", "notes.md", ".hidden.csv"):
        (tmp_path / name).write_text("x")
    assert [p.name for p in find_tables(tmp_path)] == ["a.tsv.gz", "b.csv"]
    with pytest.raises(TableError, match="is not a folder"):
        find_tables(tmp_path / "b.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="no table was found"):
        find_tables(tmp_path / "empty")


SPELLED = {
    "prices": (["$0.56", "$ 1,200", "-$3", None], [0.56, 1200, -3, np.nan]),
    "euros behind": (["0,56 €", "1.200 €", "3 €"], [0.56, 1200, 3]),
    "decimal commas": (["1,5", "0,250", "7"], [1.5, 0.25, 7]),
    "thousands": (["1,234", "12,345,678", "7"], [1234, 12345678, 7]),
    "thousands and fractions": (["1,234.5", "0.25"], [1234.5, 0.25]),
    "spaces between thousands": (["1 234", "12\u202f345", "7"], [1234, 12345, 7]),
    "apostrophes between thousands": (["1'234.5", "7"], [1234.5, 7]),
    "per cent": (["12 %", "3.5%", "−4%"], [12, 3.5, -4]),
    "a unit": (["18.3 kg", "1,200 kg", None, "−7kg"], [18.3, 1200, np.nan, -7]),
    "a unit without a space": (["5mm", "7.25mm"], [5, 7.25]),
    "a ratio of units": (["5.5 mg/dL", "102 mg/dL"], [5.5, 102]),
    "a squared unit": (["21.5 kg/m2", "30 kg/m2"], [21.5, 30]),
    "degrees": (["21.5 °C", "-3°C"], [21.5, -3]),
    "a word": (["1 day", "2 days", "14 days"], [1, 2, 14]),
    "a unit that nobody knows": (["12 wobbles", "3.5 wobbles"], [12, 3.5]),
    "a unit and decimal commas": (["1,5 kg", "0,25 kg"], [1.5, 0.25]),
    "exponents": (["€1e3", "€2.5e-1"], [1000, 0.25]),
}


@each("encode", [False, True])
@each(("cells", "expected"), SPELLED.values(), ids=SPELLED)
def test_numbers_are_read_as_they_are_spelled(cells, expected, encode):
    """With `encode` too: ranks by frequency would destroy them."""
    coded = code_column(pd.Series(cells, dtype=object), "v", encode)
    assert np.array_equal(coded.values, expected, equal_nan=True)
    assert "read as the numbers it spells" in coded.note


@each("cells", [
    ["$5", "€7"], ["$5", "7"], ["5 kg", "900 g"], ["5 kg", "7"], ["12.05.2020", "13.05.2020"], ["1,5", "1.5"],
    ["10:30", "11:45"], ["1,23,456", "7"], ["$", "$5"], ["$5$", "$6$"], ["18-25", "26-35"], ["1.2.3", "1.2.4"],
    ["%", "5%"], ["12a", "13b"], ["12a", "13a"], ["A12", "A13"], ["101 B", "102 B"], ["1234XYZ", "1235XYZ"],
    ["10-20 kg", "20-30 kg"], ["1.2 beta", "1.3 beta"], ["1.2.3 kg", "1.2.4 kg"], ["5 May", "6 May"],
    ["5 May 2020", "6 May 2020"], ["9 am", "10 am"], ["$5 kg", "$7 kg"], ["12 Main Street", "14 Main Street"],
    ["1/2 l", "1/4 l"], ["3d5f", "4d6f"],
])  # fmt: skip
def test_what_does_not_follow_one_rule_stays_text(cells):
    assert code_column(pd.Series(cells), "v").values is None


@each("encode", [False, True])
def test_numbers_in_several_units_are_refused_with_two_of_them(encode):
    frame = FRAME.assign(d=["5 kg", "900 g", "1 kg", "7 kg"] * 3)
    with pytest.raises(TableError, match=r"'d' holds numbers in more than one unit \('5 kg' beside '900 g'\): write"):
        read_table(frame, encode=encode)


def test_row_labels_that_look_like_numbers_in_several_units_are_warned_about():
    frame = pd.DataFrame({"d": [f"{k + 1} {'kg' if k % 2 else 'g'}" for k in range(12)]}).join(FRAME)
    table = read_table(frame)
    assert "d" not in table.names
    assert table.warnings[0].startswith(
        "column 'd' was left out as row labels, and holds numbers in more than one unit ('1 g' beside '2 kg')"
    )


def test_spoilt_numbers_are_to_be_corrected_not_coded():
    frame = FRAME.assign(d=[1.0] * 10 + ["oops", "eek"])
    with pytest.raises(TableError, match=r"text in 2 of 12 rows.*Correct those cells.*drop=\['d'\]") as caught:
        read_table(frame)
    assert "encode" not in str(caught.value)
    with pytest.raises(TableError, match=r"In column 'd': correct those cells.*Or use encode=True for text"):
        read_table(frame.assign(city=["Rome", "Oslo"] * 6))


# ── a table on its side ───────────────────────────────────────────────────────────────────────────────────

TALL = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 5)), columns=["age", "bmi", "bp", "glucose", "sex"])
ON_ITS_SIDE = {
    "a transposed frame": lambda: TALL.T,
    "with row names": lambda: TALL.set_axis([f"p{k}" for k in range(30)]).T,
    "a file with row names": lambda: io.StringIO(TALL.set_axis([f"p{k}" for k in range(30)]).T.to_csv()),
    "a file with a column of names": lambda: io.StringIO(TALL.T.rename_axis("variable").to_csv()),
    "no row names": lambda: TALL.set_axis([f"Patient {k}" for k in range(30)]).T.reset_index(drop=True),
}
UPRIGHT = {
    "a frame": lambda: TALL,
    "few rows": lambda: TALL.head(4),
    "few rows with names": lambda: TALL.head(4).set_axis(["p1", "p2", "p3", "p4"]),
    "a wide array": lambda: np.zeros((5, 30)),
    "genes": lambda: pd.DataFrame(np.zeros((3, 30)), ["p1", "p2", "p3"], [f"gene{k}" for k in range(30)]),
    "genes without row names": lambda: pd.DataFrame(np.zeros((3, 30)), columns=[f"gene{k}" for k in range(30)]),
}


@each("make", ON_ITS_SIDE.values(), ids=ON_ITS_SIDE)
def test_a_table_on_its_side_is_suspected(make):
    (warning,) = read_table(make()).warnings
    assert "may lie on its side: 5 rows but 30 columns" in warning
    assert "transpose it" in warning


@each("make", UPRIGHT.values(), ids=UPRIGHT)
def test_other_tables_are_not(make):
    assert read_table(make()).warnings == ()


# ── columns ───────────────────────────────────────────────────────────────────────────────────────────────

CODED = {
    "two levels": (["no", "yes", "no"], [0, 1, 0]),
    "by frequency": (["b", "c", "c", "a", "c", "b"], [1, 0, 0, 2, 0, 1]),
    "by leading number": (["100+", "18–25", "26–99", "100+"], [2, 0, 1, 2]),
    "missing words": (["x", "NA", "y", "x"], [0, np.nan, 1, 0]),
    "dates": (["2024-01-01", "2024-01-03", None, "2024-01-02T12:00"], [0, 2, np.nan, 1.5]),
    "unordered categories": (pd.Categorical(["u", "v", "v", "w"]), [1, 0, 0, 2]),
    "ordered categories": (pd.Categorical(["hi", "lo", None], ["lo", "mid", "hi"], ordered=True), [2, 0, np.nan]),
    "categories of numbers": (pd.Categorical([3.5, 1.0, None]), [3.5, 1.0, np.nan]),
    "durations": (pd.to_timedelta(["1 day", "3 days", None]), [0, 2, np.nan]),
    "durations of Python": (pd.Series([timedelta(days=1), np.timedelta64(3, "D"), None], dtype=object), [0, 2, np.nan]),
    "time zones": (pd.to_datetime(["2024-01-01", "2024-01-02"]).tz_localize("Europe/Rome"), [0, 1]),
    "months": (pd.PeriodIndex(["2024-01", "2024-03"], freq="M"), [0, 60]),
    "booleans with gaps": (pd.array([True, None, False], dtype="boolean"), [1, np.nan, 0]),
    "integers with gaps": (pd.array([1, None, 3], dtype="Int64"), [1, np.nan, 3]),
    "mixed numbers and number-like text": ([1, "2.5", None, " 3 "], [1, 2.5, np.nan, 3]),
}


@each(("values", "expected"), CODED.values(), ids=CODED)
def test_columns_are_coded_by_stated_rules(values, expected):
    coded = code_column(pd.Series(values), "v", encode=True)
    assert np.array_equal(coded.values, np.array(expected, dtype=float), equal_nan=True)


@each("values", [c[0] for c in list(CODED.values())[:4]])
def test_codes_do_not_depend_on_row_order(values):
    forward = code_column(pd.Series(values), "v", encode=True).values
    backward = code_column(pd.Series(values[::-1]), "v", encode=True).values
    assert np.array_equal(forward, backward[::-1], equal_nan=True)


@each("row", [0, 7])
def test_a_row_of_units_or_headings_is_named_as_one(row):
    frame = pd.DataFrame({"time": range(12), "temp": range(1, 13), "site": list("ab") * 6}).astype(object)
    frame.loc[row] = ["s", "°C", "a"]
    says = rf"'temp' holds text in 1 of 12 rows.*Take row {row + 1} out if it holds headings or units, or correct"
    for one in (frame, frame[["time", "temp"]]):
        with pytest.raises(TableError, match=says):
            read_table(one)
    frame.loc[3, "time"] = "?!"
    with pytest.raises(TableError, match="correct those cells"):
        read_table(frame)


def test_levels_can_be_given_in_order():
    frame = FRAME.assign(dose=["mid", "low", "high"] * 4)
    table = read_table(frame, encode={"dose": ["low", "mid", "high"]})
    assert table.x_md[:3, 3].tolist() == [1, 0, 2]
    with pytest.raises(TableError, match="level 'high', which encode does not list"):
        read_table(frame, encode={"dose": ["low", "mid"]})


def test_coding_is_reported_and_refused_without_leave():
    frame = FRAME.assign(city=["Rome", "Oslo", "Rome", "Bern"] * 3)
    with pytest.raises(TableError, match=r"column 'city' holds text.*encode=True.*drop=\['city'\]"):
        read_table(frame)
    assert "'Rome' → 0" in read_table(frame, encode=True).changes[0]
    assert read_table(frame, drop="city").names == ("a", "b", "c")


def test_text_among_numbers_is_refused_even_with_encode():
    frame = FRAME.assign(d=[1.0] * 11 + ["oops"])
    with pytest.raises(TableError, match="empty those cells if they stand for missing"):
        read_table(frame, encode=True)


def test_one_is_not_many():
    assert read_table(FRAME.head(1)).source == "a DataFrame with 1 row and 3 columns"
    with pytest.raises(TableError, match="and 1 more column like that"):
        read_table(FRAME.assign(**{name: ["u", "v"] * 6 for name in "defg"}))
    assert code_column(pd.Series(["u"]), "v").note == "text in the only row (first: row 1, 'u')"


def test_identifiers_are_left_out_when_coding():
    table = read_table(FRAME.assign(key=[f"k{i}" for i in range(12)]), encode=True)
    assert table.names == ("a", "b", "c")
    assert "row labels" in table.changes[0]


def test_level_order_is_a_function_of_the_counts():
    assert order_levels(["b", "a", "c"] * 2)[0] == ["a", "b", "c"]


def test_packed_tables_may_not_grow_without_end(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": np.zeros(5000), "b": 1.0})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    read_table(tmp_path / "t.parquet")
    monkeypatch.setattr(formats, "LARGEST_UNPACKED", 40_000)
    assert (tmp_path / "t.parquet").stat().st_size < 40_000
    with pytest.raises(TableError, match="has 5000 rows and 2 columns, more than fit"):
        read_table(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"t\.csv\.gz unpacks to more than 0 MiB"):
        formats.unpack((tmp_path / "t.csv.gz").read_bytes(), "t.csv.gz", limit=20_000)


@pytest.mark.parametrize("dtype", [float, int, str])
def test_masked_cells_are_missing(dtype):
    x_md = np.ma.masked_equal(np.array([[1, 5], [9, 6], [3, 7]], dtype=dtype), dtype(9))
    np.testing.assert_array_equal(read_table(x_md).x_md, [[1, 5], [np.nan, 6], [3, 7]])


@each(("labels", "is_told"), [
    ([f"P{k:03d}" for k in range(60) for _ in range(6)], True),
    ([f"P{k:03d}" for _ in range(6) for k in range(60)], True),
    ([f"P{k}" for k in range(360)], False),  # each has one row
    ([f"P{min(k, 340)}" for k in range(360)], False),  # and so do most
    ([f"district {k % 24}" for k in range(3600)], False),  # a category
    ([f"{k % 60} kg" for k in range(360)], False),
    ([f"2024-{k % 12 + 1:02d}-{k % 28 + 1:02d}" for k in range(360)], False),
    (list(range(60)) * 6, False),
])  # fmt: skip
def test_rows_of_one_individual_are_told_of(labels, is_told):
    """Sixty patients on six visits each: of pairs that had nothing to do with each other, 29 in 100 were linked."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(len(labels), 3)), columns=list("abc"))
    for place in (0, 3):
        frame["visit of"] = labels
        told = frame[[*"abc"[:place], "visit of", *"abc"[place:]]]
        for settings in ({"drop": "visit of"}, {"encode": True}):
            said = [one for one in read_table(told, **settings).warnings if "several rows share a value" in one]
            assert bool(said) == is_told
            assert all("column 'visit of' (60 values)" in one for one in said)
