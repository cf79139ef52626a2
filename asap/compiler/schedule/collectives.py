"""Collectives in a schedule: what an instruction sends, and whether it runs, starts or finishes the transfer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from asap.compiler.schedule.hlo import Instruction, Module
from asap.compiler.schedule.interconnect import NETWORK, Interconnect, TorusDirection
from asap.plans.replica_groups import NamedMesh, replica_groups, source_target_pairs

KINDS = (
    "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
    "collective-broadcast",
)  # fmt: skip
_KIND, _TARGET = "_xla_megascale_transfer_type", "_xla_megascale_target"
NO_AXES = "none"
"""Mesh axes of a collective that sends nothing: its groups have one member each, or no device sends to another."""

_FIRST_GROUP = re.compile(r"\{([\d,:]+)\}")
Execution = Literal["synchronous", "asynchronous"]


@dataclass(frozen=True)
class Transfer:
    """One collective as one device sees it.

    ``size`` is the larger of operand and result in bytes; ``directions`` of the torus are occupied for these shares of
    its time.
    """

    kind: str
    axes: str
    size: int
    seconds: float
    algorithm: str
    directions: Mapping[TorusDirection, float]


@dataclass(frozen=True)
class CollectiveEvent:
    """What an instruction does with a transfer: run it, start it, or wait for its end. ``key`` joins start and end."""

    action: Literal["run", "start", "done"]
    key: str
    transfer: Transfer | None


@dataclass(frozen=True)
class CollectiveReader:
    """Reads the collectives of one program."""

    module: Module
    mesh: NamedMesh
    interconnect: Interconnect

    def read(self, instruction: Instruction) -> CollectiveEvent | None:
        """What an instruction does with a collective; ``None`` if it does nothing with any."""
        opcode = instruction.opcode
        if opcode in KINDS:
            return CollectiveEvent("run", instruction.name, self._transfer(opcode, instruction, instruction))
        if opcode in ("recv", "recv-done"):
            return self._between_slices(instruction)
        kind, _, half = opcode.rpartition("-")
        if kind in (*KINDS, "async") and half in ("start", "done"):
            return self._start_or_done(kind, half, instruction)
        return self._fused(instruction) if opcode == "fusion" else None

    def _between_slices(self, instruction: Instruction) -> CollectiveEvent | None:
        """A collective over the network: libtpu hands it to the host and takes its result back."""
        if instruction.opcode == "recv-done":
            return CollectiveEvent("done", instruction.operands[0], None) if instruction.operands else None
        kind, target = instruction.attribute(_KIND), _FIRST_GROUP.match(instruction.attribute(_TARGET) or "")
        if kind is None or target is None:
            return None
        kind, size = kind.lower().replace("_", "-"), sum(shape.size for shape in instruction.shapes if shape.dims)
        seconds = self.interconnect.network_seconds(kind, size, _count_members(target.group(1)))
        transfer = Transfer(kind, self._axes(self.interconnect.counterparts()), size, seconds, "", {NETWORK: 1.0})
        return CollectiveEvent("start", instruction.name, transfer)

    def _start_or_done(self, kind: str, half: str, instruction: Instruction) -> CollectiveEvent | None:
        if half == "done":
            return CollectiveEvent("done", instruction.operands[0], None) if instruction.operands else None
        inner = next((i for i in self.module.inside(instruction) if i.opcode in KINDS), None)
        if kind == "async" and inner is None:
            return None
        source = inner or instruction
        return CollectiveEvent(
            "start", instruction.name, self._transfer(inner.opcode if inner else kind, source, source)
        )

    def _fused(self, instruction: Instruction) -> CollectiveEvent | None:
        """Collectives inside a fusion; those of a chain start and end in fusions of their own."""
        inside = list(self.module.inside(instruction))
        inner = next((i for i in inside if i.opcode in KINDS), None)
        if inner is None:
            return None
        chain = inner.attribute("chain_id")
        targets = {i.attribute("custom_call_target") for i in inside if i.opcode == "custom-call"}
        if "AsyncCollectiveStart" in targets:
            return CollectiveEvent("start", f"chain {chain}", self._transfer(inner.opcode, inner, inner))
        if "AsyncCollectiveDone" in targets:
            return CollectiveEvent("done", f"chain {chain}", None)
        if chain is not None:
            return None
        scatters = (instruction.called("calls") or "").startswith("all-reduce-scatter")
        return CollectiveEvent(
            "run", instruction.name, self._transfer("reduce-scatter" if scatters else inner.opcode, inner, instruction)
        )

    def _transfer(self, kind: str, inner: Instruction, outer: Instruction) -> Transfer | None:
        algorithm = outer.attribute("emitter") or ""
        if kind == "collective-permute":
            return self._permute(inner, algorithm)
        groups = replica_groups(inner.attributes, len(self.interconnect.coordinates))
        if not groups or not groups[0]:
            return None
        kind, size = kind.removeprefix("ragged-"), _larger_side(inner, len(groups[0]))
        seconds = self.interconnect.seconds(kind, size, groups)
        return Transfer(kind, self._axes(groups[0]), size, seconds, algorithm, self.interconnect.directions(groups[0]))

    def _permute(self, inner: Instruction, algorithm: str) -> Transfer | None:
        pairs = source_target_pairs(inner.attributes)
        if pairs is None:
            return None
        kind, size = inner.opcode.removesuffix("-start"), _larger_side(inner, 1)
        moving = [pair for pair in pairs if pair[0] != pair[1]]
        if not moving:
            return Transfer(kind, NO_AXES, size, 0.0, algorithm, {})
        axes = "+".join(self.mesh.axes(moving[0]))
        seconds = self.interconnect.permute_seconds(size, pairs)
        return Transfer(kind, axes, size, seconds, algorithm, self.interconnect.permute_directions(pairs))

    def _axes(self, members: tuple[int, ...]) -> str:
        axes = self.mesh.axes(members)
        whole = "" if self.mesh.covers(members, axes) else " (part)"
        return "+".join(axes) + whole if axes else NO_AXES


def _count_members(members: str) -> int:
    """Members of a list: ``1,2`` and ``1:2`` have two."""
    ends = [part.partition(":") for part in members.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def _larger_side(inner: Instruction, members: int) -> int:
    """Bytes of the larger of operand and result; a started gather or permute yields both."""
    total = sum(shape.size for shape in inner.shapes if shape.dims)
    if inner.opcode == "all-gather-start":
        return total * members // (members + 1)
    if inner.opcode == "collective-permute-start":
        return total // 2
    return total * members if inner.opcode == "reduce-scatter" else total
