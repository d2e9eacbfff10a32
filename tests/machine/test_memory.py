"""What is free is known, or nobody knows."""

from graphbam.machine.memory import free_memory


def test_free_memory_is_that_of_this_machine():
    free = free_memory()
    assert free is None or 1e6 < free < 1e14
