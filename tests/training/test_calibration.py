"""Calibration finds the temperature and offsets that made the labels, and leaves good probabilities alone."""

import pytest
import torch

from graphbam.training.calibration import fit_calibration


@pytest.mark.parametrize(
    ("temperature", "offsets"), [(1.0, (0.0, 0.0, 0.0)), (0.6, (0.4, -0.1, -0.3)), (1.8, (0, 0, 0))]
)
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
