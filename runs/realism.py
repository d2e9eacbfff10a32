"""How real do simulated tables look? Can a classifier tell them from tables made by others, by their looks alone?

    python runs/realism.py ../shared/data --presets broad-1 broad

Every table of the collection gets simulated twins of the same shape. Both are described by statistics of columns, pairs
of columns and rows, never by a graph, and gradient-boosted trees learn to tell them apart; a family of tables and its
twins are judged by trees that saw neither. Every family weighs the same. Prints the AUROC (0.5: nobody can tell, 1:
everybody can) for all tables and for real ones alone, and the statistics that tell most on their own: means over a few
draws of twins. The collection serves this comparison only: nothing is trained or tuned on it. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from graphbam.simulation import PRESETS, SimulationConfig, sample_tables
from graphbam.tables.labelled import read_labelled
from graphbam.tables.standard import standardise

MOST_ROWS, MOST_COLUMNS = 600, 60

Matrix = NDArray[np.float64]


def main() -> None:
    options = read_options()
    real = read_collection(options.data)
    rows = []
    for preset in options.presets:
        draws = []
        for seed in range(options.draws):
            twins = simulate_twins(SimulationConfig.preset(preset), real, options.twins, seed)
            draws.append(tell_apart(pd.concat([real.assign(is_real=1), twins.assign(is_real=0)], ignore_index=True)))
        rows.append({"preset": preset} | average(draws))
        print(report(rows[-1]))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with manifest.csv and a folder per table")
    parser.add_argument("--presets", nargs="+", choices=sorted(PRESETS), default=["broad-1", "broad"])
    parser.add_argument("--twins", type=int, default=3, help="simulated tables per table of the collection")
    parser.add_argument("--draws", type=int, default=5, help="how often twins are drawn")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    return parser.parse_args()


def read_collection(folder: Path) -> pd.DataFrame:
    """Statistics of all tables of a manifest, the first rows and columns of large ones."""
    rows = []
    for entry in pd.read_csv(folder / "manifest.csv").itertuples():
        x_md = read_labelled(folder / str(entry.name)).x_md[:MOST_ROWS, :MOST_COLUMNS]
        x_md = x_md[:, np.ptp(x_md, axis=0) > 0]
        names = {"table": entry.name, "family": entry.family, "kind": entry.kind}
        rows.append(names | {"M": x_md.shape[0], "d": x_md.shape[1]} | describe(x_md))
    return pd.DataFrame(rows)


def simulate_twins(config: SimulationConfig, real: pd.DataFrame, n_twins: int, seed: int) -> pd.DataFrame:
    """Statistics of simulated tables of the same shapes, complete as those of the collection are."""
    config, rng = dataclasses.replace(config, missing=0.0), torch.Generator().manual_seed(seed)
    rows = []
    for entry in real.itertuples():
        shape = {"n_variables": max(2, entry.d), "n_samples": entry.M}
        for x_md in sample_tables(rng, config, n_tables=n_twins, **shape).x_bmd.double().numpy():
            names = {"table": entry.table, "family": entry.family, "kind": entry.kind, "M": entry.M, "d": entry.d}
            rows.append(names | describe(x_md))
    return pd.DataFrame(rows)


def describe(x_md: Matrix) -> dict[str, float]:
    """What a table looks like, after the standardisation that every table gets."""
    x_md = standardise(torch.from_numpy(np.array(x_md, dtype=float))).numpy()
    x_md = x_md[:, x_md.std(axis=0) > 0]
    return describe_columns(x_md) | describe_pairs(x_md) | describe_rows(x_md)


def describe_columns(x_md: Matrix) -> dict[str, float]:
    """Mean and spread over the columns of: skewness, kurtosis, levels, commonest value, reach, gap between humps."""
    n_rows = len(x_md)
    counts = [np.unique(x_m, return_counts=True)[1] for x_m in x_md.T]
    sorted_md = np.sort(x_md, axis=0)
    by_column = {
        "|skewness|": np.abs((x_md**3).mean(0)),
        "log kurtosis": np.log((x_md**4).mean(0)),
        "distinct values": np.array([np.log(len(c)) / np.log(n_rows) for c in counts]),
        "commonest value": np.array([c.max() / n_rows for c in counts]),
        "largest |value|": np.abs(x_md).max(0),
        "widest gap": np.diff(sorted_md, axis=0).max(0),
        "inner half": np.subtract(*np.quantile(x_md, [0.75, 0.25], axis=0)),
    }
    means = {f"{name}, mean": float(values.mean()) for name, values in by_column.items()}
    return means | {f"{name}, spread": float(values.std()) for name, values in by_column.items()}


def describe_pairs(x_md: Matrix) -> dict[str, float]:
    """Correlations, partial correlations, what other columns explain, and how far from linear."""
    d = x_md.shape[1]
    r_dd = np.corrcoef(x_md.T).reshape(d, d)
    upper = np.triu_indices(d, 1)
    r_e, rank_e = np.abs(r_dd[upper]), np.abs(np.corrcoef(x_md.argsort(0).argsort(0).T).reshape(d, d)[upper])
    with np.errstate(invalid="ignore"):  # a coin has values of one size
        square_e = np.nan_to_num(np.abs(np.corrcoef(np.abs(x_md).T).reshape(d, d)[upper]))
    eigenvalues = np.clip(np.linalg.eigvalsh(r_dd), 1e-9, None) / d
    precision_dd = np.linalg.inv(0.98 * r_dd + 0.02 * np.eye(d))
    partial_dd = precision_dd / np.sqrt(np.outer(precision_dd.diagonal(), precision_dd.diagonal()))
    return {
        "|correlation|, mean": float(r_e.mean()),
        "|correlation|, spread": float(r_e.std()),
        "|correlation|, largest": float(r_e.max()),
        "correlations positive": float((r_dd[upper] > 0).mean()),
        "|partial correlation|, mean": float(np.abs(partial_dd[upper]).mean()),
        "first factor": float(eigenvalues[-1]),
        "effective columns": float(np.exp(-(eigenvalues * np.log(eigenvalues)).sum()) / d),
        "explained, mean": float((1 - 1 / precision_dd.diagonal()).mean()),
        "ranks beyond values": float((rank_e - r_e).mean()),
        "sizes beyond values": float((square_e - r_e).mean()),
    }


def describe_rows(x_md: Matrix) -> dict[str, float]:
    """Whether rows resemble their neighbours, repeat, or stand out."""
    lag_d = (x_md[1:] * x_md[:-1]).mean(0)
    norm_m = np.sqrt((x_md**2).mean(1))
    return {
        "|lag-1|, mean": float(np.abs(lag_d).mean()),
        "|lag-1|, spread": float(lag_d.std()),
        "row size, spread": float(norm_m.std()),
        "row size, largest": float(norm_m.max()),
        "rows repeated": float(1 - len(np.unique(x_md, axis=0)) / len(x_md)),
        "drift": float(np.abs(x_md[: len(x_md) // 2].mean(0)).mean()),
    }


def tell_apart(tables: pd.DataFrame) -> dict[str, object]:
    """Cross-validated AUROC of trees, and of every statistic alone."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold, cross_val_predict

    names = [name for name in tables.columns if name not in ("table", "family", "kind", "M", "d", "is_real")]
    truth, features = tables["is_real"].to_numpy(), tables[names].to_numpy()
    weight = 1 / tables.groupby(["family", "is_real"])["M"].transform("size").to_numpy()
    trees = HistGradientBoostingClassifier(max_depth=3, max_iter=150, learning_rate=0.05, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guess = cross_val_predict(
            trees, features, truth, groups=tables["family"], cv=GroupKFold(10), method="predict_proba",
            params={"sample_weight": weight},
        )[:, 1]  # fmt: skip
    is_kind = tables["kind"].str.startswith("real").to_numpy()
    alone = {name: roc_auc_score(truth, tables[name], sample_weight=weight) for name in names}
    alone = {name: max(score, 1 - score) for name, score in alone.items()}
    return {
        "all": float(roc_auc_score(truth, guess, sample_weight=weight)),
        "real": float(roc_auc_score(truth[is_kind], guess[is_kind], sample_weight=weight[is_kind])),
        "alone": dict(sorted(alone.items(), key=lambda item: -item[1])),
    }


def average(draws: list[dict[str, object]]) -> dict[str, object]:
    """Means over draws of twins; largest mean first where there are many."""
    means = pd.DataFrame([{"all": one["all"], "real": one["real"]} for one in draws])
    alone = pd.DataFrame([one["alone"] for one in draws]).mean().sort_values(ascending=False)
    return {**means.mean().to_dict(), "spread": float(means["all"].std(ddof=0)), "alone": alone.to_dict()}


def report(scores: dict[str, object]) -> str:
    alone = scores["alone"]
    assert isinstance(alone, dict)
    about = f"AUROC {scores['all']:.3f} (± {scores['spread']:.3f}); real tables alone {scores['real']:.3f}"
    lines = [f"{scores['preset']}: {about}; telling most:"]
    return "\n".join(lines + [f"  {score:.3f}  {name}" for name, score in list(alone.items())[:8]])


if __name__ == "__main__":
    main()
