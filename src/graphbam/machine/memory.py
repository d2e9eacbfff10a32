"""How much memory is free, and what to say of a table that takes more."""

from __future__ import annotations

from pathlib import Path


def free_memory() -> float | None:
    """Bytes that a process can still have without being killed by the system; None where nobody knows."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = dict(line.split(":", 1) for line in lines if ":" in line)
    free = 1024.0 * int(sizes["MemAvailable"].split()[0])
    try:  # a container may have less than the machine
        most, used = (Path(f"/sys/fs/cgroup/memory.{what}").read_text(encoding="ascii") for what in ("max", "current"))
    except OSError:
        return free
    return free if most.strip() == "max" else min(free, float(most) - float(used))


def tell_excess(n_samples: int, n_variables: int, needed: float, free: float) -> str:
    """Say that a table takes more than there is.

    Examples
    --------
    >>> tell_excess(500, 9000, 4e10, 8e9)
    '500 rows × 9000 variables take about 40.0 GB of memory, and 8.0 GB are free.'
    """
    size = f"{n_samples} rows × {n_variables} variables"
    return f"{size} take about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free."
