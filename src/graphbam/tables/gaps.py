"""Infinite values, codes for missing ones, and what happens to gaps: steps 1 and 2 of `graphbam.tables.prepare`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphbam.errors import Setting, TableError, name_some, spell_count
from graphbam.tables.algebra import multiply
from graphbam.tables.config import LEAST_ROWS, Missing, PrepareConfig
from graphbam.tables.notes import Notes
from graphbam.tables.oddities import warn_of_totals, warn_of_wild_values
from graphbam.tables.standard import WILD, move_wild_observed
from graphbam.tables.table import BoolMatrix, BoolVector, Matrix, Table, spell_columns

CODES = (-9.0, -99.0, 99.0, -999.0, 999.0, -9999.0, 9999.0, -99999.0, 99999.0)
"""Numbers that often stand for a missing value."""

MAX_MISSING_IN_COLUMN = 0.70

MAX_ROWS_DROPPED = 0.05

MOST_REGRESSED = 2000
"""With more columns than this, gaps get medians: an inverse of all correlations would take minutes."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Columns and rows on their way, with what is known of each cell."""

    names: tuple[str, ...]
    x_md: Matrix
    missing_md: BoolMatrix
    set_md: BoolMatrix

    def marks(self) -> dict[str, BoolMatrix]:
        """What is known of cells, by the names that `Prepared` has for it."""
        return {"missing_md": self.missing_md, "set_md": self.set_md}

    def keep(self, *, rows: BoolVector | None = None, columns: BoolVector | None = None) -> Cells:
        """Some rows, or some columns."""
        rows = np.ones(self.x_md.shape[0], dtype=bool) if rows is None else rows
        columns = np.ones(self.x_md.shape[1], dtype=bool) if columns is None else columns
        names = tuple(name for name, is_kept in zip(self.names, columns, strict=True) if is_kept)
        place = np.ix_(rows, columns)
        return Cells(names, self.x_md[place], self.missing_md[place], self.set_md[place])


def complete(table: Table, config: PrepareConfig, notes: Notes) -> Cells:
    """Steps 1 and 2 of the module docstring: names and complete values."""
    x_md = table.x_md.copy()
    if not config.keep_codes:
        x_md = _blank_codes(table.names, x_md, notes)
    infinite = np.isinf(x_md)
    if infinite.any():
        x_md[infinite] = np.nan
        about = spell_columns([table.names[k] for k in np.flatnonzero(infinite.any(axis=0))])
        notes.changes.append(f"{spell_count(infinite.sum(), 'infinite value')} in {about} counted as missing")
    warn_of_wild_values(table.names, x_md, notes)
    warn_of_totals(x_md, notes)
    gaps = np.isnan(x_md)
    cells = Cells(table.names, x_md, gaps, np.zeros_like(gaps) if table.set_md is None else table.set_md)
    if not gaps.any():
        return cells
    if gaps.all():
        raise TableError(f"{table.source} holds no number: every cell is missing. Check how it was saved.")
    if config.missing == "error":
        _refuse_gaps(table, gaps)
    keep = np.asarray(~gaps.all(axis=1))
    if not keep.all():
        notes.changes.append(f"{spell_count((~keep).sum(), 'row')} without any value left out")
    cells = _drop_gappy_columns(cells.keep(rows=keep), config.missing, table.source, notes)
    return _close_gaps(cells, config.missing, table.source, notes)


def _blank_codes(names: Sequence[str], x_md: Matrix, notes: Notes) -> Matrix:
    """Gaps where numbers such as −999 stand for missing values; step 1 of the module docstring."""
    far_md = find_codes(x_md)
    for code in CODES:
        here_md = far_md & (x_md == code)
        if not here_md.any():
            continue
        where = f"{_spell_code(code)} in {spell_columns([names[k] for k in np.flatnonzero(here_md.any(axis=0))])}"
        if here_md.sum() == 1:
            notes.warnings.append(f"{where} lies far from all other values; if it stands for missing, empty that cell")
            continue
        x_md = np.where(here_md, np.nan, x_md)
        done = f"{where} ({spell_count(here_md.sum(), 'cell')}) counted as missing"
        notes.changes.append(f"{done}: it lies further from all other values than these lie from each other")
        keep = Setting("keep_codes", True).as_both()
        notes.warnings.append(f"{done}; if it is a number like the others, set {keep}")
    return x_md


