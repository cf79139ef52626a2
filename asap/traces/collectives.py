"""Which operations of several ranks are one collective, and what of it is waiting and what transfer."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asap.core.errors import BadInputError
from asap.core.units import format_seconds
from asap.traces.trace import NS, UNSAID, CollectiveCall, Integers, Matched, OperationKind, RankTrace, collective_kind

TRANSFER = "send-recv"


class _Key(NamedTuple):
    kind: str
    ranks: tuple[int, ...]
    name: str


def match(ranks: Sequence[RankTrace]) -> list[Matched]:
    """The collectives of each kind and group, as far as two ranks or more that took part are at hand.

    The ranks of a group issue its collectives of a kind in one order, so the n-th of one is the n-th of the others;
    transfers between two ranks follow each other by pair. Without names of groups, all ranks are one. Where ranks ran
    a different number (groups that are not named, or a recording that began in between), nothing is matched.
    """
    if len(ranks) < 2 or any(rank.groups_unknown for rank in ranks):
        return []
    places = {rank.rank: place for place, rank in enumerate(ranks)}
    found: dict[_Key, dict[int, Integers]] = defaultdict(dict)
    said: dict[_Key, CollectiveCall] = {}
    for place, rank in enumerate(ranks):
        for key, call, rows in _sequences(rank):
            found[key][place] = rows
            said.setdefault(key, call)
    matched = []
    for key, rows in found.items():
        expected = [places[rank] for rank in key.ranks if rank in places] if key.ranks else sorted(rows)
        if not key.ranks and not key.name:
            expected = list(range(len(ranks)))
        counts = {len(rows.get(place, ())) for place in expected}
        if len(expected) > 1 and len(counts) == 1:
            call = said[key]
            table = np.stack([rows[place] for place in expected])
            first = ranks[expected[0]]
            sizes = np.array([call.size_bytes for call in first.collectives] + [0], dtype=np.int64)
            sizes = sizes[first.operations.collective[table[0]]]
            pair = key.kind == TRANSFER and call.pair is not None
            matched.append(Matched(key.kind, call.group, np.array(expected), table, sizes, pair))
    return matched


def unmatched(ranks: Sequence[RankTrace], matched: Sequence[Matched]) -> list[NDArray[np.bool_]]:
    """For each rank its collectives that no operation of another rank was found for; none that a rank runs alone."""
    masks = [rank.operations.kind == OperationKind.COMMUNICATION for rank in ranks]
    for rank, mask in zip(ranks, masks, strict=True):
        alone = np.array([len(call.group.ranks) == 1 for call in rank.collectives] + [False], dtype=bool)
        mask &= ~alone[rank.operations.collective]
    for each in matched:
        for member, rows in zip(each.members.tolist(), each.rows, strict=True):
            masks[member][rows] = False
    return masks


def unseen_transfers(ranks: Sequence[RankTrace], matched: Sequence[Matched]) -> list[tuple[Integers, Integers]]:
    """For each rank the rows of its transfers to and from ranks that are not at hand, and what each takes without
    waiting: nanoseconds of the shortest of as many bytes between the two, either way."""
    found = []
    for rank, alone in zip(ranks, unmatched(ranks, matched), strict=True):
        known = [(frozenset(call.pair), call.size_bytes) if call.pair else None for call in rank.collectives]
        place = {sort: number for number, sort in enumerate(dict.fromkeys(known)) if sort}
        sort = np.array([*(place[each] if each else -1 for each in known), -1])[rank.operations.collective]
        rows = np.flatnonzero(alone & (sort >= 0))
        shortest = np.full(len(known) + 1, np.iinfo(np.int64).max)
        np.minimum.at(shortest, sort[rows], (rank.operations.end - rank.operations.start)[rows])
        found.append((rows, shortest[sort[rows]]))
    return found


def _sequences(rank: RankTrace) -> list[tuple[_Key, CollectiveCall, Integers]]:
    """The rows of each kind and group, in their order."""
    operations = rank.operations
    rows = np.flatnonzero(operations.kind == OperationKind.COMMUNICATION)
    sorts, sort_of = np.unique(
        np.stack([operations.name[rows], operations.collective[rows]]), axis=1, return_inverse=True
    )
    keys: dict[_Key, list[int]] = defaultdict(list)
    calls: dict[_Key, CollectiveCall] = {}
    for number, (name, said) in enumerate(sorts.T.tolist()):
        call = rank.collectives[said] if said >= 0 else UNSAID
        key = _key(collective_kind(rank.names[name]) or "", call)
        keys[key].append(number)
        calls.setdefault(key, call)
    return [(key, calls[key], rows[np.isin(sort_of.ravel(), numbers)]) for key, numbers in keys.items()]


def _key(kind: str, call: CollectiveCall) -> _Key:
    if kind == TRANSFER and call.pair is not None:
        return _Key(kind, call.pair, "")
    return _Key(kind, call.group.ranks, "" if call.group.ranks else call.group.name)


LARGEST_SPREAD = 0.1
"""Of the time between the first and the last collective: beyond it, the recordings are not of one run."""


def align(ranks: Sequence[RankTrace], matched: Sequence[Matched]) -> tuple[list[RankTrace], float | None]:
    """Shift all ranks onto the clock of the first by what was ``matched``; what is left between them, in seconds.

    Clocks go from group to group where no group holds all ranks. Ranks whose clocks agree already (no collective ends
    on one before it starts on another) are left as they are.

    Raises:
        BadInputError: no shift brings the ends of the collectives together.
    """
    matched = sorted(matched, key=lambda each: -len(each.members))
    if not matched:
        return list(ranks), None
    starts, ends = [rank.operations.start for rank in ranks], [rank.operations.end for rank in ranks]
    offset = np.zeros(len(ranks), dtype=np.int64)
    if any(np.any(each.of(starts).max(axis=0) > each.of(ends).min(axis=0)) for each in matched):
        offset = _offsets(matched, ends)
    spread = 0
    for each in matched:
        end = each.of(ends) - offset[each.members, None]
        apart = int(np.median(np.abs(end - end[:1]), axis=1).max())
        if apart > LARGEST_SPREAD * max(int(np.ptp(ends[int(each.members[0])])), 1):
            raise BadInputError(
                f"the clocks of the ranks do not align: collectives end {format_seconds(apart * NS)} apart",
                hint="give the ranks of one run, recorded over the same steps",
            )
        spread = max(spread, apart)
    return [rank.shifted(int(by)) for rank, by in zip(ranks, offset, strict=True)], spread * NS


def _offsets(matched: Sequence[Matched], ends: Sequence[Integers]) -> Integers:
    """How far each clock is ahead of the first's, over as few groups as lead to it."""
    offset = np.zeros(len(ends), dtype=np.int64)
    known = np.zeros(len(ends), dtype=bool)
    known[0] = True
    left = list(matched)
    while ready := next((each for each in left if known[each.members].any() and not known[each.members].all()), None):
        anchor = int(np.flatnonzero(known[ready.members])[0])
        end = ready.of(ends)
        ahead = np.median(end - end[anchor], axis=1).astype(np.int64) + offset[ready.members[anchor]]
        new = ready.members[~known[ready.members]]
        offset[new] = ahead[~known[ready.members]]
        known[new] = True
    return offset
