"""How good edge weights are: the scores by cell in docs/training.md and the model cards.

    python runs/validate.py edges -o out/validate
    python runs/validate.py out/run/weights.safetensors -o out/validate --device cuda --tables ../shared/data

Simulated cells: every mechanism × seven shapes, fixed seeds, the paper's graphs, noise and signal strength, so that the
same tables meet every method on every machine. Third-party tables: every folder with data.csv.gz and graph.csv, rows
capped at 600, at most 110 variables, averaged over families. Writes one tidy row a table and method (scores.csv) and
prints the means. Baselines: shrunk partial correlation and, on the first tables of a cell, graphical lasso.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from graphbam.graph import edge_classes
from graphbam.metrics import average_precision, expected_calibration_error, f1, pair_values
from graphbam.scaling import standardise_columns
from graphbam.simulation.config import UNSEEN, SimulationConfig
from graphbam.simulation.mechanisms import MECHANISMS
from graphbam.simulation.sem import sample_tables
from graphbam.training.loss import edge_loss
from graphbam.training.stream import mix_seed
from graphbam.weights import LoadedWeights, load_weights

SHAPES = ((10, 200), (20, 200), (20, 500), (50, 200), (100, 50), (100, 200), (100, 500))
"""Variables and samples of the simulated cells."""
SEED = 20_260
GLASSO_TABLES = 4
"""Graphical lasso runs on so many tables of a cell: its cross-validation takes seconds a table."""


class Case(NamedTuple):
    """Equal-shaped tables with their labels, and what they are called."""

    source: str
    name: str
    family: str
    x_bmd: torch.Tensor
    classes_bdd: torch.Tensor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", help="name or path")
    parser.add_argument("-o", "--out", default="out/validate")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tables", help="folder of third-party tables with a manifest.csv")
    parser.add_argument("--per-cell", type=int, default=16)
    parser.add_argument("--shapes", nargs="*", default=[f"{d}x{m}" for d, m in SHAPES], help="such as 50x200")
    parser.add_argument("--mechanisms", nargs="*", default=sorted(MECHANISMS))
    parser.add_argument("--baselines", nargs="*", default=[], choices=list(BASELINES), help="also score these")
    options = parser.parse_args()
    loaded = load_weights(options.weights, options.device)
    rows: list[dict[str, object]] = []
    for case in cases(options):
        rows += score_network(loaded, case)
        rows += [row for name in options.baselines for row in score_baseline(name, case)]
    scores = pd.DataFrame(rows)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    scores.to_csv(folder / "scores.csv", index=False, float_format="%.5f")
    print(summary(scores))


def cases(options: argparse.Namespace) -> Iterator[Case]:
    for shape in options.shapes:
        d, m = map(int, shape.split("x"))
        for mechanism in options.mechanisms:
            yield simulated_case(mechanism, d, m, options.per_cell)
    if options.tables:
        yield from third_party_cases(Path(options.tables))


def simulated_case(mechanism: str, d: int, m: int, n_tables: int) -> Case:
    """Tables of one cell; the seed depends on the cell alone."""
    rng = torch.Generator().manual_seed(mix_seed(SEED, sorted(MECHANISMS).index(mechanism), d, m))
    config = SimulationConfig.paper().narrow(mechanism=mechanism)
    tables = sample_tables(rng, config, n_tables=n_tables, n_variables=d, n_samples=m)
    kind = "unseen" if mechanism in UNSEEN else "seen"
    return Case(kind, mechanism, f"{d}x{m}", tables.x_bmd, tables.classes_bdd)


def third_party_cases(folder: Path, max_rows: int = 600, max_variables: int = 110) -> Iterator[Case]:
    """One case a table of the folder's manifest."""
    manifest = pd.read_csv(folder / "manifest.csv")
    for entry in manifest.itertuples():
        if entry.d > max_variables:
            continue
        table = pd.read_csv(folder / str(entry.name) / "data.csv.gz")
        if len(table) > max_rows:
            table = table.sample(max_rows, random_state=0)
        names = list(table.columns)
        edges = pd.read_csv(folder / str(entry.name) / "graph.csv", dtype=str)
        adj = np.zeros((len(names), len(names)), np.int8)
        for source, target in zip(edges["source"], edges["target"], strict=True):
            adj[names.index(source), names.index(target)] = 1
        np.fill_diagonal(adj, 0)
        x_bmd = standardise_columns(torch.tensor(table.to_numpy(float))[None]).float()
        classes = edge_classes(adj) if entry.acyclic == "yes" else (adj | adj.T)
        source = "tables" if entry.acyclic == "yes" else "tables without moral graph"
        yield Case(source, str(entry.name), str(entry.family), x_bmd, torch.tensor(classes).long()[None])


