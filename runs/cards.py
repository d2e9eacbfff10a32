"""Tables of the model cards and of docs/directions.md, as Markdown, from what runs/validate.py wrote.

    python runs/cards.py out/validate/scores.csv
    python runs/cards.py out/links/scores.csv out/directions/scores.csv
    python runs/cards.py --answers out/answers --write src/graphbam/weights/edges.md

Of rows about the same table and method, those of the first file that has them count. `--answers` takes what
runs/bench_answers.py wrote; `--write` puts its two tables, families and targets, into a page.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from benchmark_tables import to_markdown, write_between

KEY = ["source", "case", "family", "table", "method"]
CLASSICAL = ["pc", "ges", "boss", "grasp"]
ANSWERS = {
    "skeleton_ap": "skeleton AP",
    "moral_ap": "moral AP",
    "skeleton_f1": "F1",
    "directed_ap": "directed AP",
    "direction_right": "right way",
    "cpdag_over_empty": "CPDAG",
    "dag_over_empty": "DAG",
}
"""Scores of runs/bench_answers.py in the table of families, and what they are called there."""

MEASURED: dict[str, tuple[str, list[str]]] = {
    "third-party tables: skeleton AP, moral AP, F1": ("tables", ["skeleton_ap", "moral_ap", "skeleton_f1"]),
    "… directed AP, AUROC": ("tables", ["directed_ap", "directed_auroc"]),
    "… right way, of true links; of those with .9 or more; share of these": (
        "tables",
        ["direction_right", "direction_right_where_sure", "direction_sure"],
    ),
    "… distance over the empty graph's, CPDAG; DAG": ("tables", ["cpdag_over_empty", "dag_over_empty"]),
    "… effects that the DAG gets wrong; the empty graph": (
        "tables",
        ["ancestor_distance", "ancestor_distance, empty graph"],
    ),
    "… false links at targets of .01, .05, .10": ("tables", ["false_at_0.01", "false_at_0.05", "false_at_0.1"]),
    "102 real cause-effect pairs: accuracy by weight, AUDRC": ("pairs", ["tuebingen accuracy", "tuebingen audrc"]),
    "… right where .9 sure; share of these": ("pairs", ["tuebingen right_where_sure", "tuebingen sure"]),
    "400 simulated pairs of others, accuracy; worlds like theirs are in training": (
        "pairs",
        ["sim accuracy, mean of four"],
    ),
    "linear Gaussian worlds: reversible links that get an arrow in `cpdag()`": ("reversible", ["arrows, of all"]),
    "hidden causes: AUROC on simulated tables, on third-party tables with hidden columns": (
        "hidden",
        ["simulated auroc", "third-party auroc"],
    ),
    "… their calibration error": ("calibration", ["hidden error"]),
    "… P(link) of pairs that only share a hidden parent, (10, 200); third-party tables": (
        "hidden",
        ["p(link) of pairs with a hidden parent only", "third-party p(link) of such pairs"],
    ),
    "calibration error of links, directions, arrows of the CPDAG, ancestors": (
        "calibration",
        ["link error", "direction error", "compelled error", "ancestor error"],
    ),
    "chain with 10 % of cells missing: largest P(link) of its ends in six tables; without gaps": (
        "missing",
        ["chain, largest p(x — z)", "chain, largest p(x — z), complete"],
    ),
    "cost in skeleton AP of 10 %, of 30 % missing cells": ("missing", ["10% missing costs", "30% missing costs"]),
    "experiments, one target per variable, (20, 500): directed AP": ("interventions", ["simulated directed_ap"]),
    "third-party experiments: directed AP with targets known over hidden; the two": (
        "interventions",
        [
            "known over hidden targets",
            "third-party directed_ap, targets known",
            "third-party directed_ap, targets hidden",
        ],
    ),
}
"""Scores of runs/bench_answers.py in the table of targets: what a row is called, and its section and scores."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", nargs="*", help="scores.csv of runs/validate.py")
    parser.add_argument("--answers", type=Path, metavar="FOLDER", help="what runs/bench_answers.py left")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page whose tables of answers are to be replaced")
    options = parser.parse_args()
    if options.answers:
        show_answers(options.answers, options.write)
    if options.scores:
        show_scores(options.scores)


def show_answers(folder: Path, page: Path | None) -> None:
    """Families of third-party tables, and every answer beside its target."""
    families = family_table(pd.read_csv(folder / "tables.csv"), ANSWERS)
    targets = target_table(pd.read_csv(folder / "targets.csv").set_index(["section", "score"]))
    for name, text in (("families", families), ("targets", targets)):
        print(f"\n{text}")
        if page:
            write_between(page, name, text)


