"""Turn trained weights into a file of the package: calibration and domain ranges join the header.

    python runs/release.py out/run/weights.safetensors --name edges
    python runs/release.py out/avici/weights.safetensors --name avici-retrained --half

A temperature and class offsets are fitted on fresh tables (half of them fit, half judge) and shipped only if they lower
the cross-entropy of the judging half by more than half a per cent. The domain ranges come from tables of every shape of
the training grid and tell a user when a table is unlike anything seen. AVICI's network, a baseline, gets neither.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from graphbam.network import EdgeNet
from graphbam.preprocessing import describe_table, summarise_domain
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.sem import sample_tables
from graphbam.training.calibration import fit_calibration, simulated_logits
from graphbam.training.config import TrainConfig
from graphbam.training.stream import shape_grid
from graphbam.weights import LoadedWeights, load_network, load_weights, save_weights

DATA = Path(__file__).parents[1] / "src" / "graphbam" / "data"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights")
    parser.add_argument("--name", required=True, help="name in the package, such as edges")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--calibration-tables", type=int, default=32, help="tables a shape; 0 skips the fit")
    parser.add_argument("--domain-tables", type=int, default=40, help="tables a shape")
    parser.add_argument("--half", action="store_true", help="store 16-bit numbers: half the size, three digits")
    options = parser.parse_args()
    network, header = load_network(options.weights, options.device)
    header = {key: value for key, value in header.items() if key not in ("config", "sha256", "format")}
    if isinstance(network, EdgeNet):
        header |= describe(load_weights(options.weights, options.device), options)
    path = DATA / f"{options.name}.safetensors"
    save_weights(path, network, header, torch.float16 if options.half else torch.float32)
    print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB, calibration {header.get('calibration', 'none needed')}")


def describe(loaded: LoadedWeights, options: argparse.Namespace) -> dict[str, Any]:
    """What joins the header of edge weights."""
    config = TrainConfig.from_dict(loaded.header["train"] | {"network": loaded.header["config"]})
    extra: dict[str, Any] = {"domain": domain_ranges(config, options.domain_tables)}
    if options.calibration_tables:
        extra |= calibration(loaded, config.simulation, options.calibration_tables)
    return extra


def calibration(loaded: LoadedWeights, config: SimulationConfig, n_tables: int) -> dict[str, Any]:
    fitting = simulated_logits(loaded, torch.Generator().manual_seed(31), config, n_tables // 2)
    fitted = fit_calibration(*fitting)
    logits, classes, weights = simulated_logits(loaded, torch.Generator().manual_seed(32), config, n_tables // 2)
    losses = []
    for temperature, offsets in ((1.0, [0.0] * 3), (fitted["temperature"], fitted["offsets"])):
        each = F.cross_entropy(logits.double() / temperature + torch.tensor(offsets), classes, reduction="none")
        losses.append(float((each * weights).sum() / weights.sum()))
    print(f"cross-entropy {losses[0]:.5f} plain, {losses[1]:.5f} with {fitted}")
    return {"calibration": fitted} if losses[1] < 0.995 * losses[0] else {}


def domain_ranges(config: TrainConfig, n_tables: int) -> dict[str, list[float]]:
    """Ranges from worlds with independent rows: a few training tables have others, but every user wants to be told."""
    worlds = dataclasses.replace(config.simulation, autocorrelated=0.0)
    rng = torch.Generator().manual_seed(33)
    features = []
    for shape in shape_grid(config):
        size = {"n_variables": shape.n_variables, "n_samples": shape.n_samples}
        tables = sample_tables(rng, worlds, n_tables=n_tables, **size)
        features += [describe_table(x_md.double().numpy()) for x_md in tables.x_bmd]
    return summarise_domain(features)


if __name__ == "__main__":
    main()
