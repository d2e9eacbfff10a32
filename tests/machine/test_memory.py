"""What is free is known, or nobody knows."""

from graphbam.machine import memory
from graphbam.machine.memory import free_memory


def test_free_memory_is_that_of_this_machine():
    free = free_memory()
    assert free is None or 1e6 < free < 1e14


def test_files_that_a_container_remembers_are_given_back(tmp_path, monkeypatch):
    whole = free_memory()
    monkeypatch.setattr(memory, "CONTAINER", tmp_path)
    assert whole is None or abs(free_memory() / whole - 1) < 0.2  # no limit is known
    (tmp_path / "memory.current").write_text("900000\n")
    (tmp_path / "memory.stat").write_text("anon 100000\nactive_file 300000\ninactive_file 500000\n")
    for most, free in (("1000000\n", 900_000), ("max\n", None)):
        (tmp_path / "memory.max").write_text(most)
        assert whole is None or (free_memory() == free if free else free_memory() > 1e6)
