"""What FSDP is in a run of Megatron that shards nothing but, at most, its optimizer state."""

from asap.plans import Plan
from asap.plans.launchers import Stack, stack_of
from asap.study.study import Study

STACKS: tuple[Stack, ...] = ("megatron", "nemo", "bridge")


def meaning_of_fsdp(study: Study, plan: Plan) -> str | None:
    """What a plan with FSDP asks of Megatron; ``None`` where that needs no word."""
    now = study.plan
    if now is None or stack_of(study.experiment.workload.framework) not in STACKS:
        return None
    if plan.degree("data") == 1 or now.degree("data") > 1 or now.degree("replica") == 1:
        return None
    return (
        f"Here that is Megatron FSDP (--use-megatron-fsdp) over {plan.degree('data')} data ranks: parameters, gradients"
        f" and optimizer state sharded, where replica={now.degree('replica')} keeps parameters whole. The distributed"
        ' optimizer shards the optimizer state alone; for that ask "would the distributed optimizer help?".'
    )
