import dataclasses
import json

import pytest

from cases import each
from graphbam.errors import ConfigError
from graphbam.simulation import GRAPHS, MECHANISMS, NOISES, PRESETS, UNSEEN, SimulationConfig


@each("name", PRESETS)
def test_presets_survive_json(name):
    config = SimulationConfig.preset(name)
    assert SimulationConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@each("name", PRESETS)
def test_unseen_families_are_in_no_preset(name):
    assert not set(UNSEEN) & set(SimulationConfig.preset(name).mechanisms)
    assert set(UNSEEN) == {"sigmoid", "postnonlinear", "tree"}


def test_broad_holds_everything_else():
    broad = SimulationConfig.broad()
    assert set(broad.mechanisms) == set(MECHANISMS) - set(UNSEEN)
    assert set(broad.graphs) == set(GRAPHS)
    assert set(broad.noises) == set(NOISES)
    assert sum(broad.mechanisms.values()) == pytest.approx(1)
    assert sum(broad.degrees.values()) == pytest.approx(1)
    assert broad.graphs["erdos-renyi"] == 0.5


def test_the_paper_preset_holds_the_papers_values():
    paper = SimulationConfig.paper()
    assert paper.mechanisms == {"chebyshev": 1.0}
    assert paper.graphs == {"erdos-renyi": 1.0}
    assert paper.noises == {"mixture": 1.0}
    assert paper.noise_share == (0.1, 0.4)
    assert paper.max_parents is None
    assert set(paper.degrees) == {1, 2, 3, 4, 5}


@each(
    ("changes", "message"),
    [
        ({"mechanisms": {"sinus": 1.0}}, r"mechanism='sinus' is unknown; choose from chebyshev, cosine"),
        ({"graphs": {"tree": 1.0}}, r"graph='tree' is unknown; choose from bipartite-layers, erdos-renyi"),
        ({"noises": {"cauchy": 1.0}}, r"noise='cauchy' is unknown; choose from exponential, gaussian"),
        ({"noises": {}}, "names nothing to draw from"),
        ({"noises": {"gaussian": 0.0}}, "all zero"),
        ({"noises": {"gaussian": -1.0}}, "finite number of at least 0"),
        ({"noises": {"gaussian": float("nan")}}, "finite number of at least 0"),
        ({"degrees": {0: 1.0}}, "must be positive"),
        ({"degrees": {"many": 1.0}}, "not a number"),
        ({"degrees": {}}, "names nothing"),
        ({"degrees": {2: 0.0}}, "all zero"),
        ({"noise_share": (0.5, 0.1)}, "no range"),
        ({"noise_share": (0.5,)}, "no range"),
        ({"weight_range": (0.0, 1.0)}, "no range above zero"),
        ({"weight_range": (2.0, 1.0)}, "no range above zero"),
        ({"same_sign": -0.1}, r"same_sign=-0.1 is outside \[0, 1\]"),
        ({"chebyshev": "exact"}, "choose from broad, literal, paper"),
        ({"mixing": "half"}, "choose from literal, unit"),
        ({"clip": "none"}, "choose from hard, soft"),
        ({"skewed": 1.5}, r"skewed=1.5 is outside \[0, 1\]"),
        ({"denominator_floor": 0.0}, "denominator_floor"),
        ({"max_parents": 0}, "leaves no edge"),
    ],
)
def test_wrong_values_are_refused_by_name(changes, message):
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(SimulationConfig(), **changes)


def test_unknown_keys_and_presets_are_refused():
    with pytest.raises(ConfigError, match="no field 'zoom'; it has mechanisms"):
        SimulationConfig.from_dict({"zoom": 1})
    with pytest.raises(ConfigError, match="choose from broad, broad-1, literal, paper, textbook"):
        SimulationConfig.preset("wide")


def test_narrow_fixes_only_what_it_is_told():
    cell = SimulationConfig.broad().narrow(mechanism="sine", graph="geometric", degree=3, noise="laplace")
    assert cell.mechanisms == {"sine": 1.0}
    assert cell.per_node_mechanisms == 0
    assert cell.graphs == {"geometric": 1.0}
    assert cell.degrees == {3.0: 1.0}
    assert cell.noises == {"laplace": 1.0}
    assert cell.noise_share == SimulationConfig.broad().noise_share
    assert SimulationConfig.broad().narrow() == SimulationConfig.broad()


@each("name", ["paper", "textbook", "broad"])
def test_other_shares_of_some_worlds_leave_all_other_tables_in_proportion(name):
    before = SimulationConfig.preset(name)
    after = before.with_shares({"levels": 0.1, "counts": 0.2})
    assert (after.worlds["levels"], after.worlds["counts"]) == (0.1, 0.2)
    for d in (3, 30):
        old, new = before.worlds_at(d), after.worlds_at(d)
        kept = {world: new[world] / old[world] for world in old if world != "counts"}
        kept["no world"] = (1 - sum(new.values())) / (1 - sum(old.values()))
        assert max(kept.values()) == pytest.approx(min(kept.values()))
    assert after.with_shares({"levels": 0.0, "counts": 1.0}).worlds == {
        world: float(world == "counts") for world in after.worlds
    }
    assert SimulationConfig(worlds={"counts": 1.0}).with_shares({"counts": 0.5}).worlds == {"counts": 0.5}
    assert before.with_shares({}) == before
