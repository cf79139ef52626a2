"""The principle behind a change, in the words that hold for the two plans."""

from dataclasses import replace

from asap.plans import Plan, Remat
from asap.plans.remat import SavedTensors, saved_tensors
from asap.proposals.reasons.principles import (
    HOST_FOR_RECOMPUTATION,
    HOST_MAKES_ROOM,
    PRINCIPLES,
    Direction,
    Principle,
)


def principle_of(axis: str, direction: Direction, plan: Plan, incumbent: Plan) -> Principle:
    """Why one change of the incumbent helps, and what it costs.

    Args:
        axis: or lever that changes.
        direction: of the change.
        plan: with the change.
        incumbent: without it.

    Raises:
        KeyError: nothing is on record about the change.
    """
    found, plans = PRINCIPLES[axis, direction], (plan, incumbent)
    sharded, pipelined = (any(each.degree(one) > 1 for each in plans) for one in ("data", "stage"))
    if axis == "microbatches":
        return _of_microbatches(found, direction, sharded, pipelined)
    if axis == "host_activations":
        return host_activations_principle(direction, plan, incumbent)
    if axis == "remat":
        return remat_principle(direction, plan, incumbent)
    if (axis, direction) == ("model", "less") and not sharded:
        return replace(found, trade_off="each device holds and reads a larger slice of every weight matrix")
    return found


def _of_microbatches(found: Principle, direction: Direction, sharded: bool, pipelined: bool) -> Principle:
    """Weights are gathered for each microbatch where devices share them, and only a pipeline has a bubble."""
    if direction == "more":
        gains = [found.reason, *(["a pipeline's bubble shrinks"] if pipelined else [])]
        costs = [*(["sharded weights are gathered for every microbatch"] if sharded else []), "products become smaller"]
    else:
        gains = [*(["sharded weights are gathered less often"] if sharded else []), "products become larger"]
        costs = [found.trade_off, *(["a pipeline's bubble grows"] if pipelined else [])]
    return replace(found, reason=", and ".join(gains), trade_off=", and ".join(costs))


def remat_principle(direction: Direction, plan: Plan, incumbent: Plan) -> Principle:
    """Of a change of rematerialisation under which as much goes to host memory as before, or nothing."""
    found = PRINCIPLES["remat", direction]
    if {plan.remat, incumbent.remat} == {Remat.SELECTIVE, Remat.NONE}:
        return PRINCIPLES["attention_scores", direction]
    if direction == "less":
        on_device, on_host = _saved_anew(plan, incumbent)
        if on_host and not on_device:
            return HOST_FOR_RECOMPUTATION
        return replace(found, trade_off="what is not recomputed waits in HBM or in host memory") if on_host else found
    on_device, on_host = _saved_anew(incumbent, plan)
    return (
        replace(found, reason="fewer activations are copied to host memory and back") if on_host > on_device else found
    )


def host_activations_principle(direction: Direction, plan: Plan, incumbent: Plan) -> Principle:
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
