"""What the compiler and a run on virtual devices can tell about a mapping, beside what needs neither."""

from enum import StrEnum


class Code(StrEnum):
    """Kinds of feedback on a mapped program. Those that other evaluations know as well are spelt alike."""

    LOWERING_ERROR = "LOWERING_ERROR"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    COMPILER_CRASH = "COMPILER_CRASH"
    TIMEOUT = "TIMEOUT"
    WRONG_RESULT = "WRONG_RESULT"
    SYNCHRONOUS_COLLECTIVE = "SYNCHRONOUS_COLLECTIVE"
    RING_LOST = "RING_LOST"
    EXPOSED_COLLECTIVE = "EXPOSED_COLLECTIVE"
    LAYOUT_COPY = "LAYOUT_COPY"
    RESHARDING = "RESHARDING"
    MEMORY_TO_SPARE = "MEMORY_TO_SPARE"
    COMPUTE_BOUND = "COMPUTE_BOUND"
