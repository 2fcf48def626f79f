"""Tables and figures of `ensemble`."""

from matplotlib.figure import Figure

from common.run.records import Record
from common.run.results import frame, markdown, pivot, plus_minus
from embed_match.reports.shared import PAIR, bars, classification, trained_on


def tables(record: Record) -> dict[str, str]:
    """Title -> table."""
    by_title = {}
    rows = frame(record.rows)
    for task, part in rows.groupby("dataset", sort=False):
        gains = part[part.metric == "gain"]
        summary = [
            [method, plus_minus(means.mean(), None, 4), f"{(means > 0).sum()} of {len(means)}"]
            for method, means in gains.groupby("method", sort=False)["mean"]
        ]
        by_title |= {
            f"Ensembles of pairs, {task} (Figure 6)": (
                f"{trained_on(record.config)} {classification(rows)} Gain: accuracy above that of "
                "the better member. The poster shows bars without numbers, in which every ensemble "
                "gains.\n\n" + markdown(("Ensemble", "Mean gain", "Pairs that gain"), summary)
            ),
            f"Gain of each pair, {task}": pivot(gains, lines=PAIR, columns="method", digits=4),
            f"Single embeddings, {task}": pivot(
                part[part.method == "member"], lines={"source": "Embedding"}
            ),
        }
    return by_title


def figures(record: Record) -> dict[str, Figure]:
    """Gain of the ensembles of each pair over its better member, a figure for each task."""
    rows = frame(record.rows)
    by_file = {}
    for task, gains in rows[rows.metric == "gain"].groupby("dataset", sort=False):
        methods = {
            str(method): list(zip(part["mean"], part["std"], strict=True))
            for method, part in gains.groupby("method", sort=False)
        }
        pairs = list(dict.fromkeys(gains.source + "-" + gains.target))
        title = f"Gain by ensembles of pairs, {task}: C is CBOW, G is GloVe, glove is pretrained"
        label = "gain in accuracy over the better member"
        by_file[f"ensemble-{task}"] = bars({label: methods}, pairs, title, {label: (-1.0, 1.0)})
    return by_file
