"""UT-IGSP (Squires and others 2020): the sparsest order, with targets that may be unknown or act on more than is said.

A permutation of the variables has a DAG: each depends on those before it, unless a test says otherwise. The search
turns covered edges as long as the DAG has no more edges, and of DAGs with equally many prefers the one in which fewest
variables change, given their parents, from the rows without a target to those with one. An edge out of a known target
is turned only if its other end changes too.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix, without_constants
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.benchmarks.baselines._targets import Environment, dag_to_class, split_rows

LEAST_ROWS = 10
"""Environments with fewer rows are left out: there is nothing to compare."""


class UtIgsp(Baseline):
    """Gaussian tests of independence (in rows without a target) and of invariance, both at level 0.001; five orders."""

    name, title, kind = "ut-igsp", "UT-IGSP", "cpdag"
    package, module = "scipy", "scipy"
    reads_targets = True

    def __init__(self, *, alpha: float = 1e-3, runs: int = 5, depth: int = 4) -> None:
        self.alpha, self.runs, self.depth = alpha, runs, depth

    @without_constants
    def fit(self, x_md: Matrix, *, seed: int, set_md: NDArray[np.bool_] | None = None) -> Answer:
        parts = split_rows(x_md, set_md)
        plain = [part.x_md for part in parts if not part.targets]
        if not plain or len(plain[0]) < LEAST_ROWS:
            raise ValueError(f"{len(plain[0]) if plain else 0} rows without a target are too few to search in")
        with isolated(seed):
            search = Search(plain[0], [part for part in parts if part.targets], self.alpha)
            orders = np.random.default_rng(seed).permuted(np.tile(np.arange(x_md.shape[1]), (self.runs, 1)), axis=1)
            found = [search.descend(search.from_order(order), self.depth) for order in orders]
        dag_dd = min(found, key=search.judge)
        return Answer.graded(search.direct(dag_dd), x_md)


class Search:
    """One search; a DAG is a matrix of booleans, and every test is done once."""

    def __init__(self, plain_md: Matrix, parts: list[Environment], alpha: float):
        self.alpha, self.plain_md = alpha, plain_md
        self.parts = [part for part in parts if len(part.x_md) >= LEAST_ROWS]
        self.r_dd = np.corrcoef(plain_md.T)
        self.is_independent = functools.cache(self._is_independent)
        self.is_invariant = functools.cache(self._is_invariant)

    def _is_independent(self, i: int, j: int, given: frozenset[int]) -> bool:
        """Fisher's z, in rows without a target."""
        from scipy.stats import norm

        chosen = [i, j, *sorted(given)]
        p_kk = np.linalg.pinv(self.r_dd[np.ix_(chosen, chosen)])
        r = np.clip(-p_kk[0, 1] / np.sqrt(p_kk[0, 0] * p_kk[1, 1]), -0.999999, 0.999999)
        freedom = max(len(self.plain_md) - len(given) - 3, 1)
        return bool(2 * norm.sf(np.sqrt(freedom) * abs(np.arctanh(r))) > self.alpha)

    def _is_invariant(self, part: int, i: int, given: frozenset[int]) -> bool:
        """Whether i given others is the same in both sets of rows: Chow's test of coefficients, F test of variances."""
        from scipy.stats import f

        others, k = sorted(given), len(given) + 1
        here, there = self.plain_md, self.parts[part].x_md
        (own_n, own), (n, one) = ((len(x_md), _residual_sum(x_md, i, others)) for x_md in (here, there))
        if own_n <= k + 1 or n <= k + 1:
            return True
        both = _residual_sum(np.concatenate([here, there]), i, others)
        free = own_n + n - 2 * k
        chow = max(both - own - one, 0.0) / k / max((own + one) / free, 1e-12)
        ratio = (own / (own_n - k)) / max(one / (n - k), 1e-12)
        spread = 2 * min(f.cdf(ratio, own_n - k, n - k), f.sf(ratio, own_n - k, n - k))
        return bool(min(f.sf(chow, k, free), spread) > self.alpha / 2)

    def from_order(self, order: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The sparsest DAG with this order."""
        dag_dd = np.zeros((len(order),) * 2, bool)
        for place, j in enumerate(order):
            before = frozenset(int(k) for k in order[:place])
            for i in before:
                dag_dd[i, j] = not self.is_independent(i, int(j), before - {i})
        return dag_dd

    def judge(self, dag_dd: NDArray[np.bool_]) -> tuple[int, int]:
        """Number of edges, and of variables that change in an environment; the smaller the better."""
        parents = [frozenset(int(k) for k in np.flatnonzero(column)) for column in dag_dd.T]
        changes = itertools.product(range(len(self.parts)), range(len(dag_dd)))
        return int(dag_dd.sum()), sum(not self.is_invariant(part, i, parents[i]) for part, i in changes)

    def descend(self, dag_dd: NDArray[np.bool_], depth: int) -> NDArray[np.bool_]:
        """Turn covered edges while that helps, looking `depth` turns ahead where it makes no difference."""
        best, goal, seen = dag_dd, self.judge(dag_dd), {dag_dd.tobytes()}
        path = [(dag_dd, 0)]
        while path:
            here, level = path.pop()
            for i, j in self.list_covered(here):
                there = self.turn(here, i, j)
                if there.tobytes() in seen or (score := self.judge(there)) > goal:
                    continue
                seen.add(there.tobytes())
                if score < goal:
                    best, goal, path = there, score, [(there, 0)]
                    break
                if level + 1 < depth:
                    path.append((there, level + 1))
        return best

    def list_covered(self, dag_dd: NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Edges i → j whose ends have the same other parents, and that no intervention directs."""
        covered = []
        for i, j in np.argwhere(dag_dd):
            others = dag_dd[:, j].copy()
            others[i] = False
            if (others == dag_dd[:, i]).all() and not self.is_fixed(dag_dd, int(i), int(j)):
                covered.append((int(i), int(j)))
        return covered

    def is_fixed(self, dag_dd: NDArray[np.bool_], i: int, j: int) -> bool:
        """Whether i → j must be so: i was set, and j given its parents did not care."""
        parents = frozenset(int(k) for k in np.flatnonzero(dag_dd[:, j]))
        known = [number for number, part in enumerate(self.parts) if i in part.targets]
        return any(self.is_invariant(number, j, parents) for number in known)

    def turn(self, dag_dd: NDArray[np.bool_], i: int, j: int) -> NDArray[np.bool_]:
        """The DAG with j → i, without the edges that are no longer needed."""
        turned_dd = dag_dd.copy()
        turned_dd[i, j], turned_dd[j, i] = False, True
        parents = frozenset(int(k) for k in np.flatnonzero(dag_dd[:, i]))
        for parent in parents:
            rest = parents - {parent}
            turned_dd[parent, i] &= not self.is_independent(i, parent, rest | {j})
            turned_dd[parent, j] &= not self.is_independent(j, parent, rest)
        return turned_dd

    def direct(self, dag_dd: NDArray[np.bool_]) -> NDArray[np.int8]:
        """What the rows decide of a DAG: arrows of its CPDAG, those with one end set, and all that follow."""
        set_ed = np.zeros((1 + len(self.parts), len(dag_dd)), bool)  # the first are rows without a target
        for number, part in enumerate(self.parts, start=1):
            set_ed[number, list(part.targets)] = True
        return dag_to_class(dag_dd.astype(np.int8), set_ed)


def _residual_sum(x_md: Matrix, i: int, others: list[int]) -> float:
    """Sum of squared residuals of a variable regressed on others and a constant."""
    design = np.column_stack([np.ones(len(x_md)), x_md[:, others]])
    weight, *_ = np.linalg.lstsq(design, x_md[:, i], rcond=None)
    return float(((x_md[:, i] - design @ weight) ** 2).sum())
