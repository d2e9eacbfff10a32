"""Which hardware to compute on."""

from __future__ import annotations

import torch

from graphbam.errors import ConfigError, Setting


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
