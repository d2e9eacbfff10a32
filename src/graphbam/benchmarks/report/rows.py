"""Results of one or several runs → one table of rows, checked and completed, that everything below the report reads.

A row is one method on one table. A *cell* is what counts once in a mean: a simulated case (its tables are the trials),
a family of labelled tables, or a single table where no families are known. Cells belong to groups: nonlinear,
linear, unseen, labelled (from folders); tables with hidden causes, interventions or missing cells, and pairs, apart
from these.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from graphbam.benchmarks.store import ADDED, COLUMNS
from graphbam.errors import TableError

OURS = "graphbam"
"""Name of our method; names that begin with it are variants of it."""

EMPTY = "zero"
"""Name of the method that never finds an edge; figures show it as a line."""

GROUPS = {
    "nonlinear": "Simulated, nonlinear",
    "linear": "Simulated, linear",
    "unseen": "Simulated, mechanisms of no training preset",
    "labelled": "Labelled tables, by family",
    "hidden": "With hidden common causes",
    "targets": "With interventions",
    "gaps": "With missing cells",
    "pairs": "Cause-effect pairs",
}
"""Groups of cells in the order they are shown, with their titles."""

SPECIAL = ("hidden", "targets", "gaps", "pairs")
"""Settings of tables that make groups of their own, whatever their source."""

STATUSES = ("ok", "skipped", "timeout", "memory", "error")
FILES = ("results.parquet", "results.csv")
"""What a run folder may hold, the preferred file first."""

TEXT_COLUMNS = tuple(name for name, kind in COLUMNS.items() if kind == "string")
NUMBER_COLUMNS = tuple(name for name, kind in COLUMNS.items() if kind != "string")


@dataclasses.dataclass(frozen=True)
class Metric:
    """A column of the results, and how it is written and judged."""

    name: str
    title: str
    """In headings and along axes."""
    short: str
    """In the heads of tables."""
    is_better_high: bool = True
    digits: int = 3
    floor: str | None = None
    """Column with what the graph without edges gets."""
    is_directed: bool = False
    """Whether only methods that give directions are judged by it."""


METRICS = {
    metric.name: metric
    for metric in (
        Metric("skeleton_ap", "Average precision, skeleton", "skeleton AP"),
        Metric("moral_ap", "Average precision, moral graph", "moral AP"),
        Metric("skeleton_f1", "F1, skeleton", "F1"),
        Metric("skeleton_accuracy", "Accuracy, skeleton", "accuracy", digits=4, floor="empty_accuracy"),
        Metric("skeleton_shd", "SHD, skeleton", "skeleton SHD", is_better_high=False, digits=1, floor="n_edges"),
        Metric("cpdag_ap", "Average precision, CPDAG", "CPDAG AP", is_directed=True),
        Metric("shd", "SHD, CPDAG", "SHD", is_better_high=False, digits=1, floor="empty_shd", is_directed=True),
        Metric(
            "shd_ratio", "SHD, CPDAG, as a share of the empty graph's", "SHD ratio", is_better_high=False,
            is_directed=True,
        ),
        Metric("directed_ap", "Average precision, directed", "directed AP", is_directed=True),
        Metric("directed_auroc", "AUROC, directed", "directed AUROC", is_directed=True),
        Metric("direction_right", "Directions of true links that are right", "directions", is_directed=True),
        Metric(
            "ancestor_distance", "Ancestor adjustment distance", "ancestor distance", is_better_high=False,
            is_directed=True,
        ),
        Metric("hidden_auroc", "AUROC, hidden common causes", "hidden AUROC"),
        Metric("hidden_ap", "Average precision, hidden common causes", "hidden AP"),
        Metric("seconds", "Seconds", "seconds", is_better_high=False, digits=2),
    )
}  # fmt: skip
"""Scores by column; `shd_ratio` and `empty_accuracy` are added by `read_rows`."""


def read_rows(runs: Sequence[str | os.PathLike[str]]) -> pd.DataFrame:
    """Read results and put them into one table.

    Parameters
    ----------
    runs : sequence of paths
        Folders with results.parquet or results.csv, or such files. Of rows for the same case, trial and method the last
        one counts.

    Returns
    -------
    DataFrame
        The columns of the results and `run`, `cell`, `group`, `table`, `is_ok`, `shd_ratio`, `empty_accuracy`;
        scores of rows that are not ok are missing.

    Raises
    ------
    TableError
        If nothing can be read, or a column is missing.
    """
    if not runs:
        raise TableError("no results were named. Pass at least one run folder.")
    frames = [_read_run(Path(run)).assign(run=str(run)) for run in runs]
    rows = pd.concat(frames, ignore_index=True)
    if rows.empty:
        raise TableError(f"there is no row in {', '.join(map(str, runs))}. Run the benchmark first.")
    rows = rows.drop_duplicates(["case", "trial", "method"], keep="last").reset_index(drop=True)
    return _complete(rows)


def _read_run(run: Path) -> pd.DataFrame:
    """The results of one folder or file, with every column in its type."""
    found = [run / name for name in FILES if (run / name).is_file()] if run.is_dir() else [run]
    if not found or not found[0].is_file():
        raise TableError(f"{run} holds no results: looked for {' and '.join(FILES)}. Name the folder of a run.")
    rows = _read_file(found[0])
    rows = rows.assign(**{name: None for name in ADDED if name not in rows})
    missing = [name for name in COLUMNS if name not in rows]
    if missing:
        raise TableError(f"{found[0]} lacks the columns {', '.join(missing)}. Write it with graphbam benchmark.")
    for name in TEXT_COLUMNS:
        rows[name] = rows[name].astype(object).where(rows[name].notna(), "").astype(str)
    for name in NUMBER_COLUMNS:
        rows[name] = pd.to_numeric(rows[name], errors="coerce").astype("Float64").to_numpy(float, na_value=np.nan)
    strange = sorted(set(rows["status"]) - set(STATUSES))
    if strange:
        raise TableError(f"{found[0]} has the status {strange[0]!r}; it must be one of {', '.join(STATUSES)}.")
    return rows


def _read_file(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, low_memory=False)
    except ImportError:
        raise TableError(f"{path} needs pyarrow, which is not installed: pip install 'graphbam[benchmark]'") from None
    except (OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read as a table: {error}. Run the benchmark again.") from None


def _complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Add what follows from the columns, and take back scores of fits that failed."""
    from graphbam.simulation.config import UNSEEN

    is_ok = rows["status"] == "ok"
    is_simulated = rows["source"] == "simulated"
    group = np.select(
        [rows["setting"].str.startswith(name) for name in SPECIAL]
        + [~is_simulated, rows["mechanism"].isin(UNSEEN), rows["mechanism"] == "linear"],
        [*SPECIAL, "labelled", "unseen", "linear"],
        "nonlinear",
    )
    n_pairs = rows["n_variables"] * (rows["n_variables"] - 1) / 2
    return rows.assign(
        **{name: rows[name].where(is_ok) for name in METRICS if name in rows},
        cell=rows["case"].where(rows["source"] != "tables", rows["family"]),
        group=group,
        table=rows["case"] + " " + rows["trial"].astype(int).astype(str),
        is_ok=is_ok,
        shd_ratio=(rows["shd"] / rows["empty_shd"].where(rows["empty_shd"] > 0)).where(is_ok),
        empty_accuracy=1 - rows["n_edges"] / n_pairs,
    )


def is_ours(method: str) -> bool:
    """Whether a method is graphbam or a variant of it.

    Examples
    --------
    >>> is_ours("graphbam"), is_ours("graphbam-paper"), is_ours("pc")
    (True, True, False)
    """
    return method.startswith(OURS)


def choose_ours(methods: Sequence[str]) -> str | None:
    """The method that the others are compared with: graphbam itself, or the first of its variants.

    Examples
    --------
    >>> choose_ours(["pc", "graphbam-paper", "graphbam"])
    'graphbam'
    >>> choose_ours(["pc"]) is None
    True
    """
    return min(filter(is_ours, methods), default=None)
