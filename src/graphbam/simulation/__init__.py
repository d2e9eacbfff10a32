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

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from graphbam.errors import ConfigError, Setting, check_whole
from graphbam.graphs.graph import Graph
from graphbam.machine.memory import free_memory, tell_excess
from graphbam.simulation.config import PRESETS, UNSEEN, SimulationConfig
from graphbam.simulation.graphs import GRAPHS, graph_kind
from graphbam.simulation.mechanisms import MECHANISMS, additive, mechanism
from graphbam.simulation.noise import NOISES, noise
from graphbam.simulation.plan import Plan, plan_tables
from graphbam.simulation.values import Tables, run_plan, sample_tables
from graphbam.simulation.worlds import LOOPS, SETTABLE, WORLDS, World, world

__all__ = [
    "GRAPHS",
    "MECHANISMS",
    "NOISES",
    "PRESETS",
    "UNSEEN",
    "WORLDS",
    "Plan",
    "SimulatedTable",
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
    "simulate_table",
    "world",
]


BYTES_PER_CELL, BYTES_PER_PAIR = 48.0, 64.0
"""What a cell of a table, and a pair of its variables, take at most while it is simulated; measured."""


@dataclass(frozen=True, eq=False)
class SimulatedTable:
    """One table, and all that is known of it."""

    graph: Graph
    """Directed edges among the shown variables; those of the latent projection where others are hidden."""
    x_md: NDArray[np.float64]
    """Standardised columns in the order of ``graph.names``; NaN where a cell is missing."""
    bidirected: tuple[tuple[str, str], ...]
    """Pairs with a hidden common cause."""
    set_md: NDArray[np.bool_]
    """Cells that were set by an intervention."""


def simulate(
    *,
    n_samples: int = 500,
    n_variables: int = 20,
    mechanism: str | None = None,
    graph: str | None = None,
    degree: float | None = None,
    noise: str | None = None,
    world: str | None = None,
    hidden: bool = False,
    interventions: bool = False,
    missing: bool = False,
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
    world : str, optional
        A kind of table that people have, a key of `WORLDS`, instead of the four choices above.
    hidden, interventions, missing : bool
        Whether the world has more variables than the table shows, cells that were set, cells that are missing.
    preset : str
        A key of `PRESETS`, such as ``paper``, ``broad`` or ``textbook``, for everything that is not fixed above.
    seed : int
        The same seed gives the same world.

    Returns
    -------
    dag : Graph
        The truth, over X1, X2 …; ``dag.adjacency[i, j]`` is 1 for i → j. A path through hidden variables counts as an
        edge.
    x_md : ndarray, shape (n_samples, n_variables)
        Standardised columns, in the order of ``dag.names``; NaN where a cell is missing. An array has no names: pass
        ``pd.DataFrame(x_md, columns=dag.names)`` where they matter. ``infer(x_md).score(dag)`` goes by the order.

    See Also
    --------
    simulate_table : The same with hidden common causes and the cells that were set.

    Examples
    --------
    >>> dag, x_md = simulate(n_samples=500, n_variables=20, mechanism="sine", degree=3, seed=0)
    >>> dag.adjacency.shape, x_md.shape
    ((20, 20), (500, 20))
    >>> cells = simulate(n_samples=200, n_variables=5, world="single-cell", missing=True)[1]
    >>> bool(np.isnan(cells).any())
    True
    >>> simulate(mechanism="sinus")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    graphbam.errors.ConfigError: mechanism='sinus' is unknown; choose from chebyshev, cosine, cubic, ...
    """
    choices = {"mechanism": mechanism, "graph": graph, "degree": degree, "noise": noise, "world": world}
    shares = {"hidden": hidden, "interventions": interventions, "missing": missing}
    table = simulate_table(
        n_samples=n_samples, n_variables=n_variables, preset=preset, seed=seed, **choices, **shares
    )  # fmt: skip
    return table.graph, table.x_md


def simulate_table(
    *, n_samples: int, n_variables: int, preset: str = "paper", seed: int = 0, **options: Any
) -> SimulatedTable:
    """Simulate one table with everything that is known of it; options as in `simulate`.

    Examples
    --------
    >>> table = simulate_table(n_samples=100, n_variables=6, hidden=True, interventions=True)
    >>> len(table.bidirected) > 0, bool(table.set_md.any())
    (True, True)
    """
    config = _config_of(preset, **options)
    for name, value in (("n_samples", n_samples), ("n_variables", n_variables), ("seed", seed)):
        check_whole(name, value)
    _check_memory(n_samples, n_variables)
    rng = torch.Generator().manual_seed(seed)
    tables = sample_tables(rng, config, n_tables=1, n_variables=n_variables, n_samples=n_samples)
    names = tuple(f"X{i}" for i in range(1, n_variables + 1))
    x_md = tables.x_bmd[0].double().numpy()
    if tables.observed_bmd is not None:
        x_md = np.where(tables.observed_bmd[0].numpy(), x_md, np.nan)
    set_md = np.zeros(x_md.shape, bool) if tables.set_bmd is None else tables.set_bmd[0].numpy()
    pairs = np.argwhere(np.triu(tables.hidden_bdd[0].numpy()))
    joined = tuple((names[i], names[j]) for i, j in pairs)
    return SimulatedTable(Graph(names, tables.dag_bdd[0].numpy()), x_md, joined, set_md)


def _check_memory(n_samples: int, n_variables: int) -> None:
    """Refuse a table that would not fit into memory, before the system kills the process."""
    needed, free = BYTES_PER_CELL * n_samples * n_variables + BYTES_PER_PAIR * n_variables**2, free_memory()
    if free is not None and needed > free:
        fewer = "rows" if n_samples > n_variables else "variables"
        raise ConfigError(f"{tell_excess(n_samples, n_variables, needed, free)} Simulate fewer {fewer}.")


def _config_of(
    preset: str, *, world: str | None = None, hidden: bool = False, interventions: bool = False, missing: bool = False,
    **choices: Any,
) -> SimulationConfig:  # fmt: skip
    """A preset with everything fixed that somebody chose."""
    config = SimulationConfig.preset(preset).narrow(**choices)
    asked = {"hidden": hidden, "interventions": interventions, "missing": missing}
    changes: dict[str, Any] = {name: 1.0 for name, is_asked in asked.items() if is_asked}
    if world is not None:
        fixed = [name for name, value in choices.items() if value is not None]
        if fixed:
            raise ConfigError(Setting("world", world), f" has a {fixed[0]} of its own; leave out one of the two")
        if interventions and world in WORLDS and world not in SETTABLE:
            own = " has its own interventions or none; leave out "
            raise ConfigError(Setting("world", world), own, Setting("interventions"))
        if hidden and world in LOOPS:
            raise ConfigError(
                Setting("world", world),
                " has feedback loops, which must not run through hidden variables; leave out ",
                Setting("hidden"),
            )
        changes |= {"worlds": {world: 1.0}, "small_worlds": {}, "robust": True}
    return dataclasses.replace(config, **changes) if changes else config
