"""What every named world promises, and what makes each of them the kind it is."""

import dataclasses
import itertools

import pytest
import torch

from cases import each
from graphbam.errors import ConfigError
from graphbam.simulation import PRESETS, WORLDS, SimulationConfig, sample_tables, simulate
from graphbam.simulation.cells import SetCells, draw_interventions, draw_set_cells
from graphbam.simulation.labels import NOT_APPLICABLE, reach
from graphbam.simulation.mechanisms import unit
from graphbam.simulation.worlds import SERIES, SETTABLE, found, levels, single_cell
from graphbam.simulation.worlds.blended import blend_rising
from graphbam.simulation.worlds.curves import blend, found_looks, found_marginal
from graphbam.simulation.worlds.found import choose_levels
from graphbam.simulation.worlds.parts import Step, by_depth, draw_weights


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def of_world(name, **shares):
    return dataclasses.replace(SimulationConfig(robust=True), worlds={name: 1.0}, **shares)


@each("shape", [(2, 2), (2, 60), (15, 40)])
@each("name", WORLDS)
def test_a_world_keeps_its_promises(name, shape):
    d, m = shape
    world = WORLDS[name](generator(), 5, d, m)
    n_all = d + world.n_drivers
    assert world.x_bme.shape == (5, m, n_all)
    assert world.x_bme.isfinite().all()
    assert world.adj_bee.dtype == torch.bool
    assert not (world.adj_bee & world.adj_bee.mT).any()  # nobody is two variables' cause and effect at once
    assert not world.adj_bee[:, :, d:].any()  # nothing acts on a driver
    assert world.set_bme is None or world.set_bme.shape == world.x_bme.shape


@each("name", WORLDS)
def test_tables_of_a_world_are_like_all_others(name):
    config = of_world(name, hidden=0.5, missing=0.5)
    one, two = (sample_tables(generator(), config, n_tables=70, n_variables=8, n_samples=120) for _ in range(2))
    assert torch.equal(one.x_bmd, two.x_bmd)
    assert torch.equal(one.dag_bdd, two.dag_bdd)
    assert one.x_bmd.shape == (70, 120, 8)
    assert one.observed_bmd.shape == one.x_bmd.shape
    assert not (one.dag_bdd & one.dag_bdd.mT).any()  # no loop runs through a hidden variable
    assert one.x_bmd.mean(1).abs().max() < 0.05  # clipped tails may move a mean
    upward = one.dag_bdd.triu(1).sum() / one.dag_bdd.sum()
    assert 0.35 < upward < 0.65  # columns are shuffled
    if not WORLDS[name](generator(), 2, 8, 5).n_drivers and name != "gene-dynamics":
        assert (one.compelled_bdd >= 0).any()


@each("name", WORLDS)
def test_arrows_of_a_world_transmit(name):
    """Variables depend on their parents far more than unrelated ones depend on one another."""
    world = WORLDS[name](generator(), 150, 6, 500)
    r_bee = torch.stack([torch.corrcoef(x_me.T.double()).nan_to_num() for x_me in world.x_bme]).abs()
    before = reach(world.adj_bee) | torch.eye(world.adj_bee.shape[-1], dtype=torch.bool)
    related = (before.mT.float() @ before.float()) > 0
    assert r_bee[world.adj_bee].mean() > (0.1 if name == "single-cell" else 0.15)  # few transcripts are counted
    if name not in SERIES and world.set_bme is None:  # slow series look alike without a reason, cells by library size
        assert r_bee[~related].median() < (0.12 if name == "single-cell" else 0.08)


def test_single_cells_are_counts_with_many_zeros():
    x_bme = WORLDS["single-cell"](generator(), 60, 10, 300).x_bme[..., :-1]
    whole = ((x_bme - x_bme.round()).abs() < 1e-6).all((1, 2))
    assert 0.15 < whole.float().mean() < 0.55
    assert x_bme.min() == 0
    assert 0.2 < (x_bme == 0).float().mean() < 0.8


def test_cells_of_one_kind_have_no_hidden_cause(monkeypatch):
    """What does not vary relates nothing: neither in values nor in labels."""
    monkeypatch.setattr(single_cell, "_count", lambda rng, z_bem: z_bem)
    x_bme, adj_bee, *_ = WORLDS["single-cell"](generator(), 300, 10, 100)
    varies_b, acts_b = x_bme[..., -1].std(1) > 0, adj_bee[:, -1].any(1)
    assert 0.65 < varies_b.float().mean() < 0.85
    assert not acts_b[~varies_b].any()
    assert acts_b[varies_b].float().mean() > 0.8


