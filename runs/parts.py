"""What each part of the shipped design is worth: left out once, equal steps, several seeds.

    python runs/parts.py -o out/parts --device cuda --jobs 6          # all parts, three seeds; goes on where it stopped
    python runs/parts.py -o out/try --steps 3 --cells 4000 --tables 2 --seeds 1 --parts all "no direction"
    python runs/parts.py -o out/parts --show                          # the table, from the rows that are there
    python runs/parts.py -o runs/results/parts --show --write docs/training.md

Every run learns every answer from `broad` tables of up to forty variables, from scratch, and has the data of all other
runs of its seed, unless what is left out is a kind of world. Runs are processes of their own. The judges are fixed:
tables of `broad`, and of worlds that training did not have (`graphbam.training.calibration.worlds_unlike`). Each run
has a row in parts.csv: losses of each answer for either judge.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from benchmark_tables import to_markdown, write_between
from graphbam.nn.edge_net import RAW_POLES, EdgeNet, EdgeNetConfig, PairHead
from graphbam.nn.features import N_CORRELATIONS, N_SIZES
from graphbam.nn.network import Network
from graphbam.nn.weights import load_network
from graphbam.simulation import SimulationConfig
from graphbam.simulation.values import Shape
from graphbam.training import Budget, TrainConfig, train
from graphbam.training.calibration import worlds_unlike
from graphbam.training.config import Forward, Objective, register_task
from graphbam.training.data import AnswerBatch
from graphbam.training.objectives import SMALL, AnswerLoss, AnswerTask, answer_loss, edge_loss, weigh_tables

GRID: dict[str, Any] = {"variables": (2, 5, 10, 20, 40), "samples": (50, 150, 400), "stagger": 1}
JUDGES = ((2, 400), (5, 200), (10, 200), (20, 400), (40, 300))
"""Variables and samples of the tables that judge."""
ANSWERS = ("classes", *AnswerLoss._fields)
SHOWN = ["broad classes", *(f"unlike {answer}" for answer in ANSWERS)]
"""What a page shows."""


@dataclass(frozen=True)
class Part:
    """What is left out."""

    network: dict[str, Any] = field(default_factory=dict)
    """Changes to the network's config."""
    blind: Callable[[EdgeNetConfig], list[slice]] | None = None
    """Pair features that the head does not see."""
    output: str | None = None
    """The answer that is not learnt."""
    world: str | None = None
    """The named world, or the effect, that no table has."""


def _features(*names: str) -> Callable[[EdgeNetConfig], list[slice]]:
    """Places of groups of pair features, in the order of `graphbam.nn.edge_net.PairFeatures`."""

    def find(config: EdgeNetConfig) -> list[slice]:
        c, n_poles = config.spd_channels, len(RAW_POLES)
        n_log = EdgeNet(config).head.features.mix.weight.shape[1] - 2 * (2 + n_poles) * c
        n_log -= 2 * N_CORRELATIONS + 2 * N_SIZES + 2
        sizes = {"correlations": c, "cross": c, "resolvents": n_poles * c}
        sizes |= {"correlations, sure": c, "cross, sure": c, "resolvents, sure": n_poles * c, "logarithm": n_log}
        sizes |= {"table": N_CORRELATIONS, "table, sure": N_CORRELATIONS}
        sizes |= {"sharp": N_SIZES, "sharp, sure": N_SIZES, "own": 2}
        ends = torch.tensor(list(sizes.values())).cumsum(0).tolist()
        places = {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}
        return [place for name, place in places.items() if any(name == n or name.endswith(n) for n in names)]

    return find


BROAD = SimulationConfig.broad()
PARTS = {
    "all": Part(),
    "no attention over samples": Part({"sample_layers": 0}),
    "no bilinear blocks": Part({"bilinear_layers": 0}),
    "no logarithm": Part({"matrix_log": False}),
    "no table correlations": Part({"table_correlations": False}),
    "no sharp correlations": Part({"sharp_correlations": False}),
    "one pair block": Part({"pair_layers": 1}),
    "four pair blocks": Part({"pair_layers": 4}),
    "no resolvents": Part(blind=_features("resolvents", "resolvents, sure")),
    "no cross-correlations": Part(blind=_features("cross", "cross, sure")),
    "no significance": Part(blind=_features(", sure")),
    **{f"no {name} answer": Part(output=name) for name in AnswerLoss._fields},
    **{f"no {name} world": Part(world=name) for name in BROAD.worlds},
    **{f"nothing {name}": Part(world=name) for name in ("hidden", "interventions", "missing")},
}


