"""Several spaces at once: pairs that are not found directly are found through other spaces.

Every pair of spaces is searched without known pairs. Where a search fails, the matches of the
searches that succeeded are composed along a path of spaces, and the bootstrap starts again with the
composed matches as its known pairs. Whether the result can be trusted is decided as for any search.

Labels of the rows: `representation` is 'mapped' (the method's own map), 'search' (the report of a
search) or 'matches'. The methods are `direct`, one search between the two spaces, and `bridge`, the
same unless it has failed, and otherwise the search from the composed matches, and `hub`, maps of
all spaces into common coordinates, fitted to the matches of all searches that have not failed.
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import jax.numpy as jnp
import networkx as nx
import numpy as np
from jaxtyping import Array, Float, Int
from ml_collections import ConfigDict
from tqdm import tqdm

from anchor_opt import runner
from anchor_opt.methods import bootstrap, generalised_procrustes
from anchor_opt.methods.generalised_procrustes import Link, Pairs
from anchor_opt.problem import Problem, Result, Run
from common import csls
from common.errors import UserError
from common.linear import apply_map, preprocess
from common.run import results, train
from common.run.results import Row, joined, pivot, select
from common.run.workdir import Workdir
from common.spaces import paired_spaces, space_pairs

TITLES = {"round_trip": "Round trip"}
NONE = np.zeros((0, 2), int)
NOTES = (
    "P@1 of the method's own map (CSLS) without known pairs; all items are shared and both spaces "
    "are in unknown order. Direct: one search between the two spaces. Bridge: the same unless it "
    "has failed, and otherwise a search from the matches composed along the most probable path of "
    "other searches that have not failed. Hub: one map of each space into common coordinates, "
    "fitted to the matches of all searches that have not failed; pairs of spaces that these do not "
    "connect are as in Bridge. Round trip: the fraction of the direct search's matches that this "
    "path gives as well; it needs no truth."
)


def bridge(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """The experiment: P@1 of every pair of spaces, found directly and through other spaces."""
    spaces = load(config.spaces, config.num_rows, cache)
    grid = runner.grid(config, source="", target="")
    measured, failed = [], []
    for random_seed in grid.random_seeds:
        found = _searches(spaces, grid, work, random_seed)
        for link, one in found.items():
            for method, result in one.items():
                fields = {
                    "dataset": " -> ".join(link),
                    "method": method,
                    "random_seed": random_seed,
                }
                measured += [row | fields for row in result["rows"]]
                if result["notes"]["failed"]:
                    failed.append(f"{space_pairs.file_name(*link)}-run{random_seed}-{method}")
    rows = results.summarise(
        measured, experiment=config.experiment, num_items=config.num_rows, num_pairs=0
    )
    text = joined(tables(rows) | runner.failures(failed))
    return results.finish(work, rows, f"{text}\n\n{NOTES}")


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
        name: preprocess(jnp.asarray(space.vectors[[row[item] for item in items[:num_rows]]]))
        for name, space, row in zip(names, spaces, rows, strict=True)
    }


def _searches(
    spaces: Mapping[str, Float[Array, "n d"]], grid: runner.Grid, work: Workdir, random_seed: int
) -> dict[Link, dict[str, dict]]:
    """For each pair of spaces and each method the rows, the notes and the matches."""
    rng = np.random.default_rng(random_seed)
    order = {name: rng.permutation(len(x)) for name, x in spaces.items()}
    shuffled = {name: x[order[name]] for name, x in spaces.items()}

    def search_from(known: Pairs, link: Link, method: str) -> dict:
        source, target = link
        problem = Problem(
            source=shuffled[source],
            target=shuffled[target],
            anchors=known[:, 0],
            target_pairs=known[:, 1],
            truth=np.argsort(order[target])[order[source]],
        )
        part = f"{space_pairs.file_name(*link)}-run{random_seed}-{method}"
        run = Run(settings=grid.settings, work=work, part=part, random_seed=random_seed)
        result = work.part(part, lambda: _measured(problem, run))
        train.forget_checkpoints(work, part)
        return result | {"pairs": np.array(result["pairs"], int).reshape(-1, 2)}

    links = tqdm(list(itertools.combinations(spaces, 2)), unit="pair", desc=f"run {random_seed}")
    direct = {link: search_from(NONE, link, "direct") for link in links}
    sure = {link: one for link, one in direct.items() if not one["notes"]["failed"]}
    found = {}
    for link, one in direct.items():
        others = {other: one for other, one in sure.items() if other != link}
        path = route({k: one["notes"]["probability"] for k, one in others.items()}, link)
        composed = compose({k: one["pairs"] for k, one in others.items()}, path)
        bridged = one
        if one["notes"]["failed"] and len(composed):
            bridged = search_from(composed, link, "bridge")
        if len(composed):
            value = round_trip(one["pairs"], composed)
            row = {"metric": "round_trip", "value": value, "labels": {"representation": "matches"}}
            one = one | {"rows": [*one["rows"], row]}
        found[link] = {"direct": one, "bridge": bridged}
    truth = {(i, j): np.argsort(order[j])[order[i]] for i, j in found}
    sure = {link: one["bridge"]["pairs"] for link, one in found.items() if not _failed(one)}
    part = f"run{random_seed}-hub"
    joined = work.part(part, lambda: _joined(shuffled, sure, truth, grid.settings.k))
    for link, one in found.items():
        name = space_pairs.file_name(*link)
        one["hub"] = one["bridge"]
        if name in joined:
            one["hub"] = {"rows": [_p_at_1(joined[name])], "notes": {"failed": False}}
    return found


def _failed(one: dict[str, dict]) -> bool:
    return one["bridge"]["notes"]["failed"]


def _joined(
    spaces: Mapping[str, Float[Array, "n d"]],
    pairs: Mapping[Link, Pairs],
    truth: Mapping[Link, Int[np.ndarray, " n"]],
    k: int,
) -> dict[str, float]:
    """P@1 in common coordinates of the spaces that matches connect with the one of most dimensions.

    Args:
      spaces: name -> unit rows.
      pairs: the matches of searches that have not failed.
      truth: of each pair of spaces, read by the measurement alone.
      k: neighbours of CSLS.

    Returns:
      `space_pairs.file_name` -> P@1.
    """
    centre = max(spaces, key=lambda name: spaces[name].shape[1])
    graph = nx.Graph(list(pairs))
    graph.add_node(centre)
    members = nx.node_connected_component(graph, centre)
    if len(members) == 1:
        return {}
    connected = {name: x for name, x in spaces.items() if name in members}
    inside = {link: rows for link, rows in pairs.items() if members.issuperset(link)}
    maps = generalised_procrustes.join(connected, inside, centre).maps
    rows = {name: apply_map(x, maps[name]) for name, x in connected.items()}
    return {
        space_pairs.file_name(i, j): _right(rows[i], rows[j], truth[i, j], k)
        for i, j in itertools.combinations(connected, 2)
    }


def _right(x: Float[Array, "n r"], y: Float[Array, "n r"], truth: Int[np.ndarray, " n"], k: int):
    """P@1 by CSLS."""
    return float(np.mean(csls.matches(x, y, neighbours=k).to_target == truth))


def _p_at_1(value: float) -> dict:
    return {"metric": "p_at_1", "value": value, "labels": {"representation": "mapped"}}


def _measured(problem: Problem, run: Run) -> dict:
    """Searches, which does not read the truth, and measures: rows, notes and matched pairs."""
    converged = bootstrap.converge(problem._replace(truth=None), run)
    notes = converged.report._asdict()
    both = Result(problem.source_anchors, converged.maps).coordinates(
        problem.source, problem.target
    )
    right = _right(*both, problem.truth, run.settings.k)
    rows = [_p_at_1(right)]
    for row in runner.search_report(problem, notes, right, run.settings.k):
        rows.append({name: row[name] for name in ("metric", "value", "labels")})
    picked = np.flatnonzero(converged.is_pair)
    pairs = np.stack([picked, np.asarray(converged.to_target)[picked]], axis=1)
    return {"rows": rows, "notes": notes, "pairs": pairs.tolist()}


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
        return NONE
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


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Title -> Markdown: P@1 of the methods, the round trip, and the reports of the searches."""
    table = pivot(
        [
            dataclasses.replace(row, labels={"column": TITLES.get(row.metric, row.method)})
            for row in (*select(rows, metric="p_at_1"), *select(rows, metric="round_trip"))
        ],
        lines={"dataset": "Spaces"},
        columns="column",
        titles={"direct": "Direct", "bridge": "Bridge", "hub": "Hub"},
    )
    return {"P@1 without known pairs": table} | runner.rates(select(rows, method="bridge"))
