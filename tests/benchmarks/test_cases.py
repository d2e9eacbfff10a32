"""Names of cases decide everything, suites hold what the paper reports, and unknown words are refused at once."""

import dataclasses

import numpy as np
import pytest
import torch

from cases import each
from graphbam.benchmarks.cases import (
    MAX_ROWS,
    PAPER_FAMILIES,
    SUITES,
    UNSEEN_SHAPES,
    Case,
    derive_seed,
    draw_problem,
    resolve_cases,
    unpack_tables,
)  # fmt: skip
from graphbam.errors import ConfigError, TableError
from graphbam.simulation import MECHANISMS, UNSEEN, SimulationConfig, sample_tables


def names(*words):
    return [case.name for case in resolve_cases(words)]


def write_table(folder, edges="x,y\n", rows=3):
    folder.mkdir(parents=True)
    lines = "".join(f"{i},{i * i % 7},{i % 3}\n" for i in range(rows))
    (folder / "data.csv").write_text(f"x,y,z\n{lines}")
    (folder / "graph.csv").write_text(f"source,target\n{edges}")


def test_a_name_says_mechanism_and_shape():
    (case,) = resolve_cases(["gp_additive-d7-m30"])
    assert case == Case("gp_additive-d7-m30", "simulated", "gp_additive", 7, 30, "gp_additive")
    assert case.count_trials(5) == 5


def test_leading_zeros_do_not_make_another_case():
    assert names("sine-d010-m0200", "sine-d10-m200") == ["sine-d10-m200"]


def test_suites_hold_the_regimes_of_the_paper():
    assert len(PAPER_FAMILIES) == 8
    assert {f"{family}-d50-m200" for family in PAPER_FAMILIES} <= set(SUITES["undirected"]) & set(SUITES["cpdag"])
    assert {"cosine-d100-m1000", "mlp-d20-m200", "mlp-d100-m200", "cubic-d20-m500"} <= set(SUITES["undirected"])
    assert {"sine-d100-m100", "square-d100-m500", "mlp-d100-m50"} <= set(SUITES["cpdag"])
    assert set(SUITES["paper"]) == set(SUITES["undirected"]) | set(SUITES["cpdag"]) | set(SUITES["runtime"])
    assert all(len(set(suite)) == len(suite) for suite in SUITES.values())


def test_the_unseen_suite_is_every_unseen_mechanism_at_every_shape():
    assert set(SUITES["unseen"]) == {f"{name}-d{d}-m{m}" for name in UNSEEN for d, m in UNSEEN_SHAPES}


def test_every_case_of_every_suite_exists():
    for suite in SUITES:
        assert all(case.mechanism in MECHANISMS for case in resolve_cases([suite]))


def test_words_are_joined_in_order_without_repeats():
    assert names("linear-d3-m9", "quick", "linear-d3-m9") == ["linear-d3-m9", *SUITES["quick"]]


def test_patterns_match_the_cases_of_all_suites():
    assert set(names("*-d10-m200")) == {f"{name}-d10-m200" for name in (*PAPER_FAMILIES, *UNSEEN)}


@each(
    ("word", "message"),
    [
        ("papre", "no case is called 'papre', and it is no folder; did you mean 'paper'"),
        ("sine-d50", "did you mean 'sine-d"),
        ("sine-d1-m50", "at least two variables"),
        ("zzz-*", "there are the suites quick,"),
        ("sinus-d5-m50", "did you mean 'sine'"),
        ("sine-d5-m50+holes", "nothing is known of the twist 'holes'; there are hidden, targets, gaps10"),
    ],
)
def test_unknown_words_are_refused_with_a_hint(word, message):
    with pytest.raises(ConfigError, match=message):
        resolve_cases(["quick", word])


def test_asking_for_nothing_is_refused():
    with pytest.raises(ConfigError, match="no case is asked for"):
        resolve_cases([])


# ── tables on disk ────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_of_tables_is_one_case_each(tmp_path):
    write_table(tmp_path / "mine" / "a")
    write_table(tmp_path / "mine" / "b" / "c", edges="x,y\ny,z\nz,x\n", rows=700)
    first, second = resolve_cases([str(tmp_path / "mine")])
    assert first == Case("mine/a", "folder", "mine", 3, 3, folder=str(tmp_path / "mine" / "a"))
    assert (second.name, second.n_samples, second.is_dag) == ("mine/b/c", 700, False)
    assert first.count_trials(5) == 1


