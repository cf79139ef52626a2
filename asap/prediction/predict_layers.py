"""The prediction for layers that recompute differently: that of each policy in all layers, by how many have it.

Compute and saved activations are proportional to layers, so this adds nothing to the step model's own error but where
a policy changes what hides behind what.
"""

import math
from collections.abc import Mapping

from asap.core.provenance import Quantity
from asap.hardware import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.plans.remat import Policy
from asap.prediction.from_architecture import predict
from asap.prediction.prediction import MemoryPrediction, Prediction
from asap.prediction.uncertainty.calibration import AllocatorOverhead


def predict_layers(
    plan: Plan, policies: Mapping[Policy, int], architecture: Architecture | None, workload: Workload, hardware: Slice
) -> Prediction:
    """Step time and HBM of a plan under which some layers have policies of their own.

    Args:
        plan: everything else.
        policies: rematerialisation → number of layers that have it.
        architecture: the decoder.
        workload: batch, sequence and numerics.
        hardware: chips and topology.

    Raises:
        InsufficientEvidenceError: the architecture, the batch or the sequence is not known.
        PlanError: the plan is for another number of devices.
    """
    plans = [plan.model_copy(update={"remat": policy}) for policy in policies]
    found = predict(plans, architecture, workload, hardware)
    layers = sum(policies.values())
    shares = [count / layers for count in policies.values()]
    most = found[shares.index(max(shares))]
    if len(found) == 1:
        return most
    split = " and ".join(f"{policy} in {count}" for policy, count in policies.items())
    return Prediction(
        plan=plan, method=most.method, step_time=_mean([each.step_time for each in found], shares),
        memory=_memory([each.memory for each in found], shares), region_distance=most.region_distance,
        notes=(f"Predicted layer by layer: {split} of {layers} layers.",),
    )  # fmt: skip


def _mean(values: list[Quantity | None], shares: list[float]) -> Quantity | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None

    def weighed(field: str) -> float | None:
        ends = [getattr(value, field) for value in known]
        return None if None in ends else math.fsum(share * end for share, end in zip(shares, ends, strict=True))

    return known[0].model_copy(update={field: weighed(field) for field in ("value", "low", "high")})


def memory_in_all(total: Quantity, capacity: float) -> MemoryPrediction:
    """HBM of which only the sum is known, with its interval, on a device with a capacity in bytes."""
    overhead = AllocatorOverhead(
        low=(total.low or total.value) / total.value, high=(total.high or total.value) / total.value
    )
    return MemoryPrediction(
        total=total, capacity_bytes=capacity, fits=total.value <= capacity,
        probability_fits=float(overhead.probability_fits(total.value, capacity)),
    )  # fmt: skip


def _memory(values: list[MemoryPrediction | None], shares: list[float]) -> MemoryPrediction | None:
    known = [value for value in values if value is not None]
    total = _mean([value.total for value in known], shares) if len(known) == len(values) else None
    return None if total is None else memory_in_all(total, known[0].capacity_bytes)
