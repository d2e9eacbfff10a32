"""Tables whose graph is known, on disk: a folder each, with data.csv (or data.csv.gz) and graph.csv (source,target).

Two more files may lie beside them: bidirected.csv, one line per pair with a hidden common cause, and targets.csv (or
targets.csv.gz), a table of the same shape with 1 for every cell that an intervention set or shifted.

The one reader and writer of such folders: simulating, fine-tuning and benchmarks meet here.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphbam.errors import TableError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LabelledTable", "find_labelled", "read_labelled", "refuse_gaps", "write_labelled"]

DATA, GRAPH = ("data.csv", "data.csv.gz"), "graph.csv"
"""Names of the files; of two tables in one folder the first counts."""

HIDDEN, TARGETS = "bidirected.csv", ("targets.csv", "targets.csv.gz")
"""The same of what may be known beside the graph."""


@dataclasses.dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table and its graph."""

    names: tuple[str, ...]
    x_md: NDArray[np.float64]
    """Numbers as they stand in the file, M samples × D variables; missing ones are NaN."""
    adjacency: NDArray[np.int8]
    """[i, j] = 1 for every line "i,j" of graph.csv."""
    hidden_dd: NDArray[np.int8] | None = None
    """Symmetric, 1 for every pair of bidirected.csv; None without that file: nothing is known of hidden causes."""
    set_md: NDArray[np.bool_] | None = None
    """Cells that an intervention set; None without targets.csv."""


def find_labelled(folder: Path) -> list[Path]:
    """All folders with a table, `folder` itself or below it, in alphabetical order.

    Raises
    ------
    TableError
        If there is none, or one of them lacks graph.csv.
    """
    found = sorted({path.parent for name in DATA for path in folder.rglob(name)})
    if not found:
        raise TableError(f"no folder below {folder} holds both {DATA[0]} and {GRAPH}")
    for place in found:
        if not (place / GRAPH).is_file():
            raise TableError(f"{place} holds a table but no {GRAPH} with columns source,target")
    return found


def read_labelled(folder: Path, max_rows: int | None = None) -> LabelledTable:
    """Read one folder.

    Parameters
    ----------
    folder : Path
        One of those that `find_labelled` gives.
    max_rows : int, optional
        Of longer tables so many rows are drawn, the same ones every time.

    Returns
    -------
    LabelledTable

    Raises
    ------
    TableError
        If a column is not made of numbers, or another file does not fit the table.
    """
    path = next(folder / name for name in DATA if (folder / name).is_file())
    frame = _read_csv(path)
    names, set_md = tuple(map(str, frame.columns)), _read_targets(folder, frame)
    if max_rows is not None and len(frame) > max_rows:
        frame = frame.sample(max_rows, random_state=0)
    x_md, adjacency = _numbers(frame, path), _read_graph(folder / GRAPH, names)
    is_known = (folder / HIDDEN).is_file()
    hidden_dd = _read_pairs(folder / HIDDEN, names) if is_known else None
    return LabelledTable(names, x_md, adjacency, hidden_dd, None if set_md is None else set_md[frame.index])


def refuse_gaps(table: LabelledTable, place: Path) -> None:
    """Refuse a table with missing or infinite cells, where only complete ones can be used."""
    if (is_known := np.isfinite(table.x_md)).all():
        return
    name, number = table.names[int(np.argmin(is_known.all(axis=0)))], int((~is_known).sum())
    cells = "a missing or infinite cell" if number == 1 else f"{number} missing or infinite cells"
    raise TableError(f"{place}: the table has {cells} (first column: {name!r}); fill them, or leave the table out")


def write_labelled(folder: Path, table: LabelledTable, digits: int = 17) -> tuple[Path, Path]:
    """Write a table and its graph into a folder, which is made where needed; `read_labelled` gives them back.

    Parameters
    ----------
    folder : Path
        Where data.csv and graph.csv are to lie.
    table : LabelledTable
    digits : int
        Significant digits of the numbers; 17 keep every bit.

    Returns
    -------
    tuple of Path
        The two files.

    Raises
    ------
    TableError
        If the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TableError(f"cannot make the folder {folder}: {error.strerror}; choose another") from None
    data, graph = folder / DATA[0], folder / GRAPH
    cells = ([f"{number:.{digits}g}" for number in row] for row in table.x_md)
    arrows = ((table.names[i], table.names[j]) for i, j in np.argwhere(table.adjacency))
    for path, head, rows in ((data, table.names, cells), (graph, ("source", "target"), arrows)):
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows([head, *rows])
    return data, graph


def _read_csv(path: Path, *, as_text: bool = False) -> pd.DataFrame:
    import pandas as pd

    try:
        # A variable may be called NA: in a list of names that is a name.
        return pd.read_csv(path, dtype=str, keep_default_na=False) if as_text else pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read as a table: {error}") from None


def _numbers(frame: pd.DataFrame, path: Path) -> NDArray[np.float64]:
    if frame.empty:
        raise TableError(f"{path} has a header but no rows below it; check that it was saved completely")
    for name in frame.columns:
        if frame[name].dtype.kind not in "biuf":
            raise TableError(f"{path}: column {name!r} holds text (first: {frame[name].iloc[0]!r}); use numbers only")
    return frame.to_numpy(float)


def _read_graph(path: Path, names: tuple[str, ...]) -> NDArray[np.int8]:
    edges = _read_csv(path, as_text=True)
    if not {"source", "target"} <= set(edges.columns):
        raise TableError(f"{path} has the columns {', '.join(edges.columns)}; it needs source and target")
    return _mark(zip(edges["source"], edges["target"], strict=True), names, path)


def _read_pairs(path: Path, names: tuple[str, ...]) -> NDArray[np.int8]:
    """Pairs without order: the first two columns of a file, whatever they are called."""
    pairs = _read_csv(path, as_text=True)
    if len(pairs.columns) < 2:
        raise TableError(f"{path} has the columns {', '.join(pairs.columns)}; it needs two: the variables of each pair")
    marked = _mark(zip(pairs.iloc[:, 0], pairs.iloc[:, 1], strict=True), names, path)
    return marked | marked.T


def _mark(pairs: Iterable[tuple[str, str]], names: tuple[str, ...], path: Path) -> NDArray[np.int8]:
    """A matrix with 1 for every pair of names."""
    place = {name: index for index, name in enumerate(names)}
    marked = np.zeros((len(names), len(names)), np.int8)
    for source, target in pairs:
        for name in (source, target):
            if name not in place:
                raise TableError(f"{path} names {name!r}, which is no column of the table; correct one of the two")
        if source == target:
            raise TableError(f"{path} says that {source!r} points at itself; drop that line")
        marked[place[source], place[target]] = 1
    return marked


def _read_targets(folder: Path, table: pd.DataFrame) -> NDArray[np.bool_] | None:
    """Which cells were set; None if the folder does not say."""
    path = next((folder / name for name in TARGETS if (folder / name).is_file()), None)
    if path is None:
        return None
    frame = _read_csv(path)
    if list(frame.columns) != list(table.columns) or len(frame) != len(table):
        raise TableError(f"{path} is no table of {len(table)} rows with the columns of the data; make it fit")
    set_md = _numbers(frame, path)
    if not np.isin(set_md, (0, 1)).all():
        raise TableError(f"{path} holds {set_md[~np.isin(set_md, (0, 1))][0]:g}; use 1 for cells that were set, else 0")
    return set_md.astype(bool)
