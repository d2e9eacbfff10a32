"""Which hardware to compute on, and what is compiled for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Concatenate, ParamSpec, TypeVar, cast

import torch
from torch import Tensor

from graphbam.errors import ConfigError, Setting

Rest = ParamSpec("Rest")
Output = TypeVar("Output")

TRITON = find_spec("triton") is not None
"""Whether Triton is installed; it comes with the CUDA build of PyTorch, and its compiler needs it on a GPU."""


def choose_device(device: str = "auto") -> torch.device:
    """A device that exists; `"auto"` is the GPU where there is one.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # what torch raises for one it lacks
        reason = str(error).splitlines()[0].rstrip(".")
        raise ConfigError(Setting("device", device), f" cannot be used here: {reason}. Choose auto or cpu.") from None
    return torch.device(device)


def compiled_on_gpu(
    function: Callable[Concatenate[Tensor, Rest], Output],
) -> Callable[Concatenate[Tensor, Rest], Output]:
    """Compile a function, once for all shapes, where its first argument is on a GPU: few launches instead of many.

    Examples
    --------
    >>> @compiled_on_gpu
    ... def double(x):
    ...     return 2 * x
    >>> double(torch.ones(2))
    tensor([2., 2.])
    """

    @functools.cache
    def compiled() -> Callable[Concatenate[Tensor, Rest], Output]:
        return torch.compile(function, dynamic=True)

    @functools.wraps(function)
    def call(first: Tensor, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Output:
        return (compiled() if TRITON and first.is_cuda else function)(first, *args, **kwargs)

    return cast(Callable[Concatenate[Tensor, Rest], Output], call)
