"""Which cells an experiment set: said by a mask, by a column that lists targets, or by one table per experiment.

    mask                        0 or 1 for every cell, as an array, a table with the same columns, or the `Path` of a
                                file with one; rows with labels are matched by these
    name of a column            its cells name the columns that were set in that row: ``PKA``, ``PKA; Mek``, or nothing
    {"": table, "PKA": table}   tables of the same columns, by what was set in all of their rows; ``""`` for nothing

A cell that was set says nothing of what usually decides the variable, and all the more of what it acts on.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from graphbam.errors import Setting, TableError, spell_count
from graphbam.tables.columns import Encode
from graphbam.tables.limit import ALL, RowLimit
from graphbam.tables.read import Loaded, load_frame, not_among, read_table, take_rows, unique_names
from graphbam.tables.spelling import HOW_TO_WRITE, NOTHING, find_meant
from graphbam.tables.table import BoolMatrix, Table, spell_columns

Interventions: TypeAlias = Any
"""What users may give: a mask, the name of a column, a mapping from targets to tables, or None."""

FEW_SET = 5
"""Rows in which a column must have been set. All of its links are directed, and after a single row an arrow is right
about as often as by the toss of a coin."""

MOST_NAMED = 8

_BETWEEN = re.compile(r"\s*[;,|+&]\s*")


def read_experiment(
    data: Any,
    interventions: Interventions,
    *,
    encode: Encode = False,
    drop: str | Iterable[str] = (),
    limit: RowLimit = ALL,
) -> Table:
    """Read a table together with what was set in it.

    Parameters
    ----------
    data : Any
        Everything `read_table` takes; None if `interventions` holds all tables.
    interventions : mask, str, mapping or None
        See the module docstring.
    encode, drop, limit
        As in `read_table`; a mask and its table lose the same rows.

    Returns
    -------
    Table
        With `set_md`, unless nothing was set.

    Examples
    --------
    >>> rows = {"a": [1.0, 2, 3, 4], "b": [2.0, 1, 4, 3], "target": ["", "b", "a; b", "none"]}
    >>> table = read_experiment(rows, "target")
    >>> table.names, table.set_md.astype(int).tolist()
    (('a', 'b'), [[0, 0], [0, 1], [1, 1], [0, 0]])
    """
    if interventions is None:
        return read_table(data, encode=encode, drop=drop, limit=limit)
    if isinstance(interventions, Mapping) and not hasattr(interventions, "columns"):
        return _stack_tables(data, interventions, encode, drop, limit)
    if data is None:
        found = f", and these are a {type(interventions).__name__}"
        raise TableError(
            "without a table, ", Setting("interventions"), f" must be a mapping from targets to tables{found}."
        )
    loaded = load_frame(data, limit)
    if isinstance(interventions, str):
        return _note(*_read_column(loaded, interventions, encode, drop), f"targets read from column {interventions!r}")
    table = read_table(loaded, encode=encode, drop=drop)
    _refuse_flat(interventions, "")
    has_names = hasattr(interventions, "columns") or isinstance(interventions, os.PathLike)
    about = "cells that were set are marked"
    if isinstance(data, pd.DataFrame) and isinstance(interventions, pd.DataFrame):
        matched = _match_rows(interventions, data)
        about += "" if matched is interventions else ", rows matched by their labels"
        interventions = matched
    set_md = _read_mask(load_frame(interventions, limit), has_names, table, loaded.frame)
    return _note(table, set_md, about)


def _note(table: Table, set_md: BoolMatrix, about: str) -> Table:
    """The table with its marks, and a sentence on them; refused where every cell was set."""
    if set_md.all():
        raise TableError(
            Setting("interventions"),
            " marks every cell of the table as set by an experiment: then nothing in it depends on anything. Mark the "
            "cells that were set with 1, all others with 0.",
        )
    n_rows, targets = int(set_md.any(axis=1).sum()), [table.names[k] for k in np.flatnonzero(set_md.any(axis=0))]
    where = f"in {n_rows} of {len(set_md)} rows, {spell_columns(targets)}" if targets else "none was set"
    changes = (*table.changes, f"{about}: {where}")
    warnings = (*table.warnings, *_warn_of_few(table.names, set_md), *_warn_of_all(table.names, set_md))
    if not targets:
        warnings = (*warnings, f"interventions were given, but no cell was set in {len(set_md)} rows")
    return dataclasses.replace(table, changes=changes, warnings=warnings, set_md=set_md if targets else None)


def _warn_of_few(names: Sequence[str], set_md: BoolMatrix) -> list[str]:
    """Name the columns that were set in too few rows to learn much from it."""
    counts_d = set_md.sum(axis=0)
    few = np.flatnonzero((counts_d > 0) & (counts_d < FEW_SET))
    if not len(few):
        return []
    shown = ", ".join(f"{names[k]!r} in {spell_count(counts_d[k], 'row')}" for k in few[:MOST_NAMED])
    more = f" and {len(few) - MOST_NAMED} more in as few" if len(few) > MOST_NAMED else ""
    whose, at = ("its", "it") if len(few) == 1 else ("their", "them")
    return [
        f"experiments set {shown}{more} only, which hardly tells which way {whose} links point: arrows at {at} are "
        "little more than guesses"
    ]


def _warn_of_all(names: Sequence[str], set_md: BoolMatrix) -> list[str]:
    """Name the columns that were set in every row: of these an order in time says as much, and is followed exactly."""
    everywhere = [names[k] for k in np.flatnonzero(set_md.all(axis=0))]
    if not everywhere:
        return []
    was, them = ("was", "it") if len(everywhere) == 1 else ("were", "them")
    return [
        f"{spell_columns(everywhere)} {was} set in every row, and no row shows what happens otherwise: links are surer "
        f"without these marks and with an order in time that has {them} first ({Setting('tiers').as_both()})"
    ]


# ── a column of targets ──────────────────────────────────────────────────────────────────────────────────


def _read_column(loaded: Loaded, column: str, encode: Encode, drop: str | Iterable[str]) -> tuple[Table, BoolMatrix]:
    frame = loaded.frame
    names, _ = unique_names(list(frame.columns))
    if column not in names:
        raise TableError(Setting("interventions"), f" names the column {column!r}, {not_among(column, names)}")
    place = names.index(column)
    others = frame.iloc[:, [k for k in range(len(names)) if k != place]]
    table = read_table(loaded._replace(frame=others), encode=encode, drop=drop)
    set_md = np.zeros(table.shape, dtype=bool)
    cells = frame.iloc[:, place]
    known: dict[tuple[type, str], list[int]] = {}
    for row, cell in enumerate(cells):
        key = type(cell), str(cell)
        if key not in known:
            known[key] = _find_targets(cell, table.names, f"column {column!r}")
        set_md[row, known[key]] = True
    return table, set_md


def _find_targets(cell: Any, names: Sequence[str], where: str) -> list[int]:
    """Places of the columns that a cell names."""
    parts: Iterable[Any]
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        parts = cell
    elif pd.isna(cell):
        parts = []
    else:
        text = str(cell).strip()
        text = text.removesuffix(".0") if isinstance(cell, float) else text
        parts = [text] if text in names or text.lower() in NOTHING else _BETWEEN.split(text)
    targets = [name for part in parts if (name := str(part).strip())]
    if len(targets) == 1 and targets[0] not in names and targets[0].lower() in NOTHING:
        return []
    for name in targets:
        if name not in names and (meant := find_meant(name, names)):
            raise TableError(f"{where} names the target {name!r}, which seems to mean {meant!r}: {HOW_TO_WRITE}.")
        if name not in names:
            wanted = "Say which columns of the table were set, or nothing"
            raise TableError(f"{where} names the target {name!r}, {not_among(name, list(names))} {wanted}.")
    return [names.index(name) for name in targets]


# ── a mask ────────────────────────────────────────────────────────────────────────────────────────────────


def _read_mask(loaded: Loaded, has_names: bool, table: Table, frame: pd.DataFrame) -> BoolMatrix:
    marks = loaded.frame
    if loaded.n_rows != table.n_rows:
        raise TableError(
            Setting("interventions"), f" has {loaded.n_rows} rows, the table {table.n_rows}; give one mark per cell."
        )
    if not any(isinstance(one.index, pd.RangeIndex) for one in (marks, frame)):  # of files, those with row labels
        marks = _match_rows(marks, frame)
    if has_names:
        names, _ = unique_names(list(marks.columns))
    else:
        names = _names_by_place(marks.shape[1], table, frame)
    known = {*table.names, *unique_names(list(frame.columns))[0]}
    if unknown := [name for name in names if name not in known]:
        raise TableError(
            Setting("interventions"), f" has the column {unknown[0]!r}, {not_among(unknown[0], list(table.names))}"
        )
    values = marks.to_numpy()
    if not np.isin(values, (0, 1)).all():
        odd = values[~np.isin(values, (0, 1))].tolist()[0]
        raise TableError(
            Setting("interventions"), f" holds {odd!r}; a mask has 1 where a cell was set and 0 elsewhere."
        )
    set_md = np.zeros(table.shape, dtype=bool)
    for k, name in enumerate(names):
        if name in table.names:
            set_md[:, table.names.index(name)] = values[:, k].astype(bool)
    return set_md


def _match_rows(marks: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of a mask in the order of the table's, by their labels; those of different tables are refused."""
    ours, theirs = frame.index, marks.index
    if len(ours) != len(theirs) or ours.equals(theirs):  # what is not as long is refused for that
        return marks
    if ours.is_unique and theirs.is_unique and bool(ours.isin(theirs).all()):
        return marks.loc[ours]
    if bool(ours.isin(theirs).all()) and bool(theirs.isin(ours).all()):
        twice = ours[ours.duplicated()].tolist()[0]
        found = f"has the row labels of the table in another order, and some repeat ({twice!r})"
    else:
        odd = [*theirs[~theirs.isin(ours)].tolist(), *ours[~ours.isin(theirs)].tolist()][0]
        found = f"has other row labels than the table: {odd!r} is in one of them only"
    raise TableError(
        Setting("interventions"),
        f" {found}. Give both the same index, or pass the mask as an array to match rows by their place.",
    )


