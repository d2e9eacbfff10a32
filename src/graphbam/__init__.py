"""The graph of a table in one forward pass."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from graphbam.errors import (
    ConfigError,
    GraphbamError,
    GraphError,
    KnowledgeError,
    OrientationMissingError,
    ResultError,
    SeveralTablesError,
    TableError,
    WeightsError,
)

if TYPE_CHECKING:  # the same names as in _HOMES, for type checkers and editors
    from graphbam.benchmarks.run import benchmark
    from graphbam.graphs.cut import Cut
    from graphbam.graphs.graph import Graph
    from graphbam.graphs.knowledge import Knowledge
    from graphbam.inference import BAM, PrepareConfig, infer, infer_many
    from graphbam.nn.weights import load_weights, save_weights
    from graphbam.output.anndata import to_anndata
    from graphbam.output.figures import plot
    from graphbam.output.files import export
    from graphbam.result import Failure, OrientedGraph, Result
    from graphbam.simulation import SimulationConfig, simulate
    from graphbam.sparse import SparseGraph, SparseResult
    from graphbam.tables.anndata import from_anndata
    from graphbam.tables.examples import example_path
    from graphbam.training import Budget, TrainConfig, fine_tune, train

__version__ = "0.1.0"

__all__ = [
    "BAM",
    "Budget",
    "ConfigError",
    "Cut",
    "Failure",
    "Graph",
    "GraphError",
    "GraphbamError",
    "Knowledge",
    "KnowledgeError",
    "OrientationMissingError",
    "OrientedGraph",
    "PrepareConfig",
    "Result",
    "ResultError",
    "SeveralTablesError",
    "SimulationConfig",
    "SparseGraph",
    "SparseResult",
    "TableError",
    "TrainConfig",
    "WeightsError",
    "__version__",
    "benchmark",
    "example_path",
    "export",
    "fine_tune",
    "from_anndata",
    "infer",
    "infer_many",
    "load_weights",
    "plot",
    "save_weights",
    "simulate",
    "to_anndata",
    "train",
]

_HOMES = {
    "BAM": "graphbam.inference",
    "Budget": "graphbam.training",
    "Cut": "graphbam.graphs.cut",
    "Failure": "graphbam.result",
    "Graph": "graphbam.graphs.graph",
    "Knowledge": "graphbam.graphs.knowledge",
    "OrientedGraph": "graphbam.result",
    "PrepareConfig": "graphbam.inference",
    "Result": "graphbam.result",
    "SimulationConfig": "graphbam.simulation",
    "SparseGraph": "graphbam.sparse",
    "SparseResult": "graphbam.sparse",
    "TrainConfig": "graphbam.training",
    "benchmark": "graphbam.benchmarks.run",
    "example_path": "graphbam.tables.examples",
    "export": "graphbam.output.files",
    "fine_tune": "graphbam.training",
    "from_anndata": "graphbam.tables.anndata",
    "infer": "graphbam.inference",
    "infer_many": "graphbam.inference",
    "load_weights": "graphbam.nn.weights",
    "plot": "graphbam.output.figures",
    "save_weights": "graphbam.nn.weights",
    "simulate": "graphbam.simulation",
    "to_anndata": "graphbam.output.anndata",
    "train": "graphbam.training",
}
"""Public verb or noun → module that defines it. Loaded on first use, so that `import graphbam` stays quick."""


if not TYPE_CHECKING:  # or every misspelt name would be Any

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'graphbam' has no attribute {name!r}; it offers {', '.join(__all__)}")
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
