"""`graphbam train` and `graphbam fine-tune`: make weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbam.cli._simulate import PRESET_NAMES, WORLD_NAMES
from graphbam.errors import ConfigError, Setting
from graphbam.machine.disk import take_path

if TYPE_CHECKING:
    from graphbam.simulation import SimulationConfig
    from graphbam.training import TrainConfig

ANSWERS = "answers"
"""Network that says more of a pair than its class."""

RIVAL = "avici"
"""The design of a baseline, to compare with."""

ONE_LAYER: dict[str, Any] = dict.fromkeys(("attribute_layers", "sample_layers", "dense_layers", "bilinear_layers"), 1)
"""Depth of the networks of `--tiny`."""

QUICK: dict[str, Any] = {"burst": 2, "window": 2, "warmup_steps": 20}
"""Small windows, so that a tiny run starts at once."""


def train(
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder for checkpoint, log and weights.")],
    network: Annotated[
        str,
        typer.Option(
            help="Design: default, paper or ablation; answers, which learns directions and hidden causes too; "
            "for common children: collider, collider-wide or collider-paper; to compare with: avici."
        ),
    ] = "default",
    data: Annotated[str, typer.Option(help=f"Simulated worlds: one of {PRESET_NAMES}.")] = "broad",
    world: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SHARE", help=f"Share of tables from {WORLD_NAMES}; may be given several times."),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Stop at this step, continuations counted.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after so many minutes from now.")] = None,
    decay: Annotated[bool, typer.Option("--decay", help="Bring the learning rate down at the end.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    start: Annotated[str | None, typer.Option(help="Weights to begin from, by name or path.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    workers: Annotated[int | None, typer.Option(help="Processes that simulate; 0: the training device does.")] = None,
    seed: Annotated[int, typer.Option(help="Decides first weights and all data.")] = 0,
    edges: Annotated[
        str | None, typer.Option(metavar="NAME", help="Edge weights whose mistakes a collider network learns from.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Peak rate; default: the design's.")] = None,
    tiny: Annotated[bool, typer.Option("--tiny", help="Small network and tables, to see it work on a laptop.")] = False,
) -> None:
    """Train on an endless stream of simulated tables; under torchrun, on several GPUs."""
    from graphbam.training import Budget
    from graphbam.training import train as run

    config = _config(network, _worlds(data, world or []), seed, learning_rate, tiny, edges)
    budget = Budget(steps=steps, minutes=minutes, decay=decay)
    path = run(
        config, out, budget=budget, resume=resume, start=start, device=device, workers=workers, report=_print_line
    )
    if path.exists():
        typer.echo(f"weights: {path}\nlog: {Path(out) / 'log.jsonl'}")


def fine_tune(
    folder: Annotated[str, typer.Argument(help="Folders below it hold data.csv and graph.csv (source,target).")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Weights file to write.")],
    weights: Annotated[str, typer.Option(help="Where to start, by name or path.")] = "edges",
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 500,
    learning_rate: Annotated[float, typer.Option(help="Peak rate.")] = 2e-4,
    replay: Annotated[float, typer.Option(help="Share of steps on the original simulated tables.")] = 0.5,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    seed: Annotated[int, typer.Option(help="Decides order and resampling.")] = 0,
) -> None:
    """Continue training from released weights on labelled tables of your own."""
    from graphbam.nn.cost import spell_seconds
    from graphbam.training.finetune import fine_tune as run
    from graphbam.training.finetune import read_pairs

    def tell(line: dict[str, float]) -> None:
        left = f", {spell_seconds(line['seconds_left'])} left" if line["step"] < steps else ""
        typer.echo(f"step {line['step']:>6} of {steps}  loss {line['loss']:.4f}{left}")

    pairs = read_pairs(take_path(folder, "the path of the tables"))
    work = f"{_count(len(pairs), 'table')}, {_count(steps, 'step')}"
    typer.echo(f"{work}; saved every minute; Ctrl-C ends early and keeps what was learnt")
    choices: dict[str, Any] = {"learning_rate": learning_rate, "replay": replay, "seed": seed, "device": device}
    run(weights, pairs, steps=steps, out=out, report=tell, **choices)
    typer.echo(f"weights: {out} (use it with graphbam infer --weights {out})")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _worlds(preset: str, named: list[str]) -> SimulationConfig:
    """The preset with other shares of some worlds, given as "name=share"."""
    from graphbam.simulation import SimulationConfig

    shares = {}
    for words in named:
        name, _, share = words.partition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            what = " says no share; write a name and a number, such as levels=0.1"
            raise ConfigError(Setting("world", words), what) from None
    return SimulationConfig.preset(preset).with_shares(shares)


def _config(
    network: str, worlds: SimulationConfig, seed: int, learning_rate: float | None, tiny: bool, edges: str | None
) -> TrainConfig:
    from graphbam.nn import immorality_net as collider
    from graphbam.nn.edge_net import DESIGNS

    if network not in (known := [*DESIGNS, ANSWERS, *collider.DESIGNS, RIVAL]):
        raise ConfigError(f"network={network!r} is unknown; choose from {', '.join(sorted(known))}")
    changes: dict[str, Any] = {"seed": seed, "simulation": worlds}
    changes |= {} if learning_rate is None else {"learning_rate": learning_rate}
    if network in collider.DESIGNS:
        return _collider_config(network, edges, tiny, changes)
    if edges is not None:
        raise ConfigError(f"edges={edges!r} is for collider networks; add --network collider, or leave --edges out")
    return _arrow_config(tiny, changes) if network == RIVAL else _edge_config(network, tiny, changes)


def _edge_config(network: str, tiny: bool, changes: dict[str, Any]) -> TrainConfig:
    from graphbam.nn.edge_net import DESIGNS, EdgeNetConfig
    from graphbam.training import TrainConfig

    more = {"marks": True, "answers": True} if network == ANSWERS else {}
    if network != ANSWERS:  # which has a design of its own
        changes["network"] = DESIGNS[network]()
    if tiny:
        changes["network"] = EdgeNetConfig(channels=32, heads=1, spd_channels=16, pair_layers=1, **ONE_LAYER, **more)
        changes |= {"variables": (5, 8, 12), "samples": (50, 100), "stagger": 1, "cells_per_step": 12_000} | QUICK
    kinds = {"paper": TrainConfig.paper, ANSWERS: TrainConfig.answers}
    return kinds.get(network, TrainConfig)(**changes)


def _collider_config(network: str, edges: str | None, tiny: bool, changes: dict[str, Any]) -> TrainConfig:
    from graphbam.nn.immorality_net import DESIGNS, ImmoralityNetConfig
    from graphbam.training import TrainConfig
    from graphbam.training.config import StructureConfig

    changes = {"network": DESIGNS[network](), "settings": StructureConfig(edges=edges)} | changes
    if tiny:
        few: dict[str, Any] = {"max_candidates": 3, "max_neighbours": 3}
        changes["network"] = ImmoralityNetConfig(
            channels=16, heads=1, spd_channels=8, pair_layers=1, **few, **ONE_LAYER
        )
        changes["settings"] = StructureConfig(edges=edges, widths=(8,))
        changes |= {"variables": (5, 8, 12), "samples": (50, 100), "cells_per_step": 12_000} | QUICK
    return TrainConfig.immoralities(**changes)


def _arrow_config(tiny: bool, changes: dict[str, Any]) -> TrainConfig:
    from graphbam.benchmarks.baselines.avici_net import AviciNetConfig
    from graphbam.benchmarks.baselines.avici_task import arrow_config

    if tiny:
        changes["network"] = AviciNetConfig(channels=32, blocks=2, heads=2, key_size=16)
        changes |= {"variables": (5, 8, 12), "samples": (50, 100), "stagger": 1, "cells_per_step": 12_000} | QUICK
    return arrow_config(**changes)


def _print_line(line: dict[str, float]) -> None:
    typer.echo(
        f"step {line['step']:>7}  tables {line['tables']:>9}  loss {line['loss']:.4f}  "
        f"{line['tables_per_second']:>7.0f} tables/s  skipped {line['skipped']:.0f}  {line['seconds']:.0f} s"
    )
