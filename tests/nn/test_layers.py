"""Laws of the layers, each checked alone: symmetry, definiteness, and an independent formula where there is one."""

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck
from torch.testing import assert_close

from cases import each
from graphbam.nn import layers
from graphbam.nn.layers import (
    SHORT,
    AxialAttention,
    BilinearAttention,
    BilinearBlock,
    ChannelCorrelation,
    ChannelMix,
    CrossCovariance,
    Dense,
    Embedding,
    Norm,
    PairBlock,
    Residual,
    SPDActivation,
    attend_in_stretches,
    attend_to_few,
    count_parts,
    sees_samples,
)
from graphbam.nn.spd import correlate

SPD_LAYERS = {
    "mix": lambda: ChannelMix(4, 2),
    "attention": lambda: BilinearAttention(4, 2),
    "activation": lambda: SPDActivation(4),
    "block": lambda: BilinearBlock(4, 2),
}


@pytest.fixture(params=SPD_LAYERS)
def spd_layer(request, rng):
    return scatter(SPD_LAYERS[request.param](), rng)


def scatter(layer, rng, dtype=torch.float64):
    """Random weights of either sign: the laws must hold for every value of every parameter."""
    layer = layer.to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return layer


def cells(rng, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=rng, dtype=torch.float64).to(dtype)


def reorder(s, p):
    return s[..., p, :][..., p]


# ── definite matrices ────────────────────────────────────────────────────────────────────────────────────────────


def test_spd_layers_commute_with_permutation(rng, random_spd, spd_layer):
    s, p = correlate(random_spd(2, 4, 6)), torch.randperm(6, generator=rng)
    assert_close(spd_layer(reorder(s, p)), reorder(spd_layer(s), p))


def test_spd_layers_keep_definiteness_and_symmetry(random_spd, spd_layer):
    out = spd_layer(correlate(random_spd(2, 4, 6)))
    assert torch.linalg.eigvalsh(out).min() > 0
    assert_close(out, out.mT)


def test_spd_layers_take_tables_one_by_one(random_spd, spd_layer):
    s = correlate(random_spd(3, 4, 5))
    assert_close(spd_layer(s), torch.cat([spd_layer(table[None]) for table in s]))


def test_spd_layers_have_true_gradients(rng, spd_layer):
    x = cells(rng, 1, 4, 6, 3)
    s = correlate(x.mT @ x).requires_grad_()
    parameters = tuple(spd_layer.parameters())
    assert gradcheck(lambda a, *_: spd_layer((a + a.mT) / 2), (s, *parameters))


@each("name", ["attention", "activation", "block"])
def test_spd_layers_return_correlations(rng, random_spd, name):
    out = scatter(SPD_LAYERS[name](), rng)(correlate(random_spd(2, 4, 6)))
    diagonal = out.diagonal(dim1=-2, dim2=-1)
    assert_close(diagonal, torch.ones_like(diagonal))
    assert out.abs().max() < 1 + 1e-12


@pytest.mark.parametrize(("m", "d"), [(3, 25), (60, 10)])
def test_ten_blocks_stay_definite_in_single_precision(rng, m, d):
    correlation = scatter(ChannelCorrelation(6, 4, ridge=1e-3), rng, torch.float32)
    s = correlation(cells(rng, 2, m, d, 6, dtype=torch.float32))
    for _ in range(10):
        assert s.dtype == torch.float32
        assert torch.linalg.eigvalsh(s.double()).min() > 1e-5
        assert (s - s.mT).abs().max() < 5e-6
        s = scatter(BilinearBlock(4, 2), rng, torch.float32)(s)
    assert torch.linalg.eigvalsh(s.double()).min() > 1e-5


@pytest.mark.parametrize("d", [2, 30])
def test_blocks_stay_definite_where_all_columns_are_twins(rng, d):
    h = cells(rng, 1, 20, 1, 6, dtype=torch.float32).expand(1, 20, d, 6)
    s = ChannelCorrelation(6, 6, ridge=1e-3)(h)
    for _ in range(6):
        s = scatter(BilinearBlock(6, 3), rng, torch.float32)(s)
        assert torch.linalg.eigvalsh(s.double()).min() > 1e-5
        assert torch.isfinite(s).all()


