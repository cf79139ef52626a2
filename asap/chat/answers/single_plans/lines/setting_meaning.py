"""What a launcher's setting sets: "what's the difference between ici_fsdp_parallelism and ici_data_parallelism"."""

import re

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.chat.understanding.topics.topics import Topic
from asap.chat.understanding.words.settings.compiler_flags import flags_named
from asap.chat.understanding.words.settings.setting_names import axis_settings
from asap.core.text import plain
from asap.plans.axes import MEANINGS
from asap.plans.launchers import TITLES

_ASKS = re.compile(
    r"\b(?:what(?:'s| is| are| does| do)|explain|mean\w*|meaning|difference|diff|wtf|define|purpose)\b", re.I
)
_NAME = re.compile(r"(?<![\w./=-])-{0,2}([a-z]+(?:[_-][a-z]+){2,}|[a-z]+(?:_[a-z]+)+)(?![\w=/-])", re.I)
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]{2,60}", re.I)
_LOOSE = {Topic.UNKNOWN, Topic.OPERATIONS, Topic.XLA_FLAGS}


def asks_setting_meaning(question: Question) -> bool:
    """Whether it asks what a setting means by whose name a launcher knows an axis."""
    asked = _ASKS.search(question.text) is not None and question.change.empty and not question.refs.written
    return asked and any(name in axis_settings() for name in _named(question.text))


def asks_unknown_flag(question: Question) -> bool:
    """Whether all that it asks about are options of a launcher that nothing is known of."""
    loose = question.topic in _LOOSE and question.change.empty and not question.plans
    return loose and bool(_FLAG.search(question.text)) and not flags_named(question.text)


def unknown_flag(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """That no figure hangs on them here, and what would tell."""
    answer.complete = True
    named = ", ".join(dict.fromkeys(plain(match.group(), 80) for match in _FLAG.finditer(question.text)))
    answer.add(
        f"I know no effect of {named}: no figure here hangs on it.",
        'A short run with it and one without tells; state the step: "the baseline takes 2.4 s".',
    )


def setting_meaning(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The axis of each setting, and its degree now; of a name that no launcher writes here, that it is not known."""
    now, answer.complete = conversation.study.plan, True
    for name in _named(question.text):
        if name not in axis_settings():
            answer.add(f"{plain(name, 80)}: no degree of an axis that I know, so I cannot say what it does.")
            continue
        stack, axis = axis_settings()[name]
        degree = f"; {axis}={now.degree(axis)} runs now" if now is not None else ""
        answer.add(
            f"{name}: the degree of {MEANINGS[axis]} ({TITLES[stack].split()[0]}; here the axis {axis}{degree})."
        )


def _named(text: str) -> list[str]:
    return list(dict.fromkeys(match[1].lower().replace("-", "_") for match in _NAME.finditer(text)))
