"""Answers to what sounds like a report or an opinion and holds no fact."""

from asap.chat.answers.proposals import ranking as ranking_answers
from asap.chat.conversation import Conversation
from asap.chat.evidence.claims import Claim
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic


def seen_differently(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the engineer sees differently: the order stays."""
    _beside_record(conversation, answer, question)
    ranking_answers.opinion_without_evidence(conversation, answer)


def unrecorded(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """It sounds like a report, and no figure or outcome in it can be recorded."""
    answer.topic = Topic.OPINION
    _beside_record(conversation, answer, question)
    subject = str(question.plans[0]) if question.plans else "which plan"
    answer.add(f"I cannot take a fact from that: which step time was measured, for {subject}? Nothing is recorded.")
    answer.add('Write it like "proposal 1 measured 2.1 s", "the baseline takes 2.4 s", "our batch is 512".')


def _beside_record(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """A figure of somebody else beside the one on record: neither is dropped in silence."""
    said = [amount for amount in question.amounts if amount.unit == "s"]
    known = [fact for fact in conversation.evidence if fact.claim is Claim.STEP_TIME]
    if said and known:
        answer.add(f"On record is: {known[-1]}. {said[0].text} is not taken, as it is hearsay. Which one is right?")
        answer.add(f'If it is the new one, say: "it was {said[0].text}, not {known[-1].value:g} s".')
