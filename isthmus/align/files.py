"""Files of vectors and pairs of `isthmus align`, `apply` and `migrate`: read, mapped, written."""

import itertools
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from absl import logging
from jaxtyping import Float, Int, Shaped
from numpy.lib import format as npy_format

from common.aligner import Aligner
from common.arrays import AnyArray
from common.data.readers import numpy_files, vector_files
from common.data.readers.line_files import MAX_LINE
from common.data.readers.pair_files import Pairs
from common.data.readers.vector_files import STRICT, Block, Form, NoVectors, RowNumbers
from common.data.sets import dictionary
from common.errors import UserError, writing
from common.files import replacing, write_atomically
from common.progress import progress_bar
from common.rows import unit


class Space(NamedTuple):
    """A space, and its known pairs with the target.

    Pairs are left out if a space lacks one of their words or rows; `num_unknown` is their number.
    `whole` says whether each row of the file is a row here.
    """

    name: str
    words: list[str]
    vectors: Float[np.ndarray, "n d"]
    pairs: Int[np.ndarray, "s 2"] | None = None  # (source row, target row)
    num_unknown: int = 0
    whole: bool = True

    @property
    def has_ids(self) -> bool:
        """Whether the file has words or ids; row numbers are none."""
        return not isinstance(self.words, RowNumbers)


MAX_WORD = MAX_LINE // 2  # bytes of a word in text, so that a line holds its numbers as well
# Measured between GloVe, Word2Vec, French fastText and MiniLM's words, sentences and input vectors:
# 50 or more rows of the source that were not used, rarer words or of one topic, have at least .48,
# MiniLM's sentences among its words .64, another space of the same width at most .31.
MIN_LIKENESS = 0.4
MIN_COMPARED = 50  # rows
UNLIKE = """The vectors of %s are not like those of '%s', for which the map is (likeness %.2f; of \
vectors of the same space about 1, of another about 0): give vectors of the same model."""
# Suffixes of mapped files; "": shards
SUFFIXES = {".npy": ".npy", ".npz": ".npz", ".txt": ".txt", ".safetensors": ".npy"}
SUFFIXES |= dict.fromkeys((".parquet", ".arrow", ".feather", ".jsonl", ""), ".parquet")
SIDES: dict[str, Callable[[Aligner, np.ndarray], Float[AnyArray, "n d"]]] = {
    "source": Aligner.apply,
    "target": Aligner.normalise_target,
    "back": Aligner.map_back,
}  # what a map does with vectors


def read_space(
    path: Path, name: str, num_words: int | None = None, form: Form = STRICT, rows: bool = False
) -> Space:
    """Reads a file by `vector_files.read`, and raises its errors; `rows`: words are row numbers."""
    options = {"num_words": num_words, "form": form, "rows": rows}
    words, vectors = vector_files.read(path, **options, distinct=False, progress=True)
    if (whole := _whole_numbers(words)) is not None:
        logging.info(
            "The ids of %s are numbers such as %s: they are read as %s.", path, words[0], whole[0]
        )
        words = whole
    return Space(name, words, vectors, whole=form.invalid != "drop")


def _whole_numbers(ids: Sequence[str]) -> list[str] | None:
    """Ids without the point that a table of floats gives them (7.0); None: they are others."""
    if not all(re.fullmatch(r"-?\d+\.0*", word) for word in ids if word):
        return None
    return [word.partition(".")[0] for word in ids] if any(ids) else None


def equal_ids(old: Space, new: Space, required: bool) -> Pairs | None:
    """The items that have one id in both files, if most have; null is no id.

    UserError: most have different ones, and they are `required`, by `--id_column`.
    """
    if not (old.has_ids and new.has_ids):
        return None
    ids = set(old.words)
    equal = [word for word in new.words if word and word in ids]
    if 2 * len(equal) > min(len(old.words), len(new.words)):
        return Pairs([(word, word) for word in equal], False)
    if required:
        olds, news = (", ".join(map(repr, space.words[:3])) for space in (old, new))
        raise UserError(
            f"{len(equal) or 'None'} of the {len(new.words)} ids of --{new.name} is in "
            f"--{old.name}, whose first are {olds} (of --{new.name}: {news}): choose another "
            "--id_column, or pair the rows in another way (see --help)."
        )
    return None


