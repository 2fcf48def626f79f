"""Table 1 and Figure 6 for sentence encoders: each text has one vector of each encoder."""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from common.encoders import texts as text_encoders
from common.errors import check_count
from common.run import records, results, tasks
from common.run.results import Row
from common.run.settings import settings
from common.run.tasks import Case, Task
from common.run.workdir import Workdir
from embed_match import compare, downstream
from embed_match.embeddings import Embedding
from embed_match.reports import sentences as report


class Problem(NamedTuple):
    """Labelled texts, and their vectors by the name of the encoder."""

    labelled: downstream.LabelledTexts
    spaces: dict[str, Embedding]


def run(config: ConfigDict, work: Workdir, cache: Path) -> str:
    """Measures all pairs of encoders, those of one random run in one task; returns the tables."""
    check_count("The number of encoders", len(set(config.encoders)), least=2)
    transport = settings(compare.Transport, config)

    def case(name: str) -> Case:
        texts, labelled = downstream.sentences(name, config.num_texts, cache)
        spaces, known = {}, np.ones(len(texts), bool)
        for encoder in config.encoders:
            vectors = text_encoders.encode(encoder, texts, cache, max_pieces=config.max_pieces)
            spaces[encoder] = Embedding(vectors, known, np.nan)
        fields = {"experiment": config.experiment, "dataset": name, "proxy": name != "imdb"}
        return Case(name, fields, lambda _: Problem(labelled, spaces))

    def measure(task: Task) -> tuple[list[Row], dict[str, Any]]:
        labelled, spaces = task.case.problem(task.random_seed)
        train, test = downstream.split(labelled, task.random_seed)
        scores = downstream.ensembles(
            labelled, spaces, task.random_seed, config.inverse_penalty, of_texts=True
        )
        rows = [task.row(**score._asdict(), num_items=len(test)) for score in scores]
        for source, target in itertools.combinations(spaces, 2):
            x, y = compare.aligned(spaces[source].vectors, spaces[target].vectors, train)
            pair = {"source": source, "target": target, "method": "procrustes"}
            scores = compare.scores(x[test], y[test], transport)
            rows += [task.row(*score, num_items=len(test), **pair) for score in scores.items()]
        return rows, {}

    cases = [case(name) for name in config.datasets]
    measured = tasks.run(tasks.grid(cases, ["all"], config.random_seeds), measure, work)
    rows = results.averaged(measured.rows)
    return records.finish(work, rows, report)
