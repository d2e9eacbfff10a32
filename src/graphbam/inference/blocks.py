"""Wide tables: the network asked about neighbourhoods instead of the whole, and its answers joined.

    x_bmd ── screen ──▸ candidates ──▸ neighbourhoods ── network, one by one ──▸ answers on pairs ── join ──▸ Pairs

A pair is answered by the neighbourhood whose core holds one of its ends, hence by at most two, and then by their mean,
from which is taken what chance does among so many columns (`graphbam.inference.chance`). Pairs that no neighbourhood
holds are not asked about. What they are believed to be is one number for each answer, the same for all of them: see
`_estimate_elsewhere`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from graphbam.errors import ConfigError, Setting, WeightsError
from graphbam.graphs.graph import MORAL, NONE, SKELETON, Indices
from graphbam.inference.chance import Chance, Floats32, weigh_chance
from graphbam.inference.executors import Executor, Processes
from graphbam.inference.networks import (
    Said,
    Weights,
    loaded_on_cpu,
    longest_piece,
    open_weights,
    run_network,
    spell_source,
)
from graphbam.inference.screen import (
    CELLS_AT_ONCE,
    Candidates,
    Neighbourhood,
    find_candidates,
    group_columns,
    hood_size,
)
from graphbam.nn.cost import Progress, be_silent, estimate_memory, estimate_seconds, refuse_beyond, spell_seconds
from graphbam.nn.weights import chunk_size

WHOLE_UP_TO = 300
"""Tables with more varying columns than this are asked about in neighbourhoods."""

KEPT_FROM = 0.01
"""Pairs that were no candidates are kept if they are linked, or moral, with this probability at least."""

MISSED = 1.5
"""Links that no neighbourhood shows, for each one that is shown although the screen had not named it: the median of
sixteen simulated tables of 1,000 to 20,000 columns; half of them lie between .8 and 2."""

BYTES_PER_CELL, BYTES_PER_PRODUCT = 110.0, 12.0
"""What preparing and screening take for each cell of a table, and for each pair whose numbers are held at a time …"""

BYTES_PER_ANSWER, BYTES_PER_JOINED = 52.0, 230.0
"""… what a pair that is answered takes until all are, and when they are joined …"""

BYTES_PER_ENTRY = 185.0
"""… and an entry of the matrices of a `graphbam.Result`. All are measured (`tests/inference/test_blocks.py`)."""

BYTES_PER_WORKER, BYTES_AT_LEAST = 4e8, 6e7
"""What a process of this machine takes before it does anything, and small change: what the allocator holds on to
differs by as much from run to run."""

SCREENED = 0.02
"""Share of the work that the screen counts for in reports of progress."""


class Pairs(NamedTuple):
    """What was said of pairs i < j, as arrays of equal length; None where a network cannot."""

    i: Indices
    j: Indices
    classes: Floats32
    """Shape (N, 3): none · skeleton · moral."""
    direction: Floats32 | None = None
    """Of i → j rather than j → i, given a link."""
    compelled: Floats32 | None = None
    """Shape (N, 2): that the CPDAG has i → j, and that it has j → i, given a link."""
    hidden: Floats32 | None = None
    """Of a hidden common cause."""
    ancestor: Floats32 | None = None
    """Shape (N, 2): of a path of arrows from i to j, and from j to i."""

    def answers(self) -> dict[str, Floats32]:
        """All that was said, by name."""
        return {name: p for name, p in self._asdict().items() if name not in ("i", "j") and p is not None}

    def keep(self, chosen: NDArray[Any]) -> Pairs:
        """Some of the pairs."""
        return self._replace(
            i=self.i[chosen], j=self.j[chosen], **{name: p[chosen] for name, p in self.answers().items()}
        )


class Joined(NamedTuple):
    """What is known of the pairs of a wide table."""

    pairs: Pairs
    """In increasing order of (i, j)."""
    elsewhere: dict[str, float]
    """Of every other pair: `skeleton`, the probability that the screen missed a link; `moral`, `hidden`, `ancestor`."""
    plan: Plan

    def dense(self, n_variables: int) -> Said:
        """The same for all pairs, as the network says it of a small table."""
        i, j, rest = self.pairs.i, self.pairs.j, self.elsewhere
        none = 1 - rest["skeleton"] - rest["moral"]
        values: dict[str, NDArray[np.float64] | None] = {
            "classes": np.full((n_variables, n_variables, 3), [none, rest["skeleton"], rest["moral"]])
        }
        values["classes"][i, j] = values["classes"][j, i] = self.pairs.classes  # type: ignore[index]
        for name, nothing in (("direction", 0.5), ("compelled", 0.0), ("hidden", None), ("ancestor", None)):
            p = getattr(self.pairs, name)
            if p is None:
                continue
            values[name] = p_dd = np.full((n_variables, n_variables), rest[name] if nothing is None else nothing)
            p_dd[i, j], p_dd[j, i] = (p, p) if name == "hidden" else (p, 1 - p) if p.ndim == 1 else p.T
        return Said(**values)  # type: ignore[arg-type]


class Wide(NamedTuple):
    """A wide table, ready for the network."""

    x_bmd: Tensor
    rows: Sequence[float]
    """Independent rows that each pass is worth."""
    marks_bmd: Tensor | None = None

    def part(self, columns: Indices) -> Wide:
        """Some columns of it."""
        marks = None if self.marks_bmd is None else self.marks_bmd[:, :, columns].clone()
        return Wide(self.x_bmd[:, :, columns].clone(), self.rows, marks)

    def fingerprint(self) -> str:
        """Tells one table from another."""
        seen = hashlib.blake2b(digest_size=16)
        for tensor in (self.x_bmd, self.marks_bmd):
            seen.update(b"" if tensor is None else tensor.contiguous().numpy().tobytes())
        seen.update(repr((tuple(self.x_bmd.shape), list(self.rows))).encode())
        return seen.hexdigest()


class Asked(NamedTuple):
    """A network to be asked, here or by a worker somewhere else."""

    loaded: Weights
    weights: Any
    """How a worker opens it: a name or path, or the weights themselves, which then travel."""
    device: str
    executor: Executor

    def handed_over(self) -> Opener:
        """What a task holds of the network."""
        by_name = self.executor.is_remote and isinstance(self.weights, (str, os.PathLike))
        return Opener(os.fspath(self.weights) if by_name else self.loaded, self.device, self.loaded.header.checksum)


class Opener(NamedTuple):
    """How a task comes by its network."""

    weights: Weights | str
    device: str
    checksum: str | None = None
    """Of the file; a worker that finds another one refuses."""

    def open(self) -> Weights:
        """The network; in a worker it is loaded once."""
        return _open(self.weights, self.device, self.checksum) if isinstance(self.weights, str) else self.weights


@functools.lru_cache(maxsize=2)
def _open(weights: str, device: str, checksum: str | None) -> Weights:
    loaded = open_weights(weights, device)
    if loaded.header.checksum != checksum:
        raise WeightsError(
            f"a worker found other weights {weights!r} than the process that sent it work. Put the same file there, "
            "and the same graphbam, or pass loaded weights, which travel."
        )
    return loaded


class Block(NamedTuple):
    """A task: tables, and the columns they are of if they are part of a wide one."""

    opener: Opener
    table: Wide
    hood: Neighbourhood | None = None


def ask_tables(asked: Asked, batches: Iterable[Wide]) -> Iterator[tuple[int, list[Said]]]:
    """Ask a network about tables, as many batches at a time as there are workers; answers as they come."""
    return asked.executor.run(_ask_batch, (Block(asked.handed_over(), table) for table in batches))


def _ask_batch(block: Block) -> list[Said]:
    return run_network(block.opener.open(), *block.table).each_table(1)


def ask_neighbourhoods(
    table: Wide,
    asked: Asked,
    *,
    store: str | os.PathLike[str] | None = None,
    tell: Progress | None = None,
    plan: Plan | None = None,
) -> Joined:
    """Ask a network about a wide table.

    Parameters
    ----------
    table : Wide
    asked : Asked
        The network.
    store : path, optional
        A folder for what is done; a run that was stopped goes on from there.
    tell : callable, optional
        Hears how far it is.
    plan : Plan, optional
        Neighbourhoods to ask about; by default they are looked for.
    """
    tell, loaded = tell or be_silent, asked.loaded
    n_variables = table.x_bmd.shape[2]
    if plan is None:
        plan = make_plan(table.x_bmd[0], table.rows[0], lambda share: tell(SCREENED * share, "looking at all pairs"))
    about = f"{table.fingerprint()} {spell_source(loaded)} {loaded.header.checksum} {plan.fingerprint()}"
    shelf = Shelf(store, about)
    todo = [k for k in range(len(plan.hoods)) if k not in shelf]
    opener = asked.handed_over()
    blocks = (Block(opener, table.part(plan.hoods[k].columns), plan.hoods[k]) for k in todo)
    clock = _Clock(len(plan.hoods), len(todo), tell)
    clock.announce(estimate_seconds(loaded, len(todo) * len(table.x_bmd), table.x_bmd.shape[1], plan.size))
    for number, pairs in asked.executor.run(ask_block, blocks):
        shelf.put(todo[number], pairs)
        clock.tick()
    return join([shelf.get(k) for k in range(len(plan.hoods))], plan, n_variables)


def ask_block(block: Block) -> Pairs:
    """What the network says of pairs with an end in the core of a neighbourhood; a mean over the passes."""
    assert block.hood is not None
    said = run_network(block.opener.open(), *block.table).each_table(len(block.table.x_bmd))[0]
    return _read_block(said, block.hood.columns, *block.hood.answered())


def _read_block(said: Said, columns: Indices, a: Indices, b: Indices) -> Pairs:
    """Answers on pairs (a, b) of a neighbourhood, turned so that i < j."""
    turn = columns[a] > columns[b]
    a, b = np.where(turn, b, a), np.where(turn, a, b)

    def both(p_kk: Any) -> Floats32 | None:
        return None if p_kk is None else np.stack([p_kk[a, b], p_kk[b, a]], axis=-1).astype(np.float32)

    direction, hidden = both(said.direction), both(said.hidden)
    return Pairs(
        columns[a],
        columns[b],
        ((said.classes[a, b] + said.classes[b, a]) / 2).astype(np.float32),
        None if direction is None else np.asarray((direction[:, 0] + 1 - direction[:, 1]) / 2, dtype=np.float32),
        both(said.compelled),
        None if hidden is None else hidden.mean(axis=1),
        both(said.ancestor),
    )


def estimate_wide_memory(
    loaded: Weights, shape: tuple[int, int, int], rows: float, *, matrices: bool, n_workers: int = 0
) -> float:
    """Bytes that a wide table takes on this machine, from the table in memory to the result.

    Parameters
    ----------
    loaded : Weights
        The network.
    shape : (int, int, int)
        Passes, rows and columns of the table.
    rows : float
        Independent rows that a pass is worth, which decide about the size of neighbourhoods.
    matrices : bool
        Whether the result has matrices of all pairs.
    n_workers : int
        Other processes of this machine that do the work; 0: this one does.
    """
    n_passes, n_rows, n_columns = shape
    core, size = hood_size(rows)
    n_answers = n_columns * (size - core / 2)
    network = getattr(loaded, "network", None)
    one = 0.0
    if network is not None and loaded_on_cpu(network):
        at_once = min(n_passes, chunk_size(n_rows, size))
        width = min(size, n_columns)
        one = estimate_memory(network.config, at_once, n_rows, width, longest_piece(loaded, width))
    return BYTES_AT_LEAST + max(
        BYTES_PER_CELL * n_rows * n_columns + BYTES_PER_PRODUCT * min(CELLS_AT_ONCE, n_columns**2),
        BYTES_PER_ANSWER * n_answers + (n_workers * (one + BYTES_PER_WORKER) or one),
        BYTES_PER_JOINED * n_answers,
        BYTES_PER_ENTRY * n_columns**2 if matrices else 0.0,
    )


def check_wide_memory(table: Wide, asked: Asked, matrix_up_to: int) -> None:
    """Refuse a wide table that would not fit into memory, before anything is done about it."""
    n_passes, n_rows, n_columns = table.x_bmd.shape
    n_workers = asked.executor.n_workers if isinstance(asked.executor, Processes) else 0

    def estimate(n_columns: int) -> float:
        shape, matrices = (n_passes, n_rows, n_columns), n_columns <= matrix_up_to
        return estimate_wide_memory(asked.loaded, shape, table.rows[0], matrices=matrices, n_workers=n_workers)

    refuse_beyond(estimate(n_columns), estimate, n_rows, n_columns)


# ── plan and join ─────────────────────────────────────────────────────────────────────────────────────────


class Plan(NamedTuple):
    """What is asked about a wide table."""

    candidates: Candidates
    hoods: list[Neighbourhood]
    chance: Chance = Chance(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
    """What chance does to the pairs of the neighbourhoods."""

    def fingerprint(self) -> str:
        """Tells other neighbourhoods from these, such as those that another version would choose."""
        seen = hashlib.blake2b(digest_size=8)
        for hood in self.hoods:
            seen.update(np.asarray(hood.columns, dtype=np.int64).tobytes() + b";")
        return seen.hexdigest()

    @property
    def size(self) -> int:
        """Columns of the largest neighbourhood."""
        return max((len(hood.columns) for hood in self.hoods), default=0)


def make_plan(x_md: Tensor, rows: float, tell: Callable[[float], None] | None = None) -> Plan:
    """Screen all pairs, put columns into neighbourhoods, and see what chance does to these.

    Parameters
    ----------
    x_md : Tensor, shape (M, D)
        Standardised columns.
    rows : float
        Independent rows they are worth.
    tell : callable, optional
        Hears the share of the work that is done.
    """
    candidates = find_candidates(x_md, tell=tell)
    hoods = group_columns(candidates, x_md.shape[1], *hood_size(rows))
    return Plan(candidates, hoods, weigh_chance(x_md, candidates, hoods, rows))


def join(parts: Sequence[Pairs], plan: Plan, n_variables: int) -> Joined:
    """Means over the neighbourhoods that answered; what lies elsewhere is estimated from pairs seen by chance.

    Examples
    --------
    >>> classes = np.array([[0.1, 0.9, 0.0]], dtype=np.float32)
    >>> parts = [Pairs(np.array([0]), np.array([1]), classes), Pairs(np.array([0]), np.array([1]), classes[:, ::-1])]
    >>> plan = Plan(Candidates(np.array([0]), np.array([1]), np.ones(1, dtype=np.float32)), [])
    >>> join(parts, plan, 3).pairs.classes.round(2).tolist()
    [[0.05000000074505806, 0.8999999761581421, 0.05000000074505806]]
    """
    keys = np.concatenate([part.i * n_variables + part.j for part in parts])
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], keys[order][1:] != keys[order][:-1]]))
    counts = np.diff(np.append(starts, len(keys)))
    keys = keys[order][starts]

    def mean(name: str) -> Floats32:
        p = np.concatenate([getattr(part, name) for part in parts])[order]
        return np.asarray(np.add.reduceat(p, starts) / counts.reshape(-1, *[1] * (p.ndim - 1)), dtype=np.float32)

    pairs = Pairs(keys // n_variables, keys % n_variables, **{name: mean(name) for name in parts[0].answers()})
    pairs = _leave_to_chance(pairs, plan.chance.at(keys))
    is_named = np.isin(keys, plan.candidates.keys(n_variables))
    p = pairs.classes
    kept = is_named | (p[:, SKELETON] >= KEPT_FROM) | (p[:, MORAL] >= KEPT_FROM)
    n_elsewhere = n_variables * (n_variables - 1) // 2 - int(kept.sum())
    return Joined(pairs.keep(kept), _estimate_elsewhere(pairs.keep(~is_named), n_elsewhere), plan)


def _leave_to_chance(pairs: Pairs, times: Floats32) -> Pairs:
    """Answers when pairs without any relation are so many times likelier than the network believes.

    Directions are answers about pairs that are linked: they stay.
    """
    classes = pairs.classes.copy()
    classes[:, NONE] *= times
    total = classes.sum(axis=1)
    less = np.where(times > 1, total, 1.0)
    return pairs._replace(
        classes=classes / total[:, None],
        hidden=None if pairs.hidden is None else pairs.hidden / less,
        ancestor=None if pairs.ancestor is None else pairs.ancestor / less[:, None],
    )


def _estimate_elsewhere(unnamed: Pairs, n_elsewhere: int) -> dict[str, float]:
    """What to believe of pairs that nobody looked at, from those that were seen without being named by the screen.

    Neighbourhoods show such pairs since both ends have to do with something third, so that there are more links among
    them than elsewhere. How many there are elsewhere was counted in simulated tables: `MISSED` for each one here, but
    no larger share than here. Half a link is added, so that nothing is impossible. Of hidden causes and ancestors,
    which reach further, the mean is taken.
    """
    shares, n_here = {}, len(unnamed.i)
    for name, kind in (("skeleton", SKELETON), ("moral", MORAL)):
        here = float(unnamed.classes[:, kind].sum(dtype=np.float64)) + 0.5
        shares[name] = min(MISSED * here / max(n_elsewhere, 1), here / (n_here + 1))
    for name, values in (("hidden", unnamed.hidden), ("ancestor", unnamed.ancestor)):
        shares[name] = 0.0 if values is None or not n_here else float(values.mean())
    return shares


def tell_of_blocks(joined: Joined | None, n_columns: int) -> tuple[str, ...]:
    """What to say of a table that was asked about in neighbourhoods."""
    if joined is None:
        return ()
    n_all, n_seen, plan = n_columns * (n_columns - 1) // 2, len(joined.pairs.i), joined.plan
    several = f"{len(plan.hoods)} overlapping neighbourhoods of up to {plan.size}"
    asked = f"{n_columns} columns were asked about in {several if len(plan.hoods) > 1 else 'one neighbourhood'}"
    if n_seen == n_all:
        return (f"{asked}: all pairs have an answer of their own",)
    missed = joined.elsewhere["skeleton"]
    n_missed = round(missed * (n_all - n_seen))
    links = f"{n_missed} {'link is' if n_missed == 1 else 'links are'}"
    return (
        f"{asked}: {n_seen} of {n_all} pairs have an answer of their own; each of the others is a link with "
        f"probability {missed:.1e}, so that about {links} expected to have been missed, "
        "give or take a factor of three or more",
    )


# ── progress and what is done ─────────────────────────────────────────────────────────────────────────────


class _Clock:
    """Says how many neighbourhoods are done, and how long the others will take."""

    def __init__(self, n_all: int, n_todo: int, tell: Progress) -> None:
        self.n_all, self.n_todo, self.n_done, self.tell, self.began = n_all, n_todo, 0, tell, time.monotonic()

    def announce(self, seconds: float) -> None:
        self._say(spell_seconds(seconds))

    def tick(self) -> None:
        self.n_done += 1
        left = (time.monotonic() - self.began) / self.n_done * (self.n_todo - self.n_done)
        self._say(f"{spell_seconds(left)} left")

    def _say(self, sentence: str) -> None:
        n_before = self.n_all - self.n_todo
        share = SCREENED + (1 - SCREENED) * (n_before + self.n_done) / self.n_all
        self.tell(share, f"{n_before + self.n_done} of {self.n_all} neighbourhoods: {sentence}")


DRAFT = ".part"
"""Suffix of files that are not whole yet."""


class Shelf:
    """Answers of neighbourhoods that are done, in a folder if there is one; else in memory."""

    def __init__(self, folder: str | os.PathLike[str] | None, about: str) -> None:
        self.folder = None if folder is None else Path(folder)
        self.held: dict[int, Pairs] = {}
        if self.folder is not None:
            self._open(self.folder, about)

    def _open(self, folder: Path, about: str) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            note = folder / "run.json"
            is_free = not any(path.suffix != DRAFT for path in folder.iterdir())
            if is_free:
                text = json.dumps({"format": "graphbam-run", "about": about})
                self._write(note, lambda file: file.write(text.encode()))
            found = json.loads(note.read_text(encoding="utf-8")).get("about") if note.exists() else None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{folder} cannot be used as a store: {error}. Choose another folder.") from None
        if found != about:
            what = (
                "other files"
                if found is None
                else "what was done for another table, by other weights or by another version"
            )
            raise ConfigError(f"{folder} holds {what}. Choose another ", Setting("store"), ", or remove it.")

    def _path(self, k: int) -> Path:
        assert self.folder is not None
        return self.folder / f"neighbourhood-{k:05d}.npz"

    def __contains__(self, k: int) -> bool:
        return k in self.held if self.folder is None else self._path(k).exists()

    def put(self, k: int, pairs: Pairs) -> None:
        """Keep what is done: a file is there whole or not at all."""
        if self.folder is None:
            self.held[k] = pairs
            return
        arrays: dict[str, Any] = {"i": pairs.i, "j": pairs.j, **pairs.answers()}
        self._write(self._path(k), lambda file: np.savez(file, **arrays))

    @staticmethod
    def _write(path: Path, write: Callable[[BinaryIO], object]) -> None:
        """By a draft with a name of its own: two workers may be asked about the same table."""
        draft = path.with_name(f"{path.stem}-{secrets.token_hex(4)}{DRAFT}")
        with draft.open("wb") as file:
            write(file)
        os.replace(draft, path)

    def get(self, k: int) -> Pairs:
        """What was kept."""
        if self.folder is None:
            return self.held[k]
        with np.load(self._path(k)) as file:
            return Pairs(**{name: file[name] for name in file.files})
