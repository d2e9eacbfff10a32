"""`infer`, `infer_many` and `BAM`: read → prepare → network → result."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in _HOMES, for type checkers and editors
    from graphbam.inference.estimator import BAM
    from graphbam.inference.journey import infer, infer_many
    from graphbam.inference.settings import InferConfig
    from graphbam.tables.config import PrepareConfig

__all__ = ["BAM", "InferConfig", "PrepareConfig", "infer", "infer_many"]

# Loaded on first use: the settings are also those of the command line, which starts without torch.
_HOMES = {
    "BAM": "graphbam.inference.estimator",
    "InferConfig": "graphbam.inference.settings",
    "PrepareConfig": "graphbam.tables.config",
    "infer": "graphbam.inference.journey",
    "infer_many": "graphbam.inference.journey",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'graphbam.inference' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
