import jax
import numpy as np
import pytest

from anchor_opt.experiments import basin
from anchor_opt.problem import partly_shared


@pytest.mark.parametrize("right", [0.0, 0.3, 1.0])
def test_the_given_share_of_a_matching_is_right(right):
    rows = np.eye(40, dtype=np.float32)  # the covariance is then the matching itself
    sizes = {"num_rows": 40, "num_anchors": 0, "num_pairs": 0, "shared": 1.0}
    problem = partly_shared(
        jax.numpy.asarray(rows), jax.numpy.asarray(rows), **sizes, random_seed=0
    )
    matching = np.asarray(basin.partly_right(problem, right, random_seed=1).covariance)
    np.testing.assert_array_equal(matching.sum(0), 1)  # one to one
    np.testing.assert_array_equal(matching.sum(1), 1)
    # Items are unit vectors, and an item that is matched with itself is on the diagonal.
    count = np.trace(matching)
    assert round(right * 40) <= count <= right * 40 + 5 and (right < 1 or count == 40)
