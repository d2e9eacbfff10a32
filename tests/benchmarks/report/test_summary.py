"""Means, ranks, wins and losses against small tables computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from graphbam.benchmarks.report.charts import assign_looks
from graphbam.benchmarks.report.panels import plan_panels
from graphbam.benchmarks.report.rows import METRICS, NUMBER_COLUMNS, read_rows
from graphbam.benchmarks.report.summary import (
    Spread,
    find_winners,
    list_failures,
    list_losses,
    make_grid,
    rank_methods,
    rank_tables,
    spread_over_cells,
    summarise,
)
from graphbam.errors import TableError
from report_rows import make_rows

NAN = math.nan


@pytest.fixture
def read(tmp_path):
    """Rows as the report reads them, from columns."""

    def make(**columns):
        frame = make_rows(**columns)
        frame.to_csv(tmp_path / "results.csv", index=False)
        return read_rows([tmp_path])

    return make


@pytest.fixture
def two_cells(read):
    """Two cells of two trials; ges fails once, and is given no table of the second trial of the second cell."""
    return read(
        case=["a-d5-m9"] * 6 + ["b-d5-m9"] * 5,
        trial=[0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1],
        method=["graphbam", "pc", "ges"] * 2 + ["graphbam", "pc", "ges", "graphbam", "pc"],
        status=["ok"] * 5 + ["timeout"] + ["ok"] * 5,
        skeleton_ap=[0.9, 0.7, 0.8, 0.6, 0.6, NAN, 0.5, 0.7, 0.7, 0.9, 0.1],
        shd=[2, 4, 3, 5, 5, NAN, 9, 3, 3, 1, 8],
    )


# ── ranks and wins ────────────────────────────────────────────────────────────────────────────────────────


def test_ranks_by_hand(two_cells):
    ranking = rank_methods(two_cells, "skeleton_ap")
    # cell a: graphbam 1 and 1.5, pc 3 and 1.5, ges 2 and 3 (failed: last); cell b, first trial: 3, 1.5, 1.5
    expected = {"graphbam": (1.25 + 3) / 2, "pc": (2.25 + 1.5) / 2, "ges": (2.5 + 1.5) / 2}
    assert ranking.table["mean_rank"].to_dict() == pytest.approx(expected)
    assert list(ranking.table.index) == ["pc", "ges", "graphbam"]
    assert (ranking.n_cells, ranking.n_tables, ranking.left_out) == (2, 3, {})


def test_wins_by_hand(two_cells):
    # cell a: graphbam .75 > pc .65, ges failed once; cell b: pc and ges share the first place
    assert rank_methods(two_cells, "skeleton_ap").table["wins"].to_dict() == {"graphbam": 1, "pc": 1, "ges": 1}


def test_distances_rank_the_other_way_round(two_cells):
    table = rank_methods(two_cells, "shd").table
    assert table["mean_rank"].to_dict() == pytest.approx({"pc": (2.25 + 1.5) / 2, "ges": 2.0, "graphbam": 2.125})
    assert table["wins"].to_dict() == {"graphbam": 1, "pc": 1, "ges": 1}


@pytest.mark.parametrize("is_better_high", [True, False])
def test_failures_share_the_last_places(is_better_high):
    values = pd.DataFrame([[0.3, NAN, 0.3, NAN]], columns=list("abcd"))
    assert rank_tables(values, is_better_high).iloc[0].tolist() == [1.5, 3.5, 1.5, 3.5]


def test_who_failed_once_cannot_win():
    index = pd.MultiIndex.from_tuples([("a", "a 0"), ("a", "a 1")], names=["cell", "table"])
    values = pd.DataFrame({"sure": [0.1, 0.2], "lucky": [0.9, NAN]}, index=index)
    assert find_winners(values, is_better_high=True).loc["a"].to_dict() == {"sure": True, "lucky": False}


def test_methods_without_enough_rows_are_not_ranked(read):
    rows = read(
        case=["a-d5-m9", "b-d5-m9", "c-d5-m9"] * 2 + ["a-d5-m9", "a-d5-m9", "a-d5-m9"],
        method=["graphbam"] * 3 + ["pc"] * 3 + ["rare", "never", "glasso"],
        kind=["cpdag"] * 8 + ["undirected"],
        status=["ok"] * 7 + ["skipped", "ok"],
        skeleton_ap=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 1.0, NAN, 0.3],
        shd=[1, 2, 3, 4, 5, 6, 0, NAN, NAN],
    )
    ranking = rank_methods(rows, "skeleton_ap")
    reason = "has rows for 1 of 3 tables"
    assert ranking.left_out == {"rare": reason, "never": "no result", "glasso": reason}
    assert ranking.table["mean_rank"].to_dict() == {"graphbam": 1.0, "pc": 2.0}
    assert ranking.n_cells == 3
    assert rank_methods(rows, "shd").left_out["glasso"] == "gives no directions"


def test_one_table_a_cell_among_many_is_not_enough(read):
    """Its cells are all there, but ranks would then be those of three tables, not of nine."""
    cases = [case for case in ("a-d5-m9", "b-d5-m9", "c-d5-m9") for _ in range(3)]
    rows = read(
        case=cases * 2 + cases[::3],
        trial=[0, 1, 2] * 6 + [0] * 3,
        method=["graphbam"] * 9 + ["pc"] * 9 + ["slow"] * 3,
        skeleton_ap=[0.9] * 9 + [0.5] * 9 + [1.0] * 3,
    )
    ranking = rank_methods(rows, "skeleton_ap")
    assert ranking.left_out == {"slow": "has rows for 3 of 9 tables"}
    assert ranking.n_tables == 9


def test_without_any_score_nothing_is_ranked(read):
    rows = read(method=["pc", "ges"], status=["error", "error"])
    ranking = rank_methods(rows, "skeleton_ap")
    assert ranking.table.empty
    assert ranking.n_cells == 0


def test_tables_without_truth_for_a_score_are_left_out(read):
    """A cyclic truth has no CPDAG: nobody has a score there, which is nobody's failure."""
    rows = read(
        case=["f1", "f1", "f2", "f2"], source="tables", family="f", mechanism="",
        method=["graphbam", "pc"] * 2, shd=[3, 4, NAN, NAN],
    )  # fmt: skip
    ranking = rank_methods(rows, "shd")
    assert (ranking.n_tables, ranking.table["wins"].to_dict()) == (1, {"graphbam": 1, "pc": 0})
    assert list_losses(rows, "shd").empty
    rows.loc[0, "shd"] = 5
    assert list_losses(rows, "shd")[["best", "gap", "n_tables"]].to_numpy().tolist() == [["pc", 1.0, 1]]


