"""Where an operator stands under the roofline of its chip."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from asap.hardware import Chip
from asap.profiles.operators.cost import Cost
from asap.profiles.profile import Bound, Operation, Roofline

_TENSOR_FLOAT = re.compile(r"tf32|tensorop_s1688", re.IGNORECASE)
"""Kernels that multiply fp32 on tensor cores."""


@dataclass(frozen=True)
class Roof:
    """The least seconds that a cost takes on a chip, and which roof sets it."""

    seconds: float
    bound: Bound

    @classmethod
    def of(cls, cost: Cost, chip: Chip, precision: str | None, kernel: str) -> "Roof | None":
        """Under the peak of the precision; ``None`` where the chip has no peak for it."""
        memory = cost.bytes / chip.hbm_bandwidth
        if not cost.flops:
            return cls(memory, "hbm") if cost.bytes else None
        peak = peak_of(chip, precision, kernel)
        if peak is None:
            return None
        compute = cost.flops / peak
        return cls(compute, "compute") if compute >= memory else cls(memory, "hbm")


def peak_of(chip: Chip, precision: str | None, kernel: str) -> float | None:
    """FLOP/s; fp32 that the name of its kernel puts on tensor cores has their peak."""
    if precision == "fp32" and _TENSOR_FLOAT.search(kernel):
        precision = "tf32"
    return chip.peak_flops.get(precision or "")


def program_roofline(operations: Sequence[Operation], chip: Chip | None) -> Roofline:
    """All operations whose cost is known together, against the peak of the precision that most FLOPs have."""
    known = [op for op in operations if op.roofline_efficiency is not None]
    if chip is None or not known:
        return Roofline()
    flops, moved = (
        sum(values) for values in zip(*((op.flops or 0, op.bytes_accessed or 0) for op in known), strict=True)
    )
    leading = max(known, key=lambda op: op.flops or 0)
    peak = peak_of(chip, leading.precision, leading.name)
    time = sum(op.fraction for op in known)
    return Roofline(
        peak_flop_rate=peak,
        peak_hbm_bandwidth=chip.hbm_bandwidth,
        ridge_point=peak / chip.hbm_bandwidth if peak else None,
        operational_intensity=flops / moved if moved else None,
        program_bound=_program_bound(known),
        program_efficiency=sum(op.fraction * (op.roofline_efficiency or 0) for op in known) / time if time else None,
    )


def _program_bound(operations: Sequence[Operation]) -> Bound:
    times = {bound: sum(op.fraction for op in operations if op.bound == bound) for bound in ("compute", "hbm")}
    return "compute" if times["compute"] >= times["hbm"] else "hbm"
