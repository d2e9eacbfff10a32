"""What the other tests rest on: loops over cases try every one, and name the one that fails."""

import inspect

import numpy as np
import pytest

import graphbam
from cases import each


def test_a_loop_tries_every_case_and_asks_pytest_for_fixtures_only():
    seen = []

    @each(("a", "b"), [(1, 2), (3, 4)])
    @each("c", "xy")
    def law(net, a, b, c):
        seen.append((net, a, b, c))

    assert list(inspect.signature(law).parameters) == ["net"]
    law(net="toy")
    assert seen == [("toy", 1, 2, "x"), ("toy", 1, 2, "y"), ("toy", 3, 4, "x"), ("toy", 3, 4, "y")]


@pytest.fixture
def zeros():
    return np.zeros(1)


@each("n", [1, 2])
def test_no_case_sees_what_another_has_changed(tmp_path, monkeypatch, zeros, n):
    assert not list(tmp_path.iterdir())
    assert not hasattr(graphbam, "changed")
    assert zeros == 0
    (tmp_path / "file").touch()
    monkeypatch.setattr(graphbam, "changed", n, raising=False)
    zeros += n


def test_the_case_that_fails_is_named():
    @each("n", [1, 2, 3], ids=["one", "two", "three"])
    def law(n):
        assert n != 2

    with pytest.raises(AssertionError) as caught:
        law()
    assert caught.value.__notes__ == ["in the case 'two'"]


def test_cases_are_skipped_one_by_one():
    seen = []

    @each("n", [1, 2])
    def law(n):
        seen.append(n)
        if n <= limit:
            pytest.skip("not here")

    limit = 1
    law()
    limit = 2
    with pytest.raises(pytest.skip.Exception):
        law()
    assert seen == [1, 2, 1, 2]
