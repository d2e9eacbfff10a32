"""Whether every answer reaches its target: tables of others, pairs, hidden causes, missing cells, interventions, time.

    python runs/bench_answers.py edges --data ../shared/data -o out/answers
    python runs/bench_answers.py out/run/weights.safetensors --sections tables pairs --beside edges

Sections, each with its own rows in SECTION.csv: `tables` (third-party tables), `pairs` (cause-effect pairs, columns
swapped at random), `reversible` (links of linear Gaussian worlds that no data can direct), `hidden`, `calibration`
(simulated tables of all kinds), `missing`, `interventions`, `counts` (the worlds of `reversible` seen through counts,
and as they are), `assumptions` (such worlds as they are, and with an assumption broken), `noise` (columns that have
nothing to do with each other), `time`. Prints target and measurement of each score, writes
them to targets.csv, and a reliability diagram of each answer, reliability.png, of the sections that have any.
Time is held against that of other weights (`--beside`). Answers come from `graphbam.infer`, as a user gets them; means
are over families, at most 600 rows of a table.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import graphbam as gb
from bench_missing import judge as judge_gaps
from graphbam.benchmarks.answers import ANSWERS, Claims, collect_claims, join_claims, lean, score_result
from graphbam.benchmarks.cases import MAX_ROWS, Problem, draw_problem, resolve_cases, unpack_tables
from graphbam.benchmarks.pairs import read_pairs, score_pairs
from graphbam.graphs.cut import EVEN
from graphbam.graphs.equivalence import dag_to_cpdag
from graphbam.graphs.graph import SKELETON, directed_part, is_dag, skeleton, undirected_part, v_structures
from graphbam.graphs.metrics import (
    ancestor_distance,
    auroc,
    average_precision,
    expected_calibration_error,
    pair_values,
    reliability,
)
from graphbam.nn.weights import LoadedWeights, load_weights
from graphbam.simulation import SimulationConfig, World, sample_tables, world
from graphbam.simulation.labels import project
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.worlds.curves import found_response
from graphbam.simulation.worlds.parts import draw_graphs, draw_weights, follow_parents, in_causal_order
from graphbam.training.data import mix_seed

SEED = 19_2026
SHAPES = ((10, 200), (20, 500), (50, 500))
"""Variables and samples of simulated tables; links between variables that only share a hidden parent are counted in the
first."""
LONGER = ((10, 800), (10, 3200))
"""The same of tables that show whether more rows tell a hidden parent from a link."""
TIMED = ((10, 200), (20, 200), (50, 200), (100, 500))
"""The same of the tables that are timed."""
COUNTED, DEPTHS = (30, 500), (-1.0, 2.0)
"""Variables and samples of tables of counts, and the range of the logarithm of a variable's mean count."""
ASSUMED, N_HUBS, ERROR = (12, 600), 2, 0.5
"""Variables and samples of tables whose assumptions are broken, of which half of the rows are shown; variables with
most children that are hidden, and standard deviation of errors of measurement over that of the column."""
NOISE = ((5, 80), (8, 80), (5, 200), (20, 200), (5, 500))
"""Variables and samples of tables of noise."""
COPIED = (6, 40, 5)
"""The same of tables of noise whose rows are copied, and how often each of them is there."""
FEWEST = 10
"""A point of a reliability diagram stands for so many claims at least."""

CHAIN = "chain, largest p(x — z)"

TARGETS: dict[str, dict[str, tuple[str, float]]] = {
    "tables": {
        "skeleton_ap": ("≥", 0.84),
        "moral_ap": ("≥", 0.87),
        "skeleton_f1": ("≥", 0.75),
        "directed_ap": ("≥", 0.79),
        "directed_auroc": ("≥", 0.92),
        "direction_right": ("≥", 0.86),
        "direction_right_where_sure": ("≥", 0.93),
        "cpdag_over_empty": ("≤", 0.54),
        "dag_over_empty": ("≤", 0.50),
    },
    "pairs": {
        "tuebingen accuracy": ("≥", 0.74),
        "tuebingen audrc": ("≥", 0.84),
        "tuebingen right_where_sure": ("≥", 0.85),
        "sim accuracy, mean of four": ("≥", 0.86),
    },
    "reversible": {"arrows, of all": ("≤", 0.03), "arrows, of those found": ("≤", 0.03)},
    "hidden": {
        "simulated auroc": ("≥", 0.92),
        "third-party auroc": ("≥", 0.75),
        "p(link) of pairs with a hidden parent only": ("≤", 0.2),
    },
    "calibration": {"hidden error": ("≤", 0.02)},
    "missing": {
        CHAIN: ("≤", 0.15),
        "10% missing costs": ("≤", 0.02),
        "30% missing costs": ("≤", 0.06),
    },
    "interventions": {"known over hidden targets": ("≥", 1.3), "simulated directed_ap": ("≥", 0.97)},
    "time": {"largest ratio": ("≤", 1.15), "largest ratio, processor": ("≤", 1.15)},
}
"""What each score should be, at least or at most."""

