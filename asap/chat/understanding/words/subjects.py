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


_PART = re.compile(
    r"\b(?:all-\w+|reduce-?scatter|collective\w*|comm\w*|kernels?|attention|flash|optimizer|forward|backward|bubble|host"
    r"|data ?load\w*|gemm\w*|matmul\w*|dispatch|router|logits?|embedding|softmax|expert\w*|mlp|copy|copies"
    r"|memcpy\w*)\b",
    re.I,
)


def unknown_plan(name: str) -> str:
    """Asks whose figure it is; that of a part of the step is kept nowhere."""
    if _PART.search(name):
        return (
            f'A time of a part of the step ("{name}") is none of the whole: it changes no figure, and nothing is'
            ' recorded. State the step, as in "the baseline takes 2.4 s", or give a profile.'
        )
    return f'Which plan is "{name}"? Name it by its number or its axes, as in "proposal 2 …".'


def _is_known(word: str) -> bool:
    if words_of("others").fullmatch(word):
        return False
    return word.lower() in function_words()["en"] or words_of("report").fullmatch(word) is not None
