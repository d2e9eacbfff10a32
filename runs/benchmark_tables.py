"""The numbers that README.md, docs/benchmark.md and docs/edges-paper.md take from the rows in runs/results.

    python runs/benchmark_tables.py
    python runs/benchmark_tables.py --write README.md docs/benchmark.md

Rows come from `graphbam benchmark`; the report on them, with every cell and figure, from `graphbam benchmark-report`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from graphbam.benchmarks.report.charts import find_title
from graphbam.benchmarks.report.rows import EMPTY, GROUPS, METRICS, is_ours, read_rows
from graphbam.benchmarks.report.sheets import number
from graphbam.benchmarks.report.summary import LEAST_SHARE, rank_methods, spread_over_cells, summarise

RESULTS = Path(__file__).resolve().parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder with paper, tables and linear")
    parser.add_argument(
        "--write",
        type=Path,
        nargs="+",
        default=[],
        metavar="PAGE",
        help="pages whose results are to be replaced",
    )
    options = parser.parse_args()
    rows = read_rows([options.results / "paper", options.results / "tables"])
    for page in options.write:
        write_between(page, "results", to_markdown(third_party_table(rows)))
    linear = read_rows([options.results / "linear"])
    print(f"{len(rows) + len(linear):,} rows\n")
    show("Tables per simulated case, by number of variables", trial_table(rows))
    show("Third-party tables", third_party_table(rows))
    show("Groups of cells", group_table(rows))
    show("First places", first_places(rows))
    show("More linear tables", linear_table(linear))
    show("More linear tables, mean F1 and skeleton AP of every method", linear_means(linear))
    show("Methods on the tables that they finished, nonlinear cells", finished_table(rows))
    show("Simulated cells in which a method is ahead by skeleton AP, on the tables that it finished", ahead_table(rows))
    show("Three networks, by mechanisms and variables", network_table(rows))


def show(title: str, table: pd.DataFrame) -> None:
    """Print a table as Markdown."""
    print(f"## {title}\n\n{to_markdown(table)}\n")


def to_markdown(table: pd.DataFrame) -> str:
    """A table as Markdown, a line per row."""
    head, *lines = [
        "| " + " | ".join(map(str, line)) + " |" for line in [table.columns, *table.itertuples(index=False)]
    ]
    return "\n".join([head, "|" + "---|" * table.shape[1], *lines])


def write_between(page: Path, name: str, text: str) -> None:
    """Put text between the lines ``<!-- NAME -->`` and ``<!-- end of NAME -->`` of a page.

    Raises
    ------
    ValueError
        If the page has no such lines.
    """
    before, found, rest = page.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    if not found or not end:
        raise ValueError(
            f"{page} has no lines <!-- {name} --> and <!-- end of {name} -->; add them where the table goes"
        )
    page.write_text(f"{before}{found}{text.strip()}\n{end}{after}", encoding="utf-8")


def trial_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How many tables of a simulated case each method was given, by number of variables: fewest to most."""
    counts = rows[rows["source"] == "simulated"].groupby(["method", "n_variables", "case"]).size()
    ends = counts.groupby(level=["method", "n_variables"]).agg(["min", "max"])
    ends["text"] = [str(low) if low == high else f"{low} to {high}" for low, high in ends.to_numpy()]
    wide = ends["text"].unstack(fill_value="").rename(columns=lambda d: f"{d:.0f}")
    return wide.reset_index().sort_values(list(wide.columns[::-1]), ascending=False)


def third_party_table(rows: pd.DataFrame) -> pd.DataFrame:
    """README: means over the families of third-party tables, best skeleton AP first; the empty graph is left out.

    Methods that were run on every table. Directions are those of acyclic ones, for methods with directions of three
    quarters of these.
    """
    own = rows[rows["group"] == "labelled"]
    n_tables = own.groupby("method").size()
    own = own[own["method"].isin(n_tables.index[n_tables == n_tables.max()])]
    table = summarise(own)[0].drop(EMPTY, errors="ignore").sort_values("skeleton_ap_mean", ascending=False)
    columns = {"skeleton_ap": "skeleton AP", "moral_ap": "moral AP", "skeleton_f1": "F1", "shd_ratio": "SHD over empty"}
    found = pd.DataFrame({"method": [find_title(method) for method in table.index]})
    for name, title in columns.items():
        found[title] = [digits(value) for value in table[f"{name}_mean"]]
    acyclic = own[own.groupby("table")["empty_shd"].transform("max").notna()]
    for name, title in {"directed_ap": "directed AP", "direction_right": "directions right"}.items():
        counts, means = acyclic.groupby("method")[name].count(), spread_over_cells(acyclic, name)["mean"]
        is_judged = counts >= LEAST_SHARE * counts.max()
        found[title] = [digits(means[method]) if is_judged[method] else "" for method in table.index]
    found["answered"] = [f"{ok:.0f} of {n:.0f}" for ok, n in zip(table["n_ok"], table["n_tables"], strict=True)]
    return found


