"""Scripts of runs/ that take no settings read their command line all the same: asked for help, they write nothing."""

import pytest


@pytest.mark.parametrize("name", ["example_crops", "screenshots"])
def test_help_is_all_that_happens(run_script, monkeypatch, capsys, name):
    if name == "screenshots":
        selenium = pytest.importorskip("selenium.webdriver")
        monkeypatch.setattr(selenium, "Chrome", lambda *_: pytest.fail("pictures are taken"))
    monkeypatch.setattr("pathlib.Path.write_bytes", lambda *_: pytest.fail("a file is written"))
    with pytest.raises(SystemExit) as left:
        run_script(name, "--help")
    assert left.value.code == 0
    assert f"python runs/{name}.py" in capsys.readouterr().out
