import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anchor_opt import runner
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from configs.frontier.bridge import get_config
from frontier.experiments import bridge


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


def test_spaces_without_a_successful_search_are_not_joined():
    vectors = {name: np.zeros((3, d)) for name, d in (("a", 2), ("b", 3), ("c", 2))}
    task = Task(Case("hub", {}, lambda random_seed: bridge.Spaces(vectors, {})), "", 0)
    searches = {("a", "c"): bridge.Search([], np.zeros((1, 2), int), 1.0, failed=False)}
    assert bridge.measure_common(task, cases={}, searches=searches, k=10) == ([], {})


def test_failed_searches_are_repeated_and_then_go_through_the_other_spaces(tmp_path, monkeypatch):
    """The direct searches of one space fail; the second repetition of the first one succeeds."""
    links = list(itertools.combinations("abc", 2))
    asked = []

    def search(task, *, link, known, **_):
        asked.append((task.method, link, len(known)))
        failed = "c" in link and task.method in ("direct", "repeat-1")
        pairs = [[i, i] for i in range(5)]
        notes = {"pairs": pairs, "probability": 0.1 if failed else 0.9, "failed": failed}
        return [task.row("p_at_1", 0.0 if failed else 1.0)], notes

    monkeypatch.setattr(bridge, "measure_search", search)
    monkeypatch.setattr(bridge, "measure_common", lambda task, **_: ([], {}))
    fields = {link: {"experiment": "bridge", "dataset": " -> ".join(link)} for link in links}
    cases = {link: Case("-".join(link), fields[link], lambda random_seed: None) for link in links}
    grid, work = runner.grid(get_config()), Workdir(tmp_path, {})
    measured = bridge.through_others(cases, grid, work, random_seed=0, repeats=3)
    repeated = [("repeat-1", link, 0) for link in links[1:]] + [("repeat-2", ("a", "c"), 0)]
    direct = [("direct", link, 0) for link in links]
    assert asked == [*direct, *repeated, ("bridge", ("b", "c"), 5)]
    values = {
        (row.method, row.dataset): row.mean for row in measured.rows if row.metric == "p_at_1"
    }
    for link in links:
        dataset = " -> ".join(link)
        assert values["direct", dataset] == ("c" not in link) and values["bridge", dataset] == 1