Row = dict[str, Any]


@dataclasses.dataclass
class Outcome:
    """What a section measured."""

    scores: dict[str, float]
    rows: list[Row]
    claims: dict[str, Claims] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Judge:
    """Weights to judge, and on what."""

    weights: LoadedWeights
    beside: LoadedWeights | None
    directions: str
    data: Path
    n_tables: int

    def infer(self, problem: Problem) -> gb.Result:
        """What a user gets who says which cells were set, where weights can tell; columns with many gaps stay."""
        set_md = problem.set_md if self.weights.reads_marks else None
        settings = {"weights": self.weights, "directions": self.directions, "interventions": set_md}
        return gb.infer(problem.x_md, missing="impute", **settings)

    def simulate(self, config: SimulationConfig, shape: tuple[int, int], *key: int) -> list[Problem]:
        """Tables that depend on shape, key and their number alone; each is drawn by itself: a batch shares choices."""
        size = {"n_tables": 1, "n_variables": shape[0], "n_samples": shape[1]}
        seeds = [mix_seed(SEED, *shape, *key, number) for number in range(self.n_tables)]
        drawn = [sample_tables(torch.Generator().manual_seed(seed), config, **size) for seed in seeds]
        return [problem for tables in drawn for problem in unpack_tables(tables)]


# ── sections ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def judge_tables(judge: Judge) -> Outcome:
    """Third-party tables; directions of acyclic ones, and apart from them of those with feedback."""
    rows, claims = [], []
    for case in resolve_cases([str(judge.data)]):
        problem = draw_problem(case, 0)
        result = judge.infer(problem)
        claims.append(collect_claims(result, problem))
        scores = {name: value for name, value in score_result(result, problem).items() if name not in COUNTS}
        if not case.is_dag:
            scores = {name if name in TABLE_SCORES else f"{name}, feedback": value for name, value in scores.items()}
        elif find_spec("gadjid"):
            empty_dd = np.zeros_like(problem.adjacency)
            scores["ancestor_distance, empty graph"] = ancestor_distance(problem.adjacency, empty_dd)
        rows.append({"case": case.name, "family": case.family} | scores)
    if not find_spec("gadjid"):
        print("no ancestor_distance: it needs the package gadjid; pip install 'graphbam[benchmark]'")
    return Outcome(mean_over_families(rows), rows, join_claims(claims))


TABLE_SCORES = ("skeleton_ap", "skeleton_f1", "false_at_0.01", "false_at_0.05", "false_at_0.1")
"""Scores that a graph with feedback has like any other."""

COUNTS = ("n_found", "shd", "empty_shd", "skeleton_shd", "skeleton_accuracy", "dag_shd")
"""Columns whose mean over tables of different size says little."""


def judge_pairs(judge: Judge) -> Outcome:
    """Cause–effect pairs by collection; what cannot be inferred is undecided."""
    pairs = read_pairs(judge.data / "pairs", np.random.default_rng(SEED), max_rows=MAX_ROWS)
    settings = {"weights": judge.weights, "directions": judge.directions}
    results = gb.infer_many([pair.x_m2 for pair in pairs], **settings)
    forward = np.array([share_forward(result) for result in results])
    rows = [
        {"collection": pair.collection, "pair": pair.number, "weight": pair.weight, "is_forward": pair.is_forward,
         "forward": p, **describe_pair(result)}
        for pair, p, result in zip(pairs, forward, results, strict=True)
    ]  # fmt: skip
    scores, names = {}, list(dict.fromkeys(pair.collection for pair in pairs))
    for name in names:
        chosen = [k for k, pair in enumerate(pairs) if pair.collection == name]
        found = score_pairs([pairs[k] for k in chosen], forward[chosen])
        scores |= {f"{name} {score}": value for score, value in found.items()}
    simulated = [f"{name} accuracy" for name in names if name.startswith("sim")]
    if simulated:
        scores["sim accuracy, mean of four"] = float(np.mean([scores[name] for name in simulated]))
    truth = np.array([pair.is_forward for pair in pairs])
    return Outcome(scores, rows, {"direction": Claims(truth, forward)})


def share_forward(result: gb.Result | gb.Failure) -> float:
    """Probability of the first direction; ½ where nothing was said."""
    return 0.5 if isinstance(result, gb.Failure) or not result.has_directions else float(lean(result)[0, 1])


def describe_pair(result: gb.Result | gb.Failure) -> Row:
    if isinstance(result, gb.Failure):
        return {"refused": str(result)}
    hidden = None if result.hidden_causes is None else result.hidden_causes[0, 1]
    return {"link": result.probabilities[0, 1, SKELETON], "hidden": hidden}


