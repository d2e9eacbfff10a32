"""The report in a real browser: what a reader does must work. Skipped where there is no Chromium."""

from __future__ import annotations

import dataclasses
import html
import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from cases import each
from graphbam.output.files import list_links
from graphbam.output.report import render
from graphbam.result import Result
from standins import PartialCorrelation, tell_truth

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1400,1000",
    "--virtual-time-budget=8000", "--dump-dom",
)  # fmt: skip
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install chromium")

LISTEN = """
window.troubles = [];
for (const kind of ["error", "unhandledrejection", "securitypolicyviolation"]) {
  const describe = (event) => `${kind}: ${event.message || event.reason || event.blockedURI}`;
  window.addEventListener(kind, (event) => troubles.push(describe(event)));
}
for (const kind of ["error", "warn"]) console[kind] = (...words) => troubles.push(`${kind}: ${words.join(" ")}`);
window.requestAnimationFrame = (act) => setTimeout(act, 16);  // a page without a screen gets frames now and then
window.ResizeObserver = class { observe() {} };  // told of its size in such a frame, it would refit in mid-drag
"""

HELPERS = """
const one = (query) => document.querySelector(query), all = (query) => [...document.querySelectorAll(query)];
const slide = (p) => { one("#threshold").value = p; one("#threshold").dispatchEvent(new Event("input")); };
const point = (target, kind, x, y) => target.dispatchEvent(
  new PointerEvent(kind, { clientX: x, clientY: y, bubbles: true, cancelable: true, pointerType: "mouse" }));
const key = (target, name) => target.dispatchEvent(
  new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const search = (text) => { one("#search").value = text; one("#search").dispatchEvent(new Event("input")); };
const place = (node) => node.getAttribute("transform").match(/[-.0-9]+/g).map(Number);
const minus = ([a, b], [c, d]) => [a - c, b - d];
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const told = { troubles };
const tell = () => {
  const note = document.createElement("pre");
  note.id = "told";
  note.textContent = JSON.stringify(told);
  document.body.append(note);
};
"""


