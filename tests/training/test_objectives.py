"""The losses against loops written from the paper, and their behaviour where logarithms and roots are steep; tasks."""

import itertools
import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from cases import each
from graphbam.training.config import task_of
from graphbam.training.data import Stream
from graphbam.training.loop import new_network
from graphbam.training.objectives import EdgeTask, ImmoralityTask, child_loss, edge_loss, moral_penalty
from graphbam.training.step import Stepper

CPU = torch.device("cpu")


def problem(rng, b, d, spread=2.0):
    """Symmetric logits and symmetric labels."""
    logits = spread * torch.randn(b, d, d, 3, generator=rng, dtype=torch.float64)
    classes = torch.randint(0, 3, (b, d, d), generator=rng).triu(1)
    return (logits + logits.transpose(1, 2)) / 2, classes + classes.mT


def loop_over_pairs(logits, classes, smooth=1e-4):
    """L_c, L_b, L_p by the formulas, pair by pair, in plain Python."""
    p = logits.exp() / logits.exp().sum(-1, keepdim=True)
    sums, count = [0.0, 0.0, 0.0], 0
    for b in range(len(p)):
        for i in range(p.shape[1]):
            for j in range(i):
                none, skeleton, moral = p[b, i, j].tolist()
                label = classes[b, i, j].item()
                sums[0] -= math.log([none, skeleton, moral][label])
                sums[1] -= math.log(none if label == 0 else skeleton + moral)
                between = sum(p[b, i, k, 1].item() * p[b, k, j, 1].item() for k in range(p.shape[1]) if k not in (i, j))
                sums[2] += max(moral - math.sqrt(between + smooth), 0.0)
                count += 1
    return [value / count for value in sums]


@each(("b", "d"), [(1, 2), (3, 5), (2, 8)])
def test_loss_is_the_sum_over_pairs(rng, b, d):
    logits, classes = problem(rng, b, d)
    loss = edge_loss(logits, classes)
    expected = loop_over_pairs(logits, classes)
    assert [part.item() for part in loss] == pytest.approx(expected, rel=1e-9)
    assert loss.total().item() == pytest.approx(sum(expected), rel=1e-9)
    if d > 2:
        assert expected[2] > 0  # the penalty takes part in the comparison


def test_only_morality_without_a_common_child_is_punished():
    p = torch.zeros(1, 3, 3, 3, dtype=torch.float64)
    p[..., 0] = 1
    p[0, 0, 1] = p[0, 1, 0] = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    assert_close(moral_penalty(p, smooth=0.0)[0, 0, 1].item(), 1.0)
    for i in (0, 1):  # now variable 2 is adjacent to both
        p[0, i, 2] = p[0, 2, i] = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    assert_close(moral_penalty(p, smooth=0.0)[0, 0, 1].item(), 0.0)


def test_one_side_is_not_enough_for_a_common_child():
    p = torch.zeros(1, 3, 3, 3, dtype=torch.float64)
    p[0, 0, 1, 2] = p[0, 1, 0, 2] = 0.7
    p[0, 0, 2, 1] = p[0, 2, 0, 1] = 1.0
    assert_close(moral_penalty(p, smooth=0.0)[0, 0, 1].item(), 0.7)


def test_the_diagonal_is_ignored(rng):
    logits, classes = problem(rng, 2, 5)
    eye = torch.eye(5, dtype=torch.bool)
    other_logits = torch.where(eye[..., None], 50 * torch.randn(5, 3, generator=rng).double()[:, None], logits)
    other_classes = classes + 2 * eye
    assert_close(edge_loss(other_logits, other_classes).total(), edge_loss(logits, classes).total())


def test_order_of_variables_does_not_matter(rng):
    logits, classes = problem(rng, 2, 6)
    p = torch.randperm(6, generator=rng)
    assert_close(edge_loss(logits[:, p][:, :, p], classes[:, p][:, :, p]).total(), edge_loss(logits, classes).total())


def test_gradients_are_true(rng):
    logits, classes = problem(rng, 1, 4)
    assert gradcheck(lambda z: edge_loss((z + z.transpose(1, 2)) / 2, classes).total(), logits.requires_grad_())


@each("dtype", [torch.float32, torch.float64])
@each("size", [30.0, 1e4])
def test_gradients_are_finite_at_extreme_logits(rng, dtype, size):
    logits, classes = problem(rng, 2, 5)
    z = (logits.sign() * size).to(dtype).requires_grad_()
    loss = edge_loss(z, classes).total()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(z.grad).all()


def test_gradients_are_finite_without_any_skeleton_probability():
    """√ has an infinite slope at zero; every common neighbour has probability zero here."""
    z = torch.zeros(1, 4, 4, 3)
    z[..., 1] = -200.0
    z[..., 2] = 5.0
    z.requires_grad_()
    loss = edge_loss(z, torch.zeros(1, 4, 4, dtype=torch.long))
    loss.total().backward()
    assert loss.penalty > 0.9
    assert torch.isfinite(z.grad).all()


def test_perfect_and_hopeless_answers():
    classes = torch.tensor([[[0, 1, 2], [1, 0, 1], [2, 1, 0]]])
    right = 40 * torch.nn.functional.one_hot(classes, 3).double()
    assert edge_loss(right, classes).total() < 1e-6
    assert edge_loss(-right, classes).total() > 20


# ── common children ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_loss_is_the_mean_over_candidates(rng):
    logits = torch.randn(3, 5, generator=rng, dtype=torch.float64)
    roles = torch.tensor([[1, 1, 2, 2, 3], [1, 1, 2, 0, 0], [1, 2, 1, 3, 3]])
    children = torch.tensor([[0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]])
    p = logits.sigmoid()
    losses = [-p[0, 2].log(), -(1 - p[0, 3]).log(), -p[1, 2].log(), -(1 - p[2, 1]).log()]
    loss = child_loss(logits, roles, children)
    assert_close(loss.total, torch.stack(losses).mean())
    assert_close(loss.children, torch.stack(losses[::2]).mean())
    assert_close(loss.others, torch.stack(losses[1::2]).mean())


@pytest.mark.parametrize("label", [0, 1])
def test_a_batch_of_one_kind_has_a_finite_loss(label):
    roles = torch.tensor([[1, 1, 2]])
    assert all(torch.isfinite(part) for part in child_loss(torch.zeros(1, 3), roles, torch.full((1, 3), label)))


def test_a_poisoned_batch_of_structures_is_skipped(tiny_immoralities):
    config = tiny_immoralities()
    settings = {"weight_decay": 0.1, "clip_norm": 1.0, "ema_decay": 0.9, "capture": False}
    stepper = Stepper(new_network(config, CPU), task_of(config), **settings)
    good, bad = itertools.islice(Stream(config, CPU), 2)
    stepper.step(good, 1e-3)
    before = [p.detach().clone() for p in stepper.parameters]
    stepper.step(bad._replace(x_bmd=bad.x_bmd * float("nan")), 1e-3)
    assert all(torch.equal(a, b) for a, b in zip(before, stepper.parameters, strict=True))
    statistics = stepper.statistics()
    assert list(statistics) == ["loss", "children", "others", "gradient_norm", "skipped", "steps"]
    assert (statistics["skipped"], statistics["steps"]) == (1, 2)


def test_the_task_follows_from_the_config(tiny_training, tiny_immoralities):
    assert isinstance(task_of(tiny_training()), EdgeTask)
    assert isinstance(task_of(tiny_immoralities()), ImmoralityTask)
    x, roles = ImmoralityTask().example(CPU)
    assert x.shape[::2] == roles.shape
