"""Marked steps, and the share of them that waits for input: ``ConvertTpuDeviceTraceXLineToStepEvents`` and
``ComputeTpuInputPipelineAnalysisResult`` of XProf.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asap.profiles.tpu.core import NO_GROUP, Core, Spans, UnfamiliarError
from asap.profiles.xplane.columns import covered, own_times
from asap.profiles.xplane.wire import Place, fields

_INFEED = "infeed"
_SPARSE_CORE = "sparsecorev0"


@dataclass(frozen=True)
class MarkedStep:
    """The longest mark of a step on any core, in picoseconds; and the largest share that a core waited for input."""

    time: int
    infeed: float


def marked_steps(hosts: Sequence[Sequence[Core]]) -> list[MarkedStep]:
    """The steps that all cores of all hosts marked and ran operations in.

    Raises:
        UnfamiliarError: hosts have different steps.
    """
    found = [_of_host([core for core in cores if len(core.operations)]) for cores in hosts]
    if len({tuple(steps) for steps in found}) > 1:
        raise UnfamiliarError("steps of several hosts")
    every = [[steps[group] for steps in found] for group in (found[0] if found else ())]
    return [MarkedStep(max(s.time for s in step), max(s.infeed for s in step)) for step in every]


def _of_host(cores: Sequence[Core]) -> Mapping[int, MarkedStep]:
    """By group; a step has one length on all cores of a host, that of its longest mark."""
    marks = [_longest(core.steps) for core in cores]
    ran = [np.unique(core.operations.group).tolist() for core in cores]
    steps = [marked.keys() & groups for marked, groups in zip(marks, ran, strict=True) if set(groups) - {NO_GROUP}]
    common = sorted(set.intersection(*map(set, steps))) if steps else []
    waited = [_infeed(core) for core in cores]
    found = {}
    for group in common:
        time = max(marked.get(group, 0) for marked in marks)
        found[group] = MarkedStep(time, max(wait.get(group, 0) for wait in waited) / time if time else 0.0)
    return found


def _longest(marks: Spans) -> dict[int, int]:
    longest: dict[int, int] = {}
    for group, time in zip(marks.group.tolist(), (marks.end - marks.start).tolist(), strict=True):
        if group != NO_GROUP:
            longest[group] = max(time, longest.get(group, 0))
    return longest


def _infeed(core: Core) -> dict[int, int]:
    """Own time of infeeds in each group."""
    spans = core.operations
    keys, place = np.unique(spans.metadata, return_inverse=True)
    categories = [str(core.plane.description(key).stats.get("hlo_category", "")) for key in keys.tolist()]
    if any(category.lower().startswith(_SPARSE_CORE) for category in categories):
        raise UnfamiliarError("SparseCore")
    mine = np.array([category == _INFEED for category in categories], dtype=bool)[place]
    waited: dict[int, int] = {}
    for group, time in zip(spans.group[mine].tolist(), spans.grouped_own[mine].tolist(), strict=True):
        waited[group] = waited.get(group, 0) + time
    return waited


_OFF_DUTY = ("infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done", "megacore fusion")
_LOCAL_CHIP = 4


def duty_cycle(cores: Iterable[Core]) -> float:
    """Share of the time of the chips of one or more hosts in which a core ran an operation, 0 to 1.

    Args:
        cores: of one host, or of several one after the other.
    """
    busy, whole = 0, 0
    for members in _chips(cores):
        busy += _active(members)
        everything = [spans for core in members for spans in (core.operations, core.modules) if len(spans)]
        if everything:
            starts, ends = ([getattr(spans, side) for spans in everything] for side in ("host_start", "host_end"))
            whole += int(max(end.max() for end in ends) - min(start.min() for start in starts))
    return busy / whole if whole else 0.0


def _active(cores: Sequence[Core]) -> int:
    """When at least one core was on duty. An operation within another one decides for its time."""
    on_duty = [_on_duty(core) for core in cores]
    if all(mine.all() for mine in on_duty):
        pairs = [(core.operations.host_start, core.operations.host_end) for core in cores]
        return covered(*map(np.concatenate, zip(*pairs, strict=True)))
    if len(cores) > 1:
        raise UnfamiliarError("transfers with the host on a chip of several cores")
    spans = cores[0].operations
    return int(own_times(spans.host_start, spans.host_end)[on_duty[0]].sum())


def _on_duty(core: Core) -> NDArray[np.bool_]:
    keys, place = np.unique(core.operations.metadata, return_inverse=True)
    off = [core.plane.description(key).stats.get("hlo_category") in _OFF_DUTY for key in keys.tolist()]
    return ~np.array(off, dtype=bool)[place]


def _chips(cores: Iterable[Core]) -> Iterable[list[Core]]:
    """Cores of one chip share its time; a core that does not say where it is stands alone."""
    chips: dict[tuple[int, int], list[Core]] = defaultdict(list)
    for core in cores:
        details = core.plane.stats.get("core_details")
        if isinstance(details, bytes):
            number = {number: value for number, _, value, _ in fields(details, Place(0, len(details)))}.get(
                _LOCAL_CHIP, 0
            )
            chips[core.host, number].append(core)
        else:
            yield [core]
    yield from chips.values()
