"""Table → what the network sees: complete, varying, standardised columns, and a report of every change.

The rules, in the order they are applied, to a table of which at most twenty times `max_rows` rows were read
(`graphbam.tables.limit`):

1. Infinite values count as missing, and so do −9, ±99, ±999, ±9999 and ±99999 where they stand for it: in a column of
   three or more other values, further from all of these than they are from each other, and in two cells or more (a
   single such cell stays, with a warning). ``keep_codes=True`` keeps them. Rows without a single value are left out.
2. Missing values (``missing="auto"``): columns with more than 70 % missing are left out; if the gaps of the
   rest touch at most 5 % of the rows, those rows are left out; otherwise every gap gets what the other columns make
   of it (`fill_gaps`), wild values at the limit of step 6. A median would be one value for all, and hide that two
   columns are related only through a third. A column that is left out cannot explain anything any more, so few are:
   what goes through it would look like a link.
   ``"drop"`` always leaves rows out, ``"impute"`` always fills, ``"error"`` refuses.
3. Constant columns keep their place in the answer, with no links; the network does not see them.
4. Neighbouring rows that resemble each other, as in a time series, count for fewer (`graphbam.tables.rows`, by values
   standardised as in step 6, without what an experiment did to them), unless they are only sorted, or
   ``independent_rows=True``. Nothing else depends on the order of the rows that were read. Rows that are copies of
   others in measured columns count once, wherever they stand, unless ``independent_rows=True``.
5. Rows are put into an order that depends on their content only, so that neither row order nor column order
   nor units can change what a seeded draw picks. More than `max_rows` rows: one seeded draw (``"subsample"``)
   or up to eight disjoint draws of at most 5000 rows, whose probabilities are averaged (``"average"``).
6. Columns are standardised by `standardise`, the function that also prepares the simulated tables of training; it
   tames heavy tails with a robust scale. Where nearly all have two levels, the network is shown them with a little
   noise (`graphbam.tables.dither`); columns in two narrow peaks with wider ones (`graphbam.tables.peaks`).

Duplicated and collinear columns, those that look like row numbers, and a last row of totals go through unchanged, with
a warning. What was done is in `Prepared.changes`, sentence by sentence; what of it a reader of the answer must know is
also in `Prepared.warnings`, with the number that matters.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphbam.errors import Setting, TableError, name_some, spell_count
from graphbam.tables.algebra import find_axes, multiply
from graphbam.tables.config import LEAST_ROWS, Missing, PrepareConfig
from graphbam.tables.dither import AMOUNT, find_levels
from graphbam.tables.domain import correlate, describe_table
from graphbam.tables.peaks import WIDTH, find_peaks
from graphbam.tables.rows import MOST_ROWS, RowOrder, count_rows, find_copies, leave_experiments, read_order
from graphbam.tables.spread import share_spread
from graphbam.tables.table import BoolMatrix, BoolVector, Indices, Matrix, Table, spell_columns

CODES = (-9.0, -99.0, 99.0, -999.0, 999.0, -9999.0, 9999.0, -99999.0, 99999.0)
"""Numbers that often stand for a missing value."""

MAX_MISSING_IN_COLUMN = 0.70
MAX_ROWS_DROPPED = 0.05
NEGLIGIBLE_ROWS = 0.1
"""Share of rows that neighbours which resemble each other may cost before anybody is warned."""
MAX_PASSES, ROWS_AVERAGED = 8, 5000
"""Draws that are averaged, at most, and rows in each: fewer than the longest tables of training have. More or longer
draws, or all rows at once, are no better (docs/performance.md)."""
FEW_ROWS = 20
MOST_REGRESSED = 2000
"""With more columns than this, gaps get medians: an inverse of all correlations would take minutes."""

SPREAD = 0.06
"""Correlation between the sizes of columns (`share_spread`) from which rows share their spread. One simulated table of
training in fifty has more."""

FILLED_TO = 9
"""Decimals of filled cells that count in the order of rows: further ones depend on which row comes first."""

CLIP = 5.0
"""Standardised values are cut at ± this many standard deviations."""

WILD = 6.0
"""Before that, values beyond median ± this many robust standard deviations are moved to that limit."""

FAR = 1000.0
"""Values this many times as far from the median as nine in ten, and far from the rest, are told of."""

SAME, NEARLY_SAME = 1 - 1e-10, 0.999
"""Correlations beyond which columns are copies up to units, and beyond which they hide much of each other too."""

_ALL_COUNT = Setting("independent_rows", True).as_both()
_NORMAL_RANGE = 3.2897  # from the 5th to the 95th percentile of a standard normal


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table ready for the network."""

    names: tuple[str, ...]
    """Every column of the answer, in the order of the table."""
    varying: Indices
    """Places in `names` of the columns the network sees."""
    x_md: Matrix
    """Those columns, complete, in content order, not yet standardised."""
    passes: tuple[Indices, ...]
    """Rows of `x_md` for each forward pass, equally many in each."""
    source: str
    n_rows: int
    """Rows of the table as it came."""
    changes: tuple[str, ...]
    warnings: tuple[str, ...]
    features: dict[str, float]
    """What `describe_table` says."""
    redundancy: float = 0.0
    """How much rows repeat each other: copies (`find_copies`), and neighbours among the others (`read_order`)."""
    left_out: tuple[str, ...] = ()
    """Columns that were left out because of missing values."""
    labels: tuple[str, ...] = ()
    """Columns that were taken for row labels and left out."""
    missing_md: BoolMatrix | None = None
    """Cells of `x_md` that were missing and have been filled in; None: none was."""
    set_md: BoolMatrix | None = None
    """Cells of `x_md` that an experiment set; None: none was."""

    def standardised(self) -> Tensor:
        """One standardised table per pass, shape (passes, M, D), float32."""
        return standardise(torch.from_numpy(self.x_md[np.stack(self.passes)])).float()

    def worth(self, n_drawn: int) -> float:
        """How many independent rows so many rows of this table are worth."""
        return count_rows(n_drawn, len(self.x_md), self.redundancy)

    def put_constants_back(self, values_ee: Matrix, nothing: float | Sequence[float]) -> Matrix:
        """Values of all pairs of columns from those of the varying ones; other pairs have `nothing`."""
        n_variables = len(self.names)
        values_dd = np.full((n_variables, n_variables, *values_ee.shape[2:]), nothing, dtype=np.float64)
        values_dd[np.ix_(self.varying, self.varying)] = values_ee
        return values_dd


