"""Results that no method ever gave: small tables for hand computation, and a large one for looking at the report."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from graphbam.benchmarks.report.rows import NUMBER_COLUMNS, TEXT_COLUMNS

MECHANISMS = ("chebyshev", "linear", "sine", "cosine", "square", "cubic", "multiplicative", "mlp", "sigmoid", "tree")
SHAPES = ((50, 200), (100, 50), (20, 200), (100, 500), (10, 200), (20, 500))
SWEEPS = tuple((mechanism, 100, m) for mechanism in ("chebyshev", "cosine", "sine") for m in (50, 100, 200, 500, 1000))
FAMILIES = (("sachs", 3, 11), ("netsim", 8, 15), ("river", 4, 12), ("syntren", 5, 40), ("dream4", 3, 100))

METHODS = {
    # name: (kind, skill, drop on curved mechanisms, seconds at d = 10, power of d)
    "graphbam": ("cpdag", 0.95, 0.03, 0.08, 0.8),
    "pc": ("cpdag", 0.72, 0.35, 0.02, 2.2),
    "pc-kci": ("cpdag", 0.84, 0.05, 1.3, 2.1),
    "pc-rcit": ("cpdag", 0.68, 0.12, 0.4, 2.0),
    "pc-rcot": ("cpdag", 0.7, 0.1, 0.5, 1.5),
    "ges": ("cpdag", 0.66, 0.36, 0.03, 2.6),
    "gies": ("cpdag", 0.65, 0.36, 0.12, 3.2),
    "ccdr": ("cpdag", 0.7, 0.33, 0.5, 0.5),
    "boss": ("cpdag", 0.8, 0.38, 0.01, 2.0),
    "grasp": ("cpdag", 0.79, 0.37, 0.01, 2.4),
    "hill-climbing": ("dag", 0.6, 0.35, 0.01, 1.4),
    "sortnregress": ("dag", 0.66, 0.33, 0.01, 0.9),
    "mmpc": ("undirected", 0.67, 0.33, 0.01, 0.9),
    "glasso": ("undirected", 0.69, 0.4, 0.27, 1.3),
    "partial-correlation": ("undirected", 0.71, 0.38, 0.001, 1.0),
    "direct-lingam": ("dag", 0.6, 0.3, 0.09, 2.8),
    "lingam": ("dag", 0.55, 0.3, 0.3, 0.8),
    "cam": ("dag", 0.62, 0.3, 0.4, 1.9),
    "notears-mlp": ("dag", 0.6, 0.1, 5.0, 2.4),
    "dagma": ("dag", 0.63, 0.3, 0.7, 1.3),
    "cam-unpruned": ("dag", 0.5, 0.3, 10.0, 0.9),
    "sam": ("dag", 0.6, 0.1, 209.0, 1.5),
}


def make_rows(**columns):
    """A table of results from the columns given; every other column has the value of a dull but valid row."""
    n = max(len(values) for values in columns.values() if isinstance(values, list))
    dull = dict.fromkeys(TEXT_COLUMNS, "") | dict.fromkeys(NUMBER_COLUMNS, np.nan)
    dull |= {"source": "simulated", "mechanism": "cosine", "kind": "cpdag", "status": "ok", "hardware": "a machine"}
    dull |= {"n_variables": 10, "n_samples": 200, "trial": 0, "seed": 0, "case": "cosine-d10-m200", "seconds": 1.0}
    dull |= {"n_edges": 12, "empty_shd": 12, "graphbam_version": "0.1.0", "package_version": "1.0"}
    return pd.DataFrame({name: columns.get(name, value) for name, value in dull.items()}, index=range(n))


def simulate_results(seed=0, methods=METHODS, n_trials=5, mechanisms=MECHANISMS, shapes=SHAPES, sweeps=SWEEPS):
    """Results as large as a real benchmark: every mechanism at every shape, sweeps over M, third-party families."""
    rng = np.random.default_rng(seed)
    cells = [(mechanism, d, m) for d, m in shapes for mechanism in mechanisms]
    tables = [
        {"case": f"{mechanism}-d{d}-m{m}", "source": "simulated", "mechanism": mechanism, "family": mechanism,
         "n_variables": d, "n_samples": m, "trial": trial}
        for (mechanism, d, m), trial in itertools.product(dict.fromkeys([*cells, *sweeps]), range(n_trials))
    ]  # fmt: skip
    tables += [
        {"case": f"data/{family}_{k}", "source": "tables", "mechanism": "", "family": family, "n_variables": d,
         "n_samples": 600, "trial": 0}
        for family, n, d in FAMILIES for k in range(n)
    ]  # fmt: skip
    rows = [row for table in tables for row in _answer(rng, table, methods)]
    return make_rows(**{name: [row.get(name) for row in rows] for name in rows[0]})


def _answer(rng, table, methods):
    d, m = table["n_variables"], table["n_samples"]
    degree, ease = rng.uniform(1, 4), 0.1 * np.log(m / 200) - 0.05 * np.log(d / 50)
    n_edges = max(1, round(d * degree / 2))
    for method, (kind, skill, drop, seconds, power) in methods.items():
        row = table | {"method": method, "kind": kind, "status": "ok", "reason": "", "n_edges": n_edges}
        row |= {"seconds": seconds * (d / 10) ** power * (m / 200) ** 0.5 * rng.lognormal(0, 0.2), "peak_mib": 300.0}
        if row["seconds"] > 600:
            reason = "no answer after 600 s" if method != "sam" else "would take more than 600 s; raise --timeout"
            yield row | {"status": "timeout", "reason": reason, "seconds": 600.0 if method != "sam" else np.nan}
            continue
        curved = table["mechanism"] in ("cosine", "square", "tree", "multiplicative")
        at_home = 0.17 * (table["mechanism"] == "linear" and method in ("boss", "grasp"))
        ap = np.clip(skill + at_home + ease - drop * curved - 0.06 * (degree - 2) + rng.normal(0, 0.03), 0.03, 0.99)
        n_found = n_edges * (1 + (1 - ap) * (2 if method in ("ges", "gies", "cam-unpruned", "hill-climbing") else 0.2))
        shd = n_edges * (1.9 - 1.7 * ap) * (4 if method == "cam-unpruned" and d == 100 else 1)
        row |= {"skeleton_ap": ap, "skeleton_f1": ap - 0.08, "skeleton_precision": ap, "skeleton_recall": ap - 0.1}
        row |= {"moral_ap": ap - 0.05, "moral_f1": ap - 0.1, "n_found": n_found, "skeleton_shd": round(shd * 0.7)}
        row |= {"skeleton_accuracy": 1 - shd * 0.7 / (d * (d - 1) / 2)}
        if kind != "undirected":
            row |= {"cpdag_ap": ap * 0.7, "shd": round(shd), "arrow_precision": 0.5, "arrow_recall": 0.4}
        yield row | {"empty_shd": n_edges}
