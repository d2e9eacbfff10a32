"""Which common neighbours of moral pairs are common children: questions for the second network, and its answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from graphbam.directions.evidence import weigh_claims
from graphbam.directions.questions import Question, claim_table, find_questions
from graphbam.graphs.graph import MORAL, SKELETON
from graphbam.inference.networks import Colliders
from graphbam.nn.cost import (
    Progress,
    count_work,
    estimate_seconds,
    explained_memory,
    spell_seconds,
    threads,
    threads_for,
)
from graphbam.tables.prepare import Prepared
from graphbam.tables.read import Matrix

LINKED_FROM = 0.5
"""The second network is asked about common neighbours linked with at least this probability, as in training, …"""

MORAL_FROM = 0.1
"""… of pairs that are moral with at least this one, be they linked or not, …"""

OBVIOUS_FROM = 0.9
"""… except pairs moral with at least this one that have a single common neighbour: there the first network alone was
nearer to the truth (docs/training.md), and on tables of 100 variables and 500 rows it is two questions in three."""

CELLS_OF_QUESTIONS = 50_000
"""Questions go to it in batches of about so many cells; one large batch takes a fifth longer on a CPU."""

COLLIDER_ROWS = 1000
"""It sees at most so many rows, as many as in training: there are hundreds of questions, each as long as the table."""


def find_colliders(
    ready: Prepared, x_bme: Tensor, p_dd3: Matrix, colliders: Colliders, tell: Progress | None, done: float
) -> NDArray[np.void]:
    """Claims of the second network, with places in `ready.names`; constant columns are nobody's child or parent.

    `tell` hears how long it will take, when the share `done` of all work is done; E counts the varying columns.
    """
    p_ee3, x_bme = p_dd3[np.ix_(ready.varying, ready.varying)], x_bme[:, :COLLIDER_ROWS]
    asked = list_questions(p_ee3)
    if tell:
        seconds = estimate_seconds(colliders, *x_bme.shape[:2], *_widths(asked))
        pairs = f"{len(asked)} moral pair{'' if len(asked) == 1 else 's'}"
        tell(done, f"directions, {pairs}: {spell_seconds(seconds)}")
    claims = ask_colliders(colliders, x_bme, asked, p_ee3)
    for place in ("a", "c", "b"):
        claims[place] = ready.varying[claims[place]]
    return claims


def tell_of_rows(n_rows: int) -> tuple[str, ...]:
    """What to say of a table with more rows than the second network takes."""
    if n_rows <= COLLIDER_ROWS:
        return ()
    return (f"directions are judged from {COLLIDER_ROWS} of {n_rows} rows, all that the second network takes",)


def list_questions(p_dd3: Matrix) -> list[Question]:
    """Pairs that may be moral with their common neighbours, by edge probabilities with prior knowledge in them.

    The surest neighbours come first: which of many are asked about together must not depend on the order of columns.
    """
    p_dd = p_dd3[..., SKELETON]
    found = find_questions(p_dd3, LINKED_FROM, MORAL_FROM)
    asked = [one for one in found if len(one.candidates) > 1 or p_dd3[one.a, one.b, MORAL] < OBVIOUS_FROM]
    ranks = [np.argsort(-p_dd[one.a, one.candidates] * p_dd[one.b, one.candidates], kind="stable") for one in asked]
    return [one._replace(candidates=one.candidates[rank]) for one, rank in zip(asked, ranks, strict=True)]


def ask_colliders(colliders: Colliders, x_bmd: Tensor, asked: Sequence[Question], p_dd3: Matrix) -> NDArray[np.void]:
    """Ask the second network which common neighbours of moral pairs are their common children, and weigh its answers.

    Parameters
    ----------
    colliders : LoadedColliders
    x_bmd : Tensor, shape (B, M, D)
        Standardised draws of one table; the answers are averaged over them.
    asked : sequence of Question
        From `list_questions`.
    p_dd3 : ndarray, shape (D, D, 3)
        Probabilities of none · skeleton · moral.

    Returns
    -------
    structured ndarray
        Claims, as `graphbam.directions.cpdag.decide` takes them.
    """
    n_tables, n_samples, n_variables = x_bmd.shape
    work = n_tables * count_work(colliders, n_samples, _widths(asked))
    claims = [claim_table([], [])]
    with explained_memory(n_samples, n_variables), threads(threads_for(work)):
        for some in _batch_questions(asked, n_samples):
            answers = [colliders.answer(x_md.numpy(), some, strength_dd=p_dd3[..., SKELETON]) for x_md in x_bmd]
            claims.append(claim_table(some, [np.mean(several, axis=0) for several in zip(*answers, strict=True)]))
    weighed = weigh_claims(np.concatenate(claims), p_dd3, colliders.header.evidence)
    return np.sort(weighed, order=("a", "b", "c"))


def _widths(asked: Sequence[Question]) -> list[int]:
    return [2 + len(one.candidates) + len(one.neighbours) for one in asked]


def _batch_questions(asked: Sequence[Question], n_samples: int) -> list[list[Question]]:
    """Questions of about equal width together, and so few at a time that a processor's cache holds what it computes."""
    size = [n_samples * width for width in _widths(asked)]
    batches: list[list[Question]] = []
    room = 0
    for k in np.argsort(size, kind="stable").tolist():
        if size[k] > room:
            batches.append([])
            room = CELLS_OF_QUESTIONS
        batches[-1].append(asked[k])
        room -= size[k]
    return batches
