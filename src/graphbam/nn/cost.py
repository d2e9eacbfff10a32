"""How much there is to compute, how long that takes on this machine, and with how many threads."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import torch

from graphbam.errors import ConfigError

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share of the work that is done and a sentence."""

SHARE_OF_SPEED = 0.4
"""Speed of the whole network against that of a plain matrix product, on a CPU."""

GPU_SPEED = 5e12
"""Operations a second of the whole network that a GPU reaches at least; the wait is short either way."""

OPERATIONS_A_THREAD = 1e10
"""Least work for a CPU thread, about a quarter of a second: for less, waking and waiting cost more than they bring."""

EXHAUSTED = (
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)
"""How torch says that memory has run out where it raises a plain RuntimeError."""


def be_silent(share: float, sentence: str) -> None:
    """The `Progress` of those who do not listen."""


def estimate_seconds(loaded: Any, n_tables: int, n_samples: int, *widths: int) -> float:
    """Rough time of forward passes: operations, counted, over the speed of this machine, measured on one product.

    Widths are numbers of variables: one for a whole table, one a question for a collider network. Right within a factor
    of two or so, unless other work comes or goes on the same cores.
    """
    network = getattr(loaded, "network", None)
    if network is None:
        return 0.0
    device = next(network.parameters()).device
    speed = GPU_SPEED if device.type != "cpu" else SHARE_OF_SPEED * measure_speed()
    return n_tables * count_work(loaded, n_samples, widths) / speed


def count_work(loaded: Any, n_samples: int, widths: Sequence[int]) -> float:
    """Operations for so many samples of each of these numbers of variables; 0 for weights that are no network."""
    network = getattr(loaded, "network", None)
    return 0.0 if network is None else sum(count_operations(network.config, n_samples, width) for width in widths)


def count_operations(config: Any, n_samples: int, n_variables: int) -> float:
    """Floating-point operations of one forward pass, up to small change."""
    c, p, q, d = config.channels, config.pair_channels, config.product_channels, n_variables
    attributes = config.attribute_layers * (8 * c * c + 4 * c * d)
    samples = config.sample_layers * (8 * c * c + 4 * c * n_samples)
    dense = config.dense_layers * 4 * c * config.dense_hidden
    pair = config.pair_layers * (2 * p * (9 * q + 4 * p) + 6 * q * d) + 1000 * config.spd_channels
    definite = config.spd_channels * (8 * config.bilinear_layers + 60)  # inverses run at a third of the speed
    return float(n_samples * d * (attributes + samples + dense) + d**2 * pair + d**3 * definite)


def measure_speed(size: int = 768) -> float:
    """Operations a second of matrix products on the CPU, as busy as it is now; takes some 30 ms.

    One thread is timed and multiplied: just after a start, two threads often share one core for a while.
    """
    a, seconds = torch.ones(size, size), []
    with threads(1):
        for _ in range(3):
            began = time.perf_counter()
            torch.mm(a, a)
            seconds.append(time.perf_counter() - began)
    return 2 * size**3 / min(seconds) * torch.get_num_threads()


def spell_seconds(seconds: float) -> str:
    if seconds >= 120:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds:.0f} s" if seconds >= 1 else "less than a second"


@contextlib.contextmanager
def threads(most: int) -> Iterator[None]:
    """Compute with at most so many threads here, and with as many as before afterwards; other threads keep theirs."""
    before = torch.get_num_threads()
    if most >= before:
        yield
        return
    _set_own_threads(most)
    try:
        yield
    finally:
        _set_own_threads(before)


_COUNTING = threading.Lock()


def _set_own_threads(count: int) -> None:
    """`torch.set_num_threads` for the calling thread alone.

    Torch keeps one count per thread, and one more that every new thread starts with and keeps. Its only setter changes
    both, so that a server's next worker would keep the count of whichever table was under way. Here the second one is
    read and put back by a thread of its own; between the two calls pass some microseconds.
    """

    def keep_default() -> None:
        default = torch.get_num_threads()  # what a new thread starts with
        is_read.set()
        is_changed.wait()
        torch.set_num_threads(default)

    is_read, is_changed = threading.Event(), threading.Event()
    helper = threading.Thread(target=keep_default, daemon=True)
    with _COUNTING:
        helper.start()
        is_read.wait()
        torch.set_num_threads(count)
        is_changed.set()
        helper.join()


def threads_for(work: float) -> int:
    """Threads that are worth waking for so many operations."""
    return max(1, int(min(work / OPERATIONS_A_THREAD, torch.get_num_threads())))


@contextlib.contextmanager
def explained_memory(n_samples: int, n_variables: int) -> Iterator[None]:
    """Say what to do where a table of this size does not fit into memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_exhaustion(error):
            raise
        raise ConfigError(
            f"{n_samples} rows × {n_variables} variables do not fit into memory. Pass a smaller max_rows, drop "
            "variables, or on a GPU try device='cpu'."
        ) from None


def is_exhaustion(error: BaseException) -> bool:
    """Whether an error says that memory ran out; torch has a type for it on GPUs only.

    Examples
    --------
    >>> is_exhaustion(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."))
    True
    >>> is_exhaustion(RuntimeError("unsupported memory format"))
    False
    """
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in EXHAUSTED)