# ── means ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_cells_count_once(two_cells):
    table = spread_over_cells(two_cells, "skeleton_ap")
    assert table.loc["graphbam", "mean"] == pytest.approx((0.75 + 0.7) / 2)
    assert table.loc["graphbam", "sd"] == pytest.approx(math.sqrt(2 * 0.025**2))
    assert table.loc["ges", "mean"] == pytest.approx((0.8 + 0.7) / 2)
    assert table["n"].to_dict() == {"graphbam": 2, "pc": 2, "ges": 2}


def test_families_count_once(read):
    """Three tables of one family and one of another: the mean is over the two families."""
    rows = read(
        case=["x1", "x2", "x3", "y1"], source="tables", family=["x", "x", "x", "y"], mechanism="",
        method="graphbam", skeleton_ap=[0.2, 0.3, 0.4, 0.9],
    )  # fmt: skip
    assert spread_over_cells(rows, "skeleton_ap").loc["graphbam", "mean"] == pytest.approx(0.6)
    assert set(rows["group"]) == {"labelled"}


def test_summary_by_hand(two_cells):
    table, by_ap, by_shd = summarise(two_cells)
    ges = table.loc["ges"]
    assert (ges["n_ok"], ges["n_tables"], ges["n_cells"]) == (2, 3, 2)
    assert ges["shd_ratio_mean"] == pytest.approx(0.25)  # 3 of 12 in both cells
    assert table.loc["graphbam", "shd_ratio_mean"] == pytest.approx((3.5 + 5) / 2 / 12)
    assert table.loc["graphbam", "seconds"] == 1.0
    assert by_ap.n_cells == by_shd.n_cells == 2
    assert list(table.index) == ["pc", "ges", "graphbam"]


