"""What the rules look at: where the time goes, and the words and evidence that they share."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from asap.core.text import plain
from asap.core.units import Provenance, Quantity, format_percent
from asap.diagnosis.diagnosis import Evidence
from asap.hardware.chip import Chip
from asap.plans import Plan
from asap.profiles import Operation, Profile
from asap.profiles.collectives import work_of_kernel
from asap.stacks.launchers import Stack
from asap.stacks.registry import contracts
from asap.traces.analysis.report import QualityVerdict, ReplayReport

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
    if operation.opaque and not operation.bound_by_name:
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
    return stated and covered < (1.0 - (idle or 0.0)) / 2


STEP_TIME_VARIATION = 0.03
"""Coefficient of variation of the step time of undisturbed runs: 0.3 to 3 % over public traces."""

STREAMING = 0.5
"""Of the roofline: below it, more of an operation's time goes to waiting than the roof explains."""

LEADING = 3
"""Operations named as evidence: as many as fit on one line each in a one-screen report."""


@dataclass(frozen=True)
class Facts:
    """What the rules look at; ``measured`` reports on what was recorded, whose waiting no replay has to explain."""

    profile: Profile
    shares: Shares
    plan: Plan | None
    chip: Chip | None = None
    stack: Stack | None = None
    measured: ReplayReport | None = None

    @property
    def replay(self) -> ReplayReport | None:
        """The replay of what was measured, where it explains it."""
        return believed(self.measured)

    @property
    def is_pytorch(self) -> bool:
        """Whether advice is in the words of PyTorch: by what recorded it, else by the stack."""
        if self.profile.framework is not None:
            return self.profile.framework == "pytorch"
        return (self.stack is not None and contracts()[self.stack].kin != "jax") or any(
            "::" in op.name for op in self.profile.operations
        )

    @property
    def provenance(self) -> Provenance:
        """Read from a profile, or stated by a report."""
        return self.profile.provenance

    def fraction(self, value: float, source: str) -> Quantity:
        """A share as a quantity with its origin."""
        return Quantity(value=value, unit="fraction", provenance=self.provenance, source=source)

    def replayed(self, value: float) -> Quantity:
        """A share that the replay of the recording shows."""
        return Quantity(
            value=value, unit="fraction", provenance=Provenance.MODELLED, source="replay of what was recorded"
        )

    def amount(self, value: float, unit: str) -> Quantity:
        """A figure in another unit, summed over operations."""
        return Quantity(value=value, unit=unit, provenance=self.provenance, source="operations of the profile")


def believed(replay: ReplayReport | None) -> ReplayReport | None:
    """A replay that explains what was measured."""
    return replay if replay is not None and replay.quality.verdict is QualityVerdict.GOOD else None


def share_of_time(facts: Facts, share: float) -> str:
    """``12.3 % of the step``."""
    whole = "of the listed time" if facts.shares.partial else f"of the {facts.profile.extent}"
    return f"{format_percent(share)} {whole}"


def spelled(parts: Mapping[str, float]) -> str:
    """``launch 38.8 %, loader 8.2 %``: the leading parts."""
    first, *others = sorted(parts.items(), key=lambda each: -each[1])[:LEADING]
    leading = (first, *(each for each in others if each[1] >= STEP_TIME_VARIATION))
    return ", ".join(f"{kind.replace('_', ' ')} {format_percent(share)}" for kind, share in leading)


def categories(facts: Facts, resource: str) -> str:
    """What the operations that wait for a resource do, collectives by their kind."""
    parts: dict[str, float] = {}
    whole = facts.shares.coverage if facts.shares.partial else 1.0
    for op in facts.shares.operations[resource]:
        said = work_of_kernel(op.name).work if op.bound_by_name and not op.host_copy else op.category
        kind = op.collective or ("kind not stated" if op.is_collective else said)
        parts[kind] = parts.get(kind, 0.0) + op.fraction / whole
    return spelled(parts)


def by_name(operations: tuple[Operation, ...]) -> str:
    """Words for bounds that are guessed from names, where most of the time is such; empty where they are measured."""
    guessed = sum(op.fraction for op in operations if op.bound_by_name)
    return ", by the names of kernels" if guessed > sum(op.fraction for op in operations) / 2 else ""


def mean_efficiency(operations: tuple[Operation, ...]) -> float | None:
    """Roofline efficiency weighted by time; ``None`` where it is not known of most."""
    known = [op for op in operations if op.roofline_efficiency is not None and op.fraction > 0]
    time, whole = (sum(op.fraction for op in each) for each in (known, operations))
    return sum(op.fraction * (op.roofline_efficiency or 0.0) for op in known) / time if 2 * time > whole else None


def leading_operations(facts: Facts, resource: str) -> tuple[Evidence, ...]:
    """The operations that wait longest for a resource."""
    return tuple(
        Evidence(fact=plain(op.name, 60), quantity=facts.fraction(op.fraction, f"self time, bound: {op.bound}"))
        for op in sorted(facts.shares.operations[resource], key=lambda op: -op.fraction)[:LEADING]
    )
