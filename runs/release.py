"""Turn trained weights into a file of the package: what a user needs beside them joins the header.

    python runs/release.py out/run/weights.safetensors --name edges
    python runs/release.py out/colliders/weights.safetensors --name colliders
    python runs/release.py out/avici/weights.safetensors --name avici-retrained --half

What the file holds decides what joins. Edge weights get a temperature and class offsets, fitted on fresh tables (half
of them fit, half judge), and the domain ranges, from tables of every shape of the training grid, which tell a user when
a table is unlike anything seen. Collider weights get a temperature and an offset, fitted on fresh structures and judged
on as many others, both with the mistakes of the edge weights that the network learnt from; then the weights of
`graphbam.directions.evidence`, fitted on whole tables and judged on others. AVICI's network, a baseline, gets nothing.

A calibration is shipped only if it lowers the cross-entropy of what judges it by more than half a per cent.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from graphbam.directions.evidence import TERMS
from graphbam.nn.edge_net import EdgeNet
from graphbam.nn.immorality_net import ColliderNet
from graphbam.nn.weights import LoadedColliders, LoadedWeights, load_network, load_weights, save_weights
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.values import sample_tables
from graphbam.tables.domain import describe_table, summarise_domain
from graphbam.training.calibration import (
    fit_calibration,
    fit_child_calibration,
    fit_evidence,
    simulated_children,
    simulated_claims,
    simulated_logits,
)
from graphbam.training.config import TrainConfig
from graphbam.training.data import shape_grid

DATA = Path(__file__).parents[1] / "src" / "graphbam" / "weights"

WORTHWHILE = 0.995
"""A calibration is shipped if it leaves less than this share of the cross-entropy."""


def main() -> None:
    options = read_options()
    network, header = load_network(options.weights, options.device)
    kept = {key: value for key, value in header.items() if key not in ("config", "sha256", "format")}
    if isinstance(network, EdgeNet):
        kept |= describe_edges(LoadedWeights(options.name, network, header), options)
    elif isinstance(network, ColliderNet):
        kept |= describe_colliders(LoadedColliders(options.name, network, header), options)
    path = options.folder / f"{options.name}.safetensors"
    save_weights(path, network, kept, torch.float16 if options.half else torch.float32)
    print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB, calibration {kept.get('calibration', 'none')}")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights")
    parser.add_argument("--name", required=True, help="name in the package, such as edges")
    parser.add_argument("--folder", type=Path, default=DATA)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--half", action="store_true", help="store 16-bit numbers: half the size, three digits")
    edges = parser.add_argument_group("edge weights")
    edges.add_argument("--calibration-tables", type=int, default=32, help="tables a shape; 0 skips the fit")
    edges.add_argument("--domain-tables", type=int, default=40, help="tables a shape")
    colliders = parser.add_argument_group("collider weights")
    colliders.add_argument("--structures", type=int, default=64, help="structures a shape; 0 skips the fit")
    colliders.add_argument("--tables", type=int, default=20, help="tables a shape for the weights of evidence; 0: none")
    return parser.parse_args()


def training_config(header: dict[str, Any]) -> TrainConfig:
    return TrainConfig.from_dict(header["train"] | {"network": header["config"]})


# ── edges ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def describe_edges(loaded: LoadedWeights, options: argparse.Namespace) -> dict[str, Any]:
    """What joins the header of edge weights."""
    config = training_config(loaded.header)
    extra: dict[str, Any] = {"domain": domain_ranges(config, options.domain_tables)}
    if options.calibration_tables:
        extra |= calibrate_edges(loaded, config.simulation, options.calibration_tables)
    return extra


def calibrate_edges(loaded: LoadedWeights, config: SimulationConfig, n_tables: int) -> dict[str, Any]:
    fitting = simulated_logits(loaded, torch.Generator().manual_seed(31), config, n_tables // 2)
    fitted = fit_calibration(*fitting)
    logits, classes, weights = simulated_logits(loaded, torch.Generator().manual_seed(32), config, n_tables // 2)
    losses = []
    for temperature, offsets in ((1.0, [0.0] * 3), (fitted["temperature"], fitted["offsets"])):
        each = F.cross_entropy(logits.double() / temperature + torch.tensor(offsets), classes, reduction="none")
        losses.append(float((each * weights).sum() / weights.sum()))
    print(f"cross-entropy {losses[0]:.5f} plain, {losses[1]:.5f} with {fitted}")
    return {"calibration": fitted} if losses[1] < WORTHWHILE * losses[0] else {}


def domain_ranges(config: TrainConfig, n_tables: int) -> dict[str, list[float]]:
    """Ranges from worlds with independent rows and nothing hidden: a few training tables are otherwise, but every user
    wants to be told."""
    worlds = dataclasses.replace(config.simulation, autocorrelated=0.0, sluggish=0.0, confounded=0.0)
    rng = torch.Generator().manual_seed(33)
    features = []
    for shape in shape_grid(config):
        size = {"n_variables": shape.n_variables, "n_samples": shape.n_samples}
        tables = sample_tables(rng, worlds, n_tables=n_tables, **size)
        features += [describe_table(x_md.double().numpy()) for x_md in tables.x_bmd]
    return summarise_domain(features)


# ── colliders ─────────────────────────────────────────────────────────────────────────────────────────────────────


def describe_colliders(loaded: LoadedColliders, options: argparse.Namespace) -> dict[str, Any]:
    """What joins the header of collider weights; evidence is weighed with the calibration that is shipped."""
    config, extra = training_config(loaded.header), {}
    if options.structures:
        extra |= calibrate_colliders(loaded, config, options.structures)
    if options.tables:
        calibrated = dataclasses.replace(loaded, header=loaded.header | extra)
        extra |= weigh_evidence(calibrated, config, options.tables, options.device)
    return extra


def calibrate_colliders(loaded: LoadedColliders, config: TrainConfig, n_structures: int) -> dict[str, Any]:
    fitting, judging = (
        simulated_children(loaded, torch.Generator().manual_seed(seed), config, n_structures) for seed in (31, 32)
    )
    fitted = fit_child_calibration(*fitting)
    logits, truth = judging[0].double(), judging[1].double()
    plain = float(F.binary_cross_entropy_with_logits(logits, truth))
    better = float(F.binary_cross_entropy_with_logits(logits / fitted["temperature"] + fitted["offset"], truth))
    right = float(((logits > 0) == judging[1]).double().mean())
    print(
        f"cross-entropy {plain:.4f} plain, {better:.4f} with {fitted}; {right:.3f} right, {truth.mean():.3f} children"
    )
    return {"calibration": fitted} if better < WORTHWHILE * plain else {}


def weigh_evidence(loaded: LoadedColliders, config: TrainConfig, n_tables: int, device: str) -> dict[str, Any]:
    assert config.structures is not None
    edges = load_weights(config.structures.edges or "edges", device)
    fitting, judging = (
        simulated_claims(edges, loaded, torch.Generator().manual_seed(seed), config.simulation, n_tables // 2)
        for seed in (41, 42)
    )
    fitted = fit_evidence(*fitting)
    features, truth = judging[0].double(), judging[1].double()
    child = TERMS.index("child")
    plain = float(F.binary_cross_entropy_with_logits(features[:, child], truth))
    weighed = features @ torch.tensor(list(fitted.values()), dtype=torch.float64)
    better = float(F.binary_cross_entropy_with_logits(weighed, truth))
    print(f"claims: cross-entropy {plain:.4f} by the network alone, {better:.4f} with {fitted}, {len(truth)} judged")
    return {"evidence": fitted} if better < plain else {}


if __name__ == "__main__":
    main()
