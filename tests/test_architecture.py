"""Who may import whom: one allow-list over every module, so that each room can be understood without those above it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "graphbam"

PRODUCT = {"errors", "graphs", "tables", "nn", "directions", "result", "inference", "output"}
MAKING = {"simulation", "training", "benchmarks"}

ALLOWED = {
    "errors": set(),
    "graphs": {"errors"},
    "tables": {"errors"},
    "nn": {"errors"},
    "directions": {"errors", "graphs"},
    "result": {"errors", "graphs", "directions", "output"},
    "inference": {"errors", "graphs", "tables", "nn", "directions", "result"},
    "output": {"errors", "graphs", "result", "tables.domain"},
    "simulation": {"errors", "graphs", "tables.prepare"},
    "training": {"errors", "graphs", "tables", "nn", "directions", "simulation"},
    "benchmarks": PRODUCT | {"simulation", "training"},
    "cli": PRODUCT | MAKING | {"web"},
    "web": PRODUCT | {"cli"},
}
"""A room, and the rooms or modules it may import, inside functions too; itself, always."""

LAZY_ROOMS = {("result", "output")}
"""Imports that are allowed inside a method only."""

OPTIONAL = {"matplotlib", "gadjid", "sklearn", "scipy", "pyarrow", "starlette", "uvicorn"}
"""Optional packages: imported inside functions, never while graphbam loads."""

FOREIGN = {"graphs": {"numpy"}, "directions": {"numpy"}, "nn": {"numpy", "torch", "safetensors", "triton"}}
"""Rooms that load with little: the packages they may import at the top of a module."""

ROOT = {"__init__", "errors", "result", "inference"}
"""All that may lie in the root; rooms are packages."""

FILES = sorted(SRC.rglob("*.py"))


def module_of(path):
    """Name below graphbam: ``result``, or ``simulation.noise``; a package goes by its own name."""
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


def imported(nodes):
    """Everything the given statements import, as dotted names."""
    seen = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            seen |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            seen |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return seen


def rooms_in(seen):
    """Modules of graphbam among imported names, as in `module_of`; the package itself does not count."""
    return {name.removeprefix("graphbam.") for name in seen if name.startswith("graphbam.")} - {"__version__"}


def within(module, rooms):
    """Whether a module is one of these rooms, or inside one."""
    return any(f"{module}.".startswith(f"{room}.") for room in rooms)


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def each_module(files=FILES):
    return pytest.mark.parametrize("path", [pytest.param(path, id=module_of(path)) for path in files])


INNER = [path for path in FILES if module_of(path) != "__init__"]


@each_module(INNER)
def test_imports_stay_within_the_allow_list(path):
    room = module_of(path).split(".")[0]
    assert room in ALLOWED, f"{room} is not listed: say which rooms it may import"
    seen = rooms_in(imported(ast.walk(tree_of(path))))
    assert sorted(name for name in seen if not within(name, ALLOWED[room] | {room})) == []


@each_module()
def test_imports_are_absolute_and_optional_ones_wait(path):
    tree, room = tree_of(path), module_of(path).split(".")[0]
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    at_once = imported(tree.body)
    if room != "web":  # the web package as a whole is loaded inside a function
        assert not {name for name in at_once if within(name, OPTIONAL)}
    assert not {name for name in rooms_in(at_once) if (room, name.split(".")[0]) in LAZY_ROOMS}


@each_module([path for path in INNER if module_of(path).split(".")[0] in FOREIGN])
def test_the_vocabulary_loads_with_little(path):
    import sys

    outside = {name.split(".")[0] for name in imported(tree_of(path).body)} - {"graphbam"}
    assert outside - sys.stdlib_module_names <= FOREIGN[module_of(path).split(".")[0]]


def test_nobody_imports_in_circles():
    edges = {}
    for path in INNER:
        seen = rooms_in(imported(tree_of(path).body))
        modules = {module_of(other) for other in INNER}
        edges[module_of(path)] = {n for n in seen if n in modules} | {
            n.rpartition(".")[0] for n in seen if n.rpartition(".")[0] in modules and n not in modules
        }
    done, path = set(), []

    def visit(module):
        assert module not in path, f"circle: {' → '.join([*path[path.index(module) :], module])}"
        if module not in done:
            path.append(module)
            for other in sorted(edges[module] - {module}):
                visit(other)
            path.pop()
            done.add(module)

    for module in sorted(edges):
        visit(module)


def test_little_lies_in_the_root():
    assert {path.stem for path in SRC.glob("*.py")} <= ROOT


def test_the_guard_sees_every_way_to_import():
    lines = ["import graphbam.simulation.noise", "def f():", " from graphbam import training", " import torch.nn"]
    seen = imported(ast.walk(ast.parse("\n".join(lines))))
    assert rooms_in(seen) == {"simulation.noise", "training"}
    assert within("simulation.noise", {"simulation"})
    assert not within("simulations", {"simulation"})
