"""Simulated worlds: random graphs, mechanisms and noise, as tables with known truth."""

from graphbam.simulation.config import PRESETS, UNSEEN, SimulationConfig
from graphbam.simulation.dag import GRAPHS
from graphbam.simulation.labels import edge_classes
from graphbam.simulation.mechanisms import MECHANISMS, additive, mechanism
from graphbam.simulation.noise import NOISES
from graphbam.simulation.sem import Plan, Tables, plan_tables, run_plan, sample_tables

__all__ = [
    "GRAPHS",
    "MECHANISMS",
    "NOISES",
    "PRESETS",
    "UNSEEN",
    "Plan",
    "SimulationConfig",
    "Tables",
    "additive",
    "edge_classes",
    "mechanism",
    "plan_tables",
    "run_plan",
    "sample_tables",
]
