import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from common.run.tasks import Case, Task
from frontier.experiments import bridge


def test_the_route_is_the_most_probable_path():
    probability = {("a", "b"): 0.9, ("b", "c"): 0.9, ("a", "c"): 0.8, ("d", "c"): 1.0}
    assert bridge.route(probability, ("a", "c")) == ["a", "b", "c"]  # .81 against .8
    assert bridge.route(probability | {("a", "b"): 0.8}, ("a", "c")) == ["a", "c"]
    assert bridge.route(probability, ("d", "a")) == ["d", "c", "b", "a"]
    assert bridge.route(probability, ("a", "e")) == []
    assert bridge.route({}, ("a", "b")) == []
    assert bridge.compose({}, []).shape == (0, 2)


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


def test_the_round_trip_counts_the_rows_that_both_match():
    direct = np.array([[0, 5], [1, 6], [2, 7]])
    composed = np.array([[0, 5], [1, 7], [3, 8]])
    assert bridge.round_trip(direct, composed) == 0.5
    assert bridge.round_trip(direct, composed[2:]) == 0.0


def test_failed_searches_are_repeated_and_then_go_through_the_other_spaces():
    """The direct searches of one space fail; the second repetition of the first one succeeds."""
    links = list(itertools.combinations("abc", 2))
    cases = {
        link: Case("", {"experiment": "bridge", "dataset": " -> ".join(link)}, lambda seed: None)
        for link in links
    }
    asked = []

    def search(link, known, draw):
        asked.append((link, len(known), draw))
        failed = "c" in link and not len(known) and draw < 2
        row = Task(cases[link], "", 0).row("p_at_1", not failed)
        pairs = np.arange(5)[:, None].repeat(2, axis=1)
        return bridge.Search([row], pairs, 0.1 if failed else 0.9, failed)

    found = bridge.through_others(search, links, repeats=3)
    repeated = [(link, 0, 1) for link in links[1:]] + [(("a", "c"), 0, 2)]
    assert asked == [*((link, 0, 0) for link in links), *repeated, (("b", "c"), 5, 0)]
    assert found.round_trip == {("b", "c"): 1.0}  # through a; no other link has a way round
    rows = bridge.rows_of(cases, 0, found, in_common={("a", "b"): 0.5})
    values = {(row.method, row.dataset): row.mean for row in rows if row.metric == "p_at_1"}
    for link in links:
        dataset = " -> ".join(link)
        assert values["direct", dataset] == ("c" not in link) and values["bridge", dataset] == 1
        assert values["hub", dataset] == (0.5 if link == ("a", "b") else 1)
