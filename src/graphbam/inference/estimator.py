"""`BAM`: an estimator with scikit-learn manners, without needing scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from graphbam.inference.journey import infer
from graphbam.inference.settings import FLAT, FlatSettings, InferConfig, check_name, show_settings

if TYPE_CHECKING:
    from graphbam.inference.settings import WeightsLike


class BAM:
    """The graph of a table, as an estimator: settings first, then `fit`.

    Parameters
    ----------
    weights : str, path or LoadedWeights
        As in `infer`.
    **settings
        All other settings of `infer`, each on its own; checked by `fit`.

    Attributes
    ----------
    edge_probabilities_ : ndarray, shape (D, D, 3)
        Probabilities of none · skeleton · moral.
    result_ : Result
        The full answer; `result_.cpdag()` gives directions.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Their names, if the table had any.

    Examples
    --------
    >>> BAM(stability=20)
    BAM(stability=20)
    >>> BAM().set_params(seed=3).get_params()["seed"]
    3
    """

    @show_settings(FLAT)
    def __init__(self, weights: WeightsLike = InferConfig.weights, **settings: Unpack[FlatSettings]) -> None:
        for name in settings:
            check_name(name, FLAT)
        vars(self).update({**FLAT, **settings, "weights": weights})

    def fit(self, X: Any, y: Any = None) -> BAM:
        """Infer the graph of a table; `y` is ignored.

        Parameters
        ----------
        X : table
            Everything `infer` takes.
        y : ignored

        Returns
        -------
        BAM
            Itself.
        """
        self.result_ = infer(X, **self.get_params())
        self.edge_probabilities_ = self.result_.probabilities
        self._note_columns(X)
        return self

    def _note_columns(self, X: Any) -> None:
        columns = getattr(X, "columns", getattr(X, "var_names", None))
        if isinstance(X, (str, os.PathLike, Mapping)):
            columns = self.result_.names
        shape = getattr(X, "shape", None)
        self.n_features_in_ = int(shape[1]) if shape is not None else len(self.result_.names)
        vars(self).pop("feature_names_in_", None)  # of an earlier fit
        if columns is not None and all(isinstance(name, str) for name in columns):
            self.feature_names_in_ = np.asarray(list(columns), dtype=object)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Settings by name; `deep` is there for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in FLAT}

    def set_params(self, **params: Any) -> BAM:
        """Change settings; unknown names are refused."""
        for name, value in params.items():
            check_name(name, FLAT)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = [f"{k}={v!r}" for k, v in self.get_params().items() if v is not FLAT[k] and repr(v) != repr(FLAT[k])]
        return f"BAM({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(sparse=True, allow_nan=True, string=True),
        )
