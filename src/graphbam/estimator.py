"""`infer`, `infer_many` and `BAM`: read, prepare, find links, enforce what is known, find colliders, report."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import graphbam
from graphbam.columns import Encode
from graphbam.device import choose_device
from graphbam.edges import Failure, Result
from graphbam.errors import ConfigError, GraphbamError
from graphbam.evidence import weigh_claims
from graphbam.graph import MORAL, SKELETON
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
from graphbam.questions import Question, claim_table, find_questions
from graphbam.table import Matrix, find_tables, read_table
from graphbam.weights import load_colliders, load_weights

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

COLLIDERS = "colliders"
"""Collider weights that are used unless others are named."""

LINKED_FROM = 0.5
"""The second network is asked about common neighbours linked with at least this probability, as in training, …"""

MORAL_FROM = 0.1
"""… of pairs that are moral with at least this one, be they linked or not, …"""

OBVIOUS_FROM = 0.9
"""… except pairs moral with at least this one that have a single common neighbour: there the first network alone was
nearer to the truth (docs/training.md), and on tables of 100 variables and 500 rows it is two questions in three."""

CELLS_OF_QUESTIONS = 50_000
"""Questions go to it in batches of about so many cells; one large batch takes a fifth longer on a CPU."""

COLLIDER_ROWS = 1000
"""It sees at most so many rows, as many as in training: there are hundreds of questions, each as long as the table."""


class Weights(Protocol):
    """What inference needs of weights; `graphbam.weights.LoadedWeights` has it."""

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> dict[str, Any]: ...

    def probabilities(self, x_bmd: Tensor, rows: Sequence[float] | None = None) -> Tensor: ...


class Colliders(Protocol):
    """What directions need of collider weights; `graphbam.weights.LoadedColliders` has it."""

    @property
    def name(self) -> str: ...

    @property
    def header(self) -> dict[str, Any]: ...

    def answer(
        self, x_md: Matrix, asked: Sequence[Question], strength_dd: Matrix | None = None
    ) -> Sequence[Matrix]: ...


class Networks(NamedTuple):
    """Both networks, loaded."""

    edges: Weights
    colliders: Colliders | None


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
        One row a sample, one column a variable; everything `graphbam.table` can read.
    weights : str, path or LoadedWeights
        Name of weights in the package, or a file.
    colliders : str, path, LoadedColliders or None
        Weights of the second network, which finds directions; None: no directions.
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
        preprocessing=PreprocessingConfig(
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
    p_dd3 = run_network(networks.edges, x_bmd, _rows_worth(ready, x_bmd)).mean(axis=0)
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
    config, tell = _read_settings(settings), progress or _be_silent
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


def open_weights(weights: str | os.PathLike[str] | Weights, device: str = "auto") -> Weights:
    """Load weights onto a device; weights that are loaded already stay where they are."""
    if not isinstance(weights, (str, os.PathLike)):
        if not hasattr(weights, "probabilities"):
            raise ConfigError(f"weights={weights!r} are no weights. Pass a name, a path or loaded weights.")
        return weights
    return load_weights(weights, choose_device(device))


def open_colliders(colliders: str | os.PathLike[str] | Colliders | None, device: str = "auto") -> Colliders | None:
    """Load collider weights onto a device; None, and weights that are loaded already, stay as they are."""
    if colliders is None:
        return None
    if not isinstance(colliders, (str, os.PathLike)):
        if not hasattr(colliders, "answer"):
            raise ConfigError(f"colliders={colliders!r} are no collider weights. Pass a name, a path, or None.")
        return colliders
    return load_colliders(colliders, choose_device(device))


def _rows_worth(ready: Prepared, x_bmd: Tensor) -> list[float]:
    """Independent rows that each table of a batch drawn from this one is worth."""
    return [ready.worth(x_bmd.shape[1])] * len(x_bmd)


def run_network(loaded: Weights, x_bmd: Tensor, rows: Sequence[float]) -> Matrix:
    """Probabilities of a batch, shape (B, D, D, 3); says what to do when memory runs out.

    `rows` are the independent ones that each table is worth.
    """
    n_tables, n_samples, n_variables = x_bmd.shape
    work = n_tables * _count_work(loaded, n_samples, [n_variables])
    with _explained_memory(n_samples, n_variables), _threads(_threads_for(work)):
        told = {} if all(n_rows == n_samples for n_rows in rows) else {"rows": rows}
        return np.asarray(loaded.probabilities(x_bmd, **told).double().cpu().numpy())


@contextlib.contextmanager
def _explained_memory(n_samples: int, n_variables: int) -> Iterator[None]:
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
            raise
        raise ConfigError(
            f"{n_samples} rows × {n_variables} variables do not fit into memory. Pass a smaller max_rows, drop "
            "variables, or on a GPU try device='cpu'."
        ) from None


def _finish(
    ready: Prepared,
    config: InferenceConfig,
    networks: Networks,
    x_bme: Tensor,
    p_ee3: Matrix,
    progress: Progress | None = None,
) -> Result:
    """Enforce knowledge, find directions and stability, collect the report. E counts the varying columns."""
    p_dd3 = config.knowledge.apply(ready.names, _put_constants_back(ready, p_ee3, [1.0, 0.0, 0.0]))
    claims = _find_colliders(ready, config, networks.colliders, x_bme, p_dd3, progress)
    share_dd = _measure_stability(ready, config, networks.edges, progress or _be_silent) if config.stability else None
    header = networks.edges.header
    unlike = judge_domain(ready.features, header)
    verdict = ("outside" if unlike else "inside") if header.get("domain") else None
    return Result(
        names=ready.names,
        probabilities=p_dd3,
        changes=(*ready.changes, *_tell_of_rows(x_bme, networks.colliders)),
        warnings=(*ready.warnings, *unlike, *_warn_about_knowledge(ready, config.knowledge)),
        domain={"features": ready.features, "verdict": verdict, "unlike": unlike, "ranges": header.get("domain") or {}},
        stability=share_dd,
        knowledge=config.knowledge or None,
        source=ready.source,
        provenance=_provenance(ready, config, networks),
        sample=_draw_sample(ready, x_bme[0]),
        colliders=claims,
    )


def _put_constants_back(ready: Prepared, values_ee: Matrix, nothing: float | Sequence[float]) -> Matrix:
    """Symmetric values of all pairs of columns from those of the varying ones; pairs with a constant have `nothing`."""
    n_variables = len(ready.names)
    values_dd = np.full((n_variables, n_variables, *values_ee.shape[2:]), nothing, dtype=np.float64)
    values_dd[np.ix_(ready.varying, ready.varying)] = (values_ee + values_ee.swapaxes(0, 1)) / 2
    return values_dd


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
        "checksum": edges.header.get("sha256"),
        "colliders": None if colliders is None else colliders.name,
        "colliders_checksum": None if colliders is None else colliders.header.get("sha256"),
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


# ── directions ────────────────────────────────────────────────────────────────────────────────────────────


def _find_colliders(
    ready: Prepared,
    config: InferenceConfig,
    colliders: Colliders | None,
    x_bme: Tensor,
    p_dd3: Matrix,
    progress: Progress | None,
) -> NDArray[np.void] | None:
    """Claims of the second network, with places in `ready.names`; constant columns are nobody's child or parent."""
    if colliders is None:
        return None
    p_ee3, x_bme = p_dd3[np.ix_(ready.varying, ready.varying)], x_bme[:, :COLLIDER_ROWS]
    asked = list_questions(p_ee3)
    if progress:
        seconds = estimate_seconds(colliders, *x_bme.shape[:2], *_widths(asked))
        pairs = f"{len(asked)} moral pair{'' if len(asked) == 1 else 's'}"
        progress(0.5 / (config.stability + 1), f"directions, {pairs}: {_spell_seconds(seconds)}")
    claims = ask_colliders(colliders, x_bme, asked, p_ee3)
    for place in ("a", "c", "b"):
        claims[place] = ready.varying[claims[place]]
    return claims