def browse(folder, page, script, *flags):
    """Open a page, run a script in it, and return what the script put into `told`."""
    page = page.replace("<style>", f"<script>{LISTEN}</script><style>", 1)
    caught = "catch (error) { troubles.push(String(error.stack)); }"
    acts = f"<script>(async () => {{ {HELPERS} try {{ {script} }} {caught} tell(); }})();"
    before, _, after = page.rpartition("</body>")
    path = folder / "report with spaces.html"
    path.write_text(f"{before}{acts}</script></body>{after}", encoding="utf-8")
    command = [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", path.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="told">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[-2000:]
    return json.loads(html.unescape(found[1]))


def make_result(n_variables, seed=0, names=None):
    rng = np.random.default_rng(seed)
    x_md = rng.normal(size=(200, n_variables))
    for child in range(2, n_variables):
        x_md[:, child] += x_md[:, child - 1] - 1.2 * x_md[:, rng.integers(child - 1)]
    names = names or [f"v{k}" for k in range(n_variables)]
    frame = pd.DataFrame(x_md, columns=names)
    return gb.infer(frame, weights=PartialCorrelation(), stability=3, colliders=None)


@each("n_variables", [2, 8, 60])
def test_the_page_opens_without_trouble_and_the_slider_works(tmp_path, n_variables):
    result = make_result(n_variables)
    told = browse(tmp_path, render(result), """
        told.start = all(".edge").length;
        told.nodes = all(".node").length;
        slide(0.3); told.low = all(".edge").length; told.said = one("#n-links").textContent;
        slide(0.9); told.high = all(".edge").length; told.wrong = one("#n-false").textContent;
        one("#moral").click(); told.moral = all(".edge.moral").length; told.moralSaid = one("#n-moral").textContent;
        const before = all(".node").map(place);
        one("#arrange").click(); await wait(3000);
        told.arranged = all(".node").some((node, n) => Math.hypot(...minus(place(node), before[n])) > 5);
        one("#zoom-in").click(); one("#fit").click();
        told.plots = all("#detail .plot").length;
        told.inside = all(".node").every((node) => {
          const [box, frame] = [node.getBoundingClientRect(), one("#graph svg").getBoundingClientRect()];
          const fits = (low, high) => box[low] >= frame[low] && box[high] <= frame[high];
          return fits("left", "right") && fits("top", "bottom");
        });
    """)  # fmt: skip
    p_n = np.round(result.probabilities[..., 1][np.triu_indices(n_variables, 1)], 4)
    assert told["troubles"] == []
    assert told["nodes"] == n_variables
    assert [told[when] for when in ("start", "low", "high")] == [(p_n >= t).sum() for t in (0.5, 0.3, 0.9)]
    assert told["said"].split()[0] == str((p_n >= 0.3).sum())
    assert int(told["moralSaid"]) == told["moral"]
    assert told["plots"] == (2 if n_variables > 2 else 1)
    assert told["inside"]
    assert told["arranged"] or n_variables == 2
    if (p_n >= 0.9).any():
        assert float(told["wrong"].replace("< ", "").split()[0]) == pytest.approx((1 - p_n[p_n >= 0.9]).sum(), abs=0.1)


def test_evidence_agrees_with_a_ridge_regression(tmp_path):
    result = make_result(8)
    told = browse(tmp_path, render(result), """
        const edge = one(".edge[data-pair='1']");
        edge.dispatchEvent(new Event("click"));
        told.title = one("#detail h2").textContent;
        told.captions = all("#detail figcaption").map((caption) => caption.textContent);
        told.picked = edge.classList.contains("picked") && one("#rows tr.picked").dataset.pair === "1";
    """)  # fmt: skip
    assert told["troubles"] == []
    assert told["picked"]
    a, b = told["title"].split(" — ")
    assert {a, b} == set(result.table().loc[1, ["a", "b"]])
    i, j = result.names.index(a), result.names.index(b)
    x_md = result.sample - result.sample.mean(axis=0)
    rest = np.delete(x_md, [i, j], axis=1)
    ridge = (0.001 + 0.1 * 8 / 200) * 200 * np.eye(6)
    left = x_md - rest @ np.linalg.solve(rest.T @ rest + ridge, rest.T @ x_md)
    measured = [np.corrcoef(x_md[:, i], x_md[:, j])[0, 1], np.corrcoef(left[:, i], left[:, j])[0, 1]]
    shown = [float(caption.rsplit(" ", 1)[1].replace("−", "-")) for caption in told["captions"]]
    np.testing.assert_allclose(shown, measured, atol=0.02)


def test_table_search_sort_and_keys(tmp_path):
    told = browse(tmp_path, render(make_result(8)), """
        told.rows = all("#rows tr").length;
        search("V3"); told.found = all("#rows tr").length; search("");
        const direct = () => all("#rows tr").map((row) => Number(row.cells[2].textContent));
        told.falling = direct(); all("#head button")[2].click(); told.rising = direct();
        told.sort = all("#head th")[2].getAttribute("aria-sort");
        const first = one("#rows tr"); first.focus(); key(first, "ArrowDown");
        told.focus = document.activeElement === first.nextElementSibling;
        key(document.activeElement, "Enter"); told.picked = first.nextElementSibling.classList.contains("picked");
        const node = one(".node"); key(node, "Enter");
        told.neighbours = all("#detail .list button").length;
        told.faded = one("#graph svg").classList.contains("faded");
        one("#detail .list button").click(); told.plots = all("#detail .plot").length;
        key(one("#graph svg"), "Escape"); told.cleared = all("#detail .plot").length;
    """)  # fmt: skip
    assert told["troubles"] == []
    assert (told["rows"], told["found"]) == (28, 7)
    assert told["falling"] == sorted(told["falling"], reverse=True)
    assert told["rising"] == sorted(told["rising"])
    assert told["sort"] == "ascending"
    assert told["focus"]
    assert told["picked"]
    assert told["neighbours"] >= 5
    assert told["faded"]
    assert (told["plots"], told["cleared"]) == (2, 0)


def test_variables_can_be_dragged_and_the_graph_moved(tmp_path):
    told = browse(tmp_path, render(make_result(8)), """
        const node = one(".node"), svg = one("#graph svg"), box = node.getBoundingClientRect();
        const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
        const before = place(node);
        point(node, "pointerdown", x, y); point(window, "pointermove", x + 60, y + 40); await wait(500);
        point(window, "pointerup", x + 60, y + 40); await wait(1500);
        const after = place(node);
        told.moved = minus(after, before);
        point(svg, "pointerdown", 200, 400);
        point(window, "pointermove", 230, 380); point(window, "pointerup", 230, 380);
        told.panned = minus(place(node), after);
        const gap = () => Math.hypot(...minus(...all(".node").slice(0, 2).map(place)));
        const near = gap(); one("#zoom-in").click(); told.zoomed = gap() / near;
        one("#reset").click(); told.back = minus(place(node), before);
    """)  # fmt: skip
    assert told["troubles"] == []
    np.testing.assert_allclose(told["moved"], [60, 40], atol=0.2)
    np.testing.assert_allclose(told["panned"], [30, -20], atol=0.2)
    assert told["zoomed"] == pytest.approx(1.3, abs=0.01)
    np.testing.assert_allclose(told["back"], [0, 0], atol=0.5)


def test_light_and_dark(tmp_path):
    look = """
        const colour = () => getComputedStyle(document.body).backgroundColor;
        told.page = colour(); one("#theme").click(); told.other = colour();
        told.theme = document.documentElement.dataset.theme;
        localStorage.clear();
    """
    page = render(make_result(3))
    light = browse(tmp_path, page, look, "--blink-settings=preferredColorScheme=1")
    dark = browse(tmp_path, page, look, "--blink-settings=preferredColorScheme=0")
    assert light["troubles"] == []
    assert light["theme"] == "dark"
    assert light["page"] == "rgb(243, 245, 248)"
    assert light["other"] == dark["page"] == "rgb(14, 20, 27)"


def test_hostile_names_stay_text(tmp_path):
    names = [
        "<script>window.hacked = 1</script>",
        '"><img src=x onerror="hacked=1">',
        "a\nb",
        "{{model}}",
        "</script>",
        "ü \u2028 日本",
    ]
    told = browse(tmp_path, render(make_result(6, names=names)), """
        told.hacked = typeof window.hacked; told.images = all("img").length;
        told.names = all(".node").map((node) => node.getAttribute("aria-label"));
        all(".node").forEach((node) => key(node, "Enter"));
        all("#rows tr").forEach((row) => row.click());
        told.after = typeof window.hacked;
    """)  # fmt: skip
    assert told["troubles"] == []
    assert told["names"] == names
    assert told["hacked"] == told["after"] == "undefined"
    assert told["images"] == 0


@pytest.mark.parametrize("n_variables", [12, 45])
def test_directions_are_shown_beside_the_links(tmp_path, n_variables):
    result, _ = tell_truth(n_variables)
    graphs = [result.cpdag(), result.cpdag(fdr=0.2)]
    told = browse(tmp_path, render(result), """
        const look = () => ({ edges: all(".edge").length, heads: all(".head").length, said: one(".counts").textContent,
          rows: all("#arrow-rows tr").length, how: one("#how").textContent, dial: one("#dial").hidden,
          table: one("#arrows").hidden, key: one("#key").hidden });
        told.first = look();
        told.hollow = all(".head.hollow").length;
        one("#moral").click(); told.moral = all(".edge.moral").length; told.moralSaid = one("#n-moral").textContent;
        one("#moral").click();
        told.paths = all(".edge path").map((path) => path.getAttribute("d")).join("");
        all("#choices button").at(-1).click(); told.last = look();
        one("#view-links").click(); told.links = look();
        one("#view-directions").click(); told.again = look();
        one("#choices button").click();
        const row = one("#arrow-rows tr"); row.click();
        told.rows = all("#arrow-rows tr").map((row) => [...row.cells].map((cell) => cell.textContent));
        told.title = one("#detail h2").textContent;
        told.legend = all("#detail .legend")[1].textContent;
        told.picked = row.classList.contains("picked");
        const edge = one(`.edge[data-pair="${row.dataset.pair}"]`);
        point(edge, "pointerenter", 300, 300); told.tip = one("#tip").textContent;
        told.opacity = Number(edge.querySelector(".head").getAttribute("fill-opacity"));
    """)  # fmt: skip
    assert told["troubles"] == []
    assert "NaN" not in told["paths"]
    assert told["moral"] == int(told["moralSaid"]) == len(result.moral_pairs().undirected_edges()) > 0
    assert told["hollow"] == sum(link.is_forced for link in list_links(result))
    assert told["first"]["how"].startswith("All links with probability 0.5 or more.")
    assert told["last"]["how"].startswith("The most links of which at most 20 %")
    for look, graph in zip(("first", "last"), graphs, strict=True):
        seen, n_links = told[look], len(graph.table())
        assert (seen["edges"], seen["heads"], seen["rows"]) == (n_links, len(graph.directed_edges()), n_links)
        assert f"{len(graph.directed_edges())} with a direction" in seen["said"]
        assert (seen["dial"], seen["table"], seen["key"]) == (True, False, False)
    assert (told["links"]["heads"], told["links"]["dial"], told["links"]["table"]) == (0, False, True)
    assert told["links"]["edges"] == len(result.skeleton().undirected_edges())
    assert told["again"] == told["last"]
    table = graphs[0].table().set_index(["a", "b"])
    for a, mark, b, *numbers in told["rows"]:
        row = table.loc[(a, b)]
        assert mark == {"->": "→", "--": "—"}[row.edge]
        expected = [row.skeleton, row.forward, 1 - row.forward - row.backward, row.backward]
        np.testing.assert_allclose([float(number) for number in numbers], expected, atol=0.006)
    assert [mark for _, mark, *_ in told["rows"]] == ["→"] * told["first"]["heads"] + ["—"] * (
        told["first"]["rows"] - told["first"]["heads"]
    )
    best = graphs[0].table().query(f"a == '{told['rows'][0][0]}' and b == '{told['rows'][0][2]}'").iloc[0]
    assert best.probability == pytest.approx(table["probability"].iloc[0], abs=1e-3)
    assert told["title"] == f"{best.a} → {best.b}"
    assert told["legend"].startswith(f"{best.a} → {best.b} ")
    assert told["tip"] == f"{best.a} → {best.b}   link {best.skeleton:.2f}, this way {best.forward:.2f}"
    assert told["opacity"] == pytest.approx(0.25 + 0.75 * best.forward, abs=0.01)
    assert told["picked"]


def test_what_to_keep_in_mind_stands_above_all_else(tmp_path):
    result = dataclasses.replace(
        make_result(3), warnings=("203 rows count as 10",), provenance={"n_rows": 5000, "n_rows_used": 203}
    )
    look = """
        told.hidden = one("#mind").hidden; told.said = all("#warnings li").map((item) => item.textContent);
        told.above = one("#mind").getBoundingClientRect().bottom <= one("#stage").getBoundingClientRect().top;
        told.facts = one("#facts").textContent;
    """
    told = browse(tmp_path, render(result), look)
    assert told["troubles"] == []
    assert (told["hidden"], told["above"], told["said"]) == (False, True, ["203 rows count as 10"])
    assert "203 of 5,000 rows" in told["facts"]
    assert browse(tmp_path, render(make_result(3)), look)["hidden"]


def test_an_arrow_against_the_odds_is_hollow(tmp_path):
    p = np.tile([0.02, 0.96, 0.02], (3, 3, 1))
    p[0, 1] = p[1, 0] = [0.9, 0.05, 0.05]
    result = Result(("a", "b", "c"), p, colliders=[(0, 2, 1, 0.9)])
    sure = browse(tmp_path, render(result), "told.heads = all('.head').length; told.hollow = all('.hollow').length;")
    assert (sure["troubles"], sure["heads"], sure["hollow"]) == ([], 2, 0)
    page = render(result).replace('"forced":[]', '"forced":[0,1]')
    unsure = browse(tmp_path, page, "told.heads = all('.head').length; told.hollow = all('.hollow').length;")
    assert (unsure["troubles"], unsure["heads"], unsure["hollow"]) == ([], 2, 2)


def test_without_directions_there_is_one_view(tmp_path):
    told = browse(tmp_path, render(make_result(4)), """
        told.heads = all(".head").length;
        told.hidden = ["#views", "#how", "#choices", "#key", "#arrows"].map((query) => one(query).hidden);
    """)  # fmt: skip
    assert told["troubles"] == []
    assert told["heads"] == 0
    assert told["hidden"] == [True] * 5


def test_lines_run_around_the_boxes_of_others(tmp_path):
    told = browse(tmp_path, render(make_result(3)), """
        slide(0.02);
        const [nodes, frame] = [all(".node"), one("#graph svg").getBoundingClientRect()];
        const drop = (n, x) => {
          const box = nodes[n].getBoundingClientRect();
          point(nodes[n], "pointerdown", box.x + box.width / 2, box.y + box.height / 2);
          for (const kind of ["pointermove", "pointerup"]) point(window, kind, frame.x + x, frame.y + 200);
        };
        drop(0, 120); drop(1, 320); drop(2, 520); await wait(1500);
        const lines = all(".edge .ink").map((ink) => ink.getAttribute("d").match(/[-.0-9]+/g).map(Number));
        told.bent = lines.map(([ax, ay, cx, cy, bx, by]) => Math.abs(cy - (ay + by) / 2) > 2);
        told.ends = lines.map(([ax, ay, cx, cy, bx, by]) => Math.abs(bx - ax));
    """)  # fmt: skip
    assert told["troubles"] == []
    assert told["bent"].count(True) == 1
    assert told["ends"][told["bent"].index(True)] == max(told["ends"])
