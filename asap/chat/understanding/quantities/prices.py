"""Prices of a chip hour that name their chip: "v5e is $1.20 and v6e 2.70"."""

import re
from collections.abc import Sequence

from asap.chat.understanding.quantities.amounts import Amount

_PRICED = re.compile(
    r"\b(?P<chip>v\d[a-z]{0,2}|[abh]\d{2,3}|gb\d{3})s?(?:-\d+)?\s+"
    r"(?:(?:is|are|at|for|costs?|goes|go|around|about|=)\s+)*\$?\s*(?P<price>\d{1,3}(?:\.\d+)?)(?![\d.]*\d|\s*(?:%|x\b|k\b|[a-z]*i?b\b))",
    re.I,
)


def prices_in(text: str, amounts: Sequence[Amount]) -> dict[str, float]:
    """US dollars of a chip hour by the name of the chip; empty where no amount of the text is money."""
    if not any(amount.unit == "$" for amount in amounts):
        return {}
    return {found["chip"].lower(): float(found["price"]) for found in _PRICED.finditer(text)}
