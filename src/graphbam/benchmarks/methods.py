"""Which methods are judged, by name: those of the package, and anybody's own as ``module:Class``."""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib
import itertools
from collections.abc import Iterable

from graphbam.benchmarks.baselines import list_baselines, load_baseline
from graphbam.benchmarks.baselines._base import Baseline, Kind
from graphbam.errors import ConfigError

__all__ = ["METHOD_SETS", "Method", "load_method", "resolve_methods"]

METHOD_SETS: dict[str, tuple[str, ...]] = {
    "quick": (
        "graphbam", "zero", "partial-correlation", "partial-correlation-normal-scores", "glasso", "mmpc", "pc", "boss",
        "grasp", "hill-climbing", "sortnregress", "lingam", "dagma",
    ),
}  # fmt: skip
"""Names of methods by set: `quick` answers within seconds up to 50 variables."""


@dataclasses.dataclass(frozen=True)
class Method:
    """A method as the runner needs it: how to load it, and what its rows are called."""

    word: str
    """What `load_method` takes: a name, or ``module:Class``."""
    name: str
    kind: Kind


def load_method(word: str) -> Baseline:
    """Make a method from its name, or from ``module:Class``, a class of one's own that derives from `Baseline`.

    Examples
    --------
    >>> load_method("zero").kind
    'undirected'
    >>> load_method("graphbam.benchmarks.baselines.zero:Zero").name
    'zero'
    """
    if ":" not in word:
        return load_baseline(word)
    module, _, attribute = word.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"method {word!r} cannot be loaded: {error}. Is its folder the current one?") from None
    if not (isinstance(found, type) and issubclass(found, Baseline)):
        raise ConfigError(f"method {word!r} is no class derived from graphbam.benchmarks.baselines.Baseline")
    return found()


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
        baseline = load_method(word)
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
