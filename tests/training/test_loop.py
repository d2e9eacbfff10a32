"""Whole runs in toy size: they learn, they can be cut anywhere, and they say what they did."""

import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest
import torch

from cases import each, quick_and_long
from graphbam.cli._weights import summarise_training
from graphbam.errors import ConfigError, WeightsError
from graphbam.nn import weights
from graphbam.nn.features import N_SIZES
from graphbam.nn.layers import sees_samples
from graphbam.nn.weights import RunProgress, load_colliders, load_weights, read_tensors, save_weights
from graphbam.simulation.config import SimulationConfig
from graphbam.training import Budget, TrainConfig, loop, train
from graphbam.training.data import Batch
from graphbam.training.loop import differing_fields, load_checkpoint, new_network, save_checkpoint
from graphbam.training.objectives import EdgeTask
from graphbam.training.step import Stepper, learning_rate
from toy_runs import log_of, run

CPU = torch.device("cpu")

# ── cutting and continuing ───────────────────────────────────────────────────────────────────────────────────────


def test_a_run_in_two_parts_equals_one_in_one(tiny_training, tmp_path):
    config = tiny_training()
    run(config, tmp_path / "whole", 20)
    run(config, tmp_path / "parts", 11)
    run(config, tmp_path / "parts", 20, resume=True)
    whole, parts = (log_of(tmp_path / name) for name in ("whole", "parts"))
    for name in ("step", "tables", "loss", "classes", "edges", "penalty", "gradient_norm", "rate", "skipped"):
        assert [line[name] for line in whole] == [line[name] for line in parts]
    assert len(whole) == 20
    one, two = (read_tensors(tmp_path / name / "checkpoint.safetensors")[0] for name in ("whole", "parts"))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    one, two = (load_weights(tmp_path / name / "weights.safetensors").network for name in ("whole", "parts"))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


def test_reports_do_not_change_what_is_learnt(tiny_training, tmp_path):
    often = run(tiny_training(), tmp_path / "often", 6)
    never = run(tiny_training(), tmp_path / "never", 6, report_seconds=1e9)
    one, two = (load_weights(path).network.state_dict() for path in (often, never))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert len(log_of(tmp_path / "never")) == 1


@pytest.mark.parametrize("steps", [4, 2])
def test_continuing_a_finished_run_does_nothing(tiny_training, tmp_path, steps):
    config = tiny_training()
    path = run(config, tmp_path, 4)
    before = load_weights(path)
    run(config, tmp_path, steps, resume=True)
    after = load_weights(path)
    assert after.header.progress.step == 4
    assert after.header.progress.tables == before.header.progress.tables
    assert torch.equal(before.network.embedding.mix.weight, after.network.embedding.mix.weight)


def test_a_run_is_not_overwritten(tiny_training, tmp_path):
    config = tiny_training()
    run(config, tmp_path, 2)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()
    with pytest.raises(WeightsError, match=r"checkpoint\.safetensors exists; continue it with --resume"):
        run(config, tmp_path, 4)
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


def test_resuming_another_config_is_refused(tiny_training, tmp_path):
    run(tiny_training(), tmp_path, 1)
    with pytest.raises(WeightsError, match=r"clip_norm is 1\.0 in the file, 0\.5 here"):
        run(tiny_training(clip_norm=0.5), tmp_path, 4, resume=True)


def test_resuming_from_weights_is_refused(tiny_training, tmp_path):
    path = run(tiny_training(), tmp_path / "a", 1)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "checkpoint.safetensors").write_bytes(path.read_bytes())
    with pytest.raises(WeightsError, match="holds weights, not a checkpoint"):
        run(tiny_training(), tmp_path / "b", 2, resume=True)


def test_resuming_nothing_is_refused(tiny_training, tmp_path):
    with pytest.raises(WeightsError, match=r"there is no .*checkpoint\.safetensors to go on from; leave --resume out"):
        run(tiny_training(), tmp_path / "new", 2, resume=True)
    assert not (tmp_path / "new").exists()


