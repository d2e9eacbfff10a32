"""Weights on disk: safetensors with a JSON header ⇄ a network. Loading never runs code.

One file holds the tensors and, in its header under `graphbam`, what is needed to use and to trust them: a `Header`, and
a checksum over all of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from graphbam.errors import ConfigError, WeightsError
from graphbam.machine.disk import clear_errors, make_folder, replacing
from graphbam.nn.edge_net import ANSWERS, CLASSES, SET, EdgeNet
from graphbam.nn.immorality_net import ImmoralityNet
from graphbam.nn.network import Config, Network
from graphbam.nn.structures import CANDIDATE, Structures, find_structures, gather_columns

Net = TypeVar("Net", bound=Network)
Source = str | os.PathLike[str]
"""Weights by name, if they are in the package, or by path."""

FORMAT = 2
"""Version of the header; a file with a higher one needs a newer graphbam."""

CHECKPOINT = "checkpoint"
"""Kind of a file that holds a whole training run instead of a network."""

CELLS_PER_CHUNK = 2_000_000
"""Tables are sent through the network in chunks of about so many cells, to bound memory."""

CELLS_IN_CACHE = 50_000
"""The same for structures on a CPU: one large chunk takes a fifth longer there."""

TELLING_ROWS = 5
"""Rows in which an experiment must set a variable to tell which way its links point."""

ROWS_PER_CHUNK = 60_000
"""Most rows in one chunk: attention over attributes launches one block per row, and GPUs allow 65,535."""


# ── what a file says of its weights ───────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass(frozen=True, kw_only=True)
class Calibration(Config):
    """Temperature and offsets that make probabilities mean what they say: of logits / T + b."""

    temperature: float = 1.0
    offsets: tuple[float, ...] = (0.0,)
    """One for each class of edges; a single one for common children."""

    def __post_init__(self) -> None:
        if not (0 < self.temperature < math.inf and all(map(math.isfinite, self.offsets))):
            raise ConfigError(f"temperature={self.temperature} and offsets={self.offsets} calibrate nothing")

    def apply(self, logits: Tensor) -> Tensor:
        """Calibrated logits."""
        return logits / self.temperature + logits.new_tensor(self.offsets)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Partner(Config):
    """Edge weights that the evidence of collider weights was fitted to."""

    name: str
    checksum: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Effort(Config):
    """What training cost."""

    step: int = 0
    tables: int = 0
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunProgress(Effort):
    """How far a run has come, over all its continuations."""

    skipped: int = 0
    """Steps without effect: their gradient was not finite."""
    history: tuple[Mapping[str, float], ...] = ()
    """Coarse learning curve, one entry per report, thinned so that it stays short."""
    before: Effort = Effort()
    """Of the runs that made the weights this one began with."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunProgress:
        """Inverse of `to_dict`; unknown names are refused."""
        return super().from_dict(dict(values) | {"before": Effort.from_dict(values.get("before") or {})})

    def total(self) -> Effort:
        """All that is behind the weights, earlier runs included."""
        names = [field.name for field in dataclasses.fields(Effort)]
        return Effort(**{name: getattr(self, name) + getattr(self.before, name) for name in names})

    def note(self, entry: Mapping[str, float], most: int = 400) -> RunProgress:
        """With one more point in the curve; every second one is dropped when it gets long."""
        history = (*self.history, entry)
        return dataclasses.replace(self, history=history[::2] if len(history) > most else history)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Header:
    """What is needed to use weights, and to trust them.

    Examples
    --------
    >>> header = Header(kind="edges", progress=RunProgress(step=100), domain={"n_samples": (20.0, 1500.0)})
    >>> Header.from_dict(header.to_dict()) == header
    True
    >>> Header.from_dict({"format": 2, "kind": "edges", "colour": "red"})
    Traceback (most recent call last):
    graphbam.errors.ConfigError: the header has unknown fields colour; use a newer graphbam
    """

    kind: str = EdgeNet.kind
    """The network's kind; `save_weights` enters it."""
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The network's config; `save_weights` enters it."""
    train: Mapping[str, Any] | None = None
    """The config of the training, as `graphbam.training.TrainConfig.from_dict` reads it, network apart."""
    progress: RunProgress | None = None
    """What the training cost."""
    calibration: Calibration | None = None
    """Of the classes, or of common children."""
    answers: Mapping[str, Mapping[str, float]] | None = None
    """Temperature, offset and doubt of each answer beyond the classes (`answer_probabilities`)."""
    domain: Mapping[str, tuple[float, float]] | None = None
    """Ranges of the tables that the weights were trained on (`graphbam.tables`)."""
    evidence: Mapping[str, float] | None = None
    """How the answers of both networks are weighed (`graphbam.directions`); in collider weights."""
    partner: Partner | None = None
    """Edge weights that the evidence was fitted to."""
    notes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What else was done to the weights, such as fine-tuning."""
    checksum: str | None = None
    """Of the file that the weights were read from; None if they are new."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is not known is left out, and so is the checksum: it belongs to a file."""
        values: dict[str, Any] = {"format": FORMAT, "kind": self.kind}
        for name in (*_PLAIN, *_PARTS):
            value = getattr(self, name)
            if value:
                values[name] = value.to_dict() if isinstance(value, Config) else dict(value)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Header:
        """Inverse of `to_dict`, for files of every version; unknown names are refused."""
        values = _renew(values) if values.get("format") == 1 else dict(values)
        if unknown := sorted(set(values) - {"format", "kind", "sha256", *_PLAIN, *_PARTS}):
            raise ConfigError(f"the header has unknown fields {', '.join(unknown)}; use a newer graphbam")
        known: dict[str, Any] = {name: values[name] for name in ("kind", *_PLAIN) if values.get(name)}
        known |= {name: part.from_dict(values[name]) for name, part in _PARTS.items() if values.get(name)}
        if "domain" in known:
            known["domain"] = {name: (float(low), float(high)) for name, (low, high) in known["domain"].items()}
        if "answers" in known:
            known["answers"] = {name: _read_numbers(numbers) for name, numbers in known["answers"].items()}
        if "evidence" in known:
            known["evidence"] = _read_numbers(known["evidence"])
        return cls(**known, checksum=values.get("sha256"))


