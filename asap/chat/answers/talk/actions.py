"""What is asked to be done outside the chat: "open a PR with that", "submit it to slurm": said, with what to paste."""

import re

from asap.chat.answers.single_plans.lines.launch_line import plans_to_run
from asap.chat.answers.single_plans.plans import maxtext
from asap.chat.answers.single_plans.whole_plan import whole
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.plans.validity import violations

_TO_DO = (
    r"(?:open|create|make|raise|send|file|push|commit|merge|submit|queue|launch|start|kick ?off|deploy|schedule|restart"
    r"|kill|cancel|apply|edit|update|patch|write|put|change|post)"
)
_WITH = (
    r"(?:pull requests?|prs?\b|merge requests?|mrs?\b|tickets?|jira|issues?|commits?|branch(?:es)?"
    r"|patch(?:es)?|diffs?|slurm"
    r"|sbatch|k8s|kubernetes|git\b|github|gitlab|repos?(?:itory)?\b|cluster|queue"
    r"|jobs?|wandb|slack|(?:my|our|the) (?:ya?ml"
    r"|toml|config\w*|script|file)s?)"
)
_ASKED = re.compile(
    rf"^\W*(?:(?:ok(?:ay)?|so|and|now|then|great|cool)\W+)*(?:(?:can|could|will|would) (?:you|u|it|asap|this)\s+"
    rf"(?:(?:just|also|please|maybe|directly|automatically)\s+)*|(?:please|pls|just|now|go)\s+|)"
    rf"{_TO_DO}\b[^?]*\b{_WITH}",
    re.I,
)
_OWN = re.compile(r"\b(?:can|could|should|do|would|may) (?:i|we)\b|\bhow\b", re.I)
"""Asks what the engineer may do, and not the engine."""


def asks_action(question: Question) -> bool:
    """Whether it asks for something to be done to a repository, a job or a file."""
    return _ASKED.search(question.text) is not None and not _OWN.search(question.text) and question.change.empty


def action(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That the chat changes nothing outside, and the lines for whoever does."""
    answer.complete = True
    answer.add("That I cannot do: I change no file, open no pull request and start no job. What to put there:")
    plan = next((whole(conversation, one) for one in plans_to_run(conversation, question)), None)
    if plan is None or violations(plan, conversation.study.constraints):
        plan = next(iter(conversation.order), None)
    if plan is not None:
        maxtext(conversation, answer, plan)
    answer.add("A pull request that holds it can be checked with asap ci.")
