import pytest

pytest.importorskip("starlette")
from graphbam.web import build_app
from visits import Page


@pytest.fixture
def open_page():
    """Make a page of its own, ended with the test."""
    pages = []

    def make(**settings):
        pages.append(Page(build_app(**settings)))
        return pages[-1]

    yield make
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def page():
    """One page for many tests: its processes load the network once."""
    made = Page(build_app())
    yield made
    made.close()
