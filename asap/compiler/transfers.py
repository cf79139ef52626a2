"""Collectives in a schedule: what an instruction sends, and whether it waits, starts, finishes or carries it along."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from asap.compiler.groups import NamedMesh, replica_groups, source_target_pairs
from asap.compiler.hlo import Instruction, Module
from asap.compiler.links import NETWORK, Fabric, Lane

KINDS = (
    "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
    "collective-broadcast",
)  # fmt: skip
_KIND, _TARGET = "_xla_megascale_transfer_type", "_xla_megascale_target"
NOWHERE = "none"
"""Axes of a collective that sends nothing: each of its groups has one member, or no device sends to another."""

_FIRST_SET = re.compile(r"\{([\d,:]+)\}")
Form = Literal["synchronous", "asynchronous"]


@dataclass(frozen=True)
class Transfer:
    """One collective as one device sees it.

    ``size`` is the larger side in bytes; ``lanes`` are those that it holds, each for a share of its time.
    """

    kind: str
    axes: str
    size: int
    seconds: float
    algorithm: str
    lanes: Mapping[Lane, float]


@dataclass(frozen=True)
class Step:
    """What an instruction does with a transfer: all of it, start it, or wait for it."""

    action: Literal["whole", "start", "done"]
    chain: str
    transfer: Transfer | None


@dataclass(frozen=True)
class Reader:
    """Reads collectives of one program."""

    module: Module
    mesh: NamedMesh
    fabric: Fabric

    def read(self, instruction: Instruction) -> Step | None:
        """The collective behind an instruction; ``None`` if there is none that it starts, ends or is."""
        opcode = instruction.opcode
        if opcode in KINDS:
            return Step("whole", instruction.name, self._transfer(opcode, instruction, instruction))
        if opcode in ("recv", "recv-done"):
            return self._between_slices(instruction)
        kind, _, half = opcode.rpartition("-")
        if kind in (*KINDS, "async") and half in ("start", "done"):
            return self._half(kind, half, instruction)
        return self._fused(instruction) if opcode == "fusion" else None

    def _between_slices(self, instruction: Instruction) -> Step | None:
        """A collective over the network: libtpu hands it to the host and takes its result back."""
        if instruction.opcode == "recv-done":
            return Step("done", instruction.operands[0], None) if instruction.operands else None
        kind, target = instruction.attribute(_KIND), _FIRST_SET.match(instruction.attribute(_TARGET) or "")
        if kind is None or target is None:
            return None
        kind, size = kind.lower().replace("_", "-"), sum(shape.size for shape in instruction.shapes if shape.dims)
        seconds = self.fabric.network_seconds(kind, size, _counted(target.group(1)))
        transfer = Transfer(kind, self._axes(self.fabric.counterparts()), size, seconds, "", {NETWORK: 1.0})
        return Step("start", instruction.name, transfer)

    def _half(self, kind: str, half: str, instruction: Instruction) -> Step | None:
        if half == "done":
            return Step("done", instruction.operands[0], None) if instruction.operands else None
        inner = next((i for i in self.module.inside(instruction) if i.opcode in KINDS), None)
        if kind == "async" and inner is None:
            return None
        source = inner or instruction
        return Step("start", instruction.name, self._transfer(inner.opcode if inner else kind, source, source))

    def _fused(self, instruction: Instruction) -> Step | None:
        """Collectives inside a fusion; those of a chain are opened and closed by fusions of their own."""
        inside = list(self.module.inside(instruction))
        inner = next((i for i in inside if i.opcode in KINDS), None)
        if inner is None:
            return None
        chain = inner.attribute("chain_id")
        targets = {i.attribute("custom_call_target") for i in inside if i.opcode == "custom-call"}
        if "AsyncCollectiveStart" in targets:
            return Step("start", f"chain {chain}", self._transfer(inner.opcode, inner, inner))
        if "AsyncCollectiveDone" in targets:
            return Step("done", f"chain {chain}", None)
        if chain is not None:
            return None
        scatters = (instruction.called("calls") or "").startswith("all-reduce-scatter")
        return Step(
            "whole",
            instruction.name,
            self._transfer("reduce-scatter" if scatters else inner.opcode, inner, instruction),
        )

    def _transfer(self, kind: str, inner: Instruction, outer: Instruction) -> Transfer | None:
        algorithm = outer.attribute("emitter") or ""
        if kind == "collective-permute":
            return self._permute(inner, algorithm)
        groups = replica_groups(inner.attributes, len(self.fabric.places))
        if not groups or not groups[0]:
            return None
        kind, size = kind.removeprefix("ragged-"), _larger_side(inner, len(groups[0]))
        seconds = self.fabric.seconds(kind, size, groups)
        return Transfer(kind, self._axes(groups[0]), size, seconds, algorithm, self.fabric.lanes(groups[0]))

    def _permute(self, inner: Instruction, algorithm: str) -> Transfer | None:
        pairs = source_target_pairs(inner.attributes)
        if pairs is None:
            return None
        kind, size = inner.opcode.removesuffix("-start"), _larger_side(inner, 1)
        moving = [pair for pair in pairs if pair[0] != pair[1]]
        if not moving:
            return Transfer(kind, NOWHERE, size, 0.0, algorithm, {})
        axes = "+".join(self.mesh.axes(moving[0]))
        return Transfer(
            kind, axes, size, self.fabric.permute_seconds(size, pairs), algorithm, self.fabric.permute_lanes(pairs)
        )

    def _axes(self, members: tuple[int, ...]) -> str:
        axes = self.mesh.axes(members)
        whole = "" if self.mesh.covers(members, axes) else " (part)"
        return "+".join(axes) + whole if axes else NOWHERE


def _counted(members: str) -> int:
    """How many are listed: ``1,2`` and ``1:2`` are two."""
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
