"""Whole runs of a few steps, and what they logged."""

import json

from graphbam.training import Budget, train


def run(config, out, steps, *, report_seconds=0.0, **options):
    """Train on the CPU for so many steps, with a line in the log for each; gives the path of the weights."""
    budget = Budget(steps=steps, report_seconds=report_seconds, save_seconds=1e9)
    return train(config, out, budget=budget, device="cpu", **options)


def log_of(folder):
    """Lines of the log of a run."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
