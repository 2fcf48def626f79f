"""The ablation, through the command line, and the phase diagram: small runs, and their parts."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt import runner
from anchor_opt.experiments import ablation as ablation_experiment
from anchor_opt.experiments import phase as phase_experiment
from anchor_opt.methods import algorithm1
from anchor_opt.problem import sample
from anchor_opt.reports import ablation as ablation_report
from anchor_opt.reports import phase as phase_report
from common.data.packages import cache_dir
from common.errors import UserError
from common.linear import preprocess
from common.run.results import Row, select
from common.run.settings import apply_quick
from common.run.workdir import Workdir
from configs.anchor_opt import ablation, phase, readings
from tests import commands

TINY = {"num_words": 300, "num_anchors": 30, "num_pairs": 10, "algorithm1.steps": 10}


def lines(table: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if line.startswith("| ")
    ]


@pytest.mark.network
@pytest.mark.slow
def test_an_ablation_has_a_line_for_each_value_and_measures_the_base_once(
    tmp_path, monkeypatch, capsys
):
    vary = "[('algorithm1.init_norm', (1.0, 0.01)), ('num_pairs', (20,)), ('centre', (False,)),"
    vary += " ('num_words', (10_000_000,))]"
    given = [f"--workdir={tmp_path}", "--config=configs/anchor_opt/ablation.py", "--config.quick"]
    given += [f"--config.{name}={value}" for name, value in TINY.items()]
    given += [f"--config.vary={vary}", "--config.pairs=('glove:word2vec', 'word2vec:glove')"]
    given += ["--config.methods=gt,seed,algorithm1"]
    assert not commands.run(monkeypatch, "anchor_opt.main", *given)
    printed = capsys.readouterr().out
    assert printed.strip() == (tmp_path / "table.md").read_text().strip()
    rows = [Row(**row) for row in json.loads((tmp_path / "results.json").read_text())]
    cells = lines(printed)
    assert cells[0] == ["Varied", "Value", "glove -> word2vec", "word2vec -> glove"]
    norms = [line[1] for line in cells if line[0] == "algorithm1.init_norm"]
    assert norms == ["0.01 (base)", "1.0"]
    expected = [["num_pairs", "10 (base)"], ["num_pairs", "20"], ["centre", "False"]]
    expected += [["centre", "True (base)"], ["num_words", "300 (base)"]]
    heads = [line[:2] for line in cells if line[0] in ("num_pairs", "centre", "num_words")]
    assert heads == 2 * expected
    assert cells[3] == ["Varied", "Value", "gt", "seed", "algorithm1"]
    base = select(rows, method="algorithm1", base=True, dataset="glove -> word2vec")
    assert len(base) == 4 and len({row.mean for row in base}) == 1
    parts = {path.stem for path in (tmp_path / "parts").glob("glove-word2vec-*")}
    methods = ("gt", "seed", "algorithm1")
    points = ("base", "num_pairs-20", "centre-False")
    assert parts == {
        *(f"glove-word2vec-{point}-{m}-seed0" for point in points for m in methods),
        "glove-word2vec-algorithm1.init_norm-1.0-algorithm1-seed0",
    }
    assert (tmp_path / "ablation.png").stat().st_size > 10_000


@pytest.mark.network
@pytest.mark.slow
def test_a_phase_diagram_has_a_line_for_each_noise_and_pair(tmp_path):
    config = phase.get_config()
    config.quick = True
    apply_quick(config)
    changes = {"noise": (0.0, 2.0), "isometries_of": "glove"}
    config.update_from_flattened_dict(TINY | changes)
    config.methods = ("seed", "gt", "algorithm1")
    table = phase_experiment.run(config, Workdir(tmp_path, {}), cache_dir())
    rows = [Row(**row) for row in json.loads((tmp_path / "results.json").read_text())]
    cells = lines(table)
    assert cells[0] == ["No.", "Source", "Target", "CKA", "seed", "gt", "algorithm1"]
    names = [["", "glove", "noise 0"], ["", "glove", "noise 2"], ["1", "glove", "word2vec"]]
    assert [line[:3] for line in cells[1:4]] == names
    assert all(float(cell) > 0.99 for cell in cells[1][3:6])  # an isometry
    assert [line[:3] for line in cells[5:]] == names
    values = {(r.get("noise"), r.method): r.mean for r in select(rows, metric="first_match_known")}
    assert values[0.0, "algorithm1"] > values[2.0, "algorithm1"]
    assert (tmp_path / "phase.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("vary", "says"),
    [
        ((("num_pears", (5,)),), "num_pears"),
        (("num_pairs", (5, 10)), "config.vary has 'num_pairs'"),
        ((("num_pairs", ("many",)),), "num_pairs can't be 'many'"),
        ((("algorithm1", (1,)),), "config.vary has"),
    ],
)
def test_a_wrong_line_of_vary_is_refused_in_one_sentence(vary, says, tmp_path):
    config = ablation.get_config()
    config.vary = vary
    with pytest.raises(UserError, match=says):
        ablation_experiment.run(config, Workdir(tmp_path, {}), cache_dir())


@pytest.mark.network
def test_more_words_than_there_are_is_refused_unless_they_are_varied(tmp_path):
    config = ablation.get_config()
    config.update(config.when_quick)
    config.num_words = 10_000_000
    with pytest.raises(UserError, match="share 14689 items"):
        ablation_experiment.run(config, Workdir(tmp_path, {}), cache_dir())


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
