"""Which figures the report shows: the paper's, as far as there are results, then ours.

The paper judges undirected graphs by average precision (it says AUC), which here stands twice: against the skeleton and
against the moral graph. Its regimes are the tables below; a panel without results is left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from graphbam.benchmarks.report.charts import Looks, draw_bars, draw_curves, draw_map, draw_strips, draw_tradeoff
from graphbam.benchmarks.report.rows import EMPTY, GROUPS, METRICS, SPECIAL, Metric
from graphbam.benchmarks.report.summary import Grid, make_grid, rank_methods

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHAPES = (
    ("undirected results, panel a", "skeleton_ap", 50, 200),
    ("undirected results, panel a", "moral_ap", 50, 200),
    ("undirected results, panel b", "skeleton_ap", 100, 50),
    ("undirected results, panel b", "moral_ap", 100, 50),
    ("undirected results, panel c", "skeleton_accuracy", 100, 50),
    ("appendix, low dimensions, panel a", "skeleton_ap", 10, 200),
    ("appendix, low dimensions, panel a", "moral_ap", 10, 200),
    ("appendix, low dimensions, panel b", "skeleton_ap", 20, 500),
    ("appendix, low dimensions, panel b", "moral_ap", 20, 500),
    ("CPDAG results, panel a", "shd", 20, 200),
    ("CPDAG results, panel b", "shd", 50, 200),
    ("CPDAG results, panel c", "shd", 100, 500),
    ("appendix, high dimensions, panel a", "shd", 100, 50),
    ("appendix, high dimensions, panel b", "cpdag_ap", 100, 50),
)
"""Bars by mechanism: the paper's panel, score, variables, samples."""

SWEEPS = (
    ("undirected results, panel d", "skeleton_ap", "chebyshev"),
    ("undirected results, panel d", "moral_ap", "chebyshev"),
    ("undirected results, panel e", "skeleton_ap", "cosine"),
    ("undirected results, panel e", "moral_ap", "cosine"),
    ("undirected results, panel f", "skeleton_shd", "chebyshev"),
    ("CPDAG results, panel d", "cpdag_ap", "chebyshev"),
    ("CPDAG results, panel e", "shd", "chebyshev"),
    ("CPDAG results, panel f", "shd", "sine"),
)
"""Curves over the samples at d = 100: the paper's panel, score, mechanism."""

SWEEP_VARIABLES = 100
MECHANISMS = ("chebyshev", "linear", "sine", "cosine", "square", "cubic", "multiplicative")
"""Mechanisms of the paper's bars, in the order shown; others follow, those of no training preset last."""

RUNTIME_VARIABLES, RUNTIME_SAMPLES = (10, 20, 50, 100), (50, 200, 500, 1000)
"""Sizes at which time is shown over the samples (the paper's) and over the variables."""

SECTIONS = {
    "overview": "At a glance",
    "undirected": "Undirected graphs",
    "cpdag": "Directed graphs (CPDAG)",
    "labelled": "Labelled tables",
    "runtime": "Runtime",
}
"""Parts of the page, in order."""

_LEAST_MECHANISMS = 4  # shapes that are not the paper's are drawn if they have so many
_LEAST_SIZES = 3  # curves over the samples need so many points

Published = pd.DataFrame | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
    """One figure, the numbers in it, and where it belongs."""

    key: str
    """File name and anchor."""
    section: str
    title: str
    label: str
    """The title in short."""
    caption: str
    paper: str | None = None
    """The paper's panel that it repeats."""
    rows: pd.DataFrame
    """What it was made from."""
    grids: tuple[tuple[str, Grid], ...] = ()
    """What its tables print: titles and numbers."""
    draw: Callable[[], Figure]


def plan_panels(rows: pd.DataFrame, looks: Looks, published: Published = None) -> list[Panel]:
    """Every figure for which there are results, in the order of the page.

    Parameters
    ----------
    rows : DataFrame
        From `read_rows`.
    looks : mapping
        From `assign_looks`.
    published : DataFrame, optional
        Numbers of others: columns mechanism, n_variables, n_samples, method, metric, value.
    """
    simulated = rows[(rows["source"] == "simulated") & ~rows["group"].isin(SPECIAL)]
    panels = [
        *_plan_overview(rows, looks),
        *_plan_shapes(simulated, looks, published),
        *_plan_mlp(simulated, looks, published),
        *_plan_sweeps(simulated, looks, published),
        *_plan_families(rows[rows["group"] == "labelled"], looks),
        *_plan_runtimes(simulated, looks),
    ]
    return sorted(panels, key=lambda panel: list(SECTIONS).index(panel.section))


