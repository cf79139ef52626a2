"""What a traced program does on each device: operations, each after those whose results it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from asap.compiler.schedule.replica_groups import Groups
from asap.compiler.schedule.routing import Pairs


@dataclass(frozen=True)
class Send:
    """A collective among devices, which are numbered by their place in the grid.

    Args:
        kind: as HLO calls it: ``all-gather``.
        operand_size: bytes that a device gives.
        size: bytes of the larger of operand and result.
        groups: the devices that take part together; none of a permute.
        pairs: sender and receiver of each message of a permute.
    """

    kind: str
    operand_size: int
    size: int
    groups: Groups = ()
    pairs: Pairs = ()

    @property
    def moves(self) -> bool:
        """Whether any device sends to another."""
        return any(len(group) > 1 for group in self.groups) or any(a != b for a, b in self.pairs)


@dataclass(frozen=True)
class Operation:
    """A fused computation, a collective, a loop, or a barrier, which takes no time.

    Args:
        after: indices of the operations that have to end before.
        flops: of matmuls, by precision.
        size: bytes read and written, by memory space: 0 is HBM, 1 is VMEM.
        send: the collective.
        body: operations of one pass of the loop.
        times: its passes.
    """

    after: tuple[int, ...] = ()
    flops: Mapping[str, float] = field(default_factory=dict)
    size: Mapping[int, float] = field(default_factory=dict)
    send: Send | None = None
    body: "tuple[Operation, ...]" = ()
    times: int = 1
