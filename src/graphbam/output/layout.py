"""Where to draw the variables and links of a graph: causes above effects, no link across a name.

The layout is dagre's, with a limit on the width of its layers; `templates/layout.js` says how. The report runs that
file in the browser, and this module runs it in V8 (mini-racer): one layout for page and picture. V8 lives in a
process of its own, since it does not survive a fork. Nothing is random: the same graph is always drawn the same way.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphbam.errors import GraphbamError

Array = NDArray[np.float64]

LIBRARIES = ("dagre.min.js", "cytoscape.min.js")
"""What is vendored, with licences beside it; `make vendor` brings them from the npm registry."""

_MISSING = (
    "globalThis.structuredClone ??= (value) => JSON.parse(JSON.stringify(value));"  # what browsers have, V8 lacks
)


class Layout(NamedTuple):
    """Where everything goes; x from the left, y downwards, in the unit of the sizes."""

    place_d2: Array
    """Centres of the variables."""
    routes: list[Array]
    """For each link the points of its curve, from its first variable to its second: where it starts, control points of
    quadratic curves that join midway between them, and where it ends."""
    size: tuple[float, float]
    """Width and height of it all."""


def can_lay_out() -> bool:
    """Whether the engine for the layout is installed."""
    return importlib.util.find_spec("py_mini_racer") is not None


def lay_out(
    size_d2: ArrayLike,
    links: Sequence[tuple[int, int, bool, float]],
    frame: tuple[float, float],
    *,
    is_dense: bool = False,
) -> Layout:
    """Place variables and route links.

    Parameters
    ----------
    size_d2 : array_like, shape (d, 2)
        Width and height of every variable.
    links : sequence of (i, j, is_directed, weight)
        Those with a direction run downwards; they must close no cycle. Heavy links are drawn short.
    frame : (width, height)
        The drawing gets about this shape.
    is_dense : bool
        Whether to leave less room between things, for very many variables.

    Returns
    -------
    Layout

    Examples
    --------
    >>> layout = lay_out([[40, 20]] * 3, [(0, 1, True, 1.0), (1, 2, True, 1.0)], (300, 300))
    >>> layout.place_d2[:, 1].argsort().tolist()  # causes above effects
    [0, 1, 2]
    """
    sizes = np.asarray(size_d2, dtype=float)
    drawing: dict[str, Any] = {"sizes": sizes.tolist(), "links": [list(link) for link in links], "frame": list(frame)}
    found = _run(drawing, is_dense)
    routes = [np.array(route, dtype=float) for route in found["routes"]]
    width, height = found["size"]
    return Layout(np.array(found["places"], dtype=float).reshape(-1, 2), routes, (width, height))


class _Engine:
    """A second process with V8, dagre and the layout; it ends with this one. Requests and answers are lines of JSON."""

    def __init__(self) -> None:
        package = importlib.util.find_spec("py_mini_racer")
        if not can_lay_out() or package is None or package.origin is None:
            raise GraphbamError("pictures need mini-racer, which is not installed; run: pip install 'graphbam[plot]'")
        run = "const layOutText = (text, isDense) => JSON.stringify(layOut(JSON.parse(text), isDense ? DENSE : LANES));"
        source = "\n".join([_MISSING, read_vendored("dagre.min.js"), read_template("layout.js"), run])
        command = [sys.executable, "-I", "-c", _SERVE, str(Path(package.origin).parents[1])]
        pipe = subprocess.PIPE
        self.owner, self.lock = os.getpid(), threading.Lock()
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8")
        self.ask(source)

    def ask(self, message: Any) -> Any:
        """Send one message and wait for its answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self.lock:
            try:
                stdin.write(json.dumps(message) + "\n")
                stdin.flush()
                answer = json.loads(stdout.readline())
            except (OSError, ValueError):
                self._process.kill()
                code = self._process.wait()
                raise GraphbamError(f"the layout ended with code {code}; draw fewer variables, or try again.") from None
        return answer

    @property
    def is_usable(self) -> bool:
        """Whether this process started it, and it still runs."""
        return self.owner == os.getpid() and self._process.poll() is None


_SERVE = """
import json, os, sys
sys.path.append(sys.argv[1])
from py_mini_racer import MiniRacer
engine = MiniRacer()
engine.eval(json.loads(sys.stdin.readline()))
print("null", flush=True)
for line in sys.stdin:
    print(engine.call("layOutText", *json.loads(line)), flush=True)
os._exit(0)
"""  # V8 is left as it is: taking it down may wait for ever
_engines: list[_Engine] = []  # one, or none yet
_starting = threading.Lock()


def start_engine() -> None:
    """Start the engine, or wait until it has started; a thread may do so ahead of the first layout."""
    with _starting:
        if not _engines or not _engines[0].is_usable:
            _engines[:] = [_Engine()]


def _run(drawing: dict[str, Any], is_dense: bool) -> Any:
    start_engine()
    return _engines[0].ask([json.dumps(drawing), is_dense])


def read_template(name: str) -> str:
    """A part of the report."""
    return (resources.files("graphbam") / "output" / "templates" / name).read_text(encoding="utf-8")


def read_vendored(name: str) -> str:
    """A library of others."""
    return (resources.files("graphbam") / "output" / "vendor" / name).read_text(encoding="utf-8")
