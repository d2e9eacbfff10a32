"""Tasks for workers in other processes; light, since every worker loads them."""

import os
import signal
from pathlib import Path


def square(number):
    return number**2


def die_once(task):
    """The square of a number; the worker at number 3 is killed when it comes to it for the first time."""
    number, folder = task
    flag = Path(folder) / "died"
    if number == 3 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2
