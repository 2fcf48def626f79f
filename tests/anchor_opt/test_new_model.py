import json

import pytest
from configs.anchor_opt.new_model import get_config

from anchor_opt.experiments import new_model
from common import remapping
from common.data.packages import cache_dir
from common.run.settings import apply_quick
from common.run.workdir import Workdir

pytestmark = pytest.mark.network


@pytest.mark.slow
def test_a_run_says_what_a_mapped_store_keeps_and_what_was_estimated(tmp_path):
    config = get_config()
    config.quick = True
    apply_quick(config)
    config.known_pairs = ()  # all; the quick run of CI has few pairs and the search
    table = new_model.run(config, Workdir(tmp_path, {}), cache_dir())
    assert "## glove -> glove100, 2,000 vectors" in table
    assert "## glove100 -> glove: flagged" in table
    rows = json.loads((tmp_path / "results.json").read_text())
    for dataset in ("glove -> glove100", "glove100 -> glove"):
        of_dataset = [r for r in rows if r["dataset"] == dataset]
        means = {(r["method"], r["metric"]): r["mean"] for r in of_dataset if not r["labels"]}
        errors = [r["mean"] for r in of_dataset if r["metric"] == "error"]
        best = max(means[method, "recall_10"] for method in ("procrustes", *remapping.PENALISED))
        assert best - 0.03 < means["chosen", "recall_10"] <= best
        assert not means["chosen", "flagged"] and len(errors) == 8 and max(errors) < 0.05
        assert 0.5 < means["old model", "recall_10"] < best < means["chosen", "within_50"]
        assert means["first numbers", "recall_10"] < 0.05