def test_bilinear_attention_follows_its_formula(rng, random_spd):
    layer, s = scatter(BilinearAttention(4, 2), rng), correlate(random_spd(1, 4, 5))
    mix = [torch.block_diag(*part.weight.abs()) for part in (layer.key, layer.query)]
    expected = []
    for channel in range(4):
        key, query = (sum(w[channel, other] * s[0, other] for other in range(4)) for w in mix)
        exponent = (key @ query @ key).exp()
        rate = exponent.sum(-1).rsqrt()
        scores = torch.diag(rate) @ exponent @ torch.diag(rate)
        blend = s[0, channel] + (1 + layer.scale[channel].exp()).log() * scores @ s[0, channel] @ scores
        expected.append(blend / torch.outer(blend.diagonal(), blend.diagonal()).sqrt())
    assert_close(layer(s)[0], torch.stack(expected))


def test_channels_of_other_heads_stay_out(rng, random_spd):
    layer, s = scatter(BilinearBlock(4, 2), rng), correlate(random_spd(1, 4, 5))
    changed = s.clone()
    changed[:, 2:] = correlate(random_spd(1, 2, 5))
    assert_close(layer(changed)[:, :2], layer(s)[:, :2])
    assert (layer(changed)[:, 2:] - layer(s)[:, 2:]).abs().max() > 1e-3


def test_mixing_starts_nonnegative_with_mean_one_over_the_inputs():
    weight = ChannelMix(60, 2).weight
    assert weight.min() >= 0
    assert weight.max() <= 2 / 30
    assert_close(weight.mean().item(), 1 / 30, rtol=0.1, atol=0)


@each("spread", [0.1, 3.0, 100.0])
def test_activation_weights_are_a_share(rng, random_spd, spread):
    """A cubic with weights w ≥ 0, Σ w ≤ 1, whatever the parameters; its value at 1 is what is divided out."""
    layer, s = SPDActivation(3).double(), correlate(random_spd(1, 3, 4))
    with torch.no_grad():
        layer.weight.copy_(spread * cells(rng, 3, 4))
    w = layer.weight.exp() / layer.weight.exp().sum(-1, keepdim=True) if spread < 10 else layer.weight.softmax(-1)
    w = w[:, :3, None, None]
    assert (w >= 0).all()
    assert (w.sum(1) <= 1 + 1e-12).all()
    curve = w[:, 0] * s + w[:, 1] * s**2 + w[:, 2] * s**3
    kept = w.sum(1).flatten() > 1e-30
    assert_close(layer(s)[:, kept], (curve / w.sum(1))[:, kept])


def test_activation_starts_close_to_the_identity(random_spd):
    s = correlate(random_spd(1, 3, 5))
    assert (SPDActivation(3).double()(s) - s).abs().max() < 0.35


def test_activation_survives_weights_all_on_the_spare(random_spd):
    layer, s = SPDActivation(2).double(), correlate(random_spd(1, 2, 5))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([0.0, 0.0, 0.0, 60.0]).double())
    assert torch.isfinite(layer(s)).all()


# ── observations ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_embedding_follows_its_formula(rng):
    layer, x = scatter(Embedding(3, bias=True), rng), cells(rng, 2, 4, 5)
    inner = (x[..., None] * layer.rise.weight[:, 0] + layer.rise.bias).clamp_min(0)
    assert_close(layer(x, torch.float64), x[..., None] + inner @ layer.mix.weight.T)


def test_embedding_without_bias_maps_zero_to_zero(rng):
    layer = scatter(Embedding(3, bias=False), rng)
    assert_close(layer(torch.zeros(1, 2, 2).double(), torch.float64), torch.zeros(1, 2, 2, 3).double())


