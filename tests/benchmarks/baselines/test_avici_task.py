"""AVICI's network in the engine: its loss, its dual ascent, its runs and its weights."""

import dataclasses
import itertools
import json
import math

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close
from typer.testing import CliRunner

from cases import each
from graphbam.benchmarks.baselines.avici_net import AviciNet, AviciNetConfig, load_arrows
from graphbam.benchmarks.baselines.avici_task import (
    AcyclicityConfig,
    ArrowTask,
    DualAscent,
    arrow_config,
    arrow_loss,
    spectral_radius,
)
from graphbam.cli import app
from graphbam.errors import ConfigError, WeightsError
from graphbam.nn.edge_net import EdgeNetConfig
from graphbam.nn.weights import load_colliders, load_network, load_weights, read_tensors, save_weights
from graphbam.simulation.config import SimulationConfig
from graphbam.training import TrainConfig
from graphbam.training.config import StructureConfig, task_of
from graphbam.training.data import Stream
from graphbam.training.loop import new_network
from graphbam.training.step import Stepper
from standins import TINY_RUN
from toy_runs import log_of, run

CPU = torch.device("cpu")
TINY = {"channels": 8, "blocks": 2, "heads": 2, "key_size": 4, "widening": 2}


def tiny_run(network=None, **changes):
    """A run that takes milliseconds a step; the penalty sets in at once."""
    settings = TINY_RUN | {
        "network": AviciNetConfig(**(TINY | (network or {}))),
        "settings": AcyclicityConfig(burn_in=4, every=3, rate=0.5),
    }
    return arrow_config(**(settings | changes))


def random_dags(rng, b, d):
    """Upper triangles behind random names."""
    dags = (torch.rand(b, d, d, generator=rng, dtype=torch.float64) < 0.6).double().triu(1)
    p = torch.randperm(d, generator=rng)
    return dags[:, p][:, :, p]


# ── spectral radius ──────────────────────────────────────────────────────────────────────────────────────────────


@each("dtype", [torch.float32, torch.float64])
@each("d", [2, 3, 7, 12])
def test_the_radius_is_the_largest_eigenvalue(rng, d, dtype):
    a = torch.rand(5, d, d, generator=rng, dtype=dtype) * (1 - torch.eye(d, dtype=dtype))
    expected = torch.linalg.eigvals(a.double()).abs().amax(-1).to(dtype)
    assert_close(spectral_radius(a), expected, rtol=4e-3, atol=0)
    assert_close(spectral_radius(1e-6 * a), 1e-6 * expected, rtol=4e-3, atol=0)


def test_the_radius_of_a_bare_cycle_is_its_geometric_mean():
    """Such a matrix has several eigenvalues of the same size, on which plain power iteration goes round for ever."""
    a = torch.zeros(3, 3, dtype=torch.float64)
    a[0, 1], a[1, 2], a[2, 0] = 1.0, 0.5, 1e-4
    assert spectral_radius(a).item() == pytest.approx((0.5 * 1e-4) ** (1 / 3), rel=0.02)


@each("d", [2, 6, 60])
def test_the_radius_of_a_dag_is_zero(rng, d):
    dags = random_dags(rng, 4, d)
    chain = torch.diag(torch.ones(d - 1, dtype=torch.float64), 1)[None]
    for a in (dags, dags.float(), chain, torch.zeros(1, d, d)):
        a = a.clone().requires_grad_()
        radius = spectral_radius(a)
        assert (radius == 0).all()
        assert torch.isfinite(torch.autograd.grad(radius.sum(), a)[0]).all()
    closed = chain + 1e-6 * chain.mT  # every arrow has a weak opposite
    assert (spectral_radius(closed) > 1e-4).all()


def test_the_radius_is_never_negative_and_grows_with_every_entry(rng):
    a = torch.rand(4, 5, 5, generator=rng, dtype=torch.float64).requires_grad_()
    radius = spectral_radius(a)
    assert (radius > 0).all()
    assert (torch.autograd.grad(radius.sum(), a)[0] >= 0).all()


def test_slopes_of_the_radius_are_true(rng):
    a = torch.rand(1, 4, 4, generator=rng, dtype=torch.float64).requires_grad_()
    assert gradcheck(spectral_radius, a)


def test_slopes_are_finite_for_sure_and_nearly_acyclic_probabilities(rng):
    """Entries down to 1e-13, where slopes in the probabilities are huge, but not those in the logits."""
    logits = (40 * random_dags(rng, 3, 40) - 30).float().requires_grad_()
    radius = spectral_radius(logits.sigmoid() * (1 - torch.eye(40)))
    slopes = torch.autograd.grad(radius.sum(), logits)[0]
    assert (radius > 0).all()
    assert torch.isfinite(slopes).all()
    assert (slopes.abs().sum((1, 2)) <= radius + 1e-4).all()


