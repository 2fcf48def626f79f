r"""Encodes a file of texts, one a line, with a sentence encoder.

  isthmus encode --model=FOLDER --input=texts.txt --output=texts.npz

The folder has a BERT or an MPNet in Hugging Face's format: config.json, model.safetensors,
tokenizer.json. The output has the array `vectors` [n, d] and the texts, and is a file that
common/data/readers/vector_files.py reads. A run that was stopped resumes with the same command.
"""

from pathlib import Path

from absl import flags

from common.data.packages import cache_dir
from common.run import cli
from isthmus.texts import encode_file

MODEL = flags.DEFINE_string(
    "model",
    "minilm",
    "Folder of a BERT or an MPNet, or 'minilm' or 'mpnet', which are downloaded.",
)
INPUT = flags.DEFINE_string("input", None, "UTF-8 texts, one a line.", required=True)
OUTPUT = flags.DEFINE_string("output", None, "The .npz file to write.", required=True)
MAX_LENGTH = flags.DEFINE_integer(
    "max_length",
    None,
    "Number of word pieces, special ones included, after which a text is cut; the model's own "
    "maximum by default.",
)
cli.define_errors_flag()


def main(argv: list[str]) -> None:
    """Encodes the file."""
    del argv
    paths = Path(INPUT.value), Path(OUTPUT.value), cache_dir()
    options = {"max_length": MAX_LENGTH.value, "errors": flags.FLAGS.errors}
    n, d = encode_file(MODEL.value, *paths, **options, progress=True)
    print(f"{OUTPUT.value}: vectors [{n}, {d}]")


if __name__ == "__main__":
    cli.run(main)
