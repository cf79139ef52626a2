"""The tools by which a language model puts what the engineer said on record, or takes it off.

The model reads, the code checks: words that were not said letter by letter, a number that is not in them, and sentences
that ask, wish or suppose are not recorded; the engineer is told the command that records them.
"""

import math
import re
from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from asap.agents.tools.toolbox import Answer, Tool, answering
from asap.answers.fact_queries import Record, Retract, Unit, What
from asap.answers.figure import Answer as Found
from asap.chat.answering import Reply, reply_of
from asap.chat.conversation import Conversation
from asap.chat.language import Command
from asap.chat.numbers import number
from asap.chat.written import written
from asap.core.errors import BadInputError
from asap.core.text import plain
from asap.core.units import exact
from asap.reports.answers.compact import to_compact

_SENTENCE = re.compile(r"(?<=[.!?;\n])\s+")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_ASKS = {
    "what", "why", "how", "when", "where", "which", "who", "whether", "does", "do", "did", "is", "are", "was", "were",
    "can", "could", "would", "will", "should", "has", "have",
    "warum", "wie", "wann", "wo", "ob", "quel", "quelle", "pourquoi", "comment", "qué", "por",
}  # fmt: skip
"""Words that ask where a sentence begins with them."""
_SUPPOSES = {
    "if", "unless", "would", "could", "should", "might", "may", "maybe", "perhaps", "probably", "suppose", "supposed",
    "supposing", "assume", "assuming", "imagine", "imagining", "hypothetically", "pretend", "wish", "wishes", "hope",
    "hoping", "hopefully", "want", "wanted", "need", "expect", "expected", "predict", "predicted", "think", "believe",
    "guess", "bet", "imho", "goal", "target", "ideally", "let's", "lets", "until", "once", "rumour", "rumor",
    "wenn", "falls", "würde", "könnte", "hoffe", "wünsche", "vielleicht", "si", "serait", "espère", "peut-être",
    "ojalá", "quizás", "sería", "whether", "i'd", "we'd", "it'd", "they'd", "allegedly", "shall", "in case", "were",
    "will", "won't", "gonna", "going", "please", "system", "assistant", "record", "note",
}  # fmt: skip
"""Words that wish or suppose wherever they stand; orders to the record are none of the engineer's reports either."""


def is_statement(sentence: str) -> bool:
    """Whether a sentence reports what is so or what happened."""
    words = [word.lower() for word in _WORD.findall(sentence.replace("’", "'"))]
    if not words or "?" in sentence or "？" in sentence:
        return False
    return words[0] not in _ASKS and not _SUPPOSES.intersection(words)


def sentence_of(quote: str, message: str) -> str:
    """The sentence of a message in which a quote stands, or all of it where the quote spans several."""
    flat = " ".join(quote.split())
    sentences = [" ".join(one.split()) for one in _SENTENCE.split(message)]
    return next((one for one in sentences if flat in one), message)


Quote = Annotated[
    str,
    Field(min_length=3, max_length=400, description="the engineer's own words in the last message, letter by letter"),
]
Kind = Annotated[
    What,
    Field(
        description="relative: slower or faster than now by a figure; slower, faster: without one; incumbent: the plan "
        "that runs; constraint: what cannot be changed"
    ),
]
_NUMBER = re.compile(r"\d[\d.,]*\d[kM]?|\d[kM]?", re.ASCII)


class FactTools:
    """The tools over one message of a conversation.

    Args:
        conversation: where facts are recorded.
        message: what the engineer said.
        noted: called with what each call changed, which the engineer sees at once.
    """

    def __init__(self, conversation: Conversation, message: str, noted: Callable[[Reply], None]):
        self._conversation, self._message, self._noted = conversation, message, noted

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Both."""
        return (self.record, self.retract)

    @answering
    def record(
        self,
        what: Kind,
        quote: Quote,
        plan: Annotated[
            str | None, Field(description="its rank, now, or `data=4 model=4`; none: the run itself")
        ] = None,
        value: Annotated[float | None, Field(description='as it was said: 15 for "15 % slower"')] = None,
        unit: Annotated[Unit | None, Field(description="as it was said")] = None,
        about: Annotated[
            str | None, Field(description="what a constraint fixes: an axis such as model, batch, sequence, hardware")
        ] = None,
    ) -> Answer:
        """Put a fact on record that the engineer has just stated about this run. The engineer sees it at once.

        Only what was reported as having happened, or as being so: no wish, opinion, question or supposition, no run of
        others, nothing that a file or a line in another voice says. What is in doubt is not recorded.
        """
        said = {"what": what, "plan": plan, "value": value, "unit": unit, "about": about}
        known = {name: one for name, one in said.items() if one is not None}
        self._check(quote, value)
        doubt = self._doubt(quote)
        if doubt is not None:
            line = written(Command("record", known))
            reply = Reply(topic="record", text=f'Not put on record: "{plain(quote, 80)}" {doubt}. {line}')
            self._noted(
                reply.model_copy(
                    update={"text": f"{reply.text} puts it on record.", "ranking": self._conversation.ranking}
                )
            )
            return {"recorded": False, "why": f"what was said {doubt}; the engineer was told the command"}
        return self._do(Record.model_validate(known | {"words": quote}))

    @answering
    def retract(
        self, number: Annotated[int, Field(ge=1, description="of the fact, as `facts` has it")], quote: Quote
    ) -> Answer:
        """Take a fact off the record that the engineer has just taken back. The engineer sees it at once."""
        self._check(quote, None)
        doubt = self._doubt(quote)
        if doubt is not None:
            raise BadInputError(f"{doubt}, and retracts nothing", where=plain(quote, 80), hint="`forget NUMBER` does")
        return self._do(Retract(number=number))

    def _do(self, query: Record | Retract) -> Answer:
        before, facts = self._conversation.ranking, self._conversation.evidence
        found: Found = query.answer(self._conversation.inquiry)
        self._noted(reply_of(self._conversation, "record", found, before, facts))
        return {"shown": True, **to_compact(found)}

    def _doubt(self, quote: str) -> str | None:
        """Why words are no report of the engineer's; ``None`` where they are one."""
        if self._conversation.inquiry.origin == "piped":
            return "is prose that was piped in"
        return None if is_statement(sentence_of(quote, self._message)) else "may ask, wish or suppose"

    def _check(self, quote: str, value: float | None) -> None:
        """Refuse words and numbers that the engineer did not say in the last message."""
        if flat(quote) not in flat(self._message):
            hint = "quote the last message letter by letter; what is not in it was not stated"
            raise BadInputError("the engineer did not say so", where=plain(quote, 80), hint=hint)
        numbers = [found for text in _NUMBER.findall(quote) for found in _readings(text)]
        if value is not None and not any(math.isclose(value, one, rel_tol=1e-9) for one in numbers):
            reason = f"{exact(value)} is not in the quote"
            raise BadInputError(reason, where=plain(quote, 80), hint="give it as it was said")


def flat(text: str) -> str:
    """A text with single spaces and straight quotes."""
    return " ".join(text.replace("’", "'").split())


def _readings(text: str) -> list[float]:
    """A number as it may be meant: 2,2 in other languages, 16k as 16,000 or 16,384."""
    found = [number(text), number(text.replace(",", ".")), number(text.replace(",", ""))]
    thousands = number(text[:-1]) if text.endswith("k") else None
    return [one for one in (*found, thousands * 1000 if thousands else None) if one is not None]
