"""The package runs as a module, as the command does."""

import subprocess
import sys

import graphbam as gb


def test_the_package_is_a_command():
    told = subprocess.run([sys.executable, "-m", "graphbam", "--version"], capture_output=True, text=True)
    assert told.stdout == f"graphbam {gb.__version__}\n"
