"""Attention by tiles: every cell is on one line of one tile, layers hand over what tiles expect, kernels are right."""

import os
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch

from cases import each
from graphbam.nn import tiles
from graphbam.nn.layers import AxialAttention

SHAPES = [(2, 7, 20), (1, 3, 70), (2, 7, 13), (1, 40, 3), (2, 100, 2), (1, 3, 128), (3, 1, 1), (2, 64, 5)]

KERNEL_CHECK = """
import sys, torch
from graphbam.nn import tiles
sys.path.insert(0, sys.argv[1])
from test_tiles import SHAPES, attend_plainly
for over_samples in (False, True):
    for shape in SHAPES:
        qkv = torch.randn(*shape, 2, 3, 16, requires_grad=True)
        answers = []
        for attend in (attend_plainly, tiles.attend):
            y = attend(qkv, over_samples, 0.3)
            answers.append([y.detach(), *torch.autograd.grad(y.square().sum(), qkv)])
        for found, wanted in zip(*answers):
            torch.testing.assert_close(found, wanted, atol=2e-5, rtol=1e-4)
"""


def attend_plainly(qkv_bmdh3e, over_samples, scale):
    """What `tiles.attend` computes, for any device and precision."""
    order = (0, 2, 3, 1, 4) if over_samples else (0, 1, 3, 2, 4)
    q, k, v = (part.permute(order) for part in qkv_bmdh3e.unbind(-2))
    y = (q @ k.mT * scale).softmax(-1) @ v
    return y.permute(0, 3, 1, 2, 4) if over_samples else y.permute(0, 1, 3, 2, 4)


@each("over_samples", [False, True])
@each("shape", SHAPES)
def test_every_cell_is_on_one_line_of_one_tile(shape, over_samples):
    plan = tiles.plan_tiles(*shape, over_samples=over_samples)
    assert plan.per_tile <= plan.tile
    assert plan.tile & (plan.tile - 1) == 0
    lines = []
    for outer in range(plan.outer):
        for inner in range(plan.inner):
            n_there = min(plan.per_tile, plan.n_positions - outer * plan.per_tile)
            first = outer * plan.outer_step + inner * plan.inner_step
            cells = [first + i * plan.step for i in range(n_there)]
            assert n_there % plan.line == 0
            lines += [tuple(cells[i : i + plan.line]) for i in range(0, n_there, plan.line)]
    cells_bmd = torch.arange(torch.Size(shape).numel()).view(shape)
    expected = cells_bmd.transpose(1, 2) if over_samples else cells_bmd
    assert sorted(lines) == [tuple(line) for line in sorted(expected.flatten(0, 1).tolist())]


@each("axis", ["attributes", "samples"])
def test_layers_hand_over_what_tiles_attend_along(rng, monkeypatch, axis):
    layer = AxialAttention(32, 2, axis, project=True).double()
    x_bmdc = torch.randn(2, 9, 5, 32, generator=rng, dtype=torch.float64, requires_grad=True)
    wanted = layer(x_bmdc)
    asked = []
    monkeypatch.setattr(tiles, "fits", lambda x, length, size: asked.append((length, size)) or True)
    monkeypatch.setattr(tiles, "attend", attend_plainly)
    found = layer(x_bmdc)
    torch.testing.assert_close(found, wanted)
    slopes = [torch.autograd.grad(y.square().sum(), [x_bmdc, layer.qkv]) for y in (found, wanted)]
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other)
    assert asked == [(5 if axis == "attributes" else 9, 16)]


def test_only_what_fits_goes_by_tiles(monkeypatch):
    cells = SimpleNamespace(is_cuda=True, dtype=torch.bfloat16)
    monkeypatch.setattr(tiles, "TRITON", True)
    assert tiles.fits(cells, 128, 32)
    assert not tiles.fits(cells, 129, 32)
    assert not tiles.fits(cells, 20, 20)  # the paper's heads
    assert not tiles.fits(SimpleNamespace(is_cuda=True, dtype=torch.float32), 20, 32)
    assert not tiles.fits(torch.zeros(1, dtype=torch.bfloat16), 20, 32)
    monkeypatch.setattr(tiles, "TRITON", False)
    assert not tiles.fits(cells, 20, 32)


@each("over_samples", [False, True])
def test_shapes_are_known_beforehand(over_samples):
    qkv_bmdh3e = torch.empty(2, 9, 5, 2, 3, 32, device="meta", requires_grad=True)
    y_bmdhe = tiles.attend(qkv_bmdh3e, over_samples, 0.2)
    assert y_bmdhe.shape == (2, 9, 5, 2, 32)
    assert torch.autograd.grad(y_bmdhe.sum(), qkv_bmdh3e)[0].shape == qkv_bmdh3e.shape


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton, which comes with the CUDA build of PyTorch, is absent")
def test_kernels_are_right():
    """Interpreted, on a CPU; on a GPU, `runs/bench_network.py --agreement edges` compares whole networks."""
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    folders = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", KERNEL_CHECK, os.path.dirname(__file__)]
    subprocess.run(command, env=environment | {"PYTHONPATH": folders}, check=True)
