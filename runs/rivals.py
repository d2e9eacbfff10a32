"""Rivals for every kind of answer: the tables and figures of docs/benchmark.md, from the rows in runs/results.

    python runs/rivals.py -o docs
    python runs/rivals.py -o docs --write docs/benchmark.md

One section per answer (`directed`, `simulated`: directions too, in the paper's cases, `hidden`, `interventions`,
`pairs`, `missing`): each method on the tables that it answered, beside graphbam on the same ones; in how many cells
each of the two is ahead; the cells in which graphbam is not first; and a figure, answers-SECTION.png. A cell is a
family of third-party tables, a simulated case, or a collection of pairs; every cell counts once. `first` says in how
many cells graphbam is first, for every score. `--write` puts the tables into a page.

In a cell, graphbam is *first* if no rival has a better mean over the tables of the cell that it answered. Rivals that
failed on some tables of a cell, or were not run on them, may lead there by luck, so it is also counted with those
rivals alone that answered all of its tables. Ties are first places; where graphbam failed and a rival did not, the cell
is lost. Variants of graphbam and the paper's network are not rivals.
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
from graphbam.benchmarks.report.rows import EMPTY, METRICS, OURS, Metric, is_ours, read_rows
from graphbam.benchmarks.report.summary import list_failures
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
    loops_apart: bool = False
    """Whether graphs with feedback have tables of their own."""
    variant: str = ""
    """Another way to ask graphbam, which is held against it table by table."""


SECTIONS = {
    "directed": Section(
        "Directions",
        ("tables", "small", "unseen"),
        "directed_ap",
        ("directed_auroc", "direction_right", "ancestor_distance"),
        loops_apart=True,
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
    "missing": Section("Missing cells", ("gaps",), "skeleton_ap", ("directed_ap",), variant="graphbam-imputed"),
}

TIE = 1e-9
"""Scores that differ by less are equal."""

LINKS = ("tables", "small", "unseen", "paper")
COUNTED = (
    Section("Links", LINKS, "skeleton_ap"),
    Section("Links", LINKS, "skeleton_f1"),
    Section("Moral graph", LINKS, "moral_ap"),
    Section("CPDAG", LINKS, "shd_ratio"),
    *SECTIONS.values(),
)
"""Scores whose first places are counted, beside those of pairs."""

PAIRS = Metric("accuracy", "Weighted accuracy, cause-effect pairs", "accuracy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    names = ["first", *SECTIONS, "pairs"]
    parser.add_argument("--sections", nargs="+", choices=names, default=names)
    parser.add_argument("-o", "--out", type=Path, default=Path("out/rivals"))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put tables between the lines that name a section")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    special = {"first": make_first, "pairs": make_pairs}
    for name in options.sections:
        sheets = special[name](options) if name in special else make_section(name, SECTIONS[name], options)
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
    is_folded: bool = False
    """Whether the page shows the title, and the table after a click."""

    def spell(self) -> str:
        """As Markdown; a table without rows is its title."""
        if self.is_folded:
            head = f'<details markdown="1">\n<summary>{self.title}</summary>'
            return f"{head}\n\n{to_markdown(self.table)}\n\n</details>"
        return f"{self.title}:\n\n{to_markdown(self.table)}" if len(self.table) else f"{self.title}."


def make_section(name: str, section: Section, options: argparse.Namespace) -> list[Sheet]:
    """Tables and figure of one kind of answer; directions of graphs with feedback stand apart."""
    rows = read_cells(options, section.folders)
    has_loops = find_loops(rows) & section.loops_apart
    sheets = []
    for place, chosen in part_rows(rows, has_loops).items():
        if chosen.any():
            own = rows[chosen]
            heading = f"{section.title}, {place} ({own['cell'].nunique()} cells, {own['table'].nunique()} tables)"
            sheets.append(Sheet(heading, beside_ours(own, [section.metric, *section.others])))
    if section.variant in set(rows["method"]):
        heading = f"By how much graphbam is above “{find_title(section.variant)}”, mean over tables"
        sheets.append(Sheet(heading, compare_variant(rows, section.metric, section.variant)))
    short = METRICS[section.metric].short
    rows["cell"] = rows["cell"].where(~has_loops, rows["cell"] + " (loops)")
    said = f"{tell_losses(rows, section.metric)}{tell_of_kin(rows, section)}"
    sheets.append(Sheet(f"{section.title}, {short}: {said}", lost_cells(rows, section.metric)))
    rows = rows[~has_loops]
    failures = list_failures(rows)[["method", "status", "reason", "n_tables", "n_all"]]
    sheets.append(Sheet(f"{section.title}, no answer", failures, is_for_the_page=False))
    values = rows.groupby(["cell", "method"])[section.metric].mean().unstack("method").dropna(axis=1, how="all")
    note = "pale dots: families and simulated cases · strong dot: their mean · n: cells with an answer, where not all"
    title = f"{section.title}: {short}, {len(values)} cells"
    save(values, METRICS[section.metric], title, note, options.out / f"answers-{name}.png")
    return sheets


def read_cells(options: argparse.Namespace, folders: tuple[str, ...]) -> pd.DataFrame:
    """Rows of some folders, of tables that graphbam was given, without those of the empty graph.

    Tables with and without gaps are in different cells.
    """
    rows = read_rows([options.results / folder for folder in folders])
    rows = rows[(rows["method"] != EMPTY) & rows["table"].isin(rows.loc[rows["method"] == OURS, "table"])]
    return rows.assign(cell=[name_cell(*names) for names in rows[["cell", "case", "source"]].to_numpy()])


def find_loops(rows: pd.DataFrame) -> pd.Series:
    """Which rows are of graphs with feedback, or without any arrow: there is no CPDAG to judge by."""
    return rows.groupby("table")["empty_shd"].transform("max").isna()


def part_rows(rows: pd.DataFrame, has_loops: pd.Series) -> dict[str, pd.Series]:
    """Which rows each table of a section is about, by what it is called there."""
    is_simulated = rows["source"] == "simulated"
    of_training = is_simulated & ~rows["mechanism"].isin(UNSEEN)
    return {
        "nonlinear": of_training & (rows["mechanism"] != "linear"),
        "linear": of_training & (rows["mechanism"] == "linear"),
        "third-party tables": ~is_simulated & ~has_loops,
        "mechanisms of no training preset": is_simulated & ~of_training,
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
        line["ahead of graphbam"] = "" if method == OURS else f"{(gap > TIE).sum()} of {len(cells)}"
        line |= {METRICS[name].short: digits(means[name][method]) for name in others}
        line["tables"] = f"{wide[method].notna().sum()} of {(rows['method'] == method).sum()}"
        line["key"] = gap.mean()
        found.append(line)
    return pd.DataFrame(found).sort_values("key", ascending=False, kind="stable").drop(columns="key")


def compare_variant(rows: pd.DataFrame, metric: str, variant: str) -> pd.DataFrame:
    """Mean difference between graphbam and a variant of it, with its standard error, by kind of table and twist."""
    twists = rows["case"].str.partition("+")[2]
    groups = rows.assign(cells=rows["source"].where(rows["source"] == "simulated", "third-party"), twist=twists)
    wide = groups.pivot(index=["cells", "twist", "table"], columns="method", values=metric)
    gaps = (wide[OURS] - wide[variant]).dropna()
    found = []
    for cells, own in gaps.groupby(level="cells", sort=False):
        for twist, part in [("", own), *own.groupby(level="twist")]:
            gap = f"{part.mean():+.3f} ± {part.sem():.3f}"
            line = {"tables": cells, "twist": twist or "all", "number": len(part), METRICS[metric].short: gap}
            found.append(line)
    return pd.DataFrame(found)


def list_leads(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Rivals that are ahead of graphbam in a cell, on the tables of the cell that they answered; largest lead first.

    Columns cell, ours, method, theirs, lead, n_theirs (tables that the rival answered) and n_all (that any did).
    """
    sign = 1 if METRICS[metric].is_better_high else -1
    wide = rows.pivot(index=["cell", "table"], columns="method", values=metric).dropna(how="all")
    ours, n_all, found = wide[OURS].fillna(-sign * np.inf), wide.groupby(level="cell").size(), []
    for method in filter(lambda name: not is_ours(name), wide.columns):
        both = pd.DataFrame({"ours": ours, "theirs": wide[method]}).dropna().groupby(level="cell")
        counts = both.size()
        for cell, (mine, theirs) in both.mean().iterrows():
            if sign * (theirs - mine) > TIE:
                found.append((cell, mine, method, theirs, sign * (theirs - mine), counts[cell], n_all[cell]))
    leads = pd.DataFrame(found, columns=["cell", "ours", "method", "theirs", "lead", "n_theirs", "n_all"])
    return leads.sort_values(["lead", "cell"], ascending=[False, True], ignore_index=True)


