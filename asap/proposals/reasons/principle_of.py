"""The principle behind a change, in the words that hold for the two plans."""

from dataclasses import replace

from asap.plans import Plan
from asap.proposals.reasons.of_remat import of_host_activations, of_remat
from asap.proposals.reasons.principles import PRINCIPLES, Direction, Principle


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
        return of_host_activations(direction, plan, incumbent)
    if axis == "remat":
        return of_remat(direction, plan, incumbent)
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
