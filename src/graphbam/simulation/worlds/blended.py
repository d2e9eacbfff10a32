"""Effects in which noise is one more argument of the function."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from graphbam.simulation.cells import SetCells
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import rand, randn
from graphbam.simulation.worlds.curves import blend, draw_spline
from graphbam.simulation.worlds.parts import by_depth, by_kind, draw_alike, draw_weights, graphs_as_found, mark, put
from graphbam.simulation.worlds.registry import World, world


@world("blended", settable=True)
def blended(
    rng: torch.Generator, n_tables: int, n_variables: int, n_samples: int, cells: SetCells | None = None
) -> World:
    """Effects that are smooth functions of their causes and of noise together: nothing is added.

    Two in five of these functions rise with the causes throughout, whatever the noise; the others bend as they like,
    seldom or often along either argument. Variables without causes, and noise, are smooth functions of normal or
    uniform numbers: as they are, by a rising curve, or by one that turns. In half of the tables all columns are
    measured with errors of up to .15 standard deviations.
    """
    adj_bee = graphs_as_found(rng, n_tables, n_variables)
    base_n, kind_n = draw_alike(rng, 2, n_tables, n_variables).flatten(1)
    rises_n, coin_n = rand(rng, 2, n_tables * n_variables)
    reach_n2 = torch.tensor([0.25, 0.15]) * torch.tensor([10.0, 16.0]) ** rand(rng, n_tables * n_variables, 2)
    own_nm = _smooth_marginal(rng, base_n, kind_n, n_samples)
    x_nm = torch.zeros_like(own_nm)
    for step in by_depth(draw_weights(rng, adj_bee, positive=0.5)):
        y_km, row_k = own_nm[step.row_k], step.row_k
        if len(step.parent_n):
            sign_k1 = (2.0 * (coin_n[row_k] < 0.5) - 1)[:, None]
            causes_km = sign_k1 * unit(step.add_up(x_nm[step.parent_n]))
            functions: tuple[tuple[float, Callable[..., Tensor]], ...] = (
                (0.4, lambda x, e, reach: blend_rising(rng, x, e, reach)),
                (1.0, lambda x, e, reach: blend(rng, x, e, reach)),
            )
            y_km = by_kind(rises_n[row_k], functions, causes_km, y_km, reach_n2[row_k])
        x_nm[row_k] = put(cells, (row_k // n_variables, row_k % n_variables), y_km)
    x_bem = x_nm.view(n_tables, n_variables, n_samples)
    error_b11, has_error_b11 = rand(rng, 2, n_tables, 1, 1)
    x_bem = x_bem + 0.15 * error_b11 * (has_error_b11 < 0.5) * randn(rng, *x_bem.shape)
    return World(x_bem.mT, adj_bee, mark(cells))


def _smooth_marginal(rng: torch.Generator, base_n: Tensor, kind_n: Tensor, n_samples: int) -> Tensor:
    """Rows of unit variance: normal or uniform numbers as they are, along a rising curve, along waves, or both."""
    shape = (len(base_n), n_samples)
    base_nm = torch.where(base_n[:, None] < 0.7, randn(rng, *shape), unit(rand(rng, *shape)))

    def rise(z_nm: Tensor) -> Tensor:
        return draw_spline(rng, z_nm, monotone=1.0)

    def wave(z_nm: Tensor) -> Tensor:
        return blend(rng, z_nm, torch.zeros_like(z_nm), 0.3 * 8 ** rand(rng, len(z_nm), 2))

    families = ((0.2, lambda z_nm: z_nm), (0.6, rise), (0.85, wave), (1.0, lambda z_nm: wave(rise(z_nm))))
    return by_kind(kind_n, families, base_nm)


def blend_rising(rng: torch.Generator, x_nm: Tensor, e_nm: Tensor, reach_n2: Tensor, n_steps: int = 8) -> Tensor:
    """A smooth random function of two numbers that rises with x whatever e is: soft steps across lines in the plane.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> x, e = torch.linspace(-2, 2, 50).expand(9, 50), torch.randn(9, 1, generator=rng).expand(9, 50)
    >>> bool((blend_rising(rng, x, e, torch.ones(9, 2)).diff(dim=1) >= 0).all())
    True
    """
    n_rows = len(x_nm)
    slope_nk2 = 2 * randn(rng, n_rows, n_steps, 2) * reach_n2[:, None]
    slope_nk2[..., 0] = slope_nk2[..., 0].abs()
    place_nk = randn(rng, n_rows, n_steps) * slope_nk2.norm(dim=2)  # steps lie where values are
    height_nk = 0.1 + rand(rng, n_rows, n_steps)
    y_nm = torch.zeros_like(x_nm)
    for k in range(n_steps):
        step_nm = torch.addcmul(place_nk[:, k, None], slope_nk2[:, k, :1], x_nm)
        y_nm.addcmul_(height_nk[:, k, None], step_nm.addcmul_(slope_nk2[:, k, 1:], e_nm).tanh_())
    return unit(y_nm)
