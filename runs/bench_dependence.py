"""What it gives to tell the network how many independent rows there are: the numbers of runs/NOTES.md.

    python runs/bench_dependence.py edges

Fresh `broad-1` tables, all of them with autocorrelated noise or none: loss, skeleton AP and calibration error where the
network is told the number of rows, and where it is told what they are worth.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator

import numpy as np
import torch

from graphbam.graphs.metrics import average_precision, expected_calibration_error
from graphbam.nn.weights import LoadedWeights, load_weights
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.values import Tables, sample_tables
from graphbam.tables.rows import count_rows_each
from graphbam.training.objectives import edge_loss

SHAPES = ((10, 200), (20, 400))
"""Variables and samples."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", help="name or path")
    parser.add_argument("--tables", type=int, default=120, help="of each shape and kind")
    options = parser.parse_args()
    loaded = load_weights(options.weights)
    print("| rows | d, M | told | loss | skeleton AP | calibration error |\n|---|---|---|---|---|---|")
    for kind, share in (("dependent", 1.0), ("independent", 0.0)):
        config = dataclasses.replace(SimulationConfig.preset("broad-1"), autocorrelated=share)
        for d, m in SHAPES:
            rng = torch.Generator().manual_seed(9)
            tables = sample_tables(rng, config, n_tables=options.tables, n_variables=d, n_samples=m)
            for told, scores in compare(loaded, tables):
                print(f"| {kind} | {d}, {m} | {told} | " + " | ".join(f"{score:.3f}" for score in scores) + " |")


def compare(loaded: LoadedWeights, tables: Tables) -> Iterator[tuple[str, tuple[float, float, float]]]:
    worth = count_rows_each(tables.x_bmd.numpy())
    yield "M", judge(loaded.probabilities(tables.x_bmd), tables.classes_bdd)
    yield "their worth", judge(loaded.probabilities(tables.x_bmd, worth), tables.classes_bdd)


def judge(p_bdd3: torch.Tensor, classes_bdd: torch.Tensor) -> tuple[float, float, float]:
    """Loss, mean average precision of the skeleton over tables that have one, calibration error over all pairs."""
    rows, columns = torch.triu_indices(*classes_bdd.shape[1:], 1).unbind(0)
    truth_bn = (classes_bdd[:, rows, columns] == 1).numpy()
    p_bn = p_bdd3[:, rows, columns, 1].numpy()
    scores = [average_precision(truth_n, p_n) for truth_n, p_n in zip(truth_bn, p_bn, strict=True) if truth_n.any()]
    loss = edge_loss(p_bdd3.clamp_min(1e-12).log(), classes_bdd).total().item()
    return loss, float(np.mean(scores)), expected_calibration_error(truth_bn.ravel(), p_bn.ravel())


if __name__ == "__main__":
    main()
