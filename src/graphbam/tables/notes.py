"""What was done to a table."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Notes:
    """What was done to a table, and what of it to keep in mind."""

    changes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
