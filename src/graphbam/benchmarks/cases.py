"""Which tables there are to judge on, by name, and the tables themselves: the same numbers for every method.

A simulated case is called ``MECHANISM-dVARIABLES-mSAMPLES``, such as ``cosine-d50-m200``; the name decides its tables,
whatever suite, machine or method asks for them. A suite is a named list of such cases. Tables on disk come by the path
of a folder: their case is called after the last folders of that path. A twist behind a plus sign makes other tables of
them: ``cosine-d20-m500+hidden`` lacks variables that act on others, of ``+targets`` some cells were set by
interventions, of ``tables+gaps10`` a tenth of the cells is missing. A folder of cause-effect pairs is one case per
collection, with a table per pair.
"""

from __future__ import annotations

import csv
import dataclasses
import difflib
import fnmatch
import functools
import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbam.benchmarks.pairs import LISTING, CausePair, read_pairs
from graphbam.errors import ConfigError, TableError

if TYPE_CHECKING:
    from graphbam.simulation import Tables

__all__ = ["SUITES", "Case", "Problem", "derive_seed", "draw_problem", "resolve_cases", "unpack_tables"]

PAPER_FAMILIES = ("chebyshev", "linear", "sine", "cosine", "square", "cubic", "multiplicative", "mlp")
"""Mechanisms the paper tests on."""

SAMPLE_SIZES = (50, 100, 200, 500, 1000)
"""Samples of the sweeps, and of the measurements of time."""

UNSEEN_SHAPES = ((10, 200), (20, 200), (20, 500), (50, 200), (100, 50), (100, 200), (100, 500))
"""Variables and samples of the mechanisms that no preset trains on."""

MAX_ROWS, MAX_VARIABLES = 600, 110
"""Third-party tables: longer ones are thinned out to so many rows, wider ones left out."""

MANIFEST = "manifest.csv"
"""List of third-party tables in the folder that holds them: columns name, family, acyclic (yes, no, undirected). Where
no table has the last, the graphs themselves say so."""

TWISTS = ("hidden", "targets")
"""What may be different about simulated tables; ``gapsN``, N % of the cells missing, about any."""

_SIMULATED = re.compile(r"(?P<mechanism>[a-z_]+)-d(?P<d>\d+)-m(?P<m>\d+)(?:\+(?P<twist>[a-z]+\d*))?")
_GAPS = re.compile(r"gaps(?P<percent>[1-9]\d?)")


@dataclasses.dataclass(frozen=True)
class Case:
    """Tables of one kind and shape: a cell of the results."""

    name: str
    source: Literal["simulated", "tables", "folder", "pairs"]
    family: str
    """What belongs together in means: the mechanism, or the family of third-party tables."""
    n_variables: int
    n_samples: int
    mechanism: str | None = None
    folder: str | None = None
    """Where a table on disk lies."""
    is_dag: bool = True
    """Whether the truth is a DAG without hidden common causes; only then it has a moral graph and a CPDAG."""
    is_directed: bool = True
    """Whether the edges of the truth have directions; those of a graph with loops have, too."""
    twist: str | None = None
    """What is different about its tables: one of `TWISTS`, or ``gaps10``."""
    n_tables: int = 1
    """How many tables there are on disk."""

    def count_trials(self, wanted: int) -> int:
        """How many tables it has: as many as wanted if they are simulated, all of those on disk."""
        return wanted if self.source == "simulated" else self.n_tables


# ── suites ──────────────────────────────────────────────────────────────────────────────────────────────────


def name_case(mechanism: str, n_variables: int, n_samples: int, twist: str | None = None) -> str:
    """Name of a simulated case.

    Examples
    --------
    >>> name_case("cosine", 50, 200), name_case("tree", 20, 500, "hidden")
    ('cosine-d50-m200', 'tree-d20-m500+hidden')
    """
    return f"{mechanism}-d{n_variables}-m{n_samples}" + (f"+{twist}" if twist else "")


def _cross(mechanisms: Iterable[str], shapes: Sequence[tuple[int, int]]) -> list[str]:
    return [name_case(mechanism, d, m) for mechanism in mechanisms for d, m in shapes]


