"""Turn trained weights into a file of the package: what a user needs beside them joins the header.

    python runs/release.py out/run/weights.safetensors --name edges
    python runs/release.py out/colliders/weights.safetensors --name colliders
    python runs/release.py out/avici/weights.safetensors --name avici-retrained --half

What the file holds decides what joins. Edge weights get a temperature and class offsets, fitted on fresh tables (half
of them fit, half judge), the same for each answer beyond the classes (directions and paths: on tables unlike those of
training, since a direction that is only sure at home is worse than none, and with a doubt that grows as variables
become few), and the domain ranges, from tables of every shape of the training grid, which tell a user when a table is
unlike anything seen. Collider weights get a temperature and an offset, fitted on fresh structures and judged on as many
others, both with the mistakes of the edge weights that the network learnt from; then the evidence of
`graphbam.directions`, fitted on whole tables and judged on others, with the name and the checksum of those edge
weights: it is worth nothing beside others. AVICI's network, a baseline, gets nothing.

A calibration is shipped only if it lowers the cross-entropy of what judges it by more than half a per cent.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from graphbam.benchmarks.baselines.avici_net import AviciNet
from graphbam.directions.immoralities import TERMS
from graphbam.nn.edge_net import EdgeNet
from graphbam.nn.immorality_net import ImmoralityNet
from graphbam.nn.weights import (
    Calibration,
    Header,
    LoadedColliders,
    LoadedWeights,
    Partner,
    calibrate,
    load_network,
    load_weights,
    save_weights,
)
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.worlds import SERIES
from graphbam.tables.domain import describe_table, summarise_domain
from graphbam.training.calibration import (
    DOUBTED,
    FEW,
    TIMES,
    Questions,
    doubt_answer,
    fit_answer,
    fit_calibration,
    fit_child_calibration,
    fit_evidence,
    judge_answer,
    simulated_answers,
    simulated_children,
    simulated_claims,
    simulated_logits,
    worlds_unlike,
)
from graphbam.training.config import TrainConfig
from graphbam.training.data import draw_tables, shape_grid

DATA = Path(__file__).parents[1] / "src" / "graphbam" / "weights"

WORTHWHILE = 0.995
"""A calibration is shipped if it leaves less than this share of the cross-entropy."""


def main() -> None:
    options = read_options()
    loaded = load_network(options.weights, options.device, types=[EdgeNet, ImmoralityNet, AviciNet])
    network, header = loaded.network, loaded.header
    if isinstance(network, EdgeNet):
        header = describe_edges(LoadedWeights(options.name, network, header), options)
    elif isinstance(network, ImmoralityNet):
        header = describe_colliders(LoadedColliders(options.name, network, header), options)
    path = options.folder / f"{options.name}.safetensors"
    save_weights(path, network, header, torch.float16 if options.half else torch.float32)
    print(f"{path}: {path.stat().st_size / 2**20:.2f} MiB, calibration {header.calibration or 'none'}")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights")
    parser.add_argument("--name", required=True, help="name in the package, such as edges")
    parser.add_argument("--folder", type=Path, default=DATA)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--half", action="store_true", help="store 16-bit numbers: half the size, three digits")
    edges = parser.add_argument_group("edge weights")
    edges.add_argument("--calibration-tables", type=int, default=32, help="tables per shape; 0 skips the fit")
    edges.add_argument("--domain-tables", type=int, default=40, help="tables per shape")
    colliders = parser.add_argument_group("collider weights")
    colliders.add_argument("--structures", type=int, default=64, help="structures per shape; 0 skips the fit")
    colliders.add_argument("--tables", type=int, default=20, help="tables per shape for the evidence; 0: none")
    colliders.add_argument("--edges", default="edges", help="edge weights that the evidence is fitted to")
    return parser.parse_args()


def training_config(header: Header) -> TrainConfig:
    return TrainConfig.from_dict({**(header.train or {}), "network": header.config})


# ── edges ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def describe_edges(loaded: LoadedWeights, options: argparse.Namespace) -> Header:
    """The header of edge weights with what joins it."""
    config = training_config(loaded.header)
    header = dataclasses.replace(loaded.header, domain=domain_ranges(config, options.domain_tables))
    if options.calibration_tables:
        fitted = calibrate_edges(loaded, config.simulation, options.calibration_tables)
        header = dataclasses.replace(header, calibration=fitted)
        if loaded.gives_answers:
            header = dataclasses.replace(header, answers=calibrate_answers(loaded, config, options.calibration_tables))
    return header


def calibrate_answers(loaded: LoadedWeights, config: TrainConfig, n_tables: int) -> dict[str, dict[str, float]]:
    """Temperature and what else each answer needs; of directions and paths, in worlds that training did not have."""
    fitting, judging = (
        simulated_answers(loaded, torch.Generator().manual_seed(seed), config.simulation, n_tables // 2)
        | answers_unlike(loaded, seed, config.simulation, n_tables // 2)
        for seed in (34, 35)
    )
    kept = {}
    for name, asked in fitting.items():
        fitted = fit_answer(name, asked)
        losses = [judge_answer(name, judging[name], values) for values in ({"temperature": 1.0}, fitted)]
        print(f"{name}: cross-entropy {losses[0]:.5f} plain, {losses[1]:.5f} with {fitted}")
        if name in DOUBTED:
            print_sizes(name, judging[name], fitted)
        if losses[1] < WORTHWHILE * losses[0]:
            kept[name] = fitted
    return kept


def print_sizes(name: str, asked: Questions, fitted: dict[str, float]) -> None:
    """By number of variables, plain and fitted: cross-entropy, share that is said to be .9 likely or more (of
    directions one way or the other), how many of these are true."""
    for share in asked.share.unique().flip(0):
        some = Questions(*(part[asked.share == share] for part in asked))
        line = f"  {2 / share**0.5:4.0f} variables:"
        for values in ({"temperature": 1.0}, fitted):
            is_sure = doubt_answer(some, values).sigmoid() >= 0.9
            n_ways = 2 if name == "direction" else 1
            line += f" {judge_answer(name, some, values):.3f} {n_ways * is_sure.double().mean():.2f}"
            line += f" {some.truth[is_sure].double().mean():.2f};"
        print(line)


def answers_unlike(loaded: LoadedWeights, seed: int, worlds: SimulationConfig, n_tables: int) -> dict[str, Questions]:
    """What is doubted where variables are few, about tables of many and of few, in worlds unlike those of training."""
    rng, unlike = torch.Generator().manual_seed(seed), worlds_unlike(worlds)
    many = simulated_answers(loaded, rng, unlike, n_tables)
    few = simulated_answers(loaded, rng, unlike, TIMES * n_tables, FEW)
    return {name: many[name].join(few[name]) for name in DOUBTED}


def calibrate_edges(loaded: LoadedWeights, config: SimulationConfig, n_tables: int) -> Calibration | None:
    fitting = simulated_logits(loaded, torch.Generator().manual_seed(31), config, n_tables // 2)
    fitted = fit_calibration(*fitting)
    logits, classes, weights = simulated_logits(loaded, torch.Generator().manual_seed(32), config, n_tables // 2)
    losses = []
    for calibration in (None, fitted):
        each = F.cross_entropy(calibrate(logits, calibration), classes, reduction="none")
        losses.append(float((each * weights).sum() / weights.sum()))
    print(f"cross-entropy {losses[0]:.5f} plain, {losses[1]:.5f} with {fitted}")
    return fitted if losses[1] < WORTHWHILE * losses[0] else None


def domain_ranges(config: TrainConfig, n_tables: int) -> dict[str, list[float]]:
    """Ranges from worlds with independent rows and nothing hidden: a few training tables are otherwise, but every user
    wants to be told. Nor is anything missing: gaps that come in blocks are filled in alike, and look like dependent
    rows."""
    plain: dict[str, Any] = {"autocorrelated": 0.0, "sluggish": 0.0, "confounded": 0.0, "missing": 0.0}
    for field in ("worlds", "small_worlds"):
        shares = getattr(config.simulation, field)
        plain[field] = {name: share for name, share in shares.items() if name not in SERIES}
    worlds = dataclasses.replace(config.simulation, **plain)
    rng = torch.Generator().manual_seed(33)
    features = []
    for shape in shape_grid(config):
        size = {"n_variables": shape.n_variables, "n_samples": shape.n_samples}
        tables = draw_tables(rng, worlds, n_tables=n_tables, **size)
        features += [describe_table(x_md.double().numpy()) for x_md in tables.x_bmd]
    return summarise_domain(features)


# ── colliders ─────────────────────────────────────────────────────────────────────────────────────────────────────


def describe_colliders(loaded: LoadedColliders, options: argparse.Namespace) -> Header:
    """The header of collider weights with what joins it; evidence is weighed with the calibration that is shipped."""
    config, header = training_config(loaded.header), loaded.header
    if options.structures:
        fitted = calibrate_colliders(loaded, config, options.structures)
        header = dataclasses.replace(header, calibration=fitted)
    if options.tables:
        edges = load_weights(options.edges, options.device)
        evidence = weigh_evidence(edges, dataclasses.replace(loaded, header=header), config, options.tables)
        partner = Partner(name=edges.name, checksum=edges.header.checksum or "") if evidence else None
        header = dataclasses.replace(header, evidence=evidence, partner=partner)
    return header


def calibrate_colliders(loaded: LoadedColliders, config: TrainConfig, n_structures: int) -> Calibration | None:
    fitting, judging = (
        simulated_children(loaded, torch.Generator().manual_seed(seed), config, n_structures) for seed in (31, 32)
    )
    fitted = fit_child_calibration(*fitting)
    logits, truth = judging[0].double(), judging[1].double()
    plain = float(F.binary_cross_entropy_with_logits(logits, truth))
    better = float(F.binary_cross_entropy_with_logits(fitted.apply(logits), truth))
    right = float(((logits > 0) == judging[1]).double().mean())
    print(
        f"cross-entropy {plain:.4f} plain, {better:.4f} with {fitted}; {right:.3f} right, {truth.mean():.3f} children"
    )
    return fitted if better < WORTHWHILE * plain else None


def weigh_evidence(
    edges: LoadedWeights, loaded: LoadedColliders, config: TrainConfig, n_tables: int
) -> dict[str, float] | None:
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
    return fitted if better < plain else None


if __name__ == "__main__":
    main()
