"""The exact language as two tools of a language model: one asks, the other puts what the engineer said on record.

The model reads, the code checks: words that were not said letter by letter, a number that is not in them, and sentences
that ask, wish or suppose are not recorded; the engineer is told the command that records them.
"""

import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from asap.agents.grounding.catalogue import Catalogues
from asap.agents.tools.toolbox import LEFT_OUT, Answer, Tool, answering
from asap.answers.registry import query
from asap.chat.answering import Reply, ask, reply_of
from asap.chat.conversation import Conversation
from asap.chat.language import SESSION, Command, parse
from asap.chat.numbers import number
from asap.chat.verbs import FACTS, forms, unknown
from asap.chat.written import written
from asap.core.errors import BadInputError, UsageError
from asap.core.text import plain
from asap.core.units import exact
from asap.reports.answers.compact import to_compact, without

_SENTENCE = re.compile(r"(?<=[.!?;\n])\s+")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_TABLE = tomllib.loads(Path(__file__).with_name("report_words.toml").read_text(encoding="utf-8"))
_KINDS = {kind: frozenset(words.split()) for kind, words in _TABLE.items()}


def is_report(sentence: str, what: str = "") -> bool:
    """Whether a sentence says, beyond doubt, what is so or what happened: each of its words is one of plain reports.

    Args:
        sentence: as the engineer wrote it.
        what: kind of fact, or ``retract``; reports of some may have more words.
    """
    words = [word.lower() for word in _WORD.findall(sentence.replace("’", "'"))]
    known = _KINDS["words"] | _KINDS.get(what, frozenset())
    if not words or "?" in sentence or "？" in sentence or words[0] in _KINDS["never_first"]:
        return False
    return all(word in known or (len(word) == 1 and word.isascii()) for word in words)


def sentence_of(quote: str, message: str) -> str:
    """The sentence of a message in which a quote stands, or all of it where the quote spans several."""
    return next((one for one in _SENTENCE.split(message) if flat(quote) in flat(one)), message)


Line = Annotated[str, Field(min_length=1, max_length=400)]
Quote = Annotated[
    str,
    Field(min_length=3, max_length=400, description="the engineer's own words in the last message, letter by letter"),
]
_NUMBER = re.compile(r"\d[\d.,]*\d[kM]?|\d[kM]?", re.ASCII)


class ModelTools:
    """The tools over one message of a conversation.

    Args:
        conversation: what is asked about, and where facts are recorded.
        message: what the engineer said.
        noted: called with what each call changed, which the engineer sees at once.
        catalogues: where the figures of answers are kept, against which the model's words are held.
    """

    def __init__(
        self, conversation: Conversation, message: str, noted: Callable[[Reply], None], catalogues: Catalogues
    ):
        self._conversation, self._message, self._noted = conversation, message, noted
        self._catalogues = catalogues

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Both, with the forms of their commands."""

        def ask(command: Line) -> Answer:
            return self.ask(command)

        def record(command: Line, quote: Quote) -> Answer:
            return self.record(command, quote)

        ask.__doc__ = f"Ask the engine, a command a call: {forms(of_facts=False)}"
        record.__doc__ = (
            "Put on record what the engineer has just reported as having happened or being so, or take it off: "
            f"{forms(of_facts=True)}"
        )
        return ask, record

    @answering
    def ask(self, command: Line) -> Answer:
        """The answer to a command that changes nothing."""
        asked = _read(command, "ask")
        found = ask(self._conversation, asked)
        self._catalogues.of(self._conversation.id).record(asked.name, found)
        return without(to_compact(found), LEFT_OUT | {"strategy"})

    @answering
    def record(self, command: Line, quote: Quote) -> Answer:
        """Do what a command of facts says, if the engineer said so in the last message, beyond doubt."""
        stated = _read(command, "record")
        self._check(quote, stated.arguments.get("value"))
        doubt = self._doubt(quote, stated)
        if doubt is not None:
            self._conversation.offered = (*self._conversation.offered, stated)
            line, number = written(stated), len(self._conversation.offered)
            typed = f" or {number}" if self._conversation.inquiry.origin == "typed" else ""
            text = f'Not put on record: "{plain(quote, 80)}" {doubt}. {line}{typed} puts it on record.'
            self._noted(Reply(topic="record", text=text, offered=(line,), ranking=self._conversation.ranking))
            return {"recorded": False, "why": f"what was said {doubt}; the engineer was told the command"}
        said = stated.arguments if stated.name == "retract" else {**stated.arguments, "words": quote}
        before, facts = self._conversation.ranking, self._conversation.evidence
        found = query(stated.name, said).answer(self._conversation.inquiry)
        self._noted(reply_of(self._conversation, "record", found, before, facts))
        return {"shown": True, **to_compact(found)}

    def _doubt(self, quote: str, stated: Command) -> str | None:
        """Why words are no report of the engineer's; ``None`` where they are one."""
        if self._conversation.inquiry.origin == "piped":
            return "is prose that was piped in"
        sentence, what = sentence_of(quote, self._message), stated.arguments.get("what", stated.name)
        return None if is_report(sentence, what) else "may be no report of what happened"

    def _check(self, quote: str, value: float | None) -> None:
        """Refuse words and numbers that the engineer did not say in the last message."""
        if flat(quote) not in flat(self._message):
            hint = "quote the last message letter by letter"
            raise BadInputError("the engineer did not say so", where=plain(quote, 80), hint=hint)
        numbers = [found for text in _NUMBER.findall(quote) for found in _readings(text)]
        if value is not None and not any(math.isclose(value, one, rel_tol=1e-9) for one in numbers):
            where, hint = plain(quote, 80), "give it as it was said"
            raise BadInputError(f"{exact(value)} is not in the quote", where=where, hint=hint)


def _read(line: str, tool: str) -> Command:
    """The command that a line is for one of the two tools; raises UsageError where it is none."""
    found = parse(line.strip().strip("`/"))
    if found is None or found.name in SESSION:
        raise unknown(line)
    if (takes := "record" if found.name in FACTS else "ask") != tool:
        raise UsageError(f"is a command of the tool {takes}", where=plain(line, 60), hint=f"call {takes}")
    return found


def flat(text: str) -> str:
    """A text with single spaces and straight quotes."""
    return " ".join(text.replace("’", "'").split())


def _readings(text: str) -> list[float]:
    """A number as it may be meant: 2,2 in other languages, 16k as 16,000 or 16,384."""
    found = [number(text), number(text.replace(",", ".")), number(text.replace(",", ""))]
    thousands = number(text[:-1]) if text.endswith("k") else None
    return [one for one in (*found, thousands * 1000 if thousands else None) if one is not None]
