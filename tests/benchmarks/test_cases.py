"""Names of cases decide everything, suites hold what the paper reports, and unknown words are refused at once."""

import pytest

from graphbam.benchmarks.cases import MAX_ROWS, PAPER_FAMILIES, SUITES, UNSEEN_SHAPES, Case, resolve_cases
from graphbam.errors import ConfigError, TableError
from graphbam.simulation import MECHANISMS, UNSEEN


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


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("papre", "no case is called 'papre', and it is no folder; did you mean 'paper'"),
        ("sine-d50", "did you mean 'sine-d"),
        ("sine-d1-m50", "at least two variables"),
        ("zzz-*", "there are the suites quick,"),
        ("sinus-d5-m50", "did you mean 'sine'"),
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


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("name,family\na,chain\n", "lacks the column 'acyclic'"),
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
    with pytest.raises(TableError, match="no missing or infinite value"):
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
