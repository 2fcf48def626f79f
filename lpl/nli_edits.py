"""Edits of a sentence with a known label, for synthetic NLI.

- Dropping a modifier entails: 'a very funny film' entails 'a funny film'. Only in sentences without
  a negation, a quantifier or a condition, where what says less follows from what says more.
- Negating the first verb that can carry 'not' contradicts: 'is funny' and 'is not funny'.

Rules on words, without a parser: some edits read badly and a few labels are arguable, which is
why the set is called synthetic wherever it is shown.
"""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Adverbs whose loss leaves what is claimed true: none that turns it ('hardly', 'allegedly',
# 'almost') or limits it ('only', 'mainly').
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
# Adjectives that narrow a noun down: an 'old friend' is a friend, a 'former friend' may be none.
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
SUFFIXES = ("ful", "ous")  # of further adjectives
DETERMINERS = {"a", "an", "the", "this", "its", "his", "her", "their", "our", "my"}
# Where one of these follows, the adjective stands for a noun: 'the young of today'.
NO_NOUN = _words("and or of in on at to for by with from as than who that is are was were has had")
CARRIERS = {"is", "are", "was", "were", "will", "would", "can"}
CARRIERS |= {"it's", "he's", "she's", "that's", "there's", "they're", "we're", "you're", "i'm"}
CARRIER_PAIRS = {"has been", "have been", "had been"}
# From here on a sentence says something of a noun, or what somebody else says.
ASIDES = _words(
    "that which who whose where when what how why because said says say told tells believe "
    "believes believed think thinks thought hope hopes hoped claim claims claimed suggest suggests "
    "suggested warned added insisted argued"
)
# Where one of these stands, dropping need not entail and a 'not' need not contradict.
TURNS = _words(
    "not no never nor neither none nothing nobody without few little less hardly barely scarcely "
    "rarely seldom cannot all every each any everyone anyone everything anything most only if "
    "unless whether than too so more as may might could should but or lack lacks lacking fails "
    "failed refuse refused deny denied denies though although"
)
ENDS = re.compile(r"^\W+|\W+$")
AFTER_NOT = re.compile(r"[a-z]+$")  # no name, number or punctuation


def drop_modifier(sentence: str) -> str | None:
    """The sentence without its first modifier, entailed by it; None where no rule applies."""
    words = sentence.split()
    if _turned(words):
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
    """The sentence with its main verb negated, which contradicts it; None where no rule applies."""
    words = sentence.split()
    if _turned(words):
        return None
    for place, word in enumerate(words[:-1]):
        following = words[place + 1]
        carries = word.lower() in CARRIERS or f"{word} {following}" in CARRIER_PAIRS
        if carries and AFTER_NOT.match(following) and following not in ADVERBS | {"and", "just"}:
            return " ".join([*words[: place + 1], "not", *words[place + 1 :]])
        if carries or ENDS.sub("", word.lower()) in ASIDES:
            return None
    return None


def _turned(words: list[str]) -> bool:
    plain = {ENDS.sub("", word.lower()) for word in words}
    return bool(plain & TURNS) or any("n't" in word or "?" in word or '"' in word for word in words)
