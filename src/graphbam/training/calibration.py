"""Make probabilities mean what they say: a temperature and class offsets fitted on fresh simulated tables."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from graphbam.directions.immoralities import TERMS, describe, pairs_to_ask
from graphbam.graphs.graph import SKELETON
from graphbam.nn.edge_net import ANSWERS, CLASSES
from graphbam.nn.structures import CANDIDATE
from graphbam.nn.weights import Calibration, LoadedColliders, LoadedWeights, doubt_paths, spread_doubt, warm
from graphbam.simulation.config import UNSEEN, SimulationConfig
from graphbam.simulation.values import Shape, Tables
from graphbam.training.config import StructureConfig, TrainConfig
from graphbam.training.data import draw_tables, mark_tables, rows_of_tables, simulate_structures

SHAPES = ((5, 300), (10, 100), (10, 500), (20, 200), (20, 600), (40, 100), (40, 400), (80, 200), (100, 60))
"""Variables and samples of the tables that the fit sees."""

FEW = ((2, 60), (2, 200), (2, 600), (3, 100), (3, 400), (4, 250))
"""The same for answers about tables of few variables, which say less of each, so that more of them are drawn …"""

TIMES = 8
"""… so many times as many."""

CLAIM_SHAPES = ((10, 200), (20, 100), (20, 500), (30, 300), (50, 200))
"""The same for the fit of evidence, which asks both networks about every table."""


def fit_calibration(logits_n3: Tensor, classes_n: Tensor, weight_n: Tensor | None = None) -> Calibration:
    """Temperature T and class offsets b that minimise the cross-entropy of softmax(logits / T + b).

    Offsets have mean zero. `weight_n` weighs the pairs; by default all count alike.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = 2 * torch.randn(4000, 3, generator=rng)
    >>> classes = torch.multinomial((logits / 2).softmax(-1), 1, generator=rng)[:, 0]
    >>> abs(fit_calibration(logits, classes).temperature - 2) < 0.15
    True
    """
    logits_n3 = logits_n3.double()
    weight_n = torch.ones(len(classes_n), dtype=torch.float64) if weight_n is None else weight_n.double()
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    offsets = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_temperature, offsets], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        scaled = logits_n3 / log_temperature.exp() + offsets - offsets.mean()
        losses = F.cross_entropy(scaled, classes_n, reduction="none")
        loss = (losses * weight_n).sum() / weight_n.sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    centred = (offsets - offsets.mean()).detach()
    rounded = tuple(round(value, 6) for value in centred.tolist())
    return Calibration(temperature=float(log_temperature.detach().exp()), offsets=rounded)


def simulated_logits(
    loaded: LoadedWeights, rng: torch.Generator, config: SimulationConfig, n_tables: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Raw logits, classes and weights of all pairs i > j of fresh tables over `SHAPES`; each table weighs the same."""
    logits, classes, weights = [], [], []
    for logits_bddo, tables in _ask_about_tables(loaded, rng, config, n_tables):
        n_variables = tables.classes_bdd.shape[-1]
        i, j = torch.tril_indices(n_variables, n_variables, -1).unbind(0)
        logits.append(logits_bddo[:, i, j, : len(CLASSES)].flatten(0, 1))
        classes.append(tables.classes_bdd[:, i, j].flatten())
        weights.append(torch.full_like(classes[-1], 1 / len(i), dtype=torch.float64))
    return torch.cat(logits), torch.cat(classes), torch.cat(weights)


def _ask_about_tables(
    loaded: LoadedWeights,
    rng: torch.Generator,
    config: SimulationConfig,
    n_tables: int,
    shapes: Iterable[tuple[int, int]] | None = None,
) -> Iterator[tuple[Tensor, Tables]]:
    """Raw logits of fresh tables of each of the shapes, `SHAPES` if none are given, asked for as a user's would be.

    Each is drawn by itself: tables of one batch share their kind of world and how many variables are hidden, so that a
    few batches would say next to nothing of hidden causes.
    """
    for n_variables, n_samples in itertools.chain.from_iterable([shape] * n_tables for shape in shapes or SHAPES):
        tables = draw_tables(rng, config, n_tables=1, n_variables=n_variables, n_samples=n_samples)
        marks_bmd = mark_tables(tables) if loaded.reads_marks else None
        yield loaded.logits(tables.x_bmd, rows_of_tables(tables), marks_bmd), tables


