import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import Ridge

from common import alignment
from common.errors import UserError

# The conformance table: every aligner stands here, with options that leave an exact fit exact.
ALIGNERS = [
    ("procrustes", {}),
    ("least_squares", {}),
    ("ridge", {"penalty": 1e-6}),
]
every_aligner = pytest.mark.parametrize(
    ("method", "options"), ALIGNERS, ids=[name for name, _ in ALIGNERS]
)
STEPS = [(), ("unit",), ("center",), ("center", "unit"), ("unit", "center", "unit")]


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def isometry(seed, rows, columns):
    q = np.linalg.qr(normal(seed, max(rows, columns), min(rows, columns)))[0]
    return q if rows >= columns else q.T


def white(seed, n, d):
    """Centred rows of equal variance in all directions."""
    x = normal(seed, n, d)
    return np.sqrt(n) * np.linalg.qr(x - x.mean(0))[0]


def refuses(match):
    return pytest.raises(UserError, match=match)


def test_the_table_holds_every_aligner():
    assert {name for name, _ in ALIGNERS} == set(alignment.METHODS)


@every_aligner
@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_identity(method, options, steps):
    x = normal(0, 60, 8)
    aligner = alignment.fit(method, x, x, normalise=steps, **options)
    np.testing.assert_allclose(aligner.matrix, np.eye(8), atol=1e-5)
    np.testing.assert_allclose(aligner.apply(x), aligner.normalise_fixed(x), atol=1e-5)


@every_aligner
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_a_known_rotation_shift_and_scale_is_recovered(method, options, seed):
    x, rotation = normal(seed, 60, 8), isometry(seed + 1, 8, 8)
    x -= x.mean(0)
    y = 3 * x @ rotation + normal(seed + 2, 8)
    aligner = alignment.fit(method, x, y, normalise=("center", "unit"), **options)
    np.testing.assert_allclose(aligner.matrix, rotation, atol=2e-5)
    np.testing.assert_allclose(aligner.apply(x), aligner.normalise_fixed(y), atol=2e-5)


@every_aligner
@pytest.mark.parametrize(("d_moving", "d_fixed"), [(5, 9), (9, 5)])
def test_unequal_dimensions(method, options, d_moving, d_fixed):
    x, truth = white(0, 80, d_moving), isometry(1, d_moving, d_fixed)
    aligner = alignment.fit(method, x, x @ truth, normalise=("center",), **options)
    assert aligner.matrix.shape == (d_moving, d_fixed)
    np.testing.assert_allclose(aligner.matrix, truth, atol=1e-5)
    back = aligner.inverse()
    assert back.matrix.shape == (d_fixed, d_moving)
    np.testing.assert_allclose(back.matrix, truth.T, atol=1e-5)
    aligner = alignment.fit(method, normal(2, 80, d_moving), normal(3, 80, d_fixed), **options)
    assert aligner.apply(x).shape == (80, d_fixed)
    assert np.isfinite(aligner.apply(x)).all()


@every_aligner
def test_the_order_of_the_pairs_does_not_matter(method, options):
    x, y, order = normal(0, 50, 6), normal(1, 50, 7), np.random.default_rng(2).permutation(50)
    expected = alignment.fit(method, x, y, **options)
    rows = np.stack([order, order], axis=1)
    for found in (
        alignment.fit(method, x, y, pairs=rows, **options),
        alignment.fit(method, x[order], y, pairs=np.stack([range(50), order], 1), **options),
        alignment.fit(method, x[order], y[order], **options),
    ):
        np.testing.assert_allclose(found.matrix, expected.matrix, atol=1e-5)
        np.testing.assert_allclose(found.moving_means, expected.moving_means, atol=1e-6)


@every_aligner
def test_jit_is_eager(method, options):
    x, y, new = normal(0, 50, 6), normal(1, 50, 7), normal(2, 9, 6)

    def run(x, y, new):
        aligner = alignment.fit(method, x, y, **options)
        return aligner, aligner.apply(new), aligner.inverse().matrix

    with jax.disable_jit():
        expected = run(x, y, new)
    for found in (run(x, y, new), jax.jit(run)(x, y, new)):
        assert jax.tree.structure(found) == jax.tree.structure(expected)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=2e-5)


