import numpy as np
import pytest

import graphbam as gb
from beliefs import beliefs, make_result
from graphbam.errors import ResultError


def test_the_blanket_of_a_known_graph():
    result = beliefs("a>b b>c d>c c>e")
    assert set(result.markov_blanket("b").variables) == {"a", "c", "d"}  # d: the other parent of c
    assert set(result.markov_blanket("e").variables) == {"c"}
    assert "d" in result.markov_blanket("b")
    table = result.markov_blanket("b").table.set_index("variable")
    assert table.loc["c", "child"] > 0.9
    assert table.loc["d", "spouse"] > 0.9


def test_parts_sum_up_and_members_are_those_of_the_moral_graph(sachs):
    for name in sachs.names[:4]:
        for cut in ({}, {"threshold": 0.2}, {"fdr": 0.05}):
            blanket = sachs.markov_blanket(name, **cut)
            table = blanket.table
            assert np.allclose(table["parent"] + table["child"] + table["open"], table["linked"])
            assert np.allclose(table["linked"] + table["spouse"], table["probability"])
            neighbours = {
                b if a == name else a for a, b in sachs.moral_graph(**cut).undirected_edges() if name in (a, b)
            }
            assert set(blanket.variables) == neighbours == set(table["variable"][table["member"]])
            assert table["probability"].is_monotonic_decreasing


def test_without_directions_nothing_is_said_of_them():
    blanket = make_result({("a", "b"): 0.9}).markov_blanket("a")
    assert "parent" not in blanket.table
    assert "direction" not in str(blanket)


def test_words_name_the_likelier_part():
    text = str(make_result({("a", "b"): 0.9}, moral={("a", "c"): 0.8}).markov_blanket("a"))
    assert "b  0.90  mostly by a link (0.90)" in text
    assert "c  0.82  mostly through a common child only (0.80)" not in text
    assert "c  0.80  mostly through a common child only (0.80)" in text
    assert str(make_result({}).markov_blanket("a")) == "Markov blanket of a, 0 variables at p ≥ 0.5"


def test_a_target_of_false_links_is_one_of_all_pairs():
    links = {("a", "b"): 0.6, ("c", "d"): 1.0, ("c", "e"): 1.0, ("d", "e"): 1.0}
    text = str(make_result(links).markov_blanket("a", fdr=0.1))
    said = (
        "Markov blanket of a, 1 variable with at most 10 % expected false among all pairs of the table, 0.4 of these:"
    )
    assert text.splitlines()[0] == said


def test_members_that_hide_behind_each_other_are_told_of():
    text = str(make_result(dict.fromkeys([("a", "b"), ("a", "c"), ("a", "d")], 0.4)).markov_blanket("a"))
    assert text.startswith("Markov blanket of a, 0 variables at p ≥ 0.5\n")
    assert "About 1 more is expected among the 4 others, likeliest: b 0.40, c 0.40, d 0.40" in text


def test_who_shares_a_hidden_cause_tells_more_and_is_named(rng):
    """a → x ← hidden → y ← b: given a alone, y still tells about x."""
    hidden_dd = np.zeros((5, 5))
    for j, p in ((1, 0.9), (2, 0.7), (3, 0.6), (4, 0.55)):
        hidden_dd[0, j] = hidden_dd[j, 0] = p
    blanket = make_result({("a", "b"): 0.95}, hidden_causes=hidden_dd).markov_blanket("a")
    assert blanket.variables == ("b",)  # a link says that already
    assert str(blanket).endswith(
        "A hidden common cause is suspected with c 0.70, d 0.60, e 0.55: they may tell more, whatever the others say"
    )
    assert blanket.table.set_index("variable")["hidden"].to_dict() == {"b": 0.9, "c": 0.7, "d": 0.6, "e": 0.55}
    assert "hidden" not in make_result({("a", "b"): 0.95}).markov_blanket("a").table
    other = make_result({("a", "b"): 0.95}, hidden_causes=hidden_dd).markov_blanket("b")
    assert "suspected with a" not in str(other)
    e_m5 = rng.exponential(size=(800, 5))
    x_m, y_m = e_m5[:, 0] + 0.7 * e_m5[:, 1] + 0.5 * e_m5[:, 3], e_m5[:, 0] + 0.7 * e_m5[:, 2] + 0.5 * e_m5[:, 4]
    found = gb.infer({"x": x_m, "y": y_m, "a": e_m5[:, 1], "b": e_m5[:, 2]}).markov_blanket("x")
    assert "suspected with y" in str(found)


def test_an_unknown_variable_is_refused():
    with pytest.raises(ResultError, match="no variable 'x'"):
        make_result({}).markov_blanket("x")
