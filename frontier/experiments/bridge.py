"""Several spaces at once: pairs that are not found directly are found through other spaces.

Every pair of spaces is searched without known pairs. Spaces that no path of successful searches
connects are searched again with other random draws. Where a search has failed, the matches of the
searches that succeeded are composed along a path of spaces, and the bootstrap starts again with the
composed matches as its known pairs. Whether the result can be trusted is decided as for any search.
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict

from anchor_opt import evaluation, runner
from anchor_opt.methods import bootstrap
from anchor_opt.problem import Problem, Result, Run
from anchor_opt.runner import Grid
from common.errors import UserError, check_count
from common.linear import apply_map, preprocess
from common.run import records, results, tasks
from common.run.results import Row
from common.run.tasks import Case, Measured, Task
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs
from frontier.reports import bridge as report
from isthmus.align import generalised_procrustes
from isthmus.align.generalised_procrustes import Link, Pairs

NO_PAIRS = np.zeros((0, 2), int)
MAPPED = {"representation": "mapped"}


class Spaces(NamedTuple):
    """Spaces in unknown order, and the order, which the methods do not see."""

    vectors: Mapping[str, Float[Array, "n d"]]
    order: Mapping[str, Int[np.ndarray, " n"]]

    def truth(self, link: Link) -> Int[np.ndarray, " n"]:
        """The row of the second space that is the same item as each row of the first."""
        return np.argsort(self.order[link[1]])[self.order[link[0]]]


class Search(NamedTuple):
    """A search between two spaces: its rows, its matched pairs, and what it reports."""

    rows: list[Row]
    pairs: Pairs
    probability: float
    failed: bool


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """P@1 of every pair of spaces, found directly and through other spaces."""
    check_count("repeats", config.repeats, least=0)
    spaces, grid = load(config.spaces, config.num_rows, cache), runner.grid(config)
    fields = {"experiment": config.experiment, "num_items": config.num_rows, "num_pairs": 0}
    drawn = lru_cache(maxsize=1)(partial(shuffle, spaces))
    cases = {
        link: Case(space_pairs.file_name(*link), {**fields, "dataset": " -> ".join(link)}, drawn)
        for link in itertools.combinations(spaces, 2)
    }
    by_seed = [
        through_others(cases, grid, work, random_seed, config.repeats)
        for random_seed in grid.random_seeds
    ]
    rows = results.averaged(row for measured in by_seed for row in measured.rows)
    failed = [task for measured in by_seed for task in measured.failed]
    text = results.joined(report.tables(rows, failed))
    return records.finish(work, rows, f"{text}\n\n{report.NOTES}")


def load(names: Sequence[str], num_rows: int, cache: Path) -> dict[str, Float[Array, "n d"]]:
    """Name -> preprocessed vectors of the first items that all spaces have; row i is one item.

    Raises:
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
    cases: Mapping[Link, Case], grid: Grid, work: Workdir, random_seed: int, repeats: int
) -> Measured:
    """The rows of `direct`, `bridge` and `hub` in one random run, and what they report.

    Spaces that the searches do not connect are searched again up to `repeats` times.
    """

    def search_all(method: str, known: Mapping[Link, Pairs], repeat: int = 0) -> dict[Link, Search]:
        """A search between the two spaces of each link, from the known pairs."""
        searches = {}
        for link, pairs in known.items():
            task = Task(cases[link], method, random_seed)
            options = {"known": pairs, "repeat": repeat, "grid": grid, "work": work}
            measure = partial(measure_search, link=link, **options)
            measured = tasks.run([task], measure, work, title=task.name)
            (notes,) = measured.notes.values()
            matched = np.array(notes["pairs"], int).reshape(-1, 2)
            searches[link] = Search(measured.rows, matched, notes["probability"], notes["failed"])
        return searches

    direct = search_all("direct", dict.fromkeys(cases, NO_PAIRS))
    searches = dict(direct)
    for repeat, link in itertools.product(range(1, repeats + 1), cases):
        if not route(_probabilities(searches), link):
            searches |= search_all(f"repeat-{repeat}", {link: NO_PAIRS}, repeat)
    composed = {link: _composed(searches, link) for link in cases}
    tried = {
        link: pairs for link, pairs in composed.items() if searches[link].failed and len(pairs)
    }
    bridged = searches | search_all("bridge", tried)
    join = partial(measure_common, cases=cases, searches=bridged, k=grid.settings.k)
    joint = Task(Case("hub", {}, next(iter(cases.values())).problem), "", random_seed)
    in_common = tasks.run([joint], join, work, title=joint.name)
    joined = {row.dataset for row in in_common.rows}
    rows, notes = [], {}
    for link, case in cases.items():
        of_link = {"direct": direct[link], "bridge": bridged[link]}
        if case.fields["dataset"] not in joined:
            of_link["hub"] = bridged[link]
        for method, result in of_link.items():
            task = Task(case, method, random_seed)
            rows += [dataclasses.replace(row, method=method) for row in result.rows]
            notes[task.name] = {"failed": result.failed}
        if len(composed[link]):
            value = round_trip(searches[link].pairs, composed[link])
            of_direct = Task(case, "direct", random_seed)
            labels = {"representation": "matches"}
            rows.append(of_direct.row("round_trip", value, labels=labels))
    return Measured([*rows, *in_common.rows], notes)