class LeanNet(EdgeNet):
    """The network without the features of a part: their weights are zero and stay so."""

    part = Part()

    def __init__(self, config: EdgeNetConfig | None = None):
        super().__init__(config)
        if self.part.blind is None:
            return
        assert isinstance(self.head, PairHead)
        weight = self.head.features.mix.weight
        seen = torch.ones(weight.shape[1], dtype=weight.dtype)
        for place in self.part.blind(self.config):
            seen[place] = 0.0
        weight.data *= seen
        self.register_buffer("seen", seen, persistent=False)  # it goes where the network goes: steps are recorded there
        weight.register_hook(lambda slope: slope * self.seen)


@register_task
class PartsTask(AnswerTask):
    """Every answer but the one that is left out."""

    name = "parts"
    network_type = LeanNet
    reported = ("loss", *ANSWERS)
    without: str | None = None

    def objective(self, forward: Forward, batch: Any) -> Objective:
        """As `AnswerTask`, one part of the loss left out of what is learnt."""
        losses = measure_losses(forward(batch.x_bmd, batch.rows_b, batch.marks_bmd), batch)
        total = torch.stack([loss for name, loss in losses.items() if name != self.without]).sum()
        return Objective(total * weigh_tables(batch.shape, SMALL), (total, *losses.values()))


def measure_losses(logits_bdd7: Tensor, batch: AnswerBatch) -> dict[str, Tensor]:
    """Loss of the classes, as in the paper, and of each other answer."""
    classes = edge_loss(logits_bdd7[..., :3], batch.classes_bdd).total()
    return {"classes": classes} | answer_loss(logits_bdd7[..., 3:], batch)._asdict()


# ── one run ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def leave_out(part: Part, seed: int, cells: int) -> TrainConfig:
    """The training config without a part; the classes that build network and task are told too."""
    LeanNet.part, PartsTask.without = part, part.output
    worlds = BROAD
    if part.world in ("hidden", "interventions", "missing"):
        worlds = replace(worlds, **{part.world: 0.0})
    elif part.world is not None:
        fields = ("worlds", "small_worlds")
        worlds = replace(
            worlds, **{f: {k: v for k, v in getattr(worlds, f).items() if k != part.world} for f in fields}
        )
    network = EdgeNetConfig(marks=True, answers=True, **part.network)
    steps = {"cells_per_step": cells, "max_tables": 64, "curriculum_start": 1.0, "warmup_steps": 100}
    steps |= {"ema_decay": 0.98, "decay_share": 0.5}
    return TrainConfig(task="parts", network=network, simulation=worlds, seed=seed, **GRID, **steps)


