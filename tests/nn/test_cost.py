"""Operations, seconds, threads and memory: what computing costs on this machine."""

from __future__ import annotations

import re

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from cases import each
from graphbam.errors import ConfigError
from graphbam.nn import cost
from graphbam.nn.cost import estimate_seconds, forward_work, is_exhaustion, measure_speed
from graphbam.nn.device import choose_device
from graphbam.nn.edge_net import EdgeNet, EdgeNetConfig
from graphbam.nn.weights import load_weights
from standins import PartialCorrelation


def test_pieces_save_work_and_memory_of_long_tables_only():
    config = EdgeNetConfig()
    long, short = (1, 6000, 30), (1, 1500, 30)
    assert forward_work(config, *short, 1500) == forward_work(config, *short)
    whole, cut = forward_work(config, *long), forward_work(config, *long, 1500)
    assert cut.products < 0.6 * whole.products
    assert cut.definite == whole.definite
    assert cost.estimate_memory(config, *short) < cost.estimate_memory(config, *long, 1500)
    assert cost.estimate_memory(config, *long, 1500) < 0.5 * cost.estimate_memory(config, *long)


def test_the_shorter_of_piece_and_stretch_counts():
    """One is asked for, one is the design's; all observations are held either way."""
    plain, cut, long = EdgeNetConfig(), EdgeNetConfig(sample_stretch=150), (1, 6000, 30)
    assert forward_work(cut, *long) == forward_work(cut, *long, 1500) == forward_work(plain, *long, 150)
    assert forward_work(cut, *long, 100) == forward_work(plain, *long, 100)
    assert forward_work(cut, 1, 150, 30) == forward_work(plain, 1, 150, 30)
    assert cost.estimate_memory(cut, *long, 1500) == cost.estimate_memory(plain, *long, 1500)


@each(
    ("n_samples", "n_variables", "longest"),
    [(100, 30, 0), (60, 60, 0), (200, 20, 0), (1000, 8, 0), (1000, 8, 100), (999, 8, 100)],
)
def test_operations_are_counted_as_torch_counts_them(n_samples, n_variables, longest):
    network = EdgeNet(EdgeNetConfig(sample_stretch=longest))
    x_bmd = torch.randn(1, n_samples, n_variables, generator=torch.Generator().manual_seed(0))
    plain_attention = sdpa_kernel(SDPBackend.MATH)  # products that the counter can see
    with torch.no_grad(), plain_attention, FlopCounterMode(display=False) as counter:
        network(x_bmd)
    ours = forward_work(network.config, 1, n_samples, n_variables).on_cpu()
    assert ours == pytest.approx(counter.get_total_flops(), rel=0.15)


def test_speed_is_that_of_a_machine():
    assert 1e8 < measure_speed(size=256) < 1e14


def test_larger_tables_are_announced_to_take_longer():
    loaded = load_weights("edges")
    times = [estimate_seconds(loaded, 1, m, d) for m, d in [(100, 10), (1000, 10), (1000, 100), (1000, 1000)]]
    assert times == sorted(times)
    assert estimate_seconds(PartialCorrelation(), 1, 10, 10) == 0.0


def test_torch_fails_to_allocate_in_known_words():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55)
    assert is_exhaustion(caught.value)


def test_devices():
    assert choose_device("auto").type in ("cpu", "cuda")
    with pytest.raises(ConfigError, match="device='abacus'"):
        choose_device("abacus")
    if not torch.cuda.is_available():
        assert choose_device("auto") == torch.device("cpu")
        with pytest.raises(ConfigError, match="device='cuda:1'"):
            choose_device("cuda:1")


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("n_samples", "n_variables"), [(50, 10_000), (1_000_000, 20)])
def test_what_does_not_fit_is_refused_with_a_way_out(monkeypatch, n_samples, n_variables):
    monkeypatch.setattr(cost, "free_memory", lambda: 8e9)
    with pytest.raises(ConfigError, match=rf"{n_samples} rows × {n_variables} .* 8\.0 GB are free") as caught:
        cost.check_memory(EdgeNetConfig(), 1, n_samples, n_variables)
    fitting = int(re.search(r"about (\d+) would fit", str(caught.value))[1])
    assert 1 < fitting < n_variables
    cost.check_memory(EdgeNetConfig(), 1, n_samples, fitting)


def test_nothing_is_refused_where_nobody_knows(monkeypatch):
    monkeypatch.setattr(cost, "free_memory", lambda: None)
    cost.check_memory(EdgeNetConfig(), 1, 1000, 100_000)


def test_more_of_anything_takes_more_memory():
    sizes = [(1, 100, 50), (2, 100, 50), (2, 200, 50), (2, 200, 500)]
    assert sorted(sizes, key=lambda size: cost.estimate_memory(EdgeNetConfig(), *size)) == sizes
