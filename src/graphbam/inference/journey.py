"""`infer` and `infer_many`: read, prepare, find links, enforce what is known, find directions, report."""

from __future__ import annotations

import dataclasses
import functools
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import numpy as np
import torch
from torch import Tensor

import graphbam
from graphbam.errors import ConfigError, GraphbamError, Setting
from graphbam.graphs.cut import EVEN
from graphbam.graphs.graph import SKELETON, BoolMatrix
from graphbam.graphs.knowledge import Knowledge
from graphbam.graphs.metrics import pair_values
from graphbam.inference.answers import kinds_of_targets, read_pairs, set_apart, tell_of_rows
from graphbam.inference.bars import listening
from graphbam.inference.blocks import (
    WHOLE_UP_TO,
    Asked,
    Joined,
    Plan,
    Wide,
    ask_neighbourhoods,
    ask_tables,
    check_wide_memory,
    tell_of_blocks,
)
from graphbam.inference.executors import open_executor
from graphbam.inference.networks import (
    Networks,
    Said,
    Weights,
    describe_device,
    hold_networks,
    longest_piece,
    mark_cells,
    open_networks,
    run_network,
    spell_source,
    tables_at_once,
)
from graphbam.inference.reading import describe_source, read_source, refuse_size
from graphbam.inference.settings import FLAT, PARTS, InferConfig, Settings, read_settings, show_settings
from graphbam.inference.stability import Stability, count_links, measure_stability
from graphbam.nn.cost import Progress, be_silent, estimate_seconds, spell_seconds, threads_for
from graphbam.nn.threads import threads
from graphbam.result import Failure, Result
from graphbam.sparse import SparseResult
from graphbam.tables.domain import judge_domain
from graphbam.tables.prepare import Prepared, prepare
from graphbam.tables.table import Matrix, spell_columns

if TYPE_CHECKING:
    from graphbam.inference.settings import WeightsLike
    from graphbam.tables.columns import Encode

MATRIX_UP_TO = 2000
"""A wide table with more columns than this gets a `SparseResult`: the matrices of a `Result` would take gigabytes."""

SURE_UP_TO = 5000
"""Columns up to which targets of false links were seen to hold, within half of them, in simulated tables."""

MOST_NEIGHBOURS = 15
"""Links that a variable has on average in the densest worlds of `broad`, whatever the number of variables."""

OF_THE_WHOLE = {"n_variables", "effective_rank"}
"""What is measured of a table and is another thing for its neighbourhoods, which are what the network sees."""

SAMPLE_ROWS = 1000
"""A result keeps so many rows for pictures. They are in content order, hence a draw that is random but repeatable."""


