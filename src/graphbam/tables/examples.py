"""Tables that come with the package."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from graphbam.errors import TableError

EXAMPLES = ("sachs", "crops")
"""Names that `example_path` knows; each has a note on its origin beside it, as ``data/<name>.md``."""


def example_path(name: str) -> Path:
    """Path of a table that comes with the package.

    ``"sachs"``: eleven proteins in 853 human immune cells, Sachs et al., Science 308, 523 (2005). ``"crops"``: a
    simulated field trial of 600 plots with text, gaps, and a column ``set`` that names what was set in each row.

    Examples
    --------
    >>> example_path("sachs").name
    'sachs.csv.gz'
    """
    if name not in EXAMPLES:
        raise TableError(f"no example is called {name!r}; there is {', '.join(map(repr, EXAMPLES))}.")
    return Path(str(resources.files("graphbam") / "tables" / "data" / f"{name}.csv.gz"))
