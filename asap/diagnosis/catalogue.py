"""The catalogue of causes, each a file in the folder of the resource that it is lost on, and how one shows."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from statistics import fmean
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from asap.core.units import format_percent
from asap.diagnosis.diagnosis import Bottleneck, Cause
from asap.diagnosis.facts import STEP_TIME_VARIATION, Facts, share_of_time
from asap.profiles import Operation
from asap.profiles.profile import CollectiveKind, Trait
from asap.traces.analysis.report import ReplayReport

_MICRO = 1e-6
_NEEDED = 0.1
"""Part of the time that ``needs`` asks for: less would be something else beside."""

SLOW_LINK = 1 / 3
"""Of the bandwidth inside of a node, below which a collective is slow: NCCL reaches 70 to 90 % with large messages
(NVIDIA nccl-tests, doc/PERFORMANCE.md), and a network beside it about an eighth."""

SLOW_RANKS = 3
"""So many are named."""


class Seen(NamedTuple):
    """Share of the step or window, what of it could be won by the roofline, whether the recording states it, and what
    is seen in this run alone."""

    share: float = 0.0
    excess: float = 0.0
    stated: bool = False
    detail: str = ""


class Sign(BaseModel):
    """What is seen of a cause.

    An operation counts if one of ``kernel``, ``operator``, ``hlo`` (the category of XLA), ``precision``, ``traits``,
    ``collective``, ``communicates`` and ``host_copy`` is as given, or none of them is; and if it is as all others say.
    ``unless`` names kernels that do not count, and ``needs`` operations of which a part of the time must be.
    ``least_below_us`` is the time by the roofline.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: str | None = None
    operator: str | None = None
    hlo: str | None = None
    precision: tuple[str, ...] = ()
    traits: tuple[Trait, ...] = ()
    collective: CollectiveKind | None = None
    communicates: bool = False
    host_copy: bool = False
    category: str | None = None
    unless: str | None = None
    unless_traits: tuple[Trait, ...] = ()
    efficiency_below: float | None = None
    each_below_us: float | None = None
    least_below_us: float | None = None
    least_calls: int = 0
    needs: str | None = None
    general: bool = False
    host: tuple[str, ...] = ()
    replay: Literal["waiting", "bubble", "links", "slow"] | None = None

    def seen_in(self, facts: Facts, free: Iterable[Operation]) -> Seen:
        """How much of the time shows it.

        Args:
            facts: of the run.
            free: operations that may count.
        """
        if self.replay is not None:
            return _replayed(self, facts)
        found = [op for op in free if self.matches(op)]
        if sum(op.occurrences or 0 for op in found) < self.least_calls or not self._has_needed(found):
            found = []
        on_host = sum(facts.profile.host.get(kind, 0.0) for kind in self.host)
        share = sum(op.fraction for op in found) * _transferring(facts.measured, self.collective)
        excess = sum(op.fraction * max(1 - (op.roofline_efficiency or 1), 0) for op in found)
        stated = bool(on_host) or any(self._is_stated(op) for op in found)
        return Seen(share + on_host, excess, stated)

    def matches(self, operation: Operation) -> bool:
        """Whether an operation shows it."""
        return self._all(operation) and (self._is_stated(operation) or self._by_name(operation))

    def _has_needed(self, found: Sequence[Operation]) -> bool:
        if self.needs is None:
            return True
        pattern = self._patterns["needs"]
        needed = sum(op.fraction for op in found if pattern.search(op.name) or pattern.search(op.operator or ""))
        return needed >= _NEEDED * sum(op.fraction for op in found)

    def _is_stated(self, op: Operation) -> bool:
        named = (("operator", op.operator), ("hlo", op.category))
        if any(name in self._patterns and text and self._patterns[name].search(text) for name, text in named):
            return True
        if self.precision and op.precision in self.precision:
            return True
        if any(trait in op.traits for trait in self.traits) or (self.host_copy and op.host_copy):
            return True
        if self.collective is not None:
            return op.collective == self.collective
        return not self._has_alternatives and not self.host and self.kernel is None

    @property
    def _has_alternatives(self) -> bool:
        return bool(self.operator or self.hlo or self.precision or self.traits or self.host_copy)

    def _by_name(self, op: Operation) -> bool:
        return self.kernel is not None and self._patterns["kernel"].search(op.name) is not None

    def _all(self, op: Operation) -> bool:
        if self.category is not None and not self._patterns["category"].search(op.category):
            return False
        if op.is_collective != (self.communicates or self.collective is not None):
            return False
        if self.unless is not None and self._patterns["unless"].search(op.name):
            return False
        each = None if op.time_s is None or not op.occurrences else op.time_s / op.occurrences
        least = None if each is None or op.roofline_efficiency is None else each * op.roofline_efficiency
        return (
            not any(trait in op.traits for trait in self.unless_traits)
            and _below(op.roofline_efficiency, self.efficiency_below)
            and _below(each, self.each_below_us, _MICRO)
            and _below(least, self.least_below_us, _MICRO)
        )

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        fields = ("kernel", "operator", "hlo", "category", "unless", "needs")
        return {name: re.compile(text, re.IGNORECASE) for name in fields if (text := getattr(self, name))}


