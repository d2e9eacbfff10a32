"""A delimited text file → a pandas DataFrame, and a list of what had to be guessed.

The questions are answered in this order: which encoding, which delimiter, is there a header, are there row
labels, is the decimal mark a comma. Rows of different length are refused with their line number.

A file is read line by line, and no more of it is held than the rows that are wanted (`graphbam.tables.limit`): a longer
one is read a second time for these, once it is known how many rows there are. All rows are checked for their length,
and for nothing else.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import pandas as pd

from graphbam.errors import TableError
from graphbam.tables.limit import ALL, RowLimit
from graphbam.tables.spelling import LEVEL_WORDS, MISSING_WORDS, blank_missing, find_marks, read_spelled
from graphbam.tables.table import Vector

Opener: TypeAlias = Callable[[], BinaryIO]
"""Opens a file at its beginning, as often as asked."""

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "space"}
_PREFERRED = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_SAMPLE = 50  # records looked at to choose the delimiter
_NAMED_DELIMITER = re.compile(r'"?sep=([,;|\t])"?\s*', re.IGNORECASE)  # Excel's first line
_BLOCK = 2**17  # bytes decoded at a time
_DECIMAL_COMMA = re.compile(r"\s*[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][-+]?\d+)?\s*")


class Parsed(NamedTuple):
    """What was found in a file."""

    found: Any
    """A DataFrame; of an npy file, an array."""
    changes: list[str]
    """What had to be guessed, one sentence each."""
    n_rows: int
    """Rows of the file, read or not."""


def parse_text(raw: bytes | Opener, where: str, suffix: str = "", limit: RowLimit = ALL) -> Parsed:
    """Parse delimited text.

    Parameters
    ----------
    raw : bytes or callable
        The whole file, or what opens it.
    where : str
        Its name, for messages.
    suffix : str
        ``".csv"``, ``".tsv"`` …: which delimiter wins when several fit.
    limit : RowLimit
        Which rows to read.

    Returns
    -------
    Parsed
        Columns carry the names found in the file, duplicates and all.

    Examples
    --------
    >>> frame, changes, _ = parse_text(b"a;b\\n1,5;2\\n2,5;3\\n", "x.csv", ".csv")
    >>> frame["a"].tolist(), len(changes)
    ([1.5, 2.5], 2)
    """
    opener: Opener = (lambda: io.BytesIO(raw)) if isinstance(raw, bytes) else raw
    encoding, changes = find_encoding(opener, where)
    text = _Text(opener, encoding)
    head, comment = text.look()
    if not head:
        raise TableError(f"{where} is empty: there is nothing to read. Check that it was saved completely.")
    delimiter = text.named_delimiter() or choose_delimiter(head, suffix)
    if suffix == ".csv" and delimiter != ",":
        changes.append(f"read with {DELIMITERS[delimiter]} as the delimiter")
    comment_names = next(csv.reader([comment], delimiter=delimiter, skipinitialspace=True), [])
    body = _gather_rows(text, delimiter, where, limit)
    names = _name_columns(body, comment_names, changes)
    frame = _read_body(body, names, delimiter, where, changes)
    frame = frame.iloc[:, :-1] if _is_longer(body) and body.ends_empty else frame
    return Parsed(_drop_row_labels(frame, changes), changes, body.n_rows)


def find_encoding(opener: Opener, where: str) -> tuple[str, list[str]]:
    """How a text is written: UTF-8, UTF-16 with a mark, else Western European; and what to say of it.

    Examples
    --------
    >>> find_encoding(lambda: io.BytesIO("größe".encode("latin-1")), "x.csv")
    ('cp1252', ['x.csv is not UTF-8; read as Windows-1252'])
    """
    with opener() as file:
        block = file.read(_BLOCK)
        if block[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16", [f"{where} was read as UTF-16"]
        if b"\x00" in block[:100_000]:
            raise TableError(f"{where} holds binary data, not text. Save the table as CSV or parquet and try again.")
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while block:
                decoder.decode(block)
                block = file.read(_BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252", [f"{where} is not UTF-8; read as Windows-1252"]
    return "utf-8-sig", []


@dataclass(frozen=True)
class _Text:
    """The lines of a file, as often as asked."""

    opener: Opener
    encoding: str

    def named_delimiter(self) -> str:
        """The delimiter that a first line such as ``sep=;`` names; empty if there is none."""
        with self._open() as file:
            match = _NAMED_DELIMITER.fullmatch(next(file, ""))
        return match[1] if match else ""

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers from 1 on, without blank and comment lines above the data and below the names."""
        with self._open() as file:
            numbered = enumerate(file, 1)
            first = next((one for one in numbered if not self._is_above(*one)), None)
            if first is None:
                return
            yield first
            yield from itertools.dropwhile(lambda one: _is_comment_below(one[1], first[1]), numbered)

    def look(self) -> tuple[list[str], str]:
        """The first lines that are not blank, and the last comment above them, which may hold the names."""
        lines = (line for _, line in self.lines() if line.strip())
        return list(itertools.islice(lines, 4 * _SAMPLE)), self._find_comment()

    def _find_comment(self) -> str:
        comment = ""
        with self._open() as file:
            for number, line in enumerate(file, 1):
                if not self._is_above(number, line):
                    break
                if line.startswith("#"):
                    comment = line.lstrip("#").strip() or comment
        return comment

    def _open(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(self.opener(), self.encoding, errors="replace", newline="")

    def _is_above(self, number: int, line: str) -> bool:
        """Whether a line above the data is none of it: blank, a comment, or the first one if it names the delimiter."""
        is_name = number == 1 and _NAMED_DELIMITER.fullmatch(line) is not None
        return is_name or line.startswith("#") or not line.strip()


def _is_comment_below(line: str, first: str) -> bool:
    """Whether a line below the first is a comment: it has not as many cells, and no open quote reaches into it.

    Examples
    --------
    >>> _is_comment_below("# units: cm", "a;b"), _is_comment_below("#1;2", "a;b")
    (True, False)
    """
    delimiters = [mark for mark in DELIMITERS if mark != " " or not line.startswith("# ")]
    is_row = any(line.count(mark) == first.count(mark) > 0 for mark in delimiters)
    return line.startswith("#") and not is_row and first.count('"') % 2 == 0


def choose_delimiter(lines: Sequence[str], suffix: str = "") -> str:
    """Find the delimiter that splits the lines into equally many fields, most of them numbers.

    Examples
    --------
    >>> choose_delimiter(["a;b", "1,5;2,5", "3,5;4,5"], ".csv")
    ';'
    >>> choose_delimiter(["a b", "1   2"])
    ' '
    """
    preferred = _PREFERRED.get(suffix, "")

    def fitness(delimiter: str) -> tuple[bool, float, bool, int]:
        records = list(_records(lines, delimiter, limit=_SAMPLE))
        widths = [len(fields) for fields in records]
        even = len(set(widths[1:])) <= 1 and widths[0] in (widths[-1], widths[-1] - 1) and min(widths) > 1
        cells = [cell for fields in records[1:] for cell in fields]
        numeric = sum(map(_is_number_or_missing, cells)) / max(1, len(cells))
        return even, round(numeric, 1) if even else 0.0, delimiter == preferred, max(widths)

    return max(DELIMITERS, key=fitness)


def _records(lines: Sequence[str], delimiter: str, limit: int | None = None) -> Iterator[list[str]]:
    """Non-blank records; a damaged sample simply ends early, the full read reports it."""
    reader = csv.reader(_collapse(lines, delimiter), delimiter=delimiter, skipinitialspace=True)
    count = 0
    try:
        for fields in reader:
            if any(fields):
                yield fields
                count += 1
            if count == limit:
                return
    except csv.Error:
        pass
    if not count:
        yield [""]


def _collapse(lines: Sequence[str], delimiter: str) -> Iterator[str]:
    return (_squeeze(line) for line in lines) if delimiter == " " else iter(lines)


def _squeeze(line: str) -> str:
    """A line with single spaces between its cells and none around them."""
    return re.sub(r"[ \t]+", " ", line).strip() + "\n"


def _is_number_or_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING_WORDS or _is_number(cell) or bool(_DECIMAL_COMMA.fullmatch(cell))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, no table means it so


def _is_header(fields: list[str]) -> bool:
    """Names, not data: some field is neither a number nor missing, or the fields count 0, 1, 2, … ."""
    filled = [field.strip() for field in fields]
    if not all(map(_is_number_or_missing, filled)):
        return True
    counted = [field for field in filled if field]
    return len(counted) > 1 and counted == [str(k) for k in range(len(counted))] and filled[-1] != ""


class _Record(NamedTuple):
    """A row as it is written; quotes let it go over several lines."""

    line: int
    text: str
    width: int

    def cells(self, delimiter: str) -> list[str]:
        return next(csv.reader(io.StringIO(self.text, newline=""), delimiter=delimiter, skipinitialspace=True))

    def ends_empty(self, delimiter: str) -> bool:
        """Whether nothing follows the last delimiter."""
        return self.text.rstrip(" \r\n").removesuffix('""').endswith(delimiter)


def _split_records(text: _Text, delimiter: str, where: str) -> Iterator[_Record]:
    """Rows of a file, without blank ones. Only those with quotes need more than a count of their delimiters."""
    lines = text.lines()
    for number, line in lines:
        if delimiter == " ":
            line = _squeeze(line)
        if '"' in line:
            record = _close_quotes(number, line, lines, delimiter, where)
            if record.width:
                yield record
        elif line.strip():
            yield _Record(number, line, line.count(delimiter) + 1)


def _close_quotes(number: int, line: str, lines: Iterator[tuple[int, str]], delimiter: str, where: str) -> _Record:
    """The row that begins with this line, together with the lines that its quotes reach to; width 0 if it is empty."""
    taken = [line]

    def more() -> Iterator[str]:
        yield line
        for _, another in lines:
            taken.append(_squeeze(another) if delimiter == " " else another)
            yield taken[-1]

    try:
        fields = next(csv.reader(more(), delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise TableError(
            f"{where}, line {number}, cannot be split into cells: {error}. Look for a quote that never closes."
        ) from None
    return _Record(number, "".join(taken), len(fields) if fields not in ([], [""]) else 0)


class _Body(NamedTuple):
    """The rows of a file that are read, as one text in UTF-8."""

    names: list[str] | None
    """From the header; None without one."""
    text: io.BytesIO
    width: int
    n_rows: int
    """All rows, read or not."""
    ends_empty: bool
    """Whether the last cell of each row is empty: it ends in a delimiter."""


def _is_longer(body: _Body) -> bool:
    """Whether rows have one cell more than there are names: row labels in front, or nothing at the end."""
    return body.names is not None and len(body.names) == body.width - 1


def _gather_rows(text: _Text, delimiter: str, where: str, limit: RowLimit) -> _Body:
    """Check and count all rows, and keep those that are wanted; of a long file they are fetched in a second reading."""
    names, records = _split_header(text, delimiter, where)
    kept, width, n_rows, ends_empty = io.BytesIO(), 0, 0, True
    for record in records:
        if record.width != width:
            width = _check_width(record, width, names, where)
        n_rows += 1
        ends_empty = ends_empty and record.ends_empty(delimiter)
        if not limit.cuts(n_rows):
            kept.write(record.text.encode())
        elif not limit.cuts(n_rows - 1):
            kept = io.BytesIO()  # too many: they are fetched once all are counted
    if not n_rows:
        raise TableError(f"{where} has a header but no rows below it. Check that it was saved completely.")
    rows = limit.choose(n_rows)
    if rows is not None:
        wanted, records = set(rows.tolist()), _split_header(text, delimiter, where)[1]
        kept.writelines(record.text.encode() for row, record in enumerate(records) if row in wanted)
    return _Body(names, kept, width, n_rows, ends_empty)


def _split_header(text: _Text, delimiter: str, where: str) -> tuple[list[str] | None, Iterator[_Record]]:
    """Names in the first row, if that is what it holds, and the rows below them."""
    records = _split_records(text, delimiter, where)
    for first in records:
        cells = first.cells(delimiter)
        if any(cell.strip() for cell in cells):
            if _is_header(cells):
                return cells, records
            return None, itertools.chain([first], records)
    raise TableError(f"{where} is empty: there is nothing to read. Check that it was saved completely.")


def _check_width(record: _Record, width: int, names: list[str] | None, where: str) -> int:
    """Refuse a row that is not as long as those before it; the first may have one cell more than there are names."""
    expected = width or (len(names) if names else record.width)
    if width or record.width not in (expected, expected + 1):
        above = "the header" if names else "the first row"
        cells = "cell" if record.width == 1 else "cells"
        raise TableError(
            f"{where}, line {record.line}, has {record.width} {cells} where {above} promises {expected}. "
            "Make every row equally long, and put quotes around cells that contain the delimiter."
        )
    return record.width


def _read_body(body: _Body, names: list[str], delimiter: str, where: str, changes: list[str]) -> pd.DataFrame:
    """Pandas' fast reader; a second time with a decimal comma when the cells ask for one."""
    frame = _read_csv(body.text, delimiter, ".", where).set_axis(pd.Index(names), axis=1)
    commas = [_find_marks(column, ",", most=200) for _, column in frame.items()]
    is_sure = (",",) in commas  # in 488,70 a comma cannot part thousands
    if not is_sure and (delimiter == "," or (".", ",") not in commas):
        return frame
    other = _read_csv(body.text, delimiter, ",", where).set_axis(pd.Index(names), axis=1)
    has_points = (".",) in commas or any(_find_marks(column, ".") == (".",) for _, column in other.items())
    if has_points and (delimiter == "," or not is_sure):
        return frame
    changes.append("read with a comma as the decimal mark")
    for k in range(len(names)):
        numbers = _apply_comma(other.iloc[:, k], has_points, where, changes)
        if numbers is not None:
            other.isetitem(k, numbers)
    return other


def _find_marks(column: pd.Series, mark: str, most: int | None = None) -> tuple[str, ...]:
    """Decimal marks that a column of text may have, judged by all or the first cells with this mark; () if none has."""
    if pd.api.types.is_numeric_dtype(column):
        return ()
    marked = column[column.astype("str").str.contains(mark, regex=False).to_numpy(dtype=bool, na_value=False)]
    return find_marks(blank_missing(marked.astype(object).head(most or len(marked))))


def _apply_comma(column: pd.Series, has_points: bool, where: str, changes: list[str]) -> Vector | None:
    """Read text of a file whose decimal mark is a comma: dots part thousands, if they can; None if it stays text."""
    if pd.api.types.is_numeric_dtype(column):
        return None
    cells = blank_missing(column.astype(object))
    with_point, with_comma = read_spelled(cells, decimal="."), read_spelled(cells, decimal=",")
    dotted = [k for k, cell in enumerate(cells) if isinstance(cell, str) and "." in cell]
    if with_comma is None:
        if with_point is not None:
            shown = next(cell for cell in cells.dropna() if "," not in find_marks([cell]))
            changes.append(f"column {column.name!r}: read with a dot as the decimal mark, because of {shown!r}")
        return None
    at = dotted[0] if dotted else 0
    if with_point is not None and dotted and has_points:
        raise TableError(
            f"{where}: column {column.name!r} holds {cells.iloc[at]!r}, which is {with_comma[at]:.12g} or "
            f"{with_point[at]:.12g}: of the other columns some have commas and some have dots as decimal marks. "
            "Write all numbers of the file with one decimal mark, and none between thousands."
        )
    about = "dots part thousands" if dotted else "text read as the numbers it spells"
    changes.append(f"column {column.name!r}: {about} ({cells.iloc[at]!r} → {with_comma[at]:.12g})")
    return with_comma


def _read_csv(body: io.BytesIO, delimiter: str, decimal: str, where: str) -> pd.DataFrame:
    try:
        return _read_csv_as_is(body, delimiter, decimal)
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise TableError(f"{where} cannot be split into cells: {reason}. Look for a quote that never closes.") from None


def _read_csv_as_is(body: io.BytesIO, delimiter: str, decimal: str) -> pd.DataFrame:
    """Cells as pandas reads them, but for 'none' in columns of text: what it stands for there is not its to say."""
    how: dict[str, Any] = {"sep": delimiter, "header": None, "skipinitialspace": True, "low_memory": False}
    body.seek(0)
    frame = pd.read_csv(body, decimal=decimal, na_values=sorted(MISSING_WORDS - {""}), **how)
    is_text = [not pd.api.types.is_numeric_dtype(column) for _, column in frame.items()]
    gappy = [k for k, text in enumerate(is_text) if text and frame.iloc[:, k].isna().any()]
    if gappy:
        body.seek(0)
        written = pd.read_csv(body, usecols=gappy, dtype=str, keep_default_na=False, **how)
        for k in gappy:
            is_level = written[k].str.strip().str.lower().isin(LEVEL_WORDS)
            if is_level.any():
                frame.isetitem(k, frame.iloc[:, k].astype(object).mask(is_level, written[k]))
    return frame


def _name_columns(body: _Body, comment_names: list[str], changes: list[str]) -> list[str]:
    """One name for each cell of a row; of one cell more than there are names, which end of the row it is at."""
    names, width = body.names, body.width
    if names is None and len(comment_names) == width > 1 and _is_header(comment_names):
        names = comment_names
        changes.append("column names taken from the comment line above the data")
    if names is None:
        changes.append(f"no header found: columns are called x0 … x{width - 1}")
        return [f"x{k}" for k in range(width)]
    if not _is_longer(body):
        return list(names)
    if body.ends_empty:
        changes.append("every row ends in a delimiter, and the header does not: nothing was read behind it")
        return [*names, ""]
    return ["", *names]


def _drop_row_labels(frame: pd.DataFrame, changes: list[str]) -> pd.DataFrame:
    """Leave out a nameless first column of pairwise different entries: row numbers or row names."""
    first = str(frame.columns[0]).strip()
    if frame.shape[1] < 2 or first not in ("", "Unnamed: 0") or not frame.iloc[:, 0].is_unique:
        return frame
    changes.append("the first column has no name and no repeated entry: taken for row labels and left out")
    return frame.iloc[:, 1:].set_axis(pd.Index(frame.iloc[:, 0], dtype=object), axis=0)
