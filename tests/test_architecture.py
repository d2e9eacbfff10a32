"""Imports point one way, so that each part can be understood, and loaded, without those above it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[1] / "src" / "graphbam"

MAKING = {"graphbam.simulation", "graphbam.training", "graphbam.benchmarks"}
FACES = {"graphbam.cli", "graphbam.web"}

DIRECTIONS = ["probabilities", "claims", "questions", "arrows", "orientation", "decisions", "extensions"]
"""Numpy only, and each may use only those before it."""

FORBIDDEN = {
    "graph": {"torch", "pandas", "graphbam.meek", "graphbam.metrics"} | MAKING,
    "meek": {"torch", "pandas"} | MAKING,
    "metrics": {"torch", "pandas"} | MAKING,
    "spd": {"pandas", "graphbam.layers", "graphbam.network"} | MAKING,
    "layers": {"pandas", "graphbam.network"} | MAKING,
    "network": {"pandas", "graphbam.estimator"} | MAKING,
    "table": MAKING,
    "preprocessing": MAKING,
    "edges": MAKING,
    "writers": MAKING,
    "figures": MAKING,
    "weights": MAKING,
    "avici": {"pandas"} | MAKING,
    "labelled": MAKING,
    "workload": {"pandas", "graphbam.networks"} | MAKING,
    "networks": {"graphbam.answers", "graphbam.stability", "graphbam.estimator"} | MAKING,
    "answers": {"graphbam.stability", "graphbam.estimator"} | MAKING,
    "stability": {"graphbam.answers", "graphbam.estimator"} | MAKING,
    "estimator": MAKING,
    "simulation": {
        "graphbam.network",
        "graphbam.layers",
        "graphbam.spd",
        "graphbam.training",
        "graphbam.benchmarks",
    },
    "training": {"graphbam.benchmarks"},
}
"""A module or package, and what it must never import, not even inside a function."""

FORBIDDEN |= {
    module: {"torch", "pandas", "graphbam.edges", *(f"graphbam.{later}" for later in DIRECTIONS[k + 1 :])} | MAKING
    for k, module in enumerate(DIRECTIONS)
}

LAZY = {"matplotlib", "gadjid", "sklearn", "scipy", "pyarrow", "starlette", "uvicorn"}
"""Optional packages: imported inside functions, never while graphbam loads."""

FILES = sorted(SRC.rglob("*.py"))


def module_of(path):
    """Name below graphbam: ``graph``, or ``simulation.noise``."""
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


def offences(seen, forbidden):
    return sorted(s for s in seen if any(f"{s}.".startswith(f"{f}.") for f in forbidden))


RULES = [
    pytest.param(path, forbidden, id=module_of(path))
    for path in FILES
    for module, forbidden in FORBIDDEN.items()
    if module_of(path) == module or module_of(path).startswith(f"{module}.")
]


@pytest.mark.parametrize(("path", "forbidden"), RULES)
def test_arrows_point_one_way(path, forbidden):
    seen = imported(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    assert not offences(seen, forbidden | FACES)


@pytest.mark.parametrize("path", [pytest.param(path, id=module_of(path)) for path in FILES])
def test_imports_are_absolute_and_optional_ones_wait(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    if not module_of(path).startswith("web"):  # the web package as a whole is loaded inside a function
        assert not offences(imported(tree.body), LAZY)


@pytest.mark.parametrize("module", ["graph", "meek", "metrics"])
def test_graphs_load_with_numpy_alone(module):
    tree = ast.parse((SRC / f"{module}.py").read_text(encoding="utf-8"))
    outside = {name.split(".")[0] for name in imported(tree.body)} - {"numpy", "graphbam"}
    assert outside <= {"__future__", "collections", "dataclasses", "typing"}


def test_the_guard_sees_every_way_to_import():
    lines = [
        "import graphbam.simulation.noise",
        "def f():",
        " from graphbam import training",
        " import torch.nn",
    ]
    seen = imported(ast.walk(ast.parse("\n".join(lines))))
    expected = ["graphbam.simulation.noise", "graphbam.training", "torch.nn"]
    assert offences(seen, MAKING | {"torch"}) == expected
    assert not offences({"graphbam.simulations", "torchvision"}, MAKING | {"torch"})
