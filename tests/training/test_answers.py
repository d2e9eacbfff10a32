"""Every answer in one pass: the loss written out pair by pair, batches with marks, runs from edge weights."""

import math

import pytest
import torch
from torch.testing import assert_close

from graphbam.errors import ConfigError
from graphbam.nn.edge_net import MISSING, SET, EdgeNet
from graphbam.nn.weights import load_weights
from graphbam.simulation.values import Shape, Tables
from graphbam.training import data
from graphbam.training.config import TrainConfig
from graphbam.training.data import AnswerBatch
from graphbam.training.loop import grow_weights
from graphbam.training.objectives import AnswerTask, answer_loss
from toy_runs import log_of, run

CPU = torch.device("cpu")
LARGER = {"pair_layers": 3, "sample_stretch": 10}


def random_labels(rng, b, d):
    """A graph, which of its arrows are compelled, hidden causes and ancestors; some say that they do not apply."""
    dag = torch.randint(0, 2, (b, d, d), generator=rng).triu(1)
    compelled = dag * torch.randint(0, 2, (b, d, d), generator=rng)
    compelled[0] = -1
    hidden = torch.randint(0, 2, (b, d, d), generator=rng).triu(1)
    ancestors = torch.randint(-1, 2, (b, d, d), generator=rng)
    return [part.to(torch.int8) for part in (dag, compelled, hidden + hidden.mT, ancestors)]


def batch_of(rng, b=3, m=8, d=4):
    classes = torch.randint(0, 3, (b, d, d), generator=rng).triu(1)
    marks = torch.randint(0, 4, (b, m, d), generator=rng).to(torch.uint8)
    x, rows = torch.randn(b, m, d, generator=rng, dtype=torch.float64), torch.full((b,), float(m))
    return AnswerBatch(x, marks, rows, classes + classes.mT, *random_labels(rng, b, d))


def log_sigmoid(z):
    return -math.log1p(math.exp(-z))


def written_out(logits, batch, b, i, j):
    """Loss of one pair i < j of one table, by its definition."""
    direction, compelled, hidden, ancestor = (part[b] for part in logits.unbind(-1))
    total = dict.fromkeys(("direction", "compelled", "hidden", "ancestor"), 0.0)
    for tail, head in ((i, j), (j, i)):
        if batch.dag_bdd[b, tail, head] == 1:
            total["direction"] -= log_sigmoid(direction[tail, head].item())
            if batch.compelled_bdd[b, tail, head] >= 0:
                weights = [compelled[tail, head].exp(), compelled[head, tail].exp(), 1.0]
                chosen = weights[0] if batch.compelled_bdd[b, tail, head] else weights[2]
                total["compelled"] -= math.log(chosen / sum(weights))
        for name, z, label in (("hidden", hidden, batch.hidden_bdd), ("ancestor", ancestor, batch.ancestors_bdd)):
            if label[b, tail, head] >= 0:
                sign = 1 if label[b, tail, head] else -1
                total[name] -= log_sigmoid(sign * z[tail, head].item()) / 4  # half, over two orders of a pair
    return total


def test_the_loss_is_a_mean_over_pairs_and_tables(rng):
    batch = batch_of(rng)
    b, d = len(batch.x_bmd), batch.x_bmd.shape[-1]
    logits = torch.randn(b, d, d, 4, generator=rng, dtype=torch.float64)
    pairs = [(k, i, j) for k in range(b) for i in range(d) for j in range(i + 1, d)]
    each = [written_out(logits, batch, *pair) for pair in pairs]
    found = answer_loss(logits, batch)
    for name, value in found._asdict().items():
        assert value.item() == pytest.approx(sum(one[name] for one in each) / len(pairs))
    assert found.total().item() == pytest.approx(sum(value.item() for value in found))


@pytest.fixture
def network(tiny_net, rng):
    return tiny_net(rng, marks=True, answers=True)


