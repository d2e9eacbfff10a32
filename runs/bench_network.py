"""How fast the network is, against the floors: the numbers of docs/performance.md, section Network.

    python runs/bench_network.py --device cuda --json out/bench_network.json
    python runs/bench_network.py --device cpu
    python runs/bench_network.py --device cuda --agreement edges
    python runs/bench_network.py --device cuda --throughput
    python runs/bench_network.py --device cuda --layers
    python runs/bench_network.py --device cuda --kernels
    python runs/bench_network.py --device cuda --attention
    python runs/bench_network.py --device cuda --steps
    python runs/bench_network.py --device cuda --mix 40
    python runs/bench_network.py --device cuda --designs answers --layers --kernels --steps --mix 40 --throughput

On a GPU: forward and backward at (d=55, M=525, 16 tables) and (d=20, M=150, 32 tables), plain, compiled, and compiled
and replayed as a CUDA graph; peak memory; the logarithm alone. On a CPU: the forward pass by `graphbam.nn.cpu`, with
bfloat16 products where the processor has units for them and without, and through the layers as they train, beside
what counted operations take at the speed of large products. With
`--agreement`: how far the answers of the same weights differ between CPU and GPU, plain and compiled. With
`--throughput`: tables a second in whole optimiser steps, where shapes are drawn as the paper draws them. With
`--layers`: forward and backward of every kind of layer on its own, beside the operations and bytes that it cannot do
without. With `--kernels`: which kinds of kernels a pass consists of, and the ones that take longest. Both at four
shapes. With `--attention`: attention layers by each of the kernels that PyTorch has for it, by tiles, over few
attributes by sums of products too, and over samples in stretches. With `--steps`: whole optimiser steps of every
answer, and which kinds of kernels they consist of; with `--mix`, the same over so many shapes as training draws them.
Several of these in one command are measured one after the other; without any, whole passes are. What is measured is
printed at once, and a part that fails is told of and left out, so that the others are measured all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import itertools
import json
import resource
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import FlopCounterMode

from graphbam.nn import cpu, edge_net, layers, spd, tiles
from graphbam.nn.cost import H200_BF16, H200_BYTES, H200_FP32, forward_work
from graphbam.nn.edge_net import CLASSES, EdgeNet, EdgeNetConfig
from graphbam.nn.weights import load_weights
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.values import Shape, sample_tables
from graphbam.training.config import TrainConfig, task_of
from graphbam.training.data import AnswerBatch, AnyBatch, Batch, draw_shapes, shape_grid
from graphbam.training.loop import MOST_VARIANTS, compile_at_scale
from graphbam.training.objectives import AnswerTask, EdgeTask, edge_loss
from graphbam.training.step import Stepper

SHAPES = {"large": (16, 525, 55), "small": (32, 150, 20)}
"""Tables, samples and variables of the batches that are timed as a whole …"""

DESIGNS = edge_net.DESIGNS | {"answers": EdgeNetConfig.every_answer}
"""Designs by name, that of `edges` among them."""

MORE_SHAPES = SHAPES | {"wide": (4, 1000, 100), "short": (96, 50, 40)}
"""… and layer by layer."""

KERNELS = {
    "attention": ("flash", "fmha", "sdpa", "attend_"),
    "rows and pairs": ("dense_", "project_", "add_forward", "add_backward", "add_up", "multiply_"),
    "lists of weights": ("multi_tensor",),
    "inverse factors": ("invert_factor",),
    "compiled": ("triton",),
    "products": ("gemm", "cutlass", "cublas", "nvjet", "splitk"),
    "copies": ("memcpy", "memset"),
}
"""Kinds of kernels, by parts of their names: "rows and pairs" are those of `graphbam.nn.fused`, the rest are operations
of PyTorch that were not compiled."""

STEPPED = ((20, 600, 20), (96, 50, 40))
"""The same of whole optimiser steps."""

ATTENDED = (*MORE_SHAPES.values(), (100, 600, 2))
"""Tables, samples and variables at which attention is timed by itself."""

FEW = tuple((100, 1200 // d, d) for d in (2, 4, 6, 8, 12, 16, 24))
"""The same for few attributes …"""

STRETCHED = (20, 600, 20)
STRETCHES = (600, 300, 150, 120, 100, 60)
"""… and of samples, how many of them see each other."""

COMPILED_WITH = (7, 402, 83)
"""What a layer is compiled with, as in training."""

BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
}

Inputs = tuple[Tensor | list[Tensor], ...]
"""What a layer is given; the features of pairs come as a list."""

Times = dict[str, list[float]]
"""Milliseconds of every launch, by the name of the kernel."""

Rows = Iterator[dict[str, object]]
"""Lines of a table, measured one by one."""

FAILED: list[str] = []
"""Parts that could not be measured."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--designs", nargs="+", default=["default", "paper"], choices=list(DESIGNS))
    parser.add_argument("--modes", nargs="+", default=["eager", "compiled", "graph"])
    parser.add_argument("--agreement", metavar="WEIGHTS", help="compare answers instead of times")
    parser.add_argument("--throughput", action="store_true", help="over the paper's shapes, instead of times")
    parser.add_argument("--layers", action="store_true", help="every kind of layer on its own, instead of whole passes")
    parser.add_argument("--kernels", action="store_true", help="kinds of kernels, instead of whole passes")
    parser.add_argument("--attention", action="store_true", help="attention by each kernel, instead of whole passes")
    parser.add_argument("--steps", action="store_true", help="whole optimiser steps, instead of passes")
    parser.add_argument("--mix", type=int, metavar="SHAPES", help="the same over so many shapes as training draws them")
    parser.add_argument("--stretch", type=int, help="most samples that see each other; default: what the design has")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.stretch is not None:
        DESIGNS.update({name: partial(DESIGNS[name], sample_stretch=options.stretch) for name in options.designs})
    sys.stdout.reconfigure(line_buffering=True)  # whoever reads it through a pipe sees every line at once
    torch._dynamo.config.recompile_limit = MOST_VARIANTS  # beyond it, layers would be timed as they are, uncompiled
    with own_stream(options.device):
        run(options)
    if FAILED:
        sys.exit(f"not measured: {'; '.join(FAILED)}")