def _sweep(mechanisms: Iterable[str], n_variables: int) -> list[str]:
    return _cross(mechanisms, [(n_variables, m) for m in SAMPLE_SIZES])


def _twist(names: Iterable[str], *twists: str) -> list[str]:
    return [f"{name}+{twist}" for name in names for twist in twists]


def _join(*parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))


_UNDIRECTED = _join(
    _cross(PAPER_FAMILIES, [(50, 200), (100, 50), (10, 200), (20, 500)]),
    _sweep(("chebyshev", "cosine"), 100),
    _cross(["mlp"], [(20, 200), (50, 200), (100, 200)]),  # the paper does not state M; 200 as in its other figures
)
_CPDAG = _join(
    _cross(PAPER_FAMILIES, [(20, 200), (50, 200), (100, 500), (100, 50)]), _sweep(("chebyshev", "sine"), 100)
)
_RUNTIME = _join(*(_sweep(["chebyshev"], d) for d in (10, 20, 50, 100)))

_UNSEEN = ("postnonlinear", "sigmoid", "tree")
_SMALL = _cross(_UNSEEN, [(10, 200), (20, 500)])

SUITES: dict[str, tuple[str, ...]] = {
    "quick": _join(_cross(("chebyshev", "linear", "cosine"), [(10, 200), (20, 200), (50, 200)])),
    "undirected": _UNDIRECTED,
    "cpdag": _CPDAG,
    "runtime": _RUNTIME,
    "paper": _join(_UNDIRECTED, _CPDAG, _RUNTIME),
    "unseen": _join(_cross(_UNSEEN, UNSEEN_SHAPES)),
    "hidden": _join(_twist(_SMALL, "hidden")),
    "targets": _join(_twist(_SMALL, "targets")),
    "gaps": _join(_twist(_SMALL, "gaps10", "gaps30")),
}
"""Names of simulated cases by suite."""


# ── words to cases ──────────────────────────────────────────────────────────────────────────────────────────


def resolve_cases(words: Iterable[str]) -> list[Case]:
    """Find the cases that are asked for.

    Parameters
    ----------
    words : iterable of str
        Names of suites, names of simulated cases (also of ones in no suite), patterns such as ``*-d50-m200`` over the
        cases of all suites, or paths of folders with labelled tables or with cause-effect pairs. A word that is both a
        name and a folder is taken as the name; write ``./word`` for the folder. Behind a folder, ``+gaps10`` removes a
        tenth of the cells.

    Returns
    -------
    list of Case
        Each once, in the order of the words.

    Raises
    ------
    ConfigError
        If a word means nothing, or two different tables have the same name.

    Examples
    --------
    >>> [case.name for case in resolve_cases(["tree-d7-m30", "cosine-d100-*"])]  # doctest: +ELLIPSIS
    ['tree-d7-m30', 'cosine-d100-m50', 'cosine-d100-m100', ...]
    >>> resolve_cases(["cosinus-d50-m200"])
    Traceback (most recent call last):
    graphbam.errors.ConfigError: case 'cosinus-d50-m200': no mechanism is called 'cosinus'; did you mean 'cosine'?
    """
    cases: dict[str, Case] = {}
    for word in words:
        for case in _resolve(word):
            if cases.setdefault(case.name, case) != case:
                places = f"{cases[case.name].folder} and {case.folder}"
                raise ConfigError(f"two tables are called {case.name!r}: {places}; rename one of the folders")
    if not cases:
        raise ConfigError(f"no case is asked for; name a suite ({', '.join(SUITES)}), cases, or a folder of tables")
    return list(cases.values())


