"""`BAM` behaves as scikit-learn expects of an estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import graphbam as gb
from graphbam.errors import ConfigError
from graphbam.inference.settings import FLAT
from standins import PartialCorrelation


@pytest.fixture
def frame():
    x_md = np.random.default_rng(0).normal(size=(60, 5)).cumsum(axis=1)
    return pd.DataFrame(x_md, columns=list("abcde"))


@pytest.fixture
def quick():
    """Settings without the two networks."""
    return {"weights": PartialCorrelation(), "colliders": None}


def test_estimator_attributes(frame, quick):
    model = gb.BAM(**quick)
    assert model.fit(frame) is model
    assert model.edge_probabilities_.shape == (5, 5, 3)
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.tolist() == list("abcde")
    assert gb.BAM(**quick).fit(dict(frame)).feature_names_in_.tolist() == list("abcde")
    model.fit(frame.to_numpy())
    assert not hasattr(model, "feature_names_in_")
    assert np.array_equal(model.result_.probabilities, model.edge_probabilities_)


def test_estimator_parameters(quick):
    model = gb.BAM(**quick, seed=3, drop=["a"])
    assert gb.BAM(**model.get_params()).get_params() == model.get_params()
    assert repr(gb.BAM(seed=3)) == "BAM(seed=3)"
    assert repr(gb.BAM(interventions=np.zeros((2, 1)))).startswith("BAM(interventions=array(")
    with pytest.raises(ConfigError, match="no setting 'sead'; did you mean 'seed'"):
        model.set_params(sead=4)


def test_estimator_pickles_and_clones(frame, quick):
    model = gb.BAM(**quick, seed=1, knowledge={"forbidden": ["a -- b"]}).fit(frame)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.edge_probabilities_, model.edge_probabilities_)
    fresh = pytest.importorskip("sklearn.base").clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "result_")


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks():
    """Every check passes; none is exempted. The array-API check runs only where SCIPY_ARRAY_API is set."""
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    if not hasattr(checks, "check_estimator_tags_renamed"):
        pytest.skip("needs the tags of scikit-learn 1.6 or later")
    report = checks.check_estimator(gb.BAM(PartialCorrelation()), on_fail=None, on_skip=None)
    failed = {row["check_name"]: row["exception"] for row in report if row["status"] not in ("passed", "skipped")}
    assert not failed
    assert {row["check_name"] for row in report if row["status"] == "skipped"} <= {"check_array_api_input"}
    assert len(report) > 25


def test_every_setting_of_infer_is_a_parameter_that_it_takes(frame, quick):
    assert gb.BAM().get_params() == FLAT
    with pytest.raises(ConfigError, match="no setting 'sead'"):
        gb.BAM(sead=4)
    with pytest.raises(ConfigError, match="missing='guess'"):  # scikit-learn: parameters are checked by `fit`
        gb.BAM(**quick, missing="guess").fit(frame)
    assert gb.BAM(**quick, max_rows=20, seed=7).fit(frame).result_.provenance["n_rows_used"] == 20
