"""A remark on what something is before a question with another value of it: "mbs is 8. mbs 1?"."""

import re

from asap.chat.understanding.quantities.things import things_named
from asap.chat.understanding.words.questions import is_question

_SENTENCE = re.compile(r"(?<=[.!;])\s+")
_NUMBER = re.compile(r"\d")


def without_value_before(text: str) -> str:
    """The text without remarks whose thing its last question gives another number; they are what is so now."""
    *remarks, asked = _SENTENCE.split(text)
    if not remarks or not is_question(asked) or not _NUMBER.search(asked):
        return text
    things = set(things_named(asked))
    kept = [one for one in remarks if is_question(one) or not (_NUMBER.search(one) and things & set(things_named(one)))]
    return " ".join([*kept, asked])
