import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import alignment
from common.errors import UserError
from tests.samples import isometry, normal

# Every method, with options under which an exact fit remains exact.
ALIGNERS = [
    ("procrustes", {}),
    ("least_squares", {}),
    ("ridge", {"penalty": 1e-6}),
    ("whitened_procrustes", {"penalty": 1e-6}),
]
every_aligner = pytest.mark.parametrize(
    ("method", "options"), ALIGNERS, ids=[name for name, _ in ALIGNERS]
)
STEPS = [(), ("unit",), ("center",), ("center", "unit"), ("unit", "center", "unit")]


def white(seed, n, d):
    """Centred rows of equal variance in all directions."""
    x = normal(seed, n, d)
    return np.sqrt(n) * np.linalg.qr(x - x.mean(0))[0]


def refuses(match):
    return pytest.raises(UserError, match=match)


def test_every_method_is_tested_here():
    assert {name for name, _ in ALIGNERS} == set(alignment.METHODS)


@every_aligner
@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_equal_spaces_give_the_identity(method, options, steps):
    x = normal(0, 60, 8)
    aligner = alignment.fit(method, x, x, normalise=steps, **options)
    np.testing.assert_allclose(aligner.matrix, np.eye(8), atol=1e-5)
    np.testing.assert_allclose(aligner.apply(x), aligner.normalise_target(x), atol=1e-5)


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
    np.testing.assert_allclose(aligner.matrix, truth, atol=1e-5)
    back = aligner.inverse()
    assert back.matrix.shape == (d_target, d_source)
    np.testing.assert_allclose(back.matrix, truth.T, atol=1e-5)
    aligner = alignment.fit(method, normal(2, 80, d_source), normal(3, 80, d_target), **options)
    assert aligner.apply(x).shape == (80, d_target)
    assert np.isfinite(aligner.apply(x)).all()


@every_aligner
def test_the_order_of_the_pairs_does_not_matter(method, options):
    x, y, order = normal(0, 50, 6), normal(1, 50, 7), np.random.default_rng(2).permutation(50)
    expected = alignment.fit(method, x, y, **options)
    rows = np.stack([order, order], axis=1)
    for aligner in (
        alignment.fit(method, x, y, pairs=rows, **options),
        alignment.fit(method, x[order], y, pairs=np.stack([range(50), order], 1), **options),
        alignment.fit(method, x[order], y[order], **options),
    ):
        np.testing.assert_allclose(aligner.matrix, expected.matrix, atol=1e-5)
        np.testing.assert_allclose(aligner.source_means, expected.source_means, atol=1e-6)


@pytest.mark.slow
@every_aligner
def test_results_under_jit_equal_those_without(method, options):
    x, y, new = normal(0, 50, 6), normal(1, 50, 7), normal(2, 9, 6)

    def run(x, y, new):
        aligner = alignment.fit(method, x, y, **options)
        return aligner, aligner.apply(new), aligner.inverse().matrix

    with jax.disable_jit():
        expected = run(x, y, new)
    for results in (run(x, y, new), jax.jit(run)(x, y, new)):
        assert jax.tree.structure(results) == jax.tree.structure(expected)
        for a, b in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5)


@every_aligner
@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_saved_and_loaded_is_equal(method, options, steps, tmp_path):
    x, y = normal(0, 50, 6), normal(1, 50, 7)
    names = ("français", "english, 'old'")
    aligner = alignment.fit(method, x, y, normalise=steps, names=names, **options)
    aligner.save(tmp_path / "new folder" / "map")  # no suffix is added
    assert [file.name for file in (tmp_path / "new folder").iterdir()] == ["map"]
    loaded = alignment.load(str(tmp_path / "new folder" / "map"))
    for field in dataclasses.fields(aligner):
        a, b = getattr(loaded, field.name), getattr(aligner, field.name)
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(loaded.apply(x), aligner.apply(x))
    np.testing.assert_array_equal(loaded.inverse().apply(y), aligner.inverse().apply(y))


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


@every_aligner
def test_rows_without_a_direction_are_refused_where_unit_rows_are_needed(method, options):
    x, y = normal(0, 20, 6), normal(1, 20, 7)
    y[[3, 11]] = 0
    with refuses("rows 3, 11 of .*'target'.*zero"):
        alignment.fit(method, x, y, **options)
    aligner = alignment.fit(method, x, y, normalise=("center",), **options)  # no unit rows
    assert np.isfinite(aligner.matrix).all()
    aligner = alignment.fit(method, x, x + 1, **options)
    with refuses("rows 0, 1, 2, 3, 4, ... of .*'source'.*zero"):
        aligner.apply(np.zeros((7, 6)))
    with refuses("rows 0, .*'target'.*mean of the space"):
        alignment.fit(method, x, np.ones((20, 7)), normalise=("center", "unit"), **options)
    # Rounding: the mean of equal rows differs from the row.
    same = np.tile(normal(2, 1, 7), (1000, 1))
    with refuses("'target'.*mean of the space"):
        alignment.fit(method, normal(3, 1000, 6), same, **options)
    with refuses("rows 1 of .*'source'.*too long"):
        aligner.apply([[1.0] * 6, [1e30] * 6])
    mean = alignment.fit(method, x, x + 1, normalise=("center", "unit"), **options).source_means
    with refuses("mean of the space"):
        alignment.fit(method, x, x + 1, normalise=("center", "unit"), **options).apply(mean)


