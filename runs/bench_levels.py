"""Tables of nothing but columns with two levels: what a little noise on them brings (`graphbam.tables.dither`).

    python runs/bench_levels.py
    python runs/bench_levels.py --tables 4 --sizes 120x400

Tables of the paper's simulation are cut into zeros and ones, such that every column has ones in a share of its rows,
drawn between two limits, or zeros, at even odds; in some of them a share of the columns has three or four levels
instead, or stays as it is, or cells are missing. Each is asked about as it is, and with noise on all columns of two
levels: skeleton AP, the share of links found at ½, and that of false ones among those named, means over tables; "gain"
has the standard error of the difference in AP. "Unrelated" are pairs in a hundred that are called linked in a table of
independent columns. The last column says in how many of the tables `infer` lays noise over the columns by itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple, TypeAlias
from unittest import mock

import numpy as np
import torch

import graphbam as gb
from graphbam.graphs.graph import SKELETON, skeleton
from graphbam.graphs.metrics import average_precision, pair_values
from graphbam.simulation import SimulationConfig, sample_tables
from graphbam.tables.dither import dither, find_levels

SIZES = ("15x300", "30x300", "60x300", "120x400", "200x500", "280x300")
Way: TypeAlias = Callable[..., torch.Tensor]
"""Takes standardised tables, and which of their cells were missing."""


class Kind(NamedTuple):
    """How the columns of a table are cut."""

    shares: tuple[float, float] = (0.5, 0.5)
    """Between these lies the share of rows in which a column is one, or zero."""
    levels: int = 0
    """Some columns have so many levels instead, each in as many rows; 0: they stay as they are."""
    others: float = 0.0
    """How many of the columns these are."""
    gaps: float = 0.0
    """Share of cells that are missing."""

    def __str__(self) -> str:
        parts = [" to ".join(f"{100 * share:.0f} %" for share in dict.fromkeys(self.shares))]
        if self.others:
            parts.append(
                f"{100 * self.others:.0f} % of {self.levels} levels"
                if self.levels
                else f"{100 * self.others:.0f} % numbers"
            )
        if self.gaps:
            parts.append(f"{100 * self.gaps:g} % missing")
        return ", ".join(parts)


SHARES = ((0.5, 0.5), (0.4, 0.5), (0.35, 0.35), (0.3, 0.5), (0.2, 0.4), (0.2, 0.2), (0.1, 0.3), (0.1, 0.9))
OTHERS = ((3, 0.1), (3, 0.2), (3, 0.4), (4, 0.2), (0, 0.05), (0, 0.2))
GAPS = (0.002, 0.01, 0.1, 0.3)
KINDS = {
    "shares": [Kind(shares) for shares in SHARES],
    "others": [Kind((0.4, 0.5), levels, others) for levels, others in OTHERS],
    "gaps": [Kind(gaps=gaps) for gaps in GAPS],
}


class Ways(NamedTuple):
    """What `graphbam.inference.networks` does to a table first: nothing, or noise wherever a column has two levels."""

    plain: Way
    noisy: Way


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=8, help="of each size")
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="DxM")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    options = parser.parse_args()
    twice = [f"{name} | with noise" for name in ("AP", "found", "false", "unrelated")]
    print(f"| d | M | ones | {twice[0]} | gain | {' | '.join(twice[1:])} | by itself |\n{'|---' * 13}|")
    for size in options.sizes:
        d, m = map(int, size.split("x"))
        for kind in (kind for name in options.kinds for kind in KINDS[name]):
            print(f"| {d} | {m} | {kind} | {compare(d, m, kind, options.tables)} |", flush=True)


def compare(d: int, m: int, kind: Kind, n_tables: int) -> str:
    """A line of the table."""
    rng = torch.Generator().manual_seed(7 * d + m)
    drawn = sample_tables(rng, SimulationConfig.paper(), n_tables=n_tables, n_variables=d, n_samples=m)
    rows, alone, by_itself = [], [], 0
    for number, (x_md, dag_dd) in enumerate(zip(drawn.x_bmd.numpy(), drawn.dag_bdd.numpy(), strict=True)):
        seeded = np.random.default_rng([number, d, m])
        cut_md = cut(x_md, kind, seeded)
        by_itself += bool(find_levels(cut_md, np.isnan(cut_md)).any())
        rows.append([judge(cut_md, dag_dd, way) for way in WAYS])
        noise_md = cut(seeded.normal(size=x_md.shape), kind, seeded)
        alone.append([100 * (ask(noise_md, way) >= 0.5).mean() for way in WAYS])
    means, gain = np.mean(rows, axis=0).T, np.diff(rows, axis=1)[:, 0, 0]
    cells = [f"{means[0, 0]:.3f}", f"{means[0, 1]:.3f}", f"{gain.mean():+.3f} ± {gain.std() / n_tables**0.5:.3f}"]
    cells += [f"{value:.2f}" for value in (*means[1], *means[2], *np.mean(alone, axis=0))]
    return " | ".join([*cells, f"{by_itself} of {n_tables}"])


def cut(x_md: np.ndarray, kind: Kind, rng: np.random.Generator) -> np.ndarray:
    """Zeros and ones, by a share of ones for each column, or of zeros; other columns, and gaps, as the kind has it."""
    n_columns = x_md.shape[1]
    share_d = rng.uniform(*kind.shares, n_columns)
    share_d = np.where(rng.random(n_columns) < 0.5, share_d, 1 - share_d)
    cut_md = np.stack([x_m > np.quantile(x_m, 1 - share) for x_m, share in zip(x_md.T, share_d, strict=True)], 1) * 1.0
    for k in rng.permutation(n_columns)[: round(kind.others * n_columns)] if kind.others else ():
        cuts = np.quantile(x_md[:, k], np.arange(1, kind.levels) / max(kind.levels, 1))
        cut_md[:, k] = np.digitize(x_md[:, k], cuts) if kind.levels else x_md[:, k]
    return np.where(rng.random(x_md.shape) < kind.gaps, np.nan, cut_md) if kind.gaps else cut_md


def judge(x_md: np.ndarray, dag_dd: np.ndarray, way: Way) -> list[float]:
    """Skeleton AP, share of links found at ½, share of false ones."""
    truth, p = pair_values(skeleton(dag_dd)), ask(x_md, way)
    found = (truth == 1) & (p >= 0.5)
    return [average_precision(truth, p), found.sum() / truth.sum(), 1 - found.sum() / max((p >= 0.5).sum(), 1)]


def ask(x_md: np.ndarray, way: Way) -> np.ndarray:
    """Probabilities of links, pair by pair, with this done to the table first."""
    with mock.patch("graphbam.inference.networks.dither", way):
        result = gb.infer(x_md, directions="none", progress=False)
    return pair_values(result.probabilities[..., SKELETON])


def disturb_all(x_bmd: torch.Tensor, missing_bmd: torch.Tensor | None = None) -> torch.Tensor:
    """Noise on every column of two levels, whatever their shares, and however few they are."""
    limits = {"EVEN": 0.0, "UNEVEN": 0.0, "FEWEST": 0, "MOST": 0.0, "NEARLY_ALL": 0.0, "FILLED": 1.0}
    with mock.patch.multiple("graphbam.tables.dither", **limits):
        return dither(x_bmd, missing_bmd)


WAYS = Ways(lambda x_bmd, missing_bmd=None: x_bmd, disturb_all)

if __name__ == "__main__":
    main()
