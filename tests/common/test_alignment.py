import dataclasses
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import alignment, likeness
from common.aligner import BLOCK_ROWS, VERSION
from common.errors import UserError
from common.linear import unit
from tests.samples import isometry, normal

# Options under which an exact fit remains exact.
OPTIONS = {name: {"penalty": 1e-6} for name in ("ridge", "whitened_procrustes")}
every_aligner = pytest.mark.parametrize(
    ("method", "options"), [(name, OPTIONS.get(name, {})) for name in alignment.METHODS]
)


def white(seed, n, d):
    """Centred rows of equal variance in all directions."""
    x = normal(seed, n, d)
    return np.sqrt(n) * np.linalg.qr(x - x.mean(0))[0]


X, Y = normal(0, 10, 3), normal(1, 10, 4)
SAME = np.tile(normal(2, 1, 4), (1000, 1))
STEPS = ("center", "unit")


def fit(method="ridge", source=X, target=Y, **options):
    return alignment.fit(method, source, target, **options)


def changed(x, rows, value):
    x = x.astype(np.float64)
    x[rows] = value
    return x


def refuses(match):
    return pytest.raises(UserError, match=match)


@every_aligner
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15)
def test_a_known_rotation_shift_and_scale_is_recovered(method, options, seed):
    x, rotation = normal(seed, 60, 8), isometry(seed + 1, 8, 8)
    x -= x.mean(0)
    y = 3 * x @ rotation + normal(seed + 2, 8)
    aligner = alignment.fit(method, x, y, normalise=("center", "unit"), **options)
    np.testing.assert_allclose(aligner.matrix, rotation, atol=2e-5)
    np.testing.assert_allclose(aligner.apply(x), aligner.normalise_target(y), atol=2e-5)


@every_aligner
@pytest.mark.parametrize(("d_source", "d_target"), [(5, 9), (9, 5)])
def test_a_partial_isometry_between_unequal_dimensions_is_recovered(
    method, options, d_source, d_target
):
    x, truth = white(0, 80, d_source), isometry(1, d_source, d_target)
    aligner = alignment.fit(method, x, x @ truth, normalise=("center",), **options)
    assert aligner.matrix.shape == (d_source, d_target)
    np.testing.assert_allclose(aligner.matrix, truth, atol=2e-5)
    back = aligner.inverse()
    assert back.matrix.shape == (d_target, d_source)
    np.testing.assert_allclose(back.matrix, truth.T, atol=2e-5)
    aligner = alignment.fit(method, normal(2, 80, d_source), normal(3, 80, d_target), **options)
    assert aligner.apply(x).shape == (80, d_target)
    assert np.isfinite(aligner.apply(x)).all()


@pytest.mark.slow
@every_aligner
def test_results_under_jit_equal_those_without(method, options):
    x, y, new = normal(0, 50, 6), normal(1, 50, 7), normal(2, 9, 6)

    def run(x, y, new):
        aligner = alignment.fit(method, x, y, **options)
        return aligner, aligner.apply(new), aligner.inverse().matrix

    results, expected = jax.jit(run)(x, y, new), run(x, y, new)
    assert jax.tree.structure(results) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.parametrize("steps", [("center",), ("unit", "center", "unit")], ids=str)
