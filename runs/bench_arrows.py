"""How often arrows are right that are said to be right with a given probability: the numbers of docs/directions.md.

    python runs/bench_arrows.py

Fresh tables, 20 variables and 200 samples: `broad-1` ones, and the paper's graphs, noise and signal strength with every
mechanism in turn. An arrow of the default CPDAG is right if the true CPDAG has it too; it is as likely as its link
times its direction.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator

import numpy as np
import torch

import graphbam as gb
from graphbam.graphs.equivalence import dag_to_cpdag
from graphbam.graphs.graph import SKELETON, directed_part
from graphbam.nn.weights import load_weights
from graphbam.simulation import MECHANISMS, SimulationConfig, sample_tables

BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
SHAPE = {"n_variables": 20, "n_samples": 200}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=102, help="of each kind")
    options = parser.parse_args()
    edges = load_weights("edges")
    print(
        "| said | " + " | ".join(f"{name}: right | arrows" for name in KINDS) + " |\n|" + "---|" * (1 + 2 * len(KINDS))
    )
    found = {}
    for name, draw in KINDS.items():
        said, is_right = [], []
        for x_md, dag_dd in draw(options.tables):
            result = gb.infer(x_md, weights=edges)
            arrows_dd = directed_part(result.cpdag().adjacency).astype(bool)
            p_dd = result.probabilities[..., SKELETON] * result.compelled_probabilities
            said.append(p_dd[arrows_dd])
            is_right.append(directed_part(dag_to_cpdag(dag_dd))[arrows_dd])
        found[name] = np.concatenate(said), np.concatenate(is_right)
    for low, high in itertools.pairwise(BINS):
        print(f"| {low:g} to {high:g} | " + " | ".join(show(*pair, low, high) for pair in found.values()) + " |")


def show(said: np.ndarray, is_right: np.ndarray, low: float, high: float) -> str:
    own = is_right[(said >= low) & ((said < high) | (high == 1))]
    return f"{own.mean():.2f} | {len(own)}" if len(own) else " | 0"


def draw_broad(n_tables: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = torch.Generator().manual_seed(11)
    tables = sample_tables(rng, SimulationConfig.preset("broad-1"), n_tables=n_tables, **SHAPE)
    yield from zip(tables.x_bmd.double().numpy(), tables.dag_bdd.numpy(), strict=True)


def draw_paper(n_tables: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = torch.Generator().manual_seed(12)
    for mechanism in MECHANISMS:
        config = SimulationConfig.paper().narrow(mechanism=mechanism)
        tables = sample_tables(rng, config, n_tables=max(1, n_tables // len(MECHANISMS)), **SHAPE)
        yield from zip(tables.x_bmd.double().numpy(), tables.dag_bdd.numpy(), strict=True)


KINDS = {"broad": draw_broad, "paper": draw_paper}

if __name__ == "__main__":
    main()