def test_a_run_needs_a_folder_without_weights_of_others(tiny_training, tmp_path):
    (tmp_path / "weights.safetensors").write_text("mine")
    with pytest.raises(WeightsError, match=r"weights\.safetensors is there without a checkpoint"):
        run(tiny_training(), tmp_path, 1)
    with pytest.raises(ConfigError, match=r"weights\.safetensors is a file; a run needs a folder"):
        run(tiny_training(), tmp_path / "weights.safetensors", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["weights.safetensors"]


SCRIPT = """
import sys
from graphbam.training import Budget, TrainConfig, train
import json

if __name__ == "__main__":
    config = TrainConfig.from_dict(json.load(open(sys.argv[1])))
    train(config, sys.argv[2], budget=Budget(minutes=2, report_seconds=0.0, save_seconds=1e9), device="cpu")
"""


@pytest.mark.parametrize("number", quick_and_long([signal.SIGTERM], [signal.SIGINT]))
def test_a_signal_saves_and_the_run_goes_on_later(tiny_training, tmp_path, number):
    config, out = tiny_training(), tmp_path / "run"
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "config.json"), str(out)]
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        deadline = time.monotonic() + 60
        while not (out / "log.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not (out / "checkpoint.safetensors").exists()
        process.send_signal(number)
        assert process.wait(30) == 0
    finally:
        process.kill()
    step = log_of(out)[-1]["step"]
    run(config, out, step + 2, resume=True)
    assert [line["step"] for line in log_of(out)][-3:] == [step, step + 1, step + 2]


def test_the_handlers_of_the_caller_come_back(tiny_training, tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    run(tiny_training(), tmp_path, 1)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_out_of_disk_at_the_end_keeps_the_previous_checkpoint(monkeypatch, tiny_training, tmp_path):
    config = tiny_training()
    run(config, tmp_path, 2)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()

    def no_space(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(weights, "save_file", no_space)
    with pytest.raises(ConfigError, match="cannot be written: No space left on device"):
        run(config, tmp_path, 4, resume=True)
    monkeypatch.undo()
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before
    assert not list(tmp_path.glob(".*.part"))
    run(config, tmp_path, 4, resume=True)


def test_checkpoints_come_by_time(tiny_training, tmp_path):
    seen = []

    def look(line):
        path = tmp_path / "checkpoint.safetensors"
        if path.exists():
            seen.append((line["step"], read_tensors(path)[1].progress.step))

    budget = Budget(steps=4, report_seconds=0.0, save_seconds=0.0)
    train(tiny_training(), tmp_path, budget=budget, device="cpu", report=look)
    assert seen[0] == (2, 1)  # at the second report the save after the first step is there


# ── what a run leaves behind ─────────────────────────────────────────────────────────────────────────────────────


def test_the_log_is_one_object_a_line(tiny_training, tmp_path):
    reported = []
    run(tiny_training(), tmp_path, 5, report=reported.append)
    lines = log_of(tmp_path)
    assert lines == reported
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5]
    for line in lines:
        assert line["loss"] == pytest.approx(line["classes"] + line["edges"] + line["penalty"], abs=2e-5)
        assert line["tables_per_second"] > 0
        assert line["share_of_floor"] >= 0
    assert [line["tables"] for line in lines] == sorted(line["tables"] for line in lines)


def test_the_weights_file_tells_its_story(tiny_training, tmp_path):
    config = tiny_training()
    loaded = load_weights(run(config, tmp_path, 5))
    header = loaded.header
    assert loaded.network.config == config.network
    assert header.kind == "edges"
    assert header.progress.step == 5
    assert TrainConfig.from_dict({**header.train, "network": header.config}) == config
    assert [entry["step"] for entry in header.progress.history] == [1, 2, 3, 4, 5]


def test_the_weights_are_the_average(tiny_training, tmp_path):
    path = run(tiny_training(), tmp_path, 5)
    tensors, _ = read_tensors(tmp_path / "checkpoint.safetensors")
    state = load_weights(path).network.state_dict()
    assert all(torch.equal(state[name], tensors[f"average.{name}"]) for name in state)
    assert not all(torch.equal(state[name], tensors[f"weight.{name}"]) for name in state)


def test_a_short_run_gives_what_it_learnt_instead_of_its_first_weights(tiny_training, tmp_path):
    config = tiny_training(ema_decay=0.999)
    last, shipped = (list[torch.Tensor]() for _ in range(2))
    state = load_weights(run(config, tmp_path, 10)).network.state_dict()
    tensors, first = read_tensors(tmp_path / "checkpoint.safetensors")[0], new_network(config, CPU).state_dict()
    for name, value in state.items():
        last.append((tensors[f"weight.{name}"] - first[name]).flatten())
        shipped.append((value - first[name]).flatten())
    share = torch.dot(torch.cat(shipped), torch.cat(last)) / torch.cat(last).square().sum()
    assert 0.3 < share < 1  # of the way from the first to the last weights; .006 with the first ones in the average


def test_only_three_files_are_left(tiny_training, tmp_path):
    run(tiny_training(), tmp_path, 2)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"checkpoint.safetensors", "weights.safetensors", "log.jsonl"}


def test_poisoned_batches_are_counted_and_survived(monkeypatch, tiny_training, tmp_path):
    class Poisoned(loop.Stream):
        def __iter__(self):
            for k, batch in enumerate(super().__iter__()):
                yield batch._replace(x_bmd=batch.x_bmd * float("nan")) if k in (1, 3) else batch

    monkeypatch.setattr(loop, "Stream", Poisoned)
    path = run(tiny_training(), tmp_path, 6)
    assert [line["skipped"] for line in log_of(tmp_path)] == [0, 1, 1, 2, 2, 2]
    assert load_weights(path).header.progress.skipped == 2
    assert all(torch.isfinite(p).all() for p in load_weights(path).network.parameters())


# ── beginning ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_initial_weights_depend_on_the_seed_alone(tiny_training):
    cpu = torch.device("cpu")
    torch.manual_seed(1)
    one = new_network(tiny_training(), cpu).state_dict()
    state = torch.random.get_rng_state()
    two = new_network(tiny_training(), cpu).state_dict()
    assert torch.equal(torch.random.get_rng_state(), state)
    other = new_network(tiny_training(seed=1), cpu).state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_starts_from_given_weights(tiny_training, tiny_net, tmp_path):
    net = tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32)
    save_weights(tmp_path / "start.safetensors", net)
    path = run(tiny_training(learning_rate=1e-12), tmp_path / "run", 2, start=str(tmp_path / "start.safetensors"))
    state, tensors = net.state_dict(), read_tensors(tmp_path / "run" / "checkpoint.safetensors")[0]
    found = load_weights(path).network.state_dict()
    for name, value in state.items():
        assert torch.allclose(tensors[f"weight.{name}"], value, atol=1e-6)
        assert torch.allclose(found[name], value, atol=1e-6)


