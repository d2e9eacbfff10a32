"""How good weights are: the scores by cell in docs/directions.md and the model cards, by release in docs/training.md.

    python runs/validate.py edges -o out/validate
    python runs/validate.py edges --colliders colliders --baselines pc ges boss grasp --shapes 20x200 50x200
    python runs/validate.py out/run/weights.safetensors --shapes --tables ../shared/data --device cuda

Simulated cells: every mechanism × seven shapes, fixed seeds, the paper's graphs, noise and signal strength, so that the
same tables meet every method on every machine. Third-party tables: every folder of a manifest, rows capped at 600, at
most 110 variables, averaged over families. Writes one tidy row per table and method (scores.csv) and prints the means.
Answers come from `graphbam.infer_many`, as a user gets them. Directions are judged too, where the weights give them or
collider weights are named: then in the paper's two steps.
Baselines are methods of the benchmark, by name.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

import graphbam as gb
from graphbam.benchmarks.answers import score_result
from graphbam.benchmarks.baselines import load_baseline
from graphbam.benchmarks.cases import Problem, draw_problem, resolve_cases
from graphbam.benchmarks.scores import score_answer
from graphbam.graphs.graph import edge_classes
from graphbam.graphs.metrics import expected_calibration_error
from graphbam.nn.weights import LoadedColliders, LoadedWeights, fits_partner, load_colliders, load_weights
from graphbam.simulation.config import UNSEEN, SimulationConfig
from graphbam.simulation.mechanisms import MECHANISMS
from graphbam.simulation.values import sample_tables
from graphbam.training.data import mix_seed
from graphbam.training.objectives import edge_loss

SHAPES = ((10, 200), (20, 200), (20, 500), (50, 200), (100, 50), (100, 200), (100, 500))
"""Variables and samples of the simulated cells."""
SEED = 20_260
LATER = ("hill",)
"""Mechanisms that joined after the first validation: numbered last, so that the tables of all others stay the same."""

Row = dict[str, object]


class Case(NamedTuple):
    """Equal-shaped tables with their graphs, as the benchmark hands them out, and what they are called."""

    source: str
    name: str
    family: str
    problems: list[Problem]

    def classes(self) -> torch.Tensor:
        """Labels of all pairs; without a DAG there are no moral ones."""
        return torch.tensor(np.stack([label_pairs(problem) for problem in self.problems])).long()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", help="name or path")
    parser.add_argument("-o", "--out", default="out/validate")
    parser.add_argument("--colliders", help="name or path; directions then come from these")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tables", help="folder of third-party tables with a manifest.csv")
    parser.add_argument("--per-cell", type=int, default=16)
    parser.add_argument("--shapes", nargs="*", default=[f"{d}x{m}" for d, m in SHAPES], help="such as 50x200")
    parser.add_argument("--mechanisms", nargs="*", default=sorted(MECHANISMS))
    parser.add_argument("--baselines", nargs="*", default=[], help="methods of the benchmark, scored as well")
    parser.add_argument("--baseline-tables", type=int, help="the first tables of a cell are enough for these")
    options = parser.parse_args()
    loaded = load_weights(options.weights, options.device)
    colliders = load_colliders(options.colliders, options.device) if options.colliders else None
    if colliders and not fits_partner(colliders.header, loaded.header):
        print(f"evidence of {options.colliders} is not used: it was fitted to other edge weights (runs/release.py)")
    methods = {name: load_baseline(name) for name in options.baselines}
    rows: list[Row] = []
    for case in cases(options):
        rows += score_network(loaded, colliders, case)
        for method in methods.values():
            rows += score_baseline(method, case, options.baseline_tables)
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
        yield from third_party_cases(options.tables)


def simulated_case(mechanism: str, d: int, m: int, n_tables: int) -> Case:
    """Tables of one cell; the seed depends on the cell alone."""
    number = [*sorted(set(MECHANISMS) - set(LATER)), *LATER].index(mechanism)
    rng = torch.Generator().manual_seed(mix_seed(SEED, number, d, m))
    config = SimulationConfig.paper().narrow(mechanism=mechanism)
    tables = sample_tables(rng, config, n_tables=n_tables, n_variables=d, n_samples=m)
    kind = "unseen" if mechanism in UNSEEN else "seen"
    graphs = tables.dag_bdd.numpy().astype(np.int8)
    pairs = zip(tables.x_bmd.double().numpy(), graphs, strict=True)
    return Case(kind, mechanism, f"{d}x{m}", [Problem(x_md, graph, True) for x_md, graph in pairs])


def third_party_cases(folder: str) -> Iterator[Case]:
    """One case a table of the folder's manifest, drawn as the benchmark draws it."""
    for case in resolve_cases([folder]):
        source = "tables" if case.is_dag else "tables without moral graph"
        yield Case(source, case.name, case.family, [draw_problem(case, 0)])


