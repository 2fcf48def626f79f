import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt.experiments import joined
from common.linear import unit
from common.run.tasks import Case, Task
from common.strategies import Searched

NUM = 120  # documents, of which two are relevant to each of half as many queries


def collection(noise: float) -> joined.Collection:
    """Three encoders of 12, 16 and 20 numbers that are rotations of one space, and noise."""
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(NUM // 2, 12))
    documents = np.repeat(queries, 2, axis=0) + 0.1 * rng.normal(size=(NUM, 12))
    spaces = {}
    for name, d in {"a": 12, "b": 20, "c": 16}.items():
        basis = np.linalg.qr(rng.normal(size=(d, 12)))[0]
        both = (x @ basis.T + noise * rng.normal(size=(len(x), d)) for x in (queries, documents))
        spaces[name] = Searched(*(unit(jnp.asarray(x, jnp.float32)) for x in both))
    pairs = rng.permutation(NUM)[:60]
    return joined.Collection(spaces, np.arange(NUM) // 2, pairs, rng.integers(3, size=NUM))


@pytest.mark.parametrize("method", joined.SEARCHES)
def test_rotated_copies_are_searched_as_one_space(method):
    data = collection(noise=0.0)
    case = Case("a", {"experiment": "joined", "dataset": "articles"}, lambda random_seed: data)
    rows, _ = joined.measure(Task(case, method, 0))
    assert all(row.mean > 0.95 for row in rows), rows
    pairs = {(row.source, row.target) for row in rows}
    own = {(name, name) for name in data.spaces}
    if method == "common coordinates":
        everything = {(a, b) for a in data.spaces for b in (*data.spaces, joined.MIXED)}
        assert pairs == everything | {(joined.MEAN, joined.MEAN)}
    else:
        assert pairs == own if method == "own model" else not pairs & own


def test_maps_see_nothing_but_the_known_documents():
    data = collection(noise=0.1)
    for search in (joined.common_coordinates, joined.maps_of_two):
        before = dict(search(data))
        unknown = np.setdiff1d(np.arange(NUM), data.pairs)
        other = {
            name: space._replace(documents=space.documents.at[unknown].multiply(-1))
            for name, space in data.spaces.items()
        }
        for names, searched in search(data._replace(spaces=other)):
            if joined.MEAN not in names:
                np.testing.assert_allclose(searched.queries, before[names].queries, atol=1e-5)
