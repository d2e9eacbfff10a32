"""Which command makes given rows again.

A folder remembers the words of its last command only. Rows of earlier ones may go beyond them: what the words do not
name is added.
"""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from graphbam.benchmarks.baselines import list_baselines
from graphbam.benchmarks.cases import SUITES
from graphbam.benchmarks.methods import resolve_methods
from graphbam.benchmarks.store import Settings, settle
from graphbam.errors import ConfigError

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
    methods = _name_methods(rows, settings)
    trials = max(settings.trials if settings.cases else 1, int(rows["trial"].max()) + 1)
    words = ["--cases", ",".join(_name_cases(rows, settings)), "--methods", ",".join(methods), "--trials", str(trials)]
    for option in ("time_limit", "memory_limit"):
        if getattr(settings, option) != getattr(defaults, option):
            words += [f"--{option.replace('_', '-')}", f"{getattr(settings, option):g}"]
    if not settings.skip_larger:
        words.append("--try-larger")
    return shlex.join(["graphbam", "benchmark", *words, "-o", str(folder)])


def _name_methods(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """The words of the run, and names of further methods in the rows; classes of users are known by their word only."""
    found = sorted(rows["method"].unique())
    if not settings.methods:
        return found
    try:
        named = {method.name for method in resolve_methods(settings.methods)}
    except ConfigError:  # a class that cannot be imported here
        named = set(settings.methods)
    return [*settings.methods, *(name for name in found if name not in named and name in list_baselines())]


def _name_cases(rows: pd.DataFrame, settings: Settings) -> list[str]:
    """Names of a few simulated cases, else the words of the run and suites that hold what those do not name."""
    cases = rows["case"].unique().tolist()
    simulated = rows.loc[rows["source"] == "simulated", "case"].unique().tolist()
    if (len(cases) <= MOST_CASES and len(simulated) == len(cases)) or not settings.cases:
        return cases
    named = {case for word in settings.cases for case in simulated if _names(word, case)}
    return [*settings.cases, *_find_suites([case for case in simulated if case not in named])]


def _names(word: str, case: str) -> bool:
    """Whether a word of a command stands for a simulated case."""
    return case in SUITES.get(word, ()) or fnmatch.fnmatchcase(case, word)


def _find_suites(cases: Iterable[str]) -> list[str]:
    """The smallest suite that holds all these cases, or several; cases in none are named themselves."""
    left, words = set(cases), []
    while left:
        held = {name: left & set(suite) for name, suite in SUITES.items()}
        best = max(held, key=lambda name: (len(held[name]), -len(SUITES[name])))
        words += [best] if held[best] else sorted(left)
        left = left - held[best] if held[best] else set()
    return words
