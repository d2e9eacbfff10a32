"""Cause–effect pairs: tables of two columns, of which one is known to cause the other, and how answers are judged.

A folder holds pairs.csv (columns collection, pair, cause, weight) and one table per collection, COLLECTION.csv or
COLLECTION.csv.gz, with the columns pair, x and y. Many have the cause first: whoever reads them may swap columns at
random, so that a method that looks at their order learns nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import TableError
from graphbam.graphs.metrics import audrc, weighted_accuracy

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CausePair", "read_pairs", "score_pairs"]

LISTING = "pairs.csv"


@dataclasses.dataclass(frozen=True, eq=False)
class CausePair:
    """Two columns, and whether the first causes the second."""

    collection: str
    number: int
    x_m2: NDArray[np.float64]
    is_forward: bool
    weight: float


def read_pairs(
    folder: Path, rng: np.random.Generator, collections: Sequence[str] | None = None, max_rows: int | None = None
) -> list[CausePair]:
    """Read the pairs of a folder, half of them with their columns swapped.

    Parameters
    ----------
    folder : Path
        With pairs.csv and one table per collection.
    rng : numpy Generator
        Decides whose columns are swapped, and which rows are drawn.
    collections : sequence of str, optional
        Only these.
    max_rows : int, optional
        Of longer pairs so many rows are drawn.

    Returns
    -------
    list of CausePair
        In the order of pairs.csv.

    Raises
    ------
    TableError
        If a file is missing or does not fit.
    """
    listing = _read(folder / LISTING, ("collection", "pair", "cause", "weight"))
    known = list(dict.fromkeys(listing["collection"]))
    if unknown := [name for name in collections or () if name not in known]:
        raise TableError(f"{folder / LISTING} has no collection {unknown[0]!r}; it has {', '.join(known)}")
    pairs = []
    for name in known if collections is None else collections:
        rows = _read(_find(folder, name), ("pair", "x", "y"))
        tables = {number: part[["x", "y"]].to_numpy(float) for number, part in rows.groupby("pair")}
        listed = listing[listing["collection"] == name]
        for number, cause, weight in zip(*(listed[column] for column in ("pair", "cause", "weight")), strict=True):
            if number not in tables or cause not in ("x", "y"):
                raise TableError(f"{folder / LISTING}: pair {number} of {name!r} has no rows, or no cause x or y")
            x_m2, swap = _draw(rng, tables[number], max_rows), bool(rng.random() < 0.5)
            x_m2 = x_m2[:, ::-1].copy() if swap else x_m2
            pairs.append(CausePair(name, int(number), x_m2, (cause == "x") != swap, float(weight)))
    return pairs


def score_pairs(pairs: Sequence[CausePair], forward_n: ArrayLike, sure_from: float = 0.9) -> dict[str, float]:
    """Judge how likely each pair's first column was said to be the cause, every pair decided.

    Parameters
    ----------
    pairs : sequence of CausePair
    forward_n : array_like, shape (n,)
        Probability that the first column is the cause; 0.5 counts half.
    sure_from : float
        From which probability on an answer counts as sure.

    Returns
    -------
    dict
        `accuracy` (weighted), `audrc`, and of the pairs that are sure `sure` (their share) and `right_where_sure`.

    Examples
    --------
    >>> pairs = [CausePair("toys", k, np.zeros((2, 2)), k < 2, 1.0) for k in range(4)]
    >>> {name: round(value, 3) for name, value in score_pairs(pairs, [0.95, 0.6, 0.3, 0.7]).items()}
    {'accuracy': 0.75, 'audrc': 0.854, 'sure': 0.25, 'right_where_sure': 1.0}
    """
    said, truth = np.asarray(forward_n, dtype=float), np.array([pair.is_forward for pair in pairs])
    weight = [pair.weight for pair in pairs]
    is_sure, right = np.maximum(said, 1 - said) >= sure_from, (said > 0.5) == truth
    return {
        "accuracy": weighted_accuracy(truth, said - 0.5, weight),
        "audrc": audrc(truth, said - 0.5, weight),
        "sure": float(is_sure.mean()),
        "right_where_sure": float(right[is_sure].mean()) if is_sure.any() else float("nan"),
    }


def _draw(rng: np.random.Generator, x_m2: NDArray[np.float64], max_rows: int | None) -> NDArray[np.float64]:
    if max_rows is None or len(x_m2) <= max_rows:
        return x_m2
    return x_m2[np.sort(rng.choice(len(x_m2), max_rows, replace=False))]


def _find(folder: Path, name: str) -> Path:
    for path in (folder / f"{name}.csv", folder / f"{name}.csv.gz"):
        if path.is_file():
            return path
    raise TableError(f"{folder / LISTING} lists the collection {name!r}, but there is no {name}.csv beside it")


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise TableError(f"{path} cannot be read as a table: {error}") from None
    if missing := [name for name in columns if name not in frame.columns]:
        raise TableError(f"{path} lacks the column {missing[0]!r}; it needs {', '.join(columns)}")
    return frame
