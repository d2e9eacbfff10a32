"""Which networks are used, how they are recorded, and what happens when memory or threads are short."""

from __future__ import annotations

import dataclasses
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import graphbam as gb
from cases import each
from graphbam.errors import ConfigError, WeightsError
from graphbam.inference.networks import describe_device, open_weights
from graphbam.nn.weights import Header, Partner, load_weights, read_tensors, save_weights
from graphbam.result import OrientationMissingError
from standins import Contrast, Failing, PartialCorrelation, arrows_of


def test_rows_of_a_long_table_see_no_more_than_those_of_training(frame, tiny_path):
    """The header says how many these are. The network is told of no more, and nobody is warned of their number."""
    plain = load_weights(tiny_path)
    short = dataclasses.replace(plain, header=dataclasses.replace(plain.header, domain={"n_samples": (20.0, 50.0)}))
    assert (plain.longest(4), short.longest(4)) == (None, 50)
    x_bmd = torch.randn(2, 120, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(short.logits(x_bmd), plain.network(x_bmd, [50.0, 50.0], piece=50))
        torch.testing.assert_close(short.logits(x_bmd[:, :50]), plain.logits(x_bmd[:, :50]), rtol=0, atol=0)
    assert not torch.allclose(short.logits(x_bmd), plain.logits(x_bmd))
    result = gb.infer(frame, weights=short)
    assert len(frame) == 120
    assert result.domain["verdict"] == "inside"
    assert result.domain["features"]["n_samples"] == 50


def test_wide_tables_are_shown_fewer_rows_at_a_time_than_narrow_ones(tiny_path):
    """As in training, where the cells of a table are limited; wider tables than there are taken for its widest."""
    plain = load_weights(tiny_path)
    train = {"samples": [50, 7500], "variables": [2, 120], "largest_table": 180_000}
    limited = dataclasses.replace(plain, header=dataclasses.replace(plain.header, train=train))
    assert [limited.longest(d) for d in (2, 24, 50, 120, 1000)] == [7500, 7500, 3600, 1500, 1500]
    old = dataclasses.replace(plain, header=dataclasses.replace(plain.header, train={"samples": [50, 1500]}))
    assert [old.longest(d) for d in (2, 1000)] == [1500, 1500]


def test_weights_are_recorded_by_name_or_path_with_device_and_precision(frame, tiny_path, monkeypatch):
    monkeypatch.chdir(tiny_path.parent)
    monkeypatch.setattr("graphbam.inference.networks.has_bfloat16", lambda: False)
    known = gb.infer(frame, weights=tiny_path.name, colliders=None).provenance
    assert known["weights"] == str(tiny_path)
    loaded = gb.infer(frame, weights=load_weights(tiny_path)).provenance
    assert (loaded["weights"], loaded["checksum"]) == (str(tiny_path), known["checksum"])
    assert (known["device"], known["precision"]) == ("cpu", "float32")
    monkeypatch.setattr("graphbam.inference.networks.has_bfloat16", lambda: True)
    known = gb.infer(frame, device="cpu").provenance
    assert known["precision"] == "float32, products in bfloat16"
    assert (known["weights"], len(known["checksum"])) == ("edges", 64)
    assert gb.infer(frame, weights=PartialCorrelation()).provenance["device"] is None


def test_the_machine_is_measured_only_for_listeners(frame, tiny_path, monkeypatch):
    monkeypatch.setattr("graphbam.nn.cost.measure_speed", lambda: pytest.fail("nobody asked how long it takes"))
    gb.infer(frame, weights=tiny_path)


def test_a_gpu_is_recorded_with_its_name_and_precision(monkeypatch):
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: "A GPU")
    network = SimpleNamespace(parameters=lambda: iter([SimpleNamespace(device=torch.device("cuda:0"))]))
    for mixed, precision in ((True, "float32, observations in bfloat16"), (False, "float32")):
        network.mixed_precision = mixed
        known = describe_device(SimpleNamespace(network=network))
        assert known == {"device": "cuda:0 (A GPU)", "precision": precision}


def test_threads_match_the_work_and_are_given_back(frame, tiny_path, monkeypatch):
    used, loaded = [], load_weights(tiny_path)
    forward = loaded.network.forward
    monkeypatch.setattr(loaded.network, "forward", lambda x: (used.append(torch.get_num_threads()), forward(x))[1])
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        gb.infer(frame, weights=loaded)
        monkeypatch.setattr("graphbam.nn.cost.OPERATIONS_PER_THREAD", 1.0)
        gb.infer(frame, weights=loaded)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert used == [1, 2]


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 900 GiB"),
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:82] data. DefaultCPUAllocator: not enough memory: you tried"),
]