def run(options: argparse.Namespace) -> None:
    sections = choose_sections(options) or {"passes": partial(print_passes, options)}
    for name, section in sections.items():
        with going_on(name):
            section(options.device)


@contextlib.contextmanager
def going_on(what: str) -> Iterator[None]:
    """Errors of this part are told of, and what comes after it is measured all the same."""
    try:
        yield
    except Exception:
        traceback.print_exc()
        FAILED.append(what)


def choose_sections(options: argparse.Namespace) -> dict[str, Callable[[str], None]]:
    """What was asked for instead of whole passes."""
    chosen: dict[str, Callable[[str], None]] = {}
    if options.steps:
        chosen["steps"] = print_steps
    if options.mix:
        chosen["mix"] = partial(print_mix, options.mix)
    for of_design in (print_throughput, print_layers, print_kernels):
        if getattr(options, name := of_design.__name__.removeprefix("print_")):
            chosen |= {f"{name} of {design}": partial(of_design, design) for design in options.designs}
    if options.attention:
        chosen["attention"] = print_attention
    if options.agreement:
        chosen["agreement"] = partial(print_agreement, options.agreement)
    return chosen


def print_passes(options: argparse.Namespace, device: str) -> None:
    """Whole passes at the two shapes, beside their floors."""
    rows: list[dict[str, object]] = []
    for row in on_gpu(options.designs, options.modes) if device == "cuda" else on_cpu(options.designs):
        rows.append(row)
        if len(rows) == 1:
            print("| " + " | ".join(row) + " |\n|" + "---|" * len(row))
        cells = (f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values())
        print("| " + " | ".join(cells) + " |")
        if options.json:
            with open(options.json, "w") as stream:
                json.dump(rows, stream, indent=1)


