"""Weights on disk: safetensors with a JSON header ⇄ a network. Loading never runs code.

One file holds the tensors and, in its header under `graphbam`, what is needed to use and to trust them: the network's
config, the data it was trained on, a summary of the training, the calibration and a checksum over all of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from graphbam.benchmarks.baselines.avici_net import AviciNet, AviciNetConfig
from graphbam.errors import ConfigError, WeightsError
from graphbam.nn.edge_net import EdgeNet, EdgeNetConfig
from graphbam.nn.immorality_net import ColliderNet, network_config
from graphbam.nn.structures import CANDIDATE, Structures, gather_columns, pack_structures

if TYPE_CHECKING:
    from graphbam.directions.questions import Question

Network = EdgeNet | ColliderNet | AviciNet
"""What a weights file may hold; its header says which under `network`."""

Net = TypeVar("Net", EdgeNet, ColliderNet, AviciNet)

KINDS: dict[type[Network], str] = {EdgeNet: "edge", ColliderNet: "collider", AviciNet: "avici"}
"""What headers call the networks."""

FORMAT = 1
"""Version of the header; a file with a higher one needs a newer graphbam."""

CELLS_A_CHUNK = 2_000_000
"""Tables are sent through the network in chunks of about so many cells, to bound memory."""

ROWS_A_CHUNK = 60_000
"""Most rows in one chunk: attention over attributes launches one block a row, and GPUs allow 65,535."""


@dataclasses.dataclass(frozen=True)
class Loaded(Generic[Net]):
    """A network ready to use, with its name and header."""

    name: str
    network: Net
    header: dict[str, Any]


class LoadedWeights(Loaded[EdgeNet]):
    """Edge weights: which pairs of variables are linked?"""

    @torch.no_grad()
    def probabilities(self, x_bmd: Tensor, rows: Sequence[float] | None = None) -> Tensor:
        """Calibrated probabilities (B, D, D, 3) of none · skeleton · moral for a batch of equal-shaped tables.

        `rows` says how many independent rows each is worth, where that is not M (`graphbam.tables.rows`).
        """
        return calibrate(_in_chunks(self.network, x_bmd, rows), self.header)


class LoadedColliders(Loaded[ColliderNet]):
    """Collider weights: which candidates are common children of two variables?"""

    @torch.no_grad()
    def probabilities(self, x_bmd: Tensor, structures: Structures) -> Tensor:
        """Probability (S, W) that each candidate is a common child of its parents; 0 for columns in other roles.

        Structures of equal width go through the network together, so padding costs nothing.
        """
        device = next(self.network.parameters()).device
        p_sw = torch.zeros(structures.roles_sw.shape, dtype=torch.float64)
        for width in structures.widths_s.unique().tolist():
            (places,) = (structures.widths_s == width).nonzero(as_tuple=True)
            for part in places.split(_chunk_size(x_bmd.shape[1], width)):
                some = structures.pick(part).cut(width)
                logits = self.network(gather_columns(x_bmd, some).to(device, torch.float32), some.roles_sw.to(device))
                p_sw[part, :width] = calibrate_children(logits.cpu(), self.header)
        return p_sw * (structures.roles_sw == CANDIDATE)

    def answer(
        self, x_md: ArrayLike, asked: Sequence[Question], strength_dd: ArrayLike | None = None
    ) -> list[NDArray[np.float64]]:
        """Probabilities for each candidate of each question about one table, as `questions.claim_table` takes them.

        Parameters
        ----------
        x_md : array_like, shape (M, D)
            The table, prepared as for edge weights.
        asked : sequence of Question
            Pairs with candidates and neighbours, such as `questions.find_questions` lists.
        strength_dd : array_like, shape (D, D), optional
            Probabilities of links, to choose among too many neighbours.
        """
        sizes = {name: getattr(self.network.config, name) for name in ("max_candidates", "max_neighbours")}
        packed = pack_structures(asked, strength_dd=strength_dd, **sizes)
        x_bmd = torch.as_tensor(np.asarray(x_md, dtype=np.float32))[None]
        p_n = self.probabilities(x_bmd, packed)[packed.roles_sw == CANDIDATE].numpy()  # in the order of the questions
        return np.split(p_n, np.cumsum([len(one.candidates) for one in asked])[:-1]) if asked else []


class LoadedArrows(Loaded[AviciNet]):
    """Weights of AVICI's network: which variable points at which?"""

    @torch.no_grad()
    def probabilities(self, x_bmd: Tensor) -> Tensor:
        """Probabilities (B, D, D) of i → j at [i, j] for a batch of equal-shaped tables; zero on the diagonal."""
        return _in_chunks(self.network, x_bmd).double().sigmoid()


def _in_chunks(network: EdgeNet | AviciNet, x_bmd: Tensor, rows: Sequence[float] | None = None) -> Tensor:
    """Logits of equal-shaped tables, wherever the network is, a bounded number of cells at a time."""
    device = next(network.parameters()).device
    size = _chunk_size(*x_bmd.shape[1:])
    logits = []
    for start in range(0, len(x_bmd), size):
        chunk = x_bmd[start : start + size].to(device, torch.float32)
        told = () if rows is None else (rows[start : start + size],)
        logits.append(network(chunk, *told).cpu())
    return torch.cat(logits)


