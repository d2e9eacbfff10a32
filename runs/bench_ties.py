"""Wide tables of tied columns: what the screen and the correction for chance make of zeros and ones, and of counts.

    python runs/bench_ties.py                            # the table of docs/performance.md
    python runs/bench_ties.py "ones 10 %" --seeds 5 --hoods 8
    python runs/bench_ties.py --unchosen                 # false links in neighbourhoods that no screen has chosen

Columns are cut from normal ones: as they are, zeros and ones (one at least), or Poisson counts; `mixed` has a fifth of
each of five kinds. In half of the tables no column has to do with another; in the others there are pairs, of two
columns each, whose normal columns have correlations between .2 and .8. All pairs are screened, and some neighbourhoods
are asked about. Numbers are means over seeds:

- candidates: pairs that the screen names; times: what chance takes off their odds, on average.
- false: pairs without a link that have a probability of ½ and more; said: the sum of probabilities; true: links; all
  three of 100 columns in the cores that were asked about.
- named: share of all links that are candidates; found: share of links of these cores that have ½ and more, whether a
  neighbourhood shows them or not; ap: average precision of these; false_10: per cent at a target of 10 %,
  in tables where any are sure enough.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from scipy.stats import norm, poisson

from bench_chance import ask
from bench_scale import average_precision
from graphbam.graphs.cut import Cut
from graphbam.inference import blocks
from graphbam.inference.screen import CORE, SIZE, Candidates, Neighbourhood
from graphbam.tables.standard import standardise

KINDS = {
    "normal": None, "ones 50 %": ("ones", 0.5), "ones 10 %": ("ones", 0.1), "ones 2 %": ("ones", 0.02),
    "Poisson .15": ("counts", 0.15), "Poisson .4": ("counts", 0.4), "Poisson 1": ("counts", 1.0),
}  # fmt: skip
MIXED = ("normal", "ones 50 %", "ones 10 %", "Poisson .4", "Poisson 1")
N_ROWS, N_COLUMNS, N_PAIRS = 300, 1500, 300


def draw(kind: str, n_pairs: int, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """A standardised table whose columns all vary, and its links as numbers i · d + j."""
    rng = np.random.default_rng([seed, n_pairs])
    z_md = rng.normal(size=(N_ROWS, N_COLUMNS))
    one, other = rng.permutation(N_COLUMNS)[: 2 * n_pairs].reshape(2, -1)
    r = rng.uniform(0.2, 0.8, n_pairs)
    z_md[:, other] = r * z_md[:, one] + np.sqrt(1 - r**2) * z_md[:, other]
    if kind == "mixed":
        kind_d = rng.integers(len(MIXED), size=N_COLUMNS)
        x_md = np.choose(kind_d, [cut(z_md, name) for name in MIXED])
    else:
        x_md = cut(z_md, kind)
    return standardise(torch.from_numpy(x_md)).float(), np.minimum(one, other) * N_COLUMNS + np.maximum(one, other)


def cut(z_md: np.ndarray, kind: str) -> np.ndarray:
    """Normal columns as columns of a kind."""
    how = KINDS[kind]
    if how is None:
        return z_md
    if how[0] == "ones":
        return ((z_md > norm.isf(how[1])) | (z_md == z_md.max(axis=0))).astype(float)
    return poisson.ppf(norm.cdf(z_md), how[1])


def measure(kind: str, n_pairs: int, seed: int, n_hoods: int) -> dict[str, float]:
    """One table."""
    x_md, links = draw(kind, n_pairs, seed)
    plan = blocks.make_plan(x_md, N_ROWS)
    named = plan.candidates.keys(N_COLUMNS)
    parts, _ = ask(x_md, plan, n_hoods)
    joined = blocks.join(parts, plan, N_COLUMNS).pairs
    keys, p = joined.i * N_COLUMNS + joined.j, joined.classes[:, 1].astype(float)
    chosen = np.random.default_rng(0).permutation(len(plan.hoods))[:n_hoods]
    cores = np.concatenate([plan.hoods[k].core for k in chosen])
    asked = links[np.isin(links // N_COLUMNS, cores) | np.isin(links % N_COLUMNS, cores)]
    is_true, per = np.isin(keys, links), 100 / len(cores)
    row = {"candidates": len(named), "times": float(plan.chance.at(named).mean())}
    row |= {"false": per * (p[~is_true] >= 0.5).sum(), "said": per * p.sum()}
    if n_pairs:
        row |= {"named": np.isin(links, named).mean(), "found": is_true[p >= 0.5].sum() / len(asked)}
        row |= {"true": per * len(asked), "ap": average_precision(keys, p, asked)}
        if (sure := Cut(fdr=0.1).choose(p)).any():
            row["false_10"] = 100 * (1 - is_true[sure].mean())
    return row


def count_unchosen(kind: str, seed: int) -> float:
    """False links per 100 columns in a neighbourhood of columns as they come: what the network does by itself."""
    x_md, _ = draw(kind, 0, seed)
    hood = Neighbourhood(np.arange(CORE), np.arange(CORE, SIZE))
    parts, _ = ask(x_md, blocks.Plan(Candidates(hood.core, hood.core, np.ones(CORE, dtype=np.float32)), [hood]), 1)
    return 100 / CORE * float((parts[0].classes[:, 1] >= 0.5).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=[*KINDS, "mixed"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--hoods", type=int, default=4)
    parser.add_argument("--unchosen", action="store_true")
    asked = parser.parse_args()
    if asked.unchosen:
        for kind in asked.kinds:
            print(f"{kind}: {np.mean([count_unchosen(kind, seed) for seed in range(asked.seeds)]):.1f}", flush=True)
        return
    names = ("candidates", "times", "false", "said", "true", "named", "found", "ap", "false_10")
    print(f"| columns | pairs | {' | '.join(names)} |\n{'|---' * (len(names) + 2)}|")
    for n_pairs in (0, N_PAIRS):
        for kind in asked.kinds:
            rows = [measure(kind, n_pairs, seed, asked.hoods) for seed in range(asked.seeds)]
            told = {name: [row[name] for row in rows if name in row] for name in names}
            cells = [f"{np.mean(told[name]):.4g}" if told[name] else "" for name in names]
            print(f"| {' | '.join([kind, str(n_pairs), *cells])} |", flush=True)


if __name__ == "__main__":
    main()
