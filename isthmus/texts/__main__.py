r"""Encodes a file of texts, one a line, or of a table or JSON, with a sentence encoder.

  isthmus encode --model=FOLDER --input=texts.txt --output=texts.npz
  isthmus encode --input=documents.parquet --id_column=id --output=documents.npz

The folder has a BERT or an MPNet in Hugging Face's format: config.json, model.safetensors,
tokenizer.json. `minilm`, `mpnet`, `use` and `e5` are downloaded; E5 takes a text as a passage
unless it begins with "query: ". The output has the array `vectors` [n, d] and the texts, or the ids
of .parquet, .arrow, .feather, a folder of shards, or .jsonl, and is a file that
common/data/readers/vector_files.py reads. Vectors are kept in the cache folder, from which the same
command resumes a run that was stopped.
"""

from pathlib import Path
from typing import Any

from absl import flags

from common.data.packages import cache_dir
from common.run import cli

flags.DEFINE_string(
    "model",
    "minilm",
    "Folder of a BERT or an MPNet, or one that is downloaded: 'minilm', 'mpnet', or of many "
    "languages 'use' (USE multilingual v3) and 'e5' (multilingual-e5-small).",
)
flags.DEFINE_string(
    "input", None, "UTF-8 texts, one a line, or a table or JSON lines.", required=True
)
flags.DEFINE_string("text_column", "text", "Of a table or JSON, that of the texts.")
flags.DEFINE_string("id_column", None, "Of a table or JSON, what identifies its rows.")
flags.DEFINE_string("output", None, "The .npz file to write.", required=True)
flags.DEFINE_integer(
    "max_length",
    None,
    "Number of word pieces, special ones included, after which a text is cut; the model's own "
    "maximum by default.",
)
cli.define_errors_flag()
FLAGS = flags.FLAGS
OPTIONS = ("max_length", "errors", "text_column", "id_column")


def main(argv: list[str]) -> None:
    """Encodes the file."""
    del argv
    from isthmus.texts import files  # and JAX: --help does without

    options: dict[str, Any] = {name: FLAGS[name].value for name in OPTIONS}
    paths = Path(FLAGS.input), Path(FLAGS.output), cache_dir()
    n, d = files.encode_file(FLAGS.model, *paths, **options)
    print(f"{FLAGS.output}: vectors [{n}, {d}]")


if __name__ == "__main__":
    cli.run(main)
