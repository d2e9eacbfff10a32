"""runs/release.py: what the file holds decides what joins its header."""

import dataclasses

import pytest
import torch

from graphbam.benchmarks.baselines.avici_net import AviciNet, AviciNetConfig, load_arrows
from graphbam.nn.weights import load_network, load_weights, read_tensors, save_weights
from toy_runs import run


@pytest.fixture
def release(run_script, tmp_path):
    """Run the script into a folder of the test; gives the path of the file."""

    def call(weights, name, *options):
        run_script("release", weights, "--name", name, "--folder", tmp_path, *options)
        return tmp_path / f"{name}.safetensors"

    return call


def test_edge_weights_learn_their_domain_and_stay_what_they_were(release, tiny_training, tmp_path):
    trained = run(tiny_training(), tmp_path / "run", 2)
    path = release(trained, "mine", "--calibration-tables", "0", "--domain-tables", "3")
    before, after = load_weights(trained), load_weights(path)
    assert dataclasses.replace(after.header, domain=None, checksum=None) == dataclasses.replace(
        before.header, checksum=None
    )
    low, high = after.header.domain["row_dependence"]
    assert low < high
    x_bmd = torch.randn(1, 12, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(before.probabilities(x_bmd), after.probabilities(x_bmd))


def test_collider_weights_get_no_domain_and_no_evidence_unasked(release, tiny_immoralities, tmp_path):
    trained = run(tiny_immoralities(), tmp_path / "run", 2)
    path = release(trained, "mine", "--structures", "4", "--tables", "0")
    header = load_network(path).header
    assert header.domain is None
    assert header.evidence is None
    assert header.partner is None


def test_a_rival_is_stored_in_half_the_size(release, tmp_path):
    torch.manual_seed(0)
    network = AviciNet(AviciNetConfig(channels=16, blocks=2))
    save_weights(tmp_path / "whole.safetensors", network)
    path = release(tmp_path / "whole.safetensors", "rival", "--half")
    assert {tensor.dtype for tensor in read_tensors(path)[0].values()} == {torch.float16}
    x_bmd = torch.randn(1, 12, 4, generator=torch.Generator().manual_seed(0))
    whole, half = (load_arrows(name).probabilities(x_bmd) for name in (tmp_path / "whole.safetensors", path))
    assert torch.allclose(whole, half, atol=1e-2)
    assert not torch.equal(whole, half)
