"""Rivals for every kind of answer: the tables and figures of docs/benchmark.md, from the rows in runs/results.

    python runs/rivals.py -o docs
    python runs/rivals.py -o docs --write docs/benchmark.md

One section per answer (`directed`, `simulated`: directions too, in the paper's cases, `hidden`, `interventions`,
`pairs`, `missing`): each method on the tables that it answered, beside graphbam on the same ones; in how many cells
each of the two is ahead; the cells in which graphbam is not first; and a figure, answers-SECTION.png. A cell is a
family of third-party tables, a simulated case, or a collection of pairs; every cell counts once. `--write` puts the
tables into a page.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmark_tables import digits, show, to_markdown, write_between
from graphbam.benchmarks.report.charts import assign_looks, draw_strips, find_title
from graphbam.benchmarks.report.rows import EMPTY, METRICS, OURS, Metric, read_rows
from graphbam.benchmarks.report.summary import list_failures, list_losses
from graphbam.graphs.metrics import audrc, weighted_accuracy
from graphbam.simulation.config import UNSEEN

RESULTS = Path(__file__).resolve().parent / "results"


@dataclasses.dataclass(frozen=True)
class Section:
    """A kind of answer: where its rows are and what it is judged by."""

    title: str
    folders: tuple[str, ...]
    metric: str
    others: tuple[str, ...] = ()
    """Further scores, shown beside."""
    kin: tuple[str, ...] = ()
    """Methods of one kind: in how many cells graphbam is ahead of all of them is said too."""


SECTIONS = {
    "directed": Section(
        "Directions",
        ("tables", "small", "unseen"),
        "directed_ap",
        ("directed_auroc", "direction_right", "ancestor_distance"),
    ),
    "simulated": Section(
        "Directions in the paper's cases",
        ("paper",),
        "directed_ap",
        ("directed_auroc", "direction_right", "ancestor_distance"),
    ),
    "hidden": Section(
        "Hidden common causes", ("hidden",), "hidden_auroc", ("hidden_ap", "directed_ap"), kin=("fci", "gfci")
    ),
    "interventions": Section("Interventions", ("targets",), "directed_ap", ("direction_right", "skeleton_ap")),
    "missing": Section("Missing cells", ("gaps",), "skeleton_ap", ("directed_ap",)),
}

PAIRS = Metric("accuracy", "Weighted accuracy, cause-effect pairs", "accuracy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--sections", nargs="+", choices=[*SECTIONS, "pairs"], default=[*SECTIONS, "pairs"])
    parser.add_argument("-o", "--out", type=Path, default=Path("out/rivals"))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put tables between the lines that name a section")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.sections:
        sheets = make_pairs(options) if name == "pairs" else make_section(name, SECTIONS[name], options)
        for sheet in sheets:
            show(sheet.title, sheet.table)
        if options.write:
            parts = [sheet.spell() for sheet in sheets if sheet.is_for_the_page]
            write_between(options.write, f"rivals {name}", "\n\n".join(parts))


class Sheet(NamedTuple):
    """A table with its title."""

    title: str
    table: pd.DataFrame
    is_for_the_page: bool = True

    def spell(self) -> str:
        """As Markdown; a table without rows is its title."""
        return f"{self.title}:\n\n{to_markdown(self.table)}" if len(self.table) else f"{self.title}."


def make_section(name: str, section: Section, options: argparse.Namespace) -> list[Sheet]:
    """Tables and figure of one kind of answer; directions of graphs with feedback stand apart."""
    rows = read_rows([options.results / folder for folder in section.folders])
    rows = rows[rows["method"] != EMPTY]
    rows["cell"] = [name_cell(*names) for names in rows[["cell", "case", "source"]].to_numpy()]
    has_loops = pd.Series(False, rows.index)
    if name == "directed":
        has_loops = rows.groupby("table")["empty_shd"].transform("max").isna()  # there is no CPDAG to judge by
    sheets = []
    for place, chosen in part_rows(rows, has_loops).items():
        if chosen.any():
            own = rows[chosen]
            heading = f"{section.title}, {place} ({own['cell'].nunique()} cells, {own['table'].nunique()} tables)"
            sheets.append(Sheet(heading, beside_ours(own, [section.metric, *section.others])))
    rows = rows[~has_loops]
    lost, n_cells = lost_cells(rows, section.metric), rows.loc[rows[section.metric].notna(), "cell"].nunique()
    short = METRICS[section.metric].short
    said = f"graphbam is not first in {len(lost)} of {n_cells} cells{tell_of_kin(rows, section)}"
    sheets.append(Sheet(f"{section.title}, {short}: {said}", lost))
    failures = list_failures(rows)[["method", "status", "reason", "n_tables", "n_all"]]
    sheets.append(Sheet(f"{section.title}, no answer", failures, is_for_the_page=False))
    values = rows.groupby(["cell", "method"])[section.metric].mean().unstack("method").dropna(axis=1, how="all")
    note = "pale dots: families and simulated cases · strong dot: their mean · n: cells with an answer, where not all"
    title = f"{section.title}: {short}, {len(values)} cells"
    save(values, METRICS[section.metric], title, note, options.out / f"answers-{name}.png")
    return sheets


def part_rows(rows: pd.DataFrame, has_loops: pd.Series) -> dict[str, pd.Series]:
    """Which rows each table of a section is about, by what it is called there."""
    is_simulated = rows["source"] == "simulated"
    of_training = is_simulated & ~rows["mechanism"].isin(UNSEEN)
    return {
        "nonlinear": of_training & (rows["mechanism"] != "linear"),
        "linear": of_training & (rows["mechanism"] == "linear"),
        "third-party tables": ~is_simulated & ~has_loops,
        "mechanisms kept out of training": is_simulated & ~of_training,
        "third-party tables with feedback": has_loops,
    }


def name_cell(cell: str, case: str, source: str) -> str:
    """Cells with more and with fewer gaps are different ones.

    Examples
    --------
    >>> name_cell("sachs", "data/sachs_obs853+gaps10", "tables"), name_cell("sachs", "data/sachs_obs853", "tables")
    ('sachs+gaps10', 'sachs')
    """
    _, plus, twist = case.partition("+")
    return cell if source == "simulated" else f"{cell}{plus}{twist}"


def beside_ours(rows: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Each method and graphbam on the tables that both answered, means over cells; who is ahead in how many cells.

    In the order of the difference between the two. Scores behind the first are means over all cells of the method.
    """
    first, *others = metrics
    sign = 1 if METRICS[first].is_better_high else -1
    wide = rows.pivot(index=["cell", "table"], columns="method", values=first)
    means = rows.groupby(["method", "cell"])[[*metrics, "seconds"]].mean().groupby("method").mean()
    found = []
    for method in wide.columns[wide.notna().any()]:
        both = wide[[OURS, method]].dropna().groupby(level="cell").mean() if method != OURS else wide[[OURS]].dropna()
        cells = both.groupby(level="cell").mean()
        gap = sign * (cells[method] - cells[OURS])
        line = {"method": find_title(str(method)), METRICS[first].short: digits(cells[method].mean())}
        line["graphbam there"] = "" if method == OURS else digits(cells[OURS].mean())
        line["ahead of graphbam"] = "" if method == OURS else f"{(gap > 1e-9).sum()} of {len(cells)}"
        line |= {METRICS[name].short: digits(means[name][method]) for name in others}
        line["tables"] = f"{wide[method].notna().sum()} of {(rows['method'] == method).sum()}"
        line["key"] = gap.mean()
        found.append(line)
    return pd.DataFrame(found).sort_values("key", ascending=False, kind="stable").drop(columns="key")