def test_weights_know_all_the_runs_behind_them(tiny_training, tmp_path):
    first = run(tiny_training(), tmp_path / "one", 3)
    second = run(tiny_training(seed=1), tmp_path / "two", 2, start=str(first))
    third = run(tiny_training(seed=2), tmp_path / "three", 1, start=str(second))
    steps = [read_tensors(path)[1].progress.before.step for path in (first, second, third)]
    assert steps == [0, 3, 5]
    run(tiny_training(seed=2), tmp_path / "three", 4, resume=True)  # a continuation keeps it
    assert read_tensors(third)[1].progress.before.step == 5
    assert ", 9 steps" in summarise_training(read_tensors(third)[1])


def test_starting_weights_of_another_design_are_refused(tiny_training, tiny_net, tmp_path):
    net = tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32, bilinear_layers=1)
    save_weights(tmp_path / "start.safetensors", net)
    with pytest.raises(WeightsError, match="another network design"):
        run(tiny_training(), tmp_path / "run", 2, start=str(tmp_path / "start.safetensors"))


def test_a_run_may_have_more_pair_blocks_than_its_starting_weights(tiny_training, tiny_net, tmp_path):
    net = tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32)
    save_weights(tmp_path / "start.safetensors", net)
    deeper = dataclasses.replace(net.config, pair_layers=net.config.pair_layers + 2)
    still, x_bmd = tiny_training(network=deeper, learning_rate=1e-12), torch.randn(3, 20, 5)
    path = run(still, tmp_path / "still", 1, start=str(tmp_path / "start.safetensors"))
    torch.testing.assert_close(load_weights(path).network(x_bmd), net(x_bmd), atol=1e-6, rtol=1e-5)
    path = run(tiny_training(network=deeper), tmp_path / "run", 30, start=str(tmp_path / "start.safetensors"))
    learnt = load_weights(path).network.head.blocks[-1]
    assert learnt.residual.scale.abs().min() > 0
    fresh = new_network(tiny_training(network=deeper), torch.device("cpu")).head.blocks[-1]
    assert not torch.equal(learnt.out.weight, fresh.out.weight)
    with pytest.raises(WeightsError, match="3 pair blocks in the weights and 1 in this run"):
        run(tiny_training(network=net.config), tmp_path / "back", 1, start=str(path))


