"""What the routes promise: bounds hold while bytes arrive, strangers are refused, visitors are kept apart."""

import gzip
import io
import json
import re
import tempfile
import zipfile

import pandas as pd
import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from cases import each
from graphbam.web import preview, server
from graphbam.web.words import spell_note
from standins import save_toy_colliders
from visits import HOME, TABLE


def words_of(answer):
    return "".join(part if isinstance(part, str) else part["say"] for part in answer.json()["words"])


def read_model(report):
    return json.loads(re.search(r'id="model">(.*?)</script>', report, re.DOTALL)[1])


@each("path", ["/", "/app.js", "/board.js", "/app.css"])
def test_the_page_loads_nothing_from_elsewhere(page, path):
    answer = page.client.get(path)
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r"https?://(?!www\.w3\.org)", answer.text)


def test_a_table_comes_back_as_its_report_and_files(page):
    run = page.infer(page.hand_in())
    assert run["state"] == "done"
    report = page.client.get(f"/runs/{run['run']}/report")
    assert "sandbox" in report.headers["content-security-policy"]
    model = read_model(report.text)
    assert model["names"] == ["a", "b", "c"] == run["names"]
    assert ["Table", "cells.csv"] in model["provenance"]  # not a temporary copy that is gone
    assert ["Directions", "one-pass"] in model["provenance"]
    assert model["calls"][0] == "graphbam infer cells.csv -o out"
    packed = page.client.get(f"/runs/{run['run']}/all.zip")
    assert "graphbam-cells.zip" in packed.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
        assert set(archive.namelist()) == set(run["files"]) >= {"edges.csv", "report.html", "graph.png"}
    assert page.client.get(f"/runs/{run['run']}/graph.png").content[:4] == b"\x89PNG"
    assert page.client.get(f"/runs/{run['run']}/passwd").status_code == 404


def test_a_look_says_what_a_run_does(page):
    table = page.hand_in(TABLE.replace(b"a,b,c\n", b"a,b,c\n-999,1,1\n-999,2,2\n"))
    seen = page.look(table, drop=["c"]).json()
    run = page.infer(table, drop=["c"])
    model = read_model(page.client.get(f"/runs/{run['run']}/report").text)
    assert seen["plan"] == list(map(spell_note, model["changes"]))
    assert set(seen["warnings"]) <= set(map(spell_note, model["warnings"]))
    assert seen["variables"] == model["names"] == ["a", "b"]


def test_a_column_that_is_refused_is_marked(page):
    """Text without repetition names rows where it comes first, or where all text is turned into numbers."""
    rows = "\n".join(f"s{k},{k % 7},{k * k % 11},note {k}" for k in range(20))
    table = page.hand_in(f"sample,a,b,comment\n{rows}".encode())
    refused, coded = page.look(table).json(), page.look(table, encode=True).json()
    assert [(column["kind"], column["fate"]) for column in refused["columns"]][::3] == [
        ("names of rows", ""), ("text, 20 levels", "not a number"),
    ]  # fmt: skip
    assert "'comment'" in refused["problem"][0]
    assert "'sample'" not in refused["problem"][0]
    assert {column["fate"] for column in coded["columns"][::3]} == {"names rows, left out"}


def test_choices_reach_the_answer(page):
    run = page.infer(page.hand_in(), required=[["a", "->", "c"]], tiers=[["b"], ["a", "c"]], stability=2)
    assert {"a": "a", "b": "c", "directed": True} in run["links"]
    model = read_model(page.client.get(f"/runs/{run['run']}/report").text)
    assert ["Resamples", "2"] in model["provenance"]


def test_examples_can_be_taken(page):
    answer = page.client.post("/examples/crops")
    seen = page.look(answer.json()["table"], interventions="set", encode=True).json()
    assert seen["problem"] is None
    assert {column["name"]: column["targets"] for column in seen["columns"]}["set"]
    assert page.client.post("/examples/..%2Fx").status_code == 404


def test_a_sheet_of_a_spreadsheet_is_chosen_by_a_button(page):
    pytest.importorskip("openpyxl")
    book, frame = io.BytesIO(), pd.read_csv(io.BytesIO(TABLE))
    with pd.ExcelWriter(book) as writer:
        frame.to_excel(writer, sheet_name="Before", index=False)
        frame.rename(columns={"a": "z"}).to_excel(writer, sheet_name="After", index=False)
    table = page.hand_in(book.getvalue(), "book.xlsx")
    button = next(
        part for part in page.look(table).json()["words"] if isinstance(part, dict) and part["say"] == "After"
    )
    seen = page.look(table, **button["set"]).json()
    assert (seen["name"], seen["variables"]) == ("book.xlsx::After", ["z", "b", "c"])
    run = page.infer(table, **button["set"])
    assert run["names"] == ["z", "b", "c"]
    model = read_model(page.client.get(f"/runs/{run['run']}/report").text)
    assert ["Table", "book.xlsx::After"] in model["provenance"]


