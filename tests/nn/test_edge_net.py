"""Laws of the whole network, for two designs in toy size (which brings both heads)."""

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from cases import each
from graphbam.errors import ConfigError
from graphbam.nn import cpu, spd
from graphbam.nn.edge_net import ABLATIONS, CLASSES, DESIGNS, EdgeNet, EdgeNetConfig, standardise, table_features
from graphbam.nn.layers import AxialAttention, Dense
from graphbam.nn.weights import load_weights

STORED = Path(__file__).parents[1] / "data" / "tiny.safetensors"


@pytest.fixture(params=["default", "paper"])
def design(request):
    return request.param


@pytest.fixture
def net(tiny_net, rng, design):
    return tiny_net(rng, design)


def tables(rng, *shape, dtype=torch.float64):
    """Tables (..., M, D) whose columns depend on each other, one of them not Gaussian."""
    x = torch.randn(*shape, generator=rng, dtype=torch.float64)
    x = x @ torch.randn(shape[-1], shape[-1], generator=rng, dtype=torch.float64)
    return torch.cat([x[..., :1].square(), x[..., 1:]], -1).to(dtype)


def wave_table(m, d):
    """A table by formula: the same on every machine and in every version of every library."""
    cell = torch.arange(m * d, dtype=torch.float64).view(m, d)
    return (cell * 1.7 + 0.3 * cell.sqrt()).sin() + 0.5 * (cell / d).floor().cos()


# ── symmetries ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_reordering_variables_reorders_the_answer(rng, net):
    x, p = tables(rng, 2, 9, 5), torch.randperm(5, generator=rng)
    out = net(x)
    assert_close(net(x[..., p]), out[:, p][:, :, p])
    assert (out[:, 0, 1] - out[:, 0, 2]).abs().max() > 1e-3  # the answer does depend on the pair


def test_reordering_samples_changes_nothing(rng, net):
    x = tables(rng, 2, 9, 5)
    assert_close(net(x[:, torch.randperm(9, generator=rng)]), net(x))


def test_logits_are_symmetric_and_probabilities_sum_to_one(rng, net):
    out = net(tables(rng, 2, 9, 5))
    assert out.shape == (2, 5, 5, len(CLASSES))
    assert torch.equal(out, out.transpose(1, 2))
    assert_close(out.softmax(-1).sum(-1), torch.ones(2, 5, 5, dtype=torch.float64))


def test_units_and_origins_of_columns_do_not_matter(rng, net):
    x = tables(rng, 2, 9, 5)
    scale = torch.tensor([1e-9, 0.3, 1.0, 40.0, 1e9], dtype=torch.float64)
    shift = torch.tensor([1e-8, -3.0, 0.0, 1e3, 1e9], dtype=torch.float64)
    assert_close(net(x * scale + shift), net(x), rtol=1e-6, atol=1e-6)


def test_the_sign_of_a_column_may_matter_but_the_data_surely_do(rng, net):
    assert (net(tables(rng, 9, 4)) - net(tables(rng, 9, 4))).abs().max() > 1e-3


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_leading_dimensions_are_free(rng, net):
    for lead in [(), (1,), (2, 3)]:
        assert net(tables(rng, *lead, 6, 3)).shape == (*lead, 3, 3, 3)


def test_batched_equals_one_by_one(rng, net):
    x = tables(rng, 2, 3, 7, 4)
    one_by_one = torch.stack([net(table) for table in x.flatten(0, 1)]).view(2, 3, 4, 4, 3)
    assert_close(net(x), one_by_one)


@each("dtype", [torch.float32, torch.float64])
def test_smallest_tables_work(rng, tiny_net, design, dtype):
    net = tiny_net(rng, design, dtype=dtype)
    for m, d in [(2, 2), (2, 9), (40, 2)]:
        net.zero_grad()
        out = net(tables(rng, 2, m, d, dtype=dtype))
        out.square().sum().backward()
        assert out.dtype == dtype
        assert torch.isfinite(out).all()
        assert all(torch.isfinite(p.grad).all() for p in net.parameters())


def test_what_the_head_knows_of_the_size_is_bounded():
    for m, d in [(10, 3), (10**7, 10**6)]:
        assert table_features(torch.tensor(float(m)), d).abs().max() <= 1


