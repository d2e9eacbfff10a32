"""The ledger of docs/speedrun.md: one lever per row, from scratch, equal minutes, loss on a fixed set of tables.

    python runs/speedrun.py --minutes 1.9 -o out/speedrun warm-up adamw default "no bilinear"
    python runs/speedrun.py --steps 5 --tables 2 --cells 6000 -o out/try adamw     # does it run at all?
    python runs/speedrun.py --minutes 24 -o out/race race                          # the speedrun, all that pays at once

All levers of a call run in one process and share what was compiled, so the first one pays for it: begin with `warm-up`,
whose row does not count. `race` is no lever: it learns from all shapes that are judged on tables of others (up to 600
rows and 100 variables), every answer, and its weights are scored by `runs/validate.py --tables FOLDER --shapes`.
"""

from __future__ import annotations

import argparse
import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphbam.graphs.metrics import average_precision
from graphbam.nn.edge_net import EdgeNetConfig
from graphbam.nn.weights import load_weights
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.values import Tables, sample_tables
from graphbam.training import Budget, TrainConfig, train
from graphbam.training.objectives import edge_loss

SHAPES = ((5, 200), (10, 100), (20, 500), (40, 300), (80, 150), (100, 600))
"""Variables and samples of the tables that judge."""

GRID: dict[str, Any] = {"variables": (5, 10, 20, 40, 80), "samples": (50, 150, 400, 1000), "stagger": 1}
"""Twenty shapes: in minutes, a finer grid would be recorded rather than learnt from."""

LEVERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "warm-up": ({}, {}),
    "default": ({}, {}),
    "adamw": ({"optimizer": "adamw"}, {}),
    "no bilinear": ({}, {"bilinear_layers": 0}),
    "long decay": ({"decay_share": 0.6}, {}),
    "twice the rate": ({"learning_rate": 3e-3}, {}),
    "five pair blocks": ({}, {"pair_layers": 5}),
    "three layers over samples": ({}, {"sample_layers": 3}),
    "long head": ({}, {"sample_layers": 3, "pair_layers": 24}),
    "wide head": ({}, {"sample_layers": 3, "pair_layers": 16, "pair_channels": 96}),
}
"""Name → changes to the training config, changes to the network."""


RACE = "race"


def race_config(cells: int) -> TrainConfig:
    """From nothing to as good a skeleton as may be: no marked cells, few hidden variables, short stretches."""
    worlds = replace(SimulationConfig.broad(), missing=0.0, interventions=0.0, hidden=0.1)
    grid = {"variables": (4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 40, 50, 70, 100), "stagger": 2}
    grid |= {"samples": (50, 75, 100, 150, 240, 360, 480, 600), "cells_per_step": cells}
    rate = {"learning_rate": 1.5e-3, "curriculum_start": 0.15, "curriculum_steps": 4000}
    network = EdgeNetConfig.every_answer(pair_layers=12, sample_layers=5)
    return TrainConfig.answers(network=network, simulation=worlds, **grid, **rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("levers", nargs="+", choices=[*LEVERS, RACE])
    parser.add_argument("-o", "--out", default="out/speedrun")
    parser.add_argument("--minutes", type=float, default=1.9)
    parser.add_argument("--steps", type=int, help="stop at so many steps, if they come before the minutes")
    parser.add_argument("--tables", type=int, default=64, help="judging tables per shape")
    parser.add_argument("--cells", type=int, default=240_000, help="cells per step")
    parser.add_argument("--workers", type=int, help="processes that simulate; by default, on a GPU, all cores but two")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    judges = make_judges(options.tables)
    for lever in options.levers:
        row = measure(lever, options, judges)
        print(json.dumps(row), flush=True)
        with open(Path(options.out, "ledger.jsonl"), "a") as stream:
            stream.write(json.dumps(row) + "\n")
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def make_judges(n_tables: int) -> list[Tables]:
    """The fixed set: `broad-1` tables of every shape."""
    rng, config = torch.Generator().manual_seed(41), SimulationConfig.preset("broad-1")
    return [sample_tables(rng, config, n_tables=n_tables, n_variables=d, n_samples=m) for d, m in SHAPES]


def measure(lever: str, options: argparse.Namespace, judges: list[Tables]) -> dict[str, Any]:
    """Train with one lever and judge the averaged weights."""
    config = race_config(options.cells) if lever == RACE else pull_lever(lever, options.cells)
    folder = Path(options.out, lever.replace(" ", "-"))
    budget = Budget(minutes=options.minutes, steps=options.steps, decay=True, save_seconds=60, report_seconds=15)
    path = train(config, folder, budget=budget, device=options.device, workers=options.workers)
    last = json.loads((folder / "log.jsonl").read_text().splitlines()[-1])
    losses, precisions = judge(path, judges, options.device)
    return {
        "lever": lever,
        "loss": round(float(np.mean(losses)), 4),
        "skeleton_ap": round(float(np.mean(precisions)), 4),
        "losses": [round(loss, 4) for loss in losses],
        "steps": last["step"],
        "tables": last["tables"],
        "skipped": last["skipped"],
    }


def pull_lever(lever: str, cells: int) -> TrainConfig:
    """A short run with one thing changed."""
    training, network = LEVERS[lever]
    changes = GRID | {"curriculum_steps": 1500, "cells_per_step": cells} | training
    return TrainConfig(network=EdgeNetConfig(**network), **changes)


@torch.no_grad()
def judge(path: Path, judges: list[Tables], device: str) -> tuple[list[float], list[float]]:
    """Loss and average precision of the skeleton for every shape."""
    loaded = load_weights(path, "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")
    losses, precisions = [], []
    for tables in judges:
        p_bdd3 = loaded.probabilities(tables.x_bmd)
        losses.append(edge_loss(p_bdd3.clamp_min(1e-12).log(), tables.classes_bdd).total().item())
        i, j = torch.triu_indices(*p_bdd3.shape[1:3], 1)
        truth_bn, score_bn = (tables.classes_bdd == 1)[:, i, j].numpy(), p_bdd3[:, i, j, 1].numpy()
        precisions.append(
            float(np.mean([average_precision(t, s) for t, s in zip(truth_bn, score_bn, strict=True) if t.any()]))
        )
    return losses, precisions


if __name__ == "__main__":
    main()
