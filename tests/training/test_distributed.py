"""Two gloo processes under torchrun: their gradients are those of one process with the joined batch."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from graphbam.nn.weights import load_weights, read_tensors
from graphbam.training.data import Batch, Stream
from graphbam.training.loop import new_network
from graphbam.training.objectives import EdgeTask, edge_loss
from graphbam.training.step import Stepper, learning_rate

pytestmark = pytest.mark.long  # four processes, each with a torch of its own

CPU = torch.device("cpu")
STEPS = 4

GRADIENTS = """
import json, os, sys
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from graphbam.nn.edge_net import EdgeNet
from graphbam.training import TrainConfig
from graphbam.training.objectives import edge_loss

folder, rank = sys.argv[1], int(os.environ["RANK"])
config = TrainConfig.from_dict(json.load(open(folder + "/config.json")))
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
network = EdgeNet(config.network).double()
network.load_state_dict(load_file(folder + "/network.safetensors"))
data = load_file(folder + f"/half{rank}.safetensors")
parallel = torch.nn.parallel.DistributedDataParallel(network)
edge_loss(parallel(data["x"]), data["classes"]).total().backward()
save_file({name: p.grad for name, p in network.named_parameters()}, folder + f"/gradients{rank}.safetensors")
dist.barrier()
os._exit(0)
"""

TRAIN = """
import glob, json, sys
from graphbam.training import Budget, TrainConfig, train

if __name__ == "__main__":
    config = TrainConfig.from_dict(json.load(open(sys.argv[1] + "/config.json")))
    train(config, sys.argv[1] + "/run", budget=Budget(steps=int(sys.argv[2]), report_seconds=0.0), device="cpu")
    threads = [open(path).read() for path in glob.glob("/proc/self/task/*/comm")]  # empty where there is no /proc
    assert not any("gloo" in name for name in threads), "a process group that is still alive aborts Python now and then"
"""

CLOCKS = """
import functools, itertools, json, os, sys
from types import SimpleNamespace
from safetensors.torch import save_file
from graphbam.training import Budget, TrainConfig, loop, train
from graphbam.training.step import Stepper

if __name__ == "__main__":
    folder, rank, rates = sys.argv[1], int(os.environ["RANK"]), []
    store = {"init_method": f"file://{folder}/store", "rank": rank, "world_size": 2}
    loop.dist.init_process_group = functools.partial(loop.dist.init_process_group, **store)
    ticks = itertools.count(step=(1.0, 4.0)[rank])  # seconds that one step takes
    loop.time = SimpleNamespace(monotonic=lambda: next(ticks))

    class Watched(Stepper):
        def step(self, batch, rate):
            rates.append(rate)
            super().step(batch, rate)
            last = {name: p.detach().clone() for name, p in zip(self.names, self.parameters)}
            save_file(last, folder + f"/last{rank}.safetensors")

    loop.Stepper = Watched
    config = TrainConfig.from_dict(json.load(open(folder + "/clocks.json")))
    budget = Budget(minutes=1, decay=True, report_seconds=1e9, save_seconds=1e9)
    train(config, folder + "/clocks", budget=budget, device="cpu")
    json.dump(rates, open(folder + f"/rates{rank}.json", "w"))
