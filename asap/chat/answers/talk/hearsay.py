"""Answers to what sounds like a report or an opinion and holds no fact."""

import re

from asap.chat.answers.proposals.order import ranking as ranking_answers
from asap.chat.answers.single_plans.figures import prediction_of
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.questions import is_question
from asap.core.units import format_bytes
from asap.evidence.claims import Claim

_RAN = re.compile(
    r"\b(?:ran|run|runs|trained|train|worked|works|fit|fits|fitted|did)\b[^.?!]*\b(?:fine|ok(?:ay)?|well|before"
    r"|without (?:any )?"
    r"(?:problems?|issues?|oom)|no (?:problem|issue|oom)s?|last \w+|yesterday|already|smoothly)\b",
    re.I,
)
"""Says that something ran, without a figure."""


def tells_of_a_run(question: Question) -> bool:
    """Whether it says that something ran, without a figure of it: "we ran that fine last month"."""
    return _RAN.search(question.text) is not None and not is_question(question.text)


def seen_differently(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the engineer sees differently: the order stays."""
    _beside_record(conversation, answer, question)
    ranking_answers.opinion_without_evidence(conversation, answer)


def unrecorded(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """It sounds like a report, and no figure or outcome in it can be recorded."""
    answer.topic = Topic.OPINION
    _beside_record(conversation, answer, question)
    if tells_of_a_run(question) and _of_another_run(conversation, answer):
        return
    named = [mention.plan for mention in question.refs.mentions if mention.way != "pointing"]
    subject = str(named[0]) if named else "which plan"
    answer.add(f"I cannot take a fact from that: which step time was measured, for {subject}? Nothing is recorded.")
    answer.add('Write it like "proposal 1 measured 2.1 s", "the baseline takes 2.4 s", "our batch is 512".')


def _of_another_run(conversation: Conversation, answer: ReplyBuilder) -> bool:
    """Answers that something ran before with what it needs here and one question; false where that is not known."""
    now = conversation.study.plan
    held = prediction_of(conversation, now).memory if now is not None else None
    if now is None or held is None:
        return False
    size, all_ = format_bytes(held.total.value), format_bytes(held.capacity_bytes)
    answer.add(
        f"Was that {now}, on {now.devices} chips, with this batch and sequence? It is predicted to need {size}"
        f" of {all_} HBM ({held.verdict}; {held.total.provenance.value}). Nothing is recorded.",
        'If it was, say "the baseline takes … s", with the step that you saw; if not, which plan, rematerialisation and'
        " number of chips did it have?",
    )
    answer.add_figure(f"{now}: HBM", held.total)
    return True


def _beside_record(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """A figure of somebody else beside the one on record: neither is dropped in silence."""
    said = [amount for amount in question.amounts if amount.unit == "s"]
    known = [fact for fact in conversation.evidence if fact.claim is Claim.STEP_TIME]
    if said and known:
        answer.add(f"On record is: {known[-1]}. {said[0].text} is not taken, as it is hearsay. Which one is right?")
        answer.add(f'If it is the new one, say: "it was {said[0].text}, not {known[-1].value:g} s".')
