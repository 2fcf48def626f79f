import jax
import numpy as np
import pytest

from anchor_opt.experiments import basin
from anchor_opt.problem import partly_shared
from anchor_opt.reports import basin as report
from common.run.results import Row


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


def test_runs_are_counted_beside_those_from_the_true_pairs():
    def row(right, seed, metric, mean, name="partly_right"):
        about = {"experiment": "basin", "dataset": "a -> b", "method": "m", "sweep_over": "right"}
        labels = {"initialization": name}
        about |= {"sweep_value": right, "random_seed": seed, "labels": labels}
        return Row(metric=metric, mean=mean, **about)

    reached = {(0.05, 0): 0.5, (0.05, 1): 0.3, (1.0, 0): 0.8, (1.0, 1): 0.8, (None, 0): 0.1}
    rows = [
        row(right, seed, metric, p_at_1, "profiles" if right is None else "partly_right")
        for (right, seed), p_at_1 in reached.items()
        for metric in report.METRICS
    ]
    table = report.tables(rows, ())["a -> b"].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert [line[0] for line in cells] == ["5% right", "100% right", "search: profiles"]
    assert [line[-1] for line in cells] == ["1 of 2", "2 of 2", "0 of 1"]
    assert cells[0][2] == ".400 ± .141" and cells[2][2] == ".100"