def find_codes(x_md: Matrix) -> npt.NDArray[np.bool_]:
    """Cells that hold one of `CODES`, further from all other values of their column than these are from each other.

    Examples
    --------
    >>> find_codes(np.array([[1.0, 98.0], [3.0, 97.0], [2.0, 96.0], [-999.0, 99.0]])).tolist()[-1]
    [True, False]
    """
    code_md = np.isin(x_md, CODES)
    for k in np.flatnonzero(code_md.any(axis=0)):
        others = x_md[~code_md[:, k] & np.isfinite(x_md[:, k]), k]
        if len(np.unique(others)) < 3:
            code_md[:, k] = False
            continue
        low, high = others.min(), others.max()
        with np.errstate(over="ignore"):
            code_md[:, k] &= np.maximum(low - x_md[:, k], x_md[:, k] - high) > high - low
    return code_md


def _spell_code(code: float) -> str:
    return f"{code:.0f}".replace("-", "−")


def _refuse_gaps(table: Table, gaps: npt.NDArray[np.bool_]) -> None:
    row, column = np.argwhere(gaps)[0]
    row = row if table.rows is None else table.rows[row]
    raise TableError(
        f"{table.source}: {spell_count(gaps.sum(), 'missing value')} (first: row {row + 1}, column "
        f"{table.names[column]!r}). Fill them, or use ",
        Setting("missing", "auto"),
        ".",
    )


def _drop_gappy_columns(cells: Cells, policy: Missing, source: str, notes: Notes) -> Cells:
    """Leave out columns with too many gaps; those without a single value in any case."""
    share = cells.missing_md.mean(axis=0)
    limit = MAX_MISSING_IN_COLUMN if policy == "auto" else np.nextafter(1.0, 0.0)
    gappy = share > limit
    if not gappy.any():
        return cells
    lost = [f"{cells.names[k]!r} ({share[k]:.0%} missing)" for k in np.flatnonzero(gappy)]
    listed = name_some(lost[:8], len(lost))
    if (~gappy).sum() < 2:
        raise TableError(
            f"{source}: too little is known of {listed}, and fewer than two columns are left. Fill the gaps, or use ",
            Setting("missing", "impute"),
            ".",
        )
    notes.changes.append(f"left out for missing values: {listed}")
    through = "it" if len(lost) == 1 else "one of them"
    notes.warnings.append(
        f"{spell_count(len(lost), 'column')} left out for missing values, {listed}: variables that are linked through "
        f"{through} may now look linked to each other"
    )
    return cells.keep(columns=~gappy)


def _close_gaps(cells: Cells, policy: Missing, source: str, notes: Notes) -> Cells:
    """Leave out the rows with missing cells, or fill these in."""
    gappy = np.asarray(cells.missing_md.any(axis=1))
    if not gappy.any():
        return cells
    if policy == "drop" or (policy == "auto" and gappy.mean() <= MAX_ROWS_DROPPED):
        return _drop_gappy_rows(cells, gappy, source, notes)
    return _fill_cells(cells, source, notes)


def _drop_gappy_rows(cells: Cells, gappy: BoolVector, source: str, notes: Notes) -> Cells:
    n_rows, n_gappy = len(gappy), int(gappy.sum())
    if n_rows - n_gappy < LEAST_ROWS:
        raise TableError(
            f"{source}: {n_rows - n_gappy} of {n_rows} rows are complete, and {LEAST_ROWS} are the least. Use ",
            Setting("missing", "impute"),
            ", or leave out the columns with most gaps.",
        )
    notes.changes.append(f"{spell_count(n_gappy, 'row')} of {n_rows} with missing values left out")
    if gappy.mean() > MAX_ROWS_DROPPED:
        notes.warnings.append(
            f"{n_gappy} of {n_rows} rows ({gappy.mean():.0%}) left out for missing values: what holds for the "
            "complete rows need not hold for them"
        )
    return cells.keep(rows=~gappy)


def _fill_cells(cells: Cells, source: str, notes: Notes) -> Cells:
    x_md, gaps, names = cells.x_md, cells.missing_md, cells.names
    _check_meetings(gaps, names, source, notes)
    filled = f"{spell_count(gaps.sum(), 'missing value')} ({gaps.mean():.1%} of cells)"
    most = gaps.mean(axis=0).argmax()
    notes.warnings.append(
        f"{filled} filled in from the other columns, {gaps[:, most].mean():.0%} of {names[most]!r}, which has most: "
        "read links of such columns with more care"
    )
    x_md = np.where(gaps, 4 * np.nanmedian(x_md / 4, axis=0), x_md)  # so that no sum of two overflows
    if x_md.shape[1] > MOST_REGRESSED:
        notes.changes.append(
            f"{filled} set to the column's median: more than {MOST_REGRESSED} columns are not regressed"
        )
        return dataclasses.replace(cells, x_md=x_md)
    notes.changes.append(f"{filled} filled in by regression on the other columns")
    return dataclasses.replace(cells, x_md=_fill_by_others(torch.from_numpy(x_md), torch.from_numpy(~gaps)).numpy())


