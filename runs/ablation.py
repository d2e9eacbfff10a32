"""The paper's ablation table: five networks, the same budget each, losses as ratios to the full one.

    python runs/ablation.py -o out/ablation --minutes 1 --device cuda

The paper gives losses after 500 epochs without saying how they are normalised, so only ratios between rows compare.
Each network trains on the paper's data and shapes; the loss is that of the averaged weights on fresh tables.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from graphbam.nn.edge_net import ABLATIONS, EdgeNetConfig
from graphbam.nn.weights import load_weights
from graphbam.simulation.values import sample_tables
from graphbam.training import Budget, TrainConfig, train
from graphbam.training.objectives import edge_loss

PAPER = {
    "full": 0.173,
    "no bilinear": 0.202,
    "no bilinear, no log": 0.271,
    "no observational attention": 0.189,
    "no observational attention, no dense": 0.205,
}
"""Losses in the paper's table."""

SHAPES = ((10, 200), (20, 500), (40, 300), (60, 800), (80, 100), (100, 500))
"""Variables and samples of the tables that judge."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", default="out/ablation")
    parser.add_argument("--minutes", type=float, default=1.0, help="training time of each network")
    parser.add_argument("--steps", type=int, help="stop at so many steps instead: equal terms on a shared GPU as well")
    parser.add_argument("--workers", type=int, help="processes that simulate; by default, on a GPU, all cores but two")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--tables", type=int, default=16, help="judging tables per shape")
    parser.add_argument("--cells", type=int, default=120_000, help="cells per step")
    options = parser.parse_args()
    losses = {name: measure(name, options) for name in ABLATIONS}
    print("| network | loss | ratio | paper's ratio |\n|---|---|---|---|")
    for name, loss in losses.items():
        print(f"| {name} | {loss:.4f} | {loss / losses['full']:.2f} | {PAPER[name] / PAPER['full']:.2f} |")
    Path(options.out, "losses.json").write_text(json.dumps(losses, indent=1))


def measure(name: str, options: argparse.Namespace) -> float:
    """Train one variant and return its loss on fresh tables."""
    network = EdgeNetConfig.ablation(**ABLATIONS[name])
    curriculum = 2000 if options.steps is None else options.steps // 3
    config = TrainConfig.paper(network=network, cells_per_step=options.cells, curriculum_steps=curriculum)
    minutes = None if options.steps else options.minutes
    budget = Budget(steps=options.steps, minutes=minutes, decay=True)
    folder = Path(options.out, name.replace(", ", "-").replace(" ", "-"))
    # not compiled: five designs would take longer to compile than to train; steps are still replayed as CUDA graphs
    place = {"device": options.device, "workers": options.workers}
    path = train(config, folder, budget=budget, compile_blocks=False, **place)
    return judge(path, options.device, options.tables, config)


@torch.no_grad()
def judge(path: Path, device: str, n_tables: int, config: TrainConfig) -> float:
    loaded = load_weights(path, "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")
    rng = torch.Generator().manual_seed(41)
    losses = []
    for d, m in SHAPES:
        tables = sample_tables(rng, config.simulation, n_tables=n_tables, n_variables=d, n_samples=m)
        log_p = loaded.probabilities(tables.x_bmd).clamp_min(1e-12).log()
        losses.append(edge_loss(log_p, tables.classes_bdd).total().item())
    print(f"{path.parent.name}: {dict(zip(SHAPES, losses, strict=True))}")
    return sum(losses) / len(losses)


if __name__ == "__main__":
    main()
