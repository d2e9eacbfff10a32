"""Structures to learn from: labels are v-structures of the truth, whatever mistakes the skeleton has."""

import itertools
import json

import pytest
import torch
from toy_runs import log_of, run
from typer.testing import CliRunner

from graphbam.cli import app
from graphbam.errors import ConfigError, WeightsError
from graphbam.graphs.graph import v_structures
from graphbam.nn.structures import ABSENT, CANDIDATE, PARENT, Structures, find_structures, gather_columns
from graphbam.nn.weights import load_colliders, load_weights, read_tensors, save_weights
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.values import sample_tables
from graphbam.training import TrainConfig
from graphbam.training.calibration import fit_child_calibration, simulated_children
from graphbam.training.config import StructureConfig, task_of
from graphbam.training.data import (
    Shape,
    Stream,
    ask_edges,
    common_children,
    draw_variables,
    invent_mistakes,
    shape_grid,
    simulate_structures,
)
from graphbam.training.loop import new_network
from graphbam.training.objectives import EdgeTask, ImmoralityTask, child_loss
from graphbam.training.step import Stepper

CPU = torch.device("cpu")
PERFECT = StructureConfig(flawless=1.0)


def worlds(rng, n_tables=6, n_variables=12, n_samples=20):
    config = SimulationConfig.preset("broad")
    return sample_tables(rng, config, n_tables=n_tables, n_variables=n_variables, n_samples=n_samples)


def take(n, config, **options):
    return list(itertools.islice(iter(Stream(config, CPU, **options)), n))


def same(batches, others):
    pairs = zip(batches, others, strict=True)
    return all(torch.equal(a, b) for one, two in pairs for a, b in zip(one, two, strict=True))


# ── labels ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_mistakes_the_labels_are_all_v_structures_of_the_graph(rng):
    tables = worlds(rng, n_tables=12)
    belief = invent_mistakes(rng, PERFECT, tables.classes_bdd)
    found = find_structures(*belief, max_candidates=12, max_neighbours=12)
    children = common_children(tables.dag_bdd, found)
    seen = set()
    for k, column in children.nonzero().tolist():
        table, columns = int(found.table_s[k]), found.columns_sw[k].tolist()
        seen.add((table, columns[0], columns[column], columns[1]))
    expected = set()
    for table, dag in enumerate(tables.dag_bdd.numpy()):
        for a, c, b in v_structures(dag).tolist():
            expected.add((table, min(a, b), c, max(a, b)))
    assert seen == expected
    assert len(seen) > 5


def test_an_adjacent_pair_has_no_common_child_to_orient():
    """In 0 → 2 ← 1 with 0 → 1 nothing is a v-structure, though 2 is a child of both."""
    dag = torch.tensor([[[0, 1, 1], [0, 0, 1], [0, 0, 0]]])
    one = Structures(torch.tensor([0]), torch.tensor([[0, 1, 2]]), torch.tensor([[1, 1, 2]]))
    assert common_children(dag, one).tolist() == [[0, 0, 0]]
    dag[0, 0, 1] = 0
    assert common_children(dag, one).tolist() == [[0, 0, 1]]


def test_labels_mark_candidates_only(rng, tiny_immoralities):
    for batch in take(6, tiny_immoralities()):
        assert (batch.roles_bd[batch.children_bd > 0] == CANDIDATE).all()


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_mistakes_is_the_truth(rng):
    classes = worlds(rng).classes_bdd
    belief = invent_mistakes(rng, PERFECT, classes)
    assert torch.equal(belief.skeleton_bdd, classes == 1)
    assert torch.equal(belief.pairs_bdd, classes == 2)


@pytest.mark.parametrize(
    ("kind", "truth"), [("missed", 1), ("confused", 2), ("invented", 0), ("married", 0), ("married_links", 1)]
)
def test_each_kind_of_mistake_touches_its_own_class(rng, kind, truth):
    classes = worlds(rng, 60, 12, 2).classes_bdd
    rates = dict.fromkeys(("missed", "confused", "invented", "married", "married_links"), 0.0) | {kind: 0.8}
    belief = invent_mistakes(rng, StructureConfig(flawless=0.0, **rates), classes)
    wrong = (belief.skeleton_bdd != (classes == 1)) | (belief.pairs_bdd != (classes == 2))
    assert wrong[classes == truth].any()
    assert not wrong[classes != truth].any()
    for matrix in belief:
        assert torch.equal(matrix, matrix.mT)
    assert not belief.skeleton_bdd.diagonal(dim1=1, dim2=2).any()