def prepare(table: Table, config: PrepareConfig | None = None) -> Prepared:
    """Make a table ready for the network.

    Examples
    --------
    >>> table = Table(("a", "b", "c"), np.array([[1.0, 2, 5], [2, 1, 5], [3, 7, 5], [4, 4, 5]]), "example")
    >>> ready = prepare(table)
    >>> tuple(ready.standardised().shape), ready.changes
    ((1, 4, 2), ("column 'c' is constant: kept without links, not shown to the network",))
    """
    config, notes = config or PrepareConfig(), Notes(list(table.changes), list(table.warnings))
    cells = _complete(table, config, notes)
    names = cells.names
    _check_length(table.source, cells.x_md)
    varying = _find_varying(table, names, cells.x_md, notes)
    x_md = _avoid_overflow(cells.x_md[:, varying])
    once_m = np.ones(len(x_md), dtype=bool) if config.independent_rows else _leave_copies(x_md, notes)
    once_md, set_md = x_md[once_m], cells.set_md[np.ix_(once_m, varying)]
    order = RowOrder(0.0, sorted_only=True) if config.independent_rows else _judge_order(once_md, set_md, notes)
    features = describe_table(np.random.default_rng(0).permutation(once_md) if order.sorted_only else once_md)
    kept = [names[k] for k in varying]
    notes.warnings += _warn_about(kept, x_md) + _warn_of_spread(once_md)
    notes.changes += _tell_of_peaks(x_md, cells.missing_md[:, varying])
    notes.changes += _tell_of_levels(x_md, cells.missing_md[:, varying])
    ranked_md = x_md.round(FILLED_TO) if cells.missing_md.any() else x_md
    order_m = canonical_order(ranked_md, kept, (cells.missing_md + 2 * cells.set_md)[:, varying])
    x_md = x_md[order_m]
    passes = draw_passes(len(x_md), config, notes, table.n_rows_found)
    features["n_samples"] = float(len(passes[0]))  # what the network sees at a time is like training or not
    is_there = set(names)
    gone = tuple(name for name in table.names if name not in is_there)
    return Prepared(
        names=names,
        varying=varying,
        x_md=x_md,
        passes=passes,
        source=table.source,
        n_rows=table.n_rows,
        changes=tuple(notes.changes),
        warnings=tuple(notes.warnings),
        features=features,
        redundancy=len(x_md) / len(once_md) * (1 + order.redundancy) - 1,
        left_out=gone,
        labels=table.labels,
        **{name: _marked(marks_md, order_m, varying) for name, marks_md in cells.marks().items()},
    )


