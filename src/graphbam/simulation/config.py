"""What a simulated world may look like, as one frozen dataclass with named presets.

Every choice that differs from table to table is a dictionary ``{name: weight}`` or a range; a fixed choice
is a dictionary with one entry. ``SimulationConfig.preset("paper")`` holds the paper's values as its authors
ran them, ``"literal"`` the formulas as printed, ``"broad"`` the wide mixture that a network for real tables
needs; ``"broad-1"`` is that mixture before hidden variables, interventions, missing cells and named worlds joined it,
which the first shipped weights learnt from. ``"textbook"`` is what papers on methods simulate: columns that are all
alike, most of them normal.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphbam.errors import ConfigError, Setting
from graphbam.simulation.graphs import GRAPHS
from graphbam.simulation.mechanisms import CHEBYSHEV_VARIANTS, MECHANISMS
from graphbam.simulation.noise import NOISES
from graphbam.simulation.worlds import SERIES, WORLDS

MIXINGS = ("unit", "literal")
"""``unit``: x = ρ·noise + (1−ρ)·signal, both of unit variance. ``literal``: x = signal + noise as is."""

CLIPS = ("hard", "soft")
"""What happens beyond ±5 standard deviations: cut, or bent towards ±6 with tanh."""

SMALL = 4
"""Tables of at most so many variables may have shares of worlds of their own: `SimulationConfig.small_worlds`."""

UNSEEN = ("postnonlinear", "sigmoid", "tree")
"""Mechanisms kept out of every preset, so that they can serve as the unseen test."""

_SHARES = (
    "per_node_mechanisms",
    "per_node_noises",
    "same_sign",
    "discrete",
    "skewed",
    "rounded",
    "measurement_noise",
    "autocorrelated",
    "sluggish",
    "confounded",
    "growing",
    "hidden",
    "interventions",
    "missing",
)


PRESETS: dict[str, SimulationConfig] = {}
"""Configs by name, filled below."""


@dataclass(frozen=True, kw_only=True)
class SimulationConfig:
    """A distribution over simulated worlds. The defaults are the ``paper`` preset.

    Examples
    --------
    >>> config = SimulationConfig.preset("paper")
    >>> config.mechanisms, config.noise_share
    ({'chebyshev': 1.0}, (0.1, 0.4))
    >>> config.narrow(mechanism="sine", degree=3).degrees
    {3.0: 1.0}
    >>> SimulationConfig.from_dict(config.to_dict()) == config
    True
    """

    mechanisms: Mapping[str, float] = field(default_factory=lambda: {"chebyshev": 1.0})
    """Weight of each mechanism, one draw per table."""
    per_node_mechanisms: float = 0.0
    """Share of tables in which every node draws its own mechanism instead."""
    chebyshev: str = "paper"
    """Variant of the `chebyshev` mechanism: ``paper`` (authors' code), ``literal`` (formula) or ``broad``."""
    denominator_floor: float = 0.25
    """Literal Chebyshev only: α's signed denominator is kept at least this share of Σ|α̃| away from zero,
    which bounds every |α| by its inverse."""
    graphs: Mapping[str, float] = field(default_factory=lambda: {"erdos-renyi": 1.0})
    """Weight of each kind of graph, one draw per table."""
    degrees: Mapping[float, float] = field(default_factory=lambda: dict.fromkeys((1.0, 2.0, 3.0, 4.0, 5.0), 1.0))
    """Weight of each expected degree q (parents plus children of a node)."""
    degree_share: float = 1 / 3
    """Degrees above ⌊degree_share · n_variables⌋ are left out (the smallest one always stays)."""
    max_density: float = 0.8
    """The expected degree is cut at max_density · (n_variables − 1)."""
    max_parents: int | None = None
    """Most parents of one node; the surplus is dropped at random. None: no limit."""
    noises: Mapping[str, float] = field(default_factory=lambda: {"mixture": 1.0})
    """Weight of each noise family, one draw per table."""
    per_node_noises: float = 0.0
    """Share of tables in which every node draws its own noise family instead."""
    mixing: str = "unit"
    """How signal and noise join, see `MIXINGS`."""
    weight_range: tuple[float, float] = (0.7, 1.3)
    """Range of the size of each parent's weight in additive mechanisms."""
    same_sign: float = 0.0
    """Share of nodes whose parents all push in one direction; elsewhere signs are at random."""
    noise_share: tuple[float, float] = (0.1, 0.4)
    """Range of ρ in x = ρ·noise + (1−ρ)·signal."""
    noise_share_lean: float = 1.0
    """Exponent of the uniform draw that decides where in that range ρ lies: above 1, small shares come more often."""
    noise_share_pooled: bool = False
    """If true the ρ of a table's nodes resemble one another, more in some tables than in others."""
    clip: str = "soft"
    """What happens to a variable beyond ±5 before its children see it, see `CLIPS`."""
    discrete: float = 0.0
    """Share of tables with variables cut into 2 to 6 levels *before* their children see them."""
    skewed: float = 0.0
    """Share of tables with monotone transforms (exponential, signed powers) of some finished columns."""
    rounded: float = 0.0
    """Share of tables with some finished columns rounded coarsely."""
    measurement_noise: float = 0.0
    """Share of tables with weak extra noise on the finished columns."""
    autocorrelated: float = 0.0
    """Share of tables whose noise follows an AR(1) process along the rows."""
    sluggish: float = 0.0
    """Share of tables with variables that follow their parents and noise slowly, row by row: the AR(1) filter acts on
    both."""
    confounded: float = 0.0
    """Share of tables in which one hidden variable enters the noise of some columns."""
    growing: float = 0.0
    """Share of tables in which the noise of linear variables keeps its size instead of its share, under `unit` mixing:
    variance grows from parents to children, and little of the last ones is their own."""
    hidden: float = 0.0
    """Share of tables that show only some of the variables of their world (`graphbam.simulation.cells.draw_extra`).
    Variables with two children or more are hidden first, sometimes one that acts on most of the others."""
    interventions: float = 0.0
    """Share of tables with cells that were set from outside: fixed, far out or random values that ignore the parents,
    or the variable's own value shifted, scaled or reversed."""
    missing: float = 0.0
    """Share of tables with missing cells, up to 40 % of a column: by chance, by the value of another column, by the
    value itself (limits of detection) or in blocks."""
    worlds: Mapping[str, float] = field(default_factory=dict)
    """Share of tables that come from each named world (a key of `WORLDS` or of `PRESETS`) instead of from all of the
    above; `hidden` and `missing` of this config hold there too, `interventions` in presets and in `SETTABLE` worlds."""
    small_worlds: Mapping[str, float] = field(default_factory=dict)
    """The same for tables of at most `SMALL` variables, where it says anything; `worlds` holds for the others."""
    robust: bool = False
    """Winsorise heavy tails of the finished columns at robust limits before the last z-score."""

    def __post_init__(self) -> None:
        _check_weights("mechanisms", self.mechanisms, MECHANISMS)
        _check_weights("graphs", self.graphs, GRAPHS)
        _check_weights("noises", self.noises, NOISES)
        object.__setattr__(self, "degrees", _degree_weights(self.degrees))
        object.__setattr__(self, "noise_share", _noise_range(self.noise_share))
        object.__setattr__(self, "weight_range", _weight_range(self.weight_range))
        for name in ("mechanisms", "graphs", "noises"):
            object.__setattr__(self, name, {k: float(v) for k, v in getattr(self, name).items()})
        for name in ("worlds", "small_worlds"):
            _check_worlds(getattr(self, name))
            object.__setattr__(self, name, {world: float(share) for world, share in getattr(self, name).items()})
        _check_choice("chebyshev", self.chebyshev, CHEBYSHEV_VARIANTS)
        _check_choice("mixing", self.mixing, MIXINGS)
        _check_choice("clip", self.clip, CLIPS)
        for name in _SHARES:
            _check_between(name, getattr(self, name), 0.0, 1.0)
        _check_between("noise_share_lean", self.noise_share_lean, 0.1, 10.0)
        _check_between("denominator_floor", self.denominator_floor, 1e-3, 1.0)
        _check_between("degree_share", self.degree_share, 1e-3, 1.0)
        _check_between("max_density", self.max_density, 1e-3, 1.0)
        if self.max_parents is not None and self.max_parents < 1:
            raise ConfigError(f"max_parents={self.max_parents} leaves no edge; use at least 1, or None for no limit")

    @property
    def dependent_rows(self) -> bool:
        """Whether a row of a table may depend on the rows before it."""
        own = max(self.autocorrelated, self.sluggish, self.confounded) > 0
        named = (*self.worlds, *self.small_worlds)
        return own or any(name in SERIES or (name in PRESETS and PRESETS[name].dependent_rows) for name in named)

    def worlds_at(self, n_variables: int) -> Mapping[str, float]:
        """Shares of the named worlds among tables of so many variables."""
        return self.small_worlds if self.small_worlds and n_variables <= SMALL else self.worlds

    @classmethod
    def preset(cls, name: str) -> SimulationConfig:
        """The named preset: ``paper``, ``literal``, ``broad`` or another key of `PRESETS`."""
        _check_choice("preset", name, PRESETS)
        return PRESETS[name]

    @classmethod
    def paper(cls) -> SimulationConfig:
        """The paper's training data, as its authors' code makes them."""
        return PRESETS["paper"]

    @classmethod
    def broad(cls) -> SimulationConfig:
        """A wide mixture of worlds; the families of `UNSEEN` are not in it."""
        return PRESETS["broad"]

    def narrow(
        self,
        *,
        mechanism: str | None = None,
        graph: str | None = None,
        degree: float | None = None,
        noise: str | None = None,
        noise_share: tuple[float, float] | None = None,
    ) -> SimulationConfig:
        """The same distribution with some choices fixed, and without named worlds, which choose for themselves.

        Parameters
        ----------
        mechanism, graph, noise : str, optional
            The only mechanism, kind of graph, noise family.
        degree : float, optional
            The only expected degree; it is then taken as it is, without the limits for drawn degrees.
        noise_share : pair of float, optional
            Another range for ρ, drawn for each node on its own.

        Returns
        -------
        SimulationConfig

        Examples
        --------
        >>> cell = SimulationConfig.broad().narrow(mechanism="tree", noise_share=(0.1, 0.4))
        >>> cell.mechanisms, cell.noise_share_pooled
        ({'tree': 1.0}, False)
        """
        changes: dict[str, Any] = {}
        if mechanism is not None:
            changes |= {"mechanisms": {mechanism: 1.0}, "per_node_mechanisms": 0.0}
        if graph is not None:
            changes |= {"graphs": {graph: 1.0}}
        if degree is not None:
            changes |= {"degrees": {degree: 1.0}, "degree_share": 1.0, "max_density": 1.0}
        if noise is not None:
            changes |= {"noises": {noise: 1.0}, "per_node_noises": 0.0}
        if noise_share is not None:
            changes |= {"noise_share": noise_share, "noise_share_lean": 1.0, "noise_share_pooled": False}
        if changes:
            changes |= {"worlds": {}, "small_worlds": {}}
        return dataclasses.replace(self, **changes)

    def with_shares(self, shares: Mapping[str, float]) -> SimulationConfig:
        """The same distribution with other shares of some named worlds, among tables of any size.

        All other tables keep their proportions.

        Examples
        --------
        >>> SimulationConfig(worlds={"counts": 0.5}).with_shares({"levels": 0.1}).worlds
        {'counts': 0.45, 'levels': 0.1}
        """
        _check_worlds(shares)
        small = _make_room(self.small_worlds, shares) if self.small_worlds else {}
        return dataclasses.replace(self, worlds=_make_room(self.worlds, shares), small_worlds=small)

    def to_dict(self) -> dict[str, Any]:
        """Plain values only, ready for JSON; `from_dict` reads them back."""
        values = dataclasses.asdict(self)
        values["degrees"] = {str(degree): weight for degree, weight in self.degrees.items()}
        values["noise_share"] = list(self.noise_share)
        values["weight_range"] = list(self.weight_range)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> SimulationConfig:
        """The config stored by `to_dict`; unknown keys are refused.

        Examples
        --------
        >>> SimulationConfig.from_dict({"mechanism": "sine"})
        Traceback (most recent call last):
        graphbam.errors.ConfigError: SimulationConfig has no field 'mechanism'; did you mean 'mechanisms'?
        """
        _check_fields(cls, values)
        return cls(**values)


def _check_fields(cls: type[SimulationConfig], values: Mapping[str, Any]) -> None:
    import difflib

    allowed = [f.name for f in dataclasses.fields(cls)]
    for key in values:
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(allowed)}"
            raise ConfigError(f"{cls.__name__} has no field {key!r}; {hint}")