def _composed(searches: Mapping[Link, Search], link: Link) -> Pairs:
    """The matches between two spaces through others, by searches that have not failed."""
    others = {key: search for key, search in searches.items() if key != link}
    path = route(_probabilities(others), link)
    return compose({key: search.pairs for key, search in others.items()}, path)


def _probabilities(searches: Mapping[Link, Search]) -> dict[Link, float]:
    """The probability that each search gives itself, of those that have not failed."""
    return {link: search.probability for link, search in searches.items() if not search.failed}


def measure_search(
    task: Task, *, link: Link, known: Pairs, repeat: int, grid: Grid, work: Workdir
) -> tuple[list[Row], dict[str, Any]]:
    """Searches from known pairs, without the truth, and measures; notes the matched pairs.

    A search that is repeated (`repeat` from 1 on) has other random draws, in the same rows.
    """
    spaces = task.case.problem(task.random_seed)
    source, target = (spaces.vectors[name] for name in link)
    problem = Problem(source, target, anchors=known[:, 0], target_pairs=known[:, 1])
    draws = task.seed
    if repeat:
        draws = int(np.random.SeedSequence([task.seed, repeat]).generate_state(1)[0])
    result = bootstrap.find(problem, Run(grid.settings, work, task.name, draws))
    report = result.report._asdict()
    problem = problem._replace(truth=spaces.truth(link))
    mapped_spaces = Result(problem.source_anchors, result.maps)
    reached = evaluation.precision_of_maps(problem, mapped_spaces, grid.settings.k).to_target
    rows = [task.row("p_at_1", reached, labels=MAPPED)]
    rows += evaluation.search_rows(task, problem, report, reached, grid.settings.k)
    chosen = np.flatnonzero(result.is_pair)
    pairs = np.stack([chosen, np.asarray(result.to_target)[chosen]], axis=1)
    return rows, {**report, "pairs": pairs.tolist()}


def measure_common(
    task: Task, *, cases: Mapping[Link, Case], searches: Mapping[Link, Search], k: int
) -> tuple[list[Row], dict[str, Any]]:
    """P@1 in common coordinates of the spaces that matches connect with the one of most dimensions.

    Args:
      task: of all spaces.
      cases: of each pair of spaces.
      searches: of each pair; the matches of those that have not failed are used.
      k: neighbours of CSLS.
    """
    spaces = task.case.problem(task.random_seed)
    sure = {link: result.pairs for link, result in searches.items() if not result.failed}
    centre = max(spaces.vectors, key=lambda name: spaces.vectors[name].shape[1])
    graph = nx.Graph(list(sure))
    graph.add_node(centre)
    members = nx.node_connected_component(graph, centre)
    if len(members) == 1:
        return [], {}
    connected = {name: x for name, x in spaces.vectors.items() if name in members}
    inside = {link: pairs for link, pairs in sure.items() if members.issuperset(link)}
    maps = generalised_procrustes.join(connected, inside, centre).maps
    vectors = {name: apply_map(x, maps[name]) for name, x in connected.items()}
    rows = []
    for link in itertools.combinations(connected, 2):
        source, target = (vectors[name] for name in link)
        reached = evaluation.precision(source, target, spaces.truth(link), k)
        of_link = Task(cases[link], "hub", task.random_seed)
        rows.append(of_link.row("p_at_1", reached.to_target, labels=MAPPED))
    return rows, {}


def route(probability: Mapping[Link, float], link: Link) -> list[str]:
    """The path of links between two spaces of the highest product of probabilities.

    Args:
      probability: of each link, above 0 and at most 1.
      link: the two spaces.

    Returns:
      The names of the spaces on the path, both ends included; none if there is no path.
    """
    graph = nx.Graph()
    graph.add_nodes_from(link)
    for (source, target), value in probability.items():
        graph.add_edge(source, target, cost=-math.log(value))
    if not nx.has_path(graph, *link):
        return []
    return nx.dijkstra_path(graph, *link, weight="cost")


def compose(pairs: Mapping[Link, Pairs], path: Sequence[str]) -> Pairs:
    """The rows of the first and the last space of a path that are matched through all others.

    Args:
      pairs: matched rows of the spaces of each link, each row in one pair at most.
      path: names of spaces, of which neighbours are linked, in either direction.

    Returns:
      Pairs in ascending order of the first row; none for an empty path.
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
