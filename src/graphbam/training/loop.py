"""The training loop: budgets, reports, checkpoints, several processes, going on from other weights.

What a step does is in `step`.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from graphbam.errors import ConfigError, Setting, WeightsError, check_whole
from graphbam.machine.disk import holds_something, make_folder, take_path
from graphbam.nn.device import choose_device
from graphbam.nn.edge_net import EdgeNet, EdgeNetConfig, name_observation_layers
from graphbam.nn.network import Network
from graphbam.nn.weights import CHECKPOINT, Header, RunProgress, load_network, read_tensors, save_weights, write_tensors
from graphbam.training.config import Task, TrainConfig, find_task, task_of
from graphbam.training.data import AnyBatch, Stream
from graphbam.training.step import Stepper, learning_rate

RUN = "checkpoint.safetensors"
WEIGHTS = "weights.safetensors"
LOG = "log.jsonl"

MOST_VARIANTS = 64
"""Times that one function may be compiled."""

_GROWING = ("pair_layers", "sharp_correlations", "marks", "answers")
"""What a network may have more than the weights it begins with. New features of pairs and new answers come last in the
layers that read or give them."""

_CHANGING = ("sample_stretch",)
"""What may differ from those weights either way, since none of theirs depends on it."""

_SHRINKING = ("sample_layers",)
"""What a network may have less: the last layers over samples are left out. Training mends what they did."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """When a run ends, and how often it speaks and saves. Steps count over all continuations, minutes from now.

    The learning rate follows the share of the budget that is spent. A run that was interrupted and is resumed with as
    many steps, and decay as before, has the rates that it would have had without the interruption. With another number
    of steps, or decay where there was none, a new budget begins: the rate returns to its peak and, with decay, comes
    down over the last part of the steps that are left. A budget of minutes is a new one every time.
    """

    steps: int | None = None
    minutes: float | None = None
    decay: bool = False
    """Whether the learning rate comes down at the end, for weights to be released."""
    report_seconds: float = 5.0
    save_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.steps is None and self.minutes is None:
            raise ConfigError("training needs an end: give steps, minutes or both")
        for name in ("steps", "minutes"):
            if (most := getattr(self, name)) is not None and not most >= 0:  # nor is NaN
                raise ConfigError(Setting(name, most), " is no end of a run; use a number of at least 0")

    def begin(self, step: int, earlier: Mapping[str, Any]) -> dict[str, Any]:
        """The budget as a checkpoint keeps it: its steps, and the one it began at, that of an `earlier` one if equal.

        Examples
        --------
        >>> first = Budget(steps=200, decay=True).begin(0, {})
        >>> Budget(steps=200, decay=True).begin(180, first)["first_step"]
        0
        >>> Budget(steps=400, decay=True).begin(200, first)["first_step"]
        200
        """
        plan = {"steps": self.steps, "decay": self.decay}
        same = self.steps is not None and plan.items() <= earlier.items()
        return plan | {"first_step": earlier["first_step"] if same else step}

    def spent(self, step: int, seconds: float, first_step: int) -> float:
        """Share of the budget used, the larger of steps and time."""
        if self.steps is not None and step >= self.steps:
            return 1.0
        by_steps = (step - first_step) / (self.steps - first_step) if self.steps is not None else 0.0
        by_time = seconds / max(self.minutes * 60, 1e-9) if self.minutes is not None else 0.0
        return max(by_steps, by_time)


def train(
    config: TrainConfig,
    out: str | os.PathLike[str],
    *,
    budget: Budget,
    resume: bool = False,
    start: str | None = None,
    device: str = "auto",
    compile_blocks: bool | None = None,
    workers: int | None = None,
    report: Callable[[dict[str, float]], None] | None = None,
) -> Path:
    """Train a network on an endless simulated stream and write its averaged weights.

    Under `torchrun` every process simulates its own tables and gradients are averaged by DistributedDataParallel.

    Parameters
    ----------
    config : TrainConfig
        What is trained, on what.
    out : path
        Folder for the checkpoint, the log (one JSON object per line) and the weights.
    budget : Budget
        When to stop.
    resume : bool
        Continue from the checkpoint in `out`; it must belong to the same config.
    start : str, optional
        Weights (name or path) to begin a fresh run from; the head of the network may be larger than theirs.
    device : str
        `"auto"`, `"cpu"`, `"cuda"` or a CUDA device.
    compile_blocks : bool, optional
        Whether to compile the network; by default on a GPU only.
    workers : int, optional
        Processes that simulate on the CPU; 0 simulates on the training device. By default, on a GPU, all cores but two.
    report : callable, optional
        Called with every line of the log.

    Returns
    -------
    Path
        The weights file, `out/weights.safetensors`.
    """
    if workers is not None:
        check_whole("workers", workers, 0)
    if resume and start is not None:
        raise ConfigError(
            Setting("start", start), " begins a fresh run, and ", Setting("resume", True), " goes on with one; ",
            "leave out one of the two"
        )  # fmt: skip
    folder = _open_folder(take_path(out), resume)
    with _processes(device) as (rank, place), _own_stream(place):
        run = _Run(config, folder, budget, place, rank, compile_blocks, report)
        run.begin(resume, start)
        run.loop(run.default_workers() if workers is None else workers)
        return run.finish()


def _open_folder(folder: Path, resume: bool) -> Path:
    """Make the folder of a run, unless there is nothing in it to go on from, or a file of others would be lost."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; a run needs a folder. Choose another name.")
    if (folder / RUN).exists():
        return folder
    if resume:
        raise WeightsError(
            f"there is no {folder / RUN} to go on from; leave --resume out to begin a run, or name the folder of one"
        )
    if holds_something(folder / WEIGHTS):
        raise WeightsError(f"{folder / WEIGHTS} is there without a checkpoint, and would be lost; use another folder")
    return make_folder(folder)