def map_blocks(
    path: Path, aligner: Aligner, form: Form = STRICT, *, side: str = "source", rows: bool = False
) -> Iterator[Block]:
    """Maps the vectors of a file to unit length, in blocks of rows; `side` is a key of `SIDES`.

    It warns if vectors that are to be of the aligner's source are, in the first block, not like it.
    With `rows`, all columns of a table are passed on.
    """
    start = 0
    blocks = vector_files.stream(path, form=form, distinct=False, rows=rows, progress=True)
    for block in blocks:
        _check_width(path, aligner, side, block.vectors.shape[1])
        compared = side == "source" and not start and len(block.words) >= MIN_COMPARED
        try:
            mapped_vectors = unit(np.asarray(SIDES[side](aligner, block.vectors)))
            likeness = aligner.likeness(block.vectors) if compared else None
        except UserError as error:
            raise UserError(f"{path}, with rows counted from its row {start}: {error}") from error
        if likeness is not None and likeness < MIN_LIKENESS:
            logging.warning(UNLIKE, path, aligner.source, likeness)
        yield block._replace(vectors=mapped_vectors)
        start += len(block.words)


def is_empty(path: Path, aligner: Aligner, form: Form, side: str) -> bool:
    """Whether a file has no row; raises the errors of `map_blocks` that its first rows show."""
    try:
        block = next(vector_files.stream(path, form=form, distinct=False))
    except NoVectors:
        return True
    _check_width(path, aligner, side, block.vectors.shape[1])
    return False


def _check_width(path: Path, aligner: Aligner, side: str, found: int) -> None:
    names, widths = (aligner.source, aligner.target), aligner.matrix.shape
    of = int(side != "source")
    if found != widths[of]:
        other = "--side=target" if side == "source" else "no --side"
        hint = f"; for vectors of the other model, which have {found}, {other} is right"
        raise UserError(
            f"{path} has vectors of {found} numbers, and those of '{names[of]}' have {widths[of]}: "
            f"give rows [n, {widths[of]}] of that model{hint if found in widths else ''}."
        )


def name_of_mapped(path: Path) -> str:
    """The file of mapped vectors: `a.arrow` becomes `a.parquet`, `b.bin.gz` `b.vec`."""
    path = path.with_suffix("") if path.suffix == ".gz" else path
    return path.stem + SUFFIXES.get("" if path.is_dir() else path.suffix, ".vec")


def apply_commands(store: Path, saved: Path, form: Form = STRICT) -> list[str]:
    """The commands that map a store, and normalise queries that search it, for the shell."""
    out = f"mapped{Path(name_of_mapped(store)).suffix}"
    mapping = ["isthmus", "apply", str(store), f"--map={saved}", f"--out={out}"]
    given = zip(Form._fields, form, STRICT, strict=True)
    mapping += [f"--{name}={value}" for name, value, usual in given if value != usual]
    asked = ["queries.npy", f"--map={saved}", "--side=target", "--out=asked.npy"]
    return [shlex.join(mapping), shlex.join(["isthmus", "apply", *asked])]


def fits_text(word: str) -> bool:
    """Whether a line of text can hold a word, so that it is read back."""
    return 0 < len(word.encode()) <= MAX_WORD and not re.search(r"[\t\r\n]", word)


def with_pairs(source: Space, target: Space, pairs: Pairs, are_rows: bool, path: Path) -> Space:
    """The source with its known pairs with the target.

    They are row numbers, and not words, if their file, `path`, or else `are_rows` says it.
    """
    words = source.words, target.words
    columns = zip(*pairs.entries, strict=True)
    entries = list(zip(*(_whole_numbers(x) or x for x in columns), strict=True))
    if are_rows if pairs.are_rows is None else pairs.are_rows:
        wrong = next((pair for pair in entries if not all(map(str.isdecimal, pair))), None)
        if wrong:
            raise UserError(
                f"{path} has the pair '{wrong[0]}', '{wrong[1]}', but pairs are to be row numbers, "
                "counted from 0: correct it, or leave out --pair_rows if it is a pair of words."
            )
        entries = [(f"{int(s)}", f"{int(t)}") for s, t in entries]
        if not (source.whole and target.whole):
            raise UserError(f"{path} has row numbers of whole files: leave out --invalid=drop.")
        words = [list(map(str, range(len(space)))) for space in words]
    for column, known, space in zip(
        zip(*entries, strict=True), words, (source, target), strict=True
    ):
        paired = set(column)
        counts = Counter(word for word in known if word in paired)
        if word := next((word for word in column if counts[word] > 1), None):
            raise UserError(
                f"{path} has a pair with '{word}', the word of several rows of '{space.name}': "
                "remove the pair, or choose what identifies rows (--id_column of a table)."
            )
    try:
        found = dictionary.lookup(entries, *words)
    except UserError as error:
        hint = " Give --pair_rows if they are row numbers." * all(map(str.isdecimal, entries[0]))
        raise UserError(f"{path}: {error}{hint}") from error
    return source._replace(pairs=found.pairs, num_unknown=found.num_missing)


