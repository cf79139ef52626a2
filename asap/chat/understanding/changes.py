"""The change that a what-if question names: what changes, and to which value or by which factor."""

import re
from enum import Enum, auto
from typing import TypeVar

from asap.core.errors import UsageError
from asap.core.numbers import LARGEST_COUNT
from asap.plans import Remat

Number = TypeVar("Number", int, float)

_FACTORS = {
    2.0: re.compile(r"\b(?:doubl\w+|twice|two times|twofold)\b", re.I),
    3.0: re.compile(r"\b(?:tripl\w+|three times)\b", re.I),
    4.0: re.compile(r"\b(?:quadrupl\w+|four times|fourfold)\b", re.I),
    0.5: re.compile(r"\b(?:halv\w+|half)\b", re.I),
}
_TIMES = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:x\b|×|times\b)|\bx\s*(\d+)\b", re.I)
_NUMBER = re.compile(r"(?<![\w.=-])(\d{1,9})\s*(k)?\b(?!\s*(?:%|x\b|times|ms\b|s\b|\.\d))", re.I)
_CHIP = re.compile(r"\b(v\d\w{0,2}-\d+|[ahb]\d{2,3}-\d+)\b", re.I)
_SUBJECT = re.compile(
    r"\b(batch\w*|gbs)\b|\b(sequences?|seq(?:uence)?[ _-]?len\w*|context(?:[ _-](?:len\w*|window))?)\b(?![ -]parallel)"
    r"|\b(slices?|pods?|chips|devices|hardware|cluster|tpus|gpus|v\d\w{0,2}-\d+)\b"
    r"|\b(remat\w*|(?:activation )?checkpoint\w*|recomput\w*)\b",
    re.I,
)
_REMAT_POLICY = re.compile(rf"\b({'|'.join(Remat)})\b", re.I)
_NO_REMAT = re.compile(
    r"\b(?:no|without|turn\w* off|disabl\w+)\s+(?:\w+\s+)?(?:remat|checkpoint|recomput)|\b(?:off)\b", re.I
)


class Subject(Enum):
    """What changes."""

    BATCH = auto()
    SEQUENCE = auto()
    SLICE = auto()
    REMAT = auto()


def changed_subject(text: str) -> Subject | None:
    """What a message wants changed; ``None`` if nothing that can be."""
    match = _SUBJECT.search(text)
    return None if match is None or match.lastindex is None else list(Subject)[match.lastindex - 1]


def is_change(text: str) -> bool:
    """Whether a change and its size are named."""
    subject = changed_subject(text)
    sized = factor(text) is not None or _NUMBER.search(text) or _CHIP.search(text)
    return subject is not None and bool(sized or subject is Subject.REMAT)


def factor(text: str) -> float | None:
    """The factor of the change, where one is named: doubled, 4x."""
    if times := _TIMES.search(text):
        return _bounded(float(times[1] or times[2])) or None
    return next((factor for factor, words in _FACTORS.items() if words.search(text)), None)


def target(text: str, current: int | None) -> int | None:
    """The new value of a batch or a sequence: the last number named, else a multiple of the current value.

    Raises:
        UsageError: it is larger than any count; so do the other readers of a number.
    """
    by = factor(text)
    if by is None and (stated := _NUMBER.findall(text)):
        number, thousands = stated[-1]
        return _bounded(int(number) * (1024 if thousands else 1)) or None
    return None if current is None else _bounded(int(current * (by or 2))) or None


def device_count(text: str, current: int) -> int:
    """The new number of devices: a number, else a multiple of the current one."""
    by = factor(text)
    stated = _NUMBER.search(text) if by is None else None
    return int(stated[1]) if stated and int(stated[1]) > 0 else _bounded(int(current * (by or 2)))


def _bounded(value: Number) -> Number:
    if value > LARGEST_COUNT:
        raise UsageError(f"is more than {LARGEST_COUNT:,}", where=f"{value:.0f}"[:40])
    return value


def hardware_name(text: str) -> str | None:
    """A slice by its name, such as v5e-256."""
    chip = _CHIP.search(text)
    return chip[1] if chip else None


def remat_policy(text: str) -> Remat | None:
    """The rematerialisation that is named."""
    if _NO_REMAT.search(text):
        return Remat.NONE
    match = _REMAT_POLICY.search(text)
    return Remat(match[1].lower()) if match else None
