"""The stream: what batch k holds depends on the seed, the rank and k, and on nothing else."""

import dataclasses
import itertools

import pytest
import torch

from graphbam.errors import ConfigError
from graphbam.tables.rows import count_rows_each
from graphbam.training.config import TrainConfig
from graphbam.training.data import Stream, allowed_shapes, mix_seed, shape_grid

CPU = torch.device("cpu")


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


def test_the_same_seed_gives_the_same_stream(tiny_training):
    assert same(take(9, tiny_training()), take(9, tiny_training()))


@pytest.mark.parametrize("first_step", [1, 4, 7])
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


@pytest.mark.parametrize("make", [TrainConfig, TrainConfig.paper])
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
