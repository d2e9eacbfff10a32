"""AVICI: the laws of its network, and two methods that answer with its arrows or say why they cannot."""

import importlib.machinery
import itertools
import sys
import types

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from cases import each
from graphbam.benchmarks.baselines.avici import (
    Avici,
    AviciRetrained,
    answer_arrows,
    find_checkpoint,
    moral_probabilities,
)
from graphbam.benchmarks.baselines.avici_net import NEVER, AviciNet, AviciNetConfig, Block
from graphbam.benchmarks.baselines.avici_task import forward_work
from graphbam.errors import ConfigError
from graphbam.nn.weights import save_weights

TINY = {"channels": 6, "blocks": 4, "heads": 2, "key_size": 4, "widening": 2}


def make_net(rng, dtype=torch.float64, **changes):
    net = AviciNet(AviciNetConfig(**(TINY | changes))).to(dtype)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64) * 0.5)
    return net


@pytest.fixture
def table(rng):
    """Columns of different shape, so that the network can tell them apart."""
    x = torch.randn(3, 9, 5, generator=rng, dtype=torch.float64)
    return x.sign() * x.abs() ** torch.tensor([0.2, 0.5, 1.0, 2.0, 4.0])


def off_diagonal(logits):
    return logits[..., ~torch.eye(logits.shape[-1], dtype=torch.bool)]


# ── network ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_reordered_variables_reorder_the_arrows(rng, table):
    net, p = make_net(rng), torch.randperm(5, generator=rng)
    assert_close(net(table[..., p]), net(table)[:, p][:, :, p])
    assert off_diagonal(net(table)).std() > 1e-3  # so that order matters


def test_reordered_samples_change_nothing(rng, table):
    net, p = make_net(rng), torch.randperm(9, generator=rng)
    assert_close(net(table[:, p]), net(table))


@pytest.mark.parametrize("axis", ["attributes", "samples"])
def test_a_block_hears_its_own_axis_and_no_other(rng, axis):
    block = Block(AviciNetConfig(**TINY), axis).double()
    h = torch.randn(2, 4, 5, TINY["channels"], generator=rng, dtype=torch.float64)
    other = h.clone()
    other[:, 1, 2] += torch.randn(TINY["channels"], generator=rng)
    moved_bmd = (block(other) - block(h)).abs().amax(-1) > 1e-9
    expected_bmd = torch.zeros_like(moved_bmd)
    expected_bmd[(slice(None), 1) if axis == "attributes" else (..., 2)] = True
    assert torch.equal(moved_bmd, expected_bmd)


def test_a_block_is_plain_attention_and_a_plain_dense_layer(rng):
    """Against the formulas, head by head, for one sample."""
    block = Block(AviciNetConfig(**TINY), "attributes").double()
    h = torch.randn(1, 1, 5, TINY["channels"], generator=rng, dtype=torch.float64)
    qkv = block.qkv(block.norm(h[0, 0])).view(5, 2, 3, 4)
    heads = [((q @ k.T) / 2).softmax(-1) @ v for q, k, v in (qkv[:, n].unbind(1) for n in range(2))]
    y = h[0, 0] + block.out(torch.cat(heads, -1))
    expected = y + block.down(block.up(block.dense_norm(y)).relu())
    assert_close(block(h)[0, 0], expected)


def test_units_do_not_matter(rng, table):
    net = make_net(rng)
    assert_close(net(table * 7.0 + 100.0), net(table))


def test_the_diagonal_has_no_probability_and_no_slope(rng, table):
    net = make_net(rng)
    logits = net(table)
    assert (logits.diagonal(dim1=1, dim2=2) == NEVER).all()
    assert (logits.sigmoid().diagonal(dim1=1, dim2=2) == 0).all()
    slopes = torch.autograd.grad(logits.diagonal(dim1=1, dim2=2).sum(), list(net.parameters()))
    assert all((slope == 0).all() for slope in slopes)


def test_a_batch_is_its_tables_one_by_one(rng, table):
    net = make_net(rng)
    assert_close(net(table), torch.stack([net(one) for one in table]))
    assert net(table[None]).shape == (1, 3, 5, 5)


