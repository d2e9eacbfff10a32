"""The stream: what batch k holds depends on the seed, the rank and k, and on nothing else.

Structures to learn from: labels are immoralities of the truth, whatever mistakes the skeleton has.
"""

import dataclasses
import itertools
import types

import pytest
import torch

from cases import each
from graphbam.directions.immoralities import pairs_to_ask
from graphbam.errors import ConfigError
from graphbam.graphs.graph import v_structures
from graphbam.nn.edge_net import standardise
from graphbam.nn.immorality_net import MOST_ROWS
from graphbam.nn.structures import ABSENT, CANDIDATE, PARENT, Structures, find_structures, gather_columns
from graphbam.nn.weights import load_weights, save_weights
from graphbam.simulation.config import SimulationConfig
from graphbam.simulation.values import Shape, sample_tables
from graphbam.tables.prepare import prepare
from graphbam.tables.rows import count_rows_each
from graphbam.tables.table import Table
from graphbam.training.config import StructureConfig, TrainConfig
from graphbam.training.data import (
    Stream,
    allowed_shapes,
    ask_edges,
    common_children,
    draw_tables,
    draw_variables,
    invent_mistakes,
    mix_seed,
    rows_of_tables,
    shape_grid,
    simulate_structures,
)

CPU = torch.device("cpu")
PERFECT = StructureConfig(flawless=1.0)


def take(n, config, **options):
    return list(itertools.islice(iter(Stream(config, CPU, **options)), n))


def same(batches, others):
    return len(batches) == len(others) and all(
        all(torch.equal(part, other) for part, other in zip(a, b, strict=True))
        for a, b in zip(batches, others, strict=True)
    )


def test_batches_are_tables_with_labels(tiny_training):
    for batch in take(8, tiny_training()):
        n_tables, n_samples, n_variables = batch.shape
        assert batch.x_bmd.shape == (n_tables, n_samples, n_variables)
        assert batch.x_bmd.dtype == torch.float32
        assert batch.classes_bdd.shape == (n_tables, n_variables, n_variables)
        assert batch.classes_bdd.dtype == torch.int64
        assert torch.equal(batch.classes_bdd, batch.classes_bdd.mT)
        assert batch.classes_bdd.max() <= 2
        assert torch.isfinite(batch.x_bmd).all()