@each("error", OUT_OF_MEMORY, ids=repr)
def test_memory_that_runs_out_is_explained(frame, error):
    with pytest.raises(ConfigError, match="120 rows × 5 variables do not fit into memory"):
        gb.infer(frame, weights=Failing(error))


def test_other_errors_are_not_taken_for_a_lack_of_memory(frame):
    error = RuntimeError("required rank 4 tensor to use channels_last memory format")
    with pytest.raises(RuntimeError, match="channels_last"):
        gb.infer(frame, weights=Failing(error))


def test_directions_can_be_switched_off(collider_frame, toy_colliders):
    with_them = gb.infer(collider_frame, colliders=toy_colliders)
    result = gb.infer(collider_frame, colliders=None)
    assert result.colliders is None
    assert result.provenance["colliders"] is None
    assert np.array_equal(result.probabilities, with_them.probabilities)
    assert result.graph() == result.skeleton()
    with pytest.raises(OrientationMissingError, match="Infer again with weights"):
        result.cpdag()
    asked = gb.infer(collider_frame, colliders=toy_colliders, directions="none")
    with pytest.raises(OrientationMissingError, match="Infer again without directions='none', or use"):
        asked.arrows()
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


def test_weights_in_the_package_are_used_unasked(collider_frame, toy_colliders, shipped):
    expected = arrows_of(gb.infer(collider_frame, colliders=toy_colliders))
    asked = {"directions": "two-step"}
    assert arrows_of(gb.infer(collider_frame, **asked)) == expected
    assert arrows_of(gb.infer_many([collider_frame], **asked)[0]) == expected
    assert arrows_of(gb.BAM(**asked).fit(collider_frame).result_) == expected
    assert gb.BAM(colliders=None).fit(collider_frame).result_.colliders is None


@pytest.fixture
def opened(monkeypatch):
    """Names of the weights that were read from files so far."""
    names = []

    def note(path):
        names.append(path.stem)
        return read_tensors(path)

    monkeypatch.setattr("graphbam.nn.weights.read_tensors", note)
    return names


def test_many_tables_share_networks_that_are_loaded_once(frame, shipped, opened):
    gb.infer_many([frame, frame[:100], frame[list("abc")]], directions="two-step")
    assert opened == ["edges", "colliders"]


def test_a_package_that_lost_its_weights_says_so(frame, shipped, tmp_path):
    (tmp_path / "colliders.safetensors").unlink()
    asked = {"directions": "two-step"}
    for infer in (gb.infer, lambda table, **asked: gb.infer_many([table], **asked), lambda t, **a: gb.BAM(**a).fit(t)):
        with pytest.raises(WeightsError, match="no weights named 'colliders'"):
            infer(frame, **asked)
    assert gb.infer(frame).directions is not None  # nobody needs them there
    assert gb.infer(frame, colliders=None).colliders is None


@each(("colliders", "error", "says"), [
    ("nope", WeightsError, "no weights named 'nope'"),
    ("edges", WeightsError, "holds weights of kind 'edges', but 'immoralities' is needed"),
    (7, ConfigError, "colliders=7 are no collider weights"),
])  # fmt: skip
def test_what_is_no_collider_network_is_refused(frame, colliders, error, says):
    with pytest.raises(error, match=says):
        gb.infer(frame, colliders=colliders)


def test_a_table_that_does_not_fit_is_refused_before_the_network_runs(frame, tiny_path, monkeypatch):
    monkeypatch.setattr("graphbam.nn.cost.free_memory", lambda: 1e3)
    with pytest.raises(ConfigError, match="GB of memory"):
        gb.infer(frame, weights=tiny_path)
    one, other = gb.infer_many([frame, frame], weights=tiny_path)
    assert not one
    assert not other


def test_weights_are_read_again_only_if_their_file_changed(tiny_path, tmp_path):
    path = tmp_path / "own.safetensors"
    shutil.copy(tiny_path, path)
    before = open_weights(path)
    assert open_weights(str(path)) is before
    with torch.no_grad():
        changed = load_weights(path)
        changed.network.head.classes.bias += 1
    save_weights(path, changed.network, changed.header)
    after = open_weights(path)
    assert after.header.checksum != before.header.checksum
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(WeightsError, match=r"own\.safetensors"):
        open_weights(path)