def hold_all(n_tables, n_variables, value_m):
    """An experiment that sets every variable of every table, row by row, to the same values."""
    size = (n_tables, n_variables, len(value_m))
    return SetCells(torch.ones(size).bool(), torch.zeros(size[:2]), value_m.expand(size))


def is_whole(x):
    return (x - x.round()).abs() < 1e-3


def test_counts_are_whole_numbers_of_rare_and_of_frequent_things():
    x_bem = WORLDS["counts"](generator(), 300, 8, 200).x_bme.mT
    raw_be, logs_be, roots_be = (is_whole(n_bem).all(2) for n_bem in (x_bem, x_bem.expm1(), x_bem.square()))
    one_way_b = torch.stack([raw_be.all(1), logs_be.all(1), roots_be.all(1)]).any(0)
    assert 0.65 < one_way_b.float().mean() < 0.85  # some columns of all others are no counts
    for shown_be, share in ((raw_be, 0.4), (logs_be & ~raw_be, 0.4), (roots_be & ~raw_be, 0.2)):
        assert abs(shown_be[one_way_b].all(1).float().mean() - share) < 0.12
    assert 0.8 < (raw_be | logs_be | roots_be).float().mean() < 0.95
    mean_n = x_bem[raw_be].mean(1)
    assert mean_n.quantile(0.1) < 1 < 20 < mean_n.quantile(0.9)
    assert x_bem[raw_be].min() == 0


def test_more_is_counted_where_the_rate_is_higher():
    value_m = torch.tensor([-1.0, 0.0, 1.0]).repeat(300)
    x_bem = WORLDS["counts"](generator(), 100, 4, 900, hold_all(100, 4, value_m)).x_bme.mT
    low_be, middle_be, high_be = (x_bem[..., value_m == value].mean(2) for value in (-1, 0, 1))
    assert ((low_be < middle_be) & (middle_be < high_be)).float().mean() > 0.97


def test_counts_vary_more_than_by_chance_in_some_tables_and_with_one_another_in_others():
    """All rates are held: what is left is chance, extra variance of single columns, and how long rows were watched."""
    x_bem = WORLDS["counts"](generator(), 1500, 4, 500, hold_all(1500, 4, torch.zeros(500))).x_bme.mT
    n_bem = x_bem[(is_whole(x_bem).all(2) & (x_bem.mean(2) > 3)).all(1)]
    assert len(n_bem) > 100
    r_bee = torch.stack([torch.corrcoef(n_em) for n_em in n_bem])
    watched_b = (r_bee.sum((1, 2)) - 4) / 12 > 0.03
    assert 0.25 < watched_b.float().mean() < 0.55
    ratio_b = (n_bem.var(2) / n_bem.mean(2))[~watched_b].mean(1)
    chance_b = (ratio_b - 1).abs() < 0.1
    assert 0.3 < chance_b.float().mean() < 0.7
    assert (ratio_b[~chance_b] > 1).all()


def test_gene_dynamics_have_loops_without_a_cpdag_and_knock_outs():
    tables = sample_tables(generator(), of_world("gene-dynamics"), n_tables=100, n_variables=12, n_samples=60)
    both_bdd = tables.ancestors_bdd & tables.ancestors_bdd.mT
    loops_b = both_bdd.flatten(1).any(1)
    assert 0.3 < loops_b.float().mean() < 0.8
    assert (tables.compelled_bdd[loops_b] == NOT_APPLICABLE).all()
    assert (tables.compelled_bdd[~loops_b] >= 0).all()
    has_set_b = tables.set_bmd.flatten(1).any(1)
    assert 0.3 < has_set_b.float().mean() < 0.7
    assert tables.set_bmd.sum(2).max() == 1
    lag_b = (tables.x_bmd[:, 1:] * tables.x_bmd[:, :-1]).mean((1, 2))
    assert 0.2 < (lag_b > 0.4).float().mean() < 0.5  # a third are courses in time
    for x_md, set_md in zip(tables.x_bmd[has_set_b], tables.set_bmd[has_set_b], strict=True):
        assert all(len(x_md[set_md[:, j], j].unique()) <= 1 for j in range(12))