def test_labels_belong_to_their_tables(tiny_training):
    """In linear worlds of two variables an edge is a correlation: labels of another batch would not know it."""
    config = tiny_training(variables=(2,), samples=(200,), cells_per_step=20_000, max_tables=40, window=3)
    seen = {0: [], 1: []}
    for batch in take(6, config):
        r = torch.stack([torch.corrcoef(table.T)[0, 1].abs() for table in batch.x_bmd])
        for label in seen:
            seen[label] += r[batch.classes_bdd[:, 0, 1] == label].tolist()
    assert max(seen[0]) < 0.35
    assert sorted(seen[1])[len(seen[1]) // 20] > 0.5


def test_training_says_what_rows_are_worth_as_inference_does(tiny_training):
    sizes = {"variables": (4,), "samples": (200,), "cells_per_step": 8_000}
    plain = tiny_training(**sizes)
    slow = dataclasses.replace(plain, simulation=dataclasses.replace(plain.simulation, autocorrelated=1.0))
    assert plain.simulation.autocorrelated == 0
    assert all((batch.rows_b == 200).all() for batch in take(2, plain))
    for batch in take(2, slow):
        assert batch.rows_b.tolist() == pytest.approx(count_rows_each(batch.x_bmd.numpy()))
        assert batch.rows_b.min() < 150


@each("world", ["monitoring", "as-found"])
def test_rows_of_experiments_are_counted_as_inference_counts_them(world, rng):
    """A slow process of which an experiment sets some variable now and then, and rows that have no order."""
    config = dataclasses.replace(SimulationConfig.broad(), worlds={world: 1.0}, small_worlds={}, hidden=0.0)
    config = dataclasses.replace(config, interventions=0.5, missing=0.0)
    tables = draw_tables(rng, config, n_tables=12, n_variables=6, n_samples=300)
    seen = set()
    for x_md, set_md, rows in zip(tables.x_bmd, tables.set_bmd, rows_of_tables(tables), strict=True):
        table = Table(tuple("abcdef"), x_md.double().numpy(), "a process", set_md=set_md.numpy())
        assert rows == pytest.approx(prepare(table).worth(300), rel=0.01)
        seen.add((bool(set_md.any()), rows < 300))
    slow = world == "monitoring"
    assert {(True, slow), (False, slow)} <= seen
    assert slow or not {(True, True), (False, True)} & seen


def test_the_same_seed_gives_the_same_stream(tiny_training):
    assert same(take(9, tiny_training()), take(9, tiny_training()))


@each("first_step", [1, 4, 7])
def test_starting_late_equals_skipping(tiny_training, first_step):
    config = tiny_training()
    assert same(take(5, config, first_step=first_step), take(first_step + 5, config)[first_step:])


def test_the_state_of_the_global_generator_does_not_matter(tiny_training):
    torch.manual_seed(1)
    one = take(4, tiny_training())
    torch.manual_seed(2)
    assert same(one, take(4, tiny_training()))


def test_no_batch_comes_twice(tiny_training):
    batches = take(16, tiny_training(variables=(3,), samples=(8,)))
    assert len({batch.x_bmd.numpy().tobytes() for batch in batches}) == 16


def test_another_seed_gives_other_tables(tiny_training):
    assert not same(take(4, tiny_training(seed=0)), take(4, tiny_training(seed=1)))


def test_ranks_share_shapes_but_not_tables(tiny_training):
    config = tiny_training()
    ranks = [take(8, config, rank=rank) for rank in (0, 1)]
    assert [batch.shape for batch in ranks[0]] == [batch.shape for batch in ranks[1]]
    assert not any(torch.equal(a.x_bmd, b.x_bmd) for a, b in zip(*ranks, strict=True))


def test_worker_processes_give_the_same_batches(tiny_training):
    config = tiny_training()
    assert same(take(9, config, workers=2), take(9, config))


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", [TrainConfig, TrainConfig.paper, TrainConfig.answers])
def test_all_shapes_stay_within_the_budget(make):
    config = make()
    grid = shape_grid(config)
    assert all(
        shape.n_tables == config.min_tables
        or shape.n_tables * shape.n_samples * shape.n_variables <= config.cells_per_step
        for shape in grid
    )
    assert all(config.min_tables <= shape.n_tables <= config.max_tables for shape in grid)
    assert {shape.n_variables for shape in grid} == set(config.variables)
    assert {shape.n_samples for shape in grid} == set(config.samples)
    assert len(set(grid)) == len(grid) < len(config.variables) * len(config.samples)


@each("most", [24, 60, 79, 80, 119])
def test_shapes_beyond_the_largest_table_are_left_out(tiny_training, most):
    whole, cut = (shape_grid(tiny_training(largest_table=size)) for size in (None, most))
    assert cut == [shape for shape in whole if shape.n_samples * shape.n_variables <= most]
    assert 0 < len(cut) < len(whole) == 9


def test_a_largest_table_as_large_as_all_leaves_nothing_out(tiny_training):
    assert shape_grid(tiny_training(largest_table=120)) == shape_grid(tiny_training())
    assert shape_grid(TrainConfig(largest_table=180_000)) == shape_grid(TrainConfig())  # 1,500 samples of 120 variables


def test_few_variables_have_the_longest_tables_and_many_have_few_tables():
    grid = shape_grid(TrainConfig.answers())
    longest = {d: max(shape.n_samples for shape in grid if shape.n_variables == d) for d in (2, 16, 40, 100)}
    assert longest == {2: 7200, 16: 7200, 40: 3000, 100: 1440}
    most = {d: max(shape.n_tables for shape in grid if shape.n_variables == d) for d in (2, 40, 120)}
    assert most == {2: 160, 40: 62, 120: 6}  # a hundred thousand pairs
    pairs, threes = (sum(shape.n_variables == d for shape in grid) for d in (2, 3))
    assert pairs > 1.8 * threes  # two places in the grid


def test_the_curriculum_grows_to_the_whole_grid():
    config = TrainConfig()
    steps = [0, 1000, 4000, config.curriculum_steps, 10 * config.curriculum_steps]
    allowed = [set(allowed_shapes(config, step)) for step in steps]
    assert all(a < b for a, b in itertools.pairwise(allowed[:4]))
    assert allowed[3] == allowed[4] == set(shape_grid(config))
    assert max(shape.n_variables for shape in allowed[0]) <= 0.16 * 120 + 3
    assert max(shape.n_samples for shape in allowed[0]) <= 0.16 * 1500 + 20


def test_early_steps_see_small_tables_only(tiny_training):
    config = tiny_training(curriculum_start=0.0, curriculum_steps=10_000)
    assert {batch.shape[1:] for batch in take(8, config)} == {(8, 3)}


def test_a_curriculum_that_allows_nothing_still_allows_the_smallest_shape(tiny_training):
    config = tiny_training(stagger=2, curriculum_start=0.0, variables=(3, 4), samples=(8, 12))
    assert [shape[1:] for shape in allowed_shapes(config, 0)] == [(8, 3)]


def test_a_budget_too_small_for_any_table_is_refused(tiny_training):
    with pytest.raises(ConfigError, match="cells_per_step"):
        tiny_training(cells_per_step=10)


def test_mixed_seeds_are_spread_over_all_bits():
    seeds = [mix_seed(seed, index, rank) for seed in range(8) for index in range(40) for rank in range(4)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    for bit in range(63):
        share = sum(seed >> bit & 1 for seed in seeds) / len(seeds)
        assert 0.4 < share < 0.6
    assert mix_seed(0, 1) != mix_seed(1, 0)


# ── structures: labels and mistakes ────────────────────────────────────────────────────────────────────────────────


def worlds(rng, n_tables=6, n_variables=12, n_samples=20):
    config = SimulationConfig.preset("broad")
    return sample_tables(rng, config, n_tables=n_tables, n_variables=n_variables, n_samples=n_samples)


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


def test_no_mistakes_is_the_truth(rng):
    classes = worlds(rng).classes_bdd
    belief = invent_mistakes(rng, PERFECT, classes)
    assert torch.equal(belief.skeleton_bdd, classes == 1)
    assert torch.equal(belief.pairs_bdd, classes == 2)


@each(("kind", "truth"), [("missed", 1), ("confused", 2), ("invented", 0), ("married", 0), ("married_links", 1)])
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
    tables = worlds(rng, n_samples=200)
    x_bmd = standardise(tables.x_bmd.cumsum(1))  # rows that repeat each other
    belief = ask_edges(StructureConfig(moral_threshold=0.3), dataclasses.replace(tables, x_bmd=x_bmd), weights)
    p = weights.probabilities(x_bmd, count_rows_each(x_bmd.numpy())).float()
    assert not torch.allclose(p, weights.probabilities(x_bmd).float(), atol=1e-3)
    assert torch.equal(belief.pairs_bdd, p[..., 2] >= 0.3)
    off = ~torch.eye(12, dtype=torch.bool)
    assert torch.equal(belief.skeleton_bdd, (p[..., 1] >= 0.5) & off)
    assert torch.equal(belief.strength_bdd, p[..., 1])


def test_the_second_network_learns_from_what_it_will_be_asked():
    """Training takes links and pairs from edge weights as inference does, over tables as long."""
    p_dd3 = torch.softmax(2 * torch.randn(12, 12, 3, generator=torch.Generator().manual_seed(0)), -1).double()
    p_dd3 = (p_dd3 + p_dd3.transpose(0, 1)) / 2
    weights = types.SimpleNamespace(reads_marks=True, probabilities=lambda x_bmd, rows, marks_bmd: p_dd3[None])
    belief = ask_edges(StructureConfig(), worlds(torch.Generator().manual_seed(0), n_tables=1), weights)
    asked = pairs_to_ask(p_dd3.numpy())
    assert belief.skeleton_bdd[0].tolist() == asked.links_dd.tolist()
    assert (belief.pairs_bdd[0].numpy() >= asked.pairs_dd).all()  # obvious ones are learnt from, but not asked about
    assert max(TrainConfig.immoralities().samples) == MOST_ROWS


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


# ── structures: batches ────────────────────────────────────────────────────────────────────────────────────────────


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
