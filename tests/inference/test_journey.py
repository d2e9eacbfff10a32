"""infer, infer_many and BAM: the promises a user relies on."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import graphbam as gb
from graphbam.directions.immoralities import OBVIOUS_FROM, pairs_to_ask
from graphbam.errors import ConfigError, KnowledgeError, TableError, WeightsError
from graphbam.graphs.equivalence import is_cpdag
from graphbam.inference.networks import open_colliders
from graphbam.inference.settings import COLLIDERS
from graphbam.inference.stability import draw_resamples
from graphbam.nn.cost import estimate_seconds, forward_work, is_exhaustion, measure_speed, threads
from graphbam.nn.device import choose_device
from graphbam.nn.edge_net import EdgeNet, EdgeNetConfig
from graphbam.nn.weights import Header, Partner, load_colliders, load_weights, save_weights
from graphbam.result import Failure, OrientationMissingError, Result
from graphbam.tables.read import read_table
from standins import Contrast, PartialCorrelation, Spy, save_toy_colliders

TINY = EdgeNetConfig(
    channels=8, heads=2, attribute_layers=1, sample_layers=1, dense_layers=1, dense_hidden=8, spd_channels=4,
    spd_heads=2, bilinear_layers=1, pair_layers=1, pair_channels=8, product_channels=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def tiny_path(tmp_path_factory):
    """A real network with random weights, in a real file."""
    network = EdgeNet(TINY)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    save_weights(path, network)
    return path


@pytest.fixture(params=["stand-in", "network"])
def weights(request, tiny_path):
    return PartialCorrelation() if request.param == "stand-in" else load_weights(tiny_path)


@pytest.fixture(autouse=True)
def no_shipped_colliders(request, monkeypatch):
    """Directions are found where a test asks for them; the rest holds with and without, and is faster without."""

    def open_others(colliders, device):
        return None if colliders == COLLIDERS else open_colliders(colliders, device)

    if "shipped" not in request.fixturenames:
        monkeypatch.setattr("graphbam.inference.networks.open_colliders", open_others)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 5))
    x[:, 1] += 1.5 * x[:, 0]
    x[:, 2] += x[:, 1] - x[:, 3]
    return pd.DataFrame(x, columns=list("abcde"))


def by_name(result):
    """Probabilities as a table that does not depend on column order."""
    return {
        (a, b): result.probabilities[i, j]
        for i, a in enumerate(result.names)
        for j, b in enumerate(result.names)
    }  # fmt: skip


def largest_difference(first, second):
    first, second = by_name(first), by_name(second)
    assert first.keys() == second.keys()
    return max(np.abs(first[key] - second[key]).max() for key in first)


# ── promises ──────────────────────────────────────────────────────────────────────────────────────────────


def test_same_table_same_answer(frame, weights):
    first, second = (gb.infer(frame, weights=weights, stability=5) for _ in range(2))
    assert np.array_equal(first.probabilities, second.probabilities)
    assert np.array_equal(first.stability, second.stability)


@pytest.mark.parametrize("settings", [{}, {"max_rows": 50}, {"max_rows": 50, "large": "average"}])
def test_row_order_does_not_matter(frame, weights, settings):
    first = gb.infer(frame, weights=weights, stability=5, **settings)
    second = gb.infer(frame.sample(frac=1, random_state=3), weights=weights, stability=5, **settings)
    assert np.array_equal(first.probabilities, second.probabilities)
    assert np.array_equal(first.stability, second.stability)


@pytest.mark.parametrize("settings", [{}, {"max_rows": 50}, {"max_rows": 50, "large": "average"}])
def test_column_order_does_not_matter(frame, weights, settings):
    first = gb.infer(frame, weights=weights, **settings)
    assert largest_difference(first, gb.infer(frame[list("cebda")], weights=weights, **settings)) < 1e-5


@pytest.mark.parametrize("settings", [{}, {"max_rows": 50}])
def test_units_do_not_matter(frame, weights, settings):
    first = gb.infer(frame, weights=weights, **settings)
    second = gb.infer(frame * [1e6, 1e-6, 3, 1, 0.1] + [0, 5, 0, 1e3, -2], weights=weights, **settings)
    assert largest_difference(first, second) < 1e-5


def test_a_proper_answer(frame, weights):
    result = gb.infer(frame, weights=weights)
    assert isinstance(result, Result)
    assert result.probabilities.shape == (5, 5, 3)
    assert np.allclose(result.probabilities.sum(axis=-1), 1, atol=1e-12)
    assert np.array_equal(result.probabilities, result.probabilities.transpose(1, 0, 2))


def test_the_right_links_are_found(frame):
    found = set(gb.infer(frame, weights=PartialCorrelation()).skeleton(0.6).undirected_edges())
    assert {("a", "b"), ("b", "c")} <= found
    assert ("a", "e") not in found


def test_seeds_change_the_draw_and_nothing_else(frame):
    weights = PartialCorrelation()
    answers = [gb.infer(frame, weights=weights, max_rows=50, seed=s).probabilities for s in (0, 1)]
    assert not np.array_equal(*answers)
    answers = [gb.infer(frame, weights=weights, seed=s).probabilities for s in (0, 1)]
    assert np.array_equal(*answers)


def test_averaging_uses_every_draw(frame):
    spy = Spy()
    result = gb.infer(frame, weights=spy, max_rows=50, large="average")
    assert spy.shapes == [(3, 40, 5)]
    assert result.provenance["n_rows_used"] == 120


def test_the_smallest_table(weights):
    x_md = np.array([[1.0, 2.0], [2.0, 5.0], [3.0, 1.0], [5.0, 4.0]])
    result = gb.infer(x_md, weights=weights)
    assert result.probabilities.shape == (2, 2, 3)
    assert "only 4 rows" in result.warnings[0]
    with pytest.raises(TableError, match="found 3 sample"):
        gb.infer(x_md[:3], weights=weights)


def test_constant_columns_have_no_links_and_change_nothing(frame, weights):
    result = gb.infer(frame.assign(k=1.0)[list("akbcde")], weights=weights)
    assert np.array_equal(result.probabilities[1], np.tile([1.0, 0.0, 0.0], (6, 1)))
    others = [0, 2, 3, 4, 5]
    expected = gb.infer(frame, weights=weights).probabilities
    assert np.array_equal(result.probabilities[np.ix_(others, others)], expected)


def test_changes_and_provenance_are_reported(frame, weights):
    frame.loc[3, "a"] = np.nan
    result = gb.infer(frame.assign(flag=frame["a"] > 0), weights=weights, drop="e")
    assert [c.split(":")[0] for c in result.changes] == [
        "left out as asked", "column 'flag'", "1 row of 120 with missing values left out",
    ]  # fmt: skip
    assert result.provenance["n_rows"] == 120
    assert result.provenance["n_rows_used"] == 119
    assert result.provenance["weights"] in (weights.name, getattr(weights, "path", None))


def test_weights_are_recorded_by_name_or_path_with_device_and_precision(frame, tiny_path, monkeypatch):
    monkeypatch.chdir(tiny_path.parent)
    known = gb.infer(frame, weights=tiny_path.name, colliders=None).provenance
    assert known["weights"] == str(tiny_path)
    loaded = gb.infer(frame, weights=load_weights(tiny_path)).provenance
    assert (loaded["weights"], loaded["checksum"]) == (str(tiny_path), known["checksum"])
    assert (known["device"], known["precision"]) == ("cpu", "float32")
    known = gb.infer(frame, device="cpu").provenance
    assert (known["weights"], len(known["checksum"])) == ("edges", 64)
    assert gb.infer(frame, weights=PartialCorrelation()).provenance["device"] is None


def test_a_sample_of_what_the_network_saw_is_kept(frame, weights):
    frame["flat"] = 3.0
    result = gb.infer(frame, weights=weights)
    assert result.sample.shape == (120, 6)
    assert not result.sample[:, 5].any()
    np.testing.assert_allclose(result.sample[:, :5].std(axis=0), 1, atol=1e-3)
    shuffled = gb.infer(frame.sample(frac=1, random_state=1)[[*"cabed", "flat"]], weights=weights)
    np.testing.assert_allclose(shuffled.sample[:, [1, 2, 0, 4, 3, 5]], result.sample, atol=1e-6)
    many = gb.infer_many([frame, frame[::-1]], weights=weights, large="average", max_rows=50)
    assert all(np.array_equal(one.sample, many[0].sample) for one in many)
    assert "sample" not in result.to_dict()


def test_settings_are_remembered(frame):
    frame["mood"] = ["good", "bad"] * 60
    levels = {"mood": ["bad", "good"]}
    settings = gb.infer(frame, weights=PartialCorrelation(), encode=levels, drop="e", seed=3).provenance["settings"]
    assert settings["encode"] == levels
    assert (settings["drop"], settings["seed"], settings["missing"]) == (["e"], 3, "auto")


# ── knowledge, stability, domain ──────────────────────────────────────────────────────────────────────────


def test_knowledge_is_enforced_exactly(frame, weights):
    result = gb.infer(
        frame.assign(k=1.0), weights=weights, forbidden=[("a", "b")], required=["d -> e", "a -- k"], stability=4,
        tiers=[["a"], ["b", "c"]], prior_odds={("a", "c"): 4.0},
    )  # fmt: skip
    p = by_name(result)
    assert p["a", "b"][1] == p["b", "a"][1] == 0.0
    assert p["d", "e"].tolist() == p["a", "k"].tolist() == [0.0, 1.0, 0.0]
    table = result.table().set_index(["a", "b"])["stability"]
    assert table["a", "b"] == 0.0
    assert table["d", "e"] == table["a", "k"] == 1.0
    assert result.knowledge.tiers == (("a",), ("b", "c"))
    assert any("a -- k is required" in w for w in result.warnings)


def test_knowledge_comes_whole_or_in_parts(frame, tmp_path):
    weights = PartialCorrelation()
    (tmp_path / "k.json").write_text('{"forbidden": ["a -- b"]}')
    ways = [
        {"forbidden": ["a -- b"]},
        {"knowledge": {"forbidden": ["a -- b"]}},
        {"knowledge": gb.Knowledge(forbidden=["a -- b"])},
        {"knowledge": tmp_path / "k.json"},
    ]
    answers = [gb.infer(frame, weights=weights, **way).probabilities for way in ways]
    assert all(np.array_equal(answers[0], answer) for answer in answers)
    with pytest.raises(ConfigError, match="whole and in parts"):
        gb.infer(frame, weights=weights, knowledge=ways[2]["knowledge"], required=["a -- c"])
    with pytest.raises(KnowledgeError, match="'z', which the table does not have"):
        gb.infer(frame, weights=weights, forbidden=["a -- z"])


def test_stability_is_a_share_and_high_for_strong_links(frame):
    result = gb.infer(frame, weights=PartialCorrelation(), stability=40)
    table = result.table().set_index(["a", "b"])["stability"]
    assert ((table >= 0) & (table <= 1)).all()
    assert table["a", "b"] == 1.0
    assert table["a", "e"] < 0.3
    assert np.array_equal(result.stability, result.stability.T)
    assert (result.stability.diagonal() == 0).all()


def test_stability_runs_in_batches(frame, monkeypatch):
    whole, cut = Spy(), Spy()
    first = gb.infer(frame, weights=whole, stability=10)
    monkeypatch.setattr("graphbam.inference.networks.CELLS_AT_ONCE", 3 * frame.size)
    second = gb.infer(frame, weights=cut, stability=10)
    assert [s[0] for s in whole.shapes] == [1, 10]
    assert [s[0] for s in cut.shapes] == [1, 3, 3, 3, 1]
    assert np.array_equal(first.stability, second.stability)


def test_domain_meter(frame):
    assert gb.infer(frame, weights=PartialCorrelation()).domain["verdict"] is None
    near = PartialCorrelation(header=Header(domain={"n_samples": (50, 500)}))
    assert gb.infer(frame, weights=near).domain["verdict"] == "inside"
    far = PartialCorrelation(header=Header(domain={"n_samples": (500, 900)}))
    result = gb.infer(frame, weights=far)
    assert result.domain["verdict"] == "outside"
    assert "unlike training: number of rows is 120" in result.warnings[0]


def test_progress_begins_with_an_estimate(frame, tiny_path):
    told = []
    gb.infer(frame, weights=tiny_path, stability=3, progress=lambda share, sentence: told.append((share, sentence)))
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert told[0][1] == "120 rows × 5 variables, 4 passes: less than a second"


@pytest.mark.parametrize(("n_samples", "n_variables"), [(100, 30), (60, 60), (200, 20)])
def test_operations_are_counted_as_torch_counts_them(n_samples, n_variables):
    network = EdgeNet(EdgeNetConfig())
    x_bmd = torch.randn(1, n_samples, n_variables, generator=torch.Generator().manual_seed(0))
    plain_attention = sdpa_kernel(SDPBackend.MATH)  # products that the counter can see
    with torch.no_grad(), plain_attention, FlopCounterMode(display=False) as counter:
        network(x_bmd)
    ours = forward_work(network.config, 1, n_samples, n_variables).on_cpu()
    assert ours == pytest.approx(counter.get_total_flops(), rel=0.15)


def test_the_machine_is_measured_only_for_listeners(frame, tiny_path, monkeypatch):
    monkeypatch.setattr("graphbam.nn.cost.measure_speed", lambda: pytest.fail("nobody asked how long it takes"))
    gb.infer(frame, weights=tiny_path)


def test_threads_match_the_work_and_are_given_back(frame, tiny_path, monkeypatch):
    used, loaded = [], load_weights(tiny_path)
    forward = loaded.network.forward
    monkeypatch.setattr(loaded.network, "forward", lambda x: (used.append(torch.get_num_threads()), forward(x))[1])
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        gb.infer(frame, weights=loaded)
        monkeypatch.setattr("graphbam.nn.cost.OPERATIONS_A_THREAD", 1.0)
        gb.infer(frame, weights=loaded)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert used == [1, 2]


def test_speed_is_that_of_a_machine():
    assert 1e8 < measure_speed(size=256) < 1e14


def test_larger_tables_are_announced_to_take_longer(tiny_path):
    loaded = load_weights(tiny_path)
    times = [estimate_seconds(loaded, 1, m, d) for m, d in [(100, 10), (1000, 10), (1000, 100), (1000, 1000)]]
    assert times == sorted(times)
    assert estimate_seconds(PartialCorrelation(), 1, 10, 10) == 0.0


def in_a_new_thread(call):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_threads_of_others_are_left_alone():
    """A server's worker that first computes while a small table is under way keeps all its threads."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with threads(1):
            assert torch.get_num_threads() == 1
            assert in_a_new_thread(torch.get_num_threads) == 3
        assert torch.get_num_threads() == in_a_new_thread(torch.get_num_threads) == 3
    finally:
        torch.set_num_threads(before)


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 900 GiB"),
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:82] data. DefaultCPUAllocator: not enough memory: you tried"),
]


