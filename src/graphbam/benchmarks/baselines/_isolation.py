"""Other people's code on a leash: seeded, silent, on one thread, and the process afterwards as it was before.

Packages of the field seed global generators, draw progress bars, and on import change how warnings look (cdt), how
numpy prints, what torch computes with and where log lines go (gcastle). None of it may reach the next method.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import random
import warnings
from collections.abc import Iterator

import numpy as np
import torch


@contextlib.contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Run what follows with global generators seeded, no output and one thread; errors come through as they are.

    The settings are those of the process, so that two threads cannot be in here at the same time.

    Examples
    --------
    >>> with isolated(seed=1):
    ...     print("never seen")
    ...     first = np.random.rand()  # noqa: NPY002
    >>> with isolated(seed=1):
    ...     assert first == np.random.rand()  # noqa: NPY002
    """
    with _settings_restored(), _silenced(), _one_thread(), _seeded(seed):
        yield


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 (packages draw from it)
    try:
        with torch.random.fork_rng(devices=[]):
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002
            torch.default_generator.manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    root, disabled = logging.getLogger(), logging.root.manager.disable
    handlers, level, format_warning = list(root.handlers), root.level, warnings.formatwarning
    try:
        nowhere = io.StringIO()
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logging.disable(logging.CRITICAL)
            yield
    finally:
        logging.disable(disabled)
        root.handlers[:], warnings.formatwarning = handlers, format_warning
        root.setLevel(level)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    import scipy.linalg  # noqa: F401 (it brings its own BLAS, and only libraries that are loaded can be limited)
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    try:
        with threadpool_limits(1):
            torch.set_num_threads(1)
            yield
    finally:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def _settings_restored() -> Iterator[None]:
    environment, dtype = dict(os.environ), torch.get_default_dtype()
    try:
        with np.printoptions(), np.errstate():
            yield
    finally:
        torch.set_default_dtype(dtype)
        os.environ.clear()
        os.environ.update(environment)
