"""A file → a pandas DataFrame: text, parquet, feather, npy, spreadsheets, Stata; packed or not.

Files are recognised by their content, not only by their suffix. What is packed is unpacked up to a limit, so that no
small file fills the memory. A part of a file goes by its name behind two colons: ``"book.xlsx::Sheet2"``,
``"archive.zip::cells.csv"``.

Long files are not held as a whole: text, packed or not, parquet and feather are read in pieces, and only the rows that
are wanted are kept (`graphbam.tables.limit`).
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphbam.errors import SeveralTablesError, TableError, name_some
from graphbam.tables.limit import ALL, RowLimit
from graphbam.tables.textfile import Opener, Parsed, parse_text

PACKINGS = (".gz", ".bz2", ".xz")
"""Suffixes behind that of a table that was packed."""

SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".feather", ".npy", ".xlsx", ".dta", ".zip")
"""File names that are taken for tables in a folder, each also with one of `PACKINGS` behind it."""

LARGEST_UNPACKED = 4 * 2**30
"""Bytes that a packed file, or the cells of a table, may grow to."""

LONG = 32 * 2**20
"""Bytes from which on a file is read in pieces."""

ROWS_AT_ONCE = 20_000
"""Rows of a long parquet file that are looked at together."""

PART = "::"
"""Between the name of a file and that of a sheet or of a file in an archive."""

_FOREIGN = {
    b"\x89HDF": "an HDF5 file; open it with its own reader (anndata for h5ad) and pass what that returns",
    b"%PDF": "a PDF; save the table as CSV first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it or use gzip",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet; save it as xlsx or CSV first",
    b"RDX": "an R data file; write it with write.csv first",
    b"$FL2": "an SPSS file; save it as CSV or Stata first",
    b"\x80\x04": "a pickle, which is never opened because it can run code; save it as CSV or parquet",
}
ZIP = b"PK\x03\x04"
PARQUET, FEATHER, NPY, STATA = b"PAR1", b"ARROW1", b"\x93NUMPY", b"<stata_dta>"
_BINARY = (".parquet", ".npy", ".feather", ".xlsx")


_PACKED: tuple[tuple[bytes, str, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", "gzip", gzip.open),
    (b"BZh", "bzip2", bz2.open),
    (b"\xfd7zXZ", "xz", lzma.open),
)
"""How packed files begin, what they are called and what opens them."""


class Unpacked(NamedTuple):
    """A file without its packing."""

    raw: bytes
    name: str
    """Of the file, or of the one in an archive: its suffix still says something."""


def parse_file(raw: bytes, where: str, part: str = "", limit: RowLimit = ALL) -> Parsed:
    """Parse the content of a file.

    Parameters
    ----------
    raw : bytes
        The whole file.
    where : str
        Its name, for its suffix and for messages.
    part : str
        Which sheet of a spreadsheet, or which file of an archive.
    limit : RowLimit
        Which rows to read; of npy and Stata files all are.

    Returns
    -------
    Parsed

    Examples
    --------
    >>> frame, _, _ = parse_file(bz2.compress(b"a,b\\n1,2\\n3,4\\n"), "t.csv.bz2")
    >>> frame["b"].tolist()
    [2, 4]
    """
    raw, name = unpack(raw, where, part)
    suffix = find_suffix(Path(name))
    if not raw.strip():
        raise TableError(f"{where} is empty: there is nothing to read. Check that it was saved completely.")
    if raw.startswith(ZIP):
        _is_spreadsheet(raw, where, LARGEST_UNPACKED)
        return _parse_spreadsheet(raw, where, part if name == where else "", limit)
    if part and name == where:
        raise TableError(f"{where} has no parts, and {part!r} was asked for. Leave out {PART + part!r}.")
    for magic, what in _FOREIGN.items():
        if raw.startswith(magic):
            raise TableError(f"{where} is {what}.")
    if raw.startswith(PARQUET):
        return _parse_parquet(io.BytesIO(raw), where, limit)
    if raw.startswith(FEATHER):
        return _parse_feather(io.BytesIO(raw), where, limit)
    if raw.startswith(NPY):
        return _as_parsed(_parse_npy(raw, where))
    if raw.startswith(STATA) or suffix == ".dta":
        return _as_parsed(_parse_stata(raw, where))
    if suffix in _BINARY:
        raise TableError(f"{where} is not a {suffix[1:]} file in spite of its name. Save it again, or rename it.")
    head = raw.lstrip(b"\xef\xbb\xbf \r\n\t")[:1]
    if head in (b"<", b"{", b"["):
        kind = "a web page or XML" if head == b"<" else "JSON"
        raise TableError(f"{where} holds {kind}, not a delimited table. Save the table as CSV or parquet.")
    return parse_text(raw, where, suffix, limit)


def _as_parsed(found: Any) -> Parsed:
    return Parsed(found, [], len(found) if np.ndim(found) else 0)


def parse_long(path: Path, where: str, limit: RowLimit) -> Parsed | None:
    """Parse a file on disk in pieces; None if it is of a kind that is read as a whole.

    Parameters
    ----------
    path : Path
        The file.
    where : str
        Its name, for its suffix and for messages.
    limit : RowLimit
        Which rows to read.
    """
    opener, is_packed = _choose_opener(path, where)
    with opener() as file:
        head = file.read(100)
    for magic, parse in ((PARQUET, _parse_parquet), (FEATHER, _parse_feather)):
        if head.startswith(magic):
            return None if is_packed else parse(path, where, limit)
    suffix, first = find_suffix(path), head.lstrip(b"\xef\xbb\xbf \r\n\t")[:1]
    if (
        head.startswith((ZIP, NPY, STATA, *_FOREIGN))
        or suffix in (*_BINARY, ".dta")
        or first in (b"", b"<", b"{", b"[")
    ):
        return None
    return parse_text(opener, where, suffix, limit)


def find_suffix(path: Path) -> str:
    """Last suffix in lower case, that of the packing taken off."""
    name = path.name.lower()
    for packing in PACKINGS:
        name = name.removesuffix(packing)
    return os.path.splitext(name)[1]


# ── packed ────────────────────────────────────────────────────────────────────────────────────────────────


def unpack(raw: bytes, where: str, part: str = "", limit: int | None = None) -> Unpacked:
    """Unpack gzip, bzip2, xz and zip; what grows beyond the limit, in bytes, is refused before it fills the memory.

    What is not packed stays as it is, and so do spreadsheets, although they are archives: their size is checked.
    """
    limit = LARGEST_UNPACKED if limit is None else limit
    raw = _unpack_one(raw, where, limit)
    if not raw.startswith(ZIP) or _is_spreadsheet(raw, where, limit):
        return Unpacked(raw, where)
    raw, name = _open_archive(raw, where, part, limit)
    return Unpacked(_unpack_one(raw, where, limit), name)


def _unpack_one(raw: bytes, where: str, limit: int) -> bytes:
    for magic, kind, opener in _PACKED:
        if raw.startswith(magic):
            with _Unpacking(opener(io.BytesIO(raw)), where, kind, limit) as file:
                return file.read()
    return raw


def _choose_opener(path: Path, where: str) -> tuple[Opener, bool]:
    """What opens a file, unpacked on the way if it is packed; and whether it is."""
    with path.open("rb") as file:
        head = file.read(8)
    for magic, kind, opener in _PACKED:
        if head.startswith(magic):
            unpacking = functools.partial(_open_packed, path, where, kind, opener)
            return unpacking, True
    return lambda: path.open("rb"), False


def _open_packed(path: Path, where: str, kind: str, opener: Callable[..., Any]) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Unpacking(opener(path), where, kind, LARGEST_UNPACKED), 2**17))


class _Unpacking(io.RawIOBase):
    """A packed file while it is unpacked; what grows beyond the limit, in bytes, or is damaged is refused."""

    def __init__(self, file: BinaryIO, where: str, kind: str, limit: int) -> None:
        super().__init__()
        self._file, self._where, self._kind, self._limit, self._n_bytes = file, where, kind, limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block = self._file.read(len(buffer))
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
            raise TableError(
                f"{self._where} is a damaged or incomplete {self._kind} file. Compress or copy it again."
            ) from None
        buffer[: len(block)] = block
        self._n_bytes += len(block)
        _check_growth(self._n_bytes, self._where, self._limit)
        return len(block)

    def close(self) -> None:
        self._file.close()
        super().close()


def _check_growth(n_bytes: int, where: str, limit: int) -> None:
    if n_bytes > limit:
        raise TableError(
            f"{where} unpacks to more than {limit / 2**20:.0f} MiB. Keep fewer rows, or save it as parquet."
        )


def _open_archive(raw: bytes, where: str, part: str, limit: int) -> Unpacked:
    """The one table of a zip archive, or the one asked for."""
    parts = _list_parts(raw, where)
    name = _choose(part, [name for name in parts if _is_table(name)], where, "file")
    _check_growth(parts[name].file_size, where, limit)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return Unpacked(archive.read(name), name)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError, zlib.error) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise TableError(f"{where} is a zip archive that cannot be opened: {reason}. Unpack it first.") from None


def _is_spreadsheet(raw: bytes, where: str, limit: int) -> bool:
    """Whether an archive is one; it may not be too large when unpacked either."""
    parts = _list_parts(raw, where)
    if "xl/workbook.xml" not in parts:
        return False
    _check_growth(sum(info.file_size for info in parts.values()), where, limit)
    return True


def _list_parts(raw: bytes, where: str) -> dict[str, zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return {info.filename: info for info in archive.infolist() if not info.is_dir()}
    except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
        raise TableError(
            f"{where} is a damaged or incomplete zip archive or spreadsheet: {str(error).rstrip('.')}. Save it again."
        ) from None


def _is_table(name: str) -> bool:
    hidden = any(folder.startswith((".", "__MACOSX")) for folder in name.split("/"))
    return not hidden and find_suffix(Path(name)) in SUFFIXES


def _choose(wanted: str, found: Sequence[str], where: str, what: str) -> str:
    """The part that was asked for, or the only one."""
    shown = name_some([repr(name) for name in found[:8]], len(found))
    if wanted:
        if wanted not in found:
            raise TableError(
                f"{where} has no {what} {wanted!r} with a table; it has {shown or 'none'}. Name one of these."
            )
        return wanted
    if not found:
        looked = f"names that end in {', '.join(SUFFIXES[:-1])}" if what == "file" else "two rows and two columns"
        raise TableError(f"{where} holds no {what} with a table; looked for {looked}. Check what is in it.")
    if len(found) > 1:
        said = f"{where} has {len(found)} {what}s with tables: {shown}. Say which, as in {where + PART + found[0]!r}"
        raise SeveralTablesError(f"{said}, or save that one alone.", found)
    return found[0]


# ── formats ───────────────────────────────────────────────────────────────────────────────────────────────


def _parse_spreadsheet(raw: bytes, where: str, part: str, limit: RowLimit) -> Parsed:
    """A sheet, read as if it had been saved as text: the same rules find header, row labels and missing cells."""
    sheets = _read_sheets(raw, where)
    name = _choose(part, list(sheets), where, "sheet")
    cells, changes = sheets[name], []
    filled = cells.notna().sum(axis=1)
    first = int((filled >= min(2, cells.shape[1])).to_numpy().argmax())
    if first:
        cells = cells.iloc[first:]
        above = "row holds" if first == 1 else f"{first} rows hold"
        changes.append(f"the first {above} a title, not names: left out")
    if len(sheets) > 1:
        changes.insert(0, f"read sheet {name!r} of {len(sheets)}")
    text = cells.to_csv(index=False, header=False, lineterminator="\n")
    parsed = parse_text(text.encode(), where, ".csv", limit)
    return parsed._replace(changes=changes + parsed.changes)


def _read_sheets(raw: bytes, where: str) -> dict[str, pd.DataFrame]:
    """Sheets that hold something, without empty rows and columns."""
    needs = f"{where} is a spreadsheet, which needs openpyxl. Run `pip install openpyxl`, or save it as CSV."
    how: dict[str, Any] = {"sheet_name": None, "header": None, "engine": "openpyxl", "dtype": object}
    with _explained(f"{where} cannot be read as a spreadsheet", "Save it as CSV.", needs):
        book = pd.read_excel(io.BytesIO(raw), keep_default_na=False, na_values=[""], **how)  # the rest when it is text
    tidy = {str(name): sheet.dropna(how="all").dropna(how="all", axis=1) for name, sheet in book.items()}
    return {name: sheet for name, sheet in tidy.items() if min(sheet.shape) > 1}


@contextlib.contextmanager
def _explained(found: str, advice: str, needs: str = "") -> Iterator[None]:
    """What other packages raise, in a sentence: that one `needs` installing, or what was `found`, and what to do.

    Where memory runs out it is no fault of the file.
    """
    try:
        yield
    except (TableError, MemoryError):
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        is_missing = needs and isinstance(error, ImportError)
        raise TableError(needs if is_missing else f"{found}: {reason}. {advice}") from None


def _parse_parquet(source: Path | BinaryIO, where: str, limit: RowLimit) -> Parsed:
    needs = f"{where} is parquet, which needs pyarrow. Run `pip install pyarrow`, or use CSV."
    with _explained(f"{where} is a damaged parquet file", "Write it again.", needs):
        from pyarrow.parquet import ParquetFile

        with ParquetFile(source, buffer_size=2**16, pre_buffer=False) as file:
            n_rows, schema = file.metadata.num_rows, file.schema_arrow
            rows = limit.choose(n_rows)
            n_read, n_columns = n_rows if rows is None else len(rows), file.metadata.num_columns
            if 8 * n_read * n_columns > LARGEST_UNPACKED:
                size = f"{n_read} rows and {n_columns} columns"
                most = f"{LARGEST_UNPACKED / 2**30:.0f} GiB"
                raise TableError(f"{where} has {size}, more than fit into {most}. Keep fewer.")
            batches = file.iter_batches(ROWS_AT_ONCE, use_threads=False)
            return Parsed(_take_rows(batches, rows, schema), [], n_rows)


def _take_rows(batches: Iterable[Any], rows: npt.NDArray[np.int64] | None, schema: Any) -> pd.DataFrame:
    """Some rows, or all, of a table that comes in pieces, which are let go one by one."""
    import pyarrow as pa

    kept, start = [], 0
    for batch in batches:
        end = start + batch.num_rows
        if rows is None:
            kept.append(batch)
        else:
            first, last = np.searchsorted(rows, (start, end))
            kept.append(batch.take(pa.array(rows[first:last] - start)))
        start = end
    frame: pd.DataFrame = pa.Table.from_batches(kept, schema).to_pandas()
    del kept
    pa.default_memory_pool().release_unused()
    return frame


def _parse_feather(source: Path | BinaryIO, where: str, limit: RowLimit) -> Parsed:
    needs = f"{where} is feather, which needs pyarrow. Run `pip install pyarrow`, or use CSV."
    with _explained(f"{where} is a damaged feather file", "Write it again.", needs):
        import pyarrow as pa

        with pa.ipc.open_file(pa.memory_map(str(source)) if isinstance(source, Path) else source) as file:
            n_rows, n_bytes = 0, 0
            for k in range(file.num_record_batches):
                batch = file.get_batch(k)
                n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
                if not limit.cuts(n_rows):
                    _check_growth(n_bytes, where, LARGEST_UNPACKED)
            batches = (file.get_batch(k) for k in range(file.num_record_batches))
            return Parsed(_take_rows(batches, limit.choose(n_rows), file.schema), [], n_rows)


def _parse_stata(raw: bytes, where: str) -> pd.DataFrame:
    """Numbers as they are, labelled or not; what labels mean is not looked at."""
    with _explained(f"{where} cannot be read as a Stata file", "Save it again, or as CSV."):
        return pd.read_stata(io.BytesIO(raw), convert_categoricals=False, convert_dates=True)


def _parse_npy(raw: bytes, where: str) -> Any:
    try:
        return np.load(io.BytesIO(raw), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise TableError(f"{where} cannot be read as npy: {error}. Save a plain array of numbers.") from None
