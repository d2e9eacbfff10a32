"""AVICI (Lorch et al. 2022): a network trained in advance that answers with the probability of every arrow.

Two rows. The authors' own weights, for whoever has them: nothing is ever downloaded here. And the same design trained
by us, on the tables, in the engine and for the GPU minutes of the paper's network: a comparison of the designs alone.
Either may answer with cycles. They stay, and two opposite arrows read as an undirected link.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._isolation import isolated
from graphbam.benchmarks.baselines._weights import explain_absence, find_weights
from graphbam.benchmarks.baselines.avici_net import LoadedArrows, load_arrows

FOLDER = "GRAPHBAM_AVICI"
"""Environment variable that names the folder with the authors' scm-v0: a checkpoint (.pkl) and kwargs.json."""

CACHED = "cache/models--larslorch--avici/snapshots/*/scm-v0"
"""Where the package avici itself leaves it, below the current folder."""


class Avici(Baseline):
    """The authors' weights scm-v0 in their package. The checkpoint is a pickle: opening it runs what it holds."""

    name, title, kind = "avici", "AVICI scm-v0", "dag"
    package, module = "avici", "avici"

    def __init__(self, *, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = folder

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Neither the package nor its weights come with graphbam."""
        if importlib.util.find_spec("avici") is None:
            return "needs the package avici, which is not installed: pip install avici (Python < 3.12, numpy < 2)"
        if find_checkpoint(self.folder) is None:
            return f"needs the authors' weights scm-v0, which are not here: name their folder in {FOLDER}"
        return None

    @cached_property
    def _model(self) -> Any:
        folder = find_checkpoint(self.folder)
        assert folder is not None  # `skip` has looked
        return load_checkpoint(folder)

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """Ask their model; all rows are observations."""
        with isolated(seed):
            p_dd = self._model(x=np.asarray(x_md, np.float32), devices="cpu", shard_if_possible=False)
        return answer_arrows(np.array(p_dd, np.float64))


class AviciRetrained(Baseline):
    """AVICI's design, trained with `graphbam train --network avici --data paper`; weights by name or path."""

    name, title, kind = "avici-retrained", "AVICI, retrained", "dag"

    def __init__(self, *, weights: str = "avici-retrained", device: str = "cpu") -> None:
        self.weights, self.device = weights, device

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """Weights may not be part of the package."""
        return None if self._path else explain_absence(self.weights)

    @property
    def _path(self) -> Path | None:
        return Path(self.weights) if Path(self.weights).is_file() else find_weights(self.weights)

    @cached_property
    def _loaded(self) -> LoadedArrows:
        assert self._path is not None  # `skip` has looked
        return load_arrows(self._path, self.device)

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        """One forward pass."""
        import torch

        with isolated(seed):
            p_bdd = self._loaded.probabilities(torch.as_tensor(np.asarray(x_md, np.float32))[None])
        return answer_arrows(p_bdd[0].numpy())


def answer_arrows(p_dd: Matrix) -> Answer:
    """The arrows above one half, their probabilities, and what those say of the moral graph."""
    np.fill_diagonal(p_dd, 0.0)
    return Answer((p_dd > 0.5).astype(np.int8), p_dd, moral_probabilities(p_dd))


def moral_probabilities(p_dd: Matrix) -> Matrix:
    """Probability that i and j are adjacent or have a common child, all arrows being independent, as AVICI takes them.

    1 − (1 − p_ij)(1 − p_ji) Π_k (1 − p_ik p_jk), for probabilities with a zero diagonal.

    Examples
    --------
    >>> moral_probabilities(np.array([[0, 0, 0.5], [0, 0, 0.5], [0, 0, 0]])).round(2)
    array([[0.  , 0.25, 0.5 ],
           [0.25, 0.  , 0.5 ],
           [0.5 , 0.5 , 0.  ]])
    """
    childless_dd = np.stack([np.prod(1 - p_d * p_dd, axis=1) for p_d in p_dd])
    moral_dd = 1 - (1 - p_dd) * (1 - p_dd.T) * childless_dd
    np.fill_diagonal(moral_dd, 0.0)
    return moral_dd


def find_checkpoint(folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Folder with the authors' scm-v0: the given one, that of `GRAPHBAM_AVICI`, or what their package has left here."""
    named = folder or os.environ.get(FOLDER)
    for place in [Path(named)] if named else sorted(Path().glob(CACHED)):
        if (place / "kwargs.json").is_file() and any(place.glob("*.pkl")):
            return place
    return None


def load_checkpoint(folder: Path) -> Any:
    """Their model from local files. Their loader looks for kwargs.json one folder too high: it finds it in both."""
    avici = importlib.import_module("avici")
    with tempfile.TemporaryDirectory() as stage:
        inner = Path(stage, "scm-v0")
        inner.mkdir()
        for path in folder.iterdir():
            (inner / path.name).symlink_to(path.resolve())
        Path(stage, "kwargs.json").symlink_to((folder / "kwargs.json").resolve())
        return avici.load_pretrained(checkpoint_dir=inner, expects_counts=False)
