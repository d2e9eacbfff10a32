"""The same name and trial give the same table, standardised, with its truth."""

import dataclasses

import numpy as np
import pytest

from graphbam.benchmarks.cases import resolve_cases
from graphbam.benchmarks.tables import derive_seed, draw_problem


def draw(name, trial=0):
    (case,) = resolve_cases([name])
    return draw_problem(case, trial)


@pytest.mark.parametrize("name", ["cosine-d8-m60", "mlp-d5-m20"])
def test_columns_have_mean_zero_and_deviation_one(name):
    problem = draw(name)
    np.testing.assert_allclose(problem.x_md.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(problem.x_md.std(0), 1, atol=1e-12)
    assert problem.x_md.shape == tuple(int(part[1:]) for part in name.split("-")[:0:-1])
    assert problem.is_dag


def test_tables_differ_between_trials_and_cases_only():
    keys = [(name, trial) for name in ("sine-d6-m30", "sine-d6-m31") for trial in (0, 1)]
    assert len({draw(*key).fingerprint() for key in keys + keys}) == 4


def test_a_fingerprint_sees_table_truth_and_kind_of_truth():
    problem = draw("sine-d6-m30")
    x_md, adjacency = problem.x_md.copy(), 1 - problem.adjacency
    x_md[3, 2] = np.nextafter(x_md[3, 2], 9)
    others = [{"x_md": x_md}, {"adjacency": adjacency}, {"is_dag": False}, {"x_md": problem.x_md.T}]
    prints = {dataclasses.replace(problem, **change).fingerprint() for change in ({}, *others)}
    assert len(prints) == 5


def test_tables_stay_what_they_are():
    """Results of different releases are compared. Numbers depend on the processor's rounding, graphs do not."""
    assert np.argwhere(draw("linear-d6-m50").adjacency).tolist() == [[1, 3], [4, 3]]


def test_tables_on_disk_are_read_as_the_case_says(tmp_path):
    (tmp_path / "data" / "a").mkdir(parents=True)
    rows = "".join(f"{i},{i * i},7\n" for i in range(700))
    (tmp_path / "data" / "a" / "data.csv").write_text("x,y,z\n" + rows)
    (tmp_path / "data" / "a" / "graph.csv").write_text("source,target\nx,y\n")
    plain = draw(str(tmp_path / "data"))
    assert plain.x_md.shape == (700, 3)
    np.testing.assert_allclose(plain.x_md.std(0), [1, 1, 0], atol=1e-12)
    assert plain.adjacency.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    (tmp_path / "data" / "manifest.csv").write_text("name,family,acyclic\na,chain,no\n")
    listed = draw(str(tmp_path / "data"))
    assert listed.x_md.shape == (600, 3)
    assert not listed.is_dag


def test_seeds_are_fixed_and_fit_their_bits():
    assert derive_seed("fit", "sine-d6-m30", 0) == 676945976
    assert all(derive_seed("fit", i) < 2**32 for i in range(100))
    assert max(derive_seed("fit", i, bits=63) for i in range(100)) > 2**60
