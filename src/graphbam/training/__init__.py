"""Making weights: `train` runs the endless stream through a network; see `loop`, `step`, `stream`."""

from graphbam.training.config import TrainConfig
from graphbam.training.loop import Budget, train
from graphbam.training.tuning import fine_tune

__all__ = ["Budget", "TrainConfig", "fine_tune", "train"]
