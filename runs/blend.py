"""Weights between two: those a run started from, and those it ended with.

    python runs/blend.py edges out/run/weights.safetensors --judge 200
    python runs/blend.py edges out/run/weights.safetensors --judge 30 --stretch 0
    python runs/blend.py edges out/run/weights.safetensors --judge 80 --apart
    python runs/blend.py edges out/run/weights.safetensors --share 0.75 -o out/blend.safetensors

A run on new kinds of worlds gains on them and may lose on tables that no simulator makes; part of the way back often
keeps most of the gain and undoes the loss (Wortsman et al., 2022, "Robust fine-tuning of zero-shot models"). How far
back is for simulated worlds to decide: `--judge` prints, for five shares, the loss of all answers and how well links
and arrows are ranked, on tables of `broad`, of worlds that training did not have, and of the paper's with all
mechanisms, each with its difference from the earlier weights and the standard error of that. Tables are drawn one by
one: those of a batch share their world, and a few batches say little. Where the later network is the larger one, the
earlier is grown first, so that both compute with the same layers. With `--stretch`, samples see each other in other
stretches than in training (0: all do): no weight depends on them, and longer ones cost time and may say more. With
`--apart` the two are judged as they are, and nothing between them: weights of different descent, or of any two designs.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from graphbam.graphs.metrics import average_precision
from graphbam.nn.edge_net import EdgeNet
from graphbam.nn.weights import load_network, save_weights
from graphbam.simulation import SimulationConfig
from graphbam.simulation.values import Shape
from graphbam.training import TrainConfig
from graphbam.training.calibration import worlds_unlike
from graphbam.training.data import AnswerBatch
from graphbam.training.loop import grow_weights
from graphbam.training.objectives import AnswerTask
from parts import JUDGES, measure_losses

BROAD = SimulationConfig.broad()
WORLDS = {
    "broad": BROAD,
    "unlike": worlds_unlike(BROAD),
    "paper": dataclasses.replace(SimulationConfig.paper(), mechanisms=BROAD.mechanisms),
}
"""What `--judge` judges by; the last has the paper's graphs, noise and signal strength."""

SCORES = ("loss", "skeleton AP", "directed AP")

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the later weights that `--judge` looks at."""


def main() -> None:
    options = read_options()
    before, after = load_network(options.before), load_network(options.after)
    assert isinstance(before.network, EdgeNet)
    assert isinstance(after.network, EdgeNet)
    network, header = after.network, after.header
    if options.stretch is not None:
        network = EdgeNet(dataclasses.replace(network.config, sample_stretch=options.stretch))
        network.load_state_dict(after.network.state_dict())
    if options.apart:
        judge(options.judge, lambda: [("before", before.network), ("after", network)])
        return
    start, end = grow_weights(before.network, network, options.before), copy.deepcopy(network.state_dict())

    def go(share: float) -> EdgeNet:
        network.load_state_dict({name: torch.lerp(start[name], end[name], share) for name in end})
        return network

    if options.judge:
        judge(options.judge, lambda: ((f"{share:4.2f}", go(share)) for share in SHARES))
        return
    go(options.share)
    notes = {**header.notes, "blend": options.share}
    save_weights(options.output, network, dataclasses.replace(header, notes=notes))
    print(f"{options.output}: {options.share:g} of {options.after}, the rest of {options.before}")


def judge(n_tables: int, candidates: Callable[[], Iterable[tuple[str, EdgeNet]]]) -> None:
    """Hold candidates against the first of them in all worlds."""
    for name, worlds in WORLDS.items():
        print_rows(name, draw_each(worlds, n_tables), candidates())


def draw_each(worlds: SimulationConfig, n_tables: int) -> list[AnswerBatch]:
    """Tables of every shape that judges, one by one."""
    config, task = dataclasses.replace(TrainConfig.answers(burst=1), simulation=worlds), AnswerTask(None)
    seeds = itertools.count(1)
    return [
        task.burst(torch.Generator().manual_seed(next(seeds)), config, Shape(1, m, d), torch.device("cpu"))
        for _ in range(n_tables)
        for d, m in JUDGES
    ]


@torch.no_grad()
def print_rows(name: str, tables: list[AnswerBatch], candidates: Iterable[tuple[str, EdgeNet]]) -> None:
    """A line for each candidate: means over tables, differences from the first one and their standard errors."""
    before = None
    for label, network in candidates:
        network.eval()
        scores_n3 = np.array([score(network(one.x_bmd, one.rows_b, one.marks_bmd), one) for one in tables])
        before = scores_n3 if before is None else before
        gain_n3 = scores_n3 - before
        error_3 = np.nanstd(gain_n3, axis=0) / np.isfinite(gain_n3).sum(axis=0) ** 0.5
        told = zip(SCORES, np.nanmean(scores_n3, axis=0), np.nanmean(gain_n3, axis=0), error_3, strict=True)
        parts = [f"{what} {mean:.4f} ({gain:+.4f} ± {error:.4f})" for what, mean, gain, error in told]
        print(f"{name:6} {label}", "  ".join(parts), flush=True)


def score(logits_bdd7: Tensor, table: AnswerBatch) -> list[float]:
    """`SCORES` of one table; NaN where it has no links."""
    loss = sum(part.item() for part in measure_losses(logits_bdd7, table).values())
    link_dd = logits_bdd7[0, ..., :3].softmax(-1)[..., 1].numpy()
    arrow_dd = link_dd * logits_bdd7[0, ..., 3].sigmoid().numpy()
    links_dd, arrows_dd = (table.classes_bdd[0] == 1).numpy(), (table.dag_bdd[0] > 0).numpy()
    i, j = np.triu_indices(len(link_dd), 1)
    apart_dd = ~np.eye(len(link_dd), dtype=bool)
    ranked = ((links_dd[i, j], link_dd[i, j]), (arrows_dd[apart_dd], arrow_dd[apart_dd]))
    return [loss, *(average_precision(truth, p) if truth.any() else np.nan for truth, p in ranked)]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="name or path of the weights that the run started from")
    parser.add_argument("after", help="weights that it ended with")
    parser.add_argument("--share", type=float, help="0: those before, 1: those after")
    parser.add_argument("-o", "--output")
    parser.add_argument("--stretch", type=int, help="samples that see each other at most; default: as in training")
    parser.add_argument(
        "--judge", type=int, metavar="TABLES", help="print losses on so many tables of each shape instead"
    )
    parser.add_argument("--apart", action="store_true", help="with --judge: the two alone, whatever their designs")
    options = parser.parse_args()
    if options.apart and not options.judge:
        parser.error("--apart goes with --judge")
    if not options.judge and (options.share is None or options.output is None):
        parser.error("give --share and -o, or --judge")
    if options.share is not None and not 0 <= options.share <= 1:
        parser.error(f"--share {options.share} is no share between 0 and 1")
    return options


if __name__ == "__main__":
    main()