def test_the_head_tells_large_tables_from_small_ones(rng, net):
    x = tables(rng, 6, 3)
    assert (net(x) - net(x.repeat(8, 1))).abs().max() > 1e-4  # the same correlations on eight times the evidence


@torch.no_grad()
def test_a_table_whose_rows_come_three_times_says_in_pieces_what_it_says_once(rng, net):
    """Stretches are every n-th row, and no more rows count than see each other; the ridge weighs M − 1 rows of M."""
    x = tables(rng, 2, 40, 5)
    often = x.repeat_interleave(3, dim=-2)
    once = net(x)
    near = {"rtol": 0, "atol": 1e-5}
    assert_close(net(often, piece=40), once, **near)
    assert_close(net(often, rows=[120.0, 120.0], piece=40), once, **near)
    assert_close(net(often, rows=[30.0, 30.0], piece=40), net(x, rows=[30.0, 30.0]), **near)
    assert not torch.allclose(net(often), once, **near)


@torch.no_grad()
def test_a_piece_as_long_as_the_table_changes_nothing(rng, net):
    x = tables(rng, 30, 4)
    assert_close(net(x, piece=30), net(x), rtol=0, atol=0)
    assert_close(net(x, piece=500), net(x), rtol=0, atol=0)


@torch.no_grad()
def test_relations_of_a_long_table_are_means_over_its_pieces(rng, net):
    """Rows see none of another piece: two tables laid into each other, row by row, are related as each alone."""
    one, other = tables(rng, 2, 1, 30, 4)
    both = torch.stack([one, other], 2).flatten(1, 2)
    found = net._relate_rows(both, both.dtype, None, 30)
    apart = zip(*(net._relate_rows(x, x.dtype, None, 30) for x in (one, other)), strict=True)
    for mean, parts in zip(found, apart, strict=True):
        assert_close(mean, torch.stack(parts).mean(0))


# ── samples that see each other in stretches ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def cut_net(tiny_net, rng):
    """At most six samples see each other."""
    return tiny_net(rng, sample_stretch=6)


def whole_net(cut_net):
    """The same weights, of a design in which all samples do."""
    net = EdgeNet(dataclasses.replace(cut_net.config, sample_stretch=0)).double()
    net.load_state_dict(cut_net.state_dict())
    return net


def test_a_table_no_longer_than_a_stretch_is_seen_as_a_whole(rng, cut_net):
    for m in (2, 5, 6):
        x = tables(rng, 2, m, 4)
        assert torch.equal(cut_net(x), whole_net(cut_net)(x))
    x = tables(rng, 2, 7, 4)
    assert (cut_net(x) - whole_net(cut_net)(x)).abs().max() > 1e-4


def test_tables_laid_into_each_other_are_observed_as_each_alone(rng, cut_net):
    x = tables(rng, 3, 6, 4)
    both = x.transpose(0, 1).reshape(1, 18, 4)  # a row of the first, of the second, of the third, of the first …
    h_bmdc = cut_net._observe(both, both.dtype, None)
    for k, table in enumerate(x):
        assert_close(h_bmdc[:, k::3], whole_net(cut_net)._observe(table[None], table.dtype, None))


@each("m", [18, 17])
def test_a_row_is_observed_in_its_own_stretch_but_counts_in_the_answer(rng, cut_net, m):
    x = tables(rng, 1, m, 4)
    changed = x.clone()
    changed[0, 4] = tables(rng, 4)
    moved = (cut_net._observe(changed, x.dtype, None) - cut_net._observe(x, x.dtype, None)).abs().amax((0, 2, 3)) > 1e-9
    assert moved.nonzero().flatten().tolist() == list(range(1, m, 3))
    assert (cut_net(changed) - cut_net(x)).abs().max() > 1e-4


@each("m", [18, 17])
def test_relations_are_over_all_rows_however_samples_are_cut(rng, cut_net, m):
    x = tables(rng, 1, m, 4)
    h_bmdc = cut_net._observe(x, x.dtype, None)
    assert_close(cut_net._relate_rows(x, x.dtype, None, m)[0], cut_net.correlation(h_bmdc))


