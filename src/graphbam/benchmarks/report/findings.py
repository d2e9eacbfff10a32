"""Rows of results → the tables of the report, with what they show, their trials, and the commands that make them."""

from __future__ import annotations

import fnmatch
import math
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from graphbam.benchmarks.baselines import list_baselines, resolve_methods
from graphbam.benchmarks.cases import SUITES
from graphbam.benchmarks.report.charts import Looks
from graphbam.benchmarks.report.panels import Panel
from graphbam.benchmarks.report.rows import GROUPS, METRICS, Metric, choose_ours, is_ours
from graphbam.benchmarks.report.sheets import DASH, Field, Sheet, number, seconds
from graphbam.benchmarks.report.statements import check_statements
from graphbam.benchmarks.report.summary import Grid, Ranking, list_failures, list_losses, rank_methods, summarise
from graphbam.benchmarks.store import Settings, settle
from graphbam.errors import ConfigError

LOSS_METRICS = ("skeleton_ap", "moral_ap", "skeleton_f1", "cpdag_ap", "shd")
"""Scores by which the cells are listed in which we are not first."""

RULES = (
    "Every cell counts once: its tables are averaged first; ± is the standard deviation between cells. Ranks are taken "
    "table by table, by skeleton average precision and by CPDAG SHD: 1 is best, ties share, a failed fit shares the "
    "last places, and tables that some compared method was never given are left out. A cell is won by the best mean; "
    "who failed on one of its tables cannot win it; ties count for all. SHD ratio: CPDAG SHD over that of the graph "
    "without edges, so that 1 is no better than saying nothing. Seconds: median of the fits that ended. "
    "*: the method failed on some tables, its means are over the others."
)
"""How the summary is made."""

SUMMARY_HEAD = (
    "method", "rank", "wins", "rank, SHD", "wins, SHD", "skeleton AP", "moral AP", "F1", "CPDAG AP", "SHD ratio",
    "answered", "seconds",
)  # fmt: skip
_SUMMARY_METRICS = ("skeleton_ap", "moral_ap", "skeleton_f1", "cpdag_ap", "shd_ratio")


# ── summaries ───────────────────────────────────────────────────────────────────────────────────────────────


def summary_sheets(rows: pd.DataFrame, looks: Looks) -> list[Sheet]:
    """One summary per group of cells."""
    groups = [(group, rows[rows["group"] == group]) for group in GROUPS]
    return [_summary_sheet(group, own, looks) for group, own in groups if len(own)]


def _summary_sheet(group: str, rows: pd.DataFrame, looks: Looks) -> Sheet:
    table, by_ap, by_shd = summarise(rows)
    best = {name: _best(table, name) for name in _SUMMARY_METRICS}
    lines = []
    for method, row in table.iterrows():
        mark = "*" if row["n_ok"] < row["n_tables"] else ""
        line = [_name(str(method), looks)]
        line += [number(row["rank"], 2), number(row["wins"], 0), number(row["shd_rank"], 2), number(row["shd_wins"], 0)]
        for name in _SUMMARY_METRICS:
            mean, sd = row[f"{name}_mean"], row[f"{name}_sd"]
            line.append(number(mean, 3, sd, mark=mark, is_bold=method in best[name]))
        line += [
            Field(f"{row['n_ok']:.0f} of {row['n_tables']:.0f}", row["n_ok"] / row["n_tables"]),
            seconds(row["seconds"]),
        ]
        lines.append(line)
    return Sheet(
        f"summary-{group}", GROUPS[group], _describe(rows, by_ap, by_shd, looks), rerun(rows), SUMMARY_HEAD, lines
    )


def _best(table: pd.DataFrame, name: str) -> set[str]:
    """Methods with the best mean among those that answered every table."""
    complete = table.loc[table["n_ok"] == table["n_tables"], f"{name}_mean"].dropna().round(3)
    if complete.empty:
        return set()
    best = complete.max() if METRICS[name].is_better_high else complete.min()
    return set(complete.index[complete == best])