def list_questions(p_dd3: Matrix) -> list[Question]:
    """Pairs that may be moral with their common neighbours, by edge probabilities with prior knowledge in them.

    The surest neighbours come first: which of many are asked about together must not depend on the order of columns.
    """
    p_dd = p_dd3[..., SKELETON]
    found = find_questions(p_dd3, LINKED_FROM, MORAL_FROM)
    asked = [one for one in found if len(one.candidates) > 1 or p_dd3[one.a, one.b, MORAL] < OBVIOUS_FROM]
    ranks = [np.argsort(-p_dd[one.a, one.candidates] * p_dd[one.b, one.candidates], kind="stable") for one in asked]
    return [one._replace(candidates=one.candidates[rank]) for one, rank in zip(asked, ranks, strict=True)]


def ask_colliders(colliders: Colliders, x_bmd: Tensor, asked: Sequence[Question], p_dd3: Matrix) -> NDArray[np.void]:
    """Ask the second network which common neighbours of moral pairs are their common children, and weigh its answers.

    Parameters
    ----------
    colliders : LoadedColliders
    x_bmd : Tensor, shape (B, M, D)
        Standardised draws of one table; the answers are averaged over them.
    asked : sequence of Question
        From `list_questions`.
    p_dd3 : ndarray, shape (D, D, 3)
        Probabilities of none · skeleton · moral.

    Returns
    -------
    structured ndarray
        Claims, as `graphbam.decisions.decide` takes them.
    """
    n_tables, n_samples, n_variables = x_bmd.shape
    work = n_tables * _count_work(colliders, n_samples, _widths(asked))
    claims = [claim_table([], [])]
    with _explained_memory(n_samples, n_variables), _threads(_threads_for(work)):
        for some in _batch_questions(asked, n_samples):
            answers = [colliders.answer(x_md.numpy(), some, strength_dd=p_dd3[..., SKELETON]) for x_md in x_bmd]
            claims.append(claim_table(some, [np.mean(several, axis=0) for several in zip(*answers, strict=True)]))
    weighed = weigh_claims(np.concatenate(claims), p_dd3, colliders.header.get("evidence"))
    return np.sort(weighed, order=("a", "b", "c"))


