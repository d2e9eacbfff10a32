"""Which command makes given rows again."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd

from graphbam.benchmarks.store import Settings, settle

MOST_CASES = 12
"""A command names at most so many cases; for more, the command of the whole run stands."""


def rerun(rows: pd.DataFrame) -> str:
    """The commands that make these rows again, one line a run.

    Parameters
    ----------
    rows : DataFrame
        From `read_rows`, or a part of it.
    """
    return "\n".join(_rerun(str(run), own) for run, own in rows.groupby("run", sort=False))


def _rerun(run: str, rows: pd.DataFrame) -> str:
    folder = Path(run) if Path(run).is_dir() else Path(run).parent
    settings, defaults = settle(folder, {}), Settings()
    methods = settings.methods or sorted(rows["method"].unique())
    trials = settings.trials if settings.cases else rows["trial"].nunique()
    words = ["--cases", ",".join(_name_cases(rows, settings)), "--methods", ",".join(methods), "--trials", str(trials)]
    for option in ("time_limit", "memory_limit"):
        if getattr(settings, option) != getattr(defaults, option):
            words += [f"--{option.replace('_', '-')}", f"{getattr(settings, option):g}"]
    if not settings.skip_larger:
        words.append("--try-larger")
    return shlex.join(["graphbam", "benchmark", *words, "-o", str(folder)])


def _name_cases(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """Names of a few simulated cases, else the words of the run: tables on disk are known by their folder only."""
    cases = rows["case"].unique().tolist()
    is_short = len(cases) <= MOST_CASES and (rows["source"] == "simulated").all()
    return cases if is_short or not settings.cases else list(settings.cases)
