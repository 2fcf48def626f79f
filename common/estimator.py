"""The aligner as a scikit-learn transformer, for pipelines and searches over its parameters."""

from typing import Self

import numpy as np
from jaxtyping import ArrayLike, Float
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from common import alignment


class AlignerTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Maps one space of vectors into another, fitted on rows that correspond.

    Row i of X and row i of Y are a pair, and both spaces' means are taken over those rows; where
    whole spaces are at hand and only some pairs are known, `common.alignment.fit` uses them all.

    Args:
      method: a key of `common.alignment.METHODS`.
      normalise: 'unit' and 'center' in the order in which each space takes them, by itself.
      penalty: of 'ridge' alone; None is that method's default.

    Attributes:
      aligner_: the fitted `common.alignment.Aligner`, which can be saved.
      n_features_in_: the dimension of X.
    """

    def __init__(
        self,
        method: str = "procrustes",
        normalise: tuple[str, ...] = alignment.NORMALISE,
        penalty: float | None = None,
    ):
        self.method = method
        self.normalise = normalise
        self.penalty = penalty

    def fit(self, X: Float[ArrayLike, "n d_x"], y: Float[ArrayLike, "n d_y"]) -> Self:
        """Fits the map from the rows of X to those of Y; a Y of one axis is a column.

        Raises:
          ValueError: what scikit-learn and `common.alignment.fit` refuse: unequal numbers of rows,
            NaN, zero vectors, an unknown method.
        """
        needed = {
            "ensure_min_samples": 1 + ("center" in self.normalise),
            "ensure_min_features": 1 + ("unit" in self.normalise),  # a lone number is 1 or -1 then
        }
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, **needed)
        y = check_array(y[:, None] if y.ndim == 1 else y, input_name="y", **needed)
        options = {} if self.penalty is None else {"penalty": self.penalty}
        self.aligner_ = alignment.fit(
            self.method, X, y, moving="X", fixed="Y", normalise=self.normalise, **options
        )
        return self

    def transform(self, X: Float[ArrayLike, "n d_x"]) -> Float[np.ndarray, "n d_y"]:
        """Maps rows of X's space into Y's normalised coordinates, in float32.

        Raises:
          NotFittedError: before `fit`.
          ValueError: another dimension, NaN, or a vector that can't be normalised.
        """
        check_is_fitted(self)
        return np.asarray(self.aligner_.apply(validate_data(self, X, reset=False)))

    def transform_target(self, y: Float[ArrayLike, "n d_y"]) -> Float[np.ndarray, "n d_y"]:
        """Rows of Y's space in the coordinates that `transform` maps to; raises as it does."""
        check_is_fitted(self)
        y = check_array(y, ensure_2d=False, input_name="y")
        return np.asarray(self.aligner_.normalise_fixed(y[:, None] if y.ndim == 1 else y))

    def inverse_transform(self, X: Float[ArrayLike, "n d_y"]) -> Float[np.ndarray, "n d_x"]:
        """Takes images of `transform` back to X's normalised coordinates, by the pseudo-inverse.

        Those are X's own for `normalise=()`; what 'unit' and 'center' took away does not come back.
        """
        check_is_fitted(self)
        X = check_array(X, dtype=np.float32)
        inverse = np.asarray(self.aligner_.inverse().matrix)
        if X.shape[1] != len(inverse):
            raise ValueError(
                f"X has {X.shape[1]} features, the images of transform {len(inverse)}."
            )
        return X @ inverse

    def score(self, X: Float[ArrayLike, "n d_x"], y: Float[ArrayLike, "n d_y"]) -> float:
        """The mean cosine of the mapped rows of X and those of Y, by which a search can choose."""
        mapped, true = self.transform(X), self.transform_target(y)
        lengths = np.linalg.norm(mapped, axis=1) * np.linalg.norm(true, axis=1)
        return float(np.mean(np.sum(mapped * true, axis=1) / np.maximum(lengths, 1e-12)))

    @property
    def _n_features_out(self) -> int:
        return self.aligner_.matrix.shape[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