def measure(name: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Train without one part and judge the averaged weights."""
    config = leave_out(PARTS[name], seed, options.cells)
    folder = Path(options.out, f"{name.replace(' ', '-')}-{seed}")
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was cut short: it has no row, and its rate fell early
    budget = Budget(steps=options.steps, decay=True, save_seconds=1e9, report_seconds=30)
    place = {"device": options.device, "workers": options.workers}
    path = train(config, folder, budget=budget, compile_blocks=False, **place)
    network = load_network(path, types=[EdgeNet]).network
    device = torch.device("cuda" if options.device != "cpu" and torch.cuda.is_available() else "cpu")
    scores = judge(network.to(device), make_judges(options.tables, device))
    return {"part": name, "seed": seed, "steps": options.steps} | scores


def make_judges(n_tables: int, device: torch.device) -> dict[str, list[AnswerBatch]]:
    """Tables of every shape that judge, by name: worlds like those of training, and worlds unlike them."""
    task, config, judges = AnswerTask(None), TrainConfig.answers(burst=1), {}
    for number, (name, worlds) in enumerate({"broad": BROAD, "unlike": worlds_unlike(BROAD)}.items()):
        asked = replace(config, simulation=worlds)
        rngs = [torch.Generator().manual_seed(1000 * number + d) for d, _ in JUDGES]
        judges[name] = [
            task.burst(rng, asked, Shape(n_tables, m, d), device) for rng, (d, m) in zip(rngs, JUDGES, strict=True)
        ]
    return judges


@torch.no_grad()
def judge(network: Network, judges: dict[str, list[AnswerBatch]]) -> dict[str, float]:
    """Mean loss of each answer over the shapes, for either judge."""
    network.eval()
    scores = {}
    for name, batches in judges.items():
        losses = [measure_losses(network(batch.x_bmd, batch.rows_b, batch.marks_bmd), batch) for batch in batches]
        for answer in ANSWERS:
            scores[f"{name} {answer}"] = sum(loss[answer].item() for loss in losses) / len(losses)
    return scores


# ── all runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", default="out/parts")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--cells", type=int, default=80_000, help="cells per step")
    parser.add_argument("--tables", type=int, default=192, help="judging tables per shape")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--workers", type=int, default=0, help="processes that simulate, for each run")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--show", action="store_true", help="only print the table of the rows that are there")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put a shorter table into a page")
    parser.add_argument("--one", nargs=2, metavar=("PART", "SEED"), help="a single run, in this process")
    options = parser.parse_args()
    rows = Path(options.out, "parts.csv")
    if options.one:
        write_row(rows, measure(options.one[0], int(options.one[1]), options))
        return
    if not options.show:
        run_all(rows, options)
    table = tabulate(pd.read_csv(rows))
    print(table.to_string())
    if options.write:
        write_between(options.write, "parts", to_markdown(table[SHOWN].reset_index()))


def run_all(rows: Path, options: argparse.Namespace) -> None:
    """Every part with every seed that has no row yet, a seed at a time, so that what is cut short is still complete."""
    done = set() if not rows.exists() else set(pd.read_csv(rows)[["part", "seed"]].itertuples(index=False, name=None))
    asked = [(part, seed) for seed in range(options.seeds) for part in options.parts if (part, seed) not in done]
    names = ("out", "steps", "cells", "tables", "workers", "device")
    settings = [text for name in names for text in (f"--{name}", str(getattr(options, name)))]

    def run(part: str, seed: int) -> None:
        command = [sys.executable, __file__, "--one", part, str(seed), *settings]
        if subprocess.run(command).returncode:
            print(f"{part}, seed {seed}: failed", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda pair: run(*pair), asked))


def write_row(path: Path, row: dict[str, Any]) -> None:
    """Append a row; one write, so that runs side by side do not tear each other's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with open(path, "a", newline="") as stream:
        writer = csv.DictWriter(stream, list(row))
        if is_new:
            writer.writeheader()
        writer.writerow({name: round(value, 5) if isinstance(value, float) else value for name, value in row.items()})
    print(row, flush=True)


def tabulate(frame: pd.DataFrame) -> pd.DataFrame:
    """Change of each loss against the whole design with the same seed, in percent: mean and standard error."""
    losses = [name for name in frame if name.startswith(("broad ", "unlike "))]
    whole = frame[frame["part"] == "all"].set_index("seed")[losses]
    others = frame[frame["part"] != "all"]
    change = 100 * (others[losses].to_numpy() / whole.loc[others["seed"]].to_numpy() - 1)
    table = pd.DataFrame(change, columns=losses).assign(part=others["part"].to_numpy()).groupby("part", sort=False)
    order = [part for part in PARTS if part in table.groups]
    mean, error = table.mean().loc[order], table.sem().fillna(0.0).loc[order]  # of one seed there is no error
    shown = [
        [f"{m:+.1f} ± {e:.1f}" for m, e in zip(*pair, strict=True)]
        for pair in zip(mean.values, error.values, strict=True)
    ]
    return pd.DataFrame(shown, index=mean.index, columns=losses)


if __name__ == "__main__":
    main()