@show_settings(FLAT | PARTS | {"prepare": None})
def infer(
    data: Any = None,
    *,
    weights: WeightsLike = InferConfig.weights,
    progress: Progress | bool | None = None,
    **settings: Unpack[Settings],
) -> Result:
    """Infer the graph of a table.

    Parameters
    ----------
    data : path, DataFrame, array, AnnData …
        One sample per row, one variable per column; everything `graphbam.tables.read` can read, or the `Table` that
        `graphbam.inference.reading` made of it by the same settings. Left out where `interventions` holds the tables.
    weights : str, path or LoadedWeights
        Name of weights in the package, or a file.
    colliders : str, path, LoadedColliders or None
        Weights of the second network, which finds common children; None: no directions, unless from one pass.
    directions : {"auto", "one-pass", "two-step", "none"}
        Where directions come from: from the pass that finds links; or from the second network, as in the paper.
        ``"auto"`` is the first where the weights give directions and `colliders` is left as it is, else the second.
    device : str
        ``"auto"`` takes a GPU if there is one.
    encode : bool, names of columns, or mapping
        Turn text and dates into numbers; a mapping has the levels of columns in order, or their numbers. Rules in
        `graphbam.tables.columns`.
    drop : str or iterable of str
        Columns to leave out.
    interventions : mask, str or mapping, optional
        Which cells were set by an experiment: a table of 0 and 1 as large as `data`; the name of a column that lists
        targets (``"PKA"``, ``"PKA; Mek"`` or nothing in each row); or tables by target, ``{"": observational, "PKA":
        table}``. Rules in `graphbam.tables.interventions`.
    knowledge : Knowledge, dict or path to JSON, optional
        Prior knowledge; or give its parts: `forbidden`, `required`, `tiers`, `prior_odds`.
    blocks : {"auto", "always", "never"}
        Whether the network is asked about overlapping neighbourhoods of columns instead of the whole table; ``"auto"``:
        if more than 300 columns vary. Rules in `graphbam.inference.screen` and `graphbam.inference.blocks`.
    executor : None, int, str, dask.distributed.Client or the module ray
        Where neighbourhoods, resamples and the tables of `infer_many` are worked on: here, in so many processes, on a
        Dask cluster (a client, or the address of its scheduler) or on Ray (``"ray"``); docs/clusters.md.
    store : path, optional
        A folder that keeps the neighbourhoods that are done; the same call goes on from there after a stop.
    stability : int
        Number of resamples, each of 63 % of the rows without replacement; 0 for none. How often each link and each
        arrow is found in them is in `Result.stability` and `Result.arrow_stability` (arrows of a second network, which
        takes longer: in the first 20).
    prepare : PrepareConfig, optional
        How the table is made ready. Its fields may also be given one by one: `missing`, `keep_codes`, `max_rows`,
        `large`, `independent_rows`, `seed`; rules in `graphbam.tables.prepare`.
    progress : callable or bool, optional
        Called as ``progress(share_done, sentence)``; first with an estimate of the time. If nothing is given, a bar
        appears after two seconds in a terminal or a notebook; False is silent, True shows it anywhere.

    Returns
    -------
    Result
        Of a table with more than 2,000 columns a `SparseResult`, which answers to the same names.

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
    config = read_settings({"weights": weights, **settings})
    with listening(progress) as tell:
        ready = _prepare(data, config)
        networks = open_networks(config)
        _check_directions(ready, config, networks)
        if tell is not be_silent:  # the machine is measured for listeners only
            tell(0.0, _announce(ready, config, networks.edges))
        table = _as_wide(ready)
        result = _finish(ready, config, networks, table.x_bmd, _ask(table, config, networks, tell), tell)
        tell(1.0, "done")
    return result


@show_settings(FLAT | PARTS | {"prepare": None})
def infer_many(
    tables: Iterable[Any] | Mapping[str, Any] | str | os.PathLike[str],
    *,
    weights: WeightsLike = InferConfig.weights,
    progress: Progress | bool | None = None,
    **settings: Unpack[Settings],
) -> list[Result | Failure]:
    """Infer the graphs of many tables; equal shapes travel through the network together.

    Parameters
    ----------
    tables : iterable, mapping from name to table, or path of a folder
        Anything `infer` takes, shapes mixed freely. They are taken one after another, and only as many are held at a
        time as the network sees at once: a generator may yield more than fits into memory.
    weights, progress, **settings
        As in `infer`, the same for every table.

    Returns
    -------
    list of Result or Failure
        In the order of the tables; of a mapping, each has its name as `source`. A `Failure` stands for a table that
        could not be used; it is falsy and says why.

    Examples
    --------
    >>> answers = infer_many({"before": "a.csv", "after": "b.csv"})  # doctest: +SKIP
    >>> {one.source: one.cpdag() for one in answers if one}  # doctest: +SKIP
    """
    config = read_settings({"weights": weights, **settings})
    found = _find_tables(tables) if isinstance(tables, (str, os.PathLike)) else tables
    sources, n_tables = _name_tables(found), operator.length_hint(found)
    answers: dict[int, Result | Failure] = {}
    with listening(progress) as tell:
        for some in _answer_tables(sources, config, answers):
            answers |= some
            of_all = f" of {n_tables}" if n_tables else ""
            tell(len(answers) / n_tables if n_tables else 0.0, f"{len(answers)}{of_all} tables done")
        tell(1.0, "done")
    return [answers[k] for k in range(len(answers))]


# ── the steps ─────────────────────────────────────────────────────────────────────────────────────────────


def _prepare(data: Any, config: InferConfig, name: str | None = None) -> Prepared:
    """Read a table and make it ready; `name` is what to call it."""
    try:
        table = read_source(data, config, name)
        table = table if name is None else dataclasses.replace(table, source=name)
        n_rows, n_columns = table.shape
        with threads(threads_for(2 * n_rows * n_columns**2)):
            ready = prepare(table, config.prepare)
    except MemoryError:
        raise refuse_size(data, name) from None
    if config.knowledge:
        config.knowledge.check_names(ready.names, (*ready.left_out, *config.drop), ready.labels)
    return ready


def _check_directions(ready: Prepared, config: InferConfig, networks: Networks) -> None:
    """Refuse the second network where there will be no matrix of all pairs, before the work and not after it."""
    if networks.colliders is None or len(ready.names) <= MATRIX_UP_TO or not is_wide(config, len(ready.varying)):
        return
    raise ConfigError(
        f"the second network is asked about up to {MATRIX_UP_TO} columns, and there are {len(ready.names)}. Use ",
        *(Setting("directions", "one-pass"), " or ", Setting("directions", "none"), "."),
    )


def _find_tables(folder: str | os.PathLike[str]) -> list[Path]:
    from graphbam.tables.read import find_tables

    return find_tables(folder)


def _finish(
    ready: Prepared,
    config: InferConfig,
    networks: Networks,
    x_bme: Tensor,
    said: Said | Joined,
    progress: Progress | None = None,
) -> Result:
    """Enforce knowledge, find directions and stability, collect the report. E counts the varying columns."""
    known = config.knowledge or Knowledge()
    joined = said if isinstance(said, Joined) else None
    about = _describe_answer(ready, config, networks, x_bme, said)
    if joined is not None and len(ready.names) > MATRIX_UP_TO:
        return cast(Result, _finish_sparse(ready, config, networks, joined, about, progress))
    said = said.dense(x_bme.shape[2]) if isinstance(said, Joined) else said
    pairs = read_pairs(ready, networks, known, x_bme, said, progress, done=0.5 / (config.stability + 1))
    found = Stability(None, None)
    if config.stability:
        plan = None if joined is None else joined.plan
        at_once = tables_at_once(x_bme[0].numel()) if plan is None else 1
        ask = functools.partial(_ask_resamples, config, networks, plan)
        settings = (config.stability, known, config.prepare.seed, progress or be_silent)
        found = measure_stability(ready, networks, ask, *settings, at_once=at_once)
    return Result(stability=found.links_dd, arrow_stability=found.arrows_dd, **about, **pairs)


def _finish_sparse(
    ready: Prepared,
    config: InferConfig,
    networks: Networks,
    joined: Joined,
    about: dict[str, Any],
    progress: Progress | None,
) -> SparseResult:
    """The answer for a table too wide for a matrix of all pairs."""
    pairs, stability = joined.pairs, None
    if config.stability:
        ask = functools.partial(_join_resamples, config, networks, joined.plan)
        stability = count_links(pairs, ready, ask, config, progress or be_silent)
    place = ready.varying
    fields: dict[str, Any] = {"hidden_causes": pairs.hidden, "ancestors": pairs.ancestor, "stability": stability}
    fields |= {"directions": pairs.direction, "compelled": pairs.compelled} if networks.one_pass else {}
    constant = tuple(ready.names[k] for k in np.setdiff1d(np.arange(len(ready.names)), place).tolist())
    where = np.stack([place[pairs.i], place[pairs.j]], axis=1)
    classes = pairs.classes.astype(np.float64)
    fields |= {"elsewhere": joined.elsewhere, "constant": constant, **about, "knowledge": None}
    kind_d = kinds_of_targets(ready)
    if kind_d is not None:  # known before knowledge is followed
        fields["experiments"] = set_apart(*kind_d[where].T)
    result = SparseResult(pairs=where, probabilities=classes, **fields).with_knowledge(config.knowledge)
    if kind_d is None or len(result.pairs) == len(where):
        return result
    return dataclasses.replace(result, experiments=set_apart(*kind_d[result.pairs].T))


def _describe_answer(
    ready: Prepared, config: InferConfig, networks: Networks, x_bme: Tensor, said: Said | Joined
) -> dict[str, Any]:
    """What a result says beside its pairs."""
    joined = said if isinstance(said, Joined) else None
    known = config.knowledge or Knowledge()
    ranges = {name: list(limits) for name, limits in (networks.edges.header.domain or {}).items()}
    seen = min(ready.features["n_samples"], longest_piece(networks.edges, x_bme.shape[2]) or np.inf)  # at a time
    features = {k: v for k, v in ready.features.items() if joined is None or k not in OF_THE_WHOLE}
    features["n_samples"] = seen
    unlike = judge_domain(features, ranges)
    verdict = ("outside" if unlike else "inside") if ranges else None
    return {
        "names": ready.names,
        "changes": (
            *ready.changes,
            *(() if networks.colliders is None else tell_of_rows(x_bme.shape[1])),
            *tell_of_blocks(joined, x_bme.shape[2]),
        ),
        "warnings": (
            *ready.warnings,
            *unlike,
            *_warn_about_knowledge(ready, known),
            *networks.warnings,
            *_warn_about_width(joined, x_bme.shape[2]),
            *_warn_about_density(said, x_bme.shape[2]),
        ),
        "domain": {"features": features, "verdict": verdict, "unlike": unlike, "ranges": ranges},
        "knowledge": known or None,
        "source": ready.source,
        "provenance": _provenance(ready, config, networks),
        "sample": _draw_sample(ready, x_bme[0]),
        "filled": _draw_marks(ready, ready.missing_md),
        "was_set": _draw_marks(ready, ready.set_md),
    }


def _as_wide(ready: Prepared) -> Wide:
    """The passes of a table as the network takes them."""
    x_bmd = ready.standardised()
    return Wide(x_bmd, [ready.worth(x_bmd.shape[1])] * len(x_bmd), _stack_marks([ready]))


def _ask(table: Wide, config: InferConfig, networks: Networks, tell: Progress | None = None) -> Said | Joined:
    """What the network says of a table, over all its passes: of the whole, or of its neighbourhoods."""
    if not is_wide(config, table.x_bmd.shape[2]):
        return run_network(networks.edges, *table).each_table(len(table.x_bmd))[0]
    asked = _asked(config, networks)
    check_wide_memory(table, asked, MATRIX_UP_TO)
    return ask_neighbourhoods(table, asked, store=config.store, tell=tell)


def _asked(config: InferConfig, networks: Networks) -> Asked:
    return Asked(networks.edges, config.weights, config.device, open_executor(config.executor))


def _ask_resamples(
    config: InferConfig, networks: Networks, plan: Plan | None, batches: Iterator[Wide]
) -> Iterator[tuple[int, list[Said]]]:
    """Answers to batches of resamples, in neighbourhoods by a plan if the table has one."""
    asked = _asked(config, networks)
    if plan is None:
        yield from ask_tables(asked, batches)
        return
    for number, table in enumerate(batches):
        yield number, [ask_neighbourhoods(table, asked, plan=plan).dense(table.x_bmd.shape[2])]


def _join_resamples(
    config: InferConfig, networks: Networks, plan: Plan, batches: Iterator[Wide]
) -> Iterator[tuple[int, Joined]]:
    """Answers to resamples of a table too wide for a matrix, each by the same plan."""
    asked = _asked(config, networks)
    for number, table in enumerate(batches):
        yield number, ask_neighbourhoods(table, asked, plan=plan)


def is_wide(config: InferConfig, n_columns: int) -> bool:
    """Whether a table of so many varying columns is asked about in neighbourhoods."""
    return config.blocks == "always" or (config.blocks == "auto" and n_columns > WHOLE_UP_TO)


def _stack_marks(ready: Sequence[Prepared]) -> Tensor | None:
    """Marks of the passes of several tables of one shape, one after the other; None if no cell has one."""
    marks = [mark_cells(one) for one in ready]
    if all(one is None for one in marks):
        return None
    full = [np.zeros(one.x_md.shape, dtype=np.uint8) if m is None else m for one, m in zip(ready, marks, strict=True)]
    stacked = [m[np.stack(one.passes)] for one, m in zip(ready, full, strict=True)]
    return torch.from_numpy(np.concatenate(stacked))


def _draw_sample(ready: Prepared, x_me: Tensor) -> Matrix:
    """First rows of a standardised table, constant columns filled with zeros."""
    x_rd = np.zeros((min(SAMPLE_ROWS, len(x_me)), len(ready.names)))
    x_rd[:, ready.varying] = x_me[:SAMPLE_ROWS].numpy()
    x_rd.setflags(write=False)
    return x_rd


def _draw_marks(ready: Prepared, marks_me: BoolMatrix | None) -> BoolMatrix | None:
    """Which cells of the rows of `_draw_sample` are marked; None: none of the table is."""
    if marks_me is None or not marks_me.any():
        return None
    rows = ready.passes[0][:SAMPLE_ROWS]
    marked_rd = np.zeros((len(rows), len(ready.names)), dtype=bool)
    marked_rd[:, ready.varying] = marks_me[rows]
    marked_rd.setflags(write=False)
    return marked_rd


def _warn_about_width(joined: Joined | None, n_columns: int) -> list[str]:
    """What to keep in mind of a table that is wider than those the network was made for."""
    if joined is None and n_columns > WHOLE_UP_TO:
        return [
            f"{n_columns} variables were asked about at once: so many are beyond what the network was made for, and "
            f"its answer gets worse and worse from {WHOLE_UP_TO} on (docs/performance.md); leave blocks as it is"
        ]
    if joined is not None and n_columns > SURE_UP_TO:
        return [
            f"among {n_columns} columns some of the best pairs by chance still pose as links: up to twice as many were "
            "false as a target allows in simulated tables (docs/performance.md)"
        ]
    return []


def _warn_about_density(said: Said | Joined, n_columns: int) -> list[str]:
    """That there are more links than in any world of training: that tells of the network, not of the table."""
    p = said.pairs.classes[:, SKELETON] if isinstance(said, Joined) else pair_values(said.classes[..., SKELETON])
    n_links = int((p >= EVEN).sum())
    if 2 * n_links <= MOST_NEIGHBOURS * n_columns:
        return []
    return [
        f"{n_links} links, {2 * n_links / n_columns:.0f} per variable: worlds of the preset broad, from which 'edges' "
        f"learned, have {MOST_NEIGHBOURS} at most; the network cannot read this table, do not rely on its links"
    ]


def _warn_about_knowledge(ready: Prepared, knowledge: Knowledge) -> list[str]:
    """Name what is known and yet changes nothing, or cannot be seen."""
    constant = set(ready.names) - {ready.names[k] for k in ready.varying}
    told = [
        f"{edge} is required, but the data say nothing of it: one of the two is constant"
        for edge in knowledge.required
        if constant & edge.pair
    ]
    steps = [tier for tier in knowledge.tiers if tier]
    if len(steps) == 1 and knowledge.within_tiers:
        told.append(
            f"the order in time has one step only, {spell_columns(steps[0])}, and says nothing: columns in no step may "
            f"come before or after it; put those that come later into a second one ({Setting('tiers').as_both()})"
        )
    return told


def _provenance(ready: Prepared, config: InferConfig, networks: Networks) -> dict[str, Any]:
    edges, colliders = networks.edges, networks.colliders
    names = {"weights": spell_source(edges), "colliders": spell_source(colliders)}
    settings = {
        **dataclasses.asdict(config.prepare),
        "directions": config.directions,
        "encode": _spell_encode(config.encode),
        "drop": list(config.drop),
        "interventions": _spell_interventions(config.interventions),
        "stability": config.stability,
        "blocks": config.blocks,
    }
    needed = {"weights": names["weights"]} if networks.one_pass else names  # the second network was not asked
    asked = needed | settings
    return {
        "graphbam": graphbam.__version__,
        **names,
        "checksum": edges.header.checksum,
        "colliders_checksum": None if colliders is None else colliders.header.checksum,
        **describe_device(edges),
        "seed": config.prepare.seed,
        "n_rows": ready.n_rows,
        "n_rows_used": sum(len(rows) for rows in ready.passes),
        "n_rows_worth": len(ready.passes) * ready.worth(len(ready.passes[0])),
        "n_resamples": config.stability,
        "directions": "one-pass" if networks.one_pass else "two-step" if colliders is not None else None,
        "n_cells_missing": 0 if ready.missing_md is None else int(ready.missing_md.sum()),
        "missing": _share_missing(ready),
        "unordered": list(ready.unordered),
        "n_cells_set": 0 if ready.set_md is None else int(ready.set_md.sum()),
        "settings": settings,
        "changed": {name: value for name, value in asked.items() if value != _plain(FLAT[name])},
    }


def _share_missing(ready: Prepared) -> dict[str, float]:
    """Columns with cells that were filled in, and how many of theirs were."""
    if ready.missing_md is None:
        return {}
    share_e = ready.missing_md.mean(axis=0).tolist()
    return {ready.names[k]: share for k, share in zip(ready.varying.tolist(), share_e, strict=True) if share}


def _plain(value: Any) -> Any:
    """As JSON keeps it."""
    return list(value) if isinstance(value, tuple) else value


def _spell_encode(encode: Encode) -> bool | list[str] | dict[str, list[str] | dict[str, float]]:
    if isinstance(encode, (bool, np.bool_)):
        return bool(encode)
    if not isinstance(encode, Mapping):
        return [encode] if isinstance(encode, str) else list(encode)
    return {
        name: {str(level): float(number) for level, number in levels.items()}
        if isinstance(levels, Mapping)
        else [str(level) for level in levels]
        for name, levels in encode.items()
    }


def _spell_interventions(given: Any) -> str | list[str] | None:
    if given is None or isinstance(given, (str, os.PathLike)):
        return None if given is None else os.fspath(given)
    return [str(key) for key in given] if isinstance(given, Mapping) else f"a {type(given).__name__}"


def _announce(ready: Prepared, config: InferConfig, loaded: Weights) -> str:
    """How long it will take; of a wide table, nobody knows before it was screened."""
    if is_wide(config, ready.x_md.shape[1]):
        return f"{len(ready.passes[0])} rows × {ready.x_md.shape[1]} variables, in neighbourhoods"
    n_tables = len(ready.passes) + config.stability
    n_samples, n_variables = len(ready.passes[0]), ready.x_md.shape[1]
    seconds = estimate_seconds(loaded, n_tables, n_samples, n_variables)
    passes = "one pass" if n_tables == 1 else f"{n_tables} passes"
    return f"{n_samples} rows × {n_variables} variables, {passes}: {spell_seconds(seconds)}"


# ── many tables ───────────────────────────────────────────────────────────────────────────────────────────


def _name_tables(tables: Any) -> Iterator[tuple[str | None, Any]]:
    """Tables with the names they go by, if they have any."""
    if isinstance(tables, Mapping):
        return ((str(name), data) for name, data in tables.items())
    if hasattr(tables, "columns") or getattr(tables, "ndim", 3) < 3:
        raise ConfigError(
            f"infer_many takes several tables, and this {type(tables).__name__} is one. Pass it to infer, or in a list."
        )
    return ((None, data) for data in tables)


def _answer_tables(
    sources: Iterator[tuple[str | None, Any]], config: InferConfig, answers: dict[int, Result | Failure]
) -> Iterator[dict[int, Result | Failure]]:
    """Answers by number: tables of one shape together, or, where there is an executor, one table per task."""
    if config.executor is None:
        config = hold_networks(config)
        for batch in _batch_by_shape(_prepare_each(sources, config, answers)):
            yield _infer_batch(batch, config)
        return
    alone = dataclasses.replace(config, executor=None)
    tasks = (_Table(k, name, data, alone) for k, (name, data) in enumerate(sources))
    for number, answer in open_executor(config.executor).run(_infer_table, tasks):
        yield {number: answer}


class _Table(NamedTuple):
    """A task of `infer_many`."""

    number: int
    name: str | None
    data: Any
    config: InferConfig


def _infer_table(task: _Table) -> Result | Failure:
    """One table of many, by a worker; `_prepare_each` and `_infer_batch` are what is done without one."""
    failed: dict[int, Result | Failure] = {}
    for _, ready in _prepare_each([(task.name, task.data)], task.config, failed, first=task.number):
        return _infer_batch({task.number: ready}, task.config)[task.number]
    return failed[task.number]


def _prepare_each(
    sources: Iterable[tuple[str | None, Any]], config: InferConfig, answers: dict[int, Result | Failure], first: int = 0
) -> Iterator[tuple[int, Prepared]]:
    """Tables made ready, with their numbers from `first` on; those that cannot be used go to `answers` at once."""
    for k, (name, data) in enumerate(sources, first):
        try:
            yield k, _prepare(data, config, name)
        except GraphbamError as error:
            is_path = isinstance(data, (str, os.PathLike))
            source = describe_source(data, name) if is_path or name else f"table {k + 1} ({type(data).__name__})"
            answers[k] = Failure(source, error)


def _batch_by_shape(prepared: Iterable[tuple[int, Prepared]]) -> Iterator[dict[int, Prepared]]:
    """Tables that go together: equal shapes, and not too many cells at once, neither in a batch nor waiting for one."""
    waiting: dict[tuple[int, ...], dict[int, Prepared]] = {}
    for k, one in prepared:
        shape = len(one.passes), len(one.passes[0]), one.x_md.shape[1]
        waiting.setdefault(shape, {})[k] = one
        cells = {other: sum(each.x_md.size for each in group.values()) for other, group in waiting.items()}
        if len(waiting[shape]) >= tables_at_once(int(np.prod(shape))):
            yield waiting.pop(shape)
        elif tables_at_once(sum(cells.values())) == 1:
            yield waiting.pop(max(cells, key=cells.__getitem__))
    yield from waiting.values()


def _infer_wide(ready: Prepared, config: InferConfig, networks: Networks) -> Result | Failure:
    """The answer for a wide table of many; each has a folder of its own in the store, if there is one."""
    try:
        _check_directions(ready, config, networks)
        table = _as_wide(ready)
        if config.store is not None:
            config = dataclasses.replace(config, store=Path(config.store, table.fingerprint()))
        return _finish(ready, config, networks, table.x_bmd, _ask(table, config, networks))
    except GraphbamError as error:
        return Failure(ready.source, error)


def _infer_batch(ready: Mapping[int, Prepared], config: InferConfig) -> dict[int, Result | Failure]:
    """Answers for tables of one shape; where they are wide, or do not fit into memory together, one by one."""
    networks = open_networks(config)
    if is_wide(config, next(iter(ready.values())).x_md.shape[1]):
        return {k: _infer_wide(one, config, networks) for k, one in ready.items()}
    try:
        x_nbmd = torch.stack([one.standardised() for one in ready.values()])
        n_passes, n_samples = x_nbmd.shape[1:3]
        rows = [one.worth(n_samples) for one in ready.values() for _ in range(n_passes)]
        marks_bmd = _stack_marks(list(ready.values()))
        said = run_network(networks.edges, x_nbmd.flatten(0, 1), rows, marks_bmd).each_table(n_passes)
    except GraphbamError as error:
        if len(ready) == 1:
            return {k: Failure(one.source, error) for k, one in ready.items()}
        alone = [_infer_batch({k: one}, config) for k, one in ready.items()]
        return {k: answer for each in alone for k, answer in each.items()}
    answers: dict[int, Result | Failure] = {}
    for (k, one), x_bmd, of_one in zip(ready.items(), x_nbmd, said, strict=True):
        try:
            answers[k] = _finish(one, config, networks, x_bmd, of_one)
        except GraphbamError as error:
            answers[k] = Failure(one.source, error)
    return answers