class _Run:
    """One call of `train`: owns the network, the stepper and the counters."""

    def __init__(
        self,
        config: TrainConfig,
        folder: Path,
        budget: Budget,
        device: torch.device,
        rank: int,
        compile_blocks: bool | None,
        report: Callable[[dict[str, float]], None] | None,
    ):
        self.config, self.folder, self.budget, self.device, self.rank = config, folder, budget, device, rank
        self.on_report = report or (lambda line: None)
        self.task = task_of(config)
        self.network = new_network(config, device)
        if device.type == "cuda" if compile_blocks is None else compile_blocks:
            compile_at_scale(self.network.compile_blocks(), self.task, device)
        distributed = dist.is_initialized()
        forward: nn.Module = self.network
        if distributed:
            forward = nn.parallel.DistributedDataParallel(self.network)
        self.stepper = Stepper(
            self.network,
            self.task,
            weight_decay=config.weight_decay,
            clip_norm=config.clip_norm,
            ema_decay=config.ema_decay,
            capture=device.type == "cuda" and not distributed,
            forward=forward,
            muon=config.optimizer == "muon",
        )
        self.progress = RunProgress()
        self.floor_seconds = 0.0

    def begin(self, resume: bool, start: str | None) -> None:
        """Load a checkpoint or starting weights, or refuse to overwrite a run."""
        path = self.folder / RUN
        earlier: Mapping[str, Any] = {}
        if resume:
            self.progress, earlier = load_checkpoint(path, self.stepper, self.config)
        elif path.exists():
            raise WeightsError(f"{path} exists; continue it with --resume, or choose another folder")
        elif start is not None:
            self._start_from(start)
        self.plan = self.budget.begin(self.progress.step, earlier)
        self.first_seconds = self.progress.seconds

    def default_workers(self) -> int:
        """Processes that simulate, unless the caller says how many."""
        return self.task.workers(os.cpu_count() or 1) if self.device.type == "cuda" else 0

    def loop(self, workers: int) -> None:
        """Step until the budget is spent or the process is asked to stop."""
        stream = Stream(self.config, self.device, rank=self.rank, first_step=self.progress.step, workers=workers)
        began = last_report = last_save = time.monotonic()
        with stop_requested() as stop:
            for batch in stream:
                now = time.monotonic()
                spent = self.budget.spent(self.progress.step, now - began, self.plan["first_step"])
                spent = _most_of_any(1.0 if stop() else spent, self.device)
                if spent >= 1:
                    break
                self.step(batch, spent, now - began)
                if now - last_report >= self.budget.report_seconds:
                    self.report(now - last_report)
                    last_report = time.monotonic()
                if now - last_save >= self.budget.save_seconds:
                    self.save()
                    last_save = time.monotonic()
        self.report(time.monotonic() - last_report)

    def step(self, batch: AnyBatch, spent: float, seconds: float) -> None:
        """One batch, so many seconds after the start."""
        rate = learning_rate(self.config, self.progress.step, spent, decay=self.budget.decay)
        self.stepper.step(batch, rate)
        self.progress = dataclasses.replace(
            self.progress,
            step=self.progress.step + 1,
            tables=self.progress.tables + batch.shape.n_tables * _world_size(),
            seconds=self.first_seconds + seconds,
        )
        self.floor_seconds += self.task.work(self.config, batch.shape).training().floor()

    def report(self, seconds: float) -> None:
        """Write one line of the log: losses, throughput, and how close to the floor the hardware runs."""
        statistics = self.stepper.statistics()
        if not statistics["steps"]:
            return
        skipped = self.progress.skipped + int(statistics.pop("skipped"))
        self.progress = dataclasses.replace(self.progress, skipped=skipped)
        last = self.progress.history[-1]["tables"] if self.progress.history else 0
        line: dict[str, Any] = {
            "step": self.progress.step,
            "tables": self.progress.tables,
            "seconds": round(self.progress.seconds, 2),
            **{name: round(value, 5) for name, value in statistics.items() if name != "steps"},
            "skipped": self.progress.skipped,
            "rate": float(self.stepper.rate),
            "tables_per_second": round((self.progress.tables - last) / max(seconds, 1e-9), 1),
            "share_of_floor": round(self.floor_seconds / max(seconds, 1e-9), 3),
        }
        self.floor_seconds = 0.0
        if self.progress.skipped:
            line["skipped_shapes"] = self.stepper.skipped_shapes()
        self.progress = self.progress.note({name: line[name] for name in ("step", "tables", "seconds", "loss")})
        if self.rank == 0:
            with open(self.folder / LOG, "a") as stream:
                stream.write(json.dumps(line) + "\n")
            self.on_report(line)

    def save(self) -> None:
        """Write the checkpoint, from the first process alone."""
        if self.rank == 0:
            save_checkpoint(self.folder / RUN, self.stepper, self.config, self.progress, self.plan)

    def finish(self) -> Path:
        """Save the checkpoint and the averaged weights."""
        self.save()
        path = self.folder / WEIGHTS
        if self.rank == 0:
            train = self.config.to_dict()
            del train["network"]  # it is in the header already
            save_weights(path, self.stepper.averaged(), Header(train=train, progress=self.progress))
        self.stepper.forward = self.network  # lets go of the process group
        return path

    def _start_from(self, start: str) -> None:
        loaded = load_network(start, types=[self.task.network_type])
        self.network.load_state_dict(grow_weights(loaded.network, self.network, start))
        self.stepper.start_average()
        self.progress = RunProgress(before=(loaded.header.progress or RunProgress()).total())