@every_aligner
@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_saved_and_loaded_is_equal(method, options, steps, tmp_path):
    x, y = normal(0, 50, 6), normal(1, 50, 7)
    names = {"moving": "français", "fixed": "english, 'old'"}
    aligner = alignment.fit(method, x, y, normalise=steps, **names, **options)
    aligner.save(tmp_path / "new folder" / "map")  # a name is taken as it is
    assert [file.name for file in (tmp_path / "new folder").iterdir()] == ["map"]
    loaded = alignment.load(str(tmp_path / "new folder" / "map"))
    for field in dataclasses.fields(aligner):
        a, b = getattr(loaded, field.name), getattr(aligner, field.name)
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(loaded.apply(x), aligner.apply(x))
    np.testing.assert_array_equal(loaded.inverse().apply(y), aligner.inverse().apply(y))


@every_aligner
def test_few_pairs(method, options):
    x, y = normal(0, 20, 6), normal(1, 20, 7)
    for count in (1, 2):
        pairs = np.arange(2 * count).reshape(count, 2)
        aligner = alignment.fit(method, x, y, pairs=pairs, **options)
        assert np.isfinite(aligner.apply(x)).all()
        moved = aligner.apply(x)[pairs[:, 0]]
        cosine = np.sum(moved * aligner.normalise_fixed(y)[pairs[:, 1]], axis=1)
        assert (cosine > 0.3).all()  # at least towards their partners, with nothing to spare
    assert np.isfinite(alignment.fit(method, x[:2], y[:2], **options).matrix).all()
    alignment.fit(method, x[:1], y[:1], normalise=("unit",), **options)
    with refuses(r"'source' is too small \(1\): give 2"):
        alignment.fit(method, x[:1], y[:1], **options)
    with refuses(r"'source' is too small \(0\)"):
        alignment.fit(method, x[:0], y[:0], normalise=(), **options)
    for none in ([], np.zeros((0, 2), int)):
        with refuses("no pairs to fit on"):
            alignment.fit(method, x, y, pairs=none, **options)


@every_aligner
def test_zero_rows(method, options):
    x, y = normal(0, 20, 6), normal(1, 20, 7)
    y[[3, 11]] = 0
    with refuses("'target'.* zero.*: 3, 11."):
        alignment.fit(method, x, y, **options)
    aligner = alignment.fit(method, x, y, normalise=("center",), **options)  # no direction needed
    assert np.isfinite(aligner.matrix).all()
    aligner = alignment.fit(method, x, x + 1, **options)
    with refuses("'source'.* zero.*: 0, 1, 2, 3, 4 and 2 more."):
        aligner.apply(np.zeros((7, 6)))
    with refuses("'target'.*mean of the space.*: 0."):
        alignment.fit(method, x, np.ones((20, 7)), normalise=("center", "unit"), **options)
    same = np.tile(normal(2, 1, 7), (1000, 1))  # the mean of equal rows is not quite the row
    with refuses("'target'.*mean of the space"):
        alignment.fit(method, normal(3, 1000, 6), same, **options)
    with refuses("'source'.* too long.*: 1."):
        aligner.apply([[1.0] * 6, [1e30] * 6])
    mean = alignment.fit(method, x, x + 1, normalise=("center", "unit"), **options).moving_means
    with refuses("mean of the space"):
        alignment.fit(method, x, x + 1, normalise=("center", "unit"), **options).apply(mean)


@every_aligner
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e39])
def test_not_finite(method, options, bad):
    x, y = normal(0, 20, 6).astype(np.float64), normal(1, 20, 7)
    aligner = alignment.fit(method, x, y, **options)
    x[4, 2] = bad
    for call in (
        lambda: alignment.fit(method, x, y, **options),
        lambda: alignment.fit(method, x, y, normalise=(), **options),
        lambda: aligner.apply(x),
    ):
        with refuses("'source'.* not finite in float32: 4."):
            call()


@every_aligner
def test_the_same_input_gives_the_same_bits(method, options):
    x, y = normal(0, 300, 40), normal(1, 300, 30)
    first, second = (alignment.fit(method, x, y, **options) for _ in range(2))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)