def test_a_run_may_read_sharper_correlations_than_its_starting_weights(tiny_training, tiny_net, tmp_path):
    net = tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32, sharp_correlations=False)
    save_weights(tmp_path / "start.safetensors", net)
    sharper = dataclasses.replace(net.config, sharp_correlations=True)
    still, x_bmd = tiny_training(network=sharper, learning_rate=1e-12), torch.randn(3, 20, 5)
    path = run(still, tmp_path / "still", 1, start=str(tmp_path / "start.safetensors"))
    torch.testing.assert_close(load_weights(path).network(x_bmd), net(x_bmd), atol=1e-6, rtol=1e-5)
    path = run(tiny_training(network=sharper), tmp_path / "run", 5, start=str(tmp_path / "start.safetensors"))
    learnt = load_weights(path).network.head.features.mix.weight[:, net.head.features.mix.weight.shape[1] :]
    assert learnt.shape[1] == 2 * N_SIZES + 2
    assert learnt.abs().amin() > 0
    with pytest.raises(WeightsError, match="another network design"):
        run(tiny_training(network=net.config), tmp_path / "back", 1, start=str(path))


def test_a_run_may_cut_samples_into_stretches_that_its_starting_weights_did_not_have(tiny_training, tiny_net, tmp_path):
    net = tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32)
    save_weights(tmp_path / "start.safetensors", net)
    cut, x_bmd = dataclasses.replace(net.config, sample_stretch=10), torch.randn(3, 20, 5)
    still = tiny_training(network=cut, learning_rate=1e-12)
    path = run(still, tmp_path / "still", 1, start=str(tmp_path / "start.safetensors"))
    begun = load_weights(path).network
    assert begun.config.sample_stretch == 10
    torch.testing.assert_close(begun(x_bmd[:, :10]), net(x_bmd[:, :10]), atol=1e-6, rtol=1e-5)
    assert (begun(x_bmd) - net(x_bmd)).abs().max() > 1e-4  # longer tables are seen otherwise
    path = run(tiny_training(network=net.config, learning_rate=1e-12), tmp_path / "back", 1, start=str(path))
    torch.testing.assert_close(load_weights(path).network(x_bmd), net(x_bmd), atol=1e-6, rtol=1e-5)


def test_a_run_may_leave_out_the_last_layers_over_samples(tiny_training, tiny_net, tmp_path):
    rng = torch.Generator().manual_seed(0)
    deep = tiny_net(rng, dtype=torch.float32, attribute_layers=2, sample_layers=2, dense_layers=2)
    save_weights(tmp_path / "start.safetensors", deep)
    fewer, x_bmd = dataclasses.replace(deep.config, sample_layers=1), torch.randn(3, 20, 5)
    still = tiny_training(network=fewer, learning_rate=1e-12)
    path = run(still, tmp_path / "still", 1, start=str(tmp_path / "start.safetensors"))
    assert (load_weights(path).network(x_bmd) - deep(x_bmd)).abs().max() > 1e-4
    [layer for layer in deep.observation if sees_samples(layer)][-1].residual.scale.data.zero_()
    torch.testing.assert_close(load_weights(path).network(x_bmd), deep(x_bmd), atol=1e-6, rtol=1e-5)
    with pytest.raises(WeightsError, match="layers over samples alone become fewer"):
        run(tiny_training(network=deep.config), tmp_path / "back", 1, start=str(path))


# ── schedule and budget ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_rate_warms_up_stays_and_comes_down_on_request(tiny_training):
    config = tiny_training(learning_rate=2.0, warmup_steps=4, decay_share=0.5, final_rate=0.1)
    assert [learning_rate(config, step, 0.0, decay=False) for step in range(6)] == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0]
    assert learning_rate(config, 10**6, 1.0, decay=False) == 2.0
    down = [learning_rate(config, 99, progress, decay=True) for progress in (0.0, 0.5, 0.75, 1.0, 1.3)]
    assert down == pytest.approx([2.0, 2.0, 1.1, 0.2, 0.2])
    assert learning_rate(tiny_training(decay_share=0.0), 99, 1.0, decay=True) == 3e-3