def _marked(marks_md: BoolMatrix, rows: Indices, columns: Indices) -> BoolMatrix | None:
    """Marks of some rows and columns in this order; None where there are none."""
    chosen = marks_md[np.ix_(rows, columns)]
    return chosen if chosen.any() else None


@dataclass
class Notes:
    """What was done to a table, and what of it to keep in mind."""

    changes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def _check_length(source: str, x_md: Matrix) -> None:
    if len(x_md) < LEAST_ROWS:
        raise TableError(
            f"{source}: found {len(x_md)} sample(s) (shape={x_md.shape}) while a minimum of {LEAST_ROWS} is required: "
            "no correlation of fewer has an error that can be estimated. Add rows, in practice fifty or more"
            f"{'; or transpose the table, if its rows are the variables' if x_md.shape[1] > len(x_md) else ''}."
        )


def _find_varying(table: Table, names: Sequence[str], x_md: Matrix, notes: Notes) -> Indices:
    """Places of the columns that are not constant; the others are reported."""
    constant = is_constant(x_md)
    if constant.any():
        about = spell_columns([name for name, flag in zip(names, constant, strict=True) if flag])
        verb = "are" if constant.sum() > 1 else "is"
        notes.changes.append(f"{about} {verb} constant: kept without links, not shown to the network")
    varying = np.flatnonzero(~constant)
    if len(varying) < 2:
        raise TableError(
            f"{table.source}: {len(varying)} of {len(names)} columns vary over its {len(x_md)} rows, and a "
            "graph needs two. Check that the right file was read, or add rows."
        )
    return varying


def _judge_order(x_md: Matrix, set_md: BoolMatrix, notes: Notes) -> RowOrder:
    """How much neighbouring rows repeat each other, and a report where they do.

    Of values as the network sees them: one wild cell would hide that all others resemble their neighbours.
    """
    z_md, set_md = standardise(torch.from_numpy(x_md[:MOST_ROWS])).numpy(), set_md[:MOST_ROWS]
    order = read_order(leave_experiments(z_md, set_md) if set_md.any() else z_md)
    if set_md.any() and not order.redundancy:
        return RowOrder(0.0, sorted_only=True)  # by what was set, if by anything
    if order.sorted_only:
        about = "rows are sorted by columns of the table: neighbours resemble each other, and count in full"
        notes.changes.append(about)
    if order.redundancy:
        worth = count_rows(len(x_md), len(x_md), order.redundancy)
        notes.changes.append(
            f"neighbouring rows resemble each other: {len(x_md)} rows count as {worth:.0f} independent ones "
            f"(set {_ALL_COUNT}, if they are only sorted, by something that is not in the table)"
        )
        if worth > (1 - NEGLIGIBLE_ROWS) * len(x_md):
            return order
        notes.warnings.append(
            f"{len(x_md)} rows count as {worth:.0f}, since neighbouring rows resemble each other as in a time series: "
            "links are fewer and less sure than from as many independent rows"
        )
    return order


def _leave_copies(x_md: Matrix, notes: Notes) -> BoolVector:
    """Which rows are no copies of earlier ones, and a report; all of them if copies are few."""
    is_copy_m = find_copies(x_md)
    n_rows, n_copies = len(x_md), int(is_copy_m.sum())
    if n_copies <= NEGLIGIBLE_ROWS * n_rows:
        return np.ones(n_rows, dtype=bool)
    about = f"{n_copies} of {n_rows} rows are exact copies of others"
    notes.changes.append(f"{about}, and count once: {n_rows - n_copies} rows (set {_ALL_COUNT}, if all are to count)")
    notes.warnings.append(
        f"{about}, as after a faulty join or upsampling: the table counts as {n_rows - n_copies} rows; "
        "better leave the copies out"
    )
    return ~is_copy_m


# ── missing and constant ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _Cells:
    """Columns and rows on their way, with what is known of each cell."""

    names: tuple[str, ...]
    x_md: Matrix
    missing_md: BoolMatrix
    set_md: BoolMatrix

    def marks(self) -> dict[str, BoolMatrix]:
        """What is known of cells, by the names that `Prepared` has for it."""
        return {"missing_md": self.missing_md, "set_md": self.set_md}

    def keep(self, *, rows: BoolVector | None = None, columns: BoolVector | None = None) -> _Cells:
        """Some rows, or some columns."""
        rows = np.ones(self.x_md.shape[0], dtype=bool) if rows is None else rows
        columns = np.ones(self.x_md.shape[1], dtype=bool) if columns is None else columns
        names = tuple(name for name, is_kept in zip(self.names, columns, strict=True) if is_kept)
        place = np.ix_(rows, columns)
        return _Cells(names, self.x_md[place], self.missing_md[place], self.set_md[place])


