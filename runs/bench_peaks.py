"""Two kinds of tables that misled the network: columns in two narrow peaks, and rows that share their spread.

    python runs/bench_peaks.py
    python runs/bench_peaks.py --tables 4 --sizes 100x400

Tables of the paper's simulation are made into such: each column jumps between two values, with what it holds left over
in the peaks, as wide as said in standard deviations, or with noise there; each row is multiplied by a size. Each is
asked about as it is and mended: peaks stretched (`graphbam.tables.peaks`, as `infer` does), rows divided by their size
(as the warning of `graphbam.tables.spread` advises). Skeleton AP, shares of links found at ½ and of false ones among
those named, means over tables; "unrelated" are pairs in a hundred that are called linked where columns have nothing to
do with each other; "told" counts the tables whose answer has a note or a warning of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from unittest import mock

import numpy as np
import torch

import graphbam as gb
from graphbam.graphs.graph import SKELETON, skeleton
from graphbam.graphs.metrics import average_precision, pair_values
from graphbam.simulation import SimulationConfig, sample_tables

SIZES = ("6x300", "12x300", "30x300", "100x400")
Rng = np.random.Generator
Change = Callable[[np.ndarray, Rng], np.ndarray]


def split(width: float, *, own: bool = True, upper: float = 0.5) -> Change:
    """Each column in two peaks; within them what it held before, or noise."""

    def change(x_md: np.ndarray, rng: Rng) -> np.ndarray:
        within_md = x_md if own else rng.normal(size=x_md.shape)
        return 2.0 * (x_md > np.quantile(x_md, 1 - upper, axis=0)) + width * within_md

    return change


def resize(draw: Callable[[Rng, int], np.ndarray]) -> Change:
    """Each row multiplied by a size."""
    return lambda x_md, rng: x_md * draw(rng, len(x_md))[:, None]


PEAKS: dict[str, Change] = {
    "peaks .01 wide": split(0.01),
    "peaks .003 wide": split(0.003),
    "peaks .01 wide, of noise": split(0.01, own=False),
    "peaks .003 wide, 30 % above": split(0.003, upper=0.3),
}
ROWS: dict[str, Change] = {
    "rows of two sizes": resize(lambda rng, m: rng.choice([1.0, 3.0], size=m, p=[0.8, 0.2])),
    "rows as of t, 3 degrees": resize(lambda rng, m: 1 / np.sqrt(rng.chisquare(3, size=m) / 3)),
    "rows as of t, 5 degrees": resize(lambda rng, m: 1 / np.sqrt(rng.chisquare(5, size=m) / 5)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=6, help="of each size")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="DxM")
    options = parser.parse_args()
    columns = " | ".join(f"{name} | mended" for name in ("AP", "found", "false", "unrelated"))
    print(f"| d | M | table | {columns} | told |\n{'|---' * 12}|")
    for size in options.sizes:
        d, m = map(int, size.split("x"))
        for name, change in (PEAKS | ROWS).items():
            print(f"| {d} | {m} | {name} | {compare(d, m, name, change, options.tables)} |", flush=True)


def compare(d: int, m: int, name: str, change: Change, n_tables: int) -> str:
    """A line of the table."""
    torch_rng = torch.Generator().manual_seed(7 * d + m)
    drawn = sample_tables(torch_rng, SimulationConfig.paper(), n_tables=n_tables, n_variables=d, n_samples=m)
    asks = (ask_without, ask) if name in PEAKS else (ask, lambda x_md: ask(even(x_md)))
    rows, n_told = [], 0
    for number, (x_md, dag_dd) in enumerate(zip(drawn.x_bmd.numpy(), drawn.dag_bdd.numpy(), strict=True)):
        rng = np.random.default_rng([number, d, m])
        related_md, unrelated_md = change(x_md, rng), change(rng.normal(size=x_md.shape), rng)
        rows.append([[*judge(put(related_md), dag_dd), 100 * (put(unrelated_md) >= 0.5).mean()] for put in asks])
        n_told += is_told(unrelated_md)
    means = np.mean(rows, axis=0).T
    cells = [f"{value:.3f}" for value in means[0]] + [f"{value:.2f}" for value in means[1:].ravel()]
    return " | ".join([*cells, f"{n_told} of {n_tables}"])


def judge(p: np.ndarray, dag_dd: np.ndarray) -> list[float]:
    """Skeleton AP, share of links found at ½, share of false ones."""
    truth = pair_values(skeleton(dag_dd))
    found = (truth == 1) & (p >= 0.5)
    return [average_precision(truth, p), found.sum() / truth.sum(), 1 - found.sum() / max((p >= 0.5).sum(), 1)]


def ask(x_md: np.ndarray) -> np.ndarray:
    """Probabilities of links, pair by pair."""
    return pair_values(gb.infer(x_md, directions="none", progress=False).probabilities[..., SKELETON])


def ask_without(x_md: np.ndarray) -> np.ndarray:
    """The same with peaks as they are."""
    with mock.patch("graphbam.inference.networks.widen", lambda x_bmd, _: x_bmd):
        return ask(x_md)


def even(x_md: np.ndarray) -> np.ndarray:
    """Each row divided by the root mean square of its standardised values."""
    z_md = (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)
    return z_md / np.sqrt(np.square(z_md).mean(axis=1, keepdims=True))


def is_told(x_md: np.ndarray) -> bool:
    result = gb.infer(x_md, directions="none", progress=False)
    told = (*result.changes, *result.warnings)
    return any("narrow peaks" in sentence or "all columns lie far out" in sentence for sentence in told)


if __name__ == "__main__":
    main()
