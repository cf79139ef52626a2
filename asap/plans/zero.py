"""What ZeRO shards over the replicas of a plan, beside its ``data`` axis (arXiv:1910.02054, section 5)."""

from asap.plans.deepspeed.settings import shards_parameters
from asap.plans.launchers import stack_of
from asap.plans.plan import Plan


def stage_over_replicas(plan: Plan, framework: str | None, stage: int | None) -> int:
    """The stage, 0 to 2, at which a run's replicas share their training state under a plan.

    Stage 3 is the ``data`` axis: beside it the replicas hold copies. DeepSpeed has one stage for the whole run, which
    is 2 where a plan takes stage 3 back.

    Args:
        plan: of the step.
        framework: of the run.
        stage: that the run has now.
    """
    if stack_of(framework) != "deepspeed":
        return 0 if stage == 3 else stage or 0
    data, replica, tensor = plan.degree("data"), plan.degree("replica"), plan.degree("model")
    return 0 if shards_parameters(data, replica, tensor, stage or 0) else min(stage or 0, 2)
