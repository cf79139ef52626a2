"""Settings that a run does not state, inferred: the least recomputation and accumulation that fits.

Recomputation costs time and saves memory, so a tuned run uses no more of it than it needs; the same holds for
microbatches. Performance recipes of NeMo and Megatron-Core keep activations: they use fused attention, and recompute
single modules, which costs little.
"""

from collections.abc import Sequence

import numpy as np

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan, Remat
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.memory import memory
from asap.stacks.kin import kin_of

REMAT_LADDER = (Remat.NONE, Remat.SELECTIVE, Remat.FULL)
HBM_TARGET = 0.97  # share of HBM that runs are driven to; judgement: what runs that do not say recompute


def infer_remat(
    plan: Plan, architecture: Architecture, workload: Workload, hardware: Slice, counts: Sequence[int | None] = (),
    target: float = HBM_TARGET,
) -> Plan:  # fmt: skip
    """The plan with a policy and one of ``counts`` microbatches: the first combination that fits, or the last.
    ``target``: the share of HBM that it may fill."""
    policies = (
        (plan.remat,)
        if plan.remat
        else REMAT_LADDER[:1]
        if kin_of(workload.framework).transformer_engine
        else REMAT_LADDER
    )
    counts = counts or (plan.microbatches,)
    plans = [plan.model_copy(update={"remat": policy, "microbatches": n}) for n in counts for policy in policies]
    if len(plans) == 1:
        return plans[0]
    inputs = step_inputs(plans, architecture, workload, hardware)
    fits = memory(inputs).total <= target * inputs.hardware.hbm_bytes
    return plans[int(np.argmax(fits))] if np.any(fits) else plans[-1]


def candidate_microbatches(plan: Plan, workload: Workload) -> tuple[int | None, ...]:
    """Numbers of microbatches that a run may have used: powers of two if it states none and is not of MaxText."""
    unstated = plan.microbatches is None and plan.degree("stage") == 1
    if not unstated or kin_of(workload.framework).microbatches != "open":
        return (plan.microbatches,)
    most = max((workload.global_batch or 1) // plan.batch_shards, 1)
    return tuple(2**power for power in range(most.bit_length()))
