"""Categories as categories: what numbers their levels get."""

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from cases import each
from graphbam.errors import ConfigError, TableError
from graphbam.tables.columns import MOST_LEVELS, Coded, code_column, scale_levels
from graphbam.tables.read import read_table

LEVELS = np.array(["oak", "ash", "elm", "fir", "yew"])


def mixed_table(seed, n_rows=300):
    """Three columns of numbers that follow two categories, and a third category that follows nothing."""
    rng = np.random.default_rng(seed)
    tree, soil, none = rng.integers([[5], [4], [4]], size=(3, n_rows))
    noise = rng.normal(size=(3, n_rows))
    height = np.array([0.0, 3.0, 1.0, 4.0, 2.0])[tree] + noise[0]
    return pd.DataFrame({
        "tree": LEVELS[tree],
        "height": height,
        "width": height + 2 * soil + noise[1],
        "weight": noise[2],
        "soil": np.array(["clay", "loam", "peat", "sand"])[soil],
        "owner": np.array(["ann", "bob", "cleo", "dan"])[none],
    })  # fmt: skip


def scores(frame, **options):
    table = read_table(frame, encode=True, **options)
    return dict(zip(table.names, table.x_md.T, strict=True))


# ── which columns, and what numbers ──


@each("encode", ["soil", ["soil"], ("soil", "height")])
def test_only_columns_that_are_named_are_coded(encode):
    frame = mixed_table(0)[["height", "width", "soil"]]
    assert read_table(frame, encode=encode).changes == read_table(frame, encode=True).changes
    with pytest.raises(TableError, match=r"column 'owner' holds text.*encode=\[.*'soil'.*'owner'\] for text"):
        read_table(mixed_table(0)[["height", "soil", "owner"]], encode=encode)
    labelled = frame.assign(key=[f"k{k}" for k in range(300)])
    with pytest.raises(TableError, match="column 'key' holds text"):
        read_table(labelled, encode=encode)
    with pytest.raises(TableError, match="all 300 entries differ"):
        read_table(labelled[["key", "height", "soil"]], encode=["key", "soil"])
    assert read_table(labelled[["key", "height", "soil"]], encode=encode).names == ("height", "soil")
    with pytest.raises(TableError, match="names the column 'soils', which the table does not have"):
        read_table(frame, encode=["soils"])


def test_free_text_with_gaps_is_no_category():
    notes = [None if k % 3 else f"note {k} of {k * 7 % 10}" for k in range(300)]
    frame = mixed_table(0)[["height", "width"]].assign(notes=notes)
    table = read_table(frame, encode=True)
    assert table.names == ("height", "width")
    assert "column 'notes' holds text in which no entry repeats: taken for row labels and left out" in table.changes
    with pytest.raises(TableError, match="'notes' holds text in which all 100 entries differ"):
        read_table(frame, encode="notes")
    twice = frame.assign(notes=[*notes[:-1], notes[0]])
    assert read_table(twice, encode=True).names == ("height", "width", "notes")


def in_memory(path, frame):
    return frame


def as_csv(path, frame):
    frame.to_csv(path / "t.csv", index=False)
    return path / "t.csv"


def as_spreadsheet(path, frame):
    frame.to_excel(path / "t.xlsx", index=False)
    return path / "t.xlsx"


def as_parquet(path, frame):
    frame.to_parquet(path / "t.parquet")
    return path / "t.parquet"


@each("bring", [in_memory, as_csv, as_spreadsheet, as_parquet])
def test_none_is_a_level_of_text_and_a_gap_among_numbers_and_dates(bring, tmp_path):
    """Those who got no treatment were taken for missing, and the treatment for constant."""
    rows = {
        "treatment": ["none", "drug", "none", "drug", "NA"],
        "smoking": ["None", "light", "heavy", "light", None],
        "dose": ["None", "1.5", "2.5", "none", "0.5"],
        "day": ["2024-01-01", "none", "2024-01-03", "2024-01-02", "2024-01-05"],
    }
    table = read_table(bring(tmp_path, pd.DataFrame(rows)), encode={"smoking": ["None", "light", "heavy"]})
    nan = np.nan
    assert table.names == tuple(rows)
    expected = [[1, 0, 1, 0, nan], [0, 1, 2, 1, nan], [nan, 1.5, 2.5, nan, 0.5], [0, nan, 2, 1, 4]]
    np.testing.assert_array_equal(table.x_md.T, expected)
    assert "'none' counts as a level (empty such cells if they are gaps)" in " ".join(table.changes)
    with pytest.raises(TableError, match="level 'None', which encode does not list"):
        read_table(bring(tmp_path, pd.DataFrame(rows)), encode={"smoking": ["light", "heavy"]})


