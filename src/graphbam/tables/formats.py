"""The bytes of a file → a pandas DataFrame: text, parquet, feather, npy, spreadsheets, Stata; packed or not.

Files are recognised by their content, not only by their suffix. What is packed is unpacked up to a limit, so that no
small file fills the memory. A part of a file goes by its name behind two colons: ``"book.xlsx::Sheet2"``,
``"archive.zip::cells.csv"``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from graphbam.errors import SeveralTablesError, TableError
from graphbam.tables.textfile import parse_text

PACKINGS = (".gz", ".bz2", ".xz")
"""Suffixes behind that of a table that was packed."""

SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".feather", ".npy", ".xlsx", ".dta", ".zip")
"""File names that are taken for tables in a folder, each also with one of `PACKINGS` behind it."""

LARGEST_UNPACKED = 4 * 2**30
"""Bytes that a packed file, or the cells of a table, may grow to."""

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


class Unpacked(NamedTuple):
    """A file without its packing."""

    raw: bytes
    name: str
    """Of the file, or of the one in an archive: its suffix still says something."""


def parse_file(raw: bytes, where: str, part: str = "") -> tuple[Any, list[str]]:
    """Parse the content of a file.

    Parameters
    ----------
    raw : bytes
        The whole file.
    where : str
        Its name, for its suffix and for messages.
    part : str
        Which sheet of a spreadsheet, or which file of an archive.

    Returns
    -------
    DataFrame or ndarray, list of str
        What was found, and what had to be guessed, one sentence each.

    Examples
    --------
    >>> frame, _ = parse_file(bz2.compress(b"a,b\\n1,2\\n3,4\\n"), "t.csv.bz2")
    >>> frame["b"].tolist()
    [2, 4]
    """
    raw, name = unpack(raw, where, part)
    suffix = find_suffix(Path(name))
    if not raw.strip():
        raise TableError(f"{where} is empty: there is nothing to read. Check that it was saved completely.")
    if raw.startswith(ZIP):
        _is_spreadsheet(raw, where, LARGEST_UNPACKED)
        return _parse_spreadsheet(raw, where, part if name == where else "")
    if part and name == where:
        raise TableError(f"{where} has no parts, and {part!r} was asked for. Leave out {PART + part!r}.")
    for magic, what in _FOREIGN.items():
        if raw.startswith(magic):
            raise TableError(f"{where} is {what}.")
    if raw[:4] == b"PAR1":
        return _parse_parquet(raw, where), []
    if raw[:6] == b"ARROW1":
        return _parse_feather(raw, where), []
    if raw[:6] == b"\x93NUMPY":
        return _parse_npy(raw, where), []
    if raw.startswith(b"<stata_dta>") or suffix == ".dta":
        return _parse_stata(raw, where), []
    if suffix in (".parquet", ".npy", ".feather", ".xlsx"):
        raise TableError(f"{where} is not a {suffix[1:]} file in spite of its name. Save it again, or rename it.")
    head = raw.lstrip(b"\xef\xbb\xbf \r\n\t")[:1]
    if head in (b"<", b"{", b"["):
        kind = "a web page or XML" if head == b"<" else "JSON"
        raise TableError(f"{where} holds {kind}, not a delimited table. Save the table as CSV or parquet.")
    return parse_text(raw, where, suffix)


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
    for magic, kind, opener in (
        (b"\x1f\x8b", "gzip", gzip.open),
        (b"BZh", "bzip2", bz2.open),
        (b"\xfd7zXZ", "xz", lzma.open),
    ):
        if raw.startswith(magic):
            return _read_packed(raw, where, kind, opener, limit)
    return raw


def _read_packed(raw: bytes, where: str, kind: str, opener: Any, limit: int) -> bytes:
    try:
        with opener(io.BytesIO(raw)) as file:
            unpacked: bytes = file.read(limit + 1)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        raise TableError(f"{where} is a damaged or incomplete {kind} file. Compress or copy it again.") from None
    _check_growth(len(unpacked), where, limit)
    return unpacked


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
    shown = ", ".join(map(repr, found[:8])) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
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


def _parse_spreadsheet(raw: bytes, where: str, part: str) -> tuple[pd.DataFrame, list[str]]:
    """A sheet, read as if it had been saved as text: the same rules find header, row labels and missing cells."""
    sheets = _read_sheets(raw, where)
    name = _choose(part, list(sheets), where, "sheet")
    cells, changes = sheets[name], []
    filled = cells.notna().sum(axis=1)
    first = int((filled >= min(2, cells.shape[1])).to_numpy().argmax())
    if first:
        cells = cells.iloc[first:]
        changes.append(f"the first {first} row{'s hold' if first > 1 else ' holds'} a title, not names: left out")
    if len(sheets) > 1:
        changes.insert(0, f"read sheet {name!r} of {len(sheets)}")
    text = cells.to_csv(index=False, header=False, lineterminator="\n")
    frame, guessed = parse_text(text.encode(), where, ".csv")
    return frame, changes + guessed


def _read_sheets(raw: bytes, where: str) -> dict[str, pd.DataFrame]:
    """Sheets that hold something, without empty rows and columns."""
    try:
        book = pd.read_excel(io.BytesIO(raw), sheet_name=None, header=None, engine="openpyxl", dtype=object)
    except ImportError:
        raise TableError(
            f"{where} is a spreadsheet, which needs openpyxl. Run `pip install openpyxl`, or save it as CSV."
        ) from None
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise TableError(f"{where} cannot be read as a spreadsheet: {reason}. Save it as CSV.") from None
    tidy = {str(name): sheet.dropna(how="all").dropna(how="all", axis=1) for name, sheet in book.items()}
    return {name: sheet for name, sheet in tidy.items() if min(sheet.shape) > 1}


def _parse_parquet(raw: bytes, where: str) -> pd.DataFrame:
    try:
        from pyarrow.parquet import read_metadata

        about = read_metadata(io.BytesIO(raw))
        if 8 * about.num_rows * about.num_columns <= LARGEST_UNPACKED:
            return pd.read_parquet(io.BytesIO(raw))
    except ImportError:
        raise TableError(f"{where} is parquet, which needs pyarrow. Run `pip install pyarrow`, or use CSV.") from None
    except Exception as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise TableError(f"{where} is a damaged parquet file: {reason}. Write it again.") from None
    size = f"{about.num_rows} rows and {about.num_columns} columns"
    raise TableError(f"{where} has {size}, more than fit into {LARGEST_UNPACKED / 2**30:.0f} GiB. Keep fewer.")


def _parse_feather(raw: bytes, where: str) -> pd.DataFrame:
    try:
        import pyarrow as pa

        batches, n_bytes = [], 0
        with pa.ipc.open_file(io.BytesIO(raw)) as file:
            for k in range(file.num_record_batches):
                batches.append(file.get_batch(k))
                n_bytes += batches[-1].nbytes
                _check_growth(n_bytes, where, LARGEST_UNPACKED)
            frame: pd.DataFrame = pa.Table.from_batches(batches, file.schema).to_pandas()
            return frame
    except ImportError:
        raise TableError(f"{where} is feather, which needs pyarrow. Run `pip install pyarrow`, or use CSV.") from None
    except TableError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise TableError(f"{where} is a damaged feather file: {reason}. Write it again.") from None


def _parse_stata(raw: bytes, where: str) -> pd.DataFrame:
    """Numbers as they are, labelled or not; what labels mean is not looked at."""
    try:
        return pd.read_stata(io.BytesIO(raw), convert_categoricals=False, convert_dates=True)
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise TableError(f"{where} cannot be read as a Stata file: {reason}. Save it again, or as CSV.") from None


def _parse_npy(raw: bytes, where: str) -> Any:
    try:
        return np.load(io.BytesIO(raw), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise TableError(f"{where} cannot be read as npy: {error}. Save a plain array of numbers.") from None
