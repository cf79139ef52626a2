"""What a launcher's setting sets: "what's the difference between ici_fsdp_parallelism and ici_data_parallelism"."""

import re
from functools import cache
from typing import get_args

from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.chat.understanding.question import Question
from asap.core.text import plain
from asap.plans import Plan
from asap.plans.axes import MEANINGS, Axis
from asap.plans.launchers import TITLES, Stack, settings_of

_ASKS = re.compile(
    r"\b(?:what(?:'s| is| are| does| do)|explain|mean\w*|meaning|difference|diff|wtf|define|purpose)\b", re.I
)
_NAME = re.compile(r"(?<![\w./=-])-{0,2}([a-z]+(?:[_-][a-z]+){2,}|[a-z]+(?:_[a-z]+)+)(?![\w=/-])", re.I)
_STACKS: tuple[Stack, ...] = ("maxtext", "megatron", "torchtitan")
_TWO, _BATCH = 2, 8


def asks_setting_meaning(question: Question) -> bool:
    """Whether it asks what a setting means by whose name a launcher knows an axis."""
    asked = _ASKS.search(question.text) is not None and question.change.empty and not question.refs.written
    return asked and any(name in _settings() for name in _named(question.text))


def setting_meaning(conversation: Conversation, answer: ReplyBuilder, question: Question) -> None:
    """The axis of each setting, and its degree now; of a name that no launcher writes here, that it is not known."""
    now, answer.complete = conversation.study.plan, True
    for name in _named(question.text):
        if name not in _settings():
            answer.add(f"{plain(name, 80)}: no degree of an axis that I know, so I cannot say what it does.")
            continue
        stack, axis = _settings()[name]
        degree = f"; {axis}={now.degree(axis)} runs now" if now is not None else ""
        answer.add(
            f"{name}: the degree of {MEANINGS[axis]} ({TITLES[stack].split()[0]}; here the axis {axis}{degree})."
        )


def _named(text: str) -> list[str]:
    return list(dict.fromkeys(match[1].lower().replace("-", "_") for match in _NAME.finditer(text)))


@cache
def _settings() -> dict[str, tuple[Stack, Axis]]:
    """The settings whose value follows the degree of an axis, as each launcher writes them."""
    axes: tuple[Axis, ...] = get_args(Axis)
    found: dict[str, tuple[Stack, Axis]] = {}
    for stack in _STACKS:
        for axis in axes:
            written = settings_of(
                Plan(microbatches=1).with_ici(**{axis: _TWO}), stack, global_batch=_BATCH, layers=_BATCH
            )
            for key, value in written.items():
                name = key.rpartition(".")[2]
                if str(value) == str(_TWO) and re.search(r"parallel|degree", name):
                    found.setdefault(name, (stack, axis))
    return found