def _describe(rows: pd.DataFrame, by_ap: Ranking, by_shd: Ranking, looks: Looks) -> str:
    """Cells and tables behind a summary, and who is not ranked."""
    n_tables = rows["table"].nunique()
    text = f"{rows['cell'].nunique()} cells, {n_tables} tables, {rows['method'].nunique()} methods. "
    text += f"Ranks by skeleton AP over {by_ap.n_cells} cells ({by_ap.n_tables} tables)"
    text += f", by CPDAG SHD over {by_shd.n_cells} cells ({by_shd.n_tables} tables)." if by_shd.n_cells else "."
    left_out = [f"{looks[name].title} ({reason})" for name, reason in by_ap.left_out.items()]
    return text + (f" Not ranked: {', '.join(left_out)}." if left_out else "")


def state_facts(rows: pd.DataFrame) -> str:
    """What the results hold, in one line."""
    n_failed = int((~rows["is_ok"]).sum())
    counts = [rows[name].nunique() for name in ("method", "cell", "table")]
    facts = "{} methods · {} cells · {} tables".format(*counts)
    return f"{facts} · {len(rows)} fits, {n_failed} without an answer"


def headlines(rows: pd.DataFrame, looks: Looks) -> list[str]:
    """Where we stand, one sentence per group of cells."""
    us = choose_ours(rows["method"].unique().tolist())
    lines = []
    for group, title in GROUPS.items():
        ranks = {name: rank_methods(rows[rows["group"] == group], name) for name in ("skeleton_ap", "shd")}
        parts = [_state_place(ranking, METRICS[name], us, looks) for name, ranking in ranks.items()]
        if any(parts):
            lines.append(f"{title}: {'; '.join(filter(None, parts))}.")
    return lines


def _state_place(ranking: Ranking, metric: Metric, us: str | None, looks: Looks) -> str:
    """Our wins and rank by one score, and who comes next to us; empty if we are not ranked."""
    others = [str(name) for name in ranking.table.index if not is_ours(str(name))]
    if us is None or us not in ranking.table.index or not others:
        return ""
    ours, best = ranking.table.loc[us], ranking.table.loc[others[0]]
    text = f"by {metric.short} {looks[us].title} is first in {ours['wins']:.0f} of {ranking.n_cells} cells, "
    return (
        text
        + f"mean rank {ours['mean_rank']:.2f} (best of the others: {looks[others[0]].title}, {best['mean_rank']:.2f})"
    )


def loss_sheet(rows: pd.DataFrame, looks: Looks) -> Sheet:
    """Every cell in which graphbam is not first, by each score."""
    us = choose_ours(rows["method"].unique().tolist())
    lines, counts = [], []
    for name in LOSS_METRICS:
        metric, losses = METRICS[name], list_losses(rows, name)
        own = rows[(rows["method"] == us) & rows[name].notna()] if us else rows.iloc[:0]
        if not own.empty:
            counts.append(f"{len(losses)} of {own['cell'].nunique()} by {metric.short}")
        for loss in losses.to_dict("records"):
            ours = number(loss["ours"], metric.digits) if not math.isnan(loss["ours"]) else Field("failed", math.nan)
            lines.append([
                Field(metric.short), Field(loss["group"]), Field(loss["cell"]), ours,
                _name(loss["best"], looks), number(loss["theirs"], metric.digits), number(loss["gap"], metric.digits),
                Field(f"{loss['n_ahead']} of {loss['n_tables']}", loss["n_ahead"] / loss["n_tables"]),
            ])  # fmt: skip
    head = ("score", "group", "cell", us or "graphbam", "best", "its mean", "gap", "tables on which we are ahead of it")
    about = f"Cells in which {us} is not first: {'; '.join(counts)}." if us else "There are no rows of graphbam."
    about += " Means over the trials or the family; compared with the methods that answered every table of the cell."
    return Sheet("losses", "Where we lose", about, rerun(rows), head, lines)


