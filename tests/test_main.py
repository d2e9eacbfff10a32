"""The package runs as a module, as the command does."""

import subprocess
import sys

import pytest

import graphbam as gb


def test_the_package_is_a_command():
    told = subprocess.run([sys.executable, "-m", "graphbam", "--version"], capture_output=True, text=True)
    assert told.stdout == f"graphbam {gb.__version__}\n"


LEAVING = """
import atexit
from graphbam import cli

def main():
    atexit.register(print, "told of the end")
    print("x" * 100_000)
    {end}

cli.main = main
cli.run()
"""


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [("exit()", 0, ""), ("exit(2)", 2, ""), ("exit('why')", 1, "why"), ("raise ValueError('why')", 1, "why")],
)
def test_the_end_at_once_keeps_exit_codes_and_what_was_printed(end, code, told):
    done = subprocess.run([sys.executable, "-c", LEAVING.format(end=end)], capture_output=True, text=True)
    assert done.returncode == code
    assert done.stdout == "x" * 100_000 + "\ntold of the end\n"
    assert done.stderr.strip().endswith(told)