def _complete(table: Table, config: PrepareConfig, notes: Notes) -> _Cells:
    """Steps 1 and 2 of the module docstring: names and complete values."""
    x_md = table.x_md.copy()
    if not config.keep_codes:
        x_md = _blank_codes(table.names, x_md, notes)
    infinite = np.isinf(x_md)
    if infinite.any():
        x_md[infinite] = np.nan
        about = spell_columns([table.names[k] for k in np.flatnonzero(infinite.any(axis=0))])
        notes.changes.append(f"{spell_count(infinite.sum(), 'infinite value')} in {about} counted as missing")
    _tell_of_wild_values(table.names, x_md, notes)
    _tell_of_totals(x_md, notes)
    gaps = np.isnan(x_md)
    cells = _Cells(table.names, x_md, gaps, np.zeros_like(gaps) if table.set_md is None else table.set_md)
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


def _tell_of_wild_values(names: Sequence[str], x_md: Matrix, notes: Notes) -> None:
    """Warn about values so far from all others that they are rather slips of a pen; step 6 moves them to a limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without a value
        size_d = np.nanmax(np.abs(x_md), axis=0, initial=0.0)
        z_md = x_md / np.where(size_d > 0, size_d, 1.0)  # so that no sum overflows
        off_md = np.abs(z_md - np.nanmean(z_md, axis=0))
        most = max(4.0, min(50.0, len(x_md) / 10))  # a cheap look first: few columns have such values
        suspects = np.flatnonzero(np.nanmax(off_md, axis=0, initial=0.0) > most * np.nanmean(off_md, axis=0))
    for k in suspects.tolist():
        z_m = z_md[:, k]
        off_m = np.abs(z_m - np.nanmedian(z_m))
        wild_m = off_m > FAR * np.nanquantile(off_m, 0.9)
        rest = z_m[~wild_m & np.isfinite(z_m)]
        if not wild_m.any() or len(np.unique(rest)) < 3 or off_m[wild_m].min() < 10 * np.ptp(rest):
            continue
        low, high = size_d[k] * rest.min(), size_d[k] * rest.max()
        notes.warnings.append(
            f"column {names[k]!r} has {spell_count(wild_m.sum(), 'value')} far beyond all others "
            f"({x_md[wild_m, k][0]:.3g}, and these between {low:.3g} and {high:.3g}), moved towards them; "
            "empty such cells if they are errors or stand for missing values"
        )


def _tell_of_totals(x_md: Matrix, notes: Notes) -> None:
    """Warn about a last row that is the sum of the others, as many spreadsheets end: it alone ties columns together."""
    if len(x_md) < LEAST_ROWS:
        return
    above_md, last_d = x_md[:-1], x_md[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        is_sum_d = np.abs(last_d - np.nansum(above_md, axis=0)) <= 1e-3 * np.abs(last_d)  # sums of rounded numbers
    is_sum_d &= np.abs(last_d) > np.abs(np.nan_to_num(above_md)).max(axis=0, initial=0.0)
    n_sums, n_known = int(is_sum_d.sum()), int(np.isfinite(last_d).sum())
    if n_sums >= max(2, n_known / 2):
        notes.warnings.append(
            f"the last row holds the sums of all rows above it, in {n_sums} of {len(last_d)} columns: such a row of "
            "totals makes links between columns that have none; take it out of the table"
        )


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


def _drop_gappy_columns(cells: _Cells, policy: Missing, source: str, notes: Notes) -> _Cells:
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


def _close_gaps(cells: _Cells, policy: Missing, source: str, notes: Notes) -> _Cells:
    """Leave out the rows with missing cells, or fill these in."""
    gappy = np.asarray(cells.missing_md.any(axis=1))
    if not gappy.any():
        return cells
    if policy == "drop" or (policy == "auto" and gappy.mean() <= MAX_ROWS_DROPPED):
        return _drop_gappy_rows(cells, gappy, source, notes)
    return _fill_cells(cells, source, notes)


def _drop_gappy_rows(cells: _Cells, gappy: BoolVector, source: str, notes: Notes) -> _Cells:
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


def _fill_cells(cells: _Cells, source: str, notes: Notes) -> _Cells:
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


def _fill_by_others(x: Tensor, observed: Tensor) -> Tensor:
    """`fill_gaps` from values as the network sees them, wild ones at their limit: of a line through a slip of a pen
    nothing else would be left."""
    size_1d = torch.where(observed, x.abs(), 0).amax(-2, keepdim=True)
    size_1d = torch.where(size_1d > 0, size_1d, 1.0)  # so that no difference overflows
    limited = _move_wild_observed((x / size_1d).mT, observed.mT).mT
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


def is_constant(x_md: Matrix) -> npt.NDArray[np.bool_]:
    """Columns whose values differ by nothing but rounding.

    Examples
    --------
    >>> is_constant(np.array([[1.0, 0.3, 1e9], [2.0, 0.1 + 0.2, 1e9 + 1]])).tolist()
    [False, True, False]
    """
    top, bottom = x_md.max(axis=0), x_md.min(axis=0)
    size = np.maximum(np.abs(top), np.abs(bottom))
    rounding = 4 * np.finfo(np.float64).eps
    flags: npt.NDArray[np.bool_] = top / 2 - bottom / 2 <= rounding / 2 * size  # halves cannot overflow
    return flags


# ── scale ─────────────────────────────────────────────────────────────────────────────────────────────────


def standardise(
    x: Tensor, *, robust: bool = True, clip: float = CLIP, axis: int = -2, observed: Tensor | None = None
) -> Tensor:
    """Bring columns to mean 0 and variance 1: the one rule that training tables and users' tables share.

    Values beyond median ± 6 robust standard deviations are first moved to that limit, so that a few wild values cannot
    flatten the rest. The robust standard deviation is the distance from the 5th to the 95th percentile over that of a
    normal variable: unlike the interquartile range it stays honest for peaked columns such as cubes. Ordinary columns
    have no such values and get the plain z-score, as do columns whose inner 90 % are constant (rare events). Constant
    columns become 0. Each column is treated on its own, and no step waits for the device.

    Parameters
    ----------
    x : Tensor, shape (..., M, D)
        Samples along `axis`.
    robust : bool
        Whether wild values are moved first.
    clip : float
        Largest absolute value of the result.
    axis : int
        Where the samples are: the second last axis, or the last one, -1, where it is fastest.
    observed : Tensor of bool, of the shape of `x`, optional
        Which cells were observed: only these count, and all others become 0. None: all of them.

    Returns
    -------
    Tensor
        Of the shape and type that came in.

    Examples
    --------
    >>> standardise(torch.tensor([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]]))
    tensor([[-1.2247,  0.0000],
            [ 0.0000,  0.0000],
            [ 1.2247,  0.0000]])
    """
    if observed is not None:
        return _standardise_observed(x.movedim(axis, -1), observed.movedim(axis, -1), robust, clip).movedim(-1, axis)
    x_nm = x.movedim(axis, -1)
    x_nm = _move_wild_values(x_nm) if robust else x_nm
    centre_n1 = x_nm.mean(-1, keepdim=True)
    x_nm = x_nm - centre_n1
    size_n1 = x_nm.abs().amax(-1, keepdim=True)
    is_constant_n1 = size_n1 <= 8 * torch.finfo(x_nm.dtype).eps * centre_n1.abs()  # all that rounding leaves
    x_nm = x_nm / torch.where(is_constant_n1 | (size_n1 == 0), torch.inf, size_n1)  # so that no square overflows
    x_nm = x_nm - x_nm.mean(-1, keepdim=True)
    sd_n1 = x_nm.square().mean(-1, keepdim=True).sqrt()
    return (x_nm / torch.where(sd_n1 > 0, sd_n1, 1.0)).clamp(-clip, clip).movedim(-1, axis)


def _standardise_observed(x_nm: Tensor, observed_nm: Tensor, robust: bool, clip: float) -> Tensor:
    """The rule of `standardise` for the observed cells of each row; what stands in the others does not matter."""
    n_seen_n1 = observed_nm.sum(-1, keepdim=True).clamp(min=1)

    def mean(values_nm: Tensor) -> Tensor:
        return torch.where(observed_nm, values_nm, 0.0).sum(-1, keepdim=True) / n_seen_n1

    x_nm = _move_wild_observed(x_nm, observed_nm) if robust else x_nm
    centre_n1 = mean(x_nm)
    x_nm = torch.where(observed_nm, x_nm - centre_n1, 0.0)
    size_n1 = x_nm.abs().amax(-1, keepdim=True)
    is_constant_n1 = size_n1 <= 8 * torch.finfo(x_nm.dtype).eps * centre_n1.abs()
    x_nm = x_nm / torch.where(is_constant_n1 | (size_n1 == 0), torch.inf, size_n1)
    x_nm = x_nm - mean(x_nm)
    sd_n1 = mean(x_nm.square()).sqrt()
    x_nm = (x_nm / torch.where(sd_n1 > 0, sd_n1, 1.0)).clamp(-clip, clip)
    return torch.where(observed_nm, x_nm, 0.0)


def _move_wild_observed(x_nm: Tensor, observed_nm: Tensor) -> Tensor:
    """`_move_wild_values` by the observed cells of each row."""
    sorted_nm = sort_rows(torch.where(observed_nm, x_nm, torch.inf))
    place_n1 = observed_nm.sum(-1, keepdim=True).clamp(min=1) - 1
    return _limit(x_nm, *(_quantile_at(sorted_nm, q * place_n1, place_n1) for q in (0.05, 0.5, 0.95)))


def _quantile_at(sorted_nm: Tensor, place_n1: Tensor, last_n1: Tensor) -> Tensor:
    """Linear interpolation at a place of its own in each row."""
    below_n1 = place_n1.long()
    low_n1, high_n1 = sorted_nm.gather(-1, below_n1), sorted_nm.gather(-1, torch.minimum(below_n1 + 1, last_n1))
    return low_n1 + (place_n1 - below_n1) * (high_n1 - low_n1)


def _limit(x_nm: Tensor, low_n1: Tensor, middle_n1: Tensor, high_n1: Tensor) -> Tensor:
    """Values beyond the median ± 6 robust standard deviations, to that limit."""
    reach_n1 = WILD * (high_n1 - low_n1) / _NORMAL_RANGE
    reach_n1 = torch.where(reach_n1 > 0, reach_n1, torch.inf)
    return torch.minimum(torch.maximum(x_nm, middle_n1 - reach_n1), middle_n1 + reach_n1)


def _move_wild_values(x_nm: Tensor) -> Tensor:
    """Values beyond median ± 6 robust standard deviations, to that limit."""
    sorted_nm = sort_rows(x_nm)
    return _limit(x_nm, *(_quantile(sorted_nm, q) for q in (0.05, 0.5, 0.95)))


def sort_rows(x_nm: Tensor) -> Tensor:
    """Values in increasing order along the last axis; on a CPU, numpy is twenty times as fast as torch.

    Examples
    --------
    >>> sort_rows(torch.tensor([[3.0, 1.0, 2.0]]))
    tensor([[1., 2., 3.]])
    """
    if x_nm.device.type != "cpu" or x_nm.requires_grad:
        return x_nm.sort(-1).values
    return torch.from_numpy(np.sort(x_nm.numpy(), axis=-1))


def _quantile(sorted_nm: Tensor, q: float) -> Tensor:
    """Quantile with linear interpolation, from values sorted along the last axis."""
    place = q * (sorted_nm.shape[-1] - 1)
    below = int(place)
    above = min(below + 1, sorted_nm.shape[-1] - 1)
    low_n1, high_n1 = sorted_nm[..., below, None], sorted_nm[..., above, None]
    return low_n1 + (place - below) * (high_n1 - low_n1)


def _avoid_overflow(x_md: Matrix) -> Matrix:
    """Bring every column near zero and one without overflow, so that 1e308 and dates keep their digits.

    Values further out than a thousand times the inner 90 % are moved to that limit, far beyond where
    `standardise` cuts anyway: one cell of 1e308 must not push the others below the smallest number.

    Examples
    --------
    >>> _avoid_overflow(np.array([[1e308, 1e9], [-1e308, 1e9 + 1], [0, 1e9 + 2]])).T.round(3).tolist()
    [[0.556, -0.556, 0.0], [-0.556, 0.0, 0.556]]
    """
    x_md = x_md / np.abs(x_md).max(axis=0)
    low, middle, high = np.quantile(x_md, [0.05, 0.5, 0.95], axis=0)
    x_md = x_md - middle
    width = high - low
    with np.errstate(over="ignore"):
        inner_md = np.clip(x_md / np.where(width > 0, width, 1.0), -1e3, 1e3)
    return np.where(width > 0, inner_md, x_md / np.abs(x_md).max(axis=0))


# ── warnings ──────────────────────────────────────────────────────────────────────────────────────────────


def _warn_about(names: Sequence[str], x_md: Matrix) -> list[str]:
    n_rows, warnings = len(x_md), []
    if n_rows < FEW_ROWS:
        warnings.append(
            f"only {n_rows} rows: almost nothing can be learned from so few, and even columns of pure noise get links "
            f"here; do not rely on any of them below {FEW_ROWS} rows, where training began"
        )
    return warnings + _find_counters(names, x_md) + describe_redundancy(names, x_md)


def _warn_of_spread(x_md: Matrix) -> list[str]:
    """That all columns lie far out in some rows and near the middle in others, where it is so."""
    found = share_spread(standardise(torch.from_numpy(x_md)).numpy())
    if len(x_md) < FEW_ROWS or found < SPREAD:
        return []
    return [
        f"in some rows all columns lie far out, in others none does (correlation of |x| {found:.2f} beyond chance), as "
        "with returns of stocks in wild weeks and calm ones: this alone makes links where there are no others; of a "
        "dozen columns or more, divide each row by the root mean square of its standardised values"
    ]


def _tell_of_peaks(x_md: Matrix, missing_md: BoolMatrix) -> list[str]:
    """That narrow peaks are stretched, where they are."""
    n_stretched = int(find_peaks(x_md, ~missing_md).sum())
    if not n_stretched:
        return []
    return [
        f"{spell_count(n_stretched, 'column')} in two narrow peaks: what lies within them is stretched, to {WIDTH:g} "
        "standard deviations of the column, for the network to see it"
    ]


def _tell_of_levels(x_md: Matrix, missing_md: BoolMatrix) -> list[str]:
    """That columns of two levels get noise, where they do."""
    n_disturbed = int(find_levels(x_md, missing_md).sum())
    if not n_disturbed:
        return []
    return [
        f"{spell_count(n_disturbed, 'column')} of two levels, and next to no others: the network is shown them with a "
        f"little noise ({AMOUNT:g} standard deviations), since it cannot read a table of nothing else"
    ]


def _find_counters(names: Sequence[str], x_md: Matrix) -> list[str]:
    """Columns that rise by the same step from row to row, as row numbers do."""
    if len(x_md) < 5:
        return []
    steps = np.diff(x_md, axis=0)
    counters = np.flatnonzero((np.abs(steps - steps[0]) <= 1e-6 * np.abs(steps[0])).all(axis=0))
    return [
        f"column {names[k]!r} rises by the same step from row to row; if it numbers the rows, drop it" for k in counters
    ]


def describe_redundancy(names: Sequence[str], x_md: Matrix) -> list[str]:
    """Name columns that repeat each other, or nearly, and sets of columns bound by an exact linear relation.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(9, 2))
    >>> describe_redundancy(["a", "b", "sum"], np.column_stack([x, x.sum(axis=1)]))[0][:60]
    "columns 'a', 'b', 'sum' are bound by an exact linear relatio"
    """
    n_rows, n_columns = x_md.shape
    if n_columns > 1000 or n_rows < 4:
        return []
    groups, firsts = _find_copies(correlate(x_md), SAME)
    warnings = _warn_of_copies(names, groups, "the same up to units", "=")
    if n_rows >= FEW_ROWS:  # of fewer, chance alone makes some
        near, _ = _find_copies(correlate(standardise(torch.from_numpy(x_md[:, firsts])).numpy()), NEARLY_SAME)
        kept = [names[k] for k in firsts]
        warnings += _warn_of_copies(kept, near, f"nearly the same (correlation beyond {NEARLY_SAME})", "≈")
    if not 2 < len(firsts) < n_rows - 1:
        return warnings
    bound = _find_bound(correlate(x_md[:, firsts]))
    if len(bound):
        warnings.append(
            f"{spell_columns([names[firsts[k]] for k in bound])} are bound by an exact linear relation (as "
            "parts and their sum are); links among them are not to be trusted, and links with others are easily "
            "missed: consider leaving out what follows from the rest"
        )
    return warnings


def _warn_of_copies(names: Sequence[str], groups: list[list[int]], how: str, mark: str) -> list[str]:
    if not groups:
        return []
    shown = ", ".join(f" {mark} ".join(repr(names[k]) for k in group[:4]) for group in groups[:8])
    return [
        f"columns that are {how}: {shown}{', …' if len(groups) > 8 else ''}; all are kept, but each "
        "hides the links of its copies: consider dropping all but one"
    ]


def _find_copies(r_dd: Matrix, least: float) -> tuple[list[list[int]], Indices]:
    """Groups of columns joined by correlations beyond ±`least`, and the first column of every group."""
    same = np.abs(r_dd) > least
    leader = same.argmax(axis=1)
    while (first := np.where(same, leader, leader[:, None]).min(axis=1)).sum() < leader.sum():
        leader = first  # of whom one is nearly the same as may be so of another, which oneself is not
    groups = [np.flatnonzero(leader == k).tolist() for k in np.unique(leader) if (leader == k).sum() > 1]
    return groups, np.unique(leader)


def _find_bound(r_dd: Matrix) -> Indices:
    """Columns that take part in the null space of a correlation matrix."""
    if len(r_dd) > 500:
        return np.empty(0, dtype=np.int64)
    values, vectors = find_axes(r_dd)
    null = np.abs(vectors[:, values < 1e-11 * len(r_dd)])
    return np.flatnonzero((null > 1e-5).any(axis=1)) if null.size else np.empty(0, dtype=np.int64)


# ── which rows ────────────────────────────────────────────────────────────────────────────────────────────


def canonical_order(
    x_md: Matrix, names: Sequence[str] = (), marks_md: npt.NDArray[np.integer] | None = None
) -> Indices:
    """Order rows by their content alone: shuffling rows or columns, or changing units, changes nothing.

    Every cell is replaced by its rank within the column. A row's key is a sum of hashes over its columns and
    a column's key a sum over its rows; three rounds tell apart whatever differs. What cannot be told apart so (a
    table that looks the same after two columns change places) is decided by the names of the columns. Rows that hold
    the same are put in order by what is known of their cells, `marks_md`.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> shuffled = x[::-1, [2, 0, 1]] * [1.0, 1000.0, 3.0]
    >>> ours, theirs = x[canonical_order(x)][:, [2, 0, 1]], shuffled[canonical_order(shuffled)]
    >>> bool(np.allclose(ours * [1.0, 1000.0, 3.0], theirs))
    True
    """
    ranks_md = np.empty(x_md.shape, dtype=np.uint64)
    for k, column in enumerate(x_md.T):
        ranks_md[:, k] = np.unique(column, return_inverse=True)[1]
    key_d = np.zeros(x_md.shape[1], dtype=np.uint64)
    key_m = np.zeros(x_md.shape[0], dtype=np.uint64)
    for _ in range(3):
        key_m = _hash(ranks_md + key_d).sum(axis=1)
        key_d = _hash(ranks_md + _hash(key_m)[:, None]).sum(axis=0)
    if len(np.unique(key_m)) == len(key_m):
        return np.argsort(key_m)
    by_key = sorted(range(len(key_d)), key=lambda k: (key_d[k], names[k] if len(names) else k), reverse=True)
    marks_dm = () if marks_md is None else marks_md.T[by_key]
    order: Indices = np.lexsort((*marks_dm, *ranks_md.T[by_key], key_m))
    return order


def _hash(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scatter integers over 64 bits (the finalising steps of splitmix64); products wrap around on purpose."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw_passes(n_rows: int, config: PrepareConfig, notes: Notes, n_found: int | None = None) -> tuple[Indices, ...]:
    """Choose the rows of every forward pass; says so in `notes` when not all rows are in one.

    `n_found` rows were there, if not all were read.

    Examples
    --------
    >>> [len(rows) for rows in draw_passes(10, PrepareConfig(max_rows=4, large="average"), Notes())]
    [3, 3, 3]
    """
    if n_rows <= config.max_rows:
        return (np.arange(n_rows),)
    shuffled = np.random.default_rng(config.seed).permutation(n_rows)
    if config.large == "subsample":
        notes.changes.append(f"{config.max_rows} of {n_rows} rows drawn at random (seed {config.seed})")
        _warn_of_draw(config.max_rows, n_found or n_rows, config.max_rows, notes)
        return (np.sort(shuffled[: config.max_rows]),)
    most = min(config.max_rows, ROWS_AVERAGED)
    n_passes = min(MAX_PASSES, -(-n_rows // most))
    size = min(most, n_rows // n_passes)
    done = f"answers of {n_passes} disjoint draws of {size} out of {n_rows} rows averaged (seed {config.seed})"
    notes.changes.append(done)
    if n_passes * size < (1 - MAX_ROWS_DROPPED) * (n_found or n_rows):
        _warn_of_draw(n_passes * size, n_found or n_rows, size, notes)
    return tuple(np.sort(shuffled[k * size : (k + 1) * size]) for k in range(n_passes))


def _warn_of_draw(n_used: int, n_rows: int, n_at_once: int, notes: Notes) -> None:
    share = f"{n_used / n_rows:.{0 if 100 * n_used >= n_rows else 2}%}"
    notes.warnings.append(
        f"{n_used} of {n_rows} rows used ({share}): links too weak for {n_at_once} of them are not found"
    )
