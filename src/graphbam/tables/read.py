"""Anything that looks like a table → ``Table(names, x_md)``: unique names and one column of numbers each.

Files are recognised by their content, not only by their suffix: text with any common delimiter, parquet, feather, npy,
spreadsheets, Stata, also packed (`graphbam.tables.formats`). In memory: pandas, polars and arrow tables, arrays,
tensors, sparse matrices, AnnData, dicts of columns, lists of records, open files. What had to be guessed or changed is
listed in ``Table.changes``. Of a very long table only some rows are read (`graphbam.tables.limit`).
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from graphbam.errors import Setting, TableError, spell_count
from graphbam.tables.columns import (
    MOST_LEVELS,
    Coded,
    Encode,
    check_encode,
    code_column,
    is_asked,
    scale_levels,
)
from graphbam.tables.formats import LONG, PACKINGS, PART, SUFFIXES, ZIP, find_suffix, parse_file, parse_long
from graphbam.tables.limit import ALL, RowLimit
from graphbam.tables.spelling import HOW_TO_WRITE, find_marks, names_targets
from graphbam.tables.table import Matrix, Table, spell_columns
from graphbam.tables.textfile import Parsed

FEWEST_SHARED = 20
"""Values of a column of text from which rows that share one are told of."""

_WORDS = re.compile(r"[^\W\d_]")
_SAMPLE_NAME = re.compile(r"(sample|subject|patient|participant|case|cell|donor|row|obs|gsm)[\W_]*\d+$", re.IGNORECASE)
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def read_table(data: Any, *, encode: Encode = False, drop: str | Iterable[str] = (), limit: RowLimit = ALL) -> Table:
    """Read a table from a file or from memory.

    Parameters
    ----------
    data : path, open file, DataFrame, array, mapping, AnnData, or what `load_frame` made of it
        See the module docstring.
    encode : bool, names of columns, or mapping from column name to levels in order or to ``{level: number}``
        Code text and dates as numbers (rules: `graphbam.tables.columns`) instead of refusing them.
    drop : str or iterable of str
        Columns to leave out.
    limit : RowLimit
        How many rows to read at most.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If the source cannot be read, or a column is not made of numbers.

    Examples
    --------
    >>> table = read_table({"a": [1, 2, 3], "b": [2.5, None, 1.0]})
    >>> table.names, table.x_md[1].tolist()
    (('a', 'b'), [2.0, nan])
    """
    encode = {str(name): levels for name, levels in encode.items()} if isinstance(encode, Mapping) else encode
    named = check_encode(encode)
    frame, source, found, n_rows, rows = data if isinstance(data, Loaded) else load_frame(data, limit)
    labels = [] if isinstance(frame.index, pd.RangeIndex) else [str(label) for label in frame.index]
    unread = _tell_of_index(frame.index)
    frame = frame.reset_index(drop=True) if rows is None else frame.set_axis(pd.Index(rows), axis=0)
    names, renamed = unique_names(list(frame.columns))
    frame = frame.set_axis(pd.Index(names, dtype=object), axis=1)
    changes = [*found, *unread, *renamed]
    whole, frame = frame, _drop_columns(frame, drop, changes)
    for unknown in (name for name in named if name not in frame.columns):
        near = not_among(unknown, list(frame.columns))
        raise TableError(Setting("encode"), f" names the column {unknown!r}, {near}")
    warnings: list[str] = []
    names, x_md, unordered = _code_columns(frame, encode, source, changes, warnings)
    _check_width(names, x_md, source, list(frame.columns))
    if frame.columns[0] not in names:  # taken for row labels
        labels = [str(label) for label in frame.iloc[:, 0]]
    warnings += [*suspect_transposed(names, labels, len(x_md)), *_warn_of_shared(whole)]
    n_found = n_rows if n_rows > len(x_md) else None
    is_there = set(names)
    gone = tuple(name for name in frame.columns if name not in is_there)
    known = Table(names, x_md, source, tuple(changes), tuple(warnings), n_rows_found=n_found, rows=rows, labels=gone)
    return dataclasses.replace(known, unordered=unordered)


def find_tables(folder: str | os.PathLike[str]) -> list[Path]:
    """List the table files of a folder, in alphabetical order."""
    folder = Path(folder)
    if not folder.is_dir():
        raise TableError(f"{folder} is not a folder. Pass a folder that holds tables, or the tables themselves.")
    found = sorted(p for p in folder.iterdir() if p.is_file() and find_suffix(p) in SUFFIXES and p.name[0] != ".")
    if not found:
        packed = ", ".join(PACKINGS)
        raise TableError(f"no table was found in {folder}. Looked for {', '.join(SUFFIXES)}, also with {packed}.")
    return found


# ── where it comes from ──────────────────────────────────────────────────────────────────────────────────


class Loaded(NamedTuple):
    """A table as it came."""

    frame: pd.DataFrame
    """The rows that were read."""
    source: str
    """Where it came from, in words."""
    changes: list[str]
    n_rows: int
    """Rows of the source, read or not."""
    rows: npt.NDArray[np.int64] | None = None
    """Which of them were read, from 0 on; None: all, or several tables were joined."""


def load_frame(data: Any, limit: RowLimit = ALL) -> Loaded:
    """Bring any source into a DataFrame; of a long one, only the rows within the limit."""
    if isinstance(data, (str, os.PathLike)):
        (found, changes, n_rows), source = _load_path(data, limit)
    elif hasattr(data, "read"):
        (found, changes, n_rows), source = _load_stream(data, limit)
    else:
        data, n_before = _thin_out(data, limit)
        found, kind = _load_memory(data)
        n_rows = len(found) if n_before is None else n_before
        changes, source = [], f"{kind} with {spell_count(n_rows, 'row')} and {spell_count(found.shape[1], 'column')}"
    frame, rows = _as_frame(found), limit.choose(n_rows)
    if rows is not None and len(frame) == n_rows:  # what was not read in pieces
        frame = take_rows(frame, rows)
    return Loaded(frame, source, changes + limit.tell(n_rows), n_rows, rows)


def _thin_out(data: Any, limit: RowLimit) -> tuple[Any, int | None]:
    """Leave rows out of what grows when it is read, sparse matrices and AnnData, and say how many it had; else None."""
    is_sparse, is_anndata = hasattr(data, "tocsr"), hasattr(data, "X") and hasattr(data, "var_names")
    shape = getattr(data.X if is_anndata else data, "shape", None)
    rows = limit.choose(shape[0]) if shape and (is_sparse or is_anndata) else None
    if rows is None or shape is None:
        return data, None
    return (data.tocsr() if is_sparse else data)[rows], shape[0]


def take_rows(frame: pd.DataFrame, rows: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Some rows of a table; those without labels are numbered anew."""
    return frame.iloc[rows].reset_index(drop=True) if isinstance(frame.index, pd.RangeIndex) else frame.iloc[rows]


