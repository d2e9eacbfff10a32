"""Making weights: `train` runs an endless stream of simulated tables (`data`) through a network, step by step."""

from graphbam.training import objectives  # noqa: F401 (registers the tasks)
from graphbam.training.config import Task, TrainConfig, register_task
from graphbam.training.finetune import fine_tune
from graphbam.training.loop import Budget, train

__all__ = ["Budget", "Task", "TrainConfig", "fine_tune", "register_task", "train"]
