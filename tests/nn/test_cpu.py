"""Without gradients a CPU takes another way through the network: it must say the same as the layers."""

import copy

import pytest
import torch
from torch.testing import assert_close

from cases import each
from graphbam.nn import cpu, spd
from graphbam.nn.edge_net import MISSING, SET
from graphbam.nn.layers import AxialAttention
from graphbam.nn.weights import load_weights


@pytest.fixture
def small_blocks(monkeypatch):
    """So that even toys are cut into blocks, the last of them smaller."""
    monkeypatch.setattr(cpu, "CELLS_IN_BLOCK", 16)
    monkeypatch.setattr(cpu, "SCORES_IN_BLOCK", 100)
    monkeypatch.setattr(cpu, "MATRIX_CELLS_IN_BLOCK", 160)
    monkeypatch.setattr(cpu, "RESOLVENTS_HELD", 600)
    monkeypatch.setattr(spd, "CELLS_AT_ONCE", 160)


@pytest.fixture(params=[True, False])
def has_bfloat16(request, monkeypatch):
    monkeypatch.setattr(cpu, "has_bfloat16", lambda: request.param)
    return request.param


def both_ways(net, *inputs):
    """What layers say, and what this way says."""
    with torch.no_grad():
        quick = net(*inputs)
    return net(*inputs).detach(), quick


@each(("design", "changes"), [("default", {}), ("paper", {}), ("default", {"matrix_log": False, "dense_hidden": 0})])
@each("shape", [(2, 9, 5), (1, 30, 7), (3, 2, 2)])
def test_in_double_precision_it_is_the_same(tiny_net, small_blocks, rng, design, changes, shape):
    net = tiny_net(rng, design, **changes)
    x_bmd = torch.randn(shape, generator=rng, dtype=torch.float64)
    assert_close(*both_ways(net, x_bmd), rtol=1e-9, atol=1e-10)
    assert_close(*both_ways(net, x_bmd, [3.0 + b for b in range(len(x_bmd))]), rtol=1e-9, atol=1e-10)


@each("count", [2, 3, 7])  # fewer and more than heads of bilinear blocks
def test_threads_share_the_work(tiny_net, small_blocks, rng, count):
    net, x_bmd = tiny_net(rng, "default"), torch.randn(2, 9, 5, generator=rng, dtype=torch.float64)
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        assert_close(*both_ways(net, x_bmd), rtol=1e-9, atol=1e-10)
    finally:
        torch.set_num_threads(before)


def test_marks_and_answers_go_this_way_too(tiny_net, small_blocks, rng):
    net = tiny_net(rng, "default", marks=True, answers=True)
    x_bmd = torch.randn(2, 9, 5, generator=rng, dtype=torch.float64)
    marks_bmd = torch.randint(0, (MISSING | SET) + 1, x_bmd.shape, generator=rng)
    assert_close(*both_ways(net, x_bmd, None, marks_bmd), rtol=1e-9, atol=1e-10)


@each(("m", "longest"), [(12, 4), (13, 4), (30, 7), (9, 9), (5, 1)])
def test_stretches_of_samples_are_the_same_too(tiny_net, small_blocks, rng, m, longest):
    net = tiny_net(rng, "default", sample_stretch=longest)
    x_bmd = torch.randn(2, m, 5, generator=rng, dtype=torch.float64)
    assert_close(*both_ways(net, x_bmd), rtol=1e-9, atol=1e-10)
    assert_close(*both_ways(net, x_bmd, None, None, 10), rtol=1e-9, atol=1e-10)  # long tables are cut before


def test_a_table_is_not_changed(tiny_net, rng):
    net, x_md = tiny_net(rng, "default", dtype=torch.float32), torch.randn(9, 5, generator=rng)
    before = x_md.clone()
    both_ways(net, x_md)
    assert torch.equal(x_md, before)


