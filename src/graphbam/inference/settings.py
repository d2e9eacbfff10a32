"""The settings of `infer`, `infer_many`, `BAM` and the command line, said once.

Light on purpose: the command line takes its options from here, and must know them before torch is loaded.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, get_args

from graphbam.errors import ConfigError, Setting
from graphbam.inference.executors import read_executor
from graphbam.tables.config import Large, Missing, PrepareConfig, setting

if TYPE_CHECKING:
    from graphbam.graphs.knowledge import EdgeLike, Knowledge, PriorOdds, Tiers
    from graphbam.inference.networks import Colliders, Weights
    from graphbam.tables.columns import Encode
    from graphbam.tables.interventions import Interventions

    WeightsLike: TypeAlias = str | os.PathLike[str] | Weights
    CollidersLike: TypeAlias = str | os.PathLike[str] | Colliders | None
    KnowledgeLike: TypeAlias = Knowledge | Mapping[str, Any] | str | os.PathLike[str] | None

Function = TypeVar("Function", bound=Callable[..., Any])

COLLIDERS = "colliders"
"""Collider weights that are used unless others are named."""

Directions: TypeAlias = Literal["auto", "one-pass", "two-step", "none"]
"""Where directions come from: from the pass that finds links, or from the second network, as in the paper. ``"auto"``
is the first where the weights give directions and no other collider weights are named, else the second."""


Blocks: TypeAlias = Literal["auto", "always", "never"]
"""Whether the network is asked about neighbourhoods of a table instead of the whole; ``"auto"``: of a wide one."""


@dataclass(frozen=True, kw_only=True)
class InferConfig:
    """Everything that can be set about an answer, checked on construction.

    Examples
    --------
    >>> InferConfig(drop="id", stability=100).drop
    ('id',)
    >>> InferConfig(stability=-1)
    Traceback (most recent call last):
    graphbam.errors.ConfigError: stability=-1 is not a number of resamples; choose 0, or about 100.
    """

    weights: WeightsLike = setting("edges", "Name of shipped weights, or a file.")
    colliders: CollidersLike = setting(COLLIDERS, "The same for the second network, which finds common children.")
    directions: Directions = setting("auto", "Directions by one-pass or two-step, or none; auto: as the weights allow.")
    device: str = setting("auto", "auto, cpu, cuda …; auto takes a GPU if there is one.")
    encode: Encode = setting(False, "Turn text and dates into numbers.")
    drop: str | Iterable[str] = setting((), "Leave a column out.")
    interventions: Interventions = setting(None, "Column that names what was set in each row, or a file of 0 and 1.")
    knowledge: Knowledge | None = setting(None, "Prior knowledge.")
    stability: int = setting(0, "Also infer from this many resamples of 63 % of the rows.")
    blocks: Blocks = setting("auto", "Ask about neighbourhoods of columns: always, never, or auto, beyond 300 columns.")
    executor: Any = setting(None, "Where work is done: a number of processes, a Dask scheduler's address, or ray.")
    store: str | os.PathLike[str] | None = setting(None, "Folder that keeps what is done; a stopped run can go on.")
    prepare: PrepareConfig = dataclasses.field(default_factory=PrepareConfig)

    def __post_init__(self) -> None:
        names = self.drop if isinstance(self.drop, Iterable) and not isinstance(self.drop, str) else [self.drop]
        object.__setattr__(self, "drop", tuple(str(name) for name in names))
        for name, kinds in (("directions", get_args(Directions)), ("blocks", get_args(Blocks))):
            if getattr(self, name) not in kinds:
                raise ConfigError(Setting(name, getattr(self, name)), f" is not known; choose from {', '.join(kinds)}.")
        read_executor(self.executor)
        if self.store is not None and not os.fspath(self.store):
            raise ConfigError(Setting("store", ""), " is an empty path. Name a folder, or leave it out.")
        n_resamples: Any = self.stability
        if isinstance(n_resamples, bool) or not isinstance(n_resamples, Integral) or n_resamples < 0:
            found = Setting("stability", self.stability)
            raise ConfigError(found, " is not a number of resamples; choose 0, or about 100.")


class FlatSettings(TypedDict, total=False):
    """Keywords of `BAM`, beside `weights`: the fields of `InferConfig` and of `PrepareConfig`, for type checkers."""

    colliders: CollidersLike
    directions: Directions
    device: str
    encode: Encode
    drop: str | Iterable[str]
    interventions: Interventions
    knowledge: KnowledgeLike
    stability: int
    blocks: Blocks
    executor: Any
    store: str | os.PathLike[str] | None
    missing: Missing
    keep_codes: bool
    max_rows: int
    large: Large
    independent_rows: bool
    seed: int


class Settings(FlatSettings, total=False):
    """Keywords of `infer`, beside `weights`: preparing also as a whole, and knowledge also in parts."""

    prepare: PrepareConfig | None
    forbidden: Iterable[EdgeLike]
    required: Iterable[EdgeLike]
    tiers: Tiers | None
    prior_odds: PriorOdds | None


PARTS: dict[str, Any] = {"forbidden": (), "required": (), "tiers": None, "prior_odds": None}
"""Prior knowledge in parts, with what stands for none of it."""


def flat_fields() -> list[dataclasses.Field[Any]]:
    """Every setting on its own: the fields of `InferConfig`, then those of `PrepareConfig`.

    Examples
    --------
    >>> [field.name for field in flat_fields()][:3]
    ['weights', 'colliders', 'directions']
    """
    direct = [field for field in dataclasses.fields(InferConfig) if field.name != "prepare"]
    return [*direct, *dataclasses.fields(PrepareConfig)]


FLAT: dict[str, Any] = {field.name: field.default for field in flat_fields()}
"""Every setting on its own, with its default."""


def read_settings(settings: Mapping[str, Any]) -> InferConfig:
    """Settings by name → one checked config; those of `PrepareConfig` may come in it or on their own.

    Examples
    --------
    >>> read_settings({"max_rows": 100, "prepare": PrepareConfig(seed=3)}).prepare.seed
    3
    >>> read_settings({"sead": 3})
    Traceback (most recent call last):
    graphbam.errors.ConfigError: there is no setting 'sead'; did you mean 'seed'?
    """
    for name in settings:
        check_name(name, [*FLAT, *PARTS, "prepare"])
    parts = {name: settings.get(name, nothing) for name, nothing in PARTS.items()}
    known = {field.name for field in dataclasses.fields(PrepareConfig)}
    apart = {name: value for name, value in settings.items() if name in known}
    prepare = dataclasses.replace(settings.get("prepare") or PrepareConfig(), **apart)
    direct = {name: settings[name] for name in FLAT if name in settings and name not in known}
    knowledge = gather_knowledge(settings.get("knowledge"), **parts)
    return InferConfig(**(direct | {"knowledge": knowledge, "prepare": prepare}))


def check_name(name: str, names: Iterable[str]) -> None:
    """Refuse a setting that there is not, with the nearest one that there is."""
    names = list(names)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}."
        raise ConfigError(f"there is no setting {name!r}; {hint}")


def gather_knowledge(
    knowledge: KnowledgeLike,
    forbidden: Iterable[EdgeLike] = (),
    required: Iterable[EdgeLike] = (),
    tiers: Tiers | None = None,
    prior_odds: PriorOdds | None = None,
) -> Knowledge:
    """Bring prior knowledge into one object, whichever way it was given.

    Examples
    --------
    >>> gather_knowledge({"required": ["a -> b"]}).to_dict()
    {'required': [['a', '->', 'b']]}
    """
    from graphbam.graphs.knowledge import Knowledge

    parts = Knowledge(forbidden, required, tiers, prior_odds)
    if knowledge is None:
        return parts
    if parts:
        raise ConfigError("knowledge was given whole and in parts; put forbidden, required … into knowledge.")
    return _read_knowledge(knowledge)


def _read_knowledge(knowledge: Any) -> Knowledge:
    from graphbam.graphs.knowledge import Knowledge

    if isinstance(knowledge, Knowledge):
        return knowledge
    if isinstance(knowledge, Mapping):
        return Knowledge.from_dict(knowledge)
    if isinstance(knowledge, (str, os.PathLike)):
        return Knowledge.from_json(knowledge)
    found = f"{' '.join(reprlib.repr(knowledge).split())}, of type {type(knowledge).__name__}"
    raise ConfigError(
        Setting("knowledge"),
        f" is {found}. Pass a Knowledge, a dict, the path of a JSON file or None; or edges as ",
        Setting("required"),
        " and ",
        Setting("forbidden"),
        ".",
    )


def show_settings(settings: Mapping[str, Any]) -> Callable[[Function], Function]:
    """Let `help` and `inspect.signature` spell out the settings that a function takes as ``**settings``."""

    def show(function: Function) -> Function:
        plain = inspect.signature(function)
        own = [p for p in plain.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in settings.items()
            if name not in plain.parameters
        ]
        ordered = sorted([*own, *more], key=lambda p: (p.kind, p.name == "progress"))  # `progress` is said last
        setattr(function, "__signature__", plain.replace(parameters=ordered))  # noqa: B010 (functions have none)
        return function

    return show
