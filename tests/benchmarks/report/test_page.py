"""The files of a report: they hold what they should, nothing escapes, and equal results give equal bytes."""

from __future__ import annotations

import html
import html.parser
import json
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest
import typer
from matplotlib.colors import to_hex
from typer.testing import CliRunner

from cases import each
from graphbam.benchmarks.baselines import list_baselines
from graphbam.benchmarks.cases import SUITES
from graphbam.benchmarks.report import write_report
from graphbam.benchmarks.report.charts import (
    SCHOOLS,
    assign_looks,
    draw_tradeoff,
    find_school,
    find_title,
    save_figure,
)
from graphbam.benchmarks.report.findings import rerun
from graphbam.benchmarks.report.panels import plan_panels
from graphbam.benchmarks.report.rows import read_rows
from graphbam.benchmarks.report.statements import check_statements
from graphbam.benchmarks.store import Settings, write_settings
from graphbam.cli._benchmark_report import report
from graphbam.errors import ConfigError, TableError
from report_rows import METHODS, make_rows, simulate_results

FEW = {name: METHODS[name] for name in ("graphbam", "pc", "boss", "glasso", "sam")}
HOSTILE = '</script><script>alert(1)</script>|"quoted" & <b>{{body}} *x* _y_'


class Reader(html.parser.HTMLParser):
    """Collects tags and attributes; complains about tags that do not match."""

    VOID = ("meta", "img", "br", "link", "input", "hr")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def values(self, tag, name):
        return [attrs[name] for seen, attrs in self.tags if seen == tag and name in attrs]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder as the runner leaves it, with five methods and few cells."""
    folder = tmp_path_factory.mktemp("run")
    frame = simulate_results(
        methods=FEW, n_trials=2, mechanisms=("chebyshev", "linear", "mlp", "tree"), shapes=((50, 200), (100, 50)),
        sweeps=[("chebyshev", d, m) for d in (20, 100) for m in (50, 200, 500)],
    )  # fmt: skip
    frame.to_parquet(folder / "results.parquet", index=False)
    write_settings(folder, Settings(methods=("all",), cases=("paper", "../data"), time_limit=600.0))
    return folder


@pytest.fixture(scope="module")
def written(run, tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    write_report([run], out)
    return out


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_parses_and_needs_nothing_from_outside(written):
    text = (written / "report.html").read_text(encoding="utf-8")
    page = Reader(text)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.values("img", "src"))
    assert all(target.startswith("#") for target in page.values("a", "href"))
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object", "embed", "base"}
    assert "://" not in re.sub(r'src="data:[^"]*"', "", text)
    assert "default-src 'none'" in page.values("meta", "content")[0]


def test_contents_lead_to_every_card_and_ids_are_unique(written):
    page = Reader((written / "report.html").read_text(encoding="utf-8"))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    cards = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert [f"#{card}" for card in cards] == page.values("a", "href")
    assert len(page.values("img", "alt")) == len(list((written / "figures").glob("*.svg")))


def test_every_table_is_preceded_by_what_it_shows_and_how_to_make_it(written):
    text = (written / "report.html").read_text(encoding="utf-8")
    tables = list(re.finditer(r'<p class="about">(.+?)</p>\n<pre class="command"><code>(.+?)</code></pre>\n<div', text))
    assert len(tables) == text.count("<table ")
    assert all(match[2].startswith("graphbam benchmark --cases ") for match in tables)
    assert sum("trials" in match[1] or "tables" in match[1] for match in tables) >= len(tables) - 3


def test_hostile_text_stays_text(tmp_path):
    frame = make_rows(
        method=["graphbam", HOSTILE, "bad"], status=["ok", "ok", "error"], reason=["", "", HOSTILE],
        skeleton_ap=[0.5, 0.9, None], hardware=HOSTILE, package_version=HOSTILE,
    )  # fmt: skip
    (tmp_path / "run").mkdir()
    frame.to_csv(tmp_path / "run" / "results.csv", index=False)
    write_report([tmp_path / "run"], tmp_path / "out")
    page = Reader((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert [tag for tag, _ in page.tags].count("script") == 2  # the note on files, and what sorts
    assert sum(HOSTILE in word for word in page.words) >= 4  # name, reason, version, hardware
    for line in (tmp_path / "out" / "summary.md").read_text(encoding="utf-8").splitlines():
        assert "<script>" not in line or line.startswith("    ")


# ── Markdown and csv ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["summary.md", "tables.md"])
def test_markdown_tables_are_well_formed(written, name):
    lines = (written / name).read_text(encoding="utf-8").splitlines()
    rules = [place for place, line in enumerate(lines) if re.fullmatch(r"\|(---:?\|)+", line)]
    assert rules
    for place in rules:
        n_columns = lines[place].count("|")
        block = [lines[place - 1]]
        for line in lines[place + 1 :]:
            if not line.startswith("|"):
                break
            block.append(line)
        assert len(block) > 1
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in block} == {n_columns}
        assert lines[place - 2] == ""


def test_the_summary_has_every_group_and_says_where_we_lose(written):
    text = (written / "summary.md").read_text(encoding="utf-8")
    for head in ("Simulated, nonlinear", "Simulated, linear", "Labelled tables, by family", "Where we lose"):
        assert f"\n## {head}\n" in text
    assert "a failed fit shares the last places" in text
    assert re.search(r"\| skeleton AP \| linear \| linear-d50-m200 \|", text)  # BOSS is at home there


def test_cells_hold_means_and_numbers(run, written):
    table, rows = pd.read_csv(written / "cells.csv"), read_rows([run])
    own = table[(table["cell"] == "linear-d50-m200") & (table["method"] == "pc") & (table["metric"] == "shd")]
    scores = rows.loc[(rows["cell"] == "linear-d50-m200") & (rows["method"] == "pc"), "shd"]
    assert own[["mean", "sd", "n"]].to_numpy().tolist()[0] == pytest.approx([scores.mean(), scores.std(), 2])


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────


def test_figures_are_pictures_of_the_papers_panels(written):
    names = {path.stem for path in (written / "figures").glob("*.png")}
    assert names == {path.stem for path in (written / "figures").glob("*.svg")}
    assert names >= {
        "quality-and-time", "every-cell", "skeleton-ap-d50-m200", "moral-ap-d50-m200", "skeleton-accuracy-d100-m50",
        "skeleton-ap-mlp", "skeleton-ap-chebyshev-over-m", "skeleton-shd-chebyshev-over-m", "shd-d50-m200",
        "cpdag-ap-d100-m50", "shd-chebyshev-over-m", "skeleton-ap-families", "seconds-over-m", "seconds-over-d",
    }  # fmt: skip
    assert "shd-sine-over-m" not in names  # there are no results for it
    for path in (written / "figures").glob("*.png"):
        head = path.read_bytes()[:24]
        width, height = struct.unpack(">II", head[16:])
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert width > 900
        assert height > 250
        assert path.stat().st_size > 15_000
    for path in (written / "figures").glob("*.svg"):
        assert len(list(ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}path"))) > 20


def test_equal_results_give_equal_pictures(run, written, tmp_path):
    rows = read_rows([run])
    panels = {panel.key: panel for panel in plan_panels(rows, assign_looks(rows["method"]))}
    for key in ("quality-and-time", "every-cell", "shd-d50-m200", "shd-chebyshev-over-m", "moral-ap-families"):
        for path in save_figure(panels[key].draw(), tmp_path, key):
            assert path.read_bytes() == (written / "figures" / path.name).read_bytes(), path.name


@each("fastest", [1e-4, 3e-3])
def test_names_beside_points_stay_within_the_picture(fastest):
    """A long one beside the fastest method ran over the numbers of the axis and out of the picture."""
    names = ["graphbam", "boss", "grasp", "partial-correlation", "partial-correlation-normal-scores", "dagma"]
    seconds = [0.06, 0.015, 0.01, 0.009, fastest, 0.8]
    score = [1.0, 0.891, 0.891, 0.891, 0.8905, 0.891]
    table = pd.DataFrame({"seconds": seconds, "score": score, "share": 1.0}, index=names)
    (axes,) = draw_tradeoff(table, assign_looks(names), "title", "note").axes
    frame, boxes = axes.get_window_extent(), [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(names)
    assert min(box.x0 for box in boxes) >= frame.x0
    assert max(box.x1 for box in boxes) <= frame.x1


def test_published_numbers_are_drawn_as_hollow_diamonds(run, tmp_path):
    published = pd.DataFrame({
        "mechanism": ["linear", "chebyshev"], "n_variables": [50, 100], "n_samples": [200, 500], "method": ["pc", "pc"],
        "metric": ["skeleton_ap", "skeleton_ap"], "value": [0.625, 0.375], "source": "invented for this test",
    })  # fmt: skip
    rows = read_rows([run])
    panels = {panel.key: panel for panel in plan_panels(rows, assign_looks(rows["method"]), published)}
    bars, curves = panels["skeleton-ap-d50-m200"], panels["skeleton-ap-chebyshev-over-m"]
    assert bars.grids[0][1].published == {("pc", "linear"): 0.625}
    assert curves.grids[0][1].published == {("pc", 500): 0.375}
    for panel, number in ((bars, 0.625), (curves, 0.375)):
        lines = [line for axes in panel.draw().axes for line in axes.lines if line.get_marker() == "D"]
        assert any(number in (*line.get_xdata(), *line.get_ydata()) for line in lines)
        assert {line.get_markerfacecolor() for line in lines} == {"#ffffff"}


def test_a_bar_of_fewer_trials_is_hollow(run):
    rows = read_rows([run])
    n_white = []
    for some in (rows, rows[(rows["method"] != "pc") | (rows["trial"] == 0)]):
        panels = {panel.key: panel for panel in plan_panels(some, assign_looks(some["method"]))}
        bars = [bar for axes in panels["skeleton-ap-d50-m200"].draw().axes for bar in axes.patches]
        n_white.append(sum(to_hex(bar.get_facecolor()) == "#ffffff" for bar in bars))
    assert n_white[1] > n_white[0]


def test_ours_has_the_accent_and_no_two_methods_look_alike():
    looks = assign_looks([*list_baselines(), "mine:Best"])
    assert looks["graphbam"].colour == SCHOOLS["ours"][1]
    assert [name for name, look in looks.items() if look.colour == SCHOOLS["ours"][1]] == ["graphbam"]
    assert len({look[2:] for look in looks.values()}) == len(looks)
    assert looks["mine:Best"].title == "mine:Best"


@each("name", list_baselines())
def test_every_method_of_the_package_has_a_school_and_a_title(name):
    assert find_school(name) != "other"
    assert find_title(name)


# ── statements, commands, mistakes ────────────────────────────────────────────────────────────────────────


def test_statements_are_checked_against_the_rows(run):
    verdicts = {statement.says: verdict for statement, verdict in check_statements(read_rows([run]))}
    words = [verdict.word for verdict in verdicts.values()]
    assert words.count("not measured") == 2  # no low dimensions, no AVICI
    best = verdicts["Best undirected graphs at d = 50, M = 200, whatever the mechanism."]
    assert best.word == "holds in part"
    assert best.evidence == "graphbam is first in 2 of 3 cells; not in linear-d50-m200 (behind BOSS)"
    floor = verdicts["At d = 100, M = 50 no method has a lower SHD than the graph without edges."]
    assert floor.word == "does not hold"
    assert "graphbam in 3" in floor.evidence


def test_commands_name_few_cases_or_the_whole_run(run):
    rows = read_rows([run])
    few = rerun(rows[rows["case"] == "linear-d50-m200"])
    assert few == f"graphbam benchmark --cases linear-d50-m200 --methods all --trials 5 --time-limit 600 -o {run}"
    whole = "graphbam benchmark --cases paper,../data,unseen --methods all --trials 5 --time-limit 600 -o"
    assert rerun(rows) == f"{whole} {run}"  # the rows have unseen mechanisms as well
    assert "--cases paper,../data" in rerun(rows[rows["source"] == "tables"])


def test_commands_reach_beyond_the_last_one(tmp_path):
    """Rows of an earlier command are in the folder too: its methods, cases and trials are not forgotten."""
    cases = [*SUITES["quick"], *SUITES["unseen"], "tree-d7-m30"]
    rows = [make_rows(case=[case], method=["pc"], trial=[2], skeleton_ap=[0.1]) for case in cases]
    pd.concat(rows).to_csv(tmp_path / "results.csv")
    write_settings(tmp_path, Settings(methods=("ges", "mine:Method"), cases=("*-d10-m200",), trials=1))
    found = rerun(read_rows([tmp_path / "results.csv"]))
    assert "--cases '*-d10-m200,unseen,quick,tree-d7-m30'" in found
    assert "--methods ges,mine:Method,pc --trials 3" in found


def test_commands_without_settings_are_made_from_the_rows(tmp_path):
    make_rows(method=["pc", "ges"], skeleton_ap=[0.1, 0.2]).to_csv(tmp_path / "results.csv")
    command = "graphbam benchmark --cases cosine-d10-m200 --methods ges,pc --trials 1 -o"
    assert rerun(read_rows([tmp_path / "results.csv"])) == f"{command} {tmp_path}"


def test_bad_files_are_refused(run, tmp_path):
    path = tmp_path / "published.csv"
    path.write_text("mechanism,value\nsine,1\n")
    with pytest.raises(TableError, match="lacks the columns n_variables, n_samples, method, metric, source"):
        write_report([run], tmp_path / "out", published=path)
    path.write_text("mechanism,n_variables,n_samples,method,metric,value,source\nsine,5,9,pc,auc,1,somewhere\n")
    with pytest.raises(TableError, match="'auc'; it must be one of skeleton_ap"):
        write_report([run], tmp_path / "out", published=path)
    with pytest.raises(ConfigError, match=r"published\.csv is a file where a folder must go"):
        write_report([run], path)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@each("name", ["report.html", "cells.csv", "figures/quality-and-time.png"])
def test_files_of_others_are_left_alone(tmp_path, name):
    make_rows(method=["pc", "graphbam"], skeleton_ap=[0.1, 0.2]).to_csv(tmp_path / "results.csv")
    path = tmp_path / "mine" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(ConfigError, match=f"{name} is there already, and nothing says that graphbam wrote it"):
        write_report([tmp_path], tmp_path / "mine")
    assert contents(tmp_path / "mine") == {name: b"mine"}


def test_a_report_takes_the_place_of_an_earlier_one(run, tmp_path):
    out = tmp_path / "out"
    write_report([run], out)
    many = contents(out)
    (out / "mine.txt").write_text("stays")
    (out / "figures" / "mine.png").write_text("stays")
    make_rows(method=["pc", "graphbam"], skeleton_ap=[0.1, 0.2]).to_csv(tmp_path / "results.csv")
    write_report([tmp_path], out)
    few = contents(out)
    write_report([tmp_path], tmp_path / "fresh")
    assert few.keys() == contents(tmp_path / "fresh").keys() | {"mine.txt", "figures/mine.png"}
    assert len(few) < len(many)


def test_reports_of_older_releases_are_replaced(tmp_path):
    make_rows(method=["pc", "graphbam"], skeleton_ap=[0.1, 0.2]).to_csv(tmp_path / "results.csv")
    out = tmp_path / "out"
    write_report([tmp_path], out)
    page = (out / "report.html").read_text(encoding="utf-8")
    (out / "report.html").write_text(re.sub(r"<script type=.application/json.*?</script>", "", page), encoding="utf-8")
    write_report([tmp_path], out)


def test_results_without_us_or_with_failures_only_still_make_a_page(tmp_path):
    make_rows(method=["pc", "ges"], status="error", reason="broken").to_csv(tmp_path / "results.csv")
    write_report([tmp_path], tmp_path / "out")
    page = Reader((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "There are no rows of graphbam." in " ".join(page.words)
    assert "broken" in page.words


def test_the_command(tmp_path):
    make_rows(method=["pc", "graphbam"], skeleton_ap=[0.1, 0.2]).to_csv(tmp_path / "results.csv")
    app = typer.Typer()
    app.command()(report)
    done = CliRunner().invoke(app, [str(tmp_path), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "3 figures" in done.output
    assert (tmp_path / "out" / "report.html").is_file()


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
SORT = """
<script>
const table = document.querySelector("#summary-nonlinear"), told = [];
const column = (place) => [...table.tBodies[0].rows].map((row) => row.cells[place].textContent);
for (const place of [0, 0, 5, 5]) {
  table.tHead.rows[0].cells[place].firstChild.click();
  told.push(column(place));
}
document.title = "told " + JSON.stringify(told);
</script></body>
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install chromium")
def test_heads_of_tables_sort(tmp_path):
    frame = make_rows(method=["pc", "graphbam", "ges", "boss"], skeleton_ap=[0.09, 0.9, None, 1.0], moral_ap=0.5)
    frame.to_csv(tmp_path / "results.csv")
    write_report([tmp_path], tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    (tmp_path / "page.html").write_text(text.replace("</body>", SORT), encoding="utf-8")
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", (tmp_path / "page.html").as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    by_name, backwards, high, low = json.loads(html.unescape(re.search(r"<title>told (.*?)</title>", done.stdout)[1]))
    assert by_name == ["BOSS", "GES", "graphbam", "PC"]
    assert backwards == by_name[::-1]
    assert high == ["1.000", ".900", ".090", "–"]
    assert low == [".090", ".900", "1.000", "–"]  # what is missing stays last
