"""The page takes a table and answers with its report, or with one sentence; nothing of the upload stays behind."""

import gzip
import json
import re
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from cases import each
from graphbam.web import build_app, server
from standins import save_toy_colliders

TABLE = b"a,b,c\n" + b"".join(b"%d,%d,%d\n" % (i % 7, (3 * i + i % 5) % 11, (i * i) % 13) for i in range(60))


HOME = "http://127.0.0.1:8765"


def visit(**settings):
    return TestClient(build_app(**settings), base_url=HOME)


@pytest.fixture(scope="module")
def client():
    return visit()


def send(client, name="cells.csv", content=TABLE, **fields):
    return client.post("/report", files={"table": (name, content)}, data=fields)


def test_the_page_loads_nothing_from_elsewhere(client):
    answer = client.get("/")
    assert answer.status_code == 200
    assert "http" not in answer.text.replace("http-equiv", "")


def test_a_table_comes_back_as_its_report(client):
    answer = send(client)
    assert answer.status_code == 200
    assert "cells.csv" in answer.text
    model = json.loads(re.search(r'id="model">(.*?)</script>', answer.text, re.DOTALL)[1])
    assert model["names"] == ["a", "b", "c"]
    assert ["Table", "cells.csv"] in model["provenance"]  # not a temporary copy that is gone
    assert model["calls"][0] == "graphbam infer cells.csv -o out"


@each(
    ("name", "content", "status", "says"),
    [
        ("empty.csv", b"", 422, "empty"),
        (
            "text.csv",
            b"a,b\nx,1\ny,2\nx,3\n",
            422,
            "Use the box “turn text columns into numbers” to turn text and dates",
        ),
        ("text.csv", b"a,b\nx,1\ny,2\nx,3\n", 422, "or a file without a to leave it out"),
        ("..", b"a,b\n", 422, "table has a header but no rows"),
        ("../../x.csv", b"a,b\n", 422, "x.csv has a header but no rows"),
        ("C:\\mine\\x.csv", b"a,b\n", 422, "x.csv has a header but no rows"),
        ("", b"", 400, "no table"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_sentence(client, name, content, status, says):
    answer = send(client, name, content)
    assert answer.status_code == status
    assert says in answer.text
    assert tempfile.gettempdir() not in answer.text


def test_names_of_files_are_data(client):
    answer = send(client, "<script>alert(1)</script>.csv", b"")
    assert "<script>alert" not in answer.text


def test_text_columns_are_encoded_on_request(client):
    content = b"a,b,c\n" + b"".join(b"%s,%d,%d\n" % ([b"low", b"high"][i % 2], i % 9, (i * i) % 7) for i in range(40))
    assert send(client, content=content).status_code == 422
    assert send(client, content=content, encode="yes").status_code == 200


def test_the_report_has_directions_where_there_are_weights_for_them(tmp_path):
    colliders = str(save_toy_colliders(tmp_path / "toy.safetensors"))
    assert '"graphs":[{' in send(visit(colliders=colliders)).text
    assert '"graphs":[]' in send(visit(colliders=None)).text


def test_the_page_gives_every_answer_of_one_pass(client):
    text = send(client).text
    assert '["Directions","one-pass"]' in text
    assert '"hidden":[' in text


def test_nothing_stays_behind(client, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    send(client)
    assert list(tmp_path.iterdir()) == []


def test_tables_are_taken_in_turn_by_one_thread_while_the_page_stays_open(monkeypatch):
    client, busy, release, used = visit(colliders=None), threading.Event(), threading.Event(), []

    def work(content, name, **settings):
        used.append(threading.current_thread())
        busy.set()
        assert release.wait(30)
        return name

    monkeypatch.setattr(server, "render_upload", work)
    with client, ThreadPoolExecutor(3) as visitors:
        answers = [visitors.submit(send, client, name) for name in ("a.csv", "b.csv", "c.csv")]
        assert busy.wait(30)
        assert client.get("/").status_code == 200
        assert len(used) == 1
        release.set()
        assert sorted(answer.result().text for answer in answers) == ["a.csv", "b.csv", "c.csv"]
    assert len(used) == 3
    assert len({*used}) == 1


def test_weights_are_loaded_once(monkeypatch):
    from graphbam.inference import networks

    loads, load = [], networks.load_weights
    monkeypatch.setattr(networks, "load_weights", lambda *what: loads.append(what) or load(*what))
    client = visit(colliders=None)
    assert [send(client).status_code for _ in range(2)] == [200, 200]
    assert len(loads) == 1


# ── manners towards strangers ─────────────────────────────────────────────────────────────────────────────


def in_parts(n_parts):
    """A form with a file of so many kilobytes, sent without saying how long it is."""
    head = b'--x\r\nContent-Disposition: form-data; name="table"; filename="t.csv"\r\n\r\na,b\n'
    yield head
    for _ in range(n_parts):
        yield b"1,2\n" * 256
    yield b"\r\n--x--\r\n"


def test_what_is_too_large_is_refused_while_it_arrives(client, monkeypatch):
    monkeypatch.setattr(server, "LARGEST_UPLOAD", 100_000)
    header = {"content-type": "multipart/form-data; boundary=x"}
    answer = client.post("/report", content=in_parts(200), headers=header)
    assert answer.status_code == 413
    assert "larger than" in answer.text
    assert client.post("/report", content=in_parts(50), headers=header).status_code == 422  # constant columns


def test_a_gzipped_table_may_not_grow_without_end(client, monkeypatch):
    monkeypatch.setattr(server, "LARGEST_UPLOAD", 10 * 2**20)
    assert send(client, "cells.csv.gz", gzip.compress(TABLE)).status_code == 200
    answer = send(client, "bomb.csv.gz", gzip.compress(b"1,2\n" * 4 * 2**20))
    assert answer.status_code == 422
    assert "bomb.csv.gz unpacks to more than 10 MiB" in answer.text


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
    ],
)
def test_other_names_and_other_sites_are_refused(client, headers, status):
    assert client.get("/", headers=headers).status_code == status
    assert client.post("/report", headers=headers).status_code == (400 if status == 200 else status)


def test_a_name_that_was_allowed_is_answered():
    client = visit(hosts=("tables.lab",))
    assert client.get("/", headers={"host": "tables.lab"}).status_code == 200
    assert client.get("/").status_code == 403