def on_cpu(designs: list[str]) -> Rows:
    speed = {kind: measure_products(kind) for kind in (torch.float32, torch.bfloat16)}
    print("; ".join(f"{kind}: {one / 1e9:.0f} GFLOP/s" for kind, one in speed.items()))
    for design in designs:
        network = EdgeNet(DESIGNS[design]()).eval()
        for d, m in ((20, 200), (50, 200), (100, 500), (100, 1000)):
            x_bmd = torch.randn(1, m, d, generator=torch.Generator().manual_seed(0))
            work = forward_work(network.config, 1, m, d)
            definite = (work.definite + work.inverses) / speed[torch.float32]
            floors = {
                f"floor in {name}": work.products / speed[kind] + definite
                for name, kind in (("float32", torch.float32), ("bfloat16", torch.bfloat16))
            }
            row: dict[str, object] = {"design": design, "d": d, "M": m} | floors
            for way in ("bfloat16", "float32", "layers"):
                network.mixed_precision = way == "bfloat16"
                with torch.no_grad(), mock.patch.object(cpu, "is_quick", lambda x, way=way: way != "layers"):
                    row |= time_on_cpu(network, x_bmd, way)
                if way == "bfloat16":
                    row["peak GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            yield row


def measure_products(kind: torch.dtype, size: int = 3072) -> float:
    """Operations a second of large products on this CPU, the best of three."""
    a, seconds = torch.ones(size, size, dtype=kind), []
    for _ in range(3):
        began = time.perf_counter()
        torch.mm(a, a)
        seconds.append(time.perf_counter() - began)
    return 2 * size**3 / min(seconds)


def time_on_cpu(network: EdgeNet, x_bmd: Tensor, way: str, repeats: int = 3) -> dict[str, object]:
    """Least seconds, and least seconds of processor time, of some passes after a first one."""
    network(x_bmd)
    clocks = (time.perf_counter, time.process_time)
    times = []
    for _ in range(repeats):
        began = [clock() for clock in clocks]
        network(x_bmd)
        times.append([clock() - start for clock, start in zip(clocks, began, strict=True)])
    return {f"{way} s": min(wall for wall, _ in times), f"{way}, processor s": min(used for _, used in times)}


def on_gpu(designs: list[str], modes: list[str]) -> Rows:
    for design, mode in itertools.product(designs, modes):
        network = EdgeNet(DESIGNS[design]()).cuda()
        if mode != "eager":
            network.compile_blocks()
        for shape in SHAPES.values():
            with going_on(f"{mode} passes of {design} at {shape}"):
                yield measure(network, design, mode, shape)
        del network


def measure(network: EdgeNet, design: str, mode: str, shape: tuple[int, int, int]) -> dict[str, object]:
    rng = torch.Generator("cuda").manual_seed(0)
    x_bmd = torch.randn(*shape, generator=rng, device="cuda")
    classes_bdd = torch.zeros(shape[0], shape[2], shape[2], dtype=torch.long, device="cuda")

    def work() -> None:
        network.zero_grad(set_to_none=True)
        edge_loss(network(x_bmd)[..., : len(CLASSES)], classes_bdd).total().backward()

    began = time.perf_counter()
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    warm = time.perf_counter() - began
    torch.cuda.reset_peak_memory_stats()
    milliseconds = time_on_gpu(capture(work) if mode == "graph" else work)
    floor = forward_work(network.config, *shape).training().floor()
    log_work = logarithm_work(shape[0] * network.config.spd_channels, shape[2])
    log = time_on_gpu(capture(log_work) if mode == "graph" else log_work)
    return {
        "design": design,
        "mode": mode,
        "tables, M, d": f"{shape[0]}, {shape[1]}, {shape[2]}",
        "ms": milliseconds,
        "floor ms": floor * 1e3,
        "peak GiB": torch.cuda.max_memory_allocated() / 2**30,
        "log ms": log,
        "log share": log / milliseconds,
        "warm-up s": warm,
    }


def logarithm_work(n_matrices: int, d: int) -> Callable[[], None]:
    rng = torch.Generator("cuda").manual_seed(1)
    a = torch.randn(n_matrices, d, 2 * d, generator=rng, device="cuda")
    s = spd.correlate(a @ a.mT, ridge=1e-3).requires_grad_()
    grad = torch.randn(s.shape, generator=rng, device="cuda")
    return lambda: spd.logm(s).backward(grad)


@torch.no_grad()
def print_agreement(weights: str, device: str) -> None:
    """Largest and mean difference of probabilities on eight broad tables: compiled or not, with tiles or without,
    and of those on a CPU."""
    size = {"n_tables": 8, "n_variables": 55, "n_samples": 525}
    x_bmd = sample_tables(torch.Generator().manual_seed(0), SimulationConfig.preset("broad-1"), **size).x_bmd
    answers = {("CPU", "float32"): load_weights(weights, "cpu").network(x_bmd)[..., : len(CLASSES)].softmax(-1)}
    for mode, precision in itertools.product(("plain", "no tiles", "compiled"), ("bfloat16", "float32")):
        with going_on(f"agreement of {mode} in {precision}"):
            found = answers[mode, precision] = ask(weights, mode, precision, x_bmd.to(device)).cpu()
            other = ("CPU", "float32") if mode == "plain" else ("plain", precision)
            gap = (found - answers[other]).abs()
            print(f"{precision} {mode} − {other[0]}: largest {gap.max():.2g}, mean {gap.mean():.2g}")


def ask(weights: str, mode: str, precision: str, x_bmd: Tensor) -> Tensor:
    """Probabilities of classes, in one of several ways."""
    network = load_weights(weights, x_bmd.device.type).network
    network = network.compile_blocks() if mode == "compiled" else network
    network.mixed_precision = precision == "bfloat16"
    with mock.patch.object(tiles, "TRITON", tiles.TRITON and mode != "no tiles"):
        return network(x_bmd)[..., : len(CLASSES)].softmax(-1)


def print_throughput(design: str, device: str, cells: int = 480_000) -> None:
    """Tables a second if the shape of each is drawn evenly from the paper's grid, and of the slowest shape."""
    task = AnswerTask.name if DESIGNS[design]().answers else EdgeTask.name
    config = TrainConfig.paper(network=DESIGNS[design](), cells_per_step=cells, task=task)
    stepper, seconds, grid = begin_steps(config, device), dict[Shape, float](), shape_grid(config)
    for shape in sorted(grid, key=lambda shape: -shape.n_samples * shape.n_variables):
        with going_on(f"throughput of {design} at {tuple(shape)}"):
            seconds[shape] = time_step(stepper, shape, device)[0] / 1e3 / shape.n_tables
            print(f"{tuple(shape)}: {1 / seconds[shape]:.0f} tables/s")
    mean, slowest = statistics.mean(seconds.values()), max(seconds, key=lambda shape: seconds[shape])
    shapes = f"{len(seconds)} of {len(grid)} shapes"
    print(f"{design}: {1 / mean:.0f} tables/s over {shapes}; slowest {slowest} {1 / seconds[slowest]:.0f}")


def random_batch(shape: Shape, device: str, *, answers: bool) -> AnyBatch:
    rng = torch.Generator(device).manual_seed(0)
    x_bmd = torch.randn(*shape, generator=rng, device=device)
    none_bdd = torch.zeros(shape.n_tables, *[shape.n_variables] * 2, dtype=torch.uint8, device=device)
    rows_b = torch.full((shape.n_tables,), float(shape.n_samples), device=device)
    if answers:
        return AnswerBatch(x_bmd, torch.zeros_like(x_bmd, dtype=torch.uint8), rows_b, *[none_bdd] * 5).ready()
    return Batch(x_bmd, none_bdd, rows_b).ready()


def print_layers(design: str, device: str) -> None:
    """Milliseconds of forward and backward of the layers of each kind, with what the network gives them as input."""
    network = EdgeNet(DESIGNS[design]()).to(device)
    for shape in MORE_SHAPES.values():
        print(f"\n{design}, {shape}\n| kind | layers | ms each | GFLOP each | MB each | floor each | ms | floor |")
        print("|" + "---|" * 8)
        totals = [0.0, 0.0]
        for kind, met in meet_layers(network, shape, device).items():
            with going_on(f"{kind} of {design} at {shape}"):
                milliseconds, work = time_layer(*met[-1], device), count_layer(*met[-1])
                whole = [len(met) * milliseconds, len(met) * work.floor()]
                totals = [total + part for total, part in zip(totals, whole, strict=True)]
                print(f"| {kind} | {len(met)} | {milliseconds:.2f} | {work} | {whole[0]:.2f} | {whole[1]:.2g} |")
        print(f"| all of these | | | | | | {totals[0]:.2f} | {totals[1]:.2g} |")


class LayerWork(NamedTuple):
    """What forward and backward of a layer cannot do without."""

    operations: float
    """Of its products, forward and back; whatever is computed again does not count."""
    bytes: float
    """Inputs read and outputs written, then both read and slopes of inputs written: whatever else moves need not."""
    speed: float
    """Operations a second that an H200 reaches in the precision of the output."""

    def floor(self) -> float:
        """Milliseconds below which no code comes on an H200."""
        return 1e3 * max(self.operations / self.speed, self.bytes / H200_BYTES)

    def __str__(self) -> str:
        return f"{self.operations / 1e9:.3g} | {self.bytes / 1e6:.3g} | {self.floor():.2g}"


def count_layer(layer: nn.Module, inputs: Inputs) -> LayerWork:
    """Operations are counted where tensors have a shape and nothing else, and layers are plain ones."""
    layer, inputs = copy.deepcopy(layer).to("meta"), tree_map(shape_only, inputs)
    with FlopCounterMode(display=False) as counter:
        out = layer(*inputs)
        out.backward(torch.ones_like(out))
    read, written = (sum(part.nbytes for part in tree_leaves(parts)) for parts in (inputs, out))
    speed = H200_BF16 if out.dtype == torch.bfloat16 else H200_FP32
    return LayerWork(counter.get_total_flops(), 3 * read + 2 * written, speed)


def shape_only(part: Tensor) -> Tensor:
    return part.detach().to("meta").requires_grad_(part.ndim > 1)


def leaves_of(layer: nn.Module, inputs: Inputs) -> list[Tensor]:
    """What slopes are asked for: of inputs and of weights."""
    return [part for part in tree_leaves(inputs) if part.requires_grad] + list(layer.parameters())


def meet_layers(
    network: EdgeNet, shape: tuple[int, int, int], device: str
) -> dict[str, list[tuple[nn.Module, Inputs]]]:
    """Layers by kind, each with what a table of this shape gives it."""
    x_bmd = torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(device)
    met: dict[str, list[tuple[nn.Module, Inputs]]] = {}

    def note(layer: nn.Module, inputs: Inputs) -> None:
        kind = f"{type(layer).__name__} {getattr(layer, 'axis', '')}".strip()
        met.setdefault(kind, []).append((layer, inputs))

    parts = [*network.observation, network.correlation, *network.bilinear, *network.head.compilable()]
    hooks = [part.register_forward_pre_hook(note) for part in parts]
    with torch.compiler.set_stance("force_eager"):  # what is compiled would be so again for the hooks
        network(x_bmd)  # with gradients: without them a CPU does not go through the layers
    for hook in hooks:
        hook.remove()
    if device == "cuda":
        network.compile_blocks()
    return met


def print_kernels(design: str, device: str, most: int = 15) -> None:
    """Time and number of launches by kind of kernel in one forward and backward pass, and the longest kernels."""
    network = EdgeNet(DESIGNS[design]()).to(device)
    if device == "cuda":
        network.compile_blocks()
    for shape in MORE_SHAPES.values():
        x_bmd = torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(device)
        with going_on(f"kernels of {design} at {shape}"):
            times = profile_pass(network, x_bmd)
            print(f"\n{design}, {shape}")
            print_kinds(times, most)


def print_kinds(times: Times, most: int = 15, n_steps: int = 1) -> None:
    """Time and launches by kind of kernel, a mean over steps, and the longest kernels."""
    kinds: Times = {}
    for name, parts in times.items():
        kind = next((k for k, words in KERNELS.items() if any(w in name.lower() for w in words)), "other")
        kinds.setdefault(kind, []).extend(parts)
    print("| kind of kernel | launches | ms |\n|---|---|---|")
    for kind, parts in sorted(kinds.items(), key=lambda item: -sum(item[1])):
        print(f"| {kind} | {len(parts) / n_steps:.0f} | {sum(parts) / n_steps:.2f} |")
    for name, parts in sorted(times.items(), key=lambda item: -sum(item[1]))[:most]:
        print(f"{sum(parts) / n_steps:8.3f} ms {len(parts) / n_steps:6.0f} × {name[:90]}")


def print_steps(device: str) -> None:
    """Whole optimiser steps of every answer, by Muon: milliseconds, and the kinds of kernels they consist of."""
    stepper = begin_steps(TrainConfig.answers(network=DESIGNS["answers"]()), device)
    for sizes in STEPPED:
        with going_on(f"steps at {sizes}"):
            milliseconds, work = time_step(stepper, Shape(*sizes), device)
            print(f"\n{sizes}: {milliseconds:.2f} ms a step")
            print_kinds(profile(work, device))


def print_mix(n_shapes: int, device: str) -> None:
    """The same over shapes as training draws them: every shape, mean step, tables a second, kinds of kernels."""
    config = TrainConfig.answers(network=DESIGNS["answers"](), window=n_shapes)
    stepper, times, milliseconds = begin_steps(config, device), Times(), dict[Shape, float]()
    drawn = Counter(draw_shapes(torch.Generator().manual_seed(0), config, config.curriculum_steps))
    for shape, count in sorted(drawn.items(), key=lambda item: -item[0].n_samples * item[0].n_variables):
        with going_on(f"mix at {tuple(shape)}"):
            milliseconds[shape], work = time_step(stepper, shape, device)
            print(f"{count} × {tuple(shape)}: {milliseconds[shape]:.2f} ms")
            for name, parts in profile(work, device).items():
                times.setdefault(name, []).extend(count * parts)
    n_steps = sum(drawn[shape] for shape in milliseconds)
    whole = sum(drawn[shape] * spent for shape, spent in milliseconds.items())
    n_tables = sum(drawn[shape] * shape.n_tables for shape in milliseconds)
    mean, tables = whole / n_steps, 1e3 * n_tables / whole
    print(f"\n{n_steps} shapes, {len(milliseconds)} of them distinct: {mean:.2f} ms a step, {tables:.0f} tables/s")
    print_kinds(times, n_steps=n_steps)


def begin_steps(config: TrainConfig, device: str) -> Stepper:
    """Steps as a run of this config takes them, of a fresh network."""
    task, network = task_of(config), EdgeNet(config.network).to(device)
    if device == "cuda":
        compile_at_scale(network.compile_blocks(), task, torch.device(device))
    settings = {name: getattr(config, name) for name in ("weight_decay", "clip_norm", "ema_decay")}
    return Stepper(network, task, capture=device == "cuda", muon=config.optimizer == "muon", **settings)


def time_step(stepper: Stepper, shape: Shape, device: str, repeats: int = 5) -> tuple[float, Callable[[], None]]:
    """Milliseconds of one step at a shape, and the step itself."""
    work = partial(stepper.step, random_batch(shape, device, answers=isinstance(stepper.task, AnswerTask)), 1e-6)
    for _ in range(3):  # compiles, records, replays
        work()
    began = synchronised_clock(device)
    for _ in range(repeats):
        work()
    return (synchronised_clock(device) - began) * 1e3 / repeats, work


def profile_pass(network: EdgeNet, x_bmd: Tensor) -> Times:
    """Milliseconds of every launch of one pass, by the name of the kernel; of every operation, on a CPU."""

    def work() -> None:
        torch.autograd.grad(network(x_bmd).square().mean(), list(network.parameters()), allow_unused=True)  # marks

    work()
    return profile(work, x_bmd.device.type)


def profile(work: Callable[[], None], device: str) -> Times:
    """Milliseconds of every launch, by the name of the kernel; of every operation, on a CPU."""
    on_gpu = device == "cuda"
    kind = torch.profiler.ProfilerActivity.CUDA if on_gpu else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[kind]) as profiler:
        work()
        synchronised_clock(device)
    times: Times = {}
    for event in profiler.events():
        microseconds = event.device_time if on_gpu else event.self_cpu_time_total
        times.setdefault(event.name, []).append(microseconds / 1e3)
    return times


