"""Thousands of variables: which links each method finds into some of them, and how long all would take.

    python runs/bench_wide.py --variables 5000 --samples 200 --targets 60
    python runs/bench_wide.py --variables 300 --targets 300 --graphbam

A simulated table; links are ranked for `--targets` variables drawn at random, each against all others. Forests
(GENIE3) regress variable by variable, so that what they cost for some says what they cost for all. `--graphbam` asks
the network about the whole table, as `graphbam.infer` does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

import graphbam as gb
from benchmark_tables import show
from graphbam.benchmarks.baselines._base import partial_correlations
from graphbam.benchmarks.baselines.extra_trees import Genie3
from graphbam.benchmarks.cases import Problem, draw_problem, resolve_cases
from graphbam.graphs.graph import SKELETON, skeleton
from graphbam.graphs.metrics import average_precision

Scores = np.ndarray
"""Of every variable for each target, shape (D, T)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--variables", type=int, default=5000)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--targets", type=int, default=60)
    parser.add_argument("--mechanism", default="chebyshev")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--graphbam", action="store_true")
    options = parser.parse_args()
    (case,) = resolve_cases([f"{options.mechanism}-d{options.variables}-m{options.samples}"])
    problem = draw_problem(case, 0)
    targets = np.sort(np.random.default_rng(0).choice(options.variables, options.targets, replace=False))
    methods: dict[str, Callable[[], Scores]] = {
        "correlation": lambda: np.abs(np.corrcoef(problem.x_md.T)[:, targets]),
        "partial correlation": lambda: partial_correlations(problem.x_md)[:, targets],
        f"GENIE3, {options.trees} trees": lambda: grow(problem.x_md, targets, options.trees),
    }
    if options.graphbam:
        methods["graphbam"] = lambda: ask(problem.x_md, targets)
    show(case.name, pd.DataFrame([measure(name, rank, problem, targets) for name, rank in methods.items()]))


def measure(name: str, rank: Callable[[], Scores], problem: Problem, targets: np.ndarray) -> dict[str, object]:
    """Average precision of links into the targets, by rank among all of them, and processor seconds."""
    began = time.process_time()
    score_dt = np.array(rank())
    seconds = time.process_time() - began
    score_dt[targets, np.arange(len(targets))] = -np.inf
    truth_dt = skeleton(problem.adjacency)[:, targets]
    others = np.isfinite(score_dt)
    is_by_target = name.startswith("GENIE3")
    whole = seconds * len(score_dt) / len(targets) if is_by_target else seconds
    return {
        "method": name,
        "skeleton AP of the targets": f"{average_precision(truth_dt[others], score_dt[others]):.3f}",
        "processor seconds": f"{seconds:.1f}",
        "for all variables": f"{whole:.0f}",
    }


def ask(x_md: np.ndarray, targets: np.ndarray) -> Scores:
    """Probability of a link with each target; of pairs that were not asked about, that of any other pair."""
    result = gb.infer(x_md)
    if isinstance(result, gb.Result):
        return result.probabilities[..., SKELETON][:, targets]
    link_dt = np.full((result.n_variables, len(targets)), result.elsewhere["skeleton"])
    place = {int(target): k for k, target in enumerate(targets)}
    for (i, j), p in zip(result.pairs.tolist(), result.probabilities[:, SKELETON], strict=True):
        for target, other in ((i, j), (j, i)):
            if target in place:
                link_dt[other, place[target]] = p
    return link_dt


def grow(x_md: np.ndarray, targets: np.ndarray, n_trees: int) -> Scores:
    """Credit of every variable for each target."""
    everyone, method = np.arange(x_md.shape[1]), Genie3(n_trees=n_trees)
    credit_dt = np.zeros((len(everyone), len(targets)))
    for place, target in enumerate(targets):
        others = everyone[everyone != target]
        forest = method.make_trees(seed=0).fit(x_md[:, others], x_md[:, target])
        credit_dt[others, place] = forest.feature_importances_
    return credit_dt


if __name__ == "__main__":
    main()
