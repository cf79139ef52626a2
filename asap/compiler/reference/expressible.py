"""Whether the reference step can express a plan. Needs no jax."""

import math

from asap.compiler.reference.layout import BATCH_AXES
from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.models import Architecture, Workload
from asap.models.architecture import pattern_length
from asap.plans import Plan


def check_expressible(model: Architecture, workload: Workload, plan: Plan) -> tuple[int, int]:
    """Batch and sequence length of a step that supports the plan.

    Raises:
        InsufficientEvidenceError: a shape is unknown, or the decoder is of an unsupported kind.
        PlanError: the reference step does not support the plan.
    """
    if model.is_mla:
        raise InsufficientEvidenceError(
            "the reference step has no latent attention (MLA)",
            where=model.name,
            hint="give your own step with --train-step",
        )
    missing = [*model.missing()] + [
        field for field in ("global_batch", "sequence_length") if getattr(workload, field) is None
    ]
    if missing:
        raise InsufficientEvidenceError(f"the reference step needs to know {', '.join(missing)}", where=model.name)
    if plan.pipeline_repeats > 1:
        raise PlanError("the reference step has no interleaved pipeline", where=str(plan))
    if plan.degree("stage") > 1:
        _check_pipeline(model, workload, plan)
    _check_loss_chunks(workload, plan)
    return workload.global_batch or 0, workload.sequence_length or 0


def _check_pipeline(model: Architecture, workload: Workload, plan: Plan) -> None:
    """Raise a PlanError unless the stages are alike and the batch divides into microbatches."""
    stages, length = plan.degree("stage"), pattern_length(model)
    microbatches, shards, batch = plan.microbatches or stages, plan.batch_shards, workload.global_batch or 0
    divided = f"{batch} sequences into {microbatches} microbatches on {shards} batch shards"
    reasons = {
        "pipelines only decoders with identical layers": model.leading_dense_layers > 0 or model.moe_every > 1,
        "pipelines only scanned layers": workload.scan_layers is False,
        "pipelines no experts that lie on several devices": plan.degree("expert") > 1,
        f"cannot divide blocks of {length} layers into {stages} stages": (model.layers or 0) % (length * stages) > 0,
        f"cannot divide {divided}": batch % (microbatches * shards) > 0,
    }
    for reason, holds in reasons.items():
        if holds:
            raise PlanError(f"the reference step {reason}", where=str(plan))


def _check_loss_chunks(workload: Workload, plan: Plan) -> None:
    """Raise a PlanError unless the chunks of the loss are equal."""
    length, chunks = workload.sequence_length or 0, workload.loss_chunks or 1
    shards = math.prod(plan.degree(axis) for axis in BATCH_AXES)
    shards *= plan.microbatches or 1 if plan.degree("stage") == 1 else 1
    if workload.head_gathered_once:
        tokens, described = (workload.global_batch or 0) * length // (shards * plan.degree("seq")), "tokens of a device"
    else:
        tokens, described = length // plan.degree("seq"), "tokens of a sequence on a device"
    if tokens % chunks:
        raise PlanError(
            f"the {tokens} {described} do not divide into the {chunks} chunks of the loss",
            where=str(plan),
        )
