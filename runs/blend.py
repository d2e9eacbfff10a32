"""Weights between two: those a run started from, and those it ended with.

    python runs/blend.py edges out/run/weights.safetensors --share 0.75 -o out/blend.safetensors

A run on new kinds of worlds gains on them and may lose on tables that no simulator makes; part of the way back often
keeps most of the gain and undoes the loss (Wortsman et al., 2022, "Robust fine-tuning of zero-shot models"). Where the
later network is the larger one, the earlier is grown first, so that both compute with the same layers.
"""

from __future__ import annotations

import argparse
import dataclasses

import torch

from graphbam.nn.weights import load_network, save_weights
from graphbam.training.loop import grow_weights


def main() -> None:
    options = read_options()
    before, after = load_network(options.before), load_network(options.after)
    network, header = after.network, after.header
    start, end = grow_weights(before.network, network, options.before), network.state_dict()
    network.load_state_dict({name: torch.lerp(start[name], end[name], options.share) for name in end})
    notes = {**header.notes, "blend": options.share}
    save_weights(options.output, network, dataclasses.replace(header, notes=notes))
    print(f"{options.output}: {options.share:g} of {options.after}, the rest of {options.before}")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", help="name or path of the weights that the run started from")
    parser.add_argument("after", help="weights that it ended with")
    parser.add_argument("--share", type=float, required=True, help="0: those before, 1: those after")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    if not 0 <= options.share <= 1:
        parser.error(f"--share {options.share} is no share between 0 and 1")
    return options


if __name__ == "__main__":
    main()
