"""What a lever is: a setting of a plan, what it changes, who may pull it, and the values that are worth trying."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.stacks.launchers import Stack
from asap.stacks.registry import contracts, words_of_trial

Known = Literal["modelled", "compiled"]
"""How its effect is known: by the step model or by the compiler."""


@dataclass(frozen=True)
class Run:
    """What the values of a lever depend on.

    Args:
        plan: what runs.
        workload: of a step.
        stack: whose words set it.
        xla: XLA compiles the step and plans its memory.
        model: what is trained; ``None`` if it is not known.
        chip: name of the chip; empty if it is not known.
        node: devices of a node; ``None`` where that is not known, or all devices are in one.
        settings: the stack's settings on record.
    """

    plan: Plan
    workload: Workload
    stack: Stack
    xla: bool
    model: Architecture | None = None
    chip: str = ""
    node: int | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    def words(self, trial: str) -> Mapping[str, str]:
        """How its stack says a setting of that name; nothing where it does not."""
        return words_of_trial(trial, self.workload.framework, self.stack, self.plan, self.settings)


@dataclass(frozen=True)
class Value:
    """One value of a lever, as a change of a plan.

    ``sequences`` is set where the change depends on the mesh: sequences of a microbatch, whose number follows.
    """

    change: Callable[[Plan], Plan] = lambda plan: plan
    sequences: int | None = None


PRESENT = Value()
"""As it runs now."""


def set_to(**change: object) -> Value:
    """The value that sets fields of a plan."""
    return Value(lambda plan: plan.model_copy(update=change))


@dataclass(frozen=True)
class Lever:
    """One setting beside the meshes.

    Args:
        name: as a plan's text writes it, and as ``--allow`` takes it.
        title: in a few words, for a sentence.
        changes: what it changes in time, HBM and numerics.
        known: how its effect is known.
        on_request: whether it changes what is trained, and is pulled only where the user allows it.
        read: how a plan has it set, in one word or a few.
        values: of a run, the present one first; one where there is nothing to try.
    """

    name: str
    title: str
    changes: str
    known: Known
    read: Callable[[Plan], str]
    values: Callable[[Run], tuple[Value, ...]]
    on_request: bool = False

    def tried(self, run: Run, allowed: frozenset[str]) -> tuple[Value, ...]:
        """The values that may be tried in a run: the present one alone where its stack or the user does not allow."""
        permitted = self.name in contracts()[run.stack].levers and (not self.on_request or self.name in allowed)
        return self.values(run) if permitted else (PRESENT,)


@dataclass(frozen=True)
class Trial:
    """A setting beside every plan that no search varies: it is offered for a test.

    Args:
        name: of the setting.
        title: in a few words, for a sentence.
        changes: what it changes in time, HBM and numerics.
        reason: why a test may be worth it.
        source: of the reason.
        settings: of a run, in the words of its stack; empty where there is nothing to test.
        workload: what is another of the workload under it; empty where its effect is not modelled.
        at_most: the change of a recorded run's graph that takes away all that it can save, as a what-if on the trace
            has it; empty where none is known.
        of_run: gives ``workload`` where it depends on the run.
    """

    name: str
    title: str
    changes: str
    reason: str
    source: str
    settings: Callable[[Run], Mapping[str, str]]
    workload: Mapping[str, object] = field(default_factory=dict)
    at_most: str = ""
    of_run: Callable[[Run], Mapping[str, object]] | None = None

    def changed(self, run: Run) -> Mapping[str, object]:
        """What is another of a run's workload; empty where its effect is not modelled."""
        return self.of_run(run) if self.of_run else self.workload
