"""Marked steps, and the share of them that waits for input: ``ConvertTpuDeviceTraceXLineToStepEvents`` and
``ComputeTpuInputPipelineAnalysisResult`` of XProf.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from asap.profiles.tpu.core import NO_GROUP, Core, Spans
from asap.profiles.tpu.errors import UnfamiliarError

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
