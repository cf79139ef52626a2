"""The results as a contract: ``asap.trace/2``."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA = "asap.trace/2"


class QualityVerdict(StrEnum):
    """What the unexplained share means."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    REFUSED = "refused"


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class _Document(_Result):
    version: Literal["asap.trace/2"] = Field(default=SCHEMA, alias="schema")


class Timing(_Result):
    """A duration as it was recorded and as the graph replays it."""

    label: str = Field(default="", description="number or name of the step")
    measured_s: float
    replayed_s: float
    error: float = Field(description="of the replay, relative")


class Parts(_Result):
    """Seconds of a rank in a step, the mean over what was recorded. The first five add up to ``window_s``; waiting is a
    part of exposed communication."""

    exposed_compute_s: float = Field(description="working and not communicating")
    exposed_communication_s: float = Field(description="communicating and not working")
    overlap_s: float = Field(description="both at once")
    host_s: float = Field(description="nothing to do until the host launches the next operation")
    idle_s: float = Field(description="pauses between operations that were launched in time")
    waiting_s: float | None = Field(
        description="of the exposed communication: waiting for a rank that has not come yet; null where only one rank "
        "of several is at hand, for then it cannot be told from transfer"
    )
    bubble_s: float | None = Field(description="of the waiting: for another stage of the pipeline")
    exposed_by_collective_s: dict[str, float] = Field(description="exposed communication by kind of collective")
    window_s: float = Field(description="what was recorded, a step")


class RankReport(_Result):
    """One rank."""

    rank: int
    device: str | None
    steps: list[Timing] = Field(description="marked steps, on the host; none where no host was recorded")
    device_iterations: list[Timing] = Field(description="iterations as the device sees them")
    breakdown: Parts = Field(description="of the replay")
    measured_breakdown: Parts
    unexplained: float = Field(description="start delay that no edge explains, as a share of the device's time")


class Quality(_Result):
    """How far the graph can be believed."""

    verdict: QualityVerdict
    unexplained: float = Field(description="of the worst rank")
    unmatched: float = Field(
        description="share of the time in collectives of which no other rank's part was found: how much of it is "
        "waiting is not known"
    )
    inferred_waits: int = Field(description="waits that were concluded from times because no record states them")


class PathPart(_Result):
    """What lies on the critical path under one name."""

    rank: int
    category: str = Field(description="host, launch, compute, communication, copy, memset, pause or unknown")
    name: str
    time_s: float = Field(description="in a step")
    share: float
    occurrences: int = Field(description="in all recorded steps")


class Shortening(_Result):
    """What the step would take without one class of work."""

    change: str
    step_time_s: float


class SlowRankReport(_Result):
    """A rank whose own work takes longer than that of ranks that do the same."""

    rank: int
    slower: float = Field(description="share by which its own work takes longer")
    step_time_s: float = Field(description="of the replay, if it did not")


class GroupReport(_Result):
    """Collectives of one kind in the process groups of one sort; seconds of a step, means over ranks."""

    kind: str
    group: str
    size: int = Field(description="ranks of each group that are at hand")
    groups: int
    calls: int = Field(description="of each rank in a step")
    transfer_s: float
    waiting_s: float
    bus_bandwidth: float | None = Field(description="bytes a second; null where sizes are not known")
    awaited: int = Field(description="the rank that others waited for longest")


class StragglerReport(_Result):
    """A rank that others waited for."""

    rank: int
    last: int = Field(description="collectives of the recording to which it came last")
    waited_for_s: float = Field(description="what each other rank waited for it in a step, mean")


class ModelPart(_Result):
    """Operations of a module, a layer or a microbatch, run after or beside each other."""

    part: Literal["microbatch", "layer", "module"]
    name: str = Field(description="of the module")
    count: int = Field(description="how many there are of them")
    time_s: float = Field(description="that operations of all of them run in a step, mean over ranks")
    longest_s: float | None = Field(description="of the layer that takes longest")


class ReplayReport(_Document):
    """``asap trace replay``."""

    format: str
    step_time_s: Timing = Field(description="of the slowest rank, median over iterations")
    recorded_steps: int = Field(description="over which times of a step are means")
    ranks: list[RankReport]
    quality: Quality
    clock_spread_s: float | None = Field(description="between ranks after alignment; null for one rank")
    matched_collectives: int
    slow_ranks: list[SlowRankReport] = Field(description="those that cost the step most first")
    stragglers: list[StragglerReport]
    groups: list[GroupReport]
    model_parts: list[ModelPart] = Field(description="empty where no module is recorded")
    critical_path: list[PathPart] = Field(description="the largest parts")
    critical_path_shares: dict[str, float] = Field(description="of the whole path, by category; they add up to 1")
    shortened_by: list[Shortening]
    notes: list[str]


class RankContents(_Result):
    """What the trace of one rank holds."""

    rank: int
    world_size: int | None
    device: str | None
    steps: list[str]
    threads: int
    streams: list[str]
    calls: int
    operations: int
    collectives: int
    device_span_s: float
    unexplained: float


class TraceReport(_Document):
    """``asap trace load``."""

    format: str
    ranks: list[RankContents]
    clock_spread_s: float | None
    quality: Quality
    notes: list[str] = Field(description="what is missing, and what was not understood")


class Estimate(_Result):
    """A step time with its interval."""

    value: float
    low: float
    high: float


class PathShares(_Result):
    """Of the critical path of the changed graph, how much is as traced, how much scaled, how much modelled."""

    traced: float
    scaled: float
    modelled: float


class StepParts(_Result):
    """Seconds of a step of the device that works longest; they add up to it."""

    compute_s: float = Field(description="with what it hides of communication")
    communication_s: float = Field(description="exposed transfers; waiting too, where one rank of several is at hand")
    waiting_s: float = Field(description="for other ranks in collectives, without the bubble")
    bubble_s: float = Field(description="for other stages of the pipeline")
    host_s: float
    idle_s: float = Field(description="pauses between operations, and what is left to the step")


class WhatIfReport(_Document):
    """``asap trace what-if``."""

    changes: list[str]
    measured_s: float = Field(description="step time as recorded")
    replayed_s: float = Field(description="step time of the unchanged graph")
    step_time_s: Estimate
    speedup: float = Field(description="measured over predicted")
    shares: PathShares
    now: StepParts
    after: StepParts
    critical_path_shares: dict[str, float] = Field(description="of the changed run, by category")
    modules: dict[str, tuple[float, float]] = Field(
        description="seconds that operations of each module run in a step, now and after; empty where none is recorded"
    )
    quality: Quality
    notes: list[str]
