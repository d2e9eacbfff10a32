"""Simulated single cells beside a table of counts: four numbers of each; those of docs/worlds.md.

    python runs/single_cells.py ../shared/data/avici_gene_ecoli_d20_n500_s20

Share of zeros, how the variance of genes grows with their mean (the slope in logarithms: 1 for Poisson counts, 2 where
genes vary by factors), mean correlation of a gene with the sum of all others, and mean |correlation| of two genes, both
after log(1 + count). Of the simulated tables, of the same shape, those that show plain counts; quantiles over these.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from graphbam.simulation import WORLDS
from graphbam.tables.labelled import read_labelled

Matrix = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="folder with data.csv and graph.csv: rows are cells, columns genes")
    parser.add_argument("--tables", type=int, default=600, help="simulated tables, of which a third show counts")
    options = parser.parse_args()
    count_md = read_labelled(options.table).x_md
    found = describe(count_md)
    ours = [describe(x_md) for x_md in simulate_counts(options.tables, *count_md.shape)]
    print("| | table | simulated: median (10 % … 90 %) |\n|---|---|---|")
    for name, value in found.items():
        low, middle, high = np.quantile([one[name] for one in ours], [0.1, 0.5, 0.9])
        print(f"| {name} | {value:.2f} | {middle:.2f} ({low:.2f} … {high:.2f}) |")


def simulate_counts(n_tables: int, n_samples: int, n_variables: int) -> list[Matrix]:
    """Simulated tables that show whole numbers, without the kind of the cell."""
    world = WORLDS["single-cell"](torch.Generator().manual_seed(0), n_tables, n_variables, n_samples)
    tables = world.x_bme[..., : -world.n_drivers].double().numpy()
    return [x_md for x_md in tables if np.array_equal(x_md, x_md.round())]


def describe(count_md: Matrix) -> dict[str, float]:
    """The four numbers; genes that nobody has are left out."""
    count_md = count_md[:, np.ptp(count_md, axis=0) > 0]
    log_md, n_genes = np.log1p(count_md), count_md.shape[1]
    others_md = np.log1p(count_md.sum(1, keepdims=True) - count_md)
    depth_d = [np.corrcoef(log_md[:, k], others_md[:, k])[0, 1] for k in range(n_genes)]
    r_dd = np.corrcoef(log_md.T)
    return {
        "zeros": float((count_md == 0).mean()),
        "slope of variance over mean": float(np.polyfit(np.log(count_md.mean(0)), np.log(count_md.var(0)), 1)[0]),
        "correlation with library size": float(np.mean(depth_d)),
        "|correlation| of genes": float(np.abs(r_dd[np.triu_indices(n_genes, 1)]).mean()),
    }


if __name__ == "__main__":
    main()