class Failing(PartialCorrelation):
    """Weights that raise an error for tables with more columns than `most`."""

    def __init__(self, error, most=0):
        super().__init__()
        self.error, self.most = error, most

    def probabilities(self, x_bmd, rows=None):
        if x_bmd.shape[2] > self.most:
            raise self.error
        return super().probabilities(x_bmd)


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=repr)
def test_memory_that_runs_out_is_explained(frame, error):
    with pytest.raises(ConfigError, match="120 rows × 5 variables do not fit into memory"):
        gb.infer(frame, weights=Failing(error))


def test_torch_fails_to_allocate_in_known_words():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**55)
    assert is_exhaustion(caught.value)


def test_other_errors_are_not_taken_for_a_lack_of_memory(frame):
    error = RuntimeError("required rank 4 tensor to use channels_last memory format")
    with pytest.raises(RuntimeError, match="channels_last"):
        gb.infer(frame, weights=Failing(error))


def test_devices():
    assert choose_device("auto").type in ("cpu", "cuda")
    with pytest.raises(ConfigError, match="device='abacus'"):
        choose_device("abacus")
    if not torch.cuda.is_available():
        assert choose_device("auto") == torch.device("cpu")
        with pytest.raises(ConfigError, match="device='cuda:1'"):
            choose_device("cuda:1")


