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

Duplicated and collinear columns, products and ratios of others, those that look like row numbers, and a last row of
totals go through unchanged, with a warning. What was done is in `Prepared.changes`, sentence by sentence; what of it a
reader of the answer must know is also in `Prepared.warnings`, with the number that matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphbam.errors import Setting, TableError, spell_count
from graphbam.tables.config import LEAST_ROWS, PrepareConfig
from graphbam.tables.dither import AMOUNT, find_levels
from graphbam.tables.domain import describe_table
from graphbam.tables.draws import canonical_order, draw_passes
from graphbam.tables.gaps import Cells, complete
from graphbam.tables.notes import Notes
from graphbam.tables.oddities import warn_about, warn_of_relations, warn_of_spread
from graphbam.tables.peaks import WIDTH, find_peaks
from graphbam.tables.rows import MOST_ROWS, RowOrder, count_rows, find_copies, leave_experiments, read_order
from graphbam.tables.standard import avoid_overflow, is_constant, standardise
from graphbam.tables.table import BoolMatrix, BoolVector, Indices, Matrix, Table, spell_columns

NEGLIGIBLE_ROWS = 0.1
"""Share of rows that neighbours which resemble each other may cost before anybody is warned."""

FILLED_TO = 9
"""Decimals of filled cells that count in the order of rows: further ones depend on which row comes first."""

_ALL_COUNT = Setting("independent_rows", True).as_both()


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
    unordered: tuple[str, ...] = ()
    """Columns of text whose levels have numbers without an order."""
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
    cells = complete(table, config, notes)
    names = cells.names
    _check_length(table.source, cells.x_md)
    varying = _find_varying(table, names, cells.x_md, notes)
    x_md = avoid_overflow(cells.x_md[:, varying])
    once_m = np.ones(len(x_md), dtype=bool) if config.independent_rows else _leave_copies(x_md, notes)
    once_md, set_md = x_md[once_m], cells.set_md[np.ix_(once_m, varying)]
    order = RowOrder(0.0, sorted_only=True) if config.independent_rows else _judge_order(once_md, set_md, notes)
    features = describe_table(np.random.default_rng(0).permutation(once_md) if order.sorted_only else once_md)
    kept = [names[k] for k in varying]
    notes.warnings += warn_about(kept, x_md) + _warn_of_relations(kept, cells, varying) + warn_of_spread(once_md)
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
        unordered=tuple(name for name in table.unordered if name in is_there),
        **{name: _marked(marks_md, order_m, varying) for name, marks_md in cells.marks().items()},
    )


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


def _warn_of_relations(names: Sequence[str], cells: Cells, varying: Indices) -> list[str]:
    """Of values as they came, which may be positive, in the rows without gaps."""
    return warn_of_relations(names, cells.x_md[~cells.missing_md[:, varying].any(axis=1)][:, varying])


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


def _marked(marks_md: BoolMatrix, rows: Indices, columns: Indices) -> BoolMatrix | None:
    """Marks of some rows and columns in this order; None where there are none."""
    chosen = marks_md[np.ix_(rows, columns)]
    return chosen if chosen.any() else None
