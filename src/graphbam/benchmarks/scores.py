"""How good an answer is: columns of the results, computed from the answer and the truth.

A pair's score is the larger of its two marks, unless the answer has one for it, so that an arrow ranks with the edges
and not half-way to the absent ones. A DAG is judged by its CPDAG; where that is undirected both marks get the larger
score. Where cells were set, the CPDAG is that of the experiment, with the links that it directs, for every method:
`graphbam.benchmarks.baselines._targets.dag_to_class`. None means not defined, such as a precision where nothing was
found. Directions are judged once more against the directed graph itself: by rank over ordered pairs, on true links, and
by the DAG that a user would go on with.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.benchmarks.baselines._base import Answer, Kind, Matrix
from graphbam.benchmarks.baselines._targets import dag_to_class
from graphbam.benchmarks.cases import Problem
from graphbam.errors import GraphError
from graphbam.graphs.equivalence import consistent_extension
from graphbam.graphs.graph import directed_part, is_dag, moral_graph, skeleton
from graphbam.graphs.metrics import (
    accuracy,
    ancestor_distance,
    auroc,
    average_precision,
    f1,
    judge_directions,
    ordered_values,
    pair_values,
    precision_recall,
    shd,
    skeleton_shd,
)

__all__ = [
    "CPDAG_COLUMNS",
    "DAG_COLUMNS",
    "DIRECTED_COLUMNS",
    "HIDDEN_COLUMNS",
    "MORAL_COLUMNS",
    "PAIR_COLUMNS",
    "SKELETON_COLUMNS",
    "score_answer",
]

SKELETON_COLUMNS = (
    "skeleton_ap", "skeleton_f1", "skeleton_precision", "skeleton_recall", "skeleton_accuracy", "skeleton_shd",
    "n_found",
)  # fmt: skip
MORAL_COLUMNS = ("moral_ap", "moral_f1")
CPDAG_COLUMNS = ("cpdag_ap", "shd", "empty_shd", "arrow_precision", "arrow_recall")
DIRECTED_COLUMNS = ("directed_ap", "directed_auroc", "direction_right")
DAG_COLUMNS = ("dag_shd", "ancestor_distance")
HIDDEN_COLUMNS = ("hidden_auroc", "hidden_ap")
PAIR_COLUMNS = ("pair_score", "pair_weight")

Scores = dict[str, float | int | None]


def score_answer(answer: Answer, problem: Problem, kind: Kind) -> Scores:
    """Compare an answer with the truth.

    Parameters
    ----------
    answer : Answer
        What the method said.
    problem : Problem
        Table and truth.
    kind : {"undirected", "cpdag", "dag"}
        What the method's graph is. Only the last two are judged by their directions.

    Returns
    -------
    dict
        The columns of the skeleton; of the moral graph, the CPDAG and the DAG where the truth is a DAG; of directions
        where it has any; of hidden causes where they are known and spoken of; of pairs where the table is one.

    Raises
    ------
    GraphError
        If the answer is none for this table.
    """
    check_answer(answer, len(problem.adjacency))
    scores = _score_skeleton(answer, problem)
    if problem.is_dag:
        scores |= _score_moral(answer, problem, kind)
    if problem.is_dag and kind != "undirected":
        scores |= _score_cpdag(answer, problem, kind) | _score_dag(answer, problem)
    if problem.is_directed and kind != "undirected":
        scores |= _score_directions(answer, problem, kind)
    if problem.hidden_dd is not None and answer.hidden_dd is not None:
        truth, score = pair_values(problem.hidden_dd), pair_values(_strongest(answer.hidden_dd))
        scores |= {"hidden_auroc": _separate(truth, score), "hidden_ap": _rank(truth, score)}
    return scores


def check_answer(answer: Answer, n_variables: int) -> None:
    """Refuse what is no answer for this table; an `Answer` has checked itself when it was made."""
    if not isinstance(answer, Answer):
        raise GraphError(f"fit returned {type(answer).__name__}; it must return an Answer")
    for name in ("graph_dd", "score_dd"):
        if np.shape(getattr(answer, name)) != (n_variables, n_variables):
            raise GraphError(f"{name} is no matrix of {n_variables} × {n_variables}: one row and column per variable")


def _score_skeleton(answer: Answer, problem: Problem) -> Scores:
    links_dd = skeleton(answer.graph_dd) if answer.links_dd is None else answer.links_dd
    score_dd = answer.score_dd if answer.link_score_dd is None else answer.link_score_dd
    truth, guess = pair_values(skeleton(problem.adjacency)), pair_values(links_dd)
    precision, recall = _shares(truth, guess)
    return {
        "skeleton_ap": _rank(truth, pair_values(_strongest(score_dd))),
        "skeleton_f1": f1(truth, guess) if truth.any() else None,
        "skeleton_precision": precision,
        "skeleton_recall": recall,
        "skeleton_accuracy": accuracy(truth, guess),
        "skeleton_shd": skeleton_shd(problem.adjacency, links_dd),
        "n_found": int(guess.sum()),
    }


def _score_moral(answer: Answer, problem: Problem, kind: Kind) -> Scores:
    truth = pair_values(moral_graph(problem.adjacency))
    guess = pair_values(skeleton(answer.graph_dd) if kind == "undirected" else moral_graph(answer.graph_dd))
    score_dd = answer.score_dd if answer.moral_dd is None else answer.moral_dd
    return {
        "moral_ap": _rank(truth, pair_values(_strongest(score_dd))),
        "moral_f1": f1(truth, guess) if truth.any() else None,
    }


def _score_cpdag(answer: Answer, problem: Problem, kind: Kind) -> Scores:
    truth_dd = dag_to_class(problem.adjacency, problem.set_md)
    guess_dd, score_dd = _to_cpdag(answer, kind, problem.set_md)
    off_diagonal = ~np.eye(len(truth_dd), dtype=bool)
    precision, recall = _shares(directed_part(truth_dd)[off_diagonal], directed_part(guess_dd)[off_diagonal])
    return {
        "cpdag_ap": _rank(truth_dd[off_diagonal], score_dd[off_diagonal]),
        "shd": shd(truth_dd, guess_dd),
        "empty_shd": shd(truth_dd, np.zeros_like(truth_dd)),
        "arrow_precision": precision,
        "arrow_recall": recall,
    }


def _score_directions(answer: Answer, problem: Problem, kind: Kind) -> Scores:
    """Ranks of ordered pairs, directions of true links, and how clearly a pair is directed rightly."""
    arrow_dd = arrow_scores(answer, kind)
    lean_dd = arrow_dd if answer.lean_dd is None else answer.lean_dd
    truth, score = ordered_values(problem.adjacency), ordered_values(arrow_dd)
    judged = judge_directions(problem.adjacency, lean_dd)
    scores: Scores = {"directed_ap": _rank(truth, score), "directed_auroc": _separate(truth, score)}
    scores["direction_right"] = judged.right if judged.n_links else None
    if problem.weight is not None:
        cause, effect = np.argwhere(problem.adjacency)[0]
        scores["pair_score"] = float(lean_dd[cause, effect] - lean_dd[effect, cause])
        scores["pair_weight"] = problem.weight
    return scores


def arrow_scores(answer: Answer, kind: Kind) -> Matrix:
    """How much an answer believes in each arrow: as it says, else arrows before links without a direction.

    Examples
    --------
    >>> graph_dd = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]])  # 0 → 1, 0 — 2
    >>> arrow_scores(Answer(graph_dd, np.array([[0, 1.2, 1.9], [0.2, 0, 0], [1.9, 0, 0]])), "cpdag")
    array([[0. , 2.2, 1.9],
           [0.2, 0. , 0. ],
           [1.9, 0. , 0. ]])
    """
    if answer.arrow_dd is not None:
        return answer.arrow_dd
    return answer.score_dd + directed_part(answer.graph_dd) if kind == "cpdag" else answer.score_dd


def _score_dag(answer: Answer, problem: Problem) -> Scores:
    """Distance to the DAG, and effects that are wrong in it; nothing where the graph stands for no DAG."""
    try:
        dag_dd = consistent_extension(answer.graph_dd) if answer.dag_dd is None else answer.dag_dd
    except GraphError:
        return dict.fromkeys(DAG_COLUMNS)
    scores: Scores = {"dag_shd": shd(problem.adjacency, dag_dd), "ancestor_distance": None}
    if find_spec("gadjid"):
        scores["ancestor_distance"] = ancestor_distance(problem.adjacency, dag_dd)
    return scores


def _to_cpdag(answer: Answer, kind: Kind, set_md: NDArray[np.bool_] | None) -> tuple[NDArray[np.int8], Matrix]:
    """Graph and scores; a DAG as its class, anything else (a cyclic answer too) as it is."""
    graph_dd, score_dd = np.asarray(answer.graph_dd, np.int8), np.asarray(answer.score_dd, float)
    if kind != "dag" or not is_dag(graph_dd):
        return graph_dd, score_dd
    cpdag_dd = dag_to_class(graph_dd, set_md)
    is_reversible = (cpdag_dd & cpdag_dd.T).astype(bool)
    return cpdag_dd, np.where(is_reversible, _strongest(score_dd), score_dd)


def _strongest(score_dd: ArrayLike) -> Matrix:
    scores = np.asarray(score_dd, float)
    return np.maximum(scores, scores.T)


def _rank(truth: NDArray[np.int8], score: Matrix) -> float | None:
    return average_precision(truth, score) if truth.any() else None


def _separate(truth: NDArray[np.int8], score: Matrix) -> float | None:
    return auroc(truth, score) if truth.any() and not truth.all() else None


def _shares(truth: NDArray[np.int8], guess: NDArray[np.int8]) -> tuple[float | None, float | None]:
    precision, recall = precision_recall(truth, guess)
    return precision if guess.any() else None, recall if truth.any() else None
