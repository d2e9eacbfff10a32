"""How a variable answers its parents.

A mechanism is a function ``(rng, x_npm, mask_np, config) -> f_nm``. It gets N nodes at once, with P slots
for parents and M samples: ``mask_np`` is 1 where a slot holds a parent and 0 where it is empty, and the
values of empty slots are 0. All parameters are drawn inside, from `rng`, separately for each node. Scale and
location of the result do not matter: signal and noise are brought to unit variance before they are mixed.

A new mechanism takes a few lines. `additive` is the short form for sums ``Σ_w ± α_w g(x_w)`` over parents:

>>> @mechanism("sawtooth")
... @additive
... def sawtooth(rng, x_npm):
...     return x_npm - x_npm.round()
>>> rng = torch.Generator().manual_seed(0)
>>> x_npm, mask_np = torch.randn(5, 2, 100, generator=rng), torch.ones(5, 2)
>>> from graphbam.simulation.config import SimulationConfig
>>> MECHANISMS["sawtooth"](rng, x_npm, mask_np, SimulationConfig.paper()).shape
torch.Size([5, 100])
>>> del MECHANISMS["sawtooth"]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphbam.simulation.noise import rand, randn

if TYPE_CHECKING:
    from graphbam.simulation.config import SimulationConfig

Mechanism = Callable[[torch.Generator, Tensor, Tensor, Any], Tensor]
Additive = Callable[[torch.Generator, Tensor], Tensor]
Link = Callable[[torch.Generator, Tensor], Tensor]

MECHANISMS: dict[str, Mechanism] = {}
"""Mechanisms by name."""

LINKS: dict[str, Link] = {}
"""Functions ``(rng, x_nm) -> x_nm`` that a mechanism applies *after* the noise has been added."""

CHEBYSHEV_VARIANTS = ("paper", "literal", "broad")

N_CHEBYSHEV = 5
"""Degree r of the Chebyshev polynomials."""

_EPS = 1e-6


def mechanism(name: str, link: Link | None = None) -> Callable[[Mechanism], Mechanism]:
    """Register a mechanism under `name`, optionally with a function for signal plus noise."""

    def register(answer: Mechanism) -> Mechanism:
        MECHANISMS[name] = answer
        if link is not None:
            LINKS[name] = link
        return answer

    return register


def additive(g: Additive) -> Mechanism:
    """Make a mechanism Σ_w ± α_w g(x_w) from a function of one parent; α as `signed_weights` draws it."""

    def answer(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
        return weighted_sum(g(rng, x_npm), signed_weights(rng, mask_np, config))

    answer.__doc__, answer.__name__ = g.__doc__, g.__name__
    return answer


def signed_weights(rng: torch.Generator, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """Weights ±U[low, high] of `config.weight_range`, 0 in empty slots; signs at random, or one sign for all parents.

    Examples
    --------
    >>> from graphbam.simulation.config import SimulationConfig
    >>> rng, mask_np = torch.Generator().manual_seed(0), torch.tensor([[1.0, 1.0, 0.0]])
    >>> signed_weights(rng, mask_np, SimulationConfig.paper()).abs().gt(0.69).tolist()
    [[True, True, False]]
    """
    low, high = config.weight_range
    size_np, coin_np = rand(rng, 2, *mask_np.shape).unbind()
    if config.same_sign:
        aligned_n1 = rand(rng, len(mask_np), 1) < config.same_sign
        coin_np = torch.where(aligned_n1, coin_np[:, :1], coin_np)
    return (low + (high - low) * size_np) * torch.where(coin_np < 0.5, mask_np, -mask_np)


def weighted_sum(y_npm: Tensor, weight_np: Tensor) -> Tensor:
    """Σ_p weight_np · y_npm, as one matrix product per node."""
    return torch.bmm(weight_np[:, None, :], y_npm).squeeze(1)


def unit(x: Tensor) -> Tensor:
    """Mean 0 and variance 1 along the last axis; (nearly) constant rows become (nearly) 0.

    Examples
    --------
    >>> unit(torch.tensor([[1.0, 3.0], [5.0, 5.0]])).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-8)  # one fused pass


# ── the paper's test families ───────────────────────────────────────────────────────────────────────────────


@mechanism("linear")
@additive
def linear(rng: torch.Generator, x_npm: Tensor) -> Tensor:
    """g(x) = x."""
    return x_npm


