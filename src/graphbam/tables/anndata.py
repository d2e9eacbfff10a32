"""AnnData → the table to infer from: a layer of it, some of its genes, sparse matrices opened for these alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from graphbam.errors import TableError
from graphbam.tables.read import not_among

__all__ = ["from_anndata"]


def from_anndata(data: Any, *, layer: str | None = None, genes: str | Iterable[str] | None = None) -> pd.DataFrame:
    """The cells of an AnnData as a table that `infer` takes.

    Parameters
    ----------
    data : AnnData
    layer : str, optional
        A key of ``data.layers``, or ``"raw"`` for ``data.raw``; ``data.X`` if nothing is given.
    genes : str or iterable of str, optional
        Names of genes, or one column of ``data.var`` that says of each gene whether to take it, such as
        ``"highly_variable"``; all of them if nothing is given. Only these are taken out of a sparse matrix.

    Returns
    -------
    DataFrame
        One row per cell, one column per gene.

    Raises
    ------
    TableError
        If it is no AnnData, or has no such layer, gene or column.

    Examples
    --------
    >>> import anndata
    >>> cells = anndata.AnnData(np.eye(3), var=pd.DataFrame({"keep": [True, False, True]}, index=["A", "B", "C"]))
    >>> cells.layers["counts"] = 2 * np.eye(3)
    >>> from_anndata(cells, layer="counts", genes="keep").columns.tolist()
    ['A', 'C']
    """
    if not all(hasattr(data, part) for part in ("X", "layers", "var_names", "obs_names")):
        known = isinstance(data, (str, os.PathLike))
        way = "Read the file with anndata.read_h5ad first" if known else "Pass other tables to infer as they are"
        raise TableError(f"from_anndata takes an AnnData, and this is a {type(data).__name__}. {way}.")
    matrix, names = _choose_layer(data, layer)
    places = _choose_genes(data, names, genes)
    chosen = matrix[:, places]
    values = chosen.toarray() if hasattr(chosen, "toarray") else np.asarray(chosen)
    return pd.DataFrame(values, index=[str(cell) for cell in data.obs_names], columns=[names[k] for k in places])


def _choose_layer(data: Any, layer: str | None) -> tuple[Any, list[str]]:
    """A matrix and the names of its columns."""
    if layer == "raw" and data.raw is not None:
        return data.raw.X, [str(name) for name in data.raw.var_names]
    if layer is not None and layer not in data.layers:
        there = ", ".join(map(repr, data.layers)) or "none"
        raise TableError(f"this AnnData has no layer {layer!r}; it has {there}. Leave it out to take .X.")
    matrix = data.X if layer is None else data.layers[layer]
    if matrix is None:
        there = ", ".join(map(repr, data.layers)) or "none"
        raise TableError(f"this AnnData holds no matrix: its .X is empty. Choose one of its layers ({there}).")
    return matrix, [str(name) for name in data.var_names]


def _choose_genes(data: Any, names: list[str], genes: str | Iterable[str] | None) -> list[int]:
    """Places of the genes to take, in the order of the table."""
    if genes is None:
        return list(range(len(names)))
    if isinstance(genes, str) and genes in data.var.columns:
        flags = data.var[genes]
        if not pd.api.types.is_bool_dtype(flags):
            raise TableError(f"the column {genes!r} of .var holds {flags.dtype}, not True and False. Compare it first.")
        if names == [str(name) for name in data.var_names]:  # a name may occur twice, and be flagged once
            return np.flatnonzero(flags.to_numpy()).tolist()
        wanted = {str(name) for name in data.var_names[flags.to_numpy()]}
    else:
        wanted = {genes} if isinstance(genes, str) else {str(name) for name in genes}
    for name in sorted(wanted - set(names)):
        raise TableError(f"genes names {name!r}, {not_among(name, names)}")
    return [k for k, name in enumerate(names) if name in wanted]
