"""`common.alignment` as a scikit-learn transformer, for pipelines and parameter searches."""

from typing import Annotated, Any, no_type_check

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import validation

from common import alignment
from common.arrays import Unchecked

Rows = Annotated[Unchecked, "n d"]
sklearn: Any = validation  # it has no annotations, and those that a checker infers are wrong
LEAST = {"samples": "center", "features": "unit"}  # of which these steps need two


class AlignerTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Maps vectors of one space into another; row i of X and row i of Y are a pair.

    `method`, `normalise` and `penalty` are those of `common.alignment.fit`; methods without a
    penalty ignore it, so that a search may vary both. `aligner_` is the fitted map. Errors are
    those of scikit-learn and of `fit`, which are all of type ValueError.
    """

    @no_type_check  # scikit-learn asks that all is accepted here, and checked by `fit`
    def __init__(self, method="procrustes", normalise=alignment.NORMALISE, penalty=None):
        self.method = method
        self.normalise = normalise
        self.penalty = penalty

    def fit(self, X: Rows, y: Rows) -> "AlignerTransformer":
        """Fits the map from the rows of X to those of Y; a one-dimensional Y is one column."""
        # A vector of one dimension and unit length is 1 or -1.
        least = {f"ensure_min_{what}": 1 + (step in self.normalise) for what, step in LEAST.items()}
        source, target = sklearn.validate_data(
            self, X, y, multi_output=True, y_numeric=True, **least
        )
        target = sklearn.check_array(_columns(target), input_name="y", **least)
        penalised = self.method in alignment.PENALISED and self.penalty is not None
        options: dict[str, Any] = {"penalty": self.penalty} if penalised else {}
        self.aligner_ = alignment.fit(
            self.method, source, target, names=("X", "Y"), normalise=self.normalise, **options
        )
        self._n_features_out = target.shape[1]
        return self

    def transform(self, X: Rows) -> Float[np.ndarray, "n d_y"]:
        """Maps rows of X into the normalised space of Y, in float32."""
        sklearn.check_is_fitted(self)
        return np.asarray(self.aligner_.apply(sklearn.validate_data(self, X, reset=False)))

    def transform_target(self, y: Rows) -> Float[np.ndarray, "n d_y"]:
        """Normalises rows of Y, to compare them with results of `transform`."""
        sklearn.check_is_fitted(self)
        target = _columns(sklearn.check_array(y, ensure_2d=False, input_name="y"))
        return np.asarray(self.aligner_.normalise_target(target))

    def score(self, X: Rows, y: Rows) -> float:
        """Mean cosine between mapped rows of X and rows of Y."""
        mapped, target = self.transform(X), self.transform_target(y)
        lengths = np.linalg.norm(mapped, axis=1) * np.linalg.norm(target, axis=1)
        return float(np.mean(np.sum(mapped * target, axis=1) / np.maximum(lengths, 1e-12)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _columns(y: np.ndarray) -> np.ndarray:
    return y[:, None] if y.ndim == 1 else y
