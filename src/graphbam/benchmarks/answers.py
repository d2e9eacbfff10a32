"""What a result says of every pair beside what is true: one place for scores, calibration and reliability diagrams.

Methods of the benchmark are judged by their graph and ranking (`graphbam.benchmarks.scores`). A `Result` says more;
here each of its answers is held against what is known of a table. What a result does not say, and what is not known of
a table, has no score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._targets import dag_to_class
from graphbam.benchmarks.baselines.bam import answer_from, lean
from graphbam.benchmarks.cases import Problem
from graphbam.benchmarks.scores import Scores, score_answer
from graphbam.errors import GraphError
from graphbam.graphs.equivalence import dag_to_cpdag
from graphbam.graphs.graph import MORAL, SKELETON, ancestors, directed_part, edge_classes, is_dag, skeleton
from graphbam.graphs.metrics import (
    auroc,
    false_share,
    judge_directions,
    ordered_values,
    pair_values,
    shd_over_empty,
)
from graphbam.result import Result

__all__ = ["ANSWERS", "FALSE_TARGETS", "Claims", "collect_claims", "join_claims", "lean", "score_result"]

ANSWERS = ("link", "moral", "direction", "compelled", "hidden", "ancestor")
"""What a result may say of a pair: it is linked; it is moral; the link points this way; the CPDAG has this arrow, given
a link; there is a hidden common cause; a directed path leads this way."""

FALSE_TARGETS = (0.01, 0.05, 0.1)
"""Shares of false links that results are asked for."""


class Claims(NamedTuple):
    """Probabilities that were said, and what happened."""

    truth_n: NDArray[np.bool_]
    p_n: NDArray[np.float64]


def collect_claims(result: Result, problem: Problem) -> dict[str, Claims]:
    """What a result says, by `ANSWERS`, beside what is true.

    Parameters
    ----------
    result : Result
        Of this table.
    problem : Problem
        Table and truth.

    Returns
    -------
    dict of Claims
        Links, moral pairs and hidden causes of each pair; ancestors of each ordered pair; directions (of true links
        that have one) and compelled arrows (of true links) from either end, since many tables list causes first.
        Without what is not said or not known.

    Raises
    ------
    GraphError
        If the result is about other variables.
    """
    _refuse_others(result, problem)
    truth_dd, p_dd3 = problem.adjacency, result.probabilities
    claims = {"link": Claims(pair_values(skeleton(truth_dd)) == 1, pair_values(p_dd3[..., SKELETON]))}
    if problem.is_dag:
        claims["moral"] = Claims(pair_values(edge_classes(truth_dd)) == MORAL, pair_values(p_dd3[..., MORAL]))
    if problem.is_directed and result.has_directions:
        i, j = np.nonzero(skeleton(truth_dd) & ~(truth_dd & truth_dd.T))
        claims["direction"] = Claims(truth_dd[i, j] == 1, lean(result)[i, j])
    if problem.is_dag and result.has_directions:
        i, j = np.nonzero(skeleton(truth_dd))
        compelled_dd = directed_part(dag_to_cpdag(truth_dd))
        claims["compelled"] = Claims(compelled_dd[i, j] == 1, result.compelled_probabilities[i, j])
    if problem.hidden_dd is not None and result.hidden_causes is not None:
        claims["hidden"] = Claims(pair_values(problem.hidden_dd) == 1, pair_values(result.hidden_causes))
    if problem.is_directed and is_dag(truth_dd) and result.ancestors is not None:
        claims["ancestor"] = Claims(ordered_values(ancestors(truth_dd)), ordered_values(result.ancestors))
    return claims


def join_claims(parts: Iterable[Mapping[str, Claims]]) -> dict[str, Claims]:
    """Claims about many tables together, answer by answer; those without any are left out.

    Examples
    --------
    >>> one = Claims(np.array([True]), np.array([0.9]))
    >>> join_claims([{"link": one}, {"link": one, "hidden": one}])["link"].p_n.tolist()
    [0.9, 0.9]
    """
    parts = list(parts)
    joined = {}
    for name in ANSWERS:
        found = [part[name] for part in parts if name in part]
        if sum(len(claims.p_n) for claims in found):
            joined[name] = Claims(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))
    return joined


def score_result(result: Result, problem: Problem) -> Scores:
    """Every score of a result that what is known of the table allows.

    Parameters
    ----------
    result : Result
        Of this table.
    problem : Problem
        Table and truth.

    Returns
    -------
    dict
        The columns of `graphbam.benchmarks.scores.score_answer`, by which all methods are judged; `false_at_0.05` and
        the like, the share of false links at that target; with directions `direction_sure` and
        `direction_right_where_sure`, `cpdag_over_empty`, `dag_over_empty`; `ancestor_auroc`. NaN or None where there is
        nothing to judge.
    """
    claims = collect_claims(result, problem)
    scores = score_answer(answer_from(result), problem, "cpdag" if result.has_directions else "undirected")
    for target in FALSE_TARGETS:
        found_n = pair_values(result.skeleton(fdr=target).adjacency)
        scores[f"false_at_{target:g}"] = false_share(claims["link"].truth_n, found_n)
    if result.has_directions and problem.is_directed:
        scores |= _score_directions(result, problem)
    if "ancestor" in claims:
        scores["ancestor_auroc"] = auroc(*claims["ancestor"])
    return scores


def _score_directions(result: Result, problem: Problem) -> Scores:
    found = judge_directions(problem.adjacency, lean(result))
    scores: Scores = {"direction_sure": found.sure, "direction_right_where_sure": found.right_where_sure}
    if problem.is_dag:
        cpdag_dd = result.cpdag(objective="shd").adjacency
        scores["cpdag_over_empty"] = shd_over_empty(dag_to_class(problem.adjacency, problem.set_md), cpdag_dd)
        scores["dag_over_empty"] = shd_over_empty(problem.adjacency, result.dag(objective="shd").adjacency)
    return scores


def _refuse_others(result: Result, problem: Problem) -> None:
    if result.n_variables != len(problem.adjacency):
        raise GraphError(
            f"the result is about {result.n_variables} variables, the table has {len(problem.adjacency)}; "
            "infer without leaving columns out"
        )