def test_monitoring_has_rows_that_resemble_their_neighbours():
    assert of_world("monitoring").dependent_rows
    assert not of_world("questionnaire").dependent_rows
    x_bmd = sample_tables(generator(), of_world("monitoring"), n_tables=60, n_variables=8, n_samples=300).x_bmd
    lag_bd = (x_bmd[:, 1:] * x_bmd[:, :-1]).mean(1)
    assert 0.3 < lag_bd.mean() < 0.9


def test_columns_of_textbook_tables_are_alike():
    def spread(preset):
        x_bmd = sample_tables(
            generator(), SimulationConfig.preset(preset), n_tables=80, n_variables=8, n_samples=300
        ).x_bmd
        return (x_bmd**4).mean(1).log().std(1).median()

    assert spread("textbook") < 0.6 * spread("broad-1")


def test_questionnaires_have_few_levels_and_most_have_one_trait_behind_them():
    tables = sample_tables(generator(), of_world("questionnaire"), n_tables=120, n_variables=10, n_samples=300)
    levels = [len(x_md[:, j].unique()) for x_md, j in itertools.product(tables.x_bmd, range(10))]
    assert max(levels) <= 7
    free_b = ~tables.hidden_bdd.bool().flatten(1).any(1)
    assert 0.2 < free_b.float().mean() < 0.4
    assert tables.hidden_bdd[~free_b].float().mean() > 0.5
    assert (tables.compelled_bdd[free_b] >= 0).all()  # nothing hidden: they have a CPDAG
    r_bdd = tables.x_bmd.mT @ tables.x_bmd / 300
    top_b = torch.linalg.eigvalsh(r_bdd)[:, -1] / 10
    assert top_b[~free_b].median() > 0.3 > top_b[free_b].median()  # the first factor has three items' worth, or fewer


def count_levels(x_bme):
    """Distinct values of every column."""
    return torch.tensor([[len(x_m.unique()) for x_m in x_me.T] for x_me in x_bme])


def test_columns_of_levels_have_two_to_five_and_few_tables_have_others():
    x_bme = WORLDS["levels"](generator(), 300, 10, 400).x_bme
    levels_be = count_levels(x_bme)
    cut_be = levels_be <= 5
    assert levels_be.min() == 2  # no column is constant
    assert 0.75 < cut_be.all(1).float().mean() < 0.9
    assert 0.9 < cut_be.float().mean() < 0.98
    share_n = (x_bme.mT[levels_be == 2] > 0).float().mean(1)
    rarer_n = share_n.minimum(1 - share_n)
    assert 0.45 < (rarer_n > 0.35).float().mean() < 0.75
    assert rarer_n.min() < 0.06
    assert abs((share_n > 0.5).float().mean() - 0.5) < 0.1  # ones are rare as often as zeros are
    assert 0.1 < (levels_be == 2).all(1).float().mean() < 0.4


def test_levels_of_tables_with_two_rows_or_rare_ones_differ():
    for m in (2, 20):
        assert count_levels(WORLDS["levels"](generator(), 60, 12, m).x_bme).min() == 2


TWO_CAUSES = Step(torch.arange(1), torch.arange(2), torch.zeros(2).long(), torch.tensor([0.8, 0.6]))
"""One variable, and arrows into it from two others."""


def test_effects_follow_the_levels_of_their_causes_or_what_is_behind_these():
    """Causes in two levels each: what four combinations explain of the effect, without noise."""
    x_nm = torch.randn(2, 2000, generator=generator(1))
    level_nm = (x_nm > 0).float()
    combination_m = (2 * level_nm[0] + level_nm[1]).long()
    explained = []
    for answer in levels.LEVEL_ANSWERS:
        y_m = unit(answer(generator(), TWO_CAUSES, x_nm, level_nm))[0]
        means_4 = torch.stack([y_m[combination_m == k].mean() for k in range(4)])
        explained.append(means_4[combination_m].var(correction=0).item())
    assert explained[0] < 0.9
    assert min(explained[1:]) > 0.999


