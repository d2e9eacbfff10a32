"""What is in a table, column by column, and what will be done to it: what a visitor sees before the network runs."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from graphbam.errors import GraphbamError, spell_count
from graphbam.inference.settings import read_settings
from graphbam.nn.cost import estimate_seconds, spell_seconds
from graphbam.tables.columns import code_column
from graphbam.tables.formats import PART, unpack
from graphbam.tables.interventions import read_experiment
from graphbam.tables.limit import RowLimit
from graphbam.tables.prepare import Prepared, prepare
from graphbam.tables.read import load_frame, unique_names
from graphbam.tables.spelling import names_targets
from graphbam.web.words import Words, spell_error, spell_note

LARGEST_UNPACKED = 400 * 2**20
"""Bytes that a packed table may grow to."""

ROWS_SHOWN = 8
COLUMNS_SHOWN = 40
"""Rows and columns of the table that are shown cell by cell."""

VALUES_SHOWN = 3
_WIDTH = 24


def open_table(name: str, content: bytes | bytearray, part: str = "") -> io.BytesIO:
    """A table, or a part of its file, as an open file that knows its name; one that unpacks without end is refused."""
    raw, inner = unpack(bytes(content), name, part, limit=LARGEST_UNPACKED)
    chosen = part if inner == name else inner  # a sheet is chosen when the spreadsheet is read
    table = io.BytesIO(raw)
    table.name = f"{name}{PART}{chosen}" if chosen else name
    return table


def look(name: str, content: bytes | bytearray, choices: Mapping[str, Any], weights: Any) -> dict[str, Any]:
    """Describe a table and what the choices will do to it.

    Examples
    --------
    >>> rows = "\\n".join(f"{k},{k * k % 7},{'xyz'[k % 3]}" for k in range(20))
    >>> seen = look("t.csv", f"a,b,kind\\n{rows}".encode(), {}, None)
    >>> [column["kind"] for column in seen["columns"]], seen["problem"][0][:40]
    (['number', 'number, 4 values', 'text, 3 levels'], "in t.csv, column 'kind' holds text in al")
    >>> look("t.csv", f"a,b,kind\\n{rows}".encode(), {"drop": ["kind"]}, None)["plan"]
    ["left out as asked: 'kind'"]
    """
    settings = {key: value for key, value in choices.items() if key != "part"}
    table = open_table(name, content, choices.get("part", ""))
    loaded = load_frame(table)
    frame, changes = loaded.frame, loaded.changes
    frame = frame.reset_index(drop=True)
    names, _ = unique_names(list(frame.columns))
    frame = frame.set_axis(pd.Index(names, dtype=object), axis=1)
    table.seek(0)
    ready, problem = _try_to_prepare(table, settings)
    columns = [_describe(frame, name, choices, ready) for name in names]
    seconds = None if ready is None else _estimate(ready, choices, weights)
    corner = frame.iloc[:ROWS_SHOWN, :COLUMNS_SHOWN]
    return {
        "name": table.name,
        "n_rows": len(frame),
        "columns": columns,
        "rows": [[_show(cell) for cell in row] for row in corner.itertuples(index=False)],
        "plan": [spell_note(note, names) for note in (changes if ready is None else ready.changes)],
        "warnings": [] if ready is None else [spell_note(note, names) for note in ready.warnings],
        "problem": problem,
        "variables": [] if ready is None else list(ready.names),
        "n_rows_used": 0 if ready is None else sum(len(rows) for rows in ready.passes),
        "takes": "" if seconds is None else spell_seconds(seconds),
    }


def estimate(table: io.BytesIO, choices: Mapping[str, Any], weights: Any) -> float | None:
    """Seconds that the network will take with a table; None where that is not known."""
    ready, _ = _try_to_prepare(table, choices)
    return None if ready is None else _estimate(ready, choices, weights)


def _estimate(ready: Prepared, choices: Mapping[str, Any], weights: Any) -> float:
    n_tables = len(ready.passes) + choices.get("stability", 0)
    return estimate_seconds(weights, n_tables, len(ready.passes[0]), ready.x_md.shape[1])


def _try_to_prepare(table: io.BytesIO, choices: Mapping[str, Any]) -> tuple[Prepared | None, Words | None]:
    """The table made ready as `infer` does it, or what is wrong."""
    try:
        config = read_settings(choices)
        limit = RowLimit(config.prepare.most_read, config.prepare.seed)
        experiment = read_experiment(table, config.interventions, encode=config.encode, drop=config.drop, limit=limit)
        ready = prepare(experiment, config.prepare)
        if config.knowledge:
            config.knowledge.check_names(ready.names, (*ready.left_out, *config.drop), ready.labels)
    except GraphbamError as error:
        return None, spell_error(error)
    return ready, None


# ── columns ───────────────────────────────────────────────────────────────────────────────────────────────


def _describe(frame: pd.DataFrame, name: str, choices: Mapping[str, Any], ready: Prepared | None) -> dict[str, Any]:
    """One column: what it holds, and what happens to it."""
    column = frame[name]
    plain = code_column(column, name, encode=False)
    first = next((other for other in frame.columns if other not in choices.get("drop", ())), None)
    is_label = plain.is_label and (bool(choices.get("encode")) or name == first)  # as `graphbam.tables.read` has it
    is_text = plain.values is None and not is_label
    kind = _spell_kind(column, plain.values, is_label, plain.note)
    missing = float(np.isnan(plain.values).mean()) if plain.values is not None else float(column.isna().mean())
    return {
        "name": name,
        "kind": kind,
        "is_text": is_text,
        "missing": missing,
        "shown": [_show(cell) for cell in column.dropna().unique()[:VALUES_SHOWN]],
        "targets": is_text and names_targets(column, [other for other in frame.columns if other != name]),
        "fate": _tell_fate(name, is_text, is_label, choices, ready),
    }


def _spell_kind(column: pd.Series, values: Any, is_label: bool, note: str) -> str:
    if values is None:
        if is_label:
            return "names of rows"
        if note.startswith(("dates", "durations")):
            return note.split(" ")[0]
        n_levels = column.dropna().astype(str).nunique()
        return f"text, {spell_count(n_levels, 'level')}"
    present = values[~np.isnan(values)]
    distinct = np.unique(present[:100_000])
    if len(distinct) < 2:
        return "constant" if len(distinct) else "empty"
    if len(distinct) == 2:
        return "two values"
    if np.isfinite(distinct).all() and (distinct == np.round(distinct)).all() and len(distinct) <= 12:
        return f"number, {len(distinct)} values"
    return "number"


def _tell_fate(name: str, is_text: bool, is_label: bool, choices: Mapping[str, Any], ready: Prepared | None) -> str:
    """What happens to a column, in a word or two."""
    if name in choices.get("drop", ()):
        return "left out"
    if name == choices.get("interventions"):
        return "says what was set"
    if ready is None:
        return "not a number" if is_text and not choices.get("encode") else ""
    if name in ready.left_out:
        return "left out: too much is missing"
    if name not in ready.names:
        return "names rows, left out" if is_label else "left out"
    if ready.names.index(name) not in ready.varying:
        return "constant: no links"
    return "becomes a number" if is_text else ""


def _show(cell: Any) -> str:
    if cell is None or cell is pd.NA or (isinstance(cell, float) and math.isnan(cell)) or cell is pd.NaT:
        return ""
    text = f"{cell:.6g}" if isinstance(cell, (float, np.floating)) else str(cell)
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
