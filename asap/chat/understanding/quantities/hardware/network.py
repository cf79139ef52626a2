"""A rate of the network between nodes in a sentence: "we have 8x400Gb InfiniBand", "200 Gbit/s RoCE per GPU"."""

import re
from collections.abc import Sequence
from dataclasses import replace

from asap.chat.understanding.quantities.amounts import Amount

_SPOKEN_OF = re.compile(
    r"\b(?:ib|infiniband|roce|efa|ethernet|networks?|fabric|interconnect|nics?|hcas?|rails?|dcn"
    r"|(?:between|across) (?:the )?(?:nodes|slices|pods)"
    r"|inter-?node)\b",
    re.I,
)
_LINKS = re.compile(r"(?<![\w.])\d{1,2}\s*[x×]\s*(?:25|40|50|100|200|400|800)\s*G(?:b(?:it)?(?:ps|/s)?)?(?![a-zA-Z])")
"""Links of a node by their rate, which nothing else has: "4x200G"."""
_RATE = re.compile(r"(?:\d{1,2}\s*[x×]\s*)?\d{1,5}(?:\.\d+)?\s*[GT](?:[bB](?![a-z]*yte)(?:it)?(?:ps|/s)?)?(?![a-zA-Z])")
_MANY = re.compile(r"\d{1,2}\s*[x×]")
_OF = re.compile(
    r"(?:/|\b(?:per|a|each|every|of (?:a|the|one))\s+)(node|gpu|chip|device|tpu|host|server|machine|vm|box)\b", re.I
)
_ONE = {"tpu": "chip"} | dict.fromkeys(("host", "server", "machine", "vm", "box"), "node")
_PORTS = re.compile(
    r"(?<![\w.])(?P<count>\d{1,2}|two|four|eight)(?:\s*[x×]|\s+of\s+(?:them|those|these))?"
    r"(?:\s+\d{1,4}\s*G(?:b(?:it)?(?:ps|/s)?)?(?:\s+[a-z]+)?)?"
    r"(?:(?<=them)|(?<=those)|(?<=these)|\s*(?:ports?|nics?|links?|rails?|hcas?|cards?|adapters?)\b)",
    re.I,
)
"""How many links of one rate there are: "8 of them", "with 4 NICs"."""
_COUNTS = {"two": 2, "four": 4, "eight": 8}
_SLOWER = re.compile(r"\b(?:slow\w*|less|narrow\w*|worse)\b", re.I)


def speaks_of_network(text: str) -> bool:
    """Whether it speaks of the network between nodes."""
    return _SPOKEN_OF.search(text) is not None or _LINKS.search(text) is not None


def network_in(text: str, earlier: str | None = None) -> str | None:
    """The first rate, as :func:`asap.hardware.read_network` reads it; ``None`` where no network is spoken of.

    Args:
        text: a sentence; "400G" in it is 400 Gb.
        earlier: the rate that was spoken of before, which the ports or the owner that are named now are of.
    """
    rate, of, ports = _RATE.search(text), _OF.search(text), _PORTS.search(text)
    if rate is not None and speaks_of_network(text):
        said = rate[0] if rate[0][-1] not in "GT" else f"{rate[0]}b"
    elif earlier is not None and rate is None and ports is not None:
        said = earlier.partition("/")[0]
    else:
        return None
    if ports is not None and not _MANY.match(said):
        return f"{_COUNTS.get(ports['count'].lower(), ports['count'])}x{said}"
    return f"{said}/{_ONE.get(of[1].lower(), of[1].lower())}" if of else said


def without_rate(text: str, amounts: Sequence[Amount]) -> list[Amount]:
    """The amounts that are no part of a rate: the ports in "4x400G" are no nodes."""
    spans = [found.span() for found in (_RATE.search(text), _PORTS.search(text)) if found]
    return [one for one in amounts if not any(start <= one.start < end for start, end in spans)]


def network_factor(text: str, amounts: Sequence[Amount]) -> Amount | None:
    """By how much another network is faster, where no rate says it: "twice the interconnect"."""
    factors = [amount for amount in amounts if amount.unit == "x" and amount.value > 0]
    if len(factors) != 1 or len(amounts) != 1 or not speaks_of_network(text):
        return None
    (factor,) = factors
    slower = factor.value > 1 and _SLOWER.search(text) is not None
    return replace(factor, value=1 / factor.value) if slower else factor
