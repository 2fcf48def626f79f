"""The figure of word alignment."""

from pathlib import Path

from ml_collections import ConfigDict

from common.report import error_bars, save_figure


def word_alignment(config: ConfigDict, rows: list[dict], folder: Path) -> None:
    """Writes word_alignment.png: P@1 over the number of training pairs, by CSLS where it is had.

    Args:
      config: of the experiment.
      rows: of results.json.
      folder: of the run.
    """
    panels = {}
    for row in rows:
        retrievals = config[row["method"]].retrieval
        shown = "csls" if "csls" in retrievals else retrievals[-1]
        if (row["metric"], row["retrieval"]) == ("p_at_1", shown):
            label = f"{row['method']}, {shown.replace('_', ' ')}"
            point = row["num_pairs"], row["mean"], row["std"]
            panels.setdefault(f"P@1, {row['dataset']}", {}).setdefault(label, []).append(point)
    figure = error_bars(panels, "training pairs", "Word alignment from fewer pairs")
    save_figure(figure, folder / "word_alignment.png")