def test_numbers_that_are_given_are_used():
    frame = pd.DataFrame({"m": ["low", "high", "mid", None], "a": [1.0, 2, 4, 3]})
    table = read_table(frame, encode={"m": {"low": 1, "mid": 2, "high": 7}})
    np.testing.assert_array_equal(table.x_md[:, 0], [1, 7, 2, np.nan])
    assert "text coded as given ('low' → 1, 'mid' → 2, 'high' → 7)" in table.changes[0]
    with pytest.raises(
        TableError, match=r"the level 'mid', which encode does not list\. List all levels in encode, or"
    ):
        read_table(frame, encode={"m": {"low": 1, "high": 7}})
    with pytest.raises(TableError, match="the levels 'high' and 1 more, which encode does not list"):
        read_table(frame, encode={"m": ["low"]})


def test_durations_of_arrow_are_durations():
    pytest.importorskip("pyarrow")
    days = pd.Series(pd.to_timedelta([3, 1, None, 2], unit="D")).astype("duration[ms][pyarrow]")
    coded = code_column(days, "wait", encode=True)
    np.testing.assert_array_equal(coded.values, [2, 0, np.nan, 1])
    assert coded.note == "durations coded as days more than the shortest"
    assert code_column(days, "wait").note.startswith("durations (first: row 1, 3 days")


def test_durations_are_told_as_such():
    long = pd.to_timedelta(["1 day", "3 days", "5 hours"])
    assert code_column(pd.Series(long), "v", encode=True).note == "durations coded as days more than the shortest"


@each(
    "encode",
    [
        7,
        None,
        [3],
        {"m": "low"},
        {"m": 3},
        {"m": ["low", "low", "mid", "high"]},
        {"m": {"low": "one", "mid": 2, "high": 3}},
    ],
)
def test_what_encode_cannot_mean_is_refused(encode):
    with pytest.raises(ConfigError, match="encode"):
        read_table({"m": ["low", "high", "mid", "low"], "a": [1.0, 2, 4, 3]}, encode=encode)


def test_levels_are_named_as_they_are_written():
    levels = ["500-999", "1,000-4,999", "a-1"]
    table = read_table({"a": np.arange(9.0), "m": levels * 3}, encode={"m": dict.fromkeys(levels, -2.5)})
    assert all(f"{level!r} → −2.5" in table.changes[0] for level in levels)


def test_a_level_that_is_given_twice_is_refused():
    with pytest.raises(ConfigError, match="for column 'm', with 'low' twice"):
        read_table({"m": ["low", "high"] * 3, "a": np.arange(6.0)}, encode={"m": ["low", "low", "high"]})


@each("seed", range(3))
def test_scores_order_levels_as_the_other_columns_do(seed):
    frame = mixed_table(seed)
    code = dict(zip(frame["tree"], scores(frame)["tree"], strict=True))
    ordered = [code[level] for level in LEVELS[[0, 2, 4, 1, 3]]]  # by their mean height
    assert ordered in (sorted(ordered), sorted(ordered, reverse=True))
    assert np.std(scores(frame)["tree"]) == pytest.approx(1, abs=1e-3)


@each("seed", range(3))
def test_scores_do_not_depend_on_the_names_of_levels(seed):
    frame, names = mixed_table(seed), np.random.default_rng(seed).permutation(LEVELS)
    renamed = frame.assign(tree=frame["tree"].map(dict(zip(LEVELS, names, strict=True))))
    before, after = scores(frame), scores(renamed)
    assert all(np.array_equal(before[name], after[name]) for name in before)


@each("seed", range(3))
def test_scores_do_not_depend_on_the_order_of_rows_and_columns(seed):
    frame, rng = mixed_table(seed), np.random.default_rng(seed)
    rows = rng.permutation(len(frame))
    before, after = scores(frame), scores(frame.iloc[rows, rng.permutation(frame.shape[1])])
    assert all(np.array_equal(before[name][rows], after[name]) for name in before)


def test_units_and_other_increasing_scales_do_not_matter():
    frame = mixed_table(0)
    other = frame.assign(height=1000 * frame["height"], width=np.exp(frame["width"]))
    assert np.array_equal(scores(frame)["tree"], scores(other)["tree"])


