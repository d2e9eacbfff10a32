"""The graph of a table in one forward pass."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public verb or noun -> module that defines it. Loaded on first use, so that `import graphbam` stays quick.
_HOMES = {
    "BAM": "graphbam.estimator",
    "Graph": "graphbam.graph",
    "Knowledge": "graphbam.knowledge",
    "Result": "graphbam.edges",
    "example_path": "graphbam.examples",
    "export": "graphbam.writers",
    "infer": "graphbam.estimator",
    "infer_many": "graphbam.estimator",
    "plot": "graphbam.figures",
    "simulate": "graphbam.simulation",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'graphbam' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
