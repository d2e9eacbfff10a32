"""How much memory is free, and what to say of a table that takes more."""

from __future__ import annotations

from pathlib import Path

CONTAINER = "/sys/fs/cgroup"
"""Where Linux says what a container may have."""


def free_memory() -> float | None:
    """Bytes that a process can still have without being killed by the system; None where nobody knows."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = dict(line.split(":", 1) for line in lines if ":" in line)
    free = 1024.0 * int(sizes["MemAvailable"].split()[0])
    try:  # a container may have less than the machine
        most, used, about = (
            Path(CONTAINER, f"memory.{what}").read_text("ascii") for what in ("max", "current", "stat")
        )
    except OSError:
        return free
    if most.strip() == "max":
        return free
    held = dict(line.split() for line in about.splitlines())
    files = sum(float(held.get(name, 0)) for name in ("inactive_file", "active_file"))  # given back when it is needed
    return min(free, float(most) - float(used) + files)


def tell_excess(n_samples: int, n_variables: int, needed: float, free: float) -> str:
    """Say that a table takes more than there is.

    Examples
    --------
    >>> tell_excess(500, 9000, 4e10, 8e9)
    '500 rows × 9000 variables take about 40.0 GB of memory, and 8.0 GB are free.'
    """
    size = f"{n_samples} rows × {n_variables} variables"
    return f"{size} take about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free."
