"""The public face: every name it promises is there."""

from __future__ import annotations

import pytest

import graphbam


@pytest.mark.parametrize("name", graphbam.__all__)
def test_every_public_name_resolves(name):
    assert getattr(graphbam, name) is not None
    assert name in dir(graphbam)


def test_names_are_promised_once():
    assert len(set(graphbam.__all__)) == len(graphbam.__all__)


def test_an_unknown_name_is_refused_with_what_there_is():
    with pytest.raises(AttributeError, match="no attribute 'infre'; it offers __version__"):
        _ = graphbam.infre
