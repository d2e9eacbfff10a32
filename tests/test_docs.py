"""What the pages say exists, and what they tell users to type does what they say."""

import ast
import gzip
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from cases import each
from graphbam.benchmarks.baselines import BASELINES
from graphbam.simulation import GRAPHS, MECHANISMS, NOISES, SimulationConfig
from standins import Contrast

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
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


@each("page", [*PAGES, ROOT / "runs" / "NOTES.md"])
def test_links_lead_somewhere(page):
    lost = []
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        path = page.parent / link if link else page  # not resolved: cards are read in docs/, where their links begin
        is_there = "://" in link or (path.exists() and (not anchor or anchor in name_anchors(path)))
        lost += [] if is_there else [f"{link}#{anchor}"]
    assert lost == []


def name_anchors(page):
    """Names of the headings of a page, as links to them have them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}


@each_page
def test_no_number_rests_on_a_script_that_was_not_kept(page):
    assert not re.search("throw-?away", page.read_text(encoding="utf-8"))


@each_page
def test_no_place_is_left_for_what_is_to_come(page):
    assert not re.findall(r"^[A-Z]{4,}$|\bTODO\b|\bTBD\b", page.read_text(encoding="utf-8"), re.MULTILINE)


def test_pages_count_right():
    readme, train = (
        (folder / name).read_text(encoding="utf-8") for folder, name in ((ROOT, "README.md"), (DOCS, "train.md"))
    )
    assert f"{len(MECHANISMS)} mechanisms, {len(GRAPHS)} kinds of graph and {len(NOISES)} noise families" in train
    assert "fifty methods" in readme
    assert len(BASELINES) == 50
    weights = sum(path.stat().st_size for path in (ROOT / "src" / "graphbam" / "weights").glob("*.safetensors"))
    assert f"{weights / 1e6:.1f} MB of weights" in readme
    assert len(readme.splitlines()) <= 90, "one screen and a half: the rest belongs to docs/"


def test_the_map_has_every_room():
    """Few lines, all of them true: nothing is missing, nothing is invented."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = re.search(r"```\nsrc/graphbam/\n(.*?)\nruns/", text, re.DOTALL)[1].splitlines()
    named = {room.strip().rstrip("/") for line in lines for room in line[:17].split("·")}
    rooms = {path.stem for path in (ROOT / "src" / "graphbam").glob("*") if path.suffix == ".py" or path.is_dir()}
    assert named == {room for room in rooms if not room.startswith("_")} - {"errors", "weights"}
    assert len(lines) <= 14


def test_pages_have_the_results_of_the_rows(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "runs")
    import benchmark_tables

    rows = benchmark_tables.read_rows([ROOT / "runs" / "results" / "tables"])
    lines = {
        "| " + " | ".join(line) + " |" for line in benchmark_tables.third_party_table(rows).itertuples(index=False)
    }
    for page in (ROOT / "README.md", DOCS / "benchmark.md"):
        shown = page.read_text(encoding="utf-8").replace("*", "")
        assert [line for line in lines if line not in shown] == []


def test_readme_and_model_card_say_the_same_of_third_party_tables():
    """Two ways to measure, `graphbam benchmark` and runs/bench_answers.py, agree."""
    (ours,) = re.findall(
        r"^\| graphbam \| (.*) \| 125 of 125 \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M
    )
    skeleton, moral, f1, shd, directed, right = ours.split(" | ")
    card = (DOCS / "edges.md").read_text(encoding="utf-8").replace("*", "")
    (means,) = re.findall(r"^\| mean over families \| 125 \| (.*) \| \.\d+ \|$", card, re.M)
    assert means.split(" | ") == [skeleton, moral, f1, directed, right, shd]


def test_the_shares_of_broad_are_those_of_the_page():
    config = SimulationConfig.broad()
    text = (DOCS / "worlds.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` (\.\d+) \| ([\w .]+) \|", text, re.MULTILINE)
    effects = {name: getattr(config, name) for name in ("hidden", "interventions", "missing")}
    assert {name: float(share) for name, share, _ in rows} == effects | dict(config.worlds)
    assert {name: float(share) for name, _, share in rows if share.startswith(".")} == dict(config.small_worlds)
    assert {name for name, _, share in rows if share == "the same"} == set(effects)


def read_blocks(name):
    """Python blocks of a page, in order; those that cannot run are marked `py` instead."""
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_of_hidden_causes_names_those_of_its_world():
    said: dict[str, object] = {}
    exec(read_blocks("hidden.md")[0], said)
    first = said["suspects"].head(6)
    assert {frozenset(pair) for pair in zip(first["a"], first["b"], strict=True)} == set(
        map(frozenset, said["world"].bidirected)
    )
    assert said["result"].say_hidden().startswith("6 pairs")
    silent, alarmed = (rerun(read_blocks("hidden.md")[0], "seed=142", f"seed={seed}") for seed in (9, 36))
    assert silent["world"].bidirected
    assert silent["result"].say_hidden() == ""
    assert alarmed["result"].say_hidden().startswith("10 pairs")
    suspected = {frozenset(pair) for pair in alarmed["suspects"].head(10)[["a", "b"]].values.tolist()}
    assert len(suspected & set(map(frozenset, alarmed["world"].bidirected))) == 1


