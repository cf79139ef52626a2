"""Where the time goes: each operation's self time, given to the resource that it waits for."""

from dataclasses import dataclass, field

from asap.hardware.chip import Chip
from asap.profiles import Operation, Profile

RESOURCES = ("compute", "hbm", "communication", "host_transfer", "host", "opaque", "unknown")


@dataclass(frozen=True)
class Shares:
    """Fractions of the step (or window) by resource, and the operations behind each.

    ``partial`` says that only the leading operations are known: then the fractions compare with each other, but
    do not add up to the step.
    """

    time: dict[str, float]
    operations: dict[str, tuple[Operation, ...]] = field(repr=False)
    idle: float | None
    partial: bool

    @property
    def coverage(self) -> float:
        """Share of the step that the listed operations account for."""
        return sum(self.time.values())

    def relative(self, resource: str) -> float:
        """Share of a resource: of the listed time if the list is partial, of the step otherwise."""
        if not self.partial:
            return self.time[resource]
        return self.time[resource] / self.coverage if self.coverage else 0.0


def shares_of(profile: Profile, chip: Chip | None = None) -> Shares:
    """Sum the self time of operations by resource."""
    streaming = collectives_stream(profile.operations, chip)
    groups: dict[str, list[Operation]] = {resource: [] for resource in RESOURCES}
    for operation in profile.operations:
        groups[resource_of(operation, streaming)].append(operation)
    time = {resource: sum(op.fraction for op in members) for resource, members in groups.items()}
    idle = _idle(profile)
    return Shares(
        time=time,
        operations={resource: tuple(members) for resource, members in groups.items()},
        idle=idle,
        partial=_is_partial(sum(time.values()), idle, profile.stated),
    )


def resource_of(operation: Operation, collectives_stream_hbm: bool) -> str:
    """The resource that an operation waits for.

    A collective waits for the network, unless the collectives as a whole move data through HBM as fast as the
    network could deliver it: then HBM is what the roofline says it is.
    """
    if operation.opaque:
        return "opaque"
    if operation.host_copy:
        return "host_transfer"
    if operation.is_collective:
        return "hbm" if collectives_stream_hbm and operation.bound == "hbm" else "communication"
    if operation.bound in {"compute", "hbm", "host"}:
        return operation.bound
    return "compute" if operation.bound == "vmem" else "unknown"


def collectives_stream(operations: tuple[Operation, ...], chip: Chip | None) -> bool:
    """Whether collectives use HBM at least as hard as one torus axis at full speed would make them.

    A ring over one axis receives over two links, so its data passes HBM at ``2 x link bandwidth``: that share of
    the HBM bandwidth is the limit (How to Scale Your Model, "A Deeper Dive into TPU Communication Primitives").
    Below it, a collective waits for its peers or its links; unknown chips and utilisations count as waiting.
    """
    known = [op for op in operations if op.is_collective and op.memory_utilisation is not None]
    time = sum(op.fraction for op in known)
    if chip is None or chip.torus is None or not time:
        return False
    used = sum(op.fraction * (op.memory_utilisation or 0.0) for op in known) / time
    return used >= 2 * chip.torus.link_bandwidth / chip.hbm_bandwidth


def _idle(profile: Profile) -> float | None:
    if profile.kpis.idle is not None:
        return profile.kpis.idle
    return None if profile.kpis.duty_cycle is None else 1.0 - profile.kpis.duty_cycle


def _is_partial(covered: float, idle: float | None, stated: bool) -> bool:
    busy = 1.0 - (idle or 0.0)
    return stated and covered < busy / 2