def lost_cells(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Where a rival that answered every table of a cell has the better mean."""
    losses = list_losses(rows, metric)
    return pd.DataFrame(
        {
            "cell": losses["cell"], "graphbam": losses["ours"].map(digits), "best": losses["best"].map(find_title),
            "score": losses["theirs"].map(digits), "tables": losses["n_tables"],
        }
    )  # fmt: skip


def tell_of_kin(rows: pd.DataFrame, section: Section) -> str:
    """In how many cells graphbam is ahead of all methods of a kind, ties not counted."""
    means = rows.groupby(["cell", "method"])[section.metric].mean().unstack("method")
    kin = [method for method in section.kin if method in means]
    if not kin:
        return ""
    rivals = means[kin].max(axis=1).dropna()
    n_ahead = (means.loc[rivals.index, OURS] > rivals + 1e-9).sum()
    names = " and ".join(find_title(method) for method in kin)
    return f", and ahead of {names} in {n_ahead} of {len(rivals)}"


def make_pairs(options: argparse.Namespace) -> list[Sheet]:
    """Accuracy and AUDRC by collection, every pair decided; a pair without an answer counts half."""
    rows, found = read_rows([options.results / "pairs"]), []
    for (method, collection), own in rows.groupby(["method", "family"], sort=False):
        if own["is_ok"].any():
            score, weight = own["pair_score"].where(own["is_ok"], 0.0).fillna(0.0), own["pair_weight"]
            weight = weight.fillna(
                rows[rows["family"] == collection]
                .groupby("trial")["pair_weight"]
                .max()[own["trial"]]
                .set_axis(own.index)
            )
            truth = np.ones(len(own), bool)
            found.append(
                (str(method), str(collection), weighted_accuracy(truth, score, weight), audrc(truth, score, weight))
            )
    scores = pd.DataFrame(found, columns=["method", "collection", "accuracy", "audrc"])
    accuracy, area = (scores.pivot(index="method", columns="collection", values=name) for name in ("accuracy", "audrc"))
    order = accuracy.mean(axis=1).sort_values(ascending=False).index
    lines = [
        {"method": find_title(str(method))}
        | {name: f"{digits(accuracy[name][method])} {digits(area[name][method])}" for name in accuracy.columns}
        | {"mean": digits(accuracy.loc[method].mean())}
        for method in order
    ]
    note = "pale dots: five collections · strong dot: their mean · every pair decided, columns swapped at random"
    save(accuracy.T, PAIRS, "Cause-effect pairs: weighted accuracy", note, options.out / "answers-pairs.png")
    return [Sheet("Cause-effect pairs, weighted accuracy and AUDRC, every pair decided", pd.DataFrame(lines))]


def save(values: pd.DataFrame, metric: Metric, title: str, note: str, path: Path) -> None:
    """One row per method; variants of ours only where they answer differently."""
    figure = draw_strips(values, metric, assign_looks(map(str, values.columns)), title, note)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