@each("m", [18, 17])
def test_columns_have_no_order_where_samples_are_cut(rng, cut_net, m):
    x, p = tables(rng, 2, m, 5), torch.randperm(5, generator=rng)
    assert_close(cut_net(x[..., p]), cut_net(x)[:, p][:, :, p])


def test_rows_have_no_order_within_a_stretch_nor_have_stretches(rng, cut_net):
    x = tables(rng, 2, 18, 5)
    places = torch.arange(18).view(6, 3)  # a column is a stretch
    within = torch.stack([column[torch.randperm(6, generator=rng)] for column in places.T], 1)
    among = places[:, torch.tensor([2, 0, 1])]
    for order in (within, among):
        assert_close(cut_net(x[:, order.flatten()]), cut_net(x))
    assert (cut_net(x[:, places.T.flatten()]) - cut_net(x)).abs().max() > 1e-4  # between stretches they have one


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rows_are_those_of_the_table_unless_another_number_is_given(rng, net):
    x = tables(rng, 2, 9, 5)
    assert_close(net(x, torch.tensor([9.0, 9.0])), net(x))
    fewer = net(x, torch.tensor([9.0, 4.0]))
    assert_close(fewer[0], net(x)[0])
    assert (fewer[1] - net(x)[1]).abs().max() > 1e-4


# ── odd columns ──────────────────────────────────────────────────────────────────────────────────────────────────

ODD = {
    "constant": lambda x: torch.full_like(x, 0.1),
    "zero": torch.zeros_like,
    "two values": lambda x: (x > 0).to(x.dtype),
    "one outlier": lambda x: torch.zeros_like(x).index_fill(-2, torch.tensor([3]), 1.0),
    "huge": lambda x: x * 1e30,
    "tiny": lambda x: x * 1e-30,
    "far from zero": lambda x: x + 1e6,
    "Cauchy": lambda x: (x.clamp(-3, 3) * math.pi / 6.0001).tan() * 1e3,
}


def test_odd_columns_give_finite_answers_and_gradients(rng, tiny_net, design):
    net = tiny_net(rng, design, dtype=torch.float32)
    for name, make in ODD.items():
        net.zero_grad()
        x = torch.randn(3, 12, 5, generator=rng)
        x[0, :, 1:2] = make(x[0, :, 1:2])  # one such column, several, nothing else
        x[1, :, 2:] = make(x[1, :, 2:])
        x[2] = make(x[2])
        out = net(x)
        out.square().sum().backward()
        assert torch.isfinite(out).all(), name
        assert all(torch.isfinite(p.grad).all() for p in net.parameters()), name


@each("m", [3, 12])
def test_duplicated_columns_give_finite_and_equal_answers(rng, tiny_net, design, m):
    net = tiny_net(rng, design, dtype=torch.float32)
    x = torch.randn(m, 3, generator=rng).repeat(1, 3)
    out = net(x)
    out.square().sum().backward()
    assert torch.isfinite(out).all()
    assert all(torch.isfinite(p.grad).all() for p in net.parameters())
    slack = 0.05 if net.config.sharp_correlations else 1e-3  # copies tie in an order, which breaks ties by position
    assert_close(out[0, 1], out[3, 7], rtol=slack, atol=slack)  # twins of 0 and 1


def test_a_constant_column_is_a_column_of_zeros(rng, tiny_net):
    """In floating point the mean of 0.1, 0.1, … is not 0.1: what is left must not be taken for data."""
    x = torch.randn(13, 4, generator=rng)
    net = tiny_net(rng, dtype=torch.float32)
    blank = x.clone()
    blank[:, 1] = 0
    for value in [0.1, 0.3, -7.7, 1e30, 1e-30]:
        x[:, 1] = value
        assert torch.equal(standardise(x[None])[..., 1], torch.zeros(1, 13)), value
        assert_close(net(x), net(blank))


def test_standardise_follows_its_formula(rng):
    x = 3 + 2 * torch.randn(2, 30, 4, generator=rng, dtype=torch.float64)
    expected = ((x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True, correction=0)).clamp(-5, 5)
    assert_close(standardise(x), expected)
    x[0, 0, 0] = 1e6
    assert standardise(x)[0, 0, 0] == 5