def _names_by_place(n_columns: int, table: Table, frame: pd.DataFrame) -> tuple[str, ...]:
    """Names of the columns of a mask that has none: those of the table as it came, or as it was read."""
    if n_columns == frame.shape[1]:
        return unique_names(list(frame.columns))[0]
    if n_columns == table.shape[1]:
        return table.names
    raise TableError(
        Setting("interventions"), f" has {n_columns} columns, the table {table.shape[1]}; give one mark per cell."
    )


# ── one table per experiment ─────────────────────────────────────────────────────────────────────────────


def _stack_tables(
    data: Any, tables: Mapping[Any, Any], encode: Encode, drop: str | Iterable[str], limit: RowLimit
) -> Table:
    if data is not None and "" in tables:
        raise TableError("the table without interventions was given twice, by itself and under ''; leave one out.")
    given = ({} if data is None else {"": data}) | dict(tables)
    if not given:
        raise TableError(Setting("interventions"), " holds no table; pass {'': table, 'target': table}.")
    frames, changes, n_rows = _load_each(given, limit)
    first = next(iter(frames.values()))
    for targets, frame in frames.items():
        if set(frame.columns) != set(first.columns):
            odd = sorted(map(str, set(frame.columns) ^ set(first.columns)))
            raise TableError(
                f"the table of {targets!r} has other columns than the first one: {odd[0]!r} is in one of them only. "
                "Give all tables the same columns."
            )
    stacked = pd.concat([frame[first.columns] for frame in frames.values()], ignore_index=True)
    loaded = Loaded(stacked, f"{len(frames)} tables with {n_rows} rows", changes + limit.tell(n_rows), n_rows)
    table = read_table(loaded, encode=encode, drop=drop)
    set_md, start = np.zeros(table.shape, dtype=bool), 0
    for targets, frame in frames.items():
        set_md[start : start + len(frame), _find_targets(targets, table.names, "a key of interventions")] = True
        start += len(frame)
    sizes = ", ".join(f"{len(frame)} with {targets or 'nothing'!r} set" for targets, frame in frames.items())
    return _note(table, set_md, f"rows of {len(frames)} tables joined ({sizes})")


