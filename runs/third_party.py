"""How far probabilities can be trusted on tables made by others, and what their rows are like: the model card of edges.

    python runs/third_party.py FOLDER

FOLDER holds labelled tables and a manifest, as for `graphbam benchmark`. Calibration error and false links are those of
the tables the benchmark uses, at most 600 rows of each; warnings about rows are those of whole tables.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import graphbam as gb
from graphbam.benchmarks.cases import Case, draw_problem, resolve_cases
from graphbam.graphs.graph import SKELETON, skeleton
from graphbam.graphs.metrics import expected_calibration_error, pair_values
from graphbam.nn.weights import LoadedWeights, load_weights
from graphbam.tables.domain import judge_domain
from graphbam.tables.labelled import read_labelled
from graphbam.tables.prepare import prepare
from graphbam.tables.read import read_table

TARGETS = (0.01, 0.05, 0.1)
"""Shares of false links that are asked for."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="labelled tables with a manifest.csv")
    parser.add_argument("--weights", default="edges")
    options = parser.parse_args()
    loaded = load_weights(options.weights)
    judged = [judge(case, loaded) for case in resolve_cases([options.folder])]
    said, true = (np.concatenate([row.pop(name) for row in judged]) for name in ("said", "true"))
    rows = pd.DataFrame(judged)
    families = rows.drop(columns="case").groupby("family").mean()
    print(f"{len(rows)} tables, {len(families)} families")
    means = f"{rows['error'].mean():.3f} over tables, {families['error'].mean():.3f} over families"
    print(f"calibration error, skeleton: {means}, {expected_calibration_error(true, said):.3f} with all pairs pooled")
    likely = said >= 0.1
    error = expected_calibration_error(true[likely], said[likely])
    print(f"… {error:.3f} with all pairs pooled that are linked with .1 or more, {likely.sum()} of {len(said)}")
    for target in TARGETS:
        share = rows[f"false at {target:g}"]
        print(f"false links at a target of {target:.0%}: mean {share.mean():.1%}, median {share.median():.1%}")
    warned, fewer, is_sorted = rows[["warned", "fewer", "sorted"]].sum()
    print(f"warned of their rows: {warned}; count for less: {fewer}; recognised as sorted: {is_sorted}")


def judge(case: Case, loaded: LoadedWeights) -> dict[str, Any]:
    """Calibration error and false links of one table, and what is said of its rows."""
    problem = draw_problem(case, 0)
    result = gb.infer(problem.x_md, weights=loaded, colliders=None)
    truth_dd = skeleton(problem.adjacency)
    p = pair_values(result.probabilities[..., SKELETON])
    row: dict[str, Any] = {"case": case.name, "family": case.family, "said": p, "true": pair_values(truth_dd)}
    row["error"] = expected_calibration_error(pair_values(truth_dd), p)
    for target in TARGETS:
        found = pair_values(result.skeleton(fdr=target).adjacency).astype(bool)
        row[f"false at {target:g}"] = 1 - pair_values(truth_dd)[found].mean() if found.any() else np.nan
    return row | describe_rows(case, loaded)


def describe_rows(case: Case, loaded: LoadedWeights) -> dict[str, object]:
    """Whether the rows of the whole table are unlike training, count for less, or are sorted."""
    assert case.folder is not None
    ready = prepare(read_table(read_labelled(Path(case.folder)).x_md))
    ranges = {name: list(limits) for name, limits in (loaded.header.domain or {}).items()}
    return {
        "warned": any("consecutive rows" in text for text in judge_domain(ready.features, ranges)),
        "fewer": any("independent ones" in text for text in ready.changes),
        "sorted": any("sorted by columns" in text for text in ready.changes),
    }


if __name__ == "__main__":
    main()
