"""How far a guessed graph is from the true one.

Distances compare two adjacency matrices (convention in `graphbam.graphs.graph`). The other functions compare truth
and guess entry by entry, whatever their shape; `pair_values` takes each pair once out of a symmetric matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import ConfigError, GraphError
from graphbam.graphs.graph import check_adjacency, skeleton, topological_order

__all__ = [
    "accuracy",
    "average_precision",
    "expected_calibration_error",
    "f1",
    "pair_values",
    "precision_recall",
    "shd",
    "sid",
    "skeleton_average_precision",
    "skeleton_shd",
]


# ── distances between graphs ──────────────────────────────────────────────────────────────────────────────


def shd(a: ArrayLike, b: ArrayLike) -> int:
    """Structural Hamming distance: the number of pairs whose edge differs in any way.

    Parameters
    ----------
    a, b : array_like, shape (d, d)
        DAGs, CPDAGs or other graphs.

    Returns
    -------
    int
        A missing, an additional, a reversed and a wrongly (un)directed edge each count one.

    Examples
    --------
    >>> shd([[0, 1], [0, 0]], [[0, 0], [1, 0]]), shd([[0, 1], [0, 0]], [[0, 1], [1, 0]])
    (1, 1)
    """
    first, second = _same_size(a, b)
    differs = first != second
    return int(np.triu(differs | differs.T).sum())


def skeleton_shd(a: ArrayLike, b: ArrayLike) -> int:
    """Structural Hamming distance between skeletons: pairs adjacent in one graph only.

    Examples
    --------
    >>> skeleton_shd([[0, 1], [0, 0]], [[0, 0], [1, 0]]), skeleton_shd([[0, 1], [0, 0]], [[0, 0], [0, 0]])
    (0, 1)
    """
    return shd(skeleton(a), skeleton(b))


def sid(true: ArrayLike, guess: ArrayLike) -> int:
    """Structural intervention distance, computed by the optional package gadjid.

    Parameters
    ----------
    true, guess : array_like, shape (d, d)
        DAGs. For a CPDAG, take a `graphbam.graphs.equivalence.consistent_extension` first.

    Returns
    -------
    int
        The number of ordered pairs (i, j) for which adjusting for the parents of i in `guess` does not give
        the effect of i on j in `true`. Not symmetric: of the two graphs, `true` decides what is right.

    Raises
    ------
    GraphError
        If either graph is not a DAG, or they differ in size.
    ImportError
        If gadjid is not installed.

    Notes
    -----
    gadjid reads our ``adj[i, j] = 1`` for i → j under its setting ``"from row to column"``. Its other setting
    transposes both graphs, and would give 4 in the example: there the truth would be 0 ← 2 → 1.

    Examples
    --------
    In 0 → 2 ← 1 neither 0 nor 1 reacts to 2, although both depend on it; a guess without edges gets these
    two effects wrong:

    >>> sid([[0, 0, 1], [0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0, 0, 0]])
    2
    """
    first, second = _same_size(true, guess)
    for graph in (first, second):
        topological_order(graph)  # raises for anything but a DAG, and says why
    if len(first) < 2:
        return 0  # gadjid panics on a single variable
    _, mistakes = _import_gadjid().sid(
        first.astype(np.int8), second.astype(np.int8), edge_direction="from row to column"
    )
    return int(mistakes)


def _import_gadjid() -> Any:
    try:
        import gadjid
    except ImportError as error:
        raise ImportError(
            "Structural intervention distance needs the package gadjid, which is not installed: "
            "pip install 'graphbam[benchmark]'"
        ) from error
    return gadjid


def _same_size(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    first, second = check_adjacency(a), check_adjacency(b)
    if len(first) != len(second):
        raise GraphError(f"One graph has {len(first)} variables, the other {len(second)}; compare equal sizes.")
    return first, second


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────


def pair_values(matrix: ArrayLike) -> NDArray[Any]:
    """Take the entries above the diagonal: each pair i < j once, row by row.

    Examples
    --------
    >>> pair_values([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    array([1, 2, 3])
    """
    square = np.asarray(matrix)
    if square.ndim != 2 or square.shape[0] != square.shape[1]:
        raise GraphError(f"matrix has shape {square.shape}; it must be square: one row and one column a variable.")
    return square[np.triu_indices(len(square), k=1)]


def average_precision(truth: ArrayLike, score: ArrayLike) -> float:
    """Area under the precision–recall curve, as a sum of steps: Σ (Rₙ − Rₙ₋₁) Pₙ.

    Parameters
    ----------
    truth : array_like
        1 or True for what should rank high, 0 or False for the rest.
    score : array_like, same shape
        Finite numbers; higher ranks first. Equal scores are one step, taken together, so that the order of
        ties does not matter.

    Returns
    -------
    float
        Between 0 and 1; equal to ``sklearn.metrics.average_precision_score``, also in being 0 where `truth`
        holds nothing true.

    Examples
    --------
    >>> average_precision([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.8333333333333333
    >>> average_precision([1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5])
    0.5
    """
    wanted, ranked = _binary(truth, "truth"), _finite(score, "score")
    _refuse_mismatch(wanted, ranked)
    if not wanted.any():
        return 0.0
    order = np.argsort(-ranked, kind="stable")
    wanted, ranked = wanted[order], ranked[order]
    last_of_ties = np.append(ranked[1:] != ranked[:-1], True)
    hits = np.cumsum(wanted)[last_of_ties]
    precision = hits / (np.flatnonzero(last_of_ties) + 1)
    return float(np.diff(hits, prepend=0) @ precision / hits[-1])


def skeleton_average_precision(adj_true: ArrayLike, score_dd: ArrayLike) -> float:
    """Average precision of scores for "these two variables are adjacent".

    Parameters
    ----------
    adj_true : array_like, shape (d, d)
        True graph; directions do not matter. Pass a moral graph to judge against that.
    score_dd : array_like, shape (d, d)
        Score of each pair; [i, j] and [j, i] are averaged, the diagonal is ignored.

    Returns
    -------
    float
        `average_precision` over the pairs i < j.

    Examples
    --------
    >>> score = [[0, 0.9, 0], [0.7, 0, 0.5], [0.2, 0, 0]]
    >>> skeleton_average_precision([[0, 1, 0], [0, 0, 0], [0, 0, 0]], score)
    1.0
    """
    adjacent, score = skeleton(adj_true), np.asarray(score_dd, dtype=float)
    if score.shape != adjacent.shape:
        raise GraphError(f"score has shape {score.shape}, the graph {adjacent.shape}; give one score for each pair.")
    return average_precision(pair_values(adjacent), pair_values((score + score.T) / 2))


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────


def precision_recall(truth: ArrayLike, guess: ArrayLike) -> tuple[float, float]:
    """Share of the guessed that is true, and share of the true that is guessed.

    Parameters
    ----------
    truth, guess : array_like
        0 and 1, or booleans, of equal shape.

    Returns
    -------
    precision, recall : float
        Each 0 where it would divide by zero, as in scikit-learn.

    Examples
    --------
    >>> precision_recall([1, 1, 1, 0], [1, 0, 0, 0])
    (1.0, 0.3333333333333333)
    """
    wanted, chosen = _binary(truth, "truth"), _binary(guess, "guess")
    _refuse_mismatch(wanted, chosen)
    hits = int((wanted & chosen).sum())
    return hits / max(int(chosen.sum()), 1), hits / max(int(wanted.sum()), 1)


def f1(truth: ArrayLike, guess: ArrayLike) -> float:
    """Harmonic mean of precision and recall; 0 if nothing true is guessed.

    Examples
    --------
    >>> f1([1, 1, 1, 0], [1, 0, 0, 0])
    0.5
    """
    precision, recall = precision_recall(truth, guess)
    return 2 * precision * recall / (precision + recall) if precision else 0.0


def accuracy(truth: ArrayLike, guess: ArrayLike) -> float:
    """Share of entries on which truth and guess agree, for two classes or more.

    Examples
    --------
    >>> accuracy([0, 1, 2, 2], [0, 1, 2, 1])
    0.75
    """
    first, second = np.asarray(truth).ravel(), np.asarray(guess).ravel()
    _refuse_mismatch(first, second)
    return float((first == second).mean())


def expected_calibration_error(truth: ArrayLike, probability: ArrayLike, bins: int = 15) -> float:
    """Mean gap between the probability that was said and the frequency that was seen.

    Parameters
    ----------
    truth : array_like
        0 and 1, or booleans: what happened.
    probability : array_like, same shape
        Between 0 and 1: how likely it was said to be.
    bins : int
        Number of equally wide bins, each closed on the right. In each, the mean probability is compared with
        the frequency; the gaps are averaged with the bins' counts as weights.

    Returns
    -------
    float
        0 for perfect calibration, 1 at worst.

    Examples
    --------
    >>> expected_calibration_error([1, 1, 1, 0], [0.75, 0.75, 0.75, 0.75])
    0.0
    >>> expected_calibration_error([1, 1, 0, 0], [0.75, 0.75, 0.75, 0.75])
    0.25
    """
    if bins < 1:
        raise ConfigError(f"bins={bins}; use at least one, e.g. bins=15.")
    seen, said = _binary(truth, "truth"), _finite(probability, "probability")
    _refuse_mismatch(seen, said)
    outside = np.flatnonzero((said < 0) | (said > 1))
    if len(outside):
        raise GraphError(f"probability is {said[outside[0]]} at entry {outside[0]}; it must lie between 0 and 1.")
    place = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], said, side="left")
    surplus = np.bincount(place, weights=said - seen, minlength=bins)
    return float(np.abs(surplus).sum() / len(said))


# ── doors ─────────────────────────────────────────────────────────────────────────────────────────────────


def _binary(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    flat = np.asarray(values).ravel()
    result: NDArray[np.bool_] = np.equal(flat, 1)
    strange = np.flatnonzero(~result & (flat != 0))
    if len(strange):
        raise GraphError(f"{name} is {flat[strange[0]]} at entry {strange[0]}; it must be 0 or 1 everywhere.")
    return result


def _finite(values: ArrayLike, name: str) -> NDArray[np.float64]:
    flat = np.asarray(values, dtype=float).ravel()
    strange = np.flatnonzero(~np.isfinite(flat))
    if len(strange):
        raise GraphError(f"{name} is {flat[strange[0]]} at entry {strange[0]}; replace it by a finite number.")
    return flat


def _refuse_mismatch(first: NDArray[Any], second: NDArray[Any]) -> None:
    if len(first) != len(second):
        raise GraphError(f"{len(first)} true values but {len(second)} guesses; give one guess for each.")
    if not len(first):
        raise GraphError("There is nothing to compare: truth and guess are empty.")
