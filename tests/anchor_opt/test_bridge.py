import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchor_opt.experiments import bridge
from common.data.packages import cache_dir
from common.run.settings import apply_quick
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from configs.anchor_opt.bridge import get_config
from tests.samples import rotated_words


def test_the_route_is_the_most_probable_path():
    probability = {("a", "b"): 0.9, ("b", "c"): 0.9, ("a", "c"): 0.8, ("d", "c"): 1.0}
    assert bridge.route(probability, ("a", "c")) == ["a", "b", "c"]  # .81 against .8
    assert bridge.route(probability | {("a", "b"): 0.8}, ("a", "c")) == ["a", "c"]
    assert bridge.route(probability, ("d", "a")) == ["d", "c", "b", "a"]
    assert bridge.route(probability, ("a", "e")) == []
    assert bridge.route({}, ("a", "b")) == []


@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_composed_true_matches_are_true_whatever_the_direction_of_the_links(spaces, random_seed):
    rng = np.random.default_rng(random_seed)
    names = [str(i) for i in range(spaces)]
    rows = {name: rng.permutation(20) for name in names}  # of each item
    pairs, items = {}, np.arange(20)
    for one, two in itertools.pairwise(names):
        known = rng.random(20) < 0.8
        items = items[known[items]]
        link = (one, two) if rng.random() < 0.5 else (two, one)
        pairs[link] = np.stack([rows[name][known] for name in link], axis=1)
    composed = bridge.compose(pairs, names)
    expected = np.stack([rows[names[0]][items], rows[names[-1]][items]], axis=1)
    np.testing.assert_array_equal(composed, expected[np.argsort(expected[:, 0])])


def test_without_a_path_nothing_is_composed():
    assert bridge.compose({}, []).shape == (0, 2)


def test_the_round_trip_counts_the_rows_that_both_match():
    direct = np.array([[0, 5], [1, 6], [2, 7]])
    composed = np.array([[0, 5], [1, 7], [3, 8]])
    assert bridge.round_trip(direct, composed) == 0.5
    assert bridge.round_trip(direct, composed[2:]) == 0.0


@pytest.mark.network
@pytest.mark.slow
def test_failed_searches_are_repeated_and_then_go_through_the_other_spaces(tmp_path, monkeypatch):
    """One space is not connected with others at first: it is found again with other draws."""
    config = get_config()
    config.quick = True
    apply_quick(config)
    config.num_rows = 300
    config.spaces = ("glove", "one.npz", "two.npz")
    monkeypatch.chdir(tmp_path)
    for random_seed, name in enumerate(config.spaces[1:]):
        rotated_words(tmp_path / name, random_seed)
    config.bootstrap.group_steps, config.bootstrap.search_steps = 60, 20
    config.bootstrap.group_reweights = (1.0,)
    converge, draws = bridge.bootstrap.converge, []

    def failing(problem, run):
        search = converge(problem, run)
        draws.append(run.random_seed)
        if "two.npz-direct" in run.part:  # as if the matches were wrong
            return search._replace(
                maps=tuple(m[::-1] for m in search.maps), report=search.report._replace(failed=True)
            )
        return search

    monkeypatch.setattr(bridge.bootstrap, "converge", failing)
    table = bridge.run(config, Workdir(tmp_path / "run", {}), cache_dir())
    assert "glove-two.npz-direct (1 random run)" in table
    assert len(list((tmp_path / "run/parts").glob("*repeat*"))) == 1
    *direct, repeat, bridged = draws
    assert direct == [0, 0, 0] and repeat != 0 and bridged == 0
    rows = json.loads((tmp_path / "run/results.json").read_text())
    precision = {
        (row["method"], row["dataset"]): row["mean"] for row in rows if row["metric"] == "p_at_1"
    }
    for source in ("glove", "one.npz"):
        assert precision["direct", f"{source} -> two.npz"] < 0.05
        assert precision["bridge", f"{source} -> two.npz"] > 0.95
    assert min(value for (method, _), value in precision.items() if method == "hub") > 0.95


def test_spaces_without_a_successful_search_are_not_joined():
    vectors = {name: np.zeros((3, d)) for name, d in (("a", 2), ("b", 3), ("c", 2))}
    task = Task(Case("hub", {}, lambda random_seed: bridge.Spaces(vectors, {})), "", 0)
    searches = {("a", "c"): bridge.Search([], np.zeros((1, 2), int), 1.0, failed=False)}
    assert bridge.measure_common(task, cases={}, searches=searches, k=10) == ([], {})
