"""Table → what the network sees: complete, varying, standardised columns, and a report of every change.

The rules, in the order they are applied:

1. Infinite values count as missing. Rows without a single value are left out.
2. Missing values (``missing="auto"``): columns with more than 30 % missing are left out; if the gaps of the
   rest touch at most 5 % of the rows, those rows are left out; otherwise every gap gets its column's median.
   ``"drop"`` always leaves rows out, ``"impute"`` always fills, ``"error"`` refuses.
3. Constant columns keep their place in the answer, with no links; the network does not see them.
4. Neighbouring rows that resemble each other, as in a time series, count for fewer (`graphbam.tables.rows`), unless
   they are only sorted or ``independent_rows=True``. Nothing else hangs on the order of rows.
5. Rows are put into an order that depends on their content only, so that neither row order nor column order
   nor units can change what a seeded draw picks. More than `max_rows` rows: one seeded draw (``"subsample"``)
   or up to eight disjoint draws whose answers are averaged (``"average"``).
6. Columns are standardised by `graphbam.tables.scaling.standardise_columns`, the same function that prepares the
   simulated tables of training; it tames heavy tails with a robust scale.

Duplicated and collinear columns, and those that look like row numbers, go through unchanged, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphbam.errors import ConfigError, TableError
from graphbam.tables.read import Matrix, Table, spell_columns
from graphbam.tables.rows import RowOrder, count_rows, read_order
from graphbam.tables.scaling import standardise_columns

Missing: TypeAlias = Literal["auto", "drop", "impute", "error"]
Large: TypeAlias = Literal["subsample", "average"]
Indices: TypeAlias = npt.NDArray[np.int64]

MAX_MISSING_IN_COLUMN = 0.30
MAX_ROWS_DROPPED = 0.05
MAX_PASSES = 8
FEW_ROWS = 10
MANY_VARIABLES = 200


@dataclass(frozen=True, kw_only=True)
class PreprocessingConfig:
    """How a table is made ready; the module docstring gives the rules."""

    missing: Missing = "auto"
    """What to do about missing values."""
    max_rows: int = 5000
    """Largest number of rows in one pass."""
    large: Large = "subsample"
    """What to do with more rows than that."""
    seed: int = 0
    """Seed of the draw of rows, and of nothing else."""
    independent_rows: bool = False
    """Take rows for independent even where neighbours resemble each other, as in a table that was merely sorted."""

    def __post_init__(self) -> None:
        _check_choice("missing", self.missing, ("auto", "drop", "impute", "error"))
        _check_choice("large", self.large, ("subsample", "average"))
        if self.max_rows < 2:
            raise ConfigError(f"max_rows={self.max_rows} leaves nothing to compare; pass at least 2.")


def _check_choice(name: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name}={value!r} is not known; choose one of {', '.join(map(repr, allowed))}.")


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
    """What `read_order` says: how much neighbouring rows repeat each other."""
    left_out: tuple[str, ...] = ()
    """Columns that were left out because of missing values."""

    def standardised(self) -> Tensor:
        """One standardised table a pass, shape (passes, M, D), float32."""
        return standardise(self.x_md[np.stack(self.passes)])

    def worth(self, n_drawn: int) -> float:
        """How many independent rows so many rows of this table are worth."""
        return count_rows(n_drawn, len(self.x_md), self.redundancy)

    def put_constants_back(self, values_ee: Matrix, nothing: float | Sequence[float]) -> Matrix:
        """Symmetric values of all pairs of columns from those of the varying ones; other pairs have `nothing`."""
        n_variables = len(self.names)
        values_dd = np.full((n_variables, n_variables, *values_ee.shape[2:]), nothing, dtype=np.float64)
        values_dd[np.ix_(self.varying, self.varying)] = (values_ee + values_ee.swapaxes(0, 1)) / 2
        return values_dd


def prepare(table: Table, config: PreprocessingConfig | None = None) -> Prepared:
    """Make a table ready for the network.

    Examples
    --------
    >>> table = Table(("a", "b", "c"), np.array([[1.0, 2, 5], [2, 1, 5], [3, 7, 5], [4, 4, 5]]), "example")
    >>> ready = prepare(table)
    >>> tuple(ready.standardised().shape), ready.changes
    ((1, 4, 2), ("column 'c' is constant: kept without links, not shown to the network",))
    """
    config = config or PreprocessingConfig()
    names, x_md, changes = _complete(table, config.missing)
    varying = _find_varying(table, names, x_md, changes)
    x_md = rescale(x_md[:, varying])
    order = RowOrder(0.0, sorted_only=True) if config.independent_rows else _judge_order(x_md, changes)
    features = describe_table(np.random.default_rng(0).permutation(x_md) if order.sorted_only else x_md)
    kept = [names[k] for k in varying]
    warnings = _warn_about(kept, x_md)
    x_md = x_md[canonical_order(x_md, kept)]
    passes = draw_passes(len(x_md), config, changes)
    gone = tuple(name for name in table.names if name not in set(names))
    return Prepared(
        names=names,
        varying=varying,
        x_md=x_md,
        passes=passes,
        source=table.source,
        n_rows=table.shape[0],
        changes=(*table.changes, *changes),
        warnings=tuple(warnings),
        features=features,
        redundancy=order.redundancy,
        left_out=gone,
    )


def _find_varying(table: Table, names: Sequence[str], x_md: Matrix, changes: list[str]) -> Indices:
    """Places of the columns that are not constant; the others are reported."""
    constant = is_constant(x_md)
    if constant.any():
        about = spell_columns([name for name, flag in zip(names, constant, strict=True) if flag])
        verb = "are" if constant.sum() > 1 else "is"
        changes.append(f"{about} {verb} constant: kept without links, not shown to the network")
    varying = np.flatnonzero(~constant)
    if len(varying) < 2:
        raise TableError(
            f"{table.source}: {len(varying)} of {len(names)} columns vary over its {len(x_md)} rows, and a "
            "graph needs two. Check that the right file was read, or add rows."
        )
    return varying


def _judge_order(x_md: Matrix, changes: list[str]) -> RowOrder:
    """How much neighbouring rows repeat each other, and a report where they do."""
    order = read_order(x_md)
    if order.sorted_only:
        changes.append("rows are sorted by columns of the table: neighbours resemble each other, and count in full")
    if order.redundancy:
        worth = count_rows(len(x_md), len(x_md), order.redundancy)
        changes.append(
            f"neighbouring rows resemble each other: {len(x_md)} rows count as {worth:.0f} independent ones "
            "(independent_rows=True if they are only sorted, by something that is not in the table)"
        )
    return order


def standardise(x_bmd: Matrix) -> Tensor:
    """The shared scaling, float64 inside, float32 out."""
    return standardise_columns(torch.from_numpy(np.ascontiguousarray(x_bmd))).float()


# ── missing and constant ──────────────────────────────────────────────────────────────────────────────────


def _complete(table: Table, policy: Missing) -> tuple[tuple[str, ...], Matrix, list[str]]:
    """Steps 1 and 2 of the module docstring: names, complete values, changes."""
    x_md, changes = table.x_md.copy(), list[str]()
    infinite = np.isinf(x_md)
    if infinite.any():
        x_md[infinite] = np.nan
        about = spell_columns([table.names[k] for k in np.flatnonzero(infinite.any(axis=0))])
        changes.append(f"{_count(infinite.sum(), 'infinite value')} in {about} counted as missing")
    gaps = np.isnan(x_md)
    if not gaps.any():
        return table.names, x_md, changes
    if gaps.all():
        raise TableError(f"{table.source} holds no number: every cell is missing. Check how it was saved.")
    if policy == "error":
        _refuse_gaps(table, gaps)
    keep = ~gaps.all(axis=1)
    if not keep.all():
        changes.append(f"{_count((~keep).sum(), 'row')} without any value left out")
    names, x_md = _drop_gappy_columns(table, x_md[keep], policy, changes)
    return names, _close_gaps(x_md, policy, table.source, changes), changes


def _refuse_gaps(table: Table, gaps: npt.NDArray[np.bool_]) -> None:
    row, column = np.argwhere(gaps)[0]
    raise TableError(
        f"{table.source}: {_count(gaps.sum(), 'missing value')} (first: row {row + 1}, column "
        f"{table.names[column]!r}). Fill them, or pass missing='auto'."
    )


def _drop_gappy_columns(
    table: Table, x_md: Matrix, policy: Missing, changes: list[str]
) -> tuple[tuple[str, ...], Matrix]:
    """Leave out columns with too many gaps; those without a single value in any case."""
    share = np.isnan(x_md).mean(axis=0)
    limit = MAX_MISSING_IN_COLUMN if policy == "auto" else np.nextafter(1.0, 0.0)
    gappy = share > limit
    if not gappy.any():
        return table.names, x_md
    lost = [f"{table.names[k]!r} ({share[k]:.0%} missing)" for k in np.flatnonzero(gappy)]
    listed = ", ".join(lost[:8]) + (f" and {len(lost) - 8} more" if len(lost) > 8 else "")
    if (~gappy).sum() < 2:
        raise TableError(
            f"{table.source}: too little is known of {listed}, and fewer than two columns are left. "
            "Fill the gaps, or pass missing='impute'."
        )
    changes.append(f"left out for missing values: {listed}")
    return tuple(name for name, g in zip(table.names, gappy, strict=True) if not g), x_md[:, ~gappy]


def _close_gaps(x_md: Matrix, policy: Missing, source: str, changes: list[str]) -> Matrix:
    gaps = np.isnan(x_md)
    hit = gaps.any(axis=1)
    if not hit.any():
        return x_md
    if policy == "drop" or (policy == "auto" and hit.mean() <= MAX_ROWS_DROPPED):
        if (~hit).sum() < 2:
            raise TableError(
                f"{source}: {(~hit).sum()} of {len(x_md)} rows are complete, and two are the least. "
                "Pass missing='impute', or drop the columns with most gaps."
            )
        changes.append(f"{_count(hit.sum(), 'row')} of {len(x_md)} with missing values left out")
        return x_md[~hit]
    changes.append(f"{_count(gaps.sum(), 'missing value')} ({gaps.mean():.1%} of cells) set to the column's median")
    return np.where(gaps, 4 * np.nanmedian(x_md / 4, axis=0), x_md)  # so that no sum of two overflows


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


def rescale(x_md: Matrix) -> Matrix:
    """Bring every column near zero and one without overflow, so that 1e308 and dates keep their digits.

    Values further out than a thousand times the inner 90 % are moved to that limit, far beyond where
    `graphbam.tables.scaling` cuts anyway: one cell of 1e308 must not push the others below the smallest number.

    Examples
    --------
    >>> rescale(np.array([[1e308, 1e9], [-1e308, 1e9 + 1], [0, 1e9 + 2]])).T.round(3).tolist()
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
    n_rows, n_columns = x_md.shape
    warnings = []
    if n_rows <= FEW_ROWS:
        warnings.append(
            f"only {n_rows} rows: almost nothing can be learned from so few, so probabilities stay close to "
            "what is common in training, and a missing link means little"
        )
    if n_columns > MANY_VARIABLES:
        warnings.append(
            f"{n_columns} variables are more than the {MANY_VARIABLES} up to which this version was tested; "
            "expect the ranking to hold better than the probabilities"
        )
    return warnings + _find_counters(names, x_md) + describe_redundancy(names, x_md)


