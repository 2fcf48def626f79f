import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt.problem import Result, Run, partly_shared
from common.data.packages import cache_dir
from common.data.sets import imagenet_classes
from common.linear import unit
from common.run.workdir import Workdir
from common.spaces import image_classes
from frontier.experiments import overlap
from frontier.methods import Settings, spectral


def problem(num_pairs: int):
    """A space of clusters and its rotated copy."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 6))
    source = unit(centres[np.arange(240) % 12] + 0.3 * rng.normal(size=(240, 6)))
    target = source @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    spaces = (jnp.asarray(x, jnp.float32) for x in (source, target))
    sizes = {"num_rows": 240, "num_anchors": num_pairs, "num_pairs": num_pairs}
    return partly_shared(*spaces, **sizes, shared=1.0, random_seed=0)


def test_spectral_embeddings_of_a_rotated_copy_agree(tmp_path):
    drawn = problem(num_pairs=100)
    chosen = spectral.Settings(neighbours=20, eigenvectors=8, components=6)
    run = Run(Settings(spectral=chosen), Workdir(tmp_path, {}), "p", 0)
    source, target = spectral.run(drawn, run).coordinates(drawn.source, drawn.target)
    assert source.shape == target.shape == (240, 6)
    np.testing.assert_allclose(source, target[drawn.known_truth], atol=1e-3)


def test_only_classes_without_known_partner_count():
    drawn = problem(num_pairs=100)
    right = drawn.source, drawn.source[np.argsort(drawn.known_truth)]
    wrong = np.asarray(right[1]).copy()
    others = np.setdiff1d(np.arange(240), drawn.target_pairs)
    wrong[others] = wrong[np.roll(others, 1)]
    for target, low, high in ((right[1], 0.99, 1.0), (jnp.asarray(wrong), 0.0, 0.1)):
        result = Result(drawn.source, placed=(drawn.source, target))
        for metric, value, _ in overlap.by_coordinates(drawn, result, k=10):
            assert low <= value <= high, metric


@pytest.mark.network
def test_all_spaces_have_the_classes_of_imagenet_in_one_order():
    of_wordnet = imagenet_classes.load(cache_dir())
    assert of_wordnet.synsets[0] == "n01440764" and of_wordnet.names[0] == "tench, Tinca tinca"
    assert of_wordnet.definitions[-1] == "a soft thin absorbent paper for use in toilets"
    for name in ("classes_efficientnet_lite0", "classes_wordllama"):
        space = image_classes.load(name, cache_dir())
        assert space.words == of_wordnet.synsets and len(set(space.words)) == 1_000
        assert len(space.vectors) == 1_000 and np.isfinite(space.vectors).all()
    assert len(image_classes.load("classes_efficientnet_lite0", cache_dir(), 40).words) == 40
