"""How far a guessed graph is from the true one.

Distances compare two adjacency matrices (convention in `graphbam.graphs.graph`). The other functions compare truth
and guess entry by entry, whatever their shape; `pair_values` takes each pair once out of a symmetric matrix,
`ordered_values` each ordered pair out of any.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import ConfigError, GraphError
from graphbam.graphs.equivalence import is_cpdag
from graphbam.graphs.graph import check_adjacency, find_obstacle, skeleton, topological_order

__all__ = [
    "Directions",
    "Reliability",
    "accuracy",
    "ancestor_distance",
    "audrc",
    "auroc",
    "average_precision",
    "expected_calibration_error",
    "f1",
    "false_share",
    "judge_directions",
    "ordered_values",
    "pair_values",
    "precision_recall",
    "reliability",
    "shd",
    "shd_over_empty",
    "sid",
    "skeleton_average_precision",
    "skeleton_shd",
    "weighted_accuracy",
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


def shd_over_empty(true: ArrayLike, guess: ArrayLike) -> float:
    """Structural Hamming distance over that of the empty graph: below 1, the guess is better than no answer.

    Examples
    --------
    >>> shd_over_empty([[0, 1, 1], [0, 0, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    0.5

    NaN where the truth has no edge:

    >>> shd_over_empty([[0, 0], [0, 0]], [[0, 1], [0, 0]])
    nan
    """
    n_edges = shd(true, np.zeros_like(check_adjacency(true)))
    distance = shd(true, guess)
    return distance / n_edges if n_edges else float("nan")


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


def ancestor_distance(true: ArrayLike, guess: ArrayLike) -> float:
    """Ancestor adjustment distance, computed by the optional package gadjid.

    Parameters
    ----------
    true, guess : array_like, shape (d, d)
        DAGs or CPDAGs.

    Returns
    -------
    float
        The share of ordered pairs (i, j) for which adjusting for the ancestors of i in `guess` does not give the
        effect of i on j in `true`. Unlike `sid`, it forgives parents that are only wrongly among the ancestors.

    Raises
    ------
    GraphError
        If a graph is neither, or they differ in size.
    ImportError
        If gadjid is not installed.

    Examples
    --------
    In the chain 0 → 1 → 2 the arrow 0 → 2 too many changes no ancestor; a chain that is turned gets all effects wrong:

    >>> chain = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    >>> ancestor_distance(chain, [[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    0.0
    >>> ancestor_distance(chain, [[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    1.0
    """
    first, second = (_mark_edges(graph) for graph in _same_size(true, guess))
    if len(first) < 2:
        return 0.0  # gadjid panics on a single variable
    share, _ = _import_gadjid().ancestor_aid(first, second, edge_direction="from row to column")
    return float(share)


def _mark_edges(graph: NDArray[np.bool_]) -> NDArray[np.int8]:
    """A DAG or CPDAG as gadjid reads it: 1 for i → j, 2 once for i — j."""
    if (obstacle := find_obstacle(graph)) and not is_cpdag(graph):
        raise GraphError(f"Neither a DAG nor a CPDAG: {obstacle}.")
    both = graph & graph.T
    return ((graph & ~both) + 2 * np.triu(both)).astype(np.int8)


def _import_gadjid() -> Any:
    try:
        import gadjid
    except ImportError as error:
        raise ImportError(
            "This distance needs the package gadjid, which is not installed: pip install 'graphbam[benchmark]'"
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


def ordered_values(matrix: ArrayLike) -> NDArray[Any]:
    """Take all entries but the diagonal: each ordered pair once, row by row.

    Examples
    --------
    >>> ordered_values([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    array([1, 2, 3, 4, 5, 6])
    """
    square = np.asarray(matrix)
    if square.ndim != 2 or square.shape[0] != square.shape[1]:
        raise GraphError(f"matrix has shape {square.shape}; it must be square: one row and one column a variable.")
    return square[~np.eye(len(square), dtype=bool)]


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


def auroc(truth: ArrayLike, score: ArrayLike) -> float:
    """Area under the receiver operating characteristic: the chance that something true outranks something false.

    Parameters
    ----------
    truth : array_like
        1 or True for what should rank high, 0 or False for the rest.
    score : array_like, same shape
        Finite numbers; higher ranks first. Of a tie, half counts.

    Returns
    -------
    float
        Between 0 and 1, ½ for scores that say nothing; NaN where `truth` is all true or all false.

    Examples
    --------
    >>> auroc([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.75
    """
    wanted, ranked = _binary(truth, "truth"), _finite(score, "score")
    _refuse_mismatch(wanted, ranked)
    n_true = int(wanted.sum())
    n_false = len(wanted) - n_true
    if not n_true or not n_false:
        return float("nan")
    _, place, count = np.unique(ranked, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]  # from 1; ties share their mean
    return float((rank[wanted].sum() - n_true * (n_true + 1) / 2) / (n_true * n_false))


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


def false_share(truth: ArrayLike, guess: ArrayLike) -> float:
    """Share of the guessed that is false, to be held against a false-discovery target; NaN if nothing is guessed.

    Examples
    --------
    >>> false_share([1, 1, 0, 0], [1, 1, 1, 0])
    0.3333333333333333
    """
    wanted, chosen = _binary(truth, "truth"), _binary(guess, "guess")
    _refuse_mismatch(wanted, chosen)
    return float((~wanted[chosen]).mean()) if chosen.any() else float("nan")


class Reliability(NamedTuple):
    """Probabilities in bins: what was said there, what was seen, and how often."""

    said: NDArray[np.float64]
    """Mean probability of each bin that is not empty."""
    seen: NDArray[np.float64]
    """Frequency there."""
    number: NDArray[np.int64]
    """Number of entries there."""


def reliability(truth: ArrayLike, probability: ArrayLike, bins: int = 15) -> Reliability:
    """What was seen where a probability was said: the points of a reliability diagram.

    Parameters are those of `expected_calibration_error`, which is the mean gap of these points.

    Examples
    --------
    >>> said, seen, number = reliability([1, 1, 0, 0], [0.75, 0.75, 0.75, 0.05], bins=4)
    >>> said.tolist(), seen.round(2).tolist(), number.tolist()
    ([0.05, 0.75], [0.0, 0.67], [1, 3])
    """
    if bins < 1:
        raise ConfigError(f"bins={bins}; use at least one, e.g. bins=15.")
    happened, said = _binary(truth, "truth"), _finite(probability, "probability")
    _refuse_mismatch(happened, said)
    outside = np.flatnonzero((said < 0) | (said > 1))
    if len(outside):
        raise GraphError(f"probability is {said[outside[0]]} at entry {outside[0]}; it must lie between 0 and 1.")
    place = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], said, side="left")
    count = np.bincount(place, minlength=bins)
    filled = np.flatnonzero(count)
    mean_said, mean_seen = (np.bincount(place, weights, bins)[filled] / count[filled] for weights in (said, happened))
    return Reliability(mean_said, mean_seen, count[filled])


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
    said, seen, number = reliability(truth, probability, bins)
    return float(np.abs(said - seen) @ number / number.sum())


# ── directions ────────────────────────────────────────────────────────────────────────────────────────────


class Directions(NamedTuple):
    """How many directions of true links are right."""

    n_links: int
    """True links that have one direction."""
    right: float
    """Share of them whose likelier direction is the true one; half where both are equally likely."""
    sure: float
    """Share whose likelier direction is at least as likely as was asked for."""
    right_where_sure: float
    """Share of those that are right."""


def judge_directions(adj_true: ArrayLike, arrow_dd: ArrayLike, sure_from: float = 0.9) -> Directions:
    """Judge directions on the true links, found or not.

    Parameters
    ----------
    adj_true : array_like, shape (d, d)
        True graph; links without a direction, or with both, are left out.
    arrow_dd : array_like, shape (d, d)
        Probability of i → j given a link.
    sure_from : float
        From which probability on a direction counts as sure.

    Returns
    -------
    Directions
        Shares of nothing are NaN.

    Examples
    --------
    0 → 1 is surely right, 1 → 2 is wrong:

    >>> judge_directions([[0, 1, 0], [0, 0, 1], [0, 0, 0]], [[0, 0.95, 0.5], [0.05, 0, 0.4], [0.5, 0.6, 0]])
    Directions(n_links=2, right=0.5, sure=0.5, right_where_sure=1.0)
    """
    edges, arrow = check_adjacency(adj_true), np.asarray(arrow_dd, dtype=float)
    if arrow.shape != edges.shape:
        raise GraphError(f"arrow has shape {arrow.shape}, the graph {edges.shape}; give one for each ordered pair.")
    i, j = np.nonzero(edges & ~edges.T)
    forward, backward = _finite(arrow[i, j], "arrow"), _finite(arrow[j, i], "arrow")
    right, is_sure = (np.sign(forward - backward) + 1) / 2, np.maximum(forward, backward) >= sure_from
    return Directions(len(i), _mean(right), _mean(is_sure), _mean(right[is_sure]))


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


# ── cause–effect pairs ────────────────────────────────────────────────────────────────────────────────────


def weighted_accuracy(is_forward: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Share of cause–effect pairs whose direction is right, every pair decided.

    Parameters
    ----------
    is_forward : array_like, shape (n,)
        1 or True where the first column is the cause.
    score : array_like, shape (n,)
        Above 0: the first column is the cause, surer the larger; below 0: the second. A score of 0 is half right.
    weight : array_like, shape (n,), optional
        Of each pair; positive. All alike if left out.

    Returns
    -------
    float

    Examples
    --------
    >>> weighted_accuracy([1, 1, 0], [2.0, -1.0, -0.5], [1, 2, 1])
    0.5
    """
    right, _, weight_n = _decide_pairs(is_forward, score, weight)
    return float(right @ weight_n / weight_n.sum())


def audrc(is_forward: ArrayLike, score: ArrayLike, weight: ArrayLike | None = None) -> float:
    """Area under the decision-rate curve: mean accuracy of the k surest pairs, over all k.

    Parameters are those of `weighted_accuracy`. The accuracies are weighted, their mean is not. Pairs with equal
    |score| share right and weight, so that their order does not matter.

    Examples
    --------
    The wrong one of three pairs, at the end and at the start:

    >>> round(audrc([1, 1, 1], [3.0, 2.0, -1.0]), 3), round(audrc([1, 1, 1], [1.0, 2.0, -3.0]), 3)
    (0.889, 0.389)
    """
    right, size, weight_n = _decide_pairs(is_forward, score, weight)
    _, place, count = np.unique(-size, return_inverse=True, return_counts=True)
    total, hits = np.bincount(place, weight_n), np.bincount(place, weight_n * right)
    shared = np.repeat(total / count, count)
    return float((np.cumsum(np.repeat(hits / count, count)) / np.cumsum(shared)).mean())


def _decide_pairs(
    is_forward: ArrayLike, score: ArrayLike, weight: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Is each pair right (1, ½ or 0), how sure, how heavy."""
    forward, said = _binary(is_forward, "is_forward"), _finite(score, "score")
    _refuse_mismatch(forward, said)
    weight_n = np.ones(len(said)) if weight is None else _finite(weight, "weight")
    _refuse_mismatch(forward, weight_n)
    light = np.flatnonzero(weight_n <= 0)
    if len(light):
        raise GraphError(f"weight is {weight_n[light[0]]} at entry {light[0]}; it must be positive.")
    return (np.sign(np.where(forward, said, -said)) + 1) / 2, np.abs(said), weight_n


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