# ── directions ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def toy_colliders(tmp_path_factory):
    return save_toy_colliders(tmp_path_factory.mktemp("weights") / "toy.safetensors")


@pytest.fixture(params=["stand-in", "network"])
def colliders(request, toy_colliders):
    return Contrast() if request.param == "stand-in" else load_colliders(toy_colliders)


@pytest.fixture
def ask_all(monkeypatch):
    """No pair is too obvious to be asked about: the frame has but one collider, and it is."""
    monkeypatch.setattr("graphbam.directions.immoralities.OBVIOUS_FROM", 2.0)


@pytest.fixture
def collider_frame(ask_all):
    """a → c ← b, c → d → e, and f apart: the collider decides everything but nothing about f."""
    noise = np.random.default_rng(5).normal(size=(400, 6))
    a, b, f = noise[:, 0], noise[:, 1], noise[:, 5]
    c = a + b + 0.5 * noise[:, 2]
    d = c + noise[:, 3]
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": d + noise[:, 4], "f": f})


TRUTH = [("a", "c"), ("b", "c"), ("c", "d"), ("d", "e")]


def arrows_of(result):
    """Edges of the CPDAG by name, rounded probabilities with them."""
    table = result.arrows().round(4)
    return {
        (r.edge, frozenset((r.a, r.b)) if r.edge == "--" else (r.a, r.b)): r.probability for r in table.itertuples()
    }


