import dataclasses

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from beliefs import beliefs, make_result
from cases import each
from graphbam.errors import ResultError
from graphbam.graphs.knowledge import Knowledge


def rows_of(rng, n_rows=800):
    """a → b → c, a → d ← c, e alone."""
    a, *noise, e = rng.normal(size=(5, n_rows))
    b = a + noise[0]
    c = b + noise[1]
    x_md = np.column_stack([a, b, c, a + c + noise[2], e])
    return (x_md - x_md.mean(axis=0)) / x_md.std(axis=0)


@pytest.fixture
def known(rng):
    return beliefs("a>b b>c a>d c>d", sample=rows_of(rng))


def test_the_variable_between_two_explains_them(known):
    reasons = known.why("a", "c")
    assert reasons.explained_by == ("b",)
    assert "b could explain it" in str(reasons)
    assert reasons.edge == ""


def test_a_true_link_is_not_explained(known):
    reasons = known.why("a", "b")
    assert reasons.explained_by == ()
    assert "could explain it" not in str(reasons)
    assert "A direct link is very likely (0.99)" in str(reasons)


def test_unrelated_variables_go_together_as_chance_has_it(known):
    text = str(known.why("b", "e"))
    assert "which chance alone could give" in text
    assert "A direct link is very unlikely (0.02)" in text
    assert "explain" not in text


def test_a_common_child_that_is_held_brings_parents_together(rng):
    a, b, e, *rest = rng.normal(size=(5, 800))
    result = beliefs("a>c b>c", sample=np.column_stack([a, b, a + b + 0.3 * e, *rest]))
    text = str(result.why("a", "b"))
    assert "If they have a common child, c is the likeliest." in text
    assert "It grows when others are held" in text


def test_the_table_starts_without_others_and_ends_with_all(known):
    table = known.why("a", "c").table
    assert table["given"].iloc[0] == ()
    assert set(table["given"].iloc[-1]) == {"b", "d", "e"}
    x_md = known.sample
    assert table["pearson"].iloc[0] == pytest.approx(np.corrcoef(x_md[:, 0], x_md[:, 2])[0, 1])
    precision = np.linalg.inv(np.corrcoef(x_md.T))
    partial = -precision[0, 2] / np.sqrt(precision[0, 0] * precision[2, 2])
    assert table["pearson"].iloc[-1] == pytest.approx(partial)


def test_both_sides_give_the_same_reasons(sachs):
    for a, b in (("Raf", "Mek"), ("PKA", "Erk"), ("Jnk", "Akt")):
        there, back = sachs.why(a, b), sachs.why(b, a)
        assert (there.forward, there.backward) == (back.backward, back.forward)
        assert there.explained_by == back.explained_by
        assert there.table["curve"].to_numpy() == pytest.approx(back.table["curve"].to_numpy())
        assert {there.edge, back.edge} in ({"->", "<-"}, {"--"}, {""})


def test_bent_links_are_called_so(rng):
    a, e = rng.normal(size=(2, 600))
    text = str(
        make_result({("a", "b"): 0.9}, names=("a", "b"), sample=np.column_stack([a, a**2 + 0.3 * e])).why("a", "b")
    )
    assert "along a curve 0.9" in text
    assert "chance" not in text


def test_where_correlations_and_the_network_differ_it_is_said(rng):
    x_md = rows_of(rng)
    sure = make_result({("a", "c"): 0.9}, sample=x_md)
    assert "need no link: the network sees more than they do, or it is wrong" in str(sure.why("a", "c"))
    assert "do not show the link" in str(make_result({("b", "e"): 0.9}, sample=x_md).why("b", "e"))


def test_what_was_not_asked_is_not_said(rng):
    text = str(make_result({("a", "b"): 0.9}, sample=rows_of(rng)).why("a", "b"))
    assert "Directions were not asked for." in text
    assert "This answer cannot say whether a hidden common cause is behind it" in text
    assert "resamples" not in text
    assert "training" not in text


