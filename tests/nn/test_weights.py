"""Weights files: what goes in comes out, and a damaged, foreign or hostile file is refused with one clear sentence."""

import dataclasses
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.testing import assert_close

import graphbam as gb
from cases import each
from graphbam.errors import GraphbamError, WeightsError
from graphbam.nn import weights
from graphbam.nn.edge_net import MISSING, SET, EdgeNet
from graphbam.nn.weights import (
    Calibration,
    Effort,
    Header,
    Partner,
    RunProgress,
    calibrate,
    doubt_paths,
    fits_partner,
    load_colliders,
    load_weights,
    read_tensors,
    save_weights,
    write_tensors,
)
from graphbam.tables.interventions import FEW_SET


@pytest.fixture(scope="module")
def net(tiny_net):
    return tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32)


@pytest.fixture
def file(net, tmp_path):
    path = tmp_path / "toy.safetensors"
    save_weights(path, net, Header(notes={"from": "naïve"}, calibration=Calibration(temperature=2.0)))
    return path


def content(path):
    with safe_open(path, framework="pt") as stream:
        tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
        return tensors, json.loads(stream.metadata()["graphbam"])


def rewrite(path, tensors, header):
    """A file with a correct checksum, whatever is in it."""
    values = header | {"sha256": weights.checksum(tensors, header)}
    save_file(tensors, path, metadata={"graphbam": json.dumps(values)})


def test_round_trip(net, file):
    loaded = load_weights(file)
    assert loaded.name == "toy"
    assert loaded.network.config == net.config
    assert not loaded.network.training
    assert loaded.header.notes == {"from": "naïve"}
    assert loaded.header.checksum == content(file)[1]["sha256"]
    for name, value in net.state_dict().items():
        assert torch.equal(loaded.network.state_dict()[name], value)
    x = torch.randn(2, 9, 4, generator=torch.Generator().manual_seed(1))
    assert torch.equal(loaded.network(x), net.eval()(x))


def test_double_weights_are_stored_in_single_precision(tiny_net, tmp_path):
    net = tiny_net(torch.Generator().manual_seed(0))
    save_weights(tmp_path / "a.safetensors", net)
    tensors, _ = content(tmp_path / "a.safetensors")
    assert {value.dtype for value in tensors.values()} == {torch.float32}


def test_saving_makes_folders_and_leaves_no_other_file(net, tmp_path):
    save_weights(tmp_path / "a" / "b" / "toy.safetensors", net)
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["toy.safetensors"]


def test_unknown_tensors_are_refused(file):
    tensors, header = content(file)
    rewrite(file, tensors | {"surplus.weight": torch.zeros(2)}, header)
    with pytest.raises(WeightsError, match=r"unknown tensors \(surplus\.weight\)"):
        load_weights(file)


def test_missing_tensors_are_refused(file):
    tensors, header = content(file)
    del tensors["embedding.mix.weight"]
    rewrite(file, tensors, header)
    with pytest.raises(WeightsError, match=r"lacks tensors \(embedding\.mix\.weight\)"):
        load_weights(file)


def test_wrong_shapes_are_refused(file):
    tensors, header = content(file)
    tensors["embedding.mix.weight"] = torch.zeros(6, 5)
    rewrite(file, tensors, header)
    with pytest.raises(
        WeightsError, match=r"embedding\.mix\.weight has shape \(6, 5\), but the network needs \(6, 6\)"
    ):
        load_weights(file)


@pytest.mark.parametrize(
    "change", [{"colour": 1}, {"channels": "six"}, {"channels": -6}, {"heads": 5}, {"channels": 6 * 10**18}]
)
def test_impossible_configs_are_refused(file, change):
    tensors, header = content(file)
    rewrite(file, tensors, header | {"config": header["config"] | change})
    with pytest.raises(WeightsError, match="no usable network config"):
        load_weights(file)


def test_a_file_without_a_config_is_refused(file):
    tensors, header = content(file)
    del header["config"]
    rewrite(file, tensors, header)
    with pytest.raises(WeightsError, match="config"):
        load_weights(file)


@pytest.mark.parametrize("keep", [0, 4, 8, 100, 0.5, -1])
def test_truncated_files_are_refused(file, keep):
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * keep) if isinstance(keep, float) else keep])
    with pytest.raises(WeightsError, match=r"toy\.safetensors"):
        load_weights(file)


def test_every_flipped_byte_is_noticed(file):
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    start = 8 + length
    for position in [*range(start, len(data), 997), len(data) - 1]:
        file.write_bytes(data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :])
        with pytest.raises(WeightsError, match="altered"):
            load_weights(file)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'\\"temperature\\": 2.0', b'\\"temperature\\": 9.0'),
        (b'\\"ridge\\": 0.001', b'\\"ridge\\": 0.009'),
        (b'\\"kind\\": \\"edges\\"', b'\\"kind\\": \\"Edges\\"'),
    ],
)
def test_an_altered_header_is_noticed(file, old, new):
    data = file.read_bytes()
    assert data.count(old) == 1
    file.write_bytes(data.replace(old, new))
    with pytest.raises(WeightsError, match="altered"):
        load_weights(file)