def print_attention(device: str) -> None:
    """Whole attention layers, forward and backward, by each kernel; a dash for kernels that cannot."""
    shapes = list(ATTENDED)
    spelt = [", ".join(map(str, shape)) for shape in shapes]
    print("| axis | kernel | " + " | ".join(spelt) + " |\n|" + "---|" * (2 + len(shapes)))
    axes: tuple[layers.Axis, ...] = ("attributes", "samples")
    for axis, (name, backend) in itertools.product(axes, BACKENDS.items()):
        with mock.patch.dict(layers.KERNELS, {axis: [backend]}), mock.patch.object(tiles, "TRITON", False):
            print_times([axis, name], time_kernel(axis, shapes, device))
    for axis in axes:  # "no kernel": where a line does not fit a tile, there is a dash
        with mock.patch.dict(layers.KERNELS, {axis: [SDPBackend.ERROR]}):
            print_times([axis, "tiles"], time_kernel(axis, shapes, device))
    print_few(device)
    print_stretches(device)


def print_times(names: Sequence[str], times: Sequence[float | None]) -> None:
    """A row of a table; a dash for what cannot be done."""
    print("| " + " | ".join([*names, *("–" if ms is None else f"{ms:.3g}" for ms in times)]) + " |")


def print_few(device: str) -> None:
    """Attention over few attributes, forward and backward: by the kernel for it, and by sums of products."""
    print("\n| few attributes | " + " | ".join(f"{d}" for *_, d in FEW) + " |\n|" + "---|" * (1 + len(FEW)))
    for name, longest, by_tiles in (("kernel", 0, False), ("tiles", 0, tiles.TRITON), ("sums of products", 24, False)):
        with mock.patch.object(layers, "SHORT", longest), mock.patch.object(tiles, "TRITON", by_tiles):
            print_times([name], time_kernel("attributes", FEW, device))


