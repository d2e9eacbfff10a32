"""Tables per second that the simulator makes; the numbers of docs/performance.md, section Simulation.

python runs/bench_simulation.py --device cpu --threads 2
python runs/bench_simulation.py --workers 2
python runs/bench_simulation.py --workers 1 --presets as-found counts levels
python runs/bench_simulation.py --device cuda --json simulation.json

With `--workers`, that many processes of one thread each simulate at the same time, as in training, and the seconds are
those that the processor spent: other programs on the machine do not count.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graphbam.simulation import PRESETS, WORLDS, SimulationConfig, plan_tables, run_plan, sample_tables

BATCHES = {
    "cpu": {(20, 200): 256, (55, 525): 64, (100, 1000): 32},
    "cuda": {(20, 200): 1024, (55, 525): 256, (100, 1000): 128},
}
"""Tables made at once for each (d, M): on a GPU a training loop simulates several batches of one shape together."""


def main() -> None:
    options = read_options()
    torch.set_num_threads(options.threads)
    if options.floor:
        print(floor_table(options.presets))
        return
    if options.workers:
        print(worker_table(options))
        return
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
    parser.add_argument("--workers", type=int, help="CPU only: processes of one thread each instead of threads")
    parser.add_argument("--seconds", type=float, default=5.0, help="least time for each row")
    parser.add_argument(
        "--presets", nargs="+", choices=sorted({*PRESETS, *WORLDS}), default=["paper", "broad-1", "broad"]
    )
    parser.add_argument("--floor", action="store_true", help="count launches and bytes of the GPU batches")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    return parser.parse_args()


def config_of(name: str) -> SimulationConfig:
    """A preset, or nothing but tables of a named world."""
    return PRESETS[name] if name in PRESETS else dataclasses.replace(SimulationConfig(robust=True), worlds={name: 1.0})


def measure(preset: str, shape: tuple[int, int], n_tables: int, options: argparse.Namespace) -> dict[str, object]:
    """Median time of one batch, whole and for one plan alone; of `broad`, whose batches have several, the plan and the
    steps are those of tables without hidden variables or a named world."""
    config, rng = config_of(preset), torch.Generator().manual_seed(0)
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


def worker_table(options: argparse.Namespace) -> str:
    """Tables per second of processor time, one process and all of them together."""
    lines = [
        f"{options.workers} processes\n\n| preset | d | M | tables at once | tables/s each | together |",
        "|---|---|---|---|---|---|",
    ]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for preset in options.presets:
            for shape, n_tables in BATCHES["cpu"].items():
                calls = [
                    pool.submit(count_tables, preset, shape, n_tables, options.seconds, seed)
                    for seed in range(options.workers)
                ]
                rates = [call.result() for call in calls]
                numbers = [*shape, n_tables, f"{sum(rates) / len(rates):,.0f}", f"{sum(rates):,.0f}"]
                lines.append(f"| {preset} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


def count_tables(preset: str, shape: tuple[int, int], n_tables: int, seconds: float, seed: int) -> float:
    """Tables per second of processor time that this process makes with one thread."""
    torch.set_num_threads(1)
    config, rng = config_of(preset), torch.Generator().manual_seed(seed)
    sizes = {"n_tables": n_tables, "n_variables": shape[0], "n_samples": shape[1]}
    sample_tables(rng, config, **sizes)
    began, n_batches = time.process_time(), 0
    while time.process_time() - began < seconds:
        sample_tables(rng, config, **sizes)
        n_batches += 1
    return n_batches * n_tables / (time.process_time() - began)


class Counter(TorchDispatchMode):
    """Counts operations that move data, and the bytes they read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.launches, self.bytes = 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        is_view = any(r.alias_info and not r.alias_info.is_write for r in func._schema.returns)
        if not is_view and func.overloadpacket is not torch.ops.aten.empty:
            self.launches += 1
            self.bytes += sum(t.numel() * t.element_size() for t in tensors((args, kwargs or {}, result)))
        return result


def tensors(tree):
    """All tensors in nested arguments; a broadcast one counts with its own memory only."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, dict):
        yield from tensors(list(tree.values()))
    elif isinstance(tree, list | tuple):
        for branch in tree:
            yield from tensors(branch)


def floor_table(presets: list[str], bandwidth: float = 4.8e12, launch: float = 4e-6) -> str:
    """Launches and bytes of the GPU batches, and the time they cannot fall below."""
    lines = [
        "| preset | d | M | tables at once | launches | GB | ms for launches | ms for bytes | most tables/s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for preset in presets:
        for (d, m), n_tables in BATCHES["cuda"].items():
            sizes = {"n_tables": n_tables, "n_variables": d, "n_samples": m}
            plan = plan_tables(torch.Generator(), config_of(preset), **sizes, device_type="cuda")
            with Counter() as count:
                run_plan(plan)
            times = count.launches * launch, count.bytes / bandwidth
            lines.append(
                f"| {preset} | {d} | {m} | {n_tables} | {count.launches:,} | {count.bytes / 1e9:.1f} "
                f"| {1e3 * times[0]:.0f} | {1e3 * times[1]:.1f} | {n_tables / max(times):,.0f} |"
            )
    return "\n".join(lines)


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