def _read_numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


_PLAIN = ("config", "train", "answers", "domain", "evidence", "notes")
_PARTS: dict[str, type[Config]] = {"progress": RunProgress, "calibration": Calibration, "partner": Partner}


def _renew(old: Mapping[str, Any]) -> dict[str, Any]:
    """A header of the first format in the words of this one; its oldest files all hold edge networks."""
    notes = {name: old[name] for name in ("fine_tuned", "blend") if name in old}
    new = {name: value for name, value in old.items() if name not in ("kind", "network", *notes)}
    held = old.get("network", "edge")
    new["kind"] = {"edge": EdgeNet.kind, "collider": ImmoralityNet.kind}.get(held, held)
    if old.get("kind") == CHECKPOINT:
        new["kind"] = CHECKPOINT
    if "offset" in (calibration := dict(old.get("calibration") or {})):
        calibration["offsets"] = [calibration.pop("offset")]
    return new | {"notes": notes, "calibration": calibration}


# ── networks, ready to use ────────────────────────────────────────────────────────────────────────────────────────


@dataclasses.dataclass(frozen=True)
class Loaded(Generic[Net]):
    """A network ready to use, with its name and header."""

    name: str
    network: Net
    header: Header
    path: str | None = None
    """Where the file lies; None for weights inside the package, and for new ones."""

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device


class Answers(NamedTuple):
    """What weights say of a batch of tables, as probabilities; None where they cannot say it."""

    classes: Tensor
    """Shape (B, D, D, 3): none · skeleton · moral."""
    direction: Tensor | None = None
    """Shape (B, D, D): i → j rather than j → i, given a link."""
    compelled: Tensor | None = None
    """Shape (B, D, D): the CPDAG has i → j, given a link; what this and its transpose lack to one is open."""
    hidden: Tensor | None = None
    """Shape (B, D, D): a hidden common cause of i and j."""
    ancestor: Tensor | None = None
    """Shape (B, D, D): a directed path from i to j."""


