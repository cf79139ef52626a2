"""Analyses that chats are about."""

from asap.chat.chat import Chat
from asap.chat.reply import Reply
from asap.experiments import ExperimentStore
from asap.sharding_memory import new_session_name

PAPERS = ("paper-v6e-16", "paper-v5p-512", "paper-v5e-256")
PAPER_QUESTIONS = (
    "Which one of the proposals would you most recommend to start with?",
    "Are you really sure? How confident are you with this proposal that will improve workload performance?",
    "But I think the other two proposals look more promising",
    "Without further input from me, are you still most confident about proposal 1?",
)


def analysed_session() -> str:
    """The session of a fresh analysis."""
    from asap.agents.workflow.analyze import analyze

    return analyze("paper-v6e-16", store=ExperimentStore(), session=new_session_name()).analysis.session


def ask(chat: Chat, *lines: str) -> Reply:
    """The answer to the last of some lines."""
    answers = [chat.turn(text, lambda piece: None) for text in lines]
    assert answers[-1] is not None
    return answers[-1]
