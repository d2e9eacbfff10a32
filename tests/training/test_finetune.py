"""Fine-tuning learns a user's tables, keeps the original weights untouched and refuses what does not fit."""

import dataclasses
import os
import signal

import numpy as np
import pandas as pd
import pytest
import torch

from cases import each, quick_and_long
from graphbam.errors import ConfigError, TableError
from graphbam.nn.edge_net import SET, EdgeNet, EdgeNetConfig
from graphbam.nn.weights import Calibration, Header, LoadedWeights, Partner, fits_partner, load_weights, save_weights
from graphbam.simulation import MECHANISMS, SimulationConfig, simulate
from graphbam.tables.dither import dither
from graphbam.tables.labelled import LabelledTable
from graphbam.tables.rows import count_rows, measure_redundancy
from graphbam.tables.standard import standardise
from graphbam.training import TrainConfig, finetune
from graphbam.training.data import shape_grid
from graphbam.training.finetune import as_answer_batch, as_batch, fine_tune, own_batches, read_pairs
from graphbam.training.objectives import answer_loss, edge_loss

LAYERS = {"attribute_layers": 1, "sample_layers": 1, "dense_layers": 1, "bilinear_layers": 1, "pair_layers": 1}
SIZES = {"channels": 16, "heads": 1, "spd_channels": 8, "spd_heads": 1, "pair_channels": 16, "product_channels": 4}


@pytest.fixture
def loaded():
    torch.manual_seed(0)
    return LoadedWeights("tiny", EdgeNet(EdgeNetConfig(**LAYERS, **SIZES)).eval(), Header())


@pytest.fixture
def pairs():
    worlds = [simulate(n_samples=60, n_variables=5, mechanism="linear", degree=1.5, seed=seed) for seed in range(6)]
    return [(x_md, dag) for dag, x_md in worlds]


def mean_loss(network, pairs):
    with torch.no_grad():
        batches = [as_batch(*pair) for pair in pairs]
        return np.mean([edge_loss(network(x, rows), classes).total().item() for x, classes, rows in batches])


def test_tuning_lowers_the_loss_on_the_tables_and_leaves_the_start_alone(loaded, pairs):
    before, kept = mean_loss(loaded.network, pairs), [p.detach().clone() for p in loaded.network.parameters()]
    tuned = fine_tune(loaded, pairs, steps=120, learning_rate=1e-2, replay=0.0, device="cpu")
    assert mean_loss(tuned.network, pairs) < 0.8 * before
    assert all(torch.equal(p, old) for p, old in zip(loaded.network.parameters(), kept, strict=True))
    assert tuned.header.notes["fine_tuned"]["steps"] == 120


def test_networks_with_answers_learn_directions_too(pairs):
    torch.manual_seed(0)
    network = EdgeNet(EdgeNetConfig(**LAYERS, **SIZES, marks=True, answers=True)).eval()
    loaded = LoadedWeights("tiny", network, Header(answers={"direction": {"temperature": 2.0, "offset": 0.0}}))
    tuned = fine_tune(loaded, pairs, steps=120, learning_rate=1e-2, replay=0.0, device="cpu")
    assert tuned.header.answers is None
    before, after = (answer_losses(one.network, pairs) for one in (loaded, tuned))
    assert (after < np.array([0.8, 0.97, 0.9]) * before).all()


def answer_losses(network, pairs):
    """Classes, directions and ancestors."""
    losses = []
    with torch.no_grad():
        for batch in (as_answer_batch(*pair) for pair in pairs):
            logits_bdd7 = network(batch.x_bmd, batch.rows_b, batch.marks_bmd)
            said = answer_loss(logits_bdd7[..., 3:], batch)
            losses.append([edge_loss(logits_bdd7[..., :3], batch.classes_bdd).total(), said.direction, said.ancestor])
    return np.mean(losses, axis=0)