def test_saved_and_loaded_is_equal(steps, tmp_path):
    x, y = normal(0, 50, 6), normal(1, 50, 7)
    names = ("français", "english, 'old'")
    aligner = alignment.fit("ridge", x, y, normalise=steps, names=names, penalty=0.1)
    aligner.save(tmp_path / "new folder" / "map")  # no suffix is added
    assert [file.name for file in (tmp_path / "new folder").iterdir()] == ["map"]
    loaded = alignment.load(str(tmp_path / "new folder" / "map"))
    for field in dataclasses.fields(aligner):
        a, b = getattr(loaded, field.name), getattr(aligner, field.name)
        assert isinstance(a, (type(b), np.ndarray))  # as a file has them
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(loaded.apply(x), aligner.apply(x), atol=1e-6)
    np.testing.assert_allclose(loaded.inverse().apply(y), aligner.inverse().apply(y), atol=1e-5)
    # By NumPy in blocks, and by JAX; pickled, and as a tree in a program of JAX.
    loaded, many = pickle.loads(pickle.dumps(loaded)), normal(2, 2 * BLOCK_ROWS + 3, 6)
    expected, compiled = aligner.apply(jnp.array(many)), jax.jit(lambda a, x: a.apply(x))
    for rows in (many, many.astype(np.float64), many.tolist(), many.astype(np.float16)):
        mapped = loaded.apply(rows)
        assert isinstance(mapped, np.ndarray) and mapped.dtype == np.float32
        half = isinstance(rows, np.ndarray) and rows.dtype == np.float16
        np.testing.assert_allclose(mapped, expected, atol=2e-3 if half else 2e-6)
    np.testing.assert_allclose(compiled(loaded, many), expected, atol=2e-6)
    for call in ("normalise_target", "map_back"):
        by_jax = getattr(aligner, call)(jnp.array(y))
        np.testing.assert_allclose(getattr(loaded, call)(y), by_jax, atol=1e-5)
    many[[5, BLOCK_ROWS + 7]] = np.nan
    with refuses(f"rows 5, {BLOCK_ROWS + 7} of 'français' are not finite"):
        loaded.apply(many)


