"""The catalogue of causes: each a file of ``causes``, in the folder of the resource that it is lost on."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Cause
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts, share_of_time
from asap.diagnosis.sign import Seen, Sign
from asap.profiles import Operation

_SUFFIX = ".toml"


class Entry(BaseModel):
    """A cause: what is seen of it, what it may cost, and what to change in the words of each stack."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: Bottleneck
    seen: str
    gain: float | Literal["to the roofline"]
    sign: Sign
    source: str
    advice: Mapping[str, str]

    def gain_of(self, found: Seen) -> float:
        """Of the step or window that can be won at most: an upper bound."""
        return found.excess if isinstance(self.gain, str) else found.share * self.gain


@cache
def catalogue() -> tuple[Entry, ...]:
    """All causes; the general ones, which take what no other explains, come last."""
    folders = sorted(files("asap.diagnosis").joinpath("causes").iterdir(), key=lambda folder: folder.name)
    entries = [
        Entry(
            name=file.name.removesuffix(_SUFFIX), kind=Bottleneck(folder.name), **tomllib.loads(file.read_text("utf-8"))
        )
        for folder in folders
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(_SUFFIX)
    ]
    return tuple(sorted(entries, key=lambda entry: entry.sign.general))


def causes_of(facts: Facts) -> tuple[Cause, ...]:
    """The causes that a profile shows, by what the step could gain at most; several may name the same time."""
    causes: list[Cause] = []
    explained: list[Entry] = []
    for entry in catalogue():
        found = entry.sign.seen_in(facts, _free(entry, explained, facts.profile.operations))
        if found.share >= STEP_TIME_VARIATION and entry.gain_of(found) > 0:
            causes.append(_cause(facts, entry, found))
            explained.append(entry)
    return tuple(sorted(causes, key=lambda cause: -cause.gain))


def _free(entry: Entry, explained: list[Entry], operations: tuple[Operation, ...]) -> list[Operation]:
    """Operations that an entry may name: copies with the host are of that kind alone."""
    copies = entry.kind is Bottleneck.HOST_TRANSFER
    mine = [op for op in operations if op.host_copy == copies]
    if not entry.sign.general:
        return mine
    return [op for op in mine if not any(other.sign.matches(op) for other in explained if not other.sign.host)]


def _cause(facts: Facts, entry: Entry, found: Seen) -> Cause:
    family = "pytorch" if facts.is_pytorch else "xla"
    gain, advice = entry.gain_of(found), entry.advice.get(facts.stack or "", entry.advice[family])
    guessed = "" if found.stated else ", by the names of kernels"
    detail = f"; {found.detail}" if found.detail else ""
    less = "" if gain == found.share else f"; without it at most {format_percent(gain)} less"
    shares = f"{share_of_time(facts, found.share)}{guessed}{detail}{less}"
    return Cause(
        name=entry.name,
        kind=entry.kind,
        seen=entry.seen,
        certainty="stated" if found.stated else "from names",
        share=found.share,
        gain=gain,
        advice=advice,
        statement=f"{entry.seen[0].upper()}{entry.seen[1:]} ({shares}). Change: {advice}.",
        source=entry.source,
    )
