"""The principle behind a change of what the backward pass computes again, and of where the rest waits for it."""

from dataclasses import replace

from asap.plans import Plan, Remat
from asap.plans.remat import SavedTensors, saved_tensors
from asap.proposals.reasons.principles import (
    HOST_FOR_RECOMPUTATION,
    HOST_MAKES_ROOM,
    PRINCIPLES,
    SELECTIVE,
    Direction,
    Principle,
)


def of_remat(direction: Direction, plan: Plan, incumbent: Plan) -> Principle:
    """Of a change of rematerialisation under which as much goes to host memory as before, or nothing."""
    found = PRINCIPLES["remat", direction]
    if {plan.remat, incumbent.remat} == {Remat.SELECTIVE, Remat.NONE}:
        return SELECTIVE[direction]
    if direction == "less":
        on_device, on_host = _saved_anew(plan, incumbent)
        if on_host and not on_device:
            return HOST_FOR_RECOMPUTATION
        return replace(found, trade_off="what is not recomputed waits in HBM or in host memory") if on_host else found
    on_device, on_host = _saved_anew(incumbent, plan)
    return (
        replace(found, reason="fewer activations are copied to host memory and back") if on_host > on_device else found
    )


def of_host_activations(direction: Direction, plan: Plan, incumbent: Plan) -> Principle:
    """Of a change of what waits in host memory."""
    on_device, on_host = _saved_anew(plan, incumbent)
    if direction == "more" and (on_device or on_host):
        return HOST_MAKES_ROOM if on_device else HOST_FOR_RECOMPUTATION
    return PRINCIPLES["host_activations", direction]


def _saved_anew(plan: Plan, incumbent: Plan) -> tuple[int, int]:
    """Tensors that only the first of two plans saves, on the device and in host memory."""
    saved, before = (saved_tensors(each.remat) if each.remat else SavedTensors() for each in (plan, incumbent))
    on_device, on_host = (sum(tensor not in before for tensor in group) for group in (saved.device, saved.host))
    return on_device, on_host