def _below(value: float | None, limit: float | None, unit: float = 1.0) -> bool:
    return limit is None or (value is not None and value < limit * unit)


def _transferring(replay: ReplayReport | None, kind: str | None) -> float:
    """Of the time in collectives of a kind, the part that is not waiting for a late rank; all where not known."""
    groups = [group for group in replay.groups if group.kind == kind] if replay else []
    transfer, waiting = (sum(getattr(group, name) for group in groups) for name in ("transfer_s", "waiting_s"))
    return transfer / (transfer + waiting) if transfer else 1.0


def _replayed(sign: Sign, facts: Facts) -> Seen:
    """What takes the traces of several ranks to see."""
    replay = facts.measured
    if replay is None or not replay.ranks:
        return Seen()
    windows = [rank.measured_breakdown for rank in replay.ranks]
    if sign.replay == "links":
        return _slow_links(facts, replay)
    if sign.replay == "slow":
        return _slow_ranks(replay)
    bubble = fmean((part.bubble_s or 0.0) / part.window_s for part in windows)
    exchange = sum(group.waiting_s for group in replay.groups if group.kind == "all-to-all") / windows[0].window_s
    waiting = fmean((part.waiting_s or 0.0) / part.window_s for part in windows)
    share = bubble if sign.replay == "bubble" else min(exchange, waiting) if sign.collective else waiting - bubble
    if sign.replay == "waiting" and sign.collective is None:
        share -= min(exchange, max(share, 0.0))
    exposed = sum(each.fraction for each in facts.profile.kpis.collectives) or 1.0
    return Seen(min(max(share, 0.0), exposed), 0.0, True, _latest(replay) if sign.replay == "waiting" else "")


def _latest(replay: ReplayReport) -> str:
    latest = (f"rank {late.rank} comes last to {late.last}" for late in replay.stragglers)
    return f"{first} of {replay.matched_collectives}" if (first := next(latest, "")) else ""


def _slow_ranks(replay: ReplayReport) -> Seen:
    """What the step would save without the one that costs it most."""
    found = replay.slow_ranks[:SLOW_RANKS]
    if not found:
        return Seen()
    share = 1 - found[0].step_time_s / replay.step_time_s.replayed_s
    return Seen(share, 0.0, True, ", ".join(f"rank {each.rank} by {format_percent(each.slower)}" for each in found))


def _slow_links(facts: Facts, replay: ReplayReport) -> Seen:
    """Collectives of groups that fit in a node, against the links in it."""
    link = facts.chip.scaleup if facts.chip else None
    if link is None:
        return Seen()
    exposed = {each.kind: each.fraction for each in facts.profile.kpis.collectives}
    share = excess = 0.0
    for group in replay.groups:
        if group.bus_bandwidth and 1 < group.size <= link.domain and group.bus_bandwidth < SLOW_LINK * link.bandwidth:
            part = exposed.get(group.kind, 0.0) * _transferring(replay, group.kind)
            share, excess = share + part, excess + part * (1 - group.bus_bandwidth / link.bandwidth)
    return Seen(min(share, 1.0), min(excess, 1.0), True)


_SUFFIX = ".toml"


class Entry(BaseModel):
    """A cause: what is seen of it, what it may cost, and what to change in the words of each stack."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: Bottleneck
    seen: str
    gain: float | Literal["to the roofline"]
    least: float = STEP_TIME_VARIATION
    """Share of the time from which it is named."""
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
        if found.share >= entry.least and entry.gain_of(found) > 0:
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
        name=entry.name, kind=entry.kind, seen=entry.seen, certainty="stated" if found.stated else "from names",
        share=found.share, gain=gain, advice=advice,
        statement=f"{entry.seen[0].upper()}{entry.seen[1:]} ({shares}). Change: {advice}.", source=entry.source,
    )  # fmt: skip
