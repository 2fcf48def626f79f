"""Several spaces at once: pairs that are not found directly are found through other spaces.

Every pair of spaces is searched without known pairs. Spaces that no path of successful searches
connects are searched again with other random draws. Where a search has failed, the matches of the
searches that succeeded are composed along a path of spaces, and self-learning starts again with
the composed matches as its known pairs. Whether it can be trusted is decided as for any search.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from anchor_opt import evaluation
from anchor_opt.methods import Settings, bootstrap
from anchor_opt.problem import Problem, Result, Run
from common.errors import UserError, check_count
from common.linear import apply_map, preprocess
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.reports import bridge as report
from isthmus.align import joined
from isthmus.align.joined import Link, Pairs

NO_PAIRS = np.zeros((0, 2), int)
MAPPED, SEARCH, MATCHES = ({"representation": x} for x in ("mapped", "search", "matches"))


class Spaces(NamedTuple):
    """Spaces in unknown order, and the order, which the methods do not see."""

    vectors: Mapping[str, Float[Array, "n d"]]
    order: Mapping[str, Int[np.ndarray, " n"]]

    def problem(self, link: Link) -> Problem:
        """Two of the spaces without known pairs."""
        source, target = (self.vectors[name] for name in link)
        truth, none = np.argsort(self.order[link[1]])[self.order[link[0]]], NO_PAIRS[:, 0]
        return Problem(source, target, anchors=none, target_pairs=none, truth=truth)


class Search(NamedTuple):
    """A search between two spaces: its rows, its matched pairs, and what it reports."""

    rows: list[Row]
    pairs: Pairs
    probability: float
    failed: bool


class Found(NamedTuple):
    """The searches by each method, and the `round_trip` of pairs that others connect."""

    direct: dict[Link, Search]
    bridge: dict[Link, Search]
    round_trip: dict[Link, float]


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """P@1 of every pair of spaces, found directly and through other spaces."""
    check_count("repeats", config.repeats, least=0)
    spaces, values = load(config.spaces, config.num_rows, cache), settings(Settings, config)
    fields = {"experiment": config.experiment, "num_items": config.num_rows, "num_pairs": 0}
    cases = {
        link: Case(
            space_pairs.file_name(*link),
            {**fields, "dataset": " -> ".join(link)},
            lambda random_seed, link=link: shuffle(spaces, random_seed).problem(link),
        )
        for link in itertools.combinations(spaces, 2)
    }
    rows = []
    for seed in config.random_seeds:

        def search(link: Link, known: Pairs, draw: int, seed: int = seed) -> Search:
            kind = "bridge" if len(known) else f"repeat-{draw}" if draw else "direct"
            task = Task(cases[link], kind, seed)
            measure = partial(measure_search, known=known, draw=draw, values=values, work=work)
            measured = tasks.run([task], measure, work, title=task.name)
            notes = measured.notes[task.name]
            pairs = np.array(notes["pairs"], int).reshape(-1, 2)
            return Search(measured.rows, pairs, notes["probability"], notes["failed"])

        found = through_others(search, list(cases), config.repeats)
        in_common = precision_in_common(shuffle(spaces, seed), found.bridge, values.k)
        rows += rows_of(cases, seed, found, in_common)
    return records.finish(work, results.averaged(rows), report)


def load(names: Sequence[str], num_rows: int, cache: Path) -> dict[str, Float[Array, "n d"]]:
    """Name -> preprocessed vectors of the first items that all spaces have; row i is one item.

    UserError: fewer than three spaces, or fewer than `num_rows` items that all of them have.
    """
    if len(names) < 3:
        raise UserError(f"config.spaces has {len(names)} spaces: give three or more.")
    spaces = [paired_spaces.load_space(name, cache) for name in names]
    items, rows = paired_spaces.shared_items(spaces)
    if len(items) < num_rows:
        raise UserError(
            f"{', '.join(names)} share {len(items)} items, fewer than num_rows={num_rows}: ask "
            "for at most that many."
        )
    return {
        name: preprocess(space.vectors[[row[item] for item in items[:num_rows]]])
        for name, space, row in zip(names, spaces, rows, strict=True)
    }


def shuffle(spaces: Mapping[str, Float[Array, "n d"]], random_seed: int) -> Spaces:
    """Puts the rows of each space in a random order of its own."""
    rng = np.random.default_rng(random_seed)
    order = {name: rng.permutation(len(x)) for name, x in spaces.items()}
    return Spaces({name: x[order[name]] for name, x in spaces.items()}, order)


def through_others(
    search: Callable[[Link, Pairs, int], Search], links: Sequence[Link], repeats: int
) -> Found:
    """Searches between all spaces, directly and, where that fails, through others.

    `search` is of a link from known pairs, with the random draws of this number; spaces that the
    searches do not connect are searched again `repeats` times at most.
    """
    direct = {link: search(link, NO_PAIRS, 0) for link in links}
    found = dict(direct)
    for draw, link in itertools.product(range(1, repeats + 1), links):
        if not route(_probabilities(found), link):
            found[link] = search(link, NO_PAIRS, draw)
    composed = {link: pairs for link in links if len(pairs := _composed(found, link))}
    tried = {link: search(link, x, 0) for link, x in composed.items() if found[link].failed}
    round_trips = {link: round_trip(found[link].pairs, x) for link, x in composed.items()}
    return Found(direct, found | tried, round_trips)


def rows_of(
    cases: Mapping[Link, Case], seed: int, found: Found, in_common: Mapping[Link, float]
) -> list[Row]:
    """The rows of `direct`, `bridge` and `hub`, which is `bridge` where it has no coordinates."""
    rows = []
    for link, case in cases.items():
        task, bridge = Task(case, "direct", seed), found.bridge[link].rows
        hub = bridge
        if link in in_common:
            hub = [task.row("p_at_1", in_common[link], labels=MAPPED)]
        methods = {"direct": found.direct[link].rows, "bridge": bridge, "hub": hub}
        for method, of_method in methods.items():
            rows += [dataclasses.replace(row, method=method) for row in of_method]
        if link in found.round_trip:
            rows.append(task.row("round_trip", found.round_trip[link], labels=MATCHES))
    return rows


def _composed(searches: Mapping[Link, Search], link: Link) -> Pairs:
    """The matches between two spaces through others, by searches that have not failed."""
    others = {key: search for key, search in searches.items() if key != link}
    path = route(_probabilities(others), link)
    return compose({key: search.pairs for key, search in others.items()}, path)


def _probabilities(searches: Mapping[Link, Search]) -> dict[Link, float]:
    """The probability that each search gives itself, of those that have not failed."""
    return {link: search.probability for link, search in searches.items() if not search.failed}


def measure_search(
    task: Task, *, known: Pairs, draw: int, values: Settings, work: Workdir
) -> tuple[list[Row], dict[str, Any]]:
    """Searches from known pairs, without the truth, and measures; notes the matched pairs."""
    problem = task.case.problem(task.random_seed)
    problem = problem._replace(anchors=known[:, 0], target_pairs=known[:, 1])
    seed = task.seed
    if draw:
        seed = int(np.random.SeedSequence([task.seed, draw]).generate_state(1)[0])
    fit, said = bootstrap.find(problem.seen(False), Run(values, work, task.name, seed))
    report = said._asdict()
    mapped = Result(problem.source_anchors, fit.maps)
    reached = evaluation.precision_of_maps(problem, mapped, values.k).to_target
    rows = [task.row("p_at_1", reached, labels=MAPPED)]
    scores = evaluation.search_scores(problem, report, reached, values.k)
    rows += [task.row(metric, value, labels=SEARCH) for metric, value in scores.items()]
    chosen = np.flatnonzero(fit.is_pair)
    pairs = np.stack([chosen, np.asarray(fit.to_target)[chosen]], axis=1)
    return rows, {**report, "pairs": pairs.tolist()}


def precision_in_common(
    spaces: Spaces, searches: Mapping[Link, Search], k: int
) -> dict[Link, float]:
    """P@1 in common coordinates of the spaces that matches connect with the one of most dimensions.

    The matches are those of searches that have not failed; k neighbours of CSLS.
    """
    sure = {link: result.pairs for link, result in searches.items() if not result.failed}
    centre = max(spaces.vectors, key=lambda name: spaces.vectors[name].shape[1])
    graph = nx.Graph(list(sure))
    graph.add_node(centre)
    members = nx.node_connected_component(graph, centre)
    if len(members) == 1:
        return {}
    connected = {name: x for name, x in spaces.vectors.items() if name in members}
    inside = {link: pairs for link, pairs in sure.items() if members.issuperset(link)}
    maps = joined.in_common(connected, inside, centre).maps
    mapped = {name: apply_map(x, maps[name]) for name, x in connected.items()}
    return {
        (a, b): evaluation.precision(
            mapped[a], mapped[b], spaces.problem((a, b)).known_truth, k
        ).to_target
        for a, b in itertools.combinations(connected, 2)
    }


def route(probability: Mapping[Link, float], link: Link) -> list[str]:
    """The path between two spaces of the highest product of probabilities; empty if none is."""
    graph = nx.Graph()
    graph.add_nodes_from(link)
    for (source, target), value in probability.items():
        graph.add_edge(source, target, cost=-math.log(value))
    if not nx.has_path(graph, *link):
        return []
    return nx.dijkstra_path(graph, *link, weight="cost")


def compose(pairs: Mapping[Link, Pairs], path: Sequence[str]) -> Pairs:
    """The rows of the first and the last space of a path that are matched through all others.

    Neighbours on the path are linked in either direction; a row is in one pair of a link at most.
    """
    if not path:
        return NO_PAIRS
    legs = [
        dict((pairs[leg] if leg in pairs else pairs[leg[::-1]][:, ::-1]).tolist())
        for leg in itertools.pairwise(path)
    ]
    through = legs[0]
    for leg in legs[1:]:
        through = {row: leg[middle] for row, middle in through.items() if middle in leg}
    return np.array(sorted(through.items()), int).reshape(-1, 2)


def round_trip(direct: Pairs, composed: Pairs) -> float:
    """The fraction of the composed pairs that the direct ones confirm, of rows that both match."""
    partners = dict(direct.tolist())
    same = [partners[row] == partner for row, partner in composed.tolist() if row in partners]
    return float(np.mean(same)) if same else 0.0