def _name(metric: Metric, rest: str) -> dict[str, str]:
    """Title, label and section of a panel."""
    section = "cpdag" if metric.is_directed else "undirected"
    return {"title": f"{metric.title}: {rest}", "label": f"{metric.short}: {rest}", "section": section}


def _key(metric: Metric, rest: str) -> str:
    return f"{metric.name.replace('_', '-')}-{rest}"


# ── bars by mechanism ───────────────────────────────────────────────────────────────────────────────────────


def _plan_shapes(rows: pd.DataFrame, looks: Looks, published: Published) -> Iterator[Panel]:
    """Bars by mechanism at the paper's shapes, then average precision at all others."""
    shapes: list[tuple[str | None, str, int, int]] = [*SHAPES]
    n_mechanisms = rows.groupby(["n_variables", "n_samples"])["mechanism"].nunique()
    known = {(d, m) for _, name, d, m in SHAPES if name == "skeleton_ap"}
    shapes += [
        (None, "skeleton_ap", int(d), int(m))
        for d, m in n_mechanisms.index[n_mechanisms >= _LEAST_MECHANISMS]
        if (d, m) not in known
    ]
    for paper, name, d, m in shapes:
        metric, own = METRICS[name], rows[(rows["n_variables"] == d) & (rows["n_samples"] == m)]
        if own[name].notna().any():
            grid = _grid_by_mechanism(own, metric, published)
            words = _name(metric, f"d = {d}, M = {m}") | {"key": _key(metric, f"d{d}-m{m}")}
            yield _make_bars(words, paper, grid, own, looks)


def _grid_by_mechanism(rows: pd.DataFrame, metric: Metric, published: Published) -> Grid:
    unseen = set(rows.loc[rows["group"] == "unseen", "mechanism"])
    found = set(rows.loc[rows[metric.name].notna(), "mechanism"])
    order = [*MECHANISMS, *sorted(found - set(MECHANISMS) - unseen), *sorted(unseen)]
    columns = [name for name in order if name in found]
    titles = [f"{name} (unseen)" if name in unseen else name for name in columns]
    return make_grid(rows, metric, "mechanism", columns, titles, _find_published(published, rows, metric, "mechanism"))


def _plan_mlp(rows: pd.DataFrame, looks: Looks, published: Published) -> Iterator[Panel]:
    """The paper's random networks: one picture per shape."""
    rows = rows[rows["mechanism"] == "mlp"].sort_values(["n_variables", "n_samples"])
    rows = rows.assign(shape=_describe_shape(rows))
    theirs = None if published is None else published.assign(shape=_describe_shape(published))
    for metric in (METRICS["skeleton_ap"], METRICS["moral_ap"]):
        columns = rows.loc[rows[metric.name].notna(), "shape"].unique().tolist()
        if columns:
            grid = make_grid(rows, metric, "shape", columns, columns, _find_published(theirs, rows, metric, "shape"))
            words = _name(metric, "random networks (mlp)") | {"key": _key(metric, "mlp")}
            yield _make_bars(words, "appendix, MLP", grid, rows, looks)


def _describe_shape(rows: pd.DataFrame) -> list[str]:
    return [f"d = {int(d)}, M = {int(m)}" for d, m in zip(rows["n_variables"], rows["n_samples"], strict=True)]


def _find_published(
    published: Published, rows: pd.DataFrame, metric: Metric, across: str
) -> dict[tuple[str, Any], float]:
    """Numbers of others for the cells of `rows`, by method and column."""
    if published is None:
        return {}
    cells = rows[["mechanism", "n_variables", "n_samples"]].drop_duplicates()
    own = published[published["metric"] == metric.name].merge(cells)
    return {(row["method"], row[across]): float(row["value"]) for row in own.to_dict("records")}


