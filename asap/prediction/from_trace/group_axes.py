"""Which axes of a plan a process group is: from where its ranks lie in the job.

Megatron-LM and torchtitan number ranks alike: tensor innermost, then context, expert, sharded and replicated data, and
pipeline stages outermost. So a group of a known size and stride is one axis, or neighbouring ones.
"""

from collections.abc import Sequence

from asap.plans import Plan
from asap.plans.axes import Axis

INNERMOST_FIRST: tuple[Axis, ...] = ("model", "seq", "expert", "data", "replica", "stage")


def axes_of(ranks: Sequence[int], plan: Plan) -> tuple[Axis, ...]:
    """The axes that a group of ranks lies along; none if it fits no neighbouring ones."""
    if len(ranks) < 2:
        return ()
    stride = 1
    used: list[Axis] = [axis for axis in INNERMOST_FIRST if plan.degree(axis) > 1]
    for first, axis in enumerate(used):
        size = 1
        for last, each in enumerate(used[first:], first + 1):
            size *= plan.degree(each)
            if list(ranks) == list(range(ranks[0], ranks[0] + size * stride, stride)):
                return tuple(used[first:last])
        stride *= plan.degree(axis)
    return ()
