"""How gcastle is loaded."""

from __future__ import annotations

import os
from typing import Any

import torch


def import_castle() -> Any:
    """`castle.algorithms` with torch behind it; only to be called inside `isolated`.

    On import, and then only, gcastle makes doubles torch's default and relies on it later.
    """
    os.environ["CASTLE_BACKEND"] = "pytorch"
    torch.set_default_dtype(torch.float64)
    import castle.algorithms

    return castle.algorithms
