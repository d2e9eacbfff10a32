"""Wide tables: seconds, memory and how good the links are, beside the whole-table pass and partial correlations.

    python runs/bench_scale.py                       # the sizes of docs/performance.md, smallest first; resumable
    python runs/bench_scale.py --sizes 1000x500      # some of them
    python runs/bench_scale.py --table               # the table in docs/performance.md from the rows

Worlds are drawn here, in lists, since `simulate` holds matrices of all pairs: a third of the columns have no cause, the
others one to three among the columns before them; `linear`, `mixed` (cosine, square, tanh or linear, each cause its
own), and `hubs`, linear, in which one column in a hundred is a regulator and the others have their causes among these.
Every answer is made in a process of its own, whose wall and CPU seconds and peak memory are those of the row: from
the table in memory to the result. The load of the machine when it began is in the row as well.
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
from pathlib import Path

import numpy as np

ROWS = Path(__file__).parent / "results" / "scale.csv"
COLUMNS = (
    "n_variables", "n_rows", "world", "method", "seconds", "cpu_seconds", "gigabytes", "ap", "precision", "recall",
    "n_links", "n_true", "load",
)  # fmt: skip
SIZES = ("300x500", "1000x500", "5000x500", "20000x300")
WORLDS = ("linear", "mixed", "hubs")
METHODS = ("neighbourhoods", "whole", "partial correlation")
MOST = {"whole": 1000, "partial correlation": 5000}
"""Columns up to which the others are asked: beyond, they take too long or too much memory."""


def draw_world(n_variables: int, n_rows: int, world: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A table, and its links as rows (cause, effect)."""
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


def _answer(z: np.ndarray, kind: str) -> np.ndarray:
    z = (z - z.mean()) / z.std()
    return {"cos": np.cos(2 * z) * 1.4, "sq": (z**2 - 1) / 1.4, "tanh": 1.3 * np.tanh(2 * z)}.get(kind, z)


def measure(n_variables: int, n_rows: int, world: str, method: str) -> dict[str, object]:
    """One row."""
    x_md, arrows = draw_world(n_variables, n_rows, world)
    truth = np.unique(np.sort(arrows, axis=1) @ [n_variables, 1])
    load, began, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    keys, p = answer(x_md, method)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    is_true = np.isin(keys, truth)[np.argsort(-p, kind="stable")]
    ap = float((np.cumsum(is_true)[is_true] / (np.flatnonzero(is_true) + 1)).sum() / len(truth))
    found = p >= 0.5
    right = np.isin(keys[found], truth)
    values = {
        "n_variables": n_variables, "n_rows": n_rows, "world": world, "method": method,
        "seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1),
        "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2), "ap": round(ap, 3),
        "precision": round(float(right.mean()), 3) if len(right) else "", "recall": round(right.sum() / len(truth), 3),
        "n_links": int(found.sum()), "n_true": len(truth), "load": round(load, 1),
    }  # fmt: skip
    return values


def answer(x_md: np.ndarray, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Pairs as numbers i · d + j, and how likely each is a link."""
    n_variables = x_md.shape[1]
    if method == "partial correlation":
        from sklearn.covariance import LedoitWolf

        precision = LedoitWolf().fit(x_md).get_precision()
        scale = np.sqrt(precision.diagonal())
        p_dd = np.abs(precision / np.outer(scale, scale))
    else:
        import graphbam as gb

        store = os.environ.get("GRAPHBAM_STORE")
        result = gb.infer(x_md, blocks="never" if method == "whole" else "always", store=store, progress=_tell)
        if isinstance(result, gb.SparseResult):
            return result.pairs @ [n_variables, 1], result.probabilities[:, 1]
        p_dd = result.probabilities[..., 1]
    i, j = np.triu_indices(n_variables, 1)
    return i * n_variables + j, p_dd[i, j]


def _tell(share: float, sentence: str) -> None:
    print(f"{share:.3f} {sentence}", file=sys.stderr, flush=True)


def read_rows() -> list[dict[str, str]]:
    return list(csv.DictReader(ROWS.open(encoding="utf-8"))) if ROWS.exists() else []


def write_table() -> str:
    """The table of docs/performance.md."""
    head = ("columns × rows", "world", "method", "seconds", "CPU s", "GB", "AP", "right at ½", "found at ½", "load")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    order = {method: k for k, method in enumerate(METHODS)}
    rows = sorted(read_rows(), key=lambda r: (int(r["n_variables"]), WORLDS.index(r["world"]), order[r["method"]]))
    for r in rows:
        size = f"{int(r['n_variables']):,} × {r['n_rows']}"
        is_ours = r["method"] != "partial correlation"
        cut = [r["precision"], r["recall"]] if is_ours else ["", ""]
        cells = [
            size,
            r["world"],
            r["method"],
            r["seconds"],
            r["cpu_seconds"],
            r["gigabytes"],
            r["ap"],
            *cut,
            r["load"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", default=SIZES)
    parser.add_argument("--worlds", nargs="*", default=WORLDS)
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        print(write_table())
        return
    if asked.one:
        size, n_rows, world, method = asked.one
        print(json.dumps(measure(int(size), int(n_rows), world, method)))
        return
    done = {(r["n_variables"], r["n_rows"], r["world"], r["method"]) for r in read_rows()}
    for size in asked.sizes:
        for world in asked.worlds:
            for method in asked.methods:
                case = (*size.split("x"), world, method)
                if case in done or int(case[0]) > MOST.get(method, 10**9):
                    continue
                ran = subprocess.run([sys.executable, __file__, "--one", *case], stdout=subprocess.PIPE, check=True)
                row = json.loads(ran.stdout)
                is_new = not ROWS.exists()
                with ROWS.open("a", encoding="utf-8", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    writer.writerows([dict(zip(COLUMNS, COLUMNS, strict=True))] * is_new + [row])
                print(row, flush=True)


if __name__ == "__main__":
    main()
