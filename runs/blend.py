"""Weights between two: those a run started from, and those it ended with.

    python runs/blend.py edges out/run/weights.safetensors --judge 200
    python runs/blend.py edges out/run/weights.safetensors --judge 30 --stretch 0
    python runs/blend.py edges out/run/weights.safetensors --share 0.75 -o out/blend.safetensors

A run on new kinds of worlds gains on them and may lose on tables that no simulator makes; part of the way back often
keeps most of the gain and undoes the loss (Wortsman et al., 2022, "Robust fine-tuning of zero-shot models"). How far
back is for simulated worlds to decide: `--judge` prints the losses of five shares on tables of `broad`, of worlds that
training did not have, and of the paper's with all mechanisms. Where the later network is the larger one, the earlier is
grown first, so that both compute with the same layers. With `--stretch`, samples see each other in other stretches than
in training (0: all do): no weight depends on them, and longer ones cost time and may say more.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses

import torch

from graphbam.nn.edge_net import EdgeNet
from graphbam.nn.weights import load_network, save_weights
from graphbam.simulation import SimulationConfig
from graphbam.training.loop import grow_weights
from parts import judge, make_judges

PAPER = dataclasses.replace(SimulationConfig.paper(), mechanisms=SimulationConfig.broad().mechanisms)
"""The paper's graphs, noise and signal strength."""

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the later weights that `--judge` looks at."""


def main() -> None:
    options = read_options()
    before, after = load_network(options.before), load_network(options.after)
    network, header = after.network, after.header
    if options.stretch is not None:
        assert isinstance(network, EdgeNet)
        changed = EdgeNet(dataclasses.replace(network.config, sample_stretch=options.stretch))
        changed.load_state_dict(network.state_dict())
        network = changed
    start, end = grow_weights(before.network, network, options.before), copy.deepcopy(network.state_dict())

    def go(share: float) -> None:
        network.load_state_dict({name: torch.lerp(start[name], end[name], share) for name in end})

    if options.judge:
        judges = make_judges(options.judge, torch.device("cpu"), {"paper": PAPER})
        for share in SHARES:
            go(share)
            scores = judge(network, judges)
            sums = {name: sum(loss for key, loss in scores.items() if key.startswith(name)) for name in judges}
            print(f"{share:4.2f}", "  ".join(f"{name} {loss:.4f}" for name, loss in sums.items()), flush=True)
        return
    go(options.share)
    notes = {**header.notes, "blend": options.share}
    save_weights(options.output, network, dataclasses.replace(header, notes=notes))
    print(f"{options.output}: {options.share:g} of {options.after}, the rest of {options.before}")


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
    options = parser.parse_args()
    if not options.judge and (options.share is None or options.output is None):
        parser.error("give --share and -o, or --judge")
    if options.share is not None and not 0 <= options.share <= 1:
        parser.error(f"--share {options.share} is no share between 0 and 1")
    return options


if __name__ == "__main__":
    main()
