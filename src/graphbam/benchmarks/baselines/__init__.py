"""Methods by name: those of the package, and anybody's own as ``module:Class``.

A new method is one small file with a class derived from `Baseline`, and its line in `BASELINES`. Nothing is imported
before a method is asked for.
"""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import importlib
import inspect
import itertools
from collections.abc import Iterable
from typing import Any, get_args

from graphbam.benchmarks.baselines._base import Answer, Baseline, Kind
from graphbam.errors import ConfigError

__all__ = [
    "BASELINES",
    "METHOD_SETS",
    "Answer",
    "Baseline",
    "Method",
    "list_baselines",
    "load_baseline",
    "resolve_methods",
]

BASELINES = {
    "graphbam": "bam:Bam",
    "graphbam-paper": "bam:BamPaper",
    "graphbam-two-step": "bam:BamTwoStep",
    "graphbam-imputed": "imputed:BamImputed",
    # ── pair by pair, or variable by variable ──
    "zero": "zero:Zero",
    "partial-correlation": "partial_correlation:PartialCorrelation",
    "partial-correlation-normal-scores": "partial_correlation:NormalScores",
    "glasso": "glasso:Glasso",
    "extra-trees": "extra_trees:ExtraTrees",
    "genie3": "extra_trees:Genie3",
    "mmpc": "mmpc:Mmpc",
    # ── tests of conditional independence ──
    "pc": "pc:Pc",
    "pc-kci": "pc:PcKci",
    "pc-rcit": "pc:PcRcit",
    "pc-rcot": "pc:PcRcot",
    "pc-hsic": "pc_hsic:PcHsic",
    "pc-test-wise": "imputed:PcTestWise",
    "pc-imputed": "imputed:PcImputed",
    "fci": "fci:Fci",
    "gfci": "fci:Gfci",
    # ── search for the best score ──
    "ges": "ges:Ges",
    "ges-test-wise": "imputed:GesTestWise",
    "ges-imputed": "imputed:GesImputed",
    "gies": "gies:Gies",
    "boss": "boss:Boss",
    "boss-imputed": "imputed:BossImputed",
    "ut-igsp": "igsp:UtIgsp",
    "grasp": "grasp:Grasp",
    "hill-climbing": "hill_climbing:HillClimbing",
    "ccdr": "ccdr:Ccdr",
    # ── orders ──
    "sortnregress": "sortnregress:SortnRegress",
    "var-sortnregress": "sortnregress:VarSortnRegress",
    "lingam": "lingam:Lingam",
    "direct-lingam": "lingam:DirectLingam",
    "rcd": "hidden:Rcd",
    "resit": "resit:Resit",
    "cam": "cam:Cam",
    "cam-unpruned": "cam:CamUnpruned",
    "cam-uv": "hidden:CamUv",
    # ── two variables ──
    "anm": "pairs:Anm",
    "igci": "pairs:Igci",
    "reci": "pairs:Reci",
    "pnl": "pairs:Pnl",
    # ── descent on weights ──
    "dagma": "dagma:Dagma",
    "notears": "notears:Notears",
    "notears-mlp": "notears_mlp:NotearsMlp",
    "dag-gnn": "dag_gnn:DagGnn",
    "sam": "sam:Sam",
    # ── trained in advance ──
    "avici": "avici:Avici",
    "avici-retrained": "avici:AviciRetrained",
}
"""Name → module in this package and class, in the order of tables and figures."""

METHOD_SETS: dict[str, tuple[str, ...]] = {
    "quick": (
        "graphbam", "zero", "partial-correlation", "partial-correlation-normal-scores", "glasso", "mmpc", "pc", "boss",
        "grasp", "hill-climbing", "sortnregress", "lingam", "dagma",
    ),
    "directed": (
        "graphbam", "avici-retrained", "boss", "cam", "direct-lingam", "ges", "grasp", "hill-climbing", "lingam",
        "notears", "pc", "sortnregress", "var-sortnregress",
    ),
    "hidden": ("graphbam", "fci", "gfci", "rcd", "cam-uv"),
    "targets": ("graphbam", "gies", "ut-igsp", "pc", "ges", "boss"),
    "pairs": ("graphbam", "anm", "igci", "reci", "pnl", "direct-lingam"),
    "gaps": (
        "graphbam", "graphbam-imputed", "pc-test-wise", "pc-imputed", "ges-test-wise", "ges-imputed", "boss-imputed",
    ),
}  # fmt: skip
"""Names of methods by set: `quick` answers within seconds up to 50 variables; the others are for one kind of answer,
and for the suites and folders of that kind."""