def test_what_is_known_is_said():
    half = np.full((5, 5), 0.5)
    result = beliefs(
        "a>b", hidden_causes=0.3 * np.ones((5, 5)), stability=half, domain={"verdict": "outside"},
        directions=half, compelled=0.1 * np.ones((5, 5)),
    )  # fmt: skip
    text = str(result.why("a", "b"))
    assert "A hidden common cause of the two has probability 0.30." in text
    assert "found in 50% of the resamples" in text
    assert "unlike those of training" in text
    assert "a → b 0.10, b → a 0.10, open, since what depends on what does not tell, 0.80" in text


def test_an_open_link_says_which_way_it_rather_points():
    way_dd, said_dd = np.full((5, 5), 0.5), np.full((5, 5), 0.01)
    way_dd[0, 1], way_dd[1, 0] = 0.02, 0.98
    result = make_result({("a", "b"): 0.9, ("a", "c"): 0.2}, directions=way_dd, compelled=said_dd)
    assert "If one must be named: b → a (0.98)" in str(result.why("a", "b"))
    assert "If one must be named: b → a (0.98)" in str(result.why("b", "a"))
    assert "must be named" not in str(result.why("a", "c"))  # no link is drawn
    assert "must be named" not in str(make_result({("a", "b"): 0.9}).why("a", "b"))


@each(("known", "word"), [({"required": ["a -- b"]}, "required"), ({"forbidden": ["a -- b"]}, "forbidden")])
def test_what_the_user_decided_is_not_sold_as_evidence(known, word):
    knowledge = Knowledge(**known)
    p = knowledge.apply(tuple("abcde"), make_result({}).probabilities)
    text = str(gb.Result(tuple("abcde"), p, knowledge=knowledge).why("a", "b"))
    assert f"a direct link was {word}, whatever the data say" in text
    assert "likely" not in text


def test_a_direction_that_knowledge_decides_is_not_sold_as_evidence():
    result, known = beliefs("a>b b>c"), Knowledge(forbidden=["b -> a", "a -- c"])
    p = known.apply(result.names, result.probabilities)
    result = dataclasses.replace(result, probabilities=p, knowledge=known)
    assert "If there is a link, prior knowledge says that it is a → b." in str(result.why("b", "a"))
    assert "If there is a link: b → c" in str(result.why("b", "c"))
    told = str(result.why("a", "c"))
    assert "forbidden" in told
    assert "If there is a link" not in told


def test_forced_arrows_are_called_so(sachs):
    graph = sachs.cpdag()
    place = {name: k for k, name in enumerate(graph.names)}
    for a, b in graph.directed_edges():
        says_so = "only because its other links need it" in str(sachs.why(a, b))
        assert says_so == graph.forced[place[a], place[b]]


def test_links_left_open_against_the_odds_are_called_so():
    for back, says in ((0.8, "although on its own b → a is likelier"), (0.2, "leaves the direction open.")):
        arrow_dd = np.array([[0.5, 0.1], [0.9, 0.5]])
        said_dd = np.array([[0.0, 0.1], [back, 0.0]])
        result = make_result({("a", "b"): 0.9}, names=("a", "b"), directions=arrow_dd, compelled=said_dd)
        assert says in str(result.why("a", "b"))


def test_the_picture_has_the_pair_with_and_without_others(known, tmp_path):
    reasons = known.why("a", "c")
    figure = reasons.plot(tmp_path / "why.png")
    assert [axes.get_title() for axes in figure.axes] == ["as they are", "given b"]
    assert (tmp_path / "why.png").stat().st_size > 1000
    page = reasons._repr_html_()
    assert page.count("<img") == 1
    assert "b could explain it" in page


def test_without_rows_words_remain(tmp_path):
    reasons = make_result({("a", "b"): 0.9}).why("a", "b")
    assert "Correlations are not known" in str(reasons)
    assert len(reasons.table) == 0
    assert "<img" not in reasons._repr_html_()
    with pytest.raises(ResultError, match="no rows to draw"):
        reasons.plot()


def test_names_are_written_safely():
    result = make_result({}, names=("<a>", "b & c"))
    assert "&lt;a&gt; and b &amp; c" in result.why("<a>", "b & c")._repr_html_()


def test_pictures_take_names_with_dollars(known, tmp_path):
    names = [f"{name}_$" for name in known.names]
    reasons = dataclasses.replace(known, names=tuple(names)).why(names[0], names[2])
    reasons = dataclasses.replace(
        reasons, steps=(reasons.steps[0], dataclasses.replace(reasons.steps[-1], given=tuple(names[3:])))
    )
    figure = reasons.plot(tmp_path / "pair.png")
    assert figure.axes[1].get_title() == "given d_$ and e_$"


