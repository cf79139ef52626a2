"""Rates of operations and where they stand under the roofs of a core: ``SetRooflineMetrics`` of XProf."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from asap.core.units import GIB
from asap.profiles.totals import PS
from asap.profiles.tpu.instructions import CMEM, HBM, READ, VMEM, WRITE, Instruction
from asap.profiles.xplane.planes import Value, stat
from asap.profiles.xprof.tables import HloRow, Peaks, RooflineRow

GIGA, TERA = 1e9, 1e12
US_PER_PS = 1e-6

_CONTAINS_OTHERS = ("call", "conditional", "while", "megacore fusion")
_MEMORIES = {
    "CMEM Read": (CMEM, READ, "peak_cmem_rd_bw_gigabytes_per_second"),
    "CMEM Write": (CMEM, WRITE, "peak_cmem_wr_bw_gigabytes_per_second"),
    "VMEM Read": (VMEM, READ, "peak_vmem_rd_bw_gigabytes_per_second"),
    "VMEM Write": (VMEM, WRITE, "peak_vmem_wr_bw_gigabytes_per_second"),
}


@dataclass(frozen=True)
class Roofs:
    """FLOP/s, and bytes/s of each memory, as the profile states them; zero is unknown."""

    flop_rate: float
    hbm: float
    memories: Mapping[str, float]
    counted: tuple[str, ...]
    """Memories that the efficiency looks at, beside HBM."""

    @classmethod
    def of(cls, stats: Mapping[str, Value]) -> "Roofs":
        """From the facts of a device."""
        memories = {name: GIGA * stat(stats, peak, 0.0) for name, (_, _, peak) in _MEMORIES.items()}
        cmem = tuple(name for name in memories if name.startswith("CMEM"))
        vmem = (
            tuple(name for name in memories if name.startswith("VMEM")) if stat(stats, "has_merged_vmem", 0.0) else ()
        )
        return cls(
            flop_rate=TERA * stat(stats, "peak_teraflops_per_second", 0.0),
            hbm=GIGA * stat(stats, "peak_hbm_bw_gigabytes_per_second", 0.0),
            memories=memories,
            counted=cmem if any(memories[name] for name in cmem) else vmem,
        )

    @property
    def peaks(self) -> Peaks:
        """In the units of XProf."""
        ridge_point = _ratio(self.flop_rate, self.hbm)
        return Peaks(peak_flop_rate=self.flop_rate / GIGA, peak_hbm_bw=self.hbm / GIB, hbm_ridge_point=ridge_point)

    def stand(self, instruction: Instruction) -> tuple[str, float]:
        """By what an operation is bound, and how close it comes to its roofs."""
        seconds = instruction.time * PS
        used = {"Compute": _ratio(_ratio(instruction.flops, seconds), self.flop_rate)}
        used["HBM"] = _ratio(_ratio(_hbm_bytes(instruction), seconds), self.hbm)
        for name, (memory, direction, _) in _MEMORIES.items():
            moved = instruction.accesses.get((memory, direction), 0)
            used[name] = _ratio(_ratio(moved, seconds), self.memories[name])
        bound = max(used, key=lambda name: used[name])
        return bound if used[bound] else "Unknown", max(used[name] for name in ("Compute", "HBM", *self.counted))


def hlo_row(instruction: Instruction, roofs: Roofs, total_time: int) -> HloRow:
    """An operation in ``hlo_stats``; ``total_time`` is of all cores."""
    seconds = instruction.time * PS
    expression = instruction.expression
    bound, efficiency = roofs.stand(instruction)
    return HloRow(
        program_id=str(instruction.program),
        category=instruction.category,
        hlo_op_name=expression.partition(" = ")[0].removeprefix("%"),
        hlo_op_expression=expression,
        tf_op_name=instruction.path,
        occurrences=instruction.occurrences,
        total_self_time=instruction.own_time * US_PER_PS,
        total_self_time_percent=100 * _ratio(instruction.own_time, total_time),
        model_flop_rate=_ratio(instruction.model_flops, seconds) / GIGA,
        hbm_bw=_ratio(_hbm_bytes(instruction), seconds) / GIB,
        bound_by=bound,
        roofline_efficiency=efficiency,
        source_info=_source(instruction.source),
    )


def program_row(found: Sequence[Instruction], roofs: Roofs, total_time: int) -> RooflineRow:
    """The whole program in ``roofline_model``: the operations that contain no others, in the time of all cores."""
    whole = Instruction(0, "Program", "", "Program", "", "")
    for instruction in found:
        if instruction.category not in _CONTAINS_OTHERS:
            whole.add(instruction)
    whole.time = total_time
    bound, efficiency = roofs.stand(whole)
    return RooflineRow(
        rank=0,
        operation=whole.name,
        hlo_module_id="0",
        total_time=total_time * US_PER_PS,
        hbm_operational_intensity=_ratio(whole.flops, _hbm_bytes(whole)),
        bound_by=bound,
        roofline_efficiency=efficiency,
    )


def _hbm_bytes(instruction: Instruction) -> int:
    if not instruction.accesses:
        return instruction.bytes_accessed
    return sum(count for (memory, _), count in instruction.accesses.items() if memory == HBM)


def _source(text: str) -> str:
    """``file:line``, or nothing where the line is no number."""
    return text if text.partition(":")[2].isdigit() and not text.startswith(":") else ""


def _ratio(value: float, by: float) -> float:
    return value / by if by else 0.0
