"""Notebooks: the tutorial runs, results and graphs show themselves, figures of loops are shown, bars come and go."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

nbclient = pytest.importorskip("nbclient")

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "start.ipynb"

CHECKS = {
    "inline": "%matplotlib inline\nresult.plot()",
    "named": "figure = result.plot()",
    "saved": "figure = result.plot('again.png')\nNone",
    "bar": """
import time
from graphbam.inference import bars
bars.PATIENCE = 0.2
with bars.listening(None) as tell:
    tell(0.25, "a <quarter>")
    time.sleep(0.6)
    shown = bars.html and type(tell.__self__).__name__, tell.__self__.is_shown, tell.__self__._spell()
shown
""",
    "silent": """
with bars.listening(False) as tell:
    tell(0.25, "nothing")
    time.sleep(0.4)
""",
}
"""What is tried after the tutorial, in the same kernel."""


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Code cells of the tutorial by their source, and the checks by name, with what they put out."""
    notebook = nbformat.read(TUTORIAL, as_version=4)
    n_tutorial = len(notebook.cells)
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in CHECKS.values()]
    folder = tmp_path_factory.mktemp("notebook")
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    found = {cell.source: cell.outputs for cell in notebook.cells[:n_tutorial] if cell.cell_type == "code"}
    return found | dict(zip(CHECKS, (cell.outputs for cell in notebook.cells[n_tutorial:]), strict=True)), folder


def outputs_of(cells, start):
    return next(outputs for source, outputs in cells[0].items() if source.startswith(start))


def pictures_in(outputs):
    return [one for one in outputs if "image/png" in one.get("data", {})]


def test_the_tutorial_is_kept_without_outputs():
    notebook = nbformat.read(TUTORIAL, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)


def test_results_and_graphs_show_themselves(cells):
    for start in ("import graphbam", "result.dag()"):
        card = outputs_of(cells, start)[-1]["data"]["text/html"]
        assert "data:image/png;base64," in card
        assert "<th>this way</th>" in card
    assert "text/html" in outputs_of(cells, "result.arrows()")[-1]["data"]


def test_every_figure_of_a_loop_is_shown_once(cells):
    assert len(pictures_in(outputs_of(cells, "for fdr"))) == 2
    for name, n_shown in {"inline": 1, "named": 1, "saved": 0}.items():
        assert len(pictures_in(cells[0][name])) == n_shown, name


def test_files_are_written(cells):
    assert {path.name for path in cells[1].iterdir()} >= {"proteins.png", "proteins.html", "proteins.mmd", "again.png"}
    assert outputs_of(cells, 'result.plot("proteins.png")')[-1]["text"].startswith("flowchart TD")


def test_a_bar_comes_by_itself_and_goes(cells):
    outputs = cells[0]["bar"]
    told = " ".join(outputs[-1]["data"]["text/plain"].split())
    assert told.startswith("('_NotebookBar', True, ")
    assert 'value="0.250"' in told
    assert "a &lt;quarter&gt;" in told
    bars = [one["data"]["text/html"] for one in outputs if "text/html" in one.get("data", {})]
    assert bars == [""]  # it was there, and is gone
    assert cells[0]["silent"] == []
