"""The ablation, through the command line, and the phase diagram: small runs, and their parts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt import runner
from anchor_opt.experiments import phase as phase_experiment
from anchor_opt.methods import algorithm1
from anchor_opt.problem import sample
from anchor_opt.reports import ablation as ablation_report
from anchor_opt.reports import phase as phase_report
from common.linear import preprocess
from common.run.results import Row
from configs.anchor_opt import ablation, phase, readings


def lines(table: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if line.startswith("| ")
    ]


@pytest.mark.parametrize("get_config", [ablation.get_config, readings.get_config])
def test_every_line_of_the_configs_can_be_set(get_config):
    config = get_config()
    names = [name for name, _ in config.vary]
    assert {point.name for point in runner.points_of(config)} == set(names)
    assert sum(point.base for point in runner.points_of(config)) == len(names)
    config.update(config.when_quick)
    assert list(runner.points_of(config))
    assert runner.grid(phase.get_config()).optimise == ("target",)


def test_a_table_in_detail_has_a_column_for_each_random_run_and_the_base_once():
    shared = {"experiment": "ablation", "method": "algorithm1", "metric": "mrr"}
    shared |= {"dataset": "a -> b", "source": "a", "target": "b", "num_items": 9, "num_pairs": 3}
    rows = []
    for name, value, base in (("centre", "False", False), ("centre", "True", True), ("k", 5, True)):
        at = {"sweep_over": name, "sweep_value": value, "labels": {"base": base}}
        rows.append(Row(mean=0.5, std=0.1, num_runs=2, **shared, **at))
        rows += [Row(mean=mean, random_seed=i, **shared, **at) for i, mean in ((0, 0.4), (7, 0.6))]
    cells = lines(ablation_report.tables(rows, [])["MRR from a to b"])
    assert cells[0][4:] == ["mean ± std", "seed 0", "seed 7"]
    values = [".500 ± .100", ".400", ".600"]
    assert [line[:2] + line[4:] for line in cells[1:]] == [
        ["-", "-", *values],
        ["centre", "False", *values],
    ]


def test_the_first_match_and_its_noise_follow_their_definitions():
    rng = np.random.default_rng(0)
    x, y = (preprocess(jnp.asarray(rng.normal(size=(70, d)), jnp.float32)) for d in (6, 9))
    y = preprocess(y.at[:, :6].add(2 * x))
    problem = sample(x, y, num_anchors=40, num_pairs=8, random_seed=3)
    settings = runner.grid(phase.get_config()).settings.algorithm1
    config = phase.get_config().algorithm1.to_dict() | {"sinkhorn_epsilon": 0.05, "init_norm": 0.5}
    settings = type(settings)(**config)
    measures = phase_experiment.first_match(problem, settings, random_seed=4)

    key = jax.random.key(4)
    start = algorithm1.init(key, problem.target, problem.target_pairs, 40, settings).anchors
    x, y, anchors = (np.asarray(z, np.float64) for z in (problem.source, problem.target, start))
    rows = x @ x[problem.anchors].T
    columns = y @ anchors.T

    def right(rows, columns):
        cost = np.linalg.norm(rows[:, None] - columns[None], axis=2)
        u = -0.05 * np.log(np.exp(-cost / 0.05).sum(axis=1))
        return np.mean(problem.truth[np.argmax(u[:, None] - cost, axis=0)] == np.arange(70))

    noise = rows[:, 8:] @ columns[:, 8:].T
    known = rows[:, :8] @ columns[:, :8].T
    lengths = np.linalg.norm(rows[:, 8:], axis=1)
    expected = {
        "first_match": right(rows, columns),
        "first_match_known": right(rows[:, :8], columns[:, :8]),
        "signal_to_noise": np.sum(columns[:, :8] ** 2) / np.sum(columns[:, 8:] ** 2),
        "signal": known[np.arange(70), problem.truth].mean(),
        "noise": np.sqrt(noise.var(axis=1).mean()),
        "estimated_noise": 0.5 * np.sqrt((lengths**2).mean() / 9),
    }
    replaced = measures.pop("first_match_noise")
    assert measures == pytest.approx(expected, rel=1e-3)
    assert 0 < measures["first_match"] < measures["first_match_known"] and replaced < 0.5
    assert measures["noise"] == pytest.approx(measures["estimated_noise"], rel=0.3)


def test_no_random_anchors_means_that_all_first_matches_are_those_of_the_known_pairs():
    x = preprocess(jnp.asarray(np.random.default_rng(0).normal(size=(50, 6)), jnp.float32))
    problem = sample(x, x, num_anchors=20, num_pairs=20, random_seed=0)
    settings = runner.grid(phase.get_config()).settings.algorithm1
    measures = phase_experiment.first_match(problem, settings, 0)
    assert all(measures[f"first_match{kind}"] == 1 for kind in ("", "_known", "_noise"))


def test_numbers_of_close_pairs_do_not_overlap_in_the_figure():
    rows = []
    for number, cka in enumerate((0.5, 0.501, 0.9), start=1):
        given = {"experiment": "phase", "dataset": "a -> b", "source": "a", "target": "b"}
        given |= {"std": 0.0, "num_runs": 1, "labels": {"pair": number}}
        rows.append(Row(**given, method="truth", metric="linear_cka", mean=cka))
        rows.append(Row(**given, method="gt", metric="mrr", mean=0.5))
    (axis,) = phase_report.figure(rows).axes
    places = [text.get_position()[0] for text in axis.texts]
    assert [text.get_text() for text in axis.texts] == ["1", "2", "3"]
    assert places[1] - places[0] > 0.009 and places[2] == pytest.approx(0.9)
