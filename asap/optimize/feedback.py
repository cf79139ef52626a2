"""What came of an evaluation, in words: for each code an explanation and advice, unless the case says more."""

from asap.core.feedback import Feedback, Repair
from asap.optimize.codes import Code

_WORDS: dict[Code, tuple[str, str]] = {
    Code.OUT_OF_MEMORY: ("it ran out of device memory", "shard parameters further, recompute more, or take less batch"),
    Code.INVALID: ("the launcher refused it", "read its message, and leave out what it does not allow"),
    Code.IGNORED_OVERRIDE: ("the log shows another plan than the one asked for", "pass {overrides} on to the trainer"),
    Code.HANG: ("it reached its time limit", "look for a collective that waits, or raise --time-limit"),
    Code.PREEMPTED: ("it was preempted", "it is tried again"),
    Code.INTERRUPTED: ("it was interrupted", "asap optimize resume SESSION tries it again"),
    Code.BUDGET_SPENT: (
        "the budget was spent before it ended",
        "asap optimize resume SESSION goes on with a larger --budget",
    ),
    Code.CRASHED: ("it crashed", "read the log of the try"),
    Code.NO_STEP_TIME: (
        "its log has no step time that can be read",
        "let it log steps as MaxText, Megatron-LM or torchtitan do, or name where it logs with --wait-for",
    ),
    Code.UNCHECKED: (
        "its log does not show its settings, so whether the overrides were taken is not known",
        "let the trainer print its configuration",
    ),
    Code.WRONG_RESULT: ("its loss is not a number", "run it with the numerics as they were"),
    Code.THROTTLED: ("its steps grew longer and longer", "look at temperature and at other jobs on the machine"),
    Code.NOISE: ("its steps vary too much to tell", "measure it again, or for more steps"),
    Code.MEMORY_TO_SPARE: ("HBM is left over", "recompute less, or shard parameters less"),
    Code.EXPOSED_COLLECTIVE: ("the step waits for a collective", "lower the degree of its axis"),
    Code.SYNCHRONOUS_COLLECTIVE: ("a collective runs alone", "move its axis to neighbouring chips"),
    Code.LAUNCH_BOUND: (
        "the devices wait for the host",
        "give each step more work (a larger batch, fewer microbatches), and look at the input pipeline",
    ),
    Code.REDUCED_EFFORT: (
        "it was compiled with reduced effort, as full effort did not end: the step may be shorter",
        "give the compiler longer with --time-limit",
    ),
    Code.LAYOUT_COPY: ("the step copies data within the device", "keep tensors whole along their last dimension"),
    Code.RESHARDING: (
        "data moves between layouts",
        "give neighbouring operations the same axes",
    ),
}


def feedback(
    code: Code,
    explanation: str | None = None,
    suggestion: str | None = None,
    repair: Repair | None = None,
    axis: str | None = None,
) -> Feedback:
    """Feedback on a whole configuration, or one axis of it, in the usual words where none are given."""
    usual, said = _WORDS[code], explanation
    return Feedback(
        code=code, explanation=said or usual[0], suggestion=suggestion or usual[1], axis=axis, repair=repair
    )
