"""Counts of chips as they are meant: nodes in chips, and "16 chips fewer" or "we lose 2 nodes" from those of now."""

import re
from collections.abc import Sequence
from dataclasses import replace

from asap.chat.understanding.quantities.amounts import Amount
from asap.hardware import Slice
from asap.hardware.nodes import chips_per_node

_LOST = re.compile(r"\b(?:los[et]|losing|lost|minus|without|short of)\s+(?:the |another )?$", re.I)
_ADDED = re.compile(r"\b(?:plus|another|additional|extra)\s+$", re.I)
_THING = r"(?:nodes?|hosts?|servers?|chips?|devices?|gpus?|tpus?)\b"
_OTHER_NOUN = r"(?!\s+(?:of|or|than|memory|hbm|time|tokens?|compute|bandwidth|work)\b)"
_DIFFERENCE = re.compile(
    rf"\s*(?:(?P<sense>fewer|less|more|extra|additional)\s+(?P<thing>{_THING})"
    rf"|(?:{_THING}\s+)?(?P<behind>fewer|less|short|gone|more|extra)\b{_OTHER_NOUN})",
    re.I,
)
_OF_THESE = re.compile(r"\s+of (?:these|those|them)\b", re.I)
_MOST_PROPOSALS = 3
"""A number of "these" that is larger is one of chips: "what if we had 512 of these"."""
_SLICES_OF = re.compile(
    r"\b(?P<slices>\d{1,3}|two|three|four)\s+(?:slices|pods)\s*(?:of|with|having|x|×|,|\()\s*(?P<chips>\d{1,5})\b"
    r"(?!\s*[x×]|\.\d|-\w|\s*(?:layers|experts|sequences|seqs|steps|tokens|batch|gib|gb|%))"
    r"(?:\s*(?:chips?|devices?|tpus?))?(?:\s*(?:each|per (?:slice|pod)|a (?:slice|pod)))?",
    re.I,
)
_SPELLED = {"two": 2, "three": 3, "four": 4}
_FEWER = {"fewer", "less", "short", "gone"}


def with_chips_of_slices(text: str) -> str:
    """The text with all chips of several slices, where it says how many each has: "2 slices of 128"."""
    return _SLICES_OF.sub(_all_chips, text)


def _all_chips(found: re.Match[str]) -> str:
    slices = _SPELLED.get(found["slices"].lower()) or int(found["slices"])
    return f"{slices * int(found['chips'])} chips in {slices} slices"


def counted_in_chips(text: str, amounts: Sequence[Amount], hardware: Slice | None) -> list[Amount]:
    """The amounts, those of chips and nodes as the number of chips that there would be."""
    return [amount if hardware is None else _in_chips(text, amount, hardware) for amount in amounts]


def _in_chips(text: str, amount: Amount, hardware: Slice) -> Amount:
    found = _DIFFERENCE.match(text, amount.end)
    if not amount.unit and amount.value > _MOST_PROPOSALS and _OF_THESE.match(text, amount.end):
        return replace(amount, unit="chips")
    thing = (
        amount.text if amount.unit in {"chips", "nodes"} else found["thing"] if found and not amount.unit else ""
    ) or ""
    if not thing or amount.before:
        return amount
    each = _chips_of_one(thing, hardware)
    if each is None:
        return replace(amount, unit="nodes")
    count = amount.value * each
    sense = (found["sense"] or found["behind"] or "").lower() if found else ""
    if sense in _FEWER or _LOST.search(text[: amount.start]):
        count = hardware.devices - count
    elif sense or _ADDED.search(text[: amount.start]):
        count += hardware.devices
    return replace(amount, value=count, unit="chips") if count > 0 else amount


def _chips_of_one(thing: str, hardware: Slice) -> int | None:
    """Chips of what is counted; ``None`` where the size of a node is not on record."""
    if "rack" in thing.lower():
        return None
    return chips_per_node(hardware.chip) if re.search(r"node|host|server", thing, re.I) else 1
