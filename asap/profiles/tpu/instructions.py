"""What each operation of a run took, over all cores: ``OpMetricsDb`` of XProf."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from asap.profiles.tpu.core import Core
from asap.profiles.xplane.planes import Plane, Value, stat
from asap.profiles.xplane.wire import Place, fields

CUSTOM_CALL = "custom-call"
HBM, CMEM, VMEM = 1, 2, 3
READ, WRITE = 1, 2

_ACCESS, _OPERATION, _MEMORY, _BYTES = 1, 1, 2, 3
_ROOT = 0


@dataclass
class Instruction:
    """An instruction of a program: sums over the times that it ran, in picoseconds, FLOPs and bytes."""

    program: int
    name: str
    expression: str
    category: str
    path: str
    source: str
    occurrences: int = 0
    time: int = 0
    own_time: int = 0
    flops: int = 0
    model_flops: int = 0
    bytes_accessed: int = 0
    accesses: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    """Bytes by memory, and by whether they are read or written."""

    def add(self, other: "Instruction") -> None:
        """Add what another core did."""
        self.category, self.path = self.category or other.category, self.path or other.path
        self.expression, self.source = self.expression or other.expression, self.source or other.source
        self.occurrences += other.occurrences
        self.time += other.time
        self.own_time += other.own_time
        self.flops += other.flops
        self.model_flops += other.model_flops
        self.bytes_accessed += other.bytes_accessed
        for access, count in other.accesses.items():
            self.accesses[access] += count


def instructions(cores: Iterable[Core]) -> list[Instruction]:
    """All instructions of all cores; longest own time first."""
    return together(instruction for core in cores for instruction in _of_core(core))


def together(each: Iterable[Instruction]) -> list[Instruction]:
    """One for each that several cores or hosts ran; longest own time first."""
    found: dict[tuple[int, str], Instruction] = {}
    for instruction in each:
        key = (instruction.program, instruction.name)
        if key in found:
            found[key].add(instruction)
        else:
            found[key] = instruction
    return sorted(found.values(), key=lambda each: (-each.own_time, each.name))


def _of_core(core: Core) -> Iterable[Instruction]:
    """Events belong together that have the same program and symbol; those that lack one are left out."""
    spans = core.operations
    keys, first, place = np.unique(spans.metadata, return_index=True, return_inverse=True)
    sums = np.zeros((3, len(keys)), dtype=np.int64)
    for total, values in zip(sums, (1, spans.end - spans.start, spans.own), strict=True):
        np.add.at(total, place, values)
    found: dict[tuple[int, int], tuple[Instruction, dict[str, Value]]] = {}
    for row in np.argsort(first).tolist():
        instruction, stats = _described(core.plane, int(keys[row]))
        program, symbol = stats.get("program_id"), stats.get("symbol_id")
        if not isinstance(program, int) or not isinstance(symbol, int) or symbol == _ROOT:
            continue
        instruction, stats = found.setdefault((program, symbol), (instruction, stats))
        occurrences, time, own_time = sums[:, row].tolist()
        instruction.occurrences += occurrences
        instruction.time += time
        instruction.own_time += own_time
    for instruction, stats in found.values():
        _add_costs(instruction, stats)
        yield instruction


def _described(plane: Plane, metadata: int) -> tuple[Instruction, dict[str, Value]]:
    described = plane.description(metadata)
    stats = dict(described.stats)
    instruction = Instruction(
        program=stat(stats, "program_id", 0) & (1 << 64) - 1,
        name=described.display_name or described.name,
        expression=described.name,
        category=stat(stats, "hlo_category", ""),
        path=stat(stats, "tf_op", ""),
        source=stat(stats, "source", ""),
    )
    return instruction, stats


def _add_costs(instruction: Instruction, stats: Mapping[str, Value]) -> None:
    """The costs of one run times the runs. What takes no model FLOPs counts those it takes; custom calls do not."""
    flops, model_flops = stat(stats, "flops", 0), stat(stats, "model_flops", 0)
    if instruction.category != CUSTOM_CALL:
        model_flops = model_flops or flops
    instruction.flops += flops * instruction.occurrences
    instruction.model_flops += model_flops * instruction.occurrences
    instruction.bytes_accessed += stat(stats, "bytes_accessed", 0) * instruction.occurrences
    breakdown = stats.get("memory_access_breakdown")
    if isinstance(breakdown, bytes):
        for _, _, _, access in fields(breakdown, Place(0, len(breakdown))):
            found = {number: value for number, _, value, _ in fields(breakdown, access)}
            what = (found.get(_MEMORY, 0), found.get(_OPERATION, 0))
            instruction.accesses[what] += found.get(_BYTES, 0) * instruction.occurrences