def new_network(config: TrainConfig, device: torch.device) -> Network:
    """A fresh network whose initial weights depend on the config's seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return find_task(config.task).network_type(config.network).to(device)


def compile_at_scale(network: Network, task: Task, device: torch.device) -> None:
    """Trigger compilation on a batch of typical size and unrelated dimensions.

    The compiler plans reductions for the sizes it sees first, and takes equal sizes for the same size. Layers of a kind
    share what is compiled, along both axes and for few attributes and many, which is more than it allows by default;
    beyond that it would give up without a word.
    """
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MOST_VARIANTS)
    network(*task.example(device)).sum().backward()
    network.zero_grad(set_to_none=True)


# ── checkpoints: a whole run in one file ───────────────────────────────────────────────────────────────────────────


def save_checkpoint(
    path: Path, stepper: Stepper, config: TrainConfig, progress: RunProgress, plan: Mapping[str, Any]
) -> None:
    """Write everything a run needs to go on, atomically; `plan` is from `Budget.begin`."""
    header = Header(kind=CHECKPOINT, train=config.to_dict(), progress=progress, notes={"budget": dict(plan)})
    write_tensors(path, stepper.tensors(), header)


def load_checkpoint(path: Path, stepper: Stepper, config: TrainConfig) -> tuple[RunProgress, Mapping[str, Any]]:
    """Restore a run in place; how far it had come, and with which budget (none in checkpoints that did not keep it).

    A checkpoint of another config is refused with the differing fields named.
    """
    tensors, header = read_tensors(path)
    if header.kind != CHECKPOINT:
        raise WeightsError(f"{path} holds weights, not a checkpoint; start from it with --start instead of --resume")
    if differing := differing_fields(header.train or {}, config.to_dict()):
        raise WeightsError(f"{path} belongs to another run: {'; '.join(differing)}. Use its config or another folder")
    stepper.restore(tensors)
    return header.progress or RunProgress(), header.notes.get("budget", {})


def differing_fields(stored: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Names of the fields in which two nested configs differ, with both values.

    Examples
    --------
    >>> differing_fields({"a": 1, "n": {"c": 2}}, {"a": 1, "n": {"c": 3}})
    ['n.c is 2 in the file, 3 here']
    """
    differing = []
    for name in sorted(stored.keys() | wanted.keys()):
        old, new = stored.get(name), wanted.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            differing += differing_fields(old, new, f"{prefix}{name}.")
        elif old != new:
            differing.append(f"{prefix}{name} is {old!r} in the file, {new!r} here")
    return differing


# ── growth: a larger network begins where a smaller one ended ──────────────────────────────────────────────────────


