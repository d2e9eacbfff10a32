"""Importing the package costs next to nothing: the heavy libraries come with the first call that needs them."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = ["torch", "pandas", "matplotlib", "networkx", "scipy", "sklearn", "safetensors", "typer", "rich"]


def run(code):
    """Run code in a fresh interpreter; what it prints comes back as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


def test_import_brings_no_heavy_library():
    assert run(f"import graphbam, json, sys; print(json.dumps([k for k in {HEAVY} if k in sys.modules]))") == []


def test_import_is_quick():
    code = "import json, time; t = time.process_time(); import graphbam; print(json.dumps(time.process_time() - t))"
    assert run(code) < 0.3


def test_infer_adds_little_to_torch_and_pandas():
    clock = "import torch, pandas, json, time; t = time.process_time(); import graphbam; graphbam.infer"
    assert run(f"{clock}; print(json.dumps(time.process_time() - t))") < 0.3


def test_infer_brings_no_plotting():
    unwanted = ["matplotlib", "sklearn", "typer", "graphbam.simulation", "graphbam.training"]
    code = f"import graphbam, json, sys; graphbam.infer; print(json.dumps([k for k in {unwanted} if k in sys.modules]))"
    assert run(code) == []
