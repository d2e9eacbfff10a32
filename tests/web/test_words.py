"""What the page says is in its own words: a setting that it has is not spelled as in Python or as an option."""

import numpy as np
import pandas as pd
import pytest

from cases import each
from graphbam.errors import ConfigError, Setting
from graphbam.web.preview import look
from graphbam.web.words import CHOICES, KNOWN, clean_name, read_choices, spell_error, spell_setting


def test_every_choice_has_words_of_its_own():
    for name in (*CHOICES, *KNOWN):
        words = spell_setting(Setting(name))
        assert isinstance(words, str)
        assert not {"_", "=", "-"} & set(words)


@each(
    ("setting", "chosen"),
    [
        (Setting("encode", True), {"encode": True}),
        (Setting("drop", ["a", "b"]), {"drop": ["a", "b"]}),
        (Setting("missing", "impute"), {"missing": "impute"}),
    ],
)
def test_a_button_makes_a_choice_that_the_page_may_send(setting, chosen):
    button = spell_setting(setting)
    assert button["set"] == chosen == read_choices(button["set"])


def test_what_the_page_has_no_place_for_is_said_as_a_command():
    words = spell_error(ConfigError("use ", Setting("max_rows", 100), "."))
    assert words == ["use graphbam infer --max-rows 100 on the command line."]


def test_notes_on_a_table_name_what_the_page_has():
    """They named settings of Python and of the command line, beside ticks that do the same."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 3)).cumsum(axis=0), columns=list("abc")).assign(what=["a", "b"] * 150)
    table.loc[::9, "b"] = -9999
    seen = look("t.csv", table.to_csv(index=False).encode(), {"encode": True}, None)
    said = " ".join([*seen["plan"], *seen["warnings"]])
    for place in ("“keep −999 and the like as numbers”", "“rows are independent”", "“what was set in each row”"):
        assert place in said
    assert "_" not in said
    assert "--" not in said


def test_defaults_are_not_sent_on():
    nothing = {"encode": False, "drop": [], "interventions": None, "stability": 0, "required": [], "tiers": [[]]}
    assert read_choices(nothing) == {"encode": False}


@each(
    "sent", [{"required": [["a", "->"]]}, {"required": [[1, 2, 3]]}, {"drop": [1]}, {"missing": "error"}, None, {1: 2}]
)
def test_odd_choices_are_refused(sent):
    with pytest.raises(ConfigError, match="Load the page again"):
        read_choices(sent)


@each("name", ["", ".", "..", "/", "a/../..", "\\\\host\\", "\x00", "x" * 5000, "\ud800.csv"])
def test_names_are_short_and_lead_nowhere(name):
    clean = clean_name(name)
    assert 0 < len(clean) <= 120
    assert not set(clean) & set("/\\\x00\ud800")
    assert clean.strip(".")
