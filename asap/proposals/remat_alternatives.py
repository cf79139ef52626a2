"""The same meshes with another rematerialisation: what HBM has room for, or what makes a plan fit."""

from collections.abc import Sequence

from asap.plans import Plan, Remat
from asap.prediction.step_model.groups import allocator_class
from asap.study.study import Study

OFFERED = {"xla": (Remat.NONE, Remat.MINIMAL, Remat.FULL), "pytorch": (Remat.NONE, Remat.SELECTIVE, Remat.FULL)}
"""Policies that a stack has by name (MaxText, ``remat_policy``; Megatron-LM, ``--recompute-granularity``), and that
are worth proposing: those between keep a part of what ``minimal`` keeps."""

_KEEPING_PRODUCTS = ("torchtitan",)
"""PyTorch stacks whose selective recomputation keeps what matrix products write."""

KNOWN = {"xla": tuple(policy for policy in Remat if policy is not Remat.SELECTIVE), "pytorch": OFFERED["pytorch"]}


def other_policies(study: Study, plans: Sequence[Plan]) -> list[Plan]:
    """The plans under each policy that their stack offers and that they do not have.

    None where the architecture or the policy is not known: then neither what it saves nor what it holds can be told.
    """
    architecture, hardware = study.experiment.model, study.slice
    if architecture is None or architecture.missing() or hardware is None or not study.experiment.workload.tokens:
        return []
    framework = study.experiment.workload.framework
    compiled = framework in _KEEPING_PRODUCTS
    offered = OFFERED["xla" if compiled else allocator_class(framework, hardware.chip.kind)]
    return [
        plan.model_copy(update={"remat": policy})
        for plan in plans
        for policy in offered
        if plan.remat is not None and policy != plan.remat
    ]