def judge_reversible(judge: Judge) -> Outcome:
    """Linear Gaussian worlds, the paper's and those whose variance grows: links that the true CPDAG leaves open."""
    rows = []
    for number, (name, config) in enumerate(linear_gaussian_worlds().items()):
        for shape in SHAPES:
            for problem in judge.simulate(config, shape, number):
                rows.append({"world": name, "shape": f"{shape[0]}x{shape[1]}"} | count_arrows(judge, problem))
    frame = pd.DataFrame(rows)
    totals = frame.sum(numeric_only=True)
    shares = {
        "arrows, of all": ("arrows", "reversible"),
        "arrows, of those found": ("arrows", "found"),
        "compelled links found and directed": ("directed", "compelled"),
        "directed rightly": ("right", "directed"),
        "a guess in dag(), of those found": ("guessed", "found"),
        "in a collider that is not there, of those arrows": ("colliders", "arrows"),
        "beside a link missed or too many, of these": ("excused", "colliders"),
    }
    scores = {name: totals[part] / totals[whole] if totals[whole] else np.nan for name, (part, whole) in shares.items()}
    cells = frame.groupby(["world", "shape"], sort=False).sum()
    scores |= {f"arrows, {' '.join(cell)}": share for cell, share in (cells["arrows"] / cells["reversible"]).items()}
    return Outcome(scores | judge_leans(judge), rows)


def judge_leans(judge: Judge) -> dict[str, float]:
    """Links that the true CPDAG leaves open: which way they rather point, if independences do not tell."""
    worlds = linear_gaussian_worlds() | {"broad, all": SimulationConfig.broad(), "paper, all": SimulationConfig.paper()}
    scores = {}
    for number, (name, config) in enumerate(worlds.items()):
        shown = dataclasses.replace(config, hidden=0.0, missing=0.0, interventions=0.0)
        pairs = [(judge.infer(p), p) for shape in SHAPES for p in judge.simulate(shown, shape, 100 + number)]
        acyclic = [(result, problem) for result, problem in pairs if is_dag(problem.adjacency)]
        way_n = np.concatenate([lean_of_open(result, problem) for result, problem in acyclic])
        sure_n = np.abs(way_n - 0.5) >= 0.4
        scores |= {
            f"open links, {name}: right way": float((way_n > 0.5).mean()),
            f"open links, {name}: .9 sure": float(sure_n.mean()),
            f"open links, {name}: right of these": float((way_n[sure_n] > 0.5).mean()) if sure_n.any() else np.nan,
        }
    return scores


def lean_of_open(result: gb.Result, problem: Problem) -> np.ndarray:
    """How likely the true way of each link is that the true CPDAG leaves open."""
    open_dd = undirected_part(dag_to_cpdag(problem.adjacency)) > 0
    return result.arrow_probabilities[open_dd & (problem.adjacency > 0)]


def linear_gaussian_worlds() -> dict[str, SimulationConfig]:
    plain = SimulationConfig.paper().narrow(mechanism="linear", noise="gaussian")
    broad = SimulationConfig.preset("broad-1").narrow(mechanism="linear", noise="gaussian")
    nothing_else = dict.fromkeys(("discrete", "skewed", "rounded", "measurement_noise", "autocorrelated"), 0.0)
    return {"paper": plain, "broad": dataclasses.replace(broad, **nothing_else)}


def count_arrows(judge: Judge, problem: Problem) -> Row:
    """Links of one table that are reversible, found, and have an arrow all the same; and the compelled ones."""
    result, truth_dd = judge.infer(problem), dag_to_cpdag(problem.adjacency)
    guess_dd, open_dd, compelled_dd = result.cpdag().adjacency, undirected_part(truth_dd), directed_part(truth_dd)
    arrow_dd = directed_part(guess_dd)
    in_collider_dd, excused_dd = mark_colliders(guess_dd, skeleton(truth_dd))
    return {
        "reversible": open_dd.sum() // 2,
        "found": (open_dd & skeleton(guess_dd)).sum() // 2,
        "arrows": (open_dd & arrow_dd).sum(),
        "compelled": compelled_dd.sum(),
        "directed": (skeleton(compelled_dd) & arrow_dd).sum(),
        "right": (compelled_dd & arrow_dd).sum(),
        "guessed": (open_dd.astype(bool) & result.dag().guessed).sum(),
        "colliders": (open_dd & in_collider_dd).sum(),
        "excused": (open_dd & excused_dd).sum(),
    }


