"""What the pages say exists, and what they tell users to type does what they say."""

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from cases import each
from graphbam.benchmarks.baselines import BASELINES
from graphbam.simulation import GRAPHS, MECHANISMS, NOISES, SimulationConfig
from standins import Contrast

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
MODULES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "runs").glob("*.py")])

each_page = each("page", PAGES)


def read_docstrings(path):
    """Docstrings of a module, its classes and functions, and the lines below fields and constants."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    texts = [node.value.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return "\n".join(text for text in texts if isinstance(text, str))


def find_missing(text):
    """What a text names and nobody has: names within graphbam, scripts, tests."""
    names = set(re.findall(r"\bgraphbam(?:\.[A-Za-z_]\w*)+", text))
    paths = set(re.findall(r"\b(?:runs|tests|docs)/[\w./-]+\.(?:py|md)\b", text))
    lost = [path for path in paths if not (ROOT / path).exists()]
    return sorted([*lost, *(name for name in names if not is_there(name))])


def is_there(name):
    """Whether a dotted name is a module of the package, or something in one."""
    module, rest = name, []
    while True:
        try:
            found = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    for part in rest:
        if not hasattr(found, part):
            return part in getattr(found, "__annotations__", {})
        found = getattr(found, part)
    return True


@each_page
def test_every_name_and_script_on_a_page_exists(page):
    assert find_missing(page.read_text(encoding="utf-8")) == []


def test_every_name_and_script_in_a_docstring_exists():
    missing = {str(path.relative_to(ROOT)): find_missing(read_docstrings(path)) for path in MODULES}
    assert {path: names for path, names in missing.items() if names} == {}


def test_the_search_sees_what_is_missing():
    text = "`graphbam.sem`, `graphbam.simulation.plan.Plan.levels`, runs/nobody.py, runs/validate.py, `graphbam.infer`"
    assert find_missing(text) == ["graphbam.sem", "runs/nobody.py"]


@each_page
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    folder = page.parent  # not resolved: cards are read through docs/, where their links are relative to
    assert [link for link in links if "://" not in link and not (folder / link).exists()] == []


@each_page
def test_no_number_rests_on_a_script_that_was_not_kept(page):
    assert not re.search("throw-?away", page.read_text(encoding="utf-8"))


def test_the_readme_counts_right():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{len(MECHANISMS)} mechanisms, {len(GRAPHS)} kinds of graph and {len(NOISES)} noise families" in text
    assert "Fifty methods" in text
    assert len(BASELINES) == 50
    weights = sum(path.stat().st_size for path in (ROOT / "src" / "graphbam" / "weights").glob("*.safetensors"))
    assert f"{weights / 1e6:.1f} MB of weights" in text


def test_the_readme_maps_every_room():
    """Few lines, all of them true: nothing is missing, nothing is invented."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.search(r"```\nsrc/graphbam/\n(.*?)\nruns/", text, re.DOTALL)[1].splitlines()
    named = {room.strip().rstrip("/") for line in lines for room in line[:17].split("·")}
    rooms = {path.stem for path in (ROOT / "src" / "graphbam").glob("*") if path.suffix == ".py" or path.is_dir()}
    assert named == {room for room in rooms if not room.startswith("_")} - {"errors", "weights"}
    assert len(lines) <= 13


def test_the_readme_has_the_results_of_the_rows(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "runs")
    import benchmark_tables

    rows = benchmark_tables.read_rows([ROOT / "runs" / "results" / "tables"])
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("*", "")
    for line in benchmark_tables.third_party_table(rows).itertuples(index=False):
        assert "| " + " | ".join(line) + " |" in text


def test_the_shares_of_broad_are_those_of_the_page():
    config = SimulationConfig.broad()
    rows = re.findall(r"^\| `([\w-]+)` (\.\d+) \|", (DOCS / "worlds.md").read_text(encoding="utf-8"), re.MULTILINE)
    effects = ("hidden", "interventions", "missing")
    assert {name: float(share) for name, share in rows} == {name: getattr(config, name) for name in effects} | dict(
        config.worlds
    )


def read_blocks(name):
    """Python blocks of a page, in order."""
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("colliders", ["stand-in", "shipped"])
def test_directions_lead_to_an_effect(tmp_path, monkeypatch, colliders):
    pytest.importorskip("dowhy")
    monkeypatch.chdir(tmp_path)
    if colliders == "stand-in":
        monkeypatch.setattr("graphbam.inference.networks.open_colliders", lambda colliders, device: Contrast())
    scope = {}
    for block in read_blocks("directions.md"):
        exec(block, scope)
    arrows = {("lottery", "training"), ("talent", "training"), ("talent", "wage"), ("training", "wage")}
    assert set(scope["graph"].directed_edges()) == arrows <= set(scope["known"].cpdag().directed_edges())
    assert scope["effects"] == pytest.approx([2], abs=0.1)
    plain = np.polyfit(scope["training"], scope["wage"], 1)[0]
    assert plain == pytest.approx(3, abs=0.15)
    assert {path.name for path in tmp_path.iterdir()} == {"wages.png", "wages.graphml"}


@pytest.mark.filterwarnings("ignore")
def test_questions_get_the_answers_the_page_gives(tmp_path, monkeypatch):
    pytest.importorskip("dowhy")
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in read_blocks("questions.md"):
        exec(block, scope)
    assert set(scope["blanket"].variables) == {"training", "talent"}
    assert scope["reasons"].explained_by == ("talent", "training")
    assert scope["roles"].adjustment_sets == [("talent",)]
    assert scope["roles"].adjustment["valid"][0] > 0.7
    assert scope["estimate"].value == pytest.approx(2, abs=0.1)
    assert scope["score"].direction_accuracy == 1
    assert {path.name for path in tmp_path.iterdir()} == {"why.png"}
