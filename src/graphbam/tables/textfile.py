"""The bytes of a delimited text file → a pandas DataFrame, and a list of what had to be guessed.

The questions are answered in this order: which encoding, which delimiter, is there a header, are there row
labels, is the decimal mark a comma. Rows of different length are refused with their line number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence

import pandas as pd

from graphbam.errors import TableError

MISSING_WORDS = frozenset({"", "?", "-", ".", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>", "missing"})
"""Cells read as missing, in any case and with any space around them."""

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "space"}
_PREFERRED = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_SAMPLE = 50  # records looked at to choose the delimiter
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")


def parse_text(raw: bytes, where: str, suffix: str = "") -> tuple[pd.DataFrame, list[str]]:
    """Parse delimited text.

    Parameters
    ----------
    raw : bytes
        The whole file.
    where : str
        Its name, for messages.
    suffix : str
        ``".csv"``, ``".tsv"`` …: which delimiter wins when several fit.

    Returns
    -------
    DataFrame, list of str
        Columns carry the names found in the file (duplicates and all), and each guess is one sentence.

    Examples
    --------
    >>> frame, changes = parse_text(b"a;b\\n1,5;2\\n2,5;3\\n", "x.csv", ".csv")
    >>> frame["a"].tolist(), len(changes)
    ([1.5, 2.5], 2)
    """
    text, changes = decode(raw, where)
    lines, comment = _split_lines(text)
    if not lines:
        raise TableError(f"{where} is empty: there is nothing to read. Check that it was saved completely.")
    delimiter = choose_delimiter(lines[: 4 * _SAMPLE], suffix)
    if delimiter == " ":
        lines = [re.sub(r"[ \t]+", " ", line).strip() + "\n" for line in lines]
    if suffix == ".csv" and delimiter != ",":
        changes.append(f"read with {DELIMITERS[delimiter]} as the delimiter")
    comment_names = next(csv.reader([comment], delimiter=delimiter, skipinitialspace=True), [])
    return _parse_lines(lines, delimiter, comment_names, where, changes)


def decode(raw: bytes, where: str) -> tuple[str, list[str]]:
    """Turn bytes into text: UTF-8, UTF-16 with a mark, else Western European.

    Examples
    --------
    >>> decode("größe".encode("latin-1"), "x.csv")
    ('größe', ['x.csv is not UTF-8; read as Windows-1252'])
    """
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", errors="replace"), [f"{where} was read as UTF-16"]
    if b"\x00" in raw[:100_000]:
        raise TableError(f"{where} holds binary data, not text. Save the table as CSV or parquet and try again.")
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), [f"{where} is not UTF-8; read as Windows-1252"]


def _split_lines(text: str) -> tuple[list[str], str]:
    """Physical lines without blank and comment lines; the last comment, which may hold the names."""
    lines = list(io.StringIO(text, newline=""))
    if '"' not in text:
        lines = [line for line in lines if line.strip()]
    comment = ""
    while lines and (lines[0].startswith("#") or not lines[0].strip()):
        comment = lines.pop(0).lstrip("#").strip() or comment
    return lines, comment


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
    return (re.sub(r"[ \t]+", " ", line).strip() for line in lines) if delimiter == " " else iter(lines)


def _is_number_or_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING_WORDS or _is_number(cell) or bool(_DECIMAL_COMMA.fullmatch(cell))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, no table means it so


def _parse_lines(
    lines: list[str], delimiter: str, comment_names: list[str], where: str, changes: list[str]
) -> tuple[pd.DataFrame, list[str]]:
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    first, start = _first_record(reader, where)
    names = first if _is_header(first) else None
    if names is not None:
        lines = lines[start:]
    width = _check_widths(lines, delimiter, names, where, first_line=start + 1 if names else 1)
    if width == 0:
        raise TableError(f"{where} has a header but no rows below it. Check that it was saved completely.")
    frame = _read_body(lines, delimiter, where, changes)
    frame.columns = pd.Index(_name_columns(names, comment_names, width, changes))
    return _drop_row_labels(frame, changes), changes


def _first_record(reader: Iterator[list[str]], where: str) -> tuple[list[str], int]:
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                return fields, reader.line_num  # type: ignore[attr-defined]
    except csv.Error as error:
        raise TableError(f"{where} cannot be split into cells: {error}. Look for a quote that never closes.") from None
    raise TableError(f"{where} is empty: there is nothing to read. Check that it was saved completely.")


def _is_header(fields: list[str]) -> bool:
    """Names, not data: some field is neither a number nor missing, or the fields count 0, 1, 2, … ."""
    filled = [field.strip() for field in fields]
    if not all(field.lower() in MISSING_WORDS or _is_number(field) for field in filled):
        return True
    counted = [field for field in filled if field]
    return len(counted) > 1 and counted == [str(k) for k in range(len(counted))] and filled[-1] != ""


def _check_widths(lines: list[str], delimiter: str, names: list[str] | None, where: str, first_line: int) -> int:
    """Refuse rows of different length; returns the common one (0 without rows)."""
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    width, at = 0, first_line
    try:
        for fields in reader:
            if len(fields) != width and fields not in ([], [""]):
                expected = width or (len(names) if names else len(fields))
                if width or len(fields) not in (expected, expected + 1):
                    _refuse_ragged(where, at, len(fields), expected, first_line, has_header=names is not None)
                width = len(fields)
            at = first_line + reader.line_num
    except csv.Error as error:
        raise TableError(
            f"{where}, line {at}, cannot be split into cells: {error}. Look for a quote that never closes."
        ) from None
    return width


def _refuse_ragged(where: str, line: int, found: int, expected: int, first_line: int, has_header: bool) -> None:
    above = "the header" if has_header else f"line {first_line}"
    raise TableError(
        f"{where}, line {line}, has {found} cells where {above} promises {expected}. "
        "Make every row equally long, and put quotes around cells that contain the delimiter."
    )


def _read_body(lines: list[str], delimiter: str, where: str, changes: list[str]) -> pd.DataFrame:
    """Pandas' fast reader; a second time with a decimal comma when the cells ask for one."""
    body = "".join(lines)
    frame = _read_csv(body, delimiter, ".", where)
    if delimiter == "," or not any(_has_decimal_commas(frame[c]) for c in frame.columns):
        return frame
    changes.append("read with a comma as the decimal mark")
    return _read_csv(body, delimiter, ",", where)