def test_causes_of_which_any_suffices_fail_on_their_own():
    """The chance that all fail is a product; in half of the variables it is that something happens, not that it does
    not."""
    level_nm = torch.tensor([[0.0, 1, 0, 1], [0, 0, 1, 1]])
    signs = []
    for seed in range(30):
        odds_4 = levels._let_any_suffice(generator(seed), TWO_CAUSES, level_nm, level_nm)[0]
        signs.append(float((odds_4[3] - odds_4[0]).sign()))
        none, one, other, both = (-signs[-1] * odds_4).sigmoid()
        assert both < min(one, other) < max(one, other) < none
        torch.testing.assert_close(both * none, one * other)
    assert set(signs) == {-1.0, 1.0}


def test_steps_by_depth_give_the_sums_of_one_variable_after_another():
    w_bee = draw_weights(
        generator(), torch.ones(4, 7, 7).triu(1).bool() & (torch.rand(4, 7, 7, generator=generator(1)) < 0.4)
    )
    w_bee = torch.nn.functional.pad(w_bee, (0, 1, 0, 1))
    w_bee[:, -1, :-1] = 0.3  # a driver
    x_bem = torch.randn(4, 8, 5, generator=generator(2))
    expected_bem, x_nm, n_rows = x_bem.clone(), x_bem.flatten(0, 1).clone(), 0
    for child in range(7):
        expected_bem[:, child] += (w_bee[:, :, child, None] * expected_bem).sum(1)
    for step in by_depth(w_bee, n_drivers=1):
        x_nm[step.row_k] += step.add_up(x_nm[step.parent_n])
        n_rows += len(step.row_k)
    torch.testing.assert_close(x_nm.view_as(x_bem), expected_bem)
    assert n_rows == 4 * 7


# ── interventions ───────────────────────────────────────────────────────────────────────────────────────────


def shares_of_a_sum(x_bme):
    """Whether cells are given per library: such columns depend on one another without a cause."""
    counts = [x_bme, x_bme.expm1()]
    return ~torch.stack([torch.isclose(n, n.round(), atol=1e-3).all(2).all(1) for n in counts]).any(0)[:, None, None]


def test_an_experiment_moves_descendants_of_its_target_and_nobody_else():
    """Every variable in turn is set to random numbers in all rows: whoever follows them is its descendant."""
    n_tables, d, m = 120, 5, 1500
    target_b = torch.arange(n_tables) % d
    value_bm = torch.randn(n_tables, m, generator=generator(7))
    is_target_be1 = (torch.arange(d) == target_b[:, None])[..., None]
    cells = SetCells(is_target_be1.expand(-1, -1, m), torch.zeros(n_tables, d), value_bm[:, None].expand(-1, d, -1))
    for name in SETTABLE:
        world = WORLDS[name](generator(), n_tables, d, m, cells)
        x_bme = world.x_bme[..., :d]
        assert torch.equal(world.set_bme, torch.nn.functional.pad(cells.set_bem.mT, (0, world.n_drivers)))
        later_be, child_be = (
            adj[torch.arange(n_tables), target_b, :d] for adj in (reach(world.adj_bee), world.adj_bee)
        )
        z_bme = (x_bme - x_bme.mean(1, keepdim=True)) / x_bme.std(1, keepdim=True).clamp(min=1e-6)
        follow_be = torch.stack(
            [(z_bme[:, lag:] * value_bm[:, : m - lag, None]).mean(1).abs() for lag in range(4)]
        ).amax(0)
        apart_b11 = ~shares_of_a_sum(x_bme) if name == "single-cell" else torch.ones(n_tables, 1, 1).bool()
        others_be = ~later_be & ~is_target_be1[..., 0] & apart_b11[..., 0]
        assert follow_be[is_target_be1[..., 0]].mean() > 0.4
        assert follow_be[others_be].quantile(0.99) < 0.1
        assert follow_be[child_be].mean() > 0.15


@each("name", sorted(SETTABLE - {"single-cell", "counts"}))  # where counts are drawn, one more changes all that follow
def test_a_world_without_the_experiment_is_the_same_elsewhere(name):
    rng, size = generator(), (30, 8, 60)
    cells = draw_set_cells(rng, draw_interventions(rng, 0.7, *size), 8, longest=20 if name in SERIES else 1)
    plain, done = WORLDS[name](generator(1), *size), WORLDS[name](generator(1), *size, cells)
    assert torch.equal(plain.adj_bee, done.adj_bee)
    is_set_be = done.set_bme.any(1)
    assert 0.5 < is_set_be.any(1).float().mean() < 0.9
    moved_be = is_set_be | ((is_set_be[:, None].float() @ reach(done.adj_bee).float())[:, 0] > 0)
    same_be = torch.isclose(plain.x_bme, done.x_bme, atol=1e-4).all(1)
    assert same_be[~moved_be].all()
    assert same_be[moved_be].float().mean() < 0.5


