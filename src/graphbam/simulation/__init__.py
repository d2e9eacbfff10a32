"""Simulated worlds: tables with known truth.

::

    graphs      kinds of random DAGs                     a new one: @graph_kind("name")
    mechanisms  how a variable answers its parents       a new one: @mechanism("name")
    noise       noise families                           a new one: @noise("name")
    worlds      kinds of tables that people have         a new one: @world("name")
    config      what a world may look like               a new one: an entry of PRESETS
    cells       which variables are shown, which cells were set or are missing
    plan        what is drawn for a world: who has which mechanism, noise and effect
    values      numbers from the plan
    labels      what is true of every pair

Whatever is registered can be drawn by name, here, in a preset and on the command line:

>>> @mechanism("sawtooth")
... @additive
... def sawtooth(rng, x_npm):
...     return x_npm - x_npm.round()
>>> PRESETS["saws"] = SimulationConfig(mechanisms={"sawtooth": 0.8, "linear": 0.2}, noises={"laplace": 1.0})
>>> dag, x_md = simulate(preset="saws", n_variables=6, n_samples=100)
>>> x_md.shape
(100, 6)
>>> del MECHANISMS["sawtooth"], PRESETS["saws"]
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from graphbam.graphs.graph import Graph
from graphbam.simulation.config import PRESETS, UNSEEN, SimulationConfig
from graphbam.simulation.graphs import GRAPHS, graph_kind
from graphbam.simulation.mechanisms import MECHANISMS, additive, mechanism
from graphbam.simulation.noise import NOISES, noise
from graphbam.simulation.plan import Plan, plan_tables
from graphbam.simulation.values import Tables, run_plan, sample_tables
from graphbam.simulation.worlds import WORLDS, World, world

__all__ = [
    "GRAPHS",
    "MECHANISMS",
    "NOISES",
    "PRESETS",
    "UNSEEN",
    "WORLDS",
    "Plan",
    "SimulationConfig",
    "Tables",
    "World",
    "additive",
    "graph_kind",
    "mechanism",
    "noise",
    "plan_tables",
    "run_plan",
    "sample_tables",
    "simulate",
    "world",
]


def simulate(
    *,
    n_samples: int = 500,
    n_variables: int = 20,
    mechanism: str | None = None,
    graph: str | None = None,
    degree: float | None = None,
    noise: str | None = None,
    preset: str = "paper",
    seed: int = 0,
) -> tuple[Graph, NDArray[np.float64]]:
    """Simulate one table together with the graph it came from.

    Parameters
    ----------
    n_samples, n_variables : int
        Rows M and columns d of the table.
    mechanism : str, optional
        How variables answer their parents, a key of `MECHANISMS`. None: as the preset draws it.
    graph : str, optional
        Kind of graph, a key of `GRAPHS`.
    degree : float, optional
        Expected number of neighbours of a variable.
    noise : str, optional
        Noise family, a key of `NOISES`.
    preset : str
        ``paper``, ``literal`` or ``broad``, for everything that is not fixed above.
    seed : int
        The same seed gives the same world.

    Returns
    -------
    dag : Graph
        The truth; ``dag.adjacency[i, j]`` is 1 for i → j.
    x_md : ndarray, shape (n_samples, n_variables)
        Standardised columns, in the order of ``dag.names``.

    Examples
    --------
    >>> dag, x_md = simulate(n_samples=500, n_variables=20, mechanism="sine", degree=3, seed=0)
    >>> dag.adjacency.shape, x_md.shape
    ((20, 20), (500, 20))
    >>> simulate(mechanism="sinus")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    graphbam.errors.ConfigError: mechanism='sinus' is unknown; choose from chebyshev, cosine, cubic, ...
    """
    config = SimulationConfig.preset(preset).narrow(mechanism=mechanism, graph=graph, degree=degree, noise=noise)
    rng = torch.Generator().manual_seed(seed)
    tables = sample_tables(rng, config, n_tables=1, n_variables=n_variables, n_samples=n_samples)
    names = tuple(f"X{i}" for i in range(1, n_variables + 1))
    return Graph(names, tables.dag_bdd[0].numpy()), tables.x_bmd[0].double().numpy()
