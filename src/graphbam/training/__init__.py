"""Making weights: `train` runs the endless stream through a network; see `loop`, `step`, `stream`."""

from graphbam.training.config import TrainConfig
from graphbam.training.finetune import fine_tune
from graphbam.training.loop import Budget, train

__all__ = ["Budget", "TrainConfig", "fine_tune", "train"]