@each("name", sorted(SETTABLE))
def test_what_is_set_in_a_world_is_shown_with_its_mask(name):
    config = of_world(name, hidden=0.5, interventions=1.0)
    tables = sample_tables(generator(), config, n_tables=130, n_variables=5, n_samples=80)
    assert tables.set_bmd.shape == tables.x_bmd.shape
    assert tables.set_bmd.flatten(1).any(1).float().mean() > 0.95
    runs = (tables.set_bmd[:, 1:] & tables.set_bmd[:, :-1]).sum() / tables.set_bmd.sum()
    assert (runs > 0.6) == (name in SERIES)  # in series an experiment lasts a while
    assert simulate(world=name, interventions=True, n_variables=4, n_samples=30)[1].shape == (30, 4)


def test_worlds_that_nobody_can_set_say_so():
    for name in set(WORLDS) - SETTABLE:
        with pytest.raises(ConfigError, match="its own interventions or none"):
            simulate(world=name, interventions=True)


# ── no direction follows from a habit ───────────────────────────────────────────────────────────────────────


def explained(x_m, y_m, n_bins=15):
    """Share of the variance of y that the mean in each bin of x explains."""
    bin_m = x_m.argsort().argsort() * n_bins // len(x_m)
    total_k, n_k = torch.zeros(2, n_bins).double()
    total_k.scatter_add_(0, bin_m, y_m)
    n_k.scatter_add_(0, bin_m, torch.ones_like(y_m))
    return ((total_k / n_k - y_m.mean()).square() * n_k).sum() / (y_m - y_m.mean()).square().sum()


HABITS = {
    "fewer distinct values": lambda cause, effect: (len(cause.unique()), len(effect.unique())),
    "smaller skewness": lambda cause, effect: ((cause**3).mean().abs(), (effect**3).mean().abs()),
    "smaller kurtosis": lambda cause, effect: ((cause**4).mean(), (effect**4).mean()),
    "smaller variance explained": lambda cause, effect: (explained(effect, cause), explained(cause, effect)),
}


def pairs_of(name, n_tables):
    """Linked pairs of a world: causes and effects."""
    tables = sample_tables(generator(1), of_world(name), n_tables=n_tables, n_variables=2, n_samples=300)
    linked = tables.dag_bdd.flatten(1).any(1)
    assert 0.05 < (~linked).float().mean() < 0.25
    causes = tables.dag_bdd.sum(2).argmax(1)
    return [(x_md[:, i], x_md[:, 1 - i]) for x_md, i in zip(tables.x_bmd[linked].double(), causes[linked], strict=True)]


def share_right(pairs, habit):
    """Share of pairs whose direction a habit would guess; it tosses a coin where it cannot tell."""
    guesses = [HABITS[habit](*pair) for pair in pairs]
    return sum(float(a < b) + 0.5 * float(a == b) for a, b in guesses) / len(guesses)


@pytest.fixture(scope="module")
def even_pairs():
    """Pairs of the worlds in which no habit helps."""
    return {
        "as-found": pairs_of("as-found", 1500),
        "blended": pairs_of("blended", 800),
        "levels": pairs_of("levels", 800),
    }


def test_only_where_causes_were_chosen_have_they_fewer_levels():
    fewer = [float(len(cause.unique()) < len(effect.unique())) for cause, effect in pairs_of("designed", 300)]
    assert 0.75 < sum(fewer) / len(fewer) < 0.95


def test_what_is_recorded_is_bent_and_rounded_where_it_is_an_effect():
    """Causes come in few steps or as they are; they are as often coarse as effects, and seldom skewed."""
    pairs = pairs_of("recorded", 1000)
    skewed = [sum(float((pair[k] ** 3).mean().abs() > 1) for pair in pairs) / len(pairs) for k in (0, 1)]
    assert skewed[0] < 0.3 < 0.35 < skewed[1]
    levels = torch.tensor([[len(column.unique()) for column in pair] for pair in pairs])
    finely_rounded = ((levels > 80) & (levels < 250)).float().mean(0)  # of 300 samples
    assert finely_rounded[0] < 0.02 < 0.04 < finely_rounded[1]
    right = {habit: share_right(pairs, habit) for habit in HABITS}
    assert 0.57 < right["smaller skewness"] < 0.67
    assert 0.57 < right["smaller kurtosis"] < 0.69
    assert 0.4 < right["fewer distinct values"] < 0.6
    assert 0.4 < right["smaller variance explained"] < 0.6


