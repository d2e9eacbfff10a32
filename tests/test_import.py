"""Importing the package costs next to nothing: the heavy libraries come with the first call that needs them."""

from __future__ import annotations

import json
import subprocess
import sys

from graphbam.machine.helper import Helper

HEAVY = ["torch", "pandas", "matplotlib", "networkx", "scipy", "sklearn", "safetensors", "typer", "rich"]


ROOMS = {"cli", "directions", "errors", "graphs", "inference", "machine", "nn", "output", "result", "sparse", "tables"}
"""What the way from a table to its files may load of the package itself."""

SLOW = ["torch._dynamo", "torch._inductor", "sympy", "triton", "networkx", "scipy", "sklearn", "matplotlib.pyplot"]
"""Libraries, and parts of those it needs, that this way does without."""


def run(code):
    """Run code in a fresh interpreter; what it prints comes back as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


def test_import_brings_no_heavy_library():
    assert run(f"import graphbam, json, sys; print(json.dumps([k for k in {HEAVY} if k in sys.modules]))") == []


def test_import_is_quick():
    code = "import json, time; t = time.process_time(); import graphbam; print(json.dumps(time.process_time() - t))"
    assert min(run(code) for _ in range(3)) < 0.3


def test_infer_adds_little_to_torch_and_pandas():
    clock = "import torch, pandas, json, time; t = time.process_time(); import graphbam; graphbam.infer"
    took = [run(f"{clock}; print(json.dumps(time.process_time() - t))") for _ in range(3)]
    assert min(took) < 0.3  # whatever else runs on the same core only adds to it


def test_infer_brings_no_plotting():
    unwanted = ["matplotlib", "sklearn", "typer", "graphbam.simulation", "graphbam.training"]
    code = f"import graphbam, json, sys; graphbam.infer; print(json.dumps([k for k in {unwanted} if k in sys.modules]))"
    assert run(code) == []


def modules_of_command(*arguments):
    """All that a command of the command line has loaded when it is done."""
    code = f"""
import contextlib, io, json, sys
sys.argv = {["graphbam", *arguments]}
from graphbam.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
print(json.dumps(sorted(sys.modules)))"""
    return run(code)


def test_help_brings_no_heavy_library():
    seen = modules_of_command("--help")
    assert "graphbam.cli._infer" in seen
    assert ({*HEAVY, "numpy"} - {"typer", "rich"}) & {*seen} == set()


def test_the_command_that_infers_loads_what_it_needs_and_no_more(tmp_path):
    table, out = tmp_path / "table.csv", tmp_path / "out"
    table.write_text("a,b,c\n" + "".join(f"{k},{k * k % 7},{k % 5}\n" for k in range(30)))
    seen = modules_of_command("infer", str(table), "-o", str(out), "--quiet")
    assert (out / "graph.png").exists()
    assert {name.split(".")[1] for name in seen if name.startswith("graphbam.")} <= ROOMS
    assert [name for name in SLOW if name in seen] == []
    assert "pandas" not in seen or Helper()._n_cores == 1  # the second process reads the table