def test_swapped_names_are_noticed(file):
    tensors, header = content(file)
    one, two = "head.blocks.0.residual.scale", "head.blocks.0.dense.residual.scale"
    tensors[one], tensors[two] = tensors[two].clone(), tensors[one].clone()
    save_file(tensors, file, metadata={"graphbam": json.dumps(header)})
    with pytest.raises(WeightsError, match="altered"):
        load_weights(file)


@each("tensors", [{"a": torch.zeros(3, 2)}, {"b": torch.zeros(2, 3)}, {"a": torch.zeros(2, 3).int()}])
def test_the_same_bytes_under_another_name_shape_or_type_are_noticed(tmp_path, tensors):
    path = tmp_path / "x.safetensors"
    write_tensors(path, {"a": torch.zeros(2, 3)}, Header())
    _, header = content(path)
    save_file(tensors, path, metadata={"graphbam": json.dumps(header)})
    with pytest.raises(WeightsError, match="altered"):
        read_tensors(path)


@pytest.mark.parametrize("version", [3, 99, "2", None])
def test_newer_formats_are_refused(file, version):
    tensors, header = content(file)
    save_file(tensors, file, metadata={"graphbam": json.dumps(header | {"format": version})})
    with pytest.raises(WeightsError, match="newer graphbam"):
        load_weights(file)


@each("metadata", [None, {"other": "1"}, {"graphbam": "{"}, {"graphbam": "[]"}, {"graphbam": "3"}])
def test_other_safetensors_files_are_refused(tmp_path, metadata):
    save_file({"a": torch.zeros(2)}, tmp_path / "x.safetensors", metadata=metadata)
    with pytest.raises(WeightsError, match=r"x\.safetensors"):
        load_weights(tmp_path / "x.safetensors")


@each("data", [b"", b"name,age\nAda,36\n", b"\xff" * 100, b"PK\x03\x04" + b"\x00" * 50])
def test_other_files_are_refused(tmp_path, data):
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(WeightsError, match="cannot be read as safetensors"):
        load_weights(path)


class Bomb:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return Path.write_text, (self.target, "boom")


@pytest.mark.parametrize("pack", [lambda bomb, path: path.write_bytes(pickle.dumps(bomb)), torch.save])
def test_a_hostile_pickle_is_refused_and_does_not_run(tmp_path, pack):
    target, path = tmp_path / "ran", tmp_path / "x.safetensors"
    pack(Bomb(target), path)
    with pytest.raises(WeightsError, match="cannot be read as safetensors"):
        load_weights(path)
    assert not target.exists()
    pickle.loads(pickle.dumps(Bomb(target)))
    assert target.exists()  # the bomb was live


def test_unknown_names_list_what_there_is(monkeypatch, file):
    monkeypatch.setattr(weights, "_shipped", lambda: file.parent)
    with pytest.raises(WeightsError, match=r"no weights named 'edgse' and no such file; shipped weights: toy"):
        load_weights("edgse")
    assert weights.list_weights() == ["toy"]
    assert load_weights("toy").name == "toy"