def test_obvious_pairs_are_not_asked_about_and_get_their_arrows_all_the_same(collider_frame, monkeypatch):
    monkeypatch.setattr("graphbam.directions.immoralities.OBVIOUS_FROM", OBVIOUS_FROM)
    result = gb.infer(collider_frame, colliders=Contrast())
    assert result.probabilities[0, 1, 2] >= OBVIOUS_FROM  # a and b, by their child c
    assert (0, 1) not in {(claim["a"], claim["b"]) for claim in result.colliders}
    assert set(TRUTH) <= set(result.cpdag().directed_edges())


def test_only_sure_pairs_with_one_candidate_are_obvious():
    p_dd3 = np.full((5, 5, 3), [1.0, 0.0, 0.0])
    for a, b in [(0, 2), (1, 2), (1, 3), (4, 3), (0, 4)]:
        p_dd3[a, b] = p_dd3[b, a] = [0.0, 1.0, 0.0]
    for a, b, moral in [(0, 1, OBVIOUS_FROM), (1, 4, OBVIOUS_FROM - 0.01)]:
        p_dd3[a, b] = p_dd3[b, a] = [1 - moral, 0.0, moral]
    assert np.argwhere(np.triu(pairs_to_ask(p_dd3).pairs_dd)).tolist() == [[1, 4]]
    p_dd3[1, 4] = p_dd3[4, 1] = [0.0, 1.0, 0.0]  # now 2 and 4 are both neighbours of 0 and 1
    assert np.argwhere(np.triu(pairs_to_ask(p_dd3).pairs_dd)).tolist() == [[0, 1]]


