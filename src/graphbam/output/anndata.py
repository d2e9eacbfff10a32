"""Result → AnnData: probabilities as sparse matrices over its genes, and what to know about them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from graphbam.errors import ResultError
from graphbam.graphs.cut import Cut
from graphbam.result import Result
from graphbam.sparse import SparseResult

__all__ = ["to_anndata"]

STORED_FROM = 0.01
"""Pairs less likely than this are not stored."""


def to_anndata(result: Result | SparseResult, data: Any, key: str = "graphbam", cut: Cut | float | None = None) -> None:
    """Write an answer into the AnnData that its table came from.

    Parameters
    ----------
    result : Result or SparseResult
        Its variables must be genes of the AnnData; genes that were not asked about have no entries.
    data : AnnData
        Gets ``.varp[key + "_skeleton"]``, the probabilities of links from 0.01 on, symmetric; where directions are
        known ``.varp[key + "_arrows"]``, the edges of `graph` at the cut, 1 in row i and column j for i → j and on both
        sides for an open link; and ``.uns[key]``: cut, changes, warnings and provenance as JSON.
    key : str
        What to call it.
    cut : Cut or float, optional
        Chooses the links of the graph, as in `Result.graph`.
    """
    from scipy.sparse import csr_matrix

    if not all(hasattr(data, part) for part in ("var_names", "varp", "uns")):
        raise ResultError(f"to_anndata takes an AnnData, and this is a {type(data).__name__}. Pass its AnnData.")
    place = {str(name): k for k, name in enumerate(data.var_names)}
    for name in result.names:
        if name not in place:
            raise ResultError(f"the AnnData has no gene {name!r}. Pass the one that the table came from.")
    where = np.array([place[name] for name in result.names])
    shape, chosen = (len(place), len(place)), Cut.read(cut)
    i, j, p = _list_pairs(result)
    rows, columns = np.concatenate([where[i], where[j]]), np.concatenate([where[j], where[i]])
    data.varp[f"{key}_skeleton"] = csr_matrix((np.concatenate([p, p]), (rows, columns)), shape=shape)
    if result.has_directions:
        graph = result.graph(chosen)
        arrows = [*graph.directed_edges(), *(e for a, b in graph.undirected_edges() for e in ((a, b), (b, a)))]
        tails, heads = ([place[edge[end]] for edge in arrows] for end in (0, 1))
        ones = np.ones(len(arrows), dtype=np.int8)
        data.varp[f"{key}_arrows"] = csr_matrix((ones, (tails, heads)), shape=shape)
    about = {"cut": chosen.to_dict(), "changes": list(result.changes), "warnings": list(result.warnings)}
    data.uns[key] = {**{name: json.dumps(value) for name, value in about.items()}, "provenance": _spell(result)}


def _list_pairs(result: Result | SparseResult) -> tuple[Any, Any, Any]:
    if isinstance(result, SparseResult):
        (i, j), p = result.pairs.T, result.probabilities[:, 1]
    else:
        i, j = np.triu_indices(result.n_variables, 1)
        p = result.probabilities[i, j, 1]
    stored = p >= STORED_FROM
    return i[stored], j[stored], p[stored]


def _spell(result: Result | SparseResult) -> str:
    return json.dumps(dict(result.provenance), default=str)
