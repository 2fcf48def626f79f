"""Synthetic pairs for natural language inference: sentences and edits of them with known labels.

- Dropping a modifier entails: "a very funny film" entails "a funny film". Only sentences without a
  negation, a quantifier or a condition are edited, in which a more general statement follows from a
  more specific one.
- Negating the first verb that can be followed by "not" contradicts: "is funny", "is not funny".

The rules read words, without a parser. Some edited sentences are clumsy and a few labels are
arguable, which is why the data are called synthetic wherever they are shown.
"""

import re
from collections.abc import Sequence

import numpy as np

MIN_WORDS, MAX_WORDS = 6, 30  # of a sentence that is edited


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Adverbs without which a true statement stays true; none that reverses it ("hardly", "allegedly",
# "almost") or limits it ("only", "mainly").
ADVERBS = _words(
    "absolutely already also amazingly awfully badly beautifully brilliantly carefully certainly "
    "clearly cleverly completely consistently currently deeply definitely delightfully "
    "dramatically easily effectively enormously entirely especially eventually exceptionally "
    "extremely finally formally fortunately fully genuinely gradually heavily highly hugely "
    "immediately immensely increasingly incredibly indeed initially intensely now obviously oddly "
    "officially painfully particularly perfectly previously publicly quickly quietly quite rapidly "
    "really recently refreshingly remarkably sadly seriously severely sharply significantly simply "
    "slowly steadily still strangely strikingly strongly substantially successfully suddenly "
    "surprisingly terribly thoroughly totally truly undeniably unfortunately utterly very wildly "
    "wonderfully"
)
# Adjectives that select some of what the noun names: an "old friend" is a friend, a "former
# friend" need not be one.
ADJECTIVES = _words(
    "angry bad beautiful big bitter bold brave bright brilliant broad central charming clever "
    "common compelling complex cool critical crucial dark deep delicate dramatic dull early "
    "engaging entertaining exciting familiar fascinating fine foreign free fresh funny gentle "
    "global good great gripping growing heartfelt heavy high honest hot huge important independent "
    "intelligent intense interesting international intriguing joint key large late local "
    "lovely low major massive modern moving national new nice official old ongoing original "
    "perfect pleasant poor popular potent powerful predictable public quiet rare raw recent rich "
    "sad satisfying serious sharp silly simple slick slow small smart solid special steady "
    "strange strong stunning stylish subtle sudden sweet sweeping tedious tender tense terrific "
    "thoughtful thrilling top touching traditional ugly unique unusual vivid warm weak wealthy "
    "wide wonderful young"
)
SUFFIXES = ("ful", "ous")  # words of more than five letters that end so are adjectives too
DETERMINERS = {"a", "an", "the", "this", "its", "his", "her", "their", "our", "my"}
# If one of these follows, the adjective is used as a noun: "the young of today".
NO_NOUN = _words("and or of in on at to for by with from as than who that is are was were has had")
NEGATABLE = {"is", "are", "was", "were", "will", "would", "can"}
NEGATABLE |= {"it's", "he's", "she's", "that's", "there's", "they're", "we're", "you're", "i'm"}
NEGATABLE_PAIRS = {"has been", "have been", "had been"}
# A verb after one of these is in a relative clause or in what somebody else says.
SUBORDINATING = _words(
    "that which who whose where when what how why because said says say told tells believe "
    "believes believed think thinks thought hope hopes hoped claim claims claimed suggest suggests "
    "suggested warned added insisted argued"
)
# With one of these in a sentence, dropping a modifier need not entail, nor "not" contradict.
EXCLUDED = _words(
    "not no never nor neither none nothing nobody without few little less hardly barely scarcely "
    "rarely seldom cannot all every each any everyone anyone everything anything most only if "
    "unless whether than too so more as may might could should but or lack lacks lacking fails "
    "failed refuse refused deny denied denies though although"
)
PUNCTUATION = re.compile(r"^\W+|\W+$")
AFTER_NOT = re.compile(r"[a-z]+$")  # no name, no number, no punctuation


def edited_pairs(
    sentences: Sequence[str], max_pairs: int, rng: np.random.Generator
) -> list[tuple[str, str, int]]:
    """Makes as many pairs of each label as possible, at most `max_pairs` in all.

    The hypothesis of a neutral pair is that of another pair, so that hypotheses of all labels are
    edited sentences. In every second contradicting pair the negated sentence is the premise.

    Returns:
      Premise, hypothesis and index of the label in `nli.LABELS`.
    """
    wanted = max_pairs // 3
    entailed, negated = [], []
    for i in rng.permutation(len(sentences)):
        text = sentences[int(i)]
        if min(len(entailed), len(negated)) >= wanted:
            break
        if not MIN_WORDS <= len(text.split()) <= MAX_WORDS:
            continue
        if shorter := drop_modifier(text):  # tried first, since fewer sentences allow this edit
            entailed.append((text, shorter, 0))
        elif negation := negate(text):
            negated.append((text, negation, 2))
    count = min(len(entailed), len(negated), wanted)
    entailed, negated = entailed[:count], negated[:count]
    negated = [(b, a, label) if i % 2 else (a, b, label) for i, (a, b, label) in enumerate(negated)]
    labelled = entailed + negated
    # In a random cyclic order, each premise takes the hypothesis of its predecessor, never its own.
    cycle = rng.permutation(len(labelled))
    neutral = [
        (labelled[i][0], labelled[j][1], 1) for i, j in zip(cycle, np.roll(cycle, 1), strict=True)
    ]
    return labelled + neutral[:count]


def drop_modifier(sentence: str) -> str | None:
    """The sentence without its first modifier, which it entails; None if no rule applies."""
    words = sentence.split()
    if _excluded(words):
        return None
    for place in range(1, len(words) - 1):
        before, word, following = words[place - 1].lower(), words[place], words[place + 1]
        adjective = word in ADJECTIVES or (word.endswith(SUFFIXES) and len(word) > 5)
        adjective &= before in DETERMINERS and following.isalpha() and following not in NO_NOUN
        adverb = word in ADVERBS and before.isalpha() and "and" not in (before, following)
        if adjective or adverb:
            rest = [*words[:place], *words[place + 1 :]]
            if before in ("a", "an"):
                rest[place - 1] = "an" if following[0].lower() in "aeiou" else "a"
            return " ".join(rest)
    return None


def negate(sentence: str) -> str | None:
    """The sentence with its main verb negated, which contradicts it; None if no rule applies."""
    words = sentence.split()
    if _excluded(words):
        return None
    for place, word in enumerate(words[:-1]):
        following = words[place + 1]
        negatable = word.lower() in NEGATABLE or f"{word} {following}" in NEGATABLE_PAIRS
        if negatable and AFTER_NOT.match(following) and following not in ADVERBS | {"and", "just"}:
            return " ".join([*words[: place + 1], "not", *words[place + 1 :]])
        if negatable or PUNCTUATION.sub("", word.lower()) in SUBORDINATING:
            return None
    return None


def _excluded(words: list[str]) -> bool:
    plain = {PUNCTUATION.sub("", word.lower()) for word in words}
    return bool(plain & EXCLUDED) or any("n't" in w or "?" in w or '"' in w for w in words)
