"""Infers a dozen tables, shipped, simulated or in scikit-learn, and writes docs/gallery.md with their pictures.

    python runs/gallery.py                 # all of them, a minute or two on a CPU
    python runs/gallery.py --only wine     # print one entry, write nothing

Run it again after a release of weights or a change to the picture.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

import graphbam as gb
from graphbam.output.figures import to_png
from graphbam.output.files import list_links

DOCS = Path(__file__).resolve().parents[1] / "docs"

HEAD = """# Gallery

A dozen tables and what graphbam makes of them, with the shipped weights and default settings unless the code says
otherwise. Some tables come with graphbam or scikit-learn; others are simulated, so their truth is known.
`python runs/gallery.py` makes this page.
"""


@dataclass(frozen=True)
class Entry:
    """A table, how to infer it, and what to look at."""

    name: str
    title: str
    about: str
    code: str
    """Makes `result`, and `truth` where it is known."""
    look: str


ENTRIES = (
    Entry(
        "proteins",
        "Proteins in cells",
        "Eleven signalling proteins in 853 cells (Sachs and others, 2005).",
        'result = gb.infer(gb.example_path("sachs"))',
        "One condition, nothing set: no link has a direction. The [tutorial](tutorial.md) goes on from here.",
    ),
    Entry(
        "crops",
        "A field trial",
        "Simulated: 600 plots with text, gaps, and two experiments.",
        """result = gb.infer(gb.example_path("crops"), encode=True, interventions="set")
truth = ["rain -> irrigation", "rain -> moisture", "irrigation -> moisture", "soil -> moisture", "soil -> nitrogen",
         "moisture -> leaves", "nitrogen -> leaves", "leaves -> pests", "leaves -> harvest", "pests -> harvest"]""",
        "Irrigation and nitrogen were set in some rows, and that decides directions ([experiments](interventions.md)).",
    ),
    Entry(
        "wages",
        "A lottery, talent and wages",
        "Simulated: 1,000 people. A lottery decides who gets more training; talent acts on training and on wage.",
        """lottery, talent, luck, fortune = np.random.default_rng(0).normal(size=(4, 1000))
training = lottery + talent + luck
wage = 2 * training + 3 * talent + fortune
table = pd.DataFrame({"lottery": lottery, "talent": talent, "training": training, "wage": wage})
result = gb.infer(table)
truth = ["lottery -> training", "talent -> training", "talent -> wage", "training -> wage"]""",
        "Training has two independent causes; correlations alone then decide directions ([directions](directions.md)).",
    ),
    Entry(
        "diabetes",
        "Patients with diabetes",
        "442 patients: age, sex, body mass, blood pressure, six blood values, progress after a year (scikit-learn).",
        "result = gb.infer(load_diabetes(as_frame=True).frame)",
        "The blood values s1 to s4 nearly determine one another. With `target`, body mass and s5 have a link of a"
        " little more than one half, and s3 and blood pressure of a little less; something hidden would explain that"
        " as well.",
    ),
    Entry(
        "wine",
        "Wines of three growers",
        "178 wines, thirteen chemical measurements and the grower (scikit-learn).",
        "result = gb.infer(load_wine(as_frame=True).frame)",
        "`target` is the grower, a common cause of much. Without that column, its effects would be tied to each other.",
    ),
    Entry(
        "iris",
        "Irises of three species",
        "150 flowers, four lengths and the species (scikit-learn).",
        "result = gb.infer(load_iris(as_frame=True).frame)",
        "The flowers cluster by species: everything is tied to everything. 150 of them say nothing about directions.",
    ),
    Entry(
        "tumours",
        "Tumours under the microscope",
        "569 tumours, thirty shape features and the diagnosis (scikit-learn).",
        "result = gb.infer(load_breast_cancer(as_frame=True).frame)",
        "Radius, perimeter and area measure one thing three times: this is a graph of measurements, not of biology.",
    ),
    Entry(
        "exercise",
        "Twenty athletes",
        "Three exercises and three body measures of twenty men (scikit-learn).",
        "result = gb.infer(load_linnerud(as_frame=True).frame)",
        "Twenty rows are few: another twenty men may not show all of these links. Infer with `stability=100` to check.",
    ),
    Entry(
        "cells",
        "Single cells",
        "Simulated: counts of twelve genes with dropouts and library size.",
        """truth, cells = gb.simulate(world="single-cell", n_variables=12, n_samples=800, seed=4)
