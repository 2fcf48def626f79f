from collections import Counter

import pytest

from common.data.sets import freedict

DOG = """dog //dɒɡ// /[dɔɡ]/ <n>
1. koira 2.
animal
 3.
male canine
2. konna, koira, ruma ämmä
morally reprehensible person
"""


def test_the_senses_of_each_translation_are_counted():
    assert freedict.read_entry(DOG) == Counter(
        {("dog", "koira"): 3, ("dog", "konna"): 1, ("dog", "ruma ämmä"): 1}
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("water <v>\nkastella, juottaa\nto give water\n", ["kastella", "juottaa"]),
        (
            "above all /əˌbʌv ˈɔːl/\nennen kaikkea, ylipäätänsä\nof prime\n",
            ["ennen kaikkea", "ylipäätänsä"],
        ),
        ("2 Chronicles <pn>\n2. Aik., Toinen aikakirja\nbook\n", ["2. Aik.", "Toinen aikakirja"]),
        ("ten <n>\nkymmenen\n2. of the tens\n", ["kymmenen"]),  # a definition with a number
        ("able //ə.bl̩// <suffix>\n1. tava 2.\nable to be done\n", []),
        ("a <symbol>\na\nan are\n", []),
        ("alone <adj>", []),
        ("", []),
    ],
)
def test_odd_entries(entry, expected):
    assert {translation for _, translation in freedict.read_entry(entry)} == set(expected)


def test_entries_are_found_by_their_offsets_in_base_64():
    text = b"x" * 70 + "äiti\n".encode() + DOG.encode()
    index = "00databaseinfo\tA\tB\nmother\tBG\tG\ndog\tBM\tB5\n"  # 64 + 57 bytes
    assert list(freedict.entries(text, index)) == ["äiti\n", DOG]


@pytest.mark.parametrize("line", ["dog\tA\tE", "dog\tA", "dog", "dog\tA\t-", "dog\tA\tB\tC"])
def test_a_damaged_index_is_an_error(line):
    with pytest.raises(ValueError):
        list(freedict.entries(b"abc", line))