def lost_cells(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Where graphbam is not first: the rival with the largest lead, and the first that answered all of the cell."""
    leads = list_leads(rows, metric)
    answered_all = leads[leads["n_theirs"] == leads["n_all"]]
    best = pd.concat([leads.drop_duplicates("cell"), answered_all.drop_duplicates("cell")]).drop_duplicates()
    best = best.sort_values(["lead", "cell"], ascending=[False, True]).replace({"ours": [-np.inf, np.inf]}, np.nan)
    return pd.DataFrame(
        {
            "cell": best["cell"], "graphbam": best["ours"].map(digits), "best": best["method"].map(find_title),
            "score": best["theirs"].map(digits),
            "tables": [spell_share(*counts) for counts in best[["n_theirs", "n_all"]].to_numpy()],
        }
    )  # fmt: skip


def spell_share(part: int, whole: int) -> str:
    """How many tables were answered, where not all.

    Examples
    --------
    >>> spell_share(2, 3), spell_share(3, 3)
    ('2 of 3', '3')
    """
    return str(whole) if part == whole else f"{part} of {whole}"


class Firsts(NamedTuple):
    """In how many cells graphbam is first."""

    n_cells: int
    n_first: int
    """Beside each rival on the tables that it answered."""
    n_first_of_complete: int
    """Among rivals that answered all tables of the cell."""
    n_rivals: int


def count_firsts(rows: pd.DataFrame, metric: str) -> Firsts:
    """Count first places; a cell counts if some rival answered a table of it."""
    rivals = rows[rows[metric].notna() & ~rows["method"].map(is_ours)]
    leads = list_leads(rows, metric)
    lost, lost_to_complete = (set(own["cell"]) for own in (leads, leads[leads["n_theirs"] == leads["n_all"]]))
    n_cells = rivals["cell"].nunique()
    return Firsts(n_cells, n_cells - len(lost), n_cells - len(lost_to_complete), rivals["method"].nunique())


def tell_losses(rows: pd.DataFrame, metric: str) -> str:
    """In how many cells graphbam is not first, in words."""
    n_cells, n_first, n_first_of_complete, _ = count_firsts(rows, metric)
    said = f"graphbam is not first in {n_cells - n_first} of {n_cells} cells"
    if n_first == n_first_of_complete:
        return said
    return f"{said}, in {n_cells - n_first_of_complete} among rivals that answered all tables of the cell"


def make_first(options: argparse.Namespace) -> list[Sheet]:
    """In how many cells graphbam is first, for every score; lost cells of answers without a section of their own."""
    lines, lost = [], []
    for section in COUNTED:
        rows = read_cells(options, section.folders)
        lines += count_places(section, rows)
        if section not in SECTIONS.values():
            lost.append(lost_cells(rows, section.metric).assign(by=METRICS[section.metric].short))
    for score, scores in zip(("accuracy", "AUDRC"), judge_pairs(options), strict=True):
        lines.append(spell_firsts("Pairs", score, "collections", count_best(scores)))
    named = pd.concat(lost)
    return [
        Sheet("In how many cells graphbam is first", pd.DataFrame(lines)),
        Sheet(
            "Links, moral graphs and CPDAGs: cells in which graphbam is not first",
            named[["by", *named.columns.drop("by")]],
            is_folded=True,
        ),
    ]


def count_places(section: Section, rows: pd.DataFrame) -> list[dict[str, object]]:
    """First places by one score, a line for each kind of cell."""
    parts = part_rows(rows, find_loops(rows) & section.loops_apart)
    short = METRICS[section.metric].short
    return [
        spell_firsts(section.title, short, place, count_firsts(rows[chosen], section.metric))
        for place, chosen in parts.items()
        if rows.loc[chosen, section.metric].notna().any()
    ]


def spell_firsts(answer: str, score: str, place: str, count: Firsts) -> dict[str, object]:
    """A line of the table of first places."""
    return {
        "answer": answer, "score": score, "cells": place, "number": count.n_cells, "rivals": count.n_rivals,
        "first": count.n_first, "among those that answered all": count.n_first_of_complete,
    }  # fmt: skip


def count_best(scores: pd.DataFrame) -> Firsts:
    """Count first places in scores of methods (rows) by collection (columns), all of which have an answer."""
    n_first = int((scores.loc[OURS] >= scores.max() - TIE).sum())
    return Firsts(scores.shape[1], n_first, n_first, len(scores) - 1)


def tell_of_kin(rows: pd.DataFrame, section: Section) -> str:
    """In how many cells graphbam is ahead of all methods of a kind, ties not counted."""
    means = rows.groupby(["cell", "method"])[section.metric].mean().unstack("method")
    kin = [method for method in section.kin if method in means]
    if not kin:
        return ""
    rivals = means[kin].max(axis=1).dropna()
    n_ahead = (means.loc[rivals.index, OURS] > rivals + TIE).sum()
    names = " and ".join(find_title(method) for method in kin)
    return f", and ahead of {names} in {n_ahead} of {len(rivals)}"


def judge_pairs(options: argparse.Namespace) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accuracy and AUDRC of every method by collection, every pair decided; a pair without an answer counts half."""
    rows, found = read_rows([options.results / "pairs"]), []
    weights = rows.groupby(["family", "trial"])["pair_weight"].max()
    for (method, collection), own in rows.groupby(["method", "family"], sort=False):
        if own["is_ok"].any():
            score = own["pair_score"].where(own["is_ok"], 0.0).fillna(0.0)
            weight, truth = weights[collection][own["trial"]].set_axis(own.index), np.ones(len(own), bool)
            found.append((method, collection, weighted_accuracy(truth, score, weight), audrc(truth, score, weight)))
    scores = pd.DataFrame(found, columns=["method", "collection", "accuracy", "audrc"])
    accuracy, area = (scores.pivot(index="method", columns="collection", values=name) for name in ("accuracy", "audrc"))
    return accuracy, area


def make_pairs(options: argparse.Namespace) -> list[Sheet]:
    """Table and figure of pairs, the best mean first."""
    accuracy, area = judge_pairs(options)
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
