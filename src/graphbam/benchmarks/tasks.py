"""One fit, from table to row of results: the function that every engine runs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from graphbam.benchmarks.cases import Case
from graphbam.benchmarks.methods import Method
from graphbam.benchmarks.process import Limits, hire
from graphbam.benchmarks.scores import score_answer
from graphbam.benchmarks.store import COLUMNS, Row
from graphbam.benchmarks.tables import Problem, derive_seed
from graphbam.benchmarks.worker import About, Reply, Request
from graphbam.errors import GraphbamError
from graphbam.graphs.graph import skeleton

__all__ = ["Task", "execute", "make_row"]


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """A method on one table. Holds the table itself, so that every machine of a cluster sees the same numbers."""

    case: Case
    trial: int
    method: Method
    problem: Problem
    limits: Limits
    run: str
    """Which run it belongs to."""
    log: Path | None = None
    """Where messages of the method go; None: nowhere."""
    spared: str | None = None
    """Why it is not tried at all."""


def execute(task: Task) -> Row:
    """Fit and score; never raises for what the method does."""
    if task.spared:
        return make_row(task, Reply("skipped", task.spared))
    label = f"{task.method.name} · {task.case.name} · trial {task.trial}"
    request = Request(label, task.problem.x_md, fit_seed(task.case, task.trial))
    about, reply = hire(task.run, task.method.word, task.log).fit(request, task.limits)
    return make_row(task, reply, about)


def fit_seed(case: Case, trial: int) -> int:
    """What methods get as their seed: the same for all of them, and unrelated to the seed of the table."""
    return derive_seed("fit", case.name, trial)


def make_row(task: Task, reply: Reply, about: About | None = None) -> Row:
    """A row of the results, with every column."""
    case, row = task.case, dict.fromkeys(COLUMNS)
    scores, status, reason = {}, reply.status, reply.reason
    if reply.answer is not None:
        try:
            scores = score_answer(reply.answer, task.problem, task.method.kind)
        except GraphbamError as error:
            status, reason = "error", f"{type(error).__name__}: {error}"
    row |= {
        "case": case.name, "source": case.source, "mechanism": case.mechanism, "family": case.family,
        "n_variables": case.n_variables, "n_samples": case.n_samples, "trial": task.trial, "method": task.method.name,
        "kind": task.method.kind, "status": status, "reason": reason, "seconds": _round(reply.seconds, 6),
        "peak_mib": _round(reply.peak_mib, 1), "n_edges": int(skeleton(task.problem.adjacency).sum()) // 2,
        "seed": fit_seed(case, task.trial), "fingerprint": task.problem.fingerprint(),
    }  # fmt: skip
    return row | scores | (dataclasses.asdict(about) if about else {})


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
