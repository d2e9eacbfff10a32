"""What the paper says of its results, held against ours.

The paper shows its numbers as pictures only; its text has these statements. Each is checked on the rows at hand, with
the skeleton as the truth of undirected graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pandas as pd

from graphbam.benchmarks.report.charts import find_title
from graphbam.benchmarks.report.rows import EMPTY, METRICS, choose_ours
from graphbam.benchmarks.report.sheets import number, seconds
from graphbam.benchmarks.report.summary import list_losses, rank_methods


class Statement(NamedTuple):
    """A statement of the paper and how to check it."""

    where: str
    says: str
    check: Callable[[pd.DataFrame], Verdict | None]


class Verdict(NamedTuple):
    """What the rows say of a statement."""

    word: str
    """holds, holds in part, does not hold, or measured where the statement names no number."""
    evidence: str


def check_statements(rows: pd.DataFrame) -> list[tuple[Statement, Verdict]]:
    """Every statement with its verdict; without rows to check it on, "not measured"."""
    simulated = rows[(rows["source"] == "simulated") & (rows["group"] != "unseen")]
    silent = Verdict("not measured", "there are no results for these cases")
    return [(statement, statement.check(simulated) or silent) for statement in STATEMENTS]


def at(rows: pd.DataFrame, n_variables: int, n_samples: int | None = None) -> pd.DataFrame:
    """Rows of one shape."""
    rows = rows[rows["n_variables"] == n_variables]
    return rows if n_samples is None else rows[rows["n_samples"] == n_samples]


def is_first(rows: pd.DataFrame, metric: str) -> Verdict | None:
    """Whether graphbam has the best mean in every cell."""
    us = choose_ours(rows["method"].unique().tolist())
    if us is None or rows["method"].nunique() < 2:
        return None
    n_cells = rows.loc[rows["method"] == us, "cell"].nunique()
    losses = list_losses(rows, metric)
    n_first = n_cells - len(losses)
    behind = ", ".join(f"{loss['cell']} (behind {find_title(loss['best'])})" for loss in losses.to_dict("records"))
    word = "holds" if not len(losses) else "holds in part" if n_first else "does not hold"
    return Verdict(word, f"{us} is first in {n_first} of {n_cells} cells" + (f"; not in {behind}" if behind else ""))


def shows_gap(rows: pd.DataFrame, metric: str) -> Verdict | None:
    """How far the best method of a cell is ahead of graphbam."""
    verdict = is_first(rows, metric)
    if verdict is None:
        return None
    worst = list_losses(rows, metric)["gap"].max()
    gap = f"; the largest gap to the best is {number(worst, METRICS[metric].digits).text}" if worst > 0 else ""
    return Verdict("measured", verdict.evidence.split(";")[0] + gap)


def nobody_beats_empty(rows: pd.DataFrame) -> Verdict | None:
    """Whether no method has a lower mean SHD than the graph without edges, in any cell."""
    rows = rows[rows["shd"].notna() & (rows["method"] != EMPTY)]
    if rows.empty:
        return None
    means = rows.groupby(["method", "cell"])[["shd", "empty_shd"]].mean()
    better = means[means["shd"] < means["empty_shd"]]
    if better.empty:
        return Verdict("holds", f"in {means.index.get_level_values('cell').nunique()} cells no method does")
    n_cells = better.groupby("method").size().sort_values(ascending=False, kind="stable")
    total = means.index.get_level_values("cell").nunique()
    named = ", ".join(f"{find_title(str(method))} in {count}" for method, count in n_cells.items())
    return Verdict("does not hold", f"below the empty graph, of {total} cells: {named}")


def few_exceed_half(rows: pd.DataFrame) -> Verdict | None:
    """Which methods have a mean CPDAG average precision above one half in some cell."""
    means = rows.groupby(["method", "cell"])["cpdag_ap"].mean().dropna()
    if means.empty:
        return None
    above = (means > 0.5).groupby("method").sum()
    named = ", ".join(f"{find_title(str(method))} in {count}" for method, count in above[above > 0].items())
    total = means.index.get_level_values("cell").nunique()
    extra = [method for method in above[above > 0].index if method != "pc" and method != choose_ours([method])]
    word = "holds" if not extra else "does not hold"
    return Verdict(word, f"above one half, of {total} cells: {named}" if named else f"in {total} cells no method does")


def takes_seconds(rows: pd.DataFrame) -> Verdict | None:
    """The slowest mean fit of graphbam."""
    us = choose_ours(rows["method"].unique().tolist())
    means = rows[rows["method"] == us].groupby("cell")["seconds"].mean().dropna()
    if means.empty:
        return None
    word = "holds" if means.max() < 10 else "does not hold"
    return Verdict(word, f"{us} takes at most {seconds(means.max()).text} s per table, in {means.idxmax()}")


def ranks_by_shd(rows: pd.DataFrame) -> Verdict | None:
    """The place of graphbam by SHD."""
    ranking = rank_methods(rows, "shd")
    us = choose_ours(ranking.table.index.tolist())
    if us is None or len(ranking.table) < 2:
        return None
    place = ranking.table.index.tolist().index(us) + 1
    n_wins = int(ranking.table["wins"][us])
    text = f"place {place} of {len(ranking.table)} by mean rank over {ranking.n_cells} cells"
    return Verdict("measured", f"{us} is on {text}, first in {n_wins}")


STATEMENTS = (
    Statement("Results", "Best undirected graphs at d = 50, M = 200, whatever the mechanism.",
              lambda rows: is_first(at(rows, 50, 200), "skeleton_ap")),
    Statement("Results", "Best undirected graphs at d = 100, M = 50, whatever the mechanism.",
              lambda rows: is_first(at(rows, 100, 50), "skeleton_ap")),
    Statement("Results", "Strongest where effects are not monotonic: cosine and square.",
              lambda rows: is_first(rows[rows["mechanism"].isin(["cosine", "square"])], "skeleton_ap")),
    Statement("Results", "Ahead of a re-trained AVICI on the training family at every M, d = 100.",
              lambda rows: is_first(_against(at(rows, 100), "chebyshev", "avici-retrained"), "skeleton_ap")),
    Statement("Results", "Competitive CPDAGs at low and moderate dimensions.",
              lambda rows: ranks_by_shd(pd.concat([at(rows, 20, 200), at(rows, 50, 200), at(rows, 100, 500)]))),
    Statement("Appendix, low dimensions", "Best undirected graphs at d = 10, M = 200 and d = 20, M = 500 too.",
              lambda rows: is_first(pd.concat([at(rows, 10, 200), at(rows, 20, 500)]), "skeleton_ap")),
    Statement("Appendix, MLP", "Competitive with the best on random networks.",
              lambda rows: shows_gap(rows[rows["mechanism"] == "mlp"], "skeleton_ap")),
    Statement("Appendix, high dimensions", "At d = 100, M = 50 no method has a lower SHD than the graph without edges.",
              lambda rows: nobody_beats_empty(at(rows, 100, 50))),
    Statement("Appendix, high dimensions", "There, only BAM and PC sometimes have a CPDAG AUC above 0.5.",
              lambda rows: few_exceed_half(at(rows, 100, 50))),
    Statement("Efficiency", "Inference takes a few seconds.", takes_seconds),
)  # fmt: skip
"""Statements of the paper's text in our words, with the part they stand in."""


def _against(rows: pd.DataFrame, mechanism: str, rival: str) -> pd.DataFrame:
    """Our rows and those of one rival."""
    us = choose_ours(rows["method"].unique().tolist())
    return rows[(rows["mechanism"] == mechanism) & rows["method"].isin([us, rival])]
