"""Tables of the model cards and of docs/directions.md, as Markdown, from what runs/validate.py wrote.

    python runs/cards.py out/validate/scores.csv
    python runs/cards.py out/links/scores.csv out/directions/scores.csv

Of rows about the same table and method, those of the first file that has them count.
"""

from __future__ import annotations

import argparse

import pandas as pd

KEY = ["source", "case", "family", "table", "method"]
CLASSICAL = ["pc", "ges", "boss", "grasp"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scores", nargs="+", help="scores.csv of runs/validate.py")
    options = parser.parse_args()
    scores = pd.concat([pd.read_csv(path) for path in options.scores]).drop_duplicates(KEY)
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
    columns = {"skeleton_ap": "skeleton AP", "moral_ap": "moral AP", "skeleton_f1": "F1"}
    if "shd" in scores:
        scores["over_empty"] = scores["shd"] / scores["empty_shd"]
        columns["over_empty"] = "SHD over empty"
    means = scores.groupby("family")[list(columns)].mean().sort_values("skeleton_ap")
    counts = scores.groupby("family").size()
    rows = [
        [name, str(counts[name]), *map(spell, row)] for name, row in zip(means.index, means.to_numpy(), strict=True)
    ]
    rows.append(["**mean over families**", str(counts.sum()), *(f"**{value:.3f}**" for value in means.mean())])
    print_table(["family", "tables", *columns.values()], rows)


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
    print("\n| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
