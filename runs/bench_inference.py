"""How long `gb.infer` takes and how much memory: the numbers of docs/performance.md, section Inference.

    python runs/bench_inference.py
    python runs/bench_inference.py --sizes 20x200 1000x500
    python runs/bench_inference.py --threads 1 --beside cam mmpc hill-climbing --sizes 50x200 50x500 100x500
    python runs/bench_inference.py --command

Every size runs in a process of its own: memory is its peak, and the first answer includes import and loading. What the
user would see beforehand, the estimate, is printed as soon as the process announces it. With `--beside`, methods of the
benchmark take turns with graphbam on one simulated table of each size, the paper's: seconds and, in brackets, processor
seconds, each the least of all rounds; where other work is on the same cores, only the latter say much. With
`--command`, `graphbam infer` of a table of ten columns and 200 rows is timed from its start to its end, beside the
import of torch alone.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

STARTED = "GRAPHBAM_BENCH_STARTED"
"""Tells a child when its parent started it: a first answer waits for Python and the imports too."""

TARGETS = {
    (20, 200): "",
    (50, 200): "0.12 s",
    (100, 500): "0.6 s",
    (100, 1000): "1.2 s",
    (300, 500): "",
    (1000, 500): "35 s, 4 GB",
}
"""(d, M) → the target on two cores, weights loaded."""


def main() -> None:
    options = read_options()
    if options.child:
        print(json.dumps((compare if options.beside else measure)(*options.child, options)))
        return
    if options.command:
        time_command(options.threads)
        return
    rows = [run_child(size, options) for size in options.sizes]
    names = list(rows[0])
    print("\n| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(map(show, row.values())) + " |")
    if options.json:
        with open(options.json, "w") as stream:
            json.dump(rows, stream, indent=1)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=read_size, default=list(TARGETS), metavar="DxM")
    parser.add_argument("--weights", default="edges")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0, help="repeat each size for about so long")
    parser.add_argument("--beside", nargs="+", default=[], metavar="METHOD", help="methods of the benchmark")
    parser.add_argument("--command", action="store_true", help="time the command line instead")
    parser.add_argument("--json", help="also write the numbers here")
    parser.add_argument("--child", nargs=2, type=int, metavar=("D", "M"), help=argparse.SUPPRESS)
    return parser.parse_args()


def read_size(text: str) -> tuple[int, int]:
    d, _, m = text.partition("x")
    return int(d), int(m)


def show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if value < 10 else f"{value:.0f}"
    return str(value)


def run_child(size: tuple[int, int], options: argparse.Namespace) -> dict[str, object]:
    """Measure one size in a fresh process; what it announces goes straight to the terminal."""
    common = ["--weights", options.weights, "--threads", str(options.threads), "--seconds", str(options.seconds)]
    beside = ["--beside", *options.beside] if options.beside else []
    command = [sys.executable, __file__, "--child", *map(str, size), *common, *beside]
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads), STARTED: str(time.time())}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    row: dict[str, object] = json.loads(done.stdout)
    return row


def measure(d: int, m: int, options: argparse.Namespace) -> dict[str, object]:
    import graphbam as gb
    from graphbam.inference.networks import open_weights
    from graphbam.nn.cost import estimate_seconds

    loaded = open_weights(options.weights, "cpu")
    import numpy as np

    x_md = np.random.default_rng(0).normal(size=(m, d))
    x_md[:, 1:] += 0.5 * x_md[:, :-1]
    announced = estimate_seconds(loaded, 1, m, d)
    seconds, cpu, busier = [], [], []
    while not seconds or (sum(seconds) < options.seconds and len(seconds) < 15):
        began, cpu_began, own_began = time.perf_counter(), time.process_time(), time.thread_time()
        gb.infer(x_md, weights=loaded, colliders=None, progress=None if seconds else announce)
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_began)
        own = time.thread_time() - own_began
        busier.append(max(own, cpu[-1] - own))  # of two threads: what idle cores would wait for
        if len(seconds) == 1:
            first = time.time() - float(os.environ[STARTED])
    return {
        "d": d,
        "M": m,
        "announced s": announced,
        "infer s": statistics.median(seconds),
        "best s": min(seconds),
        "with import and load s": first,
        "CPU s": statistics.median(cpu),
        "least CPU s": min(cpu),
        "least of the busier thread s": min(busier),
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "target": TARGETS.get((d, m), ""),
        "load average": os.getloadavg()[0],
    }


def compare(d: int, m: int, options: argparse.Namespace) -> dict[str, object]:
    """Seconds of graphbam and of other methods on one table, in turns; why, where a method declines."""
    import torch

    import graphbam as gb
    from graphbam.benchmarks.baselines import load_baseline
    from graphbam.inference.networks import open_colliders, open_weights
    from graphbam.simulation.config import SimulationConfig
    from graphbam.simulation.values import sample_tables

    preset, rng = SimulationConfig.preset("paper"), torch.Generator().manual_seed(0)
    x_md = sample_tables(rng, preset, n_tables=1, n_variables=d, n_samples=m).x_bmd[0].double().numpy()
    edges, colliders = open_weights(options.weights, "cpu"), open_colliders("colliders", "cpu")
    methods: dict[str, Callable[[], object]] = {
        "graphbam": lambda: gb.infer(x_md, weights=edges),
        "graphbam, two-step": lambda: gb.infer(x_md, weights=edges, colliders=colliders, directions="two-step"),
    }
    found: dict[str, object] = {"d": d, "M": m}
    for name in options.beside:
        baseline = load_baseline(name)
        if reason := baseline.skip(m, d):
            found[name] = reason
        else:
            methods[name] = functools.partial(baseline.fit, x_md, seed=0)
    walls: dict[str, list[float]] = {name: [] for name in methods}
    cpus: dict[str, list[float]] = {name: [] for name in methods}
    while not all(walls.values()) or sum(map(sum, walls.values())) < options.seconds:
        for name, method in methods.items():
            began, cpu_began = time.perf_counter(), time.process_time()
            method()
            walls[name].append(time.perf_counter() - began)
            cpus[name].append(time.process_time() - cpu_began)
    return found | {f"{name} s": f"{min(walls[name]):.2f} ({min(cpus[name]):.2f})" for name in methods}


def time_command(n_threads: int, rounds: int = 5) -> None:
    """Seconds, and seconds of processor time, of the least of some rounds."""
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table.csv")
        with open(table, "w") as stream:
            stream.write("a,b,c,d,e,f,g,h,i,j\n")
            stream.writelines(
                ",".join(str((k * (j + 2) ** 2 + k * k) % 97) for j in range(10)) + "\n" for k in range(200)
            )
        command = [sys.executable, "-m", "graphbam.cli", "infer", table, "-o", os.path.join(folder, "out"), "--quiet"]
        environment = os.environ | {"OMP_NUM_THREADS": str(n_threads)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled; so is this, after a round
        for name, call in (("import torch", [sys.executable, "-c", "import torch"]), ("graphbam infer", command)):
            walls, cpus = [], []
            for _ in range(rounds):
                began, before = time.perf_counter(), os.times()
                subprocess.run(call, check=True, env=environment)
                walls.append(time.perf_counter() - began)
                cpus.append(sum(os.times()[2:4]) - sum(before[2:4]))
            load = os.getloadavg()[0]
            print(f"{name}: {min(walls):.2f} s, {min(cpus):.2f} s of processor time; load average {load:.1f}")


def announce(share: float, sentence: str) -> None:
    if not share:
        print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