def test_wide_tables_with_few_rows_hold_the_likeliest_neighbours(rng):
    frame = pd.DataFrame(rng.normal(size=(40, 30))).rename(columns=str)
    result = gb.Result(tuple(frame), np.tile([0.8, 0.2, 0.0], (30, 30, 1)), sample=frame.to_numpy())
    reasons = result.why("0", "1")
    assert len(reasons.steps[-1].given) == 4
    assert "the 4 likeliest neighbours" in str(reasons)
    fewer = dataclasses.replace(result, sample=result.sample[:12])
    assert "Given the likeliest neighbour, linearly" in str(fewer.why("0", "1"))


def test_two_together_explain_what_neither_does(rng):
    """e → a ← b, a → c, b → c: holding a alone ties e to b."""
    e, b, *noise = rng.normal(size=(4, 1000))
    a = e + b + 0.5 * noise[0]
    x_md = np.column_stack([a, b, a + 2 * b + 0.5 * noise[1], rng.normal(size=1000), e])
    reasons = beliefs("e>a b>a a>c b>c", sample=x_md).why("e", "c")
    assert reasons.explained_by == ("a", "b")
    assert not any(len(step.given) == 1 for step in reasons.steps)


def test_a_hidden_cause_of_unrelated_variables_is_doubted(rng):
    result = make_result({}, sample=rows_of(rng), hidden_causes=np.full((5, 5), 0.6))
    assert "probability 0.60; these correlations show no trace of one." in str(result.why("b", "e"))
    assert "probability 0.60." in str(result.why("a", "b"))


def test_what_is_left_of_an_unlikely_link_is_told(known, rng):
    text = str(make_result({}, sample=rows_of(rng)).why("a", "b"))
    assert "More is left than chance would give: a link, a hidden common cause" in text
    assert "More is left" not in str(known.why("a", "b"))
    assert "More is left" not in str(known.why("b", "e"))


def test_constant_columns_do_not_count_as_others(rng):
    x_md = rows_of(rng)
    x_md[:, 4] = 0.0
    assert "Given all 2 others" in str(make_result({}, sample=x_md).why("a", "c"))


def test_cells_that_were_filled_in_are_told(rng):
    """Filled in from others, they tie columns closer together than they are."""
    x = rng.normal(size=300)
    table = pd.DataFrame({"x": x, "y": x + rng.normal(size=300), "z": rng.normal(size=300)})
    table.loc[:119, "y"] = np.nan
    result = gb.infer(table)
    said = "40% of y was missing: correlations count cells that were filled in."
    assert [said in str(result.why(*pair)) for pair in (("x", "y"), ("z", "y"), ("x", "z"))] == [True, True, False]
    assert "missing" not in str(gb.infer(table.dropna()).why("x", "y"))


def test_rows_that_an_experiment_set_are_told(rng):
    """There, what usually acts on a variable had no say, and correlations are smaller than they are otherwise."""
    x, e, own = rng.normal(size=(3, 300))
    mask = np.repeat([[0, 0, 0], [0, 1, 0]], [180, 120], axis=0)
    y = np.where(mask[:, 1], own, x + 0.5 * e)
    result = gb.infer(pd.DataFrame({"x": x, "y": y, "z": rng.normal(size=300)}), interventions=mask)
    said = "40% of y was set by experiments: correlations count these rows too."
    assert [said in str(result.why(*pair)) for pair in (("x", "y"), ("z", "y"), ("x", "z"))] == [True, True, False]


def test_codes_without_order_have_correlations_without_sign(known):
    for sign in (1, -1):
        sample = known.sample * [sign, 1, 1, 1, 1]
        result = dataclasses.replace(known, sample=sample, provenance={"unordered": ["a"]})
        text = str(result.why("a", "b"))
        assert "correlation −" not in text
        assert "The levels of a have no order: correlations are given without a sign." in text
        assert "no order" not in str(result.why("b", "c"))
    assert "correlation −" in str(dataclasses.replace(known, sample=sample).why("a", "b"))
