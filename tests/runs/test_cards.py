"""runs/cards.py: tables of the model card, from what was measured."""

import pandas as pd
import pytest


@pytest.fixture
def cards(run_script):
    return run_script("cards", run_name="cards")


def write_answers(cards, folder):
    """What runs/bench_answers.py leaves: two families, and every score one half; every other one met its target."""
    scores = {"skeleton_ap": [0.5, 1.0, 0.25], "moral_ap": [0.5, 0.5, None]}
    table = pd.DataFrame({"family": ["two", "two", "one"], **dict.fromkeys(cards["ANSWERS"], 0.5)} | scores)
    table.to_csv(folder / "tables.csv", index=False)
    lines = [
        {"section": section, "score": score, "target": "≥ 0.4", "measured": 0.5, "met": ("yes", "no")[number % 2]}
        for section, names in cards["MEASURED"].values()
        for number, score in enumerate(names)
    ]
    pd.DataFrame(lines).to_csv(folder / "targets.csv", index=False)


def test_a_card_has_families_worst_first_and_targets_that_were_met_in_bold(cards, tmp_path):
    write_answers(cards, tmp_path)
    page = tmp_path / "card.md"
    page.write_text("".join(f"<!-- {name} -->\nold\n<!-- end of {name} -->\n" for name in ("families", "targets")))
    cards["show_answers"](tmp_path, page)
    lines = page.read_text(encoding="utf-8").splitlines()
    assert "old" not in lines
    assert lines[3:6] == [
        "| one | 1 | .25 |  | .50 | .50 | .50 | .50 | .50 |",
        "| two | 2 | .75 | .50 | .50 | .50 | .50 | .50 | .50 |",
        "| **mean over families** | 3 | **.500** | **.500** | **.500** | **.500** | **.500** | **.500** | **.500** |",
    ]
    assert "| … directed AP, AUROC | ≥ .4, ≥ .4 | **.500**, .500 |" in lines


def test_a_score_that_was_not_measured_is_missed(cards, tmp_path):
    write_answers(cards, tmp_path)
    some = pd.read_csv(tmp_path / "targets.csv").query("section != 'pairs'")
    some.to_csv(tmp_path / "targets.csv", index=False)
    with pytest.raises(KeyError, match="pairs"):
        cards["show_answers"](tmp_path, None)
