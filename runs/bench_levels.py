"""Tables of nothing but columns with two levels: what a little noise on them brings (`graphbam.tables.dither`).

    python runs/bench_levels.py
    python runs/bench_levels.py --tables 4 --sizes 120x400

Tables of the paper's simulation are cut into zeros and ones, such that every column has ones in a share of its rows,
drawn between two limits, or zeros, at even odds. Each is asked about as it is, and with noise on all of its columns:
skeleton AP, the share of links found at ½, and that of false ones among those named, means over tables; "gain" has the
standard error of the difference in AP. "Unrelated" are pairs in a hundred that are called linked in a table of
independent columns. The last column says in how many of the tables `infer` lays noise over the columns by itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import NamedTuple
from unittest import mock

import numpy as np
import torch

import graphbam as gb
from graphbam.graphs.graph import SKELETON, skeleton
from graphbam.graphs.metrics import average_precision, pair_values
from graphbam.simulation import SimulationConfig, sample_tables
from graphbam.tables.dither import dither, find_levels

SIZES = ("15x300", "30x300", "60x300", "120x400", "200x500", "280x300")
SHARES = ((0.5, 0.5), (0.4, 0.5), (0.35, 0.35), (0.3, 0.5), (0.2, 0.4), (0.2, 0.2), (0.1, 0.3), (0.1, 0.9))


class Ways(NamedTuple):
    """What `graphbam.inference.networks` does to a table first: nothing, or noise wherever a column has two levels."""

    plain: Callable[[torch.Tensor], torch.Tensor]
    noisy: Callable[[torch.Tensor], torch.Tensor]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=8, help="of each size")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="DxM")
    options = parser.parse_args()
    twice = [f"{name} | with noise" for name in ("AP", "found", "false", "unrelated")]
    print(f"| d | M | ones | {twice[0]} | gain | {' | '.join(twice[1:])} | by itself |\n{'|---' * 13}|")
    for size in options.sizes:
        d, m = map(int, size.split("x"))
        for line in compare(d, m, options.tables):
            print(f"| {d} | {m} | {line} |", flush=True)


def compare(d: int, m: int, n_tables: int) -> Iterator[str]:
    """A line of the table for each kind of share."""
    rng = torch.Generator().manual_seed(7 * d + m)
    drawn = sample_tables(rng, SimulationConfig.paper(), n_tables=n_tables, n_variables=d, n_samples=m)
    for shares in SHARES:
        rows, alone, by_itself = [], [], 0
        for number, (x_md, dag_dd) in enumerate(zip(drawn.x_bmd.numpy(), drawn.dag_bdd.numpy(), strict=True)):
            seeded = np.random.default_rng([number, d, m])
            cut_md = cut(x_md, shares, seeded)
            by_itself += bool(find_levels(cut_md).any())
            rows.append([judge(cut_md, dag_dd, way) for way in WAYS])
            noise_md = cut(seeded.normal(size=x_md.shape), shares, seeded)
            alone.append([100 * (ask(noise_md, way) >= 0.5).mean() for way in WAYS])
        means, gain = np.mean(rows, axis=0).T, np.diff(rows, axis=1)[:, 0, 0]
        cells = [f"{means[0, 0]:.3f}", f"{means[0, 1]:.3f}", f"{gain.mean():+.3f} ± {gain.std() / n_tables**0.5:.3f}"]
        cells += [f"{value:.2f}" for value in (*means[1], *means[2], *np.mean(alone, axis=0))]
        yield " | ".join(
            [
                " to ".join(f"{100 * share:.0f} %" for share in dict.fromkeys(shares)),
                *cells,
                f"{by_itself} of {n_tables}",
            ]
        )


def cut(x_md: np.ndarray, shares: tuple[float, float], rng: np.random.Generator) -> np.ndarray:
    """Zeros and ones, by a share of ones for each column, or of zeros."""
    share_d = rng.uniform(*shares, x_md.shape[1])
    share_d = np.where(rng.random(len(share_d)) < 0.5, share_d, 1 - share_d)
    return np.stack([x_m > np.quantile(x_m, 1 - share) for x_m, share in zip(x_md.T, share_d, strict=True)], 1) * 1.0


def judge(x_md: np.ndarray, dag_dd: np.ndarray, way: Callable[[torch.Tensor], torch.Tensor]) -> list[float]:
    """Skeleton AP, share of links found at ½, share of false ones."""
    truth, p = pair_values(skeleton(dag_dd)), ask(x_md, way)
    found = (truth == 1) & (p >= 0.5)
    return [average_precision(truth, p), found.sum() / truth.sum(), 1 - found.sum() / max((p >= 0.5).sum(), 1)]


def ask(x_md: np.ndarray, way: Callable[[torch.Tensor], torch.Tensor]) -> np.ndarray:
    """Probabilities of links, pair by pair, with this done to the table first."""
    with mock.patch("graphbam.inference.networks.dither", way):
        result = gb.infer(x_md, directions="none", progress=False)
    return pair_values(result.probabilities[..., SKELETON])


def disturb_all(x_bmd: torch.Tensor) -> torch.Tensor:
    """Noise on every column of two levels, whatever their shares."""
    with mock.patch.multiple("graphbam.tables.dither", EVEN=0.0, UNEVEN=0.0, FEWEST=0):
        return dither(x_bmd)


WAYS = Ways(lambda x_bmd: x_bmd, disturb_all)

if __name__ == "__main__":
    main()
