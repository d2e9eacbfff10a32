"""Tables per second that the simulator makes; the numbers of docs/performance.md, section Simulation.

python runs/bench_simulation.py --device cpu --threads 2
python runs/bench_simulation.py --device cuda --json simulation.json
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import torch

from graphbam.simulation import PRESETS, SimulationConfig, plan_tables, run_plan, sample_tables

BATCHES = {
    "cpu": {(20, 200): 256, (55, 525): 64, (100, 1000): 32},
    "cuda": {(20, 200): 1024, (55, 525): 256, (100, 1000): 128},
}
"""Tables made at once for each (d, M): on a GPU a training loop simulates several batches of one shape together."""


def main() -> None:
    options = read_options()
    torch.set_num_threads(options.threads)
    rows = [
        measure(preset, shape, n_tables, options)
        for preset in options.presets
        for shape, n_tables in BATCHES[options.device].items()
    ]
    print(markdown(rows, options))
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(options), "rows": rows}, indent=2) + "\n")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=sorted(BATCHES), default="cpu")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument("--seconds", type=float, default=5.0, help="least time for each row")
    parser.add_argument("--presets", nargs="+", choices=sorted(PRESETS), default=["paper", "broad"])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    return parser.parse_args()


def measure(preset: str, shape: tuple[int, int], n_tables: int, options: argparse.Namespace) -> dict[str, object]:
    """Median time of one batch, whole and for the plan alone."""
    config, rng = SimulationConfig.preset(preset), torch.Generator().manual_seed(0)
    n_variables, n_samples = shape
    sizes = {"n_tables": n_tables, "n_variables": n_variables, "n_samples": n_samples}

    def whole() -> None:
        sample_tables(rng, config, **sizes, device=options.device)
        wait(options.device)

    def plan_only() -> None:
        plan_tables(rng, config, **sizes, device_type=options.device)

    seconds, plan_seconds = median_time(whole, options.seconds), median_time(plan_only, options.seconds / 5)
    plan = plan_tables(rng, config, **sizes, device_type=options.device)
    run_plan(plan, options.device)
    return {
        "preset": preset,
        "d": n_variables,
        "M": n_samples,
        "tables": n_tables,
        "seconds": seconds,
        "plan_seconds": plan_seconds,
        "steps": sum(len(level.groups) for level in plan.levels),
        "tables_per_second": n_tables / seconds,
    }


def median_time(call, least_seconds: float) -> float:
    """Median over at least five calls after two to warm up."""
    times: list[float] = []
    for _ in range(2):
        call()
    while len(times) < 5 or sum(times) < least_seconds:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def machine(options: argparse.Namespace) -> str:
    name = torch.cuda.get_device_name() if options.device == "cuda" else platform.machine()
    return f"{name}, {options.threads} CPU threads, torch {torch.__version__}"


def markdown(rows: list[dict[str, object]], options: argparse.Namespace) -> str:
    lines = [
        machine(options),
        "",
        "| preset | d | M | tables at once | steps | plan ms | batch ms | tables/s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['preset']} | {r['d']} | {r['M']} | {r['tables']} | {r['steps']} | {1e3 * r['plan_seconds']:.1f} "
        f"| {1e3 * r['seconds']:.0f} | {r['tables_per_second']:,.0f} |"
        for r in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