def mark_colliders(guess_dd: np.ndarray, links_dd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Arrows of a graph that are part of a collider; those of colliders beside a link that is missed or too many."""
    in_collider_dd, excused_dd = np.zeros_like(guess_dd), np.zeros_like(guess_dd)
    for a, c, b in v_structures(guess_dd):
        for cause, other in ((a, b), (b, a)):
            in_collider_dd[cause, c] = 1
            excused_dd[cause, c] |= links_dd[a, b] or not links_dd[other, c]
    return in_collider_dd, excused_dd


def judge_hidden(judge: Judge) -> Outcome:
    """Hidden common causes: tables of `broad` that all hide something, and third-party ones that lack columns."""
    simulated, third = judge_simulated_hidden(judge), judge_lost_columns(judge)
    return Outcome(simulated.scores | third.scores, [*simulated.rows, *third.rows])


def judge_simulated_hidden(judge: Judge) -> Outcome:
    """Tables of `broad` that all hide something."""
    config = dataclasses.replace(SimulationConfig.broad(), hidden=1.0, missing=0.0, interventions=0.0)
    rows: list[Row] = []
    scores: dict[str, float] = {}
    for shape in SHAPES + LONGER:
        problems = judge.simulate(config, shape)
        results = [judge.infer(problem) for problem in problems]
        pooled = join_claims(collect_claims(*pair) for pair in zip(results, problems, strict=True))
        name = f"{shape[0]}x{shape[1]}"
        if "hidden" in pooled:  # weights may say nothing of it
            scores[f"simulated auroc {name}"] = auroc(*pooled["hidden"])
            scores[f"simulated ap {name}"] = average_precision(*pooled["hidden"])
        scores[f"p(link) {name}"] = mean_where_hidden_only(results, problems)
        rows += [
            {"case": name, "family": "simulated"} | score_result(*pair) for pair in zip(results, problems, strict=True)
        ]
    scores["p(link) of pairs with a hidden parent only"] = scores["p(link) {}x{}".format(*SHAPES[0])]
    if found := [scores[key] for d, m in SHAPES if (key := f"simulated auroc {d}x{m}") in scores]:
        scores["simulated auroc"] = float(np.mean(found))
    return Outcome(scores, rows)


def judge_lost_columns(judge: Judge) -> Outcome:
    """Third-party tables from which columns were taken away."""
    third, links = [], []
    for case in resolve_cases([str(judge.data / "hidden")]):
        problem = draw_problem(case, 0)
        result = judge.infer(problem)
        links.append({"family": case.family, "p": mean_where_hidden_only([result], [problem])})
        third.append({"case": case.name, "family": case.family} | score_result(result, problem))
    means = mean_over_families(third)
    scores = {
        f"third-party {name.removeprefix('hidden_')}": means[name] for name in means if name.startswith("hidden_")
    }
    scores["third-party skeleton_ap"] = means["skeleton_ap"]
    scores["third-party p(link) of such pairs"] = mean_over_families(links)["p"]
    return Outcome(scores, third)


def mean_where_hidden_only(results: list[gb.Result], problems: list[Problem]) -> float:
    """Mean probability of a link between variables that share a hidden cause and have none."""
    said = []
    for result, problem in zip(results, problems, strict=True):
        chosen = (pair_values(problem.hidden_dd) == 1) & (pair_values(skeleton(problem.adjacency)) == 0)
        said.append(pair_values(result.probabilities[..., SKELETON])[chosen])
    found = np.concatenate(said)
    return float(found.mean()) if len(found) else float("nan")


def judge_calibration(judge: Judge) -> Outcome:
    """Every answer on tables of `broad` as they come: some hide, some have gaps or set cells."""
    rows, claims = [], []
    for shape in SHAPES:
        for number, problem in enumerate(judge.simulate(SimulationConfig.broad(), shape, 1)):
            result = judge.infer(problem)
            claims.append(collect_claims(result, problem))
            rows.append({"shape": f"{shape[0]}x{shape[1]}", "table": number} | score_result(result, problem))
    joined = join_claims(claims)
    scores = {f"{name} error": expected_calibration_error(*joined[name]) for name in joined}
    scores |= {f"{name} auroc": auroc(*joined[name]) for name in joined}
    return Outcome(scores, rows, joined)


def judge_missing(judge: Judge) -> Outcome:
    """The chain x → y → z with gaps, and cells removed at random from third-party tables."""
    rows: list[Row] = [{"case": "chain", "seed": seed} | chain_ends(judge, seed) for seed in range(6)]
    ends = pd.DataFrame(rows).drop(columns=["case", "seed"])
    scores = {f"chain, largest {name}": float(value) for name, value in ends.max().items()}
    scores["chain, draws within the target"] = int((ends["p(x — z)"] <= TARGETS["missing"][CHAIN][1]).sum())
    cases = resolve_cases([str(judge.data)])
    gaps = [judge_gaps(case, judge.weights, [0.1, 0.3]) for case in cases]
    means = mean_over_families(gaps)
    scores["complete skeleton_ap"] = means["complete"]
    scores |= {f"{name} costs": means["complete"] - value for name, value in means.items() if name != "complete"}
    return Outcome(scores, rows + gaps)


def chain_ends(judge: Judge, seed: int) -> Row:
    """Probability of a link between the ends of a chain: with a tenth of the cells missing, by full rows, complete."""
    rng = np.random.default_rng(seed)
    x, e, f, w = rng.normal(size=(4, 500))
    y = 0.8 * x + 0.6 * e
    whole = np.stack([x, y, 0.8 * y + 0.6 * f, w], 1)
    gappy = np.where(rng.random(whole.shape) < 0.1, np.nan, whole)

    def ask(table: np.ndarray, missing: str) -> float:
        result = gb.infer(table, weights=judge.weights, directions="none", missing=missing)
        return float(result.probabilities[0, 2, SKELETON])

    ends = {"p(x — z)": ask(gappy, "impute"), "p(x — z), full rows": ask(gappy, "drop")}
    return ends | {"p(x — z), complete": ask(whole, "error")}


def judge_interventions(judge: Judge) -> Outcome:
    """Directed average precision with targets known and with the same rows and targets hidden."""
    rows = []
    for case in resolve_cases([str(judge.data / "interventional")]):
        problem = draw_problem(case, 0)
        rows.append({"case": case.name, "family": case.family} | with_and_without_targets(judge, problem))
    means = mean_over_families(rows)
    scores = {f"third-party directed_ap, targets {name}": means[name] for name in ("known", "hidden")}
    scores["known over hidden targets"] = means["known"] / means["hidden"]
    for name in ("linear", "nonlinear"):
        config = SimulationConfig(worlds={f"one-target-each-{name}": 1.0})
        problems = judge.simulate(config, SHAPES[min(1, len(SHAPES) - 1)])
        found = [{"case": name, "family": "simulated"} | with_and_without_targets(judge, one) for one in problems]
        rows += found
        for known in ("known", "hidden"):
            scores[f"simulated {name}, targets {known}"] = float(np.mean([row[known] for row in found]))
    both = [scores[f"simulated {name}, targets known"] for name in ("linear", "nonlinear")]
    scores["simulated directed_ap"] = float(np.mean(both))
    return Outcome(scores, rows)


def with_and_without_targets(judge: Judge, problem: Problem) -> Row:
    known, hidden = judge.infer(problem), judge.infer(dataclasses.replace(problem, set_md=None))
    scores = {name: score_result(result, problem) for name, result in (("known", known), ("hidden", hidden))}
    row: Row = {name: one["directed_ap"] for name, one in scores.items()}
    for column in ("skeleton_ap", "direction_right"):
        row |= {f"{column}, {name}": one[column] for name, one in scores.items()}
    return row


def one_target_each(rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, is_linear: bool) -> World:
    """Each variable is set to random values in as many rows as any other; the first rows are left alone."""
    adj_bee = draw_graphs(rng, n_tables, n_variables, {"erdos-renyi": 1.0}, (1.0, 4.0))
    target_m = torch.arange(n_samples) % (n_variables + 1)
    noise_bem, free_bem = torch.randn(2, n_tables, n_variables, n_samples, generator=rng)
    share_be1 = 0.1 + 0.5 * torch.rand(n_tables, n_variables, 1, generator=rng)
    x_bem = torch.zeros_like(noise_bem)
    for child, w_be in in_causal_order(draw_weights(rng, adj_bee)):
        parents_bem = x_bem if is_linear else found_response(rng, x_bem.flatten(0, 1)).view_as(x_bem)
        signal_bm = unit(follow_parents(w_be, parents_bem))
        mixed_bm = (1 - share_be1[:, child]) * signal_bm + share_be1[:, child] * noise_bem[:, child]
        own_bm = torch.where(w_be.any(1, keepdim=True), unit(mixed_bm), noise_bem[:, child])
        x_bem[:, child] = torch.where(target_m == child, free_bem[:, child], own_bm)
    set_me = target_m[:, None] == torch.arange(n_variables)
    return World(x_bem.mT, adj_bee, set_me.expand(n_tables, -1, -1))


@world("one-target-each-linear")
def one_target_each_linear(rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int) -> World:
    return one_target_each(rng, n_tables, n_variables, n_samples, is_linear=True)


@world("one-target-each-nonlinear")
def one_target_each_nonlinear(rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int) -> World:
    return one_target_each(rng, n_tables, n_variables, n_samples, is_linear=False)


def judge_counts(judge: Judge) -> Outcome:
    """Linear Gaussian systems as they are, and as the Poisson counts that one meets of them."""
    rows = []
    for number, (name, config) in enumerate(linear_gaussian_worlds().items()):
        for table, problem in enumerate(judge.simulate(config, COUNTED, 2, number)):
            rng = np.random.default_rng(mix_seed(SEED, number, table))
            for seen in (problem, dataclasses.replace(problem, x_md=count_events(problem.x_md, rng))):
                is_counted = seen is not problem
                rows.append({"world": name, "table": table, "counted": is_counted} | find_links(judge, seen))
    frame = pd.DataFrame(rows)
    scores: dict[str, float] = {}
    for is_counted, some in frame.groupby("counted"):
        of_what = "counts" if is_counted else "as they are"
        scores[f"skeleton_ap, {of_what}"] = some["skeleton_ap"].mean()
        scores[f"links found, {of_what}"] = some["found"].sum() / some["links"].sum()
        scores[f"false of those named, {of_what}"] = 1 - some["found"].sum() / max(some["named"].sum(), 1)
    return Outcome(scores, rows)


def count_events(x_md: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Poisson counts whose logarithms of rates are the variables, each around a mean of its own."""
    return rng.poisson(np.exp(rng.uniform(*DEPTHS, x_md.shape[1]) + x_md)).astype(float)


def find_links(judge: Judge, problem: Problem) -> Row:
    """Links of one table, those named at one half, and the true ones among them."""
    result, truth_dd = judge.infer(problem), skeleton(problem.adjacency)
    named_dd = result.skeleton().adjacency
    ap = average_precision(pair_values(truth_dd), pair_values(result.probabilities[..., SKELETON]))
    numbers = {"links": truth_dd.sum() // 2, "named": named_dd.sum() // 2, "found": (truth_dd & named_dd).sum() // 2}
    return numbers | {"skeleton_ap": ap}


def judge_assumptions(judge: Judge) -> Outcome:
    """Linear Gaussian systems as they are, with hubs hidden, measured with error, and with rows chosen by two sums."""
    rows = []
    for number, config in enumerate(linear_gaussian_worlds().values()):
        for table, problem in enumerate(judge.simulate(config, ASSUMED, 3, number)):
            rng = np.random.default_rng(mix_seed(SEED, 3, number, table))
            rows += [{"case": case} | count_false(judge, one) for case, one in break_assumptions(problem, rng).items()]
    totals = pd.DataFrame(rows).groupby("case", sort=False).sum()
    shares = {
        "false of those named": ("false", "named"),
        "false at a target of 5 %": ("false at 5 %", "named at 5 %"),
        "named of pairs with a hidden parent only": ("hidden only, named", "hidden only"),
        "hidden, expected": ("hidden expected", "pairs"),
        "hidden, there": ("hidden", "pairs"),
    }
    found = {name: totals[part] / totals[whole] for name, (part, whole) in shares.items()}
    scores = {f"{name}, {case}": share for name, some in found.items() for case, share in some.dropna().items()}
    return Outcome(scores, rows)


def break_assumptions(problem: Problem, rng: np.random.Generator) -> dict[str, Problem]:
    """A table as it is, and three in which something is not as graphbam assumes; each has half of the rows."""
    x_md = (problem.x_md - problem.x_md.mean(axis=0)) / problem.x_md.std(axis=0)
    half = len(x_md) // 2
    chosen = np.sort(np.argsort(x_md[:, 0] + x_md[:, 1])[half:])
    hidden_d = np.isin(np.arange(len(problem.adjacency)), np.argsort(-problem.adjacency.sum(axis=1))[:N_HUBS])
    adj_bdd, hidden_bd = torch.from_numpy(problem.adjacency > 0)[None], torch.from_numpy(hidden_d)[None]
    directed_bdd, bidirected_bdd = project(adj_bdd, hidden_bd)
    left = np.ix_(~hidden_d, ~hidden_d)
    seen = dataclasses.replace(
        problem,
        x_md=x_md[:half, ~hidden_d],
        adjacency=directed_bdd[0].numpy()[left].astype(np.int8),
        hidden_dd=bidirected_bdd[0].numpy()[left].astype(np.int8),
    )
    return {
        "as they are": dataclasses.replace(problem, x_md=x_md[:half]),
        "hubs hidden": seen,
        "measured with error": dataclasses.replace(problem, x_md=(x_md + ERROR * rng.normal(size=x_md.shape))[:half]),
        "rows selected": dataclasses.replace(problem, x_md=x_md[chosen]),
    }


def count_false(judge: Judge, problem: Problem) -> Row:
    """Links named at one half and at a target of 5 %, those that are false, and what is said of hidden causes."""
    result, truth_dd = judge.infer(problem), skeleton(problem.adjacency)
    row: Row = {"pairs": len(pair_values(truth_dd))}
    for graph, when in ((result.skeleton(), ""), (result.skeleton(fdr=0.05), " at 5 %")):
        row |= {f"named{when}": graph.adjacency.sum() // 2, f"false{when}": (graph.adjacency & ~truth_dd).sum() // 2}
    hidden_dd = np.zeros_like(truth_dd) if problem.hidden_dd is None else problem.hidden_dd
    only_n = pair_values(hidden_dd) > pair_values(truth_dd)
    row |= {"hidden only": only_n.sum(), "hidden only, named": pair_values(result.skeleton().adjacency)[only_n].sum()}
    expected = np.nan if result.hidden_causes is None else pair_values(result.hidden_causes).sum()
    return row | {"hidden": pair_values(hidden_dd).sum(), "hidden expected": expected}


def judge_noise(judge: Judge) -> Outcome:
    """Normal columns that have nothing to do with each other: whatever link is named is false."""
    rows, scores = [], {}
    for shape in NOISE:
        rng = np.random.default_rng(mix_seed(SEED, *shape))
        results = [gb.infer(rng.normal(size=shape[::-1]), weights=judge.weights) for _ in range(judge.n_tables)]
        p_tn = np.array([pair_values(result.probabilities[..., SKELETON]) for result in results])
        name = f"{shape[0]}x{shape[1]}"
        scores |= {
            f"tables with a link {name}": float((p_tn >= EVEN).any(axis=1).mean()),
            f"pairs with a link {name}": float((p_tn >= EVEN).mean()),
            f"tables with a link at a target of 5 % {name}": float(
                np.mean([result.skeleton(fdr=0.05).adjacency.any() for result in results])
            ),
            f"largest probability {name}": float(p_tn.max()),
        }
        rows += [{"shape": name, "links": int((p_n >= EVEN).sum()), "largest": p_n.max()} for p_n in p_tn]
    return Outcome(scores | judge_copies(judge), rows)


def judge_copies(judge: Judge) -> dict[str, float]:
    """Share of pairs with a link where rows of such noise are copied and shuffled, counted once and counted in full."""
    d, m, times = COPIED
    rng = np.random.default_rng(mix_seed(SEED, *COPIED))
    tables = [rng.permutation(np.repeat(rng.normal(size=(m, d)), times, axis=0)) for _ in range(judge.n_tables)]
    shares = {}
    for name, in_full in (("once", False), ("in full", True)):
        results = [gb.infer(x_md, weights=judge.weights, independent_rows=in_full) for x_md in tables]
        linked = [pair_values(result.probabilities[..., SKELETON]) >= EVEN for result in results]
        shares[f"pairs with a link {d}x{m}, {times} copies counted {name}"] = float(np.mean(linked))
    return shares


def judge_time(judge: Judge) -> Outcome:
    """Seconds per table, directions and graph included, in turn with the weights beside; the least of five of each.

    Seconds of the clock mean little where other work goes on; those of the processor, all threads together, still do.
    """
    rows, scores = [], {}
    for d, m in TIMED:
        (problem, *_) = judge.simulate(SimulationConfig.paper(), (d, m))
        works = {"here": (judge.weights, judge.directions)}
        if judge.beside is not None:
            works |= {"beside": (judge.beside, judge.directions), "beside, links only": (judge.beside, "none")}
        times = [clock_all(problem.x_md, works) for _ in range(6)][1:]
        least = pd.DataFrame(times).min()
        rows.append({"shape": f"{d}x{m}"} | least.to_dict())
        scores[f"{d}x{m} seconds"] = least["here"]
        for name in [*works][1:]:
            scores[f"{d}x{m} over {name}"] = least["here"] / least[name]
            scores[f"{d}x{m} over {name}, processor"] = least["here, processor"] / least[f"{name}, processor"]
    for kind in ("", ", processor") if judge.beside is not None else ():
        scores[f"largest ratio{kind}"] = max(scores[f"{d}x{m} over beside{kind}"] for d, m in TIMED)
    return Outcome(scores, rows)


def clock_all(x_md: np.ndarray, works: dict[str, tuple[LoadedWeights, str]]) -> Row:
    """Seconds of each kind of work, one after the other."""
    row: Row = {}
    for name, (weights, directions) in works.items():
        began, began_working = time.perf_counter(), time.process_time()
        gb.infer(x_md, weights=weights, directions=directions).graph()
        row |= {name: time.perf_counter() - began, f"{name}, processor": time.process_time() - began_working}
    return row


SECTIONS: dict[str, Callable[[Judge], Outcome]] = {
    "tables": judge_tables,
    "pairs": judge_pairs,
    "reversible": judge_reversible,
    "hidden": judge_hidden,
    "calibration": judge_calibration,
    "missing": judge_missing,
    "interventions": judge_interventions,
    "counts": judge_counts,
    "assumptions": judge_assumptions,
    "noise": judge_noise,
    "time": judge_time,
}


# ── what is left of them ──────────────────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", help="name or path")
    parser.add_argument("--beside", help="other weights: their scores are printed too")
    parser.add_argument("--directions", default="auto", help="one-pass or two-step; auto: as the weights allow")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="third-party tables")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--tables", type=int, default=100, help="simulated tables of each shape")
    parser.add_argument("-o", "--out", type=Path, default=Path("out/answers"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    weights, beside = load_weights(options.weights), load_weights(options.beside) if options.beside else None
    judge = Judge(weights, beside, options.directions, options.data, options.tables)
    lines: list[Row] = []
    claims: dict[str, dict[str, Claims]] = {}
    for name in options.sections:
        outcome = SECTIONS[name](judge)
        others = None
        if beside is not None and name != "time":
            others = SECTIONS[name](dataclasses.replace(judge, weights=beside)).scores
        pd.DataFrame(outcome.rows).to_csv(options.out / f"{name}.csv", index=False, float_format="%.5f")
        claims[name] = outcome.claims
        lines += (found := hold_against_targets(name, outcome.scores, others))
        print_lines(name, found)
        if name == "tables":
            print_worst(outcome.rows)
    pd.DataFrame(lines).to_csv(options.out / "targets.csv", index=False, float_format="%.6f")
    curves = {answer: {name: said[answer] for name, said in claims.items() if answer in said} for answer in ANSWERS}
    draw_reliability({answer: found for answer, found in curves.items() if found}, options.out / "reliability.png")


def mean_over_families(rows: list[Row]) -> dict[str, float]:
    means = pd.DataFrame(rows).groupby("family").mean(numeric_only=True).mean()
    return {str(name): float(value) for name, value in means.items()}


def hold_against_targets(section: str, scores: dict[str, float], others: dict[str, float] | None) -> list[Row]:
    """One line per score, those with a target first."""
    targets, lines = TARGETS.get(section, {}), []
    for name in sorted(scores, key=lambda name: list(targets).index(name) if name in targets else len(targets)):
        line: Row = {"section": section, "score": name, "target": "", "measured": scores[name], "met": ""}
        if name in targets:
            sense, bound = targets[name]
            is_met = scores[name] >= bound if sense == "≥" else scores[name] <= bound
            line |= {"target": f"{sense} {bound:g}", "met": "yes" if is_met else "no"}
        lines.append(line | ({} if others is None else {"beside": others.get(name)}))
    for name in targets.keys() - scores.keys():
        sense, bound = targets[name]
        lines.append({"section": section, "score": name, "target": f"{sense} {bound:g}", "met": "not said"})
    return lines


def print_lines(section: str, lines: list[Row]) -> None:
    print(f"\n{section}")
    for line in lines:
        values = [line.get("measured"), line.get("beside")]
        shown = ["" if value is None or pd.isna(value) else f"{value:.3f}" for value in values]
        print(f"  {line['score']:46s} {line['target']:8s} {shown[0]:>8s} {line['met']:8s} {shown[1]:>8s}", flush=True)


def print_worst(rows: list[Row], n_worst: int = 8) -> None:
    """Families that hold the means back."""
    families = pd.DataFrame(rows).groupby("family").mean(numeric_only=True)
    for score in ("skeleton_ap", "directed_ap", "direction_right_where_sure"):
        if score in families:
            worst = families[score].dropna().sort_values().head(n_worst)
            print(f"  lowest {score}: " + ", ".join(f"{family} {value:.2f}" for family, value in worst.items()))


def draw_reliability(curves: dict[str, dict[str, Claims]], path: Path) -> None:
    """A column for each answer: what was seen where a probability was said (often enough), one curve per section, and
    how often it was said."""
    import matplotlib.pyplot as plt

    if not curves:
        return
    across = min(len(curves), 3)
    figure = plt.figure(figsize=(3.6 * across, 4.6 * -(-len(curves) // across)), layout="constrained")
    parts = np.atleast_1d(figure.subfigures(-(-len(curves) // across), across)).flat
    for part, (answer, by_section) in zip(parts, curves.items(), strict=False):
        above, below = part.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        above.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for section, claims in by_section.items():
            said, seen, number = reliability(*claims)
            label, often = f"{section}, error {expected_calibration_error(*claims):.3f}", number >= FEWEST
            (line,) = above.plot(said[often], seen[often], "o-", markersize=4, label=label)
            below.stairs(*np.histogram(claims.p_n, 15, (0, 1)), color=line.get_color())
        above.set(title=f"{answer}: said and seen", ylabel="frequency", xlim=(0, 1), ylim=(0, 1))
        below.set(xlabel="probability", ylabel="number", yscale="log")
        below.yaxis.set_minor_formatter("")
        above.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