def test_the_right_directions_are_found(collider_frame):
    result = gb.infer(collider_frame, colliders=Contrast())
    assert sorted(result.cpdag().directed_edges()) == TRUTH
    assert result.cpdag().undirected_edges() == []


@pytest.mark.parametrize("seed", range(3))
def test_any_table_gives_a_cpdag(weights, colliders, seed):
    x_md = np.random.default_rng(seed).normal(size=(60, 7)).cumsum(axis=1)
    result = gb.infer(x_md, weights=weights, colliders=colliders)
    assert all(is_cpdag(result.cpdag(**cut).adjacency) for cut in ({}, {"fdr": 0.1}, {"threshold": 0.5}))


@pytest.mark.parametrize("settings", [{}, {"max_rows": 200}, {"max_rows": 150, "large": "average"}])
def test_column_and_row_order_do_not_change_directions(collider_frame, colliders, settings):
    first = gb.infer(collider_frame, colliders=colliders, **settings)
    shuffled = collider_frame[list("fdbeca")].sample(frac=1, random_state=1)
    second = gb.infer(shuffled, colliders=colliders, **settings)
    assert len(first.colliders)
    assert arrows_of(first).keys() == arrows_of(second).keys()
    assert arrows_of(first) == pytest.approx(arrows_of(second), abs=2e-3)


