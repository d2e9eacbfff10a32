"""runs/blend.py: weights between two, also where the later network has the larger head."""

import dataclasses

import pytest
import torch
from torch.testing import assert_close

from graphbam.errors import WeightsError
from graphbam.nn.weights import load_weights, save_weights
from toy_runs import run


@pytest.fixture
def blend(run_script, tmp_path):
    """Run the script; gives what it wrote."""

    def call(before, after, share, *more):
        path = tmp_path / "blend.safetensors"
        run_script("blend", before, after, "--share", share, "-o", path, *more)
        return load_weights(path)

    return call


@pytest.fixture
def ends(tiny_net, tiny_training, tmp_path):
    """Weights, and those of a run that went on from them with one block more."""
    net = tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32, sharp_correlations=False)
    before = tmp_path / "before.safetensors"
    save_weights(before, net)
    larger = dataclasses.replace(net.config, sharp_correlations=True, pair_layers=net.config.pair_layers + 1)
    return before, run(tiny_training(network=larger), tmp_path / "run", 5, start=str(before))


def test_both_ends_are_where_they_should_be(blend, ends):
    x_bmd = torch.randn(2, 20, 5, generator=torch.Generator().manual_seed(1))
    for share, end in enumerate(ends):
        assert_close(blend(*ends, share).network(x_bmd), load_weights(end).network(x_bmd), atol=1e-5, rtol=1e-5)


def test_a_share_lies_between_and_is_written_down(blend, ends):
    half = blend(*ends, 0.5)
    before, after = (load_weights(end).network.embedding.state_dict() for end in ends)
    for name, value in half.network.embedding.state_dict().items():
        assert_close(value, (before[name] + after[name]) / 2)
    assert half.header.notes["blend"] == 0.5
    assert half.header.progress == load_weights(ends[1]).header.progress


def test_stretches_may_be_others_than_in_training(blend, ends):
    asked, plain = (blend(*ends, 1, *more) for more in (("--stretch", 7), ()))
    x_bmd = torch.randn(2, 20, 5, generator=torch.Generator().manual_seed(1))
    assert (asked.network.config.sample_stretch, plain.network.config.sample_stretch) == (7, 0)
    assert_close(asked.network(x_bmd[:, :7]), plain.network(x_bmd[:, :7]))
    assert not torch.allclose(asked.network(x_bmd), plain.network(x_bmd))


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_there_is_nothing_beyond_the_ends(blend, ends, share, capsys):
    with pytest.raises(SystemExit):
        blend(*ends, share)
    assert "no share between 0 and 1" in capsys.readouterr().err


def test_shares_are_judged_against_the_earlier_weights(run_script, tiny_net, capsys):
    script = run_script("blend", run_name="blend")
    net = tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32, marks=True, answers=True)
    tables = script["draw_each"](script["WORLDS"]["paper"], 1)
    assert [tuple(one.x_bmd.shape) for one in tables] == [(1, m, d) for d, m in script["JUDGES"]]
    script["print_rows"]("paper", tables[:3], [("0.00", net), ("0.50", net)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["paper", "0.00"], ["paper", "0.50"]]
    assert all(line.count("(+0.0000 ± 0.0000)") == 3 for line in lines)  # nothing was changed on the way


def test_weights_of_any_two_designs_are_judged_apart(run_script, tiny_net, tmp_path, capsys):
    rng, answers = torch.Generator().manual_seed(0), {"marks": True, "answers": True}
    nets = [tiny_net(rng, dtype=torch.float32, sample_layers=n, attribute_layers=1, **answers) for n in (1, 2)]
    for name, net in zip(("one", "two"), nets, strict=True):
        save_weights(tmp_path / f"{name}.safetensors", net)
    ends = [tmp_path / "one.safetensors", tmp_path / "two.safetensors"]
    with pytest.raises(WeightsError, match="another network design"):
        run_script("blend", *ends, "--judge", 1)
    capsys.readouterr()
    run_script("blend", *ends, "--judge", 1, "--apart")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["before", "after"] * 3
    assert all("(+0.0000 ± 0.0000)" not in line for line in lines[1::2])
    with pytest.raises(SystemExit):
        run_script("blend", *ends, "--share", 1, "-o", tmp_path / "x.safetensors", "--apart")


def test_a_table_that_is_told_rightly_has_the_best_scores(run_script):
    script = run_script("blend", run_name="blend")
    (table,) = (one for one in script["draw_each"](script["WORLDS"]["paper"], 1) if one.x_bmd.shape[2] == 20)
    told = torch.zeros(1, 20, 20, 7)
    told[..., :3] = 9 * torch.nn.functional.one_hot(table.classes_bdd.long(), 3)
    told[..., 3] = 9 * (table.dag_bdd.float() - table.dag_bdd.mT.float())
    loss, *ranked = script["score"](told, table)
    turned = told.clone()
    turned[..., 3] *= -1
    worse, skeleton, directed = script["score"](turned, table)
    assert ranked == [1.0, 1.0]
    assert skeleton == 1.0
    assert worse > loss
    assert directed < 1
