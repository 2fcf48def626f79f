r"""Encodes a file of texts, one a line, by a sentence encoder.

  python -m common.encode --model=FOLDER --input=texts.txt --output=texts.npz

The folder is one in Hugging Face's form: config.json, model.safetensors, tokenizer.json. The output
has the arrays `vectors` [n, d] and `words` [n] (the texts), as common/data/vectors.py reads them; a
run that was stopped goes on from there.
"""

from pathlib import Path

from absl import flags

from common import cli
from common.data.wheels import cache_dir

MODEL = flags.DEFINE_string("model", "minilm", "Folder of a BERT, or 'minilm', which comes along.")
INPUT = flags.DEFINE_string("input", None, "UTF-8 text, one a line, none twice.")
OUTPUT = flags.DEFINE_string("output", None, "The .npz file to write.")
MAX_LENGTH = flags.DEFINE_integer(
    "max_length",
    None,
    "Word pieces, special ones included, after which a text is cut; the folder's own by default.",
)
flags.mark_flags_as_required(["input", "output"])


def main(argv: list[str]) -> None:
    """Encodes the file."""
    del argv
    from common.data import texts  # takes seconds: once the flags are known to be right

    shape = texts.encode_file(
        MODEL.value, Path(INPUT.value), Path(OUTPUT.value), cache_dir(), max_length=MAX_LENGTH.value
    )
    print(f"{OUTPUT.value}: vectors {list(shape)}")


if __name__ == "__main__":
    cli.run(main)