@every_aligner
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e39])
def test_vectors_that_are_not_finite_are_refused(method, options, bad):
    x, y = normal(0, 20, 6).astype(np.float64), normal(1, 20, 7)
    aligner = alignment.fit(method, x, y, **options)
    x[4, 2] = bad
    for call in (
        lambda: alignment.fit(method, x, y, **options),
        lambda: alignment.fit(method, x, y, normalise=(), **options),
        lambda: aligner.apply(x),
    ):
        with refuses("rows 4 of .*'source' are not finite in float32"):
            call()


@every_aligner
def test_equal_inputs_give_bitwise_equal_aligners(method, options):
    x, y = normal(0, 300, 40), normal(1, 300, 30)
    first, second = (alignment.fit(method, x, y, **options) for _ in range(2))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)


@every_aligner
def test_the_inverse_maps_back(method, options):
    x = normal(0, 60, 8)
    y = x @ isometry(1, 8, 8) + normal(2, 60, 8) / 3
    aligner = alignment.fit(method, x, y, normalise=(), **options)
    np.testing.assert_allclose(aligner.inverse().apply(aligner.apply(x)), x, atol=2e-5)
    aligner = alignment.fit(method, x, y, **options)
    back = aligner.inverse()
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
@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_new_vectors_are_normalised_with_the_fitted_means(method, options, steps):
    x, y = normal(0, 60, 8) + 1, normal(1, 60, 9) - 2
    aligner = alignment.fit(method, x, y, normalise=steps, **options)
    np.testing.assert_allclose(aligner.apply(x[40:43]), aligner.apply(x)[40:43], atol=1e-6)
    np.testing.assert_array_equal(aligner.normalise_target(y)[:1], aligner.normalise_target(y[:1]))
    assert aligner.apply(x[:0]).shape == (0, 9)


@every_aligner
def test_source_and_target_have_names_and_are_swapped_by_the_inverse(method, options):
    x, y = normal(0, 20, 6), normal(1, 20, 7)
    aligner = alignment.fit(method, x, y, names=("français", "english"), **options)
    assert (aligner.source, aligner.target, aligner.method) == ("français", "english", method)
    back = aligner.inverse()
    assert (back.source, back.target, back.method) == ("english", "français", method)
    with refuses(r"'français' has shape \[20, 7\]: give rows \[n, 6\]"):
        aligner.apply(y)
    with refuses(r"'english' has shape \[20, 6\]: give rows \[n, 7\]"):
        back.apply(x)


@every_aligner
def test_means_are_of_the_whole_spaces_and_the_map_of_the_pairs(method, options):
    x, y = normal(0, 30, 4), normal(1, 40, 5)
    pairs = np.stack([np.arange(0, 30, 2), np.arange(39, 24, -1)], axis=1)
    aligner = alignment.fit(method, x, y, pairs=pairs.tolist(), normalise=("center",), **options)
    np.testing.assert_allclose(aligner.source_means, x.mean(0)[None], atol=1e-6)
    np.testing.assert_allclose(aligner.target_means, y.mean(0)[None], atol=1e-6)
    expected = alignment.METHODS[method](
        x[pairs[:, 0]] - x.mean(0), y[pairs[:, 1]] - y.mean(0), **options
    )
    np.testing.assert_allclose(aligner.matrix, expected, atol=1e-5)


def test_the_mean_may_be_that_of_the_first_rows_only():
    x, y = normal(0, 40, 5), normal(1, 30, 4)
    x[20:] += 9  # rare words, far from all others
    pairs = np.arange(20)[:, None].repeat(2, axis=1)
    aligner = alignment.fit("procrustes", x, y, pairs=pairs, normalise=("center",), centre_rows=20)
    np.testing.assert_allclose(aligner.source_means[0], x[:20].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(aligner.apply(x[:20]).mean(axis=0), 0, atol=1e-6)


@pytest.mark.parametrize("steps", [*STEPS, ("center", "unit", "center", "unit")], ids=str)
def test_normalisation_agrees_with_numpy(steps):
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


X, Y = normal(0, 10, 3), normal(1, 10, 4)


def fit(method="ridge", source=X, target=Y, **options):
    return alignment.fit(method, source, target, **options)


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
    ],
)
def test_errors_are_one_sentence(match, call):
    with refuses(match) as caught:
        call()
    assert str(caught.value).endswith(".") and ". " not in str(caught.value)


