"""Calibration finds the temperature and offsets that made the labels, and leaves good probabilities alone."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from cases import each
from graphbam.nn.edge_net import EdgeNetConfig
from graphbam.nn.weights import Header, LoadedWeights, doubt_paths, load_colliders
from graphbam.simulation.config import SimulationConfig
from graphbam.training import calibration
from graphbam.training.calibration import (
    Questions,
    fit_answer,
    fit_calibration,
    fit_child_calibration,
    judge_answer,
    simulated_answers,
    simulated_children,
    simulated_logits,
)
from toy_runs import run


@each(("temperature", "offsets"), [(1.0, (0.0, 0.0, 0.0)), (0.6, (0.4, -0.1, -0.3)), (1.8, (0, 0, 0))])
def test_fit_recovers_what_made_the_labels(temperature, offsets):
    rng = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(40_000, 3, generator=rng)
    p = (logits / temperature + torch.tensor(offsets)).softmax(-1)
    fitted = fit_calibration(logits, torch.multinomial(p, 1, generator=rng)[:, 0])
    assert fitted.temperature == pytest.approx(temperature, rel=0.04)
    assert fitted.offsets == pytest.approx(list(offsets), abs=0.05)


def test_weights_decide_which_pairs_count():
    rng = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(20_000, 3, generator=rng)
    sharp = torch.multinomial((logits / 0.5).softmax(-1), 1, generator=rng)[:, 0]
    flat = torch.multinomial((logits / 2).softmax(-1), 1, generator=rng)[:, 0]
    weight = torch.cat([torch.ones(20_000), torch.full((20_000,), 1e-9)])
    fitted = fit_calibration(torch.cat([logits, logits]), torch.cat([sharp, flat]), weight)
    assert fitted.temperature == pytest.approx(0.5, rel=0.05)


class Elsewhere(nn.Module):
    """A network on another device than its tables: answers with zeros, and notes where its input was."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, device="meta"))
        self.seen = set()
        self.config = EdgeNetConfig()

    def forward(self, x_bmd, rows):
        self.seen.add(x_bmd.device.type)
        return torch.zeros(*x_bmd.shape[::2], x_bmd.shape[2], 3)


def test_tables_travel_to_where_the_network_is(monkeypatch):
    monkeypatch.setattr(calibration, "SHAPES", ((3, 8), (4, 10)))
    network = Elsewhere()
    config = SimulationConfig.preset("paper")
    logits, classes, weights = simulated_logits(
        LoadedWeights("far", network, Header()), torch.Generator().manual_seed(0), config, 2
    )
    assert network.seen == {"meta"}
    assert logits.shape == (2 * 3 + 2 * 6, 3)
    assert classes.shape == weights.shape == logits.shape[:1]


class Boastful(nn.Module):
    """It says directions by the first row, and is as sure of few variables as of many."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.config = EdgeNetConfig.every_answer()

    def forward(self, x_bmd, rows, marks=None):
        z_bddo = torch.zeros(*x_bmd.shape[::2], x_bmd.shape[2], 7)
        z_bddo[..., 3] = 4.0 * (x_bmd[:, 0, :, None] - x_bmd[:, 0, None, :]).sign()
        return z_bddo


def test_answers_about_few_variables_are_doubted_as_much_as_they_boast():
    asked = simulated_answers(
        LoadedWeights("far", Boastful(), Header()),
        torch.Generator().manual_seed(0),
        SimulationConfig.preset("paper"),
        n_tables=40,
        shapes=((2, 20), (4, 20), (6, 20)),
    )["direction"]
    sizes, counts = asked.share.unique(return_counts=True)
    assert_close(sizes, torch.tensor([(2 / d) ** 2 for d in (6, 4, 2)], dtype=torch.float64))
    assert counts.min() >= 2
    many = asked._replace(truth=(asked.logits > 0) & (asked.share < 0.5) | (asked.logits <= 0) & (asked.share > 0.5))
    right = asked._replace(truth=asked.logits > 0)
    assert fit_answer("direction", many)["doubt"] > 10 * fit_answer("direction", right)["doubt"]
    fitted = fit_answer("direction", asked)
    assert judge_answer("direction", asked, fitted) < judge_answer("direction", asked, {"temperature": 1.0})


def test_the_doubt_about_paths_is_found_again():
    rng = torch.Generator().manual_seed(0)
    logits, share = 4 * torch.randn(20_000, 2, generator=rng).double(), (torch.arange(20_000) % 2).double()
    values = {"temperature": 1.5, "doubt": 3.0}
    p = doubt_paths(*logits.unbind(-1), values, share)
    asked = Questions(logits, torch.rand(20_000, generator=rng) < p, share)
    fitted = fit_answer("ancestor", asked)
    assert fitted == pytest.approx(values, rel=0.15)
    assert judge_answer("ancestor", asked, fitted) <= judge_answer("ancestor", asked, values) + 1e-9


def test_calibration_sees_all_candidates_of_fresh_structures(tiny_immoralities, tmp_path):
    config = tiny_immoralities()
    loaded = load_colliders(run(config, tmp_path, 2))
    logits, truth = simulated_children(loaded, torch.Generator().manual_seed(0), config, 5)
    assert logits.shape == truth.shape
    assert len(logits) >= 5 * 2 * 4  # structures, widths, numbers of samples
    assert 0 < truth.double().mean() < 1
    fitted = fit_child_calibration(torch.full((100,), 0.0), torch.arange(100) < 20)
    assert torch.tensor(fitted.offsets[0]).sigmoid().item() == pytest.approx(0.2, abs=1e-3)