def test_directions_can_be_told_apart(rng, table):
    logits = make_net(rng)(table)
    assert (logits - logits.mT).abs().max() > 1e-2


def test_logits_are_scaled_cosines(rng, table):
    """Between b − exp(t) and b + exp(t)."""
    net = make_net(rng)
    with torch.no_grad():
        net.head.temperature.fill_(0.3)
        net.head.bias.fill_(-1.5)
    found = off_diagonal(net(table)) + 1.5
    assert found.abs().max() <= np.exp(0.3) + 1e-6
    with torch.no_grad():
        net.head.temperature.fill_(1.3)
    assert_close(off_diagonal(net(table)) + 1.5, found * np.e, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 2, 2), (2, 30, 12)])
def test_gradients_are_finite_and_reach_everything(rng, shape):
    net = make_net(rng, torch.float32)
    off_diagonal(net(torch.randn(shape, generator=rng))).square().sum().backward()
    for name, parameter in net.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        if shape[-1] > 2:
            assert parameter.grad.abs().max() > 0, name


def test_constant_columns_do_no_harm(rng):
    x = torch.randn(1, 20, 4, generator=rng)
    x[..., 2] = 3.0
    assert torch.isfinite(make_net(rng, torch.float32)(x)).all()


def test_the_original_sizes():
    """4,269,442 in the original. Ours has no intervention flag (128), and shares norms: 2 · 256 a block, 256 once."""
    net = AviciNet()
    assert sum(p.numel() for p in net.parameters()) == 4_269_442 - 128 - 16 * 2 * 256 - 256
    assert [block.axis for block in net.blocks] == ["attributes", "samples"] * 8
    assert (net.head.temperature.item(), net.head.bias.item()) == (2.0, -3.0)