def _resolve(word: str) -> list[Case]:
    if word in SUITES:
        return [_simulated(name) for name in SUITES[word]]
    if _SIMULATED.fullmatch(word):
        return [_simulated(word)]
    if found := fnmatch.filter(_join(*SUITES.values()), word):
        return [_simulated(name) for name in found]
    if Path(word).expanduser().is_dir():
        return _on_disk(Path(word).expanduser())
    folder, _, twist = word.rpartition("+")
    if folder and Path(folder).expanduser().is_dir():
        _check_twist(word, twist, ())
        return [_remove_from(case, twist) for case in _on_disk(Path(folder).expanduser())]
    near = difflib.get_close_matches(word, _join(SUITES, *SUITES.values()), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are the suites {', '.join(SUITES)}."
    raise ConfigError(
        f"no case is called {word!r}, and it is no folder; {hint} A simulated case is called like cosine-d50-m200."
    )


def _check_twist(word: str, twist: str, known: Sequence[str]) -> None:
    if twist not in known and not _GAPS.fullmatch(twist):
        choices = ", ".join([*known, "gaps10 (or another percentage)"])
        raise ConfigError(f"case {word!r}: nothing is known of the twist {twist!r}; there are {choices}")


def _remove_from(case: Case, twist: str) -> Case:
    if case.source == "pairs":
        raise ConfigError(f"case {case.name}+{twist}: cells are removed from tables, not from pairs")
    return dataclasses.replace(case, name=f"{case.name}+{twist}", twist=twist)


def _simulated(name: str) -> Case:
    from graphbam.simulation import MECHANISMS

    match = _SIMULATED.fullmatch(name)
    assert match is not None
    mechanism, d, m, twist = match["mechanism"], int(match["d"]), int(match["m"]), match["twist"]
    if mechanism not in MECHANISMS:
        near = difflib.get_close_matches(mechanism, MECHANISMS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(MECHANISMS))}"
        raise ConfigError(f"case {name!r}: no mechanism is called {mechanism!r}; {hint}")
    if d < 2 or m < 2:
        raise ConfigError(f"case {name!r}: a table needs at least two variables and two samples")
    if twist:
        _check_twist(name, twist, TWISTS)
    is_dag = twist != "hidden"
    return Case(name_case(mechanism, d, m, twist), "simulated", mechanism, d, m, mechanism, is_dag=is_dag, twist=twist)


# ── tables on disk ──────────────────────────────────────────────────────────────────────────────────────────


def _on_disk(folder: Path) -> list[Case]:
    """The labelled tables of a folder and its sub-folders, or the one that lies in it."""
    from graphbam.tables.labelled import find_labelled

    if (folder / LISTING).is_file():
        return _read_collections(folder.resolve())
    places = find_labelled(folder.resolve())
    root = folder.resolve().parent if places == [folder.resolve()] else folder.resolve()
    listings = _read_manifest(root)
    if listings is None:
        return [_read_case(place, root) for place in places]
    listed = [place for place in places if place.parent == root and place.name in listings]
    if not listed:
        raise TableError(f"{root / MANIFEST} names none of the tables in {folder}; list them, or move it away")
    cases = [_read_case(place, root, listings[place.name]) for place in listed]
    if wide := [case.name for case in cases if case.n_variables > MAX_VARIABLES]:
        warnings.warn(f"left out, with more than {MAX_VARIABLES} variables: {', '.join(wide)}", stacklevel=2)
    return [case for case in cases if case.n_variables <= MAX_VARIABLES]


def _read_collections(folder: Path) -> list[Case]:
    """Collections of cause–effect pairs, a table per pair."""
    counts = Counter(pair.collection for pair in _read_pairs(str(folder)))
    return [
        Case(f"{folder.name}/{name}", "pairs", name, 2, MAX_ROWS, folder=str(folder), n_tables=count)
        for name, count in counts.items()
    ]


@functools.lru_cache(maxsize=2)
def _read_pairs(folder: str) -> tuple[CausePair, ...]:
    """All pairs of a folder; the same half of them swapped and the same rows drawn every time."""
    return tuple(read_pairs(Path(folder), np.random.default_rng(derive_seed("pairs")), max_rows=MAX_ROWS))


class Listing(NamedTuple):
    """A line of the manifest: what it says of a table."""

    family: str
    acyclic: str | None
    """yes, no (there are loops), undirected, or None: not said."""


