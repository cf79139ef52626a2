"""What a word of the report, or of the trade, means."""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from asap.chat.answers.this_run.run import principle
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder

_ASKS = re.compile(r"\b(?:what(?: is|'s| are| does| do you mean by)?|meaning of|define|explain|mean|means)\b", re.I)
_QUOTED = r"[\"'`“”‘’]"
_OF_THE_REPORT = re.compile(
    r"(?<!what )\bcounts\b(?! as\b| the\b| for\b| toward)|\brisk[- ]adjusted\b|\bp\((?:faster|fits)\)", re.I
)
"""Words that mean something in the report alone."""
_LEAD = r"^\W*(?:(?:ok(?:ay)?|so|and|but|sorry|wait|btw|hm+|remind me|again|quick(?: one| question)?)\W+)*"
_AFTER = (
    r"(?:\W*(?:exactly|actually|really|anyway|again|even|here|please|in (?:short|one sentence|plain english)|to me"
    r"|for me|mean|means|meant|stand for|supposed to be|good for|now|i forgot)\b)*\W*$"
)
_WHAT_IS = rf"{_LEAD}(?:what(?: is| are|'s)?|explain(?: to me)?(?: what)?|define)\s+(?:an?\s+)?(?P<name>NAME){_AFTER}"
_MEANS = (
    rf"(?:(?:what|wdym)\b[^.?!]*\b(?:mean(?:s|t)?|meaning|stand(?:s)? for|definition|wdym)\b|\bmeaning of\b|\bdefine\b"
    rf"|\bdefinition of\b|{_LEAD}explain (?:the (?:word|term) )?(?P<name>NAME){_AFTER})"
)
_BETWEEN = re.compile(r"\b(?:diff(?:erence)?s?|differ\w*|distinction|versus|vs\.?)\b", re.I)
_MEASURED = {"mfu", "hfu", "goodput", "duty cycle"}
"""Words of which "what is it" asks for the figure."""
_OF_TWO = 2


def asks_term(text: str) -> bool:
    """Whether it asks what a word means: one in quotes, one of the report alone, or "what is an all-gather?"."""
    if not _ASKS.search(text) and not _BETWEEN.search(text):
        return False
    quoted = any(re.search(rf"{_QUOTED}{re.escape(name)}{_QUOTED}", text, re.I) for name, _ in _terms())
    return quoted or _OF_THE_REPORT.search(text) is not None or _asks_meaning(text)


def term(conversation: Conversation, answer: ReplyBuilder, text: str) -> None:
    """The meaning of each word that a question names; else what the notes say."""
    found = terms_in(text)
    if not found:
        principle(conversation, answer, text)
        return
    answer.term = found[0][0]
    answer.add(*dict.fromkeys(means for _, means in found))


def terms_in(text: str) -> list[tuple[str, str]]:
    """The words of a text that are explained, the longest where one lies in another, in their order."""
    found: list[tuple[int, int, str, str]] = []
    for name, means in sorted(_terms(), key=lambda one: -len(one[0])):
        for match in re.finditer(_named(name), text, re.I):
            if all(match.end() <= start or match.start() >= end for start, end, _, _ in found):
                found.append((match.start(), match.end(), name, means))
    return [(name, means) for _, _, name, means in sorted(found)]


def _asks_meaning(text: str) -> bool:
    """Whether a word that is explained is all that is asked about, or what two of them have to do with each other."""
    named = dict.fromkeys(means for _, means in terms_in(text))
    if len(named) >= _OF_TWO and _BETWEEN.search(text) and re.search(r"\bdiff\w*|\bdistinction\b", text, re.I):
        return True
    if not named:
        return False
    for name, _ in terms_in(text):
        shape = re.compile(_WHAT_IS.replace("NAME", _named(name)), re.I)
        if name.lower() not in _MEASURED and shape.search(text):
            return True
        if re.search(_MEANS.replace("NAME", _named(name)), text, re.I):
            return True
    return False


def _named(name: str) -> str:
    return rf"(?<!\w){_loose(name.split())}s?(?!\w)"


def _loose(words: Sequence[str]) -> str:
    return r"[\s-]".join(re.escape(word) for word in words)


@cache
def _terms() -> tuple[tuple[str, str], ...]:
    """Each name with what it means."""
    table = tomllib.loads(Path(__file__).parents[3] / "answers" / "terms.toml".read_text(encoding="utf-8"))
    return tuple((name, each["means"]) for each in table["term"] for name in each["names"])
