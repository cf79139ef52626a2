"""What the reference step can express of a plan, and its tensors as a mapping program sees them. Needs no jax."""

import math
from collections.abc import Iterator
from dataclasses import replace

from asap.compiler.reference.layout import BATCH_AXES, DIMENSIONS, NO_LINES, RULES, ProgramLines
from asap.compiler.reference.parameters import Parameter, parameter_tree
from asap.compiler.reference.segments import first_layers, segments
from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.mapping.coverage import Dimension, Target, Tensor
from asap.mapping.language.parse import parse
from asap.models import Architecture, Workload
from asap.models.architecture import pattern_length
from asap.plans import AXES, Plan
from asap.prediction.step_model.encoding.workload import is_xla, splits_residual


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
        raise PlanError(f"the {tokens} {described} do not divide into the {chunks} chunks of the loss", where=str(plan))


RESIDUAL = ("batch", "sequence", "residual")
QUERY = ("batch", "heads", "sequence", None)
LOGITS = ("batch", "sequence", "vocabulary")


def mapping_target(model: Architecture, workload: Workload | None = None) -> Target:
    """What a program may say of the training step of a decoder.

    Raises:
        InsufficientEvidenceError: a shape is unknown, or the decoder is of an unsupported kind.
    """
    name = model.name or "the model"
    if model.is_mla:
        raise InsufficientEvidenceError("the reference step has no latent attention (MLA)", where=name)
    if missing := model.missing():
        raise InsufficientEvidenceError(f"the mapping needs to know {', '.join(missing)}", where=name)
    layers, workload = model.layers or 0, workload or Workload()
    activations = _activations(model, workload, layers)
    kept = "bf16" if workload.weight_precision == "bf16" else "fp32"
    return Target(name, AXES, tuple(_parameters(model)), activations, layers, kept)


def program_lines(text: str, model: Architecture, workload: Workload) -> ProgramLines:
    """What the lines of a checked program say of the step of a model."""
    return ProgramLines.of(mapping_target(model, workload), parse(text)[0]) if text else NO_LINES


def _parameters(model: Architecture) -> Iterator[Tensor]:
    parts = segments(model)
    tree = parameter_tree(model, parts)
    yield from (_tensor(name, found) for name, found in tree.items() if isinstance(found, Parameter))
    layers: dict[Tensor, list[int]] = {}
    for start, segment, block in zip(first_layers(parts), parts, tree["segments"], strict=True):
        length = len(segment.block)
        for offset, weights in enumerate(block):
            for name, found in weights.items():
                held = range(start + offset, start + length * segment.repeats, length)
                layers.setdefault(_tensor(name, found), []).extend(held)
    for tensor, held in layers.items():
        yield Tensor(tensor.name, tensor.dimensions, tuple(sorted(held)))


def _tensor(name: str, parameter: Parameter) -> Tensor:
    pairs = [pair for pair in zip(parameter.shape, parameter.names, strict=True) if pair[1] != "layers"]
    return Tensor(name, tuple(_dimension(length, dimension) for length, dimension in pairs))


def _activations(model: Architecture, workload: Workload, layers: int) -> tuple[Tensor, ...]:
    lengths = {
        "batch": workload.global_batch, "sequence": workload.sequence_length, "residual": model.d_model,
        "heads": model.heads, "vocabulary": model.vocab,
    }  # fmt: skip

    def activation(name: str, dimensions: tuple[str | None, ...], layers: tuple[int, ...]) -> Tensor:
        return Tensor(name, tuple(_dimension(lengths.get(each or ""), each) for each in dimensions), layers)

    all_layers = tuple(range(layers))
    residual = activation("residual", RESIDUAL, all_layers)
    if workload.framework and not is_xla(workload):
        batch, sequence, width = residual.dimensions
        axes = (*sequence.axes, "model") if splits_residual(workload) else sequence.axes
        residual = replace(residual, dimensions=(batch, replace(sequence, axes=axes), replace(width, axes=())))
    return (residual, activation("query", QUERY, all_layers), activation("logits", LOGITS, ()))


def _dimension(length: int | None, name: str | None) -> Dimension:
    return Dimension(DIMENSIONS.get(name, name), length, RULES[name]) if name else Dimension("", length)
