"""Another chip for a run whose model is not known: each operation under the rooflines of both chips.

The FLOPs and bytes that a recording states of an operation take some time at least on either chip, at the rates that
training runs sustain there. The operation takes longer; whether what lies above its roof follows it or stays as it is,
no trace tells. The geometric mean of the two is taken: for the bf16 products that were measured on A100, H100, H200 and
B200 (NVIDIA's aiconfigurator, 5,700 to 25,600 shapes a pair), summed by weight matrix, it errs by 0.09 to 0.25 (root
mean square of the logarithm), the one alone by up to 0.48 and the other by up to 0.53.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asap.core.errors import InsufficientEvidenceError
from asap.core.units import format_percent
from asap.hardware import Chip
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.groups import Groups, generation, vendor_of
from asap.prediction.uncertainty.calibration import load_calibration
from asap.profiles import Operation
from asap.profiles.operators import peak_of
from asap.traces.analysis.critical_path import path_edges
from asap.traces.analysis.quality import REFUSED
from asap.traces.graph.graph import Cause
from asap.traces.trace import NS, Numbering
from asap.traces.what_if.apply import Changed, edges_of, scaled_edges

KERNELS = 0.25
"""Half-width at 90 % of ``ln(time)`` of scaled operations together: the largest of the errors above."""
HOSTS = 0.2
"""The same of another host: twice the largest difference of three programs on machines with H100 and MI300X."""
_UNSAID = "bf16"


@dataclass(frozen=True)
class Rates:
    """What runs sustain on so many devices of a chip, by the calibration; the devices decide over which links
    collectives go."""

    chip: Chip
    devices: int

    @property
    def sustained(self) -> Constants:
        """Shares of what its maker states."""
        groups = Groups(generation(self.chip.name), None, _UNSAID, None, vendor=vendor_of(self.chip))
        return load_calibration().full.resolve_one(groups)

    def least(self, operation: Operation) -> float | None:
        """Seconds of a step that it takes at least; ``None`` where nothing says so."""
        share, chip, moved = self.sustained, self.chip, operation.bytes_accessed or 0.0
        if operation.is_collective:
            return moved / self._link or None
        memory = moved / float(chip.hbm_bandwidth * share.memory_efficiency)
        if operation.host_copy or not operation.flops:
            return None if operation.host_copy else memory or None
        peak = peak_of(chip, operation.precision or _UNSAID, operation.name)
        attention = share.attention_efficiency if operation.category == "attention" else 1.0
        return max(memory, operation.flops / float(peak * share.matmul_efficiency * attention)) if peak else None

    @property
    def _link(self) -> float:
        """Bytes a second."""
        chip, share = self.chip, self.sustained
        if chip.torus:
            return float(chip.torus.axes * chip.torus.link_bandwidth * share.link_efficiency)
        if chip.scaleup and self.devices <= chip.scaleup.domain:
            return float(chip.scaleup.bandwidth * share.link_efficiency)
        return float(chip.network.bandwidth * share.network_efficiency)


def on_another_chip(
    changed: Changed, operations: Sequence[Operation], now: Rates, then: Rates
) -> tuple[Changed, float, str]:
    """The graph on the other chip, the relative half-width at 90 % that this brings with it, and a note.

    Operations of unknown cost take the factor of those of their name, or stay as they are, as hosts do.

    Args:
        changed: the graph.
        operations: of the recording, with what it states of their FLOPs and bytes.
        now: of the traced chip.
        then: of the other one.

    Raises:
        InsufficientEvidenceError: most of the time is spent in operations of unknown cost.
    """
    ranks, numbers = changed.graph.trace.ranks, Numbering[str]()
    codes = [np.array([numbers[name] for name in rank.names])[rank.operations.name] for rank in ranks]
    times = np.concatenate([NS * (rank.operations.end - rank.operations.start) for rank in ranks])
    taken, count = (np.bincount(np.concatenate(codes), each, len(numbers)) for each in (times, None))
    least = np.zeros((len(numbers), 3))
    for each in operations:
        before, after = now.least(each), then.least(each)
        started = each.kernels or (each.name,)
        if before and after and each.occurrences and numbers.keys() >= {*started}:
            least[[numbers[name] for name in started]] += before, after, each.occurrences
    known = np.flatnonzero((least[:, 2] > 0) & (taken > 0))
    missing = 1 - float(taken[known].sum() / taken.sum())
    share = f"{format_percent(missing)} of the device's time"
    if missing > REFUSED:
        message = f"{share} is in operations whose shapes the trace lacks, so nothing says what {then.chip.name} takes"
        hint = "record with record_shapes=True, or say what was traced: --experiment ID"
        raise InsufficientEvidenceError(message, hint=hint)
    before, after = least[known, :2].T / least[known, 2]
    measured, follows = taken[known] / count[known], after / before
    stays = np.where(measured > before, 1 + (after - before) / measured, follows)
    factor = np.full(len(numbers), np.nan)
    factor[known] = np.sqrt(follows * stays)
    number = edges_of(changed.graph, codes)
    target = scaled_edges(changed, np.where(np.isnan([*factor, np.nan])[number], -1, number), factor.tolist())
    apart = np.average(np.abs(np.log(follows / stays)) / 2, weights=taken[known] * factor[known])
    device = KERNELS + (1 - missing) * float(apart) + missing * float(np.abs(np.log(factor[known])).max())
    rows, edges = path_edges(target.graph), target.graph.edges
    of_host = np.isin(edges.cause[rows], (Cause.HOST, Cause.LAUNCH, Cause.BLOCKED))
    hosts = float(edges.weight[rows][of_host].sum() / max(edges.weight[rows].sum(), 1))
    doubt = math.expm1(hosts * HOSTS + (1 - hosts) * device) if now != then else 0.0
    return target, doubt, f"{then.chip.name} by roofline: no shapes for {share}, and the other host is not known"