def test_the_rate_reaches_the_optimizer(tiny_training, tmp_path):
    budget = Budget(steps=8, decay=True, report_seconds=0.0)
    train(tiny_training(decay_share=0.5, final_rate=0.0), tmp_path, budget=budget, device="cpu")
    rates = [line["rate"] for line in log_of(tmp_path)]
    assert rates == pytest.approx([1e-3, 2e-3, 3e-3, 3e-3, 3e-3, 2.25e-3, 1.5e-3, 0.75e-3])


def test_the_budget_counts_steps_over_continuations_and_minutes_from_now():
    assert Budget(steps=10).spent(4, 0.0, 0) == 0.4
    assert Budget(steps=10).spent(7, 0.0, 4) == 0.5
    assert Budget(steps=10).spent(10, 0.0, 10) >= 1
    assert Budget(steps=3).spent(10, 0.0, 10) >= 1
    assert Budget(steps=0).spent(0, 0.0, 0) >= 1
    assert Budget(minutes=2).spent(10**6, 60.0, 0) == 0.5
    assert Budget(steps=10, minutes=1).spent(4, 54.0, 0) == pytest.approx(0.9)
    with pytest.raises(ConfigError, match="needs an end"):
        Budget()


def interrupt(monkeypatch, config, folder, budget, *, after, resume=False):
    """Train, and be asked to stop once so many steps are done in all."""
    with monkeypatch.context() as patch:
        patch.setattr(loop, "stop_requested", lambda: nullcontext(lambda: len(log_of_any(folder)) >= after))
        train(config, folder, budget=budget, device="cpu", resume=resume)


def log_of_any(folder):
    return log_of(folder) if (folder / "log.jsonl").exists() else []


def test_an_interruption_does_not_change_the_rates(monkeypatch, tiny_training, tmp_path):
    config = tiny_training(decay_share=0.5, final_rate=0.0, warmup_steps=1)
    budget = Budget(steps=12, decay=True, report_seconds=0.0)
    train(config, tmp_path / "whole", budget=budget, device="cpu")
    interrupt(monkeypatch, config, tmp_path / "parts", budget, after=3)
    interrupt(monkeypatch, config, tmp_path / "parts", budget, after=9, resume=True)
    assert [line["step"] for line in log_of(tmp_path / "parts")][-1] == 9
    train(config, tmp_path / "parts", budget=budget, device="cpu", resume=True)
    whole, parts = ([line["rate"] for line in log_of(tmp_path / name)] for name in ("whole", "parts"))
    assert whole == parts
    assert whole[8] < 0.7 * whole[0]
    one, two = (load_weights(tmp_path / name / "weights.safetensors").network for name in ("whole", "parts"))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


@pytest.mark.parametrize("before", [{"steps": 4, "decay": True}, {"steps": 4}, {"minutes": 1.0, "decay": True}])
def test_another_budget_begins_at_the_peak_and_survives_an_interruption(monkeypatch, tiny_training, tmp_path, before):
    config = tiny_training(decay_share=0.5, final_rate=0.0, warmup_steps=1)
    interrupt(monkeypatch, config, tmp_path, Budget(**before, report_seconds=0.0), after=4)
    budget = Budget(steps=12, decay=True, report_seconds=0.0)
    interrupt(monkeypatch, config, tmp_path, budget, after=10, resume=True)
    train(config, tmp_path, budget=budget, device="cpu", resume=True)
    rates = [line["rate"] for line in log_of(tmp_path)][4:]
    assert rates == pytest.approx([3e-3, 3e-3, 3e-3, 3e-3, 3e-3, 2.25e-3, 1.5e-3, 0.75e-3])


def test_a_checkpoint_without_its_budget_goes_on_with_a_new_one():
    assert Budget(steps=200, decay=True).begin(180, {}) == {"steps": 200, "decay": True, "first_step": 180}
    assert Budget(minutes=5).begin(180, {"steps": None, "decay": False, "first_step": 7})["first_step"] == 180