def statement_sheet(rows: pd.DataFrame) -> Sheet:
    """The paper's statements with our verdicts."""
    lines = [
        [Field(statement.says), Field(statement.where), Field(verdict.word), Field(verdict.evidence)]
        for statement, verdict in check_statements(rows)
    ]
    about = (
        "The source of the paper holds its figures as pictures without numbers, so there is no number of theirs beside "
        "ours. Its text makes these statements; each is checked on the simulated cells, against the skeleton."
    )
    head = ("statement", "part", "here", "evidence")
    return Sheet("statements", "What the paper says", about, rerun(rows), head, lines)


# ── figures ─────────────────────────────────────────────────────────────────────────────────────────────────


def panel_sheets(panel: Panel, looks: Looks) -> Iterable[Sheet]:
    """The numbers of a figure."""
    for place, (head, grid) in enumerate(panel.grids):
        title = f"{panel.title}: {head}" if head else panel.title
        yield _grid_sheet(f"{panel.key}-{place}", title, grid, panel.rows, looks)


def _grid_sheet(key: str, title: str, grid: Grid, rows: pd.DataFrame, looks: Looks) -> Sheet:
    best = {column: _find_best(grid, column) for column in grid.columns}
    lines = [
        [_name(method, looks), *(_grid_field(grid, method, column, best[column]) for column in grid.columns)]
        for method in grid.order
    ]
    if grid.floors:
        floors = [number(grid.floors[column], grid.metric.digits) for column in grid.columns]
        lines.append([Field("graph without edges"), *floors])
    about = f"{grid.metric.title}; mean ± standard deviation over {grid.n_trials()} tables. "
    about += "Failed fits are not in the means; how many are is said in brackets."
    return Sheet(key, title, about, rerun(rows), ("method", *grid.titles), lines)


def _grid_field(grid: Grid, method: str, column: Any, best: str | None) -> Field:
    mean, sd, n = grid.get(method, column)
    if not n:
        return Field(grid.why.get((method, column), DASH), math.nan)
    mark = "" if grid.is_complete(method, column) else f" ({n} of {grid.sizes[column]})"
    if grid.metric.name == "seconds":
        return seconds(mean, sd, mark=mark)
    return number(mean, grid.metric.digits, sd, mark=mark, is_bold=method == best)


def _find_best(grid: Grid, column: Any) -> str | None:
    """Who is best among those that answered every table."""
    means = {method: grid.get(method, column).mean for method in grid.order if grid.is_complete(method, column)}
    pick = max if grid.metric.is_better_high else min
    return pick(means, key=means.__getitem__) if means else None


# ── what ran, and what did not ──────────────────────────────────────────────────────────────────────────────


def failure_sheet(rows: pd.DataFrame, looks: Looks) -> Sheet:
    """Why methods gave no answer."""
    lines = [
        [_name(row["method"], looks), Field(row["status"]), Field(row["reason"] or DASH),
         Field(f"{row['n_tables']} of {row['n_all']}", row["n_tables"]), Field(row["where"])]
        for row in list_failures(rows).to_dict("records")
    ]  # fmt: skip
    about = "Fits without an answer, by method and reason. They rank last on their tables."
    return Sheet(
        "failures", "What could not run", about, rerun(rows), ("method", "what", "reason", "tables", "where"), lines
    )


def version_sheet(rows: pd.DataFrame, looks: Looks) -> Sheet:
    """Methods with what they return and the versions that ran."""
    lines = []
    for method, own in rows.groupby("method", sort=True):
        line = [_name(str(method), looks), Field(str(method)), _list(own["kind"]), _list(own["package_version"])]
        lines.append([*line, Field(str(len(own)), len(own)), number(own["peak_mib"].max(), 0)])
    head = ("method", "name", "returns", "version", "tables", "most MiB")
    about = f"Methods in these results, over {rows['table'].nunique()} tables."
    return Sheet("methods", "Methods and versions", about, rerun(rows), head, lines)


