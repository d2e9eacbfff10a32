"""The report in a real browser: what a reader does must work. Skipped where there is no Chromium."""

from __future__ import annotations

import dataclasses
import html
import io
import json
import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from cases import each
from graphbam.output import report
from graphbam.output.files import list_links
from graphbam.output.report import render
from graphbam.result import Result
from standins import PartialCorrelation, tell_truth

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1400,1000",
    "--virtual-time-budget=8000",
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
"""

HELPERS = """
const one = (query) => document.querySelector(query), all = (query) => [...document.querySelectorAll(query)];
const cy = one("#canvas")._cyreg.cy;  // what Cytoscape has drawn
const drawn = (kind) => cy.edges(`[kind = "${kind}"]`), marked = (mark) => cy.edges(`[mark = "${mark}"]`);
const slide = (p) => { one("#threshold").value = p; one("#threshold").dispatchEvent(new Event("input")); };
const point = (target, kind, x, y) => target.dispatchEvent(
  new PointerEvent(kind, { clientX: x, clientY: y, bubbles: true, cancelable: true, pointerType: "mouse" }));
const key = (target, name) => target.dispatchEvent(
  new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const enter = (query, text, kind) => { one(query).value = text; one(query).dispatchEvent(new Event(kind)); };
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const shown = () => cy.nodes().map((node) => node.data("n"));
const told = { troubles };
const tell = () => {
  if (parent !== window) return parent.postMessage(JSON.stringify([innerWidth, told]), "*");
  const note = document.createElement("pre");
  note.id = "told";
  note.textContent = JSON.stringify(told);
  document.body.append(note);
};
"""

FRAMES = """<body style="margin:0">{frames}<script>
const told = {{}};
addEventListener("message", (event) => {{
  const [width, one] = JSON.parse(event.data);
  told[width] = one;
  if (Object.keys(told).length < {n}) return;
  const note = document.createElement("pre");
  note.id = "told";
  note.textContent = JSON.stringify(told);
  document.body.append(note);
}});
</script></body>"""


def browse(folder, page, script, *flags, widths=()):
    """Open a page, run a script in it, and return what the script put into `told`; by width, if several are given."""
    page = page.replace("<style>", f"<script>{LISTEN}</script><style>", 1)
    caught = "catch (error) { troubles.push(String(error.stack)); }"
    acts = f"<script>(async () => {{ {HELPERS} try {{ {script} }} {caught} tell(); }})();"
    before, _, after = page.rpartition("</body>")
    path = folder / "report with spaces.html"
    path.write_text(f"{before}{acts}</script></body>{after}", encoding="utf-8")
    if widths:
        frames = "".join(
            f'<iframe src="{path.name}" style="width:{w}px;height:900px;border:0"></iframe>' for w in widths
        )
        path = folder / "frames.html"
        path.write_text(FRAMES.format(frames=frames, n=len(widths)), encoding="utf-8")
    found = re.search(r'<pre id="told">(.*?)</pre>', start(folder, path, "--dump-dom", *flags), re.DOTALL)
    assert found, "the script did not end"
    return json.loads(html.unescape(found[1]))


def start(folder, path, *flags):
    command = [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


def make_result(n_variables, seed=0, names=None):
    rng = np.random.default_rng(seed)
    x_md = rng.normal(size=(200, n_variables))
    for child in range(2, n_variables):
        x_md[:, child] += x_md[:, child - 1] - 1.2 * x_md[:, rng.integers(child - 1)]
    names = names or [f"v{k}" for k in range(n_variables)]
    frame = pd.DataFrame(x_md, columns=names)
    return gb.infer(frame, weights=PartialCorrelation(), stability=3, colliders=None)


LOOK = """
  cy.elements().removeClass("picked");  // whose rim is wider
  const box = (node, includeLabels) => {
    const { x1, y1, x2, y2 } = node.renderedBoundingBox({ includeLabels, includeOverlays: false, includeEdges: false });
    return [x1, y1, x2, y2];
  };
  const [nodes, edges] = [cy.nodes().toArray(), cy.edges().toArray()];
  const [names, bodies] = [true, false].map((isNamed) => nodes.map((node) => box(node, isNamed)));
  const hits = (a, b, by) => a[0] + by < b[2] && b[0] + by < a[2] && a[1] + by < b[3] && b[1] + by < a[3];
  told.overlaps = names.flatMap((a, m) => names.slice(m + 1).filter((b) => hits(a, b, 2))).length;
  told.outside = names.filter(([a, b, c, d]) => a < -2 || b < -2 || c > cy.width() + 2 || d > cy.height() + 2).length;
  told.clipped = names.filter((name, n) => name[0] < bodies[n][0] - 2 || name[2] > bodies[n][2] + 2).length;
  const trace = (edge) => {  // points along quadratic curves that join midway between control points
    const inner = edge.renderedControlPoints();
    const [a, z] = [edge.renderedSourceEndpoint(), edge.renderedTargetEndpoint()];
    const joints = [a, ...inner.slice(1).map((c, n) => ({ x: (c.x + inner[n].x) / 2, y: (c.y + inner[n].y) / 2 })), z];
    return inner.flatMap((c, n) => [0.1, 0.3, 0.5, 0.7, 0.9].map((t) => ["x", "y"].map((key) =>
      (1 - t) ** 2 * joints[n][key] + 2 * t * (1 - t) * c[key] + t * t * joints[n + 1][key])));
  };
  told.crossings = edges.flatMap((edge) => trace(edge).flatMap(([x, y]) => nodes.filter((node, n) =>
    edge.source() !== node && edge.target() !== node && hits([x, y, x, y], bodies[n], 1)).map(() => edge.id())));
  const rim = (point, node) => {
    const [a, b, c, d] = bodies[nodes.indexOf(node)];
    return point.x > a - 2 && point.x < c + 2 && Math.min(Math.abs(point.y - b), Math.abs(point.y - d)) < 3;
  };
  told.loose = edges.filter((edge) => !rim(edge.renderedSourceEndpoint(), edge.source()[0])
    || !rim(edge.renderedTargetEndpoint(), edge.target()[0])).length;
  const arrows = edges.filter((edge) => ["sure", "forced", "guessed"].includes(edge.data("mark")));
  told.heads = arrows.filter((edge) => edge.style("target-arrow-shape") !== "none").length;
  told.down = arrows.filter((edge) => edge.source().position("y") < edge.target().position("y")).length;
  told.nodes = nodes.length;
  told.edges = edges.length;
  told.zoom = cy.zoom();
  told.overflow = document.documentElement.scrollWidth - innerWidth;
  told.inked = (() => {  // something is really painted
    const read = (canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return all("#canvas canvas").map(read).some((data) => data.some((value, at) => at % 4 === 3 && value > 0));
  })();
"""


@each(("n_variables", "readable"), [(5, 0.9), (12, 0.55), (31, 0.42), (100, 0.2), (300, 0.09)])
def test_graphs_of_any_size_fit_a_phone_and_a_desk(tmp_path, monkeypatch, n_variables, readable):
    monkeypatch.setattr(report, "FDR_LEVELS", (0.05,))
    result = tell_truth(n_variables)[0]
    if n_variables > 100:
        result = Result(result.names, result.probabilities)  # directions of so many take long
    result = dataclasses.replace(result, names=tuple(f"variable {'i' * (k % 9)}{k}" for k in range(n_variables)))
    both = browse(tmp_path, render(result), "await wait(400);" + LOOK, widths=(400, 1280))
    for width, told in both.items():
        faults = {key: told[key] for key in ("troubles", "overlaps", "outside", "clipped", "crossings", "loose")}
        assert faults == dict.fromkeys(faults, 0) | {"troubles": [], "crossings": []}, width
        assert (told["nodes"], told["edges"]) == (n_variables, len(result.graph().skeleton().undirected_edges()))
        assert told["heads"] == told["down"] == len(result.graph().directed_edges())
        assert told["overflow"] <= 0
        assert told["inked"]
    assert both["400"]["zoom"] > readable
    assert both["1280"]["zoom"] > 1.4 * readable or both["1280"]["zoom"] > 1


@each("n_variables", [2, 12])
def test_the_slider_chooses_the_links(tmp_path, n_variables):
    result = make_result(n_variables)
    told = browse(tmp_path, render(result), """
        told.start = drawn("link").length;
        slide(0.3); told.low = drawn("link").length; told.said = one("#n-links").textContent;
        slide(0.9); told.high = drawn("link").length; told.wrong = one("#n-false").textContent;
        one("#moral").click(); told.moral = drawn("moral").length; told.moralSaid = one("#n-moral").textContent;
        const before = cy.zoom(); one("#zoom-in").click(); told.zoomed = cy.zoom() / before;
        one("#fit").click(); told.back = cy.zoom() / before;
        told.plots = all("#detail .plot").length;
    """)  # fmt: skip
    p_n = np.round(result.probabilities[..., 1][np.triu_indices(n_variables, 1)], 4)
    assert told["troubles"] == []
    assert [told[when] for when in ("start", "low", "high")] == [(p_n >= t).sum() for t in (0.5, 0.3, 0.9)]
    assert told["said"].split()[0] == str((p_n >= 0.3).sum())
    assert int(told["moralSaid"]) == told["moral"]
    assert told["plots"] == (2 if n_variables > 2 else 1)
    assert (told["zoomed"], told["back"]) == (pytest.approx(1.3, abs=0.01), pytest.approx(1, abs=0.01))
    if (p_n >= 0.9).any():
        assert float(told["wrong"].replace("< ", "").split()[0]) == pytest.approx((1 - p_n[p_n >= 0.9]).sum(), abs=0.1)
    missed = told["wrong"].split(", ")[-1].replace("< ", "").split()
    assert float(missed[0]) == pytest.approx(p_n[p_n < 0.9].sum(), abs=0.1)
    assert missed[1:] == ["expected", "missed"]


def test_evidence_agrees_with_a_ridge_regression(tmp_path):
    result = make_result(8)
    told = browse(tmp_path, render(result), """
        const edge = cy.$id("link1");
        edge.emit("tap");
        told.title = one("#detail h2").textContent;
        told.captions = all("#detail figcaption").map((caption) => caption.textContent);
        told.picked = edge.hasClass("picked") && one("#rows tr.picked").dataset.pair === "1";
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
        enter("#search", "V3", "input"); told.found = all("#rows tr").length; enter("#search", "", "input");
        const direct = () => all("#rows tr").map((row) => Number(row.cells[2].textContent));
        told.falling = direct(); all("#head button")[2].click(); told.rising = direct();
        told.sort = all("#head th")[2].getAttribute("aria-sort");
        const first = one("#rows tr"); first.focus(); key(first, "ArrowDown");
        told.focus = document.activeElement === first.nextElementSibling;
        key(document.activeElement, "Enter"); told.picked = first.nextElementSibling.classList.contains("picked");
        cy.$id("n0").emit("tap");
        told.neighbours = all("#detail .list button").length;
        told.faded = cy.nodes(".faded").length === 7 - cy.$id("n0").neighborhood("node").length;
        one("#detail .list button").click(); told.plots = all("#detail .plot").length;
        key(one("#graph"), "Escape"); told.cleared = all("#detail .plot").length;
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


def test_a_variable_is_found_and_shown_with_its_surroundings(tmp_path):
    result, _ = tell_truth(31)
    ancestors = np.zeros((31, 31))
    ancestors[[4, 7], 3] = 0.9
    result = dataclasses.replace(result, ancestors=ancestors)
    told = browse(tmp_path, render(result), f"""
        const seek = (text) => enter("#find", text, "change");
        told.whole = shown().length;
        seek("nothing like it"); told.none = [one("#find-said").textContent, shown().length];
        seek("{result.names[3].upper()}"); told.near = shown(); told.name = one("#focus-name").textContent;
        one("#focus-up").click(); told.up = shown(); told.labels = cy.nodes().map((node) => node.data("label"));
        told.said = one("#focus-said").textContent;
        one("#focus-down").click(); told.below = shown();
        {LOOK}
        one("#focus-all").click(); told.again = shown().length;
        cy.$id("n5").emit("dbltap"); told.double = shown().includes(5) && shown().length < 31;
        key(one("#graph"), "Escape"); told.escaped = shown().length;
    """)  # fmt: skip
    graph = result.cpdag()
    linked = graph.skeleton().adjacency
    out_dd = (graph.adjacency > graph.adjacency.T).astype(int)
    reach_dd = np.linalg.matrix_power(np.eye(31, dtype=int) + out_dd, 31) > 0
    assert told["troubles"] == []
    assert (told["whole"], told["again"], told["escaped"]) == (31, 31, 31)
    assert told["none"] == ["No variable is called that.", 31]
    assert told["name"] == result.names[3]
    assert set(told["near"]) == {3, *np.flatnonzero(linked[3]).tolist()}
    assert set(told["up"]) == {*np.flatnonzero(reach_dd[:, 3]).tolist(), 4, 7}
    assert f"{result.names[4]}  0.90" in told["labels"]
    assert "how likely" in told["said"]
    assert set(told["below"]) == set(np.flatnonzero(reach_dd[3]).tolist())
    assert told["double"]
    assert (told["overlaps"], told["outside"], told["crossings"]) == (0, 0, [])


def test_long_names_that_begin_and_end_alike_are_told_apart(tmp_path):
    names = [f"median_household_{what}_in_thousands_of_2010" for what in ("income", "rent", "savings", "debt")]
    told = browse(tmp_path, render(make_result(5, names=[*names, "year"])), """
        const labels = () => cy.nodes().map((node) => node.data("label"));
        told.labels = labels();
        one("#rows tr").click(); told.axes = all("#detail .axis").map((text) => text.textContent);
        enter("#find", "year", "change"); told.near = labels();
    """)  # fmt: skip
    assert told["troubles"] == []
    assert len(set(told["labels"])) == len(names) + 1
    assert "year" in told["labels"]
    assert set(told["near"]) <= set(told["labels"])
    assert len(set(told["axes"][:2])) == 2
    assert max(map(len, told["labels"])) < len(names[0])


def test_variables_can_be_dragged_and_the_graph_moved(tmp_path):
    told = browse(tmp_path, render(make_result(8)), """
        const node = cy.$id("n0"), before = { ...node.position() };
        node.position({ x: before.x + 60, y: before.y + 40 }); node.emit("drag");
        told.loose = node.connectedEdges().map((edge) => edge.style("curve-style"));
        told.others = cy.edges().not(node.connectedEdges()).map((edge) => edge.style("curve-style"));
        const pan = { ...cy.pan() }; key(one("#graph"), "ArrowLeft"); told.panned = cy.pan().x - pan.x;
        key(one("#graph"), "0"); const after = cy.$id("n0").position();
        told.back = [after.x - before.x, after.y - before.y];
        told.sleeps = [cy.userZoomingEnabled()]; point(one("#graph"), "pointerdown", 100, 400);
        told.sleeps.push(cy.userZoomingEnabled()); point(one("#graph"), "pointerleave", 1, 1);
        told.sleeps.push(cy.userZoomingEnabled());
    """)  # fmt: skip
    assert told["troubles"] == []
    assert set(told["loose"]) == {"straight"}
    assert set(told["others"]) == {"unbundled-bezier"}
    assert told["panned"] == pytest.approx(40)
    assert told["back"] == [0, 0]
    assert told["sleeps"] == [False, True, False]  # or the wheel would stop at the graph while the page is read


def test_pictures_and_tables_can_be_downloaded(tmp_path):
    names = ['say "a", b', "=1+1", "<b>x</b>", "d", "e"]
    p = np.full((5, 5, 3), [0.05, 0.95, 0.0])
    p[0, 1] = p[1, 0] = p[3, 4] = p[4, 3] = [0.1, 0.0, 0.9]
    hidden = np.zeros((5, 5))
    hidden[0, 3] = hidden[3, 0] = 0.8
    result = Result(tuple(names), p, colliders=[(0, 2, 1, 0.9), (3, 2, 4, 0.8)], hidden_causes=hidden)
    told = browse(tmp_path, render(result), """
        const made = [];
        URL.createObjectURL = (blob) => { made.push(blob); return "blob:nothing"; };
        HTMLAnchorElement.prototype.click = function () { (told.names ??= []).push(this.download); };
        one("#hidden").click();
        for (const kind of ["png", "svg", "csv"]) one(`#save-${kind}`).click();
        told.types = made.map((blob) => blob.type);
        told.magic = await made[0].slice(1, 4).text();
        told.svg = await made[1].text(); told.csv = await made[2].text();
        told.marks = ["sure", "forced", "both"].map((mark) => marked(mark).length);
    """)  # fmt: skip
    assert told["troubles"] == []
    assert told["names"] == ["A_table-graph.png", "A_table-graph.svg", "A_table-graph.csv"]
    assert told["types"] == ["image/png", "image/svg+xml", "text/csv"]
    assert told["magic"] == "PNG"
    table = pd.read_csv(io.StringIO(told["csv"]))
    graph = result.cpdag()
    assert set(table["a"]) | set(table["b"]) == set(names)
    assert (table["edge"] == "->").sum() == len(graph.directed_edges())
    assert (table["edge"] == "<->").sum() == told["marks"][2] == 1
    picture = ElementTree.fromstring(told["svg"])
    parts = [(part.tag.rpartition("}")[2], part.get("class")) for part in picture]
    assert {part.text for part in picture if part.tag.endswith("text")} == set(names)
    assert parts.count(("path", "head")) == len(graph.directed_edges()) + 2
    assert parts.count(("rect", None)) == 5 + 1


@each("n_variables", [12, 100])
def test_the_report_prints_on_one_page(tmp_path, monkeypatch, n_variables):
    monkeypatch.setattr(report, "FDR_LEVELS", (0.05,))
    result = tell_truth(n_variables)[0]
    result = dataclasses.replace(
        result, warnings=tuple(f"{k}: a long sentence about this table. " * 3 for k in range(9))
    )
    path = tmp_path / "report.html"
    path.write_text(render(result), encoding="utf-8")
    start(tmp_path, path, f"--print-to-pdf={tmp_path / 'report.pdf'}", "--no-pdf-header-footer")
    content = (tmp_path / "report.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page\b", content)) == 1
    assert len(content) > 20_000  # the picture is there


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
        told.names = [...all("#names option")].map((option) => option.value);
        cy.nodes().forEach((node) => { node.emit("tap"); node.emit("mouseover"); node.emit("dbltap"); });
        one("#focus-all").click();
        all("#rows tr").forEach((row) => row.click());
        told.after = typeof window.hacked;
    """)  # fmt: skip
    assert told["troubles"] == []
    assert told["names"] == [" ".join(name.split()) for name in names]
    assert told["hacked"] == told["after"] == "undefined"
    assert told["images"] == 0


def test_directions_are_shown_beside_the_links(tmp_path):
    result, _ = tell_truth(12)
    graphs = [result.cpdag(), result.cpdag(fdr=0.2)]
    told = browse(tmp_path, render(result), """
        const arrows = () => marked("sure").length + marked("forced").length + marked("guessed").length;
        const look = () => ({ edges: drawn("link").length, heads: arrows(), said: one(".counts").textContent,
          rows: all("#arrow-rows tr").length, how: one("#how").textContent, dial: one("#dial").hidden,
          table: one("#arrows").hidden, key: one("#key").textContent });
        told.first = look();
        told.hollow = marked("forced").length;
        one("#moral").click(); told.moral = drawn("moral").length; told.moralSaid = one("#n-moral").textContent;
        one("#moral").click();
        all("#choices button").at(-1).click(); told.last = look();
        one("#view-links").click(); told.links = look();
        one("#view-directions").click(); told.again = look();
        one("#choices button").click();
        const row = one("#arrow-rows tr"); row.click();
        told.rows = all("#arrow-rows tr").map((row) => [...row.cells].map((cell) => cell.textContent));
        told.title = one("#detail h2").textContent;
        told.legend = all("#detail .legend")[1].textContent;
        told.picked = row.classList.contains("picked");
        const edge = cy.$id(`link${row.dataset.pair}`);
        edge.emit({ type: "mouseover", renderedPosition: { x: 300, y: 300 } }); told.tip = one("#tip").textContent;
    """)  # fmt: skip
    assert told["troubles"] == []
    assert told["moral"] == int(told["moralSaid"]) == len(result.moral_pairs().undirected_edges()) > 0
    assert told["hollow"] == sum(link.is_forced for link in list_links(result))
    assert told["first"]["how"].startswith("All links with probability 0.5 or more.")
    assert told["last"]["how"].startswith("As many links as possible with at most 20 %")
    for look, graph in zip(("first", "last"), graphs, strict=True):
        assert_shown(told[look], graph)
    assert (told["links"]["heads"], told["links"]["dial"], told["links"]["table"]) == (0, False, True)
    assert "linked directly" in told["links"]["key"]
    assert told["links"]["edges"] == len(result.skeleton().undirected_edges())
    assert told["again"] == told["last"]
    assert_rows(told["rows"], graphs[0])
    best = graphs[0].table().query(f"a == '{told['rows'][0][0]}' and b == '{told['rows'][0][2]}'").iloc[0]
    assert best.probability == pytest.approx(graphs[0].table()["probability"].iloc[0], abs=1e-3)
    assert told["title"] == f"{best.a} → {best.b}"
    assert told["legend"].startswith(f"{best.a} → {best.b} ")
    assert told["tip"] == f"{best.a} → {best.b}   link {best.skeleton:.2f}, this way {best.forward:.2f}"
    assert told["picked"]


def assert_shown(seen, graph):
    """The picture has the edges and arrows of a graph, and says so."""
    n_links, n_arrows = len(graph.table()), len(graph.directed_edges())
    assert (seen["edges"], seen["heads"], seen["rows"]) == (n_links, n_arrows, n_links)
    assert f"{n_arrows} with a direction" in seen["said"]
    assert (seen["dial"], seen["table"]) == (True, False)
    assert "an arrow: the first acts on the second" in seen["key"]


def assert_rows(rows, graph):
    """The table beside the picture has the numbers of a graph, arrows first."""
    table = graph.table().set_index(["a", "b"])
    for a, mark, b, *numbers in rows:
        row = table.loc[(a, b)]
        assert mark == {"->": "→", "--": "—"}[row.edge]
        expected = [row.skeleton, row.forward, 1 - row.forward - row.backward, row.backward]
        np.testing.assert_allclose([float(number) for number in numbers], expected, atol=0.006)
    n_arrows = len(graph.directed_edges())
    assert [mark for _, mark, *_ in rows] == ["→"] * n_arrows + ["—"] * (len(rows) - n_arrows)


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


def test_forced_arrows_are_hollow_guesses_open_and_hidden_causes_two_headed(tmp_path):
    p, p_arrow, said = np.tile([0.99, 0.01, 0.0], (5, 5, 1)), np.full((5, 5), 0.5), np.zeros((5, 5))
    for i, j, way, sure in [(0, 2, 0.9, 0.9), (1, 2, 0.9, 0.9), (3, 4, 0.7, 0.1)]:  # a → c ← b, and d — e
        p[i, j] = p[j, i] = [0.1, 0.9, 0.0]
        p_arrow[i, j], p_arrow[j, i], said[i, j] = way, 1 - way, sure
    hidden = np.zeros((5, 5))
    hidden[0, 1] = hidden[1, 0] = 0.8
    result = Result(tuple("abcde"), p, directions=p_arrow, compelled=said, hidden_causes=hidden)
    page = render(result).replace('"forced":[]', '"forced":[0]', 1)
    told = browse(tmp_path, page, """
        const look = (mark) => marked(mark).map((edge) => ["target-arrow-shape", "target-arrow-fill",
          "source-arrow-shape", "line-style"].map((name) => edge.style(name)));
        told.forced = look("forced"); told.first = one("#key").textContent;
        one("#view-guesses").click(); told.guessed = look("guessed"); told.second = one("#key").textContent;
        told.counts = one(".counts").textContent;
        one("#hidden").click(); told.both = look("both"); told.third = one("#key").textContent;
    """)  # fmt: skip
    assert told["troubles"] == []
    assert told["forced"] == [["triangle", "hollow", "none", "solid"]]
    assert "a hollow head: by itself another direction is likelier" in told["first"]
    assert told["guessed"] == [["vee", "hollow", "none", "solid"]]
    assert "an open head: a guess" in told["second"]
    assert "3 with a direction, 1 of them guessed" in told["counts"]
    assert told["both"] == [["triangle", "filled", "triangle", "dashed"]]
    assert "something outside the table is behind both" in told["third"]


def test_without_directions_there_is_one_view(tmp_path):
    told = browse(tmp_path, render(make_result(4)), """
        told.heads = marked("sure").length;
        told.hidden = ["#views", "#how", "#choices", "#arrows"].map((query) => one(query).hidden);
    """)  # fmt: skip
    assert told["troubles"] == []
    assert told["heads"] == 0
    assert told["hidden"] == [True] * 4