def _find_counters(names: Sequence[str], x_md: Matrix) -> list[str]:
    """Columns that rise by the same step from row to row, as row numbers do."""
    if len(x_md) < 5:
        return []
    steps = np.diff(x_md, axis=0)
    counters = np.flatnonzero((np.abs(steps - steps[0]) <= 1e-6 * np.abs(steps[0])).all(axis=0))
    return [
        f"column {names[k]!r} rises by the same step from row to row; if it numbers the rows, pass drop=[{names[k]!r}]"
        for k in counters
    ]


def describe_redundancy(names: Sequence[str], x_md: Matrix) -> list[str]:
    """Name columns that repeat each other, and sets of columns bound by an exact linear relation.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(9, 2))
    >>> describe_redundancy(["a", "b", "sum"], np.column_stack([x, x.sum(axis=1)]))[0][:60]
    "columns 'a', 'b', 'sum' are bound by an exact linear relatio"
    """
    n_rows, n_columns = x_md.shape
    if n_columns > 1000 or n_rows < 4:
        return []
    groups, firsts = _find_copies(_correlate(x_md))
    warnings = []
    if groups:
        shown = ", ".join(" = ".join(repr(names[k]) for k in group[:4]) for group in groups[:8])
        warnings.append(
            f"columns that are the same up to units: {shown}{', …' if len(groups) > 8 else ''}; all are kept, but each "
            "hides the links of its copies: consider dropping all but one"
        )
    if not 2 < len(firsts) < n_rows - 1:
        return warnings
    bound = _find_bound(_correlate(x_md[:, firsts]))
    if len(bound):
        warnings.append(
            f"{spell_columns([names[firsts[k]] for k in bound])} are bound by an exact linear relation (as "
            "parts and their sum are); links among them are not to be trusted"
        )
    return warnings


