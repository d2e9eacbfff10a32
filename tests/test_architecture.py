"""Who may import whom: one allow-list over every module, so that each room can be understood without those above it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src" / "graphbam"

PRODUCT = {
    "errors", "machine", "graphs", "tables", "nn", "directions", "result", "sparse", "inference", "output", "questions",
}  # fmt: skip
MAKING = {"simulation", "training", "benchmarks"}

ALLOWED = {
    "errors": set(),
    "machine": {"errors"},
    "graphs": {"errors", "output"},
    "tables": {"errors"},
    "nn": {"errors", "machine"},
    "directions": {"errors", "graphs"},
    "result": {"errors", "graphs", "directions", "output", "questions"},
    "sparse": {"errors", "graphs", "directions", "result", "output"},
    "inference": {"errors", "machine", "graphs", "tables", "nn", "directions", "result", "sparse"},
    "output": {"errors", "machine", "graphs", "result", "sparse", "tables.domain"},
    "questions": {"errors", "graphs", "result", "output"},
    "simulation": {"errors", "machine", "graphs", "tables.standard"},
    "training": {"errors", "machine", "graphs", "tables", "nn", "directions", "simulation"},
    "benchmarks": PRODUCT | {"simulation", "training"},
    "cli": PRODUCT | MAKING | {"web"},
    "web": PRODUCT | {"cli"},
    "__main__": {"cli"},
}
"""A room, and the rooms or modules it may import, inside functions too; itself, always."""

LAZY_ROOMS = {
    ("graphs", "output"), ("result", "output"), ("sparse", "output"), ("result", "questions"), ("questions", "output"),
}  # fmt: skip
"""Imports that are allowed inside a method only."""

OPTIONAL = {
    "anndata",
    "dask",
    "distributed",
    "matplotlib",
    "ray",
    "py_mini_racer",
    "openpyxl",
    "gadjid",
    "sklearn",
    "scipy",
    "pyarrow",
    "starlette",
    "uvicorn",
}
"""Optional packages: imported inside functions, never while graphbam loads."""

FOREIGN = {
    "machine": set(), "graphs": {"numpy"}, "directions": {"numpy"}, "nn": {"numpy", "torch", "safetensors", "triton"},
}  # fmt: skip
"""Rooms that load with little: the packages they may import at the top of a module."""

ROOT = {"__init__", "errors", "result", "sparse", "inference", "__main__"}
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


def room_of(path):
    return module_of(path).split(".")[0]


INNER = [path for path in FILES if module_of(path) != "__init__"]


def test_every_room_is_listed():
    assert {room_of(path) for path in INNER} <= {*ALLOWED}, "say which rooms a new one may import"


def test_imports_stay_within_the_allow_list():
    strange = {}
    for path in INNER:
        seen = rooms_in(imported(ast.walk(tree_of(path))))
        strange[module_of(path)] = {name for name in seen if not within(name, ALLOWED[room_of(path)] | {room_of(path)})}
    assert {module: names for module, names in strange.items() if names} == {}


def test_imports_are_absolute():
    relative = {
        module_of(path): node.lineno
        for path in FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.level
    }
    assert relative == {}


def test_optional_packages_and_pictures_wait_inside_functions():
    early = {}
    for path in FILES:
        at_once, room = imported(tree_of(path).body), room_of(path)
        early[module_of(path)] = {name for name in rooms_in(at_once) if (room, name.split(".")[0]) in LAZY_ROOMS}
        if room != "web":  # the web package as a whole is loaded inside a function
            early[module_of(path)] |= {name for name in at_once if within(name, OPTIONAL)}
    assert {module: names for module, names in early.items() if names} == {}


def test_the_vocabulary_loads_with_little():
    heavy = {}
    for path in (path for path in INNER if room_of(path) in FOREIGN):
        outside = {name.split(".")[0] for name in imported(tree_of(path).body)} - {"graphbam"}
        heavy[module_of(path)] = outside - sys.stdlib_module_names - FOREIGN[room_of(path)]
    assert {module: names for module, names in heavy.items() if names} == {}


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
