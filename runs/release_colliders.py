"""Turn trained collider weights into a file of the package: a calibration joins the header where it helps.

    python runs/release_colliders.py out/colliders/weights.safetensors --name colliders

A temperature and an offset are fitted on fresh structures and shipped only if they lower the cross-entropy of as many
others by more than half a per cent. Both kinds have the mistakes of the edge weights that the network learnt from. Then
the weights of `graphbam.evidence` are fitted on whole tables, and judged on others.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import torch
import torch.nn.functional as F

from graphbam.evidence import TERMS
from graphbam.training.calibration import fit_child_calibration, fit_evidence, simulated_children, simulated_claims
from graphbam.training.config import TrainConfig
from graphbam.weights import LoadedColliders, load_colliders, load_weights, save_weights

DATA = Path(__file__).parents[1] / "src" / "graphbam" / "data"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights")
    parser.add_argument("--name", required=True, help="name in the package, such as colliders")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--structures", type=int, default=64, help="structures a shape; 0 skips the fit")
    parser.add_argument("--tables", type=int, default=20, help="tables a shape for the weights of evidence; 0: none")
    parser.add_argument("--folder", type=Path, default=DATA)
    options = parser.parse_args()
    loaded = load_colliders(options.weights, options.device)
    kept = {key: value for key, value in loaded.header.items() if key not in ("config", "sha256", "format")}
    if options.structures:
        kept |= calibration(loaded, options.structures)
    if options.tables:
        kept |= evidence(dataclasses.replace(loaded, header=loaded.header | kept), options.tables, options.device)
    path = options.folder / f"{options.name}.safetensors"
    save_weights(path, loaded.network, kept)
    print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB, calibration {kept.get('calibration', 'none')}")


def calibration(loaded: LoadedColliders, n_structures: int) -> dict[str, dict[str, float]]:
    config = TrainConfig.from_dict(loaded.header["train"] | {"network": loaded.header["config"]})
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
    return {"calibration": fitted} if better < 0.995 * plain else {}


def evidence(loaded: LoadedColliders, n_tables: int, device: str) -> dict[str, dict[str, float]]:
    config = TrainConfig.from_dict(loaded.header["train"] | {"network": loaded.header["config"]})
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