@each(("name", "least", "most"), [("as-found", 0.68, 0.82), ("recorded", 0.48, 0.6)])
def test_each_effect_is_recorded_in_its_own_way(name, least, most):
    """Two effects of a table as found are often rounded both, or neither."""
    world = WORLDS[name](generator(), 200, 6, 600)
    rounded_be = torch.tensor([[len(x_m.unique()) < 250 for x_m in x_me.T] for x_me in world.x_bme])
    is_effect_be = world.adj_bee.any(1)
    i, j = torch.triu_indices(6, 6, 1)
    alike_bp, asked_bp = rounded_be[:, i] == rounded_be[:, j], is_effect_be[:, i] & is_effect_be[:, j]
    assert least < alike_bp[asked_bp].float().mean() < most


@each(("name", "least", "most"), [("as-found", 0.15, 0.35), ("designed", 0.15, 0.35), ("recorded", 0.0, 0.0)])
def test_noise_of_what_is_recorded_is_always_added(monkeypatch, name, least, most):
    blended, blend = [], found.blend
    monkeypatch.setattr(found, "blend", lambda rng, x_nm, e_nm: blended.append(len(x_nm)) or blend(rng, x_nm, e_nm))
    n_effects = WORLDS[name](generator(), 100, 5, 20).adj_bee.any(1).sum()
    assert least <= sum(blended) / n_effects <= most


@each(("chosen", "even"), [(0.75, 0.5), (1 / 3, 0.1), (1.0, 1.0)])
def test_so_many_columns_come_in_steps_and_so_many_of_these_evenly(chosen, even):
    x_nm = torch.randn(1500, 400, generator=generator(1))
    y_nm = choose_levels(generator(), x_nm, chosen, even)
    steps_n = (y_nm != x_nm).any(1)
    assert abs(steps_n.float().mean() - chosen) < 0.04
    r_n = (x_nm * y_nm)[steps_n].mean(1)
    assert abs((r_n < 0.4).float().mean() - even) < 0.06  # these are drawn anew, others are rounded


def test_flows_join_part_or_do_both():
    adj_bdd = WORLDS["flows"](generator(), 200, 12, 20).adj_bee[:, :12, :12]
    joins_b, parts_b = adj_bdd.sum(2).amax(1) == 1, adj_bdd.sum(1).amax(1) == 1
    assert 0.4 < joins_b.float().mean() < 0.7
    assert 0.2 < (parts_b & ~joins_b).float().mean() < 0.35
    assert (~parts_b & ~joins_b).any()
    assert adj_bdd.sum((1, 2)).float().mean() > 7


@each("habit", HABITS)
@each("name", ["as-found", "blended", "levels"])
def test_the_looks_of_a_pair_do_not_tell_its_direction(even_pairs, name, habit):
    assert 0.4 < share_right(even_pairs[name], habit) < 0.6


def test_blended_effects_follow_their_causes_closely_or_hardly(even_pairs):
    explained_n = torch.tensor([explained(cause, effect) for cause, effect in even_pairs["blended"]])
    assert explained_n.quantile(0.1) < 0.3 < 0.85 < explained_n.quantile(0.9)


def test_half_of_the_blended_tables_are_measured_with_a_small_error():
    """All variables are held: what is left is the error, the same for all columns of a table."""
    error_be = WORLDS["blended"](generator(), 200, 3, 400, hold_all(200, 3, torch.zeros(400))).x_bme.std(1)
    exact_b = (error_be == 0).all(1)
    assert 0.4 < exact_b.float().mean() < 0.6
    assert 0.1 < error_be.max() < 0.17
    torch.testing.assert_close(error_be, error_be.mean(1, keepdim=True).expand(-1, 3), rtol=0.2, atol=0)


