r"""CAM: causal additive models, after Bühlmann, Peters and Ernest, Annals of Statistics 42 (2014).

Every variable is a sum of smooth functions of its parents plus Gaussian noise. The log-likelihood of a DAG is, up to
constants, −n/2 · Σ_j log P_j with P_j the residual sum of squares of variable j on its parents, and for functions that
are not linear its maximum is at one DAG, not at a class of them. Three steps:

1. *Screening.* For each variable, L₂ boosting with one smooth term per step picks at most ten possible parents.
2. *Growing.* Of all arrows that screening allows and that close no cycle, add the one that raises the log-likelihood
   most, until none is left.
3. *Pruning.* Regress each variable on its parents and keep those whose term has a p-value below 0.001.

What differs from the R package CAM 1.0: each smooth term has a fixed number of degrees of freedom instead of one chosen
by mgcv, so that all regressions share one Gram matrix (`graphbam.benchmarks.baselines.additive`), and the gain of an
arrow is one in penalised log-likelihood, which is never negative.
"""

from __future__ import annotations

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, marry, partial_correlations, without_constants
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.benchmarks.baselines.additive import AdditiveModel
from graphbam.benchmarks.baselines.splines import smoothing
from graphbam.graphs.graph import BoolMatrix

LOWEST = 1e-9
"""Share of a variable's variance below which nothing is left to explain."""


class CamUnpruned(Baseline):
    """CAM without its last step, as some toolboxes run it: every arrow that screening allows and no cycle forbids."""

    name, title, kind = "cam-unpruned", "CAM, unpruned", "dag"

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """A spline of three knots for each of ten parents has twenty columns."""
        return "regression on ten parents needs 20 samples" if n_samples < 20 else None

    @without_constants
    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            model = AdditiveModel(x_md)
            gain_dd = grow(model, screen(model))
            return self.judge(model, gain_dd)

    def judge(self, model: AdditiveModel, gain_dd: Matrix) -> Answer:
        """Keep every arrow, ranked by its gain; the other pairs follow, ranked by |partial correlation|."""
        graph_dd = gain_dd >= 0
        score_dd = np.where(graph_dd, 1 + gain_dd, partial_correlations(model.x_md))
        return Answer(graph_dd.astype(np.int8), score_dd, marry(graph_dd, score_dd))


class Cam(CamUnpruned):
    """CAM with all three steps."""

    name, title = "cam", "CAM"

    def __init__(self, *, alpha: float = 0.001) -> None:
        self.alpha = alpha

    def judge(self, model: AdditiveModel, gain_dd: Matrix) -> Answer:
        """Keep arrows with small p-values; all that were tested rank by −log p, before the pairs that were not."""
        tested_dd = gain_dd >= 0
        p_dd = np.ones_like(gain_dd)
        for target in np.flatnonzero(tested_dd.any(axis=0)):
            parents = np.flatnonzero(tested_dd[:, target])
            p_dd[parents, target] = model.p_values(int(target), parents)
        evidence_dd = 1 - np.log10(np.maximum(p_dd, 1e-300))
        score_dd = np.where(tested_dd, evidence_dd, partial_correlations(model.x_md))
        graph_dd = (tested_dd & (p_dd < self.alpha)).astype(np.int8)
        return Answer(graph_dd, score_dd, marry(graph_dd, score_dd))


def screen(model: AdditiveModel, *, most: int = 10, n_steps: int = 100, rate: float = 0.1) -> BoolMatrix:
    """Possible parents of each variable, [i, j]: i may be a parent of j.

    Boosting adds, step by step, the smooth term (4 degrees of freedom, constant included) that explains most of what
    is left, times `rate`. Parents are the variables picked in more than one step of fifty, at most ten; ties with the
    eleventh stay out.
    """
    basis_mdk, every = model.splines.basis_mdk, np.arange(model.n_variables)
    keep_dk = 1 / (1 + smoothing(model.splines.bend_dk, 3.0))
    rest_md, picked_dd = model.x_md.copy(), np.zeros((model.n_variables, model.n_variables))
    for _ in range(n_steps):
        pull_dkd = np.tensordot(basis_mdk, rest_md, axes=(0, 0))
        gain_dd = np.einsum("ik,ikj->ij", keep_dk * (2 - keep_dk), pull_dkd**2)
        np.fill_diagonal(gain_dd, -1.0)
        best = gain_dd.argmax(axis=0)
        picked_dd[best, every] += 1
        step_dk = rate * keep_dk[best] * pull_dkd[best, :, every]
        rest_md -= np.einsum("mjk,jk->mj", basis_mdk[:, best], step_dk)
    eleventh_d = -np.sort(-picked_dd, axis=0)[most] if model.n_variables > most else 0.0
    return np.asarray(picked_dd > np.maximum(eleventh_d, n_steps / 50))


def grow(model: AdditiveModel, allowed_dd: BoolMatrix) -> Matrix:
    """Add arrows, the best first, while any is allowed.

    Returns
    -------
    ndarray, shape (D, D)
        Gain of each arrow when it was added, as log(P before / P after); −1 where there is no arrow.
    """
    floor_d = LOWEST * (model.x_md**2).sum(axis=0)
    loss_d, added_dd = floor_d / LOWEST, np.full(allowed_dd.shape, -1.0)
    reach_dd = np.eye(len(allowed_dd), dtype=bool)  # [i, j]: a way leads from i to j
    open_dd = allowed_dd & ~reach_dd
    next_dd = np.tile(loss_d, (len(loss_d), 1))  # loss of j once i → j is there

    def look_ahead(target: int) -> None:
        parents, candidates = np.flatnonzero(added_dd[:, target] >= 0), np.flatnonzero(open_dd[:, target])
        if len(candidates):
            fall = model.improvements(target, parents, candidates)
            next_dd[candidates, target] = np.clip(loss_d[target] - fall, floor_d[target], loss_d[target])

    for target in range(model.n_variables):
        look_ahead(target)
    while open_dd.any():
        gain_dd = np.where(open_dd, np.log(loss_d / next_dd), -1.0)
        source, target = divmod(int(gain_dd.argmax()), len(gain_dd))
        added_dd[source, target], loss_d[target] = gain_dd[source, target], next_dd[source, target]
        reach_dd |= np.outer(reach_dd[:, source], reach_dd[target])
        open_dd &= ~reach_dd.T
        open_dd[source, target] = False
        look_ahead(target)
    return added_dd
