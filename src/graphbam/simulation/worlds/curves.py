"""Marginals, functions and noise as they are found: humps, grids, splines, and noise inside a function."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from graphbam.simulation.mechanisms import unit
from graphbam.simulation.noise import rand, randn
from graphbam.simulation.worlds.parts import by_kind

MONOTONE = 0.75
"""Share of splines that only rise or only fall."""

PLAIN = 1.0
"""Kind of the noise as found that is normal; all others are below."""


def found_marginal(
    rng: torch.Generator, kind_n: Tensor, size_n: Tensor, n_samples: int, turned: float = 0.25
) -> Tensor:
    """Rows of unit variance: mixtures of up to ten humps, uniform, bounded, skewed, counts, heavy tails, normal.

    Where a row's `kind` lies decides which: in [0, 1), or `PLAIN` for normal ones. Its `size`, in [0, 1), decides how
    skewed, heavy or humped. A share of rows, `turned`, is turned over.

    Examples
    --------
    >>> kind_n = torch.tensor([0.1, 0.5, 0.9])
    >>> found_marginal(torch.Generator().manual_seed(0), kind_n, torch.rand(3), 50).shape
    torch.Size([3, 50])
    """
    n_rows, size_n1 = len(kind_n), size_n[:, None]
    coin_n1 = rand(rng, n_rows, 1)
    e_nm, u_nm = randn(rng, n_rows, n_samples), rand(rng, n_rows, n_samples).clamp(1e-6, 1 - 1e-6)

    def humps(e: Tensor, u: Tensor, size: Tensor) -> Tensor:
        return _mix_humps(rng, e, u, size)

    families: tuple[tuple[float, Callable[..., Tensor]], ...] = (
        (0.26, humps),
        (0.34, lambda e, u, size: u),
        (0.46, lambda e, u, size: u ** (0.25 * 16**size)),  # bounded, thicker at one end or the other
        (0.54, lambda e, u, size: (1 - torch.cos(math.pi * u)) ** (0.5 + size)),  # bounded, thicker at both
        (0.66, lambda e, u, size: torch.exp((0.3 + size) * e)),
        (0.78, lambda e, u, size: (-u.log()) ** (0.5 + size)),
        (0.88, lambda e, u, size: torch.poisson((0.5 + 30 * size.square()).expand_as(u), generator=rng)),
        (0.99, lambda e, u, size: e / (1e-3 + 1 - u) ** (0.15 + 0.2 * size)),
        (PLAIN, humps),
        (PLAIN + 1, lambda e, u, size: e),
    )
    x_nm = by_kind(kind_n, families, e_nm, u_nm, size_n1)
    return unit(torch.where(coin_n1 < turned, -x_nm, x_nm))


def _mix_humps(rng: torch.Generator, e_nm: Tensor, u_nm: Tensor, size_n1: Tensor) -> Tensor:
    """One to ten normal humps of all widths, the more the larger `size`; `u` decides to which a value belongs."""
    n_humps_n1 = (1 + 10 * size_n1.square()).floor()
    place_n10 = randn(rng, len(e_nm), 10)
    width_n10, weight_n10 = rand(rng, 2, len(e_nm), 10)
    weight_n10 = (0.05 + weight_n10) * (torch.arange(10) < n_humps_n1)
    bounds_n10 = weight_n10.cumsum(1) / weight_n10.sum(1, keepdim=True)
    hump_nm = torch.searchsorted(bounds_n10[:, :9].contiguous(), u_nm)
    return (1.5 * place_n10).gather(1, hump_nm) + (0.05 + 0.8 * width_n10).gather(1, hump_nm) * e_nm


def found_response(rng: torch.Generator, x_nm: Tensor) -> Tensor:
    """A function of each row: a spline in half of the cases, else a line, a power, an exponential or a step."""
    kind_n, size_n, coin_n = rand(rng, 3, len(x_nm))
    sign_n1 = (2.0 * (coin_n < 0.5) - 1)[:, None]
    shapes: tuple[tuple[float, Callable[..., Tensor]], ...] = (
        (0.50, lambda z, size: random_spline(rng, z)),
        (0.65, lambda z, size: z),
        (0.78, lambda z, size: z.sign() * z.abs() ** (0.4 + 2 * size)),
        (0.89, lambda z, size: torch.exp((0.4 + size) * z.clamp(-4, 4))),
        (1.00, lambda z, size: torch.tanh((0.5 + 2 * size) * (z - size))),
    )
    return unit(sign_n1 * by_kind(kind_n, shapes, sign_n1 * x_nm, size_n[:, None]))


def found_looks(rng: torch.Generator, kind_b1: Tensor, size_b1: Tensor, y_bm: Tensor) -> Tensor:
    """What befalls any column: growth by factors, rounding to 5 to 200 levels, a ceiling or floor.

    Where in [0, 1) its `kind` lies decides about the first two, its `size` how much.
    """
    levels_b1, capped_b1 = rand(rng, 2, len(y_bm), 1)
    y_bm = torch.where(kind_b1 < 0.3, unit(torch.exp((0.3 + 0.9 * size_b1) * y_bm.clamp(-4, 4))), y_bm)
    top_b1 = 0.8 + 1.5 * size_b1
    y_bm = torch.where(capped_b1 < 0.06, y_bm.clamp(max=top_b1), y_bm)
    y_bm = torch.where(capped_b1 > 0.94, y_bm.clamp(min=-top_b1), y_bm)
    step_b1 = (y_bm.amax(1, keepdim=True) - y_bm.amin(1, keepdim=True)) / (5 * 40**levels_b1)
    step_b1 = step_b1.clamp(min=1e-6)
    return torch.where((kind_b1 > 0.2) & (kind_b1 < 0.6), (y_bm / step_b1).round() * step_b1, y_bm)


def random_spline(rng: torch.Generator, x_nm: Tensor, n_knots: int = 6) -> Tensor:
    """A sum of soft steps at random values of each row; all up or all down in `MONOTONE` of them.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> y = random_spline(rng, torch.linspace(-2, 2, 50).expand(200, 50)).diff(dim=1)
    >>> 0.6 < ((y >= 0).all(1) | (y <= 0).all(1)).float().mean().item() < 0.9
    True
    """
    n_rows = len(x_nm)
    place_nk = (rand(rng, n_rows, n_knots) * x_nm.shape[1]).long()
    knot_nk = x_nm.gather(1, place_nk)  # more knots where there are more values
    slope_nk, height_nk = 1 / (0.1 + rand(rng, n_rows, n_knots)), randn(rng, n_rows, n_knots)
    height_nk = torch.where(rand(rng, n_rows, 1) < MONOTONE, height_nk.abs() * height_nk[:, :1].sign(), height_nk)
    y_nm = torch.zeros_like(x_nm)
    for k in range(n_knots):
        y_nm.addcmul_(height_nk[:, k, None], ((x_nm - knot_nk[:, k, None]) * slope_nk[:, k, None]).tanh_())
    return unit(y_nm)


def draw_spline(rng: torch.Generator, x_nm: Tensor, monotone: float = 0.6) -> Tensor:
    """A curve through random heights at three to seven quantiles of each row, unlike `random_spline` with bends.

    Piecewise cubic, with the slopes at the knots that keep a rising part rising. In a share of rows, `monotone`,
    heights only rise or only fall. Knots that coincide, since many values are the same, are set apart.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> y = draw_spline(rng, torch.linspace(-2, 2, 50).expand(200, 50)).diff(dim=1)
    >>> 0.6 < ((y >= -1e-6).all(1) | (y <= 1e-6).all(1)).float().mean().item() < 0.75
    True
    """
    n_rows, n_samples = x_nm.shape
    n_knots_n1 = torch.randint(3, 8, (n_rows, 1), generator=rng)
    place_n7 = (torch.arange(7) / (n_knots_n1 - 1)).clamp(max=1.0) * (n_samples - 1)
    sorted_nm, before_n7 = x_nm.sort(1).values, place_n7.long()
    after_n7 = (before_n7 + 1).clamp(max=n_samples - 1)
    knot_n7 = torch.lerp(sorted_nm.gather(1, before_n7), sorted_nm.gather(1, after_n7), place_n7 - before_n7)
    gap_n6 = knot_n7.diff(dim=1).maximum(0.02 * (sorted_nm[:, -1:] - sorted_nm[:, :1]).clamp_min(1e-6))
    knot_n7 = torch.cat([knot_n7[:, :1], knot_n7[:, :1] + gap_n6.cumsum(1)], 1)
    free_n7, rise_n7 = randn(rng, n_rows, 7), 0.02 + rand(rng, n_rows, 7)
    sign_n1, monotone_n1 = rand(rng, 2, n_rows, 1)
    rising_n7 = torch.where(sign_n1 < 0.5, 1.0, -1.0) * rise_n7.cumsum(1)
    return unit(interpolate(knot_n7, torch.where(monotone_n1 < monotone, rising_n7, free_n7), x_nm))


def interpolate(knot_nk: Tensor, height_nk: Tensor, x_nm: Tensor) -> Tensor:
    """Piecewise cubic curves through points, row by row, that turn at points alone (Fritsch and Butland's slopes).

    Examples
    --------
    >>> x = torch.tensor([[0.0, 0.5, 1.0, 2.0]])
    >>> interpolate(torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[0.0, 1.0, 0.0]]), x)
    tensor([[0.0000, 0.6250, 1.0000, 0.0000]])
    """
    gap_nk, steep_nk = knot_nk.diff(dim=1), height_nk.diff(dim=1) / knot_nk.diff(dim=1)
    left, right = steep_nk[:, :-1], steep_nk[:, 1:]
    inner_nk = torch.where(left * right > 0, 2 * left * right / (left + right), 0.0)
    slope_nk = torch.cat([steep_nk[:, :1], inner_nk, steep_nk[:, -1:]], 1)
    at_nm = (torch.searchsorted(knot_nk, x_nm.contiguous()) - 1).clamp(0, knot_nk.shape[1] - 2)
    gap, from_, to = gap_nk.gather(1, at_nm), height_nk.gather(1, at_nm), height_nk.gather(1, at_nm + 1)
    first, last = slope_nk.gather(1, at_nm), slope_nk.gather(1, at_nm + 1)
    t = ((x_nm - knot_nk.gather(1, at_nm)) / gap).clamp(0, 1)
    return from_ + t * t * (3 - 2 * t) * (to - from_) + gap * (t * (1 - t) ** 2 * first - t * t * (1 - t) * last)


def blend(
    rng: torch.Generator, x_nm: Tensor, e_nm: Tensor, reach_n2: Tensor | None = None, n_waves: int = 24
) -> Tensor:
    """A smooth random function of two numbers, x and e, drawn anew for each row: a sum of waves.

    `reach` says how fast it changes with either; by default both reach as far as the function does in about one to
    three bends. Where e is small it nearly follows x alone.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> x, e = torch.randn(2, 5, 400, generator=rng)
    >>> blend(rng, x, e).std(1).allclose(torch.ones(5), atol=0.01)
    True
    """
    n_rows = len(x_nm)
    reach_n2 = 0.3 * 4 ** rand(rng, n_rows, 2) if reach_n2 is None else reach_n2
    waves_nk2 = randn(rng, n_rows, n_waves, 2) * reach_n2[:, None]
    phase_nk, height_nk = 2 * math.pi * rand(rng, n_rows, n_waves), randn(rng, n_rows, n_waves)
    y_nm = torch.zeros_like(x_nm)
    for k in range(n_waves):
        wave_nm = torch.addcmul(phase_nk[:, k, None], waves_nk2[:, k, :1], x_nm)
        y_nm.addcmul_(height_nk[:, k, None], wave_nm.addcmul_(waves_nk2[:, k, 1:], e_nm).cos_())
    return unit(y_nm)