def print_stretches(device: str) -> None:
    """Attention over samples, forward and backward, where every n-th sees every n-th."""
    n_tables, n_samples, d = STRETCHED
    shapes = [(n_tables, n, d * (n_samples // n)) for n in STRETCHES]
    print(f"\n| {n_tables} × {n_samples} × {d} in stretches of | " + " | ".join(map(str, STRETCHES)) + " |")
    print("|" + "---|" * (1 + len(shapes)))
    for name, by_tiles in (("kernel", False), ("tiles, up to 128", True)):
        with mock.patch.object(tiles, "TRITON", by_tiles and tiles.TRITON):
            print_times([name], time_kernel("samples", shapes, device))


def time_kernel(axis: layers.Axis, shapes: Sequence[tuple[int, int, int]], device: str) -> list[float | None]:
    """Milliseconds of one layer of two heads of 32 channels at each shape, compiled on a GPU."""
    layer = layers.AxialAttention(64, 2, axis, project=True).to(device)
    if device == "cuda":
        torch._dynamo.reset()
        layer.compile(dynamic=True)
    times: list[float | None] = []
    for shape in (COMPILED_WITH, *shapes):
        cells = torch.randn(*shape, 64, device=device, dtype=torch.bfloat16)
        try:
            times.append(time_layer(layer, (cells,), device))
        except RuntimeError:
            times.append(None)
    return times[1:]


def time_layer(layer: nn.Module, inputs: Inputs, device: str) -> float:
    inputs = tree_map(lambda part: part.detach().clone().requires_grad_(part.ndim > 1), inputs)
    grad, leaves = torch.ones_like(layer(*inputs)), leaves_of(layer, inputs)

    def work() -> None:
        torch.autograd.grad(layer(*inputs), leaves, grad, allow_unused=True)

    if device == "cuda":
        return time_on_gpu(capture(work))
    work()
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def synchronised_clock(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def capture(work: Callable[[], None]) -> Callable[[], None]:
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        work()
    return graph.replay


def own_stream(device: str) -> contextlib.AbstractContextManager[object]:
    """A graph cannot be captured on the default stream, nor share gradients with it."""
    return torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else contextlib.nullcontext()


def time_on_gpu(work: Callable[[], None], repeats: int = 15) -> float:
    """Median milliseconds."""
    times = []
    for _ in range(repeats + 3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[3:])


if __name__ == "__main__":
    main()
