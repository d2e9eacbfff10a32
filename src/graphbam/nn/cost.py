"""How much there is to compute, how long that takes on this machine, and with how many threads."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch

from graphbam.errors import ConfigError, Setting
from graphbam.machine.memory import free_memory, tell_excess
from graphbam.nn import spd
from graphbam.nn.cpu import has_bfloat16
from graphbam.nn.edge_net import RAW_POLES, EdgeNet, EdgeNetConfig
from graphbam.nn.layers import count_parts
from graphbam.nn.threads import threads

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share of the work that is done and a sentence."""

SHARE_OF_SPEED = 0.4
"""Speed of a whole network against that of a plain matrix product, on a CPU …"""

SHARE_WITH_BFLOAT16 = 0.7
"""… and of an edge network that multiplies in bfloat16 there, against one in float32."""

GPU_SPEED = 5e12
"""Operations per second of the whole network that a GPU reaches at least; the wait is short either way."""

SLOWNESS_OF_INVERSES = 2.0
"""Time of an operation inside an inverse, on a CPU, in multiples of one inside a product."""

OPERATIONS_PER_FEATURE = 1000.0
"""What one feature of a pair costs a CPU beside products, as operations: roots, logarithms, memory."""

H200_BF16 = 7.9e14
"""Operations per second of a large bfloat16 product on an H200, measured."""

H200_FP32 = 5.0e13
"""Operations per second of batched float32 products there, without tensor cores."""

H200_BYTES = 4.3e12
"""Bytes per second, read plus written, of a large copy there, measured."""

OPERATIONS_PER_THREAD = 4e9
"""Least work for a CPU thread, about a tenth of a second: for less, waking and waiting cost more than they bring."""

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

    Widths are numbers of variables: one for a whole table, one per structure for a collider network. Right within a
    factor of two or so, unless other work comes or goes on the same cores.
    """
    network = getattr(loaded, "network", None)
    if network is None:
        return 0.0
    is_half = network.kind == EdgeNet.kind and network.mixed_precision and has_bfloat16()
    share = SHARE_WITH_BFLOAT16 if is_half else SHARE_OF_SPEED
    speed = GPU_SPEED if next(network.parameters()).device.type != "cpu" else share * measure_speed()
    return n_tables * count_work(loaded, n_samples, widths) / speed


class Work(NamedTuple):
    """What tables cost: floating-point operations, by where they run, and bytes that must be moved."""

    products: float
    """On observations and pairs; in bfloat16 on a GPU."""
    definite: float
    """On definite matrices; in float32 at least."""
    inverses: float = 0.0
    """Inside inverses of definite matrices."""
    features: float = 0.0
    """Features of pairs, each a matrix entry of a channel."""
    bytes: float = 0.0
    """Each layer's input and output, moved once."""

    def on_cpu(self) -> float:
        """Operations of matrix products that take a CPU as long."""
        slow = SLOWNESS_OF_INVERSES * self.inverses + OPERATIONS_PER_FEATURE * self.features
        return self.products + self.definite + slow

    def training(self) -> Work:
        """Forward and backward: twice the operations come back, and activations and two gradients move once more."""
        three = Work(*(3 * part for part in self))
        return three._replace(bytes=2.5 * self.bytes)

    def floor(self) -> float:
        """Seconds below which no code comes on an H200: operations at the full rate, or bytes."""
        operations = self.products / H200_BF16 + (self.definite + self.inverses) / H200_FP32
        return max(operations, self.bytes / H200_BYTES)