def test_links_without_a_direction_and_loops_teach_no_more_than_they_know(pairs):
    x_md = pairs[0][0][:, :3]
    open_link = as_answer_batch(x_md, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert open_link.dag_bdd.sum() == 0
    assert (open_link.compelled_bdd == -1).all()
    assert (open_link.ancestors_bdd == -1).all()
    assert open_link.classes_bdd[0, 0, 1] == 1
    loop = as_answer_batch(x_md, [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert (loop.compelled_bdd == -1).all()
    assert loop.dag_bdd.sum() == 3


def test_what_a_folder_knows_beside_the_graph_is_learnt_too(tmp_path):
    (tmp_path / "data.csv").write_text("a,b,c\n1,2,5\n3,5,1\n2,2,4\n")
    (tmp_path / "graph.csv").write_text("source,target\na,c\nb,c\n")

    def teach(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.csv").write_text(text)
        rng = torch.Generator().manual_seed(0)
        return next(own_batches(rng, iter(read_pairs(tmp_path)), answers=True))  # one by one: rows as they are

    plain = teach()
    assert plain.compelled_bdd[0].tolist() == plain.dag_bdd[0].tolist()  # a collider
    assert (plain.hidden_bdd == -1).all()
    assert not plain.marks_bmd.any()
    told = teach(bidirected="a,b\na,b\n", targets="a,b,c\n0,0,0\n0,1,0\n0,0,0\n")
    assert told.hidden_bdd[0].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert (told.compelled_bdd == -1).all()  # with a hidden cause there is no CPDAG
    assert told.marks_bmd[0].tolist() == [[0, 0, 0], [0, SET, 0], [0, 0, 0]]
    assert torch.equal(told.dag_bdd, plain.dag_bdd)
    complete = teach(bidirected="a,b\n")
    assert (complete.hidden_bdd == 0).all()
    assert torch.equal(complete.compelled_bdd, plain.compelled_bdd)


@each("answers", [False, True])
def test_rows_in_the_order_of_what_was_set_count_in_full(answers):
    rng = np.random.default_rng(0)
    set_md = np.arange(200)[:, None] // 50 == np.arange(4)
    x_md = rng.normal(size=(200, 4)) + 3 * rng.normal(size=(4, 4)).repeat(50, axis=0)
    x_md[set_md] = 9
    table = LabelledTable(tuple("abcd"), x_md, np.zeros((4, 4), dtype=np.int8), set_md=set_md)
    batch = next(own_batches(torch.Generator(), iter([table]), answers=answers))
    assert batch.rows_b.tolist() == [200]
    without = dataclasses.replace(table, set_md=None)
    assert float(next(own_batches(torch.Generator(), iter([without]), answers=answers)).rows_b) < 100


def test_weights_are_saved_as_training_goes(loaded, pairs, tmp_path, monkeypatch):
    monkeypatch.setattr("graphbam.training.finetune.SAVE_SECONDS", 0.0)
    out, seen = tmp_path / "mine.safetensors", []
    fine_tune(loaded, pairs, steps=4, replay=0.0, device="cpu", out=out, report=lambda line: seen.append(out.exists()))
    assert seen == [False, True]  # told at the first and at the last step
    assert load_weights(out).header.notes["fine_tuned"]["steps"] == 4


def test_where_weights_go_is_checked_before_the_work(loaded, pairs, tmp_path, monkeypatch):
    start, mine, others = (tmp_path / f"{name}.safetensors" for name in ("start", "mine", "others"))
    for path in (start, others):
        save_weights(path, loaded.network, loaded.header)
    (tmp_path / "notes.txt").write_text("mine")
    begin = {"weights": str(start), "pairs": pairs, "steps": 1, "replay": 0.0, "device": "cpu"}
    for _ in range(2):
        fine_tune(**begin, out=mine)  # its own file it may replace
    monkeypatch.setattr("graphbam.training.finetune.Stepper", None)
    refused = {
        tmp_path: "is a folder where a file must go",
        start: "holds the weights to start from",
        others: "is there already, and not from fine-tuning",
        tmp_path / "notes.txt": "is there already, and not from fine-tuning",
        tmp_path / "notes.txt" / "mine": "is a file, not a folder",
        "": "the path of the weights to write is empty",
    }
    for out, says in refused.items():
        with pytest.raises(ConfigError, match=says):
            fine_tune(**begin, out=out)
    with pytest.raises(ConfigError, match="holds the weights to start from"):
        fine_tune(**begin | {"weights": str(mine)}, out=mine)


def test_tuned_weights_are_new_ones(loaded, pairs):
    """What was fitted to the old ones, by checksum, is not theirs."""
    before = dataclasses.replace(loaded.header, checksum="abc", calibration=Calibration(temperature=2.0))
    tuned = fine_tune(dataclasses.replace(loaded, header=before), pairs, steps=1, replay=0.0, device="cpu")
    assert tuned.header.checksum is None
    assert tuned.header.calibration is None
    assert not fits_partner(Header(evidence={"offset": 1.0}, partner=Partner(name="e", checksum="abc")), tuned.header)


def test_ctrl_c_keeps_what_was_learnt(loaded, pairs):
    seen = []

    def interrupt(line):
        seen.append(line)
        os.kill(os.getpid(), signal.SIGINT)

    tuned = fine_tune(loaded, pairs, steps=1000, learning_rate=1e-2, replay=0.0, device="cpu", report=interrupt)
    assert [line["step"] for line in seen] == [1]
    assert seen[0]["seconds_left"] > 0
    assert tuned.header.notes["fine_tuned"]["steps"] == 1
    assert not torch.equal(tuned.network.head.classes.weight, loaded.network.head.classes.weight)


@pytest.mark.parametrize("replay", quick_and_long([0.0], [0.5]))
def test_the_same_seed_gives_the_same_weights(loaded, pairs, replay):
    first, second = (fine_tune(loaded, pairs, steps=6, replay=replay, seed=3, device="cpu") for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.network.parameters(), second.network.parameters(), strict=True))


def test_replay_has_the_worlds_and_shapes_that_the_weights_know(loaded, monkeypatch):
    seen = []
    monkeypatch.setattr(finetune, "Stream", lambda config, device: seen.append(config) or iter(()))
    trained = TrainConfig(simulation=SimulationConfig.paper(), variables=(4, 9), samples=(30, 60), largest_table=300)
    stored = {name: value for name, value in trained.to_dict().items() if name != "network"}
    for train in (stored, {}):
        known = dataclasses.replace(loaded, header=Header(train=train))
        finetune._replay(known, 0, torch.device("cpu"))
    names = ("simulation", "variables", "samples", "stagger")
    for config, expected in zip(seen, (trained, TrainConfig()), strict=True):
        assert all(getattr(config, name) == getattr(expected, name) for name in names)
    assert [config.largest_table for config in seen] == [300, finetune.LARGEST_REPLAYED]
    most = max(shape.n_tables * shape.n_samples * shape.n_variables for shape in shape_grid(seen[1]))
    assert most <= finetune.LARGEST_REPLAYED  # a step of four large tables took a minute on a CPU


def test_worlds_that_are_not_known_here_are_replayed_by_nobody(loaded, pairs):
    MECHANISMS["sawtooth"] = MECHANISMS["linear"]
    try:
        own = TrainConfig(simulation=SimulationConfig(mechanisms={"sawtooth": 1.0}))
    finally:
        del MECHANISMS["sawtooth"]
    stored = {name: value for name, value in own.to_dict().items() if name != "network"}
    theirs = dataclasses.replace(loaded, header=Header(train=stored))
    with pytest.raises(ConfigError, match=r"worlds that are not known here \(mechanism='sawtooth' .*replay=0"):
        fine_tune(theirs, pairs, steps=1, device="cpu")
    assert fine_tune(theirs, pairs, steps=1, replay=0.0, device="cpu").header.train == stored


def test_resampled_rows_are_counted_for_what_they_are_worth(pairs):
    walk_md = np.random.default_rng(0).normal(size=(200, 5)).cumsum(axis=0)
    whole = as_batch(walk_md, pairs[0][1])
    assert whole.rows_b.item() == pytest.approx(count_rows(200, 200, measure_redundancy(walk_md)), rel=1e-3)
    assert whole.rows_b.item() < 50
    slipped_md = walk_md.copy()
    slipped_md[range(20, 25), range(5)] = 1e5
    assert as_batch(slipped_md, pairs[0][1]).rows_b.item() < 60
    batch = next(own_batches(torch.Generator().manual_seed(0), [(walk_md, pairs[0][1])]))
    assert batch.shape == (1, 180, 5)
    assert batch.rows_b.item() == pytest.approx(count_rows(180, 200, measure_redundancy(walk_md)), rel=1e-3)


def test_tables_of_two_levels_get_the_noise_that_inference_gives_them():
    x_md = (np.random.default_rng(0).random((80, 20)) < 0.5).astype(float)
    plain_bmd = standardise(torch.tensor(x_md)[None]).float()
    shown_bmd = as_batch(x_md, np.zeros((20, 20))).x_bmd
    assert torch.equal(shown_bmd, dither(plain_bmd))
    assert not torch.equal(shown_bmd, plain_bmd)


def test_a_generator_is_taken_as_it_comes_and_may_not_run_out(loaded, pairs):
    rng = torch.Generator().manual_seed(0)
    batches = list(zip(range(6), own_batches(rng, iter(pairs)), strict=False))
    assert all(torch.equal(batch.x_bmd, as_batch(*pair).x_bmd) for (_, batch), pair in zip(batches, pairs, strict=True))
    with pytest.raises(TableError, match="run out"):
        fine_tune(loaded, iter(pairs), steps=7, replay=0.0, device="cpu")


@each(
    ("table", "graph", "message"),
    [
        (np.zeros((5, 3)), np.zeros((2, 2)), "does not fit"),
        (np.zeros(5), np.zeros((5, 5)), "does not fit"),
        (np.full((5, 2), np.nan), np.zeros((2, 2)), "missing or infinite"),
        (pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}), np.zeros((2, 2)), "not made of numbers .*'x'"),
    ],
)
def test_pairs_that_do_not_fit_are_refused_by_number(table, graph, message):
    with pytest.raises(TableError, match=f"pair 4: .*{message}"):
        as_batch(table, graph, 4)


def test_graphs_are_matched_to_columns_by_name(pairs):
    x_md, dag = pairs[0]
    frame = pd.DataFrame(x_md, columns=dag.names)
    turned = frame[list(reversed(dag.names))]
    expected = as_answer_batch(x_md[:, ::-1], dag.adjacency[::-1, ::-1])
    assert all(torch.equal(a, b) for a, b in zip(as_answer_batch(turned, dag), expected, strict=True))
    assert torch.equal(as_batch(turned, dag).classes_bdd, expected.classes_bdd)
    with pytest.raises(TableError, match="pair 4: only one of table and graph knows 'X1'"):
        as_batch(frame.rename(columns={"X1": "rain"}), dag, 4)


def test_all_tables_are_checked_before_the_first_step(loaded, pairs, monkeypatch):
    pairs[3] = (np.full((60, 5), np.nan), pairs[3][1])
    monkeypatch.setattr("graphbam.training.finetune._replay", lambda *_: pytest.fail("a step was begun"))
    with pytest.raises(TableError, match="pair 3: the table holds missing or infinite values"):
        fine_tune(loaded, pairs, replay=0.9, device="cpu")


def test_what_is_no_pair_is_refused(loaded, pairs):
    for wrong in (pairs[0], [pairs[0][0]], "tables"):
        with pytest.raises(TableError, match=r"pair 0 is a (ndarray|str), not \(table, graph\); pass a list"):
            fine_tune(loaded, wrong, replay=0.0, device="cpu")


def test_nothing_to_learn_from_is_refused(loaded):
    with pytest.raises(TableError, match="have run out"):
        fine_tune(loaded, [], replay=0.0, device="cpu")


@each(
    ("wrong", "message"),
    [
        ({"replay": 1.0}, "replay=1.0 must be at least 0 and below 1"),
        ({"steps": 0}, "steps=0 is not a whole number from 1 on"),
        ({"learning_rate": -3.0}, "learning_rate=-3.0 must be a number above zero"),
        ({"learning_rate": float("nan")}, "learning_rate=nan must be a number above zero"),
    ],
)
def test_settings_are_checked(loaded, pairs, wrong, message):
    with pytest.raises(ConfigError, match=message):
        fine_tune(loaded, pairs, **wrong)


def test_folders_are_read_and_unknown_names_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "data.csv").write_text("x,y\n1,2\n3,5\n2,2\n")
    (tmp_path / "a" / "graph.csv").write_text("source,target\nx,y\n")
    (table,) = read_pairs(tmp_path)
    assert table.x_md.shape == (3, 2)
    assert table.adjacency.tolist() == [[0, 1], [0, 0]]
    (tmp_path / "a" / "graph.csv").write_text("source,target\nx,z\n")
    with pytest.raises(TableError, match="'z'"):
        read_pairs(tmp_path)
    with pytest.raises(TableError, match="no folder"):
        read_pairs(tmp_path / "nowhere")
    (tmp_path / "a" / "data.csv").write_text("x,y\n1,2\n3,\n2,\n")
    (tmp_path / "a" / "graph.csv").write_text("source,target\nx,y\n")
    with pytest.raises(TableError, match=r"a: the table has 2 missing or infinite cells \(first column: 'y'\)"):
        read_pairs(tmp_path)