def test_the_mistakes_of_edge_weights_are_theirs(rng, tiny_net, tmp_path):
    save_weights(tmp_path / "edges.safetensors", tiny_net(rng, dtype=torch.float32))
    weights = load_weights(tmp_path / "edges.safetensors")
    tables = worlds(rng)
    belief = ask_edges(StructureConfig(moral_threshold=0.3), tables, weights)
    p = weights.probabilities(tables.x_bmd).float()
    assert torch.equal(belief.pairs_bdd, p[..., 2] > 0.3)
    off = ~torch.eye(12, dtype=torch.bool)
    assert torch.equal(belief.skeleton_bdd, (p[..., 1] > 0.5) & off)
    assert torch.equal(belief.strength_bdd, p[..., 1])


def test_a_stream_can_follow_edge_weights(tiny_net, tiny_immoralities, tmp_path):
    path = tmp_path / "edges.safetensors"
    net = tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32)
    with torch.no_grad():
        net.head.classes.bias.copy_(torch.tensor([0.0, 3.0, 1.0]))  # sees links everywhere
    save_weights(path, net)
    following = tiny_immoralities(settings={"edges": str(path), "edges_share": 1.0})
    batches = take(4, following)
    assert same(batches, take(4, following))
    assert not same(batches, take(4, tiny_immoralities()))
    counts = [(batch.roles_bd == CANDIDATE).sum(-1).float().mean() for batch in batches]
    assert min(counts) > 1.5  # nearly all variables are candidates then


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_batches_are_structures_of_fixed_shapes(tiny_immoralities):
    config = tiny_immoralities()
    grid = set(shape_grid(config))
    for batch in take(12, config):
        assert batch.shape in grid
        assert batch.x_bmd.dtype == torch.float32
        assert batch.roles_bd.dtype == batch.children_bd.dtype == torch.uint8
        assert ((batch.roles_bd == PARENT).sum(-1) == 2).all()
        assert (batch.roles_bd == CANDIDATE).any(-1).all()
        assert ((batch.roles_bd == CANDIDATE).sum(-1) <= 2).all()
        assert batch.x_bmd.mT[batch.roles_bd == ABSENT].eq(0).all()
        assert torch.isfinite(batch.x_bmd).all()


def test_a_batch_depends_on_seed_rank_and_step_alone(tiny_immoralities):
    config = tiny_immoralities()
    whole = take(9, config)
    torch.manual_seed(3)
    assert same(whole, take(9, config))
    assert same(whole[5:], take(4, config, first_step=5))
    assert same(whole, take(9, config, workers=1))
    other = take(9, config, rank=1)
    assert [batch.shape for batch in other] == [batch.shape for batch in whole]
    assert not same(whole, other)


def test_wide_batches_hold_wide_structures_where_there_are_any(rng, tiny_immoralities):
    config = tiny_immoralities(simulation=SimulationConfig.preset("paper").narrow(degree=4), variables=(12,))
    batch = simulate_structures(rng, config, Shape(8, 12, 7), CPU)
    assert ((batch.roles_bd != ABSENT).sum(-1) > 4).float().mean() > 0.9


def test_columns_are_gathered_for_as_many_structures_as_can_be_used(rng, tiny_immoralities, monkeypatch):
    """Dense tables have far more, and all of them at once fill the memory."""
    asked = []

    def gather(x_bmd, found):
        asked.append(len(found.table_s))
        return gather_columns(x_bmd, found)

    monkeypatch.setattr("graphbam.training.data.gather_columns", gather)
    dense = SimulationConfig.preset("paper").narrow(degree=12)
    config = tiny_immoralities(simulation=dense, variables=(25,), settings={"columns_a_structure": 20.0})
    batch = simulate_structures(rng, config, Shape(8, 12, 7), CPU)
    assert asked == [len(batch.x_bmd)]