@each(
    ("name", "content", "says"),
    [
        ("text.csv", b"a,b\nx,1\ny,2\nx,3\n", "Use turn text into numbers for text and dates"),
        ("text.csv", b"a,b\nx,1\ny,2\nx,3\n", "or leave out a to leave it out"),
        ("..", b"a,b\n", "table has a header but no rows"),
        ("../../x.csv", b"a,b\n", "x.csv has a header but no rows"),
        ("C:\\mine\\x.csv", b"a,b\n", "x.csv has a header but no rows"),
        ("x.csv", b"\x00\x01\x02\xff" * 999, "x.csv"),
        ("x.csv.gz", b"\x1f\x8b\x08garbage", "damaged or incomplete gzip"),
        ("x.parquet", b"PAR1garbage", "damaged parquet"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_sentence(page, name, content, says):
    table = page.hand_in(content, name)
    seen, run = page.look(table), page.infer(table)
    problem = words_of(seen) if seen.status_code == 422 else words_of_problem(seen)
    assert says in problem
    assert run["state"] == "refused"
    assert "".join(part if isinstance(part, str) else part["say"] for part in run["words"]) == problem
    assert tempfile.gettempdir() not in problem
    assert "Traceback" not in problem


def words_of_problem(seen):
    return "".join(part if isinstance(part, str) else part["say"] for part in seen.json()["problem"])


@each(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b"[]", 422),
        (b'{"weights": "x"}', 422),
        (b'{"encode": 1}', 422),
        (b'{"drop": "a"}', 422),
        (b'{"required": [["a"]]}', 422),
        (b'{"required": ["a -> b"]}', 422),
        (b'{"stability": 1e9}', 422),
        (b'{"tiers": {"a": 1}}', 422),
        (b" " * (2**20 + 1), 413),
    ],
)
def test_choices_that_no_page_sends_are_refused(page, body, status):
    table = page.hand_in()
    for what in ("look", "runs"):
        answer = page.client.post(f"/tables/{table}/{what}", content=body)
        assert answer.status_code == status
        assert words_of(answer)


def test_names_of_files_are_data(page):
    run = page.infer(page.hand_in(name='<script>alert(1)</script>"\r\nx: y.csv'))
    assert "<script>alert" not in page.client.get(f"/runs/{run['run']}/report").text
    answer = page.client.get(f"/runs/{run['run']}/all.zip")
    assert "x" not in answer.headers
    assert "\n" not in answer.headers["content-disposition"]


def test_visitors_are_kept_apart(page):
    run = page.infer(page.hand_in())
    stranger = TestClient(page.app, base_url=HOME)
    assert stranger.get("/state").json()["runs"] == []
    for path in (f"/runs/{run['run']}", f"/runs/{run['run']}/report", f"/runs/{run['run']}/all.zip"):
        assert stranger.get(path).status_code == 404
        assert page.client.get(path).status_code == 200
    assert stranger.delete(f"/runs/{run['run']}").status_code == 404
    assert stranger.post(f"/tables/{run['table']}/runs", json={}).status_code == 404
    assert page.client.get("/state").json()["runs"][0]["run"] == run["run"]


def test_nothing_stays_behind_of_a_page_with_weights_of_its_own(open_page, tmp_path, monkeypatch):
    colliders = str(save_toy_colliders(tmp_path / "toy.safetensors"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    page = open_page(colliders=colliders)
    run = page.infer(page.hand_in())
    assert ["Directions", "two-step"] in read_model(page.client.get(f"/runs/{run['run']}/report").text)["provenance"]
    assert list(page.app.state.desk.scratch.iterdir()) == []
    page.close()
    assert list((tmp_path / "temporary").iterdir()) == []


# ── bounds ────────────────────────────────────────────────────────────────────────────────────────────────


def in_parts(n_parts):
    """A table of so many kilobytes, sent without saying how long it is."""
    yield b"a,b\n"
    for _ in range(n_parts):
        yield b"1,2\n" * 256


def test_what_is_too_large_is_refused_while_it_arrives(page, monkeypatch):
    monkeypatch.setattr(server, "LARGEST_UPLOAD", 100_000)
    assert page.client.post("/tables", content=in_parts(200)).status_code == 413
    assert page.client.post("/tables", content=in_parts(50)).status_code == 201
    answer = page.client.post("/tables", content=b"1,2\n" * 50_000)
    assert answer.status_code == 413
    assert "larger than" in words_of(answer)
    assert page.client.post("/tables", content=b"").status_code == 422


@each("length", ["-1", "1e3", "nonsense", str(10**12)])
def test_a_body_is_not_believed_about_its_length(page, length):
    assert page.client.post("/tables", content=in_parts(1), headers={"content-length": length}).status_code == 413


def test_a_gzipped_table_may_not_grow_without_end():
    content = gzip.compress(b"1,2\n" * 2**20)
    assert preview.open_table("t.csv.gz", content).getbuffer().nbytes == 2**22
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preview, "LARGEST_UNPACKED", 2**20)
        with pytest.raises(server.GraphbamError, match=r"t\.csv\.gz unpacks to more than 1 MiB"):
            preview.open_table("t.csv.gz", content)


# ── manners towards strangers ─────────────────────────────────────────────────────────────────────────────


@each(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:1234"}, 200),
        ({"host": "[::1]:8765"}, 200),
        ({"host": "LOCALHOST"}, 200),
        ({"origin": HOME}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "evil.example@[::1"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[::1"}, 403),
    ],
)
def test_other_names_and_other_sites_are_refused(page, headers, status):
    assert page.client.get("/", headers=headers).status_code == status
    assert page.client.post("/examples/sachs", headers=headers).status_code == (201 if status == 200 else status)


def test_a_name_that_was_allowed_is_answered(open_page):
    client = open_page(hosts=("Tables.lab",)).client
    assert client.get("/", headers={"host": "tables.lab"}).status_code == 200  # browsers write names small
    assert client.get("/").status_code == 403
