"""The proposals in the order of what was asked for: memory, communication, certainty, risk, time."""

import re
from collections.abc import Callable

from asap.chat.answers.phrasing import expectation, fit, list_proposals
from asap.chat.conversation import Conversation
from asap.chat.reply import ReplyBuilder
from asap.core.units import counted, format_bytes, format_percent, significant
from asap.prediction.profile_scaling.plan_distance import doublings
from asap.proposals.reasons.explain import confidence
from asap.proposals.selection.candidate import Candidate
from asap.proposals.selection.choice import MEASURABLE

_Value = Callable[[Conversation, Candidate], float | None]
_Criterion = tuple[str, _Value, Callable[[float], str]]
"""Its name, what is compared, least first, and that figure in words; empty where the expectation beside it says it."""


def rank_by(conversation: Conversation, answer: ReplyBuilder, text: str) -> None:
    """The proposals in the order of what was asked for."""
    current = conversation.proposals
    criteria = [criterion for words, criterion in _CRITERIA if re.search(words, text, re.I)] or [_SHORTEST]
    name, known, write = next(
        ((name, known, write) for name, value, write in criteria if (known := _known(conversation, value))),
        (criteria[0][0], [], str),
    )
    if not known:
        answer.add(f"The {name} of the proposals cannot be predicted here; this is what is known:")
        list_proposals(conversation, answer)
        return
    least, first = known[0]
    answer.focus = current[first - 1].plan
    level = [f"proposal {rank}" for amount, rank in known[1:] if amount - least <= MEASURABLE * abs(least)]
    beside = f", level with {' and '.join(level)}" if level else ""
    answer.add(f"proposal {first} ({answer.focus}) has the {name} of the {len(current)}{beside}:")
    for amount, rank in known:
        prediction = current[rank - 1].prediction
        figure = f"{said}; " if (said := write(amount)) else ""
        answer.add(f"- proposal {rank}, {prediction.plan}: {figure}{expectation(prediction)}{fit(prediction)}")
    answer.add(f"The ranking itself stays: {', '.join(str(plan) for plan in conversation.order)}.")


def _known(conversation: Conversation, value: _Value) -> list[tuple[float, int]]:
    """What a criterion compares of each proposal where it is known, least first, and the number of the proposal."""
    found = [(value(conversation, candidate), rank) for rank, candidate in enumerate(conversation.proposals, 1)]
    return sorted((amount, rank) for amount, rank in found if amount is not None)


def _hbm(conversation: Conversation, candidate: Candidate) -> float | None:
    memory = candidate.prediction.memory
    return memory.total.value if memory else None


def _communication(conversation: Conversation, candidate: Candidate) -> float | None:
    sent = candidate.prediction.communication
    return sent.value if sent else None


def _step(conversation: Conversation, candidate: Candidate) -> float | None:
    quantity = candidate.prediction.relative_step_time or candidate.prediction.step_time
    return quantity.value if quantity else None


def _chip_hours(conversation: Conversation, candidate: Candidate) -> float | None:
    """For a billion tokens."""
    rate, hardware = candidate.prediction.tokens_per_second, conversation.study.slice
    return hardware.chips / rate.value * 1e9 / 3600 if rate and hardware else None


def _rate(conversation: Conversation, candidate: Candidate) -> float | None:
    """Negative, so that the most comes first."""
    rate = candidate.prediction.tokens_per_second
    return -rate.value if rate else None


def _in_tokens(negative_rate: float) -> str:
    return f"{significant(-negative_rate, 4)} tokens/s"


def _for_tokens(chip_hours: float) -> str:
    return f"{significant(chip_hours)} chip-hours for a billion tokens"


def _width(conversation: Conversation, candidate: Candidate) -> float | None:
    quantity = candidate.prediction.relative_step_time or candidate.prediction.step_time
    if quantity is None or quantity.low is None or quantity.high is None:
        return None
    return quantity.high - quantity.low


def _distance(conversation: Conversation, candidate: Candidate) -> float | None:
    plan = conversation.study.plan
    return float(doublings(candidate.plan, plan)) if plan is not None else None


def _odds(conversation: Conversation, candidate: Candidate) -> float | None:
    chance = confidence(conversation.study, candidate.prediction, ()).faster
    return -chance.value if chance else None


_SHORTEST: _Criterion = ("shortest step", _step, lambda value: "")
_COST = r"\b(?:cheap\w*|cost\w*|money|price\w*|expens\w+|dollars?|budget|(?:chip|gpu|tpu|device)[- ]hours?)\b"
_CRITERIA: tuple[tuple[str, _Criterion], ...] = (
    (r"\b(?:memory|hbm|headroom|footprint|oom|vram)\b", ("lowest HBM use", _hbm, format_bytes)),
    (
        r"\b(?:communicat\w*|collectives?|data between|traffic|network|moves?)\b",
        ("least communication", _communication, format_percent),
    ),
    (r"\b(?:interval|narrow\w*|uncertain\w*)\b", ("narrowest interval", _width, lambda value: f"width {value:.2f}")),
    (
        r"\b(?:chance|probab\w*|likely|odds|p\(faster\))\b",
        ("highest probability of being faster", _odds, lambda value: f"{format_percent(-value, 0)}"),
    ),
    (
        r"\b(?:risk\w*|safe\w*|close\w*|easi\w*|least (?:work|effort|change)|simpl\w*|change|distance|smallest)\b",
        ("smallest distance from what runs", _distance, lambda value: counted(value, "doubling")),
    ),
    (_COST, ("lowest cost per token", _chip_hours, _for_tokens)),
    (r"\b(?:tokens?|tps|throughput)\b", ("highest throughput", _rate, _in_tokens)),
    (_COST, ("lowest cost per token (on the same chips: the shortest step)", _step, lambda value: "")),
)  # fmt: skip