@mechanism("sine")
@additive
def sine(rng: torch.Generator, x_npm: Tensor) -> Tensor:
    """g(x) = sin x."""
    return x_npm.sin()


@mechanism("cosine")
@additive
def cosine(rng: torch.Generator, x_npm: Tensor) -> Tensor:
    """g(x) = cos x."""
    return x_npm.cos()


@mechanism("square")
@additive
def square(rng: torch.Generator, x_npm: Tensor) -> Tensor:
    """g(x) = x²."""
    return x_npm.square()


@mechanism("cubic")
@additive
def cubic(rng: torch.Generator, x_npm: Tensor) -> Tensor:
    """g(x) = x³."""
    return x_npm.square() * x_npm


@mechanism("multiplicative")
def multiplicative(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """Σ_{s<t} δ_st T_m(x_s, x_t) + Σ_w T_m(x_w, ε₂): products of shifted parents, and of each with noise."""
    return _literal_products(rng, x_npm, mask_np)


def _literal_products(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor) -> Tensor:
    z_npm, mask_np = _with_noise_slot(rng, _to_unit_interval(x_npm), mask_np, reach=1.0)
    pairs_npp = _pairs(mask_np)
    delta_npp = absolute_share((2 * rand(rng, *pairs_npp.shape) - 1) * _without_last(pairs_npp), dim=(1, 2))
    coef_npp = delta_npp + _only_last(pairs_npp)
    a_npp, b_npp = 2 * rand(rng, 2, *pairs_npp.shape) - 1
    return product_sum(z_npm, coef_npp / ((1 + a_npp.abs()) * (1 + b_npp.abs())), a_npp, b_npp)


@mechanism("mlp")
def mlp(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """Random network: 1 to 5 hidden layers, width 4 to 64, relu or tanh at even odds."""
    n_nodes = len(x_npm)
    depth, width, coin = rand(rng, 3, n_nodes, 1, 1)
    depth, width, is_relu = 1 + (5 * depth).floor(), 4 + (61 * width).floor(), coin < 0.5
    fan_in, layers = mask_np.sum(1)[:, None, None].clamp(min=1), []
    for n_inputs in (x_npm.shape[1], 64, 64, 64, 64):
        weight_nhk = randn(rng, n_nodes, 64, n_inputs) * ((1 + is_relu.float()) / fan_in).sqrt()
        layers.append((weight_nhk, 0.7 * randn(rng, n_nodes, 64, 1)))
        fan_in = width
    alive_nh1 = (torch.arange(64, device=rng.device)[:, None] < width).float()
    pass_on = _pass_all_layers if rng.device.type == "cuda" else _pass_used_layers
    return weighted_sum(pass_on(x_npm, layers, depth, is_relu, alive_nh1), randn(rng, n_nodes, 64))


Layers = list[tuple[Tensor, Tensor]]


def _pass_all_layers(h_nhm: Tensor, layers: Layers, depth: Tensor, is_relu: Tensor, alive_nh1: Tensor) -> Tensor:
    """Both activations and all layers of all nodes, whether used or not: nobody waits for the device."""
    for layer, (weight_nhk, bias_nh1) in enumerate(layers):
        a_nhm = torch.baddbmm(bias_nh1, weight_nhk, h_nhm)
        a_nhm = torch.where(is_relu, a_nhm.relu(), a_nhm.tanh()) * alive_nh1
        h_nhm = a_nhm if layer == 0 else torch.where(layer < depth, a_nhm, h_nhm)
    return h_nhm


def _pass_used_layers(x_npm: Tensor, layers: Layers, depth: Tensor, is_relu: Tensor, alive_nh1: Tensor) -> Tensor:
    """The same in a third of the time on a CPU: nodes of one activation together, the deepest first."""
    out_nhm = torch.empty(len(x_npm), 64, x_npm.shape[-1])
    for activate, chosen in ((torch.relu_, is_relu), (torch.tanh_, ~is_relu)):
        rows = chosen.flatten().nonzero()[:, 0]
        rows = rows[depth.flatten()[rows].argsort(descending=True, stable=True)]
        h_rhm = x_npm[rows]
        for layer, (weight_nhk, bias_nh1) in enumerate(layers):
            used = rows[: int((depth.flatten()[rows] > layer).sum())]
            a_rhm = activate(torch.baddbmm(bias_nh1[used], weight_nhk[used], h_rhm[: len(used)])).mul_(alive_nh1[used])
            h_rhm = a_rhm if layer == 0 else torch.cat([a_rhm, h_rhm[len(used) :]])
        out_nhm[rows] = h_rhm
    return out_nhm


# ── Chebyshev polynomials, three variants ───────────────────────────────────────────────────────────────────


@mechanism("chebyshev")
def chebyshev(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """Σ_w β_w Σ_n α_n T_n(x_w) + α_m · (products of two parents, and of parents with ε₂)."""
    if config.chebyshev == "literal":
        return _chebyshev_literal(rng, x_npm, mask_np, config.denominator_floor)
    if config.chebyshev == "broad":
        return _chebyshev_broad(rng, x_npm, mask_np, config)
    return _chebyshev_paper(rng, x_npm, mask_np)


def chebyshev_basis(z: Tensor) -> Tensor:
    """T_1 … T_5 along a new axis before the last one.

    Examples
    --------
    >>> chebyshev_basis(torch.tensor([0.5])).flatten().tolist()
    [0.5, -0.5, -1.0, -0.5, 0.5]
    """
    terms = [z, 2 * z * z - 1]
    while len(terms) < N_CHEBYSHEV:
        terms.append(2 * z * terms[-1] - terms[-2])
    return torch.stack(terms, -2)


def literal_coefficients(rng: torch.Generator, n_nodes: int, floor: float) -> tuple[Tensor, Tensor]:
    """α_1 … α_5 and α_m of the printed formula, with its signed denominator kept away from zero.

    The denominator Σα̃ + α̃_m can vanish; here it is at least `floor` times Σ|α̃| + |α̃_m| in size, so no
    coefficient exceeds 1/floor.

    Returns
    -------
    alpha_n5 : Tensor, shape (n_nodes, 5)
    alpha_m_n1 : Tensor, shape (n_nodes, 1)

    Examples
    --------
    >>> alpha_n5, alpha_m_n1 = literal_coefficients(torch.Generator().manual_seed(0), 10_000, 0.25)
    >>> bool(alpha_n5.abs().max() <= 4 and alpha_m_n1.abs().max() <= 4)
    True
    """
    raw_n6 = (2 * rand(rng, n_nodes, N_CHEBYSHEV + 1) - 1) / _factorials(rng.device, with_product=True)
    total_n1, size_n1 = raw_n6.sum(1, keepdim=True), raw_n6.abs().sum(1, keepdim=True)
    sign_n1 = torch.where(total_n1 < 0, -1.0, 1.0)
    alpha_n6 = raw_n6 * sign_n1 / torch.maximum(total_n1.abs(), floor * size_n1)
    return alpha_n6[:, :N_CHEBYSHEV], alpha_n6[:, N_CHEBYSHEV:]


def _chebyshev_literal(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, floor: float) -> Tensor:
    alpha_n5, alpha_m_n1 = literal_coefficients(rng, len(x_npm), floor)
    beta_np = _mean_weights(rng, mask_np)
    poly_npm = _polynomials(chebyshev_basis(_to_unit_interval(x_npm)), alpha_n5[:, None])
    return weighted_sum(poly_npm, beta_np) + alpha_m_n1 * _literal_products(rng, x_npm, mask_np)


def _chebyshev_paper(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor) -> Tensor:
    """As the authors' code: absolute sums, random subsets of terms, each parent's part of unit variance."""
    alpha_n5, alpha_m_n1 = _paper_coefficients(rng, len(x_npm))
    scale_np1 = _percentile_scale(x_npm)
    poly_npm = unit(_polynomials(chebyshev_basis(x_npm / scale_np1), alpha_n5[:, None]))
    main_nm = weighted_sum(soft_clip(poly_npm), _mean_weights(rng, mask_np))
    z_npm, slots_np = _with_noise_slot(rng, (x_npm / scale_np1).clamp(-1, 1), mask_np, reach=0.5)
    shift_n2 = 0.5 * randn(rng, len(x_npm), 2)
    return main_nm + alpha_m_n1 * _unit_products(rng, z_npm, slots_np, shift_n2)


def _paper_coefficients(rng: torch.Generator, n_nodes: int) -> tuple[Tensor, Tensor]:
    """1 to 4 of the five polynomial terms, and the product term in half of the nodes."""
    n_terms_n1 = 1 + (4 * rand(rng, n_nodes, 1)).floor()
    rank_n5 = rand(rng, n_nodes, N_CHEBYSHEV).argsort(1)
    raw_n6 = (2 * rand(rng, n_nodes, N_CHEBYSHEV + 1) - 1) / _factorials(rng.device, with_product=True)
    product_n1 = rand(rng, n_nodes, 1) < 0.5
    alpha_n6 = absolute_share(raw_n6 * torch.cat([rank_n5 < n_terms_n1, product_n1], 1))
    return alpha_n6[:, :N_CHEBYSHEV], alpha_n6[:, N_CHEBYSHEV:]


def _chebyshev_broad(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """Every T_n of unit variance before it is weighted; slower decay, random signs, products in half."""
    reach_n11 = 0.7 + 0.3 * rand(rng, len(x_npm), 1, 1)
    z_npm = (_to_unit_interval(x_npm) / reach_n11).clamp(-1, 1)
    basis_npkm = chebyshev_basis(z_npm)
    alpha_npk = _broad_coefficients(rng, *mask_np.shape)
    sd_npk = basis_npkm.var(-1, correction=0).add(_EPS).sqrt()
    main_nm = weighted_sum(_polynomials(basis_npkm, alpha_npk / sd_npk), signed_weights(rng, mask_np, config))
    share_n1 = rand(rng, len(x_npm), 1) * (rand(rng, len(x_npm), 1) < 0.5) * (mask_np.sum(1, keepdim=True) > 1)
    products_nm = _unit_products(rng, z_npm, mask_np, 2 * rand(rng, len(x_npm), 2) - 1)
    return (1 - share_n1) * unit(main_nm) + share_n1 * unit(products_nm)


def _broad_coefficients(rng: torch.Generator, n_nodes: int, n_slots: int) -> Tensor:
    """Coefficients of absolute sum 1, 60 % kept; half of the nodes use the same ones for all parents."""
    size, luck = rand(rng, 2, n_nodes, n_slots, N_CHEBYSHEV)
    shared_n11 = rand(rng, n_nodes, 1, 1) < 0.5
    size, luck = (torch.where(shared_n11, draw[:, :1], draw) for draw in (size, luck))
    kept_npk = (luck < 0.6) | (luck == luck.amin(-1, keepdim=True))  # at least one term
    order = torch.arange(1, N_CHEBYSHEV + 1, device=rng.device)
    raw_npk = (2 * size - 1) * order / _factorials(rng.device)
    return absolute_share(raw_npk * kept_npk)


def _polynomials(basis_npkm: Tensor, alpha_npk: Tensor) -> Tensor:
    return (basis_npkm * alpha_npk[..., None]).sum(-2)


def _factorials(device: torch.device, with_product: bool = False) -> Tensor:
    """1!, 2!, … 5!, and a 1 for the product term; computed where they are used, so no copy holds up a GPU."""
    values = torch.arange(1.0, N_CHEBYSHEV + 1, device=device).cumprod(0)
    return torch.cat([values, values[:1]]) if with_product else values


def _mean_weights(rng: torch.Generator, mask_np: Tensor) -> Tensor:
    """β_w = U[0.7, 1.3] / |pa|."""
    return (0.7 + 0.6 * rand(rng, *mask_np.shape)) * mask_np / mask_np.sum(1, keepdim=True).clamp(min=1)


def _to_unit_interval(x_npm: Tensor) -> Tensor:
    """Divide by the largest absolute value, so that polynomials see [−1, 1]."""
    return x_npm / x_npm.abs().amax(-1, keepdim=True).clamp(min=_EPS)


def _percentile_scale(x_npm: Tensor) -> Tensor:
    """Largest |x|, or the 95th percentile of |x| where that exceeds 5.

    The authors' code goes on to the 90th percentile if even the 95th exceeds 5, which cannot happen with unit
    variance: at most 4 % of the values can lie beyond 5 standard deviations.
    """
    size_npm = x_npm.abs()
    largest_np1 = size_npm.amax(-1, keepdim=True)
    rank = max(1, math.ceil(0.95 * x_npm.shape[-1]))
    inner_np1 = size_npm.kthvalue(rank, dim=-1, keepdim=True).values
    return torch.where(largest_np1 > 5, inner_np1, largest_np1).clamp(min=1e-5)


def soft_clip(x: Tensor, limit: float = 5.0) -> Tensor:
    """Bend values beyond ±limit with tanh, so that none passes ±(limit + 1).

    Examples
    --------
    >>> [round(v, 2) for v in soft_clip(torch.tensor([4.0, 5.5, -5.5])).tolist()]
    [4.0, 5.46, -5.46]
    """
    size = x.abs()
    slope = ((size.amax(-1, keepdim=True) - limit) / 2).clamp(min=1)
    return x.sign() * (size.clamp(max=limit) + ((size - limit).clamp(min=0) / slope).tanh())


def absolute_share(raw: Tensor, dim: int | tuple[int, ...] = -1) -> Tensor:
    """Divide by the sum of absolute values along `dim`.

    Examples
    --------
    >>> absolute_share(torch.tensor([3.0, -1.0])).tolist()
    [0.75, -0.25]
    """
    return raw / raw.abs().sum(dim, keepdim=True).clamp(min=_EPS)


# ── products of two parents without a (P, P, M) tensor ──────────────────────────────────────────────────────


def product_sum(x_npm: Tensor, coef_npp: Tensor, a_npp: Tensor, b_npp: Tensor) -> Tensor:
    """Σ_{s,t} c_st (x_s − a_st)(x_t − b_st), written as a quadratic form with linear and constant parts.

    Examples
    --------
    >>> x_npm = torch.tensor([[[2.0], [5.0]]])
    >>> upper_npp = torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])
    >>> product_sum(x_npm, upper_npp, 1 * upper_npp, 3 * upper_npp)  # (2 − 1)(5 − 3)
    tensor([[2.]])
    """
    linear_np1 = (coef_npp * b_npp).sum(2)[..., None] + (coef_npp * a_npp).sum(1)[..., None]
    constant_n1 = (coef_npp * a_npp * b_npp).sum((1, 2))[:, None]
    return (x_npm * (torch.bmm(coef_npp, x_npm) - linear_np1)).sum(1) + constant_n1


def product_deviations(x_npm: Tensor, a_npp: Tensor, b_npp: Tensor) -> Tensor:
    """Standard deviation over the samples of every (x_s − a_st)(x_t − b_st), from moments.

    Examples
    --------
    >>> x_npm = torch.tensor([[[1.0, 2.0, 4.0], [3.0, 0.0, 1.0]]])
    >>> sd = product_deviations(x_npm, torch.full((1, 2, 2), 0.5), torch.full((1, 2, 2), -1.0))[0, 0, 1]
    >>> product = (x_npm[0, 0] - 0.5) * (x_npm[0, 1] + 1.0)
    >>> bool(abs(sd - product.std(correction=0)) < 1e-5)
    True
    """
    n_samples, x2_npm = x_npm.shape[-1], x_npm.square()
    xx, x2x2, x2x = (torch.bmm(u, v.mT) / n_samples for u, v in ((x_npm, x_npm), (x2_npm, x2_npm), (x2_npm, x_npm)))
    s1, s2 = x_npm.mean(-1)[:, :, None], x2_npm.mean(-1)[:, :, None]
    t1, t2 = s1.mT, s2.mT
    a, b = a_npp, b_npp
    mean = xx - b * s1 - a * t1 + a * b
    square_mean = (
        x2x2 - 2 * b * x2x - 2 * a * x2x.mT + 4 * a * b * xx
        + b * b * (s2 - 2 * a * s1 + a * a) + a * a * (t2 - 2 * b * t1)
    )  # fmt: skip
    return (square_mean - mean.square()).clamp(min=1e-8).sqrt()


def _unit_products(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, shift_n2: Tensor) -> Tensor:
    """Products of all pairs, each of unit variance, weighted by δ of absolute sum 1."""
    pairs_npp = _pairs(mask_np)
    delta_npp = absolute_share((2 * rand(rng, *pairs_npp.shape) - 1) * pairs_npp, dim=(1, 2))
    a_npp, b_npp = (shift[:, None, None].expand_as(pairs_npp) for shift in shift_n2.T)
    coef_npp = delta_npp / product_deviations(x_npm, a_npp, b_npp)
    return product_sum(x_npm, coef_npp, a_npp, b_npp)


def _pairs(mask_np: Tensor) -> Tensor:
    """1 for pairs s < t of filled slots."""
    return (mask_np[:, :, None] * mask_np[:, None, :]).triu(1)


def _with_noise_slot(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """Append ε₂ ~ U[−reach, reach] as one more parent."""
    noise_n1m = reach * (2 * rand(rng, len(x_npm), 1, x_npm.shape[-1]) - 1)
    return torch.cat([x_npm, noise_n1m], 1), torch.cat([mask_np, torch.ones_like(mask_np[:, :1])], 1)


def _without_last(pairs_npp: Tensor) -> Tensor:
    return torch.cat([pairs_npp[..., :-1], torch.zeros_like(pairs_npp[..., -1:])], -1)


def _only_last(pairs_npp: Tensor) -> Tensor:
    return pairs_npp - _without_last(pairs_npp)


# ── beyond the paper ────────────────────────────────────────────────────────────────────────────────────────


@mechanism("interactions")
def interactions(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """Products of pairs of parents plus a linear effect of each parent."""
    main_nm = unit(weighted_sum(x_npm, signed_weights(rng, mask_np, config)))
    products_nm = unit(_unit_products(rng, x_npm, mask_np, rand(rng, len(x_npm), 2) - 0.5))
    share_n1 = 0.3 + 0.6 * rand(rng, len(x_npm), 1)
    return (1 - share_n1) * main_nm + share_n1 * products_nm


@mechanism("gp")
def gp(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """A draw from a Gaussian process over all parents jointly, by 48 random Fourier features."""
    n_nodes, n_slots, _ = x_npm.shape
    n_features = 48
    # Longer scales with more parents: each keeps a share of the function that samples can reveal.
    scale_n1p = (0.6 * 5 ** rand(rng, n_nodes, 1, n_slots)) * mask_np.sum(1)[:, None, None].clamp(min=1).sqrt()
    frequency_nkp = randn(rng, n_nodes, n_features, n_slots) / scale_n1p
    phase_nk1 = 2 * math.pi * rand(rng, n_nodes, n_features, 1)
    features_nkm = torch.baddbmm(phase_nk1, frequency_nkp, x_npm).cos_()
    return weighted_sum(features_nkm, randn(rng, n_nodes, n_features))


@mechanism("gp_additive")
@additive
def gp_additive(rng: torch.Generator, x_npm: Tensor) -> Tensor:
    """A smooth random function of each parent on its own, as a sum of six random waves."""
    n_nodes, n_slots, _ = x_npm.shape
    scale_np1 = 0.6 * 4 ** rand(rng, n_nodes, n_slots, 1)
    y_npm = torch.zeros_like(x_npm)
    for _ in range(6):
        frequency_np1, height_np1 = randn(rng, 2, n_nodes, n_slots, 1)
        phase_np1 = 2 * math.pi * rand(rng, n_nodes, n_slots, 1)
        y_npm = y_npm + height_np1 * torch.cos(x_npm * (frequency_np1 / scale_np1) + phase_np1)
    return unit(y_npm)


@mechanism("mixed")
@additive
def mixed(rng: torch.Generator, x_npm: Tensor) -> Tensor:
    """Each parent has its own function: x, sin, cos, x², x³ or |x|, stretched and shifted at random."""
    n_nodes, n_slots, _ = x_npm.shape
    kind_np1 = (6 * rand(rng, n_nodes, n_slots, 1)).floor()
    stretch_np1, shift_np1 = 0.7 + rand(rng, n_nodes, n_slots, 1), 0.5 * randn(rng, n_nodes, n_slots, 1)
    z_npm = x_npm * stretch_np1 + shift_np1 * (kind_np1 > 0)
    square_npm = z_npm.square()
    y_npm = z_npm
    for kind, g_npm in enumerate((z_npm.sin(), z_npm.cos(), square_npm, square_npm * z_npm, z_npm.abs()), 1):
        y_npm = torch.where(kind_np1 == kind, g_npm, y_npm)
    return unit(y_npm)


@mechanism("heteroscedastic")
def heteroscedastic(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """Mean and spread both depend on the parents: f = (1−s)·mean(x) + s·exp(c·spread(x))·ε."""
    n_nodes, _, n_samples = x_npm.shape
    mean_nm = unit(mixed(rng, x_npm, mask_np, config))
    even_np1 = rand(rng, *mask_np.shape, 1) < 0.5
    spread_nm = unit(weighted_sum(torch.where(even_np1, x_npm.abs(), x_npm), signed_weights(rng, mask_np, config)))
    strength_n1 = 0.4 + 0.6 * rand(rng, n_nodes, 1)
    noise_nm = unit(torch.exp(strength_n1 * spread_nm.clamp(-3, 3)) * randn(rng, n_nodes, n_samples))
    share_n1 = 0.3 + 0.5 * rand(rng, n_nodes, 1)
    return (1 - share_n1) * mean_nm + share_n1 * noise_nm


@mechanism("hill")
def hill(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """Saturating responses cⁿ / (Kⁿ + cⁿ) to amounts c ≥ 0, or 1 minus that, each above a floor of its own.

    Parents act together as a product (all are needed) in three nodes of five, as a weighted sum in the others.
    """
    order, half, coin, floor = rand(rng, 4, *mask_np.shape, 1)
    c_npm = (x_npm - x_npm.amin(-1, keepdim=True)).clamp(max=10.0)
    power_npm = (c_npm / (0.5 + 3.5 * half)).clamp(min=_EPS) ** (1 + 4 * order)
    active_npm = power_npm / (1 + power_npm)
    active_npm = torch.where(coin < 0.35, 1 - active_npm, active_npm)
    response_npm = 0.4 * floor + (1 - 0.4 * floor) * active_npm
    joint_nm = torch.where(mask_np[..., None] > 0, response_npm, 1.0).prod(1)
    summed_nm = weighted_sum(response_npm, mask_np * (0.3 + rand(rng, *mask_np.shape)))
    return torch.where(rand(rng, len(x_npm), 1) < 0.6, joint_nm, summed_nm)


@mechanism("sigmoid")
@additive
def sigmoid(rng: torch.Generator, x_npm: Tensor) -> Tensor:
    """g(x) = 1 / (1 + exp(−s(x − c))), steepness s ~ U[1.5, 5], centre c ~ U[−1, 1]."""
    steep_np1, centre_np1 = rand(rng, 2, *x_npm.shape[:2], 1)
    return unit(torch.sigmoid((1.5 + 3.5 * steep_np1) * (x_npm - 2 * centre_np1 + 1)))


def monotone_link(rng: torch.Generator, x_nm: Tensor) -> Tensor:
    """One of sinh, cube root, exp and a soft step for each row, stretched at random; all increasing."""
    z_nm = unit(x_nm) * (0.8 + 0.7 * rand(rng, len(x_nm), 1))
    kind_n1 = (4 * rand(rng, len(x_nm), 1)).floor()
    y_nm = torch.sinh(1.3 * z_nm.clamp(-5, 5))
    y_nm = torch.where(kind_n1 == 1, z_nm.sign() * z_nm.abs().pow(1 / 3), y_nm)
    y_nm = torch.where(kind_n1 == 2, torch.exp(z_nm.clamp(max=6)), y_nm)
    return torch.where(kind_n1 == 3, torch.tanh(2 * z_nm), y_nm)


@mechanism("postnonlinear", link=monotone_link)
def postnonlinear(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """x = h(Σ ± α g(x_w) + ε), h increasing: `mixed` inside, `monotone_link` around signal and noise."""
    return mixed(rng, x_npm, mask_np, config)


@mechanism("tree")
def tree(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, config: SimulationConfig) -> Tensor:
    """Piecewise constant: three steps along each parent, plus a joint tree of depth three."""
    steps_npm = torch.zeros_like(x_npm)
    for _ in range(3):
        cut_np1, height_np1 = randn(rng, 2, *mask_np.shape, 1)
        steps_npm = steps_npm + height_np1 * (x_npm > 0.8 * cut_np1)
    steps_nm = unit(weighted_sum(unit(steps_npm), signed_weights(rng, mask_np, config)))
    return steps_nm + 0.7 * rand(rng, len(x_npm), 1) * unit(_joint_tree(rng, x_npm, mask_np))


def _joint_tree(rng: torch.Generator, x_npm: Tensor, mask_np: Tensor, depth: int = 3) -> Tensor:
    """Leaf values of a random tree whose cuts at one depth all use the same parent."""
    n_nodes, _, n_samples = x_npm.shape
    leaf_nm = torch.zeros(n_nodes, n_samples, dtype=torch.long, device=rng.device)
    for level in range(depth):
        slot_n = (rand(rng, *mask_np.shape) * mask_np).argmax(1)
        parent_nm = x_npm.gather(1, slot_n[:, None, None].expand(-1, 1, n_samples))[:, 0]
        leaf_nm = leaf_nm + 2**level * (parent_nm > 0.8 * randn(rng, n_nodes, 1))
    return randn(rng, n_nodes, 2**depth).gather(1, leaf_nm)