def _check_choice(name: str, value: object, allowed: Iterable[str]) -> None:
    choices = sorted(allowed)
    if value not in choices:
        raise ConfigError(Setting(name, value), f" is unknown; choose from {', '.join(choices)}")


def _check_weights(name: str, weights: Mapping[str, float], allowed: Iterable[str]) -> None:
    if not isinstance(weights, Mapping) or not weights:
        raise ConfigError(f"{name}={weights!r} names nothing to draw from; pass {{name: weight}}")
    for choice, weight in weights.items():
        _check_choice(name.removesuffix("s"), choice, allowed)
        _check_weight(name, choice, weight)
    if not sum(weights.values()) > 0:
        raise ConfigError(f"the weights of {name} are all zero; give at least one a positive weight")


def _check_worlds(worlds: Mapping[str, float]) -> None:
    for name, share in worlds.items():
        _check_choice("world", name, {*WORLDS, *PRESETS})
        _check_between(f"the share of world {name!r}", share, 0.0, 1.0)
    if sum(worlds.values()) > 1 + 1e-9:
        raise ConfigError(
            f"the shares of worlds sum to {sum(worlds.values()):g}; they are shares of all tables: at most 1"
        )


def _make_room(worlds: Mapping[str, float], shares: Mapping[str, float]) -> dict[str, float]:
    """Worlds of which some have got new shares, and all other tables what is left."""
    before = 1 - sum(worlds.get(name, 0.0) for name in shares)
    kept = (1 - sum(shares.values())) / before if before > 0 else 0.0
    return {name: kept * share for name, share in worlds.items() if name not in shares} | dict(shares)


