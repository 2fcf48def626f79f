"""Rows of a space are told from those of others; tests/anchor_opt/test_align.py has real spaces."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from common import alignment, likeness
from common.linear import unit


def uneven(random_seed, n, d):
    """Rows whose variance falls with the coordinate."""
    rng = np.random.default_rng(random_seed)
    return rng.normal(size=(n, d)).astype(np.float32) * np.geomspace(1, 0.1, d, dtype=np.float32)


def test_rows_of_a_space_have_likeness_1_and_rotated_ones_0():
    x = unit(jnp.asarray(uneven(0, 4000, 40)))
    space = likeness.profile(x[:2000])
    assert space.directions.shape == (40, 4)
    np.testing.assert_allclose(space.directions.T @ space.directions, np.eye(4), atol=1e-5)
    value = likeness.likeness(space, x[2000:])
    assert value is not None and abs(value - 1) < 0.05
    rotations = [np.linalg.qr(np.random.default_rng(i).normal(size=(40, 40)))[0] for i in range(20)]
    scores = [likeness.likeness(space, x[2000:] @ q.astype(np.float32)) for q in rotations]
    assert abs(np.mean(scores)) < 0.1 and max(scores) < 0.5  # pyright: ignore[reportArgumentType]


def test_a_space_without_leading_directions_recognises_nothing():
    x = unit(jnp.asarray(np.random.default_rng(0).normal(size=(4000, 40)).astype(np.float32)))
    assert likeness.likeness(likeness.profile(x[:2000]), x[2000:]) is None


@pytest.mark.parametrize("with_profile", [True, False])
def test_an_aligner_keeps_the_profile_of_its_source(tmp_path, with_profile):
    x, y = uneven(0, 500, 20), uneven(1, 500, 20)
    aligner = alignment.fit("procrustes", x, y)
    if with_profile:
        profile = likeness.profile(aligner.normalise_source(x))
        aligner = dataclasses.replace(aligner, profile=profile)
    aligner.save(tmp_path / "map.npz")
    loaded = alignment.load(tmp_path / "map.npz")
    assert loaded.likeness(x) == aligner.likeness(x) and aligner.inverse().likeness(y) is None
    assert (aligner.likeness(x) is not None) == with_profile
