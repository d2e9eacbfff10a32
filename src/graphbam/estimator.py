"""`infer`, `infer_many` and `BAM`: read, prepare, one forward pass, enforce what is known, report."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import graphbam
from graphbam.columns import Encode
from graphbam.device import choose_device
from graphbam.edges import Failure, Result
from graphbam.errors import ConfigError, GraphbamError
from graphbam.graph import SKELETON
from graphbam.knowledge import EdgeLike, Knowledge, PriorOdds, Tiers
from graphbam.preprocessing import (
    Large,
    Missing,
    Prepared,
    PreprocessingConfig,
    judge_domain,
    prepare,
    standardise,
)
from graphbam.table import Matrix, find_tables, read_table
from graphbam.weights import load_weights

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share of the work that is done and a sentence."""

CELLS_AT_ONCE = 4_000_000
"""Resamples and batches are cut so that no more table cells than this are held at a time."""

SAMPLE_ROWS = 1000
"""A result keeps so many rows for pictures. They are in content order, hence a draw that is random but repeatable."""

SHARE_OF_SPEED = 0.4
"""Speed of the whole network against that of a plain matrix product, on a CPU."""

GPU_SPEED = 5e12
"""Operations a second of the whole network that a GPU reaches at least; the wait is short either way."""

OPERATIONS_A_THREAD = 1e10
"""Least work for a CPU thread, about a quarter of a second: for less, waking and waiting cost more than they bring."""

STABLE_FROM = 0.5
"""A pair counts as found in a resample from this skeleton probability on."""


class Weights(Protocol):
    """What inference needs of weights; `graphbam.weights.LoadedWeights` has it."""

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> dict[str, Any]: ...

    def probabilities(self, x_bmd: Tensor) -> Tensor: ...


@dataclass(frozen=True, kw_only=True)
class InferenceConfig:
    """Settings of `infer` other than weights and device, checked on construction."""

    encode: Encode = False
    drop: str | Iterable[str] = ()
    preprocessing: PreprocessingConfig = field(default_factory=PreprocessingConfig)
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
    device: str = "auto",
    missing: Missing = "auto",
    encode: Encode = False,
    drop: str | Iterable[str] = (),
    max_rows: int = 5000,
    large: Large = "subsample",
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
        One row a sample, one column a variable; everything `graphbam.table` can read.
    weights : str, path or LoadedWeights
        Name of weights in the package, or a file.
    device : str
        ``"auto"`` takes a GPU if there is one.
    missing : {"auto", "drop", "impute", "error"}
        What to do about missing values; rules in `graphbam.preprocessing`.
    encode : bool or mapping
        Turn text and dates into numbers; rules in `graphbam.columns`.
    drop : str or iterable of str
        Columns to leave out.
    max_rows : int
        More rows than this are thinned out, or split if ``large="average"``.
    large : {"subsample", "average"}
        One seeded draw, or up to eight disjoint draws averaged.
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
    """
    config = InferenceConfig(
        encode=encode,
        drop=drop,
        preprocessing=PreprocessingConfig(missing=missing, max_rows=max_rows, large=large, seed=seed),
        knowledge=gather_knowledge(knowledge, forbidden, required, tiers, prior_odds),
        stability=stability,
    )
    ready = _prepare(data, config)
    loaded = open_weights(weights, device)
    tell = progress or _be_silent
    if progress:
        tell(0.0, _announce(ready, config, loaded))
    x_bmd = ready.standardised()
    p_dd3 = run_network(loaded, x_bmd).mean(axis=0)
    share = _measure_stability(ready, config, loaded, tell) if config.stability else None
    tell(1.0, "done")
    return _finish(ready, config, loaded, x_bmd[0], p_dd3, share)


def infer_many(
    tables: Iterable[Any] | str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | Weights = "edges",
    device: str = "auto",
    progress: Progress | None = None,
    **settings: Any,
) -> list[Result | Failure]:
    """Infer the graphs of many tables; equal shapes travel through the network together.

    Parameters
    ----------
    tables : iterable, or path of a folder
        Anything `infer` takes, shapes mixed freely.
    weights, device, progress
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
    config, tell = _read_settings(settings), progress or _be_silent
    loaded = open_weights(weights, device)
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
        answers |= _infer_batch({k: ready.pop(k) for k in batch}, config, loaded)
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


def open_weights(weights: str | os.PathLike[str] | Weights, device: str = "auto") -> Weights:
    """Load weights onto a device; weights that are loaded already stay where they are."""
    if not isinstance(weights, (str, os.PathLike)):
        if not hasattr(weights, "probabilities"):
            raise ConfigError(f"weights={weights!r} are no weights. Pass a name, a path or loaded weights.")
        return weights
    return load_weights(weights, choose_device(device))


def run_network(loaded: Weights, x_bmd: Tensor) -> Matrix:
    """Probabilities of a batch, shape (B, D, D, 3); says what to do when memory runs out."""
    try:
        with _threads(_threads_for(loaded, x_bmd)):
            return np.asarray(loaded.probabilities(x_bmd).double().cpu().numpy())
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
            raise
        _, n_samples, n_variables = x_bmd.shape
        raise ConfigError(
            f"{n_samples} rows × {n_variables} variables do not fit into memory. Pass a smaller max_rows, drop "
            "variables, or on a GPU try device='cpu'."
        ) from None


