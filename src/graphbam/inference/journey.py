"""`infer`, `infer_many` and `BAM`: read, prepare, find links, enforce what is known, find colliders, report."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import graphbam
from graphbam.errors import ConfigError, GraphbamError
from graphbam.graphs.knowledge import EdgeLike, Knowledge, PriorOdds, Tiers
from graphbam.inference.answers import find_colliders, tell_of_rows
from graphbam.inference.networks import (
    Colliders,
    Networks,
    Weights,
    open_colliders,
    open_weights,
    run_network,
    tables_at_once,
)
from graphbam.inference.stability import measure_stability
from graphbam.nn.cost import Progress, be_silent, estimate_seconds, spell_seconds
from graphbam.result import Failure, Result
from graphbam.tables.columns import Encode
from graphbam.tables.config import Large, Missing, PrepareConfig
from graphbam.tables.domain import judge_domain
from graphbam.tables.prepare import Prepared, prepare
from graphbam.tables.read import Matrix, find_tables, read_table

SAMPLE_ROWS = 1000
"""A result keeps so many rows for pictures. They are in content order, hence a draw that is random but repeatable."""

COLLIDERS = "colliders"
"""Collider weights that are used unless others are named."""


@dataclass(frozen=True, kw_only=True)
class InferenceConfig:
    """Settings of `infer` other than weights and device, checked on construction."""

    encode: Encode = False
    drop: str | Iterable[str] = ()
    preprocessing: PrepareConfig = field(default_factory=PrepareConfig)
    knowledge: Knowledge = field(default_factory=Knowledge)
    stability: int = 0

    def __post_init__(self) -> None:
        names = [self.drop] if isinstance(self.drop, str) else self.drop
        object.__setattr__(self, "drop", tuple(str(name) for name in names))
        if isinstance(self.stability, bool) or self.stability != int(self.stability) or self.stability < 0:
            raise ConfigError(f"stability={self.stability!r} is not a number of resamples; pass 0, or about 100.")


def infer(
    data: Any,
    *,
    weights: str | os.PathLike[str] | Weights = "edges",
    colliders: str | os.PathLike[str] | Colliders | None = COLLIDERS,
    device: str = "auto",
    missing: Missing = "auto",
    encode: Encode = False,
    drop: str | Iterable[str] = (),
    max_rows: int = 5000,
    large: Large = "subsample",
    independent_rows: bool = False,
    seed: int = 0,
    knowledge: Knowledge | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    forbidden: Iterable[EdgeLike] = (),
    required: Iterable[EdgeLike] = (),
    tiers: Tiers | None = None,
    prior_odds: PriorOdds | None = None,
    stability: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Infer the graph of a table.

    Parameters
    ----------
    data : path, DataFrame, array, AnnData …
        One row a sample, one column a variable; everything `graphbam.tables.read` can read.
    weights : str, path or LoadedWeights
        Name of weights in the package, or a file.
    colliders : str, path, LoadedColliders or None
        Weights of the second network, which finds directions; None: no directions.
    device : str
        ``"auto"`` takes a GPU if there is one.
    missing : {"auto", "drop", "impute", "error"}
        What to do about missing values; rules in `graphbam.tables.prepare`.
    encode : bool or mapping
        Turn text and dates into numbers; rules in `graphbam.tables.columns`.
    drop : str or iterable of str
        Columns to leave out.
    max_rows : int
        More rows than this are thinned out, or split if ``large="average"``.
    large : {"subsample", "average"}
        One seeded draw, or up to eight disjoint draws averaged.
    independent_rows : bool
        Rows of a time series count for less; pass True where neighbours resemble each other because of sorting.
    seed : int
        For the draw of rows and the resamples of `stability`. Nothing else is random.
    knowledge : Knowledge, dict or path to JSON, optional
        Prior knowledge; or give its parts: `forbidden`, `required`, `tiers`, `prior_odds`.
    stability : int
        Number of resamples, each of 63 % of the rows without replacement; 0 for none.
    progress : callable, optional
        Called as ``progress(share_done, sentence)``; first with an estimate of the time.

    Returns
    -------
    Result

    Raises
    ------
    GraphbamError
        With one sentence that says what was found, where, and what to do.

    Examples
    --------
    >>> result = infer("cells.csv", stability=100)  # doctest: +SKIP
    >>> result.skeleton(fdr=0.1).undirected_edges()  # doctest: +SKIP
    [('PKA', 'Erk'), ('Raf', 'Mek')]
    >>> result.cpdag().directed_edges()  # doctest: +SKIP
    [('PKA', 'Erk')]
    """
    config = InferenceConfig(
        encode=encode,
        drop=drop,
        preprocessing=PrepareConfig(
            missing=missing, max_rows=max_rows, large=large, seed=seed, independent_rows=independent_rows
        ),
        knowledge=gather_knowledge(knowledge, forbidden, required, tiers, prior_odds),
        stability=stability,
    )
    ready = _prepare(data, config)
    networks = Networks(open_weights(weights, device), open_colliders(colliders, device))
    if progress:
        progress(0.0, _announce(ready, config, networks.edges))
    x_bmd = ready.standardised()
    p_dd3 = run_network(networks.edges, x_bmd, [ready.worth(x_bmd.shape[1])] * len(x_bmd)).mean(axis=0)
    result = _finish(ready, config, networks, x_bmd, p_dd3, progress)
    if progress:
        progress(1.0, "done")
    return result