def test_levels_that_follow_nothing_rarely_get_scores():
    notes = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        frame = {f"x{k}": Coded(column) for k, column in enumerate(rng.normal(size=(6, 150)))}
        words = pd.Series([f"kind {chr(97 + k)}" for k in rng.integers(8, size=150)])
        notes.append(scale_levels(frame | {"kind": code_column(words, "kind", encode=True)})["kind"].note)
    assert sum("by scores" in note for note in notes) <= 3  # one is expected
    assert "by falling frequency, since the other columns do not tell them apart" in " ".join(notes)


def test_ties_of_frequency_do_not_go_by_name():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "kind": ["u", "v", "w"] * 20})
    turned = frame.assign(kind=frame["kind"].map({"u": "w", "v": "u", "w": "v"}))
    assert set(scores(frame)["kind"]) == {0, 1, 2}
    assert np.array_equal(scores(frame)["kind"], scores(turned)["kind"])


def test_what_has_an_order_keeps_it():
    frame = mixed_table(0).assign(
        sex=lambda f: np.where(f["height"] > 2, "m", "f"),
        age=lambda f: np.where(f["height"] > 2, "18-25", np.where(f["width"] > 2, "26-35", "36-45")),
    )
    table = read_table(frame, encode={"soil": ["sand", "peat", "loam", "clay"]})
    found = dict(zip(table.names, table.x_md.T, strict=True))
    assert np.array_equal(found["sex"], frame["sex"] == "m")
    assert np.array_equal(found["age"], frame["age"].map({"18-25": 0, "26-35": 1, "36-45": 2}))
    assert np.array_equal(found["soil"], frame["soil"].map({"sand": 0, "peat": 1, "loam": 2, "clay": 3}))
    assert any("'tree': text coded by scores that follow the other columns" in change for change in table.changes)


def test_steps_of_a_scale_are_coded_in_its_order_and_no_answers_are_gaps():
    steps = ["strongly disagree", "disagree", "Agree", "agree", "strongly agree", "Don't know", "n.a."]
    codes = [0, 1, 2, 2, 3, np.nan, np.nan]
    rows = np.random.default_rng(0).integers(7, size=80)
    frame = pd.DataFrame(
        {"a": np.arange(80.0), "b": np.take(steps, rows), "pain": np.array(["none", "mild"])[rows % 2]}
    )
    table = read_table(frame, encode=True)
    np.testing.assert_array_equal(table.x_md[:, 1:], np.column_stack([np.take(codes, rows), rows % 2]))
    assert "'strongly agree' → 3); \"Don't know\" counts as missing" in table.changes[0]
    said = frame.assign(b=np.array(["red", "blue", "Don't know"])[rows % 3])
    assert not np.isnan(read_table(said, encode=True).x_md).any()  # beside other words it is a level


def test_categories_called_by_whole_numbers_are_levels_where_they_may_be_coded():
    site = np.random.default_rng(0).integers(3, size=90)
    y = np.array([0.0, 5.0, 1.0])[site] + np.arange(90) / 90
    frame = pd.DataFrame({"y": y, "site": pd.Categorical(np.array([10, 9, 200])[site])})
    plain, coded = read_table(frame), read_table(frame, encode=True)
    assert plain.x_md[:, 1].tolist() == np.array([10, 9, 200])[site].tolist()
    assert "column 'site': categories that are numbers, read as these numbers" in plain.changes[0]
    assert coded.changes[0].startswith("column 'site': text coded by scores that follow the other columns")
    assert abs(np.corrcoef(coded.x_md.T)[0, 1]) > 0.9 > abs(np.corrcoef(plain.x_md.T)[0, 1])
    as_numbers = frame.assign(site=frame["site"].cat.as_ordered())
    assert np.array_equal(read_table(as_numbers, encode=True).x_md, plain.x_md)


@each("n_levels", [8, 9])
def test_both_ends_of_the_levels_are_shown(n_levels):
    levels = [f"{k}0 m" if k else "0 m" for k in range(n_levels)]
    frame = {"a": np.arange(36.0), "size": [f"{levels[k % n_levels]} or so" for k in range(36)]}
    (said,) = read_table(frame, encode=True).changes
    assert f"'{n_levels - 1}0 m or so' → {n_levels - 1}" in said
    assert said.count("→") == 8
    assert ("…" in said) == (n_levels > 8)


def test_columns_whose_codes_have_no_order_are_listed():
    frame = pd.DataFrame({"a": np.arange(60.0) % 7, "b": list("xyz") * 20, "c": ["low", "mid", "high"] * 20})
    frame["d"], frame["e"] = ["no", "yes"] * 30, list("uvw") * 20
    assert read_table(frame, encode=True).unordered == ("b", "e")


