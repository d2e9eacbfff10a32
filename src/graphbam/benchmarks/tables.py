"""The tables of a case: the same numbers for every method, decided by the case's name and the trial alone."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.cases import MAX_ROWS, Case

__all__ = ["Problem", "derive_seed", "draw_problem"]


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A table as methods get it, and the truth, which they do not get."""

    x_md: NDArray[np.float64]
    """Columns with mean 0 and standard deviation 1; constant ones are 0."""
    adjacency: NDArray[np.int8]
    is_dag: bool
    """Whether the truth is a DAG; of others only the skeleton is judged."""

    def fingerprint(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of table and truth: equal for the same problem only."""
        digest = hashlib.sha256(f"{self.x_md.shape} {self.is_dag} ".encode())
        digest.update(np.ascontiguousarray(self.x_md).tobytes())
        digest.update(np.ascontiguousarray(self.adjacency).tobytes())
        return digest.hexdigest()[:16]


def draw_problem(case: Case, trial: int) -> Problem:
    """Simulate or read one table of a case.

    Examples
    --------
    >>> from graphbam.benchmarks.cases import resolve_cases
    >>> (case,) = resolve_cases(["sine-d5-m40"])
    >>> first, again, other = (draw_problem(case, trial) for trial in (0, 0, 1))
    >>> first.fingerprint() == again.fingerprint() != other.fingerprint()
    True
    """
    import torch

    from graphbam.tables.prepare import standardise

    x_md, adjacency = _simulate(case, trial) if case.folder is None else _read(case, case.folder)
    scaled = standardise(torch.from_numpy(x_md), robust=False, clip=float("inf"))
    return Problem(np.ascontiguousarray(scaled.numpy()), adjacency, case.is_dag)


def derive_seed(*parts: object, bits: int = 32) -> int:
    """A seed from words and numbers, the same on every machine.

    Examples
    --------
    >>> derive_seed("table", "cosine-d50-m200", 0) == derive_seed("table", "cosine-d50-m200", 0)
    True
    >>> derive_seed("table", "cosine-d50-m200", 0) == derive_seed("table", "cosine-d50-m200", 1)
    False
    """
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - bits)


def _simulate(case: Case, trial: int) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    import torch

    from graphbam.simulation.config import SimulationConfig
    from graphbam.simulation.values import sample_tables

    rng = torch.Generator().manual_seed(derive_seed("table", case.name, trial, bits=63))
    config = SimulationConfig.paper().narrow(mechanism=case.mechanism)
    tables = sample_tables(rng, config, n_tables=1, n_variables=case.n_variables, n_samples=case.n_samples)
    return tables.x_bmd[0].double().numpy(), tables.dag_bdd[0].numpy()


def _read(case: Case, folder: str) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    from graphbam.tables.labelled import read_labelled

    table = read_labelled(Path(folder), MAX_ROWS if case.source == "tables" else None)
    return table.x_md, table.adjacency