def _check_weight(name: str, choice: object, weight: object) -> None:
    if not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
        raise ConfigError(f"{name}: the weight of {choice!r} is {weight!r}; use a finite number of at least 0")


def _degree_weights(degrees: Mapping[float, float]) -> dict[float, float]:
    if not isinstance(degrees, Mapping) or not degrees:
        raise ConfigError(f"degrees={degrees!r} names nothing to draw from; pass {{degree: weight}}")
    weights: dict[float, float] = {}
    for key, weight in degrees.items():
        try:
            degree = float(key)
        except (TypeError, ValueError):
            raise ConfigError(
                Setting("degree", key), " is not a number; use the mean number of neighbours, such as 3"
            ) from None
        if not 0 < degree < float("inf"):
            raise ConfigError(
                Setting("degree", key), " must be positive: it is the mean number of neighbours of a variable"
            )
        _check_weight("degrees", key, weight)
        weights[degree] = float(weight)
    if not sum(weights.values()) > 0:
        raise ConfigError("the weights of degrees are all zero; give at least one a positive weight")
    return weights


def _noise_range(noise_share: Iterable[float]) -> tuple[float, float]:
    bounds = tuple(float(value) for value in noise_share)
    if len(bounds) != 2 or not 0.0 <= bounds[0] <= bounds[1] <= 1.0:
        raise ConfigError(f"noise_share={bounds} is no range within [0, 1]; pass (low, high), such as (0.1, 0.4)")
    return bounds[0], bounds[1]