# ── gradients ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_gradients_are_those_of_finite_differences(tiny_net, design):
    rng = torch.Generator().manual_seed(0)
    net = tiny_net(rng, design)
    x = tables(rng, 1, 5, 3).requires_grad_()
    chosen = [p for name, p in net.named_parameters() if name.endswith(("key.weight", "scale", "qkv", "read.weight"))]
    assert gradcheck(lambda x0, *_: net(x0), (x, *chosen[:4]), atol=1e-6)


def test_every_parameter_is_used(rng, net):
    net(tables(rng, 2, 9, 5)).square().sum().backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []


# ── what was true yesterday ──────────────────────────────────────────────────────────────────────────────────────

PREDICTIONS = {
    "default": [[0.61499132, -0.13785403, 0.5353991], [0.70033367, -1.10841783, 0.40307179]],
    "paper": [[0.00782876, -0.0397228, 0.11342262], [0.00845295, -0.04500217, 0.10523051]],
}


def test_the_logarithm_of_deep_stacks_sees_no_eigenvalue_near_zero(monkeypatch):
    """Blocks that only shrink: a ridge before the logarithm, as the paper's design has it, bounds its slope."""
    seen = []
    logm = spd.logm
    monkeypatch.setattr(spd, "logm", lambda s: seen.append(torch.linalg.eigvalsh(s).min().item()) or logm(s))
    for ridge in (0.0, 1e-3):
        net = EdgeNet(EdgeNetConfig.paper(channels=5, spd_channels=5, bilinear_layers=10, ridge=1e-6, log_ridge=ridge))
        for block in net.bilinear:
            block.attention.scale.data.fill_(5.0)
        net.double()(tables(torch.Generator().manual_seed(0), 1, 4, 12))
    assert seen[0] < 1e-4 < 9e-4 < seen[1]


def test_a_prediction_stays_put(tiny_net, design):
    net = tiny_net(torch.Generator().manual_seed(7), design)
    out = net(wave_table(8, 4))
    found = torch.stack([out[0, 1], out[2, 3]])
    assert_close(found, torch.tensor(PREDICTIONS[design], dtype=torch.float64), rtol=0, atol=1e-6)


def test_a_stored_network_answers_as_it_did():
    loaded = load_weights(STORED)
    stored = torch.tensor(loaded.header.notes["prediction"], dtype=torch.float64)
    out = loaded.network.double()(wave_table(8, 4))
    assert_close(out, stored, rtol=0, atol=1e-6)
    assert stored.std() > 0.1


# ── compilation ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "kinds"), [("default", 11), pytest.param("paper", 8, marks=pytest.mark.long)])
def test_compiled_and_eager_agree_with_one_compilation_a_kind_of_block(check_compiled, tiny_net, name, kinds):
    """Shapes stay free: a second and a third shape, and a second block of a kind, compile nothing more."""
    rng = torch.Generator().manual_seed(0)
    eager = tiny_net(rng, name, bilinear_layers=2)
    shapes = [(8, 11, 9), (9, 13, 10), (10, 14, 8)]  # no size equal to a width, which would be taken for one
    check_compiled(eager, ((tables(rng, *shape),) for shape in shapes), kinds)


def test_stretches_of_equal_length_compile_nothing_more(check_compiled, tiny_net):
    """Nor does a table that is not cut: the first one was, as in training."""
    rng = torch.Generator().manual_seed(0)
    eager = tiny_net(rng, bilinear_layers=2, sample_stretch=14)
    shapes = [(8, 26, 9), (9, 11, 10), (10, 42, 8)]  # two stretches, one, three
    check_compiled(eager, ((tables(rng, *shape),) for shape in shapes), 11)


# ── configs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_row_of_the_ablation_builds_and_runs(rng, tiny_net):
    for row, changes in ABLATIONS.items():
        net = tiny_net(rng, "ablation", **changes)
        out = net(tables(rng, 2, 9, 5))
        out.square().sum().backward()
        assert torch.isfinite(out).all(), row
        attention = sum(isinstance(layer, AxialAttention) for layer in net.observation)
        dense = sum(isinstance(layer, Dense) for layer in net.observation)
        assert (attention == 0) == ("no observational attention" in row), row
        assert (dense == 0) == ("no dense" in row), row
        assert (len(net.bilinear) == 0) == ("no bilinear" in row), row
        assert net.head.matrix_log == ("no log" not in row), row


