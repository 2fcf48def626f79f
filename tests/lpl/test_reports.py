"""The paper's numbers beside ours."""

import pytest

from common.run.results import Row
from configs.lpl.nli import get_config
from lpl import nli
from lpl.bilingual_data import BilingualData
from lpl.reports import nli as nli_report
from lpl.reports import word_alignment as report


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
    about = {"experiment": "word_alignment", "dataset": "a", "metric": "p_at_1", "num_pairs": 50}
    row = Row(**about, labels={"retrieval": "csls"}, method=method, mean=0.4)
    (row,) = report.with_published([row], data)
    assert row.paper_value == (expected and pytest.approx(expected))


@pytest.mark.parametrize(
    ("dataset", "num_pairs", "expected"),
    [("SNLI", 1_000, 0.550), ("SNLI", 500, None), ("synthetic NLI", 1_000, None)],
)
def test_the_paper_s_numbers_are_shown_for_snli_alone(dataset, num_pairs, expected):
    about = {"experiment": "nli", "method": "mse_lpl", "mean": 0.5, "metric": "accuracy"}
    row = Row(**about, dataset=dataset, num_pairs=num_pairs)
    (shown,) = nli_report.with_published([row])
    assert shown.paper_value == (expected and pytest.approx(expected, abs=1e-3))
    assert shown.paper_dataset == (dataset if expected else None)


def test_every_method_of_sentences_has_a_name_in_the_table():
    assert list(nli_report.NAMES) == list(nli.METHODS) == list(get_config().methods)
