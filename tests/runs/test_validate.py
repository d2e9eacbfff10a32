"""runs/validate.py: what it judges is what a user gets."""

import numpy as np
import pandas as pd
import pytest
import torch

import graphbam as gb
from graphbam.graphs.graph import edge_classes
from graphbam.nn.weights import save_weights
from graphbam.training.objectives import edge_loss
from standins import save_toy_colliders


@pytest.fixture
def files(tiny_net, tmp_path):
    """Toy weights of both networks."""
    edges = tmp_path / "edges.safetensors"
    save_weights(edges, tiny_net(torch.Generator().manual_seed(0), dtype=torch.float32))
    return edges, save_toy_colliders(tmp_path / "colliders.safetensors")


def test_third_party_tables_are_answered_as_for_users(run_script, files, tmp_path):
    """A constant column is nobody's neighbour; a network that is asked directly does not know."""
    edges, colliders = files
    folder = tmp_path / "data" / "chain"
    folder.mkdir(parents=True)
    x_md = np.random.default_rng(0).normal(size=(60, 4)).cumsum(axis=1)
    x_md[:, 3] = 1.0
    pd.DataFrame(x_md, columns=list("abcd")).to_csv(folder / "data.csv", index=False)
    (folder / "graph.csv").write_text("source,target\na,b\nb,c\n")
    (tmp_path / "data" / "manifest.csv").write_text("name,family,acyclic\nchain,toys,yes\n")
    words = ["--shapes", "--tables", tmp_path / "data", "--colliders", colliders, "-o", tmp_path / "out"]
    run_script("validate", edges, *words)
    (row,) = pd.read_csv(tmp_path / "out" / "scores.csv").to_dict("records")
    p_dd3 = gb.infer(x_md, weights=edges, colliders=None).probabilities
    classes = edge_classes(np.eye(4, k=1, dtype=np.int8) * [[1], [1], [0], [0]])
    loss = edge_loss(torch.tensor(p_dd3).clamp_min(1e-12).log()[None], torch.tensor(classes)[None].long()).total()
    assert row["loss"] == pytest.approx(loss.item(), abs=1e-4)
    assert "shd" in row


def test_cells_are_scored_and_become_tables_of_the_card(run_script, files, tmp_path, capsys):
    words = ["--shapes", "5x40", "--mechanisms", "linear", "hill", "--per-cell", 2, "-o", tmp_path / "out"]
    run_script("validate", files[0], "--baselines", "partial-correlation", *words)
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert len(scores) == 2 * 2 * 2
    assert scores["skeleton_ap"].between(0, 1).all()
    capsys.readouterr()
    run_script("cards", tmp_path / "out" / "scores.csv")
    text = capsys.readouterr().out
    assert "| mechanism | 5, 40 |" in text
    assert "| hill (unseen) |" in text or "| hill |" in text