def _read_manifest(root: Path) -> dict[str, Listing] | None:
    """Lines by name of the table; None if the folder has no manifest."""
    path = root / MANIFEST
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    if missing := {"name", "family"} - set(lines[0] if lines else ()):
        raise TableError(f"{path} lacks the column {sorted(missing)[0]!r}; it needs name and family")
    listings = {line["name"]: Listing(line["family"], line.get("acyclic")) for line in lines}
    if len(listings) < len(lines):
        raise TableError(f"{path} has {len(lines)} lines for {len(listings)} names; drop those that are there twice")
    return listings


def _read_case(place: Path, root: Path, listing: Listing | None = None) -> Case:
    """A table as a case; `listing` is its line in the manifest, if there is one."""
    from graphbam.graphs.graph import is_dag
    from graphbam.tables.labelled import read_labelled, refuse_gaps

    table = read_labelled(place)
    n_rows, d = table.x_md.shape
    if n_rows < 2 or d < 2:
        raise TableError(f"{place}: a table of {n_rows} × {d} is nothing to judge on; use at least 2 × 2")
    refuse_gaps(table, place)
    name, is_acyclic = str(Path(root.name) / place.relative_to(root)), is_dag(table.adjacency)
    if listing is not None and listing.acyclic == "yes" and not is_acyclic:
        raise TableError(f"{root / MANIFEST} calls {place.name!r} acyclic, but its graph.csv has a cycle")
    is_complete = table.hidden_dd is None or not table.hidden_dd.any()
    if listing is None:
        return Case(name, "folder", root.name, d, n_rows, folder=str(place), is_dag=is_acyclic and is_complete)
    is_acyclic = is_acyclic if listing.acyclic is None else listing.acyclic == "yes"
    rows, is_directed = min(n_rows, MAX_ROWS), listing.acyclic != "undirected"
    source, is_whole = str(place), is_acyclic and is_complete
    return Case(name, "tables", listing.family, d, rows, None, source, is_whole, is_directed)