def _correlate(x_md: Matrix) -> Matrix:
    z_md = x_md - x_md.mean(axis=0)
    norm = np.linalg.norm(z_md, axis=0)
    z_md /= np.where(norm > 0, norm, 1)
    product: Matrix = z_md.T @ z_md
    return product


def _find_copies(r_dd: Matrix) -> tuple[list[list[int]], Indices]:
    """Groups of columns with correlation ±1, and the first column of every group."""
    same = np.abs(r_dd) > 1 - 1e-10
    leader = same.argmax(axis=1)
    groups = [np.flatnonzero(leader == k).tolist() for k in np.unique(leader) if (leader == k).sum() > 1]
    return groups, np.unique(leader)


def _find_bound(r_dd: Matrix) -> Indices:
    """Columns that take part in the null space of a correlation matrix."""
    if len(r_dd) > 500:
        return np.empty(0, dtype=np.int64)
    values, vectors = np.linalg.eigh(r_dd)
    null = np.abs(vectors[:, values < 1e-11 * len(r_dd)])
    return np.flatnonzero((null > 1e-5).any(axis=1)) if null.size else np.empty(0, dtype=np.int64)


# ── which rows ────────────────────────────────────────────────────────────────────────────────────────────


def canonical_order(x_md: Matrix, names: Sequence[str] = ()) -> Indices:
    """Order rows by their content alone: shuffling rows or columns, or changing units, changes nothing.

    Every cell is replaced by its rank within the column. A row's key is a sum of hashes over its columns and
    a column's key a sum over its rows; three rounds tell apart whatever differs. What cannot be told apart so (a
    table that looks the same after two columns change places) is decided by the names of the columns.

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
    order: Indices = np.lexsort((*ranks_md.T[by_key], key_m))
    return order


def _hash(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scatter integers over 64 bits (the finalising steps of splitmix64); products wrap around on purpose."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def draw_passes(n_rows: int, config: PreprocessingConfig, changes: list[str]) -> tuple[Indices, ...]:
    """Choose the rows of every forward pass; says so in `changes` when not all rows are in one.

    Examples
    --------
    >>> [len(rows) for rows in draw_passes(10, PreprocessingConfig(max_rows=4, large="average"), [])]
    [3, 3, 3]
    """
    if n_rows <= config.max_rows:
        return (np.arange(n_rows),)
    shuffled = np.random.default_rng(config.seed).permutation(n_rows)
    if config.large == "subsample":
        changes.append(f"{config.max_rows} of {n_rows} rows drawn at random (seed {config.seed})")
        return (np.sort(shuffled[: config.max_rows]),)
    n_passes = min(MAX_PASSES, -(-n_rows // config.max_rows))
    size = min(config.max_rows, n_rows // n_passes)
    changes.append(f"answers of {n_passes} disjoint draws of {size} out of {n_rows} rows averaged (seed {config.seed})")
    return tuple(np.sort(shuffled[k * size : (k + 1) * size]) for k in range(n_passes))


# ── how unlike training ───────────────────────────────────────────────────────────────────────────────────

FEATURES = {
    "n_samples": "number of rows",
    "n_variables": "number of variables",
    "tail_width": "weight of the tails (99 % range over 50 % range)",
    "outlier_share": "share of values more than ten robust deviations out",
    "asymmetry": "asymmetry of the columns",
    "discrete_share": "share of columns with few distinct values",
    "mean_correlation": "mean absolute correlation",
    "strongest_correlation": "strongest correlation of a variable, averaged",
    "effective_rank": "effective rank relative to full",
    "row_dependence": "likeness of consecutive rows (near 0 for independent ones)",
}
"""What `describe_table` measures, in words."""

_HARMLESS_BELOW = {
    "tail_width", "outlier_share", "asymmetry", "discrete_share", "mean_correlation", "strongest_correlation",
    "row_dependence",
}  # fmt: skip
_HARMLESS_ABOVE = {"effective_rank"}


def describe_table(x_md: Matrix) -> dict[str, float]:
    """Measure what a table looks like, whatever its units and the order of its columns.

    Parameters
    ----------
    x_md : ndarray, shape (M, D)
        Finite numbers, before standardising, rows in their original order, M ≥ 2 and D ≥ 2.

    Returns
    -------
    dict
        One number for every key of `FEATURES`.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(500, 8))
    >>> about = describe_table(x)
    >>> about["n_samples"], round(about["effective_rank"], 1), about["discrete_share"]
    (500.0, 1.0, 0.0)
    """
    n_rows, n_columns = x_md.shape
    sorted_md = np.sort(np.asarray(x_md, dtype=np.float64), axis=0)
    middle, half, wide, lean = _shape_of(sorted_md)
    z_md = np.clip((x_md - middle) / half, -10, 10)
    distinct = 1 + (np.diff(sorted_md, axis=0) > 0).sum(axis=0)
    r_dd = np.abs(_correlate(np.clip(z_md, -5, 5)))
    np.fill_diagonal(r_dd, 0.0)
    rank = n_columns**2 / (n_columns + (r_dd**2).sum())
    return {
        "n_samples": float(n_rows),
        "n_variables": float(n_columns),
        "tail_width": float(np.mean(wide)),
        "outlier_share": float(np.mean(np.abs(z_md) >= 10)),
        "asymmetry": float(np.mean(np.abs(lean))),
        "discrete_share": float(np.mean(distinct <= min(20, n_rows / 2))),
        "mean_correlation": float(r_dd.sum() / (n_columns * (n_columns - 1))),
        "strongest_correlation": float(r_dd.max(axis=0).mean()),
        "effective_rank": float(rank / min(n_columns, n_rows - 1)),
        "row_dependence": _row_dependence(z_md),
    }


def _shape_of(sorted_md: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Median, robust deviation, width of the tails and lean of columns that are already sorted."""
    n_rows = len(sorted_md)

    def quantile(q: float) -> Matrix:
        row: Matrix = sorted_md[round(q * (n_rows - 1))]
        return row

    middle = quantile(0.5)
    box = quantile(0.75) - quantile(0.25)
    box = np.maximum(box, 1e-4 * (sorted_md[-1] - sorted_md[0]))  # more than half of the values may be equal
    box = np.where(box > 0, box, 1.0)
    wide = (quantile(0.99) - quantile(0.01)) / box
    lean = (quantile(0.9) + quantile(0.1) - 2 * middle) / np.maximum(quantile(0.9) - quantile(0.1), box)
    return middle, box / 1.349, np.minimum(wide, 1e3), lean