# ── answers beyond the classes ─────────────────────────────────────────────────────────────────────────────────────


DOUBTED = ("direction", "ancestor")
"""Answers that are less sure of few variables than of many (`graphbam.nn.weights.spread_doubt`)."""


class Questions(NamedTuple):
    """Raw logits of one answer and what is true, pair by pair: alternatives along the last axis, if there are any; of
    paths there and back."""

    logits: Tensor
    truth: Tensor
    share: Tensor
    """Of the doubt (`graphbam.nn.weights.spread_doubt`)."""

    def join(self, other: Questions) -> Questions:
        """Both, one behind the other."""
        return Questions(*(torch.cat(parts) for parts in zip(self, other, strict=True)))


def simulated_answers(
    loaded: LoadedWeights,
    rng: torch.Generator,
    config: SimulationConfig,
    n_tables: int,
    shapes: Iterable[tuple[int, int]] | None = None,
) -> dict[str, Questions]:
    """Raw logits and truth of every answer about fresh tables of each of the shapes, `SHAPES` if none are given.

    Directions and arrows of the CPDAG of true links, from either end; hidden causes and ancestors of all ordered pairs.
    """
    asked: dict[str, list[Questions]] = {name: [] for name in ANSWERS}
    for logits_bddo, tables in _ask_about_tables(loaded, rng, config, n_tables, shapes):
        said = dict(zip(ANSWERS, logits_bddo[..., len(CLASSES) :].unbind(-1), strict=True))
        share_bdd = spread_doubt(mark_tables(tables), logits_bddo)
        arrow_bdd = tables.dag_bdd > 0
        either_bdd = arrow_bdd | arrow_bdd.mT
        ways = said["direction"][either_bdd], arrow_bdd[either_bdd], share_bdd[either_bdd]
        asked["direction"].append(Questions(*ways))
        judged_bdd = either_bdd & (torch.maximum(tables.compelled_bdd, tables.compelled_bdd.mT) >= 0)
        ways_bdd3 = torch.stack([said["compelled"], said["compelled"].mT, torch.zeros_like(said["compelled"])], -1)
        truth_bdd = torch.where(tables.compelled_bdd > 0, 0, torch.where(tables.compelled_bdd.mT > 0, 1, 2))
        asked["compelled"].append(Questions(ways_bdd3[judged_bdd], truth_bdd[judged_bdd], share_bdd[judged_bdd]))
        apart_dd = ~torch.eye(arrow_bdd.shape[-1], dtype=torch.bool)
        paths_bdd2 = torch.stack([said["ancestor"], said["ancestor"].mT], -1)
        of_pairs = ("hidden", said["hidden"], tables.hidden_bdd), ("ancestor", paths_bdd2, tables.ancestors_bdd)
        for name, logits, label_bdd in of_pairs:
            counts_bdd = (label_bdd >= 0) & apart_dd
            asked[name].append(Questions(logits[counts_bdd], label_bdd[counts_bdd] > 0, share_bdd[counts_bdd]))
    return {name: Questions(*(torch.cat(part) for part in zip(*parts, strict=True))) for name, parts in asked.items()}


def worlds_unlike(config: SimulationConfig) -> SimulationConfig:
    """Worlds that training did not have: mechanisms of no preset, mixed within a table, and more of what spoils one.

    A direction that is only sure at home is worse than none: the temperatures of directions and paths are fitted here.

    Examples
    --------
    >>> sorted(worlds_unlike(SimulationConfig.broad()).mechanisms) == sorted(UNSEEN)
    True
    """
    spoilt: dict[str, Any] = {
        "discrete": 0.25,
        "skewed": 0.35,
        "rounded": 0.2,
        "measurement_noise": 0.4,
        "autocorrelated": 0.15,
    }
    mixed: dict[str, Any] = {"mechanisms": dict.fromkeys(UNSEEN, 1.0), "per_node_mechanisms": 0.5}
    mixed |= {"worlds": {}, "small_worlds": {}}
    return dataclasses.replace(config, **mixed, **spoilt, hidden=0.35, interventions=0.0, missing=0.1)