"""


def wait(*processes):
    """All of them end well within a minute; none is left behind, nor any child of theirs."""
    try:
        assert [process.wait(60) for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def start(*command, **variables):
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | variables
    return subprocess.Popen([sys.executable, *map(str, command)], env=environment, start_new_session=True)


@pytest.fixture(scope="module")
def problem(tiny_net, tiny_training):
    rng = torch.Generator().manual_seed(0)
    classes = torch.randint(0, 3, (6, 4, 4), generator=rng).triu(1)
    x = torch.randn(6, 9, 4, generator=rng, dtype=torch.float64)
    return tiny_training(), tiny_net(rng), Batch(x, classes + classes.mT, torch.full((6,), 9.0))


@pytest.fixture(scope="module")
def folder(problem, tmp_path_factory):
    """What two processes leave behind: gradients of half a batch each, and a run of four steps."""
    config, network, batch = problem
    folder = tmp_path_factory.mktemp("distributed")
    save_file(network.state_dict(), folder / "network.safetensors")
    for rank, (x, classes) in enumerate(zip(batch.x_bmd.chunk(2), batch.classes_bdd.chunk(2), strict=True)):
        save_file({"x": x.contiguous(), "classes": classes.contiguous()}, folder / f"half{rank}.safetensors")
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    (folder / "gradients.py").write_text(GRADIENTS)
    (folder / "train.py").write_text(TRAIN)
    wait(*(start(folder / "gradients.py", folder, RANK=str(rank)) for rank in (0, 1)))
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")
    wait(start(*torchrun, folder / "train.py", folder, STEPS))
    return folder


def test_gradients_equal_those_of_the_joined_batch(problem, folder):
    _, network, batch = problem
    loss = edge_loss(network(batch.x_bmd), batch.classes_bdd).total()
    expected = dict(
        zip(dict(network.named_parameters()), torch.autograd.grad(loss, list(network.parameters())), strict=True)
    )
    for rank in (0, 1):
        found = load_file(folder / f"gradients{rank}.safetensors")
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            assert_close(found[name], gradient, rtol=1e-10, atol=1e-10)
    assert max(gradient.abs().max() for gradient in expected.values()) > 1e-2


def test_two_processes_write_one_run(problem, folder):
    config, _, _ = problem
    names = sorted(path.name for path in (folder / "run").iterdir())
    assert names == ["checkpoint.safetensors", "log.jsonl", "weights.safetensors"]
    lines = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    shapes = [batch.shape for batch in itertools.islice(Stream(config, CPU), STEPS)]
    assert lines[-1]["tables"] == 2 * sum(shape.n_tables for shape in shapes)
    assert load_weights(folder / "run" / "weights.safetensors").network.config == config.network


def test_two_processes_learn_what_one_learns_from_both(problem, folder):
    """One process on the tables of both ranks sees the same gradient norms and ends at the same weights."""
    config, _, _ = problem
    stepper = Stepper(
        new_network(config, CPU),
        EdgeTask(),
        weight_decay=config.weight_decay,
        clip_norm=config.clip_norm,
        ema_decay=config.ema_decay,
        capture=False,
        muon=config.optimizer == "muon",
    )
    lines = [json.loads(line) for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
    ranks = zip(*(Stream(config, CPU, rank=rank) for rank in (0, 1)), strict=True)
    for step, (line, pair) in enumerate(zip(lines, ranks, strict=False)):
        joined = Batch(*(torch.cat(parts) for parts in zip(*pair, strict=True)))
        stepper.step(joined, learning_rate(config, step, 0.0, decay=False))
        assert stepper.statistics()["gradient_norm"] == pytest.approx(line["gradient_norm"], rel=1e-3, abs=2e-5)
    tensors, _ = read_tensors(folder / "run" / "checkpoint.safetensors")
    for (name, _), parameter in zip(stepper.network.named_parameters(), stepper.parameters, strict=True):
        assert_close(parameter.detach(), tensors[f"weight.{name}"], rtol=1e-3, atol=3e-4)


def test_processes_whose_clocks_differ_learn_at_one_rate(tiny_training, tmp_path):
    """The rate is that of the one that has spent most, and the weights of both stay the same."""
    config = tiny_training(decay_share=0.5, final_rate=0.0, warmup_steps=1)
    (tmp_path / "clocks.json").write_text(json.dumps(config.to_dict()))
    (tmp_path / "clocks.py").write_text(CLOCKS)
    wait(*(start(tmp_path / "clocks.py", tmp_path, RANK=str(rank), WORLD_SIZE="2") for rank in (0, 1)))
    slow, fast = (json.loads((tmp_path / f"rates{rank}.json").read_text()) for rank in (0, 1))
    progress = [4.0 * step / 60 for step in range(1, 15)]
    assert slow == fast == pytest.approx([learning_rate(config, 9, share, decay=True) for share in progress])
    assert fast[-1] < 0.2 * fast[0]
    one, two = (load_file(tmp_path / f"last{rank}.safetensors") for rank in (0, 1))
    assert all(torch.equal(one[name], two[name]) for name in one)
