"""Where XProf's tables are known to be wrong or empty, and something better is known.

- Of AMD's HBM3 GPUs XProf states half the bandwidth: it doubles the memory clock that ROCm reports, and HBM3 moves four
  bits a clock (MI300X: 1.3 GHz on 8192 bits is 5.3 TB/s, as its data sheet says, not 2.7). Where the peak in FLOP/s is
  that of a chip's data sheet and the bandwidth half of it, the data sheet counts.
- Matrix products in a vendor's library come without FLOPs and bytes; their shapes tell both.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asap.core.units import GIB, format_rate
from asap.hardware import Chip, find_chip, known_chips, load_chip
from asap.profiles.xprof.converter import Conversion
from asap.profiles.xprof.tables import HloRow, Peaks, RooflineRow

_TARGET = re.compile(r'custom_call_target="__cublas\$(?:gemm|lt\$matmul(?:\$f8)?)"')
_CALL = re.compile(r"\A[^=]* = (?P<results>.*?) custom-call\((?P<operands>.*?)\), custom_call_target", re.DOTALL)
_SHAPE = re.compile(r"\b([a-z]+)(\d+)\w*\[([\d,]*)\]")


@dataclass(frozen=True)
class LibraryProduct:
    """A product of matrices: FLOPs, and the bytes of its operands and its result, each moved once."""

    flops: float
    bytes: float


def library_product(expression: str) -> LibraryProduct | None:
    """The product that an instruction computes; ``None`` if it is another call, or its shapes do not say.

    The sizes of operands and result determine the length ``k`` that is summed over: ``mk * kn / mn = k²``, in each of
    the products that leading dimensions count.

    Args:
        expression: the instruction as HLO prints it.
    """
    call = _CALL.search(expression) if _TARGET.search(expression) else None
    if call is None:
        return None
    result, operands = _SHAPE.search(call["results"]), _SHAPE.findall(call["operands"])
    if result is None or len(operands) < 2:
        return None
    left, right, product = shapes = [_Shape.of(*parts) for parts in (*operands[:2], result.groups())]
    batches = {shape.dimensions[:-2] for shape in shapes}
    if len(batches) > 1 or not product.elements:
        return None
    squared = left.elements * right.elements / (product.elements * math.prod(batches.pop()))
    depth = math.isqrt(round(squared))
    if not depth or depth * depth != squared:
        return None
    return LibraryProduct(2.0 * product.elements * depth, sum(shape.bytes for shape in shapes))


@dataclass(frozen=True)
class _Shape:
    dimensions: tuple[int, ...]
    bits: int

    @classmethod
    def of(cls, _kind: str, bits: str, dimensions: str) -> "_Shape":
        return cls(tuple(int(size) for size in dimensions.split(",") if size), int(bits))

    @property
    def elements(self) -> int:
        return math.prod(self.dimensions)

    @property
    def bytes(self) -> float:
        return self.elements * self.bits / 8


_GIGA, _MICRO = 1e9, 1e-6
_AGREES = 0.1
"""Peaks that differ by less are one figure: clocks and units are rounded (V100: 898 of 900 GB/s)."""


def corrected(conversion: Conversion) -> tuple[Conversion, tuple[str, ...]]:
    """The tables with what is known better, and a sentence for each peak that was replaced."""
    peaks, replaced = _true_peaks(conversion)
    operations = tuple(map(_with_product, conversion.operations))
    if peaks is conversion.peaks and operations == conversion.operations:
        return conversion, ()
    rates = {(row.program_id, row.hlo_op_name): row for row in operations}
    roofline = tuple(_under_roof(row, rates, operations, peaks) for row in conversion.roofline)
    bounds = {(row.hlo_module_id, row.operation): row.bound_by for row in roofline}
    bounded = tuple(
        row.model_copy(update={"bound_by": bounds.get((row.program_id, row.hlo_op_name), row.bound_by)})
        for row in operations
    )
    return replace(conversion, peaks=peaks, operations=bounded, roofline=roofline), replaced


def _true_peaks(conversion: Conversion) -> tuple[Peaks, tuple[str, ...]]:
    peaks, summary = conversion.peaks, conversion.summary
    named = find_chip(summary.device_type) if summary.kind == "gpu" else None
    if named is None or not peaks.peak_hbm_bw or not peaks.peak_flop_rate:
        return peaks, ()
    bandwidth = peaks.peak_hbm_bw * GIB
    chips = [chip for chip in map(load_chip, known_chips()) if chip.is_called_like(named.chip)]
    whole = [chip for chip in chips if _is_whole(chip, peaks.peak_flop_rate * _GIGA)]
    halved = [chip for chip in whole if _agree(2 * bandwidth, chip.hbm_bandwidth)]
    if not halved or any(_agree(bandwidth, chip.hbm_bandwidth) for chip in chips):
        return peaks, ()
    chip = min(halved, key=lambda chip: abs(2 * bandwidth - chip.hbm_bandwidth))
    sentence = (
        f"XProf states a peak HBM bandwidth of {format_rate(bandwidth, 'B/s')} for {chip.title}; its data sheet says"
        f" {format_rate(chip.hbm_bandwidth, 'B/s')}, which is used ({chip.source('hbm_bandwidth')})."
    )
    update = {
        "peak_hbm_bw": chip.hbm_bandwidth / GIB,
        "hbm_ridge_point": peaks.peak_flop_rate * _GIGA / chip.hbm_bandwidth,
    }
    return peaks.model_copy(update=update), (sentence,)


def _is_whole(chip: Chip, peak_flop_rate: float) -> bool:
    """Whether the device is the whole chip, and not a part of a partitioned one."""
    return any(_agree(peak_flop_rate, peak) for peak in chip.peak_flops.values())


def _agree(one: float, other: float) -> bool:
    return abs(one / other - 1) < _AGREES


def _with_product(row: HloRow) -> HloRow:
    if row.model_flop_rate or not row.total_self_time or (product := library_product(row.hlo_op_expression)) is None:
        return row
    each_second = row.occurrences / (row.total_self_time * _MICRO)
    rates = {"model_flop_rate": product.flops * each_second / _GIGA, "hbm_bw": product.bytes * each_second / GIB}
    return row.model_copy(update=rates)


def _under_roof(
    row: RooflineRow, rates: dict[tuple[str, str], HloRow], operations: Sequence[HloRow], peaks: Peaks
) -> RooflineRow:
    """A row under the roofs of compute and HBM: it is bound by the one that it uses more of."""
    if row.rank == 0:
        time = row.total_time
        flop_rate = sum(op.model_flop_rate * op.total_self_time for op in operations) / time if time else 0.0
        bandwidth = sum(op.hbm_bw * op.total_self_time for op in operations) / time if time else 0.0
    elif (found := rates.get((row.hlo_module_id, row.operation))) is not None:
        flop_rate, bandwidth = found.model_flop_rate, found.hbm_bw
    else:
        return row
    compute = flop_rate / peaks.peak_flop_rate if peaks.peak_flop_rate else 0.0
    memory = bandwidth / peaks.peak_hbm_bw if peaks.peak_hbm_bw else 0.0
    if not (compute or memory):
        return row
    update = {
        "bound_by": "Compute" if compute > memory else "HBM",
        "roofline_efficiency": max(compute, memory),
        "hbm_operational_intensity": flop_rate * _GIGA / (bandwidth * GIB) if bandwidth else None,
    }
    return row.model_copy(update=update)
