"""What all networks share: a config that refuses names it does not know, a precision, compiled blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from graphbam.errors import ConfigError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Settings that travel inside files: frozen, plain values, checked when they are read back.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Sizes(Config):
    ...     widths: tuple[int, ...] = (8, 16)
    >>> Sizes.from_dict({"widths": [4]})
    Sizes(widths=(4,))
    >>> Sizes.from_dict({"colour": "red"})
    Traceback (most recent call last):
    graphbam.errors.ConfigError: Sizes has no field colour; use a newer graphbam
    """

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON would give them back."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in dataclasses.asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; unknown names are refused."""
        if unknown := sorted(set(values) - {field.name for field in dataclasses.fields(cls)}):
            raise ConfigError(f"{cls.__name__} has no field {', '.join(unknown)}; use a newer graphbam")
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


class Network(nn.Module):
    """A module that a weights file can hold: built from its config alone, known by its kind."""

    kind: ClassVar[str]
    """What headers call it."""
    config_type: ClassVar[type[Config]]
    config: Any
    """Its sizes and switches, a `config_type`."""
    mixed_precision = True
    """Whether observations travel in bfloat16 on a GPU."""

    @classmethod
    def empty(cls, config: Any) -> Self:
        """A network whose weights are about to be filled in: no random number of the caller's is spent on them."""
        with torch.random.fork_rng(devices=[]):
            return cls(config)

    def observation_dtype(self, x: Tensor) -> torch.dtype:
        """Precision of the observations of a table; beyond the covariance all is float32 at least."""
        half = self.mixed_precision and x.is_cuda and x.dtype == torch.float32
        return torch.bfloat16 if half else x.dtype

    def compilable(self) -> list[nn.Module]:
        """Blocks worth compiling."""
        raise NotImplementedError

    def channel_matrices(self) -> list[nn.Parameter]:
        """Weights that an optimiser may treat as matrices between channels; none, unless a network names some."""
        return []

    def compile_blocks(self) -> Self:
        """Compile every block in place with free shapes: one compilation serves all blocks of a kind and all sizes."""
        for part in self.compilable():
            part.compile(dynamic=True)
        return self