@pytest.mark.parametrize("wrong", [{"minutes": float("nan")}, {"minutes": -1.0}, {"steps": -5}])
def test_a_budget_that_never_ends_or_ends_before_it_begins_is_refused(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ConfigError, match=f"{name}={value} is no end of a run"):
        Budget(**wrong)


def test_a_run_is_either_begun_or_gone_on_with(tiny_training, tmp_path):
    run(tiny_training(), tmp_path, 2)
    with pytest.raises(ConfigError, match="start='edges' begins a fresh run, and resume=True goes on with one"):
        run(tiny_training(), tmp_path, 4, resume=True, start="edges")
    assert log_of(tmp_path)[-1]["step"] == 2


@pytest.mark.parametrize("workers", [-1, 1.5])
def test_there_is_a_whole_number_of_workers(tiny_training, tmp_path, workers):
    with pytest.raises(ConfigError, match=f"workers={workers} is not a whole number from 0 on"):
        train(tiny_training(), tmp_path / "run", budget=Budget(steps=1), device="cpu", workers=workers)
    assert not (tmp_path / "run").exists()


def test_time_ends_a_run(tiny_training, tmp_path):
    began = time.monotonic()
    train(tiny_training(), tmp_path, budget=Budget(minutes=0.5 / 60), device="cpu")
    assert 0.4 < time.monotonic() - began < 10
    assert log_of(tmp_path)[-1]["step"] > 2


def test_seconds_add_up_over_continuations(tiny_training, tmp_path):
    run(tiny_training(), tmp_path, 4)
    first = read_tensors(tmp_path / "checkpoint.safetensors")[1].progress
    run(tiny_training(), tmp_path, 8, resume=True)
    second = read_tensors(tmp_path / "checkpoint.safetensors")[1].progress
    assert second.seconds > first.seconds > 0
    assert second.tables > first.tables


# ── learning ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_learns(tiny_training, tiny_config, tmp_path):
    """Sixty steps on strong linear links between few variables: well below what knowing only the base rates gives."""
    simulation = tiny_training().simulation.narrow(degree=1.0, noise_share=(0.1, 0.2))
    config = tiny_training(
        network=tiny_config(channels=16, heads=2, spd_channels=8, spd_heads=2, pair_channels=16, product_channels=4),
        simulation=simulation,
        variables=(4,),
        samples=(60,),
        cells_per_step=7680,
        max_tables=32,
        learning_rate=1e-2,
    )
    run(config, tmp_path, 60)
    losses = [line["loss"] for line in log_of(tmp_path)]
    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])