def test_scores_of_failed_fits_do_not_count(read):
    rows = read(method=["pc", "pc"], trial=[0, 1], status=["ok", "memory"], skeleton_ap=[0.4, 0.8], seconds=[1.0, 9.0])
    assert rows["skeleton_ap"].tolist()[0] == 0.4
    assert np.isnan(rows["skeleton_ap"].tolist()[1])
    assert summarise(rows)[0].loc["pc", "seconds"] == 1.0


# ── losses and failures ───────────────────────────────────────────────────────────────────────────────────


def test_losses_by_hand(two_cells):
    losses = list_losses(two_cells, "shd")
    # cell a: we have 3.5, pc 4.5, ges failed. Cell b: we have 5, pc 5.5, ges misses a table: nobody is ahead
    assert losses.empty
    two_cells.loc[two_cells["method"] == "pc", "shd"] -= 2
    losses = list_losses(two_cells, "shd")
    assert losses[["cell", "best", "gap", "n_ahead", "n_tables"]].to_numpy().tolist() == [
        ["b-d5-m9", "pc", 1.5, 1, 2],
        ["a-d5-m9", "pc", 1.0, 0, 2],
    ]
    assert losses[["ours", "theirs"]].to_numpy().tolist() == [[5.0, 3.5], [3.5, 2.5]]


def test_a_failed_fit_of_ours_is_a_loss(read):
    rows = read(method=["graphbam", "pc"], status=["error", "ok"], skeleton_ap=[NAN, 0.1])
    (loss,) = list_losses(rows, "skeleton_ap").to_dict("records")
    assert loss["best"] == "pc"
    assert math.isnan(loss["ours"])


def test_ties_are_no_losses_and_variants_of_ours_no_rivals(read):
    rows = read(method=["graphbam", "pc", "graphbam-paper"], skeleton_ap=[0.8, 0.8, 0.9])
    assert list_losses(rows, "skeleton_ap").empty


def test_without_us_there_are_no_losses(read):
    assert list_losses(read(method=["pc", "ges"], skeleton_ap=[0.1, 0.2]), "skeleton_ap").empty


def test_failures_are_counted_by_reason(read):
    rows = read(
        case=["a-d5-m9", "b-d5-m9", "c-d5-m9", "d-d5-m9", "e-d5-m9"], method="sam",
        status=["timeout"] * 4 + ["ok"], reason=["slow"] * 4 + [""], skeleton_ap=[NAN] * 4 + [0.5],
    )  # fmt: skip
    (failure,) = list_failures(rows).to_dict("records")
    assert (failure["n_tables"], failure["n_all"], failure["reason"]) == (4, 5, "slow")
    assert failure["where"] == "a-d5-m9, b-d5-m9, c-d5-m9 and 1 more"


# ── grids ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_grid_by_hand(read):
    rows = read(
        mechanism=["sine"] * 4 + ["cosine"] * 3, case=["sine-d5-m9"] * 4 + ["cosine-d5-m9"] * 3,
        trial=[0, 1, 0, 1, 0, 0, 0], method=["graphbam", "graphbam", "pc", "pc", "graphbam", "pc", "never"],
        status=["ok", "ok", "ok", "error", "ok", "timeout", "skipped"],
        shd=[2, 4, 9, NAN, 5, NAN, NAN], empty_shd=[10, 20, 10, NAN, 7, NAN, NAN],
    )  # fmt: skip
    grid = make_grid(rows, METRICS["shd"], "mechanism", ["sine", "cosine"], ["sin", "cos"])
    assert grid.get("graphbam", "sine") == pytest.approx(Spread(3, math.sqrt(2), 2))
    assert grid.get("pc", "sine").n == 1
    assert not grid.is_complete("pc", "sine")
    assert grid.get("pc", "cosine").n == 0
    assert grid.why == {("pc", "cosine"): "timeout"}
    assert grid.floors == {"sine": 15, "cosine": 7}  # each table once, however many methods saw it
    assert grid.order == ("graphbam", "pc")  # one without any score is not in it
    assert grid.n_trials() == "1 to 2"


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────


