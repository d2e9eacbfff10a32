"""Weights for comparison only: they live in `runs/weights` of a clone and are no part of the package."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[4] / "runs" / "weights"
"""Where a clone keeps them."""


def find_weights(name: str) -> Path | None:
    """Path of comparison weights, or None where this is no clone."""
    path = FOLDER / f"{name}.safetensors"
    return path if path.is_file() else None


def explain_absence(name: str) -> str:
    """Why a method without its weights has no result, and what to do about it."""
    return f"needs the comparison weights {name!r}, which are in runs/weights of a clone and not in the package"
