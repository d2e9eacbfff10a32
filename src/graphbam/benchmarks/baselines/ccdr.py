r"""CCDr: concave penalised coordinate descent, after Aragam and Zhou, JMLR 16 (2015).

A linear Gaussian model x_j = Σ_i β_ij x_i + σ_j ε_j on a DAG, written with ρ_j = 1/σ_j and φ_ij = β_ij/σ_j so that the
negative log-likelihood is convex. With columns of length one, minimise over DAGs

.. math::  Q(\phi, \rho) = \sum_j \Bigl( -n \log \rho_j + \tfrac12 \bigl\| \rho_j x_j - \sum_i \phi_{ij} x_i \bigr\|^2
           + \sum_i p_\lambda(|\phi_{ij}|) \Bigr)

with the minimax concave penalty p_λ(t) = λt − t²/2γ up to t = γλ, and γλ²/2 beyond. Steps, each exact:

- all ρ_j at once: the positive root of ρ² − cρ − n = 0 with c = Σ_i φ_ij x_iᵀx_j;
- one pair at a time: of φ_ij alone, φ_ji alone and neither, what lowers Q most without closing a cycle.

The weight λ takes 20 evenly spaced values from √n, where the graph is empty, to √n/1000, each run starting from the
last solution, until there are more than 10 edges per variable. Of the graphs on that path we take the last one whose
step paid: gain in log-likelihood for each new edge at least a tenth of the best step's (Fu and Zhou, JASA 108, 2013,
section 3.4).

What differs from the R packages ccdrAlgorithm and sparsebn: pairs that stay empty are passed over all at once, which
changes nothing but the time, and the path also ends before a variable has as many parents as there are samples. Here as
there, the order of the columns decides between directions that score alike.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, without_constants
from graphbam.benchmarks.baselines._isolation import isolated

GAMMA = 2.0
"""Concavity of the penalty; above 1, so that every step in one coefficient has one minimum."""


class Ccdr(Baseline):
    """CCDr with the settings of sparsebn."""

    name, title, kind = "ccdr", "CCDr", "dag"

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """The log-likelihood of a saturated regression has no bound."""
        return "maximum likelihood needs 10 samples" if n_samples < 10 else None

    @without_constants
    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            corr_dd = np.asarray(np.corrcoef(x_md, rowvar=False), dtype=np.float64)
            path = list(walk_path(corr_dd, len(x_md)))
            graph_dd = path[choose(path, corr_dd, len(x_md))] != 0
            return Answer.graded(graph_dd.astype(np.int8), x_md)


def walk_path(corr_dd: Matrix, n_samples: int, *, n_steps: int = 20, lowest: float = 1e-3) -> Iterator[Matrix]:
    """Coefficients β, (D, D), of one DAG after another, from the empty one on."""
    descent = Descent(corr_dd, n_samples)
    for lam in np.sqrt(n_samples) * np.linspace(1.0, lowest, n_steps):
        if not descent.run(float(lam)):
            return
        yield descent.phi_dd / descent.rho_d


def choose(path: list[Matrix], corr_dd: Matrix, n_samples: int, *, least: float = 0.1) -> int:
    """Place on the path of the last graph whose gain for each new edge is at least `least` of the best gain."""
    n_edges = [int((beta_dd != 0).sum()) for beta_dd in path]
    likelihood = [log_likelihood(beta_dd != 0, corr_dd, n_samples) for beta_dd in path]
    pay: dict[int, float] = {}
    last = 0
    for place in range(1, len(path)):
        if n_edges[place] > n_edges[last]:
            pay[place] = (likelihood[place] - likelihood[last]) / (n_edges[place] - n_edges[last])
            last = place
    worth = least * max(pay.values(), default=0.0)
    return max((place for place, gain in pay.items() if gain >= worth), default=0)


def log_likelihood(graph_dd: Matrix, corr_dd: Matrix, n_samples: int) -> float:
    """Maximum of the Gaussian log-likelihood over all parameters of a DAG, up to a constant."""
    total = 0.0
    for target in range(len(corr_dd)):
        parents = np.flatnonzero(graph_dd[:, target])
        beta_p = np.linalg.lstsq(corr_dd[np.ix_(parents, parents)], corr_dd[parents, target], rcond=None)[0]
        total += np.log(max(1 - corr_dd[parents, target] @ beta_p, 1e-12))
    return -n_samples / 2 * total


class Descent:
    """Where the descent stands: φ, ρ, and what each variable pulls at each residual.

    ``pull_dd[i, j]`` is x_iᵀ (ρ_j x_j − Σ_k φ_kj x_k), minus the slope of the smooth part of Q in φ_ij.
    """

    def __init__(self, corr_dd: Matrix, n_samples: int) -> None:
        self.corr_dd, self.n_samples = corr_dd, n_samples
        self.phi_dd = np.zeros_like(corr_dd, order="F")
        self.rho_d = np.full(len(corr_dd), np.sqrt(n_samples))
        self.pull_dd = np.asfortranarray(corr_dd * self.rho_d)
        self._children = [0] * len(corr_dd)  # one bit a child

    def run(self, lam: float, *, tolerance: float = 1e-4) -> bool:
        """Descend to a DAG that no pair of variables can better; False, and no such DAG, once there are too many edges.

        All pairs take a step, then those with edges until they come to rest, and so on until the graph stays.
        """
        limit = 2 * max(10, int(len(self.corr_dd) ** 0.5))
        for _ in range(limit):
            before_dd = self.phi_dd != 0
            self.sweep(lam)
            if self._is_crowded():
                return False
            for _ in range(limit):
                if self.sweep(lam, edges_only=True) < tolerance:
                    break
            if np.array_equal(before_dd, self.phi_dd != 0):
                break
        return True

    def sweep(self, lam: float, *, edges_only: bool = False) -> float:
        """Step in all ρ, then in every pair; largest change of a coefficient."""
        self.rescale()
        pairs = np.argwhere(self.phi_dd).tolist() if edges_only else self._pairs(lam)
        return max((self.step(i, j, lam) for i, j in pairs), default=0.0)

    def rescale(self) -> None:
        """Best ρ for the present φ."""
        c_d = (self.corr_dd * self.phi_dd).sum(axis=0)
        self.rho_d = (c_d + np.sqrt(c_d**2 + 4 * self.n_samples)) / 2
        self.pull_dd = np.asfortranarray(self.corr_dd * self.rho_d - self.corr_dd @ self.phi_dd)

    def step(self, i: int, j: int, lam: float) -> float:
        """Best φ_ij and φ_ji, at most one of them not zero, with all else as it is; the larger change."""
        z_ij, z_ji = self.pull_dd[i, j] + self.phi_dd[i, j], self.pull_dd[j, i] + self.phi_dd[j, i]
        there, back = shrink(float(z_ij), lam), shrink(float(z_ji), lam)
        if lowers(there, z_ij, lam) >= lowers(back, z_ji, lam):
            there = 0.0 if there and self._leads(j, i) else there
            back = 0.0 if there or (back and self._leads(i, j)) else back
        else:
            back = 0.0 if back and self._leads(i, j) else back
            there = 0.0 if back or (there and self._leads(j, i)) else there
        return max(self._set(i, j, there), self._set(j, i, back))

    def _is_crowded(self) -> bool:
        parents_d = (self.phi_dd != 0).sum(axis=0)
        return bool(parents_d.sum() > 10 * len(parents_d) or parents_d.max() > self.n_samples - 3)

    def _pairs(self, lam: float) -> Iterator[tuple[int, int]]:
        """Pairs i < j, less those without an edge and with too little pull for one, as they stand when they come up."""
        for i in range(len(self.corr_dd)):
            j = i
            while True:
                rest = slice(j + 1, None)
                live = np.maximum(np.abs(self.pull_dd[i, rest]), np.abs(self.pull_dd[rest, i])) > lam
                live |= (self.phi_dd[i, rest] != 0) | (self.phi_dd[rest, i] != 0)
                if not live.any():
                    break
                j += 1 + int(live.argmax())
                yield i, j

    def _set(self, i: int, j: int, value: float) -> float:
        change = value - self.phi_dd[i, j]
        if change:
            self.phi_dd[i, j] = value
            self.pull_dd[:, j] -= change * self.corr_dd[:, i]
            self._children[i] = self._children[i] | 1 << j if value else self._children[i] & ~(1 << j)
        return abs(change)

    def _leads(self, start: int, goal: int) -> bool:
        """Whether a way leads from start to goal, other than an edge between them."""
        goal_bit = 1 << goal
        seen = fresh = self._children[start] & ~goal_bit
        while fresh:
            last = fresh & -fresh
            found = self._children[last.bit_length() - 1]
            if found & goal_bit:
                return True
            fresh = (fresh ^ last) | (found & ~seen)
            seen |= found
        return False


def shrink(z: float, lam: float) -> float:
    """The φ that minimises φ²/2 − zφ + p_λ(|φ|).

    Examples
    --------
    >>> shrink(0.9, 1.0), shrink(-1.5, 1.0), shrink(3.0, 1.0)
    (0.0, -1.0, 3.0)
    """
    if abs(z) <= lam:
        return 0.0
    return z if abs(z) > GAMMA * lam else (z - lam if z > 0 else z + lam) / (1 - 1 / GAMMA)


def lowers(phi: float, z: float, lam: float) -> float:
    """By how much φ in place of zero lowers φ²/2 − zφ + p_λ(|φ|)."""
    size = min(abs(phi), GAMMA * lam)
    return z * phi - phi**2 / 2 - (lam * size - size**2 / (2 * GAMMA))