def test_coded_and_constant_columns_keep_their_names(collider_frame):
    text = collider_frame["a"].map(lambda value: "low" if value < -0.5 else "mid" if value < 0.5 else "top")
    odd = collider_frame.assign(k=1.0, a=text)[list("kbcaedf")]
    settings = {"encode": {"a": ["low", "mid", "top"]}, "colliders": Contrast()}
    result, without = gb.infer(odd, **settings), gb.infer(odd.drop(columns="k"), **settings)
    named = {tuple(result.names[k] for k in (a, c, b)) for a, c, b, _ in result.colliders.tolist()}
    assert named == {tuple(without.names[k] for k in (a, c, b)) for a, c, b, _ in without.colliders.tolist()}
    assert ("b", "c", "a") in named
    assert not [triple for triple in named if "k" in triple]
    assert arrows_of(result) == arrows_of(without)
    coded = odd.replace({"a": {"low": 0.0, "mid": 1.0, "top": 2.0}})
    for a, c, b, p in result.colliders.tolist():
        r_ab, r_ac, r_bc = (coded[result.names[i]].astype(float).corr(coded[result.names[j]].astype(float))
                            for i, j in ((a, b), (a, c), (b, c)))  # fmt: skip
        assert p == pytest.approx(float(Contrast._judge(r_ab, r_ac, r_bc)), abs=0.02)


def test_knowledge_decides_what_is_asked_and_what_comes_out(collider_frame):
    plain, told = Contrast(), Contrast()
    gb.infer(collider_frame, colliders=plain)
    result = gb.infer(collider_frame, colliders=told, required=["a -- b"], tiers=[["e"], ["d"]])
    asked = [{columns[:2] for columns in each.asked} for each in (plain, told)]
    assert (0, 1) in asked[0]
    assert (0, 1) not in asked[1]
    assert ("e", "d") in result.cpdag().directed_edges()


def test_a_required_edge_to_a_constant_column_is_no_question(collider_frame):
    spy = Contrast()
    result = gb.infer(collider_frame.assign(k=0.0), colliders=spy, required=["k -> c"])
    assert max(map(max, spy.asked)) < 6
    assert ("k", "c") in result.cpdag().directed_edges()


def test_draws_are_averaged_and_long_tables_cut(collider_frame, monkeypatch):
    spy = Contrast()
    result = gb.infer(collider_frame, colliders=spy, max_rows=150, large="average")
    assert {rows for rows, _ in spy.shapes} == {133}
    assert len(spy.answers) == 3
    np.testing.assert_allclose(np.sort(result.colliders["probability"]), np.sort(np.mean(spy.answers, axis=0)))
    monkeypatch.setattr("graphbam.inference.answers.MOST_ROWS", 90)
    spy = Contrast()
    result = gb.infer(collider_frame, colliders=spy)
    assert spy.shapes == [(90, 6)]
    assert "directions are judged from 90 of 400 rows, all that the second network takes" in result.changes


def test_many_tables_get_the_directions_of_one_by_one(collider_frame, colliders):
    tables = [collider_frame, collider_frame[list("abcd")], collider_frame.head(300), -collider_frame]
    for settings in ({}, {"max_rows": 150, "large": "average"}):
        settings |= {"weights": PartialCorrelation(), "colliders": colliders}
        for one, table in zip(gb.infer_many(tables, **settings), tables, strict=True):
            alone = gb.infer(table, **settings)
            assert len(one.colliders)
            assert arrows_of(one).keys() == arrows_of(alone).keys()
            np.testing.assert_allclose(one.colliders["probability"], alone.colliders["probability"], atol=1e-4)


def test_directions_can_be_switched_off(collider_frame, toy_colliders):
    with_them = gb.infer(collider_frame, colliders=toy_colliders)
    result = gb.infer(collider_frame, colliders=None)
    assert result.colliders is None
    assert result.provenance["colliders"] is None
    assert np.array_equal(result.probabilities, with_them.probabilities)
    assert result.graph() == result.skeleton()
    with pytest.raises(OrientationMissingError, match="Infer again with colliders="):
        result.cpdag()
    assert with_them.provenance["colliders"] == str(toy_colliders)
    assert len(with_them.provenance["colliders_checksum"]) == 64


