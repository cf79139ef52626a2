"""Why a change of one axis or lever helps, what it costs, and the note that says so, by table."""

import math
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from asap.plans import AXES, Plan, Remat
from asap.plans.remat import SavedTensors, saved_tensors

Direction = Literal["more", "less"]


@dataclass(frozen=True)
class Principle:
    """What one change of one axis does, and where to read about the part of it that most needs a source."""

    reason: str
    trade_off: str
    claim: Literal["reason", "trade_off"]
    note: str
    """ID in the knowledge base."""

    @property
    def claimed(self) -> str:
        """The sentence that the note stands behind."""
        return self.reason if self.claim == "reason" else self.trade_off


def _read() -> dict[tuple[str, Direction], Principle]:
    table = tomllib.loads(Path(__file__).with_name("principles.toml").read_text(encoding="utf-8"))
    return {(name, way): Principle(**said) for name, ways in table.items() for way, said in ways.items()}


PRINCIPLES = _read()
HOST_FOR_RECOMPUTATION = PRINCIPLES["host_for_recomputation", "less"]
HOST_MAKES_ROOM = PRINCIPLES["host_makes_room", "less"]


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
    shards = [math.prod(each.degree(one) for one in AXES if one != "replica") for each in (plan, incumbent)]
    exchanged = axis == "data" and (shards[0] >= shards[1] if direction == "less" else shards[0] <= shards[1])
    found, plans = PRINCIPLES["data_exchanged" if exchanged else axis, direction], (plan, incumbent)
    sharded, pipelined = any(each.degree("data") > 1 for each in plans), plan.degree("stage") > 1
    if axis == "microbatches":
        return _microbatch_principle(direction, plan, incumbent, pipelined)
    if (axis, direction) == ("data", "less") and plan.degree("data") == 1:
        return replace(found, reason="no weights are gathered", trade_off="each device keeps all that it computes with")
    if axis == "host_activations":
        return host_activations_principle(direction, plan, incumbent)
    if axis == "remat":
        return remat_principle(direction, plan, incumbent)
    if (axis, direction) == ("model", "less") and not sharded:
        return replace(found, trade_off="each device holds and reads a larger slice of every weight matrix")
    return found


def _microbatch_principle(direction: Direction, plan: Plan, incumbent: Plan, pipelined: bool) -> Principle:
    """Only pipelines have a bubble, only sharded weights are gathered; with fewer replicas, more may be larger."""
    more, less = (PRINCIPLES["microbatches", each] for each in ("more", "less"))
    gathers = any(each.degree("data") > 1 for each in ((plan,) if direction == "more" else (plan, incumbent)))
    parts, before = (each.batch_shards * (each.microbatches or 1) for each in (plan, incumbent))
    gains = [more.reason] if parts > before else [less.reason] if parts < before else []
    costs = [more.trade_off] if parts > before else [less.trade_off] if parts < before else []
    grows, often = ("shrinks", "for every microbatch") if direction == "more" else ("grows", "less often")
    bubble = [f"a pipeline's bubble {grows}"] if pipelined else []
    weights = [f"sharded weights are gathered {often}"] if gathers else []
    gains, costs = (gains + bubble, weights + costs) if direction == "more" else (weights + gains, costs + bubble)
    gains = gains or [f"each is as large as before: a device trains {direction} of the batch"]
    costs = costs or ["a device passes over its weights once for each"]
    return replace(more, reason=", and ".join(gains), trade_off=", and ".join(costs))


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
    fewer = "fewer activations are copied to host memory and back"
    return replace(found, reason=fewer) if on_host > on_device else found


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