def test_no_shipped_weights_is_said_too(monkeypatch, tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        monkeypatch.setattr(weights, "_shipped", lambda folder=folder: folder)
        assert weights.list_weights() == []
        with pytest.raises(WeightsError, match="shipped weights: none"):
            load_weights("edges")


def test_folders_are_not_weights(tmp_path):
    with pytest.raises(WeightsError, match="no such file"):
        load_weights(tmp_path)


@each("error", [OSError(28, "No space left on device"), SafetensorError("No space left on device (os error 28)")])
def test_a_failed_write_keeps_the_previous_file(monkeypatch, net, file, error):
    before = file.read_bytes()

    def no_space(tensors, name, **_):
        Path(name).write_bytes(b"half a fi")
        raise error

    monkeypatch.setattr(weights, "save_file", no_space)
    with pytest.raises(GraphbamError, match=r"cannot be written: No space.*\. Choose another place\."):
        save_weights(file, net)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_place_where_no_file_can_be_is_one_sentence(net, file):
    with pytest.raises(GraphbamError, match=r"cannot be written: .*\. Choose another place\."):
        save_weights(file / "weights.safetensors", net)


def test_read_tensors_returns_what_write_tensors_was_given(tmp_path):
    tensors = {"b": torch.arange(6).view(2, 3), "a": torch.tensor(1.5), "empty": torch.zeros(0, 3)}
    header = Header(kind="mine", train={"nested": {"0.5": [1, None, True]}}, notes={"text": "ü"})
    write_tensors(tmp_path / "t.safetensors", tensors, header)
    found, found_header = read_tensors(tmp_path / "t.safetensors")
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    assert dataclasses.replace(found_header, checksum=None) == header


# ── probabilities ────────────────────────────────────────────────────────────────────────────────────────────────


def test_probabilities_sum_to_one_and_follow_the_calibration(file):
    loaded = load_weights(file)
    x = torch.randn(3, 9, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    p = loaded.probabilities(x)
    assert p.shape == (3, 4, 4, 3)
    assert_close(p.sum(-1), torch.ones(3, 4, 4, dtype=torch.float64), rtol=0, atol=1e-12)
    with torch.no_grad():
        assert_close(p, (loaded.network(x.float()).double() / 2).softmax(-1), rtol=1e-6, atol=1e-6)
    assert not p.requires_grad


def answers_of(tiny_net, x_bmd, marks_bmd=None, **values):
    """What a random network with every answer says, with this calibration of directions."""
    net = tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32, marks=True, answers=True)
    header = Header(answers={"direction": values} if values else None)
    return weights.LoadedWeights("toy", net.eval(), header).answer(x_bmd, marks_bmd=marks_bmd)


def keep(logits, doubt):
    """What a doubt leaves of logits."""
    return logits * logits.abs() / (logits.abs() + doubt)


@pytest.mark.parametrize("n_variables", [2, 3, 8])
def test_few_variables_are_doubted(tiny_net, n_variables):
    """In a table of two variables a doubt of .002 halves logits of that size; in others there is less of it."""
    x = torch.randn(2, 30, n_variables, generator=torch.Generator().manual_seed(1))
    plain, doubted = (answers_of(tiny_net, x, **values) for values in ({}, {"temperature": 2.0, "doubt": 0.002}))
    off = ~torch.eye(n_variables, dtype=torch.bool).expand(2, -1, -1)
    expected = keep(plain.direction.logit(), 0.002 * (2 / n_variables) ** 2) / 2
    assert_close(doubted.direction.logit()[off], expected[off])
    assert_close(doubted.direction + doubted.direction.mT, torch.ones_like(doubted.direction))
    assert plain.direction.std() > 1e-4
    for said, same in zip(doubted[2:], plain[2:], strict=True):
        assert torch.equal(said, same)


@pytest.mark.parametrize("doubt", [0.0, 0.5, 3.0, 1e6])
def test_a_doubt_about_paths_is_about_their_way_alone(doubt):
    there, back = 4 * torch.randn(2, 1000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = {"temperature": 1.3, "offset": -0.4}
    plain, plain_back = (values_n.div(1.3).sub(0.4).sigmoid() for values_n in (there, back))
    p, p_back = (doubt_paths(*ways, values | {"doubt": doubt}, 0.7) for ways in ((there, back), (back, there)))
    assert_close(p + p_back, plain + plain_back)
    assert ((p > p_back) == (plain > plain_back)).all()
    assert ((p - p_back).abs() <= (plain - plain_back).abs() + 1e-12).all()
    if doubt == 0:
        assert_close(p, plain)
    if doubt > 1e5:
        assert_close(p, p_back, atol=1e-3, rtol=0)


def test_two_unrelated_columns_have_no_likelier_path_than_link():
    """In a table of two a path is the link; a doubt about each way by itself gave noise paths of .47, links of .13."""
    for seed in range(5):
        result = gb.infer(np.random.default_rng(seed).normal(size=(200, 2)))
        assert result.ancestors.sum() < result.probabilities[0, 1, 1] + 0.1


def test_an_experiment_halves_the_doubt_about_what_it_set(tiny_net):
    x = torch.randn(1, 30, 4, generator=torch.Generator().manual_seed(1))
    marks = torch.zeros(1, 30, 4, dtype=torch.uint8)
    marks[0, :, 2] = MISSING  # which says nothing of experiments
    marks[0, :7, 1] = SET
    marks[0, :4, 0] = SET  # too few rows to tell anything
    plain, doubted = (answers_of(tiny_net, x, marks, **values) for values in ({}, {"temperature": 1.0, "doubt": 0.02}))
    assert weights.TELLING_ROWS == FEW_SET  # of fewer, a warning says that they hardly tell
    doubt = torch.full((4, 4), 0.005, dtype=torch.float64)
    doubt[1] = doubt[:, 1] = 0.0025
    off = ~torch.eye(4, dtype=torch.bool)
    assert_close(doubted.direction[0].logit()[off], keep(plain.direction[0].logit(), doubt)[off])


def test_calibration_shifts_and_cools():
    logits = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
    assert_close(calibrate(logits.float(), None), logits)
    calibration = Calibration(temperature=4.0, offsets=(0.5, 0.0, -1.0))
    assert_close(calibrate(logits, calibration), torch.tensor([[0.75, 0.5, -0.25]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("cells", "rows", "sizes"), [(72, 60_000, [2, 2, 1]), (1, 60_000, [1] * 5), (10**6, 30, [3, 2])]
)
def test_chunks_do_not_change_the_answer(monkeypatch, file, cells, rows, sizes):
    loaded = load_weights(file)
    x = torch.randn(5, 9, 4, generator=torch.Generator().manual_seed(1))
    whole, seen = loaded.probabilities(x), []
    loaded.network.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    monkeypatch.setattr(weights, "CELLS_PER_CHUNK", cells)
    monkeypatch.setattr(weights, "ROWS_PER_CHUNK", rows)
    assert_close(loaded.probabilities(x), whole)
    assert seen == sizes


def test_the_header_holds_the_config(net, file):
    assert EdgeNet(type(net.config).from_dict(content(file)[1]["config"])).config == net.config
    assert content(file)[1]["config"] == dataclasses.asdict(net.config)


# ── headers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_headers_round_trip(net, tmp_path):
    header = Header(
        train={"seed": 3},
        progress=RunProgress(step=3, tables=9, seconds=1.5, skipped=1, history=({"step": 3.0},), before=Effort(step=2)),
        calibration=Calibration(temperature=0.5, offsets=(1.0, 0.0, -1.0)),
        domain={"n_samples": (20.0, 500.0)},
        evidence={"offset": -1.0},
        partner=Partner(name="edges", checksum="abc"),
        notes={"blend": 0.5},
    )
    save_weights(tmp_path / "a", net, header)
    found = load_weights(tmp_path / "a").header
    named = {"kind": "edges", "config": net.config.to_dict(), "checksum": found.checksum}
    assert found == dataclasses.replace(header, **named)


@pytest.mark.parametrize("where", ["", "progress", "calibration", "partner"])
def test_unknown_fields_of_a_header_are_refused(file, where):
    tensors, header = content(file)
    part = header.get(where, {}) | {"colour": "red"}
    rewrite(file, tensors, header | ({where: part} if where else part))
    with pytest.raises(WeightsError, match="colour"):
        load_weights(file)


@each("change", [
    {"answers": {"hidden": 3}}, {"answers": {"hidden": {"offset": "x"}}}, {"evidence": [1]},
    {"evidence": {"offset": "x"}}, {"calibration": {"temperature": 0}}, {"calibration": {"temperature": "x"}},
    {"calibration": {"offsets": ["x"]}},
    {"domain": {"n_samples": [1]}},
])  # fmt: skip
def test_what_a_header_says_of_answers_is_numbers(file, change):
    tensors, header = content(file)
    rewrite(file, tensors, header | change)
    with pytest.raises(WeightsError, match="no usable header"):
        load_weights(file)


def test_headers_of_the_first_format_are_understood(file):
    tensors, header = content(file)
    old = {
        "format": 1,
        "kind": "weights",
        "network": "edge",
        "config": header["config"],
        "calibration": {"temperature": 3.0, "offset": 0.25},
        "progress": {"step": 5, "before": {"step": 4}},
        "fine_tuned": {"steps": 7},
    }
    rewrite(file, tensors, old)
    found = load_weights(file).header
    assert (found.kind, found.notes) == ("edges", {"fine_tuned": {"steps": 7}})
    assert found.calibration == Calibration(temperature=3.0, offsets=(0.25,))
    assert found.progress.total().step == 9
    rewrite(file, tensors, {"format": 1, "config": header["config"]})  # the oldest files
    assert load_weights(file).header.kind == "edges"
    rewrite(file, tensors, old | {"network": "collider"})
    assert read_tensors(file)[1].kind == "immoralities"


def test_shipped_evidence_was_fitted_to_the_shipped_edges():
    """New edge weights need new evidence: release the collider weights again after them."""
    edges, colliders = load_weights("edges"), load_colliders("colliders")
    assert colliders.header.evidence
    assert fits_partner(colliders.header, edges.header)


def test_evidence_belongs_to_one_partner():
    edges, fitted = Header(checksum="abc"), Header(evidence={"offset": 1.0}, partner=Partner(name="e", checksum="abc"))
    assert fits_partner(fitted, edges)
    assert not fits_partner(fitted, Header(checksum="abd"))
    assert not fits_partner(fitted, Header())  # weights that are not on disk, such as fine-tuned ones
    assert not fits_partner(dataclasses.replace(fitted, partner=None), edges)
    assert fits_partner(Header(), Header())  # nothing was fitted


def test_loading_spends_no_random_number_of_the_caller(file):
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    load_weights(file)
    assert torch.equal(torch.rand(4), expected)