ORDERED = {
    "brackets": ["500-999", "1,000-4,999", "5,000+"],
    "units": ["500 m", "800 m", "1,500 m", "2,500 m and more"],
    "spaces": ["100 - 200 €", "500 - 1 000 €", "1 000 - 20 000 €", "20 000 €"],
    "apostrophes": ["500 to 999", "1'000 to 9'999", "10'000 to 20'000"],
    "decimal commas": ["0,800 kg", "1,5 kg", "1,750 kg", "12 kg+"],
    "decimals": ["−0.5 V", "0.25 V", "1.5 V", "12 V+"],
    "words": ["1 very low", "2 low", "3 medium", "4 high"],
    "one unit": ["1 year", "2 years", "3-10 years", "11+"],
}


@each("levels", ORDERED.values(), ids=ORDERED)
def test_levels_are_ordered_by_the_numbers_they_begin_with(levels):
    rows = np.random.default_rng(0).permutation(np.arange(40) % len(levels))
    table = read_table({"a": np.arange(40.0), "kind": [levels[k] for k in rows]}, encode=True)
    assert table.x_md[:, 1].tolist() == rows.tolist()


MIXED = [
    ["5.9 kg", "7 kg", "12442.9 g"],
    ["1 day", "2 weeks", "3 months"],
    ["500-999", "1k-5k", "5k+"],
    ["20 °C", "68 °F", "25 °C"],
    ["20 C", "68 F", "25 C"],
    ["5.5 mmol/L", "6.1 mmol/L", "99 mg/dL"],
    ["101 kPa", "1.02 bar", "99 kPa"],
    ["5 €", "7 $", "$8"],
    ["5 nmol", "7 μmol", "9 nmol"],
]


@each("levels", MIXED)
def test_numbers_in_more_than_one_unit_are_not_ordered(levels):
    frame = {"a": np.arange(12.0), "b": np.arange(12.0) ** 2, "kind": levels * 4}
    with pytest.raises(TableError, match=r"'kind' holds numbers in more than one unit \('.*' beside '.*'\): write all"):
        read_table(frame, encode=True)
    assert read_table(frame, encode={"kind": levels}).x_md[:3, 2].tolist() == [0, 1, 2]


@each("levels", [["1C", "2F", "3K"], ["1 low", "2 mid", "3 high"], ["4 μg", "5 µg", "6 µg+"], ["12a", "13b", "14m"]])
def test_letters_behind_numbers_are_not_always_units(levels):
    table = read_table({"a": np.arange(12.0), "kind": levels * 4}, encode=True)
    assert table.x_md[:3, 1].tolist() == [0, 1, 2]


def test_missing_cells_stay_missing_and_say_nothing():
    frame = mixed_table(0)
    frame.loc[::7, "tree"] = None
    frame.loc[::5, "height"] = np.nan
    assert np.array_equal(np.isnan(scores(frame)["tree"]), frame["tree"].isna())


def test_categories_alone_are_scored_by_each_other():
    frame = mixed_table(0)
    twin = pd.DataFrame({"tree": frame["tree"], "twin": frame["tree"].str.upper(), "owner": frame["owner"]})
    found = scores(twin)
    assert abs(np.corrcoef(found["tree"], found["twin"])[0, 1]) == pytest.approx(1, abs=1e-6)


def test_very_many_levels_are_numbered_by_frequency():
    words = [f"v{k % (MOST_LEVELS + 1)}x" for k in range(400)]
    table = read_table(pd.DataFrame({"a": np.arange(400.0), "kind": [f"w{w}" for w in words]}), encode=True)
    assert set(table.x_md[:, 1]) == set(range(MOST_LEVELS + 1))
    told, _ = table.warnings  # and that rows share a value
    assert "column 'kind' has more than 50 levels of text, numbered by how frequent they are" in told
    clock = [f"{k % 24:02}:{k % 60:02}" for k in range(400)]
    told = read_table(pd.DataFrame({"a": words, "b": clock, "c": ["x", "y", "z", "z"] * 100}), encode=True).warnings
    assert "columns 'a', 'b' have more than 50 levels" in told[0]


def test_links_of_cut_columns_are_nearly_as_good_as_before(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "runs")
    import bench_categories

    loaded, rows = gb.load_weights("edges"), []
    for seed in range(16):
        graph, x_md = gb.simulate(n_variables=9, n_samples=200, seed=seed)
        rows.append(bench_categories.judge(graph, x_md, np.random.default_rng(seed), loaded))
    mean = pd.DataFrame(rows).mean()
    assert mean["encode"] > mean["before"] - 0.05
    assert mean["encode"] > mean["frequency"]
