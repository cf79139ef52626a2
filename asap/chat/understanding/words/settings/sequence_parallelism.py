"""Megatron's sequence parallelism, which splits activations along the tensor axis and is no axis of its own."""

import re

from asap.plans.launchers import stack_of
from asap.study.study import Study

STACKS = ("megatron", "nemo", "bridge", "nanotron", "torchtitan")
"""Stacks that mean it by "sequence parallel"; in others that is context parallelism."""
NAME = "Megatron-SP"
"""In place of its name, which other readings would take for an axis."""

_NAMED = re.compile(
    r"(?<!-way )(?<![\w-])(?:--)?sequence[-_ ]parallel(?:ism|i[sz]ation)?\b"
    r"(?!\s*(?:size|degree)?\s*(?:of|to|at|=|:)?\s*\d)",
    re.I,
)


def sequence_parallelism_note(text: str, study: Study) -> str | None:
    """What "sequence parallelism" was taken for where a stack may mean either kind; ``None`` if it is not named."""
    framework = study.experiment.workload.framework
    if not _NAMED.search(text) or (framework and stack_of(framework) in STACKS):
        return None
    return (
        "sequence parallelism is read as context parallelism (seq), which splits the sequence; splitting activations"
        " along the tensor axis, as Megatron does, is no lever here"
    )


def with_sequence_parallelism_named(text: str, study: Study) -> str:
    """The text with :data:`NAME` for it, where the run's stack has it; with a degree, an axis is meant."""
    framework = study.experiment.workload.framework
    return _NAMED.sub(NAME, text) if framework and stack_of(framework) in STACKS else text