def _make_bars(words: dict[str, str], paper: str | None, grid: Grid, rows: pd.DataFrame, looks: Looks) -> Panel:
    note = f"mean ± standard deviation over {grid.n_trials()} trials, best on top" + _explain_marks(grid)
    caption = (
        "Bars are means, whiskers standard deviations over the trials. Methods are ordered by their mean rank over the "
        "pictures, best on top. Where a method has no result, the reason stands instead."
    )
    return Panel(
        **words, caption=caption, paper=paper, rows=rows, grids=(("", grid),),
        draw=lambda: draw_bars(grid, looks, words["title"], note),
    )  # fmt: skip


def _explain_marks(grid: Grid) -> str:
    floor = " · dashed line: graph without edges" if grid.floors else ""
    return floor + (" · ◇ published by others" if grid.published else "")


# ── curves ──────────────────────────────────────────────────────────────────────────────────────────────────


def _plan_sweeps(rows: pd.DataFrame, looks: Looks, published: Published) -> Iterator[Panel]:
    for paper, name, mechanism in SWEEPS:
        metric = METRICS[name]
        own = rows[(rows["mechanism"] == mechanism) & (rows["n_variables"] == SWEEP_VARIABLES)]
        sizes = _find_sizes(own, name, "n_samples")
        if len(sizes) >= _LEAST_SIZES:
            theirs = _find_published(published, own, metric, "n_samples")
            grid = make_grid(own, metric, "n_samples", sizes, [f"M = {m}" for m in sizes], theirs)
            words = _name(metric, f"{mechanism}, d = {SWEEP_VARIABLES}, over M")
            yield _make_curves(words | {"key": _key(metric, f"{mechanism}-over-m")}, paper, grid, own, looks)


def _find_sizes(rows: pd.DataFrame, name: str, across: str) -> list[int]:
    return sorted(int(size) for size in rows.loc[rows[name].notna(), across].unique())


def _make_curves(words: dict[str, str], paper: str, grid: Grid, rows: pd.DataFrame, looks: Looks) -> Panel:
    note = f"mean over {grid.n_trials()} trials; band: ± standard deviation of graphbam" + _explain_marks(grid)
    caption = (
        "Curves are means over the trials; the band is one standard deviation of graphbam, those of the others are in "
        "the table. A name in brackets: where the curve stops, or where it would end beyond the picture."
    )
    return Panel(
        **words, caption=caption, paper=paper, rows=rows, grids=(("", grid),),
        draw=lambda: draw_curves([grid], looks, words["title"], note, "M", [""]),
    )  # fmt: skip


def _plan_runtimes(rows: pd.DataFrame, looks: Looks) -> Iterator[Panel]:
    """Seconds over the samples and over the variables, on one mechanism: shapes then differ in nothing but size."""
    if rows.empty:
        return
    n_shapes = rows.drop_duplicates("case").groupby("mechanism").size()
    rows = rows[rows["mechanism"] == n_shapes.idxmax()]
    for fixed, values, across in (
        ("n_variables", RUNTIME_VARIABLES, "n_samples"),
        ("n_samples", RUNTIME_SAMPLES, "n_variables"),
    ):
        parts = {value: rows[rows[fixed] == value] for value in values}
        parts = {value: own for value, own in parts.items() if len(_find_sizes(own, "seconds", across)) >= 2}
        if parts:
            yield _make_runtimes(parts, across, looks)


def _make_runtimes(parts: dict[int, pd.DataFrame], across: str, looks: Looks) -> Panel:
    axis, fixed, what = ("M", "d", "samples") if across == "n_samples" else ("d", "M", "variables")
    grids = []
    for own in parts.values():
        sizes = _find_sizes(own, "seconds", across)
        grids.append(make_grid(own, METRICS["seconds"], across, sizes, [f"{axis} = {size}" for size in sizes]))
    heads = [f"{fixed} = {value}" for value in parts]
    rows = pd.concat(parts.values())
    title, mechanism = f"Seconds over the {what}", rows["mechanism"].iloc[0]
    note = f"mean wall seconds of one fit, {mechanism} tables; both axes logarithmic"
    return Panel(
        key=f"seconds-over-{axis.lower()}", section="runtime", title=title, label=title,
        caption=f"Mean over the trials of {mechanism} cases. Fits that ran out of time are not in it.",
        paper="appendix, time comparison" if axis == "M" else None, rows=rows,
        grids=tuple(zip(heads, grids, strict=True)),
        draw=lambda: draw_curves(grids, looks, title, note, axis, heads),
    )  # fmt: skip