def test_symmetries_hold_and_variables_have_no_order(rng, network):
    x, marks = torch.randn(2, 30, 5, generator=rng, dtype=torch.float64), torch.randint(0, 4, (2, 30, 5), generator=rng)
    logits = network(x, marks=marks)
    turned = logits.transpose(1, 2)
    assert_close(logits[..., :3], turned[..., :3])
    assert_close(logits[..., 3], -turned[..., 3])
    assert_close(logits[..., 5], turned[..., 5])
    for free in (4, 6):
        assert (logits[..., free] - turned[..., free]).abs().max() > 1e-3
    order, rows = torch.randperm(5, generator=rng), torch.randperm(30, generator=rng)
    moved = network(x[:, rows][:, :, order], marks=marks[:, rows][:, :, order])
    assert_close(moved, logits[:, order][:, :, order])


def test_no_marks_are_empty_marks_and_marks_matter(rng, network):
    x = torch.randn(2, 30, 4, generator=rng, dtype=torch.float64)
    marks = torch.zeros(2, 30, 4, dtype=torch.uint8)
    plain = network(x)
    assert torch.equal(network(x, marks=marks), plain)
    for mark in (MISSING, SET):
        marks[:, :9, 1] = mark
        assert (network(x, marks=marks) - plain).abs().max() > 1e-4


def test_a_network_without_marks_refuses_them(rng, tiny_net):
    with pytest.raises(ConfigError, match="cannot tell marked cells from others"):
        tiny_net(rng)(torch.randn(1, 9, 3).double(), marks=torch.zeros(1, 9, 3, dtype=torch.uint8))


def test_a_larger_network_begins_where_edges_ended(rng, tiny_net, network):
    edges = tiny_net(rng)
    network.load_state_dict(grow_weights(edges, network, "a test"))
    x = torch.randn(2, 30, 4, generator=rng, dtype=torch.float64)
    logits = network(x, marks=torch.full((2, 30, 4), MISSING | SET, dtype=torch.uint8))
    assert_close(logits[..., :3], edges(x))
    assert (logits[..., 3:] == 0).all()


def test_the_next_design_begins_where_the_one_before_ended(rng, tiny_net):
    """More pair blocks and stretches of samples, at once."""
    before, after = (tiny_net(rng, marks=True, answers=True, **more) for more in ({}, LARGER))
    after.load_state_dict(grow_weights(before, after, "a test"))
    x = torch.randn(2, 10, 4, generator=rng, dtype=torch.float64)
    assert_close(after(x), before(x))


def test_the_task_asks_for_a_network_that_answers(tiny_config):
    with pytest.raises(ConfigError, match="marks=True, answers=True"):
        TrainConfig.answers(network=tiny_config())


def test_gaps_are_filled_and_marked_in_batches(monkeypatch, tiny_training, tiny_config):
    rng = torch.Generator().manual_seed(0)
    config = tiny_training(task="answers", network=tiny_config(marks=True, answers=True))
    batch = batch_of(rng, b=2, m=9, d=4)
    observed, was_set = torch.rand(2, 9, 4, generator=rng) > 0.2, torch.rand(2, 9, 4, generator=rng) > 0.7
    observed[1] = True  # nothing is missing in the second table
    labels = (batch.dag_bdd, batch.classes_bdd, batch.hidden_bdd, batch.ancestors_bdd, batch.compelled_bdd)
    tables = Tables(torch.where(observed, batch.x_bmd, 0).float(), *labels, observed, was_set)
    monkeypatch.setattr(data, "sample_tables", lambda *args, **sizes: tables)
    made = AnswerTask().burst(rng, config, Shape(2, 9, 4), CPU)
    assert torch.equal((made.marks_bmd & MISSING) > 0, ~observed)
    assert torch.equal((made.marks_bmd & SET) > 0, was_set)
    assert torch.equal(made.x_bmd[1], tables.x_bmd[1])
    assert_close(made.x_bmd[0].mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    assert (made.x_bmd[~observed] != 0).any()


def test_a_run_learns_all_of_it_and_infers_classes(tmp_path, tiny_training, tiny_config):
    config = tiny_training(task="answers", network=tiny_config(marks=True, answers=True))
    path = run(config, tmp_path, 3)
    assert {"direction", "compelled", "hidden", "ancestor"} <= log_of(tmp_path)[-1].keys()
    loaded = load_weights(path)
    assert isinstance(loaded.network, EdgeNet)
    assert loaded.probabilities(torch.randn(1, 20, 3)).shape == (1, 3, 3, 3)
