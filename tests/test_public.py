"""The public face: every name it promises is there, and type checkers know what it is."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import graphbam
from cases import each
from graphbam.errors import ConfigError, GraphbamError, Setting


@each("name", graphbam.__all__)
def test_every_public_name_resolves(name):
    assert getattr(graphbam, name) is not None
    assert name in dir(graphbam)


def test_names_are_promised_once_and_each_has_a_home():
    assert len(set(graphbam.__all__)) == len(graphbam.__all__)
    errors = {name for name in graphbam.__all__ if name.endswith("Error")}
    assert set(graphbam.__all__) == {*graphbam._HOMES, *errors, "__version__"}
    assert errors == {one.__name__ for one in _family(GraphbamError)}


def _family(error):
    return {error}.union(*(_family(one) for one in error.__subclasses__()))


def test_an_unknown_name_is_refused_with_what_there_is():
    with pytest.raises(AttributeError, match="no attribute 'infre'; it offers BAM"):
        _ = graphbam.infre


USE = """
import graphbam as gb
reveal_type(gb.infer("cells.csv"))
reveal_type(gb.Result.load)
reveal_type(gb.infer("cells.csv").plot)
reveal_type(gb.simulate()[0])
reveal_type(gb.TableError)
gb.infre
"""

SAID = [
    'Revealed type is "graphbam.result.Result"',
    'Revealed type is "def (path: str | os.PathLike[str]) -> graphbam.result.Result"',
    "-> matplotlib.figure.Figure",
    'Revealed type is "graphbam.graphs.graph.Graph"',
    "graphbam.errors.TableError",
    'Module has no attribute "infre"',
]


def test_type_checkers_know_every_public_name(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    monkeypatch.chdir(Path(__file__).parents[1])  # its settings, and what mypy remembers: a second instead of a minute
    names = "\n".join(f"reveal_type(gb.{name})" for name in graphbam.__all__)
    (tmp_path / "use.py").write_text(f"{USE}\n{names}\n")
    text, _, _ = api.run(["--strict", str(tmp_path / "use.py")])
    lines = [line.split("use.py:", 1)[1] for line in text.splitlines() if "use.py:" in line]
    for line, said in zip(lines, SAID, strict=False):
        assert said in line
    assert not [line for line in lines if '"Any"' in line]


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────


@each(("setting", "python", "option"), [
    (Setting("encode", True), "encode=True", "--encode"),
    (Setting("drop", ["a b", "c"]), "drop=['a b', 'c']", "--drop 'a b' --drop c"),
    (Setting("max_rows", 1), "max_rows=1", "--max-rows 1"),
    (Setting("colliders", None), "colliders=None", "--no-cpdag"),
    (Setting("required"), "required", "--require"),
])  # fmt: skip
def test_settings_are_spelled_as_the_reader_knows_them(setting, python, option):
    error = pickle.loads(pickle.dumps(ConfigError("Use ", setting, ".")))
    assert str(error) == f"Use {python}."
    assert error.say(Setting.as_option) == f"Use {option}."
