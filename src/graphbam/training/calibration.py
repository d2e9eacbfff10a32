"""Make probabilities mean what they say: a temperature and class offsets fitted on fresh simulated tables."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.sem import sample_tables
from graphbam.weights import LoadedWeights

SHAPES = ((5, 300), (10, 100), (10, 500), (20, 200), (20, 600), (40, 100), (40, 400), (80, 200), (100, 60))
"""Variables and samples of the tables that the fit sees."""


def fit_calibration(logits_n3: Tensor, classes_n: Tensor, weight_n: Tensor | None = None) -> dict[str, Any]:
    """Temperature T and class offsets b that minimise the cross-entropy of softmax(logits / T + b).

    Offsets have mean zero. `weight_n` weighs the pairs; by default all count alike.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = 2 * torch.randn(4000, 3, generator=rng)
    >>> classes = torch.multinomial((logits / 2).softmax(-1), 1, generator=rng)[:, 0]
    >>> abs(fit_calibration(logits, classes)["temperature"] - 2) < 0.15
    True
    """
    logits_n3 = logits_n3.double()
    weight_n = torch.ones(len(classes_n), dtype=torch.float64) if weight_n is None else weight_n.double()
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    offsets = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_temperature, offsets], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        scaled = logits_n3 / log_temperature.exp() + offsets - offsets.mean()
        losses = F.cross_entropy(scaled, classes_n, reduction="none")
        loss = (losses * weight_n).sum() / weight_n.sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    centred = (offsets - offsets.mean()).detach()
    return {
        "temperature": float(log_temperature.detach().exp()),
        "offsets": [round(value, 6) for value in centred.tolist()],
    }


@torch.no_grad()
def simulated_logits(
    loaded: LoadedWeights, rng: torch.Generator, config: SimulationConfig, n_tables: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Raw logits, classes and weights of all pairs i > j of fresh tables over `SHAPES`; each table weighs the same."""
    logits, classes, weights = [], [], []
    for n_variables, n_samples in SHAPES:
        tables = sample_tables(rng, config, n_tables=n_tables, n_variables=n_variables, n_samples=n_samples)
        rows, columns = torch.tril_indices(n_variables, n_variables, -1).unbind(0)
        chunks = torch.arange(n_tables).chunk(max(1, n_tables // 8))
        for x_bmd, classes_bdd in ((tables.x_bmd[chunk], tables.classes_bdd[chunk]) for chunk in chunks):
            logits.append(loaded.network(x_bmd).cpu()[:, rows, columns].flatten(0, 1))
            classes.append(classes_bdd[:, rows, columns].flatten())
            weights.append(torch.full_like(classes[-1], 1 / len(rows), dtype=torch.float64))
    return torch.cat(logits), torch.cat(classes), torch.cat(weights)