def test_evidence_is_not_used_beside_edge_weights_it_was_not_fitted_to(collider_frame, tiny_path, ask_all):
    edges = load_weights("edges")
    evidence = {"offset": -1.0, "child": 0.8, "moral": 0.4, "links": 0.2, "candidates": -0.2}
    partner = Partner(name="edges", checksum=edges.header.checksum)
    fitted, plain = Contrast(header=Header(evidence=evidence, partner=partner)), Contrast()
    assert not [w for w in gb.infer(collider_frame, weights=edges, colliders=fitted).warnings if "evidence" in w]
    other = dataclasses.replace(edges, name="mine", header=dataclasses.replace(edges.header, checksum="0" * 64))
    result = gb.infer(collider_frame, weights=other, colliders=fitted)
    assert "collider weights 'contrast' learned beside 'edges', not 'mine'" in result.warnings[-1]
    assert arrows_of(result) == arrows_of(gb.infer(collider_frame, weights=other, colliders=plain))
    assert arrows_of(result) != arrows_of(gb.infer(collider_frame, weights=edges, colliders=fitted))


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A package that comes with both weights."""
    edges = Path(gb.__file__).parent / "weights" / "edges.safetensors"
    (tmp_path / "edges.safetensors").write_bytes(edges.read_bytes())
    save_toy_colliders(tmp_path / "colliders.safetensors")
    monkeypatch.setattr("graphbam.nn.weights._shipped", lambda: tmp_path)


def test_weights_in_the_package_are_used_unasked(collider_frame, toy_colliders, shipped):
    expected = arrows_of(gb.infer(collider_frame, colliders=toy_colliders))
    assert arrows_of(gb.infer(collider_frame)) == expected
    assert arrows_of(gb.infer_many([collider_frame])[0]) == expected
    assert arrows_of(gb.BAM().fit(collider_frame).result_) == expected
    assert gb.BAM(colliders=None).fit(collider_frame).result_.colliders is None


def test_a_package_that_lost_its_weights_says_so(frame, shipped, tmp_path):
    (tmp_path / "colliders.safetensors").unlink()
    for infer in (gb.infer, lambda table: gb.infer_many([table]), gb.BAM().fit):
        with pytest.raises(WeightsError, match="no weights named 'colliders'"):
            infer(frame)
    assert gb.infer(frame, colliders=None).colliders is None


@pytest.mark.parametrize(("colliders", "error", "says"), [
    ("nope", WeightsError, "no weights named 'nope'"),
    ("edges", WeightsError, "holds weights of kind 'edges', but 'immoralities' is needed"),
    (7, ConfigError, "colliders=7 are no collider weights"),
])  # fmt: skip
def test_what_is_no_collider_network_is_refused(frame, colliders, error, says):
    with pytest.raises(error, match=says):
        gb.infer(frame, colliders=colliders)


def test_no_moral_pair_no_question(colliders):
    x_md = np.random.default_rng(0).normal(size=(200, 4))
    result = gb.infer(x_md, colliders=colliders)
    assert len(result.colliders) == 0
    assert result.cpdag().adjacency.sum() == 0
    assert result.arrows().empty


def test_progress_tells_of_directions(collider_frame, toy_colliders, monkeypatch):
    monkeypatch.setattr("graphbam.inference.networks.CELLS_AT_ONCE", collider_frame.size)
    told = []
    gb.infer(collider_frame, colliders=toy_colliders, stability=3, progress=lambda *both: told.append(both))
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert len(set(shares)) == len(shares) - 1  # the last resample, and "done"
    assert any(sentence.startswith("directions, ") and "less than a second" in sentence for _, sentence in told)


# ── many tables ───────────────────────────────────────────────────────────────────────────────────────────


def test_many_tables_give_the_same_as_one_by_one(frame, weights):
    tables = [frame, frame[list("abc")], frame * 2, frame.head(60), frame.to_numpy()]
    for one, table in zip(gb.infer_many(tables, weights=weights, stability=3), tables, strict=True):
        alone = gb.infer(table, weights=weights, stability=3)
        assert np.allclose(one.probabilities, alone.probabilities, atol=1e-5)
        assert np.allclose(one.stability, alone.stability, atol=0.34)
        assert one.names == alone.names


def test_equal_shapes_travel_together(frame):
    spy = Spy()
    gb.infer_many([frame, frame[list("abc")], frame.sample(frac=1), frame], weights=spy)
    assert sorted(spy.shapes) == [(1, 120, 3), (3, 120, 5)]


def test_one_bad_table_does_not_lose_the_others(frame, tmp_path):
    frame.to_csv(tmp_path / "good.csv", index=False)
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3\n")
    bad, good = gb.infer_many(tmp_path, weights=PartialCorrelation())
    assert isinstance(bad, Failure)
    assert bad.source.endswith("bad.csv")
    assert "line 3, has 1 cells" in bad.message
    assert good.names == tuple("abcde")


def test_many_tables_with_passes_and_none_at_all(frame):
    weights = PartialCorrelation()
    split = {"max_rows": 50, "large": "average"}
    many = gb.infer_many([frame, frame], weights=weights, **split)
    assert np.allclose(many[0].probabilities, gb.infer(frame, weights=weights, **split).probabilities)
    assert gb.infer_many([], weights=weights) == []
    with pytest.raises(ConfigError, match="no setting 'speed'"):
        gb.infer_many([frame], weights=weights, speed=2)


def test_a_table_that_does_not_fit_into_memory_is_one_failure(frame):
    tables = [frame[list("abc")], frame, frame[list("bcd")]]
    first, failed, last = gb.infer_many(tables, weights=Failing(MemoryError(), most=3))
    assert (first.names, last.names) == (tuple("abc"), tuple("bcd"))
    assert isinstance(failed, Failure)
    assert "120 rows × 5 variables do not fit into memory" in failed.message


def test_tables_that_do_not_fit_together_go_one_by_one(frame):
    class Narrow(Spy):
        def probabilities(self, x_bmd):
            answer = super().probabilities(x_bmd)
            if len(x_bmd) > 1:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return answer

    spy = Narrow()
    assert all(gb.infer_many([frame, frame + 1, frame * 2], weights=spy))
    assert [shape[0] for shape in spy.shapes] == [3, 1, 1, 1]


def test_a_table_too_large_to_read_is_one_failure(frame, monkeypatch):
    def read(data, **settings):
        if data is None:
            raise MemoryError
        return read_table(data, **settings)

    monkeypatch.setattr("graphbam.inference.journey.read_table", read)
    answers = gb.infer_many([frame, None], weights=PartialCorrelation())
    assert isinstance(answers[0], Result)
    assert "does not fit into memory" in answers[1].message


def test_few_tables_are_held_at_a_time(frame, monkeypatch):
    """Tables are taken from a generator as they are needed, whether their shapes are equal or not."""
    monkeypatch.setattr("graphbam.inference.networks.CELLS_AT_ONCE", 4 * frame.size)
    taken, held = 0, []

    def draw(shapes):
        nonlocal taken
        for n_rows in shapes:
            taken += 1
            yield frame.head(n_rows)

    class Watch(Spy):
        def probabilities(self, x_bmd):
            answer = super().probabilities(x_bmd)
            held.append(taken - sum(shape[0] for shape in self.shapes[:-1]))
            return answer

    for shapes in ([120] * 20, range(101, 121)):
        taken, watch = 0, Watch()
        assert len(gb.infer_many(draw(shapes), weights=watch)) == 20
        assert sum(shape[0] for shape in watch.shapes) == 20
    assert max(held) <= 5


def test_a_mapping_gives_results_by_name(frame, tmp_path):
    tables = {"early": frame, "late": frame.head(60), "broken": [[1.0]], "gone": tmp_path / "gone.csv"}
    answers = gb.infer_many(tables, weights=PartialCorrelation())
    assert [one.source for one in answers] == list(tables)
    assert [bool(one) for one in answers] == [True, True, False, False]
    assert "1 feature" in answers[2].message
    expected = gb.infer(frame, weights=PartialCorrelation()).probabilities
    assert np.array_equal(answers[0].probabilities, expected)


def test_one_table_instead_of_many_is_refused(frame):
    for table in (frame, frame.to_numpy()):
        with pytest.raises(ConfigError, match=r"takes several tables, and this \w+ is one"):
            gb.infer_many(table, weights=PartialCorrelation())
    assert len(gb.infer_many(np.stack([frame] * 2), weights=PartialCorrelation())) == 2


def test_no_row_is_drawn_twice_into_a_resample():
    rows = draw_resamples(np.random.default_rng(0), 50, 40)
    assert all(len(set(row)) == len(row) == 25 for row in rows.tolist())
    assert len({tuple(sorted(row)) for row in rows.tolist()}) == 50
    assert draw_resamples(np.random.default_rng(0), 2, 2).shape == (2, 2)