# ── the second network ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_of_the_second_network_in_two_parts_equals_one_in_one(tiny_immoralities, tmp_path):
    config = tiny_immoralities()
    run(config, tmp_path / "whole", 9)
    run(config, tmp_path / "parts", 5)
    run(config, tmp_path / "parts", 9, resume=True)
    one, two = (read_tensors(tmp_path / name / "checkpoint.safetensors")[0] for name in ("whole", "parts"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    losses = [[line["loss"] for line in log_of(tmp_path / name)] for name in ("whole", "parts")]
    assert losses[0] == losses[1]


def test_the_weights_file_says_what_it_holds(tiny_immoralities, tiny_training, tmp_path):
    config = tiny_immoralities()
    path = run(config, tmp_path / "run", 3)
    loaded = load_colliders(path)
    assert loaded.header.kind == "immoralities"
    assert loaded.network.config == config.network
    assert TrainConfig.from_dict({**loaded.header.train, "network": loaded.header.config}) == config
    with pytest.raises(WeightsError, match="holds weights of kind 'immoralities', but 'edges' is needed"):
        load_weights(path)
    run(config, tmp_path / "again", 1, start=str(path))
    with pytest.raises(WeightsError, match="but 'edges' is needed here"):
        run(tiny_training(), tmp_path / "edges", 1, start=str(path))


def test_edge_training_is_what_it_was(tiny_config, tiny_training, tmp_path):
    """Losses and gradient norms of eight steps, as they were before there was a second task or optimiser."""
    plain = tiny_config(table_correlations=False, sharp_correlations=False)
    run(tiny_training(network=plain, optimizer="adamw"), tmp_path, 8)
    lines = log_of(tmp_path)
    losses = [1.67323, 1.57956, 1.12185, 1.66251, 2.19263, 2.27218, 2.08169, 2.24214]
    norms = [0.28241, 0.30699, 0.1052, 0.32235, 0.66477, 0.59895, 0.59962, 0.62058]
    assert [line["loss"] for line in lines] == pytest.approx(losses, rel=1e-3)
    assert [line["gradient_norm"] for line in lines] == pytest.approx(norms, rel=1e-2)


def test_the_second_network_learns(tiny_immoralities, tmp_path):
    """Strong linear links: a v-structure a → c ← b leaves a and b uncorrelated, a chain or a fork does not."""
    rates = {"married": 1.0, "flawless": 0.0, "missed": 0.0, "confused": 0.0, "invented": 0.0, "married_links": 0.0}
    config = tiny_immoralities(
        network={"channels": 16, "spd_channels": 8, "pair_channels": 16, "product_channels": 4},
        simulation=SimulationConfig.preset("paper").narrow(mechanism="linear", degree=2.0, noise_share=(0.2, 0.3)),
        settings=rates,
        samples=(60,),
        cells_per_step=12_000,
        max_tables=32,
        learning_rate=1e-2,
    )
    run(config, tmp_path, 60)
    losses = [line["loss"] for line in log_of(tmp_path)]
    assert sum(losses[-20:]) / 20 < 0.8 * sum(losses[:4]) / 4


# ── checkpoints: a run comes back bit by bit, and a foreign, damaged or half-written one does not ──────────────────


def make_stepper(config, steps):
    settings = {"weight_decay": 0.1, "clip_norm": 1.0, "ema_decay": 0.9, "capture": False, "muon": True}
    stepper = Stepper(new_network(config, CPU), EdgeTask(), **settings)
    rng = torch.Generator().manual_seed(5)
    for _ in range(steps):
        classes = torch.randint(0, 3, (2, 4, 4), generator=rng).triu(1)
        stepper.step(Batch(torch.randn(2, 9, 4, generator=rng), classes + classes.mT, torch.full((2,), 9.0)), 1e-3)
    return stepper


def everything(stepper):
    tensors = [*stepper.parameters, *stepper.average, *stepper.running]
    for parameter in stepper.parameters:
        tensors += [value for _, value in sorted(stepper.remembered(parameter).items())]
    return [tensor.detach().clone() for tensor in tensors]


def equal(tensors, others):
    return len(tensors) == len(others) and all(torch.equal(a, b) for a, b in zip(tensors, others, strict=True))


@pytest.mark.parametrize("steps", [0, 3])
def test_a_run_comes_back_bit_by_bit(tiny_training, tmp_path, steps):
    config, progress = tiny_training(), RunProgress(step=3, tables=18, seconds=1.5, skipped=1, history=({"step": 3.0},))
    stepper, fresh = make_stepper(config, steps), make_stepper(config, 0)
    save_checkpoint(tmp_path / "c", stepper, config, progress, {})
    found = load_checkpoint(tmp_path / "c", fresh, config)
    assert found == (progress, {})
    assert equal(everything(fresh), everything(stepper))
    if steps:
        assert not equal(fresh.average, fresh.parameters)
    again = torch.Generator().manual_seed(9)
    x_bmd, classes_bdd = torch.randn(2, 9, 4, generator=again), torch.zeros(2, 4, 4, dtype=torch.long)
    batch = Batch(x_bmd, classes_bdd, torch.full((2,), 9.0))
    for one in (stepper, fresh):
        one.step(batch, 1e-3)
    assert equal(everything(fresh), everything(stepper))


def test_a_checkpoint_without_running_averages_goes_on_from_its_averages(tiny_training, tmp_path):
    """Checkpoints once had averages that began at the first weights."""
    config, stepper = tiny_training(), make_stepper(tiny_training(), 3)
    kept = [average.clone() for average in stepper.average]
    tensors = {n: v for n, v in stepper.tensors().items() if n != "unfilled" and not n.startswith("running.")}
    fresh = make_stepper(config, 0)
    fresh.restore(tensors)
    assert equal(fresh.average, kept)
    assert equal(fresh.parameters, stepper.parameters)


@each(
    ("change", "words"),
    [
        ({"learning_rate": 9e-3}, r"learning_rate is 0\.003 in the file, 0\.009 here"),
        ({"seed": 4}, "seed is 0 in the file, 4 here"),
        ({"variables": (3, 4)}, r"variables is \[3, 4, 6\] in the file, \[3, 4\] here"),
    ],
)
def test_another_config_is_refused_by_field(tiny_training, tmp_path, change, words):
    config = tiny_training()
    save_checkpoint(tmp_path / "c", make_stepper(config, 1), config, RunProgress(), {})
    other = tiny_training(**change)
    with pytest.raises(WeightsError, match=words):
        load_checkpoint(tmp_path / "c", make_stepper(other, 0), other)


def test_fields_of_the_network_and_the_world_are_named_too(tiny_training, tiny_config, tmp_path):
    config = tiny_training()
    save_checkpoint(tmp_path / "c", make_stepper(config, 1), config, RunProgress(), {})
    other = tiny_training(
        network=tiny_config(bilinear_layers=1), simulation=dataclasses.replace(config.simulation, discrete=0.25)
    )
    stepper = make_stepper(other, 0)
    before = everything(stepper)
    with pytest.raises(WeightsError) as error:
        load_checkpoint(tmp_path / "c", stepper, other)
    assert "network.bilinear_layers is 2 in the file, 1 here" in str(error.value)
    assert "simulation.discrete" in str(error.value)
    assert equal(everything(stepper), before)


def test_a_field_only_one_side_knows_is_a_difference():
    assert differing_fields({"a": 1}, {"a": 1, "b": 2}) == ["b is None in the file, 2 here"]
    assert differing_fields({"a": {"b": 1}}, {"a": 3}) == ["a is {'b': 1} in the file, 3 here"]
    assert differing_fields({"a": [1, 2]}, {"a": [1, 2]}) == []


def test_a_weights_file_is_not_a_checkpoint(tiny_training, tmp_path):
    config = tiny_training()
    stepper = make_stepper(config, 1)
    save_weights(tmp_path / "w", stepper.network)
    with pytest.raises(WeightsError, match="holds weights, not a checkpoint; start from it with --start"):
        load_checkpoint(tmp_path / "w", stepper, config)


def test_a_checkpoint_is_not_a_weights_file(tiny_training, tmp_path):
    config = tiny_training()
    save_checkpoint(tmp_path / "c", make_stepper(config, 1), config, RunProgress(), {})
    with pytest.raises(WeightsError, match="holds weights of kind 'checkpoint', but 'edges' is needed here"):
        weights.load_weights(tmp_path / "c")


def test_a_missing_checkpoint_is_said(tiny_training, tmp_path):
    config = tiny_training()
    with pytest.raises(WeightsError, match="none"):
        load_checkpoint(tmp_path / "none", make_stepper(config, 0), config)


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def killed(*_, **__):
    raise KeyboardInterrupt


@each("where", [(weights, "save_file"), (os, "replace"), (os, "fsync")])
@each("how", [no_space, killed])
def test_the_previous_checkpoint_survives_a_failed_save(monkeypatch, tiny_training, tmp_path, where, how):
    config = tiny_training()
    stepper = make_stepper(config, 1)
    save_checkpoint(tmp_path / "c", stepper, config, RunProgress(step=1), {})
    saved = everything(stepper)
    later = make_stepper(config, 2)
    monkeypatch.setattr(*where, how)
    with pytest.raises((ConfigError, KeyboardInterrupt)):
        save_checkpoint(tmp_path / "c", later, config, RunProgress(step=2), {})
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert load_checkpoint(tmp_path / "c", later, config) == (RunProgress(step=1), {})
    assert equal(everything(later), saved)


def test_the_average_goes_into_a_network(tiny_training):
    stepper = make_stepper(tiny_training(), 2)
    assert equal(list(stepper.averaged().parameters()), stepper.average)


def test_the_learning_curve_stays_short():
    progress = RunProgress()
    for step in range(5000):
        progress = progress.note({"step": step})
        assert len(progress.history) <= 400
    assert progress.history[-1]["step"] == 4999
    steps = [entry["step"] for entry in progress.history]
    assert steps == sorted(steps)
    assert steps[0] == 0
