"""Many rows: what reading them takes, and whether more of them make a better answer.

    python runs/bench_rows.py --sections memory      # seconds and peak memory of `graphbam infer`, csv and parquet
    python runs/bench_rows.py --sections average     # one draw beside the average of several; resumable
    python runs/bench_rows.py --sections draws       # the average beside each of its own draws; resumable
    python runs/bench_rows.py --sections pieces      # rows shown all at once, or in pieces
    python runs/bench_rows.py --write docs/performance.md    # the tables of that page, from the rows

`memory` makes files of 50 columns in a folder that is deleted afterwards (1.5 GB), and runs the command line in a
process of its own for each. `average` draws worlds whose graph is known and infers each from its first rows, with one
draw (``large="subsample"``) or with several (``large="average"``). Half of the tables of a world are as drawn; of the
others those are left out that a thousand rows, other than the first, settle (directed AP above .95). `draws` takes
other tables of the same worlds and infers each of the very draws that are averaged by itself: what the average gains
over them, on the same rows, is told apart from the luck of a draw. `pieces` takes tables longer than those of training,
and holds losses of all answers against each other: the network as it is, told that there are only as many rows as the
longest tables of training have, and with rows that see no more than so many.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import functools
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import graphbam as gb
from graphbam.benchmarks.answers import collect_claims, score_result
from graphbam.benchmarks.cases import Problem
from graphbam.graphs.graph import is_dag
from graphbam.simulation import PRESETS, SimulatedTable, SimulationConfig, simulate_table
from graphbam.simulation.values import Shape
from graphbam.tables.config import PrepareConfig
from graphbam.tables.draws import draw_passes
from graphbam.tables.notes import Notes
from graphbam.training import TrainConfig
from graphbam.training.objectives import AnswerTask
from parts import measure_losses

RESULTS = Path(__file__).parent / "results"
SECTIONS = ("memory", "average", "draws", "pieces")

FILE_ROWS = (10_000, 100_000, 1_000_000)
N_COLUMNS = 50

N_VARIABLES = 12
WORLDS = ("broad", "textbook", "as-found", "designed")
ASKED = ((1000, "subsample"), (5000, "subsample"), (100_000, "average"))
MOST_ROWS = 100_000
DRAWS_FROM = 100
"""First seed of the tables whose draws are compared with their average."""
COMPARED = ("skeleton_ap", "directed_ap", "direction_right")
WAYS = ("draws", "average")
SETTLED = 0.95
BINS = 15

LONG = ((12, 10_000, 10), (12, 15_000, 10), (4, 12_000, 30), (8, 20_000, 12))
"""Tables, rows and variables."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=[])
    parser.add_argument("--seeds", type=int, default=8, help="tables of each world")
    parser.add_argument("--jobs", type=int, default=1, help="processes that measure draws, a thread each")
    parser.add_argument("--write", type=Path, help="page whose tables to write anew")
    options = parser.parse_args()
    if "memory" in options.sections:
        measure_files()
    if "average" in options.sections:
        measure_answers(options.seeds)
    if "draws" in options.sections:
        measure_draws(options.seeds, options.jobs)
    if "pieces" in options.sections:
        measure_pieces()
    if options.write:
        write_tables(options.write)


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────


