"""Prices of a chip hour that name their chip: "v5e is $1.20 and v6e 2.70"."""

import re
from collections.abc import Sequence
from dataclasses import replace

from asap.chat.understanding.quantities.amounts import Amount
from asap.hardware import Slice
from asap.hardware.nodes import chips_per_node

_PRICED = re.compile(
    r"\b(?P<chip>v\d[a-z]{0,2}|[abh]\d{2,3}|gb\d{3})s?(?:-\d+)?\s+"
    r"(?:(?:is|are|at|for|costs?|goes|go|around|about|=)\s+)*\$?\s*(?P<price>\d{1,3}(?:\.\d+)?)(?![\d.]*\d|\s*(?:%|x\b|k\b|[a-z]*i?b\b))",
    re.I,
)
_OF_NODE = re.compile(
    r"(?:/|\b(?:per|an?|each|every)\s+)(?:[1-9]\d?[- ]?(?:gpu|chip|tpu)s?[- ])?"
    r"(?:node|host|server|machine|instance|box|vm)\b",
    re.I,
)
_OF_ALL = re.compile(
    r"\b(?:for|of)\s+(?:all|the whole|the entire|the full|everything"
    r"|(?:the|our)\s+(?:\d+\s+(?:chips|gpus|tpus|devices)|cluster|pod|slice|run|job))"
    r"|\b(?:the|our|whole|entire)\s+(?:cluster|pod|slice|job|run|thing|allocation|reservation)\s+"
    r"(?:costs?|is|runs us|sets us back)\b"
    r"|\b(?:in total|altogether|all in)\b",
    re.I,
)


_BUDGET = re.compile(r"\b(?:budget\w*|afford\w*|(?:can|could|may|want to|willing to) (?:spend|pay))\b", re.I)
_OF_TIME = re.compile(r"\b(?:chip|device|core|gpu|tpu)[ -]?(?:hours?|days?|h)\b", re.I)


def as_budget(text: str, amounts: Sequence[Amount]) -> list[Amount]:
    """The amounts, a number without a unit as US dollars where a budget is spoken of: "budget is 500k"."""
    if _BUDGET.search(text) is None or _OF_TIME.search(text) is not None:
        return list(amounts)
    return [replace(one, unit="$") if one.unit == "" and one.value >= _LEAST_BUDGET else one for one in amounts]


_LEAST_BUDGET = 1000.0
"""US dollars below which a number beside a budget is a count of something else."""


def of_a_chip(text: str, amounts: Sequence[Amount], hardware: Slice | None) -> list[Amount]:
    """The amounts, prices of all chips or of a node as those of one chip; ``$/node`` where its size is not known."""
    if hardware is None or _BUDGET.search(text):
        return list(amounts)
    chips, unit = 1, "$"
    if _OF_NODE.search(text):
        node = chips_per_node(hardware.chip)
        chips, unit = node or 1, "$" if node else "$/node"
    elif _OF_ALL.search(text):
        chips = hardware.devices
    return [replace(one, value=one.value / chips, unit=unit) if one.unit == "$" else one for one in amounts]


def prices_in(text: str, amounts: Sequence[Amount]) -> dict[str, float]:
    """US dollars of a chip hour by the name of the chip; empty where no amount of the text is money."""
    if not any(amount.unit == "$" for amount in amounts):
        return {}
    return {found["chip"].lower(): float(found["price"]) for found in _PRICED.finditer(text)}