def _finish(
    ready: Prepared, config: InferenceConfig, loaded: Weights, x_me: Tensor, p_ee3: Matrix, share_ee: Matrix | None
) -> Result:
    """Put the constant columns back, enforce knowledge, collect the report. E counts the varying columns."""
    n_variables, place = len(ready.names), np.ix_(ready.varying, ready.varying)
    p_dd3 = np.tile([1.0, 0.0, 0.0], (n_variables, n_variables, 1))
    p_dd3[place] = (p_ee3 + p_ee3.transpose(1, 0, 2)) / 2
    share_dd: Matrix | None = None
    if share_ee is not None:
        share_dd = np.zeros((n_variables, n_variables))
        share_dd[place] = share_ee
        share_dd = _settle_stability(share_dd, ready.names, config.knowledge)
    unlike = judge_domain(ready.features, loaded.header)
    verdict = ("outside" if unlike else "inside") if loaded.header.get("domain") else None
    return Result(
        names=ready.names,
        probabilities=config.knowledge.apply(ready.names, p_dd3),
        changes=ready.changes,
        warnings=(*ready.warnings, *unlike, *_warn_about_knowledge(ready, config.knowledge)),
        domain={
            "features": ready.features,
            "verdict": verdict,
            "unlike": unlike,
            "ranges": loaded.header.get("domain") or {},
        },
        stability=share_dd,
        knowledge=config.knowledge or None,
        source=ready.source,
        provenance=_provenance(ready, config, loaded),
        sample=_draw_sample(ready, x_me),
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


def _provenance(ready: Prepared, config: InferenceConfig, loaded: Weights) -> dict[str, Any]:
    return {
        "graphbam": graphbam.__version__,
        "weights": loaded.name,
        "checksum": loaded.header.get("sha256"),
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


# ── stability ─────────────────────────────────────────────────────────────────────────────────────────────


def _measure_stability(ready: Prepared, config: InferenceConfig, loaded: Weights, tell: Progress) -> Matrix:
    """Share of resamples in which a pair is a direct link, shape (E, E)."""
    x_md = ready.x_md[ready.passes[0]]
    rng = np.random.default_rng([config.preprocessing.seed, 1])  # a stream of its own, apart from the draw of rows
    names = [ready.names[k] for k in ready.varying]
    inside = _restrict(config.knowledge, names)
    found = np.zeros((len(names), len(names)))
    size = max(1, CELLS_AT_ONCE // x_md.size)
    for start in range(0, config.stability, size):
        n_tables = min(size, config.stability - start)
        p_bdd3 = run_network(loaded, standardise(x_md[draw_resamples(rng, n_tables, len(x_md))]))
        for p_dd3 in p_bdd3:
            found += inside.apply(names, p_dd3)[..., SKELETON] >= STABLE_FROM
        tell((start + n_tables + 1) / (config.stability + 1), f"{start + n_tables} of {config.stability} resamples")
    return found / config.stability


def draw_resamples(rng: np.random.Generator, n_resamples: int, n_rows: int) -> NDArray[np.int64]:
    """Row numbers of resamples: as many distinct rows as a bootstrap of the table holds, 63 %, none of them twice.

    A plain bootstrap repeats rows, and to the network a repeated row is evidence: links too weak to be found in the
    whole table would be found in its resamples.

    Examples
    --------
    >>> draw_resamples(np.random.default_rng(0), 3, 100).shape
    (3, 63)
    """
    everyone = np.tile(np.arange(n_rows), (n_resamples, 1))
    return rng.permuted(everyone, axis=1)[:, : max(2, round(0.632 * n_rows))]


def _restrict(knowledge: Knowledge, names: Sequence[str]) -> Knowledge:
    """Keep the soft priors between these variables; hard knowledge is settled afterwards."""
    known = set(names)
    return Knowledge(prior_odds=[row for row in knowledge.prior_odds if {row[0], row[1]} <= known])


def _settle_stability(share_dd: Matrix, names: Sequence[str], knowledge: Knowledge) -> Matrix:
    """Forbidden pairs are found never, required ones always, and no variable is linked to itself."""
    place = {name: k for k, name in enumerate(names)}
    for pairs, value in ((knowledge.forbidden_pairs(), 0.0), (knowledge.required, 1.0)):
        for pair in pairs:
            a, b = place[pair[0]], place[pair[1]]
            share_dd[a, b] = share_dd[b, a] = value
    np.fill_diagonal(share_dd, 0.0)
    return share_dd


# ── many tables ───────────────────────────────────────────────────────────────────────────────────────────


def _read_settings(settings: Mapping[str, Any]) -> InferenceConfig:
    parts = {k: settings[k] for k in ("forbidden", "required", "tiers", "prior_odds") if k in settings}
    before = {f.name: settings[f.name] for f in dataclasses.fields(PreprocessingConfig) if f.name in settings}
    rest = {k: settings[k] for k in ("encode", "drop", "stability") if k in settings}
    known = {*parts, *before, *rest, "knowledge"}
    for name in settings:
        if name not in known:
            raise ConfigError(f"infer_many has no setting {name!r}; it takes those of infer.")
    return InferenceConfig(
        knowledge=gather_knowledge(settings.get("knowledge"), **parts),
        preprocessing=PreprocessingConfig(**before),
        **rest,
    )


def _batch_by_shape(ready: Mapping[int, Prepared]) -> list[list[int]]:
    """Numbers of tables that go together: equal shapes, and not too many cells at once."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for k, one in ready.items():
        groups.setdefault((len(one.passes), len(one.passes[0]), one.x_md.shape[1]), []).append(k)
    batches = []
    for shape, members in groups.items():
        size = max(1, CELLS_AT_ONCE // int(np.prod(shape)))
        batches += [members[start : start + size] for start in range(0, len(members), size)]
    return batches


def _infer_batch(
    ready: Mapping[int, Prepared], config: InferenceConfig, loaded: Weights
) -> dict[int, Result | Failure]:
    x_bmd = torch.cat([one.standardised() for one in ready.values()])
    n_passes = len(next(iter(ready.values())).passes)
    p_bdd3 = run_network(loaded, x_bmd)
    p_bdd3 = p_bdd3.reshape(len(ready), n_passes, *p_bdd3.shape[1:]).mean(axis=1)
    answers: dict[int, Result | Failure] = {}
    for (k, one), x_md, p_dd3 in zip(ready.items(), x_bmd[::n_passes], p_bdd3, strict=True):
        try:
            share = _measure_stability(one, config, loaded, _be_silent) if config.stability else None
            answers[k] = _finish(one, config, loaded, x_md, p_dd3, share)
        except GraphbamError as error:
            answers[k] = Failure(one.source, str(error))
    return answers


def _describe(data: Any, k: int) -> str:
    return str(data) if isinstance(data, (str, Path)) else f"table {k + 1} ({type(data).__name__})"


# ── how long ──────────────────────────────────────────────────────────────────────────────────────────────


def _be_silent(share: float, sentence: str) -> None:
    pass


def _announce(ready: Prepared, config: InferenceConfig, loaded: Weights) -> str:
    n_tables = len(ready.passes) + config.stability
    n_samples, n_variables = len(ready.passes[0]), ready.x_md.shape[1]
    seconds = estimate_seconds(loaded, n_tables, n_samples, n_variables)
    about = f"about {seconds:.0f} s" if seconds >= 1 else "less than a second"
    if seconds >= 120:
        about = f"about {seconds / 60:.0f} min"
    passes = "one pass" if n_tables == 1 else f"{n_tables} passes"
    return f"{n_samples} rows × {n_variables} variables, {passes}: {about}"


def estimate_seconds(loaded: Weights, n_tables: int, n_samples: int, n_variables: int) -> float:
    """Rough time of the forward passes: operations, counted, over the speed of this machine, measured on one product.

    Right within a factor of two or so, unless other work comes or goes on the same cores.
    """
    network = getattr(loaded, "network", None)
    if network is None:
        return 0.0
    device = next(network.parameters()).device
    speed = GPU_SPEED if device.type != "cpu" else SHARE_OF_SPEED * measure_speed()
    return n_tables * count_operations(network.config, n_samples, n_variables) / speed


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
    with _threads(1):
        for _ in range(3):
            began = time.perf_counter()
            torch.mm(a, a)
            seconds.append(time.perf_counter() - began)
    return 2 * size**3 / min(seconds) * torch.get_num_threads()


@contextlib.contextmanager
def _threads(most: int) -> Iterator[None]:
    """Compute with at most so many threads, and with as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(most, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _threads_for(loaded: Weights, x_bmd: Tensor) -> int:
    """Threads that are worth waking for a batch."""
    network = getattr(loaded, "network", None)
    if network is None:
        return torch.get_num_threads()
    n_tables, n_samples, n_variables = x_bmd.shape
    work = n_tables * count_operations(network.config, n_samples, n_variables)
    return max(1, int(min(work / OPERATIONS_A_THREAD, torch.get_num_threads())))


# ── scikit-learn manners ──────────────────────────────────────────────────────────────────────────────────


class BAM:
    """Graph estimator with scikit-learn manners, without needing scikit-learn.

    Parameters
    ----------
    weights, device, missing, encode, drop, max_rows, large, seed, knowledge, stability
        As in `infer`.

    Attributes
    ----------
    edge_probabilities_ : ndarray, shape (D, D, 3)
        Probabilities of none · skeleton · moral.
    result_ : Result
        The full answer.
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
        device: str = "auto",
        missing: Missing = "auto",
        encode: Encode = False,
        drop: str | Iterable[str] = (),
        max_rows: int = 5000,
        large: Large = "subsample",
        seed: int = 0,
        knowledge: Any = None,
        stability: int = 0,
    ) -> None:
        self.weights = weights
        self.device = device
        self.missing = missing
        self.encode = encode
        self.drop = drop
        self.max_rows = max_rows
        self.large = large
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
