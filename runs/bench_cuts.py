"""Ways to choose a graph, side by side: how far it is from the truth, and how often its arrows are right.

    python runs/bench_cuts.py --tables ../shared/data

The numbers of docs/directions.md. Simulated tables of 20 variables and 200 samples, the paper's graphs with every
mechanism in turn, and third-party tables with a DAG (rows capped at 600, at most 110 variables). Distance: structural
Hamming distance to the true CPDAG over that of the empty graph, mean over families, and median; an arrow is right if
the true CPDAG has it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd

import graphbam as gb
from graphbam.graphs.equivalence import dag_to_cpdag
from graphbam.graphs.graph import directed_part, skeleton
from graphbam.graphs.metrics import shd
from graphbam.nn.weights import load_colliders, load_weights
from graphbam.simulation.mechanisms import MECHANISMS
from validate import Case, answer_all, simulated_case, third_party_cases

CUTS = [gb.Cut(), gb.Cut(objective="shd"), *(gb.Cut(fdr=fdr) for fdr in (0.01, 0.05, 0.1, 0.2))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", help="folder of third-party tables with a manifest.csv")
    parser.add_argument("--per-mechanism", type=int, default=6, help="simulated tables")
    parser.add_argument("--colliders", help="name or path; directions then come from these, in two steps")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    edges = load_weights("edges", options.device)
    colliders = load_colliders(options.colliders, options.device) if options.colliders else None
    rows = []
    for case in cases(options):
        for problem, result in zip(case.problems, answer_all(edges, colliders, case), strict=True):
            rows += [{"source": case.source, "family": case.family} | row for row in compare(result, problem.adjacency)]
    print(summary(pd.DataFrame(rows)))


def cases(options: argparse.Namespace) -> Iterator[Case]:
    for mechanism in sorted(MECHANISMS):
        yield simulated_case(mechanism, 20, 200, options.per_mechanism)._replace(source="simulated", family=mechanism)
    if options.tables:
        yield from (case for case in third_party_cases(options.tables) if case.source == "tables")


def compare(result: gb.Result, dag: np.ndarray) -> Iterator[dict[str, object]]:
    """One row per cut."""
    truth = dag_to_cpdag(dag)
    for cut in CUTS:
        graph = result.cpdag(cut)
        arrows, forced = directed_part(graph.adjacency) > 0, graph.forced
        is_right = directed_part(truth) > 0
        yield {
            "cut": str(cut),
            "distance": shd(truth, graph.adjacency) / max(int(skeleton(truth).sum()) // 2, 1),
            "links": int(skeleton(graph.adjacency).sum()) // 2,
            "arrows": int((arrows & ~forced).sum()),
            "right": int((arrows & ~forced & is_right).sum()),
            "forced": int(forced.sum()),
            "forced_right": int((forced & is_right).sum()),
        }


def summary(rows: pd.DataFrame) -> str:
    families = rows.groupby(["source", "cut", "family"], sort=False)["distance"].mean()
    by_cut = families.groupby(["source", "cut"], sort=False).agg(["mean", "median"])
    counts = rows.groupby(["source", "cut"], sort=False)[["links", "arrows", "right", "forced", "forced_right"]].sum()
    counts["right"] /= counts["arrows"].clip(lower=1)
    counts["forced_right"] /= counts["forced"].clip(lower=1)
    return by_cut.join(counts).round(3).to_string()


if __name__ == "__main__":
    main()
