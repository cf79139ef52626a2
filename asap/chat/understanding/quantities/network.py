"""A rate of the network between nodes in a sentence: "we have 8x400Gb InfiniBand", "200 Gbit/s RoCE per GPU"."""

import re
from collections.abc import Sequence
from dataclasses import replace

from asap.chat.understanding.quantities.amounts import Amount

_SPOKEN_OF = re.compile(
    r"\b(?:ib|infiniband|roce|efa|ethernet|networks?|fabric|interconnect|nics?|dcn|between nodes|inter-?node)\b", re.I
)
_RATE = re.compile(r"(?:\d{1,2}\s*[x×]\s*)?\d{1,5}(?:\.\d+)?\s*[GT](?:[bB](?![a-z]*yte)(?:it)?(?:ps|/s)?)?(?![a-zA-Z])")
_OF = re.compile(r"(?:/|\b(?:per|a|each|every)\s+)(node|gpu|chip|device)\b", re.I)


_SLOWER = re.compile(r"\b(?:slow\w*|less|narrow\w*|worse)\b", re.I)


def network_in(text: str) -> str | None:
    """The first rate, as :func:`asap.hardware.read_network` reads it ("400G" is 400 Gb); ``None`` where no"
    " network is spoken of."""
    rate = _RATE.search(text)
    if rate is None or _SPOKEN_OF.search(text) is None:
        return None
    of, unit = _OF.search(text), "" if rate[0][-1] not in "GT" else "b"
    return f"{rate[0]}{unit}/{of[1].lower()}" if of else f"{rate[0]}{unit}"


def without_rate(text: str, amounts: Sequence[Amount]) -> list[Amount]:
    """The amounts that are no part of a rate: the ports in "4x400G" are no nodes."""
    rate = _RATE.search(text)
    return [one for one in amounts if rate is None or not rate.start() <= one.start < rate.end()]


def network_factor(text: str, amounts: Sequence[Amount]) -> Amount | None:
    """By how much another network is faster, where no rate says it: "twice the interconnect"."""
    factors = [amount for amount in amounts if amount.unit == "x" and amount.value > 0]
    if len(factors) != 1 or len(amounts) != 1 or _SPOKEN_OF.search(text) is None:
        return None
    (factor,) = factors
    slower = factor.value > 1 and _SLOWER.search(text) is not None
    return replace(factor, value=1 / factor.value) if slower else factor
