"""Whose figure it is: words before it that name neither what runs now nor how it was measured name an unknown plan."""

import re

from asap.chat.understanding.quantities.amounts import amounts
from asap.chat.understanding.words.doubt import words_of
from asap.chat.understanding.words.vocabulary.function_words import function_words

_MEASURED = {"s", "%", "GiB", "GB", "tokens/s", "tokens/s/chip", "FLOP/s"}
_WORD = re.compile(r"(?<!\w)[^\W\d_][\w'-]*")
_POSSESSIVE = re.compile(r"'s?$")


def unknown_subject(clause: str) -> str | None:
    """The words before the first figure of a report that nothing is known by; ``None`` if all are known.

    Args:
        clause: a report in which no plan is named.
    """
    found = amounts(clause)
    figures = [amount for amount in found if amount.unit in _MEASURED] or found
    first = next((amount.start for amount in figures), len(clause))
    return " ".join(word for word in _WORD.findall(clause[:first]) if not _is_known(_POSSESSIVE.sub("", word))) or None


def _is_known(word: str) -> bool:
    if words_of("others").fullmatch(word):
        return False
    return word.lower() in function_words()["en"] or words_of("report").fullmatch(word) is not None
