"""Which operations of several ranks are one collective."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from asap.traces.operations import collective_kind
from asap.traces.trace import Integers, OperationKind, RankTrace


def match(ranks: Sequence[RankTrace]) -> list[Integers]:
    """For each collective that all ranks took part in, the row of its operation on each rank.

    All ranks issue the same collectives of a kind in the same order, so the n-th of one is the n-th of the others. A
    kind that ranks ran a different number of times (groups, or a recording that began in between) is left out.
    """
    if any(rank.groups_unknown for rank in ranks):
        return []
    sequences = [_sequences(rank) for rank in ranks]
    matched = []
    for key in sequences[0]:
        rows = [sequence.get(key, []) for sequence in sequences]
        if len({len(found) for found in rows}) == 1:
            matched += list(np.array(rows, dtype=np.int64).T)
    return matched


def _sequences(rank: RankTrace) -> dict[str, list[int]]:
    kinds = [collective_kind(name) for name in rank.names]
    sequences: dict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero(rank.operations.kind == OperationKind.COMMUNICATION):
        sequences[kinds[rank.operations.name[row]] or ""].append(int(row))
    return sequences