def test_few_structures_are_repeated_rather_than_missing(rng, tiny_immoralities):
    config = tiny_immoralities(variables=(3,), settings={"columns_a_structure": 0.01})
    assert simulate_structures(rng, config, Shape(20, 8, 4), CPU).x_bmd.shape == (40, 8, 4)


def test_worlds_without_structures_are_refused(rng, tiny_immoralities):
    config = tiny_immoralities(variables=(2,), samples=(3,))
    with pytest.raises(ConfigError, match="no pair with a common neighbour"):
        simulate_structures(rng, config, Shape(2, 3, 4), CPU)


def test_edge_weights_that_see_nothing_are_left_aside(rng, tiny_net, tiny_immoralities, tmp_path):
    path = tmp_path / "blind.safetensors"
    net = tiny_net(rng, dtype=torch.float32)
    with torch.no_grad():
        net.head.classes.bias.copy_(torch.tensor([50.0, 0.0, 0.0]))
    save_weights(path, net)
    config = tiny_immoralities(settings={"edges": str(path), "edges_share": 1.0})
    assert simulate_structures(rng, config, Shape(3, 8, 4), CPU).x_bmd.shape == (6, 8, 4)


def test_tables_are_large_enough_for_the_width(rng, tiny_immoralities):
    config = tiny_immoralities(variables=(3, 4, 5, 8))
    assert {draw_variables(rng, config, Shape(1, 8, 7)) for _ in range(40)} == {5, 8}
    assert {draw_variables(rng, config, Shape(1, 8, 4)) for _ in range(80)} == {3, 4, 5, 8}


# ── loss and step ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_loss_is_the_mean_over_candidates(rng):
    logits = torch.randn(3, 5, generator=rng, dtype=torch.float64)
    roles = torch.tensor([[1, 1, 2, 2, 3], [1, 1, 2, 0, 0], [1, 2, 1, 3, 3]])
    children = torch.tensor([[0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]])
    p = logits.sigmoid()
    losses = [-p[0, 2].log(), -(1 - p[0, 3]).log(), -p[1, 2].log(), -(1 - p[2, 1]).log()]
    loss = child_loss(logits, roles, children)
    torch.testing.assert_close(loss.total, torch.stack(losses).mean())
    torch.testing.assert_close(loss.children, torch.stack(losses[::2]).mean())
    torch.testing.assert_close(loss.others, torch.stack(losses[1::2]).mean())


@pytest.mark.parametrize("label", [0, 1])
def test_a_batch_of_one_kind_has_a_finite_loss(label):
    roles = torch.tensor([[1, 1, 2]])
    assert all(torch.isfinite(part) for part in child_loss(torch.zeros(1, 3), roles, torch.full((1, 3), label)))


def test_a_poisoned_batch_of_structures_is_skipped(tiny_immoralities):
    config = tiny_immoralities()
    settings = {"weight_decay": 0.1, "clip_norm": 1.0, "ema_decay": 0.9, "capture": False}
    stepper = Stepper(new_network(config, CPU), task_of(config), **settings)
    good, bad = take(2, config)
    stepper.step(good, 1e-3)
    before = [p.detach().clone() for p in stepper.parameters]
    stepper.step(bad._replace(x_bmd=bad.x_bmd * float("nan")), 1e-3)
    assert all(torch.equal(a, b) for a, b in zip(before, stepper.parameters, strict=True))
    statistics = stepper.statistics()
    assert list(statistics) == ["loss", "children", "others", "gradient_norm", "skipped", "steps"]
    assert (statistics["skipped"], statistics["steps"]) == (1, 2)


def test_the_task_follows_from_the_config(tiny_training, tiny_immoralities):
    assert isinstance(task_of(tiny_training()), EdgeTask)
    assert isinstance(task_of(tiny_immoralities()), ImmoralityTask)
    x, roles = ImmoralityTask().example(CPU)
    assert x.shape[::2] == roles.shape