def test_probabilities_are_near_those_of_float32(has_bfloat16):
    """The tolerance that docs/performance.md states."""
    rng, network = torch.Generator().manual_seed(0), load_weights("edges").network
    x_bmd = torch.randn(2, 200, 12, generator=rng) @ torch.randn(12, 12, generator=rng)
    plain, quick = (logits.softmax(-1) for logits in both_ways(network, x_bmd))
    assert_close(quick, plain, rtol=0, atol=0.05 if has_bfloat16 else 1e-5)
    assert (quick - plain).abs().mean() < (2e-3 if has_bfloat16 else 1e-6)
    assert has_bfloat16 == (not torch.allclose(quick, plain, rtol=0, atol=1e-5))  # bfloat16 was used, or was not


def test_a_network_without_mixed_precision_rounds_nothing(monkeypatch):
    monkeypatch.setattr(cpu, "has_bfloat16", lambda: True)
    network = copy.copy(load_weights("edges").network)
    network.mixed_precision = False
    x_bmd = torch.randn(1, 50, 6, generator=torch.Generator().manual_seed(0))
    assert_close(*both_ways(network, x_bmd), rtol=1e-4, atol=1e-4)


@each("axis", ["attributes", "samples"])
@each("sharpness", [1.0, 40.0])
def test_scores_beyond_the_range_of_powers_are_no_trouble(rng, axis, sharpness):
    layer = AxialAttention(8, 2, axis, project=True)
    with torch.no_grad():
        layer.qkv *= sharpness
        layer.residual.scale.fill_(1.0)
        x_bmdc = torch.randn(2, 30, 6, 8, generator=rng)
        exact, quick = layer(x_bmdc), x_bmdc.clone()
        cpu.observe([layer], quick, torch.bfloat16)
    gap = (quick - exact).abs()
    assert gap.mean() < 0.02 * exact.std()
    assert 0 < gap.max() < (0.1 if sharpness == 1 else torch.inf)


def test_factors_are_halved_only_where_that_helps(has_bfloat16):
    assert cpu.factor_dtype(torch.empty(0)) == (torch.bfloat16 if has_bfloat16 else torch.float32)
    assert cpu.factor_dtype(torch.empty(0), mixed_precision=False) == torch.float32
    assert cpu.factor_dtype(torch.empty(0, dtype=torch.float64)) == torch.float64


def test_gradients_go_through_the_layers():
    x = torch.empty(0)
    assert not cpu.is_quick(x)
    with torch.no_grad():
        assert cpu.is_quick(x)
        assert not cpu.is_quick(torch.empty(0, device="meta"))


@each("dtype", [torch.float32, torch.float64])
def test_inverse_hyperbolic_sine(dtype):
    x = torch.logspace(-6, 4, 200, dtype=dtype)
    x = torch.cat([x, -x, x.new_zeros(1)])
    assert_close(cpu.asinh(x), x.asinh(), rtol=1e-6, atol=2 * torch.finfo(dtype).eps)


def test_a_relu_of_integers_is_a_relu():
    x = torch.tensor([-torch.inf, -3.0, -1e-40, -0.0, 0.0, 1e-40, 2.5, torch.inf])
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        assert torch.equal(cpu._rectify(x.to(dtype)), x.to(dtype).relu())


@each("most", [1, 2, 3, 100])
def test_resolvents_come_a_few_at_a_time_and_all_enter_the_total(random_spd, monkeypatch, most):
    s_bcdd, poles, heard = random_spd(2, 3, 4), (0.1, 0.5, 2.0, 5.0, 9.0), (1, 2, 4)
    monkeypatch.setattr(cpu, "RESOLVENTS_HELD", most * s_bcdd.numel())
    monkeypatch.setattr(cpu, "MATRIX_CELLS_IN_BLOCK", 40)
    exact, total = spd.resolvents(s_bcdd, poles), torch.zeros_like(s_bcdd)
    found: dict[int, torch.Tensor] = {}
    for some in cpu.correlated_resolvents(s_bcdd, poles, heard, total, (1.0, -2.0, 3.0, 0.5, 4.0)):
        assert len(some) <= most
        found |= {j: r_bcdd.clone() for j, r_bcdd in some.items()}
    assert tuple(found) == heard
    for j, r_bcdd in found.items():
        assert_close(r_bcdd, spd.correlate(exact[j]))
    assert_close(total, torch.einsum("j, j... -> ...", torch.tensor([1.0, -2.0, 3.0, 0.5, 4.0]).to(exact), exact))