def test_one_table_alone_has_the_name_it_has_in_its_folder(tmp_path):
    write_table(tmp_path / "mine" / "a")
    write_table(tmp_path / "mine" / "b")
    assert resolve_cases([str(tmp_path / "mine" / "b")]) == resolve_cases([str(tmp_path / "mine")])[1:]


def test_the_manifest_decides_family_and_kind_of_truth(tmp_path):
    for name, rows in (("a", 3), ("b", 700), ("c", 3), ("unlisted", 3)):
        write_table(tmp_path / "data" / name, rows=rows)
    manifest = "name,family,acyclic,note\na,chain,yes,\nb,fork,no,x\nc,fork,undirected,\nmissing,fork,yes,\n"
    (tmp_path / "data" / "manifest.csv").write_text(manifest)
    cases = {case.name: case for case in resolve_cases([str(tmp_path / "data")])}
    assert list(cases) == ["data/a", "data/b", "data/c"]
    assert [(case.family, case.is_dag, case.source) for case in cases.values()] == [
        ("chain", True, "tables"), ("fork", False, "tables"), ("fork", False, "tables")
    ]  # fmt: skip
    assert cases["data/b"].n_samples == MAX_ROWS
    assert resolve_cases([str(tmp_path / "data" / "b")]) == [cases["data/b"]]


def test_where_the_manifest_is_silent_the_graphs_say_whether_they_are_acyclic(tmp_path):
    write_table(tmp_path / "a")
    write_table(tmp_path / "cyclic", edges="x,y\ny,x\n")
    (tmp_path / "manifest.csv").write_text("name,family\na,chain\ncyclic,loop\n")
    assert [case.is_dag for case in resolve_cases([str(tmp_path)])] == [True, False]


def test_only_undirected_truths_have_no_directions(tmp_path):
    for name in ("a", "b", "c"):
        write_table(tmp_path / name)
    (tmp_path / "manifest.csv").write_text("name,family,acyclic\na,x,yes\nb,x,no\nc,x,undirected\n")
    cases = resolve_cases([str(tmp_path)])
    assert [case.is_directed for case in cases] == [draw_problem(case, 0).is_directed for case in cases]
    assert [case.is_directed for case in cases] == [True, True, False]


def test_hidden_causes_and_targets_come_with_the_table(tmp_path):
    """Where something is hidden there is no CPDAG; rows are drawn with their targets."""
    write_table(tmp_path / "a", rows=700)
    (tmp_path / "a" / "bidirected.csv").write_text("a,b,also_directed\nz,x,0\n")
    targets = "".join(f"0,{int(i % 3 == 0)},0\n" for i in range(700))
    (tmp_path / "a" / "targets.csv").write_text(f"x,y,z\n{targets}")
    (tmp_path / "manifest.csv").write_text("name,family\na,chain\n")
    (case,) = resolve_cases([str(tmp_path)])
    problem = draw_problem(case, 0)
    assert not case.is_dag
    assert np.argwhere(problem.hidden_dd).tolist() == [[0, 2], [2, 0]]
    assert problem.set_md.shape == (600, 3)
    is_low = problem.x_md[:, 2] == problem.x_md[:, 2].min()  # z is i % 3
    np.testing.assert_array_equal(problem.set_md[:, 1], is_low)
    assert not problem.set_md[:, [0, 2]].any()


@each(("twist", "setting"), [("hidden", "hidden"), ("targets", "targets"), ("gaps30", "gaps")])
def test_a_twist_makes_other_tables(twist, setting):
    (case,) = resolve_cases([f"tree-d6-m80+{twist}"])
    first, again, other = (draw_problem(case, trial) for trial in (0, 0, 1))
    assert first.setting == setting
    assert first.x_md.shape == (80, 6)
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
    assert (first.hidden_dd is not None) == (twist == "hidden") == (not first.is_dag)
    assert (first.set_md is not None) == (twist == "targets")


def test_gaps_are_cells_of_the_plain_table_that_are_missing():
    plain, gappy = (draw_problem(resolve_cases([name])[0], 0) for name in ("sine-d9-m300", "sine-d9-m300+gaps20"))
    gaps_md = np.isnan(gappy.x_md)
    assert gaps_md.mean() == pytest.approx(0.2, abs=0.03)
    np.testing.assert_array_equal(gappy.adjacency, plain.adjacency)
    for column, whole, gaps in zip(gappy.x_md.T, plain.x_md.T, gaps_md.T, strict=True):
        assert np.corrcoef(column[~gaps], whole[~gaps])[0, 1] == pytest.approx(1)
        assert (column[~gaps].mean(), column[~gaps].std()) == (pytest.approx(0, abs=1e-9), pytest.approx(1))


