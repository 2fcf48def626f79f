"""Gains over a reference in the same random run, and the paper's numbers beside ours."""

import pytest

from common.run import results
from common.run.results import Row
from configs.lpl.nli import get_config
from lpl import nli
from lpl.bilingual_data import BilingualData
from lpl.reports import nli as nli_report
from lpl.reports import word_alignment as report


def of_words(**fields):
    """P@1 by CSLS from 50 known pairs."""
    about = {"experiment": "word_alignment", "dataset": "a", "metric": "p_at_1", "num_pairs": 50}
    return Row(**about, labels={"retrieval": "csls"}, **fields)


def of_sentences(**fields):
    about = {"experiment": "nli", "metric": "accuracy", "labels": {"test": "test"}}
    return Row(**{"dataset": "SNLI", "num_pairs": 1_000} | about | fields)


@pytest.mark.parametrize(
    ("dictionary", "proxy", "method", "expected"),
    [
        ("OPUS_en_it_europarl_train_5K.txt", False, "lpa_mse", 0.4333),
        ("files/en-de.train.txt", False, "lpa_mse", 0.4607),
        ("files/en-de.train.txt", False, "mse_sgd", None),  # the paper's row has 'nn'
        ("en-item.txt", False, "lpa_mse", None),
        ("en-it.train.txt", True, "lpa_mse", None),
        ("wordnet", True, "lpa_mse", None),
    ],
)
def test_the_paper_s_numbers_belong_to_its_language_pairs(dictionary, proxy, method, expected):
    data = BilingualData(("en.vec", "xx.vec", dictionary), None, None, None, None, proxy)
    (row,) = report.with_published([of_words(method=method, mean=0.4)], data)
    assert row.paper_value == (expected and pytest.approx(expected))


@pytest.mark.parametrize(
    ("dataset", "num_pairs", "expected"),
    [("SNLI", 1_000, 0.550), ("SNLI", 500, None), ("synthetic NLI", 1_000, None)],
)
def test_the_paper_s_numbers_are_shown_for_snli_alone(dataset, num_pairs, expected):
    row = of_sentences(method="mse_lpl", mean=0.5, dataset=dataset, num_pairs=num_pairs)
    (shown,) = nli_report.with_published([row])
    assert shown.paper_value == (expected and pytest.approx(expected, abs=1e-3))
    assert shown.paper_dataset == (dataset if expected else None)


def test_the_gain_of_words_is_paired_by_random_run_and_has_no_published_number():
    rows = [
        of_words(method=method, random_seed=seed, mean=value, paper_value=0.4)
        for method, values in (("mse_sgd", (0.1, 0.3)), ("lpa_mse", (0.2, 0.35)))
        for seed, value in enumerate(values)
    ]
    gained = report.gains(rows)
    assert [row.mean for row in gained] == pytest.approx([0.1, 0.05])
    assert {row.metric for row in gained} == {"gain"} and gained[0].paper_value is None
    assert not report.gains(rows[2:])


def test_gains_of_sentences_are_means_of_differences_in_the_same_run():
    rows = [
        of_sentences(method=method, random_seed=seed, mean=value)
        for method, values in (("baseline", (0.5, 0.6)), ("mse", (0.7, 0.7)))
        for seed, value in enumerate(values)
    ]
    (row,) = results.averaged(nli_report.gains(rows))
    assert (row.method, row.metric, row.get("over")) == ("mse", "accuracy_gain", "baseline")
    assert (row.mean, row.std) == pytest.approx((0.15, 0.0707), abs=1e-4)


def test_every_method_of_sentences_has_a_name_in_the_table():
    assert list(nli_report.NAMES) == list(nli.METHODS) == list(get_config().methods)
