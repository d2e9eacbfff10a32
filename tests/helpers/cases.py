"""Many cases, few tests: which of them a quick run (`make test`) takes, and which are looped over in one test."""

import contextlib
import functools
import inspect
import os
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import settings


def quick_and_long(quick, more):
    """Parameters of a test: those in `quick` always, those in `more` only in the long run (`make test-all`)."""
    return [*quick, *(pytest.param(value, marks=pytest.mark.long) for value in more)]


def examples(quick, more):
    """Settings of a law that hypothesis tries on random examples: so many, or in the long run so many."""
    number = more if os.environ.get("GRAPHBAM_TEST_ALL") else quick
    return settings(max_examples=number, deadline=None, database=None)


SEEDS = quick_and_long([0], [1, 2])
"""One seed; laws that hold for it are tried with two more in the long run."""


def each(names, cases, ids=None):
    """Like `pytest.mark.parametrize`, but one test for all cases: they are small, and state one rule together.

    The first case that fails ends the test, and is named. Each case has an empty `tmp_path`, a `monkeypatch` that is
    undone behind it, and arrays of its own; other fixtures are made once and shared, so none of them may be changed.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = list(cases)
    labels = list(ids) if isinstance(ids, Iterable) else cases

    def decorate(test):
        signature = inspect.signature(test)

        def loop(**fixtures):
            skipped = []
            for k, (label, case) in enumerate(zip(labels, cases, strict=True)):
                values = [case] if len(names) == 1 else case
                try:
                    with contextlib.ExitStack() as stack:
                        fresh = {name: _renew(name, value, k, stack) for name, value in fixtures.items()}
                        test(**fresh, **dict(zip(names, values, strict=True)))
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except BaseException as error:
                    error.add_note(f"in the case {label!r}"[:500])
                    raise
            if len(skipped) == len(cases):
                raise skipped[0]

        functools.update_wrapper(loop, test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
        loop.__signature__ = signature.replace(parameters=kept)
        return loop

    return decorate


def _renew(name, value, k, stack):
    """A fixture as case number k gets it."""
    if name == "tmp_path":
        folder = value / f"case{k}"
        folder.mkdir()
        return folder
    if name == "monkeypatch":
        return stack.enter_context(value.context())
    return value.copy() if isinstance(value, np.ndarray) else value