def measure_files() -> None:
    """One row per file: `graphbam infer`, from the prompt to the files."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in FILE_ROWS:
            world = simulate_table(n_samples=n_rows, n_variables=N_COLUMNS, preset="textbook", seed=3)
            table = pa.table(dict(zip(world.graph.names, world.x_md.T, strict=True)))
            for kind, write in (("csv", pa.csv.write_csv), ("parquet", pa.parquet.write_table)):
                path = Path(folder) / f"table.{kind}"
                write(table, path)
                rows.append({"n_rows": n_rows, "file": kind, **run_command(path)})
                print(rows[-1], flush=True)
                path.unlink()
    _write_rows("rows_memory.csv", rows)


def run_command(path: Path) -> dict[str, float]:
    """Seconds, processor seconds and peak memory of the command for one file; the child of a child is the only one."""
    program = (
        "import json, resource, subprocess, sys, time\n"
        "began = time.perf_counter()\n"
        "command = [sys.executable, '-m', 'graphbam.cli', 'infer', '-q', '-o', sys.argv[2]]\n"
        "subprocess.run([*command, sys.argv[1]], check=True)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6]))\n"
    )
    load, megabytes = os.getloadavg()[0], path.stat().st_size / 1e6
    with tempfile.TemporaryDirectory() as out:
        told = subprocess.run([sys.executable, "-c", program, path, out], check=True, capture_output=True, text=True)
    seconds, cpu_seconds, gigabytes = json.loads(told.stdout.splitlines()[-1])
    return {
        "megabytes": round(megabytes), "seconds": round(seconds, 1), "cpu_seconds": round(cpu_seconds, 1),
        "gigabytes": round(gigabytes, 2), "load": round(load, 1),
    }  # fmt: skip


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────


def measure_answers(n_seeds: int) -> None:
    """One row per table and way of asking; those that are there already are left alone."""
    rows = _read_rows("rows_average.csv")
    done = {(row["world"], int(row["seed"]), int(row["n_rows"]), row["large"]) for row in rows}
    for seed in range(n_seeds):
        for world in WORLDS:
            for n_rows, large in ASKED:
                if (world, seed, n_rows, large) not in done:
                    rows.append({"world": world, "seed": seed, "n_rows": n_rows, "large": large})
                    rows[-1] |= measure_answer(world, seed, n_rows, large)
                    print({name: value for name, value in rows[-1].items() if name != "bins"}, flush=True)
                    _write_rows("rows_average.csv", rows)


def measure_answer(world: str, seed: int, n_rows: int, large: str) -> dict[str, object]:
    """How good the answer of the first rows of a world is, and how long it took."""
    table = draw_world(world, seed)
    load, began, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    result, problem = answer(table, slice(n_rows), large)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    scores, (truth_n, p_n) = score_result(result, problem), collect_claims(result, problem)["link"]
    p_n = np.clip(p_n, 1e-6, 1 - 1e-6)
    place_n = np.minimum((p_n * BINS).astype(int), BINS - 1)
    bins = [np.bincount(place_n, weights, BINS).round(6).tolist() for weights in (None, p_n, truth_n)]
    kept = ("skeleton_ap", "directed_ap", "direction_right", "false_at_0.05")
    return {
        "n_used": result.provenance["n_rows_used"],
        **{name: "" if scores[name] is None else round(float(scores[name]), 4) for name in kept},
        "log_loss": round(float(-np.log(np.where(truth_n, p_n, 1 - p_n)).mean()), 5),
        "seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1), "load": round(load, 1), "bins": json.dumps(bins),
    }  # fmt: skip


def answer(table: SimulatedTable, rows: slice | np.ndarray, large: str) -> tuple[gb.Result, Problem]:
    """What is said of some rows of a world, and what is true of it."""
    place = {name: k for k, name in enumerate(table.graph.names)}
    hidden_dd = np.zeros((len(place), len(place)), dtype=np.int8)
    for a, b in table.bidirected:
        hidden_dd[place[a], place[b]] = hidden_dd[place[b], place[a]] = 1
    x_md, set_md = table.x_md[rows], table.set_md[rows]
    interventions = set_md.astype(int) if set_md.any() else None
    result = gb.infer(x_md, interventions=interventions, large=large, progress=False)
    return result, Problem(x_md, table.graph.adjacency, not table.bidirected, hidden_dd=hidden_dd)


@functools.lru_cache(maxsize=1)
def draw_world(world: str, seed: int) -> SimulatedTable:
    """A table of as many rows as are ever asked about; for odd seeds, one that a thousand of them do not settle."""
    preset, named = (world, {}) if world in PRESETS else ("broad", {"world": world})
    for number in itertools.count(1000 * (1 + WORLDS.index(world)) + 50 * seed):
        table = simulate_table(n_samples=MOST_ROWS, n_variables=N_VARIABLES, preset=preset, seed=number, **named)
        if not (table.graph.adjacency.any() and is_dag(table.graph.adjacency)):  # genes may have feedback
            continue
        if (np.isfinite(table.x_md).mean(axis=0) < 0.5).any():
            continue
        last = answer(table, slice(-1000, None), "subsample")
        if len(last[0].names) < N_VARIABLES or (seed % 2 and score_result(*last)["directed_ap"] > SETTLED):
            continue
        return table
    raise AssertionError


def measure_draws(n_seeds: int, jobs: int) -> None:
    """One row per table: scores of the average, and the means of those of its draws."""
    rows = _read_rows("rows_draws.csv")
    done = {(row["world"], int(row["seed"])) for row in rows}
    todo = [(world, seed) for seed in range(DRAWS_FROM, DRAWS_FROM + n_seeds) for world in WORLDS]
    with ProcessPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        asked = [pool.submit(compare_draws, *table) for table in todo if table not in done]
        for one in as_completed(asked):
            rows.append(one.result())
            print(rows[-1], flush=True)
            _write_rows("rows_draws.csv", rows)
    print(table_of_draws())


def compare_draws(world: str, seed: int) -> dict[str, object]:
    """Scores of the average of a whole table, and means over the draws that it averages."""
    table = draw_world(world, seed)
    whole = score_result(*answer(table, slice(MOST_ROWS), "average"))
    draws = draw_passes(MOST_ROWS, PrepareConfig(large="average"), Notes())
    each = [score_result(*answer(table, rows, "subsample")) for rows in draws]
    scores: dict[str, object] = {"world": world, "seed": seed}
    for name in COMPARED:
        told = (np.mean([score[name] for score in each]), whole[name])
        scores |= {f"{name}_{way}": round(float(score), 5) for way, score in zip(WAYS, told, strict=True)}
    return scores


# ── pieces ────────────────────────────────────────────────────────────────────────────────────────────────


@torch.no_grad()
def measure_pieces() -> None:
    """One row per size of tables and way of asking: losses of links and directions, processor seconds of a table."""
    loaded, rows = gb.load_weights("edges"), []
    config = dataclasses.replace(TrainConfig.answers(burst=1), simulation=SimulationConfig.broad())
    for seed, (n_tables, n_rows, d) in enumerate(LONG):
        rng = torch.Generator().manual_seed(seed)
        batch = AnswerTask(None).burst(rng, config, Shape(n_tables, n_rows, d), torch.device("cpu"))
        longest = loaded.longest(d)
        assert longest is not None
        fewer_b = batch.rows_b.clamp(max=longest)
        asked = {"all rows": (batch.rows_b, None), "all, fewer told": (fewer_b, None)}
        for way, (rows_b, piece) in (asked | {"pieces": (batch.rows_b, longest)}).items():
            cpu = time.process_time()
            tables = zip(batch.x_bmd[:, None], rows_b[:, None], batch.marks_bmd[:, None], strict=True)
            logits = torch.cat([loaded.network(*table, piece) for table in tables])
            seconds = (time.process_time() - cpu) / n_tables
            losses = {name: round(loss.item(), 4) for name, loss in measure_losses(logits, batch).items()}
            rows.append({"n_tables": n_tables, "n_rows": n_rows, "n_variables": d, "way": way, **losses})
            rows[-1]["cpu_seconds"] = round(seconds, 2)
            print(rows[-1], flush=True)
    _write_rows("rows_pieces.csv", rows)


def table_of_pieces() -> str:
    head = ["tables", "rows", "variables", "shown", "loss of links", "directions", "arrows", "processor s"]
    names = ("classes", "direction", "compelled", "cpu_seconds")
    return _as_markdown(
        head,
        [
            [row["n_tables"], f"{int(row['n_rows']):,}", row["n_variables"], row["way"]]
            + [f"{float(row[name]):.3g}".lstrip("0") for name in names]
            for row in _read_rows("rows_pieces.csv")
        ],
    )


# ── rows and tables ───────────────────────────────────────────────────────────────────────────────────────


def _read_rows(name: str) -> list[dict[str, object]]:
    path = RESULTS / name
    return list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []


def _write_rows(name: str, rows: list[dict[str, object]]) -> None:
    with (RESULTS / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_tables(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    makers = {"memory": table_of_files, "average": table_of_answers, "draws": table_of_draws, "pieces": table_of_pieces}
    for section, make in makers.items():
        if not (RESULTS / f"rows_{section}.csv").exists():
            continue
        table = make()
        pattern = rf"(<!-- rows: {section} -->\n).*?(<!-- end of rows: {section} -->)"
        text = re.sub(pattern, lambda found, table=table: found[1] + table + found[2], text, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")


def _as_markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def table_of_files() -> str:
    head = ["rows", "file", "MB", "seconds", "processor s", "peak GB", "load"]
    names = ("file", "megabytes", "seconds", "cpu_seconds", "gigabytes", "load")
    rows = _read_rows("rows_memory.csv")
    return _as_markdown(head, [[f"{int(row['n_rows']):,}", *(str(row[name]) for name in names)] for row in rows])


def table_of_answers() -> str:
    """Means over tables that were asked about in every way; the calibration error is over all of their pairs."""
    rows = _read_rows("rows_average.csv")
    asked: dict[tuple[object, object], dict[tuple[int, str], dict[str, object]]] = {}
    for row in rows:
        asked.setdefault((row["world"], row["seed"]), {})[int(row["n_rows"]), row["large"]] = row
    whole = [one for one in asked.values() if set(ASKED) <= set(one)]
    head = [
        "rows", "`large`", "rows used", "skeleton AP", "directed AP", "directions right", "log loss",
        "calibration error", "false at a target of 5 %", "processor s",
    ]  # fmt: skip
    lines = []
    for n_rows, large in ASKED:
        these = [one[n_rows, large] for one in whole]
        means = [_mean(these, name) for name in ("skeleton_ap", "directed_ap", "direction_right")]
        counts, p, truth = np.sum([json.loads(row["bins"]) for row in these], axis=0)
        error = np.abs(p - truth).sum() / counts.sum()
        lines.append([
            f"{n_rows:,}", large, f"{_mean(these, 'n_used'):,.0f}", *(f"{mean:.3f}".lstrip("0") for mean in means),
            f"{_mean(these, 'log_loss'):.4f}".lstrip("0"), f"{error:.4f}".lstrip("0"),
            f"{100 * _mean(these, 'false_at_0.05'):.1f} %", f"{_mean(these, 'cpu_seconds'):.0f}",
        ])  # fmt: skip
    return _as_markdown(head, lines)


def table_of_draws() -> str:
    """Means over the tables of each world and over all, and the gain of the average with its standard error."""
    frame = pd.DataFrame(_read_rows("rows_draws.csv")).astype({f"{n}_{w}": float for n in COMPARED for w in WAYS})
    head = ["world", "tables"]
    for name in ("skeleton AP", "directed AP", "directions right"):
        head += [f"{name}, one draw", "average", "gain"]
    lines = []
    for world in (*WORLDS, "all"):
        these = frame if world == "all" else frame[frame["world"] == world]
        lines.append([world, str(len(these))])
        for name in COMPARED:
            draws, average = (these[f"{name}_{way}"] for way in WAYS)
            gain = average - draws
            lines[-1] += [f"{mean:.4f}".lstrip("0") for mean in (draws.mean(), average.mean())]
            lines[-1].append(f"{gain.mean():+.4f} ± {gain.sem():.4f}".replace("0.", "."))
    return _as_markdown(head, lines)


def _mean(rows: list[dict[str, object]], name: str) -> float:
    values = [float(row[name]) for row in rows if row[name] != ""]
    return float(np.nanmean(values))


if __name__ == "__main__":
    main()