def naive_attention(layer, x_bmdc):
    """Softmax attention, one table, one line, one head at a time; `line` is what attends to itself."""
    mean, variance = x_bmdc.mean(-1, keepdim=True), x_bmdc.var(-1, keepdim=True, correction=0)
    normed = (x_bmdc - mean) / (variance + layer.norm.eps).sqrt() * layer.norm.weight + layer.norm.bias
    out = torch.zeros_like(x_bmdc)
    lines = [(b, m, slice(None)) for b in range(x_bmdc.shape[0]) for m in range(x_bmdc.shape[1])]
    if layer.axis == "samples":
        lines = [(b, slice(None), d) for b in range(x_bmdc.shape[0]) for d in range(x_bmdc.shape[2])]
    e = layer.size
    for line in lines:
        for head in range(layer.heads):
            w_q, w_k, w_v = layer.qkv[head]
            q, k, v = (normed[line] @ w.T for w in (w_q, w_k, w_v))
            weights = (q @ k.T / e**0.5).exp()
            out[line][:, head * e : (head + 1) * e] = weights / weights.sum(-1, keepdim=True) @ v
    if layer.out is not None:
        out = out @ layer.out.weight.T
    return x_bmdc + layer.residual.scale * out


@each("axis", ["attributes", "samples"])
@each("project", [True, False])
def test_attention_follows_its_formula(rng, axis, project):
    layer, x = scatter(AxialAttention(6, 2, axis, project=project), rng), cells(rng, 2, 5, 3, 6)
    with torch.no_grad():
        assert_close(layer(x), naive_attention(layer, x))


class OnGPU(torch.Tensor):
    """A tensor that claims to be on a GPU, where heads are padded to 32 channels."""

    is_cuda = True