def _widths(asked: Sequence[Question]) -> list[int]:
    return [2 + len(one.candidates) + len(one.neighbours) for one in asked]


def _batch_questions(asked: Sequence[Question], n_samples: int) -> list[list[Question]]:
    """Questions of about equal width together, and so few at a time that a processor's cache holds what it computes."""
    size = [n_samples * width for width in _widths(asked)]
    batches: list[list[Question]] = []
    room = 0
    for k in np.argsort(size, kind="stable").tolist():
        if size[k] > room:
            batches.append([])
            room = CELLS_OF_QUESTIONS
        batches[-1].append(asked[k])
        room -= size[k]
    return batches


def _tell_of_rows(x_bmd: Tensor, colliders: Colliders | None) -> tuple[str, ...]:
    n_rows = x_bmd.shape[1]
    if colliders is None or n_rows <= COLLIDER_ROWS:
        return ()
    return (f"directions are judged from {COLLIDER_ROWS} of {n_rows} rows, all that the second network takes",)


# ── stability ─────────────────────────────────────────────────────────────────────────────────────────────


def _measure_stability(ready: Prepared, config: InferenceConfig, loaded: Weights, tell: Progress) -> Matrix:
    """Share of resamples in which a pair is a direct link, shape (D, D)."""
    x_md = ready.x_md[ready.passes[0]]
    rng = np.random.default_rng([config.preprocessing.seed, 1])  # a stream of its own, apart from the draw of rows
    names = [ready.names[k] for k in ready.varying]
    inside = _restrict(config.knowledge, names)
    found = np.zeros((len(names), len(names)))
    size = max(1, CELLS_AT_ONCE // x_md.size)
    for start in range(0, config.stability, size):
        n_tables = min(size, config.stability - start)
        x_bmd = standardise(x_md[draw_resamples(rng, n_tables, len(x_md))])
        p_bdd3 = run_network(loaded, x_bmd, _rows_worth(ready, x_bmd))
        for p_dd3 in p_bdd3:
            found += inside.apply(names, p_dd3)[..., SKELETON] >= STABLE_FROM
        tell((start + n_tables + 1) / (config.stability + 1), f"{start + n_tables} of {config.stability} resamples")
    share_dd = _put_constants_back(ready, found / config.stability, 0.0)
    return _settle_stability(share_dd, ready.names, config.knowledge)


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
    ready: Mapping[int, Prepared], config: InferenceConfig, networks: Networks
) -> dict[int, Result | Failure]:
    x_nbmd = torch.stack([one.standardised() for one in ready.values()])
    rows = [n for one, x_bmd in zip(ready.values(), x_nbmd, strict=True) for n in _rows_worth(one, x_bmd)]
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


# ── how long ──────────────────────────────────────────────────────────────────────────────────────────────


def _be_silent(share: float, sentence: str) -> None:
    pass


def _announce(ready: Prepared, config: InferenceConfig, loaded: Weights) -> str:
    n_tables = len(ready.passes) + config.stability
    n_samples, n_variables = len(ready.passes[0]), ready.x_md.shape[1]
    seconds = estimate_seconds(loaded, n_tables, n_samples, n_variables)
    passes = "one pass" if n_tables == 1 else f"{n_tables} passes"
    return f"{n_samples} rows × {n_variables} variables, {passes}: {_spell_seconds(seconds)}"


def _spell_seconds(seconds: float) -> str:
    if seconds >= 120:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds:.0f} s" if seconds >= 1 else "less than a second"


def estimate_seconds(loaded: Weights | Colliders, n_tables: int, n_samples: int, *widths: int) -> float:
    """Rough time of forward passes: operations, counted, over the speed of this machine, measured on one product.

    Widths are numbers of variables: one for a whole table, one a question for a collider network. Right within a factor
    of two or so, unless other work comes or goes on the same cores.
    """
    network = getattr(loaded, "network", None)
    if network is None:
        return 0.0
    device = next(network.parameters()).device
    speed = GPU_SPEED if device.type != "cpu" else SHARE_OF_SPEED * measure_speed()
    return n_tables * _count_work(loaded, n_samples, widths) / speed


def _count_work(loaded: Weights | Colliders, n_samples: int, widths: Sequence[int]) -> float:
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


def _threads_for(work: float) -> int:
    """Threads that are worth waking for so many operations."""
    return max(1, int(min(work / OPERATIONS_A_THREAD, torch.get_num_threads())))


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
