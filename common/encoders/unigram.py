"""Unigram tokenizers (Kudo 2018, https://arxiv.org/abs/1804.10959) as SentencePiece has them."""

from collections.abc import Sequence

import tokenizers
from tokenizers import Regex, normalizers
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from tokenizers.processors import TemplateProcessing


def tokenizer(pieces: Sequence[tuple[str, float]], unknown: int) -> tokenizers.Tokenizer:
    """A tokenizer that finds the most probable pieces of a text, and puts <s> and </s> around them.

    Characters are normalised as by SentencePiece's `nmt_nfkc`: NFKC, no control characters, and one
    space for white space. Pieces have log-probabilities, in the order of ids; `unknown` is an id.
    """
    built = tokenizers.Tokenizer(Unigram(list(pieces), unk_id=unknown))
    one_space = normalizers.Replace(Regex(" {2,}"), " ")
    steps = [normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(), one_space]
    built.normalizer = normalizers.Sequence(steps)
    built.pre_tokenizer = Metaspace()
    ends = [(name, built.token_to_id(name)) for name in ("<s>", "</s>")]
    built.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    return built