@pytest.mark.parametrize("axis", ["attributes", "samples"])
def test_padded_heads_change_nothing(rng, monkeypatch, axis):
    layer, x = scatter(AxialAttention(6, 2, axis, project=True), rng), cells(rng, 2, 5, 3, 6)
    expected, seen = layer(x), []
    attention = torch.nn.functional.scaled_dot_product_attention

    def spy(q, k, v, **options):
        seen.append(q.shape[-1])
        return attention(q, k, v, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    padded = layer(x.as_subclass(OnGPU))
    assert seen == [8]
    assert_close(padded.as_subclass(torch.Tensor), expected)


@each(
    "make",
    [
        lambda: AxialAttention(6, 2, "attributes", project=True),
        lambda: AxialAttention(6, 3, "samples", project=False),
        lambda: Dense(6, 5),
        lambda: Dense(6, 0),
    ],
)
def test_observation_layers_commute_with_permutation_of_both_axes(rng, make):
    layer, x = scatter(make(), rng), cells(rng, 2, 5, 4, 6)
    rows, columns = torch.randperm(5, generator=rng), torch.randperm(4, generator=rng)
    assert_close(layer(x[:, rows][:, :, columns]), layer(x)[:, rows][:, :, columns])
    assert (layer(x) - x).abs().max() > 1e-3


@pytest.mark.parametrize("axis", ["attributes", "samples"])
def test_attention_looks_along_its_own_axis_only(rng, axis):
    layer, x = scatter(AxialAttention(6, 2, axis, project=True), rng), cells(rng, 2, 5, 4, 6)
    changed = x.clone()
    changed[0, 0, 0] = cells(rng, 6)
    moved = (layer(changed) - layer(x)).abs().amax(-1) > 1e-9
    expected = torch.zeros(2, 5, 4, dtype=torch.bool)
    expected[(0, 0, slice(None)) if axis == "attributes" else (0, slice(None), 0)] = True
    assert torch.equal(moved, expected)


STRETCHES = [(12, 3), (13, 3), (11, 4), (7, 7), (9, 1)]
"""Samples and stretches: of equal length, one longer than others, as many as samples, one."""


@each(("m", "n"), STRETCHES)
def test_every_nth_sample_sees_every_nth(rng, m, n):
    layer, x = scatter(AxialAttention(6, 2, "samples", project=True), rng), cells(rng, 2, m, 3, 6)
    with torch.no_grad():
        found = attend_in_stretches(layer, x, n)
        for k in range(n):
            assert_close(found[:, k::n], naive_attention(layer, x[:, k::n]))


@each(("m", "n"), STRETCHES)
def test_a_sample_is_seen_in_its_own_stretch_only(rng, m, n):
    layer, x = scatter(AxialAttention(6, 2, "samples", project=True), rng), cells(rng, 2, m, 3, 6)
    changed = x.clone()
    changed[0, 5, 1] = cells(rng, 6)
    moved = (attend_in_stretches(layer, changed, n) - attend_in_stretches(layer, x, n)).abs().amax(-1) > 1e-9
    expected = torch.zeros(2, m, 3, dtype=torch.bool)
    expected[0, 5 % n :: n, 1] = True
    assert torch.equal(moved, expected)


@each("m", [4, 5])
def test_stretches_have_true_gradients(rng, m):
    layer, x = scatter(AxialAttention(2, 1, "samples", project=True), rng), cells(rng, 1, m, 2, 2).requires_grad_()
    assert gradcheck(lambda a, *_: attend_in_stretches(layer, a, 2), (x, *layer.parameters()))


def test_attention_to_few_is_attention(rng):
    q, k, v = (torch.randn(6, 2, 5, 4, generator=rng, dtype=torch.float64).requires_grad_() for _ in range(3))
    few, plain = attend_to_few(q, k, v, 0.5), F.scaled_dot_product_attention(q, k, v, scale=0.5)
    assert_close(few, plain)
    away = torch.randn(few.shape, generator=rng, dtype=torch.float64)
    for a, b in zip(*(torch.autograd.grad(y, (q, k, v), away) for y in (few, plain)), strict=True):
        assert_close(a, b)


@pytest.mark.parametrize(("d", "calls"), [(2, 1), (SHORT, 1), (SHORT + 1, 0)])
def test_compiled_layers_attend_to_few_attributes_by_sums(rng, monkeypatch, d, calls):
    layer, x = scatter(AxialAttention(6, 2, "attributes", project=True), rng), cells(rng, 2, 5, d, 6)
    plain, seen = layer(x), []
    monkeypatch.setattr(layers, "attend_to_few", lambda *parts: seen.append(d) or attend_to_few(*parts))
    torch._dynamo.reset()
    assert_close(torch.compile(layer, backend="eager", dynamic=True)(x), plain)
    assert len(seen) == calls


def test_stretches_are_as_few_as_the_longest_allows():
    for m in range(1, 40):
        assert count_parts(m, 0) == 1
        for longest in range(1, 45):
            n = count_parts(m, longest)
            assert len(range(0, m, n)) <= longest
            assert n == 1 or len(range(0, m, n - 1)) > longest


def test_samples_see_each_other_in_attention_over_samples_alone():
    layers = [AxialAttention(6, 2, axis, project=True) for axis in ("samples", "attributes")]
    assert [sees_samples(layer) for layer in (*layers, Dense(6, 5))] == [True, False, False]


@pytest.mark.parametrize("hidden", [0, 5])
def test_dense_follows_its_formula(rng, hidden):
    layer, x = scatter(Dense(6, hidden), rng), cells(rng, 2, 3, 6)
    normed = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + layer.norm.eps).sqrt()
    y = ((normed * layer.norm.weight + layer.norm.bias) @ layer.up.weight.T + layer.up.bias).clamp_min(0)
    if hidden:
        y = y @ layer.down.weight.T + layer.down.bias
    assert_close(layer(x), x + layer.residual.scale * y)


def test_residual_starts_small_but_not_at_zero(rng):
    x, y = cells(rng, 2, 3, 6), cells(rng, 2, 3, 6)
    assert_close(Residual(6).double()(x, y), x + 0.1 * y)


def test_layers_work_in_the_dtype_of_their_input(rng):
    x = cells(rng, 1, 4, 3, 6, dtype=torch.bfloat16)
    for layer in (Norm(6), Dense(6, 4), AxialAttention(6, 2, "samples", project=True)):
        assert layer(x).dtype == torch.bfloat16
    assert ChannelCorrelation(6, 4, ridge=1e-3)(x).dtype == torch.float32
    assert CrossCovariance(6, 4)(x).dtype == torch.float32


