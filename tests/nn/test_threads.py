"""Threads share blocks of work, compute alone, and leave the counts of others as they were."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from cases import each
from graphbam.nn.threads import crew, crew_size, share, threads


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def in_a_new_thread(call):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_threads_of_others_are_left_alone(three_threads):
    """A server's worker that first computes while a small table is under way keeps all its threads."""
    with threads(1):
        assert torch.get_num_threads() == 1
        assert in_a_new_thread(torch.get_num_threads) == 3
    assert torch.get_num_threads() == in_a_new_thread(torch.get_num_threads) == 3


@each("n_parts", [0, 1, 2, 50])
def test_every_part_is_done_once(three_threads, n_parts):
    done = []
    with crew():
        share(lambda k, letter: done.append((k, letter)), range(n_parts), "x" * n_parts)
    assert sorted(done) == [(k, "x") for k in range(n_parts)]


def test_members_of_a_crew_compute_alone_and_without_gradients(three_threads):
    seen = set()
    with crew():
        assert crew_size() == 3
        share(lambda k: seen.add((torch.get_num_threads(), torch.is_grad_enabled())), range(50))
        with crew():  # one is enough
            assert crew_size() == 3
        assert in_a_new_thread(crew_size) == 1
    assert seen == {(1, False)}
    assert crew_size() == 1
    assert torch.get_num_threads() == in_a_new_thread(torch.get_num_threads) == 3


def test_work_that_shares_in_turn_does_so_alone(three_threads):
    done = []

    def work(k):
        assert crew_size() == 1
        share(lambda j: done.append((k, j)), range(3))

    with crew():
        share(work, range(4))
        assert crew_size() == 3
    assert sorted(done) == [(k, j) for k in range(4) for j in range(3)]


def test_tensors_of_inference_mode_may_be_changed(three_threads):
    with torch.inference_mode(), crew():
        x = torch.zeros(40)
        share(lambda some: some.add_(1), x.split(1))
    assert x.sum() == 40


@each("broken", [0, 7, 49])
def test_what_goes_wrong_comes_out(three_threads, broken):
    def work(k):
        if k == broken:
            raise ValueError(f"part {k}")

    with pytest.raises(ValueError, match=f"part {broken}"), crew():
        share(work, range(50))
    assert crew_size() == 1
    assert torch.get_num_threads() == 3