def test_cells_are_removed_from_tables_of_a_folder(tmp_path):
    write_table(tmp_path / "mine" / "a", rows=200)
    (case,) = resolve_cases([f"{tmp_path / 'mine'}+gaps10"])
    assert (case.name, draw_problem(case, 0).setting) == ("mine/a+gaps10", "gaps")
    with pytest.raises(ConfigError, match="nothing is known of the twist 'hidden'"):
        resolve_cases([f"{tmp_path / 'mine'}+hidden"])


def test_a_collection_of_pairs_is_one_case_with_a_table_per_pair(tmp_path):
    folder, rng = tmp_path / "pairs", np.random.default_rng(0)
    folder.mkdir()
    (folder / "pairs.csv").write_text(
        "collection,pair,cause,weight\n" + "".join(f"toys,{k},x,0.{k}\n" for k in range(1, 9))
    )
    x = rng.normal(size=160)
    lines = (f"{k // 20 + 1},{x[k]},{x[k] + 10}\n" for k in range(160))
    (folder / "toys.csv").write_text("pair,x,y\n" + "".join(lines))
    (case,) = resolve_cases([str(folder)])
    assert (case.name, case.source, case.family, case.count_trials(3)) == ("pairs/toys", "pairs", "toys", 8)
    problems = [draw_problem(case, trial) for trial in range(8)]
    assert [problem.weight for problem in problems] == [k / 10 for k in range(1, 9)]
    assert {problem.setting for problem in problems} == {"pairs"}
    directions = {tuple(problem.adjacency.ravel()) for problem in problems}
    assert directions == {(0, 1, 0, 0), (0, 0, 1, 0)}  # columns of some are swapped
    with pytest.raises(ConfigError, match="not from pairs"):
        resolve_cases([f"{folder}+gaps10"])


