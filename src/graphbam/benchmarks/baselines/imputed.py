"""Methods for tables with missing cells: by multiple imputation, or by the rows that each test or correlation has.

Imputation: five tables, each filled by ridge regressions of every column on all others in turn, with draws from their
posterior (scikit-learn's `IterativeImputer`). The method answers for each; scores are means, and a mark is in the graph
if it is in most of the five.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.baselines._base import Answer, Baseline, Kind, Matrix
from graphbam.benchmarks.baselines._causal_learn import read_graph
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.benchmarks.baselines.bam import Bam
from graphbam.benchmarks.baselines.boss import Boss
from graphbam.benchmarks.baselines.ges import Ges
from graphbam.benchmarks.baselines.pc import Pc

MATRICES = ("score_dd", "moral_dd", "link_score_dd", "arrow_dd", "lean_dd", "hidden_dd")
"""Scores of an answer."""


class Imputed(Baseline):
    """A method behind multiple imputation; complete tables go through as they are."""

    kind: ClassVar[Kind] = "cpdag"
    reads_gaps = True
    inner: ClassVar[type[Baseline]]

    def __init__(self, *, n_tables: int = 5, rounds: int = 10) -> None:
        self.n_tables, self.rounds, self.method = n_tables, rounds, self.inner()

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """As the method itself."""
        return self.method.skip(n_samples, n_variables)

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        if not np.isnan(x_md).any():
            return self.method.fit(x_md, seed=seed)
        answers = []
        for number in range(self.n_tables):
            with isolated(seed):
                full_md = impute(x_md, seed + number, self.rounds)
            answers.append(self.method.fit(full_md, seed=seed))
        return average(answers)


class PcImputed(Imputed):
    """PC."""

    name, title, inner = "pc-imputed", "PC, imputed", Pc
    package, module = "causal-learn", "causallearn"


class GesImputed(Imputed):
    """GES."""

    name, title, inner = "ges-imputed", "GES, imputed", Ges
    package, module = "causal-learn", "causallearn"


class BossImputed(Imputed):
    """BOSS."""

    name, title, inner = "boss-imputed", "BOSS, imputed", Boss
    package, module = "causal-learn", "causallearn"


class BamImputed(Imputed):
    """graphbam, which is then not told which cells were missing."""

    name, title, inner = "graphbam-imputed", "graphbam, imputed", Bam


class PcTestWise(Pc):
    """PC in which every test takes the rows that are complete in its variables."""

    name, title, test = "pc-test-wise", "PC, test-wise", "mv_fisherz"
    reads_gaps = True

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        if not np.isnan(x_md).any():
            return Pc(alpha=self.alpha).fit(x_md, seed=seed)
        with isolated(seed):
            from causallearn.search.ConstraintBased.PC import pc

            graph_dd = read_graph(pc(x_md, self.alpha, self.test, show_progress=False).G)
            return Answer.graded(graph_dd, stand_in(x_md, seed))


class GesTestWise(Ges):
    """GES on correlations, each from the rows that are complete in its two variables."""

    name, title = "ges-test-wise", "GES, test-wise"
    reads_gaps = True

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        return super().fit(stand_in(x_md, seed) if np.isnan(x_md).any() else x_md, seed=seed)


def impute(x_md: Matrix, seed: int, rounds: int) -> Matrix:
    """One draw of a complete table."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (the next import needs it)
    from sklearn.impute import IterativeImputer

    imputer = IterativeImputer(sample_posterior=True, max_iter=rounds, random_state=seed % 2**32)
    return np.asarray(imputer.fit_transform(x_md))


def stand_in(x_md: Matrix, seed: int) -> Matrix:
    """A complete Gaussian table that has the correlations of the pairs' complete rows, as many rows as pairs have.

    Correlations from different rows need not fit together: negative eigenvalues are cut.

    Examples
    --------
    >>> x_md = np.random.default_rng(0).normal(size=(40, 3))
    >>> x_md[:4, 0] = np.nan
    >>> made_md = stand_in(x_md, seed=0)
    >>> len(made_md), bool(np.isclose(np.corrcoef(made_md.T)[0, 1], np.corrcoef(x_md[4:, :2].T)[0, 1]))
    (37, True)
    """
    import pandas as pd

    r_dd = pd.DataFrame(x_md).corr().fillna(0.0).to_numpy()
    size_d, axes_dd = np.linalg.eigh(r_dd)
    root_dd = axes_dd * np.sqrt(np.clip(size_d, 1e-6, None))
    seen_dd = (~np.isnan(x_md)).T.astype(float) @ ~np.isnan(x_md)
    n_rows = round(float(seen_dd[np.triu_indices(len(r_dd), 1)].mean()))
    noise_md = np.random.default_rng(seed).normal(size=(max(n_rows, len(r_dd) + 2), len(r_dd)))
    white_md, _ = np.linalg.qr(noise_md - noise_md.mean(axis=0))
    made_md = white_md @ root_dd.T
    return np.asarray((made_md - made_md.mean(axis=0)) / made_md.std(axis=0))


def average(answers: list[Answer]) -> Answer:
    """Mean scores of answers, and the marks and links that most of them have.

    Examples
    --------
    >>> one, two = (Answer(np.array(graph), np.array(graph) * 0.5) for graph in ([[0, 1], [0, 0]], [[0, 1], [1, 0]]))
    >>> both = average([one, two, one])
    >>> both.graph_dd.tolist(), both.score_dd.round(2).tolist()
    ([[0, 1], [0, 0]], [[0.0, 0.5], [0.17, 0.0]])
    """
    first = answers[0]
    means = {
        name: np.mean([getattr(answer, name) for answer in answers], axis=0)
        for name in MATRICES
        if getattr(first, name) is not None
    }
    graph_dd = vote([answer.graph_dd for answer in answers])
    links = [answer.links_dd for answer in answers if answer.links_dd is not None]
    return Answer(graph_dd, links_dd=vote(links) if links else None, **means)


def vote(graphs: list[NDArray[np.int8]]) -> NDArray[np.int8]:
    """Marks that are in more than half of the graphs."""
    return (np.mean(graphs, axis=0) > 0.5).astype(np.int8)
