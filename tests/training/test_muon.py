"""Muon: singular values of one, one step written out by hand, and who is moved by it."""

import pytest
import torch
from torch.testing import assert_close

from cases import each
from graphbam.errors import ConfigError
from graphbam.nn.immorality_net import ImmoralityNet
from graphbam.training.muon import Muon, orthogonalise
from graphbam.training.objectives import EdgeTask, ImmoralityTask
from graphbam.training.step import Stepper


@each("shape", [(2, 5, 5), (1, 3, 40), (4, 40, 3)])
def test_directions_stay_and_sizes_become_one(rng, shape):
    g = torch.randn(*shape, generator=rng, dtype=torch.float64)
    u, s, v = torch.linalg.svd(g, full_matrices=False)
    turned = orthogonalise(g)
    sizes = torch.diagonal(u.mT @ turned @ v.mT, dim1=-2, dim2=-1)
    assert_close(turned, u * sizes[..., None, :] @ v)  # the same singular vectors
    assert (sizes[s > 0.1 * s.amax()] > 0.6).all()
    assert (sizes < 1.3).all()


def test_a_step_is_momentum_decay_and_an_orthogonal_update(rng):
    weight, gradients = torch.randn(2, 3, 8, generator=rng), torch.randn(2, 2, 3, 8, generator=rng)
    p = torch.nn.Parameter(weight.clone())
    optimizer = Muon([p], lr=torch.tensor(0.01), weight_decay=0.5, momentum=0.9)
    moment, expected = torch.zeros_like(weight), weight.clone()
    for gradient in gradients:
        p.grad = gradient.clone()
        optimizer.step()
        moment = 0.9 * moment + gradient
        expected = expected * (1 - 0.01 * 0.5) - 0.01 * 0.2 * 8**0.5 * orthogonalise(gradient + 0.9 * moment)
    assert_close(p.detach(), expected)


def test_every_weight_has_one_optimiser_and_class_layers_have_adamw(rng, tiny_net):
    network = tiny_net(rng, dtype=torch.float32)
    stepper = Stepper(network, EdgeTask(), weight_decay=0.0, clip_norm=1.0, ema_decay=0.9, capture=False, muon=True)
    owned = [[p for group in o.param_groups for p in group["params"]] for o in stepper.optimizers]
    assert sum(map(len, owned)) == len({id(p) for some in owned for p in some}) == len(stepper.parameters)
    turned = {id(p) for p in owned[1]}
    names = {name for name, p in network.named_parameters() if id(p) in turned}
    assert names > {"embedding.mix.weight", "head.cross.left.weight"}
    assert not [name for name in names if "classes" in name or "bilinear" in name or "norm" in name]


def test_a_network_without_such_matrices_is_refused():
    with pytest.raises(ConfigError, match="names no matrices for Muon; train with optimizer='adamw'"):
        Stepper(ImmoralityNet(), ImmoralityTask(), weight_decay=0, clip_norm=1, ema_decay=0.9, capture=False, muon=True)
