"""How large neighbourhoods of a wide table should be: the table of docs/performance.md, section Wide tables.

    python runs/bench_hoods.py                                  # half an hour on one core
    python runs/bench_hoods.py hubs:1000x150:11 --sizes 96/300/0.67 128/400/0.67

A table is named world:columns x rows:seed, as in `bench_chance.py`. A size is core/all, where there are rows enough:
columns that are in no other core, and columns that the network sees at a time. "Rows" are rows for each column that is
seen, at least. Each row is a whole `infer` in neighbourhoods: average precision of links, log loss per true link over
all pairs, the share of links found at ½, per cent of false ones at targets of 1, 5 and 10 %, and processor seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from unittest import mock

import numpy as np

import graphbam as gb
from bench_scale import average_precision, draw_world
from graphbam.graphs.cut import Cut
from graphbam.graphs.graph import SKELETON
from graphbam.inference import screen

SIZES = ("64/200/1.5", "96/300/0.67")
"""What shipped before, and what does."""

TABLES = (
    *(f"{world}:1000x80:21" for world in ("linear", "hubs", "paper", "questionnaire", "recorded")),
    *(f"{world}:1000x150:11" for world in ("hubs", "broad-1", "as-found", "textbook")),
    *(f"{world}:1000x200:22" for world in ("linear", "mixed")),
    *(f"{world}:1000x400:12" for world in ("hubs", "broad-1")),
    *(f"{world}:1000x1000:24" for world in ("hubs", "as-found")),
)  # fmt: skip


def measure(name: str, sizes: list[str]) -> Iterator[str]:
    """A line for every size."""
    world, shape, seed = name.split(":")
    n_variables, n_rows = map(int, shape.split("x"))
    x_md, arrows = draw_world(n_variables, n_rows, world, int(seed))
    truth = np.unique(np.sort(arrows, axis=1) @ [n_variables, 1])
    i, j = np.triu_indices(n_variables, 1)
    keys = i * n_variables + j
    for size in sizes:
        began = time.process_time()
        p = infer(x_md, size)[i, j].astype(np.float64)
        yield f"| {name} | {len(truth):,} | {size} | {judge(keys, p, truth)} | {time.process_time() - began:.0f} |"


def infer(x_md: np.ndarray, size: str) -> np.ndarray:
    """Probabilities of links, asked about in neighbourhoods of this size."""
    core, most, rows_per_column = map(float, size.split("/"))
    found = {"CORE": int(core), "SIZE": int(most), "COLUMNS_PER_ROW": 1 / rows_per_column}
    with mock.patch.multiple(screen, **found), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = gb.infer(x_md, blocks="always")
    assert isinstance(result, gb.Result)
    return result.probabilities[..., SKELETON]


def judge(keys: np.ndarray, p: np.ndarray, truth: np.ndarray) -> str:
    """Scores of one answer."""
    is_true = np.isin(keys, truth)
    loss = -np.log(np.clip(np.where(is_true, p, 1 - p), 1e-7, 1)).sum() / len(truth)
    cuts = [Cut(fdr=target).choose(p) for target in (0.01, 0.05, 0.10)]
    false = [f"{100 * (1 - is_true[cut].mean()):.1f}" if cut.any() else "" for cut in cuts]
    found = is_true[p >= 0.5].sum() / len(truth)
    return f"{average_precision(keys, p, truth):.3f} | {loss:.3f} | {found:.3f} | {' | '.join(false)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="core/all/rows")
    options = parser.parse_args()
    print("| table | links | core/all/rows | AP | loss per link | found | false at 1 % | at 5 % | at 10 % | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.tables:
        for line in measure(name, options.sizes):
            print(line, flush=True)


if __name__ == "__main__":
    main()