def infer_many(
    tables: Iterable[Any] | str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | Weights = "edges",
    colliders: str | os.PathLike[str] | Colliders | None = COLLIDERS,
    device: str = "auto",
    progress: Progress | None = None,
    **settings: Any,
) -> list[Result | Failure]:
    """Infer the graphs of many tables; equal shapes travel through the network together.

    Parameters
    ----------
    tables : iterable, or path of a folder
        Anything `infer` takes, shapes mixed freely.
    weights, colliders, device, progress
        As in `infer`.
    **settings
        All other settings of `infer`, the same for every table.

    Returns
    -------
    list of Result or Failure
        In the order of the tables. A `Failure` stands for a table that could not be used; it is falsy and says why.
    """
    if isinstance(tables, (str, os.PathLike)):
        tables = find_tables(tables)
    config, tell = _read_settings(settings), progress or be_silent
    networks = Networks(open_weights(weights, device), open_colliders(colliders, device))
    sources = list(tables)
    answers: dict[int, Result | Failure] = {}
    ready: dict[int, Prepared] = {}
    for k, data in enumerate(sources):
        try:
            ready[k] = _prepare(data, config)
        except GraphbamError as error:
            answers[k] = Failure(_describe(data, k), str(error))
    for batch in _batch_by_shape(ready):
        tell(len(answers) / len(sources), f"{len(answers)} of {len(sources)} tables done")
        answers |= _infer_batch({k: ready.pop(k) for k in batch}, config, networks)
    tell(1.0, "done")
    return [answers[k] for k in range(len(sources))]


# ── the steps ─────────────────────────────────────────────────────────────────────────────────────────────


def _prepare(data: Any, config: InferenceConfig) -> Prepared:
    table = read_table(data, encode=config.encode, drop=config.drop)
    ready = prepare(table, config.preprocessing)
    config.knowledge.check_names(ready.names, left_out=(*ready.left_out, *config.drop))
    return ready


