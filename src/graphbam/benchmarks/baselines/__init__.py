"""Methods by name. Nothing is imported before a method is asked for."""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from graphbam.benchmarks.baselines._base import Answer, Baseline
from graphbam.errors import ConfigError

__all__ = ["BASELINES", "Answer", "Baseline", "list_baselines", "load_baseline"]

BASELINES = {
    "graphbam": "bam:Bam",
    "graphbam-paper": "bam:BamPaper",
    # ── pairs without directions ──
    "zero": "zero:Zero",
    "partial-correlation": "partial_correlation:PartialCorrelation",
    "partial-correlation-normal-scores": "partial_correlation:NormalScores",
    "glasso": "glasso:Glasso",
    "extra-trees": "extra_trees:ExtraTrees",
    "mmpc": "mmpc:Mmpc",
    # ── tests of conditional independence ──
    "pc": "pc:Pc",
    "pc-kci": "pc:PcKci",
    "pc-rcit": "pc:PcRcit",
    "pc-rcot": "pc:PcRcot",
    "pc-hsic": "pc_hsic:PcHsic",
    # ── search for the best score ──
    "ges": "ges:Ges",
    "gies": "gies:Gies",
    "boss": "boss:Boss",
    "grasp": "grasp:Grasp",
    "hill-climbing": "hill_climbing:HillClimbing",
    "ccdr": "ccdr:Ccdr",
    # ── orders ──
    "sortnregress": "sortnregress:SortnRegress",
    "lingam": "lingam:Lingam",
    "direct-lingam": "lingam:DirectLingam",
    "cam": "cam:Cam",
    "cam-unpruned": "cam:CamUnpruned",
    # ── descent on weights ──
    "dagma": "dagma:Dagma",
    "notears-mlp": "notears_mlp:NotearsMlp",
    "dag-gnn": "dag_gnn:DagGnn",
    "sam": "sam:Sam",
    # ── trained in advance ──
    "avici": "avici:Avici",
    "avici-retrained": "avici:AviciRetrained",
}
"""Name → module in this package and class, in the order of tables and figures."""


def list_baselines() -> list[str]:
    """Names of all methods, whether their packages are installed or not."""
    return list(BASELINES)


def load_baseline(name: str, **settings: Any) -> Baseline:
    """Make a method by name; settings are those of its class, and the defaults are those of the benchmark.

    Examples
    --------
    >>> load_baseline("pc", alpha=0.01).title
    'PC'
    >>> load_baseline("notears")
    Traceback (most recent call last):
    graphbam.errors.ConfigError: no method is called 'notears'; did you mean 'notears-mlp'?
    """
    if name not in BASELINES:
        near = [repr(one) for one in difflib.get_close_matches(name, BASELINES, n=3)]
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(BASELINES)}."
        raise ConfigError(f"no method is called {name!r}; {hint}")
    module, method = BASELINES[name].split(":")
    baseline: Baseline = getattr(importlib.import_module(f"{__name__}.{module}"), method)(**settings)
    return baseline