def _weight_range(weight_range: Iterable[float]) -> tuple[float, float]:
    bounds = tuple(float(value) for value in weight_range)
    if len(bounds) != 2 or not 0.0 < bounds[0] <= bounds[1] < float("inf"):
        raise ConfigError(f"weight_range={bounds} is no range above zero; pass (low, high), such as (0.7, 1.3)")
    return bounds[0], bounds[1]


def _check_between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{name}={value} is outside [{low:g}, {high:g}]")


PRESETS["paper"] = SimulationConfig()
PRESETS["literal"] = SimulationConfig(chebyshev="literal", mixing="literal", clip="hard")
PRESETS["broad-1"] = SimulationConfig(
    mechanisms={
        "chebyshev": 0.16,
        "linear": 0.19,
        "gp": 0.11,
        "mixed": 0.10,
        "mlp": 0.08,
        "hill": 0.06,
        "gp_additive": 0.06,
        "heteroscedastic": 0.06,
        "interactions": 0.05,
        "multiplicative": 0.04,
        "sine": 0.03,
        "cosine": 0.03,
        "square": 0.02,
        "cubic": 0.01,
    },
    per_node_mechanisms=0.25,
    chebyshev="broad",
    graphs={
        "erdos-renyi": 0.50,
        "scale-free": 0.14,
        "regulators": 0.11,
        "bipartite-layers": 0.08,
        "stochastic-block": 0.07,
        "geometric": 0.05,
        "small-world": 0.05,
    },
    degrees={
        1.0: 0.17,
        1.5: 0.11,
        2.0: 0.17,
        3.0: 0.18,
        4.0: 0.13,
        5.0: 0.10,
        6.0: 0.06,
        7.0: 0.05,
        8.0: 0.03,
    },
    degree_share=0.9,
    max_density=0.9,
    max_parents=24,
    noises={
        "mixture": 0.28,
        "gaussian": 0.26,
        "uniform": 0.10,
        "laplace": 0.10,
        "student": 0.10,
        "exponential": 0.08,
        "gumbel": 0.08,
    },
    per_node_noises=0.2,
    weight_range=(0.25, 1.75),
    same_sign=0.3,
    noise_share=(0.005, 0.9),
    noise_share_lean=1.5,
    noise_share_pooled=True,
    clip="hard",
    discrete=0.10,
    skewed=0.15,
    rounded=0.06,
    measurement_noise=0.12,
    autocorrelated=0.08,
    growing=0.60,
    robust=True,
)
PRESETS["textbook"] = dataclasses.replace(
    PRESETS["broad-1"],
    mechanisms={"linear": 0.60, "gp": 0.12, "mlp": 0.12, "gp_additive": 0.08, "sine": 0.08},
    per_node_mechanisms=0.0,
    graphs={"erdos-renyi": 0.60, "scale-free": 0.25, "bipartite-layers": 0.15},
    noises={"gaussian": 0.70, "uniform": 0.10, "laplace": 0.10, "student": 0.10},
    per_node_noises=0.0,
    discrete=0.0,
    skewed=0.0,
    rounded=0.0,
    measurement_noise=0.0,
    autocorrelated=0.0,
)
PRESETS["broad"] = dataclasses.replace(
    PRESETS["broad-1"],
    hidden=0.20,
    interventions=0.12,
    missing=0.20,
    worlds={
        "as-found": 0.08,
        "recorded": 0.12,
        "blended": 0.03,
        "textbook": 0.14,
        "designed": 0.05,
        "monitoring": 0.07,
        "gene-dynamics": 0.07,
        "single-cell": 0.05,
        "counts": 0.05,
        "collinear": 0.04,
        "flows": 0.04,
        "questionnaire": 0.03,
    },
    small_worlds={
        "as-found": 0.15,
        "recorded": 0.30,
        "blended": 0.12,
        "designed": 0.12,
        "textbook": 0.06,
        "monitoring": 0.06,
        "gene-dynamics": 0.02,
        "counts": 0.02,
        "flows": 0.02,
        "questionnaire": 0.02,
    },
)