# ── ours ────────────────────────────────────────────────────────────────────────────────────────────────────


def _plan_overview(rows: pd.DataFrame, looks: Looks) -> Iterator[Panel]:
    if rows["skeleton_ap"].notna().any():
        yield _make_tradeoff(rows, looks)
        yield _make_map(rows, looks)


def _make_tradeoff(rows: pd.DataFrame, looks: Looks) -> Panel:
    cells = rows.groupby(["method", "cell"])["skeleton_ap"].mean().groupby("method")
    seconds, share = rows.groupby("method")["seconds"].median(), cells.count() / rows["cell"].nunique()
    table = pd.DataFrame({"seconds": seconds, "score": cells.mean(), "share": share})
    title, note = "Quality and time", "mean over the cells a method answered (hollow: few); best: upper left"
    return Panel(
        key="quality-and-time", section="overview", title=title, label=title, rows=rows,
        caption="A method that has no answer for hard cells is flattered: its mean is over those it answered. Where "
        "these are less than half of all, the point is hollow.",
        draw=lambda: draw_tradeoff(table, looks, title, note),
    )  # fmt: skip


def _make_map(rows: pd.DataFrame, looks: Looks) -> Panel:
    """All cells as columns: by group, then mechanism and size."""
    place = rows["group"].map(list(GROUPS).index)
    rows = rows.assign(place=place).sort_values(["place", "mechanism", "n_variables", "n_samples"], kind="stable")
    wide = rows.groupby(["group", "cell", "method"], sort=False)["skeleton_ap"].mean().unstack("method", sort=False)
    wide = wide.dropna(how="all")
    groups = [str(group) for group in wide.index.get_level_values("group")]
    values = wide.droplevel("group")[[name for name in _order_methods(rows) if name in wide]]
    title = "Every cell: average precision, skeleton"
    note = "one row per method, best on top; one column per cell; 0 is pale, 1 is dark, no result is white"
    return Panel(
        key="every-cell", section="overview", title=title, label="Every cell", rows=rows,
        caption="Rows are methods, best mean rank on top; columns are cells. The darker, the better.",
        draw=lambda: draw_map(values, groups, looks, title, note),
    )  # fmt: skip


def _order_methods(rows: pd.DataFrame) -> list[str]:
    """All methods with a result, best mean rank first; those that are not ranked come last."""
    ranked = [str(name) for name in rank_methods(rows, "skeleton_ap").table.index]
    return ranked + sorted(set(rows.loc[rows["is_ok"], "method"]) - set(ranked))


def _plan_families(rows: pd.DataFrame, looks: Looks) -> Iterator[Panel]:
    """Labelled tables: the mean over families, and how families differ."""
    for metric in (METRICS["skeleton_ap"], METRICS["moral_ap"], METRICS["skeleton_f1"]):
        own = rows[rows[metric.name].notna() & (rows["method"] != EMPTY)]
        if len(own):
            values = own.groupby(["cell", "method"])[metric.name].mean().unstack("method")
            yield _make_strips(values, metric, rows, looks)


def _make_strips(values: pd.DataFrame, metric: Metric, rows: pd.DataFrame, looks: Looks) -> Panel:
    columns = values.index.tolist()
    words = _name(metric, f"labelled tables, mean over {len(columns)} families")
    words |= {"section": "labelled", "label": f"{metric.short}: {len(columns)} families"}
    note = "pale dots: families · strong dot: their mean · whisker: ± standard deviation between families"
    caption = (
        "Tables from folders, with the graphs that lie beside them. Tables of a family are averaged first, so that "
        "each family counts once; n: number of families, where a method has not answered all."
    )
    return Panel(
        **words, key=_key(metric, "families"), caption=caption, rows=rows,
        grids=(("", make_grid(rows, metric, "cell", columns, columns)),),
        draw=lambda: draw_strips(values, metric, looks, words["title"], note),
    )  # fmt: skip
