"""What both networks say of a common child, weighed.

The collider network looks at a pair and its neighbourhood; it knows nothing of the edge network's probabilities.
Whether c is a common child of a and b depends on both, so the claim that counts is

    logit P = offset + child · logit p_c + moral · logit p_ab + links · logit p_ac p_bc + candidates · log k

with p_c from the collider network, p_ab the probability that a and b are moral, p_ac and p_bc those of the links, and
k the number of candidates of the pair. The five numbers are fitted on simulated tables
(`graphbam.training.calibration.fit_evidence`) and travel in the header of collider weights.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from graphbam.graphs.graph import MORAL, SKELETON

__all__ = ["TERMS", "describe_claims", "weigh_claims"]

Matrix = NDArray[np.float64]

TERMS = ("offset", "child", "moral", "links", "candidates")
"""Names of the weights, in the order of `describe_claims`."""

LEAST = 1e-3
"""Probabilities nearer to 0 or 1 than this count as this near: nobody is surer than that."""


def describe_claims(claims: NDArray[np.void], p_dd3: Matrix) -> Matrix:
    """What is known of each claim, shape (N, 5), in the order of `TERMS`.

    Parameters
    ----------
    claims : structured ndarray, shape (N,)
        As `graphbam.directions.questions.claim_table` makes them; all candidates of a pair are there.
    p_dd3 : ndarray, shape (D, D, 3)
        Probabilities of none · skeleton · moral.
    """
    a, b, c = claims["a"], claims["b"], claims["c"]
    _, which, count = np.unique(np.stack([a, b], 1), axis=0, return_inverse=True, return_counts=True)
    links = p_dd3[a, c, SKELETON] * p_dd3[b, c, SKELETON]
    logits = [_logit(p) for p in (claims["probability"], p_dd3[a, b, MORAL], links)]
    return np.stack([np.ones(len(claims)), *logits, np.log(count[which.reshape(-1)])], axis=1)


def weigh_claims(claims: NDArray[np.void], p_dd3: Matrix, weights: Mapping[str, float] | None) -> NDArray[np.void]:
    """Claims with the probabilities that follow from both networks; without weights they stay as they are.

    Examples
    --------
    >>> from graphbam.directions.immoralities import CLAIM
    >>> claims = np.array([(0, 2, 1, 0.5)], dtype=CLAIM)
    >>> p_dd3 = np.full((3, 3, 3), [0.0, 0.1, 0.9])
    >>> weighed = weigh_claims(claims, p_dd3, {"offset": 0, "child": 1, "moral": 1, "links": 0, "candidates": 0})
    >>> round(float(weighed["probability"][0]), 6)
    0.9
    """
    if weights is None or not len(claims):
        return claims
    weighed = claims.copy()
    logit_n = describe_claims(claims, p_dd3) @ np.array([float(weights[term]) for term in TERMS])
    weighed["probability"] = 1 / (1 + np.exp(-logit_n))
    return weighed


def _logit(p: Matrix) -> Matrix:
    p = np.clip(p, LEAST, 1 - LEAST)
    return np.log(p / (1 - p))