def score_network(loaded: LoadedWeights, case: Case) -> list[dict[str, object]]:
    p_bdd3 = loaded.probabilities(case.x_bmd)
    pooled = pooled_calibration_error(p_bdd3, case.classes_bdd)
    rows = []
    for index, (p_dd3, classes_dd) in enumerate(zip(p_bdd3, case.classes_bdd, strict=True)):
        loss = edge_loss(p_dd3.clamp_min(1e-12).log()[None], classes_dd[None]).total().item()
        skeleton, edge = p_dd3[..., 1].numpy(), 1 - p_dd3[..., 0].numpy()
        rows.append(score(case, index, "graphbam", skeleton, edge) | {"loss": loss, "cell_ece": pooled})
    return rows


def pooled_calibration_error(p_bdd3: torch.Tensor, classes_bdd: torch.Tensor) -> float:
    """Calibration error of the skeleton over all pairs of all tables of a case: few pairs would be mostly noise."""
    rows, columns = torch.triu_indices(*classes_bdd.shape[1:], 1).unbind(0)
    truth, p = classes_bdd[:, rows, columns] == 1, p_bdd3[:, rows, columns, 1]
    return expected_calibration_error(truth.flatten().numpy(), p.flatten().numpy())


def score_baseline(name: str, case: Case) -> list[dict[str, object]]:
    strength_of, most_tables = BASELINES[name]
    rows = []
    for index, x_md in enumerate(case.x_bmd[:most_tables].double().numpy()):
        strength = strength_of(x_md)
        rows.append(score(case, index, name, strength, strength))
    return rows


def shrunk_partial_correlation(x_md: np.ndarray) -> np.ndarray:
    from sklearn.covariance import ledoit_wolf

    return partial_correlation(np.linalg.inv(ledoit_wolf(x_md)[0]))


def partial_correlation(precision_dd: np.ndarray) -> np.ndarray:
    scale = np.sqrt(np.clip(precision_dd.diagonal(), 1e-12, None))
    return np.abs(precision_dd) / np.outer(scale, scale)


def graphical_lasso_strength(x_md: np.ndarray) -> np.ndarray:
    import warnings

    from sklearn.covariance import GraphicalLassoCV

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return partial_correlation(GraphicalLassoCV(cv=3).fit(x_md).precision_)
        except (FloatingPointError, ValueError):  # a singular fold: it has no answer
            return np.zeros((x_md.shape[1],) * 2)


BASELINES = {
    "partial-correlation": (shrunk_partial_correlation, None),
    "graphical-lasso": (graphical_lasso_strength, GLASSO_TABLES),
}


def score(case: Case, index: int, method: str, skeleton: np.ndarray, edge: np.ndarray) -> dict[str, object]:
    classes = case.classes_bdd[index].numpy()
    truth = pair_values(classes == 1)
    row: dict[str, object] = {"source": case.source, "case": case.name, "family": case.family, "table": index}
    row |= {"method": method, "skeleton_ap": average_precision(truth, pair_values(skeleton))}
    if case.source != "tables without moral graph":
        row["moral_ap"] = average_precision(pair_values(classes > 0), pair_values(edge))
    if method == "graphbam":
        row["f1"] = f1(truth, pair_values(skeleton) > 0.5)
        row["ece"] = expected_calibration_error(truth, pair_values(skeleton))
        row["n_pairs"] = len(truth)
    return row


def summary(scores: pd.DataFrame) -> str:
    """Mean scores by shape, by mechanism, and over families of third-party tables."""
    parts = []
    simulated = scores[~scores["source"].str.startswith("tables")]
    if len(simulated):
        for title, index in (("shape", "family"), ("mechanism", "case")):
            table = simulated.groupby([index, "source", "method"], sort=False).mean(numeric_only=True)
            parts += [f"by {title}", table.drop(columns=["table"]).round(3).to_string()]
        wide = simulated.pivot_table(index="case", columns=["method", "family"], values="skeleton_ap", sort=False)
        parts += ["skeleton AP by cell", wide.round(3).to_string()]
    third = scores[scores["source"].str.startswith("tables")]
    if len(third):
        families = third.groupby(["method", "family"], sort=False).mean(numeric_only=True).drop(columns=["table"])
        parts += ["families", families.round(3).to_string()]
        parts += ["mean over families", families.groupby("method").mean().round(4).to_string()]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
