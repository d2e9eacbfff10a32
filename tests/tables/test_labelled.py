"""Labelled tables are read as they stand, and what does not fit is named with its file."""

import gzip

import numpy as np
import pytest

from cases import each
from graphbam.errors import TableError
from graphbam.tables.labelled import LabelledTable, find_labelled, read_labelled, write_labelled


def write(folder, data="x,y,z\n1,2,0\n3,5,1\n2,2,0\n", graph="source,target\nx,y\nz,y\n", name="data.csv"):
    folder.mkdir(parents=True, exist_ok=True)
    content = gzip.compress(data.encode()) if name.endswith("gz") else data.encode()
    (folder / name).write_bytes(content)
    if graph is not None:
        (folder / "graph.csv").write_text(graph)
    return folder


def test_numbers_names_and_arrows_are_those_of_the_files(tmp_path):
    table = read_labelled(write(tmp_path / "a"))
    assert table.names == ("x", "y", "z")
    assert table.x_md.tolist() == [[1, 2, 0], [3, 5, 1], [2, 2, 0]]
    assert table.adjacency.tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]


def test_hidden_causes_and_targets_are_read_where_they_are_known(tmp_path):
    folder = write(tmp_path / "a")
    assert read_labelled(folder).hidden_dd is None
    assert read_labelled(folder).set_md is None
    (folder / "bidirected.csv").write_text("a,b,also_directed\nx,z,0\n")
    (folder / "targets.csv.gz").write_bytes(gzip.compress(b"x,y,z\n0,0,1\n0,0,0\n1,0,0\n"))
    table = read_labelled(folder)
    assert table.hidden_dd.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert np.argwhere(table.set_md).tolist() == [[0, 2], [2, 0]]
    few = read_labelled(folder, max_rows=2)
    rows = [table.x_md.tolist().index(row) for row in few.x_md.tolist()]
    np.testing.assert_array_equal(few.set_md, table.set_md[rows])


@each(
    ("name", "content", "message"),
    [
        ("bidirected.csv", "a,b\nx,w\n", "names 'w', which is no column"),
        ("bidirected.csv", "a\nx\n", "needs two: the variables"),
        ("targets.csv", "x,y,z\n0,0,1\n", "no table of 3 rows with the columns of the data"),
        ("targets.csv", "x,z,y\n0,0,1\n0,0,0\n1,0,0\n", "no table of 3 rows with the columns of the data"),
        ("targets.csv", "x,y,z\n0,0,1\n0,2,0\n1,0,0\n", "holds 2; use 1 for cells that were set"),
    ],
)
def test_what_lies_beside_a_table_must_fit(tmp_path, name, content, message):
    folder = write(tmp_path / "a")
    (folder / name).write_text(content)
    with pytest.raises(TableError, match=message):
        read_labelled(folder)


def test_a_header_alone_is_no_table(tmp_path):
    with pytest.raises(TableError, match=r"data\.csv has a header but no rows below it"):
        read_labelled(write(tmp_path / "a", data="x,y,z\n"))


def test_what_is_written_is_read_back(tmp_path):
    names = ("x", "a, b", 'say "c"', "größe")
    x_md = np.random.default_rng(0).normal(size=(7, 4)) * [1, 1e-9, 1e9, np.pi]
    x_md[3, 1] = np.nan
    adjacency = np.triu(np.ones((4, 4), np.int8), 1)
    data, graph = write_labelled(tmp_path / "new" / "table", LabelledTable(names, x_md, adjacency))
    assert (data.name, graph.name) == ("data.csv", "graph.csv")
    (folder,) = find_labelled(tmp_path)
    table = read_labelled(folder)
    assert table.names == names
    np.testing.assert_array_equal(table.x_md, x_md)
    np.testing.assert_array_equal(table.adjacency, adjacency)
    write_labelled(folder, LabelledTable(names, x_md, adjacency), digits=3)
    assert read_labelled(folder).x_md[0].tolist() == [float(f"{number:.3g}") for number in x_md[0]]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="cannot make the folder"):
        write_labelled(tmp_path / "file" / "table", LabelledTable(("x",), np.zeros((1, 1)), np.zeros((1, 1), np.int8)))


def test_compressed_tables_are_found_too_and_the_plain_one_counts_of_two(tmp_path):
    write(tmp_path / "b" / "deep", name="data.csv.gz")
    write(tmp_path / "a")
    (tmp_path / "a" / "data.csv.gz").write_bytes(gzip.compress(b"x,y,z\n9,9,9\n"))
    assert find_labelled(tmp_path) == [tmp_path / "a", tmp_path / "b" / "deep"]
    assert len(read_labelled(tmp_path / "a").x_md) == len(read_labelled(tmp_path / "b" / "deep").x_md) == 3


def test_a_variable_may_be_called_na(tmp_path):
    table = read_labelled(write(tmp_path / "a", data="NA,null\n1,2\n2,1\n", graph="source,target\nNA,null\n"))
    assert table.adjacency.tolist() == [[0, 1], [0, 0]]


def test_long_tables_are_thinned_out_the_same_way_every_time(tmp_path):
    rows = "\n".join(f"{i},{-i}" for i in range(50))
    folder = write(tmp_path / "a", data=f"x,y\n{rows}\n", graph="source,target\n")
    first, again = (read_labelled(folder, max_rows=10).x_md for _ in range(2))
    assert first.shape == (10, 2)
    assert len(np.unique(first[:, 0])) == 10
    np.testing.assert_array_equal(first, again)
    assert len(read_labelled(folder, max_rows=50).x_md) == 50


@each(
    ("data", "graph", "message"),
    [
        ("x,y\n1,a\n", "source,target\n", r"data.csv: column 'y' holds text \(first: 'a'\)"),
        ("x,y\n1,2\n", "source,target\nx,w\n", "graph.csv names 'w'"),
        ("x,y\n1,2\n", "source,target\nx,x\n", "'x' points at itself"),
        ("x,y\n1,2\n", "from,to\nx,y\n", "has the columns from, to; it needs source and target"),
        ("x,y\n1,2\n", "", "graph.csv cannot be read"),
        ("", "source,target\n", "data.csv cannot be read"),
    ],
)
def test_what_does_not_fit_is_named_with_its_file(tmp_path, data, graph, message):
    with pytest.raises(TableError, match=message):
        read_labelled(write(tmp_path / "a", data=data, graph=graph))


def test_folders_without_tables_or_graphs_are_refused(tmp_path):
    with pytest.raises(TableError, match="no folder below"):
        find_labelled(tmp_path)
    write(tmp_path / "a", graph=None)
    with pytest.raises(TableError, match=r"holds a table but no graph\.csv"):
        find_labelled(tmp_path)