@pytest.mark.slow
def test_a_saved_map_is_applied_without_jax_after_a_fork_and_in_threads(tmp_path):
    alignment.fit("ridge", X, normal(1, 10, 3)).save(tmp_path / "map.npz")
    script = f"""
import concurrent.futures, multiprocessing, sys, tracemalloc
import isthmus, numpy as np
aligner = isthmus.load({str(tmp_path)!r})
x = np.random.default_rng(0).normal(size=(200_000, 3)).astype(np.float16)
tracemalloc.start()
expected = aligner.apply(x)
assert tracemalloc.get_traced_memory()[1] < 2 * expected.nbytes
with multiprocessing.get_context("fork").Pool(2) as pool:
    forked = pool.map_async(aligner.apply, [x, x]).get(60)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    threads = list(pool.map(aligner.apply, [x] * 4))
assert all((other == expected).all() for other in [*forked, *threads])
assert aligner.inverse().map_back(x).shape == x.shape and "jax" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@every_aligner
def test_a_map_fitted_on_one_or_two_pairs_is_finite(method, options):
    x, y = normal(0, 20, 6), normal(1, 20, 7)
    for count in (1, 2):
        pairs = np.arange(2 * count).reshape(count, 2)
        aligner = alignment.fit(method, x, y, pairs=pairs, **options)
        assert np.isfinite(aligner.apply(x)).all()
        moved = aligner.apply(x)[pairs[:, 0]]
        cosine = np.sum(moved * aligner.normalise_target(y)[pairs[:, 1]], axis=1)
        assert (cosine > 0.3).all()  # mapped towards their partners
    assert np.isfinite(alignment.fit(method, x[:2], y[:2], **options).matrix).all()
    alignment.fit(method, x[:1], y[:1], normalise=("unit",), **options)
    with refuses("'source' cannot be scaled .* mean of the space"):
        alignment.fit(method, x[:1], y[:1], **options)


def test_a_zero_row_needs_no_direction_where_rows_are_centred_alone():
    aligner = fit(target=changed(Y, [3, 7], 0), normalise=("center",))
    assert np.isfinite(aligner.matrix).all()


@every_aligner
def test_the_inverse_maps_back(method, options):
    x = normal(0, 60, 8)
    y = x @ isometry(1, 8, 8) + normal(2, 60, 8) / 3
    aligner = alignment.fit(method, x, y, normalise=(), **options)
    np.testing.assert_allclose(aligner.inverse().apply(aligner.apply(x)), x, atol=2e-5)
    aligner = alignment.fit(method, x, y, **options)
    back = aligner.inverse()
    assert (back.source, back.target, back.method) == ("target", "source", method)
    images = aligner.apply(x)
    np.testing.assert_allclose(images @ back.matrix, aligner.normalise_source(x), atol=1e-5)
    np.testing.assert_array_equal(back.normalise_target(x), aligner.normalise_source(x))
    np.testing.assert_array_equal(back.normalise_source(y), aligner.normalise_target(y))
    np.testing.assert_allclose(back.inverse().matrix, aligner.matrix, atol=2e-5)
    # An ill-conditioned map, and a map of rank 3 in 8 dimensions.
    for image in (x * np.geomspace(1, 0.02, 8), np.pad(x[:, :3], [(0, 0), (0, 5)])):
        aligner = alignment.fit(method, x, image, normalise=(), **options)
        expected = np.linalg.pinv(np.asarray(aligner.matrix, np.float64), rcond=1e-5)
        atol = 1e-3 * max(1, np.abs(expected).max() / 10)
        np.testing.assert_allclose(aligner.inverse().matrix, expected, atol=atol)


@every_aligner
def test_means_are_of_the_whole_spaces_and_the_map_of_the_pairs(method, options):
    x, y = normal(0, 30, 4), normal(1, 40, 5)
    pairs = np.stack([np.arange(0, 30, 2), np.arange(39, 24, -1)], axis=1)
    aligner = alignment.fit(method, x, y, pairs=pairs.tolist(), normalise=("center",), **options)
    rows = []
    for z, means, of in ((x, aligner.source_means, 0), (y, aligner.target_means, 1)):
        np.testing.assert_allclose(means, z.mean(0)[None], atol=1e-6)
        rows.append(z[pairs[:, of]] - z.mean(0))
    expected = alignment.METHODS[method](*rows, **options)
    np.testing.assert_allclose(aligner.matrix, expected, atol=1e-5)


def test_the_mean_may_be_that_of_the_first_rows_only():
    x, y = normal(0, 40, 5), normal(1, 30, 4)
    x[20:] += 9  # rare words, far from all others
    pairs = np.arange(20)[:, None].repeat(2, axis=1)
    aligner = alignment.fit("procrustes", x, y, pairs=pairs, normalise=("center",), centre_rows=20)
    np.testing.assert_allclose(aligner.source_means[0], x[:20].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(aligner.apply(x[:20]).mean(axis=0), 0, atol=1e-6)


@pytest.mark.parametrize(
    "steps", [(), ("unit",), ("unit", "center", "unit"), ("center", "unit") * 2], ids=str
)
def test_normalisation_agrees_with_numpy_and_keeps_the_means(steps):
    x = normal(0, 50, 6) + 2
    expected, means = x.astype(np.float64), []
    for step in steps:
        if step == "unit":
            expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
        else:
            means.append(expected.mean(0))
            expected = expected - means[-1]
    aligner = alignment.fit("procrustes", x, normal(1, 50, 6), normalise=steps)
    np.testing.assert_allclose(aligner.normalise_source(x), expected, atol=2e-6)
    np.testing.assert_allclose(aligner.source_means, np.reshape(means, (-1, 6)), atol=1e-6)
    some = aligner.normalise_source(x)[40:43]
    np.testing.assert_allclose(aligner.normalise_source(x[40:43]), some, atol=1e-6)
    assert aligner.apply(x[:0]).shape == (0, 6)


@pytest.mark.parametrize(
    ("match", "call"),
    [
        ("no aligner 'rotate': choose one of procrust", lambda: fit("rotate")),
        ("no option 'penalty' of 'procrustes'", lambda: fit("procrustes", penalty=1.0)),
        ("no option 'alpha' of 'ridge'", lambda: fit(alpha=1.0)),
        ("no normalisation 'whiten'", lambda: fit(normalise=("unit", "whiten"))),
        ("'source' has 9 vectors and 'target' has 10", lambda: fit(source=X[1:])),
        ("Pair 1 is outside: 'source' has 10", lambda: fit(pairs=[[0, 1], [9, 10]])),
        ("Pair 0 is outside", lambda: fit(pairs=[[-1, 1]])),
        ("give integers", lambda: fit(pairs=[])),
        ("give integers", lambda: fit(pairs=[[0.0, 1.0]])),
        ("give integers", lambda: fit(pairs=[0, 1])),
        ("give integers", lambda: fit(pairs=[[0, 1, 2]])),
        (r"has shape \[3\]: give rows", lambda: fit(source=X[0])),
        (r"has shape \[0, 3\]: give rows", lambda: fit(source=X[:0])),
        (r"has shape \[10, 0\]: give rows", lambda: fit(target=Y[:, :0])),
        ("not an array of numbers", lambda: fit(target=[["a", "b"]])),
        ("not an array of numbers", lambda: fit(target=[[1.0], [1.0, 2.0]])),
        (r"has shape \[3\]: give rows", lambda: fit().apply(X[0])),
        (r"'source' has shape \[10, 4\]: give rows \[n, 3\]", lambda: fit().apply(Y)),
        (r"'target' has shape \[10, 3\]: give rows \[n, 4\]", lambda: fit().inverse().apply(X)),
        ("rows 4 of 'source' are not finite", lambda: fit(source=changed(X, [4], np.nan))),
        ("rows 4 of 'target' are not finite", lambda: fit(target=changed(Y, [4], -np.inf))),
        (
            "rows 4 .* not finite in float32",
            lambda: fit(normalise=(), source=changed(X, [4], 1e39)),
        ),
        ("rows 4 of 'source' are not finite", lambda: fit().apply(changed(X, [4], np.inf))),
        (r"rows 3, 7 of 'target' .*\(zero, too", lambda: fit(target=changed(Y, [3, 7], 0))),
        ("rows 0, 1, 2, 3, 4, ... of 'source' ", lambda: fit().apply(np.zeros((7, 3)))),
        ("rows 1 of 'source' .* too long", lambda: fit().apply(changed(X, [1], 1e30))),
        ("rows 0, .* mean of the space", lambda: fit(target=SAME[:10], normalise=STEPS)),
        ("rows 0 .* mean of the space", lambda: (a := fit(normalise=STEPS)).apply(a.source_means)),
        # Rounding: the mean of equal rows differs from the row.
        ("rows 0, .* mean of the space", lambda: fit(source=normal(3, 1000, 3), target=SAME)),
    ],
)
def test_errors_are_one_sentence(match, call):
    with refuses(match) as caught:
        call()
    assert str(caught.value).endswith(".") and ". " not in str(caught.value).replace("...", "")


def test_an_aligner_that_is_missing_or_cannot_be_written_is_refused(tmp_path):
    """tests/common/data/test_broken_files.py has files that are broken."""
    for path, file in ((tmp_path, tmp_path / "map.npz"), (tmp_path / "none.npz",) * 2):
        with refuses(f"{file} is missing or is not an aligner"):
            alignment.load(path)
    with refuses("Cannot write"):
        fit().save(tmp_path)


def test_files_of_other_versions_are_read_or_refused_by_their_version(tmp_path):
    path, x = tmp_path / "map.npz", normal(0, 20, 4)
    aligner = alignment.fit("procrustes", x, normal(1, 20, 4))
    aligner.save(path)
    with np.load(path) as file:
        fields = dict(file)
    assert fields.pop("version") == VERSION
    np.savez(path, **fields)  # the first files had none
    np.testing.assert_array_equal(alignment.load(path).apply(x), aligner.apply(x))
    np.savez(path, version=VERSION + 1, matrix=[0])
    with refuses("has version 2 of the format, .* install the release that wrote it"):
        alignment.load(path)


def test_mapping_back_lengthens_and_shortens_no_direction():
    """By an orthogonal map it is the inverse; a ridge map is nearer to zero than its rotation."""
    x, y = normal(0, 30, 4), normal(1, 30, 6)
    aligner = alignment.fit("procrustes", x, y)
    np.testing.assert_allclose(aligner.map_back(y), aligner.inverse().apply(y), atol=1e-5)
    x = normal(0, 200, 5) * np.geomspace(1, 0.1, 5, dtype=np.float32)
    y = x @ isometry(1, 5, 5)
    aligner = alignment.fit("ridge", x, y, penalty=20.0, normalise=())
    assert np.linalg.cond(aligner.matrix) > 3
    np.testing.assert_allclose(aligner.map_back(y), x, atol=1e-4)
    few = alignment.fit("ridge", x[:3], y[:3], penalty=20.0, normalise=())
    back = np.asarray(few.map_back(np.eye(5)))  # of the span of three pairs alone
    np.testing.assert_allclose(np.linalg.svd(back)[1], [1, 1, 1, 0, 0], atol=1e-5)


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
    x = unit(jnp.asarray(normal(0, 4000, 40)))
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
    if with_profile:
        assert loaded.likeness(x) == pytest.approx(aligner.likeness(x), rel=1e-5)
    assert aligner.inverse().likeness(y) is None
    assert all((one.likeness(x) is not None) == with_profile for one in (aligner, loaded))
