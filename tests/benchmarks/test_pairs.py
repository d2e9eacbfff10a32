"""Cause–effect pairs: every cause stays with its column, whichever columns are swapped."""

import numpy as np
import pytest

from cases import each
from graphbam.benchmarks.pairs import CausePair, read_pairs, score_pairs
from graphbam.errors import TableError


def write_pairs(folder, n_pairs=30, rows=8):
    """Collections one and two; x is k, k + 1, … in pair k, y its negative; x is the cause in even pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    listing = ["collection,pair,cause,weight"]
    for name in ("one", "two"):
        lines = [f"{k},{k + i},{-k - i}" for k in range(1, n_pairs + 1) for i in range(rows)]
        (folder / f"{name}.csv").write_text("\n".join(["pair,x,y", *lines]))
        listing += [f"{name},{k},{'yx'[k % 2 == 0]},{1 / k}" for k in range(1, n_pairs + 1)]
    (folder / "pairs.csv").write_text("\n".join(listing))
    return folder


def test_the_cause_stays_the_cause_when_columns_are_swapped(tmp_path):
    pairs = read_pairs(write_pairs(tmp_path), np.random.default_rng(0))
    assert [pair.number for pair in pairs] == [*range(1, 31)] * 2
    for pair in pairs:
        cause_m = pair.x_m2[:, 0 if pair.is_forward else 1]
        sign = 1 if pair.number % 2 == 0 else -1
        assert cause_m.tolist() == [sign * (pair.number + i) for i in range(8)]
        assert pair.weight == 1 / pair.number
    first = [pair.x_m2[0, 0] > 0 for pair in pairs]
    assert 15 < sum(first) < 45


def test_rows_are_drawn_and_collections_chosen(tmp_path):
    pairs = read_pairs(write_pairs(tmp_path), np.random.default_rng(0), ["two"], max_rows=5)
    assert {pair.collection for pair in pairs} == {"two"}
    assert {pair.x_m2.shape for pair in pairs} == {(5, 2)}
    assert all((pair.x_m2.sum(1) == 0).all() for pair in pairs)  # both cells of a row come together


def test_who_knows_the_cause_is_always_right_and_who_looks_at_the_order_is_not(tmp_path):
    pairs = read_pairs(write_pairs(tmp_path, 200), np.random.default_rng(0))
    truth = np.array([float(pair.is_forward) for pair in pairs])
    assert score_pairs(pairs, truth) == {"accuracy": 1.0, "audrc": 1.0, "sure": 1.0, "right_where_sure": 1.0}
    assert score_pairs(pairs, 1 - truth)["accuracy"] == 0
    by_order = score_pairs([CausePair(p.collection, p.number, p.x_m2, p.is_forward, 1.0) for p in pairs], truth * 0 + 1)
    assert by_order["accuracy"] == pytest.approx(0.5, abs=0.1)
    unsure = score_pairs(pairs, truth * 0 + 0.5)
    assert (unsure["accuracy"], unsure["audrc"], unsure["sure"]) == (0.5, 0.5, 0)
    assert np.isnan(unsure["right_where_sure"])


@each(
    ("change", "message"),
    [
        ({"pairs.csv": None}, "cannot be read"),
        ({"pairs.csv": "collection,pair,cause\none,1,x\n"}, "lacks the column 'weight'"),
        ({"pairs.csv": "collection,pair,cause,weight\none,1,z,1\n"}, "pair 1 of 'one' has no rows, or no cause"),
        ({"pairs.csv": "collection,pair,cause,weight\none,99,x,1\n"}, "pair 99 of 'one' has no rows"),
        ({"two.csv": None}, "lists the collection 'two', but there is no two.csv"),
        ({"one.csv": "pair,x\n1,2\n"}, "lacks the column 'y'"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, change, message):
    folder = write_pairs(tmp_path)
    for name, content in change.items():
        (folder / name).unlink() if content is None else (folder / name).write_text(content)
    with pytest.raises(TableError, match=message):
        read_pairs(folder, np.random.default_rng(0))


def test_an_unknown_collection_is_refused(tmp_path):
    with pytest.raises(TableError, match="no collection 'three'; it has one, two"):
        read_pairs(write_pairs(tmp_path), np.random.default_rng(0), ["three"])