def show_scores(paths: list[str]) -> None:
    """Everything that runs/validate.py measured."""
    scores = pd.concat([pd.read_csv(path) for path in paths]).drop_duplicates(KEY)
    third = scores[scores["source"].str.startswith("tables")]
    simulated = scores[~scores["source"].str.startswith("tables")]
    if len(third):
        print_families(third)
    if len(simulated):
        print_cells(simulated)
        print_shapes(simulated)
    if "shd" in simulated and simulated["shd"].notna().any():
        print_directions(simulated)


def print_families(scores: pd.DataFrame) -> None:
    """Means by family, worst first, and their mean."""
    scores = scores[scores["method"] == "graphbam"].copy()
    columns = {name: ANSWERS[name] for name in ("skeleton_ap", "moral_ap", "skeleton_f1")}
    if "shd" in scores:
        scores["over_empty"] = scores["shd"] / scores["empty_shd"]
        columns["over_empty"] = "SHD over empty"
    print(f"\n{family_table(scores, columns)}")


def family_table(scores: pd.DataFrame, columns: dict[str, str]) -> str:
    """Means by family, worst first, and their mean, as Markdown."""
    means = scores.groupby("family")[list(columns)].mean().sort_values("skeleton_ap", kind="stable")
    counts = scores.groupby("family").size()
    rows = [
        [name, str(counts[name]), *map(spell, row)] for name, row in zip(means.index, means.to_numpy(), strict=True)
    ]
    rows.append(["**mean over families**", str(counts.sum()), *(f"**{spell(value, 3)}**" for value in means.mean())])
    return to_markdown(pd.DataFrame(rows, columns=["family", "tables", *columns.values()]))


def target_table(measured: pd.DataFrame) -> str:
    """Every answer beside its target, met in bold, as Markdown."""
    rows = []
    for name, (section, scores) in MEASURED.items():
        lines = measured.loc[section].loc[scores]
        found = [spell(value, 3) for value in lines["measured"]]
        bold = [f"**{text}**" if met == "yes" else text for text, met in zip(found, lines["met"], strict=True)]
        rows.append([name, ", ".join(lines["target"].dropna().str.replace("0.", ".")), ", ".join(bold)])
    return to_markdown(pd.DataFrame(rows, columns=["", "target", "measured"]))


def print_cells(scores: pd.DataFrame) -> None:
    """Skeleton AP of every cell, beside that of partial correlation."""
    cells = scores.pivot_table(index=["source", "case"], columns=["family", "method"], values="skeleton_ap")
    shapes = list(dict.fromkeys(scores["family"]))
    rows = []
    for source, case in cells.index:
        row = [case + (" (unseen)" if source == "unseen" else "")]
        for shape in shapes:
            pair = [cells.loc[(source, case)].get((shape, method)) for method in ("graphbam", "partial-correlation")]
            row.append(" / ".join(spell(value) for value in pair if value is not None))
        rows.append(row)
    print_table(["mechanism", *(shape.replace("x", ", ") for shape in shapes)], rows)


def print_shapes(scores: pd.DataFrame) -> None:
    """Means by shape of everything else."""
    scores = scores[scores["method"] == "graphbam"]
    means = scores.groupby(["source", "family"], sort=False).mean(numeric_only=True)
    shapes = list(dict.fromkeys(scores["family"]))
    rows = []
    for column in ("skeleton_ap", "moral_ap", "skeleton_f1", "loss", "cell_ece"):
        for source in ("seen", "unseen"):
            if source in means.index.get_level_values(0):
                digits = 3 if column == "cell_ece" else 2
                values = [spell(means.loc[(source, shape), column], digits) for shape in shapes]
                rows.append([f"{column}, {source}", *values])
    print_table(["", *(shape.replace("x", ", ") for shape in shapes)], rows)


def print_directions(scores: pd.DataFrame) -> None:
    """Structural Hamming distance to the true CPDAG, by shape and kind of mechanism."""
    scores = scores[scores["shd"].notna()].copy()
    scores["kind"] = scores["source"].where(scores["case"] != "linear", "linear").replace({"seen": "nonlinear"})
    methods = [name for name in ["graphbam", *CLASSICAL] if name in set(scores["method"])]
    rows = []
    for (shape, kind), part in scores.groupby(["family", "kind"], sort=False):
        ours = part[part["method"] == "graphbam"]
        row = [shape.replace("x", ", "), kind, str(len(ours)), f"{ours['empty_shd'].mean():.1f}"]
        row += [f"{part[part['method'] == name]['shd'].mean():.1f}".replace("nan", "") for name in methods]
        rows.append([*row, spell(ours["arrow_precision"].mean()), spell(ours["arrow_recall"].mean())])
    print_table(["d, M", "mechanisms", "tables", "empty", *methods, "arrow precision", "arrow recall"], rows)


def spell(value: float, digits: int = 2) -> str:
    """A share without its leading zero; nothing where there is none."""
    if pd.isna(value):
        return ""
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def print_table(names: list[str], rows: list[list[str]]) -> None:
    print(f"\n{to_markdown(pd.DataFrame(rows, columns=names))}")


if __name__ == "__main__":
    main()
