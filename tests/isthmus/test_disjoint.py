"""Samples without a common item, through the tool."""

import math

import numpy as np
import pytest

import isthmus
from common.data import packages
from common.linear import unit
from common.spaces import paired_spaces
from isthmus import search
from isthmus.align import discovery
from isthmus.search import disjoint
from tests import commands
from tests.samples import normal

FILES = {"source": "x.npy", "target": "y.npy", "out": "out"}
SMALL = {"restarts": 2, "finalists": 2, "num_clusters": 20, "num_draws": 30, "last_steps": 10}
FEW = search.Settings(disjoint=disjoint.Settings(**SMALL))


@pytest.mark.network
@pytest.mark.slow
def test_two_spaces_are_mapped_by_words_that_are_all_different():
    names, half = ("glove", "glove100"), 2_000
    spaces = paired_spaces.load(*names, num_words=2 * half, cache=packages.cache_dir())
    order = np.random.default_rng(0).permutation(2 * half)  # so that both samples are of one kind
    x, y = (np.asarray(space)[order] for space in (spaces.source, spaces.target))
    # With fewer clusters than these, differences of rounding decide whether two restarts agree.
    steps = {"first_steps": 60, "steps": 20, "last_steps": 10}
    fewer = disjoint.Settings(restarts=4, num_draws=6, **steps)
    values = search.Settings(disjoint=fewer)
    result = isthmus.discover(x[:half], y[half:], disjoint=True, settings=values)
    assert not result.failed and result.disjoint and math.isnan(result.probability)
    assert result.agreement == result.corrected_agreement > 0.5
    mapped = unit(np.asarray(result.aligner.apply(x[:half])))  # whose partners were not given
    nearest = isthmus.top_k(mapped, result.aligner.normalise_target(y[:half]), 1).index[:, 0]
    assert (np.asarray(nearest) == np.arange(half)).mean() > 0.5


@pytest.mark.slow
def test_the_command_reports_that_two_runs_on_unrelated_samples_disagree(
    tmp_path, monkeypatch, capsys
):
    np.save(tmp_path / "x.npy", normal(1, 100, 6))
    np.save(tmp_path / "y.npy", normal(2, 100, 6))
    monkeypatch.setattr(discovery, "SETTINGS", FEW)
    files = [f"--{name}={tmp_path / path}" for name, path in FILES.items()]
    assert not commands.run(monkeypatch, "isthmus.align", *files, "--disjoint")
    printed = capsys.readouterr().out
    assert "rows that two runs map alike" in printed and "beyond chance" not in printed
    assert "has failed" in printed


@pytest.mark.slow
def test_unrelated_samples_have_failed_and_keep_no_pairs():
    result = isthmus.discover(
        normal(1, 200, 10), normal(2, 200, 10), disjoint=True, ordered=False, settings=FEW
    )
    assert result.failed and not len(result.anchors) and result.agreement < 0.5
