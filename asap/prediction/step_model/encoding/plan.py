"""Plans, in numbers."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from asap.models import Workload
from asap.plans import AXES, Plan, Remat
from asap.plans.remat import Policy
from asap.prediction.step_model.encoding.stack import is_xla
from asap.prediction.step_model.groups import framework_class
from asap.prediction.step_model.inputs import ModelInputs, PlanInputs
from asap.prediction.step_model.remat.policies import EVERY_SECOND_PRODUCT, remat_shares
from asap.prediction.step_model.remat.shares import RematShares
from asap.stacks.launchers import stack_of


def plan_inputs(plans: Sequence[Plan], model: ModelInputs, workload: Workload) -> PlanInputs:
    """Plans as arrays of shape (plans,).

    A plan that does not say what it recomputes is taken to recompute everything. Microbatches that are unknown are as
    many as the stages in MaxText's pipeline (its configs/types.py), and hold one sequence each in another; else there
    is one microbatch.
    """
    replica, data, seq, tensor, expert, stage = np.array([plan.ici.degrees for plan in plans], dtype=float).T
    far = dict(zip(AXES, np.array([plan.dcn.degrees for plan in plans], dtype=float).T, strict=True))
    shards = replica * data * expert * far["replica"] * far["data"] * far["expert"]
    stages = stage * far["stage"]
    microbatches = np.array([plan.microbatches or 0 for plan in plans])
    batch = np.array([plan.global_batch or workload.global_batch or 0 for plan in plans])
    maxtext = framework_class(workload.framework) == "maxtext"
    unknown = np.where(stages > 1, stages if maxtext else np.maximum(batch / shards, 1.0), 1.0)
    shares = [remat_shares(_policy(plan, workload), model, is_xla(workload)) for plan in plans]
    return PlanInputs(
        replica=replica, data=data, seq=seq * far["seq"], model=tensor * far["model"], expert=expert * far["expert"],
        stage=stage, dcn_replica=far["replica"], dcn_data=far["data"], dcn_stage=far["stage"],
        microbatches=np.where(microbatches > 0, microbatches, unknown),
        pipeline_repeats=np.where(stages > 1, [plan.pipeline_repeats for plan in plans], 1).astype(float),
        **{field.name: np.array([getattr(share, field.name) for share in shares]) for field in fields(RematShares)},
        host_optimizer=np.array(["optimizer" in plan.offload for plan in plans], dtype=float),
        host_parameters=np.array(["parameters" in plan.offload for plan in plans], dtype=float),
        host_activations=np.array([plan.moves_inputs for plan in plans], dtype=float),
    )  # fmt: skip


def _policy(plan: Plan, workload: Workload) -> Policy:
    """What a plan recomputes; everything where it does not say it."""
    if plan.remat is Remat.MINIMAL and stack_of(workload.framework) == "torchtitan":
        return EVERY_SECOND_PRODUCT
    return plan.remat or Remat.FULL
