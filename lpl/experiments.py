"""The experiments by name: data, method, metrics, report. Each returns its table."""

from lpl.nli_experiment import nli_experiment
from lpl.word_alignment import word_alignment

EXPERIMENTS = {"word_alignment": word_alignment, "nli": nli_experiment}
