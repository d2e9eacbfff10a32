"""The learning rate: warm up, stay, and come down only when asked, so that a run can be continued for ever."""

from __future__ import annotations

from graphbam.training.config import TrainConfig


def learning_rate(config: TrainConfig, step: int, progress: float, *, decay: bool) -> float:
    """Rate at a step; `progress` is the share of the run's budget spent, `decay` whether this run ends low.

    Examples
    --------
    >>> config = TrainConfig(learning_rate=1.0, warmup_steps=10, decay_share=0.5, final_rate=0.0)
    >>> [learning_rate(config, 4, 0.1, decay=True), learning_rate(config, 50, 0.75, decay=True)]
    [0.5, 0.5]
    >>> learning_rate(config, 50, 0.75, decay=False)
    1.0
    """
    warm = min(1.0, (step + 1) / max(config.warmup_steps, 1))
    if not decay or config.decay_share == 0:
        return config.learning_rate * warm
    left = min(1.0, max(0.0, 1 - progress) / config.decay_share)
    return config.learning_rate * warm * (config.final_rate + (1 - config.final_rate) * left)