@every_aligner
def test_the_inverse_takes_back(method, options):
    x = normal(0, 60, 8)
    y = x @ isometry(1, 8, 8) + normal(2, 60, 8) / 3
    aligner = alignment.fit(method, x, y, normalise=(), **options)
    np.testing.assert_allclose(aligner.inverse().apply(aligner.apply(x)), x, atol=2e-5)
    aligner = alignment.fit(method, x, y, **options)
    back = aligner.inverse()
    images = aligner.apply(x)
    np.testing.assert_allclose(images @ back.matrix, aligner.normalise_moving(x), atol=1e-5)
    np.testing.assert_array_equal(back.normalise_fixed(x), aligner.normalise_moving(x))
    np.testing.assert_array_equal(back.normalise_moving(y), aligner.normalise_fixed(y))
    np.testing.assert_allclose(back.inverse().matrix, aligner.matrix, atol=2e-5)
    # Images that differ much in size, then of a map that reaches 3 directions of 8 only.
    for image in (x * np.geomspace(1, 0.02, 8), np.pad(x[:, :3], [(0, 0), (0, 5)])):
        aligner = alignment.fit(method, x, image, normalise=(), **options)
        expected = np.linalg.pinv(np.asarray(aligner.matrix, np.float64), rcond=1e-5)
        np.testing.assert_allclose(aligner.inverse().matrix, expected, atol=1e-3)


@every_aligner
@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_new_vectors_are_treated_like_those_seen_at_fit(method, options, steps):
    x, y = normal(0, 60, 8) + 1, normal(1, 60, 9) - 2
    aligner = alignment.fit(method, x, y, normalise=steps, **options)
    np.testing.assert_allclose(aligner.apply(x[40:43]), aligner.apply(x)[40:43], atol=1e-6)
    np.testing.assert_array_equal(aligner.normalise_fixed(y)[:1], aligner.normalise_fixed(y[:1]))
    assert aligner.apply(x[:0]).shape == (0, 9)


@every_aligner
def test_it_names_the_space_that_moves(method, options):
    x, y = normal(0, 20, 6), normal(1, 20, 7)
    aligner = alignment.fit(method, x, y, moving="français", fixed="english", **options)
    assert (aligner.moving, aligner.fixed, aligner.method) == ("français", "english", method)
    back = aligner.inverse()
    assert (back.moving, back.fixed, back.method) == ("english", "français", method)
    with refuses("'français' has 6 dimensions, not 7"):
        aligner.apply(y)
    with refuses("'english' has 7 dimensions, not 6"):
        aligner.normalise_fixed(x)
    with refuses("'english' has 7 dimensions, not 6"):
        back.apply(x)


@every_aligner
def test_means_are_of_the_whole_spaces_and_the_map_of_the_pairs(method, options):
    x, y = normal(0, 30, 4), normal(1, 40, 5)
    pairs = np.stack([np.arange(0, 30, 2), np.arange(39, 24, -1)], axis=1)
    aligner = alignment.fit(method, x, y, pairs=pairs.tolist(), normalise=("center",), **options)
    np.testing.assert_allclose(aligner.moving_means, x.mean(0)[None], atol=1e-6)
    np.testing.assert_allclose(aligner.fixed_means, y.mean(0)[None], atol=1e-6)
    expected = alignment.METHODS[method](
        x[pairs[:, 0]] - x.mean(0), y[pairs[:, 1]] - y.mean(0), **options
    )
    np.testing.assert_allclose(aligner.matrix, expected, atol=1e-5)


def test_means_of_the_frequent_rows():
    x, y = normal(0, 40, 5), normal(1, 30, 4)
    x[20:] += 9  # rare words far from all others
    pairs = np.arange(20)[:, None].repeat(2, axis=1)
    found = alignment.fit("procrustes", x, y, pairs=pairs, normalise=("center",), frequent=20)
    np.testing.assert_allclose(found.moving_means[0], x[:20].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.apply(x[:20]).mean(axis=0), 0, atol=1e-6)


@pytest.mark.parametrize("steps", [*STEPS, ("center", "unit", "center", "unit")], ids=str)
def test_normalisation_against_numpy(steps):
    x = normal(0, 50, 6) + 2
    expected, means = x.astype(np.float64), []
    for step in steps:
        if step == "unit":
            expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
        else:
            means.append(expected.mean(0))
            expected = expected - means[-1]
    aligner = alignment.fit("procrustes", x, normal(1, 50, 6), normalise=steps)
    np.testing.assert_allclose(aligner.normalise_moving(x), expected, atol=2e-6)
    np.testing.assert_allclose(aligner.moving_means, np.reshape(means, (-1, 6)), atol=1e-6)


def correlated(seed, n, d_x, d_y, condition=30.0):
    """Rows whose directions differ in size, and a noisy linear image of them."""
    x = normal(seed, n, d_x) * np.geomspace(1, 1 / condition, d_x, dtype=np.float32)
    x = x @ isometry(seed + 1, d_x, d_x)
    return x, x @ normal(seed + 2, d_x, d_y) + normal(seed + 3, n, d_y) / 10


