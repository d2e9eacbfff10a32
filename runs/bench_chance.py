"""What `graphbam.inference.chance` takes off wide answers, on simulated tables: false links, and links not shown.

    python runs/bench_chance.py                                 # the table of docs/performance.md
    python runs/bench_chance.py textbook:5000x300:1 --hoods 20
    python runs/bench_chance.py --fit                           # the loss for several values of RELATED

A table is named world:columns x rows:seed; worlds are presets or named worlds of `graphbam.simulate`, or those of
`bench_scale.draw_world`. All pairs are screened, but only `--hoods` of the neighbourhoods are asked about, which
answers for the others. Beyond 2,000 columns a simulated world is put together from parts of 500.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

import graphbam as gb
from bench_scale import WORLDS, average_precision, draw_world
from graphbam.graphs.cut import Cut
from graphbam.inference import blocks, chance
from graphbam.inference.networks import open_weights
from graphbam.simulation import PRESETS
from graphbam.tables.standard import standardise

TABLES = (
    "textbook:2000x300:11", "broad-1:2000x300:12", "paper:5000x300:13", "broad-1:5000x200:14", "as-found:5000x300:15",
    "mixed:5000x300:1", "textbook:5000x300:16", "mixed:20000x300:0",
)  # fmt: skip
PART = 500
NOTHING = chance.Chance(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))


def draw(world: str, n_variables: int, n_rows: int, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """A standardised table, and its links as numbers i · d + j, increasing."""
    if world in WORLDS:
        x_md, arrows = draw_world(n_variables, n_rows, world, seed)
    else:
        kind = {"preset": world} if world in PRESETS else {"world": world}
        size = n_variables if n_variables <= 2000 else PART
        parts = [
            gb.simulate(n_variables=size, n_samples=n_rows, seed=1000 * seed + k, **kind)
            for k in range(n_variables // size)
        ]
        x_md = np.concatenate([x for _, x in parts], axis=1)
        arrows = np.concatenate([np.argwhere(graph.adjacency) + k * size for k, (graph, _) in enumerate(parts)])
    links = np.unique(np.sort(arrows, axis=1) @ [x_md.shape[1], 1])
    return standardise(torch.from_numpy(x_md)).float(), links


def ask(x_md: torch.Tensor, plan: blocks.Plan, n_hoods: int) -> tuple[list[blocks.Pairs], float]:
    """What the network says of some neighbourhoods, and the share of all that they are."""
    chosen = np.random.default_rng(0).permutation(len(plan.hoods))[:n_hoods]
    table, opener = blocks.Wide(x_md[None], [float(len(x_md))]), blocks.Opener(open_weights("edges", "cpu"), "cpu")
    hoods = [plan.hoods[k] for k in chosen]
    parts = [blocks.ask_block(blocks.Block(opener, table.part(hood.columns), hood)) for hood in hoods]
    return parts, len(chosen) / len(plan.hoods)


def describe(name: str, n_hoods: int, related: list[float]) -> None:
    """One row per way to weigh chance."""
    world, size, seed = name.split(":")
    n_variables, n_rows = map(int, size.split("x"))
    x_md, links = draw(world, n_variables, n_rows, int(seed))
    plans = {}
    for value in related:
        chance.RELATED = value
        plans["chance taken off" if len(related) == 1 else f"RELATED {value:g}"] = blocks.make_plan(x_md, n_rows)
    plan = next(iter(plans.values()))
    parts, share = ask(x_md, plan, n_hoods)
    shown = np.unique(np.concatenate([part.i * n_variables + part.j for part in parts]))
    seen, missed = links[np.isin(links, shown)], int((~np.isin(links, plan.chance.keys)).sum())
    for how, one in {"as the network says": plan._replace(chance=NOTHING), **plans}.items():
        joined = blocks.join(parts, one, n_variables)
        p, keys = joined.pairs.classes[:, 1].astype(float), joined.pairs.i * n_variables + joined.pairs.j
        is_true = np.isin(keys, links)
        false = [
            f"{100 * (1 - is_true[c].mean()):.1f}" if (c := Cut(fdr=t).choose(p)).any() else ""
            for t in (0.01, 0.05, 0.1)
        ]
        sure = np.clip(np.where(is_true, p, 1 - p), 1e-6, None)
        n_elsewhere = n_variables * (n_variables - 1) // 2 - len(p)
        said = joined.elsewhere["skeleton"] * n_elsewhere / share
        cells = [name, how, f"{average_precision(keys, p, seen):.3f}", *false, f"{-np.log(sure).sum() / len(seen):.3f}"]
        print(f"| {' | '.join([*cells, str(missed), f'{said:.0f}'])} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--hoods", type=int, default=10)
    parser.add_argument("--fit", action="store_true")
    asked = parser.parse_args()
    related = [0.02, 0.05, 0.1, 0.2, 0.5] if asked.fit else [chance.RELATED]
    began = time.process_time()
    print("| table | | AP | false at 1 % | at 5 % | at 10 % | loss per link | links not shown | estimated |")
    print("|---" * 9 + "|")
    for name in asked.tables:
        describe(name, asked.hoods, related)
    print(f"\n{time.process_time() - began:.0f} processor seconds")


if __name__ == "__main__":
    main()