def _read_csv(body: str, delimiter: str, decimal: str, where: str) -> pd.DataFrame:
    try:
        return _read_csv_as_is(body, delimiter, decimal)
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise TableError(f"{where} cannot be split into cells: {reason}. Look for a quote that never closes.") from None


def _read_csv_as_is(body: str, delimiter: str, decimal: str) -> pd.DataFrame:
    return pd.read_csv(
        io.StringIO(body),
        sep=delimiter,
        decimal=decimal,
        header=None,
        skipinitialspace=True,
        na_values=sorted(MISSING_WORDS - {""}),
        low_memory=False,
    )


def _has_decimal_commas(column: pd.Series) -> bool:
    if pd.api.types.is_numeric_dtype(column):
        return False
    cells = column.dropna().astype(str).head(200)
    return bool(len(cells)) and all(_DECIMAL_COMMA.fullmatch(c) or _is_number(c) for c in cells)


def _name_columns(names: list[str] | None, comment_names: list[str], width: int, changes: list[str]) -> list[str]:
    if names is None and len(comment_names) == width > 1 and _is_header(comment_names):
        names = comment_names
        changes.append("column names taken from the comment line above the data")
    if names is None:
        changes.append(f"no header found: columns are called x0 … x{width - 1}")
        return [f"x{k}" for k in range(width)]
    if len(names) == width - 1:
        return ["", *names]
    return list(names)


def _drop_row_labels(frame: pd.DataFrame, changes: list[str]) -> pd.DataFrame:
    """Leave out a nameless first column of pairwise different entries: row numbers or row names."""
    first = str(frame.columns[0]).strip()
    if frame.shape[1] < 2 or first not in ("", "Unnamed: 0") or not frame.iloc[:, 0].is_unique:
        return frame
    changes.append("the first column has no name and no repeated entry: taken for row labels and left out")
    return frame.iloc[:, 1:].set_axis(pd.Index(frame.iloc[:, 0], dtype=object), axis=0)