# ── loss and dual ascent ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_loss_is_a_mean_over_ordered_pairs(rng):
    logits = torch.randn(3, 5, 5, generator=rng, dtype=torch.float64)
    dags = random_dags(rng, 3, 5)
    losses, radii = [], []
    for logit, dag in zip(logits, dags, strict=True):
        p = logit.sigmoid()
        chance = torch.where(dag > 0, p, 1 - p)
        losses += [-chance[i, j].log().item() for i in range(5) for j in range(5) if i != j]
        radii.append(torch.linalg.eigvals(p.fill_diagonal_(0)).abs().max().item())
    loss = arrow_loss(logits, dags.to(torch.int8))
    assert loss.arrows.item() == pytest.approx(sum(losses) / len(losses))
    assert loss.cycles.item() == pytest.approx(sum(radii) / 3, rel=4e-3)
    other = arrow_loss(logits + 50 * torch.eye(5), dags)  # the diagonal does not count
    assert_close(other, loss)


def test_perfect_answers_cost_nothing(rng):
    dags = random_dags(rng, 3, 5)
    loss = arrow_loss((2 * dags - 1) * 200, dags)
    assert loss.arrows < 1e-9
    assert loss.cycles < 1e-6


def test_the_weight_of_the_penalty_rises_after_the_burn_in():
    dual = DualAscent(AcyclicityConfig(burn_in=4, every=2, rate=0.1))
    seen = []
    for value in (1.0, 3.0, 5.0, 7.0, 2.0, 4.0, math.nan, 6.0):
        dual.observe(torch.tensor(value))
        seen.append(round(dual.weight.item(), 6))
    assert seen == [0, 0, 0, 0, 0, 0.3, 0.3, 0.6]  # steps 5 and 6 have mean 3; 7 and 8, one of them not finite, too


def test_the_objective_uses_the_weight_and_raises_it(rng):
    config = tiny_run()
    task, network = task_of(config), new_network(config, CPU)
    batch = next(iter(Stream(config, CPU)))
    arrows, cycles = arrow_loss(network(batch.x_bmd), batch.dag_bdd)
    task.state.weight.fill_(0.25)
    task.state.step.fill_(5)  # the next one ends a round behind the burn-in
    objective = task.objective(network, batch)
    expected = arrows + 0.25 * cycles
    assert_close(objective.goal, expected * (batch.shape.n_variables / 20) ** 0.5)
    assert_close(torch.stack(objective.parts), torch.stack([expected, arrows, cycles, torch.tensor(0.25)]))
    objective.goal.backward()
    assert_close(task.state.weight, 0.25 + 0.5 / 3 * cycles.detach())


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_tables_are_those_that_the_edge_network_sees():
    config = tiny_run()
    edge = dataclasses.replace(config, task="edges", network=EdgeNetConfig(), settings=None)
    assert isinstance(task_of(config), ArrowTask)
    pairs = itertools.islice(zip(Stream(config, CPU), Stream(edge, CPU), strict=True), 6)
    for mine, other in pairs:
        assert torch.equal(mine.x_bmd, other.x_bmd)
        skeleton = (mine.dag_bdd + mine.dag_bdd.mT) > 0
        assert torch.equal(skeleton, other.classes_bdd == 1)
        assert ((mine.dag_bdd * mine.dag_bdd.mT) == 0).all()


# ── configs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_configs_round_trip():
    for config in (arrow_config(), tiny_run(seed=3)):
        assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert arrow_config().variables == TrainConfig.paper().variables
    assert arrow_config().simulation == TrainConfig.paper().simulation


@each(
    "make",
    [
        lambda: TrainConfig(settings=AcyclicityConfig()),
        lambda: arrow_config(settings=None),
        lambda: arrow_config(settings=StructureConfig()),
        lambda: TrainConfig(network=AviciNetConfig()),
    ],
)
def test_task_network_and_settings_come_together(make):
    with pytest.raises(ConfigError, match="needs a network config of type"):
        make()