@given(st.integers(0, 1000), st.sampled_from([(50, 7), (12, 12), (500, 30)]))
@settings(max_examples=15, deadline=None)
def test_procrustes_against_scipy(seed, shape):
    x, y = correlated(seed, *shape, shape[1], condition=3)
    expected, _ = orthogonal_procrustes(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(alignment.procrustes(x, y), expected, atol=5e-4)
    expected = np.sum((x @ expected) * y)
    found = np.asarray(alignment.procrustes(x, y))
    assert np.sum((x @ found) * y) > expected - 1e-5 * abs(expected)
    np.testing.assert_allclose(found.T @ found, np.eye(shape[1]), atol=2e-6)


@pytest.mark.parametrize(("d_x", "d_y"), [(4, 7), (7, 4)])
def test_rectangular_procrustes_is_the_best_partial_isometry(d_x, d_y):
    x, y = normal(0, 40, d_x), normal(1, 40, d_y)
    found = np.asarray(alignment.procrustes(x, y))
    small = found @ found.T if d_x < d_y else found.T @ found
    np.testing.assert_allclose(small, np.eye(4), atol=2e-6)
    best = np.linalg.svd(x.T @ y, compute_uv=False).sum()  # von Neumann's bound
    np.testing.assert_allclose(np.sum((x @ found) * y), best, rtol=1e-5)
    # Zero columns beside the narrower space make it the square problem.
    wide = [np.pad(z, [(0, 0), (0, 7 - z.shape[1])]) for z in (x, y)]
    square = orthogonal_procrustes(*wide)[0][:d_x, :d_y]
    np.testing.assert_allclose(np.sum((x @ square) * y), best, rtol=1e-5)


# Many rows, as many as columns, and fewer (the least norm).
@pytest.mark.parametrize(
    ("n", "d_x", "atol"), [(3000, 20, 1e-4), (12, 12, 5e-3), (5, 20, 1e-3)], ids=str
)
def test_least_squares_against_numpy(n, d_x, atol):
    x, y = correlated(0, n, d_x, 6)
    expected = np.linalg.lstsq(x.astype(np.float64), y.astype(np.float64), rcond=None)[0]
    np.testing.assert_allclose(alignment.least_squares(x, y), expected, atol=atol)


def test_least_squares_of_deficient_rank_has_least_norm():
    x, y = correlated(0, 20_000, 20, 6)
    x = np.concatenate([x, x[:, :5]], axis=1)
    expected = np.linalg.lstsq(x.astype(np.float64), y.astype(np.float64), rcond=None)[0]
    np.testing.assert_allclose(alignment.least_squares(x, y), expected, atol=1e-4)
    zeros = alignment.least_squares(np.zeros((5, 3)), np.zeros((5, 2)))
    np.testing.assert_array_equal(zeros, np.zeros((3, 2)))


def test_least_squares_is_as_accurate_as_float32_allows():
    x, y = correlated(0, 3000, 30, 6, condition=1000.0)
    expected = np.linalg.lstsq(x.astype(np.float64), y.astype(np.float64), rcond=None)[0]
    error = np.linalg.norm(alignment.least_squares(x, y) - expected) / np.linalg.norm(expected)
    assert error < 1e-3  # condition x rounding; the normal equations would lose all digits


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize(("n", "d_x"), [(3000, 20), (5, 20)], ids=str)
def test_ridge_against_sklearn(n, d_x, penalty):
    x, y = correlated(0, n, d_x, 6)
    peer = Ridge(alpha=penalty, fit_intercept=False, solver="svd")
    expected = peer.fit(x.astype(np.float64), y.astype(np.float64)).coef_.T
    np.testing.assert_allclose(alignment.ridge(x, y, penalty), expected, atol=5e-4)


def test_ridge_without_penalty_is_least_squares():
    x, y = correlated(0, 30, 8, 6)
    np.testing.assert_array_equal(alignment.ridge(x, y, 0.0), alignment.least_squares(x, y))


X, Y = normal(0, 10, 3), normal(1, 10, 4)


@pytest.mark.parametrize(
    ("match", "call"),
    [
        ("called 'rotate': choose one of procrust", lambda: alignment.fit("rotate", X, Y)),
        ("'penalty': it has none", lambda: alignment.fit("procrustes", X, Y, penalty=1.0)),
        ("'alpha': it has only penalty", lambda: alignment.fit("ridge", X, Y, alpha=1.0)),
        ("penalty is -1", lambda: alignment.fit("ridge", X, Y, penalty=-1.0)),
        ("penalty is nan", lambda: alignment.fit("ridge", X, Y, penalty=np.nan)),
        ("called 'whiten'", lambda: alignment.fit("ridge", X, Y, normalise=("unit", "whiten"))),
        ("called 'zscore'", lambda: alignment.fit("ridge", X, Y, normalise="zscore")),
        ("Both spaces are called 'target'", lambda: alignment.fit("ridge", X, Y, moving="target")),
        ("'source' has 9 vectors and 'target' has 10", lambda: alignment.fit("ridge", X[1:], Y)),
        ("names row 10: .* 'target' has 0 to 9", lambda: fit_pairs([[0, 1], [9, 10]])),
        ("Pair 0 names row -1: .* 'source'", lambda: fit_pairs([[-1, 1]])),
        ("give integers", lambda: fit_pairs([[0.0, 1.0]])),
        ("give integers", lambda: fit_pairs([0, 1])),
        ("give integers", lambda: fit_pairs([[0, 1, 2]])),
        (r"are \[3\]: give rows", lambda: alignment.fit("ridge", X[0], Y)),
        (r"are \[10, 0\]: give rows", lambda: alignment.fit("ridge", X, Y[:, :0])),
        ("no array of numbers", lambda: alignment.fit("ridge", X, [["a", "b"]])),
        ("no array of numbers", lambda: alignment.fit("ridge", X, [[1.0], [1.0, 2.0]])),
        (r"are \[3\]: give rows", lambda: alignment.fit("ridge", X, Y).apply(X[0])),
    ],
)
def test_mistakes_are_said_in_one_sentence(match, call):
    with refuses(match) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")
    assert ". " not in str(caught.value)


def fit_pairs(pairs):
    return alignment.fit("procrustes", X, Y, pairs=pairs)


def test_normalise_may_be_one_step():
    aligner = alignment.fit("ridge", X, Y, normalise="unit")
    assert aligner.normalise == ("unit",)


def test_files_that_cannot_be_loaded(tmp_path):
    with refuses("Cannot read .*none.npz .No such file"):
        alignment.load(tmp_path / "none.npz")
    with refuses("Cannot read .*Is a directory"):
        alignment.load(tmp_path)
    aligner = alignment.fit("procrustes", X, Y)
    path = tmp_path / "aligner.npz"
    with refuses("Cannot write"):
        aligner.save(tmp_path)
    aligner.save(path)
    whole = path.read_bytes()
    good = {field.name: getattr(aligner, field.name) for field in dataclasses.fields(aligner)}
    np.save(tmp_path / "array.npy", X)
    np.savez(path, **good)
    alignment.load(path)  # so what is refused below is refused for what is changed

    def refused(content):
        path.write_bytes(content)
        with refuses("is not an aligner"):
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
        {"moving_means": np.zeros((1, 4))},
        {"fixed_means": np.zeros((2, 4))},
        {"normalise": ("unit", "scale", "center")},
        {"normalise": ("unit",)},
    ):
        np.savez(path, **good | wrong)
        refused(path.read_bytes())
    np.savez(path, **{name: value for name, value in good.items() if name != "fixed"})
    refused(path.read_bytes())


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_broken_bytes_are_refused_or_harmless(tmp_path_factory, data):
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
    np.testing.assert_array_equal(loaded.matrix, aligner.matrix)  # the flip hit no data


def test_an_old_file_survives_a_failed_save(tmp_path, monkeypatch):
    path = tmp_path / "aligner.npz"
    aligner = alignment.fit("procrustes", X, Y)
    aligner.save(path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with refuses("No space left on device"):
        alignment.fit("least_squares", X, Y).save(path)
    assert alignment.load(path).method == "procrustes"


def test_an_aligner_is_a_pytree():
    aligner = alignment.fit("least_squares", X, Y)
    doubled = jax.tree.map(lambda x: 2 * x, aligner)
    assert (doubled.method, doubled.normalise) == (aligner.method, aligner.normalise)
    gradient = jax.grad(lambda aligner: jnp.sum(aligner.apply(X) ** 2))(aligner)
    assert gradient.matrix.shape == aligner.matrix.shape
