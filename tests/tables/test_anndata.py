"""Single cells: a layer and some genes in, probabilities over all genes out."""

from __future__ import annotations

import json

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import graphbam as gb
from cases import each
from graphbam.errors import ResultError, TableError
from graphbam.output.anndata import to_anndata
from graphbam.tables.anndata import from_anndata
from standins import PartialCorrelation


@pytest.fixture
def cells():
    """Counts of five genes in 150 cells; B follows A, and D is in neither."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(150, 5))
    signal[:, 1] = signal[:, 0] + 0.3 * signal[:, 1]
    counts = scipy.sparse.csr_matrix(rng.poisson(np.exp(1 + signal)))
    var = pd.DataFrame({"variable": [True, True, True, False, True], "mean": np.arange(5.0)}, index=list("ABCDE"))
    data = anndata.AnnData(counts, var=var)
    data.layers["log"] = scipy.sparse.csr_matrix(np.log1p(counts.toarray()))
    return data


def test_a_layer_of_some_genes_is_a_table(cells):
    frame = from_anndata(cells, layer="log", genes="variable")
    assert frame.columns.tolist() == ["A", "B", "C", "E"]
    assert np.allclose(frame, np.log1p(cells.X.toarray()[:, [0, 1, 2, 4]]))
    assert from_anndata(cells, genes=["E", "A"]).columns.tolist() == ["A", "E"]
    assert np.array_equal(from_anndata(cells), cells.X.toarray())


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_flags_go_by_place_where_genes_share_a_name():
    var = pd.DataFrame({"keep": [True, False, True]}, index=["A", "A", "B"])
    data = anndata.AnnData(np.arange(12.0).reshape(4, 3), var=var)
    frame = from_anndata(data, genes="keep")
    assert frame.columns.tolist() == ["A", "B"]
    assert np.array_equal(frame, data.X[:, [0, 2]])
    assert from_anndata(data, genes=["A"]).shape == (4, 2)


@each(
    "asked, said",
    [
        ({"layer": "logs"}, r"no layer 'logs'; it has 'log'"),
        ({"genes": ["A", "Z"]}, r"genes names 'Z', which the table does not have"),
        ({"genes": "mean"}, r"holds float64, not True and False"),
    ],
)
def test_what_is_not_there_is_named(cells, asked, said):
    with pytest.raises(TableError, match=said):
        from_anndata(cells, **asked)


def test_what_is_no_anndata_is_said():
    frame = pd.DataFrame(np.eye(3))
    with pytest.raises(TableError, match=r"takes an AnnData, and this is a DataFrame\. Pass other tables to infer"):
        from_anndata(frame)
    with pytest.raises(TableError, match=r"this is a str\. Read the file with anndata\.read_h5ad first"):
        from_anndata("cells.h5ad")
    with pytest.raises(ResultError, match="to_anndata takes an AnnData, and this is a DataFrame"):
        to_anndata(gb.infer(np.random.default_rng(0).normal(size=(20, 3)), weights=PartialCorrelation()), frame)


def test_answers_go_back_over_all_genes(cells):
    result = gb.infer(from_anndata(cells, layer="log", genes="variable"))
    to_anndata(result, cells, cut=0.4)
    p, arrows = cells.varp["graphbam_skeleton"].toarray(), cells.varp["graphbam_arrows"].toarray()
    assert np.array_equal(p, p.T)
    assert np.allclose(p[0, 1], result.probabilities[0, 1, 1])
    assert (p[3] == 0).all()
    assert np.array_equal(arrows[:3, :3], result.graph(0.4).adjacency[:3, :3])
    assert cells.uns["graphbam"]["cut"] == '{"threshold": 0.4}'
    assert "edges" in cells.uns["graphbam"]["provenance"]


def write_and_read(cells, path):
    """A round trip with plain names: pandas 3 keeps text as anndata 0.12 cannot write it, see docs/cells.md."""
    cells.obs_names, cells.var_names = cells.obs_names.astype(object), cells.var_names.astype(object)
    cells.write_h5ad(path)
    return anndata.read_h5ad(path)


@pytest.mark.filterwarnings("ignore")
def test_answers_survive_a_file(cells, tmp_path):
    """Probabilities, arrows and what is said of them, and the file can be written again with a second answer."""
    result = gb.infer(from_anndata(cells, layer="log", genes="variable"), weights=PartialCorrelation())
    to_anndata(result, cells)
    to_anndata(gb.infer(from_anndata(cells, genes=["A", "B"])), cells, "pair")
    back = write_and_read(cells, tmp_path / "once.h5ad")
    again = write_and_read(back, tmp_path / "twice.h5ad")
    for key in ("graphbam_skeleton", "pair_skeleton", "pair_arrows"):
        assert np.array_equal(again.varp[key].toarray(), cells.varp[key].toarray())
    assert again.uns["pair"] == cells.uns["pair"]
    assert json.loads(again.uns["graphbam"]["provenance"])["n_rows"] == 150
    assert from_anndata(again, layer="log").equals(from_anndata(cells, layer="log"))


def test_a_list_of_pairs_goes_back_too(cells):
    p = np.array([[0.1, 0.9, 0.0], [0.999, 0.001, 0.0]])
    few = gb.SparseResult(("B", "E", "C"), np.array([[0, 1], [0, 2]]), p)
    to_anndata(few, cells, "few")
    assert cells.varp["few_skeleton"].nnz == 2
    assert cells.varp["few_skeleton"][4, 1] == 0.9
    assert "few_arrows" not in cells.varp
    with pytest.raises(ResultError, match="has no gene 'x'"):
        to_anndata(gb.infer({"x": [1, 2, 3, 4.5], "y": [2, 1, 4, 3]}, weights=PartialCorrelation()), cells)
