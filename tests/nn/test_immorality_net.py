"""Laws of the collider network, for both designs in toy size, and of the structures it looks at."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.testing import assert_close

from cases import each, quick_and_long
from graphbam.errors import ConfigError, WeightsError
from graphbam.nn import weights
from graphbam.nn.edge_net import EdgeNet, EdgeNetConfig
from graphbam.nn.immorality_net import DESIGNS, CandidatePool, ImmoralityNet, ImmoralityNetConfig, presence
from graphbam.nn.structures import (
    ABSENT,
    CANDIDATE,
    NEIGHBOUR,
    PARENT,
    Structures,
    find_structures,
    gather_columns,
)
from graphbam.nn.weights import Calibration, Header, load_colliders, load_network, load_weights, save_weights
from standins import TINY, TINY_HEAD, randomise

ROLES = [1, 1, 2, 2, 2, 3, 3]


def make_net(rng, design="collider", *, dtype=torch.float64, **changes):
    """A toy network whose every weight matters."""
    sizes = TINY | (TINY_HEAD if design == "collider" else {})
    return randomise(ImmoralityNet(DESIGNS[design](**(sizes | changes))).to(dtype), rng)


@pytest.fixture(params=["collider", "collider-paper"])
def design(request):
    return request.param


@pytest.fixture
def net(rng, design):
    return make_net(rng, design)


def structures(rng, b=2, m=9, roles=ROLES, dtype=torch.float64):
    """Dependent columns, one of them not Gaussian, with roles."""
    x = torch.randn(b, m, len(roles), generator=rng, dtype=torch.float64)
    x = x @ torch.randn(len(roles), len(roles), generator=rng, dtype=torch.float64)
    x = torch.cat([x[..., :1].square(), x[..., 1:]], -1).to(dtype)
    return x, torch.tensor(roles).repeat(b, 1)


# ── symmetries ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_any_order_of_columns_reorders_the_answer(rng, net):
    """Parents among themselves, candidates, neighbours, and all of them mixed."""
    x, roles = structures(rng)
    out = net(x, roles)
    for order in ([1, 0, 2, 3, 4, 5, 6], [0, 1, 4, 2, 3, 5, 6], [0, 1, 2, 3, 4, 6, 5], [5, 2, 0, 6, 4, 1, 3]):
        assert_close(net(x[..., order], roles[:, order]), out[:, order])
    assert (out[:, 2] - out[:, 3]).abs().min() > 1e-6  # the answer does depend on the candidate


def test_the_order_of_samples_does_not_matter(rng, net):
    x, roles = structures(rng)
    assert_close(net(x[:, torch.randperm(9, generator=rng)], roles), net(x, roles))


def test_units_and_origins_of_columns_do_not_matter(rng, net):
    x, roles = structures(rng)
    scale = torch.tensor([1e-9, 0.3, 1.0, 40.0, 1e9, 1.0, 2.0], dtype=torch.float64)
    shift = torch.tensor([1e-8, -3.0, 0.0, 1e3, 1e9, 0.0, 7.0], dtype=torch.float64)
    assert_close(net(x * scale + shift, roles), net(x, roles), rtol=1e-6, atol=1e-6)


def test_roles_matter(rng, net):
    x, roles = structures(rng)
    other = roles.clone()
    other[:, [0, 2]] = torch.tensor([CANDIDATE, PARENT])
    assert (net(x, roles)[:, 3] - net(x, other)[:, 3]).abs().max() > 1e-6


def test_everyone_else_matters(rng, net):
    x, roles = structures(rng)
    for column in (0, 3, 6):
        changed = x.clone()
        changed[..., column] = torch.randn(2, 9, generator=rng, dtype=torch.float64)
        assert (net(changed, roles)[:, 2] - net(x, roles)[:, 2]).abs().max() > 1e-7


# ── absent variables ─────────────────────────────────────────────────────────────────────────────────────────────


def test_absent_columns_have_no_influence(rng, net):
    x, roles = structures(rng)
    more = torch.cat([roles[:, :4], torch.full((2, 3), ABSENT), roles[:, 4:]], -1)
    for value in [0.0, 3.0, float("nan"), float("inf")]:
        padded = torch.cat([x[..., :4], torch.full((2, 9, 3), value, dtype=x.dtype), x[..., 4:]], -1)
        out = net(padded, more)
        assert_close(out[:, [0, 1, 2, 3, 7, 8, 9]], net(x, roles))
        assert out[:, 4:7].eq(0).all()


def test_a_batch_of_different_sizes_equals_one_by_one(rng, net):
    sizes = [[1, 1, 2], [1, 1, 2, 2, 3], ROLES]
    singles = [structures(rng, 1, 9, roles) for roles in sizes]
    x = torch.cat([nn.functional.pad(x, (0, 7 - x.shape[-1])) for x, _ in singles])
    roles = torch.cat([nn.functional.pad(r, (0, 7 - r.shape[-1])) for _, r in singles])
    out = net(x, roles)
    for row, (one, role) in zip(out, singles, strict=True):
        assert_close(row[: one.shape[-1]], net(one, role)[0])


def test_gradients_do_not_see_absent_columns(rng, net):
    x, roles = structures(rng)
    padded, more = nn.functional.pad(x, (0, 4), value=2.0), nn.functional.pad(roles, (0, 4))
    slopes = [
        torch.autograd.grad(net(*inputs).square().sum(), list(net.parameters()))
        for inputs in ((x, roles), (padded, more))
    ]
    for one, two in zip(*slopes, strict=True):
        assert_close(one, two)


def test_matrices_stay_definite_and_absent_rows_stay_the_identity(rng, net):
    x, roles = structures(rng)
    padded, more = nn.functional.pad(x, (0, 2)), nn.functional.pad(roles, (0, 2))
    seen = []
    for block in net.bilinear:
        block.register_forward_hook(lambda _, inputs, s: seen.extend([inputs[0], s]))
    net(padded, more)
    for s in seen:
        assert_close(s, s.mT)
        assert torch.linalg.eigvalsh(s).min() > 0
        assert_close(s[..., 7:, :], torch.eye(9, dtype=s.dtype)[7:].expand(2, 4, 2, 9))


def test_presence_counts_who_is_there():
    who = presence(torch.tensor([[1, 1, 2, 0]]), torch.zeros(()))
    assert who.count_b111.item() == 3
    assert who.roles_bd3[0, 3].tolist() == [0, 0, 0]
    assert who.apart_b1dd[0, 0].tolist() == [[False] * 3 + [True]] * 3 + [[True] * 3 + [False]]


# ── shapes and odd columns ───────────────────────────────────────────────────────────────────────────────────────


@each("dtype", [torch.float32, torch.float64])
def test_smallest_structures_work(rng, design, dtype):
    net = make_net(rng, design, dtype=dtype)
    for m in (2, 3, 40):
        net.zero_grad()
        out = net(*structures(rng, 2, m, [1, 1, 2], dtype))
        out.square().sum().backward()
        assert out.shape == (2, 3)
        assert out.dtype == dtype
        assert torch.isfinite(out).all()
        assert all(torch.isfinite(p.grad).all() for p in net.parameters())


def test_odd_columns_give_finite_answers_and_gradients(rng, design):
    net = make_net(rng, design, dtype=torch.float32)
    for odd in (torch.zeros_like, lambda x: torch.full_like(x, 0.1), lambda x: x * 1e30):
        net.zero_grad()
        x, roles = structures(rng, 3, 12, dtype=torch.float32)
        x[0, :, 2:3] = odd(x[0, :, 2:3])
        x[1, :, :2] = odd(x[1, :, :2])
        x[2] = odd(x[2])
        out = net(x, roles)
        out.square().sum().backward()
        assert torch.isfinite(out).all()
        assert all(torch.isfinite(p.grad).all() for p in net.parameters())


def test_duplicated_columns_are_survived(rng, design):
    net = make_net(rng, design, dtype=torch.float32)
    x, roles = structures(rng, 2, 12, dtype=torch.float32)
    x[..., 3:] = x[..., :1]
    out = net(x, roles)
    out.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in net.parameters())
    assert_close(out[:, 3], out[:, 4], rtol=1e-3, atol=1e-3)


def test_only_candidates_get_a_logit(rng, net):
    out = net(*structures(rng))
    assert out[:, [0, 1, 5, 6]].eq(0).all()
    assert out[:, 2:5].ne(0).all()


def test_the_default_head_tells_much_evidence_from_little(rng):
    x, roles = structures(rng)
    net = make_net(rng)
    assert (net(x, roles) - net(x.repeat(1, 8, 1), roles)).abs().max() > 1e-4


def test_a_candidate_is_judged_by_its_pairs_with_parents_and_all_and_by_the_parents_pair(rng):
    pool = randomise(CandidatePool(5).double(), rng)
    z = torch.randn(4, 4, 5, generator=rng, dtype=torch.float64)
    roles = torch.eye(3, dtype=torch.float64)[[0, 0, 1, 2]]  # parents 0 and 1, candidate 2, neighbour 3
    to, back = (z[2, 0] + z[2, 1]) / 2, (z[0, 2] + z[1, 2]) / 2
    parts = [to, back, z[2, 2], z[2].mean(0), (z[0, 1] + z[1, 0]) / 2]
    assert_close(pool(z[None], roles[None])[0, 2], pool.logit(pool.hidden(torch.cat(parts)).relu())[0])


# ── gradients, compilation, configs ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("design", quick_and_long(["collider"], ["collider-paper"]))
def test_gradients_are_those_of_finite_differences(design):
    rng = torch.Generator().manual_seed(0)
    net = make_net(rng, design)
    x, roles = structures(rng, 1, 5, [1, 1, 2, 0, 3])
    names = ("key.weight", "scale", "qkv", "rise.weight")
    chosen = [p for name, p in net.named_parameters() if name.endswith(names)]
    assert gradcheck(lambda x0, *_: net(x0, roles), (x.requires_grad_(), *chosen[:4]), atol=1e-6)


def test_every_parameter_is_used(rng, net):
    net(*structures(rng)).square().sum().backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []


@pytest.mark.long  # what is quick is tried with edges
@pytest.mark.parametrize(("name", "kinds"), [("collider", 10), ("collider-paper", 6)])
def test_compiled_and_eager_agree_with_one_compilation_a_kind_of_block(check_compiled, name, kinds):
    rng = torch.Generator().manual_seed(0)
    eager = make_net(rng, name)
    shapes = [(8, 11, 9), (9, 13, 10), (10, 14, 8)]
    inputs = (structures(rng, b, m, (ROLES + [ABSENT] * 3)[:width]) for b, m, width in shapes)
    check_compiled(eager, inputs, kinds)


def test_designs_have_their_sizes():
    paper, small = DESIGNS["collider-paper"](), DESIGNS["collider"]()
    assert (paper.channels, paper.heads, paper.spd_channels, paper.pair_layers) == (100, 5, 100, 0)
    wide = DESIGNS["collider-wide"]()
    assert (small.channels // small.heads, wide.channels // wide.heads) == (32, 32)  # what tensor cores like
    assert small.max_width == wide.max_width == 24
    counts = [sum(p.numel() for p in ImmoralityNet(config).parameters()) for config in (small, wide)]
    assert counts[0] < counts[1] < 400_000


def test_configs_round_trip_and_refuse_nonsense():
    config = ImmoralityNetConfig(max_candidates=4)
    assert ImmoralityNetConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ConfigError, match="max_candidates=0"):
        ImmoralityNetConfig(max_candidates=0)
    with pytest.raises(ConfigError, match="sample_stretch=150, but samples of a structure all see each other"):
        ImmoralityNetConfig(sample_stretch=150)
    with pytest.raises(ConfigError, match="no field colour"):
        ImmoralityNetConfig.from_dict({"colour": "red"})


# ── structures ───────────────────────────────────────────────────────────────────────────────────────────────────


def random_graph(rng, b=3, d=9, density=0.4):
    upper = (torch.rand(b, d, d, generator=rng) < density).triu(1)
    strength = torch.rand(b, d, d, generator=rng)
    return upper | upper.mT, (strength + strength.mT) / 2


def test_structures_are_what_the_definition_says(rng):
    """Against plain loops over pairs and variables."""
    skeleton, strength = random_graph(rng)
    pairs = (torch.rand(3, 9, 9, generator=rng) < 0.5).triu(1)
    found = find_structures(skeleton, pairs, strength, max_candidates=9, max_neighbours=9)
    seen = {}
    for table, columns, roles in zip(*(part.tolist() for part in found), strict=True):
        groups = {role: [c for c, r in zip(columns, roles, strict=True) if r == role] for role in (1, 2, 3)}
        seen[table, *groups[PARENT]] = (set(groups[CANDIDATE]), set(groups[NEIGHBOUR]))
    expected = {}
    for b, i, j in pairs.nonzero().tolist():
        one, two = ({k for k in range(9) if skeleton[b, v, k]} for v in (i, j))
        if one & two:
            expected[b, i, j] = (one & two, (one ^ two) - {i, j})
    assert seen == expected


def test_the_surest_stay_where_there_are_too_many(rng):
    skeleton, strength = random_graph(rng, density=0.8)
    pairs = torch.ones(3, 9, 9, dtype=torch.bool)
    whole = find_structures(skeleton, pairs, strength, max_candidates=9, max_neighbours=9)
    few = find_structures(skeleton, pairs, strength, max_candidates=2, max_neighbours=1)
    assert few.widths_s.max() <= 5
    for k in range(len(few.table_s)):
        table, (i, j) = few.table_s[k], few.columns_sw[k, :2]
        chance = strength[table, i] * strength[table, j]
        kept = few.columns_sw[k][few.roles_sw[k] == CANDIDATE]
        lost = set(whole.columns_sw[k][whole.roles_sw[k] == CANDIDATE].tolist()) - set(kept.tolist())
        assert all(chance[kept].min() >= chance[c] for c in lost)


def test_no_pairs_give_no_structures():
    none = torch.zeros(2, 5, 5, dtype=torch.bool)
    found = find_structures(none, none, none.float(), max_candidates=3, max_neighbours=3)
    assert len(found.table_s) == 0
    assert gather_columns(torch.zeros(2, 7, 5), found).shape == (0, 7, 8)


def test_columns_are_gathered_and_widths_cut(rng):
    x = torch.randn(2, 5, 4, generator=rng)
    made = Structures(torch.tensor([1, 0]), torch.tensor([[3, 0, 1], [1, 2, 0]]), torch.tensor([[1, 1, 2], [1, 1, 0]]))
    out = gather_columns(x, made.cut(5))
    assert_close(out[0, :, :3], x[1][:, [3, 0, 1]])
    assert_close(out[1, :, :2], x[0][:, [1, 2]])
    assert out[0, :, 3:].eq(0).all()
    assert out[1, :, 2:].eq(0).all()
    assert made.cut(5).cut(3).roles_sw.equal(made.roles_sw)
    assert made.pick(torch.tensor([1])).table_s.tolist() == [0]


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def loaded(tmp_path):
    net = make_net(torch.Generator().manual_seed(0), dtype=torch.float32, max_candidates=2, max_neighbours=2)
    save_weights(tmp_path / "toy.safetensors", net, Header(calibration=Calibration(temperature=2.0, offsets=(0.5,))))
    return load_colliders(tmp_path / "toy.safetensors")


def test_a_file_knows_its_network(loaded, tmp_path):
    path = tmp_path / "toy.safetensors"
    assert (loaded.name, loaded.header.kind) == ("toy", "immoralities")
    assert isinstance(load_network(path).network, ImmoralityNet)
    with pytest.raises(WeightsError, match="holds weights of kind 'immoralities', but 'edges' is needed here"):
        load_weights(path)
    save_weights(path, EdgeNet(EdgeNetConfig(**TINY)))
    assert load_weights(path).header.kind == "edges"
    with pytest.raises(WeightsError, match="holds weights of kind 'edges', but 'immoralities' is needed here"):
        load_colliders(path)


def test_an_unknown_kind_of_network_is_refused(loaded, tmp_path):
    tensors, header = weights.read_tensors(tmp_path / "toy.safetensors")
    weights.write_tensors(tmp_path / "new.safetensors", tensors, dataclasses.replace(header, kind="oracle"))
    with pytest.raises(WeightsError, match="kind 'oracle', but 'edges' or 'immoralities' is needed here"):
        load_network(tmp_path / "new.safetensors")


def test_infer_refuses_collider_weights(loaded, tmp_path):
    import graphbam as gb

    with pytest.raises(WeightsError, match="'edges' is needed"):
        gb.infer(np.random.default_rng(0).normal(size=(30, 3)), weights=tmp_path / "toy.safetensors")


@each(("cells", "rows"), [(2_000_000, 60_000), (1, 60_000), (200, 30)])
def test_probabilities_are_those_of_the_network_one_by_one(monkeypatch, rng, loaded, cells, rows):
    monkeypatch.setattr(weights, "CELLS_PER_CHUNK", cells)
    monkeypatch.setattr(weights, "ROWS_PER_CHUNK", rows)
    skeleton, strength = random_graph(rng, b=2)
    pairs = torch.ones(2, 9, 9, dtype=torch.bool)
    found = find_structures(skeleton, pairs, strength, max_candidates=2, max_neighbours=2)
    x = torch.randn(2, 12, 9, generator=rng)
    p = loaded.probabilities(x, found)
    for k in range(len(p)):
        one = found.pick(slice(k, k + 1))
        with torch.no_grad():
            logits = loaded.network(gather_columns(x, one), one.roles_sw).double()
        expected = (logits / 2 + 0.5).sigmoid() * (one.roles_sw == CANDIDATE)
        assert_close(p[k], expected[0], rtol=1e-4, atol=1e-5)


def test_answers_are_those_of_each_candidate_with_the_surest_neighbours(rng, loaded):
    """0 and 1 have three common neighbours where two fit, and three others; 2 and 8 have one."""
    links = np.zeros((9, 9), dtype=bool)
    for a, b in [(0, 5), (0, 2), (0, 7), (1, 5), (1, 2), (1, 7), (0, 3), (0, 4), (1, 6), (2, 8)]:
        links[a, b] = links[b, a] = True
    pairs = np.zeros((9, 9), dtype=bool)
    pairs[[0, 0], [1, 8]] = True
    half = torch.rand(9, 9, generator=rng).numpy()
    strength = (half + half.T) / 2
    x_bmd = torch.randn(2, 20, 9, generator=rng)
    packed = loaded.pack(links, pairs, strength)
    answers = dict(zip(map(tuple, packed.triples().tolist()), loaded.answer(x_bmd, packed).tolist(), strict=True))
    assert sorted(answers) == [(0, 2, 1), (0, 2, 8), (0, 5, 1), (0, 7, 1)]
    last = min((2, 5, 7), key=lambda c: strength[0, c] * strength[1, c])  # alone in a structure of its own
    near = sorted([3, 4, 6], key=lambda k: -max(strength[i, k] for i in (0, 1) if links[i, k]))[:2]
    roles = torch.tensor([[1, 1, 2, 3, 3]])
    with torch.no_grad():
        logits = [loaded.network(x_md[None][..., [0, 1, last, *near]], roles)[0, 2].double() for x_md in x_bmd]
    expected = np.mean([float((logit / 2 + 0.5).sigmoid()) for logit in logits])
    assert answers[0, last, 1] == pytest.approx(expected, abs=1e-5)
    assert len(loaded.answer(x_bmd, loaded.pack(links, np.zeros_like(pairs), strength))) == 0


def test_all_candidates_are_spread_over_structures_surest_first(rng):
    links, strength = random_graph(rng, b=2, density=0.8)
    pairs = torch.ones(2, 9, 9, dtype=torch.bool)
    whole = find_structures(links, pairs, strength, max_candidates=9, max_neighbours=9)
    parts = find_structures(links, pairs, strength, max_candidates=2, max_neighbours=9, all_candidates=True)
    assert parts.triples().tolist() == whole.triples().tolist()
    assert (parts.roles_sw == CANDIDATE).sum(-1).max() == 2
    assert whole.roles_sw.eq(NEIGHBOUR).sum(-1).max() == parts.roles_sw.eq(NEIGHBOUR).sum(-1).max()
