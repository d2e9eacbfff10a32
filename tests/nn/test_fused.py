"""Layers as few kernels: they compute what layers do, learn what layers learn, and compile as they are."""

import os
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from cases import each
from graphbam.nn import fused, tiles
from graphbam.nn.layers import AxialAttention, Dense, PairBlock

LAYERS = {
    "dense": lambda: Dense(32, 64),
    "attributes": lambda: AxialAttention(32, 2, "attributes", project=True),
    "samples": lambda: AxialAttention(32, 2, "samples", project=True),
    "pairs": lambda: PairBlock(32, 16),
}

KERNEL_CHECK = """
import sys, torch
from graphbam.nn import fused, tiles
sys.path.insert(0, sys.argv[1])
from test_fused import LAYERS, learn, shuffle, tables
for plans in (fused.CELLS, fused.PAIRS):  # few programs, which take several tiles
    plans.update({name: plan._replace(programs=2 + i % 3) for i, (name, plan) in enumerate(plans.items())})
for name, make in LAYERS.items():
    layer = shuffle(make())
    for x in tables(name):
        wanted = learn(layer, x)
        fits = fused.fits, fused.multiplies, tiles.fits
        fused.fits = fused.multiplies = tiles.fits = lambda *_: True
        if len(sys.argv) > 2:
            found = learn(torch.compile(layer, backend=sys.argv[2], fullgraph=True, dynamic=True), x)
        else:
            found = learn(layer, x)
        fused.fits, fused.multiplies, tiles.fits = fits
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, atol=2e-4, rtol=1e-4)
"""


def shuffle(layer: nn.Module) -> nn.Module:
    """A layer whose weights are all of some size: biases and gains too."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in layer.parameters():
            weight += 0.2 * torch.randn_like(weight)
    return layer


def tables(name: str) -> list[torch.Tensor]:
    """Rows that fill tiles and rows that do not, of one and of several tables."""
    sizes = [(1, 2, 2), (3, 20, 7), (2, 70, 18)]
    return [torch.randn(n, d if name == "pairs" else m, d, 32) for n, m, d in sizes]


def learn(layer: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """What a layer says, and the slopes of its input and of all of its weights."""
    x = x.detach().requires_grad_()
    y = layer(x, torch.tensor(x.shape[1] ** -0.5)) if x.ndim == 4 and "sides" in dir(layer) else layer(x)
    slope = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    return [y.detach(), *torch.autograd.grad(y, [x, *layer.parameters()], slope)]


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton, which comes with the CUDA build of PyTorch, is absent")
@each("backend", [[], ["aot_eager"]])
def test_kernels_are_right(backend):
    """Interpreted, on a CPU; on a GPU, `runs/bench_network.py --agreement edges` compares whole networks."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KERNEL_CHECK, os.path.dirname(__file__), *backend]
    subprocess.run(command, env=environment, check=True)


@each("name", ["dense", "attributes", "samples", "pairs"])
def test_shapes_are_known_beforehand(name, monkeypatch):
    for room, test in ((fused, "fits"), (fused, "multiplies"), (tiles, "fits")):
        monkeypatch.setattr(room, test, lambda *_: True)
    layer = LAYERS[name]().to("meta")
    for x in tables(name):
        x = x.to("meta").requires_grad_()
        y = layer(x, torch.tensor(0.5)) if name == "pairs" else layer(x)
        slopes = torch.autograd.grad(y.sum(), [x, *layer.parameters()])
        assert y.shape == x.shape
        assert [slope.shape for slope in slopes] == [part.shape for part in (x, *layer.parameters())]


def test_only_what_fits_is_fused(monkeypatch):
    def rows(shape, dtype=torch.bfloat16, is_cuda=True):
        return SimpleNamespace(is_cuda=is_cuda, dtype=dtype, shape=shape, numel=lambda: torch.Size(shape).numel())

    monkeypatch.setattr(tiles, "TRITON", True)
    assert fused.fits(rows((2, 50, 20, 64)), 192, 3)
    assert not fused.fits(rows((2, 50, 20, 64)), 160, 2)  # halves of 80
    assert not fused.fits(rows((2, 50, 20, 100)), 300, 3)  # the paper's channels
    assert not fused.fits(rows((2, 50, 20, 64), torch.float32), 192, 3)
    assert not fused.fits(rows((2, 50, 20, 64), is_cuda=False), 192, 3)
    assert not fused.fits(rows((16, 10_000, 1000, 64)), 192, 3)  # offsets would not fit
    assert fused.multiplies(rows((2, 128, 128, 64)), 96)
    assert not fused.multiplies(rows((2, 129, 129, 64)), 96)
    monkeypatch.setattr(tiles, "TRITON", False)
    assert not fused.fits(rows((2, 50, 20, 64)), 192, 3)