# ── configs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_configs_round_trip_through_json(tiny_immoralities):
    for config in (TrainConfig.immoralities(), tiny_immoralities(settings={"edges": "edges"})):
        assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_configs_from_before_they_said_their_task_still_load(tiny_training, tiny_immoralities):
    for config in (tiny_training(), tiny_immoralities(settings={"edges": "edges"})):
        old = config.to_dict()
        del old["task"]
        old["structures"] = old.pop("settings")
        assert TrainConfig.from_dict(old) == config
    oldest = tiny_training().to_dict()
    del oldest["task"], oldest["settings"]
    assert TrainConfig.from_dict(oldest) == tiny_training()


def test_impossible_configs_are_refused(tiny_training, tiny_immoralities):
    with pytest.raises(ConfigError, match="needs a network config of type EdgeNetConfig and settings of type NoneType"):
        tiny_training(settings=StructureConfig())
    with pytest.raises(ConfigError, match="but was given ImmoralityNetConfig and StructureConfig"):
        tiny_immoralities(task="edges")
    with pytest.raises(ConfigError, match=r"task='oracle' is unknown; choose from .*edges, immoralities"):
        tiny_training(task="oracle")
    with pytest.raises(ConfigError, match="widths end at 7, but a structure may have 14 columns"):
        tiny_immoralities(network={"max_neighbours": 10})
    with pytest.raises(ConfigError, match=r"missed=1\.5"):
        StructureConfig(missed=1.5)
    with pytest.raises(ConfigError, match="widths"):
        StructureConfig(widths=(8, 4))
    with pytest.raises(ConfigError, match="no field colour"):
        StructureConfig.from_dict({"widths": [8], "colour": 1})


# ── whole runs ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_in_two_parts_equals_one_in_one(tiny_immoralities, tmp_path):
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
    """Losses and gradient norms of eight steps, as they were before there was a second task."""
    run(tiny_training(network=tiny_config(table_correlations=False, sharp_correlations=False)), tmp_path, 8)
    lines = log_of(tmp_path)
    losses = [1.67323, 1.57956, 1.12185, 1.66251, 2.19263, 2.27218, 2.08169, 2.24214]
    norms = [0.28241, 0.30699, 0.1052, 0.32235, 0.66477, 0.59895, 0.59962, 0.62058]
    assert [line["loss"] for line in lines] == pytest.approx(losses, rel=1e-3)
    assert [line["gradient_norm"] for line in lines] == pytest.approx(norms, rel=1e-2)


def test_it_learns(tiny_immoralities, tmp_path):
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


# ── on the command line ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("extra", [[], ["--edges", "toy"]])
def test_the_command_line_trains_colliders(tiny_net, tmp_path, extra):
    save_weights(tmp_path / "toy.safetensors", tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32))
    extra = [str(tmp_path / "toy.safetensors") if word == "toy" else word for word in extra]
    out = tmp_path / "run"
    options = ["--network", "collider", "--tiny", "--steps", "2", "--device", "cpu", "--out", str(out), *extra]
    result = CliRunner().invoke(app, ["train", *options])
    assert result.exit_code == 0, result.output
    stored = load_colliders(out / "weights.safetensors").header.train["settings"]
    assert stored["edges"] == (extra[1] if extra else None)


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--edges", "edges"], "is for collider networks"), (["--network", "colider"], "collider-paper")],
)
def test_the_command_line_explains_mistakes(tmp_path, options, words):
    result = CliRunner().invoke(app, ["train", "--steps", "1", "--out", str(tmp_path), *options])
    assert isinstance(result.exception, ConfigError)
    assert words in str(result.exception)


# ── calibration ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_calibration_sees_all_candidates_of_fresh_structures(tiny_immoralities, tmp_path):
    config = tiny_immoralities()
    loaded = load_colliders(run(config, tmp_path, 2))
    logits, truth = simulated_children(loaded, torch.Generator().manual_seed(0), config, 5)
    assert logits.shape == truth.shape
    assert len(logits) >= 5 * 2 * 4  # structures, widths, numbers of samples
    assert 0 < truth.double().mean() < 1
    fitted = fit_child_calibration(torch.full((100,), 0.0), torch.arange(100) < 20)
    assert torch.tensor(fitted.offsets[0]).sigmoid().item() == pytest.approx(0.2, abs=1e-3)