def rerun(block, old, new):
    """What a block leaves with something in it replaced."""
    assert old in block
    left = {}
    exec(block.replace(old, new), left)
    return left


def test_the_site_builds_without_a_warning(tmp_path):
    """Every page is in the navigation, every link and anchor leads somewhere, every docstring can be read."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    told = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert told.returncode == 0, told.stdout + told.stderr
    text = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    assert all(
        f'id="graphbam.{name}"' in text for name in gb.__all__ if name != "__version__" and not name.endswith("Error")
    )
    assert not re.search(r'<(script|link)[^>]+(src|href)="(https?:)?//', text)


def test_the_gallery_is_that_of_its_script(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "runs")
    import gallery

    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == [entry.title for entry in gallery.ENTRIES]
    assert all(entry.code in text for entry in gallery.ENTRIES)
    assert all((DOCS / "gallery" / f"{entry.name}.png").stat().st_size < 100_000 for entry in gallery.ENTRIES)
    assert all(gallery.run(entry)["result"].names for entry in gallery.ENTRIES)  # every block of the page runs
    entry = next(entry for entry in gallery.ENTRIES if entry.name == "wages")
    monkeypatch.setattr("sys.argv", ["gallery.py", "--only", entry.name])
    gallery.main()
    assert "F1 of the links 1.00" in capsys.readouterr().out


RUN_ELSEWHERE = {"directions.md", "questions.md"}
"""Pages whose blocks are run below, with what they must give."""

WITH_BLOCKS = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")]


@pytest.fixture
def same_settings():
    """What a page sets for all of pandas and anndata ends with it."""
    kept = anndata.settings.allow_write_nullable_strings
    with pd.option_context("mode.string_storage", pd.options.mode.string_storage):
        yield
    anndata.settings.allow_write_nullable_strings = kept


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "page", [page for page in WITH_BLOCKS if page.name not in RUN_ELSEWHERE], ids=lambda page: page.stem
)
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch, same_settings):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cells.csv").write_bytes(gzip.decompress(gb.example_path("sachs").read_bytes()))
    scope = {}
    for block in read_blocks(page):
        exec(block, scope)
    CHECKS.get(page.stem, lambda scope: None)(scope)


def check_tutorial(scope):
    """What the text says in words."""
    found = scope["result"].cpdag()
    assert (len(found.undirected_edges()), found.directed_edges()) == (9, [])
    assert not scope["result"].changes
    assert len(scope["links"].undirected_edges()) == 6
    assert scope["result"].table().loc[0, ["a", "b"]].tolist() == ["Erk", "Akt"]  # the surest link
    assert scope["result"].markov_blanket("Akt").variables == ("Erk", "PKA")
    assert scope["sets"] == [("PKA",)]
    size = scope["sizes"].set_index(["a", "b"])["size"].round(2)
    assert (size["Erk", "Akt"], size["PKA", "Akt"]) == (0.87, 0.18)


def check_interventions(scope):
    watched, told = scope["watched"].cpdag(), scope["told"].cpdag()
    assert (len(watched.directed_edges()), len(told.directed_edges())) == (7, 9)
    assert {f"{a} -> {b}" for a, b in told.directed_edges()} <= set(scope["truth"])
    assert scope["told"].score(scope["truth"]).direction_accuracy == 1


def check_handover(scope):
    assert scope["roles"].adjustment_sets == [("rain",)]
    assert scope["effect"].value > 0
    assert scope["spread"]


def check_cells(scope):
    """The answer that came back from the file, beside the truth."""
    names, p = list(scope["graph"].names), scope["p"]
    linked, found = scope["graph"].skeleton().adjacency > 0, p.loc[names, names].to_numpy() >= 0.5
    assert (found & linked).sum() > 0.5 * linked.sum()
    assert (found & ~linked).sum() < 0.2 * found.sum()
    assert (p.drop(columns=names) == 0).all(axis=None)  # genes that were not asked about
    assert scope["back"].varp["graphbam_arrows"].nnz


CHECKS = {
    "tutorial": check_tutorial,
    "interventions": check_interventions,
    "handover": check_handover,
    "cells": check_cells,
}


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
    one, *others = (result.probabilities for result in scope["told"])
    assert all(np.allclose(one, other, atol=1e-5) for other in others)  # three ways to say the same
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