# ── tables of a case ────────────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A table as methods get it, and the truth, which they do not get."""

    x_md: NDArray[np.float64]
    """Columns with mean 0 and standard deviation 1; constant ones are 0, missing cells NaN."""
    adjacency: NDArray[np.int8]
    is_dag: bool
    """Whether the truth is a DAG without hidden common causes; of others, there is no moral graph and no CPDAG."""
    is_directed: bool = True
    """Whether the edges of the truth have directions."""
    hidden_dd: NDArray[np.int8] | None = None
    """Pairs with a hidden common cause, symmetric; None: nothing is known of them."""
    set_md: NDArray[np.bool_] | None = None
    """Cells that an intervention set; None: there was none."""
    weight: float | None = None
    """How much a cause–effect pair counts; None: it is none."""

    @property
    def setting(self) -> str:
        """What is special about the table, in a word: pairs, gaps, hidden, targets or plain."""
        if self.weight is not None:
            return "pairs"
        special = {
            "gaps": bool(np.isnan(self.x_md).any()),
            "targets": self.set_md is not None,
            "hidden": self.hidden_dd is not None,
        }
        return next((name for name, holds in special.items() if holds), "plain")

    def fingerprint(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of table and truth: equal for the same problem only."""
        digest = hashlib.sha256(f"{self.x_md.shape} {self.is_dag} ".encode())
        for part in (self.x_md, self.adjacency, self.hidden_dd, self.set_md):
            if part is not None:
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]


def draw_problem(case: Case, trial: int) -> Problem:
    """Simulate or read one table of a case.

    By one thread, however many there are: sums that several share are rounded otherwise, and a table that differs in
    its last digits has another fingerprint.

    Examples
    --------
    >>> (case,) = resolve_cases(["sine-d5-m40"])
    >>> first, again, other = (draw_problem(case, trial) for trial in (0, 0, 1))
    >>> first.fingerprint() == again.fingerprint() != other.fingerprint()
    True
    """
    from graphbam.nn.threads import threads

    with threads(1):
        return _draw_problem(case, trial)


def _draw_problem(case: Case, trial: int) -> Problem:
    import torch

    from graphbam.tables.standard import standardise

    problem = _simulate(case, trial) if case.folder is None else _read(case, case.folder, trial)
    if case.twist is None or not (gaps := _GAPS.fullmatch(case.twist)):
        scaled = standardise(torch.from_numpy(problem.x_md), robust=False, clip=float("inf"))
        return dataclasses.replace(problem, x_md=np.ascontiguousarray(scaled.numpy()))
    rng = np.random.default_rng(derive_seed("gaps", case.name, trial))
    observed_md = rng.random(problem.x_md.shape) >= int(gaps["percent"]) / 100
    seen = torch.from_numpy(observed_md)
    scaled = standardise(torch.from_numpy(problem.x_md), robust=False, clip=float("inf"), observed=seen)
    return dataclasses.replace(problem, x_md=np.where(observed_md, scaled.numpy(), np.nan))


def unpack_tables(tables: Tables) -> list[Problem]:
    """Simulated tables as problems, with all that is known of them; missing cells are NaN.

    Examples
    --------
    >>> import torch
    >>> from graphbam.simulation import SimulationConfig, sample_tables
    >>> config = SimulationConfig(hidden=1.0)
    >>> tables = sample_tables(torch.Generator().manual_seed(0), config, n_tables=2, n_variables=6, n_samples=50)
    >>> [bool(problem.hidden_dd.any()) for problem in unpack_tables(tables)]
    [True, True]
    """
    x_bmd = tables.x_bmd.double().numpy()
    if tables.observed_bmd is not None:
        x_bmd = np.where(tables.observed_bmd.numpy(), x_bmd, np.nan)
    set_bmd = [None] * len(x_bmd) if tables.set_bmd is None else list(tables.set_bmd.numpy())
    has_cpdag_b = (tables.compelled_bdd >= 0).flatten(1).all(1).tolist()
    truths = zip(x_bmd, tables.dag_bdd.numpy(), has_cpdag_b, tables.hidden_bdd.numpy(), set_bmd, strict=True)
    return [
        Problem(
            x_md, dag_dd, has_cpdag, hidden_dd=hidden_dd, set_md=None if set_md is None or not set_md.any() else set_md
        )
        for x_md, dag_dd, has_cpdag, hidden_dd, set_md in truths
    ]


def derive_seed(*parts: object, bits: int = 32) -> int:
    """A seed from words and numbers, the same on every machine.

    Examples
    --------
    >>> derive_seed("table", "cosine-d50-m200", 0) == derive_seed("table", "cosine-d50-m200", 0)
    True
    >>> derive_seed("table", "cosine-d50-m200", 0) == derive_seed("table", "cosine-d50-m200", 1)
    False
    """
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - bits)


def _simulate(case: Case, trial: int) -> Problem:
    import torch

    from graphbam.simulation import SimulationConfig, sample_tables

    plain = name_case(case.family, case.n_variables, case.n_samples)
    is_other = case.twist in TWISTS  # tables with gaps are the plain ones, with cells removed
    rng = torch.Generator().manual_seed(derive_seed("table", case.name if is_other else plain, trial, bits=63))
    config = SimulationConfig.paper().narrow(mechanism=case.mechanism)
    config = dataclasses.replace(
        config, hidden=float(case.twist == "hidden"), interventions=float(case.twist == "targets")
    )
    tables = sample_tables(rng, config, n_tables=1, n_variables=case.n_variables, n_samples=case.n_samples)
    (problem,) = unpack_tables(tables)
    if not is_other:
        return Problem(problem.x_md, problem.adjacency, case.is_dag)
    return dataclasses.replace(problem, hidden_dd=problem.hidden_dd if case.twist == "hidden" else None)


def _read(case: Case, folder: str, trial: int) -> Problem:
    from graphbam.tables.labelled import read_labelled

    if case.source == "pairs":
        pair = [pair for pair in _read_pairs(folder) if pair.collection == case.family][trial]
        return Problem(
            pair.x_m2, np.array([[0, pair.is_forward], [not pair.is_forward, 0]], np.int8), True, weight=pair.weight
        )
    table = read_labelled(Path(folder), MAX_ROWS if case.source == "tables" else None)
    return Problem(table.x_md, table.adjacency, case.is_dag, case.is_directed, table.hidden_dd, table.set_md)
