"""Wide tables: seconds, memory and how good the links are, beside the whole-table pass and partial correlations.

    python runs/bench_scale.py                       # the sizes of docs/performance.md, smallest first; resumable
    python runs/bench_scale.py --sizes 1000x500      # some of them
    python runs/bench_scale.py --table               # the tables in docs/performance.md from the rows
    python runs/bench_scale.py --again 300x500       # rows of these sizes are dropped first, as after a release

Worlds are drawn here, in lists, since `simulate` holds matrices of all pairs: a third of the columns have no cause, the
others one to three among the columns before them; `linear`, `mixed` (cosine, square, tanh or linear, each cause its
own), and `hubs`, linear, in which one column in a hundred is a regulator and the others have their causes among these.
Presets and named worlds of `graphbam.simulate` can be asked for as well (`--worlds broad-1 single-cell`), up to 5,000
columns.
Every answer is made in a process of its own, whose wall and CPU seconds and peak memory are those of the row: from
the table in memory to the result. The load of the machine when it began is in the row as well, and the weights.

Trees (GENIE3) and lassos (Meinshausen and Bühlmann, which is what a graphical lasso does column by column) regress one
column at a time. They are asked about `N_TARGETS` columns, and their seconds are those of all columns, by proportion;
`ap_targets` is the average precision of all pairs with one of these columns, for every method.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

ROWS = Path(__file__).parent / "results" / "scale.csv"
COLUMNS = (
    "n_variables", "n_rows", "world", "method", "seconds", "cpu_seconds", "gigabytes", "ap", "ap_targets", "precision",
    "recall", "n_links", "n_true", "false_01", "false_05", "false_10", "missed", "missed_said", "load", "weights",
)  # fmt: skip
SIZES = ("300x500", "1000x500", "5000x500", "20000x300")
WORLDS = ("linear", "mixed", "hubs")
METHODS = ("neighbourhoods", "whole", "partial correlation", "lasso", "trees")
OURS = ("neighbourhoods", "whole")
LEAST, MOST = {"lasso": 5000, "trees": 5000}, {"whole": 1000, "partial correlation": 5000, "lasso": 5000, "trees": 5000}
"""Columns from which and up to which the others are asked: beyond, they take too long or too much memory."""
N_TARGETS, N_TREES = 25, 100
TARGETS_ONLY = ("lasso", "trees")


def draw_world(n_variables: int, n_rows: int, world: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A table, and its links as rows (cause, effect)."""
    if world not in WORLDS:
        return _simulate(n_variables, n_rows, world, seed)
    rng = np.random.default_rng([seed, n_variables, WORLDS.index(world)])
    n_regulators = max(3, n_variables // 100)
    x, arrows = rng.normal(size=(n_rows, n_variables)), []
    for k in range(1, n_variables):
        most = n_regulators if world == "hubs" else k
        if world == "hubs" and k < n_regulators:
            continue
        n_causes = min(int(rng.choice([0, 1, 2, 3], p=[0.33, 0.33, 0.22, 0.12])), most)
        causes = rng.choice(most, n_causes, replace=False)
        for cause in causes:
            slope = rng.choice([-1, 1]) * rng.uniform(0.5, 1.5)
            x[:, k] += slope * _answer(
                x[:, cause], "linear" if world != "mixed" else rng.choice(["cos", "sq", "tanh", "l"])
            )
            arrows.append((cause, k))
        x[:, k] /= x[:, k].std()
    shuffled = rng.permutation(n_variables)
    return x[:, np.argsort(shuffled)], shuffled[np.array(arrows)]


def _simulate(n_variables: int, n_rows: int, world: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    import graphbam as gb
    from graphbam.simulation import PRESETS

    kind = {"preset": world} if world in PRESETS else {"world": world}
    graph, x_md = gb.simulate(n_variables=n_variables, n_samples=n_rows, seed=seed, **kind)
    return x_md, np.argwhere(graph.adjacency)


def _answer(z: np.ndarray, kind: str) -> np.ndarray:
    z = (z - z.mean()) / z.std()
    return {"cos": np.cos(2 * z) * 1.4, "sq": (z**2 - 1) / 1.4, "tanh": 1.3 * np.tanh(2 * z)}.get(kind, z)


def measure(n_variables: int, n_rows: int, world: str, method: str) -> dict[str, object]:
    """One row."""
    x_md, arrows = draw_world(n_variables, n_rows, world)
    truth = np.unique(np.sort(arrows, axis=1) @ [n_variables, 1])
    targets = np.random.default_rng(0).choice(n_variables, min(N_TARGETS, n_variables), replace=False)
    load, began, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    keys, p, more = answer(x_md, method, targets)
    part = n_variables / len(targets) if method in TARGETS_ONLY else 1.0
    seconds, cpu = part * (time.perf_counter() - began), part * (time.process_time() - cpu)
    row: dict[str, object] = {
        "n_variables": n_variables, "n_rows": n_rows, "world": world, "method": method,
        "seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1), "load": round(load, 1), "n_true": len(truth),
        "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }  # fmt: skip
    ours, theirs = _touch(keys, targets, n_variables), _touch(truth, targets, n_variables)
    row["ap_targets"] = round(average_precision(keys[ours], p[ours], truth[theirs]), 3)
    if method not in TARGETS_ONLY:
        row["ap"] = round(average_precision(keys, p, truth), 3)
    return row | (judge(keys, p, truth, more) if method in OURS else {})


def judge(keys: np.ndarray, p: np.ndarray, truth: np.ndarray, more: dict[str, object]) -> dict[str, object]:
    """What a cut of probabilities gives: at ½, and with targets of 1, 5 and 10 % false links."""
    from graphbam.graphs.cut import Cut

    is_true, found = np.isin(keys, truth), p >= 0.5
    values: dict[str, object] = {"n_links": int(found.sum()), "recall": round(is_true[found].sum() / len(truth), 3)}
    if "missed_said" in more:
        values["missed"] = len(truth) - int(is_true.sum())
    values["precision"] = round(float(is_true[found].mean()), 3) if found.any() else ""
    for target in (1, 5, 10):
        chosen = Cut(fdr=target / 100).choose(p)
        values[f"false_{target:02d}"] = round(1 - float(is_true[chosen].mean()), 3) if chosen.any() else ""
    return values | more


def average_precision(keys: np.ndarray, p: np.ndarray, truth: np.ndarray) -> float:
    """Of pairs by rank; true ones that have no answer are never found."""
    is_true = np.isin(keys, truth)[np.argsort(-p, kind="stable")]
    return float((np.cumsum(is_true)[is_true] / (np.flatnonzero(is_true) + 1)).sum() / len(truth))


def _touch(keys: np.ndarray, targets: np.ndarray, n_variables: int) -> np.ndarray:
    return np.isin(keys // n_variables, targets) | np.isin(keys % n_variables, targets)


Answer = tuple[np.ndarray, np.ndarray, dict[str, object]]


def answer(x_md: np.ndarray, method: str, targets: np.ndarray) -> Answer:
    """Pairs as numbers i · d + j, how likely each is a link, and what else is known."""
    n_variables = x_md.shape[1]
    if method in TARGETS_ONLY:
        return regress(x_md, targets, {"lasso": _lasso, "trees": _trees}[method])
    more: dict[str, object] = {}
    if method == "partial correlation":
        from sklearn.covariance import LedoitWolf

        precision = LedoitWolf().fit(x_md).get_precision()
        scale = np.sqrt(precision.diagonal())
        p_dd = np.abs(precision / np.outer(scale, scale))
    else:
        import graphbam as gb

        store = os.environ.get("GRAPHBAM_STORE")
        result = gb.infer(x_md, blocks="never" if method == "whole" else "always", store=store, progress=_tell)
        more = {"weights": result.provenance["checksum"][:8]}
        if isinstance(result, gb.SparseResult):
            n_elsewhere = n_variables * (n_variables - 1) // 2 - len(result.pairs)
            more["missed_said"] = round(result.elsewhere["skeleton"] * n_elsewhere)
            return result.pairs @ [n_variables, 1], result.probabilities[:, 1], more
        p_dd = result.probabilities[..., 1]
    i, j = np.triu_indices(n_variables, 1)
    return i * n_variables + j, p_dd[i, j], more


def regress(x_md: np.ndarray, targets: np.ndarray, score: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Answer:
    """Every other column by what it does for each target."""
    n_variables, keys, scores = x_md.shape[1], [], []
    everyone = np.arange(n_variables)
    for target in targets.tolist():
        others = everyone[everyone != target]
        keys.append(np.minimum(others, target) * n_variables + np.maximum(others, target))
        scores.append(score(x_md[:, others], x_md[:, target]))
    both, place = np.unique(np.concatenate(keys), return_inverse=True)
    largest = np.zeros(len(both))
    np.maximum.at(largest, place, np.concatenate(scores))
    return both, largest, {}


def _lasso(x_md: np.ndarray, y_m: np.ndarray) -> np.ndarray:
    """The largest penalty at which a column enters, of the first sixty to do so."""
    from sklearn.linear_model import lars_path

    z_md = (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)
    penalties, _, path = lars_path(z_md, y_m - y_m.mean(), method="lasso", max_iter=60)
    first = np.where((path != 0).any(axis=1), (path != 0).argmax(axis=1), len(penalties) - 1)
    return np.where((path != 0).any(axis=1), penalties[first - 1], 0.0)


def _trees(x_md: np.ndarray, y_m: np.ndarray) -> np.ndarray:
    from graphbam.benchmarks.baselines.extra_trees import Genie3

    return Genie3(n_trees=N_TREES).make_trees(seed=0).fit(x_md, y_m).feature_importances_


def _tell(share: float, sentence: str) -> None:
    print(f"{share:.3f} {sentence}", file=sys.stderr, flush=True)


def read_rows() -> list[dict[str, str]]:
    return list(csv.DictReader(ROWS.open(encoding="utf-8"))) if ROWS.exists() else []


def write_rows(rows: Sequence[Mapping[str, object]]) -> None:
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_table() -> str:
    """The two tables of docs/performance.md: what it takes, and how good it is."""
    order = {method: k for k, method in enumerate(METHODS)}
    place = {world: k for k, world in enumerate(WORLDS)}
    rows = read_rows()
    rows.sort(key=lambda r: (int(r["n_variables"]), place.get(r["world"], 9), r["world"], order[r["method"]]))
    first = {"seconds": "seconds", "CPU s": "cpu_seconds", "GB": "gigabytes", "AP": "ap", "AP of 25": "ap_targets"}
    first |= {"load": "load"}
    second = {"right at ½": "precision", "found at ½": "recall", "false at 1 %": "false_01", "at 5 %": "false_05"}
    second |= {"at 10 %": "false_10", "links not asked about": "missed", "estimated": "missed_said"}
    return "\n\n".join([_table(rows, first), _table([r for r in rows if r["method"] == "neighbourhoods"], second)])


def _table(rows: list[dict[str, str]], columns: dict[str, str]) -> str:
    head = ("columns × rows", "world", "method", *columns)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for r in rows:
        size = f"{int(r['n_variables']):,} × {r['n_rows']}"
        lines.append(f"| {' | '.join([size, r['world'], r['method'], *(r[name] for name in columns.values())])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", default=SIZES)
    parser.add_argument("--worlds", nargs="*", default=WORLDS)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--again", nargs="*", default=(), help="sizes whose rows of graphbam are made anew")
    asked = parser.parse_args()
    if asked.table:
        print(write_table())
        return
    if asked.one:
        size, n_rows, world, method = asked.one
        print(json.dumps(measure(int(size), int(n_rows), world, method)))
        return
    kept = [r for r in read_rows() if r["method"] not in OURS or f"{r['n_variables']}x{r['n_rows']}" not in asked.again]
    write_rows(kept)
    done = {(r["n_variables"], r["n_rows"], r["world"], r["method"]) for r in kept}
    for size in asked.sizes:
        for world in asked.worlds:
            for method in asked.methods:
                case = (*size.split("x"), world, method)
                if case in done or not LEAST.get(method, 0) <= int(case[0]) <= MOST.get(method, 10**9):
                    continue
                ran = subprocess.run([sys.executable, __file__, "--one", *case], stdout=subprocess.PIPE, check=True)
                row = json.loads(ran.stdout)
                write_rows([*read_rows(), row])
                print(row, flush=True)


if __name__ == "__main__":
    main()