def _check_meetings(gaps: BoolMatrix, names: Sequence[str], source: str, notes: Notes) -> None:
    """Tell which pairs of columns are hardly ever observed in the same row; refuse a table that has no others."""
    if len(names) > MOST_REGRESSED:
        return
    seen_md = (~gaps).astype(np.float32)
    i, j = np.triu_indices(len(names), 1)
    met_n = multiply(seen_md.T, seen_md)[i, j]
    apart = np.flatnonzero(met_n < LEAST_ROWS)
    if len(apart) == len(met_n):
        raise TableError(
            f"{source}: no two columns are observed together in {LEAST_ROWS} rows or more, so nothing can be said of "
            "their links. Join the rows that belong together, or leave out columns with many gaps."
        )
    if len(apart):
        first = apart[0]
        notes.warnings.append(
            f"{spell_count(len(apart), 'pair')} of columns hardly ever observed in the same row ({names[i[first]]!r} "
            f"and {names[j[first]]!r}: {int(met_n[first])} of {len(gaps)} rows): answers about them are guesses"
        )


def _fill_by_others(x: Tensor, observed: Tensor) -> Tensor:
    """`fill_gaps` from values as the network sees them, wild ones at their limit: of a line through a slip of a pen
    nothing else would be left."""
    size_1d = torch.where(observed, x.abs(), 0).amax(-2, keepdim=True)
    size_1d = torch.where(size_1d > 0, size_1d, 1.0)  # so that no difference overflows
    limited = move_wild_observed((x / size_1d).mT, observed.mT).mT
    return torch.where(observed, x, size_1d * fill_gaps(limited, observed))


def fill_gaps(x: Tensor, observed: Tensor, *, rounds: int = 4, ridge: float = 0.02) -> Tensor:
    """Replace cells that were not observed by what a linear regression on all other columns expects there.

    Starts from the means. Each round predicts the gaps of a column from the inverse of the present correlations, and
    counts for the next round what such a prediction leaves unexplained: the variance of a column does not shrink.

    Parameters
    ----------
    x : Tensor, shape (..., M, D)
        The table; unobserved cells must be finite, and may hold anything.
    observed : Tensor of bool, shape (..., M, D)
        Which cells count.
    rounds : int
        Number of rounds. More of them change little.
    ridge : float
        Added to the diagonal of the correlations.

    Returns
    -------
    Tensor, shape (..., M, D)
        Observed cells as they were; the others within the range of their column.

    Examples
    --------
    The second column is twice the first:

    >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 0.0]])
    >>> fill_gaps(x, torch.tensor([[True, True]] * 3 + [[True, False]]))[-1]
    tensor([4., 6.])
    """
    size_n1 = torch.where(observed, x.abs(), 0).amax(-2, keepdim=True)
    z = torch.where(observed, x / torch.where(size_n1 > 0, size_n1, 1.0), 0)  # so that no square overflows
    low = torch.where(observed, z, 1).amin(-2, keepdim=True)  # 1 is the largest that there is
    high = torch.where(observed, z, -1).amax(-2, keepdim=True).clamp_min(low)
    count = observed.sum(-2, keepdim=True).clamp_min(1)
    centre = z.sum(-2, keepdim=True) / count
    sd = (torch.where(observed, z - centre, 0).square().sum(-2, keepdim=True) / count).sqrt()
    sd = torch.where(sd > 0, sd, 1.0)
    z = torch.where(observed, ((z - centre) / sd).clamp(-WILD, WILD), 0)
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    missing = 1 - count[..., 0, :] / x.shape[-2]
    unexplained = missing  # all of it, as long as gaps are at the mean
    for _ in range(rounds):
        s = z.mT @ z / x.shape[-2] + torch.diag_embed(unexplained)
        scale = s.diagonal(dim1=-2, dim2=-1).clamp_min(1e-12).sqrt()
        precision = torch.linalg.inv(s / (scale[..., :, None] * scale[..., None, :]) + ridge * eye)
        own = precision.diagonal(dim1=-2, dim2=-1)
        weights = -precision * (1 - eye) * scale[..., :, None] / (own[..., :, None] * scale[..., None, :])
        z = torch.where(observed, z, z @ weights.mT)
        unexplained = missing * scale.square() / own
    return torch.where(observed, x, size_n1 * (centre + sd * z).clamp(low, high))
