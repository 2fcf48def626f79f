"""The paper's numbers beside ours."""

import dataclasses
from pathlib import Path

import pytest

from common.run.results import Row
from configs.lpl.nli import get_config
from lpl import nli
from lpl.reports import nli as nli_report
from lpl.reports import word_alignment as report


@pytest.mark.parametrize(
    ("dictionary", "proxy", "method", "expected"),
    [
        ("OPUS_en_it_europarl_train_5K.txt", False, "lpa_mse", 0.4333),
        ("files/en-de.train.txt", False, "lpa_mse", 0.4607),
        ("files/en-de.train.txt", False, "mse_sgd", None),  # the paper's row has 'nn'
        ("en-item.txt", False, "lpa_mse", None),
        ("wordnet", True, "lpa_mse", None),
        ("freedict", True, "lpa_mse", 0.335),  # other data, beside which the number stands too
    ],
)
def test_the_paper_s_numbers_belong_to_its_language_pairs(dictionary, proxy, method, expected):
    name = f"en.vec -> xx.vec, {Path(dictionary).name}"
    about = {"experiment": "word_alignment", "dataset": name, "metric": "p_at_1", "num_pairs": 50}
    about["target"] = "finnish" if dictionary == "freedict" else "xx.vec"
    row = Row(**about, labels={"retrieval": "csls"}, method=method, mean=0.4, proxy=proxy)
    config = {"num_pairs": [20, 50], "max_pairs": []}
    number = report.published(row, config)
    assert number == expected if expected is None else number.value == pytest.approx(expected)
    assert report.published(dataclasses.replace(row, num_pairs=20), config) is None
    gain = report.published(dataclasses.replace(row, metric="gain"), config)
    assert gain is None or gain.value == pytest.approx({0.335: 0.0408}.get(expected, gain.value))


@pytest.mark.parametrize(
    ("dataset", "num_pairs", "expected"),
    [("SNLI", 1_000, 0.550), ("SNLI", 500, None), ("synthetic NLI", 1_000, 0.550)],
)
def test_the_paper_s_numbers_stand_beside_the_same_number_of_pairs(dataset, num_pairs, expected):
    about = {"experiment": "nli", "method": "mse_lpl", "mean": 0.5, "metric": "accuracy"}
    row = Row(**about, dataset=dataset, num_pairs=num_pairs)
    number = nli_report.published(row, {})
    assert (number and number.value) == (expected and pytest.approx(expected, abs=1e-3))
    assert number is None or number.measured_on() == "SNLI"


def test_every_method_of_sentences_has_a_name_in_the_table():
    assert list(nli_report.NAMES) == list(nli.METHODS) == list(get_config().methods)