def test_groups_and_cells(read):
    rows = read(
        case=["sine-d5-m9", "linear-d5-m9", "tree-d5-m9", "x1", "mine/t"],
        source=["simulated"] * 3 + ["tables", "folder"], mechanism=["sine", "linear", "tree", "", ""],
        family=["sine", "linear", "tree", "x", "mine"], method="pc", skeleton_ap=[0.1] * 5,
    )  # fmt: skip
    assert rows["group"].tolist() == ["nonlinear", "linear", "unseen", "labelled", "labelled"]
    assert rows["cell"].tolist() == ["sine-d5-m9", "linear-d5-m9", "tree-d5-m9", "x", "mine/t"]


def test_ratios_to_the_empty_graph(read):
    rows = read(method=["a", "b"], shd=[6, 6], empty_shd=[12, 0], n_edges=[9, 9])
    assert rows["shd_ratio"].tolist()[0] == 0.5
    assert np.isnan(rows["shd_ratio"].tolist()[1])  # no edges, no ratio
    assert rows["empty_accuracy"].tolist() == [0.8, 0.8]  # 9 of 45 pairs


def test_parquet_and_csv_agree_and_later_runs_replace_earlier_ones(tmp_path):
    early, late = tmp_path / "early", tmp_path / "late"
    for folder, score in ((early, 0.1), (late, 0.2)):
        folder.mkdir()
        frame = make_rows(method=["pc", "ges"], skeleton_ap=[score, NAN], status=["ok", "error"])
        frame.astype({"trial": "Int64", "method": "string"}).to_parquet(folder / "results.parquet", index=False)
        frame.to_csv(folder / "results.csv", index=False)
    rows = read_rows([early, late])
    assert rows[["method", "skeleton_ap", "run"]].fillna(-1).to_numpy().tolist() == [
        ["pc", 0.2, str(late)],
        ["ges", -1, str(late)],
    ]
    by_csv, by_parquet = (read_rows([late / f"results.{end}"]).drop(columns="run") for end in ("csv", "parquet"))
    pd.testing.assert_frame_equal(by_csv, by_parquet)
    assert all(by_csv[name].dtype == float for name in NUMBER_COLUMNS)


def test_bad_results_are_refused(tmp_path):
    with pytest.raises(TableError, match="no results were named"):
        read_rows([])
    with pytest.raises(TableError, match=r"holds no results: looked for results\.parquet and results\.csv"):
        read_rows([tmp_path])
    make_rows(method=["pc"]).drop(columns=["shd", "kind"]).to_csv(tmp_path / "results.csv")
    with pytest.raises(TableError, match="lacks the columns kind, shd"):
        read_rows([tmp_path])
    make_rows(method=["pc"], status="fine").to_csv(tmp_path / "results.csv")
    with pytest.raises(TableError, match="'fine'; it must be one of ok, skipped"):
        read_rows([tmp_path])
    make_rows(method=["pc"]).head(0).to_csv(tmp_path / "results.csv")
    with pytest.raises(TableError, match="there is no row"):
        read_rows([tmp_path])
    (tmp_path / "results.parquet").write_bytes(b"nonsense")
    with pytest.raises(TableError, match="cannot be read as a table"):
        read_rows([tmp_path])


def test_tables_with_a_twist_are_groups_of_their_own_and_in_no_figure_of_plain_ones(tmp_path):
    names = ["tree-d10-m200", "tree-d10-m200+hidden", "tree-d10-m200+gaps10"]
    make_rows(case=names, mechanism="tree", setting=["plain", "hidden", "gaps"], method="graphbam").to_parquet(
        tmp_path / "results.parquet"
    )
    rows = read_rows([tmp_path])
    assert rows.set_index("case")["group"].loc[names].tolist() == ["unseen", "hidden", "gaps"]
    panels = plan_panels(rows.assign(skeleton_ap=0.5), assign_looks(["graphbam"]))
    (bars,) = [panel for panel in panels if panel.key == "skeleton-ap-d10-m200"]
    assert bars.rows["case"].tolist() == names[:1]
