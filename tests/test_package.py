"""What travels in the wheel: everything that a user uses, and nothing else; 4.5 MB at most."""

import tomllib
import zlib
from pathlib import Path

from graphbam.nn.weights import list_weights

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "graphbam"
PATTERNS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["graphbam"]

MOST_BYTES = 4_500_000


def data_files():
    """Files that are not code, as they lie in the clone."""
    kept = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path for path in kept if path.suffix != ".py"}


def test_every_data_file_is_packed():
    packed = {path for pattern in PATTERNS for path in PACKAGE.glob(pattern)}
    assert data_files() <= packed
    assert all(any(PACKAGE.glob(pattern)) for pattern in PATTERNS)


def test_the_wheel_stays_small():
    """Files are compressed one by one, as a wheel does."""
    total = sum(len(zlib.compress(path.read_bytes())) for path in {*data_files(), *PACKAGE.rglob("*.py")})
    assert total < MOST_BYTES


def test_the_weights_are_those_that_users_use():
    assert list_weights() == ["colliders", "edges"]
    assert all((PACKAGE / "weights" / f"{name}.md").is_file() for name in list_weights())
