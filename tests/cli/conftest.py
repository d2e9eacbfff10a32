"""Commands that run inside the tests draw their pictures themselves: a second process would be one per picture."""

import pytest


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    monkeypatch.setattr("graphbam.machine.helper._count_cores", lambda: 1)