def _chunk_size(n_samples: int, n_variables: int) -> int:
    """How many tables of this shape go through a network at a time."""
    return max(1, min(CELLS_A_CHUNK // (n_samples * n_variables), ROWS_A_CHUNK // n_samples))


def calibrate_children(logits: Tensor, header: dict[str, Any]) -> Tensor:
    """Probabilities from logits, with the temperature and the offset the header carries (none: plain sigmoid)."""
    calibration = header.get("calibration") or {}
    return (
        (logits / float(calibration.get("temperature", 1.0)) + float(calibration.get("offset", 0.0))).double().sigmoid()
    )


def calibrate(logits: Tensor, header: dict[str, Any]) -> Tensor:
    """Probabilities from logits, with the temperature and class offsets the header carries (none: plain softmax)."""
    calibration = header.get("calibration") or {}
    offsets = logits.new_tensor(calibration.get("offsets", [0.0, 0.0, 0.0]))
    return (logits / float(calibration.get("temperature", 1.0)) + offsets).double().softmax(-1)


def list_weights() -> list[str]:
    """Names of the weights inside the package."""
    return sorted(path.stem for path in _shipped().glob("*.safetensors"))


def load_weights(source: str | os.PathLike[str], device: str | torch.device = "cpu") -> LoadedWeights:
    """Load edge weights by name (`"edges"`, inside the package) or by path, checked in full.

    Raises
    ------
    WeightsError
        If the name is unknown, or the file is missing, truncated, altered, or made for another network.
    """
    return LoadedWeights(*_load(source, device, EdgeNet))


def load_colliders(source: str | os.PathLike[str], device: str | torch.device = "cpu") -> LoadedColliders:
    """Load collider weights by name or by path, checked in full; errors as for `load_weights`."""
    return LoadedColliders(*_load(source, device, ColliderNet))


def load_arrows(source: str | os.PathLike[str], device: str | torch.device = "cpu") -> LoadedArrows:
    """Load weights of AVICI's network by name or by path, checked in full; errors as for `load_weights`."""
    return LoadedArrows(*_load(source, device, AviciNet))


def _load(
    source: str | os.PathLike[str], device: str | torch.device, wanted: type[Net]
) -> tuple[str, Net, dict[str, Any]]:
    """Name, network and header of a file, refused if it holds another kind of network."""
    network, header = load_network(source, device)
    if not isinstance(network, wanted):
        found = KINDS[type(network)]
        held = f"{'a' if found == 'collider' else 'an'} {found} network"
        raise WeightsError(f"weights {str(source)!r} hold {held}, but {KINDS[wanted]} weights are needed here")
    return _find(source).stem, network, header


def load_network(source: str | os.PathLike[str], device: str | torch.device = "cpu") -> tuple[Network, dict[str, Any]]:
    """Whatever network a file holds, with its header."""
    path = _find(source)
    tensors, header = read_tensors(path)
    try:
        network = _build(header)
    except (ConfigError, KeyError, TypeError) as error:
        raise WeightsError(
            f"{path} holds no usable network config ({error}); it is not a graphbam weights file"
        ) from error
    fit_tensors(network, tensors, path)
    return network.to(device).eval(), header


def _build(header: dict[str, Any]) -> Network:
    """A network of the kind and the config of a header; files from before there were several hold edge networks."""
    kind = header.get("network", "edge")
    if kind == "edge":
        return EdgeNet(EdgeNetConfig.from_dict(header["config"]))
    if kind == "collider":
        return ColliderNet(network_config(header["config"]))
    if kind == "avici":
        return AviciNet(AviciNetConfig.from_dict(header["config"]))
    raise ConfigError(f"network {kind!r} is unknown here")


def save_weights(
    path: str | os.PathLike[str], network: Network, header: dict[str, Any], dtype: torch.dtype = torch.float32
) -> None:
    """Write a network with its header; kind, config and checksum are added here, the file appears all at once."""
    tensors = {name: value.detach().to(dtype).cpu().contiguous() for name, value in network.state_dict().items()}
    described = {"network": KINDS[type(network)], "config": dataclasses.asdict(network.config)}
    write_tensors(Path(path), tensors, header | described)


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


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors and header atomically: a crash or a full disk leaves the previous file as it was."""
    header = {**header, "format": FORMAT}
    header["sha256"] = checksum(tensors, header)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    try:
        save_file(tensors, temporary, metadata={"graphbam": json.dumps(header)})
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read tensors and header, refusing files that are damaged or were not written by `write_tensors`."""
    try:
        with safe_open(path, framework="pt") as stream:
            metadata = stream.metadata() or {}
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} cannot be read as safetensors ({error}); fetch it again") from error
    header = _parse_header(metadata, path)
    if header.get("sha256") != checksum(tensors, header):
        raise WeightsError(f"{path} was altered after it was written (checksum differs); fetch it again")
    return tensors, header


def checksum(tensors: dict[str, Tensor], header: dict[str, Any]) -> str:
    """SHA-256 over the header and names, shapes, types and bytes of all tensors, in order of name."""
    text = json.dumps({name: value for name, value in header.items() if name != "sha256"})
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _parse_header(metadata: dict[str, str], path: Path) -> dict[str, Any]:
    try:
        header = json.loads(metadata["graphbam"])
    except (KeyError, json.JSONDecodeError) as error:
        raise WeightsError(f"{path} has no graphbam header; it is not a graphbam file") from error
    if not isinstance(header, dict) or header.get("format") not in range(1, FORMAT + 1):
        raise WeightsError(f"{path} was written by a newer graphbam; update with pip install -U graphbam")
    return header


def _shipped() -> Path:
    return Path(str(resources.files("graphbam") / "weights"))


def _find(source: str | os.PathLike[str]) -> Path:
    packaged = _shipped() / f"{source}.safetensors"
    if packaged.is_file():
        return packaged
    path = Path(source)
    if path.is_file():
        return path
    names = ", ".join(list_weights()) or "none"
    raise WeightsError(f"no weights named {str(source)!r} and no such file; shipped weights: {names}")
