"""Answers to one who quotes the engine: what it did say is explained, what it did not is denied."""

import re

from asap.chat.answers.proposals.order import ranking
from asap.chat.answers.single_plans.memory.memory_basis import asks_memory_basis, memory_basis
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def quoted(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """What the engine is said to have said: where its figures come from if they are its own, else that it did not."""
    if not _said(conversation, question):
        ranking.false_claim(conversation, answer, question.plans)
        return
    own_figure(conversation, answer, question)


def own_figure(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Where a figure of the engine that is quoted comes from."""
    answer.topic = Topic.BASIS
    answer.add("That figure stands in my answers. Where it comes from:")
    basis(conversation, answer, question)


def basis(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """Where figures come from: those of HBM, else those of the step time."""
    if asks_memory_basis(question):
        memory_basis(conversation, answer, question)
    else:
        ranking.basis_of(conversation, answer, question.plans)


def _said(conversation: Conversation, question: Question) -> bool:
    """Whether all figures of a question were given, of a plan if one is named; false without a figure."""
    figures = [found[0] for amount in question.amounts if amount.unit and (found := _NUMBER.match(amount.text))]
    plans = [str(plan) for plan in question.plans]
    lines = [line for text in conversation.said for line in text.splitlines()]
    said = {
        number for line in lines if not plans or any(plan in line for plan in plans) for number in _NUMBER.findall(line)
    }
    return bool(figures) and said.issuperset(figures)