def _refuse_flat(value: Any, key: str) -> None:
    """A list of targets, or of zeros and ones, is neither a mask nor a table."""
    if not isinstance(value, (list, tuple, set, np.ndarray, pd.Series)):
        return
    if not len(value) or np.ndim(next(iter(value))) == 0:
        raise TableError(
            Setting("interventions"),
            f"{f' has under {key!r}' if key else ' is'} a single list of {spell_count(len(value), 'value')}. Pass a "
            "mask with 0 or 1 for every cell; tables by what was set in them, {'': table, 'target': table}; or put "
            "what was set into a column of the table and pass its name.",
        )


def _load_each(tables: Mapping[Any, Any], limit: RowLimit) -> tuple[dict[Any, pd.DataFrame], list[str], int]:
    """Tables with unique names by what was set in them, changes, and all rows; each keeps its share of the limit."""
    for targets, one in tables.items():
        _refuse_flat(one, str(targets))
    loaded = {targets: load_frame(one, limit) for targets, one in tables.items()}
    n_rows = sum(one.n_rows for one in loaded.values())
    frames, changes = {}, []
    for targets, one in loaded.items():
        share = n_rows if limit.most is None else max(1, limit.most * one.n_rows // n_rows)
        rows = RowLimit(share, limit.seed).choose(len(one.frame)) if limit.cuts(n_rows) else None
        names, renamed = unique_names(list(one.frame.columns))
        frame = one.frame if rows is None else take_rows(one.frame, rows)
        frames[targets] = frame.set_axis(pd.Index(names, dtype=object), axis=1)
        of_all = limit.tell(one.n_rows)  # is said of all together
        changes += [change for change in one.changes if change not in of_all] + renamed
    return frames, list(dict.fromkeys(changes)), n_rows