class LoadedWeights(Loaded[EdgeNet]):
    """Edge weights: which pairs of variables are linked? With more outputs: which way, and what is behind it?"""

    @property
    def reads_marks(self) -> bool:
        """Whether the network tells cells that were missing or set from others."""
        return self.network.config.marks

    @property
    def gives_answers(self) -> bool:
        """Whether the network says more of a pair than its class."""
        return self.network.config.answers

    def longest(self, n_variables: int) -> int | None:
        """Rows of the longest tables of training with so many variables; longer ones are shown in pieces of so many.

        Where training had no tables as wide, those of its widest count.
        """
        train = self.header.train or {}
        found = (self.header.domain or {}).get("n_samples") or train.get("samples")
        if not found:
            return None
        most, cells = int(max(found)), train.get("largest_table")
        return most if cells is None else min(most, cells // min(n_variables, max(train["variables"])))

    def probabilities(
        self, x_bmd: Tensor, rows: Sequence[float] | None = None, marks_bmd: Tensor | None = None
    ) -> Tensor:
        """Calibrated probabilities (B, D, D, 3) of none · skeleton · moral for a batch of equal-shaped tables.

        `rows` says how many independent rows each is worth, where that is not M (`graphbam.tables.rows`); `marks_bmd`
        which cells were missing or set, for weights that read marks.
        """
        return self.answer(x_bmd, rows, marks_bmd).classes

    def answer(self, x_bmd: Tensor, rows: Sequence[float] | None = None, marks_bmd: Tensor | None = None) -> Answers:
        """All calibrated probabilities of a batch of equal-shaped tables; arguments as in `probabilities`."""
        logits = self.logits(x_bmd, rows, marks_bmd)
        classes = calibrate(logits[..., : len(CLASSES)], self.header.calibration).softmax(-1)
        if not self.gives_answers:
            return Answers(classes)
        said = dict(zip(ANSWERS, logits[..., len(CLASSES) :].double().unbind(-1), strict=True))
        return Answers(
            classes, **answer_probabilities(said, self.header.answers or {}, spread_doubt(marks_bmd, logits))
        )

    def logits(self, x_bmd: Tensor, rows: Sequence[float] | None = None, marks_bmd: Tensor | None = None) -> Tensor:
        """What the network says before calibration, classes first; arguments as in `probabilities`."""
        return run_in_chunks(self.network, x_bmd, rows, marks_bmd, self.longest(x_bmd.shape[2]))


def answer_probabilities(
    logits: Mapping[str, Tensor], calibration: Mapping[str, Mapping[str, float]], share: Tensor | float = 0.0
) -> dict[str, Tensor]:
    """Probabilities from the logits of `ANSWERS`, each (B, D, D), calibrated (`warm`).

    Examples
    --------
    A link of which nothing is known: either direction; one arrow, the other or none in the CPDAG.

    >>> p = answer_probabilities({name: torch.zeros(1, 2, 2) for name in ANSWERS}, {"hidden": {"offset": -2.0}})
    >>> {name: round(p[name][0, 0, 1].item(), 3) for name in ANSWERS}
    {'direction': 0.5, 'compelled': 0.333, 'hidden': 0.119, 'ancestor': 0.5}
    """
    kinds = {name: calibration.get(name, {}) for name in ANSWERS}
    p = {name: warm(logits[name], kinds[name], share).sigmoid() for name in ("direction", "hidden")}
    compelled = warm(logits["compelled"], kinds["compelled"], share)
    ways = torch.stack([compelled, compelled.mT, torch.zeros_like(compelled)])
    paths = doubt_paths(logits["ancestor"], logits["ancestor"].mT, kinds["ancestor"], share)
    return p | {"compelled": ways.softmax(0)[0], "ancestor": paths}


def warm(logits: Tensor, values: Mapping[str, float], share: Tensor | float = 0.0) -> Tensor:
    """Calibrated logits of one answer: z / T · |z| / (|z| + doubt) + offset, where `share` says how much of the doubt.

    What is smaller than the doubt loses most of its weight, and what is much larger keeps it.

    Examples
    --------
    >>> warm(torch.tensor([1.0, -9.0, -9.0]), {"doubt": 3.0}, torch.tensor([1.0, 1.0, 0.0])).tolist()
    [0.25, -6.75, -9.0]
    """
    size = logits.abs().clamp_min(1e-9)
    kept = size / (size + values.get("doubt", 0.0) * share)
    return logits * kept / values.get("temperature", 1.0) + values.get("offset", 0.0)


def doubt_paths(there: Tensor, back: Tensor, values: Mapping[str, float], share: Tensor | float = 0.0) -> Tensor:
    """Probabilities of paths there, calibrated, from the logits of paths there and back.

    The doubt is about which way a path leads, not whether there is one: the two sum to what they did without it, or
    unrelated columns would have paths.

    Examples
    --------
    >>> there, back = torch.tensor([3.0]), torch.tensor([-3.0])
    >>> ways = [doubt_paths(*logits, {"doubt": 6.0}, 1.0).item() for logits in ((there, back), (back, there))]
    >>> [round(p, 3) for p in ways]
    [0.731, 0.269]
    """
    plain = {name: value for name, value in values.items() if name != "doubt"}
    there, back = warm(there, plain), warm(back, plain)
    likelier = F.logsigmoid(there) - F.logsigmoid(back)  # in logs, as odds are
    doubted = warm(likelier, {"doubt": values.get("doubt", 0.0)}, share)
    return ((there.sigmoid() + back.sigmoid()) * doubted.sigmoid()).clamp(max=1.0)


def spread_doubt(marks_bmd: Tensor | None, logits_bddo: Tensor) -> Tensor:
    """The share of the doubt that each pair has, (B, D, D): all in a table of two variables, (2 / D)² of it in others.

    Between few variables, which way a link points shows in the shape of a cloud alone, and shapes differ from world to
    world; between many, also in what is independent of what. Where an experiment set one of the two it shows in that
    too, and there is half the doubt; not so after a few rows (`TELLING_ROWS`).
    """
    n_variables = logits_bddo.shape[-2]
    share_bdd = logits_bddo.new_full(logits_bddo.shape[:-1], (2 / n_variables) ** 2, dtype=torch.float64)
    if marks_bmd is None:
        return share_bdd
    was_set_bd = (marks_bmd.cpu() & SET > 0).sum(1) >= TELLING_ROWS
    return torch.where(was_set_bd[:, :, None] | was_set_bd[:, None], share_bdd / 2, share_bdd)


class LoadedColliders(Loaded[ImmoralityNet]):
    """Collider weights: which candidates are common children of two variables?"""

    @torch.no_grad()
    def probabilities(self, x_bmd: Tensor, structures: Structures) -> Tensor:
        """Probability (S, W) that each candidate is a common child of its parents; 0 for columns in other roles.

        Structures of equal width go through the network together, so padding costs nothing.
        """
        p_sw = torch.zeros(structures.roles_sw.shape, dtype=torch.float64)
        most = CELLS_IN_CACHE if self.device.type == "cpu" else CELLS_PER_CHUNK
        for width in structures.widths_s.unique().tolist():
            (places,) = (structures.widths_s == width).nonzero(as_tuple=True)
            for part in places.split(chunk_size(x_bmd.shape[1], width, most)):
                some = structures.pick(part).cut(width)
                x_smw = gather_columns(x_bmd, some).to(self.device, torch.float32)
                logits = self.network(x_smw, some.roles_sw.to(self.device))
                p_sw[part, :width] = calibrate(logits.cpu(), self.header.calibration).sigmoid()
        return p_sw * (structures.roles_sw == CANDIDATE)

    def pack(self, links_dd: ArrayLike, pairs_dd: ArrayLike, strength_dd: ArrayLike) -> Structures:
        """What the network looks at to find the common children of pairs, in one table.

        Parameters
        ----------
        links_dd, pairs_dd : array_like of bool, shape (D, D)
            Which variables are neighbours, and which pairs are asked about (`graphbam.directions.immoralities`).
        strength_dd : array_like, shape (D, D)
            Probabilities of links, to choose among too many neighbours.
        """
        links, pairs, strength = (torch.from_numpy(np.array(part))[None] for part in (links_dd, pairs_dd, strength_dd))
        sizes = {name: getattr(self.network.config, name) for name in ("max_candidates", "max_neighbours")}
        return find_structures(links, pairs, strength, **sizes, all_candidates=True)

    def answer(self, x_bmd: Tensor, asked: Structures) -> NDArray[np.float64]:
        """Probabilities of the candidates, in the order of ``asked.triples()``; mean over draws of one table."""
        p_sw = torch.stack([self.probabilities(x_md[None], asked) for x_md in x_bmd]).mean(0)
        return np.asarray(p_sw[asked.roles_sw == CANDIDATE].numpy())


@torch.no_grad()
def run_in_chunks(
    network: Network,
    x_bmd: Tensor,
    rows: Sequence[float] | None = None,
    marks_bmd: Tensor | None = None,
    piece: int | None = None,
) -> Tensor:
    """Logits of equal-shaped tables, on the CPU, wherever the network is; a bounded number of cells at a time."""
    device, size = next(network.parameters()).device, chunk_size(*x_bmd.shape[1:])
    logits = []
    for start in range(0, len(x_bmd), size):
        here = slice(start, start + size)
        more: dict[str, Any] = {} if rows is None else {"rows": rows[here]}
        more |= {} if marks_bmd is None else {"marks": marks_bmd[here].to(device)}
        more |= {} if piece is None or x_bmd.shape[1] <= piece else {"piece": piece}
        logits.append(network(x_bmd[here].to(device, torch.float32), **more).cpu())
    return torch.cat(logits)


def chunk_size(n_samples: int, n_variables: int, most_cells: int | None = None) -> int:
    """How many tables of this shape go through a network at a time."""
    most_cells = CELLS_PER_CHUNK if most_cells is None else most_cells
    return max(1, min(most_cells // (n_samples * n_variables), ROWS_PER_CHUNK // n_samples))


def calibrate(logits: Tensor, calibration: Calibration | None) -> Tensor:
    """Logits with the calibration that a header carries, in double precision."""
    return (logits if calibration is None else calibration.apply(logits)).double()


def fits_partner(colliders: Header, edges: Header) -> bool:
    """Whether the evidence of collider weights, if there is any, was fitted to these edge weights."""
    if colliders.evidence is None:
        return True
    return colliders.partner is not None and colliders.partner.checksum == edges.checksum


# ── loading and saving ────────────────────────────────────────────────────────────────────────────────────────────


def list_weights() -> list[str]:
    """Names of the weights inside the package."""
    return sorted(path.stem for path in _shipped().glob("*.safetensors"))


def load_weights(source: Source, device: str | torch.device = "cpu") -> LoadedWeights:
    """Load edge weights by name (`"edges"`, inside the package) or by path, checked in full.

    Raises
    ------
    WeightsError
        If the name is unknown, or the file is missing, truncated, altered, or made for another network.
    """
    return LoadedWeights(*_open(source, device, EdgeNet))


def load_colliders(source: Source, device: str | torch.device = "cpu") -> LoadedColliders:
    """Load collider weights by name or by path, checked in full; errors as for `load_weights`."""
    return LoadedColliders(*_open(source, device, ImmoralityNet))


def load_network(
    source: Source, device: str | torch.device = "cpu", types: Sequence[type[Network]] = (EdgeNet, ImmoralityNet)
) -> Loaded[Network]:
    """Load a network of one of these types, whichever the file holds; errors as for `load_weights`."""
    return Loaded(*_open(source, device, *types))


def _open(source: Source, device: str | torch.device, *types: type[Net]) -> tuple[str, Net, Header, str | None]:
    """What `Loaded` holds of a file, refused if it holds another kind of network."""
    path = find_weights(source)
    tensors, header = read_tensors(path)
    held = next((one for one in types if one.kind == header.kind), None)
    if held is None:
        needed = " or ".join(repr(one.kind) for one in types)
        raise WeightsError(f"{path} holds weights of kind {header.kind!r}, but {needed} is needed here")
    try:
        network = held.empty(held.config_type.from_dict(header.config))
    except (ConfigError, TypeError, MemoryError, RuntimeError) as error:  # torch's, of sizes that cannot be
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise WeightsError(f"{path} holds no usable network config ({reason}); it is not a graphbam file") from error
    fit_tensors(network, tensors, path)
    where = None if path.parent == _shipped() else os.path.abspath(path)
    return path.stem, network.to(device).eval(), header, where


def save_weights(
    path: str | os.PathLike[str],
    network: Network,
    header: Header | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a network with its header; kind, config and checksum are entered here, the file appears all at once."""
    tensors = {name: value.detach().to(dtype).cpu().contiguous() for name, value in network.state_dict().items()}
    described = {"kind": network.kind, "config": network.config.to_dict()}
    write_tensors(Path(path), tensors, dataclasses.replace(header or Header(), **described))


def fit_tensors(network: torch.nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Copy tensors into a network, refusing unknown names, missing names and wrong shapes."""
    expected = network.state_dict()
    if unknown := sorted(set(tensors) - set(expected)):
        raise WeightsError(f"{path} holds unknown tensors ({', '.join(unknown[:3])}); use the graphbam that wrote it")
    if missing := sorted(set(expected) - set(tensors)):
        raise WeightsError(f"{path} lacks tensors ({', '.join(missing[:3])}); the file does not fit its own config")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            found, wanted = tuple(tensor.shape), tuple(expected[name].shape)
            raise WeightsError(f"{path}: tensor {name} has shape {found}, but the network needs {wanted}")
    network.load_state_dict(tensors)


def write_tensors(path: Path, tensors: dict[str, Tensor], header: Header) -> None:
    """Write tensors and header atomically: a crash or a full disk leaves the previous file as it was."""
    values = header.to_dict()
    values["sha256"] = checksum(tensors, values)
    make_folder(path.parent)
    try:
        with clear_errors(path), replacing(path) as draft:
            save_file(tensors, draft, metadata={"graphbam": json.dumps(values)})
            with draft.open("rb+") as stream:
                os.fsync(stream.fileno())
    except SafetensorError as error:
        raise WeightsError(f"{path} cannot be written: {error}. Choose another place.") from error


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Header]:
    """Read tensors and header, refusing files that are damaged or were not written by `write_tensors`."""
    try:
        with safe_open(path, framework="pt") as stream:
            metadata = stream.metadata() or {}
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} cannot be read as safetensors ({error}); fetch it again") from error
    values = _parse_header(metadata, path)
    if values.get("sha256") != checksum(tensors, values):
        raise WeightsError(f"{path} was altered after it was written (checksum differs); fetch it again")
    try:
        return tensors, Header.from_dict(values)
    except (ConfigError, TypeError, ValueError, AttributeError) as error:
        raise WeightsError(f"{path} holds no usable header ({error}); it is not a graphbam file") from error


def checksum(tensors: dict[str, Tensor], values: Mapping[str, Any]) -> str:
    """SHA-256 over the header's values and names, shapes, types and bytes of all tensors, in order of name."""
    text = json.dumps({name: value for name, value in values.items() if name != "sha256"})
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _parse_header(metadata: dict[str, str], path: Path) -> dict[str, Any]:
    try:
        values = json.loads(metadata["graphbam"])
    except (KeyError, json.JSONDecodeError) as error:
        raise WeightsError(f"{path} has no graphbam header; it is not a graphbam file") from error
    if not isinstance(values, dict) or values.get("format") not in range(1, FORMAT + 1):
        raise WeightsError(f"{path} was written by a newer graphbam; update with pip install -U graphbam")
    return values


def _shipped() -> Path:
    return Path(str(resources.files("graphbam") / "weights"))


def find_weights(source: Source) -> Path:
    """Path of weights that are in the package, or of a file."""
    packaged = _shipped() / f"{source}.safetensors"
    if packaged.is_file():
        return packaged
    path = Path(source)
    if path.is_file():
        return path
    names = ", ".join(list_weights()) or "none"
    raise WeightsError(f"no weights named {str(source)!r} and no such file; shipped weights: {names}")
