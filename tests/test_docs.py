"""What the pages under docs/ tell users to type does what they say."""

import re
from pathlib import Path

import numpy as np
import pytest

from standins import Contrast

DOCS = Path(__file__).resolve().parents[1] / "docs"


def read_blocks(name):
    """Python blocks of a page, in order."""
    return re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("colliders", ["stand-in", "shipped"])
def test_directions_lead_to_an_effect(tmp_path, monkeypatch, colliders):
    pytest.importorskip("dowhy")
    monkeypatch.chdir(tmp_path)
    if colliders == "stand-in":
        monkeypatch.setattr("graphbam.inference.networks.open_colliders", lambda colliders, device: Contrast())
    scope = {}
    for block in read_blocks("directions.md"):
        exec(block, scope)
    arrows = {("lottery", "training"), ("talent", "training"), ("talent", "wage"), ("training", "wage")}
    assert set(scope["graph"].directed_edges()) == arrows <= set(scope["known"].cpdag().directed_edges())
    assert scope["effects"] == pytest.approx([2], abs=0.1)
    plain = np.polyfit(scope["training"], scope["wage"], 1)[0]
    assert plain == pytest.approx(3, abs=0.15)
    assert {path.name for path in tmp_path.iterdir()} == {"wages.png", "wages.graphml"}
