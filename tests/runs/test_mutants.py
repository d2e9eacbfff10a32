"""The mutants of runs/mutants.py: the list is true, and the verdicts are honest."""

from pathlib import Path

import pytest

import graphbam


@pytest.fixture
def mutants(run_script):
    return run_script("mutants", run_name="mutants")


def test_every_snippet_occurs_exactly_once_and_every_room_has_one(mutants):
    assert {m.old: mutants["find_snippet"](m) for m in mutants["MUTANTS"] if mutants["find_snippet"](m) != 1} == {}
    assert all(m.old != m.new for m in mutants["MUTANTS"])
    assert len(mutants["MUTANTS"]) >= 40
    rooms = {path.parent.name for path in Path(graphbam.__file__).parent.glob("*/__init__.py")}
    assert {m.file.partition("/")[0] for m in mutants["MUTANTS"]} == {*rooms, "result.py", "runs"}


@pytest.mark.parametrize(
    ("new", "tests", "kind"),
    [
        ("x + 2", "test_it.py", "killed"),
        ("1 + x", "test_it.py", "survived"),
        ("x + 2", "test_it.py -k nothing", "error"),  # nothing was tested: that is no death
    ],
)
def test_only_a_failing_test_kills(mutants, tmp_path, new, tests, kind):
    source = tmp_path / "src" / "graphbam" / "one.py"
    source.parent.mkdir(parents=True)
    (source.parent / "__init__.py").touch()
    source.write_text("def rise(x):\n    return x + 1\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text("from graphbam.one import rise\n\ndef test_it():\n    assert rise(1) == 2\n")
    mutant = mutants["Mutant"]("one.py", "x + 1", new, tests, "")
    assert mutants["try_mutant"](mutant, tmp_path).kind == kind
    assert source.read_text().endswith("x + 1\n")
    assert mutants["try_mutant"](mutant._replace(old="x - 1"), tmp_path).kind == "error"
