"""One training step of the reference decoder: loss, gradients, Adam; jitted, with its abstract arguments."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asap.compiler.decoder import Decoder, Parameter
from asap.compiler.layout import BATCH_AXES, Layout, check_axes
from asap.compiler.pipeline import split_batch
from asap.compiler.request import FULL_PRECISION
from asap.core.errors import InsufficientEvidenceError, PlanError
from asap.models import Architecture, Workload
from asap.plans import Plan, Remat

if TYPE_CHECKING:
    from jax.sharding import Mesh

_LEARNING_RATE, _BETA1, _BETA2, _EPSILON, _DECAY = 1e-3, 0.9, 0.95, 1e-8, 0.1


@dataclass(frozen=True)
class TrainStep:
    """``function(state, tokens, targets) → (state, loss)``; ``arguments`` are abstract and carry shardings."""

    function: Any
    arguments: tuple[Any, ...]
    decoder: Decoder


def reference_step(
    model: Architecture, workload: Workload, plan: Plan, mesh: "Mesh", *, capacity: float = 1.0
) -> TrainStep:
    """The training step of a decoder under a plan.

    Raises:
        InsufficientEvidenceError: a shape that is needed is unknown, or the decoder is of a kind that is not here.
        PlanError: the plan asks for what this step does not do.
    """
    import jax

    batch, sequence = check_reference(model, workload, plan)
    layout = check_axes(mesh)
    pipelined = layout.degree("stage") > 1
    parts = plan.microbatches or (layout.degree("stage") if pipelined else 1)
    dtype = "float32" if workload.precision in FULL_PRECISION else "bfloat16"
    remat = plan.remat or Remat.FULL
    decoder = Decoder(
        model, layout, remat, dtype, parts if pipelined else 1, capacity, plan.offload,
        loss_chunks=workload.loss_chunks or 1, head_once=workload.head_gathered_once is True,
        scanned=workload.scan_layers is not False,
        weights="bfloat16" if workload.weight_precision == "bf16" else "float32",
    )  # fmt: skip
    function = jax.jit(_step(decoder, 1 if pipelined else parts, "optimizer" in plan.offload), donate_argnums=0)
    tokens = jax.ShapeDtypeStruct(
        (batch, sequence), "int32", sharding=layout.sharding((batch, sequence), ("batch", "sequence"))
    )
    return TrainStep(function, (abstract_state(decoder, plan), tokens, tokens), decoder)


def abstract_state(decoder: Decoder, plan: Plan) -> dict[str, Any]:
    """Parameters and both moments in the precision of the weights; in host memory where the plan offloads them."""
    import jax

    def leaf(parameter: Parameter, host: bool) -> Any:
        sharding = decoder.layout.sharding(parameter.shape, parameter.names)
        if host:
            sharding = sharding.with_memory_kind("pinned_host")
        return jax.ShapeDtypeStruct(parameter.shape, decoder.weights, sharding=sharding)

    def tree(host: bool) -> Any:
        return jax.tree.map(lambda p: leaf(p, host), decoder.parameters(), is_leaf=lambda p: isinstance(p, Parameter))

    on_host = "optimizer" in plan.offload
    step = jax.ShapeDtypeStruct((), "int32", sharding=decoder.layout.sharding((), ()))
    return {"parameters": tree(False), "mean": tree(on_host), "variance": tree(on_host), "step": step}


def initial_state(decoder: Decoder, plan: Plan, seed: int = 0) -> dict[str, Any]:
    """Parameters drawn at random, for a step that really runs."""
    import jax

    abstract = abstract_state(decoder, plan)
    generator = np.random.default_rng(seed)

    def draw(leaf: Any) -> Any:
        scale = leaf.shape[-2] ** -0.5 if leaf.ndim > 1 else 0.0
        values = scale * generator.standard_normal(leaf.shape) + (scale == 0.0)
        return jax.device_put(values.astype(leaf.dtype), leaf.sharding)

    def zeros(leaf: Any) -> Any:
        return jax.device_put(np.zeros(leaf.shape, leaf.dtype), leaf.sharding)

    rest = {name: jax.tree.map(zeros, abstract[name]) for name in ("mean", "variance", "step")}
    return {"parameters": jax.tree.map(draw, abstract["parameters"]), **rest}


def check_reference(model: Architecture, workload: Workload, plan: Plan) -> tuple[int, int]:
    """Batch and sequence length of a step that can be written.

    Raises:
        InsufficientEvidenceError: a shape that is needed is unknown, or the decoder is of a kind that is not here.
        PlanError: the plan asks for what this step does not do.
    """
    if model.is_mla:
        raise InsufficientEvidenceError(
            "the reference step has no latent attention", where=model.name, hint="give your own with --train-step"
        )
    missing = [*model.missing()] + [
        field for field in ("global_batch", "sequence_length") if getattr(workload, field) is None
    ]
    if missing:
        raise InsufficientEvidenceError(
            f"a training step cannot be written without {', '.join(missing)}", where=model.name
        )
    if plan.pipeline_repeats > 1:
        raise PlanError("the reference step has no interleaved pipeline", where=str(plan))
    if plan.degree("stage") > 1 and (model.leading_dense_layers or model.moe_every > 1):
        raise PlanError("the reference step pipelines only decoders whose layers are equal", where=str(plan))
    _check_parts(workload, plan)
    if plan.degree("stage") > 1 and workload.scan_layers is False:
        raise PlanError("the reference step pipelines only layers that are scanned", where=str(plan))
    return workload.global_batch or 0, workload.sequence_length or 0


def _check_parts(workload: Workload, plan: Plan) -> None:
    """Raise a PlanError unless the parts of the loss are equal."""
    length, parts = workload.sequence_length or 0, workload.loss_chunks or 1
    split = math.prod(plan.degree(axis) for axis in BATCH_AXES)
    split *= plan.microbatches or 1 if plan.degree("stage") == 1 else 1
    if workload.head_gathered_once:
        whole, what = (workload.global_batch or 0) * length // (split * plan.degree("seq")), "tokens of a device"
    else:
        whole, what = length // plan.degree("seq"), "tokens of a sequence on a device"
    if whole % parts:
        raise PlanError(
            f"the reference step computes the loss in {parts} parts, into which the {whole} {what} do not divide",
            where=str(plan),
        )


def _step(decoder: Decoder, accumulate: int, offloaded: bool) -> Any:
    import jax

    def move(moments: dict[str, Any], space: Any) -> dict[str, Any]:
        return jax.device_put(moments, space) if offloaded else moments

    def step(state: dict[str, Any], tokens: Any, targets: Any) -> tuple[dict[str, Any], Any]:
        loss, gradients = _gradients(decoder, accumulate, state["parameters"], tokens, targets)
        moments = move({"mean": state["mean"], "variance": state["variance"]}, jax.memory.Space.Device)
        count = state["step"] + 1
        parameters, moments = _adam(state["parameters"], moments, gradients, count)
        return {"parameters": parameters, **move(moments, jax.memory.Space.Host), "step": count}, loss

    return step


def _gradients(decoder: Decoder, accumulate: int, parameters: Any, tokens: Any, targets: Any) -> tuple[Any, Any]:
    """Loss and gradients; over several microbatches one after the other, summed in the precision of the weights."""
    import jax
    import jax.numpy as jnp

    both = jax.value_and_grad(decoder.loss)
    if accumulate == 1:
        return both(parameters, tokens, targets)
    layout: Layout = decoder.layout

    def add(total: Any, batch: tuple[Any, Any]) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, both(parameters, *batch)), None

    batches = (split_batch(layout, tokens, accumulate), split_batch(layout, targets, accumulate))
    zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, parameters))
    total, _ = jax.lax.scan(add, zero, batches)
    return jax.tree.map(lambda value: value / accumulate, total)


def _adam(parameters: Any, moments: dict[str, Any], gradients: Any, count: Any) -> tuple[Any, dict[str, Any]]:
    """AdamW (arXiv:1711.05101)."""
    import jax
    import jax.numpy as jnp

    mean = jax.tree.map(lambda m, g: _BETA1 * m + (1 - _BETA1) * g, moments["mean"], gradients)
    variance = jax.tree.map(lambda v, g: _BETA2 * v + (1 - _BETA2) * g * g, moments["variance"], gradients)

    def update(parameter: Any, mean: Any, variance: Any) -> Any:
        direction = mean / (1 - _BETA1**count) / (jnp.sqrt(variance / (1 - _BETA2**count)) + _EPSILON)
        return (parameter - _LEARNING_RATE * (direction + _DECAY * parameter)).astype(parameter.dtype)

    return jax.tree.map(update, parameters, mean, variance), {"mean": mean, "variance": variance}
