"""Named worlds: kinds of tables that people have, each with its own way to come about.

::

    registry    what a world is, and which there are
    parts       what worlds are made of: graphs, weights, an order to fill variables in, cells that are set
    curves      marginals and functions as they are found

and a module for every world, or for two that are nearly one.

A world is a function ``(rng, n_tables, n_variables, n_samples) -> World``, all tables at once, on the CPU. It draws
graphs and values of `n_variables` variables, and of drivers behind them if it has any: these come last and are never
shown. Whatever else may happen to a table (further variables hidden, cells missing, columns shuffled and standardised)
happens later and is no business of a world. A new one:

>>> import torch
>>> from graphbam.simulation.worlds.parts import draw_graphs, draw_weights, in_causal_order
>>> @world("sums")
... def sums(rng, n_tables, n_variables, n_samples):
...     adj_bee = draw_graphs(rng, n_tables, n_variables, {"erdos-renyi": 1.0}, degrees=(1, 3))
...     x_bem = torch.randn(n_tables, n_variables, n_samples, generator=rng)
...     for child, w_be in in_causal_order(draw_weights(rng, adj_bee)):
...         x_bem[:, child] += (w_be[:, :, None] * x_bem).sum(1)
...     return World(x_bem.mT, adj_bee)
>>> WORLDS["sums"](torch.Generator(), 4, 6, 100).x_bme.shape
torch.Size([4, 100, 6])
>>> del WORLDS["sums"]

A world registered with ``settable=True`` takes one more argument, the cells that an experiment sets, and applies them
(`parts.put`) to every variable before its children see it.
"""

from graphbam.simulation.worlds import (
    blended,
    collinear,
    counts,
    flows,
    found,
    gene_dynamics,
    levels,
    monitoring,
    questionnaire,
    recorded,
    single_cell,
)
from graphbam.simulation.worlds.registry import LOOPS, SERIES, SETTABLE, WORLDS, World, world

__all__ = [
    "LOOPS",
    "SERIES",
    "SETTABLE",
    "WORLDS",
    "World",
    "blended",
    "collinear",
    "counts",
    "flows",
    "found",
    "gene_dynamics",
    "levels",
    "monitoring",
    "questionnaire",
    "recorded",
    "single_cell",
    "world",
]
