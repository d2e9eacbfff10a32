"""One step against the same step written with plain PyTorch, and what happens when the gradient is not a number."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close

from graphbam.training import objectives, step
from graphbam.training.data import AnswerBatch, Batch
from graphbam.training.objectives import AnswerTask, EdgeTask, edge_loss
from graphbam.training.step import Stepper


def batches(rng, n, b=3, m=9, d=4):
    found = []
    for _ in range(n):
        classes = torch.randint(0, 3, (b, d, d), generator=rng).triu(1)
        found.append(Batch(torch.randn(b, m, d, generator=rng), classes + classes.mT, torch.full((b,), float(m))))
    return found


@pytest.fixture
def network(tiny_net, rng):
    return tiny_net(rng, dtype=torch.float32)


def make_stepper(network, **changes):
    settings = {"weight_decay": 0.1, "clip_norm": 0.5, "ema_decay": 0.9, "capture": False}
    return Stepper(network, EdgeTask(), **(settings | changes))


def state_of(stepper):
    moments = [copy.deepcopy(stepper.remembered(p)) for p in stepper.parameters]
    return [p.detach().clone() for p in stepper.parameters], moments


def test_steps_equal_plain_pytorch(rng, network):
    stepper, twin = make_stepper(copy.deepcopy(network).double(), clip_norm=0.05), network.double()
    matrices = [p for p in twin.parameters() if p.ndim >= 2]
    vectors = [p for p in twin.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    plain = torch.optim.AdamW(groups, betas=(0.9, 0.98), foreach=False, fused=False)
    visited = []
    for batch, rate in zip(batches(rng, 3), (1e-3, 3e-3, 2e-3), strict=True):
        batch = batch._replace(x_bmd=batch.x_bmd.double())
        stepper.step(batch, rate)
        loss = edge_loss(twin(batch.x_bmd), batch.classes_bdd).total()
        gradients = torch.autograd.grad(loss * (4 / 20) ** 0.5, list(twin.parameters()))
        norm = sum(g.square().sum() for g in gradients).sqrt()
        assert norm > 0.05  # so that clipping acts
        for p, g in zip(twin.parameters(), gradients, strict=True):
            p.grad = g * (0.05 / norm)
        for group in plain.param_groups:
            group["lr"] = rate
        plain.step()
        visited.append([p.detach().clone() for p in twin.parameters()])
    for found, expected in zip(stepper.network.parameters(), twin.parameters(), strict=True):
        assert_close(found, expected, rtol=1e-4, atol=1e-6)
    for found, *after in zip(stepper.average, *visited, strict=True):
        expected = sum(share * p for share, p in zip((0.81, 0.9, 1.0), after, strict=True)) / 2.71
        assert_close(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("ema_decay", [0.0, 0.9, 0.999, 0.9999999])
def test_first_weights_are_in_no_average(rng, network, ema_decay):
    """After one step the average is the weights; after more, with a decay near one, their plain mean."""
    stepper = make_stepper(network, ema_decay=ema_decay)
    assert all(torch.equal(a, p) for a, p in zip(stepper.average, stepper.parameters, strict=True))
    visited = []
    for batch in batches(rng, 4):
        stepper.step(batch, 1e-2)
        visited.append([p.detach().clone() for p in stepper.parameters])
        if len(visited) == 1:
            assert_close(stepper.average, visited[0], rtol=1e-5, atol=1e-8)
    shares = torch.tensor([ema_decay**k for k in (3, 2, 1, 0)])
    for found, *after in zip(stepper.average, *visited, strict=True):
        expected = torch.tensordot(shares / shares.sum(), torch.stack(after), 1)
        assert_close(found, expected, rtol=1e-5, atol=1e-7)


def test_a_skipped_step_counts_in_the_average(rng, network):
    stepper = make_stepper(network)
    good, bad = batches(rng, 2)
    bad.x_bmd.fill_(float("nan"))
    for batch in (good, bad, bad):
        stepper.step(batch, 1e-2)
    assert_close(stepper.average, [p.detach() for p in stepper.parameters], rtol=1e-5, atol=1e-7)


def test_an_average_that_starts_at_trained_weights_keeps_its_share_of_them(rng, network):
    first = [p.detach().clone() for p in network.parameters()]
    stepper = make_stepper(network)
    stepper.start_average()
    stepper.step(batches(rng, 1)[0], 1e-2)
    expected = [0.9 * a + 0.1 * p.detach() for a, p in zip(first, stepper.parameters, strict=True)]
    assert_close(stepper.average, expected, rtol=1e-5, atol=1e-7)


def test_small_gradients_are_not_clipped(rng, network):
    stepper = make_stepper(network, clip_norm=1e6)
    (batch,) = batches(rng, 1)
    loss = edge_loss(network(batch.x_bmd), batch.classes_bdd).total() * (4 / 20) ** 0.5
    gradients = torch.autograd.grad(loss, stepper.parameters)
    stepper.step(batch, 1e-3)
    for p, gradient in zip(stepper.parameters, gradients, strict=True):
        assert_close(stepper.remembered(p)["exp_avg"], 0.1 * gradient, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(("poison", "muon"), [(float("nan"), False), (float("inf"), True)])
def test_a_step_that_is_not_finite_changes_nothing_and_is_counted(rng, network, poison, muon):
    stepper = make_stepper(network, muon=muon)
    good, bad, last = batches(rng, 3)
    stepper.step(good, 1e-3)
    weights, moments = state_of(stepper)
    bad.x_bmd[0, 0, 0] = poison
    stepper.step(bad, 1e-3)
    weights_after, moments_after = state_of(stepper)
    assert all(torch.equal(a, b) for a, b in zip(weights, weights_after, strict=True))
    for before, after in zip(moments, moments_after, strict=True):
        assert before.keys() == after.keys() in ({"step", "exp_avg", "exp_avg_sq"}, {"momentum"})
        assert all(torch.equal(before[key], after[key]) for key in before)
    statistics = stepper.statistics()
    assert (statistics["skipped"], statistics["steps"]) == (1, 2)
    assert all(torch.isfinite(torch.tensor(value)) for value in statistics.values())
    stepper.step(last, 1e-3)
    assert not torch.equal(stepper.parameters[0], weights_after[0])
    assert all(torch.isfinite(average).all() for average in stepper.average)


@pytest.mark.parametrize("muon", [False, True])
def test_skipped_steps_leave_no_trace_in_what_follows(rng, tiny_net, muon):
    """With and without a poisoned step in between, the weights end the same to the last bit."""
    first, bad, second = batches(rng, 3)
    bad.x_bmd.fill_(float("nan"))
    ends = []
    for sequence in ([first, second], [first, bad, second]):
        stepper = make_stepper(tiny_net(torch.Generator().manual_seed(3), dtype=torch.float32), muon=muon)
        for batch in sequence:
            stepper.step(batch, 1e-3)
        ends.append(stepper.parameters)
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_statistics_are_means_since_the_last_call(rng, network):
    stepper = make_stepper(network)
    expected = []
    for batch in batches(rng, 3):
        loss = edge_loss(network(batch.x_bmd), batch.classes_bdd)
        expected.append([part.item() for part in (loss.total(), *loss)])
        stepper.step(batch, 1e-3)
    found = stepper.statistics()
    means = torch.tensor(expected).mean(0).tolist()
    assert [found[name] for name in ("loss", "classes", "edges", "penalty")] == pytest.approx(means, rel=1e-4)
    assert found["gradient_norm"] > 0
    assert stepper.statistics()["steps"] == 0


def test_frozen_parameters_stay(rng, network):
    network.embedding.requires_grad_(False)
    before = network.embedding.mix.weight.clone()
    stepper = make_stepper(network)
    stepper.step(batches(rng, 1)[0], 1e-2)
    assert torch.equal(network.embedding.mix.weight, before)


@pytest.mark.parametrize("rate", [0.0, 1e-2])
def test_the_rate_is_obeyed(rng, network, rate):
    stepper = make_stepper(network)
    before = [p.detach().clone() for p in stepper.parameters]
    stepper.step(batches(rng, 1)[0], rate)
    moved = max((a - b).abs().max().item() for a, b in zip(before, stepper.parameters, strict=True))
    assert moved <= 1.06 * rate  # one AdamW step moves a weight by the rate at most, decay aside
    assert moved >= 0.9 * rate


def test_nothing_is_left_to_compile_while_a_step_is_recorded(rng, tiny_net, monkeypatch):
    """Labels that share memory on the first visit do not when recorded: the first visit must see what is recorded."""
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(objectives.answer_loss.__wrapped__, dynamic=True, backend=counter)
    monkeypatch.setattr(objectives, "answer_loss", compiled)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    counts = []

    def record(stepper, batch):
        counts.append(counter.frame_count)
        stepper._update(step._copy(batch))
        counts.append(counter.frame_count)
        return SimpleNamespace(batch=batch, graph=SimpleNamespace(replay=lambda: None))

    monkeypatch.setattr(Stepper, "_record", record)
    network = tiny_net(rng, marks=True, answers=True, dtype=torch.float32)
    stepper = Stepper(network, AnswerTask(), weight_decay=0, clip_norm=1, ema_decay=0.9, capture=True)
    label_bdd = torch.zeros(3, 5, 5, dtype=torch.uint8)
    batch = AnswerBatch(torch.randn(3, 9, 5), torch.zeros(3, 9, 5, dtype=torch.uint8), torch.ones(3), *[label_bdd] * 5)
    for _ in range(2):
        stepper.step(batch.ready(), 1e-3)
    assert counts[0] == counts[1] > 0