def score_network(edges: LoadedWeights, colliders: LoadedColliders | None, case: Case) -> list[Row]:
    results = answer_all(edges, colliders, case)
    p_bdd3, classes_bdd = torch.tensor(np.stack([one.probabilities for one in results])), case.classes()
    pooled = calibration_error(p_bdd3, classes_bdd)
    rows = []
    for index, (result, p_dd3, classes_dd) in enumerate(zip(results, p_bdd3, classes_bdd, strict=True)):
        scores = score_result(result, case.problems[index])
        scores["loss"] = edge_loss(p_dd3.clamp_min(1e-12).log()[None], classes_dd[None]).total().item()
        scores |= {"ece": calibration_error(p_dd3[None], classes_dd[None]), "cell_ece": pooled}
        rows.append(labels(case, index, "graphbam") | scores)
    return rows


def answer_all(edges: LoadedWeights, colliders: LoadedColliders | None, case: Case) -> list[gb.Result]:
    """What a user gets for the tables of a case."""
    directions = "two-step" if colliders else "one-pass" if edges.gives_answers else "none"
    settings = {"weights": edges, "colliders": colliders, "directions": directions}
    results = gb.infer_many([problem.x_md for problem in case.problems], **settings)
    if refused := [one for one in results if isinstance(one, gb.Failure)]:
        raise SystemExit(f"{case.name}: {refused[0]}")
    return [one for one in results if isinstance(one, gb.Result)]


def label_pairs(problem: Problem) -> np.ndarray:
    """Classes of all pairs, as far as the truth knows them."""
    graph = problem.adjacency
    return edge_classes(graph) if problem.is_dag else graph | graph.T


def calibration_error(p_bdd3: torch.Tensor, classes_bdd: torch.Tensor) -> float:
    """Calibration error of the skeleton over all pairs of all tables given: few pairs would be mostly noise."""
    rows, columns = torch.triu_indices(*classes_bdd.shape[1:], 1).unbind(0)
    truth, p = classes_bdd[:, rows, columns] == 1, p_bdd3[:, rows, columns, 1]
    return expected_calibration_error(truth.flatten().numpy(), p.flatten().numpy())


def score_baseline(method: object, case: Case, most_tables: int | None) -> list[Row]:
    rows = []
    for index, problem in enumerate(case.problems[:most_tables]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = method.fit(problem.x_md, seed=index)
        rows.append(labels(case, index, method.name) | score_answer(answer, problem, method.kind))
    return rows


def labels(case: Case, index: int, method: str) -> Row:
    row: Row = {"source": case.source, "case": case.name, "family": case.family}
    return row | {"table": index, "method": method}


def summary(scores: pd.DataFrame) -> str:
    """Mean scores by shape, by mechanism, and over families of third-party tables."""
    parts = []
    simulated = scores[~scores["source"].str.startswith("tables")]
    if len(simulated):
        for title, index in (("shape", "family"), ("mechanism", "case")):
            table = simulated.groupby([index, "source", "method"], sort=False).mean(numeric_only=True)
            parts += [f"by {title}", table.drop(columns=["table"]).round(3).to_string()]
        for column in ("skeleton_ap", "shd"):
            if column in simulated:
                wide = simulated.pivot_table(index="case", columns=["family", "method"], values=column, sort=False)
                parts += [f"{column} by cell", wide.round(3).to_string()]
    third = scores[scores["source"].str.startswith("tables")].copy()
    if len(third):
        if "shd" in third:
            third["shd_over_empty"] = third["shd"] / third["empty_shd"]
        families = third.groupby(["method", "family"], sort=False).mean(numeric_only=True).drop(columns=["table"])
        parts += ["families", families.round(3).to_string()]
        parts += ["mean over families", families.groupby("method").mean().round(4).to_string()]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