def write_blocks(path: Path, blocks: Iterator[Block]) -> int:
    """Writes words and vectors that come in blocks, and returns the number of rows.

    The file appears when it is complete. `.npy` gets the vectors alone; `.parquet` the columns of
    the blocks' `rows`, or else `words` and `vectors`; `.npz` the array `vectors` and those of
    `numpy_files.word_arrays`; `.vec` and `.txt` are word2vec text. Blocks are written as they come,
    but for `.npz`, which gathers them.
    """
    if path.suffix not in WRITERS:
        raise UserError(
            f"No vectors can be written to {path}: choose an --out that ends with "
            f"{', '.join(WRITERS)}."
        )
    with writing(path, "--out"), replacing(path) as file:
        return WRITERS[path.suffix](file, blocks)


def in_blocks(words: Sequence[str], vectors: Float[AnyArray, "n d"]) -> Iterator[Block]:
    """Words with their vectors, in blocks of rows as `write_blocks` takes them."""
    rows = vector_files.BLOCK_ROWS
    starts = range(0, len(words), rows)
    for start in progress_bar(starts, desc="writing vectors", unit="block", delay=2):
        block = slice(start, start + rows)
        yield Block(list(words[block]), np.asarray(vectors[block]))


def _write_npy(file: BinaryIO, blocks: Iterator[Block]) -> int:
    def write_header(*shape):
        stated = {"descr": "<f4", "fortran_order": False, "shape": shape}
        npy_format.write_array_header_1_0(file, stated)

    def rows(block):
        yield np.ascontiguousarray(block.vectors, "<f4").data

    return _write_counted(file, blocks, write_header, rows)


def _write_text(file: BinaryIO, blocks: Iterator[Block]) -> int:
    def write_header(*shape):
        file.write(" ".join(map(str, shape)).ljust(20).encode() + b"\n")

    def rows(block):
        form = " ".join(["%.6g"] * block.vectors.shape[1])
        for word, vector in zip(block.words, block.vectors, strict=True):
            if not fits_text(word):
                raise UserError(
                    f"The word {word!r} can't be written to text, whose words are not empty, too "
                    "long, or with a tab or line end: choose an --out that ends with .parquet or "
                    ".npz."
                )
            yield f"{word} {form % tuple(vector.tolist())}\n".encode()

    return _write_counted(file, blocks, write_header, rows)


def _write_counted(file: BinaryIO, blocks: Iterator[Block], write_header, rows) -> int:
    """Writes a header with the number of rows, whose length does not depend on it, and rows."""
    write_header(0, 0)
    count, dimension = 0, 0
    for block in blocks:
        file.writelines(rows(block))
        count, dimension = count + len(block.words), block.vectors.shape[1]
    file.seek(0)
    write_header(count, dimension)
    return count


def _write_npz(file: BinaryIO, blocks: Iterator[Block]) -> int:
    words, vectors, _ = zip(*blocks, strict=True)
    words = list(itertools.chain.from_iterable(words))
    arrays: dict[str, Any] = {"vectors": np.concatenate(vectors), **numpy_files.word_arrays(words)}
    np.savez(file, **arrays)
    return len(words)


def _write_parquet(file: BinaryIO, blocks: Iterator[Block]) -> int:
    batches = map(_batch, blocks)
    first = next(batches)
    count = 0
    with pq.ParquetWriter(file, first.schema, use_dictionary=False) as writer:
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch)
            count += len(batch)
    return count


def _batch(block: Block) -> pa.RecordBatch:
    """The columns of the block's rows with its vectors in their place, or words and vectors."""
    lists = pa.FixedSizeListArray.from_arrays(block.vectors.ravel(), block.vectors.shape[1])
    if block.rows is None:
        return pa.record_batch({"words": pa.array(block.words, pa.string()), "vectors": lists})
    batch, name = block.rows
    return batch.set_column(batch.schema.get_field_index(name), pa.field(name, lists.type), lists)


WRITERS = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".vec": _write_text,
    ".txt": _write_text,
}


def write_table(path: Path, columns: Mapping[str, Shaped[np.ndarray, " n"]]) -> None:
    """Writes tab-separated columns with their names; values with a tab or a quote are quoted."""
    import pandas as pd  # half a second, which a map that is applied does not need

    table = pd.DataFrame(dict(columns))
    content = table.to_csv(sep="\t", index=False, float_format="%.4f", lineterminator="\n")
    with writing(path, "--out"):
        write_atomically(path, content.encode())
