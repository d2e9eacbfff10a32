"""runs/rivals.py and runs/refresh.py: rivals beside ours on the same tables, and rows made again."""

import json

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from graphbam.benchmarks.report.rows import read_rows
from graphbam.errors import TableError
from report_rows import make_rows


@pytest.fixture
def rivals(run_script):
    return run_script("rivals", run_name="rivals")


def write_rows(folder, **columns):
    folder.mkdir(parents=True)
    make_rows(**columns).to_parquet(folder / "results.parquet")
    return read_rows([folder])


def test_rivals_are_compared_on_the_tables_that_they_answered(rivals, tmp_path):
    rows = write_rows(
        tmp_path / "unseen", case=["a-d5-m9"] * 4 + ["b-d5-m9"] * 3, trial=[0, 1, 0, 1, 0, 0, 0],
        method=["graphbam", "graphbam", "pc", "pc", "graphbam", "pc", "ges"],
        directed_ap=[0.9, 0.5, 0.6, np.nan, 0.4, 0.8, np.nan],
        status=["ok", "ok", "ok", "timeout", "ok", "ok", "error"],
    )  # fmt: skip
    table = rivals["beside_ours"](rows, ["directed_ap", "direction_right"]).set_index("method")
    assert list(table.index) == ["PC", "graphbam"]
    assert table.loc["PC", ["directed AP", "graphbam there", "ahead of graphbam", "tables"]].tolist() == [
        ".700", ".650", "1 of 2", "2 of 3"
    ]  # fmt: skip
    assert table.loc["graphbam", "directed AP"] == ".550"
    assert rivals["lost_cells"](rows, "directed_ap")["cell"].tolist() == ["b-d5-m9"]


def test_a_cell_is_lost_to_whoever_leads_on_the_tables_that_it_answered(rivals, tmp_path):
    scores = [
        ("a", 0, "graphbam", 0.9), ("a", 1, "graphbam", 0.5), ("a", 0, "pc", 1.0), ("a", 1, "pc", np.nan),
        ("a", 0, "ges", 0.95), ("a", 0, "boss", 0.8), ("a", 1, "boss", 0.7), ("b", 0, "graphbam", 0.4),
        ("b", 0, "pc", 0.4), ("b", 0, "graphbam-paper", 0.9), ("c", 0, "graphbam", 0.3), ("c", 0, "pc", 0.6),
    ]  # fmt: skip
    cells, trials, methods, values = map(list, zip(*scores, strict=True))
    cases = [f"{cell}-d5-m9" for cell in cells]
    rows = write_rows(tmp_path / "unseen", case=cases, trial=trials, method=methods, directed_ap=values)
    lost = rivals["lost_cells"](rows, "directed_ap")
    assert lost.to_numpy().tolist() == [
        ["c-d5-m9", ".300", "PC", ".600", "1"],  # all of its tables
        ["a-d5-m9", ".900", "PC", "1.000", "1 of 2"],  # a larger lead, on half of them
        ["a-d5-m9", ".700", "BOSS", ".750", "2"],
    ]
    assert rivals["count_firsts"](rows, "directed_ap") == (3, 1, 1, 3)  # b is a tie, and variants are no rivals
    without = rows[rows["method"] != "boss"]
    assert rivals["count_firsts"](without, "directed_ap") == (3, 1, 2, 2)
    assert rivals["tell_losses"](without, "directed_ap") == (
        "graphbam is not first in 2 of 3 cells, in 1 among rivals that answered all tables of the cell"
    )


def test_a_smaller_distance_is_the_better_one(rivals, tmp_path):
    rows = write_rows(tmp_path / "unseen", case="a-d5-m9", method=["graphbam", "pc"], shd=[3, 6], empty_shd=12)
    assert rivals["count_firsts"](rows, "shd_ratio") == (1, 1, 1, 1)
    assert rivals["lost_cells"](rows, "shd_ratio").empty


def test_a_cell_in_which_graphbam_failed_is_lost(rivals, tmp_path):
    rows = write_rows(
        tmp_path / "unseen", case=["a-d5-m9"] * 2 + ["b-d5-m9"] * 2, method=["graphbam", "pc"] * 2,
        directed_ap=[np.nan, 0.1, np.nan, np.nan], status=["error", "ok", "error", "timeout"],
    )  # fmt: skip
    assert rivals["count_firsts"](rows, "directed_ap") == (1, 0, 0, 1)
    assert rivals["lost_cells"](rows, "directed_ap").to_numpy().tolist() == [["a-d5-m9", "", "PC", ".100", "1"]]


def test_a_variant_is_held_against_graphbam_table_by_table(rivals, tmp_path):
    cases = ["a-d5-m9+gaps10", "b-d5-m9+gaps30", "c-d5-m9+gaps30"]
    rows = write_rows(
        tmp_path / "gaps", case=cases * 2, method=["graphbam"] * 3 + ["graphbam-imputed"] * 3, setting="gaps",
        skeleton_ap=[0.9, 0.6, 0.8, 0.8, 0.7, np.nan],
    )  # fmt: skip
    table = rivals["compare_variant"](rows, "skeleton_ap", "graphbam-imputed")
    assert table.to_numpy().tolist() == [
        ["simulated", "all", 2, "+0.000 ± 0.100"],
        ["simulated", "gaps10", 1, "+0.100 ± nan"],
        ["simulated", "gaps30", 1, "-0.100 ± nan"],
    ]