def list_groups(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Groups of cells with rows, and their titles."""
    return [(group, title) for group, title in GROUPS.items() if (rows["group"] == group).any()]


def group_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Means of ours over the cells of each group, and of the best other method that was run on all of their tables."""
    found = []
    for group, title in list_groups(rows):
        own = rows[rows["group"] == group]
        line = {"cells": title, "number": own["cell"].nunique()}
        for name in ("skeleton_ap", "shd_ratio"):
            means = spread_over_cells(own, name)["mean"]
            best, value = best_other(own, means, METRICS[name].is_better_high)
            line |= {f"graphbam {name}": digits(means["graphbam"]), "best other " + name: f"{digits(value)} {best}"}
        found.append(line)
    return pd.DataFrame(found)


def best_other(rows: pd.DataFrame, means: pd.Series, is_better_high: bool) -> tuple[str, float]:
    """The best of the methods that were run on every table, ours and the empty graph apart."""
    n_tables = rows.groupby("method").size()
    others = [name for name in n_tables.index[n_tables == n_tables.max()] if not is_ours(name) and name != EMPTY]
    means = means[others].dropna()
    best = means.idxmax() if is_better_high else means.idxmin()
    return find_title(str(best)), float(means[best])


def first_places(rows: pd.DataFrame) -> pd.DataFrame:
    """Cells in which graphbam is first, among the methods with rows for three quarters of the tables at least."""
    found = []
    for group, title in list_groups(rows):
        line: dict[str, object] = {"cells": title}
        for name in ("skeleton_ap", "skeleton_f1", "shd"):
            ranking = rank_methods(rows[rows["group"] == group], name)
            line[name] = f"{ranking.table['wins']['graphbam']:.0f} of {ranking.n_cells}"
        found.append(line)
    return pd.DataFrame(found)


def linear_table(rows: pd.DataFrame, rival: str = "boss") -> pd.DataFrame:
    """graphbam and a rival on many linear tables of each size; the difference with its standard error."""
    found = []
    for (d, m), own in rows.groupby(["n_variables", "n_samples"]):
        names = ("skeleton_f1", "skeleton_ap", "shd")
        scores = {name: own.pivot(index="table", columns="method", values=name) for name in names}
        gap = (scores["skeleton_f1"]["graphbam"] - scores["skeleton_f1"][rival]).dropna()
        line = {"d, M": f"{d:.0f}, {m:.0f}", "tables": len(gap)}
        for name, table in scores.items():
            ours, theirs = (digits(table[method].mean(), METRICS[name].digits) for method in ("graphbam", rival))
            line |= {name: ours, f"{name}, {rival}": theirs}
        line["difference in F1"] = f"{gap.mean():+.3f} ± {gap.sem():.3f}"
        gap = (scores["shd"][rival] - scores["shd"]["graphbam"]).dropna()
        line["difference in SHD"] = f"{gap.mean():+.1f} ± {gap.sem():.1f}"
        found.append(line)
    return pd.DataFrame(found)


def linear_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean F1 and skeleton AP of every method at every size."""
    means = rows.groupby(["n_variables", "n_samples", "method"])[["skeleton_f1", "skeleton_ap"]].mean().reset_index()
    means["shape"] = [f"{d:.0f}, {m:.0f}" for d, m in zip(means["n_variables"], means["n_samples"], strict=True)]
    means["scores"] = [f"{digits(f1)} {digits(ap)}" for f1, ap in means[["skeleton_f1", "skeleton_ap"]].to_numpy()]
    wide = means.pivot(index="method", columns="shape", values="scores")[means["shape"].unique().tolist()]
    return wide.fillna("").reset_index()


def finished_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean skeleton AP of each method over the tables that it finished, beside graphbam's on the same ones."""
    own = rows[rows["group"] == "nonlinear"]
    wide = own.pivot(index="table", columns="method", values="skeleton_ap")
    found = []
    for method in sorted(set(wide) - {"graphbam"}):
        both = wide[["graphbam", method]].dropna()
        if len(both):
            means = both.mean()
            found.append((find_title(str(method)), len(both), digits(means[method]), digits(means["graphbam"])))
    return pd.DataFrame(found, columns=["method", "tables", "skeleton AP", "graphbam"])


def ahead_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Cells in which a method beats graphbam on the tables that both answered, though it may have had fewer."""
    rows = rows[rows["source"] == "simulated"]
    wide = rows.pivot(index=["cell", "table"], columns="method", values="skeleton_ap")
    found = []
    for method in sorted(set(wide) - {"graphbam"}):
        both = wide[["graphbam", method]].dropna()
        means = both.groupby(level="cell").mean()
        for cell, (ours, theirs) in means[means[method] > means["graphbam"]].iterrows():
            found.append((cell, find_title(str(method)), len(both.loc[cell]), digits(theirs), digits(ours)))
    return pd.DataFrame(found, columns=["cell", "method", "tables", "skeleton AP", "graphbam"])


def network_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's network, AVICI's on the same tables, ours, and two others, by mechanism and number of variables."""
    methods = ["graphbam-paper", "avici-retrained", "graphbam", "cam", "boss"]
    rows = rows[(rows["source"] == "simulated") & rows["method"].isin(methods)]
    kind = rows["mechanism"].where(rows["mechanism"] == "chebyshev", "others")
    found = []
    for (mechanisms, d), own in rows.groupby([kind, "n_variables"]):
        means = own.groupby("method")["skeleton_ap"].mean()
        found.append((mechanisms, f"{d:.0f}", own["table"].nunique(), *(digits(means[name]) for name in methods)))
    return pd.DataFrame(found, columns=["mechanisms", "variables", "tables", *map(find_title, methods)])


def digits(value: float, n_digits: int = 3) -> str:
    text = number(value, n_digits).text
    return "" if text == "–" else text


if __name__ == "__main__":
    main()
