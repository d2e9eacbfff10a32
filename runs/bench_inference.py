"""How long `gb.infer` takes and how much memory: the numbers of docs/performance.md, section Inference.

    python runs/bench_inference.py
    python runs/bench_inference.py --sizes 20x200 1000x500

Every size runs in a process of its own: memory is its peak, and the first answer includes import and loading. What the
user would see beforehand, the estimate, is printed as soon as the process announces it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

STARTED = "GRAPHBAM_BENCH_STARTED"
"""Tells a child when its parent started it: a first answer waits for Python and the imports too."""

TARGETS = {
    (20, 200): "0.3 s",
    (50, 200): "0.6 s",
    (100, 500): "2 s",
    (100, 1000): "4 s",
    (300, 500): "40 s",
    (1000, 500): "12 GB",
}
"""(d, M) → the target on two cores, weights loaded."""


def main() -> None:
    options = read_options()
    if options.child:
        print(json.dumps(measure(*options.child, options)))
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
    command = [sys.executable, __file__, "--child", *map(str, size), *common]
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
    seconds, cpu = [], []
    while not seconds or (sum(seconds) < options.seconds and len(seconds) < 15):
        began, cpu_began = time.perf_counter(), time.process_time()
        gb.infer(x_md, weights=loaded, colliders=None, progress=None if seconds else announce)
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - cpu_began)
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
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "target": TARGETS.get((d, m), ""),
        "load average": os.getloadavg()[0],
    }


def announce(share: float, sentence: str) -> None:
    if not share:
        print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
