"""What can come of an evaluation beside a step time: one list for people, language models and proposers."""

from enum import StrEnum


class Code(StrEnum):
    """Kinds of feedback on an evaluation."""

    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    INVALID = "INVALID"
    IGNORED_OVERRIDE = "IGNORED_OVERRIDE"
    HANG = "HANG"
    PREEMPTED = "PREEMPTED"
    INTERRUPTED = "INTERRUPTED"
    CRASHED = "CRASHED"
    NO_STEP_TIME = "NO_STEP_TIME"
    UNCHECKED = "UNCHECKED"
    WRONG_RESULT = "WRONG_RESULT"
    THROTTLED = "THROTTLED"
    NOISE = "NOISE"
    MEMORY_TO_SPARE = "MEMORY_TO_SPARE"
    EXPOSED_COLLECTIVE = "EXPOSED_COLLECTIVE"
    SYNCHRONOUS_COLLECTIVE = "SYNCHRONOUS_COLLECTIVE"
    LAUNCH_BOUND = "LAUNCH_BOUND"
    REDUCED_EFFORT = "REDUCED_EFFORT"
    LAYOUT_COPY = "LAYOUT_COPY"
    RESHARDING = "RESHARDING"