@each("change", [{"blocks": 0}, {"heads": -1}, {"widening": 0}])
def test_impossible_sizes_are_refused(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        AviciNetConfig(**change)


def test_unknown_fields_are_refused():
    with pytest.raises(ConfigError, match="no field colour"):
        AviciNetConfig.from_dict({"colour": "red"})


def test_the_floor_counts_what_the_network_multiplies():
    """Against PyTorch's own count of a forward pass; three times that with the way back."""
    net = AviciNet(AviciNetConfig(channels=32, blocks=3, heads=2, key_size=8))
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        net(torch.randn(2, 40, 7))
    assert forward_work(net.config, 2, 40, 7).products == pytest.approx(counter.get_total_flops(), rel=0.02)


@pytest.mark.long
def test_blocks_compile_whole_and_answer_the_same():
    rng = torch.Generator().manual_seed(0)
    net, table = make_net(rng), torch.randn(3, 9, 5, generator=rng, dtype=torch.float64)
    expected = net(table)
    for block in (net.embedding, *net.blocks, net.head):
        block.compile(backend="eager", dynamic=True, fullgraph=True)
    assert_close(net(table), expected)


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_moral_probabilities_are_those_of_independent_arrows():
    """Against the sum over all 64 graphs of three variables."""
    p = np.random.default_rng(0).uniform(size=(3, 3))
    np.fill_diagonal(p, 0.0)
    places = [(i, j) for i in range(3) for j in range(3) if i != j]
    expected = np.zeros((3, 3))
    for bits in itertools.product((0, 1), repeat=6):
        graph = np.zeros((3, 3), int)
        graph[tuple(zip(*places, strict=True))] = bits
        chance = np.prod([p[place] if bit else 1 - p[place] for place, bit in zip(places, bits, strict=True)])
        expected += chance * ((graph + graph.T + graph @ graph.T) > 0)
    np.fill_diagonal(expected, 0.0)
    assert moral_probabilities(p) == pytest.approx(expected)


def test_arrows_above_one_half_are_the_graph():
    answer = answer_arrows(np.array([[0.9, 0.8, 0.2], [0.6, 0.0, 0.5], [0.1, 0.51, 0.0]]))
    assert answer.graph_dd.tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert answer.score_dd[0].tolist() == [0.0, 0.8, 0.2]


@pytest.fixture
def weights(tmp_path):
    net = make_net(torch.Generator().manual_seed(0), torch.float32)
    save_weights(tmp_path / "arrows.safetensors", net)
    return net, str(tmp_path / "arrows.safetensors")


def test_the_retrained_network_answers(weights):
    net, path = weights
    x_md = np.random.default_rng(1).normal(size=(30, 4))
    method = AviciRetrained(weights=path)
    assert method.skip(30, 4) is None
    answer = method.fit(x_md, seed=0)
    with torch.no_grad():
        expected = net(torch.tensor(x_md, dtype=torch.float32)).double().sigmoid().numpy()
    assert answer.score_dd == pytest.approx(expected, abs=1e-6)
    assert (answer.graph_dd == (expected > 0.5)).all()
    assert answer.moral_dd == pytest.approx(moral_probabilities(expected), abs=1e-6)


def test_missing_weights_are_a_reason():
    reason = AviciRetrained(weights="nowhere").skip(100, 10)
    assert (
        reason == "needs the comparison weights 'nowhere', which are in runs/weights of a clone and not in the package"
    )


# ── the authors' own weights, with a stand-in for their package ─────────────────────────────────────────────────────


@pytest.fixture
def package(monkeypatch):
    """A module that loads as avici 1.0.7 does: kwargs.json must lie one folder above, and in the folder itself."""
    calls = []

    def load_pretrained(download=None, checkpoint_dir=None, expects_counts=None):
        assert download is None
        assert (checkpoint_dir.parent / "kwargs.json").is_file()
        scale = float((checkpoint_dir / "checkpoint_0300000.pkl").read_text())

        def model(x, interv=None, devices=None, shard_if_possible=True):
            calls.append((x.dtype, interv, devices, shard_if_possible))
            return np.full((x.shape[1],) * 2, scale, np.float32)

        return model if (checkpoint_dir / "kwargs.json").is_file() and expects_counts is False else None

    module = types.ModuleType("avici")
    module.__spec__ = importlib.machinery.ModuleSpec("avici", None)
    module.load_pretrained = load_pretrained
    monkeypatch.setitem(sys.modules, "avici", module)
    return calls


def place_checkpoint(folder):
    folder.mkdir(parents=True)
    (folder / "kwargs.json").write_text("{}")
    (folder / "checkpoint_0300000.pkl").write_text("0.75")
    return folder


@pytest.fixture
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.delenv("GRAPHBAM_AVICI", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_elsewhere")
def test_without_the_package_there_is_a_reason(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "needs the package avici, which is not installed" in Avici().skip(100, 10)


@pytest.mark.usefixtures("_elsewhere", "package")
def test_without_the_weights_there_is_a_reason(tmp_path):
    assert "needs the authors' weights scm-v0, which are not here" in Avici().skip(100, 10)
    half = place_checkpoint(tmp_path / "half")
    (half / "kwargs.json").unlink()
    assert Avici(folder=half).skip(100, 10) is not None


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("where", ["argument", "environment", "cache"])
def test_local_weights_are_found_and_asked(monkeypatch, tmp_path, package, where):
    cached = tmp_path / "cache/models--larslorch--avici/snapshots/0123/scm-v0"
    folder = place_checkpoint(cached if where == "cache" else tmp_path / "mine")
    if where == "environment":
        monkeypatch.setenv("GRAPHBAM_AVICI", str(folder))
    method = Avici(folder=folder if where == "argument" else None)
    assert method.skip(20, 3) is None
    assert find_checkpoint(method.folder).resolve() == folder
    for seed in range(2):
        answer = method.fit(np.random.default_rng(seed).normal(size=(20, 3)), seed=seed)
        assert answer.score_dd.tolist() == [[0, 0.75, 0.75], [0.75, 0, 0.75], [0.75, 0.75, 0]]
    assert package == [(np.float32, None, "cpu", False)] * 2
