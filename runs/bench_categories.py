"""What it costs that columns are categories: skeleton AP of simulated tables before and after cutting.

    python runs/bench_categories.py --tables 60

A third of the columns of each table is cut at random quantiles into 3 to 6 levels, each with 5 % of the rows or more,
and the levels get random names. Beside the table before cutting: levels numbered in their true order, which nobody
knows (what cutting by itself costs), by falling frequency, and as ``encode=True`` numbers them
(`graphbam.tables.columns`).
Then false links of levels that have nothing to do with the other columns: pairs at 0.5 or more per such column.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import graphbam as gb
from graphbam.graphs.graph import SKELETON, skeleton
from graphbam.graphs.metrics import average_precision, pair_values
from graphbam.nn.weights import LoadedWeights, load_weights

CELLS = [("paper", 10, 200), ("paper", 20, 500), ("broad-1", 10, 200), ("broad-1", 20, 500)]
"""Preset, variables, samples."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=60, help="simulated tables per line")
    parser.add_argument("--weights", default="edges")
    options = parser.parse_args()
    loaded = load_weights(options.weights)
    print(f"skeleton AP, mean over {options.tables} tables")
    for preset, n_variables, n_samples in CELLS:
        rows: list[dict[str, float]] = []
        for seed in range(options.tables):
            graph, x_md = gb.simulate(n_variables=n_variables, n_samples=n_samples, preset=preset, seed=seed)
            if graph.adjacency.any():
                rows.append(judge(graph, x_md, np.random.default_rng(seed), loaded))
        print(f"{preset} {n_variables} × {n_samples}: " + spell(pd.DataFrame(rows)), flush=True)
    for n_levels in (3, 6, 12, 20):
        print(f"{n_levels} levels, independent of all: {count_false(n_levels, options.tables, loaded)}", flush=True)


def spell(rows: pd.DataFrame) -> str:
    """Means, and what each way costs against the table before cutting."""
    cost = rows.sub(rows["before"], axis=0)
    error = cost.std() / np.sqrt(len(rows))
    return ", ".join(f"{name} {rows[name].mean():.3f} ({cost[name].mean():+.3f} ± {error[name]:.3f})" for name in rows)


def judge(graph: gb.Graph, x_md: np.ndarray, rng: np.random.Generator, loaded: LoadedWeights) -> dict[str, float]:
    """AP of one table, numbered in each way."""
    truth_n = pair_values(skeleton(graph.adjacency))
    levels = {k: cut_levels(x_md[:, k], rng) for k in rng.choice(x_md.shape[1], x_md.shape[1] // 3, replace=False)}
    frames = {way: pd.DataFrame(x_md).rename(columns=str) for way in ("before", "ordered", "frequency", "encode")}
    for k, level_m in levels.items():
        frames["ordered"][str(k)] = level_m
        frames["frequency"][str(k)] = rank_by_frequency(level_m)
        frames["encode"][str(k)] = rng.permutation(list("pqrstu"))[level_m]
    answers = gb.infer_many(frames, weights=loaded, colliders=None, encode=True)
    return {a.source: average_precision(truth_n, pair_values(a.probabilities[..., SKELETON])) for a in answers}


def cut_levels(x_m: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cut a column into 3 to 6 levels at random quantiles, each with 5 % of the rows or more, ties apart."""
    n_levels = rng.integers(3, 7)
    shares = 0.05 + (1 - 0.05 * n_levels) * rng.dirichlet(np.full(n_levels, 3.0))
    cuts = np.quantile(x_m, np.cumsum(shares)[:-1])
    return np.unique(np.searchsorted(cuts, x_m), return_inverse=True)[1]


def rank_by_frequency(level_m: np.ndarray) -> np.ndarray:
    """0 for the most frequent level, 1 for the next …"""
    return np.argsort(np.argsort(-np.bincount(level_m), kind="stable"))[level_m]


def count_false(n_levels: int, n_tables: int, loaded: LoadedWeights) -> str:
    """Links of a column of random levels to nine normal columns of 200 rows, as ``encode=True`` and by frequency."""
    counts = {"encode": 0, "frequency": 0}
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        frame, level_m = pd.DataFrame(rng.normal(size=(200, 9))).rename(columns=str), rng.integers(n_levels, size=200)
        frames = {
            "encode": frame.assign(kind=np.array([f"level {chr(97 + k)}" for k in range(n_levels)])[level_m]),
            "frequency": frame.assign(kind=rank_by_frequency(level_m)),
        }
        for answer in gb.infer_many(frames, weights=loaded, colliders=None, encode=True):
            counts[answer.source] += int((answer.probabilities[-1, :, SKELETON] >= 0.5).sum())
    return ", ".join(f"{way} {count / n_tables:.2f}" for way, count in counts.items())


if __name__ == "__main__":
    main()
