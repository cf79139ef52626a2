"""Words as they were meant: two letters that changed places, or one too many or too few: "memroy", "throughpt"."""

import re
import string
from collections.abc import Iterator
from functools import cache

from asap.chat.understanding.topics.examples import examples
from asap.chat.understanding.words.vocabulary.function_words import function_words
from asap.knowledge.index.terms import stems

_WORD = re.compile(r"(?<![\w./=-])[a-z]{4,24}(?![\w./=-])", re.I)
_LONG = 7
"""Letters of a word from which one that is missing or too many still leaves no doubt."""


def well_spelt(text: str) -> str:
    """The text with each unknown word that differs so from one that is known in its place; names are left alone."""
    return _WORD.sub(lambda found: _meant(found.group()), text)


@cache
def _meant(word: str) -> str:
    low = word.lower()
    if low in _words() or set(stems(low)) <= _stems():
        return word
    near = {one for one in _swapped(low) if one in _words()}
    if not near and len(low) >= _LONG:
        near = {one for one in _one_letter_off(low) if one in _words() and len(one) >= _LONG - 1}
    return near.pop() if len(near) == 1 else word


def _swapped(word: str) -> Iterator[str]:
    """The word with two letters beside each other in the other order."""
    return (word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1))


def _one_letter_off(word: str) -> Iterator[str]:
    """The word without one of its inner letters, and with one more inside; the ends are those of an inflection."""
    for at in range(1, len(word)):
        yield from [word[:at] + word[at + 1 :]] if at < len(word) - 1 else []
        yield from (word[:at] + letter + word[at:] for letter in string.ascii_lowercase)


@cache
def _words() -> frozenset[str]:
    """Words of what engineers ask, and small words."""
    asked = {word for _, text in examples() for word in re.findall(r"[a-z]{4,}", text)}
    return frozenset(asked | {word for word in function_words()["en"] if len(word) >= len("that")})


@cache
def _stems() -> frozenset[str]:
    """Stems of words that are right as they are: those of the examples and of all notes."""
    from asap.knowledge.notes.corpus import bundled_notes

    notes = (stem for note in bundled_notes() for stem in stems(f"{note.title} {note.body}"))
    return frozenset({*notes, *stems(" ".join(_words()))})