result = gb.infer(pd.DataFrame(cells, columns=truth.names))""",
        "Dropouts and library size hide some links and create false ones ([worlds](worlds.md)).",
    ),
    Entry(
        "survey",
        "A questionnaire",
        "Simulated: answers on a few levels, with one hidden trait behind nearly all of them.",
        """truth, cells = gb.simulate(world="questionnaire", n_variables=8, n_samples=600, seed=6)
result = gb.infer(pd.DataFrame(cells, columns=truth.names))""",
        "A trait that nobody measured ties answers together ([hidden causes](hidden.md)).",
    ),
    Entry(
        "servers",
        "Monitored servers",
        "Simulated: time series of ten metrics with lagged parents, a season and a load that are not in the table.",
        """truth, cells = gb.simulate(world="monitoring", n_variables=10, n_samples=600, seed=3)
result = gb.infer(pd.DataFrame(cells, columns=truth.names))""",
        "Rows of a series repeat each other and count for less. graphbam is weak on such tables ([limits](limits.md)).",
    ),
    Entry(
        "curves",
        "Thirty curved dependencies",
        "Simulated: thirty variables, cosines of their parents, 500 rows.",
        """truth, cells = gb.simulate(mechanism="cosine", n_variables=30, n_samples=500, degree=2.5, seed=5)
result = gb.infer(pd.DataFrame(cells, columns=truth.names))""",
        "Correlations do not show a cosine; the network sees it.",
    ),
)


def run(entry: Entry) -> dict[str, Any]:
    """Execute the code of an entry; returns what it made."""
    from sklearn import datasets

    loaders: dict[str, Callable[..., Any]] = {k: getattr(datasets, k) for k in dir(datasets) if k.startswith("load_")}
    scope: dict[str, Any] = {"gb": gb, "np": np, "pd": pd, **loaders}
    exec(entry.code, scope)
    return scope


def describe(entry: Entry, scope: dict[str, Any]) -> str:
    """The section of an entry."""
    result, truth = scope["result"], scope.get("truth")
    links = list_links(result)
    shown = ", ".join(
        f"{link.a} {'→' if link.is_directed else '—'} {link.b} ({link.numbers['skeleton']:.2f})" for link in links[:5]
    )
    facts = [
        f"{result.n_variables} variables, {result.spell_rows()}: {len(links)} link{'' if len(links) == 1 else 's'}"
    ]
    facts[0] += f", {sum(link.is_directed for link in links)} with a direction"
    facts.append(f"Surest: {shown}" if links else "No link has a probability of one half or more")
    if truth is not None:
        score = result.score(truth)
        facts.append(
            f"Against the truth: F1 of the links {score.f1:.2f}, average precision {score.average_precision:.2f}"
        )
    mind = "".join(f"    - {warning}\n" for warning in result.warnings)
    return (
        f"\n## {entry.title}\n\n{entry.about}\n\n```py\n{entry.code}\n```\n\n"
        f"![{entry.title}](gallery/{entry.name}.png)\n\n"
        + "".join(f"- {fact}.\n" for fact in facts)
        + (f"- Keep in mind:\n\n{mind}" if mind else "")
        + f"\n{entry.look}\n"
    )


def draw(result: gb.Result, path: Path, width: int = 900) -> None:
    """A picture of few bytes: this wide at most, in 64 colours."""
    picture = Image.open(io.BytesIO(to_png(gb.plot(result), dpi=110))).convert("RGB")
    picture.thumbnail((width, width))
    picture.quantize(64).save(path, optimize=True)


def main() -> None:
    """Write the page, or print one entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[entry.name for entry in ENTRIES])
    only = parser.parse_args().only
    if only:
        entry = next(entry for entry in ENTRIES if entry.name == only)
        print(describe(entry, run(entry)))
        return
    (DOCS / "gallery").mkdir(exist_ok=True)
    text = HEAD
    for entry in ENTRIES:
        scope = run(entry)
        draw(scope["result"], DOCS / "gallery" / f"{entry.name}.png")
        text += describe(entry, scope)
        print(entry.name, flush=True)
    (DOCS / "gallery.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