def _list(texts: pd.Series) -> Field:
    """The different texts of a column."""
    return Field(", ".join(sorted({text for text in texts if text})) or DASH)


def run_sheet(rows: pd.DataFrame) -> Sheet:
    """Folders with the hardware and the version of graphbam they were made with."""
    lines = []
    for (run, hardware, version), own in rows.groupby(["run", "hardware", "graphbam_version"], sort=True):
        line = [Field(text or DASH) for text in (str(run), str(hardware), str(version))]
        lines.append([*line, Field(str(len(own)), len(own))])
    n_mixed = int((rows[rows["fingerprint"] != ""].groupby("table")["fingerprint"].nunique() > 1).sum())
    same = f"Careful: methods saw different numbers on {n_mixed} tables." if n_mixed else "All saw the same tables."
    about = f"Where the rows come from. {same}"
    return Sheet("runs", "Runs and hardware", about, rerun(rows), ("run", "hardware", "graphbam", "rows"), lines)


def _name(method: str, looks: Looks) -> Field:
    return Field(looks[method].title, is_bold=is_ours(method))


# ── which command makes given rows again ────────────────────────────────────────────────────────────────────


MOST_CASES = 12
"""A command names at most so many cases; for more, the command of the whole run stands."""


def rerun(rows: pd.DataFrame) -> str:
    """The commands that make these rows again, one line per run.

    A folder remembers the words of its last command only. Rows of earlier ones may go beyond them: what the words do
    not name is added.

    Parameters
    ----------
    rows : DataFrame
        From `read_rows`, or a part of it.
    """
    return "\n".join(_rerun(str(run), own) for run, own in rows.groupby("run", sort=False))


def _rerun(run: str, rows: pd.DataFrame) -> str:
    folder = Path(run) if Path(run).is_dir() else Path(run).parent
    settings, defaults = settle(folder, {}), Settings()
    methods = _name_methods(rows, settings)
    trials = max(settings.trials if settings.cases else 1, int(rows["trial"].max()) + 1)
    words = ["--cases", ",".join(_name_cases(rows, settings)), "--methods", ",".join(methods), "--trials", str(trials)]
    for option in ("time_limit", "memory_limit"):
        if getattr(settings, option) != getattr(defaults, option):
            words += [f"--{option.replace('_', '-')}", f"{getattr(settings, option):g}"]
    if not settings.skip_larger:
        words.append("--try-larger")
    return shlex.join(["graphbam", "benchmark", *words, "-o", str(folder)])


def _name_methods(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """The words of the run, and names of further methods in the rows; classes of users are known by their word only."""
    found = sorted(rows["method"].unique())
    if not settings.methods:
        return found
    try:
        named = {method.name for method in resolve_methods(settings.methods)}
    except ConfigError:  # a class that cannot be imported here
        named = set(settings.methods)
    return [*settings.methods, *(name for name in found if name not in named and name in list_baselines())]


def _name_cases(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """Names of a few simulated cases, else the words of the run and suites that hold what those do not name."""
    cases = rows["case"].unique().tolist()
    simulated = rows.loc[rows["source"] == "simulated", "case"].unique().tolist()
    if (len(cases) <= MOST_CASES and len(simulated) == len(cases)) or not settings.cases:
        return cases
    named = {case for word in settings.cases for case in simulated if _names(word, case)}
    return [*settings.cases, *_find_suites([case for case in simulated if case not in named])]


def _names(word: str, case: str) -> bool:
    """Whether a word of a command stands for a simulated case."""
    return case in SUITES.get(word, ()) or fnmatch.fnmatchcase(case, word)


def _find_suites(cases: Iterable[str]) -> list[str]:
    """The smallest suite that holds all these cases, or several; cases in none are named themselves."""
    left, words = set(cases), []
    while left:
        held = {name: left & set(suite) for name, suite in SUITES.items()}
        best = max(held, key=lambda name: (len(held[name]), -len(SUITES[name])))
        words += [best] if held[best] else sorted(left)
        left = left - held[best] if held[best] else set()
    return words