def _row_dependence(z_md: Matrix) -> float:
    """Mean |correlation of neighbouring rows| above what independent rows give, in about standard deviations."""
    z_md = z_md[:5000] - z_md[:5000].mean(axis=0)
    power = (z_md**2).sum(axis=0)
    lag = np.abs((z_md[1:] * z_md[:-1]).sum(axis=0)) / np.where(power > 0, power, 1.0)
    excess = lag.mean() * np.sqrt(len(z_md) * np.pi / 2) - 1
    return float(excess * np.sqrt(z_md.shape[1] / (np.pi / 2 - 1)))


def summarise_domain(tables: Iterable[Mapping[str, float]], coverage: float = 0.998) -> dict[str, list[float]]:
    """Turn the features of many training tables into the ranges that weights carry under ``"domain"``.

    Parameters
    ----------
    tables : iterable of dict
        What `describe_table` returned for each.
    coverage : float
        Share of the tables inside the range of each feature; high, because every feature may raise an alarm.

    Examples
    --------
    >>> summarise_domain([{"n_samples": float(k)} for k in range(101)], coverage=0.98)
    {'n_samples': [1.0, 99.0]}
    """
    rows = list(tables)
    tail = (1 - coverage) / 2
    return {
        name: [round(float(q), 6) for q in np.quantile([row[name] for row in rows], [tail, 1 - tail])]
        for name in rows[0]
    }


def judge_domain(features: Mapping[str, float], header: Mapping[str, Any]) -> list[str]:
    """Say where a table lies outside what the weights were trained on.

    Parameters
    ----------
    features : dict
        From `describe_table`.
    header : dict
        The header of the weights; without ``header["domain"]`` no verdict is given.

    Returns
    -------
    list of str
        One sentence for each feature outside its range, on a side that makes the task harder.

    Examples
    --------
    >>> judge_domain({"n_samples": 7.0}, {"domain": {"n_samples": [50.0, 1000.0]}})
    ['unlike training: number of rows is 7, where training tables lie between 50 and 1000']
    """
    ranges = header.get("domain") or {}
    return [
        f"unlike training: {FEATURES.get(name, name)} is {features[name]:.3g}, where training tables lie "
        f"between {low:.4g} and {high:.4g}"
        for name, (low, high) in ranges.items()
        if name in features and _is_outside(name, features[name], low, high)
    ]


def _is_outside(name: str, value: float, low: float, high: float) -> bool:
    return (value < low and name not in _HARMLESS_BELOW) or (value > high and name not in _HARMLESS_ABOVE)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