def _load_path(path: str | os.PathLike[str], limit: RowLimit) -> tuple[Parsed, str]:
    where = str(path)
    if not where:
        raise TableError("the path of the table is empty. Name a file.")
    if where.startswith(("http://", "https://", "s3://", "gs://", "ftp://")):
        raise TableError(f"{where} is a web address; only local files are read. Download it and pass its path.")
    file, part = _split_part(where)
    place = Path(file).expanduser()
    parsed = parse_long(place, file, limit) if not part and _is_long(place) else None
    return parsed or parse_file(_read_bytes(place), file, part, limit), where


def _is_long(path: Path) -> bool:
    """Whether a file is too long to be held as a whole; what cannot be opened is left to `_read_bytes`."""
    try:
        return path.stat().st_size >= LONG and path.is_file() and os.access(path, os.R_OK)
    except (OSError, ValueError):
        return False


def _as_frame(found: Any) -> pd.DataFrame:
    return found if isinstance(found, pd.DataFrame) else _load_array(found)


def _split_part(where: str) -> tuple[str, str]:
    """File and part of ``"book.xlsx::Sheet2"``; a file that is called so comes first."""
    file, mark, part = where.rpartition(PART)
    return (file, part) if mark and not os.path.lexists(where) else (where, "")


def _read_bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise IsADirectoryError
        return path.read_bytes()
    except IsADirectoryError:
        raise TableError(f"{path} is a folder, not a table. Pass one file, or the folder to infer_many.") from None
    except FileNotFoundError:
        raise TableError(f"{_shown(path)} does not exist. {_near_path(path)}") from None
    except PermissionError:
        raise TableError(f"{path} may not be read. Change its permissions, or copy it where you may read.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TableError(f"{_shown(path)} cannot be opened: {reason}. Pass the path of a table file.") from None


def _shown(path: Path) -> str:
    text = repr(str(path))[1:-1]
    return text if len(text) <= 120 else text[:119] + "…"


def _near_path(path: Path) -> str:
    """'Did you mean …', from the files beside it."""
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return "Check the path."
    near = difflib.get_close_matches(path.name, beside, n=1)
    return f"Did you mean {str(path.parent / near[0])!r}?" if near else "Check the path."


def _load_stream(stream: Any, limit: RowLimit) -> tuple[Parsed, str]:
    name = getattr(stream, "name", "")
    where = name if isinstance(name, str) and name else "the open file"
    content = stream.read()
    raw = content.encode() if isinstance(content, str) else bytes(content)
    file, mark, part = where.rpartition(PART)
    has_parts = bool(mark) and raw[:4] == ZIP  # what came out of an archive is called so, and has no parts
    return parse_file(raw, file, part, limit) if has_parts else parse_file(raw, where, limit=limit), where


def _load_memory(data: Any) -> tuple[pd.DataFrame, str]:
    """DataFrames of every kind, AnnData, mappings, records, arrays: told apart by what they can do."""
    if isinstance(data, pd.DataFrame):
        return data, "a DataFrame"
    if isinstance(data, pd.Series):
        return data.to_frame(), "a Series"
    if hasattr(data, "X") and hasattr(data, "var_names"):
        return _load_anndata(data), "an AnnData"
    if hasattr(data, "collect") and hasattr(data, "lazy"):  # polars.LazyFrame
        data = data.collect()
    if hasattr(data, "compute") and hasattr(data, "columns"):  # dask
        return _load_memory(data.compute())[0], f"a {type(data).__name__}"
    if hasattr(data, "get_column") and hasattr(data, "columns"):  # polars, which needs pyarrow for its own to_pandas
        return pd.DataFrame({name: _load_polars(data.get_column(name)) for name in data.columns}), "a polars DataFrame"
    if hasattr(data, "to_pandas"):
        return _load_memory(data.to_pandas())[0], f"a {type(data).__name__}"
    if isinstance(data, Mapping) and not hasattr(data, "toarray"):  # some sparse matrices are mappings too
        return _load_mapping(data), "a mapping"
    if isinstance(data, (list, tuple)) and data and all(isinstance(row, Mapping) for row in data):
        return pd.DataFrame(list(data)), "a list of records"
    if hasattr(data, "columns"):  # as an array it would lose its names
        raise TableError(f"a {type(data).__name__} is not known as a table. Turn it into a pandas DataFrame first.")
    return _load_array(data), "an array"


def _load_polars(column: Any) -> Any:
    """Values of a polars column; the levels of an Enum keep their order, nested values stay whole."""
    if type(getattr(column, "dtype", None)).__name__ == "Enum":
        return pd.Categorical(column.to_list(), categories=column.dtype.categories.to_list(), ordered=True)
    values = column.to_numpy()
    return values if values.ndim == 1 else pd.Series(column.to_list(), dtype=object)


def _load_anndata(data: Any) -> pd.DataFrame:
    if data.X is None:
        raise TableError("this AnnData holds no matrix: its .X is empty. Fill .X, or pass one of its layers.")
    frame = _load_array(data.X)
    frame.columns = pd.Index([str(name) for name in data.var_names])
    return frame


def _load_mapping(data: Mapping[Any, Any]) -> pd.DataFrame:
    try:
        return pd.DataFrame(dict(data))
    except (ValueError, TypeError) as error:
        raise TableError(
            f"this mapping is not a table of columns: {error}. Give every column equally many values."
        ) from None


def _load_array(data: Any) -> pd.DataFrame:
    if data is None or isinstance(data, (int, float, complex, bytes)):
        raise TableError(f"{data!r} is not a table. Pass a path, a DataFrame or a two-dimensional array.")
    if isinstance(data, tuple) and data and hasattr(data[0], "adjacency"):
        raise TableError(
            "this is a pair of a graph and its table, as simulate returns it. Pass the table alone: "
            "`graph, table = simulate(...)`, then `infer(table)`."
        )
    if hasattr(data, "toarray"):  # scipy.sparse
        data = data.toarray()
    if hasattr(data, "detach"):  # torch
        data = data.detach().cpu()
    try:
        array = data if np.ma.isMaskedArray(data) else np.asarray(data)  # what is masked becomes missing below
    except (ValueError, TypeError) as error:
        raise TableError(f"a {type(data).__name__} is not a table: {error}. Make every row equally long.") from None
    if array.dtype.names:
        return pd.DataFrame({name: array[name] for name in array.dtype.names})
    if array.ndim != 2:
        raise TableError(
            f"Expected a 2D array, one row per sample and one column per variable; got shape {array.shape} with "
            f"{array.ndim} dimension(s). Reshape your data, for example by x.reshape(n_samples, n_variables)."
        )
    return pd.DataFrame(array, columns=[f"x{k}" for k in range(array.shape[1])])


# ── names, columns, checks ───────────────────────────────────────────────────────────────────────────────


def unique_names(labels: Sequence[Any]) -> tuple[tuple[str, ...], list[str]]:
    """Make a column's label a name: text, not empty, no control characters, no two alike.

    Examples
    --------
    >>> names, changes = unique_names(["a", "a", "", 7])
    >>> names
    ('a', 'a_2', 'column_3', '7')
    >>> changes[0]
    "columns 'a' share a name: renamed to 'a', 'a_2'"
    """
    cleaned = [_clean_label(label) for label in labels]
    names, changes = [], []
    for k, name in enumerate(cleaned):
        if not name:
            changes.append(f"nameless column {k + 1} is called 'column_{k + 1}'")
        names.append(name or f"column_{k + 1}")
    taken = set(names)
    for name, count in Counter(names).items():
        if count > 1:
            places = [k for k, other in enumerate(names) if other == name]
            for k in places[1:]:
                names[k] = _free_name(name, taken)
            shown = ", ".join(repr(names[k]) for k in places[:4]) + (", …" if len(places) > 4 else "")
            changes.append(f"columns {name!r} share a name: renamed to {shown}")
    return tuple(names), sorted(changes)


def _tell_of_index(index: pd.Index) -> list[str]:
    """Name an index that was a column before, and may be missed."""
    names = [repr(name) for name in index.names if _clean_label(name) not in ("", "Unnamed: 0")]
    if not names:
        return []
    what = "is the index and no column" if len(names) == 1 else "are the index and no columns"
    return [f"{', '.join(names)} {what}: left out (reset_index makes a column of it)"]


def _clean_label(label: Any) -> str:
    """Text without outer spaces; characters that no file format can carry become '�'."""
    if isinstance(label, tuple):
        label = "_".join(str(part) for part in label if str(part))
    is_missing = label is None or label is pd.NA or label is pd.NaT or label != label
    text = "" if is_missing else str(label).strip()
    return _UNWRITABLE.sub("�", text)


def _free_name(name: str, taken: set[str]) -> str:
    k = 2
    while f"{name}_{k}" in taken:
        k += 1
    taken.add(f"{name}_{k}")
    return f"{name}_{k}"


def not_among(name: str, names: Sequence[str]) -> str:
    """'which is not in the table …', with the nearest name or the first few."""
    near = difflib.get_close_matches(name, names, n=1)
    listed = ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")
    return "which the table does not have. " + (f"Did you mean {near[0]!r}?" if near else f"It has {listed}.")


def _drop_columns(frame: pd.DataFrame, drop: str | Iterable[str], changes: list[str]) -> pd.DataFrame:
    wanted = [drop] if isinstance(drop, str) else [str(name) for name in drop]
    for name in wanted:
        if name not in frame.columns:
            raise TableError(Setting("drop"), f" names the column {name!r}, {not_among(name, list(frame.columns))}")
    if wanted:
        changes.append(f"left out as asked: {', '.join(map(repr, wanted))}")
    return frame.drop(columns=wanted)


def _code_columns(
    frame: pd.DataFrame, encode: Encode, source: str, changes: list[str], warnings: list[str]
) -> tuple[tuple[str, ...], Matrix, tuple[str, ...]]:
    """Names and numbers of the columns, and which of them are levels without an order."""
    coded = {name: code_column(frame[name], name, encode) for name in frame.columns}
    _drop_labels(coded, encode, changes, warnings)
    unreadable = {name: one for name, one in coded.items() if one.values is None}
    targets = [name for name in coded if _names_targets(frame, name)]
    if unreadable:
        _refuse_columns(unreadable, source, encode, targets)
    unordered = tuple(name for name, one in coded.items() if one.levels)
    coded = scale_levels(coded)
    warnings += [*_warn_of_levels(coded), *_warn_of_targets(frame, targets)]
    changes += _tell_of_codes(coded)
    if not coded:
        return (), np.empty((len(frame), 0)), ()
    x_md = np.column_stack([one.values for one in coded.values() if one.values is not None])
    return tuple(coded), x_md, unordered


def _tell_of_codes(coded: Mapping[str, Coded]) -> list[str]:
    """How columns were coded, those alike in one sentence."""
    notes = dict.fromkeys(one.note for one in coded.values() if one.note)
    said = {note: [name for name, one in coded.items() if one.note == note] for note in notes}
    return [f"{spell_columns(about)}: {note}" for note, about in said.items()]


def _warn_of_levels(coded: Mapping[str, Coded]) -> list[str]:
    """Name text columns with so many levels that numbers for them have no meaning, as of clock times or of places."""
    many = [name for name, one in coded.items() if len(one.levels) > MOST_LEVELS]
    if not many:
        return []
    has, its = ("has", "its") if len(many) == 1 else ("have", "their")
    return [
        f"{spell_columns(many)} {has} more than {MOST_LEVELS} levels of text, numbered by how frequent they are, which "
        f"is no order: {its} links are easily missed; write such levels as numbers, or join some of them"
    ]


def _warn_of_shared(frame: pd.DataFrame) -> list[str]:
    """Name columns of text, left out or not, that tell individuals apart of whom there are several rows each.

    There are more values than rows of each: of a category it is the other way round. Dates and numbers tell none apart.
    """
    told = []
    for name in frame.columns:
        texts = [cell for cell in frame[name].array if isinstance(cell, str)] if frame[name].dtype.kind == "O" else []
        if 2 * len(texts) < len(frame) or not texts or not _WORDS.search(texts[0]):
            continue
        counts = pd.Series(texts).value_counts()
        is_shared = len(counts) >= FEWEST_SHARED and 2 <= counts.mean() <= len(counts) and (counts > 1).mean() > 0.5
        if is_shared and not find_marks(texts) and not _names_targets(frame, name):
            told.append(
                f"several rows share a value of column {name!r} ({len(counts)} values): if these are rows of one "
                "individual or place, they are no independent draws, and columns that have nothing to do with each "
                "other get links; keep one row of each value, or their mean"
            )
    return told


def _names_targets(frame: pd.DataFrame, name: str, *, as_written: bool = False) -> bool:
    """Whether a column is text that names other columns."""
    is_text = not pd.api.types.is_numeric_dtype(frame[name])
    return is_text and names_targets(frame[name], set(frame.columns) - {name}, as_written=as_written)


def _warn_of_targets(frame: pd.DataFrame, targets: Sequence[str]) -> list[str]:
    """Say what a column that names others may be for: as a variable it hides what it tells of directions."""
    return [
        f"column {name!r} names other columns: if it lists what an experiment set in each row, set "
        f"{Setting('interventions', name).as_both()}, and it will tell which way links point"
        + ("" if _names_targets(frame, name, as_written=True) else f"; {HOW_TO_WRITE}")
        for name in targets
    ]


def suspect_transposed(names: Sequence[str], labels: Sequence[str], n_rows: int) -> list[str]:
    """A warning if a table seems to lie on its side: wider than long, columns called as rows are, or the reverse.

    Examples
    --------
    >>> suspect_transposed(["patient1", "patient2", "patient3"], ["age", "weight"], 2)[0][:59]
    'the table may lie on its side: 2 rows but 3 columns, called'
    >>> suspect_transposed(["age", "weight", "height"], ["patient1", "patient2"], 2)
    []
    """
    if len(names) <= n_rows:
        return []
    is_sample = [_SAMPLE_NAME.match(name) is not None for name in names]
    if not (_are_numbered(names) and labels and not _are_numbered(labels)) and sum(is_sample) < 0.8 * len(names):
        return []
    called = f"called {', '.join(map(repr, names[:3]))}, …" + (f" and rows {labels[0]!r}, …" if labels else "")
    return [
        f"the table may lie on its side: {spell_count(n_rows, 'row')} but {len(names)} columns, {called}; "
        "if the rows are the variables, transpose it"
    ]


def _are_numbered(words: Sequence[str]) -> bool:
    """Whether four in five are one and the same word with a number behind it, or a number alone."""
    stems = Counter(match[1] for word in words if (match := re.fullmatch(r"(\D*)\d+", word)))
    return bool(stems) and max(stems.values()) >= 0.8 * len(words)


def _drop_labels(coded: dict[str, Coded], encode: Encode, changes: list[str], warnings: list[str]) -> None:
    """Leave out a first column of identifiers; any column of them, if all text is to be coded; none that is named."""
    named = [] if isinstance(encode, Mapping) else check_encode(encode)
    codes_all = not named and bool(encode)
    labels = [
        name
        for k, (name, one) in enumerate(coded.items())
        if one.is_label and name not in named and (codes_all or k == 0)
    ]
    for name in labels:
        if coded[name].is_mixed:
            warnings.append(f"column {name!r} was left out as row labels, and holds {coded[name].note}")
        del coded[name]
        changes.append(f"column {name!r} holds text in which no entry repeats: taken for row labels and left out")


def _refuse_columns(unreadable: Mapping[str, Coded], source: str, encode: Encode, targets: Sequence[str] = ()) -> None:
    """Say which columns are not made of numbers; text is offered to be coded, spoilt numbers to be corrected."""
    shown = [f"column {name!r} holds {one.note}" for name, one in unreadable.items()]
    more = f"; and {spell_count(len(shown) - 3, 'more column')} like that" if len(shown) > 3 else ""
    is_complex = {name for name, one in unreadable.items() if one.note.startswith("complex")}
    if is_complex:
        shown[0] = f"Complex data not supported: {shown[0]}"
    advice: list[str | Setting] = []
    spoilt = [name for name, one in unreadable.items() if one.is_spoilt]
    rows = {unreadable[name].only_text for name in spoilt}
    if len(spoilt) > 1 and len(rows) == 1 and (row := rows.pop()) is not None:
        advice.append(f"Take row {row + 1} out if it holds headings or units, or correct its cells. Or use ")
    elif spoilt:
        where = "" if len(spoilt) == len(unreadable) else f"In {spell_columns(spoilt)}: "
        advice.append(f"{where}correct those cells, or empty those cells if they stand for missing values. Or use ")
    elif any(isinstance(encode, Mapping) and name in encode for name in unreadable):
        advice += ["List all levels in ", Setting("encode"), ", or use "]
    else:
        advice.append("Pass real parts, sizes or angles as columns of their own, or use " if is_complex else "Use ")
    text = [
        name
        for name, one in unreadable.items()
        if not (one.is_spoilt or one.is_mixed or name in is_complex or is_asked(encode, name))
    ]
    if text:
        named = [] if isinstance(encode, Mapping) else check_encode(encode)
        wanted = Setting("encode", [*named, *text[:8]] if named else True)
        advice += [wanted, " for text and dates to count as numbers, or "]
    rest = " and so on" if len(unreadable) > 8 else ""
    leave = f"{rest} to leave {'them' if len(unreadable) > 1 else 'it'} out."
    found = f"in {source}, {'; '.join(shown[:3])}{more}. "
    first = str(advice[0])
    advice += [Setting("drop", list(unreadable)[:8]), leave]
    for name in targets:
        advice += [f" If {name!r} lists what an experiment set in each row, use ", Setting("interventions", name), "."]
    raise TableError(found, first[0].upper() + first[1:], *advice[1:])


def _check_width(names: Sequence[str], x_md: Matrix, source: str, columns: Sequence[str]) -> None:
    if len(names) >= 2:
        return
    found = f"one column, {names[0]!r}" if names else "no column"
    if not names and len(columns) == 1:
        found = f"only the column {columns[0]!r}, which holds text in which no entry repeats: taken for row labels"
    raise TableError(
        f"{source}: {len(names)} feature(s) (shape={x_md.shape}) while a minimum of 2 is required; found {found}. "
        "A graph needs at least two columns of numbers; check the delimiter."
    )
