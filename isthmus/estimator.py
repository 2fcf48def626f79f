"""`common.alignment` as a scikit-learn transformer, for pipelines and parameter searches."""

from collections.abc import Callable
from typing import Annotated, Any, no_type_check

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import validation
from sklearn.utils.validation import check_is_fitted

from common import alignment
from common.arrays import Unchecked

# scikit-learn has no annotations, and those that a checker infers for these are wrong.
check_array: Callable[..., Any] = validation.check_array
validate_data: Callable[..., Any] = validation.validate_data


class AlignerTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Maps vectors of one space into another; fitted on paired rows.

    Row i of X and row i of Y are a pair, and the means of both spaces are taken over these rows. If
    whole spaces are available and only some pairs are known, use `common.alignment.fit`.

    Args:
      method: key of `common.alignment.METHODS`.
      normalise: 'unit' and 'center' in the order in which they are applied to each space.
      penalty: of 'ridge' and 'whitened_procrustes'; None: their default.

    Attributes:
      aligner_: the fitted `common.alignment.Aligner`.
      n_features_in_: dimension of X.
    """

    @no_type_check  # scikit-learn asks that all is accepted here, and checked by `fit`
    def __init__(
        self,
        method: str = "procrustes",
        normalise: tuple[str, ...] = alignment.NORMALISE,
        penalty: float | None = None,
    ):
        self.method = method
        self.normalise = normalise
        self.penalty = penalty

    def fit(
        self, X: Annotated[Unchecked, "n d_x"], y: Annotated[Unchecked, "n d_y"]
    ) -> "AlignerTransformer":
        """Fits the map from the rows of X to those of Y; a one-dimensional Y is one column.

        Raises:
          ValueError: the errors of scikit-learn and of `common.alignment.fit`: unequal numbers of
            rows, NaN, zero vectors, an unknown method.
        """
        minimum: dict[str, Any] = {
            "ensure_min_samples": 1 + ("center" in self.normalise),
            # A vector of one dimension and unit norm is 1 or -1.
            "ensure_min_features": 1 + ("unit" in self.normalise),
        }
        source, target = validate_data(self, X, y, multi_output=True, y_numeric=True, **minimum)
        target = check_array(_as_columns(target), input_name="y", **minimum)
        options: dict[str, Any] = {} if self.penalty is None else {"penalty": self.penalty}
        self.aligner_ = alignment.fit(
            self.method, source, target, names=("X", "Y"), normalise=self.normalise, **options
        )
        return self

    def transform(self, X: Annotated[Unchecked, "n d_x"]) -> Float[np.ndarray, "n d_y"]:
        """Maps rows of X into the normalised space of Y, in float32.

        Raises:
          NotFittedError: `fit` was not called.
          ValueError: another dimension, NaN, or a vector that cannot be normalised.
        """
        check_is_fitted(self)
        return np.asarray(self.aligner_.apply(validate_data(self, X, reset=False)))

    def transform_target(self, y: Annotated[Unchecked, "n d_y"]) -> Float[np.ndarray, "n d_y"]:
        """Normalises rows of Y, to compare them with results of `transform`; same errors."""
        check_is_fitted(self)
        target = _as_columns(check_array(y, ensure_2d=False, input_name="y"))
        return np.asarray(self.aligner_.normalise_target(target))

    def score(self, X: Annotated[Unchecked, "n d_x"], y: Annotated[Unchecked, "n d_y"]) -> float:
        """Mean cosine between mapped rows of X and rows of Y."""
        mapped, target = self.transform(X), self.transform_target(y)
        lengths = np.linalg.norm(mapped, axis=1) * np.linalg.norm(target, axis=1)
        return float(np.mean(np.sum(mapped * target, axis=1) / np.maximum(lengths, 1e-12)))

    @property
    def _n_features_out(self) -> int:
        return self.aligner_.matrix.shape[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _as_columns(y: np.ndarray) -> np.ndarray:
    return y[:, None] if y.ndim == 1 else y
