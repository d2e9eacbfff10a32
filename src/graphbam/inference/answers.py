"""What the networks say of the pairs of a table, by the names that a result has for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from graphbam.directions.immoralities import Immoralities, combine, pairs_to_ask
from graphbam.errors import spell_count
from graphbam.graphs.graph import SKELETON, BoolMatrix, Matrix
from graphbam.graphs.knowledge import Knowledge
from graphbam.inference.networks import Colliders, Networks, Said
from graphbam.nn.cost import Progress, count_work, estimate_seconds, explained_memory, spell_seconds, threads_for
from graphbam.nn.immorality_net import MOST_ROWS
from graphbam.nn.threads import threads
from graphbam.tables.prepare import Prepared


def read_pairs(
    ready: Prepared,
    networks: Networks,
    knowledge: Knowledge,
    x_bme: Tensor,
    said: Said,
    tell: Progress | None = None,
    done: float = 0.0,
) -> dict[str, Any]:
    """What a result says of pairs: probabilities with prior knowledge enforced, and directions; E as below.

    `said` is of one table, over all its passes. The second network is asked if it is there.
    """
    p_ee3 = (said.classes + said.classes.swapaxes(0, 1)) / 2
    p_dd3 = knowledge.apply(ready.names, ready.put_constants_back(p_ee3, [1.0, 0.0, 0.0]))
    immoralities = None
    if networks.colliders is not None:
        immoralities = find_immoralities(ready, x_bme, p_dd3, networks.colliders, tell, done)
    ordered = _ordered_pairs(ready, networks, said)
    return {"probabilities": p_dd3, "colliders": immoralities, "experiments": pairs_set_apart(ready), **ordered}


def pairs_set_apart(ready: Prepared) -> BoolMatrix | None:
    """Pairs of columns of which some experiment set one without the other, so that it tells which way they point.

    These are the links that the interventional essential graph of Hauser and Bühlmann (2012) directs beside those that
    follow; None where nothing was set.
    """
    kind_d = kinds_of_targets(ready)
    if kind_d is None:
        return None
    return set_apart(kind_d[:, None], kind_d)


def set_apart(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether an experiment set one of two columns without the other, by their `kinds_of_targets`."""
    return (one != other) & (one >= 0) & (other >= 0)


def kinds_of_targets(ready: Prepared) -> NDArray[np.int64] | None:
    """A number for each column, equal where the same rows were set, so that no experiment tells two of them apart.

    −1 for constant columns, of which no experiment tells anything; None where nothing was set.
    """
    if ready.set_md is None:
        return None
    kind_d = np.full(len(ready.names), -1)
    kinds: dict[bytes, int] = {}
    targets_em = np.packbits(ready.set_md, axis=0).T
    kind_d[ready.varying] = [kinds.setdefault(rows.tobytes(), len(kinds)) for rows in targets_em]
    return kind_d


def _ordered_pairs(ready: Prepared, networks: Networks, said: Said) -> dict[str, Matrix | None]:
    """What the pass says of ordered pairs, by the names that `Result` has for it; directions only if they are wanted.

    A constant column is nobody's cause, effect or ancestor, and no direction is likelier than the other.
    """
    found = {"hidden_causes": (said.hidden, 0.0), "ancestors": (said.ancestor, 0.0)}
    if networks.one_pass:
        found |= {"directions": (said.direction, 0.5), "compelled": (said.compelled, 0.0)}
    return {name: None if p is None else ready.put_constants_back(p, nothing) for name, (p, nothing) in found.items()}


def find_immoralities(
    ready: Prepared, x_bme: Tensor, p_dd3: Matrix, colliders: Colliders, tell: Progress | None, done: float
) -> Immoralities:
    """Immoralities by place in `ready.names`; constant columns are nobody's child or parent.

    `tell` hears how long it will take, when the share `done` of all work is done; E counts the varying columns.
    """
    p_ee3, x_bme = p_dd3[ready.varying][:, ready.varying], x_bme[:, :MOST_ROWS]
    asked = pairs_to_ask(p_ee3)
    packed = colliders.pack(*asked, p_ee3[..., SKELETON])
    widths = packed.widths_s.tolist()
    if tell:
        seconds = estimate_seconds(colliders, *x_bme.shape[:2], *widths)
        n_pairs = int(asked.pairs_dd.sum()) // 2
        tell(done, f"directions, {spell_count(n_pairs, 'moral pair')}: {spell_seconds(seconds)}")
    n_tables, n_samples, n_variables = x_bme.shape
    work = n_tables * count_work(colliders, n_samples, widths)
    with explained_memory(n_samples, n_variables), threads(threads_for(work)):
        p_n = colliders.answer(x_bme, packed)
    found = combine(packed.triples(), p_n, p_ee3, colliders.header.evidence)
    for place in ("a", "c", "b"):
        found[place] = ready.varying[found[place]]
    return found


def tell_of_rows(n_rows: int) -> tuple[str, ...]:
    """What to say of a table with more rows than the second network takes."""
    if n_rows <= MOST_ROWS:
        return ()
    return (f"directions are judged from {MOST_ROWS} of {n_rows} rows, all that the second network takes",)