@each(
    ("manifest", "message"),
    [
        ("name,acyclic\na,yes\n", "lacks the column 'family'"),
        ("name,family,acyclic\na,chain,yes\na,fork,yes\n", "2 lines for 1 names"),
        ("name,family,acyclic\nother,chain,yes\n", "names none of the tables"),
        ("name,family,acyclic\ncyclic,chain,yes\n", "calls 'cyclic' acyclic, but"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path, manifest, message):
    write_table(tmp_path / "a")
    write_table(tmp_path / "cyclic", edges="x,y\ny,x\n")
    (tmp_path / "manifest.csv").write_text(manifest)
    with pytest.raises(TableError, match=message):
        resolve_cases([str(tmp_path)])


def test_wide_tables_are_left_out_aloud(tmp_path):
    write_table(tmp_path / "a")
    (tmp_path / "wide").mkdir()
    columns = [f"v{i}" for i in range(111)]
    (tmp_path / "wide" / "data.csv").write_text("\n".join(",".join(row) for row in (columns, "1" * 111, "2" * 111)))
    (tmp_path / "wide" / "graph.csv").write_text("source,target\n")
    (tmp_path / "manifest.csv").write_text("name,family,acyclic\na,chain,yes\nwide,chain,yes\n")
    with pytest.warns(UserWarning, match="more than 110 variables: .*/wide"):
        assert len(resolve_cases([str(tmp_path)])) == 1


def test_missing_values_are_refused(tmp_path):
    write_table(tmp_path / "a")
    (tmp_path / "a" / "data.csv").write_text("x,y,z\n1,2,3\n1,,3\n")
    with pytest.raises(TableError, match=r"a missing or infinite cell \(first column: 'y'\); fill them"):
        resolve_cases([str(tmp_path)])


def test_two_folders_with_the_same_name_are_refused(tmp_path):
    for place in ("one", "two"):
        write_table(tmp_path / place / "mine" / "a")
    with pytest.raises(ConfigError, match="two tables are called 'mine/a'"):
        resolve_cases([str(tmp_path / place / "mine") for place in ("one", "two")])


def test_a_suite_wins_over_a_folder_of_its_name(tmp_path, monkeypatch):
    write_table(tmp_path / "quick" / "a")
    monkeypatch.chdir(tmp_path)
    assert names("quick") == list(SUITES["quick"])
    assert names("./quick") == ["quick/a"]


# ── the tables themselves ───────────────────────────────────────────────────────────────────────────────────


def draw(name, trial=0):
    (case,) = resolve_cases([name])
    return draw_problem(case, trial)


@pytest.mark.parametrize("name", ["cosine-d8-m60", "mlp-d5-m20"])
def test_columns_have_mean_zero_and_deviation_one(name):
    problem = draw(name)
    np.testing.assert_allclose(problem.x_md.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(problem.x_md.std(0), 1, atol=1e-12)
    assert problem.x_md.shape == tuple(int(part[1:]) for part in name.split("-")[:0:-1])
    assert problem.is_dag


def test_tables_differ_between_trials_and_cases_only():
    keys = [(name, trial) for name in ("sine-d6-m30", "sine-d6-m31") for trial in (0, 1)]
    assert len({draw(*key).fingerprint() for key in keys + keys}) == 4


def test_a_table_is_the_same_for_one_thread_and_for_two():
    (case,), before, prints = resolve_cases(["multiplicative-d20-m200"]), torch.get_num_threads(), set()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            prints.add(draw_problem(case, 1).fingerprint())
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(before)
    assert len(prints) == 1


def test_a_fingerprint_sees_table_truth_and_kind_of_truth():
    problem = draw("sine-d6-m30")
    x_md, adjacency = problem.x_md.copy(), 1 - problem.adjacency
    x_md[3, 2] = np.nextafter(x_md[3, 2], 9)
    others = [{"x_md": x_md}, {"adjacency": adjacency}, {"is_dag": False}, {"x_md": problem.x_md.T}]
    others += [{"hidden_dd": adjacency}, {"set_md": x_md > 0}]
    prints = {dataclasses.replace(problem, **change).fingerprint() for change in ({}, *others)}
    assert len(prints) == 7


def test_tables_stay_what_they_are():
    """Results of different releases are compared. Numbers depend on the processor's rounding, graphs do not."""
    assert np.argwhere(draw("linear-d6-m50").adjacency).tolist() == [[1, 3], [4, 3]]


def test_tables_on_disk_are_read_as_the_case_says(tmp_path):
    (tmp_path / "data" / "a").mkdir(parents=True)
    rows = "".join(f"{i},{i * i},7\n" for i in range(700))
    (tmp_path / "data" / "a" / "data.csv").write_text("x,y,z\n" + rows)
    (tmp_path / "data" / "a" / "graph.csv").write_text("source,target\nx,y\n")
    plain = draw(str(tmp_path / "data"))
    assert plain.x_md.shape == (700, 3)
    np.testing.assert_allclose(plain.x_md.std(0), [1, 1, 0], atol=1e-12)
    assert plain.adjacency.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    (tmp_path / "data" / "manifest.csv").write_text("name,family,acyclic\na,chain,no\n")
    listed = draw(str(tmp_path / "data"))
    assert listed.x_md.shape == (600, 3)
    assert not listed.is_dag


def test_simulated_tables_keep_all_that_is_known_of_them():
    config = SimulationConfig(hidden=0.5, interventions=0.5, missing=0.5)
    rng = torch.Generator().manual_seed(0)
    tables = sample_tables(rng, config, n_tables=12, n_variables=5, n_samples=40)
    for k, problem in enumerate(unpack_tables(tables)):
        observed = tables.observed_bmd[k].numpy()
        np.testing.assert_array_equal(np.isnan(problem.x_md), ~observed)
        np.testing.assert_array_equal(problem.x_md[observed], tables.x_bmd[k].double().numpy()[observed])
        np.testing.assert_array_equal(problem.adjacency, tables.dag_bdd[k])
        np.testing.assert_array_equal(problem.hidden_dd, tables.hidden_bdd[k])
        assert problem.is_dag == (not tables.hidden_bdd[k].any())
        assert (problem.set_md is None) == (not tables.set_bmd[k].any())
        assert problem.set_md is None or np.array_equal(problem.set_md, tables.set_bmd[k])


def test_seeds_are_fixed_and_fit_their_bits():
    assert derive_seed("fit", "sine-d6-m30", 0) == 676945976
    assert all(derive_seed("fit", i) < 2**32 for i in range(100))
    assert max(derive_seed("fit", i, bits=63) for i in range(100)) > 2**60
