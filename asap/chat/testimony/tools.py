"""The tools by which a language model puts what the engineer said on record, or takes it off.

The model reads, the parser checks: words that were not said, a number that is not in them, or another reading of the
parser are asked about and not recorded.
"""

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from asap.agents.tools.results import Answer, answering
from asap.agents.tools.toolbox import Tool
from asap.answers.inquiries import Inquiries
from asap.chat.conversation import Conversation
from asap.chat.doubts import doubts
from asap.chat.ledger import record, retract
from asap.chat.reply import Reply, ReplyBuilder
from asap.chat.testimony.agreement import agree, contradict, flat
from asap.chat.testimony.stated_fact import stated_fact
from asap.chat.testimony.stated_value import Unit
from asap.chat.understanding.message import Message
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.doubt import has
from asap.chat.understanding.words.questions import is_question
from asap.core.errors import BadInputError, NotFoundError
from asap.core.text import plain
from asap.evidence.claims import Claim
from asap.evidence.fact import StatedFact

What = Literal[
    "step_time", "relative", "mfu", "throughput", "hbm_share", "hbm_bytes", "out_of_memory", "fits", "failed",
    "slower", "faster", "batch", "sequence", "incumbent", "constraint",
]  # fmt: skip
Quote = Annotated[
    str,
    Field(min_length=3, max_length=400, description="the engineer's own words in the last message, letter by letter"),
]


class Testimony:
    """The tools over one message of a conversation.

    Args:
        conversation: where facts are recorded.
        message: what the engineer said, as the parser reads it.
        studies: what the other tools read; follows the record.
        noted: called with what each call changed.
        interactive: whether somebody can answer a question about an uncertain fact; otherwise it is not taken.
    """

    def __init__(
        self,
        conversation: Conversation,
        message: Message,
        studies: Inquiries,
        noted: Callable[[ReplyBuilder], None],
        *,
        interactive: bool = False,
    ):
        self._conversation, self._message = conversation, message
        self._studies, self._noted, self._interactive = studies, noted, interactive

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All of them."""
        return (self.record_fact, self.retract_fact, self.list_facts)

    @answering
    def record_fact(
        self,
        what: What,
        quote: Quote,
        plan: str | None = None,
        value: float | None = None,
        unit: Unit | None = None,
        about: str | None = None,
    ) -> Answer:
        """Put a fact on record that the engineer has just stated about this run. The engineer sees it at once.

        Only what was reported as having happened, or as being so: no wish, opinion, question or supposition, no run of
        others, nothing that a file or a line in another voice says. What is uncertain is asked, not recorded.

        Args:
            what: the kind of fact. relative: slower or faster than what runs now by a figure; slower, faster: without
                one; incumbent: the plan that runs; constraint: what cannot be changed.
            quote: the engineer's own words in the last message, letter by letter.
            plan: the plan it is about, such as `data=4 model=4`; left out for the run itself.
            value: the number as it was said: 15 for "15 % slower".
            unit: of the number as it was said.
            about: what a constraint holds fixed: an axis such as model, or batch, sequence, hardware.
        """
        self._check(quote)
        fact = stated_fact(self._conversation.study, Claim[what.upper()], quote, plan, value, unit, about)
        known = [one for one in self._conversation.evidence if agree(one, fact)]
        if known:
            number = self._conversation.number(known[0])
            return {"recorded": True, "statement": f"Already on record: {known[0]} · /forget {number}"}
        answer = ReplyBuilder(Topic.EVIDENCE)
        doubt = self._doubt(fact, answer)
        if doubt is None:
            record(self._conversation, answer, [fact])
        else:
            answer.add(f"Not recorded: {fact}. {doubt}")
            if self._interactive:
                answer.add("Record it all the same? y/n")
                self._conversation.refused = (*self._conversation.refused, fact)
        return self._said(answer, recorded=doubt is None)

    @answering
    def retract_fact(self, number: Annotated[int, Field(ge=1)], quote: Quote) -> Answer:
        """Take a fact off the record that the engineer has just taken back. The engineer sees it at once.

        Args:
            number: of the fact, as list_facts has it.
            quote: the engineer's own words in the last message, letter by letter.
        """
        self._check(quote)
        known = {self._conversation.number(fact): fact for fact in self._conversation.evidence if not fact.compiled}
        if number not in known:
            hint = f"one of {', '.join(map(str, known))}" if known else "no fact is on record"
            raise NotFoundError("no such fact", where=str(number), hint=hint)
        if is_question(quote):
            raise BadInputError("is a question, and retracts nothing", where=plain(quote, 80), hint="ask the engineer")
        answer = ReplyBuilder(Topic.RETRACTION)
        retract(self._conversation, answer, [known[number]])
        return self._said(answer, recorded=False)

    @answering
    def list_facts(self) -> Answer:
        """List the facts on record in this chat by their number: what the engineer stated, what was compiled."""
        conversation = self._conversation
        return {"facts": {str(conversation.number(fact)): f"{fact} ({fact.said_by})" for fact in conversation.evidence}}

    def _check(self, quote: str) -> None:
        """Refuse words that the engineer did not say in the last message, or said in no voice of an engineer."""
        if self._message.pretends:
            raise BadInputError("is not in the engineer's own voice: no fact", where="the last message")
        if flat(quote) not in flat(self._message.said):
            hint = "quote the last message letter by letter; what is not in it was not stated"
            raise BadInputError("the engineer did not say so", where=plain(quote, 80), hint=hint)

    def _doubt(self, fact: StatedFact, answer: ReplyBuilder) -> str | None:
        """Why a fact is asked about first; what the parser booked of the same words is withdrawn then."""
        conversation = self._conversation
        if is_question(fact.words) or has("supposed", fact.words):
            return "The words ask or suppose; they do not report."
        if uncertain := doubts(conversation, [fact])[1]:
            return uncertain[0][1]
        stated = self._message.statements.evidence
        if any(agree(one, fact) for one in self._message.statements.supposed):
            return "The parser takes the words for a supposition."
        differing = [one for one in stated if contradict(one, fact)]
        if not differing or any(agree(one, fact) for one in stated):
            return None
        booked = [one for one in conversation.evidence if any(agree(one, other) for other in differing)]
        if booked:
            retract(conversation, answer, booked)
        return f"The parser reads: {'; '.join(map(str, differing))}. Which is right?"

    def _said(self, answer: ReplyBuilder, *, recorded: bool) -> Answer:
        self._noted(answer)
        self._conversation.refresh(self._studies)
        return {"recorded": recorded, "shown": True, "statement": answer.text}


def with_testimony(conversation: Conversation, reply: Reply, found: ReplyBuilder) -> Reply:
    """A reply with what a call of these tools put on record or took off it."""
    ranking = tuple(map(str, conversation.order))
    changes = {
        "evidence": tuple(one for one in (*reply.evidence, *found.evidence) if one not in found.retracted),
        "retracted": (*reply.retracted, *found.retracted),
        "changed": reply.changed or ranking != reply.ranking,
        "ranking": ranking,
    }
    return reply.model_copy(update=changes)
