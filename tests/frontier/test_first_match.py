"""The first match of Algorithm 1, its law, and the experiments `phase` and `boundary` on it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from anchor_opt import runner
from anchor_opt.methods import algorithm1
from anchor_opt.problem import Problem, sample
from common.errors import UserError
from common.linear import preprocess, unit
from common.metrics import linear_cka
from common.run.results import Row
from configs.frontier import phase as phase_config
from frontier.experiments import boundary as experiment
from frontier.methods import first_match
from frontier.reports import boundary as report
from tests.samples import normal

SETTINGS = runner.grid(phase_config.get_config()).settings.algorithm1


def problem() -> Problem:
    x = preprocess(jnp.asarray(normal(0, 90, 6)))
    y = preprocess(jnp.asarray(normal(1, 90, 9)).at[:, :6].add(2 * x))
    return sample(x, y, num_anchors=40, num_pairs=8, random_seed=3)


def test_signal_spread_and_noise_follow_their_definitions():
    drawn = problem()
    x, y, a = (np.asarray(z) for z in (drawn.source, drawn.target, drawn.source_anchors))
    partners, known = y[drawn.truth], drawn.source_pairs
    product = a[:8].T @ y[drawn.target_pairs]
    pairs = [(i, j) for i in known for j in known if i != j]
    cosines = np.array([[x[i] @ x[j], partners[i] @ partners[j]] for i, j in pairs])
    moments = cosines.T @ cosines
    correlation = moments[0, 1] / np.sqrt(moments[0, 0] * moments[1, 1])
    lengths = np.sqrt(
        np.mean((x @ a[:8].T) ** 2, axis=0) * np.mean((y @ partners[known].T) ** 2, axis=0)
    )
    rng, noises = np.random.default_rng(0), []
    for _ in range(100):
        random = a[8:].T @ (0.5 * unit(rng.normal(size=(32, y.shape[1]))))
        noises.append(np.mean((x @ random @ y.T) ** 2))
    found = first_match.expected(drawn, 0.5)
    assert found.signal == pytest.approx(correlation * lengths.sum(), rel=1e-4)
    assert found.spread == pytest.approx(np.sqrt(np.mean((x @ product @ y.T) ** 2)), rel=1e-4)
    assert found.ratio == pytest.approx(found.signal / np.hypot(found.spread, found.noise))
    assert found.noise == pytest.approx(np.sqrt(np.mean(noises)), rel=0.05)
    true = [x[i] @ product @ partners[i] for i in range(90)]
    assert first_match.true_similarities(drawn) == pytest.approx(true, abs=1e-4)


def test_the_closed_form_is_what_it_says():
    drawn = problem()
    y = np.asarray(drawn.target)
    effective = 1 / np.mean((y @ y.T) ** 2)
    cka = float(linear_cka(drawn.source, jnp.asarray(y[drawn.truth])))
    wanted = cka * 8 / np.sqrt(8 + 0.25 * 32 * effective / 9)
    assert first_match.closed_form(drawn, 0.5) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("dimensions", ["padded 3", "leading 9", "random many", "cut 3", "padded"])
def test_dimensions_that_do_not_fit_are_refused_in_one_sentence(dimensions):
    with pytest.raises(UserError, match=f"dimensions='{dimensions}' does not fit a space of 6"):
        experiment.changed(jnp.asarray(normal(0, 20, 6)), dimensions)


def test_leading_components_keep_most_and_padding_keeps_all():
    x = preprocess(jnp.asarray(normal(0, 50, 6)) * jnp.asarray([9, 5, 1, 0.1, 0.1, 0.1]))
    gram = x @ x.T

    def error(dimensions):
        y = experiment.changed(x, dimensions)
        return float(jnp.abs(y @ y.T - gram).mean()), y.shape[1]

    (leading, three), (random, also_three) = error("leading 3"), error("random 3")
    assert leading < 0.02 < random and three == also_three == 3
    assert error("padded 20") == (pytest.approx(0, abs=1e-6), 20) and error("all")[1] == 6


def rows(ratios, mrr, check=False):
    for seed, (ratio, value) in enumerate(zip(ratios, mrr, strict=True)):
        common = {"experiment": "boundary", "dataset": f"a -> {check}", "random_seed": seed}
        common |= {"num_pairs": 15, "num_items": 100, "dim": 50, "sweep_over": "base"}
        common |= {"labels": {"num_anchors": 300, "init_norm": 1.0, "check": check}}
        yield Row(**common, method="algorithm1_printed", metric="mrr", mean=value)
        yield Row(**common, method="gt", metric="mrr", mean=0.9)
        for name in report.FIRST:
            yield Row(**common, method="first_match", metric=name, mean=ratio)


def test_the_boundary_is_where_half_of_the_runs_succeed():
    rng = np.random.default_rng(0)
    ratios = np.exp(rng.normal(size=400))
    succeeds = rng.random(400) < 1 / (1 + (ratios / 1.3) ** -4)
    given = list(rows(ratios, np.where(succeeds, 0.9, 0.1)))
    law = report.fitted(report.runs_of(given), "ratio")
    assert law.boundary == pytest.approx(1.3, rel=0.15) and law.slope == pytest.approx(4, rel=0.3)
    assert law.probability(np.array([law.boundary])) == pytest.approx(0.5)


def test_the_first_match_and_its_noise_follow_their_definitions():
    drawn = problem()
    settings = dataclasses.replace(SETTINGS, sinkhorn_epsilon=0.05, init_norm=0.5)
    measures = first_match.taken_apart(drawn, settings, random_seed=4)

    key = jax.random.key(4)
    start = algorithm1.init(key, drawn.target, drawn.target_pairs, 40, 0.5).anchors
    x, y, anchors = (np.asarray(z, np.float64) for z in (drawn.source, drawn.target, start))
    rows = x @ x[drawn.anchors].T
    columns = y @ anchors.T

    def right(rows, columns):
        cost = np.linalg.norm(rows[:, None] - columns[None], axis=2)
        u = -0.05 * np.log(np.exp(-cost / 0.05).sum(axis=1))
        return np.mean(drawn.truth[np.argmax(u[:, None] - cost, axis=0)] == np.arange(90))

    noise = rows[:, 8:] @ columns[:, 8:].T
    known = rows[:, :8] @ columns[:, :8].T
    lengths = np.linalg.norm(rows[:, 8:], axis=1)
    expected = {
        "first_match": right(rows, columns),
        "first_match_known": right(rows[:, :8], columns[:, :8]),
        "signal_to_noise": np.sum(columns[:, :8] ** 2) / np.sum(columns[:, 8:] ** 2),
        "signal": known[np.arange(90), drawn.truth].mean(),
        "noise": np.sqrt(noise.var(axis=1).mean()),
        "estimated_noise": 0.5 * np.sqrt((lengths**2).mean() / 9),
    }
    replaced = measures.pop("first_match_noise")
    assert measures == pytest.approx(expected, rel=1e-3)
    assert 0 < measures["first_match"] < measures["first_match_known"] and replaced < 0.5
    assert measures["noise"] == pytest.approx(measures["estimated_noise"], rel=0.3)
