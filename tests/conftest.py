"""Fixtures shared by the whole suite: seeded generators, random definite matrices, networks small enough to test."""

import pytest
import torch
import torch._dynamo.testing
from torch.testing import assert_close

from cases import SEEDS
from graphbam.nn.edge_net import DESIGNS, EdgeNet
from graphbam.nn.immorality_net import ImmoralityNetConfig
from graphbam.training import TrainConfig
from graphbam.training.config import StructureConfig
from standins import TINY, TINY_HEAD, TINY_RUN, randomise

SMALL = {"bilinear_layers": 1, "max_candidates": 2, "max_neighbours": 3}

torch.set_num_threads(1)  # toy sizes: threads would only wait for each other, and for the other test process


@pytest.fixture(autouse=True)
def exact_products(monkeypatch):
    """Laws hold to the last digits of float32: products in bfloat16 round on their way, by the order of columns too.

    Those of bfloat16 are in tests/nn/test_cpu.py, which puts it back.
    """
    monkeypatch.setattr("graphbam.nn.cpu.has_bfloat16", lambda: False)


@pytest.fixture(params=SEEDS)
def rng(request):
    return torch.Generator().manual_seed(request.param)


@pytest.fixture
def random_spd(rng):
    """Random positive definite matrices: shape (..., D) → (..., D, D)."""

    def make(*shape):
        a = torch.randn(*shape, 2 * shape[-1], generator=rng, dtype=torch.float64)
        return a @ a.mT / a.shape[-1]

    return make


@pytest.fixture(scope="session")
def tiny_config():
    """A named design with the sizes of a toy; the switches that make the design stay."""

    def make(design="default", **changes):
        sizes = TINY | (TINY_HEAD if design == "default" else {})
        return DESIGNS[design](**(sizes | changes))

    return make


@pytest.fixture(scope="session")
def tiny_net(tiny_config):
    """A toy network whose every weight matters."""

    def make(rng, design="default", *, dtype=torch.float64, **changes):
        return randomise(EdgeNet(tiny_config(design, **changes)).to(dtype), rng)

    return make


@pytest.fixture(scope="session")
def tiny_training(tiny_config):
    """A training run that takes milliseconds a step: toy network, toy tables, linear worlds."""

    def make(**changes):
        settings = TINY_RUN | {"network": tiny_config(), "curriculum_start": 0.5}
        return TrainConfig(**(settings | changes))

    return make


@pytest.fixture(scope="session")
def tiny_immoralities():
    """A toy network on small structures of linear worlds; `network` and `settings` are changed by their fields."""

    def make(network=None, settings=None, **changes):
        parts = TINY_RUN | {
            "network": ImmoralityNetConfig(**(TINY | TINY_HEAD | SMALL | (network or {}))),
            "settings": StructureConfig(**({"widths": (4, 7)} | (settings or {}))),
            "variables": (5, 8),
            "samples": (8, 12),
            "cells_per_step": 400,
            "max_tables": 8,
        }
        return TrainConfig.immoralities(**(parts | changes))

    return make


@pytest.fixture
def check_compiled(monkeypatch):
    """Compiled and eager networks agree, slopes included, with so many compilations for all inputs together."""

    def check(eager, inputs, kinds):
        counter = torch._dynamo.testing.CompileCounter()
        compile_module = torch.nn.Module.compile
        monkeypatch.setattr(
            torch.nn.Module, "compile", lambda self, **kw: compile_module(self, backend=counter, fullgraph=True, **kw)
        )
        compiled = type(eager)(eager.config).double()
        compiled.load_state_dict(eager.state_dict())
        assert compiled.compile_blocks() is compiled
        for some in inputs:
            out, expected = compiled(*some), eager(*some)
            assert_close(out, expected)
            slopes, truths = (
                torch.autograd.grad(y.square().sum(), list(net.parameters()))
                for y, net in ((out, compiled), (expected, eager))
            )
            assert_close(slopes, truths)
            assert counter.frame_count == kinds

    torch._dynamo.reset()
    yield check
    torch._dynamo.reset()
