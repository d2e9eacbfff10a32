"""The graph of a table in one forward pass."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public verb or noun -> module that defines it. Loaded on first use, so that `import graphbam` stays quick.
_HOMES = {
    "BAM": "graphbam.inference.journey",
    "Budget": "graphbam.training",
    "Graph": "graphbam.graphs.graph",
    "Knowledge": "graphbam.graphs.knowledge",
    "Result": "graphbam.result",
    "TrainConfig": "graphbam.training",
    "benchmark": "graphbam.benchmarks.run",
    "example_path": "graphbam.tables.examples",
    "export": "graphbam.output.files",
    "fine_tune": "graphbam.training",
    "infer": "graphbam.inference.journey",
    "infer_many": "graphbam.inference.journey",
    "load_weights": "graphbam.nn.weights",
    "plot": "graphbam.output.figures",
    "save_weights": "graphbam.nn.weights",
    "simulate": "graphbam.simulation",
    "train": "graphbam.training",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'graphbam' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
