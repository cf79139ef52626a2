"""What a run does not say of its settings, concluded: the least recomputation and accumulation that fits.

Recomputation costs time and saves memory, so whoever tunes a run takes no more of it than needed; the same holds for
microbatches. Performance recipes of NeMo and Megatron-Core keep activations: they use fused attention, and recompute
single modules, which costs little.
"""

from collections.abc import Sequence

import numpy as np

from asap.hardware.slices import Slice
from asap.models import Architecture, Workload
from asap.plans import Plan, Remat
from asap.prediction.cases import case_of
from asap.prediction.classes import framework_class
from asap.prediction.memory import memory

LADDER = (Remat.NONE, Remat.SELECTIVE, Remat.FULL)
KEEPERS = ("nemo",)
FULLEST = 0.97  # share of the HBM that runs of this kind are driven to


def settled(
    plan: Plan, architecture: Architecture, workload: Workload, hardware: Slice, counts: Sequence[int | None] = ()
) -> Plan:
    """The plan with a policy; of those and of the numbers of microbatches to choose from, the first that fits."""
    ladder = (plan.remat,) if plan.remat else LADDER[:1] if framework_class(workload.framework) in KEEPERS else LADDER
    counts = counts or (plan.microbatches,)
    plans = [plan.model_copy(update={"remat": policy, "microbatches": n}) for n in counts for policy in ladder]
    if len(plans) == 1:
        return plans[0]
    case = case_of(plans, architecture, workload, hardware)
    fits = memory(case).total <= FULLEST * case.machine.hbm_bytes
    return plans[int(np.argmax(fits))] if np.any(fits) else plans[-1]


def accumulations(plan: Plan, workload: Workload) -> tuple[int | None, ...]:
    """Numbers of microbatches that a run may have had which does not say: powers of two, outside of MaxText."""
    silent = plan.microbatches is None and plan.degree("stage") == 1
    if not silent or framework_class(workload.framework) in ("maxtext", None):
        return (plan.microbatches,)
    most = max((workload.global_batch or 1) // plan.batch_shards, 1)
    return tuple(2**power for power in range(most.bit_length()))