def test_first_places_are_counted_for_every_answer(rivals, tmp_path, monkeypatch, capsys):
    for name in ("tables", "small", "unseen", "paper", "hidden", "targets", "gaps"):
        write_rows(
            tmp_path / name, case=f"{name}-d5-m9", method=["graphbam", "pc"], hidden_auroc=[0.7, 0.8],
            directed_ap=[0.9, 0.8], skeleton_ap=[0.9, 0.95],
        )  # fmt: skip
    write_rows(
        tmp_path / "pairs", source="pairs", setting="pairs", case="pairs/toys", family="toys",
        method=["graphbam", "anm"], pair_score=[0.5, -0.5], pair_weight=1.0,
    )  # fmt: skip
    page = tmp_path / "page.md"
    page.write_text("<!-- rivals first -->\n<!-- end of rivals first -->\n")
    words = ["x", "--results", tmp_path, "--sections", "first", "-o", tmp_path, "--write", page]
    monkeypatch.setattr("sys.argv", list(map(str, words)))
    rivals["main"]()
    lines = [line.split(" | ") for line in page.read_text().splitlines() if line.startswith("| ")]
    firsts = {(line[0].removeprefix("| "), line[1]): line[5] for line in lines if len(line) == 7}
    assert (firsts[("Pairs", "accuracy")], firsts[("Directions", "directed AP")]) == ("1", "3")
    assert firsts[("Links", "skeleton AP")] == firsts[("Hidden common causes", "hidden AUROC")] == "0"
    assert sum(line[0] == "| skeleton AP" for line in lines) == 4  # lost cells of links are named
    assert "<details" in page.read_text()
    assert "In how many cells" in capsys.readouterr().out


def test_pairs_without_an_answer_count_half(rivals, tmp_path, monkeypatch, capsys):
    scores = {"graphbam": [0.5, 0.2, -0.9], "anm": [0.5, np.nan, 0.9]}
    write_rows(
        tmp_path / "pairs", source="pairs", setting="pairs", case="pairs/toys", family="toys", trial=[0, 1, 2] * 2,
        method=["graphbam"] * 3 + ["anm"] * 3, pair_score=[*scores["graphbam"], *scores["anm"]],
        pair_weight=[1.0, 2.0, 1.0, 1.0, np.nan, 1.0], status=["ok"] * 4 + ["timeout", "ok"],
    )  # fmt: skip
    monkeypatch.setattr("sys.argv", ["x", "--results", str(tmp_path), "--sections", "pairs", "-o", str(tmp_path)])
    rivals["main"]()
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert {line[0].removeprefix("| "): line[1].split()[0] for line in lines[1:]} == {"graphbam": ".750", "ANM": ".750"}
    assert (tmp_path / "answers-pairs.png").is_file()


def test_every_section_is_shown_and_drawn(rivals, tmp_path, monkeypatch, capsys):
    for name in ("tables", "small", "unseen", "paper", "hidden", "targets", "gaps"):
        methods = ["graphbam", "fci" if name == "hidden" else "pc"]
        write_rows(
            tmp_path / name, method=methods, case=f"{name}-d5-m9", hidden_auroc=[0.9, 0.8],
            directed_ap=[0.9, 0.8], skeleton_ap=[0.9, 0.8],
        )  # fmt: skip
    monkeypatch.setattr(
        "sys.argv", ["x", "--results", str(tmp_path), "--sections", *rivals["SECTIONS"], "-o", str(tmp_path)]
    )
    rivals["main"]()
    assert {path.name for path in tmp_path.glob("*.png")} == {f"answers-{name}.png" for name in rivals["SECTIONS"]}
    assert capsys.readouterr().out.count("| PC | .800 | .900 | 0 of ") == 4


def test_rows_are_made_again_and_others_stay(run_script, tmp_path, monkeypatch):
    script, folder = run_script("refresh", run_name="refresh"), tmp_path / "results" / "few"
    rules = {"time_limit": 60.0, "memory_limit": 4096.0, "skip_larger": True}
    made = gb.benchmark(["zero"], ["sine-d4-m30"], out=tmp_path / "run", trials=1, **rules)
    folder.mkdir(parents=True)
    old = pd.concat([made, made.assign(method="another")]).assign(skeleton_ap=-1.0)
    old.drop(columns="directed_ap").to_parquet(folder / "results.parquet")  # as if written long ago
    (folder / "settings.json").write_text(json.dumps(rules))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["x", "zero", "--results", str(tmp_path / "results")])
    script["main"]()
    new = pd.read_parquet(folder / "results.parquet").set_index("method")["skeleton_ap"]
    assert (new["another"], new["zero"]) == (-1, made["skeleton_ap"][0])
    with pytest.raises(TableError, match="is not the one that other methods had"):
        script["replace_rows"](old.assign(fingerprint="another"), made)


def test_cases_on_disk_are_found_again(run_script, tmp_path):
    script = run_script("refresh", run_name="refresh")
    names, sources = ["sine-d4-m30", "data/a+gaps10", "hidden/b", "pairs/c"], ["simulated", "tables", "tables", "pairs"]
    rows = pd.DataFrame({"case": names, "source": sources, "trial": [4, 0, 0, 7]})
    data = tmp_path / "data"
    words = ["sine-d4-m30", f"{data / 'a'}+gaps10", str(data / "hidden" / "b"), str(data / "pairs")]
    assert script["words_by_trials"](rows, data) == {5: words}