def fit_answer(name: str, asked: Questions) -> dict[str, float]:
    """Temperature and offset of one answer, as a header keeps them; of `DOUBTED` ones temperature and doubt.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = 3 * torch.randn(4000, generator=rng)
    >>> truth = torch.rand(4000, generator=rng) < (logits / 3 + 1).sigmoid()
    >>> asked = Questions(logits, truth, torch.zeros(4000))
    >>> {name: round(value) for name, value in fit_answer("hidden", asked).items()}
    {'temperature': 3, 'offset': 1}
    """
    if name in DOUBTED:
        return fit_doubt(asked)
    if name == "compelled":
        fitted = fit_calibration(asked.logits, asked.truth)
        offset = (fitted.offsets[0] + fitted.offsets[1]) / 2 - fitted.offsets[2]
    else:
        fitted = fit_child_calibration(asked.logits, asked.truth)
        offset = fitted.offsets[0]
    return {"temperature": round(fitted.temperature, 6), "offset": round(offset, 6)}


def fit_doubt(asked: Questions) -> dict[str, float]:
    """Temperature and doubt that minimise the binary cross-entropy, every size of tables weighing the same.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> logits, share = 4 * torch.randn(8000, generator=rng), (torch.arange(8000) % 2).float()
    >>> truth = torch.rand(8000, generator=rng) < warm(logits, {"temperature": 2.0, "doubt": 3.0}, share).sigmoid()
    >>> {name: round(value) for name, value in fit_doubt(Questions(logits, truth, share)).items()}
    {'temperature': 2, 'doubt': 3}
    """
    roots = torch.ones(2, dtype=torch.float64, requires_grad=True)  # neither is negative
    optimizer = torch.optim.LBFGS([roots], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        temperature, doubt = roots.square()
        loss = _judge_by_size(asked, doubt_answer(asked, {"temperature": temperature, "doubt": doubt}))
        loss.backward()
        return loss

    optimizer.step(closure)
    temperature, doubt = (round(value, 6) for value in roots.detach().square().tolist())
    return {"temperature": temperature, "doubt": doubt}


def doubt_answer(asked: Questions, values: Mapping[str, Any]) -> Tensor:
    """Calibrated logits of one of the `DOUBTED` answers: of directions, or of paths."""
    logits = asked.logits.double()
    if logits.ndim == 1:
        return warm(logits, values, asked.share)
    there, back = logits.unbind(-1)
    return doubt_paths(there, back, values, asked.share).logit(eps=1e-12)


def judge_answer(name: str, asked: Questions, values: Mapping[str, float]) -> float:
    """Cross-entropy of one answer with these temperatures and offsets."""
    if name == "compelled":
        offset = values.get("offset", 0.0)
        offsets = asked.logits.new_tensor([offset, offset, 0.0], dtype=torch.float64)
        return float(F.cross_entropy(asked.logits.double() / values["temperature"] + offsets, asked.truth))
    if name in DOUBTED:
        return float(_judge_by_size(asked, doubt_answer(asked, values)))
    return float(F.binary_cross_entropy_with_logits(warm(asked.logits.double(), values), asked.truth.double()))


def _judge_by_size(asked: Questions, logits_n: Tensor) -> Tensor:
    """Binary cross-entropy, the mean over sizes of tables, which have a share of the doubt each, of that of pairs."""
    losses_n = F.binary_cross_entropy_with_logits(logits_n, asked.truth.double(), reduction="none")
    _, size_n, counts = asked.share.unique(return_inverse=True, return_counts=True)
    return (losses_n / counts[size_n]).sum() / len(counts)


# ── common children ────────────────────────────────────────────────────────────────────────────────────────────────


def fit_child_calibration(logits_n: Tensor, children_n: Tensor) -> Calibration:
    """Temperature T and offset b that minimise the binary cross-entropy of sigmoid(logits / T + b).

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = 2 * torch.randn(4000, generator=rng)
    >>> children = torch.rand(4000, generator=rng) < (logits / 2 - 1).sigmoid()
    >>> fitted = fit_child_calibration(logits, children)
    >>> abs(fitted.temperature - 2) < 0.2, abs(fitted.offsets[0] + 1) < 0.1
    (True, True)
    """
    logits_n, truth_n = logits_n.double(), children_n.double()
    log_temperature = torch.zeros((), dtype=torch.float64, requires_grad=True)
    offset = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([log_temperature, offset], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(logits_n / log_temperature.exp() + offset, truth_n)
        loss.backward()
        return loss

    optimizer.step(closure)
    rounded = (round(float(offset.detach()), 6),)
    return Calibration(temperature=float(log_temperature.detach().exp()), offsets=rounded)


@torch.no_grad()
def simulated_children(
    loaded: LoadedColliders, rng: torch.Generator, config: TrainConfig, n_structures: int
) -> tuple[Tensor, Tensor]:
    """Raw logits and truth of all candidates of fresh structures, over all widths and four numbers of samples.

    Where the weights learnt from the mistakes of edge weights, all structures have those: they are what users meet.
    """
    assert isinstance(config.settings, StructureConfig)
    settings = dataclasses.replace(config.settings, edges_share=1.0)
    config = dataclasses.replace(config, settings=settings, burst=1)
    logits, truths = [], []
    for width in config.widths:
        for n_samples in (100, 200, 500, 1000):
            batch = simulate_structures(rng, config, Shape(n_structures, n_samples, width), loaded.device)
            parts = zip(*(part.split(32) for part in batch), strict=True)
            for x_bmd, roles_bd, children_bd in parts:
                asked = roles_bd == CANDIDATE
                logits.append(loaded.network(x_bmd, roles_bd)[asked].cpu())
                truths.append(children_bd[asked].bool().cpu())
    return torch.cat(logits), torch.cat(truths)


def fit_evidence(features_nt: Tensor, children_n: Tensor) -> dict[str, float]:
    """Weights of `graphbam.directions.immoralities` that minimise the cross-entropy, by name.

    Examples
    --------
    >>> rng = torch.Generator().manual_seed(0)
    >>> features = torch.cat([torch.ones(4000, 1), torch.randn(4000, 4, generator=rng)], 1)
    >>> children = torch.rand(4000, generator=rng) < (features @ torch.tensor([-1.0, 1, 2, 0, 0])).sigmoid()
    >>> [round(weight) for weight in fit_evidence(features, children).values()]
    [-1, 1, 2, 0, 0]
    """
    features_nt, truth_n = features_nt.double(), children_n.double()
    weight_t = torch.zeros(len(TERMS), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight_t], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(features_nt @ weight_t, truth_n)
        loss.backward()
        return loss

    optimizer.step(closure)
    return {term: round(float(weight), 4) for term, weight in zip(TERMS, weight_t.detach(), strict=True)}


@torch.no_grad()
def simulated_claims(
    edges: LoadedWeights, colliders: LoadedColliders, rng: torch.Generator, config: SimulationConfig, n_tables: int
) -> tuple[Tensor, Tensor]:
    """Features (N, 5) and truth (N) of all claims about fresh tables, asked for as a user's table would be."""
    features, truths = [], []
    for n_variables, n_samples in CLAIM_SHAPES:
        tables = draw_tables(rng, config, n_tables=n_tables, n_variables=n_variables, n_samples=n_samples)
        marks_bmd = mark_tables(tables) if edges.reads_marks else None
        p_bdd3 = edges.probabilities(tables.x_bmd, rows_of_tables(tables), marks_bmd)
        for x_md, dag_dd, p_dd3 in zip(tables.x_bmd, tables.dag_bdd, p_bdd3, strict=True):
            p_dd3 = p_dd3.numpy()
            packed = colliders.pack(*pairs_to_ask(p_dd3), p_dd3[..., SKELETON])
            triples_n3 = packed.triples()
            a, c, b = torch.from_numpy(triples_n3).unbind(1)
            arrow_dd = dag_dd.cpu() > 0
            features.append(torch.from_numpy(describe(triples_n3, colliders.answer(x_md[None], packed), p_dd3)))
            truths.append(arrow_dd[a, c] & arrow_dd[b, c] & ~(arrow_dd | arrow_dd.T)[a, b])
    return torch.cat(features), torch.cat(truths)