def gather_knowledge(
    knowledge: Knowledge | Mapping[str, Any] | str | os.PathLike[str] | None,
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
    parts = Knowledge(forbidden, required, tiers, prior_odds)
    if knowledge is None:
        return parts
    if parts:
        raise ConfigError("knowledge was given whole and in parts; put forbidden, required … into knowledge.")
    if isinstance(knowledge, Knowledge):
        return knowledge
    if isinstance(knowledge, Mapping):
        return Knowledge.from_dict(knowledge)
    return Knowledge.from_json(knowledge)


def _finish(
    ready: Prepared,
    config: InferenceConfig,
    networks: Networks,
    x_bme: Tensor,
    p_ee3: Matrix,
    progress: Progress | None = None,
) -> Result:
    """Enforce knowledge, find directions and stability, collect the report. E counts the varying columns."""
    known, header = config.knowledge, networks.edges.header
    p_dd3 = known.apply(ready.names, ready.put_constants_back(p_ee3, [1.0, 0.0, 0.0]))
    claims = share_dd = None
    if networks.colliders is not None:
        claims = find_colliders(ready, x_bme, p_dd3, networks.colliders, progress, done=0.5 / (config.stability + 1))
    if config.stability:
        settings = (config.stability, known, config.preprocessing.seed)
        share_dd = measure_stability(ready, networks.edges, *settings, progress or be_silent)
    ranges = {name: list(limits) for name, limits in (header.domain or {}).items()}
    unlike = judge_domain(ready.features, {"domain": ranges})
    verdict = ("outside" if unlike else "inside") if ranges else None
    return Result(
        names=ready.names,
        probabilities=p_dd3,
        changes=(*ready.changes, *(() if claims is None else tell_of_rows(x_bme.shape[1]))),
        warnings=(*ready.warnings, *unlike, *_warn_about_knowledge(ready, known)),
        domain={"features": ready.features, "verdict": verdict, "unlike": unlike, "ranges": ranges},
        stability=share_dd,
        knowledge=known or None,
        source=ready.source,
        provenance=_provenance(ready, config, networks),
        sample=_draw_sample(ready, x_bme[0]),
        colliders=claims,
    )


def _draw_sample(ready: Prepared, x_me: Tensor) -> Matrix:
    """First rows of a standardised table, constant columns filled with zeros."""
    x_rd = np.zeros((min(SAMPLE_ROWS, len(x_me)), len(ready.names)))
    x_rd[:, ready.varying] = x_me[:SAMPLE_ROWS].numpy()
    x_rd.setflags(write=False)
    return x_rd


def _warn_about_knowledge(ready: Prepared, knowledge: Knowledge) -> list[str]:
    constant = set(ready.names) - {ready.names[k] for k in ready.varying}
    return [
        f"{edge} is required, but the data say nothing of it: one of the two is constant"
        for edge in knowledge.required
        if constant & edge.pair
    ]


def _provenance(ready: Prepared, config: InferenceConfig, networks: Networks) -> dict[str, Any]:
    edges, colliders = networks
    return {
        "graphbam": graphbam.__version__,
        "weights": edges.name,
        "checksum": edges.header.checksum,
        "colliders": None if colliders is None else colliders.name,
        "colliders_checksum": None if colliders is None else colliders.header.checksum,
        "seed": config.preprocessing.seed,
        "n_rows": ready.n_rows,
        "n_rows_used": sum(len(rows) for rows in ready.passes),
        "n_resamples": config.stability,
        "settings": {
            **dataclasses.asdict(config.preprocessing),
            "encode": _spell_encode(config.encode),
            "drop": list(config.drop),
            "stability": config.stability,
        },
    }


def _spell_encode(encode: Encode) -> bool | dict[str, list[str]]:
    if not isinstance(encode, Mapping):
        return encode
    return {name: [str(level) for level in levels] for name, levels in encode.items()}


def _announce(ready: Prepared, config: InferenceConfig, loaded: Weights) -> str:
    n_tables = len(ready.passes) + config.stability
    n_samples, n_variables = len(ready.passes[0]), ready.x_md.shape[1]
    seconds = estimate_seconds(loaded, n_tables, n_samples, n_variables)
    passes = "one pass" if n_tables == 1 else f"{n_tables} passes"
    return f"{n_samples} rows × {n_variables} variables, {passes}: {spell_seconds(seconds)}"


# ── many tables ───────────────────────────────────────────────────────────────────────────────────────────


def _read_settings(settings: Mapping[str, Any]) -> InferenceConfig:
    parts = {k: settings[k] for k in ("forbidden", "required", "tiers", "prior_odds") if k in settings}
    before = {f.name: settings[f.name] for f in dataclasses.fields(PrepareConfig) if f.name in settings}
    rest = {k: settings[k] for k in ("encode", "drop", "stability") if k in settings}
    known = {*parts, *before, *rest, "knowledge"}
    for name in settings:
        if name not in known:
            raise ConfigError(f"infer_many has no setting {name!r}; it takes those of infer.")
    return InferenceConfig(
        knowledge=gather_knowledge(settings.get("knowledge"), **parts),
        preprocessing=PrepareConfig(**before),
        **rest,
    )


def _batch_by_shape(ready: Mapping[int, Prepared]) -> list[list[int]]:
    """Numbers of tables that go together: equal shapes, and not too many cells at once."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, one in ready.items():
        groups.setdefault((len(one.passes), len(one.passes[0]), one.x_md.shape[1]), []).append(k)
    batches = []
    for shape, members in groups.items():
        size = tables_at_once(int(np.prod(shape)))
        batches += [members[start : start + size] for start in range(0, len(members), size)]
    return batches


def _infer_batch(
    ready: Mapping[int, Prepared], config: InferenceConfig, networks: Networks
) -> dict[int, Result | Failure]:
    x_nbmd = torch.stack([one.standardised() for one in ready.values()])
    n_passes, n_samples = x_nbmd.shape[1:3]
    rows = [one.worth(n_samples) for one in ready.values() for _ in range(n_passes)]
    p_ndd3 = run_network(networks.edges, x_nbmd.flatten(0, 1), rows)
    p_ndd3 = p_ndd3.reshape(*x_nbmd.shape[:2], *p_ndd3.shape[1:]).mean(axis=1)
    answers: dict[int, Result | Failure] = {}
    for (k, one), x_bmd, p_dd3 in zip(ready.items(), x_nbmd, p_ndd3, strict=True):
        try:
            answers[k] = _finish(one, config, networks, x_bmd, p_dd3)
        except GraphbamError as error:
            answers[k] = Failure(one.source, str(error))
    return answers


def _describe(data: Any, k: int) -> str:
    return str(data) if isinstance(data, (str, Path)) else f"table {k + 1} ({type(data).__name__})"


# ── scikit-learn manners ──────────────────────────────────────────────────────────────────────────────────


class BAM:
    """Graph estimator with scikit-learn manners, without needing scikit-learn.

    Parameters
    ----------
    weights, colliders, device, missing, encode, drop, max_rows, large, independent_rows, seed, knowledge, stability
        As in `infer`.

    Attributes
    ----------
    edge_probabilities_ : ndarray, shape (D, D, 3)
        Probabilities of none · skeleton · moral.
    result_ : Result
        The full answer; `result_.cpdag()` gives directions.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Their names, if the table had any.

    Examples
    --------
    >>> BAM(stability=20)
    BAM(stability=20)
    >>> BAM().set_params(seed=3).get_params()["seed"]
    3
    """

    def __init__(
        self,
        weights: Any = "edges",
        *,
        colliders: Any = COLLIDERS,
        device: str = "auto",
        missing: Missing = "auto",
        encode: Encode = False,
        drop: str | Iterable[str] = (),
        max_rows: int = 5000,
        large: Large = "subsample",
        independent_rows: bool = False,
        seed: int = 0,
        knowledge: Any = None,
        stability: int = 0,
    ) -> None:
        self.weights = weights
        self.colliders = colliders
        self.device = device
        self.missing = missing
        self.encode = encode
        self.drop = drop
        self.max_rows = max_rows
        self.large = large
        self.independent_rows = independent_rows
        self.seed = seed
        self.knowledge = knowledge
        self.stability = stability

    def fit(self, X: Any, y: Any = None) -> BAM:
        """Infer the graph of a table; `y` is ignored.

        Parameters
        ----------
        X : table
            Everything `infer` takes.
        y : ignored

        Returns
        -------
        BAM
            Itself.
        """
        self.result_ = infer(X, **self.get_params())
        self.edge_probabilities_ = self.result_.probabilities
        self._note_columns(X)
        return self

    def _note_columns(self, X: Any) -> None:
        columns = getattr(X, "columns", getattr(X, "var_names", None))
        if isinstance(X, (str, os.PathLike, Mapping)):
            columns = self.result_.names
        shape = getattr(X, "shape", None)
        self.n_features_in_ = int(shape[1]) if shape is not None else len(self.result_.names)
        vars(self).pop("feature_names_in_", None)  # of an earlier fit
        if columns is not None and all(isinstance(name, str) for name in columns):
            self.feature_names_in_ = np.asarray(list(columns), dtype=object)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name; `deep` is there for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **params: Any) -> BAM:
        """Change settings; unknown names are refused."""
        for name, value in params.items():
            if name not in _PARAMETERS:
                raise ConfigError(f"BAM has no parameter {name!r}; it has {', '.join(_PARAMETERS)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if v != _PARAMETERS[k]]
        return f"BAM({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(sparse=True, allow_nan=True, string=True),
        )


_PARAMETERS = {name: p.default for name, p in inspect.signature(BAM).parameters.items()}