@each("function", [blend, blend_rising])
def test_a_blend_follows_each_argument_as_far_as_it_reaches(function):
    x_nm, e_nm, other_nm = torch.randn(3, 40, 300, generator=generator(1))

    def change(reach):
        reach_n2 = torch.tensor([reach]).expand(40, 2)
        y_nm, z_nm = (function(generator(), x_nm, noise_nm, reach_n2) for noise_nm in (e_nm, other_nm))
        return (y_nm - z_nm).square().mean()

    assert change((1.0, 0.0)) == 0
    assert change((1.0, 0.1)) < 0.2 < change((1.0, 1.0)) < change((0.1, 1.0))


def test_waves_turn_and_rising_blends_never_do():
    x_nm = torch.linspace(-2, 2, 100).expand(200, 100)
    e_nm = torch.randn(200, 1, generator=generator(1)).expand(200, 100)
    waves, rising = (function(generator(), x_nm, e_nm, torch.ones(200, 2)) for function in (blend, blend_rising))
    assert (rising.diff(dim=1) >= 0).all()
    assert (waves.diff(dim=1).sign().diff(dim=1) != 0).any(1).float().mean() > 0.8


@each("preset", ["broad", "textbook"])
def test_the_order_of_r2_does_not_tell_directions_in_linear_worlds(rng, preset):
    config = SimulationConfig.preset(preset).narrow(mechanism="linear")
    tables = sample_tables(
        rng, dataclasses.replace(config, hidden=0.0, missing=0.0), n_tables=120, n_variables=10, n_samples=300
    )
    right = []
    for x_md, dag_dd in zip(tables.x_bmd.double(), tables.dag_bdd, strict=True):
        precision = torch.linalg.inv(torch.corrcoef(x_md.T) + 1e-6 * torch.eye(10))
        r2_d = 1 - 1 / precision.diagonal()
        i, j = dag_dd.nonzero().T
        right.append(r2_d[i] < r2_d[j])
    assert 0.4 < torch.cat(right).float().mean() < 0.6


def test_columns_as_found_have_humps_grids_and_skew():
    kind_n, size_n = torch.rand(2, 600, generator=generator(1))
    x_nm = found_marginal(generator(), kind_n, size_n, 400)
    assert (x_nm.mean(1).abs() < 1e-3).all()
    distinct = torch.tensor([len(row.unique()) for row in x_nm])
    assert 0.05 < (distinct < 60).float().mean() < 0.3  # counts
    skewness = (x_nm**3).mean(1)
    assert (skewness > 1).float().mean() > 0.15
    assert (skewness < -1).float().mean() > 0.03
    looks = torch.tensor(
        [len(row.unique()) for row in found_looks(generator(), kind_n[:, None], size_n[:, None], torch.randn(600, 400))]
    )
    assert 0.25 < (looks < 200).float().mean() < 0.55


def test_collinear_columns_nearly_determine_one_another():
    tables = sample_tables(generator(), of_world("collinear"), n_tables=40, n_variables=10, n_samples=300)
    r_bdd = tables.x_bmd.mT @ tables.x_bmd / 300 + 1e-6 * torch.eye(10)
    r2_bd = 1 - 1 / torch.linalg.inv(r_bdd.double()).diagonal(dim1=1, dim2=2)
    assert r2_bd.median() > 0.95


def test_broad_has_every_world_and_leaves_room_for_mechanisms():
    broad = SimulationConfig.broad()
    assert set(broad.worlds) == {*WORLDS, "textbook"} - {"levels"}  # which came after the weights that ship
    assert set(broad.small_worlds) < set(broad.worlds)
    assert 0.6 < sum(broad.worlds.values()) < sum(broad.small_worlds.values()) < 0.9


def test_worlds_are_shares_of_all_tables():
    with pytest.raises(ConfigError, match=r"sum to 1\.2"):
        SimulationConfig(worlds={"single-cell": 0.6, "monitoring": 0.6})
    with pytest.raises(ConfigError, match="world='cells' is unknown"):
        SimulationConfig(worlds={"cells": 0.6})
    with pytest.raises(ConfigError, match="leave out hidden"):
        simulate(world="gene-dynamics", hidden=True)
    config = SimulationConfig(worlds={"questionnaire": 0.3})
    tables = sample_tables(generator(), config, n_tables=400, n_variables=6, n_samples=80)
    few_b = torch.tensor([max(len(x_md[:, j].unique()) for j in range(6)) <= 7 for x_md in tables.x_bmd])
    assert 0.2 < few_b.float().mean() < 0.4
    assert SimulationConfig.from_dict(config.to_dict()) == config
    assert not PRESETS["paper"].worlds
