"""What missing cells cost: skeleton AP on tables made by others, with cells removed at random.

    python runs/bench_missing.py FOLDER --shares 0.1 0.3 --most-variables 40

FOLDER holds labelled tables and a manifest, as for `graphbam benchmark`. The mean over families, for gaps as
`graphbam.tables.gaps.fill_gaps` fills them and, beside it, for gaps set to the median of their column.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import graphbam as gb
from graphbam.benchmarks.cases import Case, draw_problem, resolve_cases
from graphbam.graphs.graph import SKELETON, skeleton
from graphbam.graphs.metrics import average_precision, pair_values
from graphbam.nn.weights import LoadedWeights, load_weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="labelled tables with a manifest.csv")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.1, 0.3])
    parser.add_argument("--most-variables", type=int, default=110)
    parser.add_argument("--weights", default="edges")
    options = parser.parse_args()
    loaded = load_weights(options.weights)
    cases = [case for case in resolve_cases([options.folder]) if case.n_variables <= options.most_variables]
    rows = pd.DataFrame([judge(case, loaded, options.shares) for case in cases])
    families = rows.groupby("family").mean(numeric_only=True)
    print(f"{len(rows)} tables, {len(families)} families; skeleton AP, mean over families")
    for name, value in families.mean().items():
        print(f"{name:24s} {value:.3f}   costs {families['complete'].mean() - value:.3f}")


def judge(case: Case, loaded: LoadedWeights, shares: list[float]) -> dict[str, object]:
    """AP of one table as it is, and with cells removed."""
    problem = draw_problem(case, 0)
    truth_n = pair_values(skeleton(problem.adjacency))

    def score(x_md: np.ndarray) -> float:
        result = gb.infer(x_md, weights=loaded, colliders=None, missing="impute")
        return average_precision(truth_n, pair_values(result.probabilities[..., SKELETON]))

    row: dict[str, object] = {"case": case.name, "family": case.family, "complete": score(problem.x_md)}
    rng = np.random.default_rng(0)
    for share in shares:
        gappy_md = np.where(rng.random(problem.x_md.shape) < share, np.nan, problem.x_md)
        medians_md = np.where(np.isnan(gappy_md), np.nanmedian(gappy_md, axis=0), gappy_md)
        row[f"{share:.0%} missing"] = score(gappy_md)
        row[f"{share:.0%} at the median"] = score(medians_md)
    return row


if __name__ == "__main__":
    main()