def test_designs_have_the_papers_sizes():
    paper, ablation = EdgeNetConfig.paper(), EdgeNetConfig.ablation()
    assert (paper.channels, paper.heads, paper.spd_channels, paper.pair_layers) == (100, 5, 100, 0)
    layers = ("attribute_layers", "sample_layers", "dense_layers", "bilinear_layers")
    assert [getattr(paper, name) for name in layers] == [10, 10, 10, 10]
    assert [getattr(ablation, name) for name in layers] == [2, 2, 2, 4]
    assert EdgeNetConfig().channels // EdgeNetConfig().heads == 32  # what tensor cores like
    assert [design().sample_stretch for design in DESIGNS.values()] == [0, 0, 0]  # all samples see each other


def test_the_design_with_every_answer_is_the_default_with_more():
    changes = {"marks": True, "answers": True, "pair_layers": 20, "sample_layers": 4, "sample_stretch": 120}
    assert EdgeNetConfig.every_answer() == EdgeNetConfig(**changes)
    plain = EdgeNetConfig.every_answer(sample_stretch=0, sample_layers=5, pair_layers=8)
    assert plain == EdgeNetConfig(marks=True, answers=True)


def test_impossible_sizes_are_refused():
    for changes, words in [
        ({"channels": 7, "heads": 2}, "heads=2 does not divide channels=7; try channels=6"),
        ({"spd_channels": 10, "spd_heads": 4}, "spd_heads=4 does not divide spd_channels=10"),
        ({"channels": 0}, "channels=0"),
        ({"heads": -1}, "heads=-1"),
        ({"attribute_layers": -1}, "attribute_layers=-1"),
        ({"bilinear_layers": -2}, "bilinear_layers=-2"),
        ({"pair_layers": -1}, "pair_layers=-1"),
        ({"sample_stretch": -1}, "sample_stretch=-1"),
        ({"ridge": -0.1}, "ridge=-0.1"),
    ]:
        with pytest.raises(ConfigError, match=words):
            EdgeNetConfig(**changes)


def test_config_round_trip_and_unknown_fields():
    config = EdgeNetConfig(channels=10, heads=5)
    assert EdgeNetConfig.from_dict(dataclasses.asdict(config)) == config
    with pytest.raises(ConfigError, match="no field colour, depth"):
        EdgeNetConfig.from_dict({"depth": 3, "channels": 4, "colour": "red"})


def test_networks_of_older_files_have_no_stretches():
    older = EdgeNetConfig(channels=10, heads=5).to_dict()
    del older["sample_stretch"]
    assert EdgeNetConfig.from_dict(older).sample_stretch == 0
    assert load_weights(STORED).network.config.sample_stretch == 0


def test_configs_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        EdgeNetConfig().channels = 3


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────


def allocations(net, x):
    """Sizes in bytes of everything a forward pass allocates, kernels' workspaces included."""
    kinds = torch._C._profiler._EventType
    with torch.profiler.profile(profile_memory=True) as profile:
        net(x)
    sizes, events = [], list(profile.profiler.kineto_results.experimental_event_tree())
    while events:
        event = events.pop()
        events += event.children
        if event.tag == kinds.Allocation:
            sizes.append(event.extra_fields.alloc_size)
    return sizes


@each("name", ["default", "paper"])
@each("gradients", [True, False])
def test_memory_grows_with_samples_times_variables(tiny_net, monkeypatch, name, gradients):
    monkeypatch.setattr(cpu, "SCORES_IN_BLOCK", 2**19)
    net = tiny_net(torch.Generator().manual_seed(0), name, dtype=torch.float32)
    for m, d in [(2000, 20), (200, 120)]:
        with torch.set_grad_enabled(gradients):
            sizes = allocations(net, torch.randn(1, m, d))
        cells = 4 * (3 if gradients else 1) * 6 * m * d  # float32, C = 6 channels, three readings of them or in blocks
        pairs = 4 * 80 * d * d  # fifteen features of four channels a pair, and twenty of the table
        limit = max(cells, pairs, 0 if gradients else 4 * cpu.SCORES_IN_BLOCK) + 4096
        assert cells <= max(sizes) <= limit
        assert limit < max(4 * m * m, 4 * m * d * d) / 2  # attention scores of one head would be noticed
