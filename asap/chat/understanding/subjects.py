"""Whose figure it is: words before it that name neither what runs now nor how it was measured name an unknown plan."""

import re

from asap.chat.understanding.markers import words_of
from asap.chat.understanding.quantities import amounts

_WORD = re.compile(r"[^\W\d_][\w'-]*")


def unknown_subject(clause: str) -> str | None:
    """The words before the first figure of a report that nothing is known by; ``None`` if all are known.

    Args:
        clause: a report in which no plan is named.
    """
    first = next((amount.start for amount in amounts(clause)), len(clause))
    known = words_of("report")
    unknown = [word for word in _WORD.findall(clause[:first]) if known.fullmatch(word) is None]
    return " ".join(unknown) or None