def forward_work(
    config: EdgeNetConfig, n_tables: int, n_samples: int, n_variables: int, piece: int | None = None
) -> Work:
    """Work of a forward pass of tables, or of structures, counted from the formulas up to small change.

    Rows are shown a `piece` at a time, if that is less, and see no more of these than the design lets them.

    Examples
    --------
    >>> 0.001 < forward_work(EdgeNetConfig(), 16, 525, 55).training().floor() < 0.02
    True
    """
    c, p, q, s, d = config.channels, config.pair_channels, config.product_channels, config.spd_channels, n_variables
    cells, pairs = n_tables * n_samples * d, n_tables * d * d
    projections = 2 * c * c * (4 if config.attention_output else 3)
    attributes = config.attribute_layers * (projections + 4 * c * d)
    seen = shorten(shorten(n_samples, piece), config.sample_stretch)
    samples = config.sample_layers * (projections + 4 * c * seen)
    dense = config.dense_layers * 2 * c * (2 * config.dense_hidden or c)
    layers = config.attribute_layers + config.sample_layers + config.dense_layers
    pair_blocks = config.pair_layers * (2 * p * (9 * q + 4 * p) + 6 * q * d)
    mixing = 2 * 2 * s * (s // config.spd_heads)
    n_inverses = (spd.LOG_POLES if config.matrix_log else 0) + (len(RAW_POLES) if config.pair_layers else 0)
    return Work(
        products=cells * (attributes + samples + dense) + pairs * pair_blocks,
        definite=pairs * (2 * s * n_samples + config.bilinear_layers * (mixing + 8 * s * d)),
        inverses=pairs * 2 * s * n_inverses * d,
        features=pairs * s,
        bytes=2 * 2 * c * cells * layers + 4 * 2 * pairs * s * config.bilinear_layers,
    )


def shorten(n_samples: int, longest: int | None) -> int:
    """Rows of the longest of the equal parts that a table is cut into.

    Examples
    --------
    >>> shorten(5000, 1500), shorten(400, 1500), shorten(5000, None)
    (1250, 400, 5000)
    """
    return -(-n_samples // count_parts(n_samples, longest or 0))


def count_work(loaded: Any, n_samples: int, widths: Sequence[int]) -> float:
    """Operations for so many samples of each of these numbers of variables; 0 for weights that are no network."""
    network = getattr(loaded, "network", None)
    if network is None:
        return 0.0
    longest = getattr(loaded, "longest", lambda n_variables: None)
    return sum(forward_work(network.config, 1, n_samples, width, longest(width)).on_cpu() for width in widths)


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


def threads_for(work: float) -> int:
    """Threads that are worth waking for so many operations."""
    return max(1, int(min(work / OPERATIONS_PER_THREAD, torch.get_num_threads())))


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────

BYTES_PER_CHANNEL = 14.0
"""What a cell of a table takes on a CPU for each channel of observations, at the peak of a forward pass …"""

BYTES_PER_MATRIX = 40.0
"""… and a pair of variables for each channel of matrices. Both are measured; the larger part decides, since most of the
other is given back by then, all but a quarter."""

BYTES_PER_CELL = 24.0
"""What a cell takes as a number: as it came, and in double precision."""

BYTES_PER_THREAD = 5e7
"""Blocks that a thread has under way, or keeps for the next ones."""


def estimate_memory(
    config: EdgeNetConfig, n_tables: int, n_samples: int, n_variables: int, piece: int | None = None
) -> float:
    """Bytes that a forward pass of so many tables at once takes on a CPU, beside the network itself.

    Examples
    --------
    >>> 1.3 < estimate_memory(EdgeNetConfig(), 1, 500, 1000) / 2**30 < 2
    True
    """
    seen = shorten(n_samples, piece)
    cells = BYTES_PER_CHANNEL * config.channels * seen * n_variables + BYTES_PER_CELL * n_samples * n_variables
    pairs = BYTES_PER_MATRIX * config.spd_channels * n_variables**2
    tables = n_tables * (max(cells, pairs) + min(cells, pairs) / 4)
    return tables + min(tables, BYTES_PER_THREAD * torch.get_num_threads())


def check_memory(
    config: EdgeNetConfig, n_tables: int, n_samples: int, n_variables: int, piece: int | None = None
) -> None:
    """Refuse tables that would not fit into memory, before the system kills the process.

    Raises
    ------
    ConfigError
        With what it would take, what is free, and the way out.
    """
    needed = estimate_memory(config, n_tables, n_samples, n_variables, piece)
    refuse_beyond(needed, lambda most: estimate_memory(config, 1, n_samples, most, piece), n_samples, n_variables)


def refuse_beyond(needed: float, estimate: Callable[[int], float], n_samples: int, n_variables: int) -> None:
    """Refuse a table that needs more memory than there is; `estimate` tells what fewer variables would need."""
    free = free_memory()
    if free is None or needed <= free:
        return
    most = n_variables
    while most > 1 and estimate(most) > free:
        most = int(0.99 * most)
    found = tell_excess(n_samples, n_variables, needed, free)
    fitting = f"Leave variables out (about {most} would fit), or use" if most > 1 else "Use"
    raise ConfigError(f"{found} {fitting} a smaller ", Setting("max_rows"), ".")


@contextlib.contextmanager
def explained_memory(n_samples: int, n_variables: int) -> Iterator[None]:
    """Say what to do where a table of this size does not fit into memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_exhaustion(error):
            raise
        raise ConfigError(
            f"{n_samples} rows × {n_variables} variables do not fit into memory. Use a smaller ",
            *(Setting("max_rows"), ", leave variables out, or on a GPU try ", Setting("device", "cpu"), "."),
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
