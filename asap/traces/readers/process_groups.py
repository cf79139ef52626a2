"""What Kineto says of a collective: its process group, sizes and peer (libkineto, ``record_param_comms``).

The list of ranks is cut in the middle where it is long; the header of the file, or first rank and stride, tell all.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np

from asap.core.text import plain
from asap.profiles.collectives import stated_collective
from asap.profiles.operators import ELEMENT_BYTES
from asap.traces.trace import CollectiveCall, Events, Group, Integers

_LIST = re.compile(r"\s*\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]\s*")
_MOST_RANKS = 1 << 20
_NAME_LENGTH = 80


class Said(NamedTuple):
    """The arguments of an operation, as far as they concern its collective."""

    collective: str
    name: str
    description: str
    ranks: str
    dtype: str
    size: int
    start: int
    stride: int
    sent: int
    received: int
    source: int
    destination: int


class CollectiveArguments(msgspec.Struct, gc=False):
    """Arguments of a Kineto event that name a collective; other types than expected say nothing."""

    collective: Any = msgspec.field(default="", name="Collective name")
    group: Any = msgspec.field(default="", name="Process Group Name")
    description: Any = msgspec.field(default="", name="Process Group Description")
    ranks: Any = msgspec.field(default="", name="Process Group Ranks")
    size: Any = msgspec.field(default=0, name="Group size")
    start: Any = msgspec.field(default=-1, name="Global rank start")
    stride: Any = msgspec.field(default=-1, name="Global rank stride")
    sent: Any = msgspec.field(default=0, name="In msg nelems")
    received: Any = msgspec.field(default=0, name="Out msg nelems")
    dtype: Any = ""
    source: Any = msgspec.field(default=-1, name="Src Rank")
    destination: Any = msgspec.field(default=-1, name="Dst Rank")

    @property
    def kind(self) -> str | None:
        """Of the collective, where its name is a known one."""
        return stated_collective(self.collective) if isinstance(self.collective, str) else None

    @property
    def said(self) -> Said | None:
        """None where they name no collective."""
        if not self.collective and not self.group:
            return None
        texts = (self.collective, self.group, self.description, self.ranks, self.dtype)
        numbers = (self.size, self.start, self.stride, self.sent, self.received, self.source, self.destination)
        return Said._make((*map(str, texts), *(each if isinstance(each, int) else -1 for each in numbers)))


@dataclass(frozen=True)
class ProcessGroups:
    """The groups that the header of a file lists, by name."""

    ranks: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, distributed: object) -> "ProcessGroups":
        """From ``distributedInfo``."""
        listed = distributed.get("pg_config") if isinstance(distributed, dict) else None
        found = {}
        for each in listed if isinstance(listed, list) else ():
            ranks = each.get("ranks") if isinstance(each, dict) else None
            if isinstance(ranks, list) and all(isinstance(rank, int) for rank in ranks):
                found[plain(each.get("pg_name", ""), _NAME_LENGTH)] = tuple(ranks)
        return cls(found)

    def call(self, rank: int, said: Said) -> CollectiveCall:
        """What an operation of ``rank`` says, with its ranks looked up."""
        name, description = plain(said.name, _NAME_LENGTH), plain(said.description, _NAME_LENGTH)
        group = Group(name, description, self._ranks(said))
        elements = max(said.sent, said.received, 0)
        sender, receiver = _ends(rank, said, group.ranks)
        return CollectiveCall(group, elements * ELEMENT_BYTES.get(said.dtype, 0), sender, receiver)

    def _ranks(self, said: Said) -> tuple[int, ...]:
        if found := _LIST.fullmatch(said.ranks):
            return tuple(int(rank) for rank in found[1].split(","))
        if known := self.ranks.get(plain(said.name, _NAME_LENGTH)):
            return known
        if said.start >= 0 and said.stride > 0 and 0 < said.size < _MOST_RANKS:
            return tuple(range(said.start, said.start + said.stride * said.size, said.stride))
        return ()


def _ends(rank: int, said: Said, ranks: tuple[int, ...]) -> tuple[int | None, int | None]:
    """Sender and receiver of a transfer. In a group of two the peer is the other one."""
    sends, receives = said.collective.startswith("send"), said.collective.startswith("recv")
    other = next((each for each in ranks if each != rank), -1) if len(ranks) == 2 else -1
    peer = (said.destination if sends else said.source) if sends or receives else -1
    peer = peer if peer >= 0 else other
    if peer < 0 or not (sends or receives):
        return None, None
    return (rank, peer) if sends else (peer, rank)


class Synchronisation(NamedTuple):
    """A stream waits for an event that was recorded on another: lanes, and the correlation of both calls."""

    lane: int
    awaited_lane: int
    recorded: int
    waiting: int


def exact_waits(synchronisations: Sequence[Synchronisation], operations: Events) -> Integers:
    """Pairs of operations: the first launched after the wait, and the last launched before the event was recorded.

    Correlation identifiers count the calls of a process, so they tell which came first.
    """
    pairs = []
    for wait in synchronisations:
        waiting = np.flatnonzero((operations.lane == wait.lane) & (operations.correlation > wait.waiting))
        awaited = np.flatnonzero((operations.lane == wait.awaited_lane) & (operations.correlation < wait.recorded))
        if len(waiting) and len(awaited):
            pairs.append((waiting[0], awaited[-1]))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
