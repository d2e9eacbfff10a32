"""The page takes a table and answers with its report, or with one sentence; nothing of the upload stays behind."""

import tempfile

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from graphbam.web import build_app
from standins import save_toy_colliders

TABLE = b"a,b,c\n" + b"".join(b"%d,%d,%d\n" % (i % 7, (3 * i + i % 5) % 11, (i * i) % 13) for i in range(60))


@pytest.fixture
def client():
    return TestClient(build_app())


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
    assert "3 variables" in answer.text or '"a"' in answer.text


@pytest.mark.parametrize(
    ("name", "content", "status", "says"),
    [
        ("empty.csv", b"", 422, "empty"),
        ("text.csv", b"a,b\nx,1\ny,2\nz,3\n", 422, "text"),
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
    assert '"graphs":[{' in send(TestClient(build_app(colliders=colliders))).text
    assert '"graphs":[]' in send(TestClient(build_app(colliders=None))).text


def test_nothing_stays_behind(client, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    send(client)
    assert list(tmp_path.iterdir()) == []