@dataclasses.dataclass(frozen=True)
class Method:
    """A method as the runner needs it: how to load it, and what its rows are called."""

    word: str
    """What `load_baseline` takes: a name, or ``module:Class``."""
    name: str
    kind: Kind


def list_baselines() -> list[str]:
    """Names of all methods, whether their packages are installed or not."""
    return list(BASELINES)


def load_baseline(word: str, **settings: Any) -> Baseline:
    """Make a method from its name, or from ``module:Class`` for a class of one's own that derives from `Baseline`.

    Settings are those of its class; the defaults are those of the benchmark.

    Examples
    --------
    >>> load_baseline("pc", alpha=0.01).title
    'PC'
    >>> load_baseline("graphbam.benchmarks.baselines.zero:Zero").kind
    'undirected'
    >>> load_baseline("dag-gn")
    Traceback (most recent call last):
    graphbam.errors.ConfigError: no method is called 'dag-gn'; did you mean 'dag-gnn'?
    """
    if ":" in word:
        return _load_class(word)(**settings)
    if word not in BASELINES:
        near = [repr(one) for one in difflib.get_close_matches(word, BASELINES, n=3)]
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(BASELINES)}."
        raise ConfigError(f"no method is called {word!r}; {hint}")
    module, name = BASELINES[word].split(":")
    baseline: Baseline = getattr(importlib.import_module(f"{__name__}.{module}"), name)(**settings)
    return baseline


def _load_class(word: str) -> type[Baseline]:
    module, _, name = word.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"method {word!r} cannot be loaded: {error}. Is its folder the current one?") from None
    if not (isinstance(found, type) and issubclass(found, Baseline)):
        raise ConfigError(f"method {word!r} is no class derived from graphbam.benchmarks.baselines.Baseline")
    if missing := [name for name in ("name", "title", "kind") if not hasattr(found, name)]:
        raise ConfigError(f"method {word!r} has no {missing[0]}; its class needs name, title and kind")
    if found.kind not in (kinds := get_args(Kind)):
        raise ConfigError(f"method {word!r} has kind={found.kind!r}; choose from {', '.join(kinds)}")
    if inspect.isabstract(found):
        raise ConfigError(f"method {word!r} cannot answer: its class needs a function fit(self, x_md, *, seed)")
    return found


def resolve_methods(words: Iterable[str]) -> list[Method]:
    """Find the methods that are asked for.

    Parameters
    ----------
    words : iterable of str
        Names, ``all``, names of sets, patterns such as ``pc*``, or ``module:Class``.

    Returns
    -------
    list of Method
        Each once, in the order of the words.

    Raises
    ------
    ConfigError
        If there is no such method, or two have the same name.

    Examples
    --------
    >>> [method.name for method in resolve_methods(["zero", "partial-*"])]
    ['zero', 'partial-correlation', 'partial-correlation-normal-scores']
    """
    methods: dict[str, Method] = {}
    for word in dict.fromkeys(itertools.chain.from_iterable(map(_expand, words))):
        baseline = load_baseline(word)
        if baseline.name in methods:
            raise ConfigError(f"{methods[baseline.name].word} and {word} are both called {baseline.name!r}; rename one")
        methods[baseline.name] = Method(word, baseline.name, baseline.kind)
    if not methods:
        raise ConfigError(f"no method is asked for; use a set ({', '.join(METHOD_SETS)}), all, names, or module:Class")
    return list(methods.values())


def _expand(word: str) -> list[str]:
    if word == "all":
        return list_baselines()
    if word in METHOD_SETS:
        return list(METHOD_SETS[word])
    return fnmatch.filter(list_baselines(), word) or [word]
