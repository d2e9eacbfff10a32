"""How long directions take after the edge pass: the numbers of docs/performance.md, section Directions.

    python runs/bench_directions.py

One table of each case of the benchmark, weights loaded: the edge pass, the collider pass, the decision for a CPDAG.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import graphbam as gb
from graphbam.benchmarks.cases import draw_problem, resolve_cases
from graphbam.nn.weights import load_colliders, load_weights

CASES = [f"{mechanism}-d100-m500" for mechanism in ("linear", "chebyshev", "cosine", "postnonlinear", "mlp")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=CASES)
    options = parser.parse_args()
    edges, colliders = load_weights("edges"), load_colliders("colliders")
    gb.infer(np.random.default_rng(0).normal(size=(100, 10)), weights=edges, colliders=colliders)  # warms up
    print("| case | links | immoralities | first network s | second network s | decision s |\n" + "|---" * 6 + "|")
    for case in resolve_cases(options.cases):
        x_md = draw_problem(case, 0).x_md
        _, links_only = clock(lambda x_md=x_md: gb.infer(x_md, weights=edges, colliders=None))
        result, both = clock(lambda x_md=x_md: gb.infer(x_md, weights=edges, colliders=colliders))
        _, decision = clock(result.cpdag)
        counts = f"{result.skeleton().adjacency.sum() // 2} | {len(result.colliders)}"
        print(f"| {case.name} | {counts} | {links_only:.2f} | {both - links_only:.2f} | {decision:.2f} |")


def clock(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return work(), time.perf_counter() - began


if __name__ == "__main__":
    main()