def grow_weights(network: Network, design: Network, source: str) -> dict[str, Tensor]:
    """Weights for `design` that compute what `network` does, where the head of `design` is the larger one.

    Layers over samples that `design` lacks, the last ones, are left out; what it computes is then something else.

    Pair blocks that `network` lacks start as the identity: their residual scales are zero, so that the first steps
    move the scales, and the next ones the rest. Correlations in double precision, marks of cells and answers beyond the
    classes start with weights of zero. Other new weights are those that `design` was initialised with. Samples may see
    each other in other stretches than before: of tables that are longer, `design` then says something else at once.
    `source` is where `network` came from, for the error.

    Raises
    ------
    WeightsError
        If the two differ in anything but what the head of `design` has more, and what samples see.

    Examples
    --------
    >>> from graphbam.nn.edge_net import EdgeNetConfig
    >>> shallow, deep = EdgeNet(EdgeNetConfig(pair_layers=1)), EdgeNet(EdgeNetConfig(pair_layers=3))
    >>> _ = deep.load_state_dict(grow_weights(shallow, deep, "a doctest"))
    >>> x_bmd = torch.randn(2, 20, 4)
    >>> torch.equal(shallow(x_bmd), deep(x_bmd))
    True
    """
    weights = network.state_dict()
    if network.config == design.config:
        return weights
    _check_growth(network, design, source)
    weights = _without_layers(weights, network.config, design.config)
    fresh = {name: value for name, value in design.state_dict().items() if name not in weights}
    still = {
        name: torch.zeros_like(value) for name, value in fresh.items() if name.endswith(("residual.scale", "marks"))
    }
    return fresh | still | {name: _pad(value, design.state_dict()[name].shape) for name, value in weights.items()}


def _without_layers(weights: dict[str, Tensor], old: EdgeNetConfig, new: EdgeNetConfig) -> dict[str, Tensor]:
    """The same without the observation layers that `new` lacks, and the others where it has them."""
    places = {layer: place for place, layer in enumerate(name_observation_layers(new))}
    kept = {}
    for name, value in weights.items():
        part, _, rest = name.partition(".")
        if part != "observation":
            kept[name] = value
            continue
        place, _, rest = rest.partition(".")
        if (layer := name_observation_layers(old)[int(place)]) in places:
            kept[f"{part}.{places[layer]}.{rest}"] = value
    return kept


def _pad(value: Tensor, shape: torch.Size) -> Tensor:
    """The same with zeros behind, along every axis that is to be longer."""
    padded = value.new_zeros(shape)
    padded[tuple(slice(n) for n in value.shape)] = value
    return padded


def _check_growth(network: Network, design: Network, source: str) -> None:
    other = f"weights {source!r} have another network design than this run; train with their config"
    if not (isinstance(network, EdgeNet) and isinstance(design, EdgeNet)):
        raise WeightsError(other)
    old, new = network.config, design.config
    grown = dataclasses.replace(old, **{name: getattr(new, name) for name in (*_GROWING, *_CHANGING, *_SHRINKING)})
    larger = old.pair_layers > 0 and all(getattr(old, name) <= getattr(new, name) for name in _GROWING)
    fewer = all(getattr(old, name) >= getattr(new, name) for name in _SHRINKING)
    if not (larger and fewer) or grown != new:
        blocks = f"it has {old.pair_layers} pair blocks in the weights and {new.pair_layers} in this run"
        raise WeightsError(f"{other}. The head alone may grow, layers over samples alone become fewer, and {blocks}")


# ── processes, streams, signals ────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _processes(device: str) -> Iterator[tuple[int, torch.device]]:
    """Rank and device of this process; joins the others when started by torchrun."""
    place = choose_device(device)
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        yield 0, place
        return
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(place)
    importlib.import_module("torch.distributed.nn")  # imported later, its defaults would hold the group until the end
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield dist.get_rank(), place
        dist.barrier()
    finally:
        gc.collect()  # DistributedDataParallel sits in cycles; a group that outlives Python aborts the process
        dist.destroy_process_group()


@contextmanager
def _own_stream(device: torch.device) -> Iterator[None]:
    """Run on a CUDA stream of our own: a graph cannot be captured on the default one, nor share gradients with it."""
    if device.type != "cuda":
        yield
        return
    with torch.cuda.stream(torch.cuda.Stream(device)):
        yield


def _world_size() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def _most_of_any(spent: float, device: torch.device) -> float:
    """The largest share that any process has spent of its budget.

    All must stop together, or the others would wait for ever, and learn at the same rate, or their weights would drift
    apart: gradients alone are averaged, and every process has a clock of its own.
    """
    if not dist.is_initialized():
        return spent
    most = torch.tensor(spent, device=device, dtype=torch.float64)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    return float(most)


@contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """SIGTERM and SIGINT end the loop after the step at hand, so that the run is saved."""
    asked: list[int] = []
    previous = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            previous[number] = signal.signal(number, lambda n, frame: asked.append(n))
    except ValueError:  # not the main thread: whoever owns the signals decides
        pass
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