def test_files_that_are_not_aligners_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none.npz"):
        with refuses(f"{path} is missing or is not an aligner"):
            alignment.load(path)
    aligner = alignment.fit("procrustes", X, Y)
    path = tmp_path / "aligner.npz"
    with refuses("Cannot write"):
        aligner.save(tmp_path)
    aligner.save(path)
    whole = path.read_bytes()
    fields = {field.name: getattr(aligner, field.name) for field in dataclasses.fields(aligner)}
    directions = {"profile_directions": np.eye(3)[:, :1], "profile_share": 0.5}
    good = {name: value for name, value in fields.items() if name != "profile"} | directions
    np.save(tmp_path / "array.npy", X)
    np.savez(path, **good)
    alignment.load(path)  # valid without the changes below

    def refused(content):
        path.write_bytes(content)
        with refuses("missing or is not an aligner"):
            alignment.load(path)

    for content in (b"", b"text", whole[:50], whole[: len(whole) // 2], whole[:-1]):
        refused(content)
    refused((tmp_path / "array.npy").read_bytes())
    flipped = bytearray(whole)
    flipped[whole.index(np.asarray(aligner.matrix).tobytes()) + 5] ^= 1
    refused(bytes(flipped))
    for wrong in (
        {"matrix": X[0]},
        {"matrix": np.full((3, 4), np.nan)},
        {"matrix": np.array([["a"] * 4] * 3)},
        {"source_means": np.zeros((1, 4))},
        {"target_means": np.zeros((2, 4))},
        {"normalise": ("unit", "scale", "center")},
        {"normalise": ("unit",)},
        {"normalise": ("unit", "center") + ("unit",) * 1000},
        {"matrix": np.zeros((3, 0)), "target_means": np.zeros((1, 0))},
        {"profile_directions": np.eye(2)},
        {"profile_share": np.nan},
    ):
        np.savez(path, **good | wrong)
        refused(path.read_bytes())
    np.savez(path, **{name: value for name, value in good.items() if name != "target"})
    refused(path.read_bytes())


@given(st.data())
@settings(max_examples=60)
def test_a_flipped_byte_is_refused_or_harmless(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("broken") / "aligner.npz"
    aligner = alignment.fit("procrustes", X, Y)
    aligner.save(path)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        loaded = alignment.load(path)
    except UserError:
        return
    np.testing.assert_array_equal(loaded.matrix, aligner.matrix)  # the flipped byte was not data


def test_an_aligner_is_a_pytree_with_gradients():
    aligner = alignment.fit("least_squares", X, Y)
    doubled = jax.tree.map(lambda x: 2 * x, aligner)
    assert (doubled.method, doubled.normalise) == (aligner.method, aligner.normalise)
    gradient = jax.grad(lambda aligner: jnp.sum(aligner.apply(X) ** 2))(aligner)
    assert gradient.matrix.shape == aligner.matrix.shape


def test_files_of_other_versions_are_read_or_refused_by_their_version(tmp_path):
    path, x = tmp_path / "map.npz", normal(0, 20, 4)
    aligner = alignment.fit("procrustes", x, normal(1, 20, 4))
    aligner.save(path)
    with np.load(path) as file:
        fields = dict(file)
    assert fields.pop("version") == alignment.VERSION
    np.savez(path, **fields)  # the first files had none
    np.testing.assert_array_equal(alignment.load(path).apply(x), aligner.apply(x))
    np.savez(path, version=alignment.VERSION + 1, matrix=[0])
    with refuses("has version 2 of the format, .* install the release that wrote it"):
        alignment.load(path)


def test_mapping_back_by_an_orthogonal_map_has_the_inner_products_of_the_mapped_source():
    x, y = normal(0, 30, 4), normal(1, 30, 6)
    aligner = alignment.fit("procrustes", x, y)
    back = aligner.map_back(y) @ aligner.normalise_source(x).T
    np.testing.assert_allclose(back, aligner.normalise_target(y) @ aligner.apply(x).T, atol=1e-5)
    np.testing.assert_allclose(aligner.map_back(y), aligner.inverse().apply(y), atol=1e-5)


def test_mapping_back_lengthens_and_shortens_no_direction_of_a_ridge_map():
    x = normal(0, 200, 5) * np.geomspace(1, 0.1, 5, dtype=np.float32)
    rotation = np.linalg.qr(normal(1, 5, 5))[0]
    y = x @ rotation
    aligner = alignment.fit("ridge", x, y, penalty=20.0, normalise=())
    assert np.linalg.cond(aligner.matrix) > 3
    np.testing.assert_allclose(aligner.map_back(y), x, atol=1e-4)