@each("change", [{"every": 0}, {"burn_in": -1}, {"rate": -0.1}])
def test_impossible_schedules_are_refused(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        AcyclicityConfig(**change)
    with pytest.raises(ConfigError, match="no field colour"):
        AcyclicityConfig.from_dict({"colour": 1})


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_in_two_parts_equals_one_in_one(tmp_path):
    config = tiny_run()
    run(config, tmp_path / "whole", 20)
    run(config, tmp_path / "parts", 11)  # between two rises of the weight
    run(config, tmp_path / "parts", 20, resume=True)
    whole, parts = (log_of(tmp_path / name) for name in ("whole", "parts"))
    for name in ("step", "tables", "loss", "arrows", "cycles", "cycle_weight", "gradient_norm"):
        assert [line[name] for line in whole] == [line[name] for line in parts]
    assert whole[-1]["cycle_weight"] > whole[12]["cycle_weight"] > 0
    one, two = (read_tensors(tmp_path / name / "checkpoint.safetensors")[0] for name in ("whole", "parts"))
    assert one.keys() == two.keys() >= {"task.weight", "task.total", "task.step"}
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert one["task.step"] == 20


def test_it_learns(tmp_path):
    """On strong squares of three variables: soon better than base rates, then than all pairs without directions."""
    easy = SimulationConfig.preset("paper").narrow(mechanism="square", degree=1.0, noise_share=(0.05, 0.1))
    config = tiny_run(
        network={"channels": 32, "blocks": 4, "key_size": 8, "widening": 4, "temperature": 1.0, "bias": -1.0},
        settings=AcyclicityConfig(burn_in=30, every=5, rate=1e-3),
        simulation=easy,
        variables=(3,),
        samples=(16,),
        cells_per_step=2400,
        max_tables=40,
        burst=4,
        learning_rate=4e-3,
        warmup_steps=5,
    )
    run(config, tmp_path, 110)
    lines = log_of(tmp_path)
    truth = torch.cat([batch.dag_bdd.float() for batch in itertools.islice(iter(Stream(config, CPU)), 20)])
    share = float(truth.sum() / (6 * len(truth)))
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    pairs = 2 * share * math.log(2)  # all pairs known, directions guessed
    half, late = (sum(line["arrows"] for line in part) / len(part) for part in (lines[35:50], lines[-15:]))
    assert half < entropy - 0.1
    assert late < pairs


def test_steps_that_are_not_finite_leave_weights_and_penalty_alone(rng):
    config = tiny_run()
    task = task_of(config)
    stepper = Stepper(new_network(config, CPU), task, weight_decay=0.1, clip_norm=1.0, ema_decay=0.9, capture=False)
    for batch in itertools.islice(Stream(config, CPU), 7):
        stepper.step(batch, 1e-3)
    before, weight = [p.detach().clone() for p in stepper.parameters], task.state.weight.clone()
    stepper.step(batch._replace(x_bmd=batch.x_bmd * math.nan), 1e-3)
    assert all(torch.equal(a, b) for a, b in zip(before, stepper.parameters, strict=True))
    assert torch.equal(task.state.weight, weight)
    assert stepper.statistics()["skipped"] == 1


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_weights_go_round(tmp_path):
    config = tiny_run()
    path = run(config, tmp_path, 3)
    loaded = load_arrows(path)
    assert (loaded.name, loaded.header.kind) == ("weights", "avici")
    assert TrainConfig.from_dict({**loaded.header.train, "network": loaded.header.config}) == config
    tensors, _ = read_tensors(tmp_path / "checkpoint.safetensors")
    state = loaded.network.state_dict()
    assert all(torch.equal(state[name], tensors[f"average.{name}"]) for name in state)
    x = torch.randn(3, 9, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = loaded.network(x).double().sigmoid()
    assert torch.equal(loaded.probabilities(x), expected)
    assert torch.equal(load_network(path, types=[AviciNet]).network(x), loaded.network(x))


def test_chunks_do_not_change_probabilities(monkeypatch, tmp_path):
    save_weights(tmp_path / "w", AviciNet(AviciNetConfig(**TINY)))
    loaded = load_arrows(tmp_path / "w")
    x = torch.randn(5, 9, 4, generator=torch.Generator().manual_seed(0))
    whole = loaded.probabilities(x)
    monkeypatch.setattr("graphbam.nn.weights.CELLS_PER_CHUNK", 2 * 9 * 4)
    assert_close(loaded.probabilities(x), whole)


def test_each_kind_of_weights_has_its_place(tiny_net, tmp_path):
    import graphbam as gb

    arrows, edges = tmp_path / "arrows.safetensors", tmp_path / "edges.safetensors"
    save_weights(arrows, AviciNet(AviciNetConfig(**TINY)))
    save_weights(edges, tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32))
    with pytest.raises(WeightsError, match="holds weights of kind 'avici', but 'edges' is needed here"):
        load_weights(arrows)
    with pytest.raises(WeightsError, match="holds weights of kind 'avici', but 'immoralities' is needed here"):
        load_colliders(arrows)
    with pytest.raises(WeightsError, match="holds weights of kind 'edges', but 'avici' is needed here"):
        load_arrows(edges)
    with pytest.raises(WeightsError, match="'edges' is needed"):
        gb.infer(torch.randn(30, 3).numpy(), weights=arrows)


def test_altered_weights_are_refused(tmp_path):
    path = tmp_path / "w.safetensors"
    save_weights(path, AviciNet(AviciNetConfig(**TINY)))
    data = bytearray(path.read_bytes())
    data[-9] ^= 0x10
    path.write_bytes(data)
    with pytest.raises(WeightsError, match="altered"):
        load_arrows(path)


# ── command line ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_trains_and_resumes(tmp_path):
    words = ["train", "--network", "avici", "--data", "paper", "--tiny", "--device", "cpu", "-o", str(tmp_path / "run")]
    for more in (["--steps", "2"], ["--steps", "3", "--resume"]):
        result = CliRunner().invoke(app, [*words, *more])
        assert result.exit_code == 0, result.output
    assert load_arrows(tmp_path / "run" / "weights.safetensors").header.progress.step == 3


def test_edges_are_not_for_avici(tmp_path):
    words = ["train", "--network", "avici", "--edges", "edges", "--steps", "1", "-o", str(tmp_path / "run")]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, ConfigError)
    assert "is for collider networks" in str(result.exception)
