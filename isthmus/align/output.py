"""The files that an alignment leaves: map, dictionary, anchors, vectors in the target space."""

from pathlib import Path

import numpy as np

from common.csls import Dictionary
from common.errors import writing
from common.files import write_arrays
from common.linear import unit
from isthmus.align import Alignment
from isthmus.align.files import fits_text, in_blocks, write_blocks, write_table
from isthmus.align.space import Space


def write_alignment(
    folder: Path, alignment: Alignment, source: Space, target: Space, num_anchors: int
) -> None:
    """Writes the files of a source into its folder, and `target` beside it, see `report.FILES`.

    Raises:
      UserError: a file can't be written.
    """
    alignment.aligner.save(folder / "map.npz")
    words, target_words = (np.array(space.words, object) for space in (source, target))
    rows, partners = alignment.anchors.T
    anchors = {"source": words[rows], "target": target_words[partners]}
    write_table(folder / "anchors.tsv", anchors | {"confidence": alignment.confidence})
    table = Dictionary(*map(np.asarray, alignment.dictionary))
    order = np.lexsort((-table.score, ~table.mutual))  # mutual pairs first, then by score
    translations = {
        "source": words,
        "target": target_words[table.to_target],
        "csls": table.score,
        "mutual": table.mutual.astype(int),
        "confidence": table.confidence,
    }
    ordered = {name: column[order] for name, column in translations.items()}
    write_table(folder / "dictionary.tsv", ordered)
    mapped_source = unit(alignment.aligner.apply(source.vectors))
    normalised_target = alignment.aligner.normalise_target(target.vectors)
    written = (folder / "aligned", source.words, mapped_source)
    for path, names, vectors in (
        written,
        (folder.parent / "target", target.words, normalised_target),
    ):
        write_blocks(path.with_suffix(".npz"), in_blocks(names, vectors))
        if all(map(fits_text, names)):  # a line of text holds no tab or line end in a word
            write_blocks(path.with_suffix(".vec"), in_blocks(names, vectors))
    relative = alignment.relative(source.vectors, target.vectors, num_anchors)
    arrays = {
        "source": relative[0],
        "target": relative[1],
        "anchors": alignment.anchors[:num_anchors],
    }
    with writing(folder / "relative.npz", "--out"):
        write_arrays(folder / "relative.npz", arrays)
