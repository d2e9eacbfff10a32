"""Methods are found by name, pattern, set or as a class of one's own, and refused before anything runs."""

import pytest

from graphbam.benchmarks.baselines import list_baselines
from graphbam.benchmarks.methods import METHOD_SETS, Method, load_method, resolve_methods
from graphbam.errors import ConfigError


def names(*words):
    return [method.name for method in resolve_methods(words)]


def test_sets_patterns_and_names_are_joined_without_repeats():
    assert names("all") == list_baselines()
    assert names("pc*", "pc", "zero") == [*[name for name in list_baselines() if name.startswith("pc")], "zero"]
    assert names("quick") == list(METHOD_SETS["quick"])


def test_a_class_of_ones_own_is_a_method():
    assert resolve_methods(["toys:Noise"]) == [Method("toys:Noise", "toy-noise", "undirected")]
    assert load_method("toys:Noise").title == "Noise"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("gess", "did you mean 'ges'"),
        ("zz*", "no method is called"),
        ("toys:Nobody", "cannot be loaded: module 'toys' has no attribute 'Nobody'"),
        ("nowhere:Noise", "cannot be loaded: No module named 'nowhere'"),
        ("toys:np", "is no class derived from"),
        ("graphbam.benchmarks.baselines.zero:Zero", "are both called 'zero'"),
    ],
)
def test_what_is_no_method_is_refused(word, message):
    with pytest.raises(ConfigError, match=message):
        resolve_methods(["zero", word])
    with pytest.raises(ConfigError, match="no method is asked for"):
        resolve_methods([])
