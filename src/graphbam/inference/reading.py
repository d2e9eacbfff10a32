"""Read a table as the settings ask. No torch is loaded, so that another process may do it meanwhile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from graphbam.errors import TableError
from graphbam.tables.limit import RowLimit
from graphbam.tables.table import Table

if TYPE_CHECKING:
    from graphbam.inference.settings import InferConfig


def read_source(data: Any, config: InferConfig, name: str | None = None) -> Table:
    """The table that `infer` is asked about; one that has been read already stays as it is."""
    if isinstance(data, Table):
        return data
    from graphbam.tables.interventions import read_experiment  # pandas is loaded where there is something to read

    limit = RowLimit(config.prepare.most_read, config.prepare.seed)
    try:
        return read_experiment(data, config.interventions, encode=config.encode, drop=config.drop, limit=limit)
    except MemoryError:
        raise refuse_size(data, name) from None


def refuse_size(data: Any, name: str | None = None) -> TableError:
    """The error for a table that is too large."""
    return TableError(f"{describe_source(data, name)} does not fit into memory. Pass fewer rows or columns.")


def describe_source(data: Any, name: str | None) -> str:
    """What to call a table that could not be used."""
    if name is not None:
        return name
    if isinstance(data, Table):
        return data.source
    return str(data) if isinstance(data, (str, os.PathLike)) else f"a {type(data).__name__}"