# ── from observations to matrices ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spd_channels", [4, 6])
def test_channel_correlation_is_one_correlation_matrix_a_channel(rng, spd_channels):
    layer, h = scatter(ChannelCorrelation(6, spd_channels, ridge=0.0), rng), cells(rng, 2, 30, 4, 6)
    read = h if spd_channels == 6 else h @ layer.project.weight.T
    expected = torch.stack([torch.stack([torch.corrcoef(t[..., c].T) for c in range(spd_channels)]) for t in read])
    assert_close(layer(h), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("m", "d"), [(2, 2), (5, 60)])
def test_ridge_makes_singular_correlations_definite(rng, m, d):
    layer = scatter(ChannelCorrelation(6, 4, ridge=1e-3), rng, torch.float32)
    s = layer(cells(rng, 2, m, d, 6, dtype=torch.float32))
    assert torch.linalg.eigvalsh(s.double()).min() > 5e-4
    assert_close(s.diagonal(dim1=-2, dim2=-1), torch.ones(2, 4, d))


@pytest.mark.parametrize("make", [lambda: ChannelCorrelation(6, 4, ridge=1e-3), lambda: CrossCovariance(6, 4)])
def test_matrices_forget_the_order_of_samples(rng, make):
    layer, h = scatter(make(), rng), cells(rng, 2, 8, 4, 6)
    rows, columns = torch.randperm(8, generator=rng), torch.randperm(4, generator=rng)
    assert_close(layer(h[:, rows]), layer(h))
    assert_close(layer(h[:, :, columns]), reorder(layer(h), columns))


def test_constant_columns_are_uncorrelated_with_all_others(rng):
    h = cells(rng, 1, 10, 4, 6)
    h[:, :, 1] = 3.0
    s = ChannelCorrelation(6, 6, ridge=1e-3)(h)
    expected = torch.tensor([0.0, 1.0, 0.0, 0.0]).double().expand(1, 6, 4)
    assert_close(s[..., 1], expected)


def test_cross_covariance_correlates_two_readings(rng):
    layer, h = scatter(CrossCovariance(6, 3), rng), cells(rng, 1, 30, 4, 6)
    u, v = h[0] @ layer.left.weight.T, h[0] @ layer.right.weight.T  # (M, D, C)
    for c in range(3):
        both = torch.corrcoef(torch.cat([u[..., c], v[..., c]], 1).T)
        assert_close(layer(h)[0, c], both[:4, 4:], rtol=1e-4, atol=1e-5)


# ── pairs ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pair_block_commutes_with_permutation(rng):
    layer, z, p = scatter(PairBlock(5, 2), rng), cells(rng, 2, 4, 4, 5), torch.randperm(4, generator=rng)
    scale = torch.tensor(0.5, dtype=torch.float64)
    assert_close(layer(z[:, p][:, :, p], scale), layer(z, scale)[:, p][:, :, p])


def test_pair_block_follows_its_formula(rng):
    layer, z = scatter(PairBlock(5, 2), rng), cells(rng, 1, 3, 3, 5)
    sides = layer.norm(z) @ layer.sides.weight.T + layer.sides.bias
    a1, b1, a2, b2, a3, b3 = (sides[0, ..., 2 * i : 2 * i + 2] for i in range(6))
    products = torch.zeros(3, 3, 6, dtype=torch.float64)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                products[i, j, 0:2] += a1[i, k] * b1[k, j]
                products[i, j, 2:4] += a2[k, i] * b2[k, j]
                products[i, j, 4:6] += a3[i, k] * b3[j, k]
    mixed = products * 3**-0.5 @ layer.out.weight.T + layer.out.bias
    expected = layer.dense(z + layer.residual.scale * mixed)
    assert_close(layer(z, torch.tensor(3**-0.5, dtype=torch.float64)), expected)
